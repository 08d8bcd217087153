/*
 * Shared by all commands that draw an SVG: the options of a picture, reading the files that they name, and writing.
 */
#include "cmd/picture.h"

#include <errno.h>
#include <iconv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void picture_begin(struct picture_request *p) {
    p->svg.min_width = SVG_MIN_WIDTH;
    p->min_pixels = -1;
}

/* ---- values that need parsing ---- */

static bool set_min_width(void *command, const char *value, struct error *error) {
    struct picture_request *p = command;
    char *end;
    double width = strtod(value, &end);
    bool pixels = strcmp(end, "px") == 0;
    if (end == value || (*end && !pixels && strcmp(end, "%") != 0) || !isfinite(width) || width < 0)
        return error_set(error, ERROR_USAGE, "'%s' is neither per cent nor, with px, pixels",
                         value);
    p->min_pixels = pixels ? width : -1;
    p->svg.unbounded = true;
    p->svg.min_width = pixels ? 0 : width;
    return true;
}

static bool set_colors(void *command, const char *value, struct error *error) {
    struct picture_request *p = command;
    p->colours_chosen = true;
    return choose(value, palette_names, PALETTE_COUNT, &p->svg.colouring.palette, error);
}

static bool set_shape(void *command, const char *value, struct error *error) {
    struct picture_request *p = command;
    static const char *const names[] = {"both", "after", "before"};
    return choose(value, names, COUNT_OF(names), &p->svg.shape, error);
}

static bool set_cp(void *command, const char *value, struct error *error) {
    struct picture_request *p = command;
    p->palette_file = p->palette_file ? p->palette_file : "palette.map";
    return true;
}

/* ---- options ---- */

#define HERE(member) IN(struct picture_request, member)
const struct option options_picture[] = {
    {"title", 0, OPTION_TEXT, HERE(svg.title), "TEXT", "title (default: Flame Graph)"},
    {"subtitle", 0, OPTION_TEXT, HERE(svg.subtitle), "TEXT", "line below the title"},
    {"notes", 0, OPTION_TEXT, HERE(svg.notes), "TEXT", "comment to store in the file"},
    {"inverted", 'i', OPTION_FLAG, HERE(svg.inverted), NULL,
     "draw the root at the top (an icicle graph)"},
    {"reverse", 0, OPTION_FLAG, ASKED(flame.reverse), NULL,
     "merge stacks from the leaf, to see the callers of hot functions"},
    {"minwidth", 0, OPTION_CALL, CALL(set_min_width), "WIDTH",
     "omit frames narrower than WIDTH per cent, or pixels with the suffix px (default: 0.01)"},
    {"total", 0, OPTION_COUNT64, HERE(svg.total), "N",
     "use N as 100 %, if it is more than the sum of all samples"},
    {"factor", 0, OPTION_AMOUNT, HERE(svg.factor), "N", "multiply all counts by N"},
    {"countname", 0, OPTION_TEXT, HERE(svg.count_name), "TEXT",
     "name of the counts (default: samples)"},
    {"nametype", 0, OPTION_TEXT, HERE(svg.name_type), "TEXT",
     "label before a frame's name (default: Function:)"},
    {"rootname", 0, OPTION_TEXT, HERE(svg.root_name), "TEXT",
     "name of the root frame (default: all)"},
    {0},
};

const struct option options_difference[] = {
    {"shape", 0, OPTION_CALL, CALL(set_shape), "SIDE",
     "in a differential graph, take the widths from both sides, after or before",
     "both after before"},
    {"negate", 0, OPTION_FLAG, HERE(svg.negate), NULL, "swap red and blue in a differential graph"},
    {0},
};

