/*
 * wick doctor: what this machine allows, and the one command that changes each thing.
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

#include "cmd/recording.h"
#include "object/object.h"

static const struct option_group groups[] = {{0}};
static const struct syntax syntax = {
    "doctor",
    "[BINARY…]",
    "Says what this machine allows a profiler to do and how to allow more; of each BINARY,\n"
    "which symbols and debug information are found.",
    groups,
    .examples = "wick doctor                                    # what this machine allows\n"
                "wick doctor ./program                          # which symbols it has",
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

#define CONTAINER "in a container: docker run --cap-add PERFMON --security-opt seccomp=unconfined"

/* The one command for each: what paranoid level 2, 1 and -1 allow is what people miss, in that order. */
static void look_at_perf_events(void) {
    long level = 0;
    char finding[100];
    bool known = read_number("/proc/sys/kernel/perf_event_paranoid", &level);
    bool all = event_opens("cpu-clock", false, 0, -1),
         user = all || event_opens("cpu-clock", true, 0, -1);
    const char *why = user ? "" : strerror(errno);
    if (known)
        snprintf(finding, sizeof finding, "%ld: %s", level,
                 all    ? "user code and the kernel's part of it"
                 : user ? "user code only"
                        : why);
    else
        snprintf(finding, sizeof finding, "%s", user ? "perf events work" : "no perf events here");
    say(all    ? GOOD
        : user ? LIMITED
               : BAD,
        "perf_event_paranoid", finding,
        all                  ? NULL
        : user               ? "as root: sysctl kernel.perf_event_paranoid=1"
        : known && level > 2 ? "as root: sysctl kernel.perf_event_paranoid=2"
                             : CONTAINER);
    if (event_opens("cpu-clock", false, -1, 0))
        say(GOOD, "system-wide (-a)", "allowed", NULL);
    else
        say(BAD, "system-wide (-a)", strerror(errno),
            user && level > -1 ? "as root: sysctl kernel.perf_event_paranoid=-1" : CONTAINER);
}

static void look_at_counters(void) {
    if (event_opens("cycles", true, 0, -1))
        say(GOOD, "hardware counters", "a PMU: cycles can be counted", NULL);
    else if (errno == EPERM || errno == EACCES)
        say(BAD, "hardware counters", "not to be told: perf events are refused", CONTAINER);
    else
        say(LIMITED, "hardware counters",
            "no PMU: samples are taken by a software clock (cpu-clock)",
            "a virtual machine gets one from its host: qemu -cpu host,pmu=on");
}

struct kernel_look {
    uint64_t address;
    unsigned symbols;
};

/* The first ones may be at 0 even where nothing is hidden. */
static bool look_at_symbol(void *context, const struct kernel_symbol *symbol) {
    struct kernel_look *look = context;
    look->address = symbol->address;
    return !look->address && ++look->symbols < 100;
}

static void look_at_kernel_names(void) {
    long restriction = 0;
    char finding[100];
    struct kernel_look look = {0};
    bool hidden = !kernel_symbols_each(look_at_symbol, &look) || !look.address;
    read_number("/proc/sys/kernel/kptr_restrict", &restriction);
    snprintf(finding, sizeof finding, "%ld: %s", restriction,
             hidden ? "the kernel hides its addresses, so its functions have no names"
                    : "the kernel's symbols can be read");
    say(hidden ? BAD : GOOD, "kptr_restrict", finding,
        !hidden       ? NULL
        : restriction ? "as root: sysctl kernel.kptr_restrict=0"
                      : "as root: sysctl kernel.perf_event_paranoid=1");
}

