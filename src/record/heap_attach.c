/*
 * Record the allocations of running processes: the named ones, their children, and children that they create later, which are looked for
 * twice a second.
 */
#include "record/heap_catch.h"

#include <stdlib.h>

static const struct note_kind note_calls = {
    "heap-attached", "# call{ of|s of} the allocator {was|were} recorded, at 1 to 2 microseconds "
                     "each; earlier allocations are not seen"};
static const struct note_kind note_stepped = {
    "heap-stepped", "# function{ of the allocator begins|s of the allocator begin} with an "
                    "instruction that the kernel has to single-step, at 10 microseconds a call"};
static const struct note_kind note_children = {"heap-children",
                                               "# child process{ was|es were} created meanwhile; "
                                               "{its|their} first half second may be missing"};
static const struct note_kind note_unseen = {"heap-unseen-children",
                                             "# child process{|es} could not be recorded"};

enum { LOOK_NS = 500000000 };

struct attached {
    struct catcher *catcher;
    struct process_list processes; /* watched, or impossible to watch */
    struct catch_costs costs;
    bool maps; /* mappings are recorded, too */
    uint64_t looked;
    uint64_t children, unseen;
    uint64_t with_arenas[HEAP_ARENAS]; /* processes */
};

static bool add_process(struct attached *a, pid_t pid, struct error *error) {
    catch_files files = {0};
    struct catch_costs costs = {0};
    vector_push(&a->processes, pid);
    bool fine = catch_find(pid, a->maps, &files, &costs, error) &&
                catcher_add(a->catcher, pid, &files, error);
    catch_files_release(&files);
    if (fine)
        a->with_arenas[heap_arenas_of(pid)]++;
    if (!a->costs.stepped)
        a->costs = costs;
    return fine;
}

struct attached *attached_open(struct recording *r, struct error *error) {
    struct attached *a = memory_zero(1, sizeof *a);
    a->maps = r->options->heap_maps;
    bool fine = (a->catcher = catcher_open(r->options->heap_every, error)) != NULL;
    for (size_t i = 0; fine && i < r->options->pid_count; i++) {
        bool is_child = i >= r->options->pid_count - r->options->pids_found;
        bool added = add_process(a, r->options->pids[i], error);
        a->unseen += is_child && !added;
        fine = added || is_child;
    }
    a->looked = monotonic();
    if (fine)
        return a;
    attached_close(a);
    return NULL;
}

void attached_close(struct attached *a) {
    if (!a)
        return;
    catcher_close(a->catcher);
    vector_release(&a->processes);
    free(a);
}

void attached_enable(struct attached *a, bool on) {
    catcher_enable(a->catcher, on);
}

int attached_descriptor(const struct attached *a) {
    return catcher_descriptor(a->catcher);
}

/* Children that have already exited were too short-lived to be seen. */
static void look_for_children(struct attached *a, struct recording *r) {
    struct error unused;
    uint64_t now = monotonic();
    if (now - a->looked < LOOK_NS || r->options->no_inherit)
        return;
    a->looked = now;
    recording_find_children(r);
    for (size_t i = 0; i < r->targets.count; i++) {
        pid_t pid = r->targets.items[i];
        if (processes_hold(&a->processes, pid))
            continue;
        a->children++;
        a->unseen += !add_process(a, pid, &unused) && thread_lives(pid);
    }
}

bool attached_drain(struct attached *a, struct recording *r, heap_reader *reader, unsigned *busy,
                    struct error *error) {
    look_for_children(a, r);
    return catcher_drain(a->catcher, reader, r, busy, error);
}

uint64_t attached_with_arenas(const struct attached *a, enum heap_arenas arenas) {
    return a->with_arenas[arenas];
}

struct heap_losses attached_finish(struct attached *a, struct notes *notes) {
    notes_add(notes, &note_calls, catcher_calls(a->catcher), 0, NULL);
    if (a->costs.stepped)
        notes_add(notes, &note_stepped, a->costs.stepped, 0, "%s", a->costs.where);
    if (a->children)
        notes_add(notes, &note_children, a->children, 0, NULL);
    if (a->unseen)
        notes_add(notes, &note_unseen, a->unseen, 0, NULL);
    return catcher_losses(a->catcher);
}
