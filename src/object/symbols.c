/*
 * Seal a symbol table into disjoint ranges, and look up addresses.
 */
#include "object/symbols.h"
#include "object/demangle.h"

#include <ctype.h>
#include <stdlib.h>

void symbols_init(struct symbols *symbols, const struct objects_options *options) {
    *symbols = (struct symbols){.options = options};
    lock_init_brief(&symbols->lock);
}

void symbols_release(struct symbols *symbols) {
    if (symbols->cached.data) {
        file_close(&symbols->cached);
    } else {
        vector_release(&symbols->entries);
        vector_release(&symbols->pieces);
    }
    free(symbols->tree.left);
    free(symbols->tree.right);
    free(symbols->resolved);
    pthread_mutex_destroy(&symbols->lock);
    arena_release(&symbols->arena);
    buffer_release(&symbols->made);
}

uint32_t symbols_make_name(struct symbols *symbols, struct text name) {
    uint32_t place = (uint32_t)symbols->made.count;
    buffer_add(&symbols->made, name);
    buffer_add_char(&symbols->made, 0);
    symbols->sources[MADE_SOURCE].bytes = buffer_text(&symbols->made);
    return place;
}

/* ---- names ---- */

struct text symbols_raw_name(const struct symbols *symbols, const struct entry *entry) {
    const struct symbols_source *source = &symbols->sources[entry->source];
    struct text name = {"", 0};
    if (entry->name >= source->bytes.length)
        return name;
    name = text_from(source->bytes, entry->name);
    size_t end = text_find(name, source->terminator);
    name = end == SIZE_MAX ? name : text_upto(name, end);
    end = source->tabs ? text_find(name, '\t') : SIZE_MAX;
    return end == SIZE_MAX ? name : text_upto(name, end);
}

/* memcpy@@GLIBC_2.14 is memcpy: which version a caller was linked to is not the function's name. */
static struct text without_version(struct text name) {
    size_t at = text_find(name, '@');
    if (at == SIZE_MAX || at == 0)
        return name;
    struct text version = text_from(name, at + 1);
    if (text_starts(version, TEXT("@")))
        version = text_from(version, 1);
    for (size_t i = 0; i < version.length; i++)
        if (!isalnum((unsigned char)version.data[i]) && version.data[i] != '_' &&
            version.data[i] != '.')
            return name;
    return version.length ? text_upto(name, at) : name;
}

void symbols_print_name(const struct symbols *symbols, const struct entry *entry,
                        struct buffer *buffer, bool *costly) {
    struct text raw = symbols_raw_name(symbols, entry);
    if (!symbols->options->quirks.versions_stay && !symbols->options->no_demangle)
        raw = without_version(raw);
    size_t before = buffer->count;
    if (symbols->keep_names || !demangle(symbols->options, raw, buffer, costly))
        buffer_add(buffer, raw);
    if (!(entry->flags & ENTRY_PLT))
        return;
    buffer_add(buffer, TEXT("@plt"));
    size_t limit = symbols->options->quirks.plt_name_limit;
    if (limit && buffer->count - before > limit)
        buffer->count = before + limit;
}

/* ---- sorting ---- */

/* The bits in which starts differ; 0 also when they are in order already. */
static uint64_t entries_disorder(const struct entry *entries, size_t count) {
    bool sorted = true;
    uint64_t differ = 0;
    for (size_t i = 1; i < count; i++) {
        sorted &= entries[i].start >= entries[i - 1].start;
        differ |= entries[i].start ^ entries[0].start;
    }
    return sorted ? 0 : differ;
}

enum { RADIX_BITS = 11, RADIX_SIZE = 1 << RADIX_BITS };

/* One pass, by one digit. */
static void entries_radix(const struct entry *from, struct entry *to, size_t count,
                          unsigned shift) {
    size_t *places = memory_zero(RADIX_SIZE, sizeof *places);
    for (size_t i = 0; i < count; i++)
        places[(from[i].start >> shift) % RADIX_SIZE]++;
    size_t place = 0;
    for (size_t digit = 0; digit < RADIX_SIZE; digit++) {
        size_t here = places[digit];
        places[digit] = place;
        place += here;
    }
    for (size_t i = 0; i < count; i++)
        to[places[(from[i].start >> shift) % RADIX_SIZE]++] = from[i];
    free(places);
}

