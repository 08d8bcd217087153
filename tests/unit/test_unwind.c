#include "unwind/internal.h"

#include "self.h"

#include <dwarf.h>
#include <elf.h>
#include <execinfo.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <ucontext.h>

#include <cmocka.h>

#define CODE 0x10000ull
#define STACK 0x7000000ull

/* ---- expressions ---- */

static bool evaluate(const struct cfi_op *ops, size_t count, uint64_t *value) {
    uint64_t words[4] = {11, 22, 33, 44};
    struct state state = {.present = 1u << 7};
    state.value[7] = STACK;
    state.memory = (struct memory){
        .stack = (const uint8_t *)words, .base = STACK, .size = sizeof words, .word = 8};
    return expression_value(&state, ops, count, 1000, value);
}

static void test_expression(void **unused) {
    uint64_t value;
    const struct cfi_op sum[] = {{DW_OP_breg7, 0, 8, 0},
                                 {DW_OP_deref, 0, 0, 0},
                                 {DW_OP_lit5, 0, 0, 0},
                                 {DW_OP_plus, 0, 0, 0}};
    assert_true(evaluate(sum, COUNT_OF(sum), &value));
    assert_int_equal(value, 27);
    const struct cfi_op cfa[] = {{DW_OP_call_frame_cfa, 0, 0, 0},
                                 {DW_OP_plus_uconst, 0, (uint64_t)-16, 0}};
    assert_true(evaluate(cfa, COUNT_OF(cfa), &value));
    assert_int_equal(value, 984);
    const struct cfi_op narrow[] = {
        {DW_OP_breg7, 0, 16, 0}, {DW_OP_deref_size, 0, 2, 0}, {DW_OP_neg, 0, 0, 0}};
    assert_true(evaluate(narrow, COUNT_OF(narrow), &value));
    assert_int_equal(value, (uint64_t)-33);
    const struct cfi_op skip[] = {
        {DW_OP_lit1, 0, 0, 0}, {DW_OP_bra, 3, 0, 0}, {DW_OP_lit31, 0, 0, 0}, {DW_OP_lit9, 0, 0, 0}};
    assert_true(evaluate(skip, COUNT_OF(skip), &value));
    assert_int_equal(value, 9);
    const struct cfi_op rotate[] = {{DW_OP_lit1, 0, 0, 0},
                                    {DW_OP_lit2, 0, 0, 0},
                                    {DW_OP_lit3, 0, 0, 0},
                                    {DW_OP_rot, 0, 0, 0},
                                    {DW_OP_minus, 0, 0, 0}};
    assert_true(evaluate(rotate, COUNT_OF(rotate), &value));
    assert_int_equal(value, (uint64_t)-1); /* 3 is now lowest: 1 - 2 */
    const struct cfi_op shift[] = {
        {DW_OP_const1s, 0, (uint64_t)-8, 0}, {DW_OP_lit1, 0, 0, 0}, {DW_OP_shra, 0, 0, 0}};
    assert_true(evaluate(shift, COUNT_OF(shift), &value));
    assert_int_equal(value, (uint64_t)-4);
}

