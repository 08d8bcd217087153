/*
 * Threads for one job at a time. Items are handed out by a counter, in order, so that ordered writers never wait for
 * an item that has not been started.
 */
#include "base/base.h"

#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct parallel {
    atomic_size_t next;
    size_t items;
    void (*run)(void *context, unsigned worker, size_t item);
    void *context;
    locale_t locale; /* the caller's, so that numbers have the same form in every thread */
};

struct parallel_worker {
    struct parallel *parallel;
    unsigned number;
    pthread_t thread;
};

static void *parallel_work(void *argument) {
    struct parallel_worker *worker = argument;
    struct parallel *parallel = worker->parallel;
    uselocale(parallel->locale);
    for (size_t item; (item = atomic_fetch_add(&parallel->next, 1)) < parallel->items;)
        parallel->run(parallel->context, worker->number, item);
    return NULL;
}

/* If a thread can't be started, the work is only slower: the caller's thread does the remaining items. */
void parallel_run(unsigned threads, size_t items,
                  void (*run)(void *context, unsigned worker, size_t item), void *context) {
    struct parallel parallel = {
        .items = items, .run = run, .context = context, .locale = uselocale((locale_t)0)};
    if (threads > items)
        threads = (unsigned)items;
    if (threads < 1)
        threads = 1;
    struct parallel_worker *workers = memory_zero(threads, sizeof *workers);
    unsigned started = 1;
    for (; started < threads; started++) {
        workers[started] = (struct parallel_worker){.parallel = &parallel, .number = started};
        if (pthread_create(&workers[started].thread, NULL, parallel_work, &workers[started]) != 0)
            break;
    }
    workers[0] = (struct parallel_worker){.parallel = &parallel};
    parallel_work(&workers[0]);
    for (unsigned i = 1; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    free(workers);
}

void lock_init_brief(pthread_mutex_t *lock) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

unsigned context_threads(const struct context *context) {
    return context && context->threads ? context->threads : parallel_default();
}

unsigned parallel_default(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (unsigned)CPU_COUNT(&set);
    return 1;
}
