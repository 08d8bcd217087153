/* Samples: every field and read format in hand-built bytes, and real recordings against perf's own dump of them. */
#include "perfdata_build.h"

/* ---- all fields ---- */

enum { MASK_USER = 0x105, MASK_INTR = 0x3, BRANCH_HW_INDEX = 1 << 17, BRANCH_COUNTERS = 1 << 19 };

static const uint64_t every_field = 0x1ffffff & ~(uint64_t)PERF_SAMPLE_WEIGHT;

static const struct build_event whole_event = {
    .sample_type = every_field,
    .read_format =
        PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST | PERF_FORMAT_TOTAL_TIME_ENABLED,
    .branch_type = BRANCH_HW_INDEX | BRANCH_COUNTERS,
    .regs_user = MASK_USER,
    .regs_intr = MASK_INTR,
};

/* One sample with every field, each value its own. *counts are where the counts and sizes stand in it. */
static size_t put_whole_sample(struct buffer *b, size_t counts[8]) {
    size_t n = 0, start = b->count;
    for (uint64_t i = 1; i <= 9;
         i++) /* identifier, ip, pid+tid, time, address, id, stream, cpu, period */
        put_u64(b, i == 3 ? 0xffffffff00000012 : i == 8 ? 0x7700000003 : i * 0x1111);
    counts[n++] = b->count - start;
    put_u64(b, 2);    /* counters read */
    put_u64(b, 0xe0); /* time enabled */
    for (uint64_t i = 0; i < 6; i++)
        put_u64(b, 0xf0 + i);
    counts[n++] = b->count - start;
    put_u64(b, 3); /* chain */
    for (uint64_t i = 0; i < 3; i++)
        put_u64(b, 0xc0 + i);
    counts[n++] = b->count - start;
    put_u32(b, 4); /* raw */
    put_string(b, "raw!", 4);
    counts[n++] = b->count - start;
    put_u64(b, 1); /* branches */
    put_u64(b, 0xb0);
    put_u64(b, 0xb1), put_u64(b, 0xb2), put_u64(b, 0xb3);
    put_u64(b, 0xb4); /* counters */
    put_u64(b, 2);    /* abi */
    put_u64(b, 0xa0), put_u64(b, 0xa1), put_u64(b, 0xa2);
    counts[n++] = b->count - start;
    put_u64(b, 16); /* stack */
    put_string(b, "0123456789abcdef", 16);
    counts[n++] = b->count - start;
    put_u64(b, 10);
    put_u64(b, 0x0003000200000001); /* weight */
    put_u64(b, 0xd0);               /* data source */
    put_u64(b, 0xd1);               /* transaction */
    put_u64(b, 1);                  /* abi */
    put_u64(b, 0xa8), put_u64(b, 0xa9);
    put_u64(b, 0xd2), put_u64(b, 0xd3), put_u64(b, 0xd4),
        put_u64(b, 0xd5); /* physical, cgroup, page sizes */
    counts[n++] = b->count - start;
    put_u64(b, 8); /* aux */
    put_string(b, "auxiliar", 8);
    return n;
}

