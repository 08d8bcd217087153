/*
 * Track the mappings of a traced process by reading /proc/PID/maps from time to time and writing new ones.
 */
#include "record/ptrace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool read_maps(struct buffer *text, pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    text->count = 0;
    while (file >= 0) {
        vector_reserve(text, text->count + (64 << 10));
        got = read(file, text->items + text->count, text->capacity - text->count - 1);
        if (got <= 0)
            break;
        text->count += (size_t)got;
    }
    if (file >= 0)
        close(file);
    return got == 0 && text->count;
}

static int hash_order(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static bool tell_lines(struct sampler *s, struct process *process, char *text) {
    struct sink *sink = &s->r->sink;
    size_t known = process->maps.count;
    bool fine = true, elsewhere = is_elsewhere(process->pid);
    for (char *line = text, *next; fine && *line; line = next) {
        next = line + strcspn(line, "\n");
        uint64_t hash = hash_bytes(line, (size_t)(next - line));
        if (*next)
            *next++ = 0;
        if (!known || !bsearch(&hash, process->maps.items, known, sizeof hash, hash_order))
            fine = synthesize_mapping(sink, process->pid, elsewhere, line, s->error);
        vector_push(&process->maps, hash);
    }
    memmove(process->maps.items, process->maps.items + known,
            (process->maps.count - known) * sizeof *process->maps.items);
    process->maps.count -= known;
    if (process->maps.count)
        qsort(process->maps.items, process->maps.count, sizeof(uint64_t), hash_order);
    return fine;
}

bool maps_refresh(struct sampler *s, struct process *process) {
    uint64_t now = monotonic();
    process->touched = false;
    if (!read_maps(&s->text, process->pid))
        return true;
    uint64_t hash = hash_bytes(s->text.items, s->text.count);
    bool fine = true;
    if (hash != process->maps_hash) {
        uint64_t time = s->r->sink.time;
        s->text.items[s->text.count] = 0;
        if (time)
            s->r->sink.time = process->maps_at ? process->maps_at : time;
        fine = tell_lines(s, process, s->text.items);
        s->r->sink.time = time;
    }
    process->maps_hash = hash;
    process->maps_at = now;
    return fine || sampler_fail(s);
}
