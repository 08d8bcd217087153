/*
 * Build trees, and join the parts that threads built.
 *
 * Everything is an array of small structs, with an index to find an entry by its content.
 *
 * Finding a node's child limits the speed of reading new chains. Most nodes have few children, and the nodes of a path were made one after the
 * other, so a list of siblings is usually in the same cache line, while a probe of an index of all nodes misses twice. Only nodes with more than
 * CHILDREN_LISTED children have them in the index.
 */
#include "tree/tree.h"

#include <stdlib.h>

#include "tree/samples.h"

static struct tree *tree_new_empty(void) {
    struct tree *tree = memory_zero(1, sizeof *tree);
    tree->samples_descriptor = -1;
    vector_push(&tree->events, ((struct event){0}));
    vector_push(&tree->threads, ((struct thread){0}));
    vector_push(&tree->series, ((struct series){0}));
    vector_push(&tree->functions, ((struct function){0}));
    vector_push(&tree->locations, ((struct location){0}));
    vector_push(&tree->nodes, ((struct node){0}));
    vector_push(&tree->links, ((struct node_link){0}));
    vector_push(&tree->cells, ((struct cell){0}));
    return tree;
}

struct tree *tree_new(void) {
    struct tree *tree = tree_new_empty();
    tree->strings = strings_new();
    return tree;
}

struct tree *tree_new_part(const struct tree *whole) {
    struct tree *tree = tree_new_empty();
    tree->whole = whole;
    tree->strings = whole->strings;
    tree->objects = whole->objects;
    tree->keep_samples = whole->keep_samples;
    tree->budget = whole->budget;
    return tree;
}

void tree_free(struct tree *tree) {
    if (!tree)
        return;
    if (!tree->whole)
        strings_free(tree->strings);
    vector_release(&tree->events);
    vector_release(&tree->threads);
    vector_release(&tree->series);
    vector_release(&tree->label_pairs);
    vector_release(&tree->label_sets);
    vector_release(&tree->functions);
    vector_release(&tree->functions_of_names);
    vector_release(&tree->locations);
    vector_release(&tree->nodes);
    vector_release(&tree->links);
    vector_release(&tree->ends);
    vector_release(&tree->cells);
    vector_release(&tree->calls);
    vector_release(&tree->frames);
    vector_release(&tree->sources);
    vector_release(&tree->codes);
    arena_release(&tree->attached);
    samples_release(tree);
    notes_release(&tree->notes);
    index_release(&tree->thread_index);
    index_release(&tree->series_index);
    index_release(&tree->label_index);
    index_release(&tree->function_index);
    index_release(&tree->location_index);
    index_release(&tree->node_index);
    index_release(&tree->cell_index);
    free(tree);
}

/* About what it takes, with its indexes; not the samples, which go to a file when there are many. */
static uint64_t tree_memory(const struct tree *tree) {
    enum { IN_INDEX = 2 * sizeof(uint64_t) };
    return tree->events.count * sizeof *tree->events.items +
           tree->threads.count * (sizeof *tree->threads.items + IN_INDEX) +
           tree->series.count * (sizeof *tree->series.items + IN_INDEX) +
           tree->locations.count * (sizeof *tree->locations.items + IN_INDEX) +
           tree->nodes.count * (sizeof *tree->nodes.items + sizeof *tree->links.items + IN_INDEX) +
           tree->cells.count * (sizeof *tree->cells.items + IN_INDEX) +
           tree->calls.count * sizeof *tree->calls.items +
           (tree->whole ? 0 : strings_memory(tree->strings));
}

void tree_set_budget(struct tree *tree, struct budget *budget) {
    tree_settle(tree);
    tree->budget = budget;
    tree->held = tree_memory(tree);
}

