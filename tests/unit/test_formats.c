/* The readers of other tools' text, each on a piece of what its tool really prints. */
#include "folding.h"
#include "saved/saved.h"

static void test_dtrace(void **state) {
    expect_fold("dtrace",
                "CPU  ID\n  0  1\n\n"
                "  unix`tsc+0x21\n  genunix`a::b<c>(d)+0xa\n    3\n\n"
                "  app`operator->+0x1\n\n  app`x;y->Lz+0x2\n  2\n",
                "app`x:y;z_[i];app`operator-> 2\ngenunix`a::b<c>;unix`tsc 3\n");
}

static void test_bpftrace(void **state) {
    expect_fold("bpftrace",
                "Attaching 1 probe...\n\n@[\n    open+12\n    main+0x30\n, bash, 77]: 7\n"
                "@stacks[\n    kernel+1\n,\n    user+2\n]: 2\n@[, idle]: 5\n@x: 12\n",
                "bash, 77;main;open 7\nidle 5\nuser;kernel 2\n");
}

static void test_go(void **state) {
    const char *text = "PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\n"
                       "samples/count cpu/nanoseconds\n"
                       "          2   20000000: 1 2 \n"
                       "                bytes:[1024]\n"
                       "          1   10000000: 2 9 \n"
                       "Locations\n"
                       "     1: 0x41fc95 M=1 inner /x.go:259:0 s=258\n"
                       "             a.(*b).outer /x.go:573:0 s=570\n"
                       "     2: 0x41dc0b M=1 main.main /x.go:709:0 s=705\n"
                       "Mappings\n1: 0x400000/0x4b3000/0x0 /x\n";
    expect_fold("go", text, "9;main.main 10000000\nmain.main;a.(*b).outer;inner 20000000\n");
}

/* Few bytes that stand for many frames: a location of a thousand functions, a thousand times in one stack. */
static void test_go_grows(void **state) {
    enum { MANY = 1000 };
    struct buffer text = {0};
    struct error error = {0};
    struct import_options options = {0};
    buffer_add(&text, TEXT("PeriodType: cpu ns\nSamples:\nsamples/count\n1: "));
    for (int i = 0; i < MANY; i++)
        buffer_add(&text, TEXT("1 "));
    buffer_add(&text, TEXT("\nLocations\n1: 0x1 M=1 f\n"));
    for (int i = 1; i < MANY; i++)
        buffer_add(&text, TEXT("  f\n"));
    struct tree *tree = tree_new();
    assert_false(import_read(import_format_named("go"), buffer_text(&text), "input", &options, tree,
                             &error));
    assert_int_equal(error.kind, ERROR_INPUT);
    assert_true(tree->nodes.count < 100 * MANY);
    tree_done(tree);
    buffer_release(&text);
}

/* A reversed picture of one tower has half of its height's square in frames when it is turned round. */
static void test_svg_turned(void **state) {
    enum { HEIGHT = 5000 };
    struct buffer text = {0};
    struct error error = {0};
    struct import_options options = {0};
    buffer_add(&text, TEXT("<svg id=\"frames\" data-reversed=\"1\">"));
    for (int i = 0; i < HEIGHT; i++)
        buffer_printf(&text,
                      "<g><title>f%d (%d samples, %d%%)</title><rect y=\"%d\" fg:x=\"0\" "
                      "fg:w=\"%d\"/></g>",
                      i, HEIGHT - i, i ? 1 : 100, HEIGHT - i, HEIGHT - i);
    struct tree *tree = tree_new();
    assert_false(import_read(import_format_named("svg"), buffer_text(&text), "input", &options,
                             tree, &error));
    assert_non_null(strstr(error.message, "too deep to be turned around"));
    tree_done(tree);
    buffer_release(&text);
}

