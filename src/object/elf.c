/*
 * Open ELF images. A profile names the files, so a file may be anything: only regular files are opened, only files that begin as ELF are
 * mapped, and every length in them is checked against the file's size.
 */
#include "object/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEGMENTS_MAX = 4096 };

bool build_id_equal(const struct build_id *a, const struct build_id *b) {
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

bool build_id_matches(const struct build_id *recorded, const struct build_id *found) {
    if (found->size == 0 || recorded->size < found->size ||
        memcmp(recorded->bytes, found->bytes, found->size) != 0)
        return false;
    for (size_t i = found->size; i < recorded->size; i++)
        if (recorded->bytes[i])
            return false;
    return recorded->size == found->size || recorded->size == BUILD_ID_MAX;
}

void build_id_print(const struct build_id *id, char hex[2 * BUILD_ID_MAX + 1]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < id->size; i++) {
        hex[2 * i] = digits[id->bytes[i] >> 4];
        hex[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    hex[2 * id->size] = 0;
}

static size_t note_pad(size_t size, size_t alignment) {
    return (size + alignment - 1) & ~(alignment - 1);
}

bool elf_notes_build_id(struct text notes, size_t alignment, struct build_id *id) {
    while (notes.length >= 12) {
        size_t name_size = load_u32(notes.data), size = load_u32(notes.data + 4);
        uint32_t type = load_u32(notes.data + 8);
        /* Sizes are 32 bits wide: no sum of these overflows 64. */
        size_t at = note_pad(12 + name_size, alignment), next = note_pad(at + size, alignment);
        if (at + size > notes.length)
            return false;
        if (type == NT_GNU_BUILD_ID && name_size == 4 && memcmp(notes.data + 12, "GNU", 4) == 0) {
            id->size = (uint8_t)(size < BUILD_ID_MAX ? size : BUILD_ID_MAX);
            memcpy(id->bytes, notes.data + at, id->size);
            return id->size > 0;
        }
        if (next > notes.length)
            return false;
        notes = text_from(notes, next);
    }
    return false;
}

/* ---- sections ---- */

const char *elf_section_name(const struct elf_image *image, const GElf_Shdr *header) {
    size_t strings;
    if (elf_getshdrstrndx(image->elf, &strings) != 0)
        return "";
    const char *name = elf_strptr(image->elf, strings, header->sh_name);
    return name ? name : "";
}

Elf_Scn *elf_section(const struct elf_image *image, const char *name, GElf_Shdr *header) {
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));)
        if (gelf_getshdr(section, header) && strcmp(elf_section_name(image, header), name) == 0)
            return section;
    return NULL;
}

static bool header_bytes(const struct elf_image *image, const GElf_Shdr *header,
                         struct text *bytes) {
    uint64_t end;
    if (header->sh_type == SHT_NOBITS || !checked_add(header->sh_offset, header->sh_size, &end) ||
        end > image->size)
        return false;
    *bytes = (struct text){(const char *)image->data + header->sh_offset, header->sh_size};
    return true;
}

bool elf_section_bytes(const struct elf_image *image, const char *name, struct text *bytes) {
    GElf_Shdr header;
    return elf_section(image, name, &header) && header_bytes(image, &header, bytes);
}

bool elf_numbered_bytes(const struct elf_image *image, size_t number, struct text *bytes) {
    GElf_Shdr header;
    Elf_Scn *section = number ? elf_getscn(image->elf, number) : NULL;
    return section && gelf_getshdr(section, &header) && header_bytes(image, &header, bytes);
}

/* ---- build id ---- */

/* The named section first, as a debug file's program headers may point at notes that are not there. */
static void image_find_build_id(struct elf_image *image) {
    GElf_Shdr section;
    struct text notes;
    if (image->foreign_endian)
        return;
    if (elf_section_bytes(image, ".note.gnu.build-id", &notes) &&
        elf_notes_build_id(notes, 4, &image->build_id))
        return;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(image->elf, scn));)
        if (gelf_getshdr(scn, &section) && section.sh_type == SHT_NOTE &&
            header_bytes(image, &section, &notes) &&
            elf_notes_build_id(notes, section.sh_addralign == 8 ? 8 : 4, &image->build_id))
            return;
    size_t count = 0;
    elf_getphdrnum(image->elf, &count);
    for (size_t i = 0; i < count && i < SEGMENTS_MAX; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(image->elf, (int)i, &header) || header.p_type != PT_NOTE)
            continue;
        GElf_Shdr as_section = {
            .sh_type = SHT_NOTE, .sh_offset = header.p_offset, .sh_size = header.p_filesz};
        if (header_bytes(image, &as_section, &notes) &&
            elf_notes_build_id(notes, header.p_align == 8 ? 8 : 4, &image->build_id))
            return;
    }
}

