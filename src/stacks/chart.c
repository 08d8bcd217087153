/*
 * A flame chart shows what ran when. Samples are taken thread by thread in key order; a stack shares frames only with the one before it, so a
 * function that is called twice is drawn twice. Costs a node for each frame that begins.
 */
#include "stacks/flame.h"

#include <stdlib.h>

struct chart {
    struct path path;
    struct flame *flame;
    VECTOR(uint32_t) open; /* flame nodes of the last stack, outermost first */
};

static bool chart_add(struct chart *c, const struct sample *sample) {
    const struct label *labels = c->path.naming->labels.items;
    if (!path_find(&c->path, sample->series, sample->node) || c->path.labels.count == 0)
        return true;
    size_t shared = 0;
    for (; shared < c->path.labels.count && shared < c->open.count; shared++)
        if (c->flame->nodes.items[c->open.items[shared]].name !=
            labels[c->path.labels.items[shared]].name)
            break;
    c->open.count = shared;
    for (; c->open.count < c->path.labels.count;) {
        uint32_t parent = c->open.count ? c->open.items[c->open.count - 1] : 0;
        const struct label *label = &labels[c->path.labels.items[c->open.count]];
        vector_push(&c->open, flame_append(c->flame, parent, label));
    }
    struct flame_node *leaf = &c->flame->nodes.items[c->open.items[c->open.count - 1]];
    uint64_t weight = c->path.shape->by_samples ? 1 : sample->weight;
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

static bool chart_fill(struct chart *c, struct error *error) {
    size_t count = c->path.tree->samples.count;
    uint32_t *order = memory_resize(NULL, count + 1, sizeof *order);
    bool fine = true;
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, count, sizeof *order, order_by_thread, (void *)c->path.tree);
    for (size_t i = 0; i < count && fine; i++) {
        const struct sample *sample = &c->path.tree->samples.items[order[i]];
        const struct naming_entry *series = &c->path.naming->series.items[sample->series];
        if (!series->skip && !series->before)
            fine = chart_add(c, sample);
    }
    free(order);
    return fine || error_set(error, ERROR_INPUT,
                             "the chart has more than 2^32 frames or weighs more than 2^64");
}

struct flame *chart_of_samples(const struct tree *tree, const struct naming *naming,
                               const struct flame_options *shape, struct error *error) {
    struct chart c = {.path = {.tree = tree, .naming = naming, .shape = shape},
                      .flame = flame_of_naming(naming)};
    c.flame->unit = strings_add(c.flame->strings, flame_unit(tree, shape));
    bool fine = chart_fill(&c, error);
    path_release(&c.path);
    vector_release(&c.open);
    if (fine)
        return c.flame;
    flame_free(c.flame);
    return NULL;
}
