/*
 * A chunk of a Java Flight Recorder file. Integers are packed, seven bits per byte, with a ninth byte of eight; other
 * numbers are big-endian. An event of type 0 describes the types as a tree of elements; events of type 1 hold
 * constants (methods, symbols, stacks) that others refer to by type and id. Only the positions of constants are kept;
 * they are read when something refers to them.
 *
 * The description is untrusted: a type may contain itself, a list may have more elements than the file has bytes.
 * Reading a struct takes steps from the budget for each field, and nests no deeper than DEPTH_MOST.
 */
#include "import/jfr.h"

#include <stdlib.h>

enum { HEADER = 68, DEPTH_MOST = 12 };

bool jfr_damaged(const struct jfr_chunk *c, const void *at) {
    if (budget_exceeded_at(c->budget, (uint64_t)((const char *)at - c->file)))
        return budget_error(c->budget, c->path, c->error);
    return error_at(c->error, c->path, (uint64_t)((const char *)at - c->file),
                    "the recording is damaged here");
}

/* ---- numbers and strings ---- */

static uint64_t take_big(struct jfr_cursor *cursor, unsigned bytes) {
    uint64_t value = 0;
    if (cursor->end - cursor->at < bytes) {
        cursor->bad = true;
        cursor->at = cursor->end;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | *cursor->at++;
    return value;
}

static uint64_t take_packed(struct jfr_cursor *cursor) {
    uint64_t value = 0;
    for (unsigned i = 0; i < 9; i++) {
        if (cursor->at == cursor->end)
            break;
        uint8_t byte = *cursor->at++;
        if (i == 8)
            return value | (uint64_t)byte << 56;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80))
            return value;
    }
    cursor->bad = true;
    return 0;
}

static uint64_t take_number(const struct jfr_chunk *c, struct jfr_cursor *cursor, unsigned bytes) {
    return c->is_packed ? take_packed(cursor) : take_big(cursor, bytes);
}
uint64_t jfr_take_int(const struct jfr_chunk *c, struct jfr_cursor *cursor) {
    return take_number(c, cursor, 4);
}
static uint64_t take_long(const struct jfr_chunk *c, struct jfr_cursor *cursor) {
    return take_number(c, cursor, 8);
}

static struct text take_bytes(const struct jfr_chunk *c, struct jfr_cursor *cursor) {
    uint64_t length = jfr_take_int(c, cursor);
    if (length > (uint64_t)(cursor->end - cursor->at)) {
        cursor->bad = true;
        return TEXT("");
    }
    struct text text = {(const char *)cursor->at, (size_t)length};
    cursor->at += length;
    return text;
}

static struct text kept(struct jfr_chunk *c, struct buffer *text) {
    struct text copy = arena_copy(&c->arena, buffer_text(text));
    buffer_release(text);
    return copy;
}

/* Read a string of UTF-16 units. */
static struct text take_characters(struct jfr_chunk *c, struct jfr_cursor *cursor) {
    struct buffer text = {0};
    uint64_t count = jfr_take_int(c, cursor);
    for (uint64_t i = 0; i < count && !cursor->bad; i++)
        buffer_add_utf8(&text, (uint32_t)take_number(c, cursor, 2) & 0xffff);
    return kept(c, &text);
}

static struct text take_latin(struct jfr_chunk *c, struct jfr_cursor *cursor) {
    struct text bytes = take_bytes(c, cursor);
    struct buffer text = {0};
    for (size_t i = 0; i < bytes.length; i++)
        if ((unsigned char)bytes.data[i] >= 0x80)
            goto convert;
    return bytes;
convert:
    for (size_t i = 0; i < bytes.length; i++)
        buffer_add_utf8(&text, (unsigned char)bytes.data[i]);
    return kept(c, &text);
}

enum { STRING_NULL, STRING_EMPTY, STRING_CONSTANT, STRING_UTF8, STRING_CHARACTERS, STRING_LATIN };

