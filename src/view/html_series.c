/*
 * The series of a page: the event, thread and time of what was counted, and the lifetime of memory blocks.
 */
#include <stdlib.h>

#include "profile/profile.h"
#include "view/html.h"

struct series_key {
    uint32_t id;
    struct text event, comm;
    int32_t pid, tid;
    bool waits;
    enum event_time time;
    uint8_t lifetime; /* of a block: its place in heap_lifetimes + 1, or 0 */
};

static int order_series(const void *a, const void *b) {
    const struct series_key *x = a, *y = b;
    int order = text_compare(x->event, y->event);
    if (!order && x->pid != y->pid)
        order = x->pid < y->pid ? -1 : 1;
    if (!order && x->tid != y->tid)
        order = x->tid < y->tid ? -1 : 1;
    if (!order)
        order = text_compare(x->comm, y->comm);
    if (!order)
        order = x->waits - y->waits;
    if (!order)
        order = x->lifetime - y->lifetime;
    return order ? order : (x->time > y->time) - (x->time < y->time);
}

static uint8_t lifetime_of(const struct tree *tree, const struct series *series) {
    struct buffer value = {0};
    uint8_t lifetime = 0;
    if (series_label(tree, series, TEXT("lifetime"), &value))
        for (unsigned i = 0; i <= HEAP_LIFETIMES; i++)
            if (text_equal(buffer_text(&value), text_of(heap_lifetimes[i])))
                lifetime = (uint8_t)(i + 1);
    buffer_release(&value);
    return lifetime;
}

/* What lifetimes are called, where blocks have one. */
static void add_lifetimes(struct html *h, const struct series_key *keys, size_t count) {
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= keys[i].lifetime;
    for (size_t i = 0; any && i <= HEAP_LIFETIMES; i++) {
        buffer_add(&h->json, i ? TEXT(",") : TEXT("\"lifetimes\":["));
        buffer_add_json_text(&h->json, text_of(heap_lifetimes[i]));
    }
    buffer_add(&h->json, any ? TEXT("],") : TEXT(""));
}

static const char *const times_keys[] = {
    [TIMES_RUNNING] = "on-cpu", [TIMES_WAITING] = "off-cpu", [TIMES_BOTH] = "wall"};

/* Which times a series belongs to. */
static void json_times_of(struct html *h, uint32_t series) {
    const char *comma = "";
    buffer_add(&h->json, TEXT(",\"times\":["));
    for (size_t i = 0; i < COUNT_OF(times_keys); i++)
        if (series_is_of(h->tree, &h->tree->series.items[series], (enum times)i)) {
            buffer_printf(&h->json, "%s\"%s\"", comma, times_keys[i]);
            comma = ",";
        }
    buffer_add_char(&h->json, ']');
}

void html_add_times(struct html *h) {
    const struct html_options *o = h->options;
    const char *comma = "";
    json_field(&h->json, "shown", text_of(times_keys[o->shown]));
    buffer_add(&h->json, TEXT("\"times\":["));
    for (size_t i = 0; i < COUNT_OF(times_keys); i++) {
        if (!tree_knows(h->tree, (enum times)i))
            continue;
        buffer_printf(&h->json, "%s[\"%s\",", comma, times_keys[i]);
        json_shown(&h->json, text_of(o->title ? o->title : o->times[i].title));
        buffer_add_char(&h->json, ']');
        comma = ",";
    }
    buffer_add(&h->json, TEXT("],"));
}

void html_add_series(struct html *h, uint32_t *numbers) {
    const struct tree *tree = h->tree;
    VECTOR(struct series_key) keys = {0};
    bool *used = memory_zero(tree->series.count + 1, sizeof *used);
    for (size_t i = 0; i < h->cells.count; i++)
        used[h->cells.items[i].series] = true;
    for (uint32_t i = 1; i < tree->series.count; i++) {
        const struct series *series = &tree->series.items[i];
        const struct thread *thread = &tree->threads.items[series->thread];
        if (used[i])
            vector_push(&keys,
                        ((struct series_key){
                            i, strings_get(tree->strings, tree->events.items[series->event].name),
                            strings_get(tree->strings, series->comm), thread->pid, thread->tid,
                            series->state != STATE_ON,
                            h->switches ? tree->events.items[series->event].time : 0,
                            lifetime_of(tree, series)}));
    }
    if (keys.count)
        qsort(keys.items, keys.count, sizeof *keys.items, order_series);
    add_lifetimes(h, keys.items, keys.count);
    uint16_t *numbered = h->options->each_thread ? NULL : numbered_threads(tree);
    buffer_add(&h->json, TEXT("\"series\":["));
    uint32_t number = 0;
    for (size_t i = 0; i < keys.count; i++) {
        const struct series_key *key = &keys.items[i];
        bool before = h->naming->series.items[key->id].before;
        const struct event *event = &tree->events.items[tree->series.items[key->id].event];
        if (i > 0 && order_series(key - 1, key) == 0) {
            numbers[key->id] = number - 1;
            continue;
        }
        numbers[key->id] = number++;
        buffer_add(&h->json, i ? TEXT(",{") : TEXT("{"));
        json_field(&h->json, "event", key->event);
        json_field(&h->json, "unit", strings_get(tree->strings, event->unit));
        json_field(&h->json, "comm", key->comm);
        if (numbered && numbered[key->id]) {
            struct buffer group = {0};
            buffer_printf(&group, "%.*s*", (int)numbered[key->id], key->comm.data);
            json_field(&h->json, "group", buffer_text(&group));
            buffer_release(&group);
        }
        buffer_printf(&h->json, "\"pid\":%d,\"tid\":%d,\"before\":%d,\"waits\":%d", key->pid,
                      key->tid, before, key->waits);
        if (key->lifetime)
            buffer_printf(&h->json, ",\"lifetime\":%u", key->lifetime - 1u);
        if (h->switches)
            json_times_of(h, key->id);
        buffer_add_char(&h->json, '}');
    }
    buffer_add(&h->json, TEXT("],"));
    free(numbered);
    free(used);
    vector_release(&keys);
}
