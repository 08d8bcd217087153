/*
 * What a recording must keep because it will be gone when it is read: perf maps, files that nobody else will find, labels of processes.
 *
 * Records on their way to the file only put wishes on a list; these are seen to between two rounds, so that no buffer waits for a
 * file. A file is opened as soon as its mapping is seen and read at the end: an open descriptor outlives its process, its path and its
 * mount namespace. What is read goes to the recording by its carrier (docs/carrier.md).
 */
#include "record/keep.h"
#include "object/jitdump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct note_kind note_full = {
    "kept-too-much",
    "# file{|s} that may be gone later {was|were} not kept with the recording: it keeps up to 64 "
    "MB"};

/* ---- processes ---- */

static uint64_t hash_pid(pid_t pid) {
    return hash_mix((uint32_t)pid, 3);
}

static struct kept_process *process_find(const struct keeper *k, pid_t pid) {
    uint32_t number;
    for (struct probe p = index_probe(&k->by_pid, hash_pid(pid));
         (number = index_next(&k->by_pid, &p));)
        if (k->processes.items[number - 1].pid == pid)
            return &k->processes.items[number - 1];
    return NULL;
}

/* Ended processes are dropped once they are more than the others: what lives decides how much memory it takes. */
static void drop_ended(struct keeper *k) {
    size_t kept = 0;
    if (k->ended < 64 || k->ended < k->processes.count / 2)
        return;
    index_release(&k->by_pid);
    for (size_t i = 0; i < k->processes.count; i++) {
        if (!k->processes.items[i].pid)
            continue;
        k->processes.items[kept++] = k->processes.items[i];
        index_add(&k->by_pid, hash_pid(k->processes.items[kept - 1].pid), (uint32_t)kept);
    }
    k->processes.count = kept;
    k->ended = 0;
}

static struct kept_process *process_get(struct keeper *k, pid_t pid) {
    struct kept_process *known = process_find(k, pid);
    if (known)
        return known;
    vector_push(&k->processes, ((struct kept_process){.pid = pid, .map = -1}));
    index_add(&k->by_pid, hash_pid(pid), (uint32_t)k->processes.count);
    return &k->processes.items[k->processes.count - 1];
}

static void process_end(struct keeper *k, struct kept_process *process) {
    runtime_ends(k, process);
    if (process->map >= 0)
        close(process->map);
    *process = (struct kept_process){.map = -1};
    k->ended++;
}

/* ---- labels ---- */

/* Of the lines "number:controllers:path": the unified hierarchy's, unless only another knows more than the root. */
static void read_cgroup(pid_t pid, struct buffer *path) {
    char name[64], text[4096];
    snprintf(name, sizeof name, "/proc/%d/cgroup", pid);
    path->count = 0;
    if (!file_read_small(name, text, sizeof text))
        return;
    for (struct text rest = text_of(text); rest.length;) {
        struct text line = text_take_line(&rest);
        size_t first = text_find(line, ':');
        size_t second = first == SIZE_MAX ? first : text_find(text_from(line, first + 1), ':');
        if (second == SIZE_MAX)
            continue;
        struct text here = text_from(line, first + second + 2);
        if (here.length > path->count || (second == 0 && here.length > 1)) {
            path->count = 0;
            buffer_add(path, here);
        }
        if (second == 0 && here.length > 1)
            break;
    }
}

/* Its cgroup, the container that it tells of, and what the recording's owner adds; nothing if there is none of these. */
static void find_labels(const struct keeper *k, pid_t pid, struct text comm,
                        struct buffer *labels) {
    const struct record_options *options = k->options;
    struct buffer cgroup = {0}, container = {0};
    read_cgroup(pid, &cgroup);
    if (cgroup.count) {
        buffer_add(labels, TEXT("cgroup\0"));
        buffer_add(labels, buffer_text(&cgroup));
        buffer_add_char(labels, 0);
    }
    if (container_of_cgroup(buffer_text(&cgroup), &container)) {
        buffer_add(labels, TEXT("container\0"));
        buffer_add(labels, buffer_text(&container));
        buffer_add_char(labels, 0);
    }
    if (options->add_labels)
        options->add_labels(options->label_context, pid, comm, buffer_text(&cgroup), labels);
    buffer_release(&cgroup);
    buffer_release(&container);
}

