/* Parse any bytes as an ELF file: open it, read its symbols by wick's rules and by perf's, and look them up. */
#include "elf_mutate.h"
#include "object/internal.h"

#include <stdlib.h>

static void ask_all(const struct symbols *symbols) {
    struct buffer name = {0};
    for (uint32_t i = 0; i < symbols->entries.count && i < 64; i++) {
        const struct entry *entry = &symbols->entries.items[i];
        uint32_t found = symbols_find(symbols, entry->start);
        symbols_find(symbols, entry->end);
        if (found != SYMBOLS_NONE) {
            name.count = 0;
            symbols_print_name(symbols, &symbols->entries.items[found], &name, NULL);
        }
    }
    buffer_release(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct elf_image *image = elf_image_copy(data, size, "fuzz", NULL);
    if (!image)
        return 0;
    uint64_t there, back;
    for (uint64_t offset = 0; offset < size; offset += 97)
        if (elf_offset_to_address(image, offset, &there))
            elf_address_to_offset(image, there, &back);
    for (int compat = 0; compat < 2; compat++) {
        struct objects_options options = {.quirks = compat ? quirks_perf : quirks_none};
        struct symbols symbols;
        symbols_init(&symbols, &options);
        if (compat)
            elf_symbols_load_perf(&symbols, image, image);
        else
            elf_symbols_load(&symbols, image, NULL);
        ask_all(&symbols);
        symbols_release(&symbols);
    }
    elf_image_free(image);
    return 0;
}
