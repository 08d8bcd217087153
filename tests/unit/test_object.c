/*
 * object: finding files, symbols, names. Real files where there are any: this program itself, libc, the vdso; small ones with what perf
 * 6.1 says about them beside; hand-made text where it takes an enemy to write it.
 */
#include "object/internal.h"
#include "object/demangle.h"

#include <elf.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DATA SOURCE_ROOT "/tests/unit/data/"

/* A pid that no process has: above the kernel's highest. */
enum { NOBODY = 5000000 };

static struct objects *objects_with(bool compat) {
    return objects_new(&(struct objects_options){.quirks = compat ? quirks_perf : quirks_none,
                                                 .buildid_cache = "/nonexistent"});
}

static uint32_t add_file(struct objects *objects, const char *path) {
    return objects_add(objects,
                       &(struct object_identity){.kind = OBJECT_FILE, .path = text_of(path)});
}

static void ask(struct objects *objects, uint32_t id, uint64_t address, struct buffer *answer) {
    struct symbol symbol;
    answer->count = 0;
    if (objects_symbol(objects, id, address, &symbol))
        buffer_printf(answer, "%.*s+0x%llx", TEXT_ARGS(symbol.name),
                      (unsigned long long)(address - symbol.start));
    else
        buffer_add(answer, TEXT("[unknown]"));
    buffer_add_char(answer, 0);
}

#define assert_symbol(objects, id, address, expected)                                              \
    do {                                                                                           \
        struct buffer answer_ = {0};                                                               \
        ask(objects, id, address, &answer_);                                                       \
        assert_string_equal(answer_.items, expected);                                              \
        buffer_release(&answer_);                                                                  \
    } while (0)

/* ---- goldens: every line of EXPECTED is an address and what perf 6.1 prints for it ---- */

static void check_golden(struct objects *objects, uint32_t id, const char *path) {
    FILE *file = fopen(path, "r");
    char line[400];
    struct buffer answer = {0};
    size_t count = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *name = strchr(line, ' ');
        name[strcspn(name, "\n")] = 0;
        ask(objects, id, strtoull(line, NULL, 16), &answer);
        if (strcmp(answer.items, name + 1) != 0)
            fail_msg("%s: %s: not '%s'", path, line, answer.items);
        count++;
    }
    assert_true(count > 100);
    buffer_release(&answer);
    fclose(file);
}

static void golden_elf(void **state) {
    struct objects *objects = objects_with(true);
    check_golden(objects, add_file(objects, DATA "overlap.so"), DATA "overlap.so.expected");
    objects_free(objects);
}

static void golden_kallsyms(void **state) {
    struct objects *objects = objects_new(
        &(struct objects_options){.quirks = quirks_perf, .kallsyms = DATA "small.kallsyms"});
    uint32_t id =
        objects_add(objects, &(struct object_identity){.kind = OBJECT_KERNEL,
                                                       .path = TEXT("[kernel.kallsyms]_text")});
    objects_set_kernel_reference(objects, id, TEXT("_text"), 0xffffffff81000000);
    check_golden(objects, id, DATA "small.kallsyms.expected");
    objects_free(objects);
}

static void write_perfmap(int32_t pid, struct text text) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fwrite(text.data, 1, text.length, file);
    fclose(file);
}

static void remove_perfmap(int32_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    unlink(path);
}

static uint32_t add_perfmap(struct objects *objects, int32_t pid) {
    return objects_add(objects, &(struct object_identity){
                                    .kind = OBJECT_PERFMAP, .path = TEXT("//anon"), .pid = pid});
}

static void golden_perfmap(void **state) {
    int32_t pid = NOBODY + getpid();
    struct file file;
    assert_true(file_open(&file, DATA "overlaps.map", NULL, NULL));
    write_perfmap(pid, file_text(&file));
    file_close(&file);
    struct objects *objects = objects_with(true);
    check_golden(objects, add_perfmap(objects, pid), DATA "overlaps.expected");
    objects_free(objects);
    remove_perfmap(pid);
}

/* ---- ELF, our way ---- */

