/* wick store: create a store, remove old data, add names later, or show what it contains. */
#include "cmd/confine.h"

#include <stdlib.h>
#include <time.h>

#include "object/object.h"
#include "store/store.h"

struct store_command {
    struct request request;
    uint32_t sample_days, hour_days;
    const char *cluster;
};

static const struct option options_store[] = {
    {"keep-samples", 0, OPTION_COUNT, IN(struct store_command, sample_days), "DAYS",
     "gc: keep single samples for DAYS (default: 14)"},
    {"keep-hours", 0, OPTION_COUNT, IN(struct store_command, hour_days), "DAYS",
     "gc: keep hourly sums for DAYS (default: 400)"},
    {"cluster", 0, OPTION_TEXT, IN(struct store_command, cluster), "NAME",
     "init: make replicated and distributed tables on this cluster of ClickHouse servers"},
    OPTION_CREDENTIALS,
    OPTION_STORE_TIMEOUT,
    OPTION_NO_SANDBOX,
    {"quiet", 'q', OPTION_FLAG, ASKED(quiet), NULL, "print only errors"},
    {0},
};

static const struct option options_lookup[] = {
    {"symfs", 0, OPTION_TEXT, ASKED(import.profile.objects.symfs), "DIR",
     "look up every file below DIR"},
    {"debug-dir", 0, OPTION_TEXT, ASKED(import.profile.objects.debug_directories), "DIR[:DIR…]",
     "search these directories for debug files before /usr/lib/debug"},
    OPTIONS_DEBUGINFOD,
    {"no-demangle", 0, OPTION_FLAG, ASKED(import.profile.objects.no_demangle), NULL,
     "do not demangle C++, Rust and D names"},
    {0},
};

static const struct option_group groups[] = {
    {"Options", options_store}, {"Where symbolize looks", options_lookup}, {0}};

static const struct syntax syntax = {
    "store",
    "init|gc|symbolize|show URL",
    "Administer a store of profiles: init creates its tables, gc removes data older than "
    "the\nretention, symbolize adds names and lines to addresses that were stored without a name "
    "(by\nbuild id, from this machine or from debuginfod servers), and show lists the contents.",
    groups,
    .examples = "wick store init fleet.db\n"
                "wick store gc fleet.db --keep-samples 7\n"
                "wick store symbolize fleet.db --debug-dir /srv/debug\n"
                "wick store symbolize fleet.db --debuginfod https://debuginfod.example.com",
};

/* ---- names ---- */

struct finder {
    struct objects *objects;
    struct arena arena;
    struct inline_chain chain; /* reused */
};

/* Return the line of the innermost function inlined at the address, as every command does without inlined functions. */
static void find_line(struct finder *finder, uint32_t object, uint64_t address,
                      struct store_name *name) {
    if (!objects_inlines(finder->objects, object, address, true, &finder->chain))
        return;
    const struct inline_frame *innermost = &finder->chain.items[finder->chain.count - 1];
    name->file = arena_copy(&finder->arena, innermost->file);
    name->line = innermost->line;
}

static bool find_name(void *user, const struct store_unnamed *place, struct store_name *name) {
    struct finder *finder = user;
    struct object_identity identity = {.path = place->object, .kind = OBJECT_FILE};
    if (place->build_id.length > BUILD_ID_MAX)
        return false;
    identity.build_id.size = (uint8_t)place->build_id.length;
    memcpy(identity.build_id.bytes, place->build_id.data, place->build_id.length);
    uint32_t object = objects_add(finder->objects, &identity);
    struct symbol symbol;
    if (!objects_symbol(finder->objects, object, place->address, &symbol))
        return false;
    name->name = arena_copy(&finder->arena, symbol.name);
    find_line(finder, object, place->address, name);
    return true;
}

static bool symbolize(struct store_command *command, struct store *store, struct error *error) {
    struct request *request = &command->request;
    if (!request_start_net(request, error))
        return false;
    struct objects_options options = request->import.profile.objects;
    options.context = &request->context;
    options.lines = true;
    struct finder finder = {.objects = objects_new(&options)};
    struct notes notes = {0};
    uint64_t named, unknown;
    bool fine = store_symbolize(store, find_name, &finder, &named, &unknown, error) &&
                !objects_changed(finder.objects, error);
    if (fine && !request->quiet)
        printf("%llu places named, %llu still unknown\n", (unsigned long long)named,
               (unsigned long long)unknown);
    objects_notes(finder.objects, &notes);
    print_notes(request, &notes);
    notes_release(&notes);
    objects_free(finder.objects);
    arena_release(&finder.arena);
    vector_release(&finder.chain);
    return fine;
}

