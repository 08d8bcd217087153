/*
 * capstone, the disassembler, loaded when it is first needed. Few commands need it, and its tables are 330 pages of addresses that the loader has
 * to relocate: 2 ms at the start of each command, half the time that it takes to draw a small recording.
 */
#ifndef WICK_OBJECT_CAPSTONE_H
#define WICK_OBJECT_CAPSTONE_H

#ifdef HAVE_CAPSTONE
#include <capstone/capstone.h>
#include <stdbool.h>

/* Its functions, by their names without cs_. */
struct capstone {
    __typeof__(cs_open) *open;
    __typeof__(cs_close) *close;
    __typeof__(cs_option) *option;
    __typeof__(cs_malloc) *malloc;
    __typeof__(cs_free) *free;
    __typeof__(cs_disasm_iter) *disasm_iter;
    __typeof__(cs_insn_group) *insn_group;
};

/* Return false if it is not installed. The library stays loaded, so further calls cost next to nothing. */
bool capstone_load(struct capstone *functions);
#endif

#endif
