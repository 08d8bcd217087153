/*
 * Folded text: `a;b;c 12`, as written by every collapser, async-profiler and Austin.
 *
 * The count follows the last TAB or, because names may contain TABs, the last space. Two counts on every line make a
 * diff: before, after. Consecutive lines share the outer part of their stacks, which costs a comparison of bytes and
 * no lookup, so sorted input is cheap.
 */
#include "import/reader.h"

#include <stdlib.h>

static const struct note_kind note_fractions = {
    "fractional-counts",
    "# count{|s} had a fraction and {was rounded to a whole number|were rounded to whole numbers}"};

/* A parsed line. */
struct folded_line {
    struct text stack;
    uint64_t before;
    uint64_t count;
    bool has_before;
    bool fraction;
};

struct folded_frame {
    size_t end; /* in the last line's stack */
    uint32_t node;
};

struct folded {
    struct tree *tree;
    uint32_t series;
    uint32_t series_before;
    bool comm_first;
    bool timed_only;
    bool threads_first; /* as async-profiler writes them; not under inferno's rules */
    struct index threads;
    const struct filter *filter;
    bool skip;        /* the thread or comm is filtered out */
    struct text comm; /* comm of the last line, or its thread's text */
    struct text last;
    VECTOR(struct folded_frame) frames;
    uint64_t fractions;
    uint64_t first_fraction;
};

/* Parse `12` or `12.75`, rounded. Return false if it is not a number, or too large. */
static bool count_parse(struct text t, uint64_t *count, bool *fraction) {
    size_t point = text_find(t, '.');
    if (point == SIZE_MAX)
        return text_to_u64(t, count);
    for (size_t i = point + 1; i < t.length; i++) {
        if (t.data[i] < '0' || t.data[i] > '9')
            return false;
        *fraction |= t.data[i] != '0';
    }
    if (point + 1 == t.length || !text_to_u64(text_upto(t, point), count))
        return false;
    return t.data[point + 1] < '5' || checked_add(*count, 1, count);
}

static bool count_take_at(struct text *t, size_t at, uint64_t *count, bool *fraction) {
    if (at == SIZE_MAX || !count_parse(text_from(*t, at + 1), count, fraction))
        return false;
    *t = text_trim(text_upto(*t, at));
    return true;
}

/* Remove the count from the end of `t`: after the last TAB, unless that was part of a name. */
static bool count_take(struct text *t, uint64_t *count, bool *fraction) {
    return count_take_at(t, text_find_last(*t, '\t'), count, fraction) ||
           count_take_at(t, text_find_last(*t, ' '), count, fraction);
}

static bool folded_parse(struct text line, struct folded_line *parsed) {
    *parsed = (struct folded_line){0};
    if (!count_take(&line, &parsed->count, &parsed->fraction))
        return false;
    struct text shorter = line;
    bool fraction = false;
    if (count_take(&shorter, &parsed->before, &fraction) && shorter.length) {
        parsed->has_before = true;
        parsed->fraction |= fraction;
    }
    parsed->stack = line;
    return line.length > 0;
}

static bool is_nothing(struct text line) {
    return line.length == 0 || text_starts(line, TEXT("# ")) || text_equal(line, TEXT("#"));
}

/* Return true if every line has two counts: a single frame may be called "foo 12", but hardly all of them. */
static bool is_diff(struct text content) {
    struct lines lines = {.rest = content};
    struct text line;
    uint64_t good = 0;
    while (lines_next(&lines, &line)) {
        struct folded_line parsed;
        line = text_trim(line);
        if (is_nothing(line) || !folded_parse(line, &parsed))
            continue;
        if (!parsed.has_before)
            return false;
        good++;
    }
    return good > 0;
}

static size_t common_length(struct text a, struct text b) {
    size_t shorter = a.length < b.length ? a.length : b.length, at = 0;
    while (at + 8 <= shorter && load_u64(a.data + at) == load_u64(b.data + at))
        at += 8;
    while (at < shorter && a.data[at] == b.data[at])
        at++;
    return at;
}

/* Keep the frames that `stack` shares with the last line. */
static void folded_share(struct folded *f, struct text stack) {
    size_t common = common_length(f->last, stack), kept = 0;
    for (; kept < f->frames.count; kept++) {
        size_t end = f->frames.items[kept].end;
        if (end > common || (end < stack.length && stack.data[end] != ';'))
            break;
    }
    f->frames.count = kept;
    f->last = stack;
}

/* Return the node of a stack; each frame that is not shared costs a lookup. */
static uint32_t folded_node(struct folded *f, struct text stack) {
    folded_share(f, stack);
    size_t count = f->frames.count;
    size_t at = count ? f->frames.items[count - 1].end + 1 : 0;
    uint32_t node = count ? f->frames.items[count - 1].node : 0;
    while (at <= stack.length) {
        struct text rest = text_from(stack, at);
        size_t length = text_find(rest, ';');
        struct text name = text_upto(rest, length == SIZE_MAX ? rest.length : length);
        struct location location = {.function = tree_name_function(f->tree, name),
                                    .kinds = (uint8_t)kinds_of_mark(name)};
        node = tree_add_node(f->tree, node, tree_add_location(f->tree, &location));
        at += name.length;
        vector_push(&f->frames, ((struct folded_frame){at, node}));
        at++;
    }
    return node;
}

static void folded_set_thread(struct folded *f, struct text comm, int32_t tid) {
    f->skip = !filter_sample(f->filter, -1, tid, comm, UINT32_MAX, 0);
    for (size_t side = 0; side < 2; side++) {
        uint32_t *id = side ? &f->series_before : &f->series;
        struct series series = f->tree->series.items[*id];
        series.comm = comm.length ? strings_add(f->tree->strings, comm) : 0;
        series.thread = thread_numbered(f->tree, &f->threads, -1, tid);
        if (*id)
            *id = tree_add_series(f->tree, &series);
    }
}

