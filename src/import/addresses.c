#include "import/addresses.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- maps ---- */

static bool take_hex(struct text *line, uint64_t *value) {
    size_t length = 0;
    while (length < line->length && isxdigit((unsigned char)line->data[length]))
        length++;
    if (!length || !text_hex_to_u64(text_upto(*line, length), value))
        return false;
    *line = text_from(*line, length);
    return true;
}

struct text text_take_word(struct text *line) {
    *line = text_trim(*line);
    size_t end = text_find(*line, ' ');
    struct text word = end == SIZE_MAX ? *line : text_upto(*line, end);
    *line = text_from(*line, word.length);
    return word;
}

/* "/bin/demo (@1000)", the short form of a mapping that gperftools writes where it has no more. */
static void take_short(struct text line, struct address_mapping *m) {
    line = text_trim(line);
    size_t at = text_search(line, TEXT(" (@"));
    struct text offset = at == SIZE_MAX ? TEXT("") : text_from(line, at + 3);
    take_hex(&offset, &m->offset);
    m->path = at == SIZE_MAX ? line : text_upto(line, at);
}

/* "00400000-00401000 r-xp 00000000 08:01 12   /bin/demo", or "00400000-00401000: /bin/demo" */
static void add_mapping(struct addresses *a, struct text line) {
    struct address_mapping m = {0};
    line = text_trim(line);
    if (!take_hex(&line, &m.start) || !text_starts(line, TEXT("-")))
        return;
    line = text_from(line, 1);
    if (!take_hex(&line, &m.end))
        return;
    if (text_starts(line, TEXT(":"))) {
        take_short(text_from(line, 1), &m);
    } else {
        text_take_word(&line); /* what may be done there */
        if (!text_hex_to_u64(text_take_word(&line), &m.offset))
            return;
        text_take_word(&line); /* the device and the inode */
        text_take_word(&line);
        m.path = text_trim(line);
    }
    if (m.path.length && m.end > m.start)
        vector_push(&a->mappings, m);
}

static int order_mappings(const void *a, const void *b) {
    const struct address_mapping *x = a, *y = b;
    return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
                                : (x->end > y->end) - (x->end < y->end);
}

void addresses_read_maps(struct addresses *a, struct text text) {
    while (text.length)
        add_mapping(a, text_take_line(&text));
    if (a->mappings.count)
        qsort(a->mappings.items, a->mappings.count, sizeof *a->mappings.items, order_mappings);
}

static struct address_mapping *mapping_of(struct addresses *a, uint64_t address) {
    size_t after = search_first(i, 0, a->mappings.count, a->mappings.items[i].start <= address);
    struct address_mapping *m = after ? &a->mappings.items[after - 1] : NULL;
    return m && address < m->end ? m : NULL;
}

static uint32_t object_of(struct addresses *a, struct address_mapping *m) {
    bool is_file = m->path.data[0] == '/';
    struct object_identity identity = {.path = m->path,
                                       .kind = is_file                               ? OBJECT_FILE
                                               : text_equal(m->path, TEXT("[vdso]")) ? OBJECT_VDSO
                                                                                     : OBJECT_NONE};
    if (!m->object)
        m->object = objects_add(a->objects, &identity);
    return m->object;
}

/* ---- stacks ---- */

void addresses_init(struct addresses *a, const struct import_options *options) {
    *a = (struct addresses){.options = options, .tree = tree_new()};
    a->objects = a->tree->objects = objects_new(&options->profile.objects);
    tree_set_budget(a->tree, options->budget);
}

void addresses_push(struct addresses *a, uint64_t address, bool is_return) {
    struct address_mapping *m = mapping_of(a, address);
    struct location location = {.mode = MODE_USER, .call = is_return, .address = address};
    if (m) {
        location.object = object_of(a, m);
        location.address = address - m->start + m->offset;
    }
    vector_push(&a->stack, tree_add_location(a->tree, &location));
}

uint32_t addresses_node(struct addresses *a) {
    uint32_t node = 0;
    for (size_t i = a->stack.count; i-- > 0;)
        node = tree_add_node(a->tree, node, a->stack.items[i]);
    return node;
}

void addresses_finish(struct addresses *a, struct tree *tree) {
    bool fine = tree && !budget_exceeded(a->options->budget);
    if (fine && !a->options->profile.no_names)
        profile_resolve(a->tree, a->objects, &a->options->profile);
    tree_set_budget(a->tree, NULL);
    if (fine && !budget_exceeded(a->options->budget))
        tree_join(tree, a->tree);
    objects_free(a->objects);
    tree_free(a->tree);
    vector_release(&a->mappings);
    vector_release(&a->stack);
}
