/*
 * The flame: the tree by name.
 *
 * A tree node becomes a path of flame nodes once for each set of root labels it is counted under; a memo with a stamp for each tree
 * node makes that one probe of the flame's index a label. Children are put in order by the rank of their names, which is worked
 * out once for all names, so ordering compares each distinct name and not each node.
 */
#include "tree/flame.h"

#include <stdlib.h>

struct flame *flame_new(void) {
    struct flame *flame = memory_zero(1, sizeof *flame);
    flame->strings = strings_new();
    vector_push(&flame->nodes, ((struct flame_node){0}));
    return flame;
}

void flame_free(struct flame *flame) {
    if (!flame)
        return;
    strings_free(flame->strings);
    vector_release(&flame->nodes);
    index_release(&flame->index);
    free(flame);
}

/* Whatever the order of adding: all kinds together, inlined only if always so, and the smaller of two objects. */
static void flame_node_join(struct flame *flame, struct flame_node *node,
                            const struct label *label) {
    uint32_t inlined = node->kinds & label->kinds & KIND_INLINED;
    node->kinds = ((node->kinds | label->kinds) & ~(uint32_t)KIND_INLINED) | inlined;
    if (node->object != label->object && label->object &&
        (!node->object || text_compare(strings_get(flame->strings, label->object),
                                       strings_get(flame->strings, node->object)) < 0))
        node->object = label->object;
}

uint32_t flame_child(struct flame *flame, uint32_t parent, const struct label *label) {
    uint64_t hash = hash_mix(parent, label->name);
    uint32_t id;
    for (struct probe p = index_probe(&flame->index, hash); (id = index_next(&flame->index, &p));) {
        struct flame_node *node = &flame->nodes.items[id];
        if (node->parent == parent && node->name == label->name) {
            flame_node_join(flame, node, label);
            return id;
        }
    }
    id = (uint32_t)flame->nodes.count;
    struct flame_node node = {.parent = parent,
                              .name = label->name,
                              .object = label->object,
                              .kinds = label->kinds,
                              .depth = flame->nodes.items[parent].depth + 1};
    vector_push(&flame->nodes, node);
    index_add(&flame->index, hash, id);
    return id;
}

/* ---- finishing ---- */

bool flame_total(struct flame *flame, struct error *error) {
    bool overflow = false;
    for (size_t i = flame->nodes.count; i-- > 0;) {
        struct flame_node *node = &flame->nodes.items[i];
        overflow |= __builtin_add_overflow(node->total, node->self, &node->total);
        overflow |=
            __builtin_add_overflow(node->total_before, node->self_before, &node->total_before);
        if (i == 0)
            break;
        struct flame_node *parent = &flame->nodes.items[node->parent];
        overflow |= __builtin_add_overflow(parent->total, node->total, &parent->total);
        overflow |=
            __builtin_add_overflow(parent->total_before, node->total_before, &parent->total_before);
        if (node->depth > flame->max_depth)
            flame->max_depth = node->depth;
    }
    if (overflow)
        return error_set(error, ERROR_INPUT, "the weights add up to more than 2^64");
    return true;
}

/* As if each name were followed by ';', which is how they stand in folded lines. */
static int name_order(const void *a, const void *b, void *context) {
    const struct strings *strings = context;
    struct text x = strings_get(strings, *(const uint32_t *)a),
                y = strings_get(strings, *(const uint32_t *)b);
    size_t shorter = x.length < y.length ? x.length : y.length;
    int order = shorter ? memcmp(x.data, y.data, shorter) : 0;
    if (order || x.length == y.length)
        return order;
    int next_x = x.length > shorter ? (unsigned char)x.data[shorter] : ';';
    int next_y = y.length > shorter ? (unsigned char)y.data[shorter] : ';';
    return next_x != next_y ? next_x - next_y : x.length > y.length ? 1 : -1;
}

/* ranks[name] = the name's place in order, for names that occur; returns how many do. */
static size_t flame_rank_names(const struct flame *flame, uint32_t *ranks) {
    VECTOR(uint32_t) names = {0};
    for (size_t i = 1; i < flame->nodes.count; i++) {
        uint32_t name = flame->nodes.items[i].name;
        if (!ranks[name]) {
            ranks[name] = 1;
            vector_push(&names, name);
        }
    }
    if (names.count)
        qsort_r(names.items, names.count, sizeof *names.items, name_order, flame->strings);
    for (size_t i = 0; i < names.count; i++)
        ranks[names.items[i]] = (uint32_t)i;
    size_t count = names.count;
    vector_release(&names);
    return count;
}

