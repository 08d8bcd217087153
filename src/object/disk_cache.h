/*
 * disk cache: what was derived from files, kept from one run to the next.
 *
 * One directory, of one user, with a file for each thing that was derived: a header, the key, the payload. A key says all that the payload
 * depends on: the program that wrote it, what it was made for, and for each file that was read its device, inode, size, times and
 * build id. It is compared as a whole, so a name in the directory means nothing. Readers map a file and check it; what is damaged, of another
 * version or another user is as good as absent. Writers write beside and rename, so any number of them may work at once, and one that is killed
 * leaves nothing but a temporary file, which a later one removes. Nothing here is an error: without the cache everything works, more slowly.
 *
 * The digest guards against damage, not against people: those are kept out by the owner and the mode of directory and files. Even so whoever
 * uses a payload checks every number in it.
 */
#ifndef WICK_OBJECT_DISK_CACHE_H
#define WICK_OBJECT_DISK_CACHE_H

#include "object/object.h"

struct disk_cache;

/* NULL where `path` is NULL. The directory is made when something is first written. `limit`: bytes that it may hold, 0 for 1 GiB. */
struct disk_cache *disk_cache_open(const char *path, uint64_t limit);
/* Removes what was not used for longest, if anything was written and there is too much. NULL is fine. */
void disk_cache_free(struct disk_cache *cache);

/* Maps the payload of a key, 8-byte aligned; close the file when it is no longer used. Thread-safe. */
bool disk_cache_read(struct disk_cache *cache, struct text key, struct file *file,
                     struct text *payload);
/* Stores it, or does nothing. Thread-safe. */
void disk_cache_write(struct disk_cache *cache, struct text key, struct text payload);
/* The payload in the bytes of a file of the cache; false: it is damaged, or of another key. */
bool disk_cache_check(struct text bytes, struct text key, struct text *payload);

/* ---- keys ---- */

struct cache_key {
    struct buffer text;
    bool is_usable; /* all files in it are files that others can see */
};
/* A key of what is derived for `purpose`; buffer_release() its text. */
void cache_key_init(struct cache_key *key, const struct objects_options *options,
                    const char *purpose);
void cache_key_add_file(struct cache_key *key, const struct file *file, const struct build_id *id);

/* ---- payloads: numbers as this machine has them, arrays aligned to 8 ---- */

struct payload_reader {
    struct text rest;
};
/* An array of `count` items of `size` bytes, in place; NULL: there is not that much. */
const void *payload_array(struct payload_reader *reader, uint64_t count, size_t size);
void payload_add(struct buffer *payload, const void *data, size_t size);
/* After bytes that were put into the payload without payload_add(). */
void payload_end(struct buffer *payload);

#endif
