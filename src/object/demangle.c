#include "object/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

/*
 * A mangled name can stand for an exponentially longer one, by references to its own parts. What grows beyond any real
 * name is left as it is. libiberty gives up on names of more than 1024 bytes unless told that recursion is fine; up to
 * LONG_NAME bytes it is: its stack stays below 4 MB.
 */
enum { OUTPUT_MAX = 1 << 18, LIMITED_NAME = 1024, LONG_NAME = 6000 };

struct output {
    struct buffer *buffer;
    size_t before;
    jmp_buf too_long;
};

static void output_add(const char *bytes, size_t size, void *context) {
    struct output *output = context;
    /* The callback forms of the demanglers hold no memory (Rust: a decoded identifier), so they can be left like this. */
    if (output->buffer->count - output->before + size > OUTPUT_MAX)
        longjmp(output->too_long, 1);
    buffer_add(output->buffer, (struct text){bytes, size});
}

/* Rust first: its legacy names are valid C++ names too. */
static bool libiberty_demangle(const char *name, size_t length, int flags, struct buffer *buffer,
                               bool *costly) {
    struct output output = {.buffer = buffer, .before = buffer->count};
    if (setjmp(output.too_long) != 0) {
        *costly = true;
    } else {
        if (rust_demangle_callback(name, flags | DMGL_AUTO, output_add, &output))
            return true;
        buffer->count = output.before;
        *costly = !demangling_cpp_is_cheap(name, length, flags);
        if (!*costly && cplus_demangle_v3_callback(name, flags | DMGL_AUTO, output_add, &output))
            return true;
    }
    buffer->count = output.before;
    return false;
}

static bool dlang_name(const char *name, size_t length, struct buffer *buffer, bool *costly) {
    if (strncmp(name, "_D", 2) != 0)
        return false;
    *costly = !demangling_d_is_cheap(name, length);
    char *result = *costly ? NULL : dlang_demangle(name, 0);
    if (result)
        buffer_add(buffer, text_of(result));
    free(result);
    return result != NULL;
}

/* ---- perf's second look at Rust ---- */

/*
 * perf 6.1 unescapes, in what the C++ demangler made, names that end in "::h" and 16 hexadecimal digits, at least 5 and at most 15
 * of them different. libiberty's Rust demangler is there before it, so this is for what that one refuses.
 */
static bool rust_hash_at(const char *s) {
    unsigned seen = 0;
    if (strncmp(s, "::h", 3) != 0)
        return false;
    for (int i = 3; i < 19; i++) {
        const char *digit = s[i] ? strchr("0123456789abcdef", s[i]) : NULL;
        if (!digit)
            return false;
        seen |= 1u << (strchr("0123456789abcdef", s[i]) - "0123456789abcdef");
    }
    int different = __builtin_popcount(seen);
    return different >= 5 && different <= 15;
}

static const struct {
    struct text escape;
    char stands_for;
} rust_escapes[] = {
    {TEXT("$C$"), ','},   {TEXT("$SP$"), '@'},   {TEXT("$BP$"), '*'},  {TEXT("$RF$"), '&'},
    {TEXT("$LT$"), '<'},  {TEXT("$GT$"), '>'},   {TEXT("$LP$"), '('},  {TEXT("$RP$"), ')'},
    {TEXT("$u20$"), ' '}, {TEXT("$u27$"), '\''}, {TEXT("$u5b$"), '['}, {TEXT("$u5d$"), ']'},
    {TEXT("$u7e$"), '~'},
};

/* The number of the escape that `t` begins with, or -1. */
static int rust_escape(struct text t) {
    for (size_t i = 0; i < COUNT_OF(rust_escapes); i++)
        if (text_starts(t, rust_escapes[i].escape))
            return (int)i;
    return -1;
}

static bool rust_plain(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == ':' || c == '.';
}

static bool looks_rust(struct text name) {
    for (size_t i = 0; i < name.length;) {
        int escape = rust_escape(text_from(name, i));
        if (escape >= 0)
            i += rust_escapes[escape].escape.length;
        else if (!rust_plain(name.data[i]) || text_starts(text_from(name, i), TEXT("...")))
            return false;
        else
            i++;
    }
    return true;
}

/* In place: nothing grows. */
static size_t rust_unescape(char *name, size_t length) {
    size_t to = 0;
    for (size_t i = 0; i < length;) {
        int escape = rust_escape((struct text){name + i, length - i});
        if (escape >= 0) {
            i += rust_escapes[escape].escape.length;
            name[to++] = rust_escapes[escape].stands_for;
        } else if (name[i] == '_' && (i == 0 || name[i - 1] == ':') && i + 1 < length &&
                   name[i + 1] == '$') {
            i++;
        } else if (name[i] == '.' && i + 1 < length && name[i + 1] == '.') {
            i += 2;
            name[to++] = ':';
            name[to++] = ':';
        } else {
            name[to++] = name[i] == '.' ? '-' : name[i];
            i++;
        }
    }
    return to;
}

static void perf_rust(struct buffer *buffer, size_t before) {
    size_t length = buffer->count - before;
    buffer_add_char(buffer, 0);
    buffer->count--;
    if (length <= 19 || !rust_hash_at(buffer->items + buffer->count - 19))
        return;
    char *name = buffer->items + before;
    if (looks_rust((struct text){name, length - 19}))
        buffer->count = before + rust_unescape(name, length - 19);
}

