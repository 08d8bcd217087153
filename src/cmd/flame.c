/*
 * wick flame: a source to a flame, and that to a picture; or the source's tree to the page, which makes flames of its own.
 */
#include "cmd/picture.h"

#include <stdio.h>
#include <stdlib.h>

static text_list bases;
static const char *categories_file;
static bool as_page;

static const struct option options_flame[] = {
    {"html", 0, OPTION_FLAG, &as_page, NULL,
     "one HTML page with all views: reversed, sandwich, table, timeline; flamegraph.html by "
     "default; takes --title, --subtitle, --colors and --hash of what follows"},
    {"categories", 0, OPTION_TEXT, &categories_file, "FILE",
     "for the page's table: rules for what kind of work a function is; see wick report"},
    {"flamechart", 0, OPTION_FLAG, &picture.is_chart, NULL,
     "in order of time, thread by thread; stacks are not merged"},
    {"base", 0, OPTION_LIST, &bases, "FUNCTION",
     "only stacks with this function, without its callers; may be repeated"},
    {0},
};

static const struct option_group groups[] = {
    {"Flame graph", options_flame},   OPTION_GROUPS_OF_PICTURES, {"Root", options_root},
    {"Which stacks", options_stacks}, OPTION_GROUPS_OF_PROFILES, {0},
};

static const struct syntax syntax = {
    "flame",
    "FILE…",
    "A flame graph of anything wick can read, as one SVG file with zoom and search.\n"
    "Without -o it is flamegraph.svg.",
    groups,
};

/* ---- drawing ---- */

static struct flame *shaped_flame(const struct source *source, struct notes *notes,
                                  struct error *error) {
    struct flame *flame =
        picture.is_chart ? make_chart(source, notes, error) : make_flame(source, notes, error);
    if (!flame || bases.count == 0)
        return flame;
    struct flame *below = flame_below(flame, bases.items, bases.count, error);
    flame_free(flame);
    if (below && below->nodes.count == 1) {
        error_set(error, ERROR_INPUT, "--base %s: no stack has %s", bases.items[0],
                  bases.count > 1 ? "any of these functions" : "this function");
        flame_free(below);
        return NULL;
    }
    return below;
}

static bool write_page(const struct source *source, struct notes *notes, struct error *error) {
    struct naming *naming = make_naming(source, notes);
    notes_sort(notes);
    bool fine = page_write(source->tree, naming, categories_file, notes, error);
    naming_free(naming);
    return fine;
}

static bool draw(const struct source *source, struct notes *notes, struct error *error) {
    if (as_page)
        return write_page(source, notes, error);
    struct flame *flame = shaped_flame(source, notes, error);
    bool fine = flame && picture_write(flame, notes, error);
    flame_free(flame);
    return fine;
}

int command_flame(int argc, char **argv) {
    int status = 0;
    if (!request_find_compat(argc, argv, &status) || !request_parse(&syntax, argc, argv, &status))
        return status;
    if (picture.is_chart && request.flame.reverse)
        return fail_usage("flame", "--flamechart and --reverse exclude each other");
    if (picture.is_chart && stacks_are_chosen())
        return fail_usage("flame", "--with and --without leave holes in a chart; --base cuts one");
    const char *not_for_pages = bases.count ? "base" : picture_only(true);
    if (request.naming.mark_incomplete)
        not_for_pages = "mark-incomplete";
    if (as_page && not_for_pages)
        return fail_usage("flame", "--%s is for the picture; the page does not take it",
                          not_for_pages);
    if (categories_file && !as_page)
        return fail_usage("flame", "--categories is for --html: the picture has no table");
    picture_settle();
    request.import.profile.keep_samples = picture.is_chart || as_page;
    request.import.timed_only = as_page; /* the page's timeline has a use for times alone */
    struct error error;
    if (!as_page && !picture_prepare(&error))
        return fail(&error);
    struct source source;
    if (!open_source(&source, "flame", &status))
        return status;
    struct notes notes = {0};
    status = draw(&source, &notes, &error) ? 0 : fail(&error);
    print_notes(&notes);
    picture_release();
    notes_release(&notes);
    source_close(&source);
    return status;
}
