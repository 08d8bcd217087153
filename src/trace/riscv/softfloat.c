/*
 * IEEE 754 arithmetic on bits. Every operation unpacks its operands to a 64-bit significand with the top bit set, computes exactly with 128
 * bits (bits shifted out are or-ed into the last bit), and packs once.
 */
#include "trace/riscv/softfloat.h"

typedef unsigned __int128 wide;

const struct float_format float_single = {23, 8};
const struct float_format float_double = {52, 11};

enum class { ZERO, FINITE, INFINITE, QUIET, SIGNALING };

struct unpacked {
    enum class class;
    bool sign;
    int exponent;         /* of the top bit */
    uint64_t significand; /* top bit set, if finite */
};

static int bias_of(format f) {
    return (1 << (f->exponent - 1)) - 1;
}
static uint64_t sign_bit(format f) {
    return 1ull << (f->fraction + f->exponent);
}
static uint64_t exponent_mask(format f) {
    return ((1ull << f->exponent) - 1) << f->fraction;
}
static uint64_t fraction_mask(format f) {
    return (1ull << f->fraction) - 1;
}

static uint64_t float_nan(format f) {
    return exponent_mask(f) | 1ull << (f->fraction - 1);
}

static bool float_is_nan(format f, uint64_t a) {
    return (a & ~sign_bit(f)) > exponent_mask(f);
}

static bool float_is_signaling(format f, uint64_t a) {
    return float_is_nan(f, a) && !(a >> (f->fraction - 1) & 1);
}

static struct unpacked unpack(format f, uint64_t a) {
    struct unpacked u = {FINITE, (a & sign_bit(f)) != 0, 0, 0};
    uint64_t fraction = a & fraction_mask(f);
    int exponent = (int)((a & exponent_mask(f)) >> f->fraction);
    if (exponent == (1 << f->exponent) - 1) {
        u.class = !fraction ? INFINITE : float_is_signaling(f, a) ? SIGNALING : QUIET;
        return u;
    }
    if (!exponent && !fraction) {
        u.class = ZERO;
        return u;
    }
    if (exponent)
        fraction |= 1ull << f->fraction;
    else
        exponent = 1;
    int shift = __builtin_clzll(fraction);
    u.significand = fraction << shift;
    u.exponent = exponent - bias_of(f) + (63 - (int)f->fraction) - shift;
    return u;
}

static uint64_t signed_bits(format f, bool sign, uint64_t magnitude) {
    return sign ? magnitude | sign_bit(f) : magnitude;
}

static uint64_t invalid(format f, struct float_context *context) {
    context->flags |= FLAG_INVALID;
    return float_nan(f);
}

/* Shift right, or-ing the bits shifted out into the last bit. */
static uint64_t jam64(uint64_t value, unsigned shift) {
    if (shift == 0)
        return value;
    if (shift > 63)
        return value != 0;
    return value >> shift | ((value << (64 - shift)) != 0);
}

static wide jam128(wide value, unsigned shift) {
    if (shift == 0)
        return value;
    if (shift > 127)
        return value != 0;
    return value >> shift | ((value << (128 - shift)) != 0);
}

/* Whether to round up at the last place kept, whose weight is `unit`; `half` is unit / 2. */
static bool rounds_up(uint64_t value, uint64_t unit, bool sign, enum rounding rounding) {
    uint64_t rest = value & (unit - 1), half = unit / 2;
    switch (rounding) {
    case ROUND_NEAREST:
        return rest > half || (rest == half && (value & unit));
    case ROUND_ZERO:
        return false;
    case ROUND_DOWN:
        return sign && rest;
    case ROUND_UP:
        return !sign && rest;
    case ROUND_AWAY:
        return rest >= half;
    }
    return false;
}

static uint64_t overflow(format f, bool sign, struct float_context *context) {
    context->flags |= FLAG_OVERFLOW | FLAG_INEXACT;
    bool to_infinity = context->rounding == ROUND_NEAREST || context->rounding == ROUND_AWAY ||
                       context->rounding == (sign ? ROUND_DOWN : ROUND_UP);
    return signed_bits(f, sign, exponent_mask(f) - !to_infinity);
}

