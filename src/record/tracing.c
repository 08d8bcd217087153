/*
 * TRACING_DATA: the formats of the recorded tracepoints, as tracefs provides them, so that their samples' raw data can be read elsewhere.
 * perf refuses a file that has tracepoints but not this section.
 *
 * A magic number and a version; byte order, size of a long, size of a page; two files that describe the kernel's own ring buffer; then the
 * formats by system. Parts that perf leaves empty, or fills with the names of every process on the machine, are empty here.
 */
#include "record/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void add_bytes(struct buffer *out, const void *data, size_t size) {
    buffer_add(out, (struct text){data, size});
}

/* Append a file's size and its bytes. Return false if it can't be read. */
static bool add_file(struct buffer *out, const char *path) {
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t size_at = out->count;
    uint64_t size = 0;
    add_bytes(out, &size, sizeof size);
    char part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part, file));)
        add_bytes(out, part, got);
    fclose(file);
    size = out->count - size_at - sizeof size;
    memcpy(out->items + size_at, &size, sizeof size);
    return true;
}

/* "sched:sched_switch:u" is sched and sched_switch. */
static struct text system_of(const struct asked_event *asked, struct text *event) {
    struct text name = text_of(asked->name);
    size_t colon = text_find(name, ':');
    if (asked->attr.type != PERF_TYPE_TRACEPOINT || colon == SIZE_MAX)
        return TEXT("");
    *event = text_from(name, colon + 1);
    size_t end = text_find(*event, ':');
    *event = end == SIZE_MAX ? *event : text_upto(*event, end);
    return text_upto(name, colon);
}

/* Whether no earlier event has the same system and, if `same_event`, the same name. */
static bool is_first(const struct recording *r, size_t index, bool same_event) {
    struct text event, other, system = system_of(&r->events.items[index], &event);
    for (size_t i = 0; i < index; i++)
        if (text_equal(system_of(&r->events.items[i], &other), system) &&
            (!same_event || text_equal(event, other)))
            return false;
    return true;
}

static uint32_t count_events(const struct recording *r, struct text system) {
    uint32_t count = 0;
    struct text event;
    for (size_t i = 0; i < r->events.count; i++)
        count += text_equal(system_of(&r->events.items[i], &event), system) && is_first(r, i, true);
    return count;
}

static bool add_system(struct buffer *out, const struct recording *r, const char *root,
                       struct text system) {
    char path[400];
    struct text event;
    uint32_t count = count_events(r, system);
    buffer_add(out, system);
    buffer_add_char(out, 0);
    add_bytes(out, &count, sizeof count);
    for (size_t i = 0; i < r->events.count; i++) {
        if (!text_equal(system_of(&r->events.items[i], &event), system) || !is_first(r, i, true))
            continue;
        snprintf(path, sizeof path, "%s/events/%.*s/%.*s/format", root, TEXT_ARGS(system),
                 TEXT_ARGS(event));
        if (!add_file(out, path))
            return false;
    }
    return true;
}

static bool add_header_file(struct buffer *out, const char *root, const char *name) {
    char path[400];
    snprintf(path, sizeof path, "%s/events/%s", root, name);
    add_bytes(out, name, strlen(name) + 1);
    return add_file(out, path);
}

static bool add_formats(struct buffer *out, const struct recording *r, const char *root) {
    struct text event, system;
    uint32_t systems = 0, none = 0;
    for (size_t i = 0; i < r->events.count; i++)
        systems += system_of(&r->events.items[i], &event).length && is_first(r, i, false);
    add_bytes(out, &none, sizeof none); /* ftrace's own events */
    add_bytes(out, &systems, sizeof systems);
    for (size_t i = 0; i < r->events.count; i++) {
        system = system_of(&r->events.items[i], &event);
        if (system.length && is_first(r, i, false) && !add_system(out, r, root, system))
            return false;
    }
    return true;
}

static bool add_tracing_data(struct buffer *out, const struct recording *r, const char *root) {
    uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
    uint64_t none = 0;
    out->count = 0;
    add_bytes(out, "\27\10\104tracing0.6", 14); /* with the version's 0 */
    buffer_add_char(out, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    buffer_add_char(out, sizeof(long));
    add_bytes(out, &page, sizeof page);
    if (!add_header_file(out, root, "header_page") || !add_header_file(out, root, "header_event") ||
        !add_formats(out, r, root))
        return false;
    add_bytes(out, &none, 4); /* kernel symbols */
    add_bytes(out, &none, 4); /* formats of trace_printk() */
    add_bytes(out, &none, 8); /* command names */
    return true;
}

bool write_tracing_data(struct recording *r, struct error *error) {
    static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    struct buffer bytes = {0};
    struct text event;
    bool any = false, fine = true;
    for (size_t i = 0; i < r->events.count; i++)
        any |= system_of(&r->events.items[i], &event).length > 0;
    for (size_t i = 0; any && i < COUNT_OF(roots); i++) {
        if (!add_tracing_data(&bytes, r, roots[i]))
            continue;
        fine =
            perfdata_add_feature(r->sink.writer, FEATURE_TRACING_DATA, buffer_text(&bytes), error);
        break;
    }
    buffer_release(&bytes);
    return fine;
}
