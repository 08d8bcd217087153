/* Private to the room: PHP. */
#ifndef WICK_INTERPRETER_PHP_H
#define WICK_INTERPRETER_PHP_H

#include "interpreter/python.h"

bool php_find(const struct remote *remote, const struct interpreter_symbols *symbols,
              struct interpreter_process *process);
void php_walk(const struct remote *remote, const struct interpreter_process *process,
              struct raw_stack *stack);
bool php_code_identify(const struct remote *remote, uint64_t address, uint64_t identity[4]);
bool php_code_read(const struct remote *remote, uint64_t address, struct interpreter_code *code);
uint32_t php_code_line(const struct remote *remote, const struct interpreter_code *code,
                       uint64_t instruction);

#endif
