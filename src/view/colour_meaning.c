/*
 * Palettes that distinguish languages and layers by the spelling of names. The rules are inferno's, which are flamegraph.pl's with mistakes
 * fixed; they apply to names as shown, including marks (_[k], _[j], _[i]).
 */
#include "view/colour.h"

static bool has(struct text name, const char *part) {
    return text_search(name, text_of(part)) != SIZE_MAX;
}

static bool starts(struct text name, const char *prefix) {
    return text_starts(name, text_of(prefix));
}

static bool is_marked(struct text name, char letter, uint32_t kinds, uint32_t kind) {
    char mark[] = {'_', '[', letter, ']'};
    return kinds & kind || text_ends(name, (struct text){mark, sizeof mark});
}

static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}

static enum palette by_java(struct text name, uint32_t kinds) {
    if (is_marked(name, 'k', kinds, KIND_KERNEL))
        return PALETTE_ORANGE;
    if (is_marked(name, 'i', kinds, KIND_INLINED))
        return PALETTE_AQUA;
    if (is_marked(name, 'j', kinds, KIND_JIT))
        return PALETTE_GREEN;
    if (has(name, "::") || starts(name, "-[") || starts(name, "+["))
        return PALETTE_YELLOW;
    struct text class = starts(name, "L") ? text_from(name, 1) : name;
    bool is_java = has(name, "/") || (has(name, ".") && !starts(name, "[")) ||
                   (class.length && is_upper(class.data[0]));
    return is_java ? PALETTE_GREEN : PALETTE_RED;
}

static bool is_blank(struct text name) {
    return text_trim(name).length == 0;
}

/* From the first slash on. */
static struct text path_in(struct text name) {
    size_t slash = text_find(name, '/');
    return slash == SIZE_MAX ? TEXT("") : text_from(name, slash);
}

static enum palette by_js(struct text name, uint32_t kinds) {
    if (is_blank(name))
        return PALETTE_GREEN;
    if (is_marked(name, 'k', kinds, KIND_KERNEL))
        return PALETTE_ORANGE;
    if (is_marked(name, 'j', kinds, KIND_JIT))
        return has(name, "/") ? PALETTE_GREEN : PALETTE_AQUA;
    if (has(name, "::"))
        return PALETTE_YELLOW;
    if (has(name, ":"))
        return PALETTE_AQUA;
    struct text path = path_in(name);
    if (!has(path, ".js"))
        return PALETTE_RED;
    return has(path, "node_modules/") ? PALETTE_PURPLE : PALETTE_GREEN;
}

static enum palette by_perl(struct text name, uint32_t kinds) {
    if (is_marked(name, 'k', kinds, KIND_KERNEL))
        return PALETTE_ORANGE;
    if (has(name, "Perl") || has(name, ".pl"))
        return PALETTE_GREEN;
    return has(name, "::") ? PALETTE_YELLOW : PALETTE_RED;
}

/* "pythonX.Y" as one part of a path: the interpreter's own library. */
static bool is_python_part(struct text part) {
    if (!starts(part, "python"))
        return false;
    struct text version = text_from(part, 6);
    size_t dot = text_find(version, '.');
    if (dot == SIZE_MAX || dot == 0 || dot + 1 == version.length)
        return false;
    for (size_t i = 0; i < version.length; i++)
        if (i != dot && (version.data[i] < '0' || version.data[i] > '9'))
            return false;
    return true;
}

static bool has_python_part(struct text name) {
    for (size_t start = 0; start < name.length;) {
        size_t end = start;
        while (end < name.length && name.data[end] != '/' && name.data[end] != '\\')
            end++;
        if (is_python_part((struct text){name.data + start, end - start}))
            return true;
        start = end + 1;
    }
    return false;
}

static enum palette by_python(struct text name) {
    if (has(name, "site-packages"))
        return PALETTE_AQUA;
    bool is_own = has_python_part(name) || starts(name, "<built-in") || starts(name, "<method") ||
                  starts(name, "<frozen");
    return is_own ? PALETTE_YELLOW : PALETTE_RED;
}

/* core, std or alloc, also as "<core::…"; futures made of async functions are the program's own. */
static bool is_rust_library(struct text name) {
    struct text bare = starts(name, "<") ? text_from(name, 1) : name;
    return (starts(bare, "core::") || starts(bare, "std::") || starts(bare, "alloc::")) &&
           !starts(name, "<core::future::from_generator::GenFuture");
}

static enum palette by_rust(struct text name) {
    size_t backtick = text_find(name, '`');
    struct text bare = backtick == SIZE_MAX ? name : text_from(name, backtick + 1);
    if (is_rust_library(bare))
        return PALETTE_ORANGE;
    return has(bare, "::") ? PALETTE_AQUA : PALETTE_YELLOW;
}

enum palette palette_by_meaning(enum palette palette, struct text name, uint32_t kinds) {
    switch (palette) {
    case PALETTE_JAVA:
        return by_java(name, kinds);
    case PALETTE_JS:
        return by_js(name, kinds);
    case PALETTE_PERL:
        return by_perl(name, kinds);
    case PALETTE_PYTHON:
        return by_python(name);
    case PALETTE_RUST:
        return by_rust(name);
    case PALETTE_WAKEUP:
        return PALETTE_AQUA;
    case PALETTE_CHAIN:
        return is_marked(name, 'w', kinds, KIND_WAKER) ? PALETTE_AQUA : PALETTE_BLUE;
    default:
        return palette;
    }
}
