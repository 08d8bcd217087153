#include "folding.h"

/* ---- perf script text --------------------------------------------------------------------- */

static void test_samples(void **state) {
    const char *text = "# captured\n"
                       "deep 10/11 [002]  5.000001:     250 cycles:u: \n"
                       "\t    7f00 leaf+0x1f (/bin/deep)\n"
                       "\t    7f10 root (/bin/deep)\n"
                       "\n"
                       "deep 10/11  5.000002:     50 cycles:u: \n"
                       "\t    7f00 leaf+0x1f (/bin/deep)\n"
                       "\t    7f10 root (/bin/deep)\n";
    expect_fold("perf", text, "deep;root;leaf 300\n");
    expect_inferno("perf", text, "deep;root;leaf 300\n");
}

/* inferno cuts a comm at a word of digits; wick knows the thread by the time behind it. */
static void test_comm_with_digits(void **state) {
    const char *text = "worker 12 x 77 [001] 1.5: 3 cycles: \n"
                       "\tf main (/a)\n"
                       "\n";
    expect_fold("perf", text, "worker_12_x;main 3\n");
    expect_inferno("perf", text, "worker;main 3\n");
}

static void test_negative_thread(void **state) {
    expect_fold("perf", "  :-1    -1 [000] 1.5: 3 cycles: \n\tf main (/a)\n\n", ":-1;main 3\n");
}

/* A payload is no frame; inferno loses the sample and reads its frames as events. */
static void test_tracepoint_payload(void **state) {
    const char *text = "sw 7 [001] 1.5: sched:sched_switch: prev_comm=a b (c) ==> next_comm=d\n"
                       "\tff schedule ([kernel.kallsyms])\n"
                       "\t11 main (/a)\n"
                       "\n";
    expect_fold("perf", text, "sw;main;schedule 1\n");
    expect_inferno("perf", text, "");
}

/* A payload may look like a frame: what follows tells. */
static void test_payload_like_a_frame(void **state) {
    expect_fold("perf", "sw 7 1.5: a:b: ff looks (like)\n\t11 main (/a)\n\n", "sw;main 1\n");
    expect_fold("perf", "sw 7 1.5: a:b: ff looks (like)\n\n", "sw;looks 1\n");
}

static void test_one_line_samples(void **state) {
    const char *text = "  a b 7 1.5: 10 cycles:u:  ff f+0x2 (/a)\n"
                       "    c 8 1.6: 20 cycles:u:  ff f+0x2 (/a)\n"
                       "    c 8 1.7: 30 cycles:k:  ff g ([kernel.kallsyms])\n";
    expect_fold_with("perf", text, "a_b;f 10\nc;f 20\n", (struct import_options){0},
                     (struct naming_options){0});
    expect_inferno("perf", text, "a_b;f 10\nc;f 20\nc;g 30\n"); /* its name for both is "cycles" */
}

/* A CPU with two kinds of cores: the first event is both kinds'. */
static void test_both_kinds_of_cores_count(void **state) {
    const char *text = "p 9 1.0:  100 cpu_core/cycles/P: \n\t 1 f+0x1 (/x)\n\n"
                       "p 9 1.1:  50 cpu_atom/cycles/P: \n\t 1 g+0x1 (/x)\n\n"
                       "p 9 1.2:  7 cpu_atom/instructions/P: \n\t 1 h+0x1 (/x)\n\n"
                       "p 9 1.3:  7 cycles: \n\t 1 i+0x1 (/x)\n\n";
    struct naming_options names = {0}, inferno = {.quirks = quirks_inferno, .is_script_text = true};
    expect_fold_with("perf", text, "p;f 100\np;g 50\n", (struct import_options){0}, names);
    expect_fold_with("perf", text, "p;f 100\n",
                     (struct import_options){.profile.quirks = quirks_inferno}, inferno);
}

