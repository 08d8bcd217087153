/*
 * Records of what already ran when the recording began, as the kernel would have written them: a COMM for every thread, an MMAP2 for every
 * executable mapping, and the kernel's own mapping. Their time is 0: they are valid from the beginning. The ptrace sampler writes later
 * events as the same records, with their time.
 */
#include "record/internal.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { BATCH = 1 << 16 };

static void add(struct buffer *buffer, const void *data, size_t size) {
    buffer_add(buffer, (struct text){data, size});
}

static void add_padded(struct buffer *buffer, struct text t) {
    buffer_add(buffer, t);
    do
        buffer_add_char(buffer, 0);
    while (buffer->count % 8);
}

/* Begin a record; finish_record() sets its size and adds the trailer that all records have. */
static void begin_record(struct buffer *buffer, uint32_t type, uint16_t misc) {
    struct perf_event_header header = {.type = type, .misc = misc};
    buffer->count = 0;
    add(buffer, &header, sizeof header);
}

/* Write records in batches: a process may have 65,530 mappings, and a system call for each would take most of the time. */
static bool flush_batch(struct sink *sink, struct error *error) {
    bool fine = !sink->batch.count ||
                sink_records(sink, (const uint8_t *)sink->batch.items, sink->batch.count, error);
    sink->batch.count = 0;
    return fine;
}

static bool finish_record(struct sink *sink, struct buffer *buffer, int32_t pid, int32_t tid,
                          struct error *error) {
    uint64_t known[] = {(uint64_t)(uint32_t)tid << 32 | (uint32_t)pid, sink->time};
    for (size_t i = 0; i < sink->trailer_words; i++)
        buffer_put_u64(buffer, i < COUNT_OF(known) ? known[i] : 0);
    if (buffer->count > UINT16_MAX)
        return true;
    ((struct perf_event_header *)buffer->items)->size = (uint16_t)buffer->count;
    if (sink->is_batching) {
        buffer_add(&sink->batch, buffer_text(buffer));
        return sink->batch.count < BATCH || flush_batch(sink, error);
    }
    return sink_records(sink, (const uint8_t *)buffer->items, buffer->count, error);
}

/* ---- namespaces ---- */

/* In the kernel's order. */
static const char *const namespaces[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};

bool synthesize_namespaces(struct sink *sink, pid_t pid, struct error *error) {
    if (!is_elsewhere(pid))
        return true;
    struct buffer record = {0};
    begin_record(&record, PERF_RECORD_NAMESPACES, 0);
    buffer_put_u32(&record, (uint32_t)pid);
    buffer_put_u32(&record, (uint32_t)pid);
    buffer_put_u64(&record, COUNT_OF(namespaces));
    for (size_t i = 0; i < COUNT_OF(namespaces); i++) {
        char path[64];
        struct stat status = {0};
        snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, namespaces[i]);
        stat(path, &status);
        buffer_put_u64(&record, status.st_dev);
        buffer_put_u64(&record, status.st_ino);
    }
    bool fine = finish_record(sink, &record, pid, pid, error);
    buffer_release(&record);
    return fine;
}

/* ---- processes ---- */

bool synthesize_name(struct sink *sink, pid_t pid, pid_t tid, struct text comm, bool exec,
                     struct error *error) {
    struct buffer record = {0};
    begin_record(&record, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0);
    buffer_put_u32(&record, (uint32_t)pid);
    buffer_put_u32(&record, (uint32_t)tid);
    add_padded(&record, comm);
    bool fine = finish_record(sink, &record, pid, tid, error);
    buffer_release(&record);
    return fine;
}

