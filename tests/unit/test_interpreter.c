/* What an interpreter's memory says: tables of lines against what CPython itself makes of them, and memory that lies. */
#include "interpreter/interpreter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- lines ---- */

/* co_lnotab or co_linetable of two functions, and where the line changes by co_lines(), or dis.findlinestarts(): "offset:line". */
static const struct table_case {
    unsigned version;
    uint32_t first;
    const char *table;
    unsigned size; /* of the code, in bytes */
    const char *changes;
} tables[] = {
    {0x308, 2, "000212020401020102ff08020e010e0206030801040102010a040201020102fe", 102,
     "0:4 18:6 22:7 24:8 26:7 34:9 48:10 62:12 68:15 76:16 80:17 82:18 92:22 94:23 96:24 98:22"},
    {0x308, 1, "0001047f007f002f0815", 16, "0:2 4:303 12:324"},
    {0x30a, 2, "120204020201020108ff0c02080102ff02800c030803040102010a0102040201020104fe", 104,
     "0:4 18:6 22:7 24:8 26:7 34:9 46:10 54:9 56:0 58:12 70:15 78:16 82:17 84:18 94:22 96:23 98:24 "
     "100:22"},
    {0x30a, 1, "0401007f007f082f0415", 16, "0:2 4:303 12:324"},
    {0x30b, 2,
     "8000f004010913f0000109139545982191489448f000010913f100010913f4000109138041f00406050ed80d0ed80"
     "d"
     "0ef103010e0f88018801f8e50b15f00001050ef00001050ef00001050ed80c0d880188018801f00301050ef8f8f8f"
     "0"
     "06000d0e88018801f8884188018805880588058805f006000e0ff00003050ff00003050f8801d80b0cf000010915d"
     "8"
     "0c14d808098851890688018801f008000d0ed80c0dd80c0df005020c0ff00002050f",
     158,
     "0:2 2:4 52:6 54:7 56:8 58:7 66:0 68:9 86:10 94:9 96:0 102:12 108:0 110:12 122:15 130:16 "
     "134:17 136:18 148:22 150:23 152:24 154:22"},
    {0x30b, 1, "8000d808098041f05a0900090a884189058041f02a000c0d8048", 20, "0:1 2:2 6:303 16:324"},
    {0x30d, 2,
     "8000e4141998219448f30001091391488871d80c0d90018d45f703000a0b91488041f000010913f00406050ed80d0"
     "e"
     "d80d0ef103010e0f8801f00a000d0e8801f306000e0f8801de0b0cd90c14d8080989068a01f107000e0ff00e000d0"
     "e"
     "d80c0dd80c0df005020c0ff00002050ff9f225010913f8f40a000c16f30001050ed80c0d8a01f00301050efbf0060"
     "0"
     "0d0e8901fa",
     208,
     "0:2 2:4 38:5 54:4 78:6 80:7 82:8 84:7 90:12 94:15 104:16 118:17 122:18 134:15 138:22 140:23 "
     "142:24 144:22 148:0 152:4 158:0 160:9 178:10 186:9 188:0 196:12 202:0"},
};

static size_t bytes_of(const char *hex, char *bytes) {
    size_t count = 0;
    unsigned byte;
    for (; hex[0]; hex += 2) {
        sscanf(hex, "%2x", &byte);
        bytes[count++] = (char)byte;
    }
    return count;
}

static uint32_t line_at(const struct table_case *c, struct text table, uint64_t offset) {
    return c->version <= 0x309   ? python_line_3_8(table, c->first, offset)
           : c->version == 0x30a ? python_line_3_10(table, c->first, offset)
                                 : python_line_3_11(table, c->first, offset);
}

static void lines(void **state) {
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        char bytes[1000];
        struct text table = {bytes, bytes_of(tables[i].table, bytes)};
        const char *next = tables[i].changes;
        unsigned at, line = 0, shown = 0;
        int length;
        for (unsigned offset = 0; offset < tables[i].size; offset += 2) {
            while (sscanf(next, "%u:%u %n", &at, &line, &length) == 2 && at <= offset) {
                shown = line;
                next += length;
            }
            assert_int_equal(line_at(&tables[i], table, offset), shown);
        }
    }
}

static void lines_of_nothing(void **state) {
    assert_int_equal(python_line_3_8(TEXT(""), 5, 40), 5);
    assert_int_equal(python_line_3_10(TEXT(""), 5, 40), 0);
    assert_int_equal(python_line_3_11(TEXT(""), 5, 40), 0);
    assert_int_equal(python_line_3_11(TEXT("\x05"), 5, 0), 0);     /* no entry begins so */
    assert_int_equal(python_line_3_11(TEXT("\xe8\x7f"), 5, 0), 0); /* cut within a number */
}

