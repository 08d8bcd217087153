/*
 * Java Flight Recorder files, from `java -XX:StartFlightRecording`, `jcmd … JFR.start` and async-profiler: samples of
 * running code, allocations and waits for locks become one event each, named as in `jfr summary`. Samples of Java
 * code are counted unless --event names others, or there are none; any other event that has stacks counts 1 if --event
 * names it. The weight of an allocation is its bytes, or those of the buffer (TLAB) that was taken for it; that of a
 * wait is its nanoseconds. The class that was allocated or waited for is the label `class`, the state of a sampled
 * thread is the label `thread_state`.
 *
 * A file is a sequence of chunks, each with ids of its own; a stack is placed in the tree when an event of the chunk
 * first refers to it.
 */
#include "import/jfr.h"
#include "import/reader.h"

#include <stdlib.h>

struct counted_kind {
    const char *name, *unit;
    const char *weight; /* a field; NULL: each counts 1 */
    const char *class;  /* a field with the class concerned; NULL: none */
    bool is_time;       /* the weight is in ticks */
};

/* The events that are counted even if none is selected, in the order of preference. */
static const struct counted_kind preferred[] = {
    {"jdk.ExecutionSample", "samples", NULL, NULL, false},
    {"jdk.CPUTimeSample", "samples", NULL, NULL, false},
    {"profiler.WallClockSample", "samples", "samples", NULL, false},
    {"jdk.NativeMethodSample", "samples", NULL, NULL, false},
    {"jdk.ObjectAllocationSample", "bytes", "weight", "objectClass", false},
    {"jdk.ObjectAllocationInNewTLAB", "bytes", "tlabSize", "objectClass", false},
    {"jdk.ObjectAllocationOutsideTLAB", "bytes", "allocationSize", "objectClass", false},
    {"profiler.Malloc", "bytes", "size", NULL, false},
    {"profiler.LiveObject", "bytes", "allocationSize", "objectClass", false},
    {"jdk.JavaMonitorEnter", "ns", "duration", "monitorClass", true},
    {"jdk.JavaMonitorWait", "ns", "duration", "monitorClass", true},
    {"jdk.ThreadPark", "ns", "duration", "parkedClass", true},
    {"jdk.ThreadSleep", "ns", "duration", NULL, true},
    {"jdk.FileRead", "ns", "duration", NULL, true},
    {"jdk.FileWrite", "ns", "duration", NULL, true},
    {"jdk.SocketRead", "ns", "duration", NULL, true},
    {"jdk.SocketWrite", "ns", "duration", NULL, true},
};

static const struct note_kind note_truncated = {
    "jfr-truncated",
    "# stack{ was|s were} cut by the recorder; record with a larger stackdepth (jcmd … "
    "JFR.configure stackdepth=512)"};

static const struct note_kind note_other_events = {
    "jfr-other-events", "# recording{ has|s have} no samples of code, allocations or waits"};

struct kind {
    struct counted_kind is;
    uint64_t count; /* events in the file */
    bool wanted;
};

/* The fields of an event type in one chunk: indexes, or -1. */
struct shape {
    uint32_t kind; /* index + 1; 0: not an event with stacks */
    int time, thread, stack, weight, about, state;
};

struct placed_stack {
    uint64_t id;
    uint32_t node;
    bool truncated;
};

struct jfr {
    struct reader r;
    struct jfr_chunk chunk;
    VECTOR(struct kind) kinds; /* the preferred ones, then all others with stacks */
    struct index kind_index;
    struct arena arena;          /* names of kinds */
    VECTOR(struct shape) shapes; /* by class of the chunk */
    const struct jfr_class *stack_trace, *stack_frame, *method, *class, *symbol, *thread,
        *frame_type;
    VECTOR(struct placed_stack) stacks;
    struct index stack_index;
    uint64_t truncated;
};

/* ---- a chunk ---- */

static uint32_t add_kind(struct jfr *j, const struct counted_kind *is) {
    vector_push(&j->kinds, (struct kind){.is = *is});
    index_add(&j->kind_index, hash_bytes(is->name, strlen(is->name)), (uint32_t)j->kinds.count);
    return (uint32_t)j->kinds.count;
}