static void check_whole_sample(const struct perfdata_sample *s) {
    assert_int_equal(s->identifier, 0x1111);
    assert_int_equal(s->ip, 0x2222);
    assert_int_equal(s->pid, 0x12);
    assert_int_equal(s->tid, -1);
    assert_int_equal(s->time, 0x4444);
    assert_int_equal(s->address, 0x5555);
    assert_int_equal(s->id, 0x6666);
    assert_int_equal(s->stream_id, 0x7777);
    assert_int_equal(s->cpu, 3);
    assert_int_equal(s->period, 0x9999);
    assert_int_equal(s->read_size, 64);
    assert_int_equal(load_u64(s->read + 56), 0xf5);
    assert_int_equal(s->chain_count, 3);
    assert_int_equal(load_u64(s->chain + 16), 0xc2);
    assert_int_equal(s->raw_size, 4);
    assert_memory_equal(s->raw, "raw!", 4);
    assert_int_equal(s->branch_count, 1);
    assert_int_equal(s->branch_hw_index, 0xb0);
    assert_int_equal(load_u64(s->branches + 16), 0xb3);
    assert_int_equal(load_u64(s->branch_counters), 0xb4);
    assert_int_equal(s->regs_user_abi, 2);
    assert_int_equal(load_u64(s->regs_user + 16), 0xa2);
    assert_int_equal(s->stack_dumped, 16);
    assert_int_equal(s->stack_size, 10);
    assert_memory_equal(s->stack, "0123456789", 10);
    assert_int_equal(s->weight, 1);
    assert_int_equal(s->weight_2, 2);
    assert_int_equal(s->weight_3, 3);
    assert_int_equal(s->data_source, 0xd0);
    assert_int_equal(s->transaction, 0xd1);
    assert_int_equal(s->regs_intr_abi, 1);
    assert_int_equal(load_u64(s->regs_intr + 8), 0xa9);
    assert_int_equal(s->physical_address, 0xd2);
    assert_int_equal(s->cgroup, 0xd3);
    assert_int_equal(s->data_page_size, 0xd4);
    assert_int_equal(s->code_page_size, 0xd5);
    assert_int_equal(s->aux_size, 8);
    assert_memory_equal(s->aux, "auxiliar", 8);
    assert_int_equal(s->mode, PERF_RECORD_MISC_USER);
}

/* Decodes the sample `body` of an event; true if that worked. */
static bool decodes(const struct build_event *event, const void *body, size_t size,
                    void (*check)(const struct perfdata_sample *)) {
    struct build build = {0};
    build_event(&build, event, (uint64_t[]){0x1111, 0});
    size_t start = build_begin(&build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    put_bytes(&build.data, body, size);
    build_end(&build, start);
    struct opened o;
    struct perfdata_record record;
    struct perfdata_sample sample;
    opened_build(&o, &build);
    first_record(&o, &record);
    bool fine = perfdata_sample(o.data, &record, &sample, &o.error);
    assert_int_equal(fine, o.error.kind == ERROR_NONE);
    if (!fine)
        assert_int_equal(o.error.offset, record.offset);
    if (fine && check)
        check(&sample);
    opened_close(&o);
    build_release(&build);
    return fine;
}

static void test_every_field(void **state) {
    struct buffer body = {0};
    size_t counts[8];
    put_whole_sample(&body, counts);
    assert_true(decodes(&whole_event, body.items, body.count, check_whole_sample));
    for (size_t size = 0; size < body.count; size++) /* cut anywhere, it is too short */
        assert_false(decodes(&whole_event, body.items, size, NULL));
    buffer_release(&body);
}

/* Counts and sizes at their extremes, among them those whose product wraps around. */
static void test_extreme_counts(void **state) {
    static const uint64_t extremes[] = {
        UINT64_MAX,         UINT64_MAX / 8, UINT64_MAX / 8 + 1, UINT64_MAX / 24 + 1,
        UINT64_MAX / 2 + 1, 1ull << 61,     0x100000000,        65535};
    struct buffer body = {0};
    size_t counts[8], n = put_whole_sample(&body, counts);
    assert_int_equal(n, 7);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < COUNT_OF(extremes); j++) {
            char *copy = memory_copy(body.items, body.count);
            memcpy(copy + counts[i], &extremes[j],
                   i == 2 ? 4 : 8); /* the size of raw data has four bytes */
            bool fits =
                i == 2 && (uint32_t)extremes[j] == 0; /* none at all leaves more than enough */
            if (!fits)
                assert_false(decodes(&whole_event, copy, body.count, NULL));
            free(copy);
        }
    buffer_release(&body);
}

/* The same where nothing follows that would run short: only the check of the product is left. */
static void test_products_that_wrap(void **state) {
    const uint64_t chain[] = {1ull << 61}, group[] = {1ull << 61}, branches[] = {1ull << 61};
    assert_false(
        decodes(&(struct build_event){.sample_type = PERF_SAMPLE_CALLCHAIN}, chain, 8, NULL));
    assert_false(
        decodes(&(struct build_event){.sample_type = PERF_SAMPLE_BRANCH_STACK}, branches, 8, NULL));
    assert_false(decodes(
        &(struct build_event){.sample_type = PERF_SAMPLE_READ, .read_format = PERF_FORMAT_GROUP},
        group, 8, NULL));
}

