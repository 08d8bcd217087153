/*
 * .gnu_debugdata: the symbols of a stripped file, as a small xz-compressed ELF file inside it. Fedora and others ship programs this way.
 *
 * It contains only the functions that are not in .dynsym. The file is not trusted: the unpacked size is bounded by the packed size.
 */
#include "object/source.h"

#include <stdlib.h>
#ifdef HAVE_LZMA
#include <lzma.h>
#endif

/* Symbol tables pack to a fifth or less, and the largest have some ten megabytes. */
static const struct budget_limits limits = {.memory = 64 << 20, .memory_per_byte = 64};

#ifdef HAVE_LZMA
static bool unpack(struct text packed, struct buffer *plain) {
    enum { MEMORY_MAX = 256 << 20, STEP = 1 << 16 };
    lzma_stream stream = LZMA_STREAM_INIT;
    struct budget budget;
    lzma_ret status = lzma_stream_decoder(&stream, MEMORY_MAX, 0);
    budget_init(&budget, &limits, packed.length);
    stream.next_in = (const uint8_t *)packed.data;
    stream.avail_in = packed.length;
    while (status == LZMA_OK && budget_take_memory(&budget, STEP, stream.total_in)) {
        vector_reserve(plain, plain->count + STEP);
        stream.next_out = (uint8_t *)plain->items + plain->count;
        stream.avail_out = STEP;
        status = lzma_code(&stream, LZMA_FINISH);
        plain->count += STEP - stream.avail_out;
    }
    lzma_end(&stream);
    return status == LZMA_STREAM_END;
}
#else
static bool unpack(struct text packed, struct buffer *plain) {
    return false;
}
#endif

struct elf_image *minidebug_open(struct text packed, const char *path) {
    struct buffer plain = {0};
    if (unpack(packed, &plain))
        return elf_image_take((uint8_t *)plain.items, plain.count, path, NULL);
    buffer_release(&plain);
    return NULL;
}

/* It is part of the file that was found, so there is no id to compare. perf does not read it. */
static struct elf_image *open_packed(const struct search *search) {
    const struct elf_image *image = search->object->image;
    struct symbol_section section;
    struct text packed;
    if (!image || search->objects->options.quirks.no_packed_symbols ||
        symbol_section_open(image, ".symtab", SHT_SYMTAB, &section) ||
        !elf_section_bytes(image, ".gnu_debugdata", &packed))
        return NULL;
    return minidebug_open(packed, image->file.path);
}

const struct source source_minidebug = {.name = ".gnu_debugdata", .open = open_packed};
