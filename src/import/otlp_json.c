/*
 * Convert the JSON form of OpenTelemetry's profiles to protobuf, which is then read: field names become numbers, by
 * the table below. Names may have protobuf's JSON form (stackTable) or that of the definition (stack_table), and
 * 64-bit numbers may be strings or numbers. Fields that the reader does not use are skipped. Costs the document's
 * size again in memory.
 */
#include "import/otlp_json.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/json.h"
#include "import/otlp_fields.h"
#include "import/proto.h"

enum message {
    DATA,
    RESOURCE_PROFILES,
    RESOURCE,
    SCOPE_PROFILES,
    PROFILE,
    VALUE_TYPE,
    SAMPLE,
    DICTIONARY,
    MAPPING,
    LOCATION,
    LINE,
    FUNCTION,
    STACK,
    ATTRIBUTE, /* of the dictionary, and pairs of a resource */
    VALUE,
};
enum kind { IS_MESSAGE, IS_STRING, IS_NUMBER, IS_EIGHT, IS_TRUTH };

static const struct member {
    enum message of;
    const char *name;
    uint32_t number;
    enum kind kind;
    enum message message;
} members[] = {
    {DATA, "resourceprofiles", DATA_RESOURCE, IS_MESSAGE, RESOURCE_PROFILES},
    {DATA, "dictionary", DATA_DICTIONARY, IS_MESSAGE, DICTIONARY},
    {RESOURCE_PROFILES, "resource", RESOURCE_RESOURCE, IS_MESSAGE, RESOURCE},
    {RESOURCE_PROFILES, "scopeprofiles", RESOURCE_SCOPES, IS_MESSAGE, SCOPE_PROFILES},
    {RESOURCE, "attributes", ATTRIBUTES, IS_MESSAGE, ATTRIBUTE},
    {SCOPE_PROFILES, "profiles", SCOPE_PROFILE, IS_MESSAGE, PROFILE},
    {PROFILE, "sampletype", PROFILE_TYPE, IS_MESSAGE, VALUE_TYPE},
    {PROFILE, "samples", PROFILE_SAMPLE, IS_MESSAGE, SAMPLE},
    {PROFILE, "timeunixnano", PROFILE_TIME, IS_EIGHT, 0},
    {PROFILE, "durationnano", PROFILE_DURATION, IS_NUMBER, 0},
    {VALUE_TYPE, "typestrindex", TYPE_TYPE, IS_NUMBER, 0},
    {VALUE_TYPE, "unitstrindex", TYPE_UNIT, IS_NUMBER, 0},
    {SAMPLE, "stackindex", SAMPLE_STACK, IS_NUMBER, 0},
    {SAMPLE, "attributeindices", SAMPLE_ATTRIBUTES, IS_NUMBER, 0},
    {SAMPLE, "values", SAMPLE_VALUES, IS_NUMBER, 0},
    {SAMPLE, "timestampsunixnano", SAMPLE_TIMES, IS_EIGHT, 0},
    {DICTIONARY, "mappingtable", TABLE_MAPPING, IS_MESSAGE, MAPPING},
    {DICTIONARY, "locationtable", TABLE_LOCATION, IS_MESSAGE, LOCATION},
    {DICTIONARY, "functiontable", TABLE_FUNCTION, IS_MESSAGE, FUNCTION},
    {DICTIONARY, "stringtable", TABLE_STRING, IS_STRING, 0},
    {DICTIONARY, "attributetable", TABLE_ATTRIBUTE, IS_MESSAGE, ATTRIBUTE},
    {DICTIONARY, "stacktable", TABLE_STACK, IS_MESSAGE, STACK},
    {MAPPING, "memorystart", MAPPING_START, IS_NUMBER, 0},
    {MAPPING, "memorylimit", MAPPING_LIMIT, IS_NUMBER, 0},
    {MAPPING, "fileoffset", MAPPING_OFFSET, IS_NUMBER, 0},
    {MAPPING, "filenamestrindex", MAPPING_FILE, IS_NUMBER, 0},
    {MAPPING, "attributeindices", MAPPING_ATTRIBUTES, IS_NUMBER, 0},
    {LOCATION, "mappingindex", LOCATION_MAPPING, IS_NUMBER, 0},
    {LOCATION, "address", LOCATION_ADDRESS, IS_NUMBER, 0},
    {LOCATION, "lines", LOCATION_LINE, IS_MESSAGE, LINE},
    {LOCATION, "attributeindices", LOCATION_ATTRIBUTES, IS_NUMBER, 0},
    {LINE, "functionindex", LINE_FUNCTION, IS_NUMBER, 0},
    {LINE, "line", LINE_LINE, IS_NUMBER, 0},
    {LINE, "column", LINE_COLUMN, IS_NUMBER, 0},
    {FUNCTION, "namestrindex", FUNCTION_NAME, IS_NUMBER, 0},
    {FUNCTION, "systemnamestrindex", FUNCTION_SYSTEM_NAME, IS_NUMBER, 0},
    {FUNCTION, "filenamestrindex", FUNCTION_FILE, IS_NUMBER, 0},
    {FUNCTION, "startline", FUNCTION_LINE, IS_NUMBER, 0},
    {STACK, "locationindices", STACK_LOCATIONS, IS_NUMBER, 0},
    {ATTRIBUTE, "key", ATTRIBUTE_KEY, IS_STRING, 0},
    {ATTRIBUTE, "keystrindex", ATTRIBUTE_KEY, IS_NUMBER, 0},
    {ATTRIBUTE, "value", ATTRIBUTE_VALUE, IS_MESSAGE, VALUE},
    {VALUE, "stringvalue", VALUE_STRING, IS_STRING, 0},
    {VALUE, "boolvalue", VALUE_BOOL, IS_TRUTH, 0},
    {VALUE, "intvalue", VALUE_INTEGER, IS_NUMBER, 0},
    {VALUE, "stringvaluestrindex", VALUE_STRING_NUMBER, IS_NUMBER, 0},
};

