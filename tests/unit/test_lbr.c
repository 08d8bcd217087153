#include <stdarg.h>
#include <stddef.h>

#include "perfdata_build.h"
#include "profile/profile.h"

/* No machine at hand keeps call stacks in its branch records, so the recording is made up. */

#define CODE 0x10000ull

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

static void put_sample(struct build *build, const uint64_t *branches, size_t count) {
    size_t start = build_begin(build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    put_u64(&build->data, CODE + 0x123);
    put_u32(&build->data, 7);
    put_u32(&build->data, 7);
    put_u64(&build->data, 3); /* the chain: a marker, the address, and a guess by frame pointer */
    put_u64(&build->data, PERF_CONTEXT_USER);
    put_u64(&build->data, CODE + 0x123);
    put_u64(&build->data, CODE + 0x999);
    put_u64(&build->data, count);
    for (size_t i = 0; i < count; i++) {
        put_u64(&build->data, branches[2 * i]);
        put_u64(&build->data, branches[2 * i + 1]);
        put_u64(&build->data, 0);
    }
    build_end(build, start);
}

static struct profile *read_profile(struct file *file, bool compat, const uint64_t *branches,
                                    size_t count) {
    struct build build = {0};
    struct profile_options options = {.threads = 1, .no_names = true, .compat_perf = compat};
    struct error error;
    struct build_event event = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                               PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK,
                                .branch_type =
                                    PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK};
    build_event(&build, &event, NULL);
    put_mmap(&build);
    put_sample(&build, branches, count);
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
    for (; node && count < most; node = tree->nodes.items[node].parent) {
        const struct location *location = &tree->locations.items[tree->nodes.items[node].location];
        assert_false(location->call);
        out[count++] = location->address;
    }
    return count;
}

static void check(bool compat, uint64_t leaf) {
    static const uint64_t branches[] = {CODE + 0x200, CODE + 0x100, CODE + 0x300,
                                        CODE + 0x1f0, CODE + 0x400, CODE + 0x2f0};
    uint64_t found[16];
    struct file file;
    struct profile *profile = read_profile(&file, compat, branches, 3);
    assert_int_equal(addresses(profile, found, 16), 4);
    assert_int_equal(found[0], leaf);
    assert_int_equal(found[1], 0x200);
    assert_int_equal(found[2], 0x300);
    assert_int_equal(found[3], 0x400);
    profile_free(profile);
    file_close(&file);
}

static void test_call_stack(void **unused) {
    check(false, 0x123);
    check(true, 0x100); /* perf begins where the last call went to */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_call_stack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
