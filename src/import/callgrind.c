/*
 * Callgrind's text: what valgrind, `wick export --to callgrind` and others write for KCachegrind.
 *
 *     events: Ir Dr                       fn=(1) main
 *     ob=(1) /bin/demo                    16 400 20          self: line, then a number for each event
 *     fl=(1) demo.c                       cfn=(2) work
 *                                         calls=5 30         how often, and where it begins
 *                                         +2 9000 100        the place of the call, and what it cost with all below
 *
 * This is a call graph: it says which function called which, and the cost, but not along which path. So it gives no
 * stacks: self costs are cells of nodes directly below the root, and calls are the tree's `calls` (tree.h, is_graph).
 *
 * A name appears once with a number, `fn=(2) work`, then only its number. `fi=` and `fe=` change the file within a
 * function, for inlined code. Positions may be relative to the last cost line. A file may have several parts, each
 * with its own header. Jumps and instruction addresses are ignored.
 */
#include "import/reader.h"

#include <ctype.h>
#include <stdlib.h>

/* Steps that each line may cost. Callgrind itself needs about twenty. */
enum { EVENTS_MOST = 256 };

enum space { SPACE_OBJECT, SPACE_FILE, SPACE_FUNCTION, SPACES };

/* A name that was defined with a number. */
struct numbered {
    uint64_t number;
    uint32_t name; /* string */
};

struct column {
    uint32_t name;   /* string */
    bool wanted;     /* --event selects it */
    uint32_t series; /* 0: not created since the header changed */
    uint64_t sum;    /* sum of this part's self costs */
    uint64_t last;   /* last cost that was read */
};

/* A function by its strings; 0 means unknown. */
struct callee {
    uint32_t object, file, name;
};

struct callgrind {
    struct reader r;
    VECTOR(struct numbered) names[SPACES];
    struct index index[SPACES];
    VECTOR(struct column) columns;
    VECTOR(uint64_t) costs; /* values of the current line, one per column */
    size_t positions;       /* number of columns before the costs */
    size_t line_position;   /* which of them is the line number */
    uint64_t last[3];       /* positions of the last cost line */
    int32_t pid, thread;
    struct callee here; /* `file` is the file of the current code */
    uint32_t own_file;  /* the function's own file */
    struct callee called;
    bool has_called_object, has_called_file;
    bool after_calls; /* the next cost line belongs to a call */
    uint64_t call_count;
    uint32_t call_line;
    bool has_function;
};

static const struct note_kind note_totals = {
    "callgrind-totals",
    "# part{|s} of the file do{es|} not add up to {its|their} stated totals: something is missing"};
static const struct note_kind note_no_calls = {"callgrind-no-calls",
                                               "the file contains no calls: total is self"};

/* ---- names ---- */

static uint32_t *find_numbered(struct callgrind *c, enum space space, uint64_t number) {
    uint32_t at;
    for (struct probe probe = index_probe(&c->index[space], hash_mix(number, 1));
         (at = index_next(&c->index[space], &probe));)
        if (c->names[space].items[at - 1].number == number)
            return &c->names[space].items[at - 1].name;
    return NULL;
}

/* Parse "(7) name", "(7)" or a plain name, which may also begin with a parenthesis: "(below main)". Return false if
   the number is undefined. */
static bool read_name(struct callgrind *c, enum space space, struct text value, uint32_t *name) {
    struct strings *strings = c->r.tree->strings;
    size_t end = text_starts(value, TEXT("(")) ? text_find(value, ')') : SIZE_MAX;
    uint64_t number;
    bool is_numbered =
        end != SIZE_MAX && text_to_u64((struct text){value.data + 1, end - 1}, &number);
    struct text told = is_numbered ? text_trim(text_from(value, end + 1)) : value;
    uint32_t *known = is_numbered ? find_numbered(c, space, number) : NULL;
    if (!told.length && is_numbered) {
        *name = known ? *known : strings_add(strings, TEXT("???"));
        return known;
    }
    *name = strings_add(strings, told.length ? told : TEXT("???"));
    if (known) {
        *known = *name;
    } else if (is_numbered) {
        vector_push(&c->names[space], ((struct numbered){number, *name}));
        index_add(&c->index[space], hash_mix(number, 1), (uint32_t)c->names[space].count);
    }
    return true;
}

/* Return the string, or 0 for "???". */
static uint32_t unless_unknown(const struct callgrind *c, uint32_t name) {
    bool is_unknown = text_equal(strings_get(c->r.tree->strings, name), TEXT("???"));
    return is_unknown ? 0 : name;
}

/* ---- places ---- */

/* `own_file` is the function's: if the current code is from another file, the function becomes part of the location's
   key. */
