#include "import/addresses.h"

#include <ctype.h>
#include <math.h>
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

/* Parse "/bin/demo (@1000)", gperftools' short form of a mapping. */
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
        text_take_word(&line); /* permissions */
        if (!text_hex_to_u64(text_take_word(&line), &m.offset))
            return;
        text_take_word(&line); /* device and inode */
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

static const struct text map_headlines[] = {{"MAPPED_LIBRARIES:", 17}, {"--- Memory map:", 15}};

bool addresses_begin_maps(struct text line) {
    for (size_t i = 0; i < COUNT_OF(map_headlines); i++)
        if (text_starts(line, map_headlines[i]))
            return true;
    return false;
}

void addresses_find_maps(struct addresses *a, struct text content) {
    for (size_t i = 0; i < COUNT_OF(map_headlines); i++) {
        size_t at = text_search(content, map_headlines[i]);
        if (at != SIZE_MAX && at && content.data[at - 1] == '\n') {
            addresses_read_maps(a, text_from(content, at));
            return;
        }
    }
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

void addresses_push_list(struct addresses *a, struct text list, bool leaf_runs) {
    for (list = text_trim(list); list.length; list = text_trim(list)) {
        struct text word = text_take_word(&list);
        uint64_t address;
        if (text_ends(word, TEXT(":")))
            word = text_upto(word, word.length - 1);
        if (text_starts(word, TEXT("0x")) && text_hex_to_u64(text_from(word, 2), &address))
            addresses_push(a, address, !leaf_runs || a->stack.count);
    }
}

/* Parse "#", an address, "main.work+0x1f" and "/src/main.go:12", separated by tabs. Return false for other comments. */
static bool push_comment(struct addresses *a, struct text line) {
    struct text words[3];
    line = text_from(line, 1);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        line = text_trim(line);
        size_t end = i == 2 ? line.length : text_find(line, '\t');
        words[i] = end == SIZE_MAX ? line : text_upto(line, end);
        line = text_from(line, words[i].length);
    }
    size_t plus = text_search(words[1], TEXT("+0x"));
    if (!text_starts(words[0], TEXT("0x")) || plus == SIZE_MAX)
        return false;
    struct tree *tree = a->tree;
    struct text file = {0};
    uint32_t number = 0;
    text_to_source(words[2], &file, &number);
    struct function function = {.name = strings_add(tree->strings, text_upto(words[1], plus)),
                                .file = file.length ? strings_add(tree->strings, file) : 0,
                                .language = strings_add(tree->strings, TEXT("go"))};
    struct location location = {.function = tree_add_function(tree, &function), .line = number};
    vector_push(&a->stack, tree_add_location(tree, &location));
    return true;
}

void addresses_read_comments(struct addresses *a, struct lines *lines) {
    struct lines ahead = *lines;
    struct text line;
    size_t pushed = a->stack.count, named = 0;
    while (lines_next(&ahead, &line) && text_starts(line, TEXT("#"))) {
        named += push_comment(a, line);
        *lines = ahead;
    }
    if (!named)
        return;
    memmove(a->stack.items, a->stack.items + pushed, named * sizeof *a->stack.items);
    a->stack.count = named;
}

void heap_scale(double rate, uint64_t *objects, uint64_t *bytes) {
    if (!rate || !*objects || !*bytes)
        return;
    double seen = -expm1(-((double)*bytes / (double)*objects) / rate);
    if (seen <= 0)
        return;
    *objects = double_to_u64((double)*objects / seen);
    *bytes = double_to_u64((double)*bytes / seen);
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
