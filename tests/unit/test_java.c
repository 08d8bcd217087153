/* What a recording keeps of Java virtual machines: names, lines, inlined methods, interpreted frames, and the rules of HotSpot's frames in
   prologues and epilogues; on aarch64, by stacks that are laid out as HotSpot's sources say. */
#include "profile/reading.h"

#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RBP = 6, RSP = 7, RIP = 16, PID = 7, START = 0x1000, SIZE = 0x100 };

struct fixture {
    struct perfdata data;
    struct profile profile;
    struct reading reading;
    struct java *java;
    struct buffer bytes;
};

static void begin(struct fixture *f) {
    *f = (struct fixture){.profile = {.tree = tree_new()}};
    f->profile.objects = objects_new(&(struct objects_options){0});
    f->reading.profile = &f->profile;
    f->java = java_new(&budget_defaults);
}

static void begin_aarch64(struct fixture *f) {
    begin(f);
    f->data.arch = TEXT("aarch64");
    f->profile.data = &f->data;
}

static void end(struct fixture *f) {
    java_free(f->java);
    made_release(&f->reading.made);
    buffer_release(&f->bytes);
    objects_free(f->profile.objects);
    tree_free(f->profile.tree);
}

static void put(struct fixture *f, uint64_t number) {
    buffer_add_varint(&f->bytes, number);
}

static void put_text(struct fixture *f, const char *text) {
    put(f, strlen(text));
    buffer_add(&f->bytes, text_of(text));
}

static bool add(struct fixture *f, bool is_code, uint64_t time) {
    uint64_t key[] = {PID, time};
    struct text name = {(const char *)key, sizeof key}, bytes = buffer_text(&f->bytes);
    bool fine =
        is_code ? java_add_code(f->java, name, bytes) : java_add_methods(f->java, name, bytes);
    f->bytes.count = 0;
    return fine;
}

static void put_method(struct fixture *f, uint64_t number, uint64_t address, const char *name) {
    put(f, number);
    put(f, address);
    put(f, address + 0x100); /* bytecode */
    put(f, 50);
    put_text(f, "p/q/Class");
    put_text(f, name);
    put_text(f, "Class.java");
    put(f, 2);
    put(f, 20), put(f, 12); /* in no order */
    put(f, 0), put(f, 11);
}

static void put_blob_named(struct fixture *f, enum java_kind kind, uint64_t start, uint64_t words,
                           int64_t complete, const char *name) {
    put(f, 1);
    put(f, kind);
    put(f, start);
    put(f, SIZE);
    put(f, words);
    put(f, (uint64_t)(complete + 1));
    put(f, kind == JAVA_COMPILED);
    put_text(f, name);
}

static void put_blob_at(struct fixture *f, enum java_kind kind, uint64_t start, uint64_t words,
                        int64_t complete) {
    put_blob_named(f, kind, start, words, complete, "blob");
}

static void put_blob(struct fixture *f, enum java_kind kind, uint64_t words, int64_t complete) {
    put_blob_at(f, kind, START, words, complete);
}

static void put_code_at(struct fixture *f, uint64_t address, struct text before, struct text from,
                        uint64_t depth) {
    uint8_t bytes[JAVA_BEFORE + JAVA_AFTER];
    memset(bytes, 0x90, sizeof bytes);
    memcpy(bytes + JAVA_BEFORE - before.length, before.data, before.length);
    memcpy(bytes + JAVA_BEFORE, from.data, from.length);
    put(f, 2);
    put(f, address);
    buffer_add(&f->bytes, (struct text){(const char *)bytes, sizeof bytes});
    put(f, depth);
}

static void put_code(struct fixture *f, uint64_t address, struct text before, struct text from) {
    put_code_at(f, address, before, from, 2);
}

/* The row at an address of the process, as the moments map it. */
static const struct cfi_row *row_at(struct fixture *f, uint64_t address) {
    for (size_t i = 0; i < f->reading.made.list.count; i++) {
        const struct made_moment *moment = &f->reading.made.list.items[i];
        if (address >= moment->start && address < moment->end)
            return objects_cfi(f->profile.objects, moment->object,
                               address - moment->start + moment->place);
    }
    return NULL;
}

