/*
 * Frames as a format tells them apart: what the naming calls them, where they stand in source and object. Each location is looked at
 * once; equal places are one.
 */
#include "export/outline.h"

#include <stdlib.h>

#include "object/object.h"

/* All that makes a place what it is; no padding, so that its bytes can be hashed. */
struct place_key {
    uint64_t address;
    uint32_t name, path; /* the naming's strings */
    uint32_t file;       /* the tree's */
    uint32_t line, column, object, level, kinds;
};

struct placing {
    struct outline *outline;
    VECTOR(struct place_key) keys; /* [0] unused, as the outline's places */
    VECTOR(uint32_t) kinds;        /* of all frames that are one place */
    struct index index;
    VECTOR(uint32_t) lists;         /* places of locations, one after the other */
    struct places_of *locations[2]; /* count UINT32_MAX: not looked at yet */
    uint32_t nothing;
};

struct placing *placing_new(struct outline *outline) {
    struct placing *p = memory_zero(1, sizeof *p);
    size_t locations = outline->tree->locations.count;
    p->outline = outline;
    vector_push(&p->keys, ((struct place_key){0}));
    vector_push(&p->kinds, 0);
    for (int i = 0; i < 2; i++) {
        p->locations[i] = memory_resize(NULL, locations, sizeof *p->locations[i]);
        for (size_t k = 0; k < locations; k++)
            p->locations[i][k] = (struct places_of){.count = UINT32_MAX};
    }
    return p;
}

void placing_free(struct placing *p) {
    vector_release(&p->keys);
    vector_release(&p->kinds);
    vector_release(&p->lists);
    index_release(&p->index);
    free(p->locations[0]);
    free(p->locations[1]);
    free(p);
}

static uint32_t place_find(struct placing *p, struct place_key key) {
    uint32_t kinds = key.kinds;
    if (p->outline->detail < DETAIL_ADDRESSES)
        key.address = key.object = key.level = key.kinds = key.column = 0;
    if (p->outline->detail < DETAIL_LINES)
        key.line = 0;
    uint64_t hash = hash_bytes(&key, sizeof key);
    uint32_t id;
    for (struct probe probe = index_probe(&p->index, hash); (id = index_next(&p->index, &probe));)
        if (memcmp(&p->keys.items[id], &key, sizeof key) == 0)
            break;
    if (!id) {
        id = (uint32_t)p->keys.count;
        vector_push(&p->keys, key);
        vector_push(&p->kinds, 0);
        index_add(&p->index, hash, id);
    }
    p->kinds.items[id] |= kinds;
    return id;
}

/* Labels stand for frames one for one, but for those left out in front (entry->cut) and names that the naming divided. */
static const struct frame *frame_of_label(const struct tree *tree, const struct location *location,
                                          const struct naming_entry *entry, uint32_t label) {
    uint32_t count = location->frame_count, missing = count - entry->count;
    if (location->name || count < entry->count || (missing && !entry->cut))
        return NULL;
    uint32_t place = missing + label;
    if (location->kinds & KIND_WAKER) /* upside down */
        place = count - 1 - place;
    return &tree->frames.items[location->first_frame + place];
}

static uint32_t place_of_label(struct placing *p, const struct location *location,
                               const struct naming_entry *entry, uint32_t i) {
    const struct label *label = &p->outline->naming->labels.items[entry->first + i];
    const struct frame *frame = frame_of_label(p->outline->tree, location, entry, i);
    struct place_key key = {.name = label->name,
                            .path = label->object,
                            .object = location->object,
                            .level = i,
                            .kinds = label->kinds};
    if (frame && frame->file) {
        key.file = frame->file;
        key.line = frame->line;
        key.column = frame->column;
    }
    key.address = location->name ? location->raw : location->address - location->call;
    return place_find(p, key);
}

struct places_of placing_location(struct placing *p, uint32_t id, bool alternate) {
    struct places_of *known = &p->locations[alternate][id];
    if (known->count != UINT32_MAX)
        return *known;
    const struct naming *naming = p->outline->naming;
    const struct naming_entry *entry =
        alternate ? &naming->alternates.items[id] : &naming->locations.items[id];
    const struct location *location = &p->outline->tree->locations.items[id];
    *known = (struct places_of){(uint32_t)p->lists.count, entry->count, entry->cut};
    for (uint32_t i = 0; i < entry->count; i++) {
        uint32_t place = place_of_label(p, location, entry, i);
        vector_push(&p->lists, place);
    }
    return *known;
}

