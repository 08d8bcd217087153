/*
 * Private to the room: stacks of interpreters. interpreted.c names what was taken, interpreted_write.c writes it; interpreted_find.c finds interpreters in
 * processes; interpreted_bpf.c has stacks taken with every sample.
 */
#ifndef WICK_RECORD_INTERPRETED_H
#define WICK_RECORD_INTERPRETED_H

#include "interpreter/interpreter.h"
#include "record/internal.h"

/* interpreted_find.c: what is known of files, which most processes share. */
struct known_file {
    uint64_t device, inode, offset;
    bool is_interpreter;
    uint64_t symbols[7]; /* as interpreted_find.c names them, in the file's own terms */
    uint64_t tls_slot;   /* of Ruby's thread-local variable */
    uint64_t at_offset;  /* the address, in the same terms, of what is at `offset` */
};
struct known_files { /* a VECTOR */
    struct known_file *items;
    size_t count, capacity;
};
/* Whether the process has an interpreter; *symbols says where. */
bool interpreter_look_for(struct known_files *known, pid_t pid,
                          struct interpreter_symbols *symbols);
/* Whether a path is called like an interpreter's. */
bool interpreter_is_file(struct text path);
void known_files_release(struct known_files *known);
/* Memory of a process; `remote` lasts as long as `pid`. */
struct remote remote_process(const pid_t *pid);

/* interpreted_threads.c: what programs call their threads, which the kernel need not know. */
struct named_thread {
    uint32_t process; /* as interpreted.c numbers them */
    uint32_t pid, tid;
    uint64_t since;
    char name[16]; /* as long as the kernel's; empty: it has none */
};
struct named_threads {
    VECTOR(struct named_thread) list;
    struct index by_id; /* numbers are places + 1 */
    size_t written;     /* as many of them are */
};
/* A thread's stack was taken. Reads its name when that is the first of it. */
void named_threads_saw(struct named_threads *threads, uint32_t process_number,
                       const struct interpreter_process *process, const struct raw_stack *stack);
bool named_threads_write(struct named_threads *threads, struct sink *sink, struct error *error);
void named_threads_release(struct named_threads *threads);

/* interpreted_write.c: what was named, into the recording. */
struct written_frame {
    uint32_t function, line; /* a number; the line << 4 | FRAME_… */
    uint64_t address;
};
struct stack_writer *stack_writer_new(struct sink *sink);
void stack_writer_free(struct stack_writer *writer);
/* The number of a function; 0: there are too many. */
uint32_t stack_writer_function(struct stack_writer *writer, enum interpreter interpreter,
                               struct text name, struct text file, uint32_t line);
/* A stack of raw->count frames, outermost first. */
void stack_writer_add(struct stack_writer *writer, const struct raw_stack *raw,
                      const struct written_frame *frames);
bool stack_writer_turn(struct stack_writer *writer, struct error *error); /* if there is much */
bool stack_writer_finish_window(struct stack_writer *writer, struct error *error);
bool stack_writer_finish(struct stack_writer *writer, struct error *error);

/* interpreted_bpf.c: a program that takes the stacks, to be put on sampling events. `sums_waits`: and where threads wait, for bpf.c, whose
   program is to be attached after it. NULL: *error says why not. */
struct walker *walker_open(bool sums_waits, struct error *error);
int walker_map(const struct walker *walker, const char *name); /* a descriptor */
void walker_close(struct walker *walker);
int walker_program(const struct walker *walker);        /* a descriptor */
int walker_switch_program(const struct walker *walker); /* for switches; nothing is sampled */
int walker_descriptor(const struct walker *walker); /* readable when a process is to be looked at */
void walker_set(struct walker *walker, pid_t pid, const struct frame_layout *layout);
void walker_forget(struct walker *walker, pid_t pid);
/* Hands over all that was taken since. */
typedef void walker_visit(void *context, const struct raw_stack *stack);
void walker_drain(struct walker *walker, walker_visit *visit, void *context);

#endif
