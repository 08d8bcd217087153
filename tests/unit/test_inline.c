#include "object/inline.h"

#include "self.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- this program's own inlined functions ---- */

#if defined(__x86_64__)
#define HERE(place) __asm__ volatile("lea 0f(%%rip), %0\n0:" : "=r"(place))
#elif defined(__aarch64__)
#define HERE(place) __asm__ volatile("adr %0, 0f\n0:" : "=r"(place))
#endif

static const void *inner_place;

static inline __attribute__((always_inline)) void inner(void) {
    HERE(inner_place);
}
enum { INNER_LINE = __LINE__ - 2 };

static inline __attribute__((always_inline)) void middle(void) {
    inner();
}
enum { MIDDLE_LINE = __LINE__ - 2 };

static __attribute__((noinline)) void outer(void) {
    middle();
}
enum { OUTER_LINE = __LINE__ - 2 };

static bool find(struct self *self, const void *place, bool lines, struct inline_chain *chain) {
    const struct mapping *mapping = space_find(self->spaces, self->at.user, (uint64_t)place);
    assert_non_null(mapping);
    return objects_inlines(self->objects, mapping->object,
                           (uint64_t)place - mapping->start + mapping->offset, lines, chain);
}

static void assert_frame(const struct inline_frame *frame, const char *name, uint32_t line) {
    assert_true(text_equal(frame->name, text_of(name)));
    assert_int_equal(frame->line, line);
    if (line)
        assert_true(text_ends(frame->file, TEXT("test_inline.c")));
}

static void test_own_inlines(void **unused) {
    struct self self = {0};
    struct inline_chain chain = {0};
    outer();
    self_open(&self);
    assert_true(find(&self, inner_place, true, &chain));
    assert_int_equal(chain.count, 3);
    assert_frame(&chain.items[0], "outer", OUTER_LINE);
    assert_frame(&chain.items[1], "middle", MIDDLE_LINE);
    assert_frame(&chain.items[2], "inner", INNER_LINE);
    assert_true(find(&self, inner_place, false, &chain));
    assert_int_equal(chain.count, 3);
    assert_frame(&chain.items[2], "inner", 0);
    /* The function's own first byte belongs to it, whatever is inlined there. */
    assert_true(find(&self, (const void *)(uintptr_t)outer, false, &chain));
    assert_true(text_equal(chain.items[0].name, TEXT("outer")));
    vector_release(&chain);
    self_close(&self);
}

struct crowd {
    struct self *self;
    unsigned wrong;
};

static void *ask_many_times(void *context) {
    struct crowd *crowd = context;
    struct inline_chain chain = {0};
    for (int i = 0; i < 2000; i++)
        if (!find(crowd->self, inner_place, i % 64 == 0, &chain) || chain.count != 3 ||
            !text_equal(chain.items[1].name, TEXT("middle")))
            __atomic_add_fetch(&crowd->wrong, 1, __ATOMIC_RELAXED);
    vector_release(&chain);
    return NULL;
}

static void test_many_threads(void **unused) {
    struct self self = {0};
    struct crowd crowd = {.self = &self};
    pthread_t threads[6];
    outer();
    self_open(&self);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many_times, &crowd), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(crowd.wrong, 0);
    self_close(&self);
}

/* ---- every form of debug information that the compilers at hand can write ---- */

static const char source[] =
    "static inline __attribute__((always_inline)) int square(int x) { return x * x + 3; }\n"
    "static inline __attribute__((always_inline)) int twice(int x) { return square(x) + square(x + "
    "1); }\n"
    "__attribute__((noinline)) int work(int x) {\n"
    "    volatile int v = twice(x);\n"
    "    return v;\n"
    "}\n"
    "int main(int argc, char **argv) { return work(argc); }\n";

struct found {
    unsigned places; /* addresses where twice and square are both inlined into work */
    bool lines_right;
};

