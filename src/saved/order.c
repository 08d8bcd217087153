/*
 * Numbers that depend only on content.
 *
 * The tree's ids depend on the order of reading and on the number of threads, and equal nodes of two parts stay
 * separate in it. Here everything that is counted is numbered by content: strings and objects by their texts,
 * locations by object and address, nodes depth first with siblings sorted by location. Costs one sort of each.
 */
#include <stdlib.h>

#include "object/object.h"
#include "saved/layout.h"

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* ---- texts ---- */

static void add_text(struct order *o, struct text text) {
    strings_add(o->strings, text);
}

static void add_string(struct order *o, uint32_t id) {
    if (id && !o->string_ids[id])
        o->string_ids[id] = strings_add(o->strings, strings_get(o->tree->strings, id));
}

static int compare_strings(const void *a, const void *b, void *context) {
    const struct strings *strings = context;
    return text_compare(strings_get(strings, *(const uint32_t *)a),
                        strings_get(strings, *(const uint32_t *)b));
}

uint32_t order_text(const struct order *o, struct text text) {
    uint32_t id = strings_find(o->strings, text);
    return o->ranks.numbers[id];
}

uint32_t order_string(const struct order *o, uint32_t id) {
    return id ? o->ranks.numbers[o->string_ids[id]] : 0;
}

/* ---- numbering ---- */

/* Sort the chosen ids and number them from 1. */
static void number(struct numbering *n, size_t count,
                   int (*compare)(const void *, const void *, void *), const void *context) {
    n->numbers = memory_zero(count, sizeof *n->numbers);
    if (n->items.count > 1)
        qsort_r(n->items.items, n->items.count, sizeof *n->items.items, compare,
                (void *)(uintptr_t)context);
    for (size_t i = 0; i < n->items.count; i++)
        n->numbers[n->items.items[i]] = (uint32_t)i + 1;
}

static void numbering_release(struct numbering *n) {
    free(n->numbers);
    vector_release(&n->items);
}

static int compare_objects(const void *a, const void *b, void *context) {
    const struct objects *objects = context;
    const struct object_identity *x = objects_get(objects, *(const uint32_t *)a),
                                 *y = objects_get(objects, *(const uint32_t *)b);
    int order = text_compare(x->path, y->path);
    if (!order)
        order = text_compare((struct text){(const char *)x->build_id.bytes, x->build_id.size},
                             (struct text){(const char *)y->build_id.bytes, y->build_id.size});
    order = order ? order : ORDER(x->kind, y->kind);
    order = order ? order : ORDER(x->pid, y->pid);
    order = order ? order : ORDER(x->start, y->start);
    return order ? order : ORDER(x->size, y->size);
}

static int compare_threads(const void *a, const void *b, void *context) {
    const struct tree *tree = context;
    const struct thread *x = &tree->threads.items[*(const uint32_t *)a],
                        *y = &tree->threads.items[*(const uint32_t *)b];
    int order = ORDER(x->pid, y->pid);
    order = order ? order : ORDER(x->tid, y->tid);
    order = order ? order : ORDER(x->start, y->start);
    order = order ? order : ORDER(x->end, y->end);
    return order ? order : ORDER(x->unnamed, y->unnamed);
}

static int compare_series(const void *a, const void *b, void *context) {
    const struct order *o = context;
    const struct series *x = &o->tree->series.items[*(const uint32_t *)a],
                        *y = &o->tree->series.items[*(const uint32_t *)b];
    int order = ORDER(x->event, y->event);
    order = order ? order : ORDER(o->threads.numbers[x->thread], o->threads.numbers[y->thread]);
    order = order ? order : ORDER(order_string(o, x->comm), order_string(o, y->comm));
    order = order ? order : ORDER(x->state, y->state);
    order = order ? order : ORDER(x->ending, y->ending);
    return order ? order : ORDER(o->labels.numbers[x->labels], o->labels.numbers[y->labels]);
}

