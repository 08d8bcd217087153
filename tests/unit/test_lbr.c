#include <stdarg.h>
#include <stddef.h>

#include "perfdata_build.h"
#include "profile/profile.h"

/* No machine at hand keeps call stacks in its branch records, so the recording is made up. */

#define CODE 0x10000ull
#define KERNEL 0xffffffff81000000ull

struct recording {
    bool compat;
    bool hw_index; /* as newer kernels record, a word more before the branches */
    bool in_kernel;
    size_t count; /* of branches */
};

static void put_mmap(struct build *build) {
    size_t start = build_begin(build, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER);
    put_u32(&build->data, 7);
    put_u32(&build->data, 7);
    put_u64(&build->data, CODE);
    put_u64(&build->data, 0x10000);
    put_u64(&build->data, 0);
    put_string(&build->data, "/nowhere/program", 24);
    build_end(build, start);
}

static void put_chain(struct build *build, bool in_kernel) {
    put_u64(&build->data, in_kernel ? 6 : 3);
    if (in_kernel) {
        put_u64(&build->data, PERF_CONTEXT_KERNEL);
        put_u64(&build->data, KERNEL + 0x10);
        put_u64(&build->data, KERNEL + 0x20);
    }
    put_u64(&build->data, PERF_CONTEXT_USER); /* then the address, and a guess by frame pointer */
    put_u64(&build->data, CODE + 0x123);
    put_u64(&build->data, CODE + 0x999);
}

static void put_sample(struct build *build, const struct recording *what) {
    static const uint64_t branches[] = {CODE + 0x200, CODE + 0x100, CODE + 0x300,
                                        CODE + 0x1f0, CODE + 0x400, CODE + 0x2f0};
    size_t start = build_begin(build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    put_u64(&build->data, CODE + 0x123);
    put_u32(&build->data, 7);
    put_u32(&build->data, 7);
    put_chain(build, what->in_kernel);
    put_u64(&build->data, what->count);
    if (what->hw_index)
        put_u64(&build->data, UINT64_MAX);
    for (size_t i = 0; i < what->count; i++) {
        put_u64(&build->data, branches[2 * i]);
        put_u64(&build->data, branches[2 * i + 1]);
        put_u64(&build->data, 0);
    }
    build_end(build, start);
}

static struct profile *read_profile(struct file *file, const struct recording *what) {
    struct build build = {0};
    struct profile_options options = {.context = &(struct context){.threads = 1},
                                      .quirks = what->compat ? quirks_perf : quirks_none};
    struct error error;
    struct build_event event = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                               PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK,
                                .branch_type = PERF_SAMPLE_BRANCH_USER |
                                               PERF_SAMPLE_BRANCH_CALL_STACK |
                                               (what->hw_index ? PERF_SAMPLE_BRANCH_HW_INDEX : 0)};
    build_event(&build, &event, NULL);
    put_mmap(&build);
    put_sample(&build, what);
    struct buffer bytes = build_file(&build);
    assert_true(build_open(file, bytes.items, bytes.count));
    struct profile *profile = profile_read(file, &options, &error);
    assert_non_null(profile);
    buffer_release(&bytes);
    build_release(&build);
    return profile;
}

/* The addresses of the one stack, leaf first. */
static size_t addresses(const struct profile *profile, uint64_t *out, size_t most) {
    const struct tree *tree = profile->tree;
    size_t count = 0;
    assert_int_equal(tree->cells.count > 0, 1);
    uint32_t node = tree->cells.items[tree->cells.count - 1].node;
    for (; node && count < most; node = tree->nodes.items[node].parent)
        out[count++] = tree->locations.items[tree->nodes.items[node].location].address;
    return count;
}

static void check(struct recording what, const uint64_t *expected, size_t count, uint8_t ending) {
    uint64_t found[16];
    struct file file;
    struct profile *profile = read_profile(&file, &what);
    assert_int_equal(addresses(profile, found, 16), count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(found[i], expected[i]);
    const struct tree *tree = profile->tree;
    const struct cell *cell = &tree->cells.items[tree->cells.count - 1];
    assert_int_equal(tree->series.items[cell->series].ending, ending);
    profile_free(profile);
    file_close(&file);
}

static void test_call_stack(void **unused) {
    static const uint64_t ours[] = {0x123, 0x200, 0x300, 0x400};
    static const uint64_t perfs[] = {0x100, 0x200, 0x300, 0x400};
    for (int hw_index = 0; hw_index < 2; hw_index++) {
        check((struct recording){.hw_index = hw_index, .count = 3}, ours, 4, ENDING_TRUNCATED);
        /* perf begins where the last call went to */
        check((struct recording){.hw_index = hw_index, .compat = true, .count = 3}, perfs, 4,
              ENDING_TRUNCATED);
    }
}

static void test_in_kernel(void **unused) {
    static const uint64_t ours[] = {KERNEL + 0x10, KERNEL + 0x20, 0x123, 0x200, 0x300, 0x400};
    check((struct recording){.hw_index = true, .in_kernel = true, .count = 3}, ours, 6,
          ENDING_TRUNCATED);
}

/* A thread that has not called anything yet: what the kernel found by frame pointer is all there is. */
static void test_no_branches(void **unused) {
    static const uint64_t ours[] = {0x123, 0x999};
    check((struct recording){.hw_index = true}, ours, 2, ENDING_BROKEN);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_call_stack),
                                       cmocka_unit_test(test_in_kernel),
                                       cmocka_unit_test(test_no_branches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
