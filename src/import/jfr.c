/*
 * Java Flight Recorder files, from `java -XX:StartFlightRecording`, `jcmd … JFR.start` and async-profiler: samples of
 * running code, allocations and waits for locks become one event each, named as in `jfr summary`. Samples of Java
 * code are counted unless --event names others, or there are none. The weight of an allocation is its bytes, or those
 * of the buffer (TLAB) that was taken for it; that of a wait is its nanoseconds. The class that was allocated or
 * waited for is the label `class`.
 *
 * A file is a sequence of chunks, each with ids of its own; a stack is placed in the tree when an event of the chunk
 * first refers to it.
 */
#include "import/jfr.h"
#include "import/reader.h"

#include <stdlib.h>

/* The events that can be counted, in the order of preference if none is selected. */
static const struct counted_kind {
    const char *name, *unit;
    const char *weight; /* a field; NULL: each counts 1 */
    const char *class;  /* a field with the class concerned; NULL: none */
    bool is_time;       /* the weight is in ticks */
} kinds[] = {
    {"jdk.ExecutionSample", "samples", NULL, NULL, false},
    {"jdk.NativeMethodSample", "samples", NULL, NULL, false},
    {"jdk.ObjectAllocationSample", "bytes", "weight", "objectClass", false},
    {"jdk.ObjectAllocationInNewTLAB", "bytes", "tlabSize", "objectClass", false},
    {"jdk.ObjectAllocationOutsideTLAB", "bytes", "allocationSize", "objectClass", false},
    {"jdk.JavaMonitorEnter", "ns", "duration", "monitorClass", true},
    {"jdk.JavaMonitorWait", "ns", "duration", "monitorClass", true},
    {"jdk.ThreadPark", "ns", "duration", "parkedClass", true},
};
enum { KINDS = COUNT_OF(kinds) };

static const struct note_kind note_truncated = {
    "jfr-truncated",
    "# stack{ was|s were} cut by the recorder; record with a larger stackdepth (jcmd … "
    "JFR.configure stackdepth=512)"};

/* The fields of an event type in one chunk: indexes, or -1. */
struct shape {
    const struct jfr_class *class;
    int time, thread, stack, weight, about;
};

struct placed_stack {
    uint64_t id;
    uint32_t node;
    bool truncated;
};

struct jfr {
    struct reader r;
    struct jfr_chunk chunk;
    bool wanted[KINDS];
    uint64_t counts[KINDS];
    struct shape shapes[KINDS];
    const struct jfr_class *stack_trace, *stack_frame, *method, *class, *symbol, *thread,
        *frame_type;
    VECTOR(struct placed_stack) stacks;
    struct index stack_index;
    uint64_t truncated;
};

/* ---- a chunk ---- */

static int shape_field(const struct jfr_class *class, const char *name) {
    return name ? jfr_field(class, text_of(name)) : -1;
}

