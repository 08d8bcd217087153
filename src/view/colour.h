/* Private to this room: shared by the files about colours. */
#ifndef WICK_VIEW_COLOUR_H
#define WICK_VIEW_COLOUR_H

#include "view/view.h"

/* Return the plain palette that a palette with meanings (java, js, …) selects for a frame; return any other palette itself. */
enum palette palette_by_meaning(enum palette palette, struct text name, uint32_t kinds);

/* Return the colour in a picture of wall time: blue if most of it is waiting, orange if running; otherwise as in PALETTE_WAITS. */
struct colour colour_of_wall(struct text name, struct text object, uint32_t kinds, bool waits);

/* Return the colour stored for `name`; if there is none, store and return `colour`. */
struct colour palette_map_take(struct palette_map *map, struct text name, struct colour colour);

#endif
