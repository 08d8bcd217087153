/*
 * Objects' tables read ahead: whoever has time takes the next that somebody wished for.
 *
 * Where files come from servers, threads that do nothing else take them: they wait for the network, so that there may be more of them than CPUs.
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

enum { FETCHERS_MOST = 8 };

struct prefetcher {
    pthread_mutex_t lock;
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

bool objects_fetch(const struct objects *objects) {
    return objects->options.debuginfod.net != NULL;
}

/* A wish that finds all of them busy is taken by the next that is not, or by whoever needs it. */
static void prefetcher_fetch(struct objects *objects) {
    struct prefetcher *p = objects->prefetcher;
    pthread_t thread;
    pthread_mutex_lock(&p->lock);
    if (p->fetching < FETCHERS_MOST && pthread_create(&thread, NULL, fetcher_main, objects) == 0) {
        vector_push(&p->fetchers, thread);
        p->fetching++;
    }
    pthread_mutex_unlock(&p->lock);
}

void objects_prefetch(struct objects *objects, uint32_t id, uint64_t address, bool inlines) {
    struct object *object = objects_object(objects, id);
    if (!__atomic_load_n(&object->prefetched, __ATOMIC_RELAXED) &&
        !__atomic_exchange_n(&object->prefetched, true, __ATOMIC_RELAXED)) {
        prefetcher_wish(objects->prefetcher, &(struct wish){object, address, inlines});
        if (objects_fetch(objects))
            prefetcher_fetch(objects);
    }
}

void objects_prefetch_kernel(struct objects *objects) {
    if (objects->kernel)
        objects_prefetch(objects, objects->kernel, 0, false);
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

void prefetcher_free(struct prefetcher *p) {
    for (size_t i = 0; i < p->fetchers.count; i++)
        pthread_join(p->fetchers.items[i], NULL);
    vector_release(&p->fetchers);
    pthread_mutex_destroy(&p->lock);
    vector_release(&p->wishes);
    free(p);
}
