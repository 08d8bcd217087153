/*
 * Patterns for frame names: PCRE2, limited to the syntax that means the same in JavaScript's RegExp with the flags "su", so that the page and
 * the commands find the same frames. A pattern that compiles is scanned once more for syntax that does not: backreferences, possessive
 * quantifiers, POSIX classes, \s (JavaScript's matches more spaces), options in the pattern and the like.
 *
 * Matching is bounded in steps and memory: a pattern that backtracks forever is an error and does not hang the command.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "stacks/pattern.h"

#include <pcre2.h>
#include <stdlib.h>

/* Far more than a sane pattern needs for the longest name, and less than a second. */
enum { MOST_STEPS = 1000000, MOST_DEPTH = 10000, MOST_KILOBYTES = 20000 };

struct pattern {
    char *text;
    pcre2_code *code; /* NULL: the text itself, byte for byte */
};

/* ---- what JavaScript reads otherwise ---- */

enum { MOST_GROUPS = 256 }; /* PCRE2 compiles no more than 250 within each other */

struct check {
    struct text pattern;
    size_t at;
    bool repeatable; /* what stands before may be repeated */
    size_t depth;
    bool is_assertion[MOST_GROUPS]; /* by depth */
};

static int check_peek(const struct check *c, size_t ahead) {
    return c->at + ahead < c->pattern.length ? (unsigned char)c->pattern.data[c->at + ahead] : -1;
}

static bool is_one_of(int c, const char *bytes) {
    return c > 0 && strchr(bytes, c);
}

static bool is_hex_digit(int c) {
    return is_one_of(c, "0123456789abcdefABCDEF");
}

/* Behind a backslash. *is_set: it stands for several characters. */
static const char *check_escape(struct check *c, bool in_class, bool *is_set) {
    int next = check_peek(c, 1);
    *is_set = is_one_of(next, "dDwW");
    c->at += 2;
    if (*is_set || is_one_of(next, "tnrf^$\\.*+?()[]{}|/") || (in_class && next == '-'))
        return NULL;
    if (next == 'x' && is_hex_digit(check_peek(c, 0)) && is_hex_digit(check_peek(c, 1))) {
        c->at += 2;
        return NULL;
    }
    c->at -= 2;
    if (is_one_of(next, "bB") && !in_class)
        return c->repeatable = false, c->at += 2, NULL;
    if (is_one_of(next, "sS"))
        return "\\s and \\S stand for other spaces in JavaScript; write [ ] or [^ ]";
    if (is_one_of(next, "0123456789"))
        return "a backreference differs in JavaScript";
    return "this escape differs in JavaScript";
}

/* One character of a class, or several. */
static const char *check_class_item(struct check *c, bool *is_set) {
    *is_set = false;
    if (check_peek(c, 0) == '\\')
        return check_escape(c, true, is_set);
    if (check_peek(c, 0) == '[' && is_one_of(check_peek(c, 1), ":.="))
        return "JavaScript has no POSIX classes";
    c->at++;
    return NULL;
}

static const char *check_class(struct check *c) {
    c->at += check_peek(c, 1) == '^' ? 2 : 1;
    if (check_peek(c, 0) == ']')
        return "a class that begins with ] is empty in JavaScript; write \\]";
    while (check_peek(c, 0) != ']' && check_peek(c, 0) >= 0) {
        bool from_set, to_set = false;
        const char *wrong = check_class_item(c, &from_set);
        bool is_range = check_peek(c, 0) == '-' && check_peek(c, 1) >= 0 && check_peek(c, 1) != ']';
        if (!wrong && is_range) {
            c->at++;
            wrong = check_class_item(c, &to_set);
        }
        if (wrong)
            return wrong;
        if (is_range && (from_set || to_set))
            return "a range in a class has one character at each end; write \\-";
    }
    c->at++;
    return NULL;
}

