/*
 * made: code that a process made while it ran, as its runtime describes it: a jitdump, a snapshot of a JVM's code cache.
 *
 * A `struct made` is a list of *pieces*: functions, stubs, trampolines, each compiled once. A piece has a name, a language, lines (with the
 * functions that were inlined), and rules for unwinding. It has a *place* in addresses of the list's own, [place, place + size), which no
 * other piece shares: code that was made later at the same memory is another place. An OBJECT_MADE object is such a list, and its
 * addresses are places; a mapping (space.h) says which memory held a place, from when on.
 *
 * A reader fills a list (one thread) and hands it to an object with objects_set_made(); from then on it never changes and any thread
 * may ask the object: objects_symbol(), objects_inlines(), objects_cfi(), objects_code().
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

/* `machine`: EM_…, or 0: nothing is known of it, and rules are of no use. */
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
    /* .eh_frame as it was laid out `size` rounded up to 8 bytes behind the code's beginning, or empty: not copied. Of more than 64 KB it is
       not used. */
    struct text eh_frame;
};

/* Adds a piece and returns its place. Texts are copied, but for the two that say otherwise. */
uint64_t made_add(struct made *made, const struct made_piece *piece);

/* A function at some place in the code of the piece that was added last. */
struct made_frame {
    struct text name; /* of the first: empty, as the piece has it */
    struct text file;
    uint32_t line;
};
/* What stands `from` bytes into the piece that was added last, up to the next line's beginning: the piece's own function, then what is inlined
   into it, to the innermost; none: nothing is known there. In ascending order of `from`; others are ignored. */
void made_add_line(struct made *made, uint64_t from, const struct made_frame *frames, size_t count);

/* A rule for unwinding, as in struct cfi_row. */
enum { MADE_RULES = 4 };
struct made_row {
    uint8_t cfa_register; /* DWARF number */
    int32_t cfa_offset;
    bool is_end;         /* there is no caller */
    bool is_interpreter; /* which function runs there is in the frame: see struct unwind_sample */
    bool may_have_crumb; /* as in struct cfi_row */
    uint8_t rule_count;
    struct cfi_rule
        rules[MADE_RULES]; /* CFI_AT_CFA, CFI_CFA_PLUS or CFI_IN_REGISTER; others are unchanged,
                                          the stack pointer is the CFA. The return address needs one. */
};
/* From `from` bytes into the piece that was added last, up to the next row; NULL: no rule, and frame pointers are tried. Order as above. */
void made_add_row(struct made *made, uint64_t from, const struct made_row *row);

/* Takes over bytes that pieces point into: `bytes` is empty then. */
void made_keep_bytes(struct made *made, struct buffer *bytes);

/* How many pieces there are, and what they take in memory, for a reader's budget. */
size_t made_count(const struct made *made);

/* What a runtime's name for a function tells beside it: V8's `JS:*fib /a/fib.js:1:13`, CPython's `py::fib:/a/fib.py`, the Erlang VM's `lists:map/2`.
   Texts are of `name`; what it does not tell is empty, or 0. */
struct made_name {
    struct text name; /* of what it belongs to, where it is but a part */
    struct text language;
    struct text file;
    uint32_t line; /* of its definition */
};
struct made_name made_name_read(struct text name);

/* The object's pieces; it takes over the reference. The object is an OBJECT_MADE, and has none yet, else those are replaced: places
   that were handed out must stay what they were. Not thread-safe: before lookups begin. */
void objects_set_made(struct objects *objects, uint32_t id, struct made *made);

#endif
