/*
 * The float instructions. Singles are stored boxed, with the upper half of the register all ones; anything else reads as NaN. With nearest
 * rounding and a result that is a number, the host's arithmetic gives the same and is used; its flags stay in the host until they are read
 * (machine.c). Everything else uses softfloat.
 */
#include "trace/riscv/handlers.h"
#include "trace/riscv/host_float.h"

#include <math.h>

#define FD m->f[op->rd]
#define D1 m->f[op->rs1]
#define D2 m->f[op->rs2]
#define D3 m->f[op->rs3]
#define S1 unbox(D1)
#define S2 unbox(D2)
#define S3 unbox(D3)

static inline uint64_t unbox(uint64_t value) {
    return value >> 32 == UINT32_MAX ? (uint32_t)value : 0x7fc00000;
}
static inline uint64_t box(uint64_t value) {
    return value | 0xffffffff00000000ull;
}
static inline double to_double(uint64_t bits) {
    double d;
    memcpy(&d, &bits, 8);
    return d;
}
static inline uint64_t of_double(double d) {
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits;
}
static inline float to_single(uint64_t bits) {
    float s;
    uint32_t b = (uint32_t)bits;
    memcpy(&s, &b, 4);
    return s;
}
static inline uint64_t of_single(float s) {
    uint32_t bits;
    memcpy(&bits, &s, 4);
    return bits;
}

/* 5 … 7: fcsr holds no rounding mode, and the instruction is illegal. */
static inline unsigned rounding_of(const struct machine *m, unsigned rounding) {
    return rounding == 7 ? m->frm : rounding;
}

/* ---- memory ------------------------------------------------------------------------------- */

static SLOW const struct op *float_load_slow(struct machine *m, const struct op *op,
                                             uint8_t *memory, int64_t left, uint64_t address,
                                             unsigned size) {
    if (!machine_load_slow(m, address, size))
        return machine_fault(m, op, m->fault, address, left);
    FD = size == 4 ? box(m->loaded) : m->loaded;
    NEXT;
}

#define FLOAT_LOAD(name, type, boxed)                                                              \
    HANDLER(name) {                                                                                \
        uint64_t address = RS1 + IMM;                                                              \
        if (!machine_may(memory, address, sizeof(type), PAGE_READ))                                \
            return float_load_slow(m, op, memory, left, address, sizeof(type));                    \
        type value;                                                                                \
        memcpy(&value, memory + address, sizeof value);                                            \
        FD = boxed(value);                                                                         \
        NEXT;                                                                                      \
    }
FLOAT_LOAD(flw, uint32_t, box)
FLOAT_LOAD(fld, uint64_t, )

static SLOW const struct op *float_store_slow(struct machine *m, const struct op *op,
                                              uint8_t *memory, int64_t left, uint64_t address,
                                              unsigned size) {
    int done = machine_store_slow(m, address, size, D2);
    return machine_stored(m, op, memory, left, address, done);
}

#define FLOAT_STORE(name, size)                                                                    \
    HANDLER(name) {                                                                                \
        uint64_t address = RS1 + IMM;                                                              \
        if (!machine_may(memory, address, size, PAGE_STORE))                                       \
            return float_store_slow(m, op, memory, left, address, size);                           \
        memcpy(memory + address, &D2, size);                                                       \
        NEXT;                                                                                      \
    }
FLOAT_STORE(fsw, 4)
FLOAT_STORE(fsd, 8)

/* ---- arithmetic --------------------------------------------------------------------------- */

typedef uint64_t binary(format f, uint64_t a, uint64_t b, struct float_context *context);

static SLOW const struct op *binary_slow(struct machine *m, const struct op *op, uint8_t *memory,
                                         int64_t left, format f, binary *operation) {
    m->floats.rounding = rounding_of(m, (unsigned)op->imm);
    if (m->floats.rounding > ROUND_AWAY)
        return machine_fault(m, op, FAULT_ILLEGAL, 0, left);
    bool single = f == &float_single;
    uint64_t result = operation(f, single ? S1 : D1, single ? S2 : D2, &m->floats);
    FD = single ? box(result) : result;
    NEXT;
}

