/* Print a tracepoint's record piece by piece of its format; or field by field, if the format could not be parsed. */
#include "view/trace_format.h"

#include <stdio.h>

/* Bytes that a record may print: so many for each byte of its payload, what its format has, and some. The most that is usual, "%02x "
   of every byte, needs three; but several arguments may print the same bytes. */
enum { BYTES_A_BYTE = 16, FORMAT_LIMIT = 1 << 15, BYTES_MORE = 4096, STEP_LIMIT = 1 << 16 };

/* ---- output ---- */

void trace_add(struct trace_record *record, struct text text) {
    size_t room = record->limit - record->buffer->count;
    record->cut |= text.length > room;
    buffer_add(record->buffer, text_upto(text, text.length < room ? text.length : room));
}

void trace_printf(struct trace_record *record, const char *format, ...) {
    char text[160];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    assert(length >= 0 && (size_t)length < sizeof text);
    trace_add(record, (struct text){text, (size_t)length});
}

static void add_repeated(struct trace_record *record, char c, size_t count) {
    size_t room = record->limit - record->buffer->count;
    record->cut |= count > room;
    for (count = count < room ? count : room; count; count--)
        buffer_add_char(record->buffer, c);
}

/* Text up to a NUL, in the width and precision that the conversion asks for; `star` is the one that it takes from an argument. */
static void add_text(struct trace_record *record, const struct trace_piece *piece, int star,
                     struct text text) {
    size_t nul = text.length ? text_find(text, 0) : SIZE_MAX;
    text = nul == SIZE_MAX ? text : text_upto(text, nul);
    int64_t width = piece->star && !piece->star_precision ? star : piece->width;
    int64_t precision = piece->star && piece->star_precision ? star : piece->precision;
    if (precision >= 0 && (uint64_t)precision < text.length)
        text = text_upto(text, (size_t)precision);
    bool left = piece->left || (piece->star && !piece->star_precision && star < 0);
    size_t wide = (size_t)(width < 0 && left && piece->star ? -width : width < 0 ? 0 : width);
    size_t pad = wide > text.length ? wide - text.length : 0;
    if (!left)
        add_repeated(record, ' ', pad);
    trace_add(record, text);
    if (left)
        add_repeated(record, ' ', pad);
}

/* ---- strings ---- */

static const struct trace_string *string_find(const struct trace_setting *setting,
                                              uint64_t address) {
    size_t low =
        search_first(middle, 0, setting->string_count, setting->strings[middle].address < address);
    return low < setting->string_count && setting->strings[low].address == address
               ? &setting->strings[low]
               : NULL;
}

/* A field of the size of a pointer points to a string of the kernel's. */
static void add_field(struct trace_record *record, const struct trace_piece *piece, int star,
                      const struct trace_field *field) {
    const struct trace_setting *setting = record->format->setting;
    if (!field)
        return;
    if (field->flags & TRACE_FIELD_ARRAY || field->size != setting->long_size) {
        add_text(record, piece, star,
                 trace_bytes(record, field->offset, field->size ? field->size : UINT64_MAX));
        return;
    }
    uint64_t address = trace_load(record, field->offset, field->size);
    const struct trace_string *string = string_find(setting, address);
    if (string)
        trace_add(record, string->text);
    else
        trace_printf(record, "%llx", (unsigned long long)address);
}

/* Each name in the conversion's width. What is left of the value comes in hexadecimal, and a value of 0 as a name of -1. */
static void add_flags(struct trace_record *record, const struct trace_piece *piece, int star,
                      const struct trace_node *node) {
    int64_t value = (int64_t)trace_value(record, node->left);
    bool any = false;
    for (const struct trace_choice *c = node->choices; c && trace_step(record); c = c->next) {
        if (!value && c->value < 0) {
            add_text(record, piece, star, c->text);
            break;
        }
        if (c->value > 0 && (value & c->value) == c->value) {
            trace_add(record, any ? node->text : TEXT(""));
            add_text(record, piece, star, c->text);
            any = true;
            value &= ~c->value;
        }
    }
    if (value) {
        trace_add(record, any ? node->text : TEXT(""));
        trace_printf(record, "0x%llx", (unsigned long long)value);
    }
}

static void add_symbolic(struct trace_record *record, const struct trace_piece *piece, int star,
                         const struct trace_node *node) {
    int64_t value = (int64_t)trace_value(record, node->left);
    const struct trace_choice *c = node->choices;
    while (c && c->value != value && trace_step(record))
        c = c->next;
    if (c)
        add_text(record, piece, star, c->text);
    else
        trace_printf(record, "0x%llx", (unsigned long long)value);
}

/* The rest of the payload from where an array begins. */
static struct text array_bytes(const struct trace_record *record, enum trace_kind kind,
                               const struct trace_field *field) {
    if (!field)
        return (struct text){"", 0};
    uint64_t offset = kind == TRACE_DYNAMIC ? trace_dynamic_offset(record, field) : field->offset;
    return trace_bytes(record, offset, UINT64_MAX);
}

