/*
 * The walker: the only place where stacks of locations become stacks of names.
 *
 * A tree node becomes a path of flame nodes once for each set of root labels under which it is counted, root by root and parents first, at one
 * probe of the flame's index for each label. If stacks are merged from the leaf, or follow one another in time, nothing is shared between them,
 * and each costs its depth (struct path).
 */
#include "stacks/flame.h"

#include <stdlib.h>

enum { AHEAD = 16 }; /* how far ahead of its use memory is asked for */

/* Nodes [from, to) of a tree: their stacks lead to no node outside of it. */
struct share {
    const struct tree *tree;
    const struct naming *naming;
    const struct walk_options *options;
    struct flame *flame;
    struct walker *walker; /* keeps the `memo` of each root; NULL: it is not needed */
    const struct naming_entry *locations; /* what they are called in the series at hand */
    uint32_t *memo; /* for each node of its share, its flame node under the root labels at hand … */
    uint64_t *marked; /* … if its bit is set here */
    bool limited;     /* recursion is folded, or depth limited */
    bool all_marked;  /* there is one root, so that all nodes are on the way to its cells */
    uint32_t from, to;
    bool *cut; /* by tree node: its callers are dropped; NULL: no depth is asked for */
    APART;
};

/* The root is in every share, and comes first. */
static uint32_t *share_memo(const struct share *s, uint32_t node) {
    return &s->memo[node ? node - s->from + 1 : 0];
}

static const struct label *share_label(const struct share *s, uint32_t index) {
    return &s->naming->labels.items[index];
}

/* Whether it is of its share. What has no stack is of the first. */
static bool share_has(const struct share *s, const struct cell *cell) {
    return cell->node ? cell->node >= s->from && cell->node < s->to : s->from == 1;
}

/* Whether a stack of FRAMES frames, the last one called LAST, gets one more. */
static inline bool takes_frame(const struct flame_options *shape, const uint32_t *alike,
                               uint32_t frames, uint32_t last, uint32_t name) {
    if (shape->fold_recursion && frames && (alike ? alike[last] == alike[name] : last == name))
        return false;
    return !shape->max_depth || frames < shape->max_depth;
}

/* ---- nodes, parents first ---- */

/* `root` is where the frames begin. */
static bool share_takes(const struct share *s, uint32_t at, uint32_t root, uint32_t name) {
    const struct flame_node *nodes = s->flame->nodes.items;
    uint32_t frames = at == root ? 0 : nodes[at].depth - nodes[root].depth;
    return takes_frame(s->options->shape, s->options->alike, frames, nodes[at].name, name);
}

static uint32_t share_location(struct share *s, uint32_t at, uint32_t root, uint32_t location) {
    const struct naming_entry *entry = &s->locations[location];
    if (entry->cut)
        at = root = 0;
    for (uint32_t i = 0; i < entry->count; i++) {
        const struct label *label = share_label(s, entry->first + i);
        if (!s->limited || share_takes(s, at, root, label->name))
            at = flame_child(s->flame, at, label);
    }
    return at;
}

/* The node and all that leads to it; a node that is marked has all before it marked. */
static void share_want(struct share *s, uint32_t node) {
    while (node && !(s->marked[node / 64] >> node % 64 & 1)) {
        s->marked[node / 64] |= 1ull << node % 64;
        node = s->tree->nodes.items[node].parent;
    }
}

/* The memory that share_enter() will need for a node a little further on is asked for before: first the flame node of its parent, then that
   one's first child and where the others would be in the index. Where the node's parent is not entered by then, in vain. */
static void share_ask_parent(const struct share *s, uint32_t node) {
    __builtin_prefetch(&s->flame->nodes.items[*share_memo(s, s->tree->nodes.items[node].parent)]);
}

static void share_ask_child(const struct share *s, uint32_t node) {
    const struct node *n = &s->tree->nodes.items[node];
    const struct naming_entry *entry = &s->locations[n->location];
    const struct index *index = &s->flame->index;
    uint32_t parent = *share_memo(s, n->parent);
    __builtin_prefetch(&s->flame->nodes.items[s->flame->nodes.items[parent].first_child]);
    if (!entry->count || !index->slots)
        return;
    uint32_t name = share_label(s, entry->first)->name;
    __builtin_prefetch(&index->slots[index_probe(index, hash_mix(parent, name)).slot]);
}

