/*
 * Private to this room: a libdw handle on an image.
 */
#ifndef WICK_OBJECT_DWARF_H
#define WICK_OBJECT_DWARF_H

#include "object/unpack.h"

#include <elfutils/libdw.h>

/* libdw has no locks: use it from one thread at a time. */
struct dwarf_source {
    struct unpacked unpacked; /* what it reads if the file's sections are compressed */
    bool opened;              /* it reads from `descriptor` */
    int descriptor;
    Elf *elf;
    Dwarf *dwarf;
};

/* Return false if there is no debug information or it is damaged. Without `lines` the line tables may be missing. */
bool dwarf_source_open(struct dwarf_source *source, const struct elf_image *image, bool lines);
/* The same through a descriptor, section by section, so that libdw knows the file's directory. For files with little more than line tables. */
bool dwarf_source_open_file(struct dwarf_source *source, const struct elf_image *image);
void dwarf_source_close(struct dwarf_source *source);

#endif