const struct option options_looks[] = {
    {"colors", 'c', OPTION_CALL, CALL(set_colors), "PALETTE",
     "wick (by kind of code; the default), waits (blue; the default for off-CPU time), hot, mem, "
     "io, wakeup, chain, java, js, perl, python, rust, red, green, blue, aqua, yellow, purple or "
     "orange",
     "wick waits hot mem io wakeup chain java js perl python rust red green blue aqua yellow "
     "purple orange"},
    {"hash", 0, OPTION_FLAG, HERE(svg.colouring.by_hash), NULL,
     "derive colours from names, so that similar names look alike (palette: hot unless --colors is "
     "given)"},
    {"random", 0, OPTION_FLAG, HERE(svg.random), NULL,
     "choose colours at random, but the same ones on each run"},
    {"colordiffusion", 0, OPTION_FLAG, HERE(svg.diffusion), NULL, "draw wider frames redder"},
    {"cp", 0, OPTION_CALL, CALL(set_cp), NULL,
     "keep each name's colour across graphs: read and update ./palette.map"},
    {"palette-file", 0, OPTION_TEXT, HERE(palette_file), "FILE",
     "like --cp, with FILE instead of palette.map"},
    {"bgcolors", 0, OPTION_TEXT, HERE(svg.background), "COLOUR",
     "background: yellow, blue, green, grey or #rrggbb (default: plain, light or dark as the "
     "viewer prefers)",
     "yellow blue green grey"},
    {"search-color", 0, OPTION_TEXT, HERE(svg.search_colour), "#rrggbb",
     "colour of search matches (default: #e600e6)"},
    {"uicolor", 0, OPTION_TEXT, HERE(svg.ui_colour), "#rrggbb", "colour of titles and buttons"},
    {"stroke-color", 0, OPTION_TEXT, HERE(svg.stroke_colour), "#rrggbb",
     "outline each frame in this colour (default: none)"},
    {"width", 0, OPTION_COUNT, HERE(svg.width), "PIXELS",
     "fixed width (default: as wide as the window)"},
    {"height", 0, OPTION_COUNT, HERE(svg.frame_height), "PIXELS",
     "height of a frame (default: 16)"},
    {"fonttype", 0, OPTION_TEXT, HERE(svg.font), "FAMILY,…", "font (default: monospace)"},
    {"fontsize", 0, OPTION_COUNT, HERE(svg.font_size), "PIXELS", "font size (default: 12)"},
    {"fontwidth", 0, OPTION_AMOUNT, HERE(svg.font_width), "N",
     "average width of a letter relative to the font size (default: 0.59)"},
    {"truncate-text-left", 0, OPTION_FLAG, HERE(svg.truncate_left), NULL,
     "cut labels that do not fit at the start instead of at the end"},
    {"encoding", 0, OPTION_TEXT, HERE(encoding), "NAME",
     "encoding of the input's names, such as ISO-8859-1 (default: UTF-8); the output is always "
     "UTF-8"},
    {"nameattr", 0, OPTION_TEXT, HERE(attributes_file), "FILE",
     "set attributes of frames; each line is name TAB attribute=value …, with title, href, target, "
     "id, class, g_extra or a_extra"},
    {"no-javascript", 0, OPTION_FLAG, HERE(svg.no_script), NULL,
     "write a static picture without zoom and search"},
    /* Options of similar tools for what wick does anyway. */
    {"deterministic", 0, OPTION_HIDDEN, {0}, NULL, NULL},
    {"truncate-text-right", 0, OPTION_HIDDEN, {0}, NULL, NULL},
    {"pretty-xml", 0, OPTION_HIDDEN, {0}, NULL, NULL},
    {"no-sort", 0, OPTION_HIDDEN, {0}, NULL, NULL},
    {0},
};

/* ---- files named by options ---- */

/* A missing palette file is treated as empty. */
static bool read_palette(struct picture_request *p, struct error *error) {
    struct file file;
    p->svg.map = palette_map_new();
    if (access(p->palette_file, F_OK) != 0 && errno == ENOENT)
        return true;
    if (!file_open(&file, p->palette_file, &p->request.context, error))
        return false;
    palette_map_read(p->svg.map, file_text(&file), &p->looks_notes);
    file_close(&file);
    return true;
}

