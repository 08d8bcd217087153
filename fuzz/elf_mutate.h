/*
 * A mutator that knows what an ELF file is: most random bytes of one end at a check of the header or of a section's bounds. It changes one field
 * (of the header, a section, a segment, a symbol) or a number inside a section (an attribute, a form, a length of DWARF, a rule of CFI), to a value
 * that parsers stumble over, and else leaves it to libFuzzer. Include it in one file of a fuzzer.
 */
#ifndef WICK_FUZZ_ELF_MUTATE_H
#define WICK_FUZZ_ELF_MUTATE_H

#include "base/base.h"

#include <elf.h>
#include <stdlib.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Zero, the largest, neighbours of what is there, the file's own size, a power of two; or anything. */
static uint64_t odd_value(uint64_t *state, uint64_t before, size_t size) {
    switch (next_random(state) % 8) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return before + 1;
    case 3:
        return before - 1;
    case 4:
        return size;
    case 5:
        return 1ull << next_random(state) % 64;
    case 6:
        return next_random(state) % (size + 1);
    default:
        return next_random(state) << 32 | next_random(state);
    }
}

static void change(uint8_t *data, size_t size, uint64_t at, size_t width, uint64_t *state) {
    uint64_t value = 0;
    if (at > size || width > size - at)
        return;
    memcpy(&value, data + at, width);
    value = odd_value(state, value, size);
    memcpy(data + at, &value, width);
}

/* One of a table's fields: `entry` bytes each, of eight bytes or the last four. */
static void change_table(uint8_t *data, size_t size, uint64_t table, uint64_t count, size_t entry,
                         uint64_t *state) {
    if (count)
        change(data, size,
               table + next_random(state) % count * entry + next_random(state) % (entry / 4) * 4,
               next_random(state) & 1 ? 4 : 8, state);
}

static void change_section(uint8_t *data, size_t size, const Elf64_Ehdr *header, uint64_t *state) {
    uint64_t at =
        header->e_shoff + next_random(state) % (header->e_shnum + 1u) * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    if (at > size || sizeof section > size - at)
        return;
    memcpy(&section, data + at, sizeof section);
    if (section.sh_size == 0 || section.sh_type == SHT_NOBITS)
        return;
    static const size_t widths[] = {1, 1, 1, 2, 4, 8};
    change(data, size, section.sh_offset + next_random(state) % section.sh_size,
           widths[next_random(state) % 6], state);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    uint64_t state = seed * 2654435761u + 1;
    Elf64_Ehdr header;
    next_random(&state);
    if (size < sizeof header || memcmp(data, ELFMAG, SELFMAG) != 0 || next_random(&state) % 4 == 0)
        return LLVMFuzzerMutate(data, size, most);
    memcpy(&header, data, sizeof header);
    switch (next_random(&state) % 6) {
    case 0:
        change(data, size, 16 + next_random(&state) % 24 * 2, 2, &state);
        break;
    case 1:
        change_table(data, size, header.e_shoff, header.e_shnum, sizeof(Elf64_Shdr), &state);
        break;
    case 2:
        change_table(data, size, header.e_phoff, header.e_phnum, sizeof(Elf64_Phdr), &state);
        break;
    default: /* most of what there is to get wrong is inside */
        change_section(data, size, &header, &state);
        break;
    }
    return size;
}

#endif