static void assert_cfa(struct fixture *f, uint64_t address, unsigned reg, int offset,
                       unsigned rules) {
    const struct cfi_row *row = row_at(f, address);
    assert_non_null(row);
    assert_int_equal(row->cfa_register, reg);
    assert_int_equal(row->cfa_offset, offset);
    assert_int_equal(row->rule_count, rules);
}

static void compiled_frames(void **state) {
    struct fixture f;
    begin(&f);
    put_method(&f, 1, 0x5000, "run");
    assert_true(add(&f, false, 0));
    put_blob(&f, JAVA_COMPILED, 6, 12);
    put(&f, 0), put(&f, 0);
    /* mov [rsp-0x14000], eax; push rbp; sub rsp, 0x20 */
    put_code(&f, START + 7, TEXT(""), TEXT("\x55\x48\x83\xec\x20"));
    put_code(&f, START + 8, TEXT("\x55"), TEXT("\x48\x83\xec\x20"));
    /* add rsp, 0x20; pop rbp; cmp rsp, [r15+0x348]; ja; ret */
    put_code(&f, START + 0x80, TEXT("\x48\x83\xc4\x20"),
             TEXT("\x5d\x49\x3b\xa7\x48\x03\0\0\x0f\x87\1\0\0\0\xc3"));
    put_code(&f, START + 0x81, TEXT("\x5d"), TEXT("\x49\x3b\xa7\x48\x03\0\0\x0f\x87\1\0\0\0\xc3"));
    put_code(&f, START + 0x8e, TEXT(""), TEXT("\xc3"));
    put_code(&f, START + 0x90, TEXT(""), TEXT("\x48\x8b\xc3"));
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);

    assert_cfa(&f, START + 7, RSP, 8, 1);
    assert_cfa(&f, START + 8, RSP, 16, 2);
    assert_cfa(&f, START + 2, RSP, 8, 1);
    assert_cfa(&f, START + 11, RSP, 48, 2); /* nothing was sampled there: a call returns to it */
    assert_cfa(&f, START + 12, RSP, 48, 2);
    assert_cfa(&f, START + 0x7f, RSP, 48, 2);
    assert_cfa(&f, START + 0x80, RSP, 16, 2);
    assert_cfa(&f, START + 0x81, RSP, 8, 1);
    assert_cfa(&f, START + 0x82, RSP, 48, 2);
    assert_cfa(&f, START + 0x8e, RSP, 8, 1);
    assert_cfa(&f, START + 0x90, RSP, 48, 2);
    end(&f);
}

/* Newer compilers check something between making the frame and its being whole; small frames are made without a push. */
static void long_prologues(void **state) {
    struct fixture f;
    begin(&f);
    put_blob(&f, JAVA_SIZED, 4, 40);
    put_code(&f, START + 20, TEXT("\x55\x48\x83\xec\x10\x90\x90"), TEXT("\x90"));
    put_code(&f, START + 24, TEXT("\x48\x83\xec\x18"), TEXT("\x48\x89\x6c\x24\x10"));
    put_code(&f, START + 29, TEXT("\x48\x83\xec\x18\x48\x89\x6c\x24\x10"), TEXT("\x90"));
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);
    assert_cfa(&f, START + 20, RSP, 32, 2);
    assert_cfa(&f, START + 24, RSP, 32, 1);
    assert_cfa(&f, START + 29, RSP, 32, 2);
    end(&f);
}