/* Asks for every byte of the file. */
static void look_into_noting(const char *path, struct found *found, struct notes *notes) {
    struct objects_options options = {.lines = true};
    struct objects *objects = objects_new(&options);
    struct object_identity identity = {.path = text_of(path), .kind = OBJECT_FILE};
    struct inline_chain chain = {0};
    uint32_t object = objects_add(objects, &identity);
    *found = (struct found){.lines_right = true};
    for (uint64_t at = 0; at < 0x3000; at++) {
        if (!objects_inlines(objects, object, at, true, &chain) || chain.count != 3)
            continue;
        found->places++;
        found->lines_right &=
            text_equal(chain.items[0].name, TEXT("work")) && chain.items[0].line == 4 &&
            text_equal(chain.items[1].name, TEXT("twice")) && chain.items[1].line == 2 &&
            text_equal(chain.items[2].name, TEXT("square"));
    }
    if (notes)
        objects_notes(objects, notes);
    vector_release(&chain);
    objects_free(objects);
}

static void look_into(const char *path, struct found *found) {
    look_into_noting(path, found, NULL);
}

static bool is_installed(const char *compiler) {
    char command[200];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", compiler);
    return system(command) == 0;
}

static void build(const char *folder, const char *compiler, const char *flags) {
    char command[1000];
    snprintf(command, sizeof command,
             "cd %s && rm -f program *.dwo && %s -O2 %s -c source.c -o source.o && %s source.o -o "
             "program",
             folder, compiler, flags, compiler);
    assert_int_equal(system(command), 0);
}

/* How many DIEs are below one, itself not counted; by libdw. */
static size_t dies_below(Dwarf_Die *top) {
    Dwarf_Die die;
    size_t count = 0;
    if (dwarf_child(top, &die) != 0)
        return 0;
    do
        count += 1 + dies_below(&die);
    while (dwarf_siblingof(&die, &die) == 0);
    return count;
}

/* No unit is left to libdw, which takes many times as long: all of its DIEs are met, and none is strange. */
static void check_walk(const char *path) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    Dwarf *dwarf = dwarf_begin(descriptor, DWARF_C_READ);
    Dwarf_Off next;
    size_t header, units = 0;
    assert_non_null(dwarf);
    for (Dwarf_Off at = 0; dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) == 0;
         at = next) {
        Dwarf_Die top;
        struct dies dies;
        size_t met = 0;
        assert_non_null(dwarf_offdie(dwarf, at + header, &top));
        if (!dies_begin(&dies, &top, next - at))
            continue;
        while (dies_next(&dies))
            met += dies.shape != NULL;
        assert_false(dies.is_strange);
        assert_int_equal(met, dies_below(&top));
        dies_release(&dies);
        units++;
    }
    assert_int_not_equal(units, 0);
    dwarf_end(dwarf);
    close(descriptor);
}

static void check_form(const char *folder, const char *compiler, const char *flags) {
    char path[300];
    struct found found;
    snprintf(path, sizeof path, "%s/program", folder);
    build(folder, compiler, flags);
    look_into(path, &found);
    if (!found.places || !found.lines_right)
        fail_msg("%s %s: %u places", compiler, flags, found.places);
    if (!strstr(flags, "-gsplit-dwarf"))
        check_walk(path);
}

#define FOLDER "/tmp/wick-inline-XXXXXX"