static void packages(void **state) {
    static const char *const cases[][2] = {
        {"/usr/lib/python3/dist-packages/numpy/core/fromnumeric.py", "numpy"},
        {"/v/lib/python3.12/site-packages/six.py", "six"},
        {"/usr/lib/python3.11/json/decoder.py", "json"},
        {"/usr/lib/python3.11/threading.py", "threading"},
        {"<frozen importlib._bootstrap>", "importlib._bootstrap"},
        {"/home/me/app.py", "app"},
        {"app.py", "app"},
        {"<string>", "<string>"},
        {".py", ".py"},
        {"", ""}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct text package = python_package(text_of(cases[i][0]));
        assert_int_equal(package.length, strlen(cases[i][1]));
        assert_memory_equal(package.data, cases[i][1], package.length);
    }
}

/* ---- memory ---- */

enum { BASE = 0x10000, SIZE = 0x20000 };

struct memory {
    uint8_t bytes[SIZE];
    unsigned reads;
};

static bool read_memory(void *context, uint64_t address, void *to, size_t size) {
    struct memory *m = context;
    m->reads++;
    if (address < BASE || address - BASE > SIZE || size > SIZE - (address - BASE))
        return false;
    memcpy(to, m->bytes + (address - BASE), size);
    return true;
}

static void put(struct memory *m, uint64_t address, uint64_t value) {
    memcpy(m->bytes + (address - BASE), &value, sizeof value);
}

static void put_string(struct memory *m, uint64_t address, const char *string) {
    put(m, address + 16, strlen(string));
    put(m, address + 32, 1 << 2 | 1 << 5 | 1 << 6); /* one byte each, compact, ASCII */
    memcpy(m->bytes + (address - BASE) + 48, string, strlen(string));
}

enum {
    RUNTIME = BASE,
    THREAD = BASE + 0x1000,
    STATE = BASE + 0x2000,
    FRAMES = BASE + 0x3000,
    CODE = BASE + 0x10000,
    CODE_TYPE = BASE + 0x11000,
    NAME = BASE + 0x12000,
    FILE_NAME = BASE + 0x13000,
    LINES = BASE + 0x14000,
    FRAME_SIZE = 112,
};

/* Python 3.8: frame objects, each with its code and its caller. */
static void put_frames(struct memory *m, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        uint64_t frame = FRAMES + (uint64_t)i * FRAME_SIZE;
        put(m, frame + 24, i + 1 < count ? frame + FRAME_SIZE : 0);
        put(m, frame + 32, CODE);
        put(m, frame + 104, 18);
    }
    put(m, STATE + 24, FRAMES);
}

static struct memory *memory_of_python(unsigned frames) {
    struct memory *m = calloc(1, sizeof *m);
    put(m, RUNTIME + 1392, 1 | 3ull << 32); /* a key was made: number 3 */
    put(m, THREAD + 0x310 + 16 * 3 + 8, STATE);
    put_frames(m, frames);
    put(m, CODE + 8, CODE_TYPE);
    put(m, CODE + 40, 2);
    put(m, CODE + 104, FILE_NAME);
    put(m, CODE + 112, NAME);
    put(m, CODE + 120, LINES);
    put_string(m, NAME, "work");
    put_string(m, FILE_NAME, "/a/b.py");
    put(m, LINES + 16, 32);
    bytes_of(tables[0].table, (char *)m->bytes + (LINES - BASE) + 32);
    return m;
}

static const struct interpreter_symbols symbols = {
    .python_runtime = RUNTIME, .python_code_type = CODE_TYPE, .named_version = 0x308};

static struct raw_stack walked;

static struct interpreter_process walk(struct memory *m) {
    struct remote remote = {read_memory, m};
    struct interpreter_process process;
    assert_true(interpreter_find(&remote, &symbols, &process));
    interpreter_walk(&remote, &process, THREAD, &walked);
    return process;
}

