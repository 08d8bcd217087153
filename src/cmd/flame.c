/*
 * wick flame: draw a source's flame as a picture; or write the source's tree into the page, which makes flames
 * itself.
 */
#include "cmd/confine.h"
#include "cmd/picture.h"

#include <stdio.h>
#include <stdlib.h>

#include "saved/saved.h"

struct flame_command {
    struct picture_request p;
    const char *categories_file;
    const char *source; /* where source files are */
    bool as_page;
};

static const struct option options_flame[] = {
    {"html", 0, OPTION_FLAG, IN(struct flame_command, as_page), NULL,
     "write one HTML page with all views: flame graph, call tree, sandwich, table, timeline "
     "(default: flamegraph.html); honours --title, --subtitle, --colors and --hash"},
    {"categories", 0, OPTION_TEXT, IN(struct flame_command, categories_file), "FILE",
     "for the page's table: rules that assign functions to categories; see wick report"},
    {"source", 0, OPTION_TEXT, IN(struct flame_command, source), "DIR",
     "for the page: embed source lines (from files below DIR) and machine code of functions that "
     "were hit"},
    OPTION_EACH_THREAD,
    {"flamechart", 0, OPTION_FLAG, IN(struct picture_request, svg.is_chart), NULL,
     "draw samples in order of time for each thread, without merging stacks"},
    {0},
};

static const struct option_group groups[] = {
    {"Flame graph", options_flame},
    OPTION_GROUPS_OF_PICTURES,
    {"Grouping", options_by},
    {"Root", options_root},
    {"Which stacks", options_stacks},
    OPTION_GROUPS_OF_PROFILES,
    {0},
};

static const struct syntax syntax = {
    "flame",
    "FILE…",
    "Draw a flame graph of anything wick can read, as one SVG file with zoom and "
    "search\n(flamegraph.svg unless -o is given).",
    groups,
    .examples = "wick flame perf.data                           # flamegraph.svg\n"
                "wick flame --html perf.data                    # one page with all views\n"
                "wick flame --off-cpu perf.data -o waits.svg    # where threads waited\n"
                "wick flame --focus 'parse|lex' --inverted wick-out/x",
    .common = "output html title event comm time by focus off-cpu inverted reverse",
};

/* ---- drawing ---- */

/* A saved profile may already contain what wick save --source and --code add. */
static bool attach(struct flame_command *c, struct tree *tree, struct error *error) {
    if (!c->source)
        return true;
    if (!saved_attach_sources(tree, c->source, error))
        return false;
    saved_attach_code(tree, TEXT(""));
    notes_drop(&tree->notes, "sources-kept"); /* this note is about saved files */
    return true;
}

static bool write_page(struct flame_command *c, const struct source *source, struct notes *notes,
                       struct error *error) {
    if (!attach(c, source->tree, error))
        return false;
    struct naming *naming = make_naming(&c->p.request, source, notes);
    if (tree_knows(source->tree, TIMES_RUNNING) && tree_knows(source->tree, TIMES_WAITING))
        notes_drop(notes, "waits-recorded"),
            notes_drop(notes, "natural-time"); /* the page shows all times */
    notes_sort(notes);
    bool fine = page_write(&c->p, source->tree, naming, c->categories_file, notes, error);
    naming_free(naming);
    return fine;
}

static bool draw(struct flame_command *c, const struct source *source, struct notes *notes,
                 struct error *error) {
    c->p.is_memory = source->tree->is_heap;
    c->p.is_estimated = source_is_estimated(source);
    c->p.svg.deviation = source_deviation(source);
    picture_settle(&c->p); /* only now is it known which time is shown */
    if (c->as_page)
        return write_page(c, source, notes, error);
    c->p.request.flame.waits =
        c->p.request.import.profile.times == TIMES_BOTH && !c->p.svg.is_chart;
    c->p.request.flame.samples =
        c->p.is_estimated && !c->p.request.flame.by_samples && !c->p.request.compat;
    struct flame *flame = c->p.svg.is_chart ? make_chart(&c->p.request, source, notes, error)
                                            : make_flame(&c->p.request, source, notes, error);
    bool fine = flame && picture_write(&c->p, flame, notes, error);
    flame_free(flame);
    return fine;
}

static int run(void *command, int argc, char **argv) {
    struct flame_command *c = command;
    struct request *request = &c->p.request;
    picture_begin(&c->p);
    int status = 0;
    if (!request_find_compat(request, argc, argv, &status) ||
        !request_parse(request, &syntax, argc, argv, &status))
        return status;
    if (c->p.svg.is_chart && request->flame.reverse)
        return fail_usage("flame", "--flamechart and --reverse exclude each other");
    if (c->p.svg.is_chart && (request->rules.focus.count || request->rules.ignore.count))
        return fail_usage("flame", "--%s cannot be used with --flamechart; use --%s",
                          stack_rules_exact(&request->rules) ? "with and --without"
                                                             : "focus and --ignore",
                          stack_rules_exact(&request->rules) ? "base" : "root");
    const char *not_for_pages = picture_only(&c->p, true);
    if (request->naming.mark_incomplete)
        not_for_pages = "mark-incomplete";
    if (c->as_page && not_for_pages)
        return fail_usage("flame", "--%s is for the picture; the page does not take it",
                          not_for_pages);
    if (c->categories_file && !c->as_page)
        return fail_usage("flame", "--categories is for --html: the picture has no table");
    if (c->source && !c->as_page)
        return fail_usage("flame", "--source is for --html: the picture shows no lines");
    picture_settle(&c->p);
    if (!c->p.svg.is_chart) /* a chart has a lane for each thread */
        group_threads(request);
    request->import.profile.keep_samples = c->p.svg.is_chart || c->as_page;
    request->import.profile.each = c->as_page;
    request->import.profile.source_lines |= c->source != NULL;
    request->import.profile.saved_lines = c->as_page;
    request->import.profile.lifetimes = c->as_page;
    request->import.timed_only = c->as_page; /* the page's timeline can show times without stacks */
    struct error error;
    if (!grouping_settle(request, &error))
        return fail(&error);
    if (!c->as_page)
        request_names_only(request);
    if (!confine_reader(request, c->as_page ? "flamegraph.html" : "flamegraph.svg", &status))
        return status;
    if (!c->as_page && !picture_prepare(&c->p, &error))
        return fail(&error);
    struct source source;
    if (!open_source(request, &source, &status))
        return status;
    struct notes notes = {0};
    status = draw(c, &source, &notes, &error) ? 0 : fail(&error);
    print_notes(request, &notes);
    notes_release(&notes);
    source_leave(&source);
    return status;
}

const struct command command_flame = {"flame",
                                      "draw a flame graph: SVG, or one HTML page with all views",
                                      sizeof(struct flame_command),
                                      run,
                                      picture_release,
                                      .group = GROUP_LOOK};