static void test_gdb(void **state) {
    const char *text = "Thread 2 (Thread 0x7f5e (LWP 20879) \"my worker\"):\n"
                       "#0  0x00007f5e in poll (a=0, b=<x>) at ../x.c:48\n"
                       "#1  std::function<void (int)>::operator() (this=0x1) from /lib/x.so\n"
                       "#2  <signal handler called>\n"
                       "#3  (anonymous namespace)::f () at g.c:3\n\n"
                       "Thread 1 (Thread 0x7f5e (LWP 20877) \"g\"):\n#0  main () at g.c:5\n";
    expect_fold("gdb", text,
                "g;main 1\nmy_worker;(anonymous namespace)::f;<signal handler called>;"
                "std::function<void (int)>::operator();poll 1\n");
}

static void test_eu_stack(void **state) {
    expect_fold_with("eu-stack",
                     "PID 12 - process\nTID 12:\n#0  0x00007f7e8f0 poll - /lib/libc.so.6\n"
                     "#1  0x00005555 - 1 main\nTID 13:\n#0  0x00007f7e8f0 wait\n",
                     "main;poll 1\nwait 1\n", (struct import_options){0},
                     (struct naming_options){0});
}

static void test_stap(void **state) {
    expect_fold("stap",
                " 0xffffffff8103ce3b : native_safe_halt+0xb/0x10 [kernel]\n"
                " 0xffffffff8101c6a3 : default_idle+0x53/0x1d0 [kernel]\n\t2404\n"
                " 0x7f12 : main+0x3/0x4 [/bin/x]\n 3\n",
                "default_idle;native_safe_halt 2404\nmain 3\n");
    /* guessed frames say so; what has no symbol is called after its file; a stack of both sides is one */
    struct naming_options marks = {.mark_kernel = true};
    expect_fold_with("stap",
                     "WARNING: Missing unwind data for a module, rerun with 'stap -d x'\n"
                     " 0xffffffff81a0c2e1 : tick+0x21/0x50 [kernel]\n"
                     " 0xffffffffc0010010 : note+0x10/0x40 [xfs]\n"
                     " 0xffffffff81a0d000 : entry+0x1/0x9 [kernel] (inexact)\n"
                     " 0x55d0e1a2 [/bin/x+0x11a2/0x4000]\n 0x7ffc0010\n"
                     " 0x7ffff7dd : start+0x1d/0x40 at start.c:12 [/lib/libx++.so.6]\n 7\n",
                     "start;[unknown];[x];entry_[k];note_[k];tick_[k] 7\n",
                     (struct import_options){0}, marks);
    /* at a return probe, and as print_syms() has it */
    expect_fold_with("stap",
                     "Returning from:  0x401196 : leaf+0x0/0x20 [/bin/x]\n"
                     "Returning to  :  0x4011c3 : main+0x13/0x30 [/bin/x]\n\t3\n",
                     "main;leaf 3\n", (struct import_options){0}, marks);
    expect_fold_with("stap", " leaf+0x1 [/bin/x]\n main+0x13 [/bin/x]\n\t4\n", "main;leaf 4\n",
                     (struct import_options){0}, marks);
}

static void test_pmcstat(void **state) {
    expect_fold("pmcstat",
                "@ CPU_CLK_UNHALTED_CORE [100 samples]\n\n"
                "60.00%  [60]       leaf @ /boot/kernel/kernel\n"
                " 50.00%  [30]        one\n"
                "  100.0%  [30]         root\n"
                " 40.00%  [24]        two\n\n"
                "40.00%  [40]       other @ /bin/x\n",
                "leaf 6\nother 40\nroot;one;leaf 30\ntwo;leaf 24\n");
}

