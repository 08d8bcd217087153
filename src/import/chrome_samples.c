/*
 * Samples in Chrome's traces, of which there are two kinds:
 *
 *     {"name": "Profile", "id": "0x1", "args": {"data": {"startTime": 5}}}               V8's CPU profile in pieces, as DevTools records it;
 *     {"name": "ProfileChunk", "id": "0x1", "args": {"data": {"cpuProfile": {…}, …}}}    "CpuProfile" is one in one piece
 *
 *     "samples": [{"pid": 1, "tid": 2, "ts": "500", "sf": 7}, …],                         beside the events, as Hermes and others write them
 *     "stackFrames": {"7": {"name": "f", "parent": 6}, …}
 *
 * A sample lasts until its thread's next.
 */
#include "import/chrome.h"

#include <stdlib.h>

/* ---- pieces of CPU profiles ---- */

void chrome_keep_chunk(struct chrome *c, const struct v8_chunk *chunk) {
    struct text name = buffer_text(&c->name);
    bool begins = text_equal(name, TEXT("Profile")) || text_equal(name, TEXT("CpuProfile"));
    if (!begins && !text_equal(name, TEXT("ProfileChunk")))
        return;
    struct v8_chunk kept = *chunk;
    kept.order = c->chunks.count;
    if (!begins) /* V8 reports chunks from a separate thread */
        kept.thread = INT64_MIN;
    vector_push(&c->chunks, kept);
}

static int chunk_order(const void *a, const void *b) {
    const struct v8_chunk *x = a, *y = b;
    int order = ORDER(x->process, y->process);
    order = order ? order : ORDER(x->id, y->id);
    order = order ? order : ORDER(x->time, y->time);
    return order ? order : ORDER(x->order, y->order);
}

static bool count_chunks(struct chrome *c, size_t *samples) {
    struct v8_chunk *chunks = c->chunks.items;
    if (c->chunks.count)
        qsort(chunks, c->chunks.count, sizeof *chunks, chunk_order);
    for (size_t first = 0, next; first < c->chunks.count; first = next) {
        for (next = first + 1; next < c->chunks.count &&
                               chunks[next].process == chunks[first].process &&
                               chunks[next].id == chunks[first].id;)
            next++;
        chrome_set_thread(c, chunks[first].process, chunks[first].thread);
        if (!v8_count_chunks(&c->r, chunks + first, next - first, samples))
            return false;
    }
    return true;
}

/* ---- frames ---- */

static uint32_t find_frame(const struct chrome *c, int64_t id) {
    uint32_t at;
    for (struct probe probe = index_probe(&c->frame_ids, hash_mix((uint64_t)id, 1));
         (at = index_next(&c->frame_ids, &probe));)
        if (c->frames.items[at - 1].id == id)
            return at;
    return 0;
}

static bool read_frame(struct chrome *c, struct chrome_frame *frame) {
    bool fine = json_take(&c->json, '{');
    c->name.count = 0;
    while (fine && json_member(&c->json, &c->key)) {
        struct text key = buffer_text(&c->key);
        fine = text_equal(key, TEXT("name")) && json_peek(&c->json) == '"'
                   ? json_string(&c->json, &c->name)
               : text_equal(key, TEXT("parent")) ? chrome_id(c, &frame->parent)
                                                 : json_skip(&c->json);
    }
    stack_push(&c->r.stack, buffer_text(&c->name));
    frame->location = c->r.stack.locations.items[--c->r.stack.locations.count];
    return fine;
}

/* Read an object whose keys are ids. chrome_id() reads an id in a key as it does in a value. */
bool chrome_read_frames(struct chrome *c) {
    if (!json_take(&c->json, '{'))
        return json_skip(&c->json);
    bool fine = true;
    while (fine && json_peek(&c->json) == '"' && !import_stops(c->r.options, c->json.rest.data)) {
        struct chrome_frame frame = {.parent = INT64_MIN};
        fine = chrome_id(c, &frame.id) && json_take(&c->json, ':') && read_frame(c, &frame);
        if (fine && !find_frame(c, frame.id)) {
            vector_push(&c->frames, frame);
            index_add(&c->frame_ids, hash_mix((uint64_t)frame.id, 1), (uint32_t)c->frames.count);
        }
        json_take(&c->json, ',');
    }
    return fine && (json_take(&c->json, '}') || import_stops(c->r.options, c->json.rest.data));
}

