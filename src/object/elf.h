/*
 * elf: one ELF file, mapped and checked, for the files of this room.
 *
 * An image is a mapped file (or a copy of memory: the vdso) with what everybody needs to know of it already read: class,
 * machine, load segments, build id. The rest is asked of libelf through `elf`. The mapping is under base's
 * guard: a file that shrinks reads as zeroes. libelf has no locks of its own, so an image that belongs to an object is
 * used only under that object's lock; what has to be read without it is copied out first.
 *
 * Nothing in an image is trusted. libelf checks section bounds; every index and offset *inside* a section is the reader's.
 */
#ifndef WICK_OBJECT_ELF_H
#define WICK_OBJECT_ELF_H

#include "object/object.h"

#include <gelf.h>

struct elf_segment { /* a PT_LOAD */
    uint64_t address;
    uint64_t offset;
    uint64_t file_size;
    uint64_t memory_size;
    bool executable;
    bool writable;
};

struct elf_image {
    struct file file; /* file.path is the path it was found under */
    const uint8_t *data;
    size_t size;
    Elf *elf;
    bool is_64;
    bool foreign_endian;
    uint16_t type;    /* ET_… */
    uint16_t machine; /* EM_… */
    struct build_id build_id;
    /* In file order, which is address order unless somebody plays tricks. */
    struct elf_segment *segments;
    size_t segment_count;
    uint8_t *copy; /* an image of memory: what `data` points to */
    bool is_kept;  /* … which the recording had: nothing derived from it goes to the cache */
    struct budget
        *budget; /* what reading it may cost; taken off by all that read it, under whatever lock */
};

/* NULL: not there, not a regular file, or not ELF; *error says which. Free with elf_image_free. `is_module`: it may be packed, as a kernel's
   modules are, and is unpacked then, to no more than its size allows. */
struct elf_image *elf_image_open(const char *path, bool is_module, struct error *error);
/* The same; *changed: it was one, and shrank while it was looked at. */
struct elf_image *elf_image_open_watched(const char *path, bool is_module, bool *changed,
                                         struct error *error);
/* The same of a descriptor, which stays the caller's, of what was found under `path`. */
struct elf_image *elf_image_open_descriptor(int descriptor, const char *path, bool is_module,
                                            bool *changed, struct error *error);
/* The same of bytes in memory, which are copied. `path` is for messages. */
struct elf_image *elf_image_copy(const void *data, size_t size, const char *path,
                                 struct error *error);
/* The same, of bytes that malloc() gave and that become the image's, also when this fails. */
struct elf_image *elf_image_take(uint8_t *bytes, size_t size, const char *path,
                                 struct error *error);
/* The same without a copy: the bytes outlive the image. */
struct elf_image *elf_image_borrow(const void *data, size_t size, const char *path,
                                   struct error *error);
void elf_image_free(struct elf_image *image); /* NULL is fine */

/* By the segment that holds it; an executable one first when two claim it (pages at the seams are mapped twice). */
bool elf_offset_to_address(const struct elf_image *image, uint64_t offset, uint64_t *address);
bool elf_address_to_offset(const struct elf_image *image, uint64_t address, uint64_t *offset);

/* The first section of that name, or NULL. */
Elf_Scn *elf_section(const struct elf_image *image, const char *name, GElf_Shdr *header);
/* A section's bytes as they are in the file; false when it has none (absent, NOBITS, out of bounds). Compressed sections
   are not unpacked: libdw does that for its own. */
bool elf_section_bytes(const struct elf_image *image, const char *name, struct text *bytes);
/* The same by its number, as sh_link has it. */
bool elf_numbered_bytes(const struct elf_image *image, size_t number, struct text *bytes);
/* The name of a section, or "" where the file has none to offer. Never NULL. */
const char *elf_section_name(const struct elf_image *image, const GElf_Shdr *header);

/* The first GNU build id in a run of ELF notes of the host's byte order, with `alignment` 4 or 8 between them. */
bool elf_notes_build_id(struct text notes, size_t alignment, struct build_id *id);
bool build_id_equal(const struct build_id *a, const struct build_id *b);
/* Whether a file's id is the recorded one; an older perf recorded 20 bytes whatever the length, padded with zeroes. */
bool build_id_matches(const struct build_id *recorded, const struct build_id *found);
void build_id_print(const struct build_id *id, char hex[2 * BUILD_ID_MAX + 1]);

#endif