/* A graph for each event, of which the first counts; an object stands where it differs from the line before. */
static void test_pmcstat_events(void **state) {
    const char *text = "@ CPU_CLK_UNHALTED.THREAD_P [10 samples]\n\n"
                       "100.0%  [10]       leaf @ /boot/kernel/kernel\n"
                       " 70.00%  [7]         enter\n"
                       "  100.0%  [7]          work @ /lib/libx.so.7\n"
                       "   100.0%  [7]          0x2014a0 @ /usr/bin/x\n\n"
                       "@ LLC_MISSES [4 samples]\n\n"
                       "100.0%  [4]        other @ /usr/bin/x\n";
    struct naming_options marks = {.mark_kernel = true};
    const char *other = "LLC_MISSES";
    expect_fold_with("pmcstat", text, "0x2014a0;work;enter_[k];leaf_[k] 7\nleaf_[k] 3\n",
                     (struct import_options){0}, marks);
    expect_fold_with(
        "pmcstat", text, "other 4\n",
        (struct import_options){.profile.filter = {.events = &other, .event_count = 1}}, marks);
}

static void test_jstack(void **state) {
    expect_fold(
        "jstack",
        "\"main\" #1 prio=5 runnable  [0x1]\n   java.lang.Thread.State: RUNNABLE\n"
        "\tat J.f(J.java:1)\n\t- locked <0x1> (a x)\n\tat J.main(J.java:2)\n\n"
        "\"pool-1-thread-7\" #2 runnable\n   java.lang.Thread.State: RUNNABLE\n"
        "\tat P.run(P.java:1)\n\n"
        "\"Handler\" #2 daemon waiting on condition  [0x2]\n   java.lang.Thread.State: RUNNABLE\n"
        "\tat R.wait(R.java:1)\n\n"
        "\"net\" #3 runnable\n   java.lang.Thread.State: RUNNABLE\n"
        "\tat java.net.SocketInputStream.socketRead0(Native Method)\n\tat N.run(N.java:1)\n\n"
        "\"sleeper\" #4 in Object.wait()\n   java.lang.Thread.State: TIMED_WAITING (sleeping)\n"
        "\tat S.run(S.java:1)\n",
        "main;J.main;J.f 1\npool-1-thread;P.run 1\n");
}

static void test_java_exceptions(void **state) {
    expect_fold("java-exceptions",
                "12:00 ERROR x.Y java.lang.IllegalStateException: bad\n\tat a.B.f(B.java:3)\n"
                "\tat a.B.main(B.java:9)\nCaused by: java.io.IOException: y\n"
                "\tat a.C.read(C.java:1)\n\t... 2 more\n12:01 INFO fine\n",
                "a.B.main;a.B.f;a.C.read;java.io.IOException 1\n"
                "a.B.main;a.B.f;java.lang.IllegalStateException 1\n");
}

static void test_faulthandler(void **state) {
    expect_fold("faulthandler",
                "Thread 0x01 (most recent call first):\n  File \"/a b.py\", line 2 in inner\n"
                "  File \"/a b.py\", line 3 in <module>\n\n"
                "Current thread 0x02 (most recent call first):\n  File \"x.py\", line 6 in f\n",
                "/a b.py:3:<module>;/a b.py:2:inner 1\nx.py:6:f 1\n");
}

static void test_chrome(void **state) {
    expect_fold(
        "chrome",
        "{\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"main\"}},"
        "\n"
        "{\"pid\":1,\"tid\":2,\"ph\":\"X\",\"ts\":10,\"dur\":100,\"name\":\"outer\"},\n"
        "{\"pid\":1,\"tid\":2,\"ph\":\"X\",\"ts\":20,\"dur\":30.5,\"name\":\"in\\u006eer\"},\n"
        "{\"pid\":1,\"tid\":2,\"ph\":\"B\",\"ts\":60,\"name\":\"b\",\"args\":{\"x\":[1,{\"y\":2}]}}"
        ",\n"
        "{\"pid\":1,\"tid\":2,\"ph\":\"E\",\"ts\":70}\n"
        "],\"other\":null}",
        "main;outer 59500\nmain;outer;b 10000\nmain;outer;inner 30500\n");
    expect_fold("chrome", "[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"name\":\"cut\"},\n", "cut 2000\n");
    /* killed: no thread ended what it had begun */
    expect_fold("chrome",
                "[{\"ph\":\"B\",\"name\":\"a\",\"ts\":1,\"pid\":1,\"tid\":1},"
                "{\"ph\":\"X\",\"name\":\"b\",\"ts\":2,\"dur\":3,\"pid\":1,\"tid\":1},"
                "{\"ph\":\"X\",\"name\":\"c\",\"ts\":2,\"dur\":3,\"pid\":1,\"tid\":2}]",
                "a 1000\na;b 3000\nc 3000\n");
}

