#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "stacks/stacks.h"

/* A tree of bare names, and the naming that shows each as it is. */
static uint32_t named(struct tree *tree, const char *name) {
    struct tree *whole =
        tree->whole ? (struct tree *)(uintptr_t)tree->whole : tree; /* has the functions */
    struct location location = {.function = tree_name_function(whole, text_of(name))};
    return tree_add_location(tree, &location);
}

static void count_stack(struct tree *tree, uint32_t series, uint64_t weight, const char *stack) {
    uint32_t node = 0;
    struct text rest = text_of(stack);
    while (rest.length) {
        size_t end = text_find(rest, ';');
        struct text word = end == SIZE_MAX ? rest : text_upto(rest, end);
        char name[50];
        snprintf(name, sizeof name, "%.*s", TEXT_ARGS(word));
        node = tree_add_node(tree, node, named(tree, name));
        rest = end == SIZE_MAX ? TEXT("") : text_from(rest, end + 1);
    }
    tree_count(tree, node, series, 1, weight);
}

static uint32_t series_of(struct tree *tree, const char *comm) {
    struct series series = {.event = 1, .comm = strings_add(tree->strings, text_of(comm))};
    return tree_add_series(tree, &series);
}

static void naming_as_is(const struct tree *tree, struct naming *naming) {
    *naming = (struct naming){.strings = strings_new()};
    for (size_t i = 0; i < tree->locations.count; i++) {
        struct label label = {
            .name = strings_add(
                naming->strings,
                strings_get(tree->strings, location_name(tree, &tree->locations.items[i])))};
        vector_push(
            &naming->locations,
            ((struct naming_entry){.first = (uint32_t)naming->labels.count, .count = i > 0}));
        vector_push(&naming->labels, label);
    }
    for (size_t i = 0; i < tree->series.count; i++) {
        struct label label = {
            .name = strings_add(naming->strings,
                                strings_get(tree->strings, tree->series.items[i].comm))};
        vector_push(&naming->series, ((struct naming_entry){.first = (uint32_t)naming->labels.count,
                                                            .count = i > 0}));
        vector_push(&naming->labels, label);
    }
}

static void naming_done(struct naming *naming) {
    strings_free(naming->strings);
    vector_release(&naming->labels);
    vector_release(&naming->locations);
    vector_release(&naming->series);
}

/* "name:self/total " of all nodes, depth first. */
static void walk(const struct flame *flame, struct buffer *buffer) {
    uint32_t at = 0;
    do {
        const struct flame_node *node = &flame->nodes.items[at];
        buffer_printf(buffer, "%.*s:%d/%d ", TEXT_ARGS(flame_name(flame, at)), (int)node->self,
                      (int)node->total);
        at = flame_next(flame, at);
    } while (at);
}

static void expect_flame(const struct tree *tree, struct flame_options options,
                         const char *expected) {
    struct naming naming;
    struct error error;
    naming_as_is(tree, &naming);
    struct flame *flame = flame_of_tree(tree, &naming, &options, &error);
    assert_non_null(flame);
    struct buffer buffer = {0};
    walk(flame, &buffer);
    buffer_add_char(&buffer, 0);
    assert_string_equal(buffer.items, expected);
    buffer_release(&buffer);
    flame_free(flame);
    naming_done(&naming);
}

static struct tree *sample_tree(void) {
    struct tree *tree = tree_new();
    tree_add_event(tree, TEXT("cycles"), TEXT("cycles"), EVENT_HARDWARE);
    uint32_t app = series_of(tree, "app"), idle = series_of(tree, "idle");
    count_stack(tree, app, 5, "main;f;f;g");
    count_stack(tree, app, 2, "main;f!");
    count_stack(tree, app, 3, "main;f");
    count_stack(tree, idle, 7, "main;f");
    count_stack(tree, idle, 9, "");
    return tree;
}

static void a_flame_adds_up_and_is_ordered_as_folded_lines(void **state) {
    struct tree *tree = sample_tree();
    expect_flame(tree, (struct flame_options){0},
                 ":0/17 app:0/10 main:0/10 f!:2/2 f:3/8 f:0/5 g:5/5 idle:0/7 main:0/7 f:7/7 ");
    tree_free(tree);
}

