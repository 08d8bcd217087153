/*
 * What this machine allows a recording to do, found by trying it, and for each restriction the command that lifts it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "object/object.h"
#include "record/record.h"

static void add(struct record_findings *found, enum record_verdict verdict, const char *what,
                const char *finding, const char *remedy) {
    struct record_finding one = {verdict, what, memory_copy(finding, strlen(finding)),
                                 remedy ? memory_copy(remedy, strlen(remedy)) : NULL};
    vector_push(found, one);
}

static bool read_number(const char *path, long *number) {
    FILE *file = fopen(path, "re");
    bool fine = file && fscanf(file, "%ld", number) == 1;
    if (file)
        fclose(file);
    return fine;
}

/* Whether an event can be opened on wick itself; if not, errno says why. */
static bool event_opens(const char *name, bool user_only, int pid, int cpu) {
    struct perf_event_attr attr;
    if (!record_parse_event(name, &attr, NULL)) {
        errno = ENOENT;
        return false;
    }
    attr.disabled = 1;
    attr.exclude_kernel = attr.exclude_hv = user_only;
    int descriptor = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0;
}

static const char *lower_to(int level) {
    static const char *const commands[] = {"as root: sysctl kernel.perf_event_paranoid=-1",
                                           "as root: sysctl kernel.perf_event_paranoid=0",
                                           "as root: sysctl kernel.perf_event_paranoid=1",
                                           "as root: sysctl kernel.perf_event_paranoid=2"};
    return commands[level - PARANOID_TRACEPOINTS];
}

#define CONTAINER "in a container: docker run --cap-add PERFMON --security-opt seccomp=unconfined"

/* Suggest one command: what each level allows is listed in the order in which people miss it. */
static void look_at_perf_events(struct record_findings *found) {
    long level = 0;
    char finding[100];
    bool known = read_number("/proc/sys/kernel/perf_event_paranoid", &level);
    bool all = event_opens("cpu-clock", false, 0, -1),
         user = all || event_opens("cpu-clock", true, 0, -1);
    const char *why = user ? "" : strerror(errno);
    if (known)
        snprintf(finding, sizeof finding, "%ld: %s", level,
                 all    ? "user code and the kernel"
                 : user ? "user code only"
                        : why);
    else
        snprintf(finding, sizeof finding, "%s", user ? "perf events work" : "no perf events here");
    add(found,
        all    ? FINDING_GOOD
        : user ? FINDING_LIMITED
               : FINDING_BAD,
        "perf_event_paranoid", finding,
        all                              ? NULL
        : user                           ? lower_to(PARANOID_KERNEL)
        : known && level > PARANOID_USER ? lower_to(PARANOID_USER)
                                         : CONTAINER);
    if (event_opens("cpu-clock", false, -1, 0))
        add(found, FINDING_GOOD, "system-wide (-a)", "allowed", NULL);
    else
        add(found, FINDING_BAD, "system-wide (-a)", strerror(errno),
            user && level > PARANOID_SYSTEM_WIDE ? lower_to(PARANOID_SYSTEM_WIDE) : CONTAINER);
}

static void look_at_counters(struct record_findings *found) {
    if (event_opens("cycles", true, 0, -1))
        add(found, FINDING_GOOD, "hardware counters", "a PMU: cycles can be counted", NULL);
    else if (errno == EPERM || errno == EACCES)
        add(found, FINDING_BAD, "hardware counters", "unknown: perf events are refused", CONTAINER);
    else
        add(found, FINDING_LIMITED, "hardware counters",
            "no PMU: samples are taken by a software clock (cpu-clock)",
            "a virtual machine gets one from its host: qemu -cpu host,pmu=on");
}

struct kernel_look {
    uint64_t address;
    unsigned symbols;
};

/* The first symbols may be at 0 even if nothing is hidden. */
static bool look_at_symbol(void *context, const struct kernel_symbol *symbol) {
    struct kernel_look *look = context;
    look->address = symbol->address;
    return !look->address && ++look->symbols < 100;
}

static void look_at_kernel_names(struct record_findings *found) {
    long restriction = 0;
    char finding[100];
    struct kernel_look look = {0};
    bool hidden = !kernel_symbols_each(look_at_symbol, &look) || !look.address;
    read_number("/proc/sys/kernel/kptr_restrict", &restriction);
    snprintf(finding, sizeof finding, "%ld: %s", restriction,
             hidden ? "the kernel hides its addresses, so its functions have no names"
                    : "the kernel's symbols can be read");
    add(found, hidden ? FINDING_BAD : FINDING_GOOD, "kptr_restrict", finding,
        !hidden       ? NULL
        : restriction ? "as root: sysctl kernel.kptr_restrict=0"
                      : lower_to(PARANOID_KERNEL));
}