static bool write_labels(struct keeper *k, const struct wish *wish, struct text labels,
                         struct error *error) {
    uint64_t key[] = {(uint32_t)wish->pid, wish->time};
    return carrier_write(k->sink->writer, CARRIER_LABELS,
                         (struct text){(const char *)key, sizeof key}, labels, error);
}

/* What a process has of its own: namespace, user, cgroup. Told only where it is not what its parent had. */
static bool look_at_process(struct keeper *k, struct kept_process *process, const struct wish *wish,
                            struct error *error) {
    struct buffer labels = {0};
    bool fine = true;
    uint64_t mount = mount_of(process->pid);
    process->looked = true;
    process_owner(process);
    if (mount && mount != process->mount && (process->mount || mount != k->own_mount)) {
        uint64_t before = k->sink->time;
        k->sink->time = wish->time;
        fine = synthesize_namespaces(k->sink, process->pid, error);
        k->sink->time = before;
    }
    if (mount)
        process->mount = mount;
    mount_hold(k, process);
    struct text comm = wish->kind == WISH_PROCESS ? strings_get(k->paths, wish->path) : TEXT("");
    find_labels(k, process->pid, comm, &labels);
    uint32_t known = labels.count ? strings_add(k->labels, buffer_text(&labels)) : 0;
    if (fine && known && known != process->labels) {
        process->labels = known;
        fine = write_labels(k, wish, buffer_text(&labels), error);
    }
    buffer_release(&labels);
    return fine;
}

/* ---- wishes ---- */

static bool is_anonymous(struct text path) {
    return !path.length || path.data[0] == '[' || text_equal(path, TEXT("//anon")) ||
           text_starts(path, TEXT("/dev/zero")) || text_starts(path, TEXT("/anon_hugepage")) ||
           text_starts(path, TEXT("/SYSV"));
}

static void wish_mapping(struct keeper *k, struct wish wish, const uint8_t *record,
                         const struct perf_event_header *header) {
    enum { START = 16, ID = 40, PROTECTION = 64, NAME = 72 };
    if (header->size <= NAME || !(load_u32(record + PROTECTION) & 4))
        return;
    struct text path = {(const char *)record + NAME,
                        strnlen((const char *)record + NAME, header->size - NAME)};
    wish.start = load_u64(record + START);
    wish.end = wish.start + load_u64(record + START + 8);
    if (header->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && record[ID] <= BUILD_ID_MAX) {
        wish.id.size = record[ID];
        memcpy(wish.id.bytes, record + ID + 4, wish.id.size);
    } else {
        wish.inode = load_u64(record + ID + 8);
    }
    wish.kind = is_anonymous(path) ? WISH_MAP : path_is_jitdump(path) ? WISH_DUMP : WISH_FILE;
    if (text_equal(path, TEXT("[vdso]")) || text_equal(path, TEXT("[vsyscall]")))
        return;
    if (wish.kind != WISH_MAP)
        wish.path = strings_add(k->paths, path);
    if (wish.kind == WISH_FILE)
        jvms_saw_mapping(k->jvms, wish.pid, path, wish.time);
    vector_push(&k->wishes, wish);
}

