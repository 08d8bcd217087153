/* Opening a perf.data: header, attributes, ids, features, names; in hand-built bytes, where no recording reaches. */
#include "perfdata_build.h"

/* ---- the header ---- */

static void opens(const void *bytes, size_t size, const char *why) {
    struct opened o;
    opened_bytes(&o, bytes, size, false);
    if (why) {
        assert_null(o.data);
        assert_int_equal(o.error.kind, ERROR_INPUT);
        assert_int_not_equal(o.error.offset, NO_OFFSET);
        if (!strstr(o.error.message, why))
            fail_msg("\"%s\" does not say \"%s\"", o.error.message, why);
    } else {
        assert_non_null(o.data);
    }
    opened_close(&o);
}

/* `value` in `size` bytes at `at` makes the file unreadable, and the message says why. */
static void opens_with(const struct buffer *file, size_t at, uint64_t value, size_t size,
                       const char *why) {
    char *copy = memory_copy(file->items, file->count);
    memcpy(copy + at, &value, size);
    opens(copy, file->count, why);
    free(copy);
}

static void test_magic(void **state) {
    struct build build = build_one(PERF_SAMPLE_IP);
    struct buffer file = build_file(&build);
    opens(file.items, file.count, NULL);
    opens("", 0, "not a perf.data");
    opens("PERFILE", 7, "not a perf.data");
    opens("PERFILE2", 8, "ends inside its header");
    opens("2ELIFREP\0\0\0\0\0\0\0\0", 16, "other byte order");
    opens("PERFFILE\0\0\0\0\0\0\0\0", 16, "older than");
    opens("PERFILE2\20\0\0\0\0\0\0\0", 16, "no events");
    opens_with(&file, 8, 103, 8, "header size 103");
    opens_with(&file, 8, UINT64_MAX, 8, "header size");
    assert_true(perfdata_is(TEXT("PERFILE2...")));
    assert_true(perfdata_is(TEXT("2ELIFREP")));
    assert_false(perfdata_is(TEXT("PERFILE")));
    assert_false(perfdata_is(TEXT("w 12 [000] 1.2: cycles:")));
    buffer_release(&file);
    build_release(&build);
}

static void test_old_header_has_no_features(void **state) {
    struct build build = build_one(PERF_SAMPLE_IP);
    build_record(&build, RECORD_FINISHED_ROUND, 0);
    struct buffer arch = {0};
    put_u32(&arch, 8);
    put_string(&arch, "x86_64", 8);
    build_feature(&build, FEATURE_ARCH, &arch);
    struct opened o;
    opened_build(&o, &build);
    assert_text(o.data->arch, "x86_64");
    uint64_t old = 72;
    memcpy(o.bytes.items + 8, &old, 8);
    struct opened second;
    opened_bytes(&second, o.bytes.items, o.bytes.count, false);
    assert_non_null(second.data);
    assert_text(second.data->arch, "");
    opened_close(&second);
    opened_close(&o);
    buffer_release(&arch);
    build_release(&build);
}

/* A cut before the data is an error that says where the file ends; in the data it is a cut, or an error when strict. */
static void test_every_cut(void **state) {
    struct build build = {0};
    build_event(&build, &(struct build_event){.sample_type = all_fixed, .flags = BUILD_ID_ALL},
                (uint64_t[]){1, 2, 0});
    build_event(&build, &(struct build_event){.sample_type = all_fixed, .flags = BUILD_ID_ALL},
                (uint64_t[]){3, 0});
    for (int i = 0; i < 3; i++)
        build_record(&build, PERF_RECORD_SAMPLE, 72);
    struct buffer file = build_file(&build);
    size_t data = file.count - build.data.count;
    for (size_t size = 0; size <= file.count; size++) {
        struct opened o;
        opened_bytes(&o, file.items, size, false);
        assert_int_equal(!!o.data, size >= data);
        if (o.data) {
            uint64_t offset = o.data->data_start, count = 0;
            struct perfdata_record record;
            while (perfdata_next(o.data, &offset, &record, &o.error))
                count++;
            assert_int_equal(o.error.kind, ERROR_NONE);
            assert_int_equal(count, (size - data) / 80);
            assert_int_equal(o.data->is_cut, size < file.count);
            if (o.data->is_cut)
                assert_int_equal(o.data->cut, size - (size - data) % 80);
            assert_int_equal(offset, o.data->data_end);
        } else {
            assert_true(o.error.offset <= size);
        }
        opened_close(&o);
        opened_bytes(&o, file.items, size, true);
        assert_int_equal(!!o.data, size == file.count);
        opened_close(&o);
    }
    buffer_release(&file);
    build_release(&build);
}

