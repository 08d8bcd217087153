/* Private to the room: Ruby. */
#ifndef WICK_INTERPRETER_RUBY_H
#define WICK_INTERPRETER_RUBY_H

#include "interpreter/python.h"

bool ruby_find(const struct remote *remote, const struct interpreter_symbols *symbols,
               struct interpreter_process *process);
void ruby_walk(const struct remote *remote, const struct interpreter_process *process,
               uint64_t thread_pointer, struct raw_stack *stack);
bool ruby_code_identify(const struct remote *remote, uint64_t address, uint64_t identity[4]);
bool ruby_code_read(const struct remote *remote, uint64_t address, struct interpreter_code *code);
uint32_t ruby_code_line(const struct remote *remote, const struct interpreter_code *code,
                        uint64_t instruction);

#endif
