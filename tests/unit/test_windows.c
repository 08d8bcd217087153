/* A recording in windows: what is added up over them is what one file of the same records gives, and memory follows what lives. */
#include "folding.h"
#include "perfdata_build.h"

#include <unistd.h>

#include "profile/profile.h"
#include "record/record.h"

/* ---- stacks, added up ---- */

struct sums {
    struct strings *stacks;
    VECTOR(uint64_t) weights; /* beside them, from 1 on */
};

static void sums_add(struct sums *sums, const struct profile *profile) {
    const struct naming_options naming = {0};
    char *text = folded_tree(profile->tree, &naming, &(struct flame_options){0});
    for (struct text rest = text_of(text); rest.length;) {
        struct text line = text_take_line(&rest);
        size_t space = text_find_last(line, ' ');
        uint64_t weight;
        assert_true(space != SIZE_MAX && text_to_u64(text_from(line, space + 1), &weight));
        uint32_t stack = strings_add(sums->stacks, text_upto(line, space));
        while (sums->weights.count <= stack)
            vector_push(&sums->weights, 0);
        sums->weights.items[stack] += weight;
    }
    free(text);
}

static void sums_release(struct sums *sums) {
    strings_free(sums->stacks);
    vector_release(&sums->weights);
}

static void same_sums(const struct sums *a, const struct sums *b) {
    assert_int_equal(strings_count(a->stacks), strings_count(b->stacks));
    for (uint32_t i = 1; i <= strings_count(a->stacks); i++) {
        struct text stack = strings_get(a->stacks, i);
        uint32_t other = strings_find(b->stacks, stack);
        if (!other || a->weights.items[i] != b->weights.items[other])
            fail_msg("%.*s: %llu and %llu", TEXT_ARGS(stack),
                     (unsigned long long)a->weights.items[i],
                     (unsigned long long)(other ? b->weights.items[other] : 0));
    }
}

/* ---- a recording that goes on ---- */

struct live {
    struct profile_stream *stream;
    struct sums sums;
    struct buffer
        whole; /* one file: the first window, and the records of all others behind its own */
    unsigned windows;
    uint64_t samples;
};

static bool take_file(struct live *live, const struct file *window, struct error *error) {
    uint64_t start = load_u64(window->data + 40), size = load_u64(window->data + 48);
    if (!live->windows++)
        buffer_add(&live->whole, (struct text){(const char *)window->data, start});
    buffer_add(&live->whole, (struct text){(const char *)window->data + start, size});
    struct profile *profile = profile_stream_next(live->stream, window, error);
    if (!profile)
        return false;
    live->samples += profile->sample_count;
    sums_add(&live->sums, profile);
    profile_free(profile);
    return true;
}

static bool take_window(void *context, int window, struct error *error) {
    struct file file;
    if (!file_open_descriptor(&file, window, "window", NULL, error))
        return false;
    bool fine = take_file(context, &file, error);
    file_close(&file);
    return fine;
}

static void read_whole(struct live *live, const struct profile_options *options,
                       struct sums *sums) {
    uint64_t start = load_u64(live->whole.items + 40), size = live->whole.count - start;
    memcpy(live->whole.items + 48, &size, sizeof size);
    memset(live->whole.items + 72, 0, 32); /* no features */
    struct file file = {
        .path = (char *)"whole", .data = (uint8_t *)live->whole.items, .size = live->whole.count};
    struct error error = {0};
    struct profile *profile = profile_read(&file, options, &error);
    if (!profile)
        fail_msg("%s", error.message);
    assert_int_equal(profile->sample_count, live->samples);
    sums_add(sums, profile);
    profile_free(profile);
}

/* Processes and threads come and go, exec, and load libraries, all the time; so that some do at the borders. */
static const char load[] =
    "spin() { i=0; while [ $i -lt $1 ]; do i=$((i+1)); done; }; "
    "for n in 1 2 3; do spin 10000 & sh -c 'i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; "
    "exec dd if=/dev/zero of=/dev/null bs=64k count=2000 2>/dev/null' & "
    "ls -R /usr/share/doc > /dev/null; seq 1 30000 | sort -R | gzip > /dev/null; done; wait";

static void run_live(const struct record_options *how, void look(const struct sums *sums)) {
    char *command[] = {(char *)"sh", (char *)"-c", (char *)load, NULL};
    struct record_options options = *how;
    const struct profile_options reading = {0};
    struct live live = {.stream = profile_stream_new(&reading), .sums = {strings_new()}};
    struct sums sums = {strings_new()};
    struct record_result result;
    struct error error = {0};
    options.command = how->command ? how->command : command;
    options.on_window = take_window;
    options.window_context = &live;
    options.window = 120000000;
    bool fine = record_run(&options, &result, &error);
    if (!fine && error.kind == ERROR_DENIED) {
        print_message("%s\n", error.message);
        skip();
    }
    if (!fine)
        fail_msg("%s", error.message);
    assert_true(live.windows > 2 && live.samples > 20);
    assert_int_equal(result.samples, live.samples);
    read_whole(&live, &reading, &sums);
    same_sums(&live.sums, &sums);
    same_sums(&sums, &live.sums);
    if (look)
        look(&live.sums);
    sums_release(&live.sums);
    sums_release(&sums);
    buffer_release(&live.whole);
    profile_stream_free(live.stream);
    record_result_release(&result);
}

