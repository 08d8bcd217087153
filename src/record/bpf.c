/*
 * Load the BPF program for off-CPU time, set its targets, and read its sums.
 *
 * The program is embedded in wick as an object file; libbpf adapts it to the running kernel. All maps together take about 50 MB of kernel
 * memory during a recording, and 33 MB more for copies of stacks (66 MB system-wide).
 */
#include "record/internal.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct text offcpu_object;

struct sums {
    struct bpf_object *object;
    VECTOR(struct bpf_link *) links;
    int variables, threads, sums, troubles, copies, stacks[OFF_CPU_STACK_MAPS];
    struct off_cpu_settings settings;
    uint64_t ended;         /* when it was last disabled */
    summed_list unfinished; /* then */
};

static int say_nothing(enum libbpf_print_level level, const char *format, va_list arguments) {
    return 0;
}

/* The kernel's BTF describes the tracepoint as a function with one argument more than the tracepoint has. */
static bool switch_has_state(void) {
    struct btf *btf = btf__load_vmlinux_btf();
    if (!btf)
        return false;
    int id = btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
    const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
    type = type ? btf__type_by_id(btf, type->type) : NULL;
    type = type && btf_is_ptr(type) ? btf__type_by_id(btf, type->type) : NULL;
    bool found = type && btf_is_func_proto(type) && btf_vlen(type) >= 5;
    btf__free(btf);
    return found;
}

/* The program sees thread ids of the first pid namespace; in another namespace they would mean other threads. */
bool in_first_pid_namespace(void) {
    enum { FIRST_PID_NAMESPACE = 0xEFFFFFFC };
    struct stat status;
    return stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == FIRST_PID_NAMESPACE;
}

static bool can_copy_stacks(const struct record_options *options) {
#if defined(__x86_64__) || defined(__aarch64__)
    return options->call_graph == CALL_GRAPH_DWARF && !options->kernel_only;
#else
    return false;
#endif
}

bool sums_copies(const struct sums *sums) {
    return sums->settings.copies;
}

static void set_settings(struct sums *sums, const struct record_options *options, bool copies,
                         bool one_group) {
    sums->settings = (struct off_cpu_settings){
        .least = options->least_wait,
        .most = options->most_wait ? options->most_wait : UINT64_MAX,
        .everything = options->system_wide,
        .has_prev_state = switch_has_state(),
        .user = !options->kernel_only && options->call_graph != CALL_GRAPH_NONE,
        .kernel = !options->user_only && options->call_graph != CALL_GRAPH_NONE,
        .copies = copies,
        .copy_size = options->stack_size,
        .one_in = options->one_wait_in,
        .some_cpus = options->cpu_count != 0,
        .one_group = one_group,
    };
    for (size_t i = 0; i < options->cpu_count; i++)
        sums->settings.cpus[options->cpus[i] / 64] |= 1ull << options->cpus[i] % 64;
}

/* Another program finds what interpreters run; it needs the threads and provides the kinds of their stacks. */
static void share_maps(struct sums *sums, const struct interpreted *interpreted) {
    static const char *const names[] = {"threads", "kinds"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct bpf_map *map = bpf_object__find_map_by_name(sums->object, names[i]);
        int shared = interpreted_map(interpreted, names[i]);
        if (map && shared >= 0)
            bpf_map__reuse_fd(map, shared);
        else if (map && i > 0)
            bpf_map__set_max_entries(map, 1);
    }
}

/* The memory for copies is allocated up front, so limit it to what can be filled. */
static void size_copies(struct bpf_object *object, const struct record_options *options,
                        bool copies) {
    struct bpf_map *map = bpf_object__find_map_by_name(object, "copies");
    struct bpf_map *scratch = bpf_object__find_map_by_name(object, "scratch");
    int cpus = libbpf_num_possible_cpus();
    if (map) {
        bpf_map__set_max_entries(map, !copies                ? 1
                                      : options->system_wide ? 2 * OFF_CPU_COPIES
                                                             : OFF_CPU_COPIES);
        bpf_map__set_value_size(
            map, (uint32_t)(offsetof(struct off_cpu_copy, stack) + options->stack_size));
    }
    if (scratch && copies && cpus > 0)
        bpf_map__set_max_entries(scratch, (uint32_t)cpus);
}

