/* What an enemy's input may cost: hashes that cannot be foreseen, budgets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "import/import.h"
#include "object/demangle.h"
#include "object/elf.h"

/* ---- hashes ---- */

static uint64_t rotated(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

/* The eight bytes whose XXH3 without a seed is `hash`, as an attacker would calculate them: XXH3 of eight bytes can be undone step by step. */
static void name_with_digest(uint64_t hash, char name[8]) {
    const uint64_t prime = 0x9FB21C651E98DF25ull;
    const uint64_t secret = 0x1cad21f72c81017cull ^ 0xdb979083e96dd4deull;
    uint64_t inverse = prime;
    for (int i = 0; i < 5; i++) /* Newton's method: each round doubles the bits that are right */
        inverse *= 2 - prime * inverse;
    hash ^= hash >> 28 ^ hash >> 56;
    hash *= inverse;
    hash ^= (hash >> 35) + 8;
    hash *= inverse;
    for (int i = 0; i < 63; i++) /* the 64th application gives back the first value */
        hash ^= rotated(hash, 49) ^ rotated(hash, 24);
    hash = rotated(hash ^ secret, 32);
    memcpy(name, &hash, 8);
}

/* How far from its slot the farthest entry of an index is. */
static uint32_t longest_way(const struct index *index) {
    uint32_t longest = 0;
    for (uint32_t i = 0; i <= index->mask; i++) {
        uint32_t way = (i - (uint32_t)(index->slots[i] >> 32)) & index->mask;
        if ((uint32_t)index->slots[i] && way > longest)
            longest = way;
    }
    return longest;
}

enum { FLOOD = 80000, LONG_WAY = 500 };

static void made_up_names_do_not_flood_an_index(void **state) {
    struct index keyed = {0};
    for (uint32_t i = 1; i <= FLOOD; i++) {
        char name[8];
        name_with_digest(0x77696b6bull << 32 | i, name);
        assert_true(digest_bytes(name, sizeof name) >> 32 == 0x77696b6b);
        index_add(&keyed, hash_bytes(name, sizeof name), i);
    }
    assert_true(longest_way(&keyed) < LONG_WAY);
    index_release(&keyed);
}

/* The same of numbers: those that a known multiplier makes small have nothing in the upper half, where the slot comes from. */
static void made_up_numbers_do_not_flood_an_index(void **state) {
    struct index keyed = {0};
    uint64_t key = 0xD6E8FEB86659FD93ull, inverse = key;
    for (int i = 0; i < 5; i++)
        inverse *= 2 - key * inverse;
    for (uint32_t i = 1; i <= FLOOD; i++) {
        uint64_t number = i * inverse;
        assert_true(number * key >> 32 == 0);
        index_add(&keyed, hash_mix(number, 0), i);
    }
    assert_true(longest_way(&keyed) < LONG_WAY);
    index_release(&keyed);
}

static void hashes_depend_on_the_seed_and_digests_do_not(void **state) {
    uint64_t before[2] = {hash_secret[0], hash_secret[1]};
    uint64_t digest = digest_bytes("name", 4), mixed = digest_mix(1, 2);
    hash_set_seed(1);
    uint64_t one = hash_bytes("name", 4), one_mixed = hash_mix(1, 2);
    hash_set_seed(2);
    assert_true(hash_bytes("name", 4) != one && hash_mix(1, 2) != one_mixed);
    hash_set_seed(1);
    assert_true(hash_bytes("name", 4) == one && hash_mix(1, 2) == one_mixed);
    assert_true(digest_bytes("name", 4) == digest && digest_mix(1, 2) == mixed);
    assert_true(before[0] != hash_secret[0]); /* it was random */
    memcpy(hash_secret, before, sizeof before);
}

/* ---- budgets ---- */

static void a_budget_grows_with_its_input(void **state) {
    const struct budget_limits limits = {
        .memory = 100, .memory_per_byte = 2, .steps = 10, .steps_per_byte = 3};
    struct error error;
    struct budget budget;
    budget_init(&budget, &limits, 20);
    assert_true(budget_take_memory(&budget, 140, 5));
    assert_true(budget_take_steps(&budget, 70, 6));
    assert_false(budget_exceeded(&budget));
    assert_false(budget_take_steps(&budget, 1, 77));
    assert_true(budget_exceeded(&budget));
    assert_false(budget_error(&budget, "input", &error));
    assert_int_equal(error.kind, ERROR_INPUT);
    assert_int_equal(error.offset, 77);
    assert_string_equal(error.message,
                        "input: byte 77: needs more work than a file of its size may use");
}

static void a_budget_once_exceeded_stays_so(void **state) {
    struct budget budget;
    struct error error;
    budget_init(&budget, &(struct budget_limits){.memory = 100, .memory_per_byte = 1}, 0);
    for (int i = 0; i < 5; i++) /* sums do not come around */
        assert_false(budget_take_memory(&budget, UINT64_MAX - 3, NO_OFFSET));
    assert_false(budget_take_memory(&budget, 1, NO_OFFSET));
    assert_false(budget_error(&budget, "input", &error));
    assert_string_equal(error.message, "input: needs more memory than a file of its size may use");
    budget_init(&budget, &budget_defaults, UINT64_MAX); /* nor do limits */
    assert_true(budget_take_memory(&budget, 1ull << 62, NO_OFFSET));
}

static void what_is_unpacked_counts_as_input(void **state) {
    struct budget budget;
    budget_init(&budget, &(struct budget_limits){.memory = 100, .memory_per_byte = 2, .steps = 1},
                10);
    budget_grow(&budget, 40);
    assert_true(budget_take_memory(&budget, 200, 0) && budget_take_steps(&budget, 1, 0));
    assert_false(budget_take_memory(&budget, 1, 0) || budget_take_steps(&budget, 1, 0));
}

static void who_finds_out_later_says_where(void **state) {
    struct budget budget;
    struct error error;
    budget_init(&budget, &(struct budget_limits){.steps = 9}, 1000);
    assert_false(budget_exceeded_at(&budget, 3));
    assert_false(budget_take_steps(&budget, 10, NO_OFFSET));
    assert_true(budget_exceeded_at(&budget, 8));
    assert_true(budget_exceeded_at(&budget, 9));
    assert_false(budget_error(&budget, "input", &error));
    assert_int_equal(error.offset, 8);
}

static void take_one(void *budget, unsigned worker, size_t item) {
    if (!budget_take_steps(budget, 1, 1000 - item))
        __atomic_add_fetch((uint64_t *)budget + sizeof(struct budget) / 8, 1, __ATOMIC_RELAXED);
}

static void threads_share_a_budget(void **state) {
    struct {
        struct budget budget;
        uint64_t refused;
    } shared = {0};
    budget_init(&shared.budget, &(struct budget_limits){.steps = 600, .steps_per_byte = 1}, 0);
    parallel_run(4, 1000, take_one, &shared);
    assert_int_equal(shared.refused, 400);
}

/* ---- every format ---- */

/* The first fuzz seed of a format: those in `import` have a byte for the format's number and one for options. */
static bool seed_of(size_t number, size_t formats, struct file *file, struct text *content) {
    static const char *const folders[] = {"import", "folded", "perf_script", "saved"};
    char path[500];
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        snprintf(path, sizeof path, SOURCE_ROOT "/fuzz/seeds/%s", folders[i]);
        DIR *folder = opendir(path);
        assert_non_null(folder);
        for (struct dirent *entry; (entry = readdir(folder));) {
            snprintf(path, sizeof path, SOURCE_ROOT "/fuzz/seeds/%s/%s", folders[i], entry->d_name);
            if (entry->d_name[0] == '.' || !file_open_raw(file, path, NULL, NULL))
                continue;
            *content = file_text(file);
            bool is_it = i == 0 ? content->length > 2 && content->data[0] % formats == number &&
                                      !(content->data[1] & 1)
                                : import_guess(*content) == import_formats[number];
            if (is_it) {
                *content = text_from(*content, i == 0 ? 2 : 0);
                closedir(folder);
                return true;
            }
            file_close(file);
        }
        closedir(folder);
    }
    return false;
}

