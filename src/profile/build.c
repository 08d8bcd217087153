/*
 * Chains to nodes of the tree.
 *
 * The workers hand over each distinct chain once or twice, with what they counted on it. A chain is read leaf first; markers among the
 * addresses say in which mode those after them ran. It is entered from the root, but only from where nobody went before: each way
 * from the root is known by a hash of its addresses, and the longest that is known takes about three probes to find, where a probe for
 * each frame would take twenty. Eight chains at a time, so that their first probes are under way together.
 *
 * One thread builds, into the one tree: merging trees costs more than building does. Meanwhile the objects that are met are opened
 * and their tables read, beside it.
 */
#include "profile/worker.h"

#include <stdlib.h>

enum { LOCATION_CACHE = 1 << 15, COMPAT_DEPTH = 127, GROUP = 8, CELLS_LOOKED_AT = 8 };

/* One entry of a chain: an address, and what is known of it from its place. */
struct entry {
    uint64_t ip;
    uint8_t mode;
    uint8_t call; /* a return address */
    uint8_t unwound;
};

/* A chain's entries, leaf first, and their hashes from the root: hashes[i] stands for the i + 1 entries next to the root, and the
   epoch; never 0. */
struct path {
    VECTOR(struct entry) entries;
    VECTOR(uint64_t) hashes;
};

/* A hash of 64 bits stands for addresses: of a way from the root, which leads to a node, or of a whole chain, which has a cell. */
struct place {
    uint64_t hash; /* 0: an empty slot */
    uint32_t id;
};

/* Open addressing, at most half full. */
struct places {
    struct place *slots;
    size_t size;
    size_t used;
};

enum start { START_UNKNOWN, START_NO, START_YES, START_NAMELESS };

struct cached_location {
    uint64_t ip;
    uint64_t epochs;
    uint16_t what;  /* mode, call and unwound bit + 1; 0: empty */
    uint16_t start; /* whether a stack may end there: enum start */
    uint32_t location;
};

struct builder {
    struct reading *reading;
    struct tree *tree;
    struct cached_location *cache;
    struct places ways;   /* from the root: their nodes */
    struct places chains; /* the newest cell of each */
    struct path paths[GROUP];
    uint64_t
        first_epochs; /* of the first chain: nodes of these need not be looked for in the tree */
    bool *prefetched; /* by object; NULL: everything is done in this thread */
    VECTOR(uint32_t) older_cells; /* by cell: the one of the same chain before it */
    /* of the worker whose stacks are being added */
    uint32_t *series; /* its series in the tree … */
    uint32_t *ended;  /* … with each ending */
};

/* ---- locations ---- */

static uint32_t root_of(const struct stack *stack, unsigned mode) {
    return mode == MODE_KERNEL ? stack->kernel : mode == MODE_USER ? stack->user : 0;
}

/* What holds the address. Data mappings don't belong to an epoch, and no code runs in them: only perf looks there. */
static const struct mapping *mapping_of(const struct builder *b, const struct stack *stack,
                                        unsigned mode, uint64_t address) {
    const struct mapping *mapping =
        space_find(b->reading->profile->spaces, root_of(stack, mode), address);
    return mapping && (mapping->executable || b->reading->options->compat_perf) ? mapping : NULL;
}

/* The kernel's mapping ends with its text, but code that ran at boot lies behind its data, and idle CPUs' stacks begin there: where the
   kernel has a symbol is kernel. perf finds them because it stretches the mapping over all symbols. */
static uint32_t kernel_beyond(const struct builder *b, unsigned mode, uint64_t address) {
    const struct reading *reading = b->reading;
    struct symbol symbol;
    bool found =
        mode == MODE_KERNEL && reading->kernel_object && !reading->options->no_names &&
        objects_symbol(reading->profile->objects, reading->kernel_object, address, &symbol);
    return found ? reading->kernel_object : 0;
}