static bool load(struct sums *sums, const struct record_options *options, bool copies,
                 bool one_group, const struct interpreted *interpreted, struct error *error) {
    LIBBPF_OPTS(bpf_object_open_opts, open_options, .object_name = "wick");
    sums->object = bpf_object__open_mem(offcpu_object.data, offcpu_object.length, &open_options);
    if (!sums->object)
        return error_set(error, ERROR_INTERNAL, "BPF: the program can't be opened: %s",
                         strerror(errno));
    struct bpf_program *program = bpf_object__find_program_by_name(sums->object, "on_waking");
    if (program)
        bpf_program__set_autoload(program, options->wakers);
    program = bpf_object__find_program_by_name(sums->object, "on_newtask");
    if (program)
        bpf_program__set_autoload(program, !options->no_inherit && !options->system_wide);
    struct bpf_map *map = bpf_object__find_map_by_name(sums->object, ".rodata");
    set_settings(sums, options, copies, one_group);
    if (!map || bpf_map__set_initial_value(map, &sums->settings, sizeof sums->settings) != 0)
        return error_set(error, ERROR_INTERNAL, "BPF: the program has no settings");
    size_copies(sums->object, options, copies);
    share_maps(sums, interpreted);
    int failed = bpf_object__load(sums->object);
    if (failed == -EPERM)
        return error_set(error, ERROR_DENIED,
                         "BPF is not permitted: it needs root, or CAP_BPF and CAP_PERFMON");
    if (failed)
        return error_set(error, ERROR_DENIED, "BPF: this kernel rejects the program: %s",
                         failed == -EACCES ? "it can't prove that it is safe" : strerror(-failed));
    return true;
}

static int map_of(struct sums *sums, const char *name) {
    return bpf_object__find_map_fd_by_name(sums->object, name);
}

static bool attach(struct sums *sums, struct error *error) {
    struct bpf_map *variables = bpf_object__find_map_by_name(sums->object, ".bss");
    sums->variables = variables ? bpf_map__fd(variables) : -1;
    sums->threads = map_of(sums, "threads");
    sums->sums = map_of(sums, "sums");
    sums->troubles = map_of(sums, "troubles");
    sums->copies = map_of(sums, "copies");
    sums->stacks[0] = map_of(sums, "stacks_0");
    sums->stacks[1] = map_of(sums, "stacks_1");
    sums->stacks[2] = map_of(sums, "stacks_2");
    struct bpf_program *program;
    bpf_object__for_each_program(program, sums->object) {
        if (!bpf_program__autoload(program))
            continue;
        struct bpf_link *link = bpf_program__attach(program);
        if (!link)
            return error_set(error, ERROR_DENIED, "BPF: %s can't be attached: %s",
                             bpf_program__section_name(program), strerror(errno));
        vector_push(&sums->links, link);
    }
    return true;
}

/* Version 1 control groups have hierarchies that BPF does not support. */
static bool set_group(struct sums *sums, int group, struct error *error) {
    uint32_t first = 0;
    return group < 0 || bpf_map_update_elem(map_of(sums, "group"), &first, &group, BPF_ANY) == 0 ||
           error_set(error, ERROR_DENIED,
                     "BPF: this control group is not of version 2 (%s): use --off-cpu=perf",
                     strerror(errno));
}

static struct sums *open_with(const struct record_options *options, int group, bool copies,
                              const struct interpreted *interpreted, struct error *error) {
    struct sums *sums = memory_zero(1, sizeof *sums);
    if (load(sums, options, copies, group >= 0, interpreted, error) &&
        set_group(sums, group, error) && attach(sums, error))
        return sums;
    sums_close(sums);
    return NULL;
}

static bool cpus_fit(const struct record_options *options, struct error *error) {
    for (size_t i = 0; i < options->cpu_count; i++)
        if (options->cpus[i] >= OFF_CPU_CPUS)
            return error_set(error, ERROR_USAGE,
                             "BPF distinguishes at most %d CPUs: use --off-cpu=perf",
                             OFF_CPU_CPUS - 1);
    return true;
}

