/* include/wick.h, as others use it: no room's header is included here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../include/wick.h"

static char path[] = "/tmp/wick-test-XXXXXX", output[] = "/tmp/wick-test-XXXXXX";

static int begin(void **state) {
    close(mkstemp(path));
    close(mkstemp(output));
    return 0;
}

static int end(void **state) {
    unlink(path);
    unlink(output);
    return 0;
}

static struct wick *opened(const char *text, const struct wick_options *options) {
    struct wick_error error;
    const char *paths[] = {path};
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    struct wick *wick = wick_open(paths, 1, options, &error);
    if (!wick)
        fail_msg("%s", error.message);
    return wick;
}

static void written_is(const char *expected) {
    char text[4096];
    FILE *file = fopen(output, "r");
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_string_equal(text, expected);
}

/* The order is that of names, not of lines, and each frame stands before what it calls. */
static void test_frames(void **state) {
    static const struct {
        const char *name;
        size_t parent, depth;
        uint64_t self, total;
    } expected[] = {{"", 0, 0, 0, 10},
                    {"a", 0, 1, 1, 6},
                    {"b", 1, 2, 2, 5},
                    {"c", 2, 3, 3, 3},
                    {"z", 0, 1, 4, 4}};
    struct wick *wick = opened("z 4\na;b;c 3\na 1\na;b 2\n", NULL);
    assert_int_equal(wick_frame_count(wick), 5);
    assert_true(uselocale((locale_t)0) == LC_GLOBAL_LOCALE); /* the caller's is left as it was */
    for (size_t i = 0; i < 5; i++) {
        struct wick_frame frame = wick_frame_at(wick, i);
        assert_string_equal(frame.name, expected[i].name);
        assert_int_equal(frame.name_length, strlen(expected[i].name));
        assert_int_equal(frame.parent, expected[i].parent);
        assert_int_equal(frame.depth, expected[i].depth);
        assert_int_equal(frame.self, expected[i].self);
        assert_int_equal(frame.total, expected[i].total);
        assert_string_equal(frame.object, "");
    }
    assert_string_equal(wick_unit(wick), "samples");
    assert_string_equal(wick_frame_at(wick, 5).name, "");
    wick_close(wick);
}

static void test_writing(void **state) {
    struct wick_error error;
    struct wick *wick = opened("b 2\na;x 1\n", NULL);
    assert_true(wick_write_folded(wick, output, &error));
    written_is("a;x 1\nb 2\n");
    assert_true(wick_write_svg(wick, output, &(struct wick_picture){.title = "<x>"}, &error));
    assert_true(wick_write_html(wick, output, NULL, &error));
    assert_false(wick_write_folded(wick, "/no/such/folder/x", &error));
    assert_int_equal(error.kind, WICK_ERROR_INPUT);
    assert_string_equal(error.message, "/no/such/folder/x: No such file or directory");
    assert_false(wick_write_svg(wick, "/no/such/folder/x", NULL, NULL));
    wick_close(wick);
}

static void test_formats(void **state) {
    struct wick_error error;
    struct wick *wick = opened("b 2\na;x 1\n", NULL);
    assert_true(wick_write_format(wick, "callgrind", output, "mine", &error));
    char expected[1000];
    snprintf(
        expected, sizeof expected,
        "# callgrind format\nversion: 1\ncreator: wick %s\ncmd: mine\npositions: line\nevents: "
        "samples\nsummary: 3\n\n"
        "ob=(1) ???\nfl=(1) ???\nfn=(1) (all)\ncob=(1)\ncfi=(1)\ncfn=(2) a\ncalls=1 0\n0 "
        "1\ncob=(1)\ncfi=(1)\ncfn=(3) b\n"
        "calls=2 0\n0 2\n\nob=(1)\nfl=(1)\nfn=(2)\ncob=(1)\ncfi=(1)\ncfn=(4) x\ncalls=1 0\n0 1\n\n"
        "ob=(1)\nfl=(1)\nfn=(3)\n0 2\n\nob=(1)\nfl=(1)\nfn=(4)\n0 1\n\ntotals: 3\n",
        wick_version());
    written_is(expected);
    assert_false(
        wick_write_format(wick, NULL, output, NULL, &error)); /* no format's files end so */
    assert_int_equal(error.kind, WICK_ERROR_USAGE);
    assert_false(wick_write_format(wick, "nonsense", "-", NULL, &error));
    assert_non_null(strstr(error.message, "speedscope, pprof"));
    assert_false(wick_write_format(wick, NULL, "/no/such/folder/x.pprof", NULL, &error));
    assert_int_equal(error.kind, WICK_ERROR_INPUT);
    wick_close(wick);
    wick = opened("", NULL);
    assert_false(wick_write_format(wick, "pprof", output, NULL, &error));
    assert_string_equal(error.message, "there is nothing to export");
    wick_close(wick);
}

