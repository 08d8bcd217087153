/*
 * The QEMU engine: find the QEMU for a program, run it with wick's plugin, and read the plugin's counts, for checkpoints while it runs, and
 * when it has ended, for whatever reason.
 */
#include "trace/engine.h"
#include "trace/qemu/shared.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct session {
    const struct trace_options *options;
    struct shared *shared;
    int descriptor;
    const char *machine; /* QEMU's name for it */
    char qemu[1000];
    char plugin[1000];
    char libraries[200]; /* directory of a cross compiler's libraries, or empty */
    pid_t pid;
};

/* ---- finding things ----------------------------------------------------------------------- */

static const struct {
    uint16_t machine;
    uint8_t class;
    const char *name;
    const char *libraries;
} machines[] = {
    {EM_RISCV, ELFCLASS64, "riscv64", "/usr/riscv64-linux-gnu"},
    {EM_RISCV, ELFCLASS32, "riscv32", "/usr/riscv32-linux-gnu"},
    {EM_AARCH64, ELFCLASS64, "aarch64", "/usr/aarch64-linux-gnu"},
    {EM_X86_64, ELFCLASS64, "x86_64", "/usr/x86_64-linux-gnu"},
};

static bool find_machine(struct session *s, struct error *error) {
    struct file file;
    if (!file_open_raw(&file, s->options->path, s->options->context, error))
        return false;
    bool is_elf = file.size >= sizeof(Elf32_Ehdr) && memcmp(file.data, ELFMAG, SELFMAG) == 0;
    for (size_t i = 0; is_elf && i < COUNT_OF(machines); i++)
        if (load_u16(file.data + 18) == machines[i].machine &&
            file.data[EI_CLASS] == machines[i].class) {
            s->machine = machines[i].name;
            if (access(machines[i].libraries, X_OK) == 0 && strcmp(s->machine, "x86_64") != 0)
                snprintf(s->libraries, sizeof s->libraries, "%s", machines[i].libraries);
        }
    file_close(&file);
    if (s->machine)
        return true;
    return error_set(error, ERROR_INPUT, "%s: %s", s->options->path,
                     is_elf ? "not for riscv64, riscv32, aarch64 or x86_64" : "not an ELF file");
}

static bool find_in_path(const char *name, char *path, size_t size) {
    const char *list = getenv("PATH");
    for (list = list ? list : "/usr/local/bin:/usr/bin:/bin"; *list;) {
        size_t length = strcspn(list, ":");
        int n = snprintf(path, size, "%.*s/%s", (int)length, list, name);
        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0)
            return true;
        list += length + (list[length] == ':');
    }
    return false;
}

static bool find_qemu(struct session *s, struct error *error) {
    char name[50];
    snprintf(name, sizeof name, "qemu-%s", s->machine);
    if (find_in_path(name, s->qemu, sizeof s->qemu))
        return true;
    snprintf(name, sizeof name, "qemu-%s-static", s->machine);
    return error_set(error, ERROR_DENIED,
                     "qemu-%s: not found; Debian has it in the package qemu-user", s->machine);
}

/* Use the given path, the one beside the program (in a build folder), or the installed one. */
static bool find_plugin(struct session *s, struct error *error) {
    static const char name[] = "libwick-qemu.so";
    char self[900];
    if (s->options->plugin) {
        snprintf(s->plugin, sizeof s->plugin, "%s", s->options->plugin);
        return true;
    }
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    snprintf(s->plugin, sizeof s->plugin, "%.*s/%s", slash ? (int)(slash - self) : 0, self, name);
    if (slash && access(s->plugin, R_OK) == 0)
        return true;
    snprintf(s->plugin, sizeof s->plugin, WICK_PLUGIN_DIR "/%s", name);
    if (access(s->plugin, R_OK) == 0)
        return true;
    return error_set(error, ERROR_DENIED, "%s: found neither beside wick nor in " WICK_PLUGIN_DIR,
                     name);
}

/* ---- running ------------------------------------------------------------------------------ */

static bool share(struct session *s, struct error *error) {
    s->descriptor = memfd_create("wick-trace", 0);
    if (s->descriptor < 0 || ftruncate(s->descriptor, (off_t)SHARED_SIZE) != 0)
        return error_errno(error, "memory shared with QEMU");
    void *memory = mmap(NULL, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                        s->descriptor, 0);
    if (memory == MAP_FAILED)
        return error_errno(error, "memory shared with QEMU");
    s->shared = memory;
    s->shared->magic = SHARED_MAGIC;
    s->shared->budget = s->options->budget;
    s->shared->weight = s->options->weight;
    s->shared->parallel = s->options->parallel;
    s->shared->wick = getpid();
    s->shared->node_count = 1;
    s->shared->nodes[0].address = NO_ADDRESS;
    return true;
}