static bool read_with(const struct import_format *format, struct text content,
                      struct budget_limits limits, struct error *error) {
    struct context context = {.threads = 1, .limits = limits};
    struct import_options options = {.profile.context = &context};
    struct tree *tree = tree_new();
    bool fine = import_read(format, content, "input", &options, tree, error);
    objects_free(tree->objects);
    tree_free(tree);
    return fine;
}

/* A reader that uses neither the tree nor a budget of its own would read with none at all. */
static void every_format_is_on_a_budget(void **state) {
    size_t formats = 0;
    while (import_formats[formats])
        formats++;
    for (size_t i = 0; i < formats; i++) {
        const char *name = import_formats[i]->name;
        struct error error = {0};
        struct file file;
        struct text content;
        if (!seed_of(i, formats, &file, &content))
            fail_msg("%s: there is no seed for it in fuzz/seeds", name);
        if (!read_with(import_formats[i], content, (struct budget_limits){0}, &error))
            fail_msg("%s: %s", name, error.message);
        if (read_with(import_formats[i], content, (struct budget_limits){.memory = 1 << 30},
                      &error) ||
            !strstr(error.message, "needs more work"))
            fail_msg("%s: takes no steps off its budget: %s", name, error.message);
        if (read_with(import_formats[i], content, (struct budget_limits){.steps = 1 << 30},
                      &error) ||
            !strstr(error.message, "needs more memory"))
            fail_msg("%s: takes no memory off its budget: %s", name, error.message);
        file_close(&file);
    }
}