static uint32_t location_of(struct callgrind *c, const struct callee *at, uint32_t own_file,
                            uint32_t line) {
    struct tree *tree = c->r.tree;
    struct function function = {.name = at->name, .file = unless_unknown(c, at->file)};
    struct location location = {.function = tree_add_function(tree, &function), .line = line};
    if (at->object && unless_unknown(c, at->object)) {
        struct text path = strings_get(tree->strings, at->object);
        location.object = object_named(tree, path);
        location.kinds = (uint8_t)script_object_kinds(path, false);
    }
    if (at->file != own_file) {
        function.file = unless_unknown(c, own_file);
        location.raw = tree_add_function(tree, &function);
    }
    return tree_add_location(tree, &location);
}

/* ---- costs ---- */

/* Series are created anew for each thread. */
static uint32_t series_of(struct callgrind *c, struct column *column) {
    struct text name = strings_get(c->r.tree->strings, column->name);
    if (!column->series) {
        stack_set_event(&c->r.stack, name, name);
        stack_set_thread(&c->r.stack, TEXT(""), c->pid, c->thread);
        column->series = c->r.stack.series;
    }
    return column->series;
}

static void forget_series(struct callgrind *c) {
    for (size_t i = 0; i < c->columns.count; i++)
        c->columns.items[i].series = 0;
}

/* Parse "16", "0x10", "+3", "-3" or "*" (unchanged). */
static bool read_position(struct text word, uint64_t *position) {
    bool plus = text_starts(word, TEXT("+")), minus = text_starts(word, TEXT("-"));
    uint64_t value;
    if (text_equal(word, TEXT("*")))
        return true;
    struct text digits = text_from(word, plus || minus);
    if (text_starts(digits, TEXT("0x")) ? !text_hex_to_u64(text_from(digits, 2), &value)
                                        : !text_to_u64(digits, &value))
        return false;
    if ((plus && value > UINT64_MAX - *position) || (minus && value > *position))
        return false;
    *position = plus ? *position + value : minus ? *position - value : value;
    return true;
}

static struct text take_word(struct text *line) {
    *line = text_trim(*line);
    size_t end = 0;
    while (end < line->length && line->data[end] != ' ' && line->data[end] != '\t')
        end++;
    struct text word = text_upto(*line, end);
    *line = text_from(*line, end);
    return word;
}

/* Parse as many positions as the header declares. */
static bool read_positions(const struct callgrind *c, struct text *line, uint64_t *positions) {
    for (size_t i = 0; i < c->positions; i++)
        if (!read_position(take_word(line), &positions[i]))
            return false;
    return positions[c->line_position] <= UINT32_MAX;
}

/* Missing numbers are 0. Some tools write a cost, like a position, relative to the column's last value. */
static bool read_costs(struct callgrind *c, struct text line) {
    c->costs.count = 0;
    for (line = text_trim(line); line.length; line = text_trim(line)) {
        if (c->costs.count == c->columns.count)
            return false;
        struct column *column = &c->columns.items[c->costs.count];
        if (!read_position(take_word(&line), &column->last))
            return false;
        vector_push(&c->costs, column->last);
    }
    return true;
}

static void count_self(struct callgrind *c, uint32_t line) {
    uint32_t location = location_of(c, &c->here, c->own_file, line);
    for (size_t i = 0; i < c->costs.count; i++) {
        struct column *column = &c->columns.items[i];
        uint64_t cost = c->costs.items[i];
        column->sum = saturating_add(column->sum, cost);
        if (!column->wanted || !cost)
            continue;
        uint32_t series = series_of(c, column);
        if (!c->r.stack.skip)
            tree_count(c->r.tree, tree_add_node(c->r.tree, 0, location), series, cost, cost);
    }
}

/* A call without a cost still counts, for the first selected event. */
static void count_call(struct callgrind *c, uint32_t line) {
    uint32_t caller = location_of(c, &c->here, c->own_file, line);
    uint32_t callee = location_of(c, &c->called, c->called.file, c->call_line);
    for (size_t i = 0; i < c->columns.count; i++) {
        struct column *column = &c->columns.items[i];
        if (!column->wanted)
            continue;
        struct call call = {.caller = caller,
                            .callee = callee,
                            .series = series_of(c, column),
                            .count = c->call_count,
                            .weight = i < c->costs.count ? c->costs.items[i] : 0};
        if (!c->r.stack.skip)
            vector_push(&c->r.tree->calls, call);
        tree_take_steps(c->r.tree, 1);
    }
}

static bool read_cost_line(struct callgrind *c, struct text line) {
    uint64_t positions[3] = {c->last[0], c->last[1], c->last[2]};
    bool is_call = c->after_calls;
    c->after_calls = false;
    if (!c->has_function || !read_positions(c, &line, positions) || !read_costs(c, line))
        return false;
    memcpy(c->last, positions, sizeof c->last);
    uint32_t at = (uint32_t)positions[c->line_position];
    if (is_call)
        count_call(c, at);
    else
        count_self(c, at);
    return true;
}

