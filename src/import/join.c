/*
 * Join trees that share nothing: the text readers' workers have strings of their own, and so have the files of one
 * command. Everything is mapped by content. Costs one probe for each string, location, node and cell of `from`.
 */
#include "import/reader.h"

#include <stdlib.h>

struct join {
    struct tree *tree;
    const struct tree *from;
    uint32_t *strings, *objects, *events, *threads, *series, *functions, *locations, *nodes;
    struct index thread_index;
};

static uint32_t join_string(const struct join *j, uint32_t id) {
    if (id && !j->strings[id])
        j->strings[id] = strings_add(j->tree->strings, strings_get(j->from->strings, id));
    return id ? j->strings[id] : 0;
}

static uint32_t join_object(const struct join *j, uint32_t id) {
    if (!id)
        return 0;
    if (!j->tree->objects)
        j->tree->objects = objects_new(&(struct objects_options){0});
    if (!j->objects[id])
        j->objects[id] = objects_add(j->tree->objects, objects_get(j->from->objects, id));
    return j->objects[id];
}

/* Map events by an array over their names' strings: a text may have as many events as lines. One event may exist both
   as measured and as time on the CPU. */
static void join_events(struct join *j) {
    enum { TIMES = TIME_ASIDE + 1 };
    for (size_t i = 1; i < j->from->events.count; i++)
        join_string(j, j->from->events.items[i].name);
    uint32_t *known = memory_zero(strings_count(j->tree->strings) + 1, TIMES * sizeof *known);
    for (size_t i = 1; i < j->tree->events.count; i++)
        known[(size_t)j->tree->events.items[i].name * TIMES + j->tree->events.items[i].time] =
            (uint32_t)i;
    for (size_t i = 1; i < j->from->events.count; i++) {
        struct event event = j->from->events.items[i];
        uint32_t *id = &known[(size_t)join_string(j, event.name) * TIMES + event.time];
        if (!*id) {
            *id = tree_add_event(j->tree, strings_get(j->from->strings, event.name),
                                 strings_get(j->from->strings, event.unit), event.kind);
            j->tree->events.items[*id].chains = event.chains;
            j->tree->events.items[*id].time = event.time;
        }
        j->events[i] = *id;
    }
    free(known);
}

static uint64_t thread_hash(const struct thread *t) {
    return hash_mix(hash_mix((uint32_t)t->pid, (uint32_t)t->tid), hash_mix(t->start, t->end));
}

static uint32_t join_thread(struct join *j, const struct thread *t) {
    uint32_t id;
    uint64_t hash = thread_hash(t);
    for (struct probe p = index_probe(&j->thread_index, hash);
         (id = index_next(&j->thread_index, &p));) {
        const struct thread *other = &j->tree->threads.items[id];
        if (other->pid == t->pid && other->tid == t->tid && other->start == t->start &&
            other->end == t->end)
            return id;
    }
    id = tree_add_thread(j->tree, t);
    index_add(&j->thread_index, hash, id);
    return id;
}

static void join_threads(struct join *j) {
    for (size_t i = 1; i < j->tree->threads.count; i++)
        index_add(&j->thread_index, thread_hash(&j->tree->threads.items[i]), (uint32_t)i);
    for (size_t i = 1; i < j->from->threads.count; i++)
        j->threads[i] = join_thread(j, &j->from->threads.items[i]);
}

static uint32_t join_labels(struct join *j, uint32_t labels) {
    VECTOR(struct label_pair) pairs = {0};
    size_t count;
    const struct label_pair *old = tree_labels(j->from, labels, &count);
    for (size_t i = 0; i < count; i++)
        vector_push(&pairs, ((struct label_pair){join_string(j, old[i].key),
                                                 join_string(j, old[i].value)}));
    uint32_t id = tree_add_labels(j->tree, pairs.items, pairs.count);
    vector_release(&pairs);
    return id;
}

static void join_series(struct join *j) {
    for (size_t i = 1; i < j->from->series.count; i++) {
        struct series series = j->from->series.items[i];
        series.event = j->events[series.event];
        series.thread = j->threads[series.thread];
        series.comm = join_string(j, series.comm);
        series.labels = join_labels(j, series.labels);
        j->series[i] = tree_add_series(j->tree, &series);
    }
}

static bool has_same_frames(struct join *j, const struct location *there,
                            const struct location *old) {
    bool same = there->frame_count == old->frame_count;
    for (uint32_t i = 0; i < old->frame_count && same; i++) {
        const struct frame *a = &j->tree->frames.items[there->first_frame + i];
        const struct frame *b = &j->from->frames.items[old->first_frame + i];
        same = a->name == join_string(j, b->name) && a->file == join_string(j, b->file) &&
               a->line == b->line;
    }
    return same;
}

/*
 * Return the location that equals `location` and has the frames of `old`. Two profiles may have different code at the
 * same address of an object, such as recompiled JIT code or a rebuilt program without a build id: it gets the next
 * free number.
 */
static uint32_t join_location(struct join *j, struct location *location,
                              const struct location *old) {
    for (;; location->line++) {
        uint32_t id = tree_add_location(j->tree, location);
        const struct location *there = &j->tree->locations.items[id];
        if (location->function || !there->frame_count || !old->frame_count ||
            has_same_frames(j, there, old))
            return id;
    }
}

