/*
 * Take the bytes for a sample: architecture and choices, the size of an ELF file and its bytes, then registers and stack, and a part of the stack
 * beyond its copy. The file is mapped where the registers' addresses point, so that its rules are used.
 */
#include "elf_bytes.h"
#include "unwind/unwind.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 8, REGISTERS = 40 };
#define CODE 0x400000ull
#define STACK 0x7f0000000000ull

/* A register is a small number, code or stack, so that most of them are meaningful. */
static void draw_registers(const uint8_t *bytes, size_t elf_size, uint64_t *registers) {
    for (size_t i = 0; i < REGISTERS; i++) {
        uint32_t drawn = load_u32(bytes + 4 * i);
        uint64_t value = drawn >> 2;
        registers[i] = drawn & 1   ? STACK + value % 512
                       : drawn & 2 ? CODE + value % (elf_size + 1)
                                   : value;
    }
}

static uint64_t interpreted(const void *context, uint64_t method, uint64_t bytecode,
                            uint64_t other) {
    return bytecode & 1 ? 0 : CODE + (method + other) % 4096;
}

static void check_leaf(struct unwinder *unwinder, const struct unwind_options *options,
                       const struct unwind_sample *sample) {
    struct unwind_sample leaf = *sample;
    struct unwind_frame caller;
    struct notes notes = {0};
    unwind_stack_pointer(options->arch, sample);
    leaf.register_mask = UNWIND_LINK_REGISTER_ONLY;
    unwinder_leaf_caller(unwinder, &leaf, CODE + sample->stack_size, &caller);
    unwinder_notes(unwinder, &notes);
    notes_release(&notes);
}

static void run(struct elf_bytes *elf, size_t elf_size, const uint8_t *head, const uint8_t *rest,
                size_t rest_size) {
    uint64_t registers[REGISTERS];
    struct spaces *spaces = spaces_new(NULL);
    struct key key = {0};
    struct mapping mapping = {CODE, CODE + elf_size + 1, 0, elf->object, true};
    draw_registers(rest, elf_size, registers);
    registers[7] = registers[31] = STACK;
    spaces_mmap(spaces, &key, 1, 1, &mapping);
    spaces_seal(spaces);
    struct space_at at;
    struct space_cursor cursor = {0};
    spaces_at(spaces, &cursor, 1, 1, &key, &at);
    struct unwind_options options = {.arch = head[0] % 3,
                                     .quirks = head[0] & 16 ? quirks_perf : quirks_none};
    struct unwinder *unwinder = unwinder_new(elf->objects, spaces, &options);
    bool has_block = (head[1] & 8) && rest_size >= 4 * REGISTERS + UNWIND_BLOCK;
    if (has_block)
        rest_size -= UNWIND_BLOCK;
    const struct unwind_block block = {STACK + rest_size - 4 * REGISTERS, rest + rest_size};
    struct unwind_sample sample = {.abi = 1 + (head[1] & 1),
                                   .register_mask = (head[1] & 2) ? 0x1ffffffffull : 0xff0fffull,
                                   .registers = (const uint8_t *)registers,
                                   .stack = rest + 4 * REGISTERS,
                                   .stack_size = rest_size - 4 * REGISTERS,
                                   .stack_dumped = rest_size - 4 * REGISTERS + (head[1] & 4),
                                   .blocks = has_block ? &block : NULL,
                                   .block_count = has_block,
                                   .interpreted = (head[1] & 16) ? interpreted : NULL,
                                   .user = at.user,
                                   .epoch = (uint32_t)at.epochs};
    struct unwind_stack stack;
    for (int round = 0; round < 2; round++) {
        unwinder_run(unwinder, &sample, &stack);
        assert(stack.count <= (options.quirks.unwound_limit ? 127 : 1024));
        for (uint32_t i = 1; i < stack.count; i++)
            assert(stack.frames[i].mapping || !stack.frames[i].call ||
                   options.quirks.lowers_like_libunwind);
    }
    check_leaf(unwinder, &options, &sample);
    unwinder_free(unwinder);
    spaces_free(spaces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct elf_bytes elf;
    if (size < HEAD)
        return 0;
    size_t elf_size = load_u32(data + 4) % (size - HEAD + 1);
    size_t rest = size - HEAD - elf_size;
    if (rest < 4 * REGISTERS || !elf_bytes_open(&elf, data + HEAD, elf_size))
        return 0;
    run(&elf, elf_size, data, data + HEAD + elf_size, rest);
    elf_bytes_close(&elf);
    return 0;
}