/* Compare by the first pair that differs; a set sorts before those that it is a prefix of. */
static int compare_labels(const void *a, const void *b, void *context) {
    const struct order *o = context;
    size_t x_count, y_count;
    const struct label_pair *x = tree_labels(o->tree, *(const uint32_t *)a, &x_count),
                            *y = tree_labels(o->tree, *(const uint32_t *)b, &y_count);
    int order = 0;
    for (size_t i = 0; i < x_count && i < y_count && !order; i++) {
        order = ORDER(order_string(o, x[i].key), order_string(o, y[i].key));
        order = order ? order : ORDER(order_string(o, x[i].value), order_string(o, y[i].value));
    }
    return order ? order : ORDER(x_count, y_count);
}

static uint32_t object_number(const struct order *o, uint32_t object) {
    return object ? o->objects.numbers[object] : 0;
}

static int compare_functions(const void *a, const void *b, void *context) {
    const struct order *o = context;
    const struct function *x = &o->tree->functions.items[*(const uint32_t *)a],
                          *y = &o->tree->functions.items[*(const uint32_t *)b];
    int order = ORDER(order_string(o, x->name), order_string(o, y->name));
    order = order ? order : ORDER(order_string(o, x->file), order_string(o, y->file));
    order = order ? order : ORDER(x->line, y->line);
    order = order ? order : ORDER(order_string(o, x->module), order_string(o, y->module));
    return order ? order : ORDER(order_string(o, x->language), order_string(o, y->language));
}

static int compare_locations(const void *a, const void *b, void *context) {
    const struct order *o = context;
    const struct location *x = &o->tree->locations.items[*(const uint32_t *)a],
                          *y = &o->tree->locations.items[*(const uint32_t *)b];
    int order = ORDER(object_number(o, x->object), object_number(o, y->object));
    order = order ? order : ORDER(x->address, y->address);
    order =
        order ? order : ORDER(o->functions.numbers[x->function], o->functions.numbers[y->function]);
    order = order ? order : ORDER(x->line, y->line);
    order = order ? order : ORDER(x->raw, y->raw);
    order = order ? order : ORDER(x->mode, y->mode);
    order = order ? order : ORDER(x->call, y->call);
    order = order ? order : ORDER(x->kinds, y->kinds);
    return order ? order : ORDER(x->unwound, y->unwound);
}

/* ---- choosing what is stored ---- */

/* Choose the nodes that cells and samples need, and their ancestors. */
static bool *nodes_kept(const struct tree *tree) {
    bool *is_kept = memory_zero(tree->nodes.count, sizeof *is_kept);
    for (size_t i = 1; i < tree->cells.count; i++)
        for (uint32_t at = tree->cells.items[i].node; at && !is_kept[at];
             at = tree->nodes.items[at].parent)
            is_kept[at] = true;
    for (size_t i = 0; i < tree->samples.count; i++)
        for (uint32_t at = tree->samples.items[i].node; at && !is_kept[at];
             at = tree->nodes.items[at].parent)
            is_kept[at] = true;
    return is_kept;
}

static void choose(struct numbering *n, const bool *is_kept, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (is_kept[i])
            vector_push(&n->items, (uint32_t)i);
}

static void choose_locations(struct order *o, const bool *is_kept) {
    const struct tree *tree = o->tree;
    size_t objects = tree->objects ? objects_count(tree->objects) + 1 : 1;
    bool *used = memory_zero(tree->locations.count, sizeof *used),
         *held = memory_zero(objects, sizeof *held),
         *called = memory_zero(tree->functions.count, sizeof *called);
    for (size_t i = 1; i < tree->nodes.count; i++)
        used[tree->nodes.items[i].location] |= is_kept[i];
    choose(&o->locations, used, tree->locations.count);
    for (size_t i = 0; i < o->locations.items.count; i++) {
        const struct location *location = &tree->locations.items[o->locations.items.items[i]];
        held[location->object] = true;
        called[location->function] = true;
        for (uint32_t k = 0; k < location->frame_count; k++) {
            add_string(o, tree->frames.items[location->first_frame + k].name);
            add_string(o, tree->frames.items[location->first_frame + k].file);
            add_string(o, tree->frames.items[location->first_frame + k].language);
        }
    }
    choose(&o->functions, called, tree->functions.count);
    for (size_t i = 0; i < o->functions.items.count; i++) {
        const struct function *function = &tree->functions.items[o->functions.items.items[i]];
        add_string(o, function->name);
        add_string(o, function->file);
        add_string(o, function->module);
        add_string(o, function->language);
    }
    choose(&o->objects, held, objects);
    for (size_t i = 0; i < o->objects.items.count; i++)
        add_text(o, objects_get(tree->objects, o->objects.items.items[i])->path);
    free(called);
    free(used);
    free(held);
}

