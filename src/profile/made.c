/*
 * When and where processes generated code: sort these moments and apply them to the spaces between the records.
 */
#include "profile/reading.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t hash_pid(int32_t pid) {
    return hash_mix((uint32_t)pid, 0x6d616465);
}

bool made_has(const struct made_moments *moments, int32_t pid) {
    uint32_t number;
    for (struct probe p = index_probe(&moments->pids, hash_pid(pid));
         (number = index_next(&moments->pids, &p));)
        if (moments->list.items[number - 1].pid == pid)
            return true;
    return false;
}

uint32_t made_object(struct reading *reading, int32_t pid, struct text path, struct made *made) {
    struct object_identity identity = {.kind = OBJECT_MADE, .path = path, .pid = pid};
    uint32_t before = objects_count(reading->profile->objects);
    uint32_t id = objects_add(reading->profile->objects, &identity);
    /* That of an earlier window stays what it was: places in it are mapped. */
    if (id <= before) {
        identity.size = before;
        id = objects_add(reading->profile->objects, &identity);
    }
    objects_set_made(reading->profile->objects, id, made);
    return id;
}

void made_happens(struct made_moments *moments, const struct made_moment *moment) {
    if (moment->start >= moment->end)
        return;
    vector_push(&moments->list, *moment);
}

/* Sorted by time; the number breaks ties, so that the order in which they were told holds. */
void made_sort(struct made_moments *moments) {
    size_t count = moments->list.count;
    if (!count)
        return;
    uint64_t *times = memory_resize(NULL, count, sizeof *times);
    struct made_moment *sorted = memory_resize(NULL, count, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        times[i] = moments->list.items[i].time;
    uint32_t *order = radix_sort(times, count);
    for (size_t i = 0; i < count; i++)
        sorted[i] = moments->list.items[order[i]];
    free(moments->list.items);
    moments->list.items = sorted;
    moments->list.capacity = count;
    for (size_t i = 0; i < count; i++)
        if (!made_has(moments, sorted[i].pid))
            index_add(&moments->pids, hash_pid(sorted[i].pid), (uint32_t)i + 1);
    free(times);
    free(order);
}

/* Memory that held code and holds none now is anonymous memory again, as a mapping of it would be. */
static uint32_t anonymous_object(struct reading *reading, int32_t pid) {
    char path[40];
    int length = snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    struct object_identity identity = {
        .kind = OBJECT_PERFMAP, .path = {path, (size_t)length}, .pid = pid};
    uint32_t id = objects_add(reading->profile->objects, &identity);
    carried_offer(reading->profile->carried, reading->profile->objects, id);
    return id;
}

static void apply(struct reading *reading, const struct made_moment *moment) {
    struct key key = {.time = moment->time, .offset = UINT64_MAX};
    struct mapping mapping = {.start = moment->start,
                              .end = moment->end,
                              .offset = moment->place,
                              .object = moment->object,
                              .executable = true};
    if (!moment->object) {
        mapping.object = anonymous_object(reading, moment->pid);
        mapping.offset = mapping.start;
    }
    spaces_mmap(reading->profile->spaces, &key, moment->pid, moment->pid, &mapping);
}

void made_apply(struct reading *reading, uint64_t time) {
    struct made_moments *moments = &reading->made;
    for (; moments->applied < moments->list.count &&
           moments->list.items[moments->applied].time < time;
         moments->applied++)
        apply(reading, &moments->list.items[moments->applied]);
}

void made_release(struct made_moments *moments) {
    vector_release(&moments->list);
    index_release(&moments->pids);
}
