/*
 * Private to the room: a libdw of one's own on an image.
 */
#ifndef WICK_OBJECT_DWARF_H
#define WICK_OBJECT_DWARF_H

#include "object/unpack.h"

#include <elfutils/libdw.h>

/* libdw has no locks: one thread at a time. */
struct dwarf_source {
    struct unpacked unpacked; /* what it reads where the file's sections are compressed */
    bool opened;              /* it reads from `descriptor` */
    int descriptor;
    Elf *elf;
    Dwarf *dwarf;
};

/* False: there is no debug information, or it is damaged. Without `lines` it may lack the tables of lines. */
bool dwarf_source_open(struct dwarf_source *source, const struct elf_image *image, bool lines);
/* The same, read through a descriptor, section by section: so libdw knows where the file is. For files that keep little but line tables. */
bool dwarf_source_open_file(struct dwarf_source *source, const struct elf_image *image);
void dwarf_source_close(struct dwarf_source *source);

#endif