/* ---- segments ---- */

static void image_find_segments(struct elf_image *image) {
    size_t count = 0;
    if (elf_getphdrnum(image->elf, &count) != 0)
        return;
    if (count > SEGMENTS_MAX)
        count = SEGMENTS_MAX;
    image->segments = memory_zero(count ? count : 1, sizeof *image->segments);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(image->elf, (int)i, &header) || header.p_type != PT_LOAD)
            continue;
        image->segments[image->segment_count++] =
            (struct elf_segment){.address = header.p_vaddr,
                                 .offset = header.p_offset,
                                 .file_size = header.p_filesz,
                                 .memory_size = header.p_memsz,
                                 .executable = header.p_flags & PF_X,
                                 .writable = header.p_flags & PF_W};
    }
}

/* Exact first, then by whole pages: the kernel maps pages, and an address between a segment's last byte and
   the page's end still belongs to it. */
static const struct elf_segment *segment_of_offset(const struct elf_image *image, uint64_t offset,
                                                   uint64_t page, bool executable) {
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct elf_segment *segment = &image->segments[i];
        uint64_t start = segment->offset & ~(page - 1);
        uint64_t end = saturating_add(segment->offset, segment->file_size);
        end = saturating_add(end, page - 1) & ~(page - 1);
        if (segment->executable == executable && segment->file_size && offset >= start &&
            offset < end)
            return segment;
    }
    return NULL;
}

bool elf_offset_to_address(const struct elf_image *image, uint64_t offset, uint64_t *address) {
    const struct elf_segment *segment = segment_of_offset(image, offset, 1, true);
    if (!segment)
        segment = segment_of_offset(image, offset, 1, false);
    if (!segment)
        segment = segment_of_offset(image, offset, 4096, true);
    if (!segment)
        return false;
    *address = segment->address + (offset - segment->offset);
    return true;
}

bool elf_address_to_offset(const struct elf_image *image, uint64_t address, uint64_t *offset) {
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct elf_segment *segment = &image->segments[i];
        if (address >= segment->address && address - segment->address < segment->memory_size) {
            *offset = segment->offset + (address - segment->address);
            return true;
        }
    }
    return false;
}

/* ---- opening ---- */

static bool image_begin(struct elf_image *image, const char *path, struct error *error) {
    if (elf_version(EV_CURRENT) == EV_NONE)
        return error_set(error, ERROR_INTERNAL, "libelf is too old");
    GElf_Ehdr header;
    /* libelf takes memory without const, and does not write to it unless asked to update the file. */
    image->elf = elf_memory((char *)(uintptr_t)image->data, image->size);
    if (!image->elf || elf_kind(image->elf) != ELF_K_ELF || !gelf_getehdr(image->elf, &header))
        return error_set(error, ERROR_INPUT, "%s: is not a valid ELF file", path);
    image->is_64 = header.e_ident[EI_CLASS] == ELFCLASS64;
    image->foreign_endian = header.e_ident[EI_DATA] != ELFDATA2LSB;
    image->type = header.e_type;
    image->machine = header.e_machine;
    image->budget = memory_alloc(sizeof *image->budget);
    budget_init(image->budget, &budget_defaults, image->size);
    image_find_segments(image);
    image_find_build_id(image);
    return true;
}

/* Looks before it opens: opening a device can do things, opening a pipe can wait for ever. */
static int open_regular(const char *path, struct error *error) {
    struct stat status;
    if (stat(path, &status) != 0) {
        error_errno(error, path);
        return -1;
    }
    int descriptor = -1;
    if (S_ISREG(status.st_mode)) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (descriptor < 0)
            error_errno(error, path);
        else if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
            return descriptor;
    }
    if (descriptor >= 0)
        close(descriptor);
    else if (!S_ISREG(status.st_mode))
        error_set(error, ERROR_INPUT, "%s: is not a regular file", path);
    return -1;
}

/* Whether base can unpack it. Distributions compress kernel modules this way. */
static bool is_packed_module(const char *path) {
    struct text name = text_of(path);
    return text_ends(name, TEXT(".ko.gz")) || text_ends(name, TEXT(".ko.zst")) ||
           text_ends(name, TEXT(".ko.xz"));
}

