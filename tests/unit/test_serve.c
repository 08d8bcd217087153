/* serve: what is believed of a request, and answers about a flame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "serve/serve.h"

static void targets(void **state) {
    struct target t;
    assert_true(target_parse(&t, TEXT("/abc/nodes?run=a%2Fb+c%25&at=12&empty=")));
    assert_int_equal(t.part_count, 2);
    assert_string_equal(t.parts[1].data, "nodes");
    assert_string_equal(target_get(&t, "run").data, "a/b c%");
    assert_int_equal(target_get(&t, "empty").length, 0);
    assert_non_null(target_get(&t, "empty").data);
    assert_null(target_get(&t, "none").data);
    uint64_t at;
    assert_true(target_number(&t, "at", 0, 12, &at) && at == 12);
    assert_false(target_number(&t, "at", 0, 11, &at));
    assert_true(target_number(&t, "none", 7, 11, &at) && at == 7);
    assert_false(target_number(&t, "run", 0, 11, &at));
    target_release(&t);
    assert_true(target_parse(&t, TEXT("/a%2Fb/")));
    assert_string_equal(t.parts[0].data, "a/b");
    assert_int_equal(t.part_count, 2);
    target_release(&t);
}

static void wrong_targets(void **state) {
    static const char *const wrong[] = {"",           "a",       "*",     "http://x/",  "/a/b/c/d",
                                        "/%",         "/%4",     "/%zz",  "/%00",       "/%0a",
                                        "/a b",       "/a\x7f",  "/\xc3", "/a?b",       "/a?=c",
                                        "/a?b=1&b=2", "/a?b=%1", "/\"",   "/a?b=1&&c=2"};
    struct target t;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        if (target_parse(&t, text_of(wrong[i])))
            fail_msg("%s was taken", wrong[i]);
        target_release(&t);
    }
    struct buffer long_one = {0};
    buffer_add_char(&long_one, '/');
    while (long_one.count <= TARGET_MOST)
        buffer_add_char(&long_one, 'a');
    assert_false(target_parse(&t, buffer_text(&long_one)));
    target_release(&t);
    long_one.count = 0;
    buffer_add(&long_one, TEXT("/?"));
    for (int i = 0; i <= TARGET_VALUES; i++)
        buffer_printf(&long_one, "k%d=1&", i);
    assert_false(target_parse(&t, buffer_text(&long_one)));
    target_release(&t);
    buffer_release(&long_one);
}

static void hosts(void **state) {
    static const char *const good[] = {"localhost",       "LocalHost:1", "127.0.0.1",
                                       "127.0.0.1:65535", "[::1]",       "[::1]:80"},
                             *const bad[] = {"",
                                             "localhost.",
                                             "localhost.evil.example",
                                             "127.0.0.1.evil.example",
                                             "127.0.0.1:",
                                             "127.0.0.1:0",
                                             "127.0.0.1:65536",
                                             "127.0.0.1:1a",
                                             "127.0.0.2",
                                             "evil.example",
                                             "::1",
                                             "[::1]x",
                                             "0.0.0.0",
                                             "localhost:80:80"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(host_is_loopback(text_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (host_is_loopback(text_of(bad[i])))
            fail_msg("%s was taken", bad[i]);
    assert_false(host_is_loopback((struct text){NULL, 0}));
}

static void others(void **state) {
    assert_true(origin_is_whole(TEXT("https://www.speedscope.app")));
    assert_true(origin_is_whole(TEXT("http://localhost:8000")));
    assert_false(origin_is_whole(TEXT("https://www.speedscope.app/")));
    assert_false(origin_is_whole(TEXT("*")));
    assert_false(origin_is_whole(TEXT("null")));
    assert_false(origin_is_whole(TEXT("https://")));
    assert_false(origin_is_whole(TEXT("https://a\r\nX: y")));
    assert_true(header_can_be_trusted(TEXT("X-Remote-User")));
    assert_false(header_can_be_trusted(TEXT("Accept")));
    assert_false(header_can_be_trusted(TEXT("sec-fetch-site")));
    assert_false(header_can_be_trusted(TEXT("a b")));
    assert_true(token_equal(TEXT("abc"), TEXT("abc")));
    assert_false(token_equal(TEXT("abc"), TEXT("abcabc")));
    assert_false(token_equal(TEXT("abcabc"), TEXT("abc")));
    assert_false(token_equal(TEXT(""), TEXT("")));
    assert_false(token_equal(TEXT("abd"), TEXT("abc")));
}

/* all 10: a 7 (b 4 (c 1), d 2), e 3 */
static struct flame *make_flame(void) {
    static const struct {
        const char *names[4];
        uint64_t self;
    } stacks[] = {{{"a"}, 1}, {{"a", "b"}, 3}, {{"a", "b", "c"}, 1}, {{"a", "d"}, 2}, {{"e"}, 3}};
    struct flame *flame = flame_new();
    for (size_t i = 0; i < COUNT_OF(stacks); i++) {
        uint32_t at = 0;
        for (size_t k = 0; k < 4 && stacks[i].names[k]; k++)
            at = flame_child(
                flame, at,
                &(struct label){strings_add(flame->strings, text_of(stacks[i].names[k]))});
        flame->nodes.items[at].self += stacks[i].self;
        flame->nodes.items[at].counted = 1;
    }
    flame->unit = strings_add(flame->strings, TEXT("samples"));
    struct error error;
    assert_true(flame_finish(flame, &error));
    return flame;
}

