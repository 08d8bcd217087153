/*
 * cargo wick: wick under the name cargo-wick, which cargo runs with "wick" and the remaining arguments. Build with
 * debug information, find the executable in cargo's JSON messages, and profile it. Arguments that are neither cargo's
 * nor after `--` are passed to wick profile.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"

struct executable {
    char *path, *name, *kind;
};

struct cargo {
    const char *kind, *name; /* of the requested target; NULL: none */
    bool release;
    VECTOR(const char *) build;   /* arguments for cargo */
    VECTOR(const char *) profile; /* arguments for wick profile */
    VECTOR(struct executable) found;
};

static const char *const kinds[] = {"bin", "example", "test", "bench"};

/* ---- cargo's messages ---- */

/* Read the first string of an array; skip the others. */
static bool first_string(struct json *json, struct buffer *out) {
    if (!json_take(json, '['))
        return json_skip(json);
    while (json_element(json))
        if (out->count || !json_string(json, out))
            if (!json_skip(json))
                return false;
    return true;
}

static bool read_target(struct json *json, struct buffer *kind, struct buffer *name) {
    struct buffer member = {0};
    bool fine = json_take(json, '{');
    for (; fine && (member.count = 0, json_member(json, &member));) {
        if (text_equal(buffer_text(&member), TEXT("kind")))
            fine = first_string(json, kind);
        else if (text_equal(buffer_text(&member), TEXT("name")))
            fine = json_string(json, name);
        else
            fine = json_skip(json);
    }
    buffer_release(&member);
    return fine;
}

static char *kept(struct buffer *text) {
    return memory_copy(text->items, text->count);
}

/* Read one message, which is one line; ignore those that name no executable. */
static void read_message(struct cargo *cargo, struct text line) {
    struct json json = {line};
    struct buffer member = {0}, kind = {0}, name = {0}, path = {0};
    bool fine = json_take(&json, '{');
    for (; fine && (member.count = 0, json_member(&json, &member));) {
        if (text_equal(buffer_text(&member), TEXT("target")))
            fine = read_target(&json, &kind, &name);
        else if (!text_equal(buffer_text(&member), TEXT("executable")) ||
                 !json_string(&json, &path))
            fine = json_skip(&json);
    }
    if (path.count && kind.count && name.count)
        vector_push(&cargo->found, ((struct executable){kept(&path), kept(&name), kept(&kind)}));
    buffer_release(&member);
    buffer_release(&kind);
    buffer_release(&name);
    buffer_release(&path);
}

static void read_messages(struct cargo *cargo, struct text text) {
    while (text.length) {
        size_t end = text_find(text, '\n');
        end = end == SIZE_MAX ? text.length : end;
        read_message(cargo, text_upto(text, end));
        text = text_from(text, end < text.length ? end + 1 : end);
    }
}

/* ---- running cargo ---- */

static void cargo_child(struct cargo *cargo, int out) {
    const char *program = getenv("CARGO");
    dup2(out, STDOUT_FILENO);
    setenv("CARGO_PROFILE_RELEASE_DEBUG", "true", 1);
    setenv("CARGO_PROFILE_BENCH_DEBUG", "true", 1);
    cargo->build.items[0] = program && *program ? program : "cargo";
    execvp(cargo->build.items[0], (char *const *)cargo->build.items);
    say_line("%s: %s", cargo->build.items[0], strerror(errno));
    _exit(127);
}