#define BINARY(name, sign, soft)                                                                   \
    HANDLER(name##_d) {                                                                            \
        if (HOST_FLOAT && LIKELY(!rounding_of(m, (unsigned)op->imm))) {                            \
            double result = to_double(D1) sign to_double(D2);                                      \
            if (LIKELY(!__builtin_isnan(result))) {                                                \
                FD = of_double(result);                                                            \
                NEXT;                                                                              \
            }                                                                                      \
        }                                                                                          \
        return binary_slow(m, op, memory, left, &float_double, soft);                              \
    }                                                                                              \
    HANDLER(name##_s) {                                                                            \
        if (HOST_FLOAT && LIKELY(!rounding_of(m, (unsigned)op->imm))) {                            \
            float result = to_single(S1) sign to_single(S2);                                       \
            if (LIKELY(!__builtin_isnan(result))) {                                                \
                FD = box(of_single(result));                                                       \
                NEXT;                                                                              \
            }                                                                                      \
        }                                                                                          \
        return binary_slow(m, op, memory, left, &float_single, soft);                              \
    }
BINARY(fadd, +, float_add)
BINARY(fsub, -, float_subtract)
BINARY(fmul, *, float_multiply)
BINARY(fdiv, /, float_divide)

static uint64_t root_of(format f, uint64_t a, uint64_t b, struct float_context *context) {
    (void)b;
    return float_sqrt(f, a, context);
}
HANDLER(fsqrt_d) {
    return binary_slow(m, op, memory, left, &float_double, root_of);
}
HANDLER(fsqrt_s) {
    return binary_slow(m, op, memory, left, &float_single, root_of);
}

/* a × b + c with the signs inverted as `turn` says: 1 the product's, 2 c's. */
static SLOW const struct op *fused_slow(struct machine *m, const struct op *op, uint8_t *memory,
                                        int64_t left, format f, unsigned turn) {
    m->floats.rounding = rounding_of(m, (unsigned)op->imm);
    if (m->floats.rounding > ROUND_AWAY)
        return machine_fault(m, op, FAULT_ILLEGAL, 0, left);
    bool single = f == &float_single;
    uint64_t sign = single ? 1u << 31 : 1ull << 63;
    uint64_t a = single ? S1 : D1, b = single ? S2 : D2, c = single ? S3 : D3;
    uint64_t result =
        float_fused(f, turn & 1 ? a ^ sign : a, b, turn & 2 ? c ^ sign : c, &m->floats);
    FD = single ? box(result) : result;
    NEXT;
}

#define FUSED(name, product, addend, turn)                                                         \
    HANDLER(name##_d) {                                                                            \
        if (HOST_FLOAT && LIKELY(!rounding_of(m, (unsigned)op->imm))) {                            \
            double result = fma(product to_double(D1), to_double(D2), addend to_double(D3));       \
            if (LIKELY(!__builtin_isnan(result))) {                                                \
                FD = of_double(result);                                                            \
                NEXT;                                                                              \
            }                                                                                      \
        }                                                                                          \
        return fused_slow(m, op, memory, left, &float_double, turn);                               \
    }                                                                                              \
    HANDLER(name##_s) {                                                                            \
        return fused_slow(m, op, memory, left, &float_single, turn);                               \
    }
FUSED(fmadd, +, +, 0)
FUSED(fmsub, +, -, 2)
FUSED(fnmsub, -, +, 1)
FUSED(fnmadd, -, -, 3)

/* ---- signs, order, class ------------------------------------------------------------------ */

#define SIGN_D (1ull << 63)
#define SIGN_S (1ull << 31)
RESULT(fsgnj_d, FD, (D1 & ~SIGN_D) | (D2 & SIGN_D))
RESULT(fsgnjn_d, FD, (D1 & ~SIGN_D) | (~D2 & SIGN_D))
RESULT(fsgnjx_d, FD, D1 ^ (D2 & SIGN_D))
RESULT(fsgnj_s, FD, box((S1 & ~SIGN_S) | (S2 & SIGN_S)))
RESULT(fsgnjn_s, FD, box((S1 & ~SIGN_S) | (~S2 & SIGN_S)))
RESULT(fsgnjx_s, FD, box(S1 ^ (S2 & SIGN_S)))
RESULT(fmv_w_x, FD, box((uint32_t)RS1))
RESULT(fmv_d_x, FD, RS1)

