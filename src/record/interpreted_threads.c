/*
 * Write the names that a program gave its threads as the kernel would have: in a COMM.
 */
#include "record/interpreted.h"

#include <stdlib.h>

enum {
    THREADS_MOST = 1 << 16,
    BEFORE = 100000, /* nanoseconds: a stack and its sample may be this far apart */
};

static bool is_known(const struct named_threads *threads, uint64_t hash, uint32_t process,
                     uint32_t tid) {
    uint32_t number;
    for (struct probe p = index_probe(&threads->by_id, hash);
         (number = index_next(&threads->by_id, &p));) {
        const struct named_thread *thread = &threads->list.items[number - 1];
        if (thread->process == process && thread->tid == tid)
            return true;
    }
    return false;
}

/* Truncate the name as the kernel would, but not inside a character. */
static void set_name(struct named_thread *thread, struct text name) {
    size_t length = name.length;
    if (length >= sizeof thread->name)
        for (length = sizeof thread->name - 1; length && (name.data[length] & 0xc0) == 0x80;)
            length--;
    memcpy(thread->name, name.data, length);
}

void named_threads_saw(struct named_threads *threads, uint32_t process_number,
                       const struct interpreter_process *process, const struct raw_stack *stack) {
    uint64_t hash = hash_mix(stack->tid, process_number);
    if (!stack->root || stack->end != STACK_WHOLE || stack->tid == stack->pid ||
        threads->list.count >= THREADS_MOST || is_known(threads, hash, process_number, stack->tid))
        return;
    pid_t pid = (pid_t)stack->pid;
    struct remote remote = remote_process(&pid);
    struct buffer name = {0};
    struct named_thread thread = {.process = process_number,
                                  .pid = stack->pid,
                                  .tid = stack->tid,
                                  .since = stack->time > BEFORE ? stack->time - BEFORE : 0};
    if (interpreter_thread_name(&remote, process, stack->root, &name))
        set_name(&thread, buffer_text(&name));
    buffer_release(&name);
    vector_push(&threads->list, thread);
    index_add(&threads->by_id, hash, (uint32_t)threads->list.count);
}

bool named_threads_write(struct named_threads *threads, struct sink *sink, struct error *error) {
    uint64_t time = sink->time;
    bool fine = true;
    for (; fine && threads->written < threads->list.count; threads->written++) {
        const struct named_thread *thread = &threads->list.items[threads->written];
        sink->time = thread->since;
        fine = !thread->name[0] || synthesize_name(sink, (pid_t)thread->pid, (pid_t)thread->tid,
                                                   text_of(thread->name), false, error);
    }
    sink->time = time;
    return fine;
}

void named_threads_release(struct named_threads *threads) {
    vector_release(&threads->list);
    index_release(&threads->by_id);
}