static void share_enter(struct share *s, uint32_t root, uint32_t node) {
    const struct node *n = &s->tree->nodes.items[node];
    if (s->cut) {
        s->cut[node] = s->cut[n->parent] || s->locations[n->location].cut;
        root = s->cut[node] ? 0 : root;
    }
    *share_memo(s, node) = share_location(s, *share_memo(s, n->parent), root, n->location);
}

/* The next node that is marked, from `node` on; the share's end if there is none. */
static size_t share_next(const struct share *s, size_t node) {
    if (s->all_marked || node >= s->to)
        return node < s->to ? node : s->to;
    uint64_t bits = s->marked[node / 64] >> node % 64;
    if (bits)
        return node + (unsigned)__builtin_ctzll(bits);
    size_t word = node / 64 + 1, words = s->to / 64 + 1;
    while (word < words && !s->marked[word])
        word++;
    return word < words ? 64 * word + (unsigned)__builtin_ctzll(s->marked[word]) : s->to;
}

/* Every node that is marked under this root, once. Parents stand before their children. */
static void share_enter_marked(struct share *s, uint32_t root) {
    enum { RING = 2 * AHEAD };
    uint32_t ring[RING];
    size_t count = 0;
    *share_memo(s, 0) = root;
    for (size_t node = share_next(s, s->from); node < s->to;
         node = share_next(s, node + 1), count++) {
        ring[count % RING] = (uint32_t)node;
        share_ask_parent(s, (uint32_t)node);
        if (count >= AHEAD / 2)
            share_ask_child(s, ring[(count - AHEAD / 2) % RING]);
        if (count >= AHEAD)
            share_enter(s, root, ring[(count - AHEAD) % RING]);
    }
    for (size_t i = count < AHEAD ? 0 : count - AHEAD; i < count; i++)
        share_enter(s, root, ring[i % RING]);
}

/* ---- weights ---- */

static void flame_weigh(struct flame *flame, uint32_t at, const struct cell *cell,
                        const struct flame_options *shape, const struct tree *tree, bool before) {
    struct flame_node *node = &flame->nodes.items[at];
    uint64_t weight = shape->by_samples ? cell->samples : cell->weight;
    uint64_t *sum = before ? &node->self_before : &node->self;
    flame->is_diff |= before;
    node->counted = 1;
    if (__builtin_add_overflow(*sum, weight, sum))
        *sum = UINT64_MAX; /* flame_total() then finds that it does not add up */
    if (shape->waits && tree->series.items[cell->series].state != STATE_ON)
        node->self_before = saturating_add(node->self_before, weight);
    if (shape->samples)
        node->self_before = saturating_add(node->self_before, cell->samples);
}

static void share_weigh(struct share *s, uint32_t root, const uint32_t *order, size_t count) {
    const struct flame_options *shape = s->options->shape;
    const struct cell *cells = s->tree->cells.items;
    for (size_t i = 0; i < count; i++) {
        const struct cell *cell = &cells[order[i]];
        if (i + AHEAD < count)
            __builtin_prefetch(&s->flame->nodes.items[*share_memo(s, cells[order[i + AHEAD]].node)],
                               1);
        uint32_t at = *share_memo(s, cell->node);
        if (at != root || shape->keep_empty)
            flame_weigh(s->flame, at, cell, shape, s->tree,
                        s->naming->series.items[cell->series].before);
    }
}

/* ---- roots ---- */

static uint32_t share_root(struct share *s, uint32_t series) {
    const struct naming_entry *entry = &s->naming->series.items[series];
    uint32_t at = 0;
    for (uint32_t i = 0; i < entry->count && !s->options->no_roots; i++)
        at = flame_child(s->flame, at, share_label(s, entry->first + i));
    return at;
}

/* Roots are told apart by their node and by what locations are called below them. */
static uint32_t root_key(const struct share *s, const uint32_t *roots, uint32_t series) {
    return 2 * roots[series] + s->naming->series.items[series].alternate;
}

static void walker_keep(struct share *s, uint32_t root, const uint32_t *order, size_t count) {
    struct walker *w = s->walker;
    const struct cell *cells = s->tree->cells.items;
    w->roots = memory_resize(w->roots, w->root_count + 1, sizeof *w->roots);
    w->roots[w->root_count++] = (struct walker_root){root, s->memo};
    for (size_t i = 0; i < count; i++)
        w->series_roots[cells[order[i]].series] = (uint32_t)w->root_count;
    for (size_t i = 0; i < s->to; i++)
        if (s->memo[i] == root)
            s->memo[i] = 0;
    s->memo = NULL;
}