static void test_chrome_spans_that_begin_together(void **state) {
    /* What follows a "B" in the file does not come before it, whatever follows that. */
#define TOGETHER                                                                                   \
    "[{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"name\":\"short\"},"                                       \
    "{\"ph\":\"B\",\"ts\":1,\"name\":\"b\"},"                                                      \
    "{\"ph\":\"X\",\"ts\":1,\"dur\":9,\"name\":\"long\"}"
    expect_fold("chrome", TOGETHER "]", "short;b;long 4000\n");
    expect_fold("chrome", TOGETHER ",{\"ph\":\"X\",\"ts\":1,\"dur\":4,\"name\":\"last\"}]",
                "short;b;long;last 4000\n");
}

static void test_offcputime(void **state) {
    expect_fold("offcputime", "a b;main;-;f;-;k1;k2 3\n\nc;main;- 2\nc;[Missed User Stack] 1\n",
                "a_b;main;-;f;k1;k2 3000\nc;[Missed User Stack] 1000\nc;main 2000\n");
    expect_fold("offcputime",
                "Tracing off-CPU time (us) of all threads by user + kernel stack\n\n"
                "    k2\n    k1\n    --\n    operator-\n    main\n    -                a (b) (12)\n"
                "        7\n\n    main\n    -                c (3)\n        1\n",
                "a_(b);main;operator-;k1;k2 7000\nc;main 1000\n");
    expect_fold("offcputime", "a;b 18446744073709551615\nnonsense\na;b 1\n", "a;b 1000\n");
}

static void test_perf_sched(void **state) {
    expect_fold("perf-sched",
                "a 7 [000] 1.000000: sched:sched_switch: prev_comm=a prev_pid=7 prev_prio=120 "
                "prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n"
                "\tff schedule ([kernel.kallsyms])\n\t11 main (/a)\n\n"
                "swapper 0 [000] 1.000500: sched:sched_switch: swapper/0:0 [120] R ==> a:7 [120]\n"
                "\tff idle ([kernel.kallsyms])\n\n",
                "a;main;schedule 500000\n");
}

static void test_recursive(void **state) {
    expect_fold("recursive", "a;b;b;b;c;b 2\na;a 1\n", "a 1\na;b;c;b 2\n");
}

static void test_xctrace(void **state) {
    expect_fold(
        "xctrace",
        "<?xml version=\"1.0\"?><trace-query-result><node xpath='x > y'><row><weight/>"
        "<backtrace id=\"1\"><frame id=\"2\" name=\"f&lt;int&gt;\"><binary/></frame>"
        "<frame id=\"3\" name=\"main\"/></backtrace></row>"
        "<row><backtrace ref=\"1\"/></row><row><sentinel/></row>"
        "<row><backtrace id=\"4\"><frame ref=\"3\"/></backtrace></row></node></trace-query-result>",
        "main 1\nmain;f<int> 2\n");
}

/* What inferno calls an error is a note by wick's rules, and the rest is used. */
static void test_bad_lines(void **state) {
    const char *text =
        "Function Stack,CPU Time:Self,Module\nmain,0.5,a.exe\n   deep,0.1,a.exe\n leaf,x,a.exe\n";
    struct import_options options = {0};
    struct tree *tree = read_text("vtune", text_of(text), &options);
    assert_int_equal(tree->notes.items[0].count, 2);
    tree_done(tree);
    expect_fold("vtune", text, "a.exe`main 500\n");
    options.profile.quirks = quirks_inferno;
    struct error error;
    tree = tree_new();
    assert_false(
        import_read(import_format_named("vtune"), text_of(text), "input", &options, tree, &error));
    assert_non_null(strstr(error.message, "Skipped indentation level at line 3"));
    tree_done(tree);
}