static void test_windows_add_up(void **state) {
    run_live(&(struct record_options){.frequency = 499,
                                      .call_graph = CALL_GRAPH_DWARF,
                                      .stack_size = 8192},
             NULL);
}

static void test_frame_pointers(void **state) {
    run_live(&(struct record_options){.frequency = 1999, .call_graph = CALL_GRAPH_FP}, NULL);
}

/* What the interpreter ran is in each window: all but the beginning, until it is found. */
static void look_for_python(const struct sums *sums) {
    uint64_t with = 0, all = 0;
    for (uint32_t i = 1; i <= strings_count(sums->stacks); i++) {
        all += sums->weights.items[i];
        if (text_search(strings_get(sums->stacks, i), TEXT(";spins_here")) != SIZE_MAX)
            with += sums->weights.items[i];
    }
    if (!with && geteuid() != 0)
        skip();
    assert_true(with > all / 2);
}

static void test_python(void **state) {
    static const char program[] =
        "import time\ndef spins_here():\n  end = time.process_time() + 0.6\n  "
        "while time.process_time() < end: pass\nspins_here()";
    char *command[] = {(char *)"python3", (char *)"-c", (char *)program, NULL};
    run_live(&(struct record_options){.frequency = 499,
                                      .command = command,
                                      .call_graph = CALL_GRAPH_DWARF,
                                      .stack_size = 8192},
             look_for_python);
}

/* ---- what is made up ---- */

/* Whoever has something against a window ends the recording. */
static bool refuse(void *context, int window, struct error *error) {
    return error_set(error, ERROR_INPUT, "enough");
}

static void test_refused(void **state) {
    char *command[] = {(char *)"sleep", (char *)"20", NULL};
    struct record_options options = {.frequency = 99,
                                     .command = command,
                                     .call_graph = CALL_GRAPH_FP,
                                     .window = 50000000,
                                     .on_window = refuse};
    struct record_result result;
    struct error error = {0};
    bool fine = record_run(&options, &result, &error);
    record_result_release(&result);
    if (error.kind == ERROR_DENIED)
        skip();
    assert_false(fine);
    assert_string_equal(error.message, "enough");
}

static void put_task(struct build *build, uint32_t type, uint64_t time, uint32_t pid) {
    size_t record = build_begin(build, type, 0);
    put_u32(&build->data, pid);
    put_u32(&build->data, 1);
    put_u32(&build->data, pid);
    put_u32(&build->data, 1);
    put_u64(&build->data, time);
    put_u64(&build->data, time); /* trailer */
    build_end(build, record);
}

static void put_mapping(struct build *build, uint64_t time, uint32_t pid, const char *path) {
    size_t record = build_begin(build, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER);
    put_u32(&build->data, pid);
    put_u32(&build->data, pid);
    put_u64(&build->data, 0x10000);
    put_u64(&build->data, 0x1000);
    put_u64(&build->data, 0);
    put_string(&build->data, path, 40);
    put_u64(&build->data, time);
    build_end(build, record);
}

/* Thousands of processes, each with a program of its own, in every window; one lives on. */
static struct buffer crowded_window(uint64_t *time, unsigned processes) {
    struct build build = {0};
    build_event(&build,
                &(struct build_event){.type = PERF_TYPE_SOFTWARE,
                                      .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME,
                                      .flags = BUILD_ID_ALL},
                NULL);
    if (*time == 1)
        put_mapping(&build, *time, 1, "/nowhere/lasting");
    for (unsigned i = 0; i < processes; i++) {
        char path[40];
        snprintf(path, sizeof path, "/nowhere/%llu", (unsigned long long)*time);
        put_task(&build, PERF_RECORD_FORK, ++*time, 10 + i);
        put_mapping(&build, ++*time, 10 + i, path);
        put_task(&build, PERF_RECORD_EXIT, ++*time, 10 + i);
    }
    struct buffer file = build_file(&build);
    build_release(&build);
    return file;
}

static void test_memory_follows_what_lives(void **state) {
    struct profile_stream *stream = profile_stream_new(&(struct profile_options){.no_names = true});
    uint64_t time = 1, most = 0;
    for (unsigned window = 0; window < 12; window++) {
        struct buffer bytes = crowded_window(&time, 3000);
        struct file file = {
            .path = (char *)"window", .data = (uint8_t *)bytes.items, .size = bytes.count};
        struct error error = {0};
        struct profile *profile = profile_stream_next(stream, &file, &error);
        if (!profile)
            fail_msg("%s", error.message);
        uint64_t objects = objects_count(profile->objects);
        most = objects > most ? objects : most;
        struct space_cursor cursor = {0};
        struct space_at at;
        spaces_at(profile->spaces, &cursor, 1, 1, &(struct key){.time = time}, &at);
        const struct mapping *mapping = space_find(profile->spaces, at.user, 0x10800);
        assert_non_null(mapping);
        assert_true(text_equal(objects_get(profile->objects, mapping->object)->path,
                               TEXT("/nowhere/lasting")));
        assert_true(spaces_thread_count(profile->spaces) < 7000);
        profile_free(profile);
        buffer_release(&bytes);
    }
    assert_true(most < 20000); /* of 36,000 */
    profile_stream_free(stream);
}