static void stubs_and_the_interpreter(void **state) {
    struct fixture f;
    begin(&f);
    put_blob(&f, JAVA_STUB, 0, -1);
    put_code(&f, START + 4, TEXT(""), TEXT("\x55\x48\x8b\xec"));
    put_code(&f, START + 5, TEXT("\x55"), TEXT("\x48\x8b\xec"));
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);
    assert_cfa(&f, START, RBP, 16, 2);
    assert_cfa(&f, START + 4, RSP, 8, 1);
    assert_cfa(&f, START + 5, RSP, 16, 2);
    end(&f);

    begin(&f);
    put_blob(&f, JAVA_INTERPRETER, 0, -1);
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);
    const struct cfi_row *row = row_at(&f, START + 9);
    assert_true(row && row->is_interpreter && row->rule_count == 3 && !row->simple);
    end(&f);

    begin(&f);
    put_blob(&f, JAVA_FRAMELESS, 0, -1);
    put_code_at(&f, START + 4, TEXT(""), TEXT(""), 0);
    put_code_at(&f, START + 6, TEXT(""), TEXT(""), 2);
    put_code_at(&f, START + 8, TEXT(""), TEXT(""), 8);
    put_code_at(&f, START + 9, TEXT(""), TEXT(""), 7);
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);
    assert_cfa(&f, START, RBP, 16, 2);
    assert_cfa(&f, START + 4, RSP, 8, 1);
    assert_cfa(&f, START + 6, RSP, 8, 1);
    assert_cfa(&f, START + 8, RSP, 32, 1);
    assert_cfa(&f, START + 9, RSP, 24, 2);
    end(&f);
}

static void assert_frame(const struct inline_frame *frame, const char *name, unsigned line) {
    assert_int_equal(frame->name.length, strlen(name));
    assert_memory_equal(frame->name.data, name, strlen(name));
    assert_int_equal(frame->line, line);
    assert_memory_equal(frame->file.data, "p/q/Class.java", 14);
}

static void inlined_methods(void **state) {
    struct fixture f;
    struct inline_chain chain = {0};
    begin(&f);
    put_method(&f, 1, 0x5000, "outer");
    put_method(&f, 2, 0x6000, "inner");
    assert_true(add(&f, false, 0));
    put_blob(&f, JAVA_COMPILED, 6, 12);
    put(&f, 2);
    put(&f, 0), put(&f, 1), put(&f, 26); /* outer, bytecode 25 */
    put(&f, 1), put(&f, 2), put(&f, 1);  /* inner in it, bytecode 0 */
    put(&f, 2);
    put(&f, 0x20), put(&f, 2);
    put(&f, 0x10), put(&f, 1);
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);
    const struct made_moment *moment = &f.reading.made.list.items[0];
    /* A call returns to 0x20, and is looked up before that; a sample there is at the place itself. */
    for (uint64_t into = 0x1f; into <= 0x20; into++) {
        chain.count = 0;
        objects_inlines(f.profile.objects, moment->object, moment->place + into, true, &chain);
        assert_int_equal(chain.count, 2);
        assert_frame(&chain.items[0], "p.q.Class.outer", 12);
        assert_frame(&chain.items[1], "p.q.Class.inner", 11);
    }
    chain.count = 0;
    objects_inlines(f.profile.objects, moment->object, moment->place + 0x21, true, &chain);
    assert_int_equal(chain.count, 1);
    assert_frame(&chain.items[0], "p.q.Class.outer", 12);
    vector_release(&chain);
    end(&f);
}

static void interpreted_frames(void **state) {
    struct fixture f;
    struct inline_chain chain = {0};
    begin(&f);
    put_method(&f, 1, 0x5000, "before");
    assert_true(add(&f, false, 0));
    put_method(&f, 2, 0x5000, "after"); /* another class's, where the first was */
    assert_true(add(&f, false, 1000));
    java_finish(f.java, &f.reading);
    const struct java_process *process = java_process(f.java, PID);
    assert_null(java_process(f.java, PID + 1));
    assert_int_equal(java_interpreted(process, 0, 0x5008, 0x5100, 0), 0);
    const struct made_moment *moment = &f.reading.made.list.items[0];
    uint64_t early = java_interpreted(process, 999, 0x5000, 0x5100 + 20, 0);
    uint64_t late = java_interpreted(process, 1000, 0x5000, 0, 0x5100 + 3);
    assert_true(early >= moment->start && early < moment->end && late < moment->end);
    objects_inlines(f.profile.objects, moment->object, early - moment->start + moment->place, true,
                    &chain);
    assert_int_equal(chain.count, 1);
    assert_frame(&chain.items[0], "p.q.Class.before", 12);
    chain.count = 0;
    objects_inlines(f.profile.objects, moment->object, late - moment->start + moment->place, true,
                    &chain);
    assert_int_equal(chain.count, 1);
    assert_frame(&chain.items[0], "p.q.Class.after", 11);
    vector_release(&chain);
    end(&f);
}

/* ---- aarch64 ---- */

