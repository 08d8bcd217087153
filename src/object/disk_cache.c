/*
 * The directory of the cache: find it, read and write its files, and remove the least recently used ones.
 */
#include "object/disk_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Raise it when a payload's form or meaning changes. */
#define FORMAT 4
#define LIMIT (1ull << 30)
#define ENTRY_LIMIT (1ull << 28)
#define SUFFIX ".derived"
#define UNFINISHED "new-"

struct header {
    char magic[8];
    uint32_t format;
    uint32_t key_size;
    uint64_t payload_size;
    uint64_t checked_size; /* of the payload: what follows has digests of its own in it */
    uint64_t digest;       /* of the key and so much of the payload */
};
static const char magic[8] = "wickderi";

struct disk_cache {
    char *path;
    uint64_t limit;
    int directory;    /* atomic; -1: not opened */
    bool has_written; /* atomic */
};

/* ---- where it is ---- */

/* Under sudo, root may still have the caller's HOME. */
static bool is_sudo(void) {
    return geteuid() == 0 && getenv("SUDO_UID") != NULL;
}

bool objects_cache_path(struct buffer *path) {
    const char *given = getenv("WICK_CACHE"), *base = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    path->count = 0;
    if (given && *given) {
        if (strcmp(given, "off") == 0)
            return false;
        buffer_printf(path, "%s", given);
    } else if (is_sudo()) {
        buffer_printf(path, "/root/.cache/wick");
    } else if (base && base[0] == '/') {
        buffer_printf(path, "%s/wick", base);
    } else if (home && home[0] == '/') {
        buffer_printf(path, "%s/.cache/wick", home);
    } else {
        return false;
    }
    buffer_add_char(path, 0);
    return true;
}

/* Open the directory if it is ours and no other user can put files there. */
static int directory_open(const char *path) {
    struct stat status;
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (directory < 0)
        return -1;
    if (fstat(directory, &status) == 0 && status.st_uid == geteuid() && !(status.st_mode & 022))
        return directory;
    close(directory);
    errno = EPERM;
    return -1;
}

/* Makes the directory, and those above it that are missing, if the one above them is ours. */
static bool directory_make(const char *path) {
    struct stat status;
    if (mkdir(path, 0700) == 0)
        return true;
    const char *slash = strrchr(path, '/');
    if (errno != ENOENT || !slash || slash == path)
        return false;
    char *above = memory_copy(path, (size_t)(slash - path));
    bool made = directory_make(above) && stat(above, &status) == 0 && status.st_uid == geteuid() &&
                mkdir(path, 0700) == 0;
    free(above);
    return made;
}

void objects_cache_make(const char *path) {
    if (access(path, F_OK) != 0)
        directory_make(path);
}

struct disk_cache *disk_cache_open(const char *path, uint64_t limit) {
    if (!path)
        return NULL;
    struct disk_cache *cache = memory_zero(1, sizeof *cache);
    cache->path = memory_copy(path, strlen(path));
    cache->limit = limit ? limit : LIMIT;
    cache->directory = directory_open(path);
    return cache;
}

