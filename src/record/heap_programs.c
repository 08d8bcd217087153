/*
 * Programs that the target's processes executed, and those whose allocations are missing: the library was not loaded into them, or found no
 * allocator that it could hook. Without this, a shell that starts a static executable would look like one that allocates next to nothing.
 *
 * The library asks for the rings when a program starts and waits for the answer. So a program was recorded if its process asked between this
 * exec and the next.
 */
#include "record/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "heap/heap.h"

static const struct note_kind note_unseen = {
    "heap-unseen", "# program{ that was executed was|s that were executed were} not recorded"};

enum { PROGRAMS_MOST = 1 << 18 };

struct program {
    uint64_t time;
    pid_t pid;
    uint32_t name, path; /* strings; path 0: not known */
    bool is_seen, has_allocator;
};

struct programs {
    const struct sink *sink;
    struct strings *names;
    VECTOR(struct program) list;
};

struct programs *programs_new(const struct sink *sink) {
    struct programs *programs = memory_zero(1, sizeof *programs);
    programs->sink = sink;
    programs->names = strings_new();
    return programs;
}

void programs_free(struct programs *programs) {
    if (!programs)
        return;
    strings_free(programs->names);
    vector_release(&programs->list);
    free(programs);
}

/* ---- records ---- */

static struct text text_at(const uint8_t *record, const struct perf_event_header *header,
                           size_t offset) {
    return (struct text){(const char *)record + offset,
                         strnlen((const char *)record + offset, header->size - offset)};
}

static void saw_exec(struct programs *p, pid_t pid, const uint8_t *record,
                     const struct perf_event_header *header) {
    enum { NAME = 16, TIME = 8 };
    size_t trailer = 8 * p->sink->trailer_words;
    bool has_time = p->sink->trailer_words >= 2 && header->size >= trailer + NAME;
    uint64_t time = has_time ? load_u64(record + header->size - trailer + TIME) : 0;
    if (!time || p->list.count >= PROGRAMS_MOST) /* without a time: it already ran */
        return;
    vector_push(&p->list,
                ((struct program){.time = time,
                                  .pid = pid,
                                  .name = strings_add(p->names, text_at(record, header, NAME))}));
}

/* The first file that a program maps is its own. Its mapping follows the exec closely. */
static void saw_mapping(struct programs *p, pid_t pid, const uint8_t *record,
                        const struct perf_event_header *header) {
    enum { NAME = 72, NEAR = 64 };
    for (size_t i = p->list.count, n = 0; header->size > NAME && i-- > 0 && n < NEAR; n++) {
        struct program *program = &p->list.items[i];
        if (program->pid != pid)
            continue;
        struct text path = text_at(record, header, NAME);
        if (!program->path && text_starts(path, TEXT("/")) && !text_starts(path, TEXT("//")))
            program->path = strings_add(p->names, path);
        return;
    }
}

void programs_saw(struct programs *programs, const uint8_t *record,
                  const struct perf_event_header *header) {
    if (!programs || header->size < 24)
        return;
    pid_t pid = (pid_t)load_u32(record + 8);
    if (header->type == PERF_RECORD_COMM && header->misc & PERF_RECORD_MISC_COMM_EXEC)
        saw_exec(programs, pid, record, header);
    else if (header->type == PERF_RECORD_MMAP2)
        saw_mapping(programs, pid, record, header);
}

/* ---- what was not seen ---- */

static int program_order(const void *a, const void *b) {
    const struct program *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

/* A forked child that has executed nothing asks, too. */
static void mark(struct programs *p, const struct heap_asker *asker) {
    struct program wanted = {.pid = asker->pid, .time = asker->time};
    size_t after =
        search_first(middle, 0, p->list.count, program_order(&p->list.items[middle], &wanted) <= 0);
    struct program *program = after ? &p->list.items[after - 1] : NULL;
    if (!program || program->pid != asker->pid)
        return;
    program->is_seen |= !asker->has_allocator;
    program->has_allocator |= asker->has_allocator;
}

static const char *why_unseen(const struct programs *p, const struct program *program) {
    char path[4096];
    if (program->has_allocator)
        return "it has an allocator of its own linked into it: start it and attach, "
               "wick record --heap -p PID";
    struct text file = program->path ? strings_get(p->names, program->path) : TEXT("");
    snprintf(path, sizeof path, "%.*s", TEXT_ARGS(file));
    const char *why = heap_refuses(path);
    return why ? why
               : "the library was not loaded into it or could not reach wick: it was started with "
                 "another environment, root directory or network namespace";
}

void programs_note(struct programs *programs, const struct heap *heap, struct notes *notes) {
    struct heap_asker asker;
    const struct program *first = NULL;
    uint64_t count = 0;
    if (programs->list.count)
        qsort(programs->list.items, programs->list.count, sizeof *programs->list.items,
              program_order);
    for (size_t i = 0; heap_asker(heap, i, &asker); i++)
        mark(programs, &asker);
    for (size_t i = 0; i < programs->list.count; i++) {
        const struct program *program = &programs->list.items[i];
        if (program->is_seen)
            continue;
        count++;
        first = !first || program->time < first->time ? program : first;
    }
    if (first)
        notes_add(notes, &note_unseen, count, 0, "%.*s: %s",
                  TEXT_ARGS(strings_get(programs->names, first->path ? first->path : first->name)),
                  why_unseen(programs, first));
}
