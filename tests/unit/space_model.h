/*
 * A model of address spaces that is too simple to be wrong, and a check of the real ones against it.
 *
 * The address space has 31 cells between 32 boundaries, 0 and UINT64_MAX among them; a space is an array of cells, fork copies the array,
 * and every question is asked after every operation, then all of them again in another order. Bytes become operations, so
 * that the unit test (random bytes) and the fuzzer share all of it. What does not agree is an assertion.
 */
#ifndef WICK_SPACE_MODEL_H
#define WICK_SPACE_MODEL_H

#include "space/space.h"

#include <stdio.h>
#include <stdlib.h>

enum { BOUNDARIES = 32, CELLS = BOUNDARIES - 1, IDS = 6, OPERATIONS = 64, SPACES = 8 * OPERATIONS };

struct model_cell {
    uint32_t object; /* 0: nothing mapped */
    bool executable;
    uint64_t shift; /* file offset - address */
};

struct model_space {
    struct model_cell cells[CELLS];
};

/* Threads by tid + 1. A process is known by the generation of its first thread. */
struct model_thread {
    bool known;
    int32_t pid;
    uint32_t comm;
    uint32_t space;
    uint32_t life;
    uint32_t generation; /* of the process when it was made */
};

struct model {
    bool compat;
    struct model_space spaces[SPACES]; /* [0] is the kernel's */
    uint32_t space_count;
    struct model_thread threads[IDS];
    uint32_t generations[IDS]; /* by pid + 1; 0: no such process */
    uint32_t lives;
    uint32_t made; /* generations so far */
    uint64_t ends[SPACES];
};

/* A question and its answer, to be asked again. */
struct model_answer {
    struct key key;
    int32_t pid;
    int32_t tid;
    struct space_at at;
};

#define MODEL_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static uint64_t model_boundary(unsigned i) {
    static const uint64_t odd[] = {0, 1, 2, 0x1000, 0x400000, UINT64_C(1) << 32};
    if (i < COUNT_OF(odd))
        return odd[i];
    if (i >= BOUNDARIES - 4)
        return UINT64_MAX - (BOUNDARIES - 1 - i);
    return (UINT64_C(1) << 63) - 0x8000 + 0x1000 * (uint64_t)i;
}

/* ---- threads and processes ---- */

static struct model_thread *model_thread(struct model *m, int32_t tid) {
    return &m->threads[tid + 1];
}

static uint32_t model_space_new(struct model *m) {
    MODEL_CHECK(m->space_count < SPACES);
    memset(&m->spaces[m->space_count], 0, sizeof m->spaces[0]);
    return m->space_count++;
}

static struct model_thread *model_need(struct model *m, int32_t pid, int32_t tid);

static struct model_thread *model_create(struct model *m, int32_t pid, int32_t tid) {
    uint32_t shared = 0;
    if (pid != tid && pid != -1)
        shared = model_need(m, pid, pid)->space;
    m->generations[tid + 1] = pid == tid ? ++m->made : 0;
    m->ends[m->lives] = UINT64_MAX;
    *model_thread(m, tid) = (struct model_thread){
        .known = true,
        .pid = pid,
        .space = shared ? shared : model_space_new(m),
        .life = m->lives++,
        .generation = pid == -1 ? 0 : m->generations[pid + 1],
    };
    return model_thread(m, tid);
}

/* Is it the thread that (pid, tid) names? */
static bool model_fits(struct model *m, int32_t pid, int32_t tid) {
    struct model_thread *t = model_thread(m, tid);
    if (!t->known || pid == -1 || m->compat)
        return t->known;
    return t->pid == pid && t->generation && t->generation == m->generations[pid + 1];
}

static bool model_find(struct model *m, int32_t pid, int32_t tid) {
    struct model_thread old = *model_thread(m, tid);
    if (!old.known || old.pid != -1 || pid == -1)
        return model_fits(m, pid, tid);
    struct model_thread *t = model_create(m, pid, tid);
    t->comm = old.comm;
    if (pid == tid)
        t->space = old.space;
    return true;
}

static struct model_thread *model_need(struct model *m, int32_t pid, int32_t tid) {
    return model_find(m, pid, tid) ? model_thread(m, tid) : model_create(m, pid, tid);
}

static bool model_empty(const struct model_space *space) {
    for (unsigned i = 0; i < CELLS; i++)
        if (space->cells[i].object)
            return false;
    return true;
}

