/*
 * System calls: raw_syscalls:sys_enter has the stack where a call began, and raw_syscalls:sys_exit of the same thread, without a stack, how it
 * ended. The time between them is the weight of the stack, which then ends in the call's name.
 *
 * A thread is in one call at a time, so an exit belongs to its thread's last enter, unless one of them was lost: then their numbers differ, or a
 * second enter comes first, or the kernel reports between them that a buffer was full on one of their CPUs. Such calls are dropped and counted, so
 * that the others have the right duration.
 */
#include <asm/unistd.h>
#include <stdlib.h>

#include "profile/pairs.h"
#include "profile/profile.h"

static const struct note_kind note_open = {
    "syscalls-unfinished", "# system call{|s} had not returned when the recording ended; dropped"};
static const struct note_kind note_torn = {
    "syscalls-torn", "# system call{ has no recorded start or|s have no recorded start or} end; "
                     "dropped: a larger --buffer, or -g fp, loses fewer"};

/* Both tracepoints begin with the common fields and the number; an exit's value follows. */
enum { NUMBER_AT = 8, VALUE_AT = 16, LAST_ERROR = 4095, FIRST_RESTART = 512, LAST_RESTART = 516 };

static const struct syscall_name {
    long number;
    const char *name;
} names[] = {
#include "syscall_names.h"
};

struct exit_seen {
    uint64_t time;
    uint64_t offset;
    int64_t number;
    int64_t value;
    int32_t tid;
    uint32_t cpu;
};

/* When a CPU's buffer was found to have been full. */
struct loss {
    uint64_t time;
    uint32_t cpu;
};

struct pairing {
    struct profile *profile;
    struct syscalls *syscalls;
    VECTOR(struct exit_seen) exits;
    VECTOR(struct loss) losses; /* by time */
    struct pairs calls;         /* by thread; their kind is the call's number */
    struct index row_index;
    uint64_t torn;
};

/* ---- rows ---- */

static void add_name(struct buffer *buffer, int64_t number) {
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].number == number) {
            buffer_add(buffer, text_of(names[i].name));
            return;
        }
    buffer_printf(buffer, "syscall_%lld", (long long)number);
}

static struct syscall_row *row_of(struct pairing *p, int64_t number) {
    uint64_t hash = hash_mix((uint64_t)number, 7);
    uint32_t id;
    for (struct probe probe = index_probe(&p->row_index, hash);
         (id = index_next(&p->row_index, &probe));)
        if (p->syscalls->rows.items[id - 1].number == number)
            return &p->syscalls->rows.items[id - 1];
    struct buffer name = {0};
    struct tree *tree = p->profile->tree;
    add_name(&name, number);
    struct location location = {.function = tree_name_function(tree, buffer_text(&name)),
                                .mode = MODE_KERNEL,
                                .kinds = KIND_KERNEL};
    struct syscall_row row = {.number = number,
                              .name = strings_get(tree->strings, location_name(tree, &location)),
                              .location = tree_add_location(tree, &location)};
    vector_push(&p->syscalls->rows, row);
    index_add(&p->row_index, hash, (uint32_t)p->syscalls->rows.count);
    buffer_release(&name);
    return &p->syscalls->rows.items[p->syscalls->rows.count - 1];
}

static int row_order(const void *a, const void *b) {
    const struct syscall_row *x = a, *y = b;
    if (x->total != y->total)
        return x->total > y->total ? -1 : 1;
    return text_compare(x->name, y->name);
}

/* ---- calls ---- */

/* The stack without the kernel's frames, which are the tracepoint's way in and the same for every call. */
static uint32_t user_part(const struct tree *tree, uint32_t node) {
    while (node && tree->locations.items[tree->nodes.items[node].location].mode == MODE_KERNEL)
        node = tree->nodes.items[node].parent;
    return node;
}

static bool is_error(int64_t value) {
    return value < 0 && value >= -LAST_ERROR &&
           !(value <= -FIRST_RESTART && value >= -LAST_RESTART);
}

