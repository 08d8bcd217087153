/*
 * Private to the room: what an instruction does to control flow. RISC-V uses wick's own decoder, x86 and Arm capstone's instruction classes.
 */
#ifndef WICK_TRACE_CLASSIFY_H
#define WICK_TRACE_CLASSIFY_H

#include "trace/riscv/riscv.h"
#include "trace/trace.h"

struct classified {
    enum control control;
    uint64_t target;         /* of a direct jump or call, otherwise NO_ADDRESS */
    uint32_t loaded, stored; /* bytes; UINT32_MAX: unknown */
    uint32_t size;
};

struct classifier;
/* Create a classifier by QEMU's name of the machine: riscv64, riscv32, aarch64, x86_64. It lives as long as the process. Return NULL if the
   machine is unknown or there is no capstone. */
struct classifier *classifier_new(const char *machine);
/* Whether the eight bytes before an address end in a call or a system call, or look like it: what is called there returns to the address. */
bool classify_follows_call(const struct classifier *classifier, const uint8_t before[8]);
struct classified classify(struct classifier *classifier, const uint8_t *bytes, size_t size,
                           uint64_t pc);

#endif
