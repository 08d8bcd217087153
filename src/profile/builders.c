/*
 * Distribute stacks among builders, and join their trees.
 *
 * Stacks that begin alike at the root go to the same builder, so that the trees have only the nodes near the root in common. These stay
 * duplicated, once in each tree: finding duplicates would cost more than building does, and views add them up.
 */
#include <stdlib.h>

#include "profile/builder.h"

/* Of an address only the place in its page counts, which is the same wherever a loader put it. By name there are few nodes, and having more of them
   twice costs less than a builder without work: programs of an interpreter begin alike for dozens of frames. */
uint16_t building_share(const struct building *all, const struct counted_stack *stack) {
    enum { DEPTH = 12, IN_PAGE = 0xfff };
    uint64_t hash = 0;
    const uint8_t *chain = stack->chain;
    size_t each = stack->flags & STACK_TYPED ? sizeof(struct chain_frame) : sizeof(uint64_t);
    static_assert(offsetof(struct chain_frame, address) == 0, "both begin with an address");
    uint32_t depth = stack->chain_count < DEPTH ? stack->chain_count : DEPTH;
    if (all->builders[0].namesakes && depth < stack->chain_count * 3u / 4)
        depth = stack->chain_count * 3u / 4;
    for (uint32_t i = 1; all->count > 1 && i <= depth; i++) {
        uint64_t ip = load_u64(chain + each * (stack->chain_count - i));
        hash = (hash ^ (ip & IN_PAGE)) * 0x9E3779B97F4A7C15ull;
    }
    return (uint16_t)((hash >> 32) % all->count);
}

struct building *building_begin(struct reading *reading, unsigned threads) {
    enum { BUILDERS_MAX = 64 };
    unsigned count = threads < BUILDERS_MAX ? threads : BUILDERS_MAX;
    struct building *all = memory_zero(1, sizeof *all);
    struct profile *profile = reading->profile;
    *all =
        (struct building){.reading = reading,
                          .count = count,
                          .prefetches = (count > 1 || objects_fetch(reading->profile->objects)) &&
                                        !reading->options->no_names};
    all->builders = memory_zero(count, sizeof *all->builders);
    for (unsigned i = 0; i < count; i++)
        builder_init(&all->builders[i], all, i == 0 ? profile->tree : tree_new_part(profile->tree));
    if (count == 1) /* it builds while it reads */
        builder_make_tables(&all->builders[0], profile->sample_count, false);
    return all;
}

/* ---- stacks that wait for their builders ---- */

struct waiting {
    struct building *all;
    struct worker *workers;
    unsigned worker_count;
};

/* No node is made but for a frame, and memory that is not touched costs nothing. The others' nodes are put behind the first builder's own. */
static void reserve_nodes(const struct waiting *w, size_t item) {
    enum { MOST = 1 << 24 };
    size_t frames = 0;
    for (unsigned i = 0; i < w->worker_count; i++)
        for (size_t k = 1; k < w->workers[i].stacks.count; k++)
            if (item == 0 || w->workers[i].stacks.items[k].builder == item)
                frames += w->workers[i].stacks.items[k].chain_count;
    vector_reserve(&w->all->builders[item].tree->nodes, (frames < MOST ? frames : MOST) + 1);
}

/* The stacks of one builder, of all workers: those of samples in user mode, or all others. */
static void build_some(const struct waiting *w, size_t item, bool is_user) {
    struct builder *b = &w->all->builders[item];
    struct counted_stack *batch[BUILD_BATCH];
    size_t count = 0;
    for (unsigned i = 0; i < w->worker_count; i++)
        for (size_t k = 1; k < w->workers[i].stacks.count; k++) {
            struct counted_stack *stack = &w->workers[i].stacks.items[k];
            if (stack->builder == item && (stack->mode == PERF_RECORD_MISC_USER) == is_user)
                batch[count++] = stack;
            if (count == BUILD_BATCH) {
                builder_add(b, batch, count);
                count = 0;
            }
        }
    builder_add(b, batch, count);
}

/* Stacks with kernel frames come last: another thread may still be reading the kernel's list, which takes longer than all else. */
static void build_waiting(void *context, unsigned thread, size_t item) {
    struct waiting *w = context;
    struct builder *b = &w->all->builders[item];
    size_t all = 0;
    for (unsigned i = 0; i < w->worker_count; i++)
        all += w->workers[i].stacks.count;
    if (!b->namesakes) /* else few nodes are made */
        reserve_nodes(w, item);
    builder_make_tables(b, all / w->all->count, true);
    build_some(w, item, true);
    objects_read_ahead(w->all->reading->profile->objects);
    build_some(w, item, false);
    objects_read_ahead(w->all->reading->profile->objects);
}

