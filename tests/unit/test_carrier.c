/* What a recording keeps: entries come back as they were written, from files, streams and packed records; damage costs the entry that
   has it, and nothing else. The layout of docs/carrier.md stands here a second time. */
#include "perfdata_build.h"

#include "perfdata/writer.h"
#include "profile/profile.h"
#include "record/internal.h"

enum { LARGE = 300000, FIXED = 56, AT_VERSION = 10, AT_KIND = 24, AT_PART = 28, AT_SUM = 52 };

/* ---- writing and reading ---- */

static struct buffer noise(size_t size) {
    struct buffer bytes = {0};
    for (uint64_t i = 0, x = 1; i < size; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        buffer_add_char(&bytes, (char)(x >> 56));
    }
    return bytes;
}

static void write_some(struct perfdata_writer *writer) {
    struct buffer large = noise(LARGE), dull = {0};
    for (size_t i = 0; i < LARGE; i++)
        buffer_add_char(&dull, 'd');
    assert_true(carrier_write(writer, CARRIER_PERF_MAP, TEXT("key"), TEXT("value"), NULL));
    assert_true(carrier_write(writer, CARRIER_FILE, TEXT("noise"), buffer_text(&large), NULL));
    assert_true(carrier_write(writer, CARRIER_FILE, TEXT("dull"), buffer_text(&dull), NULL));
    assert_true(carrier_write(writer, (enum carrier_kind)4711, TEXT(""), TEXT(""), NULL));
    buffer_release(&large);
    buffer_release(&dull);
}

/* A recording of what `write` writes. */
static struct buffer written_by(void (*write)(struct perfdata_writer *), bool stream, int level) {
    uint64_t id = 7;
    struct perfdata_writer_event event = {.name = "cpu-clock", .ids = &id, .id_count = 1};
    event.attr.type = PERF_TYPE_SOFTWARE;
    event.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    event.attr.sample_id_all = 1;
    struct perfdata_writer_options options = {.stream = stream, .compress_level = level};
    int file = file_temporary(NULL);
    struct perfdata_writer *writer = perfdata_writer_new(file, "x", &event, 1, &options, NULL);
    write(writer);
    assert_true(perfdata_write_round(writer, NULL));
    assert_true(perfdata_finish(writer, NULL));
    perfdata_writer_free(writer);
    struct buffer bytes = {0};
    vector_reserve(&bytes, 2 * LARGE);
    bytes.count = (size_t)pread(file, bytes.items, bytes.capacity, 0);
    close(file);
    return bytes;
}

static struct buffer written(bool stream, int level) {
    return written_by(write_some, stream, level);
}

struct seen {
    struct perfdata *data;
    struct buffer said;
};

static void see(void *context, const struct carrier_entry *entry) {
    struct seen *seen = context;
    struct buffer bytes = {0}, large = noise(LARGE);
    bool fine = carrier_read(seen->data, entry, &bytes);
    bool is_large = text_equal(buffer_text(&bytes), buffer_text(&large));
    buffer_printf(&seen->said, "%u %.*s %s%zu %.5s\n", entry->kind, TEXT_ARGS(entry->key),
                  !fine      ? "damaged "
                  : is_large ? "noise "
                             : "",
                  bytes.count, bytes.count && !is_large ? bytes.items : "");
    buffer_release(&bytes);
    buffer_release(&large);
}

static void says(const struct buffer *file, const char *expected, const char *note) {
    struct opened o;
    struct seen seen = {0};
    opened_bytes(&o, file->items, file->count, false);
    assert_non_null(o.data);
    seen.data = o.data;
    uint64_t offset = o.data->data_start;
    struct perfdata_record record;
    struct error error = {.kind = ERROR_NONE};
    while (perfdata_next(o.data, &offset, &record, &error)) {
        assert_true(perfdata_check(o.data, &record, NULL));
        if (record.type == PERF_RECORD_BPF_EVENT)
            assert_true(carrier_add(o.data, &record, &error));
    }
    carrier_each(o.data, see, &seen);
    buffer_add_char(&seen.said, 0);
    assert_string_equal(seen.said.items, expected);
    bool noted = false;
    for (size_t i = 0; i < o.data->notes.count; i++)
        noted |= note && strcmp(o.data->notes.items[i].kind->name, note) == 0;
    assert_int_equal(noted, note != NULL);
    buffer_release(&seen.said);
    opened_close(&o);
}