static void symbols_inside_symbols(void **state) {
    struct objects *objects = objects_with(false);
    uint32_t id = add_file(objects, DATA "overlap.so");
    assert_symbol(objects, id, 0x3a0, "outer+0x0");
    assert_symbol(objects, id, 0x3c4, "outer+0x24"); /* a label inside says nothing */
    assert_symbol(objects, id, 0x3e4, "nested+0x4");
    assert_symbol(objects, id, 0x3f4,
                  "outer+0x54"); /* behind the inner one, which perf does not find */
    assert_symbol(objects, id, 0x41f, "outer+0x7f");
    assert_symbol(objects, id, 0x420, "alias_long_name+0x0");
    assert_symbol(objects, id, 0x430, "__strong_twin+0x0");
    assert_symbol(objects, id, 0x448 + 39, "unsized+0x27");
    assert_symbol(objects, id, 0x470, "Foo::Foo()+0x0");
    assert_symbol(objects, id, 0x100, "[unknown]");
    objects_free(objects);
}

static void plt_of_each_kind(void **state) {
    struct objects *objects = objects_with(false);
    uint32_t id = add_file(objects, DATA "overlap.so");
    assert_symbol(objects, id, 0x370, ".plt+0x0");
    assert_symbol(objects, id, 0x380, "external()@plt+0x0");
    assert_symbol(objects, id, 0x39f, "external@plt+0xf");
    id = add_file(objects, DATA "plt-x86_64-ibt.so");
    assert_symbol(objects, id, 0x2e4,
                  "second@plt+0x4"); /* .plt: pushes the number of its relocation */
    assert_symbol(objects, id, 0x310, "second@plt+0x0"); /* .plt.sec */
    assert_symbol(objects, id, 0x320, "third(int)@plt+0x0");
    assert_symbol(objects, id, 0x330, "first@plt+0x0");
    id = add_file(objects, DATA "plt-aarch64.so");
    assert_symbol(objects, id, 0x3ac, ".plt+0x1c");
    assert_symbol(objects, id, 0x3b0, "first@plt+0x0");
    assert_symbol(objects, id, 0x3dc, "third(int)@plt+0xc");
    id = add_file(objects, DATA "plt-riscv64.so");
    assert_symbol(objects, id, 0x29e, ".plt+0x1e");
    assert_symbol(objects, id, 0x2a0, "second@plt+0x0");
    assert_symbol(objects, id, 0x2c0, "first@plt+0x0");
    objects_free(objects);
}

static void no_demangling(void **state) {
    struct objects *objects = objects_new(&(struct objects_options){.no_demangle = true});
    assert_symbol(objects, add_file(objects, DATA "overlap.so"), 0x470, "_ZN3FooC1Ev+0x0");
    objects_free(objects);
}

/* The file offset of an address of this process, and the file. */
static uint64_t own_offset(const void *address, char path[256]) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[500];
    uint64_t found = UINT64_MAX;
    while (fgets(line, sizeof line, maps)) {
        unsigned long long start, end, offset;
        char name[256] = "";
        if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %255s", &start, &end, &offset, name) >= 3 &&
            (uintptr_t)address >= start && (uintptr_t)address < end) {
            found = (uintptr_t)address - start + offset;
            memcpy(path, name, sizeof name);
        }
    }
    fclose(maps);
    assert_true(found != UINT64_MAX);
    return found;
}

static void own_functions(void **state) {
    char path[256];
    for (int compat = 0; compat < 2; compat++) {
        struct objects *objects = objects_with(compat);
        uint64_t offset = own_offset((const void *)(uintptr_t)own_functions, path);
        uint32_t id = add_file(objects, path);
        assert_symbol(objects, id, offset + 5, "own_functions+0x5");
        objects_free(objects);
    }
}

static void vdso_by_itself(void **state) {
    struct objects *objects = objects_with(false);
    uint32_t id = objects_add(
        objects, &(struct object_identity){.kind = OBJECT_VDSO, .path = TEXT("[vdso]")});
    bool found = false;
    struct symbol symbol;
    for (uint64_t offset = 0; offset < 8192 && !found; offset++)
        found = objects_symbol(objects, id, offset, &symbol) &&
                text_search(symbol.name, TEXT("clock_gettime")) != SIZE_MAX;
    assert_true(found);
    objects_free(objects);
}

/* ---- finding ---- */

struct place {
    char root[64];
    char own[256]; /* this program */
    struct build_id id;
    uint64_t offset; /* of own_functions */
};

