/*
 * Tables of cost: by function, object, category or any other name of frames, and by the dimensions of series. report_write.c writes them.
 */
#include "view/report.h"

#include <stdlib.h>

struct row_builder {
    struct report *report;
    const struct flame *flame;
    const struct categories *categories;
    uint32_t *row_of; /* for each of the report's strings, its row + 1 */
    size_t row_capacity;
    uint32_t *key_of; /* for each flame node, its row */
    uint32_t *
        roots_of; /* for each flame node, its root frames as one of the report's strings; NULL: they don't matter */
    struct buffer name;
    /* Nodes of which the categories are known: rules are tried once for each function, object and kind. */
    VECTOR(uint32_t) categorized;
    VECTOR(struct text) category_of;
    struct index category_index;
    struct known_row *known; /* for each of the flame's strings */
};

/* The last node of a name, and its row. */
struct known_row {
    uint32_t node; /* 0: none */
    uint32_t row;
};

/* Functions of one name may be in several objects; of their categories the row has the first by name, whichever came first. */
static void row_categorize(struct report *report, struct report_row *row, struct text category) {
    if (category.length && (!row->category.length || text_compare(category, row->category) < 0))
        row->category = strings_get(report->strings, strings_add(report->strings, category));
}

static uint32_t rows_find(struct row_builder *b, struct text name, struct text category) {
    struct report *report = b->report;
    uint32_t id = strings_add(report->strings, name);
    if (id >= b->row_capacity) {
        size_t grown = id * 2 + 64;
        b->row_of = memory_resize(b->row_of, grown, sizeof *b->row_of);
        memset(b->row_of + b->row_capacity, 0, (grown - b->row_capacity) * sizeof *b->row_of);
        b->row_capacity = grown;
    }
    if (!b->row_of[id]) {
        vector_push(&report->rows, ((struct report_row){.name = strings_get(report->strings, id)}));
        b->row_of[id] = (uint32_t)report->rows.count;
    }
    row_categorize(report, &report->rows.items[b->row_of[id] - 1], category);
    return b->row_of[id] - 1;
}

/* [truncated] or [broken], below the comm: what was asked for to be seen beside the functions. */
static bool is_ending(const struct row_builder *b, const struct flame_node *node) {
    struct text name = strings_get(b->flame->strings, node->name);
    return b->report->by == BY_FUNCTION && node->parent != 0 && node->kinds & KIND_ROOT &&
           (text_equal(name, TEXT("[truncated]")) || text_equal(name, TEXT("[broken]")));
}

static bool is_root(const struct row_builder *b, uint32_t number) {
    const struct flame_node *node = &b->flame->nodes.items[number];
    return number == 0 || (node->kinds & KIND_ROOT && !is_ending(b, node));
}

/* Parents come before their children. */
static void rows_roots(struct row_builder *b) {
    struct strings *strings = b->report->strings;
    b->roots_of = memory_zero(b->flame->nodes.count, sizeof *b->roots_of);
    for (uint32_t i = 1; i < b->flame->nodes.count; i++) {
        const struct flame_node *node = &b->flame->nodes.items[i];
        b->roots_of[i] = b->roots_of[node->parent];
        if (!is_root(b, i))
            continue;
        b->name.count = 0;
        buffer_add(&b->name, strings_get(strings, b->roots_of[i]));
        buffer_add(&b->name, strings_get(b->flame->strings, node->name));
        buffer_add_char(&b->name, ';');
        b->roots_of[i] = strings_add(strings, buffer_text(&b->name));
    }
}

/* The row of a frame so called, behind its roots. */
static uint32_t rows_frame_row(struct row_builder *b, uint32_t number, struct text name,
                               struct text category) {
    if (!b->roots_of)
        return rows_find(b, name, category);
    b->name.count = 0;
    buffer_add(&b->name, strings_get(b->report->strings, b->roots_of[number]));
    buffer_add(&b->name, name);
    return rows_find(b, buffer_text(&b->name), category);
}

