/* room saved: what is written is read back, the same bytes from any order of reading, and what an enemy wrote is refused. */
#include "written.h"

#include <stdlib.h>

#include <xxhash.h>

#include "object/object.h"
#include "saved/saved.h"

static uint32_t location_of(struct tree *tree, uint32_t object, uint64_t address, const char *name,
                            const char *file, uint32_t line) {
    struct location location = {.object = object, .address = address, .call = address & 1};
    uint32_t id = tree_add_location(tree, &location);
    if (tree->locations.items[id].frame_count)
        return id;
    struct frame outer = {.name = strings_add(tree->strings, text_of(name)), .offset = 4};
    struct frame inner = {.name = strings_add(tree->strings, TEXT("inlined")),
                          .file = strings_add(tree->strings, text_of(file)),
                          .line = line,
                          .column = 7,
                          .language = strings_add(tree->strings, TEXT("rust")),
                          .inlined = true};
    tree->locations.items[id].first_frame = (uint32_t)tree->frames.count;
    tree->locations.items[id].frame_count = 2;
    vector_push(&tree->frames, outer);
    vector_push(&tree->frames, inner);
    return id;
}

static const struct note_kind note_test = {"test", "# thing{ was|s were} lost"};

/* Two threads, two stacks with a common root, samples. Reversed: the same added in another order, and with a node twice. */
static struct tree *make_tree(bool reversed) {
    struct tree *tree = tree_new();
    tree->keep_samples = true;
    tree->objects = objects_new(&(struct objects_options){0});
    uint32_t objects[2];
    for (int k = 0; k < 2; k++) {
        int i = reversed ? 1 - k : k;
        objects[i] = objects_add(
            tree->objects,
            &(struct object_identity){.path = text_of(i ? "/bin/b" : "/bin/a"),
                                      .kind = OBJECT_FILE,
                                      .build_id = {.size = 3, .bytes = {1, 2, (uint8_t)i}}});
    }
    uint32_t event = tree_add_event(tree, TEXT("cpu-clock"), TEXT("ns"), EVENT_SOFTWARE);
    for (int k = 0; k < 2; k++) {
        int i = reversed ? 1 - k : k;
        struct label_pair pair = {strings_add(tree->strings, TEXT("service")),
                                  strings_add(tree->strings, text_of(i ? "api" : "db"))};
        uint32_t thread = tree_add_thread(
            tree, &(struct thread){.pid = 10, .tid = 10 + i, .start = 5, .end = UINT64_MAX});
        uint32_t series =
            tree_add_series(tree, &(struct series){.event = event,
                                                   .thread = thread,
                                                   .comm = strings_add(tree->strings, TEXT("prog")),
                                                   .labels = tree_add_labels(tree, &pair, 1),
                                                   .ending = ENDING_TRUNCATED});
        uint32_t root = location_of(tree, objects[0], 100, "main", "a.c", 1);
        uint32_t leaf =
            location_of(tree, objects[1], 201 + (uint32_t)i, i ? "left" : "right", "b.c", 2);
        uint32_t node = reversed ? tree_append_node(tree, 0, root) : tree_add_node(tree, 0, root);
        node = tree_append_node(tree, node, leaf);
        tree_append_cell(
            tree, &(struct cell){.node = node, .series = series, .samples = 1, .weight = 10});
        tree_append_cell(tree,
                         &(struct cell){.node = node, .series = series, .samples = 2, .weight = 5});
    }
    for (int i = 0; i < 2; i++) {
        uint32_t series = reversed ? 2 - (uint32_t)i : 1 + (uint32_t)i;
        const struct cell *cell = &tree->cells.items[reversed ? 3 - 2 * i : 1 + 2 * i];
        tree_keep_sample(tree, &(struct sample){.time = 1000 + 10 * (uint64_t)i,
                                                .weight = 10,
                                                .node = cell->node,
                                                .series = series,
                                                .cpu = (uint32_t)i});
    }
    notes_add(&tree->notes, &note_test, 3, 1, "an example");
    return tree;
}

static void free_tree(struct tree *tree) {
    objects_free(tree->objects);
    tree_free(tree);
}

static struct text save(const struct tree *tree) {
    struct written written;
    struct error error;
    size_t size;
    written_begin(&written);
    assert_true(saved_write(&written.out, tree, &error));
    char *bytes = written_end(&written, &size);
    return (struct text){bytes, size};
}

static struct tree *load(struct text bytes, const struct profile_options *options,
                         struct error *error) {
    struct tree *tree = tree_new();
    tree->keep_samples = true;
    if (saved_read(bytes, "x.wick", options, tree, error))
        return tree;
    free_tree(tree);
    return NULL;
}

