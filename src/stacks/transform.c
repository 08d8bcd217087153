/*
 * Reduce a flame: choose stacks by the functions in them, hide frames, drop callers.
 *
 * All of this is one map from the nodes of a flame to those of a new one. Parents come before their children, so three passes are enough: one to
 * find what each node's stack contains, one, backwards, to find whether a kept stack ends below it, and one to place it. Patterns are matched once
 * for each distinct name.
 */
#include "stacks/flame.h"
#include "stacks/pattern.h"

#include <stdlib.h>

void stack_rules_release(struct stack_rules *rules) {
    pattern_list *lists[] = {&rules->focus, &rules->ignore, &rules->hide, &rules->root};
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        for (size_t k = 0; k < lists[i]->count; k++)
            pattern_free(lists[i]->items[k]);
        vector_release(lists[i]);
    }
}

bool stack_rules_set(const struct stack_rules *rules) {
    return rules && (rules->focus.count || rules->ignore.count || rules->hide.count ||
                     rules->root.count || rules->kernel_only || rules->user_only);
}

bool stack_rules_exact(const struct stack_rules *rules) {
    const pattern_list *lists[] = {&rules->focus, &rules->ignore, &rules->hide, &rules->root};
    bool exact = !rules->kernel_only && !rules->user_only;
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (size_t k = 0; k < lists[i]->count; k++)
            exact &= pattern_is_exact(lists[i]->items[k]);
    return exact;
}

void stack_rules_add(struct buffer *text, const struct stack_rules *rules) {
    const struct {
        const pattern_list *list;
        const char *exact, *option;
    } all[] = {{&rules->focus, "with", "focus"},
               {&rules->ignore, "without", "ignore"},
               {&rules->hide, "hide", "hide"},
               {&rules->root, "base", "root"}};
    size_t start = text->count;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (size_t k = 0; k < all[i].list->count; k++) {
            const struct pattern *pattern = all[i].list->items[k];
            buffer_printf(text, "%s--%s %s", text->count > start ? " " : "",
                          pattern_is_exact(pattern) ? all[i].exact : all[i].option,
                          pattern_text(pattern));
        }
    if (rules->kernel_only || rules->user_only)
        buffer_printf(text, "%s--%s-only", text->count > start ? " " : "",
                      rules->kernel_only ? "kernel" : "user");
}

bool stack_rules_fail(const struct stack_rules *rules, const char *what, struct error *error) {
    struct buffer text = {0};
    if (!stack_rules_set(rules))
        return error_set(error, ERROR_INPUT, "%s", what);
    stack_rules_add(&text, rules);
    error_set(error, ERROR_INPUT, "%s: no stack passes %.*s", what, TEXT_ARGS(buffer_text(&text)));
    buffer_release(&text);
    return false;
}

/* What a name says of a frame, and what the frames up to it say of a stack. */
enum {
    IN_FOCUS = 1,
    IGNORED = 2,
    ROOTED = 4,
    HIDDEN = 8,
    KNOWN = 16,  /* the name was looked at */
    STARTS = 32, /* of a node: it becomes a root */
    DRAWN = 64,  /* of a node: a stack that is kept ends there or below */
};

struct transform {
    const struct stack_rules *rules;
    const struct transform_options *options;
    const struct flame *from;
    struct flame *to;
    struct matcher *matcher;
    uint8_t *names;          /* by string */
    uint8_t *nodes;          /* by node of `from` */
    VECTOR(uint32_t) frames; /* by node of `to`: how many lead to it, root labels not counted */
};

/* ---- names ---- */

static bool name_has(struct transform *t, const pattern_list *patterns, struct text name,
                     uint8_t *bits, uint8_t bit, struct error *error) {
    for (size_t i = 0; i < patterns->count && !(*bits & bit); i++) {
        bool found;
        if (!matcher_find(t->matcher, patterns->items[i], name, &found, error))
            return false;
        *bits |= found ? bit : 0;
    }
    return true;
}

static uint32_t name_of(const struct transform *t, uint32_t node) {
    uint32_t name = t->from->nodes.items[node].name;
    return t->options->names ? t->options->names[name] : name;
}

static bool name_look(struct transform *t, uint32_t id, struct error *error) {
    uint8_t bits = KNOWN;
    struct text name = strings_get(t->from->strings, id);
    bool fine = name_has(t, &t->rules->focus, name, &bits, IN_FOCUS, error) &&
                name_has(t, &t->rules->ignore, name, &bits, IGNORED, error) &&
                name_has(t, &t->rules->hide, name, &bits, HIDDEN, error) &&
                name_has(t, &t->rules->root, name, &bits, ROOTED, error);
    t->names[id] = bits;
    return fine;
}

/* ---- nodes ---- */

static bool is_left_out(const struct stack_rules *rules, uint32_t kinds) {
    bool is_kernel = kinds & KIND_KERNEL;
    return !(kinds & KIND_ROOT) &&
           ((rules->kernel_only && !is_kernel) || (rules->user_only && is_kernel));
}