void keeper_saw(struct keeper *k, const uint8_t *record, const struct perf_event_header *header) {
    if (!k || header->type == PERF_RECORD_SAMPLE || header->size < 16 ||
        k->wishes.count >= WISHES_MOST)
        return; /* of a sample that was split, not all is here */
    struct wish wish = {.pid = (pid_t)load_u32(record + 8)};
    size_t trailer = 8 * k->sink->trailer_words;
    if (k->sink->trailer_words >= 2 && header->size >= trailer + 16)
        wish.time = load_u64(record + header->size - trailer + 8);
    bool is_leader = wish.pid == (pid_t)load_u32(record + 12);
    switch (header->type) {
    case PERF_RECORD_MMAP2:
        if (wish.pid > 0)
            wish_mapping(k, wish, record, header);
        return;
    case PERF_RECORD_COMM: /* at exec, or of a process that ran before */
        wish.kind = WISH_PROCESS;
        if (!is_leader || (!(header->misc & PERF_RECORD_MISC_COMM_EXEC) && wish.time))
            return;
        wish.path = strings_add(
            k->paths, (struct text){(const char *)record + 16,
                                    strnlen((const char *)record + 16, header->size - 16)});
        break;
    case PERF_RECORD_FORK: /* pid, its parent's, tid, … */
        wish.kind = WISH_FORK;
        wish.parent = (pid_t)load_u32(record + 12);
        if (wish.parent == wish.pid)
            return;
        break;
    case PERF_RECORD_EXIT:
        wish.kind = WISH_EXIT;
        if (header->size < 24 || (pid_t)load_u32(record + 16) != wish.pid)
            return;
        jvms_saw_exit(k->jvms, wish.pid);
        break;
    case PERF_RECORD_NAMESPACES:
        wish.kind = WISH_MOUNT;
        if (!is_leader || header->size < 24 + 6 * 16 || load_u64(record + 16) < 6)
            return;
        wish.start = load_u64(record + 24 + 5 * 16 + 8);
        break;
    default:
        return;
    }
    vector_push(&k->wishes, wish);
}

void keeper_saw_sample(struct keeper *k, const uint8_t *record,
                       const struct perf_event_header *header) {
    if (k)
        jvms_saw_sample(k->jvms, record, header);
}

/* A child has what its parent has, until it is seen to have something else. */
static void see_fork(struct keeper *k, const struct wish *wish) {
    const struct kept_process *parent = process_find(k, wish->parent);
    struct kept_process from = parent ? *parent : (struct kept_process){0};
    struct kept_process *child = process_get(k, wish->pid);
    if (child->map >= 0)
        close(child->map);
    if (child->folder)
        close(child->folder - 1);
    *child = (struct kept_process){
        .pid = wish->pid, .map = -1, .mount = from.mount, .labels = from.labels};
}

static bool grant(struct keeper *k, const struct wish *wish, struct error *error) {
    struct kept_process *process = process_find(k, wish->pid);
    switch (wish->kind) {
    case WISH_FORK:
        see_fork(k, wish);
        return true;
    case WISH_EXIT:
        if (process)
            process->has_ended = true;
        return true;
    case WISH_MOUNT:
        process_get(k, wish->pid)->mount = wish->start;
        return true;
    case WISH_PROCESS:
        return look_at_process(k, process_get(k, wish->pid), wish, error);
    case WISH_MAP:
    case WISH_FILE:
    case WISH_DUMP:
        break;
    }
    process = process_get(k, wish->pid);
    if (!process->looked && !look_at_process(k, process, wish, error))
        return false;
    if (wish->kind == WISH_MAP)
        process->has_code = true;
    else if (wish->kind == WISH_DUMP)
        dump_want(k, process, wish);
    else
        file_want(k, process, wish);
    if (wish->kind != WISH_FILE)
        return true;
    struct text path = strings_get(k->paths, wish->path);
    process->has_code |= text_starts(path, TEXT("/memfd:")); /* written by another mapping */
    runtime_saw(k, process, path);
    return true;
}

/* ---- what is kept ---- */

/* Everything that a descriptor reads, up to what may be kept at all. */
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

static bool write_entry(struct keeper *k, enum carrier_kind kind, struct text key,
                        struct text bytes, struct error *error) {
    uint64_t before = perfdata_writer_size(k->sink->writer);
    bool fine = carrier_write(k->sink->writer, kind, key, bytes, error);
    uint64_t size = perfdata_writer_size(k->sink->writer) - before;
    k->left -= size < k->left ? size : k->left;
    return fine;
}

/* Code hardly ever packs to less than a fifth: what could not fit then is not even read. */
static bool has_room(struct keeper *k, int descriptor, struct text path) {
    struct stat status;
    if (k->left && fstat(descriptor, &status) == 0 && (uint64_t)status.st_size / 5 <= k->left)
        return true;
    notes_add(&k->sink->result->notes, &note_full, 1, 0, "%.*s", TEXT_ARGS(path));
    return false;
}

/* What is under its name now may be another file, if the first was one that an earlier process with that pid had left. */
static bool write_map(struct keeper *k, struct kept_process *process, struct error *error) {
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
        fine = write_entry(k, CARRIER_PERF_MAP, (struct text){(const char *)key, sizeof key},
                           buffer_text(&k->bytes), error);
    return fine;
}

