/*
 * elf: one ELF file, mapped and checked, for the files of this room.
 *
 * An image is a mapped file (or a copy of memory: the vdso) whose common facts are already read: class, machine, load segments, build id.
 * The rest is read by libelf through `elf`. base guards the mapping: a file that shrinks reads as zeroes. libelf has no locks, so an image
 * that belongs to an object is used only under that object's lock; data that is read without the lock is copied out first.
 *
 * Nothing in an image is trusted. libelf checks section bounds; readers must check every index and offset *inside* a section.
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
    /* In file order, which is address order unless the file was crafted. */
    struct elf_segment *segments;
    size_t segment_count;
    uint8_t *copy; /* an image in memory: what `data` points to */
    bool is_kept;  /* … from the recording: nothing derived from it goes to the cache */
    struct budget
        *budget; /* limits what reading it may cost; charged by all that read it, under any lock */
};

/* Open an ELF file; free it with elf_image_free(). Return NULL if it does not exist, is not a regular file or not ELF; *error says which.
   `is_module`: it may be compressed, as kernel modules are, and is then unpacked, within a limit that depends on its size. */
struct elf_image *elf_image_open(const char *path, bool is_module, struct error *error);
/* The same; set *changed if it is an ELF file but shrank while it was read. */
struct elf_image *elf_image_open_watched(const char *path, bool is_module, bool *changed,
                                         struct error *error);
/* The same for a descriptor of the file found at `path`. The caller keeps the descriptor. */
struct elf_image *elf_image_open_descriptor(int descriptor, const char *path, bool is_module,
                                            bool *changed, struct error *error);
/* The same for bytes in memory, which are copied. `path` is for messages. */
struct elf_image *elf_image_copy(const void *data, size_t size, const char *path,
                                 struct error *error);
/* The same for bytes from malloc(). Takes ownership of them, even on failure. */
struct elf_image *elf_image_take(uint8_t *bytes, size_t size, const char *path,
                                 struct error *error);
/* The same without a copy: the bytes must outlive the image. */
struct elf_image *elf_image_borrow(const void *data, size_t size, const char *path,
                                   struct error *error);
void elf_image_free(struct elf_image *image); /* NULL is fine */

/* Convert by the segment that contains it. If two do (pages at the seams are mapped twice), prefer an executable one. */
bool elf_offset_to_address(const struct elf_image *image, uint64_t offset, uint64_t *address);
bool elf_address_to_offset(const struct elf_image *image, uint64_t address, uint64_t *offset);

/* Return the first section of this name, or NULL. */
Elf_Scn *elf_section(const struct elf_image *image, const char *name, GElf_Shdr *header);
/* Get a section's bytes as they are in the file; return false if there are none (absent, NOBITS, out of bounds). Compressed sections are not
   unpacked. */
bool elf_section_bytes(const struct elf_image *image, const char *name, struct text *bytes);
/* The same by section number, as in sh_link. */
bool elf_numbered_bytes(const struct elf_image *image, size_t number, struct text *bytes);
/* Return the name of a section, or "" if the file has none. Never NULL. */
const char *elf_section_name(const struct elf_image *image, const GElf_Shdr *header);

/* Find the first GNU build id in a sequence of ELF notes in host byte order, aligned to `alignment`, 4 or 8. */
bool elf_notes_build_id(struct text notes, size_t alignment, struct build_id *id);
bool build_id_equal(const struct build_id *a, const struct build_id *b);
/* Whether a file's id is the recorded one. Older perf versions always recorded 20 bytes, padded with zeroes. */
bool build_id_matches(const struct build_id *recorded, const struct build_id *found);
void build_id_print(const struct build_id *id, char hex[2 * BUILD_ID_MAX + 1]);

#endif
