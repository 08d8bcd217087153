/*
 * Load the BPF program for allocations, attach it to the functions of an allocator, and read what it caught. It takes 30 MB of kernel memory.
 *
 * Since Linux 6.13, a program can decide on entry whether it wants to see the return (a session), so a call that is not sampled costs one
 * trap. Older kernels trap twice for each call.
 */
#include "record/heap_catch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const struct text heap_object;

/* From the kernel's user interface; newer than the headers that wick is built with. */
enum { UPROBE_MULTI = 48, UPROBE_SESSION = 57, LINK_CREATE = 28 };
struct link_request {
    uint32_t program, target, type, flags;
    uint64_t path, offsets, counters, cookies;
    uint32_t count, multi_flags, pid;
};

enum { VARIABLES_PAGE = 4096, MEAN_MOST = 1u << 31 };

struct catcher {
    struct bpf_object *object;
    struct ring_buffer *rings;
    struct catch_variables *variables; /* the program's own, mapped */
    bool sessions;
    uint64_t mean, seen_lost;
    VECTOR(int) descriptors; /* links that we made */
    VECTOR(struct bpf_link *) links;
    /* while it is drained */
    heap_reader *reader;
    void *context;
    struct error *error;
    bool failed;
    size_t bytes;
};

static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments) {
    return 0;
}

/* ---- what was caught ---- */

/* The program, verified by the kernel, wrote what is in the rings. */
static int catch_one(void *context, void *data, size_t size) {
    struct catcher *c = context;
    const struct caught *caught = data;
    const struct caught_free *head = data;
    if (size < sizeof *head || c->failed)
        return 0;
    struct heap_record record = {.kind = (uint16_t)head->kind,
                                 .cpu = (uint16_t)head->cpu,
                                 .pid = (int32_t)head->pid,
                                 .tid = (int32_t)head->tid,
                                 .time = head->time,
                                 .address = head->address};
    if (size >= sizeof *caught && caught->stack_size <= HEAP_STACK_MOST) {
        record.bytes = caught->bytes;
        record.mean = caught->mean;
        memcpy(record.registers, caught->registers, sizeof record.registers);
        record.stack_size = caught->stack_size & ~7ull;
    }
    if (head->kind == CAUGHT_UNMAP && size >= sizeof(struct caught_unmap))
        record.bytes = ((const struct caught_unmap *)data)->bytes;
    c->bytes += size;
    c->failed = !c->reader(c->context, &record, caught->stack, c->error);
    return 0;
}

static void look_at_losses(struct catcher *c) {
    uint64_t lost = __atomic_load_n(&c->variables->lost, __ATOMIC_RELAXED);
    if (lost == c->seen_lost)
        return;
    c->seen_lost = lost;
    c->mean = c->mean < MEAN_MOST ? c->mean * 2 : c->mean;
    if (c->variables->mean)
        __atomic_store_n(&c->variables->mean, c->mean, __ATOMIC_RELAXED);
}

bool catcher_drain(struct catcher *c, heap_reader *reader, void *context, unsigned *busy,
                   struct error *error) {
    c->reader = reader;
    c->context = context;
    c->error = error;
    c->failed = false;
    c->bytes = 0;
    ring_buffer__consume(c->rings);
    look_at_losses(c);
    *busy = (unsigned)(c->bytes * 100 / CATCH_RING);
    return !c->failed;
}

struct heap_losses catcher_losses(const struct catcher *c) {
    return (struct heap_losses){
        .allocations = c->variables->lost, .frees = c->variables->lost_frees, .mean = c->mean};
}

uint64_t catcher_calls(const struct catcher *c) {
    return c->variables->calls;
}

int catcher_descriptor(const struct catcher *c) {
    return ring_buffer__epoll_fd(c->rings);
}

void catcher_enable(struct catcher *c, bool on) {
    __atomic_store_n(&c->variables->mean, on ? c->mean : 0, __ATOMIC_RELAXED);
}

/* ---- loading ---- */

static struct bpf_program *program_of(const struct catcher *c, const char *name) {
    return bpf_object__find_program_by_name(c->object, name);
}

static int load_with(struct catcher *c, bool sessions) {
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "wick");
    c->object = bpf_object__open_mem(heap_object.data, heap_object.length, &options);
    if (!c->object)
        return -errno;
    c->sessions = sessions;
    bpf_program__set_autoload(program_of(c, "on_session"), sessions);
    bpf_program__set_autoload(program_of(c, "on_enter"), !sessions);
    bpf_program__set_autoload(program_of(c, "on_leave"), !sessions);
    if (sessions) {
        bpf_program__set_expected_attach_type(program_of(c, "on_session"),
                                              (enum bpf_attach_type)UPROBE_SESSION);
        bpf_program__set_expected_attach_type(program_of(c, "on_free"),
                                              (enum bpf_attach_type)UPROBE_MULTI);
    }
    return bpf_object__load(c->object);
}

static bool load(struct catcher *c, struct error *error) {
    int failed = load_with(c, true);
    if (failed) {
        bpf_object__close(c->object);
        failed = load_with(c, false);
    }
    if (failed == -EPERM)
        return error_set(error, ERROR_DENIED,
                         "BPF is not permitted: recording the allocations of a running process "
                         "needs root, or CAP_BPF and CAP_PERFMON");
    return !failed ||
           error_set(error, ERROR_DENIED, "BPF: this kernel rejects the program: %s",
                     failed == -EACCES ? "it can't prove that it is safe" : strerror(-failed));
}

