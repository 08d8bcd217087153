/*
 * Which compilation unit holds an address.
 *
 * Units are indexed by their own ranges, from the first DIE of each: clang writes no .debug_aranges. Those that say nothing
 * of themselves there are taken from .debug_aranges, if it knows them. Reading the first DIE of each unit costs about a
 * microsecond a unit; nothing else of a unit is read until it is hit.
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

static bool add_range(struct units *units, uint64_t start, uint64_t end, uint32_t unit) {
    if (!is_code(units, start, end))
        return false;
    struct unit_range range = {start, end, 0, unit};
    vector_push(&units->ranges, range);
    return true;
}

static bool add_ranges(struct units *units, Dwarf_Die *die, uint32_t unit) {
    Dwarf_Addr base, start, end;
    bool any = false;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;)
        any |= add_range(units, start, end, unit);
    return any;
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
    size_t low = 0, high = units->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (units->items[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < units->count && units->items[low].offset == offset ? (uint32_t)low : UINT32_MAX;
}

static void add_aranges(struct units *units, struct dwarf_handle *handle, const uint8_t *silent) {
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
        if (unit != UINT32_MAX && silent[unit])
            add_range(units, start, saturating_add(start, length), unit);
    }
}

void units_index(struct units *units, struct dwarf_handle *handle) {
    VECTOR(struct unit) items = {0};
    VECTOR(uint8_t) silent = {0};
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;
    bool any_silent = false;
    while (dwarf_get_units(handle->main.dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton && type != DW_UT_partial)
            continue;
        if (type == DW_UT_skeleton && items.count == 0)
            units_choose_way(units, &die);
        bool has_ranges = add_ranges(units, &die, (uint32_t)items.count);
        any_silent |= !has_ranges;
        vector_push(&silent, (uint8_t)!has_ranges);
        vector_push(&items, ((struct unit){.offset = dwarf_dieoffset(&die)}));
    }
    units->items = items.items;
    units->count = items.count;
    for (size_t i = 0; i < units->count; i++)
        lock_init_brief(&units->items[i].lock);
    if (any_silent)
        add_aranges(units, handle, silent.items);
    vector_release(&silent);
    sort_ranges(units);
}