struct sums *sums_open(const struct record_options *options, int group,
                       const struct interpreted *interpreted, struct error *error) {
    if (!cpus_fit(options, error))
        return NULL;
    if (!in_first_pid_namespace()) {
        error_set(error, ERROR_DENIED,
                  "BPF works only on the host, not inside a container: use --off-cpu=perf");
        return NULL;
    }
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
        error_set(error, ERROR_DENIED,
                  "BPF: this kernel does not describe its types (no /sys/kernel/btf/vmlinux): use "
                  "--off-cpu=perf");
        return NULL;
    }
    libbpf_set_print(say_nothing);
    bool copies = can_copy_stacks(options);
    struct sums *sums = open_with(options, group, copies, interpreted, error);
    if (!sums && copies)
        sums = open_with(options, group, false, interpreted, error); /* kernels before 5.15 */
    return sums;
}

void sums_close(struct sums *sums) {
    if (!sums)
        return;
    for (size_t i = 0; i < sums->links.count; i++)
        bpf_link__destroy(sums->links.items[i]);
    vector_release(&sums->links);
    vector_release(&sums->unfinished);
    bpf_object__close(sums->object);
    free(sums);
}

void sums_add_thread(struct sums *sums, pid_t tid, bool until_exec) {
    struct off_cpu_thread fresh = {.until_exec = until_exec};
    if (tid > 0)
        bpf_map_update_elem(sums->threads, &tid, &fresh, BPF_NOEXIST);
}

/* ---- reading the sums ---- */

static void read_sums(struct sums *sums, summed_list *list) {
    struct summed wait;
    const void *before = NULL;
    while (bpf_map_get_next_key(sums->sums, before, &wait.key) == 0) {
        if (bpf_map_lookup_elem(sums->sums, &wait.key, &wait.sum) == 0 && wait.sum.count)
            vector_push(list, wait);
        before = &wait.key;
    }
}

/* Delete sums while reading them. Before 5.14 that takes two steps, between which a wait may be lost. */
static void take_sums(struct sums *sums, summed_list *list) {
    struct summed wait;
    while (bpf_map_get_next_key(sums->sums, NULL, &wait.key) == 0) {
        bool taken = bpf_map_lookup_and_delete_elem(sums->sums, &wait.key, &wait.sum) == 0;
        if (!taken && (bpf_map_lookup_elem(sums->sums, &wait.key, &wait.sum) != 0 ||
                       bpf_map_delete_elem(sums->sums, &wait.key) != 0))
            return;
        if (wait.sum.count)
            vector_push(list, wait);
    }
}

/* A wait that has not ended counts until the end of the recording. */
static void read_unfinished(struct sums *sums) {
    struct off_cpu_thread thread;
    uint32_t tid;
    const void *before = NULL;
    sums->unfinished.count = 0;
    while (bpf_map_get_next_key(sums->threads, before, &tid) == 0) {
        before = &tid;
        if (bpf_map_lookup_elem(sums->threads, &tid, &thread) != 0 || !thread.since ||
            thread.since >= sums->ended)
            continue;
        uint64_t waited = sums->ended - thread.since, used = thread_cpu_time((pid_t)tid);
        if (used > thread.ran) /* it came back unreported */
            waited -= used - thread.ran < waited ? used - thread.ran : waited;
        if (waited < sums->settings.least || waited > sums->settings.most)
            continue;
        if (sums->settings.one_in > 1 && !checked_multiply(waited, sums->settings.one_in, &waited))
            continue;
        struct summed wait = {
            .key = {.pid = thread.pid, .tid = tid, .stacks = thread.stacks, .state = thread.state},
            .sum = {.ns = waited, .count = 1, .last = sums->ended}};
        vector_push(&sums->unfinished, wait);
    }
}

/* Read unfinished waits at once, because threads that exit from now on take their entries with them. */
void sums_enable(struct sums *sums, bool on) {
    uint32_t first = 0, enabled = on;
    sums->ended = monotonic();
    bpf_map_update_elem(sums->variables, &first, &enabled, BPF_ANY);
    if (!on)
        read_unfinished(sums);
}

static int by_time(const void *left, const void *right) {
    const struct summed *a = left, *b = right;
    if (a->sum.last != b->sum.last)
        return a->sum.last < b->sum.last ? -1 : 1;
    return a->key.tid < b->key.tid ? -1 : a->key.tid > b->key.tid;
}