/* Remove the comm from the stack and count under it from now on. Lines are mostly sorted, so a repeated comm costs
   only a comparison. */
static void folded_take_comm(struct folded *f, struct text *stack) {
    size_t end = text_find(*stack, ';');
    struct text comm = end == SIZE_MAX ? *stack : text_upto(*stack, end);
    *stack = end == SIZE_MAX ? TEXT("") : text_from(*stack, end + 1);
    if (f->comm.data && text_equal(comm, f->comm))
        return;
    f->comm = comm;
    folded_set_thread(f, comm, -1);
}

/* The same for a thread. A stack without one counts under none, whatever the last line had. */
static void folded_take_thread(struct folded *f, struct text *stack) {
    struct text name = {0};
    int32_t tid = -1;
    size_t length = stack->data[0] == '[' ? async_thread_parse(*stack, &name, &tid) : 0;
    struct text thread = text_upto(*stack, length);
    if (length)
        *stack = length < stack->length ? text_from(*stack, length + 1) : TEXT("");
    if (text_equal(thread, f->comm))
        return;
    f->comm = thread;
    folded_set_thread(f, name, tid);
}

static void folded_add(struct folded *f, const struct folded_line *line, uint64_t number,
                       bool diff) {
    struct text stack = line->stack;
    if (line->fraction && !f->fractions++)
        f->first_fraction = number;
    if (diff) {
        uint64_t ignored;
        bool fraction = false;
        count_take(&stack, &ignored, &fraction);
    }
    if (f->threads_first)
        folded_take_thread(f, &stack);
    else if (f->comm_first)
        folded_take_comm(f, &stack);
    if (f->skip)
        return;
    uint32_t node = stack.length ? folded_node(f, stack) : 0;
    if (line->count) {
        struct sample sample = {.offset = number,
                                .weight = line->count,
                                .node = node,
                                .series = f->series,
                                .cpu = UINT32_MAX};
        tree_count(f->tree, node, f->series, line->count, line->count);
        if (!f->timed_only)
            tree_keep_sample(f->tree, &sample); /* a chart keeps the order of lines */
    }
    if (diff && line->before)
        tree_count(f->tree, node, f->series_before, line->before, line->before);
}

/* Austin's first lines say that it counts time, in microseconds. */
static struct text unit_of(struct text content) {
    struct text head = text_upto(content, content.length < 1024 ? content.length : 1024);
    bool time = text_starts(head, TEXT("# austin: ")) &&
                (text_search(head, TEXT("\n# mode: wall\n")) != SIZE_MAX ||
                 text_search(head, TEXT("\n# mode: cpu\n")) != SIZE_MAX);
    return time ? TEXT("µs") : TEXT("samples");
}

/* Return true if the first stack starts with a thread: then all of async-profiler's do. Costs nothing if it does not. */
static bool has_thread(struct text content) {
    struct lines lines = {.rest = content};
    struct text line = {0}, name;
    int32_t tid;
    while (lines_next(&lines, &line) && is_nothing(text_trim(line)))
        ;
    return line.length && line.data[0] == '[' && async_thread_parse(line, &name, &tid);
}

static bool folded_read(struct text content, const char *path, const struct import_options *options,
                        struct tree *tree, struct error *error) {
    bool diff = is_diff(content);
    struct folded f = {.tree = tree,
                       .comm_first = options->comm_first,
                       .timed_only = options->timed_only,
                       .filter = &options->profile.filter,
                       .threads_first =
                           !options->profile.quirks.threads_are_frames && has_thread(content)};
    struct text unit = unit_of(content);
    struct series series = {.event = event_named(tree, unit, unit, EVENT_OTHER),
                            .ending = ENDING_UNKNOWN};
    f.series = tree_add_series(tree, &series);
    if (diff) {
        series.event = event_named(tree, TEXT("samples before"), unit, EVENT_BEFORE);
        f.series_before = tree_add_series(tree, &series);
    }
    struct lines lines = {.rest = content};
    struct text line;
    while (!import_stops(options, lines.rest.data) && lines_next(&lines, &line)) {
        struct folded_line parsed;
        lines_give_back(&lines, options, content);
        line = text_trim(line);
        if (is_nothing(line))
            continue;
        if (folded_parse(line, &parsed))
            folded_add(&f, &parsed, lines.number, diff);
        else
            note_torn_line(tree, path, lines.number, line);
    }
    if (f.fractions)
        notes_add(&tree->notes, &note_fractions, f.fractions, f.first_fraction, "%s: line %llu",
                  path, (unsigned long long)f.first_fraction);
    vector_release(&f.frames);
    index_release(&f.threads);
    return true;
}

/* Every line except comments ends with a count. */
static int folded_score(struct text beginning) {
    struct lines lines = {.rest = beginning};
    struct text line;
    int good = 0, bad = 0, deep = 0;
    while (good + bad < 50 && lines_next(&lines, &line)) {
        struct folded_line parsed;
        if (lines.rest.length == 0 && good) /* the content that is examined may end within a line */
            break;
        line = text_trim(line);
        if (is_nothing(line))
            continue;
        bool fine = folded_parse(line, &parsed);
        good += fine;
        bad += !fine;
        deep += fine && text_find(parsed.stack, ';') != SIZE_MAX;
    }
    if (good == 0 || bad * 4 > good)
        return 0;
    return deep ? bad ? 55 : 80 : bad ? 0 : 30;
}

const struct import_format format_folded = {
    "folded", "folded stacks: `a;b;c 12`, as async-profiler, Austin and all collapsers write them",
    folded_score, folded_read};