static void test_sections(void **state) {
    struct build build = build_one(PERF_SAMPLE_IP);
    build_record(&build, PERF_RECORD_SAMPLE, 8);
    struct buffer file = build_file(&build);
    const uint64_t ids = 104, attribute = ids + 8;
    opens_with(&file, 16, 0, 8, "attribute size 0");
    opens_with(&file, 16, 79, 8, "attribute size 79");
    opens_with(&file, 16, UINT64_MAX, 8, "no events");
    opens_with(&file, 24, file.count, 8, "attributes of");
    opens_with(&file, 24, UINT64_MAX, 8, "attributes of");
    opens_with(&file, 32, UINT64_MAX, 8, "attributes of");
    opens_with(&file, 32, 0, 8, "no events");
    opens_with(&file, 40, file.count + 1, 8, "beyond the end");
    opens_with(&file, 40, UINT64_MAX, 8, "beyond the end");
    opens_with(&file, 48, UINT64_MAX, 8, "impossible");
    opens_with(&file, attribute + 4, 1, 4, "attribute size 1 ");
    opens_with(&file, attribute + 4, 65, 4, "attribute size 65 ");
    opens_with(&file, attribute + 4, 136, 4, "attribute size 136 ");
    opens_with(&file, attribute + 4, UINT32_MAX, 4, "attribute size");
    opens_with(&file, attribute + 128, UINT64_MAX, 8, "ids of");
    opens_with(&file, attribute + 136, UINT64_MAX, 8, "ids of");
    opens_with(&file, attribute + 136, 7, 8, "not a whole number");
    buffer_release(&file);
    build_release(&build);
}

/* Every size an attribute has had, and one to come: fields beyond it are 0. */
static void test_attribute_sizes(void **state) {
    static const uint32_t sizes[] = {64, 72, 80, 96, 104, 112, 120, 128, 136, 144};
    const struct build_event event = {.type = 4,
                                      .config = 5,
                                      .period = 6,
                                      .sample_type = all_fixed,
                                      .flags = 1,
                                      .branch_type = 9,
                                      .regs_user = 10,
                                      .stack_user = 11,
                                      .regs_intr = 12};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct build build = {.attribute_size = sizes[i]};
        build_event(&build, &event, (uint64_t[]){1, 0});
        build_event(&build, &event, (uint64_t[]){2, 3, 0});
        struct opened o;
        opened_build(&o, &build);
        assert_non_null(o.data);
        assert_int_equal(o.data->events.count, 2);
        const struct perfdata_event *second = &o.data->events.items[1];
        assert_int_equal(second->config, 5);
        assert_int_equal(second->sample_period, 6);
        assert_int_equal(second->branch_sample_type, sizes[i] >= 80 ? 9 : 0);
        assert_int_equal(second->regs_user, sizes[i] >= 96 ? 10 : 0);
        assert_int_equal(second->stack_user, sizes[i] >= 96 ? 11 : 0);
        assert_int_equal(second->regs_intr, sizes[i] >= 104 ? 12 : 0);
        assert_int_equal(second->id_count, 2);
        assert_int_equal(load_u64(second->ids + 8), 3);
        opened_close(&o);
        build_release(&build);
    }
}

static void test_attribute_size_0_is_the_first(void **state) {
    struct build build = {.attribute_size = 64};
    build_event(&build, &(struct build_event){.sample_type = PERF_SAMPLE_IP}, (uint64_t[]){1, 0});
    struct buffer file = build_file(&build);
    memset(file.items + 104 + 8 + 4, 0, 4);
    opens(file.items, file.count, NULL);
    buffer_release(&file);
    build_release(&build);
}

static void opens_event(const struct build_event *event, const char *why) {
    struct build build = {0};
    build_event(&build, event, NULL);
    struct buffer file = build_file(&build);
    opens(file.items, file.count, why);
    buffer_release(&file);
    build_release(&build);
}

