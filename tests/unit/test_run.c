#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/internal.h"
#include "run/run.h"

static void expect_digest(struct text data, const char *hex) {
    char found[65];
    sha256_hex((const uint8_t *)data.data, data.length, found);
    assert_string_equal(found, hex);
}

/* The standard's own examples, and the lengths around the padding's edge. */
static void digests_are_sha256(void **state) {
    expect_digest(TEXT(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_digest(TEXT("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_digest(TEXT("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char a[64];
    memset(a, 'a', sizeof a);
    expect_digest((struct text){a, 55},
                  "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    expect_digest((struct text){a, 64},
                  "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

static void expect_measured(const char *event, const char *method, const char *kind) {
    char *found = run_measurement(event, method);
    assert_string_equal(found, kind);
    free(found);
}

static void measurements_are_named_truthfully(void **state) {
    expect_measured("cpu-clock", "perf", "software clock");
    expect_measured("cpu-clock:u", "perf", "software clock");
    expect_measured("task-clock", "perf", "software clock");
    expect_measured("page-faults", "perf", "software event");
    expect_measured("context-switches:u", "perf", "software event");
    expect_measured("cycles:u", "perf", "hardware counter");
    expect_measured("L1-dcache-load-misses", "perf", "hardware counter");
    expect_measured("r1a8", "perf", "hardware counter");
    expect_measured("cycles", "ptrace", "ptrace sampling");
    expect_measured("cpu-clock,offcpu-time:disk", "bpf", "software clock, BPF program");
    expect_measured("cycles,page-faults,instructions", "perf", "hardware counter, software event");
}

static bool is_there(const char *base, const char *rest) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", base, rest);
    return access(path, F_OK) == 0;
}

static struct run begun(const char *base, struct record_result *result) {
    struct run run = {.kind = "cpu", .result = result, .min_samples = 200};
    struct error error;
    assert_true(run_begin(&run, base, "r", &error));
    close(run_create(&run, "file", &error));
    close(run_create(&run, "run.json", &error)); /* by which a run is known */
    return run;
}

static void expect_ids(const struct record_options *recording, const char *expected) {
    struct buffer ids = {0};
    run_add_ids(&(struct run){.recording = recording}, &ids, ", ");
    assert_true(text_equal(buffer_text(&ids), text_of(expected)));
    buffer_release(&ids);
}

static void processes_and_threads_are_both_named(void **state) {
    const int32_t pids[] = {12, 34}, tids[] = {56};
    expect_ids(&(struct record_options){.pids = pids, .pid_count = 2}, "12, 34");
    expect_ids(&(struct record_options){.tids = tids, .tid_count = 1}, "56");
    expect_ids(&(struct record_options){.pids = pids, .pid_count = 2, .tids = tids, .tid_count = 1},
               "12, 34, 56");
    expect_ids(&(struct record_options){.system_wide = true}, "");
}

static void runs_take_their_name_whole(void **state) {
    char base[] = "/tmp/wick-test-run.XXXXXX", *path = NULL;
    assert_non_null(mkdtemp(base));
    struct record_result enough = {.samples = 200}, few = {.samples = 199};
    struct error error;
    struct run run = begun(base, &enough);
    assert_false(is_there(base, "r"));
    assert_true(run_has_enough(&run));
    assert_true(run_publish(&run, &path, &error));
    assert_true(is_there(base, "r/file"));
    free(path);
    run_release(&run);

    run = begun(base, &few); /* too few: what was published stays */
    assert_false(run_has_enough(&run));
    assert_true(run_reject(&run, &path, &error));
    assert_true(is_there(base, "r.rejected/file"));
    assert_true(is_there(base, "r/file"));
    free(path);
    run_release(&run);

    run = begun(base, &enough); /* again: exchanged, and nothing else is left */
    assert_true(run_publish(&run, &path, &error));
    free(path);
    run_release(&run);
    run = begun(base, &enough); /* given up: gone */
    run_release(&run);
    char command[300];
    snprintf(command, sizeof command, "test \"$(ls -A %s)\" = \"$(printf 'r\\nr.rejected')\"",
             base);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "rm -r %s", base);
    assert_int_equal(system(command), 0);
}

static void leave_working(const char *base, const char *name, uid_t owner) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", base, name);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(chown(path, owner, (gid_t)-1), 0);
    snprintf(path, sizeof path, "%s/%s/file", base, name);
    fclose(fopen(path, "w"));
}

/* What a killed run left is swept, but neither others' directories nor what links lead to. */
static void only_our_own_is_swept(void **state) {
    char base[] = "/tmp/wick-test-run.XXXXXX", link[300];
    bool is_root = geteuid() == 0;
    assert_non_null(mkdtemp(base));
    struct record_result enough = {.samples = 200};
    leave_working(base, ".a.wick-abcdef", geteuid());
    leave_working(base, "b", geteuid());
    snprintf(link, sizeof link, "%s/.b.wick-abcdef", base);
    assert_int_equal(symlink("b", link), 0);
    if (is_root)
        leave_working(base, ".c.wick-abcdef", 12345);
    struct run run = begun(base, &enough);
    assert_false(is_there(base, ".a.wick-abcdef"));
    assert_true(is_there(base, "b/file"));
    assert_int_equal(is_there(base, ".c.wick-abcdef/file"), is_root);
    run_release(&run);
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", base);
    assert_int_equal(system(command), 0);
}

/* What is no run, or another user's, is not replaced; neither is a link followed. */
static void nothing_else_is_replaced(void **state) {
    char base[] = "/tmp/wick-test-run.XXXXXX", path[300];
    bool is_root = geteuid() == 0;
    struct error error;
    assert_non_null(mkdtemp(base));
    leave_working(base, "r", geteuid());
    struct run run = {0};
    assert_false(run_begin(&run, base, "r", &error));
    assert_non_null(strstr(error.message, "is not a run"));
    run_release(&run);
    snprintf(path, sizeof path, "%s/r", base);
    if (is_root) {
        run = (struct run){0};
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        assert_false(run_begin(&run, base, "r", &error));
        assert_non_null(strstr(error.message, "another user"));
        run_release(&run);
    }
    assert_true(is_there(base, "r/file"));
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", base);
    assert_int_equal(system(command), 0);
}

/* While a run is made its directory is renamed, and a link to another has its name: nothing is written or removed there. */
static void a_link_in_its_place_is_not_followed(void **state) {
    char base[] = "/tmp/wick-test-run.XXXXXX", from[300], to[300], *path = NULL;
    struct record_result enough = {.samples = 200};
    struct error error;
    assert_non_null(mkdtemp(base));
    leave_working(base, "victim", geteuid());
    struct run run = begun(base, &enough);
    snprintf(from, sizeof from, "%s/%s", base, run.working);
    snprintf(to, sizeof to, "%s/aside", base);
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(symlink("victim", from), 0);
    assert_true(run_write_text(&run, "report.txt", TEXT("x"), &error));
    assert_true(is_there(base, "aside/report.txt"));
    assert_false(is_there(base, "victim/report.txt"));
    assert_false(run_publish(&run, &path, &error));
    assert_false(is_there(base, "r"));
    run_release(&run);
    assert_true(is_there(base, "victim/file"));
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", base);
    assert_int_equal(system(command), 0);
}

static void names_of_runs_stay_where_they_are(void **state) {
    static const char *const bad[] = {"", ".", "..", "../x", "a/b", ".hidden"};
    struct error error;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct run run = {0};
        assert_false(run_begin(&run, "/tmp", bad[i], &error));
        assert_int_equal(error.kind, ERROR_USAGE);
    }
}

static void events_are_known_by_perfs_names(void **state) {
    struct perf_event_attr attr;
    struct error error;
    assert_true(record_parse_event("cycles:uP", &attr, &error));
    assert_int_equal(attr.type, PERF_TYPE_HARDWARE);
    assert_true(attr.exclude_kernel && !attr.exclude_user && attr.precise_ip == 3);
    assert_true(record_parse_event("LLC-store-misses", &attr, &error));
    assert_int_equal(attr.type, PERF_TYPE_HW_CACHE);
    assert_int_equal(attr.config, 2 | 1 << 8 | 1 << 16);
    assert_true(record_parse_event("r01c2:k", &attr, &error));
    assert_int_equal(attr.config, 0x1c2);
    assert_true(attr.exclude_user);
    assert_false(record_parse_event("no-such-event", &attr, &error));
    assert_non_null(strstr(error.message, "no such event"));
    assert_false(record_parse_event("nobody:knows_this", &attr, &error));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_sha256),
        cmocka_unit_test(measurements_are_named_truthfully),
        cmocka_unit_test(processes_and_threads_are_both_named),
        cmocka_unit_test(runs_take_their_name_whole),
        cmocka_unit_test(only_our_own_is_swept),
        cmocka_unit_test(nothing_else_is_replaced),
        cmocka_unit_test(a_link_in_its_place_is_not_followed),
        cmocka_unit_test(names_of_runs_stay_where_they_are),
        cmocka_unit_test(events_are_known_by_perfs_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
