/*
 * Private to the room: a recording in windows.
 */
#ifndef WICK_RECORD_WINDOWS_H
#define WICK_RECORD_WINDOWS_H

#include "record/internal.h"

struct window {
    int descriptor;      /* of the current window, in memory */
    uint64_t length;     /* nanoseconds */
    uint64_t due;        /* when the current window ends */
    uint64_t round;      /* when the last round began */
    uint64_t cut;        /* all records up to this time have arrived */
    uint32_t entries;    /* of the carrier, in all windows so far */
    struct buffer fresh; /* complete records that are not in a window yet */
    struct buffer later; /* used while sorting them */
};

#endif
