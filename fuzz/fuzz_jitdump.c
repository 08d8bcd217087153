/* Parse any bytes as a jitdump: its changes must be within its content, and every place that it returns can be
   queried. */
#include "object/jitdump.h"

#include <elf.h>
#include <stdlib.h>

static void ask(struct objects *objects, uint32_t id, const struct jitdump_change *change,
                uint64_t into) {
    struct symbol symbol;
    struct inline_chain chain = {0};
    uint64_t address = change->place + into;
    uint32_t machine;
    if (objects_symbol(objects, id, address, &symbol) &&
        (symbol.start > address || symbol.end <= address))
        abort();
    const struct cfi_row *row = objects_cfi(objects, id, address);
    if (row && (row->start > address || row->end <= address))
        abort();
    objects_inlines(objects, id, address, true, &chain);
    objects_code(objects, id, address, address + 1, &machine);
    vector_release(&chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buffer bytes = {0};
    struct jitdump dump;
    struct error error = {0};
    buffer_add(&bytes, (struct text){(const char *)data, size});
    jitdump_read(&dump, &bytes, EM_X86_64, &budget_defaults, "dump", &error);
    struct objects *objects = objects_new(&(struct objects_options){0});
    struct object_identity identity = {.kind = OBJECT_MADE, .path = TEXT("dump"), .pid = 1};
    uint32_t id = objects_add(objects, &identity);
    objects_set_made(objects, id, made_share(dump.made));
    for (size_t i = 0; i < dump.changes.count && i < 64; i++) {
        const struct jitdump_change *change = &dump.changes.items[i];
        if (change->start + change->size < change->start)
            abort();
        for (uint64_t into = 0; into < change->size && into < 16; into++)
            ask(objects, id, change, into);
        ask(objects, id, change, change->size - 1);
        ask(objects, id, change, change->size);
    }
    objects_free(objects);
    jitdump_release(&dump);
    return 0;
}
