/*
 * Private to this room: unpack compressed debug sections.
 */
#ifndef WICK_OBJECT_UNPACK_H
#define WICK_OBJECT_UNPACK_H

#include "object/elf.h"

/* An ELF image that contains only debug sections. */
struct unpacked {
    uint8_t *items; /* a vector */
    size_t count;
    size_t capacity;
};

/* NOTHING: no section is compressed; read the file itself. FAILED: it is damaged, or would unpack to an absurd size. */
enum unpacking { UNPACK_NOTHING, UNPACK_DONE, UNPACK_FAILED };
enum unpacking dwarf_unpack(const struct elf_image *image, bool lines, struct unpacked *unpacked);
bool dwarf_is_compressed(const struct elf_image *image);

#endif
