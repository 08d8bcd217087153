#include "folding.h"

/* One frame line under the comm "c", by both sets of rules. */
static void expect_names(const char *frame, const char *wick, const char *inferno,
                         struct naming_options options) {
    char text[1000], wanted[1000];
    snprintf(text, sizeof text, "c 7 1.5: 1 cycles: \n\t%s\n\t1 x (/x)\n\n", frame);
    snprintf(wanted, sizeof wanted, "c;x%s 1\n", wick);
    expect_fold_with("perf", text, wanted, (struct import_options){0}, options);
    options.quirks = quirks_inferno;
    snprintf(wanted, sizeof wanted, "c;x%s 1\n", inferno);
    expect_fold_with("perf", text, wanted, (struct import_options){0}, options);
}

static void expect_both(const char *frame, const char *wick, const char *inferno) {
    expect_names(frame, wick, inferno, (struct naming_options){0});
}

static void test_arguments(void **state) {
    expect_both("1 f(int, char) (/a)", ";f", ";f");
    expect_both("1 f(int) const (/a)", ";f", ";f");
    expect_both("1 std::function<int (int)>::operator()(int) const (/a)",
                ";std::function<int (int)>::operator()", ";std::function<int (int)>::operator");
    expect_both("1 a::operator<(b) (/a)", ";a::operator<", ";a::operator<(b)");
    expect_both("1 a::operator=(a const&) [clone .isra.0] (/a)", ";a::operator=", ";a::operator=");
    expect_both("1 operator==(a, b) (/a)", ";operator==", ";operator==");
    expect_both("1 a::operator-><int>(b) (/a)", ";a::operator-><int>", ";a::operator;<int>_[i]");
    expect_both("1 a::operator()<int>(b) (/a)", ";a::operator()<int>", ";a::operator");
    expect_both("1 f(int)::{lambda(char)#1}::operator()(char) const (/a)",
                ";f(int)::{lambda(char)#1}::operator()", ";f");
    expect_both("1 (anonymous namespace)::f(int) (/a)", ";(anonymous namespace)::f", "");
    expect_both("1 a::(anonymous namespace)::f(int) (/a)", ";a::(anonymous namespace)::f",
                ";a::(anonymous namespace)::f");
    expect_both("1 net/http.(*Client).Do (/a)", ";net/http.(*Client).Do", ";net/http.(*Client).Do");
    expect_both("1 f<&(g(int))>(h) (/a)", ";f<&(g(int))>", ";f<&(g(int))>");
}

static void test_objects(void **state) {
    expect_both("1 f+0x9c (/my dir/x.so)", ";f", "");
    expect_both("1 f+0x9c (/x (deleted))", ";f", ";f+0x9c ");
    expect_both("1 [unknown] (/usr/lib/libc.so.6)", ";[libc.so.6]", ";[libc.so.6]");
    expect_both("1 [unknown] (/usr/lib/x (deleted))", ";[x]", ";[unknown] ");
    expect_both("1 [unknown] ([kernel.kallsyms])", ";[kernel.kallsyms]", ";[[kernel.kallsyms]]");
    expect_both("1 [unknown] ([unknown])", "", ";[unknown]");
    expect_both("1  (/a/b)", ";[b]", "; ");
    expect_both("1 f (inlined)", ";f", ";f");
}

static void test_keep_unknown(void **state) {
    struct naming_options options = {.keep_unknown = true};
    expect_names("1 [unknown] ([unknown])", ";[unknown]", ";[unknown]", options);
}

static void test_addresses(void **state) {
    struct naming_options options = {.addresses = true, .keep_unknown = true};
    expect_names("7f12 [unknown] (/lib/a.so)", ";[a.so <7f12>]", ";[a.so <7f12>]", options);
    expect_names("7f12 [unknown] ([unknown])", ";[unknown <7f12>]", ";[unknown <7f12>]", options);
    expect_names("007f [unknown] (/lib/a.so)", ";[a.so <007f>]", ";[a.so <007f>]", options);
    expect_names("0 [unknown] (/lib/a.so)", ";[a.so <0>]", ";[a.so <0>]", options);
    expect_names("7f12 known (/lib/a.so)", ";known", ";known", options);
}

