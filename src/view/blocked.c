/*
 * Waits by the function that blocked. Every wait ends in the scheduler, which tells nothing: what matters is the last function outside the kernel, and
 * the system call, page fault or preemption in which it waits.
 */
#include "view/blocked.h"

#include <stdlib.h>

/* The frames by which the kernel puts any thread to sleep say nothing. */
static bool is_scheduling(struct text name) {
    return text_search(name, TEXT("schedule")) != SIZE_MAX || text_equal(name, TEXT("__switch_to"));
}

/* The name of the system call that such a frame carries out, or what else made the thread wait, or nothing. */
static struct text reason_of(struct text name) {
    static const struct text prefixes[] = {TEXT("__x64_sys_"), TEXT("__arm64_sys_"),
                                           TEXT("__ia32_sys_"), TEXT("__se_sys_"),
                                           TEXT("__do_sys_")};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++)
        if (text_starts(name, prefixes[i]))
            return text_from(name, prefixes[i].length);
    if (text_search(name, TEXT("page_fault")) != SIZE_MAX)
        return TEXT("page fault");
    bool returning = text_search(name, TEXT("exit_to_user_mode")) != SIZE_MAX;
    return returning || text_search(name, TEXT("preempt")) != SIZE_MAX ? TEXT("preempted")
                                                                       : TEXT("");
}

/* Where a wait that ends at a node came from: the last frame outside the kernel, and why it waits. */
struct blocked {
    uint32_t owner; /* 0: a thread of the kernel's own */
    struct text reason;
    struct text innermost; /* of the kernel's frames, but for those that every wait has */
};

static struct blocked blocked_at(const struct flame *flame, uint32_t node) {
    struct blocked found = {0};
    for (; node && !found.owner; node = flame->nodes.items[node].parent) {
        const struct flame_node *n = &flame->nodes.items[node];
        struct text name = name_unmarked(flame_name(flame, node));
        if (n->kinds & KIND_WAKER)
            continue;
        if (n->kinds & KIND_ROOT)
            break;
        if (!(n->kinds & KIND_KERNEL)) {
            found.owner = node;
            break;
        }
        if (reason_of(name).length)
            found.reason = reason_of(name);
        if (!found.innermost.length && !is_scheduling(name))
            found.innermost = name;
    }
    return found;
}

uint32_t blocked_add(struct buffer *name, const struct flame *flame, uint32_t node) {
    struct blocked b = blocked_at(flame, node);
    struct text reason = b.reason.length ? b.reason : b.innermost;
    if (!b.owner) {
        buffer_add(name, reason.length ? reason : TEXT("[kernel]"));
        return 0;
    }
    buffer_add(name, flame_name(flame, b.owner));
    if (reason.length)
        buffer_printf(name, " [%.*s]", TEXT_ARGS(reason));
    return b.owner;
}

/* ---- a flame of them ---- */

struct blocking {
    const struct flame *from;
    struct flame *to;
    struct buffer name;
    VECTOR(uint32_t) path; /* from the leaf outwards */
};

static struct label label_of(struct blocking *b, struct text name, const struct flame_node *node) {
    struct text object = strings_get(b->from->strings, node->object);
    return (struct label){strings_add(b->to->strings, name),
                          object.length ? strings_add(b->to->strings, object) : 0, node->kinds};
}

/* The path of a stack that ran. */
static uint32_t copy_stack(struct blocking *b, uint32_t node) {
    uint32_t at = 0;
    b->path.count = 0;
    for (uint32_t n = node; n; n = b->from->nodes.items[n].parent)
        vector_push(&b->path, n);
    for (size_t i = b->path.count; i-- > 0;) {
        uint32_t frame = b->path.items[i];
        struct label label = label_of(b, flame_name(b->from, frame), &b->from->nodes.items[frame]);
        at = flame_child(b->to, at, &label);
    }
    return at;
}

/* Add the stack that ends at a node without its kernel frames; its last frame is the function that waited. */
static uint32_t move_stack(struct blocking *b, uint32_t node) {
    const struct flame_node *nodes = b->from->nodes.items;
    uint32_t at = 0, owner, leaf = node;
    b->name.count = 0;
    owner = blocked_add(&b->name, b->from, node);
    b->path.count = 0;
    if (owner)
        leaf = owner;
    for (uint32_t n = nodes[leaf].parent; n; n = nodes[n].parent)
        if (!(nodes[n].kinds & (KIND_KERNEL | KIND_WAKER)) || nodes[n].kinds & KIND_ROOT)
            vector_push(&b->path, n);
    for (size_t i = b->path.count; i-- > 0;) {
        const struct flame_node *frame = &nodes[b->path.items[i]];
        struct label label = label_of(b, flame_name(b->from, b->path.items[i]), frame);
        at = flame_child(b->to, at, &label);
    }
    if (nodes[leaf].kinds & KIND_ROOT) { /* a stack without a frame */
        struct label root = label_of(b, flame_name(b->from, leaf), &nodes[leaf]);
        return flame_child(b->to, at, &root);
    }
    struct label last = label_of(b, buffer_text(&b->name), &nodes[leaf]);
    return flame_child(b->to, at, &last);
}

static void add_self(struct blocking *b, uint32_t node, uint64_t amount) {
    uint64_t *self = &b->to->nodes.items[node].self;
    *self = saturating_add(*self, amount);
}

struct flame *flame_of_blocked(const struct flame *flame, struct error *error) {
    struct blocking b = {.from = flame, .to = flame_new()};
    b.to->unit = strings_add(b.to->strings, strings_get(flame->strings, flame->unit));
    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        uint64_t self = flame->nodes.items[i].self,
                 waited = flame->has_waits ? flame->nodes.items[i].self_before : self;
        if (waited)
            add_self(&b, move_stack(&b, i), waited);
        if (self > waited)
            add_self(&b, copy_stack(&b, i), self - waited);
    }
    buffer_release(&b.name);
    vector_release(&b.path);
    if (flame_finish(b.to, error))
        return b.to;
    flame_free(b.to);
    return NULL;
}
