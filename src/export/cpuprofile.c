/*
 * V8's CPU profile, for Chrome's DevTools, VS Code and speedscope: one tree, and one sequence of samples in time.
 *
 * The format has one thread. If there are several tracks, each is a frame below the root, with its own copy of the
 * tree, and they follow one another; gaps are "(idle)", the name that readers know. Nodes are numbered track by
 * track, in the outline's order.
 */
#include "export/formats.h"

#include <stdlib.h>

enum { ROOT = 1, IDLE = 2 };

struct cpuprofile {
    const struct outline *outline;
    struct out *out;
    struct buffer json;
    uint32_t *seen;         /* by node: the last track that has it, + 1 */
    uint32_t *numbers;      /* by node, in that track */
    uint64_t *hits;         /* by node, likewise */
    uint32_t first;         /* number of the current track; of its frame, if it has one */
    uint32_t next;          /* number after the last one */
    VECTOR(uint32_t) used;  /* nodes of the current track, in order */
    VECTOR(uint32_t) roots; /* numbers below the root */
};

static bool has_track_frames(const struct outline *o) {
    return o->tracks.count > 1;
}

/* ---- numbers ---- */

static int order_nodes(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void number_track(struct cpuprofile *c, uint32_t number) {
    const struct outline *o = c->outline;
    const struct track *track = &o->tracks.items[number];
    c->first = c->next;
    c->next += has_track_frames(o);
    c->used.count = 0;
    for (size_t i = 0; i < track->entry_count; i++) {
        const struct track_entry *entry = &o->entries.items[track->first_entry + i];
        for (uint32_t node = entry->node; node && c->seen[node] != number + 1;
             node = o->stacks->nodes.items[node].parent) {
            c->seen[node] = number + 1;
            c->hits[node] = 0;
            vector_push(&c->used, node);
        }
        c->hits[entry->node] += entry->samples;
    }
    if (c->used.count)
        qsort(c->used.items, c->used.count, sizeof *c->used.items, order_nodes);
    for (size_t i = 0; i < c->used.count; i++)
        c->numbers[c->used.items[i]] = c->next++;
}

static void number_again(struct cpuprofile *c) {
    memset(c->seen, 0, c->outline->stacks->nodes.count * sizeof *c->seen);
    c->next = IDLE + 1;
}

/* Return the index in `used` of the first node that is not before `least`. */
static size_t used_from(const struct cpuprofile *c, uint32_t least) {
    return search_first(middle, 0, c->used.count, c->used.items[middle] < least);
}

/* Return the child of `parent` after `last` in the current track, or 0: siblings follow each other's subtrees. */
static uint32_t next_child(const struct cpuprofile *c, uint32_t parent, uint32_t last) {
    const struct placed_node *nodes = c->outline->stacks->nodes.items;
    size_t at = used_from(c, last ? nodes[last].end : parent + 1);
    bool found = at < c->used.count && c->used.items[at] < nodes[parent].end;
    return found ? c->used.items[at] : 0;
}

static void find_roots(struct cpuprofile *c) {
    const struct outline *o = c->outline;
    number_again(c);
    for (uint32_t i = 0; i < o->tracks.count; i++) {
        number_track(c, i);
        if (has_track_frames(o))
            vector_push(&c->roots, c->first);
    }
    if (!has_track_frames(o))
        for (uint32_t at = 0; (at = next_child(c, 0, at));)
            vector_push(&c->roots, c->numbers[at]);
}

/* ---- nodes ---- */

static void begin_node(struct cpuprofile *c, uint32_t id, struct text name, struct text url,
                       uint64_t hits) {
    buffer_printf(&c->json,
                  "%s{\"id\":%u,\"callFrame\":{\"functionName\":", id == ROOT ? "\n" : ",\n", id);
    buffer_add_json_text(&c->json, name);
    buffer_add(&c->json, TEXT(",\"scriptId\":\"0\",\"url\":"));
    buffer_add_json_text(&c->json, url);
    buffer_printf(&c->json,
                  ",\"lineNumber\":-1,\"columnNumber\":-1},\"hitCount\":%llu,\"children\":[",
                  (unsigned long long)hits);
}

static void end_node(struct cpuprofile *c) {
    buffer_add(&c->json, TEXT("]}"));
    buffer_flush(&c->json, c->out);
}

static void add_children(struct cpuprofile *c, uint32_t node) {
    for (uint32_t at = 0, count = 0; (at = next_child(c, node, at)); count++)
        buffer_printf(&c->json, "%s%u", count ? "," : "", c->numbers[at]);
}

static void write_track_nodes(struct cpuprofile *c, uint32_t number) {
    const struct outline *o = c->outline;
    const struct track *track = &o->tracks.items[number];
    if (has_track_frames(o)) {
        struct buffer name = {0};
        buffer_add(&name, track->name);
        if (o->measures.count > 1) {
            buffer_add_char(&name, ' ');
            buffer_add(&name, o->measures.items[track->measure].name);
        }
        begin_node(c, c->first, buffer_text(&name), TEXT(""), 0);
        add_children(c, 0);
        end_node(c);
        buffer_release(&name);
    }
    for (size_t i = 0; i < c->used.count; i++) {
        uint32_t node = c->used.items[i];
        const struct place *place = &o->stacks->places.items[o->stacks->nodes.items[node].place];
        begin_node(c, c->numbers[node], place->name, place->file.length ? place->file : place->path,
                   c->hits[node]);
        add_children(c, node);
        end_node(c);
    }
}

static void write_nodes(struct cpuprofile *c) {
    begin_node(c, ROOT, TEXT("(root)"), TEXT(""), 0);
    buffer_printf(&c->json, "%d", IDLE);
    for (size_t i = 0; i < c->roots.count; i++)
        buffer_printf(&c->json, ",%u", c->roots.items[i]);
    end_node(c);
    begin_node(c, IDLE, TEXT("(idle)"), TEXT(""), 0);
    end_node(c);
    number_again(c);
    for (uint32_t i = 0; i < c->outline->tracks.count; i++) {
        number_track(c, i);
        write_track_nodes(c, i);
    }
}

/* ---- samples ---- */

static void write_samples(struct cpuprofile *c) {
    number_again(c);
    for (uint32_t i = 0; i < c->outline->tracks.count; i++) {
        struct stretches all = stretches_begin(c->outline, i);
        struct stretch stretch;
        number_track(c, i);
        while (stretches_next(&all, &stretch)) {
            buffer_add_u64(&c->json, stretch.node ? c->numbers[stretch.node] : IDLE);
            buffer_add_char(&c->json, ',');
            buffer_flush(&c->json, c->out);
        }
    }
    buffer_add_u64(
        &c->json,
        ROOT); /* a sample lasts until the next: without an extra one the last would take no time */
}

/* Write the time from the previous sample, or the start, to each. Return when the last one ends. */
static uint64_t write_deltas(struct cpuprofile *c) {
    uint64_t now = 0;
    buffer_add_char(&c->json, '0');
    for (uint32_t i = 0; i < c->outline->tracks.count; i++) {
        struct stretches all = stretches_begin(c->outline, i);
        struct stretch stretch;
        while (stretches_next(&all, &stretch)) {
            uint64_t end = saturating_add(now, stretch.weight);
            buffer_add_char(&c->json, ',');
            buffer_add_microseconds(&c->json, now, end);
            buffer_flush(&c->json, c->out);
            now = end;
        }
    }
    return now;
}

bool cpuprofile_write(struct out *out, const struct outline *o, struct error *error) {
    struct cpuprofile c = {.outline = o, .out = out};
    c.seen = memory_zero(o->stacks->nodes.count, sizeof *c.seen);
    c.numbers = memory_zero(o->stacks->nodes.count, sizeof *c.numbers);
    c.hits = memory_zero(o->stacks->nodes.count, sizeof *c.hits);
    find_roots(&c);
    buffer_add(&c.json, TEXT("{\"nodes\":["));
    write_nodes(&c);
    buffer_add(&c.json, TEXT("],\n\"samples\":["));
    write_samples(&c);
    buffer_add(&c.json, TEXT("],\n\"timeDeltas\":["));
    uint64_t end = write_deltas(&c);
    buffer_add(&c.json, TEXT("],\n\"startTime\":0,\"endTime\":"));
    buffer_add_microseconds(&c.json, 0, end);
    buffer_add(&c.json, TEXT("}\n"));
    out_text(out, buffer_text(&c.json));
    buffer_release(&c.json);
    vector_release(&c.roots);
    vector_release(&c.used);
    free(c.seen);
    free(c.numbers);
    free(c.hits);
    return true;
}
