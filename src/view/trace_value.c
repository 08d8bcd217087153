/*
 * Numbers of a tracepoint's record. They are unsigned with 64 bits, whatever the field's type, as in perf. Bytes outside the payload read as 0; so
 * does a division by zero, which crashes perf.
 */
#include "view/trace_format.h"

/* How deep operators may be nested. Each level takes about 200 bytes of stack. */
enum { DEPTH_LIMIT = 1000 };

bool trace_step(struct trace_record *record) {
    record->cut |= !record->steps;
    record->steps -= record->steps > 0;
    return !record->cut;
}

struct text trace_bytes(const struct trace_record *record, uint64_t offset, uint64_t size) {
    if (offset >= record->payload.length)
        return (struct text){"", 0};
    struct text rest = text_from(record->payload, offset);
    return text_upto(rest, size < rest.length ? size : rest.length);
}

uint64_t trace_load(const struct trace_record *record, uint64_t offset, uint64_t size) {
    struct text bytes = trace_bytes(record, offset, size);
    if (bytes.length != size)
        return 0;
    switch (size) {
    case 1:
        return (uint8_t)bytes.data[0];
    case 2:
        return load_u16(bytes.data);
    case 4:
        return load_u32(bytes.data);
    case 8:
        return load_u64(bytes.data);
    default:
        return 0;
    }
}

static uint64_t load_field(const struct trace_record *record, const struct trace_field *field) {
    return field ? trace_load(record, field->offset, field->size) : 0;
}

/* The lower half says where, the upper half how much. */
uint64_t trace_dynamic_offset(const struct trace_record *record, const struct trace_field *field) {
    uint64_t offset = load_field(record, field) & 0xffff;
    return field->flags & TRACE_FIELD_RELATIVE ? offset + field->offset + field->size : offset;
}

struct text trace_dynamic(const struct trace_record *record, const struct trace_field *field) {
    return trace_bytes(record, trace_dynamic_offset(record, field),
                       load_field(record, field) >> 16 & 0xffff);
}

/* ---- casts ---- */

/* What a value is as a `type`; casts lose bits but never extend a sign. */
static uint64_t cast(uint64_t value, struct text type) {
    static const struct {
        const char *type;
        uint64_t mask;
    } known[] = {{"u8", 0xff},        {"s8", 0xff},        {"char", 0xff},
                 {"u16", 0xffff},     {"s16", 0xffff},     {"short", 0xffff},
                 {"u32", 0xffffffff}, {"s32", 0xffffffff}, {"int", 0xffffffff}};
    bool is_unsigned = text_starts(type, TEXT("unsigned "));
    struct text bare = is_unsigned ? text_from(type, 9) : type;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (text_equal(bare, text_of(known[i].type)) &&
            (!is_unsigned || (known[i].type[0] != 'u' && known[i].type[1] > '9')))
            return value & known[i].mask;
    return value;
}

/* What it is as that to which a `type` points. */
static uint64_t cast_pointed(uint64_t value, struct text type) {
    if (type.length < 2 || type.data[type.length - 1] != '*')
        return value;
    return cast(value, text_upto(type, type.length - 2));
}

/* ---- operators ---- */

static bool apply_arithmetic(char operator, uint64_t left, uint64_t right, uint64_t *value) {
    switch (operator) {
    case '-':
        return *value = left - right, true;
    case '+':
        return *value = left + right, true;
    case '*':
        return *value = left * right, true;
    case '/':
        return *value = right ? left / right : 0, true;
    case '%':
        return *value = right ? left % right : 0, true;
    case '~':
        return *value = ~right, true;
    default:
        return false;
    }
}

/* perf has no "^". */
static uint64_t apply(struct text operator, uint64_t left, uint64_t right) {
    uint64_t value;
    char first = operator.data[0], second = operator.length> 1 ? operator.data[1] : 0;
    if (apply_arithmetic(first, left, right, &value))
        return value;
    switch (first) {
    case '!':
        return second ? left != right : !right;
    case '=':
        return second && left == right;
    case '|':
        return second ? left || right : left | right;
    case '&':
        return second ? left && right : left & right;
    case '<':
        return second == '<' ? left << (right & 63) : second ? left <= right : left < right;
    case '>':
        return second == '>' ? left >> (right & 63) : second ? left >= right : left > right;
    default:
        return 0;
    }
}