static void model_fork(struct model *m, int32_t pid, int32_t tid, int32_t parent_pid,
                       int32_t parent_tid, bool synthesized) {
    bool existed = m->compat && model_find(m, pid, tid);
    struct model_thread *parent = model_need(m, parent_pid, parent_tid);
    if (!m->compat && tid == parent_tid && pid == parent_pid)
        return;
    if (m->compat && parent->pid != parent_pid)
        parent = model_create(m, parent_pid, parent_tid);
    struct model_thread from = *parent;
    struct model_thread *child =
        m->compat && !existed ? model_need(m, pid, tid) : model_create(m, pid, tid);
    child->comm = from.comm;
    if (pid != parent_pid && !synthesized && model_empty(&m->spaces[child->space]))
        m->spaces[child->space] = m->spaces[from.space];
}

static void model_fill(struct model_space *space, unsigned from, unsigned to,
                       struct model_cell cell) {
    for (unsigned i = from; i < to; i++)
        space->cells[i] = cell;
}

/* ---- questions ---- */

/* The space of a process that a sample names, without changing anything; 0 when there is none. */
static uint32_t model_home(struct model *m, int32_t pid) {
    struct model_thread *leader = model_thread(m, pid);
    if (pid == -1 || !leader->known)
        return 0;
    return m->compat || leader->pid == -1 || m->generations[pid + 1] ? leader->space : 0;
}

static void model_ask(struct model *m, int32_t pid, int32_t tid, struct model_thread **thread,
                      uint32_t *space) {
    struct model_thread *t = model_thread(m, tid);
    bool homeless = t->known && t->pid == -1 && pid != -1;
    *thread = homeless || model_fits(m, pid, tid) ? t : NULL;
    *space = *thread && (!homeless || pid == tid) ? t->space : model_home(m, pid);
}

static void model_check_cells(const struct spaces *spaces, uint32_t root,
                              const struct model_space *space) {
    for (unsigned i = 0; i < CELLS; i++) {
        const struct model_cell *cell = &space->cells[i];
        uint64_t ends[2] = {model_boundary(i), model_boundary(i + 1) - 1};
        for (unsigned e = 0; e < 2; e++) {
            const struct mapping *found = space_find(spaces, root, ends[e]);
            MODEL_CHECK(!found == !cell->object);
            if (!found)
                continue;
            MODEL_CHECK(found->object == cell->object && found->executable == cell->executable);
            MODEL_CHECK(found->offset - found->start == cell->shift);
            MODEL_CHECK(found->start <= ends[e] && ends[e] < found->end);
        }
    }
    MODEL_CHECK(!space_find(spaces, root, UINT64_MAX));
}

struct model_walk {
    const struct spaces *spaces;
    uint32_t root;
    uint64_t end;
};

static void model_each(void *context, const struct mapping *mapping) {
    struct model_walk *walk = context;
    MODEL_CHECK(mapping->start < mapping->end && mapping->start >= walk->end);
    MODEL_CHECK(space_find(walk->spaces, walk->root, mapping->start) == mapping);
    walk->end = mapping->end;
}

/* What an epoch must tell apart: the executable cells; for perf, which looks at all, all. */
static uint64_t model_meaning(const struct model *m, uint32_t space) {
    struct model_space seen = m->spaces[space];
    for (unsigned i = 0; i < CELLS; i++) {
        struct model_cell cell = seen.cells[i];
        memset(&seen.cells[i], 0, sizeof cell);
        if (cell.object && (cell.executable || m->compat)) {
            seen.cells[i].object = cell.object;
            seen.cells[i].executable = cell.executable;
            seen.cells[i].shift = cell.shift;
        }
    }
    return hash_bytes(&seen, sizeof seen);
}

/* ---- operations ---- */

struct model_bytes {
    const uint8_t *data;
    size_t left;
};

static unsigned model_byte(struct model_bytes *bytes) {
    if (!bytes->left)
        return 0;
    bytes->left--;
    return *bytes->data++;
}

struct model_operation {
    struct key key;
    unsigned kind;
    int32_t pid, tid, parent_pid, parent_tid;
    unsigned from, to;
    struct mapping mapping;
    uint32_t comm;
    bool flag;
};

