#include "cmd/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct svg_options svg = {.min_width = SVG_MIN_WIDTH};
static text_list bases;
static const char *attributes_file;
static const char *palette_file;
static const char *categories_file;
static double min_pixels = -1;
static bool as_page;

/* ---- values that are more than a word ---- */

static bool set_min_width(const char *value, struct error *error) {
    char *end;
    double width = strtod(value, &end);
    bool pixels = strcmp(end, "px") == 0;
    if (end == value || (*end && !pixels && strcmp(end, "%") != 0) || !isfinite(width) || width < 0)
        return error_set(error, ERROR_USAGE, "'%s' is neither per cent nor, with px, pixels",
                         value);
    min_pixels = pixels ? width : -1;
    svg.min_width = pixels ? 0 : width;
    return true;
}

static bool set_colors(const char *value, struct error *error) {
    if (palette_find(value, &svg.colouring.palette))
        return true;
    struct buffer names = {0};
    for (int i = 0; i < PALETTE_COUNT; i++)
        buffer_printf(&names, "%s%s", i ? ", " : "", palette_names[i]);
    error_set(error, ERROR_USAGE, "'%s' is none of %.*s", value, (int)names.count, names.items);
    buffer_release(&names);
    return false;
}

static bool set_shape(const char *value, struct error *error) {
    static const char *const names[] = {"both", "after", "before"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(value, names[i]) == 0) {
            svg.shape = (enum diff_shape)i;
            return true;
        }
    return error_set(error, ERROR_USAGE, "'%s' is none of both, after and before", value);
}

static bool set_cp(const char *value, struct error *error) {
    palette_file = palette_file ? palette_file : "palette.map";
    return true;
}

/* ---- options ---- */

static const struct option options_picture[] = {
    {"title", 0, OPTION_TEXT, &svg.title, "TEXT", "the title; Flame Graph by default"},
    {"subtitle", 0, OPTION_TEXT, &svg.subtitle, "TEXT", "a line below the title"},
    {"notes", 0, OPTION_TEXT, &svg.notes, "TEXT", "a comment inside the file"},
    {"html", 0, OPTION_FLAG, &as_page, NULL,
     "one HTML page with all views: reversed, sandwich, table, timeline; flamegraph.html by "
     "default"},
    {"categories", 0, OPTION_TEXT, &categories_file, "FILE",
     "for the page's table: rules for what kind of work a function is; see wick report"},
    {"inverted", 'i', OPTION_FLAG, &svg.inverted, NULL, "the root at the top: an icicle graph"},
    {"reverse", 0, OPTION_FLAG, &request.flame.reverse, NULL,
     "merge stacks from the leaf: who calls what is hot"},
    {"flamechart", 0, OPTION_FLAG, &svg.is_chart, NULL,
     "in order of time, thread by thread; stacks are not merged"},
    {"base", 0, OPTION_LIST, &bases, "FUNCTION",
     "only stacks with this function, without its callers; may be repeated"},
    {"minwidth", 0, OPTION_CALL, set_min_width, "WIDTH",
     "leave out frames narrower than WIDTH per cent (0.01 by default) or, with px, pixels"},
    {"shape", 0, OPTION_CALL, set_shape, "SIDE",
     "of a differential graph, which side is drawn: both, after or before"},
    {"negate", 0, OPTION_FLAG, &svg.negate, NULL, "swap red and blue in a differential graph"},
    {"total", 0, OPTION_U64, &svg.total, "N", "what 100 % is, where that is more than was counted"},
    {"factor", 0, OPTION_DOUBLE, &svg.factor, "N", "show counts multiplied by N"},
    {"countname", 0, OPTION_TEXT, &svg.count_name, "TEXT",
     "what counts are called; samples by default"},
    {"nametype", 0, OPTION_TEXT, &svg.name_type, "TEXT",
     "what names are called; Function: by default"},
    {"rootname", 0, OPTION_TEXT, &svg.root_name, "TEXT", "what the root is called; all by default"},
    {0},
};

