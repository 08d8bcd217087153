/* Less of a flame: without what called the functions of interest, for heavy runtimes put dozens of frames below every task; or only the stacks
   that hold some function, or hold it not. */
#include "stacks/stacks.h"

#include <stdlib.h>

static bool is_named(struct text name, const char *const *names, size_t name_count) {
    for (size_t i = 0; i < name_count; i++)
        if (text_equal(name, text_of(names[i])))
            return true;
    return false;
}

static struct label label_copy(struct flame *to, const struct flame *from,
                               const struct flame_node *node) {
    return (struct label){
        .name = strings_add(to->strings, strings_get(from->strings, node->name)),
        .object =
            node->object ? strings_add(to->strings, strings_get(from->strings, node->object)) : 0,
        .kinds = node->kinds};
}

static struct flame *flame_like(const struct flame *flame) {
    struct flame *new = flame_new();
    new->is_diff = flame->is_diff;
    new->unit = strings_add(new->strings, strings_get(flame->strings, flame->unit));
    return new;
}

static struct flame *flame_finished(struct flame *flame, struct error *error) {
    if (flame_finish(flame, error))
        return flame;
    flame_free(flame);
    return NULL;
}

/* Parents stand before their children, so one pass knows where each node went; a name met again begins anew. 0: left out. */
struct flame *flame_below(const struct flame *flame, const char *const *names, size_t name_count,
                          struct error *error) {
    struct flame *below = flame_like(flame);
    uint32_t *places = memory_zero(flame->nodes.count, sizeof *places);
    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        const struct flame_node *node = &flame->nodes.items[i];
        struct text name = strings_get(flame->strings, node->name);
        bool starts = is_named(name, names, name_count);
        if (!starts && !places[node->parent])
            continue;
        struct label label = label_copy(below, flame, node);
        places[i] = flame_child(below, starts ? 0 : places[node->parent], &label);
        below->nodes.items[places[i]].self += node->self;
        below->nodes.items[places[i]].self_before += node->self_before;
    }
    free(places);
    return flame_finished(below, error);
}

/* What is known of the stack that ends in a node. */
enum { HOLDS_WANTED = 1, HOLDS_UNWANTED = 2, IS_DRAWN = 4 };

static bool stack_is_kept(const struct stack_choice *choice, uint8_t holds) {
    return !(holds & HOLDS_UNWANTED) && (choice->with_count == 0 || holds & HOLDS_WANTED);
}

/* Down once to see what stacks hold, up once to see whose are drawn, down once to draw them. */
struct flame *flame_of_stacks(const struct flame *flame, const struct stack_choice *choice,
                              struct error *error) {
    struct flame *kept = flame_like(flame);
    const struct flame_node *nodes = flame->nodes.items;
    uint32_t count = (uint32_t)flame->nodes.count;
    uint8_t *holds = memory_zero(count, sizeof *holds);
    uint32_t *places = memory_zero(count, sizeof *places);
    for (uint32_t i = 1; i < count; i++) {
        struct text name = strings_get(flame->strings, nodes[i].name);
        holds[i] = holds[nodes[i].parent];
        holds[i] |= is_named(name, choice->with, choice->with_count) ? HOLDS_WANTED : 0;
        holds[i] |= is_named(name, choice->without, choice->without_count) ? HOLDS_UNWANTED : 0;
    }
    for (uint32_t i = count; i-- > 1;) {
        bool ends_here = (nodes[i].self || nodes[i].self_before) && stack_is_kept(choice, holds[i]);
        holds[i] |= ends_here ? IS_DRAWN : 0;
        holds[nodes[i].parent] |= holds[i] & IS_DRAWN;
    }
    if (stack_is_kept(choice, 0)) { /* stacks without a frame */
        kept->nodes.items[0].self = nodes[0].self;
        kept->nodes.items[0].self_before = nodes[0].self_before;
    }
    for (uint32_t i = 1; i < count; i++) {
        if (!(holds[i] & IS_DRAWN))
            continue;
        struct label label = label_copy(kept, flame, &nodes[i]);
        places[i] = flame_child(kept, places[nodes[i].parent], &label);
        if (!stack_is_kept(choice, holds[i]))
            continue;
        kept->nodes.items[places[i]].self += nodes[i].self;
        kept->nodes.items[places[i]].self_before += nodes[i].self_before;
    }
    free(places);
    free(holds);
    return flame_finished(kept, error);
}
