/*
 * What every command that draws an SVG shares: the options of a picture, what they name read in, and the writing.
 */
#include "cmd/picture.h"

#include <errno.h>
#include <iconv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Waiting is blue, and whoever ended it aqua. */
const struct looks times_looks[] = {
    [TIMES_RUNNING] = {"Flame Graph", PALETTE_WICK},
    [TIMES_WAITING] = {"Off-CPU Time", PALETTE_WAITS},
    [TIMES_BOTH] = {"Wall Time", PALETTE_WICK},
};

struct svg_options picture = {.min_width = SVG_MIN_WIDTH};
static const char *attributes_file;
static const char *palette_file;
static const char *encoding;
static double min_pixels = -1;
static struct notes looks_notes; /* of what the options name */

/* ---- values that are more than a word ---- */

static bool set_min_width(const char *value, struct error *error) {
    char *end;
    double width = strtod(value, &end);
    bool pixels = strcmp(end, "px") == 0;
    if (end == value || (*end && !pixels && strcmp(end, "%") != 0) || !isfinite(width) || width < 0)
        return error_set(error, ERROR_USAGE, "'%s' is neither per cent nor, with px, pixels",
                         value);
    min_pixels = pixels ? width : -1;
    picture.min_width = pixels ? 0 : width;
    return true;
}

static bool colours_chosen;

static bool set_colors(const char *value, struct error *error) {
    colours_chosen = true;
    return choose(value, palette_names, PALETTE_COUNT, &picture.colouring.palette, error);
}

static bool set_shape(const char *value, struct error *error) {
    static const char *const names[] = {"both", "after", "before"};
    return choose(value, names, COUNT_OF(names), &picture.shape, error);
}

static bool set_cp(const char *value, struct error *error) {
    palette_file = palette_file ? palette_file : "palette.map";
    return true;
}

/* ---- options ---- */

const struct option options_picture[] = {
    {"title", 0, OPTION_TEXT, &picture.title, "TEXT", "the title; Flame Graph by default"},
    {"subtitle", 0, OPTION_TEXT, &picture.subtitle, "TEXT", "a line below the title"},
    {"notes", 0, OPTION_TEXT, &picture.notes, "TEXT", "a comment inside the file"},
    {"inverted", 'i', OPTION_FLAG, &picture.inverted, NULL, "the root at the top: an icicle graph"},
    {"reverse", 0, OPTION_FLAG, &request.flame.reverse, NULL,
     "merge stacks from the leaf: who calls what is hot"},
    {"minwidth", 0, OPTION_CALL, set_min_width, "WIDTH",
     "leave out frames narrower than WIDTH per cent (0.01 by default) or, with px, pixels"},
    {"total", 0, OPTION_COUNT64, &picture.total, "N",
     "what 100 % is, where that is more than was counted"},
    {"factor", 0, OPTION_AMOUNT, &picture.factor, "N", "show counts multiplied by N"},
    {"countname", 0, OPTION_TEXT, &picture.count_name, "TEXT",
     "what counts are called; samples by default"},
    {"nametype", 0, OPTION_TEXT, &picture.name_type, "TEXT",
     "what names are called; Function: by default"},
    {"rootname", 0, OPTION_TEXT, &picture.root_name, "TEXT",
     "what the root is called; all by default"},
    {0},
};

const struct option options_difference[] = {
    {"shape", 0, OPTION_CALL, set_shape, "SIDE",
     "of a differential graph, which side is drawn: both, after or before"},
    {"negate", 0, OPTION_FLAG, &picture.negate, NULL, "swap red and blue in a differential graph"},
    {0},
};

