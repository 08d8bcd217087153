/*
 * Objects' tables read beside other work, by one thread that is started when there is something to read and ended with the objects.
 *
 * Whoever needs a table meanwhile waits for it at the object's own lock, as if two threads had asked.
 */
#include "object/internal.h"

#include <stdlib.h>

struct wish {
    struct object *object;
    bool inlines;
};

struct prefetcher {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    VECTOR(struct wish) wishes;
    size_t done;
    bool ending;
};

static void *prefetcher_run(void *argument) {
    struct objects *objects = argument;
    struct prefetcher *p = objects->prefetcher;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->done == p->wishes.count && !p->ending)
            pthread_cond_wait(&p->changed, &p->lock);
        if (p->ending)
            break;
        struct wish wish = p->wishes.items[p->done++];
        pthread_mutex_unlock(&p->lock);
        object_symbols(objects, wish.object);
        if (wish.inlines)
            object_index_inlines(objects, wish.object);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Without a thread nothing is read ahead, and nothing is lost. */
static struct prefetcher *prefetcher_new(struct objects *objects) {
    struct prefetcher *p = objects->prefetcher = memory_zero(1, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    if (pthread_create(&p->thread, NULL, prefetcher_run, objects) != 0)
        p->ending = true;
    return p;
}

void objects_prefetch(struct objects *objects, uint32_t id, bool inlines) {
    struct prefetcher *p = objects->prefetcher ? objects->prefetcher : prefetcher_new(objects);
    if (p->ending)
        return;
    pthread_mutex_lock(&p->lock);
    vector_push(&p->wishes, ((struct wish){objects_object(objects, id), inlines}));
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

void objects_prefetch_kernel(struct objects *objects) {
    if (objects->kernel)
        objects_prefetch(objects, objects->kernel, false);
}

void prefetcher_free(struct prefetcher *p) {
    if (!p)
        return;
    if (!p->ending) {
        pthread_mutex_lock(&p->lock);
        p->ending = true;
        pthread_cond_signal(&p->changed);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    vector_release(&p->wishes);
    free(p);
}
