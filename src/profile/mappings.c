/*
 * Cut mappings into parts with the same lifetime.
 *
 * An unmapped range may overlap parts of mappings, several mappings, or memory that was never recorded, and a mapping unmaps what was at its
 * addresses. So the changes of a process are walked in time order, its current mappings are kept by start address, and each part that is removed
 * becomes a block that ended then.
 *
 * All start and end addresses are known beforehand. A mapping is an index into their sorted list, and a set of such indexes is a bitmap with coarser
 * bitmaps above it, in which the next or previous one is found in a few steps. A change costs these steps and what it removes.
 */
#include "profile/block.h"

#include <stdlib.h>

enum { LEVELS = 6, WORD = 64 }; /* 64^6 places: more than there can be */

struct change {
    uint64_t from, to, time;
    uint64_t cut; /* what it took away, in bytes */
    size_t block; /* in blocks->maps; also the order in the file */
    int32_t pid, tid;
    bool maps, moved;
};

struct place {
    size_t end;   /* of the mapping that begins here: another place */
    size_t block; /* that it is of */
};

struct walk {
    struct blocks *blocks;
    size_t
        *longest; /* for each of blocks->maps: its part that lives longest, + 1, in blocks->list */
    uint64_t *addresses; /* of the places, sorted */
    size_t count;
    struct place *places;
    uint64_t *used[LEVELS]; /* bit i of a level: word i of the level below has one */
};

/* ---- a set of places ---- */

static void set_add(struct walk *walk, size_t at) {
    for (int i = 0; i < LEVELS; i++, at /= WORD)
        walk->used[i][at / WORD] |= (uint64_t)1 << at % WORD;
}

static void set_remove(struct walk *walk, size_t at) {
    for (int i = 0; i < LEVELS; i++, at /= WORD) {
        walk->used[i][at / WORD] &= ~((uint64_t)1 << at % WORD);
        if (walk->used[i][at / WORD])
            return;
    }
}

/* The first from `at` on, SIZE_MAX: none. */
static size_t set_from(const struct walk *walk, size_t at) {
    for (int i = 0; i < LEVELS; i++) {
        size_t words = walk->count;
        for (int k = 0; k <= i; k++)
            words = words / WORD + 1;
        uint64_t word = at / WORD < words ? walk->used[i][at / WORD] >> at % WORD : 0;
        if (word) {
            at += (size_t)__builtin_ctzll(word);
            while (i-- > 0)
                at = at * WORD + (size_t)__builtin_ctzll(walk->used[i][at]);
            return at;
        }
        at = at / WORD + 1;
    }
    return SIZE_MAX;
}

/* The last before `at`, SIZE_MAX: none. */
static size_t set_before(const struct walk *walk, size_t at) {
    for (int i = 0; i < LEVELS; i++, at /= WORD) {
        uint64_t word = walk->used[i][at / WORD] & (((uint64_t)1 << at % WORD) - 1);
        if (!word)
            continue;
        at = at / WORD * WORD + (size_t)(WORD - 1 - __builtin_clzll(word));
        while (i-- > 0)
            at = at * WORD + (size_t)(WORD - 1 - __builtin_clzll(walk->used[i][at]));
        return at;
    }
    return SIZE_MAX;
}

/* ---- parts ---- */

/* `time`: when it was unmapped; UINT64_MAX: it never was. */
static void give_part(struct walk *walk, size_t block, uint64_t bytes, uint64_t time) {
    struct blocks *blocks = walk->blocks;
    struct block part = blocks->maps.items[block];
    uint64_t ending = blocks_ending_after(blocks, part.pid, part.time);
    part.role = part.role == ROLE_MAP ? ROLE_ALLOC : ROLE_AGAIN;
    part.weight = bytes;
    part.freed = time < ending;
    part.end = part.freed ? time : ending;
    vector_push(&blocks->list, part);
    size_t *longest = &walk->longest[block];
    const struct block *other = *longest ? &blocks->list.items[*longest - 1] : NULL;
    if (!other || part.end > other->end || (part.end == other->end && !part.freed))
        *longest = blocks->list.count;
}

static void begin(struct walk *walk, size_t at, size_t end, size_t block) {
    walk->places[at] = (struct place){end, block};
    set_add(walk, at);
}

