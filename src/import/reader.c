#include "import/reader.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"

const struct note_kind note_torn = {"torn-lines",
                                    "# line{|s} could not be read and {was|were} skipped"};

/* The kernel maps adjacent pages along with a page, up to WINDOW bytes on both sides. */
void text_give_back(const struct import_options *options, struct text content, struct text piece) {
    enum { WINDOW = 1 << 20 };
    if (!options->mapped)
        return;
    const uintptr_t in_page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t least = (uintptr_t)content.data & ~in_page;
    uintptr_t most = (uintptr_t)content.data + content.length;
    uintptr_t start = ((uintptr_t)piece.data - WINDOW) & ~in_page;
    uintptr_t end = ((uintptr_t)piece.data + piece.length + WINDOW) & ~in_page;
    start = start < least || start > (uintptr_t)piece.data ? least : start;
    end = end > most ? most & ~in_page : end;
    if (end > start)
        madvise((void *)start, end - start, MADV_DONTNEED);
}

void lines_give_back(struct lines *lines, const struct import_options *options,
                     struct text content) {
    enum { OFTEN_ENOUGH = 8 << 20 };
    size_t read = (size_t)(lines->rest.data - content.data);
    if (lines->rest.length == 0 || read - lines->given_back < OFTEN_ENOUGH)
        return;
    text_give_back(options, content,
                   (struct text){content.data + lines->given_back, read - lines->given_back});
    lines->given_back = read;
}

bool lines_next(struct lines *lines, struct text *line) {
    if (lines->rest.length == 0)
        return false;
    *line = text_take_line(&lines->rest);
    if (line->length && line->data[line->length - 1] == '\r')
        line->length--;
    lines->number++;
    return true;
}

bool import_stops(const struct import_options *options, const char *at) {
    return context_cancelled(options->profile.context) ||
           budget_exceeded_at(options->budget, (uint64_t)(at - options->content.data));
}

uint64_t line_number(struct text content, size_t offset) {
    uint64_t number = 1;
    struct text before = text_upto(content, offset);
    for (size_t end; (end = text_find(before, '\n')) != SIZE_MAX; number++)
        before = text_from(before, end + 1);
    return number;
}

void note_torn_line(struct tree *tree, const char *path, uint64_t number, struct text line) {
    size_t shown = line.length < 80 ? line.length : 80;
    notes_add(&tree->notes, &note_torn, 1, number, "%s: line %llu: %.*s", path,
              (unsigned long long)number, (int)shown, line.data);
}

/* ---- stacks ------------------------------------------------------------------------------- */

void stack_init(struct stack *stack, struct tree *tree, struct text unit) {
    *stack = (struct stack){.tree = tree};
    if (unit.length)
        stack_set_event(stack, unit, unit);
}

void stack_set_event(struct stack *stack, struct text name, struct text unit) {
    struct series series = {.ending = ENDING_UNKNOWN};
    if (stack->series)
        series = stack->tree->series.items[stack->series];
    series.event = event_named(stack->tree, name, unit, EVENT_OTHER);
    stack->series = tree_add_series(stack->tree, &series);
}

void stack_release(struct stack *stack) {
    vector_release(&stack->locations);
    index_release(&stack->threads);
}

uint32_t thread_numbered(struct tree *tree, struct index *threads, int32_t pid, int32_t tid) {
    if (pid < 0 && tid < 0)
        return 0;
    uint64_t hash = hash_mix((uint32_t)pid, (uint32_t)tid);
    uint32_t id;
    for (struct probe p = index_probe(threads, hash); (id = index_next(threads, &p));)
        if (tree->threads.items[id].pid == pid && tree->threads.items[id].tid == tid)
            return id;
    id = tree_add_thread(tree, &(struct thread){.pid = pid, .tid = tid, .end = UINT64_MAX});
    index_add(threads, hash, id);
    return id;
}

/* Charge for hashing a name, which a file may have once and refer to often. A step is about what hashing so many bytes takes. */
static void take_name(struct stack *stack, struct text name) {
    enum { BYTES = 32 };
    tree_take_steps(stack->tree, name.length / BYTES);
}

void stack_set_thread(struct stack *stack, struct text comm, int32_t pid, int32_t tid) {
    take_name(stack, comm);
    struct series series = stack->tree->series.items[stack->series];
    series.comm = comm.length ? strings_add(stack->tree->strings, comm) : 0;
    series.thread = thread_numbered(stack->tree, &stack->threads, pid, tid);
    struct filter filter = stack->filter ? *stack->filter : (struct filter){0};
    filter.has_time = false; /* checked by stack_count_at() */
    stack->skip = !filter_sample(&filter, pid, tid, comm, UINT32_MAX, 0);
    stack->series = tree_add_series(stack->tree, &series);
}

void stack_set_label(struct stack *stack, struct text key, struct text value) {
    take_name(stack, value);
    struct series series = stack->tree->series.items[stack->series];
    series.labels = tree_set_label(stack->tree, series.labels, key, value);
    stack->series = tree_add_series(stack->tree, &series);
}

