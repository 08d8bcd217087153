/*
 * Parts of stacks in addition to the copies in samples. The recording has blocks by number and, for each sample with such parts, their blocks and
 * addresses.
 */
#include "profile/memories.h"

#include <stdlib.h>

#include "interpreter/layout.h"

static_assert((int)MEMORY_BLOCK == (int)UNWIND_BLOCK, "blocks are unwound as they were taken");

static const struct note_kind note_damaged = {
    "stack-memory-damaged",
    "# kept part{|s} of deep stacks {is|are} damaged and {was|were} skipped"};

enum { HEAD = 40, RUN_MOST = MEMORY_PARTS * MEMORY_PART / MEMORY_BLOCK };

/* Blocks that follow each other in memory. */
struct run {
    uint64_t time, stack_pointer, address;
    uint32_t tid, count;
    size_t first; /* in `numbers` */
};

struct memories {
    VECTOR(struct run) runs; /* by tid, time and address */
    VECTOR(uint32_t) numbers;
    VECTOR(uint32_t) places; /* by a block's number: its place in `blocks` + 1; 0: it is missing */
    struct buffer blocks;
    uint64_t room; /* bytes that more entries may have: few bytes of a file may unpack to many */
};

static bool take_blocks(struct memories *all, struct text key, struct text bytes) {
    enum { NUMBERS_MOST = 1 << 20 };
    size_t count = bytes.length / MEMORY_BLOCK, place = all->blocks.count / MEMORY_BLOCK;
    if (key.length < 4 || load_u32(key.data) > NUMBERS_MOST - count || count > NUMBERS_MOST ||
        bytes.length % MEMORY_BLOCK)
        return false;
    size_t first = load_u32(key.data);
    while (all->places.count < first + count)
        vector_push(&all->places, 0);
    for (size_t i = 0; i < count; i++)
        all->places.items[first + i] = (uint32_t)(place + i + 1);
    buffer_add(&all->blocks, bytes);
    return true;
}

static bool take_run(struct memories *all, struct text *rest) {
    if (rest->length < HEAD)
        return false;
    const char *p = rest->data;
    struct run run = {.time = load_u64(p),
                      .stack_pointer = load_u64(p + 8),
                      .address = load_u64(p + 16),
                      .tid = load_u32(p + 28),
                      .count = load_u32(p + 32),
                      .first = all->numbers.count};
    uint64_t end;
    if (run.count > RUN_MOST || rest->length - HEAD < 4 * (size_t)run.count ||
        __builtin_add_overflow(run.address, (uint64_t)run.count * MEMORY_BLOCK, &end))
        return false;
    for (uint32_t i = 0; i < run.count; i++)
        vector_push(&all->numbers, load_u32(p + HEAD + 4 * (size_t)i));
    vector_push(&all->runs, run);
    *rest = text_from(*rest, HEAD + 4 * (size_t)run.count);
    return true;
}

static int run_order(const void *left, const void *right) {
    const struct run *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->address > b->address) - (a->address < b->address);
}

static bool take_runs(struct memories *all, struct text rest) {
    while (rest.length)
        if (!take_run(all, &rest))
            return false;
    return true;
}

/* False: there are no more. An entry that cannot be read has no key. */
static bool next_entry(struct memories *all, const struct carried *carried, uint32_t kind,
                       uint32_t *place, struct text *key, struct buffer *bytes) {
    if (!carried_read_keyed(carried, kind, place, all->room, key, bytes))
        return false;
    all->room -= key->data ? bytes->count : 0;
    return true;
}

struct memories *memories_read(const struct carried *carried, struct notes *notes) {
    struct buffer bytes = {0};
    struct memories *all = memory_zero(1, sizeof *all);
    struct text key;
    all->room = carried_room(carried);
    for (uint32_t i = 0; next_entry(all, carried, CARRIER_BLOCKS, &i, &key, &bytes);)
        if (!take_blocks(all, key, buffer_text(&bytes)))
            notes_add(notes, &note_damaged, 1, 0, NULL);
    for (uint32_t i = 0; next_entry(all, carried, CARRIER_MEMORY, &i, &key, &bytes);)
        if (!key.data || !take_runs(all, buffer_text(&bytes)))
            notes_add(notes, &note_damaged, 1, 0, NULL);
    buffer_release(&bytes);
    if (all->runs.count) {
        qsort(all->runs.items, all->runs.count, sizeof *all->runs.items, run_order);
        return all;
    }
    memories_free(all);
    return NULL;
}

void memories_free(struct memories *all) {
    if (!all)
        return;
    vector_release(&all->runs);
    vector_release(&all->numbers);
    vector_release(&all->places);
    buffer_release(&all->blocks);
    free(all);
}

static void add_run(const struct memories *all, const struct run *run,
                    struct unwind_blocks *blocks) {
    for (uint32_t i = 0; i < run->count && blocks->count < RUN_MOST; i++) {
        uint32_t number = all->numbers.items[run->first + i];
        uint32_t place = number < all->places.count ? all->places.items[number] : 0;
        uint64_t address = run->address + (uint64_t)i * MEMORY_BLOCK;
        bool is_next =
            !blocks->count || address >= blocks->items[blocks->count - 1].address + MEMORY_BLOCK;
        if (place && is_next)
            vector_push(blocks,
                        ((struct unwind_block){address, (const uint8_t *)all->blocks.items +
                                                            (size_t)(place - 1) * MEMORY_BLOCK}));
    }
}

/* Blocks were taken some microseconds before or after the sample's time; another sample of the same thread in that time has another stack pointer,
   or the same stack. Only a few samples fit into that time, each with at most MEMORY_PARTS runs, so the search is bounded: every sample searches. */
void memories_find(const struct memories *all, int32_t tid, uint64_t time, uint64_t stack_pointer,
                   struct unwind_blocks *blocks) {
    enum { APART_MOST = 500000 /* nanoseconds */, LOOKED_AT_MOST = 16 * MEMORY_PARTS };
    uint64_t from = time < APART_MOST ? 0 : time - APART_MOST, found = 0, nearest = UINT64_MAX;
    uint32_t id = (uint32_t)tid;
    const struct run *runs = all->runs.items;
    size_t first = search_first(i, 0, all->runs.count,
                                runs[i].tid < id || (runs[i].tid == id && runs[i].time < from));
    size_t left = all->runs.count - first,
           last = first + (left < LOOKED_AT_MOST ? left : LOOKED_AT_MOST);
    blocks->count = 0;
    for (size_t i = first; i < last && runs[i].tid == id; i++) {
        uint64_t apart = runs[i].time < time ? time - runs[i].time : runs[i].time - time;
        if (apart > APART_MOST)
            break;
        if (runs[i].stack_pointer == stack_pointer && apart < nearest) {
            nearest = apart;
            found = runs[i].time;
        }
    }
    for (size_t i = first;
         nearest != UINT64_MAX && i < last && runs[i].tid == id && runs[i].time <= found; i++)
        if (runs[i].time == found && runs[i].stack_pointer == stack_pointer)
            add_run(all, &runs[i], blocks);
}
