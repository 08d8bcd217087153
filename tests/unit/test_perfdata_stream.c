/* What is written to pipes, and compressed records: the same records must come out, wherever the recording is cut. */
#include "perfdata_build.h"

#include <zstd.h>

enum { SAMPLES = 40, SAMPLE_SIZE = 8 + 8 + 8 };

static void add_header(struct buffer *b, uint32_t type, size_t size) {
    put_u32(b, type);
    put_u16(b, 0);
    put_u16(b, (uint16_t)size);
}

/* Samples of 24 bytes: the id, then the number as ip. */
static struct buffer samples(uint64_t id) {
    struct buffer records = {0};
    for (uint64_t i = 0; i < SAMPLES; i++) {
        add_header(&records, PERF_RECORD_SAMPLE, SAMPLE_SIZE);
        put_u64(&records, id);
        put_u64(&records, i);
    }
    return records;
}

static void put_attribute(struct buffer *b, uint64_t config, uint64_t id) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = config,
                                   .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP};
    add_header(b, RECORD_HEADER_ATTR, 8 + sizeof attr + 8);
    put_bytes(b, &attr, sizeof attr);
    put_u64(b, id);
}

static void put_name(struct buffer *b, uint64_t id, const char *name) {
    add_header(b, RECORD_EVENT_UPDATE, 8 + 16 + 32);
    put_u64(b, 2);
    put_u64(b, id);
    put_string(b, name, 32);
}

static struct buffer stream_beginning(void) {
    struct buffer stream = {0};
    put_bytes(&stream, "PERFILE2", 8);
    put_u64(&stream, 16);
    put_attribute(&stream, PERF_COUNT_SW_CPU_CLOCK, 7);
    put_attribute(&stream, PERF_COUNT_SW_PAGE_FAULTS, 9);
    return stream;
}

/* Each sample once, in order; returns how many. */
static uint64_t count_samples(struct opened *o) {
    uint64_t offset = o->data->data_start, count = 0;
    struct perfdata_record record;
    while (perfdata_next(o->data, &offset, &record, &o->error)) {
        struct perfdata_sample sample;
        if (record.type != PERF_RECORD_SAMPLE)
            continue;
        assert_true(perfdata_sample(o->data, &record, &sample, &o->error));
        assert_int_equal(sample.ip, count);
        count++;
    }
    return count;
}

static void test_stream(void **state) {
    struct buffer stream = stream_beginning(), records = samples(9);
    add_header(&stream, RECORD_HEADER_FEATURE, 8 + 8 + 4 + 7); /* no multiple of 8 */
    put_u64(&stream, FEATURE_ARCH);
    put_u32(&stream, 7);
    put_string(&stream, "x86_64", 7);
    put_bytes(&stream, records.items, records.count);
    put_name(&stream, 9, "faults");
    add_header(&stream, RECORD_HEADER_TRACING_DATA, 16);
    put_u32(&stream, 5);
    put_u32(&stream, 0);
    put_string(&stream, "trace", 8);
    add_header(&stream, RECORD_HEADER_BUILD_ID, 36 + 8);
    put_u32(&stream, 1);
    put_string(&stream, "12345678901234567890", 24);
    put_string(&stream, "/bin/x", 8);
    struct opened o;
    opened_bytes(&o, stream.items, stream.count, true);
    assert_non_null(o.data);
    assert_text(o.data->arch, "x86_64");
    assert_true(text_starts(o.data->events.items[0].name, TEXT("cpu-clock")));
    assert_text(o.data->events.items[1].name, "faults");
    assert_text(o.data->features[FEATURE_TRACING_DATA], "trace");
    assert_int_equal(o.data->build_ids.count, 1);
    assert_text(o.data->build_ids.items[0].path, "/bin/x");
    assert_int_equal(count_samples(&o), SAMPLES);
    assert_false(o.data->is_cut);
    assert_int_equal(o.error.kind, ERROR_NONE);
    opened_close(&o);
    buffer_release(&stream);
    buffer_release(&records);
}

/* In pieces of `piece` bytes, each a record of `type`; with FINISHED_ROUND between, which is not compressed. */
static void put_packed(struct buffer *b, const struct buffer *records, size_t piece,
                       uint32_t type) {
    ZSTD_CStream *zstd = ZSTD_createCStream();
    ZSTD_initCStream(zstd, 3);
    for (size_t at = 0; at < records->count; at += piece) {
        char packed[4096];
        size_t left = records->count - at;
        ZSTD_inBuffer in = {records->items + at, left < piece ? left : piece, 0};
        ZSTD_outBuffer out = {packed, sizeof packed, 0};
        assert_int_equal(ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush), 0);
        size_t padding = type == RECORD_COMPRESSED2 ? -out.pos & 7 : 0;
        add_header(b, type, 8 + (type == RECORD_COMPRESSED2 ? 8 : 0) + out.pos + padding);
        if (type == RECORD_COMPRESSED2)
            put_u64(b, out.pos);
        put_bytes(b, packed, out.pos);
        put_zeroes(b, padding);
        add_header(b, RECORD_FINISHED_ROUND, 8);
    }
    ZSTD_freeCStream(zstd);
}

static const uint32_t packed_types[] = {RECORD_COMPRESSED, RECORD_COMPRESSED2};

