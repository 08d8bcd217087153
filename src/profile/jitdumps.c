/*
 * Find and apply the jitdumps of the processes in a recording.
 *
 * A runtime maps its dump executable, once, so that the recording has a record of the mapping. The dump is taken from the recording, else from the
 * file at that path. Its times are CLOCK_MONOTONIC. If the recording uses another clock, all code counts from the mapping on, and the code
 * generated last at an address wins.
 */
#include "object/jitdump.h"
#include "profile/reading.h"

#include <elf.h>
#include <stdlib.h>
#include <time.h>

static const struct note_kind note_damaged = {
    "jitdumps-damaged", "# jitdump{ is|s are} damaged, and {was|were} read up to the damage"};
static const struct note_kind note_missing = {
    "jitdumps-missing", "# jitdump{|s} of generated code {is|are} missing or {belongs|belong} to "
                        "another user: its functions have no names"};

/* Limit of bytes read from files outside the recording, in total. */
enum { READ_MOST = CARRIER_READ_MOST };

struct found {
    int32_t pid;
    struct text path;
    uint64_t time; /* of its mapping */
};

struct finding {
    struct reading *reading;
    VECTOR(struct found) found;
    struct index index;   /* by pid and path: numbers are places + 1 */
    struct mounts mounts; /* namespaces that processes are in at any time */
    uint64_t left;
};

static uint64_t hash_found(int32_t pid, struct text path) {
    return hash_mix((uint32_t)pid, hash_bytes(path.data, path.length));
}

static struct found *find(const struct finding *f, int32_t pid, struct text path) {
    uint32_t number;
    for (struct probe p = index_probe(&f->index, hash_found(pid, path));
         (number = index_next(&f->index, &p));) {
        struct found *found = &f->found.items[number - 1];
        if (found->pid == pid && text_equal(found->path, path))
            return found;
    }
    return NULL;
}

static void add(struct finding *f, int32_t pid, struct text path, uint64_t time) {
    if (find(f, pid, path))
        return;
    vector_push(&f->found, ((struct found){pid, path, time}));
    index_add(&f->index, hash_found(pid, path), (uint32_t)f->found.count);
}

static bool find_mapped(struct finding *f, const struct key *keys, size_t count,
                        struct error *error) {
    struct perfdata *data = f->reading->profile->data;
    uint64_t own = carried_mount(f->reading->profile->carried);
    for (size_t i = 0; i < count; i++) {
        struct perfdata_record record;
        struct perfdata_mmap mmap;
        uint64_t offset = keys[i].offset;
        if (!perfdata_next(data, &offset, &record, error))
            return false;
        struct perfdata_namespaces namespaces;
        if (record.type == PERF_RECORD_NAMESPACES &&
            !perfdata_namespaces(data, &record, &namespaces, error))
            return false;
        if (record.type == PERF_RECORD_NAMESPACES && namespaces.mount_inode != own)
            mount_set(&f->mounts, namespaces.pid, namespaces.mount_inode);
        if (record.type != PERF_RECORD_MMAP && record.type != PERF_RECORD_MMAP2)
            continue;
        if (!perfdata_mmap(data, &record, &mmap, error))
            return false;
        if (mmap.pid != SPACE_KERNEL_PID && path_is_jitdump(mmap.path))
            add(f, mmap.pid, mmap.path, keys[i].time);
    }
    return true;
}

/* ---- reading them ---- */

static bool has_monotonic_clock(const struct perfdata *data) {
    for (size_t i = 0; i < data->events.count; i++)
        if (!(data->events.items[i].flags >> ATTRIBUTE_CLOCK & 1) ||
            data->events.items[i].clock != CLOCK_MONOTONIC)
            return false;
    return true;
}

static uint16_t machine_of(const struct perfdata *data) {
    return text_equal(data->arch, TEXT("aarch64")) ? EM_AARCH64 : EM_X86_64;
}

static void read_dump(struct finding *f, const struct found *found, struct buffer *bytes) {
    struct reading *reading = f->reading;
    const struct perfdata *data = reading->profile->data;
    struct jitdump dump;
    struct error error = {0};
    char *path = memory_copy(found->path.data, found->path.length);
    if (!jitdump_read(&dump, bytes, machine_of(data), context_limits(reading->options->context),
                      path, &error))
        notes_add(&reading->profile->tree->notes, &note_damaged, 1, 0, "%s", error.message);
    bool timed = has_monotonic_clock(data) && !dump.has_ticks;
    uint32_t object = made_object(reading, found->pid, found->path, made_share(dump.made));
    for (size_t i = 0; i < dump.changes.count; i++) {
        const struct jitdump_change *change = &dump.changes.items[i];
        struct made_moment moment = {.time = timed && change->time > found->time ? change->time
                                                                                 : found->time,
                                     .start = change->start,
                                     .end = saturating_add(change->start, change->size),
                                     .place = change->place,
                                     .object = change->is_gone ? 0 : object,
                                     .pid = found->pid};
        made_happens(&reading->made, &moment);
    }
    jitdump_release(&dump);
    free(path);
}

static void read_kept(void *context, int32_t pid, struct text path, uint32_t number) {
    struct finding *f = context;
    struct found *found = find(f, pid, path);
    struct found earlier = {pid, path, 0}; /* mapped in an earlier window */
    struct buffer bytes = {0};
    if (carried_read_dump(f->reading->profile->carried, number, &bytes))
        read_dump(f, found ? found : &earlier, &bytes);
    if (found)
        found->pid = -1;
    buffer_release(&bytes);
}

static void read_file(struct finding *f, const struct found *found) {
    struct reading *reading = f->reading;
    const char *symfs = reading->options->objects.symfs;
    struct buffer bytes = {0};
    bool is_foreign =
        carried_mount(reading->profile->carried) &&
        (mount_find(&f->mounts, found->pid) || reading_foreign_mount(reading, found->pid));
    if (!is_foreign && jitdump_load(symfs, found->path, f->left, &bytes)) {
        f->left -= bytes.count;
        read_dump(f, found, &bytes);
    } else {
        notes_add(&reading->profile->tree->notes, &note_missing, 1, 0, "%.*s",
                  TEXT_ARGS(found->path));
    }
    buffer_release(&bytes);
}

bool reading_find_jitdumps(struct reading *reading, const struct key *keys, size_t count,
                           struct error *error) {
    struct finding f = {.reading = reading, .left = READ_MOST};
    bool fine = find_mapped(&f, keys, count, error);
    if (fine)
        carried_dumps(reading->profile->carried, read_kept, &f);
    for (size_t i = 0; fine && i < f.found.count; i++)
        if (f.found.items[i].pid != -1)
            read_file(&f, &f.found.items[i]);
    vector_release(&f.found);
    mounts_release(&f.mounts);
    index_release(&f.index);
    return fine;
}
