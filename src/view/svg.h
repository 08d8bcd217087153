/* Private to the room: what the files that draw an SVG share. */
#ifndef WICK_VIEW_SVG_H
#define WICK_VIEW_SVG_H

#include "view/numbers.h"
#include "view/view.h"

/* What a --nameattr file says of one name. Zero length: nothing. `extra` texts are whole attributes, escaped already. */
struct name_attribute {
    struct text title;
    struct text href;
    struct text target;
    struct text group; /* ` id="…" class="…"` and g_extra */
    struct text link;  /* a_extra */
};
/* NULL when the file says nothing of it. */
const struct name_attribute *name_attributes_find(const struct name_attributes *attributes,
                                                  struct text name);

/* As buffer_add_xml, but plain runs are copied whole: names of 300 letters are mostly plain. */
void svg_add_xml(struct buffer *buffer, struct text t);
/* The same of a name as people see it (buffer_add_shown); `as_is`: as the other tools write it. */
void svg_add_shown(struct buffer *buffer, struct text t, bool as_is);
/* Whether svg_add_xml() shows something else for some of its bytes: control characters, broken UTF-8. */
bool svg_is_lossy(struct text t);
/* Every byte of it for an attribute, %xx for those outside of plain ASCII. */
void svg_add_exact(struct buffer *buffer, struct text t);
/* Cuts whole characters from an end, or both `..` and characters, so that `room` characters are left; empty when nothing of use is. */
void svg_add_label(struct buffer *buffer, struct text name, size_t room, bool truncate_left,
                   bool plain);
/* start / whole in per cent, moved right by `pixels` of `width`; the way from start to end. Four decimals, no zeroes at the end. Both
   round edges, not widths: neighbours that share an edge get the same number for it. */
void svg_add_place(struct buffer *buffer, uint64_t start, uint64_t whole, uint64_t pixels,
                   uint64_t width);
void svg_add_span(struct buffer *buffer, uint64_t start, uint64_t end, uint64_t whole);

/* "; 40 samples, at most ±15.8%": how good an estimate is, as the page says it. */
void svg_add_estimate(struct buffer *buffer, uint64_t samples);

/* Which frames are drawn, and how wide they are. */
struct svg_shape {
    const struct flame *flame;
    const struct svg_options *options;
    uint64_t *widths;   /* by node, for SHAPE_BOTH; else NULL */
    uint64_t total;     /* what the whole width stands for */
    double least;       /* narrower frames are left out */
    uint64_t narrowest; /* frames of just this width are left out, too, if they are deeper than: */
    uint32_t deepest;
};
void svg_shape_begin(struct svg_shape *shape, const struct flame *flame,
                     const struct svg_options *options);
void svg_shape_end(struct svg_shape *shape);
/* In units of shape->total. */
uint64_t svg_width(const struct svg_shape *shape, uint32_t node);

/* A frame that is drawn. */
struct svg_place {
    uint32_t node;
    uint64_t x;
};
struct svg_places {
    struct svg_place *items; /* a vector */
    size_t count;
    size_t capacity;
};
/* Replace *places by where all frames that are drawn stand, parents first and from left to right. Costs what is drawn. */
void svg_shape_place(const struct svg_shape *shape, struct svg_places *places);
uint32_t svg_shape_depth(const struct svg_shape *shape, const struct svg_places *places);
/* Leave out the narrowest frames, and of those the deepest, if there are more than can be seen or the file would be huge: `frame_bytes`
   tells what one takes in it. Return how many. Costs a sort and a call a frame, of all that can be kept; nothing for a small picture. */
size_t svg_shape_bound(struct svg_shape *shape, const struct svg_places *places,
                       size_t (*frame_bytes)(void *context, const struct svg_place *place),
                       void *context);

struct svg_layout {
    uint32_t width, frame_height, font_size;
    uint64_t top, height; /* of the frames' first row; of the whole */
    uint64_t rows;
    double letter; /* width of a letter in pixels */
};
/* What is counted. */
struct text svg_unit(const struct flame *flame, const struct svg_options *options);
/* Everything before the list of names, what opens the frames, and everything after them. */
void svg_write_head(struct out *out, const struct flame *flame, const struct svg_options *options,
                    const struct svg_layout *layout, uint64_t total);
void svg_write_frames(struct out *out, const struct flame *flame, const struct svg_options *options,
                      const struct svg_layout *layout, uint64_t total);
void svg_write_tail(struct out *out, const struct svg_options *options);

/* web/svg/, made into bytes by tools/embed. */
extern const struct text svg_script_text, svg_style_text;

/* Of a picture with more rows than SVG_TALL, the script keeps only those near the window in the document. */
enum { SVG_MARGIN = 10, SVG_TALL = 2500 };

#endif
