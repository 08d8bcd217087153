/* The directory of what was derived from files: its limit, its keys, its readers. */
#include <stdarg.h>
#include <stddef.h>

#include "object/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char *directory_new(void) {
    char *path = memory_copy("/tmp/wick-cache.XXXXXX", 22);
    assert_non_null(mkdtemp(path));
    return path;
}

static size_t files_in(const char *path) {
    struct objects_cache_facts facts;
    assert_true(objects_cache_facts(path, &facts));
    return facts.files;
}

static void directory_free(char *path) {
    assert_true(objects_cache_clear(path));
    assert_int_equal(rmdir(path), 0);
    free(path);
}

static bool has(const char *path, struct text key, struct text wanted) {
    struct disk_cache *cache = disk_cache_open(path, 0);
    struct file file;
    struct text payload;
    bool found = disk_cache_read(cache, key, &file, &payload);
    if (found) {
        assert_int_equal((uintptr_t)payload.data % 8, 0);
        assert_true(text_equal(payload, wanted));
        file_close(&file);
    }
    disk_cache_free(cache);
    return found;
}

static void test_read_what_was_written(void **state) {
    char *path = directory_new();
    struct disk_cache *cache = disk_cache_open(path, 0);
    disk_cache_write(cache, TEXT("one"), TEXT("first payload"));
    disk_cache_write(cache, TEXT("two"), TEXT("second"));
    disk_cache_write(cache, TEXT("one"), TEXT("another payload"));
    disk_cache_free(cache);
    assert_int_equal(files_in(path), 2);
    assert_true(has(path, TEXT("one"), TEXT("another payload")));
    assert_true(has(path, TEXT("two"), TEXT("second")));
    assert_false(has(path, TEXT("three"), TEXT("")));
    directory_free(path);
}

/* Oldest use first, to three quarters of the limit. */
static void test_limit(void **state) {
    enum { SIZE = 100000, COUNT = 12 };
    char *path = directory_new(), *payload = memory_zero(SIZE, 1), key[16];
    struct disk_cache *cache = disk_cache_open(path, 0);
    for (int i = 0; i < COUNT; i++) {
        snprintf(key, sizeof key, "key %d", i);
        disk_cache_write(cache, text_of(key), (struct text){payload, SIZE});
        usleep(2000); /* so that no two have the same time */
    }
    disk_cache_free(cache);
    assert_int_equal(files_in(path), COUNT);
    assert_true(has(path, TEXT("key 0"), (struct text){payload, SIZE})); /* used last */
    cache = disk_cache_open(path, 1000000);
    disk_cache_write(cache, TEXT("new"), TEXT("small"));
    disk_cache_free(cache);
    assert_in_range(files_in(path), 5, 8);
    assert_true(has(path, TEXT("new"), TEXT("small")));
    assert_true(has(path, TEXT("key 0"), (struct text){payload, SIZE}));
    assert_true(has(path, TEXT("key 11"), (struct text){payload, SIZE}));
    assert_false(has(path, TEXT("key 1"), TEXT("")));
    free(payload);
    directory_free(path);
}

static void test_nowhere(void **state) {
    struct file file;
    struct text payload;
    assert_null(disk_cache_open(NULL, 0));
    assert_false(disk_cache_read(NULL, TEXT("key"), &file, &payload));
    disk_cache_write(NULL, TEXT("key"), TEXT("payload"));
    disk_cache_free(NULL);
}

/* Device, inode, size and times, and the build id, each make another key; what has no inode can't be in one. */
static void test_keys(void **state) {
    struct objects_options host = {0}, symfs = {.symfs = "/x"};
    struct build_id id = {.size = 2, .bytes = {1, 2}};
    struct file files[] = {{.device = 1, .inode = 2, .size = 3, .written = 4, .touched = 5},
                           {.device = 9, .inode = 2, .size = 3, .written = 4, .touched = 5},
                           {.device = 1, .inode = 9, .size = 3, .written = 4, .touched = 5},
                           {.device = 1, .inode = 2, .size = 9, .written = 4, .touched = 5},
                           {.device = 1, .inode = 2, .size = 3, .written = 9, .touched = 5},
                           {.device = 1, .inode = 2, .size = 3, .written = 4, .touched = 9}};
    struct cache_key keys[COUNT_OF(files) + 3];
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        bool plain = i < COUNT_OF(files);
        cache_key_init(&keys[i], i == COUNT_OF(files) ? &symfs : &host,
                       i == COUNT_OF(files) + 1 ? "other" : "test");
        cache_key_add_file(&keys[i], &files[plain ? i : 0], i == COUNT_OF(files) + 2 ? &id : NULL);
        assert_true(keys[i].is_usable);
        for (size_t j = 0; j < i; j++)
            assert_false(text_equal(buffer_text(&keys[i].text), buffer_text(&keys[j].text)));
    }
    cache_key_add_file(&keys[0], &(struct file){.size = 3}, NULL);
    assert_false(keys[0].is_usable);
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        buffer_release(&keys[i].text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_what_was_written),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_nowhere),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
