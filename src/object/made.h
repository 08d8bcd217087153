/*
 * made: code that a process generated at run time, as its runtime describes it: a jitdump, a snapshot of a JVM's code cache.
 *
 * A `struct made` is a list of *pieces*: functions, stubs, trampolines, each compiled once. A piece has a name, a language, lines (with
 * inlined functions), and unwinding rules. It has a *place*, the range [place, place + size) in the list's own address space, which no other
 * piece shares: code generated later in the same memory has another place. An OBJECT_MADE object is such a list, and its addresses are
 * places; a mapping (space.h) says which memory held a place, and from when on.
 *
 * One thread fills a list and hands it to an object with objects_set_made(). From then on the list never changes, and any thread may call
 * objects_symbol(), objects_inlines(), objects_cfi() and objects_code().
 *
 *     struct made *made = made_new(EM_X86_64);
 *     uint64_t place = made_add(made, &(struct made_piece){.name = TEXT("fib"), .language = TEXT("javascript"), .size = 96});
 *     made_add_line(made, 0, &(struct made_frame){.file = TEXT("fib.js"), .line = 3}, 1);
 *     made_add_row(made, 0, &row);
 *     objects_set_made(objects, id, made);
 */
#ifndef WICK_OBJECT_MADE_H
#define WICK_OBJECT_MADE_H

#include "object/object.h"

struct made;

/* `machine`: EM_…, or 0 if it is unknown; then unwinding rules are useless. */
struct made *made_new(uint16_t machine);
struct made *made_share(struct made *made); /* takes a reference */
void made_free(struct made *made);          /* gives one back; NULL is fine */

struct made_piece {
    struct text name;
    struct text language; /* "javascript", "java", … or empty */
    struct text file;     /* where it is defined, or empty */
    uint32_t line;        /* 0: unknown */
    uint64_t size;        /* 1 to UINT32_MAX */
    struct text code; /* its bytes, `size` of them, or empty: not copied, see made_keep_bytes() */
    /* .eh_frame, laid out for `size`, rounded up to 8, bytes after the start of the code; or empty. Not copied, and not used if larger than
       64 KB. */
    struct text eh_frame;
};

/* Add a piece and return its place. Texts are copied, except `code` and `eh_frame`. */
uint64_t made_add(struct made *made, const struct made_piece *piece);

/* A function at some address of the piece added last. */
struct made_frame {
    struct text name; /* empty for the first, which has the piece's name */
    struct text file;
    uint32_t line;
};
/* Add the functions that start `from` bytes into the piece added last and reach to the next line: the piece's own function, then those inlined
   into it, innermost last; none if nothing is known there. `from` must ascend; other calls are ignored. */
void made_add_line(struct made *made, uint64_t from, const struct made_frame *frames, size_t count);

/* An unwinding rule, as in struct cfi_row. */
enum { MADE_RULES = 4 };
struct made_row {
    uint8_t cfa_register; /* DWARF number */
    int32_t cfa_offset;
    bool is_end;         /* there is no caller */
    bool is_interpreter; /* the frame says which function runs: see struct unwind_sample */
    bool may_have_crumb; /* as in struct cfi_row */
    uint8_t rule_count;
    struct cfi_rule
        rules[MADE_RULES]; /* CFI_AT_CFA, CFI_CFA_PLUS or CFI_IN_REGISTER; others are unchanged,
                                          the stack pointer is the CFA. The return address needs one. */
};
/* Add a rule from `from` bytes into the piece added last up to the next row; NULL: no rule, so frame pointers are tried. Order as above. */
void made_add_row(struct made *made, uint64_t from, const struct made_row *row);

/* Take ownership of bytes that pieces point into; `bytes` is empty afterwards. */
void made_keep_bytes(struct made *made, struct buffer *bytes);

/* Return the number of pieces. */
size_t made_count(const struct made *made);

/* The parts of a runtime's name for a function: V8's `JS:*fib /a/fib.js:1:13`, CPython's `py::fib:/a/fib.py`, the Erlang VM's `lists:map/2`.
   Texts point into `name`; missing parts are empty or 0. */
struct made_name {
    struct text name; /* of the function it belongs to, if it is only a part */
    struct text language;
    struct text file;
    uint32_t line; /* of its definition */
};
struct made_name made_name_read(struct text name);

/* Set the pieces of an OBJECT_MADE; takes over the reference. If it has pieces already, they are replaced, and places handed out before must
   stay valid. Not thread-safe: call it before lookups begin. */
void objects_set_made(struct objects *objects, uint32_t id, struct made *made);

#endif