static void test_expression_refuses(void **unused) {
    uint64_t value;
    const struct cfi_op loop[] = {{DW_OP_skip, 0, 0, 0}};
    const struct cfi_op grow[] = {{DW_OP_lit1, 0, 0, 0}, {DW_OP_skip, 0, 0, 0}};
    const struct cfi_op far_jump[] = {{DW_OP_skip, UINT32_MAX, 0, 0}};
    const struct cfi_op under[] = {{DW_OP_lit1, 0, 0, 0}, {DW_OP_plus, 0, 0, 0}};
    const struct cfi_op divide[] = {
        {DW_OP_lit1, 0, 0, 0}, {DW_OP_lit0, 0, 0, 0}, {DW_OP_div, 0, 0, 0}};
    const struct cfi_op absent[] = {{DW_OP_breg6, 0, 0, 0}};
    const struct cfi_op beyond[] = {{DW_OP_breg7, 0, 28, 0}, {DW_OP_deref, 0, 0, 0}};
    const struct cfi_op unknown[] = {{DW_OP_form_tls_address, 0, 0, 0}};
    assert_false(evaluate(loop, COUNT_OF(loop), &value));
    assert_false(evaluate(grow, COUNT_OF(grow), &value));
    assert_false(evaluate(far_jump, COUNT_OF(far_jump), &value));
    assert_false(evaluate(under, COUNT_OF(under), &value));
    assert_false(evaluate(divide, COUNT_OF(divide), &value));
    assert_false(evaluate(absent, COUNT_OF(absent), &value));
    assert_false(evaluate(beyond, COUNT_OF(beyond), &value));
    assert_false(evaluate(unknown, COUNT_OF(unknown), &value));
    assert_false(evaluate(NULL, 0, &value));
}

/* ---- without rules: code of no file ---- */

struct bench {
    struct objects *objects;
    struct spaces *spaces;
    struct unwinder *unwinder;
    struct unwind_sample sample;
    struct unwind_stack stack;
    uint64_t registers[40];
    uint64_t words[8192];
};

static void bench_open_file(struct bench *b, struct text code, enum object_kind kind,
                            enum unwind_arch arch, bool compat) {
    struct objects_options none = {0};
    struct object_identity identity = {.path = code, .kind = kind};
    struct key key = {0};
    struct space_cursor cursor = {0};
    struct space_at at;
    memset(b, 0, sizeof *b);
    b->objects = objects_new(&none);
    b->spaces = spaces_new(NULL);
    uint64_t offset = kind == OBJECT_FILE ? 0 : CODE;
    struct mapping mapping = {CODE, CODE + 0x1000, offset, objects_add(b->objects, &identity),
                              true};
    spaces_mmap(b->spaces, &key, 1, 1, &mapping);
    spaces_seal(b->spaces);
    spaces_at(b->spaces, &cursor, 1, 1, &key, &at);
    struct unwind_options options = {.arch = arch, .quirks = compat ? quirks_perf : quirks_none};
    b->unwinder = unwinder_new(b->objects, b->spaces, &options);
    b->sample = (struct unwind_sample){.abi = PERF_SAMPLE_REGS_ABI_64,
                                       .register_mask =
                                           arch == UNWIND_AARCH64 ? 0x1ffffffffull : 0xff0fffull,
                                       .registers = (const uint8_t *)b->registers,
                                       .stack = (const uint8_t *)b->words,
                                       .stack_size = 256,
                                       .stack_dumped = 256,
                                       .user = at.user,
                                       .epoch = (uint32_t)at.epochs};
}

static void bench_open_in(struct bench *b, struct text code, enum unwind_arch arch, bool compat) {
    bench_open_file(b, code, OBJECT_NONE, arch, compat);
}

static void bench_open(struct bench *b, enum unwind_arch arch, bool compat) {
    bench_open_in(b, TEXT("//anon"), arch, compat);
}

static void bench_close(struct bench *b) {
    unwinder_free(b->unwinder);
    spaces_free(b->spaces);
    objects_free(b->objects);
}

static void bench_run(struct bench *b) {
    unwinder_run(b->unwinder, &b->sample, &b->stack);
}

enum { BP = 6, SP = 7, IP = 8 };

