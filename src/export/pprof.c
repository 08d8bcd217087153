/*
 * pprof's profile.proto, compressed with gzip: read by `go tool pprof`, Pyroscope, Parca and others.
 *
 * A location is an address of an object, with a line for each function that is inlined there, innermost first.
 * Addresses are those that wick knows: file offsets, and kernel addresses as sampled; each object is one mapping that
 * begins at its offset, so that tools that open the file find the right place. Values are samples and weight of each
 * measure; labels identify the thread.
 *
 * Fields may be in any order, so samples are written first, one at a time, followed by what they refer to.
 */
#include "export/formats.h"
#include "export/locations.h"
#include "export/protobuf.h"

#include <stdlib.h>

#include "import/pprof_fields.h"
#include "object/object.h"

struct pprof {
    const struct outline *outline;
    struct out *out;
    struct gzip *gzip;
    struct buffer message, sub, plain, packed;
    struct locations locations;
};

static uint64_t pprof_string(struct pprof *p, struct text t) {
    return locations_string(&p->locations, t);
}

static void pprof_flush(struct pprof *p, bool all) {
    if (p->plain.count < 1 << 16 && !all)
        return;
    gzip_add(p->gzip, buffer_text(&p->plain), &p->packed);
    p->plain.count = 0;
    out_text(p->out, buffer_text(&p->packed));
    p->packed.count = 0;
}

static void pprof_put(struct pprof *p, unsigned field) {
    proto_bytes(&p->plain, field, buffer_text(&p->message));
    p->message.count = 0;
    pprof_flush(p, false);
}

/* Append the sub-message as a field of the message. */
static void pprof_put_sub(struct pprof *p, unsigned field) {
    proto_bytes(&p->message, field, buffer_text(&p->sub));
    p->sub.count = 0;
}

/* ---- samples ---- */

static bool counts_samples(const struct measure *measure) {
    return text_equal(measure->unit, TEXT("samples"));
}

static void add_label(struct pprof *p, struct text key, struct text text, uint64_t number) {
    proto_u64(&p->sub, LABEL_KEY, pprof_string(p, key));
    if (text.length)
        proto_u64(&p->sub, LABEL_STRING, pprof_string(p, text));
    else
        proto_u64(&p->sub, LABEL_NUMBER, number);
    pprof_put_sub(p, SAMPLE_LABEL);
}

/* Keys of labels that wick itself writes: no key may occur twice. */
static bool is_fixed_key(struct text key) {
    return text_equal(key, TEXT("thread")) || text_equal(key, TEXT("pid")) ||
           text_equal(key, TEXT("tid")) || text_equal(key, TEXT("state"));
}

static void add_labels(struct pprof *p, const struct track *track,
                       const struct track_entry *entry) {
    if (track->comm.length)
        add_label(p, TEXT("thread"), track->comm, 0);
    bool numbered = !p->outline->options->no_threads;
    if (track->pid >= 0 && numbered)
        add_label(p, TEXT("pid"), TEXT(""), (uint64_t)track->pid);
    if (track->tid >= 0 && numbered)
        add_label(p, TEXT("tid"), TEXT(""), (uint64_t)track->tid);
    if (track->waits)
        add_label(p, TEXT("state"), state_name((uint8_t)entry->state), 0);
    const struct outline *o = p->outline;
    size_t count = 0;
    const struct label_pair *pairs =
        entry->labels ? tree_labels(o->tree, o->label_sets[entry->labels], &count) : NULL;
    for (size_t i = 0; i < count; i++) {
        uint64_t number;
        struct text value = strings_get(o->tree->strings, pairs[i].value);
        if (is_fixed_key(strings_get(o->tree->strings, pairs[i].key)))
            continue;
        bool numeric = label_is_number(value, &number);
        add_label(p, strings_get(o->tree->strings, pairs[i].key), numeric ? TEXT("") : value,
                  numeric ? number : 0);
    }
}

