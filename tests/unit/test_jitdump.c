/* Jitdumps: loads, moves, lines, rules, both byte orders, dumps that are cut or damaged. */
#include "object/jitdump.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- writing one ---- */

struct draft {
    struct buffer bytes;
    bool is_swapped;
    size_t record; /* where the last one begins */
};

static void put_u32(struct draft *draft, uint32_t value) {
    buffer_put_u32(&draft->bytes, draft->is_swapped ? __builtin_bswap32(value) : value);
}

static void put_u64(struct draft *draft, uint64_t value) {
    buffer_put_u64(&draft->bytes, draft->is_swapped ? __builtin_bswap64(value) : value);
}

static void put_name(struct draft *draft, const char *name) {
    buffer_add(&draft->bytes, text_of(name));
    buffer_add_char(&draft->bytes, 0);
}

static struct draft draft_new(bool is_swapped) {
    struct draft draft = {.is_swapped = is_swapped};
    uint32_t header[] = {0x4A695444, 1, 40, 0, 0xdeadbeef, 100};
    for (size_t i = 0; i < COUNT_OF(header); i++)
        put_u32(&draft, header[i]);
    put_u64(&draft, 1);
    put_u64(&draft, 0);
    return draft;
}

static void begin(struct draft *draft, uint32_t kind, uint64_t time) {
    draft->record = draft->bytes.count;
    put_u32(draft, kind);
    put_u32(draft, 0);
    put_u64(draft, time);
}

static void end(struct draft *draft) {
    uint32_t size = (uint32_t)(draft->bytes.count - draft->record);
    size = draft->is_swapped ? __builtin_bswap32(size) : size;
    memcpy(draft->bytes.items + draft->record + 4, &size, 4);
}

static void put_load(struct draft *draft, uint64_t time, uint64_t address, const char *name,
                     const char *code, uint64_t number) {
    begin(draft, 0, time);
    put_u32(draft, 100);
    put_u32(draft, 100);
    put_u64(draft, address);
    put_u64(draft, address);
    put_u64(draft, strlen(code));
    put_u64(draft, number);
    put_name(draft, name);
    buffer_add(&draft->bytes, text_of(code));
    end(draft);
}

static void put_move(struct draft *draft, uint64_t time, uint64_t from, uint64_t to, uint64_t size,
                     uint64_t number) {
    begin(draft, 1, time);
    put_u32(draft, 100);
    put_u32(draft, 100);
    put_u64(draft, to);
    put_u64(draft, from);
    put_u64(draft, to);
    put_u64(draft, size);
    put_u64(draft, number);
    end(draft);
}

static void put_line(struct draft *draft, uint64_t address, uint32_t line, const char *file) {
    put_u64(draft, address);
    put_u32(draft, line);
    put_u32(draft, 0);
    put_name(draft, file);
}

/* ---- reading it ---- */

struct read {
    struct jitdump dump;
    struct objects *objects;
    uint32_t id;
    struct error error;
    bool is_fine;
};

static struct read read_draft(struct draft *draft) {
    struct read read = {0};
    struct object_identity identity = {.kind = OBJECT_MADE, .path = TEXT("jit-100.dump")};
    read.is_fine = jitdump_read(&read.dump, &draft->bytes, EM_X86_64, &budget_defaults,
                                "jit-100.dump", &read.error);
    read.objects = objects_new(&(struct objects_options){0});
    read.id = objects_add(read.objects, &identity);
    objects_set_made(read.objects, read.id, made_share(read.dump.made));
    return read;
}

static void read_release(struct read *read) {
    objects_free(read->objects);
    jitdump_release(&read->dump);
}

static void assert_text(struct text is, const char *expected) {
    assert_int_equal(is.length, strlen(expected));
    assert_memory_equal(is.data, expected, is.length);
}

static void assert_line(struct read *read, uint64_t address, const char *name, const char *file,
                        uint32_t line) {
    struct inline_chain chain = {0};
    assert_true(objects_inlines(read->objects, read->id, address, true, &chain));
    assert_int_equal(chain.count, 1);
    assert_text(chain.items[0].name, name);
    assert_text(chain.items[0].file, file);
    assert_int_equal(chain.items[0].line, line);
    vector_release(&chain);
}

static void loads_and_moves(bool is_swapped) {
    struct draft draft = draft_new(is_swapped);
    put_load(&draft, 5, 0x1000, "first", "abcdefghij", 1);
    begin(&draft, 99, 6); /* of a kind that nobody knows, and of an odd size */
    put_name(&draft, "xx");
    end(&draft);
    put_load(&draft, 7, 0x1000, "second", "0123456789abcdef", 2);
    put_move(&draft, 8, 0x1000, 0x3000, 16, 2);
    put_move(&draft, 9, 0x1000, 0x4000, 16, 77); /* of what was never loaded */
    struct read read = read_draft(&draft);
    const struct jitdump_change *changes = read.dump.changes.items;
    struct symbol symbol;
    uint32_t machine;
    assert_true(read.is_fine);
    assert_int_equal(read.dump.changes.count, 5);
    assert_true(changes[0].time == 5 && changes[0].start == 0x1000 && changes[0].size == 10);
    assert_true(changes[1].time == 7 && changes[1].place != changes[0].place);
    assert_true(changes[2].is_gone && changes[2].start == 0x1000 && changes[2].size == 16);
    assert_true(changes[3].start == 0x3000 && changes[3].place == changes[1].place);
    assert_true(changes[4].is_gone && changes[4].time == 9);
    assert_true(objects_symbol(read.objects, read.id, changes[0].place + 9, &symbol));
    assert_text(symbol.name, "first");
    assert_true(objects_symbol(read.objects, read.id, changes[1].place, &symbol));
    assert_text(symbol.name, "second");
    assert_text(
        objects_code(read.objects, read.id, changes[1].place + 10, changes[1].place + 12, &machine),
        "ab");
    assert_int_equal(machine, EM_X86_64);
    read_release(&read);
}

