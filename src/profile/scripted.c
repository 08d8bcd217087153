/*
 * Read the recording's stacks of interpreters: functions with numbers, and for each thread a sequence of stacks, each encoded as its difference
 * from the previous one.
 */
#include "profile/scripted.h"

#include <stdlib.h>

#include "interpreter/layout.h"

static const struct note_kind note_damaged = {
    "interpreted-damaged",
    "# part{|s} of the interpreters' stacks {is|are} damaged and {was|were} skipped"};

enum { HEAD = 24, FRAME = 16, NUMBERS_MOST = 1 << 22, FRAMES_MOST = (1 << 30) - 1 };

/* ---- functions ---- */

static bool take_string(struct text *rest, struct text *string) {
    size_t end = text_find(*rest, 0);
    if (end == SIZE_MAX)
        return false;
    *string = text_upto(*rest, end);
    *rest = text_from(*rest, end + 1);
    return true;
}

static uint32_t string_of(struct tree *tree, struct text t) {
    return t.length ? strings_add(tree->strings, t) : 0;
}

static bool take_function(struct scripted *all, struct tree *tree, struct text *rest) {
    struct text language, name, file, module;
    if (rest->length < 8)
        return false;
    uint32_t number = load_u32(rest->data), line = load_u32(rest->data + 4);
    *rest = text_from(*rest, 8);
    if (!take_string(rest, &language) || !take_string(rest, &name) || !take_string(rest, &file) ||
        !take_string(rest, &module) || !name.length || number > NUMBERS_MOST)
        return false;
    while (all->functions.count <= number) {
        vector_push(&all->functions, 0);
        vector_push(&all->languages, 0);
    }
    struct function function = {.name = string_of(tree, name),
                                .file = string_of(tree, file),
                                .line = line,
                                .module = string_of(tree, module),
                                .language = string_of(tree, language)};
    all->functions.items[number] = tree_add_function(tree, &function);
    all->languages.items[number] = function.language;
    return true;
}

/* Made where there is Python, whose threads take turns. */
static void add_lock_wait(struct scripted *all, struct tree *tree) {
    uint32_t python = strings_find(tree->strings, TEXT("python"));
    for (size_t i = 0; python && !all->lock_wait && i < all->languages.count; i++) {
        struct function function = {.name = string_of(tree, TEXT("[waiting for the GIL]")),
                                    .language = python};
        if (all->languages.items[i] == python)
            all->lock_wait = tree_add_function(tree, &function);
    }
}

/* ---- stacks ---- */

/* The frames of a thread's last stack, outermost first. */
struct last_stack {
    uint32_t tid;
    VECTOR(uint32_t) frames;
};

struct taking {
    struct scripted *all;
    VECTOR(struct last_stack) last;
    struct index by_tid;    /* of them: numbers are places + 1 */
    struct index by_caller; /* of all frames */
};

static struct last_stack *last_of(struct taking *t, uint32_t tid) {
    uint64_t hash = hash_mix(tid, 7);
    uint32_t number;
    for (struct probe p = index_probe(&t->by_tid, hash); (number = index_next(&t->by_tid, &p));)
        if (t->last.items[number - 1].tid == tid)
            return &t->last.items[number - 1];
    vector_push(&t->last, ((struct last_stack){.tid = tid}));
    index_add(&t->by_tid, hash, (uint32_t)t->last.count);
    return &t->last.items[t->last.count - 1];
}

static void forget_last(struct taking *t) {
    for (size_t i = 0; i < t->last.count; i++)
        vector_release(&t->last.items[i].frames);
    vector_release(&t->last);
    index_release(&t->by_tid);
}

static bool same_frame(const struct scripted_frame *a, const struct scripted_frame *b) {
    return a->caller == b->caller && a->function == b->function && a->line == b->line &&
           a->language == b->language && a->address == b->address;
}

static uint32_t frame_add(struct taking *t, const struct scripted_frame *frame) {
    struct scripted *all = t->all;
    uint64_t hash = hash_mix(hash_mix(frame->address, frame->caller),
                             (uint64_t)frame->function << 32 | frame->line);
    uint32_t id;
    for (struct probe p = index_probe(&t->by_caller, hash); (id = index_next(&t->by_caller, &p));)
        if (same_frame(&all->frames.items[id], frame))
            return id;
    id = (uint32_t)all->frames.count;
    vector_push(&all->frames, *frame);
    index_add(&t->by_caller, hash, id);
    return id;
}

