/*
 * Name a frame as inferno 0.12.8 does, bugs included: `operator->` is split, `[vdso]` is the kernel, the kernel's brackets are doubled.
 * docs/differences.md says what wick does instead.
 */
#include "stacks/names.h"

/* An unknown function is called after its object, if that is known. */
static void add_with_fallback(struct namer *namer, const struct named_frame *frame,
                              struct text piece) {
    struct buffer *out = &namer->name;
    bool known = !text_equal(piece, TEXT("[unknown]"));
    bool anywhere = text_equal(frame->object, TEXT("[unknown]"));
    if (known || (anywhere && !namer->options->addresses)) {
        buffer_add(out, piece);
        return;
    }
    size_t slash = text_find_last(frame->object, '/');
    buffer_add_char(out, '[');
    if (anywhere)
        buffer_add(out, TEXT("unknown"));
    else
        buffer_add(out, slash == SIZE_MAX ? frame->object : text_from(frame->object, slash + 1));
    if (namer->options->addresses) {
        buffer_add(out, TEXT(" <"));
        buffer_add(out, frame->address);
        buffer_add_char(out, '>');
    }
    buffer_add_char(out, ']');
}

/* Where the first round bracket outside all others opens that is neither Go's nor an anonymous namespace's. The depth may well
   become negative, after `operator>` for one, and then nothing is cut. */
static size_t inferno_arguments_start(struct text name) {
    long depth = 0;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.data[i];
        if (c == '(' && depth == 0 && !(i && name.data[i - 1] == '.') &&
            !text_starts(text_from(name, i), TEXT("(anonymous namespace)")))
            return i;
        if (c == '<' || c == '{' || c == '[' || c == '(')
            depth++;
        else if (c == '>' || c == '}' || c == ']' || c == ')')
            depth--;
    }
    return name.length;
}

static void tidy(struct buffer *name, bool java) {
    for (size_t i = 0; i < name->count; i++)
        if (name->items[i] == ';')
            name->items[i] = ':';
        else if (name->items[i] == '\n')
            name->items[i] = ' ';
    name->count = inferno_arguments_start(buffer_text(name));
    if (java && name->count && name->items[0] == 'L' &&
        text_find(buffer_text(name), '/') != SIZE_MAX)
        memmove(name->items, name->items + 1, --name->count);
}

static void mark(struct namer *namer, uint32_t kinds, bool inlined) {
    const struct naming_options *options = namer->options;
    const char *suffix = NULL;
    if (inlined)
        suffix = "_[i]";
    else if (options->mark_kernel && kinds & KIND_KERNEL)
        suffix = "_[k]";
    else if (options->mark_jit && kinds & KIND_JIT)
        suffix = "_[j]";
    if (suffix && (*(suffix + 2) == 'k' ||
                   text_search(buffer_text(&namer->name), text_of(suffix)) == SIZE_MAX))
        buffer_add(&namer->name, text_of(suffix));
}

void names_inferno(struct namer *namer, const struct named_frame *frame, bool java) {
    if (text_starts(frame->symbol, TEXT("(")))
        return;
    namer->repaired.count = 0;
    struct text rest = frame->symbol;
    if (rust_repair(frame->symbol, &namer->repaired))
        rest = buffer_text(&namer->repaired);
    namer->cut = namer_skips_after(namer, rest);
    for (bool inlined = false;; inlined = true) {
        size_t arrow = text_search(rest, TEXT("->"));
        namer->name.count = 0;
        add_with_fallback(namer, frame, arrow == SIZE_MAX ? rest : text_upto(rest, arrow));
        tidy(&namer->name, java);
        mark(namer, frame->kinds, inlined);
        namer_push(namer, frame->object, frame->kinds | (inlined ? KIND_INLINED : 0));
        if (arrow == SIZE_MAX)
            break;
        rest = text_from(rest, arrow + 2);
    }
}
