/* Decompress any bytes as .gnu_debugdata, open the result as an ELF file, and read its symbols. An ELF file is
   read as one that contains such a section. */
#include "elf_bytes.h"
#include "object/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_carrier(const uint8_t *data, size_t size) {
    struct elf_bytes elf;
    struct symbol symbol;
    if (!elf_bytes_open(&elf, data, size))
        return;
    for (uint64_t address = 0; address < 0x2000; address += 0x40)
        objects_symbol(elf.objects, elf.object, address, &symbol);
    elf_bytes_close(&elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 4 && memcmp(data, "\177ELF", 4) == 0) {
        read_carrier(data, size);
        return 0;
    }
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
