/*
 * Build the history of processes, threads and spaces from records.
 *
 * Quirks select one of two sets of rules. perf 6.1 finds a thread by its tid alone, and a thread that appears with another pid keeps its old pid
 * and maps; exec keeps the maps; an exit changes nothing; a fork with a live tid replaces that thread. The correct rules differ in three places:
 * a known tid with another pid, or of a process that has been replaced, is a new thread; exec empties the space; a fork of itself is ignored.
 *
 * perf's treatment of threads that only samples mention is not imitated, because samples are not seen here: such a thread is looked up by the
 * query, and belongs to its process as it is then.
 */
#include "space/history.h"

#include <stdlib.h>

enum { NO_LIFE = UINT32_MAX };

struct spaces *spaces_new(const struct quirks *quirks) {
    struct spaces *spaces = memory_zero(1, sizeof *spaces);
    spaces->quirks = quirks ? *quirks : quirks_none;
    spaces->user_epochs = spaces->kernel_epochs = 1;
    vector_push(&spaces->keys, (struct key){0});
    vector_push(&spaces->spaces, (struct space_now){0});
    vector_push(&spaces->slots, NO_LIFE);
    return spaces;
}

static void states_release(struct states *states) {
    vector_release(&states->list);
    free(states->first);
}

void spaces_free(struct spaces *spaces) {
    if (!spaces)
        return;
    maps_release(&spaces->maps);
    vector_release(&spaces->keys);
    vector_release(&spaces->spaces);
    vector_release(&spaces->lives);
    vector_release(&spaces->threads);
    vector_release(&spaces->slots);
    index_release(&spaces->by_tid);
    states_release(&spaces->space_states);
    states_release(&spaces->life_states);
    states_release(&spaces->slot_states);
    free(spaces);
}

/* ---- ordinals and states ---- */

static void begin(struct spaces *spaces, const struct key *key) {
    assert(!spaces->sealed);
    const struct key *last = &spaces->keys.items[spaces->keys.count - 1];
    spaces->key = spaces->keys.count > 1 && key_compare(key, last) < 0 ? *last : *key;
    spaces->numbered = false;
}

/* A record that changes nothing costs nothing: only the first state that it changes takes an ordinal. */
static void states_add(struct spaces *spaces, struct states *states, uint32_t owner, uint32_t value,
                       uint32_t second) {
    if (!spaces->numbered) {
        assert(spaces->keys.count < UINT32_MAX);
        vector_push(&spaces->keys, spaces->key);
        spaces->numbered = true;
    }
    uint32_t ordinal = (uint32_t)spaces->keys.count - 1;
    vector_push(&states->list, ((struct state){owner, ordinal, {value, second}}));
}

/* ---- spaces ---- */

static void space_set(struct spaces *spaces, uint32_t space, uint32_t root, uint32_t epoch) {
    spaces->spaces.items[space] = (struct space_now){root, epoch};
    states_add(spaces, &spaces->space_states, space, root, epoch);
}

/* After a change of its mappings. */
static void space_advance(struct spaces *spaces, uint32_t space, uint32_t root, bool executable) {
    struct space_now now = spaces->spaces.items[space];
    if (root == now.root)
        return;
    uint32_t *epochs = space ? &spaces->user_epochs : &spaces->kernel_epochs;
    if (executable || spaces->quirks.data_holds_code)
        now.epoch = root ? (*epochs)++ : 0;
    space_set(spaces, space, root, now.epoch);
}

static uint32_t space_new(struct spaces *spaces) {
    vector_push(&spaces->spaces, (struct space_now){0});
    return (uint32_t)spaces->spaces.count - 1;
}

/* ---- threads ---- */

uint64_t spaces_hash_tid(int32_t tid) {
    return hash_mix((uint32_t)tid, 0x7469640a);
}

/* Slots are found by hash and distinguished by the tid of their current life, which never changes. */
uint32_t spaces_slot(const struct spaces *spaces, int32_t tid) {
    uint32_t slot;
    for (struct probe p = index_probe(&spaces->by_tid, spaces_hash_tid(tid));
         (slot = index_next(&spaces->by_tid, &p));)
        if (spaces->threads.items[spaces->slots.items[slot]].tid == tid)
            return slot;
    return 0;
}

static void life_set(struct spaces *spaces, uint32_t life, uint32_t comm, uint32_t space) {
    struct life *now = &spaces->lives.items[life];
    now->comm = comm;
    now->space = space;
    states_add(spaces, &spaces->life_states, life, comm, space);
}

