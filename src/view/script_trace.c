/*
 * The fields of tracepoints, printed by libtraceevent from the formats that the recording carries in its TRACING_DATA section. No plugins:
 * Debian's perf finds none either, and what is printed must not depend on what is installed.
 *
 * Without the library, or where the section is damaged or lacks an event, samples are printed without their fields, and a note says so.
 */
#include "view/script.h"

static const struct note_kind note_no_fields = {
    "tracepoint-fields",
    "# tracepoint event{ is printed without its|s are printed without their} fields"};

#ifdef HAVE_TRACEEVENT
#include <traceevent/event-parse.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Formats give offsets into the payload, and the payload gives offsets into itself; both may lie. Whatever is in these limits reads
   from a buffer that is larger than their sum. */
enum { FIELD_LIMIT = 1 << 16, PAYLOAD_SIZE = 1 << 18 };

struct script_traces {
    struct tep_handle *handle;
    struct tep_event **events; /* by index of the perfdata's; NULL: can't be printed */
    pthread_mutex_t lock;      /* the library keeps state in the handle */
    struct trace_seq text;
    uint8_t *payload; /* a copy with zeroes behind it */
    size_t used;
    const struct profile *profile; /* for the names of functions that fields point to */
    struct space_cursor cursor;
    uint32_t kernel; /* what was mapped there at the sample in print */
    struct buffer function;
    struct buffer module;
};

/* ---- the section ---- */

struct section {
    struct text left;
    bool short_of;
};

static struct text take(struct section *section, uint64_t size) {
    if (size > section->left.length) {
        section->short_of = true;
        section->left.length = 0;
        return (struct text){"", 0};
    }
    struct text taken = text_upto(section->left, size);
    section->left = text_from(section->left, size);
    return taken;
}

static uint64_t take_number(struct section *section, size_t size) {
    uint64_t value = 0;
    struct text bytes = take(section, size);
    memcpy(&value, bytes.data, bytes.length);
    return value;
}

static struct text take_string(struct section *section) {
    size_t end = text_find(section->left, 0);
    struct text string = take(section, end);
    take(section, 1);
    return string;
}

/* Only formats that the recording's events use go to the library's parser: "ID: 372" says which. */
static bool format_wanted(const struct perfdata *data, struct text format) {
    size_t at = text_search(format, TEXT("\nID: "));
    uint64_t id;
    if (at == SIZE_MAX)
        return false;
    struct text number = text_from(format, at + 5);
    size_t end = text_find(number, '\n');
    if (end == SIZE_MAX || !text_to_u64(text_trim(text_upto(number, end)), &id))
        return false;
    for (size_t i = 0; i < data->events.count; i++)
        if (data->events.items[i].type == PERF_TYPE_TRACEPOINT &&
            data->events.items[i].config == id)
            return true;
    return false;
}

static void read_format(struct tep_handle *handle, const struct perfdata *data,
                        struct section *section, const char *system) {
    struct text format = take(section, take_number(section, 8));
    if (section->short_of || !format_wanted(data, format) || !trace_format_is_sound(format))
        return;
    char *copy = memory_copy(format.data, format.length);
    tep_parse_event(handle, copy, format.length, system);
    free(copy);
}

static void read_systems(struct tep_handle *handle, const struct perfdata *data,
                         struct section *section) {
    uint64_t systems = take_number(section, 4);
    while (systems-- && !section->short_of) {
        struct text name = take_string(section);
        char *system = memory_copy(name.data, name.length);
        uint64_t formats = take_number(section, 4);
        while (formats-- && !section->short_of)
            read_format(handle, data, section, system);
        free(system);
    }
}

/* Calls each(handle, line) for every line of the next part, whose size takes `width` bytes. */
static void read_lines(struct tep_handle *handle, struct section *section, size_t width,
                       void (*each)(struct tep_handle *handle, char *line)) {
    struct text part = take(section, take_number(section, width));
    char *copy = memory_copy(part.data, part.length), *next = copy;
    for (char *line; (line = strsep(&next, "\n"));)
        if (*line && each)
            each(handle, line);
    free(copy);
}

/* "0xffffffff82521780 : \"text\"". The library looks at the last three bytes of the text without asking how many there are. */
static void add_printk(struct tep_handle *handle, char *line) {
    char *format = strchr(line, ':');
    if (format && strlen(format) >= 6)
        tep_register_print_string(handle, format + 2, strtoull(line, NULL, 16));
}

static void add_comm(struct tep_handle *handle, char *line) {
    char *comm;
    long pid = strtol(line, &comm, 10);
    if (comm != line && *comm == ' ')
        tep_register_comm(handle, comm + 1, (int)pid);
}

/* "\x17\x08\x44tracing", version, byte order, size of a long, of a page; two descriptions of the ring buffer, which samples have no
   use for; formats of ftrace's own events; of all others by system; kallsyms; printk formats; comms. */
static bool section_read(struct tep_handle *handle, const struct perfdata *data,
                         struct text bytes) {
    struct section section = {.left = bytes};
    struct text magic = take(&section, 10);
    if (!text_equal(magic, TEXT("\x17\x08\x44tracing")))
        return false;
    bool has_comms = text_compare(take_string(&section), TEXT("0.6")) >= 0;
    if (take_number(&section, 1) != 0) /* the other byte order */
        return false;
    tep_set_long_size(handle, (int)take_number(&section, 1));
    tep_set_page_size(handle, (int)take_number(&section, 4));
    for (int i = 0; i < 2; i++) {
        take_string(&section);
        take(&section, take_number(&section, 8));
    }
    uint64_t formats = take_number(&section, 4);
    while (formats-- && !section.short_of)
        read_format(handle, data, &section, "ftrace");
    read_systems(handle, data, &section);
    read_lines(handle, &section, 4, NULL);
    read_lines(handle, &section, 4, add_printk);
    if (has_comms)
        read_lines(handle, &section, 8, add_comm);
    return !section.short_of;
}

