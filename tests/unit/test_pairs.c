/* Pairs of a beginning and an end, by key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "profile/pairs.h"

static void test_a_pair(void **state) {
    struct pairs pairs = {0};
    struct pair *begun, ended;
    assert_null(pairs_open(&pairs, 7));
    assert_false(pairs_end(&pairs, 7, &ended)); /* its beginning was lost */
    assert_false(pairs_begin(&pairs, 7, 100, &begun, NULL));
    assert_int_equal(begun->sample, NO_SAMPLE);
    begun->sample = 3;
    begun->kind = -1;
    assert_ptr_equal(pairs_open(&pairs, 7), begun);
    assert_null(pairs_open(&pairs, 8));
    assert_true(pairs_end(&pairs, 7, &ended));
    assert_int_equal(ended.began, 100);
    assert_int_equal(ended.sample, 3);
    assert_int_equal(ended.kind, -1);
    assert_false(pairs_end(&pairs, 7, &ended)); /* once is enough */
    pairs_release(&pairs);
}

/* The end between them was lost: the caller is told which beginning has none. */
static void test_two_beginnings(void **state) {
    struct pairs pairs = {0};
    struct pair *begun, torn, ended;
    pairs_begin(&pairs, 1, 10, &begun, NULL);
    begun->sample = 5;
    begun->ender = 9;
    assert_true(pairs_begin(&pairs, 1, 20, &begun, &torn));
    assert_int_equal(torn.began, 10);
    assert_int_equal(torn.sample, 5);
    assert_true(pairs_end(&pairs, 1, &ended));
    assert_int_equal(ended.began, 20);
    assert_int_equal(ended.sample, NO_SAMPLE); /* nothing of the one before is left */
    assert_int_equal(ended.ender, 0);
    pairs_release(&pairs);
}

/* As allocations would: many addresses, freed in another order and used again; what is never freed is left. */
static void test_many_keys(void **state) {
    enum { KEYS = 10000 };
    struct pairs pairs = {0};
    struct pair *begun, ended;
    for (uint64_t round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < KEYS; i++) {
            assert_false(
                pairs_begin(&pairs, 0x7f0000000000 + 16 * i, round * KEYS + i, &begun, NULL));
            begun->kind = (int64_t)i;
        }
        for (uint64_t i = KEYS; i-- > 0;) {
            bool kept = round == 1 && i % 1000 == 0;
            if (kept)
                continue;
            assert_true(pairs_end(&pairs, 0x7f0000000000 + 16 * i, &ended));
            assert_int_equal(ended.kind, i);
            assert_int_equal(ended.began, round * KEYS + i);
        }
    }
    assert_int_equal(pairs.all.count, KEYS); /* a key's place is used again */
    size_t at = 0, left = 0;
    for (const struct pair *pair; (pair = pairs_next_open(&pairs, &at)); left++)
        assert_int_equal(pair->kind, left * 1000);
    assert_int_equal(left, KEYS / 1000);
    pairs_release(&pairs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pair),
        cmocka_unit_test(test_two_beginnings),
        cmocka_unit_test(test_many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