static const char *guessed(const char *text) {
    const struct import_format *format = import_guess(text_of(text));
    return format ? format->name : "none";
}

static void test_guesses(void **state) {
    assert_string_equal(guessed("Tracing off-CPU time (us) of PID 1 by user stack for 1 secs.\n"),
                        "offcputime");
    assert_string_equal(guessed("a;main;-;k 3\n"), "folded");
    assert_string_equal(guessed("@[\n    f+1\n]: 3\n"), "bpftrace");
    assert_string_equal(guessed("PeriodType: cpu ns\nSamples:\na/count\n"), "go");
    assert_string_equal(guessed("Thread 1 (LWP 2):\n#0  main () at x.c:1\n"), "gdb");
    assert_string_equal(guessed("PID 1 - process\nTID 1:\n#0  0x01 main\n"), "eu-stack");
    assert_string_equal(guessed(" 0x12 : f+0x1/0x2 [kernel]\n 12\n"), "stap");
    assert_string_equal(guessed(" f+0x1 [/bin/x]\n\t12\n"), "stap");
    assert_string_equal(guessed("@ X [4 samples]\n\n51.42%  [2]  f @ /x\n"), "pmcstat");
    assert_string_equal(guessed("\"m\" #1\n   java.lang.Thread.State: RUNNABLE\n"), "jstack");
    assert_string_equal(guessed("a.b.XException: m\n\tat a.B.f(B.java:1)\n"), "java-exceptions");
    assert_string_equal(guessed("Thread 0x1 (most recent call first):\n"), "faulthandler");
    assert_string_equal(guessed("{\"traceEvents\":[]}"), "chrome");
    assert_string_equal(guessed("Function Stack,CPU Time:Self,Module\n"), "vtune");
    assert_string_equal(guessed("h\n\n m`f+0x1\n 2\n"), "dtrace");
}

/* ---- named locations ---------------------------------------------------------------------- */

static const struct naming_options with_lines = {.source_lines = true};

/* What a text says of files and lines is shown as debug information's is. */
static void test_source_lines(void **state) {
    expect_fold_with(
        "go",
        "PeriodType: cpu nanoseconds\nSamples:\ncpu/nanoseconds\n 20: 1 2 \n 10: 3 2 \n"
        "Locations\n     1: 0x41fc95 M=1 inner /a/x.go:259:0 s=258\n"
        "             outer /a/x.go:573:0 s=570\n"
        "     2: 0x41dc0b M=1 main.main /a/y.go:709:0 s=705\n"
        "     3: 0x41fc99 M=1 inner /a/x.go:260:0 s=258\nMappings\n",
        "main.main:y.go:709;inner:x.go:260 10\n"
        "main.main:y.go:709;outer:x.go:573;inner:x.go:259 20\n",
        (struct import_options){0}, with_lines);
    expect_fold_with("jstack",
                     "\"w-1\" #1\n   java.lang.Thread.State: RUNNABLE\n"
                     "\tat a.B.c(B.java:12)\n\tat a.D.run(Native Method)\n\n",
                     "w;a.D.run;a.B.c:B.java:12 1\n", (struct import_options){0}, with_lines);
    expect_fold_with("gdb",
                     "#0  0x7f1 in poll () from /lib/libc.so.6\n#1  0x7f2 in f (a=1) at /s/f.c:7\n"
                     "#2  main (argc=1) at m.c:70\n",
                     "main:m.c:70;f:f.c:7;poll 1\n", (struct import_options){0}, with_lines);
    expect_fold_with(
        "eu-stack",
        "PID 7 - process\nTID 7:\n#0  0x7f1 f - /x\n    /s/f.c:7:3\n#1  0x7f2 - 1 main - /x\n"
        "    /s/m.c:70\n",
        "main:m.c:70;f:f.c:7 1\n", (struct import_options){0}, with_lines);
}

