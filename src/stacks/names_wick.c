/*
 * Name a frame by wick's rules. docs/differences.md compares them with inferno's.
 */
#include "stacks/names.h"

#include <ctype.h>

/* ---- argument lists ----------------------------------------------------------------------- */

/* Longest first. `operator` alone, as in `operator new` or `operator int`, needs no care. */
static const char *const operators[] = {
    "<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "<", ">",
};

static bool is_word(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' ||
           (unsigned char)c >= 0x80;
}

/* How long the operator name at `at` is, if its signs could be taken for brackets; else 0. */
static size_t operator_length(struct text name, size_t at) {
    struct text rest = text_from(name, at);
    if ((at && is_word(name.data[at - 1])) || !text_starts(rest, TEXT("operator")))
        return 0;
    rest = text_from(rest, 8);
    for (size_t i = 0; i < COUNT_OF(operators); i++)
        if (text_starts(rest, text_of(operators[i])))
            return 8 + strlen(operators[i]);
    return 0;
}

/* Whether it ends in an operator whose signs are no brackets, as in `operator==`. */
static bool ends_in_operator(struct text t) {
    size_t end = t.length;
    while (end && strchr("=!+-*/%&|^~,", t.data[end - 1]))
        end--;
    return end < t.length && text_ends(text_upto(t, end), TEXT("operator"));
}

/* An argument list follows a name or template arguments directly; brackets behind `::`, `.` or a space are part of the name:
   an anonymous namespace, Go's receivers, a function pointer. */
static bool may_be_arguments(struct text name, size_t at, size_t after_operator) {
    if (at == 0)
        return false;
    char before = name.data[at - 1];
    return at == after_operator || is_word(before) || before == '>' || before == ']' ||
           before == '}' || ends_in_operator(text_upto(name, at));
}

static size_t matching_bracket(struct text name, size_t open) {
    size_t depth = 0;
    for (size_t i = open; i < name.length; i++) {
        depth += name.data[i] == '(';
        if (name.data[i] == ')' && --depth == 0)
            return i;
    }
    return name.length;
}

/* `f(int)::{lambda()#1}` goes on behind the list, and so does `f() const::x`: where it does, or 0. */
static size_t scope_after(struct text name, size_t close) {
    if (close >= name.length)
        return 0;
    struct text rest = text_from(name, close + 1);
    static const char *const qualifiers[] = {" const", " volatile", " &&", " &"};
    for (size_t i = 0; i < COUNT_OF(qualifiers); i++)
        if (text_starts(rest, text_of(qualifiers[i])))
            rest = text_from(rest, strlen(qualifiers[i]));
    bool goes_on = text_starts(rest, TEXT("::")) || text_starts(rest, TEXT("."));
    return goes_on ? (size_t)(rest.data - name.data) : 0;
}

/* Where the argument list of a demangled name begins, or its length. One pass, but for the pairs of brackets skipped over: each of those is
   passed twice. */
static size_t arguments_start(struct text name) {
    static const bool matters[256] = {
        ['o'] = true, ['('] = true, [')'] = true, ['<'] = true, ['>'] = true,
        ['['] = true, [']'] = true, ['{'] = true, ['}'] = true};
    size_t depth = 0, after_operator = SIZE_MAX;
    for (size_t i = 0; i < name.length;) {
        char c = name.data[i];
        if (!matters[(unsigned char)c]) {
            i++;
            continue;
        }
        size_t length = c == 'o' ? operator_length(name, i) : 0;
        if (length) {
            i += length;
            after_operator = i;
            continue;
        }
        if (c == '(' && depth == 0 && may_be_arguments(name, i, after_operator)) {
            size_t scope = scope_after(name, matching_bracket(name, i));
            if (!scope)
                return i;
            i = scope;
            continue;
        }
        if (c == '<' || c == '{' || c == '[' || c == '(')
            depth++;
        else if (depth && (c == '}' || c == ']' || c == ')' ||
                           (c == '>' && !(i && name.data[i - 1] == '-'))))
            depth--;
        i++;
    }
    return name.length;
}

/* ---- names -------------------------------------------------------------------------------- */

void buffer_add_frame_name(struct buffer *buffer, struct text t) {
    size_t start = buffer->count;
    buffer_add(buffer, t);
    for (size_t i = start; i < buffer->count; i++) {
        char c = buffer->items[i];
        c = c == ';' ? ':' : c;
        buffer->items[i] = c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
    }
}

