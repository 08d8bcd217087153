/* Parse any bytes as the kernel's list of symbols. */
#include "object/internal.h"
#include "pieces.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In pieces, like the running kernel's. */
static void read_in_pieces(struct text text) {
    struct objects_options options = {0};
    struct symbols whole, pieces;
    struct buffer marks = {0};
    char path[64];
    int file = piece_file(text, path);
    symbols_init(&whole, &options);
    symbols_init(&pieces, &options);
    kallsyms_load(&whole, text);
    lseek(file, 0, SEEK_SET);
    if (kallsyms_load_running(&pieces, file, TEXT("_text"), &marks) &&
        pieces.entries.count != whole.entries.count && !budget_exceeded(&whole.budget))
        abort();
    close(file);
    symbols_release(&whole);
    symbols_release(&pieces);
    buffer_release(&marks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text text = {(const char *)data, size};
    uint64_t address;
    kallsyms_find(text, TEXT("_text"), &address);
    read_in_pieces(text);
    for (int compat = 0; compat < 2; compat++) {
        struct objects_options options = {.quirks = compat ? quirks_perf : quirks_none};
        struct symbols symbols;
        struct buffer name = {0};
        symbols_init(&symbols, &options);
        kallsyms_load(&symbols, text);
        for (uint32_t i = 0; i < symbols.entries.count && i < 64; i++) {
            const struct entry *entry = &symbols.entries.items[i];
            /* There is one symbol for each start, without overlaps, so each must find itself. perf's may overlap at
               the seams. */
            uint32_t found = symbols_find(&symbols, entry->start);
            if (!compat && found != i && entry->end > entry->start)
                abort();
            symbols_print_name(&symbols, entry, &name, NULL);
            kallsyms_module(&symbols, entry);
        }
        buffer_release(&name);
        symbols_release(&symbols);
    }
    return 0;
}