static const struct option options_looks[] = {
    {"colors", 'c', OPTION_CALL, set_colors, "PALETTE",
     "wick (by kind of code; the default), hot, mem, io, wakeup, chain, java, js, perl, python, "
     "rust, red, green, blue, aqua, "
     "yellow, purple, orange"},
    {"hash", 0, OPTION_FLAG, &svg.colouring.by_hash, NULL,
     "alike names get alike colours; in the hot palette unless --colors names another"},
    {"colordiffusion", 0, OPTION_FLAG, &svg.diffusion, NULL, "the wider a frame the redder"},
    {"cp", 0, OPTION_CALL, set_cp, NULL,
     "keep names' colours from graph to graph in palette.map, read and written here"},
    {"palette-file", 0, OPTION_TEXT, &palette_file, "FILE", "the same, in FILE"},
    {"bgcolors", 0, OPTION_TEXT, &svg.background, "COLOUR",
     "background: yellow, blue, green, grey or #rrggbb; plain by default, dark where the reader "
     "likes it dark"},
    {"search-color", 0, OPTION_TEXT, &svg.search_colour, "#rrggbb",
     "what a search finds; #e600e6 by default"},
    {"uicolor", 0, OPTION_TEXT, &svg.ui_colour, "#rrggbb", "titles and buttons"},
    {"stroke-color", 0, OPTION_TEXT, &svg.stroke_colour, "#rrggbb",
     "an outline around every frame"},
    {"width", 0, OPTION_U32, &svg.width, "PIXELS",
     "a fixed width; as wide as the window by default"},
    {"height", 0, OPTION_U32, &svg.frame_height, "PIXELS", "of a frame; 16 by default"},
    {"fonttype", 0, OPTION_TEXT, &svg.font, "FAMILY,…", "monospace by default"},
    {"fontsize", 0, OPTION_U32, &svg.font_size, "PIXELS", "12 by default"},
    {"fontwidth", 0, OPTION_DOUBLE, &svg.font_width, "N",
     "a letter's width in font sizes, to see which labels fit; 0.59 by default"},
    {"truncate-text-left", 0, OPTION_FLAG, &svg.truncate_left, NULL,
     "labels that do not fit lose their beginning, not their end"},
    {"nameattr", 0, OPTION_TEXT, &attributes_file, "FILE",
     "what to do to frames: name TAB attribute=value …; title, href, target, id, class, g_extra, "
     "a_extra"},
    {"no-javascript", 0, OPTION_FLAG, &svg.no_script, NULL, "a still picture"},
    /* What peers need to be told and wick does anyway. */
    {"deterministic", 0, OPTION_HIDDEN, NULL, NULL, NULL},
    {"truncate-text-right", 0, OPTION_HIDDEN, NULL, NULL, NULL},
    {"pretty-xml", 0, OPTION_HIDDEN, NULL, NULL, NULL},
    {"no-sort", 0, OPTION_HIDDEN, NULL, NULL, NULL},
    {0},
};

static const struct option_group groups[] = {
    {"Picture", options_picture},         {"Looks", options_looks},
    {"Which samples", options_filter},    {"Names", options_names},
    {"Weights and shape", options_shape}, {"Symbols", options_symbols},
    {"General", options_common},          {0},
};

static const struct syntax syntax = {
    "flame",
    "FILE…",
    "A flame graph of anything wick can read, as one SVG file with zoom and search.\n"
    "Without -o it is flamegraph.svg.",
    groups,
};

/* ---- drawing ---- */

/* A palette file that is not there yet is an empty one. */
static bool read_palette(struct notes *notes, struct error *error) {
    struct file file;
    svg.map = palette_map_new();
    if (access(palette_file, F_OK) != 0 && errno == ENOENT)
        return true;
    if (!file_open(&file, palette_file, error))
        return false;
    palette_map_read(svg.map, file_text(&file), notes);
    file_close(&file);
    return true;
}

static bool write_palette(struct error *error) {
    struct out out;
    if (!out_open(&out, palette_file, error))
        return false;
    palette_map_write(svg.map, &out);
    return out_commit(&out, error);
}

