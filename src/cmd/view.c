/* wick view: show a source in the full-screen terminal viewer. */
#include "cmd/confine.h"

#include <stdlib.h>

#include "cmd/picture.h"
#include "terminal/terminal.h"

struct view_command {
    struct request request;
    unsigned palette;
    bool palette_chosen;
};

static bool set_palette(void *command, const char *value, struct error *error) {
    struct view_command *c = command;
    c->palette_chosen = true;
    return choose(value, palette_names, PALETTE_COUNT, &c->palette, error);
}

static const struct option options_view[] = {
    {"colors", 0, OPTION_CALL, CALL(set_palette), "PALETTE",
     "palette, as in wick flame; set NO_COLOR=1 for no colours",
     "wick waits hot mem io wakeup chain java js perl python rust red green blue aqua yellow "
     "purple "
     "orange"},
    {"reverse", 0, OPTION_FLAG, ASKED(flame.reverse), NULL, "merge stacks from the leaf"},
    OPTION_EACH_THREAD,
    {0},
};

static const struct option_group groups[] = {
    {"View", options_view},           {"Grouping", options_by},  {"Root", options_root},
    {"Which stacks", options_stacks}, OPTION_GROUPS_OF_PROFILES, {0},
};

static const struct syntax syntax = {
    "view",
    "FILE…",
    "Show a profile in the terminal: flame graph, call tree, table, and the callers and "
    "callees\nof a function, with search, zoom, filters and mouse support. Press ? for the keys.",
    groups,
    .examples = "wick view perf.data\n"
                "wick view --off-cpu --focus 'parse|lex' wick-out/x\n"
                "wick view cpu.pb.gz",
    .common = "event comm time by focus hide off-cpu reverse each-thread",
};

static void describe_files(const struct request *request, struct buffer *title) {
    for (size_t i = 0; i < request->operands.count; i++)
        buffer_printf(title, "%s%s", i ? " " : "", request->operands.items[i]);
    if (!request->operands.count)
        buffer_add(title, TEXT("standard input"));
    buffer_add_char(title, 0);
}

static bool show(struct view_command *c, const struct source *source, struct error *error) {
    struct request *request = &c->request;
    struct notes notes = {0};
    struct buffer title = {0};
    struct naming *naming = make_naming(request, source, &notes);
    if (!c->palette_chosen)
        c->palette = times_looks[request->import.profile.times].palette;
    describe_files(request, &title);
    notes_sort(&notes);
    print_notes(request, &notes);
    struct viewer_options options = {.title = title.items,
                                     .tree = source->tree,
                                     .naming = naming,
                                     .flame = &request->flame,
                                     .notes = &notes,
                                     .colouring = {.palette = (enum palette)c->palette}};
    bool fine = tree_check(source->tree, error) && viewer_run(&options, error);
    naming_free(naming);
    notes_release(&notes);
    buffer_release(&title);
    return fine;
}

/* The terminal database is read only after the profile. */
static bool confine_view(struct request *request, struct error *error) {
    const char *home = getenv("HOME"), *own = getenv("TERMINFO"), *more = getenv("TERMINFO_DIRS");
    struct buffer hidden = {0};
    buffer_printf(&hidden, "%s/.terminfo%c", home ? home : "", 0);
    const char *const read[] = {"/etc/terminfo", hidden.items, own ? own : "/usr/share/terminfo"};
    struct confine_more beyond = {
        .read = read, .read_count = COUNT_OF(read), .directories = more, .terminal = true};
    bool fine = confine(request, NULL, &beyond, error);
    buffer_release(&hidden);
    return fine;
}

static int run(void *command, int argc, char **argv) {
    struct view_command *c = command;
    struct request *request = &c->request;
    int status = 0;
    struct error error;
    if (!request_find_compat(request, argc, argv, &status) ||
        !request_parse(request, &syntax, argc, argv, &status))
        return status;
    if (request->output)
        return fail_usage("view", "-o is not for wick view, which writes nothing");
    if (!grouping_settle(request, &error) || !viewer_possible(&error))
        return fail(&error);
    group_threads(request);
    struct source source;
    if (!choose_default(request, &status))
        return status;
    if (!confine_view(request, &error))
        return fail(&error);
    if (!open_source(request, &source, &status))
        return status;
    progress_wipe();
    status = show(c, &source, &error) ? 0 : fail(&error);
    source_close(&source);
    return status;
}

const struct command command_view = {"view", "explore a profile in the terminal",
                                     sizeof(struct view_command), run, .group = GROUP_LOOK};