/* Under one root: first every node that a cell leads to, then the weights. */
static void share_root_cells(struct share *s, uint32_t root, const uint32_t *order, size_t count,
                             bool is_only) {
    const struct cell *cells = s->tree->cells.items;
    if (!count)
        return;
    if (!s->memo)
        s->memo = memory_table(s->to - s->from + 1, sizeof *s->memo);
    s->all_marked = is_only && !s->walker;
    memset(s->marked, 0, (s->tree->nodes.count / 64 + 1) * sizeof *s->marked);
    for (size_t i = 0; i < count && !s->all_marked; i++)
        share_want(s, cells[order[i]].node);
    s->locations =
        naming_entries(s->naming, s->naming->series.items[cells[order[0]].series].alternate);
    share_enter_marked(s, root);
    if (s->walker)
        walker_keep(s, root, order, count);
    else
        share_weigh(s, root, order, count);
}

/* Cells root by root; behind them those that are left out, with cell 0, which is none. */
static void share_cells(struct share *s) {
    const struct tree *tree = s->tree;
    uint32_t *roots = memory_zero(tree->series.count, sizeof *roots);
    for (size_t i = 1; i < tree->series.count; i++)
        if (!s->naming->series.items[i].skip)
            roots[i] = share_root(s, (uint32_t)i);
    uint32_t key_count = 2 * (uint32_t)s->flame->nodes.count;
    uint32_t *keys = memory_resize(NULL, tree->cells.count, sizeof *keys);
    size_t all = 0;
    for (size_t i = 0; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        bool has = i && share_has(s, cell);
        all += has;
        keys[i] = has && !s->naming->series.items[cell->series].skip
                      ? root_key(s, roots, cell->series)
                      : key_count;
    }
    size_t *ends = memory_zero(key_count + 1, sizeof *ends);
    uint32_t *order = counting_sort(keys, tree->cells.count, key_count + 1, ends);
    for (size_t i = 0, start = 0; i < key_count; start = ends[i++])
        share_root_cells(s, (uint32_t)i / 2, order + start, ends[i] - start,
                         ends[i] - start == all);
    free(order);
    free(ends);
    free(keys);
    free(roots);
}

/* ---- shares ---- */

/* Memory that was freed before belongs to the main thread: it is asked for there, and used again. */
static void share_begin(struct share *s) {
    enum { NODES_RESERVED = 1 << 20 };
    size_t all = s->tree->nodes.count, count = s->from == 1 ? all : s->to - s->from + 1;
    s->flame = flame_of_naming(s->naming);
    /* Room for as many nodes as there may be, and the others are put behind the first's: what is not touched takes no memory. */
    vector_reserve(&s->flame->nodes, count < NODES_RESERVED ? count : NODES_RESERVED);
    s->memo = memory_table(s->to - s->from + 1, sizeof *s->memo);
    s->marked = memory_zero(all / 64 + 1, sizeof *s->marked);
    s->limited = s->options->shape->fold_recursion || s->options->shape->max_depth;
    s->cut = s->options->shape->max_depth ? memory_zero(all, sizeof *s->cut) : NULL;
}

static void share_run(void *context, unsigned thread, size_t item) {
    share_cells((struct share *)context + item);
}

static void share_end(struct share *s) {
    free(s->memo);
    free(s->marked);
    free(s->cut);
}

/* Where its nodes' parts end, as long as they are all there is: their nodes have no parents in each other. */
static size_t share_count(const struct tree *tree) {
    size_t count = tree->ends.count;
    bool whole = count && tree->ends.items[count - 1] == tree->nodes.count;
    return whole ? count : 1;
}

