/*
 * Private to the room: the host's float arithmetic, where it gives exactly RISC-V's results. That is x86 with SSE: it detects tininess after
 * rounding, and keeps its flags until they are cleared. Other hosts use softfloat for everything.
 */
#ifndef WICK_TRACE_HOST_FLOAT_H
#define WICK_TRACE_HOST_FLOAT_H

#include "trace/riscv/softfloat.h"

#ifdef __x86_64__
#include <xmmintrin.h>
#define HOST_FLOAT 1

/* Set nearest rounding, mask all exceptions and clear the flags; return the previous state. */
static inline unsigned host_float_begin(void) {
    unsigned before = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return before;
}

static inline void host_float_end(unsigned before) {
    _mm_setcsr(before);
}

/* Return the flags raised since host_float_begin() or the last call, as RISC-V's bits. */
static inline unsigned host_float_flags(void) {
    unsigned csr = _mm_getcsr();
    _mm_setcsr(csr & ~0x3fu);
    return (csr & 0x20 ? FLAG_INEXACT : 0) | (csr & 0x10 ? FLAG_UNDERFLOW : 0) |
           (csr & 8 ? FLAG_OVERFLOW : 0) | (csr & 4 ? FLAG_DIVIDE : 0) |
           (csr & 1 ? FLAG_INVALID : 0);
}
#else
#define HOST_FLOAT 0
static inline unsigned host_float_begin(void) {
    return 0;
}
static inline void host_float_end(unsigned before) {
    (void)before;
}
static inline unsigned host_float_flags(void) {
    return 0;
}
#endif

#endif
