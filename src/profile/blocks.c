/*
 * Pair allocations with their frees.
 *
 * A recorded allocation of s bytes stands for `weight` bytes, so for weight/s allocations. This need not be a whole number; it is rounded up or
 * down by a digest of the sample, with the probability that keeps sums right.
 *
 * The peak is the greatest sum of bytes alive at once in all processes of the recording. What a process still has when it ends or executes another
 * program was alive at the end, and is gone from then on.
 */
#include "profile/block.h"

#include <math.h>
#include <stdlib.h>

enum { TEMPORARY_NS = 1000000 };

static const struct note_kind note_values = {
    "heap-values",
    "bytes allocated are shown; --value also knows allocations, live, live-count, peak, "
    "peak-count, temporary, temporary-count, freed and freed-count"};
static const struct note_kind note_no_stack = {
    "heap-no-stack", "# allocation{ has|s have} a stack that is missing in the recording; dropped"};
static const struct note_kind note_unfreed = {
    "heap-unfreed",
    "# block{ was|s were} allocated again without a recorded free; assumed freed then"};
static const struct note_kind note_unmatched = {
    "heap-unmatched", "# free{ has|s have} no recorded allocation; ignored"};

static const struct {
    const char *name, *unit;
} values[BLOCKS_VALUES] = {
    [BLOCKS_ALLOCATED] = {"allocated", "bytes"},
    [BLOCKS_ALLOCATIONS] = {"allocations", "count"},
    [BLOCKS_LIVE] = {"live", "bytes"},
    [BLOCKS_LIVE_COUNT] = {"live-count", "count"},
    [BLOCKS_PEAK] = {"peak", "bytes"},
    [BLOCKS_PEAK_COUNT] = {"peak-count", "count"},
    [BLOCKS_TEMPORARY] = {"temporary", "bytes"},
    [BLOCKS_TEMPORARY_COUNT] = {"temporary-count", "count"},
    [BLOCKS_FREED] = {"freed", "bytes"},
    [BLOCKS_FREED_COUNT] = {"freed-count", "count"},
};

const char *const heap_lifetimes[HEAP_LIFETIMES + 1] = {
    "below 1 µs",   "1 to 10 µs", "10 to 100 µs", "0.1 to 1 ms",    "1 to 10 ms",
    "10 to 100 ms", "0.1 to 1 s", "1 to 10 s",    "10 s or longer", "never freed"};

/* ---- pass 1 ---- */

void blocks_begin(struct reading *reading) {
    const struct profile_options *options = reading->options;
    const struct perfdata *data = reading->profile->data;
    bool as_it_is = options->all_events || options->quirks.events_as_recorded;
    bool found = false, every = false;
    uint64_t mean = 0;
    for (size_t i = 0; i < reading->events.count; i++) {
        if (reading->events.items[i].role != ROLE_ALLOC)
            continue;
        uint64_t needed =
            PERF_SAMPLE_ADDR | PERF_SAMPLE_PERIOD | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
        found |= (data->events.items[i].sample_type & needed) == needed;
        mean = data->events.items[i].sample_period;
        every |= data->events.items[i].sample_period == 1;
    }
    if (!found || as_it_is || reading->is_ongoing)
        return;
    struct blocks *blocks = reading->blocks = memory_zero(1, sizeof *blocks);
    blocks->reading = reading;
    blocks->every = every;
    reading->profile->heap = memory_zero(1, sizeof *reading->profile->heap);
    reading->profile->heap->mean = every ? 1 : mean;
    reading->profile->tree->is_heap = true;
    reading->profile->tree->is_estimated = reading->profile->heap->mean > 1;
    reading->filter.has_time = false; /* the allocation's own time decides, not that of its stack */
}

void blocks_free(struct blocks *blocks) {
    if (!blocks)
        return;
    vector_release(&blocks->list);
    vector_release(&blocks->maps);
    vector_release(&blocks->stacks);
    vector_release(&blocks->endings);
    vector_release(&blocks->children);
    vector_release(&blocks->valued);
    free(blocks->labelled);
    free(blocks);
}