static void add_labels(struct order *o, uint32_t labels) {
    size_t count;
    const struct label_pair *pairs = tree_labels(o->tree, labels, &count);
    for (size_t i = 0; i < count; i++) {
        add_string(o, pairs[i].key);
        add_string(o, pairs[i].value);
    }
}

static void choose_series(struct order *o) {
    const struct tree *tree = o->tree;
    bool *used = memory_zero(tree->series.count, sizeof *used),
         *held = memory_zero(tree->threads.count, sizeof *held);
    bool *sets = memory_zero(tree->label_sets.count + 1, sizeof *sets);
    for (size_t i = 1; i < tree->cells.count; i++)
        used[tree->cells.items[i].series] = true;
    for (size_t i = 0; i < tree->samples.count; i++)
        used[tree->samples.items[i].series] = true;
    choose(&o->series, used, tree->series.count);
    for (size_t i = 0; i < o->series.items.count; i++) {
        const struct series *series = &tree->series.items[o->series.items.items[i]];
        held[series->thread] = true;
        add_string(o, series->comm);
        sets[series->labels] = true;
    }
    choose(&o->threads, held, tree->threads.count);
    choose(&o->labels, sets, tree->label_sets.count);
    for (size_t i = 0; i < o->labels.items.count; i++)
        add_labels(o, o->labels.items.items[i]);
    free(sets);
    free(used);
    free(held);
}

static void choose_events(struct order *o) {
    for (size_t i = 1; i < o->tree->events.count; i++) {
        add_string(o, o->tree->events.items[i].name);
        add_string(o, o->tree->events.items[i].unit);
    }
}

/* Objects with attached code are already chosen by locations, because it is the code of functions with samples. */
static void choose_sources(struct order *o) {
    for (size_t i = 0; i < o->tree->sources.count; i++)
        add_string(o, o->tree->sources.items[i].file);
}

static void choose_notes(struct order *o) {
    for (size_t i = 0; i < o->tree->notes.count; i++) {
        const struct note *note = &o->tree->notes.items[i];
        add_text(o, text_of(note->kind->name));
        add_text(o, text_of(note->kind->sentence));
        add_text(o, text_of(note->example ? note->example : ""));
    }
}

/* ---- nodes ---- */

struct joined {
    uint32_t parent, location; /* index of a joined node; number */
    uint32_t first, next;      /* children, in order */
};

struct joining {
    VECTOR(struct joined) nodes;
    struct index index;
};

static uint32_t join_node(struct joining *j, uint32_t parent, uint32_t location) {
    uint64_t hash = hash_mix(parent, location);
    uint32_t id;
    for (struct probe p = index_probe(&j->index, hash); (id = index_next(&j->index, &p));)
        if (j->nodes.items[id].parent == parent && j->nodes.items[id].location == location)
            return id;
    id = (uint32_t)j->nodes.count;
    vector_push(&j->nodes, ((struct joined){.parent = parent, .location = location}));
    index_add(&j->index, hash, id);
    return id;
}

