/*
 * The flame that all views show. It is rebuilt when the user narrows it: patterns are added to those of the command
 * line, and labels skip series. A pattern that would leave nothing is refused, so that there is always something to
 * look at.
 */
#include "terminal/viewer.h"

#include <ctype.h>
#include <stdlib.h>

#include "view/numbers.h"

static void narrowing_release(struct narrowing *n) {
    free(n->text);
    free(n->key);
    free(n->value);
    pattern_free(n->pattern);
}

/* ---- making ---- */

static void skip_series(struct model *m) {
    struct naming *naming = m->options->naming;
    VECTOR(struct label_filter) labels = {0};
    for (size_t i = 0; i < m->narrowings.count; i++)
        if (m->narrowings.items[i].kind == NARROW_LABEL)
            vector_push(&labels, ((struct label_filter){m->narrowings.items[i].key,
                                                        m->narrowings.items[i].value}));
    struct filter filter = {.labels = labels.items, .label_count = labels.count};
    for (size_t i = 1; i < naming->series.count; i++)
        naming->series.items[i].skip =
            m->skipped[i] ||
            !filter_series(&filter, m->options->tree, &m->options->tree->series.items[i]);
    vector_release(&labels);
}

static pattern_list *list_of(struct stack_rules *rules, enum narrowing_kind kind) {
    return kind == NARROW_FOCUS    ? &rules->focus
           : kind == NARROW_IGNORE ? &rules->ignore
           : kind == NARROW_HIDE   ? &rules->hide
                                   : &rules->root;
}

/* The patterns stay their owner's; only the lists are ours. */
static void rules_copy(struct stack_rules *rules, const struct stack_rules *from) {
    if (!from)
        return;
    static const size_t lists[] = {
        offsetof(struct stack_rules, focus), offsetof(struct stack_rules, ignore),
        offsetof(struct stack_rules, hide), offsetof(struct stack_rules, root)};
    *rules = (struct stack_rules){.kernel_only = from->kernel_only, .user_only = from->user_only};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        pattern_list *to = (pattern_list *)((char *)rules + lists[i]);
        const pattern_list *old = (const pattern_list *)((const char *)from + lists[i]);
        for (size_t k = 0; k < old->count; k++)
            vector_push(to, old->items[k]);
    }
}

static struct flame *make(struct model *m, struct error *error) {
    struct stack_rules rules = {0};
    struct flame_options shape = *m->options->flame;
    rules_copy(&rules, shape.rules);
    for (size_t i = 0; i < m->narrowings.count; i++)
        if (m->narrowings.items[i].pattern)
            vector_push(list_of(&rules, m->narrowings.items[i].kind),
                        m->narrowings.items[i].pattern);
    shape.rules = &rules;
    shape.by_samples = m->by_samples;
    shape.reverse = m->reverse;
    skip_series(m);
    struct flame *flame = flame_of_tree(m->options->tree, m->options->naming, &shape, error);
    vector_release(&rules.focus);
    vector_release(&rules.ignore);
    vector_release(&rules.hide);
    vector_release(&rules.root);
    return flame;
}

bool model_make(struct model *m, struct error *error) {
    struct flame *flame = make(m, error);
    if (flame && flame->nodes.items[0].total == 0) {
        flame_free(flame);
        return error_set(error, ERROR_INPUT, "there are no samples to count");
    }
    if (!flame)
        return false;
    flame_free(m->flame);
    m->flame = flame;
    m->found.count = 0;
    return true;
}

bool model_start(struct model *m, const struct viewer_options *options, struct error *error) {
    size_t count = options->naming->series.count;
    *m = (struct model){.options = options,
                        .by_samples = options->flame->by_samples,
                        .reverse = options->flame->reverse};
    m->skipped = memory_zero(count + 1, sizeof *m->skipped);
    for (size_t i = 0; i < count; i++)
        m->skipped[i] = options->naming->series.items[i].skip;
    return model_make(m, error);
}

void model_release(struct model *m) {
    for (size_t i = 0; i < m->options->naming->series.count; i++)
        m->options->naming->series.items[i].skip = m->skipped[i];
    for (size_t i = 0; i < m->narrowings.count; i++)
        narrowing_release(&m->narrowings.items[i]);
    vector_release(&m->narrowings);
    vector_release(&m->found);
    buffer_release(&m->query);
    free(m->skipped);
    flame_free(m->flame);
}

/* ---- narrowing ---- */

/* Parse "KEY=PATTERN"; a pattern alone selects by comm. */
static void split_label(struct narrowing *n, struct text typed) {
    size_t equals = text_find(typed, '=');
    struct text key = equals == SIZE_MAX ? TEXT("comm") : text_upto(typed, equals);
    struct text value = equals == SIZE_MAX ? typed : text_from(typed, equals + 1);
    n->key = memory_copy(key.data, key.length);
    n->value = memory_copy(value.data, value.length);
}

