/*
 * Persistent sets of mappings: AVL trees whose paths are copied.
 *
 * An AVL tree, not a treap: its depth depends neither on chance nor on the addresses, so hostile input cannot make it deep (46 levels for 2^32
 * nodes), and recursion is safe. Everything is built from join(), which joins two trees and a mapping between them in time proportional to the
 * difference of their heights. So a mapping that covers thousands of others removes them in O(log n), even if a thousand forks share them.
 *
 * A node is 16 bytes and refers to its mapping, because paths are copied often and mappings are not: a change in a tree of a hundred mappings
 * writes about eight nodes and one mapping, 160 bytes.
 */
#include "space/maps.h"

#include <stdlib.h>

void maps_release(struct maps *maps) {
    vector_release(&maps->nodes);
    vector_release(&maps->mappings);
}

/* Copies, not pointers, are passed around while building: both arrays move when they grow. */
static struct maps_node node_of(const struct maps *maps, uint32_t tree) {
    return maps->nodes.items[tree];
}

static const struct mapping *mapping_of(const struct maps *maps, uint32_t tree) {
    return &maps->mappings.items[maps->nodes.items[tree].mapping];
}

static unsigned height(const struct maps *maps, uint32_t tree) {
    return tree ? maps->nodes.items[tree].height : 0;
}

static bool executable_in(const struct maps *maps, uint32_t tree) {
    return tree && maps->nodes.items[tree].executable;
}

/* Four thousand million nodes are 64 GB: out of memory comes first. */
static uint32_t node_new(struct maps *maps, uint32_t left, uint32_t mapping, uint32_t right) {
    unsigned higher =
        height(maps, left) > height(maps, right) ? height(maps, left) : height(maps, right);
    struct maps_node node = {mapping, left, right, (uint8_t)(higher + 1),
                             maps->mappings.items[mapping].executable ||
                                 executable_in(maps, left) || executable_in(maps, right)};
    if (!maps->nodes.count)
        vector_push(&maps->nodes, (struct maps_node){0});
    assert(maps->nodes.count < UINT32_MAX);
    vector_push(&maps->nodes, node);
    return (uint32_t)maps->nodes.count - 1;
}

static uint32_t mapping_new(struct maps *maps, struct mapping mapping) {
    assert(maps->mappings.count < UINT32_MAX);
    vector_push(&maps->mappings, mapping);
    return (uint32_t)maps->mappings.count - 1;
}

/* ---- balance ---- */

/* The left tree is higher by two. */
static uint32_t rotate_right(struct maps *maps, uint32_t left, uint32_t mapping, uint32_t right) {
    struct maps_node l = node_of(maps, left);
    if (height(maps, l.left) >= height(maps, l.right))
        return node_new(maps, l.left, l.mapping, node_new(maps, l.right, mapping, right));
    struct maps_node middle = node_of(maps, l.right);
    uint32_t outer = node_new(maps, l.left, l.mapping, middle.left);
    return node_new(maps, outer, middle.mapping, node_new(maps, middle.right, mapping, right));
}

static uint32_t rotate_left(struct maps *maps, uint32_t left, uint32_t mapping, uint32_t right) {
    struct maps_node r = node_of(maps, right);
    if (height(maps, r.right) >= height(maps, r.left))
        return node_new(maps, node_new(maps, left, mapping, r.left), r.mapping, r.right);
    struct maps_node middle = node_of(maps, r.left);
    uint32_t outer = node_new(maps, left, mapping, middle.left);
    return node_new(maps, outer, middle.mapping, node_new(maps, middle.right, r.mapping, r.right));
}

