#include "folding.h"

static uint32_t child(struct flame *flame, uint32_t parent, struct text name) {
    struct label label = {.name = strings_add(flame->strings, name)};
    return flame_child(flame, parent, &label);
}

static struct flame *finished(struct flame *flame) {
    struct error error;
    assert_true(flame_finish(flame, &error));
    return flame;
}

static void expect(struct flame *flame, const char *lines, const char *stacks) {
    finished(flame);
    char *got = folded_flame(flame, false);
    assert_string_equal(got, lines);
    free(got);
    got = folded_flame(flame, true);
    assert_string_equal(got, stacks);
    free(got);
    flame_free(flame);
}

static void stack(struct flame *flame, const char *folded, uint64_t weight) {
    uint32_t node = 0;
    struct text rest = text_of(folded);
    for (;;) {
        size_t end = text_find(rest, ';');
        node = child(flame, node, end == SIZE_MAX ? rest : text_upto(rest, end));
        if (end == SIZE_MAX)
            break;
        rest = text_from(rest, end + 1);
    }
    flame->nodes.items[node].self += weight;
    flame->nodes.items[node].counted = 1;
}

static void test_order(void **state) {
    struct flame *flame = flame_new();
    stack(flame, "foo;x", 1);
    stack(flame, "foo!;x", 2);
    stack(flame, "foo", 12);
    stack(flame, "foo 1;y", 3);
    stack(flame, "foo 1", 4);
    stack(flame, "foo:", 5);
    stack(flame, "foo<", 6);
    expect(flame, "foo 1 4\nfoo 12\nfoo 1;y 3\nfoo!;x 2\nfoo: 5\nfoo;x 1\nfoo< 6\n",
           "foo 12\nfoo 1 4\nfoo 1;y 3\nfoo!;x 2\nfoo: 5\nfoo;x 1\nfoo< 6\n");
}

/* Whatever the names, the lines come sorted. */
static void test_random_order(void **state) {
    static const char alphabet[] = " !0129:<a\t\xff";
    uint64_t random = 88172645463325252ull;
    for (int round = 0; round < 300; round++) {
        struct flame *flame = flame_new();
        for (int i = 0; i < 30; i++) {
            uint32_t node = 0;
            for (uint64_t depth = random % 3 + 1; depth; depth--) {
                char name[4];
                size_t length = 0;
                for (; length < 3; length++) {
                    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                    if (length && random % 3 == 0)
                        break;
                    name[length] = alphabet[random % (sizeof alphabet - 1)];
                }
                node = child(flame, node, (struct text){name, length});
            }
            flame->nodes.items[node].self += random % 30 + 1;
        }
        finished(flame);
        char *text = folded_flame(flame, false), *line = text, *last = NULL;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            if (last)
                assert_true(text_compare(text_of(last), text_of(line)) < 0);
            last = line;
        }
        free(text);
        flame_free(flame);
    }
}

static void test_line_breakers(void **state) {
    struct flame *flame = flame_new();
    uint32_t node = child(flame, 0, TEXT("a\nb;c"));
    flame->nodes.items[node].self = 1;
    expect(flame, "a b:c 1\n", "a b:c 1\n");
}

static void test_zero(void **state) {
    struct flame *flame = flame_new();
    stack(flame, "a;b", 0);
    expect(flame, "", "a;b 0\n");
}

static void test_diff(void **state) {
    struct flame *flame = flame_new();
    uint32_t node = child(flame, 0, TEXT("a"));
    flame->nodes.items[node].self = 1;
    flame->nodes.items[node].self_before = 20;
    flame->is_diff = true;
    expect(flame, "a 20 1\n", "a 20 1\n");
}

static void test_largest_count(void **state) {
    struct flame *flame = flame_new();
    stack(flame, "a", UINT64_MAX);
    expect(flame, "a 18446744073709551615\n", "a 18446744073709551615\n");
}

/* No recursion: as deep as it likes, with only the leaf's line to write. */
static void test_deep(void **state) {
    enum { DEPTH = 100000 };
    struct flame *flame = flame_new();
    uint32_t node = 0;
    for (int i = 0; i < DEPTH; i++)
        node = child(flame, node, TEXT("f"));
    flame->nodes.items[node].self = 7;
    finished(flame);
    char *got = folded_flame(flame, false);
    assert_int_equal(strlen(got), 2 * DEPTH + 2);
    assert_string_equal(got + 2 * DEPTH - 3, "f;f 7\n" + 1);
    free(got);
    flame_free(flame);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),         cmocka_unit_test(test_random_order),
        cmocka_unit_test(test_line_breakers), cmocka_unit_test(test_zero),
        cmocka_unit_test(test_diff),          cmocka_unit_test(test_largest_count),
        cmocka_unit_test(test_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
