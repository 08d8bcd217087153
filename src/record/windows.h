/*
 * Private to the room: a recording in windows.
 */
#ifndef WICK_RECORD_WINDOWS_H
#define WICK_RECORD_WINDOWS_H

#include "record/internal.h"

struct window {
    int descriptor;      /* of the present one, in memory */
    uint64_t length;     /* nanoseconds */
    uint64_t due;        /* when the present one ends */
    uint64_t round;      /* when the last round began */
    uint64_t cut;        /* records up to here are all there */
    uint32_t entries;    /* of the carrier, in all windows so far */
    struct buffer fresh; /* whole records that are not yet in a window */
    struct buffer later; /* while they are sorted out */
};

#endif
