/*
 * Flame graphs drawn by wick, inferno or flamegraph.pl, read back: SVG → frames. svg_frames.c then makes stacks of
 * them.
 *
 * All three draw a frame as a group with <title>name (1,234 samples, 12.34%)</title> and then a <rect>; nothing else
 * has both. The label is ignored, because it is truncated if it does not fit. wick and inferno also write position
 * and width in samples (fg:x, fg:w), flamegraph.pl in pixels with one decimal. Only wick (data-…) stores what the
 * others lose: marks, bytes that XML can't hold, that the graph was reversed, and both sides of a diff. It also has a
 * list of long names before the frames: a title then has a shortened name.
 */
#include "import/svg.h"

#include <stdlib.h>

#include "import/xml.h"

/* Frames that wick marks: kernel, just-in-time compiled, inlined, wakers. */
static const char marks[] = "kjiw";

/* A name that many frames may have: each form of it is made only once. */
struct listed_name {
    struct text raw;
    uint32_t names[sizeof marks]; /* strings: unmarked, then with each mark; 0: not made yet */
};

struct svg_reader {
    struct text rest;
    struct svg_picture picture;
    struct tree *tree;
    const struct import_options *options;
    struct buffer title, name;
    struct text title_raw;  /* title of the frame whose <rect> follows; data NULL: none */
    struct text exact_name; /* its fg:name, or data NULL */
    struct text mark;       /* its fg:mark */
    size_t listed_name;     /* its fg:n + 1; 0: the title has the name */
    VECTOR(struct listed_name) listed;
};

static const uint64_t places_scale = 10000;

/* ---- numbers ------------------------------------------------------------------------------ */

/* Parse "12.3456" or "12.34%" as integer ten-thousandths; further decimals are cut. */
static bool parse_place(struct text t, uint64_t *value) {
    if (text_ends(t, TEXT("%")))
        t.length--;
    size_t point = text_find(t, '.');
    struct text decimals = point == SIZE_MAX ? TEXT("") : text_from(t, point + 1);
    uint64_t whole, part = 0;
    if (!text_to_u64(point == SIZE_MAX ? t : text_upto(t, point), &whole))
        return false;
    for (size_t i = 0; i < 4; i++) {
        if (i < decimals.length && (decimals.data[i] < '0' || decimals.data[i] > '9'))
            return false;
        part = part * 10 + (i < decimals.length ? (uint64_t)(decimals.data[i] - '0') : 0);
    }
    return checked_multiply(whole, places_scale, &whole) && checked_add(whole, part, value);
}

/* Parse "1,234" at the start of `t`. */
static bool take_count(struct text *t, uint64_t *count) {
    size_t i = 0;
    *count = 0;
    for (; i < t->length && ((t->data[i] >= '0' && t->data[i] <= '9') || (i && t->data[i] == ','));
         i++)
        if (t->data[i] != ',' && (!checked_multiply(*count, 10, count) ||
                                  !checked_add(*count, (uint64_t)(t->data[i] - '0'), count)))
            return false;
    *t = text_from(*t, i);
    return i > 0;
}

/* ---- titles ------------------------------------------------------------------------------- */

/* Parse "; +1.23%" of other tools, "; was 4, 8.00%: +1.23 points, ×1.50" of wick (whose first versions wrote ";
   +1.23%, was 4"). */
static bool parse_change(struct svg_reader *s, struct text t, struct svg_frame *frame) {
    size_t per_cent = text_find(t, '%');
    if (per_cent == SIZE_MAX)
        return false;
    if (per_cent + 1 == t.length) {
        s->picture.has_change = true;
        return text_to_double(text_upto(t, per_cent), &frame->change);
    }
    if (!text_starts(t, TEXT("was "))) {
        size_t was = text_search(t, TEXT("%, was "));
        if (was == SIZE_MAX)
            return false;
        t = text_from(t, was + strlen("%, "));
    }
    t = text_from(t, strlen("was "));
    s->picture.has_before = true;
    return take_count(&t, &frame->before) && (t.length == 0 || t.data[0] == ' ');
}

/* Skip wick's "40 samples, at most ±15.8%", the accuracy of an estimate; of a count only "40 samples". */
static bool is_estimate(struct text t) {
    uint64_t samples;
    return take_count(&t, &samples) &&
           (text_starts(t, TEXT(" sample, at most ±")) || text_equal(t, TEXT(" sample")) ||
            text_starts(t, TEXT(" samples, at most ±")) || text_equal(t, TEXT(" samples")));
}

