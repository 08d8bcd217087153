/*
 * Make tree nodes of stacks.
 *
 * A stack shares the longest known way from the root and adds nodes only for the rest. Ways are found by a hash of their frames; finding the
 * longest known one takes about three probes, where a probe for each frame would take twenty. Eight stacks are processed at a time, so that
 * their first probes overlap.
 *
 * A hash alone does not prove equality. A whole stack must be the twin of the one that was built under its hash (stack_is_twin). A way must have
 * the same check as the one that was found; otherwise it is searched frame by frame, node by node.
 *
 * New objects are queued, and idle threads open them and read their tables.
 */
#include "profile/builder.h"

#include <stdlib.h>

enum {
    LOCATIONS_CACHED = 1 << 14,
    LOCATIONS_CACHED_MOST = 1 << 18,
    TABLE_AT_FIRST = 1 << 12,
    TABLE_LEAST = 1 << 6
};

struct cached_location {
    uint64_t address;
    uint64_t epochs;
    uint32_t what; /* + 1; 0: empty */
    uint32_t location;
};

/* ---- locations ---- */

static uint32_t what_of(const struct chain_frame *frame) {
    return (uint32_t)frame->mode << 3 | (uint32_t)frame->is_named << 2 |
           (uint32_t)frame->is_call << 1 | frame->is_unwound;
}

static uint32_t root_of(const struct counted_stack *stack, unsigned mode) {
    return mode == MODE_KERNEL ? stack->kernel : mode == MODE_USER ? stack->user : 0;
}

/* What holds the address. Data mappings don't belong to an epoch, and no code runs in them: only perf looks there. */
static const struct mapping *mapping_of(const struct reading *reading,
                                        const struct counted_stack *stack, unsigned mode,
                                        uint64_t address) {
    const struct mapping *mapping =
        space_find(reading->profile->spaces, root_of(stack, mode), address);
    return mapping && (mapping->executable || reading->options->quirks.data_holds_code) ? mapping
                                                                                        : NULL;
}

/* perf takes an address beyond the kernel's mapping for the kernel's where that has a symbol, but only if the kernel was mapped when the
   sample was taken. Without quirks.kernel_while_mapped this waits until everything is read: see reading_find_kernel(). */
static uint32_t kernel_beyond(const struct reading *reading, const struct counted_stack *stack,
                              unsigned mode, uint64_t address) {
    return reading->options->quirks.kernel_while_mapped && stack->kernel && mode == MODE_KERNEL &&
                   reading_is_kernel(reading, address)
               ? reading->kernel_object
               : 0;
}

static void prefetch_object(const struct building *all, uint32_t object, uint64_t address) {
    if (object && all->prefetches)
        objects_prefetch(all->reading->profile->objects, object, address,
                         !all->reading->options->no_inline);
}

void building_prefetch(const struct building *all, const struct counted_stack *stack) {
    const uint8_t *words = stack->chain;
    for (uint32_t i = 0; i < stack->chain_count && !(stack->flags & STACK_TYPED); i++) {
        uint64_t ip = load_u64(words + 8 * (size_t)i);
        const struct mapping *mapping =
            ip < CONTEXT_MARKERS_FROM ? mapping_of(all->reading, stack, MODE_USER, ip) : NULL;
        if (mapping)
            prefetch_object(all, mapping->object, ip - mapping->start + mapping->offset);
    }
}

/* The one place that decides it: a return address belongs to the call before it, also when it is the first byte of another mapping.
   perf looks recorded ones up as they are, and has unwound ones one lower already. */
static uint32_t location_find(struct builder *b, const struct counted_stack *stack,
                              const struct chain_frame *frame) {
    const struct reading *reading = b->all->reading;
    if (frame->is_named) {
        struct location named = {.function = (uint32_t)frame->address,
                                 .line = (uint32_t)(frame->address >> 32),
                                 .mode = frame->mode};
        return tree_add_location(b->tree, &named);
    }
    bool back = frame->is_call && !reading->options->quirks.returns_stay && frame->address > 0;
    uint64_t within = frame->address - back;
    const struct mapping *mapping = frame->mapping
                                        ? space_mapping(reading->profile->spaces, frame->mapping)
                                        : mapping_of(reading, stack, frame->mode, within);
    struct location location = {
        .address = mapping ? frame->address - mapping->start + mapping->offset : frame->address,
        .raw = reading->options->raw_addresses ? frame->address : 0,
        .object = mapping ? mapping->object : kernel_beyond(reading, stack, frame->mode, within),
        .mode = frame->mode,
        .call = back,
        .unwound = frame->is_unwound,
    };
    prefetch_object(b->all, location.object, location_within(&location));
    return b->namesakes ? namesakes_add(b->namesakes, &location)
                        : tree_add_location(b->tree, &location);
}

