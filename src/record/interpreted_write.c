/*
 * Write stacks of interpreters to the recording (docs/carrier.md): functions by number, and of each stack only the difference from the
 * thread's previous one.
 *
 * A window (windows.c) is a file of its own: it contains the functions of its stacks, and the stacks of its time. The times of a sample and
 * its stack differ by some microseconds, so a stack near the boundary goes to both windows.
 */
#include "record/windows.h"

#include <stdlib.h>

#include "record/interpreted.h"

static const struct note_kind note_too_many = {
    "interpreted-dropped",
    "# function{|s} of interpreters {has|have} no name: a recording holds at most a million"};

enum { WRITE_FROM = 256 << 10, FUNCTIONS_MOST = 1 << 20, APART_MOST = 1000000 /* nanoseconds */ };

struct known_function {
    uint32_t interpreter, name, file, line;
};

struct last_stack {
    uint32_t tid;
    uint32_t count;
    struct written_frame frames[STACK_FRAMES]; /* outermost first */
};

/* A stack that waits for its window; its frames follow. */
struct waiting_stack {
    uint64_t time;
    uint32_t pid, tid, end, count;
    uint64_t is_written; /* to the current window */
};

struct stack_writer {
    struct sink *sink;
    struct strings *names;
    VECTOR(struct known_function) functions; /* numbers are places + 1 */
    VECTOR(uint32_t) told;                   /* parallel to them: the file that has it; 0: none */
    struct index by_name;
    uint32_t file; /* the number of the current file, from 1 */
    struct buffer new_functions, stacks;
    uint64_t first_time, last_time; /* of those stacks */
    VECTOR(struct last_stack *) last;
    struct index by_tid;
    struct buffer waiting; /* of a recording in windows */
};

struct stack_writer *stack_writer_new(struct sink *sink) {
    struct stack_writer *w = memory_zero(1, sizeof *w);
    w->sink = sink;
    w->names = strings_new();
    w->file = 1;
    return w;
}

static void forget_last(struct stack_writer *w) {
    for (size_t i = 0; i < w->last.count; i++)
        free(w->last.items[i]);
    w->last.count = 0;
    index_release(&w->by_tid);
}

void stack_writer_free(struct stack_writer *w) {
    forget_last(w);
    vector_release(&w->last);
    strings_free(w->names);
    vector_release(&w->functions);
    vector_release(&w->told);
    index_release(&w->by_name);
    buffer_release(&w->new_functions);
    buffer_release(&w->stacks);
    buffer_release(&w->waiting);
    free(w);
}

/* ---- functions ---- */

uint32_t stack_writer_function(struct stack_writer *w, enum interpreter interpreter,
                               struct text name, struct text file, uint32_t line) {
    struct known_function function = {interpreter, strings_add(w->names, name),
                                      strings_add(w->names, file), line};
    uint64_t hash = hash_bytes(&function, sizeof function);
    uint32_t number;
    for (struct probe p = index_probe(&w->by_name, hash); (number = index_next(&w->by_name, &p));)
        if (memcmp(&w->functions.items[number - 1], &function, sizeof function) == 0)
            return number;
    if (w->functions.count >= FUNCTIONS_MOST) {
        notes_add(&w->sink->result->notes, &note_too_many, 1, 0, NULL);
        return 0;
    }
    vector_push(&w->functions, function);
    vector_push(&w->told, 0);
    number = (uint32_t)w->functions.count;
    index_add(&w->by_name, hash, number);
    return number;
}

static void add_string(struct buffer *to, struct text t) {
    buffer_add(to, t);
    buffer_add_char(to, 0);
}

/* Write it once per file. */
static void tell_function(struct stack_writer *w, uint32_t number) {
    if (!number || w->told.items[number - 1] == w->file)
        return;
    const struct known_function *function = &w->functions.items[number - 1];
    enum interpreter interpreter = function->interpreter;
    struct text file = strings_get(w->names, function->file);
    w->told.items[number - 1] = w->file;
    buffer_put_u32(&w->new_functions, number);
    buffer_put_u32(&w->new_functions, function->line);
    add_string(&w->new_functions, text_of(interpreter_language(interpreter)));
    add_string(&w->new_functions, strings_get(w->names, function->name));
    add_string(&w->new_functions, file);
    add_string(&w->new_functions,
               interpreter == INTERPRETER_PYTHON ? python_package(file) : TEXT(""));
}

/* ---- stacks ---- */

