/*
 * pprof's profile.proto, packed with gzip: what `go tool pprof`, Pyroscope, Parca and others read.
 *
 * A location is an address of an object, with a line for each function that is inlined there, innermost first. Addresses are those that wick
 * knows: offsets into files, kernel addresses as sampled; each object is one mapping that begins where its offset says, so that tools which look into
 * the file find the right place. Values are samples and weight of each measure; who it was is in labels.
 *
 * Fields may come in any order, so samples go out first, one at a time, and what they named comes behind them.
 */
#include "export/formats.h"
#include "export/protobuf.h"

#include <stdlib.h>

#include "import/import.h"
#include "object/object.h"

/* Field numbers of profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
    VALUE_TYPE = 1,
    VALUE_UNIT = 2,
    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_STRING = 2,
    LABEL_NUMBER = 3,
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7, /* and files, lines, inlines: up to 10 */
    MAPPING_HAS_INLINES = 10,
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    LINE_COLUMN = 3,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_FILE = 4,
};

/* The frames of one address on some stacks: a way from its function to what is inlined there. Most are used whole. */
struct group {
    uint32_t outer; /* the group without its innermost frame; 0: there is none */
    uint32_t place;
    uint32_t location; /* the file's; 0: none ends with it yet */
};

struct pprof {
    const struct outline *outline;
    struct out *out;
    struct gzip *gzip;
    struct strings *strings; /* ids are the file's + 1: its string 0 is the empty one */
    struct buffer message, sub, plain, packed;
    VECTOR(struct group) groups;
    struct index group_index;
    uint32_t *node_groups;      /* by node */
    VECTOR(uint32_t) locations; /* groups in the order of their first use */
    uint32_t *mappings;         /* by object: the file's, 0: none yet */
    VECTOR(uint32_t) mapped;    /* objects in the order of their numbers */
    uint32_t *functions;        /* by the outline's: the file's */
    VECTOR(uint32_t) named;     /* a place of each */
};

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

/* The sub-message becomes a field of the message. */
static void pprof_put_sub(struct pprof *p, unsigned field) {
    proto_bytes(&p->message, field, buffer_text(&p->sub));
    p->sub.count = 0;
}

/* Text is UTF-8 there: what is not is shown as elsewhere. */
static uint64_t pprof_string(struct pprof *p, struct text t) {
    struct buffer scratch = {0};
    uint32_t id = strings_add(p->strings, text_lossy(t, &scratch));
    buffer_release(&scratch);
    return id - 1;
}

/* ---- locations ---- */

static bool goes_on(const struct place *outer, const struct place *inner) {
    return inner->level > outer->level && outer->object == inner->object &&
           outer->address == inner->address && !((outer->kinds ^ inner->kinds) & KIND_ROOT);
}

static uint32_t group_find(struct pprof *p, uint32_t outer, uint32_t place) {
    uint64_t hash = hash_mix(outer, place);
    uint32_t id;
    for (struct probe probe = index_probe(&p->group_index, hash);
         (id = index_next(&p->group_index, &probe));)
        if (p->groups.items[id].outer == outer && p->groups.items[id].place == place)
            return id;
    id = (uint32_t)p->groups.count;
    vector_push(&p->groups, ((struct group){outer, place, 0}));
    index_add(&p->group_index, hash, id);
    return id;
}

static void find_groups(struct pprof *p) {
    const struct outline *o = p->outline;
    p->node_groups = memory_zero(o->nodes.count, sizeof *p->node_groups);
    vector_push(&p->groups, ((struct group){0}));
    for (size_t i = 1; i < o->nodes.count; i++) {
        const struct outline_node *node = &o->nodes.items[i],
                                  *parent = &o->nodes.items[node->parent];
        bool inlined =
            node->parent && goes_on(&o->places.items[parent->place], &o->places.items[node->place]);
        p->node_groups[i] = group_find(p, inlined ? p->node_groups[node->parent] : 0, node->place);
    }
}