void stack_push_kinds(struct stack *stack, struct text name, uint32_t kinds) {
    take_name(stack, name);
    struct location location = {.function = tree_name_function(stack->tree, name),
                                .kinds = (uint8_t)kinds};
    vector_push(&stack->locations, tree_add_location(stack->tree, &location));
}

void stack_push(struct stack *stack, struct text name) {
    stack_push_kinds(stack, name, 0);
}

static uint32_t string_or_none(struct tree *tree, struct text t) {
    return t.length ? strings_add(tree->strings, t) : 0;
}

void stack_push_frame(struct stack *stack, const struct text_frame *frame) {
    struct tree *tree = stack->tree;
    struct buffer shown = {0};
    take_name(stack, frame->name);
    take_name(stack, frame->file);
    size_t slash = text_find_last(frame->object, '/');
    struct text name = frame->name;
    if (name.length == 0) {
        struct text base = slash == SIZE_MAX ? frame->object : text_from(frame->object, slash + 1);
        buffer_printf(&shown, "[%.*s]", TEXT_ARGS(base.length ? base : TEXT("unknown")));
        name = buffer_text(&shown);
    }
    struct function function = {.name = strings_add(tree->strings, name),
                                .file = string_or_none(tree, frame->file),
                                .line = frame->first_line,
                                .module = string_or_none(tree, frame->module),
                                .language = string_or_none(tree, frame->language)};
    struct location location = {
        .function = tree_add_function(tree, &function),
        .line = frame->line,
        .object = frame->object.length ? object_named(tree, frame->object) : 0,
        .kinds = (uint8_t)(frame->kinds | (frame->name.length ? 0 : KIND_UNKNOWN))};
    vector_push(&stack->locations, tree_add_location(tree, &location));
    buffer_release(&shown);
}

void stack_locate(struct stack *stack, struct text file, uint32_t line) {
    struct tree *tree = stack->tree;
    uint32_t *last = &stack->locations.items[stack->locations.count - 1];
    struct location location = tree->locations.items[*last];
    struct function function = tree->functions.items[location.function];
    function.file = string_or_none(tree, file);
    location.function = tree_add_function(tree, &function);
    location.line = line;
    *last = tree_add_location(tree, &location);
}

void stack_push_in(struct stack *stack, struct text name, struct text object, uint32_t kinds) {
    stack_push_frame(stack, &(struct text_frame){.name = name, .object = object, .kinds = kinds});
}

/* Remove the last colon and the number after it, and return the number. */
static bool take_number(struct text *t, uint32_t *number) {
    size_t colon = text_find_last(*t, ':');
    uint64_t value;
    if (colon == SIZE_MAX || colon == 0 || !text_to_u64(text_from(*t, colon + 1), &value) ||
        value > UINT32_MAX)
        return false;
    *number = (uint32_t)value;
    *t = text_upto(*t, colon);
    return true;
}

bool text_to_source(struct text t, struct text *file, uint32_t *line) {
    uint32_t last, before;
    if (!take_number(&t, &last))
        return false;
    *line = take_number(&t, &before) ? before : last;
    *file = t;
    return true;
}

void stack_reverse(struct stack *stack) {
    for (size_t i = 0, j = stack->locations.count; i + 1 < j; i++) {
        uint32_t swap = stack->locations.items[i];
        stack->locations.items[i] = stack->locations.items[--j];
        stack->locations.items[j] = swap;
    }
}

uint32_t stack_node(struct stack *stack) {
    uint32_t node = 0;
    for (size_t i = 0; i < stack->locations.count; i++)
        node = tree_add_node(stack->tree, node, stack->locations.items[i]);
    return node;
}

void stack_count(struct stack *stack, uint64_t samples, uint64_t weight) {
    if (!stack->skip)
        tree_count(stack->tree, stack_node(stack), stack->series, samples, weight);
}

void stack_end(struct stack *stack, uint64_t count) {
    stack_reverse(stack);
    if (stack->locations.count)
        stack_count(stack, count, count);
    stack->locations.count = 0;
}

void stack_replace(struct stack *stack, uint64_t samples, uint64_t weight) {
    uint32_t cell = tree_count(stack->tree, stack_node(stack), stack->series, 0, 0);
    stack->tree->cells.items[cell].samples = samples;
    stack->tree->cells.items[cell].weight = weight;
}

/* ---- tracks ------------------------------------------------------------------------------- */

/* Remove the digits at the end of `t` and the mark before them. */
static bool take_id(struct text *t, char mark, int32_t *id) {
    size_t digits = 0;
    while (digits < t->length && t->data[t->length - 1 - digits] >= '0' &&
           t->data[t->length - 1 - digits] <= '9')
        digits++;
    uint64_t value;
    if (digits == t->length || t->data[t->length - 1 - digits] != mark ||
        !text_to_u64(text_from(*t, t->length - digits), &value) || value > INT32_MAX)
        return false;
    *id = (int32_t)value;
    *t = text_upto(*t, t->length - digits - 1);
    return true;
}

