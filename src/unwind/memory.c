/*
 * The memory of a sampled process: the copy of the stack, further blocks of it, and read-only bytes of files, which no process can have changed.
 */
#include "unwind/internal.h"

/* A word may begin in one block and end in the next: no compiler has it so, but nothing forbids it. */
bool memory_block_bytes(const struct memory *memory, uint64_t address, unsigned size,
                        uint64_t *value) {
    const struct unwind_block *blocks = memory->blocks;
    size_t after = search_first(i, 0, memory->block_count, blocks[i].address <= address);
    uint8_t bytes[8] = {0};
    for (unsigned i = 0; i < size && i < sizeof bytes; i++) {
        if (after < memory->block_count && blocks[after].address <= address + i)
            after++;
        if (!after || address + i - blocks[after - 1].address >= UNWIND_BLOCK)
            return false;
        bytes[i] = blocks[after - 1].bytes[address + i - blocks[after - 1].address];
    }
    *value = load_u64(bytes);
    return true;
}

bool memory_bytes(struct memory *memory, uint64_t address, unsigned size, uint64_t *value) {
    uint64_t into = address - memory->base, bytes = 0;
    assert(size <= sizeof bytes);
    if (into < memory->size && memory->size - into >= size) {
        memcpy(&bytes, memory->stack + into, size);
        *value = bytes;
        return true;
    }
    if (memory->block_count && memory_block_bytes(memory, address, size, value))
        return true;
    const struct mapping *mapping = space_find(memory->spaces, memory->user, address);
    if (!mapping || !mapping->object ||
        !objects_read(memory->objects, mapping->object, address - mapping->start + mapping->offset,
                      &bytes, size)) {
        memory->missed = address;
        return false;
    }
    *value = bytes;
    return true;
}

bool memory_word(struct memory *memory, uint64_t address, uint64_t *value) {
    return memory_stack_word(memory, address, value) ||
           memory_bytes(memory, address, memory->word, value);
}

bool perf_register(uint64_t mask, const uint8_t *values, unsigned number, uint64_t *value) {
    if (!(mask >> number & 1))
        return false;
    *value = load_u64(values + 8 * __builtin_popcountll(mask & ((1ull << number) - 1)));
    return true;
}