static uint64_t location_of(struct pprof *p, uint32_t group) {
    struct group *g = &p->groups.items[group];
    if (!g->location) {
        vector_push(&p->locations, group);
        g->location = (uint32_t)p->locations.count;
    }
    return g->location;
}

/* Leaf first; of a group's nodes only the innermost stands for a location. */
static void add_stack(struct pprof *p, uint32_t node) {
    const struct outline_node *nodes = p->outline->nodes.items;
    while (node) {
        uint32_t group = p->node_groups[node];
        buffer_add_varint(&p->sub, location_of(p, group));
        for (; group; group = p->groups.items[group].outer)
            node = nodes[node].parent;
    }
    pprof_put_sub(p, SAMPLE_LOCATION);
}

/* ---- samples ---- */

static bool counts_samples(const struct measure *measure) {
    return text_equal(measure->unit, TEXT("samples"));
}

static void add_label(struct pprof *p, const char *key, struct text text, uint64_t number) {
    proto_u64(&p->sub, LABEL_KEY, pprof_string(p, text_of(key)));
    if (text.length)
        proto_u64(&p->sub, LABEL_STRING, pprof_string(p, text));
    else
        proto_u64(&p->sub, LABEL_NUMBER, number);
    pprof_put_sub(p, SAMPLE_LABEL);
}

static void add_labels(struct pprof *p, const struct track *track, const struct entry *entry) {
    if (track->comm.length)
        add_label(p, "thread", track->comm, 0);
    if (track->pid >= 0)
        add_label(p, "pid", TEXT(""), (uint64_t)track->pid);
    if (track->tid >= 0)
        add_label(p, "tid", TEXT(""), (uint64_t)track->tid);
    if (track->waits)
        add_label(p, "state", state_name((uint8_t)entry->state), 0);
}

static void write_sample(struct pprof *p, const struct entry *entry) {
    const struct outline *o = p->outline;
    const struct track *track = &o->tracks.items[entry->track];
    add_stack(p, entry->node);
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

/* pprof and those who store its profiles know time on the CPU by this name. */
static struct text type_name(const struct measure *measure) {
    bool clock = text_starts(measure->name, TEXT("cpu-clock")) ||
                 text_starts(measure->name, TEXT("task-clock"));
    if (clock && text_equal(measure->unit, TEXT("ns")))
        return TEXT("cpu");
    return text_equal(measure->name, TEXT("off-cpu")) ? TEXT("off_cpu") : measure->name;
}

static void add_type(struct pprof *p, struct buffer *to, struct text type, const char *unit) {
    proto_u64(to, VALUE_TYPE, pprof_string(p, type));
    proto_u64(to, VALUE_UNIT, pprof_string(p, text_of(unit)));
}

static const char *unit_name(const struct outline *o, uint32_t measure) {
    const char *unit = measure_unit(o, measure);
    return unit ? unit : "count";
}

/* Samples of several measures are told apart by the measure's name before theirs; of one that counts nothing else, by its name alone. */
static struct text samples_name(struct pprof *p, uint32_t measure, struct buffer *name) {
    const struct outline *o = p->outline;
    name->count = 0;
    if (o->measures.count > 1)
        buffer_add(name, type_name(&o->measures.items[measure]));
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
                                                                           : type_name(measure));
        if (only)
            continue;
        add_type(p, &p->message, type_name(measure), unit_name(o, i));
        pprof_put(p, PROFILE_SAMPLE_TYPE);
    }
    proto_u64(&p->plain, PROFILE_DEFAULT_TYPE, chosen);
    buffer_release(&name);
}