/* Modules are packed to a third, and the largest have some ten megabytes. */
static struct context unpacking_context(int descriptor) {
    enum { MODULE_MOST = 1 << 30, FLOOR = 64 << 20, RATIO = 64 };
    struct stat status;
    uint64_t size = fstat(descriptor, &status) == 0 ? (uint64_t)status.st_size : 0;
    uint64_t limit = size < MODULE_MOST / RATIO ? FLOOR + RATIO * size : MODULE_MOST;
    return (struct context){.spool_limit = limit < MODULE_MOST ? limit : MODULE_MOST};
}

struct elf_image *elf_image_open_descriptor(int descriptor, const char *path, bool is_module,
                                            bool *changed, struct error *error) {
    struct context context = unpacking_context(descriptor);
    struct elf_image *image = memory_zero(1, sizeof *image);
    char magic[SELFMAG];
    *changed = false;
    bool fine = pread(descriptor, magic, sizeof magic, 0) == sizeof magic &&
                (memcmp(magic, ELFMAG, SELFMAG) == 0 || (is_module && is_packed_module(path)));
    if (!fine)
        error_set(error, ERROR_INPUT, "%s: is not an ELF file", path);
    fine = fine && file_open_descriptor(&image->file, descriptor, path, &context, error);
    image->data = image->file.data;
    image->size = image->file.size;
    if (fine && image_begin(image, path, error))
        return image;
    *changed = file_changed(&image->file, error);
    elf_image_free(image);
    return NULL;
}

struct elf_image *elf_image_open_watched(const char *path, bool is_module, bool *changed,
                                         struct error *error) {
    int descriptor = open_regular(path, error);
    if (descriptor < 0)
        return NULL;
    struct elf_image *image =
        elf_image_open_descriptor(descriptor, path, is_module, changed, error);
    close(descriptor);
    return image;
}

struct elf_image *elf_image_open(const char *path, bool is_module, struct error *error) {
    bool changed;
    return elf_image_open_watched(path, is_module, &changed, error);
}

static struct elf_image *image_of(const void *data, size_t size, uint8_t *copy, const char *path,
                                  struct error *error) {
    struct elf_image *image = memory_zero(1, sizeof *image);
    image->copy = copy;
    image->file.path = memory_copy(path, strlen(path));
    image->data = copy ? copy : data;
    image->size = size;
    if (size >= SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0 && image_begin(image, path, error))
        return image;
    elf_image_free(image);
    return NULL;
}

struct elf_image *elf_image_copy(const void *data, size_t size, const char *path,
                                 struct error *error) {
    return elf_image_take((uint8_t *)memory_copy(data, size), size, path, error);
}

struct elf_image *elf_image_take(uint8_t *bytes, size_t size, const char *path,
                                 struct error *error) {
    return image_of(bytes, size, bytes, path, error);
}

struct elf_image *elf_image_borrow(const void *data, size_t size, const char *path,
                                   struct error *error) {
    return image_of(data, size, NULL, path, error);
}

void elf_image_free(struct elf_image *image) {
    if (!image)
        return;
    elf_end(image->elf);
    file_close(&image->file);
    free(image->segments);
    free(image->copy);
    free(image->budget);
    free(image);
}

bool object_file_build_id(const char *path, struct build_id *id) {
    struct elf_image *image = elf_image_open(path, true, NULL);
    *id = image ? image->build_id : (struct build_id){0};
    elf_image_free(image);
    return id->size > 0;
}

bool object_file_has_section(const char *path, const char *name) {
    GElf_Shdr header;
    struct elf_image *image = elf_image_open(path, false, NULL);
    bool has = image && elf_section(image, name, &header);
    elf_image_free(image);
    return has;
}

bool object_file_compiler(const char *path, struct buffer *compilers) {
    struct elf_image *image = elf_image_open(path, false, NULL);
    struct text rest;
    size_t before = compilers->count;
    if (image && elf_section_bytes(image, ".comment", &rest)) {
        while (rest.length) {
            size_t end = text_find(rest, 0);
            struct text one = end == SIZE_MAX ? rest : text_upto(rest, end);
            if (one.length && compilers->count > before)
                buffer_add(compilers, TEXT(", "));
            buffer_add(compilers, one);
            rest = end == SIZE_MAX ? TEXT("") : text_from(rest, end + 1);
        }
    }
    elf_image_free(image);
    return compilers->count > before;
}
