/*
 * What is read where no FILE is named: perf.data here, as perf does it, or else the newest run. Only where standard input is nothing that could be
 * meant: a terminal, or /dev/null.
 */
#include "cmd/cmd.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define RUNS "wick-out"

static bool input_is_null(void) {
    struct stat status;
    return fstat(STDIN_FILENO, &status) == 0 && S_ISCHR(status.st_mode) &&
           status.st_rdev == makedev(1, 3);
}

static bool is_later(struct timespec a, struct timespec b) {
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* The run whose recording was written last; of several at once, the last by name. What is being made hides, and rejected runs are not meant. */
static const char *newest_run(struct request *request) {
    DIR *directory = opendir(RUNS);
    const char *newest = NULL;
    struct timespec when = {0};
    struct buffer path = {0};
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat status;
        struct text name = text_of(entry->d_name);
        path.count = 0;
        buffer_printf(&path, RUNS "/%s/profile.data%c", entry->d_name, 0);
        if (name.data[0] == '.' || text_ends(name, TEXT(".rejected")) ||
            stat(path.items, &status) != 0 || !S_ISREG(status.st_mode))
            continue;
        path.count = 0;
        buffer_printf(&path, RUNS "/%s%c", entry->d_name, 0);
        bool later = !newest || is_later(status.st_mtim, when) ||
                     (!is_later(when, status.st_mtim) && strcmp(path.items, newest) > 0);
        if (!later)
            continue;
        newest = arena_copy(&request->arena, text_of(path.items)).data;
        when = status.st_mtim;
    }
    if (directory)
        closedir(directory);
    buffer_release(&path);
    return newest;
}

bool choose_default(struct request *request, int *status) {
    bool terminal = isatty(STDIN_FILENO);
    if (request->operands.count || (!terminal && !input_is_null()))
        return true;
    const char *found = access("perf.data", R_OK) == 0 ? "perf.data" : newest_run(request);
    if (found) {
        vector_push(&request->operands, found);
        if (!request->quiet)
            say_line("reading %s", found);
    } else if (terminal) {
        *status = fail_usage(request->syntax->command,
                             "which FILE? There is neither a perf.data here nor a run in " RUNS
                             " (- is standard input)");
    }
    return found || !terminal;
}
