/* Waits, from hand-built recordings: what no scheduler can be asked to do. Times are in nanoseconds and small. */
#include "profile/profile.h"

#include "perfdata_build.h"

enum {
    SWITCH_OUT = PERF_RECORD_MISC_SWITCH_OUT,
    PREEMPTED = PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
    CLOCK = 1,
    SWITCHES = 2,
    SECOND = 1000000,
    CONTEXT_SWITCH = 1 << 26,
};

static const uint64_t sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                    PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;

/* A clock, every context switch, and an event whose samples are waits; with or without SWITCH records. */
static struct build begin(bool records) {
    struct build build = {0};
    uint64_t flags = BUILD_ID_ALL | (records ? CONTEXT_SWITCH : 0);
    build_event(&build,
                &(struct build_event){.type = PERF_TYPE_SOFTWARE,
                                      .config = PERF_COUNT_SW_CPU_CLOCK,
                                      .sample_type = sample_type,
                                      .flags = flags},
                (uint64_t[]){CLOCK, 0});
    build_event(&build,
                &(struct build_event){.type = PERF_TYPE_SOFTWARE,
                                      .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
                                      .period = 1,
                                      .sample_type = sample_type,
                                      .flags = flags},
                (uint64_t[]){SWITCHES, 0});
    return build;
}

static void sample(struct build *build, uint64_t id, int tid, uint64_t time, uint64_t ip,
                   uint64_t period) {
    size_t start = build_begin(build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    put_u64(&build->data, id);
    put_u64(&build->data, ip);
    put_u32(&build->data, 10);
    put_u32(&build->data, (uint32_t)tid);
    put_u64(&build->data, time);
    put_u64(&build->data, period);
    build_end(build, start);
}

static void trailer(struct build *build, int tid, uint64_t time) {
    put_u32(&build->data, 10);
    put_u32(&build->data, (uint32_t)tid);
    put_u64(&build->data, time);
    put_u64(&build->data, CLOCK);
}

static void switched(struct build *build, int tid, uint64_t time, uint16_t misc) {
    size_t start = build_begin(build, PERF_RECORD_SWITCH, misc);
    trailer(build, tid, time);
    build_end(build, start);
}

static void task(struct build *build, uint32_t type, int tid, uint64_t time) {
    size_t start = build_begin(build, type, 0);
    put_u32(&build->data, 10);
    put_u32(&build->data, 10);
    put_u32(&build->data, (uint32_t)tid);
    put_u32(&build->data, 10);
    put_u64(&build->data, time);
    trailer(build, tid, time);
    build_end(build, start);
}

/* ---- what came out ---- */

struct read {
    struct file file;
    struct buffer bytes;
    struct profile *profile;
    struct error error;
};

static void read_with(struct read *r, struct build *build, struct profile_options options) {
    *r = (struct read){.bytes = build_file(build)};
    options.no_names = true;
    options.objects.kallsyms = "/dev/null";
    assert_true(build_open(&r->file, r->bytes.items, r->bytes.count));
    r->profile = profile_read(&r->file, &options, &r->error);
    if (!r->profile)
        fail_msg("%s", r->error.message);
}

static void read_close(struct read *r) {
    profile_free(r->profile);
    file_close(&r->file);
    buffer_release(&r->bytes);
}

/* What was counted on that address (0: without a stack) in that state. */
static uint64_t weight(const struct read *r, uint64_t ip, uint8_t state) {
    const struct tree *tree = r->profile->tree;
    uint64_t sum = 0;
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        uint32_t location = tree->nodes.items[cell->node].location;
        if (tree->series.items[cell->series].state == state &&
            tree->locations.items[location].address == ip)
            sum += cell->weight;
    }
    return sum;
}

static uint64_t weight_of_thread(const struct read *r, int tid) {
    const struct tree *tree = r->profile->tree;
    uint64_t sum = 0;
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct series *series = &tree->series.items[tree->cells.items[i].series];
        if (tree->threads.items[series->thread].tid == tid)
            sum += tree->cells.items[i].weight;
    }
    return sum;
}