static void test_unknown_bits(void **state) {
    opens_event(&(struct build_event){.sample_type = 1ull << 24}, NULL);
    opens_event(&(struct build_event){.sample_type = 1ull << 25}, "bits 0x2000000");
    opens_event(&(struct build_event){.sample_type = 1ull << 63}, "bits 0x8000000000000000");
    opens_event(&(struct build_event){.sample_type = PERF_SAMPLE_READ, .read_format = 0x1f}, NULL);
    opens_event(&(struct build_event){.sample_type = PERF_SAMPLE_READ, .read_format = 0x20},
                "bits 0x20");
    opens_event(&(struct build_event){.sample_type = PERF_SAMPLE_IP, .read_format = 0x20}, NULL);
    opens_event(
        &(struct build_event){.sample_type = PERF_SAMPLE_BRANCH_STACK, .branch_type = 1 << 19},
        NULL);
    opens_event(
        &(struct build_event){.sample_type = PERF_SAMPLE_BRANCH_STACK, .branch_type = 1 << 20},
        "bits 0x100000");
}

/* ---- which event ---- */

static void test_ids(void **state) {
    static const uint64_t types[] = {PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TIME,
                                     PERF_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_TIME};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct build build = {0};
        build_event(&build, &(struct build_event){.sample_type = types[i]},
                    (uint64_t[]){10, 11, 0});
        build_event(&build, &(struct build_event){.sample_type = types[i] | PERF_SAMPLE_PERIOD},
                    (uint64_t[]){UINT64_MAX, 0});
        static const uint64_t ids[] = {10, 11, UINT64_MAX, 0, 12};
        static const uint32_t events[] = {0, 0, 1, 0, PERFDATA_NO_EVENT};
        for (size_t j = 0; j < COUNT_OF(ids); j++) {
            size_t start = build_begin(&build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
            if (i == 0)
                put_u64(&build.data, ids[j]);
            put_u64(&build.data, 0x1234);
            put_u64(&build.data, 99 + j);
            if (i == 1)
                put_u64(&build.data, ids[j]);
            put_u64(&build.data, 5);
            build_end(&build, start);
        }
        struct opened o;
        opened_build(&o, &build);
        uint64_t offset = o.data->data_start;
        struct perfdata_record record;
        for (size_t j = 0; perfdata_next(o.data, &offset, &record, &o.error); j++) {
            uint32_t event;
            uint64_t time;
            struct perfdata_sample sample;
            assert_true(perfdata_sample_key(o.data, &record, &event, &time, &o.error));
            assert_int_equal(event, events[j]);
            bool fine = perfdata_sample(o.data, &record, &sample, &o.error);
            assert_int_equal(fine, event != PERFDATA_NO_EVENT);
            if (!fine)
                continue;
            assert_int_equal(time, 99 + j);
            assert_int_equal(sample.time, 99 + j);
            assert_int_equal(sample.event, event);
            assert_int_equal(sample.period, event ? 5 : 0);
        }
        opened_close(&o);
        build_release(&build);
    }
}

static void test_events_without_ids(void **state) {
    struct build build = {0};
    build_event(&build, &(struct build_event){.sample_type = PERF_SAMPLE_IP}, NULL);
    build_event(&build, &(struct build_event){.sample_type = PERF_SAMPLE_IP}, NULL);
    struct opened o;
    opened_build(&o, &build);
    assert_non_null(o.data);
    assert_true(has_note(o.data, "events-untold"));
    opened_close(&o);
    build_event(&build, &(struct build_event){.sample_type = PERF_SAMPLE_TIME}, NULL);
    opened_build(&o, &build);
    assert_null(o.data);
    assert_non_null(strstr(o.error.message, "samples that do not identify their event"));
    opened_close(&o);
    build_release(&build);
}

/* A thousand attributes that all name one large region of ids would make a table of the product. */
static void test_overlapping_ids(void **state) {
    struct build build = build_one(PERF_SAMPLE_IP);
    build_event(&build, &(struct build_event){.sample_type = PERF_SAMPLE_IP}, NULL);
    struct buffer file = build_file(&build);
    for (size_t i = 0; i < 2; i++) {
        uint64_t all[] = {0, file.count / 8 * 8};
        memcpy(file.items + 104 + 8 + i * BUILD_ATTRIBUTE + 128, all, 16);
    }
    opens(file.items, file.count, "ids overlap");
    buffer_release(&file);
    build_release(&build);
}

/* ---- features ---- */

static void put_feature_string(struct buffer *b, const char *s) {
    put_u32(b, 64);
    put_string(b, s, 64);
}