static void test_round_trip(void **state) {
    struct tree *tree = make_tree(false);
    struct text bytes = save(tree), again;
    struct error error;
    struct tree *back = load(bytes, &(struct profile_options){.source_lines = true}, &error);
    assert_non_null(back);
    again = save(back);
    assert_true(text_equal(bytes, again));
    assert_int_equal(back->nodes.count, 4);
    assert_int_equal(back->cells.count, 3);
    assert_int_equal(back->samples.count, 2);
    assert_int_equal(back->samples.items[1].time, 1010);
    assert_int_equal(back->cells.items[1].weight, 15);
    assert_int_equal(back->frames.items[0].language, 0);
    assert_true(
        text_equal(strings_get(back->strings, back->frames.items[1].language), TEXT("rust")));
    assert_int_equal(back->notes.count, 1);
    assert_string_equal(back->notes.items[0].example, "an example");
    free((char *)(uintptr_t)bytes.data);
    free((char *)(uintptr_t)again.data);
    free_tree(tree);
    free_tree(back);
}

static void test_any_order_gives_the_same_bytes(void **state) {
    struct tree *a = make_tree(false), *b = make_tree(true);
    struct text x = save(a), y = save(b);
    assert_true(text_equal(x, y));
    free((char *)(uintptr_t)x.data);
    free((char *)(uintptr_t)y.data);
    free_tree(a);
    free_tree(b);
}

static void test_filters(void **state) {
    struct tree *tree = make_tree(false);
    struct text bytes = save(tree);
    struct error error;
    const int32_t tid = 11;
    struct tree *back =
        load(bytes, &(struct profile_options){.filter = {.tids = &tid, .tid_count = 1}}, &error);
    assert_int_equal(back->cells.count, 2);
    assert_int_equal(back->frames.items[1].file, 0); /* lines were not asked for */
    free_tree(back);
    back = load(
        bytes,
        &(struct profile_options){.filter = {.has_time = true, .time_from = 1005, .time_to = 2000}},
        &error);
    assert_int_equal(back->cells.count, 2);
    assert_int_equal(back->cells.items[1].weight, 10);
    free_tree(back);
    back = load(bytes, &(struct profile_options){.no_inline = true, .source_lines = true}, &error);
    assert_int_equal(back->locations.items[1].frame_count, 1);
    assert_true(text_equal(strings_get(back->strings, back->frames.items[0].file), TEXT("a.c")));
    free_tree(back);
    free((char *)(uintptr_t)bytes.data);
    free_tree(tree);
}

/* Make the header's checksum right again, so that what is behind it is looked at. */
static void mend(char *bytes) {
    uint32_t count;
    memcpy(&count, bytes + 12, sizeof count);
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, bytes, 24);
    XXH3_64bits_update(state, bytes + 32, 40 * (size_t)count);
    uint64_t checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    memcpy(bytes + 24, &checksum, sizeof checksum);
}

static void expect_error(struct text bytes, const char *part) {
    struct error error = {0};
    assert_null(load(bytes, &(struct profile_options){0}, &error));
    assert_int_equal(error.kind, ERROR_INPUT);
    if (!strstr(error.message, part))
        fail_msg("%s does not say %s", error.message, part);
}

static void test_damage(void **state) {
    struct tree *tree = make_tree(false);
    struct text bytes = save(tree);
    char *copy = memory_copy(bytes.data, bytes.length);
    for (size_t i = 0; i < bytes.length; i++) { /* every byte counts */
        struct error error = {0};
        copy[i] ^= 0x10;
        assert_null(load((struct text){copy, bytes.length}, &(struct profile_options){0}, &error));
        assert_true(error.offset <= bytes.length);
        copy[i] ^= 0x10;
    }
    for (size_t i = 0; i < bytes.length; i += 7) {
        struct error error = {0};
        assert_null(load((struct text){copy, i}, &(struct profile_options){0}, &error));
    }
    copy[8] = 9;
    expect_error((struct text){copy, bytes.length}, "newer wick");
    copy[8] = 1;
    copy[32] ^= 1; /* a section that nobody knows, and which is needed */
    copy[36] |= 2;
    mend(copy);
    expect_error((struct text){copy, bytes.length}, "newer wick");
    free(copy);
    free((char *)(uintptr_t)bytes.data);
    free_tree(tree);
}

/* A section that nobody knows, and which is not needed, is passed over: here the notes. */
static void test_unknown_sections(void **state) {
    struct tree *tree = make_tree(false);
    struct text bytes = save(tree);
    char *copy = memory_copy(bytes.data, bytes.length);
    struct error error;
    uint32_t count;
    memcpy(&count, copy + 12, sizeof count);
    memcpy(copy + 32 + 40 * (size_t)(count - 1), "ZZZZ", 4);
    mend(copy);
    struct tree *back =
        load((struct text){copy, bytes.length}, &(struct profile_options){0}, &error);
    assert_non_null(back);
    assert_int_equal(back->notes.count, 0);
    assert_int_equal(back->cells.count, 3);
    free_tree(back);
    free(copy);
    free((char *)(uintptr_t)bytes.data);
    free_tree(tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_any_order_gives_the_same_bytes),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_unknown_sections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
