/* Code that a process made: names, lines, inlined functions and unwinding rules by place; what stays when memory is mapped around it. */
#include "object/made.h"
#include "space/space.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RBP = 6, RSP = 7, RIP = 16 };

static struct objects *objects_with(struct made *made, uint32_t *id) {
    struct objects *objects = objects_new(&(struct objects_options){0});
    struct object_identity identity = {.kind = OBJECT_MADE, .path = TEXT("[made]"), .pid = 7};
    *id = objects_add(objects, &identity);
    objects_set_made(objects, *id, made);
    return objects;
}

static void assert_text(struct text is, const char *expected) {
    assert_int_equal(is.length, strlen(expected));
    assert_memory_equal(is.data, expected, is.length);
}

static void names_and_lines(void **state) {
    struct made *made = made_new(EM_X86_64);
    struct made_frame outer = {.file = TEXT("a.js"), .line = 3};
    struct made_frame both[] = {{.file = TEXT("a.js"), .line = 4},
                                {.name = TEXT("inner"), .file = TEXT("b.js"), .line = 9}};
    uint64_t first = made_add(
        made, &(struct made_piece){.name = TEXT("f"), .language = TEXT("javascript"), .size = 100});
    made_add_line(made, 10, &outer, 1);
    made_add_line(made, 20, both, 2);
    made_add_line(made, 15, &outer, 1); /* too late */
    uint64_t second = made_add(
        made,
        &(struct made_piece){
            .name = TEXT("g"), .size = 50, .file = TEXT("g.js"), .line = 1, .code = TEXT("")});
    struct symbol symbol;
    struct inline_chain chain = {0};
    uint32_t id, machine;
    struct objects *objects = objects_with(made, &id);
    assert_int_equal(made_count(made), 2);

    assert_true(objects_symbol(objects, id, first + 99, &symbol));
    assert_text(symbol.name, "f");
    assert_text(symbol.language, "javascript");
    assert_true(symbol.start == first && symbol.end == first + 100);
    assert_false(objects_symbol(objects, id, first + 100, &symbol));
    assert_false(objects_symbol(objects, id, 0, &symbol));
    assert_true(objects_symbol(objects, id, second, &symbol));
    assert_text(symbol.name, "g");
    assert_false(objects_symbol(objects, id, second + 50, &symbol));

    assert_true(objects_inlines(objects, id, first + 19, true, &chain));
    assert_int_equal(chain.count, 1);
    assert_text(chain.items[0].name, "f");
    assert_int_equal(chain.items[0].line, 3);
    assert_true(objects_inlines(objects, id, first + 20, true, &chain));
    assert_int_equal(chain.count, 2);
    assert_text(chain.items[0].name, "f");
    assert_text(chain.items[1].name, "inner");
    assert_text(chain.items[1].file, "b.js");
    assert_int_equal(chain.items[1].line, 9);
    assert_true(objects_inlines(objects, id, second, true, &chain));
    assert_int_equal(chain.count, 1);
    assert_text(chain.items[0].file, "g.js");
    assert_false(objects_inlines(objects, id, second + 50, true, &chain));
    assert_int_equal(objects_code(objects, id, second, second + 4, &machine).length, 0);
    vector_release(&chain);
    objects_free(objects);
}

static void rows(void **state) {
    struct made *made = made_new(EM_X86_64);
    struct made_row entered = {
        .cfa_register = RSP, .cfa_offset = 8, .rule_count = 1, .rules = {{RIP, CFI_AT_CFA, 0, -8}}};
    struct made_row framed = {.cfa_register = RBP,
                              .cfa_offset = 16,
                              .rule_count = 2,
                              .rules = {{RIP, CFI_AT_CFA, 0, -8}, {RBP, CFI_AT_CFA, 0, -16}}};
    struct made_row last = {.cfa_register = RSP, .cfa_offset = 8, .is_end = true};
    uint64_t place = made_add(made, &(struct made_piece){.name = TEXT("f"), .size = 100});
    made_add_row(made, 0, &entered);
    made_add_row(made, 4, &framed);
    made_add_row(made, 50, NULL);
    made_add_row(made, 60, &last);
    uint32_t id;
    struct objects *objects = objects_with(made, &id);
    const struct cfi_row *row = objects_cfi(objects, id, place + 3);
    assert_non_null(row);
    assert_int_equal(row->cfa_register, RSP);
    assert_true(row->simple && row->kept >> RIP & 1 && row->kept >> RBP & 1);
    row = objects_cfi(objects, id, place + 4);
    assert_int_equal(row->cfa_register, RBP);
    assert_int_equal(row->rule_count, 2);
    assert_ptr_equal(objects_cfi(objects, id, place + 49), row);
    assert_null(objects_cfi(objects, id, place + 50));
    row = objects_cfi(objects, id, place + 99);
    assert_true(row && !(row->kept >> RIP & 1));
    assert_null(objects_cfi(objects, id, place + 100));
    assert_int_equal(objects_machine(objects, id), EM_X86_64);
    objects_free(objects);
}

