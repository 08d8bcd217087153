/*
 * The flame as a data structure: a trie by name, its totals and the order of its children.
 *
 * Children are sorted by the rank of their names, which is computed once for all names, so sorting compares each distinct name and not each
 * node. walk.c fills flames from trees.
 */
#include "stacks/flame.h"

#include <stdlib.h>

struct flame *flame_of_strings(struct strings *strings) {
    struct flame *flame = memory_zero(1, sizeof *flame);
    flame->strings = strings;
    vector_push(&flame->nodes, ((struct flame_node){0}));
    return flame;
}

struct flame *flame_new(void) {
    return flame_of_strings(strings_new());
}

struct flame *flame_of_naming(const struct naming *naming) {
    return flame_of_strings(strings_share(naming->strings));
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

uint32_t flame_append(struct flame *flame, uint32_t parent, const struct label *label) {
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

void flame_link(struct flame *flame, const uint32_t *ranks, size_t rank_count) {
    size_t count = flame->nodes.count;
    uint32_t *keys = memory_zero(count, sizeof *keys);
    for (size_t i = 0; i < count; i++) {
        keys[i] = i && ranks ? ranks[flame->nodes.items[i].name] : 0;
        flame->nodes.items[i].first_child = flame->nodes.items[i].next = 0;
    }
    uint32_t *order = counting_sort(keys, count, rank_count + 1, NULL);
    for (size_t i = count; i-- > 1;) {
        struct flame_node *node = &flame->nodes.items[order[i]];
        struct flame_node *parent = &flame->nodes.items[node->parent];
        node->next = parent->first_child;
        parent->first_child = order[i];
    }
    free(keys);
    free(order);
}

void flame_order(struct flame *flame) {
    uint32_t *ranks = memory_zero(strings_count(flame->strings) + 1, sizeof *ranks);
    flame_link(flame, ranks, flame_rank_names(flame, ranks));
    free(ranks);
}

bool flame_finish(struct flame *flame, struct error *error) {
    if (!flame_total(flame, error))
        return false;
    flame_order(flame);
    return true;
}

/* ---- joining ---- */

void flame_node_add(struct flame_node *node, const struct flame_node *other) {
    node->counted |= other->counted;
    if (__builtin_add_overflow(node->self, other->self, &node->self))
        node->self = UINT64_MAX;
    if (__builtin_add_overflow(node->self_before, other->self_before, &node->self_before))
        node->self_before = UINT64_MAX;
}

void flame_join(struct flame *flame, const struct flame *other, bool is_last) {
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

static bool flame_has_empty(const struct flame *flame) {
    for (size_t i = 1; i < flame->nodes.count; i++)
        if (!flame->nodes.items[i].total && !flame->nodes.items[i].total_before)
            return true;
    return false;
}

void flame_drop_empty(struct flame *flame, bool keep_zero) {
    if (!flame_has_empty(flame))
        return;
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

/* ---- siblings by weight ---- */

static int order_nodes(const void *a, const void *b, void *context) {
    const struct flame *flame = context;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct flame_node *x = &flame->nodes.items[i], *y = &flame->nodes.items[k];
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    int order = text_compare(flame_name(flame, i), flame_name(flame, k));
    return order ? order : (i > k) - (i < k);
}

/* All nodes by weight, then each is put in front of its siblings, the lightest first. */
void flame_link_by_weight(const struct flame *flame, uint32_t **first, uint32_t **next) {
    size_t count = flame->nodes.count;
    uint32_t *order = memory_resize(NULL, count, sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, order_nodes, (void *)flame);
    *first = memory_zero(count, sizeof **first);
    *next = memory_zero(count, sizeof **next);
    for (size_t i = count; i-- > 0;) {
        uint32_t node = order[i], parent = flame->nodes.items[node].parent;
        if (!node)
            continue;
        (*next)[node] = (*first)[parent];
        (*first)[parent] = node;
    }
    free(order);
}
