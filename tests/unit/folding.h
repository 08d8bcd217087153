/* What the tests of import, names and fold share: text in, folded text out. */
#ifndef WICK_TESTS_FOLDING_H
#define WICK_TESTS_FOLDING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/import.h"
#include "view/view.h"
#include "written.h"

/* What fold_write() writes, as a string to free(). */
static inline char *folded_flame(const struct flame *flame, bool inferno) {
    struct written written;
    written_begin(&written);
    fold_write(&written.out, flame,
               &(struct fold_options){.quirks = inferno ? quirks_inferno : quirks_none});
    return written_end(&written, NULL);
}

static inline char *folded_tree(const struct tree *tree, const struct naming_options *naming,
                                const struct flame_options *shape) {
    struct error error;
    struct naming *names = naming_of_tree(tree, naming);
    struct flame *flame = flame_of_tree(tree, names, shape, &error);
    assert_non_null(flame);
    char *text = folded_flame(flame, naming->quirks.sorts_by_stack);
    flame_free(flame);
    naming_free(names);
    return text;
}

static inline struct tree *read_text(const char *format, struct text content,
                                     const struct import_options *options) {
    struct tree *tree = tree_new();
    struct error error = {0};
    const struct import_format *reader = import_format_named(format);
    assert_non_null(reader);
    if (!import_read(reader, content, "input", options, tree, &error))
        fail_msg("%s", error.message);
    return tree;
}

/* A tree with one sample at an address, and the name of what was there. */
static inline struct tree *tree_of_code(struct text name) {
    struct tree *tree = tree_new();
    struct frame frame = {.name = strings_add(tree->strings, name),
                          .language = strings_add(tree->strings, TEXT("java"))};
    uint32_t event = tree_add_event(tree, TEXT("cycles"), TEXT("events"), EVENT_HARDWARE);
    uint32_t series = tree_add_series(tree, &(struct series){.event = event});
    uint32_t location = tree_add_location(tree, &(struct location){.address = 0x1000});
    tree->locations.items[location].first_frame = (uint32_t)tree->frames.count;
    tree->locations.items[location].frame_count = 1;
    vector_push(&tree->frames, frame);
    tree_count(tree, tree_add_node(tree, 0, location), series, 1, 1);
    return tree;
}

static inline void tree_done(struct tree *tree) {
    objects_free(tree->objects);
    tree_free(tree);
}

/* Reads `content`, folds it, and compares. */
static inline void expect_fold_with(const char *format, const char *content, const char *expected,
                                    struct import_options import, struct naming_options naming) {
    const struct context one = {.threads = 1};
    import.profile.context = import.profile.context ? import.profile.context : &one;
    import.profile.raw_addresses = naming.addresses;
    import.profile.quirks = naming.quirks;
    naming.is_script_text = true;
    struct tree *tree = read_text(format, text_of(content), &import);
    char *got = folded_tree(tree, &naming,
                            &(struct flame_options){.keep_zero = naming.quirks.keeps_weightless});
    assert_string_equal(got, expected);
    free(got);
    tree_done(tree);
}

static inline void expect_fold(const char *format, const char *content, const char *expected) {
    expect_fold_with(format, content, expected, (struct import_options){0},
                     (struct naming_options){0});
}

static inline void expect_inferno(const char *format, const char *content, const char *expected) {
    expect_fold_with(format, content, expected, (struct import_options){0},
                     (struct naming_options){.quirks = quirks_inferno});
}

#endif