/* Parse the text between the brackets: "1,234 samples, 12.34%". */
static bool parse_counts(struct svg_reader *s, struct text t, struct svg_frame *frame) {
    if (!take_count(&t, &frame->count) || !text_starts(t, TEXT(" ")))
        return false;
    size_t semicolon = text_find_last(t, ';');
    if (semicolon != SIZE_MAX && text_ends(text_upto(t, semicolon), TEXT("%"))) {
        struct text rest = text_trim(text_from(t, semicolon + 1));
        if (!is_estimate(rest) && !parse_change(s, rest, frame))
            return false;
        t = text_upto(t, semicolon);
    }
    size_t comma = text_find_last(t, ',');
    if (comma == SIZE_MAX || !text_ends(t, TEXT("%")))
        return false;
    frame->is_whole = text_equal(text_trim(text_from(t, comma + 1)), TEXT("100%"));
    if (frame->is_whole && comma > 1)
        s->picture.unit = strings_add(s->tree->strings, text_trim(text_upto(t, comma)));
    return true;
}

/* The counts are in the last brackets that contain any: a name may have brackets, and so may the unit. */
static bool parse_title(struct svg_reader *s, struct text title, struct text *name,
                        struct svg_frame *frame) {
    enum { TRIES = 8 };
    if (!text_ends(title, TEXT(")")))
        return false;
    struct text before = text_upto(title, title.length - 1);
    for (int i = 0; i < TRIES; i++) {
        size_t open = text_find_last(before, '(');
        if (open == SIZE_MAX)
            return false;
        before = text_upto(before, open);
        struct text counts = {title.data + open + 1, title.length - open - 2};
        if (!text_ends(before, TEXT(" ")) || !parse_counts(s, counts, frame))
            continue;
        *name = text_upto(before, before.length - 1);
        return true;
    }
    return false;
}

/* ---- names -------------------------------------------------------------------------------- */

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode wick's fg:name: %01 stands for a byte that XML can't hold. */
static void add_exact(struct buffer *out, struct text t) {
    for (size_t i = 0; i < t.length; i++) {
        bool coded = t.data[i] == '%' && i + 2 < t.length;
        int high = coded ? hex_digit(t.data[i + 1]) : -1,
            low = coded ? hex_digit(t.data[i + 2]) : -1;
        coded = high >= 0 && low >= 0;
        buffer_add_char(out, coded ? (char)(high << 4 | low) : t.data[i]);
        i += coded ? 2 : 0;
    }
}

/* Return the place of the form with the frame's mark, or NULL if wick writes no such mark. */
static uint32_t *listed_form(struct svg_reader *s) {
    const char *mark =
        s->mark.length == 1 && s->mark.data[0] ? strchr(marks, s->mark.data[0]) : NULL;
    if (!s->listed_name || (s->mark.length && !mark))
        return NULL;
    return &s->listed.items[s->listed_name - 1].names[mark ? mark - marks + 1 : 0];
}

static uint32_t frame_name(struct svg_reader *s, struct text shown) {
    uint32_t *form = s->exact_name.data ? NULL : listed_form(s);
    s->name.count = 0;
    if (form && *form)
        return *form;
    if (s->exact_name.data) {
        struct buffer plain = {0};
        if (xml_add_unescaped(&plain, s->exact_name))
            add_exact(&s->name, buffer_text(&plain));
        buffer_release(&plain);
    } else {
        if (!form || !xml_add_unescaped(&s->name, s->listed.items[s->listed_name - 1].raw)) {
            s->name.count = 0;
            buffer_add(&s->name, shown);
            form = NULL;
        }
        if (s->mark.length == 1)
            buffer_printf(&s->name, "_[%c]", s->mark.data[0]);
    }
    uint32_t name = strings_add(s->tree->strings, buffer_text(&s->name));
    if (form)
        *form = name;
    return name;
}

/* ---- tags --------------------------------------------------------------------------------- */

static bool place_attribute(const struct xml *tag, struct text key, uint64_t *value) {
    struct text text;
    return xml_attribute(tag->attributes, key, &text) && parse_place(text, value);
}

static bool exact_attribute(const struct xml *tag, struct text key, uint64_t *value) {
    struct text text;
    return xml_attribute(tag->attributes, key, &text) && text_to_u64(text, value);
}

static bool rect_place(struct svg_reader *s, const struct xml *tag, struct svg_frame *frame) {
    bool exact = exact_attribute(tag, TEXT("fg:x"), &frame->x) &&
                 exact_attribute(tag, TEXT("fg:w"), &frame->width);
    bool first = s->picture.frames.count == 0;
    if (first)
        s->picture.exact = exact;
    return (exact || (place_attribute(tag, TEXT("x"), &frame->x) &&
                      place_attribute(tag, TEXT("width"), &frame->width))) &&
           place_attribute(tag, TEXT("y"), &frame->y) && exact == s->picture.exact;
}

