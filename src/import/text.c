/*
 * Text as Rust's standard library sees it: white space, lossy UTF-8, and the repair of half-demangled Rust names.
 * inferno's output depends on each of them, byte for byte.
 */
#include "import/import.h"

/* ---- white space -------------------------------------------------------------------------- */

/* Return the length of the white space character that `t` begins with, or 0. */
static size_t space_at_start(struct text t) {
    const unsigned char *p = (const unsigned char *)t.data;
    if (t.length == 0)
        return 0;
    if (p[0] < 0x80)
        return p[0] == ' ' || (p[0] >= 9 && p[0] <= 13);
    if (t.length >= 2 && p[0] == 0xc2)
        return p[1] == 0x85 || p[1] == 0xa0 ? 2 : 0;
    if (t.length < 3)
        return 0;
    if (p[0] == 0xe1)
        return p[1] == 0x9a && p[2] == 0x80 ? 3 : 0;
    if (p[0] == 0xe2 && p[1] == 0x80)
        return p[2] <= 0x8a || p[2] == 0xa8 || p[2] == 0xa9 || p[2] == 0xaf ? 3 : 0;
    if (p[0] == 0xe2)
        return p[1] == 0x81 && p[2] == 0x9f ? 3 : 0;
    return p[0] == 0xe3 && p[1] == 0x80 && p[2] == 0x80 ? 3 : 0;
}

static size_t space_at_end(struct text t) {
    if (t.length == 0)
        return 0;
    if ((unsigned char)t.data[t.length - 1] < 0x80)
        return space_at_start(text_from(t, t.length - 1));
    for (size_t size = 2; size <= 3 && size <= t.length; size++)
        if (space_at_start(text_from(t, t.length - size)) == size)
            return size;
    return 0;
}

struct text text_trim_start(struct text t) {
    for (size_t size; (size = space_at_start(t));)
        t = text_from(t, size);
    return t;
}

struct text text_trim_end(struct text t) {
    for (size_t size; (size = space_at_end(t));)
        t.length -= size;
    return t;
}

struct text text_trim_both(struct text t) {
    return text_trim_start(text_trim_end(t));
}

/* ---- lossy UTF-8 -------------------------------------------------------------------------- */

/* Return the length of the character at `p`; if it is invalid, that of its maximal invalid part, and set *valid to
   false. */
static size_t utf8_part(const unsigned char *p, size_t left, bool *valid) {
    *valid = true;
    if (p[0] < 0x80)
        return 1;
    *valid = false;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    unsigned char least = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char most = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < length; i++) {
        if (i >= left || p[i] < least || p[i] > most)
            return i;
        least = 0x80, most = 0xbf;
    }
    *valid = true;
    return length;
}

static size_t utf8_valid_length(struct text t) {
    size_t at = 0;
    while (at < t.length) {
        bool valid;
        size_t length = utf8_part((const unsigned char *)t.data + at, t.length - at, &valid);
        if (!valid)
            break;
        at += length;
    }
    return at;
}

struct text text_lossy(struct text t, struct buffer *scratch) {
    size_t at = utf8_valid_length(t);
    if (at == t.length)
        return t;
    scratch->count = 0;
    buffer_add(scratch, text_upto(t, at));
    while (at < t.length) {
        bool valid;
        size_t length = utf8_part((const unsigned char *)t.data + at, t.length - at, &valid);
        buffer_add(scratch, valid ? (struct text){t.data + at, length} : TEXT("\xef\xbf\xbd"));
        at += length;
    }
    return buffer_text(scratch);
}

/* ---- Rust's legacy names ------------------------------------------------------------------ */

enum { RUST_HASH = 17 }; /* 'h' and sixteen hexadecimal digits */

static const struct {
    const char *code;
    char means;
} rust_codes[] = {
    {"$SP$", '@'},   {"$BP$", '*'},  {"$RF$", '&'},  {"$LT$", '<'},  {"$GT$", '>'},
    {"$LP$", '('},   {"$RP$", ')'},  {"$C$", ','},   {"$u7e$", '~'}, {"$u20$", ' '},
    {"$u27$", '\''}, {"$u3d$", '='}, {"$u5b$", '['}, {"$u5d$", ']'}, {"$u7b$", '{'},
    {"$u7d$", '}'},  {"$u3b$", ';'}, {"$u2b$", '+'}, {"$u21$", '!'}, {"$u22$", '"'},
};

static bool rust_ends_in_hash(struct text symbol) {
    if (symbol.length < RUST_HASH || symbol.data[symbol.length - RUST_HASH] != 'h')
        return false;
    uint64_t hash;
    return text_hex_to_u64(text_from(symbol, symbol.length - RUST_HASH + 1), &hash);
}

/* Translate the code that `rest` begins with; return its length, or 0 if there is none. */
static size_t rust_translate(struct text rest, struct buffer *out) {
    for (size_t i = 0; i < COUNT_OF(rust_codes); i++) {
        struct text code = text_of(rust_codes[i].code);
        if (text_starts(rest, code)) {
            buffer_add_char(out, rust_codes[i].means);
            return code.length;
        }
    }
    return 0;
}

static size_t rust_plain(struct text rest) {
    size_t length = 0;
    while (length < rest.length && rest.data[length] != '$' && rest.data[length] != '.')
        length++;
    return length;
}

bool rust_repair(struct text symbol, struct buffer *out) {
    if (!rust_ends_in_hash(symbol))
        return false;
    struct text rest = text_upto(symbol, symbol.length - RUST_HASH);
    if (text_ends(rest, TEXT("::")))
        rest.length -= 2;
    if (text_starts(rest, TEXT("_$")))
        rest = text_from(rest, 1);
    while (rest.length) {
        size_t used;
        if (text_starts(rest, TEXT(".."))) {
            buffer_add(out, TEXT("::"));
            used = 2;
        } else if (rest.data[0] == '.') {
            buffer_add_char(out, '.');
            used = 1;
        } else if (rest.data[0] == '$') {
            used = rust_translate(rest, out);
        } else {
            used = rust_plain(rest);
            buffer_add(out, text_upto(rest, used));
        }
        if (!used) { /* an unknown code ends the translation */
            buffer_add(out, rest);
            break;
        }
        rest = text_from(rest, used);
    }
    return true;
}