static bool read_attributes(struct notes *notes, struct error *error) {
    struct file file;
    if (!file_open(&file, attributes_file, error))
        return false;
    svg.attributes = name_attributes_new(file_text(&file), notes);
    file_close(&file);
    return true;
}

static bool read_looks(struct notes *notes, struct error *error) {
    uint32_t width = svg.width ? svg.width : 1200;
    if (min_pixels >= 0)
        svg.min_width = 100 * min_pixels / (width - 20.0);
    if (svg.colouring.by_hash && svg.colouring.palette == PALETTE_WICK)
        svg.colouring.palette = PALETTE_HOT;
    return svg_options_check(&svg, error) && (!palette_file || read_palette(notes, error)) &&
           (!attributes_file || read_attributes(notes, error));
}

static bool write_svg(const struct flame *flame, struct notes *notes, struct error *error) {
    const char *path = request.output ? request.output : "flamegraph.svg";
    struct out out;
    if (flame->nodes.items[0].total == 0 && flame->nodes.items[0].total_before == 0)
        return error_set(error, ERROR_INPUT, "there are no stacks to draw");
    if (!read_looks(notes, error) || !out_open(&out, path, error))
        return false;
    svg_write(&out, flame, &svg);
    if (!out_commit(&out, error) || (palette_file && !write_palette(error)))
        return false;
    if (!request.output)
        puts(path);
    return true;
}

static struct flame *shaped_flame(const struct source *source, struct notes *notes,
                                  struct error *error) {
    struct flame *flame =
        svg.is_chart ? make_chart(source, notes, error) : make_flame(source, notes, error);
    if (!flame || bases.count == 0)
        return flame;
    struct flame *below = flame_below(flame, bases.items, bases.count, error);
    flame_free(flame);
    return below;
}

/* The page has all shapes in it: those options that choose one are for pictures. */
static bool write_page(const struct source *source, struct notes *notes, struct error *error) {
    const char *path = request.output ? request.output : "flamegraph.html";
    struct html_options options = {.title = svg.title,
                                   .subtitle = svg.subtitle,
                                   .colouring = svg.colouring,
                                   .max_depth = request.flame.max_depth,
                                   .notes = notes};
    struct out out;
    request.naming.is_script_text = source->profile == NULL;
    struct categories *categories = categories_new(categories_file, error);
    struct naming *naming = naming_of_tree(source->tree, &request.naming);
    notes_merge(notes, &source->tree->notes);
    naming_notes(source->tree, naming, notes);
    notes_sort(notes);
    options.categories = categories;
    bool fine = categories && tree_check(source->tree, error) && out_open(&out, path, error);
    if (fine) {
        fine = html_write(&out, source->tree, naming, &options, error);
        if (fine)
            fine = out_commit(&out, error);
        else
            out_discard(&out);
    }
    if (fine && !request.output)
        puts(path);
    naming_free(naming);
    categories_free(categories);
    return fine;
}

static bool draw(const struct source *source, struct notes *notes, struct error *error) {
    if (as_page)
        return write_page(source, notes, error);
    struct flame *flame = shaped_flame(source, notes, error);
    bool fine = flame && write_svg(flame, notes, error);
    flame_free(flame);
    return fine;
}

int command_flame(int argc, char **argv) {
    int status = 0;
    if (!request_find_compat(argc, argv, &status) ||
        !options_parse(&syntax, argc, argv, &request.operands, &status))
        return status;
    if (svg.is_chart && request.flame.reverse)
        return fail_usage("flame", "--flamechart and --reverse exclude each other");
    request_settle();
    svg.is_reversed = request.flame.reverse;
    request.import.profile.keep_samples = svg.is_chart || as_page;
    struct source source;
    if (!open_source(&source, "flame", &status))
        return status;
    struct error error;
    struct notes notes = {0};
    status = draw(&source, &notes, &error) ? 0 : fail(&error);
    print_notes(&notes);
    palette_map_free(svg.map);
    name_attributes_free((struct name_attributes *)svg.attributes);
    notes_release(&notes);
    source_close(&source);
    return status;
}
