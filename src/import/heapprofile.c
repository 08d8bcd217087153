/*
 * V8's sampling heap profile, as written by Chrome's DevTools and node --heap-prof: a call tree whose nodes contain
 * their children and the bytes allocated there that were still alive at the end. The CPU profile's callFrame is read
 * here, too.
 */
#include "import/v8.h"

#include <stdlib.h>

/* ---- frames ---- */

static bool key_is(const struct buffer *key, struct text name) {
    return text_equal(buffer_text(key), name);
}

bool v8_frame_read(struct json *json, struct v8_frame *frame) {
    frame->name.count = frame->url.count = 0;
    frame->line = -1;
    bool fine = json_take(json, '{');
    while (fine && json_member(json, &frame->key)) {
        bool string = json_peek(json) == '"';
        fine = string && key_is(&frame->key, TEXT("functionName")) ? json_string(json, &frame->name)
               : string && key_is(&frame->key, TEXT("url"))        ? json_string(json, &frame->url)
               : key_is(&frame->key, TEXT("lineNumber"))
                   ? json_double(json, &frame->line) || json_skip(json)
                   : json_skip(json);
    }
    return fine;
}

uint32_t v8_frame_location(struct stack *stack, const struct v8_frame *frame) {
    bool script = frame->line >= 0 && frame->line < UINT32_MAX && frame->url.count;
    struct text name = buffer_text(&frame->name);
    stack->locations.count = 0;
    stack_push_frame(stack, &(struct text_frame){
                                .name = name.length ? name : TEXT("(anonymous)"),
                                .file = buffer_text(&frame->url),
                                .language = script ? TEXT("javascript") : TEXT(""),
                                .first_line = script ? (uint32_t)frame->line + 1 : 0,
                            });
    return stack->locations.items[--stack->locations.count];
}

void v8_frame_release(struct v8_frame *frame) {
    buffer_release(&frame->name);
    buffer_release(&frame->url);
    buffer_release(&frame->key);
}

/* ---- the tree ---- */

/* A node that is being read. Its frame may come after its children, so nodes are placed at the end. */
struct open_node {
    uint32_t parent; /* index of its parent + 1; 0: none */
    uint32_t location;
    double bytes;
};

struct heapprofile {
    struct reader r;
    struct json json;
    struct buffer key;
    struct v8_frame frame;
    VECTOR(struct open_node) nodes;
    VECTOR(uint32_t) open;   /* nodes that are not closed yet */
    VECTOR(uint32_t) placed; /* by node: the tree's node */
};

static void begin_node(struct heapprofile *h) {
    struct open_node node = {.parent = h->open.count ? h->open.items[h->open.count - 1] : 0};
    vector_push(&h->nodes, node);
    vector_push(&h->open, (uint32_t)h->nodes.count);
}

/* After the '{' of a node, or after one of its children: read up to its next child, or its end. */
static bool read_members(struct heapprofile *h, bool *child) {
    struct open_node *node = &h->nodes.items[h->open.items[h->open.count - 1] - 1];
    bool fine = true;
    *child = false;
    while (fine && json_member(&h->json, &h->key)) {
        if (key_is(&h->key, TEXT("callFrame"))) {
            fine = v8_frame_read(&h->json, &h->frame);
            if (fine && !key_is(&h->frame.name, TEXT("(root)")))
                node->location = v8_frame_location(&h->r.stack, &h->frame);
        } else if (key_is(&h->key, TEXT("selfSize"))) {
            fine = json_double(&h->json, &node->bytes) || json_skip(&h->json);
        } else if (key_is(&h->key, TEXT("children")) && json_take(&h->json, '[')) {
            *child = true;
            return true;
        } else {
            fine = json_skip(&h->json);
        }
    }
    return fine;
}

/* No recursion: a file may nest as deep as it is long. */
static bool read_tree(struct heapprofile *h) {
    if (!json_take(&h->json, '{'))
        return false;
    begin_node(h);
    while (h->open.count) {
        bool list;
        if (import_stops(h->r.options, h->json.rest.data))
            return true;
        if (!read_members(h, &list))
            return false;
        if (!list)
            h->open.count--; /* its '}' was read; the parent's list continues */
        while (h->open.count && !json_element(&h->json)) {
            /* The list has ended: members follow again. */
            bool more;
            if (!read_members(h, &more))
                return false;
            if (!more)
                h->open.count--;
        }
        if (h->open.count) {
            if (!json_take(&h->json, '{'))
                return false;
            begin_node(h);
        }
    }
    return true;
}

static bool read_document(struct heapprofile *h) {
    bool fine = json_take(&h->json, '{');
    while (fine && json_member(&h->json, &h->key))
        fine =
            key_is(&h->key, TEXT("head")) && !h->nodes.count ? read_tree(h) : json_skip(&h->json);
    return fine;
}

/* Parents come before their children. */
static void count_all(struct heapprofile *h) {
    for (size_t i = 0; i < h->nodes.count; i++) {
        const struct open_node *node = &h->nodes.items[i];
        uint32_t parent = node->parent ? h->placed.items[node->parent - 1] : 0;
        uint32_t place = node->location ? tree_add_node(h->r.tree, parent, node->location) : parent;
        uint64_t bytes = double_to_u64(node->bytes);
        vector_push(&h->placed, place);
        if (bytes)
            stack_count_at(&h->r.stack, place, 1, bytes, 0);
    }
}

static bool heapprofile_read(struct text content, const char *path,
                             const struct import_options *options, struct tree *tree,
                             struct error *error) {
    struct heapprofile h = {.json = {content}};
    reader_init(&h.r, content, path, options, tree, TEXT("bytes"), error);
    bool fine =
        read_document(&h) ||
        error_at(error, path, (uint64_t)(h.json.rest.data - content.data), "not a V8 heap profile");
    if (fine) {
        count_all(&h);
        reader_warn_cut(&h.r);
    }
    buffer_release(&h.key);
    v8_frame_release(&h.frame);
    vector_release(&h.nodes);
    vector_release(&h.open);
    vector_release(&h.placed);
    reader_release(&h.r);
    return fine;
}

static int heapprofile_score(struct text beginning) {
    struct json json = {beginning};
    return json_peek(&json) == '{' && text_search(beginning, TEXT("\"head\"")) != SIZE_MAX &&
                   text_search(beginning, TEXT("\"callFrame\"")) != SIZE_MAX &&
                   text_search(beginning, TEXT("\"selfSize\"")) != SIZE_MAX
               ? 93
               : 0;
}

const struct import_format format_heapprofile = {"heapprofile", "V8's sampling heap profile, JSON",
                                                 heapprofile_score, heapprofile_read};
