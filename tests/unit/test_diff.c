#include "folding.h"

static struct flame *flame_of_text(const char *text) {
    struct import_options import = {0};
    struct error error;
    struct tree *tree = read_text("folded", text_of(text), &import);
    struct naming *naming = naming_of_tree(tree, &(struct naming_options){.is_script_text = true});
    struct flame *flame = flame_of_tree(tree, naming, &(struct flame_options){0}, &error);
    assert_non_null(flame);
    naming_free(naming);
    tree_done(tree);
    return flame;
}

static void expect_diff(const char *before, const char *after, struct diff_options options,
                        const char *expected) {
    struct flame *old = flame_of_text(before), *new = flame_of_text(after);
    struct error error;
    struct flame *both = flame_diff(old, new, &options, &error);
    assert_non_null(both);
    char *got = folded_flame(both, false);
    assert_string_equal(got, expected);
    free(got);
    flame_free(both);
    flame_free(old);
    flame_free(new);
}

static void test_flames(void **state) {
    expect_diff("a;b 3\na;c 2\n", "a;b 5\na;d 1\n", (struct diff_options){0},
                "a;b 3 5\na;c 2 0\na;d 0 1\n");
}

static void test_normalize(void **state) {
    expect_diff("a;b 10\na;c 30\n", "a;b 5\na;c 15\n", (struct diff_options){.normalize = true},
                "a;b 5 5\na;c 15 15\n");
    expect_diff("# nothing\n", "a 5\n", (struct diff_options){.normalize = true}, "a 0 5\n");
}

/* What differs in its addresses alone is one stack. */
static void test_strip_hex(void **state) {
    expect_diff("a;f 0x12ab 1\na;f 0x34 2\n", "a;f 0xFF 4\n0x 3\n",
                (struct diff_options){.strip_hex = true}, "0x 0 3\na;f 0x... 3 4\n");
}

static void test_totals(void **state) {
    struct flame *old = flame_of_text("a;b 3\n"), *new = flame_of_text("a;c 5\na 1\n");
    struct error error;
    struct flame *both = flame_diff(old, new, &(struct diff_options){0}, &error);
    assert_true(both->is_diff);
    assert_int_equal(both->nodes.items[0].total, 6);
    assert_int_equal(both->nodes.items[0].total_before, 3);
    flame_free(both);
    flame_free(old);
    flame_free(new);
}

static void expect_table_shown(const struct flame *flame) {
    struct error error;
    struct out out;
    struct file file;
    char path[] = "/tmp/wick-test-XXXXXX";
    close(mkstemp(path));
    struct categories *categories = categories_new(NULL, NULL, &error);
    struct report *report = report_of_flame(flame, categories, BY_FUNCTION);
    assert_true(out_open(&out, path, &error));
    report_write(&out, report, &(struct report_options){.format = REPORT_TEXT});
    assert_true(out_commit(&out, &error) && file_open_raw(&file, path, NULL, &error));
    assert_int_equal(text_find(file_text(&file), '\033'), SIZE_MAX);
    assert_int_not_equal(text_search(file_text(&file), TEXT("\\x1b[2Jb in all")), SIZE_MAX);
    file_close(&file);
    unlink(path);
    report_free(report);
    categories_free(categories);
}

/* A picture that is read says itself what it counts. */
static void test_units_are_shown(void **state) {
    struct flame *old = flame_of_text("a 3\n"), *new = flame_of_text("a 5\n");
    struct error error;
    new->unit = strings_add(new->strings, TEXT("\033[2Jb"));
    expect_table_shown(new);
    struct flame *both = flame_diff(old, new, &(struct diff_options){0}, &error);
    both->unit = strings_add(both->strings, TEXT("\033[2Jb"));
    expect_table_shown(both);
    flame_free(both);
    flame_free(old);
    flame_free(new);
}

static char *inferno(const char *before, const char *after, struct diff_options options,
                     struct notes *notes) {
    struct written written;
    written_begin(&written);
    diff_folded_inferno(&written.out, text_of(before), text_of(after), &options, notes);
    return written_end(&written, NULL);
}

static void test_inferno(void **state) {
    struct notes notes = {0};
    char *got =
        inferno("a;b 3.9\nbad\na;b 0x1 +2\n", "a;b 7.0\n", (struct diff_options){0}, &notes);
    assert_string_equal(got, "a;b 3 7\na;b 0x1 2 0\n");
    assert_int_equal(notes.count, 2);
    free(got);
    notes_release(&notes);
    got = inferno("a 3\nb 7\n", "a 1\nb 4\n", (struct diff_options){.normalize = true}, &notes);
    assert_string_equal(got, "a 1 1\nb 3 4\n"); /* 1.5 and 3.5, truncated */
    free(got);
    notes_release(&notes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flames),    cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_strip_hex), cmocka_unit_test(test_totals),
        cmocka_unit_test(test_inferno),   cmocka_unit_test(test_units_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
