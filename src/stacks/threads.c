/*
 * Numbered threads: a pool's worker-0 … worker-31 are shown as one, not as thirty-two.
 */
#include <stdlib.h>

#include "stacks/stacks.h"

struct numbered {
    struct text prefix;
    int32_t pid, tid;
    uint32_t comm, series;
};

/* Python names a thread after what it runs, "Thread-12 (handle)", of which the kernel keeps 15 bytes: the number is what tells them apart. */
static size_t prefix_length(struct text comm) {
    size_t bracket = text_find(comm, '(');
    if (bracket != SIZE_MAX && bracket > 1 && comm.data[bracket - 1] == ' ')
        comm = text_upto(comm, bracket - 1);
    size_t length = comm.length;
    while (length && comm.data[length - 1] >= '0' && comm.data[length - 1] <= '9')
        length--;
    return length < comm.length && length <= UINT16_MAX ? length : 0;
}

static int same_pool(const struct numbered *x, const struct numbered *y) {
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return text_compare(x->prefix, y->prefix);
}

static int order(const void *a, const void *b) {
    const struct numbered *x = a, *y = b;
    int pool = same_pool(x, y);
    return pool ? pool : (x->series > y->series) - (x->series < y->series);
}

/* A thread that renames itself from one number to the next is one thread. */
static bool is_pool(const struct numbered *items, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (items[i].tid != items[0].tid && items[i].comm != items[0].comm)
            return true;
    return false;
}

uint16_t *numbered_threads(const struct tree *tree) {
    VECTOR(struct numbered) found = {0};
    uint16_t *lengths = NULL;
    for (uint32_t i = 1; i < tree->series.count; i++) {
        const struct series *series = &tree->series.items[i];
        const struct thread *thread = &tree->threads.items[series->thread];
        struct text comm = strings_get(tree->strings, series->comm);
        size_t length = prefix_length(comm);
        if (length && series->thread && thread->pid >= 0)
            vector_push(&found, ((struct numbered){text_upto(comm, length), thread->pid,
                                                   thread->tid, series->comm, i}));
    }
    if (found.count)
        qsort(found.items, found.count, sizeof *found.items, order);
    for (size_t from = 0, to; from < found.count; from = to) {
        for (to = from + 1; to < found.count && !same_pool(&found.items[from], &found.items[to]);)
            to++;
        if (!is_pool(found.items + from, to - from))
            continue;
        lengths = lengths ? lengths : memory_zero(tree->series.count, sizeof *lengths);
        for (size_t i = from; i < to; i++)
            lengths[found.items[i].series] = (uint16_t)found.items[i].prefix.length;
    }
    vector_release(&found);
    return lengths;
}