static void test_x86_64_frame_pointers(void **unused) {
    struct bench b;
    bench_open(&b, UNWIND_X86_64, false);
    b.registers[IP] = CODE + 1;
    b.registers[SP] = STACK;
    b.registers[BP] = STACK + 16;
    b.words[2] = STACK + 48; /* at STACK + 16: caller's bp, return address */
    b.words[3] = CODE + 0x20;
    b.words[6] = 0;
    b.words[7] = CODE + 0x40;
    bench_run(&b);
    assert_int_equal(b.stack.count, 3);
    assert_int_equal(b.stack.frames[0].address, CODE + 1);
    assert_false(b.stack.frames[0].call);
    assert_int_equal(b.stack.frames[1].address, CODE + 0x20);
    assert_true(b.stack.frames[1].call);
    assert_int_equal(b.stack.frames[2].address, CODE + 0x40);
    assert_int_equal(b.stack.ending, UNWIND_BROKEN);
    b.words[7] = 0; /* a return address of 0 is the end */
    bench_run(&b);
    assert_int_equal(b.stack.count, 2);
    assert_int_equal(b.stack.ending, UNWIND_COMPLETE);
    b.words[3] = 0x99999; /* nobody's code is never reported */
    bench_run(&b);
    assert_int_equal(b.stack.count, 1);
    assert_int_equal(b.stack.ending, UNWIND_BROKEN);
    bench_close(&b);
}

/* The stack must go up: sp < bp + 16, not sp <= bp. */
static void test_x86_64_frame_pointer_bounds(void **unused) {
    struct bench b;
    bench_open(&b, UNWIND_X86_64, false);
    b.registers[IP] = CODE + 1;
    b.registers[SP] = STACK;
    b.words[0] = CODE + 0x20;
    b.registers[BP] = STACK - 8; /* its return address is at sp */
    bench_run(&b);
    assert_int_equal(b.stack.count, 2);
    b.registers[BP] = STACK - 16;
    bench_run(&b);
    assert_int_equal(b.stack.count, 1);
    b.registers[BP] = 0;
    bench_run(&b);
    assert_int_equal(b.stack.count, 1);
    assert_int_equal(b.stack.ending, UNWIND_BROKEN);
    bench_close(&b);
}

static void test_endings(void **unused) {
    struct bench b;
    bench_open(&b, UNWIND_X86_64, false);
    b.registers[IP] = CODE + 1;
    b.registers[SP] = STACK;
    b.registers[BP] = STACK + 4096; /* beyond a slice that was cut */
    bench_run(&b);
    assert_int_equal(b.stack.ending, UNWIND_TRUNCATED);
    b.sample.stack_dumped = 300; /* the whole stack was there */
    bench_run(&b);
    assert_int_equal(b.stack.ending, UNWIND_BROKEN);
    b.sample.stack_dumped = 256;
    b.registers[BP] = 0x123456789abcull; /* no stack is that large */
    bench_run(&b);
    assert_int_equal(b.stack.ending, UNWIND_BROKEN);
    b.registers[BP] = STACK + 240; /* the last two words */
    b.words[31] = CODE + 8;
    bench_run(&b);
    assert_int_equal(b.stack.count, 2);
    bench_close(&b);
    bench_open(&b, UNWIND_X86_64, true); /* perf cannot see the last one */
    b.registers[IP] = CODE + 1;
    b.registers[SP] = STACK;
    b.registers[BP] = STACK + 240;
    b.words[31] = CODE + 8;
    bench_run(&b);
    assert_int_equal(b.stack.count, 1);
    assert_int_equal(b.stack.ending, UNWIND_TRUNCATED);
    bench_close(&b);
}