/* The rounding mode does not matter. */
RESULT(fmin_d, FD, float_minimum(&float_double, D1, D2, false, &m->floats))
RESULT(fmax_d, FD, float_minimum(&float_double, D1, D2, true, &m->floats))
RESULT(fmin_s, FD, box(float_minimum(&float_single, S1, S2, false, &m->floats)))
RESULT(fmax_s, FD, box(float_minimum(&float_single, S1, S2, true, &m->floats)))
RESULT(feq_d, RD, float_equal(&float_double, D1, D2, &m->floats))
RESULT(flt_d, RD, float_less(&float_double, D1, D2, &m->floats))
RESULT(fle_d, RD, float_less_or_equal(&float_double, D1, D2, &m->floats))
RESULT(feq_s, RD, float_equal(&float_single, S1, S2, &m->floats))
RESULT(flt_s, RD, float_less(&float_single, S1, S2, &m->floats))
RESULT(fle_s, RD, float_less_or_equal(&float_single, S1, S2, &m->floats))

RESULT(fclass_d, RD, float_class(&float_double, D1))
RESULT(fclass_s, RD, float_class(&float_single, S1))
RESULT(fmv_x_d, RD, D1)
RESULT(fmv_x_w, RD, (uint64_t)(int64_t)(int32_t)D1)

/* ---- conversions -------------------------------------------------------------------------- */

/* Illegal if fcsr holds no rounding mode. */
#define ROUNDED(name, destination, expression)                                                     \
    HANDLER(name) {                                                                                \
        m->floats.rounding = rounding_of(m, (unsigned)op->imm);                                    \
        if (UNLIKELY(m->floats.rounding > ROUND_AWAY))                                             \
            return machine_fault(m, op, FAULT_ILLEGAL, 0, left);                                   \
        (destination) = (expression);                                                              \
        NEXT;                                                                                      \
    }
#define NEGATIVE(v) ((int64_t)(v) < 0)
#define MAGNITUDE(v) (NEGATIVE(v) ? 0 - (uint64_t)(v) : (uint64_t)(v))

#define FROM_FLOAT(suffix, f, source)                                                              \
    ROUNDED(fcvt_w_##suffix, RD, WORD(float_to_integer(f, source, 32, true, &m->floats)))          \
    ROUNDED(fcvt_wu_##suffix, RD, WORD(float_to_integer(f, source, 32, false, &m->floats)))        \
    ROUNDED(fcvt_l_##suffix, RD, float_to_integer(f, source, 64, true, &m->floats))                \
    ROUNDED(fcvt_lu_##suffix, RD, float_to_integer(f, source, 64, false, &m->floats))
FROM_FLOAT(d, &float_double, D1)
FROM_FLOAT(s, &float_single, S1)

#define OF_SIGNED(f, v) float_of_integer(f, MAGNITUDE(v), NEGATIVE(v), &m->floats)
#define OF_UNSIGNED(f, v) float_of_integer(f, v, false, &m->floats)
#define TO_FLOAT(suffix, f, boxed)                                                                 \
    ROUNDED(fcvt_##suffix##_w, FD, boxed(OF_SIGNED(f, WORD(RS1))))                                 \
    ROUNDED(fcvt_##suffix##_wu, FD, boxed(OF_UNSIGNED(f, (uint32_t)RS1)))                          \
    ROUNDED(fcvt_##suffix##_l, FD, boxed(OF_SIGNED(f, RS1)))                                       \
    ROUNDED(fcvt_##suffix##_lu, FD, boxed(OF_UNSIGNED(f, RS1)))
TO_FLOAT(d, &float_double, )
TO_FLOAT(s, &float_single, box)

ROUNDED(fcvt_s_d, FD, box(float_convert(&float_single, &float_double, D1, &m->floats)))
ROUNDED(fcvt_d_s, FD, float_convert(&float_double, &float_single, S1, &m->floats))
