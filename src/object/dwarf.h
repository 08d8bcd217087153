/*
 * Private to the room: a libdw of one's own on an image.
 */
#ifndef WICK_OBJECT_DWARF_H
#define WICK_OBJECT_DWARF_H

#include "object/elf.h"

#include <elfutils/libdw.h>

/* libdw has no locks: one thread at a time. It has an Elf of its own, because libdw, where sections are compressed, writes to their headers; such
   a file is mapped once more for that, with pages of our own under what is written. */
struct dwarf_source {
    struct file file; /* the second mapping, if there is one */
    Elf *elf;
    Dwarf *dwarf;
};

/* False: there is no debug information, or it would unpack to an absurd size. */
bool dwarf_source_open(struct dwarf_source *source, const struct elf_image *image);
void dwarf_source_close(struct dwarf_source *source);
bool dwarf_is_compressed(const struct elf_image *image);

#endif