static uint64_t noted(const struct read *r, const char *name) {
    const struct notes *notes = &r->profile->tree->notes;
    for (size_t i = 0; i < notes->count; i++)
        if (strcmp(notes->items[i].kind->name, name) == 0)
            return notes->items[i].count;
    return 0;
}

static const struct profile_options waiting = {.times = TIMES_WAITING},
                                    both = {.times = TIMES_BOTH};

/* ---- tests ---- */

static void test_states(void **state) {
    struct build build = begin(true);
    switched(&build, 11, 1 * SECOND, 0);
    sample(&build, SWITCHES, 11, 2 * SECOND, 0x100, 1);
    switched(&build, 11, 2 * SECOND + 10, SWITCH_OUT);
    switched(&build, 11, 5 * SECOND, 0);
    sample(&build, SWITCHES, 11, 6 * SECOND, 0x200, 1);
    switched(&build, 11, 6 * SECOND + 10, PREEMPTED);
    switched(&build, 11, 6 * SECOND + 500, 0);
    task(&build, PERF_RECORD_EXIT, 11, 7 * SECOND);
    struct read r;
    read_with(&r, &build, waiting);
    assert_int_equal(weight(&r, 0x100, STATE_SLEEP), 3 * (uint64_t)SECOND);
    assert_int_equal(weight(&r, 0x200, STATE_PREEMPTED), 500);
    assert_int_equal(weight_of_thread(&r, 11), 3 * (uint64_t)SECOND + 500);
    assert_int_equal(r.profile->tree->notes.count, 0);
    read_close(&r);
    read_with(&r, &build, (struct profile_options){.times = TIMES_WAITING, .least_wait = 501});
    assert_int_equal(weight_of_thread(&r, 11), 3 * (uint64_t)SECOND);
    read_close(&r);
    read_with(&r, &build, (struct profile_options){.times = TIMES_WAITING, .most_wait = 500});
    assert_int_equal(weight_of_thread(&r, 11), 500);
    read_close(&r);
    build_release(&build);
}

/* Buffers are written one after the other, so a thread that moves is torn apart in the file; the record may stand before the sample. */
static void test_any_order_in_the_file(void **state) {
    struct build build = begin(true);
    switched(&build, 11, 5 * SECOND, 0);
    switched(&build, 11, 2 * SECOND, SWITCH_OUT);
    sample(&build, SWITCHES, 11, 2 * SECOND + 3, 0x100, 1);
    struct read r;
    read_with(&r, &build, waiting);
    assert_int_equal(weight(&r, 0x100, STATE_SLEEP), 3 * (uint64_t)SECOND);
    read_close(&r);
    build_release(&build);
}

/* Time on the CPU goes to the samples in proportion, and not a nanosecond is lost. */
static void test_wall_adds_up(void **state) {
    struct build build = begin(true);
    switched(&build, 11, 100, 0);
    sample(&build, CLOCK, 11, 200, 0x100, 1);
    sample(&build, CLOCK, 11, 300, 0x200, 1);
    sample(&build, CLOCK, 11, 400, 0x300, 1);
    sample(&build, SWITCHES, 11, 1100, 0x400, 1);
    switched(&build, 11, 2100, 0);
    task(&build, PERF_RECORD_EXIT, 11, 2101);
    switched(&build, 12, 100, 0); /* and one that no sample was taken of */
    sample(&build, SWITCHES, 12, 177, 0x500, 1);
    switched(&build, 12, 200, 0);
    task(&build, PERF_RECORD_EXIT, 12, 300);
    struct read r;
    read_with(&r, &build, both);
    assert_int_equal(weight_of_thread(&r, 11), 2001);
    assert_int_equal(weight(&r, 0x400, STATE_SLEEP), 1000);
    assert_int_equal(weight(&r, 0x100, STATE_ON), 333);
    assert_int_equal(weight(&r, 0x200, STATE_ON), 334);
    assert_int_equal(weight(&r, 0x300, STATE_ON), 334);
    assert_int_equal(weight_of_thread(&r, 12), 200);
    assert_int_equal(weight(&r, 0, STATE_ON), 177);
    read_close(&r);
    struct profile_options part = both;
    part.filter = (struct filter){.has_time = true, .time_from = 250, .time_to = 1500};
    read_with(&r, &build, part);
    assert_int_equal(weight_of_thread(&r, 11), 1250);
    assert_int_equal(weight(&r, 0x100, STATE_ON), 0);
    assert_int_equal(weight(&r, 0x200, STATE_ON), 425);
    assert_int_equal(weight(&r, 0x400, STATE_SLEEP), 400);
    read_close(&r);
    build_release(&build);
}

