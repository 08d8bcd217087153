#include <sys/mman.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/base.h"
#include "base/json.h"

static char *made_path(const char *name) {
    static char path[200];
    snprintf(path, sizeof path, "/tmp/wick-test-%d-%s", (int)getpid(), name);
    return path;
}

static void write_whole(const char *path, const void *data, size_t size) {
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, data, size), size);
    close(descriptor);
}

static void strings_keep_each_once(void **state) {
    struct strings *strings = strings_new();
    uint32_t empty = strings_add(strings, TEXT(""));
    uint32_t a = strings_add(strings, TEXT("a\0b"));
    assert_int_not_equal(empty, 0);
    assert_int_not_equal(a, empty);
    assert_int_equal(strings_add(strings, TEXT("a\0b")), a);
    assert_int_equal(strings_find(strings, TEXT("a")), 0);
    for (int i = 0; i < 5000; i++) {
        char name[20];
        snprintf(name, sizeof name, "n%d", i);
        strings_add(strings, text_of(name));
    }
    assert_int_equal(strings_count(strings), 5002);
    assert_true(text_equal(strings_get(strings, a), TEXT("a\0b")));
    assert_int_equal(strings_find(strings, TEXT("n4999")), 5002);
    assert_int_equal(strings_get(strings, 0).length, 0);
    strings_free(strings);
}

static void numbers_do_not_overflow(void **state) {
    uint64_t value = 7;
    assert_true(text_to_u64(TEXT("18446744073709551615"), &value));
    assert_true(value == UINT64_MAX);
    assert_false(text_to_u64(TEXT("18446744073709551616"), &value));
    assert_false(text_to_u64(TEXT(""), &value));
    assert_false(text_to_u64(TEXT("1x"), &value));
    assert_true(text_hex_to_u64(TEXT("fFffffffffffffff"), &value));
    assert_false(text_hex_to_u64(TEXT("10000000000000000"), &value));
    assert_false(checked_add(UINT64_MAX, 1, &value));
    assert_true(value == UINT64_MAX);
    assert_true(saturating_add(UINT64_MAX, 1) == UINT64_MAX);
}

static void expect_escaped(void (*escape)(struct buffer *, struct text), struct text in,
                           const char *out) {
    struct buffer buffer = {0};
    escape(&buffer, in);
    buffer_add_char(&buffer, 0);
    assert_string_equal(buffer.items, out);
    buffer_release(&buffer);
}

static void names_are_escaped(void **state) {
    expect_escaped(buffer_add_xml, TEXT("<a b=\"'&>"), "&lt;a b=&quot;&#39;&amp;&gt;");
    expect_escaped(buffer_add_xml, TEXT("\x01\xff\xed\xa0\x80"),
                   "\xe2\x90\x81\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    expect_escaped(buffer_add_json, TEXT("\"\\</script>\n\xe2\x80\xa8"),
                   "\\\"\\\\\\u003c/script\\u003e\\u000a\\u2028");
    expect_escaped(buffer_add_csv, TEXT("a\"b,c"), "\"a\"\"b,c\"");
    expect_escaped(buffer_add_csv, TEXT("=1+1"), "\"'=1+1\""); /* no formulas */
    expect_escaped(buffer_add_csv, TEXT("+[NSObject new]"), "\"'+[NSObject new]\"");
    expect_escaped(buffer_add_csv, TEXT("-1"), "\"'-1\"");
    expect_escaped(buffer_add_csv, TEXT("@x"), "\"'@x\"");
    expect_escaped(buffer_add_csv, TEXT("\t=1"), "\"'\t=1\"");
    expect_escaped(buffer_add_csv, TEXT("a=1"), "\"a=1\"");
    expect_escaped(buffer_add_csv, TEXT(""), "\"\"");
    expect_escaped(buffer_add_shown, TEXT("a\033[31m\xe2\x80\xae"), "a\\x1b[31m\\u202e");
    expect_escaped(buffer_add_shown, TEXT("\t\x7f\xc2\x85\xe2\x80\x8b\xf3\xa0\x81\x81\xff\xe2\x80"),
                   "\\x09\\x7f\\u0085\\u200b\\U000e0041\\xff\\xe2\\x80");
    expect_escaped(buffer_add_guarded, TEXT("a\tb\n\033[31m\xe2\x80\xae\xff"),
                   "a\tb\n\\x1b[31m\\u202e\xff");
    assert_true(text_is_shown(TEXT("Grüße ‹…› 日本語")));
    assert_false(text_is_shown(TEXT("a\xe2\x80\x8d")));
    expect_escaped(buffer_add_shown, TEXT("Grüße"), "Grüße");
}