/* Below the smallest normal number, unless rounding with an unbounded exponent would reach it. */
static bool is_tiny(format f, bool sign, int exponent, uint64_t significand,
                    enum rounding rounding) {
    int least = 1 - bias_of(f);
    if (exponent >= least)
        return false;
    uint64_t unit = 1ull << (63 - f->fraction);
    bool carries =
        (significand | (unit - 1)) == UINT64_MAX && rounds_up(significand, unit, sign, rounding);
    return exponent < least - 1 || !carries;
}

/* `significand` has its top bit set, which weighs 2^exponent, and its last bit is sticky. */
static uint64_t pack(format f, bool sign, int exponent, uint64_t significand,
                     struct float_context *context) {
    int least = 1 - bias_of(f);
    bool tiny = is_tiny(f, sign, exponent, significand, context->rounding);
    int biased = exponent + bias_of(f);
    if (exponent < least) {
        significand = jam64(significand, (unsigned)(least - exponent));
        biased = 0;
    }
    uint64_t unit = 1ull << (63 - f->fraction);
    bool up = rounds_up(significand, unit, sign, context->rounding);
    if (significand & (unit - 1))
        context->flags |= FLAG_INEXACT | (tiny ? FLAG_UNDERFLOW : 0);
    uint64_t kept = (significand >> (63 - f->fraction)) + up;
    /* The hidden bit adds one to the exponent: for normal numbers it is subtracted first, and a carry does the rest. */
    uint64_t bits = biased > 0 ? ((uint64_t)(biased - 1) << f->fraction) + kept : kept;
    if (biased >= (1 << f->exponent) - 1 || bits >= exponent_mask(f))
        return overflow(f, sign, context);
    return signed_bits(f, sign, bits);
}

static uint64_t pack_wide(format f, bool sign, int exponent, wide significand,
                          struct float_context *context) {
    if (!significand)
        return signed_bits(f, sign, 0);
    uint64_t high = (uint64_t)(significand >> 64);
    unsigned shift = high ? (unsigned)__builtin_clzll(high)
                          : 64 + (unsigned)__builtin_clzll((uint64_t)significand);
    significand <<= shift;
    uint64_t jammed = (uint64_t)(significand >> 64) | ((uint64_t)significand != 0);
    return pack(f, sign, exponent - (int)shift, jammed, context);
}

static bool any_nan(struct unpacked a, struct unpacked b, struct float_context *context) {
    if (a.class == SIGNALING || b.class == SIGNALING)
        context->flags |= FLAG_INVALID;
    return a.class >= QUIET || b.class >= QUIET;
}

/* Sum of two finite, non-zero wide numbers whose top bits (127) weigh 2^exponent. */
static uint64_t add_wide(format f, bool sign_a, int exponent_a, wide a, bool sign_b, int exponent_b,
                         wide b, struct float_context *context) {
    int exponent = (exponent_a > exponent_b ? exponent_a : exponent_b) + 1; /* room for a carry */
    a = jam128(a, (unsigned)(exponent - exponent_a));
    b = jam128(b, (unsigned)(exponent - exponent_b));
    if (sign_a == sign_b)
        return pack_wide(f, sign_a, exponent, a + b, context);
    if (a == b)
        return signed_bits(f, context->rounding == ROUND_DOWN, 0);
    bool sign = a > b ? sign_a : sign_b;
    return pack_wide(f, sign, exponent, a > b ? a - b : b - a, context);
}

uint64_t float_add(format f, uint64_t x, uint64_t y, struct float_context *context) {
    struct unpacked a = unpack(f, x), b = unpack(f, y);
    if (any_nan(a, b, context))
        return float_nan(f);
    if (a.class == INFINITE)
        return b.class == INFINITE && a.sign != b.sign ? invalid(f, context) : x;
    if (b.class == INFINITE)
        return y;
    if (a.class == ZERO && b.class == ZERO)
        return signed_bits(f, a.sign == b.sign ? a.sign : context->rounding == ROUND_DOWN, 0);
    if (a.class == ZERO || b.class == ZERO)
        return a.class == ZERO ? y : x;
    return add_wide(f, a.sign, a.exponent, (wide)a.significand << 64, b.sign, b.exponent,
                    (wide)b.significand << 64, context);
}

uint64_t float_subtract(format f, uint64_t a, uint64_t b, struct float_context *context) {
    return float_add(f, a, float_is_nan(f, b) ? b : b ^ sign_bit(f), context);
}