/* Find the kind with this name, or add one whose events count 1. */
static uint32_t kind_named(struct jfr *j, struct text name) {
    uint32_t at;
    for (struct probe p = index_probe(&j->kind_index, hash_bytes(name.data, name.length));
         (at = index_next(&j->kind_index, &p));)
        if (text_equal(text_of(j->kinds.items[at - 1].is.name), name))
            return at;
    const char *copy = arena_copy(&j->arena, name).data;
    return add_kind(j, &(struct counted_kind){.name = copy, .unit = "samples"});
}

static int shape_field(const struct jfr_class *class, const char *name) {
    return name ? jfr_field(class, text_of(name)) : -1;
}

static struct shape shape_of(struct jfr *j, const struct jfr_class *class) {
    int time = jfr_field(class, TEXT("startTime")), stack = jfr_field(class, TEXT("stackTrace"));
    if (time < 0 || stack < 0)
        return (struct shape){0};
    uint32_t kind = kind_named(j, class->name);
    const struct counted_kind *is = &j->kinds.items[kind - 1].is;
    int thread = jfr_field(class, TEXT("sampledThread"));
    return (struct shape){
        .kind = kind,
        .time = time,
        .thread = thread >= 0 ? thread : jfr_field(class, TEXT("eventThread")),
        .stack = stack,
        .weight = shape_field(class, is->weight),
        .about = shape_field(class, is->class),
        .state = jfr_field(class, TEXT("state")),
    };
}

static void shape_chunk(struct jfr *j) {
    struct jfr_chunk *c = &j->chunk;
    j->shapes.count = 0;
    for (size_t i = 0; i < c->classes.count; i++)
        vector_push(&j->shapes, shape_of(j, &c->classes.items[i]));
    j->stack_trace = jfr_class_named(c, TEXT("jdk.types.StackTrace"));
    j->stack_frame = jfr_class_named(c, TEXT("jdk.types.StackFrame"));
    j->method = jfr_class_named(c, TEXT("jdk.types.Method"));
    j->class = jfr_class_named(c, TEXT("java.lang.Class"));
    j->symbol = jfr_class_named(c, TEXT("jdk.types.Symbol"));
    j->thread = jfr_class_named(c, TEXT("java.lang.Thread"));
    j->frame_type = jfr_class_named(c, TEXT("jdk.types.FrameType"));
    j->stacks.count = 0;
    index_release(&j->stack_index);
}

/* ---- names ---- */

/* Return a constant's field that is a string, or a symbol, which contains a string. */
static struct text text_of_field(struct jfr *j, const struct jfr_class *class,
                                 const struct jfr_value *values, const char *name) {
    int field = class ? jfr_field(class, text_of(name)) : -1;
    struct jfr_value inner[JFR_FIELDS_MOST];
    if (field < 0)
        return TEXT("");
    if (!class->fields.items[field].is_constant)
        return values[field].string;
    if (class->fields.items[field].type == j->chunk.string_type)
        return jfr_constant_string(&j->chunk, values[field].number);
    int string = j->symbol ? jfr_field(j->symbol, TEXT("string")) : -1;
    if (string < 0 || !jfr_constant(&j->chunk, j->symbol, values[field].number, inner))
        return TEXT("");
    return inner[string].string;
}

static uint64_t number_of_field(const struct jfr_class *class, const struct jfr_value *values,
                                const char *name) {
    int field = class ? jfr_field(class, text_of(name)) : -1;
    return field < 0 ? 0 : values[field].number;
}

/* Convert "java/lang/String" to Java's notation. */
static void add_class_name(struct jfr *j, uint64_t id, struct buffer *name) {
    struct jfr_value values[JFR_FIELDS_MOST];
    if (!jfr_constant(&j->chunk, j->class, id, values))
        return;
    struct text slashed = text_of_field(j, j->class, values, "name");
    for (size_t i = 0; i < slashed.length; i++)
        buffer_add_char(name, slashed.data[i] == '/' ? '.' : slashed.data[i]);
}

static void add_method_name(struct jfr *j, uint64_t id, struct buffer *name) {
    struct jfr_value values[JFR_FIELDS_MOST];
    if (!jfr_constant(&j->chunk, j->method, id, values))
        return;
    add_class_name(j, number_of_field(j->method, values, "type"), name);
    if (name->count)
        buffer_add_char(name, '.');
    buffer_add(name, text_of_field(j, j->method, values, "name"));
}

