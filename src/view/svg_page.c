/*
 * Everything around the frames of an SVG: provenance, style, titles, script. Also checks options.
 */
#include "view/svg.h"

#include <math.h>

/* ---- options ---- */

static const struct {
    const char *name, *top, *bottom;
} gradients[] = {
    {"yellow", "#eeeeee", "#eeeeb0"},
    {"blue", "#eeeeee", "#e0e0ff"},
    {"green", "#eef2ee", "#e0ffe0"},
    {"grey", "#f8f8f8", "#e8e8e8"},
};

static int gradient_find(const char *name) {
    for (size_t i = 0; i < COUNT_OF(gradients); i++)
        if (strcmp(name, gradients[i].name) == 0)
            return (int)i;
    return -1;
}

static bool check_colour(const char *what, const char *text, struct error *error) {
    struct colour colour;
    if (!text || colour_parse(text, &colour))
        return true;
    return error_set(error, ERROR_USAGE, "%s: '%s' is not a colour such as #a0b0c0", what, text);
}

/* The font goes into the style as it is, so it may hold only what names of fonts and commas between them are made of. */
static bool check_font(const char *font, struct error *error) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,._-";
    if (!font || (font[0] && font[strspn(font, letters)] == 0))
        return true;
    return error_set(error, ERROR_USAGE, "font: '%s' is not a list of font families", font);
}

static bool check_number(const char *what, double value, double most, struct error *error) {
    if (isfinite(value) && value >= 0 && value <= most)
        return true;
    return error_set(error, ERROR_USAGE, "%s: must be between 0 and %g", what, most);
}

bool svg_options_check(const struct svg_options *o, struct error *error) {
    if (o->background && gradient_find(o->background) < 0 &&
        !check_colour("background (yellow, blue, green, grey or #rrggbb)", o->background, error))
        return false;
    if (o->width && o->width < 100)
        return error_set(error, ERROR_USAGE, "width: must be at least 100");
    if (o->frame_height && o->frame_height < 2)
        return error_set(error, ERROR_USAGE, "height of a frame: must be at least 2");
    return check_colour("search colour", o->search_colour, error) &&
           check_colour("interface colour", o->ui_colour, error) &&
           check_colour("stroke colour", o->stroke_colour, error) && check_font(o->font, error) &&
           check_number("width", o->width, 1e6, error) &&
           check_number("height of a frame", o->frame_height, 1e4, error) &&
           check_number("minimum width", o->min_width, 100, error) &&
           check_number("font size", o->font_size, 1000, error) &&
           check_number("font width", o->font_width, 100, error) &&
           check_number("factor", o->factor, 1e18, error);
}

/* ---- provenance ---- */

/* A comment may contain neither "--" nor a '-' at its end. */
static void add_comment_line(struct buffer *buffer, struct text line) {
    size_t start = buffer->count;
    svg_add_xml(buffer, line);
    struct buffer spaced = {0};
    for (size_t i = start; i < buffer->count; i++) {
        buffer_add_char(&spaced, buffer->items[i]);
        if (buffer->items[i] == '-' && (i + 1 == buffer->count || buffer->items[i + 1] == '-'))
            buffer_add_char(&spaced, ' ');
    }
    buffer->count = start;
    buffer_add(buffer, buffer_text(&spaced));
    buffer_add_char(buffer, '\n');
    buffer_release(&spaced);
}

static void add_provenance(struct buffer *buffer, const char *notes) {
    struct text rest = text_of(notes);
    buffer_add(buffer, TEXT("<!--\nwick " WICK_VERSION "\n"));
    while (rest.length)
        add_comment_line(buffer, text_take_line(&rest));
    buffer_add(buffer, TEXT("-->\n"));
}

/* ---- style ---- */

/* A family that is a CSS keyword is not quoted, any other is. */
static void add_family(struct buffer *buffer, struct text family) {
    static const char *const generic[] = {"serif",   "sans-serif", "monospace", "cursive",
                                          "fantasy", "system-ui",  "inherit"};
    bool bare = false;
    for (size_t i = 0; i < COUNT_OF(generic); i++)
        bare |= text_equal(family, text_of(generic[i]));
    if (!bare)
        buffer_add_char(buffer, '\'');
    buffer_add(buffer, family);
    if (!bare)
        buffer_add_char(buffer, '\'');
}

