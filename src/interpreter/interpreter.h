/*
 * interpreter: what an interpreter in another process runs, read from that process's memory.
 *
 * A process is looked at once: whether it has an interpreter, which version, and where that keeps its frames (interpreter_find). Stacks are
 * then taken either by a BPF program that is told so (record/interpreted.bpf.c) or, of a thread that is stopped, by interpreter_walk(). A stack is
 * addresses: of code objects, of instructions, and of the frames themselves, by which they are merged with the stack of C. What a
 * code object is called, and which line an instruction has, is read afterwards, once for each.
 *
 * The memory is another's: nothing in it is believed. Every length is bounded, every walk has a limit, and whatever can't be what it should
 * is an unnamed function or a stack that ends.
 */
#ifndef WICK_INTERPRETER_H
#define WICK_INTERPRETER_H

#include "base/base.h"
#include "interpreter/layout.h"

/* Memory of a process. */
struct remote {
    bool (*read)(void *context, uint64_t address, void *to, size_t size); /* all of it, or false */
    void *context;
};

/* What the files of a process say of an interpreter: addresses in the process, 0 where there is no such symbol. */
struct interpreter_symbols {
    uint64_t python_runtime;   /* _PyRuntime */
    uint64_t python_version;   /* Py_Version */
    uint64_t python_code_type; /* PyCode_Type */
    uint64_t php_globals;      /* executor_globals, of a PHP without threads */
    uint64_t php_modules;      /* module_registry */
    uint64_t ruby_version;     /* the text "3.1.2" */
    uint64_t ruby_module;      /* where the number of the module with ruby_current_ec stands */
    uint64_t ruby_context;     /* ruby_current_ec in that module's variables */
    bool is_musl;              /* the C library is musl, not glibc */
    unsigned named_version;    /* by the file's name: 3.8 is 0x308; 0: it does not tell */
};

/* An interpreter in a process. */
struct interpreter_process {
    struct frame_layout layout;
    unsigned version; /* 0x308 */
    const char
        *build; /* Python's: " with musl" and the like, why it is refused; "", NULL: the usual */
    uint64_t runtime, code_type;
    const struct python_layout *python;
};

/* False: there is none, or one of a version that is not known, which *version tells then (else it is 0). */
bool interpreter_find(const struct remote *remote, const struct interpreter_symbols *symbols,
                      struct interpreter_process *process);

/* The stack of a stopped thread into stack->frames, its count and end. `thread_pointer` is the thread's (fs on x86-64). */
void interpreter_walk(const struct remote *remote, const struct interpreter_process *process,
                      uint64_t thread_pointer, struct raw_stack *stack);

/* Append what the program calls a thread, by the outermost frame of its stack. False: it does not call it anything, or the kernel knows that already. */
bool interpreter_thread_name(const struct remote *remote, const struct interpreter_process *process,
                             uint64_t root, struct buffer *name);

/* A function as the interpreter knows it. */
struct interpreter_code {
    uint64_t identity[4]; /* pointers that differ if another has taken its place in memory */
    uint32_t first_line, last_line; /* the last only of PHP's */
    uint64_t start;                 /* of its instructions */
    struct buffer name, file;
    struct buffer lines; /* the table, as it is in memory */
};
/* False: there is no code object. *code is cleared first; release it. */
bool interpreter_code_read(const struct remote *remote, const struct interpreter_process *process,
                           uint64_t address, struct interpreter_code *code);
/* Only the identity: whether it is still the same costs one read. */
bool interpreter_code_identify(const struct remote *remote,
                               const struct interpreter_process *process, uint64_t address,
                               uint64_t identity[4]);
void interpreter_code_release(struct interpreter_code *code);
/* The line of an instruction, as a frame has it; 0: none. */
uint32_t interpreter_code_line(const struct remote *remote,
                               const struct interpreter_process *process,
                               const struct interpreter_code *code, uint64_t instruction);

/* The package that a file belongs to, by its path: "numpy" of …/site-packages/numpy/core/x.py, "app" of app.py, "zipimport" of <frozen
   zipimport>. */
struct text python_package(struct text file);

const char *interpreter_language(enum interpreter interpreter); /* "python", … */

/* Tables of lines, for their tests. `offset` is of the instruction, in bytes from the first. */
uint32_t python_line_3_8(struct text table, uint32_t first, uint64_t offset);
uint32_t python_line_3_10(struct text table, uint32_t first, uint64_t offset);
uint32_t python_line_3_11(struct text table, uint32_t first, uint64_t offset);

#endif
