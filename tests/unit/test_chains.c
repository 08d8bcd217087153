/* Chains that are made to have the same hash are still told apart, and frames keep what was recorded of them. */
#include <stdarg.h>
#include <stddef.h>

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "perfdata_build.h"
#include "profile/profile.h"

#define CODE 0x10000ull
#define SPAN 0x10000ull

struct chain {
    uint64_t words[8];
    size_t count;
    size_t samples;
};

static void put_mmap_of(struct build *build, const char *path, uint64_t size) {
    size_t start = build_begin(build, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER);
    put_u32(&build->data, 7);
    put_u32(&build->data, 7);
    put_u64(&build->data, CODE);
    put_u64(&build->data, size);
    put_u64(&build->data, 0);
    put_string(&build->data, path, (strlen(path) + 8) & ~(size_t)7);
    build_end(build, start);
}

static void put_mmap(struct build *build) {
    put_mmap_of(build, "/nowhere/program", SPAN);
}

static void put_samples(struct build *build, const struct chain *chain) {
    for (size_t i = 0; i < chain->samples; i++) {
        size_t start = build_begin(build, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
        put_u64(&build->data, CODE);
        put_u32(&build->data, 7);
        put_u32(&build->data, 7);
        put_u64(&build->data, chain->count);
        for (size_t k = 0; k < chain->count; k++)
            put_u64(&build->data, chain->words[k]);
        build_end(build, start);
    }
}

/* How many samples have exactly these addresses, leaf first, as locations have them. */
static uint64_t samples_of(const struct tree *tree, const uint64_t *addresses, size_t count) {
    uint64_t samples = 0;
    for (size_t i = 1; i < tree->cells.count; i++) {
        uint32_t node = tree->cells.items[i].node;
        size_t k = 0;
        for (; node && k < count; k++, node = tree->nodes.items[node].parent)
            if (tree->locations.items[tree->nodes.items[node].location].address != addresses[k])
                break;
        samples += !node && k == count ? tree->cells.items[i].samples : 0;
    }
    return samples;
}

static uint64_t in_file(uint64_t word) {
    return word >= CODE && word < CODE + SPAN ? word - CODE : word;
}

static void assert_told_apart(const struct chain *chains, size_t count, unsigned threads) {
    struct build build = {0};
    struct context context = {.threads = threads};
    struct profile_options options = {.context = &context};
    struct build_event event = {.sample_type =
                                    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN};
    struct file file;
    struct error error;
    build_event(&build, &event, NULL);
    put_mmap(&build);
    for (size_t i = 0; i < count; i++)
        put_samples(&build, &chains[i]);
    struct buffer bytes = build_file(&build);
    assert_true(build_open(&file, bytes.items, bytes.count));
    struct profile *profile = profile_read(&file, &options, &error);
    assert_non_null(profile);
    for (size_t i = 0; i < count; i++) {
        uint64_t addresses[8];
        for (size_t k = 0; k < chains[i].count; k++)
            addresses[k] = in_file(chains[i].words[k]);
        assert_int_equal(samples_of(profile->tree, addresses, chains[i].count), chains[i].samples);
    }
    profile_free(profile);
    file_close(&file);
    buffer_release(&bytes);
    build_release(&build);
}

/* A word that a multiplier cancels out took what stood beside it along: ten samples of one function replaced nine of another. */
static void words_that_cancel_a_multiplier(void **state) {
    hash_set_seed(5);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t cancels = hash_secret[i] ^ 4;
        struct chain chains[] = {{{cancels, CODE + 0x100, CODE + 0x30, CODE + 0x40}, 4, 10},
                                 {{cancels, CODE + 0x200, CODE + 0x30, CODE + 0x40}, 4, 9},
                                 {{CODE + 0x100, cancels ^ 4, CODE + 0x30, CODE + 0x40}, 4, 8},
                                 {{CODE + 0x200, cancels ^ 4, CODE + 0x30, CODE + 0x40}, 4, 7}};
        assert_told_apart(chains, COUNT_OF(chains), 1);
        assert_told_apart(chains, COUNT_OF(chains), 2);
    }
}

