/*
 * Ruby 3.1: a thread's execution context is a thread-local variable. It has the stack of the virtual machine, an array of frames, innermost
 * first. A frame has an instruction sequence, or belongs to a C function, which the native stack shows. The frame with which rb_vm_exec() was
 * entered has a flag.
 *
 * Lines are stored for ranges of instructions. An instruction's range is found by counting bits (a succinct table): for the first 54 instructions
 * the counts are seven-bit numbers, nine in a word; after them come blocks of 512 bits, each with the count of bits before it.
 */
#include "interpreter/ruby.h"

enum {
    BODY = 16, /* of an instruction sequence */
    /* of its body */
    ENCODED = 8,
    PATH = 64,
    LABEL = 80,
    FIRST_LINE = 88,
    LINES = 120,
    LINES_COUNT = 136,
    TABLE = 144,
    LINE_SIZE = 12,
    /* of the table */
    AT_ONCE = 54,
    IN_WORD = 9,
    BLOCKS = 48,
    BLOCK = 80,
    BLOCK_BITS = 512,
    RANKS = 8,
    BITS = 16,
    /* of a value */
    TYPE = 0x1f,
    STRING = 5,
    ARRAY = 7,
    FLAG = 1 << 13,
    LENGTH_SHIFT = 14,
    TEXT_MOST = 4096,
};

bool ruby_find(const struct remote *remote, const struct interpreter_symbols *symbols,
               struct interpreter_process *process) {
    char version[4] = {0};
    uint64_t module;
    if (!symbols->ruby_module || !remote_word(remote, symbols->ruby_module, &module) || !module ||
        !remote->read(remote->context, symbols->ruby_version, version, 3))
        return false;
    process->version = (unsigned)(version[0] - '0') << 8 | (unsigned)(version[2] - '0');
    process->layout = (struct frame_layout){.interpreter = INTERPRETER_RUBY,
                                            .key = module,
                                            .state_frame = (unsigned)symbols->ruby_context,
                                            .mark_value = 1};
    return strcmp(version, "3.1") == 0;
}

/* ---- frames ---- */

static bool add_frame(const struct remote *remote, uint64_t address, struct raw_stack *stack) {
    uint64_t words[5], flags;
    if (!remote->read(remote->context, address, words, sizeof words))
        return false;
    uint64_t code = words[RUBY_CODE / 8], environment = words[RUBY_ENVIRONMENT / 8];
    if (!code || !remote_word(remote, environment, &flags) || ruby_is_built_in(flags))
        return true;
    struct raw_frame *frame = &stack->frames[stack->count++];
    *frame = (struct raw_frame){code & ~(uint64_t)FRAME_BITS, words[0], address};
    frame->code |= flags & RUBY_FINISH ? FRAME_ENTRY : 0;
    return true;
}

void ruby_walk(const struct remote *remote, const struct interpreter_process *process,
               uint64_t thread_pointer, struct raw_stack *stack) {
    uint64_t table, block, context,
        vm[3]; /* where the stack is, how many words, the innermost frame */
    stack->count = 0;
    stack->end = STACK_WHOLE;
    if (!remote_word(remote, thread_pointer + 8, &table) ||
        !remote_word(remote, table + 16 * process->layout.key, &block) ||
        !remote_word(remote, block + process->layout.state_frame, &context) || !context ||
        !remote->read(remote->context, context, vm, sizeof vm))
        return;
    uint64_t end = vm[0] + 8 * vm[1], frame = vm[2];
    for (unsigned i = 0; frame >= vm[0] && frame < end; i++, frame += RUBY_FRAME) {
        stack->end = STACK_DEEP;
        if (i == STACK_FRAMES)
            return;
        stack->end = STACK_UNREADABLE;
        if (!add_frame(remote, frame, stack))
            return;
        stack->end = STACK_WHOLE;
    }
}

/* ---- functions ---- */