static const uint8_t *constant_at(const struct jfr_chunk *c, uint64_t type, uint64_t id);

/* A constant string must be complete: a constant that refers to another one reads as empty, so that there are no
   cycles. */
static struct text take_string(struct jfr_chunk *c, struct jfr_cursor *cursor, bool is_inner) {
    switch (take_big(cursor, 1)) {
    case STRING_NULL:
    case STRING_EMPTY:
        return TEXT("");
    case STRING_CONSTANT: {
        uint64_t id = take_long(c, cursor);
        return is_inner ? TEXT("") : jfr_constant_string(c, id);
    }
    case STRING_UTF8:
        return take_bytes(c, cursor);
    case STRING_CHARACTERS:
        return take_characters(c, cursor);
    case STRING_LATIN:
        return take_latin(c, cursor);
    default:
        cursor->bad = true;
        return TEXT("");
    }
}

struct text jfr_constant_string(struct jfr_chunk *c, uint64_t id) {
    const uint8_t *at = constant_at(c, c->string_type, id);
    struct jfr_cursor there = {at, (const uint8_t *)c->content.data + c->content.length, !at};
    return at ? take_string(c, &there, true) : TEXT("");
}

/* ---- types ---- */

const struct jfr_class *jfr_class_of(const struct jfr_chunk *c, uint64_t type) {
    uint32_t at;
    for (struct probe p = index_probe(&c->class_index, hash_mix(type, 2));
         (at = index_next(&c->class_index, &p));)
        if (c->classes.items[at - 1].id == type)
            return &c->classes.items[at - 1];
    return NULL;
}

const struct jfr_class *jfr_class_named(const struct jfr_chunk *c, struct text name) {
    for (size_t i = 0; i < c->classes.count; i++)
        if (text_equal(c->classes.items[i].name, name))
            return &c->classes.items[i];
    return NULL;
}

int jfr_field(const struct jfr_class *class, struct text name) {
    for (size_t i = 0; i < class->fields.count && i < JFR_FIELDS_MOST; i++)
        if (text_equal(class->fields.items[i].name, name))
            return (int)i;
    return -1;
}

