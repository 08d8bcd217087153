/*
 * Chrome's trace events, for Perfetto, chrome://tracing and speedscope: a frame begins with the first stack that has
 * it, and ends with the first that lacks it.
 *
 * They are complete events, callers first, because readers that sort begins and ends only by time get those of one
 * moment wrong. So each track is walked twice, first to find when frames end; that holds eight bytes per frame, where
 * the file has a hundred.
 *
 * Tracks without times use their weights instead, a thousand per microsecond.
 */
#include "export/formats.h"

#include <stdlib.h>

enum { FRAME_SIZE = 100 };

struct opened {
    uint32_t node;
    size_t number; /* among those that began */
};

struct chrome {
    const struct outline *outline;
    struct out *out;
    struct buffer json;
    VECTOR(struct opened) open; /* outermost first */
    VECTOR(uint32_t) next;      /* nodes, leaf first */
    VECTOR(uint64_t) ends;      /* of frames, in the order that they begin in */
    size_t begun;
    uint64_t size; /* approximate size of frames in the file */
    bool writes;   /* in the second pass */
    uint32_t track;
    bool first;
};

static void begin_event(struct chrome *c, char phase) {
    const struct track *track = &c->outline->tracks.items[c->track];
    buffer_add(&c->json, c->first ? TEXT("\n{\"ph\":\"") : TEXT(",\n{\"ph\":\""));
    c->first = false;
    buffer_add_char(&c->json, phase);
    buffer_printf(&c->json, "\",\"pid\":%d,\"tid\":", track->pid < 0 ? 0 : track->pid);
    if (track->tid >= 0 && !track->twin) /* overlapping tracks must not be one thread */
        buffer_printf(&c->json, "%d", track->tid);
    else
        buffer_printf(&c->json, "%llu", (1ull << 31) + c->track);
}

static void add_frame(struct chrome *c, uint32_t node, uint64_t start, uint64_t end) {
    begin_event(c, 'X');
    buffer_add(&c->json, TEXT(",\"ts\":"));
    buffer_add_microseconds(&c->json, 0, start);
    buffer_add(&c->json, TEXT(",\"dur\":"));
    buffer_add_microseconds(&c->json, start, end);
    buffer_add(&c->json, TEXT(",\"name\":"));
    uint32_t place = c->outline->stacks->nodes.items[node].place;
    buffer_add_json_text(&c->json, c->outline->stacks->places.items[place].name);
    buffer_add_char(&c->json, '}');
    buffer_flush(&c->json, c->out);
}

static void open_frame(struct chrome *c, uint32_t node, uint64_t time) {
    vector_push(&c->open, ((struct opened){node, c->begun}));
    if (c->writes)
        add_frame(c, node, time, c->ends.items[c->begun]);
    else
        vector_push(&c->ends, 0);
    c->begun++;
}

/* Go from the open stack to that of `node`, at `time`. */
static void change_to(struct chrome *c, uint32_t node, uint64_t time) {
    const struct placed_node *nodes = c->outline->stacks->nodes.items;
    size_t shared = 0;
    c->next.count = 0;
    for (; node; node = nodes[node].parent)
        vector_push(&c->next, node);
    while (shared < c->open.count && shared < c->next.count &&
           c->open.items[shared].node == c->next.items[c->next.count - 1 - shared])
        shared++;
    while (c->open.count > shared)
        c->ends.items[c->open.items[--c->open.count].number] = time;
    while (c->open.count < c->next.count)
        open_frame(c, c->next.items[c->next.count - 1 - c->open.count], time);
}

static void walk_track(struct chrome *c, bool writes) {
    struct stretches all = stretches_begin(c->outline, c->track);
    struct stretch stretch;
    uint64_t end = all.start;
    c->writes = writes;
    c->begun = 0;
    for (; stretches_next(&all, &stretch); end = all.end)
        if (stretch.weight)
            change_to(c, stretch.node, end);
    change_to(c, 0, end);
}

static void add_metadata(struct chrome *c, const char *key, struct text name, struct text more) {
    begin_event(c, 'M');
    buffer_printf(&c->json, ",\"name\":\"%s\",\"args\":{\"name\":\"", key);
    buffer_add_json(&c->json, name);
    if (more.length)
        buffer_add_char(&c->json, ' ');
    buffer_add_json(&c->json, more);
    buffer_add(&c->json, TEXT("\"}}"));
}

static bool write_track(struct chrome *c, struct error *error) {
    const struct outline *o = c->outline;
    const struct track *track = &o->tracks.items[c->track];
    struct text measure = o->measures.count > 1 ? o->measures.items[track->measure].name : TEXT("");
    add_metadata(c, "process_name", track_process(o, c->track), TEXT(""));
    bool own = track->comm.length && !track->twin; /* otherwise the numbers are in the name */
    add_metadata(c, "thread_name", own ? track->comm : track->name, measure);
    c->ends.count = 0;
    walk_track(c, false);
    c->size += FRAME_SIZE * (uint64_t)c->ends.count;
    if (!export_fits(o, c->size, error))
        return false;
    walk_track(c, true);
    return true;
}

bool chrome_write(struct out *out, const struct outline *o, struct error *error) {
    struct chrome c = {.outline = o, .out = out, .first = true};
    const struct notes *notes = o->options->notes;
    buffer_add(&c.json,
               TEXT("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"exporter\":\"wick " WICK_VERSION
                    "\",\"profile\":"));
    buffer_add_json_text(&c.json, text_of(o->options->title));
    struct buffer line = {0};
    for (size_t i = 0; notes && i < notes->count; i++) {
        line.count = 0;
        note_print(&notes->items[i], &line);
        buffer_add(&c.json, TEXT(",\n"));
        buffer_add_json_text(&c.json, text_of(notes->items[i].kind->name));
        buffer_add_char(&c.json, ':');
        buffer_add_json_text(&c.json, buffer_text(&line));
    }
    buffer_add(&c.json, TEXT("},\n\"traceEvents\":["));
    bool fine = true;
    for (; c.track < o->tracks.count && fine; c.track++)
        fine = write_track(&c, error);
    buffer_add(&c.json, TEXT("\n]}\n"));
    out_text(out, buffer_text(&c.json));
    buffer_release(&line);
    buffer_release(&c.json);
    vector_release(&c.open);
    vector_release(&c.next);
    vector_release(&c.ends);
    return fine;
}
