/*
 * Windows to batches. Series have no threads: otherwise a store would have a series for each thread that ever existed. Comms are kept.
 */
#include "agent/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct note_kind note_services = {
    "agent-services",
    "# service{ was|s were} counted as `other`: the host has more than `services` allows"};

static void set(struct tree *tree, struct series *series, struct text key, struct text value) {
    series->labels = tree_set_label(tree, series->labels, key, value);
}

/* Keep labels set by the process itself; without any, its comm identifies it. */
static void label_series(struct tree *tree, struct series *series, struct text time,
                         const struct agent_options *options, const char *host) {
    struct buffer service = {0};
    for (size_t i = 0; i < options->labels.count; i++)
        set(tree, series, text_of(options->labels.items[i].key),
            text_of(options->labels.items[i].value));
    set(tree, series, TEXT("host"), text_of(host));
    set(tree, series, TEXT("time"), time);
    if (!series_label(tree, series, TEXT("service"), &service)) {
        struct text comm = strings_get(tree->strings, series->comm);
        set(tree, series, TEXT("service"), comm.length ? comm : TEXT("unknown"));
    }
    series->thread = 0;
    buffer_release(&service);
}

/* An idle CPU runs process 0. */
static void drop_idle(struct tree *tree) {
    size_t kept = 0;
    for (size_t i = 0; i < tree->cells.count; i++) {
        const struct series *series = &tree->series.items[tree->cells.items[i].series];
        if (!series->thread || tree_thread(tree, series->thread)->pid)
            tree->cells.items[kept++] = tree->cells.items[i];
    }
    tree->cells.count = kept;
}

/* Waits become a value of their own, beside CPU time. Drop the time on the CPU between them, because it is already counted. */
static void settle_waits(struct tree *tree) {
    size_t kept = 1;
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct series *series = &tree->series.items[tree->cells.items[i].series];
        enum event_time time = tree_event(tree, series->event)->time;
        if (time == TIME_MEASURED || (time == TIME_WAITED && series->state != STATE_ON))
            tree->cells.items[kept++] = tree->cells.items[i];
    }
    if (tree->cells.count)
        tree->cells.count = kept;
    for (size_t i = 1; i < tree->events.count; i++)
        if (tree->events.items[i].time == TIME_WAITED)
            tree->events.items[i].time = TIME_MEASURED;
}

void batch_label(struct tree *window, uint64_t time, const struct agent_options *options,
                 const char *host) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)time);
    drop_idle(window);
    settle_waits(window);
    for (size_t i = 1; i < window->series.count; i++)
        label_series(window, &window->series.items[i], text_of(text), options, host);
    notes_drop(&window->notes,
               "stacks"); /* shares of one window; the label `ending` has them, too */
    notes_drop(&window->notes, "chains");
    notes_drop(&window->notes,
               "waits-recorded"); /* it mentions --off-cpu, which does not apply to a store */
}

/* ---- services ---- */

struct service {
    uint32_t name; /* string */
    uint64_t weight;
};
struct services {
    VECTOR(struct service) items;
};

static int heaviest_first(const void *a, const void *b) {
    const struct service *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static struct service *service_find(struct services *services, uint32_t name) {
    for (size_t i = 0; i < services->items.count; i++)
        if (services->items.items[i].name == name)
            return &services->items.items[i];
    return NULL;
}

static uint32_t service_name(struct tree *tree, const struct series *series) {
    struct buffer value = {0};
    series_label(tree, series, TEXT("service"), &value);
    uint32_t name = strings_add(tree->strings, buffer_text(&value));
    buffer_release(&value);
    return name;
}

/* Costs the number of series times the number of services. */
void batch_bound_services(struct tree *tree, uint32_t most) {
    struct services services = {0};
    uint32_t *names = memory_zero(tree->series.count, sizeof *names);
    uint64_t *weights = memory_zero(tree->series.count, sizeof *weights);
    for (size_t i = 0; i < tree->cells.count; i++)
        weights[tree->cells.items[i].series] += tree->cells.items[i].weight;
    for (size_t i = 1; i < tree->series.count; i++) {
        names[i] = service_name(tree, &tree->series.items[i]);
        struct service *service = service_find(&services, names[i]);
        if (!service) {
            vector_push(&services.items, ((struct service){names[i], 0}));
            service = &services.items.items[services.items.count - 1];
        }
        service->weight += weights[i];
    }
    if (services.items.count > most) {
        qsort(services.items.items, services.items.count, sizeof *services.items.items,
              heaviest_first);
        notes_add(&tree->notes, &note_services, services.items.count - most + 1, 0, NULL);
        services.items.count = most - 1;
        for (size_t i = 1; i < tree->series.count; i++)
            if (!service_find(&services, names[i]))
                set(tree, &tree->series.items[i], TEXT("service"), TEXT("other"));
    }
    vector_release(&services.items);
    free(weights);
    free(names);
}

/* ---- publishing ---- */

void batch_add(struct batch *batch, int tree) {
    vector_push(&batch->trees, tree);
}

bool batch_compact(struct batch *batch, struct child *reader, struct error *error) {
    int whole = reader_join(reader, batch->trees.items, batch->trees.count, false, error);
    if (whole < 0)
        return false;
    uint64_t began = batch->began;
    batch_release(batch);
    batch->began = began;
    batch_add(batch, whole);
    return true;
}

/* Copy the bytes without interpreting them. */
static bool copy(int descriptor, struct out *out, struct error *error) {
    char piece[65536];
    ssize_t size;
    for (off_t at = 0; (size = pread(descriptor, piece, sizeof piece, at)) > 0; at += size)
        out_write(out, piece, (size_t)size);
    return size == 0 || error_errno(error, "memory");
}

bool batch_publish(struct batch *batch, struct child *reader, struct spool_directory *spool,
                   const char *host, struct error *error) {
    struct spooled name;
    struct out out;
    int whole = reader_join(reader, batch->trees.items, batch->trees.count, true, error);
    if (whole < 0)
        return false;
    spool_name(spool, host, &name);
    bool fine = out_open_at(&out, spool->directory, name.name, error);
    if (fine && !copy(whole, &out, error)) {
        out_discard(&out);
        fine = false;
    }
    fine = fine && out_commit(&out, error) && spool_took(spool, &name, error);
    close(whole);
    spool_tidy(spool);
    return fine;
}

void batch_release(struct batch *batch) {
    for (size_t i = 0; i < batch->trees.count; i++)
        close(batch->trees.items[i]);
    vector_release(&batch->trees);
    *batch = (struct batch){0};
}
