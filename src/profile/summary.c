/*
 * Summarize a perf.data: count records by type, and samples by thread, by address and by what they contain. Walks the file once and resolves
 * nothing.
 */
#include <stdlib.h>

#include "profile/profile.h"
#include "unwind/unwind.h"

static void count(struct summary_counts *counts, uint64_t a, uint64_t b, uint64_t weight) {
    uint64_t hash = hash_mix(a, b);
    uint32_t id = 0;
    for (struct probe p = index_probe(&counts->index, hash); (id = index_next(&counts->index, &p));)
        if (counts->rows.items[id - 1].key[0] == a && counts->rows.items[id - 1].key[1] == b)
            break;
    if (!id) {
        vector_push(&counts->rows, ((struct summary_count){{a, b}, 0, 0}));
        id = (uint32_t)counts->rows.count;
        index_add(&counts->index, hash, id);
    }
    struct summary_count *row = &counts->rows.items[id - 1];
    row->samples++;
    row->weight = saturating_add(row->weight, weight);
}

/* The bit of the instruction pointer among the user's registers. */
static unsigned ip_bit(const struct perfdata *data) {
    return unwind_arch_of(data->arch) == UNWIND_AARCH64 ? 32 : 8;
}

static void count_chain(struct summary *s, const struct perfdata_sample *sample, uint64_t weight) {
    uint64_t callee = 0, leaf = sample->ip;
    bool first = true;
    for (uint64_t i = 0; i < sample->chain_count; i++) {
        uint64_t address = load_u64(sample->chain + 8 * i);
        if (address >= CONTEXT_MARKERS_FROM || address == CONTEXT_USER_DEFERRED)
            continue;
        if (first)
            leaf = address;
        else
            count(&s->edges, address, callee, weight);
        callee = address;
        first = false;
    }
    if (leaf || !first)
        count(&s->leaves, leaf, 0, weight);
}

static bool count_sample(struct summary *s, const struct perfdata *data,
                         const struct perfdata_record *record, struct error *error) {
    struct perfdata_sample sample;
    uint32_t event;
    uint64_t time;
    s->samples++;
    if (!perfdata_sample_key(data, record, &event, &time, error))
        return false;
    if (event == PERFDATA_NO_EVENT) {
        s->unknown++;
        return true;
    }
    if (!perfdata_sample(data, record, &sample, error))
        return false;
    uint64_t weight = sample.period ? sample.period : 1;
    s->weight = saturating_add(s->weight, weight);
    if (sample.mode < SUMMARY_MODES) {
        s->modes[sample.mode].samples++;
        s->modes[sample.mode].weight = saturating_add(s->modes[sample.mode].weight, weight);
    }
    if (sample.tid >= 0)
        count(&s->threads, (uint32_t)sample.pid, (uint32_t)sample.tid, weight);
    count_chain(s, &sample, weight);
    s->stack_samples += sample.stack != NULL;
    s->stack_bytes += sample.stack ? sample.stack_dumped : 0;
    s->stack_dynamic_bytes += sample.stack ? sample.stack_size : 0;
    s->register_samples += sample.regs_user != NULL;
    s->register_ip_samples +=
        sample.regs_user && data->events.items[sample.event].regs_user >> ip_bit(data) & 1;
    return true;
}

static bool count_record(struct summary *s, const struct perfdata *data,
                         const struct perfdata_record *record, struct error *error) {
    uint64_t lost = 0;
    s->records++;
    count(&s->types, record->type, 0, 1);
    if (record->type == PERF_RECORD_SAMPLE)
        return count_sample(s, data, record, error);
    if (record->type != PERF_RECORD_LOST && record->type != PERF_RECORD_LOST_SAMPLES)
        return true;
    s->lost_records++;
    bool fine = perfdata_lost(data, record, &lost, error);
    s->lost = saturating_add(s->lost, lost);
    return fine;
}

static int order_rows(const void *a, const void *b) {
    const struct summary_count *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    for (int i = 0; i < 2; i++)
        if (x->key[i] != y->key[i])
            return x->key[i] < y->key[i] ? -1 : 1;
    return 0;
}

static void sort(struct summary_counts *counts) {
    if (counts->rows.count)
        qsort(counts->rows.items, counts->rows.count, sizeof *counts->rows.items, order_rows);
}

bool summary_read(struct summary *summary, struct perfdata *data, struct error *error) {
    struct perfdata_record record;
    struct error unseen = {0};
    error = error ? error : &unseen;
    *summary = (struct summary){0};
    *error = (struct error){0};
    uint64_t offset = data->data_start;
    bool fine = true;
    while (fine && perfdata_next(data, &offset, &record, error))
        fine = count_record(summary, data, &record, error);
    sort(&summary->types);
    sort(&summary->threads);
    sort(&summary->leaves);
    sort(&summary->edges);
    return fine && error->kind == ERROR_NONE;
}

static void counts_release(struct summary_counts *counts) {
    vector_release(&counts->rows);
    index_release(&counts->index);
}

void summary_release(struct summary *summary) {
    counts_release(&summary->types);
    counts_release(&summary->threads);
    counts_release(&summary->leaves);
    counts_release(&summary->edges);
}