static void test_first_event_counts(void **state) {
    const char *text = "a 7 1.5: 1 cycles: \n\tf f (/a)\n\na 7 1.6: 5 faults: \n\tf g (/a)\n\n";
    const char *all = "all", *faults = "faults";
    struct import_options options = {.profile.filter = {.events = &all, .event_count = 1}};
    expect_fold("perf", text, "a;f 1\n");
    expect_fold_with("perf", text, "a;f 1\na;g 5\n", options, (struct naming_options){0});
    options.profile.filter.events = &faults;
    expect_fold_with("perf", text, "a;g 5\n", options, (struct naming_options){0});
}

static void test_filters(void **state) {
    const char *text =
        "a 5/7 [003] 1.5: 1 cycles: \n\tf f (/a)\n\nb 6/8 [004] 2.5: 5 cycles: \n\tf g (/a)\n\n";
    const char *comm = "b";
    int32_t pid = 5, tid = 8;
    uint32_t cpu = 3;
    struct naming_options names = {0};
    struct import_options options = {.profile.filter = {.comms = &comm, .comm_count = 1}};
    expect_fold_with("perf", text, "b;g 5\n", options, names);
    options.profile.filter = (struct filter){.pids = &pid, .pid_count = 1};
    expect_fold_with("perf", text, "a;f 1\n", options, names);
    options.profile.filter = (struct filter){.tids = &tid, .tid_count = 1};
    expect_fold_with("perf", text, "b;g 5\n", options, names);
    options.profile.filter = (struct filter){.cpus = &cpu, .cpu_count = 1};
    expect_fold_with("perf", text, "a;f 1\n", options, names);
    options.profile.filter =
        (struct filter){.has_time = true, .time_from = 2000000000, .time_to = UINT64_MAX};
    expect_fold_with("perf", text, "b;g 5\n", options, names);
}

static void test_torn_lines(void **state) {
    struct import_options options = {.profile.context = &(struct context){.threads = 1}};
    struct tree *tree = read_text(
        "perf", TEXT("a 7 1.5: 1 cycles: \n\tf f (/a)\n\nnonsense\n\nmore nonsense\n"), &options);
    assert_int_equal(tree->notes.count, 1);
    assert_int_equal(tree->notes.items[0].count, 2);
    assert_string_equal(tree->notes.items[0].example, "input: line 4: nonsense");
    tree_done(tree);
}

/* A text of several pieces gives the same with any number of threads. */
static void test_threads_agree(void **state) {
    struct buffer text = {0};
    for (int i = 0; i < 40000; i++) {
        buffer_printf(&text, "comm %d %d 1.5: %d cycles: \n", i % 3, i % 5, i);
        for (int k = 0; k < 1 + i % 7; k++)
            buffer_printf(&text, "\t%x name%d+0x%x (/lib/x%d)\n", i % 100, (i + k) % 91, k, k % 3);
        buffer_add_char(&text, '\n');
    }
    for (int inferno = 0; inferno < 2; inferno++) {
        char *first = NULL;
        for (unsigned threads = 1; threads < 6; threads += 2) {
            struct import_options options = {
                .profile.context = &(struct context){.threads = threads},
                .profile.quirks = inferno ? quirks_inferno : quirks_none};
            struct naming_options names = {.quirks = inferno ? quirks_inferno : quirks_none,
                                           .is_script_text = true};
            struct tree *tree = read_text("perf", buffer_text(&text), &options);
            char *got = folded_tree(tree, &names, &(struct flame_options){0});
            if (first)
                assert_string_equal(got, first);
            else
                first = memory_copy(got, strlen(got));
            assert_true(strlen(got) > 1000);
            free(got);
            tree_done(tree);
        }
        free(first);
    }
    buffer_release(&text);
}

/* ---- folded text -------------------------------------------------------------------------- */

static void test_folded(void **state) {
    expect_fold("folded", "a;b;c 3\na;b 2\na;b;c 4\n", "a;b 2\na;b;c 7\n");
    expect_fold("folded", "a b;c d\t3\r\n", "a b;c d 3\n");
    expect_fold("folded", "# comment\n\n a;b 5 \n", "a;b 5\n");
    expect_fold("folded", "a;b 1.4\na;b 1.5\n", "a;b 3\n");
    expect_fold("folded", "a;;b 1\n", "a;;b 1\n");
}

