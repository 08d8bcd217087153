/* Patterns: which of those that PCRE2 compiles mean the same in JavaScript, and what they find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stacks/pattern.h"

static bool finds(const char *text, const char *name) {
    struct error error;
    bool found = false;
    struct pattern *pattern = pattern_new(text, &error);
    if (!pattern)
        fail_msg("%s: %s", text, error.message);
    struct matcher *matcher = matcher_new();
    assert_true(matcher_find(matcher, pattern, text_of(name), &found, &error));
    matcher_free(matcher);
    pattern_free(pattern);
    return found;
}

static void test_shared_syntax(void **state) {
    static const char *const shared[] = {
        "",
        "a|b|",
        "^a.*b$",
        "(a)(?:b)",
        "a(?=b)(?!c)",
        "(?<=a)(?<!b)c",
        "[a-z]",
        "[^a\\]-]",
        "[-a]",
        "[a-]",
        "[\\d\\w-]",
        "[[(]",
        "a{2}",
        "a{2,}?",
        "a{2,5}",
        "a*?b+?c??",
        "\\bfoo\\B",
        "\\d\\D\\w\\W",
        "\\x41",
        "[\\x41-Z]",
        "\\t\\n\\r\\f",
        "\\^\\$\\\\\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\/",
        "ä{2}",
        "(a|b)*",
        "((a)+)+",
        "[$^|.]",
        "/",
        "a-b",
    };
    for (size_t i = 0; i < COUNT_OF(shared); i++) {
        size_t at;
        const char *foreign = pattern_foreign(text_of(shared[i]), &at);
        if (foreign)
            fail_msg("%s: %s (%zu)", shared[i], foreign, at);
        finds(shared[i], "x");
    }
}

static void expect_foreign(const char *pattern, size_t where) {
    size_t at;
    const char *foreign = pattern_foreign(text_of(pattern), &at);
    if (!foreign || at != where)
        fail_msg("%s: %s at %zu", pattern, foreign ? foreign : "taken", at);
    struct error error = {0};
    assert_null(pattern_new(pattern, &error));
    assert_int_equal(error.kind, ERROR_USAGE);
}

static void test_foreign_syntax(void **state) {
    static const struct {
        const char *pattern;
        size_t at;
    } foreign[] = {
        {"(a)\\1", 3},      {"\\s", 0},     {"[\\S]", 1},     {"\\v", 0},     {"\\h", 0},
        {"\\Qa\\E", 0},     {"\\A", 0},     {"\\z", 0},       {"\\pL", 0},    {"\\R", 0},
        {"\\K", 0},         {"\\G", 0},     {"\\cA", 0},      {"\\x{41}", 0}, {"\\x4", 0},
        {"\\0", 0},         {"\\e", 0},     {"\\-", 0},       {"\\ ", 0},     {"[\\b]", 1},
        {"a++", 2},         {"a*+", 2},     {"a?+", 2},       {"a{2}+", 4},   {"^*", 1},
        {"\\b+", 2},        {"(?=a)*", 5},  {"(?<!a){2}", 6}, {"{", 0},       {"a{,3}", 1},
        {"a{x}", 1},        {"a}", 1},      {"a]", 1},        {"[]a]", 1},    {"[^]a]", 2},
        {"[[:alpha:]]", 1}, {"[a-\\d]", 5}, {"[\\w-z]", 5},   {"(?i)a", 0},   {"(?P<n>a)", 0},
        {"(?<n>a)", 0},     {"(?>a)", 0},   {"(?|a)", 0},     {"(?#a)", 0},   {"(?(?=a)b)", 0},
        {"(?R)?", 0},       {"(*UTF)a", 0}, {"(?'n'a)", 0},   {"a(?-i)b", 1},
    };
    for (size_t i = 0; i < COUNT_OF(foreign); i++)
        expect_foreign(foreign[i].pattern, foreign[i].at);
}

static void test_broken_syntax(void **state) {
    struct error error;
    assert_null(pattern_new("(", &error));
    assert_int_equal(error.kind, ERROR_USAGE);
    assert_non_null(strstr(error.message, "missing closing parenthesis"));
    assert_null(pattern_new("a\xff", &error));
    assert_null(pattern_new("[b-a]", &error));
}

static void test_finding(void **state) {
    assert_true(finds("b", "abc"));
    assert_false(finds("^b", "abc"));
    assert_true(finds("", ""));
    assert_true(finds("^a$", "a_[k]")); /* the mark is no part of the name */
    assert_false(finds("\\[k", "a_[k]"));
    assert_true(finds("^.$", "\n")); /* as with JavaScript's flag s */
    assert_false(finds("a$", "a\n"));
    assert_true(finds("^.$", "ä"));
    assert_true(finds("b$", "\xff"
                            "b")); /* what is no UTF-8 matches nothing, and hides nothing */
    assert_false(finds("\\w", "ä"));
    assert_false(finds("\\d", "٣"));
}

static void test_exact(void **state) {
    struct pattern *pattern = pattern_exact_new("a.c(");
    struct matcher *matcher = matcher_new();
    struct error error;
    bool found;
    assert_true(matcher_find(matcher, pattern, TEXT("abc("), &found, &error) && !found);
    assert_true(matcher_find(matcher, pattern, TEXT("a.c("), &found, &error) && found);
    assert_true(matcher_find(matcher, pattern, TEXT("a.c(_[k]"), &found, &error) && !found);
    assert_true(pattern_is_exact(pattern));
    assert_string_equal(pattern_text(pattern), "a.c(");
    matcher_free(matcher);
    pattern_free(pattern);
}

/* Each limit by a pattern of its own: steps, and what is remembered to go back to. */
static void test_limits(void **state) {
    static const char *const patterns[] = {"(x+x+)+[yz]", "(?:(x|xx)+)+[yz]", "(x?){60}x{60}[yz]"};
    char *name = memory_zero(1, 20001);
    memset(name, 'x', 20000);
    for (size_t i = 0; i < COUNT_OF(patterns); i++) {
        struct error error = {0};
        bool found;
        struct pattern *pattern = pattern_new(patterns[i], &error);
        struct matcher *matcher = matcher_new();
        assert_non_null(pattern);
        assert_false(matcher_find(matcher, pattern, text_of(name), &found, &error));
        assert_non_null(strstr(error.message, "limit"));
        matcher_free(matcher);
        pattern_free(pattern);
    }
    free(name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_syntax), cmocka_unit_test(test_foreign_syntax),
        cmocka_unit_test(test_broken_syntax), cmocka_unit_test(test_finding),
        cmocka_unit_test(test_exact),         cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