static void a_flame_can_be_shaped(void **state) {
    struct tree *tree = sample_tree();
    expect_flame(tree, (struct flame_options){.keep_empty = true, .fold_recursion = true},
                 ":0/26 app:0/10 main:0/10 f!:2/2 f:3/8 g:5/5 idle:9/16 main:0/7 f:7/7 ");
    expect_flame(tree, (struct flame_options){.max_depth = 1, .by_samples = true},
                 ":0/4 app:0/3 main:3/3 idle:0/1 main:1/1 ");
    expect_flame(tree, (struct flame_options){.reverse = true},
                 ":0/17 f!:0/2 main:0/2 app:2/2 f:0/10 main:0/10 app:3/3 idle:7/7 "
                 "g:0/5 f:0/5 f:0/5 main:0/5 app:5/5 ");
    tree_free(tree);
}

/* As threads' parts are: nodes behind each other, twins and all, which the flame adds up. */
static void join_part(struct tree *tree, struct tree *part) {
    uint32_t *series = memory_zero(part->series.count, sizeof *series);
    uint32_t before = tree_append_nodes(tree, part);
    tree_merge_series(tree, part, series);
    for (size_t i = 1; i < part->cells.count; i++) {
        struct cell cell = part->cells.items[i];
        cell.node += cell.node ? before : 0;
        cell.series = series[cell.series];
        tree_append_cell(tree, &cell);
    }
    free(series);
    tree_free(part);
}

static void joined_parts_are_the_whole(void **state) {
    struct tree *tree = sample_tree();
    struct tree *part = tree_new_part(tree);
    uint32_t series = tree_add_series(part, &tree->series.items[1]);
    uint32_t node = tree_add_node(part, 0, tree_add_location(part, &tree->locations.items[1]));
    tree_count(part, node, series, 1, 100);
    uint32_t unnamed = tree_find_thread(part, 12, 34);
    assert_int_equal(tree_find_thread(part, 12, 34), unnamed);
    struct series of_thread = {.event = 1, .thread = unnamed};
    tree_count(part, node, tree_add_series(part, &of_thread), 1, 1);
    join_part(tree, part);
    const struct series *merged = &tree->series.items[tree->series.count - 1];
    assert_int_equal(tree->threads.items[merged->thread].tid, 34);
    struct buffer comm = {0};
    tree_add_comm(tree, merged, &comm);
    assert_true(text_equal(buffer_text(&comm), TEXT(":34")));
    buffer_release(&comm);
    expect_flame(tree, (struct flame_options){0},
                 ":0/118 :0/1 main:1/1 app:0/110 main:100/110 f!:2/2 f:3/8 f:0/5 g:5/5 idle:0/7 "
                 "main:0/7 f:7/7 ");
    tree_free(tree);
}

/* What is known, what is new, and what is new below that; then a stack that goes on from one part's nodes, behind the other's. */
static void a_flame_of_parts_is_the_flame_of_all(void **state) {
    struct tree *tree = sample_tree();
    for (uint64_t weight = 10; weight <= 1000; weight *= 10) {
        struct tree *part = tree_new_part(tree);
        uint32_t app = tree_add_series(part, &tree->series.items[1]);
        count_stack(part, app, weight, "main;f;f;g");
        count_stack(part, app, weight, "main;z;f;f");
        count_stack(part, app, weight, "main;z;f;g");
        count_stack(part, app, weight, "");
        join_part(tree, part);
    }
    expect_flame(tree, (struct flame_options){.keep_empty = true},
                 ":0/4466 app:1110/4450 main:0/3340 f!:2/2 f:3/1118 f:0/1115 g:1115/1115 "
                 "z:0/2220 f:0/2220 f:1110/1110 g:1110/1110 idle:9/16 main:0/7 f:7/7 ");
    count_stack(tree, 1, 5, "main;f;new");
    expect_flame(tree, (struct flame_options){0},
                 ":0/3352 app:0/3345 main:0/3345 f!:2/2 f:3/1123 f:0/1115 g:1115/1115 new:5/5 "
                 "z:0/2220 f:0/2220 f:1110/1110 g:1110/1110 idle:0/7 main:0/7 f:7/7 ");
    tree_free(tree);
}

