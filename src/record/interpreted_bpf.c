/*
 * Load the BPF program that takes stacks of interpreters with every sample, and read what it took. This uses about 17 MB of kernel memory
 * during a recording.
 */
#include "record/interpreted.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

extern const struct text interpreted_object;

struct walker {
    struct bpf_object *object;
    struct ring_buffer *ring;
    struct bpf_link *link; /* to switches, if waits are summed in the kernel */
    int program, switch_program, processes;
    walker_visit *visit; /* these are set while it is drained */
    walker_visit_code *visit_code;
    walker_visit_memory *visit_memory;
    void *context;
};

static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments) {
    return 0;
}

/* The program, verified by the kernel, wrote what is in the ring, so its sizes are right. */
static int take(void *context, void *data, size_t size) {
    struct walker *walker = context;
    const struct raw_stack *stack = data;
    const struct raw_code *code = data;
    if (size >= offsetof(struct raw_code, lines) && stack->end == STACK_CODE)
        walker->visit_code(walker->context, code);
    else if (size >= offsetof(struct raw_stack, frames) && stack->count <= STACK_FRAMES &&
             size >= offsetof(struct raw_stack, frames) + stack->count * sizeof *stack->frames)
        walker->visit(walker->context, stack);
    return 0;
}

static int take_memory(void *context, void *data, size_t size) {
    struct walker *walker = context;
    const struct raw_memory *part = data;
    if (size >= sizeof *part && part->size <= MEMORY_PART)
        walker->visit_memory(walker->context, part);
    return 0;
}

static int program_named(const struct walker *walker, const char *name) {
    struct bpf_program *program = bpf_object__find_program_by_name(walker->object, name);
    return program ? bpf_program__fd(program) : -1;
}

/* Without waits, don't allocate memory that only they need. */
static void prepare_waits(const struct walker *walker, bool sums_waits) {
    static const char *const maps[] = {"threads", "kinds", "told"};
    struct bpf_program *program = bpf_object__find_program_by_name(walker->object, "on_leave");
    if (program)
        bpf_program__set_autoload(program, sums_waits);
    for (size_t i = 0; !sums_waits && i < COUNT_OF(maps); i++)
        bpf_map__set_max_entries(bpf_object__find_map_by_name(walker->object, maps[i]), 1);
}

static void attach_to_switches(struct walker *walker) {
    struct bpf_program *program = bpf_object__find_program_by_name(walker->object, "on_leave");
    walker->link = program ? bpf_program__attach(program) : NULL;
}

static bool load(struct walker *walker, bool sums_waits, struct error *error) {
    LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "wick");
    walker->object =
        bpf_object__open_mem(interpreted_object.data, interpreted_object.length, &options);
    if (walker->object)
        prepare_waits(walker, sums_waits);
    int failed = walker->object ? bpf_object__load(walker->object) : -errno;
    if (failed == -EPERM)
        return error_set(error, ERROR_DENIED,
                         "BPF is not permitted: it needs root, or CAP_BPF and CAP_PERFMON");
    if (failed)
        return error_set(error, ERROR_DENIED, "BPF: this kernel rejects the program: %s",
                         failed == -EACCES ? "it can't prove that it is safe" : strerror(-failed));
    walker->program = program_named(walker, "on_sample");
    walker->switch_program = program_named(walker, "on_switch");
    walker->processes = bpf_object__find_map_fd_by_name(walker->object, "processes");
    int ring = bpf_object__find_map_fd_by_name(walker->object, "ring");
    if (sums_waits)
        attach_to_switches(walker);
    walker->ring = ring >= 0 ? ring_buffer__new(ring, take, walker, NULL) : NULL;
    if (walker->ring)
        ring_buffer__add(walker->ring, walker_map(walker, "memories"), take_memory, walker);
    return walker->ring ||
           error_set(error, ERROR_DENIED, "BPF: no buffer for stacks: %s", strerror(errno));
}

struct walker *walker_open(bool sums_waits, struct error *error) {
    if (!in_first_pid_namespace()) {
        error_set(error, ERROR_DENIED, "BPF works only on the host, not inside a container");
        return NULL;
    }
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
        error_set(error, ERROR_DENIED, "BPF: this kernel does not describe its types");
        return NULL;
    }
    libbpf_set_print(say_nothing);
    struct walker *walker = memory_zero(1, sizeof *walker);
    if (load(walker, sums_waits, error))
        return walker;
    walker_close(walker);
    return NULL;
}

void walker_close(struct walker *walker) {
    if (!walker)
        return;
    bpf_link__destroy(walker->link);
    ring_buffer__free(walker->ring);
    bpf_object__close(walker->object);
    free(walker);
}

int walker_map(const struct walker *walker, const char *name) {
    return bpf_object__find_map_fd_by_name(walker->object, name);
}

void walker_set_copied(struct walker *walker, uint64_t size) {
    bpf_map_update_elem(walker_map(walker, "copied"), &(uint32_t){0}, &size, BPF_ANY);
}

int walker_program(const struct walker *walker) {
    return walker->program;
}

int walker_switch_program(const struct walker *walker) {
    return walker->switch_program;
}

int walker_descriptor(const struct walker *walker) {
    return ring_buffer__epoll_fd(walker->ring);
}

void walker_set(struct walker *walker, pid_t pid, const struct frame_layout *layout) {
    bpf_map_update_elem(walker->processes, &pid, layout, BPF_ANY);
}

void walker_forget(struct walker *walker, pid_t pid) {
    bpf_map_delete_elem(walker->processes, &pid);
}

void walker_drain(struct walker *walker, walker_visit *visit, walker_visit_code *visit_code,
                  walker_visit_memory *visit_memory, void *context) {
    walker->visit = visit;
    walker->visit_code = visit_code;
    walker->visit_memory = visit_memory;
    walker->context = context;
    ring_buffer__consume(walker->ring);
}