static void add_font(struct buffer *buffer, const char *font) {
    struct text rest = text_of(font ? font : "monospace");
    const char *separator = "";
    while (rest.length) {
        size_t comma = text_find(rest, ',');
        buffer_add(buffer, text_of(separator));
        add_family(buffer, text_trim(comma == SIZE_MAX ? rest : text_upto(rest, comma)));
        rest = comma == SIZE_MAX ? TEXT("") : text_from(rest, comma + 1);
        separator = ",";
    }
}

/* The fixed rules first; what was asked for comes after them and so wins, also over the rules for the dark. */
static void add_style(struct buffer *buffer, const struct svg_options *o, uint32_t font_size,
                      bool is_diff) {
    buffer_add(buffer, TEXT("<style>"));
    buffer_add(buffer, svg_style_text);
    if (o->font || o->font_size) {
        buffer_add(buffer, TEXT("text,#details{font-family:"));
        add_font(buffer, o->font);
        buffer_printf(buffer, ";font-size:%upx}\n", font_size);
    }
    if (o->background && gradient_find(o->background) >= 0)
        buffer_add(buffer, TEXT("#back{fill:url(#gradient)}\n#bar,#foot{--back:#eee}\n"));
    else if (o->background)
        buffer_printf(buffer, "#back{fill:%s}\n#bar,#foot{--back:%s}\n", o->background,
                      o->background);
    if (o->ui_colour || o->background)
        buffer_printf(buffer, "text,#bar,#foot{fill:%s;--ink:%s}\n",
                      o->ui_colour ? o->ui_colour : "#000", o->ui_colour ? o->ui_colour : "#000");
    if (o->background) /* which is light in the dark, too */
        buffer_add(buffer, TEXT("svg:root{background:#fff}\n#subtitle,#frames .p "
                                "text{fill:#000}\n#frames .p rect{opacity:.45}\n"));
    if (o->search_colour)
        buffer_printf(buffer, "#frames .m rect{fill:%s}\n", o->search_colour);
    if (o->stroke_colour)
        buffer_printf(buffer, "#frames rect{stroke:%s;stroke-width:.5}\n", o->stroke_colour);
    else if (is_diff) /* what did not change is as light as the page */
        buffer_add(buffer, TEXT("#frames rect{stroke:#888;stroke-width:.5;stroke-opacity:.35}\n"));
    buffer_add(buffer, TEXT("</style>\n"));
}

static void add_gradient(struct buffer *buffer, const char *background) {
    int which = background ? gradient_find(background) : -1;
    if (which < 0)
        return;
    buffer_printf(
        buffer,
        "<defs><linearGradient id=\"gradient\" x2=\"0\" y2=\"1\">"
        "<stop offset=\"5%%\" stop-color=\"%s\"/><stop offset=\"95%%\" stop-color=\"%s\"/>"
        "</linearGradient></defs>\n",
        gradients[which].top, gradients[which].bottom);
}

/* ---- head and tail ---- */

static const char *default_title(const struct flame *flame, const struct svg_options *o) {
    if (o->title)
        return o->title;
    return flame->is_diff ? "Differential Flame Graph"
           : o->is_chart  ? "Flame Chart"
           : o->inverted  ? "Icicle Graph"
                          : "Flame Graph";
}

static void add_attribute(struct buffer *buffer, const char *name, const char *value) {
    buffer_printf(buffer, " %s=\"", name);
    svg_add_shown(buffer, text_of(value), false);
    buffer_add_char(buffer, '"');
}

static void add_root(struct buffer *buffer, const char *title, const struct svg_layout *layout) {
    buffer_printf(buffer,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                  "xmlns:fg=\"http://github.com/jonhoo/inferno\" version=\"1.1\" width=\"%u\" "
                  "height=\"%llu\" viewBox=\"0 0 %u %llu\"",
                  layout->width, (unsigned long long)layout->height, layout->width,
                  (unsigned long long)layout->height);
    add_attribute(buffer, "aria-label", title);
    buffer_add(buffer, TEXT(">\n"));
}