/* The present life of a tid, under whatever pid. */
static uint32_t life_of(const struct spaces *spaces, int32_t tid) {
    uint32_t slot = spaces_slot(spaces, tid);
    return slot ? spaces->slots.items[slot] : NO_LIFE;
}

static uint32_t life_find_or_new(struct spaces *spaces, int32_t pid, int32_t tid);

/* A thread of its own process, or of none that is known, has a space of its own; others share their leader's. */
static uint32_t life_new(struct spaces *spaces, int32_t pid, int32_t tid) {
    bool own = pid == tid || pid == -1;
    uint32_t leader = own ? NO_LIFE : life_find_or_new(spaces, pid, pid);
    uint32_t number = (uint32_t)spaces->lives.count;
    uint32_t slot = spaces_slot(spaces, tid);
    if (!slot) {
        slot = (uint32_t)spaces->slots.count;
        vector_push(&spaces->slots, number);
        index_add(&spaces->by_tid, spaces_hash_tid(tid), slot);
    }
    spaces->slots.items[slot] = number;
    vector_push(&spaces->lives, ((struct life){.leader = own ? number : leader, .slot = slot}));
    vector_push(&spaces->threads, ((struct space_thread){pid, tid, 0, UINT64_MAX}));
    states_add(spaces, &spaces->slot_states, slot, number, 0);
    life_set(spaces, number, 0, own ? space_new(spaces) : spaces->lives.items[leader].space);
    return number;
}

/* A thread met without its process joins it as soon as the process is named: a new life with the old one's name. What it had
   mapped is forgotten, unless it is its process's first thread. */
static uint32_t life_join(struct spaces *spaces, uint32_t life, int32_t pid) {
    int32_t tid = spaces->threads.items[life].tid;
    uint32_t joined = life_new(spaces, pid, tid);
    spaces->threads.items[joined].start = spaces->threads.items[life].start;
    uint32_t home = pid == tid ? life : joined;
    life_set(spaces, joined, spaces->lives.items[life].comm, spaces->lives.items[home].space);
    return joined;
}

/* True if `life` is what (pid, tid) names now. */
static bool life_fits(const struct spaces *spaces, uint32_t life, int32_t pid) {
    if (spaces->quirks.threads_by_tid || pid == -1)
        return true;
    uint32_t leader = spaces->lives.items[life].leader;
    return spaces->threads.items[life].pid == pid &&
           (leader == life || leader == life_of(spaces, pid));
}

static uint32_t life_find(struct spaces *spaces, int32_t pid, int32_t tid) {
    uint32_t life = life_of(spaces, tid);
    if (life == NO_LIFE)
        return NO_LIFE;
    if (spaces->threads.items[life].pid == -1 && pid != -1)
        return life_join(spaces, life, pid);
    return life_fits(spaces, life, pid) ? life : NO_LIFE;
}

/* Calls itself through life_new() once at most: for a leader, whose pid is its tid. */
static uint32_t life_find_or_new(struct spaces *spaces, int32_t pid, int32_t tid) {
    uint32_t life = life_find(spaces, pid, tid);
    return life != NO_LIFE ? life : life_new(spaces, pid, tid);
}

/* ---- records ---- */

static uint32_t space_of(struct spaces *spaces, int32_t pid, int32_t tid) {
    if (pid == SPACE_KERNEL_PID)
        return 0;
    uint32_t life = life_find_or_new(spaces, pid, spaces->quirks.threads_by_tid ? tid : pid);
    return spaces->lives.items[life].space;
}

void spaces_mmap(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                 const struct mapping *mapping) {
    begin(spaces, key);
    uint32_t space = space_of(spaces, pid, tid);
    if (mapping->start >= mapping->end)
        return;
    bool executable;
    uint32_t root = maps_put(&spaces->maps, spaces->spaces.items[space].root, mapping, &executable);
    space_advance(spaces, space, root, executable);
}

enum { STAY_MOST = 1024 };

/* The mappings in the way that stay; by number; false: they are too many. */
static bool find_staying(const struct spaces *spaces, uint32_t root, const struct mapping *mapping,
                         bool (*stays)(void *context, uint32_t object), void *context,
                         uint32_t numbers[STAY_MOST], size_t *count) {
    uint64_t at = mapping->start;
    const struct mapping *next;
    *count = 0;
    while ((next = maps_find_from(&spaces->maps, root, at)) && next->start < mapping->end) {
        if (stays(context, next->object)) {
            if (*count == STAY_MOST)
                return false;
            numbers[(*count)++] = (uint32_t)(next - spaces->maps.mappings.items);
        }
        at = next->end;
    }
    return true;
}