/* List the label's values in byte order, for a user who typed one that does not exist. */
static void add_values(const struct model *m, const char *key, struct buffer *text) {
    enum { VALUES_MOST = 8 };
    const struct tree *tree = m->options->tree;
    struct buffer value = {0}, last = {0}, least = {0};
    for (int shown = 0; shown < VALUES_MOST; shown++) {
        least.count = 0;
        bool any = false;
        for (size_t i = 1; i < tree->series.count; i++) {
            value.count = 0;
            if (!series_label(tree, &tree->series.items[i], text_of(key), &value) ||
                (shown && text_compare(buffer_text(&value), buffer_text(&last)) <= 0) ||
                (any && text_compare(buffer_text(&value), buffer_text(&least)) >= 0))
                continue;
            any = true;
            least.count = 0;
            buffer_add(&least, buffer_text(&value));
        }
        if (!any)
            break;
        buffer_add(text, shown ? TEXT(", ") : TEXT(" (there are: "));
        buffer_add(text, buffer_text(&least));
        last.count = 0;
        buffer_add(&last, buffer_text(&least));
        if (shown == VALUES_MOST - 1)
            buffer_add(text, TEXT(", …"));
    }
    buffer_add(text, last.count ? TEXT(")") : TEXT(" (no sample has such a label)"));
    buffer_release(&value);
    buffer_release(&last);
    buffer_release(&least);
}

static bool fail_narrow(const struct model *m, const struct narrowing *n, struct error *error) {
    struct buffer values = {0};
    if (n->kind == NARROW_LABEL)
        add_values(m, n->key, &values);
    error_set(error, ERROR_INPUT, "nothing would be left%.*s", TEXT_ARGS(buffer_text(&values)));
    buffer_release(&values);
    return false;
}

bool model_narrow(struct model *m, enum narrowing_kind kind, struct text typed,
                  struct error *error) {
    struct narrowing n = {.kind = kind, .text = memory_copy(typed.data, typed.length)};
    bool fine = true;
    if (kind == NARROW_LABEL)
        split_label(&n, typed);
    else
        fine = (n.pattern = pattern_new(n.text, error)) != NULL;
    if (fine) {
        vector_push(&m->narrowings, n);
        struct error why = {0};
        fine = model_make(m, &why);
        if (!fine && why.kind == ERROR_INPUT)
            fail_narrow(m, &n, error);
        else if (!fine)
            *error = why;
        if (!fine)
            m->narrowings.count--;
    }
    if (!fine)
        narrowing_release(&n);
    return fine;
}

bool model_widen(struct model *m, bool all, struct error *error) {
    if (!m->narrowings.count)
        return error_set(error, ERROR_INPUT, "there is no filter to remove");
    do
        narrowing_release(&m->narrowings.items[--m->narrowings.count]);
    while (all && m->narrowings.count);
    return model_make(m, error);
}

void model_describe(const struct model *m, struct buffer *text) {
    static const char *const names[] = {"focus ", "without ", "hide ", "root ", ""};
    for (size_t i = 0; i < m->narrowings.count; i++) {
        const struct narrowing *n = &m->narrowings.items[i];
        buffer_printf(text, "%s%s", i ? ", " : "", names[n->kind]);
        if (n->kind == NARROW_LABEL)
            buffer_printf(text, "%s=%s", n->key, n->value);
        else
            buffer_add(text, text_of(n->text));
    }
}

/* ---- searching ---- */

void model_search(struct model *m, struct text query) {
    m->query.count = 0;
    m->any_case = true;
    for (size_t i = 0; i < query.length; i++)
        m->any_case &= !isupper((unsigned char)query.data[i]);
    buffer_add(&m->query, query);
    m->found.count = 0;
}

static bool contains(const struct model *m, struct text name) {
    struct text query = buffer_text(&m->query);
    if (!m->any_case)
        return text_search(name, query) != SIZE_MAX;
    struct buffer lower = {0};
    for (size_t i = 0; i < name.length; i++)
        buffer_add_char(&lower, (char)tolower((unsigned char)name.data[i]));
    bool found = text_search(buffer_text(&lower), query) != SIZE_MAX;
    buffer_release(&lower);
    return found;
}

bool model_matches(struct model *m, uint32_t name) {
    if (!m->query.count)
        return false;
    while (m->found.count <= name)
        vector_push(&m->found, 0);
    uint8_t *found = &m->found.items[name];
    if (!*found)
        *found = contains(m, strings_get(m->flame->strings, name)) ? 2 : 1;
    return *found == 2;
}

uint64_t model_matched(struct model *m, const struct flame *flame) {
    const struct flame_node *nodes = flame->nodes.items;
    uint8_t *inside = memory_zero(flame->nodes.count, sizeof *inside);
    uint64_t sum = 0;
    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        bool is_match = model_matches(m, nodes[i].name);
        if (is_match && !inside[nodes[i].parent])
            sum += nodes[i].total;
        inside[i] = is_match || inside[nodes[i].parent];
    }
    free(inside);
    return sum;
}

/* ---- amounts ---- */

static const struct scale {
    const char *unit;
    double each;
    const char *shown;
} scales[] = {{"ns", 1e9, "s"},         {"ns", 1e6, "ms"},        {"ns", 1e3, "µs"},
              {"bytes", 0x1p30, "GiB"}, {"bytes", 0x1p20, "MiB"}, {"bytes", 0x1p10, "KiB"}};

void model_add_amount(const struct model *m, struct buffer *text, uint64_t amount) {
    struct text unit = strings_get(m->flame->strings, m->flame->unit);
    for (size_t i = 0; i < COUNT_OF(scales); i++)
        if (text_equal(unit, text_of(scales[i].unit)) && (double)amount >= scales[i].each) {
            buffer_printf(text, "%.2f %s", (double)amount / scales[i].each, scales[i].shown);
            return;
        }
    buffer_add_grouped(text, amount);
    buffer_printf(text, " %.*s", TEXT_ARGS(unit));
}