/* Cargo's own messages go to standard error, so it has already said why it failed. */
static int build(struct cargo *cargo) {
    int out[2], status = 0;
    struct buffer said = {0};
    char bytes[4096];
    ssize_t got;
    if (pipe2(out, O_CLOEXEC) != 0)
        return ERROR_INPUT;
    pid_t child = fork();
    if (child == 0)
        cargo_child(cargo, out[1]);
    close(out[1]);
    while ((got = read(out[0], bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR))
        if (got > 0)
            buffer_add(&said, (struct text){bytes, (size_t)got});
    close(out[0]);
    bool ended = child > 0 && waitpid(child, &status, 0) == child;
    if (ended && status == 0)
        read_messages(cargo, buffer_text(&said));
    buffer_release(&said);
    return ended && status == 0 ? 0 : ERROR_INPUT;
}

/* ---- choosing the executable ---- */

static bool is_wanted(const struct cargo *cargo, const struct executable *executable) {
    return (!cargo->kind || strcmp(executable->kind, cargo->kind) == 0) &&
           (!cargo->name || strcmp(executable->name, cargo->name) == 0);
}

static const char *choose_executable(const struct cargo *cargo) {
    const char *path = NULL;
    size_t count = 0;
    for (size_t i = 0; i < cargo->found.count; i++)
        if (is_wanted(cargo, &cargo->found.items[i])) {
            path = cargo->found.items[i].path;
            count++;
        }
    if (count == 1)
        return path;
    struct buffer found = {0};
    const char *before = count ? " " : "; there is ";
    for (size_t i = 0; i < cargo->found.count; i++, before = ", ")
        buffer_printf(&found, "%s--%s %s", before, cargo->found.items[i].kind,
                      cargo->found.items[i].name);
    say_line("cargo built %s%.*s", count ? "several executables; choose one:" : "none such",
             TEXT_ARGS(buffer_text(&found)));
    buffer_release(&found);
    return NULL;
}

/* ---- arguments ---- */

/* `--bin NAME` or `--bin=NAME`. */
static bool take_target(struct cargo *cargo, char **argv, int *at) {
    const char *word = argv[*at];
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        size_t length = strlen(kinds[i]);
        if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, kinds[i], length) != 0)
            continue;
        if (word[2 + length] == '=')
            cargo->name = word + 3 + length;
        else if (!word[2 + length] && argv[*at + 1])
            cargo->name = argv[++*at];
        else
            continue;
        cargo->kind = kinds[i];
        return true;
    }
    return false;
}

static void take_words(struct cargo *cargo, int argc, char **argv) {
    int at = argc > 1 && strcmp(argv[1], "wick") == 0 ? 2 : 1;
    vector_push(&cargo->profile, "profile");
    for (; at < argc && strcmp(argv[at], "--") != 0; at++)
        if (strcmp(argv[at], "--release") == 0)
            cargo->release = true;
        else if (!take_target(cargo, argv, &at))
            vector_push(&cargo->profile, argv[at]);
    vector_push(&cargo->profile, "--");
    vector_push(&cargo->profile, NULL); /* the executable */
    for (at++; at < argc; at++)
        vector_push(&cargo->profile, argv[at]);
    vector_push(&cargo->profile, NULL);
}

static void make_build(struct cargo *cargo) {
    bool is_test = cargo->kind && strcmp(cargo->kind, "test") == 0;
    bool is_bench = cargo->kind && strcmp(cargo->kind, "bench") == 0;
    vector_push(&cargo->build, "cargo");
    vector_push(&cargo->build, is_test ? "test" : is_bench ? "bench" : "build");
    vector_push(&cargo->build, "--message-format=json-render-diagnostics");
    if (is_test || is_bench)
        vector_push(&cargo->build, "--no-run");
    if (cargo->release && !is_bench)
        vector_push(&cargo->build, "--release");
    if (cargo->kind) {
        vector_push(&cargo->build, is_test                           ? "--test"
                                   : is_bench                        ? "--bench"
                                   : strcmp(cargo->kind, "bin") == 0 ? "--bin"
                                                                     : "--example");
        vector_push(&cargo->build, cargo->name);
    }
    vector_push(&cargo->build, NULL);
}

static void cargo_release(struct cargo *cargo) {
    for (size_t i = 0; i < cargo->found.count; i++) {
        free(cargo->found.items[i].path);
        free(cargo->found.items[i].name);
        free(cargo->found.items[i].kind);
    }
    vector_release(&cargo->found);
    vector_release(&cargo->build);
    vector_release(&cargo->profile);
}

static bool wants_help(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

int cargo_run(int argc, char **argv) {
    struct cargo cargo = {0};
    if (wants_help(argc, argv)) {
        puts("usage: cargo wick [--bin|--example|--test|--bench NAME] [--release] [OPTION…] [-- "
             "ARGS]\n\n"
             "Builds with debug information, then does what wick profile does with the\n"
             "executable. OPTIONs are those of wick profile; see wick profile --help.");
        return 0;
    }
    take_words(&cargo, argc, argv);
    make_build(&cargo);
    int status = build(&cargo);
    const char *path = status ? NULL : choose_executable(&cargo);
    if (!status && !path)
        status = ERROR_USAGE;
    if (path) {
        size_t at = 0;
        while (cargo.profile.items[at])
            at++;
        cargo.profile.items[at] = path;
        status = command_run(&command_profile, HELP_TEXT, (int)cargo.profile.count - 1,
                             (char **)cargo.profile.items);
    }
    cargo_release(&cargo);
    return status;
}
