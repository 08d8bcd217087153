/*
 * Allocations: what a sample stands for, and where a probe in a function costs least.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/heap_catch.h"

static void weights_are_unbiased(void **state) {
    (void)state;
    assert_int_equal(heap_weight(65536, 65536), 65536);
    assert_int_equal(heap_weight(1000000, 65536), 1000000);
    for (uint64_t size = 1; size < 65536; size *= 3) {
        double chance = -expm1(-(double)size / 65536);
        double expected = chance * (double)heap_weight(size, 65536);
        assert_true(fabs(expected - (double)size) < 0.001 * (double)size + 0.5 * chance);
    }
}

/* Each row: code, the arguments that must be kept, the place, whether it is single-stepped. */
static const struct {
    const char *what;
    uint8_t code[48];
    unsigned kept;
    size_t place;
    bool stepped;
} places[] = {
    {"push first", {0x41, 0x54, 0x55}, 1, 0, false},
    {"endbr64, push", {0xf3, 0x0f, 0x1e, 0xfa, 0x55}, 1, 4, false},
    {"test, je", {0x48, 0x85, 0xff, 0x0f, 0x84, 1, 0, 0, 0}, 1, 3, false},
    {"cmp constant, ja", {0x48, 0x81, 0xff, 0, 0x10, 0, 0, 0x0f, 0x87, 1, 0, 0, 0}, 1, 7, false},
    {"cmpb of memory, je", {0x80, 0x3d, 1, 2, 3, 4, 0, 0x74, 7}, 3, 7, false},
    {"the argument is overwritten",
     {0x48, 0x89, 0xfe, 0x64, 0x48, 0x8b, 0x38, 0x77, 0x29},
     1,
     0,
     true},
    {"one that does not matter is", {0x48, 0x89, 0xfe, 0x77, 0x29}, 1, 3, false},
    {"that matters here", {0x48, 0x89, 0xfe, 0x77, 0x29}, 3, 0, true},
    {"the stack is changed", {0x48, 0x83, 0xec, 0x18, 0x55}, 1, 0, true},
    {"memory of the thread",
     {0x25, 0xf0, 0, 0, 0, 0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x01, 0xd0, 0x55},
     1,
     17,
     false},
    {"unknown", {0x0f, 0xc7, 0xf0}, 1, 0, true},
};

static void probes_are_placed_well(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        bool stepped;
        size_t place = catch_place(places[i].code, sizeof places[i].code, places[i].kept, &stepped);
        if (place != places[i].place || stepped != places[i].stepped)
            print_error("%s: at %zu\n", places[i].what, place);
        assert_int_equal(place, places[i].place);
        assert_int_equal(stepped, places[i].stepped);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_unbiased),
        cmocka_unit_test(probes_are_placed_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