static void look_at_limits(void) {
    struct rlimit files;
    long locked = 0;
    char finding[100];
    getrlimit(RLIMIT_NOFILE, &files);
    snprintf(finding, sizeof finding, "%llu, up to %llu if asked for",
             (unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max);
    say(files.rlim_max < 1024 ? LIMITED : GOOD, "open files", finding,
        files.rlim_max < 1024 ? "as root: prlimit --nofile=65536 --pid PID-OF-THE-SHELL" : NULL);
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
    bool seen = access("/sys/kernel/tracing/events", F_OK) == 0, closed = !seen && errno == EACCES;
    if (access("/sys/kernel/tracing/events/sched/sched_switch/id", R_OK) == 0)
        say(GOOD, "tracefs", "tracepoints can be read", NULL);
    else if (seen || closed) {
        char remedy[100];
        snprintf(remedy, sizeof remedy,
                 "as root: mount -o remount,gid=%u,mode=750 /sys/kernel/tracing", getegid());
        say(BAD, "tracefs", "tracepoints are not to be read by this user", remedy);
    } else
        say(BAD, "tracefs", "it is not mounted",
            "as root: mount -t tracefs nodev /sys/kernel/tracing");
}

static void look_at_bpf(void) {
    struct error why;
    if (record_has_bpf(&why))
        say(GOOD, "BPF", "sums waits up in the kernel (--off-cpu=bpf)", NULL);
    else if (strstr(why.message, "built without"))
        say(LIMITED, "BPF", why.message,
            "apt-get install libbpf-dev clang-14, and build wick again");
    else if (geteuid() != 0)
        say(LIMITED, "BPF", why.message,
            "as root: setcap cap_bpf,cap_perfmon+ep $(readlink -f $(command -v wick))");
    else
        say(LIMITED, "BPF", why.message,
            "in a container: docker run --cap-add BPF --cap-add PERFMON --security-opt "
            "seccomp=unconfined --pid host");
}

/* Whether a process of our own may be seized at all: a container's seccomp filter may say no. */
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

static void look_at_ptrace(void) {
    long scope = 0;
    char finding[120];
    bool yama = read_number("/proc/sys/kernel/yama/ptrace_scope", &scope), may = can_seize();
    bool limited = yama && scope > 0 && geteuid() != 0;
    snprintf(finding, sizeof finding, "%s%s",
             !may      ? "refused: no recording where perf events are refused, too"
             : limited ? "only programs that wick starts itself"
                       : "own processes can be attached to",
             yama && scope ? " (ptrace_scope is set)" : "");
    say(!may      ? BAD
        : limited ? LIMITED
                  : GOOD,
        "ptrace", finding,
        limited ? "as root: sysctl kernel.yama.ptrace_scope=0"
        : !may  ? "in a container: docker run --cap-add SYS_PTRACE"
                : NULL);
}

static void look_at_binary(const char *path) {
    struct object_facts facts;
    struct error error;
    char finding[200];
    if (!object_file_facts(path, &facts, &error)) {
        say(BAD, path, error.message, NULL);
        return;
    }
    snprintf(finding, sizeof finding, "%s%s%s%s",
             facts.symbols    ? "symbols"
             : facts.exported ? "symbols of exported functions alone"
                              : "no symbols",
             facts.lines ? ", debug information" : ", no debug information",
             facts.unwind ? ", unwind tables" : ", no unwind tables",
             facts.separate ? " (separate debug file)" : "");
    char remedy[300];
    snprintf(remedy, sizeof remedy,
             "build it with -g, or: apt-get install $(dpkg -S %.150s | cut -d: -f1)-dbgsym", path);
    bool named = facts.symbols || facts.exported;
    say(named && facts.unwind ? (facts.symbols && facts.lines ? GOOD : LIMITED) : BAD, path,
        finding, facts.lines ? NULL : remedy);
}

static int run(void *command, int argc, char **argv) {
    struct request *request = command;
    int status = 0;
    if (!options_parse(&syntax, request, argc, argv, &status))
        return status;
    look_at_perf_events();
    look_at_counters();
    look_at_kernel_names();
    look_at_tracepoints();
    look_at_bpf();
    look_at_ptrace();
    look_at_limits();
    for (size_t i = 0; i < request->operands.count; i++)
        look_at_binary(request->operands.items[i]);
    return 0;
}

const struct command command_doctor = {"doctor", "what this machine allows, and how to allow more",
                                       sizeof(struct request), run};
