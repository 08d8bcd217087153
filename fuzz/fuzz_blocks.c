/*
 * Take every eight bytes for an operation on a heap, write these as a recording, read it and check the invariants:
 * blocks that are alive, at the peak or temporary were allocated, and the tree has the same sums.
 */
#include <stdio.h>
#include <stdlib.h>

#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    OP = 8,
    OPS_MOST = 4000,
    EVENTS = 6,
    FIRST_ID = 100,
    EVENT_DESC = 12,
    HEADER = 104,
    ATTRIBUTE = 144
};
enum {
    COMMON = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
             PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU
};
enum { MORE = PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_WEIGHT };

enum { FREE = 2, MAP = 3, UNMAP = 5 };

static const char *const names[EVENTS] = {"heap-alloc", "heap-again",     "heap-free",
                                          "heap-map",   "heap-map-again", "heap-unmap"};
static const char *const values[] = {"allocated", "live", "peak", "temporary"};

static void put(struct buffer *to, const void *bytes, size_t size) {
    buffer_add(to, (struct text){bytes, size});
}

static void put_u64(struct buffer *to, uint64_t word) {
    put(to, &word, sizeof word);
}

static void put_u32(struct buffer *to, uint32_t word) {
    put(to, &word, sizeof word);
}

static uint64_t sample_type(size_t event) {
    return COMMON | (event == FREE ? 0 : event == UNMAP ? PERF_SAMPLE_PERIOD : MORE);
}

static struct perf_event_attr attribute(size_t event, uint64_t mean) {
    struct perf_event_attr attr = {.size = 128,
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_BPF_OUTPUT,
                                   .sample_type = sample_type(event),
                                   .sample_period = mean,
                                   .sample_id_all = 1};
    return attr;
}

static void put_names(struct buffer *to, uint64_t mean) {
    enum { NAME = 16 };
    put_u32(to, EVENTS);
    put_u32(to, 128);
    for (size_t i = 0; i < EVENTS; i++) {
        struct perf_event_attr attr = attribute(i, mean);
        char name[NAME] = {0};
        snprintf(name, sizeof name, "%s", names[i]);
        put(to, &attr, 128);
        put_u32(to, 1);
        put_u32(to, NAME);
        put(to, name, NAME);
        put_u64(to, FIRST_ID + i);
    }
}

static void put_sample(struct buffer *to, const uint8_t *op, size_t event, uint64_t time) {
    uint64_t type = sample_type(event);
    uint32_t pid = 1 + op[1] % 4;
    uint64_t bytes = load_u16(op + 3), weight = bytes << op[7] % 56, address = op[2] % 16;
    if (event >= MAP) { /* ranges meet each other; a weight of 0 is a mapping that was moved */
        address = (uint64_t)(op[2] % 16) << 12;
        weight = (uint64_t)(1 + op[3] % 8) << (op[7] == 255 ? 62 : 12);
        bytes = op[4] % 4;
    }
    put_u32(to, PERF_RECORD_SAMPLE);
    put_u32(to, PERF_RECORD_MISC_USER | (8 + 8 * (6u + (uint32_t)__builtin_popcountll(type & MORE)))
                                            << 16);
    put_u64(to, FIRST_ID + event);
    put_u64(to, 0x1000 + op[6] % 8);
    put_u32(to, pid);
    put_u32(to, pid);
    put_u64(to, time);
    put_u64(to, address);
    if (type & PERF_SAMPLE_STREAM_ID)
        put_u64(to, op[6] % 8);
    put_u64(to, 0);
    if (type & PERF_SAMPLE_PERIOD)
        put_u64(to, weight);
    if (type & PERF_SAMPLE_WEIGHT)
        put_u64(to, bytes);
}

/* sample_id_all of the first event: pid and tid, time, stream id, cpu, id. */
static void put_trailer(struct buffer *to, uint32_t pid, uint64_t time) {
    put_u32(to, pid);
    put_u32(to, pid);
    put_u64(to, time);
    put_u64(to, 0);
    put_u64(to, 0);
    put_u64(to, FIRST_ID);
}

static void put_task(struct buffer *to, const uint8_t *op, uint32_t type, uint64_t time) {
    uint32_t pid = 1 + op[1] % 4, parent = 1 + op[2] % 4;
    put_u32(to, type);
    put_u32(to, (8u + 24 + 40) << 16);
    put_u32(to, pid);
    put_u32(to, parent);
    put_u32(to, pid);
    put_u32(to, parent);
    put_u64(to, time);
    put_trailer(to, pid, time);
}

