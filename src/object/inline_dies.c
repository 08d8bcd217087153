/*
 * Walk the DIEs of a unit in file order, many times faster than libdw, which looks up each DIE's abbreviation under two locks and parses it again
 * to find the length of the DIE. Here an abbreviation is parsed once into a shape: the attributes of interest, and the steps to skip over all
 * attributes.
 *
 * A DIE that no compiler would write (an unknown form, attributes beyond the unit's end, a sibling that lies before it) is "strange": the caller
 * falls back to libdw, which decides how to read it.
 */
#include "object/inline.h"

#include <dwarf.h>
#include <stdlib.h>

enum { ATTRIBUTES_MOST = 64 };

enum step_kind { STEP_BYTES, STEP_LEB, STEP_STRING, STEP_BLOCK, STEP_BLOCK_LEB };

/* Over one attribute, or several whose size is known. */
struct die_step {
    uint8_t kind;
    uint8_t size;    /* in bytes, or of a block's length */
    bool is_sibling; /* it says where the next DIE of this level is */
};

/* ---- the section ---- */

static bool is_one_of(const char *name, const char *const *known, size_t count) {
    for (size_t i = 0; name && i < count; i++)
        if (strcmp(name, known[i]) == 0)
            return true;
    return false;
}

/* The next section of one of these names, and its bytes. */
static Elf_Data *next_data(Elf *elf, Elf_Scn **section, const char *const *known, size_t count) {
    size_t names;
    if (!elf || elf_getshdrstrndx(elf, &names) != 0)
        return NULL;
    while ((*section = elf_nextscn(elf, *section))) {
        GElf_Shdr header;
        Elf_Data *data;
        if (gelf_getshdr(*section, &header) && !(header.sh_flags & SHF_COMPRESSED) &&
            is_one_of(elf_strptr(elf, names, header.sh_name), known, count) &&
            (data = elf_getdata(*section, NULL)) && data->d_buf && data->d_size)
            return data;
    }
    return NULL;
}

/* Where the bytes of the section end that holds `at`: a unit may say that it goes on. */
static const uint8_t *section_end(Elf *elf, const uint8_t *at) {
    static const char *const known[] = {".debug_info", ".debug_info.dwo", ".zdebug_info",
                                        ".debug_types", ".debug_types.dwo"};
    Elf_Scn *section = NULL;
    for (Elf_Data *data; (data = next_data(elf, &section, known, COUNT_OF(known)));) {
        const uint8_t *start = data->d_buf;
        if (at >= start && at < start + data->d_size)
            return start + data->d_size;
    }
    return NULL;
}

bool strings_end(Elf *elf) {
    static const char *const known[] = {".debug_str", ".debug_line_str", ".debug_str.dwo",
                                        ".zdebug_str", ".zdebug_line_str"};
    Elf_Scn *section = NULL;
    for (Elf_Data *data; (data = next_data(elf, &section, known, COUNT_OF(known)));)
        if (((const uint8_t *)data->d_buf)[data->d_size - 1] != 0)
            return false;
    return true;
}

const char *attribute_string(Dwarf_Attribute *attribute) {
    const char *text = dwarf_formstring(attribute);
    if (!text || dwarf_whatform(attribute) != DW_FORM_string)
        return text;
    const uint8_t *start = attribute->valp,
                  *end = section_end(dwarf_getelf(dwarf_cu_getdwarf(attribute->cu)), start);
    return end && memchr(start, 0, (size_t)(end - start)) ? text : NULL;
}

