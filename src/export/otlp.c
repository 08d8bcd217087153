/*
 * OpenTelemetry's profiles: ProfilesData of opentelemetry-proto 1.11, package profiles.v1development, which is still
 * marked unstable. Unlike the other formats it is held in memory until it is complete, because a message begins with
 * its length; that is a few bytes for each frame of each distinct stack.
 *
 * A measure is a profile; samples refer to a stack and attributes in tables that all profiles share. Element 0 of
 * each table means none.
 */
#include "export/formats.h"
#include "export/locations.h"
#include "export/protobuf.h"

#include <stdlib.h>

#include "import/import.h"
#include "import/otlp_fields.h"

struct otlp {
    const struct outline *outline;
    struct locations locations;
    struct strings *attributes; /* messages; ids are the file's + 1 */
    uint32_t *stacks;           /* by node: the file's number, 0: none yet */
    VECTOR(uint32_t) stacked;   /* nodes, one for each */
    struct buffer profiles, profile, message, sub, value, dictionary;
};

/* Append `from` as a field of `to`, and empty it. */
static void put(struct buffer *to, unsigned field, struct buffer *from) {
    proto_bytes(to, field, buffer_text(from));
    from->count = 0;
}

/* An integer of 0 is a value, too, so its field must be written. */
static uint64_t attribute(struct otlp *t, struct text key, struct text text, uint64_t number) {
    struct buffer attribute = {0};
    struct buffer lossy = {0};
    proto_u64(&attribute, ATTRIBUTE_KEY, locations_string(&t->locations, key));
    if (text.data) {
        proto_bytes(&t->value, VALUE_STRING, text_lossy(text, &lossy));
    } else {
        buffer_add_varint(&t->value, VALUE_INTEGER << 3 | WIRE_VARINT);
        buffer_add_varint(&t->value, number);
    }
    put(&attribute, ATTRIBUTE_VALUE, &t->value);
    uint32_t id = strings_add(t->attributes, buffer_text(&attribute));
    buffer_release(&attribute);
    buffer_release(&lossy);
    return id - 1;
}

/* ---- profiles ---- */

static uint64_t stack_of(struct otlp *t, uint32_t node) {
    if (!t->stacks[node]) {
        vector_push(&t->stacked, node);
        t->stacks[node] = (uint32_t)t->stacked.count;
    }
    return t->stacks[node];
}

static void add_attributes(struct otlp *t, const struct track *track,
                           const struct track_entry *entry) {
    struct text none = {0};
    if (track->comm.length)
        buffer_add_varint(&t->sub, attribute(t, TEXT("thread.name"), track->comm, 0));
    bool numbered = !t->outline->options->no_threads;
    if (track->tid >= 0 && numbered)
        buffer_add_varint(&t->sub, attribute(t, TEXT("thread.id"), none, (uint64_t)track->tid));
    if (track->pid >= 0 && numbered)
        buffer_add_varint(&t->sub, attribute(t, TEXT("process.pid"), none, (uint64_t)track->pid));
    if (track->waits)
        buffer_add_varint(&t->sub,
                          attribute(t, TEXT("thread.state"), state_name((uint8_t)entry->state), 0));
    const struct outline *o = t->outline;
    size_t count = 0;
    const struct label_pair *pairs =
        entry->labels ? tree_labels(o->tree, o->label_sets[entry->labels], &count) : NULL;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;
        struct text value = strings_get(o->tree->strings, pairs[i].value);
        bool numeric = label_is_number(value, &number);
        buffer_add_varint(&t->sub, attribute(t, strings_get(o->tree->strings, pairs[i].key),
                                             numeric ? none : value, number));
    }
    if (t->sub.count)
        put(&t->message, SAMPLE_ATTRIBUTES, &t->sub);
}

static void add_sample(struct otlp *t, const struct track_entry *entry) {
    proto_u64(&t->message, SAMPLE_STACK, stack_of(t, entry->node));
    add_attributes(t, &t->outline->tracks.items[entry->track], entry);
    buffer_add_varint(&t->sub, entry_weight(t->outline, entry));
    put(&t->message, SAMPLE_VALUES, &t->sub);
    put(&t->profile, PROFILE_SAMPLE, &t->message);
}

