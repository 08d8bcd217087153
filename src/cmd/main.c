/*
 * wick: the program. Find the command and set up what all commands share: signals and progress.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Sorted by group; within a group, the most common first. */
static const struct command *const commands[] = {
    &command_profile, &command_record,   &command_trace,  &command_flame,  &command_report,
    &command_view,    &command_annotate, &command_serve,  &command_diff,   &command_fold,
    &command_script,  &command_save,     &command_export, &command_enrich, &command_agent,
    &command_push,    &command_store,    &command_doctor, &command_mcp,    NULL,
};

/* ---- signals ---- */

atomic_int interrupted, interrupts_understood;

static _Atomic bool shown; /* the progress line is on the terminal */

/* For gentle commands: the first Ctrl-C (or SIGTERM, SIGHUP) asks for the result so far, a second one, if the command
   handles it, asks to hurry, and the next ends the process at once. */
static void on_interrupt(int signal) {
    if (interrupted >= interrupts_understood) {
        out_remove_temporaries();
        _exit(128 + signal);
    }
    interrupted++;
}

static void on_end(int signal) {
    static const char wipe[] = "\r\033[K";
    if (shown)
        (void)!write(STDERR_FILENO, wipe, sizeof wipe - 1);
    out_remove_temporaries();
    _exit(128 + signal);
}

/* All other commands end at once and leave nothing behind: half a result would look like a whole one. */
static void set_signals(int gentle) {
    struct sigaction interrupt = {.sa_handler = gentle ? on_interrupt : on_end};
    interrupts_understood = gentle;
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &interrupt, NULL);
    sigaction(SIGHUP, &interrupt, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- progress: on a terminal, after the first second, ten times a second at most ---- */

static struct timespec started;
static _Atomic uint64_t next_shown = 1000;

static uint64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)((now.tv_sec - started.tv_sec) * 1000 +
                      (now.tv_nsec - started.tv_nsec) / 1000000);
}

/* Print "reading 12345", or "recording: 12 samples" if the text has a place for the number. */
static void show_count(const char *what, uint64_t done) {
    const char *place = strchr(what, '#');
    int length = place ? (int)(place - what) : (int)strlen(what);
    fprintf(stderr, "\r\033[Kwick: %.*s%s%llu%s", length, what, place ? "" : " ",
            (unsigned long long)done, place ? place + 1 : "");
}

static void show_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    uint64_t now = milliseconds(), due = next_shown;
    if (now < due || !__atomic_compare_exchange_n((uint64_t *)&next_shown, &due, now + 100, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    shown = true;
    if (total)
        fprintf(stderr, "\r\033[Kwick: %s %u %%", what,
                (unsigned)((double)done / (double)total * 100));
    else
        show_count(what, done);
}

bool progress_is_seen(void) {
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && !(kind && strcmp(kind, "dumb") == 0);
}

void progress_wipe(void) {
    if (atomic_exchange(&shown, false))
        fputs("\r\033[K", stderr);
}

/* ---- */

/* Reuse freed memory, large tables too, instead of returning it to the kernel, which would clear it again: saves a
   tenth of a short run. */
static void keep_memory(void) {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 8 << 20); /* otherwise threads request single pages */
}

/* If standard output is closed, the next opened file would get its descriptor and be overwritten by printed text.
   Fill closed descriptors with files on which writing (or, for the input, reading) fails. */
static void fill_standard_files(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0)
            (void)!open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/* Check output through stdio: help, facts about the machine, file names. Commands that write profiles check their own
   output. */
static int check_output(int status) {
    errno = 0;
    bool fine = fflush(stdout) == 0 && !ferror(stdout);
    if (fine || reader_is_gone())
        return status;
    fprintf(stderr, "wick: standard output: %s\n", errno ? strerror(errno) : "can't be written");
    return status ? status : ERROR_INPUT;
}

int command_run(const struct command *command, enum help_form help, int argc, char **argv) {
    struct request *request = memory_zero(1, command->size);
    request->context = (struct context){.progress = progress_is_seen() ? show_progress : NULL,
                                        .cancelled = &interrupted};
    request->command = command;
    request->help = help;
    if (objects_cache_path(&request->cache))
        request->import.profile.objects.cache = request->cache.items;
    int status = command->run(request, argc, argv);
    if (command->release)
        command->release(request);
    request_release(request);
    free(request);
    return status;
}

static bool is_cargo(const char *name) {
    const char *slash = strrchr(name, '/');
    return strcmp(slash ? slash + 1 : name, "cargo-wick") == 0;
}

static int run(int argc, char **argv) {
    if (argc > 0 && is_cargo(argv[0])) {
        set_signals(command_profile.gentle);
        return cargo_run(argc, argv);
    }
    if (argc < 2) {
        help_commands(commands, stderr);
        return ERROR_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return help_command(commands, argc - 1, argv + 1);
    if (strcmp(argv[1], "--version") == 0) {
        puts("wick " WICK_VERSION);
        return 0;
    }
    const struct command *command = command_find(commands, argv[1]);
    if (!command)
        return ERROR_USAGE;
    set_signals(command->gentle);
    return command_run(command, HELP_TEXT, argc - 1, argv + 1);
}

int main(int argc, char **argv) {
    clock_gettime(CLOCK_MONOTONIC, &started);
    keep_memory();
    fill_standard_files();
    set_signals(0);
    atexit(progress_wipe);
    return check_output(run(argc, argv));
}