static struct model_operation model_decode(struct model_bytes *bytes, uint64_t *time,
                                           uint64_t offset) {
    struct model_operation op = {.kind = model_byte(bytes)};
    unsigned ids = model_byte(bytes), more = model_byte(bytes), what = model_byte(bytes);
    op.pid = (int32_t)(ids % IDS) - 1;
    op.tid = what & 1 ? op.pid : (int32_t)(ids / IDS % IDS) - 1;
    op.parent_pid = (int32_t)(more % IDS) - 1;
    op.parent_tid = what & 2 ? op.parent_pid : (int32_t)(more / IDS % IDS) - 1;
    op.from = more & 31;
    op.to = (more >> 5 | (ids >> 6) << 3) & 31;
    if (op.to < op.from && what & 4) {
        unsigned swapped = op.to;
        op.to = op.from;
        op.from = swapped;
    }
    uint64_t start = model_boundary(op.from);
    op.mapping = (struct mapping){start, model_boundary(op.to), what & 8 ? start : what & 0x30,
                                  1 + (what >> 6 & 1), what >> 7 & 1};
    op.comm = 1 + (more >> 5 & 3);
    op.flag = what >> 2 & 1;
    *time += op.kind >> 6; /* equal times are common */
    op.key = (struct key){.time = *time, .offset = offset};
    op.kind &= 15;
    return op;
}

static void model_apply_mmap(struct model *m, const struct model_operation *op, bool unmap) {
    uint32_t space =
        op->pid == -1 ? 0 : model_need(m, op->pid, m->compat ? op->tid : op->pid)->space;
    struct model_cell cell = {op->mapping.object, op->mapping.executable,
                              op->mapping.offset - op->mapping.start};
    if (unmap)
        cell = (struct model_cell){0};
    model_fill(&m->spaces[space], op->from, op->to, cell);
}

static void model_apply(struct model *m, const struct model_operation *op) {
    if (op->kind < 8 || op->kind == 8) {
        model_apply_mmap(m, op, op->kind == 8);
    } else if (op->kind < 12) {
        model_fork(m, op->pid, op->tid, op->parent_pid, op->parent_tid, op->flag);
    } else if (op->kind < 15) {
        struct model_thread *t = model_need(m, op->pid, op->tid);
        t->comm = op->comm;
        if (op->flag && !m->compat)
            memset(&m->spaces[t->space], 0, sizeof m->spaces[0]);
    } else if (model_find(m, op->pid, op->tid)) {
        uint64_t *end = &m->ends[model_thread(m, op->tid)->life];
        *end = *end == UINT64_MAX ? op->key.time : *end;
    }
}

static void model_apply_real(struct spaces *spaces, const struct model_operation *op) {
    if (op->kind < 8)
        spaces_mmap(spaces, &op->key, op->pid, op->tid, &op->mapping);
    else if (op->kind == 8)
        spaces_unmap(spaces, &op->key, op->pid, op->tid, op->mapping.start, op->mapping.end);
    else if (op->kind < 12)
        spaces_fork(spaces, &op->key, op->pid, op->tid, op->parent_pid, op->parent_tid, op->flag);
    else if (op->kind < 15)
        spaces_comm(spaces, &op->key, op->pid, op->tid, op->comm, op->flag);
    else
        spaces_exit(spaces, &op->key, op->pid, op->tid);
}

/* ---- the check ---- */

struct model_run {
    struct model model;
    struct spaces *spaces;
    struct space_cursor cursor;
    VECTOR(struct model_answer) answers;
    uint64_t meanings[2][8 * OPERATIONS]; /* of each epoch, kernel's and processes' */
    bool met[2][8 * OPERATIONS];
    uint32_t numbers[SPACES]; /* of each life, + 1 */
};

/* An epoch has one meaning. */
static void model_check_epoch(struct model_run *run, unsigned kind, uint32_t epoch,
                              uint32_t space) {
    MODEL_CHECK(epoch < COUNT_OF(run->met[0]));
    uint64_t meaning = model_meaning(&run->model, space);
    MODEL_CHECK(!run->met[kind][epoch] || run->meanings[kind][epoch] == meaning);
    run->met[kind][epoch] = true;
    run->meanings[kind][epoch] = meaning;
}