static void write_sample(struct pprof *p, const struct track_entry *entry) {
    const struct outline *o = p->outline;
    const struct track *track = &o->tracks.items[entry->track];
    locations_add_stack(&p->locations, entry->node, &p->sub);
    pprof_put_sub(p, SAMPLE_LOCATION);
    for (uint32_t i = 0; i < o->measures.count; i++) {
        bool mine = i == track->measure;
        buffer_add_varint(&p->sub, mine ? entry->samples : 0);
        if (!counts_samples(&o->measures.items[i]))
            buffer_add_varint(&p->sub, mine ? entry->weight : 0);
    }
    pprof_put_sub(p, SAMPLE_VALUE);
    add_labels(p, track, entry);
    pprof_put(p, PROFILE_SAMPLE);
}

/* ---- what values are ---- */

static void add_type(struct pprof *p, struct buffer *to, struct text type, const char *unit) {
    proto_u64(to, VALUE_TYPE, pprof_string(p, type));
    proto_u64(to, VALUE_UNIT, pprof_string(p, text_of(unit)));
}

/* With several measures, sample types are prefixed with the measure's name; a measure that counts nothing else has
   only its name. */
static struct text samples_name(struct pprof *p, uint32_t measure, struct buffer *name) {
    const struct outline *o = p->outline;
    name->count = 0;
    if (o->measures.count > 1)
        buffer_add(name, measure_type(&o->measures.items[measure]));
    if (o->measures.count > 1 && !counts_samples(&o->measures.items[measure]))
        buffer_add_char(name, '-');
    if (o->measures.count == 1 || !counts_samples(&o->measures.items[measure]))
        buffer_add(name, TEXT("samples"));
    return buffer_text(name);
}

static void write_types(struct pprof *p) {
    const struct outline *o = p->outline;
    struct buffer name = {0};
    uint64_t chosen = 0;
    for (uint32_t i = 0; i < o->measures.count; i++) {
        const struct measure *measure = &o->measures.items[i];
        struct text samples = samples_name(p, i, &name);
        add_type(p, &p->message, samples, "count");
        pprof_put(p, PROFILE_SAMPLE_TYPE);
        bool only = counts_samples(measure);
        if (i == 0)
            chosen = pprof_string(p, only || o->options->shape->by_samples ? samples
                                                                           : measure_type(measure));
        if (only)
            continue;
        add_type(p, &p->message, measure_type(measure), measure_count_unit(o, i));
        pprof_put(p, PROFILE_SAMPLE_TYPE);
    }
    proto_u64(&p->plain, PROFILE_DEFAULT_TYPE, chosen);
    buffer_release(&name);
}

/* If every sample has the same weight, that is the period. */
static void write_period(struct pprof *p) {
    const struct outline *o = p->outline;
    const struct track_entry *first = &o->entries.items[0];
    uint64_t period = first->samples ? first->weight / first->samples : 0, expected;
    if (o->measures.count > 1 || counts_samples(&o->measures.items[0]))
        return;
    for (size_t i = 0; i < o->entries.count; i++)
        if (!checked_multiply(o->entries.items[i].samples, period, &expected) ||
            expected != o->entries.items[i].weight)
            return;
    add_type(p, &p->message, measure_type(&o->measures.items[0]), measure_count_unit(o, 0));
    pprof_put(p, PROFILE_PERIOD_TYPE);
    proto_u64(&p->plain, PROFILE_PERIOD, period);
}

/* ---- what samples named ---- */

static void write_locations(struct pprof *p) {
    struct locations *l = &p->locations;
    for (size_t i = 0; i < l->used.count; i++) {
        uint32_t group = l->used.items[i];
        const struct place *place = &p->outline->stacks->places.items[l->groups.items[group].place];
        proto_u64(&p->message, LOCATION_ID, i + 1);
        proto_u64(&p->message, LOCATION_MAPPING, locations_mapping(l, place->object));
        proto_u64(&p->message, LOCATION_ADDRESS, place->address);
        for (; group; group = l->groups.items[group].outer) {
            uint32_t id = l->groups.items[group].place;
            proto_u64(&p->sub, LINE_FUNCTION, locations_function(l, id));
            proto_u64(&p->sub, LINE_LINE, p->outline->stacks->places.items[id].line);
            proto_u64(&p->sub, LINE_COLUMN, p->outline->stacks->places.items[id].column);
            pprof_put_sub(p, LOCATION_LINE);
        }
        pprof_put(p, PROFILE_LOCATION);
    }
}