static void place_init(struct place *place) {
    strcpy(place->root, "/tmp/wick-test-object-XXXXXX");
    assert_non_null(mkdtemp(place->root));
    place->offset = own_offset((const void *)(uintptr_t)own_functions, place->own);
    struct elf_image *image = elf_image_open(place->own, false, NULL);
    assert_non_null(image);
    place->id = image->build_id;
    assert_true(place->id.size == 20);
    elf_image_free(image);
}

/* root/PATH, directories and all, as a link to this program. */
static void place_link(const struct place *place, const char *path) {
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", place->root, path);
    for (char *slash = whole + strlen(place->root) + 1; (slash = strchr(slash, '/'));
         *slash++ = '/') {
        *slash = 0;
        mkdir(whole, 0700);
    }
    assert_int_equal(symlink(place->own, whole), 0);
}

static void place_remove(const struct place *place) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", place->root);
    assert_int_equal(system(command), 0);
}

static void found_in_the_cache(void **state) {
    struct place place;
    char hex[2 * BUILD_ID_MAX + 1], path[100];
    place_init(&place);
    build_id_print(&place.id, hex);
    snprintf(path, sizeof path, ".build-id/%.2s/%s/elf", hex, hex + 2);
    place_link(&place, path);
    for (int compat = 0; compat < 2; compat++) {
        struct objects *objects = objects_new(&(struct objects_options){
            .buildid_cache = place.root, .quirks = compat ? quirks_perf : quirks_none});
        uint32_t id = objects_add(objects, &(struct object_identity){.kind = OBJECT_FILE,
                                                                     .path = TEXT("/ (deleted)"),
                                                                     .build_id = place.id});
        assert_symbol(objects, id, place.offset, "own_functions+0x0");
        struct notes notes = {0};
        objects_notes(objects, &notes);
        assert_int_equal(notes.count, 0);
        objects_free(objects);
    }
    place_remove(&place);
}

/* Recorded as deleted, and there again: perf looks for the name as recorded. */
static void found_though_deleted(void **state) {
    struct place place;
    struct buffer path = {0};
    place_init(&place);
    buffer_printf(&path, "%s (deleted)", place.own);
    struct object_identity identity = {
        .kind = OBJECT_FILE, .path = buffer_text(&path), .build_id = place.id};
    for (int compat = 0; compat < 2; compat++) {
        struct objects *objects = objects_with(compat);
        assert_symbol(objects, objects_add(objects, &identity), place.offset,
                      compat ? "[unknown]" : "own_functions+0x0");
        objects_free(objects);
    }
    buffer_release(&path);
    place_remove(&place);
}

/* No list of symbols, but the kernel's ELF file in the cache; here this program plays its part. */
static void kernel_from_its_elf(void **state) {
    struct place place;
    char hex[2 * BUILD_ID_MAX + 1], path[100];
    place_init(&place);
    build_id_print(&place.id, hex);
    snprintf(path, sizeof path, ".build-id/%.2s/%s/elf", hex, hex + 2);
    place_link(&place, path);
    struct objects *objects = objects_new(&(struct objects_options){.buildid_cache = place.root});
    uint32_t id =
        objects_add(objects, &(struct object_identity){.kind = OBJECT_KERNEL,
                                                       .path = TEXT("[kernel.kallsyms]_text"),
                                                       .build_id = place.id});
    objects_set_kernel_reference(objects, id, TEXT("own_functions"), 0xffffffff81000000);
    assert_symbol(objects, id, 0xffffffff81000003, "own_functions+0x3");
    objects_free(objects);
    place_remove(&place);
}

static void found_below_symfs(void **state) {
    struct place place;
    place_init(&place);
    place_link(&place, "some/where/prog");
    for (int compat = 0; compat < 2; compat++) {
        struct objects *objects = objects_new(&(struct objects_options){
            .symfs = place.root, .quirks = compat ? quirks_perf : quirks_none});
        assert_symbol(objects, add_file(objects, "/some/where/prog"), place.offset,
                      "own_functions+0x0");
        assert_symbol(objects, add_file(objects, place.own), place.offset, "[unknown]");
        objects_free(objects);
    }
    place_remove(&place);
}

