/* The memory of wick's own guests. */
#include "trace/riscv/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* Also where the system's pages are larger than the guest's: what is unmapped comes back as zeroes, its neighbours stay. */
static void test_unmapped_pages(void **unused) {
    enum { PAGES = 64 };
    struct guest_memory memory;
    struct error error;
    assert_true(memory_open(&memory, &error));
    for (uint64_t first = 1; first < PAGES; first += 9) {
        assert_true(memory_map(&memory, 0, PAGES * PAGE_SIZE, PAGE_READ | PAGE_WRITE));
        memset(memory.base, 'x', PAGES * PAGE_SIZE);
        uint64_t end = first + first % 30 < PAGES ? first + first % 30 : PAGES;
        memory_unmap(&memory, first * PAGE_SIZE, (end - first) * PAGE_SIZE);
        for (uint64_t at = 0; at < PAGES * PAGE_SIZE; at++) {
            bool gone = at >= first * PAGE_SIZE && at < end * PAGE_SIZE;
            if (memory.base[at] != (gone ? 0 : 'x'))
                fail_msg("byte %llu is %d", (unsigned long long)at, memory.base[at]);
        }
    }
    memory_close(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_unmapped_pages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