static char **list_of(const char *const *items, size_t count, const char *const *first,
                      size_t first_count) {
    char **list = memory_zero(count + first_count + 1, sizeof *list);
    for (size_t i = 0; i < first_count; i++)
        list[i] = (char *)first[i];
    for (size_t i = 0; i < count; i++)
        list[first_count + i] = (char *)items[i];
    return list;
}

static bool start(struct session *s, struct error *error) {
    const struct trace_options *o = s->options;
    char plugin[1100];
    char stack[30];
    const char *first[10];
    size_t n = 0;
    snprintf(plugin, sizeof plugin, "%s,shared=%d", s->plugin, s->descriptor);
    first[n++] = s->qemu;
    if (s->libraries[0]) {
        first[n++] = "-L";
        first[n++] = s->libraries;
    }
    /* Make AT_RANDOM and the processor's random numbers the same in every run. */
    first[n++] = "-seed";
    first[n++] = "6";
    if (o->stack_size) {
        snprintf(stack, sizeof stack, "%llu", (unsigned long long)o->stack_size);
        first[n++] = "-s";
        first[n++] = stack;
    }
    first[n++] = "-plugin";
    first[n++] = plugin;
    char **arguments = list_of(o->arguments, o->argument_count, first, n);
    char **environment = list_of(o->environment, o->environment_count, NULL, 0);
    for (size_t i = 0; i < o->environment_count; i++) /* QEMU reverses them */
        environment[i] = (char *)o->environment[o->environment_count - 1 - i];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, o->input, 0);
    posix_spawn_file_actions_adddup2(&actions, o->output, 1);
    posix_spawn_file_actions_adddup2(&actions, o->error_output, 2);
    errno = posix_spawn(&s->pid, s->qemu, &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    free(arguments);
    free(environment);
    return errno ? error_errno(error, s->qemu) : true;
}

/* ---- reading ------------------------------------------------------------------------------ */

static uint32_t thread_count(const struct shared *shared) {
    return shared->thread_count < SHARED_THREADS ? shared->thread_count : SHARED_THREADS;
}

static uint64_t total_of(const struct shared *shared) {
    uint64_t total = 0;
    for (uint32_t i = 0; i < thread_count(shared); i++)
        total += shared->threads[i].count;
    return total;
}

/* The memory was written by a process that ran a guest, so nothing in it is trusted. */
static void add_objects(struct trace *trace, const struct shared *shared) {
    functions_free(trace->functions);
    trace->functions = functions_new();
    for (uint32_t i = 0; i < shared->object_count && i < SHARED_OBJECTS; i++) {
        struct shared_object object = shared->objects[i];
        struct file file;
        object.path[SHARED_PATH - 1] = 0;
        bool again = false;
        for (uint32_t k = 0; k < i; k++)
            again |= strcmp(shared->objects[k].path, object.path) == 0 &&
                     shared->objects[k].bias == object.bias;
        if (!object.path[0] || again || !file_open_raw(&file, object.path, NULL, NULL))
            continue;
        functions_add_elf(trace->functions, file.data, file.size, object.bias);
        file_close(&file);
    }
}

static bool read_trie(struct trace *trace, const struct shared *shared, struct error *error) {
    if (!trace->trie.nodes && !trie_init(&trace->trie, error))
        return false;
    uint32_t count = shared->node_count;
    if (count > trace->trie.capacity)
        count = trace->trie.capacity;
    if (count > SHARED_NODES)
        count = SHARED_NODES;
    memcpy(trace->trie.nodes, shared->nodes, (size_t)count * sizeof *shared->nodes);
    trace->trie.count = &trace->trie.own_count;
    trace->trie.own_count = count;
    for (uint32_t i = 0; i < thread_count(shared); i++) {
        const struct shared_thread *t = &shared->threads[i];
        if (t->node < count)
            trace->trie.nodes[t->node].count += shared_weight(shared, t) - t->flushed;
    }
    trace->instructions = total_of(shared);
    add_objects(trace, shared);
    return true;
}

static const struct note_kind note_unordered = {
    "trace-unordered-waits", "# wait{|s} of a thread {was|were} ended from outside or by the clock "
                             "while others ran: counts may differ from run to run"};
