/*
 * --vmlinux FILE: the kernel's own ELF file. If the recording has the kernel's build id, the file must have the same.
 */
#include "object/source.h"

static struct elf_image *open_given(const struct search *search) {
    const char *path = search->objects->options.vmlinux;
    return path ? object_open(search->object, path, &search->id) : NULL;
}

const struct source source_vmlinux = {.name = "--vmlinux", .open = open_given};
