/*
 * disk cache: keeps data derived from files from one run to the next.
 *
 * The cache is a directory of one user with a file for each item: a header, the key, the payload. A key contains everything that the payload
 * depends on: the program that wrote it, its purpose, and the device, inode, size, times and build id of each file that was read. The whole key
 * is compared, so file names in the directory mean nothing. Readers map a file and check it; a file that is damaged, of another version or of
 * another user counts as absent. Writers write a temporary file and rename it, so any number of them may work at once; if one is killed, a later
 * one removes its temporary file. Nothing here is an error: without the cache everything works, more slowly.
 *
 * The digest protects against damage, not against attackers: owner and mode of the directory and files do. Even so, users of a payload check
 * every number in it.
 */
#ifndef WICK_OBJECT_DISK_CACHE_H
#define WICK_OBJECT_DISK_CACHE_H

#include "object/object.h"

struct disk_cache;

/* Return NULL if `path` is NULL. The directory is created by the first write. `limit`: its maximum size in bytes; 0: 1 GiB. */
struct disk_cache *disk_cache_open(const char *path, uint64_t limit);
/* If anything was written and the cache is too large, remove the least recently used files. NULL is fine. */
void disk_cache_free(struct disk_cache *cache);

/* Map the payload of a key, 8-byte aligned; close the file after use. Thread-safe. */
bool disk_cache_read(struct disk_cache *cache, struct text key, struct file *file,
                     struct text *payload);
/* Store a payload; failures are ignored. Thread-safe. */
void disk_cache_write(struct disk_cache *cache, struct text key, struct text payload);
/* The same with more bytes after the payload. They are not checked when the payload is read: its user does that where it uses them. */
void disk_cache_write_with(struct disk_cache *cache, struct text key, struct text payload,
                           struct text rest);
/* Find the payload in the bytes of a cache file; return false if it is damaged or has another key. */
bool disk_cache_check(struct text bytes, struct text key, struct text *payload);

/* ---- keys ---- */

struct cache_key {
    struct buffer text;
    bool is_usable; /* all its files are files that other processes can see */
};
/* Begin a key for data derived for `purpose`; buffer_release() its text. */
void cache_key_init(struct cache_key *key, const struct objects_options *options,
                    const char *purpose);
void cache_key_add_file(struct cache_key *key, const struct file *file, const struct build_id *id);

/* ---- payloads: numbers in host byte order, arrays aligned to 8 ---- */

struct payload_reader {
    struct text rest;
};
/* Return an array of `count` items of `size` bytes, in place; NULL if the payload is too short. */
const void *payload_array(struct payload_reader *reader, uint64_t count, size_t size);
void payload_add(struct buffer *payload, const void *data, size_t size);
/* Pad the payload after bytes that were appended without payload_add(). */
void payload_end(struct buffer *payload);

#endif