/* ---- names ---- */

/* The reference to the part of a C++ name with this number. */
static void add_reference(struct buffer *name, int number) {
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    buffer_add_char(name, 'S');
    if (number > 36)
        buffer_add_char(name, digits[(number - 1) / 36]);
    if (number)
        buffer_add_char(name, digits[(number - 1) % 36]);
    buffer_add_char(name, '_');
}

/* Functions that return functions, each of the type before: what they stand for doubles with each. */
static void name_of_functions(struct buffer *name, int depth) {
    buffer_add(name, TEXT("_Z1fDp"));
    for (int i = 0; i < depth; i++)
        buffer_add_char(name, 'F');
    buffer_add(name, TEXT("Pi"));
    for (int i = 0; i < depth; i++) {
        add_reference(name, i);
        buffer_add_char(name, 'E');
    }
}

/* A conversion operator to a template of a template of…: libiberty parses each twice. */
static void name_of_conversions(struct buffer *name, int depth) {
    buffer_add(name, TEXT("_ZN1AcvT_"));
    for (int i = 0; i < depth; i++)
        buffer_add(name, TEXT("IT_"));
    buffer_add_char(name, 'i');
    for (int i = 0; i < depth; i++)
        buffer_add_char(name, 'E');
    buffer_add(name, TEXT("Ev"));
}

static void name_of_packs(struct buffer *name, int depth) {
    buffer_add(name, TEXT("_Z1fIJiiiiiiiiEEv"));
    for (int i = 0; i < depth; i++)
        buffer_add(name, TEXT("Dp"));
    buffer_add(name, TEXT("T_"));
}

/* D's associative arrays, each from the one before to the one before. */
static void name_of_arrays(struct buffer *name, int depth) {
    buffer_add(name, TEXT("_D1fFAiHQdQf"));
    for (int i = 1; i < depth; i++)
        buffer_add(name, TEXT("HQgQi"));
    buffer_add(name, TEXT("Zv"));
}

