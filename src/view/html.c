/*
 * The page: one HTML file that contains everything, with compressed data.
 *
 * The page gets the tree, not a picture: nodes by name, and the counts of each node for each series (event, thread, comm), so that it can be filtered
 * by thread, event or time, inverted and compared without a server. The format is private; web/page/data.js reads it, and switches between on-CPU,
 * off-CPU and wall time if the tree has them. It is the gzip of a length, that many bytes of JSON (names), then varints: nodes, parents first, as
 * (levels up from the last, place); cells as (nodes further, series, samples, weight); samples as (nanoseconds further, series, node, weight).
 */
#include "view/view.h"

#include <stdlib.h>

#include "view/html.h"
#include "view/svg.h"

/* web/page/, made into bytes by web/embed. */
extern const struct text page_head_text, page_style_text, page_body_text, page_script_text;

/* JavaScript counts in doubles. */
static const uint64_t most_exact = 1ull << 53;

static bool has_event(const struct tree *tree, enum times times) {
    for (size_t i = 1; i < tree->events.count; i++)
        if (event_is_of(&tree->events.items[i], times))
            return true;
    return false;
}

/* Where there is nothing to switch to, what is shown is the time that was asked for, or else waits, which is all that was recorded. */
static void leave_out(struct html *h) {
    enum times shown = has_event(h->tree, h->options->shown) ? h->options->shown : TIMES_WAITING;
    if (!has_event(h->tree, shown)) /* no recording */
        return;
    for (uint32_t i = 1; i < h->tree->series.count; i++)
        h->left_out[i] = !series_is_of(h->tree, &h->tree->series.items[i], shown);
}

static bool html_count(struct html *h, struct error *error) {
    uint64_t sum = 0;
    for (size_t i = 1; i < h->tree->cells.count; i++) {
        const struct cell *cell = &h->tree->cells.items[i];
        const struct naming_entry *series = &h->naming->series.items[cell->series];
        if (series->skip || h->left_out[cell->series])
            continue;
        uint32_t at = walker_find(h->walker, cell->series, cell->node);
        /* Neither a frame nor a comm: there is nothing to draw. */
        if (at == STACK_DROPPED || (at == 0 && series->count == 0))
            continue;
        vector_push(&h->cells, ((struct html_cell){at, cell->series, cell->samples, cell->weight}));
        if (!checked_add(sum, cell->weight, &sum) || sum > most_exact)
            return error_set(error, ERROR_INPUT,
                             "the weights add up to more than 2^53, which a page cannot count; "
                             "an SVG can");
    }
    return true;
}

/* ---- columns ---- */

struct places {
    struct index index;
    VECTOR(uint32_t) nodes; /* a flame node that is so called, of such an object and kind */
};

static uint32_t places_find(struct places *places, const struct flame *flame, uint32_t id) {
    const struct flame_node *node = &flame->nodes.items[id];
    uint64_t hash = hash_mix(hash_mix(node->name, node->object), node->kinds);
    uint32_t found;
    for (struct probe p = index_probe(&places->index, hash);
         (found = index_next(&places->index, &p));) {
        const struct flame_node *other = &flame->nodes.items[places->nodes.items[found - 1]];
        if (other->name == node->name && other->object == node->object &&
            other->kinds == node->kinds)
            return found - 1;
    }
    vector_push(&places->nodes, id);
    index_add(&places->index, hash, (uint32_t)places->nodes.count);
    return (uint32_t)places->nodes.count - 1;
}

static void add_nodes(struct html *h, struct places *places) {
    const struct flame_node *nodes = h->flame->nodes.items;
    uint32_t id = nodes[0].first_child, number = 0, last_depth = 0;
    while (id) {
        h->order[id] = ++number;
        buffer_add_varint(&h->data, last_depth + 1 - nodes[id].depth);
        buffer_add_varint(&h->data, places_find(places, h->flame, id));
        last_depth = nodes[id].depth;
        id = flame_next(h->flame, id);
    }
}

