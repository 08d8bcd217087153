/*
 * A flame chart: what ran when. Samples are taken thread by thread in key order; a stack shares frames with the one before it and
 * with no other, so a function that is called twice is drawn twice. Costs a node for each frame that begins.
 */
#include "stacks/flame.h"

#include <stdlib.h>

struct chart {
    const struct tree *tree;
    const struct naming *naming;
    const struct flame_options *options;
    struct flame *flame;
    VECTOR(uint32_t) open;  /* flame nodes of the last stack, outermost first */
    VECTOR(uint32_t) path;  /* labels of the stack at hand, outermost first */
    VECTOR(uint32_t) nodes; /* its tree nodes, leaf first */
};

/* `root` is where the frames begin; SIZE_MAX: this is not a frame but a series' label. */
static void path_add(struct chart *c, const struct naming_entry *entry, size_t root) {
    for (uint32_t i = 0; i < entry->count; i++) {
        uint32_t label = entry->first + i;
        uint32_t name = c->naming->labels.items[label].name;
        bool again = c->path.count > root &&
                     c->naming->labels.items[c->path.items[c->path.count - 1]].name == name;
        bool deep = root != SIZE_MAX && c->options->max_depth &&
                    c->path.count - root >= c->options->max_depth;
        if (!(again && c->options->fold_recursion) && !deep)
            vector_push(&c->path, label);
    }
}

static void path_of_sample(struct chart *c, const struct sample *sample) {
    const struct naming_entry *series = &c->naming->series.items[sample->series];
    const struct naming_entry *locations =
        series->alternate ? c->naming->alternates.items : c->naming->locations.items;
    c->path.count = c->nodes.count = 0;
    path_add(c, series, SIZE_MAX);
    size_t root = c->path.count;
    for (uint32_t node = sample->node; node; node = c->tree->nodes.items[node].parent)
        vector_push(&c->nodes, node);
    for (size_t i = c->nodes.count; i-- > 0;) {
        const struct naming_entry *entry =
            &locations[c->tree->nodes.items[c->nodes.items[i]].location];
        if (entry->cut)
            c->path.count = root = 0;
        path_add(c, entry, root);
    }
    if (c->path.count == root && !c->options->keep_empty)
        c->path.count = 0;
}

static void chart_push(struct chart *c, const struct label *label) {
    uint32_t parent = c->open.count ? c->open.items[c->open.count - 1] : 0;
    struct flame_node node = {.parent = parent,
                              .name = label->name,
                              .object = label->object,
                              .kinds = label->kinds,
                              .depth = c->flame->nodes.items[parent].depth + 1};
    vector_push(&c->open, (uint32_t)c->flame->nodes.count);
    vector_push(&c->flame->nodes, node);
}

static bool chart_add(struct chart *c, const struct sample *sample) {
    path_of_sample(c, sample);
    if (c->path.count == 0)
        return true;
    size_t shared = 0;
    for (; shared < c->path.count && shared < c->open.count; shared++) {
        uint32_t name = c->naming->labels.items[c->path.items[shared]].name;
        if (c->flame->nodes.items[c->open.items[shared]].name != name)
            break;
    }
    c->open.count = shared;
    while (c->open.count < c->path.count)
        chart_push(c, &c->naming->labels.items[c->path.items[c->open.count]]);
    struct flame_node *leaf = &c->flame->nodes.items[c->open.items[c->open.count - 1]];
    uint64_t weight = c->options->by_samples ? 1 : sample->weight;
    return checked_add(leaf->self, weight, &leaf->self) && c->flame->nodes.count < UINT32_MAX;
}

static int order_by_thread(const void *a, const void *b, void *context) {
    const struct tree *tree = context;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    uint32_t x = tree->series.items[tree->samples.items[i].series].thread;
    uint32_t y = tree->series.items[tree->samples.items[k].series].thread;
    const struct thread *s = &tree->threads.items[x], *t = &tree->threads.items[y];
    if (x != y && s->pid != t->pid)
        return s->pid < t->pid ? -1 : 1;
    if (x != y && s->tid != t->tid)
        return s->tid < t->tid ? -1 : 1;
    return (i > k) - (i < k); /* key order: the lives of one thread follow each other anyway */
}

/* Ids are in order of time, so linking from the last to the first leaves each list in that order. */
static void link_in_order(struct flame *flame) {
    for (size_t i = flame->nodes.count; i-- > 1;) {
        struct flame_node *node = &flame->nodes.items[i];
        node->next = flame->nodes.items[node->parent].first_child;
        flame->nodes.items[node->parent].first_child = (uint32_t)i;
    }
}

static bool chart_fill(struct chart *c, struct error *error) {
    size_t count = c->tree->samples.count;
    uint32_t *order = memory_resize(NULL, count + 1, sizeof *order);
    bool fine = true;
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, count, sizeof *order, order_by_thread, (void *)c->tree);
    for (size_t i = 0; i < count && fine; i++) {
        const struct sample *sample = &c->tree->samples.items[order[i]];
        const struct naming_entry *series = &c->naming->series.items[sample->series];
        if (!series->skip && !series->before)
            fine = chart_add(c, sample);
    }
    free(order);
    return fine || error_set(error, ERROR_INPUT,
                             "the chart has more than 2^32 frames or weighs more than 2^64");
}

struct flame *flame_chart_of_tree(const struct tree *tree, const struct naming *naming,
                                  const struct flame_options *options, struct error *error) {
    struct chart c = {
        .tree = tree, .naming = naming, .options = options, .flame = flame_of_naming(naming)};
    c.flame->unit = strings_add(c.flame->strings, flame_unit(tree, options));
    bool fine = chart_fill(&c, error) && flame_total(c.flame, error);
    vector_release(&c.open);
    vector_release(&c.path);
    vector_release(&c.nodes);
    if (fine) {
        link_in_order(c.flame);
        return c.flame;
    }
    flame_free(c.flame);
    return NULL;
}
