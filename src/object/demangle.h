/*
 * demangle: a symbol's name as its source spells it.
 *
 * C++, Rust (legacy and v0) and D through libiberty; OCaml and Java by a few lines of our own. With arguments and without the return
 * type, so that overloads stay apart and names begin with what people look for; `quirks.names_without_arguments` leaves the arguments out, as perf 6.1 does.
 */
#ifndef WICK_OBJECT_DEMANGLE_H
#define WICK_OBJECT_DEMANGLE_H

#include "object/object.h"

/* Appends the demangled name; false, with nothing appended, when it is not mangled, not understood, asked not to, or stands for more than
   any real name does: then *costly is set, unless it is NULL. Thread-safe. Bounded in stack, time and output for any input. */
bool demangle(const struct objects_options *options, struct text name, struct buffer *buffer,
              bool *costly);

/* ---- private to the room: demangle_cost.c ---- */

/* Whether libiberty's demanglers will get through with the name in reasonable time. `flags` are theirs. */
bool demangling_cpp_is_cheap(const char *name, size_t length, int flags);
bool demangling_d_is_cheap(const char *name, size_t length);

#endif
