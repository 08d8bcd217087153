/*
 * The tree as an outline: nodes by place instead of by address, numbered by content.
 *
 * Each tree node is entered once under each set of root labels (those of states and endings, where they are asked for); its way there is known
 * from then on, and kept for the samples.
 */
#include "export/outline.h"

#include <stdlib.h>

/* A node while its number is that of its making. */
struct made {
    uint32_t parent, place;
    uint32_t frames; /* on the way to it: a series' labels are none */
};

/* Where the stacks of some series begin. */
struct root {
    uint32_t series; /* one of them */
    bool alternate;
    uint32_t node;
    uint32_t nothing; /* where stacks without any frame are counted; 0: there are none */
    uint32_t *nodes;  /* by tree node: what it is here, + 1 */
};

struct outline_build {
    struct outline *outline;
    struct placing *placing;
    VECTOR(struct made) made;
    struct index index;
    VECTOR(struct root) roots;
    uint32_t *series_roots; /* by series: its root + 1 */
    VECTOR(uint32_t) path;
};

/* ---- nodes ---- */

static uint32_t build_child(struct outline_build *b, uint32_t parent, uint32_t place,
                            bool is_frame) {
    uint64_t hash = hash_mix(parent, place);
    uint32_t id;
    for (struct probe p = index_probe(&b->index, hash); (id = index_next(&b->index, &p));)
        if (b->made.items[id].parent == parent && b->made.items[id].place == place)
            return id;
    id = (uint32_t)b->made.count;
    vector_push(&b->made, ((struct made){parent, place, b->made.items[parent].frames + is_frame}));
    index_add(&b->index, hash, id);
    return id;
}

static uint32_t build_location(struct outline_build *b, uint32_t at, uint32_t location,
                               bool alternate) {
    const struct flame_options *shape = b->outline->options->shape;
    struct places_of places = placing_location(b->placing, location, alternate);
    if (places.cut)
        at = 0;
    for (uint32_t i = 0; i < places.count; i++) {
        uint32_t place = placing_get(b->placing, places.first + i);
        const struct made *node = &b->made.items[at];
        bool again = shape->fold_recursion && node->frames &&
                     placing_same_name(b->placing, node->place, place);
        bool deep = shape->max_depth && node->frames >= shape->max_depth;
        if (!again && !deep)
            at = build_child(b, at, place, true);
    }
    return at;
}

/* Climbs to the nearest ancestor known and comes down again. */
static uint32_t build_node(struct outline_build *b, struct root *root, uint32_t node) {
    b->path.count = 0;
    while (node && !root->nodes[node]) {
        vector_push(&b->path, node);
        node = b->outline->tree->nodes.items[node].parent;
    }
    uint32_t at = node ? root->nodes[node] - 1 : root->node;
    while (b->path.count) {
        node = b->path.items[--b->path.count];
        at = build_location(b, at, b->outline->tree->nodes.items[node].location, root->alternate);
        root->nodes[node] = at + 1;
    }
    return at;
}

/* ---- roots ---- */

static bool same_labels(const struct naming *naming, uint32_t a, uint32_t b) {
    const struct naming_entry *x = &naming->series.items[a], *y = &naming->series.items[b];
    if (x->count != y->count || x->alternate != y->alternate)
        return false;
    for (uint32_t i = 0; i < x->count; i++)
        if (naming->labels.items[x->first + i].name != naming->labels.items[y->first + i].name)
            return false;
    return true;
}

/* There are as many as states times endings, at most. */
static struct root *build_root(struct outline_build *b, uint32_t series) {
    const struct naming *naming = b->outline->naming;
    uint32_t *known = &b->series_roots[series];
    for (uint32_t i = 0; i < b->roots.count && !*known; i++)
        if (same_labels(naming, b->roots.items[i].series, series))
            *known = i + 1;
    if (*known)
        return &b->roots.items[*known - 1];
    struct places_of places = placing_series(b->placing, series);
    struct root root = {.series = series, .alternate = naming->series.items[series].alternate};
    for (uint32_t i = 0; i < places.count; i++)
        root.node = build_child(b, root.node, placing_get(b->placing, places.first + i), false);
    root.nodes = memory_zero(b->outline->tree->nodes.count, sizeof *root.nodes);
    vector_push(&b->roots, root);
    *known = (uint32_t)b->roots.count;
    return &b->roots.items[*known - 1];
}