static void too_much_weight_is_an_error(void **state) {
    struct tree *tree = tree_new();
    tree_add_event(tree, TEXT("e"), TEXT("e"), EVENT_OTHER);
    uint32_t a = series_of(tree, "a"), b = series_of(tree, "b");
    struct error error;
    count_stack(tree, a, UINT64_MAX, "x");
    assert_true(tree_check(tree, &error));
    count_stack(tree, b, 1, "x");
    struct naming naming;
    naming_as_is(tree, &naming);
    struct flame_options options = {0};
    assert_null(flame_of_tree(tree, &naming, &options, &error));
    assert_int_equal(error.kind, ERROR_INPUT);
    naming_done(&naming);
    count_stack(tree, a, 1, "x");
    assert_false(tree_check(tree, &error));
    tree_free(tree);
}

static void samples_come_out_in_key_order(void **state) {
    struct tree *tree = tree_new();
    tree->keep_samples = true;
    uint64_t seed = 1;
    for (int i = 0; i < 3000; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        struct sample sample = {.time = seed >> 60,
                                .offset = seed >> 20 & 0xffff,
                                .file = seed >> 50 & 1,
                                .round = seed >> 40 & 1};
        tree_keep_sample(tree, &sample);
    }
    tree_sort_samples(tree);
    assert_int_equal(tree->samples.count, 3000);
    for (size_t i = 1; i < tree->samples.count; i++) {
        const struct sample *x = &tree->samples.items[i - 1], *y = &tree->samples.items[i];
        bool ordered = x->round != y->round ? x->round < y->round
                       : x->time != y->time ? x->time < y->time
                       : x->file != y->file ? x->file < y->file
                                            : x->offset <= y->offset;
        assert_true(ordered);
    }
    tree_free(tree);
}

static void depth_is_no_danger(void **state) {
    struct tree *tree = tree_new();
    tree_add_event(tree, TEXT("e"), TEXT("e"), EVENT_OTHER);
    uint32_t series = series_of(tree, "a"), f = named(tree, "f"), node = 0;
    for (int i = 0; i < 100000; i++)
        node = tree_add_node(tree, node, f);
    tree_count(tree, node, series, 1, 1);
    struct naming naming;
    struct error error;
    naming_as_is(tree, &naming);
    struct flame_options options = {0};
    struct flame *flame = flame_of_tree(tree, &naming, &options, &error);
    assert_int_equal(flame->max_depth, 100001);
    flame_free(flame);
    naming_done(&naming);
    tree_free(tree);
}

static void filters_let_through_what_they_say(void **state) {
    const char *events[] = {"cycles"}, *comms[] = {"a b"};
    int32_t pids[] = {1, 2};
    struct filter filter = {.events = events,
                            .event_count = 1,
                            .comms = comms,
                            .comm_count = 1,
                            .pids = pids,
                            .pid_count = 2,
                            .has_time = true,
                            .time_from = 5,
                            .time_to = 9};
    assert_true(filter_event(&filter, TEXT("cycles")));
    assert_false(filter_event(&filter, TEXT("cycles:u")));
    assert_true(filter_sample(&filter, 2, 7, TEXT("a b"), 0, 9));
    assert_false(filter_sample(&filter, 3, 7, TEXT("a b"), 0, 9));
    assert_false(filter_sample(&filter, 2, 7, TEXT("a"), 0, 9));
    assert_false(filter_sample(&filter, 2, 7, TEXT("a b"), 0, 10));
    struct filter none = {0};
    assert_true(filter_sample(&none, -1, -1, TEXT(""), UINT32_MAX, 0));
}

/* ---- labels ---- */

static uint32_t labels_of(struct tree *tree, const char *const *words, size_t count) {
    struct label_pair pairs[8];
    for (size_t i = 0; i < count; i++)
        pairs[i] = (struct label_pair){strings_add(tree->strings, text_of(words[2 * i])),
                                       strings_add(tree->strings, text_of(words[2 * i + 1]))};
    return tree_add_labels(tree, pairs, count);
}

static void assert_label(const struct tree *tree, const struct series *series, const char *key,
                         const char *expected) {
    struct buffer value = {0};
    assert_int_equal(series_label(tree, series, text_of(key), &value), expected != NULL);
    buffer_add_char(&value, 0);
    assert_string_equal(value.items, expected ? expected : "");
    buffer_release(&value);
}