/* ---- OCaml: camlModule__function_123, $xx for other characters ---- */

static int xdigit_value(char c) {
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static bool ocaml_name(const char *name, struct buffer *buffer) {
    if (strncmp(name, "caml", 4) != 0 || !isupper((unsigned char)name[4]))
        return false;
    for (const char *s = name + 4; *s;) {
        if (s[0] == '_' && s[1] == '_') {
            buffer_add_char(buffer, '.');
            s += 2;
        } else if (s[0] == '$' && isxdigit((unsigned char)s[1]) && isxdigit((unsigned char)s[2])) {
            buffer_add_char(buffer, (char)(xdigit_value(s[1]) << 4 | xdigit_value(s[2])));
            s += 3;
        } else {
            buffer_add_char(buffer, *s++);
        }
    }
    return true;
}

/* ---- Java: Lpackage/Class;method(ILother/Class;)V, as JITs write it; the return type is left out ---- */

enum java_mode { JAVA_START, JAVA_CLASS, JAVA_METHOD, JAVA_TYPES, JAVA_TYPE_CLASS };

struct java {
    enum java_mode mode;
    unsigned types;
    /* Brackets seen and not yet shown: perf shows them behind the next basic type. */
    unsigned arrays;
};

static const char *java_basic(char c) {
    static const char letters[] = "BCDFIJSZ";
    static const char *const names[] = {"byte", "char", "double", "float",
                                        "int",  "long", "short",  "boolean"};
    const char *at = strchr(letters, c);
    return at && c ? names[at - letters] : NULL;
}

static void java_type(struct java *java, const char *name, bool counted, struct buffer *buffer) {
    if (counted && java->types++)
        buffer_add(buffer, TEXT(", "));
    buffer_add(buffer, text_of(name));
    for (; java->arrays; java->arrays--)
        buffer_add(buffer, TEXT("[]"));
}

/* A letter that may stand for a type, or only for itself. */
static void java_letter(struct java *java, char c, struct buffer *buffer) {
    if (c == 'L' && java->mode == JAVA_START) {
        java->mode = JAVA_CLASS;
    } else if (java->mode != JAVA_TYPES) {
        buffer_add_char(buffer, c);
    } else if (c == 'L') {
        if (java->types++)
            buffer_add(buffer, TEXT(", "));
        java->mode = JAVA_TYPE_CLASS;
    } else if (c == 'V') {
        java_type(java, "void", false, buffer);
    } else if (java_basic(c)) {
        java_type(java, java_basic(c), true, buffer);
    } else {
        buffer_add_char(buffer, c);
    }
}

/* A mark, which is right only in its place. */
static bool java_mark(struct java *java, const char *s, struct buffer *buffer) {
    bool in_class = java->mode == JAVA_CLASS || java->mode == JAVA_TYPE_CLASS;
    switch (*s) {
    case '[':
        java->arrays++;
        return java->mode == JAVA_TYPES;
    case '(':
        buffer_add_char(buffer, '(');
        if (java->mode != JAVA_METHOD)
            return false;
        java->mode = JAVA_TYPES;
        return true;
    case ')':
        buffer_add_char(buffer, ')');
        java->types = 0;
        return java->mode == JAVA_TYPES;
    case ';':
        if (java->mode == JAVA_CLASS && isalpha((unsigned char)s[1]))
            buffer_add_char(buffer, '.');
        java->mode = java->mode == JAVA_CLASS ? JAVA_METHOD : JAVA_TYPES;
        return in_class;
    default: /* '/' */
        buffer_add_char(buffer, '.');
        return in_class;
    }
}

static bool java_name(const char *name, struct buffer *buffer) {
    size_t before = buffer->count;
    const char *end = strrchr(name, ')');
    struct java java = {0};
    if (!end)
        return false;
    for (const char *s = name; s <= end; s++) {
        if (!strchr("[();/", *s)) {
            java_letter(&java, *s, buffer);
        } else if (!java_mark(&java, s, buffer)) {
            buffer->count = before;
            return false;
        }
    }
    return true;
}

/* ---- all of them ---- */

static bool demangle_string(const struct objects_options *options, const char *name, size_t length,
                            struct buffer *buffer, bool *costly) {
    size_t before = buffer->count;
    if (options->quirks.names_without_arguments) {
        if (libiberty_demangle(name, length, DMGL_NO_OPTS, buffer, costly)) {
            perf_rust(buffer, before);
            return true;
        }
        return ocaml_name(name, buffer) || java_name(name, buffer);
    }
    int flags = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;
    if (length > LONG_NAME)
        return false;
    if (length > LIMITED_NAME)
        flags |= DMGL_NO_RECURSE_LIMIT;
    return libiberty_demangle(name, length, flags, buffer, costly) ||
           dlang_name(name, length, buffer, costly) || ocaml_name(name, buffer) ||
           java_name(name, buffer);
}

bool demangle(const struct objects_options *options, struct text name, struct buffer *buffer,
              bool *costly) {
    char stack[256];
    bool ignored = false;
    costly = costly ? costly : &ignored;
    *costly = false;
    if (options->no_demangle || name.length == 0)
        return false;
    char *string = stack;
    if (name.length >= sizeof stack)
        string = memory_copy(name.data, name.length);
    else
        memcpy(stack, name.data, name.length);
    string[name.length] = 0;
    bool fine = demangle_string(options, string, strlen(string), buffer, costly);
    if (string != stack)
        free(string);
    return fine;
}