static bool write_palette(struct picture_request *p, struct error *error) {
    struct out out;
    if (!out_open(&out, p->palette_file, error))
        return false;
    palette_map_write(p->svg.map, &out);
    return out_commit(&out, error);
}

static bool read_attributes(struct picture_request *p, struct error *error) {
    struct file file;
    if (!file_open(&file, p->attributes_file, &p->request.context, error))
        return false;
    p->svg.attributes = name_attributes_new(file_text(&file), &p->looks_notes);
    file_close(&file);
    return true;
}

static void choose_palette(struct picture_request *p) {
    if (!p->svg.colouring.by_hash && !p->svg.random)
        return;
    if (p->svg.colouring.palette == PALETTE_WICK)
        p->svg.colouring.palette = PALETTE_HOT;
    if (p->svg.colouring.palette == PALETTE_WAITS)
        p->svg.colouring.palette = PALETTE_CHAIN;
}

/* On-CPU time gets no title here: the picture may be a chart, or a diff. */
void picture_settle(struct picture_request *p) {
    enum times times = p->request.import.profile.times;
    if (!p->colours_chosen)
        p->svg.colouring.palette = times_looks[times].palette;
    if (times != TIMES_RUNNING && !p->svg.title)
        p->svg.title = times_looks[times].title;
    choose_palette(p);
}

static bool encoding_is_known(const struct picture_request *p, struct error *error) {
    iconv_t converter = iconv_open("UTF-8", p->encoding);
    if (converter == (iconv_t)-1)
        return error_set(error, ERROR_USAGE, "--encoding %s: there is no such encoding",
                         p->encoding);
    iconv_close(converter);
    return true;
}

bool picture_prepare(struct picture_request *p, struct error *error) {
    if (p->svg.stroke_colour && strcmp(p->svg.stroke_colour, "none") == 0)
        p->svg.stroke_colour = NULL; /* inferno's name for it */
    uint32_t width = p->svg.width ? p->svg.width : 1200;
    if (p->min_pixels >= 0)
        p->svg.min_width = 100 * p->min_pixels / (width - 20.0);
    choose_palette(p);
    return svg_options_check(&p->svg, error) && (!p->encoding || encoding_is_known(p, error)) &&
           (!p->palette_file || read_palette(p, error)) &&
           (!p->attributes_file || read_attributes(p, error));
}

/* Append `name`, decoded from `converter`'s encoding, to `out`; invalid bytes become U+FFFD. */
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