static void wrong_build_id(void **state) {
    struct place place;
    place_init(&place);
    for (int compat = 0; compat < 2; compat++) {
        struct objects *objects = objects_with(compat);
        struct object_identity identity = {
            .kind = OBJECT_FILE, .path = text_of(place.own), .build_id = place.id};
        assert_symbol(objects, objects_add(objects, &identity), place.offset, "own_functions+0x0");
        identity.build_id.bytes[7] ^= 1;
        assert_symbol(objects, objects_add(objects, &identity), place.offset, "[unknown]");
        assert_symbol(objects, add_file(objects, "/nonexistent/file"), 0, "[unknown]");
        struct notes notes = {0};
        objects_notes(objects, &notes);
        notes_sort(&notes);
        assert_int_equal(notes.count, 2);
        assert_string_equal(notes.items[0].kind->name, "files-differ");
        assert_string_equal(notes.items[0].example, place.own);
        assert_string_equal(notes.items[1].kind->name, "files-missing");
        notes_release(&notes);
        objects_free(objects);
    }
    place_remove(&place);
}

/* An older perf wrote 20 bytes whatever the id's length. */
static void short_build_id(void **state) {
    struct build_id recorded = {.size = 20, .bytes = {1, 2, 3, 4, 5, 6, 7, 8}};
    struct build_id found = {.size = 8, .bytes = {1, 2, 3, 4, 5, 6, 7, 8}}, none = {0};
    assert_true(build_id_matches(&recorded, &found));
    recorded.bytes[12] = 9;
    assert_false(build_id_matches(&recorded, &found));
    assert_false(build_id_matches(&recorded, &none));
}

static void same_identity_once(void **state) {
    struct objects *objects = objects_with(false);
    struct object_identity identity = {.kind = OBJECT_FILE, .path = TEXT("/a")};
    uint32_t id = objects_add(objects, &identity);
    assert_int_equal(objects_add(objects, &identity), id);
    identity.build_id.size = 4;
    assert_int_not_equal(objects_add(objects, &identity), id);
    identity.build_id.size = 0;
    identity.kind = OBJECT_NONE;
    assert_int_not_equal(objects_add(objects, &identity), id);
    assert_int_equal(objects_count(objects), 3);
    objects_free(objects);
}

static void shown_names(void **state) {
    static const struct {
        struct object_identity identity;
        const char *shown;
    } cases[] = {
        {{.kind = OBJECT_KERNEL, .path = TEXT("[kernel.kallsyms]_stext")}, "[kernel.kallsyms]"},
        {{.kind = OBJECT_MODULE, .path = TEXT("/lib/modules/6.1/snd-pcm.ko.xz")}, "[snd_pcm]"},
        {{.kind = OBJECT_MODULE, .path = TEXT("[ext4]")}, "[ext4]"},
        {{.kind = OBJECT_PERFMAP, .path = TEXT("//anon"), .pid = 77}, "/tmp/perf-77.map"},
        {{.kind = OBJECT_FILE, .path = TEXT("/bin/true")}, "/bin/true"},
    };
    struct objects *objects = objects_with(false);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct text shown = objects_shown(objects, objects_add(objects, &cases[i].identity));
        assert_true(text_equal(shown, text_of(cases[i].shown)));
    }
    objects_free(objects);
}

/* ---- the kernel ---- */

static void kernel_names(void **state) {
    struct objects *objects =
        objects_new(&(struct objects_options){.kallsyms = DATA "small.kallsyms"});
    uint32_t id =
        objects_add(objects, &(struct object_identity){.kind = OBJECT_KERNEL,
                                                       .path = TEXT("[kernel.kallsyms]_text")});
    uint32_t module = objects_add(objects, &(struct object_identity){.kind = OBJECT_MODULE,
                                                                     .path = TEXT("[testmod]"),
                                                                     .start = 0xffffffffc0000000});
    uint32_t program = objects_add(objects, &(struct object_identity){.kind = OBJECT_BPF,
                                                                      .path = TEXT("bpf_prog_x"),
                                                                      .start = 0xffffffffc0030000,
                                                                      .size = 0x100});
    objects_set_kernel_reference(objects, id, TEXT("_text"), 0xffffffff81000000);
    objects_set_name(objects, program, TEXT("bpf_prog_x"));
    objects_prefetch_kernel(objects);
    assert_symbol(objects, id, 0xffffffff81000010, "srso_alias_untrain_ret+0x10");
    assert_symbol(objects, id, 0xffffffff81000110,
                  "swapgs_restore_regs_and_return_to_usermode+0x10");
    assert_symbol(objects, id, 0xffffffff81000210, "__x64_sys_getpid+0x10");
    assert_symbol(objects, id, 0xffffffff81000310, "local_one+0x10");
    assert_symbol(objects, id, 0xffffffff81001fff, "last_of_kernel+0x18ff");
    assert_symbol(objects, id, 0xffffffff81002000, "[unknown]");
    assert_symbol(objects, id, 0xffffffffc0020008, "bpf_prog_6deef7357e7b4530+0x8");
    assert_symbol(objects, module, 0xffffffffc0000010, "mod_init+0x10");
    assert_symbol(objects, module, 0xffffffffc0010010, "[unknown]"); /* another module's */
    assert_symbol(objects, program, 0xffffffffc00300ff, "bpf_prog_x+0xff");
    assert_symbol(objects, program, 0xffffffffc0030100, "[unknown]");
    objects_free(objects);
}