static int order_cells(const void *a, const void *b, void *context) {
    const uint32_t *order = context;
    const struct html_cell *x = a, *y = b;
    uint32_t i = order[x->node], k = order[y->node];
    return i != k ? (i > k) - (i < k) : (x->series > y->series) - (x->series < y->series);
}

/* Equal ones (what two tree nodes of one name counted) become one. Returns how many are left. */
static size_t add_cells(struct html *h, const uint32_t *series_number) {
    struct html_cell *cells = h->cells.items;
    size_t count = h->cells.count, written = 0;
    uint32_t last = 0;
    for (size_t i = 0; i < count; i++)
        cells[i].series = series_number[cells[i].series];
    if (count)
        qsort_r(cells, count, sizeof *cells, order_cells, h->order);
    for (size_t i = 0; i < count;) {
        struct html_cell sum = cells[i];
        while (++i < count && cells[i].node == sum.node && cells[i].series == sum.series) {
            sum.samples += cells[i].samples;
            sum.weight += cells[i].weight;
        }
        buffer_add_varint(&h->data, h->order[sum.node] - last);
        last = h->order[sum.node];
        buffer_add_varint(&h->data, sum.series);
        buffer_add_varint(&h->data, sum.samples);
        buffer_add_varint(&h->data, sum.weight);
        written++;
    }
    return written;
}

/* Sources without time keep samples for their order alone: those are of no use to a timeline. */
static size_t add_samples(struct html *h, const uint32_t *series_number, uint64_t *start) {
    const struct tree *tree = h->tree;
    size_t written = 0;
    uint64_t last = 0;
    *start = 0;
    for (size_t i = 0; i < tree->samples.count; i++) {
        const struct sample *sample = &tree->samples.items[i];
        bool is_in = sample_has_time(sample) && !h->left_out[sample->series];
        uint32_t at = is_in ? walker_find(h->walker, sample->series, sample->node) : 0;
        if (!at || at == STACK_DROPPED)
            continue;
        if (written == 0)
            *start = last = sample->time;
        buffer_add_varint(&h->data, sample->time >= last ? sample->time - last : 0);
        last = sample->time > last ? sample->time : last;
        buffer_add_varint(&h->data, series_number[sample->series]);
        buffer_add_varint(&h->data, h->order[at]);
        buffer_add_varint(&h->data, sample->weight);
        written++;
    }
    return written;
}

/* ---- what things are called ---- */

/* As people see it: what is in the page is only shown. */
void json_shown(struct buffer *json, struct text value) {
    struct buffer shown = {0};
    bool as_is = text_is_shown(value);
    if (!as_is)
        buffer_add_shown(&shown, value);
    buffer_add_json_text(json, as_is ? value : buffer_text(&shown));
    buffer_release(&shown);
}

void json_field(struct buffer *json, const char *name, struct text value) {
    buffer_printf(json, "\"%s\":", name);
    json_shown(json, value);
    buffer_add_char(json, ',');
}

static struct text html_title(const struct html_options *o) {
    return text_of(o->title ? o->title : o->times ? o->times[o->shown].title : "Flame Graph");
}