static void look_at_limits(struct record_findings *found) {
    struct rlimit files;
    long locked = 0;
    char finding[100];
    getrlimit(RLIMIT_NOFILE, &files);
    snprintf(finding, sizeof finding, "%llu, up to %llu if asked for",
             (unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max);
    add(found, files.rlim_max < 1024 ? FINDING_LIMITED : FINDING_GOOD, "open files", finding,
        files.rlim_max < 1024 ? "as root: prlimit --nofile=65536 --pid PID-OF-THE-SHELL" : NULL);
    if (read_number("/proc/sys/kernel/perf_event_mlock_kb", &locked)) {
        bool root = geteuid() == 0;
        snprintf(finding, sizeof finding, root ? "as large as requested" : "%ld kB a CPU", locked);
        add(found, root || locked >= 4096 ? FINDING_GOOD : FINDING_LIMITED, "ring buffers", finding,
            root || locked >= 4096 ? NULL : "as root: sysctl kernel.perf_event_mlock_kb=8192");
    }
    long rate = 0;
    if (read_number("/proc/sys/kernel/perf_event_max_sample_rate", &rate)) {
        snprintf(finding, sizeof finding, "up to %ld a second", rate);
        add(found, rate < 1000 ? FINDING_LIMITED : FINDING_GOOD, "sample rate", finding,
            rate < 1000 ? "as root: sysctl kernel.perf_event_max_sample_rate=100000" : NULL);
    }
}

static void look_at_tracepoints(struct record_findings *found) {
    bool seen = access("/sys/kernel/tracing/events", F_OK) == 0, closed = !seen && errno == EACCES;
    if (access("/sys/kernel/tracing/events/sched/sched_switch/id", R_OK) == 0)
        add(found, FINDING_GOOD, "tracefs", "tracepoints can be read", NULL);
    else if (seen || closed) {
        char remedy[100];
        snprintf(remedy, sizeof remedy,
                 "as root: mount -o remount,gid=%u,mode=750 /sys/kernel/tracing", getegid());
        add(found, FINDING_BAD, "tracefs", "this user can't read tracepoints", remedy);
    } else
        add(found, FINDING_BAD, "tracefs", "it is not mounted",
            "as root: mount -t tracefs nodev /sys/kernel/tracing");
}

static void look_at_bpf(struct record_findings *found) {
    struct error why;
    if (record_has_bpf(&why))
        add(found, FINDING_GOOD, "BPF", "adds waits up in the kernel (--off-cpu=bpf)", NULL);
    else if (strstr(why.message, "built without"))
        add(found, FINDING_LIMITED, "BPF", why.message,
            "apt-get install libbpf-dev clang-14, and build wick again");
    else if (geteuid() != 0)
        add(found, FINDING_LIMITED, "BPF", why.message,
            "as root: setcap cap_bpf,cap_perfmon+ep $(readlink -f $(command -v wick))");
    else
        add(found, FINDING_LIMITED, "BPF", why.message,
            "in a container: docker run --cap-add BPF --cap-add PERFMON --security-opt "
            "seccomp=unconfined --pid host");
}

/* Whether wick may trace its own child at all: a container's seccomp filter may deny it. */
static bool can_seize(void) {
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    if (child < 0)
        return false;
    bool fine = ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return fine;
}

static void look_at_ptrace(struct record_findings *found) {
    long scope = 0;
    char finding[120];
    bool yama = read_number("/proc/sys/kernel/yama/ptrace_scope", &scope), may = can_seize();
    bool limited = yama && scope > 0 && geteuid() != 0;
    snprintf(finding, sizeof finding, "%s%s",
             !may      ? "refused: no recording where perf events are refused, too"
             : limited ? "only programs that wick starts itself"
                       : "own processes can be attached to",
             yama && scope ? " (ptrace_scope is set)" : "");
    add(found,
        !may      ? FINDING_BAD
        : limited ? FINDING_LIMITED
                  : FINDING_GOOD,
        "ptrace", finding,
        limited ? "as root: sysctl kernel.yama.ptrace_scope=0"
        : !may  ? "in a container: docker run --cap-add SYS_PTRACE"
                : NULL);
}

void record_probe(struct record_findings *found) {
    look_at_perf_events(found);
    look_at_counters(found);
    look_at_kernel_names(found);
    look_at_tracepoints(found);
    look_at_bpf(found);
    look_at_ptrace(found);
    look_at_limits(found);
}

void record_findings_release(struct record_findings *found) {
    for (size_t i = 0; i < found->count; i++) {
        free(found->items[i].finding);
        free(found->items[i].remedy);
    }
    vector_release(found);
}