/* ---- several times, read at once ---- */

static int order_lines(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All that a tree counts, and of which events, a line each in order. */
static struct buffer told(const struct tree *tree) {
    VECTOR(char *) lines = {0};
    struct buffer all = {0};
    for (size_t i = 1; i < tree->events.count; i++)
        buffer_printf(&all, "event %s in %s\n",
                      strings_get(tree->strings, tree->events.items[i].name).data,
                      strings_get(tree->strings, tree->events.items[i].unit).data);
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        const struct series *series = &tree->series.items[cell->series];
        uint32_t location = tree->nodes.items[cell->node].location;
        struct buffer line = {0};
        buffer_printf(&line, "%d %d %d %llx: %llu %llu", (int)series->event,
                      tree->threads.items[series->thread].tid, series->state,
                      (unsigned long long)tree->locations.items[location].address,
                      (unsigned long long)cell->samples, (unsigned long long)cell->weight);
        buffer_add_char(&line, 0);
        vector_push(&lines, line.items);
    }
    if (lines.count)
        qsort(lines.items, lines.count, sizeof *lines.items, order_lines);
    for (size_t i = 0; i < lines.count; i++) {
        buffer_printf(&all, "%s\n", lines.items[i]);
        free(lines.items[i]);
    }
    vector_release(&lines);
    for (size_t i = 0; i < tree->samples.count; i++)
        buffer_printf(&all, "at %llu: %llu\n", (unsigned long long)tree->samples.items[i].time,
                      (unsigned long long)tree->samples.items[i].weight);
    buffer_add_char(&all, 0);
    return all;
}

/* The notes of all times have those that a reading for one of them alone has. */
static void notes_are(const struct notes *of_all, enum times times, struct notes *wanted) {
    struct notes given = {0};
    notes_merge(&given, of_all);
    notes_choose(&given, times_view(times), 0);
    notes_sort(&given);
    notes_sort(wanted);
    assert_int_equal(given.count, wanted->count);
    for (size_t i = 0; i < wanted->count; i++) {
        assert_string_equal(given.items[i].kind->name, wanted->items[i].kind->name);
        assert_int_equal(given.items[i].count, wanted->items[i].count);
    }
    notes_release(&given);
}

/* Whatever time is shown, a view of the whole has what a reading for it alone has. */
static void views_are_readings(struct build *build, struct filter filter) {
    for (enum times shown = TIMES_RUNNING; shown <= TIMES_BOTH; shown++) {
        struct read whole;
        read_with(&whole, build,
                  (struct profile_options){
                      .times = shown, .each = true, .keep_samples = true, .filter = filter});
        for (enum times times = TIMES_RUNNING; times <= TIMES_BOTH; times++) {
            struct read alone;
            read_with(
                &alone, build,
                (struct profile_options){.times = times, .keep_samples = true, .filter = filter});
            struct tree *view = tree_view_new(whole.profile->tree, times);
            struct buffer given = told(view), wanted = told(alone.profile->tree);
            assert_string_equal(given.items, wanted.items);
            notes_are(&whole.profile->tree->notes, times, &alone.profile->tree->notes);
            assert_true(tree_knows(whole.profile->tree, times));
            buffer_release(&given);
            buffer_release(&wanted);
            tree_view_free(view);
            read_close(&alone);
        }
        read_close(&whole);
    }
}