/* ---- `key=value` ---- */

/* Parse "5 30": the number of calls, and the positions where the function begins. */
static bool read_calls(struct callgrind *c, struct text value) {
    uint64_t positions[3] = {c->last[0], c->last[1], c->last[2]};
    c->after_calls = true;
    c->call_line = 0;
    if (!c->called.name || !text_to_u64(take_word(&value), &c->call_count))
        return false;
    if (read_positions(c, &value, positions))
        c->call_line = (uint32_t)positions[c->line_position];
    return true;
}

/* Fields that are not given for a callee are the caller's. */
static bool read_called(struct callgrind *c, struct text value) {
    bool fine = read_name(c, SPACE_FUNCTION, value, &c->called.name);
    if (!c->has_called_object)
        c->called.object = c->here.object;
    if (!c->has_called_file)
        c->called.file = c->here.file;
    c->has_called_object = c->has_called_file = false;
    return fine;
}

static bool read_function(struct callgrind *c, struct text value) {
    c->has_function = true;
    c->own_file = c->here.file;
    c->called = (struct callee){0};
    return read_name(c, SPACE_FUNCTION, value, &c->here.name);
}

static bool read_assignment(struct callgrind *c, struct text key, struct text value) {
    uint32_t unused;
    if (text_equal(key, TEXT("fn")))
        return read_function(c, value);
    if (text_equal(key, TEXT("cfn")))
        return read_called(c, value);
    if (text_equal(key, TEXT("calls")))
        return read_calls(c, value);
    if (text_equal(key, TEXT("ob")))
        return read_name(c, SPACE_OBJECT, value, &c->here.object);
    if (text_equal(key, TEXT("fl")) || text_equal(key, TEXT("fi")) || text_equal(key, TEXT("fe")))
        return read_name(c, SPACE_FILE, value, &c->here.file);
    if (text_equal(key, TEXT("cob"))) {
        c->has_called_object = true;
        return read_name(c, SPACE_OBJECT, value, &c->called.object);
    }
    if (text_equal(key, TEXT("cfi")) || text_equal(key, TEXT("cfl"))) {
        c->has_called_file = true;
        return read_name(c, SPACE_FILE, value, &c->called.file);
    }
    if (text_equal(key, TEXT("jfi")))
        return read_name(c, SPACE_FILE, value, &unused);
    if (text_equal(key, TEXT("jfn")))
        return read_name(c, SPACE_FUNCTION, value, &unused);
    return text_equal(key, TEXT("jump")) || text_equal(key, TEXT("jcnd"));
}

/* ---- headers, `key: value` ---- */

static bool no_such_event(struct callgrind *c, const char *name) {
    struct buffer names = {0};
    for (size_t i = 0; i < c->columns.count; i++)
        buffer_printf(&names, "%s%.*s", i ? ", " : "",
                      TEXT_ARGS(strings_get(c->r.tree->strings, c->columns.items[i].name)));
    error_set(c->r.error, ERROR_USAGE, "--event %s: %s has no such event, only %.*s", name,
              c->r.path, TEXT_ARGS(buffer_text(&names)));
    buffer_release(&names);
    return false;
}

static bool check_events(struct callgrind *c) {
    const struct filter *filter = &c->r.options->profile.filter;
    for (size_t i = 0; i < filter->event_count; i++) {
        struct filter one = {.events = &filter->events[i], .event_count = 1};
        bool found = false;
        for (size_t k = 0; k < c->columns.count; k++)
            found |= filter_event(&one, strings_get(c->r.tree->strings, c->columns.items[k].name));
        if (!found)
            return no_such_event(c, filter->events[i]);
    }
    return true;
}

/* Count the first event unless others are selected. Events are created in the file's order. Return false on an error. */
static bool read_events(struct callgrind *c, struct text value) {
    const struct filter *filter = &c->r.options->profile.filter;
    c->columns.count = 0;
    for (value = text_trim(value); value.length; value = text_trim(value)) {
        struct text word = take_word(&value);
        struct column column = {.name = strings_add(c->r.tree->strings, word)};
        if (c->columns.count == EVENTS_MOST)
            return error_at(c->r.error, c->r.path,
                            (uint64_t)(c->r.lines.rest.data - c->r.content.data),
                            "the line before has more than %d events", EVENTS_MOST);
        column.wanted = filter->event_count ? filter_event(filter, word) : c->columns.count == 0;
        if (column.wanted)
            event_named(c->r.tree, word, word, EVENT_OTHER);
        vector_push(&c->columns, column);
    }
    return check_events(c);
}

