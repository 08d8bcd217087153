/*
 * The line of a sample. perf 6.1 chooses the columns of an event: a default set for each type of event, without those that the first event of that
 * type does not record. So an event may show a column that it has no value for; then perf's placeholders appear: cpu -1, time ~0.
 */
#include "view/script.h"

#include <stdio.h>

enum {
    TYPE_OTHER = PERF_TYPE_BREAKPOINT + 1, /* a PMU's own */
    TYPES,
    SOFTWARE_DUMMY = 9,
    SOFTWARE_BPF_OUTPUT = 10,
    COMM_WIDTH = 16,
    NAME_WIDEST =
        4096, /* names are padded to the longest, but no event's is longer: the file's word might be gigabytes */
    ROOM = 256, /* more than the columns before the frames take, comm and event name aside */
};

/* ---- which columns ---- */

static const uint32_t columns_common =
    COLUMN_TID | COLUMN_CPU | COLUMN_TIME | COLUMN_PERIOD | COLUMN_IP;

static uint32_t columns_default(unsigned type) {
    switch (type) {
    case PERF_TYPE_TRACEPOINT:
        return COLUMN_TID | COLUMN_CPU | COLUMN_TIME | COLUMN_TRACE;
    case PERF_TYPE_SOFTWARE:
        return columns_common | COLUMN_BPF_OUTPUT;
    case PERF_TYPE_RAW:
        return columns_common | COLUMN_ADDRESS | COLUMN_DATA_SOURCE | COLUMN_WEIGHT |
               COLUMN_LATENCY | COLUMN_PHYSICAL | COLUMN_DATA_PAGE | COLUMN_CODE_PAGE;
    default:
        return columns_common;
    }
}

static unsigned type_of(const struct perfdata_event *event) {
    return event->type < TYPE_OTHER ? event->type : TYPE_OTHER;
}

static bool is_dummy(const struct perfdata_event *event) {
    return event->type == PERF_TYPE_SOFTWARE && event->config == SOFTWARE_DUMMY;
}

/* The columns that need a field which `sample_type` does not have. The period has a stand-in, so it always stays. */
static uint32_t columns_missing(uint64_t sample_type) {
    static const struct {
        uint64_t field;
        uint32_t column;
    } needs[] = {
        {PERF_SAMPLE_TID, COLUMN_TID},
        {PERF_SAMPLE_CPU, COLUMN_CPU},
        {PERF_SAMPLE_TIME, COLUMN_TIME},
        {PERF_SAMPLE_ADDR, COLUMN_ADDRESS},
        {PERF_SAMPLE_DATA_SRC, COLUMN_DATA_SOURCE},
        {PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, COLUMN_WEIGHT},
        {PERF_SAMPLE_WEIGHT_STRUCT, COLUMN_LATENCY},
        {PERF_SAMPLE_IP, COLUMN_IP},
        {PERF_SAMPLE_PHYS_ADDR, COLUMN_PHYSICAL},
        {PERF_SAMPLE_DATA_PAGE_SIZE, COLUMN_DATA_PAGE},
        {PERF_SAMPLE_CODE_PAGE_SIZE, COLUMN_CODE_PAGE},
    };
    uint32_t missing = 0;
    for (size_t i = 0; i < COUNT_OF(needs); i++)
        if (!(sample_type & needs[i].field))
            missing |= needs[i].column;
    return missing;
}

static void types_init(const struct perfdata *data, uint32_t columns[TYPES]) {
    bool seen[TYPES] = {0};
    for (unsigned type = 0; type < TYPES; type++)
        columns[type] = columns_default(type);
    for (size_t i = 0; i < data->events.count; i++) {
        const struct perfdata_event *event = &data->events.items[i];
        unsigned type = type_of(event);
        if (!seen[type] && !is_dummy(event)) {
            seen[type] = true;
            columns[type] &= ~columns_missing(event->sample_type);
        }
        if (type == PERF_TYPE_TRACEPOINT && event->sample_type & PERF_SAMPLE_CALLCHAIN)
            columns[type] |= COLUMN_IP;
    }
}

