/*
 * Find the name and the call site of an inlined function, and the line of an address.
 */
#include "object/demangle.h"
#include "object/inline.h"

#include <dwarf.h>

static bool entry_die(struct units *units, struct unit *unit, struct dwarf_handle *handle,
                      const struct inline_entry *entry, Dwarf_Die *unit_die, Dwarf_Die *code_die,
                      Dwarf_Die *die) {
    return unit_dies(units, unit, handle, unit_die, code_die) &&
           dwarf_offdie(dwarf_cu_getdwarf(code_die->cu), entry->offset, die);
}

/* Languages whose names are what the linker sees. */
static bool is_unmangled(Dwarf_Die *unit_die) {
    switch (dwarf_srclang(unit_die)) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_UPC:
    case DW_LANG_Ada83:
    case DW_LANG_Cobol74:
    case DW_LANG_Cobol85:
    case DW_LANG_Fortran77:
    case DW_LANG_Pascal83:
    case DW_LANG_PLI:
    case DW_LANG_Mips_Assembler:
        return true;
    default:
        return false;
    }
}

/* Through abstract origin and specification, wherever these are, a bounded number of times. */
static const char *die_name(Dwarf_Die *die, bool *is_linkage) {
    static const unsigned attributes[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name};
    for (size_t i = 0; i < COUNT_OF(attributes); i++) {
        Dwarf_Attribute attribute;
        const char *name = attribute_string(dwarf_attr_integrate(die, attributes[i], &attribute));
        *is_linkage = attributes[i] != DW_AT_name;
        if (name && *name)
            return name;
    }
    return NULL;
}

void entry_find_name(struct units *units, struct unit *unit, struct dwarf_handle *handle,
                     const struct inline_entry *entry, struct buffer *name, bool *is_linkage,
                     bool *costly) {
    Dwarf_Die unit_die, code_die, die;
    if (!entry_die(units, unit, handle, entry, &unit_die, &code_die, &die))
        return;
    const char *raw = die_name(&die, is_linkage);
    *is_linkage |= is_unmangled(&code_die);
    if (raw && !demangle(&units->objects->options, text_of(raw), name, costly))
        buffer_add(name, text_of(raw));
}

static uint32_t attribute_u32(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
        return 0;
    return value > UINT32_MAX ? 0 : (uint32_t)value;
}

/* File numbers count in the line table of the unit that the entry is in. */
static const char *file_name(Dwarf_Die *unit_die, Dwarf_Die *code_die, uint32_t number) {
    Dwarf_Files *files;
    size_t count;
    if (dwarf_getsrcfiles(code_die, &files, &count) != 0 &&
        dwarf_getsrcfiles(unit_die, &files, &count) != 0)
        return NULL;
    return number < count ? dwarf_filesrc(files, number, NULL, NULL) : NULL;
}

void entry_place(struct units *units, struct unit *unit, struct dwarf_handle *handle,
                 struct inline_entry *entry) {
    Dwarf_Die unit_die, code_die, die;
    if (entry->placed)
        return;
    if (entry->parent != NO_ENTRY &&
        entry_die(units, unit, handle, entry, &unit_die, &code_die, &die)) {
        uint32_t file = attribute_u32(&die, DW_AT_call_file);
        entry->call_line = attribute_u32(&die, DW_AT_call_line);
        entry->call_column = attribute_u32(&die, DW_AT_call_column);
        entry->call_file = text_of(file ? file_name(&unit_die, &code_die, file) : NULL);
    }
    __atomic_store_n(&units->has_news, true, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->placed, true, __ATOMIC_RELEASE);
}

static void find_line(struct units *units, struct unit *unit, struct dwarf_handle *handle,
                      struct unit_place *place) {
    Dwarf_Die unit_die, code_die;
    if (!unit_dies(units, unit, handle, &unit_die, &code_die))
        return;
    Dwarf_Line *line = dwarf_getsrc_die(&unit_die, place->address);
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    int number = 0, column = 0;
    if (!file || dwarf_lineno(line, &number) != 0 || number <= 0)
        return;
    dwarf_linecol(line, &column);
    place->file = text_of(file); /* as long as the handle, which stays */
    place->line = (uint32_t)number;
    place->column = column > 0 ? (uint32_t)column : 0;
}

void unit_line(struct units *units, struct unit *unit, struct dwarf_handle *handle,
               uint64_t address, struct inline_frame *frame) {
    struct unit_place place = {.address = address};
    if (place_find(units, unit, address, frame))
        return;
    find_line(units, unit, handle, &place);
    place_add(unit, &place);
    __atomic_store_n(&units->has_news, true, __ATOMIC_RELAXED);
    if (place.line) {
        frame->file = place.file;
        frame->line = place.line;
        frame->column = place.column;
    }
}
