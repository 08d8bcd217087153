/*
 * Find the addresses of a file's exported symbols by name, for recorders that read the memory of running processes.
 */
#include "object/elf.h"

/* An exported symbol's number among `names`; SIZE_MAX: it is none of them. */
static size_t number_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return SIZE_MAX;
}

static void look_up(const struct elf_image *image, const char *const *names, size_t count,
                    uint64_t *addresses) {
    GElf_Shdr header;
    Elf_Scn *section = elf_section(image, ".dynsym", &header);
    if (!section) /* a static executable */
        section = elf_section(image, ".symtab", &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t symbols = data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
    for (size_t i = 0; i < symbols && i < INT32_MAX; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
            continue;
        const char *name = elf_strptr(image->elf, header.sh_link, symbol.st_name);
        size_t number = name ? number_of(name, names, count) : SIZE_MAX;
        if (number != SIZE_MAX && GELF_ST_BIND(symbol.st_info) != STB_LOCAL)
            addresses[number] = symbol.st_value;
    }
}

bool object_exports(const char *path, const char *const *names, size_t count, uint64_t *addresses,
                    uint64_t offset, uint64_t *address) {
    struct elf_image *image = elf_image_open(path, false, NULL);
    memset(addresses, 0, count * sizeof *addresses);
    bool fine = image && image->is_64 && elf_offset_to_address(image, offset, address);
    if (fine)
        look_up(image, names, count, addresses);
    elf_image_free(image);
    return fine;
}

bool object_has_export(const char *path, const char *name) {
    struct elf_image *image = elf_image_open(path, false, NULL);
    uint64_t address = 0;
    if (image)
        look_up(image, &name, 1, &address);
    elf_image_free(image);
    return address;
}

/* ---- thread-local variables ---- */

/* A relocation of a section that gives the number of the module which has the symbol; 0: there is none. */
static uint64_t slot_in(const struct elf_image *image, Elf_Scn *section, const GElf_Shdr *header,
                        const char *name) {
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Shdr symbols_header;
    Elf_Scn *symbols = elf_getscn(image->elf, header->sh_link);
    Elf_Data *table = symbols ? elf_getdata(symbols, NULL) : NULL;
    if (!data || !table || !gelf_getshdr(symbols, &symbols_header) || !header->sh_entsize)
        return 0;
    size_t count = header->sh_size / header->sh_entsize;
    for (size_t i = 0; i < count && i < INT32_MAX; i++) {
        GElf_Rela relocation;
        GElf_Sym symbol;
        if (!gelf_getrela(data, (int)i, &relocation) ||
            GELF_R_TYPE(relocation.r_info) != R_X86_64_DTPMOD64 ||
            !gelf_getsym(table, (int)GELF_R_SYM(relocation.r_info), &symbol))
            continue;
        const char *called = elf_strptr(image->elf, symbols_header.sh_link, symbol.st_name);
        if (called && strcmp(called, name) == 0)
            return relocation.r_offset;
    }
    return 0;
}

uint64_t object_tls_slot(const char *path, const char *name) {
    struct elf_image *image = elf_image_open(path, false, NULL);
    uint64_t slot = 0;
    GElf_Shdr header;
    bool known = image && image->is_64 && image->machine == EM_X86_64;
    for (Elf_Scn *section = NULL; known && !slot && (section = elf_nextscn(image->elf, section));)
        if (gelf_getshdr(section, &header) && header.sh_type == SHT_RELA)
            slot = slot_in(image, section, &header, name);
    elf_image_free(image);
    return slot;
}