void script_events_init(struct script *script, const struct quirks *quirks) {
    const struct perfdata *data = script->profile->data;
    uint32_t columns[TYPES];
    size_t width = 0;
    types_init(data, columns);
    script->events = memory_zero(data->events.count, sizeof *script->events);
    for (size_t i = 0; i < data->events.count; i++)
        if (data->events.items[i].name.length > width &&
            data->events.items[i].name.length <= NAME_WIDEST)
            width = data->events.items[i].name.length;
    struct buffer name = {0};
    for (size_t i = 0; i < data->events.count; i++) {
        const struct perfdata_event *event = &data->events.items[i];
        name.count = 0;
        size_t pad = width > event->name.length ? width - event->name.length : 0;
        buffer_printf(&name, "%*s%.*s: ", (int)pad, "", TEXT_ARGS(event->name));
        script->events[i] = (struct script_layout){
            .columns = columns[type_of(event)],
            .has_chain = event->sample_type & PERF_SAMPLE_CALLCHAIN,
            .brief = quirks->brief_stream_points && data->is_stream &&
                     event->type == PERF_TYPE_TRACEPOINT,
            .name = arena_copy(&script->arena, buffer_text(&name)),
        };
        script->in_order |= script->events[i].columns & COLUMN_DATA_SOURCE;
    }
    buffer_release(&name);
}

/* ---- numbers, right-aligned: these run for each sample, and printf would take longer than all the rest of it ---- */

static char *put_u64(char *p, uint64_t value, int width, char pad) {
    char digits[20];
    int count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (; width > count; width--)
        *p++ = pad;
    while (count)
        *p++ = digits[--count];
    return p;
}

/* As "%5d" and "%03d" do it: the sign before zeroes, but after spaces. */
static char *put_i32(char *p, int32_t value, int width, char pad) {
    if (value >= 0)
        return put_u64(p, (uint64_t)value, width, pad);
    return p + snprintf(p, 16, pad == '0' ? "%0*d" : "%*d", width, value);
}

static char *put_hex(char *p, uint64_t value) {
    static const char digits[] = "0123456789abcdef";
    memset(p, ' ', SCRIPT_ADDRESS_WIDTH);
    int at = SCRIPT_ADDRESS_WIDTH;
    do {
        p[--at] = digits[value & 15];
        value >>= 4;
    } while (value);
    return p + SCRIPT_ADDRESS_WIDTH;
}

static char *put_text(char *p, struct text t) {
    memcpy(p, t.data, t.length);
    return p + t.length;
}

/* Seconds and microseconds, in 12 columns. */
static char *put_time(char *p, uint64_t time) {
    p = put_u64(p, time / 1000000000, 5, ' ');
    *p++ = '.';
    p = put_u64(p, time % 1000000000 / 1000, 6, '0');
    return put_text(p, TEXT(": "));
}

/* ---- the sample's own line ---- */

static void print_head(const struct script *script, struct buffer *buffer,
                       const struct perfdata_sample *sample, const struct sample *kept,
                       const struct script_row *row) {
    const struct script_layout *event = &script->events[row->event];
    const struct perfdata_event *recorded = &script->profile->data->events.items[sample->event];
    struct text comm = script->comms[kept->series];
    vector_reserve(buffer, buffer->count + comm.length + event->name.length + ROOM);
    char *p = buffer->items + buffer->count;
    if (!(event->columns & COLUMN_IP && event->has_chain) && comm.length < COMM_WIDTH) {
        memset(p, ' ', COMM_WIDTH - comm.length);
        p += COMM_WIDTH - comm.length;
    }
    p = put_text(p, comm);
    *p++ = ' ';
    if (event->columns & COLUMN_TID)
        p = put_i32(p, sample->tid, 5, ' '), *p++ = ' ';
    if (event->columns & COLUMN_CPU) {
        *p++ = '[';
        p = put_i32(p, (int32_t)sample->cpu, 3, '0');
        p = put_text(p, TEXT("] "));
    }
    if (event->columns & COLUMN_TIME)
        p = put_time(p, recorded->sample_type & PERF_SAMPLE_TIME ? sample->time : UINT64_MAX);
    if (event->columns & COLUMN_PERIOD)
        p = put_u64(p, row->period, 10, ' '), *p++ = ' ';
    p = put_text(p, event->name);
    buffer->count = (size_t)(p - buffer->items);
}

static void add_hex(struct buffer *buffer, uint64_t value) {
    vector_reserve(buffer, buffer->count + SCRIPT_ADDRESS_WIDTH);
    put_hex(buffer->items + buffer->count, value);
    buffer->count += SCRIPT_ADDRESS_WIDTH;
}

