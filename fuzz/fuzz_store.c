/* Stores of strangers: the file's raw pages, except for its first bytes, opened for reading or writing depending on
   the file's size; and, for small inputs, a URL and its query. */
#include "object/object.h"
#include "pieces.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 100 };

static void read_query(const uint8_t *data, size_t size, struct store_query *query) {
    struct error error;
    char *text = memory_copy(data, size);
    assert(store_url_query(text) <= strlen(text));
    store_query_parse(query, (struct text){text, size}, 1700000000, &error);
    free(text);
}

/* Set what is checked first: the magic, a page size that fits, no write-ahead log. */
static char *mend(const uint8_t *data, size_t size) {
    static const char application[] = {0x77, 0x69, 0x63, 0x6b};
    char *bytes = memory_copy(data, size);
    memcpy(bytes, "SQLite format 3", 16);
    bytes[18] = bytes[19] = 1;
    memcpy(bytes + 60, "\0\0\0\1", 4);
    memcpy(bytes + 68, application, sizeof application);
    return bytes;
}

static void read_store(const char *path, const struct store_query *query,
                       const struct store_options *options) {
    struct error error;
    struct store *store = store_open(path, options, &error);
    if (!store)
        return;
    struct tree *tree = tree_new();
    struct store_rows rows;
    int64_t from, to;
    if (store_read(store, query, tree, &error))
        tree_check(tree, &error);
    objects_free(tree->objects);
    tree_free(tree);
    store_values(store, query, "service", &rows, &error);
    store_rows_release(&rows);
    store_heat(store, query, "host", &rows, &error);
    store_rows_release(&rows);
    store_span(store, query, &from, &to, &error);
    store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct store_query query = {.all_types = size & 1, .waits = size & 2};
    if (size < HEADER * 5) {
        read_query(data, size, &query);
        store_query_release(&query);
        return 0;
    }
    char *bytes = mend(data, size);
    work_in_a_folder("folder-store"); /* stores are opened by name, and not through links */
    piece_write("fleet.db", (struct text){bytes, size});
    struct store_options options = {.write = size & 4, .create = size & 8};
    read_store("fleet.db", &query, &options);
    free(bytes);
    return 0;
}
