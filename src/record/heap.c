/*
 * Allocations in the recording. Records that the library inside the target writes into its rings (heap), or that a BPF program catches in a
 * running process (heap_attach.c), become samples of events that no kernel has:
 *
 *     heap-alloc   an allocation with registers and stack: address, period (the bytes it stands for), weight (the bytes requested), stream id
 *                  (by which heap-again refers to the stack; 0: never)
 *     heap-again   the same without a stack: its stack is that of the heap-alloc with this stream id
 *     heap-free    an address whose allocation was recorded
 *
 * and if mappings are recorded, too:
 *
 *     heap-map, heap-map-again   a mapping, as an allocation; its weight is 0 if mremap() made it from the thread's last heap-unmap
 *     heap-unmap                 a range that is no longer mapped: address, period (its bytes)
 *
 * Mappings, names and forks come from an event without samples, as in any recording, so stacks are unwound and named as usual.
 */
#include "record/internal.h"

#include <stdlib.h>
#include <unistd.h>

#include "record/heap_catch.h"

static const struct note_kind note_lost = {
    "heap-lost", "# allocation{ was|s were} lost because the buffer was full; fewer were sampled "
                 "from then on: a larger --every avoids it"};
static const struct note_kind note_python = {
    "heap-python", "# Python process{ keeps|es keep} objects of up to 512 bytes in arenas, where "
                   "malloc does not see them: PYTHONMALLOC=malloc shows them"};
static const struct note_kind note_node = {
    "heap-node", "# Node.js process{ keeps|es keep} JavaScript objects in V8's own heap, where "
                 "malloc does not see them: node --heap-prof shows them"};
static const struct note_kind note_java = {
    "heap-java",
    "# Java virtual machine{ keeps|s keep} Java's objects in a heap of {its|their} own, "
    "where malloc does not see them: use a Java profiler, or jcmd PID "
    "GC.class_histogram"};
static const struct note_kind note_go = {
    "heap-go",
    "# Go program{ keeps|s keep} Go's objects in a heap of {its|their} own, where malloc "
    "does not see them: use go tool pprof"};
static const struct note_kind note_lost_frees = {
    "heap-lost-frees", "# free{ was|s were} lost: {its memory looks|their memory looks} alive"};
static const struct note_kind note_damaged = {
    "heap-damaged", "# time{|s} a ring buffer of the target was invalid and was emptied"};

enum { HEAP_IDS = 0x77696368, PENDING_MOST = 256 << 10 };
enum { ALLOC, AGAIN, FREE, MAP, MAP_AGAIN, UNMAP, EVENTS };

static const char *const names[EVENTS] = {"heap-alloc", "heap-again",     "heap-free",
                                          "heap-map",   "heap-map-again", "heap-unmap"};

static bool has_stack(int which) {
    return which == ALLOC || which == MAP;
}

static bool is_free(int which) {
    return which == FREE || which == UNMAP;
}

static int event_of(enum heap_kind kind) {
    static const int events[] = {[HEAP_ALLOC] = ALLOC, [HEAP_AGAIN] = AGAIN,
                                 [HEAP_FREE] = FREE,   [HEAP_MAP] = MAP,
                                 [HEAP_REMAP] = MAP,   [HEAP_MAP_AGAIN] = MAP_AGAIN,
                                 [HEAP_UNMAP] = UNMAP, [HEAP_REMAP_AGAIN] = MAP_AGAIN};
    return events[kind];
}

/* Header, identifier, ip, pid and tid, time, address, stream id, cpu, period, number of frames; registers and their kind; the stack with two
   sizes; weight. */
enum { SAMPLE_WORDS = 10 + 1 + 64 + 2 + HEAP_STACK_MOST / 8 + 1 };

struct heap_recording {
    struct heap *heap;         /* NULL: it is attached to processes … */
    struct attached *attached; /* … by this */
    size_t first;              /* of its events */
    uint64_t allocations, frees;
    int wait; /* milliseconds until the next turn */
    struct buffer
        pending; /* samples for the file: a write for each would cost more than everything else */
    size_t count;
    uint64_t words[SAMPLE_WORDS];
};

/* ---- events ---- */

static void add_event(struct recording *r, int which) {
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_BPF_OUTPUT,
        .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                       PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU,
        .sample_period = r->options->heap_every,
        .sample_id_all = 1,
    };
    if (!is_free(which))
        attr.sample_type |= PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT;
    if (which == UNMAP)
        attr.sample_type |= PERF_SAMPLE_PERIOD;
    if (has_stack(which)) {
        attr.sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr.sample_regs_user = USER_REGISTERS;
        attr.sample_stack_user = HEAP_STACK_MOST;
        attr.exclude_callchain_user = 1;
    }
    struct asked_event asked = {
        .attr = attr, .role = ROLE_MADE, .name = memory_copy(names[which], strlen(names[which]))};
    vector_push(&r->events, asked);
    vector_push(&r->events.items[r->events.count - 1].ids,
                ((uint64_t)HEAP_IDS << 32) + r->events.count);
}

