/* Choose the engine, and do what all engines share. */
#include <stdlib.h>

#include "store/internal.h"

bool store_url_check(const char *url, struct error *error) {
    if (store_is_url(text_of(url)))
        return clickhouse_url_check(url, error);
    return !strstr(url, "://") ||
           error_set(error, ERROR_USAGE,
                     "%s: not a store; use a path or clickhouse://HOST/DATABASE", url);
}

struct store *store_open(const char *url, const struct store_options *options,
                         struct error *error) {
    if (!store_url_check(url, error))
        return NULL;
    return store_is_url(text_of(url)) ? clickhouse_open(url, options, error)
                                      : sqlite_open(url, options, error);
}

void store_close(struct store *store) {
    if (store)
        store->engine->close(store);
}

bool store_put(struct store *store, const struct tree *tree, const struct store_batch *batch,
               struct store_result *result, struct error *error) {
    struct encoded encoded;
    *result = (struct store_result){0};
    assert(batch->id.length && store->options.write);
    store->failure = STORE_REJECTED;
    bool fine = encode_tree(&encoded, tree, batch, error) &&
                store->engine->put(store, &encoded, batch, result, error);
    if (fine)
        store->failure = STORE_FINE;
    encoded_release(&encoded);
    return fine;
}

enum store_failure store_failure(const struct store *store) {
    return store->failure;
}

bool store_read(struct store *store, const struct store_query *query, struct tree *tree,
                struct error *error) {
    struct answer answer = {.where = store->where};
    bool fine = store->engine->read(store, query, &answer, &tree->notes, error) &&
                answer_to_tree(&answer, query, tree, error);
    answer_release(&answer);
    return fine;
}

/* The query must distinguish the label by which sums are requested. */
static bool sums_by(struct store *store, const struct store_query *query, const char *label,
                    int64_t step, struct store_rows *rows, struct error *error) {
    struct store_query asked = *query;
    asked.all_types |= strcmp(label, "type") == 0;
    asked.has_by = true;
    asked.by.items = &label;
    asked.by.count = 1;
    asked.step = step;
    return store->engine->sums(store, &asked, rows, error);
}

bool store_values(struct store *store, const struct store_query *query, const char *label,
                  struct store_rows *rows, struct error *error) {
    *rows = (struct store_rows){0};
    return sums_by(store, query, label, 0, rows, error);
}

bool store_heat(struct store *store, const struct store_query *query, const char *label,
                struct store_rows *rows, struct error *error) {
    enum { HEAT_STEP = 600 };
    *rows = (struct store_rows){0};
    if (!is_column(text_of(label)))
        return error_set(error, ERROR_USAGE,
                         "'%s': a heat map is by service, version, host or type", label);
    return sums_by(store, query, label, query->step > 0 ? query->step : HEAT_STEP, rows, error);
}

bool store_span(struct store *store, const struct store_query *query, int64_t *from, int64_t *to,
                struct error *error) {
    struct store_query asked = *query;
    asked.all_types |= !query->type;
    *from = *to = 0;
    error->kind = ERROR_NONE;
    return store->engine->span(store, &asked, from, to, error);
}

bool store_gc(struct store *store, const struct store_retention *retention, int64_t now,
              struct store_removed *removed, struct error *error) {
    enum { DAY = 86400, SAMPLES_KEPT = 14 * DAY, HOURS_KEPT = 400 * DAY };
    struct store_retention kept = {retention->samples ? retention->samples : SAMPLES_KEPT,
                                   retention->hours ? retention->hours : HOURS_KEPT};
    *removed = (struct store_removed){0};
    return store->engine->gc(store, &kept, now, removed, error);
}

bool store_symbolize(struct store *store, store_finder *find, void *user, uint64_t *named,
                     uint64_t *unknown, struct error *error) {
    *named = *unknown = 0;
    return store->engine->symbolize(store, find, user, named, unknown, error);
}

bool store_version_error(const char *where, long long version, int known, struct error *error) {
    return error_set(error, ERROR_INPUT,
                     "%s: has schema version %lld, and this wick knows version %d: %s", where,
                     version, known,
                     version > known ? "use a newer wick"
                                     : "save it with the version of wick that made it (`wick "
                                       "save`), then `wick push` that file to a new store");
}

/* ---- sums ---- */

void store_rows_release(struct store_rows *rows) {
    vector_release(&rows->items);
    arena_release(&rows->arena);
}

bool sums_add(struct sums *sums, struct arena *arena, struct text key, int64_t time,
              uint64_t samples, uint64_t value) {
    uint64_t hash = hash_mix(hash_bytes(key.data, key.length), (uint64_t)time);
    uint32_t id;
    for (struct probe p = index_probe(&sums->index, hash); (id = index_next(&sums->index, &p));) {
        struct store_row *row = &sums->rows.items[id - 1];
        if (row->time == time && text_equal(row->key, key))
            return checked_add(row->samples, samples, &row->samples) &&
                   checked_add(row->value, value, &row->value);
    }
    vector_push(&sums->rows, ((struct store_row){arena_copy(arena, key), time, samples, value}));
    index_add(&sums->index, hash, (uint32_t)sums->rows.count);
    return true;
}

static int row_order(const void *a, const void *b) {
    const struct store_row *x = a, *y = b;
    int order = text_compare(x->key, y->key);
    return order ? order : (x->time > y->time) - (x->time < y->time);
}

void sums_finish(struct sums *sums, struct store_rows *rows) {
    if (sums->rows.count)
        qsort(sums->rows.items, sums->rows.count, sizeof *sums->rows.items, row_order);
    rows->items.items = sums->rows.items;
    rows->items.count = sums->rows.count;
    rows->items.capacity = sums->rows.capacity;
    index_release(&sums->index);
}