static struct text base_of(struct text path) {
    if (text_ends(path, TEXT(" (deleted)")))
        path.length -= 10;
    size_t slash = text_find_last(path, '/');
    return slash == SIZE_MAX || slash + 1 == path.length ? path : text_from(path, slash + 1);
}

/* `[libc.so.6]`; what has brackets of its own, as `[kernel.kallsyms]` has, keeps those. */
static void name_unresolved(struct namer *namer, const struct named_frame *frame) {
    struct buffer *out = &namer->name;
    struct text base = base_of(frame->object);
    if (base.length > 2 && base.data[0] == '[' && base.data[base.length - 1] == ']')
        base = (struct text){base.data + 1, base.length - 2};
    buffer_add_char(out, '[');
    buffer_add_frame_name(out, base);
    if (namer->options->addresses && frame->address.length) {
        buffer_add(out, TEXT(" <"));
        buffer_add(out, frame->address);
        buffer_add_char(out, '>');
    }
    buffer_add_char(out, ']');
}

void namer_mark(struct namer *namer, uint32_t kinds) {
    const struct naming_options *options = namer->options;
    if (options->mark_inline && kinds & KIND_INLINED)
        buffer_add(&namer->name, TEXT("_[i]"));
    else if (options->mark_kernel && kinds & KIND_KERNEL)
        buffer_add(&namer->name, TEXT("_[k]"));
    else if (options->mark_jit && kinds & KIND_JIT)
        buffer_add(&namer->name, TEXT("_[j]"));
}

void namer_add_source(struct namer *namer, struct text file, uint32_t line) {
    if (!namer->options->source_lines || !file.length)
        return;
    buffer_add_char(&namer->name, ':');
    buffer_add_frame_name(&namer->name, base_of(file));
    buffer_add_char(&namer->name, ':');
    buffer_add_u64(&namer->name, line);
}

/* Java's `Lorg/x/Y;::call(I)V` is `org/x/Y:::call`. Names with a space are JavaScript's, with a path that may hold anything. */
static void name_jit(struct namer *namer, struct text piece) {
    if (text_find(piece, ' ') == SIZE_MAX) {
        piece = text_upto(piece, arguments_start(piece));
        if (piece.length > 1 && piece.data[0] == 'L' && text_find(piece, '/') != SIZE_MAX)
            piece = text_from(piece, 1);
    }
    buffer_add_frame_name(&namer->name, piece);
}

static void push_resolved(struct namer *namer, const struct named_frame *frame, uint32_t kinds) {
    namer_add_source(namer, frame->file, frame->line);
    namer_mark(namer, kinds);
    namer_push(namer, frame->object, kinds);
}

/* perf-map-agent writes inlined Java functions as `caller->callee`; no other source writes such arrows. */
static void names_jit(struct namer *namer, const struct named_frame *frame, struct text rest) {
    for (uint32_t inlined = 0;; inlined = KIND_INLINED) {
        size_t arrow = text_search(rest, TEXT("->"));
        namer->name.count = 0;
        name_jit(namer, arrow == SIZE_MAX ? rest : text_upto(rest, arrow));
        push_resolved(namer, frame, frame->kinds | inlined);
        if (arrow == SIZE_MAX)
            break;
        rest = text_from(rest, arrow + 2);
    }
}

void names_wick(struct namer *namer, const struct named_frame *frame) {
    namer->name.count = 0;
    if (text_equal(frame->symbol, TEXT("[unknown]"))) {
        if (text_equal(frame->object, TEXT("[unknown]")) && !namer->options->keep_unknown)
            return;
        name_unresolved(namer, frame);
        namer_mark(namer, frame->kinds);
        namer_push(namer, frame->object, frame->kinds | KIND_UNKNOWN);
        return;
    }
    namer->repaired.count = 0;
    struct text symbol = frame->symbol;
    if (rust_repair(symbol, &namer->repaired))
        symbol = buffer_text(&namer->repaired);
    namer->cut = namer_skips_after(namer, symbol);
    if (frame->kinds & KIND_JIT) {
        names_jit(namer, frame, symbol);
        return;
    }
    buffer_add_frame_name(&namer->name, text_upto(symbol, arguments_start(symbol)));
    push_resolved(namer, frame, frame->kinds);
}