static bool target_is_seen(const struct recording *r, struct error *error) {
    char *path = launch_find(r->options->command[0]);
    const char *why = path ? heap_refuses(path) : NULL;
    free(path);
    return !why || error_set(error, ERROR_DENIED, "%s: its allocations can't be recorded: %s",
                             r->options->command[0], why);
}

bool heap_choose_events(struct recording *r, struct error *error) {
    struct heap_options options = {.mean = r->options->heap_every, .maps = r->options->heap_maps};
    if (r->options->system_wide || r->options->tid_count)
        return error_set(error, ERROR_USAGE,
                         "--heap needs a program, -- COMMAND, or running processes, -p PID");
    if (r->options->command && !target_is_seen(r, error))
        return false;
    struct heap_recording *h = r->heap = memory_zero(1, sizeof *h);
    if (r->options->command ? !(h->heap = heap_open(&options, error))
                            : !(h->attached = attached_open(r, error)))
        return false;
    if (h->heap)
        r->sink.programs = programs_new(&r->sink);
    recording_add_side_event(r);
    r->events.items[0].attr.exclude_kernel =
        1; /* no stack is recorded there, so skip its symbols */
    h->first = r->events.count;
    r->sink.no_rounds = true;
    for (int i = 0; i < (r->options->heap_maps ? EVENTS : MAP); i++)
        add_event(r, i);
    return true;
}

void heap_child(const struct recording *r) {
    if (r->heap && r->heap->heap)
        heap_prepare_child(r->heap->heap);
}

void heap_release(struct recording *r) {
    if (!r->heap)
        return;
    heap_close(r->heap->heap);
    attached_close(r->heap->attached);
    buffer_release(&r->heap->pending);
    free(r->heap);
    r->heap = NULL;
}

/* ---- samples ---- */

static void put(struct heap_recording *h, uint64_t word) {
    h->words[h->count++] = word;
}

/* Write them in perf's order; registers that unwinding does not need were not recorded. */
static void put_registers(struct heap_recording *h, const struct heap_record *record) {
    put(h, PERF_SAMPLE_REGS_ABI_64);
#if defined(__aarch64__)
    for (int i = 0; i < 19; i++)
        put(h, 0);
    for (int i = 0; i < 11; i++)
        put(h, record->registers[HEAP_X19 + i]);
    put(h, 0); /* the link register: the hook has saved it */
    put(h, record->registers[HEAP_SP]);
    put(h, record->registers[HEAP_IP]);
#else
    static const signed char places[] = {
        -1, HEAP_BX, -1, -1, -1, -1, HEAP_BP,  HEAP_SP,  HEAP_IP,  -1,
        -1, -1,      -1, -1, -1, -1, HEAP_R12, HEAP_R13, HEAP_R14, HEAP_R15};
    for (size_t i = 0; i < COUNT_OF(places); i++)
        put(h, places[i] < 0 ? 0 : record->registers[places[i]]);
#endif
}

static void put_stack(struct heap_recording *h, const uint8_t *stack, uint64_t size) {
    put(h, size);
    memcpy(&h->words[h->count], stack, size);
    h->count += size / 8;
    if (size)
        put(h, size);
}

static bool flush(struct recording *r, struct error *error) {
    struct buffer *pending = &r->heap->pending;
    bool fine = !pending->count ||
                sink_records(&r->sink, (const uint8_t *)pending->items, pending->count, error);
    pending->count = 0;
    return fine;
}

