/*
 * GHC's profile as JSON (`+RTS -pj`): cost centres by id, and a tree of them in which every node has its own ticks and bytes.
 *
 *     "cost_centres": [{"id": 150, "label": "main", "module": "Main", "src_loc": "Main.hs:3:1-9", …}, …],
 *     "profile": {"id": 150, "ticks": 3, "alloc": 500, "children": [{…}, …]}
 */
#include "base/json.h"
#include "import/ghcprof.h"

#include <stdlib.h>

struct centre {
    uint32_t id, location;
};

struct centre_node {
    uint32_t id;
    uint32_t parent; /* index of its parent + 1; 0: none */
    double ticks, bytes;
};

struct ghcjson {
    struct reader r;
    struct json json;
    struct buffer key, label, module, place;
    VECTOR(struct centre) centres;
    struct index by_id; /* indexes of centres + 1 */
    VECTOR(struct centre_node) nodes;
    VECTOR(uint32_t) open;   /* nodes that are not closed yet */
    VECTOR(uint32_t) placed; /* by node: the tree's node */
    double interval;         /* length of a tick, in microseconds */
};

static bool key_is(const struct ghcjson *g, struct text name) {
    return text_equal(buffer_text(&g->key), name);
}

/* ---- cost centres ---- */

static uint32_t find_centre(const struct ghcjson *g, uint32_t id) {
    uint32_t at;
    for (struct probe probe = index_probe(&g->by_id, hash_mix(id, 1));
         (at = index_next(&g->by_id, &probe));)
        if (g->centres.items[at - 1].id == id)
            return at;
    return 0;
}

/* Parse "Main.hs:3:1-9" or "Main.hs:(3,1)-(4,9)"; built-in places have a name in angle brackets. */
static struct text source_of(struct text place, uint32_t *line) {
    size_t colon = text_find(place, ':');
    if (colon == SIZE_MAX || place.data[0] == '<')
        return TEXT("");
    struct text rest = text_from(place, colon + 1);
    rest = text_starts(rest, TEXT("(")) ? text_from(rest, 1) : rest;
    size_t digits = 0;
    uint64_t number;
    while (digits < rest.length && rest.data[digits] >= '0' && rest.data[digits] <= '9')
        digits++;
    if (text_to_u64(text_upto(rest, digits), &number) && number <= UINT32_MAX)
        *line = (uint32_t)number;
    return text_upto(place, colon);
}

/* Name it as the reader of the text format does: module, point, label. */
static void keep_centre(struct ghcjson *g, uint32_t id) {
    uint32_t line = 0;
    struct text file = source_of(buffer_text(&g->place), &line);
    buffer_add_char(&g->module, '.');
    buffer_add(&g->module, buffer_text(&g->label));
    g->r.stack.locations.count = 0;
    stack_push_frame(
        &g->r.stack,
        &(struct text_frame){.name = buffer_text(&g->module), .file = file, .first_line = line});
    struct centre centre = {id, g->r.stack.locations.items[--g->r.stack.locations.count]};
    if (find_centre(g, id))
        return;
    vector_push(&g->centres, centre);
    index_add(&g->by_id, hash_mix(id, 1), (uint32_t)g->centres.count);
}

static bool read_centre(struct ghcjson *g) {
    uint32_t id = 0;
    g->label.count = g->module.count = g->place.count = 0;
    bool fine = json_take(&g->json, '{');
    while (fine && json_member(&g->json, &g->key))
        fine = key_is(g, TEXT("id"))        ? json_index(&g->json, &id)
               : key_is(g, TEXT("label"))   ? json_text(&g->json, &g->label)
               : key_is(g, TEXT("module"))  ? json_text(&g->json, &g->module)
               : key_is(g, TEXT("src_loc")) ? json_text(&g->json, &g->place)
                                            : json_skip(&g->json);
    if (fine)
        keep_centre(g, id);
    return fine;
}

/* ---- the tree ---- */

static bool begin_node(struct ghcjson *g) {
    struct centre_node node = {.parent = g->open.count ? g->open.items[g->open.count - 1] : 0};
    vector_push(&g->nodes, node);
    vector_push(&g->open, (uint32_t)g->nodes.count);
    return json_take(&g->json, '{');
}

