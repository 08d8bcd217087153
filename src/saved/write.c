/*
 * Write a tree as sections. Each section is its number of rows and then one array for each field: arrays of similar
 * numbers compress well, and a reader uses them as they are. If a number is close to another (a parent to its child,
 * a sample's time to the previous one's), the difference is stored.
 */
#include <stdlib.h>

#include "object/object.h"
#include "saved/layout.h"

/* A column: an expression of each row i, in the file's order. */
#define COLUMN(put, plain, count, expression)                                                      \
    do {                                                                                           \
        for (size_t i = 0; i < (count); i++)                                                       \
            put(plain, expression);                                                                \
    } while (0)
#define COLUMN_U32(plain, count, expression) COLUMN(buffer_put_u32, plain, count, expression)
#define COLUMN_U64(plain, count, expression) COLUMN(buffer_put_u64, plain, count, expression)

static void write_meta(struct draft *draft, const struct order *o) {
    struct buffer *plain = draft_section(draft, SECTION_META, 1);
    uint32_t flags = (uint32_t)o->tree->meant << META_MEANT_SHIFT;
    flags |= o->tree->recorded ? META_RECORDED : 0;
    flags |= o->tree->is_heap ? META_HEAP : 0;
    flags |= o->tree->is_estimated ? META_ESTIMATED : 0;
    buffer_put_u32(plain, flags);
    if (o->tree->is_estimated)
        buffer_put_u64(plain, o->tree->deviation);
}

/* Omitted if unknown. */
static void write_when(struct draft *draft, const struct order *o) {
    if (!o->tree->began && !o->tree->lasted)
        return;
    struct buffer *plain = draft_section(draft, SECTION_WHEN, 1);
    buffer_put_u64(plain, o->tree->began);
    buffer_put_u64(plain, o->tree->lasted);
}

static void write_strings(struct draft *draft, const struct order *o) {
    size_t count = o->ranks.items.count;
    struct buffer *plain = draft_section(draft, SECTION_STRINGS, count);
#define STRING strings_get(o->strings, o->ranks.items.items[i])
    COLUMN_U32(plain, count, (uint32_t)STRING.length);
    for (size_t i = 0; i < count; i++)
        buffer_add(plain, STRING);
#undef STRING
}

static void put_build_id(struct buffer *plain, const struct build_id *id) {
    char bytes[BUILD_ID_MAX] = {0};
    memcpy(bytes, id->bytes, id->size);
    buffer_add(plain, (struct text){bytes, sizeof bytes});
}

static void write_objects(struct draft *draft, const struct order *o) {
    size_t count = o->objects.items.count;
    struct buffer *plain = draft_section(draft, SECTION_OBJECTS, count);
#define OBJECT objects_get(o->tree->objects, o->objects.items.items[i])
    COLUMN_U32(plain, count, OBJECT->kind);
    COLUMN_U32(plain, count, order_text(o, OBJECT->path));
    COLUMN_U32(plain, count, (uint32_t)OBJECT->pid);
    COLUMN_U64(plain, count, OBJECT->start);
    COLUMN_U64(plain, count, OBJECT->size);
    COLUMN_U32(plain, count, OBJECT->build_id.size);
    COLUMN(put_build_id, plain, count, &OBJECT->build_id);
#undef OBJECT
}

static void write_events(struct draft *draft, const struct order *o) {
    size_t count = o->tree->events.count - 1;
    struct buffer *plain = draft_section(draft, SECTION_EVENTS, count);
    const struct event *events = o->tree->events.items + 1;
    COLUMN_U32(plain, count, order_string(o, events[i].name));
    COLUMN_U32(plain, count, order_string(o, events[i].unit));
    COLUMN_U32(plain, count, events[i].kind);
    COLUMN_U32(plain, count, events[i].chains);
}

/* Only for profiles with several kinds of time, or with events aside. */
static void write_times(struct draft *draft, const struct order *o) {
    size_t count = o->tree->events.count - 1;
    const struct event *events = o->tree->events.items + 1;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= events[i].time != TIME_MEASURED;
    if (!any)
        return;
    struct buffer *plain = draft_section(draft, SECTION_TIMES, count);
    COLUMN_U32(plain, count, events[i].time);
}

static void write_threads(struct draft *draft, const struct order *o) {
    size_t count = o->threads.items.count;
    struct buffer *plain = draft_section(draft, SECTION_THREADS, count);
#define THREAD o->tree->threads.items[o->threads.items.items[i]]
    COLUMN_U32(plain, count, (uint32_t)THREAD.pid);
    COLUMN_U32(plain, count, (uint32_t)THREAD.tid);
    COLUMN_U64(plain, count, THREAD.start);
    COLUMN_U64(plain, count, THREAD.end);
    COLUMN_U32(plain, count, THREAD.unnamed);
#undef THREAD
}

