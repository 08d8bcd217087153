/* The agent's children: files that they write and others read. */
#include "agent/child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static void sealed_files_stay_as_they_are(void **state) {
    struct error error;
    int file = child_file(&error);
    assert_true(file >= 0 && write(file, "tree", 4) == 4);
    assert_true(child_file_seal(file, 4, &error));
    assert_int_equal(pwrite(file, "x", 1, 0), -1);
    assert_int_equal(ftruncate(file, 0), -1);
    assert_int_equal(ftruncate(file, 1 << 20), -1);
    close(file);
}

static void mapped_files_are_refused(void **state) {
    struct error error;
    int file = child_file(&error);
    assert_true(file >= 0 && write(file, "tree", 4) == 4);
    void *map = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(map != MAP_FAILED);
    assert_false(child_file_seal(file, 4, &error));
    munmap(map, 4);
    close(file);
}

static void large_files_are_refused(void **state) {
    struct error error;
    int file = child_file(&error);
    assert_true(file >= 0 && ftruncate(file, (2 << 20) + 1) == 0);
    assert_false(child_file_seal(file, 2 << 20, &error));
    assert_string_equal(error.message, "a tree of more than 2 MB");
    close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_files_stay_as_they_are),
        cmocka_unit_test(mapped_files_are_refused),
        cmocka_unit_test(large_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