static void test_each_time_at_once(void **state) {
    struct build build = begin(true);
    switched(&build, 11, 100, 0);
    sample(&build, CLOCK, 11, 200, 0x100, 3);
    sample(&build, CLOCK, 11, 300, 0x200, 5);
    sample(&build, SWITCHES, 11, 1100, 0x100, 1); /* it runs and waits in one place */
    switched(&build, 11, 2100, 0);
    sample(&build, CLOCK, 11, 2101, 0x100, 3);
    task(&build, PERF_RECORD_EXIT, 11, 2102);
    sample(&build, CLOCK, 11, 2103, 0x300, 9); /* of no thread's time */
    switched(&build, 12, 100, 0);
    sample(&build, SWITCHES, 12, 177, 0x500, 1);
    switched(&build, 12, 200, 0);
    switched(&build, 12, 300, SWITCH_OUT);
    task(&build, PERF_RECORD_EXIT, 12, 400);
    views_are_readings(&build, (struct filter){0});
    views_are_readings(&build,
                       (struct filter){.has_time = true, .time_from = 250, .time_to = 1500});
    views_are_readings(&build, (struct filter){.tids = (int32_t[]){11}, .tid_count = 1});
    build_release(&build);
}

static void test_each_time_where_nothing_waits(void **state) {
    struct build build = build_one(sample_type);
    sample(&build, 7, 11, 150, 0x100, 2);
    struct read r;
    read_with(&r, &build, (struct profile_options){.each = true});
    assert_int_equal(weight(&r, 0x100, STATE_ON), 2);
    assert_false(tree_knows(r.profile->tree, TIMES_WAITING));
    assert_false(tree_knows(r.profile->tree, TIMES_BOTH));
    read_close(&r);
    build_release(&build);
}

static void test_what_is_missing(void **state) {
    struct build build = begin(true);
    switched(&build, 11, 100, 0); /* a switch-in was lost */
    sample(&build, SWITCHES, 11, 1000, 0x100, 1);
    switched(&build, 11, 1010, SWITCH_OUT);
    sample(&build, SWITCHES, 11, 201000, 0x200, 1);
    switched(&build, 11, 201010, SWITCH_OUT);
    switched(&build, 11, 202000, 0);
    switched(&build, 11, 300000, SWITCH_OUT); /* a sample was lost */
    switched(&build, 11, 300700, 0);
    sample(&build, SWITCHES, 11, 400000, 0x300, 1); /* it sleeps when the recording ends */
    sample(&build, CLOCK, 12, 400050, 0x900, 1);
    struct read r;
    read_with(&r, &build, waiting);
    assert_int_equal(weight(&r, 0x100, STATE_SLEEP), 200000);
    assert_int_equal(weight(&r, 0x200, STATE_SLEEP), 1000);
    assert_int_equal(weight(&r, 0, STATE_SLEEP), 700);
    assert_int_equal(weight(&r, 0x300, STATE_SLEEP), 50);
    assert_int_equal(noted(&r, "waits-end-unknown"), 1);
    assert_int_equal(noted(&r, "waits-without-stack"), 1);
    assert_int_equal(noted(&r, "waits-open"), 1);
    read_close(&r);
    build_release(&build);
}

/* Without SWITCH records a sample shows that the thread runs again, but not one that interrupts the switch. */
static void test_without_records(void **state) {
    struct build build = begin(false);
    sample(&build, SWITCHES, 11, 1000, 0x100, 1);
    sample(&build, CLOCK, 11, 1500, 0x900, 1);
    sample(&build, CLOCK, 11, 801000, 0x900, 1);
    sample(&build, SWITCHES, 11, 1000000, 0x200, 1);
    sample(&build, SWITCHES, 11, 1500000, 0x300, 1);
    task(&build, PERF_RECORD_EXIT, 11, 1500100);
    struct read r;
    read_with(&r, &build, waiting);
    assert_int_equal(weight(&r, 0x100, STATE_SLEEP), 800000);
    assert_int_equal(weight(&r, 0x200, STATE_SLEEP), 500000);
    assert_int_equal(noted(&r, "waits-end-unknown"), 3);
    read_close(&r);
    build_release(&build);
}

