/*
 * Keep in the recording what will be gone when it is read: perf maps, files that can't be found elsewhere, labels of processes.
 *
 * Records on their way to the file only add wishes to a list. The wishes are processed between two rounds, so that no buffer waits for a
 * file. A file is opened as soon as its mapping is seen and read at the end: an open descriptor outlives its process, its path and its mount
 * namespace. The contents go to the recording through its carrier (docs/carrier.md).
 */
#include "record/keep.h"
#include "object/jitdump.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- wishes ---- */

static bool is_anonymous(struct text path) {
    return !path.length || path.data[0] == '[' || text_equal(path, TEXT("//anon")) ||
           text_starts(path, TEXT("/dev/zero")) || text_starts(path, TEXT("/anon_hugepage")) ||
           text_starts(path, TEXT("/SYSV"));
}

static void wish_mapping(struct keeper *k, struct wish wish, const uint8_t *record,
                         const struct perf_event_header *header) {
    enum { START = 16, INODE = 48, PROTECTION = 64, NAME = 72 };
    if (header->size <= NAME || !(load_u32(record + PROTECTION) & 4))
        return;
    struct text path = {(const char *)record + NAME,
                        strnlen((const char *)record + NAME, header->size - NAME)};
    wish.start = load_u64(record + START);
    wish.end = wish.start + load_u64(record + START + 8);
    if (!mapping_build_id(k->sink, record, header, &wish.id))
        wish.inode = load_u64(record + INODE);
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
        return; /* only part of a split sample is here */
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
    case PERF_RECORD_COMM: /* at exec, or for a process that already ran */
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
                       const struct perf_event_header *header, size_t have) {
    if (!k)
        return;
    size_t before_stack =
        header->size > k->sink->stack_size ? header->size - k->sink->stack_size : header->size;
    kernel_hits_saw(k->hits, record, have < before_stack ? have : before_stack);
    if (have >= header->size)
        jvms_saw_sample(k->jvms, record, header);
}

void keeper_saw_memory(struct keeper *k, pid_t pid, uint64_t address, struct text bytes) {
    if (k)
        jvms_saw_memory(k->jvms, pid, address, bytes);
}

/* A child has its parent's attributes until it is seen to have others. */
static void see_fork(struct keeper *k, const struct wish *wish) {
    const struct kept_process *parent = kept_process_find(k, wish->parent);
    struct kept_process from = parent ? *parent : (struct kept_process){0};
    struct kept_process *child = kept_process_get(k, wish->pid);
    if (child->map >= 0)
        close(child->map);
    if (child->folder)
        close(child->folder - 1);
    *child = (struct kept_process){
        .pid = wish->pid, .map = -1, .mount = from.mount, .labels = from.labels};
}

static bool grant(struct keeper *k, const struct wish *wish, struct error *error) {
    struct kept_process *process = kept_process_find(k, wish->pid);
    switch (wish->kind) {
    case WISH_FORK:
        see_fork(k, wish);
        return true;
    case WISH_EXIT:
        if (process)
            process->has_ended = true;
        return true;
    case WISH_MOUNT:
        kept_process_get(k, wish->pid)->mount = wish->start;
        return true;
    case WISH_PROCESS:
        return kept_process_look(k, kept_process_get(k, wish->pid), wish, error);
    case WISH_MAP:
    case WISH_FILE:
    case WISH_DUMP:
        break;
    }
    process = kept_process_get(k, wish->pid);
    if (!process->looked && !kept_process_look(k, process, wish, error))
        return false;
    if (wish->kind == WISH_MAP)
        process->has_code = true;
    else if (wish->kind == WISH_DUMP)
        dump_want(k, process, wish);
    if (wish->kind != WISH_FILE)
        return true;
    struct text path = strings_get(k->paths, wish->path);
    if (text_starts(path, TEXT("/memfd:")) && !wish->id.size)
        process->has_code = true; /* generated, through another mapping */
    else
        file_want(k, process, wish);
    runtime_saw(k, process, path);
    return true;
}

/* ---- turns ---- */

/* Most runtimes write their maps from the beginning, or never. */
static bool is_time_to_look(struct kept_process *process) {
    enum { OFTEN = 8, SELDOM = 32 };
    unsigned looks = process->looks++;
    return process->has_ended || looks < OFTEN || looks % SELDOM == 0;
}