static void put_exec(struct buffer *to, const uint8_t *op, uint64_t time) {
    uint32_t pid = 1 + op[1] % 4;
    put_u32(to, PERF_RECORD_COMM);
    put_u32(to, PERF_RECORD_MISC_COMM_EXEC | (8u + 16 + 40) << 16);
    put_u32(to, pid);
    put_u32(to, pid);
    put(to, "program", 8);
    put_trailer(to, pid, time);
}

static void put_op(struct buffer *to, const uint8_t *op, uint64_t time) {
    static const uint8_t sampled[] = {0, 1, 2, [6] = 0, [7] = 1, 3, 4, 5};
    unsigned kind = op[0] % COUNT_OF(sampled);
    switch (kind) {
    case 3:
        put_task(to, op, PERF_RECORD_EXIT, time);
        break;
    case 4:
        put_task(to, op, PERF_RECORD_FORK, time);
        break;
    case 5:
        put_exec(to, op, time);
        break;
    default:
        put_sample(to, op, sampled[kind], time);
    }
}

static struct buffer recording(const uint8_t *bytes, size_t size, uint64_t mean) {
    struct buffer file = {0}, data = {0}, features = {0};
    uint64_t time = 1000;
    for (size_t at = 0; at + OP <= size && at < OP * OPS_MOST; at += OP) {
        time += (uint64_t)bytes[at + 5] << bytes[at + 5] % 16;
        put_op(&data, bytes + at, bytes[at + 5] == 255 ? time / 2 : time);
    }
    put_names(&features, mean);
    uint64_t attributes = HEADER + 8 * EVENTS, start = attributes + ATTRIBUTE * EVENTS;
    uint64_t end = start + data.count, bits[4] = {1ull << EVENT_DESC};
    put(&file, "PERFILE2", 8);
    put_u64(&file, HEADER);
    put_u64(&file, ATTRIBUTE);
    put_u64(&file, attributes);
    put_u64(&file, ATTRIBUTE * EVENTS);
    put_u64(&file, start);
    put_u64(&file, data.count);
    put_u64(&file, 0);
    put_u64(&file, 0);
    put(&file, bits, sizeof bits);
    for (size_t i = 0; i < EVENTS; i++)
        put_u64(&file, FIRST_ID + i);
    for (size_t i = 0; i < EVENTS; i++) {
        struct perf_event_attr attr = attribute(i, mean);
        put(&file, &attr, 128);
        put_u64(&file, HEADER + 8 * i);
        put_u64(&file, 8);
    }
    put(&file, data.items, data.count);
    put_u64(&file, end + 16);
    put_u64(&file, features.count);
    put(&file, features.items, features.count);
    buffer_release(&data);
    buffer_release(&features);
    return file;
}

static void check(const struct profile *profile, size_t value) {
    const struct heap_facts *facts = profile->heap;
    const struct heap_sum *sums[] = {&facts->allocated, &facts->live, &facts->peak,
                                     &facts->temporary};
    uint64_t sum = 0;
    for (size_t i = 0; i < COUNT_OF(sums); i++)
        assert(sums[i]->bytes <= facts->allocated.bytes &&
               sums[i]->samples <= facts->allocated.samples && sums[i]->variance >= 0);
    for (size_t i = 1; i < profile->tree->cells.count; i++)
        sum += profile->tree->cells.items[i].weight;
    bool is_full = sums[value]->bytes == UINT64_MAX; /* it does not grow further */
    assert(sum == sums[value]->bytes || is_full || profile->tree->overflow);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size < OP)
        return 0;
    size_t value = bytes[0] / 8 % COUNT_OF(values);
    struct buffer made = recording(bytes + OP, size - OP, bytes[1] ? 65536 : 1);
    struct file file = {
        .path = (char *)"fuzz", .data = (const uint8_t *)made.items, .size = made.count};
    struct profile_options options = {.context =
                                          &(struct context){.threads = 1, .spool_limit = 16 << 20},
                                      .keep_samples = bytes[2] & 1,
                                      .no_names = true,
                                      .filter = {.events = &values[value], .event_count = 1},
                                      .objects.kallsyms = "/dev/null"};
    if (bytes[2] & 2) {
        options.filter.has_time = true;
        options.filter.time_from = 1000 + bytes[3];
        options.filter.time_to = 1000 + ((uint64_t)bytes[4] << 8);
    }
    struct error error = {0};
    struct profile *profile = profile_read(&file, &options, &error);
    assert(!profile == !!error.kind);
    if (profile && profile->heap)
        check(profile, value);
    profile_free(profile);
    buffer_release(&made);
    return 0;
}
