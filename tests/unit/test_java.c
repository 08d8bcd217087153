/* What a recording keeps of Java virtual machines: names, lines, inlined methods, interpreted frames, and the rules of HotSpot's frames in
   prologues and epilogues. */
#include "profile/reading.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RBP = 6, RSP = 7, RIP = 16, PID = 7, START = 0x1000, SIZE = 0x100 };

struct fixture {
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

static void put_blob(struct fixture *f, enum java_kind kind, uint64_t words, int64_t complete) {
    put(f, 1);
    put(f, kind);
    put(f, START);
    put(f, SIZE);
    put(f, words);
    put(f, (uint64_t)(complete + 1));
    put(f, kind == JAVA_COMPILED);
    put_text(f, "blob");
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
    assert_cfa(&f, START + 9, RSP, 8, 1);
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
        cmocka_unit_test(compiled_frames),           cmocka_unit_test(long_prologues),
        cmocka_unit_test(stubs_and_the_interpreter), cmocka_unit_test(inlined_methods),
        cmocka_unit_test(interpreted_frames),        cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
