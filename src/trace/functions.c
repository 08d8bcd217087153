/*
 * Function symbols as ranges that do not overlap.
 *
 * The object room reads the symbols, but the layout is separate, because it answers another question. The object room asks which name
 * describes an address best, for each file alone. Here the question is whether two addresses are in the same function: labels inside a
 * function must not split it, its cold part belongs to it, several files at their addresses share one table, and files are added while others
 * already run.
 *
 * Symbols are collected in `symbols`, whose index is the function's id. Before the first lookup they are sorted by address and laid out:
 * first sized symbols, with nested ones inside outer ones, then those without a size in the holes that are left. A lookup is a binary search
 * over the pieces.
 */
#include "object/object.h"
#include "trace/trace.h"

#include <pthread.h>
#include <stdlib.h>

struct function_symbol {
    struct text name;
    uint64_t start;
    uint64_t size;
    uint64_t section_end; /* 0: unknown */
    uint32_t id;          /* its own, or that of the function whose cold part it is */
    uint32_t file;        /* which one it came with */
    /* For the first symbol of its name in its file: the last symbol of that name; 0 if they are at several addresses. */
    uint32_t last_named;
    uint16_t rank;
    bool is_stub;
};

struct functions {
    struct arena arena;
    VECTOR(struct function_symbol) symbols; /* by id; item 0 is none */
    VECTOR(struct function_range) ranges;
    uint32_t file; /* the one being added */
    bool sorted;
    pthread_mutex_t lock; /* lookups and additions: QEMU's threads translate while others run */
};

struct functions *functions_new(void) {
    struct functions *functions = memory_zero(1, sizeof *functions);
    pthread_mutex_init(&functions->lock, NULL);
    vector_push(&functions->symbols, ((struct function_symbol){0}));
    return functions;
}

void functions_free(struct functions *functions) {
    if (!functions)
        return;
    arena_release(&functions->arena);
    vector_release(&functions->symbols);
    vector_release(&functions->ranges);
    pthread_mutex_destroy(&functions->lock);
    free(functions);
}

static void add(struct functions *functions, struct function_symbol symbol) {
    pthread_mutex_lock(&functions->lock);
    symbol.name = arena_copy(&functions->arena, symbol.name);
    symbol.id = (uint32_t)functions->symbols.count;
    symbol.file = functions->file;
    vector_push(&functions->symbols, symbol);
    functions->sorted = false;
    pthread_mutex_unlock(&functions->lock);
}

/* A function's name is preferred to a label's, whatever their ranks. */
static uint16_t rank_of(bool is_function, unsigned rank) {
    return (uint16_t)((is_function ? 0x8000 : 0) | (rank & 0xff));
}

void functions_add(struct functions *functions, struct text name, uint64_t start, uint64_t size,
                   uint64_t section_end, bool is_function, unsigned rank) {
    add(functions, (struct function_symbol){.name = name,
                                            .start = start,
                                            .size = size,
                                            .section_end = section_end,
                                            .rank = rank_of(is_function, rank)});
}

/* ---- layout ------------------------------------------------------------------------------- */

static size_t leading_underscores(struct text t) {
    size_t n = 0;
    while (n < t.length && t.data[n] == '_')
        n++;
    return n;
}

/* Sort names for one address by preference: a function's, a sized one, by rank, fewer underscores, longer. */
static int symbol_compare(const void *left, const void *right) {
    const struct function_symbol *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (!a->size != !b->size)
        return a->size ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1; /* the outer one first */
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    size_t ua = leading_underscores(a->name), ub = leading_underscores(b->name);
    if (ua != ub)
        return ua < ub ? -1 : 1;
    if (a->name.length != b->name.length)
        return a->name.length > b->name.length ? -1 : 1;
    return text_compare(a->name, b->name);
}

static void piece_add(struct functions *functions, uint64_t start, uint64_t end, uint32_t id) {
    if (start < end)
        vector_push(&functions->ranges, ((struct function_range){start, end, id}));
}

/* Lay out sized symbols in address order, with a stack of those that are still open. */
static void layout_sized(struct functions *functions, const struct function_symbol *sorted,
                         size_t count) {
    VECTOR(struct function_range) open = {0};
    uint64_t at = 0;
    for (size_t i = 0; i <= count; i++) {
        uint64_t start = i < count ? sorted[i].start : UINT64_MAX;
        if (i < count && (!sorted[i].size || (i && sorted[i - 1].start == start)))
            continue; /* of two that begin together the larger is used for both */
        while (open.count && open.items[open.count - 1].end <= start) {
            struct function_range top = open.items[--open.count];
            piece_add(functions, at, top.end, top.function);
            if (top.end > at)
                at = top.end;
        }
        if (open.count)
            piece_add(functions, at, start, open.items[open.count - 1].function);
        at = start;
        if (i < count)
            vector_push(&open, ((struct function_range){
                                   start, saturating_add(start, sorted[i].size), sorted[i].id}));
    }
    vector_release(&open);
}

static int range_compare(const void *left, const void *right) {
    const struct function_range *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Put zero-size symbols into the holes: up to the next symbol of any kind, or the section's end. */
static void layout_unsized(struct functions *functions, const struct function_symbol *sorted,
                           size_t count) {
    size_t sized = functions->ranges.count, next = 0;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i].size || (i && sorted[i].start == sorted[i - 1].start))
            continue;
        uint64_t start = sorted[i].start, end = UINT64_MAX;
        while (next < sized && functions->ranges.items[next].end <= start)
            next++;
        if (next < sized && functions->ranges.items[next].start <= start)
            continue; /* a label inside a function */
        size_t after = i + 1;
        while (after < count && sorted[after].start == start)
            after++;
        if (after < count)
            end = sorted[after].start;
        if (sorted[i].section_end > start && sorted[i].section_end < end)
            end = sorted[i].section_end;
        piece_add(functions, start, end, sorted[i].id);
    }
    if (functions->ranges.count)
        qsort(functions->ranges.items, functions->ranges.count, sizeof *functions->ranges.items,
              range_compare);
}