static uint32_t objects_after_three(bool renew) {
    struct profile_stream *stream = profile_stream_new(&(struct profile_options){.no_names = true});
    uint64_t time = 1;
    uint32_t count = 0;
    for (unsigned window = 0; window < 3; window++) {
        struct buffer bytes = crowded_window(&time, 1000);
        struct file file = {
            .path = (char *)"window", .data = (uint8_t *)bytes.items, .size = bytes.count};
        struct error error = {0};
        struct profile *profile = profile_stream_next(stream, &file, &error);
        assert_non_null(profile);
        count = objects_count(profile->objects);
        profile_free(profile);
        buffer_release(&bytes);
        if (renew)
            profile_stream_renew(stream);
    }
    profile_stream_free(stream);
    return count;
}

/* Programs of the window before the last one are forgotten, except for the one that is still mapped. */
static void test_renewed(void **state) {
    assert_in_range(objects_after_three(false), 3000, 3100);
    assert_in_range(objects_after_three(true), 2000, 2100);
}

/* One sample in a program's file, which is mapped in the first window. */
static struct buffer window_of_file(const char *path, uint64_t time) {
    struct build build = {0};
    build_event(
        &build,
        &(struct build_event){.type = PERF_TYPE_SOFTWARE,
                              .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
                              .flags = BUILD_ID_ALL},
        NULL);
    if (time == 1) {
        size_t record = build_begin(&build, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER);
        for (int i = 0; i < 2; i++)
            put_u32(&build.data, 1);
        put_u64(&build.data, 0x10000);
        put_u64(&build.data, 0x1000);
        put_u64(&build.data, 0);
        put_string(&build.data, path, 40);
        for (int i = 0; i < 2; i++)
            put_u32(&build.data, 1);
        put_u64(&build.data, time);
        build_end(&build, record);
    }
    size_t record = build_begin(&build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    put_u64(&build.data, 0x10800);
    for (int i = 0; i < 2; i++)
        put_u32(&build.data, 1);
    put_u64(&build.data, time + 1);
    build_end(&build, record);
    struct buffer file = build_file(&build);
    build_release(&build);
    return file;
}

static bool has_shrunk(const struct notes *notes) {
    for (size_t i = 0; i < notes->count; i++)
        if (strcmp(notes->items[i].kind->name, "shrank") == 0)
            return true;
    return false;
}

/* A file that another user cuts short costs names, not the window; it is opened again for the next one. */
static void test_file_shrinks(void **state) {
    struct profile_stream *stream = profile_stream_new(&(struct profile_options){0});
    char path[40], command[100];
    snprintf(path, sizeof path, "/tmp/wick-shrinks-%d", (int)getpid());
    snprintf(command, sizeof command, "cp /proc/%d/exe %s", (int)getpid(), path);
    assert_int_equal(system(command), 0);
    for (uint64_t window = 0; window < 3; window++) {
        struct buffer bytes = window_of_file(path, 1 + 10 * window);
        struct file file = {
            .path = (char *)"window", .data = (uint8_t *)bytes.items, .size = bytes.count};
        struct error error = {0};
        struct profile *profile = profile_stream_next(stream, &file, &error);
        if (!profile)
            fail_msg("window %d: %s", (int)window, error.message);
        assert_int_equal(profile->sample_count, 1);
        assert_int_equal(has_shrunk(&profile->tree->notes), window == 1);
        profile_free(profile);
        buffer_release(&bytes);
        if (window == 0)
            assert_int_equal(truncate(path, 5000), 0);
    }
    unlink(path);
    profile_stream_free(stream);
}

static void test_broken_window(void **state) {
    struct profile_stream *stream = profile_stream_new(&(struct profile_options){.no_names = true});
    uint64_t time = 1;
    for (unsigned window = 0; window < 4; window++) {
        struct buffer bytes = crowded_window(&time, 3000);
        struct file file = {
            .path = (char *)"window", .data = (uint8_t *)bytes.items, .size = bytes.count};
        if (window % 2) /* a record without a size, in the middle */
            memset(bytes.items + bytes.count / 2 / 8 * 8, 0, 4096);
        struct error error = {0};
        struct profile *profile = profile_stream_next(stream, &file, &error);
        assert_int_equal(profile == NULL, window % 2);
        assert_int_equal(error.kind != ERROR_NONE, window % 2);
        profile_free(profile);
        buffer_release(&bytes);
    }
    profile_stream_free(stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_add_up),
        cmocka_unit_test(test_frame_pointers),
        cmocka_unit_test(test_python),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_memory_follows_what_lives),
        cmocka_unit_test(test_broken_window),
        cmocka_unit_test(test_renewed),
        cmocka_unit_test(test_file_shrinks),
    };
    return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