/* What only raw events show. perf pads the source to the widest it has printed so far. */
static void print_memory(struct script *script, struct buffer *buffer,
                         const struct perfdata_sample *sample, uint32_t columns) {
    if (columns & COLUMN_ADDRESS)
        add_hex(buffer, sample->address);
    if (columns & COLUMN_DATA_SOURCE) {
        size_t start = buffer->count;
        script_add_source(buffer, sample->data_source);
        if (buffer->count - start > script->source_width)
            script->source_width = buffer->count - start;
        buffer_printf(buffer, "%*s", (int)(script->source_width - (buffer->count - start)), "");
    }
    if (columns & COLUMN_WEIGHT)
        buffer_printf(buffer, "%16llu", (unsigned long long)sample->weight);
    if (columns & COLUMN_LATENCY)
        buffer_printf(buffer, "%16u", sample->weight_2);
}

/* Frames, leaf first, each on a line. */
static void print_chain(const struct script *script, struct buffer *buffer, uint32_t node,
                        bool brief) {
    const struct tree *tree = script->profile->tree;
    buffer_add_char(buffer, '\n');
    while (node) {
        const struct node *here = &tree->nodes.items[node];
        if (brief)
            script_add_lines(script, buffer, here->location, true);
        else
            buffer_add(buffer, script->lines[here->location].text);
        node = here->parent;
    }
}

/* As one more frame, which collapsers take for the root. */
static void print_ending(const struct script *script, struct buffer *buffer, uint32_t series) {
    uint8_t ending = script->profile->tree->series.items[series].ending;
    if (script->mark_incomplete && (ending == ENDING_TRUNCATED || ending == ENDING_BROKEN))
        buffer_printf(buffer, "\t%*d %s ([unknown])\n", SCRIPT_ADDRESS_WIDTH, 0,
                      ending == ENDING_TRUNCATED ? "[truncated]" : "[broken]");
}

/* The one place of a sample without a chain, with the address as sampled. */
static void print_place(const struct script *script, struct buffer *buffer, uint64_t ip,
                        uint32_t node) {
    buffer_add_char(buffer, ' ');
    add_hex(buffer, ip);
    if (!node) {
        buffer_add(buffer, TEXT(" [unknown] ([unknown])"));
        return;
    }
    const struct script_line *line =
        &script->lines[script->profile->tree->nodes.items[node].location];
    struct text last = text_from(line->text, line->last + SCRIPT_LINE_TAIL);
    buffer_add(buffer, text_upto(last, last.length - 1));
}

/* ---- branches: hardware that records each one gives where it went as the address ---- */

static bool is_branch_trace(const struct perfdata_event *event) {
    return event->type == PERF_TYPE_HARDWARE && event->config & PERF_COUNT_HW_BRANCH_INSTRUCTIONS &&
           event->sample_period == 1;
}

static void print_target(const struct script *script, struct buffer *buffer,
                         const struct perfdata_sample *sample, const struct key *key) {
    const struct profile *profile = script->profile;
    struct space_cursor cursor = {0};
    struct space_at at;
    struct symbol symbol;
    spaces_at(profile->spaces, &cursor, sample->pid, sample->tid, key, &at);
    bool is_kernel = sample->address >> 63;
    const struct mapping *mapping =
        space_find(profile->spaces, is_kernel ? at.kernel : at.user, sample->address);
    uint64_t address = mapping ? sample->address - mapping->start + mapping->offset : 0;
    buffer_add(buffer, TEXT(" => "));
    add_hex(buffer, sample->address);
    if (mapping && objects_symbol(profile->objects, mapping->object, address, &symbol))
        buffer_printf(buffer, " %.*s+0x%llx", TEXT_ARGS(symbol.name),
                      (unsigned long long)(address - symbol.start));
    else
        buffer_add(buffer, TEXT(" [unknown]"));
    struct text object =
        mapping ? objects_shown(profile->objects, mapping->object) : TEXT("[unknown]");
    buffer_printf(buffer, " (%.*s)", TEXT_ARGS(object));
}

/* ---- what BPF programs send: a hex dump, and the string it may be ---- */

/* The kernel's idea of it, which is Latin 1. */
static bool is_printable(uint8_t c) {
    return (c >= ' ' && c < 127) || c >= 160;
}

static void print_dump_line(struct buffer *buffer, const uint8_t *data, size_t at, size_t size) {
    buffer_printf(buffer, "%17s %04x:", at ? "" : "BPF output:", (unsigned)at);
    for (size_t i = at; i < at + 8; i++) {
        if (i < size)
            buffer_printf(buffer, " %02x", data[i]);
        else
            buffer_add(buffer, TEXT("   "));
    }
    buffer_add(buffer, TEXT("  "));
    for (size_t i = at; i < at + 8; i++) {
        char shown = i < size && is_printable(data[i]) ? (char)data[i] : '.';
        buffer_add_char(buffer, i < size ? shown : ' ');
    }
    buffer_add_char(buffer, '\n');
}