static void check_nothing(const struct perfdata_sample *s) {
    assert_int_equal(s->pid, -1);
    assert_int_equal(s->tid, -1);
    assert_int_equal(s->cpu, UINT32_MAX);
    assert_int_equal(s->time, 0);
    assert_int_equal(s->period, 4000);
    assert_null(s->chain);
    assert_null(s->regs_user);
    assert_null(s->stack);
}

static void check_frequency(const struct perfdata_sample *s) {
    assert_int_equal(s->period, 0);
}

static void test_absent_fields(void **state) {
    uint64_t ip = 5;
    assert_true(
        decodes(&(struct build_event){.sample_type = 0, .period = 4000}, "", 0, check_nothing));
    assert_true(decodes(&(struct build_event){.sample_type = PERF_SAMPLE_IP,
                                              .period = 4000,
                                              .flags = BUILD_FREQUENCY},
                        &ip, 8, check_frequency));
}

static void check_empty(const struct perfdata_sample *s) {
    assert_non_null(s->chain);
    assert_int_equal(s->chain_count, 0);
    assert_int_equal(s->regs_user_abi, 0);
    assert_null(s->regs_user);
    assert_int_equal(s->stack_dumped, 0);
    assert_null(s->stack);
    assert_int_equal(s->weight, 0xffffffffffff);
}

/* No registers and no stack: neither their values nor the dynamic size are there. */
static void test_empty_parts(void **state) {
    const struct build_event event = {.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
                                                     PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT,
                                      .regs_user = UINT64_MAX};
    const uint64_t body[] = {0, 0, 0, 0xffffffffffff};
    assert_true(decodes(&event, body, sizeof body, check_empty));
}

static void test_stack_larger_than_its_dump(void **state) {
    const struct build_event event = {.sample_type = PERF_SAMPLE_STACK_USER};
    const uint64_t fits[] = {8, 0, 8}, not [] = {8, 0, 9};
    assert_true(decodes(&event, fits, sizeof fits, NULL));
    assert_false(decodes(&event, not, sizeof not, NULL));
}

/* ---- read formats ---- */

static size_t expected_read;

static void check_read(const struct perfdata_sample *s) {
    assert_int_equal(s->read_size, expected_read);
    assert_int_equal(s->chain_count, 1);
    assert_int_equal(load_u64(s->chain), 0xabc);
}

/* All 32 formats, with 0 to 3 counters: what follows the counts must come out right. */
static void test_read_formats(void **state) {
    for (uint64_t format = 0; format < 32; format++)
        for (uint64_t counters = 0; counters < 4; counters++) {
            struct buffer body = {0};
            bool group = format & PERF_FORMAT_GROUP;
            put_u64(&body, group ? counters : 12345);
            size_t words = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
                           !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
            size_t each = !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
            words += group ? counters * (1 + each) : each;
            for (size_t i = 0; i < words; i++)
                put_u64(&body, 0x100 + i);
            expected_read = body.count;
            put_u64(&body, 1);
            put_u64(&body, 0xabc);
            const struct build_event event = {
                .sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN, .read_format = format};
            assert_true(decodes(&event, body.items, body.count, check_read));
            buffer_release(&body);
        }
}

/* ---- real recordings ---- */

