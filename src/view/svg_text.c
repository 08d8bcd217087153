/*
 * Words and numbers of an SVG. Numbers are formatted by hand: printf's would follow the locale, and costs ten times as much
 * in a loop that runs five times a frame.
 */
#include "view/svg.h"

#include "import/import.h"

static bool is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x7f && c != '<' && c != '>' && c != '&' && c != '"' && c != '\'';
}

void svg_add_xml(struct buffer *buffer, struct text t) {
    for (size_t i = 0; i < t.length;) {
        size_t start = i;
        bool plain = is_plain((unsigned char)t.data[i]);
        while (i < t.length && is_plain((unsigned char)t.data[i]) == plain)
            i++;
        struct text run = {t.data + start, i - start};
        if (plain)
            buffer_add(buffer, run);
        else
            buffer_add_xml(buffer, run);
    }
}

/* Plain names, nearly all, cost one look at each byte. */
bool svg_is_lossy(struct text t) {
    bool lossy = false, plain = true;
    for (size_t i = 0; i < t.length; i++) {
        unsigned char c = (unsigned char)t.data[i];
        plain &= c < 0x80;
        lossy |= c < 0x20 && c != '\t' && c != '\n' && c != '\r';
    }
    if (plain || lossy)
        return lossy;
    struct buffer valid = {0};
    lossy = text_lossy(t, &valid).data != t.data ||
            text_search(t, TEXT("\xef\xbf\xbe")) != SIZE_MAX ||
            text_search(t, TEXT("\xef\xbf\xbf")) != SIZE_MAX;
    buffer_release(&valid);
    return lossy;
}

void svg_add_exact(struct buffer *buffer, struct text t) {
    for (size_t i = 0; i < t.length; i++) {
        if (is_plain((unsigned char)t.data[i]) && t.data[i] != '%')
            buffer_add_char(buffer, t.data[i]);
        else
            buffer_printf(buffer, "%%%02x", (unsigned char)t.data[i]);
    }
}

/* A byte that does not continue a character. A stray continuation is drawn as one too many here, which only shortens. */
static bool is_start(char c) {
    return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t count_characters(struct text t, size_t enough) {
    size_t count = 0;
    for (size_t i = 0; i < t.length && count <= enough; i++)
        count += is_start(t.data[i]);
    return count;
}

static struct text first_characters(struct text t, size_t count) {
    size_t i = 0;
    for (; i < t.length; i++)
        if (is_start(t.data[i]) && count-- == 0)
            break;
    return text_upto(t, i);
}

static struct text last_characters(struct text t, size_t count) {
    size_t i = t.length;
    while (count > 0 && i > 0)
        count -= is_start(t.data[--i]);
    return text_from(t, i);
}

void svg_add_label(struct buffer *buffer, struct text name, size_t room, bool truncate_left) {
    if (room < 3)
        return;
    if (count_characters(name, room) <= room) {
        svg_add_xml(buffer, name);
    } else if (truncate_left) {
        buffer_add(buffer, TEXT(".."));
        svg_add_xml(buffer, last_characters(name, room - 2));
    } else {
        svg_add_xml(buffer, first_characters(name, room - 2));
        buffer_add(buffer, TEXT(".."));
    }
}

void svg_add_grouped(struct buffer *buffer, uint64_t value) {
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

void svg_add_hundredths(struct buffer *buffer, double value) {
    assert(value >= 0 && value < 0x1p50);
    uint64_t count = value == 0 ? 0 : hundredths(value);
    buffer_add_u64(buffer, count / 100);
    char decimals[] = {'.', (char)('0' + count / 10 % 10), (char)('0' + count % 10)};
    buffer_add(buffer, (struct text){decimals, sizeof decimals});
}

static uint64_t millionths(uint64_t part, uint64_t whole) {
    return (uint64_t)(((__uint128_t)part * 1000000 + whole / 2) / whole);
}

static void add_millionths(struct buffer *buffer, uint64_t value) {
    uint64_t decimals = value % 10000;
    buffer_add_u64(buffer, value / 10000);
    if (decimals) {
        char digits[5] = {'.'};
        for (int i = 4; i > 0; i--, decimals /= 10)
            digits[i] = (char)('0' + decimals % 10);
        size_t length = 5;
        while (digits[length - 1] == '0')
            length--;
        buffer_add(buffer, (struct text){digits, length});
    }
    buffer_add_char(buffer, '%');
}

void svg_add_place(struct buffer *buffer, uint64_t start, uint64_t whole, uint64_t pixels,
                   uint64_t width) {
    add_millionths(buffer, millionths(start, whole) + pixels * 1000000 / width);
}

void svg_add_span(struct buffer *buffer, uint64_t start, uint64_t end, uint64_t whole) {
    add_millionths(buffer, millionths(end, whole) - millionths(start, whole));
}

struct text svg_shown_name(struct text name) {
    if (name.length < 4)
        return name;
    const char *end = name.data + name.length - 4;
    bool marked =
        end[0] == '_' && end[1] == '[' && end[3] == ']' &&
        memchr("kjiw01", end[2], 6); /* 0 and 1: async-profiler's, by interpreter and compiler */
    return marked ? text_upto(name, name.length - 4) : name;
}