static uint32_t kinds_of_frame(struct jfr *j, uint64_t type) {
    struct jfr_value values[JFR_FIELDS_MOST];
    if (!jfr_constant(&j->chunk, j->frame_type, type, values))
        return 0;
    struct text is = text_of_field(j, j->frame_type, values, "description");
    return text_equal(is, TEXT("Inlined"))        ? KIND_INLINED
           : text_equal(is, TEXT("JIT compiled")) ? KIND_JIT
           : text_equal(is, TEXT("Kernel"))       ? KIND_KERNEL
                                                  : 0;
}

static bool is_native(struct jfr *j, uint64_t type) {
    struct jfr_value values[JFR_FIELDS_MOST];
    if (!jfr_constant(&j->chunk, j->frame_type, type, values))
        return false;
    struct text is = text_of_field(j, j->frame_type, values, "description");
    return text_equal(is, TEXT("C++")) || text_equal(is, TEXT("Kernel"));
}

/* ---- stacks ---- */

/* A Java frame is named by class and method; async-profiler's native frames have no class. */
static void push_frame(struct jfr *j, const struct jfr_value *values) {
    struct buffer *name = &j->r.scratch;
    uint64_t type = number_of_field(j->stack_frame, values, "type");
    uint64_t line = number_of_field(j->stack_frame, values, "lineNumber");
    name->count = 0;
    add_method_name(j, number_of_field(j->stack_frame, values, "method"), name);
    stack_push_frame(&j->r.stack, &(struct text_frame){
                                      .name = buffer_text(name),
                                      .language = is_native(j, type) ? TEXT("") : TEXT("java"),
                                      .line = line <= UINT32_MAX ? (uint32_t)line : 0,
                                      .kinds = kinds_of_frame(j, type),
                                  });
}

/* The frames of a stack are a list of structs, leaf first. */
static bool push_stack(struct jfr *j, uint64_t id, bool *truncated) {
    struct jfr_value values[JFR_FIELDS_MOST], frame[JFR_FIELDS_MOST];
    int frames = j->stack_trace ? jfr_field(j->stack_trace, TEXT("frames")) : -1;
    *truncated = false;
    if (frames < 0 || !j->stack_frame || !jfr_constant(&j->chunk, j->stack_trace, id, values))
        return true;
    *truncated = number_of_field(j->stack_trace, values, "truncated");
    struct text all = j->chunk.content;
    struct jfr_cursor cursor = {values[frames].at, (const uint8_t *)all.data + all.length, false};
    uint64_t count = jfr_take_int(&j->chunk, &cursor);
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *before = cursor.at;
        if (!jfr_read(&j->chunk, &cursor, j->stack_frame, frame))
            return false;
        if (cursor.at == before)
            break;
        push_frame(j, frame);
    }
    stack_reverse(&j->r.stack);
    return true;
}

static bool place_stack(struct jfr *j, uint64_t id, struct placed_stack *placed) {
    uint32_t at;
    for (struct probe p = index_probe(&j->stack_index, hash_mix(id, 3));
         (at = index_next(&j->stack_index, &p));)
        if (j->stacks.items[at - 1].id == id) {
            *placed = j->stacks.items[at - 1];
            return true;
        }
    *placed = (struct placed_stack){.id = id};
    j->r.stack.locations.count = 0;
    if (!push_stack(j, id, &placed->truncated))
        return false;
    placed->node = stack_node(&j->r.stack);
    j->r.stack.locations.count = 0;
    vector_push(&j->stacks, *placed);
    index_add(&j->stack_index, hash_mix(id, 3), (uint32_t)j->stacks.count);
    return true;
}

/* ---- events ---- */

static void set_thread(struct jfr *j, uint64_t id) {
    struct jfr_value values[JFR_FIELDS_MOST];
    if (!jfr_constant(&j->chunk, j->thread, id, values)) {
        stack_set_thread(&j->r.stack, TEXT(""), -1, -1);
        return;
    }
    struct text java = text_of_field(j, j->thread, values, "javaName");
    struct text system = text_of_field(j, j->thread, values, "osName");
    uint64_t tid = number_of_field(j->thread, values, "osThreadId");
    stack_set_thread(&j->r.stack, java.length ? java : system, -1,
                     tid && tid <= INT32_MAX ? (int32_t)tid : -1);
}

static uint64_t nanoseconds(const struct jfr_chunk *c, uint64_t ticks) {
    return (uint64_t)((__uint128_t)ticks * 1000000000 / c->ticks_per_second);
}