static bool look_down(struct transform *t, struct error *error) {
    for (uint32_t i = 1; i < t->from->nodes.count; i++) {
        const struct flame_node *node = &t->from->nodes.items[i];
        uint32_t name = name_of(t, i);
        if (!t->names[name] && !name_look(t, name, error))
            return false;
        uint8_t above = t->nodes[node->parent] & (IN_FOCUS | IGNORED | ROOTED);
        uint8_t own = t->names[name] & (IN_FOCUS | IGNORED | ROOTED | HIDDEN);
        t->nodes[i] = above | own | (own & ROOTED ? STARTS : 0) |
                      (is_left_out(t->rules, node->kinds) ? HIDDEN : 0);
    }
    return true;
}

static bool is_kept(const struct transform *t, uint32_t node) {
    uint8_t holds = t->nodes[node];
    return !(holds & IGNORED) && (!t->rules->focus.count || holds & IN_FOCUS) &&
           (!t->rules->root.count || holds & ROOTED);
}

static void look_up(struct transform *t) {
    for (uint32_t i = (uint32_t)t->from->nodes.count; i-- > 0;) {
        if (t->options->ends[i] && is_kept(t, i))
            t->nodes[i] |= DRAWN;
        t->nodes[t->from->nodes.items[i].parent] |= t->nodes[i] & DRAWN;
    }
}

/* ---- the new flame ---- */

/* Whether the frame is left out below a node of the new flame: hidden, recursion folded, or too deep. */
static bool is_skipped(const struct transform *t, uint32_t node, uint32_t over) {
    const struct flame_options *shape = t->options->shape;
    uint32_t frames = t->frames.items[over];
    if (t->nodes[node] & HIDDEN)
        return true;
    if (t->from->nodes.items[node].kinds & KIND_ROOT)
        return false;
    uint32_t last = t->to->nodes.items[over].name;
    last = t->options->names ? t->options->names[last] : last;
    return (shape->fold_recursion && frames && last == name_of(t, node)) ||
           (shape->max_depth && frames >= shape->max_depth);
}

static uint32_t put(struct transform *t, uint32_t node, uint32_t over) {
    const struct flame_node *from = &t->from->nodes.items[node];
    struct label label = {from->name, from->object, from->kinds};
    uint32_t at =
        t->options->is_chart ? flame_append(t->to, over, &label) : flame_child(t->to, over, &label);
    if (at == t->frames.count)
        vector_push(&t->frames, t->frames.items[over] + !(from->kinds & KIND_ROOT));
    return at;
}

static void put_all(struct transform *t, uint32_t *moved) {
    bool some_kind = t->rules->kernel_only || t->rules->user_only;
    uint32_t *at = memory_zero(t->from->nodes.count, sizeof *at);
    vector_push(&t->frames, 0);
    for (uint32_t i = 0; i < t->from->nodes.count; i++) {
        bool is_below = !t->rules->root.count || t->nodes[i] & ROOTED;
        uint32_t over = t->nodes[i] & STARTS ? 0 : at[t->from->nodes.items[i].parent];
        bool is_drawn = i && t->nodes[i] & DRAWN && is_below;
        at[i] = is_drawn && !is_skipped(t, i, over) ? put(t, i, over) : over;
        bool is_gone = !is_kept(t, i) || (some_kind && !t->frames.items[at[i]]);
        moved[i] = is_gone ? STACK_DROPPED : at[i];
    }
    free(at);
}

struct flame *flame_transform(const struct flame *from, const struct transform_options *options,
                              uint32_t *moved, struct error *error) {
    struct transform t = {.rules = options->shape->rules,
                          .options = options,
                          .from = from,
                          .to = flame_of_strings(strings_share(from->strings)),
                          .matcher = matcher_new()};
    t.names = memory_zero(strings_count(from->strings) + 1, sizeof *t.names);
    t.nodes = memory_zero(from->nodes.count, sizeof *t.nodes);
    bool fine = look_down(&t, error);
    if (fine) {
        look_up(&t);
        put_all(&t, moved);
    } else {
        flame_free(t.to);
    }
    matcher_free(t.matcher);
    vector_release(&t.frames);
    free(t.names);
    free(t.nodes);
    return fine ? t.to : NULL;
}

struct flame *flame_chosen(struct flame *from, const struct flame_options *shape, bool is_chart,
                           struct error *error) {
    size_t count = from->nodes.count;
    uint8_t *ends = memory_zero(count, sizeof *ends);
    uint32_t *moved = memory_zero(count, sizeof *moved);
    for (size_t i = 0; i < count; i++)
        ends[i] = from->nodes.items[i].self || from->nodes.items[i].self_before;
    struct transform_options options = {.shape = shape, .ends = ends, .is_chart = is_chart};
    struct flame *to = flame_transform(from, &options, moved, error);
    for (size_t i = 0; to && i < count; i++)
        if (ends[i] && moved[i] != STACK_DROPPED)
            flame_node_add(&to->nodes.items[moved[i]], &from->nodes.items[i]);
    if (to) {
        to->is_diff = from->is_diff;
        to->unit = from->unit;
    }
    flame_free(from);
    free(ends);
    free(moved);
    return to;
}