static void test_folded_shared_prefix(void **state) {
    expect_fold("folded", "ab;c;d 1\nab;cd 2\nab;c 3\nab 4\na 5\nab;c;d;e 6\n",
                "a 5\nab 4\nab;c 3\nab;c;d 1\nab;c;d;e 6\nab;cd 2\n");
}

/* Two counts on every line are a diff; on some they are part of a name. */
static void test_folded_diff(void **state) {
    expect_fold("folded", "a;b 1 2\na;c 3 0\n", "a;b 1 2\na;c 3 0\n");
    expect_fold("folded", "a;b 1 2\na;c 3\n", "a;b 1 2\na;c 3\n");
}

static void test_folded_torn(void **state) {
    struct import_options options = {0};
    struct tree *tree =
        read_text("folded", TEXT("a;b 1\nc;d\na;b x\na;b 99999999999999999999\n"), &options);
    assert_int_equal(tree->notes.items[0].count, 3);
    assert_string_equal(tree->notes.items[0].example, "input: line 2: c;d");
    tree_done(tree);
}

static void test_folded_overflow(void **state) {
    struct import_options options = {0};
    struct error error;
    struct tree *tree = read_text("folded", TEXT("a 18446744073709551615\na 1\n"), &options);
    assert_false(tree_check(tree, &error));
    tree_done(tree);
}

/* ---- guessing ----------------------------------------------------------------------------- */

static void test_guess(void **state) {
    assert_ptr_equal(import_guess(TEXT("a;b;c 12\na;b 3\n")), import_format_named("folded"));
    assert_ptr_equal(import_guess(TEXT("a 1 1.5: 2 cycles:\n\tf main (/a)\n")),
                     import_format_named("perf"));
    assert_null(import_guess(TEXT("Once upon a time\nthere was a profiler.\n")));
    assert_null(import_guess(TEXT("\x7f"
                                  "ELF\0\0\0\1")));
}

/* ---- joining ------------------------------------------------------------------------------ */

static void test_join(void **state) {
    struct import_options options = {.profile.context = &(struct context){.threads = 1}};
    const char *text = "a 7 1.5: 1 cycles: \n\tf f (/a)\n\te g (/b)\n\n";
    struct tree *whole = read_text("perf", text_of(text), &options);
    struct tree *same = read_text("perf", text_of(text), &options);
    struct tree *other = read_text("folded", TEXT("a;f 3\nx;f 4\n"), &options);
    tree_join(whole, same);
    tree_join(whole, other);
    char *got = folded_tree(whole, &(struct naming_options){.is_script_text = true},
                            &(struct flame_options){0});
    assert_string_equal(got, "a;f 3\na;g;f 2\nx;f 4\n");
    free(got);
    tree_done(whole);
    tree_done(same);
    tree_done(other);
}

/* Code that was compiled again at the same address keeps its own name, and its language. */
static void test_join_code(void **state) {
    struct tree *whole = tree_new(), *first = tree_of_code(TEXT("first"));
    struct tree *second = tree_of_code(TEXT("second"));
    tree_join(whole, first);
    tree_join(whole, second);
    tree_join(whole, second);
    char *got =
        folded_tree(whole, &(struct naming_options){.no_comm = true}, &(struct flame_options){0});
    assert_string_equal(got, "first 1\nsecond 2\n");
    assert_int_equal(whole->locations.count, 3);
    for (size_t i = 1; i < whole->frames.count; i++)
        assert_true(
            text_equal(strings_get(whole->strings, whole->frames.items[i].language), TEXT("java")));
    free(got);
    tree_done(whole);
    tree_done(first);
    tree_done(second);
}

/* An event that is there as measured and as time on the CPU stays two. */
static void test_join_times(void **state) {
    struct tree *whole = tree_new(), *part = tree_new();
    uint32_t event = tree_add_event(part, TEXT("cpu-clock"), TEXT("ns"), EVENT_SOFTWARE);
    tree_add_event(part, TEXT("cpu-clock"), TEXT("ns"), EVENT_SOFTWARE);
    part->events.items[event].time = TIME_RUN;
    tree_join(whole, part);
    tree_join(whole, part);
    assert_int_equal(whole->events.count, 3);
    assert_int_equal(whole->events.items[1].time, TIME_RUN);
    assert_int_equal(whole->events.items[2].time, TIME_MEASURED);
    tree_done(whole);
    tree_done(part);
}

