/*
 * Rules: "PATTERN self > +10%", "PATTERN total > +10%", "total > +5%".
 */
#include "gate/gate.h"

static bool is_space(char c) {
    return c == ' ' || c == '\t';
}

static struct text trimmed(struct text t) {
    while (t.length && is_space(t.data[0]))
        t = text_from(t, 1);
    while (t.length && is_space(t.data[t.length - 1]))
        t.length--;
    return t;
}

/* Remove the last word and return it. */
static struct text last_word(struct text *t) {
    size_t at = t->length;
    while (at && !is_space(t->data[at - 1]))
        at--;
    struct text word = text_from(*t, at);
    *t = trimmed(text_upto(*t, at));
    return word;
}

/* "+5%", "5 %", "0.1%": digits, at most one point, and the sign of per cent. */
static bool limit_parse(struct text t, double *limit) {
    if (t.length && t.data[0] == '+')
        t = text_from(t, 1);
    if (!t.length || t.data[t.length - 1] != '%')
        return false;
    t = trimmed(text_upto(t, t.length - 1));
    size_t points = 0;
    for (size_t i = 0; i < t.length; i++) {
        points += t.data[i] == '.';
        if (t.data[i] != '.' && (t.data[i] < '0' || t.data[i] > '9'))
            return false;
    }
    if (t.length <= points || points > 1)
        return false;
    uint64_t number = 0;
    double scale = 1;
    bool behind = false;
    for (size_t i = 0; i < t.length; i++) {
        if (t.data[i] == '.') {
            behind = true;
            continue;
        }
        if (number > UINT64_MAX / 10 - 1)
            return false;
        number = number * 10 + (uint64_t)(t.data[i] - '0');
        scale *= behind ? 10 : 1;
    }
    *limit = (double)number / scale / 100;
    return true;
}

/* A function's name may contain '>': use the last one. */
bool gate_rule_parse(const char *text, struct gate_rule *rule, struct error *error) {
    struct text whole = text_of(text), rest;
    size_t at = text_find_last(whole, '>');
    *rule = (struct gate_rule){.text = text};
    if (at != SIZE_MAX && limit_parse(trimmed(text_from(whole, at + 1)), &rule->limit)) {
        rest = trimmed(text_upto(whole, at));
        struct text metric = last_word(&rest);
        rule->self = text_equal(metric, TEXT("self"));
        rule->pattern = rest;
        if ((rule->self && rest.length) || text_equal(metric, TEXT("total")))
            return true;
    }
    return error_set(error, ERROR_USAGE,
                     "--fail-if '%s': not a rule such as 'total > +5%%', 'NAME self > +10%%' or "
                     "'NAME total > +10%%'",
                     text);
}
