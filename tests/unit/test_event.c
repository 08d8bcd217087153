/* Events by name: what is asked of the kernel for each spelling, on any machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/record.h"

struct expected {
    const char *name;
    uint32_t type;
    uint64_t config;
    bool no_user, no_kernel, no_hypervisor;
    unsigned precise;
};

static void spellings(void **state) {
    static const struct expected all[] = {
        {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 0, 0, 0},
        {"cpu-cycles:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 1, 1, 0},
        {"cycles:k", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1, 0, 1, 0},
        {"cycles:uk", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 0, 1, 0},
        {"cycles:upp", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 1, 1, 2},
        {"instructions:ppp", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 0, 0, 0, 3},
        {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0, 0, 0},
        {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 0, 0, 0, 0},
        {"r1a8", PERF_TYPE_RAW, 0x1a8, 0, 0, 0, 0},
        {"r1a8:u", PERF_TYPE_RAW, 0x1a8, 0, 1, 1, 0},
        {"L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000, 0, 0, 0, 0},
        {"L1-dcache-loads", PERF_TYPE_HW_CACHE, 0, 0, 0, 0, 0},
        {"LLC-store-misses:k", PERF_TYPE_HW_CACHE, 0x10102, 1, 0, 1, 0},
        {"LLC-prefetches", PERF_TYPE_HW_CACHE, 0x202, 0, 0, 0, 0},
        {"dTLB-loads", PERF_TYPE_HW_CACHE, 3, 0, 0, 0, 0},
        {"software/config=2/u", PERF_TYPE_SOFTWARE, 2, 0, 1, 1, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct perf_event_attr attr;
        struct error error;
        if (!record_parse_event(all[i].name, &attr, &error))
            fail_msg("%s: %s", all[i].name, error.message);
        assert_int_equal(attr.type, all[i].type);
        assert_int_equal(attr.config, all[i].config);
        assert_int_equal(attr.exclude_user, all[i].no_user);
        assert_int_equal(attr.exclude_kernel, all[i].no_kernel);
        assert_int_equal(attr.exclude_hv, all[i].no_hypervisor);
        assert_int_equal(attr.precise_ip, all[i].precise);
    }
}

static void nonsense(void **state) {
    static const char *const names[] = {"",
                                        "no-such-event",
                                        "r",
                                        "rxyz",
                                        "cycles:x",
                                        "L1-dcache-xyz",
                                        "../x/y/",
                                        "software/nothing=1/",
                                        "nosuchpmu/config=1/"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct perf_event_attr attr;
        struct error error;
        if (record_parse_event(names[i], &attr, &error))
            fail_msg("%s was taken for an event", names[i]);
        assert_int_not_equal(error.kind, ERROR_NONE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(spellings), cmocka_unit_test(nonsense)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