struct translation {
    struct json json;
    const char *start;
    struct buffer *out;
    otlp_places *places;
    struct buffer key, text;
};

static const struct member *member_named(enum message of, struct buffer *key) {
    size_t length = 0;
    for (size_t i = 0; i < key->count; i++)
        if (key->items[i] != '_')
            key->items[length++] = (char)tolower((unsigned char)key->items[i]);
    struct text name = {key->items, length};
    for (size_t i = 0; i < COUNT_OF(members); i++)
        if (members[i].of == of && text_equal(text_of(members[i].name), name))
            return &members[i];
    return NULL;
}

static void add_key(struct translation *t, uint32_t number, uint32_t wire) {
    buffer_add_varint(t->out, number << 3 | wire);
}

/* Read a number, or a string that contains one; negative ones, too. */
static bool take_number(struct translation *t, uint64_t *value) {
    struct text number;
    t->text.count = 0;
    if (json_peek(&t->json) == '"') {
        if (!json_string(&t->json, &t->text))
            return false;
        number = buffer_text(&t->text);
    } else if (!json_number(&t->json, &number)) {
        return false;
    }
    bool negative = text_starts(number, TEXT("-"));
    double fraction;
    if (!text_to_u64(negative ? text_from(number, 1) : number, value)) {
        if (!text_to_double(negative ? text_from(number, 1) : number, &fraction))
            return false;
        *value = double_to_u64(fraction);
    }
    *value = negative ? -*value : *value;
    return true;
}

/* A message's length is known only after it was written: reserve five bytes for it, the last of which may be empty. */
enum { LENGTH_BYTES = 5 };

static bool take_message(struct translation *t, enum message message);

static bool add_message(struct translation *t, const struct member *m) {
    add_key(t, m->number, WIRE_TEXT);
    size_t at = t->out->count;
    buffer_add(t->out, TEXT("\0\0\0\0\0"));
    size_t from = (size_t)(t->json.rest.data - t->start);
    vector_push(t->places, ((struct otlp_place){t->out->count, from}));
    if (!take_message(t, m->message))
        return false;
    uint64_t length = t->out->count - at - LENGTH_BYTES;
    for (int i = 0; i < LENGTH_BYTES; i++)
        t->out->items[at + (size_t)i] =
            (char)((length >> (7 * i) & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
    return length < UINT64_C(1) << (7 * LENGTH_BYTES);
}

static bool add_one(struct translation *t, const struct member *m) {
    uint64_t number;
    switch (m->kind) {
    case IS_MESSAGE:
        return add_message(t, m);
    case IS_STRING:
        t->text.count = 0;
        if (!json_string(&t->json, &t->text))
            return false;
        add_key(t, m->number, WIRE_TEXT);
        buffer_add_varint(t->out, t->text.count);
        buffer_add(t->out, buffer_text(&t->text));
        return true;
    case IS_TRUTH:
        number = json_peek(&t->json) == 't';
        add_key(t, m->number, WIRE_NUMBER);
        buffer_add_varint(t->out, number);
        return json_skip(&t->json);
    case IS_NUMBER:
    case IS_EIGHT:
        if (!take_number(t, &number))
            return false;
        add_key(t, m->number, m->kind == IS_EIGHT ? WIRE_EIGHT : WIRE_NUMBER);
        if (m->kind == IS_EIGHT)
            buffer_put_u64(t->out, number);
        else
            buffer_add_varint(t->out, number);
        return true;
    }
    return false;
}

static bool add_member(struct translation *t, const struct member *m) {
    bool fine = true;
    if (json_peek(&t->json) == 'n') /* null: treated as missing */
        return json_skip(&t->json);
    if (!json_take(&t->json, '['))
        return add_one(t, m);
    while (fine && json_element(&t->json))
        fine = add_one(t, m);
    return fine;
}

/* Nests no deeper than the table's messages: lists and maps in values are skipped. A message that is cut is an
   error: without its tables nothing could be named. */
static bool take_message(struct translation *t, enum message message) {
    bool fine = json_take(&t->json, '{');
    const char *before = t->json.rest.data;
    while (fine && json_member(&t->json, &t->key)) {
        const struct member *m = member_named(message, &t->key);
        t->key.count = 0;
        fine = m ? add_member(t, m) : json_skip(&t->json);
        before = t->json.rest.data;
    }
    return fine && t->json.rest.data > before && t->json.rest.data[-1] == '}';
}

bool otlp_from_json(struct text content, size_t *at, const char *path, struct buffer *out,
                    otlp_places *places, struct error *error) {
    struct translation t = {
        .json = {text_from(content, *at)}, .start = content.data, .out = out, .places = places};
    bool fine = take_message(&t, DATA);
    json_peek(&t.json); /* white space */
    *at = (size_t)(t.json.rest.data - content.data);
    if (!fine)
        error_at(error, path, *at, "not OpenTelemetry's profiles as JSON");
    buffer_release(&t.key);
    buffer_release(&t.text);
    return fine;
}

uint64_t otlp_place_of(const otlp_places *places, uint64_t offset) {
    size_t after = search_first(i, 0, places->count, places->items[i].translated <= offset);
    return after ? places->items[after - 1].original : 0;
}