/* Chrome's process names are labels, and joining keeps them. */
static void test_join_labels(void **state) {
    struct import_options options = {0};
    struct tree *whole = read_text("folded", TEXT("a;f 3\n"), &options);
    struct tree *traced = read_text(
        "chrome",
        TEXT("[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"server\"}},"
             "{\"ph\":\"X\",\"name\":\"b\",\"ts\":2,\"dur\":3,\"pid\":1,\"tid\":1},"
             "{\"ph\":\"X\",\"name\":\"c\",\"ts\":2,\"dur\":3,\"pid\":2,\"tid\":1}]"),
        &options);
    tree_join(whole, traced);
    struct label_filter server = {"process", "serv*"};
    tree_filter_labels(whole, &(struct filter){.labels = &server, .label_count = 1});
    char *got = folded_tree(whole, &(struct naming_options){0}, &(struct flame_options){0});
    assert_string_equal(got, "server;b 3000\n");
    free(got);
    tree_done(whole);
    tree_done(traced);
}

/* ---- text as Rust sees it ----------------------------------------------------------------- */

static void test_trim(void **state) {
    assert_true(text_equal(text_trim_both(TEXT(" \x0b\xe2\x80\x83x y\xc2\xa0\xe3\x80\x80\n")),
                           TEXT("x y")));
    assert_int_equal(text_trim_both(TEXT("\xc2\x85\xe1\x9a\x80")).length, 0);
    assert_int_equal(text_trim_both(TEXT("\xa0")).length, 1);
}

static void test_lossy(void **state) {
    struct buffer scratch = {0};
    assert_true(
        text_equal(text_lossy(TEXT("gr\xc3\xbc\xc3\x9f"), &scratch), TEXT("gr\xc3\xbc\xc3\x9f")));
    assert_true(text_equal(text_lossy(TEXT("a\xe2\x82z\xff"), &scratch),
                           TEXT("a\xef\xbf\xbdz\xef\xbf\xbd")));
    assert_true(text_equal(text_lossy(TEXT("\xed\xa0\x80"), &scratch),
                           TEXT("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd")));
    buffer_release(&scratch);
}

static void test_rust_repair(void **state) {
    struct buffer out = {0};
    assert_true(rust_repair(TEXT("_$LT$a..b$u20$as$u20$c$GT$::d::h0123456789abcdef"), &out));
    assert_true(text_equal(buffer_text(&out), TEXT("<a::b as c>::d")));
    out.count = 0;
    assert_true(rust_repair(TEXT("a.b$ZZ$c$LT$::h0123456789abcdef"), &out));
    assert_true(text_equal(buffer_text(&out), TEXT("a.b$ZZ$c$LT$")));
    assert_false(rust_repair(TEXT("plain"), &out));
    buffer_release(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_comm_with_digits),
        cmocka_unit_test(test_negative_thread),
        cmocka_unit_test(test_tracepoint_payload),
        cmocka_unit_test(test_payload_like_a_frame),
        cmocka_unit_test(test_one_line_samples),
        cmocka_unit_test(test_first_event_counts),
        cmocka_unit_test(test_both_kinds_of_cores_count),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_torn_lines),
        cmocka_unit_test(test_threads_agree),
        cmocka_unit_test(test_folded),
        cmocka_unit_test(test_folded_shared_prefix),
        cmocka_unit_test(test_folded_diff),
        cmocka_unit_test(test_folded_torn),
        cmocka_unit_test(test_folded_overflow),
        cmocka_unit_test(test_guess),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_join_code),
        cmocka_unit_test(test_join_times),
        cmocka_unit_test(test_join_labels),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_lossy),
        cmocka_unit_test(test_rust_repair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