/* Take [from, to) away from the mapping at `at`, which reaches into it. */
static uint64_t cut_one(struct walk *walk, size_t at, size_t from, size_t to, uint64_t time) {
    struct place place = walk->places[at];
    size_t first = at > from ? at : from, last = place.end < to ? place.end : to;
    uint64_t bytes = walk->addresses[last] - walk->addresses[first];
    if (at < from)
        walk->places[at].end = from;
    else
        set_remove(walk, at);
    if (place.end > to)
        begin(walk, to, place.end, place.block);
    give_part(walk, place.block, bytes, time);
    return bytes;
}

static uint64_t cut(struct walk *walk, size_t from, size_t to, uint64_t time) {
    uint64_t bytes = 0;
    size_t at = set_before(walk, from);
    if (at != SIZE_MAX && walk->places[at].end > from)
        bytes += cut_one(walk, at, from, to, time);
    while ((at = set_from(walk, from)) != SIZE_MAX && at < to)
        bytes += cut_one(walk, at, from, to, time);
    return bytes;
}

/* ---- changes ---- */

static int change_order(const void *a, const void *b) {
    const struct change *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->block > y->block) - (x->block < y->block);
}

static int address_order(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* mremap() moves mappings of files, too, which do not count: of those nothing was taken away. */
static bool was_counted(const struct change *first, const struct change *change) {
    enum { FAR = 256 }; /* changes of other threads between both halves of the call */
    const struct change *at = change;
    for (int i = 0; at > first && i < FAR; i++)
        if ((--at)->tid == change->tid)
            return !at->maps && at->cut;
    return false;
}

static size_t place_of(const struct walk *walk, uint64_t address) {
    return search_first(middle, 0, walk->count, walk->addresses[middle] < address);
}

static void walk_changes(struct walk *walk, struct change *first, size_t count) {
    for (struct change *change = first; change < first + count; change++) {
        size_t from = place_of(walk, change->from), to = place_of(walk, change->to);
        if (from == to)
            continue;
        change->cut = cut(walk, from, to, change->time);
        if (change->maps && (!change->moved || was_counted(first, change)))
            begin(walk, from, to, change->block);
    }
    for (size_t at; (at = set_from(walk, 0)) != SIZE_MAX;)
        cut_one(walk, at, at, walk->places[at].end, UINT64_MAX);
}

/* All changes of one process. */
static void walk_process(struct walk *walk, struct change *first, size_t count) {
    walk->addresses = memory_zero(2 * count, sizeof *walk->addresses);
    for (size_t i = 0; i < count; i++) {
        walk->addresses[2 * i] = first[i].from;
        walk->addresses[2 * i + 1] = first[i].to;
    }
    qsort(walk->addresses, 2 * count, sizeof *walk->addresses, address_order);
    walk->count = 0;
    for (size_t i = 0; i < 2 * count; i++)
        if (!i || walk->addresses[i] != walk->addresses[walk->count - 1])
            walk->addresses[walk->count++] = walk->addresses[i];
    walk->places = memory_zero(walk->count, sizeof *walk->places);
    size_t words = walk->count;
    for (int i = 0; i < LEVELS; i++)
        walk->used[i] = memory_zero(words = words / WORD + 1, sizeof *walk->used[i]);
    walk_changes(walk, first, count);
    for (int i = 0; i < LEVELS; i++)
        free(walk->used[i]);
    free(walk->places);
    free(walk->addresses);
}

static struct change change_of(const struct block *block, size_t number) {
    struct change change = {.from = block->address,
                            .time = block->time,
                            .block = number,
                            .pid = block->pid,
                            .tid = block->tid,
                            .maps = block->role != ROLE_UNMAP,
                            .moved = block->moved};
    if (!checked_add(block->address, block->weight, &change.to))
        change.to = UINT64_MAX;
    return change;
}

void blocks_pair_mappings(struct blocks *blocks) {
    size_t count = blocks->maps.count;
    if (!count)
        return;
    struct walk walk = {.blocks = blocks, .longest = memory_zero(count, sizeof *walk.longest)};
    struct change *changes = memory_zero(count, sizeof *changes);
    for (size_t i = 0; i < count; i++)
        changes[i] = change_of(&blocks->maps.items[i], i);
    qsort(changes, count, sizeof *changes, change_order);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && changes[end].pid == changes[i].pid;)
            end++;
        walk_process(&walk, changes + i, end - i);
    }
    for (size_t i = 0; i < count; i++)
        if (walk.longest[i])
            blocks->list.items[walk.longest[i] - 1].count = 1;
    free(changes);
    free(walk.longest);
    vector_release(&blocks->maps);
}