static uint32_t count_of(const struct perfdata_sample *sample) {
    uint64_t bytes = sample->weight ? sample->weight : 1;
    uint64_t whole = sample->period / bytes, rest = sample->period % bytes;
    uint64_t drawn = digest_mix(sample->address, sample->time) >> 11; /* 53 bits */
    whole += (double)rest / (double)bytes > (double)drawn * 0x1p-53;
    return whole < UINT32_MAX ? (uint32_t)whole : UINT32_MAX;
}

/* Samples of large blocks have none. If the mean was doubled, later samples have more. */
static void note_deviation(struct tree *tree, const struct block *block) {
    if (block->chance >= 1)
        return;
    double deviation = ceil((double)block->weight * sqrt(1 - block->chance));
    if (deviation > (double)tree->deviation && deviation < 0x1p63)
        tree->deviation = (uint64_t)deviation;
}

bool blocks_sample(struct blocks *blocks, const struct perfdata_record *record, uint32_t event,
                   struct error *error) {
    enum role role = blocks->reading->events.items[event].role;
    struct perfdata_sample sample;
    bool maps = role == ROLE_MAP || role == ROLE_MAP_AGAIN || role == ROLE_UNMAP;
    if (role != ROLE_ALLOC && role != ROLE_AGAIN && role != ROLE_FREE && !maps)
        return true;
    if (!perfdata_sample(blocks->reading->profile->data, record, &sample, error))
        return false;
    struct block block = {.address = sample.address,
                          .time = sample.time,
                          .end = UINT64_MAX,
                          .offset = role == ROLE_AGAIN || role == ROLE_MAP_AGAIN ? sample.stream_id
                                                                                 : record->offset,
                          .weight = sample.period,
                          .count = role == ROLE_FREE || maps ? 0 : count_of(&sample),
                          .pid = sample.pid,
                          .tid = sample.tid,
                          .moved = role != ROLE_UNMAP && !sample.weight,
                          .chance = !maps && sample.period && sample.weight < sample.period
                                        ? (float)sample.weight / (float)sample.period
                                        : 1,
                          .role = (uint8_t)role};
    note_deviation(blocks->reading->profile->tree, &block);
    if (maps)
        vector_push(&blocks->maps, block);
    else
        vector_push(&blocks->list, block);
    if ((role == ROLE_ALLOC || role == ROLE_MAP) && sample.stream_id)
        vector_push(&blocks->stacks, ((struct numbered){sample.stream_id, record->offset}));
    return true;
}

bool blocks_record(struct blocks *blocks, const struct perfdata_record *record,
                   struct error *error) {
    struct perfdata *data = blocks->reading->profile->data;
    struct perfdata_trailer trailer;
    struct perfdata_task task;
    struct perfdata_comm comm;
    if (!perfdata_trailer(data, record, &trailer, error))
        return false;
    if (record->type == PERF_RECORD_COMM) {
        if (!perfdata_comm(data, record, &comm, error))
            return false;
        if (comm.exec && trailer.time)
            vector_push(&blocks->endings, ((struct program_end){trailer.time, comm.pid}));
        return true;
    }
    if (!perfdata_task(data, record, &task, error))
        return false;
    if (record->type == PERF_RECORD_EXIT && task.pid == task.tid && trailer.time)
        vector_push(&blocks->endings, ((struct program_end){trailer.time, task.pid}));
    if (record->type == PERF_RECORD_FORK && task.pid == task.tid && trailer.time)
        vector_push(&blocks->children, task.pid);
    return true;
}

/* ---- values ---- */

static bool values_check(const struct blocks *blocks, struct error *error) {
    const struct filter *filter = &blocks->reading->options->filter;
    for (size_t i = 0; i < filter->event_count; i++) {
        struct filter one = {.events = &filter->events[i], .event_count = 1};
        bool known = false;
        for (int k = 0; k < BLOCKS_VALUES && !known; k++)
            known = filter_event(&one, text_of(values[k].name));
        if (!known)
            return error_set(
                error, ERROR_USAGE,
                "--event %s: allocations have only the values allocated, allocations, live, "
                "live-count, peak, peak-count, temporary, temporary-count, freed and "
                "freed-count",
                filter->events[i]);
    }
    return true;
}