static void kernel_moved(void **state) {
    for (int compat = 0; compat < 2; compat++) {
        struct objects *objects = objects_new(&(struct objects_options){
            .kallsyms = DATA "small.kallsyms", .quirks = compat ? quirks_perf : quirks_none});
        uint32_t id = objects_add(
            objects, &(struct object_identity){.kind = OBJECT_KERNEL,
                                               .path = TEXT("[kernel.kallsyms]_stext")});
        objects_set_kernel_reference(objects, id, TEXT("_stext"), 0xffffffff9a200000);
        assert_symbol(objects, id, 0xffffffff9a200210, "__x64_sys_getpid+0x10");
        assert_symbol(objects, id, 0xffffffff81000210, "[unknown]");
        objects_free(objects);
    }
}

static void kernel_hidden(void **state) {
    char path[] = "/tmp/wick-test-kallsyms-XXXXXX";
    int descriptor = mkstemp(path);
    const char text[] = "0000000000000000 T _text\n0000000000000000 T start_kernel\n";
    assert_int_equal(write(descriptor, text, sizeof text - 1), sizeof text - 1);
    close(descriptor);
    struct objects *objects = objects_new(&(struct objects_options){.kallsyms = path});
    uint32_t id =
        objects_add(objects, &(struct object_identity){.kind = OBJECT_KERNEL,
                                                       .path = TEXT("[kernel.kallsyms]_text")});
    assert_symbol(objects, id, 0xffffffff81000210, "[unknown]");
    struct notes notes = {0};
    objects_notes(objects, &notes);
    assert_int_equal(notes.count, 1);
    assert_string_equal(notes.items[0].kind->name, "kernel-symbols-hidden");
    notes_release(&notes);
    objects_free(objects);
    unlink(path);
}

/* ---- perf maps ---- */

static void newest_line_holds(void **state) {
    int32_t pid = NOBODY + getpid();
    write_perfmap(pid, TEXT("1000 100 old\n"
                            "1040 20 inside\n"
                            "0x2000 0x10 with spaces in it\n"
                            "10f0 20 behind\n"
                            "1010 8 _ZN1A3runEv\n"
                            "zz 10 no number\n"
                            "3000\n"
                            "4000 0 empty\n"
                            "5000 10 x"));
    struct objects *objects = objects_with(false);
    uint32_t id = add_perfmap(objects, pid);
    assert_symbol(objects, id, 0x1000, "old+0x0");
    assert_symbol(objects, id, 0x1012, "A::run()+0x2");
    assert_symbol(objects, id, 0x1018, "old+0x18");
    assert_symbol(objects, id, 0x1041, "inside+0x1");
    assert_symbol(objects, id, 0x1060, "old+0x60");
    assert_symbol(objects, id, 0x10ff, "behind+0xf");
    assert_symbol(objects, id, 0x1110, "[unknown]");
    assert_symbol(objects, id, 0x2001, "with spaces in it+0x1");
    assert_symbol(objects, id, 0x4000, "empty+0x0");
    assert_symbol(objects, id, 0x4001, "[unknown]");
    assert_symbol(objects, id, 0x500f, "x+0xf");
    objects_free(objects);
    remove_perfmap(pid);
}

