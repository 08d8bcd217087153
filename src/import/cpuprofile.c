/*
 * V8's CPU profile, as written by Chrome's DevTools, node --cpu-prof and `wick export --to cpuprofile`: nodes of a
 * call tree, and which of them was sampled when. A sample lasts until the next one, the last until the profile's end.
 * Without samples, the nodes' hit counts are used.
 *
 * Older files have the tree in `head` instead of a list of nodes, and each sample's time instead of time deltas: V8's
 * own library wrote this form, and v8-profiler still does.
 *
 * The format has one thread. If `wick export` had several, each is a frame below the root, named like a track, and
 * becomes a thread again.
 */
#include "import/v8.h"

#include <math.h>
#include <stdlib.h>

struct v8_node {
    uint32_t id, parent_id; /* parent is 0 if only its list of children names this node */
    uint32_t parent;        /* index of its parent + 1; 0: none */
    uint32_t location;      /* 0: no frame */
    uint32_t node, series;  /* the tree's node, once it is placed */
    uint32_t track;         /* string: the name of a track; 0: not a track */
    double hits;
    bool idle, skip, placed, on_way;
};

/* One entry of `children`; the node with that id may come later. */
struct v8_child {
    uint32_t parent; /* a place among the nodes + 1 */
    uint32_t id;
};

/* A node of a tree that is not closed yet. */
struct v8_open {
    uint32_t node;      /* a place among the nodes + 1 */
    uint32_t name, url; /* strings */
    double line;
};

struct cpuprofile {
    struct reader *r;
    struct json json;
    struct buffer key;
    struct v8_frame frame;
    VECTOR(struct v8_node) nodes;
    VECTOR(struct v8_child) children;
    VECTOR(uint32_t) samples; /* ids */
    VECTOR(double) deltas;    /* microseconds */
    VECTOR(double) times;     /* times of samples, if there are no deltas */
    VECTOR(struct v8_open) open;
    VECTOR(uint32_t) way; /* from a node up to one that is placed */
    struct index by_id;   /* places among the nodes + 1 */
    uint32_t series;      /* for nodes outside of tracks */
    bool skip;            /* likewise: it is filtered out */
    bool in_trace;        /* it comes in chunks, and some may be missing */
    double start, end;
};

static bool key_is(const struct cpuprofile *c, struct text name) {
    return text_equal(buffer_text(&c->key), name);
}

/* ---- reading ---- */

static bool read_children(struct cpuprofile *c) {
    struct v8_child child = {.parent = (uint32_t)c->nodes.count + 1};
    bool fine = json_take(&c->json, '[');
    while (fine && json_element(&c->json)) {
        fine = json_index(&c->json, &child.id);
        if (fine)
            vector_push(&c->children, child);
    }
    return fine;
}

static bool node_member(struct cpuprofile *c, struct v8_node *node) {
    if (key_is(c, TEXT("id")))
        return json_index(&c->json, &node->id);
    if (key_is(c, TEXT("parent")))
        return json_index(&c->json, &node->parent_id) || json_skip(&c->json);
    if (key_is(c, TEXT("callFrame")))
        return v8_frame_read(&c->json, &c->frame);
    if (key_is(c, TEXT("hitCount")))
        return json_double(&c->json, &node->hits) || json_skip(&c->json);
    if (key_is(c, TEXT("children")))
        return read_children(c);
    return json_skip(&c->json);
}

/* V8's names for nodes that are not functions: the root has no cost, and idle time is not the program's. */
static void take_frame(struct cpuprofile *c, struct v8_node *node) {
    struct text name = buffer_text(&c->frame.name);
    bool is_root = text_equal(name, TEXT("(root)"));
    struct track_name track;
    node->idle = is_root || text_equal(name, TEXT("(idle)"));
    if (track_name_parse(name, &track) && !c->frame.url.count)
        node->track = strings_add(c->r->tree->strings, name);
    if (!is_root)
        node->location = v8_frame_location(&c->r->stack, &c->frame);
}

/* Return the index + 1 of the first node with that id, or 0. */
static uint32_t find_node(const struct cpuprofile *c, uint32_t id) {
    uint32_t at;
    for (struct probe probe = index_probe(&c->by_id, hash_mix(id, 1));
         (at = index_next(&c->by_id, &probe));)
        if (c->nodes.items[at - 1].id == id)
            return at;
    return 0;
}