static const char *check_group(struct check *c) {
    static const char *const known[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!"};
    struct text rest = text_from(c->pattern, c->at);
    size_t length = check_peek(c, 1) == '?' || check_peek(c, 1) == '*' ? 0 : 1;
    bool is_assertion = false;
    for (size_t i = 0; i < COUNT_OF(known) && !length; i++)
        if (text_starts(rest, text_of(known[i]))) {
            length = strlen(known[i]);
            is_assertion = i > 0;
        }
    if (!length || c->depth + 1 == MOST_GROUPS)
        return "this kind of group does not exist or differs in JavaScript";
    c->is_assertion[++c->depth] = is_assertion;
    c->at += length;
    return NULL;
}

/* "{2}", "{2,}" or "{2,5}": how long it is; 0: it is none. */
static size_t braces_length(const struct check *c) {
    size_t length = 1, digits = 0;
    for (; is_one_of(check_peek(c, length), "0123456789"); length++)
        digits++;
    if (digits && check_peek(c, length) == ',')
        for (length++; is_one_of(check_peek(c, length), "0123456789");)
            length++;
    return digits && check_peek(c, length) == '}' ? length + 1 : 0;
}

static const char *check_quantifier(struct check *c) {
    size_t length = check_peek(c, 0) == '{' ? braces_length(c) : 1;
    if (!length)
        return "write \\{ for a literal {";
    if (!c->repeatable)
        return "this quantifier has nothing to repeat in JavaScript";
    c->repeatable = false;
    c->at += length + (check_peek(c, length) == '?');
    return NULL;
}

static const char *check_next(struct check *c) {
    bool is_set;
    int next = check_peek(c, 0);
    if (is_one_of(next, "*+?{"))
        return check_quantifier(c);
    c->repeatable = !is_one_of(next, "(|^$");
    if (next == '\\')
        return check_escape(c, false, &is_set);
    if (next == '[')
        return check_class(c);
    if (next == '(')
        return check_group(c);
    if (is_one_of(next, "]}"))
        return next == ']' ? "write \\] for a literal ]" : "write \\} for a literal }";
    if (next == ')' && c->depth)
        c->repeatable = !c->is_assertion[c->depth--];
    c->at++;
    return NULL;
}

const char *pattern_foreign(struct text pattern, size_t *at) {
    struct check c = {.pattern = pattern};
    const char *wrong = NULL;
    while (!wrong && c.at < pattern.length)
        wrong = check_next(&c);
    *at = c.at;
    return wrong;
}

/* ---- patterns ---- */

struct pattern *pattern_new(const char *text, struct error *error) {
    int number;
    size_t at;
    /* "." is any character, and "$" the end and nothing before it; bytes that are no UTF-8 match nothing. */
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOTALL |
                                         PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C,
                                     &number, &at, NULL);
    if (!code) {
        PCRE2_UCHAR message[256];
        pcre2_get_error_message(number, message, sizeof message);
        error_set(error, ERROR_USAGE, "'%s': %s (at byte %zu)", text, (const char *)message, at);
        return NULL;
    }
    const char *foreign = pattern_foreign(text_of(text), &at);
    if (foreign) {
        pcre2_code_free(code);
        error_set(error, ERROR_USAGE, "'%s': %s (at byte %zu)", text, foreign, at);
        return NULL;
    }
    struct pattern *pattern = pattern_exact_new(text);
    pattern->code = code;
    return pattern;
}

struct pattern *pattern_exact_new(const char *text) {
    struct pattern *pattern = memory_zero(1, sizeof *pattern);
    pattern->text = memory_copy(text, strlen(text));
    return pattern;
}

void pattern_free(struct pattern *pattern) {
    if (!pattern)
        return;
    pcre2_code_free(pattern->code);
    free(pattern->text);
    free(pattern);
}

const char *pattern_text(const struct pattern *pattern) {
    return pattern->text;
}

bool pattern_is_exact(const struct pattern *pattern) {
    return !pattern->code;
}

/* ---- matching ---- */

struct matcher {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_match_data *data;
};

static void *matcher_alloc(size_t size, void *nobody) {
    return memory_alloc(size);
}

static void matcher_release(void *memory, void *nobody) {
    free(memory);
}

struct matcher *matcher_new(void) {
    struct matcher *m = memory_zero(1, sizeof *m);
    m->memory = pcre2_general_context_create(matcher_alloc, matcher_release, NULL);
    m->limits = pcre2_match_context_create(m->memory);
    m->data = pcre2_match_data_create(1, m->memory);
    pcre2_set_match_limit(m->limits, MOST_STEPS);
    pcre2_set_depth_limit(m->limits, MOST_DEPTH);
    pcre2_set_heap_limit(m->limits, MOST_KILOBYTES);
    return m;
}

void matcher_free(struct matcher *m) {
    if (!m)
        return;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->limits);
    pcre2_general_context_free(m->memory);
    free(m);
}

bool matcher_find(struct matcher *m, const struct pattern *pattern, struct text name, bool *found,
                  struct error *error) {
    *found = false;
    if (!pattern->code) {
        *found = text_equal(name, text_of(pattern->text));
        return true;
    }
    name = name_unmarked(name);
    int result = pcre2_match(pattern->code, (PCRE2_SPTR)(name.data ? name.data : ""), name.length,
                             0, 0, m->data, m->limits);
    *found = result >= 0;
    if (result >= 0 || result == PCRE2_ERROR_NOMATCH)
        return true;
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(result, message, sizeof message);
    return error_set(error, ERROR_USAGE,
                     "the pattern '%s' was abandoned: %s, on a name of %zu bytes; write one that "
                     "backtracks less",
                     pattern->text, (const char *)message, name.length);
}