static void folder_make(char *folder, const char *name, const char *text) {
    char path[200];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void folder_remove(const char *folder) {
    char command[200];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void test_forms(void **unused) {
    static const char *flags[] = {"-gdwarf-4",
                                  "-gdwarf-5",
                                  "-gdwarf-4 -gsplit-dwarf",
                                  "-gdwarf-5 -gsplit-dwarf",
                                  "-gdwarf-5 -gz",
                                  "-gdwarf-5 -ffunction-sections",
                                  "-gdwarf-4 -fdebug-types-section"};
    static const char *compilers[] = {"gcc", "clang-14"};
    char folder[] = FOLDER;
    folder_make(folder, "source.c", source);
    for (size_t c = 0; c < COUNT_OF(compilers); c++)
        for (size_t i = 0; i < COUNT_OF(flags) && is_installed(compilers[c]); i++)
            check_form(folder, compilers[c], flags[i]);
    folder_remove(folder);
}

/* ---- .dwo files ---- */

static void run_in(const char *folder, const char *what) {
    char command[1000];
    snprintf(command, sizeof command, "cd %s && %s", folder, what);
    assert_int_equal(system(command), 0);
}

static unsigned places_in(const char *folder, struct notes *notes) {
    char path[400];
    struct found found;
    snprintf(path, sizeof path, "%s/program", folder);
    look_into_noting(path, &found, notes);
    return found.lines_right ? found.places : 0;
}

static bool is_noted(const struct notes *notes, const char *kind) {
    for (size_t i = 0; i < notes->count; i++)
        if (strcmp(notes->items[i].kind->name, kind) == 0)
            return true;
    return false;
}

static bool reads_packages(void) {
    unsigned major = 0, minor = 0;
    sscanf(dwfl_version(NULL), "%u.%u", &major, &minor);
    return major > 0 || minor >= 191;
}

/* All units' functions in one file beside the program, reached through a link as well. */
static void check_package(const char *folder, const char *compiler, const char *flags) {
    struct notes notes = {0};
    char linked[300];
    build(folder, compiler, flags);
    run_in(folder, "mkdir -p linked && dwp -e program -o program.dwp && rm *.dwo && "
                   "ln -sf ../program linked/program");
    snprintf(linked, sizeof linked, "%s/linked", folder);
    bool found = places_in(folder, &notes) && places_in(linked, &notes);
    assert_int_equal(found, reads_packages());
    assert_int_equal(is_noted(&notes, "dwp-unread"), !reads_packages());
    assert_int_equal(notes.count, !reads_packages());
    run_in(folder, "rm -r linked program.dwp");
    notes_release(&notes);
}

static void check_split(const char *folder, const char *compiler, const char *flags) {
    struct notes notes = {0};
    char elsewhere[300], command[700];
    build(folder, compiler, flags);
    assert_int_not_equal(places_in(folder, &notes), 0);
    /* Where the program was compiled is gone, but the files came along. */
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    run_in(folder, "mkdir elsewhere && mv program *.dwo elsewhere");
    assert_int_not_equal(places_in(elsewhere, &notes), 0);
    assert_int_equal(notes.count, 0);
    /* Where anybody may put another file while it is looked at, none is opened. */
    run_in(elsewhere, "chmod o+w .");
    assert_int_equal(places_in(elsewhere, &notes), 0);
    assert_true(is_noted(&notes, "dwo-missing"));
    notes_release(&notes);
    notes = (struct notes){0};
    run_in(elsewhere, "chmod o+wt .");
    assert_int_not_equal(places_in(elsewhere, &notes), 0);
    /* The same for a group whose members are others; as root alone, who can give it away. */
    if (geteuid() == 0) {
        run_in(elsewhere, "chmod o-wt . && chgrp 50 . && chmod g+w .");
        assert_int_equal(places_in(elsewhere, &notes), 0);
        assert_true(is_noted(&notes, "dwo-missing"));
        run_in(elsewhere, "chgrp 0 .");
        assert_int_not_equal(places_in(elsewhere, &notes), 0);
        notes_release(&notes);
        notes = (struct notes){0};
    }
    /* A pipe of that name is not waited for. */
    run_in(elsewhere, "for f in *.dwo; do rm $f && mkfifo $f; done");
    assert_int_equal(places_in(elsewhere, &notes), 0);
    assert_true(is_noted(&notes, "dwo-missing"));
    notes_release(&notes);
    notes = (struct notes){0};
    run_in(elsewhere, "rm *.dwo && : > program.dwp");
    assert_int_equal(places_in(elsewhere, &notes), 0);
    assert_true(is_noted(&notes, reads_packages() ? "dwp-lacks" : "dwp-unread"));
    notes_release(&notes);
    /* Nor for a package that is a pipe. */
    notes = (struct notes){0};
    run_in(elsewhere, "rm program.dwp && mkfifo program.dwp");
    assert_int_equal(places_in(elsewhere, &notes), 0);
    assert_true(is_noted(&notes, "dwo-missing"));
    notes_release(&notes);
    snprintf(command, sizeof command, "rm -r %s", elsewhere);
    assert_int_equal(system(command), 0);
}

static void test_split(void **unused) {
    static const char *const forms[][2] = {
        {"gcc", "-gdwarf-4 -gsplit-dwarf"},
        {"gcc", "-gdwarf-5 -gsplit-dwarf"},
        {"gcc", "-gdwarf-5 -gsplit-dwarf -fdebug-prefix-map=$PWD=."},
        {"clang-14", "-gdwarf-4 -gsplit-dwarf -fdebug-compilation-dir=."},
        {"clang-14", "-gdwarf-5 -gsplit-dwarf -fdebug-compilation-dir=."}};
    char folder[] = FOLDER;
    folder_make(folder, "source.c", source);
    for (size_t i = 0; i < COUNT_OF(forms); i++)
        if (is_installed(forms[i][0]))
            check_split(folder, forms[i][0], forms[i][1]);
    if (is_installed("dwp") && is_installed("gcc"))
        check_package(folder, "gcc", "-gdwarf-4 -gsplit-dwarf");
    folder_remove(folder);
}

/* ---- dwz ---- */

static const char strings_source[] =
    "#include <string>\n"
    "__attribute__((noinline)) std::string repeat(const std::string &what, int times) {\n"
    "    std::string all;\n"
    "    for (int i = 0; i < times; i++)\n"
    "        all += what + std::to_string(i);\n"
    "    return all;\n"
    "}\n"
    "int main(int argc, char **argv) { return repeat(argv[0], argc + OTHER).size() & 1; }\n";

/* Both say the same of every byte of code. */
static void check_same(const char *one, const char *other) {
    struct objects *objects = objects_new(&(struct objects_options){.lines = true});
    struct object_identity a = {.path = text_of(one), .kind = OBJECT_FILE},
                           b = {.path = text_of(other), .kind = OBJECT_FILE};
    uint32_t first = objects_add(objects, &a), second = objects_add(objects, &b);
    struct inline_chain x = {0}, y = {0};
    unsigned inlined = 0;
    for (uint64_t at = 0; at < 0x4000; at++) {
        assert_int_equal(objects_inlines(objects, first, at, true, &x),
                         objects_inlines(objects, second, at, true, &y));
        assert_int_equal(x.count, y.count);
        for (size_t i = 0; i < x.count; i++) {
            assert_true(text_equal(x.items[i].name, y.items[i].name));
            assert_int_equal(x.items[i].line, y.items[i].line);
        }
        inlined += x.count > 2;
    }
    assert_int_not_equal(inlined, 0);
    vector_release(&x);
    vector_release(&y);
    objects_free(objects);
}

static void check_dwz(const char *folder, const char *flags) {
    char command[500], plain[300], program[300];
    struct notes notes = {0};
    struct found found;
    snprintf(
        command, sizeof command,
        "g++ -O2 %s -DOTHER=1 source.cpp -o program && g++ -O2 %s -DOTHER=2 source.cpp -o other && "
        "cp program plain && dwz -m common -M common program other && readelf -SW program | "
        "grep -q gnu_debugaltlink",
        flags, flags);
    run_in(folder, command);
    snprintf(plain, sizeof plain, "%s/plain", folder);
    snprintf(program, sizeof program, "%s/program", folder);
    check_same(plain, program);
    check_walk(program);
    run_in(folder, "rm common");
    look_into_noting(program, &found, &notes);
    assert_true(is_noted(&notes, "dwz-missing"));
    notes_release(&notes);
}

static void test_dwz(void **unused) {
    if (!is_installed("dwz") || !is_installed("g++"))
        skip();
    char folder[] = FOLDER;
    folder_make(folder, "source.cpp", strings_source);
    check_dwz(folder, "-gdwarf-4");
    check_dwz(folder, "-gdwarf-5");
    folder_remove(folder);
}

static void test_nothing_there(void **unused) {
    struct objects_options options = {.lines = true};
    struct objects *objects = objects_new(&options);
    struct object_identity absent = {.path = TEXT("/nowhere/at/all"), .kind = OBJECT_FILE};
    struct object_identity anonymous = {.path = TEXT("//anon"), .kind = OBJECT_NONE};
    struct inline_chain chain = {0};
    assert_false(objects_inlines(objects, objects_add(objects, &absent), 0x1000, true, &chain));
    assert_false(objects_inlines(objects, objects_add(objects, &anonymous), 0x1000, true, &chain));
    assert_null(objects_cfi(objects, objects_add(objects, &absent), 0x1000));
    assert_null(objects_cfi(objects, objects_add(objects, &absent), UINT64_MAX));
    objects_free(objects);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_inlines), cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_forms),       cmocka_unit_test(test_split),
        cmocka_unit_test(test_dwz),         cmocka_unit_test(test_nothing_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
