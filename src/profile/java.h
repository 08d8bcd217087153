/*
 * Private to this room: the Java code described in a recording (docs/carrier.md, kinds 7 and 8), as made code.
 *
 * Compiled methods and stubs become pieces with unwinding rules for HotSpot's frames. An interpreted method becomes a piece, too, whose addresses
 * are bytecodes: the interpreter runs all methods with the same machine code, and only the stack says which one a frame runs. Such pieces are mapped
 * where no process has memory; java_interpreted() tells the unwinder where.
 */
#ifndef WICK_PROFILE_JAVA_H
#define WICK_PROFILE_JAVA_H

#include "object/made.h"
#include "unwind/unwind.h"

/* The Java virtual machines of a recording; NULL: none. */
struct java;
struct reading;

struct java *java_new(const struct budget_limits *limits);
void java_free(struct java *java);
/* Add one entry of the carrier, in the order of the recording. Return false if it is damaged; the part before the damage is used. */
bool java_add_methods(struct java *java, struct text key, struct text bytes);
bool java_add_code(struct java *java, struct text key, struct text bytes);
/* After the last entry: make objects of all code, and report with made_happens() when it existed. */
void java_finish(struct java *java, struct reading *reading);

/* For struct unwind_sample: return the methods of a process; NULL if it has none. */
const struct java_process *java_process(const struct java *java, int32_t pid);
/* Return the address at which a bytecode of an interpreted method is mapped; 0 if the method is unknown. `bytecode` and `other` are addresses
   that may point to the bytecode. */
uint64_t java_interpreted(const struct java_process *process, uint64_t time, uint64_t method,
                          uint64_t bytecode, uint64_t other);

/* ---- java_rules.c: unwinding rules ---- */

/* The code around a sampled address. */
enum { JAVA_BEFORE = 32, JAVA_AFTER = 16 };
struct java_place {
    uint64_t address;
    uint64_t time;
    const uint8_t *bytes; /* JAVA_BEFORE before the address, then JAVA_AFTER */
    /* For code without a frame: twice the number, from 1, of the stack word with the return address, + 1 if the saved rbp is below it; 0: unknown. */
    uint32_t depth;
};
enum java_kind {
    JAVA_COMPILED = 1,
    JAVA_INTERPRETER = 2,
    JAVA_STUB = 3,
    JAVA_SIZED = 4,
    JAVA_FRAMELESS = 5
};
struct java_frame {
    enum java_kind kind;
    uint64_t start, size;
    uint32_t words;   /* of the frame */
    int64_t complete; /* the frame is complete after this many bytes of code; -1: never */
    uint32_t
        pushed; /* number of words that the caller pushes for the call, above the return address */
};

/*
 * What depends on the machine. Complete frames are the same on all: the return address is the word below the caller's stack, the caller's frame
 * pointer is the word below that, and in an interpreter's frame the end of the caller's stack follows.
 */
struct java_machine {
    uint16_t elf;                                         /* EM_… */
    uint8_t frame_pointer, stack_pointer, return_address; /* DWARF numbers */
    bool has_link;     /* a call leaves the return address in its register, not on the stack */
    bool has_crumbs;   /* compiled code may call with two more words on the stack */
    bool stubs_follow; /* unknown whether a stub has made its frame: the unwinder checks */
    /* Find the rule for a sampled address `into` bytes into the frame's code. Return false if there is none; then the unwinder checks. */
    bool (*row_at)(const struct java_frame *frame, uint64_t into, const struct java_place *place,
                   struct made_row *row);
};
extern const struct java_machine java_x86_64, java_aarch64;
/* Return the number of words pushed for a call of the stub of this name; 0 for stubs that take arguments in registers or the caller's frame. */
uint32_t java_words_pushed(struct text name);
/* Return NULL if its frames are unknown. */
const struct java_machine *java_machine_of(enum unwind_arch arch);

/* The caller's stack begins `size` bytes above the stack pointer. */
struct made_row java_row_saved(const struct java_machine *machine, int32_t size);
/* The same, with the caller's frame pointer still in its register. */
struct made_row java_row_unsaved(const struct java_machine *machine, int32_t size);
/* The code has just been called, or is about to return. */
struct made_row java_row_called(const struct java_machine *machine);
/* False: as of row_at(). */
bool java_row_whole(const struct java_machine *machine, const struct java_frame *frame,
                    struct made_row *row);

/* Adds the rules of the last piece of `made`; places are in order of their addresses. */
void java_add_rules(struct made *made, const struct java_machine *machine,
                    const struct java_frame *frame, const struct java_place *places, size_t count);

#endif