static void test_marks(void **state) {
    struct naming_options options = {.mark_kernel = true, .mark_jit = true, .mark_inline = true};
    expect_names("1 f ([kernel.kallsyms])", ";f_[k]", ";f_[k]", options);
    expect_names("1 f ([vdso])", ";f", ";f_[k]", options);
    expect_names("1 f (/lib/modules/a.ko.xz)", ";f_[k]", ";f", options);
    expect_names("1 f (/boot/vmlinux-6.1.0)", ";f_[k]", ";f_[k]", options);
    expect_names("1 f (/tmp/perf-12.map)", ";f_[j]", ";f_[j]", options);
    expect_names("1 f (/tmp/jitted-1-2.so)", ";f_[j]", ";f_[j]", options);
    expect_names("1 a->b (/tmp/perf-12.map)", ";a_[j];b_[i]", ";a_[j];b_[i]", options);
    expect_names("1 f (inlined)", ";f_[i]", ";f", options);
}

static void test_java(void **state) {
    const char *text = "java 7 1.5: 1 cycles: \n\t1 Lorg/a/B;::call(I)V (/tmp/perf-7.map)\n\n"
                       "Thread-1 8 1.5: 1 cycles: \n\t1 Lorg/a/B;::call(I)V (/tmp/perf-7.map)\n\n";
    expect_fold("perf", text, "Thread-1;org/a/B:::call 1\njava;org/a/B:::call 1\n");
    expect_inferno("perf", text, "Thread-1;Lorg/a/B:::call 1\njava;org/a/B:::call 1\n");
}

static void test_javascript(void **state) {
    expect_both("1 LazyCompile:*f /a(b)/c.js:1:2 (/tmp/perf-7.map)",
                ";LazyCompile:*f /a(b)/c.js:1:2", ";LazyCompile:*f /a");
}

static void test_rust(void **state) {
    expect_both("1 _$LT$a..b$GT$::c::h0123456789abcdef (/a)", ";<a::b>::c", ";<a::b>::c");
}

static void test_separators(void **state) {
    expect_both("1 a;b (/a)", ";a:b", ";a:b");
}

static void test_roots(void **state) {
    const char *text = "a b 5/7 1.5: 1 cycles: \n\t1 f (/a)\n\n";
    struct import_options import = {0};
    expect_fold_with("perf", text, "a_b-5;f 1\n", import,
                     (struct naming_options){.show_pid = true});
    expect_fold_with("perf", text, "a_b-5/7;f 1\n", import,
                     (struct naming_options){.show_tid = true});
    expect_fold_with("perf", text, "f 1\n", import, (struct naming_options){.no_comm = true});
    const char *one_id = "c 7 1.5: 1 cycles: \n\t1 f (/a)\n\n";
    expect_fold_with("perf", one_id, "c-?/7;f 1\n", import,
                     (struct naming_options){.show_tid = true, .quirks = quirks_inferno});
}

static void test_skip_after(void **state) {
    const char *text = "c 7 1.5: 1 cycles: \n\t1 leaf (/a)\n\t1 middle (/a)\n\t1 root (/a)\n\n";
    const char *names[] = {"middle"};
    struct naming_options options = {.skip_after = names, .skip_after_count = 1};
    expect_fold_with("perf", text, "middle;leaf 1\n", (struct import_options){0}, options);
    options.quirks = quirks_inferno;
    expect_fold_with("perf", text, "middle;leaf 1\n", (struct import_options){0}, options);
}

static void test_unknown_are_counted(void **state) {
    struct import_options import = {.profile.context = &(struct context){.threads = 1}};
    struct tree *tree =
        read_text("perf",
                  TEXT("c 7 1.5: 1 cycles: \n\t1 [unknown] ([unknown])\n\t1 f (/a)\n\n"
                       "c 7 1.6: 1 cycles: \n\t1 [unknown] ([unknown])\n\t1 f (/a)\n\n"),
                  &import);
    struct naming *naming = naming_of_tree(tree, &(struct naming_options){0});
    struct notes notes = {0};
    naming_notes(tree, naming, &notes);
    assert_int_equal(notes.count, 1);
    assert_int_equal(notes.items[0].count, 2);
    notes_release(&notes);
    naming_free(naming);
    tree_done(tree);
}

