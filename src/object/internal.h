/*
 * What the files of this room know of each other: an object, its lock, its files.
 *
 * objects_add fills `identity`; everything else of an object is filled at its first use, under its lock. What is to be read
 * without the lock (symbol tables, unwind rows) is published with a release store when it is whole, and
 * never changes afterwards.
 */
#ifndef WICK_OBJECT_INTERNAL_H
#define WICK_OBJECT_INTERNAL_H

#include "object/elf.h"

#include <pthread.h>
#include <stdatomic.h>

/* What other files of the room hang on an object. `release` is called by objects_free. */
enum object_slot { SLOT_UNITS, SLOT_CFI, SLOT_LINES, SLOT_COUNT };
struct object_extra {
    void *data;
    void (*release)(void *data);
};

enum file_trouble { FILE_FINE, FILE_ABSENT, FILE_MISMATCH, FILE_NOT_ELF };

struct object {
    struct object_identity identity;
    uint32_t id;
    pthread_mutex_t lock;

    /* Under the lock. */
    bool searched;           /* its files were looked for */
    struct elf_image *image; /* the file with the code, or NULL */
    struct elf_image *debug; /* its separate debug file, or NULL */
    enum file_trouble trouble;
    char *trouble_path; /* the file that was not used */
    struct object_extra extras[SLOT_COUNT];
};

struct objects {
    struct objects_options options; /* strings are copies */
    char *buildid_cache;            /* never NULL */
    struct arena arena;
    VECTOR(struct object *) items; /* [0] is none */
    struct index index;
};

/* ---- finding files: find.c ---- */

/* Where a file of an object may be, in the order in which perf looks for symbols. */
enum file_place {
    PLACE_DEBUGLINK,     /* what .gnu_debuglink names, in the usual directories */
    PLACE_CACHE,         /* ~/.debug/.build-id/xx/…/elf */
    PLACE_CACHE_DEBUG,   /* ~/.debug/.build-id/xx/…/debug */
    PLACE_SYSTEM_SUFFIX, /* /usr/lib/debug/PATH.debug */
    PLACE_SYSTEM,        /* /usr/lib/debug/PATH */
    PLACE_BUILD_ID,      /* /usr/lib/debug/.build-id/xx/….debug */
    PLACE_PATH,          /* where it was recorded */
    PLACE_BESIDE,        /* DIRECTORY/.debug/NAME */
    PLACE_SYSTEM_MERGED, /* /usr/lib/debug/lib/… for /usr/lib/… */
    PLACE_COUNT,
};
/* The file at that place, or NULL; a wrong build id is remembered as trouble. `id` is the object's, or what its file said. */
struct elf_image *object_open_at(struct objects *objects, struct object *object,
                                 enum file_place place, const struct build_id *id);

struct object *objects_object(const struct objects *objects, uint32_t id);

/* The file with the code, and its separate debug file, found and opened at the first call; NULL when there is none. With the
   object's lock held, as is everything that libelf and libdw do with them afterwards. They live as long as the objects. Only
   OBJECT_FILE and OBJECT_VDSO have them. */
const struct elf_image *object_image(struct objects *objects, struct object *object);
const struct elf_image *object_debug(struct objects *objects, struct object *object);

#endif