enum { FP = 29, LR = 30, SP = 31, PC = 32 };
/* Instructions of HotSpot's, as an assembler writes them. */
#define SUB_SP_48 "\xff\xc3\x00\xd1"                /* sub sp, sp, #48 */
#define STP_32 "\xfd\x7b\x02\xa9"                   /* stp x29, x30, [sp, #32] */
#define LDP_32 "\xfd\x7b\x42\xa9"                   /* ldp x29, x30, [sp, #32] */
#define ADD_SP_48 "\xff\xc3\x00\x91"                /* add sp, sp, #48 */
#define STP_PUSH "\xfd\x7b\xbf\xa9"                 /* stp x29, x30, [sp, #-16]! */
#define LDP_POP "\xfd\x7b\xc1\xa8"                  /* ldp x29, x30, [sp], #16 */
#define MOV_FP_SP "\xfd\x03\x00\x91"                /* mov x29, sp */
#define MOV_X8 "\x08\x02\x82\xd2"                   /* mov x8, #4112 */
#define SUB_SP_X8 "\xff\x63\x28\xcb"                /* sub sp, sp, x8 */
#define BANG "\xe9\x4f\x40\xd1"                     /* sub x9, sp, #19, lsl #12 */
#define LDR_POLL "\x88\xa7\x41\xf9"                 /* ldr x8, [x28, #840] */
#define CMP_POLL "\xff\x63\x28\xeb"                 /* cmp sp, x8 */
#define BHI "\xc8\x00\x00\x54"                      /* b.hi */
#define RETURN "\xc0\x03\x5f\xd6"                   /* ret */
#define OLD_POLL "\x08\x00\x00\x90\x1f\x01\x40\xb9" /* adrp x8; ldr wzr, [x8] */
#define OTHER "\x00\x00\x80\xd2"                    /* mov x0, #0 */

/* The return address is in x30, the caller's x29 in x29. */
static void assert_by_link(struct fixture *f, uint64_t address, int offset) {
    assert_cfa(f, address, SP, offset, 1);
    const struct cfi_rule *rule = &row_at(f, address)->rules[0];
    assert_int_equal(rule->reg, LR);
    assert_int_equal(rule->kind, CFI_IN_REGISTER);
    assert_int_equal(rule->offset, LR);
}

/* Both are at the upper end of the frame. */
static void assert_by_stack(struct fixture *f, uint64_t address, int offset) {
    assert_cfa(f, address, SP, offset, 2);
    const struct cfi_rule *rules = row_at(f, address)->rules;
    assert_true(rules[0].reg == LR && rules[0].kind == CFI_AT_CFA && rules[0].offset == -8);
    assert_true(rules[1].reg == FP && rules[1].kind == CFI_AT_CFA && rules[1].offset == -16);
}

static void aarch64_compiled_frames(void **state) {
    struct fixture f;
    begin_aarch64(&f);
    put_method(&f, 1, 0x5000, "run");
    assert_true(add(&f, false, 0));
    put_blob(&f, JAVA_COMPILED, 6, 0x20);
    put(&f, 0), put(&f, 0);
    put_code(&f, START + 4, TEXT(BANG), TEXT(SUB_SP_48 STP_32));
    put_code(&f, START + 8, TEXT(BANG SUB_SP_48), TEXT(STP_32 OTHER));
    put_code(&f, START + 12, TEXT(BANG SUB_SP_48 STP_32), TEXT(OTHER));
    put_code(&f, START + 0x40, TEXT(OTHER), TEXT(LDP_32 ADD_SP_48 LDR_POLL CMP_POLL));
    put_code(&f, START + 0x44, TEXT(LDP_32), TEXT(ADD_SP_48 LDR_POLL CMP_POLL BHI));
    put_code(&f, START + 0x48, TEXT(LDP_32 ADD_SP_48), TEXT(LDR_POLL CMP_POLL BHI RETURN));
    put_code(&f, START + 0x54, TEXT(CMP_POLL BHI), TEXT(RETURN));
    put_code(&f, START + 0x60, TEXT(OTHER), TEXT(LDR_POLL OTHER));
    put_code(&f, START + 0x80, TEXT(LDP_32 ADD_SP_48), TEXT(OLD_POLL RETURN));
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);

    assert_by_link(&f, START, 0);
    assert_by_link(&f, START + 4, 0);
    assert_by_link(&f, START + 8, 48);
    assert_by_stack(&f, START + 12, 48);
    assert_by_stack(&f, START + 0x20, 48);
    assert_by_stack(&f, START + 0x40, 48);
    assert_by_link(&f, START + 0x44, 48);
    assert_by_link(&f, START + 0x48, 0);
    assert_by_link(&f, START + 0x54, 0);
    assert_by_stack(&f, START + 0x58, 48);
    assert_by_stack(&f, START + 0x60, 48);
    assert_by_link(&f, START + 0x80, 0);
    assert_true(row_at(&f, START + 0x60)->may_have_crumb);
    end(&f);
}

