/* Private to the room: CPython. */
#ifndef WICK_INTERPRETER_PYTHON_H
#define WICK_INTERPRETER_PYTHON_H

#include "interpreter/interpreter.h"

/* The layout of a version: offsets in bytes. */
struct python_layout {
    unsigned version; /* 0x308 */
    unsigned key;     /* in the runtime: the pthread key of a thread's state */
    unsigned
        current; /* how far before it is the state that has the lock, if the key does not follow subinterpreters; 0: it does */
    struct frame_layout frames;
    /* of a code object */
    unsigned file, name, qualified, first_line, lines;
    unsigned bytecode;
    bool bytecode_is_object;
    unsigned locals; /* of a frame; 0: the kernel has the names of threads */
    /* in a class: the names of its instances' attributes; in an instance's values: the first value */
    unsigned attributes, values;
    /* in a string: its characters, if it is ASCII, or else */
    unsigned ascii, wide;
};

/* interpreter.c */
bool remote_word(const struct remote *remote, uint64_t address, uint64_t *word);
/* Walk from a frame to its outermost caller. Return false if the callers form a cycle, or if `wanted`, unless 0, is not among them. */
bool walk_frames(const struct remote *remote, const struct frame_layout *layout, uint64_t frame,
                 uint64_t wanted, struct raw_stack *stack);

bool python_find(const struct remote *remote, const struct interpreter_symbols *symbols,
                 struct interpreter_process *process);
void python_walk(const struct remote *remote, const struct interpreter_process *process,
                 uint64_t thread_pointer, struct raw_stack *stack);
bool python_code_identify(const struct remote *remote, const struct interpreter_process *process,
                          uint64_t address, uint64_t identity[4]);
bool python_code_read(const struct remote *remote, const struct interpreter_process *process,
                      uint64_t address, struct interpreter_code *code);
/* Append the characters of a string object. */
bool python_string(const struct remote *remote, const struct python_layout *layout,
                   uint64_t address, struct buffer *to);
bool python_thread_name(const struct remote *remote, const struct interpreter_process *process,
                        uint64_t root, struct buffer *name);
uint32_t python_code_line(const struct interpreter_process *process,
                          const struct interpreter_code *code, uint64_t instruction);

#endif
