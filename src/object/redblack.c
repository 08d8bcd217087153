/*
 * Replay perf's red-black tree of symbols.
 *
 * perf looks up an address by walking down its tree: left if the address lies before a symbol, right if it lies after it; the first symbol that
 * contains it is the result. If ranges overlap (labels inside assembler functions, reused JIT memory), the result depends on which of them is
 * nearer to the root, and some are never found. To get the same result, the tree is built here in the same order by the textbook's rules, which
 * lead to the same shape.
 *
 * Nodes are numbers plus one, in one array, so that a step down costs one cache miss; 0 is the empty node, which is black.
 */
#include "object/symbols.h"

#include <stdlib.h>

struct node {
    uint64_t start;
    uint32_t child[2];
    uint32_t parent;
    uint32_t red;
};

struct tree {
    struct node *nodes;
    uint32_t root;
};

static int side_of(const struct tree *tree, uint32_t node) {
    return tree->nodes[tree->nodes[node].parent].child[1] == node;
}

/* Puts `other` where `node` hangs. */
static void tree_replace(struct tree *tree, uint32_t node, uint32_t other) {
    uint32_t parent = tree->nodes[node].parent;
    if (!parent)
        tree->root = other;
    else
        tree->nodes[parent].child[side_of(tree, node)] = other;
    if (other)
        tree->nodes[other].parent = parent;
}

/* `node` goes down to the given side, its other child takes its place. */
static void tree_rotate(struct tree *tree, uint32_t node, int side) {
    uint32_t rises = tree->nodes[node].child[!side], moves = tree->nodes[rises].child[side];
    tree_replace(tree, node, rises);
    tree->nodes[node].child[!side] = moves;
    if (moves)
        tree->nodes[moves].parent = node;
    tree->nodes[rises].child[side] = node;
    tree->nodes[node].parent = rises;
}

static void tree_settle(struct tree *tree, uint32_t node) {
    uint32_t parent;
    while ((parent = tree->nodes[node].parent) && tree->nodes[parent].red) {
        uint32_t grandparent = tree->nodes[parent].parent;
        int side = side_of(tree, parent);
        uint32_t uncle = tree->nodes[grandparent].child[!side];
        if (uncle && tree->nodes[uncle].red) {
            tree->nodes[uncle].red = tree->nodes[parent].red = 0;
            tree->nodes[grandparent].red = 1;
            node = grandparent;
            continue;
        }
        if (side_of(tree, node) != side) {
            tree_rotate(tree, parent, side);
            parent = node;
        }
        tree->nodes[parent].red = 0;
        tree->nodes[grandparent].red = 1;
        tree_rotate(tree, grandparent, !side);
        break;
    }
    tree->nodes[tree->root].red = 0;
}

static void tree_insert(struct tree *tree, uint32_t node) {
    uint64_t start = tree->nodes[node].start;
    uint32_t parent = 0, at = tree->root;
    int side = 0;
    while (at) {
        parent = at;
        side = start >= tree->nodes[at].start;
        at = tree->nodes[at].child[side];
    }
    tree->nodes[node].parent = parent;
    tree->nodes[node].red = 1;
    if (parent)
        tree->nodes[parent].child[side] = node;
    else
        tree->root = node;
    tree_settle(tree, node);
}

/* `parent`'s child on `side`, which may be empty, is one black short. */
static void tree_lighten(struct tree *tree, uint32_t parent, int side) {
    for (;;) {
        uint32_t sibling = tree->nodes[parent].child[!side];
        if (tree->nodes[sibling].red) {
            tree->nodes[sibling].red = 0;
            tree->nodes[parent].red = 1;
            tree_rotate(tree, parent, side);
            sibling = tree->nodes[parent].child[!side];
        }
        uint32_t near = tree->nodes[sibling].child[side], far = tree->nodes[sibling].child[!side];
        if (!tree->nodes[near].red && !tree->nodes[far].red) {
            tree->nodes[sibling].red = 1;
            uint32_t up = tree->nodes[parent].parent;
            if (tree->nodes[parent].red || !up) {
                tree->nodes[parent].red = 0;
                return;
            }
            side = side_of(tree, parent);
            parent = up;
            continue;
        }
        if (!tree->nodes[far].red) {
            tree->nodes[near].red = 0;
            tree->nodes[sibling].red = 1;
            tree_rotate(tree, sibling, !side);
            sibling = near;
            far = tree->nodes[sibling].child[!side];
        }
        tree->nodes[sibling].red = tree->nodes[parent].red;
        tree->nodes[parent].red = tree->nodes[far].red = 0;
        tree_rotate(tree, parent, side);
        return;
    }
}

/* With at most one child: that child, which is red, takes its place and turns black. */
static void tree_cut(struct tree *tree, uint32_t node) {
    uint32_t child =
        tree->nodes[node].child[0] ? tree->nodes[node].child[0] : tree->nodes[node].child[1];
    uint32_t parent = tree->nodes[node].parent;
    int side = parent ? side_of(tree, node) : 0;
    tree_replace(tree, node, child);
    if (child)
        tree->nodes[child].red = 0;
    else if (!tree->nodes[node].red && parent)
        tree_lighten(tree, parent, side);
}

/* With two: its successor trades places with it first, colours and all. */
static void tree_erase(struct tree *tree, uint32_t node) {
    if (!tree->nodes[node].child[0] || !tree->nodes[node].child[1]) {
        tree_cut(tree, node);
        return;
    }
    uint32_t next = tree->nodes[node].child[1];
    while (tree->nodes[next].child[0])
        next = tree->nodes[next].child[0];
    uint32_t child = tree->nodes[next].child[1], parent = tree->nodes[next].parent;
    bool short_of_black = !child && !tree->nodes[next].red;
    int side = side_of(tree, next);
    tree_replace(tree, next, child);
    if (child)
        tree->nodes[child].red = 0;
    tree_replace(tree, node, next);
    tree->nodes[next].red = tree->nodes[node].red;
    for (int i = 0; i < 2; i++) {
        uint32_t below = tree->nodes[node].child[i];
        tree->nodes[next].child[i] = below;
        if (below)
            tree->nodes[below].parent = next;
    }
    if (short_of_black)
        tree_lighten(tree, parent == node ? next : parent, side);
}

static uint32_t placed(const uint32_t *position, uint32_t node) {
    return node ? position[node - 1] : SYMBOLS_NONE;
}

void symbols_tree_replay(struct symbols_tree *to, const struct perf_rounds *rounds,
                         const uint32_t *position) {
    struct tree tree = {.nodes = memory_zero(rounds->all.count + 1, sizeof *tree.nodes)};
    for (size_t i = 0; i < rounds->all.count; i++)
        tree.nodes[i + 1].start = rounds->all.items[i].start;
    for (size_t i = 0; i < rounds->log.count; i++) {
        uint32_t what = rounds->log.items[i];
        if (what & LOG_ERASED)
            tree_erase(&tree, (what & ~LOG_ERASED) + 1);
        else
            tree_insert(&tree, what + 1);
    }
    to->left = memory_resize(NULL, rounds->live.count, sizeof(uint32_t));
    to->right = memory_resize(NULL, rounds->live.count, sizeof(uint32_t));
    to->root = placed(position, tree.root);
    for (size_t i = 0; i < rounds->live.count; i++) {
        uint32_t node = rounds->live.items[i] + 1;
        to->left[i] = placed(position, tree.nodes[node].child[0]);
        to->right[i] = placed(position, tree.nodes[node].child[1]);
    }
    free(tree.nodes);
}
