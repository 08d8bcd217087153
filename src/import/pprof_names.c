/* What pprof's samples refer to: strings, types, mappings, functions and locations, and how a location is added to
   the tree. */
#include "import/pprof.h"

#include <stdlib.h>

bool pprof_damaged(struct pprof *p, const void *at) {
    return error_at(p->error, p->path, (uint64_t)((const char *)at - p->content.data),
                    "the profile is damaged here");
}

struct text pprof_string(const struct pprof *p, uint64_t number) {
    return number < p->strings.count ? p->strings.items[number] : TEXT("");
}

/* ---- tables ---- */

/* Nearly all writers number from 1 on: then the number is the index. */
static const struct known *table_find(const struct table *table, uint64_t id) {
    uint32_t at;
    if (id - 1 < table->items.count && table->items.items[id - 1].id == id)
        return &table->items.items[id - 1];
    for (struct probe probe = index_probe(&table->index, hash_mix(id, 1));
         (at = index_next(&table->index, &probe));)
        if (table->items.items[at - 1].id == id)
            return &table->items.items[at - 1];
    return NULL;
}

static bool table_add(struct pprof *p, struct table *table, struct text message) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    struct known known = {.message = message};
    while (proto_next(&m, &field))
        if (field.number == ANY_ID && field.wire == WIRE_NUMBER)
            known.id = field.value;
    if (m.damaged)
        return pprof_damaged(p, message.data);
    if (!table_find(table, known.id)) {
        vector_push(&table->items, known);
        index_add(&table->index, hash_mix(known.id, 1), (uint32_t)table->items.count);
    }
    return true;
}

static void table_release(struct table *table) {
    vector_release(&table->items);
    index_release(&table->index);
}

const struct known *pprof_find_location(const struct pprof *p, uint64_t id) {
    return table_find(&p->locations, id);
}

/* Types refer to strings that may come later, so store the numbers first. */
struct pair {
    uint64_t type, unit;
};

static bool pair_of(struct pprof *p, struct text message, struct pair *pair) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    *pair = (struct pair){0};
    while (proto_next(&m, &field)) {
        if (field.number == VALUE_TYPE)
            pair->type = field.value;
        if (field.number == VALUE_UNIT)
            pair->unit = field.value;
    }
    return !m.damaged || pprof_damaged(p, message.data);
}

bool pprof_read_tables(struct pprof *p) {
    struct proto m = proto_begin(p->content);
    struct proto_field field;
    VECTOR(struct pair) types = {0};
    uint64_t default_type = 0;
    bool fine = true;
    while (fine && proto_next(&m, &field)) {
        struct pair pair;
        bool is_text = field.wire == WIRE_TEXT;
        if (field.number == PROFILE_STRING && is_text)
            vector_push(&p->strings, field.text);
        else if (field.number == PROFILE_MAPPING && is_text)
            fine = table_add(p, &p->mappings, field.text);
        else if (field.number == PROFILE_LOCATION && is_text)
            fine = table_add(p, &p->locations, field.text);
        else if (field.number == PROFILE_FUNCTION && is_text)
            fine = table_add(p, &p->functions, field.text);
        else if (field.number == PROFILE_TIME && !is_text && field.value <= INT64_MAX)
            p->tree->began = field.value;
        else if (field.number == PROFILE_DURATION && !is_text && field.value <= INT64_MAX)
            p->tree->lasted = field.value;
        else if (field.number == PROFILE_DEFAULT_TYPE)
            default_type = field.value;
        else if (field.number == PROFILE_SAMPLE_TYPE && is_text &&
                 (fine = pair_of(p, field.text, &pair)))
            vector_push(&types, pair);
    }
    for (size_t i = 0; i < types.count; i++)
        vector_push(&p->types, ((struct value_type){pprof_string(p, types.items[i].type),
                                                    pprof_string(p, types.items[i].unit)}));
    p->default_type = pprof_string(p, default_type);
    vector_release(&types);
    return fine && (!m.damaged || pprof_damaged(p, m.at));
}

/* ---- locations ---- */

struct mapped {
    uint32_t object;
    uint64_t bias; /* difference between the profile's addresses and the object's */
    uint8_t mode;
};

static struct mapped mapping_of(struct pprof *p, uint64_t id) {
    const struct known *known = id ? table_find(&p->mappings, id) : NULL;
    struct mapped mapped = {.mode = MODE_USER};
    if (!known)
        return mapped;
    struct proto m = proto_begin(known->message);
    struct proto_field field;
    struct build_id build_id = {0};
    struct text path = TEXT("");
    uint64_t start = 0, offset = 0;
    while (proto_next(&m, &field)) {
        if (field.number == MAPPING_START)
            start = field.value;
        else if (field.number == MAPPING_OFFSET)
            offset = field.value;
        else if (field.number == MAPPING_FILE)
            path = pprof_string(p, field.value);
        else if (field.number == MAPPING_BUILD_ID)
            build_id = build_id_of_hex(pprof_string(p, field.value));
    }
    mapped.bias = start - offset;
    if (path.length) {
        mapped.object = object_with_id(p->tree, path, &build_id);
        mapped.mode = mode_of_object(path);
    }
    return mapped;
}

static struct frame frame_of_line(struct pprof *p, struct text message) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    uint64_t function = 0;
    uint32_t line = 0, column = 0;
    while (proto_next(&m, &field)) {
        if (field.number == LINE_FUNCTION)
            function = field.value;
        else if (field.number == LINE_LINE && field.value <= UINT32_MAX)
            line = (uint32_t)field.value;
        else if (field.number == LINE_COLUMN && field.value <= UINT32_MAX)
            column = (uint32_t)field.value;
    }
    const struct known *known = table_find(&p->functions, function);
    struct text name = TEXT(""), system = TEXT(""), file = TEXT("");
    m = proto_begin(known ? known->message : TEXT(""));
    while (proto_next(&m, &field)) {
        if (field.number == FUNCTION_NAME)
            name = pprof_string(p, field.value);
        else if (field.number == FUNCTION_SYSTEM_NAME)
            system = pprof_string(p, field.value);
        else if (field.number == FUNCTION_FILE)
            file = pprof_string(p, field.value);
    }
    return code_frame(p->tree, name.length ? name : system, file, line, column);
}

uint32_t pprof_place(struct pprof *p, const struct known *known) {
    struct proto m = proto_begin(known->message);
    struct proto_field field;
    uint64_t mapping = 0, address = 0;
    p->lines.count = 0;
    while (proto_next(&m, &field)) {
        if (field.number == LOCATION_MAPPING)
            mapping = field.value;
        else if (field.number == LOCATION_ADDRESS)
            address = field.value;
        else if (field.number == LOCATION_LINE && field.wire == WIRE_TEXT)
            vector_push(&p->lines, frame_of_line(p, field.text));
    }
    struct mapped mapped = mapping_of(p, mapping);
    struct location location = {
        .object = mapped.object, .mode = mapped.mode, .address = address - mapped.bias};
    if (!address) { /* the location is only identified by its id */
        location.address = 0;
        location.raw = known->id;
    }
    return tree_add_code(p->tree, &location, p->lines.items, p->lines.count, p->options);
}

void pprof_release_tables(struct pprof *p) {
    vector_release(&p->strings);
    vector_release(&p->types);
    table_release(&p->mappings);
    table_release(&p->locations);
    table_release(&p->functions);
    vector_release(&p->lines);
}
