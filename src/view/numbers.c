/*
 * Numbers for people. They are formatted by hand, because printf follows the locale, and costs ten times as much in a loop that runs five times
 * a frame.
 */
#include "view/numbers.h"

#include <math.h>

#include "view/view.h"

double per_cent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

double estimate_error(uint64_t samples, uint64_t sum, uint64_t deviation) {
    double error = sum ? 100 * (double)deviation * sqrt((double)samples) / (double)sum : 100;
    return error < ERROR_MOST ? error : ERROR_MOST;
}

bool estimate_has_error(struct text unit) {
    return !text_equal(unit, TEXT("count"));
}

void buffer_add_grouped(struct buffer *buffer, uint64_t value) {
    char digits[32];
    size_t at = sizeof digits, count = 0;
    do {
        if (count && count % 3 == 0)
            digits[--at] = ',';
        digits[--at] = (char)('0' + value % 10);
        count++;
    } while (value /= 10);
    buffer_add(buffer, (struct text){digits + at, sizeof digits - at});
}

/* The double is mantissa × 2^-shift exactly, so its hundredths can be rounded as exactly. */
static uint64_t hundredths(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    int shift = 1075 - (int)(bits >> 52);
    uint64_t mantissa = (bits & ((1ull << 52) - 1)) | 1ull << 52;
    if (shift > 63)
        return 0;
    __uint128_t scaled = (__uint128_t)mantissa * 100;
    uint64_t whole = (uint64_t)(scaled >> shift);
    __uint128_t rest = scaled - ((__uint128_t)whole << shift), half = (__uint128_t)1 << (shift - 1);
    return whole + (rest > half || (rest == half && whole & 1));
}

void buffer_add_hundredths(struct buffer *buffer, double value) {
    assert(value >= 0 && value < 0x1p50);
    uint64_t count = value == 0 ? 0 : hundredths(value);
    buffer_add_u64(buffer, count / 100);
    char decimals[] = {'.', (char)('0' + count / 10 % 10), (char)('0' + count % 10)};
    buffer_add(buffer, (struct text){decimals, sizeof decimals});
}

void buffer_add_factor(struct buffer *buffer, uint64_t before, uint64_t after) {
    if (before == 0 || after == 0) {
        buffer_add(buffer, before ? TEXT("gone") : after ? TEXT("new") : TEXT(""));
        return;
    }
    double factor = (double)after / (double)before;
    buffer_add(buffer, TEXT("×"));
    if (factor < 99.995)
        buffer_add_hundredths(buffer, factor);
    else if (factor < 0x1p63)
        buffer_add_u64(buffer, (uint64_t)(factor + 0.5));
    else
        buffer_add(buffer, TEXT("2^63"));
}
