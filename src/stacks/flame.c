/*
 * The flame: the tree by name.
 *
 * A tree node becomes a path of flame nodes once for each set of root labels it is counted under, root by root and parents first: one
 * probe of the flame's index a label. Children are put in order by the rank of their names, which is worked
 * out once for all names, so ordering compares each distinct name and not each node.
 */
#include "stacks/flame.h"

#include <stdlib.h>

static struct flame *flame_with(struct strings *strings) {
    struct flame *flame = memory_zero(1, sizeof *flame);
    flame->strings = strings;
    vector_push(&flame->nodes, ((struct flame_node){0}));
    return flame;
}

struct flame *flame_new(void) {
    return flame_with(strings_new());
}

struct flame *flame_of_naming(const struct naming *naming) {
    return flame_with(strings_share(naming->strings));
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

static uint32_t flame_append(struct flame *flame, uint32_t parent, const struct label *label) {
    struct flame_node node = {.parent = parent,
                              .name = label->name,
                              .object = label->object,
                              .kinds = label->kinds,
                              .depth = flame->nodes.items[parent].depth + 1};
    vector_push(&flame->nodes, node);
    return (uint32_t)flame->nodes.count - 1;
}

/* Most nodes have one child or none. The first is linked to its parent; only those after it are in the index, and the second to the first,
   which says that there are some. */
static uint32_t flame_new_child(struct flame *flame, uint32_t parent, const struct label *label) {
    uint32_t first = flame->nodes.items[parent].first_child;
    uint32_t id = flame_append(flame, parent, label);
    if (!first) {
        flame->nodes.items[parent].first_child = id;
        return id;
    }
    if (!flame->nodes.items[first].next)
        flame->nodes.items[first].next = id;
    index_add(&flame->index, hash_mix(parent, label->name), id);
    return id;
}

static uint32_t flame_indexed_child(const struct flame *flame, uint32_t parent, uint32_t name) {
    uint32_t id;
    for (struct probe p = index_probe(&flame->index, hash_mix(parent, name));
         (id = index_next(&flame->index, &p));)
        if (flame->nodes.items[id].parent == parent && flame->nodes.items[id].name == name)
            break;
    return id;
}

uint32_t flame_child(struct flame *flame, uint32_t parent, const struct label *label) {
    uint32_t first = flame->nodes.items[parent].first_child, found = 0;
    if (first && flame->nodes.items[first].name == label->name)
        found = first;
    else if (first && flame->nodes.items[first].next)
        found = flame_indexed_child(flame, parent, label->name);
    if (found) {
        flame_node_join(flame, &flame->nodes.items[found], label);
        return found;
    }
    return flame_new_child(flame, parent, label);
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

/* All nodes by rank, then each is put in front of its siblings, last rank first. The root, of rank 0, is the first of all. */
static void flame_order_children(struct flame *flame) {
    size_t count = flame->nodes.count;
    uint32_t *ranks = memory_zero(strings_count(flame->strings) + 1, sizeof *ranks);
    size_t names = flame_rank_names(flame, ranks);
    uint32_t *keys = memory_resize(NULL, count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        keys[i] = i ? ranks[flame->nodes.items[i].name] : 0;
        flame->nodes.items[i].first_child = flame->nodes.items[i].next = 0;
    }
    uint32_t *order = counting_sort(keys, count, names + 1, NULL);
    for (size_t i = count; i-- > 1;) {
        struct flame_node *node = &flame->nodes.items[order[i]];
        struct flame_node *parent = &flame->nodes.items[node->parent];
        node->next = parent->first_child;
        parent->first_child = order[i];
    }
    free(ranks);
    free(keys);
    free(order);
}

bool flame_finish(struct flame *flame, struct error *error) {
    if (!flame_total(flame, error))
        return false;
    flame_order_children(flame);
    return true;
}

/* ---- from the tree ---- */

enum { AHEAD = 16 }; /* how far ahead of its use memory is asked for */

struct builder {
    const struct tree *tree;
    const struct naming *naming;
    const struct flame_options *options;
    struct flame *flame;
    const struct naming_entry *locations; /* what they are called in the series at hand */
    uint32_t *memo; /* for each node of its share, its flame node under the root labels at hand … */
    uint64_t *wanted;  /* … if its bit is set here */
    bool all_wanted;   /* there is one root, so that all nodes are on the way to its cells */
    uint32_t from, to; /* the nodes that are its share */
    bool *cut;         /* by tree node: its callers are dropped; NULL: no depth is asked for */
    APART;
};

/* The root is everybody's, and comes first. */
static uint32_t *builder_memo(const struct builder *b, uint32_t node) {
    return &b->memo[node ? node - b->from + 1 : 0];
}

static const struct label *builder_label(const struct builder *b, uint32_t index) {
    return &b->naming->labels.items[index];
}

/* Whether it is of its share. What has no stack is of the first. */
static bool builder_has(const struct builder *b, const struct cell *cell) {
    return cell->node ? cell->node >= b->from && cell->node < b->to : b->from == 1;
}

static bool builder_takes(const struct builder *b, const struct cell *cell) {
    return builder_has(b, cell) && !b->naming->series.items[cell->series].skip;
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
        at = builder_step(b, at, root, builder_label(b, entry->first + i));
    }
    return at;
}

/* ---- nodes, parents first ---- */

/* The node and all that leads to it; whoever is wanted already has all before it. */
static void builder_want(struct builder *b, uint32_t node) {
    while (node && !(b->wanted[node / 64] >> node % 64 & 1)) {
        b->wanted[node / 64] |= 1ull << node % 64;
        node = b->tree->nodes.items[node].parent;
    }
}

/* The memory that builder_enter() will need for a node a little further on is asked for before: first the flame node of its parent, then that
   one's first child and where the others would be in the index. Where the node's parent is not entered by then, in vain. */
static void builder_ask_parent(const struct builder *b, uint32_t node) {
    __builtin_prefetch(&b->flame->nodes.items[*builder_memo(b, b->tree->nodes.items[node].parent)]);
}

static void builder_ask_child(const struct builder *b, uint32_t node) {
    const struct node *n = &b->tree->nodes.items[node];
    const struct naming_entry *entry = &b->locations[n->location];
    const struct index *index = &b->flame->index;
    uint32_t parent = *builder_memo(b, n->parent);
    __builtin_prefetch(&b->flame->nodes.items[b->flame->nodes.items[parent].first_child]);
    if (!entry->count || !index->slots)
        return;
    uint32_t name = builder_label(b, entry->first)->name;
    __builtin_prefetch(&index->slots[index_probe(index, hash_mix(parent, name)).slot]);
}

static void builder_enter(struct builder *b, uint32_t root, uint32_t node) {
    const struct node *n = &b->tree->nodes.items[node];
    if (b->cut) {
        b->cut[node] = b->cut[n->parent] || b->locations[n->location].cut;
        root = b->cut[node] ? 0 : root;
    }
    *builder_memo(b, node) = builder_location(b, *builder_memo(b, n->parent), root, n->location);
}

/* The next node that is wanted, from `node` on; the share's end if there is none. */
static size_t builder_next(const struct builder *b, size_t node) {
    if (b->all_wanted || node >= b->to)
        return node < b->to ? node : b->to;
    uint64_t bits = b->wanted[node / 64] >> node % 64;
    if (bits)
        return node + (unsigned)__builtin_ctzll(bits);
    size_t word = node / 64 + 1, words = b->to / 64 + 1;
    while (word < words && !b->wanted[word])
        word++;
    return word < words ? 64 * word + (unsigned)__builtin_ctzll(b->wanted[word]) : b->to;
}

/* Every node that is wanted under this root, once. Parents stand before their children. */
static void builder_enter_wanted(struct builder *b, uint32_t root) {
    enum { RING = 2 * AHEAD };
    uint32_t ring[RING];
    size_t count = 0;
    *builder_memo(b, 0) = root;
    for (size_t node = builder_next(b, b->from); node < b->to;
         node = builder_next(b, node + 1), count++) {
        ring[count % RING] = (uint32_t)node;
        builder_ask_parent(b, (uint32_t)node);
        if (count >= AHEAD / 2)
            builder_ask_child(b, ring[(count - AHEAD / 2) % RING]);
        if (count >= AHEAD)
            builder_enter(b, root, ring[(count - AHEAD) % RING]);
    }
    for (size_t i = count < AHEAD ? 0 : count - AHEAD; i < count; i++)
        builder_enter(b, root, ring[i % RING]);
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
            at = builder_step(b, at, root, builder_label(b, entry->first + i));
        }
        cut = entry->cut;
    }
    if (at == root && !b->options->keep_empty)
        return at;
    for (uint32_t i = series->count; i-- > 0 && !cut;) {
        at = flame_child(b->flame, at, builder_label(b, series->first + i));
    }
    return at;
}