static const struct note_kind kind_a = {"a-kind", "# apple{ is|s are} red, {it|they} fell"},
                              kind_b = {"b-kind", "pears"};

static int printed_length(int length, const char *data) {
    return length;
}

/* A negative one would have printf() look for a NUL that need not be there. */
static void names_of_gigabytes_are_cut(void **state) {
    static const size_t lengths[] = {1ull << 31, (1ull << 31) + 5, 1ull << 32, SIZE_MAX};
    assert_int_equal(printed_length(TEXT_ARGS(TEXT("abc"))), 3);
    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        assert_int_equal(printed_length(TEXT_ARGS(((struct text){"abc", lengths[i]}))),
                         TEXT_PRINTED);
}

static void notes_keep_the_first_example_in_any_order(void **state) {
    struct notes one = {0}, two = {0};
    notes_add(&one, &kind_b, 1, 50, "later");
    notes_add(&one, &kind_b, 1, 20, "line %d", 20);
    notes_add(&two, &kind_b, 3, 10, "first");
    notes_add(&two, &kind_a, 2, 0, NULL);
    notes_merge(&one, &two);
    notes_sort(&one);
    assert_int_equal(one.count, 2);
    assert_int_equal(one.items[1].count, 5);
    assert_string_equal(one.items[1].example, "first");
    struct buffer line = {0};
    note_print(&one.items[0], &line);
    assert_true(text_equal(buffer_text(&line), TEXT("2 apples are red, they fell")));
    line.count = 0;
    counted_print(&line, kind_a.sentence, 1);
    assert_true(text_equal(buffer_text(&line), TEXT("1 apple is red, it fell")));
    buffer_release(&line);
    notes_release(&one);
    notes_release(&two);
}

/* What applies to several views counts once in each of them. */
static void notes_of_a_view_are_chosen(void **state) {
    enum { RAN = 1, WAITED = 2, BOTH = 4 };
    struct notes notes = {0}, some = {0};
    notes_add_for(&notes, RAN | BOTH, &kind_a, 3);
    notes_add_for(&notes, WAITED | BOTH, &kind_a, 4);
    notes_add(&some, &kind_b, 1, 7, "seventh");
    notes_merge_for(&notes, &some, WAITED);
    notes_add(&notes, &kind_b, 2, 9, "ninth");
    struct notes all = {0}, ran = {0}, both = {0};
    notes_merge(&all, &notes);
    notes_merge(&ran, &notes);
    notes_merge(&both, &notes);
    notes_choose(&ran, RAN, 0);
    notes_choose(&both, BOTH, 0);
    notes_choose(&all, WAITED, 0);
    notes_sort(&ran);
    notes_sort(&both);
    notes_sort(&all);
    assert_int_equal(ran.count, 2);
    assert_int_equal(ran.items[0].count, 3);
    assert_int_equal(ran.items[1].count, 2);
    assert_string_equal(ran.items[1].example, "ninth");
    assert_int_equal(both.items[0].count, 7);
    assert_int_equal(all.items[0].count, 4);
    assert_int_equal(all.items[1].count, 3);
    assert_string_equal(all.items[1].example, "seventh");
    struct notes *lists[] = {&notes, &some, &all, &ran, &both};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        notes_release(lists[i]);
}

static void a_view_without_a_kind_may_take_that_of_another(void **state) {
    struct notes notes = {0};
    notes_add_for(&notes, 1, &kind_a, 3);
    notes_add_for(&notes, 2, &kind_a, 4);
    notes_add_for(&notes, 2, &kind_b, 5);
    notes_choose(&notes, 1, 2);
    notes_sort(&notes);
    assert_int_equal(notes.count, 2);
    assert_int_equal(notes.items[0].count, 3);
    assert_int_equal(notes.items[1].count, 5);
    notes_release(&notes);
}

