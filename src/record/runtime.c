/*
 * What a runtime must be told to describe the code that it makes. A program that is launched gets it by its environment, where that is known to be safe;
 * what it writes because of that is kept with the recording and removed. Of one that runs already, a note says what is missing.
 *
 * node: --perf-basic-prof makes V8 write a perf map to /tmp, and a log to the working directory that nobody asked for;
 * --interpreted-frames-native-stack gives functions that are interpreted a frame with their own name. A node that does not know these refuses to start, so
 * its program is looked into first.
 */
#include "record/keep.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NODE_FLAGS "--perf-basic-prof --interpreted-frames-native-stack"

static const struct note_kind note_setup = {
    "runtime-setup",
    "the program was launched with a setting that lets its runtime name the code it "
    "makes; --no-runtime-setup leaves it out"};
static const struct note_kind note_unnamed = {
    "runtime-unnamed", "# program{|s} ran generated code that {it does|they do} not name"};

static const struct runtime {
    const char *file; /* that it is known by, when mapped: a name, or how one begins */
    const char *name;
    const char *hint;
} runtimes[] = {
    {"node", "node", "start it with " NODE_FLAGS " to see JavaScript functions"},
    {"nodejs", "node", "start it with " NODE_FLAGS " to see JavaScript functions"},
    {"beam.smp", "the Erlang VM", "start it with +JPperf true to see Erlang functions"},
    {"libcoreclr.so", ".NET", "start it with DOTNET_PerfMapEnabled=1 set to see .NET methods"},
    {"libjulia-internal.so", "Julia",
     "start it with ENABLE_JITPROFILING=1 set to see Julia functions"},
};

static struct text file_name(struct text path) {
    size_t slash = text_find_last(path, '/');
    return slash == SIZE_MAX ? path : text_from(path, slash + 1);
}

static bool is_node(struct text path) {
    struct text name = file_name(path);
    return text_equal(name, TEXT("node")) || text_equal(name, TEXT("nodejs"));
}

/* ---- a program that is launched ---- */

/* Whether the file, a node, takes these flags from its environment. Costs about 50 ms for its 100 MB. */
static bool node_knows_flags(const char *path, const struct context *context) {
    static const char flag[] = "--interpreted-frames-native-stack";
    struct file file;
    if (!file_open_raw(&file, path, context, NULL))
        return false;
    struct text bytes = file_text(&file);
    bool knows = bytes.length && memmem(bytes.data, bytes.length, flag, sizeof flag - 1);
    file_close(&file);
    return knows;
}

/* Where a command is, by PATH. */
static bool find_program(const char *name, struct buffer *path) {
    struct text rest = text_of(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    bool found = false;
    path->count = 0;
    if (strchr(name, '/')) {
        buffer_add(path, text_of(name));
        buffer_add_char(path, 0);
        return access(name, R_OK) == 0;
    }
    while (!found && rest.length) {
        size_t colon = text_find(rest, ':');
        struct text folder = colon == SIZE_MAX ? rest : text_upto(rest, colon);
        path->count = 0;
        buffer_printf(path, "%.*s/%s", TEXT_ARGS(folder), name);
        buffer_add_char(path, 0);
        found = access(path->items, X_OK) == 0;
        rest = colon == SIZE_MAX ? TEXT("") : text_from(rest, colon + 1);
    }
    return found;
}

/* `#! … node` */
static bool is_script_of_node(const char *path) {
    char line[256] = "";
    if (!file_read_small(path, line, sizeof line) || line[0] != '#' || line[1] != '!')
        return false;
    line[strcspn(line, "\n")] = 0;
    return strstr(line, "node");
}

/* Whether one of these words is in a command: also in a shell's command line, or behind what starts others (env, timeout, make, …). */
static bool mentions(char *const *command, const char *const *words, size_t count) {
    for (; *command; command++)
        for (size_t i = 0; i < count; i++)
            for (const char *at = *command; (at = strstr(at, words[i])); at++) {
                char after = at[strlen(words[i])];
                bool begins = at == *command || !isalnum((unsigned char)at[-1]);
                if (begins && !isalnum((unsigned char)after) && after != '.')
                    return true;
            }
    return false;
}

static bool mentions_node(char *const *command) {
    static const char *const words[] = {"node", "npm", "npx", "yarn", "pnpm"};
    return mentions(command, words, COUNT_OF(words));
}

/* The node that the command runs, if it does. */
static bool find_node(char *const *command, struct buffer *path) {
    if (!find_program(command[0], path))
        return false;
    char *whole = realpath(path->items, NULL);
    bool itself = whole && is_node(text_of(whole)), script = whole && is_script_of_node(whole);
    free(whole);
    if (itself)
        return true;
    return (script || mentions_node(command)) && find_program("node", path);
}

/* Whether the command, or the environment, says itself what is to be written. */
static bool has_own_flags(char *const *command, const char *environment) {
    bool has = environment && strstr(environment, "--perf-");
    for (; *command && !has; command++)
        has = strstr(*command, "--perf-");
    return has;
}

void runtime_prepare(struct recording *r) {
    const struct record_options *options = r->options;
    const char *before = getenv("NODE_OPTIONS");
    struct buffer path = {0}, setting = {0};
    if (options->no_runtime_setup || r->sink.setting || !r->sink.keeper || !options->command ||
        has_own_flags(options->command, before))
        return;
    if (find_node(options->command, &path) && node_knows_flags(path.items, options->context)) {
        buffer_printf(&setting, "NODE_OPTIONS=%s%s" NODE_FLAGS, before ? before : "",
                      before && *before ? " " : "");
        notes_add(&r->result->notes, &note_setup, 1, 0, "%.*s", TEXT_ARGS(buffer_text(&setting)));
        buffer_add_char(&setting, 0);
        r->sink.setting = setting.items;
    }
    buffer_release(&path);
}

/* ---- a process that was seen ---- */

/* Whether one of the strings in a file of /proc is, or begins with, what is looked for. */
static bool proc_has(pid_t pid, const char *name, const char *what, bool is_whole, bool *is_there) {
    char path[64];
    struct buffer bytes = {0};
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "re");
    *is_there = file != NULL;
    for (int c; file && bytes.count < 1 << 20 && (c = getc(file)) != EOF;)
        buffer_add_char(&bytes, (char)c);
    if (file)
        fclose(file);
    buffer_add_char(&bytes, 0);
    for (size_t at = 0; at < bytes.count && !found; at += strlen(bytes.items + at) + 1)
        found = is_whole ? strcmp(bytes.items + at, what) == 0
                         : strncmp(bytes.items + at, what, strlen(what)) == 0;
    buffer_release(&bytes);
    return found;
}