/* A tid that is used again is another thread; what a dead one leaves is no wait. */
static void test_lives(void **state) {
    struct build build = begin(true);
    switched(&build, 11, 100, 0);
    task(&build, PERF_RECORD_EXIT, 11, 200);
    sample(&build, SWITCHES, 11, 210, 0x100, 1);
    task(&build, PERF_RECORD_FORK, 11, 5000);
    switched(&build, 11, 5100, 0);
    sample(&build, SWITCHES, 11, 5200, 0x200, 1);
    switched(&build, 11, 5250, 0);
    task(&build, PERF_RECORD_EXIT, 11, 5300);
    switched(&build, 12, 100, 0); /* its exit was lost */
    sample(&build, SWITCHES, 12, 300, 0x300, 1);
    task(&build, PERF_RECORD_FORK, 12, 9000);
    struct read r;
    read_with(&r, &build, both);
    assert_int_equal(weight_of_thread(&r, 12), 200);
    assert_int_equal(weight(&r, 0x100, STATE_SLEEP), 0);
    assert_int_equal(weight(&r, 0x200, STATE_SLEEP), 50);
    assert_int_equal(weight_of_thread(&r, 11), 100 + 200);
    assert_int_equal(noted(&r, "waits-open"), 0);
    read_close(&r);
    build_release(&build);
}

/* Without being asked for, waits stay out of what ran, and are said to be there. */
static void test_no_leak(void **state) {
    struct build build = begin(true);
    sample(&build, SWITCHES, 11, 150, 0x100, 1);
    sample(&build, CLOCK, 11, 200, 0x200, 7);
    struct read r;
    read_with(&r, &build, (struct profile_options){0});
    assert_int_equal(weight(&r, 0x200, STATE_ON), 7);
    assert_int_equal(weight(&r, 0x100, STATE_ON), 0);
    assert_int_equal(noted(&r, "waits-recorded"), 1);
    assert_int_equal(noted(&r, "events-left-out"), 0);
    read_close(&r);
    build_release(&build);
}