void tree_settle(struct tree *tree) {
    uint64_t steps = tree->steps;
    tree->steps = 0;
    if (!tree->budget)
        return;
    uint64_t memory = tree_memory(tree);
    budget_take_steps(tree->budget, steps, NO_OFFSET);
    if (memory > tree->held)
        budget_take_memory(tree->budget, memory - tree->held, NO_OFFSET);
    tree->held = memory > tree->held ? memory : tree->held;
}

uint32_t tree_add_event(struct tree *tree, struct text name, struct text unit,
                        enum event_kind kind) {
    assert(!tree->whole);
    struct event event = {.name = strings_add(tree->strings, name),
                          .unit = strings_add(tree->strings, unit),
                          .kind = kind};
    vector_push(&tree->events, event);
    return (uint32_t)tree->events.count - 1;
}

uint32_t tree_add_thread(struct tree *tree, const struct thread *thread) {
    assert(!tree->whole);
    vector_push(&tree->threads, *thread);
    return (uint32_t)tree->threads.count - 1;
}

/* A part's own threads; the whole's ids never have this bit. */
#define THREAD_OF_PART 0x80000000u

uint32_t tree_find_thread(struct tree *tree, int32_t pid, int32_t tid) {
    uint64_t hash = hash_mix((uint32_t)pid, (uint32_t)tid);
    uint32_t bit = tree->whole ? THREAD_OF_PART : 0;
    uint32_t id;
    for (struct probe p = index_probe(&tree->thread_index, hash);
         (id = index_next(&tree->thread_index, &p));)
        if (tree->threads.items[id].pid == pid && tree->threads.items[id].tid == tid)
            return id | bit;
    id = (uint32_t)tree->threads.count;
    vector_push(&tree->threads,
                ((struct thread){.pid = pid, .tid = tid, .end = UINT64_MAX, .unnamed = true}));
    index_add(&tree->thread_index, hash, id);
    return id | bit;
}

const struct thread *tree_thread(const struct tree *tree, uint32_t thread) {
    bool own = !tree->whole || thread & THREAD_OF_PART;
    const struct tree *holder = own ? tree : tree->whole;
    return thread ? &holder->threads.items[thread & ~THREAD_OF_PART] : NULL;
}

void tree_add_comm(const struct tree *tree, const struct series *series, struct buffer *buffer) {
    const struct thread *thread = tree_thread(tree, series->thread);
    if (series->comm)
        buffer_add(buffer, strings_get(tree->strings, series->comm));
    else
        buffer_printf(buffer, ":%d", thread ? thread->tid : 0);
}

uint32_t tree_add_series(struct tree *tree, const struct series *s) {
    uint64_t hash = hash_mix((uint64_t)s->event << 32 | s->thread,
                             (uint64_t)s->comm << 32 | (uint32_t)s->state << 8 | s->ending);
    hash = hash_mix(hash, s->labels);
    uint32_t id;
    for (struct probe p = index_probe(&tree->series_index, hash);
         (id = index_next(&tree->series_index, &p));)
        if (series_equal(&tree->series.items[id], s))
            return id;
    id = (uint32_t)tree->series.count;
    vector_push(&tree->series, *s);
    index_add(&tree->series_index, hash, id);
    return id;
}

uint32_t tree_add_function(struct tree *tree, const struct function *f) {
    assert(!tree->whole);
    uint64_t hash =
        hash_mix((uint64_t)f->name << 32 | f->file, (uint64_t)f->line << 32 | f->module);
    hash = hash_mix(hash, f->language);
    uint32_t id;
    for (struct probe p = index_probe(&tree->function_index, hash);
         (id = index_next(&tree->function_index, &p));)
        if (memcmp(&tree->functions.items[id], f, sizeof *f) == 0)
            return id;
    id = (uint32_t)tree->functions.count;
    vector_push(&tree->functions, *f);
    index_add(&tree->function_index, hash, id);
    return id;
}