static enum jfr_kind kind_of(struct text name) {
    static const struct {
        const char *name;
        enum jfr_kind kind;
    } kinds[] = {{"boolean", JFR_BYTE}, {"byte", JFR_BYTE},     {"short", JFR_SHORT},
                 {"char", JFR_SHORT},   {"int", JFR_INT},       {"long", JFR_LONG},
                 {"float", JFR_FLOAT},  {"double", JFR_DOUBLE}, {"java.lang.String", JFR_STRING}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (text_equal(text_of(kinds[i].name), name))
            return kinds[i].kind;
    return JFR_STRUCT;
}

static struct text string_at(const struct jfr_chunk *c, uint64_t number) {
    return number < c->strings.count ? c->strings.items[number] : TEXT("");
}

/* The attributes of an element, which may be a class or a field. */
struct element {
    struct text kind, name;
    uint64_t id, type;
    bool is_constant, is_array;
};

static void take_attributes(struct jfr_chunk *c, struct jfr_cursor *cursor, struct element *e) {
    e->kind = string_at(c, jfr_take_int(c, cursor));
    uint64_t count = jfr_take_int(c, cursor);
    for (uint64_t i = 0; i < count && !cursor->bad; i++) {
        struct text key = string_at(c, jfr_take_int(c, cursor));
        struct text value = string_at(c, jfr_take_int(c, cursor));
        if (text_equal(key, TEXT("name")))
            e->name = value;
        else if (text_equal(key, TEXT("id")))
            text_to_u64(value, &e->id);
        else if (text_equal(key, TEXT("class")))
            text_to_u64(value, &e->type);
        else if (text_equal(key, TEXT("constantPool")))
            e->is_constant = text_equal(value, TEXT("true"));
        else if (text_equal(key, TEXT("dimension")))
            e->is_array = !text_equal(value, TEXT("0"));
    }
}

static void add_element(struct jfr_chunk *c, const struct element *e, bool in_class) {
    if (text_equal(e->kind, TEXT("class"))) {
        vector_push(&c->classes,
                    ((struct jfr_class){.id = e->id, .name = e->name, .kind = kind_of(e->name)}));
        if (!jfr_class_of(c, e->id))
            index_add(&c->class_index, hash_mix(e->id, 2), (uint32_t)c->classes.count);
        if (text_equal(e->name, TEXT("java.lang.String")))
            c->string_type = e->id;
    } else if (in_class && text_equal(e->kind, TEXT("field"))) {
        struct jfr_field field = {.name = e->name,
                                  .type = e->type,
                                  .is_constant = e->is_constant,
                                  .is_array = e->is_array};
        vector_push(&c->classes.items[c->classes.count - 1].fields, field);
    }
}

static void resolve_fields(struct jfr_chunk *c) {
    for (size_t i = 0; i < c->classes.count; i++)
        for (size_t k = 0; k < c->classes.items[i].fields.count; k++) {
            struct jfr_field *field = &c->classes.items[i].fields.items[k];
            const struct jfr_class *class = jfr_class_of(c, field->type);
            field->class = class ? (uint32_t)(class - c->classes.items) + 1 : 0;
        }
}

/* Elements precede their children, with the number of these. */
struct open_element {
    uint64_t left;
    bool is_class;
};

static bool read_types(struct jfr_chunk *c, struct jfr_cursor cursor) {
    VECTOR(struct open_element) open = {0};
    take_long(c, &cursor); /* time, duration, id of the metadata */
    take_long(c, &cursor);
    take_long(c, &cursor);
    uint64_t count = jfr_take_int(c, &cursor);
    for (uint64_t i = 0; i < count && !cursor.bad; i++)
        vector_push(&c->strings, take_string(c, &cursor, true));
    vector_push(&open, ((struct open_element){1, false}));
    while (open.count && !cursor.bad) {
        struct open_element *last = &open.items[open.count - 1];
        if (!last->left) {
            open.count--;
            continue;
        }
        last->left--;
        struct element element = {0};
        take_attributes(c, &cursor, &element);
        add_element(c, &element, last->is_class);
        struct open_element inner = {jfr_take_int(c, &cursor),
                                     text_equal(element.kind, TEXT("class"))};
        vector_push(&open, inner);
    }
    vector_release(&open);
    resolve_fields(c);
    return !cursor.bad || jfr_damaged(c, cursor.at);
}

/* ---- structs ---- */

static bool take_struct(struct jfr_chunk *c, struct jfr_cursor *cursor,
                        const struct jfr_class *class, struct jfr_value *values, unsigned depth);

static void take_one(struct jfr_chunk *c, struct jfr_cursor *cursor, const struct jfr_field *field,
                     struct jfr_value *value, unsigned depth) {
    if (field->is_constant) {
        value->number = take_long(c, cursor);
        return;
    }
    if (!field->class) {
        cursor->bad = true;
        return;
    }
    const struct jfr_class *class = &c->classes.items[field->class - 1];
    switch (class->kind) {
    case JFR_BYTE:
        value->number = take_big(cursor, 1);
        break;
    case JFR_SHORT:
        value->number = take_number(c, cursor, 2);
        break;
    case JFR_INT:
        value->number = jfr_take_int(c, cursor);
        break;
    case JFR_LONG:
        value->number = take_long(c, cursor);
        break;
    case JFR_FLOAT:
        value->number = take_big(cursor, 4);
        break;
    case JFR_DOUBLE:
        value->number = take_big(cursor, 8);
        break;
    case JFR_STRING:
        value->string = take_string(c, cursor, false);
        break;
    case JFR_STRUCT:
        take_struct(c, cursor, class, NULL, depth + 1);
        break;
    }
}

/* An element of zero bytes must not be read as often as a number says. */
static void take_array(struct jfr_chunk *c, struct jfr_cursor *cursor,
                       const struct jfr_field *field, unsigned depth) {
    uint64_t count = jfr_take_int(c, cursor);
    struct jfr_value unused;
    for (uint64_t i = 0; i < count && !cursor->bad; i++) {
        const uint8_t *before = cursor->at;
        take_one(c, cursor, field, &unused, depth);
        if (cursor->at == before)
            return;
    }
}

static bool take_struct(struct jfr_chunk *c, struct jfr_cursor *cursor,
                        const struct jfr_class *class, struct jfr_value *values, unsigned depth) {
    if (depth > DEPTH_MOST || !budget_take_steps(c->budget, class->fields.count + 1, NO_OFFSET)) {
        cursor->bad = true;
        return false;
    }
    for (size_t i = 0; i < class->fields.count && !cursor->bad; i++) {
        struct jfr_value value = {.at = cursor->at, .string = TEXT("")};
        if (class->fields.items[i].is_array)
            take_array(c, cursor, &class->fields.items[i], depth);
        else
            take_one(c, cursor, &class->fields.items[i], &value, depth);
        if (values && i < JFR_FIELDS_MOST)
            values[i] = value;
    }
    return !cursor->bad;
}

bool jfr_read(struct jfr_chunk *c, struct jfr_cursor *cursor, const struct jfr_class *class,
              struct jfr_value *values) {
    const uint8_t *at = cursor->at;
    for (size_t i = 0; i < JFR_FIELDS_MOST; i++)
        values[i] = (struct jfr_value){.string = TEXT("")};
    return take_struct(c, cursor, class, values, 0) || jfr_damaged(c, at);
}

/* ---- constants ---- */

static const uint8_t *constant_at(const struct jfr_chunk *c, uint64_t type, uint64_t id) {
    uint32_t at;
    for (struct probe p = index_probe(&c->constant_index, hash_mix(type, id));
         (at = index_next(&c->constant_index, &p));)
        if (c->constants.items[at - 1].id == id && c->constants.items[at - 1].type == type)
            return c->constants.items[at - 1].at;
    return NULL;
}

bool jfr_constant(struct jfr_chunk *c, const struct jfr_class *class, uint64_t id,
                  struct jfr_value *values) {
    const uint8_t *at = class ? constant_at(c, class->id, id) : NULL;
    if (!at)
        return false;
    struct jfr_cursor cursor = {at, (const uint8_t *)c->content.data + c->content.length, false};
    for (size_t i = 0; i < JFR_FIELDS_MOST; i++)
        values[i] = (struct jfr_value){.string = TEXT("")};
    return take_struct(c, &cursor, class, values, 0);
}

static void add_constant(struct jfr_chunk *c, uint64_t type, uint64_t id, const uint8_t *at) {
    if (constant_at(c, type, id))
        return;
    vector_push(&c->constants, ((struct jfr_constant){type, id, at}));
    index_add(&c->constant_index, hash_mix(type, id), (uint32_t)c->constants.count);
}

static void skip_constant(struct jfr_chunk *c, struct jfr_cursor *cursor,
                          const struct jfr_class *class) {
    if (class->kind == JFR_STRING)
        take_string(c, cursor, true);
    else
        take_struct(c, cursor, class, NULL, 0);
}

static bool read_constants(struct jfr_chunk *c, struct jfr_cursor cursor) {
    const uint8_t *from = cursor.at;
    take_long(c, &cursor); /* time, duration, offset of the previous one */
    take_long(c, &cursor);
    take_long(c, &cursor);
    take_big(&cursor, 1);
    uint64_t pools = jfr_take_int(c, &cursor);
    for (uint64_t i = 0; i < pools && !cursor.bad; i++) {
        uint64_t type = take_long(c, &cursor), count = jfr_take_int(c, &cursor);
        const struct jfr_class *class = jfr_class_of(c, type);
        cursor.bad |= !class;
        for (uint64_t k = 0; k < count && !cursor.bad; k++) {
            uint64_t id = take_long(c, &cursor);
            add_constant(c, type, id, cursor.at);
            skip_constant(c, &cursor, class);
        }
    }
    return !cursor.bad || jfr_damaged(c, from);
}

/* ---- the chunk ---- */

bool jfr_next_event(const struct jfr_chunk *c, struct jfr_cursor *all, struct jfr_event *event) {
    if (all->at == all->end)
        return false;
    const uint8_t *start = all->at;
    struct jfr_cursor inside = *all;
    uint64_t size = jfr_take_int(c, &inside);
    event->type = take_long(c, &inside);
    if (inside.bad || size < (uint64_t)(inside.at - start) || size > (uint64_t)(all->end - start)) {
        all->bad = true;
        return jfr_damaged(c, start);
    }
    event->content = (struct jfr_cursor){inside.at, start + size, false};
    all->at = start + size;
    return true;
}

static struct jfr_cursor events_of(const struct jfr_chunk *c) {
    const uint8_t *data = (const uint8_t *)c->content.data;
    return (struct jfr_cursor){data + HEADER, data + c->content.length, false};
}

/* Read the types, whose position is in the header, then all constants. */
static bool read_descriptions(struct jfr_chunk *c, uint64_t types_at) {
    struct jfr_cursor all = events_of(c);
    struct jfr_event event;
    const uint8_t *data = (const uint8_t *)c->content.data;
    if (types_at < HEADER || types_at >= c->content.length)
        return jfr_damaged(c, data + 24);
    all.at = data + types_at;
    if (!jfr_next_event(c, &all, &event))
        return false;
    if (event.type != 0)
        return jfr_damaged(c, data + types_at);
    bool fine = read_types(c, event.content);
    all = events_of(c);
    while (fine && jfr_next_event(c, &all, &event))
        if (event.type == 1)
            fine = read_constants(c, event.content);
    return fine && !all.bad;
}

bool jfr_chunk_open(struct jfr_chunk *c, struct text content, uint64_t *size) {
    struct jfr_cursor header = {(const uint8_t *)content.data,
                                (const uint8_t *)content.data + content.length, false};
    c->content = content;
    if (content.length < HEADER || memcmp(content.data, "FLR\0", 4) != 0)
        return jfr_damaged(c, content.data);
    header.at += 4;
    uint64_t major = take_big(&header, 2);
    take_big(&header, 2);
    *size = take_big(&header, 8);
    take_big(&header, 8); /* position of the last constants */
    uint64_t types_at = take_big(&header, 8);
    c->start_nanoseconds = take_big(&header, 8);
    take_big(&header, 8); /* duration */
    c->start_ticks = take_big(&header, 8);
    c->ticks_per_second = take_big(&header, 8);
    c->is_packed = take_big(&header, 4) & 1;
    if (major != 2)
        return error_at(c->error, c->path, (uint64_t)(content.data - c->file) + 4,
                        "a recording of version %llu; wick reads version 2, from Java 9 and later",
                        (unsigned long long)major);
    if (*size == 0)
        return error_at(c->error, c->path, (uint64_t)(content.data - c->file) + 8,
                        "the recording is incomplete; repair it with `jfr assemble`");
    if (*size < HEADER || *size > content.length || !c->ticks_per_second)
        return jfr_damaged(c, content.data + 8);
    c->content = text_upto(content, *size);
    return read_descriptions(c, types_at);
}

void jfr_chunk_release(struct jfr_chunk *c) {
    for (size_t i = 0; i < c->classes.count; i++)
        vector_release(&c->classes.items[i].fields);
    vector_release(&c->strings);
    vector_release(&c->classes);
    vector_release(&c->constants);
    index_release(&c->class_index);
    index_release(&c->constant_index);
    arena_release(&c->arena);
}
