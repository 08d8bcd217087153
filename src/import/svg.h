/* Private to the room: the frames of a drawn flame graph, between the SVG and the tree. */
#ifndef WICK_IMPORT_SVG_H
#define WICK_IMPORT_SVG_H

#include "import/reader.h"

/* A rectangle and what its title says. Positions are integers: samples if the file has them (wick, inferno), else
   ten-thousandths of the drawing's unit. */
struct svg_frame {
    uint64_t y, x, width;
    uint64_t count;  /* its total weight */
    uint64_t before; /* the same on a diff's other side, if the file has it (wick) */
    /* The change of its self weight, in per cent of the whole, if the file has it (inferno, flamegraph.pl). */
    double change;
    uint32_t name;   /* string */
    uint32_t parent; /* index, filled by svg_frames_count() */
    bool has_title;  /* its title has counts */
    bool is_whole;   /* its share is "100%", as all three write the root */
};

struct svg_picture {
    VECTOR(struct svg_frame) frames;
    uint32_t unit;     /* string; 0: not given */
    bool exact;        /* positions are in samples */
    bool inverted;     /* the root is at the top */
    bool reversed;     /* merged from the leaf, according to the file */
    bool is_chart;     /* gaps do not mean that frames were dropped */
    bool has_before;   /* a diff by wick */
    bool has_change;   /* a diff by another tool */
    uint64_t unplaced; /* frames without a valid position */
};

/* Find the caller of each frame by position, and count each frame's self weight in the tree. Costs a sort. */
bool svg_frames_count(struct svg_picture *picture, const char *path, struct tree *tree,
                      struct error *error);

#endif