bool synthesize_comm(struct sink *sink, pid_t pid, pid_t tid, bool exec, struct error *error) {
    char path[64], comm[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
    return !file_read_small(path, comm, sizeof comm) ||
           synthesize_name(sink, pid, tid, text_of(comm), exec, error);
}

bool is_elsewhere(pid_t pid) {
    uint64_t mount = mount_of(pid);
    return mount && mount != mount_of(getpid());
}

/* Whether wick can't read the file at a process's path at the end, to get its build id: the process has its own mount namespace, or the file
   was replaced. */
static bool is_lost_here(bool elsewhere, const char *path) {
    return path[0] == '/' && (elsewhere || text_ends(text_of(path), TEXT(" (deleted)")));
}

static bool mapped_build_id(pid_t pid, uint64_t start, uint64_t end, const char *path,
                            struct build_id *id) {
    int descriptor = open_mapped(pid, start, end, path);
    bool found = descriptor >= 0 && descriptor_build_id(descriptor, id);
    if (descriptor >= 0)
        close(descriptor);
    return found;
}

/* Parse a line of /proc/PID/maps: "start-end prot offset major:minor inode   path". Write data mappings only if stacks are unwound later, as
   the kernel does: perf reads unwind tables through them, and learns from them what is not code. */
bool synthesize_mapping(struct sink *sink, pid_t pid, bool elsewhere, const char *line,
                        struct error *error) {
    unsigned long long start, end, offset, inode;
    unsigned major_number, minor_number;
    char protection[5];
    int at = 0;
    if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, protection, &offset,
               &major_number, &minor_number, &inode, &at) < 7 ||
        (protection[2] != 'x' && !sink->data_mappings))
        return true;
    bool executable = protection[2] == 'x';
    const char *path = line[at] ? line + at : "//anon";
    struct build_id id = {0};
    bool has_id = is_lost_here(elsewhere, path) && mapped_build_id(pid, start, end, path, &id);
    struct buffer record = {0};
    begin_record(&record, PERF_RECORD_MMAP2,
                 PERF_RECORD_MISC_USER | (executable ? 0 : PERF_RECORD_MISC_MMAP_DATA) |
                     (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
    buffer_put_u32(&record, (uint32_t)pid);
    buffer_put_u32(&record, (uint32_t)pid);
    buffer_put_u64(&record, start);
    buffer_put_u64(&record, end - start);
    buffer_put_u64(&record, offset);
    if (has_id) {
        buffer_put_u32(&record, id.size);
        add(&record, id.bytes, sizeof id.bytes);
    } else {
        buffer_put_u32(&record, major_number);
        buffer_put_u32(&record, minor_number);
        buffer_put_u64(&record, inode);
        buffer_put_u64(&record, 0);
    }
    buffer_put_u32(&record, (protection[0] == 'r' ? 1u : 0) | (protection[1] == 'w' ? 2u : 0) |
                                (executable ? 4u : 0));
    buffer_put_u32(&record, protection[3] == 's' ? 1 : 2);
    add_padded(&record, text_of(path));
    bool fine = finish_record(sink, &record, pid, pid, error);
    buffer_release(&record);
    return fine;
}

static bool put_mappings(struct sink *sink, pid_t pid, struct error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    char *line = NULL;
    size_t size = 0;
    bool fine = true, elsewhere = is_elsewhere(pid);
    for (ssize_t length; fine && (length = getline(&line, &size, file)) > 0;) {
        if (line[length - 1] == '\n')
            line[length - 1] = 0;
        fine = synthesize_mapping(sink, pid, elsewhere, line, error);
    }
    free(line);
    fclose(file);
    return fine;
}

bool synthesize_task(struct sink *sink, uint32_t type, struct task task, struct error *error) {
    struct buffer record = {0};
    bool was_before = type == PERF_RECORD_FORK && !sink->time;
    begin_record(&record, type, was_before ? PERF_RECORD_MISC_FORK_EXEC : 0);
    buffer_put_u32(&record, (uint32_t)task.pid);
    buffer_put_u32(&record, (uint32_t)task.parent_pid);
    buffer_put_u32(&record, (uint32_t)task.tid);
    buffer_put_u32(&record, (uint32_t)task.parent_tid);
    buffer_put_u64(&record, sink->time);
    bool fine = finish_record(sink, &record, task.pid, task.tid, error);
    buffer_release(&record);
    return fine;
}

/* Write each thread as a fork from its process's first thread, as the kernel would have. */
bool synthesize_threads(struct sink *sink, pid_t pid, struct error *error) {
    DIR *directory = tasks_open(pid, NULL);
    bool fine = !directory || (synthesize_namespaces(sink, pid, error) &&
                               synthesize_comm(sink, pid, pid, false, error));
    for (struct dirent *entry; fine && directory && (entry = readdir(directory));) {
        pid_t tid = atoi(entry->d_name);
        if (tid > 0 && tid != pid)
            fine =
                synthesize_task(sink, PERF_RECORD_FORK, (struct task){pid, pid, tid, pid}, error) &&
                synthesize_comm(sink, pid, tid, false, error);
    }
    if (directory)
        closedir(directory);
    return fine;
}

bool synthesize_process(struct sink *sink, pid_t pid, struct error *error) {
    sink->is_batching = true;
    bool fine = synthesize_threads(sink, pid, error) && put_mappings(sink, pid, error) &&
                flush_batch(sink, error);
    sink->is_batching = false;
    sink->batch.count = 0;
    return fine;
}

bool synthesize_all(struct sink *sink, struct error *error) {
    DIR *directory = opendir("/proc");
    bool fine = true;
    if (!directory)
        return error_errno(error, "/proc");
    for (struct dirent *entry; fine && (entry = readdir(directory));) {
        pid_t pid = atoi(entry->d_name);
        if (pid > 0)
            fine = synthesize_process(sink, pid, error) && keeper_turn_if_due(sink->keeper, error);
    }
    closedir(directory);
    return fine;
}

/* ---- the kernel ---- */

struct kernel_range {
    uint64_t start, end;
    bool named_stext;
};

static bool range_add(void *context, const struct kernel_symbol *symbol) {
    struct kernel_range *range = context;
    bool stext = text_equal(symbol->name, TEXT("_stext"));
    if ((stext || text_equal(symbol->name, TEXT("_text"))) && !range->start) {
        range->start = symbol->address;
        range->named_stext = stext;
    }
    if (text_equal(symbol->name, TEXT("_etext")))
        range->end = symbol->address;
    return !range->end;
}

/* Get the addresses of _text and _etext; return false if the kernel hides them (kptr_restrict) or has none. */
static bool kernel_range(struct kernel_range *range) {
    *range = (struct kernel_range){0};
    return kernel_symbols_each(range_add, range) && range->start && range->end > range->start;
}

static bool put_kernel_mapping(struct sink *sink, uint64_t start, uint64_t length, uint64_t offset,
                               const char *path, struct error *error) {
    struct buffer record = {0};
    begin_record(&record, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
    buffer_put_u32(&record, UINT32_MAX);
    buffer_put_u32(&record, 0);
    buffer_put_u64(&record, start);
    buffer_put_u64(&record, length);
    buffer_put_u64(&record, offset);
    add_padded(&record, text_of(path));
    bool fine = finish_record(sink, &record, -1, 0, error);
    buffer_release(&record);
    return fine;
}

static bool put_modules(struct sink *sink, struct error *error) {
    FILE *file = fopen("/proc/modules", "re");
    char line[600];
    bool fine = true;
    while (file && fine && fgets(line, sizeof line, file)) {
        char name[64], path[70];
        unsigned long long size, address;
        if (sscanf(line, "%63s %llu %*s %*s %*s %llx", name, &size, &address) != 3 || !address)
            continue;
        snprintf(path, sizeof path, "[%s]", name);
        fine = put_kernel_mapping(sink, address, size, 0, path, error);
    }
    if (file)
        fclose(file);
    return fine;
}

bool synthesize_kernel(struct sink *sink, struct error *error) {
    struct kernel_range range;
    if (!kernel_range(&range))
        return true;
    const char *path = range.named_stext ? "[kernel.kallsyms]_stext" : "[kernel.kallsyms]_text";
    return put_kernel_mapping(sink, range.start, range.end - range.start, range.start, path,
                              error) &&
           put_modules(sink, error);
}