/* Each object once. */
static void prefetch_object(struct builder *b, uint32_t object) {
    if (!object || !b->prefetched || b->prefetched[object])
        return;
    b->prefetched[object] = true;
    objects_prefetch(b->reading->profile->objects, object, !b->reading->options->no_inline);
}

/* A return address belongs to the call before it, also when it is the first byte of another mapping; perf doesn't mind. */
static uint32_t location_find(struct builder *b, const struct stack *stack,
                              const struct entry *entry) {
    const struct profile_options *options = b->reading->options;
    bool back = entry->call && !options->compat_perf && entry->ip > 0;
    const struct mapping *mapping = mapping_of(b, stack, entry->mode, entry->ip - back);
    struct location location = {
        .address = mapping ? entry->ip - mapping->start + mapping->offset : entry->ip,
        .raw = options->raw_addresses ? entry->ip : 0,
        .object = mapping ? mapping->object : kernel_beyond(b, entry->mode, entry->ip - back),
        .mode = entry->mode,
        .call = back,
        .unwound = entry->unwound,
    };
    prefetch_object(b, location.object);
    return tree_add_location(b->tree, &location);
}

static struct cached_location *location_cached(struct builder *b, const struct stack *stack,
                                               const struct entry *entry) {
    uint16_t what = (uint16_t)(entry->mode << 2 | entry->call << 1 | entry->unwound);
    uint64_t slot = hash_mix(entry->ip ^ stack->epochs << 8, what) >> 32 & (LOCATION_CACHE - 1);
    struct cached_location *cached = &b->cache[slot];
    if (cached->ip != entry->ip || cached->epochs != stack->epochs || cached->what != what + 1)
        *cached = (struct cached_location){.ip = entry->ip,
                                           .epochs = stack->epochs,
                                           .what = (uint16_t)(what + 1),
                                           .location = location_find(b, stack, entry)};
    return cached;
}

/* ---- chains ---- */

static unsigned mode_of_misc(unsigned mode) {
    switch (mode) {
    case PERF_RECORD_MISC_KERNEL:
        return MODE_KERNEL;
    case PERF_RECORD_MISC_HYPERVISOR:
        return MODE_HYPERVISOR;
    case PERF_RECORD_MISC_GUEST_KERNEL:
        return MODE_GUEST_KERNEL;
    case PERF_RECORD_MISC_GUEST_USER:
        return MODE_GUEST_USER;
    default:
        return MODE_USER;
    }
}

/* -1: no marker that the kernel has. */
static int mode_of_marker(uint64_t marker) {
    switch (marker) {
    case PERF_CONTEXT_HV:
        return MODE_HYPERVISOR;
    case PERF_CONTEXT_KERNEL:
        return MODE_KERNEL;
    case PERF_CONTEXT_USER:
        return MODE_USER;
    case PERF_CONTEXT_GUEST_KERNEL:
        return MODE_GUEST_KERNEL;
    case PERF_CONTEXT_GUEST_USER:
        return MODE_GUEST_USER;
    default:
        return -1;
    }
}

/*
 * Every address but the first after a marker is a return address. What comes before any marker is of the sample's mode.
 * perf takes that for user code, and a marker it does not know, the guest's among them, makes it forget the whole chain.
 */
static void entries_of_stack(const struct builder *b, const struct stack *stack,
                             struct path *path) {
    bool compat = b->reading->options->compat_perf;
    unsigned mode = compat && !stack->is_alone ? MODE_USER : mode_of_misc(stack->mode);
    bool call = false, unwound = false;
    path->entries.count = 0;
    vector_reserve(&path->entries, stack->chain_count);
    for (uint32_t i = 0; i < stack->chain_count; i++) {
        uint64_t ip = load_u64(stack->chain + 8 * (size_t)i);
        if (stack->is_unwound && ip == CHAIN_UNWOUND) {
            mode = MODE_USER;
            unwound = true;
            call = false;
        } else if (compat && !unwound && path->entries.count == COMPAT_DEPTH) {
            continue;
        } else if (ip >= CONTEXT_MARKERS_FROM) {
            int marked = mode_of_marker(ip);
            bool known = marked >= 0 && marked != MODE_GUEST_KERNEL && marked != MODE_GUEST_USER;
            if (!known && compat) {
                path->entries.count = 0;
                return;
            }
            mode = marked < 0 ? mode : (unsigned)marked;
            call = false;
        } else {
            path->entries.items[path->entries.count++] =
                (struct entry){.ip = ip, .mode = (uint8_t)mode, .call = call, .unwound = unwound};
            call = true;
        }
    }
}