/* A string: in place, or elsewhere. */
static bool add_string(const struct remote *remote, uint64_t address, struct buffer *to) {
    uint64_t words[4];
    char bytes[TEXT_MOST];
    if (!address || address & 7 || !remote->read(remote->context, address, words, sizeof words) ||
        (words[0] & TYPE) != STRING)
        return false;
    bool is_elsewhere = words[0] & FLAG;
    uint64_t length = is_elsewhere ? words[2] : words[0] >> LENGTH_SHIFT & 0x1f;
    uint64_t at = is_elsewhere ? words[3] : address + 16;
    if (length > sizeof bytes || !remote->read(remote->context, at, bytes, length))
        return false;
    for (size_t i = 0; i < length; i++)
        buffer_add_char(to, bytes[i] ? bytes[i] : '?');
    return true;
}

/* A string, or an array of the path as given and the real one. */
static bool add_path(const struct remote *remote, uint64_t address, struct buffer *to) {
    uint64_t words[5], paths[2];
    if (!address || address & 7 || !remote->read(remote->context, address, words, sizeof words))
        return false;
    if ((words[0] & TYPE) != ARRAY)
        return add_string(remote, address, to);
    uint64_t at = words[0] & FLAG ? address + 16 : words[4];
    return remote->read(remote->context, at, paths, sizeof paths) &&
           (add_string(remote, paths[1], to) || add_string(remote, paths[0], to));
}

bool ruby_code_identify(const struct remote *remote, uint64_t address, uint64_t identity[4]) {
    uint64_t body;
    if (!address || !remote_word(remote, address + BODY, &body) || !body)
        return false;
    identity[3] = body;
    return remote_word(remote, body + LABEL, &identity[0]) &&
           remote_word(remote, body + PATH, &identity[1]) &&
           remote_word(remote, body + ENCODED, &identity[2]);
}

bool ruby_code_read(const struct remote *remote, uint64_t address, struct interpreter_code *code) {
    uint64_t line;
    if (!ruby_code_identify(remote, address, code->identity) ||
        !add_string(remote, code->identity[0], &code->name) || !code->name.count ||
        !add_path(remote, code->identity[1], &code->file) ||
        !remote_word(remote, code->identity[3] + FIRST_LINE, &line) || line >> 29)
        return false;
    code->first_line = (uint32_t)(line >> 1); /* a small number is itself twice, plus one */
    code->start = code->identity[2];
    return true;
}

/* How many ranges begin up to this instruction. */
static bool count_ranges(const struct remote *remote, uint64_t table, uint64_t place,
                         uint64_t *count) {
    uint64_t word, ranks;
    uint32_t before;
    if (place < AT_ONCE) {
        if (!remote_word(remote, table + 8 * (place / IN_WORD), &word))
            return false;
        *count = word >> 7 * (place % IN_WORD) & 0x7f;
        return true;
    }
    place -= AT_ONCE;
    uint64_t block = table + BLOCKS + BLOCK * (place / BLOCK_BITS);
    unsigned bit = place % BLOCK_BITS, part = bit / 64;
    if (!remote->read(remote->context, block, &before, sizeof before) ||
        !remote_word(remote, block + RANKS, &ranks) ||
        !remote_word(remote, block + BITS + 8 * part, &word))
        return false;
    *count = before + (part ? ranks >> 9 * (part - 1) & 511 : 0) +
             (uint64_t)__builtin_popcountll(word << (63 - bit % 64));
    return true;
}

/* The instruction pointer is one past the running instruction. */
uint32_t ruby_code_line(const struct remote *remote, const struct interpreter_code *code,
                        uint64_t instruction) {
    uint64_t body = code->identity[3], lines, table, count = 0;
    uint64_t place = instruction > code->start ? (instruction - code->start) / 8 : 0;
    uint32_t line, most;
    place -= place > 0;
    if (place >= 1 << 24 || !remote_word(remote, body + LINES, &lines) ||
        !remote_word(remote, body + TABLE, &table) ||
        !remote->read(remote->context, body + LINES_COUNT, &most, sizeof most))
        return code->first_line;
    bool counted = most == 1 ? (count = 1) : count_ranges(remote, table, place, &count);
    if (!counted || !count || count > most ||
        !remote->read(remote->context, lines + LINE_SIZE * (count - 1), &line, sizeof line))
        return code->first_line;
    return line < 1u << 28 ? line : 0;
}