static void add_hex(struct trace_record *record, const struct trace_node *node) {
    struct text bytes = array_bytes(record, node->left->kind, node->left->field);
    int count = (int)trace_value(record, node->right);
    for (size_t i = 0; (int)i < count && i < bytes.length && trace_step(record); i++)
        trace_printf(record, "%s%02x", i && node->kind == TRACE_HEX ? " " : "",
                     (uint8_t)bytes.data[i]);
}

static void add_array(struct trace_record *record, const struct trace_node *node) {
    struct text bytes = array_bytes(record, node->left->kind, node->left->field);
    int count = (int)trace_value(record, node->right), size = (int)trace_value(record, node->width);
    size_t place = (size_t)(bytes.data - record->payload.data);
    for (int i = 0; i < count && bytes.length && trace_step(record); i++) {
        trace_add(record, i ? TEXT(" ") : TEXT(""));
        bool good = size == 1 || size == 2 || size == 4 || size == 8;
        size_t step = good ? (size_t)size : 1;
        if (bytes.length < step)
            break;
        if (good)
            trace_printf(record, "%llu", (unsigned long long)trace_load(record, place, step));
        else
            trace_printf(record, "BAD SIZE:%d 0x%x", size, (uint8_t)bytes.data[0]);
        size = (int)step;
        place += step;
        bytes = text_from(bytes, step);
    }
}

/* 32 bits between two commas, the highest first. */
static void add_bitmask(struct trace_record *record, const struct trace_piece *piece, int star,
                        struct text bytes) {
    struct buffer text = {0};
    for (size_t i = bytes.length; i-- > 0 && trace_step(record);)
        buffer_printf(&text, "%02x%s", (uint8_t)bytes.data[i], i && i % 4 == 0 ? "," : "");
    add_text(record, piece, star, buffer_text(&text));
    buffer_release(&text);
}

/* "0,4-7" */
static void add_cpumask(struct trace_record *record, const struct trace_piece *piece, int star,
                        struct text bytes) {
    struct buffer text = {0};
    size_t bits = bytes.length * 8;
    for (size_t i = 0; i < bits; i++) {
        size_t end = i;
        while (end < bits && bytes.data[end / 8] >> end % 8 & 1)
            end++;
        if (end == i)
            continue;
        if (!trace_step(record))
            break;
        buffer_printf(&text, "%s%zu", text.count ? "," : "", i);
        if (end > i + 1)
            buffer_printf(&text, "-%zu", end - 1);
        i = end;
    }
    add_text(record, piece, star, buffer_text(&text));
    buffer_release(&text);
}

/* __get_str(): perf prints what is there even if the field says that nothing is. */
static void add_dynamic_string(struct trace_record *record, const struct trace_piece *piece,
                               int star, const struct trace_field *field) {
    if (!field)
        return;
    struct text string = trace_dynamic(record, field);
    if (!string.length && !record->format->setting->quirks.old_trace_formats)
        return;
    add_text(record, piece, star, array_bytes(record, TRACE_DYNAMIC, field));
}

static void add_string(struct trace_record *record, const struct trace_piece *piece, int star,
                       const struct trace_node *node) {
    while (node->kind == TRACE_OPERATOR && text_equal(node->text, TEXT("?")) && trace_step(record))
        node = trace_value(record, node->left) ? node->right->left : node->right->right;
    switch (node->kind) {
    case TRACE_ATOM:
        add_text(record, piece, star, node->text);
        break;
    case TRACE_FIELD:
        add_field(record, piece, star, node->field);
        break;
    case TRACE_FLAGS:
        add_flags(record, piece, star, node);
        break;
    case TRACE_SYMBOLIC:
        add_symbolic(record, piece, star, node);
        break;
    case TRACE_HEX:
    case TRACE_HEX_STRING:
        add_hex(record, node);
        break;
    case TRACE_ARRAY:
        add_array(record, node);
        break;
    case TRACE_STRING:
        add_dynamic_string(record, piece, star, node->field);
        break;
    case TRACE_BITMASK:
    case TRACE_CPUMASK:
        if (node->field)
            (node->kind == TRACE_BITMASK ? add_bitmask : add_cpumask)(
                record, piece, star, trace_dynamic(record, node->field));
        break;
    default:
        break;
    }
}

/* ---- numbers ---- */

/* The argument as the type that the conversion's length names; "%zu" is an unsigned int to perf. */
static uint64_t narrow(const struct trace_piece *piece, uint64_t value) {
    bool is_signed = piece->conversion == 'd' || piece->conversion == 'i';
    switch (piece->length) {
    case -2:
        return is_signed ? (uint64_t)(int8_t)value : (uint8_t)value;
    case -1:
        return is_signed ? (uint64_t)(int16_t)value : (uint16_t)value;
    case 0:
        return is_signed && !piece->has_size ? (uint64_t)(int32_t)value : (uint32_t)value;
    default:
        return value;
    }
}

