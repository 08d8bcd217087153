/* Any bytes as .gnu_debugdata: unpacked, opened as an ELF file, and its symbols read. */
#include "object/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct elf_image *image = minidebug_open((struct text){(const char *)data, size}, "fuzz");
    struct objects_options options = {0};
    struct symbols symbols;
    if (!image)
        return 0;
    symbols_init(&symbols, &options);
    elf_symbols_load(&symbols, NULL, image);
    for (uint32_t i = 0; i < symbols.entries.count && i < 64; i++)
        symbols_find(&symbols, symbols.entries.items[i].start);
    symbols_release(&symbols);
    elf_image_free(image);
    return 0;
}
