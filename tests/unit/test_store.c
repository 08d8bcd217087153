/* room store: what was put in is read back. */
#include "folding.h"

#include <stdlib.h>
#include <unistd.h>

#include "store/store.h"

static void put(struct store *store, struct tree *tree, struct text id) {
    struct store_batch batch = {
        .id = id, .time_ns = 1700000000000000000u, .service = TEXT("web"), .host = TEXT("a")};
    struct store_result result;
    struct error error;
    if (!store_put(store, tree, &batch, &result, &error))
        fail_msg("%s", error.message);
    tree_done(tree);
}

/* Code that was compiled again at the same address keeps its own name, and its inlined functions. */
static void test_code(void **state) {
    char path[] = "/tmp/wick-store-XXXXXX";
    struct error error;
    struct store_options options = {
        .context = &(struct context){.threads = 1}, .write = true, .create = true};
    close(mkstemp(path));
    struct store *store = store_open(path, &options, &error);
    assert_non_null(store);
    put(store, tree_of_code(TEXT("first")), TEXT("1"));
    put(store, tree_of_code(TEXT("second")), TEXT("2"));
    put(store, tree_of_code(TEXT("second")), TEXT("3"));
    put(store, tree_of_code(TEXT("third")), TEXT("4"));
    put(store, tree_new(), TEXT("5")); /* of a machine that had nothing to do */
    struct tree *tree = tree_new();
    assert_true(store_read(store, &(struct store_query){0}, tree, &error));
    char *got =
        folded_tree(tree, &(struct naming_options){.no_comm = true}, &(struct flame_options){0});
    assert_string_equal(got, "first 1\nsecond 2\nthird 1\n");
    assert_int_equal(tree->functions.count, 1); /* none: they are code still */
    free(got);
    tree_done(tree);
    store_close(store);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
