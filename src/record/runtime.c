/*
 * Runtimes that generate code: report one that does not name it, remove the files of those launched with a setting (runtime_setup.c), and
 * decide what their stacks need.
 */
#include "record/keep.h"
#include "record/runtime.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct note_kind note_unnamed = {
    "runtime-unnamed", "# program{|s} ran generated code that {it does|they do} not name"};

static const struct runtime {
    const char *file; /* mapped file that identifies it: a name, or how one begins */
    const char *name;
    const char *hint;
    enum setup setup; /* SETUPS: none */
} runtimes[] = {
    {"node", "node", "start it with " NODE_FLAGS " to see JavaScript functions", SETUP_NODE},
    {"nodejs", "node", "start it with " NODE_FLAGS " to see JavaScript functions", SETUP_NODE},
    {"beam.smp", "the Erlang VM", "start it with " ERLANG_FLAGS " to see Erlang functions",
     SETUP_ERLANG},
    {"libcoreclr.so", ".NET", "start it with " DOTNET_SETTING " set to see .NET methods",
     SETUP_DOTNET},
    {"memfd:doublemapper", ".NET", "start it with " DOTNET_SETTING " set to see .NET methods",
     SETUP_DOTNET}, /* its code, also that of a program that contains the runtime */
    {"libjulia-internal.so", "Julia",
     "start it with ENABLE_JITPROFILING=1 set to see Julia functions", SETUPS},
};

/* ---- a process that was seen ---- */

/* Count the strings in a file of /proc that equal `what`, or begin with it. Return -1 if the process is gone. */
static int proc_count(pid_t pid, const char *name, const char *what, bool is_whole) {
    struct buffer bytes = {0};
    int count = 0;
    if (proc_read(pid, name, 1 << 20, &bytes) == PROC_NONE)
        return -1;
    buffer_add_char(&bytes, 0);
    for (size_t at = 0; at < bytes.count; at += strlen(bytes.items + at) + 1)
        count += is_whole ? strcmp(bytes.items + at, what) == 0
                          : strncmp(bytes.items + at, what, strlen(what)) == 0;
    buffer_release(&bytes);
    return count;
}

/* Whether it writes these files because of wick: it has wick's setting, and its own arguments don't request the same. Erlang's arguments
   include the setting's. */
static bool is_set_up(const struct keeper *k, enum setup setup, pid_t pid) {
    const char *setting = setup < SETUPS ? k->sink->settings[setup] : NULL;
    if (!setting)
        return false;
    int has = proc_count(pid, "environ", setting, true);
    if (has < 0) /* it is gone; then only launched processes count */
        return !k->sink->system_wide;
    if (has && setup == SETUP_NODE)
        return proc_count(pid, "cmdline", "--perf-", false) <= 0;
    if (has && setup == SETUP_ERLANG)
        return proc_count(pid, "cmdline", "-JPperf", false) <= 1;
    return has;
}

void runtime_saw(struct keeper *k, struct kept_process *process, struct text path) {
    struct text name = path_name(path);
    char folder[64];
    for (size_t i = 0; i < COUNT_OF(runtimes) && !process->runtime; i++) {
        bool is_beginning = text_starts(text_of(runtimes[i].file), TEXT("lib")) ||
                            text_starts(text_of(runtimes[i].file), TEXT("memfd:"));
        if (is_beginning ? text_starts(name, text_of(runtimes[i].file))
                         : text_equal(name, text_of(runtimes[i].file)))
            process->runtime = (uint8_t)(i + 1);
        else
            continue;
        if (!is_set_up(k, runtimes[i].setup, process->pid))
            return;
        process->is_set_up = true;
        snprintf(folder, sizeof folder, "/proc/%d/cwd", process->pid);
        process->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) + 1;
    }
}

/* ---- removing what it wrote ---- */

static void remove_file(const struct kept_process *process, int folder, const char *name) {
    struct stat status;
    uid_t user = process->has_user ? process->user : geteuid();
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == user)
        unlinkat(folder, name, 0);
}

/* isolate-0xADDRESS-PID-v8.log, one for each of its isolates */
static void remove_logs(const struct kept_process *process, int folder, pid_t pid) {
    char suffix[40];
    int copy = dup(folder);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
    if (!directory && copy >= 0)
        close(copy);
    snprintf(suffix, sizeof suffix, "-%d-v8.log", pid);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct text name = text_of(entry->d_name);
        if (text_starts(name, TEXT("isolate-0x")) && text_ends(name, text_of(suffix)))
            remove_file(process, folder, entry->d_name);
    }
    if (directory)
        closedir(directory);
}

