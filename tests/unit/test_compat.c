/* The tables of quirks. */
#include "compat/compat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_programs_are_known_by_name(void **state) {
    assert_ptr_equal(quirks_named("perf"), &quirks_perf);
    assert_ptr_equal(quirks_named("inferno"), &quirks_inferno);
    assert_null(quirks_named("wick"));
    assert_null(quirks_named("perf "));
    assert_null(quirks_named(""));
}

static void test_none_is_zero(void **state) {
    struct quirks zero;
    memset(&zero, 0, sizeof zero);
    assert_memory_equal(&quirks_none, &zero, sizeof zero);
}

/* inferno reads what perf prints; and no quirk is there that no program has. */
static void test_inferno_has_all(void **state) {
    const unsigned char *perf = (const void *)&quirks_perf, *both = (const void *)&quirks_inferno;
    size_t limits[] = {offsetof(struct quirks, plt_name_limit),
                       offsetof(struct quirks, chain_limit),
                       offsetof(struct quirks, unwound_limit)};
    size_t flags = 0, own = 0;
    for (size_t i = 0; i < sizeof(struct quirks); i++) {
        for (size_t k = 0; k < sizeof limits / sizeof *limits; k++)
            if (i == limits[k])
                i += sizeof(uint32_t);
        assert_true(perf[i] <= both[i]);
        flags += both[i];
        own += both[i] && !perf[i];
    }
    assert_int_equal(quirks_inferno.plt_name_limit, quirks_perf.plt_name_limit);
    assert_int_equal(quirks_inferno.chain_limit, 127);
    assert_int_equal(quirks_inferno.unwound_limit, 127);
    assert_true(own > 15);
    /* Padding before the numbers is at most three bytes each. */
    assert_true(flags + sizeof limits / sizeof *limits * (sizeof(uint32_t) + 3) + 3 >=
                sizeof(struct quirks));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_are_known_by_name),
        cmocka_unit_test(test_none_is_zero),
        cmocka_unit_test(test_inferno_has_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
