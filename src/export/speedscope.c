/*
 * speedscope's own JSON: a sampled profile for each track, with stacks of indexes of shared frames.
 *
 * Equal consecutive stacks are merged into one sample. If a track has times, time that no sample covers is an empty
 * stack, which speedscope shows as a gap; otherwise there are none, so that weights add up to the counts.
 */
#include "export/formats.h"

#include <stdlib.h>

struct speedscope {
    const struct outline *outline;
    struct out *out;
    struct buffer json;
    VECTOR(uint32_t) path;
};

static void write_stack(struct speedscope *s, uint32_t node) {
    const struct placed_node *nodes = s->outline->stacks->nodes.items;
    s->path.count = 0;
    for (; node; node = nodes[node].parent)
        vector_push(&s->path, nodes[node].place - 1);
    buffer_add_char(&s->json, '[');
    for (size_t i = s->path.count; i-- > 0;) {
        buffer_add_u64(&s->json, s->path.items[i]);
        if (i)
            buffer_add_char(&s->json, ',');
    }
    buffer_add_char(&s->json, ']');
}

/* Write either all stacks or all weights. */
static void write_stretches(struct speedscope *s, uint32_t track, bool stacks) {
    struct stretches all = stretches_begin(s->outline, track);
    struct stretch stretch;
    for (bool first = true; stretches_next(&all, &stretch); first = false) {
        if (!first)
            buffer_add_char(&s->json, ',');
        if (stacks)
            write_stack(s, stretch.node);
        else
            buffer_add_u64(&s->json, stretch.weight);
        buffer_flush(&s->json, s->out);
    }
    if (!stacks)
        buffer_printf(&s->json, "],\"startValue\":%llu,\"endValue\":%llu}",
                      (unsigned long long)all.start, (unsigned long long)all.end);
}

static void write_track(struct speedscope *s, uint32_t number) {
    const struct track *track = &s->outline->tracks.items[number];
    const char *unit = weight_unit(s->outline, track->measure);
    struct buffer name = {0};
    buffer_add(&name, track->name);
    if (s->outline->measures.count > 1) {
        buffer_add(&name, TEXT(" "));
        buffer_add(&name, s->outline->measures.items[track->measure].name);
    }
    buffer_add(&s->json, number ? TEXT(",\n{\"type\":\"sampled\",\"name\":")
                                : TEXT("\n{\"type\":\"sampled\",\"name\":"));
    buffer_add_json_text(&s->json, buffer_text(&name));
    buffer_printf(&s->json, ",\"unit\":\"%s\",\"samples\":[", unit ? unit : "none");
    write_stretches(s, number, true);
    buffer_add(&s->json, TEXT("],\"weights\":["));
    write_stretches(s, number, false);
    buffer_release(&name);
}

static void write_frames(struct speedscope *s) {
    const struct outline *o = s->outline;
    for (size_t i = 1; i < o->stacks->places.count; i++) {
        const struct place *place = &o->stacks->places.items[i];
        struct text file = place->file.length ? place->file : place->path;
        buffer_add(&s->json, i > 1 ? TEXT(",\n{\"name\":") : TEXT("\n{\"name\":"));
        buffer_add_json_text(&s->json, place->name);
        if (file.length) {
            buffer_add(&s->json, TEXT(",\"file\":"));
            buffer_add_json_text(&s->json, file);
        }
        buffer_add_char(&s->json, '}');
        buffer_flush(&s->json, s->out);
    }
}

/* A frame's number takes a comma and at most this many digits. */
static uint64_t size_of(const struct outline *o) {
    uint64_t frames = 0, digits = 1;
    for (size_t i = o->stacks->places.count; i >= 10; i /= 10)
        digits++;
    for (uint32_t i = 0; i < o->tracks.count; i++) {
        struct stretches all = stretches_begin(o, i);
        struct stretch stretch;
        while (stretches_next(&all, &stretch))
            frames += o->stacks->nodes.items[stretch.node].depth + 2;
    }
    return frames * (digits + 1);
}

bool speedscope_write(struct out *out, const struct outline *o, struct error *error) {
    struct speedscope s = {.outline = o, .out = out};
    if (!export_fits(o, size_of(o), error))
        return false;
    buffer_add(&s.json,
               TEXT("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                    "\"exporter\":\"wick@" WICK_VERSION "\",\"name\":"));
    buffer_add_json_text(&s.json, text_of(o->options->title));
    buffer_printf(&s.json, ",\"activeProfileIndex\":%u,\n\"shared\":{\"frames\":[",
                  outline_heaviest(o));
    write_frames(&s);
    buffer_add(&s.json, TEXT("\n]},\n\"profiles\":["));
    for (uint32_t i = 0; i < o->tracks.count; i++)
        write_track(&s, i);
    buffer_add(&s.json, TEXT("\n]}\n"));
    out_text(out, buffer_text(&s.json));
    buffer_release(&s.json);
    vector_release(&s.path);
    return true;
}