/* Maps of exited processes are complete. For others, keep looking until there is a map. */
static bool see_to_maps(struct keeper *k, struct error *error) {
    bool fine = true;
    for (size_t i = 0; fine && i < k->processes.count; i++) {
        struct kept_process *process = &k->processes.items[i];
        if (process->pid && process->has_code && process->map < 0 && is_time_to_look(process))
            map_open(k, process);
        if (!process->pid || !process->has_ended)
            continue;
        if (process->map >= 0)
            fine = keep_map(k, process, error);
        fine = fine && keep_dumps(k, process->pid, error);
        kept_process_end(k, process);
    }
    return fine;
}

/* One file per turn, and no large one, because the buffers fill meanwhile. */
static bool see_to_file(struct keeper *k, struct error *error) {
    enum { SMALL = 8 << 20 };
    struct stat status;
    for (size_t i = 0; i < k->files.count; i++) {
        struct kept_file *file = &k->files.items[i];
        if (file->descriptor >= 0 && file->is_needed && fstat(file->descriptor, &status) == 0 &&
            status.st_size <= SMALL)
            return keep_file(k, file, error);
    }
    return true;
}

/* Each CPU has its own buffer, so a mapping may arrive before the fork that created its process and says its namespace. */
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
        return keep_entry(k, kind, key, bytes, error);
    keep_note_full(k, TEXT("Java methods"));
    return true;
}

static bool keeper_see(struct keeper *k, bool is_last, struct error *error) {
    bool fine = true;
    if (!k || !k->sink->writer || k->sink->only_names)
        return true;
    if (!k->begun) {
        k->begun = true;
        fine = keep_mount(k, error) && keep_vdso(k, error);
    }
    k->searches = 0;
    sort_wishes(k);
    for (size_t i = 0; fine && i < k->wishes.count; i++) {
        struct wish wish = k->wishes.items[i]; /* granting one may add to the list */
        fine = grant(k, &wish, error);
    }
    k->wishes.count = 0;
    fine = fine && see_to_maps(k, error) && see_to_file(k, error) &&
           jvms_turn(k->jvms, is_last, write_java, k, error);
    kept_processes_drop_ended(k);
    return fine;
}

bool keeper_turn(struct keeper *k, struct error *error) {
    return keeper_see(k, false, error);
}

bool keeper_turn_if_due(struct keeper *k, struct error *error) {
    enum { DUE = WISHES_MOST / 64 };
    return !k || k->wishes.count < DUE || keeper_turn(k, error);
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
        fine = keep_map(k, process, error);
    }
    if (!k)
        return true;
    fine = fine && keep_dumps(k, 0, error);
    jvms_begin_again(k->jvms);
    k->begun = false;
    k->left = KEEP_MOST;
    return fine;
}

/* What is built again while its profile is still looked at would lose its names. What does not fit is not missed until then. */
static bool keep_own_files(struct keeper *k, struct error *error) {
    uint64_t left = KEEP_OWN_MOST;
    bool fine = true, wanted = k->options->keep_own && k->options->keep == KEEP_DEFAULT;
    for (size_t i = 0; fine && wanted && i < k->files.count; i++) {
        struct kept_file *file = &k->files.items[i];
        uint64_t size = (uint64_t)file->size;
        if (file->descriptor < 0 || !file_is_own(k, file) || size > left || size / 5 > k->left)
            continue;
        left -= size;
        fine = keep_file(k, file, error);
    }
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
            fine = keep_map(k, process, error);
    }
    fine = fine && keep_dumps(k, 0, error);
    for (size_t i = 0; fine && i < k->files.count; i++) {
        struct kept_file *file = &k->files.items[i];
        if (file->descriptor >= 0 && (file->is_needed || file_was_replaced(k, file)))
            fine = keep_file(k, file, error);
    }
    return fine && keep_own_files(k, error) && keep_kernel_names(k, error);
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
                         .jvms = jvms_new(sink),
                         .hits = options->heap ? NULL : kernel_hits_new()};
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
    kernel_hits_free(k->hits);
    vector_release(&k->processes);
    vector_release(&k->wishes);
    index_release(&k->by_pid);
    strings_free(k->paths);
    strings_free(k->labels);
    buffer_release(&k->bytes);
    free(k);
}