/* Two lines of one function are one frame where nobody asks for lines. */
static void test_lines_add_up(void **state) {
    const char *text = "#0  f () at f.c:7\n#1  main () at m.c:1\n\n"
                       "#0  f () at f.c:8\n#1  main () at m.c:1\n";
    expect_fold("gdb", text, "main;f 2\n");
    expect_fold_with("gdb", text, "main:m.c:1;f:f.c:7 1\nmain:m.c:1;f:f.c:8 1\n",
                     (struct import_options){0}, with_lines);
}

static void assert_string(const struct tree *tree, uint32_t id, const char *expected) {
    assert_true(text_equal(strings_get(tree->strings, id), text_of(expected)));
}

/* The function of that name; its location is in *found. */
static const struct function *function_named(const struct tree *tree, const char *name,
                                             const struct location **found) {
    for (size_t i = 1; i < tree->locations.count; i++) {
        *found = &tree->locations.items[i];
        if (text_equal(strings_get(tree->strings, location_name(tree, *found)), text_of(name)))
            return &tree->functions.items[(*found)->function];
    }
    fail_msg("no %s", name);
    return NULL;
}

static void assert_python(const struct tree *tree) {
    const struct location *location;
    const struct function *function = function_named(tree, "/a.py:3:f", &location);
    struct frame frame = location_frame(tree, location, 0);
    assert_int_equal(location_frame_count(location), 1);
    assert_string(tree, frame.name, "/a.py:3:f");
    assert_string(tree, frame.file, "/a.py");
    assert_int_equal(frame.line, 3);
    assert_string(tree, function->language, "python");
}

/* Joining and saving keep all of it. */
static void test_named_locations_are_kept(void **state) {
    struct import_options options = {0};
    struct error error = {0};
    struct written written;
    size_t size;
    struct tree *python = read_text(
        "faulthandler",
        TEXT("Thread 0x01 (most recent call first):\n  File \"/a.py\", line 3 in f\n"), &options);
    struct tree *java = read_text(
        "java-exceptions", TEXT("a.B: x\n\tat a.B.c(B.java:12)\n\tat a.D.run(D.java)\n"), &options);
    assert_python(python);
    tree_join(java, python);
    assert_python(java);
    written_begin(&written);
    assert_true(saved_write(&written.out, java, &error));
    char *bytes = written_end(&written, &size);
    struct tree *again = tree_new();
    assert_true(saved_read((struct text){bytes, size}, "x", &options.profile, again, &error));
    assert_python(again);
    const struct location *location;
    const struct function *method = function_named(again, "a.B.c", &location);
    assert_string(again, method->module, "a.B");
    assert_string(again, method->language, "java");
    assert_string(again, method->file, "B.java");
    assert_int_equal(location->line, 12);
    tree_done(again);
    tree_done(java);
    tree_done(python);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtrace),
        cmocka_unit_test(test_bpftrace),
        cmocka_unit_test(test_go),
        cmocka_unit_test(test_go_grows),
        cmocka_unit_test(test_svg_turned),
        cmocka_unit_test(test_gdb),
        cmocka_unit_test(test_eu_stack),
        cmocka_unit_test(test_stap),
        cmocka_unit_test(test_pmcstat),
        cmocka_unit_test(test_pmcstat_events),
        cmocka_unit_test(test_jstack),
        cmocka_unit_test(test_java_exceptions),
        cmocka_unit_test(test_source_lines),
        cmocka_unit_test(test_lines_add_up),
        cmocka_unit_test(test_named_locations_are_kept),
        cmocka_unit_test(test_faulthandler),
        cmocka_unit_test(test_chrome),
        cmocka_unit_test(test_chrome_spans_that_begin_together),
        cmocka_unit_test(test_perf_sched),
        cmocka_unit_test(test_offcputime),
        cmocka_unit_test(test_recursive),
        cmocka_unit_test(test_xctrace),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_guesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
