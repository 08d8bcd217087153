#include "object/object.h"

#include "self.h"

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
static void look_into(const char *path, struct found *found) {
    struct objects_options options = {0};
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
    vector_release(&chain);
    objects_free(objects);
}

static bool is_installed(const char *compiler) {
    char command[200];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", compiler);
    return system(command) == 0;
}

static void check_form(const char *folder, const char *compiler, const char *flags) {
    char command[1000], path[300];
    struct found found;
    snprintf(path, sizeof path, "%s/program", folder);
    snprintf(command, sizeof command,
             "cd %s && rm -f program *.dwo && %s -O2 %s -c source.c -o source.o && %s source.o -o "
             "program",
             folder, compiler, flags, compiler);
    assert_int_equal(system(command), 0);
    look_into(path, &found);
    if (!found.places || !found.lines_right)
        fail_msg("%s %s: %u places", compiler, flags, found.places);
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
    char folder[] = "/tmp/wick-inline-XXXXXX", command[200];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "%s/source.c", folder);
    FILE *file = fopen(command, "w");
    assert_non_null(file);
    fputs(source, file);
    fclose(file);
    for (size_t c = 0; c < COUNT_OF(compilers); c++)
        for (size_t i = 0; i < COUNT_OF(flags) && is_installed(compilers[c]); i++)
            check_form(folder, compilers[c], flags[i]);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void test_nothing_there(void **unused) {
    struct objects_options options = {0};
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
        cmocka_unit_test(test_own_inlines),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_nothing_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
