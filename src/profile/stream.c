/*
 * Read a recording in windows: one perf.data after the other, each of which continues where the last one ended.
 *
 * Objects are kept: what was opened and computed for one window is reused for the next. Spaces, mount namespaces and labels begin with their state
 * at the end of the last window. When more objects are dead than alive, the live ones move to a new table, so that memory depends on what is alive.
 */
#include "profile/stream.h"

#include <stdlib.h>

enum { OBJECTS_SPARE = 4096 };

struct profile_stream {
    struct profile_options options;
    struct objects_options object_options;
    struct ongoing state;
};

struct profile_stream *profile_stream_new(const struct profile_options *options) {
    assert(!options->quirks.threads_by_tid && !options->quirks.lines_decide);
    struct profile_stream *stream = memory_zero(1, sizeof *stream);
    stream->options = *options;
    stream->object_options = profile_object_options(options);
    return stream;
}

static void state_release(struct ongoing *state) {
    if (state->spaces)
        spaces_free(state->spaces);
    strings_free(state->strings);
    strings_free(state->label_texts);
    mounts_release(&state->mounts);
    vector_release(&state->labels);
}

void profile_stream_free(struct profile_stream *stream) {
    if (!stream)
        return;
    state_release(&stream->state);
    objects_free(stream->state.objects);
    free(stream);
}

/* ---- from one window to the next ---- */

struct passing_on {
    const struct ongoing *from;
    struct ongoing *to;
    struct tree *tree;
    uint32_t *objects; /* by old number; NULL: they stay */
};

static uint32_t pass_comm(void *context, uint32_t comm) {
    struct passing_on *p = context;
    return strings_add(p->tree->strings, strings_get(p->from->strings, comm));
}

static uint32_t pass_object(void *context, uint32_t object) {
    struct passing_on *p = context;
    if (!p->objects || !object)
        return object;
    if (!p->objects[object])
        p->objects[object] = objects_copy(p->to->objects, p->from->objects, object);
    return p->objects[object];
}

/* Of processes that are still there: their first threads are. */
static void pass_mounts(struct passing_on *p) {
    for (uint32_t i = 0; i < spaces_thread_count(p->to->spaces); i++) {
        const struct space_thread *thread = spaces_thread(p->to->spaces, i);
        const struct mount *mount =
            thread->pid == thread->tid ? mount_find(&p->from->mounts, thread->pid) : NULL;
        if (mount)
            mount_set(&p->to->mounts, thread->pid, mount->inode);
    }
}

/* Whether it is time to let go of objects that nothing has mapped any more. */
static bool is_crowded(const struct ongoing *state) {
    return objects_count(state->objects) > 2 * state->objects_before + OBJECTS_SPARE;
}

static void pass_on(struct profile_stream *stream, struct tree *tree) {
    struct ongoing from = stream->state;
    struct ongoing to = {.objects = from.objects,
                         .objects_before = from.objects_before,
                         .newest = from.newest,
                         .labels = from.labels,
                         .label_texts = from.label_texts};
    struct passing_on p = {.from = &from, .to = &to, .tree = tree};
    bool crowded = is_crowded(&from) || from.renew_objects;
    if (crowded) {
        to.objects = objects_new(&stream->object_options);
        p.objects = memory_zero(objects_count(from.objects) + 1, sizeof *p.objects);
    }
    struct space_translation translation = {pass_comm, pass_object, &p};
    to.spaces = spaces_continue(from.spaces, from.began, &translation);
    pass_mounts(&p);
    if (crowded) {
        objects_free(from.objects);
        free(p.objects);
        to.objects_before = objects_count(to.objects);
    }
    spaces_free(from.spaces);
    strings_free(from.strings);
    mounts_release(&from.mounts);
    stream->state = to;
}

/* ---- labels ---- */

/* Keep the labels of each live process as text, because the sets belong to the tree, which is freed. */
static void keep_labels(struct ongoing *state, const struct reading *reading) {
    const struct tree *tree = reading->profile->tree;
    struct buffer text = {0};
    state->labels.count = 0;
    strings_free(state->label_texts);
    state->label_texts = strings_new();
    for (uint32_t i = 0; i < spaces_thread_count(state->spaces); i++) {
        const struct space_thread *thread = spaces_thread(state->spaces, i);
        uint32_t set = thread->pid == thread->tid && thread->end == UINT64_MAX
                           ? labels_latest(&reading->labels, thread->pid)
                           : 0;
        if (!set)
            continue;
        labels_print(tree, set, &text);
        struct kept_labels kept = {thread->pid,
                                   strings_add(state->label_texts, buffer_text(&text))};
        vector_push(&state->labels, kept);
    }
    buffer_release(&text);
}

void ongoing_begin(const struct ongoing *state, struct reading *reading) {
    reading->mounts = state->mounts;
    for (size_t i = 0; i < state->labels.count; i++) {
        const struct kept_labels *kept = &state->labels.items[i];
        uint64_t key[] = {(uint32_t)kept->pid, 0};
        labels_add(&reading->labels, reading->profile->tree,
                   (struct text){(const char *)key, sizeof key},
                   strings_get(state->label_texts, kept->text));
    }
}

void ongoing_end(struct ongoing *state, struct reading *reading) {
    state->renew_objects = reading->objects_changed;
    state->mounts = reading->mounts;
    reading->mounts = (struct mounts){0};
    state->strings = strings_share(reading->profile->tree->strings);
    state->began = state->newest;
    if (reading->newest > state->newest)
        state->newest = reading->newest;
    keep_labels(state, reading);
}

void profile_stream_renew(struct profile_stream *stream) {
    stream->state.renew_objects = true;
}

/* ---- one window ---- */

struct profile *profile_stream_next(struct profile_stream *stream, const struct file *file,
                                    struct error *error) {
    struct ongoing *state = &stream->state;
    struct tree *tree = tree_new();
    if (!state->objects)
        state->objects = objects_new(&stream->object_options);
    if (state->spaces)
        pass_on(stream, tree);
    else
        state->spaces = spaces_new(NULL);
    struct profile *profile = profile_read_ongoing(file, &stream->options, state, tree, error);
    if (profile) {
        objects_detach(state->objects);
        objects_let_go_of_pages(state->objects);
        return profile;
    }
    struct objects *objects = state->objects; /* nothing of it can be relied on */
    state_release(state);
    objects_free(objects);
    *state = (struct ongoing){0};
    return NULL;
}