/* Each entry's own hash does not wait for the one before it; joining them is one multiplication. */
static void hash_entries(struct path *path, uint64_t epochs) {
    size_t count = path->entries.count;
    uint64_t hash = epochs;
    vector_reserve(&path->hashes, count);
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &path->entries.items[count - 1 - i];
        uint64_t what = (uint64_t)entry->mode << 2 | (uint64_t)entry->call << 1 | entry->unwound;
        hash = (hash ^ hash_mix(entry->ip, what)) * 0x9E3779B97F4A7C15ull;
        path->hashes.items[i] = hash | 1;
    }
}

/* ---- places ---- */

static struct place *place_slot(const struct places *places, uint64_t hash) {
    return &places->slots[hash >> 24 & (places->size - 1)];
}

/* The place of that hash, or the empty slot where it belongs. */
static struct place *place_find(const struct places *places, uint64_t hash) {
    struct place *place = place_slot(places, hash), *end = places->slots + places->size;
    while (place->hash && place->hash != hash)
        place = place + 1 < end ? place + 1 : places->slots;
    return place;
}

static void places_resize(struct places *places, size_t size) {
    struct places old = *places;
    places->slots = memory_table(size, sizeof *places->slots);
    places->size = size;
    for (size_t i = 0; i < old.size; i++)
        if (old.slots[i].hash)
            *place_find(places, old.slots[i].hash) = old.slots[i];
    free(old.slots);
}

static struct place *place_add(struct places *places, uint64_t hash, uint32_t id) {
    if (places->used >= places->size / 2)
        places_resize(places, 2 * places->size);
    places->used++;
    struct place *place = place_find(places, hash);
    *place = (struct place){hash, id};
    return place;
}

/* ---- nodes ---- */

/* The longest way that was gone before, and where it ends. Most new chains differ only at their leaf, so that is asked first; of what is
   left, half each time, for who was at a depth was at all before it. */
