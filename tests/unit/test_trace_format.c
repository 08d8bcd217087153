/* Formats of tracepoints: hostile ones keep inside the payload and their limits. What perf prints of many others is in script/formats.txt. */
#include "view/trace_format.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static const char head[] = "name: x\nID: 7\nformat:\n"
                           "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
                           "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
                           "\tfield:char comm[8];\toffset:12;\tsize:8;\tsigned:0;\n"
                           "\tfield:__data_loc u32[] list;\toffset:20;\tsize:4;\tsigned:0;\n"
                           "\tfield:u64 beyond[1000];\toffset:4000000000;\tsize:8000;\tsigned:0;\n"
                           "\tfield:__data_loc char[] far;\toffset:24;\tsize:4;\tsigned:0;\n"
                           "\tfield:__data_loc cpumask_t cpus;\toffset:28;\tsize:4;\tsigned:0;\n"
                           "\nprint fmt: ";

/* a is -5, comm "bash", list {10, 20}; far begins outside; cpus are 0 and 4 to 7. */
static const uint8_t record_bytes[48] = {
    [8] = 0xfb, 0xff, 0xff, 0xff, 'b', 'a', 's', 'h', [20] = 32, 0,  8, 0, 0xff, 0xff, 0xff,
    0xff,       40,   0,    8,    0,   10,  0,   0,   0,         20, 0, 0, 0,    0xf1};

struct printed {
    char text[1 << 16];
    bool whole;
    size_t limit;
};

/* The payload stands in memory of just its size, so that AddressSanitizer sees what goes beyond. */
static struct printed print_of(const char *format_text, bool compat, size_t size) {
    static struct printed printed;
    struct trace_setting setting = {.quirks = compat ? quirks_perf : quirks_none, .long_size = 8};
    struct buffer text = {0}, out = {0};
    buffer_add(&text, text_of(head));
    buffer_add(&text, text_of(format_text));
    buffer_add_char(&text, '\n');
    struct trace_format *format = trace_format_new(buffer_text(&text), &setting);
    assert_non_null(format);
    char *payload = memory_copy(record_bytes, sizeof record_bytes);
    payload = memory_resize(payload, size ? size : 1, 1);
    struct trace_record record = {.format = format, .payload = {payload, size}, .buffer = &out};
    printed.whole = trace_print(&record);
    printed.limit = record.limit;
    assert_true(out.count < sizeof printed.text && out.count <= record.limit);
    if (out.count)
        memcpy(printed.text, out.items, out.count);
    printed.text[out.count] = 0;
    trace_format_free(format);
    buffer_release(&text);
    buffer_release(&out);
    free(payload);
    return printed;
}

static void check(const char *format, const char *expected) {
    struct printed printed = print_of(format, false, sizeof record_bytes);
    assert_string_equal(printed.text, expected);
    assert_true(printed.whole);
}

/* What perf 6.1 cannot parse. */
static void test_more_than_perf(void **state) {
    check("\"%d\", sizeof(int)", "4");
    check("\"%d %d\", sizeof(unsigned long), sizeof(REC->a)", "8 4");
    check("\"%s\", __get_cpumask(cpus)", "0,4-7");
    check("\"%d\", (REC)->a", "-5");
    check("\"%s\", __print_array(__get_dynamic_array(list), __get_dynamic_array_len(list) / 4, 4)",
          "10 20");
    struct printed printed = print_of("\"%d\", sizeof(int)", true, sizeof record_bytes);
    assert_true(text_starts(text_of(printed.text), TEXT("[FAILED TO PARSE] a=-5 comm=bash list=")));
    assert_true(printed.whole);
}

/* Arrays end where the payload does, and what begins behind it is nothing. */
static void test_beyond_the_payload(void **state) {
    check("\"%s\", __print_hex_str(REC->comm, 2000000)",
          "62617368000000002000080"
          "0ffffffff280008000a00000014000000f100000000000000");
    check("\"%s|\", __print_hex(REC->beyond, 100000000)", "|");
    check("\"%s|\", __print_array(__get_dynamic_array(list), 100000000, 8)", "85899345930 241|");
    check("\"%s|\", __print_array(__get_dynamic_array(far), 100000000, 4)", "|");
    check("\"%d\", REC->comm[3000000000]", "0");
    check("\"%d\", REC->comm[0 - 1]", "[FAILED TO PARSE] a=-5 comm=bash list=ARRAY[0a, 00, 00, 00, "
                                      "14, 00, 00, 00] beyond=ARRAY[] far= cpus=524328");
    check("\"%d\", REC->beyond[3]", "0");
    check("\"%d\", ((u8 *)__get_dynamic_array(far))[0xffffffffffffffff]", "0");
    check("\"%s|%s|%s\", __get_str(far), REC->beyond, __get_str(nothing)", "||");
    check("\"%pI4 %pM %pU\", REC->beyond, REC->beyond, REC->beyond",
          "INVALIDIPv4 INVALIDMAC INVALIDUUID");
    check("\"%*ph|%pISpc\", 100, __get_dynamic_array(far), __get_dynamic_array(far)", "|");
}

