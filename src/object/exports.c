/*
 * Where a file has the symbols that it exports, by name: for recorders that read the memory of what runs.
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
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t symbols = data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
    for (size_t i = 0; i < symbols && i < INT32_MAX; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF)
            continue;
        const char *name = elf_strptr(image->elf, header.sh_link, symbol.st_name);
        size_t number = name ? number_of(name, names, count) : SIZE_MAX;
        if (number != SIZE_MAX)
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