/* Costs a search, and a step for each loss within the call on another CPU. */
static bool spans_loss(const struct pairing *p, const struct sample *begin,
                       const struct exit_seen *end) {
    size_t low =
        search_first(middle, 0, p->losses.count, p->losses.items[middle].time < begin->time);
    for (; low < p->losses.count && p->losses.items[low].time <= end->time; low++)
        if (p->losses.items[low].cpu == begin->cpu || p->losses.items[low].cpu == end->cpu)
            return true;
    return false;
}

static void count_call(struct pairing *p, const struct pair *call, const struct exit_seen *end) {
    struct tree *tree = p->profile->tree;
    struct syscall_row *row = row_of(p, call->kind);
    struct sample *sample = &tree->samples.items[call->sample];
    uint64_t took = end->time - sample->time;
    row->calls++;
    row->errors += is_error(end->value);
    row->total = saturating_add(row->total, took);
    row->worst = took > row->worst ? took : row->worst;
    sample->node = tree_add_node(tree, user_part(tree, sample->node), row->location);
    sample->weight = took;
    sample->file = 1; /* it is to be kept: see drop_unpaired() */
    tree_count(tree, sample->node, sample->series, 1, took);
}

static void end_call(struct pairing *p, const struct exit_seen *end) {
    struct pair call;
    /* A new thread returns from the call that made it, and what returns from a signal no longer knows its number. */
    if (!pairs_end(&p->calls, (uint32_t)end->tid, &call)) {
        p->torn += end->number >= 0 && end->value != 0;
        return;
    }
    if ((end->number >= 0 && end->number != call.kind) ||
        spans_loss(p, &p->profile->tree->samples.items[call.sample], end))
        p->torn++;
    else
        count_call(p, &call, end);
}

static void begin_call(struct pairing *p, size_t sample, int64_t number) {
    const struct tree *tree = p->profile->tree;
    const struct series *series = &tree->series.items[tree->samples.items[sample].series];
    struct pair *call;
    p->torn += pairs_begin(&p->calls, (uint32_t)tree->threads.items[series->thread].tid,
                           tree->samples.items[sample].time, &call, NULL);
    call->kind = number;
    call->sample = sample;
}

/* ---- reading ---- */

static bool read_number(const struct perfdata_sample *sample, size_t at, int64_t *number) {
    if (sample->raw_size < at + sizeof *number)
        return false;
    *number = (int64_t)load_u64(sample->raw + at);
    return true;
}

static uint32_t event_named(const struct perfdata *data, const char *name) {
    for (size_t i = 0; i < data->events.count; i++)
        if (text_equal(data->events.items[i].name, text_of(name)))
            return (uint32_t)i;
    return PERFDATA_NO_EVENT;
}