static bool read_node(struct cpuprofile *c) {
    struct v8_node node = {0};
    bool fine = json_take(&c->json, '{');
    c->frame.name.count = c->frame.url.count = 0;
    c->frame.line = -1;
    while (fine && json_member(&c->json, &c->key))
        fine = node_member(c, &node);
    if (!fine)
        return false;
    take_frame(c, &node);
    vector_push(&c->nodes, node);
    if (!find_node(c, node.id)) /* equal ids would turn the index into a list */
        index_add(&c->by_id, hash_mix(node.id, 1), (uint32_t)c->nodes.count);
    return true;
}

/* ---- a tree of nodes ---- */

static bool begin_node(struct cpuprofile *c) {
    struct v8_node node = {.parent = c->open.count ? c->open.items[c->open.count - 1].node : 0};
    vector_push(&c->nodes, node);
    vector_push(&c->open, ((struct v8_open){.node = (uint32_t)c->nodes.count, .line = -1}));
    return json_take(&c->json, '{');
}

static bool string_member(struct cpuprofile *c, uint32_t *string) {
    c->frame.name.count = 0;
    if (json_peek(&c->json) != '"')
        return json_skip(&c->json);
    bool fine = json_string(&c->json, &c->frame.name);
    *string = strings_add(c->r->tree->strings, buffer_text(&c->frame.name));
    return fine;
}

/* Read up to the list of children, or to the node's end. */
static bool read_members(struct cpuprofile *c, bool *list) {
    struct v8_open *open = &c->open.items[c->open.count - 1];
    struct v8_node *node = &c->nodes.items[open->node - 1];
    bool fine = true;
    while (fine && json_member(&c->json, &c->key)) {
        *list = key_is(c, TEXT("children")) && json_take(&c->json, '[');
        if (*list)
            return true;
        fine = key_is(c, TEXT("functionName")) ? string_member(c, &open->name)
               : key_is(c, TEXT("url"))        ? string_member(c, &open->url)
               : key_is(c, TEXT("lineNumber"))
                   ? json_double(&c->json, &open->line) || json_skip(&c->json)
               : key_is(c, TEXT("children")) ? json_skip(&c->json)
                                             : node_member(c, node);
    }
    return fine;
}

static void end_node(struct cpuprofile *c) {
    struct v8_open open = c->open.items[--c->open.count];
    struct v8_node *node = &c->nodes.items[open.node - 1];
    c->frame.name.count = c->frame.url.count = 0;
    buffer_add(&c->frame.name, strings_get(c->r->tree->strings, open.name));
    buffer_add(&c->frame.url, strings_get(c->r->tree->strings, open.url));
    c->frame.line = open.line;
    take_frame(c, node);
    if (!find_node(c, node->id))
        index_add(&c->by_id, hash_mix(node->id, 1), open.node);
}

/* No recursion: a file may nest as deep as it is long. */
static bool read_tree(struct cpuprofile *c) {
    bool list = false;
    if (!begin_node(c))
        return false;
    while (c->open.count && !import_stops(c->r->options, c->json.rest.data)) {
        if (list && json_element(&c->json)) {
            list = false;
            if (!begin_node(c))
                return false;
            continue;
        }
        list = false;
        if (!read_members(c, &list) || (!list && c->json.rest.data[-1] != '}'))
            return false;
        if (!list) {
            end_node(c);
            list = true; /* continue with the parent's list */
        }
    }
    return true;
}

static bool read_times(struct cpuprofile *c) {
    bool fine = json_take(&c->json, '[') || json_skip(&c->json);
    double time;
    while (fine && json_element(&c->json) && !import_stops(c->r->options, c->json.rest.data)) {
        fine = json_double(&c->json, &time);
        if (fine)
            vector_push(&c->times, time);
    }
    return fine;
}

/* Times are microseconds, but the profile's own start and end are seconds. There may be one more than samples: the
   end of the last one. */
static void take_times(struct cpuprofile *c) {
    size_t count = c->times.count < c->samples.count ? c->times.count : c->samples.count;
    if (c->deltas.count || !count)
        return;
    for (size_t i = 0; i < count; i++)
        vector_push(&c->deltas, i ? c->times.items[i] - c->times.items[i - 1] : 0);
    c->start = c->times.items[0];
    c->end = count < c->times.count ? c->times.items[count] : c->end * 1e6;
}

/* ---- the document ---- */

