/* Which runtime a command runs, as far as can be told before it runs. */
#include "record/runtime.h"

#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

struct text path_name(struct text path) {
    size_t slash = text_find_last(path, '/');
    return slash == SIZE_MAX ? path : text_from(path, slash + 1);
}

bool path_is_node(struct text path) {
    struct text name = path_name(path);
    return text_equal(name, TEXT("node")) || text_equal(name, TEXT("nodejs"));
}

bool program_find(const char *name, struct buffer *path) {
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

bool command_mentions(char *const *command, const char *const *words, size_t count) {
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

/* Return the path of a command with links resolved, or NULL if there is none; free() it. */
static char *whole_path(const char *name) {
    struct buffer path = {0};
    char *whole = program_find(name, &path) ? realpath(path.items, NULL) : NULL;
    buffer_release(&path);
    return whole;
}

/* ---- node ---- */

/* `#! … node` */
static bool is_script_of_node(const char *path) {
    char line[256] = "";
    if (!file_read_small(path, line, sizeof line) || line[0] != '#' || line[1] != '!')
        return false;
    line[strcspn(line, "\n")] = 0;
    return strstr(line, "node");
}

bool command_runs_node(char *const *command, struct buffer *path) {
    static const char *const words[] = {"node", "npm", "npx", "yarn", "pnpm"};
    char *whole = whole_path(command[0]);
    bool is_there = whole, itself = whole && path_is_node(text_of(whole)),
         script = whole && is_script_of_node(whole);
    free(whole);
    if (itself)
        return program_find(command[0], path);
    return is_there && (script || command_mentions(command, words, COUNT_OF(words))) &&
           program_find("node", path);
}

/* ---- .NET ---- */

/* Whether there is a file beside a program with its name and this ending, or with this name. */
static bool has_beside(const char *program, const char *ending, const char *name) {
    struct buffer path = {0};
    struct text folder = text_upto(text_of(program), text_find_last(text_of(program), '/') + 1);
    if (ending)
        buffer_printf(&path, "%s%s", program, ending);
    else
        buffer_printf(&path, "%.*s%s", TEXT_ARGS(folder), name);
    buffer_add_char(&path, 0);
    bool found = access(path.items, F_OK) == 0;
    buffer_release(&path);
    return found;
}

bool command_runs_dotnet(char *const *command) {
    static const char *const words[] = {"dotnet"};
    char *whole = whole_path(command[0]);
    /* The symbol is that of a program that contains the runtime. */
    bool found = whole && (has_beside(whole, ".runtimeconfig.json", NULL) ||
                           has_beside(whole, NULL, "libcoreclr.so") ||
                           object_has_export(whole, "DotNetRuntimeInfo"));
    free(whole);
    return found || command_mentions(command, words, COUNT_OF(words));
}

/* ---- Erlang ---- */

/* Erlang's programs, and releases, are in bin/ beside erts-VERSION/. With several versions it is unknown which one runs: find none. */
static bool find_beam(const char *program, struct buffer *path) {
    char *whole = whole_path(program);
    const char *slash = whole ? strrchr(whole, '/') : NULL;
    glob_t found = {0};
    path->count = 0;
    if (slash) {
        buffer_printf(path, "%.*s/../erts-*/bin/beam.smp", (int)(slash - whole), whole);
        buffer_add_char(path, 0);
    }
    bool is_one = slash && glob(path->items, 0, NULL, &found) == 0 && found.gl_pathc == 1;
    if (is_one) {
        path->count = 0;
        buffer_add(path, text_of(found.gl_pathv[0]));
        buffer_add_char(path, 0);
    }
    globfree(&found);
    free(whole);
    return is_one;
}

bool command_runs_erlang(char *const *command, struct buffer *path) {
    static const char *const words[] = {"erl", "escript", "elixir", "iex", "mix", "rebar3"};
    return find_beam(command[0], path) ||
           (command_mentions(command, words, COUNT_OF(words)) && find_beam("erl", path));
}