static void a_file_is_published_whole_or_not(void **state) {
    struct out out;
    struct error error;
    const char *path = made_path("out");
    write_whole(path, "old", 3);
    assert_true(out_open(&out, path, &error));
    out_text(&out, TEXT("new"));
    out_discard(&out);
    struct file file;
    assert_true(file_open(&file, path, NULL, &error));
    assert_true(text_equal(file_text(&file), TEXT("old")));
    file_close(&file);
    assert_true(out_open(&out, path, &error));
    for (int i = 0; i < 100000; i++)
        out_u64(&out, 7), out_char(&out, '\n');
    assert_true(out_commit(&out, &error));
    assert_true(file_open(&file, path, NULL, &error));
    assert_int_equal(file.size, 200000);
    file_close(&file);
    unlink(path);
    assert_false(out_open(&out, "/nonexistent/x", &error));
    assert_int_equal(error.kind, ERROR_INPUT);
    assert_true(out_open(&out, "/dev/full", &error));
    out_text(&out, TEXT("x"));
    assert_false(out_commit(&out, &error));
}

/* A link that has the name is replaced; what it leads to is neither written to nor replaced. */
static void links_are_not_written_through(void **state) {
    struct out out;
    struct error error;
    struct file file;
    struct stat status;
    char *victim = strdup(made_path("victim")), *path = strdup(made_path("link"));
    write_whole(victim, "old", 3);
    unlink(path);
    assert_int_equal(symlink(victim, path), 0);
    assert_true(out_open(&out, path, &error));
    out_text(&out, TEXT("new"));
    assert_true(out_commit(&out, &error));
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISREG(status.st_mode));
    assert_true(file_open(&file, victim, NULL, &error));
    assert_true(text_equal(file_text(&file), TEXT("old")));
    file_close(&file);
    unlink(path);
    unlink(victim);
    free(path);
    free(victim);
}

