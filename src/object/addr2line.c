/*
 * Find the symbol that binutils 2.40's addr2line would print for an address without debug information. Among the symbols with the last start
 * before the address it is the first in the table that covers it; functions come before labels, short ones before long ones. perf 6.1 prints it
 * if it differs from its own choice, so quirks.addr2line_names needs it. Scans the whole table, once for each function.
 */
#include "object/demangle.h"
#include "object/internal.h"

struct candidate {
    uint64_t start;
    uint64_t size;
    bool is_function;
    const char *name;
};

static bool is_better(const struct candidate *best, const struct candidate *next, uint64_t at) {
    if (next->start > at || (best->name && next->start < best->start))
        return false;
    if (!best->name || next->start > best->start)
        return true;
    if (at - best->start >= best->size)
        return next->size > best->size;
    if (at - next->start >= next->size)
        return false;
    if (next->is_function != best->is_function)
        return next->is_function;
    return next->size < best->size;
}

/* The section that holds the address, or 0. Symbols of others don't count. */
static size_t section_of(const struct elf_image *image, uint64_t at) {
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(image->elf, scn));) {
        GElf_Shdr header;
        if (gelf_getshdr(scn, &header) && (header.sh_flags & SHF_ALLOC) && at >= header.sh_addr &&
            at - header.sh_addr < header.sh_size)
            return elf_ndxscn(scn);
    }
    return 0;
}

static bool may_be_code(const GElf_Sym *symbol, size_t section) {
    unsigned type = GELF_ST_TYPE(symbol->st_info);
    return symbol->st_shndx == section && section &&
           (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC);
}

static void scan(const struct elf_image *image, unsigned type, uint64_t at,
                 struct candidate *best) {
    size_t section = section_of(image, at);
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(image->elf, scn));) {
        GElf_Shdr header;
        Elf_Data *data;
        if (!gelf_getshdr(scn, &header) || header.sh_type != type || !header.sh_entsize ||
            !(data = elf_getdata(scn, NULL)))
            continue;
        for (size_t i = 1; i < header.sh_size / header.sh_entsize && i < INT32_MAX; i++) {
            GElf_Sym symbol;
            if (!gelf_getsym(data, (int)i, &symbol) || !may_be_code(&symbol, section))
                continue;
            struct candidate next = {.start = symbol.st_value,
                                     .size = symbol.st_size ? symbol.st_size : 1,
                                     .is_function = GELF_ST_TYPE(symbol.st_info) != STT_NOTYPE,
                                     .name =
                                         elf_strptr(image->elf, header.sh_link, symbol.st_name)};
            if (next.name && *next.name && is_better(best, &next, at))
                *best = next;
        }
    }
}

bool objects_addr2line_symbol(struct objects *objects, uint32_t id, uint64_t address,
                              struct buffer *name) {
    struct object *object = objects_object(objects, id);
    struct candidate best = {0};
    uint64_t at;
    if (object->identity.kind == OBJECT_VDSO)
        return false; /* perf does not ask addr2line about names in brackets */
    pthread_mutex_lock(&object->lock);
    const struct elf_image *image = object_image(objects, object);
    const struct elf_image *debug = object_debug(objects, object);
    if (image && elf_offset_to_address(image, address, &at)) {
        image = debug ? debug : image;
        scan(image, SHT_SYMTAB, at, &best);
        if (!best.name)
            scan(image, SHT_DYNSYM, at, &best);
    }
    if (best.name && !demangle(&objects->options, text_of(best.name), name, NULL))
        buffer_add(name, text_of(best.name));
    pthread_mutex_unlock(&object->lock);
    return best.name;
}