/* Return the name of a constant such as jdk.types.ThreadState. */
static struct text name_of_constant(struct jfr *j, const struct jfr_class *of, int field,
                                    uint64_t id) {
    struct jfr_value values[JFR_FIELDS_MOST];
    const struct jfr_class *class = jfr_class_of(&j->chunk, of->fields.items[field].type);
    if (!class || !of->fields.items[field].is_constant ||
        !jfr_constant(&j->chunk, class, id, values))
        return TEXT("");
    return text_of_field(j, class, values, "name");
}

static void set_labels(struct jfr *j, const struct jfr_class *class, const struct shape *shape,
                       const struct jfr_value *values) {
    struct buffer about = {0};
    if (shape->about >= 0)
        add_class_name(j, values[shape->about].number, &about);
    stack_set_label(&j->r.stack, TEXT("class"), buffer_text(&about));
    stack_set_label(&j->r.stack, TEXT("thread_state"),
                    shape->state >= 0
                        ? name_of_constant(j, class, shape->state, values[shape->state].number)
                        : TEXT(""));
    buffer_release(&about);
}

static void count_event(struct jfr *j, const struct shape *shape, const struct jfr_value *values,
                        const struct placed_stack *placed) {
    const struct counted_kind *is = &j->kinds.items[shape->kind - 1].is;
    const struct jfr_chunk *c = &j->chunk;
    uint64_t ticks = shape->time >= 0 ? values[shape->time].number : c->start_ticks;
    uint64_t weight = shape->weight >= 0 ? values[shape->weight].number : !is->weight;
    uint64_t time = c->start_nanoseconds +
                    (ticks > c->start_ticks ? nanoseconds(c, ticks - c->start_ticks) : 0);
    bool is_count = text_equal(text_of(is->unit), TEXT("samples"));
    weight = is->is_time ? nanoseconds(c, weight) : weight;
    stack_count_at(&j->r.stack, placed->node, is_count ? weight : 1, weight, time);
    j->truncated += placed->truncated;
}

static bool read_event(struct jfr *j, const struct jfr_class *class, const struct shape *shape,
                       struct jfr_event *event) {
    struct jfr_value values[JFR_FIELDS_MOST];
    const struct counted_kind *is = &j->kinds.items[shape->kind - 1].is;
    struct placed_stack placed;
    if (!jfr_read(&j->chunk, &event->content, class, values))
        return false;
    if (shape->weight >= 0 && values[shape->weight].number > INT64_MAX)
        return error_at(j->r.error, j->r.path,
                        (uint64_t)((const char *)event->content.at - j->chunk.file),
                        "an event has a negative value");
    if (!place_stack(j, shape->stack >= 0 ? values[shape->stack].number : 0, &placed))
        return false;
    stack_set_event(&j->r.stack, text_of(is->name), text_of(is->unit));
    set_thread(j, shape->thread >= 0 ? values[shape->thread].number : 0);
    set_labels(j, class, shape, values);
    count_event(j, shape, values, &placed);
    return true;
}

/* ---- the file ---- */

typedef bool on_event(struct jfr *j, const struct jfr_class *class, const struct shape *shape,
                      struct jfr_event *event);

static bool tally_event(struct jfr *j, const struct jfr_class *class, const struct shape *shape,
                        struct jfr_event *event) {
    j->kinds.items[shape->kind - 1].count++;
    return true;
}

static bool take_event(struct jfr *j, on_event *does, bool all, struct jfr_event *event) {
    const struct jfr_class *class = jfr_class_of(&j->chunk, event->type);
    const struct shape *shape =
        class ? &j->shapes.items[class - j->chunk.classes.items] : &(struct shape){0};
    return !shape->kind || (!all && !j->kinds.items[shape->kind - 1].wanted) ||
           does(j, class, shape, event);
}

