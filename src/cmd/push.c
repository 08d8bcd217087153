/*
 * wick push: send existing profiles to a store or a service. Each file is one batch; the URL's scheme chooses the
 * receiver.
 */
#include "cmd/push.h"

#include "cmd/confine.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "store/store.h"

enum { TIMEOUT_MOST = 86400 }; /* seconds */

static const struct option options_push[] = {
    {"set-label", 0, OPTION_CALL, CALL(assign_label), "KEY=VALUE",
     "add this label to what is sent; stores index service, version and host; may be repeated"},
    {"at", 0, OPTION_TEXT, IN(struct push_command, at), "TIME",
     "recording time: Unix seconds, 2026-11-16T12:30:00Z or -1d (default: when FILE was last "
     "modified)"},
    {"timeout", 0, OPTION_AMOUNT, IN(struct push_command, timeout), "SECONDS",
     "give up if a server has not answered a request by then (default: stores 300, services 60)"},
    {"threads", 0, OPTION_FLAG, IN(struct push_command, threads), NULL,
     "services: also send process and thread ids, which become series of their own"},
    {0},
};

static const struct option_group groups[] = {
    {"What to send", options_push}, OPTION_GROUPS_OF_SAMPLES,    {"Symbols", options_symbols},
    {"Formats", options_formats},   {"General", options_common}, {0},
};

static const struct syntax syntax = {
    "push",
    "FILE… URL",
    "Send profiles, with all names and lines, to a store: a SQLite file, which is created if "
    "it\ndoes not exist, or ClickHouse. Sending the same file again does not count it twice. "
    "Every\ncommand reads a store as it reads a file.\n\nServices work too: "
    "pyroscope://HOST[:4040], parca://HOST[:7070], otlp://HOST[:4318] (a\ncollector); "
    "pyroscopes://, parcas:// and otlps:// use HTTPS. A service counts what is sent\ntwice twice.",
    groups,
    .examples = "wick push perf.data fleet.db --set-label service=web --set-label version=42\n"
                "wick push *.wick clickhouse://db.example.com/wick --credentials key\n"
                "wick push perf.data pyroscope://localhost --set-label service=web\n"
                "wick flame 'fleet.db?service=web&from=-1d'",
    .common = "set-label at threads credentials quiet",
};

/* ---- one file ---- */

/* Unix nanoseconds. */
static bool find_time(const struct push_command *push, const char *path, uint64_t *time_ns,
                      struct error *error) {
    struct stat status;
    int64_t now = (int64_t)time(NULL);
    *time_ns = (uint64_t)now * 1000000000;
    if (push->at) {
        struct store_query query = {0};
        struct buffer text = {0};
        buffer_printf(&text, "from=%s", push->at);
        bool fine = store_query_parse(&query, buffer_text(&text), now, error);
        *time_ns = (uint64_t)query.from * 1000000000;
        buffer_release(&text);
        store_query_release(&query);
        return fine ||
               error_set(error, ERROR_USAGE,
                         "--at %s: not a time; write Unix seconds, 2026-11-16T12:30:00Z or -1d",
                         push->at);
    }
    if (strcmp(path, "-") != 0 && stat(path, &status) == 0)
        *time_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
    return true;
}

/* Hash the file's bytes and the options that change what is sent, so that the same command sends the same batch. */
static void make_id(const struct request *request, const struct source *source, struct buffer *id) {
    VECTOR(struct text) parts = {0};
    for (size_t i = 0; i < source->file_count; i++)
        vector_push(&parts, file_text(&source->files[i]));
    for (size_t i = 0; i < request->assigned.count; i++) {
        vector_push(&parts, text_of(request->assigned.items[i].key));
        vector_push(&parts, text_of(request->assigned.items[i].pattern));
    }
    for (size_t i = 0; i < request->events.count; i++)
        vector_push(&parts, text_of(request->events.items[i]));
    for (size_t i = 0; i < request->labels.count; i++) {
        vector_push(&parts, text_of(request->labels.items[i].key));
        vector_push(&parts, text_of(request->labels.items[i].pattern));
    }
    store_batch_id(id, parts.items, parts.count);
    vector_release(&parts);
}

