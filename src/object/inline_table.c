/*
 * A table of intervals for one unit's functions and the functions inlined into them.
 *
 * The unit's DIEs are walked once, without recursion: functions may be nested in namespaces, types and blocks. Every function and every inlined
 * call becomes an entry with a parent. Their ranges are then flattened, innermost on top, so that one binary search finds an address. addr2line
 * assumes that the entry with the shortest range is the innermost, which is not always true; quirks.shortest_inline does the same. A function
 * nested in another one is a function of its own, not an inlined one.
 */
#include "object/inline.h"

#include <dwarf.h>
#include <stdlib.h>

/* No real code nests deeper than this; deeper entries are left out. */
#define DEPTH_MAX 200
/* An interval, and its two ends when it is laid flat. */
#define INTERVAL_COST (sizeof(struct interval) + 2 * (sizeof(uint64_t) + sizeof(uint32_t)))

struct interval {
    uint64_t start;
    uint64_t end;
    uint64_t size; /* quirks.shortest_inline only, else 0 */
    uint32_t entry;
};

struct level {
    Dwarf_Die die;
    const uint8_t *behind; /* where what is behind the level's parent is said to be; or NULL */
    uint32_t owner;        /* the entry that its children are inlined into */
};

struct building {
    VECTOR(struct inline_entry) entries;
    VECTOR(struct interval) intervals;
    struct level levels[DEPTH_MAX];
    unsigned depth;
    bool by_size;
    struct budget *budget; /* the file's */
    uint64_t
        dies_left; /* a unit has no more than it has bytes, unless its DIEs have each other for siblings */
    bool too_costly;
};

bool unit_dies(struct units *units, struct unit *unit, struct dwarf_handle *handle,
               Dwarf_Die *unit_die, Dwarf_Die *code_die) {
    if (!dwarf_offdie(handle->main.dwarf, unit->offset, unit_die))
        return false;
    Dwarf_Die split = {0};
    unit_split(units, unit, unit_die, &split);
    *code_die = split.addr ? split : *unit_die;
    return true;
}

/* ---- walking ---- */

/* addr2line joins ranges that touch, in the order in which they are listed. */
static bool extends(struct building *b, size_t first, uint64_t start, uint64_t end) {
    if (b->by_size)
        b->too_costly |= !budget_take_steps(b->budget, b->intervals.count - first, NO_OFFSET);
    for (size_t i = first; b->by_size && i < b->intervals.count; i++) {
        struct interval *interval = &b->intervals.items[i];
        if (interval->end != start && interval->start != end)
            continue;
        interval->end = interval->end == start ? end : interval->end;
        interval->start = interval->start == end ? start : interval->start;
        return true;
    }
    return false;
}

/* The addr2line of binutils 2.40 does not see ranges that are given by index, as clang does; only what lies inside them. */
static bool is_hidden(const struct building *b, Dwarf_Die *die) {
    Dwarf_Attribute ranges;
    return b->by_size && dwarf_attr(die, DW_AT_ranges, &ranges) &&
           dwarf_whatform(&ranges) == DW_FORM_rnglistx;
}

static bool add_entry(struct building *b, Dwarf_Die *die, uint32_t parent) {
    uint32_t entry = (uint32_t)b->entries.count;
    size_t first_interval = b->intervals.count;
    Dwarf_Addr base, start, end;
    bool any = is_hidden(b, die);
    for (ptrdiff_t at = 0;
         !any && !b->too_costly && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;)
        if (start < end && !extends(b, first_interval, start, end))
            vector_push(&b->intervals, ((struct interval){start, end, 0, entry}));
    /* Several may share one list: it is small in the file, and each pays for its copy. */
    size_t taken = (b->intervals.count - first_interval) * INTERVAL_COST + sizeof *b->entries.items;
    b->too_costly |= !budget_take_memory(b->budget, taken, NO_OFFSET);
    bool has_code = b->intervals.count > first_interval;
    uint64_t first = has_code ? b->intervals.items[first_interval].start : 0;
    for (size_t i = first_interval; b->by_size && i < b->intervals.count; i++)
        b->intervals.items[i].size = b->intervals.items[i].end - b->intervals.items[i].start;
    any |= has_code;
    if (any)
        vector_push(&b->entries,
                    ((struct inline_entry){
                        .offset = dwarf_dieoffset(die), .start = first, .parent = parent}));
    return any;
}

