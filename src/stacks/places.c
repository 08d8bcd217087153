/*
 * Stacks by place: frames as other tools' formats distinguish them, by name and by position in source and object. Each location is visited once,
 * and equal places are merged.
 *
 * Places become the names of a second naming, so that the walker makes nodes of them as it does of names.
 */
#include "stacks/stacks.h"

#include <stdlib.h>

#include "object/object.h"
#include "stacks/flame.h"

/* All that makes a place what it is; no padding, so that its bytes can be hashed. */
struct place_key {
    uint64_t address;
    uint32_t name, path; /* the naming's strings */
    uint32_t file;       /* the tree's */
    uint32_t line, column, object, level, kinds;
};

struct placing {
    const struct tree *tree;
    const struct naming *source;
    enum detail detail;
    VECTOR(struct place_key) keys; /* [0] unused, as the places */
    VECTOR(uint32_t) kinds;        /* of all frames that are one place */
    VECTOR(uint32_t) names;        /* of places: recursion is folded by name */
    struct index index;
    struct naming *naming; /* labels are places */
};

static uint32_t place_find(struct placing *p, struct place_key key) {
    uint32_t kinds = key.kinds;
    if (p->detail < DETAIL_ADDRESSES)
        key.address = key.object = key.level = key.kinds = key.column = 0;
    if (p->detail < DETAIL_LINES)
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
        vector_push(&p->names, key.name);
        index_add(&p->index, hash, id);
    }
    p->kinds.items[id] |= kinds;
    return id;
}

/* Labels stand for frames one for one, but for those left out in front (entry->cut) and names that the naming divided. */
static struct frame frame_of_label(const struct tree *tree, const struct location *location,
                                   const struct naming_entry *entry, uint32_t label) {
    uint32_t count = location_frame_count(location), missing = count - entry->count;
    if (count < entry->count || (missing && !entry->cut))
        return (struct frame){0};
    uint32_t place = missing + label;
    if (location->kinds & KIND_WAKER) /* upside down */
        place = count - 1 - place;
    return location_frame(tree, location, place);
}

static uint32_t place_of_label(struct placing *p, const struct location *location,
                               const struct naming_entry *entry, uint32_t i) {
    const struct label *label = &p->source->labels.items[entry->first + i];
    struct frame frame = frame_of_label(p->tree, location, entry, i);
    struct place_key key = {.name = label->name,
                            .path = label->object,
                            .object = location->object,
                            .level = i,
                            .kinds = label->kinds};
    if (frame.file) {
        key.file = frame.file;
        key.line = frame.line;
        key.column = frame.column;
    }
    key.address = location->function ? location->raw : location_within(location);
    return place_find(p, key);
}

/* ---- a naming of places ---- */

static void push_place(struct placing *p, uint32_t place, uint32_t kinds) {
    vector_push(&p->naming->labels, ((struct label){.name = place, .kinds = kinds}));
}

static struct naming_entry location_places(struct placing *p, uint32_t id, bool alternate) {
    struct naming_entry entry = naming_entries(p->source, alternate)[id];
    const struct naming_entry source = entry;
    entry.first = (uint32_t)p->naming->labels.count;
    for (uint32_t i = 0; i < entry.count; i++)
        push_place(p, place_of_label(p, &p->tree->locations.items[id], &source, i),
                   p->source->labels.items[source.first + i].kinds);
    return entry;
}

static struct naming_entry series_places(struct placing *p, uint32_t series) {
    struct naming_entry entry = p->source->series.items[series];
    const struct label *labels = entry.count ? &p->source->labels.items[entry.first] : NULL;
    entry.first = (uint32_t)p->naming->labels.count;
    for (uint32_t i = 0; i < entry.count; i++)
        push_place(
            p, place_find(p, (struct place_key){.name = labels[i].name, .kinds = labels[i].kinds}),
            labels[i].kinds);
    return entry;
}