static void frames_and_names(void **state) {
    struct memory *m = memory_of_python(3);
    struct remote remote = {read_memory, m};
    struct interpreter_process process = walk(m);
    struct interpreter_code code;
    uint64_t identity[4];
    assert_int_equal(walked.count, 3);
    assert_int_equal(walked.end, STACK_WHOLE);
    assert_int_equal(walked.frames[0].code, CODE);
    /* by which its code can be checked later */
    assert_int_equal(walked.frames[1].address, layout_check(FILE_NAME, LINES));
    assert_true(interpreter_code_read(&remote, &process, CODE, &code));
    assert_int_equal(code.name.count, 4);
    assert_memory_equal(code.name.items, "work", 4);
    assert_memory_equal(code.file.items, "/a/b.py", 7);
    assert_int_equal(interpreter_code_line(&remote, &process, &code, 18), 6);
    assert_int_equal(interpreter_code_line(&remote, &process, &code, UINT32_MAX),
                     2); /* not begun */
    assert_true(interpreter_code_identify(&remote, &process, CODE, identity));
    assert_memory_equal(identity, code.identity, sizeof identity);
    put(m, CODE + 112, FILE_NAME); /* another took its place */
    assert_true(interpreter_code_identify(&remote, &process, CODE, identity));
    assert_memory_not_equal(identity, code.identity, sizeof identity);
    interpreter_code_release(&code);
    free(m);
}

/* The state of a second interpreter, in the thread that has the lock; and a key behind the first 32. */
static void states(void **state) {
    struct memory *m = memory_of_python(3);
    uint64_t other = STATE + 0x400;
    put(m, other + 24, FRAMES + FRAME_SIZE);
    put(m, RUNTIME + 1392 - 24, other);
    walk(m);
    assert_int_equal(walked.count, 3); /* it is another thread's */
    put(m, other + 176, THREAD);
    walk(m);
    assert_int_equal(walked.count, 2);
    put(m, RUNTIME + 1392 - 24, 0xffff800000000000);
    walk(m);
    assert_int_equal(walked.count, 3);
    put(m, RUNTIME + 1392, 1 | 40ull << 32);
    walk(m);
    assert_int_equal(walked.count, 0);
    put(m, THREAD + 0x510 + 8, THREAD + 0x800);
    put(m, THREAD + 0x800 + 16 * 8 + 8, STATE);
    walk(m);
    assert_int_equal(walked.count, 3);
    free(m);
}

static void wide_strings(void **state) {
    static const uint16_t two[] = {0x66, 0xe9, 0x20ac, 0xd800};
    struct memory *m = memory_of_python(1);
    struct remote remote = {read_memory, m};
    struct interpreter_process process = walk(m);
    struct interpreter_code code;
    put(m, NAME + 16, COUNT_OF(two));
    put(m, NAME + 32, 2 << 2 | 1 << 5);
    memcpy(m->bytes + (NAME - BASE) + 72, two, sizeof two);
    assert_true(interpreter_code_read(&remote, &process, CODE, &code));
    buffer_add_char(&code.name, 0);
    assert_string_equal(code.name.items, "f\xc3\xa9\xe2\x82\xac\xef\xbf\xbd");
    interpreter_code_release(&code);
    free(m);
}

/* A chain of frames that never ends, one that leads nowhere, one of ten thousand. */
static void hostile_frames(void **state) {
    struct memory *m = memory_of_python(3);
    put(m, FRAMES + 2 * FRAME_SIZE + 24, FRAMES);
    m->reads = 0;
    walk(m);
    assert_in_range(walked.count, 3, 6);
    assert_int_equal(walked.end, STACK_UNREADABLE);
    assert_in_range(m->reads, 9, 40);
    put(m, FRAMES + 2 * FRAME_SIZE + 24, 0xffff800000000000);
    walk(m);
    assert_int_equal(walked.count, 3);
    assert_int_equal(walked.end, STACK_UNREADABLE);
    put(m, RUNTIME + 1392, 1 | 4000ull << 32); /* a key that no thread has in its first block */
    walk(m);
    assert_int_equal(walked.count, 0);
    free(m);
}

/* Python 3.12, as a loop begins: its holder has the frame of an earlier call, which is its own caller by now. The holder before it is right. */
static void frames_of_an_earlier_call(void **state) {
    enum { HOLDER = STATE + 0x100, BEFORE = STATE + 0x200, VERSION = BASE + 0x1f000 };
    struct memory *m = calloc(1, sizeof *m);
    struct remote remote = {read_memory, m};
    struct interpreter_process process;
    struct interpreter_symbols of_3_12 = symbols;
    of_3_12.python_version = VERSION;
    put(m, VERSION, 0x030c01f0);
    put(m, RUNTIME + 1544, 1 | 3ull << 32);
    put(m, THREAD + 0x310 + 16 * 3 + 8, STATE);
    put(m, STATE + 56, HOLDER);
    put(m, HOLDER, FRAMES);
    put(m, HOLDER + 8, BEFORE);
    put(m, FRAMES, CODE);
    put(m, FRAMES + 8, FRAMES);
    put(m, BEFORE, FRAMES + 0x100);
    put(m, FRAMES + 0x100, CODE + 0x200);
    assert_true(interpreter_find(&remote, &of_3_12, &process));
    interpreter_walk(&remote, &process, THREAD, &walked);
    assert_int_equal(walked.count, 1);
    assert_int_equal(walked.end, STACK_WHOLE);
    assert_int_equal(walked.frames[0].code, CODE + 0x200);
    free(m);
}

