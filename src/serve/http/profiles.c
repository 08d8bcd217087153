/*
 * The available profiles: the files that were named, and those below the directories that were named. A name that is
 * not in the list is not opened, so that no other file of a directory can be requested; files are opened beneath the
 * directory, without following links.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/http/server.h"

enum { FRESH = 1000 }; /* milliseconds for which a list is reused */

struct listed_profile {
    char *name;
    const struct root *root;
    const char *below; /* the root's directory; in `name` */
    int64_t time;
    uint64_t size;
    bool is_run;
};

struct listing {
    const struct server *server;
    pthread_mutex_t lock;
    VECTOR(struct listed_profile) entries;
    int64_t made;
};

struct listing *listing_new(const struct server *server) {
    struct listing *listing = memory_zero(1, sizeof *listing);
    listing->server = server;
    pthread_mutex_init(&listing->lock, NULL);
    return listing;
}

static void clear(struct listing *listing) {
    for (size_t i = 0; i < listing->entries.count; i++)
        free(listing->entries.items[i].name);
    listing->entries.count = 0;
}

void listing_free(struct listing *listing) {
    clear(listing);
    vector_release(&listing->entries);
    pthread_mutex_destroy(&listing->lock);
    free(listing);
}

static int open_file(const char *path) {
    return found_recording(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), true);
}

static void add_file(struct listing *listing, const struct root *root) {
    struct stat status, named;
    int descriptor = open_file(root->path);
    if (descriptor < 0)
        return;
    if (fstat(descriptor, &status) == 0) {
        struct listed_profile entry = {.root = root,
                                       .time = status.st_mtim.tv_sec,
                                       .size = (uint64_t)status.st_size,
                                       .is_run =
                                           stat(root->path, &named) == 0 && S_ISDIR(named.st_mode)};
        entry.name = memory_copy(root->path, strlen(root->path));
        vector_push(&listing->entries, entry);
    }
    close(descriptor);
}

/* With several directories, names are prefixed with the directory's. */
static void add_directory(struct listing *listing, const struct root *root) {
    found_list found = {0};
    found_look(&found, root->directory);
    found_sort(&found);
    for (size_t i = 0; i < found.count && i < LISTED; i++) {
        struct buffer name = {0};
        size_t before = 0;
        if (listing->server->roots.count > 1) {
            struct text path = text_of(root->path);
            while (path.length > 1 && path.data[path.length - 1] == '/')
                path.length--;
            buffer_add(&name, path);
            buffer_add_char(&name, '/');
            before = name.count;
        }
        buffer_add(&name, text_of(found.items[i].name));
        buffer_add_char(&name, 0);
        vector_push(
            &listing->entries,
            ((struct listed_profile){name.items, root, name.items + before, found.items[i].time,
                                     (uint64_t)found.items[i].size, found.items[i].is_run}));
    }
    found_release(&found);
}

static int newest_first(const void *a, const void *b) {
    const struct listed_profile *x = a, *y = b;
    int order = (x->time < y->time) - (x->time > y->time);
    return order ? order : strcmp(x->name, y->name);
}

static void make(struct listing *listing) {
    clear(listing);
    for (size_t i = 0; i < listing->server->roots.count; i++) {
        const struct root *root = &listing->server->roots.items[i];
        if (root->directory < 0)
            add_file(listing, root);
        else
            add_directory(listing, root);
    }
    if (listing->entries.count)
        qsort(listing->entries.items, listing->entries.count, sizeof *listing->entries.items,
              newest_first);
    listing->made = milliseconds();
}

void listing_add(struct listing *listing, struct buffer *body) {
    pthread_mutex_lock(&listing->lock);
    if (!listing->made || milliseconds() - listing->made > FRESH)
        make(listing);
    size_t count = listing->entries.count;
    buffer_printf(body, "{\"count\":%zu,\"limit\":%llu,\"runs\":[", count,
                  (unsigned long long)listing->server->page_limit);
    for (size_t i = 0; i < count && i < LISTED; i++) {
        const struct listed_profile *entry = &listing->entries.items[i];
        buffer_add(body, i ? TEXT(",{\"name\":") : TEXT("{\"name\":"));
        buffer_add_json_text(body, text_of(entry->name));
        buffer_printf(body, ",\"time\":%lld,\"size\":%llu,\"run\":%s}", (long long)entry->time,
                      (unsigned long long)entry->size, entry->is_run ? "true" : "false");
    }
    buffer_add(body, TEXT("]}"));
    pthread_mutex_unlock(&listing->lock);
}

static const struct listed_profile *find(const struct listing *listing, const char *name) {
    for (size_t i = 0; i < listing->entries.count; i++)
        if (strcmp(listing->entries.items[i].name, name) == 0)
            return &listing->entries.items[i];
    return NULL;
}

int listing_open(struct listing *listing, const char *name, uint64_t *size, uint64_t *mark) {
    struct stat status;
    int descriptor = -1;
    pthread_mutex_lock(&listing->lock);
    const struct listed_profile *entry = find(listing, name);
    if (!entry && (!listing->made || milliseconds() - listing->made > FRESH)) {
        make(listing);
        entry = find(listing, name);
    }
    if (entry)
        descriptor = entry->root->directory < 0
                         ? open_file(entry->root->path)
                         : found_open(entry->root->directory, entry->below, false);
    pthread_mutex_unlock(&listing->lock);
    if (descriptor >= 0 && fstat(descriptor, &status) == 0) {
        /* Above the descriptors that children use for it. */
        int high = fcntl(descriptor, F_DUPFD_CLOEXEC, FIRST_FILE + 100);
        close(descriptor);
        descriptor = high;
        *size = (uint64_t)status.st_size;
        *mark = hash_mix(hash_mix(status.st_ino, (uint64_t)status.st_size),
                         (uint64_t)status.st_mtim.tv_sec * 1000000000 +
                             (uint64_t)status.st_mtim.tv_nsec);
    }
    return descriptor;
}

const char *listing_only(const struct listing *listing) {
    const struct server *server = listing->server;
    bool only = server->roots.count == 1 && server->roots.items[0].directory < 0;
    return only ? server->roots.items[0].path : NULL;
}
