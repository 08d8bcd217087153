/* Private to the room: Java frames of the older profiles that pprof reads. Stacks are lists of numbers; lines after them name each number. */
#ifndef WICK_IMPORT_JAVA_PLACES_H
#define WICK_IMPORT_JAVA_PLACES_H

#include "import/addresses.h"

struct java_place {
    uint64_t number;
    struct text name;  /* the rest of the line */
    uint32_t location; /* in the tree; 0: not made yet */
};

struct java_places {
    VECTOR(struct java_place) list; /* by number */
    bool is_java;
};

/* Read lines like " 0x0000006 com.example.work (source.java:06)" and skip all others. Does nothing if called again. `text` must outlive the
   places. */
void java_places_read(struct java_places *places, struct text text);
/* Push the frame with this number, leaf first. A number without a line is an unknown address. */
void java_places_push(struct java_places *places, struct addresses *addresses, uint64_t number);
void java_places_release(struct java_places *places);

#endif