static void test_features(void **state) {
    struct build build = {0};
    build_event(&build, &(struct build_event){.sample_type = PERF_SAMPLE_IP, .type = 1},
                (uint64_t[]){5, 0});
    build_record(&build, RECORD_FINISHED_ROUND, 0);
    struct buffer b[6] = {0};
    for (int sized = 0; sized < 2; sized++) { /* build ids of 20 and of 4 bytes */
        put_u32(&b[0], 0);
        put_u16(&b[0], (uint16_t)(PERF_RECORD_MISC_USER | sized << 15));
        put_u16(&b[0], 36 + 12);
        put_u32(&b[0], UINT32_MAX);
        for (uint8_t i = 0; i < 20; i++)
            put_u8(&b[0], i);
        put_u32(&b[0], 4);
        put_string(&b[0], sized ? "/bin/short" : "/bin/long", 12);
    }
    put_zeroes(&b[0], 7);
    build_feature(&build, FEATURE_BUILD_ID, &b[0]);
    put_feature_string(&b[1], "a host");
    build_feature(&build, FEATURE_HOSTNAME, &b[1]);
    put_u32(&b[2], 8);
    put_u32(&b[2], 6);
    build_feature(&build, FEATURE_NRCPUS, &b[2]);
    put_u32(&b[3], 3);
    put_feature_string(&b[3], "perf");
    put_feature_string(&b[3], "record");
    put_feature_string(&b[3], "a b");
    build_feature(&build, FEATURE_CMDLINE, &b[3]);
    put_u32(&b[4], 1);
    put_u32(&b[4], 64);
    put_zeroes(&b[4], 64);
    put_u32(&b[4], 1);
    put_feature_string(&b[4], "cpu-clock:ppp");
    put_u64(&b[4], 5);
    build_feature(&build, FEATURE_EVENT_DESC, &b[4]);
    build_feature(&build, 200, &b[5]);
    struct opened o;
    opened_build(&o, &build);
    assert_non_null(o.data);
    assert_int_equal(o.data->notes.count, 0);
    assert_int_equal(o.data->build_ids.count, 2);
    assert_int_equal(o.data->build_ids.items[0].id.size, 20);
    assert_int_equal(o.data->build_ids.items[0].id.bytes[19], 19);
    assert_int_equal(o.data->build_ids.items[0].pid, -1);
    assert_int_equal(o.data->build_ids.items[0].misc, PERF_RECORD_MISC_USER);
    assert_text(o.data->build_ids.items[0].path, "/bin/long");
    assert_int_equal(o.data->build_ids.items[1].id.size, 4);
    assert_text(o.data->build_ids.items[1].path, "/bin/short");
    assert_text(o.data->hostname, "a host");
    assert_int_equal(o.data->cpus_available, 8);
    assert_int_equal(o.data->cpus_online, 6);
    assert_text(o.data->cmdline, "perf record a b");
    assert_text(o.data->events.items[0].name, "cpu-clock:ppp");
    /* The event, its ids, two build ids and three words are taken off a budget, each for its own place. */
    assert_int_equal(bytes_too_much(&o.bytes), 7);
    struct error error;
    assert_false(opens_within(&o.bytes, (struct budget_limits){.memory = 1 << 20}, &error));
    assert_non_null(strstr(error.message, ": needs more work than a file of its size may use"));
    opened_close(&o);
    for (size_t i = 0; i < COUNT_OF(b); i++)
        buffer_release(&b[i]);
    build_release(&build);
}

/* Each of these is damaged; each is left out and noted, and the file is read. */
static void test_damaged_features(void **state) {
    static const struct {
        unsigned bit;
        uint32_t words[4];
        size_t size;
    } cases[] = {
        {FEATURE_ARCH, {0}, 3},
        {FEATURE_ARCH, {100}, 8},
        {FEATURE_ARCH, {UINT32_MAX}, 16},
        {FEATURE_NRCPUS, {1}, 4},
        {FEATURE_BUILD_ID, {0, 35 << 16}, 16},
        {FEATURE_BUILD_ID, {0, 0xffffu << 16}, 16},
        {FEATURE_CMDLINE, {UINT32_MAX, 0}, 8},
        {FEATURE_EVENT_DESC, {UINT32_MAX, 0}, 8},
        {FEATURE_EVENT_DESC, {1, UINT32_MAX}, 16},
        {FEATURE_EVENT_DESC, {1, 0, UINT32_MAX, 0}, 16},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct build build = build_one(PERF_SAMPLE_IP);
        build_record(&build, RECORD_FINISHED_ROUND, 0);
        struct buffer content = {0};
        put_bytes(&content, cases[i].words, cases[i].size);
        build_feature(&build, cases[i].bit, &content);
        struct opened o;
        opened_build(&o, &build);
        assert_non_null(o.data);
        assert_true(has_note(o.data, "damaged-header-feature"));
        assert_text(o.data->events.items[0].name, "cpu-clock:HG");
        opened_close(&o);
        buffer_release(&content);
        build_release(&build);
    }
}

