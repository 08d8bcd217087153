/* Parse any bytes as a perf map. However symbols overlap, the one that is found must contain the address, and be the
   newest that does. */
#include "object/internal.h"

#include <stdlib.h>

static void check(const struct symbols *symbols, uint64_t address) {
    const struct entry *newest = NULL;
    for (size_t i = 0; i < symbols->entries.count; i++) {
        const struct entry *entry = &symbols->entries.items[i];
        if (address >= entry->start && address < entry->end &&
            (!newest || entry->name > newest->name))
            newest = entry;
    }
    uint32_t found = symbols_find(symbols, address);
    if ((found == SYMBOLS_NONE) != (newest == NULL) ||
        (newest && newest != &symbols->entries.items[found]))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int compat = 0; compat < 2; compat++) {
        struct objects_options options = {.quirks = compat ? quirks_perf : quirks_none};
        struct symbols symbols;
        struct buffer name = {0};
        symbols_init(&symbols, &options);
        perfmap_load(&symbols, (struct text){(const char *)data, size});
        for (size_t i = 0; i < symbols.entries.count && i < 64; i++) {
            const struct entry *entry = &symbols.entries.items[i];
            symbols_print_name(&symbols, entry, &name, NULL);
            if (compat) {
                symbols_find(&symbols, entry->start);
                continue;
            }
            check(&symbols, entry->start);
            check(&symbols, entry->end - 1);
            check(&symbols, entry->end);
        }
        buffer_release(&name);
        symbols_release(&symbols);
    }
    return 0;
}
