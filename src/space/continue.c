/*
 * Begin a new history with the final state of another one: what is alive, without its past.
 */
#include "space/history.h"

#include <stdlib.h>

enum { NONE = UINT32_MAX };

/* New numbers of lives, spaces, roots and epochs, by their old ones. */
struct continuation {
    const struct spaces *old;
    struct spaces *spaces;
    const struct space_translation *translation;
    uint32_t *lives;
    uint32_t *space_numbers;
    uint32_t *roots;  /* + 1; by the old root: forked processes share them */
    uint32_t *epochs; /* 0: not met yet */
};

static uint32_t present_life(const struct spaces *spaces, uint32_t life) {
    return spaces->slots.items[spaces->lives.items[life].slot];
}

/* A thread is answered for only together with its process. */
static bool is_kept(const struct spaces *old, uint32_t life, uint64_t since) {
    uint32_t leader = old->lives.items[life].leader;
    return old->threads.items[life].end >= since && present_life(old, leader) == leader;
}

static void state_add(struct states *states, uint32_t owner, uint32_t first, uint32_t second) {
    vector_push(&states->list, ((struct state){owner, 1, {first, second}}));
}

static uint32_t copy_root(struct continuation *c, uint32_t root) {
    if (!c->roots[root])
        c->roots[root] = 1 + maps_copy(&c->spaces->maps, &c->old->maps, root,
                                       c->translation->object, c->translation->context);
    return c->roots[root] - 1;
}

static void copy_space(struct continuation *c, uint32_t from, uint32_t to) {
    struct space_now now = c->old->spaces.items[from];
    if (!now.root)
        return;
    uint32_t *counter = to ? &c->spaces->user_epochs : &c->spaces->kernel_epochs;
    uint32_t kernel = 0, *epoch = to ? &c->epochs[now.epoch] : &kernel;
    if (!*epoch && now.epoch)
        *epoch = (*counter)++;
    struct space_now copy = {copy_root(c, now.root), *epoch};
    c->spaces->spaces.items[to] = copy;
    state_add(&c->spaces->space_states, to, copy.root, copy.epoch);
}

static uint32_t space_number(struct continuation *c, uint32_t from) {
    struct spaces *spaces = c->spaces;
    if (c->space_numbers[from] == NONE) {
        c->space_numbers[from] = (uint32_t)spaces->spaces.count;
        vector_push(&spaces->spaces, (struct space_now){0});
        copy_space(c, from, c->space_numbers[from]);
    }
    return c->space_numbers[from];
}

static uint32_t copy_life(struct continuation *c, uint32_t from) {
    struct spaces *spaces = c->spaces;
    if (c->lives[from] != NONE)
        return c->lives[from];
    const struct life *old = &c->old->lives.items[from];
    uint32_t leader = old->leader == from ? NONE : copy_life(c, old->leader);
    uint32_t number = c->lives[from] = (uint32_t)spaces->lives.count;
    struct life life = {
        .leader = leader == NONE ? number : leader,
        .space = space_number(c, old->space),
        .comm = old->comm ? c->translation->comm(c->translation->context, old->comm) : 0,
        .slot = (uint32_t)spaces->slots.count,
    };
    vector_push(&spaces->lives, life);
    vector_push(&spaces->threads, c->old->threads.items[from]);
    vector_push(&spaces->slots, number);
    index_add(&spaces->by_tid, spaces_hash_tid(c->old->threads.items[from].tid), life.slot);
    state_add(&spaces->life_states, number, life.comm, life.space);
    state_add(&spaces->slot_states, life.slot, number, 0);
    return number;
}

struct spaces *spaces_continue(const struct spaces *old, uint64_t since,
                               const struct space_translation *translation) {
    assert(old->sealed && !old->quirks.threads_by_tid);
    struct spaces *spaces = spaces_new(NULL);
    struct continuation c = {.old = old, .spaces = spaces, .translation = translation};
    c.lives = memory_resize(NULL, old->lives.count + 1, sizeof *c.lives);
    c.space_numbers = memory_resize(NULL, old->spaces.count, sizeof *c.space_numbers);
    memset(c.lives, 0xff, (old->lives.count + 1) * sizeof *c.lives);
    memset(c.space_numbers, 0xff, old->spaces.count * sizeof *c.space_numbers);
    c.roots = memory_zero(old->maps.nodes.count + 1, sizeof *c.roots);
    c.epochs = memory_zero(old->user_epochs + 1, sizeof *c.epochs);
    vector_push(&spaces->keys, (struct key){0}); /* the one ordinal of all that was before */
    copy_space(&c, 0, 0);
    for (size_t slot = 1; slot < old->slots.count; slot++)
        if (is_kept(old, old->slots.items[slot], since))
            copy_life(&c, old->slots.items[slot]);
    free(c.lives);
    free(c.space_numbers);
    free(c.roots);
    free(c.epochs);
    return spaces;
}
