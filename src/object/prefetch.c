/*
 * Objects' tables read beside other work, by one thread that is started when there is something to read and ended with the objects.
 *
 * Whoever needs a table meanwhile waits for it at the object's own lock, as if two threads had asked.
 */
#include "object/internal.h"

#include <stdlib.h>

struct wish {
    struct object *object;
    uint64_t address;
    bool inlines;
};

struct prefetcher {
    struct objects *objects;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    VECTOR(struct wish) wishes;
    size_t done;
    bool started;
    bool ending;
};

static void *prefetcher_run(void *argument) {
    struct prefetcher *p = argument;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->done == p->wishes.count && !p->ending)
            pthread_cond_wait(&p->changed, &p->lock);
        if (p->ending)
            break;
        struct wish wish = p->wishes.items[p->done++];
        pthread_mutex_unlock(&p->lock);
        object_symbols(p->objects, wish.object);
        if (wish.inlines)
            object_prefetch_inlines(p->objects, wish.object, wish.address);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct prefetcher *prefetcher_new(struct objects *objects) {
    struct prefetcher *p = memory_zero(1, sizeof *p);
    p->objects = objects;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    return p;
}

/* Without a thread nothing is read ahead, and nothing is lost. */
static void prefetcher_wish(struct prefetcher *p, const struct wish *wish) {
    pthread_mutex_lock(&p->lock);
    if (!p->started)
        p->started = pthread_create(&p->thread, NULL, prefetcher_run, p) == 0;
    if (p->started) {
        vector_push(&p->wishes, *wish);
        pthread_cond_signal(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
}

void objects_prefetch(struct objects *objects, uint32_t id, uint64_t address, bool inlines) {
    struct object *object = objects_object(objects, id);
    if (!__atomic_load_n(&object->prefetched, __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&object->prefetched, true, __ATOMIC_RELAXED))
        prefetcher_wish(objects->prefetcher, &(struct wish){object, address, inlines});
}

void objects_prefetch_kernel(struct objects *objects) {
    if (objects->kernel)
        objects_prefetch(objects, objects->kernel, 0, false);
}

void prefetcher_free(struct prefetcher *p) {
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (p->started)
        pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    vector_release(&p->wishes);
    free(p);
}
