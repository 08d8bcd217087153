/*
 * Workers: children that keep one profile each and answer questions about it. There are as many as threads that use
 * them; the least recently used one is replaced.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "serve/http/server.h"

enum { ANSWER_MOST = 64 << 20 };

struct worker {
    char *name;
    uint64_t mark;
    struct child child; /* none: the slot is free */
    bool busy;
    int64_t asked;
};

struct workers {
    const struct server *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct worker slots[JOBS];
};

struct workers *workers_new(const struct server *server) {
    struct workers *workers = memory_zero(1, sizeof *workers);
    workers->server = server;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->changed, NULL);
    return workers;
}

static void worker_end(struct worker *worker) {
    child_end(&worker->child, true);
    free(worker->name);
    worker->name = NULL;
}

void workers_free(struct workers *workers) {
    for (size_t i = 0; i < JOBS; i++)
        worker_end(&workers->slots[i]);
    pthread_mutex_destroy(&workers->lock);
    pthread_cond_destroy(&workers->changed);
    free(workers);
}

/* Return this profile's worker, else a free slot, else the least recently used one; NULL if this profile's worker is
   busy, or all are. */
static struct worker *choose(struct workers *workers, const char *name, uint64_t mark) {
    struct worker *best = NULL;
    for (size_t i = 0; i < JOBS; i++) {
        struct worker *worker = &workers->slots[i];
        if (worker->name && strcmp(worker->name, name) == 0 && worker->mark == mark)
            return worker->busy ? NULL : worker;
        if (!worker->busy &&
            (!best || (best->name && (!worker->name || worker->asked < best->asked))))
            best = worker;
    }
    return best;
}

static bool start(struct workers *workers, struct worker *worker, const struct worker_of *of) {
    const char *words[] = {workers->server->wick, "serve", of->mode, of->operand, NULL};
    worker->name = memory_copy(of->name, strlen(of->name));
    return child_start(workers->server, &worker->child, words, &of->descriptor,
                       of->descriptor >= 0);
}

static bool send_all(int descriptor, struct text text) {
    while (text.length) {
        ssize_t size = write(descriptor, text.data, text.length);
        if (size < 0 && errno != EINTR)
            return false;
        text = text_from(text, size > 0 ? (size_t)size : 0);
    }
    return true;
}

/* Read "200 1234\n" byte by byte: it is short. */
static int read_head(const struct server *server, struct child *child, int64_t end,
                     uint64_t *length) {
    char line[40];
    uint64_t status;
    size_t count = 0;
    while (count < sizeof line) {
        if (child_read(server, child->out, line + count, 1, end) != 1)
            return 0;
        if (line[count] == '\n')
            break;
        count++;
    }
    struct text text = {line, count};
    size_t space = text_find(text, ' ');
    bool fine = space != SIZE_MAX && text_to_u64(text_upto(text, space), &status) &&
                text_to_u64(text_from(text, space + 1), length) && status >= 200 && status < 600 &&
                *length <= ANSWER_MOST;
    return fine ? (int)status : 0;
}

/* Read the answer; return 0 if the worker is no longer usable. */
static int ask(const struct server *server, struct child *child, struct text question,
               struct buffer *body) {
    int64_t end = milliseconds() + (int64_t)server->timeout * 1000;
    uint64_t left = 0;
    int status = send_all(child->in, question) ? read_head(server, child, end, &left) : 0;
    char piece[65536];
    while (status && left) {
        ssize_t size = child_read(server, child->out, piece,
                                  left < sizeof piece ? (size_t)left : sizeof piece, end);
        if (size <= 0)
            return 0;
        buffer_add(body, (struct text){piece, (size_t)size});
        left -= (uint64_t)size;
    }
    return status;
}

/* Report what it printed before it ended, or that it is late. */
static int failed(const struct server *server, struct child *child, struct buffer *body) {
    char said[2000];
    ssize_t size = child_read(server, child->err, said, sizeof said - 1, milliseconds() + 100);
    while (size > 0 && (said[size - 1] == '\n'))
        size--;
    said[size > 0 ? size : 0] = 0;
    return answer_error(
        body, size > 0 ? 422 : 504,
        size > 0 ? said : "the answer took longer than --timeout allows, or the reader was ended");
}

int workers_ask(struct workers *workers, const struct worker_of *of, struct text question,
                struct buffer *body) {
    struct worker *worker;
    int status;
    pthread_mutex_lock(&workers->lock);
    while (!(worker = choose(workers, of->name, of->mark)))
        pthread_cond_wait(&workers->changed, &workers->lock);
    bool known = worker->name && strcmp(worker->name, of->name) == 0 && worker->mark == of->mark;
    worker->busy = true;
    worker->asked = milliseconds();
    if (!known) {
        worker_end(worker);
        worker->mark = of->mark;
        known = start(workers, worker, of);
    }
    pthread_mutex_unlock(&workers->lock);
    status = known ? ask(workers->server, &worker->child, question, body) : 0;
    bool useless = !status;
    if (useless)
        status = known ? failed(workers->server, &worker->child, body)
                       : answer_error(body, 503, "wick could not be started to read this profile");
    pthread_mutex_lock(&workers->lock);
    if (useless)
        worker_end(worker);
    worker->busy = false;
    pthread_cond_broadcast(&workers->changed);
    pthread_mutex_unlock(&workers->lock);
    if (of->descriptor >= 0)
        close(of->descriptor);
    return status;
}
