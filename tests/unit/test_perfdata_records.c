/* Walking, and every record but the sample: each type and field at its extremes, in hand-built bytes. */
#include "perfdata_build.h"

/* ---- walking ---- */

static void walk(struct opened *o, uint64_t *count) {
    uint64_t offset = o->data->data_start;
    struct perfdata_record record;
    *count = 0;
    while (perfdata_next(o->data, &offset, &record, &o->error))
        *count += 1;
}

static void test_sizes(void **state) {
    static const struct {
        uint16_t size; /* as the second record says */
        uint64_t count;
        const char *why;
    } cases[] = {{16, 3, NULL}, {0, 1, "size 0 is less"},     {7, 1, "size 7 is less"},
                 {8, 0, NULL},  {33, 1, "33 bytes overruns"}, {65535, 1, "65535 bytes overruns"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct build build = build_one(PERF_SAMPLE_IP);
        for (int j = 0; j < 3; j++)
            build_record(&build, PERF_RECORD_SAMPLE, 8);
        memcpy(build.data.items + 16 + 6, &cases[i].size, 2);
        struct opened o;
        uint64_t count;
        opened_build(&o, &build);
        walk(&o, &count);
        if (cases[i].why) {
            assert_non_null(strstr(o.error.message, cases[i].why));
            assert_int_equal(o.error.offset, o.data->data_start + 16);
        }
        if (cases[i].count)
            assert_int_equal(count, cases[i].count);
        assert_false(o.data->is_cut);
        opened_close(&o);
        build_release(&build);
    }
}

/* Size 0 in the header is what a killed recording leaves: the rest of the file is data, and zeroes at its end are no records. */
static void test_killed(void **state) {
    struct build build = build_one(PERF_SAMPLE_IP);
    build_record(&build, PERF_RECORD_SAMPLE, 8);
    struct buffer file = build_file(&build);
    memset(file.items + 48, 0, 8);
    put_zeroes(&file, 4096);
    struct opened o;
    uint64_t count;
    opened_bytes(&o, file.items, file.count, false);
    walk(&o, &count);
    assert_int_equal(count, 1);
    assert_true(o.data->is_cut);
    assert_int_equal(o.data->cut, o.data->data_start + 16);
    assert_int_equal(o.error.kind, ERROR_NONE);
    walk(&o, &count); /* again, and now the end is known */
    assert_int_equal(count, 1);
    opened_close(&o);
    opened_bytes(&o, file.items, file.count, true);
    assert_null(o.data);
    opened_close(&o);
    buffer_release(&file);
    build_release(&build);
}

static void test_payloads(void **state) {
    static const struct {
        uint32_t type;
        uint64_t size; /* as the record says */
        uint64_t count;
    } cases[] = {{RECORD_AUXTRACE, 100, 2},
                 {RECORD_AUXTRACE, 104, 1}, /* the next record is taken for payload */
                 {RECORD_AUXTRACE, 1000, 0},
                 {RECORD_AUXTRACE, UINT64_MAX, 0},
                 {RECORD_HEADER_TRACING_DATA, 97, 0}, /* 104 with padding */
                 {RECORD_HEADER_TRACING_DATA, UINT32_MAX, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct build build = build_one(PERF_SAMPLE_IP);
        size_t start = build_begin(&build, cases[i].type, 0);
        put_u64(&build.data, cases[i].size);
        put_zeroes(&build.data, 32);
        build_end(&build, start);
        put_zeroes(&build.data, 100);
        put_u32(&build.data, RECORD_FINISHED_ROUND); /* a header of 8 bytes, unaligned */
        put_u32(&build.data, 8 << 16);
        struct opened o;
        uint64_t count;
        opened_build(&o, &build);
        walk(&o, &count);
        if (cases[i].count == 2)
            assert_int_equal(o.error.kind, ERROR_NONE);
        else
            assert_int_equal(o.error.kind, ERROR_INPUT);
        if (cases[i].count)
            assert_int_equal(count, cases[i].count);
        opened_close(&o);
        build_release(&build);
    }
}

/* ---- every type at its least size, and one byte below it ---- */

static void test_least_sizes(void **state) {
    static const struct {
        uint32_t type;
        size_t least;
    } cases[] = {
        {1, 32},  {2, 16},  {3, 8},   {4, 24},  {5, 24},  {6, 24},  {7, 24},  {8, 16},
        {10, 64}, {11, 24}, {12, 8},  {13, 8},  {14, 0},  {15, 8},  {16, 16}, {17, 16},
        {18, 16}, {19, 8},  {20, 12}, {21, 8},  {22, 16}, {64, 64}, {65, 8},  {66, 8},
        {67, 28}, {68, 0},  {69, 8},  {70, 8},  {71, 40}, {72, 32}, {73, 8},  {74, 2},
        {75, 8},  {76, 40}, {77, 16}, {78, 16}, {79, 24}, {80, 8},  {82, 0},  {84, 0},
    };
    const uint64_t trailer[] = {0, PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t with = 0; with < 2; with++)
            for (size_t less = 0; less < 2 && less <= cases[i].least; less++) {
                struct build build = {0};
                build_event(
                    &build,
                    &(struct build_event){.sample_type = trailer[with], .flags = BUILD_ID_ALL},
                    NULL);
                size_t trailing = with && cases[i].type < 64 ? 24 : 0;
                build_record(&build, cases[i].type, cases[i].least - less + trailing);
                struct opened o;
                struct perfdata_record record;
                opened_build(&o, &build);
                uint64_t offset = o.data->data_start;
                bool fine = perfdata_next(o.data, &offset, &record, &o.error) &&
                            perfdata_check(o.data, &record, &o.error);
                if (fine == !!less)
                    fail_msg("type %u, %zu bytes less, trailer %zu", cases[i].type, less, with);
                if (less)
                    assert_int_equal(o.error.offset, o.data->data_start);
                opened_close(&o);
                build_release(&build);
            }
}

static void test_unknown_types(void **state) {
    static const uint32_t types[] = {0, 23, 63, 85, 1000, UINT32_MAX};
    struct build build = build_one(PERF_SAMPLE_IP);
    for (size_t i = 0; i < COUNT_OF(types); i++)
        build_record(&build, types[i], 8);
    struct opened o;
    struct perfdata_record record;
    opened_build(&o, &build);
    for (uint64_t offset = o.data->data_start; perfdata_next(o.data, &offset, &record, &o.error);)
        assert_true(perfdata_check(o.data, &record, &o.error));
    assert_int_equal(o.data->notes.count, 1);
    assert_int_equal(o.data->notes.items[0].count, COUNT_OF(types));
    opened_close(&o);
    build_release(&build);
}

/* ---- trailers ---- */

static void test_trailers(void **state) {
    for (unsigned set = 0; set < 64; set++) {
        static const uint64_t fields[] = {PERF_SAMPLE_TID, PERF_SAMPLE_TIME,
                                          PERF_SAMPLE_ID,  PERF_SAMPLE_STREAM_ID,
                                          PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};
        struct build_event event = {.sample_type = PERF_SAMPLE_IP, .flags = BUILD_ID_ALL};
        for (size_t i = 0; i < 6; i++)
            event.sample_type |= set >> i & 1 ? fields[i] : 0;
        struct build build = {0};
        build_event(&build, &event, (uint64_t[]){33, 0});
        size_t start = build_begin(&build, PERF_RECORD_COMM, 0);
        put_u32(&build.data, 1);
        put_u32(&build.data, 2);
        put_string(&build.data, "comm", 8);
        static const uint64_t values[] = {0xfffffffe00000005, 1000, 33, 44, 0xdead00000003, 33};
        for (size_t i = 0; i < 6; i++)
            if (set >> i & 1)
                put_u64(&build.data, values[i]);
        build_end(&build, start);
        struct opened o;
        struct perfdata_record record;
        struct perfdata_trailer trailer;
        struct perfdata_comm comm;
        opened_build(&o, &build);
        first_record(&o, &record);
        assert_true(perfdata_trailer(o.data, &record, &trailer, &o.error));
        assert_int_equal(trailer.pid, set & 1 ? 5 : -1);
        assert_int_equal(trailer.tid, set & 1 ? -2 : -1);
        assert_int_equal(trailer.has_time, set >> 1 & 1);
        assert_int_equal(trailer.time, set & 2 ? 1000 : 0);
        assert_int_equal(trailer.id, set & 36 ? 33 : 0);
        assert_int_equal(trailer.stream_id, set & 8 ? 44 : 0);
        assert_int_equal(trailer.cpu, set & 16 ? 3 : UINT32_MAX);
        assert_true(perfdata_comm(o.data, &record, &comm, &o.error));
        assert_text(comm.comm, "comm");
        opened_close(&o);
        build_release(&build);
    }
}

/* Two events with trailers of different size: the id at the common place says which. */
static void test_trailer_by_id(void **state) {
    struct build build = {0};
    uint64_t type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME;
    build_event(&build, &(struct build_event){.sample_type = type, .flags = BUILD_ID_ALL},
                (uint64_t[]){1, 0});
    build_event(&build,
                &(struct build_event){.sample_type = type | PERF_SAMPLE_CPU, .flags = BUILD_ID_ALL},
                (uint64_t[]){2, 0});
    for (uint64_t id = 0; id < 4; id++) {
        size_t start = build_begin(&build, PERF_RECORD_LOST, 0);
        put_u64(&build.data, 0);
        put_u64(&build.data, 17);
        put_u64(&build.data, 100 + id);
        if (id == 2)
            put_u64(&build.data, 6);
        put_u64(&build.data, id);
        build_end(&build, start);
    }
    struct opened o;
    struct perfdata_record record;
    opened_build(&o, &build);
    uint64_t offset = o.data->data_start, lost;
    for (uint64_t id = 0; perfdata_next(o.data, &offset, &record, &o.error); id++) {
        static const uint32_t events[] = {0, 0, 1, PERFDATA_NO_EVENT};
        struct perfdata_trailer trailer;
        assert_true(perfdata_trailer(o.data, &record, &trailer, &o.error));
        assert_int_equal(trailer.event, events[id]);
        assert_int_equal(trailer.time, id < 3 ? 100 + id : 0);
        assert_int_equal(trailer.cpu, id == 2 ? 6 : UINT32_MAX);
        assert_true(perfdata_lost(o.data, &record, &lost, &o.error));
        assert_int_equal(lost, 17);
    }
    opened_close(&o);
    build_release(&build);
}

/* ---- side records ---- */

static void put_mmap(struct buffer *b) {
    put_u32(b, UINT32_MAX);
    put_u32(b, 8);
    put_u64(b, 0xffffffff81000000);
    put_u64(b, UINT64_MAX);
    put_u64(b, 0x1000);
}

static struct perfdata_mmap one_mmap_of(uint64_t flags, uint32_t type, uint16_t misc,
                                        const struct buffer *middle, const char *path) {
    struct build build = {0};
    build_event(&build, &(struct build_event){.sample_type = PERF_SAMPLE_IP, .flags = flags}, NULL);
    size_t start = build_begin(&build, type, misc);
    put_mmap(&build.data);
    put_bytes(&build.data, middle->items, middle->count);
    put_bytes(&build.data, path, strlen(path)); /* up to the last byte, without a NUL */
    build_end(&build, start);
    struct opened o;
    struct perfdata_record record;
    struct perfdata_mmap mmap;
    opened_build(&o, &build);
    first_record(&o, &record);
    assert_true(perfdata_mmap(o.data, &record, &mmap, &o.error));
    assert_int_equal(mmap.pid, -1);
    assert_int_equal(mmap.tid, 8);
    assert_int_equal(mmap.start, 0xffffffff81000000);
    assert_int_equal(mmap.length, UINT64_MAX);
    assert_int_equal(mmap.offset, 0x1000);
    assert_text(mmap.path, path);
    opened_close(&o);
    build_release(&build);
    return mmap;
}

static struct perfdata_mmap one_mmap(uint32_t type, uint16_t misc, const struct buffer *middle,
                                     const char *path) {
    return one_mmap_of(0, type, misc, middle, path);
}

static void test_mmap(void **state) {
    struct buffer middle = {0};
    struct perfdata_mmap m =
        one_mmap(PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, &middle, "[kernel]");
    assert_true(m.executable);
    m = one_mmap(PERF_RECORD_MMAP, PERF_RECORD_MISC_MMAP_DATA, &middle, "");
    assert_false(m.executable);
    put_u32(&middle, 253);
    put_u32(&middle, 1);
    put_u64(&middle, 1234567);
    put_u64(&middle, 89);
    put_u32(&middle, PROT_READ | PROT_EXEC);
    put_u32(&middle, MAP_PRIVATE);
    m = one_mmap(PERF_RECORD_MMAP2, 0, &middle, "/bin/a file");
    assert_int_equal(m.major, 253);
    assert_int_equal(m.minor, 1);
    assert_int_equal(m.inode, 1234567);
    assert_int_equal(m.generation, 89);
    assert_int_equal(m.flags, MAP_PRIVATE);
    assert_true(m.executable);
    assert_int_equal(m.build_id.size, 0);
    /* The bit is believed where build ids were asked for, or it is one of the usual size. */
    static const uint8_t sizes[] = {0, 4, 20, 21, 255};
    for (size_t i = 0; i < 2 * COUNT_OF(sizes); i++) {
        uint8_t size = sizes[i / 2];
        uint64_t asked = i % 2 ? 1ull << 34 : 0;
        bool good = asked ? size > 0 && size <= 20 : size == 20;
        middle.items[0] = (char)size;
        m = one_mmap_of(asked, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, &middle,
                        "/bin/b");
        assert_int_equal(m.build_id.size, good ? size : 0);
        assert_memory_equal(m.build_id.bytes, middle.items + 4, m.build_id.size);
        assert_int_equal(m.major, good ? 0 : size);
        assert_int_equal(m.inode, good ? 0 : 1234567);
    }
    middle.items[1] = 1; /* device 259, which is 3 in one byte */
    middle.items[0] = 3;
    m = one_mmap_of(1ull << 34, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, &middle, "/b");
    assert_int_equal(m.build_id.size, 0);
    assert_int_equal(m.major, 259);
    buffer_release(&middle);
}

static void test_task_and_ksymbol(void **state) {
    struct build build = build_one(PERF_SAMPLE_IP);
    size_t start = build_begin(&build, PERF_RECORD_FORK, 0);
    for (uint32_t i = 1; i <= 4; i++)
        put_u32(&build.data, i);
    put_u64(&build.data, UINT64_MAX);
    build_end(&build, start);
    start = build_begin(&build, PERF_RECORD_KSYMBOL, 0);
    put_u64(&build.data, 0xffffffffc0000000);
    put_u32(&build.data, UINT32_MAX);
    put_u16(&build.data, 1);
    put_u16(&build.data, 1);
    put_string(&build.data, "bpf_prog_1", 16);
    build_end(&build, start);
    struct opened o;
    struct perfdata_record record;
    struct perfdata_task task;
    struct perfdata_ksymbol ksymbol;
    opened_build(&o, &build);
    uint64_t offset = o.data->data_start;
    assert_true(perfdata_next(o.data, &offset, &record, &o.error));
    assert_true(perfdata_task(o.data, &record, &task, &o.error));
    assert_int_equal(task.pid, 1);
    assert_int_equal(task.parent_pid, 2);
    assert_int_equal(task.tid, 3);
    assert_int_equal(task.parent_tid, 4);
    assert_int_equal(task.time, UINT64_MAX);
    assert_true(perfdata_next(o.data, &offset, &record, &o.error));
    assert_true(perfdata_ksymbol(o.data, &record, &ksymbol, &o.error));
    assert_int_equal(ksymbol.address, 0xffffffffc0000000);
    assert_int_equal(ksymbol.length, UINT32_MAX);
    assert_true(ksymbol.unregister);
    assert_text(ksymbol.name, "bpf_prog_1");
    opened_close(&o);
    build_release(&build);
}

static void test_deferred(void **state) {
    static const uint64_t counts[] = {0, 2, 3, UINT64_MAX, UINT64_MAX / 8 + 1};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct build build = build_one(PERF_SAMPLE_IP);
        size_t start = build_begin(&build, RECORD_CALLCHAIN_DEFERRED, 0);
        put_u64(&build.data, 77);
        put_u64(&build.data, counts[i]);
        put_u64(&build.data, 0x10);
        put_u64(&build.data, 0x20);
        build_end(&build, start);
        struct opened o;
        struct perfdata_record record;
        struct perfdata_deferred deferred;
        opened_build(&o, &build);
        first_record(&o, &record);
        assert_int_equal(perfdata_deferred(o.data, &record, &deferred, &o.error), counts[i] <= 2);
        assert_int_equal(deferred.cookie, 77);
        if (counts[i] == 2)
            assert_int_equal(load_u64(deferred.chain + 8), 0x20);
        opened_close(&o);
        build_release(&build);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_payloads),
        cmocka_unit_test(test_least_sizes),
        cmocka_unit_test(test_unknown_types),
        cmocka_unit_test(test_trailers),
        cmocka_unit_test(test_trailer_by_id),
        cmocka_unit_test(test_mmap),
        cmocka_unit_test(test_task_and_ksymbol),
        cmocka_unit_test(test_deferred),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