static bool open_rings(struct catcher *c, struct error *error) {
    struct bpf_map *variables = bpf_object__find_map_by_name(c->object, ".bss");
    void *page = variables ? mmap(NULL, VARIABLES_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
                                  bpf_map__fd(variables), 0)
                           : MAP_FAILED;
    if (page == MAP_FAILED)
        return error_set(error, ERROR_DENIED, "BPF: the program's variables can't be mapped");
    c->variables = page;
    c->variables->page = (uint64_t)sysconf(_SC_PAGESIZE);
    int ring = bpf_object__find_map_fd_by_name(c->object, "ring"),
        frees = bpf_object__find_map_fd_by_name(c->object, "frees");
    c->rings = ring_buffer__new(ring, catch_one, c, NULL);
    return (c->rings && ring_buffer__add(c->rings, frees, catch_one, c) == 0) ||
           error_set(error, ERROR_DENIED, "BPF: no buffers: %s", strerror(errno));
}

struct catcher *catcher_open(uint64_t mean, struct error *error) {
    if (!in_first_pid_namespace()) {
        error_set(error, ERROR_DENIED,
                  "BPF works only on the host, not inside a container: start the program with "
                  "--heap -- COMMAND instead");
        return NULL;
    }
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
        error_set(error, ERROR_DENIED,
                  "BPF: this kernel does not describe its types (no /sys/kernel/btf/vmlinux)");
        return NULL;
    }
    libbpf_set_print(say_nothing);
    struct catcher *c = memory_zero(1, sizeof *c);
    c->mean = mean < MEAN_MOST ? mean : MEAN_MOST;
    if (load(c, error) && open_rings(c, error))
        return c;
    catcher_close(c);
    return NULL;
}

void catcher_close(struct catcher *c) {
    if (!c)
        return;
    for (size_t i = 0; i < c->descriptors.count; i++)
        close(c->descriptors.items[i]);
    for (size_t i = 0; i < c->links.count; i++)
        bpf_link__destroy(c->links.items[i]);
    vector_release(&c->descriptors);
    vector_release(&c->links);
    ring_buffer__free(c->rings);
    if (c->variables)
        munmap(c->variables, VARIABLES_PAGE);
    bpf_object__close(c->object);
    free(c);
}

/* ---- attaching ---- */

static bool is_free(const struct catch_site *site) {
    return (site->cookie & 0xff) == CATCH_FREE;
}

static bool refuse(pid_t pid, int why, struct error *error) {
    return error_set(error, why == ESRCH ? ERROR_INPUT : ERROR_DENIED,
                     "process %d: the kernel can't place a probe on its allocator: %s", pid,
                     strerror(why));
}

/* Attach to all functions of a file that use one program, as one link. */
static bool add_session(struct catcher *c, pid_t pid, const struct catch_file *file, bool frees,
                        struct error *error) {
    char path[40];
    uint64_t *offsets = memory_zero(2 * file->sites.count + 1, sizeof *offsets);
    uint64_t *cookies = offsets + file->sites.count;
    uint32_t count = 0;
    for (size_t i = 0; i < file->sites.count; i++) {
        if (is_free(&file->sites.items[i]) != frees)
            continue;
        offsets[count] = file->sites.items[i].offset;
        cookies[count++] = file->sites.items[i].cookie;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->descriptor);
    struct link_request request = {
        .program = (uint32_t)bpf_program__fd(program_of(c, frees ? "on_free" : "on_session")),
        .type = frees ? UPROBE_MULTI : UPROBE_SESSION,
        .path = (uintptr_t)path,
        .offsets = (uintptr_t)offsets,
        .cookies = (uintptr_t)cookies,
        .count = count,
        .pid = (uint32_t)pid,
    };
    int link = count ? (int)syscall(SYS_bpf, LINK_CREATE, &request, sizeof request) : -1;
    int why = errno;
    free(offsets);
    if (link >= 0)
        vector_push(&c->descriptors, link);
    return link >= 0 || !count || refuse(pid, why, error);
}

static bool add_one(struct catcher *c, pid_t pid, const char *path, const struct catch_site *site,
                    const char *program, struct error *error) {
    bool is_return = strcmp(program, "on_leave") == 0;
    LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = is_return, .bpf_cookie = site->cookie);
    struct bpf_link *link =
        bpf_program__attach_uprobe_opts(program_of(c, program), pid, path, site->offset, &options);
    if (!link)
        return refuse(pid, errno, error);
    vector_push(&c->links, link);
    return true;
}

static bool add_each(struct catcher *c, pid_t pid, const struct catch_file *file,
                     struct error *error) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file->descriptor);
    for (size_t i = 0; i < file->sites.count; i++) {
        const struct catch_site *site = &file->sites.items[i];
        if (is_free(site) ? !add_one(c, pid, path, site, "on_free", error)
                          : !add_one(c, pid, path, site, "on_leave", error) ||
                                !add_one(c, pid, path, site, "on_enter", error))
            return false;
    }
    return true;
}

bool catcher_add(struct catcher *c, pid_t pid, const catch_files *files, struct error *error) {
    for (size_t i = 0; i < files->count; i++) {
        const struct catch_file *file = &files->items[i];
        if (c->sessions ? !add_session(c, pid, file, true, error) ||
                              !add_session(c, pid, file, false, error)
                        : !add_each(c, pid, file, error))
            return false;
    }
    return true;
}
