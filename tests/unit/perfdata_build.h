/*
 * Builds perf.data files in memory, for what no real recording reaches: a byte at a time, so that the layout stands here a second time and
 * independent of the reader's.
 */
#ifndef PERFDATA_BUILD_H
#define PERFDATA_BUILD_H

#include "perfdata/perfdata.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

enum { BUILD_ATTRIBUTE = 144 }; /* an attribute of 128 bytes and its ids section */

struct build {
    struct buffer attributes; /* each with its ids section */
    struct buffer ids;
    struct buffer data;
    struct buffer features;  /* contents, one after the other */
    struct buffer table;     /* (bit, offset in `features`, size) */
    uint32_t attribute_size; /* as stored in each; 128 unless set */
    uint64_t attribute_count;
};

static inline void put_bytes(struct buffer *b, const void *data, size_t size) {
    buffer_add(b, (struct text){data, size});
}
static inline void put_u8(struct buffer *b, uint8_t v) {
    put_bytes(b, &v, 1);
}
static inline void put_u16(struct buffer *b, uint16_t v) {
    put_bytes(b, &v, 2);
}
static inline void put_u32(struct buffer *b, uint32_t v) {
    put_bytes(b, &v, 4);
}
static inline void put_u64(struct buffer *b, uint64_t v) {
    put_bytes(b, &v, 8);
}
static inline void put_zeroes(struct buffer *b, size_t count) {
    while (count--)
        put_u8(b, 0);
}
static inline void put_string(struct buffer *b, const char *s, size_t padded) {
    assert(strlen(s) <= padded);
    put_bytes(b, s, strlen(s));
    put_zeroes(b, padded - strlen(s));
}

struct build_event {
    uint32_t type;
    uint64_t config, period, sample_type, read_format, flags, branch_type, regs_user, regs_intr;
    uint32_t stack_user, bp_type;
    uint64_t bp_address;
};

enum { BUILD_ID_ALL = 1 << 18, BUILD_FREQUENCY = 1 << 10 };

/* `ids` is 0-terminated, or NULL. Attributes other than 128 bytes long are cut or zero-filled. */
static inline void build_event(struct build *build, const struct build_event *event,
                               const uint64_t *ids) {
    uint32_t size = build->attribute_size ? build->attribute_size : 128;
    struct buffer a = {0};
    put_u32(&a, event->type);
    put_u32(&a, size);
    put_u64(&a, event->config);
    put_u64(&a, event->period);
    put_u64(&a, event->sample_type);
    put_u64(&a, event->read_format);
    put_u64(&a, event->flags);
    put_u32(&a, 0); /* wakeup */
    put_u32(&a, event->bp_type);
    put_u64(&a, event->bp_address);
    put_u64(&a, 0); /* config2 */
    put_u64(&a, event->branch_type);
    put_u64(&a, event->regs_user);
    put_u32(&a, event->stack_user);
    put_u32(&a, 0); /* clockid */
    put_u64(&a, event->regs_intr);
    put_zeroes(&a, 256);
    put_bytes(&build->attributes, a.items, size < 64 ? 64 : size);
    buffer_release(&a);
    size_t start = build->ids.count;
    for (; ids && *ids; ids++)
        put_u64(&build->ids, *ids);
    put_u64(&build->attributes, 104 + start);
    put_u64(&build->attributes, build->ids.count - start);
    build->attribute_count++;
}

/* Starts a record; build_end() writes its size. */
static inline size_t build_begin(struct build *build, uint32_t type, uint16_t misc) {
    size_t start = build->data.count;
    put_u32(&build->data, type);
    put_u16(&build->data, misc);
    put_u16(&build->data, 0);
    return start;
}
static inline void build_end(struct build *build, size_t start) {
    uint16_t size = (uint16_t)(build->data.count - start);
    memcpy(build->data.items + start + 6, &size, 2);
}
/* A record whose body is `size` zeroes. */
static inline void build_record(struct build *build, uint32_t type, size_t size) {
    size_t start = build_begin(build, type, 0);
    put_zeroes(&build->data, size);
    build_end(build, start);
}

static inline void build_feature(struct build *build, uint64_t bit, const struct buffer *content) {
    put_u64(&build->table, bit);
    put_u64(&build->table, build->features.count);
    put_u64(&build->table, content->count);
    put_bytes(&build->features, content->items, content->count);
}