/* Whether it writes its map because of us: it has our setting, and was not told the same by its own arguments. */
static bool is_set_up(const struct keeper *k, pid_t pid) {
    bool is_there, has_setting = proc_has(pid, "environ", k->sink->setting, true, &is_there);
    if (!is_there) /* it is gone; only what we launched can be recorded then */
        return !k->sink->system_wide;
    return has_setting && !proc_has(pid, "cmdline", "--perf-", false, &is_there);
}

void runtime_saw(struct keeper *k, struct kept_process *process, struct text path) {
    struct text name = file_name(path);
    char folder[64];
    for (size_t i = 0; i < COUNT_OF(runtimes) && !process->runtime; i++) {
        bool is_library = text_starts(text_of(runtimes[i].file), TEXT("lib"));
        if (is_library ? text_starts(name, text_of(runtimes[i].file))
                       : text_equal(name, text_of(runtimes[i].file)))
            process->runtime = (uint8_t)(i + 1);
        else
            continue;
        if (!is_node(path) || !k->sink->setting || !is_set_up(k, process->pid))
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

static void remove_map(struct keeper *k, const struct kept_process *process, pid_t pid) {
    char name[40];
    int folder = folder_open(k, process, "/tmp");
    snprintf(name, sizeof name, "perf-%d.map", pid);
    if (folder >= 0) {
        remove_file(process, folder, name);
        close(folder);
    }
}

void runtime_ends(struct keeper *k, struct kept_process *process) {
    pid_t pid = process->inner_pid ? process->inner_pid : process->pid;
    const struct runtime *runtime = process->runtime ? &runtimes[process->runtime - 1] : NULL;
    if (runtime && process->has_code && process->map < 0 && !process->has_dump)
        notes_add(&k->sink->result->notes, &note_unnamed, 1, process->runtime, "%s, pid %d: %s",
                  runtime->name, process->pid, runtime->hint);
    if (!process->is_set_up)
        return;
    remove_map(k, process, pid);
    int folder =
        process->folder ? process->folder - 1 : open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        remove_logs(process, folder, pid);
        close(folder);
    }
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

/* Whether a word of a command is a program of Go's: also in `sh -c`. */
static bool words_have_go(const char *words, struct buffer *path) {
    static const char between[] = " \t\n;&|()'\"";
    char name[4096];
    while (*(words += strspn(words, between))) {
        size_t length = strcspn(words, between);
        if (length < sizeof name) {
            memcpy(name, words, length);
            name[length] = 0;
            if (find_program(name, path) && object_file_has_section(path->items, go_section))
                return true;
        }
        words += length;
    }
    return false;
}

/* Of the whole system: those that run now. */
static bool system_has_go(void) {
    DIR *folder = opendir("/proc");
    bool found = false;
    for (struct dirent *entry; folder && !found && (entry = readdir(folder));)
        found = isdigit((unsigned char)entry->d_name[0]) && process_is_go(atoi(entry->d_name));
    if (folder)
        closedir(folder);
    return found;
}

bool runtime_is_go(const struct recording *r) {
    const struct record_options *options = r->options;
    struct buffer path = {0};
    bool found = options->system_wide && system_has_go();
    for (size_t i = 0; !found && options->command && options->command[i]; i++)
        found = words_have_go(options->command[i], &path);
    for (size_t i = 0; i < r->targets.count && !found; i++)
        found = process_is_go(r->targets.items[i]);
    buffer_release(&path);
    return found;
}

/* A tool of a JDK: the virtual machine is beside it. */
static bool is_java_tool(const char *program) {
    struct buffer path = {0};
    char *whole = find_program(program, &path) ? realpath(path.items, NULL) : NULL;
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
    char path[64], *line = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && !found && getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        const char *slash = strchr(line, '/');
        found = slash && (text_equal(file_name(text_of(slash)), TEXT("libjvm.so")) ||
                          is_node(text_of(slash)));
    }
    if (file)
        fclose(file);
    free(line);
    return found;
}

bool runtime_is_deep(const struct recording *r) {
    static const char *const words[] = {"java", "javac", "mvn", "gradle", "sbt", "scala", "kotlin"};
    char *const *command = r->options->command;
    struct buffer path = {0};
    bool found = command && (is_java_tool(command[0]) || find_node(command, &path) ||
                             mentions(command, words, COUNT_OF(words)));
    for (size_t i = 0; i < r->targets.count && !found; i++)
        found = process_is_deep(r->targets.items[i]);
    buffer_release(&path);
    return found;
}