/* Read up to the list of the node's children, or to its end. */
static bool read_members(struct ghcjson *g, bool *list) {
    struct centre_node *node = &g->nodes.items[g->open.items[g->open.count - 1] - 1];
    bool fine = true;
    *list = false;
    while (fine && json_member(&g->json, &g->key)) {
        *list = key_is(g, TEXT("children")) && json_take(&g->json, '[');
        if (*list)
            return true;
        fine = key_is(g, TEXT("id"))      ? json_index(&g->json, &node->id)
               : key_is(g, TEXT("ticks")) ? json_double(&g->json, &node->ticks)
               : key_is(g, TEXT("alloc")) ? json_double(&g->json, &node->bytes)
                                          : json_skip(&g->json);
    }
    return fine && g->json.rest.data[-1] == '}';
}

/* No recursion: a file may nest as deep as it is long. */
static bool read_tree(struct ghcjson *g) {
    bool list = false;
    if (!begin_node(g))
        return false;
    while (g->open.count && !import_stops(g->r.options, g->json.rest.data)) {
        if (list && json_element(&g->json)) {
            list = false;
            if (!begin_node(g))
                return false;
            continue;
        }
        if (!read_members(g, &list))
            return false;
        if (!list) {
            g->open.count--;
            list = true; /* continue with the parent's list */
        }
    }
    return true;
}

/* ---- the document ---- */

static bool document_member(struct ghcjson *g) {
    if (key_is(g, TEXT("tick_interval")))
        return json_double(&g->json, &g->interval) || json_skip(&g->json);
    if (key_is(g, TEXT("profile")) && !g->nodes.count && json_peek(&g->json) == '{')
        return read_tree(g);
    if (!key_is(g, TEXT("cost_centres")) || !json_take(&g->json, '['))
        return json_skip(&g->json);
    bool fine = true;
    while (fine && json_element(&g->json) && !import_stops(g->r.options, g->json.rest.data))
        fine = read_centre(g);
    return fine;
}

static bool read_document(struct ghcjson *g) {
    bool fine = json_take(&g->json, '{');
    while (fine && json_member(&g->json, &g->key))
        fine = document_member(g);
    return fine ||
           error_at(g->r.error, g->r.path, (uint64_t)(g->json.rest.data - g->r.content.data),
                    "not a GHC profile in JSON; +RTS -p writes the profile as text");
}

/* ---- counting ---- */

static uint64_t weight_of(const struct ghcjson *g, const struct centre_node *node, int column) {
    return double_to_u64(column == 2   ? node->bytes
                         : column == 1 ? node->ticks
                                       : node->ticks * g->interval * 1000);
}

/* Parents come before their children. A missing centre is named by its number. */
static void count_all(struct ghcjson *g, int column) {
    for (size_t i = 0; i < g->nodes.count && !import_stops(g->r.options, g->json.rest.data); i++) {
        const struct centre_node *node = &g->nodes.items[i];
        uint32_t parent = node->parent ? g->placed.items[node->parent - 1] : 0;
        uint32_t centre = find_centre(g, node->id);
        if (!centre) {
            g->label.count = g->module.count = g->place.count = 0;
            buffer_printf(&g->label, "%u", node->id);
            keep_centre(g, node->id);
            centre = find_centre(g, node->id);
        }
        uint32_t at = tree_add_node(g->r.tree, parent, g->centres.items[centre - 1].location);
        vector_push(&g->placed, at);
        uint64_t weight = weight_of(g, node, column);
        if (weight)
            stack_count_at(&g->r.stack, at, 1, weight, 0);
    }
}

bool ghcjson_read(struct text content, const char *path, const struct import_options *options,
                  struct tree *tree, struct error *error) {
    static const char *const units[] = {"ns", "ticks", "bytes"};
    struct ghcjson g = {.json = {content}, .interval = 1000};
    int column = options->ghc_column >= 0 && options->ghc_column <= 2 ? options->ghc_column : 0;
    reader_init(&g.r, content, path, options, tree, text_of(units[column]), error);
    bool fine = read_document(&g);
    if (fine) {
        count_all(&g, column);
        reader_warn_cut(&g.r);
    }
    buffer_release(&g.key);
    buffer_release(&g.label);
    buffer_release(&g.module);
    buffer_release(&g.place);
    vector_release(&g.centres);
    index_release(&g.by_id);
    vector_release(&g.nodes);
    vector_release(&g.open);
    vector_release(&g.placed);
    reader_release(&g.r);
    return fine;
}

bool ghcjson_is(struct text beginning) {
    struct json json = {beginning};
    return json_peek(&json) == '{' &&
           text_search(beginning, TEXT("\"cost_centres\"")) != SIZE_MAX &&
           text_search(beginning, TEXT("\"tick_interval\"")) != SIZE_MAX;
}
