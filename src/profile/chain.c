/*
 * Recorded chains to nodes of the worker's tree.
 *
 * A chain is read leaf first; markers among the addresses say in which mode those after them ran. A new chain is entered from
 * the root, but only from where nobody went before: each way from the root is known by a hash of its addresses, and the longest
 * that is known takes about four probes to find, where a probe for each frame would take twenty.
 */
#include "profile/worker.h"

static const struct note_kind note_unmatched = {
    "deferred-missing",
    "# samples wait for a user call chain that never came; they are counted without it"};

/* ---- locations ---- */

static uint32_t root_of(const struct space_at *at, unsigned mode) {
    return mode == MODE_KERNEL ? at->kernel : mode == MODE_USER ? at->user : 0;
}

/* What holds the address. Data mappings don't belong to an epoch, and no code runs in them: only perf looks there. */
static const struct mapping *mapping_of(const struct worker *w, const struct space_at *at,
                                        unsigned mode, uint64_t address) {
    const struct mapping *mapping =
        space_find(w->reading->profile->spaces, root_of(at, mode), address);
    return mapping && (mapping->executable || w->reading->options->compat_perf) ? mapping : NULL;
}

/* The kernel's mapping ends with its text, but code that ran at boot lies behind its data, and idle CPUs' stacks begin there: where the
   kernel has a symbol is kernel. perf finds them because it stretches the mapping over all symbols. */
static uint32_t kernel_beyond(const struct worker *w, unsigned mode, uint64_t address) {
    const struct reading *reading = w->reading;
    struct symbol symbol;
    bool found =
        mode == MODE_KERNEL && reading->kernel_object && !reading->options->no_names &&
        objects_symbol(reading->profile->objects, reading->kernel_object, address, &symbol);
    return found ? reading->kernel_object : 0;
}

/* A return address belongs to the call before it, also when it is the first byte of another mapping; perf doesn't mind. */
static uint32_t location_find(struct worker *w, const struct space_at *at,
                              const struct entry *entry) {
    const struct profile_options *options = w->reading->options;
    bool back = entry->call && !options->compat_perf && entry->ip > 0;
    const struct mapping *mapping = mapping_of(w, at, entry->mode, entry->ip - back);
    struct location location = {
        .address = mapping ? entry->ip - mapping->start + mapping->offset : entry->ip,
        .raw = options->raw_addresses ? entry->ip : 0,
        .object = mapping ? mapping->object : kernel_beyond(w, entry->mode, entry->ip - back),
        .mode = entry->mode,
        .call = back,
        .unwound = entry->unwound,
    };
    return tree_add_location(w->tree, &location);
}

struct cached_location *location_cached(struct worker *w, const struct space_at *at,
                                        const struct entry *entry) {
    uint16_t what = (uint16_t)(entry->mode << 2 | entry->call << 1 | entry->unwound);
    uint64_t slot = hash_mix(entry->ip ^ at->epochs << 8, what) >> 32 & (LOCATION_CACHE - 1);
    struct cached_location *cached = &w->cache[slot];
    if (cached->ip != entry->ip || cached->epochs != at->epochs || cached->what != what + 1)
        *cached = (struct cached_location){.ip = entry->ip,
                                           .epochs = at->epochs,
                                           .what = (uint16_t)(what + 1),
                                           .location = location_find(w, at, entry)};
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
static void entries_of_chain(struct worker *w, const struct perfdata_sample *sample,
                             const uint8_t *chain, uint64_t count) {
    bool compat = w->reading->options->compat_perf;
    unsigned mode = compat && sample->chain ? MODE_USER : mode_of_misc(sample->mode);
    bool call = false, unwound = false;
    w->entries.count = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t ip = load_u64(chain + 8 * i);
        if (w->is_unwound && ip == CHAIN_UNWOUND) {
            mode = MODE_USER;
            unwound = true;
            call = false;
        } else if (compat && !unwound && w->entries.count == COMPAT_DEPTH) {
            continue;
        } else if (ip >= CONTEXT_MARKERS_FROM) {
            int marked = mode_of_marker(ip);
            bool known = marked >= 0 && marked != MODE_GUEST_KERNEL && marked != MODE_GUEST_USER;
            if (!known && compat) {
                w->entries.count = 0;
                return;
            }
            mode = marked < 0 ? mode : (unsigned)marked;
            call = false;
        } else {
            vector_push(&w->entries,
                        ((struct entry){
                            .ip = ip, .mode = (uint8_t)mode, .call = call, .unwound = unwound}));
            call = true;
        }
    }
}