static int loss_order(const void *a, const void *b) {
    const struct loss *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

static int exit_order(const void *a, const void *b) {
    const struct exit_seen *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool read_loss(struct pairing *p, const struct perfdata_record *record,
                      struct error *error) {
    struct perfdata_trailer trailer;
    if (!perfdata_trailer(p->profile->data, record, &trailer, error))
        return false;
    vector_push(&p->losses, ((struct loss){trailer.time, trailer.cpu}));
    return true;
}

static bool read_exit(struct pairing *p, const struct perfdata_record *record, uint32_t wanted,
                      struct error *error) {
    const struct perfdata *data = p->profile->data;
    struct perfdata_sample sample;
    struct exit_seen seen = {.offset = record->offset};
    uint32_t event;
    if (!perfdata_sample_key(data, record, &event, &seen.time, error))
        return false;
    if (event != wanted || event == PERFDATA_NO_EVENT)
        return true;
    if (!perfdata_sample(data, record, &sample, error))
        return false;
    seen.tid = sample.tid;
    seen.cpu = sample.cpu;
    if (read_number(&sample, NUMBER_AT, &seen.number) &&
        read_number(&sample, VALUE_AT, &seen.value))
        vector_push(&p->exits, seen);
    return true;
}

/* One more walk through the file, for the ends of calls and for losses. */
static bool read_exits(struct pairing *p, struct error *error) {
    struct perfdata *data = p->profile->data;
    uint32_t wanted = event_named(data, SYSCALLS_EXIT);
    uint64_t offset = data->data_start;
    struct perfdata_record record;
    error->kind = ERROR_NONE;
    while (!context_cancelled(data->context) && perfdata_next(data, &offset, &record, error)) {
        bool lost = record.type == PERF_RECORD_LOST || record.type == PERF_RECORD_LOST_SAMPLES;
        if (lost && !read_loss(p, &record, error))
            return false;
        if (record.type == PERF_RECORD_SAMPLE && !read_exit(p, &record, wanted, error))
            return false;
    }
    if (p->exits.count)
        qsort(p->exits.items, p->exits.count, sizeof *p->exits.items, exit_order);
    if (p->losses.count)
        qsort(p->losses.items, p->losses.count, sizeof *p->losses.items, loss_order);
    return error->kind == ERROR_NONE;
}

static bool read_enter(struct pairing *p, size_t i, struct error *error) {
    struct perfdata *data = p->profile->data;
    uint64_t offset = p->profile->tree->samples.items[i].offset;
    struct perfdata_record record;
    struct perfdata_sample sample;
    int64_t number;
    if (!perfdata_next(data, &offset, &record, error) ||
        !perfdata_sample(data, &record, &sample, error))
        return false;
    if (read_number(&sample, NUMBER_AT, &number))
        begin_call(p, i, number);
    return true;
}

/* Beginnings and ends in order of time. At the same time a thread's end comes first: it can't begin another call before. */
static bool pair_all(struct pairing *p, struct error *error) {
    const struct tree *tree = p->profile->tree;
    size_t end = 0;
    for (size_t i = 0; i < tree->samples.count; i++) {
        for (; end < p->exits.count && p->exits.items[end].time <= tree->samples.items[i].time;
             end++)
            end_call(p, &p->exits.items[end]);
        if (!read_enter(p, i, error))
            return false;
    }
    for (; end < p->exits.count; end++)
        end_call(p, &p->exits.items[end]);
    return true;
}

static void drop_unpaired(struct tree *tree) {
    size_t kept = 0;
    for (size_t i = 0; i < tree->samples.count; i++) {
        if (!tree->samples.items[i].file)
            continue;
        tree->samples.items[kept] = tree->samples.items[i];
        tree->samples.items[kept++].file = 0;
    }
    tree->samples.count = kept;
}

/* Calls that never return are not missing an exit. */
static void note_unpaired(struct pairing *p) {
    uint64_t left = 0;
    size_t at = 0;
    for (const struct pair *call; (call = pairs_next_open(&p->calls, &at));)
        left += call->kind != __NR_exit && call->kind != __NR_exit_group;
    if (left)
        notes_add(&p->profile->tree->notes, &note_open, left, 0, NULL);
    if (p->torn)
        notes_add(&p->profile->tree->notes, &note_torn, p->torn, 0, NULL);
}

struct syscalls *profile_time_syscalls(struct profile *profile, struct error *error) {
    struct tree *tree = profile->tree;
    struct pairing p = {.profile = profile, .syscalls = memory_zero(1, sizeof *p.syscalls)};
    tree->cells.count = 1; /* what was counted were beginnings */
    index_release(&tree->cell_index);
    if (tree->events.count > 1)
        tree->events.items[1].unit = strings_add(tree->strings, TEXT("ns"));
    notes_drop(&tree->notes, "events-left-out"); /* the ends are read here */
    bool fine = read_exits(&p, error) && pair_all(&p, error);
    drop_unpaired(tree);
    note_unpaired(&p);
    if (p.syscalls->rows.count)
        qsort(p.syscalls->rows.items, p.syscalls->rows.count, sizeof *p.syscalls->rows.items,
              row_order);
    vector_release(&p.exits);
    vector_release(&p.losses);
    pairs_release(&p.calls);
    index_release(&p.row_index);
    if (fine)
        return p.syscalls;
    syscalls_free(p.syscalls);
    return NULL;
}

void syscalls_free(struct syscalls *syscalls) {
    if (syscalls)
        vector_release(&syscalls->rows);
    free(syscalls);
}
