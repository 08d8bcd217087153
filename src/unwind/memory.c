/*
 * Memory as a sample left it: the copied slice of stack, and the files' own bytes, which no process can have changed.
 */
#include "unwind/internal.h"

bool memory_bytes(struct memory *memory, uint64_t address, unsigned size, uint64_t *value) {
    uint64_t into = address - memory->base, bytes = 0;
    assert(size <= sizeof bytes);
    if (into < memory->size && memory->size - into >= size) {
        memcpy(&bytes, memory->stack + into, size);
        *value = bytes;
        return true;
    }
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