/* An item of an array: a cast before it says what it points to. False: no array. */
static bool value_of_item(struct trace_record *record, const struct trace_node *node,
                          uint64_t *value) {
    uint64_t index = trace_value(record, node->right);
    const struct trace_node *array = node->left, *type = NULL;
    for (; array->kind == TRACE_CAST; array = array->left)
        type = type ? type : array;
    const struct trace_field *field = array->field;
    if ((array->kind != TRACE_DYNAMIC && array->kind != TRACE_FIELD) || !field)
        return *value = 0, array->kind == TRACE_FIELD;
    uint64_t size = field->element_size, offset = field->offset + index * size;
    if (index > record->payload.length) /* nothing is there, wherever the product has wrapped to */
        return *value = 0, true;
    if (array->kind == TRACE_DYNAMIC) {
        size = size ? size : record->format->setting->long_size;
        offset = trace_dynamic_offset(record, field) + index;
    }
    *value = trace_load(record, offset, size);
    if (type)
        *value = cast_pointed(*value, type->text);
    return true;
}

static uint64_t value_of_operator(struct trace_record *record, const struct trace_node *node) {
    uint64_t value;
    if (text_equal(node->text, TEXT("[")) && value_of_item(record, node, &value))
        return value;
    if (text_equal(node->text, TEXT("?"))) {
        const struct trace_node *either = node->right;
        return trace_value(record, trace_value(record, node->left) ? either->left : either->right);
    }
    uint64_t left = trace_value(record, node->left);
    return apply(node->text, left, trace_value(record, node->right));
}

static uint64_t value_of(struct trace_record *record, const struct trace_node *node) {
    switch (node->kind) {
    case TRACE_ATOM:
        return node->number;
    case TRACE_FIELD:
        return load_field(record, node->field);
    case TRACE_CAST:
        return cast(trace_value(record, node->left), node->text);
    case TRACE_OPERATOR:
        return value_of_operator(record, node);
    case TRACE_DYNAMIC_LENGTH:
        return load_field(record, node->field) >> 16 & 0xffff;
    case TRACE_DYNAMIC: /* an address of its own in perf; where it is in the payload here */
        return trace_dynamic_offset(record, node->field);
    default:
        return 0;
    }
}

uint64_t trace_value(struct trace_record *record, const struct trace_node *node) {
    record->cut |= record->depth == DEPTH_LIMIT;
    if (!trace_step(record))
        return 0;
    record->depth++;
    uint64_t value = value_of(record, node);
    record->depth--;
    return value;
}

/* ---- constants ---- */

static bool apply_constant(struct text operator, int64_t left, int64_t right, int64_t *value) {
    char first = operator.data[0], second = operator.length> 1 ? operator.data[1] : 0;
    if (!first || !strchr("|&<>=!-+~", first) || (first == '!' && !second))
        return false;
    if ((first == '<' || first == '>') && second != first)
        *value = first == '<' ? left < right || (second && left == right)
                              : left > right || (second && left == right);
    else if (first == '>')
        *value = left >> (right & 63);
    else
        *value = (int64_t)apply(operator,(uint64_t) left, (uint64_t)right);
    return true;
}

bool trace_constant(const struct trace_node *node, unsigned depth, int64_t *value) {
    int64_t left = 0, right;
    if (depth == DEPTH_LIMIT)
        return false;
    switch (node->kind) {
    case TRACE_ATOM:
        *value = node->number < INT64_MAX ? (int64_t)node->number : INT64_MAX;
        return true;
    case TRACE_CAST:
        if (!trace_constant(node->left, depth + 1, value))
            return false;
        *value = (int64_t)cast((uint64_t)*value, node->text);
        return true;
    case TRACE_OPERATOR:
        return (node->left->kind == TRACE_NOTHING ||
                trace_constant(node->left, depth + 1, &left)) &&
               trace_constant(node->right, depth + 1, &right) &&
               apply_constant(node->text, left, right, value);
    default:
        return false;
    }
}
