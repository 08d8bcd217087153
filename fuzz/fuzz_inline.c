/* Parse the bytes as an ELF file and look up inlined functions and lines all over it. */
#include "elf_mutate.h"
#include "elf_bytes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static volatile uint64_t sink;
    struct elf_bytes elf;
    struct inline_chain chain = {0};
    if (!elf_bytes_open(&elf, data, size))
        return 0;
    for (size_t at = 0; at < size; at += elf_bytes_stride(size)) {
        bool found = objects_inlines(elf.objects, elf.object, at, data[at] & 1, &chain);
        assert(found == (chain.count > 0));
        for (size_t i = 0; i < chain.count; i++)
            sink = sink + hash_bytes(chain.items[i].name.data, chain.items[i].name.length) +
                   hash_bytes(chain.items[i].file.data, chain.items[i].file.length);
    }
    vector_release(&chain);
    elf_bytes_close(&elf);
    return 0;
}