/* header, ids, attributes, data, feature table, features */
static inline struct buffer build_file(const struct build *build) {
    struct buffer f = {0};
    uint64_t attributes = 104 + build->ids.count, data = attributes + build->attributes.count;
    uint64_t features = data + build->data.count + build->table.count / 24 * 16, bitmap[4] = {0};
    const struct buffer *table = &build->table;
    put_bytes(&f, "PERFILE2", 8);
    put_u64(&f, 104);
    put_u64(&f, build->attribute_count ? build->attributes.count / build->attribute_count
                                       : BUILD_ATTRIBUTE);
    put_u64(&f, attributes);
    put_u64(&f, build->attributes.count);
    put_u64(&f, data);
    put_u64(&f, build->data.count);
    put_zeroes(&f, 16);
    for (size_t i = 0; i < table->count; i += 24)
        bitmap[load_u64(table->items + i) / 64] |= 1ull << load_u64(table->items + i) % 64;
    put_bytes(&f, bitmap, sizeof bitmap);
    put_bytes(&f, build->ids.items, build->ids.count);
    put_bytes(&f, build->attributes.items, build->attributes.count);
    put_bytes(&f, build->data.items, build->data.count);
    for (size_t i = 0; i < table->count; i += 24) {
        put_u64(&f, features + load_u64(table->items + i + 8));
        put_u64(&f, load_u64(table->items + i + 16));
    }
    put_bytes(&f, build->features.items, build->features.count);
    return f;
}

static inline void build_release(struct build *build) {
    buffer_release(&build->attributes);
    buffer_release(&build->ids);
    buffer_release(&build->data);
    buffer_release(&build->features);
    buffer_release(&build->table);
    *build = (struct build){0};
}

/* An open file of these bytes. */
static inline bool build_open(struct file *file, const void *data, size_t size) {
    int fd = memfd_create("perf.data", MFD_CLOEXEC);
    bool fine = fd >= 0 && write(fd, data, size) == (ssize_t)size &&
                file_open_descriptor(file, fd, "perf.data", NULL, NULL);
    if (fd >= 0)
        close(fd);
    return fine;
}

/* ---- opened ---- */

struct opened {
    struct buffer bytes;
    struct file file;
    struct perfdata *data;
    struct error error;
};

static inline void opened_bytes(struct opened *o, const void *bytes, size_t size, bool strict) {
    *o = (struct opened){0};
    assert_true(build_open(&o->file, bytes, size));
    o->data = perfdata_open(&o->file, &(struct perfdata_options){.strict = strict}, &o->error);
    assert_true(!!o->data != !!o->error.kind);
}

static inline void opened_build(struct opened *o, const struct build *build) {
    struct buffer bytes = build_file(build);
    opened_bytes(o, bytes.items, bytes.count, false);
    o->bytes = bytes;
}

static inline void opened_close(struct opened *o) {
    perfdata_free(o->data);
    file_close(&o->file);
    buffer_release(&o->bytes);
}

/* Opens a file within limits; false with an error, whose offset is within the file. */
static inline bool __attribute__((unused))
opens_within(const struct buffer *bytes, struct budget_limits limits, struct error *error) {
    const struct context context = {.limits = limits};
    struct file file;
    assert_true(build_open(&file, bytes->items, bytes->count));
    struct perfdata *data =
        perfdata_open(&file, &(struct perfdata_options){.context = &context}, error);
    bool fine = data != NULL;
    perfdata_free(data);
    file_close(&file);
    if (!fine)
        assert_in_range(error->offset, 1, bytes->count - 1);
    return fine;
}

/* Opens a file with more and more memory until it is enough. Each error before says which byte was too much; returns how many
   different ones they named. */
static inline size_t __attribute__((unused)) bytes_too_much(const struct buffer *bytes) {
    struct error error = {0};
    uint64_t last = 0;
    size_t count = 0;
    for (uint64_t memory = 1;
         !opens_within(bytes, (struct budget_limits){.memory = memory, .steps = 1 << 20}, &error);
         memory++) {
        assert_non_null(
            strstr(error.message, ": needs more memory than a file of its size may use"));
        count += error.offset != last;
        last = error.offset;
    }
    return count;
}

static const uint64_t __attribute__((unused)) all_fixed =
    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
    PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER;

/* One event of this sample_type, nothing else. */
static inline struct build build_one(uint64_t sample_type) {
    struct build build = {0};
    build_event(&build,
                &(struct build_event){.type = PERF_TYPE_SOFTWARE, .sample_type = sample_type},
                (uint64_t[]){7, 0});
    return build;
}

static inline void first_record(struct opened *o, struct perfdata_record *record) {
    uint64_t offset = o->data->data_start;
    assert_true(perfdata_next(o->data, &offset, record, &o->error));
}

static inline bool has_note(const struct perfdata *data, const char *name) {
    for (size_t i = 0; i < data->notes.count; i++)
        if (strcmp(data->notes.items[i].kind->name, name) == 0)
            return true;
    return false;
}

static inline void assert_text(struct text t, const char *expected) {
    assert_int_equal(t.length, strlen(expected));
    assert_memory_equal(t.data, expected, t.length);
}

#endif
