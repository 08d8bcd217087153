/*
 * Private to the room: the keeper's parts. keep.c decides what to keep and when, keep_process.c tracks processes, keep_files.c opens their
 * files, and keep_write.c writes them.
 */
#ifndef WICK_RECORD_KEEP_H
#define WICK_RECORD_KEEP_H

#include "record/internal.h"
#include "record/jvm.h"

enum {
    KEEP_MOST = 64 << 20,     /* bytes in the recording, as stored */
    KEEP_OWN_MOST = 64 << 20, /* bytes of what keep_own adds, before it is packed */
    KEEP_ALL_MOST = 1 << 30,  /* bytes of what --keep=all adds, before it is packed */
    READ_MOST = 256 << 20,    /* bytes of one file, before it is packed */
    WISHES_MOST = 1 << 16,    /* per turn; further ones are dropped */
    FILES_MOST = 512,         /* descriptors held for files that may be replaced */
    MOUNTS_MOST = 64,         /* mount namespaces held open */
    DUMPS_MOST = 256,         /* jitdumps held open */
};

struct kept_process {
    pid_t pid;       /* 0: ended, and written */
    pid_t inner_pid; /* in its own pid namespace; 0: unknown */
    uid_t user;
    uint64_t mount;  /* its mount namespace; 0: unknown */
    uint32_t labels; /* string, as written; 0: unknown */
    int map;         /* its perf map; -1: not open */
    off_t map_size;  /* when it was last written */
    unsigned looks;  /* attempts to find its map */
    bool looked;
    bool has_user;
    bool has_code;   /* that it generated */
    bool has_dump;   /* its own jitdump */
    bool is_set_up;  /* it writes files because of our settings */
    uint8_t runtime; /* its number + 1; 0: unknown */
    int folder;      /* descriptor + 1 of its working directory, if is_set_up */
    bool has_ended;
};

struct kept_file {
    int descriptor; /* -1: done */
    uint64_t mount;
    uint64_t device, inode;
    struct build_id id; /* from its mapping */
    uint32_t path;
    bool is_kept;
    off_t size;
    bool is_needed; /* it can't be found outside the recording */
};

/* A jitdump that a process has mapped. */
struct kept_dump {
    pid_t pid;
    int descriptor;
    uint32_t path;
    off_t size; /* when it was last written */
};

/* A mount namespace that is not ours. Both descriptors together keep everything mounted there as it is. */
struct kept_mount {
    uint64_t inode;
    int space;
    int root;
};

struct wish {
    enum { WISH_PROCESS, WISH_FORK, WISH_EXIT, WISH_MOUNT, WISH_MAP, WISH_FILE, WISH_DUMP } kind;
    pid_t pid, parent;
    uint32_t number; /* order of arrival within a turn */
    uint64_t time;
    uint64_t start, end; /* of a mapping; WISH_MOUNT: start is the namespace */
    uint64_t inode;      /* of a mapping without a build id */
    uint32_t path;
    struct build_id id;
};

struct keeper {
    const struct record_options *options;
    struct sink *sink;
    bool begun;
    uint64_t left; /* bytes that can still be kept */
    uint64_t own_mount;
    VECTOR(struct wish) wishes;
    VECTOR(struct kept_process) processes;
    struct index by_pid; /* of processes: numbers are places + 1 */
    size_t ended;        /* places without a process */
    VECTOR(struct kept_file) files;
    struct index by_file; /* of these and of files not kept: numbers of `decided` */
    VECTOR(struct file_identity {
        uint64_t mount;
        uint32_t path;
        struct build_id id;
    })
    decided;
    VECTOR(struct kept_mount) mounts;
    VECTOR(struct kept_dump) dumps;
    unsigned searches;      /* for a process of a mount namespace, in this turn */
    size_t held, held_most; /* descriptors of files */
    struct strings *paths, *labels;
    struct buffer bytes;
    struct jvms *jvms;
    struct kernel_hits *hits;
};

/* keep_process.c: return the process with that pid, or NULL; the second function creates it if it is new. */
struct kept_process *kept_process_find(const struct keeper *k, pid_t pid);
struct kept_process *kept_process_get(struct keeper *k, pid_t pid);
/* Read a process's own attributes: namespace, user, cgroup. Write those that differ from its parent's. */
bool kept_process_look(struct keeper *k, struct kept_process *process, const struct wish *wish,
                       struct error *error);
void kept_process_end(struct keeper *k, struct kept_process *process);
/* Drop ended processes once they outnumber the others, so that memory use depends on living processes. */
void kept_processes_drop_ended(struct keeper *k);

/* keep_write.c: write an entry of the carrier, and count it. */
bool keep_entry(struct keeper *k, enum carrier_kind kind, struct text key, struct text bytes,
                struct error *error);
/* Note that something did not fit. */
void keep_note_full(struct keeper *k, struct text what);
bool keep_map(struct keeper *k, struct kept_process *process, struct error *error);
/* Write the jitdumps of one process, which has ended, or of all. */
bool keep_dumps(struct keeper *k, pid_t ended, struct error *error);
bool keep_file(struct keeper *k, struct kept_file *file, struct error *error);
bool keep_mount(struct keeper *k, struct error *error); /* which one is ours */
bool keep_vdso(struct keeper *k, struct error *error);
/* kernel_names.c: collect addresses in the kernel from the first `size` bytes of a sample. Allocations have none: `hits` is NULL then. */
struct kernel_hits *kernel_hits_new(void);
void kernel_hits_free(struct kernel_hits *hits);
void kernel_hits_saw(struct kernel_hits *hits, const uint8_t *sample, size_t size);
/* Write the symbols at those addresses. */
bool keep_kernel_names(struct keeper *k, struct error *error);
/* Set the key of an entry that is a file (docs/carrier.md). */
void keep_put_key(struct buffer *key, uint64_t mount, const struct build_id *id, struct text path);

/* keep_files.c: return how many descriptors may be held for files. */
size_t files_allowed(void);
/* Hold the process's mount namespace, unless it is ours: its programs may exit before their files are opened. */
void mount_hold(struct keeper *k, const struct kept_process *process);
/* Fill in its user, and its pid in its own namespace. */
void process_owner(struct kept_process *process);
/* Open a directory by an absolute path as the process sees it; return -1 on failure. */
int folder_open(struct keeper *k, const struct kept_process *process, const char *path);
/* Open its perf map, if there is one that belongs to its user or to root. */
void map_open(struct keeper *k, struct kept_process *process);
/* Open a mapped file, once, if it may be gone when the recording is read. */
void file_want(struct keeper *k, const struct kept_process *process, const struct wish *wish);
/* Open a mapped jitdump, unless it is already open. */
void dump_want(struct keeper *k, struct kept_process *process, const struct wish *wish);
/* Whether its path now has another file, or none. */
bool file_was_replaced(const struct keeper *k, const struct kept_file *file);
/* Return whether the file is no part of the system, but somebody's own program or library. */
bool file_is_own(const struct keeper *k, const struct kept_file *file);
/* Whether the opened file has the mapping's build id. */
bool file_is_that(const struct kept_file *file);
void files_release(struct keeper *k);

/* runtime.c: the process mapped a file with code; the process or the recording ended. */
void runtime_saw(struct keeper *k, struct kept_process *process, struct text path);
void runtime_ends(struct keeper *k, struct kept_process *process);

#endif
