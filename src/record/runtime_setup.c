/*
 * The environment settings that make the runtime of a launched program name its generated code.
 *
 * node: --perf-basic-prof makes V8 write a perf map to /tmp, and an unwanted log to the working directory; --interpreted-frames-native-stack
 * gives interpreted functions a frame with their own name. A node that does not know these options refuses to start, so its program is
 * searched for them first.
 *
 * .NET writes a perf map to /tmp, and a list of loaded files beside it. Other programs ignore the variable. .NET 6 and 7 write to $TMPDIR,
 * where wick does not look for the map, so the variable is not set in that case.
 *
 * The Erlang VM writes a perf map and a jitdump to /tmp, and keeps frame pointers. A VM without the JIT refuses the flag, so its program is
 * searched first. It then needs memory that is both writable and executable, and exits if that is denied (SELinux, seccomp), so wick tries
 * that first.
 */
#include "record/runtime.h"

#include <stdlib.h>
#include <sys/mman.h>

static const struct note_kind note_setup = {
    "runtime-setup", "the program was started with a setting that makes its runtime name generated "
                     "code; --no-runtime-setup disables it"};

/* Whether a program contains a text. Costs about 50 ms for node's 100 MB. */
static bool program_has(const char *path, struct text wanted, const struct context *context) {
    struct file file;
    if (!file_open_raw(&file, path, context, NULL))
        return false;
    struct text bytes = file_text(&file);
    bool has = bytes.length && memmem(bytes.data, bytes.length, wanted.data, wanted.length);
    file_close(&file);
    return has;
}

/* Whether the command, or one of these variables, already says what to write. */
static bool has_own(char *const *command, const char *flag, const char *const *variables) {
    bool has = false;
    for (; *variables && !has; variables++) {
        const char *value = getenv(*variables);
        has = value && strstr(value, flag);
    }
    for (; *command && !has; command++)
        has = strstr(*command, flag);
    return has;
}

static bool memory_may_be_code(void) {
    enum { SIZE = 4096 };
    void *memory =
        mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED && munmap(memory, SIZE) == 0;
}

static bool set_up_node(const struct record_options *options, struct buffer *path) {
    static const char *const variables[] = {"NODE_OPTIONS", NULL};
    return !has_own(options->command, "--perf-", variables) &&
           command_runs_node(options->command, path) &&
           program_has(path->items, TEXT("--interpreted-frames-native-stack"), options->context);
}

static bool set_up_dotnet(const struct record_options *options, struct buffer *path) {
    static const char *const none[] = {NULL};
    const char *temporary = getenv("TMPDIR");
    (void)path;
    return !getenv("DOTNET_PerfMapEnabled") && !getenv("COMPlus_PerfMapEnabled") &&
           !getenv("DOTNET_PerfMapJitDumpPath") && !has_own(options->command, "PerfMap", none) &&
           (!temporary || strcmp(temporary, "/tmp") == 0 || strcmp(temporary, "/tmp/") == 0) &&
           command_runs_dotnet(options->command);
}

static bool set_up_erlang(const struct record_options *options, struct buffer *path) {
    static const char *const variables[] = {"ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", NULL};
    return !has_own(options->command, "JPperf", variables) &&
           command_runs_erlang(options->command, path) &&
           program_has(path->items, TEXT("bad +JPperf"), options->context) && memory_may_be_code();
}

/* Return a variable's setting, after the value that it already has. */
static char *setting_new(const char *variable, const char *flags) {
    const char *before = getenv(variable);
    struct buffer setting = {0};
    buffer_printf(&setting, "%s=%s%s%s", variable, before ? before : "",
                  before && *before ? " " : "", flags);
    buffer_add_char(&setting, 0);
    return setting.items;
}

void runtime_prepare(struct recording *r) {
    const struct record_options *options = r->options;
    char **settings = r->sink.settings;
    struct buffer path = {0}, said = {0};
    if (options->no_runtime_setup || r->sink.is_prepared || !r->sink.keeper || !options->command)
        return;
    r->sink.is_prepared = true;
    if (set_up_node(options, &path))
        settings[SETUP_NODE] = setting_new("NODE_OPTIONS", NODE_FLAGS);
    if (set_up_dotnet(options, &path))
        settings[SETUP_DOTNET] = memory_copy(DOTNET_SETTING, strlen(DOTNET_SETTING));
    if (set_up_erlang(options, &path))
        settings[SETUP_ERLANG] = setting_new("ERL_FLAGS", ERLANG_FLAGS);
    for (size_t i = 0; i < SETUPS; i++)
        if (settings[i])
            buffer_printf(&said, "%s%s", said.count ? ", " : "", settings[i]);
    if (said.count)
        notes_add(&r->result->notes, &note_setup, 1, 0, "%.*s", TEXT_ARGS(buffer_text(&said)));
    buffer_release(&path);
    buffer_release(&said);
}