/* A list that takes too much is read up to there, and a note has the byte. */
static void lists_are_on_a_budget(void **state) {
    int32_t pid = NOBODY + getpid();
    static const char line[] = "1000 10 first\n";
    struct context context = {.limits = {.memory = 100, .steps = 1}};
    write_perfmap(pid, TEXT("1000 10 first\n2000 10 second\n3000 10 third\n"));
    for (int is_kernel = 0; is_kernel < 2; is_kernel++) {
        char expected[80];
        struct objects *objects = objects_new(
            &(struct objects_options){.context = &context, .kallsyms = DATA "small.kallsyms"});
        struct object_identity kernel = {.kind = OBJECT_KERNEL,
                                         .path = TEXT("[kernel.kallsyms]_text")};
        uint32_t id = is_kernel ? objects_add(objects, &kernel) : add_perfmap(objects, pid);
        if (!is_kernel)
            assert_symbol(objects, id, 0x1001, "first+0x1");
        assert_symbol(objects, id, 0x3001, "[unknown]");
        struct notes notes = {0};
        objects_notes(objects, &notes);
        assert_int_equal(notes.count, 1);
        assert_string_equal(notes.items[0].kind->name, "symbol-lists-cut");
        snprintf(expected, sizeof expected, ", byte %zu", sizeof line - 1);
        assert_true(is_kernel || strstr(notes.items[0].example, expected));
        notes_release(&notes);
        objects_free(objects);
    }
    remove_perfmap(pid);
}

