/* Which interpreter a process has decides who reads it. */
#include "interpreter/interpreter.h"

#include "interpreter/python.h"

const char *interpreter_language(enum interpreter interpreter) {
    static const char *const names[] = {[INTERPRETER_NONE] = "",
                                        [INTERPRETER_PYTHON] = "python",
                                        [INTERPRETER_RUBY] = "ruby",
                                        [INTERPRETER_PHP] = "php"};
    return names[interpreter];
}

bool interpreter_find(const struct remote *remote, const struct interpreter_symbols *symbols,
                      struct interpreter_process *process) {
    *process = (struct interpreter_process){0};
    return symbols->python_runtime && python_find(remote, symbols, process);
}

void interpreter_walk(const struct remote *remote, const struct interpreter_process *process,
                      uint64_t thread_pointer, struct raw_stack *stack) {
    python_walk(remote, process, thread_pointer, stack);
}

bool interpreter_code_identify(const struct remote *remote,
                               const struct interpreter_process *process, uint64_t address,
                               uint64_t identity[4]) {
    return python_code_identify(remote, process, address, identity);
}

bool interpreter_code_read(const struct remote *remote, const struct interpreter_process *process,
                           uint64_t address, struct interpreter_code *code) {
    *code = (struct interpreter_code){0};
    return python_code_read(remote, process, address, code);
}

void interpreter_code_release(struct interpreter_code *code) {
    buffer_release(&code->name);
    buffer_release(&code->file);
    buffer_release(&code->lines);
}

uint32_t interpreter_code_line(const struct interpreter_process *process,
                               const struct interpreter_code *code, uint64_t instruction) {
    return python_code_line(process, code, instruction);
}
