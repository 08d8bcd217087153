/*
 * Xcode's `xctrace export`: XML with one backtrace per row. Backtraces and frames have ids, and later ones refer to
 * earlier ones.
 *
 * The XML is read as a stream of tags, without a tree: a backtrace becomes a node when it ends, and a row counts it.
 * Everything else is skipped.
 */
#include "import/reader.h"
#include "import/xml.h"

#include <stdlib.h>

enum xml_tag { TAG_OTHER, TAG_RESULT, TAG_NODE, TAG_ROW, TAG_BACKTRACE, TAG_FRAME };

struct id_entry {
    uint64_t id;
    uint32_t value;
};

/* Map the file's ids to ours. */
struct id_map {
    VECTOR(struct id_entry) entries;
    struct index index;
};

struct xctrace {
    struct reader r;
    struct text rest;
    enum xml_tag open[5]; /* the open tags: each is only searched for inside the previous one */
    size_t depth;
    struct id_map frames;     /* to locations */
    struct id_map backtraces; /* to nodes */
    uint64_t backtrace_id;
    bool row_has_node;
    uint32_t row_node;
    bool done;
};

/* ---- ids ---------------------------------------------------------------------------------- */

static struct id_entry *id_find(const struct id_map *map, uint64_t id) {
    uint32_t at;
    for (struct probe p = index_probe(&map->index, hash_mix(id, 1));
         (at = index_next(&map->index, &p));)
        if (map->entries.items[at - 1].id == id)
            return &map->entries.items[at - 1];
    return NULL;
}

static bool id_add(struct id_map *map, uint64_t id, uint32_t value) {
    if (id_find(map, id))
        return false;
    vector_push(&map->entries, ((struct id_entry){id, value}));
    index_add(&map->index, hash_mix(id, 1), (uint32_t)map->entries.count);
    return true;
}

static void id_release(struct id_map *map) {
    vector_release(&map->entries);
    index_release(&map->index);
}

/* ---- errors -------------------------------------------------------------------------------- */

static bool bad_xml(struct xctrace *x, const char *why) {
    size_t offset = (size_t)(x->rest.data - x->r.lines.rest.data);
    return error_at(x->r.error, x->r.path, offset, "%s", why);
}

/* ---- what the tags mean ------------------------------------------------------------------- */

static enum xml_tag tag_of(struct text name) {
    static const char *const names[] = {"",    "trace-query-result", "node",
                                        "row", "backtrace",          "frame"};
    for (size_t i = 1; i < COUNT_OF(names); i++)
        if (text_equal(name, text_of(names[i])))
            return (enum xml_tag)i;
    return TAG_OTHER;
}

static bool id_attribute(const struct xml *tag, struct text key, uint64_t *id) {
    struct text value;
    return xml_attribute(tag->attributes, key, &value) && text_to_u64(value, id);
}

/* Read a frame with an id and a name, or one that refers to such a frame. */
static bool frame_tag(struct xctrace *x, const struct xml *tag) {
    uint64_t id;
    struct text name;
    if (tag->empty && id_attribute(tag, TEXT("ref"), &id)) {
        struct id_entry *known = id_find(&x->frames, id);
        if (!known)
            return bad_xml(x, "Invalid frame ref id");
        vector_push(&x->r.stack.locations, known->value);
        return true;
    }
    if (!id_attribute(tag, TEXT("id"), &id) || !xml_attribute(tag->attributes, TEXT("name"), &name))
        return bad_xml(x, "a frame has neither id and name nor ref");
    x->r.scratch.count = x->r.lossy.count = 0;
    if (!xml_add_unescaped(&x->r.lossy, name))
        return bad_xml(x, "Invalid xml text");
    struct buffer valid = {0};
    struct text plain = text_lossy(buffer_text(&x->r.lossy), &valid);
    if (rust_repair(plain, &x->r.scratch))
        plain = buffer_text(&x->r.scratch);
    stack_push(&x->r.stack, plain);
    buffer_release(&valid);
    uint32_t location = x->r.stack.locations.items[x->r.stack.locations.count - 1];
    return id_add(&x->frames, id, location) || bad_xml(x, "Repeated frame id");
}

