/*
 * --nameattr: attributes for frames by name. The user wrote the file, so its links and handlers are allowed; but the picture stays well-formed
 * in any case: values are escaped, and extra attributes are parsed and written anew.
 */
#include "view/svg.h"

#include <stdlib.h>

static const struct note_kind note_unknown = {
    "nameattr-unknown",
    "# attribute{|s} of the --nameattr file {is|are} unknown and {was|were} ignored"};
static const struct note_kind note_twice = {"nameattr-twice",
                                            "# name{ or attribute appears|s or attributes appear} "
                                            "twice in the --nameattr file; the last is used"};
static const struct note_kind note_extra = {
    "nameattr-extra",
    "# g_extra or a_extra value{ is|s are} not name=\"value\" lists and {was|were} ignored"};

struct name_attributes {
    struct strings *names;
    struct arena arena;
    VECTOR(struct name_attribute) items; /* by name; 0 is none */
};

static bool is_name_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == ':';
}

static void add_attribute(struct buffer *buffer, struct text name, struct text value) {
    buffer_add_char(buffer, ' ');
    buffer_add(buffer, name);
    buffer_add(buffer, TEXT("=\""));
    svg_add_xml(buffer, value);
    buffer_add_char(buffer, '"');
}

/* One name="value" (or name='value', or name=word) from the front of *rest. */
static bool extra_next(struct text *rest, struct text *name, struct text *value) {
    size_t length = 0;
    while (length < rest->length && is_name_letter(rest->data[length]))
        length++;
    if (length == 0 || length + 1 >= rest->length || rest->data[length] != '=' ||
        rest->data[0] == ':' || rest->data[0] == '-')
        return false;
    *name = text_upto(*rest, length);
    struct text after = text_from(*rest, length + 1);
    bool quoted = after.data[0] == '"' || after.data[0] == '\'';
    char end = quoted ? after.data[0] : ' ';
    if (quoted)
        after = text_from(after, 1);
    size_t stop = text_find(after, end);
    if (stop == SIZE_MAX && quoted)
        return false;
    *value = stop == SIZE_MAX ? after : text_upto(after, stop);
    *rest = text_trim(stop == SIZE_MAX ? TEXT("") : text_from(after, stop + 1));
    return true;
}

static bool extra_add(struct buffer *buffer, struct text extra) {
    struct text rest = text_trim(extra), name, value;
    size_t before = buffer->count;
    while (rest.length) {
        if (!extra_next(&rest, &name, &value)) {
            buffer->count = before;
            return false;
        }
        add_attribute(buffer, name, value);
    }
    return true;
}

/* One line's attributes as they are collected: texts of the file, or of `group` and `link`. */
struct collected {
    struct name_attribute item;
    struct text id, class, group_extra, link_extra;
};

static struct text *collected_slot(struct collected *c, struct text key) {
    const struct {
        const char *name;
        struct text *slot;
    } slots[] = {
        {"title", &c->item.title},   {"href", &c->item.href},
        {"target", &c->item.target}, {"id", &c->id},
        {"class", &c->class},        {"g_extra", &c->group_extra},
        {"a_extra", &c->link_extra},
    };
    for (size_t i = 0; i < COUNT_OF(slots); i++)
        if (text_equal(key, text_of(slots[i].name)))
            return slots[i].slot;
    return NULL;
}

static void collected_take(struct collected *c, struct text pair, uint64_t line,
                           struct notes *notes) {
    size_t equals = text_find(pair, '=');
    struct text key = equals == SIZE_MAX ? pair : text_upto(pair, equals);
    struct text *slot = collected_slot(c, key);
    if (!slot || equals == SIZE_MAX) {
        notes_add(notes, &note_unknown, 1, line, "line %llu: %.*s", (unsigned long long)line,
                  TEXT_ARGS(key));
        return;
    }
    struct text value = text_from(pair, equals + 1);
    if (value.length >= 2 && value.data[0] == '"' && value.data[value.length - 1] == '"')
        value = text_upto(text_from(value, 1), value.length - 2);
    if (slot->length)
        notes_add(notes, &note_twice, 1, line, "line %llu: %.*s", (unsigned long long)line,
                  TEXT_ARGS(key));
    *slot = value;
}

static struct name_attribute collected_finish(struct collected *c, struct arena *arena,
                                              uint64_t line, struct notes *notes) {
    struct name_attribute item = {.title = arena_copy(arena, c->item.title),
                                  .href = arena_copy(arena, c->item.href),
                                  .target = arena_copy(arena, c->item.target)};
    struct buffer buffer = {0};
    if (c->id.length)
        add_attribute(&buffer, TEXT("id"), c->id);
    if (c->class.length)
        add_attribute(&buffer, TEXT("class"), c->class);
    bool fine = extra_add(&buffer, c->group_extra);
    item.group = arena_copy(arena, buffer_text(&buffer));
    buffer.count = 0;
    fine &= extra_add(&buffer, c->link_extra);
    item.link = arena_copy(arena, buffer_text(&buffer));
    buffer_release(&buffer);
    if (!fine)
        notes_add(notes, &note_extra, 1, line, "line %llu", (unsigned long long)line);
    return item;
}

static struct text next_field(struct text *rest, char separator) {
    size_t end = text_find(*rest, separator);
    struct text field = end == SIZE_MAX ? *rest : text_upto(*rest, end);
    *rest = end == SIZE_MAX ? TEXT("") : text_from(*rest, end + 1);
    return field;
}

static void take_line(struct name_attributes *attributes, struct text line, uint64_t number,
                      struct notes *notes) {
    struct text name = next_field(&line, '\t');
    if (!name.length)
        return;
    struct collected collected = {0};
    while (line.length)
        collected_take(&collected, next_field(&line, '\t'), number, notes);
    struct name_attribute item = collected_finish(&collected, &attributes->arena, number, notes);
    uint32_t id = strings_add(attributes->names, name);
    if (id == attributes->items.count) {
        vector_push(&attributes->items, item);
    } else {
        notes_add(notes, &note_twice, 1, number, "line %llu: %.*s", (unsigned long long)number,
                  TEXT_ARGS(name));
        attributes->items.items[id] = item;
    }
}

struct name_attributes *name_attributes_new(struct text text, struct notes *notes) {
    struct name_attributes *attributes = memory_zero(1, sizeof *attributes);
    attributes->names = strings_new();
    vector_push(&attributes->items, ((struct name_attribute){0}));
    for (uint64_t number = 1; text.length; number++) {
        struct text line = next_field(&text, '\n');
        if (line.length && line.data[line.length - 1] == '\r')
            line.length--;
        take_line(attributes, line, number, notes);
    }
    return attributes;
}

void name_attributes_free(struct name_attributes *attributes) {
    if (!attributes)
        return;
    strings_free(attributes->names);
    arena_release(&attributes->arena);
    vector_release(&attributes->items);
    free(attributes);
}

const struct name_attribute *name_attributes_find(const struct name_attributes *attributes,
                                                  struct text name) {
    uint32_t id = attributes ? strings_find(attributes->names, name) : 0;
    return id ? &attributes->items.items[id] : NULL;
}
