/* The gate: rules, probabilities, verdicts. */
#include "gate/gate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "written.h"

static void near(double got, double expected) {
    if (fabs(got - expected) > 1e-9 * fmax(1, fabs(expected)))
        fail_msg("%.12g instead of %.12g", got, expected);
}

static void test_rules(void **state) {
    struct gate_rule rule;
    struct error error;
    assert_true(gate_rule_parse("total > +5%", &rule, &error));
    assert_true(!rule.self && rule.pattern.length == 0);
    near(rule.limit, 0.05);
    assert_true(gate_rule_parse(" parse_* self>10 % ", &rule, &error));
    assert_true(rule.self && text_equal(rule.pattern, TEXT("parse_*")));
    near(rule.limit, 0.1);
    assert_true(gate_rule_parse("operator>(int, int) total > +0.25%", &rule, &error));
    assert_true(!rule.self && text_equal(rule.pattern, TEXT("operator>(int, int)")));
    near(rule.limit, 0.0025);
    static const char *const bad[] = {"",
                                      "total",
                                      "total > 5",
                                      "total > %",
                                      "self > 5%",
                                      "total > -5%",
                                      "total > .%",
                                      "total > 1.2.3%",
                                      "totals > 5%",
                                      "a self < 5%",
                                      "a self > 1e3%",
                                      "total > nan%",
                                      "total > 99999999999999999999999%"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_false(gate_rule_parse(bad[i], &rule, &error));
        assert_int_equal(error.kind, ERROR_USAGE);
    }
}

static void test_ranks(void **state) {
    double low[] = {1, 2, 3, 4, 5}, high[] = {6, 7, 8, 9, 10}, same[] = {7, 7, 7};
    near(gate_rank_test(low, 5, high, 5), 1.0 / 252);
    near(gate_rank_test(high, 5, low, 5), 1);
    near(gate_rank_test(low, 3, high, 3), 1.0 / 20);
    near(gate_rank_least(5, 5), 1.0 / 252);
    near(gate_rank_test(same, 3, same, 3), 1);
    /* Twice their ranks are 4, 4, 4, 8: half of all pairs hold the 8. */
    double tied[] = {1, 1}, other[] = {1, 2};
    near(gate_rank_test(tied, 2, other, 2), 0.5);
    /* 3, 5, 6 among 1 … 6: the sum 14 or more has 2 of 20 ways. */
    double before[] = {1, 2, 4}, after[] = {3, 5, 6};
    near(gate_rank_test(before, 3, after, 3), 2.0 / 20);
}

/* Where the exact count ends, the normal distribution goes on. */
static void test_many_ranks(void **state) {
    double before[24], after[24];
    double tails[2];
    for (int many = 0; many < 2; many++) {
        size_t count = many ? 21 : 20;
        for (size_t i = 0; i < count; i++) {
            before[i] = (double)(i * 10);
            after[i] = (double)(i * 10 + 31);
        }
        tails[many] = gate_rank_test(before, count, after, count);
    }
    assert_true(tails[0] > 0.02 && tails[0] < 0.2);
    assert_true(fabs(tails[0] - tails[1]) < 0.03);
}

static void test_counts(void **state) {
    near(gate_count_test(10, 10, 0.5), 0.588098526001);
    near(gate_count_test(0, 4, 0.5), 1.0 / 16);
    near(gate_count_test(5, 0, 0.5), 1);
    double exact = gate_count_test(950, 1050, 0.5), around = gate_count_test(951, 1051, 0.5);
    assert_true(fabs(exact - around) < 0.001 && exact > 0.01 && exact < 0.02);
}

static void test_correction(void **state) {
    double p[] = {0.01, 0.04, 0.03, 0.9};
    gate_correct(p, 4);
    near(p[0], 0.04);
    near(p[1], 0.09);
    near(p[2], 0.09);
    near(p[3], 0.9);
}

/* ---- verdicts ---- */

static void add(struct gate *gate, bool after, uint64_t hot, uint64_t cold) {
    struct report report = {.total = hot + cold};
    vector_push(&report.rows,
                ((struct report_row){.name = TEXT("hot"), .self = hot, .total = hot}));
    vector_push(&report.rows,
                ((struct report_row){.name = TEXT("cold"), .self = cold, .total = hot + cold}));
    gate_add_run(gate, after, &report, hot + cold);
    vector_release(&report.rows);
}

