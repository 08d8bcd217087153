/*
 * Perf maps: the names of generated code, one line of "start size name" each, which a JIT writes to /tmp/perf-PID.map.
 *
 * A JIT that moves or frees code writes the new range but never removes the old one, so ranges overlap; the last one written wins. perf takes
 * whichever its tree yields first.
 */
#include "object/internal.h"

#include <ctype.h>

/* A hexadecimal number as strtoull reads it: spaces, a sign, 0x. The bytes used, 0 for none. */
static size_t hex_read(struct text t, uint64_t *value) {
    size_t at = 0;
    bool negative = false, overflow = false;
    while (at < t.length && isspace((unsigned char)t.data[at]))
        at++;
    if (at < t.length && (t.data[at] == '-' || t.data[at] == '+'))
        negative = t.data[at++] == '-';
    if (at + 2 < t.length && t.data[at] == '0' && (t.data[at + 1] | 0x20) == 'x' &&
        isxdigit((unsigned char)t.data[at + 2]))
        at += 2;
    size_t first = at;
    uint64_t number = 0;
    for (; at < t.length && isxdigit((unsigned char)t.data[at]); at++) {
        unsigned char c = (unsigned char)t.data[at];
        overflow |= number >> 60 != 0;
        number = number << 4 | (isdigit(c) ? (unsigned)c - '0' : (c | 0x20u) - 'a' + 10);
    }
    *value = overflow ? UINT64_MAX : negative ? -number : number;
    return at > first ? at : 0;
}

struct map_line {
    uint64_t start;
    uint64_t size;
    size_t name; /* where it begins in the line */
};

static bool line_parse(struct text line, struct map_line *parsed) {
    size_t at = hex_read(line, &parsed->start);
    if (!at || at >= line.length || !isspace((unsigned char)line.data[at]))
        return false;
    size_t used = hex_read(text_from(line, at), &parsed->size);
    at += used;
    if (!used || at >= line.length || !isspace((unsigned char)line.data[at]))
        return false;
    parsed->name = at + 1;
    return parsed->name < line.length;
}

/* perf steps over one byte after each number, whatever it is, and skips names of less than three bytes. */
static bool line_parse_loose(struct text line, struct map_line *parsed) {
    size_t at = hex_read(line, &parsed->start) + 1;
    if (at + 2 >= line.length)
        return false;
    at += hex_read(text_from(line, at), &parsed->size) + 1;
    if (at + 2 >= line.length)
        return false;
    parsed->name = at;
    return true;
}

static bool line_entry(struct text text, size_t from, size_t to, bool loose, struct entry *entry) {
    struct text line = text_upto(text_from(text, from), to - from);
    struct map_line parsed;
    if (loose ? !line_parse_loose(line, &parsed) : !line_parse(line, &parsed))
        return false;
    uint64_t size = parsed.size || loose ? parsed.size : 1;
    *entry = (struct entry){.start = parsed.start,
                            .end = saturating_add(parsed.start, size),
                            .name = (uint32_t)(from + parsed.name),
                            .global = 1};
    return true;
}

void perfmap_load(struct symbols *symbols, struct text text) {
    const struct quirks *quirks = &symbols->options->quirks;
    bool rounds_choose = quirks->symbols_by_arrival, loose = quirks->loose_map_lines;
    if (text.length > UINT32_MAX)
        text = text_upto(text, UINT32_MAX);
    /* perf takes the last byte of a line for its end, also where the file ends without one. */
    if (loose && text.length && text.data[text.length - 1] != '\n')
        text.length--;
    symbols->sources[0] = (struct symbols_source){.bytes = text, .terminator = '\n'};
    symbols->keep_names = quirks->lists_stay_mangled;
    budget_init(&symbols->budget, context_limits(symbols->options->context), text.length);
    struct perf_rounds rounds;
    struct entry entry;
    if (rounds_choose)
        perf_rounds_init(&rounds, symbols);
    for (size_t at = 0, end; at < text.length && list_may_grow(symbols, at); at = end + 1) {
        end = text_find(text_from(text, at), '\n');
        end = end == SIZE_MAX ? text.length : at + end;
        if (!line_entry(text, at, end, loose, &entry))
            continue;
        if (rounds_choose)
            perf_rounds_add(&rounds, &entry);
        else
            symbols_add(symbols, &entry);
    }
    if (rounds_choose)
        perf_rounds_seal(&rounds);
    else
        symbols_seal_newest(symbols);
}