static int directory_of_writer(struct disk_cache *cache) {
    int directory = __atomic_load_n(&cache->directory, __ATOMIC_ACQUIRE), none = -1;
    if (directory >= 0)
        return directory;
    directory_make(cache->path);
    directory = directory_open(cache->path);
    if (directory >= 0 && !__atomic_compare_exchange_n(&cache->directory, &none, directory, false,
                                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        close(directory);
        directory = none;
    }
    return directory;
}

/* ---- one file ---- */

static void name_print(struct text key, char name[32]) {
    static const char digits[] = "0123456789abcdef";
    uint64_t digest = digest_bytes(key.data, key.length);
    for (size_t i = 0; i < 16; i++)
        name[i] = digits[digest >> (60 - 4 * i) & 15];
    memcpy(name + 16, SUFFIX, sizeof SUFFIX);
}

static size_t padded(size_t size) {
    return (size + 7) & ~(size_t)7;
}

static uint64_t digest_of(struct text key, struct text payload) {
    return digest_mix(digest_bytes(key.data, key.length),
                      digest_bytes(payload.data, payload.length));
}

bool disk_cache_check(struct text bytes, struct text key, struct text *payload) {
    struct header header;
    if (bytes.length < sizeof header)
        return false;
    memcpy(&header, bytes.data, sizeof header);
    bytes = text_from(bytes, sizeof header);
    if (memcmp(header.magic, magic, sizeof magic) != 0 || header.format != FORMAT ||
        header.key_size != key.length || padded(key.length) > bytes.length ||
        memcmp(bytes.data, key.data, key.length) != 0)
        return false;
    *payload = text_from(bytes, padded(key.length));
    return payload->length == header.payload_size && header.checked_size <= payload->length &&
           digest_of(key, text_upto(*payload, header.checked_size)) == header.digest;
}

static bool is_ours(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_uid == geteuid() && !(status.st_mode & 077) && status.st_size > 0;
}

bool disk_cache_read(struct disk_cache *cache, struct text key, struct file *file,
                     struct text *payload) {
    static const struct timespec now[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
    char name[32];
    int directory = cache ? __atomic_load_n(&cache->directory, __ATOMIC_ACQUIRE) : -1;
    if (directory < 0)
        return false;
    name_print(key, name);
    int descriptor = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    *file = (struct file){0};
    bool fine = is_ours(descriptor) && file_open_descriptor(file, descriptor, name, NULL, NULL);
    if (fine && !disk_cache_check(file_text(file), key, payload)) {
        file_close(file);
        fine = false;
    }
    if (fine)
        futimens(descriptor, now); /* used just now */
    close(descriptor);
    return fine;
}

static bool write_whole(int descriptor, struct text text) {
    while (text.length) {
        ssize_t written = write(descriptor, text.data, text.length);
        if (written < 0 && errno != EINTR)
            return false;
        text = text_from(text, written > 0 ? (size_t)written : 0);
    }
    return true;
}

static bool write_file(int descriptor, struct text key, struct text payload, struct text rest) {
    static const char padding[8];
    struct header header = {.format = FORMAT,
                            .key_size = (uint32_t)key.length,
                            .payload_size = payload.length + rest.length,
                            .checked_size = payload.length,
                            .digest = digest_of(key, payload)};
    memcpy(header.magic, magic, sizeof magic);
    return write_whole(descriptor, (struct text){(const char *)&header, sizeof header}) &&
           write_whole(descriptor, key) &&
           write_whole(descriptor, (struct text){padding, padded(key.length) - key.length}) &&
           write_whole(descriptor, payload) && write_whole(descriptor, rest);
}

void disk_cache_write(struct disk_cache *cache, struct text key, struct text payload) {
    disk_cache_write_with(cache, key, payload, TEXT(""));
}

void disk_cache_write_with(struct disk_cache *cache, struct text key, struct text payload,
                           struct text rest) {
    char name[32], *temporary;
    uint64_t size = payload.length + rest.length;
    if (!cache || size > ENTRY_LIMIT || size > cache->limit / 4)
        return;
    int directory = directory_of_writer(cache);
    int descriptor =
        directory < 0 ? -1 : create_unique(directory, UNFINISHED, 0600, false, &temporary);
    if (descriptor < 0)
        return;
    name_print(key, name);
    bool fine = write_file(descriptor, key, payload, rest);
    fine = close(descriptor) == 0 && fine;
    if (!fine || renameat(directory, temporary, directory, name) != 0)
        unlinkat(directory, temporary, 0);
    free(temporary);
    __atomic_store_n(&cache->has_written, true, __ATOMIC_RELAXED);
}

/* ---- all files ---- */

struct listed {
    char *name;
    uint64_t size;
    uint64_t used; /* nanoseconds */
};
struct listing {
    VECTOR(struct listed) items;
    uint64_t size;
};

static bool is_of_cache(const char *name) {
    struct text text = text_of(name);
    return text_starts(text, TEXT(UNFINISHED)) || text_ends(text, TEXT(SUFFIX));
}

static void listing_add(struct listing *listing, int directory, const char *name) {
    struct stat status;
    if (!is_of_cache(name) || fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode) || status.st_uid != geteuid())
        return;
    struct listed listed = {.name = memory_copy(name, strlen(name)),
                            .size = (uint64_t)status.st_blocks * 512,
                            .used = (uint64_t)status.st_atim.tv_sec * 1000000000u +
                                    (uint64_t)status.st_atim.tv_nsec};
    listing->size += listed.size;
    vector_push(&listing->items, listed);
}

static void listing_read(struct listing *listing, int directory) {
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    if (!stream) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *entry; (entry = readdir(stream));)
        listing_add(listing, directory, entry->d_name);
    closedir(stream);
}

static void listing_release(struct listing *listing) {
    for (size_t i = 0; i < listing->items.count; i++)
        free(listing->items.items[i].name);
    vector_release(&listing->items);
}