/* Of more than 4 KiB, and stubs. */
static void aarch64_other_frames(void **state) {
    struct fixture f;
    begin_aarch64(&f);
    put_blob(&f, JAVA_SIZED, 516, 0x20);
    put_code(&f, START + 4, TEXT(STP_PUSH), TEXT(MOV_X8 SUB_SP_X8));
    put_code(&f, START + 8, TEXT(STP_PUSH MOV_X8), TEXT(SUB_SP_X8));
    put_code(&f, START + 12, TEXT(STP_PUSH MOV_X8 SUB_SP_X8), TEXT(OTHER));
    put_code(&f, START + 0x80, TEXT(OTHER), TEXT(LDP_POP RETURN));
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);
    assert_by_stack(&f, START + 4, 16);
    assert_by_stack(&f, START + 8, 16);
    assert_by_stack(&f, START + 12, 4128);
    assert_by_stack(&f, START + 0x80, 16);
    end(&f);

    begin_aarch64(&f);
    put_blob(&f, JAVA_STUB, 0, -1);
    put_code(&f, START + 4, TEXT(OTHER), TEXT(STP_PUSH MOV_FP_SP));
    put_code(&f, START + 8, TEXT(STP_PUSH), TEXT(MOV_FP_SP OTHER));
    put_code(&f, START + 12, TEXT(STP_PUSH MOV_FP_SP), TEXT(OTHER));
    put_code(&f, START + 16, TEXT(LDP_POP), TEXT(RETURN));
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);
    assert_null(row_at(&f, START));
    assert_by_link(&f, START + 4, 0);
    assert_by_stack(&f, START + 8, 16);
    assert_null(row_at(&f, START + 12));
    assert_by_link(&f, START + 16, 0);
    end(&f);

    begin_aarch64(&f);
    put_blob(&f, JAVA_FRAMELESS, 0, -1);
    put_code_at(&f, START + 4, TEXT(OTHER), TEXT(OTHER), 7);
    put_blob_at(&f, JAVA_INTERPRETER, START + SIZE, 0, -1);
    assert_true(add(&f, true, 0));
    java_finish(f.java, &f.reading);
    assert_by_link(&f, START + 4, 0);
    assert_cfa(&f, START + SIZE + 4, FP, 16, 3);
    assert_true(row_at(&f, START + SIZE + 4)->is_interpreter);
    end(&f);
}

/* A thread of aarch64: C code starts the call stub, which calls compiled code, which calls the interpreter, which calls compiled code. */
enum {
    OUTER = 0x1000,
    INNER = 0x2000,
    INTERPRETER = 0x3000,
    STUB = 0x4000,
    NATIVE = 0x5000,
    METHOD = 0x9000,
    BYTECODE = METHOD + 0x100, /* where put_method() has it */
};
#define STACK 0x7000000ull
enum { INNER_SP = 0x100, INTERPRETER_FP = 0x200, OUTER_SP = 0x240, STUB_FP = 0x2c0 };

struct java_thread {
    struct fixture f;
    struct spaces *spaces;
    struct unwinder *unwinder;
    struct unwind_sample sample;
    uint64_t registers[33];
    uint64_t words[128];
};

static void put_word(struct java_thread *t, uint64_t at, uint64_t value) {
    t->words[at / 8] = value;
}

