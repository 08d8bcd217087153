/*
 * Chains to nodes of the tree.
 *
 * A chain is read leaf first; markers among the addresses say in which mode those after them ran. It is entered from the root, but only
 * from where nobody went before: each way from the root is known by a hash of its addresses, and the longest that is known takes about
 * three probes to find, where a probe for each frame would take twenty. Eight chains at a time, so that their first probes are under
 * way together.
 *
 * The objects that are met are put on a list, and whoever has time opens them and reads their tables.
 */
#include "profile/builder.h"

#include <stdlib.h>

enum { LOCATION_CACHE = 1 << 14, PLACES_AT_FIRST = 1 << 12, COMPAT_DEPTH = 127 };
enum { WHAT_UNWOUND = 1, WHAT_CALL = 2, WHAT_MODE_SHIFT = 2 };

enum start { START_UNKNOWN, START_NO, START_YES, START_MAIN, START_NAMELESS };

struct cached_location {
    uint64_t ip;
    uint64_t epochs;
    uint16_t what;  /* + 1; 0: empty */
    uint16_t start; /* whether a stack may end there: enum start */
    uint32_t location;
};

/* ---- locations ---- */

static unsigned mode_of(const struct entry *entry) {
    return entry->what >> WHAT_MODE_SHIFT;
}

static uint32_t root_of(const struct stack *stack, unsigned mode) {
    return mode == MODE_KERNEL ? stack->kernel : mode == MODE_USER ? stack->user : 0;
}

/* What holds the address. Data mappings don't belong to an epoch, and no code runs in them: only perf looks there. */
static const struct mapping *mapping_of(const struct reading *reading, const struct stack *stack,
                                        unsigned mode, uint64_t address) {
    const struct mapping *mapping =
        space_find(reading->profile->spaces, root_of(stack, mode), address);
    return mapping && (mapping->executable || reading->options->compat_perf) ? mapping : NULL;
}

/* The kernel's mapping ends with its text, but code that ran at boot lies behind its data, and idle CPUs' stacks begin there: where the
   kernel has a symbol is kernel. perf finds them because it stretches the mapping over all symbols, once it has one. */
static uint32_t kernel_beyond(const struct reading *reading, const struct stack *stack,
                              unsigned mode, uint64_t address) {
    struct symbol symbol;
    bool mapped = stack->kernel || !reading->options->compat_perf;
    bool found =
        mode == MODE_KERNEL && mapped && reading->kernel_object && !reading->options->no_names &&
        objects_symbol(reading->profile->objects, reading->kernel_object, address, &symbol);
    return found ? reading->kernel_object : 0;
}

static void prefetch_object(const struct building *all, uint32_t object, uint64_t address) {
    if (object && all->prefetches)
        objects_prefetch(all->reading->profile->objects, object, address,
                         !all->reading->options->no_inline);
}

void building_prefetch(const struct building *all, const struct stack *stack) {
    for (uint32_t i = 0; i < stack->chain_count; i++) {
        uint64_t ip = load_u64(stack->chain + 8 * (size_t)i);
        const struct mapping *mapping =
            ip < CONTEXT_MARKERS_FROM ? mapping_of(all->reading, stack, MODE_USER, ip) : NULL;
        if (mapping)
            prefetch_object(all, mapping->object, ip - mapping->start + mapping->offset);
    }
}

/* A return address belongs to the call before it, also when it is the first byte of another mapping; perf doesn't mind. */
static uint32_t location_find(struct builder *b, const struct stack *stack,
                              const struct entry *entry) {
    const struct reading *reading = b->all->reading;
    unsigned mode = mode_of(entry);
    bool back = entry->what & WHAT_CALL && !reading->options->compat_perf && entry->ip > 0;
    const struct mapping *mapping = mapping_of(reading, stack, mode, entry->ip - back);
    struct location location = {
        .address = mapping ? entry->ip - mapping->start + mapping->offset : entry->ip,
        .raw = reading->options->raw_addresses ? entry->ip : 0,
        .object = mapping ? mapping->object : kernel_beyond(reading, stack, mode, entry->ip - back),
        .mode = (uint8_t)mode,
        .call = back,
        .unwound = entry->what & WHAT_UNWOUND,
    };
    prefetch_object(b->all, location.object, location.address - back);
    return tree_add_location(b->tree, &location);
}

static struct cached_location *location_slot(const struct builder *b, const struct stack *stack,
                                             const struct entry *entry) {
    uint64_t slot = hash_mix(entry->ip ^ stack->epochs << 8, entry->what) >> 32;
    return &b->cache[slot & (LOCATION_CACHE - 1)];
}