static struct flame *walk_in_shares(const struct tree *tree, const struct naming *naming,
                                    const struct walk_options *options) {
    size_t count = share_count(tree);
    struct share *shares = memory_zero(count, sizeof *shares);
    for (size_t i = 0; i < count; i++) {
        shares[i] = (struct share){
            .tree = tree,
            .naming = naming,
            .options = options,
            .from = i ? tree->ends.items[i - 1] : 1,
            .to = count > 1 ? tree->ends.items[i] : (uint32_t)tree->nodes.count,
        };
        share_begin(&shares[i]);
    }
    parallel_run((unsigned)count, count, share_run, shares);
    for (size_t i = 0; i < count; i++)
        share_end(&shares[i]);
    struct flame *flame = shares[0].flame;
    for (size_t i = 1; i < count; i++) {
        flame_join(flame, shares[i].flame, i + 1 == count);
        flame_free(shares[i].flame);
    }
    free(shares);
    return flame;
}

/* Nodes where stacks without frames end are not distinguished from nodes where none ends: both are 0. */
static void walker_move(struct walker *w, const struct tree *tree, const uint32_t *moved) {
    for (size_t i = 0; i < w->root_count; i++) {
        struct walker_root *root = &w->roots[i];
        uint32_t nothing = moved[root->node];
        root->node = nothing == STACK_DROPPED ? 0 : nothing;
        for (size_t k = 0; k < tree->nodes.count; k++) {
            uint32_t to = root->nodes[k] ? moved[root->nodes[k]] : nothing;
            root->nodes[k] = to == root->node ? 0 : to;
        }
    }
}

static bool walker_choose(struct walker *w, const struct tree *tree,
                          const struct walk_options *options, struct error *error) {
    uint8_t *ends = memory_zero(w->flame->nodes.count, sizeof *ends);
    uint32_t *moved = memory_zero(w->flame->nodes.count, sizeof *moved);
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        uint32_t root = w->series_roots[cell->series];
        uint32_t at = root ? w->roots[root - 1].nodes[cell->node] : 0;
        if (root)
            ends[at ? at : w->roots[root - 1].node] = 1;
    }
    struct transform_options how = {.shape = options->shape, .names = options->alike, .ends = ends};
    struct flame *flame = flame_transform(w->flame, &how, moved, error);
    if (flame) {
        walker_move(w, tree, moved);
        flame_free(w->flame);
        w->flame = flame;
    }
    free(ends);
    free(moved);
    return flame != NULL;
}

/* Patterns see stacks in full: recursion and depth are what is left of them. */
static struct flame_options whole_stacks(const struct flame_options *shape) {
    struct flame_options whole = *shape;
    if (stack_rules_set(shape->rules))
        whole = (struct flame_options){.by_samples = shape->by_samples,
                                       .reverse = shape->reverse,
                                       .waits = shape->waits,
                                       .samples = shape->samples,
                                       .keep_empty = shape->keep_empty,
                                       .keep_zero = shape->keep_zero};
    return whole;
}

struct walker *walker_new(const struct tree *tree, const struct naming *naming,
                          const struct walk_options *options, struct error *error) {
    struct flame_options whole = whole_stacks(options->shape);
    struct walk_options first = *options;
    first.shape = &whole;
    struct walker *w = memory_zero(1, sizeof *w);
    struct share s = {.tree = tree,
                      .naming = naming,
                      .options = &first,
                      .walker = w,
                      .from = 1,
                      .to = (uint32_t)tree->nodes.count};
    w->series_roots = memory_zero(tree->series.count, sizeof *w->series_roots);
    share_begin(&s);
    share_cells(&s);
    share_end(&s);
    w->flame = s.flame;
    if (!stack_rules_set(options->shape->rules) || walker_choose(w, tree, options, error))
        return w;
    walker_free(w);
    return NULL;
}

void walker_free(struct walker *w) {
    if (!w)
        return;
    for (size_t i = 0; i < w->root_count; i++)
        free(w->roots[i].nodes);
    free(w->roots);
    free(w->series_roots);
    flame_free(w->flame);
    free(w);
}

/* ---- stack by stack ---- */

static void path_push(struct path *p, const struct naming_entry *entry, size_t root) {
    const struct label *labels = p->naming->labels.items;
    for (uint32_t i = 0; i < entry->count; i++) {
        uint32_t label = entry->first + (p->shape->reverse ? entry->count - 1u - i : i);
        uint32_t frames = (uint32_t)(p->labels.count - root);
        uint32_t last = frames ? labels[p->labels.items[p->labels.count - 1]].name : 0;
        if (takes_frame(p->shape, NULL, frames, last, labels[label].name))
            vector_push(&p->labels, label);
    }
}