static void take(const struct memory *m, struct raw_code *raw, unsigned part, uint64_t address,
                 uint8_t *to, unsigned size) {
    raw->address[part] = address;
    raw->size[part] = size;
    memcpy(to, m->bytes + (address - BASE), size);
}

/* A code object that was gone when it was looked at; only what was read while it was there counts. */
static void code_that_is_gone(void **state) {
    struct memory *m = memory_of_python(1);
    struct remote remote = {read_memory, m};
    struct interpreter_process process = walk(m);
    struct interpreter_code code;
    static struct raw_code raw;
    take(m, &raw, CODE_HEAD, CODE, raw.head, CODE_HEAD_READ);
    take(m, &raw, CODE_FILE, FILE_NAME, raw.file, 72);
    take(m, &raw, CODE_NAME, NAME, raw.name, 72);
    put(m, CODE + 112, FILE_NAME);
    assert_false(interpreter_code_read_taken(&remote, &process, &raw, &code));
    interpreter_code_release(&code);
    put(m, CODE + 112, NAME); /* it is still there: what is missing is read */
    assert_true(interpreter_code_read_taken(&remote, &process, &raw, &code));
    interpreter_code_release(&code);
    take(m, &raw, CODE_LINES, LINES, raw.lines, 64);
    memset(m->bytes, 0xee, sizeof m->bytes);
    assert_true(interpreter_code_read_taken(&remote, &process, &raw, &code));
    assert_int_equal(code.name.count, 4);
    assert_memory_equal(code.name.items, "work", 4);
    assert_int_equal(interpreter_code_line(&remote, &process, &code, 18), 6);
    assert_int_equal(interpreter_code_check(&code), layout_check(FILE_NAME, LINES));
    interpreter_code_release(&code);
    free(m);
}

static void hostile_code(void **state) {
    static const struct {
        uint64_t at, value;
    } lies[] = {{CODE + 8, NAME},         {CODE + 112, 1},         {CODE + 104, 0},
                {CODE + 120, UINT64_MAX}, {CODE + 40, UINT32_MAX}, {NAME + 16, 1ull << 40},
                {FILE_NAME + 32, 3 << 2}, {LINES + 16, 1ull << 50}};
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        struct memory *m = memory_of_python(1);
        struct remote remote = {read_memory, m};
        struct interpreter_process process = walk(m);
        struct interpreter_code code;
        put(m, lies[i].at, lies[i].value);
        assert_false(interpreter_code_read(&remote, &process, CODE, &code));
        interpreter_code_release(&code);
        free(m);
    }
}

static void versions(void **state) {
    struct memory *m = memory_of_python(1);
    struct remote remote = {read_memory, m};
    struct interpreter_process process;
    struct interpreter_symbols other = symbols;
    other.named_version = 0x307;
    assert_false(interpreter_find(&remote, &other, &process));
    assert_int_equal(process.version, 0x307);
    other.python_version = BASE + 0x1f000;
    put(m, other.python_version, 0x030c01f0);
    assert_true(interpreter_find(&remote, &other, &process)); /* what is in memory holds */
    assert_int_equal(process.version, 0x30c);
    memcpy(m->bytes, "xdebugpy", 8);
    put(m, RUNTIME + 8, 0x030d00f0);
    assert_true(interpreter_find(&remote, &other, &process));
    assert_int_equal(process.version, 0x30d);
    other.is_musl = true; /* which has threads of its own kind */
    assert_false(interpreter_find(&remote, &other, &process));
    assert_string_equal(process.build, " with musl");
    put(m, RUNTIME + 16, 1); /* without the global lock everything is elsewhere */
    assert_false(interpreter_find(&remote, &other, &process));
    assert_string_equal(process.build, " without the global lock");
    other = (struct interpreter_symbols){0};
    assert_false(interpreter_find(&remote, &other, &process));
    free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(packages),
        cmocka_unit_test(lines_of_nothing),
        cmocka_unit_test(frames_and_names),
        cmocka_unit_test(states),
        cmocka_unit_test(wide_strings),
        cmocka_unit_test(hostile_frames),
        cmocka_unit_test(frames_of_an_earlier_call),
        cmocka_unit_test(code_that_is_gone),
        cmocka_unit_test(hostile_code),
        cmocka_unit_test(versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
