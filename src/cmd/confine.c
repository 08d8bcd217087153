/*
 * Before anything is read, tell the sandbox what this run of a command may read and write, according to its options
 * and operands.
 */
#include "cmd/confine.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "net/net.h"
#include "object/object.h"
#include "store/store.h"

#ifdef WICK_TEST_HOOKS
#include "cmd/misbehave.h"
#else
static void misbehave(void) {}
#endif

void confine_entered(void) {
    misbehave();
}

static bool is_path(const struct option *option) {
    return option->kind == OPTION_TEXT && option->argument &&
           (strncmp(option->argument, "FILE", 4) == 0 || strncmp(option->argument, "DIR", 3) == 0);
}

/* Lists of directories are separated by colons. */
static void add_directories(struct request *request, text_list *read, const char *value) {
    struct text rest = text_of(value);
    while (rest.length) {
        size_t colon = text_find(rest, ':');
        struct text one = colon == SIZE_MAX ? rest : text_upto(rest, colon);
        vector_push(read, arena_copy(&request->arena, one).data);
        rest = text_from(rest, colon == SIZE_MAX ? rest.length : colon + 1);
    }
}

/* A device or a pipe is written to directly; a file is created in its directory. */
static void add_output(struct request *request, text_list *write, const char *path) {
    struct stat status;
    if (!path || strcmp(path, "-") == 0)
        return;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        vector_push(write, path);
        return;
    }
    const char *slash = strrchr(path, '/');
    struct text folder = slash ? (struct text){path, (size_t)(slash - path) + 1} : TEXT(".");
    vector_push(write, arena_copy(&request->arena, folder).data);
}

/* Files named by options are read, except for the output. A palette is both. */
static void add_options(struct request *request, text_list *read, text_list *write) {
    for (const struct option_group *group = request->syntax->groups; group->title; group++)
        for (const struct option *option = group->options; option->name; option++) {
            if (!is_path(option) || option->target.offset == offsetof(struct request, output))
                continue;
            const char *value = *(const char **)((char *)request + option->target.offset);
            if (value)
                add_directories(request, read, value);
            if (value && strcmp(option->name, "palette-file") == 0)
                add_output(request, write, value);
        }
}

static void tell(const struct request *request, const struct sandbox_facts *facts) {
    if (!request->verbose)
        return;
    if (facts->unlimited)
        fprintf(stderr, "wick: sandbox: %s\n", facts->unlimited);
    else
        fprintf(stderr, "wick: sandbox: Landlock %d and seccomp\n", facts->landlock);
}

/* A compressed recording needs two temporary files, and its samples may need a third. Creating them takes as long as
   reading a small recording, for which memory suffices. */
enum { TEMPORARIES = 2, TEMPORARIES_EACH = 2, TEMPORARIES_MOST = 64, SMALL = 1 << 18 };

static unsigned temporaries_wanted(const struct request *request) {
    size_t count = request->operands.count, large = 0;
    for (size_t i = 0; i < count; i++) {
        const char *path = request->operands.items[i];
        struct stat status;
        large += path &&
                 !(stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= SMALL);
    }
    if (count && !large)
        return 0;
    count = TEMPORARIES + TEMPORARIES_EACH * count;
    return (unsigned)(count < TEMPORARIES_MOST ? count : TEMPORARIES_MOST);
}

static void confine_to(struct request *request, const struct sandbox_options *options) {
    struct sandbox_facts facts;
    fflush(NULL);
    sandbox_enter(options, &facts);
    tell(request, &facts);
    misbehave();
}

/* Return true if this command may ask debuginfod: then its helper process must be started first. */
static bool has_network(const struct request *request, const struct confine_more *more) {
    for (const struct option_group *group = request->syntax->groups; group->title; group++)
        for (const struct option *option = group->options; option->name; option++)
            if (strcmp(option->name, "debuginfod") == 0)
                return true;
    return more && more->network;
}

/* A store on a server is queried while it is read. */
static bool asks_a_server(const struct request *request, const struct confine_more *more) {
    if (more && more->store && strstr(more->store, "://"))
        return true;
    for (size_t i = 0; i < request->operands.count; i++)
        if (request->operands.items[i] && store_is_url(text_of(request->operands.items[i])))
            return true;
    return false;
}

/* A store's path may be followed by a query. */
static const char *operand_path(struct request *request, const char *operand) {
    size_t end = store_url_query(operand);
    return operand[end] ? arena_copy(&request->arena, (struct text){operand, end}).data : operand;
}

/* SQLite creates its journal beside the file itself, even if the path is a link. */
static void add_store(struct request *request, text_list *write, const char *path) {
    char *real = realpath(path, NULL);
    if (!strstr(path, "://"))
        add_output(request, write, arena_copy(&request->arena, text_of(real ? real : path)).data);
    free(real);
}

static void add_operands(struct request *request, text_list *read, text_list *write) {
    struct buffer sidecar = {0};
    for (size_t i = 0; i < request->operands.count; i++) {
        if (!request->operands.items[i]) /* a command to run ends with NULL */
            continue;
        const char *path = operand_path(request, request->operands.items[i]);
        vector_push(read, path);
        if (sidecar_path(path, &sidecar))
            vector_push(read, arena_copy(&request->arena, text_of(sidecar.items)).data);
        sidecar.count = 0;
        if (store_needs_recovery(path))
            add_store(request, write, path);
    }
    buffer_release(&sidecar);
}

bool confine(struct request *request, const char *output, const struct confine_more *more,
             struct error *error) {
    text_list read = {0}, write = {0};
    const char *cache = request->import.profile.objects.cache;
    if (request->no_sandbox)
        misbehave();
    if (request->no_sandbox || request->is_confined)
        return true;
    if (asks_a_server(request, more) && !request->import.store_net &&
        !(request->import.store_net = net_start(NULL, &request->context, error)))
        return false;
    if (has_network(request, more) && !request_start_net(request, error))
        return false;
    request->is_confined = true;
    add_operands(request, &read, &write);
    add_options(request, &read, &write);
    if (more && more->store)
        add_store(request, &write, more->store);
    add_output(request, &write, request->output ? request->output : output);
    for (size_t i = 0; more && i < more->read_count; i++)
        vector_push(&read, more->read[i]);
    if (more && more->directories)
        add_directories(request, &read, more->directories);
    if (cache) {
        objects_cache_make(cache);
        vector_push(&write, cache);
    }
    struct buffer shared = {0}; /* downloads; broken ones are removed there */
    if (request->net && debuginfod_cache_path(&shared)) {
        objects_cache_make(shared.items);
        vector_push(&write, shared.items);
    }
    confine_to(request, &(struct sandbox_options){.read = read.items,
                                                  .read_count = read.count,
                                                  .write = write.items,
                                                  .write_count = write.count,
                                                  .manage = more ? &more->manage : NULL,
                                                  .manage_count = more && more->manage,
                                                  .temporaries = temporaries_wanted(request),
                                                  .any_memory = more && more->any_memory,
                                                  .terminal = more && more->terminal});
    vector_release(&read);
    vector_release(&write);
    buffer_release(&shared);
    return true;
}

bool confine_reader(struct request *request, const char *output, int *status) {
    if (!choose_default(request, status))
        return false;
    struct error error;
    bool fine = confine(request, output, NULL, &error);
    if (!fine)
        *status = fail(&error);
    return fine;
}