/* Omit the system name: if it equals the name, pprof strips template arguments from both. */
static void write_functions(struct pprof *p) {
    for (size_t i = 0; i < p->locations.named.count; i++) {
        const struct place *place = &p->outline->stacks->places.items[p->locations.named.items[i]];
        proto_u64(&p->message, FUNCTION_ID, i + 1);
        proto_u64(&p->message, FUNCTION_NAME, pprof_string(p, place->name));
        proto_u64(&p->message, FUNCTION_FILE, pprof_string(p, place->file));
        pprof_put(p, PROFILE_FUNCTION);
    }
}

static void write_mapping(struct pprof *p, size_t number, const struct range *range) {
    uint32_t object = p->locations.mapped.items[number];
    const struct objects *objects = p->outline->tree->objects;
    const struct build_id *build_id = &objects_get(objects, object)->build_id;
    struct buffer hex = {0};
    buffer_add_build_id(&hex, build_id);
    proto_u64(&p->message, MAPPING_ID, number + 1);
    proto_u64(&p->message, MAPPING_START, range->start);
    proto_u64(&p->message, MAPPING_LIMIT, range->limit);
    proto_u64(&p->message, MAPPING_OFFSET, range->start);
    proto_u64(&p->message, MAPPING_FILE, pprof_string(p, objects_shown(objects, object)));
    proto_u64(&p->message, MAPPING_BUILD_ID, pprof_string(p, buffer_text(&hex)));
    for (unsigned has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINES; has++)
        proto_u64(&p->message, has, 1); /* fully symbolized: no need to look again */
    pprof_put(p, PROFILE_MAPPING);
    buffer_release(&hex);
}

static void write_mappings(struct pprof *p) {
    struct range *ranges = locations_ranges(&p->locations);
    for (size_t i = 0; i < p->locations.mapped.count; i++)
        write_mapping(p, i, &ranges[i]);
    free(ranges);
}

static void write_comments(struct pprof *p) {
    const struct notes *notes = p->outline->options->notes;
    struct buffer line = {0};
    proto_u64(&p->plain, PROFILE_COMMENT, pprof_string(p, TEXT("wick " WICK_VERSION)));
    for (size_t i = 0; notes && i < notes->count; i++) {
        line.count = 0;
        note_print(&notes->items[i], &line);
        proto_u64(&p->plain, PROFILE_COMMENT, pprof_string(p, buffer_text(&line)));
    }
    buffer_release(&line);
}

static void write_strings(struct pprof *p) {
    for (uint32_t i = 1; i <= strings_count(p->locations.strings); i++) {
        proto_bytes(&p->plain, PROFILE_STRING, strings_get(p->locations.strings, i));
        pprof_flush(p, false);
    }
}

/* ---- all of it ---- */

static void pprof_release(struct pprof *p) {
    buffer_release(&p->message);
    buffer_release(&p->sub);
    buffer_release(&p->plain);
    buffer_release(&p->packed);
    locations_release(&p->locations);
}

bool pprof_write(struct out *out, const struct outline *o, struct error *error) {
    if (!locations_fit(o, 2 * o->measures.count, error))
        return false;
    struct pprof p = {.outline = o, .out = out, .gzip = gzip_new()};
    locations_init(&p.locations, o);
    write_types(&p);
    size_t first = o->options->first_sample, most = o->options->sample_count;
    for (size_t i = first; i < o->entries.count && (!most || i - first < most); i++)
        write_sample(&p, &o->entries.items[i]);
    proto_u64(&p.plain, PROFILE_TIME, o->options->began);
    proto_u64(&p.plain, PROFILE_DURATION, o->options->lasted);
    write_locations(&p);
    write_functions(&p);
    write_mappings(&p);
    write_period(&p);
    write_comments(&p);
    write_strings(&p);
    pprof_flush(&p, true);
    gzip_end(p.gzip, &p.packed);
    out_text(out, buffer_text(&p.packed));
    pprof_release(&p);
    return true;
}
