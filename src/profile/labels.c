/*
 * Labels of processes, from the recording's carrier. A label is valid from a time on, for a process and the children that it forks later.
 *
 * Entries and forks are applied in time order. Each pid has a list of its label sets, the latest first. A lookup walks back to its time; each
 * worker remembers the last result with the range of time in which it is valid.
 */
#include "profile/labels.h"

#include <stdlib.h>

static uint64_t hash_pid(int32_t pid) {
    return hash_mix((uint32_t)pid, CARRIER_LABELS);
}

/* Return the number of the latest set, 0 if there is none. */
static uint32_t *latest(const struct labels *labels, int32_t pid) {
    uint32_t number;
    for (struct probe p = index_probe(&labels->index, hash_pid(pid));
         (number = index_next(&labels->index, &p));)
        if (labels->processes.items[number - 1].pid == pid)
            return &labels->processes.items[number - 1].latest;
    return NULL;
}

static void tell(struct labels *labels, int32_t pid, uint64_t from, uint32_t set) {
    uint32_t *last = latest(labels, pid);
    if (!last) {
        vector_push(&labels->processes, ((struct labelled){.pid = pid}));
        index_add(&labels->index, hash_pid(pid), (uint32_t)labels->processes.count);
        last = &labels->processes.items[labels->processes.count - 1].latest;
    }
    vector_push(&labels->told, ((struct label_told){from, set, *last}));
    *last = (uint32_t)labels->told.count;
}

/* ---- what the carrier has ---- */

/* "key NUL value NUL …" */
static uint32_t set_of(struct tree *tree, struct text bytes) {
    uint32_t set = 0;
    while (bytes.length) {
        size_t end = text_find(bytes, 0);
        size_t second = end == SIZE_MAX ? SIZE_MAX : text_find(text_from(bytes, end + 1), 0);
        if (second == SIZE_MAX)
            break;
        struct text key = text_upto(bytes, end), value = {bytes.data + end + 1, second};
        if (key.length && !label_is_fixed(key))
            set = tree_set_label(tree, set, key, value);
        bytes = text_from(bytes, end + second + 2);
    }
    return set;
}

void labels_add(struct labels *labels, struct tree *tree, struct text key, struct text bytes) {
    enum { KEY = 16 };
    if (key.length != KEY)
        return;
    struct label_entry entry = {.time = load_u64(key.data + 8),
                                .pid = (int32_t)load_u32(key.data),
                                .place = (uint32_t)labels->entries.count,
                                .set = set_of(tree, bytes)};
    vector_push(&labels->entries, entry);
}

static int entry_order(const void *a, const void *b) {
    const struct label_entry *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

void labels_sort(struct labels *labels) {
    if (labels->entries.count)
        qsort(labels->entries.items, labels->entries.count, sizeof *labels->entries.items,
              entry_order);
}

/* ---- in the order of time ---- */

void labels_apply(struct labels *labels, uint64_t until) {
    for (; labels->applied < labels->entries.count; labels->applied++) {
        const struct label_entry *entry = &labels->entries.items[labels->applied];
        if (entry->time > until)
            return;
        tell(labels, entry->pid, entry->time, entry->set);
    }
}

void labels_fork(struct labels *labels, int32_t pid, int32_t parent, uint64_t time) {
    uint32_t set = labels_latest(labels, parent);
    if (set || latest(labels, pid)) /* else nothing was ever told of either */
        tell(labels, pid, time, set);
}

uint32_t labels_at(const struct labels *labels, struct labels_cursor *cursor, int32_t pid,
                   uint64_t time) {
    if (!labels->told.count)
        return 0;
    if (cursor->is_set && cursor->pid == pid && time >= cursor->from && time < cursor->until)
        return cursor->set;
    const uint32_t *last = latest(labels, pid);
    *cursor = (struct labels_cursor){.pid = pid, .until = UINT64_MAX, .is_set = true};
    for (uint32_t number = last ? *last : 0; number;) {
        const struct label_told *told = &labels->told.items[number - 1];
        if (told->from <= time) {
            cursor->from = told->from;
            cursor->set = told->set;
            break;
        }
        cursor->until = told->from;
        number = told->before;
    }
    return cursor->set;
}

uint32_t labels_latest(const struct labels *labels, int32_t pid) {
    const uint32_t *last = latest(labels, pid);
    return last && *last ? labels->told.items[*last - 1].set : 0;
}

void labels_print(const struct tree *tree, uint32_t set, struct buffer *text) {
    size_t count;
    const struct label_pair *pairs = tree_labels(tree, set, &count);
    text->count = 0;
    for (size_t i = 0; i < count; i++) {
        buffer_add(text, strings_get(tree->strings, pairs[i].key));
        buffer_add_char(text, 0);
        buffer_add(text, strings_get(tree->strings, pairs[i].value));
        buffer_add_char(text, 0);
    }
}

void labels_release(struct labels *labels) {
    vector_release(&labels->entries);
    vector_release(&labels->told);
    vector_release(&labels->processes);
    index_release(&labels->index);
}
