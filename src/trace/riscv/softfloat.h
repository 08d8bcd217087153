/*
 * Private to the room: IEEE 754 arithmetic on bits, as RISC-V requires: all five rounding modes, exact flags, tininess detected after
 * rounding, and one canonical NaN. The interpreter uses the host's own arithmetic if that gives the same result.
 */
#ifndef WICK_TRACE_SOFTFLOAT_H
#define WICK_TRACE_SOFTFLOAT_H

#include <stdbool.h>
#include <stdint.h>

enum rounding { ROUND_NEAREST, ROUND_ZERO, ROUND_DOWN, ROUND_UP, ROUND_AWAY };
enum float_flag {
    FLAG_INEXACT = 1,
    FLAG_UNDERFLOW = 2,
    FLAG_OVERFLOW = 4,
    FLAG_DIVIDE = 8,
    FLAG_INVALID = 16
};

/* Single or double: 32 or 64 bits. Numbers are passed in the low bits. */
struct float_format {
    unsigned fraction; /* stored bits of the significand */
    unsigned exponent; /* bits of it */
};
extern const struct float_format float_single, float_double;

struct float_context {
    enum rounding rounding;
    unsigned flags; /* or-ed into */
};

typedef const struct float_format *format;
uint64_t float_add(format f, uint64_t a, uint64_t b, struct float_context *context);
uint64_t float_subtract(format f, uint64_t a, uint64_t b, struct float_context *context);
uint64_t float_multiply(format f, uint64_t a, uint64_t b, struct float_context *context);
uint64_t float_divide(format f, uint64_t a, uint64_t b, struct float_context *context);
uint64_t float_sqrt(format f, uint64_t a, struct float_context *context);
/* a × b + c, rounded once. */
uint64_t float_fused(format f, uint64_t a, uint64_t b, uint64_t c, struct float_context *context);
uint64_t float_convert(format to, format from, uint64_t a, struct float_context *context);
uint64_t float_of_integer(format f, uint64_t magnitude, bool negative,
                          struct float_context *context);
/* Convert to an integer of `bits` bits, saturating; the result is not sign-extended from 32 bits. */
uint64_t float_to_integer(format f, uint64_t a, unsigned bits, bool is_signed,
                          struct float_context *context);
bool float_equal(format f, uint64_t a, uint64_t b, struct float_context *context); /* quiet */
bool float_less(format f, uint64_t a, uint64_t b,
                struct float_context *context); /* a NaN is invalid */
bool float_less_or_equal(format f, uint64_t a, uint64_t b, struct float_context *context);
uint64_t float_minimum(format f, uint64_t a, uint64_t b, bool maximum,
                       struct float_context *context);
unsigned float_class(format f, uint64_t a); /* RISC-V's ten bits */

#endif