bool dies_begin(struct dies *dies, Dwarf_Die *top, uint64_t unit_size) {
    Dwarf_Die first;
    *dies = (struct dies){.cu = top->cu};
    if (dwarf_cu_info(top->cu, &dies->version, NULL, NULL, NULL, NULL, &dies->address_size,
                      &dies->offset_size) != 0 ||
        dwarf_child(top, &first) != 0)
        return false;
    dies->unit = (const uint8_t *)top->addr - dwarf_cuoffset(top);
    dies->at = first.addr;
    dies->end = section_end(dwarf_getelf(dwarf_cu_getdwarf(top->cu)), top->addr);
    if (!dies->end || dies->at >= dies->end)
        return false;
    if (unit_size < (uint64_t)(dies->end - dies->unit))
        dies->end = dies->unit + unit_size;
    return dies->at < dies->end;
}

void dies_release(struct dies *dies) {
    vector_release(&dies->shapes);
    vector_release(&dies->steps);
}

/* ---- shapes ---- */

/* False: what follows can't be found. */
static bool step_of_form(const struct dies *dies, unsigned form, struct die_step *step) {
    *step = (struct die_step){STEP_BYTES};
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return true;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        step->size = 1;
        return true;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        step->size = 2;
        return true;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        step->size = 3;
        return true;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
        step->size = 4;
        return true;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
        step->size = 8;
        return true;
    case DW_FORM_data16:
        step->size = 16;
        return true;
    case DW_FORM_addr:
        step->size = dies->address_size;
        return true;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        step->size = dies->offset_size;
        return true;
    case DW_FORM_ref_addr:
        step->size = dies->version < 3 ? dies->address_size : dies->offset_size;
        return true;
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        step->kind = STEP_LEB;
        return true;
    case DW_FORM_string:
        step->kind = STEP_STRING;
        return true;
    case DW_FORM_block1:
        *step = (struct die_step){STEP_BLOCK, 1};
        return true;
    case DW_FORM_block2:
        *step = (struct die_step){STEP_BLOCK, 2};
        return true;
    case DW_FORM_block4:
        *step = (struct die_step){STEP_BLOCK, 4};
        return true;
    case DW_FORM_block:
    case DW_FORM_exprloc:
        step->kind = STEP_BLOCK_LEB;
        return true;
    default:
        return false;
    }
}

/* Of a reference within the unit, which all siblings are. dwz writes ref_udata. */
static bool is_near(unsigned form) {
    return form == DW_FORM_ref1 || form == DW_FORM_ref2 || form == DW_FORM_ref4 ||
           form == DW_FORM_ref8 || form == DW_FORM_ref_udata;
}

static void add_step(struct dies *dies, struct die_shape *shape, struct die_step step) {
    struct die_step *last = shape->step_count ? &dies->steps.items[dies->steps.count - 1] : NULL;
    bool is_plain = step.kind == STEP_BYTES && !step.is_sibling;
    if (is_plain && step.size == 0)
        return;
    if (last && is_plain && last->kind == STEP_BYTES && !last->is_sibling &&
        last->size + step.size <= UINT8_MAX) {
        last->size += step.size;
        return;
    }
    vector_push(&dies->steps, step);
    shape->step_count++;
}

static bool add_attribute(struct dies *dies, struct die_shape *shape, unsigned name,
                          unsigned form) {
    struct die_step step;
    if (!step_of_form(dies, form, &step))
        return false;
    shape->has_code |= name == DW_AT_low_pc || name == DW_AT_high_pc || name == DW_AT_ranges;
    step.is_sibling = name == DW_AT_sibling;
    if (step.is_sibling && !is_near(form))
        return false;
    add_step(dies, shape, step);
    return true;
}

/* Read the shape of the first DIE with its code. dwarf_getattrcnt() would count the values of DW_FORM_implicit_const as attributes, so go on until
   there are no more. */
static bool shape_read(struct dies *dies, struct die_shape *shape) {
    Dwarf_Die die = {.addr = (void *)(uintptr_t)dies->at, .cu = dies->cu};
    unsigned name, form;
    size_t count = 0;
    int tag = dwarf_tag(&die);
    if (tag == 0)
        return false;
    *shape = (struct die_shape){.abbreviation = die.abbrev,
                                .first_step = (uint32_t)dies->steps.count,
                                .tag = (uint32_t)tag,
                                .has_children = dwarf_abbrevhaschildren(die.abbrev) != 0};
    for (; dwarf_getabbrevattr(die.abbrev, count, &name, &form, NULL) == 0; count++)
        if (count >= ATTRIBUTES_MOST || !add_attribute(dies, shape, name, form))
            return false;
    return true;
}