/* A counting sort of all nodes by rank, then each is put in front of its siblings, last rank first. */
static void flame_order_children(struct flame *flame) {
    size_t count = flame->nodes.count;
    uint32_t *ranks = memory_zero(strings_count(flame->strings) + 1, sizeof *ranks);
    size_t names = flame_rank_names(flame, ranks);
    uint32_t *places = memory_zero(names + 1, sizeof *places);
    uint32_t *order = memory_resize(NULL, count, sizeof *order);
    for (size_t i = 1; i < count; i++)
        places[ranks[flame->nodes.items[i].name] + 1]++;
    for (size_t i = 0; i < names; i++)
        places[i + 1] += places[i];
    for (size_t i = 1; i < count; i++)
        order[places[ranks[flame->nodes.items[i].name]]++] = (uint32_t)i;
    for (size_t i = 0; i < count; i++)
        flame->nodes.items[i].first_child = flame->nodes.items[i].next = 0;
    for (size_t i = count - 1; i-- > 0;) {
        struct flame_node *node = &flame->nodes.items[order[i]];
        struct flame_node *parent = &flame->nodes.items[node->parent];
        node->next = parent->first_child;
        parent->first_child = order[i];
    }
    free(ranks);
    free(places);
    free(order);
}

bool flame_finish(struct flame *flame, struct error *error) {
    if (!flame_total(flame, error))
        return false;
    flame_order_children(flame);
    return true;
}

/* ---- from the tree ---- */

struct builder {
    const struct tree *tree;
    const struct naming *naming;
    const struct flame_options *options;
    struct flame *flame;
    const struct naming_entry *locations; /* what they are called in the series at hand */
    uint32_t *memo;  /* for each tree node, its flame node … */
    uint32_t *group; /* … under the root labels of this flame node + 1 */
    VECTOR(uint32_t) path;
    uint32_t *names; /* the naming's strings in the flame */
};

static uint32_t builder_string(struct builder *b, uint32_t id) {
    if (id && !b->names[id])
        b->names[id] = strings_add(b->flame->strings, strings_get(b->naming->strings, id));
    return id ? b->names[id] : 0;
}

static struct label builder_label(struct builder *b, uint32_t index) {
    struct label label = b->naming->labels.items[index];
    label.name = builder_string(b, label.name);
    label.object = builder_string(b, label.object);
    return label;
}

/* One frame further from the root, or not: recursion folded, or too deep. `root` is where the frames begin. */
static uint32_t builder_step(struct builder *b, uint32_t at, uint32_t root,
                             const struct label *label) {
    const struct flame_node *node = &b->flame->nodes.items[at];
    if (b->options->fold_recursion && at != root && node->name == label->name)
        return at;
    if (b->options->max_depth &&
        node->depth - b->flame->nodes.items[root].depth >= b->options->max_depth)
        return at;
    return flame_child(b->flame, at, label);
}

static uint32_t builder_location(struct builder *b, uint32_t at, uint32_t root, uint32_t location) {
    const struct naming_entry *entry = &b->locations[location];
    if (entry->cut)
        at = root = 0;
    for (uint32_t i = 0; i < entry->count; i++) {
        struct label label = builder_label(b, entry->first + i);
        at = builder_step(b, at, root, &label);
    }
    return at;
}

/* Climb to the nearest ancestor known under this root, then come down again. Each node is entered once a root. */
static uint32_t builder_node(struct builder *b, uint32_t root, uint32_t node) {
    b->path.count = 0;
    while (node && b->group[node] != root + 1) {
        vector_push(&b->path, node);
        node = b->tree->nodes.items[node].parent;
    }
    uint32_t at = node ? b->memo[node] : root;
    while (b->path.count) {
        node = b->path.items[--b->path.count];
        at = builder_location(b, at, root, b->tree->nodes.items[node].location);
        b->memo[node] = at;
        b->group[node] = root + 1;
    }
    return at;
}

/* Merged from the leaf: nothing is shared between stacks, so each costs its depth. The series' labels come last, so that what one function
   costs stands together whoever called it. */
static uint32_t builder_node_reversed(struct builder *b, const struct naming_entry *series,
                                      uint32_t node) {
    uint32_t at = 0, root = 0;
    bool cut = false;
    for (; node && !cut; node = b->tree->nodes.items[node].parent) {
        const struct naming_entry *entry = &b->locations[b->tree->nodes.items[node].location];
        for (uint32_t i = entry->count; i-- > 0;) {
            struct label label = builder_label(b, entry->first + i);
            at = builder_step(b, at, root, &label);
        }
        cut = entry->cut;
    }
    if (at == root && !b->options->keep_empty)
        return at;
    for (uint32_t i = series->count; i-- > 0 && !cut;) {
        struct label label = builder_label(b, series->first + i);
        at = flame_child(b->flame, at, &label);
    }
    return at;
}