static void print_bpf_output(struct buffer *buffer, const struct perfdata_sample *sample) {
    const uint8_t *data = sample->raw;
    size_t size = sample->raw_size, text = 0, nul;
    buffer_add_char(buffer, '\n');
    for (size_t at = 0; at < size; at += 8)
        print_dump_line(buffer, data, at, size);
    while (text < size && is_printable(data[text]))
        text++;
    for (nul = text; nul < size && data[nul] == 0; nul++)
        ;
    if (nul == size && nul > text)
        buffer_printf(buffer, "%17s \"%.*s\"\n", "BPF string:", (int)text, (const char *)data);
}

/* ---- the end of the line ---- */

/* In the largest unit that leaves two or more, as perf rounds it. */
static void print_page_size(struct buffer *buffer, uint64_t size) {
    if (!size) {
        buffer_add(buffer, TEXT(" N/A"));
        return;
    }
    int unit = 0;
    for (; size / 1024 > 1 && unit < 3; unit++)
        size /= 1024;
    buffer_printf(buffer, " %llu%c", (unsigned long long)size, "BKMG"[unit]);
}

static void print_tail(struct buffer *buffer, const struct perfdata_sample *sample,
                       uint32_t columns) {
    if (columns & COLUMN_PHYSICAL)
        add_hex(buffer, sample->physical_address);
    if (columns & COLUMN_DATA_PAGE)
        print_page_size(buffer, sample->data_page_size);
    if (columns & COLUMN_CODE_PAGE)
        print_page_size(buffer, sample->code_page_size);
    buffer_add_char(buffer, '\n');
}

/* A sample as it stands has the recorded period or the attribute's. One that was read from a counter with another's sample has the
   counter's event, and weighs what the counter moved. */
static struct script_row row_of(const struct script *script, const struct perfdata_sample *sample,
                                const struct sample *kept) {
    const struct tree *tree = script->profile->tree;
    const struct perfdata_event *event = &script->profile->data->events.items[sample->event];
    if (event->sample_type & PERF_SAMPLE_READ && event->read_format & PERF_FORMAT_ID)
        return (struct script_row){script->event_places[tree->series.items[kept->series].event],
                                   kept->weight};
    bool recorded = event->sample_type & PERF_SAMPLE_PERIOD;
    return (struct script_row){sample->event, recorded ? sample->period : event->sample_period};
}

bool script_print(struct script *script, struct buffer *buffer, size_t number,
                  struct error *error) {
    const struct tree *tree = script->profile->tree;
    struct perfdata *data = script->profile->data;
    const struct sample *kept = &tree->samples.items[number];
    uint64_t offset = kept->offset;
    struct perfdata_record record;
    struct perfdata_sample sample;
    if (!perfdata_next(data, &offset, &record, error) ||
        !perfdata_sample(data, &record, &sample, error))
        return false;
    struct script_row row = row_of(script, &sample, kept);
    const struct script_layout *event = &script->events[row.event];
    const struct perfdata_event *attribute = &data->events.items[row.event];
    print_head(script, buffer, &sample, kept, &row);
    const struct key key = {.time = kept->time, .offset = kept->offset, .file = kept->file};
    if (event->columns & COLUMN_TRACE && sample.raw)
        script_add_trace(script, buffer, row.event, &key, &sample);
    if (event->columns & (COLUMN_ADDRESS | COLUMN_DATA_SOURCE | COLUMN_WEIGHT))
        print_memory(script, buffer, &sample, event->columns);
    if (event->columns & COLUMN_IP && sample.chain) {
        print_chain(script, buffer, kept->node, event->brief);
        print_ending(script, buffer, kept->series);
    } else if (event->columns & COLUMN_IP) {
        print_place(script, buffer, sample.ip, kept->node);
    }
    if (is_branch_trace(attribute) && attribute->sample_type & PERF_SAMPLE_ADDR)
        print_target(script, buffer, &sample, &key);
    if (event->columns & COLUMN_BPF_OUTPUT && attribute->config == SOFTWARE_BPF_OUTPUT)
        print_bpf_output(buffer, &sample);
    print_tail(buffer, &sample, event->columns);
    return true;
}