/* Whether a note makes the numbers doubtful: something was lost, damaged, or is not what was recorded. Other notes explain. */
static bool is_wrong(const struct note *note) {
    static const char *const wrong[] = {
        "cut",
        "cut-trace",
        "damaged-header-feature",
        "diff-unparsed",
        "files-differ",
        "files-replaced",
        "heap-damaged",
        "heap-lost",
        "heap-lost-frees",
        "interpreted-damaged",
        "interpreted-dropped",
        "interpreter-missed",
        "java-damaged",
        "jfr-truncated",
        "jitdumps-damaged",
        "kept-entries-damaged",
        "lost-samples",
        "no-call-graph",
        "no-stacks",
        "out-of-order",
        "recording-lost",
        "recording-lost-switches",
        "store-partial",
        "svg-unplaced",
        "syscalls-torn",
        "throttled",
        "torn-lines",
        "trace-dropped-frames",
        "vmlinux-differs",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (strcmp(note->kind->name, wrong[i]) == 0)
            return true;
    return false;
}

/* Warnings come first, preceded by their number. */
static void json_notes(struct buffer *json, const struct notes *notes) {
    struct buffer line = {0};
    uint64_t wrong = 0, written = 0;
    for (size_t i = 0; notes && i < notes->count; i++)
        wrong += is_wrong(&notes->items[i]);
    buffer_printf(json, "\"wrong\":%llu,\"notes\":[", (unsigned long long)wrong);
    for (size_t i = 0; notes && i < 2 * notes->count; i++) {
        const struct note *note = &notes->items[i % notes->count];
        if (is_wrong(note) != (i < notes->count))
            continue;
        line.count = 0;
        note_print(note, &line);
        if (written++)
            buffer_add_char(json, ',');
        buffer_add_json_text(json, buffer_text(&line));
    }
    buffer_add(json, TEXT("],"));
    buffer_release(&line);
}

/* Each a name, an object, a category, a colour and kinds, and where the page switches the colour of waits: all that frames of it share. */
static void json_places(struct html *h, const struct places *places) {
    struct buffer *json = &h->json;
    const struct strings *strings = h->flame->strings;
    struct colouring running = h->options->colouring, waiting = running;
    if (h->switches && running.palette == h->options->times[h->options->shown].palette) {
        running.palette = h->options->times[TIMES_RUNNING].palette;
        waiting.palette = h->options->times[TIMES_WAITING].palette;
    }
    buffer_add(json, TEXT("\"places\":["));
    for (size_t i = 0; i < places->nodes.count; i++) {
        const struct flame_node *node = &h->flame->nodes.items[places->nodes.items[i]];
        struct text name = strings_get(strings, node->name),
                    object = strings_get(strings, node->object);
        struct colour c = colour_of_frame(&running, name, object, node->kinds);
        struct text category = categories_of(h->options->categories, name, object, node->kinds);
        buffer_add(json, i ? TEXT(",[") : TEXT("["));
        json_shown(json, name_unmarked(name));
        buffer_add_char(json, ',');
        json_shown(json, object);
        buffer_add_char(json, ',');
        json_shown(json, category);
        buffer_printf(json, ",\"#%02x%02x%02x\",%u", c.red, c.green, c.blue, node->kinds);
        if (h->switches) {
            c = colour_of_frame(&waiting, name, object, node->kinds);
            buffer_printf(json, ",\"#%02x%02x%02x\"", c.red, c.green, c.blue);
        }
        buffer_add_char(json, ']');
    }
    buffer_add(json, TEXT("],"));
}

/* ---- out ---- */

static void write_base64(struct out *out, struct text t) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)t.data;
    char four[4];
    for (size_t i = 0; i < t.length; i += 3) {
        size_t left = t.length - i;
        uint32_t bits = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                        (left > 2 ? p[i + 2] : 0);
        for (int k = 0; k < 4; k++)
            four[k] = digits[bits >> (18 - 6 * k) & 63];
        if (left < 3)
            four[3] = '=';
        if (left < 2)
            four[2] = '=';
        out_write(out, four, 4);
    }
}