/* Without counts in its title (a --nameattr file may replace it), a frame weighs its width. */
static void rect_tag(struct svg_reader *s, const struct xml *tag) {
    struct svg_frame frame = {0};
    struct text shown;
    if (!rect_place(s, tag, &frame) || frame.width == 0) {
        s->picture.unplaced++;
        return;
    }
    s->title.count = 0;
    if (!xml_add_unescaped(&s->title, s->title_raw)) {
        s->title.count = 0;
        buffer_add(&s->title, s->title_raw);
    }
    frame.has_title = parse_title(s, buffer_text(&s->title), &shown, &frame);
    if (!frame.has_title)
        shown = buffer_text(&s->title);
    frame.name = frame_name(s, shown);
    vector_push(&s->picture.frames, frame);
}

static struct text content_of(const struct svg_reader *s) {
    size_t end = text_find(s->rest, '<');
    return text_upto(s->rest, end == SIZE_MAX ? s->rest.length : end);
}

static void group_tag(struct svg_reader *s, const struct xml *tag) {
    uint64_t number;
    bool is_listed = exact_attribute(tag, TEXT("fg:n"), &number) && number < s->listed.count;
    s->listed_name = is_listed ? (size_t)number + 1 : 0;
    if (!xml_attribute(tag->attributes, TEXT("fg:name"), &s->exact_name))
        s->exact_name = (struct text){0};
    if (!xml_attribute(tag->attributes, TEXT("fg:mark"), &s->mark))
        s->mark = TEXT("");
}

/* Parse wick's <svg id="frames" data-…>. */
static void frames_tag(struct svg_reader *s, const struct xml *tag) {
    struct text value;
    s->picture.inverted |= xml_attribute(tag->attributes, TEXT("data-inverted"), &value);
    s->picture.reversed |= xml_attribute(tag->attributes, TEXT("data-reversed"), &value);
    s->picture.is_chart |= xml_attribute(tag->attributes, TEXT("data-chart"), &value);
}

static void read_tags(struct svg_reader *s) {
    struct xml tag;
    while (!import_stops(s->options, s->rest.data) && xml_next(&s->rest, &tag)) {
        if (tag.end)
            continue;
        if (text_equal(tag.name, TEXT("title"))) {
            s->title_raw = content_of(s);
        } else if (text_equal(tag.name, TEXT("fg:n"))) {
            vector_push(&s->listed, ((struct listed_name){.raw = content_of(s)}));
        } else if (text_equal(tag.name, TEXT("rect")) && s->title_raw.data) {
            rect_tag(s, &tag);
            s->title_raw = (struct text){0};
        } else if (text_equal(tag.name, TEXT("g"))) {
            group_tag(s, &tag);
        } else if (text_equal(tag.name, TEXT("svg"))) {
            frames_tag(s, &tag);
        }
    }
}

/* Find what only scripts and titles say, in the text before the frames. */
static void read_head(struct svg_reader *s, struct text content) {
    size_t first = text_search(content, TEXT("<title>"));
    struct text head = text_upto(content, first == SIZE_MAX ? content.length : first);
    s->picture.inverted = text_search(head, TEXT("var inverted = true")) != SIZE_MAX;
    s->picture.is_chart = text_search(head, TEXT(">Flame Chart<")) != SIZE_MAX;
}

static bool svg_read(struct text content, const char *path, const struct import_options *options,
                     struct tree *tree, struct error *error) {
    struct svg_reader s = {.rest = content, .tree = tree, .options = options};
    read_head(&s, content);
    read_tags(&s);
    bool fine = svg_frames_count(&s.picture, path, tree, error);
    vector_release(&s.picture.frames);
    buffer_release(&s.title);
    buffer_release(&s.name);
    vector_release(&s.listed);
    return fine;
}

static int svg_score(struct text beginning) {
    struct text start =
        text_trim(text_upto(beginning, beginning.length < 64 ? beginning.length : 64));
    bool xml = text_starts(start, TEXT("<?xml")) || text_starts(start, TEXT("<svg")) ||
               text_starts(start, TEXT("<!"));
    return xml && text_search(beginning, TEXT("<svg")) != SIZE_MAX ? 90 : 0;
}

const struct import_format format_svg = {
    "svg", "flame graphs drawn by wick, inferno or flamegraph.pl", svg_score, svg_read};
