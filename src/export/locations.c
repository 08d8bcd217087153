/* Locations by address, as in pprof and OpenTelemetry. */
#include "export/locations.h"
#include "export/formats.h"

#include <stdlib.h>

#include "import/import.h"

/* Text must be UTF-8: other bytes are escaped as elsewhere. */
uint64_t locations_string(struct locations *l, struct text t) {
    struct buffer scratch = {0};
    uint32_t id = strings_add(l->strings, text_lossy(t, &scratch));
    buffer_release(&scratch);
    return id - 1;
}

/* ---- locations ---- */

static bool goes_on(const struct place *outer, const struct place *inner) {
    return inner->level > outer->level && outer->object == inner->object &&
           outer->address == inner->address && !((outer->kinds ^ inner->kinds) & KIND_ROOT);
}

static uint32_t group_find(struct locations *l, uint32_t outer, uint32_t place) {
    uint64_t hash = hash_mix(outer, place);
    uint32_t id;
    for (struct probe probe = index_probe(&l->group_index, hash);
         (id = index_next(&l->group_index, &probe));)
        if (l->groups.items[id].outer == outer && l->groups.items[id].place == place)
            return id;
    id = (uint32_t)l->groups.count;
    vector_push(&l->groups, ((struct group){outer, place, 0}));
    index_add(&l->group_index, hash, id);
    return id;
}

static void find_groups(struct locations *l) {
    const struct outline *o = l->outline;
    l->node_groups = memory_zero(o->stacks->nodes.count, sizeof *l->node_groups);
    vector_push(&l->groups, ((struct group){0}));
    for (size_t i = 1; i < o->stacks->nodes.count; i++) {
        const struct placed_node *node = &o->stacks->nodes.items[i],
                                 *parent = &o->stacks->nodes.items[node->parent];
        bool inlined = node->parent && goes_on(&o->stacks->places.items[parent->place],
                                               &o->stacks->places.items[node->place]);
        l->node_groups[i] = group_find(l, inlined ? l->node_groups[node->parent] : 0, node->place);
    }
}

static uint64_t location_of(struct locations *l, uint32_t group) {
    struct group *g = &l->groups.items[group];
    if (!g->location) {
        vector_push(&l->used, group);
        g->location = (uint32_t)l->used.count;
    }
    return g->location;
}

void locations_add_stack(struct locations *l, uint32_t node, struct buffer *numbers) {
    const struct placed_node *nodes = l->outline->stacks->nodes.items;
    while (node) {
        uint32_t group = l->node_groups[node];
        buffer_add_varint(numbers, location_of(l, group));
        for (; group; group = l->groups.items[group].outer)
            node = nodes[node].parent;
    }
}

/* ---- mappings and functions ---- */

/* pprof names a profile after its first mapping: the program, which is the file that is not a library and has most
   locations in it. */
static void choose_first_mapping(struct locations *l) {
    const struct outline *o = l->outline;
    size_t objects = o->tree->objects ? objects_count(o->tree->objects) + 1 : 1;
    uint32_t *counts = memory_zero(objects, sizeof *counts), best = 0;
    l->mappings = memory_zero(objects, sizeof *l->mappings);
    for (size_t i = 1; i < o->stacks->places.count; i++) {
        const struct place *place = &o->stacks->places.items[i];
        if (!place->object || place->kinds & (KIND_KERNEL | KIND_JIT | KIND_LIBRARY) ||
            objects_get(o->tree->objects, place->object)->kind == OBJECT_NONE)
            continue;
        counts[place->object]++;
        if (!best || counts[place->object] > counts[best])
            best = place->object;
    }
    if (best) {
        vector_push(&l->mapped, best);
        l->mappings[best] = 1;
    }
    free(counts);
}

uint64_t locations_mapping(struct locations *l, uint32_t object) {
    if (object && !l->mappings[object]) {
        vector_push(&l->mapped, object);
        l->mappings[object] = (uint32_t)l->mapped.count;
    }
    return object ? l->mappings[object] : 0;
}

uint64_t locations_function(struct locations *l, uint32_t place) {
    uint32_t *known = &l->functions[l->outline->stacks->places.items[place].function];
    if (!*known) {
        vector_push(&l->named, place);
        *known = (uint32_t)l->named.count;
    }
    return *known;
}

struct range *locations_ranges(const struct locations *l) {
    enum { PAGE = 4096 };
    const struct outline *o = l->outline;
    struct range *ranges = memory_zero(l->mapped.count + 1, sizeof *ranges);
    for (size_t i = 1; i < o->stacks->places.count; i++) {
        const struct place *place = &o->stacks->places.items[i];
        if (!place->object || !l->mappings[place->object])
            continue;
        struct range *range = &ranges[l->mappings[place->object] - 1];
        uint64_t start = place->address & ~(uint64_t)(PAGE - 1);
        uint64_t limit = saturating_add(start, PAGE);
        range->start = range->limit && range->start < start ? range->start : start;
        range->limit = range->limit > limit ? range->limit : limit;
    }
    return ranges;
}

void buffer_add_build_id(struct buffer *hex, const struct build_id *id) {
    for (size_t i = 0; i < id->size; i++)
        buffer_printf(hex, "%02x", id->bytes[i]);
}

/* ---- what values are ---- */

struct text measure_type(const struct measure *measure) {
    return value_name(measure->name, measure->unit);
}

const char *measure_count_unit(const struct outline *o, uint32_t measure) {
    return value_unit(o->measures.items[measure].unit).data;
}

/* ---- all of it ---- */

static uint64_t size_of(const struct outline *o, size_t values) {
    uint64_t size = 0;
    for (size_t i = 0; i < o->entries.count; i++)
        size += 3 * (uint64_t)o->stacks->nodes.items[o->entries.items[i].node].depth + 40 + values;
    return size;
}

/* Values are signed in both formats. */
static bool values_fit(const struct outline *o, struct error *error) {
    uint64_t samples = 0, weight = 0;
    bool fine = true;
    for (size_t i = 0; i < o->entries.count && fine; i++)
        fine = checked_add(samples, o->entries.items[i].samples, &samples) &&
               checked_add(weight, o->entries.items[i].weight, &weight);
    if (fine && samples <= INT64_MAX && weight <= INT64_MAX)
        return true;
    return error_set(error, ERROR_INPUT,
                     "the weights add up to more than 2^63, which pprof and OpenTelemetry "
                     "cannot count; speedscope's format can hold them");
}

bool locations_fit(const struct outline *o, size_t values, struct error *error) {
    return values_fit(o, error) && export_fits(o, size_of(o, values), error);
}

void locations_init(struct locations *l, const struct outline *o) {
    *l = (struct locations){.outline = o, .strings = strings_new()};
    strings_add(l->strings, TEXT(""));
    l->functions = memory_zero(o->stacks->function_count + 1, sizeof *l->functions);
    find_groups(l);
    choose_first_mapping(l);
}

void locations_release(struct locations *l) {
    strings_free(l->strings);
    vector_release(&l->groups);
    index_release(&l->group_index);
    vector_release(&l->used);
    vector_release(&l->mapped);
    vector_release(&l->named);
    free(l->node_groups);
    free(l->mappings);
    free(l->functions);
}