/* What is counted, from its node to the root: only places of those are listed. */
enum { SEEN_PLAIN = 1, SEEN_ALTERNATE = 2, SEEN_SERIES = 4 };

static void mark_counted(const struct placing *p, uint8_t *nodes, uint8_t *locations,
                         uint8_t *series) {
    const struct tree *tree = p->tree;
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        const struct naming_entry *entry = &p->source->series.items[cell->series];
        uint8_t seen = entry->alternate ? SEEN_ALTERNATE : SEEN_PLAIN;
        if (entry->skip)
            continue;
        series[cell->series] = SEEN_SERIES;
        for (uint32_t at = cell->node; at && !(nodes[at] & seen);
             at = tree->nodes.items[at].parent) {
            nodes[at] |= seen;
            locations[tree->nodes.items[at].location] |= seen;
        }
    }
}

static void placing_name(struct placing *p) {
    const struct tree *tree = p->tree;
    size_t location_count = tree->locations.count;
    uint8_t *nodes = memory_zero(tree->nodes.count, 1);
    uint8_t *locations = memory_zero(location_count, 1);
    uint8_t *series = memory_zero(tree->series.count, 1);
    mark_counted(p, nodes, locations, series);
    free(nodes);
    for (uint32_t i = 0; i < location_count; i++) {
        struct naming_entry none = {0};
        vector_push(&p->naming->locations,
                    locations[i] & SEEN_PLAIN ? location_places(p, i, false) : none);
        if (p->source->alternates.count)
            vector_push(&p->naming->alternates,
                        locations[i] & SEEN_ALTERNATE ? location_places(p, i, true) : none);
    }
    for (uint32_t i = 0; i < tree->series.count; i++)
        vector_push(&p->naming->series,
                    series[i] ? series_places(p, i) : (struct naming_entry){.skip = true});
    free(locations);
    free(series);
}

/* ---- in order ---- */