static bool put_sample(void *context, const struct heap_record *record, const uint8_t *stack,
                       struct error *error) {
    struct recording *r = context;
    struct heap_recording *h = r->heap;
    int which = event_of(record->kind);
    bool moved = record->kind == HEAP_REMAP || record->kind == HEAP_REMAP_AGAIN;
    if (which >= MAP && !r->options->heap_maps)
        return true; /* mappings not requested */
    h->count = 1;
    put(h, r->events.items[h->first + (size_t)which].ids.items[0]);
    put(h, has_stack(which) ? record->registers[HEAP_IP] : 0);
    put(h, (uint64_t)(uint32_t)record->tid << 32 | (uint32_t)record->pid);
    put(h, record->time);
    put(h, record->address);
    if (!is_free(which))
        put(h, record->stack);
    put(h, record->cpu);
    if (which == UNMAP)
        put(h, record->bytes);
    if (!is_free(which))
        put(h, heap_weight(record->bytes, record->mean));
    if (has_stack(which)) {
        put(h, 0);
        put_registers(h, record);
        put_stack(h, stack, record->stack_size);
    }
    if (!is_free(which))
        put(h, moved ? 0 : record->bytes);
    *(is_free(which) ? &h->frees : &h->allocations) += 1;
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE,
                                       .misc = PERF_RECORD_MISC_USER,
                                       .size = (uint16_t)(h->count * sizeof *h->words)};
    memcpy(h->words, &header, sizeof header);
    buffer_add(&h->pending, (struct text){(const char *)h->words, header.size});
    return h->pending.count < PENDING_MOST || flush(r, error);
}

/* Choose the wait so that rings are found about a quarter full: more turns cost CPU time, fewer risk a full ring. A ring that is half full ends
   the wait. */
static int next_wait(int wait, unsigned busy) {
    enum { SHORTEST = 1, LONGEST = 20, WANTED = 25 };
    if (busy > WANTED)
        wait = wait * WANTED / (int)busy;
    else if (busy < WANTED / 2)
        wait *= 2;
    return wait < SHORTEST ? SHORTEST : wait > LONGEST ? LONGEST : wait;
}

bool heap_turn(struct recording *r, struct error *error) {
    if (!r->heap)
        return true;
    struct heap_recording *h = r->heap;
    unsigned busy = 0;
    if (h->heap)
        heap_answer(h->heap);
    bool fine = h->heap ? heap_drain(h->heap, put_sample, r, &busy, error)
                        : attached_drain(h->attached, r, put_sample, &busy, error);
    h->wait = next_wait(h->wait, busy);
    return fine && flush(r, error);
}

int heap_poll_descriptor(const struct recording *r, int which) {
    if (r->heap->attached)
        return which ? -1 : attached_descriptor(r->heap->attached);
    return which ? heap_bell(r->heap->heap) : heap_descriptor(r->heap->heap);
}

int heap_patience(const struct recording *r, int milliseconds) {
    return r->heap && r->heap->wait < milliseconds ? r->heap->wait : milliseconds;
}

void heap_enable(struct recording *r, bool on) {
    if (r->heap && r->heap->attached)
        attached_enable(r->heap->attached, on);
}

void heap_stop(struct recording *r) {
    if (r->heap && r->heap->heap)
        heap_end(r->heap->heap);
}

bool heap_is_attached(const struct recording *r) {
    return r->heap && r->heap->attached;
}

static void note_arenas(struct recording *r, enum heap_arenas arenas,
                        const struct note_kind *kind) {
    uint64_t count = r->heap->attached ? attached_with_arenas(r->heap->attached, arenas)
                                       : heap_with_arenas(r->heap->heap, arenas);
    if (count)
        notes_add(&r->result->notes, kind, count, 0, NULL);
}

/* If no record arrived, fail instead of reporting a program that allocates nothing. */
bool heap_finish(struct recording *r, pid_t target, struct error *error) {
    struct heap_recording *h = r->heap;
    bool own = false;
    if (!h)
        return true;
    struct heap_losses losses =
        h->attached ? attached_finish(h->attached, &r->result->notes) : heap_losses(h->heap);
    if (losses.allocations)
        notes_add(&r->result->notes, &note_lost, losses.allocations, 0, NULL);
    if (losses.frees)
        notes_add(&r->result->notes, &note_lost_frees, losses.frees, 0, NULL);
    if (losses.damaged)
        notes_add(&r->result->notes, &note_damaged, losses.damaged, 0, NULL);
    note_arenas(r, HEAP_PYTHON, &note_python);
    note_arenas(r, HEAP_NODE, &note_node);
    note_arenas(r, HEAP_JAVA, &note_java);
    note_arenas(r, HEAP_GO, &note_go);
    r->result->lost += losses.allocations;
    r->result->samples = h->allocations;
    if (h->attached)
        return true;
    bool known = heap_knows(h->heap, target, &own);
    if (h->allocations || (known && !own)) {
        if (r->events.items[0].attr.use_clockid) /* else times can't be compared */
            programs_note(r->sink.programs, h->heap, &r->result->notes);
        return true;
    }
    return error_set(error, ERROR_DENIED, "%s: its allocations can't be recorded: %s",
                     r->options->command[0],
                     own ? "it has an allocator of its own linked into it: start it and attach, "
                           "wick record --heap -p PID"
                         : "the library was not loaded into it; it may be set-user-id, static, or "
                           "clear its environment");
}
