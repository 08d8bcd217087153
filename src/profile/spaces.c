/*
 * Apply side records to the spaces: decide what kind of object is mapped, and how addresses in it are counted.
 *
 * The rules for what is a file are perf's: executable anonymous memory is shown as the process's perf map, [vdso] is one object for all
 * processes, and the name of the kernel's mapping contains a reference symbol.
 */
#include "profile/reading.h"

#include <stdio.h>
#include <stdlib.h>

static bool path_is_anonymous(struct text path) {
    return text_equal(path, TEXT("//anon")) || text_starts(path, TEXT("/dev/zero")) ||
           text_starts(path, TEXT("/anon_hugepage"));
}

static bool path_is_nowhere(struct text path) {
    return text_starts(path, TEXT("[stack")) || text_starts(path, TEXT("/SYSV")) ||
           text_equal(path, TEXT("[heap]")) || path.length == 0;
}

/* A runtime that never has memory both writable and executable maps a file in memory twice. A program may be in one, too, and then has a build
   id. */
static bool path_is_memory_file(struct text path) {
    return text_starts(path, TEXT("/memfd:"));
}

static const struct build_id *build_id_find(const struct reading *reading, struct text path,
                                            uint64_t hash) {
    const struct perfdata *data = reading->profile->data;
    uint32_t id;
    for (struct probe p = index_probe(&reading->build_ids, hash);
         (id = index_next(&reading->build_ids, &p));)
        if (text_equal(data->build_ids.items[id - 1].path, path))
            return &data->build_ids.items[id - 1].id;
    return NULL;
}

/* The recording's build ids go by path; a mapping's own id goes first. */
static struct build_id build_id_of(const struct reading *reading, struct text path,
                                   struct build_id own) {
    const struct build_id *found =
        own.size ? NULL : build_id_find(reading, path, hash_bytes(path.data, path.length));
    return found ? *found : own;
}

/* The first of several for one path counts; a million of them must not form one probe sequence in the index. */
void reading_index_build_ids(struct reading *reading) {
    const struct perfdata *data = reading->profile->data;
    for (size_t i = 0; i < data->build_ids.count; i++) {
        struct text path = data->build_ids.items[i].path;
        uint64_t hash = hash_bytes(path.data, path.length);
        if (!build_id_find(reading, path, hash))
            index_add(&reading->build_ids, hash, (uint32_t)i + 1);
    }
}

static struct build_id build_id_of_kernel(const struct reading *reading, struct build_id own) {
    own = build_id_of(reading, TEXT("[kernel.kallsyms]"), own);
    own = build_id_of(reading, TEXT("[kernel]"), own);
    return build_id_of(reading, TEXT("[guest.kernel.kallsyms]"), own);
}

static bool path_is_kernel(struct text path) {
    return text_starts(path, TEXT("[kernel.kallsyms]")) ||
           text_starts(path, TEXT("[guest.kernel.kallsyms"));
}

/* "[kernel.kallsyms]_stext": what follows the bracket is the reference symbol, pgoff its address. */
static uint32_t add_kernel(struct reading *reading, const struct perfdata_mmap *mmap) {
    struct objects *objects = reading->profile->objects;
    size_t bracket = text_find(mmap->path, ']');
    struct object_identity identity = {
        .path = text_upto(mmap->path, bracket + 1),
        .kind = OBJECT_KERNEL,
        .build_id = build_id_of_kernel(reading, mmap->build_id),
    };
    uint32_t id = objects_add(objects, &identity);
    if (!reading->kernel_object)
        reading->kernel_object = id;
    struct text symbol = text_from(mmap->path, bracket + 1);
    if (symbol.length && mmap->offset)
        objects_set_kernel_reference(objects, id, symbol, mmap->offset);
    return id;
}

static void apply_kernel_mmap(struct reading *reading, const struct perfdata_mmap *mmap,
                              const struct key *key) {
    struct mapping mapping = {
        .start = mmap->start,
        .end = saturating_add(mmap->start, mmap->length),
        .offset = mmap->start,
        .executable = true,
    };
    if (path_is_kernel(mmap->path)) {
        mapping.object = add_kernel(reading, mmap);
    } else {
        struct object_identity identity = {
            .path = mmap->path,
            .kind = OBJECT_MODULE,
            .start = mmap->start,
            .build_id = build_id_of(reading, mmap->path, mmap->build_id),
        };
        mapping.object = objects_add(reading->profile->objects, &identity);
    }
    spaces_mmap(reading->profile->spaces, key, SPACE_KERNEL_PID, SPACE_KERNEL_PID, &mapping);
}