static struct cached_location *location_cached(struct builder *b, const struct stack *stack,
                                               const struct entry *entry) {
    struct cached_location *cached = location_slot(b, stack, entry);
    if (cached->ip != entry->ip || cached->epochs != stack->epochs ||
        cached->what != entry->what + 1)
        *cached = (struct cached_location){.ip = entry->ip,
                                           .epochs = stack->epochs,
                                           .what = (uint16_t)(entry->what + 1),
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
static void entries_of_stack(const struct reading *reading, const struct stack *stack,
                             struct path *path) {
    bool compat = reading->options->compat_perf;
    unsigned mode = compat && !stack->is_alone ? MODE_USER : mode_of_misc(stack->mode);
    uint32_t what = mode << WHAT_MODE_SHIFT;
    size_t limit = compat ? COMPAT_DEPTH : SIZE_MAX, count = 0;
    vector_reserve(&path->entries, stack->chain_count);
    path->entries.count = 0;
    for (uint32_t i = 0; i < stack->chain_count; i++) {
        uint64_t ip = load_u64(stack->chain + 8 * (size_t)i);
        bool is_full = count >= limit && !(what & WHAT_UNWOUND);
        if (ip < CONTEXT_MARKERS_FROM && !is_full) {
            path->entries.items[count++] = (struct entry){ip, what};
            what |= WHAT_CALL;
        } else if (stack->is_unwound && ip == CHAIN_UNWOUND) {
            what = MODE_USER << WHAT_MODE_SHIFT | WHAT_UNWOUND;
        } else if (!is_full) {
            int marked = mode_of_marker(ip);
            if (compat && (marked < 0 || marked == MODE_GUEST_KERNEL || marked == MODE_GUEST_USER))
                return;
            if (marked >= 0)
                what = (unsigned)marked << WHAT_MODE_SHIFT | (what & WHAT_UNWOUND);
            what &= ~(uint32_t)WHAT_CALL;
        }
    }
    path->entries.count = count;
}

/* Each entry's own hash does not wait for the one before it; joining them is one multiplication. */
static void hash_entries(struct path *path, uint64_t epochs) {
    size_t count = path->entries.count;
    uint64_t hash = epochs;
    vector_reserve(&path->hashes, count);
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &path->entries.items[count - 1 - i];
        hash = (hash ^ hash_mix(entry->ip, entry->what)) * 0x9E3779B97F4A7C15ull;
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

static void place_add(struct places *places, const struct place *place) {
    if (places->used >= places->size / 4 * 3)
        places_resize(places, 2 * places->size);
    places->used++;
    *place_find(places, place->hash) = *place;
}

/* ---- nodes ---- */

/* The longest way that was gone before, and where it ends. Most new chains differ only at their leaf, so all but the leaf is asked for first;
   of what is left, half each time, for who was at a depth was at all before it. */
static size_t longest_way(const struct builder *b, const struct path *path, uint32_t *node) {
    size_t low = 0, high = path->entries.count ? path->entries.count - 1 : 0;
    *node = 0;
    for (unsigned tries = 0; low < high; tries++) {
        size_t middle = tries < 1 ? high : low + (high - low + 1) / 2;
        const struct place *way = place_find(&b->ways, path->hashes.items[middle - 1]);
        if (way->hash) {
            low = middle;
            *node = way->node;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Within one epoch a way that is new is a node that is new. (A file that is mapped twice makes twins of it, which views add up.) Only one epoch
   has that for good: the first of which much is met, as a program maps its libraries one after the other before it does its work. */
static bool is_main(struct builder *b, uint64_t epochs) {
    enum { CHANGES = 16, FEW_NODES = 1024 };
    if (b->main_epochs != epochs && b->main_changes < CHANGES && b->main_nodes < FEW_NODES) {
        b->main_epochs = epochs;
        b->main_changes++;
        b->main_nodes = 0;
    }
    return b->main_epochs == epochs;
}

/* Nobody goes further from a leaf, which is no return address: its way is not kept. */
static uint32_t node_of_path(struct builder *b, const struct stack *stack,
                             const struct path *path) {
    uint32_t node;
    size_t count = path->entries.count;
    bool append = is_main(b, stack->epochs);
    for (size_t known = longest_way(b, path, &node); known < count; known++) {
        const struct entry *entry = &path->entries.items[count - 1 - known];
        uint32_t location = location_cached(b, stack, entry)->location;
        node = append ? tree_append_node(b->tree, node, location)
                      : tree_add_node(b->tree, node, location);
        b->main_nodes += append;
        if (known + 1 < count)
            place_add(&b->ways, &(struct place){.hash = path->hashes.items[known], .node = node});
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
            location->object && objects_symbol(b->all->reading->profile->objects, location->object,
                                               location->address - location->call, &symbol);
        cached->start = !named                                          ? START_NAMELESS
                        : unwind_is_first_by_frame_pointer(symbol.name) ? START_YES
                        : text_equal(symbol.name, TEXT("main"))         ? START_MAIN
                                                                        : START_NO;
    }
    return cached->start;
}

/* Whether there is nothing behind a chain's last frame, in the kernel: the user's part was not asked for; or a kernel thread, which has none,
   when the kernel hides the names that would tell. */
static bool ends_in_kernel(const struct stack *stack, enum start start) {
    return stack->excludes_user || (stack->user == 0 && start == START_NAMELESS);
}

/* A C library without debug symbols has no name for what calls main(). */
static bool ends_behind_main(struct builder *b, const struct stack *stack, const struct path *path,
                             enum start start) {
    size_t count = path->entries.count;
    return start == START_NAMELESS && count > 1 &&
           start_of(b, stack, &path->entries.items[count - 2]) == START_MAIN;
}

static uint8_t ending_of_path(struct builder *b, const struct stack *stack,
                              const struct path *path) {
    size_t count = path->entries.count;
    if (stack->ending != ENDING_UNKNOWN)
        return stack->ending;
    if (b->all->reading->options->no_names || stack->is_alone)
        return ENDING_UNKNOWN;
    if (count == 0)
        return ENDING_BROKEN;
    const struct entry *last = &path->entries.items[count - 1];
    enum start start = start_of(b, stack, last);
    if (start == START_YES || (mode_of(last) == MODE_KERNEL && ends_in_kernel(stack, start)) ||
        ends_behind_main(b, stack, path, start))
        return ENDING_COMPLETE;
    /* The processor keeps 32 at most. */
    return count >= COMPAT_DEPTH || stack->is_lbr ? ENDING_TRUNCATED : ENDING_BROKEN;
}

/* ---- groups of stacks, in steps that don't wait for each other's memory ---- */

/* The chains of a group, a group ahead. */
static void prefetch_chains(struct stack *const *stacks, size_t from, size_t count) {
    for (size_t k = from; k < count && k < from + BUILD_GROUP; k++)
        for (uint32_t i = 0; i < stacks[k]->chain_count && i < 64; i += 8)
            __builtin_prefetch(stacks[k]->chain + 8 * (size_t)i);
}

static void prefetch_way(const struct builder *b, const struct path *path, size_t back) {
    if (path->entries.count >= back)
        __builtin_prefetch(place_slot(&b->ways, path->hashes.items[path->entries.count - back]), 1);
}

static void add_group(struct builder *b, struct stack *const *stacks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        entries_of_stack(b->all->reading, stacks[i], &b->paths[i]);
        hash_entries(&b->paths[i], stacks[i]->epochs);
        prefetch_way(b, &b->paths[i], 2);
        prefetch_way(b, &b->paths[i], b->paths[i].entries.count / 2 + 2);
        if (b->paths[i].entries.count)
            __builtin_prefetch(location_slot(b, stacks[i], &b->paths[i].entries.items[0]));
    }
    for (size_t i = 0; i < count; i++) {
        stacks[i]->ending = ending_of_path(b, stacks[i], &b->paths[i]);
        stacks[i]->node = node_of_path(b, stacks[i], &b->paths[i]);
        place_add(&b->stacks, &(struct place){stacks[i]->hash, stacks[i]->node, stacks[i]->ending});
    }
}

/* A third of the stacks were met before, by another worker or under another series: they are known without a look at their chains. */
static bool is_built(const struct builder *b, struct stack *stack) {
    const struct place *place = place_find(&b->stacks, stack->hash);
    if (place->hash) {
        stack->node = place->node;
        stack->ending = place->ending;
    }
    return place->hash != 0;
}

void builder_add(struct builder *b, struct stack *const *stacks, size_t count) {
    struct stack *left[BUILD_BATCH];
    size_t left_count = 0;
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(place_slot(&b->stacks, stacks[i]->hash), 1);
    for (size_t i = 0; i < count; i++)
        if (!is_built(b, stacks[i]))
            left[left_count++] = stacks[i];
    prefetch_chains(left, 0, left_count);
    for (size_t i = 0; i < left_count; i += BUILD_GROUP) {
        prefetch_chains(left, i + BUILD_GROUP, left_count);
        add_group(b, left + i, left_count - i < BUILD_GROUP ? left_count - i : BUILD_GROUP);
    }
}

void builder_init(struct builder *b, struct building *all, struct tree *tree) {
    *b = (struct builder){.all = all, .tree = tree};
    b->cache = memory_table(LOCATION_CACHE, sizeof *b->cache);
    places_resize(&b->ways, PLACES_AT_FIRST);
    places_resize(&b->stacks, PLACES_AT_FIRST);
}

/* Of three stacks about two are distinct, and for each of these there are a leaf and another node. */
void builder_expect(struct builder *b, size_t stacks) {
    size_t size = b->ways.size;
    while (size / 4 * 3 < stacks / 3 * 2)
        size *= 2;
    places_resize(&b->ways, size);
    places_resize(&b->stacks, size);
    vector_reserve(&b->tree->nodes, 2 * stacks);
}

void builder_release(struct builder *b) {
    for (size_t i = 0; i < BUILD_GROUP; i++) {
        vector_release(&b->paths[i].entries);
        vector_release(&b->paths[i].hashes);
    }
    free(b->cache);
    free(b->ways.slots);
    free(b->stacks.slots);
}
