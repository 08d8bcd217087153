#include "object/dwarf.h"

#include <stdlib.h>

bool dwarf_source_open(struct dwarf_source *source, const struct elf_image *image) {
    *source = (struct dwarf_source){0};
    switch (dwarf_unpack(image, &source->unpacked)) {
    case UNPACK_NOTHING:
        source->elf = elf_memory((char *)(uintptr_t)image->data, image->size);
        break;
    case UNPACK_DONE:
        source->elf = elf_memory((char *)source->unpacked.items, source->unpacked.count);
        break;
    case UNPACK_FAILED:
        break;
    }
    source->dwarf = source->elf ? dwarf_begin_elf(source->elf, DWARF_C_READ, NULL) : NULL;
    if (!source->dwarf)
        dwarf_source_close(source);
    return source->dwarf;
}

void dwarf_source_close(struct dwarf_source *source) {
    dwarf_end(source->dwarf);
    elf_end(source->elf);
    vector_release(&source->unpacked);
    *source = (struct dwarf_source){0};
}