/* A 64-bit kernel puts a 32-bit process's vdso, which is another, at the end of its addresses. perf lists it under a name of its own, but
   takes it for the 64-bit one where that was recorded too. Without a build id nobody knows which it was. */
static struct object_identity identity_of_vdso(const struct reading *reading,
                                               const struct perfdata_mmap *mmap) {
    struct object_identity identity = {
        .path = mmap->path, .kind = OBJECT_VDSO, .build_id = mmap->build_id};
    bool is_narrow = mmap->start < 1ull << 32,
         by_name = reading->options->quirks.narrow_vdso_by_name;
    if (!is_narrow || by_name)
        identity.build_id = build_id_of(reading, mmap->path, identity.build_id);
    if (is_narrow) {
        identity.path = TEXT("[vdso32]");
        identity.build_id = build_id_of(reading, identity.path, identity.build_id);
    }
    if (!is_narrow && !identity.build_id.size)
        identity.build_id = carried_vdso(reading->profile->carried);
    if (is_narrow && !by_name && !identity.build_id.size)
        identity = (struct object_identity){.path = mmap->path, .kind = OBJECT_NONE};
    return identity;
}

/* ---- mount namespaces ---- */

static uint64_t hash_pid(int32_t pid) {
    return hash_mix((uint32_t)pid, 1);
}

struct mount *mount_find(const struct mounts *mounts, int32_t pid) {
    uint32_t number;
    for (struct probe p = index_probe(&mounts->index, hash_pid(pid));
         (number = index_next(&mounts->index, &p));)
        if (mounts->list.items[number - 1].pid == pid)
            return &mounts->list.items[number - 1];
    return NULL;
}

void mount_set(struct mounts *mounts, int32_t pid, uint64_t inode) {
    struct mount *known = mount_find(mounts, pid);
    if (known) {
        known->inode = inode;
        return;
    }
    vector_push(&mounts->list, ((struct mount){pid, inode}));
    index_add(&mounts->index, hash_pid(pid), (uint32_t)mounts->list.count);
}

void mounts_release(struct mounts *mounts) {
    vector_release(&mounts->list);
    index_release(&mounts->index);
}

static bool apply_namespaces(struct reading *reading, const struct perfdata_record *record,
                             struct error *error) {
    struct perfdata_namespaces namespaces;
    if (!perfdata_namespaces(reading->profile->data, record, &namespaces, error))
        return false;
    mount_set(&reading->mounts, namespaces.pid, namespaces.mount_inode);
    return true;
}

uint64_t reading_foreign_mount(const struct reading *reading, int32_t pid) {
    uint64_t own = carried_mount(reading->profile->carried);
    const struct mount *mount = own ? mount_find(&reading->mounts, pid) : NULL;
    return mount && mount->inode != own ? mount->inode : 0;
}

/* ---- user mappings ---- */

static void identify_file(const struct reading *reading, const struct perfdata_mmap *mmap,
                          struct object_identity *identity) {
    identity->build_id = mmap->build_id;
    if (!identity->build_id.size)
        identity->mount = reading_foreign_mount(reading, mmap->pid);
    if (!identity->mount)
        identity->build_id = build_id_of(reading, mmap->path, mmap->build_id);
    if (!identity->build_id.size && !identity->mount && mmap->inode) {
        identity->inode = mmap->inode;
        identity->generation = mmap->generation;
    }
}

static struct object_identity identity_of_user(const struct reading *reading,
                                               const struct perfdata_mmap *mmap, char *buffer,
                                               size_t size) {
    struct object_identity identity = {.path = mmap->path, .kind = OBJECT_FILE};
    bool no_file =
        path_is_anonymous(mmap->path) || path_is_nowhere(mmap->path) ||
        (path_is_memory_file(mmap->path) && !build_id_of(reading, mmap->path, mmap->build_id).size);
    if (no_file && mmap->executable) {
        int length = snprintf(buffer, size, "/tmp/perf-%d.map", mmap->pid);
        identity.path = (struct text){buffer, (size_t)length};
        identity.kind = OBJECT_PERFMAP;
        identity.pid = mmap->pid;
    } else if (no_file) {
        identity.kind = OBJECT_NONE;
    } else if (text_equal(mmap->path, TEXT("[vdso]"))) {
        identity = identity_of_vdso(reading, mmap);
    } else {
        identify_file(reading, mmap, &identity);
    }
    return identity;
}

/* A runtime that generates code changes the protection of its memory, and each change is recorded as a new mapping. The description of the code
   must survive that. */
static bool object_is_made(void *objects, uint32_t object) {
    return object && objects_get(objects, object)->kind == OBJECT_MADE;
}

