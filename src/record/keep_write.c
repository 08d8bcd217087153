/*
 * Write what is kept to the recording: perf maps, jitdumps, files and the vdso, as entries of its carrier, while there is room for them.
 */
#include "record/keep.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct note_kind note_full = {"kept-too-much",
                                           "# file{|s} that may be gone later {was|were} not kept "
                                           "in the recording, which keeps up to 64 MB"};

/* Read everything from a descriptor, up to the limit for one file. */
static bool read_all(int descriptor, struct buffer *bytes) {
    ssize_t got = 0;
    bytes->count = 0;
    while (bytes->count < READ_MOST) {
        vector_reserve(bytes, bytes->count + (256 << 10));
        got = pread(descriptor, bytes->items + bytes->count, bytes->capacity - bytes->count,
                    (off_t)bytes->count);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        bytes->count += (size_t)got;
    }
    return got == 0 && bytes->count;
}

bool keep_entry(struct keeper *k, enum carrier_kind kind, struct text key, struct text bytes,
                struct error *error) {
    uint64_t before = perfdata_writer_size(k->sink->writer);
    bool fine = carrier_write(k->sink->writer, kind, key, bytes, error);
    uint64_t size = perfdata_writer_size(k->sink->writer) - before;
    k->left -= size < k->left ? size : k->left;
    return fine;
}

void keep_note_full(struct keeper *k, struct text what) {
    notes_add(&k->sink->result->notes, &note_full, 1, 0, "%.*s", TEXT_ARGS(what));
}

/* Code hardly ever compresses to less than a fifth, so don't even read what could not fit then. */
static bool has_room(struct keeper *k, int descriptor, struct text path) {
    struct stat status;
    if (k->left && fstat(descriptor, &status) == 0 && (uint64_t)status.st_size / 5 <= k->left)
        return true;
    keep_note_full(k, path);
    return false;
}

/* The file now under its name may be another one, if the first was left by an earlier process with that pid. */
bool keep_map(struct keeper *k, struct kept_process *process, struct error *error) {
    int first = process->map;
    map_open(k, process);
    if (process->map < 0)
        process->map = first;
    else
        close(first);
    uint64_t key[] = {(uint32_t)process->pid, monotonic()};
    char path[40];
    bool fine = true;
    snprintf(path, sizeof path, "perf-%d.map", process->pid);
    if (has_room(k, process->map, text_of(path)) && read_all(process->map, &k->bytes))
        fine = keep_entry(k, CARRIER_PERF_MAP, (struct text){(const char *)key, sizeof key},
                          buffer_text(&k->bytes), error);
    return fine;
}

/* ---- jitdumps ---- */

/* Write it if it has grown since the last time. */
static bool write_dump(struct keeper *k, struct kept_dump *dump, struct error *error) {
    struct buffer key = {0};
    struct text path = strings_get(k->paths, dump->path);
    struct stat status;
    bool fine = true;
    if (fstat(dump->descriptor, &status) != 0 || status.st_size == dump->size)
        return true;
    dump->size = status.st_size;
    buffer_put_u32(&key, (uint32_t)dump->pid);
    buffer_put_u32(&key, 0);
    buffer_put_u64(&key, monotonic());
    buffer_add(&key, path);
    if (has_room(k, dump->descriptor, path) && read_all(dump->descriptor, &k->bytes))
        fine = keep_entry(k, CARRIER_DUMP, buffer_text(&key), buffer_text(&k->bytes), error);
    buffer_release(&key);
    return fine;
}

bool keep_dumps(struct keeper *k, pid_t ended, struct error *error) {
    size_t kept = 0;
    bool fine = true;
    for (size_t i = 0; i < k->dumps.count; i++) {
        struct kept_dump dump = k->dumps.items[i];
        if (!ended || dump.pid == ended)
            fine = fine && write_dump(k, &dump, error);
        if (dump.pid == ended)
            close(dump.descriptor);
        else
            k->dumps.items[kept++] = dump;
    }
    k->dumps.count = kept;
    return fine;
}

void keep_put_key(struct buffer *key, uint64_t mount, const struct build_id *id, struct text path) {
    struct build_id padded = {0};
    memcpy(padded.bytes, id->bytes, id->size);
    key->count = 0;
    buffer_put_u64(key, mount);
    buffer_put_u32(key, id->size);
    buffer_add(key, (struct text){(const char *)padded.bytes, BUILD_ID_MAX});
    buffer_add(key, path);
}

bool keep_file(struct keeper *k, struct kept_file *file, struct error *error) {
    struct text path = strings_get(k->paths, file->path);
    struct buffer key = {0};
    bool fine = true;
    keep_put_key(&key, file->id.size ? 0 : file->mount, &file->id, path);
    if (key.count <= CARRIER_KEY_MOST && has_room(k, file->descriptor, path) &&
        file_is_that(file) && read_all(file->descriptor, &k->bytes))
        fine = file->is_kept =
            keep_entry(k, CARRIER_FILE, buffer_text(&key), buffer_text(&k->bytes), error);
    close(file->descriptor);
    file->descriptor = -1;
    k->held--;
    buffer_release(&key);
    return fine;
}

bool keep_mount(struct keeper *k, struct error *error) {
    struct text mount = {(const char *)&k->own_mount, sizeof k->own_mount};
    return !k->own_mount ||
           carrier_write(k->sink->writer, CARRIER_FACT, TEXT("mount-namespace"), mount, error);
}

/* This process's vdso stands for that of every 64-bit process. */
bool keep_vdso(struct keeper *k, struct error *error) {
    struct build_id id;
    struct buffer key = {0};
    if (!object_vdso_build_id(&id))
        return true;
    keep_put_key(&key, 0, &id, TEXT("[vdso]"));
    bool fine = keep_entry(k, CARRIER_FILE, buffer_text(&key), object_vdso(), error);
    buffer_release(&key);
    return fine;
}
