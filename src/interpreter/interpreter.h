/*
 * interpreter: read from another process's memory which functions its interpreter is running.
 *
 * interpreter_find() examines a process once: does it have an interpreter, which version, and where does that keep its frames? Then either a
 * BPF program (record/interpreted.bpf.c) takes stacks by this layout, or interpreter_walk() does, from a stopped thread. A stack consists of
 * addresses: of code objects, of instructions, and of the frames themselves, by which it is merged with the native stack. The name of a code
 * object and the lines of its instructions are read afterwards, once each.
 *
 * Nothing in the other process's memory is trusted. Every length is bounded and every walk has a limit. Data that makes no sense becomes an
 * unnamed function, or ends the stack.
 */
#ifndef WICK_INTERPRETER_H
#define WICK_INTERPRETER_H

#include "base/base.h"
#include "interpreter/layout.h"

/* The memory of another process. */
struct remote {
    bool (*read)(void *context, uint64_t address, void *to,
                 size_t size); /* false: not all is readable */
    void *context;
};

/* Symbols of an interpreter, from the files of a process: addresses in the process, 0 for missing symbols. */
struct interpreter_symbols {
    uint64_t python_runtime;   /* _PyRuntime */
    uint64_t python_version;   /* Py_Version */
    uint64_t python_code_type; /* PyCode_Type */
    uint64_t php_globals;      /* executor_globals, of a PHP without threads */
    uint64_t php_modules;      /* module_registry */
    uint64_t ruby_version;     /* the text "3.1.2" */
    uint64_t ruby_module;      /* address of the TLS module number of ruby_current_ec */
    uint64_t ruby_context;     /* offset of ruby_current_ec in that module's variables */
    bool is_musl;              /* the C library is musl, not glibc */
    unsigned named_version;    /* from the file's name: 0x308 for 3.8; 0: unknown */
};

/* An interpreter in a process. */
struct interpreter_process {
    struct frame_layout layout;
    unsigned version; /* 0x308 */
    const char *
        build; /* Python: the kind of build, if it is why it is refused: " with musl"; else "" or NULL */
    uint64_t runtime, code_type;
    const struct python_layout *python;
};

/* Find the interpreter of a process. Return false if there is none, with process->version 0, or if its version is not supported. */
bool interpreter_find(const struct remote *remote, const struct interpreter_symbols *symbols,
                      struct interpreter_process *process);

/* Read the stack of a stopped thread. `thread_pointer` is the thread's (fs on x86-64). */
void interpreter_walk(const struct remote *remote, const struct interpreter_process *process,
                      uint64_t thread_pointer, struct raw_stack *stack);

/* Append the program's name for a thread, found by the outermost frame of its stack. Return false if it has none, or if the kernel has the
   same name. */
bool interpreter_thread_name(const struct remote *remote, const struct interpreter_process *process,
                             uint64_t root, struct buffer *name);

/* A function of the interpreter. */
struct interpreter_code {
    uint64_t identity[4]; /* pointers that differ once another function is in the same memory */
    uint32_t first_line, last_line; /* last_line for PHP only */
    uint64_t start;                 /* address of its instructions */
    struct buffer name, file;
    struct buffer lines; /* the line table as it is in memory */
};
/* Read a code object; return false if there is none. *code is cleared first; release it. */
bool interpreter_code_read(const struct remote *remote, const struct interpreter_process *process,
                           uint64_t address, struct interpreter_code *code);
/* The same for a Python code object as it was when a stack was taken. What is not in `raw` is read from the process. */
bool interpreter_code_read_taken(const struct remote *remote,
                                 const struct interpreter_process *process,
                                 const struct raw_code *raw, struct interpreter_code *code);
/* Return what layout_check() gave for it when a stack was taken. */
uint64_t interpreter_code_check(const struct interpreter_code *code);
/* Read only the identity, to check that it is still the same function. Costs one read. */
bool interpreter_code_identify(const struct remote *remote,
                               const struct interpreter_process *process, uint64_t address,
                               uint64_t identity[4]);
void interpreter_code_release(struct interpreter_code *code);
/* Return the line of a frame's instruction; 0: none. */
uint32_t interpreter_code_line(const struct remote *remote,
                               const struct interpreter_process *process,
                               const struct interpreter_code *code, uint64_t instruction);

/* Return the package of a file by its path: "numpy" for …/site-packages/numpy/core/x.py, "app" for app.py, "zipimport" for <frozen
   zipimport>. */
struct text python_package(struct text file);

const char *interpreter_language(enum interpreter interpreter); /* "python", … */

/* Look up a line table, for unit tests. `offset` is that of the instruction in bytes. */
uint32_t python_line_3_8(struct text table, uint32_t first, uint64_t offset);
uint32_t python_line_3_10(struct text table, uint32_t first, uint64_t offset);
uint32_t python_line_3_11(struct text table, uint32_t first, uint64_t offset);

#endif
