/* Any bytes as the kernel's list of symbols. */
#include "object/internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text text = {(const char *)data, size};
    uint64_t address;
    kallsyms_find(text, TEXT("_text"), &address);
    for (int compat = 0; compat < 2; compat++) {
        struct objects_options options = {.quirks = compat ? quirks_perf : quirks_none};
        struct symbols symbols;
        struct buffer name = {0};
        symbols_init(&symbols, &options);
        kallsyms_load(&symbols, text);
        for (uint32_t i = 0; i < symbols.entries.count && i < 64; i++) {
            const struct entry *entry = &symbols.entries.items[i];
            /* One for each start, and no overlap: it must find itself. perf's may overlap at the seams. */
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
