/*
 * The spool: a directory with one file per batch, NUMBER-ID.wick, published by rename. Numbers continue after a restart, so the oldest batch
 * comes first whatever the clock does. Its subdirectory `rejected` has the batches that the store refused.
 */
#include "agent/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char rejected[] = "rejected";
enum { NUMBER = 12 /* digits */, REJECTED_MOST = 100 };

/* Parse "000000000042-0123…cdef.wick"; return false if it is not a batch. */
static bool parse_name(const char *name, struct spooled *batch) {
    struct text t = text_of(name);
    uint64_t half;
    if (t.length != NUMBER + 1 + BATCH_ID + 5 || t.data[NUMBER] != '-' ||
        !text_ends(t, TEXT(".wick")) || !text_to_u64(text_upto(t, NUMBER), &batch->number))
        return false;
    struct text id = {name + NUMBER + 1, BATCH_ID};
    if (!text_hex_to_u64(text_upto(id, 16), &half) || !text_hex_to_u64(text_from(id, 16), &half))
        return false;
    memcpy(batch->name, name, t.length + 1);
    memcpy(batch->id, id.data, id.length);
    batch->id[BATCH_ID] = 0;
    return true;
}

/* Call back for each batch in the directory. */
static void each_batch(int directory, void (*look)(void *context, const struct spooled *batch),
                       void *context) {
    int descriptor = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!folder) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct spooled batch;
        struct stat status;
        if (!parse_name(entry->d_name, &batch) ||
            fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode))
            continue;
        batch.size = (uint64_t)status.st_size;
        batch.written = (uint64_t)status.st_mtim.tv_sec;
        look(context, &batch);
    }
    closedir(folder);
}

/* ---- opening ---- */

static void find_last(void *context, const struct spooled *batch) {
    uint64_t *last = context;
    if (batch->number > *last)
        *last = batch->number;
}

/* Sent batches are gone, so the last number is also saved in a file. */
static uint64_t read_last(const struct spool_directory *spool) {
    char text[32];
    uint64_t last = 0;
    int descriptor = openat(spool->directory, "last", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t length = descriptor < 0 ? 0 : read(descriptor, text, sizeof text);
    if (descriptor >= 0)
        close(descriptor);
    if (length > 0)
        text_to_u64(text_trim((struct text){text, (size_t)length}), &last);
    return last;
}

bool spool_directory_open(struct spool_directory *spool, const char *path, struct error *error) {
    const char *why;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_errno(error, path);
    spool->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (spool->directory < 0)
        return error_errno(error, path);
    if (!directory_is_safe(spool->directory, &why)) {
        spool_directory_close(spool);
        return error_set(error, ERROR_DENIED, "%s: %s; choose another with --spool", path, why);
    }
    if (flock(spool->directory, LOCK_EX | LOCK_NB) != 0) {
        spool_directory_close(spool);
        return error_set(error, ERROR_DENIED,
                         "%s: another agent uses this spool; choose another with "
                         "--spool",
                         path);
    }
    uint64_t last = read_last(spool);
    each_batch(spool->directory, find_last, &last);
    spool->next = last + 1;
    spool_tidy(spool);
    return true;
}

void spool_directory_close(struct spool_directory *spool) {
    if (spool->directory >= 0)
        close(spool->directory);
    spool->directory = -1;
}

/* ---- names ---- */

void spool_name(const struct spool_directory *spool, const char *host, struct spooled *batch) {
    char boot[64] = "";
    struct buffer content = {0};
    file_read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    buffer_printf(&content, "%s\n%s\n%llu\n%llu", host, boot, (unsigned long long)spool->next,
                  (unsigned long long)agent_now(CLOCK_REALTIME));
    uint64_t low = digest_bytes(content.items, content.count);
    buffer_add_u64(&content, low);
    uint64_t high = digest_bytes(content.items, content.count);
    buffer_release(&content);
    *batch = (struct spooled){.number = spool->next};
    snprintf(batch->id, sizeof batch->id, "%016llx%016llx", (unsigned long long)high,
             (unsigned long long)low);
    snprintf(batch->name, sizeof batch->name, "%0*llu-%s.wick", NUMBER,
             (unsigned long long)batch->number, batch->id);
}

bool spool_took(struct spool_directory *spool, const struct spooled *batch, struct error *error) {
    struct out out;
    spool->next = batch->number + 1;
    if (!out_open_at(&out, spool->directory, "last", error))
        return false;
    out_u64(&out, batch->number);
    out_char(&out, '\n');
    return out_commit(&out, error);
}

/* ---- limits ---- */

struct survey {
    uint64_t bytes, files, oldest;
};

static void survey_one(void *context, const struct spooled *batch) {
    struct survey *survey = context;
    survey->bytes += batch->size;
    survey->files++;
    if (!survey->oldest || batch->written < survey->oldest)
        survey->oldest = batch->written;
}

void spool_tidy(struct spool_directory *spool) {
    struct survey survey = {0};
    struct spooled batch;
    uint64_t now = agent_now(CLOCK_REALTIME) / 1000000000u;
    uint64_t age = spool->most_age / 1000000000u;
    each_batch(spool->directory, survey_one, &survey);
    while (spool_oldest(spool, &batch) &&
           (survey.bytes > spool->most_bytes || (now > age && batch.written < now - age))) {
        if (unlinkat(spool->directory, batch.name, 0) != 0)
            break;
        spool->counts->dropped++;
        survey = (struct survey){0};
        each_batch(spool->directory, survey_one, &survey);
    }
    spool->counts->spool_bytes = survey.bytes;
    spool->counts->spool_files = survey.files;
    spool->counts->spool_oldest = survey.oldest;
}

static void find_oldest(void *context, const struct spooled *batch) {
    struct spooled *oldest = context;
    if (!oldest->number || batch->number < oldest->number)
        *oldest = *batch;
}

bool spool_oldest(const struct spool_directory *spool, struct spooled *batch) {
    *batch = (struct spooled){0};
    each_batch(spool->directory, find_oldest, batch);
    return batch->number != 0;
}

void spool_remove(struct spool_directory *spool, const struct spooled *batch) {
    unlinkat(spool->directory, batch->name, 0);
    spool_tidy(spool);
}

/* Keep only the newest rejected batches. */
static void prune(int folder) {
    for (;;) {
        struct survey survey = {0};
        struct spooled oldest = {0};
        each_batch(folder, survey_one, &survey);
        each_batch(folder, find_oldest, &oldest);
        if (survey.files <= REJECTED_MOST || unlinkat(folder, oldest.name, 0) != 0)
            return;
    }
}

void spool_reject(struct spool_directory *spool, const struct spooled *batch) {
    mkdirat(spool->directory, rejected, 0700);
    int folder =
        openat(spool->directory, rejected, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool moved = folder >= 0 && renameat(spool->directory, batch->name, folder, batch->name) == 0;
    if (folder >= 0) {
        prune(folder);
        close(folder);
    }
    if (!moved) /* otherwise it would be sent again forever */
        unlinkat(spool->directory, batch->name, 0);
    spool->counts->rejected++;
    spool_tidy(spool);
}