struct text name_unmarked(struct text name) {
    if (name.length < 4)
        return name;
    const char *end = name.data + name.length - 4;
    bool marked =
        end[0] == '_' && end[1] == '[' && end[3] == ']' &&
        memchr("kjiw01", end[2], 6); /* 0 and 1: async-profiler's, by interpreter and compiler */
    return marked ? text_upto(name, name.length - 4) : name;
}

/* ---- less of a name ---- */

/* Longer names are cut as they are, because folding may cost their length squared; so in web/names.js. */
enum { FOLDABLE = 4000 };

/* Return where the `<` at the start of the text is closed, or the text's length. */
static size_t matching_angle(struct text t) {
    size_t depth = 0;
    for (size_t i = 0; i < t.length; i++) {
        if (t.data[i] == '(')
            i = matching_bracket(t, i);
        else if (t.data[i] == '<')
            depth++;
        else if (t.data[i] == '>' && t.data[i - 1] != '-' && --depth == 0)
            return i;
    }
    return t.length;
}

/* Where a name ends that has template arguments behind it, as in `vector<int>`, Rust's `collect::<Vec>` or `operator<< <char>`; 0: the `<` does
   not open any, as in `<module>`. */
static size_t before_template(struct text before, size_t after_operator) {
    size_t end = before.length;
    if (end && (is_word(before.data[end - 1]) || end == after_operator || ends_in_operator(before)))
        return end;
    if (end && before.data[end - 1] == ' ' && end - 1 == after_operator)
        return end - 1;
    bool turbofish = end > 2 && text_ends(before, TEXT("::"));
    return turbofish && is_word(before.data[end - 3]) ? end - 2 : 0;
}

/* In place. A bracket that nothing closes stays as it is. */
static size_t strip_templates(char *name, size_t length) {
    size_t to = 0, after_operator = SIZE_MAX;
    for (size_t from = 0; from < length;) {
        struct text rest = {name + from, length - from};
        size_t taken = to && is_word(name[to - 1]) ? 0 : operator_length(rest, 0);
        if (taken)
            after_operator = to + taken;
        size_t start =
            rest.data[0] == '<' ? before_template((struct text){name, to}, after_operator) : 0;
        size_t close = start ? matching_angle(rest) : rest.length;
        if (close < rest.length) {
            from += close + 1;
            to = start;
            continue;
        }
        taken = taken ? taken : 1;
        memmove(name + to, rest.data, taken);
        to += taken;
        from += taken;
    }
    return to;
}

/* Return where the `[` at the start of the text is closed, or the text's length. */
static size_t matching_square(struct text t) {
    size_t depth = 0;
    for (size_t i = 0; i < t.length; i++) {
        depth += t.data[i] == '[';
        if (t.data[i] == ']' && --depth == 0)
            return i;
    }
    return t.length;
}

/* The same as strip_templates(), but leave a mark for what is removed, and for the type arguments that Go writes. */
void name_add_folded(struct buffer *buffer, struct text name) {
    size_t begin = buffer->count, after_operator = SIZE_MAX;
    vector_reserve(buffer, begin + name.length);
    for (size_t from = 0; from < name.length;) {
        struct text rest = text_from(name, from);
        struct text before = {buffer->items + begin, buffer->count - begin};
        bool in_word = before.length && is_word(before.data[before.length - 1]);
        size_t taken = in_word ? 0 : operator_length(rest, 0);
        if (taken)
            after_operator = before.length + taken;
        bool opens = rest.data[0] == '<' && before_template(before, after_operator);
        bool is_shape = in_word && text_starts(rest, TEXT("[go.shape."));
        size_t close = opens      ? matching_angle(rest)
                       : is_shape ? matching_square(rest)
                                  : rest.length;
        if (close < rest.length)
            buffer_add(buffer, is_shape ? TEXT("[…]") : TEXT("‹…›"));
        else
            buffer_add(buffer, text_upto(rest, taken ? taken : 1));
        from += close < rest.length ? close + 1 : taken ? taken : 1;
    }
}

static size_t characters(struct text t) {
    size_t count = 0;
    for (size_t i = 0; i < t.length; i++)
        count += ((unsigned char)t.data[i] & 0xc0) != 0x80;
    return count;
}

/* Return the offset of character NUMBER. */
static size_t character_start(struct text t, size_t number) {
    size_t at = 0;
    for (; at < t.length; at++)
        if (((unsigned char)t.data[at] & 0xc0) != 0x80 && number-- == 0)
            break;
    return at;
}