static size_t verdict(struct gate *gate, const char *text, struct gate_options options,
                      char **written) {
    struct gate_rule rule;
    struct error error;
    struct written out;
    assert_true(gate_rule_parse(text, &rule, &error));
    options.rules = &rule;
    options.rule_count = 1;
    if (!gate_decide(gate, &options, &error)) {
        gate_free(gate);
        return SIZE_MAX - (size_t)error.kind;
    }
    written_begin(&out);
    gate_write(&out.out, gate, REPORT_TEXT, 0);
    char *table = written_end(&out, NULL);
    if (written)
        *written = table;
    else
        free(table);
    size_t exceeded = gate_exceeded(gate);
    gate_free(gate);
    return exceeded;
}

/* `runs` a side, noise of a few per cent, and `hot` that is `factor` per cent of what it was. */
static struct gate *gate_with(size_t runs, unsigned factor) {
    struct gate *gate = gate_new();
    for (size_t i = 0; i < runs; i++) {
        add(gate, false, 1000 + 7 * (i * 5 % 11), 4000);
        add(gate, true, (1000 + 7 * (i * 3 % 11)) * factor / 100, 4000);
    }
    return gate;
}

static void test_verdicts(void **state) {
    struct gate_options plain = {.threshold = 0.5}, exact = {.threshold = 0.5, .exact = true};
    char *table;
    assert_int_equal(verdict(gate_with(10, 100), "* self > +1%", plain, NULL), 0);
    assert_int_equal(verdict(gate_with(10, 120), "* self > +10%", plain, &table), 1);
    assert_non_null(strstr(table, "1 of 2 comparisons exceeds its limit (10 and 10 runs"));
    assert_non_null(strstr(table, "hot\n"));
    assert_null(strstr(table, "cold\n"));
    free(table);
    assert_int_equal(verdict(gate_with(10, 120), "* self > +30%", plain, NULL), 0);
    assert_int_equal(verdict(gate_with(10, 120), "cold total > +2%", plain, NULL), 1);
    assert_int_equal(verdict(gate_with(10, 120), "total > +2%", plain, NULL), 1);
    assert_int_equal(verdict(gate_with(10, 80), "* self > +1%", plain, NULL), 0);
    /* hot is a fifth of all: not looked at. */
    assert_int_equal(verdict(gate_with(10, 120), "hot self > +10%",
                             (struct gate_options){.threshold = 30}, NULL),
                     0);
    /* With shares, what did not change shrinks. */
    assert_int_equal(
        verdict(gate_with(10, 120), "cold self > +1%", (struct gate_options){.shares = true}, NULL),
        0);
    assert_int_equal(verdict(gate_with(3, 120), "* self > +10%", plain, NULL),
                     SIZE_MAX - ERROR_FEW);
    assert_int_equal(verdict(gate_with(3, 120), "* self > +10%", exact, NULL), 1);
    assert_int_equal(verdict(gate_with(5, 120), "ho? self > +10%", plain, NULL), 1);
    assert_int_equal(verdict(gate_with(5, 120), "h?t?self self > +10%", plain, NULL),
                     SIZE_MAX - ERROR_INPUT);
}

/* One run a side: noise is that of counting. A thousand samples vary by three per cent, a hundred thousand by a third of one. */
static void test_one_run(void **state) {
    struct gate_options plain = {.threshold = 0.5}, exact = {.threshold = 0.5, .exact = true};
    for (int large = 0; large < 2; large++) {
        struct gate *gate = gate_new();
        uint64_t scale = large ? 100 : 1;
        add(gate, false, 1000 * scale, 1000 * scale);
        add(gate, true, 1060 * scale, 1000 * scale);
        assert_int_equal(verdict(gate, "hot self > +5%", plain, NULL), (size_t)large);
    }
    struct gate *gate = gate_new();
    add(gate, false, 1000000, 1);
    add(gate, true, 1001000, 1);
    assert_int_equal(verdict(gate, "hot self > +0.05%", exact, NULL), 1);
    gate = gate_new();
    add(gate, false, 0, 1000);
    add(gate, true, 500, 1000);
    char *table;
    assert_int_equal(verdict(gate, "hot self > +5%", plain, &table), 1);
    assert_non_null(strstr(table, " new "));
    free(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),      cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_many_ranks), cmocka_unit_test(test_counts),
        cmocka_unit_test(test_correction), cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_one_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