static struct last_stack *last_of(struct stack_writer *w, uint32_t tid) {
    uint64_t hash = hash_mix(tid, 6);
    uint32_t number;
    for (struct probe p = index_probe(&w->by_tid, hash); (number = index_next(&w->by_tid, &p));)
        if (w->last.items[number - 1]->tid == tid)
            return w->last.items[number - 1];
    struct last_stack *fresh = memory_alloc(sizeof *fresh);
    fresh->tid = tid;
    fresh->count = 0;
    vector_push(&w->last, fresh);
    index_add(&w->by_tid, hash, (uint32_t)w->last.count);
    return fresh;
}

static void put_stack(struct stack_writer *w, const struct waiting_stack *stack,
                      const struct written_frame *frames) {
    struct last_stack *last = last_of(w, stack->tid);
    uint32_t shared = 0, count = stack->count;
    while (shared < count && shared < last->count &&
           memcmp(&last->frames[shared], &frames[shared], sizeof *frames) == 0)
        shared++;
    for (uint32_t i = shared; i < count; i++)
        tell_function(w, frames[i].function);
    memcpy(last->frames, frames, count * sizeof *frames);
    last->count = count;
    if (!w->stacks.count)
        w->first_time = w->last_time = stack->time;
    w->first_time = stack->time < w->first_time ? stack->time : w->first_time;
    w->last_time = stack->time > w->last_time ? stack->time : w->last_time;
    buffer_put_u64(&w->stacks, stack->time);
    buffer_put_u32(&w->stacks, stack->pid);
    buffer_put_u32(&w->stacks, stack->tid);
    buffer_put_u32(&w->stacks, stack->end);
    buffer_put_u32(&w->stacks, shared << 16 | (count - shared));
    buffer_add(&w->stacks,
               (struct text){(const char *)&frames[shared], (count - shared) * sizeof *frames});
}

void stack_writer_add(struct stack_writer *w, const struct raw_stack *raw,
                      const struct written_frame *frames) {
    struct waiting_stack stack = {raw->time, raw->pid, raw->tid, raw->end, raw->count, false};
    if (!w->sink->window) {
        put_stack(w, &stack, frames);
        return;
    }
    buffer_add(&w->waiting, (struct text){(const char *)&stack, sizeof stack});
    buffer_add(&w->waiting,
               (struct text){(const char *)frames, (size_t)stack.count * sizeof *frames});
}

/* ---- windows ---- */

/* Write stacks that are old enough; keep those that the next window may need. `ends`: the window is complete. */
static void put_waiting(struct stack_writer *w, uint64_t cut, bool ends) {
    struct waiting_stack stack;
    size_t kept = 0, size;
    for (size_t at = 0; at < w->waiting.count; at += size) {
        char *here = w->waiting.items + at;
        memcpy(&stack, here, sizeof stack);
        size = sizeof stack + stack.count * sizeof(struct written_frame);
        bool is_due = cut == UINT64_MAX || stack.time <= cut + APART_MOST;
        if (is_due && !stack.is_written)
            put_stack(w, &stack, (const struct written_frame *)(here + sizeof stack));
        if (cut == UINT64_MAX || stack.time + APART_MOST <= cut)
            continue;
        stack.is_written = is_due && !ends;
        memmove(w->waiting.items + kept, here, size);
        memcpy(w->waiting.items + kept, &stack, sizeof stack);
        kept += size;
    }
    w->waiting.count = kept;
}

/* ---- writing ---- */

static bool write_all(struct stack_writer *w, struct error *error) {
    uint64_t times[] = {w->first_time, w->last_time};
    bool fine = true;
    if (w->new_functions.count)
        fine = carrier_write(w->sink->writer, CARRIER_FUNCTIONS, TEXT(""),
                             buffer_text(&w->new_functions), error);
    if (fine && w->stacks.count)
        fine = carrier_write(w->sink->writer, CARRIER_STACKS,
                             (struct text){(const char *)times, sizeof times},
                             buffer_text(&w->stacks), error);
    w->new_functions.count = 0;
    w->stacks.count = 0;
    forget_last(w);
    return fine;
}

bool stack_writer_turn(struct stack_writer *w, struct error *error) {
    if (w->sink->window)
        put_waiting(w, w->sink->window->cut, false);
    return w->stacks.count < WRITE_FROM || write_all(w, error);
}

bool stack_writer_finish_window(struct stack_writer *w, struct error *error) {
    put_waiting(w, w->sink->window->cut, true);
    bool fine = write_all(w, error);
    w->file++;
    return fine;
}

bool stack_writer_finish(struct stack_writer *w, struct error *error) {
    return write_all(w, error);
}
