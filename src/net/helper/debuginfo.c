/*
 * Fetch one file from debuginfod servers with libdebuginfod, which stores it in its own cache, shared with gdb and others.
 */
#include "net/helper/helper.h"

#include <elfutils/debuginfod.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXECUTABLE = 1 };

/* Called at least once a second. Limits are enforced here, because libdebuginfod's own limits trust what a server says. */
static int look(debuginfod_client *client, long done, long total) {
    struct job *job = debuginfod_get_user_data(client);
    answer_progress(job, done > 0 ? (uint64_t)done : 0, total > 0 ? (uint64_t)total : 0);
    return ending() || now() - job->began > job->asked.milliseconds ||
           (done > 0 && (uint64_t)done > job->asked.size) ||
           (total > 0 && (uint64_t)total > job->asked.size);
}

static void answer(const struct job *job, int found) {
    struct stat status;
    if (found >= 0 && fstat(found, &status) == 0 && S_ISREG(status.st_mode) &&
        (uint64_t)status.st_size <= job->asked.size)
        answer_done(job, 200, found, (uint64_t)status.st_size, NULL);
    else if (found >= 0)
        answer_failed(job, "larger than the limit of %llu bytes",
                      (unsigned long long)job->asked.size);
    else if (now() - job->began > job->asked.milliseconds)
        answer_failed(job, "no answer in time");
    else
        answer_failed(job, "%s",
                      found == -ENOENT                         ? "no server has it"
                      : found == -EFBIG                        ? "larger than the limit"
                      : found == -EINTR || found == -ECANCELED ? "larger than the limit"
                                                               : strerror(-found));
}

void do_debuginfo(struct job *job) {
    debuginfod_client *client = debuginfod_begin();
    const unsigned char *id = (const unsigned char *)job->texts[NET_BUILD_ID];
    size_t length = strlen(job->texts[NET_BUILD_ID]);
    if (!client || length < 2 || strspn((const char *)id, "0123456789abcdef") != length) {
        answer_failed(job, "not a build id");
    } else {
        debuginfod_set_user_data(client, job);
        debuginfod_set_progressfn(client, look);
        /* Length 0: the build id is already in hexadecimal. */
        int found = job->asked.status == EXECUTABLE
                        ? debuginfod_find_executable(client, id, 0, NULL)
                        : debuginfod_find_debuginfo(client, id, 0, NULL);
        answer(job, found);
        if (found >= 0)
            close(found);
    }
    if (client)
        debuginfod_end(client);
}