/* What was kept beside the slice, which may be read across two blocks. */
static void test_blocks(void **unused) {
    struct bench b;
    static uint64_t words[2 * UNWIND_BLOCK / 8];
    const uint8_t *bytes = (const uint8_t *)words;
    uint64_t base = STACK + 4096;
    struct unwind_block blocks[] = {{base, bytes}, {base + UNWIND_BLOCK, bytes + UNWIND_BLOCK}};
    uint64_t link[] = {base + 1536, CODE + 0x40}, first[] = {0, 0};
    memcpy((uint8_t *)words + 1020, link, sizeof link);
    memcpy((uint8_t *)words + 1536, first, sizeof first);
    bench_open(&b, UNWIND_X86_64, false);
    b.registers[IP] = CODE + 1;
    b.registers[SP] = STACK;
    b.registers[BP] = base + 1020;
    b.sample.blocks = blocks;
    b.sample.block_count = 2;
    assert_int_equal(unwind_stack_pointer(UNWIND_X86_64, &b.sample), STACK);
    bench_run(&b);
    assert_int_equal(b.stack.count, 2);
    assert_int_equal(b.stack.frames[1].address, CODE + 0x40);
    assert_int_equal(b.stack.ending, UNWIND_COMPLETE);
    b.sample.block_count = 1;
    bench_run(&b);
    assert_int_equal(b.stack.count, 1);
    assert_int_equal(b.stack.ending, UNWIND_TRUNCATED);
    bench_close(&b);
}

static void check_depth(bool compat, uint32_t limit) {
    struct bench *b = memory_alloc(sizeof *b);
    bench_open(b, UNWIND_X86_64, compat);
    b->registers[IP] = CODE + 1;
    b->registers[SP] = b->registers[BP] = STACK;
    b->sample.stack_size = b->sample.stack_dumped = sizeof b->words;
    for (size_t i = 0; i + 1 < COUNT_OF(b->words); i += 2) {
        b->words[i] = STACK + 8 * (i + 2);
        b->words[i + 1] = CODE + 0x20;
    }
    bench_run(b);
    assert_int_equal(b->stack.count, limit);
    assert_int_equal(b->stack.ending, UNWIND_TRUNCATED);
    bench_close(b);
    free(b);
}

static void test_depth(void **unused) {
    check_depth(false, 1024);
    check_depth(true, 127);
}

static void test_i386(void **unused) {
    struct bench b;
    uint32_t words[] = {STACK + 16, CODE + 0x20, 0, 0, 0, CODE + 0x30};
    bench_open(&b, UNWIND_X86_64, false);
    b.sample.abi = PERF_SAMPLE_REGS_ABI_32;
    memcpy(b.words, words, sizeof words);
    b.registers[IP] = CODE + 1;
    b.registers[SP] = b.registers[BP] = STACK;
    bench_run(&b);
    assert_int_equal(b.stack.count, 3);
    assert_int_equal(b.stack.frames[1].address, CODE + 0x20);
    assert_int_equal(b.stack.frames[2].address, CODE + 0x30);
    bench_close(&b);
}

/* A push that the rules don't know of: the word behind what is no code, if it stands behind a call. */
static void run_in_vdso(struct bench *b, const uint32_t *words, size_t size) {
    bench_open_in(b, TEXT("[vdso]"), UNWIND_X86_64, false);
    b->sample.abi = PERF_SAMPLE_REGS_ABI_32;
    memcpy(b->words, words, size);
    b->registers[IP] = CODE + 1;
    b->registers[SP] = STACK;
    bench_run(b);
}

/* A handler's return, interrupted before and after it popped the signal's number; and with pointers to the registers. */
static void test_i386_sigreturn(void **unused) {
    static const uint8_t before[] = {4, 0, 12 + 128 + 20};
    for (size_t i = 0; i < COUNT_OF(before); i++) {
        struct bench b;
        uint32_t words[64] = {0, STACK + 12, STACK + 12 + 128}, *registers = words + before[i] / 4;
        if (before[i] <= 4)
            words[1] = 0;
        registers[7] = registers[17] = STACK + 240;
        registers[14] = CODE + 0x40;
        registers[15] = 0x23;
        registers[18] = 0x2b;
        run_in_vdso(&b, words, sizeof words);
        assert_int_equal(b.stack.count, 2);
        assert_int_equal(b.stack.frames[1].address, CODE + 0x40);
        assert_false(b.stack.frames[1].call); /* interrupted, not called */
        bench_close(&b);
        registers[18] = 0; /* no registers */
        run_in_vdso(&b, words, sizeof words);
        assert_int_equal(b.stack.count, 1);
        assert_int_equal(b.stack.ending, UNWIND_BROKEN);
        bench_close(&b);
    }
}