/* Files that runtimes write to /tmp: a perf map; .NET also a list of loaded files, and the Erlang VM a jitdump. */
static void remove_temporary(struct keeper *k, const struct kept_process *process, pid_t pid,
                             enum setup setup) {
    static const char *const names[] = {
        [SETUP_NODE] = "", [SETUP_DOTNET] = "perfinfo-%d.map", [SETUP_ERLANG] = "jit-%d.dump"};
    char name[40];
    int folder = folder_open(k, process, "/tmp");
    if (folder < 0)
        return;
    snprintf(name, sizeof name, "perf-%d.map", pid);
    remove_file(process, folder, name);
    snprintf(name, sizeof name, names[setup], pid);
    if (*name)
        remove_file(process, folder, name);
    close(folder);
}

void runtime_ends(struct keeper *k, struct kept_process *process) {
    pid_t pid = process->inner_pid ? process->inner_pid : process->pid;
    const struct runtime *runtime = process->runtime ? &runtimes[process->runtime - 1] : NULL;
    if (runtime && process->has_code && process->map < 0 && !process->has_dump)
        notes_add(&k->sink->result->notes, &note_unnamed, 1, process->runtime, "%s, pid %d: %s",
                  runtime->name, process->pid, runtime->hint);
    if (!process->is_set_up || !runtime)
        return;
    remove_temporary(k, process, pid, runtime->setup);
    int folder =
        process->folder ? process->folder - 1 : open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && runtime->setup == SETUP_NODE)
        remove_logs(process, folder, pid);
    if (folder >= 0)
        close(folder);
    process->folder = 0;
    process->is_set_up = false;
}

/* ---- what stacks need ---- */

static const char go_section[] = ".go.buildinfo";

static bool process_is_go(pid_t pid) {
    char exe[64];
    snprintf(exe, sizeof exe, "/proc/%d/exe", pid);
    return object_file_has_section(exe, go_section);
}

/* Whether a word of a command names a Go program, also in `sh -c`. */
static bool words_have_go(const char *words, struct buffer *path) {
    static const char between[] = " \t\n;&|()'\"";
    char name[4096];
    while (*(words += strspn(words, between))) {
        size_t length = strcspn(words, between);
        if (length < sizeof name) {
            memcpy(name, words, length);
            name[length] = 0;
            if (program_find(name, path) && object_file_has_section(path->items, go_section))
                return true;
        }
        words += length;
    }
    return false;
}

bool runtime_is_go(const struct recording *r) {
    const struct record_options *options = r->options;
    struct buffer path = {0};
    bool found = options->system_wide; /* one may be started later */
    for (size_t i = 0; !found && options->command && options->command[i]; i++)
        found = words_have_go(options->command[i], &path);
    for (size_t i = 0; i < r->targets.count && !found; i++)
        found = process_is_go(r->targets.items[i]);
    buffer_release(&path);
    return found;
}

/* Whether it is a tool of a JDK: the virtual machine is beside it. */
static bool is_java_tool(const char *program) {
    struct buffer path = {0};
    char *whole = program_find(program, &path) ? realpath(path.items, NULL) : NULL;
    char *slash = whole ? strrchr(whole, '/') : NULL;
    path.count = 0;
    if (slash) {
        buffer_printf(&path, "%.*s/../lib/server/libjvm.so", (int)(slash - whole), whole);
        buffer_add_char(&path, 0);
    }
    bool found = slash && access(path.items, F_OK) == 0;
    free(whole);
    buffer_release(&path);
    return found;
}

static bool process_is_deep(pid_t pid) {
    struct buffer maps = {0};
    bool found = false;
    proc_read(pid, "maps", PROC_MAPS_MOST, &maps);
    for (struct text rest = buffer_text(&maps); rest.length && !found;) {
        struct text line = text_take_line(&rest);
        size_t slash = text_find(line, '/');
        struct text path = slash == SIZE_MAX ? TEXT("") : text_from(line, slash);
        found =
            path.length && (text_equal(path_name(path), TEXT("libjvm.so")) || path_is_node(path));
    }
    buffer_release(&maps);
    return found;
}

bool runtime_is_deep(const struct recording *r) {
    static const char *const words[] = {"java", "javac", "mvn", "gradle", "sbt", "scala", "kotlin"};
    char *const *command = r->options->command;
    struct buffer path = {0};
    bool found = command && (is_java_tool(command[0]) || command_runs_node(command, &path) ||
                             command_mentions(command, words, COUNT_OF(words)));
    for (size_t i = 0; i < r->targets.count && !found; i++)
        found = process_is_deep(r->targets.items[i]);
    buffer_release(&path);
    return found;
}