static const struct note_kind note_free = {
    "trace-unordered-threads",
    "threads could not be run in a fixed order: counts may differ from run to run"};

static const struct note_kind note_uncounted = {
    "trace-uncounted-threads",
    "# thread{|s} {was|were} not counted: QEMU had given {it a number|them numbers} above 4095"};

static void read_notes(struct trace *trace, const struct shared *shared) {
    if (shared->uncounted)
        notes_add(&trace->notes, &note_uncounted, shared->uncounted, 0, NULL);
    if (shared->unordered)
        notes_add(&trace->notes, &note_unordered, shared->unordered, 0, NULL);
    if (shared->is_free)
        notes_add(&trace->notes, &note_free, 1, 0, NULL);
    for (uint32_t i = 0; i < thread_count(shared); i++) {
        const struct shared_thread *t = &shared->threads[i];
        struct flow flow = {
            .unmatched = t->unmatched, .unmatched_pc = t->unmatched_pc, .dropped = t->dropped};
        engine_notes(trace, &flow);
    }
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* Poll twenty times a second: QEMU runs on by itself. */
static int wait_for(struct session *s, struct trace *trace, trace_checkpoint *checkpoint,
                    void *context) {
    int status = 0;
    uint64_t next = s->options->checkpoint;
    bool killed = false;
    while (waitpid(s->pid, &status, killed ? 0 : WNOHANG) == 0) {
        struct timespec moment = {0, 50000000};
        nanosleep(&moment, NULL);
        uint64_t done = total_of(s->shared);
        context_progress(s->options->context, "instructions", done, s->options->budget);
        if (next && done >= next && checkpoint && read_trie(trace, s->shared, NULL)) {
            trace->is_partial = true;
            checkpoint(context, trace);
            next = (done / s->options->checkpoint + 1) * s->options->checkpoint;
        }
        if (context_cancelled(s->options->context) && !killed) {
            kill(s->pid, SIGKILL);
            killed = true;
        }
    }
    return status;
}

/* Only abort() is the guest's own choice. */
static void conclude(struct session *s, struct trace *trace, int status) {
    if (context_cancelled(s->options->context) ||
        (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT))
        trace->end = TRACE_INTERRUPTED; /* Ctrl-C goes to both */
    else if (s->shared->over_budget)
        trace->end = TRACE_BUDGET;
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) {
        trace->end = TRACE_SIGNALED;
        trace->signal = SIGABRT;
    } else if (WIFSIGNALED(status)) {
        trace->end = TRACE_FAULT;
        snprintf(trace->fault, sizeof trace->fault, "signal %d, %s", WTERMSIG(status),
                 sigdescr_np(WTERMSIG(status)));
    } else {
        trace->end = TRACE_EXITED;
        trace->status = WEXITSTATUS(status);
    }
    trace->is_partial = trace->end == TRACE_INTERRUPTED || trace->end == TRACE_FAULT;
}

static bool weight_known(const struct session *s, struct error *error) {
    enum trace_weight weight = s->options->weight;
    if (weight == WEIGHT_INSTRUCTIONS || weight == WEIGHT_BRANCHES ||
        strncmp(s->machine, "riscv", 5) == 0)
        return true;
    return error_set(error, ERROR_USAGE, "--weight: on %s only instructions and branches are known",
                     s->machine);
}

static bool run(struct session *s, struct trace *trace, trace_checkpoint *checkpoint, void *context,
                struct error *error) {
    if (!find_machine(s, error) || !weight_known(s, error) || !find_qemu(s, error) ||
        !find_plugin(s, error) || !share(s, error) || !start(s, error))
        return false;
    int status = wait_for(s, trace, checkpoint, context);
    if (s->shared->unknown_target)
        return error_set(error, ERROR_DENIED,
                         "%s: wick was built without capstone, which this machine needs",
                         s->machine);
    if (!s->shared->started && !context_cancelled(s->options->context))
        return error_set(error, ERROR_DENIED,
                         "%s: it did not run the program, or has no plugins (status %d)", s->qemu,
                         WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    conclude(s, trace, status);
    read_notes(trace, s->shared);
    return read_trie(trace, s->shared, error);
}

bool engine_qemu(struct trace *trace, const struct trace_options *options,
                 trace_checkpoint *checkpoint, void *context, struct error *error) {
    struct session s = {.options = options, .descriptor = -1};
    bool fine = run(&s, trace, checkpoint, context, error);
    if (s.shared)
        munmap(s.shared, SHARED_SIZE);
    if (s.descriptor >= 0)
        close(s.descriptor);
    return fine;
}
