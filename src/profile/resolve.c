/*
 * Addresses to names: once for each distinct location that survived, in parallel.
 *
 * Locations are sorted by (object, address), so that one slice of them touches one object's tables in order. Workers fill a
 * slice's frames with texts that the objects own; interning them, which is not thread-safe, comes after.
 */
#include "profile/profile.h"

#include <stdlib.h>

enum { SLICE = 256 };

static const struct note_kind note_unresolved = {"unresolved", "# places in code have no symbol"};

struct resolve {
    struct tree *tree;
    struct objects *objects;
    const struct profile_options *options;
    VECTOR(uint32_t) order; /* locations to resolve */
    struct symbol *symbols; /* one for each of `order`; name.data NULL: none */
};

static int location_order(const void *a, const void *b, void *context) {
    const struct tree *tree = context;
    const struct location *x = &tree->locations.items[*(const uint32_t *)a];
    const struct location *y = &tree->locations.items[*(const uint32_t *)b];
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    return (x->address > y->address) - (x->address < y->address);
}

static void resolve_slice(void *context, unsigned worker, size_t item) {
    struct resolve *r = context;
    size_t end = (item + 1) * SLICE < r->order.count ? (item + 1) * SLICE : r->order.count;
    for (size_t i = item * SLICE; i < end; i++) {
        const struct location *location = &r->tree->locations.items[r->order.items[i]];
        if (!objects_symbol(r->objects, location->object, location->address - location->call,
                            &r->symbols[i]))
            r->symbols[i] = (struct symbol){0};
    }
    progress("resolving", end, r->order.count);
}

/* Neighbours are often in one function, whose text is then the very same bytes. */
static void resolve_intern(struct resolve *r) {
    struct tree *tree = r->tree;
    struct text last = {0};
    uint32_t last_id = 0;
    for (size_t i = 0; i < r->order.count; i++) {
        struct location *location = &tree->locations.items[r->order.items[i]];
        const struct symbol *symbol = &r->symbols[i];
        location->first_frame = (uint32_t)tree->frames.count;
        location->frame_count = 1;
        struct frame frame = {0};
        if (symbol->name.data) {
            if (symbol->name.data != last.data || symbol->name.length != last.length)
                last_id = strings_add(tree->strings, symbol->name);
            last = symbol->name;
            frame.name = last_id;
            frame.offset = location->address - symbol->start;
        } else {
            notes_add(&tree->notes, &note_unresolved, 1, 0, NULL);
        }
        vector_push(&tree->frames, frame);
    }
}

void profile_resolve(struct tree *tree, struct objects *objects,
                     const struct profile_options *options) {
    struct resolve r = {.tree = tree, .objects = objects, .options = options};
    for (size_t i = 1; i < tree->locations.count; i++)
        if (tree->locations.items[i].object && !tree->locations.items[i].name)
            vector_push(&r.order, (uint32_t)i);
    if (r.order.count)
        qsort_r(r.order.items, r.order.count, sizeof *r.order.items, location_order, tree);
    r.symbols = memory_zero(r.order.count, sizeof *r.symbols);
    unsigned threads = options->threads ? options->threads : parallel_default();
    parallel_run(threads, (r.order.count + SLICE - 1) / SLICE, resolve_slice, &r);
    resolve_intern(&r);
    objects_notes(objects, &tree->notes);
    free(r.symbols);
    vector_release(&r.order);
}