/* Whether a value is made: with --value, no other than that. */
static bool is_wanted(const struct blocks *blocks, int value) {
    const struct profile_options *options = blocks->reading->options;
    struct text name = text_of(values[value].name);
    bool known = false;
    for (int i = 0; options->value && i < BLOCKS_VALUES; i++)
        known |= text_equal(text_of(options->value), text_of(values[i].name));
    if (known && !text_equal(text_of(options->value), name))
        return false;
    return options->filter.event_count ? filter_event(&options->filter, name)
                                       : options->all_values || value == BLOCKS_ALLOCATED;
}

bool blocks_choose_values(struct blocks *blocks, struct error *error) {
    struct profile *profile = blocks->reading->profile;
    const struct filter *filter = &blocks->reading->options->filter;
    struct buffer names = {0};
    if (!values_check(blocks, error))
        return false;
    for (int i = 0; i < BLOCKS_VALUES; i++) {
        struct text name = text_of(values[i].name);
        blocks->wanted[i] = is_wanted(blocks, i);
        if (!blocks->wanted[i])
            continue;
        blocks->events[i] =
            tree_add_event(profile->tree, name, text_of(values[i].unit), EVENT_SOFTWARE);
        profile->tree->events.items[blocks->events[i]].chains = true;
        if (i != BLOCKS_ALLOCATED && !filter->event_count && !blocks->reading->options->value)
            profile->tree->events.items[blocks->events[i]].time = TIME_ASIDE;
        buffer_printf(&names, "%s%.*s", names.count ? ", " : "", TEXT_ARGS(name));
    }
    for (size_t i = 0; i < blocks->reading->events.count;
         i++) { /* for the samples that have stacks */
        struct event_seen *seen = &blocks->reading->events.items[i];
        seen->is_read = seen->role == ROLE_ALLOC || seen->role == ROLE_MAP;
        for (int k = BLOCKS_VALUES; k-- > 0;)
            seen->id = blocks->wanted[k] ? blocks->events[k] : seen->id;
    }
    if (!filter->event_count)
        notes_add(&profile->tree->notes, &note_values, 1, 0, NULL);
    profile->event_names = memory_copy(names.items, names.count);
    buffer_release(&names);
    return true;
}

/* ---- pairing ---- */

static int block_order(const void *a, const void *b) {
    const struct block *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->role == ROLE_FREE) - (y->role == ROLE_FREE);
}

