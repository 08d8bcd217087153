/*
 * Snapshots of valgrind's massif. A detailed snapshot has a tree of allocating stacks, leaf first; each line is one
 * level deeper and has its share of the bytes in use:
 *
 *     heap_tree=peak
 *     n2: 6000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 *      n1: 5000 0x1091C4: other (m.c:4)
 *       n0: 5000 0x10920F: main (m.c:5)
 *      n0: 1000 in 3 places, all below massif's threshold (1.00%)
 *
 * The snapshot of the peak is read; if massif marked none, the largest detailed one.
 */
#include "import/valgrind.h"

#include <stdlib.h>

/* ---- frames ---- */

/* The parentheses at the end have the place: "in /usr/lib/x.so", or "m.c:3". */
static void parse_place(struct text_frame *frame) {
    struct text name = frame->name;
    size_t open = text_find_last(name, '(');
    if (!text_ends(name, TEXT(")")) || open == SIZE_MAX || open == 0 || name.data[open - 1] != ' ')
        return;
    struct text place = text_from(text_upto(name, name.length - 1), open + 1);
    if (text_starts(place, TEXT("in ")))
        frame->object = text_from(place, 3);
    else if (!text_to_source(place, &frame->file, &frame->line))
        return;
    frame->name = text_upto(name, open - 1);
}

struct text_frame valgrind_frame_parse(struct text t) {
    struct text_frame frame = {.name = t};
    size_t colon = text_find(t, ':');
    if (text_starts(t, TEXT("0x")) && colon != SIZE_MAX)
        frame.name = text_trim(text_from(t, colon + 1));
    parse_place(&frame);
    if (text_equal(frame.name, TEXT("???")))
        frame.name.length = 0;
    return frame;
}

/* ---- snapshots ---- */

struct level {
    uint32_t location; /* 0: none, for the line above all frames */
    uint64_t left;     /* bytes not counted in lines below it */
};

struct massif {
    struct reader r;
    VECTOR(struct level) path;
};

/* Parse "n1: 5000 WHAT" after its spaces; *rest is WHAT. */
static bool parse_line(struct text line, size_t *depth, uint64_t *bytes, struct text *rest) {
    uint64_t children;
    for (*depth = 0; *depth < line.length && line.data[*depth] == ' ';)
        ++*depth;
    line = text_from(line, *depth);
    size_t colon = text_find(line, ':');
    if (!text_starts(line, TEXT("n")) || colon == SIZE_MAX ||
        !text_to_u64(text_from(text_upto(line, colon), 1), &children))
        return false;
    line = text_trim(text_from(line, colon + 1));
    size_t space = text_find(line, ' ');
    if (space == SIZE_MAX || !text_to_u64(text_upto(line, space), bytes))
        return false;
    *rest = text_trim(text_from(line, space));
    return true;
}

/* Count what is left at the deepest level, whose line is the outermost caller. Costs its depth, which is less than
   its line's length. */
static void leave_level(struct massif *m) {
    struct stack *stack = &m->r.stack;
    uint64_t left = m->path.items[m->path.count - 1].left;
    stack->locations.count = 0;
    for (size_t i = m->path.count; left && i-- > 1;)
        vector_push(&stack->locations, m->path.items[i].location);
    if (left)
        stack_count(stack, 1, left);
    stack->locations.count = 0;
    m->path.count--;
}

static uint32_t frame_location(struct massif *m, struct text what) {
    struct stack *stack = &m->r.stack;
    struct text_frame frame = valgrind_frame_parse(what);
    if (text_starts(what, TEXT("in ")) && text_search(what, TEXT(" below ")) != SIZE_MAX)
        frame = (struct text_frame){.name = TEXT("[below massif's threshold]")};
    stack->locations.count = 0;
    stack_push_frame(stack, &frame);
    return stack->locations.items[--stack->locations.count];
}

static bool enter_level(struct massif *m, struct text line) {
    size_t depth;
    uint64_t bytes;
    struct text what;
    if (!parse_line(line, &depth, &bytes, &what) || depth > m->path.count)
        return false;
    while (m->path.count > depth)
        leave_level(m);
    if (depth) {
        struct level *above = &m->path.items[depth - 1];
        if (bytes > above->left)
            return false;
        above->left -= bytes;
    }
    vector_push(&m->path, ((struct level){depth ? frame_location(m, what) : 0, bytes}));
    return true;
}

static bool line_says(struct text line, struct text key, struct text *value) {
    if (!text_starts(line, key))
        return false;
    *value = text_from(line, key.length);
    return true;
}

/* Return the start of the tree to read; its data is NULL if no snapshot is detailed. */
static struct lines find_tree(struct massif *m) {
    struct lines found = {0};
    struct text value;
    uint64_t bytes = 0, most = 0;
    while (reader_next(&m->r) && !import_stops(m->r.options, m->r.line.data)) {
        if (line_says(m->r.line, TEXT("mem_heap_B="), &value) && !text_to_u64(value, &bytes))
            note_torn_line(m->r.tree, m->r.path, m->r.lines.number, m->r.line);
        if (!line_says(m->r.line, TEXT("heap_tree="), &value) || text_equal(value, TEXT("empty")))
            continue;
        bool peak = text_equal(value, TEXT("peak"));
        if (peak || !found.rest.data || bytes > most) {
            found = m->r.lines;
            most = bytes;
        }
        if (peak)
            break;
    }
    return found;
}

static bool read_tree(struct massif *m) {
    m->r.lines = find_tree(m);
    if (!m->r.lines.rest.data)
        return error_at(m->r.error, m->r.path, 0,
                        "no snapshot is detailed; run massif with --detailed-freq=1");
    while (reader_next(&m->r) && !text_starts(m->r.line, TEXT("#")) &&
           !import_stops(m->r.options, m->r.line.data))
        if (!enter_level(m, m->r.line))
            note_torn_line(m->r.tree, m->r.path, m->r.lines.number, m->r.line);
    while (m->path.count)
        leave_level(m);
    return true;
}

static bool massif_read(struct text content, const char *path, const struct import_options *options,
                        struct tree *tree, struct error *error) {
    struct massif m = {0};
    reader_init(&m.r, content, path, options, tree, TEXT("bytes"), error);
    bool fine = read_tree(&m);
    vector_release(&m.path);
    reader_release(&m.r);
    return fine;
}

static int massif_score(struct text beginning) {
    return text_starts(beginning, TEXT("desc: ")) &&
                   text_search(beginning, TEXT("\ntime_unit: ")) != SIZE_MAX &&
                   text_search(beginning, TEXT("\nsnapshot=")) != SIZE_MAX
               ? 98
               : 0;
}

const struct import_format format_massif = {"massif", "snapshots of valgrind's massif",
                                            massif_score, massif_read};
