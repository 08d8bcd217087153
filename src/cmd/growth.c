/*
 * Growth since yesterday: compare the time range of a query with the same range a day earlier. A query without a
 * start covers the last 24 hours; one longer than a day is compared with the range as many whole days earlier, so
 * that the two never overlap.
 */
#include "cmd/growth.h"

#include <stdlib.h>
#include <time.h>

#include "store/store.h"

enum { DAY = 86400 };

struct growth {
    int64_t from, to, shift; /* Unix seconds */
    int64_t begins;          /* time of the store's first sample; 0: it has none */
    struct store_rows recent, earlier;
};

bool growth_is_known(const struct request *request, const struct source *source) {
    static const char *const known[] = {"service", "version", "host"};
    const struct profile_options *profile = &request->import.profile;
    if (!source->format || strcmp(source->format->name, "store") != 0 || source->file_count != 1 ||
        request->by.labels.count != 1 || filter_is_set(&profile->filter) ||
        profile->filter.event_count || profile->all_events || profile->times != TIMES_RUNNING ||
        request->value)
        return false;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strcmp(request->by.labels.items[0], known[i]) == 0)
            return true;
    return false;
}

/* Compute both ranges from the query. */
static void settle(struct growth *growth, const struct store_query *query, int64_t now) {
    growth->to = query->to ? query->to : now + 1;
    growth->from = query->from ? query->from : growth->to - DAY;
    int64_t length = growth->to - growth->from;
    growth->shift = length > DAY ? (length + DAY - 1) / DAY * DAY : DAY;
}

static bool ask(const struct request *request, struct store *store, struct store_query *query,
                struct growth *growth, struct error *error) {
    const char *label = request->by.labels.items[0];
    int64_t last;
    query->from = growth->from;
    query->to = growth->to;
    if (!store_values(store, query, label, &growth->recent, error))
        return false;
    query->from -= growth->shift;
    query->to -= growth->shift;
    if (!store_values(store, query, label, &growth->earlier, error))
        return false;
    static const struct store_query everything;
    return store_span(store, &everything, &growth->begins, &last, error) ||
           error->kind == ERROR_NONE;
}

static bool ask_store(const struct request *request, const char *url, struct growth *growth,
                      struct error *error) {
    size_t end = store_url_query(url);
    struct text asked = url[end] ? text_of(url + end + 1) : TEXT("");
    const struct filter *filter = &request->import.profile.filter;
    struct store_options how = {.context = &request->context,
                                .credentials = request->import.store_credentials,
                                .net = request->import.store_net,
                                .milliseconds = request->import.store_milliseconds,
                                .allow_partial = request->import.store_partial};
    struct store_query query = {0};
    int64_t now = (int64_t)time(NULL);
    char *address = memory_copy(url, end);
    bool fine = store_query_parse(&query, asked, now, error);
    for (size_t i = 0; fine && i < filter->label_count; i++)
        store_query_label(&query, text_of(filter->labels[i].key),
                          text_of(filter->labels[i].pattern));
    settle(growth, &query, now);
    struct store *store = fine ? store_open(address, &how, error) : NULL;
    fine = store && ask(request, store, &query, growth, error);
    store_close(store);
    store_query_release(&query);
    free(address);
    return fine;
}

/* ---- adding it to the report ---- */

static uint64_t weight_of(const struct request *request, const struct store_row *row) {
    return request->flame.by_samples ? row->samples : row->value;
}

/* Return the store's row with this key; the rows are sorted by key. */
static uint64_t weight_at(const struct request *request, const struct store_rows *rows,
                          struct text key) {
    const struct store_row *items = rows->items.items;
    size_t at =
        search_first(middle, 0, rows->items.count, text_compare(items[middle].key, key) < 0);
    bool found = at < rows->items.count && text_equal(items[at].key, key);
    return found ? weight_of(request, &items[at]) : 0;
}

static void set_rows(const struct request *request, struct report *report,
                     const struct growth *growth) {
    struct buffer none = {0};
    buffer_printf(&none, "[no %s]", request->by.labels.items[0]);
    for (size_t i = 0; i < report->rows.count; i++) {
        struct report_row *row = &report->rows.items[i];
        struct text key = text_equal(row->name, buffer_text(&none)) ? TEXT("") : row->name;
        row->recent = weight_at(request, &growth->recent, key);
        row->earlier = weight_at(request, &growth->earlier, key);
    }
    buffer_release(&none);
}

static void add_time(struct buffer *text, int64_t seconds) {
    char shown[32];
    time_t when = (time_t)seconds;
    struct tm parts;
    if (gmtime_r(&when, &parts) && strftime(shown, sizeof shown, "%Y-%m-%d %H:%M", &parts))
        buffer_add(text, text_of(shown));
}

/* Say so if the store lacks part of the earlier range, which makes everything look grown. */
static void describe(const struct growth *growth, struct buffer *text) {
    int64_t days = growth->shift / DAY;
    add_time(text, growth->from);
    buffer_add(text, TEXT(" to "));
    add_time(text, growth->to);
    buffer_printf(text, " UTC against the same time %lld day%s before", (long long)days,
                  days > 1 ? "s" : "");
    if (growth->begins > growth->from - growth->shift) {
        buffer_add(text, TEXT("; the store begins only at "));
        add_time(text, growth->begins);
    }
}

bool growth_add(const struct request *request, struct report *report, struct error *error) {
    struct growth growth = {0};
    struct buffer sentence = {0};
    bool fine = ask_store(request, request->operands.items[0], &growth, error);
    if (fine) {
        describe(&growth, &sentence);
        report_add_growth(report, buffer_text(&sentence));
        set_rows(request, report, &growth);
    }
    store_rows_release(&growth.recent);
    store_rows_release(&growth.earlier);
    buffer_release(&sentence);
    return fine;
}