static void label_sets_are_interned(void **state) {
    struct tree *tree = tree_new();
    uint32_t set = labels_of(tree, (const char *[]){"service", "api", "host", "a"}, 2);
    size_t count;
    assert_int_equal(labels_of(tree, (const char *[]){"host", "a", "service", "api"}, 2), set);
    assert_int_equal(
        labels_of(tree, (const char *[]){"host", "b", "host", "a", "service", "api"}, 3), set);
    assert_int_not_equal(labels_of(tree, (const char *[]){"host", "a"}, 1), set);
    assert_int_equal(tree_add_labels(tree, NULL, 0), 0);
    const struct label_pair *pairs = tree_labels(tree, set, &count);
    assert_int_equal(count, 2);
    assert_true(text_equal(strings_get(tree->strings, pairs[0].key), TEXT("host")));
    uint32_t more = tree_set_label(tree, set, TEXT("host"), TEXT("b"));
    assert_int_not_equal(more, set);
    assert_int_equal(tree_set_label(tree, more, TEXT("host"), TEXT("a")), set);
    assert_int_equal(tree_set_label(tree, tree_set_label(tree, set, TEXT("host"), TEXT("")),
                                    TEXT("service"), TEXT("")),
                     0);
    tree_free(tree);
}

static void series_answer_by_key(void **state) {
    struct tree *tree = tree_new();
    uint32_t event = tree_add_event(tree, TEXT("cycles"), TEXT("cycles"), EVENT_HARDWARE);
    struct series series = {.event = event,
                            .thread = tree_add_thread(tree, &(struct thread){.pid = 7, .tid = 8}),
                            .comm = strings_add(tree->strings, TEXT("app")),
                            .labels = labels_of(tree, (const char *[]){"service", "api"}, 1),
                            .state = STATE_DISK,
                            .ending = ENDING_BROKEN};
    assert_label(tree, &series, "event", "cycles");
    assert_label(tree, &series, "pid", "7");
    assert_label(tree, &series, "tid", "8");
    assert_label(tree, &series, "comm", "app");
    assert_label(tree, &series, "state", "disk");
    assert_label(tree, &series, "ending", "broken");
    assert_label(tree, &series, "service", "api");
    assert_label(tree, &series, "host", NULL);
    struct series bare = {.event = event, .ending = ENDING_UNKNOWN};
    assert_label(tree, &bare, "pid", NULL);
    assert_label(tree, &bare, "comm", NULL);
    assert_label(tree, &bare, "ending", NULL);
    assert_label(tree, &bare, "state", "on-cpu");
    tree_free(tree);
}

static void labels_filter_cells(void **state) {
    struct tree *tree = tree_new();
    uint32_t event = tree_add_event(tree, TEXT("cycles"), TEXT("cycles"), EVENT_HARDWARE);
    const char *services[] = {"api-1", "api-2", "db"};
    for (size_t i = 0; i < COUNT_OF(services); i++) {
        struct series series = {
            .event = event, .labels = labels_of(tree, (const char *[]){"service", services[i]}, 1)};
        tree_count(tree, 0, tree_add_series(tree, &series), 1, 10 << i);
    }
    tree_count(tree, 0, tree_add_series(tree, &(struct series){.event = event}), 1, 1);
    struct label_filter wanted[] = {{"service", "api-*"}, {"service", ""}, {"state", "on-cpu"}};
    struct filter filter = {.labels = wanted, .label_count = 3};
    tree_filter_labels(tree, &filter);
    uint64_t sum = 0;
    for (size_t i = 1; i < tree->cells.count; i++)
        sum += tree->cells.items[i].weight;
    assert_int_equal(sum, 10 + 20 + 1);
    assert_int_equal(tree->notes.count, 1);
    assert_int_equal(tree->notes.items[0].count, 1);
    filter.label_count = 1;
    tree_filter_labels(tree, &filter);
    assert_int_equal(tree->cells.count, 1 + 2);
    tree_free(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(label_sets_are_interned),
        cmocka_unit_test(series_answer_by_key),
        cmocka_unit_test(labels_filter_cells),
        cmocka_unit_test(a_flame_adds_up_and_is_ordered_as_folded_lines),
        cmocka_unit_test(a_flame_can_be_shaped),
        cmocka_unit_test(joined_parts_are_the_whole),
        cmocka_unit_test(a_flame_of_parts_is_the_flame_of_all),
        cmocka_unit_test(too_much_weight_is_an_error),
        cmocka_unit_test(samples_come_out_in_key_order),
        cmocka_unit_test(depth_is_no_danger),
        cmocka_unit_test(filters_let_through_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
