/*
 * Dimensions that series have only on request: the whole process, and the CPU, which is a property of single samples.
 */
#include "tree/tree.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- threads ---- */

static uint32_t cut_comm(struct tree *tree, uint32_t string) {
    enum { COMM_MOST = 1024 };
    struct text comm = strings_get(tree->strings, string);
    size_t length = COMM_MOST;
    if (comm.length <= COMM_MOST)
        return string;
    while (length && ((unsigned char)comm.data[length] & 0xc0) == 0x80) /* inside a character */
        length--;
    return strings_add(tree->strings, text_upto(comm, length));
}

void tree_cut_comms(struct tree *tree) {
    for (size_t i = 1; i < tree->series.count; i++)
        tree->series.items[i].comm = cut_comm(tree, tree->series.items[i].comm);
}

/* ---- processes ---- */

/* What some threads of a process are called, and how often that was sampled. */
struct claim {
    int32_t pid;
    bool is_other; /* not its first thread */
    struct text comm;
    uint32_t string;
    uint64_t samples;
};

static int claim_order(const void *a, const void *b) {
    const struct claim *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->is_other != y->is_other)
        return x->is_other - y->is_other;
    return text_compare(x->comm, y->comm);
}

static uint64_t *samples_of_series(const struct tree *tree) {
    uint64_t *samples = memory_zero(tree->series.count, sizeof *samples);
    for (size_t i = 1; i < tree->cells.count; i++)
        samples[tree->cells.items[i].series] =
            saturating_add(samples[tree->cells.items[i].series], tree->cells.items[i].samples);
    return samples;
}

static uint32_t add_number_name(struct tree *tree, int32_t pid) {
    struct buffer name = {0};
    buffer_printf(&name, ":%d", pid);
    uint32_t string = strings_add(tree->strings, buffer_text(&name));
    buffer_release(&name);
    return string;
}

/* Of the claims [first, end) on one process, in order, the largest: of its first thread, if there is any. Runs once for each process: one may
   have as many claims as there are threads. */
static uint32_t best_claim(const struct claim *claims, size_t first, size_t end) {
    uint32_t best = 0;
    uint64_t most = 0;
    for (size_t i = first; i < end && claims[i].is_other == claims[first].is_other;) {
        uint32_t string = claims[i].string;
        uint64_t sum = 0;
        for (;
             i < end && claims[i].string == string && claims[i].is_other == claims[first].is_other;
             i++)
            sum = saturating_add(sum, claims[i].samples);
        if (!best || sum > most)
            best = string, most = sum;
    }
    return best;
}

/* Keep one claim for each process, in the same order, and return how many there are. */
static size_t keep_best_claims(struct claim *claims, size_t count) {
    size_t kept = 0;
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && claims[end].pid == claims[first].pid;)
            end++;
        struct claim best = {.pid = claims[first].pid, .string = best_claim(claims, first, end)};
        claims[kept++] = best;
    }
    return kept;
}

void tree_name_processes(struct tree *tree) {
    VECTOR(struct claim) claims = {0};
    uint64_t *samples = samples_of_series(tree);
    for (size_t i = 1; i < tree->series.count; i++) {
        const struct series *series = &tree->series.items[i];
        const struct thread *thread = &tree->threads.items[series->thread];
        if (series->thread && series->comm && thread->pid >= 0 && samples[i])
            vector_push(&claims, ((struct claim){thread->pid, thread->tid != thread->pid,
                                                 strings_get(tree->strings, series->comm),
                                                 series->comm, samples[i]}));
    }
    free(samples);
    if (claims.count)
        qsort(claims.items, claims.count, sizeof *claims.items, claim_order);
    size_t processes = keep_best_claims(claims.items, claims.count);
    for (size_t i = 1; i < tree->threads.count; i++) {
        struct thread *thread = &tree->threads.items[i];
        size_t at = search_first(middle, 0, processes, claims.items[middle].pid < thread->pid);
        if (thread->pid >= 0)
            thread->process = at < processes && claims.items[at].pid == thread->pid
                                  ? claims.items[at].string
                                  : add_number_name(tree, thread->pid);
    }
    vector_release(&claims);
}

/* ---- CPUs ---- */

struct on_cpu {
    uint32_t series, cpu;
    uint32_t labelled; /* the series with the label */
};

struct cpus {
    struct tree *tree;
    VECTOR(struct on_cpu) known;
    struct index index;
};

static uint32_t label_cpu(struct cpus *cpus, uint32_t id, uint32_t cpu) {
    uint64_t hash = hash_mix((uint64_t)id << 32 | cpu, 3);
    uint32_t number;
    for (struct probe p = index_probe(&cpus->index, hash);
         (number = index_next(&cpus->index, &p));) {
        const struct on_cpu *known = &cpus->known.items[number - 1];
        if (known->series == id && known->cpu == cpu)
            return known->labelled;
    }
    struct series series = cpus->tree->series.items[id];
    char text[16];
    int length = snprintf(text, sizeof text, "%u", cpu);
    series.labels =
        tree_set_label(cpus->tree, series.labels, TEXT("cpu"), (struct text){text, (size_t)length});
    struct on_cpu made = {id, cpu, tree_add_series(cpus->tree, &series)};
    vector_push(&cpus->known, made);
    index_add(&cpus->index, hash, (uint32_t)cpus->known.count);
    return made.labelled;
}

/* Of text some sources keep only samples that have a time. */
static bool samples_are_all(const struct tree *tree) {
    uint64_t cells = 0, samples = 0;
    for (size_t i = 1; i < tree->cells.count; i++)
        cells = saturating_add(cells, tree->cells.items[i].weight);
    for (size_t i = 0; i < tree->samples.count; i++)
        samples = saturating_add(samples, tree->samples.items[i].weight);
    return tree->samples.count && cells == samples;
}

/* Whether a series counts samples, unlike CPU time that no sample covers. */
static bool is_a_sample(const struct tree *tree, const struct series *series) {
    return tree_event(tree, series->event)->time != TIME_WAITED || series->state != STATE_ON;
}

bool tree_label_cpus(struct tree *tree) {
    struct cpus cpus = {.tree = tree};
    if (!samples_are_all(tree))
        return false;
    tree->cells.count = 1; /* counted anew */
    index_release(&tree->cell_index);
    for (size_t i = 0; i < tree->samples.count; i++) {
        struct sample *sample = &tree->samples.items[i];
        if (sample->cpu != UINT32_MAX)
            sample->series = label_cpu(&cpus, sample->series, sample->cpu);
        tree_count(tree, sample->node, sample->series,
                   is_a_sample(tree, &tree->series.items[sample->series]), sample->weight);
    }
    vector_release(&cpus.known);
    index_release(&cpus.index);
    return true;
}