/* Rust's tuples, likewise. */
static void name_of_tuples(struct buffer *name, int depth) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t last = name->count + 8;
    buffer_add(name, TEXT("_RINvC1a1fTuuE"));
    for (int i = 0; i < depth && last < 63; i++) {
        size_t at = name->count - 2;
        buffer_printf(name, "TB%c_B%c_E", digits[last - 1], digits[last - 1]);
        last = at;
    }
    buffer_add_char(name, 'E');
}

static void costly_names_are_left_as_they_are(void **state) {
    static const struct {
        void (*make)(struct buffer *name, int depth);
        int cheap, costly;
    } cases[] = {{name_of_functions, 10, 40},
                 {name_of_conversions, 10, 60},
                 {name_of_packs, 1, 12},
                 {name_of_arrays, 10, 32}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int compat = 0; compat < 2; compat++) {
            struct objects_options options = {.quirks = compat ? quirks_perf : quirks_none};
            struct buffer name = {0}, result = {0};
            bool costly;
            cases[i].make(&name, cases[i].cheap);
            demangle(&options, buffer_text(&name), &result, &costly);
            assert_false(costly);
            name.count = result.count = 0;
            cases[i].make(&name, cases[i].costly);
            bool fine = demangle(&options, buffer_text(&name), &result, &costly);
            assert_true(compat || (!fine && costly)); /* perf leaves out what is behind the name */
            assert_true(result.count < 100);
            buffer_release(&name);
            buffer_release(&result);
        }
}

static void rust_names_end(void **state) {
    struct objects_options options = {0};
    struct buffer name = {0}, result = {0};
    bool costly;
    name_of_tuples(&name, 3);
    assert_true(demangle(&options, buffer_text(&name), &result, &costly) && !costly);
    name.count = result.count = 0;
    name_of_tuples(&name, 40);
    demangle(&options, buffer_text(&name), &result, &costly);
    assert_true(result.count < 1 << 19);
    buffer_release(&name);
    buffer_release(&result);
}

/* ---- packed files ---- */

/* An ELF header and zeroes, packed. */
static void write_packed(const char *path, size_t size) {
    static const unsigned char header[64] = {0x7f, 'E',      'L',       'F',      2,        1,
                                             1,    [16] = 2, [18] = 62, [20] = 1, [52] = 64};
    char *zeroes = calloc(1, 1 << 20);
    gzFile file = gzopen(path, "wb1");
    assert_non_null(file);
    gzwrite(file, header, sizeof header);
    for (size_t done = 0; done < size; done += 1 << 20)
        gzwrite(file, zeroes, 1 << 20);
    gzclose(file);
    free(zeroes);
}

static void only_modules_are_unpacked_and_not_without_end(void **state) {
    char path[100];
    struct error error = {0};
    struct elf_image *image;
    snprintf(path, sizeof path, "/tmp/wick-limits-%d.ko.gz", (int)getpid());
    write_packed(path, 2 << 20);
    assert_null(elf_image_open(path, false, &error));
    image = elf_image_open(path, true, &error);
    assert_non_null(image);
    assert_int_equal(image->size, (2 << 20) + 64);
    elf_image_free(image);
    write_packed(path, 300 << 20);
    assert_null(elf_image_open(path, true, &error));
    assert_non_null(strstr(error.message, "bytes when decompressed"));
    unlink(path);
}

static void packed_input_does_not_grow_without_end(void **state) {
    enum { SIZE = 200 << 20 };
    char path[100], *zeroes = calloc(1, SIZE), *packed = malloc(1 << 20);
    struct error error = {0};
    struct file file;
    snprintf(path, sizeof path, "/tmp/wick-limits-%d.zst", (int)getpid());
    for (size_t size = SIZE / 10; size <= SIZE; size = SIZE + (size == SIZE)) {
        size_t got = ZSTD_compress(packed, 1 << 20, zeroes, size, 1);
        assert_false(ZSTD_isError(got));
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(packed, 1, got, out), got);
        fclose(out);
        bool fine = file_open(&file, path, NULL, &error);
        if (fine != (size < SIZE))
            fail_msg("%zu: %s", size, error.message);
        if (fine)
            file_close(&file);
    }
    assert_non_null(strstr(error.message, "decompresses to more than"));
    unlink(path);
    free(zeroes);
    free(packed);
}