static void apply_user_mmap(struct reading *reading, const struct perfdata_mmap *mmap,
                            const struct key *key) {
    char buffer[40];
    struct object_identity identity = identity_of_user(reading, mmap, buffer, sizeof buffer);
    bool as_sampled = identity.kind == OBJECT_PERFMAP || identity.kind == OBJECT_NONE;
    struct mapping mapping = {
        .start = mmap->start,
        .end = saturating_add(mmap->start, mmap->length),
        .offset = as_sampled                     ? mmap->start
                  : identity.kind == OBJECT_VDSO ? 0
                                                 : mmap->offset,
        .object = objects_add(reading->profile->objects, &identity),
        .executable = mmap->executable,
    };
    carried_offer(reading->profile->carried, reading->profile->objects, mapping.object);
    if (as_sampled && made_has(&reading->made, mmap->pid))
        spaces_mmap_around(reading->profile->spaces, key, mmap->pid, mmap->tid, &mapping,
                           object_is_made, reading->profile->objects);
    else
        spaces_mmap(reading->profile->spaces, key, mmap->pid, mmap->tid, &mapping);
}

static bool apply_mmap(struct reading *reading, const struct perfdata_record *record,
                       const struct key *key, struct error *error) {
    struct perfdata_mmap mmap;
    if (!perfdata_mmap(reading->profile->data, record, &mmap, error))
        return false;
    unsigned mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
    if (mmap.pid == SPACE_KERNEL_PID || mode == PERF_RECORD_MISC_KERNEL)
        apply_kernel_mmap(reading, &mmap, key);
    else
        apply_user_mmap(reading, &mmap, key);
    return true;
}

static bool apply_comm(struct reading *reading, const struct perfdata_record *record,
                       const struct key *key, struct error *error) {
    struct perfdata_comm comm;
    if (!perfdata_comm(reading->profile->data, record, &comm, error))
        return false;
    uint32_t name = strings_add(reading->profile->tree->strings, comm.comm);
    spaces_comm(reading->profile->spaces, key, comm.pid, comm.tid, name, comm.exec);
    return true;
}

static bool apply_task(struct reading *reading, const struct perfdata_record *record,
                       const struct key *key, struct error *error) {
    struct perfdata_task task;
    if (!perfdata_task(reading->profile->data, record, &task, error))
        return false;
    if (record->type == PERF_RECORD_FORK && task.pid != task.parent_pid)
        labels_fork(&reading->labels, task.pid, task.parent_pid, key->time);
    if (record->type == PERF_RECORD_FORK)
        spaces_fork(reading->profile->spaces, key, task.pid, task.tid, task.parent_pid,
                    task.parent_tid,
                    record->misc & PERF_RECORD_MISC_COMM_EXEC); /* of a fork: it was made up */
    else
        spaces_exit(reading->profile->spaces, key, task.pid, task.tid);
    return true;
}

static bool apply_ksymbol(struct reading *reading, const struct perfdata_record *record,
                          const struct key *key, struct error *error) {
    struct perfdata_ksymbol ksymbol;
    if (!perfdata_ksymbol(reading->profile->data, record, &ksymbol, error))
        return false;
    uint64_t end = saturating_add(ksymbol.address, ksymbol.length);
    if (ksymbol.unregister) {
        spaces_unmap(reading->profile->spaces, key, SPACE_KERNEL_PID, SPACE_KERNEL_PID,
                     ksymbol.address, end);
        return true;
    }
    struct object_identity identity = {
        .path = ksymbol.name, .kind = OBJECT_BPF, .start = ksymbol.address, .size = ksymbol.length};
    struct mapping mapping = {.start = ksymbol.address,
                              .end = end,
                              .offset = ksymbol.address,
                              .object = objects_add(reading->profile->objects, &identity),
                              .executable = true};
    objects_set_name(reading->profile->objects, mapping.object, ksymbol.name);
    spaces_mmap(reading->profile->spaces, key, SPACE_KERNEL_PID, SPACE_KERNEL_PID, &mapping);
    return true;
}

bool reading_apply(struct reading *reading, const struct perfdata_record *record,
                   const struct key *key, struct error *error) {
    switch (record->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return apply_mmap(reading, record, key, error);
    case PERF_RECORD_COMM:
        return apply_comm(reading, record, key, error);
    case PERF_RECORD_KSYMBOL:
        return apply_ksymbol(reading, record, key, error);
    case PERF_RECORD_NAMESPACES:
        return apply_namespaces(reading, record, error);
    default:
        return apply_task(reading, record, key, error);
    }
}