static void check(struct answers *answers, const char *question, int status, const char *part) {
    struct target target;
    struct buffer body = {0};
    assert_true(target_parse(&target, text_of(question)));
    int got = answers_ask(answers, &target, &body);
    buffer_add_char(&body, 0);
    if (got != status || !strstr(body.items, part))
        fail_msg("%s: %d %s", question, got, body.items);
    buffer_release(&body);
    target_release(&target);
}

static void answers(void **state) {
    struct flame *flame = make_flame();
    struct answers a = {.flame = flame, .kind = "folded", .samples = 10};
    struct error error;
    assert_true(answers_begin(&a, &error));
    check(&a, "/info", 200, "\"total\":10,\"unit\":\"samples\",\"samples\":10,\"nodes\":5");
    /* number, depth, name, left, total, self */
    check(&a, "/nodes", 200, "\"names\":[\"all\",\"a\",\"b\",\"c\",\"d\",\"e\"]");
    check(&a, "/nodes", 200, "[4,2,4,4,2,2,");
    check(&a, "/nodes", 200, "[5,1,5,7,3,3,");
    check(&a, "/nodes?at=2", 200, "\"path\":[[0,\"all\",10],[1,\"a\",7]],\"whole\":10,\"shown\":2");
    check(&a, "/nodes?depth=1", 200, "\"shown\":3,\"left_out\":0");
    check(&a, "/nodes?width=4", 200, "\"shown\":5,\"left_out\":1"); /* at least 2 */
    check(&a, "/nodes?at=6", 404, "no such node");
    check(&a, "/nodes?at=x", 400, "not a number");
    check(&a, "/nodes?width=0", 400, "not a number");
    check(&a, "/table?sort=self&count=1", 200, "\"rows\":[[\"b\",3,4,");
    check(&a, "/table?sort=total&from=1&count=1", 200, "\"rows\":[[\"b\",3,4,");
    check(&a, "/table?filter=E", 200, "\"rows\":[[\"e\",3,3,\"program\"]],\"count\":1");
    check(&a, "/around?function=b&callers=1", 200, "\"names\":[\"b\",\"a\"]");
    check(&a, "/around?function=b&callers=0", 200, "\"names\":[\"b\",\"c\"]");
    check(&a, "/around?function=nope", 404, "no such function");
    check(&a, "/search?for=b%7Cc", 200, "{\"share\":4,\"whole\":10,\"frames\":1");
    check(&a, "/search?for=%5Bbe%5D", 200, "{\"share\":7,\"whole\":10,\"frames\":2");
    check(&a, "/search?for=(", 422, "error");
    check(&a, "/search", 400, "missing");
    check(&a, "/nope", 404, "no such request");
    check(&a, "/a/info", 404, "no such request");
    answers_end(&a);
    flame_free(flame);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets), cmocka_unit_test(wrong_targets), cmocka_unit_test(hosts),
        cmocka_unit_test(others),  cmocka_unit_test(answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
