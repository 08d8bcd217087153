/*
 * Answers about part of a profile: one thread, or a range of time. The flame of the last part is kept, because a page asks several questions about
 * each.
 */
#include "serve/serve.h"

#include <stdlib.h>

enum { BUCKETS_MOST = 4000, THREADS_MOST = 20000 };

struct part {
    struct text thread; /* its name; its data is NULL: all */
    uint64_t from, to;  /* nanoseconds from the first sample on */
    bool timed;
};

/* ---- threads ---- */

/* Set the name of each series' thread: a string, or 0 if the source has no threads. */
static void name_threads(struct chooser *c) {
    struct buffer name = {0};
    c->names = strings_new();
    c->thread_of = memory_zero(c->tree->series.count + 1, sizeof *c->thread_of);
    for (size_t i = 1; i < c->tree->series.count; i++) {
        name.count = 0;
        thread_name(c->tree, &c->tree->series.items[i], true, &name);
        c->thread_of[i] = name.count ? strings_add(c->names, buffer_text(&name)) : 0;
    }
    buffer_release(&name);
}

static void find_span(struct chooser *c) {
    for (size_t i = 0; i < c->tree->samples.count; i++) {
        const struct sample *sample = &c->tree->samples.items[i];
        if (!sample_has_time(sample))
            continue;
        c->first = !c->last || sample->time < c->first ? sample->time : c->first;
        c->last = sample->time > c->last ? sample->time : c->last;
    }
}

void chooser_begin(struct chooser *c) {
    name_threads(c);
    find_span(c);
}

static void forget_part(struct chooser *c) {
    if (c->flame)
        answers_end(&c->part);
    flame_free(c->flame);
    c->flame = NULL;
    c->key.count = 0;
}

void chooser_end(struct chooser *c) {
    forget_part(c);
    strings_free(c->names);
    free(c->thread_of);
    buffer_release(&c->key);
}

/* {"threads": [[name, weight], …], "nanoseconds": the time that the samples span, or 0} */
static int ask_threads(struct chooser *c, struct buffer *body) {
    size_t count = strings_count(c->names);
    uint64_t *sums = memory_zero(count + 1, sizeof *sums);
    for (size_t i = 1; i < c->tree->cells.count; i++) {
        const struct cell *cell = &c->tree->cells.items[i];
        uint32_t thread = c->thread_of[cell->series];
        sums[thread] = saturating_add(sums[thread], cell->weight);
    }
    buffer_add(body, TEXT("{\"threads\":["));
    for (uint32_t i = 1; i <= count && i <= THREADS_MOST; i++) {
        buffer_add(body, i > 1 ? TEXT(",[") : TEXT("["));
        buffer_add_json_text(body, strings_get(c->names, i));
        buffer_printf(body, ",%llu]", (unsigned long long)sums[i]);
    }
    buffer_printf(body, "],\"nanoseconds\":%llu}", (unsigned long long)(c->last - c->first));
    free(sums);
    return 200;
}

/* ---- what is asked for ---- */

static bool read_part(const struct target *question, struct part *part) {
    *part = (struct part){.thread = target_get(question, "thread")};
    part->timed = target_get(question, "since").data || target_get(question, "until").data;
    return target_number(question, "since", 0, UINT64_MAX, &part->from) &&
           target_number(question, "until", UINT64_MAX, UINT64_MAX, &part->to);
}

static bool has_thread(const struct chooser *c, const struct part *part, uint32_t series) {
    return !part->thread.data ||
           text_equal(strings_get(c->names, c->thread_of[series]), part->thread);
}

static bool has_time(const struct chooser *c, const struct part *part,
                     const struct sample *sample) {
    uint64_t time = sample->time - c->first;
    return sample_has_time(sample) && time >= part->from && time <= part->to;
}

/* Return, for each series, whether it belongs to the part. free() it. */
static bool *wanted_series(const struct chooser *c, const struct part *part) {
    bool *wanted = memory_zero(c->tree->series.count + 1, sizeof *wanted);
    for (uint32_t i = 1; i < c->tree->series.count; i++)
        wanted[i] = has_thread(c, part, i);
    return wanted;
}