/* Convert names to UTF-8, each string once. Costs a table of all strings. */
static void decode_names(struct flame *flame, const char *encoding) {
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

static const struct note_kind note_left_out = {
    "frames-left-out", "# narrow or deep frame{ is|s are} not in the picture, "
                       "which would be too large; --minwidth 0 draws all"};

bool picture_write(struct picture_request *p, struct flame *flame, struct notes *notes,
                   struct error *error) {
    const char *path = p->request.output ? p->request.output : "flamegraph.svg";
    struct out out;
    if (flame->nodes.items[0].total == 0 && flame->nodes.items[0].total_before == 0)
        return error_set(error, ERROR_INPUT, "there are no stacks to draw");
    notes_merge(notes, &p->looks_notes);
    if (p->encoding)
        decode_names(flame, p->encoding);
    if (!out_open(&out, path, error))
        return false;
    p->svg.context = &p->request.context;
    p->svg.is_reversed = p->request.flame.reverse;
    p->svg.plain_labels = p->request.compat != NULL;
    p->svg.unbounded |= p->request.compat != NULL;
    size_t left_out = svg_write(&out, flame, &p->svg);
    if (left_out)
        notes_add(notes, &note_left_out, left_out, 0, NULL);
    if (!out_commit(&out, error) || (p->palette_file && !write_palette(p, error)))
        return false;
    if (!p->request.output) {
        progress_wipe();
        puts(path);
    }
    return true;
}

const char *picture_only(const struct picture_request *p, bool has_weights) {
    const struct {
        bool given;
        const char *name;
    } options[] = {
        {p->svg.is_chart, "flamechart"},
        {p->svg.inverted, "inverted"},
        {p->request.flame.reverse, "reverse"},
        {p->request.flame.fold_recursion, "fold-recursion"},
        {p->request.flame.by_samples && has_weights, "weight"},
        {p->min_pixels >= 0 || p->svg.min_width != SVG_MIN_WIDTH, "minwidth"},
        {p->svg.notes, "notes"},
        {p->svg.shape != SHAPE_BOTH, "shape"},
        {p->svg.negate, "negate"},
        {p->svg.total, "total"},
        {p->svg.factor != 0, "factor"},
        {p->svg.count_name, "countname"},
        {p->svg.name_type, "nametype"},
        {p->svg.root_name, "rootname"},
        {p->svg.random, "random"},
        {p->svg.diffusion, "colordiffusion"},
        {p->palette_file, "palette-file"},
        {p->svg.background, "bgcolors"},
        {p->svg.search_colour, "search-color"},
        {p->svg.ui_colour, "uicolor"},
        {p->svg.stroke_colour, "stroke-color"},
        {p->svg.width, "width"},
        {p->svg.frame_height, "height"},
        {p->svg.font, "fonttype"},
        {p->svg.font_size, "fontsize"},
        {p->svg.font_width != 0, "fontwidth"},
        {p->svg.truncate_left, "truncate-text-left"},
        {p->encoding, "encoding"},
        {p->attributes_file, "nameattr"},
        {p->svg.no_script, "no-javascript"},
    };
    for (size_t i = 0; i < COUNT_OF(options); i++)
        if (options[i].given)
            return options[i].name;
    return NULL;
}

const char *picture_any(const struct picture_request *p) {
    struct picture_request forward = *p;
    forward.request.flame.reverse = false;
    const char *name = p->svg.title               ? "title"
                       : p->svg.subtitle          ? "subtitle"
                       : p->colours_chosen        ? "colors"
                       : p->svg.colouring.by_hash ? "hash"
                                                  : picture_only(&forward, true);
    return name;
}

/* The page contains all shapes, so options that choose one are only for pictures. */
bool page_write(struct picture_request *p, const struct tree *tree, const struct naming *naming,
                const char *categories_file, const struct notes *notes, struct error *error) {
    const char *path = p->request.output ? p->request.output : "flamegraph.html";
    choose_palette(p);
    struct html_options options = {
        .title = p->svg.title,
        .subtitle = p->svg.subtitle,
        .colouring = p->svg.colouring,
        .together = !p->is_memory &&
                    (p->request.import.profile.times == TIMES_BOTH || p->request.events.count > 0),
        .estimated = p->is_estimated,
        .deviation = p->svg.deviation,
        .each_thread = p->request.each_thread,
        .max_depth = p->request.flame.max_depth,
        .rules = p->request.flame.rules,
        .notes = notes,
        .times = p->request.import.profile.each ? times_looks : NULL,
        .shown = p->request.import.profile.times};
    struct out out;
    struct categories *categories = categories_new(categories_file, &p->request.context, error);
    options.categories = categories;
    bool fine = categories && tree_check(tree, error) && out_open(&out, path, error);
    if (fine) {
        fine = html_write(&out, tree, naming, &options, error);
        if (fine)
            fine = out_commit(&out, error);
        else
            out_discard(&out);
    }
    if (fine && !p->request.output) {
        progress_wipe();
        puts(path);
    }
    categories_free(categories);
    return fine;
}

void picture_release(void *command) {
    struct picture_request *p = command;
    palette_map_free(p->svg.map);
    name_attributes_free((struct name_attributes *)p->svg.attributes);
    notes_release(&p->looks_notes);
}
