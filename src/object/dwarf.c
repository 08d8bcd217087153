#include "object/dwarf.h"

#include <stdlib.h>
#include <sys/mman.h>

/* zlib packs at most 1,032 to 1; beyond this sum the sizes are lies, or not for a profiler to unpack. */
#define RATIO_MAX 1040
#define UNPACKED_MAX (8ull << 30)

static bool is_debug(const char *name) {
    struct text text = text_of(name);
    return text_starts(text, TEXT(".debug_")) || text_starts(text, TEXT(".zdebug_")) ||
           text_starts(text, TEXT(".gnu.debuglto_"));
}

/* The sum of what the compressed sections say they unpack to; 0 when none is. UINT64_MAX: not to be believed. */
static uint64_t unpacked_size(const struct elf_image *image) {
    uint64_t sum = 0;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(image->elf, scn));) {
        GElf_Shdr header;
        GElf_Chdr packed;
        if (!gelf_getshdr(scn, &header) || !is_debug(elf_section_name(image, &header)))
            continue;
        if (elf_section_name(image, &header)[1] == 'z')
            sum = saturating_add(sum, 1); /* libelf checks these against the ratio itself */
        if (!(header.sh_flags & SHF_COMPRESSED))
            continue;
        if (!gelf_getchdr(scn, &packed) || packed.ch_size / RATIO_MAX > header.sh_size)
            return UINT64_MAX;
        sum = saturating_add(sum, packed.ch_size);
    }
    return sum;
}

bool dwarf_is_compressed(const struct elf_image *image) {
    return unpacked_size(image) > 0;
}

/* Of what is unpacked, only the section headers' pages become ours. */
static bool map_again(struct dwarf_source *source, const struct elf_image *image) {
    if (image->copy || !file_open_raw(&source->file, image->file.path, NULL))
        return false;
    return source->file.size == image->size &&
           mprotect((void *)(uintptr_t)source->file.data, source->file.size,
                    PROT_READ | PROT_WRITE) == 0;
}

bool dwarf_source_open(struct dwarf_source *source, const struct elf_image *image) {
    uint64_t unpacked = unpacked_size(image);
    const uint8_t *data = image->data;
    *source = (struct dwarf_source){0};
    if (unpacked > UNPACKED_MAX)
        return false;
    if (unpacked) {
        if (!map_again(source, image)) {
            dwarf_source_close(source);
            return false;
        }
        data = source->file.data;
    }
    source->elf = elf_memory((char *)(uintptr_t)data, image->size);
    source->dwarf = source->elf ? dwarf_begin_elf(source->elf, DWARF_C_READ, NULL) : NULL;
    if (!source->dwarf)
        dwarf_source_close(source);
    return source->dwarf;
}

void dwarf_source_close(struct dwarf_source *source) {
    dwarf_end(source->dwarf);
    elf_end(source->elf);
    if (source->file.path)
        file_close(&source->file);
    *source = (struct dwarf_source){0};
}