static bool document_member(struct cpuprofile *c) {
    double *number = key_is(c, TEXT("startTime")) ? &c->start
                     : key_is(c, TEXT("endTime")) ? &c->end
                                                  : NULL;
    bool nodes = key_is(c, TEXT("nodes")), samples = key_is(c, TEXT("samples"));
    if (number)
        return json_double(&c->json, number) || json_skip(&c->json);
    if (key_is(c, TEXT("head")) && json_peek(&c->json) == '{' && !c->nodes.count)
        return read_tree(c);
    if (key_is(c, TEXT("timestamps")) && json_peek(&c->json) == '[')
        return read_times(c);
    if ((!nodes && !samples && !key_is(c, TEXT("timeDeltas"))) || !json_take(&c->json, '['))
        return json_skip(&c->json);
    bool fine = true;
    while (fine && json_element(&c->json) && !import_stops(c->r->options, c->json.rest.data)) {
        uint32_t id = 0;
        double delta = 0;
        fine = nodes     ? read_node(c)
               : samples ? json_index(&c->json, &id)
                         : json_double(&c->json, &delta);
        if (samples)
            vector_push(&c->samples, id);
        else if (!nodes)
            vector_push(&c->deltas, delta);
    }
    return fine;
}

/* Some tools wrap the profile in an object of their own. */
static bool read_document(struct cpuprofile *c) {
    bool fine = json_take(&c->json, '{');
    while (fine && json_member(&c->json, &c->key)) {
        if (key_is(c, TEXT("profile")) && json_peek(&c->json) == '{')
            json_take(&c->json, '{'); /* its end is treated as the end of everything */
        else
            fine = document_member(c);
    }
    return fine;
}

/* ---- placing ---- */

static void link_nodes(struct cpuprofile *c) {
    for (size_t i = 0; i < c->nodes.count; i++)
        if (c->nodes.items[i].parent_id)
            c->nodes.items[i].parent = find_node(c, c->nodes.items[i].parent_id);
    for (size_t i = 0; i < c->children.count; i++) {
        uint32_t child = find_node(c, c->children.items[i].id);
        if (child)
            c->nodes.items[child - 1].parent = c->children.items[i].parent;
    }
}

/* The parent is placed. A track is not a frame, but the thread of everything below it. */
static void place_one(struct cpuprofile *c, struct v8_node *node) {
    const struct v8_node *parent = node->parent ? &c->nodes.items[node->parent - 1] : NULL;
    node->node = parent ? parent->node : 0;
    node->series = parent ? parent->series : c->series;
    node->skip = parent ? parent->skip : c->skip;
    node->placed = true;
    if (node->track && node->node == 0) {
        stack_set_track(&c->r->stack, strings_get(c->r->tree->strings, node->track));
        node->series = c->r->stack.series;
        node->skip = c->r->stack.skip;
    } else if (node->location) {
        node->node = tree_add_node(c->r->tree, node->node, node->location);
    }
}

/* Return false if the node is its own ancestor. */
static bool place(struct cpuprofile *c, uint32_t at) {
    c->way.count = 0;
    for (; at && !c->nodes.items[at - 1].placed; at = c->nodes.items[at - 1].parent) {
        if (c->nodes.items[at - 1].on_way)
            return false;
        c->nodes.items[at - 1].on_way = true;
        vector_push(&c->way, at);
    }
    while (c->way.count)
        place_one(c, &c->nodes.items[c->way.items[--c->way.count] - 1]);
    return true;
}

static bool place_all(struct cpuprofile *c) {
    link_nodes(c);
    c->series = c->r->stack.series;
    c->skip = c->r->stack.skip;
    for (uint32_t at = 1; at <= c->nodes.count; at++)
        if (!place(c, at))
            return error_set(c->r->error, ERROR_INPUT, "%s: node %u is its own ancestor",
                             c->r->path, c->nodes.items[at - 1].id);
    return true;
}

/* ---- counting ---- */

static void count(struct cpuprofile *c, const struct v8_node *node, uint64_t samples,
                  uint64_t weight, uint64_t time) {
    c->r->stack.series = node->series;
    c->r->stack.skip = node->skip;
    if (!node->idle && (samples || weight))
        stack_count_at(&c->r->stack, node->node, samples, weight, time);
}

/* V8 sometimes gives a sample an earlier time than the previous one: treat that as no time. */
static bool count_samples(struct cpuprofile *c, size_t samples) {
    double now = c->start + c->deltas.items[0], behind = 0; /* latest time so far */
    for (size_t i = 0; i < samples; i++) {
        uint32_t at = find_node(c, c->samples.items[i]);
        if (!at && !c->in_trace)
            return error_set(c->r->error, ERROR_INPUT,
                             "%s: sample %zu refers to node %u, which does not exist", c->r->path,
                             i, c->samples.items[i]);
        double first = now, step = i + 1 < samples ? c->deltas.items[i + 1] : c->end - now;
        double length = step > behind ? step - behind : 0;
        now += step;
        behind = step < behind ? behind - step : 0;
        /* A sample's timestamp is its end, as for perf. */
        uint64_t time = double_to_u64(round((i ? now + behind : first) * 1000));
        if (at)
            count(c, &c->nodes.items[at - 1], 1, double_to_u64(round(length * 1000)), time + !time);
    }
    return true;
}