static void say_result(const struct request *request, const char *path,
                       const struct store_result *result) {
    if (request->quiet)
        return;
    progress_wipe();
    if (result->known)
        say_line("%s was already sent and is not counted again", path);
    else
        say_line("%s: %llu rows, %llu new stacks", path, (unsigned long long)result->rows,
                 (unsigned long long)result->stacks);
}

/* ---- receivers ---- */

static bool store_takes(struct text url) {
    return store_is_url(url) || text_search(url, TEXT("://")) == SIZE_MAX;
}

static void *store_begin(struct push_command *push, const char *url, struct error *error) {
    struct store_options options = {.context = &push->request.context,
                                    .credentials = push->request.import.store_credentials,
                                    .milliseconds = (unsigned)(push->timeout * 1000),
                                    .net = push->request.import.store_net,
                                    .write = true,
                                    .create = true};
    return store_open(url, &options, error);
}

static bool store_send(void *state, struct push_command *push, const char *path,
                       const struct source *source, uint64_t time_ns, struct error *error) {
    struct buffer id = {0};
    struct store_result result;
    make_id(&push->request, source, &id);
    struct store_batch batch = {.id = buffer_text(&id), .time_ns = time_ns};
    bool fine = store_put(state, source->tree, &batch, &result, error);
    if (fine)
        say_result(&push->request, path, &result);
    buffer_release(&id);
    return fine;
}

static void store_end(void *state) {
    store_close(state);
}

static const struct receiver receiver_store = {store_takes, store_begin, store_send, store_end};
static const struct receiver *const receivers[] = {&receiver_store, &receiver_service};

static const struct receiver *find_receiver(const char *url) {
    for (size_t i = 0; i < COUNT_OF(receivers); i++)
        if (receivers[i]->takes(text_of(url)))
            return receivers[i];
    return NULL;
}

static bool send_file(struct push_command *push, const struct receiver *receiver, void *state,
                      const char *path, struct error *error) {
    struct source source;
    uint64_t time_ns;
    if (!find_time(push, path, &time_ns, error) ||
        !request_open(&push->request, &source, &path, 1, error))
        return false;
    bool fine = receiver->send(state, push, path, &source, time_ns, error);
    print_notes(&push->request, &source.tree->notes);
    source_close(&source);
    return fine;
}

static int run(void *command, int argc, char **argv) {
    struct push_command *push = command;
    struct request *request = &push->request;
    struct error error;
    int status = 0;
    if (!request_parse(request, &syntax, argc, argv, &status))
        return status;
    if (request->operands.count < 2)
        return fail_usage("push", "FILE and URL are needed: wick push perf.data fleet.db");
    if (push->timeout > TIMEOUT_MOST || (push->timeout > 0 && push->timeout < 0.001))
        return fail_usage("push", "--timeout: not from 0.001 to %d seconds", TIMEOUT_MOST);
    if (request->output)
        return fail_usage("push", "-o cannot be used: the output goes to the URL");
    const char *url = request->operands.items[--request->operands.count];
    const struct receiver *receiver = find_receiver(url);
    if (!receiver)
        return fail_usage("push", "%s: not a store or service that wick knows", url);
    request->import.profile.each = request->import.profile.times == TIMES_RUNNING;
    request->import.shown_notes = true; /* stores and services have one set of notes */
    request->times_asked = true;        /* all are sent */
    request->import.profile.source_lines = true;
    void *state = confine(request, NULL, &(struct confine_more){.store = url}, &error)
                      ? receiver->begin(push, url, &error)
                      : NULL;
    if (!state)
        return fail(&error);
    bool fine = true;
    for (size_t i = 0; i < request->operands.count && fine; i++)
        fine = send_file(push, receiver, state, request->operands.items[i], &error);
    receiver->end(state);
    return fine ? 0 : fail(&error);
}

const struct command command_push = {"push", "send profiles to a store or a service",
                                     sizeof(struct push_command), run, .group = GROUP_FLEET};