static struct cached_location *location_slot(const struct builder *b,
                                             const struct counted_stack *stack,
                                             const struct chain_frame *frame) {
    uint64_t slot = hash_mix(frame->address ^ stack->epochs << 8, what_of(frame)) >> 32;
    return &b->cache[slot & (b->cache_size - 1)];
}

/* Every frame is looked up in the cache. If a program has more code than fits, the cache is replaced by a larger, empty one. */
static void cache_missed(struct builder *b) {
    enum { MISSES = 4 };
    if (++b->cache_misses < MISSES * b->cache_size || b->cache_size >= LOCATIONS_CACHED_MOST)
        return;
    free(b->cache);
    b->cache_size *= 2;
    b->cache_misses = 0;
    b->cache = memory_table(b->cache_size, sizeof *b->cache);
}

static uint32_t location_of(struct builder *b, const struct counted_stack *stack,
                            const struct chain_frame *frame) {
    struct cached_location *cached = location_slot(b, stack, frame);
    uint32_t what = what_of(frame) + 1;
    if (cached->address == frame->address && cached->epochs == stack->epochs &&
        cached->what == what)
        return cached->location;
    uint32_t location = location_find(b, stack, frame);
    cache_missed(b);
    *location_slot(b, stack, frame) =
        (struct cached_location){frame->address, stack->epochs, what, location};
    return location;
}

/* ---- paths ---- */

static void path_of_stack(const struct reading *reading, const struct counted_stack *stack,
                          struct path *path) {
    struct chain_decoder decoder;
    if (stack->flags & STACK_TYPED) {
        path->frames = stack->chain;
        path->count = stack->chain_count;
        return;
    }
    chain_begin(&decoder, &path->decoded, &reading->options->quirks, stack->mode, false);
    chain_add_words(&decoder, stack->chain, stack->chain_count);
    chain_end(&decoder);
    path->frames = path->decoded.items;
    path->count = path->decoded.count;
}

/* From the root, which is 0. */
static const struct chain_frame *path_frame(const struct path *path, size_t depth) {
    return &path->frames[path->count - 1 - depth];
}

/* Each location's own hash does not wait for the one before it; joining them is one multiplication. */
static void path_locate(struct builder *b, const struct counted_stack *stack, struct path *path) {
    uint64_t hash = 0;
    uint32_t check = 0;
    vector_reserve(&path->ways, path->count);
    for (size_t i = 0; i < path->count; i++) {
        uint32_t location = location_of(b, stack, path_frame(path, i));
        hash = (hash ^ hash_mix(location, 0)) * 0x9E3779B97F4A7C15ull;
        check = check * 0x01000193u + location;
        path->ways.items[i] = (struct way){hash | 1, check, location};
    }
}

/* ---- memos ---- */

static struct memo *memo_slot(const struct memos *memos, uint64_t hash) {
    return &memos->slots[hash >> 24 & (memos->size - 1)];
}

static struct memo *memo_after(const struct memos *memos, struct memo *memo) {
    return memo + 1 < memos->slots + memos->size ? memo + 1 : memos->slots;
}

/* The first memo of that hash from `memo` on, or an empty slot. */
static struct memo *memo_from(const struct memos *memos, struct memo *memo, uint64_t hash) {
    while (memo->hash && memo->hash != hash)
        memo = memo_after(memos, memo);
    return memo;
}

static struct memo *memo_find(const struct memos *memos, uint64_t hash) {
    return memo_from(memos, memo_slot(memos, hash), hash);
}

static struct memo *memo_next(const struct memos *memos, struct memo *memo) {
    return memo_from(memos, memo_after(memos, memo), memo->hash);
}

static void memo_put(struct memos *memos, const struct memo *memo) {
    *memo_from(memos, memo_slot(memos, memo->hash), 0) = *memo;
}

/* A slot is as good as never in the cache, but the next ones are known: the loads of several wait together. */
enum { AHEAD = 8 };

static void memos_resize(struct memos *memos, size_t size) {
    struct memos old = *memos;
    memos->slots = memory_table(size, sizeof *memos->slots);
    memos->size = size;
    for (size_t i = 0; i < old.size; i++) {
        if (i + AHEAD < old.size)
            __builtin_prefetch(memo_slot(memos, old.slots[i + AHEAD].hash), 1);
        if (old.slots[i].hash)
            memo_put(memos, &old.slots[i]);
    }
    free(old.slots);
}

static void memo_add(struct memos *memos, const struct memo *memo) {
    if (memos->used >= memos->size / 4 * 3)
        memos_resize(memos, 2 * memos->size);
    memos->used++;
    memo_put(memos, memo);
}