uint64_t float_multiply(format f, uint64_t x, uint64_t y, struct float_context *context) {
    struct unpacked a = unpack(f, x), b = unpack(f, y);
    bool sign = a.sign != b.sign;
    if (any_nan(a, b, context))
        return float_nan(f);
    if (a.class == INFINITE || b.class == INFINITE)
        return a.class == ZERO || b.class == ZERO ? invalid(f, context)
                                                  : signed_bits(f, sign, exponent_mask(f));
    if (a.class == ZERO || b.class == ZERO)
        return signed_bits(f, sign, 0);
    return pack_wide(f, sign, a.exponent + b.exponent + 1, (wide)a.significand * b.significand,
                     context);
}

uint64_t float_divide(format f, uint64_t x, uint64_t y, struct float_context *context) {
    struct unpacked a = unpack(f, x), b = unpack(f, y);
    bool sign = a.sign != b.sign;
    if (any_nan(a, b, context))
        return float_nan(f);
    if (a.class == b.class && a.class != FINITE)
        return invalid(f, context); /* 0/0, ∞/∞ */
    if (a.class == INFINITE)
        return signed_bits(f, sign, exponent_mask(f));
    if (a.class == ZERO || b.class == INFINITE)
        return signed_bits(f, sign, 0);
    if (b.class == ZERO) {
        context->flags |= FLAG_DIVIDE;
        return signed_bits(f, sign, exponent_mask(f));
    }
    wide dividend = (wide)a.significand << 63; /* so that the quotient fits */
    wide quotient = dividend / b.significand;
    bool inexact = dividend % b.significand != 0;
    return pack_wide(f, sign, a.exponent - b.exponent, quotient << 64 | inexact, context);
}

uint64_t float_sqrt(format f, uint64_t x, struct float_context *context) {
    struct unpacked a = unpack(f, x);
    if (any_nan(a, a, context))
        return float_nan(f);
    if (a.class == ZERO || (a.class == INFINITE && !a.sign))
        return x;
    if (a.sign)
        return invalid(f, context);
    /* An even exponent: the root of a number in [1, 4), of which 64 bits are found one by one. */
    wide value = (wide)a.significand << (a.exponent & 1 ? 64 : 63), root = 0;
    for (int bit = 63; bit >= 0; bit--) {
        wide trial = root | (wide)1 << bit;
        if (trial * trial <= value)
            root = trial;
    }
    bool inexact = root * root != value;
    return pack_wide(f, false, (a.exponent - (a.exponent & 1)) / 2, root << 64 | inexact, context);
}

uint64_t float_fused(format f, uint64_t x, uint64_t y, uint64_t z, struct float_context *context) {
    struct unpacked a = unpack(f, x), b = unpack(f, y), c = unpack(f, z);
    bool sign = a.sign != b.sign;
    bool infinite = a.class == INFINITE || b.class == INFINITE,
         zero = a.class == ZERO || b.class == ZERO;
    bool nan = any_nan(a, b, context);
    if (c.class == SIGNALING || (!nan && infinite && zero))
        context->flags |= FLAG_INVALID;
    if (nan || c.class >= QUIET || (infinite && zero))
        return float_nan(f);
    if (infinite)
        return c.class == INFINITE && c.sign != sign ? invalid(f, context)
                                                     : signed_bits(f, sign, exponent_mask(f));
    if (c.class == INFINITE)
        return z;
    if (zero)
        return c.class == ZERO ? float_add(f, signed_bits(f, sign, 0), z, context) : z;
    wide product = (wide)a.significand * b.significand;
    int exponent = a.exponent + b.exponent + 1;
    if (c.class == ZERO)
        return pack_wide(f, sign, exponent, product, context);
    return add_wide(f, sign, exponent, product, c.sign, c.exponent, (wide)c.significand << 64,
                    context);
}

uint64_t float_convert(format to, format from, uint64_t x, struct float_context *context) {
    struct unpacked a = unpack(from, x);
    if (any_nan(a, a, context))
        return float_nan(to);
    if (a.class == INFINITE)
        return signed_bits(to, a.sign, exponent_mask(to));
    if (a.class == ZERO)
        return signed_bits(to, a.sign, 0);
    return pack(to, a.sign, a.exponent, a.significand, context);
}