static struct text rows_category(struct row_builder *b, uint32_t number) {
    const struct flame_node *node = &b->flame->nodes.items[number];
    uint64_t hash = hash_mix((uint64_t)node->name << 32 | node->object, node->kinds);
    uint32_t id;
    for (struct probe p = index_probe(&b->category_index, hash);
         (id = index_next(&b->category_index, &p));) {
        const struct flame_node *other = &b->flame->nodes.items[b->categorized.items[id - 1]];
        if (other->name == node->name && other->object == node->object &&
            other->kinds == node->kinds)
            return b->category_of.items[id - 1];
    }
    struct text name = strings_get(b->flame->strings, node->name);
    struct text object = strings_get(b->flame->strings, node->object);
    struct text category = categories_of(b->categories, name, object, node->kinds);
    vector_push(&b->categorized, number);
    vector_push(&b->category_of, category);
    index_add(&b->category_index, hash, (uint32_t)b->categorized.count);
    return category;
}

static uint32_t rows_key(struct row_builder *b, uint32_t number) {
    const struct flame_node *node = &b->flame->nodes.items[number];
    struct text name = strings_get(b->flame->strings, node->name);
    struct text object = strings_get(b->flame->strings, node->object);
    if (is_root(b, number)) /* no function; but categories add up to all there is */
        return (node->self || node->self_before) && b->report->by == BY_CATEGORY
                   ? rows_frame_row(b, number, TEXT("unknown"), TEXT(""))
                   : NO_KEY;
    if (b->report->by == BY_OBJECT)
        return rows_frame_row(b, number, object.length ? object : TEXT("[unknown]"), TEXT(""));
    if (b->report->by == BY_NAME)
        return rows_frame_row(b, number, name, TEXT(""));
    struct text category = is_ending(b, node) ? TEXT("unknown") : rows_category(b, number);
    if (b->report->by == BY_CATEGORY)
        return rows_frame_row(b, number, category, TEXT(""));
    return rows_frame_row(b, number, name, category);
}

/* Most nodes of one name differ in nothing that chooses their row: an array lookup instead of several by hash. */
static uint32_t rows_key_again(struct row_builder *b, uint32_t number) {
    const struct flame_node *nodes = b->flame->nodes.items, *node = &nodes[number];
    struct known_row *known = &b->known[node->name];
    const struct flame_node *other = &nodes[known->node];
    if (node->kinds & KIND_ROOT || number == 0)
        return rows_key(b, number);
    if (!known->node || other->object != node->object || other->kinds != node->kinds ||
        (b->roots_of && b->roots_of[known->node] != b->roots_of[number]))
        *known = (struct known_row){number, rows_key(b, number)};
    return known->row;
}

/* What ends in a root frame is no function's, but adds to its row. */
static void rows_sum(struct row_builder *b) {
    size_t nodes = b->flame->nodes.count, rows = b->report->rows.count;
    struct key_sum *sums = memory_zero(rows + 1, sizeof *sums);
    for (uint32_t i = 0; i < nodes; i++) {
        const struct flame_node *node = &b->flame->nodes.items[i];
        if (b->key_of[i] == NO_KEY || !is_root(b, i))
            continue;
        sums[b->key_of[i]].self += node->self;
        sums[b->key_of[i]].total += node->self;
        sums[b->key_of[i]].self_before += node->self_before;
        sums[b->key_of[i]].total_before += node->self_before;
        b->key_of[i] = NO_KEY;
    }
    flame_sum(b->flame, b->key_of, rows, sums);
    for (size_t i = 0; i < rows; i++) {
        struct report_row *row = &b->report->rows.items[i];
        row->self = sums[i].self;
        row->total = sums[i].total;
        row->self_before = sums[i].self_before;
        row->total_before = sums[i].total_before;
    }
    free(sums);
}

static int row_order_total(const void *a, const void *b) {
    const struct report_row *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    return text_compare(x->name, y->name);
}

static int row_order_self(const void *a, const void *b) {
    const struct report_row *x = a, *y = b;
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return text_compare(x->name, y->name);
}

static void sort_rows(struct report *report, int (*order)(const void *, const void *)) {
    if (report->rows.count)
        qsort(report->rows.items, report->rows.count, sizeof *report->rows.items, order);
}

static void report_sort(struct report *report) {
    sort_rows(report, report->is_diff             ? report_order_change
                      : report->by == BY_CATEGORY ? row_order_self
                                                  : row_order_total);
}

void report_sort_by(struct report *report, bool self) {
    sort_rows(report, self ? row_order_self : row_order_total);
}

