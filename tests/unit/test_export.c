/* What is exported of trees that are made by hand: order, times, what no sample stands for, and the shapes of stacks. */
#include <stdio.h>

#include "export/export.h"
#include "folding.h"

struct made {
    struct tree *tree;
    uint32_t event, thread;
};

static struct made made_new(const char *unit) {
    struct made made = {.tree = tree_new()};
    made.event = tree_add_event(made.tree, TEXT("cpu-clock"), text_of(unit), EVENT_SOFTWARE);
    made.thread = tree_add_thread(made.tree, &(struct thread){.pid = 7, .tid = 8});
    made.tree->keep_samples = true;
    return made;
}

static uint32_t node_of(struct tree *tree, const char *folded) {
    uint32_t node = 0;
    for (struct text rest = text_of(folded); rest.length;) {
        size_t end = text_find(rest, ';');
        struct text name = end == SIZE_MAX ? rest : text_upto(rest, end);
        struct location location = {.function = tree_name_function(tree, name)};
        node = tree_add_node(tree, node, tree_add_location(tree, &location));
        rest = text_from(rest, end == SIZE_MAX ? rest.length : end + 1);
    }
    return node;
}

static uint32_t series_of(const struct made *made, enum state state) {
    return tree_add_series(made->tree,
                           &(struct series){.event = made->event,
                                            .thread = made->thread,
                                            .comm = strings_add(made->tree->strings, TEXT("app")),
                                            .state = state});
}

/* Time 0: counted, but no sample is kept. */
static void add(const struct made *made, const char *folded, enum state state, uint64_t time,
                uint64_t weight) {
    uint32_t node = node_of(made->tree, folded), series = series_of(made, state);
    tree_count(made->tree, node, series, 1, weight);
    if (time)
        tree_keep_sample(
            made->tree,
            &(struct sample){.time = time, .weight = weight, .node = node, .series = series});
}

static char *exported(struct made *made, const char *format, struct flame_options shape) {
    struct naming_options naming_options = {.no_comm = true, .is_script_text = true};
    struct naming *naming = naming_of_tree(made->tree, &naming_options);
    struct export_options options = {.shape = &shape, .title = "title"};
    struct written written;
    struct error error;
    written_begin(&written);
    if (!export_write(&written.out, export_format_named(format), made->tree, naming, &options,
                      &error))
        fail_msg("%s", error.message);
    naming_free(naming);
    return written_end(&written, NULL);
}

/* What stands behind "profiles". */
static void expect_profiles(struct made *made, struct flame_options shape, const char *expected) {
    char *text = exported(made, "speedscope", shape);
    char *profiles = strstr(text, "\"profiles\":");
    assert_non_null(profiles);
    assert_string_equal(profiles, expected);
    free(text);
    tree_done(made->tree);
}

#define PROFILE(unit, rest)                                                                        \
    "\"profiles\":[\n{\"type\":\"sampled\",\"name\":\"app-7/8\",\"unit\":\"" unit "\"," rest       \
    "}\n]}\n"

static void test_times(void **state) {
    struct made made = made_new("ns");
    add(&made, "b", STATE_ON, 1100, 100);
    add(&made, "b", STATE_ON, 1210, 100); /* 10 late: jitter */
    add(&made, "a", STATE_ON, 1900, 100);
    add(&made, "a", STATE_ON, 1950, 100); /* would begin before the last ended */
    expect_profiles(&made, (struct flame_options){0},
                    PROFILE("nanoseconds", "\"samples\":[[1],[],[0]],\"weights\":[200,600,200],"
                                           "\"startValue\":0,\"endValue\":1000"));
}

/* A wait begins when its sample was taken; what ran lies between waits, wherever its samples were. */
static void test_wall(void **state) {
    struct made made = made_new("ns");
    add(&made, "run", STATE_ON, 1500, 500);
    add(&made, "wait", STATE_SLEEP, 1600, 1000);
    add(&made, "run", STATE_ON, 2900, 300);
    add(&made, "wait", STATE_DISK, 2900, 50);
    add(&made, "untold", STATE_ON, 0, 30);
    expect_profiles(&made, (struct flame_options){0},
                    PROFILE("nanoseconds",
                            "\"samples\":[[0],[],[2],[0],[2],[1]],\"weights\":[500,100,1000,300,50,"
                            "30],\"startValue\":0,\"endValue\":1980"));
}

/* Counts that are no time follow one another, and no gap is among them. */
static void test_counts(void **state) {
    struct made made = made_new("cycles");
    add(&made, "b;c", STATE_ON, 1000, 7);
    add(&made, "a", STATE_ON, 2000000, 5);
    add(&made, "", STATE_ON, 3000000, 2);
    expect_profiles(&made, (struct flame_options){0},
                    PROFILE("none", "\"samples\":[[2,3],[1],[0]],\"weights\":[7,5,2],"
                                    "\"startValue\":0,\"endValue\":14"));
}

static void test_by_samples(void **state) {
    struct made made = made_new("ns");
    add(&made, "a", STATE_ON, 1000, 70);
    add(&made, "a", STATE_ON, 2000, 50);
    add(&made, "b", STATE_ON, 0, 50);
    expect_profiles(&made, (struct flame_options){.by_samples = true},
                    PROFILE("none", "\"samples\":[[0],[1]],\"weights\":[2,1],"
                                    "\"startValue\":0,\"endValue\":3"));
}

static void test_shapes(void **state) {
    struct made made = made_new("cycles");
    add(&made, "f;f;g;f;f;g", STATE_ON, 0, 4);
    add(&made, "f;g", STATE_ON, 0, 3);
    expect_profiles(&made, (struct flame_options){.fold_recursion = true, .max_depth = 3},
                    PROFILE("none", "\"samples\":[[0,1],[0,1,0]],\"weights\":[3,4],"
                                    "\"startValue\":0,\"endValue\":7"));
}

/* Whatever order things were read in. */
static void test_order(void **state) {
    static const char *const stacks[] = {"a;b", "a;c;d", "b", "a", "z;a;b"};
    char *first[2] = {0};
    const char *const formats[] = {"speedscope", "pprof"};
    for (size_t start = 0; start < COUNT_OF(stacks); start++) {
        struct made made = made_new("cycles");
        for (size_t i = 0; i < COUNT_OF(stacks); i++) {
            size_t at = (start + i * 3) % COUNT_OF(stacks);
            add(&made, stacks[at], STATE_ON, 0, at + 1);
        }
        for (size_t i = 0; i < COUNT_OF(formats); i++) {
            char *text = exported(&made, formats[i], (struct flame_options){0});
            if (first[i])
                assert_memory_equal(text, first[i], strlen(first[i]));
            else
                first[i] = text, text = NULL;
            free(text);
        }
        tree_done(made.tree);
    }
    free(first[0]);
    free(first[1]);
}

static void test_paths(void **state) {
    assert_string_equal(export_format_of_path("dir/x.speedscope.json")->name, "speedscope");
    assert_string_equal(export_format_of_path("x.pb.gz")->name, "pprof");
    assert_string_equal(export_format_of_path("x.pprof")->name, "pprof");
    assert_null(export_format_of_path("x.json"));
    assert_null(export_format_of_path("pprof"));
    assert_null(export_format_named("json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),  cmocka_unit_test(test_wall),
        cmocka_unit_test(test_counts), cmocka_unit_test(test_by_samples),
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_order),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
