/*
 * Find where a mapped ELF file was loaded.
 */
#include "trace/qemu/plugin.h"

#include <gelf.h>
#include <libelf.h>

#define PAGE_MASK 0xfffull

/* The segment whose pages contain that offset gives the difference. */
bool elf_bias(const void *image, size_t size, uint64_t start, uint64_t offset, uint64_t *bias) {
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)image, size);
    size_t count = 0;
    bool found = false;
    if (!elf || elf_getphdrnum(elf, &count) != 0)
        count = 0;
    for (size_t i = 0; i < count && i < 256 && !found; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD)
            continue;
        uint64_t from = header.p_offset & ~PAGE_MASK;
        found = offset >= from && offset < saturating_add(header.p_offset, header.p_filesz);
        if (found)
            *bias = start - ((header.p_vaddr & ~PAGE_MASK) + (offset - from));
    }
    elf_end(elf);
    return found;
}
