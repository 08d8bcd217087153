/* Tests of how the running kernel's list of symbols is read. */
#include "object/internal.h"

#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static int list_file(struct text text) {
    char path[] = "/tmp/wick-test-kallsyms-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text.data, text.length), text.length);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    unlink(path);
    return file;
}

static struct kernel_list *list_of(struct text text, const char *reference, struct buffer *marks) {
    int file = list_file(text);
    struct kernel_list *list = kernel_list_read_running(file, text_of(reference), marks);
    close(file);
    return list;
}

/* Whether the list has the same symbol for an address as the table; false if it leaves the answer to a table of all. */
static bool agrees(struct kernel_list *list, struct symbols *whole, uint64_t address) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct symbols *part = kernel_list_find(list, address, whole, &lock);
    if (!part)
        return false;
    const struct entry *a = &whole->entries.items[symbols_find(whole, address)],
                       *b = &part->entries.items[symbols_find(part, address)];
    assert_true(a->start == b->start && a->end == b->end && a->flags == b->flags);
    assert_true(text_equal(symbols_raw_name(whole, a), symbols_raw_name(part, b)));
    return true;
}

/* Several names for an address, types that are left out, and blocks that end between them. */
static void add_own_lines(struct buffer *text, int count) {
    for (int i = 0; i < count; i++)
        buffer_printf(text, "%016x %c %s_%d\n", 0x1000 + 16 * (i / 3), "TtWdr"[i % 5],
                      i % 7 ? "function" : "__pi", i);
}

/* Found in blocks, a symbol of the running kernel is the one that a table of all lines has. */
static void gives_the_table_of_the_text(void **state) {
    static const struct objects_options options;
    struct buffer text = {0}, marks = {0}, head = {0};
    struct symbols whole;
    struct text found_marks;
    uint64_t address;
    add_own_lines(&text, 9000);
    for (int i = 0; i < 1000; i++)
        buffer_printf(&text, "%016x t module_%d\t[module]\n", 0x80000 - 16 * i, i);
    buffer_printf(&text, "0000000000000ff0 T _text\n%016x t last", 0x90000);
    symbols_init(&whole, &options);
    kallsyms_load(&whole, buffer_text(&text));
    struct kernel_list *list = list_of(buffer_text(&text), "function_1", &marks);
    assert_true(list && list->blocks.count > 10);
    uint64_t own = 0x1000, last = own + 16 * (9000 / 3 - 1); /* it may end where a module begins */
    for (size_t i = 0; i < whole.entries.count; i++)
        for (uint64_t at = whole.entries.items[i].start; at < whole.entries.items[i].end; at += 5)
            assert_int_equal(agrees(list, &whole, at), at >= own && at < last);
    assert_true(kallsyms_find(buffer_text(&marks), TEXT("_text"), &address) && address == 0xff0);
    assert_true(kallsyms_find(buffer_text(&marks), TEXT("function_1"), &address));

    kernel_list_pack(list, buffer_text(&marks), &head);
    buffer_add(&head, text_upto(list->text, list->own));
    struct kernel_list *cached = kernel_list_unpack(buffer_text(&head), &found_marks);
    assert_true(cached && text_equal(found_marks, buffer_text(&marks)));
    assert_null(kernel_list_unpack(text_upto(buffer_text(&head), head.count - 1), &found_marks));
    cached->cached.data = (const uint8_t *)head.items; /* which owns the blocks */
    assert_true(agrees(cached, &whole, 0x1000 + 16 * 1500 + 3));
    head.items[head.count - 3] ^= 1; /* in the last block and in the first */
    head.items[head.count - cached->own + 9] ^= 1;
    assert_false(agrees(cached, &whole, 0x1001) || agrees(cached, &whole, 0x1000 + 16 * 2997));
    assert_true(agrees(cached, &whole, 0x1000 + 16 * 1500 + 3));
    head.items[head.count - cached->own + 9] ^= 1;
    assert_true(agrees(cached, &whole, 0x1001));
    kernel_list_free(cached);
    kernel_list_free(list);
    symbols_release(&whole);
    buffer_release(&text);
    buffer_release(&marks);
    buffer_release(&head);
}

/* If another symbol is among the kernel's own, only a table of all lines can tell where these end. */
static void leaves_mixed_lists_alone(void **state) {
    struct buffer text = {0}, marks = {0};
    add_own_lines(&text, 9000);
    buffer_printf(&text, "%016x t trampoline\t[__builtin__ftrace]\n", 0x1008);
    struct kernel_list *list = list_of(buffer_text(&text), "", &marks);
    assert_true(list && list->blocks.count == 0 && list->own == 0);
    assert_int_equal(list->text.length, text.count);
    kernel_list_free(list);
    buffer_release(&text);
    buffer_release(&marks);
}

/* To those who may not see addresses, all of them are zero. */
static void hides_its_addresses(void **state) {
    struct buffer text = {0}, marks = {0};
    for (int i = 0; i < 5000; i++)
        buffer_printf(&text, "0000000000000000 T _text\n");
    assert_null(list_of(buffer_text(&text), "_text", &marks));
    buffer_release(&text);
    buffer_release(&marks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_table_of_the_text),
        cmocka_unit_test(leaves_mixed_lists_alone),
        cmocka_unit_test(hides_its_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