static void thread_stack(struct java_thread *t) {
    memset(t->words, 0xee, sizeof t->words);
    put_word(t, INNER_SP + 32, STACK + INTERPRETER_FP);
    put_word(t, INNER_SP + 40, INTERPRETER + 0x40);
    put_word(t, INTERPRETER_FP - 72, BYTECODE + 20);
    put_word(t, INTERPRETER_FP - 24, METHOD);
    put_word(t, INTERPRETER_FP - 8, STACK + OUTER_SP); /* above the locals */
    put_word(t, INTERPRETER_FP, 0x1234);               /* compiled code has other uses for x29 */
    put_word(t, INTERPRETER_FP + 8, OUTER + 0x40);
    put_word(t, OUTER_SP + 64, STACK + STUB_FP);
    put_word(t, OUTER_SP + 72, STUB + 0x40);
    put_word(t, STUB_FP, STACK + 0x300);
    put_word(t, STUB_FP + 8, NATIVE + 0x40);
    put_word(t, 0x300, 0);
    put_word(t, 0x308, 0);
}

static uint64_t find_interpreted(const void *context, uint64_t method, uint64_t bytecode,
                                 uint64_t other) {
    return java_interpreted(context, 1, method, bytecode, other);
}

static void thread_map(struct java_thread *t, uint64_t start, uint64_t end, uint64_t offset,
                       uint32_t object) {
    struct mapping mapping = {start, end, offset, object, true};
    spaces_mmap(t->spaces, &(struct key){0}, PID, PID, &mapping);
}

/* Once its code is known. */
static void thread_set_up(struct java_thread *t, enum unwind_arch arch, uint64_t registers) {
    struct fixture *f = &t->f;
    struct space_cursor cursor = {0};
    struct space_at at;
    java_finish(f->java, &f->reading);
    for (size_t i = 0; i < f->reading.made.list.count; i++) {
        const struct made_moment *m = &f->reading.made.list.items[i];
        thread_map(t, m->start, m->end, m->place, m->object);
    }
    struct object_identity native = {.path = TEXT("//anon")};
    thread_map(t, NATIVE, NATIVE + SIZE, NATIVE, objects_add(f->profile.objects, &native));
    spaces_seal(t->spaces);
    spaces_at(t->spaces, &cursor, PID, PID, &(struct key){0}, &at);
    t->unwinder =
        unwinder_new(f->profile.objects, t->spaces, &(struct unwind_options){.arch = arch});
    t->sample = (struct unwind_sample){.abi = PERF_SAMPLE_REGS_ABI_64,
                                       .register_mask = registers,
                                       .registers = (const uint8_t *)t->registers,
                                       .user = at.user,
                                       .epoch = (uint32_t)at.epochs,
                                       .interpreted = find_interpreted,
                                       .interpreted_context = java_process(f->java, PID)};
}

static void thread_begin(struct java_thread *t) {
    struct fixture *f = &t->f;
    *t = (struct java_thread){.spaces = spaces_new(NULL)};
    begin_aarch64(f);
    put_method(f, 1, METHOD, "interpreted");
    assert_true(add(f, false, 0));
    put_blob_at(f, JAVA_COMPILED, OUTER, 10, 0x10);
    put(f, 0), put(f, 0);
    put_blob_at(f, JAVA_COMPILED, INNER, 6, 0x10);
    put(f, 0), put(f, 0);
    put_blob_at(f, JAVA_INTERPRETER, INTERPRETER, 0, -1);
    put_blob_at(f, JAVA_STUB, STUB, 0, -1);
    put_code(f, INNER + 4, TEXT(BANG), TEXT(SUB_SP_48 STP_32));
    put_code(f, INNER + 8, TEXT(BANG SUB_SP_48), TEXT(STP_32 OTHER));
    put_code(f, INNER + 0x84, TEXT(LDP_32), TEXT(ADD_SP_48 RETURN));
    put_code(f, INNER + 0x88, TEXT(LDP_32 ADD_SP_48), TEXT(RETURN));
    assert_true(add(f, true, 0));
    thread_set_up(t, UNWIND_AARCH64, 0x1ffffffffull);
    thread_stack(t);
}

static void thread_end(struct java_thread *t) {
    unwinder_free(t->unwinder);
    end(&t->f);
    spaces_free(t->spaces);
}

