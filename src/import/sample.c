/*
 * macOS sample(1): a call graph drawn with ` +
 *
 * :!`, two characters per level; each line has the samples of everything below it.
 *
 * Only leaves count, because every sample ended in one. Leaves that only wait are skipped, as in inferno.
 */
#include "import/reader.h"

static const struct note_kind note_no_graph = {"no-call-graph",
                                               "File ended before start of call graph"};

/* Functions of threads that wait for something other than the processor. */
static const char *const waiting[] = {
    "__psynch_cvwait",    "__select", "__semwait_signal", "__ulock_wait", "__wait4",
    "__workq_kernreturn", "kevent",   "mach_msg_trap",    "read",         "semaphore_wait_trap",
};

static bool is_waiting(struct text name) {
    for (size_t i = 0; i < COUNT_OF(waiting); i++)
        if (text_ends(name, text_of(waiting[i])))
            return true;
    return false;
}

struct sample_reader {
    struct reader r;
    uint64_t samples; /* of the previous line */
    bool waits;       /* if the previous line is a leaf, it is not shown */
};

static void count_leaf(struct sample_reader *s) {
    if (s->waits ||
        (s->r.stack.locations.count == 0 && !s->r.options->profile.quirks.empty_stack_counts))
        return;
    if (s->r.options->profile.quirks.last_count_wins)
        stack_replace(&s->r.stack, s->samples, s->samples);
    else
        stack_count(&s->r.stack, s->samples, s->samples);
}

/* Parse `(in libfoo.dylib)`, without the suffix. */
static struct text module_of(struct text rest) {
    size_t open = SIZE_MAX;
    for (size_t i = 0; i + 4 <= rest.length; i++)
        if (memcmp(rest.data + i, "(in ", 4) == 0)
            open = i;
    struct text module = open == SIZE_MAX ? rest : text_from(rest, open + 4);
    size_t close = text_find(module, ')');
    if (close == SIZE_MAX)
        return TEXT("");
    module = text_upto(module, close);
    return text_ends(module, TEXT(".dylib")) ? text_upto(module, module.length - 6) : module;
}

/* "4282 _pthread_wqthread  (in libsystem_pthread.dylib) …" becomes a frame module`function. */
static bool push_frame(struct sample_reader *s, struct text text) {
    text = text_trim_start(text);
    size_t space = text_find(text, ' ');
    if (space == SIZE_MAX)
        return reader_bad(&s->r, "Unable to parse stack line");
    struct text rest = text_from(text, space + 1);
    size_t open = text_find(rest, '(');
    struct text function = text_trim_end(open == SIZE_MAX ? rest : text_upto(rest, open));
    if (!text_to_u64(text_trim_end(text_upto(text, space)), &s->samples))
        return reader_bad(&s->r, "Invalid samples field in line");
    struct text module = s->r.options->no_modules ? TEXT("") : module_of(rest);
    struct buffer *name = &s->r.scratch;
    name->count = 0;
    if (module.length) {
        buffer_add(name, module);
        buffer_add_char(name, '`');
    }
    if (!rust_repair(function, name))
        buffer_add(name, function);
    s->waits = is_waiting(buffer_text(name));
    stack_push(&s->r.stack, buffer_text(name));
    return true;
}

static bool graph_line(struct sample_reader *s) {
    struct text text = text_from(s->r.line, 4);
    size_t indent = 0;
    while (indent < text.length && memchr(" +|:!", text.data[indent], 5))
        indent++;
    if (indent == text.length)
        return reader_bad(&s->r, "Found stack line with only indent characters: line");
    if (indent % 2)
        return reader_bad(&s->r, "Odd number of indentation characters for line");
    size_t depth = indent / 2, last = s->r.stack.locations.count;
    if (depth > last)
        return reader_bad(&s->r, "Skipped indentation level at line");
    if (depth < last) {
        count_leaf(s);
        s->r.stack.locations.count = depth;
    }
    return push_frame(s, text_from(text, indent));
}

static bool graph_read(struct sample_reader *s) {
    while (reader_next(&s->r)) {
        if (s->r.line.length == 0)
            continue;
        if (text_starts(s->r.line, TEXT("Total number in stack"))) {
            count_leaf(s);
            return true;
        }
        bool fine = text_starts(s->r.line, TEXT("    "))
                        ? graph_line(s)
                        : reader_bad(&s->r, "Stack line doesn't start with 4 spaces: line");
        if (!fine)
            return false;
    }
    count_leaf(s);
    return reader_bad(&s->r, "File ended before end of call graph: line");
}

static bool sample_read(struct text content, const char *path, const struct import_options *options,
                        struct tree *tree, struct error *error) {
    struct sample_reader s = {0};
    reader_init(&s.r, content, path, options, tree, TEXT("samples"), error);
    bool fine = true, found = false;
    while (!found && reader_next(&s.r))
        found = text_starts(s.r.line, TEXT("Call graph:"));
    if (found)
        fine = graph_read(&s);
    else
        reader_warn(&s.r, &note_no_graph);
    reader_release(&s.r);
    return fine;
}

enum applicable sample_applicable(struct text text) {
    struct lines lines = {.rest = text};
    struct text line;
    bool found = false;
    while (lines_next(&lines, &line)) {
        if (text_starts(line, TEXT("Call graph:")))
            found = true;
        else if (text_starts(line, TEXT("Total number in stack")))
            return found ? APPLICABLE_YES : APPLICABLE_NO;
    }
    return APPLICABLE_UNSURE;
}

static int sample_score(struct text beginning) {
    bool graph = text_search(beginning, TEXT("\nCall graph:")) != SIZE_MAX;
    return graph || text_starts(beginning, TEXT("Call graph:")) ? 85 : 0;
}

const struct import_format format_sample = {"sample", "macOS sample(1)", sample_score, sample_read};