/* Every size of the payload, for formats that read all kinds of fields. */
static void test_short_payloads(void **state) {
    static const char *const formats[] = {
        "\"%d %s %s\", REC->a, REC->comm, __get_str(far)",
        "\"%s %s\", __print_hex(REC->comm, 8), __print_array(__get_dynamic_array(list), 2, 4)",
        "\"%s %s\", __get_cpumask(cpus), __get_bitmask(cpus)",
        "\"%pM %pISpc %*ph\", REC->comm, __get_dynamic_array(list), 8, __get_dynamic_array(list)",
        "\"%d\", unknown()"};
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        for (size_t size = 0; size <= sizeof record_bytes; size++)
            for (int compat = 0; compat < 2; compat++)
                assert_true(print_of(formats[i], compat, size).whole);
}

/* What has no end is cut. */
static void test_limits(void **state) {
    static const char *const formats[] = {
        "\"%*s\", 100000000, \"x\"",  "\"%100000000s\", \"x\"",      "\"%-*s\", 100000000, \"x\"",
        "\"%*d\", 100000000, REC->a", "\"%.*d\", 100000000, REC->a", "\"%100000000d\", REC->a",
        "\"%2147483647d\", REC->a"};
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        assert_false(print_of(formats[i], i % 2, sizeof record_bytes).whole);
}

/* A use after free in libtraceevent 1.7.1 */
static void test_sizeof_of_nothing(void **state) {
    for (int compat = 0; compat < 2; compat++)
        assert_true(text_starts(text_of(print_of("\"%pS %x\", sizeof(int), sizeof(prev_pid)",
                                                 compat, sizeof record_bytes)
                                            .text),
                                TEXT("[FAILED TO PARSE] a=-5")));
}

static void test_divisions(void **state) {
    check("\"%d %d %d\", REC->a / 0, REC->a % 0, 1 / REC->common_pid", "0 0 0");
    check("\"%s\", __print_symbolic(REC->a / 0, { 0, \"none\" })", "none");
}

/* Neither parser nor evaluator goes deeper than it may: brackets, signs, operators that lean to the left, conditions. */
static void test_depth(void **state) {
    static const char *const parts[][2] = {{"(", ")"},       {"-", ""},
                                           {"1 + ", ""},     {"1 ? ", " : 2"},
                                           {"REC->a[", "]"}, {"__builtin_expect(", ", 1)"},
                                           {"(u8)", ""},     {"1 * (", ")"}};
    enum { DEEP = 50000 };
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        struct buffer deep = {0};
        buffer_add(&deep, TEXT("\"%d\", "));
        for (int n = 0; n < DEEP; n++)
            buffer_add(&deep, text_of(parts[i][0]));
        buffer_add_char(&deep, '1');
        for (int n = 0; n < DEEP; n++)
            buffer_add(&deep, text_of(parts[i][1]));
        buffer_add_char(&deep, 0);
        print_of(deep.items, false, sizeof record_bytes);
        buffer_release(&deep);
    }
}

/* Heads that are none: no format, or a failed one that has the fields before the fault. */
static void test_torn(void **state) {
    struct trace_setting setting = {.long_size = 8};
    struct text whole = TEXT("name: x\nID: 7\nformat:\n\tfield:int a;\toffset:8;\tsize:4;\n\n"
                             "\tfield:int b;\toffset:12;\tsize:4;\n\nprint fmt: \"%d\", REC->b\n");
    for (size_t length = 0; length < whole.length; length++) {
        struct trace_format *format = trace_format_new(text_upto(whole, length), &setting);
        assert_true(!format == (length < 13));
        if (format && length < whole.length - strlen("REC->b\n"))
            assert_true(format->failed);
        trace_format_free(format);
    }
    struct trace_format *format = trace_format_new(whole, &setting);
    assert_true(format && !format->failed && format->id == 7);
    trace_format_free(format);
}

/* Names that are looked for in long lists are work that grows with the square of the format. */
static void test_budget(void **state) {
    struct trace_setting setting = {.long_size = 8};
    enum { MANY = 3000 };
    struct buffer text = {0};
    buffer_add(&text, TEXT("name: x\nID: 7\nformat:\n\n"));
    for (int i = 0; i < MANY; i++)
        buffer_printf(&text, "\tfield:int f%d;\toffset:8;\tsize:4;\n", i);
    buffer_add(&text, TEXT("\nprint fmt: \"x\""));
    struct trace_format *format = trace_format_new(buffer_text(&text), &setting);
    assert_false(format->failed);
    trace_format_free(format);
    for (int i = 0; i < MANY; i++)
        buffer_add(&text, TEXT(", REC->nothing"));
    format = trace_format_new(buffer_text(&text), &setting);
    assert_true(format->failed);
    trace_format_free(format);
    buffer_release(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_than_perf),
        cmocka_unit_test(test_beyond_the_payload),
        cmocka_unit_test(test_short_payloads),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_sizeof_of_nothing),
        cmocka_unit_test(test_divisions),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