static int listed_order(const void *a, const void *b) {
    const struct listed *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

/* Reduce the cache to three quarters of its limit, so that the next writer need not do it again. Other processes may remove files meanwhile. A
   writer that was killed leaves a file that is never read: it is removed like all others, or after an hour. */
static void remove_oldest(const struct disk_cache *cache) {
    struct listing listing = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t hour_ago = ((uint64_t)now.tv_sec - 3600) * 1000000000u;
    listing_read(&listing, cache->directory);
    bool is_full = listing.size > cache->limit;
    if (listing.items.count)
        qsort(listing.items.items, listing.items.count, sizeof listing.items.items[0],
              listed_order);
    for (size_t i = 0; i < listing.items.count; i++) {
        const struct listed *listed = &listing.items.items[i];
        bool is_left =
            text_starts(text_of(listed->name), TEXT(UNFINISHED)) && listed->used < hour_ago;
        if (!is_left && !(is_full && listing.size > cache->limit / 4 * 3))
            continue;
        if (unlinkat(cache->directory, listed->name, 0) == 0)
            listing.size -= listed->size;
    }
    listing_release(&listing);
}

void disk_cache_free(struct disk_cache *cache) {
    if (!cache)
        return;
    if (cache->directory >= 0 && cache->has_written)
        remove_oldest(cache);
    if (cache->directory >= 0)
        close(cache->directory);
    free(cache->path);
    free(cache);
}

bool objects_cache_facts(const char *path, struct objects_cache_facts *facts) {
    struct listing listing = {0};
    int directory = directory_open(path);
    *facts = (struct objects_cache_facts){.limit = LIMIT};
    if (directory < 0)
        return errno == ENOENT;
    listing_read(&listing, directory);
    facts->files = listing.items.count;
    facts->bytes = listing.size;
    listing_release(&listing);
    close(directory);
    return true;
}

bool objects_cache_clear(const char *path) {
    struct listing listing = {0};
    int directory = directory_open(path);
    if (directory < 0)
        return errno == ENOENT;
    bool fine = true;
    listing_read(&listing, directory);
    for (size_t i = 0; i < listing.items.count; i++)
        fine &= unlinkat(directory, listing.items.items[i].name, 0) == 0 || errno == ENOENT;
    listing_release(&listing);
    close(directory);
    return fine;
}

/* ---- keys ---- */

/* The program itself is part of it: another build may derive otherwise. */
void cache_key_init(struct cache_key *key, const struct objects_options *options,
                    const char *purpose) {
    struct stat self = {0};
    *key = (struct cache_key){.is_usable = stat("/proc/self/exe", &self) == 0};
    buffer_printf(&key->text, "wick " WICK_VERSION " %llx %llx %llx %lld.%09ld\n%s\nfrom %s\n",
                  (unsigned long long)self.st_dev, (unsigned long long)self.st_ino,
                  (unsigned long long)self.st_size, (long long)self.st_mtim.tv_sec,
                  self.st_mtim.tv_nsec, purpose, options->symfs ? "symfs" : "host");
}

void cache_key_add_file(struct cache_key *key, const struct file *file, const struct build_id *id) {
    char hex[2 * BUILD_ID_MAX + 1] = "";
    if (!file->inode)
        key->is_usable = false;
    if (id)
        for (size_t i = 0; i < id->size; i++)
            snprintf(hex + 2 * i, 3, "%02x", id->bytes[i]);
    buffer_printf(&key->text, "file %llx %llx %llx %llu %llu %s\n",
                  (unsigned long long)file->device, (unsigned long long)file->inode,
                  (unsigned long long)file->size, (unsigned long long)file->written,
                  (unsigned long long)file->touched, hex);
}

/* ---- payloads ---- */

const void *payload_array(struct payload_reader *reader, uint64_t count, size_t size) {
    uint64_t length;
    if (!checked_multiply(count, size, &length) || length > reader->rest.length)
        return NULL;
    const void *array = reader->rest.data;
    size_t step = padded(length) < reader->rest.length ? padded(length) : reader->rest.length;
    reader->rest = text_from(reader->rest, step);
    return array;
}

void payload_end(struct buffer *payload) {
    static const char padding[8];
    buffer_add(payload, (struct text){padding, padded(payload->count) - payload->count});
}

void payload_add(struct buffer *payload, const void *data, size_t size) {
    if (size)
        buffer_add(payload, (struct text){data, size});
    payload_end(payload);
}