static bool take_stack(struct taking *t, struct text *rest) {
    struct scripted *all = t->all;
    if (rest->length < HEAD)
        return false;
    const char *p = rest->data;
    struct scripted_stack stack = {.time = load_u64(p), .tid = load_u32(p + 12)};
    uint32_t shared = load_u32(p + 20) >> 16, count = load_u32(p + 20) & 0xffff;
    stack.is_whole = load_u32(p + 16) == STACK_WHOLE;
    stack.is_deep = load_u32(p + 16) == STACK_DEEP;
    struct last_stack *last = last_of(t, stack.tid);
    if (shared > last->frames.count || count > (rest->length - HEAD) / FRAME ||
        all->frames.count + count > FRAMES_MOST)
        return false;
    last->frames.count = shared;
    for (uint32_t i = 0; i < count; i++) {
        p = rest->data + HEAD + (size_t)i * FRAME;
        uint32_t number = load_u32(p);
        bool known = number < all->functions.count;
        struct scripted_frame frame = {
            .caller = last->frames.count ? last->frames.items[last->frames.count - 1] : 0,
            .function = known ? all->functions.items[number] : 0,
            .language = known ? all->languages.items[number] : 0,
            .line = load_u32(p + 4),
            .address = load_u64(p + 8)};
        uint32_t id = frame_add(t, &frame);
        vector_push(&last->frames, id);
    }
    *rest = text_from(*rest, HEAD + (size_t)count * FRAME);
    stack.leaf = last->frames.count ? last->frames.items[last->frames.count - 1] : 0;
    vector_push(&all->stacks, stack);
    return true;
}

static int by_thread(const void *left, const void *right) {
    const struct scripted_stack *a = left, *b = right;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return (a->time > b->time) - (a->time < b->time);
}

/* ---- all ---- */

struct scripted *scripted_read(const struct carried *carried, struct tree *tree) {
    struct buffer bytes = {0};
    struct scripted *all = memory_zero(1, sizeof *all);
    struct taking taking = {.all = all};
    vector_push(&all->frames, ((struct scripted_frame){0}));
    for (uint32_t i = 0; carried_read(carried, CARRIER_FUNCTIONS, &i, &bytes);)
        for (struct text rest = buffer_text(&bytes); rest.length;)
            if (!take_function(all, tree, &rest)) {
                notes_add(&tree->notes, &note_damaged, 1, 0, NULL);
                break;
            }
    add_lock_wait(all, tree);
    for (uint32_t i = 0; carried_read(carried, CARRIER_STACKS, &i, &bytes); forget_last(&taking))
        for (struct text rest = buffer_text(&bytes); rest.length;)
            if (!take_stack(&taking, &rest)) {
                notes_add(&tree->notes, &note_damaged, 1, 0, NULL);
                break;
            }
    buffer_release(&bytes);
    index_release(&taking.by_caller);
    if (all->stacks.count) {
        qsort(all->stacks.items, all->stacks.count, sizeof *all->stacks.items, by_thread);
        return all;
    }
    scripted_free(all);
    return NULL;
}

void scripted_free(struct scripted *all) {
    if (!all)
        return;
    vector_release(&all->frames);
    vector_release(&all->stacks);
    vector_release(&all->functions);
    vector_release(&all->languages);
    free(all);
}

static uint64_t distance(uint64_t a, uint64_t b) {
    return a < b ? b - a : a - b;
}

/* It was taken some microseconds before the sample got its time, or after: that depends on the kernel. */
const struct scripted_stack *scripted_find(const struct scripted *all, int32_t tid, uint64_t time) {
    enum { APART_MOST = 500000 /* nanoseconds */ };
    const struct scripted_stack *stacks = all->stacks.items, *found = NULL;
    uint32_t id = (uint32_t)tid;
    size_t after =
        search_first(i, 0, all->stacks.count,
                     stacks[i].tid < id || (stacks[i].tid == id && stacks[i].time < time));
    for (size_t i = after ? after - 1 : 0; i <= after && i < all->stacks.count; i++)
        if (stacks[i].tid == id && distance(stacks[i].time, time) <= APART_MOST &&
            (!found || distance(stacks[i].time, time) < distance(found->time, time)))
            found = &stacks[i];
    return found;
}