/* What perf says of the record at `line`, which begins "0x1a8 [0x50]: PERF_RECORD_". */
static void check_line(struct opened *o, const char *line, const struct perfdata_record *record) {
    struct perfdata_sample s;
    struct perfdata_mmap m;
    struct perfdata_comm c;
    unsigned long long offset, size, mode, ip, period, address, start, length, at;
    int pid, tid, end = 0;
    assert_int_equal(sscanf(line, "%llx [%llx]: PERF_RECORD_", &offset, &size), 2);
    assert_int_equal(offset, record->offset);
    assert_int_equal(size, record->size);
    const char *rest = strstr(line, "PERF_RECORD_") + strlen("PERF_RECORD_");
    if (sscanf(rest, "SAMPLE(IP, %llx): %d/%d: %llx period: %llu addr: %llx", &mode, &pid, &tid,
               &ip, &period, &address) == 6) {
        assert_true(perfdata_sample(o->data, record, &s, &o->error));
        assert_int_equal(s.mode, mode & 7);
        assert_int_equal(s.pid, pid);
        assert_int_equal(s.tid, tid);
        assert_int_equal(s.ip, ip);
        assert_int_equal(s.period, period);
        assert_int_equal(s.address, address);
        return;
    }
    assert_int_not_equal(record->type, PERF_RECORD_SAMPLE);
    assert_true(perfdata_check(o->data, record, &o->error));
    if (record->type == PERF_RECORD_MMAP || record->type == PERF_RECORD_MMAP2) {
        rest += record->type == PERF_RECORD_MMAP ? 4 : 5;
        assert_int_equal(
            sscanf(rest, "%d/%d: [%llx(%llx) @ %llx", &pid, &tid, &start, &length, &at), 5);
        assert_true(perfdata_mmap(o->data, record, &m, &o->error));
        assert_int_equal(m.pid, pid);
        assert_int_equal(m.start, start);
        assert_int_equal(m.length, length);
        assert_int_equal(m.offset, at);
        assert_true(text_ends(text_of(rest), m.path) && m.path.length);
    } else if (record->type == PERF_RECORD_COMM) {
        assert_true(perfdata_comm(o->data, record, &c, &o->error));
        const char *name = strstr(rest, ": ") + 2;
        assert_memory_equal(name, c.comm.data, c.comm.length);
        assert_int_equal(sscanf(name + c.comm.length, ":%d/%d%n", &pid, &tid, &end), 2);
        assert_int_equal(c.pid, pid);
        assert_int_equal(c.exec, strncmp(rest, "COMM exec", 9) == 0);
    }
}

static void check_recording(const char *name) {
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/fuzz/seeds/perfdata/%s.data", SOURCE_ROOT, name);
    struct opened o = {0};
    assert_true(file_open(&o.file, path, NULL, &o.error));
    o.data = perfdata_open(&o.file, &(struct perfdata_options){.strict = true}, &o.error);
    assert_non_null(o.data);
    assert_text(o.data->arch, "x86_64");
    assert_text(o.data->version, "6.1.190");
    snprintf(path, sizeof path, "%s/tests/unit/perfdata/%s.txt", SOURCE_ROOT, name);
    FILE *expected = fopen(path, "r");
    assert_non_null(expected);
    uint64_t offset = o.data->data_start;
    struct perfdata_record record;
    while (fgets(line, sizeof line, expected)) {
        if (line[0] == '#')
            continue;
        line[strcspn(line, "\n")] = 0;
        assert_true(perfdata_next(o.data, &offset, &record, &o.error));
        check_line(&o, line, &record);
    }
    assert_false(perfdata_next(o.data, &offset, &record, &o.error));
    assert_int_equal(o.error.kind, ERROR_NONE);
    assert_int_equal(o.data->notes.count, 0);
    fclose(expected);
    opened_close(&o);
}

static void test_recordings(void **state) {
    static const char *const names[] = {"chain",  "plain",  "two",     "cpu",
                                        "memory", "switch", "group",   "registers",
                                        "notime", "dwarf",  "buildid", "trace"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        check_recording(names[i]);
}

static void test_killed_recording(void **state) {
    struct opened o = {0};
    assert_true(file_open(&o.file, SOURCE_ROOT "/fuzz/seeds/perfdata/killed.data", NULL, &o.error));
    o.data = perfdata_open(&o.file, NULL, &o.error);
    assert_non_null(o.data);
    assert_true(o.data->is_cut);
    assert_text(o.data->events.items[0].name, "cpu-clock");
    uint64_t samples = 0, offset = o.data->data_start;
    struct perfdata_record record;
    while (perfdata_next(o.data, &offset, &record, &o.error))
        samples += record.type == PERF_RECORD_SAMPLE;
    assert_int_equal(o.error.kind, ERROR_NONE);
    assert_true(samples > 50);
    assert_true(o.data->cut < o.file.size);
    opened_close(&o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field),
        cmocka_unit_test(test_extreme_counts),
        cmocka_unit_test(test_products_that_wrap),
        cmocka_unit_test(test_absent_fields),
        cmocka_unit_test(test_empty_parts),
        cmocka_unit_test(test_stack_larger_than_its_dump),
        cmocka_unit_test(test_read_formats),
        cmocka_unit_test(test_recordings),
        cmocka_unit_test(test_killed_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
