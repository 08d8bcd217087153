/* System calls, from hand-built recordings: lost beginnings and ends, calls that never return, and what a signal does to a number. */
#include "profile/profile.h"

#include <asm/unistd.h>

#include "perfdata_build.h"

enum { ENTER = 1, EXIT = 2, RAW_SIZE = 28 };

static const uint64_t sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                    PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                                    PERF_SAMPLE_RAW;

static const struct build_event tracepoint = {
    .type = PERF_TYPE_TRACEPOINT, .period = 1, .sample_type = sample_type, .flags = BUILD_ID_ALL};

static void describe(struct buffer *feature, const char *name, uint64_t id) {
    put_u32(feature, tracepoint.type);
    put_u32(feature, 128);
    put_zeroes(feature, 120);
    put_u32(feature, 1);
    put_u32(feature, 64);
    put_string(feature, name, 64);
    put_u64(feature, id);
}

static struct build begin(void) {
    struct build build = {0};
    struct buffer feature = {0};
    build_event(&build, &tracepoint, (uint64_t[]){ENTER, 0});
    build_event(&build, &tracepoint, (uint64_t[]){EXIT, 0});
    put_u32(&feature, 2);
    put_u32(&feature, 128);
    describe(&feature, SYSCALLS_ENTER, ENTER);
    describe(&feature, SYSCALLS_EXIT, EXIT);
    build_feature(&build, FEATURE_EVENT_DESC, &feature);
    buffer_release(&feature);
    return build;
}

