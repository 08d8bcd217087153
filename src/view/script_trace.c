/*
 * Print the fields of tracepoints by the formats in the recording's TRACING_DATA section (trace_format.h).
 *
 * If the section is damaged or lacks an event, samples are printed without their fields, and a note says so.
 */
#include "view/script.h"
#include "view/trace_format.h"

#include <stdlib.h>

static const struct note_kind note_no_fields = {
    "tracepoint-fields",
    "# tracepoint event{ is printed without its|s are printed without their} fields"};
static const struct note_kind note_cut = {
    "tracepoint-cut",
    "# tracepoint sample{ is|s are} cut short, because the format prints too much"};

struct script_traces {
    const struct profile *profile; /* for the names of functions that fields point to */
    struct trace_setting setting;
    struct arena arena; /* of the kernel's strings */
    VECTOR(struct trace_string) strings;
    VECTOR(struct trace_format *) formats;
    struct trace_format **events; /* by index of the perfdata's; NULL: can't be printed */
    uint64_t cut;                 /* samples that were; atomic */
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

/* Only formats that the recording's events use are parsed: "ID: 372" says which. */
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

static void read_format(struct script_traces *traces, struct section *section) {
    struct text text = take(section, take_number(section, 8));
    if (section->short_of || !format_wanted(traces->profile->data, text))
        return;
    struct trace_format *format = trace_format_new(text, &traces->setting);
    if (format)
        vector_push(&traces->formats, format);
}

static void read_systems(struct script_traces *traces, struct section *section) {
    uint64_t systems = take_number(section, 4);
    while (systems-- && !section->short_of) {
        take_string(section);
        uint64_t formats = take_number(section, 4);
        while (formats-- && !section->short_of)
            read_format(traces, section);
    }
}

/* "0xffffffff82521780 : \"text\"", for events that point to a string of the kernel's. A "\n" at its end is left out. */
static void read_string(struct script_traces *traces, struct text line) {
    uint64_t address;
    size_t colon = text_find(line, ':');
    if (colon == SIZE_MAX || line.length < colon + 2 || !text_starts(line, TEXT("0x")) ||
        !text_hex_to_u64(text_trim(text_from(text_upto(line, colon), 2)), &address))
        return;
    struct text string = text_from(line, colon + 2);
    if (text_starts(string, TEXT("\"")))
        string = text_from(string, 1);
    if (text_ends(string, TEXT("\"")))
        string = text_upto(string, string.length - 1);
    if (text_ends(string, TEXT("\\n")))
        string = text_upto(string, string.length - 2);
    string = arena_copy(&traces->arena, string);
    vector_push(&traces->strings, ((struct trace_string){address, string}));
}

static int compare_strings(const void *a, const void *b) {
    const struct trace_string *x = a, *y = b;
    return x->address < y->address   ? -1
           : x->address > y->address ? 1
                                     : text_compare(x->text, y->text);
}

static void read_strings(struct script_traces *traces, struct section *section) {
    struct text part = take(section, take_number(section, 4));
    while (part.length)
        read_string(traces, text_take_line(&part));
    if (traces->strings.count)
        qsort(traces->strings.items, traces->strings.count, sizeof *traces->strings.items,
              compare_strings);
    traces->setting.strings = traces->strings.items;
    traces->setting.string_count = traces->strings.count;
}

/* "\x17\x08\x44tracing", version, byte order, size of a long, of a page; two descriptions of the ring buffer, which samples have no
   use for; formats of ftrace's own events; of all others by system; kallsyms; the kernel's strings; comms, which nothing here prints. */
static bool section_read(struct script_traces *traces, struct text bytes) {
    struct section section = {.left = bytes};
    struct text magic = take(&section, 10);
    if (!text_equal(magic, TEXT("\x17\x08\x44tracing")))
        return false;
    bool has_comms = text_compare(take_string(&section), TEXT("0.6")) >= 0;
    if (take_number(&section, 1) != 0) /* the other byte order */
        return false;
    traces->setting.long_size = (uint32_t)take_number(&section, 1);
    take(&section, 4);
    for (int i = 0; i < 2; i++) {
        take_string(&section);
        take(&section, take_number(&section, 8));
    }
    uint64_t formats = take_number(&section, 4);
    while (formats-- && !section.short_of)
        read_format(traces, &section);
    read_systems(traces, &section);
    take(&section, take_number(&section, 4));
    read_strings(traces, &section);
    if (has_comms)
        take(&section, take_number(&section, 8));
    return !section.short_of;
}

/* ---- events ---- */

static struct trace_format *find_format(const struct script_traces *traces, uint64_t id) {
    for (size_t i = 0; i < traces->formats.count; i++)
        if (traces->formats.items[i]->id == id)
            return traces->formats.items[i];
    return NULL;
}

static struct script_traces *traces_new(const struct profile *profile,
                                        const struct quirks *quirks) {
    const struct perfdata *data = profile->data;
    struct script_traces *traces = memory_zero(1, sizeof *traces);
    traces->profile = profile;
    traces->setting.quirks = *quirks;
    traces->events = memory_zero(data->events.count, sizeof *traces->events);
    if (!section_read(traces, data->features[FEATURE_TRACING_DATA]))
        return traces;
    for (size_t i = 0; i < data->events.count; i++)
        if (data->events.items[i].type == PERF_TYPE_TRACEPOINT)
            traces->events[i] = find_format(traces, data->events.items[i].config);
    return traces;
}

/* A sample in print. */
struct trace_sample {
    const struct profile *profile;
    const struct perfdata_sample *sample;
    const struct key *key;
};

static struct text resolve_function(void *context, uint64_t *address) {
    const struct trace_sample *in_print = context;
    const struct profile *profile = in_print->profile;
    struct space_cursor cursor = {0};
    struct space_at at;
    spaces_at(profile->spaces, &cursor, in_print->sample->pid, in_print->sample->tid, in_print->key,
              &at);
    const struct mapping *mapping = space_find(profile->spaces, at.kernel, *address);
    struct symbol symbol;
    if (!mapping || !objects_symbol(profile->objects, mapping->object, *address, &symbol))
        return (struct text){"", 0};
    *address = symbol.start;
    return symbol.name;
}

void script_add_trace(struct script *script, struct buffer *buffer, uint32_t event,
                      const struct key *key, const struct perfdata_sample *sample) {
    struct script_traces *traces = script->traces;
    if (!traces || !traces->events[event])
        return;
    struct trace_sample in_print = {traces->profile, sample, key};
    struct trace_record record = {
        .format = traces->events[event],
        .payload = {(const char *)sample->raw, sample->raw_size},
        .buffer = buffer,
        .function = resolve_function,
        .context = &in_print,
    };
    if (!trace_print(&record))
        __atomic_fetch_add(&traces->cut, 1, __ATOMIC_RELAXED);
}

void script_traces_init(struct script *script, const struct quirks *quirks) {
    const struct perfdata *data = script->profile->data;
    bool any = false;
    for (size_t i = 0; i < data->events.count; i++)
        any |= script->events[i].columns & COLUMN_TRACE;
    if (!any)
        return;
    script->traces = traces_new(script->profile, quirks);
    for (size_t i = 0; i < data->events.count; i++) {
        const struct trace_format *format = script->traces->events[i];
        if (script->events[i].columns & COLUMN_TRACE && !format)
            notes_add(&script->profile->tree->notes, &note_no_fields, 1, i, "%.*s",
                      TEXT_ARGS(data->events.items[i].name));
        /* Whether perf takes a field for a string depends on the samples before. */
        script->in_order |= quirks->old_trace_formats && format && format->failed;
    }
}

void script_traces_free(struct script *script) {
    struct script_traces *traces = script->traces;
    if (!traces)
        return;
    if (traces->cut)
        notes_add(&script->profile->tree->notes, &note_cut, traces->cut, 0, NULL);
    for (size_t i = 0; i < traces->formats.count; i++)
        trace_format_free(traces->formats.items[i]);
    vector_release(&traces->formats);
    vector_release(&traces->strings);
    arena_release(&traces->arena);
    free(traces->events);
    free(traces);
}
