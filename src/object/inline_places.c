/*
 * The lines of requested addresses. For the first of them libdw decodes the line table of the whole unit, after unpacking it; the disk cache
 * keeps the results, so that requests for the same addresses in later runs need neither.
 */
#include "object/inline.h"

#include <stdlib.h>

/* A unit with more has so much code that its line table is no matter. */
enum { PLACES_MOST = 1 << 20 };

static const struct unit_place *find(const struct unit_places *places, uint64_t address) {
    uint32_t id;
    for (struct probe p = index_probe(&places->index, hash_mix(address, 2));
         (id = index_next(&places->index, &p));)
        if (places->items.items[id - 1].address == address)
            return &places->items.items[id - 1];
    return NULL;
}

bool place_find(const struct units *units, struct unit *unit, uint64_t address,
                struct inline_frame *frame) {
    cached_places(units, unit);
    const struct unit_place *place = find(&unit->places, address);
    if (place && place->line) {
        frame->file = place->file;
        frame->line = place->line;
        frame->column = place->column;
    }
    return place != NULL;
}

void place_add(struct unit *unit, const struct unit_place *place) {
    struct unit_places *places = &unit->places;
    if (places->items.count >= PLACES_MOST || find(places, place->address))
        return;
    vector_push(&places->items, *place);
    index_add(&places->index, hash_mix(place->address, 2), (uint32_t)places->items.count);
}

void places_release(struct unit_places *places) {
    vector_release(&places->items);
    index_release(&places->index);
}