static void call(struct build *build, uint64_t id, int tid, uint64_t time, int64_t number,
                 int64_t value) {
    size_t start = build_begin(build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    put_u64(&build->data, id);
    put_u64(&build->data, 0x100);
    put_u32(&build->data, 10);
    put_u32(&build->data, (uint32_t)tid);
    put_u64(&build->data, time);
    put_u64(&build->data, 0); /* the CPU */
    put_u64(&build->data, 1);
    put_u32(&build->data, RAW_SIZE);
    put_zeroes(&build->data, 8);
    put_u64(&build->data, (uint64_t)number);
    put_u64(&build->data, (uint64_t)value);
    put_zeroes(&build->data, RAW_SIZE - 24);
    build_end(build, start);
}

struct read {
    struct file file;
    struct buffer bytes;
    struct profile *profile;
    struct syscalls *syscalls;
};

static void read_calls(struct read *r, struct build *build) {
    static const char *events[] = {SYSCALLS_ENTER};
    struct profile_options options = {.no_names = true,
                                      .keep_samples = true,
                                      .objects.kallsyms = "/dev/null",
                                      .filter.events = events,
                                      .filter.event_count = 1};
    struct error error = {0};
    *r = (struct read){.bytes = build_file(build)};
    build_release(build);
    assert_true(build_open(&r->file, r->bytes.items, r->bytes.count));
    r->profile = profile_read(&r->file, &options, &error);
    if (!r->profile)
        fail_msg("%s", error.message);
    r->syscalls = profile_time_syscalls(r->profile, &error);
    assert_non_null(r->syscalls);
}

static void read_close(struct read *r) {
    syscalls_free(r->syscalls);
    profile_free(r->profile);
    file_close(&r->file);
    buffer_release(&r->bytes);
}

static struct syscall_row row(const struct read *r, int64_t number) {
    for (size_t i = 0; i < r->syscalls->rows.count; i++)
        if (r->syscalls->rows.items[i].number == number)
            return r->syscalls->rows.items[i];
    return (struct syscall_row){0};
}

static uint64_t noted(const struct read *r, const char *name) {
    const struct notes *notes = &r->profile->tree->notes;
    for (size_t i = 0; i < notes->count; i++)
        if (strcmp(notes->items[i].kind->name, name) == 0)
            return notes->items[i].count;
    return 0;
}

static void calls_are_paired_by_thread(void **state) {
    struct build build = begin();
    struct read r;
    call(&build, ENTER, 11, 100, __NR_read, 0);
    call(&build, ENTER, 12, 110, __NR_read, 0);
    call(&build, EXIT, 11, 130, __NR_read, 5);
    call(&build, EXIT, 12, 210, __NR_read, -9);
    call(&build, ENTER, 11, 300, __NR_write, 0);
    call(&build, EXIT, 11, 307, __NR_write, 1);
    read_calls(&r, &build);
    struct syscall_row reads = row(&r, __NR_read), writes = row(&r, __NR_write);
    assert_true(reads.calls == 2 && reads.errors == 1 && reads.total == 130 && reads.worst == 100);
    assert_true(writes.calls == 1 && writes.errors == 0 && writes.total == 7);
    assert_true(text_equal(reads.name, TEXT("read")));
    assert_int_equal(r.syscalls->rows.items[0].number, __NR_read); /* the largest first */
    uint64_t weight = 0, samples = 0;
    for (size_t i = 1; i < r.profile->tree->cells.count; i++) {
        weight += r.profile->tree->cells.items[i].weight;
        samples += r.profile->tree->cells.items[i].samples;
    }
    assert_true(weight == 137 && samples == 3 && r.profile->tree->samples.count == 3);
    assert_int_equal(noted(&r, "syscalls-torn") + noted(&r, "syscalls-unfinished"), 0);
    assert_int_equal(noted(&r, "events-left-out"), 0);
    read_close(&r);
}

static void torn_calls_are_left_out(void **state) {
    struct build build = begin();
    struct read r;
    call(&build, EXIT, 11, 50, __NR_read, 3); /* began before the recording */
    call(&build, ENTER, 11, 100, __NR_read, 0);
    call(&build, ENTER, 11, 200, __NR_write, 0); /* the read's end was lost */
    call(&build, EXIT, 11, 230, __NR_close,
         0); /* and so were the write's end, the close's beginning */
    call(&build, ENTER, 11, 300, __NR_write, 0);
    call(&build, EXIT, 11, 305, __NR_write, 1);
    call(&build, ENTER, 12, 400, __NR_read, 0); /* still reading */
    read_calls(&r, &build);
    assert_true(row(&r, __NR_write).calls == 1 && row(&r, __NR_write).total == 5);
    assert_true(row(&r, __NR_read).calls == 0 && row(&r, __NR_close).calls == 0);
    assert_int_equal(noted(&r, "syscalls-torn"), 3);
    assert_int_equal(noted(&r, "syscalls-unfinished"), 1);
    assert_int_equal(r.profile->tree->samples.count, 1);
    read_close(&r);
}

/* The read's end, a whole write and the next read's beginning are gone: what looks like one long read is none. */
static void calls_across_a_loss_are_left_out(void **state) {
    struct build build = begin();
    struct read r;
    call(&build, ENTER, 11, 100, __NR_read, 0);
    size_t start = build_begin(&build, PERF_RECORD_LOST, 0);
    put_u64(&build.data, ENTER);
    put_u64(&build.data, 4);
    put_u32(&build.data, 10); /* the trailer: whose, when, on which CPU, of which event */
    put_u32(&build.data, 11);
    put_u64(&build.data, 500);
    put_u32(&build.data, 0);
    put_u32(&build.data, 0);
    put_u64(&build.data, ENTER);
    build_end(&build, start);
    call(&build, EXIT, 11, 900, __NR_read, 1);
    call(&build, ENTER, 11, 1000, __NR_read, 0);
    call(&build, EXIT, 11, 1010, __NR_read, 1);
    read_calls(&r, &build);
    assert_true(row(&r, __NR_read).calls == 1 && row(&r, __NR_read).worst == 10);
    assert_int_equal(noted(&r, "syscalls-torn"), 1);
    read_close(&r);
}

static void calls_that_are_special(void **state) {
    struct build build = begin();
    struct read r;
    call(&build, ENTER, 11, 100, __NR_clone, 0);
    call(&build, EXIT, 12, 120, __NR_clone, 0); /* the child returns from what it never began */
    call(&build, EXIT, 11, 130, __NR_clone, 12);
    call(&build, ENTER, 11, 200, __NR_rt_sigreturn, 0);
    call(&build, EXIT, 11, 210, -1, 0); /* the number is gone */
    call(&build, ENTER, 11, 300, __NR_read, 0);
    call(&build, EXIT, 11, 340, __NR_read, -512); /* to be restarted: the program sees no error */
    call(&build, ENTER, 11, 400, 100000, 0);      /* nobody knows this one */
    call(&build, EXIT, 11, 401, 100000, -38);
    call(&build, ENTER, 11, 500, __NR_exit_group, 0);
    read_calls(&r, &build);
    assert_true(row(&r, __NR_clone).calls == 1 && row(&r, __NR_clone).total == 30);
    assert_true(row(&r, __NR_rt_sigreturn).calls == 1);
    assert_true(row(&r, __NR_read).calls == 1 && row(&r, __NR_read).errors == 0);
    assert_true(text_equal(row(&r, 100000).name, TEXT("syscall_100000")));
    assert_int_equal(row(&r, 100000).errors, 1);
    assert_int_equal(noted(&r, "syscalls-torn") + noted(&r, "syscalls-unfinished"), 0);
    read_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_paired_by_thread),
        cmocka_unit_test(torn_calls_are_left_out),
        cmocka_unit_test(calls_across_a_loss_are_left_out),
        cmocka_unit_test(calls_that_are_special),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