/* ---- events ---- */

static bool event_usable(struct tep_event *event) {
    struct tep_format_field *lists[] = {event->format.common_fields, event->format.fields};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (struct tep_format_field *field = lists[i]; field; field = field->next)
            if (field->offset < 0 || field->size < 0 || field->offset > FIELD_LIMIT ||
                field->size > FIELD_LIMIT)
                return false;
    return true;
}

/* The function at *address, for "%pS" and the like; *address becomes its start. The library uses the text before it asks again. */
static char *resolve_function(void *context, unsigned long long *address, char **module) {
    struct script_traces *traces = context;
    const struct profile *profile = traces->profile;
    const struct mapping *mapping = space_find(profile->spaces, traces->kernel, *address);
    struct symbol symbol;
    if (!mapping || !objects_symbol(profile->objects, mapping->object, *address, &symbol))
        return NULL;
    traces->function.count = traces->module.count = 0;
    buffer_add(&traces->function, symbol.name);
    buffer_add_char(&traces->function, 0);
    buffer_add(&traces->module, objects_shown(profile->objects, mapping->object));
    buffer_add_char(&traces->module, 0);
    bool is_module = objects_get(profile->objects, mapping->object)->kind == OBJECT_MODULE;
    *module = is_module ? traces->module.items : NULL;
    *address = symbol.start;
    return traces->function.items;
}

static struct script_traces *traces_new(const struct profile *profile) {
    const struct perfdata *data = profile->data;
    struct script_traces *traces = memory_zero(1, sizeof *traces);
    traces->profile = profile;
    tep_set_loglevel(TEP_LOG_NONE);
    traces->handle = tep_alloc();
    traces->events = memory_zero(data->events.count, sizeof *traces->events);
    traces->payload = memory_zero(PAYLOAD_SIZE, 1);
    pthread_mutex_init(&traces->lock, NULL);
    trace_seq_init(&traces->text);
    if (traces->handle)
        tep_set_function_resolver(traces->handle, resolve_function, traces);
    if (!traces->handle ||
        !section_read(traces->handle, data, data->features[FEATURE_TRACING_DATA]))
        return traces;
    for (size_t i = 0; i < data->events.count; i++) {
        const struct perfdata_event *event = &data->events.items[i];
        struct tep_event *found = event->type == PERF_TYPE_TRACEPOINT && event->config <= INT32_MAX
                                      ? tep_find_event(traces->handle, (int)event->config)
                                      : NULL;
        traces->events[i] = found && event_usable(found) ? found : NULL;
    }
    return traces;
}

static bool traces_can_print(const struct script_traces *traces, size_t event) {
    return traces->events[event];
}

void script_add_trace(struct script *script, struct buffer *buffer, uint32_t event,
                      const struct key *key, const struct perfdata_sample *sample) {
    struct script_traces *traces = script->traces;
    if (!traces || !traces->events[event])
        return;
    pthread_mutex_lock(&traces->lock);
    memcpy(traces->payload, sample->raw, sample->raw_size);
    if (traces->used > sample->raw_size)
        memset(traces->payload + sample->raw_size, 0, traces->used - sample->raw_size);
    traces->used = sample->raw_size;
    struct space_at at;
    spaces_at(traces->profile->spaces, &traces->cursor, sample->pid, sample->tid, key, &at);
    traces->kernel = at.kernel;
    struct tep_record record = {
        .cpu = (int)sample->cpu, .size = (int)sample->raw_size, .data = traces->payload};
    trace_seq_reset(&traces->text);
    tep_print_event(traces->handle, &traces->text, &record, "%s", TEP_PRINT_INFO);
    buffer_add(buffer, (struct text){traces->text.buffer, traces->text.len});
    pthread_mutex_unlock(&traces->lock);
}

void script_traces_free(struct script_traces *traces) {
    if (!traces)
        return;
    trace_seq_destroy(&traces->text);
    pthread_mutex_destroy(&traces->lock);
    tep_free(traces->handle);
    free(traces->events);
    free(traces->payload);
    buffer_release(&traces->function);
    buffer_release(&traces->module);
    free(traces);
}

#else

static struct script_traces *traces_new(const struct profile *profile) {
    return NULL;
}

static bool traces_can_print(const struct script_traces *traces, size_t event) {
    return false;
}

void script_add_trace(struct script *script, struct buffer *buffer, uint32_t event,
                      const struct key *key, const struct perfdata_sample *sample) {}

void script_traces_free(struct script_traces *traces) {}

#endif

void script_traces_init(struct script *script) {
    const struct perfdata *data = script->profile->data;
    bool any = false;
    for (size_t i = 0; i < data->events.count; i++)
        any |= script->events[i].columns & COLUMN_TRACE;
    if (!any)
        return;
    script->traces = traces_new(script->profile);
    for (size_t i = 0; i < data->events.count; i++)
        if (script->events[i].columns & COLUMN_TRACE && !traces_can_print(script->traces, i))
            notes_add(&script->profile->tree->notes, &note_no_fields, 1, i, "%.*s",
                      TEXT_ARGS(data->events.items[i].name));
}
