/*
 * Unpack compressed debug sections into an image of their own.
 *
 * libdw can unpack them itself, but it unpacks all of them, with zlib, once for each handle. Half of an unpacked debug file is locations of
 * variables and macros, which wick does not need, and libdeflate takes a third of zlib's time. So the sections that wick needs are unpacked
 * behind an ELF header, with their names and headers at the end, and libdw reads that image.
 */
#include "object/unpack.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>
#ifdef HAVE_LIBDEFLATE
#include <libdeflate.h>
#endif

/* zlib packs at most 1,032 to 1; beyond this sum the sizes are lies, or not for a profiler to unpack. */
#define RATIO_MAX 1040
#define UNPACKED_MAX (8ull << 30)

struct part {
    GElf_Shdr header;
    const char *name;
    struct text bytes; /* as in the file, without the compression header */
    uint64_t size;     /* unpacked */
    uint32_t method;   /* ELFCOMPRESS_…; 0: not compressed */
};

struct parts {
    VECTOR(struct part) items;
    uint64_t size; /* of all, aligned */
    uint64_t names;
    bool packed; /* any of them is */
};

static bool is_useful(const char *name, bool lines) {
    static const char *const useless[] = {
        ".debug_loc",     ".debug_loclists",     ".debug_macro",
        ".debug_macinfo", ".debug_pubnames",     ".debug_pubtypes",
        ".debug_names",   ".debug_gnu_pubnames", ".debug_gnu_pubtypes"};
    for (size_t i = 0; i < COUNT_OF(useless); i++)
        if (strcmp(name, useless[i]) == 0)
            return false;
    struct text text = text_of(name);
    if (!lines && text_equal(text, TEXT(".debug_line")))
        return false;
    return text_starts(text, TEXT(".debug_")) || text_starts(text, TEXT(".zdebug_")) ||
           text_equal(text, TEXT(".gnu_debugaltlink"));
}

static uint64_t aligned(uint64_t size) {
    return (size + 7) & ~7ull;
}

static size_t packing_header_size(const struct elf_image *image) {
    return image->is_64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
}

/* False: what it says of its size can't be. */
static bool part_read(const struct elf_image *image, Elf_Scn *section, struct part *part) {
    GElf_Chdr packed;
    part->size = part->bytes.length;
    if (!(part->header.sh_flags & SHF_COMPRESSED))
        return true;
    if (!gelf_getchdr(section, &packed) || part->bytes.length < packing_header_size(image) ||
        packed.ch_type == 0 || packed.ch_size / RATIO_MAX > part->bytes.length)
        return false;
    part->bytes = text_from(part->bytes, packing_header_size(image));
    part->method = packed.ch_type;
    part->size = packed.ch_size;
    part->header.sh_flags &= ~(uint64_t)SHF_COMPRESSED;
    part->header.sh_addralign = packed.ch_addralign;
    return true;
}

/* Whether libdw would unpack it, of use or not: libelf then writes into the section's header, which a mapped file does not bear. */
static bool is_packed(const struct part *part) {
    return part->header.sh_flags & SHF_COMPRESSED ||
           text_starts(text_of(part->name), TEXT(".zdebug"));
}

static bool parts_read(struct parts *parts, const struct elf_image *image, bool lines) {
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));) {
        struct part part = {0};
        if (!gelf_getshdr(section, &part.header))
            continue;
        part.name = elf_section_name(image, &part.header);
        parts->packed |= is_packed(&part);
        if (!is_useful(part.name, lines) ||
            !elf_numbered_bytes(image, elf_ndxscn(section), &part.bytes))
            continue;
        if (!part_read(image, section, &part))
            return false;
        parts->size = saturating_add(parts->size, saturating_add(part.size, 8));
        parts->names += strlen(part.name) + 1;
        vector_push(&parts->items, part);
    }
    return parts->size <= UNPACKED_MAX;
}

static bool inflate_whole(struct text from, uint8_t *to, size_t size) {
#ifdef HAVE_LIBDEFLATE
    struct libdeflate_decompressor *inflater = libdeflate_alloc_decompressor();
    enum libdeflate_result result =
        inflater ? libdeflate_zlib_decompress(inflater, from.data, from.length, to, size, NULL)
                 : LIBDEFLATE_BAD_DATA;
    libdeflate_free_decompressor(inflater);
    return result == LIBDEFLATE_SUCCESS;
#else
    uLongf got = size;
    return uncompress(to, &got, (const Bytef *)from.data, from.length) == Z_OK && got == size;
#endif
}