/* In a directory that anybody may write to, a link to a device may be a stranger's: it is replaced. In one of our own it is ours. */
static void links_to_devices_are_followed_where_nobody_else_made_them(void **state) {
    char folder[] = "/tmp/wick-test-base.XXXXXX", path[300];
    struct out out;
    struct error error;
    struct stat status;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/link", folder);
    assert_int_equal(symlink("/dev/full", path), 0);
    assert_true(out_open(&out, path, &error));
    out_text(&out, TEXT("x"));
    assert_false(out_commit(&out, &error));
    assert_int_equal(chmod(folder, 0777), 0);
    assert_true(out_open(&out, path, &error));
    out_text(&out, TEXT("x"));
    assert_true(out_commit(&out, &error));
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISREG(status.st_mode));
    unlink(path);
    if (geteuid() == 0) { /* sticky: by its owner */
        assert_int_equal(chmod(folder, 01777), 0);
        assert_int_equal(symlink("/dev/full", path), 0);
        assert_true(out_open(&out, path, &error));
        assert_null(out.file.temporary);
        out_discard(&out);
        assert_int_equal(lchown(path, 12345, 12345), 0);
        assert_true(out_open(&out, path, &error));
        assert_non_null(out.file.temporary);
        out_discard(&out);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

/* What a recorder that is killed leaves has a name of its own, is private, and takes no other's place by itself. */
static void recordings_are_private_and_replace_nothing_unasked(void **state) {
    struct publish p;
    struct error error;
    struct stat status;
    const char *path = made_path("recording");
    write_whole(path, "old", 3);
    assert_int_equal(chmod(path, 0644), 0);
    assert_true(publish_open(&p, AT_FDCWD, path, PUBLISH_RECORDING, &error));
    assert_true(publish_would_replace(&p));
    char *left = publish_leave(&p);
    assert_non_null(strstr(left, "recording.unfinished-"));
    assert_int_equal(unlink(left), 0);
    free(left);
    assert_true(publish_open(&p, AT_FDCWD, path, PUBLISH_RECORDING, &error));
    assert_true(publish_commit(&p, &error));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(status.st_size, 0);
    unlink(path);
}

static void packed_files_are_read_as_they_are(void **state) {
    static const char content[] = "main;work 12\n";
    struct error error;
    struct file file;
    const char *path = made_path("packed");
    gzFile gz = gzopen(path, "wb");
    gzwrite(gz, content, sizeof content - 1);
    gzclose(gz);
    gz = gzopen(path, "ab"); /* a second member */
    gzwrite(gz, content, sizeof content - 1);
    gzclose(gz);
    assert_true(file_open(&file, path, NULL, &error));
    assert_int_equal(file.size, 2 * (sizeof content - 1));
    file_close(&file);
    char packed[200];
    size_t size = ZSTD_compress(packed, sizeof packed, content, sizeof content - 1, 3);
    write_whole(path, packed, size);
    assert_true(file_open(&file, path, NULL, &error));
    assert_true(text_equal(file_text(&file), text_of(content)));
    file_close(&file);
    write_whole(path, packed, size - 2);
    assert_false(file_open(&file, path, NULL, &error));
    assert_non_null(strstr(error.message, "byte "));
    unlink(path);
}

/* Reading past what is left of a file that shrank gives zeroes and is said, not a signal. */
static void a_file_that_shrinks_is_noticed(void **state) {
    struct error error;
    struct file file;
    const char *path = made_path("shrinks");
    char *zeroes = memory_zero(1, 1 << 16);
    memset(zeroes, 'x', 1 << 16);
    write_whole(path, zeroes, 1 << 16);
    free(zeroes);
    assert_true(file_open(&file, path, NULL, &error));
    assert_false(file_changed(&file, &error));
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(((volatile const uint8_t *)file.data)[60000], 0);
    assert_int_equal(file.data[10], 'x');
    assert_true(file_changed(&file, &error));
    assert_non_null(strstr(error.message, "changed while reading"));
    file_close(&file);
    unlink(path);
}

/* What was cut off within the last page that is left raises no signal, and is noticed all the same. */
static void a_file_that_shrinks_a_little_is_noticed(void **state) {
    struct error error;
    struct file file;
    const char *path = made_path("shrinks-a-little");
    write_whole(path, "some bytes", 10);
    assert_true(file_open(&file, path, NULL, &error));
    assert_int_equal(truncate(path, 4), 0);
    assert_true(file_changed(&file, &error));
    file_close(&file);
    unlink(path);
}

/* A mapping that is nobody's but a library's. */
static void a_watched_file_that_shrinks_is_noticed(void **state) {
    struct error error;
    struct file file;
    bool changed = false;
    const char *path = made_path("watched");
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 4 * page;
    char *content = memory_zero(1, size);
    memset(content, 'x', size);
    write_whole(path, content, size);
    free(content);
    assert_true(file_open(&file, path, NULL, &error)); /* the guard is up */
    int descriptor = open(path, O_RDONLY);
    volatile uint8_t *mapped = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    assert_true(mapped != MAP_FAILED);
    file_watch(&changed);
    assert_int_equal(mapped[2 * page + 900], 'x');
    assert_false(changed);
    assert_int_equal(truncate(path, (off_t)page), 0);
    assert_int_equal(mapped[2 * page + 900], 0);
    assert_int_equal(mapped[page + 900], 0);
    assert_int_equal(mapped[10], 'x');
    assert_true(changed);
    file_watch(NULL);
    munmap((void *)(uintptr_t)mapped, size);
    close(descriptor);
    file_close(&file);
    unlink(path);
}

/* More than one block of the table holds. */
static void many_files_are_guarded(void **state) {
    enum { FILES = 1500 };
    struct error error;
    struct file *files = memory_zero(FILES, sizeof *files);
    const char *path = made_path("many");
    write_whole(path, "some bytes", 10);
    for (size_t i = 0; i < FILES; i++)
        assert_true(file_open(&files[i], path, NULL, &error));
    assert_int_equal(truncate(path, 0), 0);
    for (size_t i = 0; i < FILES; i++) {
        assert_int_equal(*(volatile const uint8_t *)files[i].data, 0);
        assert_true(file_changed(&files[i], &error));
        file_close(&files[i]);
    }
    free(files);
    unlink(path);
}

static void only_files_and_pipes_are_opened(void **state) {
    struct error error;
    struct file file;
    assert_false(file_open(&file, "/tmp", NULL, &error));
    assert_non_null(strstr(error.message, "is a directory"));
    assert_false(file_open(&file, "/nonexistent", NULL, &error));
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    close(ends[1]);
    assert_true(file_open_descriptor(&file, ends[0], "pipe", NULL, &error));
    assert_true(text_equal(file_text(&file), TEXT("hello")));
    file_close(&file);
    close(ends[0]);
}

static void add_item(void *context, unsigned worker, size_t item) {
    __atomic_add_fetch((uint64_t *)context, item + 1, __ATOMIC_RELAXED);
}

static void every_item_is_run_once(void **state) {
    uint64_t sum = 0;
    parallel_run(4, 1000, add_item, &sum);
    assert_int_equal(sum, 1000 * 1001 / 2);
    parallel_run(4, 0, add_item, &sum);
    assert_int_equal(sum, 1000 * 1001 / 2);
}

static void numbers_are_sorted_and_equal_ones_stay(void **state) {
    const uint64_t wide[] = {UINT64_MAX, 7, 0, 1ull << 40, 7, 0xff00, 0x00ff, 7};
    const uint32_t wide_order[] = {2, 1, 4, 7, 6, 5, 3, 0};
    const uint32_t narrow[] = {2, 0, 2, 1, 0};
    const uint32_t narrow_order[] = {1, 4, 3, 0, 2};
    size_t ends[3];
    uint32_t *order = radix_sort(wide, COUNT_OF(wide));
    assert_memory_equal(order, wide_order, sizeof wide_order);
    free(order);
    order = radix_sort(wide, 0);
    free(order);
    order = counting_sort(narrow, COUNT_OF(narrow), COUNT_OF(ends), ends);
    assert_memory_equal(order, narrow_order, sizeof narrow_order);
    assert_true(ends[0] == 2 && ends[1] == 3 && ends[2] == 5);
    free(order);
}

static void patterns_match(void **state) {
    static const struct {
        const char *text, *pattern;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "*", true},
        {"", "?", false},
        {"worker-12", "worker-*", true},
        {"worker-12", "worker", false},
        {"worker-12", "*-?2", true},
        {"aXbXc", "a*X*c", true},
        {"aXbXc", "a*X*d", false},
        {"b", "[a-c]", true},
        {"d", "[a-c]", false},
        {"d", "[!a-c]", true},
        {"]", "[]]", true},
        {"-", "[a-]", true},
        {"[x", "[x", true},
        {"a*", "a\\*", true},
        {"ab", "a\\*", false},
        {"\\", "\\", true},
        {"abc", "abc**", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (text_matches(text_of(cases[i].text), text_of(cases[i].pattern)) != cases[i].matches)
            fail_msg("%s and %s", cases[i].text, cases[i].pattern);
}

/* What a naive matcher tries 2^60 ways for ends at once. */
static void patterns_end(void **state) {
    struct buffer text = {0}, pattern = {0};
    for (unsigned i = 0; i < 20000; i++)
        buffer_add_char(&text, 'a');
    for (unsigned i = 0; i < 60; i++)
        buffer_add(&pattern, TEXT("a*"));
    buffer_add_char(&pattern, 'b');
    assert_false(text_matches(buffer_text(&text), buffer_text(&pattern)));
    buffer_release(&text);
    buffer_release(&pattern);
}

/* Every row of up to eight numbers 0 … 2 in order, every part of it, every number looked for. */
static void test_search_first(void **state) {
    for (unsigned zeroes = 0; zeroes <= 8; zeroes++)
        for (unsigned ones = 0; zeroes + ones <= 8; ones++) {
            unsigned row[8];
            for (unsigned i = 0; i < 8; i++)
                row[i] = i < zeroes ? 0 : i < zeroes + ones ? 1 : 2;
            for (size_t low = 0; low <= 8; low++)
                for (size_t high = low; high <= 8; high++)
                    for (unsigned least = 0; least <= 3; least++) {
                        size_t expected = low;
                        while (expected < high && row[expected] < least)
                            expected++;
                        assert_int_equal(search_first(i, low, high, row[i] < least), expected);
                    }
        }
}

static void a_process_tells_of_itself(void **state) {
    (void)state;
    struct buffer text = {0};
    struct text status = TEXT("Name:\tUid\nUid:\t1\t22\t3\t4\nNSpid:\t70\t8\nUidless:\n");
    assert_true(text_equal(proc_field(status, TEXT("Uid"), 1), TEXT("22")));
    assert_true(text_equal(proc_field(status, TEXT("NSpid"), PROC_LAST), TEXT("8")));
    assert_int_equal(proc_field(status, TEXT("NSpid"), 2).length, 0);
    assert_int_equal(proc_field(status, TEXT("Uidless"), 0).length, 0);
    assert_int_equal(proc_field(status, TEXT("Gid"), PROC_LAST).length, 0);
    assert_int_equal(proc_status_id(getpid(), TEXT("PPid")), getppid());
    assert_int_equal(proc_status_id(-1, TEXT("PPid")), 0);
    assert_int_equal(proc_read(getpid(), "maps", PROC_MAPS_MOST, &text), PROC_WHOLE);
    assert_true(text_search(buffer_text(&text), TEXT("test_base")) != SIZE_MAX);
    assert_int_equal(proc_read(getpid(), "maps", 1, &text), PROC_PART);
    assert_int_equal(proc_read(getpid(), "nothing", 1, &text), PROC_NONE);
    assert_int_equal(text.count, 0);
    buffer_release(&text);
}

/* Fractions have a fast way, which must round as the C library does. */
static void json_numbers_are_exact(void **state) {
    (void)state;
    static const char *const numbers[] = {"0",
                                          "12",
                                          "4294967295",
                                          "4294967296",
                                          "0.1",
                                          "0.001",
                                          "123.456",
                                          "99999999999999.9",
                                          "-0.5",
                                          "1e3",
                                          "1.5e-3",
                                          "0.00000000000001",
                                          "123456.789",
                                          "1234567890123456.5",
                                          "3.141592653589793"};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct json json = {text_of(numbers[i])};
        double value;
        assert_true(json_double(&json, &value));
        assert_true(value == strtod(numbers[i], NULL));
        assert_int_equal(json.rest.length, 0);
    }
    for (uint64_t i = 1; i < 200000; i += 7) {
        char number[32];
        double value;
        snprintf(number, sizeof number, "%llu.%03llu", (unsigned long long)(i * 7919),
                 (unsigned long long)(i % 1000));
        struct json json = {text_of(number)};
        assert_true(json_double(&json, &value) && value == strtod(number, NULL));
    }
    static const char *const others[] = {"", "x", ".", "1.2.3", "1.-", "[1]", "null"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct json json = {text_of(others[i])};
        double value;
        assert_false(json_double(&json, &value));
        assert_int_equal(json.rest.length, strlen(others[i]));
    }
}

/* Large vectors move by whole pages of the machine's tables and copy only what is left over. */
static void large_vectors_move_whole(void **state) {
    (void)state;
    enum { ITEMS = 3000000 };
    struct item {
        uint32_t a, b, c;
    };
    VECTOR(struct item) items = {0};
    for (uint32_t i = 0; i < ITEMS; i++)
        vector_push(&items, ((struct item){i, ~i, i * 7}));
    size_t wrong = 0;
    for (uint32_t i = 0; i < ITEMS; i++)
        wrong += items.items[i].a != i || items.items[i].b != ~i || items.items[i].c != i * 7;
    assert_int_equal(wrong, 0);
    vector_release(&items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_numbers_are_exact),
        cmocka_unit_test(large_vectors_move_whole),
        cmocka_unit_test(test_search_first),
        cmocka_unit_test(patterns_match),
        cmocka_unit_test(patterns_end),
        cmocka_unit_test(strings_keep_each_once),
        cmocka_unit_test(numbers_do_not_overflow),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(names_of_gigabytes_are_cut),
        cmocka_unit_test(notes_keep_the_first_example_in_any_order),
        cmocka_unit_test(notes_of_a_view_are_chosen),
        cmocka_unit_test(a_view_without_a_kind_may_take_that_of_another),
        cmocka_unit_test(a_file_is_published_whole_or_not),
        cmocka_unit_test(links_are_not_written_through),
        cmocka_unit_test(links_to_devices_are_followed_where_nobody_else_made_them),
        cmocka_unit_test(recordings_are_private_and_replace_nothing_unasked),
        cmocka_unit_test(packed_files_are_read_as_they_are),
        cmocka_unit_test(a_file_that_shrinks_a_little_is_noticed),
        cmocka_unit_test(a_watched_file_that_shrinks_is_noticed),
        cmocka_unit_test(many_files_are_guarded),
        cmocka_unit_test(a_file_that_shrinks_is_noticed),
        cmocka_unit_test(only_files_and_pipes_are_opened),
        cmocka_unit_test(numbers_are_sorted_and_equal_ones_stay),
        cmocka_unit_test(every_item_is_run_once),
        cmocka_unit_test(a_process_tells_of_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