static void test_i386_mend(void **unused) {
    struct self self = {0};
    self_open(&self);
    const struct mapping *own =
        space_find(self.spaces, self.at.user, (uint64_t)(uintptr_t)&test_i386_mend);
    assert_non_null(own);
    /* Somewhere in this program there is a call, and somewhere there is none. */
    uint64_t after_call = 0, elsewhere = 0;
    for (const uint8_t *code = (const uint8_t *)(uintptr_t)&test_i386_mend; !after_call; code++)
        if (code[0] == 0xe8)
            after_call = (uint64_t)(uintptr_t)code + 5;
    elsewhere = own->start + 3;
    uint32_t slots[4] = {1, 2, 3, 4};
    struct state state = {.present = 1u << 4};
    state.value[4] = STACK;
    state.memory = (struct memory){.stack = (const uint8_t *)slots,
                                   .base = STACK,
                                   .size = sizeof slots,
                                   .word = 8, /* this program's addresses are wider */
                                   .spaces = self.spaces,
                                   .user = self.at.user,
                                   .objects = self.objects};
    memcpy(slots, &elsewhere, sizeof elsewhere);
    assert_false(machine_i386.mend(&state));
    memcpy(slots, &after_call, sizeof after_call);
    assert_true(machine_i386.mend(&state));
    assert_int_equal(state.pc, after_call);
    assert_int_equal(state.value[4], STACK + 4);
    self_close(&self);
}

static void test_aarch64(void **unused) {
    struct bench b;
    bench_open(&b, UNWIND_AARCH64, false);
    b.registers[32] = CODE + 4;
    b.registers[31] = STACK;
    b.registers[30] =
        CODE + 0x20; /* a leaf: the caller is in the link register, its record at x29 */
    b.registers[29] = STACK + 16;
    b.words[2] = STACK + 64;
    b.words[3] = (CODE + 0x30) | 0x12ull << 48; /* signed */
    b.words[8] = 0;
    b.words[9] = 0;
    bench_run(&b);
    assert_int_equal(b.stack.count, 3);
    assert_int_equal(b.stack.frames[1].address, CODE + 0x20);
    assert_int_equal(b.stack.frames[2].address, CODE + 0x30);
    assert_int_equal(b.stack.ending, UNWIND_COMPLETE);
    b.registers[30] |= 0x35ull << 48;
    bench_run(&b);
    assert_int_equal(b.stack.frames[1].address, CODE + 0x20);
    b.words[3] = CODE + 0x20; /* the function has made its record already: once is enough */
    b.registers[30] = CODE + 0x20;
    bench_run(&b);
    assert_int_equal(b.stack.count, 2);
    b.registers[30] = 0;
    bench_run(&b);
    assert_int_equal(b.stack.count, 1);
    bench_close(&b);
}

/* A program of nothing but a signal's return: mov x8, #139; svc #0. */
enum { TRAMPOLINE = 0x100 };

static void write_trampoline(const char *path) {
    static const uint64_t code = 0xd4000001d2801168ull;
    Elf64_Ehdr header = {.e_ident = ELFMAG, .e_type = ET_DYN, .e_machine = EM_AARCH64};
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = header.e_version = EV_CURRENT;
    header.e_ehsize = header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 1;
    Elf64_Phdr load = {
        .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 0x200, .p_memsz = 0x200};
    char bytes[0x200] = {0};
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, &load, sizeof load);
    memcpy(bytes + TRAMPOLINE, &code, sizeof code);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
    assert_int_equal(fclose(file), 0);
}

