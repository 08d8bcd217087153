/* OpenTelemetry's stacks: rows of the shared tables, and how a location is added to the tree. */
#include "import/otlp.h"

uint64_t otlp_offset_of(const struct otlp *t, const void *at) {
    uint64_t offset = (uint64_t)((const char *)at - t->r.content.data);
    return t->places.count ? otlp_place_of(&t->places, offset) : offset;
}

struct proto otlp_look_into(struct otlp *t, struct text message) {
    budget_take_steps(&t->frames, 1 + message.length / 16,
                      message.length ? otlp_offset_of(t, message.data) : 0);
    return proto_begin(message);
}

struct text otlp_row(const struct otlp *t, unsigned table, uint64_t number) {
    const struct rows *rows = &t->tables[table];
    return number < rows->list.count ? rows->list.items[number] : TEXT("");
}

struct text otlp_string_of(const struct otlp *t, uint64_t number) {
    return otlp_row(t, TABLE_STRING, number);
}

struct text otlp_value_of(struct otlp *t, struct text message) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    struct text value = TEXT("");
    while (proto_next(&m, &field)) {
        t->scratch.count = 0;
        if (field.number == VALUE_STRING && field.wire == WIRE_TEXT)
            value = field.text;
        else if (field.number == VALUE_STRING_NUMBER)
            value = otlp_string_of(t, field.value);
        else if (field.number == VALUE_BOOL)
            value = field.value ? TEXT("true") : TEXT("false");
        else if (field.number == VALUE_INTEGER) {
            buffer_printf(&t->scratch, "%lld", (long long)field.value);
            value = buffer_text(&t->scratch);
        }
    }
    return value;
}

/* The build id is an attribute, and there may be many. */
static void take_build_id(struct otlp *t, uint64_t attribute, struct build_id *id) {
    struct proto m = otlp_look_into(t, otlp_row(t, TABLE_ATTRIBUTE, attribute));
    struct proto_field field;
    struct text key = TEXT(""), value = TEXT("");
    while (proto_next(&m, &field)) {
        if (field.number == ATTRIBUTE_KEY && field.wire == WIRE_NUMBER)
            key = otlp_string_of(t, field.value);
        else if (field.number == ATTRIBUTE_VALUE && field.wire == WIRE_TEXT)
            value = otlp_value_of(t, field.text);
    }
    if (text_equal(key, TEXT("process.executable.build_id.gnu")))
        *id = build_id_of_hex(value);
}

struct mapped {
    struct text path;
    struct build_id id;
    uint64_t bias; /* difference between the profile's addresses and the object's */
};

static struct mapped mapping_of(struct otlp *t, uint64_t mapping) {
    struct proto m = otlp_look_into(t, otlp_row(t, TABLE_MAPPING, mapping));
    struct proto_field field;
    struct mapped mapped = {.path = TEXT("")};
    uint64_t attribute;
    bool bad = false;
    while (proto_next(&m, &field)) {
        if (field.number == MAPPING_FILE)
            mapped.path = otlp_string_of(t, field.value);
        else if (field.number == MAPPING_START)
            mapped.bias += field.value;
        else if (field.number == MAPPING_OFFSET)
            mapped.bias -= field.value;
        while (field.number == MAPPING_ATTRIBUTES && proto_repeated(&field, &attribute, &bad))
            take_build_id(t, attribute, &mapped.id);
    }
    return mapped;
}

static uint32_t small(uint64_t number) {
    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

static struct text_frame read_line(struct otlp *t, struct text line, uint32_t *column) {
    struct proto m = proto_begin(line);
    struct proto_field field;
    struct text_frame frame = {0};
    uint64_t function = 0;
    *column = 0;
    while (proto_next(&m, &field)) {
        if (field.number == LINE_FUNCTION)
            function = field.value;
        else if (field.number == LINE_LINE)
            frame.line = small(field.value);
        else if (field.number == LINE_COLUMN)
            *column = small(field.value);
    }
    struct text system = TEXT("");
    m = otlp_look_into(t, otlp_row(t, TABLE_FUNCTION, function));
    while (proto_next(&m, &field)) {
        if (field.number == FUNCTION_NAME)
            frame.name = otlp_string_of(t, field.value);
        else if (field.number == FUNCTION_SYSTEM_NAME)
            system = otlp_string_of(t, field.value);
        else if (field.number == FUNCTION_FILE)
            frame.file = otlp_string_of(t, field.value);
        else if (field.number == FUNCTION_LINE)
            frame.first_line = small(field.value);
    }
    if (!frame.name.length)
        frame.name = system;
    return frame;
}

/* Add a location with only names. Innermost lines come first, as do stacks' leaves: everything is reversed at the
   end. */
static void push_names(struct otlp *t, struct text location, struct text path) {
    struct proto m = proto_begin(location);
    struct proto_field field;
    struct text_frame frame = {0};
    uint32_t kinds = script_object_kinds(path, false), column;
    bool any = false;
    while (proto_next(&m, &field)) {
        if (field.number != LOCATION_LINE || field.wire != WIRE_TEXT)
            continue;
        if (any) {
            frame.kinds |= KIND_INLINED;
            stack_push_frame(&t->r.stack, &frame);
        }
        frame = read_line(t, field.text, &column);
        frame.object = path;
        frame.kinds = kinds;
        any = true;
    }
    if (!any)
        frame = (struct text_frame){.object = path, .kinds = kinds};
    stack_push_frame(&t->r.stack, &frame);
}

static void push_code(struct otlp *t, struct text message, const struct mapped *mapped,
                      uint64_t address) {
    struct tree *tree = t->r.tree;
    struct proto m = proto_begin(message);
    struct proto_field field;
    t->lines.count = 0;
    while (proto_next(&m, &field)) {
        if (field.number != LOCATION_LINE || field.wire != WIRE_TEXT)
            continue;
        uint32_t column;
        struct text_frame line = read_line(t, field.text, &column);
        vector_push(&t->lines, code_frame(tree, line.name, line.file, line.line, column));
    }
    struct location location = {.object = object_with_id(tree, mapped->path, &mapped->id),
                                .mode = mode_of_object(mapped->path),
                                .address = address - mapped->bias};
    vector_push(&t->r.stack.locations,
                tree_add_code(tree, &location, t->lines.items, t->lines.count, t->r.options));
}

void otlp_push_location(struct otlp *t, uint64_t number) {
    struct text message = otlp_row(t, TABLE_LOCATION, number);
    struct proto m = otlp_look_into(t, message);
    struct proto_field field;
    struct mapped mapped = {.path = TEXT("")};
    uint64_t address = 0;
    while (proto_next(&m, &field)) {
        if (field.number == LOCATION_MAPPING)
            mapped = mapping_of(t, field.value);
        else if (field.number == LOCATION_ADDRESS)
            address = field.value;
    }
    if (address && mapped.path.length)
        push_code(t, message, &mapped, address);
    else
        push_names(t, message, mapped.path);
}