struct places_of placing_series(struct placing *p, uint32_t series) {
    const struct naming_entry *entry = &p->outline->naming->series.items[series];
    struct places_of places = {(uint32_t)p->lists.count, entry->count, false};
    for (uint32_t i = 0; i < entry->count; i++) {
        const struct label *label = &p->outline->naming->labels.items[entry->first + i];
        uint32_t place =
            place_find(p, (struct place_key){.name = label->name, .kinds = label->kinds});
        vector_push(&p->lists, place);
    }
    return places;
}

uint32_t placing_get(const struct placing *p, uint32_t index) {
    return p->lists.items[index];
}

bool placing_same_name(const struct placing *p, uint32_t a, uint32_t b) {
    return p->keys.items[a].name == p->keys.items[b].name;
}

size_t placing_count(const struct placing *p) {
    return p->keys.count;
}

uint32_t placing_nothing(struct placing *p) {
    /* Waits whose stack nobody took are called so already; string 0 is what is called so below. */
    uint32_t name = strings_find(p->outline->naming->strings, TEXT("[no stack]"));
    if (!p->nothing)
        p->nothing = place_find(p, (struct place_key){.name = name});
    return p->nothing;
}

/* ---- in order ---- */

static struct place place_of_key(const struct placing *p, size_t id) {
    const struct outline *o = p->outline;
    const struct place_key *key = &p->keys.items[id];
    return (struct place){.name = key->name ? strings_get(o->naming->strings, key->name)
                                            : TEXT("[no stack]"),
                          .path = strings_get(o->naming->strings, key->path),
                          .file = strings_get(o->tree->strings, key->file),
                          .line = key->line,
                          .column = key->column,
                          .object = key->object,
                          .level = key->level,
                          .address = key->address,
                          .kinds = p->kinds.items[id],
                          .function = (uint32_t)id};
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int function_order(const struct place *a, const struct place *b) {
    int order = text_compare(a->name, b->name);
    if (!order)
        order = text_compare(a->path, b->path);
    return order ? order : text_compare(a->file, b->file);
}

static int object_order(const struct objects *objects, uint32_t x, uint32_t y) {
    if (x == y || !x || !y)
        return ORDER(x, y);
    const struct object_identity *a = objects_get(objects, x), *b = objects_get(objects, y);
    int order = text_compare(a->path, b->path);
    if (!order)
        order = text_compare((struct text){(const char *)a->build_id.bytes, a->build_id.size},
                             (struct text){(const char *)b->build_id.bytes, b->build_id.size});
    if (!order)
        order = ORDER(a->kind, b->kind);
    if (!order)
        order = ORDER(a->pid, b->pid);
    return order ? order : ORDER(a->start, b->start);
}

static int place_order(const void *a, const void *b, void *context) {
    const struct outline *o = context;
    const struct place *x = a, *y = b;
    int order = function_order(x, y);
    if (!order)
        order = object_order(o->tree->objects, x->object, y->object);
    if (!order)
        order = ORDER(x->address, y->address);
    if (!order)
        order = ORDER(x->level, y->level);
    if (!order)
        order = ORDER(x->line, y->line);
    if (!order)
        order = ORDER(x->column, y->column);
    return order ? order : ORDER(x->kinds, y->kinds);
}

void placing_sort(struct placing *p, uint32_t *moved) {
    struct outline *o = p->outline;
    vector_push(&o->places, ((struct place){0}));
    for (size_t i = 1; i < p->keys.count; i++)
        vector_push(&o->places, place_of_key(p, i));
    if (o->places.count > 2)
        qsort_r(o->places.items + 1, o->places.count - 1, sizeof *o->places.items, place_order, o);
    for (size_t i = 1; i < o->places.count; i++) {
        struct place *place = &o->places.items[i];
        moved[place->function] = (uint32_t)i; /* where its old number was kept */
        if (i == 1 || function_order(place - 1, place) != 0)
            o->function_count++;
        place->function = o->function_count;
    }
}