/* What to do with a DIE's children: whose they are, or that they are of no interest. */
static bool enters(struct building *b, unsigned tag, bool may_have_code, Dwarf_Die *die,
                   uint32_t owner, uint32_t *children) {
    *children = owner;
    switch (tag) {
    case DW_TAG_subprogram:
        *children = (uint32_t)b->entries.count;
        return may_have_code && add_entry(b, die, NO_ENTRY);
    case DW_TAG_inlined_subroutine:
        *children = (uint32_t)b->entries.count;
        return owner != NO_ENTRY && may_have_code && add_entry(b, die, owner);
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_variant_part:
    case DW_TAG_variant:
        return true;
    default:
        return false;
    }
}

/* The end of a list of children. False: what is behind it is not what their parent said. */
static bool leave(struct building *b, const struct dies *dies, unsigned *skipped) {
    if (*skipped) {
        --*skipped;
        return true;
    }
    const uint8_t *behind = b->levels[--b->depth].behind;
    return !behind || behind == dies->at;
}

/* False: something is strange. */
static bool walk_quickly(struct building *b, struct dies *dies) {
    unsigned skipped = 0; /* levels that are of no interest */
    b->levels[0].owner = NO_ENTRY;
    b->levels[0].behind = NULL;
    b->depth = 1;
    while (b->depth > 0 && !b->too_costly && dies_next(dies)) {
        uint32_t owner;
        if (!dies->shape) {
            if (!leave(b, dies, &skipped))
                return false;
            continue;
        }
        bool is_entered = !skipped &&
                          enters(b, dies->shape->tag, dies->shape->has_code, &dies->die,
                                 b->levels[b->depth - 1].owner, &owner) &&
                          b->depth < DEPTH_MAX;
        if (!dies->shape->has_children)
            continue;
        if (is_entered)
            b->levels[b->depth++] = (struct level){.behind = dies->sibling, .owner = owner};
        else if (dies->sibling)
            dies->at = dies->sibling;
        else
            skipped++;
    }
    return !dies->is_strange;
}

static void walk_by_libdw(struct building *b, Dwarf_Die *top) {
    b->levels[0].owner = NO_ENTRY;
    if (dwarf_child(top, &b->levels[0].die) != 0)
        return;
    b->depth = 1;
    while (b->depth > 0 && !b->too_costly) {
        struct level *level = &b->levels[b->depth - 1];
        uint32_t owner;
        b->too_costly = b->dies_left-- == 0;
        if (enters(b, (unsigned)dwarf_tag(&level->die), true, &level->die, level->owner, &owner) &&
            b->depth < DEPTH_MAX && dwarf_child(&level->die, &b->levels[b->depth].die) == 0) {
            b->levels[b->depth++].owner = owner;
            continue;
        }
        while (b->depth > 0) {
            level = &b->levels[b->depth - 1];
            if (dwarf_siblingof(&level->die, &level->die) == 0)
                break;
            b->depth--;
        }
    }
}

static void walk(struct building *b, Dwarf_Die *top, uint64_t size) {
    struct dies dies;
    bool done = dies_begin(&dies, top, size) && walk_quickly(b, &dies);
    dies_release(&dies);
    if (done)
        return;
    b->entries.count = b->intervals.count = 0;
    b->dies_left = size;
    walk_by_libdw(b, top);
}

/* ---- laying flat ---- */

static int interval_order(const void *a, const void *b) {
    const struct interval *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

/* The intervals that are open at some address, the last entry on top: entries come in the order of the walk, so of two that hold an
   address the later one is the inner one. A heap, as hostile ranges need not nest. */
struct open {
    VECTOR(const struct interval *) heap;
};

/* Whether `a` lies below `b`: is further out. */
static bool is_outer(const struct interval *a, const struct interval *b) {
    return a->size != b->size ? a->size > b->size : a->entry < b->entry;
}

static void heap_push(struct open *open, const struct interval *interval) {
    vector_push(&open->heap, interval);
    size_t i = open->heap.count - 1;
    while (i > 0 && is_outer(open->heap.items[(i - 1) / 2], interval)) {
        open->heap.items[i] = open->heap.items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    open->heap.items[i] = interval;
}

static void heap_pop(struct open *open) {
    const struct interval *moved = open->heap.items[--open->heap.count];
    size_t i = 0, count = open->heap.count;
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && is_outer(open->heap.items[child], open->heap.items[child + 1]))
            child++;
        if (!is_outer(moved, open->heap.items[child]))
            break;
        open->heap.items[i] = open->heap.items[child];
    }
    if (count)
        open->heap.items[i] = moved;
}