/* ---- cold parts --------------------------------------------------------------------------- */

static struct text cold_parent(struct text name) {
    const struct text suffix = TEXT(".cold");
    if (name.length <= suffix.length || !text_ends(name, suffix))
        return (struct text){"", 0};
    return text_upto(name, name.length - suffix.length);
}

static uint64_t name_hash(struct text name, uint32_t file) {
    return hash_mix(hash_bytes(name.data, name.length), file);
}

/* The first symbol of that name in the file; 0 if there is none. */
static uint32_t find_named(const struct functions *functions, const struct index *index,
                           struct text name, uint32_t file) {
    uint32_t id;
    for (struct probe p = index_probe(index, name_hash(name, file));
         (id = index_next(index, &p));) {
        const struct function_symbol *symbol = &functions->symbols.items[id];
        if (symbol->file == file && text_equal(symbol->name, name))
            return id;
    }
    return 0;
}

/* Each name is in the index once, because a file may have any number of symbols of one name. */
static void add_named(struct functions *functions, struct index *index, uint32_t id) {
    struct function_symbol *symbol = &functions->symbols.items[id];
    uint32_t same = find_named(functions, index, symbol->name, symbol->file);
    if (!same) {
        index_add(index, name_hash(symbol->name, symbol->file), id);
        symbol->last_named = id;
        return;
    }
    struct function_symbol *first = &functions->symbols.items[same];
    if (first->last_named)
        first->last_named = first->start == symbol->start ? id : 0;
}

/* Code that the compiler moved out of a function because it rarely runs still belongs to that function. */
static void join_cold_parts(struct functions *functions) {
    struct index index = {0};
    struct function_symbol *symbols = functions->symbols.items;
    for (uint32_t i = 1; i < functions->symbols.count; i++)
        add_named(functions, &index, i);
    for (uint32_t i = 1; i < functions->symbols.count; i++) {
        struct text parent = cold_parent(symbols[i].name);
        uint32_t id = parent.length ? find_named(functions, &index, parent, symbols[i].file) : 0;
        id = id ? symbols[id].last_named : 0; /* with several it is unknown whose it is */
        symbols[i].id = id ? id : i;
    }
    index_release(&index);
}

static void functions_sort(struct functions *functions) {
    size_t count = functions->symbols.count - 1;
    functions->ranges.count = 0;
    functions->sorted = true;
    if (!count)
        return;
    join_cold_parts(functions);
    struct function_symbol *sorted = memory_resize(NULL, count, sizeof *sorted);
    memcpy(sorted, functions->symbols.items + 1, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, symbol_compare);
    layout_sized(functions, sorted, count);
    layout_unsized(functions, sorted, count);
    free(sorted);
}

static struct function_range range_find(struct functions *functions, uint64_t address) {
    const struct function_range *ranges = functions->ranges.items;
    /* the first range that begins after the address */
    size_t low = search_first(middle, 0, functions->ranges.count, ranges[middle].start <= address);
    if (low && address < ranges[low - 1].end)
        return ranges[low - 1];
    return (struct function_range){low ? ranges[low - 1].end : 0,
                                   low < functions->ranges.count ? ranges[low].start : UINT64_MAX,
                                   0};
}

struct function_range functions_find(struct functions *functions, uint64_t address) {
    pthread_mutex_lock(&functions->lock);
    if (!functions->sorted)
        functions_sort(functions);
    struct function_range range = range_find(functions, address);
    pthread_mutex_unlock(&functions->lock);
    return range;
}

struct text functions_name(const struct functions *functions, uint32_t function) {
    return functions->symbols.items[function].name;
}

uint64_t functions_start(struct functions *functions, uint32_t function) {
    pthread_mutex_lock(&functions->lock);
    uint64_t start = functions->symbols.items[function].start;
    pthread_mutex_unlock(&functions->lock);
    return start;
}

bool functions_is_stub(struct functions *functions, uint32_t function) {
    pthread_mutex_lock(&functions->lock);
    bool is_stub = functions->symbols.items[function].is_stub;
    pthread_mutex_unlock(&functions->lock);
    return is_stub;
}

/* ---- ELF ---------------------------------------------------------------------------------- */

struct elf_addition {
    struct functions *functions;
    uint64_t bias;
};

/* Mapping symbols ($x) and the assembler's own labels (.L) are not names; nothing is called at address 0 of a file. The head of a PLT is not
   a function: slots go through it on their way to the loader, and keep their identity. */
static void add_symbol(void *context, const struct code_symbol *symbol) {
    struct elf_addition *a = context;
    struct text name = symbol->name;
    if (!symbol->start || name.data[0] == '$' || text_starts(name, TEXT(".L")) ||
        text_equal(name, TEXT(".plt")))
        return;
    add(a->functions,
        (struct function_symbol){.name = name,
                                 .start = symbol->start + a->bias,
                                 .size = symbol->is_unsized ? 0 : symbol->end - symbol->start,
                                 .section_end = symbol->end + a->bias,
                                 .rank = rank_of(symbol->is_function, symbol->rank),
                                 .is_stub = symbol->is_stub});
}

size_t functions_add_elf(struct functions *functions, const void *image, size_t size,
                         uint64_t bias) {
    struct elf_addition addition = {functions, bias};
    size_t before = functions->symbols.count;
    functions->file++;
    object_each_symbol(image, size, add_symbol, &addition);
    return functions->symbols.count - before;
}