static void plain(void **state) {
    loads_and_moves(false);
}

static void swapped(void **state) {
    loads_and_moves(true);
}

/* Lines belong to the next load, if it is at their address; V8's are 64 bytes on, and may have no file. */
static void lines(void **state) {
    struct draft draft = draft_new(false);
    begin(&draft, 2, 1);
    put_u64(&draft, 0x1000);
    put_u64(&draft, 3);
    put_line(&draft, 0x1004, 12, "a.jl");
    put_line(&draft, 0x1000, 11, "\xff"); /* the file before; and not in order */
    put_line(&draft, 0x1008, 13, "b.jl");
    end(&draft);
    put_load(&draft, 2, 0x1000, "julia_f", "0123456789", 1);
    put_load(&draft, 3, 0x1000, "julia_g", "0123456789", 2);
    begin(&draft, 2, 4);
    put_u64(&draft, 0x2000);
    put_u64(&draft, 2);
    put_line(&draft, 0x2040, 2, "/a/f.js");
    put_line(&draft, 0x2044, 3, "\xe5#\x01");
    end(&draft);
    put_load(&draft, 5, 0x2000, "JS:*f /a/f.js:1:10", "0123456789", 3);
    struct read read = read_draft(&draft);
    const struct jitdump_change *changes = read.dump.changes.items;
    assert_true(read.is_fine && read.dump.changes.count == 3);
    assert_line(&read, changes[0].place + 3, "julia_f", "a.jl", 11);
    assert_line(&read, changes[0].place + 7, "julia_f", "a.jl", 12);
    assert_line(&read, changes[0].place + 9, "julia_f", "b.jl", 13);
    assert_line(&read, changes[1].place, "julia_g", "", 0);
    assert_line(&read, changes[2].place, "JS:*f /a/f.js:1:10", "/a/f.js", 2);
    assert_line(&read, changes[2].place + 4, "JS:*f /a/f.js:1:10", "/a/f.js", 3);
    read_release(&read);
}

static void names(void **state) {
    struct made_name name = made_name_read(TEXT("JS:~Module._load node:internal/loader:1003:24"));
    assert_text(name.language, "javascript");
    assert_text(name.file, "node:internal/loader");
    assert_int_equal(name.line, 1003);
    name = made_name_read(TEXT("py::C.f.<locals>.<lambda>:/a/b.py"));
    assert_text(name.language, "python");
    assert_text(name.file, "/a/b.py");
    name = made_name_read(TEXT("lists:map/2-CodeInfoPrologue"));
    assert_text(name.language, "erlang");
    assert_text(name.name, "lists:map/2");
    name = made_name_read(TEXT("Builtin:JSEntry"));
    assert_text(name.language, "");
    assert_text(name.name, "Builtin:JSEntry");
    assert_text(made_name_read(TEXT("")).language, "");
}

/* ---- damage ---- */

/* However it is cut, what was written whole is read; and nothing behind the end counts. */
static void cut(void **state) {
    struct draft whole = draft_new(false);
    put_load(&whole, 5, 0x1000, "first", "abcdefghij", 1);
    size_t first = whole.bytes.count;
    put_load(&whole, 6, 0x2000, "second", "abcdefghij", 2);
    size_t second = whole.bytes.count;
    begin(&whole, 3, 7);
    end(&whole);
    put_load(&whole, 8, 0x3000, "third", "abcdefghij", 3);
    for (size_t size = 0; size <= whole.bytes.count; size++) {
        struct draft part = {0};
        buffer_add(&part.bytes, text_upto(buffer_text(&whole.bytes), size));
        struct read read = read_draft(&part);
        assert_int_equal(read.is_fine, size >= 40);
        assert_int_equal(read.dump.changes.count, size >= second ? 2 : size >= first ? 1 : 0);
        read_release(&read);
    }
    buffer_release(&whole.bytes);
}

static void assert_damaged(struct draft *draft, uint64_t offset, size_t changes) {
    struct read read = read_draft(draft);
    assert_false(read.is_fine);
    assert_int_equal(read.error.offset, offset);
    assert_int_equal(read.dump.changes.count, changes);
    read_release(&read);
}

static void damaged(void **state) {
    struct draft draft = draft_new(false);
    put_load(&draft, 5, 0x1000, "first", "abcdefghij", 1);
    uint64_t at = draft.bytes.count;
    begin(&draft, 0, 6); /* its size stays 0 */
    assert_damaged(&draft, at, 1);

    draft = draft_new(false);
    begin(&draft, 1, 6);
    put_u64(&draft, 1);
    end(&draft);
    assert_damaged(&draft, 40, 0);

    draft = draft_new(false); /* more lines than there are */
    begin(&draft, 2, 1);
    put_u64(&draft, 0x1000);
    put_u64(&draft, UINT64_MAX);
    put_line(&draft, 0x1004, 12, "a.jl");
    end(&draft);
    assert_damaged(&draft, 40, 0);

    draft = draft_new(false); /* rules that are longer than their record */
    begin(&draft, 4, 1);
    put_u64(&draft, 1 << 20);
    put_u64(&draft, 20);
    put_u64(&draft, 1 << 20);
    end(&draft);
    assert_damaged(&draft, 40, 0);

    draft = draft_new(false); /* code around the end of memory */
    put_load(&draft, 5, UINT64_MAX - 3, "first", "abcdefghij", 1);
    assert_damaged(&draft, 40, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain), cmocka_unit_test(swapped), cmocka_unit_test(lines),
        cmocka_unit_test(names), cmocka_unit_test(cut),     cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
