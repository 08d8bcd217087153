/*
 * source: where an object's files come from.
 *
 * A source is one place that may have an object's ELF file, or its symbols as text. Each source is one file of this folder and does not depend
 * on the others. The callers decide which sources to try in which order, and how to use what is found: find.c (code and debug information),
 * load.c (perf's choice, modules, perf maps) and kernel.c. To add a source, add a file and put it into those orders.
 */
#ifndef WICK_OBJECT_SOURCE_H
#define WICK_OBJECT_SOURCE_H

#include "object/internal.h"

struct search {
    struct objects *objects;
    struct object *object; /* with its lock held */
    struct build_id id;    /* required of a file; empty: take the first file found */
};

struct source {
    const char *name; /* for reports of where a file came from */
    /* Open the object's file in this place, or return NULL. If it has another build id, set the object's trouble and return NULL. */
    struct elf_image *(*open)(const struct search *search);
    /* Read a list of symbols into the object's `symbol_file` or `symbol_text`. */
    bool (*read)(const struct search *search);
};

/* Sources of ELF files. */
extern const struct source source_path;        /* the recorded path, below --symfs; the vdso */
extern const struct source source_undeleted;   /* PATH, for a recorded "PATH (deleted)" */
extern const struct source source_cache;       /* the build-id cache: the file itself */
extern const struct source source_cache_debug; /* … and its debug file */
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
/* A source of both ELF files and lists. */
extern const struct source source_kept; /* the recording's own carrier */
/* Parts of a recording made with --keep=all. */
extern const struct source source_kept_debug; /* the debug file */
extern const struct source source_kept_list;  /* the kernel's list */
extern const struct source source_kept_names; /* the part of it that names the recorded addresses */
/* Sources of lists: of perf maps, and of the kernel's symbols. */
extern const struct source source_perfmap;          /* /tmp/perf-PID.map, below --symfs */
extern const struct source source_perfmap_host;     /* the same, whatever --symfs says */
extern const struct source source_kallsyms_given;   /* --kallsyms FILE, which may be a pipe */
extern const struct source source_kallsyms_symfs;   /* /proc/kallsyms below --symfs */
extern const struct source source_kallsyms_cache;   /* a copy in the build-id cache */
extern const struct source source_kallsyms_running; /* /proc/kallsyms, of the running kernel */

/* source_kept.c: open the shared debug file with the requested build id, if the recording contains it. */
struct elf_image *kept_alternate_open(const struct search *search);

/* Try `sources`, which end with a NULL, and return the first success. */
struct elf_image *sources_open(const struct search *search, const struct source *const *sources);
bool sources_read(const struct search *search, const struct source *const *sources);

/* ---- for sources ---- */

/* Set `path`, with a NUL, to a, b and c joined; below `root`, unless that is empty, so that no `..` leads out of it. */
void path_set(struct buffer *path, struct text root, struct text a, struct text b, struct text c);
struct text directory_of(struct text path);
/* Take the first directory of --debug-dir off `rest`; return false at the end. */
bool debug_directory_next(struct text *rest, struct text *directory);
bool is_regular(const char *path);
/* Unpack .gnu_debugdata; return NULL if it is damaged, not an ELF file, or unpacks to an absurd size. */
struct elf_image *minidebug_open(struct text packed, const char *path);
/* Open a, b and c joined below --symfs. */
struct elf_image *search_open_below(const struct search *search, struct text a, struct text b,
                                    struct text c);
/* Take ownership of the image; return it if it has the requested build id, else NULL. */
struct elf_image *search_check(const struct search *search, struct elf_image *image);

#endif
