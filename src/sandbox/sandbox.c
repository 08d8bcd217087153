/*
 * Enter the sandbox: limits, temporary files, rules, and system calls last, because the other steps need some that are then denied.
 */
#include "sandbox/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* A sanitizer reserves more memory than any machine has. */
#ifdef __SANITIZE_ADDRESS__
enum { LIMITS_MEMORY = 0 };
#else
enum { LIMITS_MEMORY = 1 };
#endif

static void lower(__typeof__(RLIMIT_CORE) what, rlim_t most) {
    struct rlimit limit;
    if (getrlimit(what, &limit) != 0 || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= most))
        return;
    limit.rlim_cur = most;
    setrlimit(what, &limit);
}

/* Set only the soft limits, so that a program started later (by a sibling, not by this process) is not affected. */
static void set_limits(bool any_memory) {
    struct sysinfo machine;
    lower(RLIMIT_CORE, 0);
    if (LIMITS_MEMORY && !any_memory && sysinfo(&machine) == 0)
        lower(RLIMIT_DATA, ((rlim_t)machine.totalram + machine.totalswap) * machine.mem_unit);
}

static bool has_one_thread(void) {
    DIR *threads = opendir("/proc/self/task");
    size_t count = 0;
    if (!threads)
        return true; /* no /proc to read it from */
    for (struct dirent *entry; (entry = readdir(threads));)
        count += entry->d_name[0] != '.';
    closedir(threads);
    return count == 1;
}

/* At exit, a sanitizer looks at its own threads and writes its report to a file that its options name. */
static void allow_reports(const struct ruleset *ruleset) {
#ifdef __SANITIZE_ADDRESS__
    ruleset_allow_held(ruleset, "/proc/self");
    const char *options = getenv("ASAN_OPTIONS"),
               *path = options ? strstr(options, "log_path=") : NULL;
    if (!path)
        return;
    char *folder = memory_copy(path + 9, strcspn(path + 9, ":")), *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    ruleset_allow(ruleset, AT_FDCWD, folder, RIGHTS_WRITE);
    free(folder);
#endif
}

static void allow_all(const struct ruleset *ruleset, const char *const *paths, size_t count,
                      enum rights rights) {
    for (size_t i = 0; i < count; i++)
        ruleset_allow(ruleset, AT_FDCWD, paths[i], rights);
}

static const char *lacking(const struct sandbox_facts *facts, bool alone) {
    return !alone ? "it has several threads already: only system calls are restricted"
           : !facts->landlock && !facts->seccomp
               ? "this kernel has neither Landlock nor seccomp filters: parsers are not confined"
           : !facts->landlock
               ? "this kernel has no Landlock (5.13 or later, with landlock among its "
                 "security modules): files are not restricted"
           : !facts->seccomp ? "this kernel has no seccomp filters: system calls are not restricted"
                             : NULL;
}

void sandbox_enter(const struct sandbox_options *options, struct sandbox_facts *facts) {
    struct ruleset ruleset;
    bool alone = has_one_thread();
    *facts = (struct sandbox_facts){0};
    set_limits(options->any_memory);
    file_temporaries_reserve(options->temporaries);
    ruleset_open(&ruleset);
    places_allow(&ruleset);
    allow_all(&ruleset, options->read, options->read_count, RIGHTS_READ);
    allow_all(&ruleset, options->write, options->write_count, RIGHTS_WRITE);
    allow_all(&ruleset, options->manage, options->manage_count, RIGHTS_MANAGE);
    allow_reports(&ruleset);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int version = ruleset.version;
    if (ruleset_enforce(&ruleset))
        facts->landlock = version;
    facts->seccomp = syscalls_restrict(options->terminal);
    facts->unlimited = lacking(facts, alone);
}