static bool count_all(struct cpuprofile *c) {
    size_t both = c->samples.count < c->deltas.count ? c->samples.count : c->deltas.count;
    if (c->samples.count != c->deltas.count && !c->in_trace)
        return error_set(c->r->error, ERROR_INPUT, "%s: the profile has %zu samples but %zu times",
                         c->r->path, c->samples.count, c->deltas.count);
    if (both || c->in_trace)
        return !both || count_samples(c, both);
    for (size_t i = 0; i < c->nodes.count; i++) {
        uint64_t hits = double_to_u64(c->nodes.items[i].hits);
        count(c, &c->nodes.items[i], hits, hits, 0);
    }
    return true;
}

static void release(struct cpuprofile *c) {
    buffer_release(&c->key);
    v8_frame_release(&c->frame);
    vector_release(&c->nodes);
    vector_release(&c->children);
    vector_release(&c->samples);
    vector_release(&c->deltas);
    vector_release(&c->times);
    vector_release(&c->open);
    vector_release(&c->way);
    index_release(&c->by_id);
}

/* ---- in a trace ---- */

/* {"cpuProfile": {"nodes": […], "samples": […]}, "timeDeltas": […]}; any of these may be missing or nested. */
static bool read_chunk(struct cpuprofile *c, struct text chunk) {
    c->json = (struct json){chunk};
    unsigned inside = 1;
    bool fine = json_take(&c->json, '{');
    while (fine && inside) {
        if (!json_member(&c->json, &c->key))
            inside--, fine = c->json.rest.data[-1] == '}';
        else if (inside == 1 && key_is(c, TEXT("cpuProfile")) && json_take(&c->json, '{'))
            inside++;
        else
            fine = document_member(c);
    }
    return fine ||
           error_at(c->r->error, c->r->path, (uint64_t)(c->json.rest.data - c->r->content.data),
                    "not a piece of a CPU profile as V8 writes it");
}

bool v8_count_chunks(struct reader *r, const struct v8_chunk *chunks, size_t count,
                     size_t *samples) {
    struct cpuprofile c = {.r = r, .in_trace = true};
    bool fine = true;
    for (size_t i = 0; i < count && fine; i++)
        fine = read_chunk(&c, chunks[i].data);
    fine = fine && place_all(&c) && count_all(&c);
    *samples += c.samples.count;
    release(&c);
    return fine;
}

static bool cpuprofile_read(struct text content, const char *path,
                            const struct import_options *options, struct tree *tree,
                            struct error *error) {
    struct reader r;
    struct cpuprofile c = {.r = &r, .json = {content}};
    reader_init(&r, content, path, options, tree, TEXT(""), error);
    bool fine =
        read_document(&c) ||
        error_at(error, path, (uint64_t)(c.json.rest.data - content.data), "not a V8 CPU profile");
    take_times(&c);
    bool timed = c.samples.count > 0;
    stack_set_event(&r.stack, timed ? TEXT("time") : TEXT("samples"),
                    timed ? TEXT("ns") : TEXT("samples"));
    fine = fine && place_all(&c) && count_all(&c);
    if (fine)
        reader_warn_cut(&r);
    release(&c);
    reader_release(&r);
    return fine;
}

static bool has(struct text beginning, const char *name) {
    return text_search(beginning, text_of(name)) != SIZE_MAX;
}

static int cpuprofile_score(struct text beginning) {
    struct json json = {beginning};
    if (json_peek(&json) != '{' || has(beginning, "\"traceEvents\""))
        return 0;
    bool list = has(beginning, "\"callFrame\"") && has(beginning, "\"nodes\""),
         tree = has(beginning, "\"head\"") && has(beginning, "\"functionName\"") &&
                has(beginning, "\"hitCount\"") && !has(beginning, "\"callFrame\"");
    return list || tree ? 92 : 0;
}

const struct import_format format_cpuprofile = {"cpuprofile", "V8's CPU profile, JSON",
                                                cpuprofile_score, cpuprofile_read, TELLS_TIMES};