/* The same with the rules that the kernel's vdso has for it: the caller is what the frame record at x29 says. */
static void write_ruled_trampoline(const char *path) {
    enum { EH_FRAME = 0x140, SECTIONS = 0x180, NAMES = 0x240, SIZE = 0x280 };
    static const uint8_t rules[] = {
        0x18, 0,  0,    0,    0,    0,    0,  0,    1,    'z',  'R',  'S',
        0,    4,  0x78, 30,   1,    0x1b,                    /* a signal's frame */
        0x0c, 29, 0,    0x9d, 0,    0x11, 30, 0x7f, 0,    0, /* x29, x30 at x29 */
        0x10, 0,  0,    0,    0x20, 0,    0,  0,    0x98, 0xff, 0xff, 0xff,
        0x10, 0,  0,    0,    0,    0,    0,  0,    0,    0,    0,    0};
    static const char names[] = "\0.eh_frame\0.shstrtab";
    Elf64_Shdr sections[3] = {{0},
                              {.sh_name = 1,
                               .sh_type = SHT_PROGBITS,
                               .sh_flags = SHF_ALLOC,
                               .sh_addr = EH_FRAME,
                               .sh_offset = EH_FRAME,
                               .sh_size = sizeof rules,
                               .sh_addralign = 1},
                              {.sh_name = 11,
                               .sh_type = SHT_STRTAB,
                               .sh_offset = NAMES,
                               .sh_size = sizeof names,
                               .sh_addralign = 1}};
    char bytes[SIZE] = {0};
    write_trampoline(path);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, 0x200, file), 0x200);
    Elf64_Ehdr *header = (Elf64_Ehdr *)bytes;
    header->e_shoff = SECTIONS;
    header->e_shentsize = sizeof sections[0];
    header->e_shnum = COUNT_OF(sections);
    header->e_shstrndx = 2;
    memcpy(bytes + EH_FRAME, rules, sizeof rules);
    memcpy(bytes + SECTIONS, sections, sizeof sections);
    memcpy(bytes + NAMES, names, sizeof names);
    rewind(file);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
    assert_int_equal(fclose(file), 0);
}

/* The function that a signal interrupted is in the signal's frame alone: its own return address is what the rules lead to. */
static void test_aarch64_signal(void **unused) {
    enum { REGISTERS = (128 + 184) / 8, RECORD = 100 };
    struct bench b;
    char path[] = "/tmp/wick-unwind-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    write_ruled_trampoline(path);
    bench_open_file(&b, text_of(path), OBJECT_FILE, UNWIND_AARCH64, false);
    b.sample.stack_size = b.sample.stack_dumped = sizeof b.words;
    b.registers[32] = CODE + 4; /* in the handler, which has done nothing yet */
    b.registers[31] = STACK;
    b.registers[30] = CODE + TRAMPOLINE;
    b.registers[29] = STACK + 8 * RECORD;
    b.words[REGISTERS + 29] = STACK + 8 * RECORD;
    b.words[REGISTERS + 30] = CODE + 0x60;
    b.words[REGISTERS + 31] = STACK + 8 * RECORD;
    b.words[REGISTERS + 32] = CODE + 0x50; /* was interrupted */
    b.words[RECORD] = 0;
    b.words[RECORD + 1] = CODE + 0x60;
    bench_run(&b);
    assert_true(b.stack.count >= 4);
    assert_int_equal(b.stack.frames[1].address, CODE + TRAMPOLINE);
    assert_int_equal(b.stack.frames[2].address, CODE + 0x50);
    assert_false(b.stack.frames[2].call);
    assert_int_equal(b.stack.frames[3].address, CODE + 0x60);
    b.sample.stack_size = b.sample.stack_dumped =
        8 * 16; /* the signal's frame is not in the copy: as well as can be */
    bench_run(&b);
    assert_true(b.stack.count >= 2 && b.stack.ending != UNWIND_COMPLETE);
    bench_close(&b);
    unlink(path);
}