uint32_t tree_name_function(struct tree *tree, struct text name) {
    uint32_t string = strings_add(tree->strings, name);
    while (tree->functions_of_names.count <= string)
        vector_push(&tree->functions_of_names, 0);
    uint32_t *id = &tree->functions_of_names.items[string];
    if (!*id)
        *id = tree_add_function(tree, &(struct function){.name = string});
    return *id;
}

static bool location_equal(const struct location *a, const struct location *b) {
    return a->address == b->address && a->object == b->object && a->raw == b->raw &&
           a->function == b->function && a->line == b->line && a->mode == b->mode &&
           a->call == b->call && a->kinds == b->kinds && a->unwound == b->unwound;
}

uint32_t tree_add_location(struct tree *tree, const struct location *l) {
    uint32_t small =
        (uint32_t)l->mode << 24 | (uint32_t)l->call << 16 | (uint32_t)l->kinds << 8 | l->unwound;
    uint64_t hash = hash_mix(l->address, (uint64_t)l->object << 32 | l->function);
    hash = hash_mix(hash + l->raw, (uint64_t)l->line << 32 | small);
    uint32_t id;
    for (struct probe p = index_probe(&tree->location_index, hash);
         (id = index_next(&tree->location_index, &p));)
        if (location_equal(&tree->locations.items[id], l))
            return id;
    id = (uint32_t)tree->locations.count;
    vector_push(&tree->locations, *l);
    index_add(&tree->location_index, hash, id);
    return id;
}

enum { CHILDREN_LISTED = 8 };

static uint32_t node_in_list(const struct tree *tree, uint32_t parent, uint32_t location) {
    uint32_t id = tree->links.items[parent].first_child;
    while (id && tree->nodes.items[id].location != location)
        id = tree->links.items[id].next;
    return id;
}

static uint32_t node_in_index(const struct tree *tree, uint32_t parent, uint32_t location) {
    uint32_t id;
    for (struct probe p = index_probe(&tree->node_index, hash_mix(parent, location));
         (id = index_next(&tree->node_index, &p));)
        if (tree->nodes.items[id].parent == parent && tree->nodes.items[id].location == location)
            break;
    return id;
}

/* Index only the first of equal ones: a million of them must not form one probe sequence in the index. */
static void node_index_add(struct tree *tree, uint32_t id, bool may_be_twin) {
    const struct node *node = &tree->nodes.items[id];
    if (may_be_twin && node_in_index(tree, node->parent, node->location))
        return;
    index_add(&tree->node_index, hash_mix(node->parent, node->location), id);
}

/* Enters the next node that has no link yet among its parent's children. One that was appended may be another's twin. */
static void node_link(struct tree *tree, bool was_appended) {
    uint32_t id = (uint32_t)tree->links.count, parent = tree->nodes.items[id].parent;
    vector_push(&tree->links, ((struct node_link){.next = tree->links.items[parent].first_child}));
    struct node_link *link = &tree->links.items[parent];
    link->first_child = id;
    link->children++;
    if (link->children > CHILDREN_LISTED + 1)
        node_index_add(tree, id, was_appended);
    else if (link->children == CHILDREN_LISTED + 1)
        for (; id; id = tree->links.items[id].next)
            node_index_add(tree, id, true);
}

uint32_t tree_add_node(struct tree *tree, uint32_t parent, uint32_t location) {
    tree_take_steps(tree, 1);
    while (tree->links.count < tree->nodes.count)
        node_link(tree, true);
    uint32_t id = tree->links.items[parent].children <= CHILDREN_LISTED
                      ? node_in_list(tree, parent, location)
                      : node_in_index(tree, parent, location);
    if (id)
        return id;
    id = tree_append_node(tree, parent, location);
    assert(id != 0);
    node_link(tree, false);
    return id;
}

