/* perf's requests to addr2line, in perf's order, and the answers; addr2line.h says why. */
#include "profile/addr2line.h"

#include <stdlib.h>

/* A function that was asked for as the innermost one. */
struct asked {
    uint32_t object;
    uint64_t id;
    struct text name; /* the symbol's; empty: none begins there */
};

struct renaming {
    const struct tree *tree;
    struct addr2line_place **by_location;
    VECTOR(struct asked) asked; /* [0] is none */
    struct index index;
};

static struct asked *asked_find(struct renaming *r, uint32_t object, uint64_t id) {
    uint32_t found;
    for (struct probe p = index_probe(&r->index, hash_mix(object, id));
         (found = index_next(&r->index, &p));)
        if (r->asked.items[found].object == object && r->asked.items[found].id == id)
            return &r->asked.items[found];
    return NULL;
}

static void ask_innermost(struct renaming *r, uint32_t object, struct addr2line_place *place) {
    struct inline_frame *innermost = &place->inlines[place->count - 1];
    if (innermost->is_linkage || asked_find(r, object, innermost->id))
        return;
    struct asked asked = {.object = object, .id = innermost->id};
    if (place->symbol->name.data && place->symbol->start == innermost->start)
        asked.name = place->symbol->name;
    if (place->symbol->name.data)
        innermost->name = place->symbol->name;
    vector_push(&r->asked, asked);
    index_add(&r->index, hash_mix(object, asked.id), (uint32_t)r->asked.count - 1);
}

static void rename_place(struct renaming *r, uint32_t location) {
    struct addr2line_place *place = r->by_location[location];
    uint32_t object = r->tree->locations.items[location].object;
    if (!place || !place->count)
        return;
    ask_innermost(r, object, place);
    for (size_t i = 0; i < place->count; i++) {
        const struct asked *asked = asked_find(r, object, place->inlines[i].id);
        if (asked && asked->name.length)
            place->inlines[i].name = asked->name;
    }
    r->by_location[location] = NULL;
}

/* A node that was walked before has all of its callers behind it. */
static void rename_stack(struct renaming *r, uint8_t *walked, uint32_t node) {
    for (; node && !walked[node]; node = r->tree->nodes.items[node].parent) {
        walked[node] = 1;
        rename_place(r, r->tree->nodes.items[node].location);
    }
}

void addr2line_rename(const struct tree *tree, struct addr2line_place *places, size_t count) {
    struct renaming r = {.tree = tree};
    uint8_t *walked = memory_zero(tree->nodes.count, 1);
    r.by_location = memory_zero(tree->locations.count, sizeof *r.by_location);
    vector_push(&r.asked, ((struct asked){0}));
    for (size_t i = 0; i < count; i++)
        r.by_location[places[i].location] = &places[i];
    for (size_t i = 0; i < tree->samples.count; i++)
        rename_stack(&r, walked, tree->samples.items[i].node);
    /* Without kept samples there is no order to follow but ours. */
    for (size_t i = 0; i < count; i++)
        rename_place(&r, places[i].location);
    vector_release(&r.asked);
    index_release(&r.index);
    free(r.by_location);
    free(walked);
}