static void write_page(struct html *h, struct out *out) {
    struct buffer plain = {0}, packed = {0}, title = {0};
    uint32_t length = (uint32_t)h->json.count;
    buffer_add(&plain, (struct text){(const char *)&length, sizeof length});
    buffer_add(&plain, buffer_text(&h->json));
    buffer_add(&plain, buffer_text(&h->data));
    struct gzip *gzip = gzip_new();
    gzip_add(gzip, buffer_text(&plain), &packed);
    gzip_end(gzip, &packed);
    svg_add_shown(&title, html_title(h->options), false);
    out_text(out, page_head_text);
    out_text(out, TEXT("<title>"));
    out_text(out, buffer_text(&title));
    out_text(out, TEXT("</title>\n<style>\n"));
    out_text(out, page_style_text);
    out_text(out, TEXT("</style>\n"));
    out_text(out, page_body_text);
    out_text(out, TEXT("<script type=\"application/octet-stream\" id=\"profile\">"));
    write_base64(out, buffer_text(&packed));
    out_text(out, TEXT("</script>\n<script type=\"module\">\n"));
    out_text(out, page_script_text);
    out_text(out, TEXT("</script>\n</html>\n"));
    buffer_release(&plain);
    buffer_release(&packed);
    buffer_release(&title);
}

static bool html_encode(struct html *h, const struct flame_options *shape, struct error *error) {
    struct places places = {0};
    uint32_t *numbers = memory_zero(h->tree->series.count + 1, sizeof *numbers);
    uint64_t start;
    buffer_add_char(&h->json, '{');
    json_field(&h->json, "wick", TEXT(WICK_VERSION));
    json_field(&h->json, "title", html_title(h->options));
    json_field(&h->json, "subtitle", text_of(h->options->subtitle));
    json_notes(&h->json, h->options->notes);
    buffer_printf(&h->json, "\"together\":%d,", h->options->together);
    if (h->options->first)
        json_field(&h->json, "first", text_of(h->options->first));
    if (h->options->estimated)
        buffer_printf(&h->json, "\"estimated\":%llu,", (unsigned long long)h->options->deviation);
    if (h->switches)
        html_add_times(h);
    html_add_series(h, numbers);
    struct html_source source = {h->tree, h->naming, shape, h->left_out, numbers};
    bool fine = html_add_source(&h->json, &source, error);
    add_nodes(h, &places);
    json_places(h, &places);
    size_t cells = add_cells(h, numbers);
    size_t samples = add_samples(h, numbers, &start);
    buffer_printf(&h->json, "\"nodes\":%zu,\"cells\":%zu,\"samples\":%zu,\"start\":\"%llu\"}",
                  h->flame->nodes.count - 1, cells, samples, (unsigned long long)start);
    index_release(&places.index);
    vector_release(&places.nodes);
    free(numbers);
    return fine;
}

bool html_write(struct out *out, const struct tree *tree, const struct naming *naming,
                const struct html_options *options, struct error *error) {
    struct flame_options shape = {.max_depth = options->max_depth, .rules = options->rules};
    struct html h = {.tree = tree, .naming = naming, .options = options};
    struct walk_options walk = {.shape = &shape, .no_roots = true};
    h.walker = walker_new(tree, naming, &walk, error);
    if (!h.walker)
        return false;
    h.flame = h.walker->flame;
    h.left_out = memory_zero(tree->series.count, sizeof *h.left_out);
    h.switches = options->times && tree_knows(tree, options->shown) &&
                 tree_knows(tree, TIMES_BOTH) && tree_knows(tree, TIMES_RUNNING);
    if (options->times && !h.switches)
        leave_out(&h);
    bool fine = html_count(&h, error);
    if (fine && h.cells.count == 0)
        fine = stack_rules_fail(options->rules, "there are no stacks to draw", error);
    if (fine) {
        flame_order(h.walker->flame);
        h.order = memory_zero(h.flame->nodes.count, sizeof *h.order);
        fine = html_encode(&h, &shape, error);
        if (fine && h.json.count > UINT32_MAX)
            fine = error_set(error, ERROR_INPUT, "the names are too many for a page");
        else if (fine)
            write_page(&h, out);
    }
    free(h.order);
    free(h.left_out);
    vector_release(&h.cells);
    buffer_release(&h.json);
    buffer_release(&h.data);
    walker_free(h.walker);
    return fine;
}
