/*
 * Whether the description of a tracepoint may be given to libtraceevent, which trusts it: a kernel wrote it, so it thinks. A recording may
 * hold anything. So what is handed over has the shape that every format of the kernel's has, and nothing that makes the library's
 * parser call itself without end, divide by zero, or follow a field that is not there.
 *
 *     name: sched_waking\nID: 375\nformat:\n\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n…\n\nprint fmt: "…", REC->pid, …\n
 */
#include "view/script.h"

/* The library's parser calls itself for each bracket and operator. The kernel's own formats have nowhere near as many. */
enum { NESTING_LIMIT = 200, OPERATOR_LIMIT = 1000 };

/* ---- shape ---- */

static bool is_plain(struct text line) {
    for (size_t i = 0; i < line.length; i++)
        if ((line.data[i] < ' ' && line.data[i] != '\t') || line.data[i] == 127)
            return false;
    return true;
}

/* "\tfield:TYPE NAME;\toffset:N;\tsize:N;" and mostly "\tsigned:N;" */
static bool is_field(struct text line) {
    static const char *const parts[] = {"\tfield:", "\toffset:", "\tsize:", "\tsigned:"};
    size_t part = 0;
    for (; line.length && part < COUNT_OF(parts); part++) {
        size_t end = text_find(line, ';');
        if (end == SIZE_MAX || !text_starts(line, text_of(parts[part])))
            return false;
        line = text_from(line, end + 1);
    }
    return part >= 3 && line.length == 0;
}

static bool is_head(struct text line) {
    return line.length == 0 || text_starts(line, TEXT("name: ")) ||
           text_starts(line, TEXT("ID: ")) || text_equal(line, TEXT("format:")) || is_field(line);
}

static char closing(char c) {
    return c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : 0;
}

/* Every bracket and quote is closed, by its own kind; no more of them, or of operators between two commas, than can be. */
static bool is_expression(struct text line) {
    char open[NESTING_LIMIT];
    unsigned nesting = 0, operators = 0;
    bool quoted = false;
    for (size_t i = 0; i < line.length; i++) {
        char c = line.data[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        if (quoted || c == '"')
            continue;
        if (closing(c)) {
            if (nesting == NESTING_LIMIT)
                return false;
            open[nesting++] = closing(c);
        } else if ((c == ')' || c == ']' || c == '}') && (!nesting || open[--nesting] != c)) {
            return false;
        }
        operators = c == ',' ? 0 : operators + (strchr("+-*/%<>=!&|^~?:([{", c) != NULL);
        if (c == ';' || (unsigned char)c < ' ' || operators > OPERATOR_LIMIT)
            return false;
    }
    return !quoted && !nesting;
}

/* ---- divisions ---- */

static size_t skip_blanks(struct text t, size_t at) {
    while (at < t.length && (t.data[at] == ' ' || t.data[at] == '\t'))
        at++;
    return at;
}

/* How long the size of a basic type is that stands there; 0: none does. */
static size_t size_of_type(struct text t, size_t at) {
    static const char *const types[] = {"u8",   "u16",   "u32",          "u64",          "s8",
                                        "s16",  "s32",   "s64",          "char",         "int",
                                        "long", "short", "unsigned int", "unsigned long"};
    struct text rest = text_from(t, at < t.length ? at : t.length);
    if (!text_starts(rest, TEXT("sizeof(")))
        return 0;
    size_t end = text_find(rest, ')');
    for (size_t i = 0; i < COUNT_OF(types) && end != SIZE_MAX; i++)
        if (text_equal(text_from(text_upto(rest, end), 7), text_of(types[i])))
            return end + 1;
    return 0;
}

/* Whether a plain number other than 0 stands at `at`, bracketed or not, and nothing behind it that binds as strongly as a division. */
static bool is_divisor(struct text t, size_t at) {
    at = skip_blanks(t, at);
    bool bracket = at < t.length && t.data[at] == '(';
    at = skip_blanks(t, at + bracket);
    size_t start = at, size = size_of_type(t, at);
    bool zero = !size;
    at = start = at + size;
    for (; at < t.length && t.data[at] >= '0' && t.data[at] <= '9'; at++)
        zero &= t.data[at] == '0';
    if (zero || at - start > 9)
        return false;
    while (at < t.length && ((t.data[at] | 32) == 'l' || (t.data[at] | 32) == 'u'))
        at++;
    at = skip_blanks(t, at);
    if (bracket && (at == t.length || t.data[at] != ')'))
        return false;
    at = skip_blanks(t, at + bracket);
    return at >= t.length || (t.data[at] && strchr("),;+-<>=!&|^?:\n", t.data[at]));
}

/* The library divides by whatever it is given. Formats of the kernel's divide by constants, if at all. */
static bool format_divides_well(struct text format) {
    bool quoted = false;
    for (size_t i = 0; i < format.length; i++) {
        char c = format.data[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '/' || c == '%') && !is_divisor(format, i + 1))
            return false;
    }
    return true;
}

/* ---- fields ---- */

enum { FIELD_USES_LIMIT = 1000 };

static bool is_word(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
}

static struct text word_at(struct text t, size_t at) {
    size_t end = at;
    while (end < t.length && is_word(t.data[end]))
        end++;
    return text_from(text_upto(t, end), at);
}

/* "\tfield:char comm[16];…" is comm. */
static struct text field_name(struct text line) {
    struct text name = text_upto(line, text_find(line, ';'));
    size_t bracket = text_find(name, '[');
    name = text_trim(bracket == SIZE_MAX ? name : text_upto(name, bracket));
    size_t start = name.length;
    while (start && is_word(name.data[start - 1]))
        start--;
    return text_from(name, start);
}

static bool has_field(struct text head, struct text name) {
    while (head.length) {
        struct text line = text_take_line(&head);
        if (is_field(line) && text_equal(field_name(line), name))
            return true;
    }
    return false;
}

/* Whatever is printed of the record is a field that the head has. */
static bool fields_are_there(struct text head, struct text print) {
    bool quoted = false;
    unsigned uses = 0;
    for (size_t i = 0; i < print.length; i++) {
        struct text word = quoted ? (struct text){0} : word_at(print, i);
        if (quoted && print.data[i] == '\\')
            i++;
        else if (print.data[i] == '"')
            quoted = !quoted;
        if (text_equal(word, TEXT("REC")) &&
            (++uses > FIELD_USES_LIMIT || !text_starts(text_from(print, i + 3), TEXT("->")) ||
             !has_field(head, word_at(print, i + 5))))
            return false;
        i += word.length ? word.length - 1 : 0;
    }
    return true;
}

bool trace_format_is_sound(struct text format) {
    struct text whole = format;
    while (format.length && !text_starts(format, TEXT("print fmt: "))) {
        struct text line = text_take_line(&format);
        if (!is_plain(line) || !is_head(line))
            return false;
    }
    if (!format.length)
        return false;
    struct text print =
        text_trim(text_from(format, 11)); /* a string in it may have several lines */
    struct text head = text_upto(whole, whole.length - format.length);
    return is_expression(print) && format_divides_well(print) && fields_are_there(head, print);
}
