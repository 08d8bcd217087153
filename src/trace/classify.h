/*
 * Private to the room: what an instruction of some machine does to control flow. RISC-V by our own decoder, x86 and Arm by
 * capstone's instruction classes.
 */
#ifndef WICK_TRACE_CLASSIFY_H
#define WICK_TRACE_CLASSIFY_H

#include "trace/riscv/riscv.h"
#include "trace/trace.h"

struct classified {
    enum control control;
    uint64_t target;         /* of a direct one, else NO_ADDRESS */
    uint32_t loaded, stored; /* bytes; UINT32_MAX: not known */
    uint32_t size;
};

struct classifier;
/* By QEMU's name of the machine: riscv64, riscv32, aarch64, x86_64; for as long as that runs. NULL: not known, or no capstone. */
struct classifier *classifier_new(const char *machine);
/* The eight bytes before an address end in a call or a system call, or look so: what is called there returns to it. */
bool classify_follows_call(const struct classifier *classifier, const uint8_t before[8]);
struct classified classify(struct classifier *classifier, const uint8_t *bytes, size_t size,
                           uint64_t pc);

#endif