static void path_push_root(struct path *p, const struct naming_entry *series) {
    for (uint32_t i = 0; i < series->count; i++)
        vector_push(&p->labels, series->first + (p->shape->reverse ? series->count - 1u - i : i));
}

/* Climbs until the root, or until a location whose callers are dropped. True: it met one. */
static bool path_climb(struct path *p, const struct naming_entry *locations, uint32_t node) {
    bool cut = false;
    p->nodes.count = 0;
    for (; node && !cut; node = p->tree->nodes.items[node].parent) {
        vector_push(&p->nodes, node);
        cut = locations[p->tree->nodes.items[node].location].cut;
    }
    return cut;
}

/* If stacks are merged from the leaf, the series' labels come last, so that the cost of a function is in one place, whatever called it. */
bool path_find(struct path *p, uint32_t series, uint32_t node) {
    const struct naming_entry *labels = &p->naming->series.items[series];
    const struct naming_entry *locations = naming_entries(p->naming, labels->alternate);
    bool reverse = p->shape->reverse, cut = path_climb(p, locations, node);
    p->labels.count = 0;
    if (!reverse && !cut)
        path_push_root(p, labels);
    size_t root = p->labels.count, count = p->nodes.count;
    for (size_t i = 0; i < count; i++) {
        uint32_t at = p->nodes.items[reverse ? i : count - 1 - i];
        path_push(p, &locations[p->tree->nodes.items[at].location], root);
    }
    if (p->labels.count == root && !p->shape->keep_empty)
        return false;
    if (reverse && !cut)
        path_push_root(p, labels);
    return true;
}

void path_release(struct path *p) {
    vector_release(&p->labels);
    vector_release(&p->nodes);
}

static struct flame *walk_reversed(const struct tree *tree, const struct naming *naming,
                                   const struct flame_options *shape) {
    struct path path = {.tree = tree, .naming = naming, .shape = shape};
    struct flame *flame = flame_of_naming(naming);
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        const struct naming_entry *series = &naming->series.items[cell->series];
        uint32_t at = 0;
        if (series->skip || !path_find(&path, cell->series, cell->node))
            continue;
        for (size_t k = 0; k < path.labels.count; k++)
            at = flame_child(flame, at, &naming->labels.items[path.labels.items[k]]);
        flame_weigh(flame, at, cell, shape, tree, series->before);
    }
    path_release(&path);
    return flame;
}

/* ---- flames ---- */

struct text flame_unit(const struct tree *tree, const struct flame_options *options) {
    if (options->by_samples || tree->events.count < 2)
        return TEXT("samples");
    if (tree->chosen)
        return strings_get(tree->strings, tree_event(tree, tree->chosen)->unit);
    uint32_t unit = tree->events.items[1].unit;
    for (size_t i = 2; i < tree->events.count; i++)
        if (tree->events.items[i].unit != unit)
            return TEXT("events");
    return strings_get(tree->strings, unit);
}

struct flame *flame_of_tree(const struct tree *tree, const struct naming *naming,
                            const struct flame_options *options, struct error *error) {
    if (!tree_check(tree, error))
        return NULL;
    struct flame_options whole = whole_stacks(options);
    struct flame *flame =
        options->reverse ? walk_reversed(tree, naming, &whole)
                         : walk_in_shares(tree, naming, &(struct walk_options){.shape = &whole});
    flame->unit = strings_add(flame->strings, flame_unit(tree, options));
    if (stack_rules_set(options->rules))
        flame = flame_chosen(flame, options, false, error);
    if (!flame || !flame_total(flame, error)) {
        flame_free(flame);
        return NULL;
    }
    flame->has_waits = options->waits;
    flame->has_samples = options->samples;
    flame_drop_empty(flame, options->keep_zero);
    flame_order(flame);
    return flame;
}

struct flame *flame_chart_of_tree(const struct tree *tree, const struct naming *naming,
                                  const struct flame_options *options, struct error *error) {
    struct flame_options whole = whole_stacks(options);
    struct flame *flame = chart_of_samples(tree, naming, &whole, error);
    if (flame && stack_rules_set(options->rules))
        flame = flame_chosen(flame, options, true, error);
    if (!flame || !flame_total(flame, error)) {
        flame_free(flame);
        return NULL;
    }
    flame_link(flame, NULL, 0);
    return flame;
}