/* What a handler that has done nothing yet returns to was not called. */
static void test_aarch64_leaf(void **unused) {
    struct bench b;
    struct unwind_frame caller;
    char path[] = "/tmp/wick-unwind-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    write_trampoline(path);
    bench_open_file(&b, text_of(path), OBJECT_FILE, UNWIND_AARCH64, true);
    b.sample.register_mask = UNWIND_LINK_REGISTER_ONLY;
    b.registers[0] = CODE + TRAMPOLINE;
    assert_true(unwinder_leaf_caller(b.unwinder, &b.sample, CODE + 4, &caller));
    assert_int_equal(caller.address, CODE + TRAMPOLINE);
    assert_false(caller.call);
    b.registers[0] = (CODE + 0x180) | 0x35ull << 48; /* signed */
    assert_true(unwinder_leaf_caller(b.unwinder, &b.sample, CODE + 4, &caller));
    assert_int_equal(caller.address, CODE + 0x180);
    assert_true(caller.call);
    bench_close(&b);
    unlink(path);
}

static void test_what_is_missing(void **unused) {
    struct bench b;
    struct notes notes = {0};
    bench_open(&b, UNWIND_X86_64, false);
    b.sample.register_mask = 1 << IP;
    bench_run(&b);
    assert_int_equal(b.stack.count, 0);
    unwinder_notes(b.unwinder, &notes);
    assert_int_equal(notes.count, 1);
    assert_string_equal(notes.items[0].kind->name, "unwind-registers");
    notes_release(&notes);
    bench_close(&b);
    bench_open(&b, UNWIND_AARCH64, false);
    b.sample.abi = PERF_SAMPLE_REGS_ABI_32;
    bench_run(&b);
    assert_int_equal(b.stack.count, 0);
    unwinder_notes(b.unwinder, &notes);
    assert_string_equal(notes.items[0].kind->name, "unwind-abi");
    notes_release(&notes);
    bench_close(&b);
}

static void test_starts(void **unused) {
    assert_true(unwind_is_start(TEXT("_start")));
    assert_true(unwind_is_start(TEXT("__clone3@@GLIBC_2.34")));
    assert_true(unwind_is_start(TEXT("runtime.goexit")));
    assert_true(unwind_is_start(TEXT("erts_beamasm:normal_exit/0")));
    assert_false(unwind_is_start(TEXT("runtime.mcall")));
    assert_false(unwind_is_start(TEXT("runtime.systemstack")));
    assert_true(unwind_is_first_by_frame_pointer(TEXT("runtime.mcall")));
    assert_false(unwind_is_start(TEXT("main")));
    assert_false(unwind_is_start(TEXT("__libc_start_main")));
    assert_true(unwind_is_first_by_frame_pointer(TEXT("__libc_start_main@@GLIBC_2.34")));
    assert_int_equal(unwind_arch_of(TEXT("")), UNWIND_X86_64);
    assert_int_equal(unwind_arch_of(TEXT("arm64")), UNWIND_AARCH64);
    assert_int_equal(unwind_arch_of(TEXT("riscv64")), UNWIND_OTHER);
}

/* ---- by rules: this program's own stack, against what its own unwinder says ---- */

#ifdef __x86_64__
struct caught {
    void *expected[64];
    int expected_count;
    ucontext_t context;
    uint8_t *stack;
    size_t stack_size;
};
static struct caught caught;

static uint64_t stack_end(void) {
    pthread_attr_t attributes;
    void *address = NULL;
    size_t size = 0;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &address, &size);
    pthread_attr_destroy(&attributes);
    return (uint64_t)address + size;
}

/* A stack has redzones that sanitizers guard: not from us. */
__attribute__((no_sanitize("address"))) static void copy_stack(uint8_t *to, uint64_t from,
                                                               size_t size) {
    for (size_t i = 0; i < size; i++)
        to[i] = *(const volatile uint8_t *)(from + i);
}