void sums_read(struct sums *sums, summed_list *list) {
    read_sums(sums, list);
    for (size_t i = 0; i < sums->unfinished.count; i++)
        vector_push(list, sums->unfinished.items[i]);
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_time);
}

/* ---- a recording without an end ---- */

typedef VECTOR(uint64_t) key_list;

static int by_key(const void *left, const void *right) {
    const uint64_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* List the stacks of waits that have not ended, and of their wakers: a map's number above a place there, or a copy's kind. */
static void list_waiting(struct sums *sums, key_list *used, bool copies) {
    struct off_cpu_thread thread;
    uint32_t tid;
    const void *before = NULL;
    while (bpf_map_get_next_key(sums->threads, before, &tid) == 0) {
        before = &tid;
        if (bpf_map_lookup_elem(sums->threads, &tid, &thread) != 0 || !thread.since)
            continue;
        const struct off_cpu_stacks *both[] = {&thread.stacks, &thread.waker};
        for (size_t i = 0; i < COUNT_OF(both); i++) {
            vector_push(used, copies ? both[i]->copy : (uint64_t)(uint32_t)both[i]->user);
            if (!copies)
                vector_push(used, (uint64_t)(uint32_t)both[i]->kernel);
        }
    }
    if (used->count)
        qsort(used->items, used->count, sizeof *used->items, by_key);
}

/* If more than half of the map is used, delete entries that no unfinished wait refers to. `which` is a map of stacks; -1: of copies. */
static void make_room(struct sums *sums, int map, int which, size_t room) {
    key_list keys = {0}, used = {0};
    uint64_t key = 0;
    const void *before = NULL;
    while (bpf_map_get_next_key(map, before, &key) == 0) { /* of 4 bytes, or of 8 */
        vector_push(&keys, key);
        before = &keys.items[keys.count - 1];
    }
    if (keys.count > room / 2)
        list_waiting(sums, &used, which < 0);
    for (size_t i = 0; keys.count > room / 2 && i < keys.count; i++) {
        key = which < 0 ? keys.items[i]
                        : keys.items[i] | (uint64_t)(unsigned)which << OFF_CPU_STACK_SHIFT;
        if (!used.count || !bsearch(&key, used.items, used.count, sizeof key, by_key))
            bpf_map_delete_elem(map, &keys.items[i]);
    }
    vector_release(&keys);
    vector_release(&used);
}

void sums_take(struct sums *sums, summed_list *list) {
    take_sums(sums, list);
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, by_time);
}

void sums_make_room(struct sums *sums) {
    struct bpf_map *map = bpf_object__find_map_by_name(sums->object, "copies");
    make_room(sums, sums->copies, -1, bpf_map__max_entries(map));
    for (int i = 0; i < OFF_CPU_STACK_MAPS; i++) {
        char name[] = "stacks_0";
        name[sizeof name - 2] = (char)('0' + i);
        map = bpf_object__find_map_by_name(sums->object, name);
        make_room(sums, sums->stacks[i], i, bpf_map__max_entries(map));
    }
}

size_t sums_stack(struct sums *sums, int stack, uint64_t *frames) {
    if (stack < 0 || stack >> OFF_CPU_STACK_SHIFT >= OFF_CPU_STACK_MAPS)
        return 0;
    uint32_t place = (uint32_t)stack & ((1u << OFF_CPU_STACK_SHIFT) - 1);
    if (bpf_map_lookup_elem(sums->stacks[stack >> OFF_CPU_STACK_SHIFT], &place, frames) != 0)
        return 0;
    size_t count = 0;
    while (count < OFF_CPU_FRAMES && frames[count])
        count++;
    return count;
}

bool sums_copy(struct sums *sums, uint64_t copy, struct off_cpu_copy *result) {
    return copy && bpf_map_lookup_elem(sums->copies, &copy, result) == 0 &&
           result->size <= sizeof result->stack;
}

uint64_t sums_trouble(struct sums *sums, enum off_cpu_trouble which) {
    uint32_t key = which;
    uint64_t count = 0;
    return bpf_map_lookup_elem(sums->troubles, &key, &count) == 0 ? count : 0;
}