/* What `perf record --off-cpu` writes: sums at the end, plain (Linux 5.19 to 6.15) or wrapped into raw data (since 6.16). */
static void test_perf_sums(void **state) {
    for (int wrapped = 0; wrapped < 2; wrapped++) {
        struct build build = begin(false);
        uint64_t type = sample_type | PERF_SAMPLE_CALLCHAIN | (wrapped ? PERF_SAMPLE_RAW : 0);
        build.attributes.count = build.ids.count = build.attribute_count = 0; /* no switches */
        build_event(&build,
                    &(struct build_event){.type = PERF_TYPE_SOFTWARE,
                                          .sample_type = sample_type,
                                          .flags = BUILD_ID_ALL},
                    (uint64_t[]){CLOCK, 0});
        build_event(&build,
                    &(struct build_event){.type = PERF_TYPE_SOFTWARE,
                                          .config = PERF_COUNT_SW_BPF_OUTPUT,
                                          .period = 1,
                                          .sample_type = type,
                                          .flags = BUILD_ID_ALL},
                    (uint64_t[]){SWITCHES, 0});
        struct buffer name = {0};
        put_u32(&name, 2);
        put_u32(&name, 0);
        for (uint64_t id = CLOCK; id <= SWITCHES; id++) {
            put_u32(&name, 1);
            put_u32(&name, 16);
            put_string(&name, id == CLOCK ? "cpu-clock" : "offcpu-time", 16);
            put_u64(&name, id);
        }
        build_feature(&build, FEATURE_EVENT_DESC, &name);
        sample(&build, CLOCK, 11, 1000, 0x900, 33);
        size_t start = build_begin(&build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
        put_u64(&build.data, SWITCHES);
        put_u64(&build.data, 0x100);
        put_u32(&build.data, 10);
        put_u32(&build.data, wrapped ? 99 : 11);
        put_u64(&build.data, ~0ull << 32);
        put_u64(&build.data, wrapped ? 1 : 5000);
        put_u64(&build.data, wrapped ? 0 : 2);
        if (wrapped) {
            put_u32(&build.data, 4 + 8 * 6);
            put_u32(&build.data, 10);
            put_u32(&build.data, 11);
            put_u64(&build.data, 5000);
            put_u64(&build.data, 2);
        }
        put_u64(&build.data, PERF_CONTEXT_USER);
        put_u64(&build.data, 0x100);
        if (wrapped) {
            put_u64(&build.data, 0); /* cgroup */
            put_u32(&build.data, 0);
        }
        build_end(&build, start);
        struct read r;
        read_with(&r, &build, waiting);
        assert_int_equal(weight(&r, 0x100, STATE_SLEEP), 5000);
        assert_int_equal(weight_of_thread(&r, 11), 5000);
        read_close(&r);
        read_with(&r, &build, both);
        assert_int_equal(weight(&r, 0x900, STATE_ON), 33);
        assert_int_equal(weight_of_thread(&r, 11), 5033);
        read_close(&r);
        read_with(&r, &build, (struct profile_options){.times = TIMES_WAITING, .least_wait = 5001});
        assert_int_equal(weight_of_thread(&r, 11), 0);
        assert_int_equal(noted(&r, "waits-summed-up"), 1);
        read_close(&r);
        buffer_release(&name);
        build_release(&build);
    }
}

/* wick's own sums, and who ended them, by the same time; a second wait of that time has no waker. */
static void test_a_waker_is_taken_once(void **state) {
    struct build build = {0};
    struct buffer names = {0};
    put_u32(&names, 2);
    put_u32(&names, 0);
    for (uint64_t id = CLOCK; id <= SWITCHES; id++) {
        build_event(&build,
                    &(struct build_event){.type = PERF_TYPE_SOFTWARE,
                                          .config = PERF_COUNT_SW_DUMMY,
                                          .period = 1,
                                          .sample_type = sample_type,
                                          .flags = BUILD_ID_ALL},
                    (uint64_t[]){id, 0});
        put_u32(&names, 1);
        put_u32(&names, 16);
        put_string(&names, id == CLOCK ? "offcpu-time" : "offcpu-waker", 16);
        put_u64(&names, id);
    }
    build_feature(&build, FEATURE_EVENT_DESC, &names);
    sample(&build, CLOCK, 11, 100, 0x100, 5);
    sample(&build, CLOCK, 12, 100, 0x200, 7);
    sample(&build, SWITCHES, 13, 100, 0x300, 5);
    struct read r;
    read_with(&r, &build, (struct profile_options){.times = TIMES_WAITING, .wakers = true});
    assert_int_equal(weight(&r, 0x100, STATE_SLEEP), 0); /* below it stands who ended it */
    assert_int_equal(weight(&r, 0x200, STATE_SLEEP), 7);
    assert_int_equal(weight_of_thread(&r, 11), 5);
    read_close(&r);
    buffer_release(&names);
    build_release(&build);
}

static void test_nothing_known(void **state) {
    struct build build = build_one(sample_type);
    sample(&build, 7, 11, 150, 0x100, 1);
    struct read r = {.bytes = build_file(&build)};
    assert_true(build_open(&r.file, r.bytes.items, r.bytes.count));
    assert_null(profile_read(&r.file, &waiting, &r.error));
    assert_non_null(strstr(r.error.message, "does not say when threads waited"));
    read_close(&r);
    build_release(&build);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_any_order_in_the_file),
        cmocka_unit_test(test_wall_adds_up),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_without_records),
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_no_leak),
        cmocka_unit_test(test_nothing_known),
        cmocka_unit_test(test_each_time_at_once),
        cmocka_unit_test(test_each_time_where_nothing_waits),
        cmocka_unit_test(test_perf_sums),
        cmocka_unit_test(test_a_waker_is_taken_once),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