/* Copy frames unless an equal location already has them. */
static void join_frames(struct join *j, uint32_t id, const struct location *location) {
    if (j->tree->locations.items[id].frame_count || !location->frame_count)
        return;
    j->tree->locations.items[id].first_frame = (uint32_t)j->tree->frames.count;
    j->tree->locations.items[id].frame_count = location->frame_count;
    for (uint32_t i = 0; i < location->frame_count; i++) {
        struct frame frame = j->from->frames.items[location->first_frame + i];
        frame.name = join_string(j, frame.name);
        frame.file = join_string(j, frame.file);
        frame.language = join_string(j, frame.language);
        vector_push(&j->tree->frames, frame);
    }
}

static uint32_t join_function(struct join *j, uint32_t id) {
    struct function function = j->from->functions.items[id];
    if (!id)
        return 0;
    if (!j->functions[id]) {
        function.name = join_string(j, function.name);
        function.file = join_string(j, function.file);
        function.module = join_string(j, function.module);
        function.language = join_string(j, function.language);
        j->functions[id] = tree_add_function(j->tree, &function);
    }
    return j->functions[id];
}

static void join_locations(struct join *j) {
    for (size_t i = 1; i < j->from->locations.count; i++) {
        const struct location *old = &j->from->locations.items[i];
        struct location location = *old;
        location.object = join_object(j, old->object);
        location.function = join_function(j, old->function);
        location.first_frame = location.frame_count = 0;
        j->locations[i] = join_location(j, &location, old);
        join_frames(j, j->locations[i], old);
    }
}

/* Parents precede their children. */
static void join_nodes(struct join *j) {
    for (size_t i = 1; i < j->from->nodes.count; i++) {
        const struct node *node = &j->from->nodes.items[i];
        j->nodes[i] = tree_add_node(j->tree, j->nodes[node->parent], j->locations[node->location]);
    }
    for (size_t i = 1; i < j->from->cells.count; i++) {
        const struct cell *cell = &j->from->cells.items[i];
        tree_count(j->tree, j->nodes[cell->node], j->series[cell->series], cell->samples,
                   cell->weight);
    }
    for (size_t i = 0; i < j->from->samples.count; i++) {
        struct sample sample = j->from->samples.items[i];
        sample.node = j->nodes[sample.node];
        sample.series = j->series[sample.series];
        tree_keep_sample(j->tree, &sample);
    }
}

/* Skip those that already exist. */
static void join_attached(struct join *j) {
    for (size_t i = 0; i < j->from->sources.count; i++) {
        const struct attached_source *source = &j->from->sources.items[i];
        uint32_t file = join_string(j, source->file);
        bool known = false;
        for (size_t k = 0; k < j->tree->sources.count && !known; k++)
            known = j->tree->sources.items[k].file == file;
        if (!known)
            vector_push(
                &j->tree->sources,
                ((struct attached_source){file, arena_copy(&j->tree->attached, source->text)}));
    }
    for (size_t i = 0; i < j->from->codes.count; i++) {
        struct attached_code code = j->from->codes.items[i];
        code.object = join_object(j, code.object);
        code.bytes = arena_copy(&j->tree->attached, code.bytes);
        vector_push(&j->tree->codes, code);
    }
}

/* From the earliest start to the latest end, among trees that have them. */
static void join_when(struct tree *tree, const struct tree *from) {
    uint64_t end = saturating_add(tree->began, tree->lasted);
    uint64_t other = saturating_add(from->began, from->lasted);
    if (!from->began)
        return;
    if (!tree->began) {
        tree->began = from->began;
        tree->lasted = from->lasted;
        return;
    }
    tree->began = from->began < tree->began ? from->began : tree->began;
    tree->lasted = (other > end ? other : end) - tree->began;
}

void tree_join(struct tree *tree, const struct tree *from) {
    struct join j = {.tree = tree, .from = from};
    j.strings = memory_zero(strings_count(from->strings) + 1, sizeof(uint32_t));
    j.objects = memory_zero(from->objects ? objects_count(from->objects) + 1 : 1, sizeof(uint32_t));
    j.events = memory_zero(from->events.count, sizeof(uint32_t));
    j.threads = memory_zero(from->threads.count, sizeof(uint32_t));
    j.series = memory_zero(from->series.count, sizeof(uint32_t));
    j.functions = memory_zero(from->functions.count, sizeof(uint32_t));
    j.locations = memory_zero(from->locations.count, sizeof(uint32_t));
    j.nodes = memory_zero(from->nodes.count, sizeof(uint32_t));
    join_events(&j);
    join_threads(&j);
    join_series(&j);
    join_locations(&j);
    join_nodes(&j);
    join_attached(&j);
    join_when(tree, from);
    tree->overflow |= from->overflow;
    tree->is_heap |= from->is_heap;
    tree->is_estimated |= from->is_estimated;
    tree->deviation = from->deviation > tree->deviation ? from->deviation : tree->deviation;
    tree->shown = from->shown;
    tree->meant = from->meant;
    notes_merge(&tree->notes, &from->notes);
    free(j.strings);
    free(j.objects);
    free(j.events);
    free(j.threads);
    free(j.series);
    free(j.functions);
    free(j.locations);
    free(j.nodes);
    index_release(&j.thread_index);
}
