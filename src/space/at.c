/*
 * Query the history. A query's key is converted to an ordinal (the number of changes up to it), then the states of tid, thread and space are
 * found by bisection. Each result is valid for a range of ordinals. A cursor remembers the ordinal and, for a few tids, the last result with
 * its range, so that most queries cost two comparisons of keys.
 */
#include "space/history.h"

#include <stdlib.h>

int key_compare(const struct key *a, const struct key *b) {
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

enum { REMEMBERED = 8 };

/* What a cursor's memory holds. All zero: nothing remembered, for `until` is then not above any ordinal. */
struct answer {
    struct space_at at;
    int32_t pid;
    int32_t tid;
    uint32_t from; /* it holds for ordinals from … until-1 */
    uint32_t until;
};
struct cursor {
    uint32_t ordinal;
    struct answer answers[REMEMBERED];
};
_Static_assert(sizeof(struct cursor) <= sizeof(struct space_cursor), "a cursor fits its memory");

/* ---- the moment ---- */

/* True if at least `ordinal` changes are not after `key`. */
static bool reached(const struct spaces *spaces, size_t ordinal, const struct key *key) {
    return ordinal == 0 ||
           (ordinal < spaces->keys.count && key_compare(&spaces->keys.items[ordinal], key) <= 0);
}

/* reached(low) and not reached(high). */
static uint32_t bisect_keys(const struct spaces *spaces, const struct key *key, size_t low,
                            size_t high) {
    return (uint32_t)search_first(middle, low + 1, high, reached(spaces, middle, key)) - 1;
}

/* The number of changes up to `key`, looked for with growing steps around where the last question was. */
static uint32_t ordinal_at(const struct spaces *spaces, uint32_t last, const struct key *key) {
    size_t step = 1;
    if (reached(spaces, last, key)) {
        size_t low = last;
        for (; reached(spaces, low + step, key); step *= 2)
            low += step;
        return bisect_keys(spaces, key, low, low + step);
    }
    size_t high = last;
    for (; high > step && !reached(spaces, high - step, key); step *= 2)
        high -= step;
    return bisect_keys(spaces, key, high > step ? high - step : 0, high);
}

/* ---- the states ---- */

/* The newest state of `owner` that is not after `ordinal`, or NULL; it holds from *from, if that is raised, and until *until, if that is
   lowered. */
static const struct state *states_at(const struct states *states, uint32_t owner, uint32_t ordinal,
                                     uint32_t *from, uint32_t *until) {
    const struct state *list = states->list.items;
    uint32_t begin = states->first[owner], end = states->first[owner + 1];
    size_t after = search_first(middle, begin, end, list[middle].ordinal <= ordinal);
    if (after < end && list[after].ordinal < *until)
        *until = list[after].ordinal;
    if (after == begin)
        return NULL;
    const struct state *state = &list[after - 1];
    if (state->ordinal > *from)
        *from = state->ordinal;
    return state;
}

/* The life of a tid at a moment, under whatever pid, or UINT32_MAX. */
static uint32_t life_at(const struct spaces *spaces, int32_t tid, uint32_t ordinal,
                        struct answer *answer) {
    uint32_t slot = spaces_slot(spaces, tid);
    const struct state *state =
        slot ? states_at(&spaces->slot_states, slot, ordinal, &answer->from, &answer->until) : NULL;
    return state ? state->value[0] : UINT32_MAX;
}

static void answer_space(const struct spaces *spaces, uint32_t space, uint32_t ordinal,
                         struct answer *answer) {
    const struct state *state =
        states_at(&spaces->space_states, space, ordinal, &answer->from, &answer->until);
    if (!state)
        return;
    if (space == 0) {
        answer->at.kernel = state->value[0];
        answer->at.epochs |= (uint64_t)state->value[1] << 32;
    } else {
        answer->at.user = state->value[0];
        answer->at.epochs |= state->value[1];
    }
}

/* As life_fits() does for records: the tid's last life under this pid, of the process that has the pid now. A thread whose pid
   no record told belongs to the process that the sample names. */
static bool fits(const struct spaces *spaces, uint32_t life, uint32_t leader, int32_t pid) {
    if (life == UINT32_MAX || pid == -1)
        return true;
    const struct space_thread *thread = &spaces->threads.items[life];
    if (thread->pid == -1)
        return pid == thread->tid;
    return spaces->quirks.threads_by_tid ||
           (thread->pid == pid && spaces->lives.items[life].leader == leader);
}

static void answer_work_out(const struct spaces *spaces, uint32_t ordinal, struct answer *answer) {
    answer->at = (struct space_at){.thread = UINT32_MAX};
    answer->from = 0;
    answer->until = UINT32_MAX;
    uint32_t life = life_at(spaces, answer->tid, ordinal, answer);
    uint32_t leader =
        answer->pid == -1 ? UINT32_MAX : life_at(spaces, answer->pid, ordinal, answer);
    if (leader != UINT32_MAX && !fits(spaces, leader, leader, answer->pid))
        leader = UINT32_MAX;
    uint32_t home = fits(spaces, life, leader, answer->pid) && life != UINT32_MAX ? life : leader;
    if (life != UINT32_MAX && (home == life || spaces->threads.items[life].pid == -1)) {
        const struct state *state =
            states_at(&spaces->life_states, life, ordinal, &answer->from, &answer->until);
        answer->at.thread = life;
        answer->at.comm = state->value[0];
    }
    if (home != UINT32_MAX) {
        const struct state *state =
            states_at(&spaces->life_states, home, ordinal, &answer->from, &answer->until);
        answer_space(spaces, state->value[1], ordinal, answer);
    }
    answer_space(spaces, 0, ordinal, answer);
}

/* ---- the questions ---- */

void spaces_at(const struct spaces *spaces, struct space_cursor *memory, int32_t pid, int32_t tid,
               const struct key *key, struct space_at *at) {
    assert(spaces->sealed);
    struct cursor *cursor = (struct cursor *)memory->memory;
    uint32_t ordinal = cursor->ordinal = ordinal_at(spaces, cursor->ordinal, key);
    struct answer *answer = &cursor->answers[(uint32_t)tid % REMEMBERED];
    if (answer->pid != pid || answer->tid != tid || ordinal < answer->from ||
        ordinal >= answer->until) {
        answer->pid = pid;
        answer->tid = tid;
        answer_work_out(spaces, ordinal, answer);
    }
    *at = answer->at;
}

uint32_t spaces_thread_count(const struct spaces *spaces) {
    return (uint32_t)spaces->threads.count;
}

const struct space_thread *spaces_thread(const struct spaces *spaces, uint32_t number) {
    assert(number < spaces->threads.count);
    return &spaces->threads.items[number];
}

const struct mapping *space_find(const struct spaces *spaces, uint32_t root, uint64_t address) {
    return root ? maps_find(&spaces->maps, root, address) : NULL;
}

uint32_t space_mapping_number(const struct spaces *spaces, const struct mapping *mapping) {
    return mapping ? (uint32_t)(mapping - spaces->maps.mappings.items) + 1 : 0;
}

const struct mapping *space_mapping(const struct spaces *spaces, uint32_t number) {
    return number ? &spaces->maps.mappings.items[number - 1] : NULL;
}

void space_each(const struct spaces *spaces, uint32_t root,
                void (*each)(void *context, const struct mapping *mapping), void *context) {
    maps_each(&spaces->maps, root, each, context);
}

struct space_statistics spaces_statistics(const struct spaces *spaces) {
    return (struct space_statistics){
        .changes = spaces->keys.count - 1,
        .nodes = spaces->maps.nodes.count,
        .mappings = spaces->maps.mappings.count,
        .user_epochs = spaces->user_epochs,
        .kernel_epochs = spaces->kernel_epochs,
    };
}