static int ending_order(const void *a, const void *b) {
    const struct program_end *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

static int numbered_order(const void *a, const void *b) {
    const struct numbered *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int pid_order(const void *a, const void *b) {
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int valued_order(const void *a, const void *b) {
    const struct valued *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    if (x->lifetime != y->lifetime)
        return x->lifetime < y->lifetime ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

#define SORT(vector, order)                                                                        \
    ((vector).count ? qsort((vector).items, (vector).count, sizeof *(vector).items, order)         \
                    : (void)0)

uint64_t blocks_ending_after(const struct blocks *blocks, int32_t pid, uint64_t time) {
    struct program_end wanted = {.time = time, .pid = pid};
    size_t at = search_first(middle, 0, blocks->endings.count,
                             ending_order(&blocks->endings.items[middle], &wanted) < 0);
    bool found = at < blocks->endings.count && blocks->endings.items[at].pid == pid;
    return found ? blocks->endings.items[at].time : UINT64_MAX;
}

static bool is_child(const struct blocks *blocks, int32_t pid) {
    return blocks->children.count &&
           bsearch(&pid, blocks->children.items, blocks->children.count, sizeof pid, pid_order);
}

struct pairing {
    uint64_t unfreed, unmatched;
};

/* `next` is what happened at the same address after it, or NULL. */
static void block_end(const struct blocks *blocks, struct block *block, const struct block *next,
                      struct pairing *pairing) {
    uint64_t ending = blocks_ending_after(blocks, block->pid, block->time);
    block->end = ending;
    if (!next || next->time > ending)
        return;
    block->end = next->time;
    block->freed = true;
    pairing->unfreed += next->role != ROLE_FREE;
}

static void pair_all(struct blocks *blocks) {
    struct pairing pairing = {0};
    struct notes *notes = &blocks->reading->profile->tree->notes;
    SORT(blocks->list, block_order);
    SORT(blocks->endings, ending_order);
    SORT(blocks->children, pid_order);
    const struct block *previous = NULL;
    for (size_t i = 0; i < blocks->list.count; i++) {
        struct block *block = &blocks->list.items[i];
        const struct block *next = i + 1 < blocks->list.count ? block + 1 : NULL;
        bool same = next && next->pid == block->pid && next->address == block->address;
        bool follows = previous && previous->pid == block->pid &&
                       previous->address == block->address && previous->role != ROLE_FREE;
        if (block->role != ROLE_FREE)
            block_end(blocks, block, same ? next : NULL, &pairing);
        else if (!follows && !blocks->every && !is_child(blocks, block->pid))
            pairing.unmatched++;
        previous = block;
    }
    if (pairing.unfreed)
        notes_add(notes, &note_unfreed, pairing.unfreed, 0, NULL);
    if (pairing.unmatched)
        notes_add(notes, &note_unmatched, pairing.unmatched, 0, NULL);
}

/* Those whose stack was sent before get the sample that has it; those without any are left out. */
static void find_stacks(struct blocks *blocks) {
    uint64_t missing = 0;
    SORT(blocks->stacks, numbered_order);
    for (size_t i = 0; i < blocks->list.count; i++) {
        struct block *block = &blocks->list.items[i];
        if (block->role != ROLE_AGAIN)
            continue;
        size_t at = search_first(middle, 0, blocks->stacks.count,
                                 blocks->stacks.items[middle].number < block->offset);
        if (at < blocks->stacks.count && blocks->stacks.items[at].number == block->offset) {
            block->offset = blocks->stacks.items[at].offset;
        } else {
            block->role = ROLE_NONE;
            missing++;
        }
    }
    if (missing)
        notes_add(&blocks->reading->profile->tree->notes, &note_no_stack, missing, 0, NULL);
}

/* ---- the peak ---- */

struct step {
    uint64_t time;
    uint64_t weight;
    bool ends;
};

/* What ends goes first: at that moment it is free. */
static int step_order(const void *a, const void *b) {
    const struct step *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (int)y->ends - (int)x->ends;
}

static void find_peak(struct blocks *blocks) {
    struct heap_facts *facts = blocks->reading->profile->heap;
    VECTOR(struct step) steps = {0};
    uint64_t sum = 0, most = 0;
    for (size_t i = 0; i < blocks->list.count; i++) {
        const struct block *block = &blocks->list.items[i];
        if (block->role == ROLE_FREE || block->role == ROLE_NONE)
            continue;
        vector_push(&steps, ((struct step){block->time, block->weight, false}));
        if (block->end != UINT64_MAX)
            vector_push(&steps, ((struct step){block->end, block->weight, true}));
    }
    SORT(steps, step_order);
    facts->first = steps.count ? steps.items[0].time : 0;
    facts->last = steps.count ? steps.items[steps.count - 1].time : 0;
    for (size_t i = 0; i < steps.count; i++) {
        sum += steps.items[i].ends ? -steps.items[i].weight : steps.items[i].weight;
        if (!steps.items[i].ends && sum > most) {
            most = sum;
            facts->peak_time = steps.items[i].time;
        }
    }
    vector_release(&steps);
}

/* ---- what comes out ---- */

static void sum_add(struct heap_sum *sum, const struct block *block) {
    sum->bytes = saturating_add(sum->bytes, block->weight);
    sum->count += block->count;
    sum->samples++;
    sum->variance += (double)block->weight * (double)block->weight * (1 - block->chance);
    if (block->chance > 0) /* a recording may claim anything */
        sum->count_variance += (1 - block->chance) / block->chance / block->chance;
}

static bool is_in_time(const struct blocks *blocks, uint64_t time) {
    const struct filter *filter = &blocks->reading->options->filter;
    return !filter->has_time || (time >= filter->time_from && time <= filter->time_to);
}

static uint8_t lifetime_of(const struct block *block) {
    uint64_t limit = 1000;
    uint8_t at = 0;
    for (; at + 1 < HEAP_LIFETIMES && block->end - block->time >= limit; at++)
        limit *= 10;
    return block->freed ? at : HEAP_LIFETIMES;
}

/* Every set of labels once with each lifetime; made before samples are read by several threads. */
static void label_lifetimes(struct blocks *blocks) {
    struct tree *tree = blocks->reading->profile->tree;
    size_t count = tree->label_sets.count ? tree->label_sets.count : 1; /* with the empty set */
    if (!blocks->reading->options->lifetimes)
        return;
    blocks->labelled = memory_zero(count, sizeof *blocks->labelled);
    blocks->label_sets = count;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k <= HEAP_LIFETIMES; k++)
            blocks->labelled[i][k] =
                tree_set_label(tree, (uint32_t)i, TEXT("lifetime"), text_of(heap_lifetimes[k]));
}

uint32_t blocks_labels(const struct blocks *blocks, uint32_t labels, uint8_t lifetime) {
    return labels < blocks->label_sets ? blocks->labelled[labels][lifetime] : labels;
}

static void add_values(struct blocks *blocks, const struct block *block) {
    struct heap_facts *facts = blocks->reading->profile->heap;
    uint64_t time = facts->peak_time;
    bool is_in = is_in_time(blocks, block->time);
    bool peak = block->time <= time && block->end > time;
    bool temporary = block->freed && block->end - block->time < TEMPORARY_NS;
    const bool counts[BLOCKS_VALUES / 2] = {is_in, is_in && !block->freed, is_in && peak,
                                            is_in && temporary,
                                            block->freed && is_in_time(blocks, block->end)};
    struct heap_sum *sums[] = {&facts->allocated, &facts->live, &facts->peak, &facts->temporary};
    uint8_t lifetime = lifetime_of(block);
    for (size_t i = 0; i < COUNT_OF(sums); i++)
        if (counts[i])
            sum_add(sums[i], block);
    if (is_in && block->freed)
        sum_add(&facts->lifetimes[lifetime], block);
    for (int i = 0; i < BLOCKS_VALUES; i++)
        if (blocks->wanted[i] && counts[i / 2])
            vector_push(&blocks->valued,
                        ((struct valued){.offset = block->offset,
                                         .time = i < BLOCKS_FREED ? block->time : block->end,
                                         .weight = i % 2 ? block->count : block->weight,
                                         .samples = 1,
                                         .event = blocks->events[i],
                                         .lifetime = blocks->labelled ? lifetime : 0}));
}

/* Those of one stack and value become one, unless the times of all are asked for. */
static void join_values(struct blocks *blocks) {
    struct valued *all = blocks->valued.items;
    size_t kept = 0;
    SORT(blocks->valued, valued_order);
    for (size_t i = 0; i < blocks->valued.count; i++) {
        struct valued *last = kept ? &all[kept - 1] : NULL;
        bool joins = last && last->offset == all[i].offset && last->event == all[i].event &&
                     last->lifetime == all[i].lifetime &&
                     !blocks->reading->profile->tree->keep_samples;
        if (!joins) {
            all[kept++] = all[i];
            continue;
        }
        last->samples += all[i].samples;
        blocks->reading->profile->tree->overflow |=
            __builtin_add_overflow(last->weight, all[i].weight, &last->weight);
    }
    blocks->valued.count = kept;
}

void blocks_pair(struct blocks *blocks) {
    pair_all(blocks);
    blocks_pair_mappings(blocks);
    find_stacks(blocks);
    find_peak(blocks);
    label_lifetimes(blocks);
    for (size_t i = 0; i < blocks->list.count; i++) {
        const struct block *block = &blocks->list.items[i];
        if (block->role != ROLE_FREE && block->role != ROLE_NONE)
            add_values(blocks, block);
    }
    vector_release(&blocks->list);
    join_values(blocks);
}

const struct valued *blocks_find(const struct blocks *blocks, uint64_t offset, size_t *count) {
    size_t low = first_from(blocks->valued.items, blocks->valued.count,
                            sizeof *blocks->valued.items, offset);
    for (*count = 0; low + *count < blocks->valued.count &&
                     blocks->valued.items[low + *count].offset == offset;)
        ++*count;
    return *count ? &blocks->valued.items[low] : NULL;
}

bool blocks_have(const struct blocks *blocks, uint64_t offset) {
    size_t count;
    blocks_find(blocks, offset, &count);
    return count;
}