static const char all[] = "1 key 5 value\n2 noise noise 300000 \n2 dull 300000 ddddd\n4711  0 \n";

static void test_comes_back(void **state) {
    for (int stream = 0; stream < 2; stream++)
        for (int level = 0; level < 4; level += 3) {
            struct buffer file = written(stream, level);
            says(&file, all, NULL);
            buffer_release(&file);
        }
}

/* ---- damage ---- */

/* The place of the first record of the entry, and of the part, that hold these numbers. */
static char *part_at(const struct buffer *file, uint32_t entry, uint32_t part) {
    for (size_t at = 0; at + FIXED < file->count; at += 4)
        if (memcmp(file->items + at + 16, "wickkeep", 8) == 0 &&
            load_u32(file->items + at + 12) == entry &&
            load_u32(file->items + at + AT_PART) == part)
            return file->items + at;
    fail();
    return NULL;
}

static const char without_noise[] = "1 key 5 value\n2 dull 300000 ddddd\n4711  0 \n";

static void test_damage(void **state) {
    struct buffer file = written(false, 0);
    part_at(&file, 2, 3)[FIXED + 100] ^= 1; /* in the middle: seen when it is read */
    says(&file, "1 key 5 value\n2 noise damaged 0 \n2 dull 300000 ddddd\n4711  0 \n", NULL);
    buffer_release(&file);

    file = written(false, 0);
    part_at(&file, 2, 0)[FIXED + 100] ^= 1;
    says(&file, without_noise, "kept-entries-damaged");
    buffer_release(&file);

    file = written(false, 0);
    part_at(&file, 2, 0)[AT_KIND] ^= 1;
    says(&file, without_noise, "kept-entries-damaged");
    buffer_release(&file);

    file = written(false, 0);
    memset(part_at(&file, 2, 4) + 16, 0, 8); /* a part is lost */
    says(&file, without_noise, "kept-entries-damaged");
    buffer_release(&file);

    file = written(false, 0);
    uint32_t huge = 0xffffffff;
    memcpy(part_at(&file, 2, 1) + 40, &huge, 4);
    says(&file, without_noise, "kept-entries-damaged");
    buffer_release(&file);
}

static void test_newer_version(void **state) {
    struct buffer file = written(false, 0);
    part_at(&file, 1, 0)[AT_VERSION] = 2;
    says(&file, "2 noise noise 300000 \n2 dull 300000 ddddd\n4711  0 \n", "kept-entries-newer");
    buffer_release(&file);
}

/* What belongs to somebody else is none of ours. */
static void test_others(void **state) {
    struct build build = build_one(PERF_SAMPLE_IP);
    build_record(&build, PERF_RECORD_BPF_EVENT, 16);
    build_record(&build, PERF_RECORD_BPF_EVENT, 200);
    struct buffer file = build_file(&build);
    says(&file, "", NULL);
    buffer_release(&file);
    build_release(&build);
}

/* ---- labels ---- */

static void put_record(struct perfdata_writer *writer, uint32_t type, const uint64_t *words,
                       size_t count) {
    struct buffer record = {0};
    put_u32(&record, type);
    put_u16(&record, 0);
    put_u16(&record, (uint16_t)(8 + 8 * count));
    put_bytes(&record, words, 8 * count);
    assert_true(perfdata_write_split(writer, record.items, record.count, NULL, 0, NULL));
    buffer_release(&record);
}

static uint64_t both(uint64_t first, uint64_t second) {
    return second << 32 | first;
}

static void put_fork(struct perfdata_writer *writer, uint64_t time, uint64_t pid, uint64_t parent) {
    uint64_t words[] = {both(pid, parent), both(pid, parent), time, both(pid, pid), time, 0};
    put_record(writer, PERF_RECORD_FORK, words, COUNT_OF(words));
}

static void put_sample(struct perfdata_writer *writer, uint64_t time, uint64_t pid) {
    uint64_t words[] = {0x1000, both(pid, pid), time, 0};
    put_record(writer, PERF_RECORD_SAMPLE, words, COUNT_OF(words));
}

static void put_label(struct perfdata_writer *writer, uint64_t time, uint64_t pid,
                      struct text labels) {
    uint64_t key[] = {pid, time};
    assert_true(carrier_write(writer, CARRIER_LABELS, (struct text){(char *)key, sizeof key},
                              labels, NULL));
}

