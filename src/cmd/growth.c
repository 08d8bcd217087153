/*
 * Growth since yesterday: the time that a query asks for against the same time of the day before. A query that has no beginning asks for the last
 * 24 hours; one that is longer than a day is compared with as many whole days before, so that the two never overlap.
 */
#include "cmd/growth.h"

#include <stdlib.h>
#include <time.h>

#include "store/store.h"

enum { DAY = 86400 };

struct growth {
    int64_t from, to, shift; /* Unix seconds */
    int64_t begins;          /* the first time for which the store has samples; 0: it has none */
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

/* Both times, from what the query says. */
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
    return store_span(store, &growth->begins, &last, error) || error->kind == ERROR_NONE;
}

static bool ask_store(const struct request *request, const char *url, struct growth *growth,
                      struct error *error) {
    size_t end = store_url_query(url);
    struct text asked = url[end] ? text_of(url + end + 1) : TEXT("");
    const struct filter *filter = &request->import.profile.filter;
    struct store_options how = {.context = &request->context,
                                .credentials = request->import.store_credentials,
                                .net = request->import.store_net,
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

/* ---- what is made of it ---- */

static uint64_t weight_of(const struct request *request, const struct store_row *row) {
    return request->flame.by_samples ? row->samples : row->value;
}

static void set_row(const struct request *request, struct report *report, struct text key,
                    uint64_t recent, uint64_t earlier) {
    struct buffer none = {0};
    buffer_printf(&none, "[no %s]", request->by.labels.items[0]);
    report_set_growth(report, key.length ? key : buffer_text(&none), recent, earlier);
    buffer_release(&none);
}

/* Both lists are ordered by key. */
static void merge(const struct request *request, struct report *report,
                  const struct growth *growth) {
    const struct store_rows *a = &growth->recent, *b = &growth->earlier;
    size_t i = 0, k = 0;
    while (i < a->items.count || k < b->items.count) {
        const struct store_row *x = i < a->items.count ? &a->items.items[i] : NULL,
                               *y = k < b->items.count ? &b->items.items[k] : NULL;
        int order = !x ? 1 : !y ? -1 : text_compare(x->key, y->key);
        set_row(request, report, order <= 0 ? x->key : y->key,
                order <= 0 ? weight_of(request, x) : 0, order >= 0 ? weight_of(request, y) : 0);
        i += order <= 0;
        k += order >= 0;
    }
}

static void add_time(struct buffer *text, int64_t seconds) {
    char shown[32];
    time_t when = (time_t)seconds;
    struct tm parts;
    if (gmtime_r(&when, &parts) && strftime(shown, sizeof shown, "%Y-%m-%d %H:%M", &parts))
        buffer_add(text, text_of(shown));
}

/* A store that knows less than the whole earlier time makes everything look grown. */
static void describe(const struct growth *growth, struct buffer *text) {
    int64_t days = growth->shift / DAY;
    add_time(text, growth->from);
    buffer_add(text, TEXT(" to "));
    add_time(text, growth->to);
    buffer_printf(text, " UTC against the same time %lld day%s before", (long long)days,
                  days > 1 ? "s" : "");
    if (growth->begins > growth->from - growth->shift) {
        buffer_add(text, TEXT(", for which the store begins only at "));
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
        merge(request, report, &growth);
    }
    store_rows_release(&growth.recent);
    store_rows_release(&growth.earlier);
    buffer_release(&sentence);
    return fine;
}