void spaces_mmap_around(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                        const struct mapping *mapping,
                        bool (*stays)(void *context, uint32_t object), void *context) {
    uint32_t numbers[STAY_MOST];
    size_t count;
    bool executable, changed = false;
    begin(spaces, key);
    uint32_t space = space_of(spaces, pid, tid), root = spaces->spaces.items[space].root;
    if (mapping->start >= mapping->end ||
        !find_staying(spaces, root, mapping, stays, context, numbers, &count))
        return;
    /* A mapping that stays may begin before the new one or end after it; adding it again makes it whole. */
    root = maps_put(&spaces->maps, root, mapping, &changed);
    for (size_t i = 0; i < count; i++) {
        struct mapping again = spaces->maps.mappings.items[numbers[i]];
        root = maps_put(&spaces->maps, root, &again, &executable);
        changed |= executable;
    }
    space_advance(spaces, space, root, changed);
}

void spaces_unmap(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                  uint64_t start, uint64_t end) {
    begin(spaces, key);
    uint32_t space = space_of(spaces, pid, tid);
    if (start >= end)
        return;
    bool executable;
    uint32_t root =
        maps_cut(&spaces->maps, spaces->spaces.items[space].root, start, end, &executable);
    space_advance(spaces, space, root, executable);
}

/* The parent's mappings for the child, unless it has some already: a fork makes a new process, whose first thread
   is new; a record that says otherwise is odd, and what was recorded of its process counts more. */
static void share_mappings(struct spaces *spaces, uint32_t child, uint32_t parent) {
    uint32_t space = spaces->lives.items[child].space;
    struct space_now from = spaces->spaces.items[spaces->lives.items[parent].space];
    if (spaces->spaces.items[space].root == 0 && from.root != 0)
        space_set(spaces, space, from.root, from.epoch);
}

void spaces_fork(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                 int32_t parent_pid, int32_t parent_tid, bool synthesized) {
    begin(spaces, key);
    bool replaces = spaces->quirks.forks_replace;
    bool known = replaces && life_find(spaces, pid, tid) != NO_LIFE;
    uint32_t parent = life_find_or_new(spaces, parent_pid, parent_tid);
    if (pid == parent_pid && tid == parent_tid && !replaces)
        return;
    if (replaces && spaces->threads.items[parent].pid != parent_pid)
        parent = life_new(spaces, parent_pid, parent_tid);
    /* perf replaces a child that it knew, but finds one that it made just now, as the parent's leader, or as the parent. */
    uint32_t child =
        replaces && !known ? life_find_or_new(spaces, pid, tid) : life_new(spaces, pid, tid);
    spaces->threads.items[child].start = synthesized ? 0 : key->time;
    if (spaces->lives.items[parent].comm)
        life_set(spaces, child, spaces->lives.items[parent].comm, spaces->lives.items[child].space);
    if (pid != parent_pid && !synthesized)
        share_mappings(spaces, child, parent);
}

void spaces_exit(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid) {
    begin(spaces, key);
    uint32_t life = life_find(spaces, pid, tid);
    if (life != NO_LIFE && spaces->threads.items[life].end == UINT64_MAX)
        spaces->threads.items[life].end = key->time;
}

void spaces_comm(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                 uint32_t comm, bool exec) {
    begin(spaces, key);
    uint32_t life = life_find_or_new(spaces, pid, tid);
    uint32_t space = spaces->lives.items[life].space;
    if (spaces->lives.items[life].comm != comm)
        life_set(spaces, life, comm, space);
    if (exec && !spaces->quirks.maps_survive_exec && spaces->spaces.items[space].root)
        space_set(spaces, space, 0, 0);
}

/* ---- sealing ---- */

/* A counting sort: linear, and equal owners keep their order. */
static void states_seal(struct states *states, size_t owners) {
    uint32_t *first = memory_zero(owners + 2, sizeof *first);
    for (size_t i = 0; i < states->list.count; i++)
        first[states->list.items[i].owner + 2]++;
    for (size_t i = 2; i < owners + 2; i++)
        first[i] += first[i - 1];
    struct state *sorted = memory_alloc(states->list.count * sizeof *sorted);
    for (size_t i = 0; i < states->list.count; i++)
        sorted[first[states->list.items[i].owner + 1]++] = states->list.items[i];
    free(states->list.items);
    states->list.items = sorted;
    states->list.capacity = states->list.count;
    states->first = first;
}

void spaces_seal(struct spaces *spaces) {
    assert(!spaces->sealed);
    states_seal(&spaces->space_states, spaces->spaces.count);
    states_seal(&spaces->life_states, spaces->lives.count);
    states_seal(&spaces->slot_states, spaces->slots.count);
    spaces->sealed = true;
}