static void test_errors(void **state) {
    struct wick_error error;
    const char *missing[] = {"/no/such/file"};
    const char *paths[] = {path};
    assert_null(wick_open(missing, 1, NULL, &error));
    assert_string_equal(error.message, "/no/such/file: No such file or directory");
    assert_null(wick_open(missing, 0, NULL, &error));
    assert_int_equal(error.kind, WICK_ERROR_USAGE);
    assert_null(wick_open(missing, 1, NULL, NULL));
    assert_null(wick_open(paths, 1, &(struct wick_options){.from = "nonsense"}, &error));
    assert_int_equal(error.kind, WICK_ERROR_USAGE);
    wick_close(opened("a 1\n", NULL));
    assert_null(wick_open(paths, 1, &(struct wick_options){.off_cpu = true},
                          &error)); /* folded text has no waits */
    assert_non_null(strstr(error.message, "need a perf.data"));
    wick_close(NULL);
}

/* Two events: each has a value, and samples are one, too. */
static void test_values(void **state) {
    const char text[] = "a 1/1 [000] 1.0: 7 cycles:\n\t10 f (/x)\n\na 1/1 [000] 2.0: 9 "
                        "instructions:\n\t10 f (/x)\n\n";
    struct wick *wick = opened(text, &(struct wick_options){.value = "instructions"});
    assert_int_equal(wick_frame_at(wick, 0).total, 9);
    assert_int_equal(wick_value_count(wick), 3);
    assert_string_equal(wick_value_at(wick, 0).name, "samples");
    assert_string_equal(wick_value_at(wick, 1).name, "cycles");
    assert_string_equal(wick_value_at(wick, 2).unit, "count");
    assert_null(wick_value_at(wick, 3).name);
    wick_close(wick);
    wick = opened(text, &(struct wick_options){.value = "samples"});
    assert_int_equal(wick_frame_at(wick, 0).total, 1);
    wick_close(wick);
    struct wick_error error;
    const char *paths[] = {path};
    assert_null(wick_open(paths, 1, &(struct wick_options){.value = "bytes"}, &error));
    assert_string_equal(error.message, "--value bytes: no such value, only samples/count, "
                                       "cycles/count, instructions/count");
}

static bool refuse(void *user, const char *what, uint64_t done, uint64_t total) {
    ++*(int *)user;
    return false;
}

/* The hook is the profile's own, and saying no ends what is under way, not what comes later. */
static void test_cancelling(void **state) {
    struct wick_error error;
    int told = 0;
    const char *recording[] = {SOURCE_ROOT "/fuzz/seeds/perfdata/killed.data"};
    struct wick_options options = {.threads = 1, .progress = refuse, .progress_user = &told};
    assert_null(wick_open(recording, 1, &options, &error));
    assert_int_equal(error.kind, WICK_ERROR_CANCELLED);
    assert_true(told > 0);
    struct wick *wick = opened("a 1\n", &options); /* too little to tell anything of */
    assert_false(wick_write_svg(wick, output, NULL, &error));
    assert_string_equal(error.message, "cancelled");
    assert_true(wick_write_folded(wick, output, &error));
    written_is("a 1\n");
    wick_close(wick);
}

/* Nothing to draw leaves what was there as it is. */
static void test_nothing(void **state) {
    struct wick_error error;
    struct wick *wick = opened("a 1\n", NULL);
    assert_true(wick_write_folded(wick, output, &error));
    wick_close(wick);
    wick = opened("", NULL);
    assert_int_equal(wick_note_count(wick), 1);
    assert_non_null(strstr(wick_note(wick, 0), "empty"));
    assert_null(wick_note(wick, 1));
    assert_int_equal(wick_frame_count(wick), 1);
    assert_false(wick_write_svg(wick, output, NULL, &error));
    assert_string_equal(error.message, "there are no stacks to draw");
    assert_false(wick_write_html(wick, output, NULL, &error));
    written_is("a 1\n");
    wick_close(wick);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames),  cmocka_unit_test(test_writing),
        cmocka_unit_test(test_formats), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_values),  cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
