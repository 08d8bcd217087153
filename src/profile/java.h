/*
 * Private to the room: what a recording keeps of Java virtual machines (docs/carrier.md, kinds 7 and 8), as made code.
 *
 * Compiled methods and stubs become pieces with the rules of HotSpot's frames. An interpreted method becomes a piece, too, whose addresses
 * are bytecodes: the interpreter runs all methods by the same machine code, and which one a frame runs is only on the stack. Such pieces are mapped where
 * no process has memory, and the unwinder is told where by java_interpreted().
 */
#ifndef WICK_PROFILE_JAVA_H
#define WICK_PROFILE_JAVA_H

#include "object/made.h"
#include "unwind/unwind.h"

/* Everything that the recording has of them. NULL has nothing. */
struct java;
struct reading;

struct java *java_new(const struct budget_limits *limits);
void java_free(struct java *java);
/* Takes one entry of the carrier over, in the order of the recording. False: it is damaged, and what was before the damage is used. */
bool java_add_methods(struct java *java, struct text key, struct text bytes);
bool java_add_code(struct java *java, struct text key, struct text bytes);
/* After the last entry: makes objects of all, and tells of their moments. */
void java_finish(struct java *java, struct reading *reading);

/* For struct unwind_sample: the methods of a process; NULL: it has none. */
const struct java_process *java_process(const struct java *java, int32_t pid);
/* Where the piece of an interpreted method is mapped, at a bytecode; 0: nothing is known of the method. `bytecode` and `other` are
   addresses that may point to the bytecode. */
uint64_t java_interpreted(const struct java_process *process, uint64_t time, uint64_t method,
                          uint64_t bytecode, uint64_t other);

/* ---- java_rules.c: how the callers of such code are found ---- */

/* Code around an address that was sampled. */
enum { JAVA_BEFORE = 32, JAVA_AFTER = 16 };
struct java_place {
    uint64_t address;
    uint64_t time;
    const uint8_t *bytes; /* JAVA_BEFORE before the address, then JAVA_AFTER */
    /* Twice the number of the word, from 1, that is the return address, + 1 if the saved rbp is below it; 0: not known. Of code without a frame. */
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
    int64_t complete; /* so many bytes of code make the frame; -1: never */
};

/*
 * What a machine has to say. Frames that are whole are alike on all: the return address is the word below the caller's stack, the caller's frame
 * pointer the word below that, and the interpreter's frames have the end of the caller's stack next.
 */
struct java_machine {
    uint16_t elf;                                         /* EM_… */
    uint8_t frame_pointer, stack_pointer, return_address; /* DWARF numbers */
    bool has_link;     /* a call leaves the return address in its register, not on the stack */
    bool has_crumbs;   /* compiled code may call with two words more on the stack */
    bool stubs_follow; /* nothing tells whether a stub has made a frame: the unwinder looks */
    /* Of an address that was sampled, `into` bytes into the frame's code. False: there is no rule, and the unwinder looks. */
    bool (*row_at)(const struct java_frame *frame, uint64_t into, const struct java_place *place,
                   struct made_row *row);
};
extern const struct java_machine java_x86_64, java_aarch64;
/* NULL: nothing is known of its frames. */
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