/* The same of the ways from the root, whose hashes are all alike when the second multiplier is 0. */
static void ways_with_one_hash(void **state) {
    struct chain chains[] = {{{CODE + 0x10, CODE + 0x20, CODE + 0x30, CODE + 0x40}, 4, 4},
                             {{CODE + 0x11, CODE + 0x20, CODE + 0x30, CODE + 0x41}, 4, 3},
                             {{CODE + 0x12, CODE + 0x21, CODE + 0x30, CODE + 0x40}, 4, 2},
                             {{CODE + 0x13, CODE + 0x20, CODE + 0x31, CODE + 0x40}, 4, 1},
                             {{CODE + 0x14, CODE + 0x20, CODE + 0x31, CODE + 0x40}, 4, 5}};
    hash_set_seed(5);
    hash_secret[1] = 0;
    assert_told_apart(chains, COUNT_OF(chains), 1);
    hash_set_seed(5);
    assert_told_apart(chains, COUNT_OF(chains), 1);
}

/* What is kept of records is taken off a budget, and the error says which record was too much. */
static void records_are_on_a_budget(void **state) {
    enum { RECORDS = 100 };
    struct build build = build_one(PERF_SAMPLE_IP);
    for (int i = 0; i < RECORDS; i++)
        put_mmap(&build);
    for (int i = 0; i < RECORDS; i++)
        build_record(&build, RECORD_FINISHED_ROUND, 0);
    struct buffer bytes = build_file(&build);
    struct context context = {.threads = 1, .limits = {.steps = 1 << 20}};
    struct profile_options options = {.context = &context};
    struct error error;
    struct file file;
    uint64_t last = 0;
    size_t places = 0;
    struct profile *profile = NULL;
    assert_true(build_open(&file, bytes.items, bytes.count));
    while (!(profile = profile_read(&file, &options, &error))) {
        assert_non_null(
            strstr(error.message, ": needs more memory than a file of its size may use"));
        assert_in_range(error.offset, 1, bytes.count - 1);
        places += error.offset != last;
        last = error.offset;
        context.limits.memory += 8;
    }
    assert_in_range(places, 2 * RECORDS, 2 * RECORDS + 2); /* and the header's */
    profile_free(profile);
    file_close(&file);
    buffer_release(&bytes);
    build_release(&build);
}

/* Where in the test's own file a function is. */
static uint64_t offset_of(uint64_t function) {
    uint64_t start, end, offset, found = 0;
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) == 3 &&
            function >= start && function < end)
            found = function - start + offset;
    if (maps)
        fclose(maps);
    return found;
}

int main(void);

static size_t nodes_of_recursion(bool names_only, unsigned threads, uint64_t *samples) {
    char path[PATH_MAX] = "";
    uint64_t offset = offset_of((uint64_t)(uintptr_t)main), code = CODE + offset;
    struct chain chains[] = {{{code + 4, code + 6, code + 8}, 3, 2},
                             {{code + 5, code + 7, code + 9}, 3, 3}};
    struct build build = {0};
    struct context context = {.threads = threads};
    struct profile_options options = {
        .context = &context, .no_inline = true, .names_only = names_only};
    struct build_event event = {.sample_type =
                                    PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_CALLCHAIN};
    struct file file;
    struct error error;
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    build_event(&build, &event, NULL);
    put_mmap_of(&build, path, offset + SPAN);
    put_samples(&build, &chains[0]);
    put_samples(&build, &chains[1]);
    struct buffer bytes = build_file(&build);
    assert_true(build_open(&file, bytes.items, bytes.count));
    struct profile *profile = profile_read(&file, &options, &error);
    assert_non_null(profile);
    *samples = 0;
    for (size_t i = 1; i < profile->tree->cells.count; i++)
        *samples += profile->tree->cells.items[i].samples;
    size_t nodes = profile->tree->nodes.count - 1;
    profile_free(profile);
    file_close(&file);
    buffer_release(&bytes);
    build_release(&build);
    return nodes;
}

/* Two stacks of main(), main() and main(), by other addresses each. */
static void namesakes_share_nodes(void **state) {
    uint64_t samples;
    assert_int_equal(nodes_of_recursion(false, 1, &samples), 6);
    assert_int_equal(samples, 5);
    assert_int_equal(nodes_of_recursion(true, 1, &samples), 3);
    assert_int_equal(samples, 5);
    assert_int_equal(nodes_of_recursion(true, 2, &samples), 3);
    assert_int_equal(samples, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_on_a_budget),
        cmocka_unit_test(words_that_cancel_a_multiplier),
        cmocka_unit_test(ways_with_one_hash),
        cmocka_unit_test(namesakes_share_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
