/* Parse any bytes as a file of the disk cache, as the symbols, the compilation units or the kernel's list in one. The
   first byte chooses which. */
#include "object/disk_cache.h"
#include "object/inline.h"

#include <stdlib.h>

/* The file that names point into. */
static struct text string_section(void) {
    enum { SIZE = 4096, NAME = 13 };
    static char bytes[SIZE];
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = i % NAME ? 'a' + (char)(i % NAME) : 0;
    return (struct text){bytes, SIZE};
}

static void ask_symbols(struct text payload) {
    struct objects_options options = {0};
    struct symbols symbols;
    struct buffer name = {0};
    symbols_init(&symbols, &options);
    symbols.sources[0].bytes = symbols.sources[1].bytes = string_section();
    if (symbols_unpack(&symbols, payload)) {
        for (size_t i = 0; i < symbols.entries.count && i < 64; i++) {
            uint32_t found = symbols_find(&symbols, symbols.entries.items[i].start);
            if (found != SYMBOLS_NONE)
                symbols_print_name(&symbols, &symbols.entries.items[found], &name, NULL);
            kallsyms_module(&symbols, &symbols.entries.items[i]);
        }
        symbols.cached.data = (const uint8_t *)""; /* it does not own its memory */
    }
    symbols_release(&symbols);
    buffer_release(&name);
}

static void release_units(struct units *units) {
    for (size_t i = 0; i < units->count; i++) {
        table_free(units->items[i].table);
        arena_release(&units->items[i].arena);
        places_release(&units->items[i].places);
        pthread_mutex_destroy(&units->items[i].lock);
    }
    free(units->items);
    vector_release(&units->ranges);
}

static void ask_units(struct text payload) {
    struct units units = {
        .cached = {.data = (const uint8_t *)payload.data, .size = payload.length}};
    struct buffer packed = {0};
    static volatile uint64_t sink;
    uint64_t sum = 0;
    if (!units_unpack(&units, payload))
        return;
    for (size_t i = 0; i < units.count && i < 256; i++) {
        struct inline_table *table = cached_table(&units, &units.items[i]);
        for (size_t j = 0; table && j < table->segment_count && j < 64; j++) {
            uint32_t entry = table_lookup(table, table->starts[j]);
            for (; entry != NO_ENTRY; entry = table->entries[entry].parent)
                sum += table->entries[entry].name.length;
            struct inline_frame frame = {0};
            if (place_find(&units, &units.items[i], table->starts[j], &frame))
                sum += frame.file.length;
        }
    }
    sink = sum;
    (void)sink;
    units_pack(&units, &packed);
    buffer_release(&packed);
    release_units(&units);
}

static void ask_kernel(struct text payload) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct objects_options options = {0};
    struct symbols names;
    struct text marks;
    uint64_t address;
    struct kernel_list *list = kernel_list_unpack(payload, &marks);
    if (!list)
        return;
    symbols_init(&names, &options);
    kallsyms_find(marks, TEXT("_text"), &address);
    for (size_t i = 0; i < list->blocks.count && i < 64; i++)
        kernel_list_find(list, list->blocks.items[i].first + i, &names, &lock);
    list->cached.data = (const uint8_t *)""; /* it does not own its memory */
    kernel_list_free(list);
    symbols_release(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    char *copy = memory_copy(data + 1, size - 1); /* aligned, as a mapped file is */
    struct text bytes = {copy, size - 1}, payload;
    if (data[0] == 's')
        ask_symbols(bytes);
    else if (data[0] == 'u')
        ask_units(bytes);
    else if (data[0] == 'k')
        ask_kernel(bytes);
    else
        disk_cache_check(bytes, TEXT("key"), &payload);
    free(copy);
    return 0;
}
