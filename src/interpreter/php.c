/*
 * PHP 8.2 without threads: a global variable points to the chain of calls. A call of a PHP function has an instruction, which contains its line;
 * calls of extension functions are in the same chain. One call of the C function execute_ex() runs many PHP functions, up to the one that is
 * marked.
 */
#include "interpreter/php.h"

enum {
    API_8_2 = 20220829,
    BUCKETS = 16,  /* of a hash table */
    API = 4,       /* of a module */
    CURRENT = 488, /* in the globals */
    INSTRUCTION = 0,
    FUNCTION = 24,
    FLAGS = 40,
    PREVIOUS = 48,
    CALL = 56, /* of a call */
    TOP_BYTE = 2,
    TOP_BIT = 2, /* 1 << 17 of its flags */
    KIND = 0,
    NAME = 8,
    CLASS = 16,
    FILE_NAME = 152,
    FIRST_LINE = 160,
    LAST_LINE = 164, /* of a function */
    CLASS_NAME = 8,
    LENGTH = 16,
    TEXT_AT = 24, /* of a string */
    LINE = 24,    /* of an instruction */
    INTERNAL = 1,
    USER = 2, /* kinds */
    TEXT_MOST = 4096,
};

/* The first of the modules, in a hash table, tells which API it was made for; 0: there is none yet. */
static uint32_t api_of(const struct remote *remote, uint64_t modules) {
    uint64_t buckets, module;
    uint32_t api;
    return modules && remote_word(remote, modules + BUCKETS, &buckets) &&
                   remote_word(remote, buckets, &module) && module &&
                   remote->read(remote->context, module + API, &api, sizeof api)
               ? api
               : 0;
}

bool php_find(const struct remote *remote, const struct interpreter_symbols *symbols,
              struct interpreter_process *process) {
    uint32_t api = api_of(remote, symbols->php_modules);
    process->version = api;
    process->layout = (struct frame_layout){.interpreter = INTERPRETER_PHP,
                                            .key = symbols->php_globals + CURRENT,
                                            .read = CALL,
                                            .code = FUNCTION,
                                            .previous = PREVIOUS,
                                            .instruction = INSTRUCTION,
                                            .instruction_size = 8,
                                            .mark = FLAGS + TOP_BYTE,
                                            .mark_mask = TOP_BIT,
                                            .mark_value = TOP_BIT};
    return api == API_8_2;
}

void php_walk(const struct remote *remote, const struct interpreter_process *process,
              struct raw_stack *stack) {
    uint64_t frame = 0;
    remote_word(remote, process->layout.key, &frame);
    walk_frames(remote, &process->layout, frame, 0, stack);
}

/* ---- functions ---- */

static bool add_string(const struct remote *remote, uint64_t address, struct buffer *to) {
    uint64_t length;
    char bytes[TEXT_MOST];
    if (!address || !remote_word(remote, address + LENGTH, &length) || length > sizeof bytes ||
        !remote->read(remote->context, address + TEXT_AT, bytes, length))
        return false;
    for (size_t i = 0; i < length; i++)
        buffer_add_char(to, bytes[i] ? bytes[i] : '?');
    return true;
}

bool php_code_identify(const struct remote *remote, uint64_t address, uint64_t identity[4]) {
    uint8_t head[24];
    uint64_t file = 0;
    if (!address || !remote->read(remote->context, address, head, sizeof head) ||
        (head[KIND] != INTERNAL && head[KIND] != USER) ||
        (head[KIND] == USER && !remote_word(remote, address + FILE_NAME, &file)))
        return false;
    identity[0] = load_u64(head + NAME);
    identity[1] = load_u64(head + CLASS);
    identity[2] = file;
    identity[3] = head[KIND];
    return true;
}

/* A script's own code has no name. */
static bool add_name(const struct remote *remote, const uint64_t identity[4], struct buffer *name) {
    uint64_t class_name;
    if (identity[1] && remote_word(remote, identity[1] + CLASS_NAME, &class_name) &&
        add_string(remote, class_name, name))
        buffer_add(name, TEXT("::"));
    if (identity[0])
        return add_string(remote, identity[0], name);
    buffer_add(name, TEXT("<main>"));
    return true;
}

bool php_code_read(const struct remote *remote, uint64_t address, struct interpreter_code *code) {
    if (!php_code_identify(remote, address, code->identity) ||
        !add_name(remote, code->identity, &code->name) || !code->name.count)
        return false;
    if (code->identity[3] == INTERNAL)
        return true;
    return add_string(remote, code->identity[2], &code->file) &&
           remote->read(remote->context, address + FIRST_LINE, &code->first_line,
                        sizeof code->first_line) &&
           remote->read(remote->context, address + LAST_LINE, &code->last_line,
                        sizeof code->last_line) &&
           code->first_line < 1u << 28;
}

/* A call that has just begun has no instruction yet, or still has that of an earlier call in the same place. */
uint32_t php_code_line(const struct remote *remote, const struct interpreter_code *code,
                       uint64_t instruction) {
    uint32_t line = 0;
    if (code->identity[3] == INTERNAL)
        return 0;
    if (!instruction || !remote->read(remote->context, instruction + LINE, &line, sizeof line))
        return code->first_line;
    return line >= code->first_line && line <= code->last_line ? line : code->first_line;
}