uint64_t float_of_integer(format f, uint64_t magnitude, bool negative,
                          struct float_context *context) {
    return pack_wide(f, negative && magnitude, 127, magnitude, context);
}

static uint64_t integer_limit(unsigned bits, bool is_signed, bool negative) {
    uint64_t all = bits == 64 ? UINT64_MAX : UINT32_MAX;
    if (!is_signed)
        return negative ? 0 : all;
    return negative ? (all >> 1) + 1 : all >> 1;
}

uint64_t float_to_integer(format f, uint64_t x, unsigned bits, bool is_signed,
                          struct float_context *context) {
    struct unpacked a = unpack(f, x);
    if (a.class == ZERO)
        return 0;
    bool negative = a.sign && a.class < QUIET;
    uint64_t limit = integer_limit(bits, is_signed, negative), value = 0;
    bool inexact = false, fits = a.class == FINITE && a.exponent < 64;
    if (fits) {
        /* The number with 64 bits before the point and 64 behind; sticky below. */
        int shift = a.exponent < -66 ? 130 : 63 - a.exponent;
        wide whole = jam128((wide)a.significand << 64, (unsigned)shift);
        uint64_t rest = (uint64_t)whole;
        value = (uint64_t)(whole >> 64);
        inexact = rest != 0;
        uint64_t tail = (value & 1) << 63 | jam64(rest, 1); /* a unit of 2^63 above its fraction */
        if (rounds_up(tail, 1ull << 63, a.sign, context->rounding))
            fits = !__builtin_add_overflow(value, 1, &value);
    }
    if (!fits || value > limit) {
        context->flags |= FLAG_INVALID;
        return limit;
    }
    if (inexact)
        context->flags |= FLAG_INEXACT;
    return negative ? 0 - value : value;
}

/* ---- comparisons -------------------------------------------------------------------------- */

/* Return the bits as a number that orders as the floats do; both zeros are equal. */
static int64_t order(format f, uint64_t a) {
    int64_t magnitude = (int64_t)(a & (sign_bit(f) - 1));
    return a & sign_bit(f) ? -magnitude : magnitude;
}

bool float_equal(format f, uint64_t a, uint64_t b, struct float_context *context) {
    if (float_is_signaling(f, a) || float_is_signaling(f, b))
        context->flags |= FLAG_INVALID;
    return !float_is_nan(f, a) && !float_is_nan(f, b) && order(f, a) == order(f, b);
}

static bool unordered(format f, uint64_t a, uint64_t b, struct float_context *context) {
    if (!float_is_nan(f, a) && !float_is_nan(f, b))
        return false;
    context->flags |= FLAG_INVALID;
    return true;
}

bool float_less(format f, uint64_t a, uint64_t b, struct float_context *context) {
    return !unordered(f, a, b, context) && order(f, a) < order(f, b);
}

bool float_less_or_equal(format f, uint64_t a, uint64_t b, struct float_context *context) {
    return !unordered(f, a, b, context) && order(f, a) <= order(f, b);
}

uint64_t float_minimum(format f, uint64_t a, uint64_t b, bool maximum,
                       struct float_context *context) {
    if (float_is_signaling(f, a) || float_is_signaling(f, b))
        context->flags |= FLAG_INVALID;
    if (float_is_nan(f, a))
        return float_is_nan(f, b) ? float_nan(f) : b;
    if (float_is_nan(f, b))
        return a;
    bool a_first = order(f, a) < order(f, b) || (order(f, a) == order(f, b) && (a & sign_bit(f)));
    return a_first != maximum ? a : b;
}

unsigned float_class(format f, uint64_t x) {
    struct unpacked a = unpack(f, x);
    bool subnormal = !(x & exponent_mask(f));
    switch (a.class) {
    case INFINITE:
        return a.sign ? 1 << 0 : 1 << 7;
    case ZERO:
        return a.sign ? 1 << 3 : 1 << 4;
    case SIGNALING:
        return 1 << 8;
    case QUIET:
        return 1 << 9;
    case FINITE:
        break;
    }
    return a.sign ? (subnormal ? 1 << 2 : 1 << 1) : (subnormal ? 1 << 5 : 1 << 6);
}
