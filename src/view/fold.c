/*
 * Folded text: `a;b;c 12`, sorted by line.
 *
 * A node's own line and the lines below it need not be adjacent: "foo 12" < "foo 3;x 1" < "foo!;x 1" < "foo;x 1". So two kinds of item are sorted,
 * parent by parent: a child's own line, by its name and count, and all lines below it, by its name and a semicolon. Children are already in the
 * latter order, and nearly always each line can come right before the lines below it: this is checked first, and only failures are sorted.
 *
 * The current stack is kept in one buffer, so a line costs one copy of it. No recursion: pending items are on an explicit stack.
 */
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>

struct fold_item {
    uint32_t node;
    bool below; /* the lines below the node, else its own */
};

struct fold {
    struct out *out;
    const struct flame *flame;
    const struct fold_options *options;
    VECTOR(struct fold_item) items; /* those waiting, next one last */
    struct buffer stack;            /* "a;b;" */
    VECTOR(size_t) lengths;         /* of the stack, for each depth */
};

static bool has_line(const struct fold *f, const struct flame_node *node) {
    return node->self || node->self_before ||
           (f->options->quirks.keeps_weightless && node->counted);
}

/* The root's own line is of stacks without frames, which must have some name. */
static struct text item_name(const struct fold *f, uint32_t node) {
    return node ? flame_name(f->flame, node) : TEXT("[no stack]");
}

/* What follows the name in an item: ";" or " 12", which is at most two numbers of twenty digits. */
static size_t item_tail(const struct fold *f, struct fold_item item, char tail[48]) {
    const struct flame_node *node = &f->flame->nodes.items[item.node];
    if (item.below) {
        tail[0] = ';';
        return 1;
    }
    int length = f->flame->is_diff
                     ? snprintf(tail, 48, " %llu %llu", (unsigned long long)node->self_before,
                                (unsigned long long)node->self)
                     : snprintf(tail, 48, " %llu", (unsigned long long)node->self);
    return (size_t)length;
}

/* Return the byte at `at` of name and tail, or -1 after the end. */
static int item_byte(struct text name, struct text tail, size_t at) {
    if (at < name.length)
        return (unsigned char)name.data[at];
    return at - name.length < tail.length ? (unsigned char)tail.data[at - name.length] : -1;
}

static int item_order(const void *a, const void *b, void *context) {
    const struct fold *f = context;
    const struct fold_item *x = a, *y = b;
    struct text x_name = item_name(f, x->node), y_name = item_name(f, y->node);
    size_t at = x_name.length < y_name.length ? x_name.length : y_name.length;
    int order = at ? memcmp(x_name.data, y_name.data, at) : 0;
    if (order)
        return order;
    char x_space[48], y_space[48];
    struct text x_tail = {x_space, item_tail(f, *x, x_space)},
                y_tail = {y_space, item_tail(f, *y, y_space)};
    /* inferno sorts by the stack alone; a stack is shorter than those below it. */
    if (f->options->quirks.sorts_by_stack && !x->below)
        x_tail.length = 0;
    if (f->options->quirks.sorts_by_stack && !y->below)
        y_tail.length = 0;
    for (;; at++) {
        int x_byte = item_byte(x_name, x_tail, at), y_byte = item_byte(y_name, y_tail, at);
        if (x_byte != y_byte)
            return x_byte - y_byte;
        if (x_byte < 0)
            return 0;
    }
}

static void reverse(struct fold_item *items, size_t count) {
    for (size_t i = 0, j = count; i + 1 < j; i++) {
        struct fold_item swap = items[i];
        items[i] = items[--j];
        items[j] = swap;
    }
}

/* Lets the children's items wait, the first one last. */
static void fold_children(struct fold *f, uint32_t parent) {
    size_t first = f->items.count;
    bool sorted = true;
    if (!parent && !f->options->quirks.sorts_by_stack && has_line(f, &f->flame->nodes.items[0]))
        vector_push(&f->items, ((struct fold_item){0, false}));
    for (uint32_t id = f->flame->nodes.items[parent].first_child; id;
         id = f->flame->nodes.items[id].next) {
        const struct flame_node *node = &f->flame->nodes.items[id];
        if (has_line(f, node))
            vector_push(&f->items, ((struct fold_item){id, false}));
        if (node->first_child)
            vector_push(&f->items, ((struct fold_item){id, true}));
    }
    size_t count = f->items.count - first;
    if (count == 0)
        return;
    struct fold_item *items = f->items.items + first;
    for (size_t i = 1; sorted && i < count; i++)
        sorted = items[i - 1].node == items[i].node || item_order(&items[i - 1], &items[i], f) <= 0;
    if (!sorted)
        qsort_r(items, count, sizeof *items, item_order, f);
    reverse(items, count);
}

/* A name that would break its line must not. Naming has seen to it already, but a flame may come from elsewhere. */
static void add_name(struct buffer *buffer, struct text name) {
    size_t start = buffer->count;
    buffer_add(buffer, name);
    if (text_find(name, '\n') == SIZE_MAX && text_find(name, ';') == SIZE_MAX)
        return;
    for (size_t i = start; i < buffer->count; i++) {
        char c = buffer->items[i];
        buffer->items[i] = c == '\n' ? ' ' : c == ';' ? ':' : c;
    }
}

static void fold_line(struct fold *f, struct fold_item item) {
    char tail[48];
    size_t length = f->stack.count, tail_length = item_tail(f, item, tail);
    add_name(&f->stack, item_name(f, item.node));
    buffer_add(&f->stack, (struct text){tail, tail_length});
    buffer_add_char(&f->stack, '\n');
    out_write(f->out, f->stack.items, f->stack.count);
    f->stack.count = length;
}

/* Down into `node`: the stack is cut back to its parent's depth and its name put on it. */
static void fold_enter(struct fold *f, uint32_t node) {
    uint32_t depth = f->flame->nodes.items[node].depth;
    f->lengths.count = depth;
    f->stack.count = f->lengths.items[depth - 1];
    add_name(&f->stack, flame_name(f->flame, node));
    buffer_add_char(&f->stack, ';');
    vector_push(&f->lengths, f->stack.count);
    fold_children(f, node);
}

uint64_t fold_size(const struct flame *flame) {
    enum { COUNTS = 21 }; /* a space and twenty digits at most; of a diff twice */
    uint64_t *lengths = memory_zero(flame->nodes.count, sizeof *lengths), size = 0;
    for (size_t i = 1; i < flame->nodes.count; i++) {
        const struct flame_node *node = &flame->nodes.items[i];
        lengths[i] = saturating_add(lengths[node->parent],
                                    strings_get(flame->strings, node->name).length + 1);
        if (node->self || node->self_before || node->counted)
            size =
                saturating_add(size, saturating_add(lengths[i], COUNTS + flame->is_diff * COUNTS));
    }
    free(lengths);
    return size;
}

void fold_write(struct out *out, const struct flame *flame, const struct fold_options *options) {
    struct fold f = {.out = out, .flame = flame, .options = options};
    vector_push(&f.lengths, 0);
    fold_children(&f, 0);
    while (f.items.count && !out_closed(out) && !context_cancelled(options->context)) {
        struct fold_item item = f.items.items[--f.items.count];
        if (item.below) {
            fold_enter(&f, item.node);
            continue;
        }
        f.lengths.count = item.node ? flame->nodes.items[item.node].depth : 1;
        f.stack.count = f.lengths.items[f.lengths.count - 1];
        fold_line(&f, item);
    }
    vector_release(&f.items);
    vector_release(&f.lengths);
    buffer_release(&f.stack);
}
