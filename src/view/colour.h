/* Private to the room: what the files of colours share. */
#ifndef WICK_VIEW_COLOUR_H
#define WICK_VIEW_COLOUR_H

#include "view/view.h"

/* The plain palette that a palette with meanings (java, js, …) gives a frame; any other palette is itself. */
enum palette palette_by_meaning(enum palette palette, struct text name, uint32_t kinds);

/* In a picture of wall time: the hue says what most of it is, blue for waiting, orange for running; the rest is as PALETTE_WAITS has it. */
struct colour colour_of_wall(struct text name, struct text object, uint32_t kinds, bool waits);

/* The colour kept for `name`, or `colour`, which is then kept. */
struct colour palette_map_take(struct palette_map *map, struct text name, struct colour colour);

#endif