/* Any two trees with a mapping between them. Descends the higher one until the heights are alike. */
static uint32_t join(struct maps *maps, uint32_t left, uint32_t mapping, uint32_t right) {
    unsigned l = height(maps, left);
    unsigned r = height(maps, right);
    if (l > r + 2) {
        struct maps_node node = node_of(maps, left);
        return join(maps, node.left, node.mapping, join(maps, node.right, mapping, right));
    }
    if (r > l + 2) {
        struct maps_node node = node_of(maps, right);
        return join(maps, join(maps, left, mapping, node.left), node.mapping, node.right);
    }
    if (l == r + 2)
        return rotate_right(maps, left, mapping, right);
    if (r == l + 2)
        return rotate_left(maps, left, mapping, right);
    return node_new(maps, left, mapping, right);
}

/* ---- ends ---- */

static uint32_t first_in(const struct maps *maps, uint32_t tree) {
    while (node_of(maps, tree).left)
        tree = node_of(maps, tree).left;
    return tree;
}

static uint32_t last_in(const struct maps *maps, uint32_t tree) {
    while (node_of(maps, tree).right)
        tree = node_of(maps, tree).right;
    return tree;
}

static uint32_t remove_first(struct maps *maps, uint32_t tree) {
    struct maps_node node = node_of(maps, tree);
    return node.left ? join(maps, remove_first(maps, node.left), node.mapping, node.right)
                     : node.right;
}

static uint32_t replace_last(struct maps *maps, uint32_t tree, uint32_t mapping) {
    struct maps_node node = node_of(maps, tree);
    return node.right
               ? node_new(maps, node.left, node.mapping, replace_last(maps, node.right, mapping))
               : node_new(maps, node.left, mapping, 0);
}

/* Two trees with nothing between them. */
static uint32_t concatenate(struct maps *maps, uint32_t left, uint32_t right) {
    if (!left || !right)
        return left ? left : right;
    uint32_t between = node_of(maps, first_in(maps, right)).mapping;
    return join(maps, left, between, remove_first(maps, right));
}

/* ---- split ---- */

/* What starts below `address`, and the rest. The joins' costs telescope: O(log n). */
static void split(struct maps *maps, uint32_t tree, uint64_t address, uint32_t *below,
                  uint32_t *rest) {
    if (!tree) {
        *below = *rest = 0;
        return;
    }
    struct maps_node node = node_of(maps, tree);
    uint32_t inner;
    if (mapping_of(maps, tree)->start < address) {
        split(maps, node.right, address, &inner, rest);
        *below = join(maps, node.left, node.mapping, inner);
    } else {
        split(maps, node.left, address, below, &inner);
        *rest = join(maps, inner, node.mapping, node.right);
    }
}

/* The part of `mapping` from `address` on. */
static struct mapping mapping_tail(struct mapping mapping, uint64_t address) {
    mapping.offset += address - mapping.start;
    mapping.start = address;
    return mapping;
}

/* The trees on both sides of [start, end); true if anything executable was between them. */
static bool take_out(struct maps *maps, uint32_t root, uint64_t start, uint64_t end,
                     uint32_t *below, uint32_t *above) {
    uint32_t rest, covered;
    split(maps, root, start, below, &rest);
    split(maps, rest, end, &covered, above);
    bool executable = executable_in(maps, covered);
    struct mapping last = {0};
    if (covered)
        last = *mapping_of(maps, last_in(maps, covered));
    if (*below) {
        struct mapping head = *mapping_of(maps, last_in(maps, *below));
        if (head.end > start) {
            if (!covered)
                last = head;
            executable |= head.executable;
            head.end = start;
            *below = replace_last(maps, *below, mapping_new(maps, head));
        }
    }
    if (last.end > end)
        *above = join(maps, 0, mapping_new(maps, mapping_tail(last, end)), *above);
    return executable;
}

/* ---- the two changes ---- */

/* The last mapping that starts below `address`, or NULL. */
static const struct mapping *find_below(const struct maps *maps, uint32_t tree, uint64_t address) {
    const struct mapping *found = NULL;
    while (tree) {
        const struct mapping *mapping = mapping_of(maps, tree);
        if (mapping->start < address) {
            found = mapping;
            tree = node_of(maps, tree).right;
        } else {
            tree = node_of(maps, tree).left;
        }
    }
    return found;
}

