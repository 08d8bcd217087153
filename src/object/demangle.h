/*
 * demangle: a symbol's name as its source spells it.
 *
 * C++, Rust (legacy and v0) and D are demangled by libiberty, OCaml and Java by a few lines of our own. Names include arguments, so that overloads
 * stay apart, but no return type, so that they begin with what people look for. `quirks.names_without_arguments` drops the arguments, as perf 6.1 does.
 */
#ifndef WICK_OBJECT_DEMANGLE_H
#define WICK_OBJECT_DEMANGLE_H

#include "object/object.h"

/* Append the demangled name. Append nothing and return false if the name is not mangled or not understood, if the options forbid it, or if it
   expands to more than any real name does; in the last case set *costly, unless it is NULL. Thread-safe. Stack, time and output are bounded. */
bool demangle(const struct objects_options *options, struct text name, struct buffer *buffer,
              bool *costly);

/* ---- private to the room: demangle_cost.c ---- */

/* Whether libiberty can demangle the name in reasonable time. `flags` are libiberty's. */
bool demangling_cpp_is_cheap(const char *name, size_t length, int flags);
bool demangling_d_is_cheap(const char *name, size_t length);

#endif