uint32_t tree_count(struct tree *tree, uint32_t node, uint32_t series, uint64_t samples,
                    uint64_t weight) {
    tree_take_steps(tree, 1);
    uint64_t hash = hash_mix(node, (uint64_t)series << 32 | 1);
    uint32_t id;
    for (struct probe p = index_probe(&tree->cell_index, hash);
         (id = index_next(&tree->cell_index, &p));)
        if (tree->cells.items[id].node == node && tree->cells.items[id].series == series)
            break;
    if (!id) {
        id = (uint32_t)tree->cells.count;
        vector_push(&tree->cells, ((struct cell){.node = node, .series = series}));
        index_add(&tree->cell_index, hash, id);
    }
    tree_count_again(tree, id, samples, weight);
    return id;
}

void tree_merge_series(struct tree *tree, const struct tree *part, uint32_t *series) {
    for (size_t i = 1; i < part->series.count; i++) {
        struct series copy = part->series.items[i];
        if (copy.thread & THREAD_OF_PART) {
            const struct thread *thread = &part->threads.items[copy.thread & ~THREAD_OF_PART];
            copy.thread = tree_find_thread(tree, thread->pid, thread->tid);
        }
        series[i] = tree_add_series(tree, &copy);
    }
}

uint32_t tree_append_nodes(struct tree *tree, const struct tree *part) {
    uint32_t *locations = memory_zero(part->locations.count, sizeof *locations);
    uint32_t before = (uint32_t)tree->nodes.count - 1;
    if (tree->ends.count == 0)
        vector_push(&tree->ends, (uint32_t)tree->nodes.count);
    for (size_t i = 1; i < part->locations.count; i++)
        locations[i] = tree_add_location(tree, &part->locations.items[i]);
    vector_reserve(&tree->nodes, tree->nodes.count + part->nodes.count);
    for (size_t i = 1; i < part->nodes.count; i++) {
        const struct node *node = &part->nodes.items[i];
        tree_append_node(tree, node->parent ? before + node->parent : 0, locations[node->location]);
    }
    vector_push(&tree->ends, (uint32_t)tree->nodes.count);
    free(locations);
    return before;
}

/* Many nodes may share a location with many inlined frames, so that a small file means more frames than fit into memory. Costs a look at each location,
   and at the nodes only if one is that deep: compilers stay far below. */
static bool has_too_many_frames(const struct tree *tree) {
    enum { INLINED_MOST = 256, FRAMES_LEAST = 1 << 20 };
    uint32_t deepest = 0;
    for (size_t i = 0; i < tree->locations.count; i++)
        if (tree->locations.items[i].frame_count > deepest)
            deepest = tree->locations.items[i].frame_count;
    if (deepest <= INLINED_MOST)
        return false;
    uint64_t frames = 0;
    for (size_t i = 0; i < tree->nodes.count; i++)
        frames += tree->locations.items[tree->nodes.items[i].location].frame_count;
    return frames > FRAMES_LEAST + (uint64_t)INLINED_MOST * tree->nodes.count;
}

bool tree_check(const struct tree *tree, struct error *error) {
    if (tree->overflow)
        return error_set(error, ERROR_INPUT, "the weights add up to more than 2^64");
    if (has_too_many_frames(tree))
        return error_set(error, ERROR_INPUT,
                         "the stacks have too many inlined frames: more than 256 for each call");
    return true;
}

/* ---- languages ---- */

static const struct text languages[] = {TEXT("python"), TEXT("java"), TEXT("javascript"),
                                        TEXT("ruby"),   TEXT("php"),  TEXT("erlang")};
static_assert(KIND_ERLANG == KIND_PYTHON << (COUNT_OF(languages) - 1),
              "one kind each, in this order");

uint32_t kind_of_language(struct text language) {
    for (size_t i = 0; i < COUNT_OF(languages); i++)
        if (text_equal(language, languages[i]))
            return (uint32_t)KIND_PYTHON << i;
    return 0;
}

struct text language_of_kinds(uint32_t kinds) {
    for (size_t i = 0; i < COUNT_OF(languages); i++)
        if (kinds & (uint32_t)KIND_PYTHON << i)
            return languages[i];
    return TEXT("");
}