/* Copies first: what follows may write below. */
static __attribute__((noinline)) void catch_here(void) {
    getcontext(&caught.context);
    uint64_t sp = (uint64_t)caught.context.uc_mcontext.gregs[REG_RSP];
    caught.stack_size = stack_end() - sp;
    caught.stack = memory_alloc(caught.stack_size);
    copy_stack(caught.stack, sp, caught.stack_size);
    caught.expected_count = backtrace(caught.expected, 64);
}

static int compare_and_catch(const void *a, const void *b) {
    if (!caught.expected_count)
        catch_here();
    return *(const int *)a - *(const int *)b;
}

static __attribute__((noinline)) int recurse(int depth) {
    volatile int kept[8] = {depth, 3, 1, 2};
    if (depth == 0)
        qsort((void *)(uintptr_t)kept, 4, sizeof kept[0], compare_and_catch);
    else
        kept[1] += recurse(depth - 1);
    return kept[0] + kept[1];
}

static void on_signal(int number) {
    catch_here();
}

static void unwind_caught(struct unwind_stack *stack, struct self *self,
                          struct unwinder **unwinder) {
    static const uint8_t of_perf[24] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI,
                                        REG_RBP, REG_RSP, REG_RIP, REG_EFL, 0,       0,
                                        0,       0,       0,       0,       REG_R8,  REG_R9,
                                        REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    uint64_t values[20];
    size_t count = 0;
    for (int i = 0; i < 24; i++)
        if (0xff01ff >> i & 1)
            values[count++] = (uint64_t)caught.context.uc_mcontext.gregs[of_perf[i]];
    self_open(self);
    struct unwind_options options = {.arch = UNWIND_X86_64};
    struct unwind_sample sample = {.abi = PERF_SAMPLE_REGS_ABI_64,
                                   .register_mask = 0xff01ff,
                                   .registers = (const uint8_t *)values,
                                   .stack = caught.stack,
                                   .stack_size = caught.stack_size,
                                   .stack_dumped = caught.stack_size,
                                   .user = self->at.user,
                                   .epoch = (uint32_t)self->at.epochs};
    *unwinder = unwinder_new(self->objects, self->spaces, &options);
    unwinder_run(*unwinder, &sample, stack);
}

/* Both begin in catch_here, or in what a sanitizer puts between; from its caller on they must agree. */
static void check_caught(void) {
    struct self self = {0};
    struct unwinder *unwinder;
    struct unwind_stack stack;
    int skip = 0;
    unwind_caught(&stack, &self, &unwinder);
    assert_int_equal(stack.ending, UNWIND_COMPLETE);
    assert_true(stack.count > 3);
    while (skip < caught.expected_count &&
           (uint64_t)caught.expected[skip] != stack.frames[1].address)
        skip++;
    assert_int_equal(stack.count - 1, caught.expected_count - skip);
    for (int i = skip; i < caught.expected_count; i++)
        assert_int_equal(stack.frames[i - skip + 1].address, (uint64_t)caught.expected[i]);
    unwinder_free(unwinder);
    self_close(&self);
    free(caught.stack);
    memset(&caught, 0, sizeof caught);
}

static void test_own_stack(void **unused) {
    recurse(7);
    check_caught();
}

static void test_own_signal_frame(void **unused) {
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    check_caught();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expression),
        cmocka_unit_test(test_expression_refuses),
        cmocka_unit_test(test_x86_64_frame_pointers),
        cmocka_unit_test(test_x86_64_frame_pointer_bounds),
        cmocka_unit_test(test_endings),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_i386_mend),
        cmocka_unit_test(test_i386),
        cmocka_unit_test(test_i386_sigreturn),
        cmocka_unit_test(test_aarch64),
        cmocka_unit_test(test_aarch64_leaf),
        cmocka_unit_test(test_aarch64_signal),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_starts),
#ifdef __x86_64__
        cmocka_unit_test(test_own_stack),
        cmocka_unit_test(test_own_signal_frame),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