static void test_packed(void **state) {
    for (size_t i = 0; i < COUNT_OF(packed_types); i++) {
        for (size_t piece = 1; piece < 200; piece += 13) {
            struct build build = build_one(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP);
            struct buffer records = samples(7);
            put_packed(&build.data, &records, piece, packed_types[i]);
            struct opened o;
            opened_build(&o, &build);
            assert_non_null(o.data);
            assert_int_equal(count_samples(&o), SAMPLES);
            assert_false(o.data->is_cut);
            opened_close(&o);
            buffer_release(&records);
            build_release(&build);
        }
    }
}

/* A stream of compressed records, cut at every byte: never fewer samples than before, an error only before the first event is whole. */
static void test_every_cut(void **state) {
    for (size_t i = 0; i < COUNT_OF(packed_types) + 1; i++) {
        struct buffer stream = stream_beginning(), records = samples(7);
        size_t first = 16 + 8 + sizeof(struct perf_event_attr) + 8;
        if (i < COUNT_OF(packed_types))
            put_packed(&stream, &records, 100, packed_types[i]);
        else
            put_bytes(&stream, records.items, records.count);
        uint64_t before = 0;
        for (size_t size = 16; size <= stream.count; size++) {
            struct opened o;
            opened_bytes(&o, stream.items, size, false);
            assert_int_equal(!!o.data, size >= first);
            if (o.data) {
                uint64_t count = count_samples(&o);
                assert_true(count >= before && count <= before + 5);
                assert_true(size == stream.count
                                ? count == SAMPLES
                                : count < SAMPLES || !o.data->is_cut || o.data->cut < size);
                before = count;
            }
            opened_close(&o);
        }
        assert_int_equal(before, SAMPLES);
        buffer_release(&stream);
        buffer_release(&records);
    }
}

static void fails(const struct build *build, const char *why, uint64_t offset) {
    struct opened o;
    opened_build(&o, build);
    assert_null(o.data);
    if (!strstr(o.error.message, why))
        fail_msg("\"%s\" does not say \"%s\"", o.error.message, why);
    assert_int_equal(o.error.offset, offset);
    opened_close(&o);
}

static void test_damaged(void **state) {
    const uint64_t start = 104 + 8 + BUILD_ATTRIBUTE;
    struct build build = build_one(PERF_SAMPLE_IP);
    build_record(&build, RECORD_COMPRESSED, 64); /* zeroes are no zstd */
    fails(&build, "damaged", start);
    build_release(&build);

    build = build_one(PERF_SAMPLE_IP);
    build_record(&build, RECORD_FINISHED_ROUND, 0);
    build_record(&build, RECORD_COMPRESSED2, 0);
    fails(&build, "too short", start + 8);
    memset(build.data.items + 8, 0, 8);
    build_release(&build);

    build = build_one(PERF_SAMPLE_IP);
    struct buffer zeroes = {0};
    put_zeroes(&zeroes, 64); /* records of no size */
    put_packed(&build.data, &zeroes, 64, RECORD_COMPRESSED);
    fails(&build, "has size 0", start);
    build_release(&build);
    buffer_release(&zeroes);

    build = build_one(PERF_SAMPLE_IP);
    struct buffer half = {0};
    add_header(&half, PERF_RECORD_SAMPLE, 16);
    put_packed(&build.data, &half, 64, RECORD_COMPRESSED);
    struct opened o;
    opened_build(&o, &build);
    assert_true(o.data->is_cut);
    assert_int_equal(count_samples(&o), 0);
    opened_close(&o);
    build_release(&build);
    buffer_release(&half);
}

/* Errors about unpacked records say that their offset is one of those. */
static void test_offsets(void **state) {
    struct build build = build_one(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP);
    struct buffer records = samples(7);
    add_header(&records, PERF_RECORD_SAMPLE, 8);
    put_packed(&build.data, &records, 4096, RECORD_COMPRESSED);
    struct opened o;
    struct perfdata_record record;
    struct perfdata_sample sample;
    opened_build(&o, &build);
    uint64_t offset = SAMPLES * SAMPLE_SIZE;
    assert_true(perfdata_next(o.data, &offset, &record, &o.error));
    assert_false(perfdata_sample(o.data, &record, &sample, &o.error));
    assert_non_null(strstr(o.error.message, "perf.data, unpacked: byte 960: "));
    opened_close(&o);
    buffer_release(&records);
    build_release(&build);
}

static void test_limit(void **state) {
    struct build build = build_one(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP);
    struct buffer records = samples(7);
    put_packed(&build.data, &records, 4096, RECORD_COMPRESSED);
    struct buffer bytes = build_file(&build);
    struct file file;
    struct error error;
    assert_true(build_open(&file, bytes.items, bytes.count));
    const struct context tight = {.spool_limit = 100};
    assert_null(perfdata_open(&file, &(struct perfdata_options){.context = &tight}, &error));
    assert_non_null(strstr(error.message, "more than 100 bytes"));
    struct perfdata *data = perfdata_open(&file, NULL, &error); /* another context, another limit */
    assert_non_null(data);
    perfdata_free(data);
    file_close(&file);
    buffer_release(&bytes);
    buffer_release(&records);
    build_release(&build);
}

/* What describes a stream is kept until it ends: two events, their ids, a name and a build id. */
static void test_budget(void **state) {
    struct buffer stream = stream_beginning();
    put_name(&stream, 7, "a name");
    add_header(&stream, RECORD_HEADER_BUILD_ID, 48);
    put_zeroes(&stream, 40);
    assert_int_equal(bytes_too_much(&stream), 6);
    buffer_release(&stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),  cmocka_unit_test(test_packed),
        cmocka_unit_test(test_budget),  cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_offsets),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