const struct option options_looks[] = {
    {"colors", 'c', OPTION_CALL, set_colors, "PALETTE",
     "wick (by kind of code; the default), waits (the same in blue; of waiting the default), hot, "
     "mem, io, wakeup, chain, java, js, perl, python, "
     "rust, red, green, blue, aqua, "
     "yellow, purple, orange"},
    {"hash", 0, OPTION_FLAG, &picture.colouring.by_hash, NULL,
     "alike names get alike colours; in the hot palette unless --colors names another"},
    {"random", 0, OPTION_FLAG, &picture.random, NULL,
     "colours that have nothing to do with names, but are the same each time"},
    {"colordiffusion", 0, OPTION_FLAG, &picture.diffusion, NULL, "the wider a frame the redder"},
    {"cp", 0, OPTION_CALL, set_cp, NULL,
     "keep names' colours from graph to graph in palette.map, read and written here"},
    {"palette-file", 0, OPTION_TEXT, &palette_file, "FILE", "the same, in FILE"},
    {"bgcolors", 0, OPTION_TEXT, &picture.background, "COLOUR",
     "background: yellow, blue, green, grey or #rrggbb; plain by default, dark where the reader "
     "likes it dark"},
    {"search-color", 0, OPTION_TEXT, &picture.search_colour, "#rrggbb",
     "what a search finds; #e600e6 by default"},
    {"uicolor", 0, OPTION_TEXT, &picture.ui_colour, "#rrggbb", "titles and buttons"},
    {"stroke-color", 0, OPTION_TEXT, &picture.stroke_colour, "#rrggbb",
     "an outline around every frame; none by default"},
    {"width", 0, OPTION_COUNT, &picture.width, "PIXELS",
     "a fixed width; as wide as the window by default"},
    {"height", 0, OPTION_COUNT, &picture.frame_height, "PIXELS", "of a frame; 16 by default"},
    {"fonttype", 0, OPTION_TEXT, &picture.font, "FAMILY,…", "monospace by default"},
    {"fontsize", 0, OPTION_COUNT, &picture.font_size, "PIXELS", "12 by default"},
    {"fontwidth", 0, OPTION_AMOUNT, &picture.font_width, "N",
     "a letter's width in font sizes, to see which labels fit; 0.59 by default"},
    {"truncate-text-left", 0, OPTION_FLAG, &picture.truncate_left, NULL,
     "labels that do not fit lose their beginning, not their end"},
    {"encoding", 0, OPTION_TEXT, &encoding, "NAME",
     "what names are written in, such as ISO-8859-1, if not UTF-8; the file is UTF-8 always"},
    {"nameattr", 0, OPTION_TEXT, &attributes_file, "FILE",
     "what to do to frames: name TAB attribute=value …; title, href, target, id, class, g_extra, "
     "a_extra"},
    {"no-javascript", 0, OPTION_FLAG, &picture.no_script, NULL, "a still picture"},
    /* What peers need to be told and wick does anyway. */
    {"deterministic", 0, OPTION_HIDDEN, NULL, NULL, NULL},
    {"truncate-text-right", 0, OPTION_HIDDEN, NULL, NULL, NULL},
    {"pretty-xml", 0, OPTION_HIDDEN, NULL, NULL, NULL},
    {"no-sort", 0, OPTION_HIDDEN, NULL, NULL, NULL},
    {0},
};

/* ---- what they name ---- */

/* A palette file that is not there yet is an empty one. */
static bool read_palette(struct error *error) {
    struct file file;
    picture.map = palette_map_new();
    if (access(palette_file, F_OK) != 0 && errno == ENOENT)
        return true;
    if (!file_open(&file, palette_file, &request.context, error))
        return false;
    palette_map_read(picture.map, file_text(&file), &looks_notes);
    file_close(&file);
    return true;
}

static bool write_palette(struct error *error) {
    struct out out;
    if (!out_open(&out, palette_file, error))
        return false;
    palette_map_write(picture.map, &out);
    return out_commit(&out, error);
}

static bool read_attributes(struct error *error) {
    struct file file;
    if (!file_open(&file, attributes_file, &request.context, error))
        return false;
    picture.attributes = name_attributes_new(file_text(&file), &looks_notes);
    file_close(&file);
    return true;
}

/* Running time has no title yet: it may be a chart, or a diff. */
void picture_settle(void) {
    enum profile_times times = request.import.profile.times;
    if (!colours_chosen)
        picture.colouring.palette = times_looks[times].palette;
    if (times != TIMES_RUNNING && !picture.title)
        picture.title = times_looks[times].title;
}

static void choose_palette(void) {
    if (!picture.colouring.by_hash && !picture.random)
        return;
    if (picture.colouring.palette == PALETTE_WICK)
        picture.colouring.palette = PALETTE_HOT;
    if (picture.colouring.palette == PALETTE_WAITS)
        picture.colouring.palette = PALETTE_CHAIN;
}

static bool encoding_is_known(struct error *error) {
    iconv_t converter = iconv_open("UTF-8", encoding);
    if (converter == (iconv_t)-1)
        return error_set(error, ERROR_USAGE, "--encoding %s: there is no such encoding", encoding);
    iconv_close(converter);
    return true;
}

bool picture_prepare(struct error *error) {
    if (picture.stroke_colour && strcmp(picture.stroke_colour, "none") == 0)
        picture.stroke_colour = NULL; /* as inferno calls it */
    uint32_t width = picture.width ? picture.width : 1200;
    if (min_pixels >= 0)
        picture.min_width = 100 * min_pixels / (width - 20.0);
    choose_palette();
    return svg_options_check(&picture, error) && (!encoding || encoding_is_known(error)) &&
           (!palette_file || read_palette(error)) && (!attributes_file || read_attributes(error));
}

/* `name` from `converter`'s encoding, appended to `out`; what is none of its characters becomes U+FFFD. */
static void add_decoded(struct buffer *out, struct text name, iconv_t converter) {
    char *from = (char *)name.data, piece[256];
    size_t left = name.length;
    iconv(converter, NULL, NULL, NULL, NULL);
    while (left) {
        char *to = piece;
        size_t room = sizeof piece;
        bool stuck = iconv(converter, &from, &left, &to, &room) == (size_t)-1 && errno != E2BIG;
        buffer_add(out, (struct text){piece, sizeof piece - room});
        if (stuck) {
            buffer_add(out, TEXT("\xef\xbf\xbd"));
            from++, left--;
        }
    }
}