/* Where every sample weighs the same, that is the period. */
static void write_period(struct pprof *p) {
    const struct outline *o = p->outline;
    const struct entry *first = &o->entries.items[0];
    uint64_t period = first->samples ? first->weight / first->samples : 0, expected;
    if (o->measures.count > 1 || counts_samples(&o->measures.items[0]))
        return;
    for (size_t i = 0; i < o->entries.count; i++)
        if (!checked_multiply(o->entries.items[i].samples, period, &expected) ||
            expected != o->entries.items[i].weight)
            return;
    add_type(p, &p->message, type_name(&o->measures.items[0]), unit_name(o, 0));
    pprof_put(p, PROFILE_PERIOD_TYPE);
    proto_u64(&p->plain, PROFILE_PERIOD, period);
}

/* ---- what samples named ---- */

/* pprof calls a profile by its first mapping: the program, which is the file that is no library and has most places in it. */
static void choose_first_mapping(struct pprof *p) {
    const struct outline *o = p->outline;
    size_t objects = o->tree->objects ? objects_count(o->tree->objects) + 1 : 1;
    uint32_t *counts = memory_zero(objects, sizeof *counts), best = 0;
    p->mappings = memory_zero(objects, sizeof *p->mappings);
    for (size_t i = 1; i < o->places.count; i++) {
        const struct place *place = &o->places.items[i];
        if (!place->object || place->kinds & (KIND_KERNEL | KIND_JIT | KIND_LIBRARY) ||
            objects_get(o->tree->objects, place->object)->kind == OBJECT_NONE)
            continue;
        counts[place->object]++;
        if (!best || counts[place->object] > counts[best])
            best = place->object;
    }
    if (best) {
        vector_push(&p->mapped, best);
        p->mappings[best] = 1;
    }
    free(counts);
}

static uint64_t mapping_of(struct pprof *p, uint32_t object) {
    if (object && !p->mappings[object]) {
        vector_push(&p->mapped, object);
        p->mappings[object] = (uint32_t)p->mapped.count;
    }
    return object ? p->mappings[object] : 0;
}

static uint64_t function_of(struct pprof *p, uint32_t place) {
    uint32_t *known = &p->functions[p->outline->places.items[place].function];
    if (!*known) {
        vector_push(&p->named, place);
        *known = (uint32_t)p->named.count;
    }
    return *known;
}

static void write_locations(struct pprof *p) {
    for (size_t i = 0; i < p->locations.count; i++) {
        uint32_t group = p->locations.items[i];
        const struct place *place = &p->outline->places.items[p->groups.items[group].place];
        proto_u64(&p->message, LOCATION_ID, i + 1);
        proto_u64(&p->message, LOCATION_MAPPING, mapping_of(p, place->object));
        proto_u64(&p->message, LOCATION_ADDRESS, place->address);
        for (; group; group = p->groups.items[group].outer) {
            uint32_t id = p->groups.items[group].place;
            proto_u64(&p->sub, LINE_FUNCTION, function_of(p, id));
            proto_u64(&p->sub, LINE_LINE, p->outline->places.items[id].line);
            proto_u64(&p->sub, LINE_COLUMN, p->outline->places.items[id].column);
            pprof_put_sub(p, LOCATION_LINE);
        }
        pprof_put(p, PROFILE_LOCATION);
    }
}

/* Without a system name: one that is the name itself makes pprof strip template arguments from both. */
static void write_functions(struct pprof *p) {
    for (size_t i = 0; i < p->named.count; i++) {
        const struct place *place = &p->outline->places.items[p->named.items[i]];
        proto_u64(&p->message, FUNCTION_ID, i + 1);
        proto_u64(&p->message, FUNCTION_NAME, pprof_string(p, place->name));
        proto_u64(&p->message, FUNCTION_FILE, pprof_string(p, place->file));
        pprof_put(p, PROFILE_FUNCTION);
    }
}

/* In whole pages around what was sampled. */
struct range {
    uint64_t start, limit;
};