static uint32_t builder_root(struct builder *b, uint32_t series) {
    const struct naming_entry *entry = &b->naming->series.items[series];
    uint32_t at = 0;
    for (uint32_t i = 0; i < entry->count; i++) {
        at = flame_child(b->flame, at, builder_label(b, entry->first + i));
    }
    return at;
}

static void builder_use(struct builder *b, const struct naming_entry *series) {
    b->locations = series->alternate ? b->naming->alternates.items : b->naming->locations.items;
}

static void builder_count(struct builder *b, const struct cell *cell, uint32_t root) {
    const struct naming_entry *series = &b->naming->series.items[cell->series];
    builder_use(b, series);
    uint32_t at = b->options->reverse ? builder_node_reversed(b, series, cell->node)
                                      : *builder_memo(b, cell->node);
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

/* Under one root: first every node that a cell leads to, then the weights. Series that share root labels agree on what locations are
   called. */
static void builder_root_cells(struct builder *b, uint32_t root, const uint32_t *order,
                               size_t count, bool is_only) {
    const struct cell *cells = b->tree->cells.items;
    if (!b->options->reverse && count) {
        b->all_wanted = is_only;
        memset(b->wanted, 0, (b->tree->nodes.count / 64 + 1) * sizeof *b->wanted);
        for (size_t i = 0; i < count && !b->all_wanted; i++)
            builder_want(b, cells[order[i]].node);
        builder_use(b, &b->naming->series.items[cells[order[0]].series]);
        builder_enter_wanted(b, root);
    }
    for (size_t i = 0; i < count; i++) {
        if (!b->options->reverse && i + AHEAD < count)
            __builtin_prefetch(
                &b->flame->nodes.items[*builder_memo(b, cells[order[i + AHEAD]].node)], 1);
        builder_count(b, &cells[order[i]], root);
    }
}

/* Cells root by root; behind them those that are left out, with cell 0, which is none. */
static void builder_cells(struct builder *b) {
    const struct tree *tree = b->tree;
    uint32_t *roots = memory_zero(tree->series.count, sizeof *roots);
    for (size_t i = 1; i < tree->series.count; i++)
        if (!b->naming->series.items[i].skip && !b->options->reverse)
            roots[i] = builder_root(b, (uint32_t)i);
    uint32_t root_count = (uint32_t)b->flame->nodes.count;
    uint32_t *keys = memory_resize(NULL, tree->cells.count, sizeof *keys);
    size_t all = 0;
    for (size_t i = 0; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        all += i && builder_has(b, cell);
        keys[i] = i && builder_takes(b, cell) ? roots[cell->series] : root_count;
    }
    size_t *ends = memory_zero(root_count + 1, sizeof *ends);
    uint32_t *order = counting_sort(keys, tree->cells.count, root_count + 1, ends);
    for (size_t i = 0, start = 0; i < root_count; start = ends[i++])
        builder_root_cells(b, (uint32_t)i, order + start, ends[i] - start, ends[i] - start == all);
    free(order);
    free(ends);
    free(keys);
    free(roots);
}

/* ---- shares ---- */

/* Memory that was freed before belongs to the main thread: it is asked for there, and used again. */
static void builder_begin(struct builder *b) {
    enum { NODES_RESERVED = 1 << 20 };
    size_t all = b->tree->nodes.count, count = b->from == 1 ? all : b->to - b->from + 1;
    b->flame = flame_of_naming(b->naming);
    /* Room for as many nodes as there may be, and the others are put behind the first's: what is not touched takes no memory. */
    vector_reserve(&b->flame->nodes, count < NODES_RESERVED ? count : NODES_RESERVED);
    b->memo = memory_table(b->to - b->from + 1, sizeof *b->memo);
    b->wanted = memory_zero(all / 64 + 1, sizeof *b->wanted);
    b->cut = b->options->max_depth ? memory_zero(all, sizeof *b->cut) : NULL;
}

static void builder_run(void *context, unsigned thread, size_t item) {
    builder_cells((struct builder *)context + item);
}

static void builder_end(struct builder *b) {
    free(b->memo);
    free(b->wanted);
    free(b->cut);
}

static void flame_node_add(struct flame_node *node, const struct flame_node *other) {
    node->counted |= other->counted;
    if (__builtin_add_overflow(node->self, other->self, &node->self))
        node->self = UINT64_MAX;
    if (__builtin_add_overflow(node->self_before, other->self_before, &node->self_before))
        node->self_before = UINT64_MAX;
}

/* Adds another flame of the same strings. Below a node that is new all are new, and nobody has to be looked for; nor will they be, if it is
   the last. */
static void flame_join(struct flame *flame, const struct flame *other, bool is_last) {
    uint32_t *moved = memory_zero(other->nodes.count, sizeof *moved);
    size_t known = flame->nodes.count;
    vector_reserve(&flame->nodes, known + other->nodes.count);
    for (size_t i = 0; i < other->nodes.count; i++) {
        const struct flame_node *node = &other->nodes.items[i];
        struct label label = {node->name, node->object, node->kinds};
        uint32_t parent = moved[node->parent];
        if (i > 0)
            moved[i] = parent < known ? flame_child(flame, parent, &label)
                       : is_last      ? flame_append(flame, parent, &label)
                                      : flame_new_child(flame, parent, &label);
        flame_node_add(&flame->nodes.items[moved[i]], node);
    }
    flame->is_diff |= other->is_diff;
    free(moved);
}

/* Where its nodes' parts begin and end, as long as they are all there is: their nodes have no parents in each other. Stacks that are turned
   round have nothing to share. */
static size_t share_count(const struct tree *tree, const struct flame_options *options) {
    size_t count = tree->ends.count;
    bool whole = count && tree->ends.items[count - 1] == tree->nodes.count;
    return whole && !options->reverse ? count : 1;
}

static struct flame *flame_in_shares(const struct tree *tree, const struct naming *naming,
                                     const struct flame_options *options) {
    size_t count = share_count(tree, options);
    struct builder *builders = memory_zero(count, sizeof *builders);
    for (size_t i = 0; i < count; i++) {
        builders[i] = (struct builder){
            .tree = tree,
            .naming = naming,
            .options = options,
            .from = i ? tree->ends.items[i - 1] : 1,
            .to = count > 1 ? tree->ends.items[i] : (uint32_t)tree->nodes.count,
        };
        builder_begin(&builders[i]);
    }
    parallel_run((unsigned)count, count, builder_run, builders);
    for (size_t i = 0; i < count; i++)
        builder_end(&builders[i]);
    struct flame *flame = builders[0].flame;
    for (size_t i = 1; i < count; i++) {
        flame_join(flame, builders[i].flame, i + 1 == count);
        flame_free(builders[i].flame);
    }
    free(builders);
    return flame;
}

static bool flame_has_empty(const struct flame *flame) {
    for (size_t i = 1; i < flame->nodes.count; i++)
        if (!flame->nodes.items[i].total && !flame->nodes.items[i].total_before)
            return true;
    return false;
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

struct text flame_unit(const struct tree *tree, const struct flame_options *options) {
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
    struct flame *flame = flame_in_shares(tree, naming, options);
    flame->unit = strings_add(flame->strings, flame_unit(tree, options));
    bool fine = flame_total(flame, error);
    if (fine) {
        if (flame_has_empty(flame))
            flame_drop_empty(flame, options->keep_zero);
        flame_order_children(flame);
        return flame;
    }
    flame_free(flame);
    return NULL;
}