static void model_check_thread(struct model_run *run, const struct space_at *at,
                               const struct model_thread *t, int32_t tid) {
    MODEL_CHECK((at->thread == UINT32_MAX) == !t);
    MODEL_CHECK(at->comm == (t ? t->comm : 0));
    if (!t)
        return;
    const struct space_thread *thread = spaces_thread(run->spaces, at->thread);
    MODEL_CHECK(thread->pid == t->pid && thread->tid == tid);
    MODEL_CHECK(!run->numbers[t->life] || run->numbers[t->life] == at->thread + 1);
    run->numbers[t->life] = at->thread + 1;
}

static void model_check_moment(struct model_run *run, struct key key) {
    struct space_at checked = {0}; /* the same space need not be looked through again and again */
    uint32_t checked_space = 0;
    for (int32_t pid = -1; pid < IDS - 1; pid++) {
        for (int32_t tid = -1; tid < IDS - 1; tid++) {
            struct model_thread *thread;
            uint32_t space;
            struct space_at at;
            model_ask(&run->model, pid, tid, &thread, &space);
            spaces_at(run->spaces, &run->cursor, pid, tid, &key, &at);
            model_check_thread(run, &at, thread, tid);
            MODEL_CHECK(space || (at.user == 0 && (uint32_t)at.epochs == 0));
            if (space && (at.user != checked.user || at.epochs != checked.epochs ||
                          space != checked_space)) {
                model_check_cells(run->spaces, at.user, &run->model.spaces[space]);
                model_check_epoch(run, 0, (uint32_t)at.epochs, space);
                checked = at;
                checked_space = space;
            }
            vector_push(&run->answers, ((struct model_answer){key, pid, tid, at}));
        }
    }
    struct space_at at = run->answers.items[run->answers.count - 1].at;
    model_check_cells(run->spaces, at.kernel, &run->model.spaces[0]);
    model_check_epoch(run, 1, (uint32_t)(at.epochs >> 32), 0);
    struct model_walk walk = {run->spaces, at.user, 0};
    space_each(run->spaces, at.user, model_each, &walk);
}

static void model_check_answer(struct model_run *run, struct space_cursor *cursor, size_t i) {
    struct model_answer *answer = &run->answers.items[i];
    struct space_at again;
    spaces_at(run->spaces, cursor, answer->pid, answer->tid, &answer->key, &again);
    MODEL_CHECK(memcmp(&again, &answer->at, sizeof again) == 0);
}

/* The same thread at all moments, so that the cursor's memory is used; forwards, backwards, and in leaps. */
static void model_check_again(struct model_run *run) {
    struct space_cursor cursor = {0};
    size_t who = IDS * IDS, moments = run->answers.count / who;
    for (size_t i = 0; i < who; i++) {
        for (size_t m = 0; m < moments; m++)
            model_check_answer(run, &cursor, m * who + i);
        for (size_t m = moments; m-- > 0;)
            model_check_answer(run, &cursor, m * who + i);
        for (size_t m = 0; m < moments; m++)
            model_check_answer(run, &cursor, m * 7 % moments * who + i);
    }
}

static void model_check_ends(struct model_run *run) {
    for (uint32_t life = 0; life < run->model.lives; life++)
        if (run->numbers[life])
            MODEL_CHECK(spaces_thread(run->spaces, run->numbers[life] - 1)->end ==
                        run->model.ends[life]);
}

/* Bytes become operations on both; then both are asked, after each operation that has a moment of its own. */
static void model_run(const uint8_t *data, size_t size) {
    struct model_bytes bytes = {data, size};
    struct model_run *run = memory_zero(1, sizeof *run);
    struct model_operation *ops = memory_zero(OPERATIONS, sizeof *ops);
    bool compat = model_byte(&bytes) & 1;
    size_t count = 0;
    uint64_t time = 0;
    for (; bytes.left && count < OPERATIONS; count++)
        ops[count] = model_decode(&bytes, &time, 16 + 16 * count);
    run->model.compat = compat;
    run->model.space_count = 1;
    run->spaces = spaces_new(compat ? &quirks_perf : NULL);
    for (size_t i = 0; i < count; i++)
        model_apply_real(run->spaces, &ops[i]);
    spaces_seal(run->spaces);
    model_check_moment(run, (struct key){0});
    for (size_t i = 0; i < count; i++) {
        model_apply(&run->model, &ops[i]);
        struct key key = ops[i].key;
        key.offset += 1 + i % 15;
        model_check_moment(run, key);
    }
    model_check_ends(run);
    model_check_again(run);
    spaces_free(run->spaces);
    vector_release(&run->answers);
    free(ops);
    free(run);
}

#endif