struct flat {
    VECTOR(uint64_t) starts;
    VECTOR(uint32_t) owners;
};

static void flat_add(struct flat *flat, uint64_t start, uint32_t owner) {
    size_t count = flat->starts.count;
    if (count && flat->starts.items[count - 1] == start) {
        flat->owners.items[count - 1] = owner;
        return;
    }
    if (count && flat->owners.items[count - 1] == owner)
        return;
    vector_push(&flat->starts, start);
    vector_push(&flat->owners, owner);
}

/* Closes what ends up to `until`. */
static void flat_advance(struct flat *flat, struct open *open, uint64_t until) {
    while (open->heap.count && open->heap.items[0]->end <= until) {
        uint64_t end = open->heap.items[0]->end;
        heap_pop(open);
        while (open->heap.count && open->heap.items[0]->end <= end)
            heap_pop(open);
        flat_add(flat, end, open->heap.count ? open->heap.items[0]->entry : NO_ENTRY);
    }
}

static void lay_flat(struct building *b, struct inline_table *table) {
    struct open open = {0};
    struct flat flat = {0};
    if (b->intervals.count)
        qsort(b->intervals.items, b->intervals.count, sizeof b->intervals.items[0], interval_order);
    for (size_t i = 0; i < b->intervals.count; i++) {
        const struct interval *interval = &b->intervals.items[i];
        flat_advance(&flat, &open, interval->start);
        heap_push(&open, interval);
        flat_add(&flat, interval->start, open.heap.items[0]->entry);
    }
    flat_advance(&flat, &open, UINT64_MAX);
    vector_release(&open.heap);
    table->starts = flat.starts.items;
    table->owners = flat.owners.items;
    table->segment_count = flat.starts.count;
}

static uint64_t unit_size(Dwarf_Die *die) {
    Dwarf_Off start = dwarf_dieoffset(die) - dwarf_cuoffset(die), next;
    size_t header;
    if (dwarf_next_unit(dwarf_cu_getdwarf(die->cu), start, &next, &header, NULL, NULL, NULL, NULL,
                        NULL, NULL) != 0)
        return 0;
    return next - start;
}

struct inline_table *unit_table(struct units *units, struct unit *unit,
                                struct dwarf_handle *handle) {
    if (unit->table || cached_table(units, unit))
        return unit->table;
    __atomic_store_n(&units->has_news, true, __ATOMIC_RELAXED);
    struct building *b = memory_zero(1, sizeof *b);
    struct inline_table *table = memory_zero(1, sizeof *table);
    b->by_size = units->objects->options.quirks.shortest_inline;
    Dwarf_Die unit_die, code_die;
    b->budget = units->image->budget;
    if (unit_dies(units, unit, handle, &unit_die, &code_die))
        walk(b, &code_die, unit_size(&code_die));
    if (b->too_costly) {
        __atomic_fetch_add(&units->units_left_out, 1, __ATOMIC_RELAXED);
        b->intervals.count = b->entries.count = 0;
    }
    lay_flat(b, table);
    table->entries = b->entries.items;
    table->entry_count = b->entries.count;
    vector_release(&b->intervals);
    free(b);
    __atomic_store_n(&unit->table, table, __ATOMIC_RELEASE);
    return table;
}

void table_free(struct inline_table *table) {
    if (!table)
        return;
    if (!table->is_cached) {
        free(table->starts);
        free(table->owners);
    }
    free(table->entries);
    free(table);
}

uint32_t table_lookup(const struct inline_table *table, uint64_t address) {
    size_t low = search_first(middle, 0, table->segment_count, table->starts[middle] <= address);
    return low ? table->owners[low - 1] : NO_ENTRY;
}
