/* Private to the room: shared by the readers of valgrind's DHAT and massif. */
#ifndef WICK_IMPORT_VALGRIND_H
#define WICK_IMPORT_VALGRIND_H

#include "import/reader.h"

/* Parse a frame: `0x109192: deep (m.c:3)`, `0x48417B4: malloc (in /usr/lib/x.so)` or `0x401136: ???`. The texts point into `t`. */
struct text_frame valgrind_frame_parse(struct text t);

#endif
