/* Answer questions about a store: its labels, the sums of each over time, and a function's share of them. */
#include "serve/serve.h"

#include <stdlib.h>
#include <time.h>

enum { ROWS_MOST = 20000, STEPS_MOST = 400 };

/* ---- selections ---- */

bool selection_has(struct text key) {
    static const char *const keys[] = {"service", "version", "host", "type", "from", "to"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (text_equal(key, text_of(keys[i])))
            return true;
    return text_starts(key, TEXT("label.")) && key.length > strlen("label.");
}

/* Return true if the server's own query selects by this key, in either spelling: label.version is version. */
static bool is_chosen(const struct store_query *fixed, struct text key) {
    if (text_equal(key, TEXT("type")))
        return fixed->type;
    if (text_equal(key, TEXT("from")))
        return fixed->from;
    if (text_equal(key, TEXT("to")))
        return fixed->to;
    if (text_starts(key, TEXT("label.")))
        key = text_from(key, strlen("label."));
    for (size_t i = 0; i < fixed->labels.count; i++)
        if (text_equal(text_of(fixed->labels.items[i].key), key))
            return true;
    return false;
}

void selection_add(const struct target *target, const char *prefix, struct text fixed,
                   struct buffer *query) {
    struct store_query own = {0};
    struct error error;
    buffer_add(query, fixed);
    bool fine = store_query_parse(&own, fixed, (int64_t)time(NULL), &error);
    for (size_t i = 0; i < target->value_count && fine; i++) {
        const struct target_value *v = &target->values[i];
        if (!text_starts(v->key, text_of(prefix)) || !v->value.length)
            continue;
        struct text key = text_from(v->key, strlen(prefix));
        if (!selection_has(key) || is_chosen(&own, key))
            continue;
        if (query->count)
            buffer_add_char(query, '&');
        target_add_encoded(query, key);
        buffer_add_char(query, '=');
        target_add_encoded(query, v->value);
    }
    store_query_release(&own);
}

/* ---- questions ---- */

static void add_row(struct buffer *body, const struct store_row *row, bool with_time) {
    buffer_add_char(body, '[');
    buffer_add_json_text(body, row->key);
    if (with_time)
        buffer_printf(body, ",%lld", (long long)row->time);
    buffer_printf(body, ",%llu,%llu],", (unsigned long long)row->samples,
                  (unsigned long long)row->value);
}

static void add_rows(struct buffer *body, const struct store_rows *rows, bool with_time) {
    buffer_add(body, TEXT("\"rows\":["));
    for (size_t i = 0; i < rows->items.count && i < ROWS_MOST; i++)
        add_row(body, &rows->items.items[i], with_time);
    if (rows->items.count)
        body->count--; /* the last comma */
    buffer_printf(body, "],\"count\":%zu}", rows->items.count);
}

static int ask_span(struct fleet *fleet, const struct target *question, struct store_query *query,
                    struct buffer *body, struct error *error) {
    int64_t from = 0, to = 0;
    *error = (struct error){0};
    if (!store_span(fleet->store, query, &from, &to, error) && error->kind != ERROR_NONE)
        return 502;
    buffer_printf(body, "{\"from\":%lld,\"to\":%lld,\"fixed\":", (long long)from, (long long)to);
    buffer_add_json_text(body, fleet->fixed);
    buffer_add_char(body, '}');
    return 200;
}

static int ask_values(struct fleet *fleet, const struct target *question, struct store_query *query,
                      struct buffer *body, struct error *error) {
    struct text label = target_get(question, "label");
    struct store_rows rows = {0};
    if (!label.length)
        return answer_error(body, 400, "the label is missing");
    bool fine = store_values(fleet->store, query, label.data, &rows, error);
    if (fine) {
        buffer_add_char(body, '{');
        add_rows(body, &rows, false);
    }
    store_rows_release(&rows);
    return fine ? 200 : 502;
}

static bool set_step(const struct target *question, struct store_query *query) {
    uint64_t step;
    if (!target_number(question, "step", 600, 366 * 86400, &step) || !step)
        return false;
    query->step = (int64_t)step;
    return query->to <= query->from || (query->to - query->from) / query->step <= STEPS_MOST;
}

static int ask_heat(struct fleet *fleet, const struct target *question, struct store_query *query,
                    struct buffer *body, struct error *error) {
    struct text by = target_get(question, "by");
    struct store_rows rows = {0};
    if (!set_step(question, query))
        return answer_error(body, 400, "the step is not a number, or too small for this time");
    bool fine = store_heat(fleet->store, query, by.length ? by.data : "service", &rows, error);
    if (fine) {
        buffer_printf(body, "{\"step\":%lld,", (long long)query->step);
        add_rows(body, &rows, true);
    }
    store_rows_release(&rows);
    return fine ? 200 : 502;
}

/* Sum the function's cost below a node, each stack once. */
static uint64_t part_of(const struct flame *flame, uint32_t top, struct text function) {
    const struct flame_node *nodes = flame->nodes.items;
    uint64_t part = 0;
    uint32_t id = nodes[top].first_child;
    while (id && id != top) {
        bool found = text_equal(name_unmarked(flame_name(flame, id)), function);
        if (found)
            part += nodes[id].total;
        if (!found && nodes[id].first_child) {
            id = nodes[id].first_child;
            continue;
        }
        while (id != top && !nodes[id].next)
            id = nodes[id].parent;
        if (id != top)
            id = nodes[id].next;
    }
    return part;
}

static void add_share(struct buffer *body, const struct flame *flame, struct text function,
                      int64_t step) {
    const struct flame_node *nodes = flame->nodes.items;
    buffer_printf(body, "{\"step\":%lld,\"unit\":", (long long)step);
    buffer_add_json_text(body, strings_get(flame->strings, flame->unit));
    buffer_add(body, TEXT(",\"rows\":["));
    for (uint32_t id = nodes[0].first_child; id; id = nodes[id].next) {
        uint64_t time;
        if (!text_to_u64(flame_name(flame, id), &time))
            continue;
        buffer_printf(body, "[%llu,%llu,%llu],", (unsigned long long)time,
                      (unsigned long long)nodes[id].total,
                      (unsigned long long)part_of(flame, id, function));
    }
    if (body->items[body->count - 1] == ',')
        body->count--;
    buffer_add(body, TEXT("]}"));
}

static int ask_share(struct fleet *fleet, const struct target *question, struct store_query *query,
                     struct buffer *body, struct error *error) {
    static const char *const roots[] = {"time"};
    struct text function = target_get(question, "function");
    struct naming_options names = {.roots = roots, .root_count = 1};
    struct flame_options shape = {.keep_empty = true};
    if (!function.length || !set_step(question, query))
        return answer_error(body, 400,
                            "the function is missing, or the step too small for this time");
    query->has_by = true; /* no label but time */
    query->by.count = 0;
    struct tree *tree = tree_new();
    struct naming *naming = NULL;
    struct flame *flame = NULL;
    if (store_read(fleet->store, query, tree, error) && tree_check(tree, error)) {
        naming = naming_of_tree(tree, &names);
        flame = flame_of_tree(tree, naming, &shape, error);
    }
    bool fine = flame != NULL;
    if (fine)
        add_share(body, flame, function, query->step);
    flame_free(flame);
    if (naming)
        naming_free(naming);
    tree_free(tree);
    return fine ? 200 : 502;
}

int fleet_ask(struct fleet *fleet, const struct target *question, struct buffer *body) {
    static const struct {
        const char *name;
        int (*ask)(struct fleet *fleet, const struct target *question, struct store_query *query,
                   struct buffer *body, struct error *error);
    } questions[] = {
        {"span", ask_span}, {"values", ask_values}, {"heat", ask_heat}, {"share", ask_share}};
    struct store_query query = {0};
    struct buffer text = {0};
    struct error error = {0};
    int status = answer_error(body, 404, "no such request");
    selection_add(question, "", fleet->fixed, &text);
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        if (question->part_count != 1 ||
            !text_equal(question->parts[0], text_of(questions[i].name)))
            continue;
        body->count = 0;
        status = 400;
        if (store_query_parse(&query, buffer_text(&text), (int64_t)time(NULL), &error))
            status = questions[i].ask(fleet, question, &query, body, &error);
        if (status != 200 && error.kind != ERROR_NONE)
            answer_error(body, status, error.message);
    }
    store_query_release(&query);
    buffer_release(&text);
    return status;
}
