/* Tests of how the running kernel's list of symbols is read. */
#include "object/internal.h"

#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* The running kernel's list, read in pieces, gives the table that the text as a whole gives. */
static void gives_the_table_of_the_text(void **state) {
    static const struct objects_options options;
    struct buffer text = {0}, marks = {0};
    struct symbols whole, pieces;
    uint64_t address;
    for (int i = 0; i < 9000; i++)
        buffer_printf(&text, "%016x %c %s_%d%s\n", 0x1000 + 16 * (i / 3), "TtWdr"[i % 5],
                      i % 7 ? "function" : "__pi", i, i > 8000 ? "\t[module]" : "");
    buffer_printf(&text, "0000000000000ff0 T _text\n%016x t last", 0x90000);
    char path[] = "/tmp/wick-test-kallsyms-XXXXXX";
    int file = mkstemp(path);
    assert_int_equal(write(file, text.items, text.count), text.count);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    symbols_init(&whole, &options);
    symbols_init(&pieces, &options);
    kallsyms_load(&whole, buffer_text(&text));
    assert_true(kallsyms_load_running(&pieces, file, TEXT("function_1"), &marks));
    assert_int_equal(pieces.entries.count, whole.entries.count);
    for (size_t i = 0; i < whole.entries.count; i++) {
        const struct entry *a = &whole.entries.items[i], *b = &pieces.entries.items[i];
        assert_true(a->start == b->start && a->end == b->end && a->flags == b->flags);
        assert_true(text_equal(symbols_raw_name(&whole, a), symbols_raw_name(&pieces, b)));
        assert_true(text_equal(kallsyms_module(&whole, a), kallsyms_module(&pieces, b)));
    }
    assert_true(kallsyms_find(buffer_text(&marks), TEXT("_text"), &address) && address == 0xff0);
    assert_true(kallsyms_find(buffer_text(&marks), TEXT("function_1"), &address));
    symbols_release(&whole);
    symbols_release(&pieces);
    buffer_release(&text);
    buffer_release(&marks);
    close(file);
    unlink(path);
}

/* To those who may not see addresses, all of them are zero. */
static void hides_its_addresses(void **state) {
    static const struct objects_options options;
    struct buffer marks = {0};
    struct symbols symbols;
    char path[] = "/tmp/wick-test-kallsyms-XXXXXX";
    int file = mkstemp(path);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(write(file, "0000000000000000 T _text\n", 25), 25);
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    symbols_init(&symbols, &options);
    assert_false(kallsyms_load_running(&symbols, file, TEXT("_text"), &marks));
    assert_int_equal(symbols.entries.count, 0);
    symbols_release(&symbols);
    buffer_release(&marks);
    close(file);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_table_of_the_text),
        cmocka_unit_test(hides_its_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