static bool read_kinds_of_positions(struct callgrind *c, struct text value) {
    c->positions = 0;
    for (value = text_trim(value); value.length; value = text_trim(value), c->positions++) {
        struct text word = take_word(&value);
        if (c->positions == COUNT_OF(c->last))
            return false;
        if (text_equal(word, TEXT("line")))
            c->line_position = c->positions;
    }
    c->line_position = c->line_position < c->positions ? c->line_position : 0;
    return c->positions > 0;
}

static bool read_id(struct text value, int32_t *id) {
    uint64_t number;
    if (!text_to_u64(text_trim(value), &number) || number > INT32_MAX)
        return false;
    *id = (int32_t)number;
    return true;
}

/* Check the totals that callgrind wrote at the end of the part. */
static bool read_totals(struct callgrind *c, struct text value) {
    bool differs = false;
    if (!read_costs(c, value))
        return false;
    for (size_t i = 0; i < c->columns.count; i++) {
        uint64_t total = i < c->costs.count ? c->costs.items[i] : 0;
        differs |= total != c->columns.items[i].sum;
        c->columns.items[i].sum = 0;
    }
    if (differs)
        notes_add(&c->r.tree->notes, &note_totals, 1, c->r.lines.number, "%s: line %llu", c->r.path,
                  (unsigned long long)c->r.lines.number);
    return true;
}

/* *failed is set if there was an error. */
static bool read_header(struct callgrind *c, struct text key, struct text value, bool *failed) {
    if (text_equal(key, TEXT("events"))) {
        *failed = !read_events(c, value);
        return true;
    }
    if (text_equal(key, TEXT("positions")))
        return read_kinds_of_positions(c, value);
    if (text_equal(key, TEXT("totals")))
        return read_totals(c, value);
    bool is_pid = text_equal(key, TEXT("pid")), is_thread = text_equal(key, TEXT("thread"));
    if (is_pid || is_thread) {
        forget_series(c);
        return read_id(value, is_pid ? &c->pid : &c->thread);
    }
    return true; /* version, creator, cmd, part, desc, event, summary: ignored */
}

/* ---- the file ---- */

/* Return false on an error. Lines that can't be parsed become a note. */
static bool read_line(struct callgrind *c, struct text line) {
    bool failed = false, fine;
    size_t key = 0;
    if (!line.length || line.data[0] == '#')
        return true;
    while (key < line.length && islower((unsigned char)line.data[key]))
        key++;
    if (!key)
        fine = read_cost_line(c, line);
    else if (key < line.length && line.data[key] == '=')
        fine = read_assignment(c, text_upto(line, key), text_trim(text_from(line, key + 1)));
    else
        fine = key < line.length && line.data[key] == ':' &&
               read_header(c, text_upto(line, key), text_from(line, key + 1), &failed);
    if (!fine && !failed)
        note_torn_line(c->r.tree, c->r.path, c->r.lines.number, c->r.line);
    return !failed;
}

static void callgrind_release(struct callgrind *c) {
    for (size_t i = 0; i < SPACES; i++) {
        vector_release(&c->names[i]);
        index_release(&c->index[i]);
    }
    vector_release(&c->columns);
    vector_release(&c->costs);
    reader_release(&c->r);
}

static bool callgrind_read(struct text content, const char *path,
                           const struct import_options *options, struct tree *tree,
                           struct error *error) {
    struct callgrind c = {.positions = 1, .pid = -1, .thread = -1};
    bool fine = true;
    reader_init(&c.r, content, path, options, tree, TEXT(""), error);
    tree->is_graph = true;
    while (fine && reader_next(&c.r))
        fine = read_line(&c, text_trim(c.r.line));
    if (fine && !c.columns.count)
        fine = error_set(error, ERROR_INPUT,
                         "%s: has no line `events:`, which a callgrind file must have", path);
    if (fine && !tree->calls.count)
        reader_warn(&c.r, &note_no_calls);
    callgrind_release(&c);
    return fine;
}

/* The first line identifies the format; older files, and other tools', are recognized by two of their lines. */
static int callgrind_score(struct text beginning) {
    struct text rest = beginning;
    bool events = false;
    if (text_starts(beginning, TEXT("# callgrind format")))
        return 100;
    for (size_t lines = 0; rest.length && lines < 200; lines++) {
        struct text line = text_take_line(&rest);
        events |= text_starts(line, TEXT("events: "));
        if (events && (text_starts(line, TEXT("fn=")) || text_starts(line, TEXT("fl="))))
            return 95;
    }
    return 0;
}

const struct import_format format_callgrind = {
    "callgrind", "a call graph of callgrind, or `wick export --to callgrind`", callgrind_score,
    callgrind_read, TELLS_EVENTS};
