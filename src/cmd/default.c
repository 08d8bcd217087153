/*
 * The default input if no FILE is given: perf.data in the current directory, like perf, or else the newest run. It is
 * used only if standard input is a terminal or /dev/null, which can't be meant as input.
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

/* Return the newest run by the time its recording was written, among the `rejected` ones or the others; the last by
   name if several are equal. Hidden directories are still being written. */
static const char *newest_run(struct request *request, bool rejected) {
    DIR *directory = opendir(RUNS);
    const char *newest = NULL;
    struct timespec when = {0};
    struct buffer path = {0};
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat status;
        struct text name = text_of(entry->d_name);
        path.count = 0;
        buffer_printf(&path, RUNS "/%s/profile.data%c", entry->d_name, 0);
        if (name.data[0] == '.' || text_ends(name, TEXT(".rejected")) != rejected ||
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
    const char *found = access("perf.data", R_OK) == 0 ? "perf.data" : newest_run(request, false);
    const char *rejected = found ? NULL : newest_run(request, true);
    if (found) {
        vector_push(&request->operands, found);
        if (!request->quiet)
            say_line("reading %s", found);
    } else if (rejected) { /* too few samples: only suggest it */
        *status = fail_usage(request->syntax->command,
                             "which FILE? The last run was rejected; to read it all the same, name "
                             "%s",
                             rejected);
    } else if (terminal) {
        *status = fail_usage(request->syntax->command,
                             "which FILE? There is neither a perf.data here nor a run in " RUNS
                             " (- is standard input)");
    }
    return found || (!terminal && !rejected);
}
