/*
 * Take the bytes for the memory of a process that claims to be an interpreter. Every address maps to some of them, so
 * that every pointer leads on; except for addresses with their highest bit set, which can't be read.
 */
#include "interpreter/interpreter.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * How many reads each step may take, counted in the readers: to find the interpreter (a runtime's head or a version, the three of PHP, the two of Ruby), to find
 * the innermost frame (five at most: the state that has the lock and its thread, the key, its block and the value there, or Ruby's three; then the frame, by a
 * holder), and for a frame (itself, and two words that tell whether its code is the same, or Ruby's flags). Frames that are each other's callers are left
 * for those of the holder before. A function: what identifies it, and the length and the
 * bytes of each of its texts.
 */
enum {
    FIND_READS = 7,
    STATE_READS = 7,
    FRAME_READS = 3,
    CODE_READS = 12,
    LINE_READS = 8,
    NAME_READS = 1040
};

struct memory {
    const uint8_t *data;
    size_t size;
    size_t reads;
};

static bool read_memory(void *context, uint64_t address, void *to, size_t size) {
    struct memory *m = context;
    uint8_t *bytes = to;
    m->reads++;
    if (address >> 63)
        return false;
    for (size_t i = 0; i < size; i++)
        bytes[i] = m->data[(address % m->size + i) % m->size];
    return true;
}

static void check_code(const struct remote *remote, const struct interpreter_process *process,
                       const struct raw_frame *frame) {
    struct interpreter_code code;
    uint64_t identity[4];
    uint64_t address = frame->code & ~(uint64_t)FRAME_BITS;
    struct memory *memory = remote->context;
    memory->reads = 0;
    if (interpreter_code_read(remote, process, address, &code)) {
        uint32_t line = interpreter_code_line(remote, process, &code, frame->instruction);
        assert(line < 1u << 28 && memory->reads <= CODE_READS + LINE_READS);
        assert(memchr(code.name.items ? code.name.items : "", 0, code.name.count) == NULL);
        assert(interpreter_code_identify(remote, process, address, identity));
        assert(memcmp(identity, code.identity, sizeof identity) == 0);
        interpreter_code_check(&code);
        assert(python_package(buffer_text(&code.file)).length <= code.file.count);
    }
    interpreter_code_release(&code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct raw_stack stack;
    if (size < 16)
        return 0;
    struct memory memory = {data + 2, size - 2, 0};
    struct remote remote = {read_memory, &memory};
    struct interpreter_symbols symbols = {.python_runtime = data[1] & 6 ? 0 : 8,
                                          .python_version = data[1] & 1 ? 16 : 0,
                                          .php_globals = data[1] & 2 ? 32 : 0,
                                          .ruby_version = data[1] & 4 ? 48 : 0,
                                          .ruby_module = 56,
                                          .ruby_context = 8,
                                          .php_modules = 40,
                                          .named_version = 0x300u | data[0]};
    struct interpreter_process process;
    bool found = interpreter_find(&remote, &symbols, &process);
    assert(memory.reads <= FIND_READS);
    if (!found)
        return 0;
    memory.reads = 0;
    interpreter_walk(&remote, &process, 24, &stack);
    assert(stack.count <= STACK_FRAMES &&
           memory.reads <= STATE_READS + 2 * FRAME_READS * STACK_FRAMES);
    for (unsigned i = 0; i < stack.count && i < 16; i++)
        check_code(&remote, &process, &stack.frames[i]);
    struct buffer name = {0};
    memory.reads = 0;
    interpreter_thread_name(&remote, &process, stack.root, &name);
    assert(memory.reads <= NAME_READS);
    buffer_release(&name);
    return 0;
}
