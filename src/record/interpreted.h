/*
 * Private to the room: stacks of interpreters. interpreted_bpf.c takes a stack with every sample, interpreted_find.c finds interpreters in
 * processes, interpreted.c names the frames, and interpreted_write.c writes them.
 */
#ifndef WICK_RECORD_INTERPRETED_H
#define WICK_RECORD_INTERPRETED_H

#include "interpreter/interpreter.h"
#include "record/internal.h"

/* interpreted_find.c: what is known about files, which most processes share. */
struct known_file {
    uint64_t device, inode, offset;
    bool is_interpreter;
    uint64_t symbols[7]; /* in the order of interpreted_find.c, as addresses of the file */
    uint64_t tls_slot;   /* of Ruby's thread-local variable */
    uint64_t at_offset;  /* the file's address of the byte at `offset` */
};
struct known_files {
    VECTOR(struct known_file) list;
    struct index by_place; /* numbers are places + 1 */
};
/* Return whether the process has an interpreter, and where (*symbols). */
bool interpreter_look_for(struct known_files *known, pid_t pid,
                          struct interpreter_symbols *symbols);
/* Whether a path has the name of an interpreter. */
bool interpreter_is_file(struct text path);
void known_files_release(struct known_files *known);
/* Access the memory of a process; `pid` must outlive the result. */
struct remote remote_process(const pid_t *pid);

/* interpreted_threads.c: names that programs give their threads and that the kernel may not know. */
struct named_thread {
    uint32_t process; /* by interpreted.c's numbers */
    uint32_t pid, tid;
    uint64_t since;
    char name[16]; /* as long as the kernel's; empty: none */
};
struct named_threads {
    VECTOR(struct named_thread) list;
    struct index by_id; /* numbers are places + 1 */
    size_t written;     /* how many of them are */
};
/* A stack of a thread was taken. Read the thread's name the first time. */
void named_threads_saw(struct named_threads *threads, uint32_t process_number,
                       const struct interpreter_process *process, const struct raw_stack *stack);
bool named_threads_write(struct named_threads *threads, struct sink *sink, struct error *error);
void named_threads_release(struct named_threads *threads);

/* interpreted_write.c: write named stacks to the recording. */
struct written_frame {
    uint32_t function, line; /* a number; the line << 4 | FRAME_… */
    uint64_t address;
};
struct stack_writer *stack_writer_new(struct sink *sink);
void stack_writer_free(struct stack_writer *writer);
/* Return the number of a function, or 0 if there are too many. */
uint32_t stack_writer_function(struct stack_writer *writer, enum interpreter interpreter,
                               struct text name, struct text file, uint32_t line);
/* Add a stack of raw->count frames, outermost first. */
void stack_writer_add(struct stack_writer *writer, const struct raw_stack *raw,
                      const struct written_frame *frames);
bool stack_writer_turn(struct stack_writer *writer, struct error *error); /* if there is much */
bool stack_writer_finish_window(struct stack_writer *writer, struct error *error);
bool stack_writer_finish(struct stack_writer *writer, struct error *error);

/* stack_memory.c: write parts of stacks that the samples' copies lack to the recording. Parts of one stack are added one after the other. */
struct memory_writer *memory_writer_new(struct sink *sink);
void memory_writer_free(struct memory_writer *writer);
void memory_writer_add(struct memory_writer *writer, const struct raw_memory *part);
/* Write what was added if there is enough of it, or if `all`. */
bool memory_writer_write(struct memory_writer *writer, bool all, struct error *error);

/* interpreted_bpf.c: load a program that takes the stacks, to be attached to sampling events. `sums_waits`: also where threads wait, for
   bpf.c, whose program must be attached after it. Return NULL and set *error on failure. */
struct walker *walker_open(bool sums_waits, struct error *error);
int walker_map(const struct walker *walker, const char *name); /* a descriptor */
void walker_close(struct walker *walker);
/* Samples copy this many bytes of a stack: also take the parts that they lack. 0, the default: take none. */
void walker_set_copied(struct walker *walker, uint64_t size);
int walker_program(const struct walker *walker);        /* a descriptor */
int walker_switch_program(const struct walker *walker); /* for switches; makes no samples */
int walker_descriptor(const struct walker *walker);     /* readable when a process needs a look */
void walker_set(struct walker *walker, pid_t pid, const struct frame_layout *layout);
void walker_forget(struct walker *walker, pid_t pid);
/* Pass on everything taken since the last call: a code object comes before the first stack with it. */
typedef void walker_visit(void *context, const struct raw_stack *stack);
typedef void walker_visit_code(void *context, const struct raw_code *code);
typedef void walker_visit_memory(void *context, const struct raw_memory *part);
void walker_drain(struct walker *walker, walker_visit *visit, walker_visit_code *visit_code,
                  walker_visit_memory *visit_memory, void *context);

#endif