static void write_labels(struct draft *draft, const struct order *o) {
    size_t count = o->labels.items.count, size;
    struct buffer *plain = draft_section(draft, SECTION_LABELS, count);
    COLUMN_U32(plain, count,
               (tree_labels(o->tree, o->labels.items.items[i], &size), (uint32_t)size));
    for (size_t i = 0; i < count; i++) {
        const struct label_pair *pairs = tree_labels(o->tree, o->labels.items.items[i], &size);
        for (size_t k = 0; k < size; k++) {
            buffer_put_u32(plain, order_string(o, pairs[k].key));
            buffer_put_u32(plain, order_string(o, pairs[k].value));
        }
    }
}

static void write_series(struct draft *draft, const struct order *o) {
    size_t count = o->series.items.count;
    struct buffer *plain = draft_section(draft, SECTION_SERIES, count);
#define SERIES o->tree->series.items[o->series.items.items[i]]
    COLUMN_U32(plain, count, SERIES.event);
    COLUMN_U32(plain, count, o->threads.numbers[SERIES.thread]);
    COLUMN_U32(plain, count, order_string(o, SERIES.comm));
    COLUMN_U32(plain, count, SERIES.state);
    COLUMN_U32(plain, count, SERIES.ending);
    COLUMN_U32(plain, count, o->labels.numbers[SERIES.labels]);
#undef SERIES
}

static void write_functions(struct draft *draft, const struct order *o) {
    size_t count = o->functions.items.count;
    struct buffer *plain = draft_section(draft, SECTION_FUNCTIONS, count);
#define FUNCTION o->tree->functions.items[o->functions.items.items[i]]
    COLUMN_U32(plain, count, order_string(o, FUNCTION.name));
    COLUMN_U32(plain, count, order_string(o, FUNCTION.file));
    COLUMN_U32(plain, count, FUNCTION.line);
    COLUMN_U32(plain, count, order_string(o, FUNCTION.module));
    COLUMN_U32(plain, count, order_string(o, FUNCTION.language));
#undef FUNCTION
}

static uint32_t packed_kind(const struct location *l) {
    return l->mode | (uint32_t)l->call << 8 | (uint32_t)l->kinds << 16 | (uint32_t)l->unwound << 24;
}

static void write_locations(struct draft *draft, const struct order *o) {
    size_t count = o->locations.items.count;
    struct buffer *plain = draft_section(draft, SECTION_LOCATIONS, count);
#define LOCATION o->tree->locations.items[o->locations.items.items[i]]
    COLUMN_U64(plain, count, LOCATION.address);
    COLUMN_U64(plain, count, LOCATION.raw);
    COLUMN_U32(plain, count, LOCATION.object ? o->objects.numbers[LOCATION.object] : 0);
    COLUMN_U32(plain, count, LOCATION.function ? o->functions.numbers[LOCATION.function] : 0);
    COLUMN_U32(plain, count, LOCATION.line);
    COLUMN_U32(plain, count, packed_kind(&LOCATION));
    COLUMN_U32(plain, count, LOCATION.frame_count);
#undef LOCATION
}

/* Write the frames of the first location, then those of the second, and so on. */
static void write_frames(struct draft *draft, const struct order *o) {
    const struct tree *tree = o->tree;
    VECTOR(struct frame) all = {0};
    for (size_t i = 0; i < o->locations.items.count; i++) {
        const struct location *location = &tree->locations.items[o->locations.items.items[i]];
        for (uint32_t k = 0; k < location->frame_count; k++)
            vector_push(&all, tree->frames.items[location->first_frame + k]);
    }
    struct buffer *plain = draft_section(draft, SECTION_FRAMES, all.count);
    const struct frame *frames = all.items;
    COLUMN_U32(plain, all.count, order_string(o, frames[i].name));
    COLUMN_U32(plain, all.count, order_string(o, frames[i].file));
    COLUMN_U32(plain, all.count, frames[i].line);
    COLUMN_U32(plain, all.count, frames[i].column);
    COLUMN_U64(plain, all.count, frames[i].offset);
    COLUMN_U32(plain, all.count, frames[i].inlined);
    bool tell = false;
    for (size_t i = 0; i < all.count; i++)
        tell |= frames[i].language != 0;
    if (tell)
        COLUMN_U32(plain, all.count, order_string(o, frames[i].language));
    vector_release(&all);
}

static void write_nodes(struct draft *draft, const struct order *o) {
    size_t count = o->made.count - 1;
    struct buffer *plain = draft_section(draft, SECTION_NODES, count);
    const struct node *nodes = o->made.items + 1;
    COLUMN_U32(plain, count, (uint32_t)i + 1 - nodes[i].parent);
    COLUMN_U32(plain, count, nodes[i].location);
}

static void write_cells(struct draft *draft, const struct order *o) {
    struct buffer *plain = draft_section(draft, SECTION_CELLS, o->cells.count);
    const struct cell *cells = o->cells.items;
    COLUMN_U32(plain, o->cells.count, cells[i].node - (i ? cells[i - 1].node : 0));
    COLUMN_U32(plain, o->cells.count, cells[i].series);
    COLUMN_U64(plain, o->cells.count, cells[i].samples);
    COLUMN_U64(plain, o->cells.count, cells[i].weight);
}