/* Whether what follows a dot is a suffix by which a compiler marks a part or a variant of a function: `f.isra.0`, `f.cold`, Go's `f.abi0`. */
static bool is_variant(struct text t) {
    static const char *const variants[] = {"isra", "part",  "constprop", "cold",
                                           "llvm", "clone", "lto_priv",  "abi"};
    for (size_t i = 0; i < COUNT_OF(variants); i++)
        if (text_starts(t, text_of(variants[i])))
            return true;
    return t.length && t.data[0] >= '0' && t.data[0] <= '9';
}

/* `/lib/libc.so.6`, `src/parse.c:12`. */
static bool is_file(struct text t) {
    size_t colon = text_find_last(t, ':');
    return (t.length && t.data[0] == '/') || text_starts(t, TEXT("../")) ||
           (colon != SIZE_MAX && colon + 1 < t.length && t.data[colon + 1] >= '0' &&
            t.data[colon + 1] <= '9');
}

/* Return where the function's own name begins, after its namespaces, types and packages; 0 if it has none of these. A closure has no name but
   that of the function around it. */
static size_t own_name(struct text t) {
    size_t depth = 0, own = 0, dotted = 0, slash = text_find_last(t, '/');
    bool in_closure = false;
    for (size_t i = 0; i < t.length; i++) {
        struct text rest = text_from(t, i + 1);
        if (strchr("<({[", t.data[i]))
            depth++;
        else if (strchr(">)}]", t.data[i]) && depth)
            depth--;
        else if (!depth && rest.length > 1 && t.data[i] == ':' && rest.data[0] == ':') {
            bool is_closure = rest.data[1] == '{';
            own = in_closure || is_closure ? own : i + 2;
            in_closure = is_closure;
        } else if (!depth && i && t.data[i] == '.' && rest.length && !is_variant(rest))
            dotted = i + 1;
    }
    if (is_file(t)) { /* JavaScript's `render /app/page.js:12` begins with the function */
        bool is_path = slash != SIZE_MAX && slash + 1 < t.length && text_find(t, ' ') == SIZE_MAX;
        return is_path ? slash + 1 : own;
    }
    return own ? own : dotted;
}

bool name_has_parts(struct text name) {
    size_t angle = text_find(name, '<');
    return name.length <= FOLDABLE &&
           ((angle != SIZE_MAX && angle > 0 && isalnum((unsigned char)name.data[angle - 1])) ||
            own_name(name));
}

/* Where it does not fit, the own name is kept before all others, and of that its beginning. */
static void add_cut(struct buffer *buffer, struct text t, size_t columns) {
    size_t own = own_name(t), all = characters(t), tail = characters(text_from(t, own));
    struct text last = text_from(t, own);
    bool fits = own && tail <= columns;
    if (own && !fits) {
        buffer_add(buffer, text_upto(last, character_start(last, columns - 1)));
        buffer_add(buffer, TEXT("…"));
        return;
    }
    tail = own ? tail : columns / 2;
    if (tail + 2 <= columns) {
        buffer_add(buffer, text_upto(t, character_start(t, columns - 1 - tail)));
        buffer_add(buffer, TEXT("…"));
    }
    buffer_add(buffer, text_from(t, character_start(t, all - tail)));
}

void name_add_short(struct buffer *buffer, struct text name, size_t columns) {
    if (characters(name) <= columns) {
        buffer_add(buffer, name);
        return;
    }
    struct buffer folded = {0};
    if (name.length <= FOLDABLE)
        name_add_folded(&folded, name);
    struct text t = folded.count ? buffer_text(&folded) : name;
    if (characters(t) <= columns)
        buffer_add(buffer, t);
    else if (columns)
        add_cut(buffer, t, columns);
    buffer_release(&folded);
}

void namer_strip(struct namer *namer) {
    const struct naming_options *options = namer->options;
    if (!options->strip_templates && !options->strip_arguments)
        return;
    struct buffer *name = &namer->name;
    struct text plain = name_unmarked(buffer_text(name));
    char mark[4];
    size_t mark_length = name->count - plain.length;
    memcpy(mark, plain.data + plain.length, mark_length);
    if (options->strip_arguments)
        plain.length = arguments_start(plain);
    name->count = plain.length;
    if (options->strip_templates && name->count)
        name->count = strip_templates(name->items, name->count);
    buffer_add(name, (struct text){mark, mark_length});
}
