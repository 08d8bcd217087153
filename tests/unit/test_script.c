/* Script text against what perf printed of the same recordings: tests/unit/script/README.md says how it was made. */
#include "profile/profile.h"
#include "view/script.h"
#include "view/view.h"
#include "written.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static struct profile *read_profile(struct file *file, const char *name, unsigned threads) {
    char path[512];
    struct error error = {0};
    snprintf(path, sizeof path, "%s/tests/unit/script/%s.data", SOURCE_ROOT, name);
    if (access(path, R_OK) != 0)
        snprintf(path, sizeof path, "%s/fuzz/seeds/perfdata/%s.data", SOURCE_ROOT, name);
    assert_true(file_open(file, path, NULL, &error));
    const struct profile_options options = {.context = &(struct context){.threads = threads},
                                            .keep_samples = true,
                                            .all_events = true,
                                            .quirks = quirks_perf,
                                            .no_names = true,
                                            .objects = {.kallsyms = "/dev/null",
                                                        .symfs = "/nonexistent",
                                                        .buildid_cache = "/nonexistent",
                                                        .quirks = quirks_perf}};
    struct profile *profile = profile_read(file, &options, &error);
    if (!profile)
        fail_msg("%s", error.message);
    return profile;
}

/* The script text of a recording, to free(). */
static struct text print_script(const char *name, unsigned threads) {
    struct file recording;
    struct error error = {0};
    struct written written;
    struct text text;
    struct profile *profile = read_profile(&recording, name, threads);
    written_begin(&written);
    assert_true(
        script_write(&written.out, profile,
                     &(struct script_options){.context = &(struct context){.threads = threads},
                                              .quirks = quirks_perf},
                     &error));
    text.data = written_end(&written, &text.length);
    profile_free(profile);
    file_close(&recording);
    return text;
}

static void check(const char *name) {
    char path[512];
    struct file expected;
    snprintf(path, sizeof path, "%s/tests/unit/script/%s.txt", SOURCE_ROOT, name);
    assert_true(file_open_raw(&expected, path, NULL, NULL));
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        struct text a = print_script(name, threads), b = file_text(&expected);
        size_t same = 0;
        while (same < a.length && same < b.length && a.data[same] == b.data[same])
            same++;
        if (!text_equal(a, b))
            fail_msg("%s, %u threads: differs from byte %zu: \"%.60s\"", name, threads, same,
                     a.data + same);
        free((char *)a.data);
    }
    file_close(&expected);
}

/* With and without chains, with cpu, without time; several events; raw events with all they show of memory; counters read as a
   group; more frames than perf prints; what BPF programs send. */
static void test_recordings(void **state) {
    static const char *const names[] = {"chain",          "plain",      "two",     "cpu",
                                        "memory",         "group",      "notime",  "registers",
                                        "switch",         "buildid",    "deep",    "memory_raw",
                                        "memory_sources", "bpf_output", "branches"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        check(names[i]);
}

static void test_tracepoints(void **state) {
    check("trace");
    check("formats");
}

/* A reader that has gone away stops the printing, and is no error. */
static void test_closed_early(void **state) {
    struct file recording;
    struct profile *profile = read_profile(&recording, "two", 2);
    struct out out;
    struct error error = {0};
    assert_true(out_open(&out, "/dev/null", &error));
    out.closed = true;
    assert_true(script_write(&out, profile,
                             &(struct script_options){.context = &(struct context){.threads = 2}},
                             &error));
    assert_true(out_commit(&out, &error));
    profile_free(profile);
    file_close(&recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings),
        cmocka_unit_test(test_tracepoints),
        cmocka_unit_test(test_closed_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