static void write_samples(struct draft *draft, const struct order *o) {
    size_t count = o->tree->samples.count;
    if (!count)
        return;
    struct buffer *plain = draft_section(draft, SECTION_SAMPLES, count);
    const struct sample *samples = o->tree->samples.items;
    COLUMN_U64(plain, count, samples[i].time - (i ? samples[i - 1].time : 0));
    COLUMN_U64(plain, count, samples[i].weight);
    COLUMN_U32(plain, count, o->nodes[samples[i].node]);
    COLUMN_U32(plain, count, o->series.numbers[samples[i].series]);
    COLUMN_U32(plain, count, samples[i].cpu);
}

/* Sort sources by the number of their file; code by object and address. */
static int compare_sources(const void *a, const void *b, void *context) {
    const struct order *o = context;
    uint32_t x = order_string(o, ((const struct attached_source *)a)->file),
             y = order_string(o, ((const struct attached_source *)b)->file);
    return (x > y) - (x < y);
}

static int compare_codes(const void *a, const void *b, void *context) {
    const struct order *o = context;
    const struct attached_code *x = a, *y = b;
    uint32_t in_x = o->objects.numbers[x->object], in_y = o->objects.numbers[y->object];
    int order = (in_x > in_y) - (in_x < in_y);
    return order ? order : (x->start > y->start) - (x->start < y->start);
}

static void write_sources(struct draft *draft, const struct order *o) {
    size_t count = o->tree->sources.count;
    if (!count)
        return;
    struct buffer *plain = draft_section(draft, SECTION_SOURCES, count);
    struct attached_source *sources = memory_resize(NULL, count, sizeof *sources);
    memcpy(sources, o->tree->sources.items, count * sizeof *sources);
    qsort_r(sources, count, sizeof *sources, compare_sources, (void *)(uintptr_t)o);
    COLUMN_U32(plain, count, order_string(o, sources[i].file));
    COLUMN_U32(plain, count, (uint32_t)sources[i].text.length);
    COLUMN(buffer_add, plain, count, sources[i].text);
    free(sources);
}

static void write_codes(struct draft *draft, const struct order *o) {
    VECTOR(struct attached_code) codes = {0};
    for (size_t i = 0; i < o->tree->codes.count; i++)
        if (o->objects.numbers[o->tree->codes.items[i].object])
            vector_push(&codes, o->tree->codes.items[i]);
    if (codes.count) {
        struct buffer *plain = draft_section(draft, SECTION_CODES, codes.count);
        qsort_r(codes.items, codes.count, sizeof *codes.items, compare_codes, (void *)(uintptr_t)o);
        COLUMN_U32(plain, codes.count, o->objects.numbers[codes.items[i].object]);
        COLUMN_U32(plain, codes.count, codes.items[i].machine);
        COLUMN_U64(plain, codes.count, codes.items[i].start);
        COLUMN_U32(plain, codes.count, (uint32_t)codes.items[i].bytes.length);
        COLUMN(buffer_add, plain, codes.count, codes.items[i].bytes);
    }
    vector_release(&codes);
}

static void write_notes(struct draft *draft, const struct order *o) {
    const struct notes *notes = &o->tree->notes;
    struct buffer *plain = draft_section(draft, SECTION_NOTES, notes->count);
    const struct note *items = notes->items;
    COLUMN_U32(plain, notes->count, order_text(o, text_of(items[i].kind->name)));
    COLUMN_U32(plain, notes->count, order_text(o, text_of(items[i].kind->sentence)));
    COLUMN_U32(plain, notes->count,
               items[i].example ? order_text(o, text_of(items[i].example)) : 0);
    COLUMN_U32(plain, notes->count, items[i].kind->apart);
    COLUMN_U64(plain, notes->count, items[i].count);
    COLUMN_U64(plain, notes->count, items[i].where);
    bool several = false;
    for (size_t i = 0; i < notes->count; i++)
        several |= items[i].views != 0;
    if (several)
        COLUMN_U32(plain, notes->count, items[i].views);
}

bool saved_write(struct out *out, const struct tree *tree, struct error *error) {
    if (!tree_check(tree, error))
        return false;
    struct draft draft = {0};
    struct order order;
    order_init(&order, tree);
    write_meta(&draft, &order);
    write_when(&draft, &order);
    write_strings(&draft, &order);
    write_objects(&draft, &order);
    write_events(&draft, &order);
    write_times(&draft, &order);
    write_threads(&draft, &order);
    write_labels(&draft, &order);
    write_series(&draft, &order);
    write_functions(&draft, &order);
    write_locations(&draft, &order);
    write_frames(&draft, &order);
    write_nodes(&draft, &order);
    write_cells(&draft, &order);
    write_samples(&draft, &order);
    write_sources(&draft, &order);
    write_codes(&draft, &order);
    write_notes(&draft, &order);
    draft_write(&draft, out);
    draft_release(&draft);
    order_release(&order);
    return true;
}
