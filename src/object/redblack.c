/*
 * perf's red-black tree of symbols, replayed.
 *
 * perf looks an address up by walking down its tree: left when the address lies before a symbol, right when it lies behind, and the
 * first symbol that holds it is the answer. With ranges that overlap (labels inside assembler functions, reused
 * JIT memory) the answer depends on which of them is nearer to the root, and some are never found. To give the same answer, the tree
 * is grown here in the same order, by the textbook's rules, which give the same shape.
 *
 * Nodes are numbers plus one, in arrays; 0 is nobody, and black.
 */
#include "object/symbols.h"

#include <stdlib.h>

struct tree {
    uint32_t *child[2];
    uint32_t *parent;
    uint8_t *red;
    uint32_t root;
};

static void tree_init(struct tree *tree, size_t count) {
    tree->child[0] = memory_zero(count + 1, sizeof(uint32_t));
    tree->child[1] = memory_zero(count + 1, sizeof(uint32_t));
    tree->parent = memory_zero(count + 1, sizeof(uint32_t));
    tree->red = memory_zero(count + 1, 1);
    tree->root = 0;
}

static void tree_release(struct tree *tree) {
    free(tree->child[0]);
    free(tree->child[1]);
    free(tree->parent);
    free(tree->red);
}

static int side_of(const struct tree *tree, uint32_t node) {
    return tree->child[1][tree->parent[node]] == node;
}

/* Puts `other` where `node` hangs. */
static void tree_replace(struct tree *tree, uint32_t node, uint32_t other) {
    uint32_t parent = tree->parent[node];
    if (!parent)
        tree->root = other;
    else
        tree->child[side_of(tree, node)][parent] = other;
    if (other)
        tree->parent[other] = parent;
}

/* `node` goes down to the given side, its other child takes its place. */
static void tree_rotate(struct tree *tree, uint32_t node, int side) {
    uint32_t rises = tree->child[!side][node], moves = tree->child[side][rises];
    tree_replace(tree, node, rises);
    tree->child[!side][node] = moves;
    if (moves)
        tree->parent[moves] = node;
    tree->child[side][rises] = node;
    tree->parent[node] = rises;
}

static void tree_settle(struct tree *tree, uint32_t node) {
    uint32_t parent;
    while ((parent = tree->parent[node]) && tree->red[parent]) {
        uint32_t grandparent = tree->parent[parent];
        int side = side_of(tree, parent);
        uint32_t uncle = tree->child[!side][grandparent];
        if (uncle && tree->red[uncle]) {
            tree->red[uncle] = tree->red[parent] = 0;
            tree->red[grandparent] = 1;
            node = grandparent;
            continue;
        }
        if (side_of(tree, node) != side) {
            tree_rotate(tree, parent, side);
            parent = node;
        }
        tree->red[parent] = 0;
        tree->red[grandparent] = 1;
        tree_rotate(tree, grandparent, !side);
        break;
    }
    tree->red[tree->root] = 0;
}

static void tree_insert(struct tree *tree, const struct entry *all, uint32_t node) {
    uint64_t start = all[node - 1].start;
    uint32_t parent = 0, at = tree->root;
    int side = 0;
    while (at) {
        parent = at;
        side = start >= all[at - 1].start;
        at = tree->child[side][at];
    }
    tree->parent[node] = parent;
    tree->red[node] = 1;
    if (parent)
        tree->child[side][parent] = node;
    else
        tree->root = node;
    tree_settle(tree, node);
}

/* `parent`'s child on `side` (maybe nobody) is one black short. */
static void tree_lighten(struct tree *tree, uint32_t parent, int side) {
    for (;;) {
        uint32_t sibling = tree->child[!side][parent];
        if (tree->red[sibling]) {
            tree->red[sibling] = 0;
            tree->red[parent] = 1;
            tree_rotate(tree, parent, side);
            sibling = tree->child[!side][parent];
        }
        uint32_t near = tree->child[side][sibling], far = tree->child[!side][sibling];
        if (!tree->red[near] && !tree->red[far]) {
            tree->red[sibling] = 1;
            uint32_t up = tree->parent[parent];
            if (tree->red[parent] || !up) {
                tree->red[parent] = 0;
                return;
            }
            side = side_of(tree, parent);
            parent = up;
            continue;
        }
        if (!tree->red[far]) {
            tree->red[near] = 0;
            tree->red[sibling] = 1;
            tree_rotate(tree, sibling, !side);
            sibling = near;
            far = tree->child[!side][sibling];
        }
        tree->red[sibling] = tree->red[parent];
        tree->red[parent] = tree->red[far] = 0;
        tree_rotate(tree, parent, side);
        return;
    }
}

/* With at most one child: that child, which is red, takes its place and turns black. */
static void tree_cut(struct tree *tree, uint32_t node) {
    uint32_t child = tree->child[0][node] ? tree->child[0][node] : tree->child[1][node];
    uint32_t parent = tree->parent[node];
    int side = parent ? side_of(tree, node) : 0;
    tree_replace(tree, node, child);
    if (child)
        tree->red[child] = 0;
    else if (!tree->red[node] && parent)
        tree_lighten(tree, parent, side);
}

/* With two: its successor trades places with it first, colours and all. */
static void tree_erase(struct tree *tree, uint32_t node) {
    if (!tree->child[0][node] || !tree->child[1][node]) {
        tree_cut(tree, node);
        return;
    }
    uint32_t next = tree->child[1][node];
    while (tree->child[0][next])
        next = tree->child[0][next];
    uint32_t child = tree->child[1][next], parent = tree->parent[next];
    bool short_of_black = !child && !tree->red[next];
    int side = side_of(tree, next);
    tree_replace(tree, next, child);
    if (child)
        tree->red[child] = 0;
    tree_replace(tree, node, next);
    tree->red[next] = tree->red[node];
    for (int i = 0; i < 2; i++) {
        uint32_t below = tree->child[i][node];
        tree->child[i][next] = below;
        if (below)
            tree->parent[below] = next;
    }
    if (short_of_black)
        tree_lighten(tree, parent == node ? next : parent, side);
}

static uint32_t placed(const uint32_t *position, uint32_t node) {
    return node ? position[node - 1] : SYMBOLS_NONE;
}

void symbols_tree_replay(struct symbols_tree *to, const struct perf_rounds *rounds,
                         const uint32_t *position) {
    struct tree tree;
    tree_init(&tree, rounds->all.count);
    for (size_t i = 0; i < rounds->log.count; i++) {
        uint32_t what = rounds->log.items[i];
        if (what & LOG_ERASED)
            tree_erase(&tree, (what & ~LOG_ERASED) + 1);
        else
            tree_insert(&tree, rounds->all.items, what + 1);
    }
    to->left = memory_resize(NULL, rounds->live.count, sizeof(uint32_t));
    to->right = memory_resize(NULL, rounds->live.count, sizeof(uint32_t));
    to->root = placed(position, tree.root);
    for (size_t i = 0; i < rounds->live.count; i++) {
        uint32_t node = rounds->live.items[i] + 1;
        to->left[i] = placed(position, tree.child[0][node]);
        to->right[i] = placed(position, tree.child[1][node]);
    }
    tree_release(&tree);
}