/* hashes[i] stands for the i + 1 entries next to the root, and the epoch. */
static void hash_prefixes(struct worker *w, uint64_t epochs) {
    size_t count = w->entries.count;
    uint64_t hash = epochs;
    vector_reserve(&w->hashes, count);
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &w->entries.items[count - 1 - i];
        uint64_t what = (uint64_t)entry->mode << 2 | (uint64_t)entry->call << 1 | entry->unwound;
        hash = hash_mix(hash ^ entry->ip, hash + what);
        w->hashes.items[i] = hash;
    }
}

/* The node that the first `length` entries from the root lead to, or 0 if nobody was there yet. */
static uint32_t prefix_node(const struct worker *w, size_t length) {
    uint64_t hash = w->hashes.items[length - 1];
    uint32_t number;
    for (struct probe p = index_probe(&w->prefix_index, hash);
         (number = index_next(&w->prefix_index, &p));)
        if (w->prefixes.items[number].hash == hash)
            return w->prefixes.items[number].node;
    return 0;
}

static void prefix_add(struct worker *w, size_t length, uint32_t node) {
    uint64_t hash = w->hashes.items[length - 1];
    if (!w->prefixes.count)
        vector_push(&w->prefixes, ((struct prefix){0}));
    index_add(&w->prefix_index, hash, (uint32_t)w->prefixes.count);
    vector_push(&w->prefixes, ((struct prefix){hash, node}));
}

/* The longest way that was gone before, and where it ends. Most new chains differ only at their leaf, so that is asked first; of what is
   left, half each time, for who was at a depth was at all before it. */
static size_t longest_prefix(const struct worker *w, uint32_t *node) {
    size_t low = 0, high = w->entries.count;
    *node = 0;
    for (unsigned tries = 0; low < high; tries++) {
        size_t middle = tries < 2 ? high : low + (high - low + 1) / 2;
        uint32_t found = prefix_node(w, middle);
        if (found) {
            low = middle;
            *node = found;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* The entries at hand become a path. */
static uint32_t node_of_entries(struct worker *w, const struct space_at *at) {
    uint32_t node;
    size_t count = w->entries.count;
    hash_prefixes(w, at->epochs);
    for (size_t known = longest_prefix(w, &node); known < count; known++) {
        const struct entry *entry = &w->entries.items[count - 1 - known];
        node = tree_add_node(w->tree, node, location_cached(w, at, entry)->location);
        prefix_add(w, known + 1, node);
    }
    return node;
}

uint32_t chain_node(struct worker *w, const struct perfdata_sample *sample,
                    const struct space_at *at) {
    uint8_t ip[8];
    memcpy(ip, &sample->ip, sizeof ip);
    if (sample->chain)
        entries_of_chain(w, sample, sample->chain, sample->chain_count);
    else
        entries_of_chain(w, sample, ip, 1);
    return node_of_entries(w, at);
}

/* ---- deferred chains ---- */

/* The record of the deferred chain that a sample waits for. */
static const struct deferred *deferred_find(const struct reading *reading, int32_t tid,
                                            uint64_t cookie) {
    size_t low = 0, high = reading->deferred.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct deferred *d = &reading->deferred.items[middle];
        if (d->tid < tid || (d->tid == tid && d->cookie < cookie))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < reading->deferred.count && reading->deferred.items[low].tid == tid &&
                 reading->deferred.items[low].cookie == cookie;
    return found ? &reading->deferred.items[low] : NULL;
}

bool chain_is_deferred(const struct perfdata_sample *sample) {
    uint64_t count = sample->chain_count;
    return sample->chain && count >= 2 &&
           load_u64(sample->chain + 8 * (count - 2)) == CONTEXT_USER_DEFERRED;
}

/* A chain that ends in [USER_DEFERRED, cookie] goes on with the one that came later, or stops there. */
void chain_join(struct worker *w, struct perfdata_sample *sample) {
    uint64_t count = sample->chain_count;
    struct perfdata *data = w->reading->profile->data;
    const struct deferred *found =
        deferred_find(w->reading, sample->tid, load_u64(sample->chain + 8 * (count - 1)));
    sample->chain_count = count - 2;
    struct perfdata_record record;
    struct perfdata_deferred late;
    uint64_t offset = found ? found->offset : 0;
    if (!found || !perfdata_next(data, &offset, &record, NULL) ||
        !perfdata_deferred(data, &record, &late, NULL)) {
        notes_add(&w->tree->notes, &note_unmatched, 1, 0, NULL);
        return;
    }
    w->joined.count = 0;
    uint64_t marker = PERF_CONTEXT_USER;
    buffer_add(&w->joined, (struct text){(const char *)sample->chain, 8 * sample->chain_count});
    buffer_add(&w->joined, (struct text){(const char *)&marker, 8});
    buffer_add(&w->joined, (struct text){(const char *)late.chain, 8 * late.chain_count});
    sample->chain = (const uint8_t *)w->joined.items;
    sample->chain_count = w->joined.count / 8;
}
