/* Parse any bytes as the kernel's list of symbols. */
#include "object/internal.h"
#include "pieces.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In blocks, like the running kernel's: a symbol that is found there is the one that a table of all lines has. */
static void read_in_blocks(struct text text) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct objects_options options = {0};
    struct symbols whole;
    struct buffer marks = {0};
    char path[64];
    int file = piece_file(text, path);
    symbols_init(&whole, &options);
    kallsyms_load(&whole, text);
    lseek(file, 0, SEEK_SET);
    struct kernel_list *list = kernel_list_read_running(file, TEXT("_text"), &marks);
    for (size_t i = 0; list && i < whole.entries.count && !budget_exceeded(&whole.budget); i++) {
        const struct entry *a = &whole.entries.items[i];
        struct symbols *part = kernel_list_find(list, a->start, &whole, &lock);
        const struct entry *b = part ? &part->entries.items[symbols_find(part, a->start)] : NULL;
        if (b && (a->start != b->start || a->end != b->end ||
                  !text_equal(symbols_raw_name(&whole, a), symbols_raw_name(part, b))))
            abort();
    }
    close(file);
    kernel_list_free(list);
    symbols_release(&whole);
    buffer_release(&marks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text text = {(const char *)data, size};
    uint64_t address;
    kallsyms_find(text, TEXT("_text"), &address);
    read_in_blocks(text);
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
