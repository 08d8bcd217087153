/*
 * Ordered output from many threads: a thread that has made an item waits for its turn to write it. At most one item
 * per thread is held, and the bytes are the same for any number of threads.
 */
#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>

struct writing {
    struct out *out;
    out_maker *make;
    void *job;
    const struct context *context;
    struct buffer_apart *buffers; /* one per worker */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    size_t turn; /* the item that may be written now */
    bool stop;
    struct error error; /* error of the first item that failed */
};

static bool writing_stopped(struct writing *writing) {
    pthread_mutex_lock(&writing->lock);
    bool stop = writing->stop;
    pthread_mutex_unlock(&writing->lock);
    return stop || context_cancelled(writing->context);
}

/* Wait for the item's turn, which always comes: items are handed out in order, and the oldest one never waits. */
static void writing_turn(struct writing *writing, size_t item, const struct buffer *buffer,
                         const struct error *error) {
    pthread_mutex_lock(&writing->lock);
    while (writing->turn != item)
        pthread_cond_wait(&writing->moved, &writing->lock);
    if (!writing->stop)
        out_write(writing->out, buffer->items, buffer->count);
    if (error->kind && !writing->stop)
        writing->error = *error;
    writing->stop |= error->kind || out_closed(writing->out);
    writing->turn++;
    pthread_cond_broadcast(&writing->moved);
    pthread_mutex_unlock(&writing->lock);
}

static void writing_item(void *argument, unsigned worker, size_t item) {
    struct writing *writing = argument;
    struct buffer *buffer = &writing->buffers[worker].buffer;
    struct error error = {0};
    buffer->count = 0;
    if (!writing_stopped(writing))
        writing->make(writing->job, worker, item, buffer, &error);
    writing_turn(writing, item, buffer, &error);
}

bool out_in_order(struct out *out, const struct context *context, unsigned threads, size_t items,
                  out_maker *make, void *job, struct error *error) {
    struct writing writing = {.out = out,
                              .make = make,
                              .job = job,
                              .context = context,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .moved = PTHREAD_COND_INITIALIZER};
    writing.buffers = memory_zero(threads, sizeof *writing.buffers);
    parallel_run(threads, items, writing_item, &writing);
    for (unsigned i = 0; i < threads; i++)
        buffer_release(&writing.buffers[i].buffer);
    free(writing.buffers);
    if (writing.error.kind && error)
        *error = writing.error;
    return !writing.error.kind;
}