static void shape_chunk(struct jfr *j) {
    struct jfr_chunk *c = &j->chunk;
    for (size_t i = 0; i < KINDS; i++) {
        const struct jfr_class *class = jfr_class_named(c, text_of(kinds[i].name));
        j->shapes[i] = (struct shape){.class = class};
        if (!class)
            continue;
        int thread = jfr_field(class, TEXT("sampledThread"));
        j->shapes[i] = (struct shape){
            .class = class,
            .time = jfr_field(class, TEXT("startTime")),
            .thread = thread >= 0 ? thread : jfr_field(class, TEXT("eventThread")),
            .stack = jfr_field(class, TEXT("stackTrace")),
            .weight = shape_field(class, kinds[i].weight),
            .about = shape_field(class, kinds[i].class),
        };
    }
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

static size_t kind_of_event(const struct jfr *j, uint64_t type) {
    for (size_t i = 0; i < KINDS; i++)
        if (j->shapes[i].class && j->shapes[i].class->id == type)
            return i;
    return KINDS;
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

static void count_event(struct jfr *j, size_t kind, const struct jfr_value *values,
                        const struct placed_stack *placed) {
    const struct shape *shape = &j->shapes[kind];
    const struct jfr_chunk *c = &j->chunk;
    struct stack *stack = &j->r.stack;
    uint64_t ticks = shape->time >= 0 ? values[shape->time].number : c->start_ticks;
    uint64_t weight = shape->weight >= 0 ? values[shape->weight].number : !kinds[kind].weight;
    uint64_t time = c->start_nanoseconds +
                    (ticks > c->start_ticks ? nanoseconds(c, ticks - c->start_ticks) : 0);
    struct buffer about = {0};
    stack_set_event(stack, text_of(kinds[kind].name), text_of(kinds[kind].unit));
    set_thread(j, shape->thread >= 0 ? values[shape->thread].number : 0);
    if (shape->about >= 0)
        add_class_name(j, values[shape->about].number, &about);
    stack_set_label(stack, TEXT("class"), buffer_text(&about));
    stack_count_at(stack, placed->node, 1, kinds[kind].is_time ? nanoseconds(c, weight) : weight,
                   time);
    j->truncated += placed->truncated;
    buffer_release(&about);
}

static bool read_event(struct jfr *j, size_t kind, struct jfr_event *event) {
    struct jfr_value values[JFR_FIELDS_MOST];
    const struct shape *shape = &j->shapes[kind];
    struct placed_stack placed;
    if (!jfr_read(&j->chunk, &event->content, shape->class, values))
        return false;
    if (shape->weight >= 0 && values[shape->weight].number > INT64_MAX)
        return error_at(j->r.error, j->r.path,
                        (uint64_t)((const char *)event->content.at - j->chunk.file),
                        "an event has a negative value");
    if (!place_stack(j, shape->stack >= 0 ? values[shape->stack].number : 0, &placed))
        return false;
    count_event(j, kind, values, &placed);
    return true;
}

/* ---- the file ---- */

typedef bool on_event(struct jfr *j, size_t kind, struct jfr_event *event);

static bool tally_event(struct jfr *j, size_t kind, struct jfr_event *event) {
    j->counts[kind]++;
    return true;
}

/* Call DO for each event of the wanted kinds, chunk after chunk. */
static bool each_event(struct jfr *j, on_event *does) {
    struct text rest = j->r.content;
    bool fine = true;
    while (fine && rest.length) {
        uint64_t size = 0;
        j->chunk = (struct jfr_chunk){.budget = j->r.options->budget,
                                      .file = j->r.content.data,
                                      .path = j->r.path,
                                      .error = j->r.error};
        fine = jfr_chunk_open(&j->chunk, rest, &size);
        struct text all = j->chunk.content;
        struct jfr_cursor cursor = {(const uint8_t *)all.data + 68,
                                    (const uint8_t *)all.data + all.length, false};
        struct jfr_event event;
        if (fine)
            shape_chunk(j);
        while (fine && jfr_next_event(&j->chunk, &cursor, &event)) {
            size_t kind = kind_of_event(j, event.type);
            if (kind < KINDS && j->wanted[kind])
                fine = does(j, kind, &event);
            if (import_stops(j->r.options, (const char *)cursor.at))
                break;
        }
        fine = fine && !cursor.bad;
        jfr_chunk_release(&j->chunk);
        rest = fine ? text_from(rest, size) : rest;
    }
    return fine;
}

static bool no_such_event(struct jfr *j, const char *name) {
    struct buffer names = {0};
    for (size_t i = 0; i < KINDS; i++)
        if (j->counts[i])
            buffer_printf(&names, "%s%s", names.count ? ", " : "", kinds[i].name);
    error_set(j->r.error, ERROR_USAGE, "--event %s: %s has no such event, only %.*s", name,
              j->r.path, TEXT_ARGS(names.count ? buffer_text(&names) : TEXT("others")));
    buffer_release(&names);
    return false;
}

static bool choose_kinds(struct jfr *j) {
    const struct filter *filter = &j->r.options->profile.filter;
    size_t shown = 0;
    for (size_t i = KINDS; i-- > 0;)
        shown = j->counts[i] ? i : shown;
    for (size_t i = 0; i < filter->event_count; i++) {
        struct filter one = {.events = &filter->events[i], .event_count = 1};
        bool found = false;
        for (size_t k = 0; k < KINDS; k++)
            found |= j->counts[k] && filter_event(&one, text_of(kinds[k].name));
        if (!found)
            return no_such_event(j, filter->events[i]);
    }
    for (size_t i = 0; i < KINDS; i++)
        j->wanted[i] =
            filter->event_count ? filter_event(filter, text_of(kinds[i].name)) : i == shown;
    return true;
}

static bool jfr_read_file(struct text content, const char *path,
                          const struct import_options *options, struct tree *tree,
                          struct error *error) {
    struct jfr j = {0};
    reader_init(&j.r, content, path, options, tree, TEXT(""), error);
    for (size_t i = 0; i < KINDS; i++)
        j.wanted[i] = true;
    bool fine = each_event(&j, tally_event) && choose_kinds(&j) && each_event(&j, read_event);
    if (j.truncated)
        notes_add(&tree->notes, &note_truncated, j.truncated, 0, NULL);
    vector_release(&j.stacks);
    index_release(&j.stack_index);
    reader_release(&j.r);
    return fine;
}

static int jfr_score(struct text beginning) {
    return text_starts(beginning, (struct text){"FLR\0", 4}) ? 100 : 0;
}

const struct import_format format_jfr = {"jfr", "Java Flight Recorder files", jfr_score,
                                         jfr_read_file, TELLS_EVENTS | TELLS_TIMES};