/* NULL: it is strange. Codes are small numbers; as many as the unit has bytes are enough, and cost no more than the unit does. */
static const struct die_shape *shape_of(struct dies *dies, uint64_t code) {
    if (code > (uint64_t)(dies->end - dies->unit))
        return NULL;
    while (dies->shapes.count <= code)
        vector_push(&dies->shapes, ((struct die_shape){0}));
    struct die_shape *shape = &dies->shapes.items[code];
    if (!shape->abbreviation && !shape_read(dies, shape)) {
        shape->abbreviation = NULL;
        return NULL;
    }
    return shape;
}

/* ---- going on ---- */

/* False: it does not end. */
static inline bool leb_read(const uint8_t **at, const uint8_t *end, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static uint64_t number_read(const uint8_t *at, size_t size) {
    uint64_t value = 0;
    memcpy(&value, at, size); /* only files of this machine's byte order are read */
    return value;
}

static bool string_skip(const uint8_t **at, const uint8_t *end) {
    const uint8_t *zero = memchr(*at, 0, (size_t)(end - *at));
    *at = zero ? zero + 1 : end;
    return zero;
}

static bool note_sibling(struct dies *dies, uint64_t offset) {
    if (offset >= (uint64_t)(dies->end - dies->unit))
        return false;
    dies->sibling = dies->unit + offset;
    return true;
}

/* A step's bytes and, of a block, what its length says. */
static bool step_over(struct dies *dies, const struct die_step *step, const uint8_t **at) {
    uint64_t left = (uint64_t)(dies->end - *at), length = step->size;
    switch ((enum step_kind)step->kind) {
    case STEP_LEB:
        return leb_read(at, dies->end, &length) &&
               (!step->is_sibling || note_sibling(dies, length));
    case STEP_STRING:
        return string_skip(at, dies->end);
    case STEP_BLOCK:
        if (step->size > left)
            return false;
        length += number_read(*at, step->size);
        break;
    case STEP_BLOCK_LEB:
        if (!leb_read(at, dies->end, &length))
            return false;
        left = (uint64_t)(dies->end - *at);
        break;
    case STEP_BYTES:
        break;
    }
    if (length > left)
        return false;
    if (step->is_sibling && !note_sibling(dies, number_read(*at, step->size)))
        return false;
    *at += length;
    return true;
}

/* A sibling lies ahead, or DIEs would be met again. */
static bool sibling_is_sound(const struct dies *dies, const uint8_t *behind) {
    return !dies->sibling || dies->sibling >= behind;
}

static bool fail_strange(struct dies *dies) {
    dies->is_strange = true;
    return false;
}

bool dies_next(struct dies *dies) {
    const uint8_t *at = dies->at;
    uint64_t code;
    dies->shape = NULL;
    dies->sibling = NULL;
    if (at >= dies->end)
        return false;
    if (!leb_read(&at, dies->end, &code))
        return fail_strange(dies);
    const struct die_shape *shape = code ? shape_of(dies, code) : NULL;
    if (code && !shape)
        return fail_strange(dies);
    for (uint32_t i = 0; shape && i < shape->step_count; i++)
        if (!step_over(dies, &dies->steps.items[shape->first_step + i], &at))
            return fail_strange(dies);
    if (!sibling_is_sound(dies, at))
        return fail_strange(dies);
    if (shape)
        dies->die = (Dwarf_Die){
            .addr = (void *)(uintptr_t)dies->at, .cu = dies->cu, .abbrev = shape->abbreviation};
    dies->shape = shape;
    dies->at = at;
    return true;
}