static void write_mapping(struct pprof *p, size_t number, const struct range *range) {
    uint32_t object = p->mapped.items[number];
    const struct objects *objects = p->outline->tree->objects;
    const struct build_id *build_id = &objects_get(objects, object)->build_id;
    struct buffer hex = {0};
    for (size_t i = 0; i < build_id->size; i++)
        buffer_printf(&hex, "%02x", build_id->bytes[i]);
    proto_u64(&p->message, MAPPING_ID, number + 1);
    proto_u64(&p->message, MAPPING_START, range->start);
    proto_u64(&p->message, MAPPING_LIMIT, range->limit);
    proto_u64(&p->message, MAPPING_OFFSET, range->start);
    proto_u64(&p->message, MAPPING_FILE, pprof_string(p, objects_shown(objects, object)));
    proto_u64(&p->message, MAPPING_BUILD_ID, pprof_string(p, buffer_text(&hex)));
    for (unsigned has = MAPPING_HAS_FUNCTIONS; has <= MAPPING_HAS_INLINES; has++)
        proto_u64(&p->message, has, 1); /* all that can be known is there: nobody need look again */
    pprof_put(p, PROFILE_MAPPING);
    buffer_release(&hex);
}

static void write_mappings(struct pprof *p) {
    enum { PAGE = 4096 };
    const struct outline *o = p->outline;
    struct range *ranges = memory_zero(p->mapped.count + 1, sizeof *ranges);
    for (size_t i = 1; i < o->places.count; i++) {
        const struct place *place = &o->places.items[i];
        if (!place->object || !p->mappings[place->object])
            continue;
        struct range *range = &ranges[p->mappings[place->object] - 1];
        uint64_t start = place->address & ~(uint64_t)(PAGE - 1);
        uint64_t limit = saturating_add(start, PAGE);
        range->start = range->limit && range->start < start ? range->start : start;
        range->limit = range->limit > limit ? range->limit : limit;
    }
    for (size_t i = 0; i < p->mapped.count; i++)
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
    for (uint32_t i = 1; i <= strings_count(p->strings); i++) {
        proto_bytes(&p->plain, PROFILE_STRING, strings_get(p->strings, i));
        pprof_flush(p, false);
    }
}

/* ---- all of it ---- */

static uint64_t size_of(const struct outline *o) {
    uint64_t size = 0;
    for (size_t i = 0; i < o->entries.count; i++)
        size += 3 * (uint64_t)o->nodes.items[o->entries.items[i].node].depth + 40;
    return size;
}

/* Values are signed there. */
static bool values_fit(const struct outline *o, struct error *error) {
    uint64_t samples = 0, weight = 0;
    bool fine = true;
    for (size_t i = 0; i < o->entries.count && fine; i++)
        fine = checked_add(samples, o->entries.items[i].samples, &samples) &&
               checked_add(weight, o->entries.items[i].weight, &weight);
    if (fine && samples <= INT64_MAX && weight <= INT64_MAX)
        return true;
    return error_set(error, ERROR_INPUT,
                     "the weights add up to more than 2^63, which pprof cannot count; speedscope's "
                     "format can hold them");
}

static void pprof_release(struct pprof *p) {
    strings_free(p->strings);
    buffer_release(&p->message);
    buffer_release(&p->sub);
    buffer_release(&p->plain);
    buffer_release(&p->packed);
    vector_release(&p->groups);
    index_release(&p->group_index);
    vector_release(&p->locations);
    vector_release(&p->mapped);
    vector_release(&p->named);
    free(p->node_groups);
    free(p->mappings);
    free(p->functions);
}

bool pprof_write(struct out *out, const struct outline *o, struct error *error) {
    if (!values_fit(o, error) || !export_fits(o, size_of(o), error))
        return false;
    struct pprof p = {.outline = o, .out = out, .gzip = gzip_new(), .strings = strings_new()};
    strings_add(p.strings, TEXT(""));
    p.functions = memory_zero(o->function_count + 1, sizeof *p.functions);
    find_groups(&p);
    choose_first_mapping(&p);
    write_types(&p);
    for (size_t i = 0; i < o->entries.count; i++)
        write_sample(&p, &o->entries.items[i]);
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
