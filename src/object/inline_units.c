/*
 * Find the compilation unit that contains an address.
 *
 * Units are indexed by .debug_aranges, which is small and read at once. For units that are not in it (clang does not write it) the ranges are
 * read from each unit's first DIE, which costs about a microsecond and some kilobytes that libdw keeps. Nothing else of a unit is read until it
 * is hit.
 */
#include "object/inline.h"

#include <dwarf.h>
#include <stdlib.h>

/* Functions that the linker dropped keep their debug information, at address 0 or thereabouts: only real code counts. */
static bool is_code(const struct units *units, uint64_t start, uint64_t end) {
    if (start >= end)
        return false;
    for (size_t i = 0; i < units->code->segment_count; i++) {
        const struct elf_segment *segment = &units->code->segments[i];
        if (segment->executable && start >= segment->address &&
            start - segment->address < segment->memory_size)
            return true;
    }
    return false;
}

/* False, too, when the file's budget does not allow more: several units may share one long list. */
static bool add_range(struct units *units, uint64_t start, uint64_t end, uint32_t unit) {
    if (!budget_take_steps(units->image->budget, units->code->segment_count, NO_OFFSET) ||
        !budget_take_memory(units->image->budget, sizeof(struct unit_range), NO_OFFSET))
        return false;
    if (!is_code(units, start, end))
        return false;
    struct unit_range range = {start, end, 0, unit};
    vector_push(&units->ranges, range);
    return true;
}

static void add_ranges(struct units *units, Dwarf_Die *die, uint32_t unit) {
    Dwarf_Addr base, start, end;
    for (ptrdiff_t at = 0; !budget_exceeded(units->image->budget) &&
                           (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;)
        add_range(units, start, end, unit);
}

static int range_order(const void *a, const void *b) {
    const struct unit_range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return (x->unit > y->unit) - (x->unit < y->unit);
}

static void sort_ranges(struct units *units) {
    uint64_t reach = 0;
    if (units->ranges.count)
        qsort(units->ranges.items, units->ranges.count, sizeof units->ranges.items[0], range_order);
    for (size_t i = 0; i < units->ranges.count; i++) {
        struct unit_range *range = &units->ranges.items[i];
        reach = reach > range->end ? reach : range->end;
        range->reach = reach;
    }
}

static uint32_t unit_at(const struct units *units, Dwarf_Off offset) {
    size_t low = search_first(middle, 0, units->count, units->items[middle].offset < offset);
    return low < units->count && units->items[low].offset == offset ? (uint32_t)low : UINT32_MAX;
}

/* Marks the units whose ranges are listed. */
static void add_aranges(struct units *units, struct dwarf_handle *handle, uint8_t *listed) {
    Dwarf_Aranges *aranges;
    size_t count;
    if (dwarf_getaranges(handle->main.dwarf, &aranges, &count) != 0)
        return;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Arange *arange = dwarf_onearange(aranges, i);
        Dwarf_Addr start;
        Dwarf_Word length;
        Dwarf_Off offset;
        if (!arange || dwarf_getarangeinfo(arange, &start, &length, &offset) != 0)
            continue;
        uint32_t unit = unit_at(units, offset);
        if (unit != UINT32_MAX && add_range(units, start, saturating_add(start, length), unit))
            listed[unit] = true;
    }
}

/* Whether a unit can hold functions; and its first DIE. */
static bool read_unit(struct dwarf_handle *handle, const struct unit *unit, Dwarf_Die *die,
                      uint8_t *type) {
    return dwarf_offdie(handle->main.dwarf, unit->offset, die) &&
           dwarf_cu_info(die->cu, NULL, type, NULL, NULL, NULL, NULL, NULL) == 0 &&
           (*type == DW_UT_compile || *type == DW_UT_skeleton || *type == DW_UT_partial);
}

static void list_units(struct units *units, struct dwarf_handle *handle) {
    VECTOR(struct unit) items = {0};
    Dwarf_Off next;
    size_t header;
    for (Dwarf_Off at = 0; dwarf_next_unit(handle->main.dwarf, at, &next, &header, NULL, NULL, NULL,
                                           NULL, NULL, NULL) == 0;
         at = next)
        vector_push(&items, ((struct unit){.offset = at + header}));
    units->items = items.items;
    units->count = items.count;
    for (size_t i = 0; i < units->count; i++)
        lock_init_brief(&units->items[i].lock);
}

void units_index(struct units *units, struct dwarf_handle *handle) {
    list_units(units, handle);
    uint8_t *listed = memory_zero(units->count, 1);
    add_aranges(units, handle, listed);
    bool is_first = true;
    for (uint32_t i = 0; i < units->count; i++) {
        Dwarf_Die die;
        uint8_t type;
        if ((listed[i] && !is_first) || !read_unit(handle, &units->items[i], &die, &type))
            continue;
        if (is_first && type == DW_UT_skeleton)
            units_choose_way(units, &die);
        is_first = false;
        if (!listed[i])
            add_ranges(units, &die, i);
    }
    if (budget_exceeded(units->image->budget))
        units->units_left_out++;
    free(listed);
    sort_ranges(units);
}