/* Link each node's children in order of their locations. */
static void link_children(struct joining *j, size_t locations) {
    size_t count = j->nodes.count;
    uint32_t *keys = memory_resize(NULL, count, sizeof *keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = j->nodes.items[i].location;
    uint32_t *sorted = counting_sort(keys, count, locations + 1, NULL);
    for (size_t i = count; i-- > 0;) {
        uint32_t id = sorted[i];
        if (!id)
            continue;
        struct joined *parent = &j->nodes.items[j->nodes.items[id].parent];
        j->nodes.items[id].next = parent->first;
        parent->first = id;
    }
    free(keys);
    free(sorted);
}

/* Number the nodes depth first: numbers[joined] is the node's number. */
static void number_nodes(struct order *o, const struct joining *j, uint32_t *numbers) {
    vector_reserve(&o->made, j->nodes.count);
    vector_push(&o->made, ((struct node){0}));
    for (uint32_t at = j->nodes.items[0].first; at;) {
        const struct joined *node = &j->nodes.items[at];
        numbers[at] = (uint32_t)o->made.count;
        vector_push(&o->made, ((struct node){numbers[node->parent], node->location}));
        if (node->first) {
            at = node->first;
            continue;
        }
        while (at && !j->nodes.items[at].next)
            at = j->nodes.items[at].parent;
        at = j->nodes.items[at].next; /* the root's is 0 */
    }
}

static void order_nodes(struct order *o, const bool *is_kept) {
    const struct tree *tree = o->tree;
    struct joining j = {0};
    vector_push(&j.nodes, ((struct joined){0}));
    o->nodes = memory_zero(tree->nodes.count, sizeof *o->nodes);
    for (size_t i = 1; i < tree->nodes.count; i++) {
        const struct node *node = &tree->nodes.items[i];
        if (is_kept[i])
            o->nodes[i] =
                join_node(&j, o->nodes[node->parent], o->locations.numbers[node->location]);
    }
    link_children(&j, o->locations.items.count + 1);
    uint32_t *numbers = memory_zero(j.nodes.count, sizeof *numbers);
    number_nodes(o, &j, numbers);
    for (size_t i = 0; i < tree->nodes.count; i++)
        o->nodes[i] = numbers[o->nodes[i]];
    free(numbers);
    vector_release(&j.nodes);
    index_release(&j.index);
}

/* ---- cells ---- */

/* Sort by node, then series, and merge equal cells. Sums were checked when they were made: the tree's total fits. */
static void order_cells(struct order *o) {
    const struct tree *tree = o->tree;
    size_t count = tree->cells.count - 1;
    uint64_t *keys = memory_resize(NULL, count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        const struct cell *cell = &tree->cells.items[i + 1];
        keys[i] = (uint64_t)o->nodes[cell->node] << 32 | o->series.numbers[cell->series];
    }
    uint32_t *sorted = radix_sort(keys, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t key = keys[sorted[i]];
        const struct cell *cell = &tree->cells.items[sorted[i] + 1];
        struct cell *last = o->cells.count ? &o->cells.items[o->cells.count - 1] : NULL;
        if (last && last->node == key >> 32 && last->series == (uint32_t)key) {
            last->samples += cell->samples;
            last->weight += cell->weight;
        } else {
            vector_push(&o->cells, ((struct cell){(uint32_t)(key >> 32), (uint32_t)key,
                                                  cell->samples, cell->weight}));
        }
    }
    free(keys);
    free(sorted);
}

void order_init(struct order *o, const struct tree *tree) {
    *o = (struct order){.tree = tree, .strings = strings_new()};
    o->string_ids = memory_zero(strings_count(tree->strings) + 1, sizeof *o->string_ids);
    bool *is_kept = nodes_kept(tree);
    choose_locations(o, is_kept);
    choose_series(o);
    choose_events(o);
    choose_sources(o);
    choose_notes(o);
    for (uint32_t i = 1; i <= strings_count(o->strings); i++)
        vector_push(&o->ranks.items, i);
    number(&o->ranks, strings_count(o->strings) + 1, compare_strings, o->strings);
    number(&o->objects, tree->objects ? objects_count(tree->objects) + 1 : 1, compare_objects,
           tree->objects);
    number(&o->threads, tree->threads.count, compare_threads, tree);
    number(&o->labels, tree->label_sets.count + 1, compare_labels, o);
    number(&o->series, tree->series.count, compare_series, o);
    number(&o->functions, tree->functions.count, compare_functions, o);
    number(&o->locations, tree->locations.count, compare_locations, o);
    order_nodes(o, is_kept);
    order_cells(o);
    free(is_kept);
}

void order_release(struct order *o) {
    strings_free(o->strings);
    numbering_release(&o->ranks);
    free(o->string_ids);
    numbering_release(&o->objects);
    numbering_release(&o->threads);
    numbering_release(&o->labels);
    numbering_release(&o->series);
    numbering_release(&o->functions);
    numbering_release(&o->locations);
    free(o->nodes);
    vector_release(&o->made);
    vector_release(&o->cells);
}
