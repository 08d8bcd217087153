/*
 * wick doctor: what this machine allows, and the one command that changes each thing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd/recording.h"
#include "object/object.h"

static const struct option options_doctor[] = {{0}};
static const struct option_group groups[] = {{"Options", options_doctor}, {0}};
static const struct syntax syntax = {
    "doctor",
    "[BINARY…]",
    "Says what this machine allows a profiler to do and how to allow more; of each BINARY,\n"
    "which symbols and debug information are found.",
    groups,
};

enum verdict { GOOD, LIMITED, BAD };

static void say(enum verdict verdict, const char *what, const char *finding, const char *remedy) {
    static const char *const marks[] = {"ok     ", "limited", "no     "};
    printf("%s  %-20s %s\n", marks[verdict], what, finding);
    if (remedy)
        printf("%-29s → %s\n", "", remedy);
}

static bool read_number(const char *path, long *number) {
    FILE *file = fopen(path, "re");
    bool fine = file && fscanf(file, "%ld", number) == 1;
    if (file)
        fclose(file);
    return fine;
}

/* Whether an event opens on ourselves; errno says why not. */
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

static void look_at_perf_events(void) {
    static const char *const lower =
        "as root: sysctl kernel.perf_event_paranoid=1 (own programs with the kernel's "
        "part), or -1 (everything)";
    if (event_opens("cpu-clock", false, 0, -1))
        say(GOOD, "perf events", "user code and the kernel's part of it", NULL);
    else if (event_opens("cpu-clock", true, 0, -1))
        say(LIMITED, "perf events", "user code only", lower);
    else
        say(BAD, "perf events", strerror(errno),
            errno == ENOSYS || errno == EPERM || errno == EACCES
                ? "as root: sysctl kernel.perf_event_paranoid=2; in a container allow "
                  "perf_event_open (--cap-add "
                  "PERFMON, or a seccomp profile)"
                : NULL);
    if (event_opens("cpu-clock", false, -1, 0))
        say(GOOD, "system-wide (-a)", "allowed", NULL);
    else
        say(BAD, "system-wide (-a)", strerror(errno), "run as root, or with CAP_PERFMON");
}

static void look_at_counters(void) {
    if (event_opens("cycles", true, 0, -1))
        say(GOOD, "hardware counters", "cycles can be counted", NULL);
    else
        say(LIMITED, "hardware counters", "none: samples are taken by a software clock (cpu-clock)",
            "virtual machines need a virtual PMU from their host");
}

static void look_at_kernel_names(void) {
    long restriction = 0;
    FILE *file = fopen("/proc/kallsyms", "re");
    unsigned long long address = 0;
    bool hidden = !file || fscanf(file, "%llx", &address) != 1;
    for (int i = 0; file && !hidden && !address && i < 100; i++)
        hidden = fscanf(file, "%*[^\n] %llx", &address) != 1;
    if (file)
        fclose(file);
    read_number("/proc/sys/kernel/kptr_restrict", &restriction);
    if (!hidden && address)
        say(GOOD, "kernel symbols", "/proc/kallsyms can be read", NULL);
    else
        say(BAD, "kernel symbols", "the kernel hides its addresses",
            restriction ? "as root: sysctl kernel.kptr_restrict=0" : "run as root");
}

static void look_at_limits(void) {
    struct rlimit files;
    long locked = 0;
    char finding[100];
    getrlimit(RLIMIT_NOFILE, &files);
    snprintf(finding, sizeof finding, "%llu, up to %llu if asked for",
             (unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max);
    say(files.rlim_max < 1024 ? LIMITED : GOOD, "open files", finding,
        files.rlim_max < 1024 ? "as root: ulimit -Hn 65536 in the shell that starts wick" : NULL);
    if (read_number("/proc/sys/kernel/perf_event_mlock_kb", &locked)) {
        bool root = geteuid() == 0;
        snprintf(finding, sizeof finding, root ? "as large as wanted" : "%ld kB a CPU", locked);
        say(root || locked >= 4096 ? GOOD : LIMITED, "ring buffers", finding,
            root || locked >= 4096 ? NULL : "as root: sysctl kernel.perf_event_mlock_kb=8192");
    }
    long rate = 0;
    if (read_number("/proc/sys/kernel/perf_event_max_sample_rate", &rate)) {
        snprintf(finding, sizeof finding, "up to %ld a second", rate);
        say(rate < 1000 ? LIMITED : GOOD, "sample rate", finding,
            rate < 1000 ? "as root: sysctl kernel.perf_event_max_sample_rate=100000" : NULL);
    }
}

static void look_at_tracepoints(void) {
    if (access("/sys/kernel/tracing/events/sched/sched_switch/id", R_OK) == 0)
        say(GOOD, "tracepoints", "can be read", NULL);
    else if (access("/sys/kernel/tracing/events", F_OK) != 0)
        say(BAD, "tracepoints", "tracefs is not mounted, or not to be seen",
            "as root: mount -t tracefs nodev /sys/kernel/tracing");
    else
        say(BAD, "tracepoints", "are not to be read by this user", "run as root");
}

static void look_at_bpf(void) {
    struct error why;
    if (record_has_bpf(&why))
        say(GOOD, "BPF", "sums waits up in the kernel (--off-cpu=bpf)", NULL);
    else
        say(LIMITED, "BPF", why.message, geteuid() == 0 ? NULL : "run as root");
}

static void look_at_ptrace(void) {
    long scope = 0;
    if (!read_number("/proc/sys/kernel/yama/ptrace_scope", &scope) || scope == 0 || geteuid() == 0)
        say(GOOD, "ptrace", "own processes can be attached to", NULL);
    else
        say(LIMITED, "ptrace", "only programs that wick starts itself",
            "as root: sysctl kernel.yama.ptrace_scope=0");
}

static void look_at_binary(const char *path) {
    struct object_facts facts;
    struct error error;
    char finding[200];
    if (!object_file_facts(path, &facts, &error)) {
        say(BAD, path, error.message, NULL);
        return;
    }
    snprintf(finding, sizeof finding, "%s%s%s%s", facts.symbols ? "symbols" : "no symbols",
             facts.lines ? ", debug information" : ", no debug information",
             facts.unwind ? ", unwind tables" : ", no unwind tables",
             facts.separate ? " (separate debug file)" : "");
    say(facts.symbols && facts.unwind ? (facts.lines ? GOOD : LIMITED) : BAD, path, finding,
        facts.lines ? NULL : "build with -g, or install the package's -dbgsym");
}

int command_doctor(int argc, char **argv) {
    int status = 0;
    if (!options_parse(&syntax, argc, argv, &request.operands, &status))
        return status;
    look_at_perf_events();
    look_at_counters();
    look_at_kernel_names();
    look_at_tracepoints();
    look_at_bpf();
    look_at_ptrace();
    look_at_limits();
    for (size_t i = 0; i < request.operands.count; i++)
        look_at_binary(request.operands.items[i]);
    return 0;
}