/* Make the flame of a copy of the tree that has only the cells of the part. Nodes without cells make no frames. */
static struct flame *make_part(struct chooser *c, const struct part *part, struct error *error) {
    struct tree tree = *c->tree;
    bool *wanted = wanted_series(c, part);
    size_t most = part->timed ? tree.samples.count : tree.cells.count;
    size_t count = 1; /* the first cell is none */
    struct cell *cells = memory_zero(most + 1, sizeof *cells);
    for (size_t i = !part->timed; i < most; i++) {
        const struct sample *sample = part->timed ? &tree.samples.items[i] : NULL;
        struct cell cell = sample ? (struct cell){.node = sample->node,
                                                  .series = sample->series,
                                                  .samples = 1,
                                                  .weight = sample->weight}
                                  : tree.cells.items[i];
        if (wanted[cell.series] && (!sample || has_time(c, part, sample)))
            cells[count++] = cell;
    }
    tree.cells.items = cells;
    tree.cells.count = count;
    struct flame *flame = c->make(c->user, &tree, error);
    free(cells);
    free(wanted);
    return flame;
}

/* Return the answers about the part, from the last request if it was about the same part; NULL on failure. */
static struct answers *answers_of(struct chooser *c, const struct part *part, struct error *error) {
    struct buffer key = {0};
    buffer_printf(&key, "%llu %llu ", (unsigned long long)part->from, (unsigned long long)part->to);
    buffer_add(&key, part->thread.data ? part->thread : TEXT(""));
    bool same = c->flame && text_equal(buffer_text(&key), buffer_text(&c->key));
    if (!same) {
        forget_part(c);
        c->flame = make_part(c, part, error);
        c->part = (struct answers){.flame = c->flame,
                                   .kind = c->all->kind,
                                   .samples = c->all->samples,
                                   .notes = c->all->notes};
        if (c->flame && !answers_begin(&c->part, error)) {
            flame_free(c->flame);
            c->flame = NULL;
        }
        buffer_add(&c->key, buffer_text(&key));
    }
    buffer_release(&key);
    return c->flame ? &c->part : NULL;
}

/* {"sums": [weight in each range of time, …], "nanoseconds": the length of all ranges} */
static int ask_timeline(struct chooser *c, const struct target *question, const struct part *part,
                        struct buffer *body) {
    uint64_t buckets, length = c->last - c->first;
    if (!target_number(question, "count", 400, BUCKETS_MOST, &buckets) || !buckets)
        return answer_error(body, 400, "count is not a number, or too large");
    uint64_t *sums = memory_zero(buckets, sizeof *sums);
    bool *wanted = wanted_series(c, part);
    for (size_t i = 0; i < c->tree->samples.count; i++) {
        const struct sample *sample = &c->tree->samples.items[i];
        if (!wanted[sample->series] || !sample_has_time(sample))
            continue;
        double share = length ? (double)(sample->time - c->first) / (double)length : 0;
        uint64_t at = (uint64_t)(share * (double)buckets);
        at = at < buckets ? at : buckets - 1;
        sums[at] = saturating_add(sums[at], sample->weight);
    }
    buffer_add(body, TEXT("{\"sums\":["));
    for (uint64_t i = 0; i < buckets; i++)
        buffer_printf(body, i ? ",%llu" : "%llu", (unsigned long long)sums[i]);
    buffer_printf(body, "],\"nanoseconds\":%llu}", (unsigned long long)length);
    free(sums);
    free(wanted);
    return 200;
}

int chooser_ask(struct chooser *c, const struct target *question, struct buffer *body) {
    struct part part;
    struct error error;
    if (!read_part(question, &part))
        return answer_error(body, 400, "since or until is not a number");
    if (question->part_count == 1 && text_equal(question->parts[0], TEXT("threads")))
        return ask_threads(c, body);
    if (question->part_count == 1 && text_equal(question->parts[0], TEXT("timeline")))
        return ask_timeline(c, question, &part, body);
    if (!part.thread.data && !part.timed)
        return answers_ask(c->all, question, body);
    struct answers *answers = answers_of(c, &part, &error);
    return answers ? answers_ask(answers, question, body) : answer_error(body, 422, error.message);
}