/* A CIE and an FDE as Python 3.13 writes them: 40 bytes of code, the section 40 bytes behind it. */
static void eh_frame(void **state) {
    static const uint8_t bytes[] = {0x14, 0,    0,  0, 0,    0,    0,    0,  1,    'z',  'R',  0,
                                    1,    0x78, 16, 1, 0x1b, 0x0c, 7,    8,  0x90, 1,    0,    0,
                                    0x18, 0,    0,  0, 0x1c, 0,    0,    0,  0xb8, 0xff, 0xff, 0xff,
                                    40,   0,    0,  0, 0,    0x41, 0x0e, 16, 0x86, 2,    0x43, 0x0d,
                                    6,    0,    0,  0, 0,    0,    0,    0};
    struct made *made = made_new(EM_X86_64);
    made_add(made, &(struct made_piece){.name = TEXT("before"), .size = 3});
    uint64_t place = made_add(
        made, &(struct made_piece){
                  .name = TEXT("f"), .size = 40, .eh_frame = {(const char *)bytes, sizeof bytes}});
    uint32_t id;
    struct objects *objects = objects_with(made, &id);
    const struct cfi_row *row = objects_cfi(objects, id, place);
    assert_non_null(row);
    assert_true(row->cfa_register == RSP && row->cfa_offset == 8);
    row = objects_cfi(objects, id, place + 1);
    assert_true(row && row->cfa_register == RSP && row->cfa_offset == 16);
    row = objects_cfi(objects, id, place + 39);
    assert_true(row && row->cfa_register == RBP && row->cfa_offset == 16);
    assert_null(objects_cfi(objects, id, place + 40));
    objects_free(objects);
}

/* ---- mapping around it ---- */

static bool is_made(void *context, uint32_t object) {
    return object >= 10;
}

static uint32_t object_at(const struct spaces *spaces, uint64_t time, uint64_t address) {
    struct space_cursor cursor = {0};
    struct space_at at;
    spaces_at(spaces, &cursor, 1, 1, &(struct key){.time = time}, &at);
    const struct mapping *mapping = space_find(spaces, at.user, address);
    return mapping ? mapping->object : 0;
}

static void around(void **state) {
    struct spaces *spaces = spaces_new(false);
    struct mapping made = {.start = 0x1800, .end = 0x2800, .object = 10, .executable = true};
    struct mapping other = {.start = 0x2c00, .end = 0x2d00, .object = 2, .executable = true};
    struct mapping anonymous = {.start = 0x2000, .end = 0x4000, .object = 1, .executable = true};
    spaces_mmap(spaces, &(struct key){.time = 1}, 1, 1, &made);
    spaces_mmap(spaces, &(struct key){.time = 1}, 1, 1, &other);
    spaces_mmap_around(spaces, &(struct key){.time = 2}, 1, 1, &anonymous, is_made, NULL);
    spaces_seal(spaces);
    assert_int_equal(object_at(spaces, 1, 0x2c00), 2);
    assert_int_equal(object_at(spaces, 3, 0x1800), 10);
    assert_int_equal(object_at(spaces, 3, 0x27ff), 10);
    assert_int_equal(object_at(spaces, 3, 0x2800), 1);
    assert_int_equal(object_at(spaces, 3, 0x2c00), 1);
    assert_int_equal(object_at(spaces, 3, 0x3fff), 1);
    spaces_free(spaces);
}

/* More pieces than are put again: the memory around them is not mapped anew. */
static void around_many(void **state) {
    struct spaces *spaces = spaces_new(false);
    struct mapping anonymous = {.start = 0x1000, .end = 0x1000000, .object = 1, .executable = true};
    for (uint64_t i = 0; i < 2000; i++) {
        struct mapping made = {.start = 0x1000 + i * 64,
                               .end = 0x1020 + i * 64,
                               .object = 10 + (uint32_t)i,
                               .executable = true};
        spaces_mmap(spaces, &(struct key){.time = 1}, 1, 1, &made);
    }
    spaces_mmap_around(spaces, &(struct key){.time = 2}, 1, 1, &anonymous, is_made, NULL);
    spaces_seal(spaces);
    assert_int_equal(object_at(spaces, 3, 0x1000), 10);
    assert_int_equal(object_at(spaces, 3, 0x1020), 0);
    spaces_free(spaces);
}

/* A process whose code is described needs no perf map for the rest of it; another one does. */
static void no_map_needed(void **state) {
    struct object_identity anonymous = {.kind = OBJECT_PERFMAP, .path = TEXT("//anon")};
    struct notes notes = {0};
    struct symbol symbol;
    uint32_t id;
    struct objects *objects = objects_with(made_new(EM_X86_64), &id);
    for (anonymous.pid = 7; anonymous.pid <= 8; anonymous.pid++)
        assert_false(objects_symbol(objects, objects_add(objects, &anonymous), 0x1000, &symbol));
    objects_notes(objects, &notes);
    assert_int_equal(notes.count, 1);
    assert_string_equal(notes.items[0].kind->name, "perf-maps-missing");
    assert_int_equal(notes.items[0].count, 1);
    notes_release(&notes);
    objects_free(objects);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_lines), cmocka_unit_test(rows),
        cmocka_unit_test(eh_frame),        cmocka_unit_test(around),
        cmocka_unit_test(around_many),     cmocka_unit_test(no_map_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