/* ---- nodes ---- */

/* How many of a path's ways may be kept. By address no stack goes on from a leaf, which is no return address; by name, others end there too. */
static size_t path_kept(const struct builder *b, const struct path *path) {
    return b->namesakes || !path->count ? path->count : path->count - 1;
}

/* The same as longest_way() found frame by frame, each node below the one before: where hashes collide. */
static size_t longest_way_exactly(const struct builder *b, const struct path *path,
                                  uint32_t *node) {
    size_t length = 0;
    *node = 0;
    for (; length < path_kept(b, path); length++) {
        uint32_t location = path->ways.items[length].location;
        const struct node *nodes = b->tree->nodes.items;
        struct memo *way = memo_find(&b->ways, path->ways.items[length].hash);
        while (way->hash && (nodes[way->id].parent != *node || nodes[way->id].location != location))
            way = memo_next(&b->ways, way);
        if (!way->hash)
            break;
        *node = way->id;
    }
    return length;
}

/*
 * Deep recursion makes a hundred nodes for each stack, and a memo is twice as large as a node. So of the ways longer than DEEP only every fourth is
 * kept, and the one that ends before the leaf. A stack that branches off between two of these makes at most three duplicate nodes. By name, there are
 * few nodes, and all ways are kept.
 */
enum { DEEP = 32, DEEP_STEP = 4 };

static bool is_kept(const struct builder *b, const struct path *path, size_t length) {
    return length <= path_kept(b, path) &&
           (b->namesakes || length <= DEEP || length % DEEP_STEP == 0 || length + 1 == path->count);
}

/* The longest way of at most `length` frames that is kept, whichever stack it is of. */
static size_t kept_below(const struct builder *b, size_t length) {
    return b->namesakes || length <= DEEP ? length : length / DEEP_STEP * DEEP_STEP;
}

/* The longest way that was gone before, and where it ends. Most new stacks differ only at their leaf, so all that may be kept is asked for first;
   of what is left, half each time, for a path known at depth d is known at every smaller depth. */
static size_t longest_way(const struct builder *b, const struct path *path, uint32_t *node) {
    size_t low = 0, high = path_kept(b, path);
    struct memo longest = {0};
    for (unsigned tries = 0; low < high; tries++) {
        size_t middle = tries < 1 ? high : kept_below(b, low + (high - low + 1) / 2);
        middle = middle > low ? middle : high;
        const struct memo *way = memo_find(&b->ways, path->ways.items[middle - 1].hash);
        if (way->hash) {
            low = middle;
            longest = *way;
        } else {
            high = kept_below(b, middle - 1);
        }
    }
    *node = longest.id;
    if (low && longest.of != path->ways.items[low - 1].check)
        return longest_way_exactly(b, path, node);
    return low;
}

static uint32_t node_of_path(struct builder *b, const struct path *path) {
    uint32_t node;
    for (size_t known = longest_way(b, path, &node); known < path->count; known++) {
        const struct way *way = &path->ways.items[known];
        if (is_kept(b, path, known + AHEAD + 1))
            __builtin_prefetch(memo_slot(&b->ways, way[AHEAD].hash), 1);
        node = tree_append_node(b->tree, node, way->location);
        if (is_kept(b, path, known + 1))
            memo_add(&b->ways, &(struct memo){way->hash, node, way->check});
    }
    return node;
}

/* ---- groups of stacks, in steps that don't wait for each other's memory ---- */

/* The chains of a group, a group ahead. */
static void prefetch_chains(struct counted_stack *const *stacks, size_t from, size_t count) {
    enum { LINE = 64, LINES = 8 };
    for (size_t k = from; k < count && k < from + BUILD_GROUP; k++)
        for (size_t at = 0; at < stack_bytes(stacks[k]) && at < LINES * LINE; at += LINE)
            __builtin_prefetch((const char *)stacks[k]->chain + at);
}

static void prefetch_way(const struct builder *b, const struct path *path, size_t back) {
    if (path->count >= back)
        __builtin_prefetch(memo_slot(&b->ways, path->ways.items[path->count - back].hash), 1);
}

static uint32_t ends_of_path(struct builder *b, const struct path *path) {
    if (path->count == 0)
        return 0;
    struct chain_ends ends = {.last = path->ways.items[0].location};
    if (path->count > 1)
        ends.before = path->ways.items[1].location;
    uint64_t hash = hash_mix(ends.last, ends.before);
    uint32_t id;
    for (struct probe p = index_probe(&b->ends_index, hash); (id = index_next(&b->ends_index, &p));)
        if (b->ends.items[id].last == ends.last && b->ends.items[id].before == ends.before)
            return id;
    id = (uint32_t)b->ends.count;
    vector_push(&b->ends, ends);
    index_add(&b->ends_index, hash, id);
    return id;
}