static bool part_unpack(const struct part *part, uint8_t *to) {
    switch (part->method) {
    case 0:
        if (part->size)
            memcpy(to, part->bytes.data, part->size);
        return true;
    case ELFCOMPRESS_ZLIB:
        return inflate_whole(part->bytes, to, part->size);
    case 2: /* ELFCOMPRESS_ZSTD, which elf.h may not know yet */
        return ZSTD_decompress(to, part->size, part->bytes.data, part->bytes.length) == part->size;
    default:
        return false;
    }
}

static void header_write(const struct elf_image *image, uint8_t *to, const GElf_Shdr *h) {
    if (image->is_64) {
        memcpy(to, h, sizeof(Elf64_Shdr));
        return;
    }
    Elf32_Shdr narrow = {.sh_name = h->sh_name,
                         .sh_type = h->sh_type,
                         .sh_flags = (Elf32_Word)h->sh_flags,
                         .sh_offset = (Elf32_Off)h->sh_offset,
                         .sh_size = (Elf32_Word)h->sh_size,
                         .sh_addralign = (Elf32_Word)h->sh_addralign,
                         .sh_entsize = (Elf32_Word)h->sh_entsize};
    memcpy(to, &narrow, sizeof narrow);
}

/* The file's own header, but without segments and with our sections. */
static void elf_header_write(const struct elf_image *image, uint8_t *to, uint64_t sections,
                             uint16_t count) {
    if (image->is_64) {
        Elf64_Ehdr header;
        memcpy(&header, image->data, sizeof header);
        header.e_phnum = 0;
        header.e_phoff = 0;
        header.e_shoff = sections;
        header.e_shnum = count;
        header.e_shstrndx = (uint16_t)(count - 1);
        memcpy(to, &header, sizeof header);
    } else {
        Elf32_Ehdr header;
        memcpy(&header, image->data, sizeof header);
        header.e_phnum = 0;
        header.e_phoff = 0;
        header.e_shoff = (Elf32_Off)sections;
        header.e_shnum = count;
        header.e_shstrndx = (uint16_t)(count - 1);
        memcpy(to, &header, sizeof header);
    }
}

/* Header, sections, names, section headers: one more than the parts in front, for none, and one behind, for the names. */
static bool image_lay_out(const struct parts *parts, const struct elf_image *image,
                          struct unpacked *unpacked) {
    size_t header_size = image->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    size_t count = parts->items.count + 2;
    uint64_t at = sizeof(Elf64_Ehdr), names = at + parts->size,
             headers = aligned(names + parts->names + 2);
    uint64_t name = 1;
    vector_reserve(unpacked, headers + count * header_size);
    unpacked->count = headers + count * header_size;
    memset(unpacked->items + names, 0, unpacked->count - names);
    elf_header_write(image, unpacked->items, headers, (uint16_t)count);
    for (size_t i = 0; i < parts->items.count; i++) {
        const struct part *part = &parts->items.items[i];
        GElf_Shdr header = part->header;
        header.sh_name = (GElf_Word)name;
        header.sh_offset = at;
        header.sh_size = part->size;
        header.sh_link = header.sh_info = 0;
        header_write(image, unpacked->items + headers + (i + 1) * header_size, &header);
        memcpy(unpacked->items + names + name, part->name, strlen(part->name));
        name += strlen(part->name) + 1;
        if (!part_unpack(part, unpacked->items + at))
            return false;
        at += aligned(part->size);
    }
    GElf_Shdr strings = {
        .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = name, .sh_addralign = 1};
    header_write(image, unpacked->items + headers + (count - 1) * header_size, &strings);
    return true;
}

enum unpacking dwarf_unpack(const struct elf_image *image, bool lines, struct unpacked *unpacked) {
    struct parts parts = {0};
    enum unpacking result = UNPACK_NOTHING;
    bool fine = parts_read(&parts, image, lines) && parts.items.count < UINT16_MAX / 2;
    if (!fine)
        result = UNPACK_FAILED;
    else if (parts.packed && !image->foreign_endian)
        result = image_lay_out(&parts, image, unpacked) ? UNPACK_DONE : UNPACK_FAILED;
    else if (parts.packed)
        result = UNPACK_FAILED;
    vector_release(&parts.items);
    return result;
}

bool dwarf_is_compressed(const struct elf_image *image) {
    struct parts parts = {0};
    bool packed = parts_read(&parts, image, true) && parts.packed;
    vector_release(&parts.items);
    return packed;
}