/* Names as UTF-8. Costs a table of all strings; most are said once and used often. */
static void decode_names(struct flame *flame) {
    iconv_t converter = iconv_open("UTF-8", encoding);
    uint32_t *decoded = memory_zero(strings_count(flame->strings) + 1, sizeof *decoded);
    struct buffer name = {0};
    for (size_t i = 0; i < flame->nodes.count; i++) {
        uint32_t *id = &flame->nodes.items[i].name;
        if (*id && !decoded[*id]) {
            name.count = 0;
            add_decoded(&name, strings_get(flame->strings, *id), converter);
            decoded[*id] = strings_add(flame->strings, buffer_text(&name));
        }
        *id = decoded[*id];
    }
    buffer_release(&name);
    free(decoded);
    iconv_close(converter);
}

bool picture_write(struct flame *flame, struct notes *notes, struct error *error) {
    const char *path = request.output ? request.output : "flamegraph.svg";
    struct out out;
    if (flame->nodes.items[0].total == 0 && flame->nodes.items[0].total_before == 0)
        return error_set(error, ERROR_INPUT, "there are no stacks to draw");
    notes_merge(notes, &looks_notes);
    if (encoding)
        decode_names(flame);
    if (!out_open(&out, path, error))
        return false;
    picture.context = &request.context;
    picture.is_reversed = request.flame.reverse;
    svg_write(&out, flame, &picture);
    if (!out_commit(&out, error) || (palette_file && !write_palette(error)))
        return false;
    if (!request.output) {
        progress_wipe();
        puts(path);
    }
    return true;
}

const char *picture_only(bool has_weights) {
    const struct {
        bool given;
        const char *name;
    } options[] = {
        {picture.is_chart, "flamechart"},
        {request.with.count, "with"},
        {request.without.count, "without"},
        {picture.inverted, "inverted"},
        {request.flame.reverse, "reverse"},
        {request.flame.fold_recursion, "fold-recursion"},
        {request.flame.by_samples && has_weights, "weight"},
        {min_pixels >= 0 || picture.min_width != SVG_MIN_WIDTH, "minwidth"},
        {picture.notes, "notes"},
        {picture.shape != SHAPE_BOTH, "shape"},
        {picture.negate, "negate"},
        {picture.total, "total"},
        {picture.factor != 0, "factor"},
        {picture.count_name, "countname"},
        {picture.name_type, "nametype"},
        {picture.root_name, "rootname"},
        {picture.random, "random"},
        {picture.diffusion, "colordiffusion"},
        {palette_file, "palette-file"},
        {picture.background, "bgcolors"},
        {picture.search_colour, "search-color"},
        {picture.ui_colour, "uicolor"},
        {picture.stroke_colour, "stroke-color"},
        {picture.width, "width"},
        {picture.frame_height, "height"},
        {picture.font, "fonttype"},
        {picture.font_size, "fontsize"},
        {picture.font_width != 0, "fontwidth"},
        {picture.truncate_left, "truncate-text-left"},
        {encoding, "encoding"},
        {attributes_file, "nameattr"},
        {picture.no_script, "no-javascript"},
    };
    for (size_t i = 0; i < COUNT_OF(options); i++)
        if (options[i].given)
            return options[i].name;
    return NULL;
}

const char *picture_any(void) {
    bool reverse = request.flame.reverse;
    request.flame.reverse = false;
    const char *name = picture.title               ? "title"
                       : picture.subtitle          ? "subtitle"
                       : colours_chosen            ? "colors"
                       : picture.colouring.by_hash ? "hash"
                                                   : picture_only(true);
    request.flame.reverse = reverse;
    return name;
}

/* The page has all shapes in it: those options that choose one are for pictures. */
bool page_write(const struct tree *tree, const struct naming *naming, const char *categories_file,
                const struct notes *notes, struct error *error) {
    const char *path = request.output ? request.output : "flamegraph.html";
    choose_palette();
    struct html_options options = {.title = picture.title,
                                   .subtitle = picture.subtitle,
                                   .colouring = picture.colouring,
                                   .together = request.import.profile.times == TIMES_BOTH ||
                                               request.events.count > 0,
                                   .max_depth = request.flame.max_depth,
                                   .notes = notes};
    struct out out;
    struct categories *categories = categories_new(categories_file, &request.context, error);
    options.categories = categories;
    bool fine = categories && tree_check(tree, error) && out_open(&out, path, error);
    if (fine) {
        fine = html_write(&out, tree, naming, &options, error);
        if (fine)
            fine = out_commit(&out, error);
        else
            out_discard(&out);
    }
    if (fine && !request.output) {
        progress_wipe();
        puts(path);
    }
    categories_free(categories);
    return fine;
}

void picture_release(void) {
    palette_map_free(picture.map);
    name_attributes_free((struct name_attributes *)picture.attributes);
    notes_release(&looks_notes);
}