/* Call DOES for each event of the wanted kinds, or of all that have stacks, chunk after chunk. */
static bool each_event(struct jfr *j, on_event *does, bool all) {
    struct text rest = j->r.content;
    bool fine = true;
    while (fine && rest.length) {
        uint64_t size = 0;
        j->chunk = (struct jfr_chunk){.budget = j->r.options->budget,
                                      .file = j->r.content.data,
                                      .path = j->r.path,
                                      .error = j->r.error};
        fine = jfr_chunk_open(&j->chunk, rest, &size);
        struct text chunk = j->chunk.content;
        struct jfr_cursor cursor = {(const uint8_t *)chunk.data + 68,
                                    (const uint8_t *)chunk.data + chunk.length, false};
        struct jfr_event event;
        if (fine)
            shape_chunk(j);
        while (fine && jfr_next_event(&j->chunk, &cursor, &event)) {
            fine = take_event(j, does, all, &event);
            if (import_stops(j->r.options, (const char *)cursor.at))
                break;
        }
        fine = fine && !cursor.bad;
        jfr_chunk_release(&j->chunk);
        rest = fine ? text_from(rest, size) : rest;
    }
    return fine;
}

static void add_names(const struct jfr *j, struct buffer *names) {
    for (size_t i = 0; i < j->kinds.count; i++)
        if (j->kinds.items[i].count)
            buffer_printf(names, "%s%s", names->count ? ", " : "", j->kinds.items[i].is.name);
}

static bool no_such_event(struct jfr *j, const char *name) {
    struct buffer names = {0};
    add_names(j, &names);
    error_set(j->r.error, ERROR_USAGE, "--event %s: %s has no such event%s%.*s", name, j->r.path,
              names.count ? ", only " : " and no other with stacks",
              TEXT_ARGS(buffer_text(&names)));
    buffer_release(&names);
    return false;
}

/* Say which events could be shown if none of the preferred ones is there. */
static void note_others(struct jfr *j) {
    struct buffer names = {0};
    add_names(j, &names);
    notes_add(&j->r.tree->notes, &note_other_events, 1, 0, "%s%s%.*s", j->r.path,
              names.count ? ": --event shows others with stacks: " : "",
              TEXT_ARGS(buffer_text(&names)));
    buffer_release(&names);
}

/* `--event all` selects the preferred kinds; others need a name or a pattern. */
static bool is_selected(const struct jfr *j, const struct filter *filter, size_t kind) {
    for (size_t i = 0; i < filter->event_count; i++) {
        struct filter one = {.events = &filter->events[i], .event_count = 1};
        bool all = strcmp(filter->events[i], "all") == 0;
        if (filter_event(&one, text_of(j->kinds.items[kind].is.name)) &&
            (!all || kind < COUNT_OF(preferred)))
            return true;
    }
    return false;
}

static bool choose_kinds(struct jfr *j) {
    const struct filter *filter = &j->r.options->profile.filter;
    size_t shown = COUNT_OF(preferred);
    for (size_t i = shown; i-- > 0;)
        shown = j->kinds.items[i].count ? i : shown;
    for (size_t i = 0; i < filter->event_count; i++) {
        struct filter one = {.events = &filter->events[i], .event_count = 1};
        bool found = false;
        for (size_t k = 0; k < j->kinds.count; k++)
            found |= j->kinds.items[k].count && is_selected(j, &one, k);
        if (!found)
            return no_such_event(j, filter->events[i]);
    }
    for (size_t i = 0; i < j->kinds.count; i++)
        j->kinds.items[i].wanted =
            filter->event_count ? is_selected(j, filter, i) : i == shown && i < COUNT_OF(preferred);
    if (!filter->event_count && shown == COUNT_OF(preferred))
        note_others(j);
    return true;
}

static bool jfr_read_file(struct text content, const char *path,
                          const struct import_options *options, struct tree *tree,
                          struct error *error) {
    struct jfr j = {0};
    reader_init(&j.r, content, path, options, tree, TEXT(""), error);
    for (size_t i = 0; i < COUNT_OF(preferred); i++)
        add_kind(&j, &preferred[i]);
    bool fine =
        each_event(&j, tally_event, true) && choose_kinds(&j) && each_event(&j, read_event, false);
    if (j.truncated)
        notes_add(&tree->notes, &note_truncated, j.truncated, 0, NULL);
    vector_release(&j.kinds);
    vector_release(&j.shapes);
    vector_release(&j.stacks);
    index_release(&j.kind_index);
    index_release(&j.stack_index);
    arena_release(&j.arena);
    reader_release(&j.r);
    return fine;
}

static int jfr_score(struct text beginning) {
    return text_starts(beginning, (struct text){"FLR\0", 4}) ? 100 : 0;
}

const struct import_format format_jfr = {"jfr", "Java Flight Recorder files", jfr_score,
                                         jfr_read_file, TELLS_EVENTS | TELLS_TIMES};
