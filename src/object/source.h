/*
 * source: where the files of an object come from.
 *
 * A source is one place that may have something of an object: an ELF file, or a list of symbols as text. Each is one file of this folder,
 * and knows nothing of the others. What is tried in which order, and what a find is good for, is decided by whoever searches: find.c (code
 * and debug information), load.c (perf's choice, modules, perf maps) and kernel.c. A new source is a new file and its place in those orders.
 */
#ifndef WICK_OBJECT_SOURCE_H
#define WICK_OBJECT_SOURCE_H

#include "object/internal.h"

struct search {
    struct objects *objects;
    struct object *object; /* with its lock held */
    struct build_id id;    /* a file has to have it; empty: the first file is the one */
};

struct source {
    const char *name; /* for those who ask where a file came from */
    /* The object's file in this place, or NULL. One with another build id is not returned, but remembered as the object's trouble. */
    struct elf_image *(*open)(const struct search *search);
    /* The same of a list of symbols, as the object's `symbol_file` or `symbol_text`. */
    bool (*read)(const struct search *search);
};

/* Sources of ELF files. */
extern const struct source source_path;        /* where it was recorded, below --symfs; the vdso */
extern const struct source source_undeleted;   /* "PATH (deleted)", which is at PATH again */
extern const struct source source_cache;       /* the build-id cache: the file itself */
extern const struct source source_cache_debug; /* and its debug file */
extern const struct source
    source_debuglink; /* what .gnu_debuglink names, in the usual directories */
extern const struct source source_build_id;  /* /usr/lib/debug/.build-id/xx/….debug */
extern const struct source source_suffix;    /* /usr/lib/debug/PATH.debug */
extern const struct source source_mirrored;  /* /usr/lib/debug/PATH */
extern const struct source source_merged;    /* /usr/lib/debug/lib/… for /usr/lib/… */
extern const struct source source_beside;    /* DIRECTORY/.debug/NAME */
extern const struct source source_minidebug; /* .gnu_debugdata, inside the file with the code */
extern const struct source source_vmlinux;   /* --vmlinux FILE */
extern const struct source
    source_debuginfod_code; /* debuginfod's client cache, then its servers: */
extern const struct source source_debuginfod_debug; /* the file itself, and its debug file */
/* Of both. */
extern const struct source source_kept; /* the recording's own carrier */
/* Parts of a recording made with --keep=all. */
extern const struct source source_kept_debug; /* the debug file */
extern const struct source source_kept_list;  /* the kernel's list */
/* Sources of lists: of perf maps, and of the kernel's symbols. */
extern const struct source source_perfmap;          /* /tmp/perf-PID.map, below --symfs */
extern const struct source source_perfmap_host;     /* the same, whatever --symfs says */
extern const struct source source_kallsyms_given;   /* --kallsyms FILE, which may be a pipe */
extern const struct source source_kallsyms_symfs;   /* /proc/kallsyms below --symfs */
extern const struct source source_kallsyms_cache;   /* a copy in the build-id cache */
extern const struct source source_kallsyms_running; /* /proc/kallsyms, of the running kernel */

/* source_kept.c: the shared file with debug information that has the build id searched for, if the recording keeps it. */
struct elf_image *kept_alternate_open(const struct search *search);

/* The first find among `sources`, which end with a NULL. */
struct elf_image *sources_open(const struct search *search, const struct source *const *sources);
bool sources_read(const struct search *search, const struct source *const *sources);

/* ---- for sources ---- */

/* Sets `path`, with a NUL, to a, b and c joined; below `root`, if that is not empty, and then no `..` leads out of it. */
void path_set(struct buffer *path, struct text root, struct text a, struct text b, struct text c);
struct text directory_of(struct text path);
/* Takes the first of --debug-dir off `rest`; false at the end. */
bool debug_directory_next(struct text *rest, struct text *directory);
bool is_regular(const char *path);
/* Unpacks what .gnu_debugdata holds; NULL: it is damaged, no ELF file, or unpacks to an absurd size. */
struct elf_image *minidebug_open(struct text packed, const char *path);
/* Opens a, b and c joined below --symfs. */
struct elf_image *search_open_below(const struct search *search, struct text a, struct text b,
                                    struct text c);
/* Takes the image over: returns it if it has the build id that is searched for. */
struct elf_image *search_check(const struct search *search, struct elf_image *image);

#endif