void entries_sort(struct entry *entries, size_t count) {
    uint64_t differ = entries_disorder(entries, count);
    if (!differ)
        return;
    struct entry *other = memory_resize(NULL, count, sizeof *other);
    struct entry *from = entries, *to = other;
    for (unsigned shift = 0; shift < 64; shift += RADIX_BITS) {
        if ((differ >> shift) % RADIX_SIZE == 0)
            continue;
        entries_radix(from, to, count, shift);
        struct entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != entries)
        memcpy(entries, from, count * sizeof *entries);
    free(other);
}

/* ---- the better of two names for one address ---- */

/* A name kept only for programs linked long ago: cfree@GLIBC_2.2.5 beside free@@GLIBC_2.2.5. */
static bool is_superseded(const struct entry *entry, struct text name) {
    size_t at = text_find(name, '@');
    return (entry->flags & ENTRY_OLD) ||
           (at != SIZE_MAX && at + 1 < name.length && name.data[at + 1] != '@');
}

static size_t leading_underscores(struct text name) {
    size_t count = 0;
    while (count < name.length && name.data[count] == '_')
        count++;
    return count;
}

int symbols_compare(const struct symbols *symbols, const struct entry *a, const struct entry *b) {
    int order = (int)((b->flags & ENTRY_UNSIZED) != 0) - (int)((a->flags & ENTRY_UNSIZED) != 0);
    if (!order)
        order = (int)((a->flags & ENTRY_CODE) != 0) - (int)((b->flags & ENTRY_CODE) != 0);
    if (!order)
        order = (int)b->weak - (int)a->weak;
    if (!order)
        order = (int)a->global - (int)b->global;
    if (order)
        return order;
    /* What .dynsym has is in .symtab too: spares reading both names for every exported function. */
    if (a->source != b->source)
        return a->source < b->source ? 1 : -1;
    struct text x = symbols_raw_name(symbols, a), y = symbols_raw_name(symbols, b);
    order = (int)is_superseded(b, y) - (int)is_superseded(a, x);
    if (order)
        return order;
    size_t under_x = leading_underscores(x), under_y = leading_underscores(y);
    if (under_x != under_y)
        return under_x < under_y ? 1 : -1;
    if (x.length != y.length)
        return x.length > y.length ? 1 : -1;
    return 0;
}

static void symbols_keep_best(struct symbols *symbols) {
    size_t kept = 0;
    struct entry *entries = symbols->entries.items;
    for (size_t i = 0; i < symbols->entries.count; i++) {
        if (kept && entries[kept - 1].start == entries[i].start) {
            if (symbols_compare(symbols, &entries[kept - 1], &entries[i]) < 0)
                entries[kept - 1] = entries[i];
        } else {
            entries[kept++] = entries[i];
        }
    }
    symbols->entries.count = kept;
}

/* A label inside a function is not a function; one outside reaches to whatever comes next. */
static void symbols_settle_unsized(struct symbols *symbols) {
    struct entry *entries = symbols->entries.items;
    size_t kept = 0;
    uint64_t reach = 0;
    for (size_t i = 0; i < symbols->entries.count; i++) {
        struct entry *entry = &entries[i];
        if (!(entry->flags & ENTRY_UNSIZED)) {
            reach = entry->end > reach ? entry->end : reach;
        } else {
            if (entry->start < reach)
                continue;
            if (i + 1 < symbols->entries.count && entries[i + 1].start < entry->end)
                entry->end = entries[i + 1].start;
        }
        if (entry->end > entry->start)
            entries[kept++] = *entry;
    }
    symbols->entries.count = kept;
}

/* ---- pieces ---- */

/* Entries that hold the current address, the one with the highest priority on top. */
struct active {
    VECTOR(uint32_t) heap;
    const struct entry *entries;
    /* Priority: where the name stands, which grows from line to line; else the number. */
    bool newest;
};

static bool active_above(const struct active *active, uint32_t a, uint32_t b) {
    if (active->newest)
        return active->entries[a].name > active->entries[b].name;
    return a > b;
}

static void active_swap(struct active *active, size_t a, size_t b) {
    uint32_t swap = active->heap.items[a];
    active->heap.items[a] = active->heap.items[b];
    active->heap.items[b] = swap;
}