static bool backtrace_end(struct xctrace *x) {
    stack_reverse(&x->r.stack);
    x->row_node = stack_node(&x->r.stack);
    x->row_has_node = true;
    return id_add(&x->backtraces, x->backtrace_id, x->row_node) ||
           bad_xml(x, "Repeated backtrace id");
}

static bool backtrace_tag(struct xctrace *x, const struct xml *tag) {
    uint64_t id;
    if (tag->empty && id_attribute(tag, TEXT("ref"), &id)) {
        struct id_entry *known = id_find(&x->backtraces, id);
        if (!known)
            return bad_xml(x, "Invalid backtrace ref id");
        x->row_node = known->value;
        x->row_has_node = true;
        return true;
    }
    if (!id_attribute(tag, TEXT("id"), &x->backtrace_id))
        return bad_xml(x, "a backtrace has neither id nor ref");
    x->r.stack.locations.count = 0;
    return !tag->empty || backtrace_end(x);
}

static bool open_tag(struct xctrace *x, const struct xml *tag) {
    enum xml_tag kind = tag_of(tag->name);
    if (kind == TAG_OTHER || kind != (enum xml_tag)(x->depth + 1))
        return true; /* not inside its parent */
    if (kind == TAG_ROW)
        x->row_has_node = false;
    if (kind == TAG_BACKTRACE && !backtrace_tag(x, tag))
        return false;
    if (kind == TAG_FRAME && !frame_tag(x, tag))
        return false;
    if (!tag->empty)
        x->open[x->depth++] = kind;
    return true;
}

/* Rows with a <sentinel/> as backtrace have none. */
static bool close_tag(struct xctrace *x, const struct xml *tag) {
    enum xml_tag kind = tag_of(tag->name);
    if (kind == TAG_OTHER)
        return true;
    if (!x->depth || x->open[x->depth - 1] != kind)
        return bad_xml(x, "Unpaired tag");
    x->depth--;
    if (kind == TAG_BACKTRACE && !backtrace_end(x))
        return false;
    if (kind == TAG_ROW && x->row_has_node)
        tree_count(x->r.tree, x->row_node, x->r.stack.series, 1, 1);
    x->done = x->depth == 0;
    return true;
}

static bool xctrace_tags(struct xctrace *x) {
    struct xml tag;
    while (!x->done && !import_stops(x->r.options, x->rest.data)) {
        if (!xml_next(&x->rest, &tag))
            return bad_xml(x, "Unexpected EOF");
        if (!(tag.end ? close_tag(x, &tag) : open_tag(x, &tag)))
            return false;
    }
    return true;
}

static bool xctrace_read(struct text content, const char *path,
                         const struct import_options *options, struct tree *tree,
                         struct error *error) {
    struct xctrace x = {.rest = content};
    reader_init(&x.r, content, path, options, tree, TEXT("samples"), error);
    bool fine = xctrace_tags(&x);
    reader_release(&x.r);
    id_release(&x.frames);
    id_release(&x.backtraces);
    return fine;
}

enum applicable xctrace_applicable(struct text text) {
    bool xml = text_search(text, TEXT("<?xml version=\"1.0\"")) != SIZE_MAX;
    bool result = text_search(text, TEXT("<trace-query-result")) != SIZE_MAX;
    return xml && result ? APPLICABLE_YES : APPLICABLE_UNSURE;
}

static int xctrace_score(struct text beginning) {
    return text_search(beginning, TEXT("<trace-query-result")) != SIZE_MAX ? 95 : 0;
}

const struct import_format format_xctrace = {"xctrace", "Xcode's xctrace export, XML",
                                             xctrace_score, xctrace_read};