static void build_cells(struct outline_build *b) {
    struct outline *o = b->outline;
    for (size_t i = 1; i < o->tree->cells.count; i++) {
        const struct cell *cell = &o->tree->cells.items[i];
        uint32_t track = o->series_tracks[cell->series];
        if (track == NO_TRACK)
            continue;
        struct root *root = build_root(b, cell->series);
        uint32_t node = build_node(b, root, cell->node);
        if (!b->made.items[node].frames)
            node = root->nothing = build_child(b, root->node, placing_nothing(b->placing), true);
        vector_push(&o->entries,
                    ((struct entry){track, node, o->tree->series.items[cell->series].state,
                                    cell->samples, cell->weight}));
    }
}

/* ---- in order ---- */

/* Nodes sorted by place, then linked to their parents from the last to the first. The root, whose place is 0, is the first of all. */
static void link_children(const struct outline_build *b, const uint32_t *places, uint32_t *first,
                          uint32_t *next) {
    size_t count = b->made.count;
    uint32_t *keys = memory_resize(NULL, count, sizeof *keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = places[b->made.items[i].place];
    uint32_t *order = counting_sort(keys, count, b->outline->places.count, NULL);
    for (size_t i = count; i-- > 1;) {
        uint32_t node = order[i], parent = b->made.items[node].parent;
        next[node] = first[parent];
        first[parent] = node;
    }
    free(keys);
    free(order);
}

/* Depth first by the links, no stack: the depth is the input's. numbers[made] = the outline's. */
static void number_nodes(struct outline_build *b, const uint32_t *places, uint32_t *numbers) {
    struct outline *o = b->outline;
    uint32_t *first = memory_zero(b->made.count, sizeof *first);
    uint32_t *next = memory_zero(b->made.count, sizeof *next);
    link_children(b, places, first, next);
    vector_reserve(&o->nodes, b->made.count);
    vector_push(&o->nodes, ((struct outline_node){0}));
    for (uint32_t at = first[0]; at;) {
        const struct made *made = &b->made.items[at];
        uint32_t parent = numbers[made->parent];
        numbers[at] = (uint32_t)o->nodes.count;
        vector_push(&o->nodes, ((struct outline_node){parent, places[made->place],
                                                      o->nodes.items[parent].depth + 1, 0}));
        if (first[at]) {
            at = first[at];
            continue;
        }
        while (at && !next[at]) {
            o->nodes.items[numbers[at]].end = (uint32_t)o->nodes.count;
            at = b->made.items[at].parent;
        }
        if (at) {
            o->nodes.items[numbers[at]].end = (uint32_t)o->nodes.count;
            at = next[at];
        }
    }
    o->nodes.items[0].end = (uint32_t)o->nodes.count;
    free(first);
    free(next);
}

static int order_entries(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->state != y->state)
        return x->state < y->state ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* What several tree nodes of one place counted becomes one. */
static bool merge_entries(struct outline *o) {
    size_t kept = 0;
    bool fine = true;
    if (o->entries.count)
        qsort(o->entries.items, o->entries.count, sizeof *o->entries.items, order_entries);
    for (size_t i = 0; i < o->entries.count; i++) {
        const struct entry *entry = &o->entries.items[i];
        struct entry *last = kept ? &o->entries.items[kept - 1] : NULL;
        if (last && order_entries(last, entry) == 0) {
            fine &= checked_add(last->samples, entry->samples, &last->samples) &&
                    checked_add(last->weight, entry->weight, &last->weight);
        } else {
            o->entries.items[kept++] = *entry;
        }
    }
    o->entries.count = kept;
    return fine;
}

static bool sum_tracks(struct outline *o) {
    bool fine = true;
    for (size_t i = 0; i < o->entries.count; i++) {
        const struct entry *entry = &o->entries.items[i];
        struct track *track = &o->tracks.items[entry->track];
        if (!track->entry_count++)
            track->first_entry = i;
        track->waits |= entry->state != STATE_ON;
        fine &= checked_add(track->samples, entry->samples, &track->samples) &&
                checked_add(track->weight, entry_weight(o, entry), &track->weight);
    }
    return fine;
}

/* The roots' tables outlive the making: samples are looked up in them. */
static void keep_roots(struct outline_build *b, const uint32_t *numbers) {
    struct outline *o = b->outline;
    o->series_nodes = memory_zero(o->tree->series.count, sizeof *o->series_nodes);
    for (size_t i = 0; i < b->roots.count; i++) {
        const struct root *root = &b->roots.items[i];
        for (size_t k = 0; k < o->tree->nodes.count; k++) {
            uint32_t made = root->nodes[k] ? root->nodes[k] - 1 : 0;
            root->nodes[k] = numbers[b->made.items[made].frames ? made : root->nothing];
        }
        vector_push(&o->node_tables, root->nodes);
    }
    for (size_t i = 1; i < o->tree->series.count; i++)
        if (b->series_roots[i])
            o->series_nodes[i] = b->roots.items[b->series_roots[i] - 1].nodes;
}

static void build_order(struct outline_build *b) {
    struct outline *o = b->outline;
    uint32_t *places = memory_zero(placing_count(b->placing), sizeof *places);
    uint32_t *numbers = memory_zero(b->made.count, sizeof *numbers);
    placing_sort(b->placing, places);
    number_nodes(b, places, numbers);
    for (size_t i = 0; i < o->entries.count; i++)
        o->entries.items[i].node = numbers[o->entries.items[i].node];
    keep_roots(b, numbers);
    free(places);
    free(numbers);
}

static void build_all(struct outline *o) {
    struct outline_build b = {.outline = o, .placing = placing_new(o)};
    vector_push(&b.made, ((struct made){0}));
    b.series_roots = memory_zero(o->tree->series.count, sizeof *b.series_roots);
    build_cells(&b);
    build_order(&b);
    placing_free(b.placing);
    free(b.series_roots);
    vector_release(&b.made);
    vector_release(&b.roots);
    vector_release(&b.path);
    index_release(&b.index);
}

struct outline *outline_new(const struct tree *tree, const struct naming *naming,
                            const struct export_options *options, enum detail detail,
                            struct error *error) {
    if (!tree_check(tree, error))
        return NULL;
    struct outline *o = memory_zero(1, sizeof *o);
    o->tree = tree;
    o->naming = naming;
    o->options = options;
    o->detail = detail;
    tracks_find(o);
    build_all(o);
    bool fine = true;
    if (!merge_entries(o) || !sum_tracks(o))
        fine = error_set(error, ERROR_INPUT, "the weights add up to more than 2^64");
    else if (!o->entries.count)
        fine = error_set(error, ERROR_INPUT, "there is nothing to export");
    if (fine) {
        steps_find(o);
        return o;
    }
    outline_free(o);
    return NULL;
}

void outline_free(struct outline *o) {
    if (!o)
        return;
    for (size_t i = 0; i < o->node_tables.count; i++)
        free(o->node_tables.items[i]);
    vector_release(&o->node_tables);
    vector_release(&o->places);
    vector_release(&o->nodes);
    vector_release(&o->measures);
    vector_release(&o->tracks);
    vector_release(&o->entries);
    vector_release(&o->left);
    free(o->samples);
    free(o->series_tracks);
    free(o->series_nodes);
    arena_release(&o->arena);
    free(o);
}