/* `sp`: from STACK on. `expected`: addresses of the frames, the method's being METHOD; 0 ends. */
static void assert_frames(struct java_thread *t, uint64_t sp, const uint64_t *expected) {
    struct unwind_stack stack;
    size_t i = 0;
    t->sample.stack = (const uint8_t *)t->words + sp;
    t->sample.stack_size = t->sample.stack_dumped = sizeof t->words - sp;
    unwinder_run(t->unwinder, &t->sample, &stack);
    assert_int_equal(stack.ending, UNWIND_COMPLETE);
    for (; expected[i]; i++) {
        assert_true(i < stack.count);
        if (expected[i] == METHOD)
            assert_true(stack.frames[i].address >= 1ull << 60);
        else
            assert_int_equal(stack.frames[i].address, expected[i]);
    }
    assert_int_equal(i, stack.count);
}

static void assert_stack(struct java_thread *t, uint64_t pc, uint64_t sp, uint64_t fp, uint64_t lr,
                         const uint64_t *expected) {
    t->registers[FP] = fp;
    t->registers[LR] = lr;
    t->registers[SP] = STACK + sp;
    t->registers[PC] = pc;
    assert_frames(t, sp, expected);
}

static void assert_stack_x86(struct java_thread *t, uint64_t pc, uint64_t sp, uint64_t rbp,
                             const uint64_t *expected) {
    t->registers[0] = STACK + rbp;
    t->registers[1] = STACK + sp;
    t->registers[2] = pc;
    assert_frames(t, sp, expected);
}

/* x86-64: a method calls the stub with the barrier in its prologue, once its frame is there; and one that takes arguments from the stack. */
static void stubs_with_more_on_the_stack(void **state) {
    enum { RBP_RSP_RIP = 1 << 6 | 1 << 7 | 1 << 8, CHECK = INTERPRETER };
    static struct java_thread thread;
    struct java_thread *t = &thread;
    *t = (struct java_thread){.spaces = spaces_new(NULL)};
    begin(&t->f);
    put_blob_at(&t->f, JAVA_SIZED, OUTER, 4, 0x20);
    put_blob_at(&t->f, JAVA_SIZED, INNER, 4, 0x20);
    put_blob_at(&t->f, JAVA_STUB, STUB, 0, -1);
    put_blob_named(&t->f, JAVA_FRAMELESS, CHECK, 0, -1, "C1 Runtime slow_subtype_check_blob");
    put_code_at(&t->f, CHECK + 3, TEXT(""), TEXT(""), 6); /* two words were pushed */
    assert_true(add(&t->f, true, 0));
    thread_set_up(t, UNWIND_X86_64, RBP_RSP_RIP);
    memset(t->words, 0xee, sizeof t->words);
    put_word(t, 0x100, 0x1234);
    put_word(t, 0x108, UINT64_MAX);
    put_word(t, 0x110, INNER + 0x1c);
    put_word(t, 0x130, OUTER + 0x40); /* what INNER, and above it OUTER, return to */
    put_word(t, 0x148, STACK + 0x1a0);
    put_word(t, 0x150, NATIVE + 0x40);
    put_word(t, 0x1a0, 0);
    put_word(t, 0x1a8, 0);
    assert_stack_x86(t, STUB + 0x40, 0x80, 0x100,
                     (uint64_t[]){STUB + 0x40, INNER + 0x1c, OUTER + 0x40, NATIVE + 0x40, 0});
    put_word(t, 0x100, INNER + 0x60); /* then two arguments, and INNER's frame */
    assert_stack_x86(t, CHECK + 3, 0xf0, 0x80,
                     (uint64_t[]){CHECK + 3, INNER + 0x60, OUTER + 0x40, NATIVE + 0x40, 0});
    thread_end(t);
}