static void add_number(struct trace_record *record, const struct trace_piece *piece, int star,
                       const struct trace_node *node) {
    char format[16], *end = format;
    uint64_t value = narrow(piece, trace_value(record, node));
    int64_t width = piece->star && !piece->star_precision ? star
                    : piece->width < 0                    ? 0
                                                          : piece->width;
    int64_t precision = piece->star && piece->star_precision ? star : piece->precision;
    int64_t room = (int64_t)(record->limit - record->buffer->count);
    if (piece->odd) {
        trace_add(record, piece->text);
        return;
    }
    if (width > room || width < -room || precision > room) {
        record->cut = true;
        return;
    }
    *end++ = '%';
    if (piece->left)
        *end++ = '-';
    if (piece->zero)
        *end++ = '0';
    if (piece->alternate)
        *end++ = '#';
    memcpy(end, "*.*ll", 5);
    end[5] = piece->conversion;
    end[6] = 0;
    buffer_printf(record->buffer, format, (int)width, (int)(precision < 0 ? -1 : precision), value);
    if (record->buffer->count > record->limit) {
        record->buffer->count = record->limit;
        record->cut = true;
    }
}

/* ---- fields, when the format cannot be parsed ---- */

static bool is_printable(struct text text) {
    for (size_t i = 0; i < text.length && text.data[i]; i++)
        if ((text.data[i] < ' ' || text.data[i] > '~') &&
            !(text.data[i] >= '\t' && text.data[i] <= '\r'))
            return false;
    return true;
}

/* A string up to its NUL, even behind its end; or the bytes. perf, once it has seen bytes in a field, never takes it for a string again. */
static void dump_array(struct trace_record *record, const struct trace_field *field) {
    struct text bytes = field->flags & TRACE_FIELD_DYNAMIC
                            ? trace_dynamic(record, field)
                            : trace_bytes(record, field->offset, field->size);
    bool *never = field->never_string;
    if (field->flags & TRACE_FIELD_STRING && !(never && *never) && is_printable(bytes)) {
        bool dynamic = field->flags & TRACE_FIELD_DYNAMIC;
        struct text rest = array_bytes(record, dynamic ? TRACE_DYNAMIC : TRACE_FIELD, field);
        size_t nul = rest.length ? text_find(rest, 0) : SIZE_MAX;
        trace_add(record, nul == SIZE_MAX ? rest : text_upto(rest, nul));
        return;
    }
    if (never)
        *never = true;
    trace_add(record, TEXT("ARRAY["));
    for (size_t i = 0; i < bytes.length && trace_step(record); i++)
        trace_printf(record, "%s%02x", i ? ", " : "", (uint8_t)bytes.data[i]);
    trace_add(record, TEXT("]"));
}

static void dump_number(struct trace_record *record, const struct trace_field *field) {
    unsigned long long value = trace_load(record, field->offset, field->size);
    bool is_long = field->flags & TRACE_FIELD_LONG;
    if (field->flags & TRACE_FIELD_POINTER)
        trace_printf(record, "0x%llx", value);
    else if (!(field->flags & TRACE_FIELD_SIGNED))
        trace_printf(record, is_long ? "0x%llx" : "%llu", value);
    else if (field->size == 4)
        trace_printf(record, is_long ? "0x%x" : "%d", (int)value);
    else if (field->size == 2)
        trace_printf(record, "%2d", (short)value);
    else if (field->size == 1)
        trace_printf(record, "%1d", (signed char)value);
    else
        trace_printf(record, "%lld", (long long)value);
}

static void dump_fields(struct trace_record *record) {
    trace_add(record, TEXT("[FAILED TO PARSE]"));
    for (const struct trace_field *field = record->format->fields; field && trace_step(record);
         field = field->next) {
        trace_add(record, TEXT(" "));
        trace_add(record, field->name);
        trace_add(record, TEXT("="));
        if (field->flags & TRACE_FIELD_ARRAY)
            dump_array(record, field);
        else
            dump_number(record, field);
    }
}

/* ---- the whole ---- */

static void add_piece(struct trace_record *record, const struct trace_piece *piece) {
    int star = piece->star ? (int)trace_value(record, piece->star) : -1;
    if (!piece->argument)
        trace_add(record, piece->text);
    else if (piece->conversion == 'p')
        trace_add_pointer(record, piece->text, piece->argument, piece->star ? star : 1);
    else if (piece->conversion != 's')
        add_number(record, piece, star, piece->argument);
    else if (piece->odd)
        trace_add(record, piece->text);
    else
        add_string(record, piece, star, piece->argument);
}

bool trace_print(struct trace_record *record) {
    const struct trace_format *format = record->format;
    record->steps = STEP_LIMIT + record->payload.length;
    record->limit = record->buffer->count + BYTES_MORE + BYTES_A_BYTE * record->payload.length +
                    2 * (format->size < FORMAT_LIMIT ? format->size : FORMAT_LIMIT);
    record->depth = 0;
    record->cut = false;
    if (format->failed)
        dump_fields(record);
    for (const struct trace_piece *piece = format->failed ? NULL : format->pieces;
         piece && trace_step(record); piece = piece->next)
        add_piece(record, piece);
    return !record->cut;
}