/* Profile ids must be unique: they are a hash of the content and of the index among equal profiles. */
static void add_id(struct otlp *t, uint32_t measure) {
    uint64_t low = digest_bytes(t->profile.items, t->profile.count) | 1;
    uint64_t high = digest_mix(low, measure + 1);
    buffer_put_u64(&t->sub, low);
    buffer_put_u64(&t->sub, high);
    put(&t->profile, PROFILE_ID, &t->sub);
}

/* Entries are sorted by track, and tracks by measure: these begin at `at`. Return where the next measure's begin. */
static size_t add_profile(struct otlp *t, uint32_t measure, size_t at) {
    const struct outline *o = t->outline;
    bool by_samples = o->options->shape->by_samples;
    struct text type = by_samples ? TEXT("samples") : measure_type(&o->measures.items[measure]);
    const char *unit = by_samples ? "count" : measure_count_unit(o, measure);
    proto_u64(&t->sub, TYPE_TYPE, locations_string(&t->locations, type));
    proto_u64(&t->sub, TYPE_UNIT, locations_string(&t->locations, text_of(unit)));
    put(&t->profile, PROFILE_TYPE, &t->sub);
    for (; at < o->entries.count && o->tracks.items[o->entries.items[at].track].measure == measure;
         at++)
        add_sample(t, &o->entries.items[at]);
    if (o->options->began) {
        buffer_add_varint(&t->profile, PROFILE_TIME << 3 | WIRE_FIXED64);
        buffer_put_u64(&t->profile, o->options->began);
    }
    proto_u64(&t->profile, PROFILE_DURATION, o->options->lasted);
    add_id(t, measure);
    put(&t->profiles, SCOPE_PROFILE, &t->profile);
    return at;
}

/* ---- tables ---- */

static void put_row(struct otlp *t, unsigned table) {
    put(&t->dictionary, table, &t->message);
}

static void add_stacks(struct otlp *t) {
    put_row(t, TABLE_STACK);
    for (size_t i = 0; i < t->stacked.count; i++) {
        locations_add_stack(&t->locations, t->stacked.items[i], &t->sub);
        put(&t->message, STACK_LOCATIONS, &t->sub);
        put_row(t, TABLE_STACK);
    }
}

static void add_locations(struct otlp *t) {
    struct locations *l = &t->locations;
    put_row(t, TABLE_LOCATION);
    for (size_t i = 0; i < l->used.count; i++) {
        uint32_t group = l->used.items[i];
        const struct place *place = &t->outline->stacks->places.items[l->groups.items[group].place];
        struct text kind = place->kinds & KIND_KERNEL ? TEXT("kernel") : TEXT("native");
        proto_u64(&t->message, LOCATION_MAPPING, locations_mapping(l, place->object));
        proto_u64(&t->message, LOCATION_ADDRESS, place->address);
        for (; group; group = l->groups.items[group].outer) {
            uint32_t id = l->groups.items[group].place;
            proto_u64(&t->sub, LINE_FUNCTION, locations_function(l, id));
            proto_u64(&t->sub, LINE_LINE, t->outline->stacks->places.items[id].line);
            proto_u64(&t->sub, LINE_COLUMN, t->outline->stacks->places.items[id].column);
            put(&t->message, LOCATION_LINE, &t->sub);
        }
        buffer_add_varint(&t->sub, attribute(t, TEXT("profile.frame.type"), kind, 0));
        put(&t->message, LOCATION_ATTRIBUTES, &t->sub);
        put_row(t, TABLE_LOCATION);
    }
}

static void add_functions(struct otlp *t) {
    struct locations *l = &t->locations;
    put_row(t, TABLE_FUNCTION);
    for (size_t i = 0; i < l->named.count; i++) {
        const struct place *place = &t->outline->stacks->places.items[l->named.items[i]];
        proto_u64(&t->message, FUNCTION_NAME, locations_string(l, place->name));
        proto_u64(&t->message, FUNCTION_FILE, locations_string(l, place->file));
        put_row(t, TABLE_FUNCTION);
    }
}