void building_add_waiting(struct building *all, struct worker *workers, unsigned count) {
    struct waiting waiting = {all, workers, count};
    parallel_run(all->count, all->count, build_waiting, &waiting);
}

/* ---- joining ---- */

/* Whether a stack's last function has no caller: computed once for each location where a stack ends. */
static enum start start_of(struct builder *b, uint32_t location) {
    if (!b->starts)
        b->starts = memory_zero(b->tree->locations.count, sizeof *b->starts);
    if (b->starts[location] == START_UNKNOWN)
        b->starts[location] =
            reading_start_of(b->all->reading, &b->tree->locations.items[location]);
    return b->starts[location];
}

/* Whether there is nothing behind a chain's last frame, in the kernel: the user's part was not asked for; or a kernel thread, which has none,
   when the kernel hides the names that would tell. */
static bool ends_in_kernel(const struct counted_stack *stack, enum start start) {
    return stack->flags & STACK_NO_USER ||
           (stack->flags & STACK_NO_SPACE && start == START_NAMELESS);
}

/* A C library without debug symbols has no name for what calls main(). */
static bool ends_behind_main(struct builder *b, const struct chain_ends *ends, enum start start) {
    return start == START_NAMELESS && ends->before && start_of(b, ends->before) == START_MAIN;
}

static uint8_t ending_of_stack(struct builder *b, const struct counted_stack *stack) {
    if (stack->ending != ENDING_UNKNOWN)
        return stack->ending;
    if (b->all->reading->options->no_names || stack->flags & STACK_ALONE)
        return ENDING_UNKNOWN;
    if (!stack->ends)
        return ENDING_BROKEN;
    const struct chain_ends *ends = &b->ends.items[stack->ends];
    enum start start = start_of(b, ends->last);
    bool kernel = b->tree->locations.items[ends->last].mode == MODE_KERNEL;
    if (start == START_YES || (kernel && ends_in_kernel(stack, start)) ||
        ends_behind_main(b, ends, start))
        return ENDING_COMPLETE;
    /* The processor keeps 32 at most. */
    return stack->is_deep || stack->flags & STACK_LBR ? ENDING_TRUNCATED : ENDING_BROKEN;
}

/* What was counted on each stack, under its series with the ending that is known by now; and the samples, which name their stacks. */
static void join_worker(const struct building *all, struct tree *tree, const struct worker *w) {
    uint32_t *series = memory_zero(w->tree->series.count, sizeof *series);
    uint32_t(*ended)[ENDING_UNKNOWN + 1] = memory_zero(w->tree->series.count, sizeof *ended);
    tree_merge_series(tree, w->tree, series);
    uint32_t first = (uint32_t)tree->cells.count - 1;
    for (size_t i = 1; i < w->stacks.count; i++) {
        const struct counted_stack *stack = &w->stacks.items[i];
        struct builder *b = &all->builders[stack->builder];
        uint8_t ending = ending_of_stack(b, stack);
        uint32_t *known = &ended[stack->series][ending];
        if (!*known) {
            struct series copy = tree->series.items[series[stack->series]];
            copy.ending = ending;
            *known = tree_add_series(tree, &copy);
        }
        uint32_t before = stack->node ? b->nodes_before : 0;
        struct cell cell = {.node = before + stack->node,
                            .series = *known,
                            .samples = stack->samples,
                            .weight = stack->weight};
        tree_append_cell(tree, &cell);
    }
    for (size_t i = 0; i < w->tree->samples.count; i++) {
        struct sample sample = w->tree->samples.items[i];
        const struct cell *cell = &tree->cells.items[first + sample.node];
        sample.node = cell->node;
        sample.series = cell->series;
        tree_keep_sample(tree, &sample);
    }
    free(series);
    free(ended);
}

static void building_free(struct building *all) {
    for (unsigned i = 0; i < all->count; i++) {
        builder_release(&all->builders[i]);
        if (i > 0)
            tree_free(all->builders[i].tree);
    }
    free(all->builders);
    free(all);
}

void building_end(struct building *all, const struct worker *workers, unsigned count) {
    struct tree *tree = all->reading->profile->tree;
    size_t cells = tree->cells.count;
    for (unsigned i = 1; i < all->count; i++)
        all->builders[i].nodes_before = tree_append_nodes(tree, all->builders[i].tree);
    for (unsigned i = 0; i < count; i++)
        cells += workers[i].stacks.count;
    vector_reserve(&tree->cells, cells);
    for (unsigned i = 0; i < count; i++)
        join_worker(all, tree, &workers[i]);
    building_free(all);
}