/* ---- the others ---- */

static bool collect(struct store_command *command, struct store *store, struct error *error) {
    enum { DAY = 86400 };
    struct store_retention retention = {(int64_t)command->sample_days * DAY,
                                        (int64_t)command->hour_days * DAY};
    struct store_removed removed;
    if (!store_gc(store, &retention, (int64_t)time(NULL), &removed, error))
        return false;
    if (!command->request.quiet)
        printf("removed %llu samples, %llu sums by the hour, %llu stacks\n",
               (unsigned long long)removed.samples, (unsigned long long)removed.hours,
               (unsigned long long)removed.stacks);
    return true;
}

static void print_shown(const char *label, const struct store_row *row) {
    struct buffer text = {0};
    buffer_add_shown(&text, row->key);
    printf("%s\t%.*s\t%llu samples\n", label, TEXT_ARGS(buffer_text(&text)),
           (unsigned long long)row->samples);
    buffer_release(&text);
}

static void print_time(const char *what, int64_t seconds) {
    char text[32];
    time_t when = (time_t)seconds;
    struct tm parts;
    if (gmtime_r(&when, &parts) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts))
        printf("%s\t%s\n", what, text);
}

static bool show(struct store *store, struct error *error) {
    static const char *const labels[] = {"type", "service", "version", "host"};
    struct store_query query = {.all_types = true};
    int64_t from, to;
    if (store_span(store, &query, &from, &to, error)) {
        print_time("from", from);
        print_time("to", to);
    } else if (error->kind) {
        return false;
    }
    bool fine = true;
    for (size_t i = 0; i < COUNT_OF(labels) && fine; i++) {
        struct store_rows rows;
        fine = store_values(store, &query, labels[i], &rows, error);
        for (size_t k = 0; k < rows.items.count && fine; k++)
            if (rows.items.items[k].key.length)
                print_shown(labels[i], &rows.items.items[k]);
        store_rows_release(&rows);
    }
    return fine;
}

/* `show` only reads; the others write to the file and beside it. */
static bool confine_store(struct request *request, bool writes, struct error *error) {
    const char *url = request->operands.items[1];
    struct confine_more more = {.store = writes || store_is_url(text_of(url)) ? url : NULL};
    return confine(request, NULL, &more, error);
}

static int run(void *command, int argc, char **argv) {
    static const char *const actions[] = {"init", "gc", "symbolize", "show"};
    struct store_command *c = command;
    struct request *request = &c->request;
    struct error error;
    unsigned action = 0;
    int status = 0;
    if (!options_parse(&syntax, c, argc, argv, &status))
        return status;
    if (request->operands.count != 2)
        return fail_usage("store", "an action and one URL are needed: wick store gc fleet.db");
    if (!choose(request->operands.items[0], actions, COUNT_OF(actions), &action, &error))
        return fail(&error);
    if (c->cluster && action != 0)
        return fail_usage("store", "--cluster is for init");
    request->syntax = &syntax;
    if (!confine_store(request, action != 3, &error))
        return fail(&error);
    struct store_options options = {.context = &request->context,
                                    .credentials = request->import.store_credentials,
                                    .net = request->import.store_net,
                                    .milliseconds = request->import.store_milliseconds,
                                    .cluster = c->cluster,
                                    .write = action != 3,
                                    .create = action == 0,
                                    .upgrade = action == 0};
    struct store *store = store_open(request->operands.items[1], &options, &error);
    if (!store)
        return fail(&error);
    bool fine = action == 1   ? collect(c, store, &error)
                : action == 2 ? symbolize(c, store, &error)
                : action == 3 ? show(store, &error)
                              : true;
    store_close(store);
    return fine ? 0 : fail(&error);
}

const struct command command_store = {"store", "create, clean, symbolize or list a store",
                                      sizeof(struct store_command), run, .group = GROUP_FLEET};