static void add_stack(struct builder *b, struct counted_stack *stack, const struct path *path) {
    uint32_t node = node_of_path(b, path), ends = ends_of_path(b, path);
    stack->node = node;
    stack->ends = ends;
    stack->is_deep = path->count >= PERF_DEPTH;
    uint32_t id = (uint32_t)(stack - b->all->workers[stack->worker].stacks.items);
    memo_add(&b->stacks, &(struct memo){stack->hash, id, stack->worker});
}

static void add_group(struct builder *b, struct counted_stack *const *stacks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct path *path = &b->paths[i];
        path_of_stack(b->all->reading, stacks[i], path);
        path_locate(b, stacks[i], path);
        prefetch_way(b, path, b->namesakes ? 1 : 2);
        prefetch_way(b, path, path->count / 2 + 2);
    }
    for (size_t i = 0; i < count; i++)
        add_stack(b, stacks[i], &b->paths[i]);
}

static const struct counted_stack *stack_of_memo(const struct builder *b, const struct memo *memo) {
    return &b->all->workers[memo->of].stacks.items[memo->id];
}

/* A third of the stacks were met before, by another worker or under another series: they have their nodes already. `memo` is the first of
   their hash. */
static bool is_built(const struct builder *b, struct counted_stack *stack, struct memo *memo) {
    for (; memo->hash; memo = memo_next(&b->stacks, memo)) {
        const struct counted_stack *built = stack_of_memo(b, memo);
        if (!stack_is_twin(built, stack))
            continue;
        stack->node = built->node;
        stack->ends = built->ends;
        stack->is_deep = built->is_deep;
        return true;
    }
    return false;
}

void builder_add(struct builder *b, struct counted_stack *const *stacks, size_t count) {
    struct counted_stack *left[BUILD_BATCH];
    struct memo *memos[BUILD_BATCH];
    size_t left_count = 0;
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(memo_slot(&b->stacks, stacks[i]->hash), 1);
    for (size_t i = 0; i < count; i++) {
        memos[i] = memo_find(&b->stacks, stacks[i]->hash);
        if (memos[i]->hash)
            __builtin_prefetch(stack_of_memo(b, memos[i]));
    }
    for (size_t i = 0; i < count; i++)
        if (!is_built(b, stacks[i], memos[i]))
            left[left_count++] = stacks[i];
    prefetch_chains(left, 0, left_count);
    for (size_t i = 0; i < left_count; i += BUILD_GROUP) {
        prefetch_chains(left, i + BUILD_GROUP, left_count);
        add_group(b, left + i, left_count - i < BUILD_GROUP ? left_count - i : BUILD_GROUP);
    }
}

/* A few samples don't need tables of half a megabyte, which take longer to clear than they take to read. */
static size_t table_size(size_t most, uint64_t samples) {
    enum { EACH = 8 };
    size_t size = TABLE_LEAST;
    while (size < most && size / EACH < samples)
        size *= 2;
    return size;
}

void builder_init(struct builder *b, struct building *all, struct tree *tree) {
    *b = (struct builder){.all = all, .tree = tree};
    if (all->reading->options->names_only && !all->reading->options->no_names &&
        !objects_fetch(all->reading->profile->objects)) /* names may still be on their way */
        b->namesakes = namesakes_new(all->reading, tree);
    vector_push(&b->ends, ((struct chain_ends){0}));
}

void builder_make_tables(struct builder *b, size_t stacks, bool are_counted) {
    size_t first = table_size(TABLE_AT_FIRST, stacks), size = first;
    /* Of three stacks about two are distinct, and each of these has a node that is no leaf. */
    while (are_counted && size / 4 * 3 < stacks / 3 * 2)
        size *= 2;
    b->cache_size = table_size(LOCATIONS_CACHED, stacks);
    b->cache = memory_table(b->cache_size, sizeof *b->cache);
    memos_resize(&b->ways, b->namesakes ? first : size); /* by name, few nodes are made */
    memos_resize(&b->stacks, size);
}

void builder_release(struct builder *b) {
    for (size_t i = 0; i < BUILD_GROUP; i++) {
        vector_release(&b->paths[i].decoded);
        vector_release(&b->paths[i].ways);
    }
    vector_release(&b->ends);
    index_release(&b->ends_index);
    namesakes_free(b->namesakes);
    free(b->starts);
    free(b->cache);
    free(b->ways.slots);
    free(b->stacks.slots);
}