/* Place callers first. A frame that is its own ancestor, or whose parent is missing, begins a stack. */
static uint32_t frame_node(struct chrome *c, int64_t id) {
    uint32_t at = find_frame(c, id), leaf = at;
    c->way.count = 0;
    while (at && !c->frames.items[at - 1].placed && !c->frames.items[at - 1].on_way) {
        struct chrome_frame *frame = &c->frames.items[at - 1];
        frame->on_way = true;
        vector_push(&c->way, at);
        at = frame->parent == INT64_MIN ? 0 : find_frame(c, frame->parent);
    }
    uint32_t node = at ? c->frames.items[at - 1].node : 0;
    while (c->way.count) {
        struct chrome_frame *frame = &c->frames.items[c->way.items[--c->way.count] - 1];
        frame->node = node = tree_add_node(c->r.tree, node, frame->location);
        frame->placed = true;
    }
    return leaf ? c->frames.items[leaf - 1].node : 0;
}

/* ---- samples ---- */

static bool sample_member(struct chrome *c, struct chrome_sample *sample) {
    struct text key = buffer_text(&c->key);
    if (text_equal(key, TEXT("ts")))
        return chrome_time(c, &sample->time) || json_skip(&c->json);
    if (text_equal(key, TEXT("pid")))
        return chrome_id(c, &sample->process);
    if (text_equal(key, TEXT("tid")))
        return chrome_id(c, &sample->thread);
    if (text_equal(key, TEXT("sf")))
        return chrome_id(c, &sample->frame);
    return json_skip(&c->json);
}

bool chrome_read_samples(struct chrome *c) {
    if (!json_take(&c->json, '['))
        return json_skip(&c->json);
    bool fine = true;
    while (fine && json_element(&c->json) && !import_stops(c->r.options, c->json.rest.data)) {
        struct chrome_sample sample = {.frame = INT64_MIN, .order = c->samples.count};
        fine = json_take(&c->json, '{');
        while (fine && json_member(&c->json, &c->key))
            fine = sample_member(c, &sample);
        if (fine)
            vector_push(&c->samples, sample);
    }
    return fine;
}

static int sample_order(const void *a, const void *b) {
    const struct chrome_sample *x = a, *y = b;
    int order = ORDER(x->process, y->process);
    order = order ? order : ORDER(x->thread, y->thread);
    order = order ? order : ORDER(x->time, y->time);
    return order ? order : ORDER(x->order, y->order);
}

static bool of_one_thread(const struct chrome_sample *x, const struct chrome_sample *y) {
    return x->process == y->process && x->thread == y->thread;
}

/* The last sample of a thread has no known duration. */
static void count_table(struct chrome *c) {
    struct chrome_sample *samples = c->samples.items;
    size_t count = c->samples.count;
    if (count)
        qsort(samples, count, sizeof *samples, sample_order);
    for (size_t i = 0; i < count && !budget_exceeded(c->r.options->budget); i++) {
        bool last = i + 1 == count || !of_one_thread(&samples[i], &samples[i + 1]);
        if (!i || !of_one_thread(&samples[i - 1], &samples[i]))
            chrome_set_thread(c, samples[i].process, samples[i].thread);
        uint64_t end = last ? samples[i].time : samples[i + 1].time;
        stack_count_at(&c->r.stack, frame_node(c, samples[i].frame), 1, end - samples[i].time,
                       end + !end);
    }
}

bool chrome_count_samples(struct chrome *c, size_t *samples) {
    *samples += c->samples.count;
    count_table(c);
    return count_chunks(c, samples);
}
