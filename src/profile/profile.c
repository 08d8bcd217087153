/*
 * Read a recording: run the passes in order, then add the notes.
 */
#include "profile/profile.h"

#include <stdlib.h>

#include "profile/blocks.h"
#include "profile/memories.h"
#include "profile/scripted.h"
#include "profile/stream.h"
#include "profile/waits.h"

static const struct note_kind note_cut = {
    "cut", "the recording is cut short; everything before the cut is used"};
static const struct note_kind note_interrupted = {
    "interrupted", "interrupted: only what was read until then is shown"};
static const struct note_kind note_shrank = {
    "shrank", "# file{ was|s were} cut short while in use: names from there may be wrong"};

void profile_free(struct profile *profile) {
    if (!profile)
        return;
    paging_end(profile->paging); /* before its file may be gone */
    tree_free(profile->tree);
    if (profile->objects && !profile->is_window)
        objects_free(profile->objects);
    if (profile->spaces && !profile->is_window)
        spaces_free(profile->spaces);
    if (profile->data)
        perfdata_free(profile->data);
    carried_free(profile->carried);
    free(profile->event_names);
    free(profile->heap);
    free(profile);
}

/* The tree's threads are the spaces', in the same order, from 1 on. */
static void profile_add_threads(struct profile *profile) {
    for (uint32_t i = 0; i < spaces_thread_count(profile->spaces); i++) {
        const struct space_thread *thread = spaces_thread(profile->spaces, i);
        struct thread copy = {
            .pid = thread->pid, .tid = thread->tid, .start = thread->start, .end = thread->end};
        tree_add_thread(profile->tree, &copy);
    }
}

/* Names may hold any byte, and perf prints them as they are: a line end in one makes two lines of one. */
static bool breaks_lines(const struct profile *profile) {
    for (uint32_t i = 1; i <= strings_count(profile->tree->strings); i++)
        if (text_find(strings_get(profile->tree->strings, i), '\n') != SIZE_MAX)
            return true;
    for (uint32_t i = 1; i <= objects_count(profile->objects); i++)
        if (text_find(objects_shown(profile->objects, i), '\n') != SIZE_MAX)
            return true;
    return false;
}

/* Any user can cut a file short. A recording that is read later can be read again, but a window can't: it is used, and the next one opens
   files again. */
static bool objects_held(struct reading *reading, struct error *error) {
    struct error why;
    if (!reading->is_ongoing)
        return !objects_changed(reading->profile->objects, error);
    reading->objects_changed = objects_changed(reading->profile->objects, &why);
    if (reading->objects_changed)
        notes_add(&reading->profile->tree->notes, &note_shrank, 1, 0, "%s", why.message);
    return true;
}

static bool profile_passes(struct reading *reading, struct error *error) {
    struct profile *profile = reading->profile;
    if (!reading_pass1(reading, error) || !reading_choose_events(reading, error))
        return false;
    if (profile->needs_text)
        return true;
    if (reading->waits)
        waits_pair(reading->waits);
    if (reading->blocks)
        blocks_pair(reading->blocks);
    profile_add_threads(profile);
    if (reading->kernel_seen && !reading->options->no_names)
        objects_prefetch_kernel(profile->objects);
    if (!reading_pass2(reading, error))
        return false;
    reading_find_kernel(reading);
    if (reading->waits && reading->options->wakers)
        waits_add_wakers(reading->waits);
    if (reading->waits)
        waits_add_untold(reading->waits);
    reading_note_endings(reading);
    if (profile->data->is_cut)
        notes_add(&profile->tree->notes, &note_cut, 1, 0, "%s: byte %llu",
                  profile->data->source->path, (unsigned long long)profile->data->cut);
    if (context_cancelled(reading->options->context))
        notes_add(&profile->tree->notes, &note_interrupted, 1, 0, NULL);
    if (profile->tree->keep_samples)
        tree_sort_samples(profile->tree);
    if (!reading->options->no_names)
        profile_resolve(profile->tree, profile->objects, reading->options);
    profile->needs_text = reading->options->quirks.lines_decide && breaks_lines(profile);
    notes_merge(&profile->tree->notes, &profile->data->notes);
    return !perfdata_changed(profile->data, error) && objects_held(reading, error);
}

