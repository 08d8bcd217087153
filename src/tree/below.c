/* A flame without what called the functions of interest: heavy runtimes put dozens of frames below every task. */
#include "tree/tree.h"

#include <stdlib.h>

static bool is_named(struct text name, const char *const *names, size_t name_count) {
    for (size_t i = 0; i < name_count; i++)
        if (text_equal(name, text_of(names[i])))
            return true;
    return false;
}

/* Parents stand before their children, so one pass knows where each node went; a name met again begins anew. 0: left out. */
struct flame *flame_below(const struct flame *flame, const char *const *names, size_t name_count,
                          struct error *error) {
    struct flame *below = flame_new();
    uint32_t *places = memory_zero(flame->nodes.count, sizeof *places);
    below->is_diff = flame->is_diff;
    below->unit = strings_add(below->strings, strings_get(flame->strings, flame->unit));
    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        const struct flame_node *node = &flame->nodes.items[i];
        struct text name = strings_get(flame->strings, node->name);
        bool starts = is_named(name, names, name_count);
        if (!starts && !places[node->parent])
            continue;
        struct label label = {
            .name = strings_add(below->strings, name),
            .object = node->object
                          ? strings_add(below->strings, strings_get(flame->strings, node->object))
                          : 0,
            .kinds = node->kinds};
        places[i] = flame_child(below, starts ? 0 : places[node->parent], &label);
        below->nodes.items[places[i]].self += node->self;
        below->nodes.items[places[i]].self_before += node->self_before;
    }
    free(places);
    if (flame_finish(below, error))
        return below;
    flame_free(below);
    return NULL;
}