/* Where nothing overlaps: one path is copied. */
static uint32_t insert(struct maps *maps, uint32_t tree, uint32_t mapping) {
    if (!tree)
        return node_new(maps, 0, mapping, 0);
    struct maps_node node = node_of(maps, tree);
    if (maps->mappings.items[mapping].start < mapping_of(maps, tree)->start)
        return join(maps, insert(maps, node.left, mapping), node.mapping, node.right);
    return join(maps, node.left, node.mapping, insert(maps, node.right, mapping));
}

/* Every address of `mapping` already means the same. */
static bool says_the_same(const struct mapping *old, const struct mapping *mapping) {
    return old->start <= mapping->start && old->end >= mapping->end &&
           old->object == mapping->object && old->executable == mapping->executable &&
           old->offset + (mapping->start - old->start) == mapping->offset;
}

uint32_t maps_put(struct maps *maps, uint32_t root, const struct mapping *mapping,
                  bool *executable) {
    assert(mapping->start < mapping->end);
    const struct mapping *old = find_below(maps, root, mapping->end);
    *executable = false;
    if (old && says_the_same(old, mapping))
        return root;
    *executable = mapping->executable;
    bool overlaps = old && old->end > mapping->start;
    uint32_t number = mapping_new(maps, *mapping); /* `old` may have moved */
    if (!overlaps)
        return insert(maps, root, number);
    uint32_t below, above;
    *executable |= take_out(maps, root, mapping->start, mapping->end, &below, &above);
    return join(maps, below, number, above);
}

uint32_t maps_cut(struct maps *maps, uint32_t root, uint64_t start, uint64_t end,
                  bool *executable) {
    assert(start < end);
    const struct mapping *old = find_below(maps, root, end);
    *executable = false;
    if (!old || old->end <= start)
        return root;
    uint32_t below, above;
    *executable = take_out(maps, root, start, end, &below, &above);
    return concatenate(maps, below, above);
}

/* ---- questions ---- */

const struct mapping *maps_find(const struct maps *maps, uint32_t root, uint64_t address) {
    for (uint32_t tree = root; tree;) {
        const struct maps_node *node = &maps->nodes.items[tree];
        const struct mapping *mapping = &maps->mappings.items[node->mapping];
        if (address < mapping->start)
            tree = node->left;
        else if (address >= mapping->end)
            tree = node->right;
        else
            return mapping;
    }
    return NULL;
}

const struct mapping *maps_find_from(const struct maps *maps, uint32_t root, uint64_t address) {
    const struct mapping *found = NULL;
    for (uint32_t tree = root; tree;) {
        const struct maps_node *node = &maps->nodes.items[tree];
        const struct mapping *mapping = &maps->mappings.items[node->mapping];
        if (address < mapping->end)
            found = mapping;
        tree = address < mapping->end ? node->left : node->right;
    }
    return found;
}

void maps_each(const struct maps *maps, uint32_t root, void (*each)(void *, const struct mapping *),
               void *context) {
    uint32_t path[64];
    unsigned depth = 0;
    for (uint32_t tree = root; tree || depth;) {
        for (; tree; tree = node_of(maps, tree).left)
            path[depth++] = tree;
        tree = path[--depth];
        each(context, mapping_of(maps, tree));
        tree = node_of(maps, tree).right;
    }
}

/* As deep as the tree is high, which is balanced. */
uint32_t maps_copy(struct maps *to, const struct maps *from, uint32_t root,
                   uint32_t (*object)(void *context, uint32_t object), void *context) {
    if (!root)
        return 0;
    struct maps_node node = node_of(from, root);
    uint32_t left = maps_copy(to, from, node.left, object, context);
    uint32_t right = maps_copy(to, from, node.right, object, context);
    struct mapping mapping = from->mappings.items[node.mapping];
    mapping.object = object(context, mapping.object);
    return node_new(to, left, mapping_new(to, mapping), right);
}