static struct place place_of_key(const struct placing *p, size_t id) {
    const struct place_key *key = &p->keys.items[id];
    return (struct place){.name = key->name ? strings_get(p->source->strings, key->name)
                                            : TEXT("[no stack]"),
                          .path = strings_get(p->source->strings, key->path),
                          .file = strings_get(p->tree->strings, key->file),
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
    const struct place *x = a, *y = b;
    int order = function_order(x, y);
    if (!order)
        order = object_order(context, x->object, y->object);
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

/* With rules, keep only the places that remain. */
static void places_list(struct placing *p, struct placed *to, bool some) {
    const struct flame *flame = to->walker->flame;
    uint8_t *used = memory_zero(p->keys.count, sizeof *used);
    for (size_t i = 1; i < flame->nodes.count; i++)
        used[flame->nodes.items[i].name] = 1;
    vector_push(&to->places, ((struct place){0}));
    for (size_t i = 1; i < p->keys.count; i++)
        if (used[i] || !some)
            vector_push(&to->places, place_of_key(p, i));
    free(used);
}

static void places_sort(struct placing *p, struct placed *to, uint32_t *ranks) {
    if (to->places.count > 2)
        qsort_r(to->places.items + 1, to->places.count - 1, sizeof *to->places.items, place_order,
                p->tree->objects);
    for (size_t i = 1; i < to->places.count; i++) {
        struct place *place = &to->places.items[i];
        ranks[place->function] = (uint32_t)i; /* where its old number was kept */
        if (i == 1 || function_order(place - 1, place) != 0)
            to->function_count++;
        place->function = to->function_count;
    }
}

/* ---- nodes ---- */

/* Give stacks without frames a frame that says so. Waits recorded without a stack already have such a name; below, string 0 stands for it. */
static void give_nothing_a_place(struct placing *p, struct walker *w) {
    const struct tree *tree = p->tree;
    uint32_t *nothing = memory_zero(w->root_count + 1, sizeof *nothing);
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        uint32_t root = w->series_roots[cell->series];
        if (!root || nothing[root] || w->roots[root - 1].nodes[cell->node])
            continue;
        uint32_t name = strings_find(p->source->strings, TEXT("[no stack]"));
        struct label label = {.name = place_find(p, (struct place_key){.name = name})};
        nothing[root] = flame_child(w->flame, w->roots[root - 1].node, &label);
    }
    for (size_t i = 0; i < w->root_count; i++)
        for (size_t k = 0; nothing[i + 1] && k < tree->nodes.count; k++)
            if (!w->roots[i].nodes[k])
                w->roots[i].nodes[k] = nothing[i + 1];
    free(nothing);
}

/* Depth first: numbers[flame node] = the node's. A subtree ends where the last of its children's does. */
static void number_nodes(struct placed *to, const struct flame *flame, const uint32_t *ranks,
                         uint32_t *numbers) {
    vector_reserve(&to->nodes, flame->nodes.count);
    vector_push(&to->nodes, ((struct placed_node){0}));
    for (uint32_t at = flame->nodes.items[0].first_child; at; at = flame_next(flame, at)) {
        const struct flame_node *node = &flame->nodes.items[at];
        numbers[at] = (uint32_t)to->nodes.count;
        vector_push(&to->nodes, ((struct placed_node){numbers[node->parent], ranks[node->name],
                                                      node->depth, numbers[at] + 1}));
    }
    to->nodes.items[0].end = (uint32_t)to->nodes.count;
    for (size_t i = to->nodes.count; i-- > 1;) {
        struct placed_node *parent = &to->nodes.items[to->nodes.items[i].parent];
        if (parent->end < to->nodes.items[i].end)
            parent->end = to->nodes.items[i].end;
    }
}

static void placed_make(struct placed *to, struct placing *p, bool some) {
    struct walker *w = to->walker;
    give_nothing_a_place(p, w);
    uint32_t *ranks = memory_zero(p->keys.count, sizeof *ranks);
    uint32_t *numbers = memory_zero(w->flame->nodes.count, sizeof *numbers);
    places_list(p, to, some);
    places_sort(p, to, ranks);
    flame_link(w->flame, ranks, p->keys.count);
    number_nodes(to, w->flame, ranks, numbers);
    for (size_t i = 0; i < w->root_count; i++)
        for (size_t k = 0; k < p->tree->nodes.count; k++)
            if (w->roots[i].nodes[k] != STACK_DROPPED)
                w->roots[i].nodes[k] = numbers[w->roots[i].nodes[k]];
    flame_free(w->flame);
    w->flame = NULL;
    free(ranks);
    free(numbers);
}

struct placed *placed_new(const struct tree *tree, const struct naming *naming,
                          const struct flame_options *shape, enum detail detail,
                          struct error *error) {
    struct placed *placed = memory_zero(1, sizeof *placed);
    struct placing p = {.tree = tree,
                        .source = naming,
                        .detail = detail,
                        .naming = memory_zero(1, sizeof *p.naming)};
    p.naming->strings = strings_share(naming->strings);
    vector_push(&p.keys, ((struct place_key){0}));
    vector_push(&p.kinds, 0);
    vector_push(&p.names, 0);
    placing_name(&p);
    placed->walker = walker_new(
        tree, p.naming, &(struct walk_options){.shape = shape, .alike = p.names.items}, error);
    bool fine = placed->walker != NULL;
    if (fine)
        placed_make(placed, &p, stack_rules_set(shape->rules));
    naming_free(p.naming);
    vector_release(&p.keys);
    vector_release(&p.kinds);
    vector_release(&p.names);
    index_release(&p.index);
    if (fine)
        return placed;
    placed_free(placed);
    return NULL;
}

void placed_free(struct placed *placed) {
    if (!placed)
        return;
    vector_release(&placed->places);
    vector_release(&placed->nodes);
    walker_free(placed->walker);
    free(placed);
}