bool track_name_parse(struct text name, struct track_name *track) {
    struct track_name found = {0};
    size_t space = text_find_last(name, ' ');
    struct text thread = name;
    bool fine = take_id(&thread, '/', &found.tid) && take_id(&thread, '-', &found.pid);
    if (!fine && space != SIZE_MAX) {
        thread = text_upto(name, space);
        found.event = text_from(name, space + 1);
        fine = take_id(&thread, '/', &found.tid) && take_id(&thread, '-', &found.pid);
    }
    if (!fine)
        return false;
    found.comm = thread;
    *track = found;
    return true;
}

void stack_set_track(struct stack *stack, struct text name) {
    struct track_name track = {.comm = name, .pid = -1, .tid = -1};
    track_name_parse(name, &track);
    stack_set_thread(stack, track.comm, track.pid, track.tid);
}

void stack_count_at(struct stack *stack, uint32_t node, uint64_t samples, uint64_t weight,
                    uint64_t time) {
    const struct filter *filter = stack->filter;
    bool late = filter && filter->has_time && (time < filter->time_from || time > filter->time_to);
    if (stack->skip || late)
        return;
    tree_count(stack->tree, node, stack->series, samples, weight);
    tree_keep_sample(stack->tree, &(struct sample){.time = time,
                                                   .offset = stack->tree->samples.count,
                                                   .weight = weight,
                                                   .node = node,
                                                   .series = stack->series,
                                                   .cpu = UINT32_MAX});
}

/* ---- a reader's state --------------------------------------------------------------------- */

void reader_init(struct reader *reader, struct text content, const char *path,
                 const struct import_options *options, struct tree *tree, struct text unit,
                 struct error *error) {
    *reader = (struct reader){.options = options,
                              .path = path,
                              .tree = tree,
                              .error = error,
                              .content = content,
                              .lines = {.rest = content}};
    stack_init(&reader->stack, tree, unit);
    reader->stack.filter = &options->profile.filter;
}

void reader_release(struct reader *reader) {
    stack_release(&reader->stack);
    buffer_release(&reader->scratch);
    buffer_release(&reader->lossy);
}

bool reader_next(struct reader *reader) {
    if (import_stops(reader->options, reader->lines.rest.data) ||
        !lines_next(&reader->lines, &reader->line))
        return false;
    lines_give_back(&reader->lines, reader->options, reader->content);
    if (reader->options->profile.quirks.text_is_lossy)
        reader->line = text_lossy(reader->line, &reader->lossy);
    reader->line = text_trim_end(reader->line);
    return true;
}

bool reader_bad(struct reader *reader, const char *what) {
    int shown = reader->line.length < 100 ? (int)reader->line.length : 100;
    if (reader->options->profile.quirks.bad_line_fails)
        return error_set(reader->error, ERROR_INPUT, "%s: %s %llu: %.*s", reader->path, what,
                         (unsigned long long)reader->lines.number, shown, reader->line.data);
    note_torn_line(reader->tree, reader->path, reader->lines.number, reader->line);
    return true;
}

void reader_warn(struct reader *reader, const struct note_kind *kind) {
    notes_add(&reader->tree->notes, kind, 1, 0, "%s", reader->path);
}

void reader_warn_cut(struct reader *reader) {
    static const struct note_kind note_cut = {
        "json-cut", "# file{|s} {is|are} cut off: only the part before the cut is counted"};
    struct json json = {reader->content};
    bool is_object = json_peek(&json) == '{';
    while (json.rest.length && json_is_space(json.rest.data[json.rest.length - 1]))
        json.rest.length--;
    if (is_object && !text_ends(json.rest, TEXT("}")))
        reader_warn(reader, &note_cut);
}

/* ---- labels ------------------------------------------------------------------------------- */

uint64_t unit_nanoseconds(struct text unit) {
    return text_equal(unit, TEXT("nanoseconds"))    ? 1
           : text_equal(unit, TEXT("microseconds")) ? 1000
           : text_equal(unit, TEXT("milliseconds")) ? 1000000
           : text_equal(unit, TEXT("seconds"))      ? 1000000000
                                                    : 0;
}

uint32_t event_named(struct tree *tree, struct text name, struct text unit, enum event_kind kind) {
    tree_take_steps(tree, tree->events.count);
    for (size_t i = 1; i < tree->events.count; i++)
        if (text_equal(strings_get(tree->strings, tree->events.items[i].name), name))
            return (uint32_t)i;
    return tree_add_event(tree, name, unit, kind);
}

uint32_t object_named(struct tree *tree, struct text path) {
    if (!tree->objects)
        tree->objects = objects_new(&(struct objects_options){0});
    return objects_add(tree->objects, &(struct object_identity){.path = path, .kind = OBJECT_NAME});
}

uint32_t kinds_of_mark(struct text name) {
    if (name.length < 4 || name.data[name.length - 1] != ']')
        return 0;
    return text_ends(name, TEXT("_[k]"))   ? KIND_KERNEL
           : text_ends(name, TEXT("_[j]")) ? KIND_JIT
           : text_ends(name, TEXT("_[1]")) ? KIND_JIT /* async-profiler: by the first compiler */
           : text_ends(name, TEXT("_[i]")) ? KIND_INLINED
           : text_ends(name, TEXT("_[w]")) ? KIND_WAKER
                                           : 0;
}