/* Names of inlined functions in unwound stacks depend on the order of samples, in perf and so in inferno: addr2line.h. */
static bool names_follow_samples(const struct perfdata *data) {
    for (size_t i = 0; i < data->events.count; i++)
        if (data->events.items[i].sample_type & PERF_SAMPLE_STACK_USER)
            return true;
    return false;
}

struct objects_options profile_object_options(const struct profile_options *options) {
    struct objects_options objects = options->objects;
    objects.lines = options->source_lines;
    objects.context = options->context;
    return objects;
}

static void reading_release(struct reading *reading) {
    vector_release(&reading->pieces);
    vector_release(&reading->deferred);
    vector_release(&reading->events);
    vector_release(&reading->costs);
    vector_release(&reading->counted);
    free(reading->counter_values);
    waits_free(reading->waits);
    blocks_free(reading->blocks);
    scripted_free(reading->scripted);
    memories_free(reading->memories);
    vector_release(&reading->round_offsets);
    vector_release(&reading->round_limits);
    index_release(&reading->build_ids);
    labels_release(&reading->labels);
    mounts_release(&reading->mounts);
    made_release(&reading->made);
    java_free(reading->java);
}

/* When it began by the calendar, if the recording knows its own clock's place in it. */
static void find_time(struct profile *profile) {
    const struct perfdata *data = profile->data;
    uint64_t from = data->first_sample, to = data->last_sample, began;
    if (!from || to < from)
        return;
    profile->tree->lasted = to - from;
    if (!data->clock_day || !checked_add(data->clock_day, from, &began) || began < data->clock_own)
        return;
    began -= data->clock_own;
    if (began <= INT64_MAX)
        profile->tree->began = began;
}

static bool read_data(struct profile *profile, const struct profile_options *options,
                      struct ongoing *state, struct error *error) {
    struct objects_options object_options = profile_object_options(options);
    object_options.recorded_until = profile->data->source->written;
    struct reading reading = {.profile = profile, .options = options, .is_ongoing = state != NULL};
    profile->tree->keep_samples |=
        options->quirks.lines_decide && names_follow_samples(profile->data);
    profile->is_window = state != NULL;
    profile->objects = state ? state->objects : objects_new(&object_options);
    profile->tree->objects = profile->objects;
    profile->spaces = state ? state->spaces : spaces_new(&options->quirks);
    reading.swapper = strings_add(profile->tree->strings, TEXT("swapper"));
    if (state)
        ongoing_begin(state, &reading);
    find_time(profile);
    bool fine = profile_passes(&reading, error);
    if (state && fine)
        ongoing_end(state, &reading);
    else if (state)
        state->mounts = (struct mounts){0}; /* they are the reading's */
    reading_release(&reading);
    return fine;
}

struct profile *profile_read_ongoing(const struct file *file, const struct profile_options *options,
                                     struct ongoing *state, struct tree *tree,
                                     struct error *error) {
    struct error unseen = {0};
    error = error ? error : &unseen;
    struct perfdata_options data_options = {.strict = options->strict, .context = options->context};
    struct profile *profile = memory_zero(1, sizeof *profile);
    profile->tree = tree;
    profile->tree->keep_samples = options->keep_samples;
    profile->tree->recorded = true;
    profile->data = perfdata_open(file, &data_options, error);
    if (profile->data && read_data(profile, options, state, error))
        return profile;
    file_changed(file, error); /* then what was wrong with its content does not matter */
    profile_free(profile);
    return NULL;
}

struct profile *profile_read(const struct file *file, const struct profile_options *options,
                             struct error *error) {
    return profile_read_ongoing(file, options, NULL, tree_new(), error);
}