static void aarch64_stacks(void **state) {
    struct java_thread t;
    const uint64_t junk = 0x1234;
    uint64_t whole[] = {0, METHOD, OUTER + 0x40, STUB + 0x40, NATIVE + 0x40, 0};
    uint64_t above[] = {0, INNER + 0x40, METHOD, OUTER + 0x40, STUB + 0x40, NATIVE + 0x40, 0};
    thread_begin(&t);
    uint64_t frame = STACK + INTERPRETER_FP, called_sp = INNER_SP + 48;

    /* In compiled code: as its frame is made, while it is there, as it is given up. */
    assert_stack(&t, whole[0] = INNER + 4, called_sp, frame, INTERPRETER + 0x40, whole);
    assert_stack(&t, whole[0] = INNER + 8, INNER_SP, frame, INTERPRETER + 0x40, whole);
    assert_stack(&t, whole[0] = INNER + 0x40, INNER_SP, junk, junk, whole);
    assert_stack(&t, whole[0] = INNER + 0x84, INNER_SP, frame, INTERPRETER + 0x40, whole);
    assert_stack(&t, whole[0] = INNER + 0x88, called_sp, frame, INTERPRETER + 0x40, whole);
    /* In a stub without a frame, and in C code that has one, below the crumb. */
    assert_stack(&t, above[0] = STUB + 0x80, INNER_SP, junk, INNER + 0x40, above);
    put_word(&t, INNER_SP - 16, 0);
    put_word(&t, INNER_SP - 8, INNER + 0x40);
    put_word(&t, INNER_SP - 32, junk);
    put_word(&t, INNER_SP - 24, INNER + 0x40);
    assert_stack(&t, above[0] = NATIVE + 0x80, INNER_SP - 32, STACK + INNER_SP - 32, INNER + 0x40,
                 above);
    /* In the interpreter. */
    t.registers[22] = BYTECODE + 3;
    assert_stack(&t, INTERPRETER + 0x80, called_sp, frame, junk, whole + 1);
    thread_end(&t);
}

/* The interpreted method's line: by x22 where it runs, else by what its frame keeps. */
static void aarch64_bytecodes(void **state) {
    struct java_thread t;
    struct unwind_stack stack;
    struct inline_chain chain = {0};
    thread_begin(&t);
    t.registers[FP] = STACK + INTERPRETER_FP;
    t.registers[SP] = STACK + INNER_SP + 48;
    t.registers[PC] = INTERPRETER + 0x80;
    t.sample.stack = (const uint8_t *)t.words + INNER_SP + 48;
    t.sample.stack_size = t.sample.stack_dumped = sizeof t.words - INNER_SP - 48;
    const unsigned lines[] = {11, 12};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        t.registers[22] = i ? 0 : BYTECODE + 3;
        unwinder_run(t.unwinder, &t.sample, &stack);
        const struct unwind_frame *frame = &stack.frames[0];
        assert_non_null(frame->mapping);
        chain.count = 0;
        objects_inlines(t.f.profile.objects, frame->mapping->object,
                        frame->address - frame->mapping->start + frame->mapping->offset, true,
                        &chain);
        assert_int_equal(chain.count, 1);
        assert_frame(&chain.items[0], "p.q.Class.interpreted", lines[i]);
    }
    vector_release(&chain);
    thread_end(&t);
}

static void damaged(void **state) {
    struct fixture f;
    begin(&f);
    put_method(&f, 1, 0x5000, "run");
    f.bytes.count--;
    assert_false(add(&f, false, 0));
    put_method(&f, 1ull << 40, 0x5000, "run");
    assert_false(add(&f, false, 0));
    put_blob(&f, JAVA_COMPILED, 6, 12);
    assert_false(add(&f, true, 0));
    put(&f, 3);
    assert_false(add(&f, true, 0));
    put_blob(&f, JAVA_COMPILED, 6, 12);
    put(&f, 1);
    put(&f, 2), put(&f, 0), put(&f, 0); /* inside a scope that is not there */
    assert_false(add(&f, true, 0));
    java_finish(f.java, &f.reading);
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compiled_frames),
        cmocka_unit_test(long_prologues),
        cmocka_unit_test(stubs_with_more_on_the_stack),
        cmocka_unit_test(stubs_and_the_interpreter),
        cmocka_unit_test(inlined_methods),
        cmocka_unit_test(interpreted_frames),
        cmocka_unit_test(damaged),
        cmocka_unit_test(aarch64_compiled_frames),
        cmocka_unit_test(aarch64_other_frames),
        cmocka_unit_test(aarch64_stacks),
        cmocka_unit_test(aarch64_bytecodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