static uint32_t builder_root(struct builder *b, uint32_t series) {
    const struct naming_entry *entry = &b->naming->series.items[series];
    uint32_t at = 0;
    for (uint32_t i = 0; i < entry->count; i++) {
        struct label label = builder_label(b, entry->first + i);
        at = flame_child(b->flame, at, &label);
    }
    return at;
}

static void builder_cell(struct builder *b, const struct cell *cell, uint32_t root) {
    const struct naming_entry *series = &b->naming->series.items[cell->series];
    b->locations =
        series->alternate ? b->naming->alternates.items : b->naming->locations.items;
    uint32_t at = b->options->reverse ? builder_node_reversed(b, series, cell->node)
                                      : builder_node(b, root, cell->node);
    if (at == root && !b->options->keep_empty)
        return;
    uint64_t weight = b->options->by_samples ? cell->samples : cell->weight;
    struct flame_node *node = &b->flame->nodes.items[at];
    uint64_t *sum = series->before ? &node->self_before : &node->self;
    b->flame->is_diff |= series->before;
    node->counted = 1;
    if (__builtin_add_overflow(*sum, weight, sum))
        *sum = UINT64_MAX; /* flame_total() then finds that it does not add up */
}

struct cell_order {
    uint32_t root;
    uint32_t cell;
};

static int cell_order(const void *a, const void *b) {
    const struct cell_order *x = a, *y = b;
    return x->root != y->root ? (x->root > y->root) - (x->root < y->root)
                              : (x->cell > y->cell) - (x->cell < y->cell);
}

/* Root by root, so that the memo is used to the full. */
static void builder_cells(struct builder *b) {
    const struct tree *tree = b->tree;
    uint32_t *roots = memory_zero(tree->series.count, sizeof *roots);
    VECTOR(struct cell_order) order = {0};
    for (size_t i = 1; i < tree->series.count; i++)
        if (!b->naming->series.items[i].skip && !b->options->reverse)
            roots[i] = builder_root(b, (uint32_t)i);
    vector_reserve(&order, tree->cells.count);
    for (size_t i = 1; i < tree->cells.count; i++) {
        uint32_t series = tree->cells.items[i].series;
        if (!b->naming->series.items[series].skip)
            vector_push(&order, ((struct cell_order){roots[series], (uint32_t)i}));
    }
    if (order.count)
        qsort(order.items, order.count, sizeof *order.items, cell_order);
    for (size_t i = 0; i < order.count; i++)
        builder_cell(b, &tree->cells.items[order.items[i].cell], order.items[i].root);
    vector_release(&order);
    free(roots);
}

/* Roots (comms) whose every stack was left out must not stand there with nothing in them. */
static void flame_drop_empty(struct flame *flame, bool keep_zero) {
    size_t kept = 1;
    uint32_t *moved = memory_zero(flame->nodes.count, sizeof *moved);
    for (size_t i = flame->nodes.count; i-- > 1;) {
        const struct flame_node *node = &flame->nodes.items[i];
        if (node->total || node->total_before || (keep_zero && node->counted))
            moved[i] = 1;
        if (moved[i])
            moved[node->parent] = 1;
    }
    moved[0] = 0;
    for (size_t i = 1; i < flame->nodes.count; i++) {
        struct flame_node node = flame->nodes.items[i];
        if (!moved[i])
            continue;
        node.parent = moved[node.parent];
        moved[i] = (uint32_t)kept;
        flame->nodes.items[kept++] = node;
    }
    flame->nodes.count = kept;
    index_release(&flame->index);
    free(moved);
}

/* What the weights count: the events' unit where they share one. */
static struct text unit_of(const struct tree *tree, const struct flame_options *options) {
    if (options->by_samples || tree->events.count < 2)
        return TEXT("samples");
    uint32_t unit = tree->events.items[1].unit;
    for (size_t i = 2; i < tree->events.count; i++)
        if (tree->events.items[i].unit != unit)
            return TEXT("events");
    return strings_get(tree->strings, unit);
}

struct flame *flame_of_tree(const struct tree *tree, const struct naming *naming,
                            const struct flame_options *options, struct error *error) {
    if (!tree_check(tree, error))
        return NULL;
    struct builder b = {.tree = tree, .naming = naming, .options = options, .flame = flame_new()};
    b.memo = memory_table(tree->nodes.count, sizeof *b.memo);
    b.group = memory_table(tree->nodes.count, sizeof *b.group);
    b.names = memory_zero(strings_count(naming->strings) + 1, sizeof *b.names);
    b.flame->unit = strings_add(b.flame->strings, unit_of(tree, options));
    builder_cells(&b);
    free(b.memo);
    free(b.group);
    free(b.names);
    vector_release(&b.path);
    bool fine = flame_total(b.flame, error);
    if (fine) {
        flame_drop_empty(b.flame, options->keep_zero);
        flame_order_children(b.flame);
        return b.flame;
    }
    flame_free(b.flame);
    return NULL;
}