static void add_line(struct buffer *buffer, const char *id, uint32_t y, const char *text) {
    buffer_printf(buffer, "<text id=\"%s\" x=\"%d\" y=\"%u\">", id, SVG_MARGIN, y);
    svg_add_shown(buffer, text_of(text), false);
    buffer_add(buffer, TEXT("</text>\n"));
}

struct text svg_unit(const struct flame *flame, const struct svg_options *o) {
    struct text unit = strings_get(flame->strings, flame->unit);
    return o->count_name ? text_of(o->count_name) : unit.length ? unit : TEXT("samples");
}

/* What the script needs to know, as attributes of the group it works on. */
static void add_frames_root(struct buffer *buffer, const struct flame *flame,
                            const struct svg_options *o, const struct svg_layout *layout,
                            uint64_t total) {
    buffer_printf(buffer, "<svg id=\"frames\" x=\"%d\" width=\"%u\" total_samples=\"%llu\"",
                  SVG_MARGIN, layout->width - 2 * SVG_MARGIN, (unsigned long long)total);
    buffer_add(buffer, TEXT(" data-unit=\""));
    svg_add_shown(buffer, svg_unit(flame, o), o->plain_labels);
    buffer_add_char(buffer, '"');
    add_attribute(buffer, "data-type", o->name_type ? o->name_type : "Function:");
    if (!o->width)
        buffer_add(buffer, TEXT(" data-fluid=\"1\""));
    if (o->inverted)
        buffer_add(buffer, TEXT(" data-inverted=\"1\""));
    if (o->is_reversed)
        buffer_add(buffer, TEXT(" data-reversed=\"1\""));
    if (o->is_chart)
        buffer_add(buffer, TEXT(" data-chart=\"1\""));
    if (o->truncate_left)
        buffer_add(buffer, TEXT(" data-left=\"1\""));
    if (o->plain_labels)
        buffer_add(buffer, TEXT(" data-plain=\"1\""));
    buffer_add(buffer, TEXT(">\n"));
}

void svg_write_head(struct out *out, const struct flame *flame, const struct svg_options *options,
                    const struct svg_layout *layout, uint64_t total) {
    struct buffer buffer = {0};
    const char *title = default_title(flame, options);
    buffer_add(&buffer, TEXT("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"));
    add_provenance(&buffer, options->notes);
    add_root(&buffer, title, layout);
    add_style(&buffer, options, layout->font_size, flame->is_diff);
    if (layout->rows > SVG_TALL &&
        !options->no_script) /* before the frames: they are not laid out then */
        buffer_add(&buffer, TEXT("<script>(document.currentScript?.ownerSVGElement ?? "
                                 "document.documentElement).classList.add(\"t\")</script>\n"));
    add_gradient(&buffer, options->background);
    buffer_add(&buffer, TEXT("<rect id=\"back\" width=\"100%\" height=\"100%\"/>\n"));
    add_line(&buffer, "title", 2 * layout->font_size, title);
    if (options->subtitle)
        add_line(&buffer, "subtitle", 7 * layout->font_size / 2, options->subtitle);
    if (total == 0)
        add_line(&buffer, "empty", (uint32_t)(layout->top + layout->font_size),
                 "Nothing was counted.");
    out_text(out, buffer_text(&buffer));
    buffer_release(&buffer);
}

void svg_write_frames(struct out *out, const struct flame *flame, const struct svg_options *options,
                      const struct svg_layout *layout, uint64_t total) {
    struct buffer buffer = {0};
    add_frames_root(&buffer, flame, options, layout, total);
    out_text(out, buffer_text(&buffer));
    buffer_release(&buffer);
}

void svg_write_tail(struct out *out, const struct svg_options *options) {
    out_text(out, TEXT("</svg>\n"));
    if (!options->no_script) {
        out_text(out, TEXT("<script><![CDATA[\n"));
        out_text(out, svg_script_text);
        out_text(out, TEXT("]]></script>\n"));
    }
    out_text(out, TEXT("</svg>\n"));
}