/* ---- jitdumps ---- */

/* If it has grown since it was written last. */
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
        fine = write_entry(k, CARRIER_DUMP, buffer_text(&key), buffer_text(&k->bytes), error);
    buffer_release(&key);
    return fine;
}

/* Those of one process, which has ended, or of all. */
static bool write_dumps(struct keeper *k, pid_t ended, struct error *error) {
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

static void put_file_key(struct buffer *key, uint64_t mount, const struct build_id *id,
                         struct text path) {
    struct build_id padded = {0};
    memcpy(padded.bytes, id->bytes, id->size);
    key->count = 0;
    buffer_put_u64(key, mount);
    buffer_put_u32(key, id->size);
    buffer_add(key, (struct text){(const char *)padded.bytes, BUILD_ID_MAX});
    buffer_add(key, path);
}

static bool write_file(struct keeper *k, struct kept_file *file, struct error *error) {
    struct text path = strings_get(k->paths, file->path);
    struct buffer key = {0};
    bool fine = true;
    put_file_key(&key, file->id.size ? 0 : file->mount, &file->id, path);
    if (key.count <= CARRIER_KEY_MOST && has_room(k, file->descriptor, path) &&
        file_is_that(file) && read_all(file->descriptor, &k->bytes))
        fine = file->is_kept =
            write_entry(k, CARRIER_FILE, buffer_text(&key), buffer_text(&k->bytes), error);
    close(file->descriptor);
    file->descriptor = -1;
    k->held--;
    buffer_release(&key);
    return fine;
}

static bool write_mount(struct keeper *k, struct error *error) {
    struct text mount = {(const char *)&k->own_mount, sizeof k->own_mount};
    return !k->own_mount ||
           carrier_write(k->sink->writer, CARRIER_FACT, TEXT("mount-namespace"), mount, error);
}

/* This process's stands for every 64-bit one's. */
static bool write_vdso(struct keeper *k, struct error *error) {
    struct build_id id;
    struct buffer key = {0};
    if (!object_vdso_build_id(&id))
        return true;
    put_file_key(&key, 0, &id, TEXT("[vdso]"));
    bool fine = write_entry(k, CARRIER_FILE, buffer_text(&key), object_vdso(), error);
    buffer_release(&key);
    return fine;
}

/* ---- turns ---- */

/* Most write their maps from the beginning on, or never. */
static bool is_time_to_look(struct kept_process *process) {
    enum { OFTEN = 8, SELDOM = 32 };
    unsigned looks = process->looks++;
    return process->has_ended || looks < OFTEN || looks % SELDOM == 0;
}

/* Maps of processes that are gone are as long as they will ever be. Others are looked for until they are there. */
static bool see_to_maps(struct keeper *k, struct error *error) {
    bool fine = true;
    for (size_t i = 0; fine && i < k->processes.count; i++) {
        struct kept_process *process = &k->processes.items[i];
        if (process->pid && process->has_code && process->map < 0 && is_time_to_look(process))
            map_open(k, process);
        if (!process->pid || !process->has_ended)
            continue;
        if (process->map >= 0)
            fine = write_map(k, process, error);
        fine = fine && write_dumps(k, process->pid, error);
        process_end(k, process);
    }
    return fine;
}

/* One file a turn, and no large one: the buffers fill meanwhile. */
static bool see_to_file(struct keeper *k, struct error *error) {
    enum { SMALL = 8 << 20 };
    struct stat status;
    for (size_t i = 0; i < k->files.count; i++) {
        struct kept_file *file = &k->files.items[i];
        if (file->descriptor >= 0 && file->is_needed && fstat(file->descriptor, &status) == 0 &&
            status.st_size <= SMALL)
            return write_file(k, file, error);
    }
    return true;
}

/* Each CPU has a buffer of its own: a mapping may come before the fork that made its process, which tells its namespace. */
static int order_wishes(const void *a, const void *b) {
    const struct wish *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void sort_wishes(struct keeper *k) {
    for (size_t i = 0; i < k->wishes.count; i++)
        k->wishes.items[i].number = (uint32_t)i;
    if (k->wishes.count > 1)
        qsort(k->wishes.items, k->wishes.count, sizeof *k->wishes.items, order_wishes);
}

static bool write_java(void *context, enum carrier_kind kind, struct text key, struct text bytes,
                       struct error *error) {
    struct keeper *k = context;
    if (k->left)
        return write_entry(k, kind, key, bytes, error);
    notes_add(&k->sink->result->notes, &note_full, 1, 0, "Java methods");
    return true;
}

static bool keeper_see(struct keeper *k, bool is_last, struct error *error) {
    bool fine = true;
    if (!k || !k->sink->writer || k->sink->only_names)
        return true;
    if (!k->begun) {
        k->begun = true;
        fine = write_mount(k, error) && write_vdso(k, error);
    }
    k->searches = 0;
    sort_wishes(k);
    for (size_t i = 0; fine && i < k->wishes.count; i++) {
        struct wish wish = k->wishes.items[i]; /* to grant one may add to the list */
        fine = grant(k, &wish, error);
    }
    k->wishes.count = 0;
    fine = fine && see_to_maps(k, error) && see_to_file(k, error) &&
           jvms_turn(k->jvms, is_last, write_java, k, error);
    drop_ended(k);
    return fine;
}

bool keeper_turn(struct keeper *k, struct error *error) {
    return keeper_see(k, false, error);
}

bool keeper_finish_window(struct keeper *k, struct error *error) {
    bool fine = true;
    struct stat status;
    for (size_t i = 0; k && fine && i < k->processes.count; i++) {
        struct kept_process *process = &k->processes.items[i];
        if (process->map < 0 || fstat(process->map, &status) != 0 ||
            status.st_size == process->map_size)
            continue;
        process->map_size = status.st_size;
        fine = write_map(k, process, error);
    }
    if (!k)
        return true;
    fine = fine && write_dumps(k, 0, error);
    jvms_begin_again(k->jvms);
    k->begun = false;
    k->left = KEEP_MOST;
    return fine;
}

bool keeper_finish(struct keeper *k, struct error *error) {
    bool fine = keeper_see(k, true, error);
    if (!k || !k->sink->writer || k->sink->only_names)
        return fine;
    for (size_t i = 0; fine && i < k->processes.count; i++) {
        struct kept_process *process = &k->processes.items[i];
        if (process->pid && process->has_code && process->map < 0)
            map_open(k, process);
        if (process->map >= 0)
            fine = write_map(k, process, error);
    }
    fine = fine && write_dumps(k, 0, error);
    for (size_t i = 0; fine && i < k->files.count; i++) {
        struct kept_file *file = &k->files.items[i];
        if (file->descriptor >= 0 && (file->is_needed || file_was_replaced(k, file)))
            fine = write_file(k, file, error);
    }
    return fine;
}

bool keeper_kept_unnamed(const struct keeper *k, struct text path) {
    for (size_t i = 0; k && i < k->files.count; i++) {
        const struct kept_file *file = &k->files.items[i];
        if (file->is_kept && !file->id.size && !file->mount &&
            text_equal(strings_get(k->paths, file->path), path))
            return true;
    }
    return false;
}

struct keeper *keeper_new(struct sink *sink, const struct record_options *options) {
    struct keeper *k = memory_zero(1, sizeof *k);
    *k = (struct keeper){.sink = sink,
                         .options = options,
                         .left = KEEP_MOST,
                         .own_mount = mount_of(getpid()),
                         .held_most = files_allowed(),
                         .paths = strings_new(),
                         .labels = strings_new(),
                         .jvms = jvms_new(sink)};
    return k;
}

void keeper_free(struct keeper *k) {
    if (!k)
        return;
    for (size_t i = 0; i < k->processes.count; i++) {
        if (k->processes.items[i].pid)
            runtime_ends(k, &k->processes.items[i]);
        if (k->processes.items[i].map >= 0)
            close(k->processes.items[i].map);
    }
    files_release(k);
    jvms_free(k->jvms);
    vector_release(&k->processes);
    vector_release(&k->wishes);
    index_release(&k->by_pid);
    strings_free(k->paths);
    strings_free(k->labels);
    buffer_release(&k->bytes);
    free(k);
}