static struct report *report_new(enum report_by by, uint64_t total, struct text unit,
                                 struct text title) {
    struct report *report = memory_zero(1, sizeof *report);
    report->strings = strings_new();
    report->by = by;
    report->total = total;
    report->unit = strings_get(report->strings, strings_add(report->strings, unit));
    report->title = strings_get(report->strings, strings_add(report->strings, title));
    return report;
}

static void rows_release(struct row_builder *b) {
    free(b->row_of);
    free(b->key_of);
    free(b->known);
    vector_release(&b->categorized);
    vector_release(&b->category_of);
    index_release(&b->category_index);
    free(b->roots_of);
    buffer_release(&b->name);
}

static struct report *report_make(const struct flame *flame, const struct categories *categories,
                                  enum report_by by, bool roots, struct text title) {
    struct report *report = report_new(by, flame->nodes.items[0].total,
                                       strings_get(flame->strings, flame->unit), title);
    struct row_builder b = {.report = report, .flame = flame, .categories = categories};
    report->is_diff = flame->is_diff;
    report->total_before = flame->nodes.items[0].total_before;
    if (roots)
        rows_roots(&b);
    b.key_of = memory_zero(flame->nodes.count, sizeof *b.key_of);
    b.known = memory_zero(strings_count(flame->strings) + 1, sizeof *b.known);
    for (size_t i = 0; i < flame->nodes.count; i++)
        b.key_of[i] = rows_key_again(&b, (uint32_t)i);
    rows_sum(&b);
    rows_release(&b);
    report_sort(report);
    return report;
}

struct report *report_of_flame(const struct flame *flame, const struct categories *categories,
                               enum report_by by) {
    static const struct text titles[] = {[BY_FUNCTION] = TEXT("function"),
                                         [BY_OBJECT] = TEXT("object"),
                                         [BY_CATEGORY] = TEXT("category")};
    assert(by < COUNT_OF(titles));
    return report_make(flame, categories, by, false, titles[by]);
}

struct report *report_of_names(const struct flame *flame, const char *title) {
    return report_make(flame, NULL, BY_NAME, false, text_of(title));
}

struct report *report_of_roots(const struct flame *flame, const struct categories *categories,
                               enum report_by by, const char *title) {
    return report_make(flame, categories, by, true, text_of(title));
}

static void add_dimensions(const struct tree *tree, const struct series *series,
                           const char *const *dimensions, size_t count, struct buffer *name) {
    name->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (i)
            buffer_add_char(name, ';');
        dimension_add(tree, series, text_of(dimensions[i]), name);
    }
}

struct report *report_of_dimensions(const struct tree *tree, const char *const *dimensions,
                                    size_t count, bool by_samples) {
    struct text unit = flame_unit(tree, &(struct flame_options){.by_samples = by_samples});
    struct buffer title = {0};
    for (size_t i = 0; i < count; i++)
        buffer_printf(&title, "%s%s", i ? ";" : "", dimensions[i]);
    struct report *report = report_new(BY_NAME, 0, unit, buffer_text(&title));
    struct row_builder b = {.report = report};
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        add_dimensions(tree, &tree->series.items[cell->series], dimensions, count, &b.name);
        uint32_t number = rows_find(&b, buffer_text(&b.name), TEXT(""));
        struct report_row *row = &report->rows.items[number];
        uint64_t weight = by_samples ? cell->samples : cell->weight;
        row->self = saturating_add(row->self, weight);
        row->total = row->self;
        report->total = saturating_add(report->total, weight);
    }
    buffer_release(&title);
    rows_release(&b);
    report_sort(report);
    return report;
}

static int row_order_name(const void *a, const void *b) {
    const struct report_row *x = a, *y = b;
    return text_compare(x->name, y->name);
}

void report_add_samples(struct report *report, const struct report *samples) {
    size_t count = samples->rows.count;
    struct report_row *sorted = memory_resize(NULL, count + 1, sizeof *sorted);
    if (count)
        memcpy(sorted, samples->rows.items, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, row_order_name);
    for (size_t i = 0; i < report->rows.count; i++) {
        struct report_row *row = &report->rows.items[i];
        const struct report_row *found =
            bsearch(row, sorted, count, sizeof *sorted, row_order_name);
        row->self_samples = found ? found->self : 0;
        row->total_samples = found ? found->total : 0;
    }
    report->has_samples = true;
    free(sorted);
}

void report_free(struct report *report) {
    if (!report)
        return;
    vector_release(&report->rows);
    strings_free(report->strings);
    free(report);
}