static void add_mappings(struct otlp *t) {
    struct locations *l = &t->locations;
    const struct objects *objects = t->outline->tree->objects;
    struct range *ranges = locations_ranges(l);
    struct buffer hex = {0};
    put_row(t, TABLE_MAPPING);
    for (size_t i = 0; i < l->mapped.count; i++) {
        uint32_t object = l->mapped.items[i];
        proto_u64(&t->message, MAPPING_START, ranges[i].start);
        proto_u64(&t->message, MAPPING_LIMIT, ranges[i].limit);
        proto_u64(&t->message, MAPPING_OFFSET, ranges[i].start);
        proto_u64(&t->message, MAPPING_FILE, locations_string(l, objects_shown(objects, object)));
        hex.count = 0;
        buffer_add_build_id(&hex, &objects_get(objects, object)->build_id);
        if (hex.count) {
            buffer_add_varint(&t->sub, attribute(t, TEXT("process.executable.build_id.gnu"),
                                                 buffer_text(&hex), 0));
            put(&t->message, MAPPING_ATTRIBUTES, &t->sub);
        }
        put_row(t, TABLE_MAPPING);
    }
    free(ranges);
    buffer_release(&hex);
}

/* Each table refers to rows of the tables after it. */
static void add_tables(struct otlp *t) {
    add_stacks(t);
    add_locations(t);
    add_functions(t);
    add_mappings(t);
    static const char zeroes[16];
    proto_bytes(&t->message, LINK_TRACE, (struct text){zeroes, 16});
    proto_bytes(&t->message, LINK_SPAN, (struct text){zeroes, 8});
    put_row(t, TABLE_LINK);
    for (uint32_t i = 1; i <= strings_count(t->attributes); i++)
        proto_bytes(&t->dictionary, TABLE_ATTRIBUTE, strings_get(t->attributes, i));
    for (uint32_t i = 1; i <= strings_count(t->locations.strings); i++)
        proto_bytes(&t->dictionary, TABLE_STRING, strings_get(t->locations.strings, i));
}

/* Write the resource: its service and its host. */
static void add_resource(struct otlp *t) {
    const struct export_options *options = t->outline->options;
    struct buffer lossy = {0};
    for (size_t i = 0; i < options->resource_count; i++) {
        struct buffer pair = {0};
        lossy.count = 0;
        proto_bytes(&pair, ATTRIBUTE_NAME, text_lossy(text_of(options->resource[i].key), &lossy));
        lossy.count = 0;
        proto_bytes(&t->value, VALUE_STRING,
                    text_lossy(text_of(options->resource[i].pattern), &lossy));
        put(&pair, ATTRIBUTE_VALUE, &t->value);
        put(&t->sub, ATTRIBUTES, &pair);
        buffer_release(&pair);
    }
    if (options->resource_count)
        put(&t->message, RESOURCE_RESOURCE, &t->sub);
    buffer_release(&lossy);
}

/* ---- all of it ---- */

static void otlp_release(struct otlp *t) {
    locations_release(&t->locations);
    strings_free(t->attributes);
    free(t->stacks);
    vector_release(&t->stacked);
    struct buffer *buffers[] = {&t->profiles, &t->profile, &t->message,
                                &t->sub,      &t->value,   &t->dictionary};
    for (size_t i = 0; i < COUNT_OF(buffers); i++)
        buffer_release(buffers[i]);
}

bool otlp_write(struct out *out, const struct outline *o, struct error *error) {
    if (!locations_fit(o, 1, error))
        return false;
    struct otlp t = {.outline = o, .attributes = strings_new()};
    locations_init(&t.locations, o);
    strings_add(t.attributes, TEXT(""));
    t.stacks = memory_zero(o->stacks->nodes.count, sizeof *t.stacks);
    proto_bytes(&t.sub, SCOPE_NAME, TEXT("wick"));
    proto_bytes(&t.sub, SCOPE_VERSION, TEXT(WICK_VERSION));
    put(&t.profiles, SCOPE_SCOPE, &t.sub);
    size_t at = 0;
    for (uint32_t i = 0; i < o->measures.count; i++)
        at = add_profile(&t, i, at);
    add_tables(&t);
    add_resource(&t);
    put(&t.message, RESOURCE_SCOPES, &t.profiles);
    put(&t.profiles, DATA_RESOURCE, &t.message);
    put(&t.profiles, DATA_DICTIONARY, &t.dictionary);
    out_text(out, buffer_text(&t.profiles));
    otlp_release(&t);
    return true;
}