static void test_feature_outside_the_file(void **state) {
    struct build build = build_one(PERF_SAMPLE_IP);
    build_record(&build, RECORD_FINISHED_ROUND, 0);
    struct buffer content = {0};
    build_feature(&build, FEATURE_ARCH, &content);
    struct buffer file = build_file(&build);
    for (size_t field = 0; field < 2; field++) {
        char *copy = memory_copy(file.items, file.count);
        memset(copy + file.count - 16 + 8 * field, 0xff, 8);
        struct opened o;
        opened_bytes(&o, copy, file.count, false);
        assert_non_null(o.data);
        assert_true(has_note(o.data, "damaged-header-feature"));
        opened_close(&o);
        free(copy);
    }
    struct opened o; /* the table itself is cut */
    opened_bytes(&o, file.items, file.count - 1, false);
    assert_non_null(o.data);
    assert_true(has_note(o.data, "damaged-header-feature"));
    opened_close(&o);
    opened_bytes(&o, file.items, file.count - 1, true);
    assert_null(o.data);
    opened_close(&o);
    buffer_release(&file);
    build_release(&build);
}

static void test_names(void **state) {
    enum { USER = 1 << 5 | 1 << 6, GUEST = 1 << 20 };
    static const struct {
        struct build_event event;
        const char *name;
    } cases[] = {
        {{.type = 0, .config = 0, .flags = USER}, "cycles:u"},
        {{.type = 0, .config = 9, .flags = USER | 3 << 15}, "ref-cycles:uppp"},
        {{.type = 0, .config = 10, .flags = USER}, "unknown-hardware:u"},
        {{.type = 1, .config = 1}, "task-clock:HG"},
        {{.type = 1, .config = 2, .flags = GUEST}, "page-faults"},
        {{.type = 1, .config = 99, .flags = GUEST}, "unknown-software"},
        {{.type = 1, .config = 0, .flags = 1 << 4}, "cpu-clock:kh"},
        {{.type = 1, .config = 0, .flags = USER | GUEST}, "cpu-clock:uH"},
        {{.type = 2, .config = 300}, "unknown tracepoint"},
        {{.type = 3, .config = 0x10000, .flags = USER}, "L1-dcache-load-misses:u"},
        {{.type = 3, .config = 0x00103, .flags = USER}, "dTLB-stores:u"},
        {{.type = 3, .config = 0x00104, .flags = USER}, "invalid-cache:u"},
        {{.type = 3, .config = 0x7, .flags = USER}, "unknown-ext-hardware-cache-type:u"},
        {{.type = 3, .config = 0x300, .flags = USER}, "unknown-ext-hardware-cache-op:u"},
        {{.type = 3, .config = 0x20000, .flags = USER}, "unknown-ext-hardware-cache-result:u"},
        {{.type = 4, .config = 0x1cd, .flags = USER}, "raw 0x1cd:u"},
        {{.type = 5, .bp_address = 0xabc, .bp_type = 3, .flags = USER}, "mem:0xabc:rw:u"},
        {{.type = 17}, "unknown attr type: 17"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct build build = {0};
        build_event(&build, &cases[i].event, NULL);
        struct opened o;
        opened_build(&o, &build);
        assert_text(o.data->events.items[0].name, cases[i].name);
        opened_close(&o);
        build_release(&build);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_magic),
        cmocka_unit_test(test_old_header_has_no_features),
        cmocka_unit_test(test_every_cut),
        cmocka_unit_test(test_sections),
        cmocka_unit_test(test_attribute_sizes),
        cmocka_unit_test(test_attribute_size_0_is_the_first),
        cmocka_unit_test(test_unknown_bits),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_events_without_ids),
        cmocka_unit_test(test_overlapping_ids),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_damaged_features),
        cmocka_unit_test(test_feature_outside_the_file),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