static void active_push(struct active *active, uint32_t entry) {
    vector_push(&active->heap, entry);
    uint32_t *heap = active->heap.items;
    for (size_t i = active->heap.count - 1; i && active_above(active, heap[i], heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        active_swap(active, i, (i - 1) / 2);
}

static void active_pop(struct active *active) {
    uint32_t *heap = active->heap.items;
    heap[0] = heap[--active->heap.count];
    for (size_t i = 0;;) {
        size_t highest = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < active->heap.count; child++)
            if (active_above(active, heap[child], heap[highest]))
                highest = child;
        if (highest == i)
            return;
        active_swap(active, i, highest);
        i = highest;
    }
}

static void piece_add(struct symbols *symbols, uint64_t start, uint32_t entry) {
    struct piece *last =
        symbols->pieces.count ? &symbols->pieces.items[symbols->pieces.count - 1] : NULL;
    if (last && last->start == start)
        last->entry = entry;
    else if (!last || last->entry != entry)
        vector_push(&symbols->pieces, ((struct piece){start, entry}));
}

/* Sweeps over all starts and ends once: O(n log n) whatever overlaps with whatever. */
static void symbols_cut(struct symbols *symbols, bool newest) {
    const struct entry *entries = symbols->entries.items;
    size_t count = symbols->entries.count, next = 0;
    struct active active = {.entries = entries, .newest = newest};
    uint64_t at = 0;
    while (next < count || active.heap.count) {
        if (!active.heap.count)
            at = entries[next].start;
        while (next < count && entries[next].start <= at)
            active_push(&active, (uint32_t)next++);
        while (active.heap.count && entries[active.heap.items[0]].end <= at)
            active_pop(&active);
        piece_add(symbols, at, active.heap.count ? active.heap.items[0] : SYMBOLS_NONE);
        if (!active.heap.count)
            continue;
        at = entries[active.heap.items[0]].end;
        if (next < count && entries[next].start < at)
            at = entries[next].start;
    }
    piece_add(symbols, at, SYMBOLS_NONE);
    vector_release(&active.heap);
}

bool symbols_overlaps(const struct symbols *symbols) {
    const struct entry *entries = symbols->entries.items;
    for (size_t i = 1; i < symbols->entries.count; i++)
        if (entries[i - 1].end > entries[i].start || entries[i - 1].start == entries[i].start)
            return true;
    return false;
}

void symbols_finish(struct symbols *symbols) {
    symbols->resolved = memory_zero(symbols->entries.count + 1, sizeof *symbols->resolved);
}

void symbols_seal(struct symbols *symbols) {
    entries_sort(symbols->entries.items, symbols->entries.count);
    symbols_keep_best(symbols);
    symbols_settle_unsized(symbols);
    if (symbols_overlaps(symbols))
        symbols_cut(symbols, false);
    symbols_finish(symbols);
}

void symbols_seal_newest(struct symbols *symbols) {
    entries_sort(symbols->entries.items, symbols->entries.count);
    if (symbols_overlaps(symbols))
        symbols_cut(symbols, true);
    symbols_finish(symbols);
}

/* ---- asking ---- */

static bool entry_holds(const struct symbols *symbols, const struct entry *entry,
                        uint64_t address) {
    return address >= entry->start &&
           (address < entry->end || (symbols->perf_order && address == entry->start));
}

/* log2(n) steps, each a cache miss at worst. */
static uint32_t find_in_entries(const struct symbols *symbols, uint64_t address) {
    const struct entry *entries = symbols->entries.items;
    size_t low = search_first(middle, 0, symbols->entries.count, entries[middle].start <= address);
    return low && entry_holds(symbols, &entries[low - 1], address) ? (uint32_t)low - 1
                                                                   : SYMBOLS_NONE;
}

static uint32_t find_in_pieces(const struct symbols *symbols, uint64_t address) {
    size_t low = search_first(middle, 0, symbols->pieces.count,
                              symbols->pieces.items[middle].start <= address);
    return low ? symbols->pieces.items[low - 1].entry : SYMBOLS_NONE;
}

static uint32_t find_in_tree(const struct symbols *symbols, uint64_t address) {
    uint32_t node = symbols->tree.root;
    while (node != SYMBOLS_NONE) {
        const struct entry *entry = &symbols->entries.items[node];
        if (address < entry->start)
            node = symbols->tree.left[node];
        else if (entry_holds(symbols, entry, address))
            return node;
        else
            node = symbols->tree.right[node];
    }
    return SYMBOLS_NONE;
}

uint32_t symbols_find(const struct symbols *symbols, uint64_t address) {
    if (symbols->tree.left)
        return find_in_tree(symbols, address);
    return symbols->pieces.count ? find_in_pieces(symbols, address)
                                 : find_in_entries(symbols, address);
}

/* An entry, its copy while sorting, and the piece of it that lookups search. */
bool list_may_grow(struct symbols *symbols, size_t offset) {
    enum { COST = 2 * sizeof(struct entry) + sizeof(struct piece) };
    return budget_take_memory(&symbols->budget, COST, offset);
}
