/* What the fuzzers of text formats share: read, name, make the flame, and check what must hold of any input. */
#ifndef WICK_FUZZ_READING_H
#define WICK_FUZZ_READING_H

#include "import/import.h"
#include "view/view.h"

#include <stdlib.h>

/* Children in order, totals that add up. */
static inline void check_flame(const struct flame *flame) {
    for (size_t i = 0; i < flame->nodes.count; i++) {
        const struct flame_node *node = &flame->nodes.items[i];
        uint64_t sum = node->self, before = node->self_before;
        for (uint32_t id = node->first_child; id; id = flame->nodes.items[id].next) {
            const struct flame_node *other = &flame->nodes.items[id];
            if (other->parent != i || other->depth != node->depth + 1)
                abort();
            sum += other->total;
            before += other->total_before;
        }
        if (sum != node->total || before != node->total_before)
            abort();
    }
}

/* No function costs less than its self, and none more than the whole. */
static inline void check_graph(const struct flame *flame) {
    for (size_t i = 1; i < flame->nodes.count; i++) {
        const struct flame_node *node = &flame->nodes.items[i];
        if (node->total < node->self || node->total > flame->nodes.items[node->parent].total)
            abort();
    }
}

static inline void read_graph(const struct tree *tree, const struct naming *naming) {
    struct error error;
    uint64_t self;
    struct flame *flame = flame_of_graph(tree, naming, true, &error);
    if (!flame)
        return;
    check_graph(flame);
    for (int callers = 0; callers < 2 && flame->nodes.count > 1; callers++) {
        struct flame *around =
            flame_around_graph(tree, naming, flame, flame_name(flame, 1), callers, &self, &error);
        if (around)
            check_flame(around);
        flame_free(around);
    }
    flame_free(flame);
}

static inline void read_and_check(const struct import_format *format, struct text content,
                                  const struct import_options *import,
                                  const struct naming_options *names) {
    struct tree *tree = tree_new();
    struct error error;
    if (import_read(format, content, "input", import, tree, &error)) {
        struct naming *naming = naming_of_tree(tree, names);
        naming_notes(tree, naming, &tree->notes);
        struct flame *flame = flame_of_tree(
            tree, naming, &(struct flame_options){.keep_zero = names->quirks.keeps_weightless},
            &error);
        if (flame)
            check_flame(flame);
        flame_free(flame);
        if (tree->is_graph)
            read_graph(tree, naming);
        naming_free(naming);
    }
    objects_free(tree->objects);
    tree_free(tree);
}

#endif
