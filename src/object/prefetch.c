/*
 * Read objects' tables ahead: an idle thread takes the next request from the queue.
 *
 * If files come from servers, dedicated threads fetch them; they wait for the network, so there may be more of them than CPUs. The kernel's
 * list has a thread of its own, too: the kernel takes some 40 ms to print it, longer than everything else in a small recording.
 *
 * A thread that needs a table meanwhile waits at the object's lock, as with any concurrent lookup.
 */
#include "object/internal.h"

#include <stdlib.h>

struct wish {
    struct object *object;
    uint64_t address;
    bool inlines;
};

enum { FETCHERS_MOST = 8 };

struct prefetcher {
    pthread_mutex_t lock;
    struct object
        *kernel; /* for the thread that reads its list: the table of objects may grow meanwhile */
    VECTOR(struct wish) wishes;
    size_t taken;
    VECTOR(pthread_t) fetchers; /* to be joined */
    unsigned fetching;          /* of these, so many still take wishes */
};

struct prefetcher *prefetcher_new(void) {
    struct prefetcher *p = memory_zero(1, sizeof *p);
    lock_init_brief(&p->lock);
    return p;
}

static void prefetcher_wish(struct prefetcher *p, const struct wish *wish) {
    pthread_mutex_lock(&p->lock);
    vector_push(&p->wishes, *wish);
    pthread_mutex_unlock(&p->lock);
}

static void *fetcher_main(void *context) {
    struct objects *objects = context;
    struct prefetcher *p = objects->prefetcher;
    objects_read_ahead(objects);
    pthread_mutex_lock(&p->lock);
    p->fetching--;
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Write what was read to the cache at once, while other threads draw. */
static void *kernel_main(void *context) {
    struct objects *objects = context;
    struct object *kernel = objects->prefetcher->kernel;
    object_symbols(objects, kernel);
    kernel_store_running(objects, kernel);
    return fetcher_main(context);
}

bool objects_fetch(const struct objects *objects) {
    return objects->options.debuginfod.net != NULL;
}

/* If all threads are busy, the next idle one takes the request, or the thread that needs the table. */
static bool prefetcher_fetch(struct objects *objects, void *(*run)(void *)) {
    struct prefetcher *p = objects->prefetcher;
    pthread_t thread;
    pthread_mutex_lock(&p->lock);
    bool started = p->fetching < FETCHERS_MOST && pthread_create(&thread, NULL, run, objects) == 0;
    if (started) {
        vector_push(&p->fetchers, thread);
        p->fetching++;
    }
    pthread_mutex_unlock(&p->lock);
    return started;
}

static bool is_first_wish(struct object *object) {
    return !__atomic_load_n(&object->prefetched, __ATOMIC_RELAXED) &&
           !__atomic_exchange_n(&object->prefetched, true, __ATOMIC_RELAXED);
}

void objects_prefetch(struct objects *objects, uint32_t id, uint64_t address, bool inlines) {
    struct object *object = objects_object(objects, id);
    if (is_first_wish(object)) {
        prefetcher_wish(objects->prefetcher, &(struct wish){object, address, inlines});
        if (objects_fetch(objects))
            prefetcher_fetch(objects, fetcher_main);
    }
}

void objects_prefetch_kernel(struct objects *objects) {
    struct object *kernel = objects->kernel ? objects_object(objects, objects->kernel) : NULL;
    if (!kernel || !is_first_wish(kernel))
        return;
    objects->prefetcher->kernel = kernel;
    if ((context_threads(objects->options.context) == 1 || !prefetcher_fetch(objects, kernel_main)))
        prefetcher_wish(objects->prefetcher, &(struct wish){.object = kernel});
}

static bool prefetcher_take(struct prefetcher *p, struct wish *wish) {
    pthread_mutex_lock(&p->lock);
    bool any = p->taken < p->wishes.count;
    if (any)
        *wish = p->wishes.items[p->taken++];
    pthread_mutex_unlock(&p->lock);
    return any;
}

void objects_read_ahead(struct objects *objects) {
    for (struct wish wish; prefetcher_take(objects->prefetcher, &wish);) {
        object_symbols(objects, wish.object);
        if (wish.inlines)
            object_prefetch_inlines(objects, wish.object, wish.address);
    }
}

void prefetcher_wait(struct prefetcher *p) {
    for (size_t i = 0; i < p->fetchers.count; i++)
        pthread_join(p->fetchers.items[i], NULL);
    p->fetchers.count = 0;
}

void prefetcher_free(struct prefetcher *p) {
    prefetcher_wait(p);
    vector_release(&p->fetchers);
    pthread_mutex_destroy(&p->lock);
    vector_release(&p->wishes);
    free(p);
}