/* The second label of 10 stands before the fork in the file, and is of a later time. */
static void write_labelled(struct perfdata_writer *writer) {
    put_label(writer, 0, 10, TEXT("cgroup\0/a\0container\0one\0"));
    put_label(writer, 100, 10, TEXT("cgroup\0/b\0pid\0not a label's\0cut"));
    put_label(writer, 0, 13, TEXT("cgroup"));
    put_fork(writer, 50, 11, 10);
    put_fork(writer, 60, 12, 99);
    put_sample(writer, 70, 10);
    put_sample(writer, 120, 10);
    put_sample(writer, 120, 11);
    put_sample(writer, 120, 12);
    put_sample(writer, 120, 13);
    put_fork(writer, 130, 10, 99); /* another process with that pid */
    put_sample(writer, 140, 10);
}

static int line_order(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void test_labels(void **state) {
    static const char *const expected[] = {"10 - -",    "10 /a one", "10 /b -",
                                           "11 /a one", "12 - -",    "13 - -"};
    struct buffer bytes = written_by(write_labelled, false, 0);
    struct file file = {
        .path = (char *)"labels", .data = (uint8_t *)bytes.items, .size = bytes.count};
    struct error error = {0};
    struct profile *profile =
        profile_read(&file, &(struct profile_options){.no_names = true}, &error);
    if (!profile)
        fail_msg("%s", error.message);
    char *lines[16];
    size_t count = 0;
    for (size_t i = 1; i < profile->tree->series.count; i++) {
        const struct series *series = &profile->tree->series.items[i];
        struct buffer line = {0};
        series_label(profile->tree, series, TEXT("pid"), &line);
        buffer_add_char(&line, ' ');
        if (!series_label(profile->tree, series, TEXT("cgroup"), &line))
            buffer_add_char(&line, '-');
        buffer_add_char(&line, ' ');
        if (!series_label(profile->tree, series, TEXT("container"), &line))
            buffer_add_char(&line, '-');
        buffer_add_char(&line, 0);
        assert_true(count < COUNT_OF(lines));
        lines[count++] = line.items;
    }
    qsort(lines, count, sizeof *lines, line_order);
    for (size_t i = 0; i < count && i < COUNT_OF(expected); i++)
        assert_string_equal(lines[i], expected[i]);
    assert_int_equal(count, COUNT_OF(expected));
    for (size_t i = 0; i < count; i++)
        free(lines[i]);
    profile_free(profile);
    buffer_release(&bytes);
}

/* ---- containers ---- */

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_containers(void **state) {
    static const char *const cases[][2] = {
        {"/", NULL},
        {"/user.slice/user-1000.slice/session-2.scope", NULL},
        {"/docker/" ID, "0123456789ab"},
        {"/system.slice/docker-" ID ".scope", "0123456789ab"},
        {"/system.slice/docker-" ID ".scope/inner", "0123456789ab"},
        {"/machine.slice/libpod-" ID ".scope/container", "0123456789ab"},
        {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope",
         "0123456789ab"},
        {"/kubepods/burstable/pod1b2c/" ID, "0123456789ab"},
        {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
         "cri-containerd-" ID ".scope",
         "0123456789ab"},
        {"/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", "0123456789ab"},
        {"/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID, "0123456789ab"},
        {"/lxc/web", "web"},
        {"/lxc.payload.web/system.slice/nginx.service", "web"},
        {"/machine.slice/machine-my\\x2dbox.scope/payload", "my-box"},
        {"/machine.slice/systemd-nspawn@deb.service/payload/init.scope", "deb"},
        {"/system.slice/nginx.service", "nginx.service"},
        {"/user.slice/user@0.service/app.slice/app-x.service", "app-x.service"},
        {"/docker/0123456789abcdef", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct buffer name = {0};
        bool found = container_of_cgroup(text_of(cases[i][0]), &name);
        buffer_add_char(&name, 0);
        assert_string_equal(name.items, cases[i][1] ? cases[i][1] : "");
        assert_int_equal(found, cases[i][1] != NULL);
        buffer_release(&name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_comes_back),    cmocka_unit_test(test_damage),
        cmocka_unit_test(test_newer_version), cmocka_unit_test(test_others),
        cmocka_unit_test(test_labels),        cmocka_unit_test(test_containers),
    };
    return cmocka_run_group_tests_name("carrier", tests, NULL, NULL);
}
