#include "object/dwarf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool source_begin(struct dwarf_source *source) {
    source->dwarf = source->elf ? dwarf_begin_elf(source->elf, DWARF_C_READ, NULL) : NULL;
    if (!source->dwarf)
        dwarf_source_close(source);
    return source->dwarf;
}

bool dwarf_source_open(struct dwarf_source *source, const struct elf_image *image, bool lines) {
    *source = (struct dwarf_source){0};
    switch (dwarf_unpack(image, lines, &source->unpacked)) {
    case UNPACK_NOTHING:
        source->elf = elf_memory((char *)(uintptr_t)image->data, image->size);
        break;
    case UNPACK_DONE:
        source->elf = elf_memory((char *)source->unpacked.items, source->unpacked.count);
        break;
    case UNPACK_FAILED:
        break;
    }
    return source_begin(source);
}

bool dwarf_source_open_file(struct dwarf_source *source, const struct elf_image *image) {
    struct stat status;
    *source = (struct dwarf_source){0};
    int descriptor = open(image->file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    source->opened = true;
    source->descriptor = descriptor;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
        (uint64_t)status.st_size == image->size)
        source->elf = elf_begin(descriptor, ELF_C_READ, NULL);
    return source_begin(source);
}

void dwarf_source_close(struct dwarf_source *source) {
    dwarf_end(source->dwarf);
    elf_end(source->elf);
    if (source->opened)
        close(source->descriptor);
    vector_release(&source->unpacked);
    *source = (struct dwarf_source){0};
}
