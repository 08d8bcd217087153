/*
 * Private to the room: the keeper's parts. keep.c decides what is kept and when, keep_process.c knows the processes, keep_files.c opens what
 * they have, and keep_write.c writes it.
 */
#ifndef WICK_RECORD_KEEP_H
#define WICK_RECORD_KEEP_H

#include "record/internal.h"
#include "record/jvm.h"

enum {
    KEEP_MOST = 64 << 20,    /* bytes in the recording, as stored */
    KEEP_ALL_MOST = 1 << 30, /* bytes of what --keep=all adds, before it is packed */
    READ_MOST = 256 << 20,   /* bytes of one file, before it is packed */
    WISHES_MOST = 1 << 16,   /* between two turns; what comes then goes without */
    FILES_MOST = 512,        /* descriptors held for files that may be replaced */
    MOUNTS_MOST = 64,        /* mount namespaces held open */
    DUMPS_MOST = 256,        /* jitdumps held open */
};

struct kept_process {
    pid_t pid;       /* 0: ended, and written */
    pid_t inner_pid; /* what it is called in its own pid namespace; 0: not known */
    uid_t user;
    uint64_t mount;  /* its mount namespace, 0: not known */
    uint32_t labels; /* string, as they were written; 0: not known */
    int map;         /* its perf map, -1: not opened */
    off_t map_size;  /* when it was last written */
    unsigned looks;  /* for its map */
    bool looked;
    bool has_user;
    bool has_code;   /* of its own making */
    bool has_dump;   /* a jitdump of its own */
    bool is_set_up;  /* writes what we made it write */
    uint8_t runtime; /* which, + 1; 0: none that is known */
    int folder;      /* a descriptor, + 1, of its working directory, if it is set up */
    bool has_ended;
};

struct kept_file {
    int descriptor; /* -1: done */
    uint64_t mount;
    uint64_t device, inode;
    struct build_id id; /* as its mapping tells */
    uint32_t path;
    bool is_kept;
    bool is_needed; /* nobody will find it outside */
};

/* A jitdump that a process has mapped. */
struct kept_dump {
    pid_t pid;
    int descriptor;
    uint32_t path;
    off_t size; /* when it was last written */
};

/* A mount namespace that is not ours. Both descriptors together keep all that is mounted there as it is. */
struct kept_mount {
    uint64_t inode;
    int space;
    int root;
};

struct wish {
    enum { WISH_PROCESS, WISH_FORK, WISH_EXIT, WISH_MOUNT, WISH_MAP, WISH_FILE, WISH_DUMP } kind;
    pid_t pid, parent;
    uint32_t number; /* in the order in which they came, within a turn */
    uint64_t time;
    uint64_t start, end; /* of a mapping; WISH_MOUNT: start is the namespace */
    uint64_t inode;      /* of a mapping that tells no build id */
    uint32_t path;
    struct build_id id;
};

struct keeper {
    const struct record_options *options;
    struct sink *sink;
    bool begun;
    uint64_t left; /* bytes that may still be kept */
    uint64_t own_mount;
    VECTOR(struct wish) wishes;
    VECTOR(struct kept_process) processes;
    struct index by_pid; /* of them: numbers are places + 1 */
    size_t ended;        /* places without a process */
    VECTOR(struct kept_file) files;
    struct index by_file; /* of them, and of those that need not be kept: numbers of `decided` */
    VECTOR(struct file_identity {
        uint64_t mount;
        uint32_t path;
        struct build_id id;
    })
    decided;
    VECTOR(struct kept_mount) mounts;
    VECTOR(struct kept_dump) dumps;
    unsigned searches;      /* for one of its processes, in this turn */
    size_t held, held_most; /* descriptors of files */
    struct strings *paths, *labels;
    struct buffer bytes;
    struct jvms *jvms;
};

/* keep_process.c: the process with that pid, or NULL; the same, made if it is new. */
struct kept_process *kept_process_find(const struct keeper *k, pid_t pid);
struct kept_process *kept_process_get(struct keeper *k, pid_t pid);
/* Look at what a process has of its own: namespace, user, cgroup. What its parent did not have is told. */
bool kept_process_look(struct keeper *k, struct kept_process *process, const struct wish *wish,
                       struct error *error);
void kept_process_end(struct keeper *k, struct kept_process *process);
/* Drop ended processes once they are more than the others: what lives decides how much memory it takes. */
void kept_processes_drop_ended(struct keeper *k);

/* keep_write.c: write an entry of the carrier, and count it. */
bool keep_entry(struct keeper *k, enum carrier_kind kind, struct text key, struct text bytes,
                struct error *error);
/* Note that something did not fit. */
void keep_note_full(struct keeper *k, struct text what);
bool keep_map(struct keeper *k, struct kept_process *process, struct error *error);
/* The jitdumps of one process, which has ended, or of all. */
bool keep_dumps(struct keeper *k, pid_t ended, struct error *error);
bool keep_file(struct keeper *k, struct kept_file *file, struct error *error);
bool keep_mount(struct keeper *k, struct error *error); /* the fact that tells ours */
bool keep_vdso(struct keeper *k, struct error *error);
/* Sets the key of an entry that is a file (docs/carrier.md). */
void keep_put_key(struct buffer *key, uint64_t mount, const struct build_id *id, struct text path);

/* keep_files.c: how many descriptors may be held for files. */
size_t files_allowed(void);
/* Hold the process's mount namespace, unless it is ours: its programs may end before their files are asked for. */
void mount_hold(struct keeper *k, const struct kept_process *process);
/* Fills in whose it is, and its own idea of its pid. */
void process_owner(struct kept_process *process);
/* A directory as the process sees it, by an absolute path; -1: it can't be had. */
int folder_open(struct keeper *k, const struct kept_process *process, const char *path);
/* Opens its perf map, if there is one that belongs to its user or to root. */
void map_open(struct keeper *k, struct kept_process *process);
/* Opens a file that was mapped, once, if it may be gone when the recording is read. */
void file_want(struct keeper *k, const struct kept_process *process, const struct wish *wish);
/* Opens a jitdump that was mapped, unless it is open already. */
void dump_want(struct keeper *k, struct kept_process *process, const struct wish *wish);
/* Whether another file is at its path by now, or none. */
bool file_was_replaced(const struct keeper *k, const struct kept_file *file);
/* Whether what was opened has the build id that was mapped. */
bool file_is_that(const struct kept_file *file);
void files_release(struct keeper *k);

/* runtime.c: the process has mapped a file with code; it ended, or the recording did. */
void runtime_saw(struct keeper *k, struct kept_process *process, struct text path);
void runtime_ends(struct keeper *k, struct kept_process *process);

#endif
