/* Private to this room: shared by the files that draw an SVG. */
#ifndef WICK_VIEW_SVG_H
#define WICK_VIEW_SVG_H

#include "view/numbers.h"
#include "view/view.h"

/* What a --nameattr file says about one name. Empty: nothing. `extra` texts are whole attributes, already escaped. */
struct name_attribute {
    struct text title;
    struct text href;
    struct text target;
    struct text group; /* ` id="…" class="…"` and g_extra */
    struct text link;  /* a_extra */
};
/* Return NULL if the file does not list the name. */
const struct name_attribute *name_attributes_find(const struct name_attributes *attributes,
                                                  struct text name);

/* The same as buffer_add_xml(), but copies plain runs at once: names of 300 letters are mostly plain. */
void svg_add_xml(struct buffer *buffer, struct text t);
/* The same for a name as people see it (buffer_add_shown); `as_is`: as other tools write it. */
void svg_add_shown(struct buffer *buffer, struct text t, bool as_is);
/* Whether svg_add_xml() shows something else for some of its bytes: control characters, broken UTF-8. */
bool svg_is_lossy(struct text t);
/* Append every byte for an attribute, as %xx if it is not plain ASCII. */
void svg_add_exact(struct buffer *buffer, struct text t);
/* Append the name cut to `room` characters, with `..` for what was cut; append nothing if too little would be left. */
void svg_add_label(struct buffer *buffer, struct text name, size_t room, bool truncate_left,
                   bool plain);
/* Append start / whole in per cent, moved right by `pixels` of `width`; or the distance from start to end. Four decimals, without trailing zeroes.
   Both round edges, not widths: neighbours that share an edge get the same number for it. */
void svg_add_place(struct buffer *buffer, uint64_t start, uint64_t whole, uint64_t pixels,
                   uint64_t width);
void svg_add_span(struct buffer *buffer, uint64_t start, uint64_t end, uint64_t whole);

/* Append the error of an estimate in bytes, as the page does: "; 40 samples, at most ±15.8%". The error of a count is not known. */
void svg_add_estimate(struct buffer *buffer, uint64_t samples, double error, struct text unit);

/* Which frames are drawn, and how wide they are. */
struct svg_shape {
    const struct flame *flame;
    const struct svg_options *options;
    uint64_t *widths;   /* by node, for SHAPE_BOTH; else NULL */
    uint64_t total;     /* the value of the whole width */
    double least;       /* narrower frames are left out */
    uint64_t narrowest; /* frames of just this width are left out, too, if they are deeper than: */
    uint32_t deepest;
};
void svg_shape_begin(struct svg_shape *shape, const struct flame *flame,
                     const struct svg_options *options);
void svg_shape_end(struct svg_shape *shape);
/* Return a node's width in units of shape->total. */
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
/* Set *places to the positions of all drawn frames, parents first and left to right. The cost is proportional to what is drawn. */
void svg_shape_place(const struct svg_shape *shape, struct svg_places *places);
uint32_t svg_shape_depth(const struct svg_shape *shape, const struct svg_places *places);
/* If there are more frames than can be seen, or the file would be huge, leave out the narrowest, and of equally narrow ones the deepest.
   `frame_bytes` returns a frame's size in the file. Return how many were left out. Costs a sort and a call for each frame that can be kept;
   nothing for a small picture. */
size_t svg_shape_bound(struct svg_shape *shape, const struct svg_places *places,
                       size_t (*frame_bytes)(void *context, const struct svg_place *place),
                       void *context);

struct svg_layout {
    uint32_t width, frame_height, font_size;
    uint64_t top, height; /* of the frames' first row; of the whole */
    uint64_t rows;
    double letter; /* width of a letter in pixels */
};
/* Return the unit of what is counted. */
struct text svg_unit(const struct flame *flame, const struct svg_options *options);
/* Write everything before the list of names, then what opens the frames, then everything after them. */
void svg_write_head(struct out *out, const struct flame *flame, const struct svg_options *options,
                    const struct svg_layout *layout, uint64_t total);
void svg_write_frames(struct out *out, const struct flame *flame, const struct svg_options *options,
                      const struct svg_layout *layout, uint64_t total);
void svg_write_tail(struct out *out, const struct svg_options *options);

/* web/svg/, made into bytes by tools/embed. */
extern const struct text svg_script_text, svg_style_text;

/* In a picture with more rows than SVG_TALL, the script keeps only the rows near the window in the document. */
enum { SVG_MARGIN = 10, SVG_TALL = 2500 };

#endif