static size_t longest_way(const struct builder *b, const struct path *path, uint32_t *node) {
    size_t low = 0, high = path->entries.count;
    *node = 0;
    for (unsigned tries = 0; low < high; tries++) {
        size_t middle = tries < 2 ? high : low + (high - low + 1) / 2;
        const struct place *way = place_find(&b->ways, path->hashes.items[middle - 1]);
        if (way->hash) {
            low = middle;
            *node = way->id;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Within one epoch a way that is new is a node that is new. (A file that is mapped twice makes twins of it, which views add up.) */
static uint32_t node_of_path(struct builder *b, const struct stack *stack,
                             const struct path *path) {
    uint32_t node;
    size_t count = path->entries.count;
    bool append = stack->epochs == b->first_epochs;
    for (size_t known = longest_way(b, path, &node); known < count; known++) {
        const struct entry *entry = &path->entries.items[count - 1 - known];
        uint32_t location = location_cached(b, stack, entry)->location;
        node = append ? tree_append_node(b->tree, node, location)
                      : tree_add_node(b->tree, node, location);
        place_add(&b->ways, path->hashes.items[known], node);
    }
    return node;
}

/* ---- how recorded chains end ---- */

static enum start start_of(struct builder *b, const struct stack *stack,
                           const struct entry *entry) {
    struct cached_location *cached = location_cached(b, stack, entry);
    const struct location *location = &b->tree->locations.items[cached->location];
    struct symbol symbol;
    if (cached->start == START_UNKNOWN) {
        bool named =
            location->object && objects_symbol(b->reading->profile->objects, location->object,
                                               location->address - location->call, &symbol);
        cached->start = !named                                          ? START_NAMELESS
                        : unwind_is_first_by_frame_pointer(symbol.name) ? START_YES
                                                                        : START_NO;
    }
    return cached->start;
}

/* Whether there is nothing behind a chain's last frame, in the kernel: the user's part was not asked for; or a kernel thread, which has none,
   when the kernel hides the names that would tell. */
static bool ends_in_kernel(struct builder *b, const struct stack *stack, enum start start) {
    const struct series *series = &b->tree->series.items[b->series[stack->series]];
    return reading_excludes_user_chains(b->reading, series->event) ||
           (stack->user == 0 && start == START_NAMELESS);
}

static uint8_t ending_of_path(struct builder *b, const struct stack *stack,
                              const struct path *path) {
    size_t count = path->entries.count;
    if (stack->ending != ENDING_UNKNOWN)
        return stack->ending;
    if (b->reading->options->no_names || stack->is_alone)
        return ENDING_UNKNOWN;
    if (count == 0)
        return ENDING_BROKEN;
    const struct entry *last = &path->entries.items[count - 1];
    enum start start = start_of(b, stack, last);
    if (start == START_YES || (last->mode == MODE_KERNEL && ends_in_kernel(b, stack, start)))
        return ENDING_COMPLETE;
    /* The processor keeps 32 at most. */
    return count >= COMPAT_DEPTH || stack->is_lbr ? ENDING_TRUNCATED : ENDING_BROKEN;
}

/* ---- counting ---- */

static uint32_t series_of_stack(struct builder *b, const struct stack *stack, uint8_t ending) {
    uint32_t *known = &b->ended[(ENDING_UNKNOWN + 1) * stack->series + ending];
    if (!*known) {
        struct series series = b->tree->series.items[b->series[stack->series]];
        series.ending = ending;
        *known = tree_add_series(b->tree, &series);
    }
    return *known;
}

/* Two workers often met the same chain, under a few series each. Looking at the chain's last few cells finds nearly all of them; what
   is missed is a second cell, which views add up. */
static uint32_t count_again(struct builder *b, struct place *chain, const struct stack *stack) {
    struct tree *tree = b->tree;
    const struct cell *newest = &tree->cells.items[chain->id];
    uint32_t series = series_of_stack(b, stack, tree->series.items[newest->series].ending);
    uint32_t cell = chain->id;
    for (unsigned i = 0; i < CELLS_LOOKED_AT && cell; i++, cell = b->older_cells.items[cell])
        if (tree->cells.items[cell].series == series) {
            tree_count_again(tree, cell, stack->samples, stack->weight);
            return cell;
        }
    struct cell new = {
        .node = newest->node, .series = series, .samples = stack->samples, .weight = stack->weight};
    vector_push(&b->older_cells, chain->id);
    return chain->id = tree_append_cell(tree, &new);
}

static uint32_t count_new(struct builder *b, const struct stack *stack, const struct path *path) {
    struct cell new = {.node = node_of_path(b, stack, path),
                       .series = series_of_stack(b, stack, ending_of_path(b, stack, path)),
                       .samples = stack->samples,
                       .weight = stack->weight};
    uint32_t cell = tree_append_cell(b->tree, &new);
    vector_push(&b->older_cells, 0);
    place_add(&b->chains, stack->hash, cell);
    return cell;
}

static void prefetch_chain(const struct stack *stack) {
    for (uint32_t i = 0; i < stack->chain_count && i < 64; i += 8)
        __builtin_prefetch(stack->chain + 8 * (size_t)i);
}

static void prefetch_way(const struct builder *b, const struct path *path, size_t back) {
    if (path->entries.count >= back)
        __builtin_prefetch(place_slot(&b->ways, path->hashes.items[path->entries.count - back]), 1);
}

/* Up to eight stacks, in steps that don't wait for each other's memory. */
static void add_group(struct builder *b, const struct stack *stacks, size_t count,
                      uint32_t *cells) {
    bool known[GROUP];
    for (size_t i = 0; i < count; i++) {
        const struct place *chain = place_find(&b->chains, stacks[i].hash);
        known[i] = chain->hash;
        if (known[i])
            __builtin_prefetch(&b->tree->cells.items[chain->id], 1);
        else
            prefetch_chain(&stacks[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (known[i])
            continue;
        entries_of_stack(b, &stacks[i], &b->paths[i]);
        hash_entries(&b->paths[i], stacks[i].epochs);
        prefetch_way(b, &b->paths[i], 1);
        prefetch_way(b, &b->paths[i], 2);
    }
    for (size_t i = 0; i < count; i++) {
        struct place *chain = place_find(&b->chains, stacks[i].hash);
        cells[i] = chain->hash ? count_again(b, chain, &stacks[i])
                               : count_new(b, &stacks[i], &b->paths[i]);
    }
}

/* A worker's samples name their stacks; stacks' cells tell node and series. */
static void keep_samples(struct builder *b, const struct worker *w, const uint32_t *cells) {
    for (size_t i = 0; i < w->tree->samples.count; i++) {
        struct sample sample = w->tree->samples.items[i];
        const struct cell *cell = &b->tree->cells.items[cells[sample.node]];
        sample.node = cell->node;
        sample.series = cell->series;
        tree_keep_sample(b->tree, &sample);
    }
}

static void add_worker(struct builder *b, const struct worker *w) {
    uint32_t *cells = memory_resize(NULL, w->stacks.count + GROUP, sizeof *cells);
    b->series = memory_zero(w->tree->series.count, sizeof *b->series);
    b->ended = memory_zero(w->tree->series.count, (ENDING_UNKNOWN + 1) * sizeof *b->ended);
    tree_merge_series(b->tree, w->tree, b->series);
    for (size_t i = 1; i < w->stacks.count; i += GROUP) {
        size_t count = w->stacks.count - i < GROUP ? w->stacks.count - i : GROUP;
        for (size_t k = i + GROUP; k < i + 2 * GROUP && k < w->stacks.count; k++)
            __builtin_prefetch(place_slot(&b->chains, w->stacks.items[k].hash), 1);
        add_group(b, w->stacks.items + i, count, cells + i);
    }
    keep_samples(b, w, cells);
    free(cells);
    free(b->series);
    free(b->ended);
}

static void builder_init(struct builder *b, const struct worker *workers, unsigned count) {
    size_t stacks = 0, size = 1 << 12;
    for (unsigned i = 0; i < count; i++) {
        stacks += workers[i].stacks.count;
        if (workers[i].stacks.count > 1 && !b->first_epochs)
            b->first_epochs = workers[i].stacks.items[1].epochs;
    }
    while (size < 2 * stacks)
        size *= 2;
    places_resize(&b->ways, size);
    places_resize(&b->chains, size);
    vector_reserve(&b->tree->nodes, stacks);
    vector_reserve(&b->tree->cells, stacks);
    vector_reserve(&b->older_cells, stacks);
    vector_push(&b->older_cells, 0);
    b->cache = memory_table(LOCATION_CACHE, sizeof *b->cache);
    if (count > 1 && !b->reading->options->no_names)
        b->prefetched =
            memory_zero(objects_count(b->reading->profile->objects) + 1, sizeof *b->prefetched);
}

void reading_build(struct reading *reading, struct worker *workers, unsigned count) {
    struct builder b = {.reading = reading, .tree = reading->profile->tree};
    builder_init(&b, workers, count);
    for (unsigned i = 0; i < count; i++)
        add_worker(&b, &workers[i]);
    for (size_t i = 0; i < GROUP; i++) {
        vector_release(&b.paths[i].entries);
        vector_release(&b.paths[i].hashes);
    }
    vector_release(&b.older_cells);
    free(b.prefetched);
    free(b.cache);
    free(b.ways.slots);
    free(b.chains.slots);
}