static void links_are_refused(void **state) {
    int32_t pid = NOBODY + getpid();
    char path[64], target[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", pid);
    snprintf(target, sizeof target, "/tmp/wick-test-target-%d", getpid());
    FILE *file = fopen(target, "w");
    fputs("1000 100 fn\n", file);
    fclose(file);
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
    struct objects *objects = objects_with(false);
    assert_symbol(objects, add_perfmap(objects, pid), 0x1000, "[unknown]");
    assert_symbol(objects, add_perfmap(objects, pid + 1000000), 0x1000, "[unknown]");
    struct notes notes = {0};
    objects_notes(objects, &notes);
    notes_sort(&notes);
    assert_int_equal(notes.count, 2);
    assert_string_equal(notes.items[0].kind->name, "perf-maps-missing");
    assert_string_equal(notes.items[1].kind->name, "perf-maps-refused");
    notes_release(&notes);
    objects_free(objects);
    unlink(path);
    unlink(target);
}

/* ---- names ---- */

static void check_demangled(bool compat, const char *name, const char *expected) {
    struct objects_options options = {.quirks = compat ? quirks_perf : quirks_none};
    struct buffer buffer = {0};
    bool fine = demangle(&options, text_of(name), &buffer, NULL);
    buffer_add_char(&buffer, 0);
    if (fine != (expected != NULL) || (expected && strcmp(buffer.items, expected) != 0))
        fail_msg("%s: '%s'", name, buffer.items);
    buffer_release(&buffer);
}

static void demangled_names(void **state) {
    static const struct {
        const char *name, *ours, *perfs;
    } cases[] = {
        {"main", NULL, NULL},
        {"_ZN3FooC1Ei", "Foo::Foo(int)", "Foo::Foo"},
        {"_ZSt4sortIPiEvT_S1_", "std::sort<int*>(int*, int*)", "std::sort<int*>"},
        {"_ZNK3app3FooIdE3runERKSt6vectorIdSaIdEE",
         "app::Foo<double>::run(std::vector<double, std::allocator<double> > const&) const",
         "app::Foo<double>::run"},
        {"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad",
         "core::fmt::Formatter::pad"},
        {"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$"
         "3fmt17h28a7df22a3a8fc35E",
         "<alloc::string::String as core::fmt::Display>::fmt",
         "<alloc::string::String as core::fmt::Display>::fmt"},
        {"_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function",
         "foo::example_function"},
        {"_D4core6memory2GC6enableFNbZv", "core.memory.GC.enable()", NULL},
        {"camlStdlib__List__map_123", "Stdlib.List.map_123", "Stdlib.List.map_123"},
        {"Ljava/lang/String;indexOf(Ljava/lang/String;I[B)I",
         "java.lang.String.indexOf(java.lang.String, int, byte[])",
         "java.lang.String.indexOf(java.lang.String, int, byte[])"},
        {"f(int)", NULL, NULL},
        {"_ZN1", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        check_demangled(false, cases[i].name, cases[i].ours);
        check_demangled(true, cases[i].name, cases[i].perfs);
    }
}

/* A name whose parts refer to each other, each twice: 2^n times as long as it looks. And one that is only deep. */
static void hostile_names(void **state) {
    struct objects_options options = {0};
    struct buffer name = {0}, result = {0};
    buffer_add(&name, TEXT("_Z1fSt4pairIiiE"));
    for (int i = 0; i < 60; i++)
        buffer_printf(&name, "St4pairIS%c_S%c_E", i < 10 ? '0' + i : 'A' + i % 26,
                      i < 10 ? '0' + i : 'A' + i % 26);
    demangle(&options, buffer_text(&name), &result, NULL);
    assert_true(result.count < 1 << 20);
    name.count = 0;
    buffer_add(&name, TEXT("_Z1f"));
    for (int i = 0; i < 5900; i++)
        buffer_add_char(&name, 'P');
    buffer_add_char(&name, 'i');
    result.count = 0;
    demangle(&options, buffer_text(&name), &result, NULL);
    assert_true(result.count < 1 << 20);
    buffer_release(&name);
    buffer_release(&result);
}

/* ---- many threads at once ---- */

struct crowd {
    struct objects *objects;
    uint32_t id;
    uint64_t offset;
    _Atomic int wrong;
};

static void crowd_ask(void *context, unsigned worker, size_t item) {
    struct crowd *crowd = context;
    struct symbol symbol;
    if (!objects_symbol(crowd->objects, crowd->id, crowd->offset, &symbol) ||
        !text_equal(symbol.name, TEXT("own_functions")))
        atomic_fetch_add(&crowd->wrong, 1);
}

static void many_threads(void **state) {
    char path[256];
    struct crowd crowd = {.objects = objects_with(false)};
    crowd.offset = own_offset((const void *)(uintptr_t)own_functions, path);
    crowd.id = add_file(crowd.objects, path);
    parallel_run(8, 64, crowd_ask, &crowd);
    assert_int_equal(crowd.wrong, 0);
    objects_free(crowd.objects);
}

struct listed {
    size_t count, wanted;
    bool differs;
    FILE *list;
};

/* The same as scanf() reads of the same line. */
static bool compare_symbol(void *context, const struct kernel_symbol *symbol) {
    struct listed *listed = context;
    char line[1024], type, name[512];
    unsigned long long address;
    listed->differs |= !fgets(line, sizeof line, listed->list) ||
                       sscanf(line, "%llx %c %511s", &address, &type, name) != 3 ||
                       symbol->address != address || symbol->type != type ||
                       !text_equal(symbol->name, text_of(name));
    return ++listed->count != listed->wanted;
}

static void test_kernel_symbols(void **state) {
    char line[1024];
    struct listed all = {.list = fopen("/proc/kallsyms", "re")}, few = {.wanted = 5};
    if (!all.list)
        skip();
    assert_true(kernel_symbols_each(compare_symbol, &all));
    assert_false(all.differs || fgets(line, sizeof line, all.list));
    rewind(all.list);
    few.list = all.list;
    assert_true(kernel_symbols_each(compare_symbol, &few));
    assert_int_equal(few.count, all.count < 5 ? all.count : 5);
    assert_false(few.differs);
    fclose(all.list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_symbols),   cmocka_unit_test(golden_elf),
        cmocka_unit_test(golden_kallsyms),       cmocka_unit_test(golden_perfmap),
        cmocka_unit_test(lists_are_on_a_budget), cmocka_unit_test(symbols_inside_symbols),
        cmocka_unit_test(plt_of_each_kind),      cmocka_unit_test(no_demangling),
        cmocka_unit_test(own_functions),         cmocka_unit_test(vdso_by_itself),
        cmocka_unit_test(found_in_the_cache),    cmocka_unit_test(found_below_symfs),
        cmocka_unit_test(found_though_deleted),  cmocka_unit_test(kernel_from_its_elf),
        cmocka_unit_test(wrong_build_id),        cmocka_unit_test(short_build_id),
        cmocka_unit_test(same_identity_once),    cmocka_unit_test(shown_names),
        cmocka_unit_test(kernel_names),          cmocka_unit_test(kernel_moved),
        cmocka_unit_test(kernel_hidden),         cmocka_unit_test(newest_line_holds),
        cmocka_unit_test(links_are_refused),     cmocka_unit_test(demangled_names),
        cmocka_unit_test(hostile_names),         cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
