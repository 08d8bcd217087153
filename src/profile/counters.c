/*
 * Counters that were read with samples (`perf record -e '{a,b}:S'`).
 *
 * Only the group's leader is sampled; each of its samples has the values of all counters of the group. As in perf, that is one sample of each
 * counter, weighted by its change since the last value; a counter that did not change has no sample. The last value may be in another piece of
 * the file, so pass 1 computes the differences and pass 2 looks them up. Records of one counter come from one buffer, so they are in time order
 * in the file.
 *
 * Costs 24 bytes for each change of a counter, only in such recordings.
 */
#include "profile/reading.h"

#include <stdlib.h>

bool counters_are_read(const struct reading *reading, uint32_t event) {
    const struct perfdata_event *attribute = &reading->profile->data->events.items[event];
    if (reading->waits || !(attribute->sample_type & PERF_SAMPLE_READ))
        return false;
    /* Without ids it is unknown which counters the values belong to. perf then drops the samples. */
    return attribute->read_format & PERF_FORMAT_ID || reading->options->quirks.reads_need_ids;
}

static void counter_add(struct reading *reading, const struct key *key, uint64_t id,
                        uint64_t value) {
    const struct perfdata_ids *ids = &reading->profile->data->ids;
    uint32_t slot = perfdata_id_slot(ids, id);
    if (!id || !ids->slots[slot].event)
        return;
    uint32_t event = ids->slots[slot].event - 1;
    uint64_t moved = value - reading->counter_values[slot];
    reading->counter_values[slot] = value;
    if (!moved)
        return;
    vector_push(&reading->counted, ((struct counted){key->offset, moved, event}));
    event_saw(&reading->events.items[event], key);
}

bool counters_walk(struct reading *reading, const struct perfdata_record *record,
                   const struct key *key, struct error *error) {
    const struct perfdata *data = reading->profile->data;
    struct perfdata_sample sample;
    if (!perfdata_sample(data, record, &sample, error))
        return false;
    uint64_t format = data->events.items[sample.event].read_format;
    if (!(format & PERF_FORMAT_ID))
        return true;
    if (!reading->counter_values)
        reading->counter_values =
            memory_zero((size_t)data->ids.mask + 1, sizeof *reading->counter_values);
    size_t times =
        !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
    size_t each = 16 + (format & PERF_FORMAT_LOST ? 8 : 0);
    const uint8_t *value = sample.read + 8 + 8 * times, *end = sample.read + sample.read_size;
    if (!(format & PERF_FORMAT_GROUP))
        counter_add(reading, key, load_u64(value), load_u64(sample.read));
    else
        for (; (size_t)(end - value) >= each; value += each)
            counter_add(reading, key, load_u64(value + 8), load_u64(value));
    return true;
}

const struct counted *counters_find(const struct reading *reading, uint64_t offset, size_t *count) {
    size_t low = first_from(reading->counted.items, reading->counted.count,
                            sizeof *reading->counted.items, offset);
    for (*count = 0; low + *count < reading->counted.count &&
                     reading->counted.items[low + *count].offset == offset;)
        ++*count;
    return *count ? reading->counted.items + low : NULL;
}
