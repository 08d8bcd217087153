/* Texts and positions of an SVG. Its numbers are formatted by hand: see numbers.c. */
#include "view/svg.h"

#include <ctype.h>

#include "import/import.h"
#include "stacks/stacks.h"

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

void svg_add_shown(struct buffer *buffer, struct text t, bool as_is) {
    if (as_is || text_is_shown(t)) {
        svg_add_xml(buffer, t);
        return;
    }
    struct buffer shown = {0};
    buffer_add_shown(&shown, t);
    svg_add_xml(buffer, buffer_text(&shown));
    buffer_release(&shown);
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

static void add_short(struct buffer *buffer, struct text name, size_t room) {
    struct buffer label = {0};
    name_add_short(&label, name, room);
    svg_add_xml(buffer, buffer_text(&label));
    buffer_release(&label);
}

void svg_add_label(struct buffer *buffer, struct text name, size_t room, bool truncate_left,
                   bool plain) {
    if (room < 3)
        return;
    if (!plain && !text_is_shown(name)) {
        struct buffer shown = {0};
        buffer_add_shown(&shown, name);
        svg_add_label(buffer, buffer_text(&shown), room, truncate_left, plain);
        buffer_release(&shown);
        return;
    }
    if (!plain && !truncate_left && name_has_parts(name)) {
        add_short(buffer, name, room);
        return;
    }
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

void svg_add_estimate(struct buffer *buffer, uint64_t samples, double error, struct text unit) {
    uint64_t tenths = (uint64_t)(10 * error + 0.5);
    if (!samples)
        return;
    buffer_add(buffer, TEXT("; "));
    buffer_add_grouped(buffer, samples);
    buffer_add(buffer, samples == 1 ? TEXT(" sample") : TEXT(" samples"));
    if (!estimate_has_error(unit))
        return;
    buffer_add(buffer, TEXT(", at most ±"));
    buffer_add_u64(buffer, tenths / 10);
    buffer_add_char(buffer, '.');
    buffer_add_u64(buffer, tenths % 10);
    buffer_add_char(buffer, '%');
}
