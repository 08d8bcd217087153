/* Private to the room: the frames of a drawn flame graph, on their way from an SVG to the tree. */
#ifndef WICK_IMPORT_SVG_H
#define WICK_IMPORT_SVG_H

#include "import/reader.h"

/* A rectangle and what its title says. Places are whole numbers: samples where the file tells them (wick, inferno), else
   ten-thousandths of what it is measured in. */
struct svg_frame {
    uint64_t y, x, width;
    uint64_t count;  /* what it weighs with all that it calls */
    uint64_t before; /* the same on a diff's other side, where the file tells it (wick) */
    /* Of its own weight, in per cent of the whole, where it tells that (inferno, flamegraph.pl). */
    double change;
    uint32_t name;   /* string */
    uint32_t parent; /* index, filled by svg_frames_count() */
    bool has_title;  /* with counts */
    bool is_whole;   /* "100%", which is how all three write the root */
};

struct svg_picture {
    VECTOR(struct svg_frame) frames;
    uint32_t unit;     /* string; 0: not told */
    bool exact;        /* places are in samples */
    bool inverted;     /* the root is at the top */
    bool reversed;     /* merged from the leaf, and the file says so */
    bool is_chart;     /* what is not covered was not left out */
    bool has_before;   /* a diff by wick */
    bool has_change;   /* a diff by a peer */
    uint64_t unplaced; /* frames without a place of their own */
};

/* Finds who calls whom by their places, and counts in the tree what each frame weighs without what it calls. Costs a sort. */
bool svg_frames_count(struct svg_picture *picture, const char *path, struct tree *tree,
                      struct error *error);

#endif