/* ---- unwinding rules ---- */

/* What is found for the first function of a program with these rules; with or without .eh_frame_hdr, or in .debug_frame. */
static const struct cfi_row *row_of(const char *rules, const char *options,
                                    struct objects **objects) {
    char folder[] = "/tmp/wick-limits-XXXXXX", path[100], command[3000];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/program", folder);
    snprintf(
        command, sizeof command,
        "cd %s && printf '%%b' '%s.globl _start\\n_start:\\n.cfi_startproc\\n%snop\\nnop\\nret\\n"
        ".cfi_endproc\\n' >x.s && as --64 x.s -o x.o && ld %s x.o -o program",
        folder, strstr(options, "debug_frame") ? ".cfi_sections .debug_frame\\n" : "", rules,
        strstr(options, "--") ? strstr(options, "--") : "");
    assert_int_equal(system(command), 0);
    *objects = objects_new(&(struct objects_options){.buildid_cache = "/nowhere"});
    uint32_t id = objects_add(
        *objects, &(struct object_identity){.path = text_of(path), .kind = OBJECT_FILE});
    uint64_t entry = 0;
    assert_true(objects_entry(*objects, id, &entry));
    const struct cfi_row *row = objects_cfi(*objects, id, entry + 1);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    return row;
}

static void rules_for_a_billion_registers_are_refused(void **state) {
    static const char *const kinds[] = {"", "--eh-frame-hdr", "debug_frame"};
    struct buffer remembers = {0};
    for (int i = 0; i < 100; i++)
        buffer_add(&remembers, TEXT(".cfi_remember_state\\n"));
    buffer_add_char(&remembers, 0);
    const struct {
        const char *rules;
        bool sane;
    } cases[] = {
        {".cfi_offset 3, -16\\nnop\\n.cfi_remember_state\\nnop\\n.cfi_restore_state\\n", true},
        {".cfi_escape 0x05, 0x80, 0x80, 0x80, 0x80, 0x04, 0x01\\n", false}, /* register 2^30 */
        {".cfi_escape 0x09, 0x03, 0x80, 0x80, 0x80, 0x80, 0x04\\n", false},
        {".cfi_escape 0x10, 0x80, 0x80, 0x80, 0x80, 0x04, 0x01, 0x9c\\n", false},
        {remembers.items, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            struct objects *objects;
            struct notes notes = {0};
            bool found = row_of(cases[i].rules, kinds[k], &objects);
            objects_notes(objects, &notes);
            if (found != cases[i].sane || notes.count != !cases[i].sane)
                fail_msg("%s %s: %d, %zu notes", cases[i].rules, kinds[k], found, notes.count);
            notes_release(&notes);
            objects_free(objects);
        }
    buffer_release(&remembers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_up_names_do_not_flood_an_index),
        cmocka_unit_test(made_up_numbers_do_not_flood_an_index),
        cmocka_unit_test(hashes_depend_on_the_seed_and_digests_do_not),
        cmocka_unit_test(a_budget_grows_with_its_input),
        cmocka_unit_test(a_budget_once_exceeded_stays_so),
        cmocka_unit_test(what_is_unpacked_counts_as_input),
        cmocka_unit_test(who_finds_out_later_says_where),
        cmocka_unit_test(threads_share_a_budget),
        cmocka_unit_test(every_format_is_on_a_budget),
        cmocka_unit_test(costly_names_are_left_as_they_are),
        cmocka_unit_test(rust_names_end),
        cmocka_unit_test(rules_for_a_billion_registers_are_refused),
        cmocka_unit_test(packed_input_does_not_grow_without_end),
        cmocka_unit_test(only_modules_are_unpacked_and_not_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
