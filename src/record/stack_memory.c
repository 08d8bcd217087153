/*
 * Write parts of stacks that the samples' copies lack to the recording (docs/carrier.md).
 *
 * The outer part of a deep stack hardly changes from sample to sample, so memory is split into blocks and each is written once: most samples
 * of a recursion 100 kB deep then take some hundred bytes. Blocks are distinguished by a 64-bit hash.
 */
#include <stdlib.h>

#include "record/interpreted.h"

static const struct note_kind note_full = {
    "stack-memory-full", "# part{|s} of deep stacks {was|were} dropped: a recording holds at most "
                         "256 MB of stacks beyond the copies in samples"};

enum { BLOCKS_MOST = 256 << 10, WRITE_FROM = 1 << 20 };

struct memory_writer {
    struct sink *sink;
    VECTOR(uint64_t) hashes; /* of all blocks, by number */
    struct index by_hash;    /* numbers are places + 1 */
    struct buffer blocks;    /* those not written yet, starting with number … */
    uint32_t first_block;
    struct buffer places;
    struct raw_memory head; /* of the run: adjacent parts of one stack */
    struct buffer run;
};

struct memory_writer *memory_writer_new(struct sink *sink) {
    struct memory_writer *w = memory_zero(1, sizeof *w);
    w->sink = sink;
    return w;
}

void memory_writer_free(struct memory_writer *w) {
    vector_release(&w->hashes);
    index_release(&w->by_hash);
    buffer_release(&w->blocks);
    buffer_release(&w->places);
    buffer_release(&w->run);
    free(w);
}

/* Get the number of a block, adding it if it is new. Return false if there are too many. */
static bool block_number(struct memory_writer *w, struct text block, uint32_t *number) {
    uint64_t hash = hash_bytes(block.data, block.length);
    uint32_t found;
    for (struct probe p = index_probe(&w->by_hash, hash); (found = index_next(&w->by_hash, &p));)
        if (w->hashes.items[found - 1] == hash) {
            *number = found - 1;
            return true;
        }
    if (w->hashes.count >= BLOCKS_MOST)
        return false;
    *number = (uint32_t)w->hashes.count;
    vector_push(&w->hashes, hash);
    index_add(&w->by_hash, hash, *number + 1);
    buffer_add(&w->blocks, block);
    return true;
}

static void put_run(struct memory_writer *w) {
    uint32_t numbers[MEMORY_PARTS * MEMORY_PART / MEMORY_BLOCK], count = 0;
    struct text rest = buffer_text(&w->run);
    keeper_saw_memory(w->sink->keeper, (pid_t)w->head.pid, w->head.address, rest);
    while (rest.length >= MEMORY_BLOCK && count < COUNT_OF(numbers) &&
           block_number(w, text_upto(rest, MEMORY_BLOCK), &numbers[count])) {
        rest = text_from(rest, MEMORY_BLOCK);
        count++;
    }
    if (rest.length)
        notes_add(&w->sink->result->notes, &note_full, 1, 0, NULL);
    w->run.count = 0;
    if (!count)
        return;
    buffer_put_u64(&w->places, w->head.time);
    buffer_put_u64(&w->places, w->head.stack_pointer);
    buffer_put_u64(&w->places, w->head.address);
    buffer_put_u32(&w->places, w->head.pid);
    buffer_put_u32(&w->places, w->head.tid);
    buffer_put_u32(&w->places, count);
    buffer_put_u32(&w->places, 0);
    buffer_add(&w->places, (struct text){(const char *)numbers, count * sizeof *numbers});
}

void memory_writer_add(struct memory_writer *w, const struct raw_memory *part) {
    const size_t head = offsetof(struct raw_memory, bytes);
    bool follows = w->run.count && part->tid == w->head.tid && part->time == w->head.time &&
                   part->address == w->head.address + w->run.count;
    if (w->run.count && !follows)
        put_run(w);
    if (!w->run.count)
        memcpy(&w->head, part, head);
    buffer_add(&w->run, (struct text){(const char *)part->bytes, part->size});
}

bool memory_writer_write(struct memory_writer *w, bool all, struct error *error) {
    uint32_t key[] = {w->first_block, 0};
    if (w->run.count && all)
        put_run(w);
    if (!all && w->blocks.count + w->places.count < WRITE_FROM)
        return true;
    bool fine = !w->blocks.count || carrier_write(w->sink->writer, CARRIER_BLOCKS,
                                                  (struct text){(const char *)key, sizeof key},
                                                  buffer_text(&w->blocks), error);
    if (fine && w->places.count)
        fine = carrier_write(w->sink->writer, CARRIER_MEMORY, TEXT(""), buffer_text(&w->places),
                             error);
    w->first_block = (uint32_t)w->hashes.count;
    w->blocks.count = 0;
    w->places.count = 0;
    return fine;
}