/* A perf.data's location: frames with symbols, named through the line that perf script would print. */
static void test_resolved_locations(void **state) {
    struct tree *tree = tree_new();
    tree->objects = objects_new(&(struct objects_options){0});
    uint32_t object = objects_add(
        tree->objects, &(struct object_identity){.path = TEXT("/a b/c"), .kind = OBJECT_FILE});
    uint32_t event = tree_add_event(tree, TEXT("cycles:u"), TEXT("cycles"), EVENT_HARDWARE);
    uint32_t thread = tree_add_thread(tree, &(struct thread){.pid = 5, .tid = 7});
    struct series series = {
        .event = event, .thread = thread, .comm = strings_add(tree->strings, TEXT("x 12 y"))};
    struct location location = {.object = object, .address = 0x1234, .unwound = 1};
    uint32_t id = tree_add_location(tree, &location);
    tree->locations.items[id].first_frame = 0;
    tree->locations.items[id].frame_count = 2;
    vector_push(
        &tree->frames,
        ((struct frame){.name = strings_add(tree->strings, TEXT("outer(int)")), .offset = 9}));
    vector_push(&tree->frames, ((struct frame){.name = strings_add(tree->strings, TEXT("inner")),
                                               .offset = 9,
                                               .inlined = true}));
    tree_count(tree, tree_add_node(tree, 0, id), tree_add_series(tree, &series), 1, 10);
    char *got = folded_tree(tree, &(struct naming_options){0}, &(struct flame_options){0});
    assert_string_equal(got, "x_12_y;outer;inner 10\n");
    free(got);
    got = folded_tree(tree, &(struct naming_options){.quirks = quirks_inferno, .show_tid = true},
                      &(struct flame_options){0});
    assert_string_equal(got, "x-?/12;inner 10\n"); /* the object's space loses the outer frame */
    free(got);
    tree_done(tree);
}

static void expect_short(const char *name, size_t columns, const char *wanted) {
    struct buffer text = {0};
    name_add_short(&text, text_of(name), columns);
    buffer_add_char(&text, 0);
    assert_string_equal(text.items, wanted);
    buffer_release(&text);
}

static void test_short(void **state) {
    const char *regex = "std::__detail::_Executor<char const*, std::allocator<int>, true>::_M_dfs";
    expect_short(regex, 200, regex);
    expect_short(regex, 40, "std::__detail::_Executor‹…›::_M_dfs");
    expect_short(regex, 30, "std::__detail::_Executo…_M_dfs");
    expect_short(regex, 20, "std::__detail…_M_dfs");
    expect_short("namespace::a_very_long_name_of_its_own", 11, "a_very_lon…");
    expect_short(regex, 7, "_M_dfs");
    expect_short(regex, 4, "_M_…");
    expect_short("tally::main::{{closure}}", 20, "ta…main::{{closure}}");
    expect_short("a::run(int)::{lambda(int)#1}::operator()", 32,
                 "run(int)::{lambda(int)#1}::oper…");
    expect_short("slices.partitionOrdered[go.shape.string]", 30, "slices.partitionOrdered[…]");
    expect_short("java.lang.AbstractStringBuilder.ensureCapacityInternal", 39,
                 "java.lang.Abstra…ensureCapacityInternal");
    expect_short("github.com/a/server/handlers.(*Mux).ServeHTTP", 20, "github.com…ServeHTTP");
    expect_short("finish_task_switch.isra.0", 20, "finish_ta…tch.isra.0");
    expect_short("runtime.systemstack_switch.abi0", 30, "runtim…systemstack_switch.abi0");
    expect_short("JS:*renderPage /srv/app/page.js:3:20", 24, "JS:*renderP…page.js:3:20");
    expect_short("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 20, "/usr/…libstdc++.so.6");
    expect_short("../sysdeps/x86_64/multiarch/memcmp-evex.S:123", 24, "../sys…memcmp-evex.S:123");
    expect_short("a::operator<<<int, int>", 20, "a::operator<<‹…›");
    expect_short("a::operator==<int, int, int>", 20, "a::operator==‹…›");
    expect_short("<alloc::vec::Vec<T> as core::Trait>::collect::<Vec<T>>", 50,
                 "<alloc::vec::Vec‹…› as core::Trait>::collect::‹…›");
    expect_short("<module>", 3, "<…>");
    expect_short("äöüäöüäöü", 5, "äö…öü");
    expect_short("abc", 0, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_keep_unknown),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_java),
        cmocka_unit_test(test_javascript),
        cmocka_unit_test(test_rust),
        cmocka_unit_test(test_separators),
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_skip_after),
        cmocka_unit_test(test_unknown_are_counted),
        cmocka_unit_test(test_resolved_locations),
        cmocka_unit_test(test_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
