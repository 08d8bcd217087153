/*
 * Reading files and publishing them: the part of room base that touches the file system. base.h includes it.
 */
#ifndef WICK_BASE_FILE_H
#define WICK_BASE_FILE_H

#include "base/base.h"

/* ---- files read --------------------------------------------------------------------------- */

/*
 * A whole file, mapped. Pipes and "-" (standard input) are spooled to an unlinked temporary file; gzip, zstd and xz
 * are decompressed into one. Both stop at the context's limit. Only regular files and pipes are opened.
 *
 * A mapped file that shrinks would raise SIGBUS: the handler maps zero pages at the fault and marks
 * the file, so a reader sees zeroes, continues, and calls file_changed() at the end.
 */
struct file {
    char *path; /* as given, for messages */
    const uint8_t *data;
    size_t size;
    bool spooled;
    struct file_guard *guard;
    uint64_t device, inode; /* of a named file; otherwise 0 */
    uint64_t written,
        touched; /* likewise: its mtime and ctime when it was opened, in nanoseconds */
};
bool file_open(struct file *file, const char *path, const struct context *context,
               struct error *error);
/* The same for an open descriptor, which stays the caller's. */
bool file_open_descriptor(struct file *file, int descriptor, const char *path,
                          const struct context *context, struct error *error);
/* Like file_open(), but without decompressing. */
bool file_open_raw(struct file *file, const char *path, const struct context *context,
                   struct error *error);
/* Map a large file's pages in the background, ahead of a sequential reader, which would otherwise pay a fault for
   every few pages; or unmap them after they have been read, as closing the file would. Return NULL if that is not
   worthwhile. End it before the file is closed. */
struct paging;
struct paging *file_page_in(const struct file *file);
struct paging *file_page_out(const struct file *file);
void paging_end(struct paging *paging); /* NULL is fine */
/* Return true and set *error if the file shrank while it was mapped. */
bool file_changed(const struct file *file, struct error *error);
/* Return true if the file was not replaced or written to since it was opened, nor so shortly before that the
   timestamp might hide a change. */
bool file_is_settled(const struct file *file);
/* From now on, files that a library has mapped also read as zeroes in this thread if they shrink, and *changed is set
   atomically; until the next call, with another pointer or NULL. Needs a file that was opened before. */
void file_watch(bool *changed);
void file_close(struct file *file);
/* Read the beginning of a small file, such as those of /proc and /sys, without the line end. Return false if it can't
   be read. */
bool file_read_small(const char *path, char *text, size_t size);
/* proc.c. Replace the content of `text` by /proc/PID/NAME, at most about `most` bytes of it. */
enum proc_reading {
    PROC_NONE, /* can't be opened: the process has ended, or belongs to another user */
    PROC_PART, /* there is more, or reading failed */
    PROC_WHOLE
};
enum proc_reading proc_read(pid_t pid, const char *name, size_t most, struct buffer *text);
/* Return a value of a field of /proc/PID/status, counted from 0, or an empty text. */
enum { PROC_STATUS_MOST = 65536, PROC_MAPS_MOST = 64 << 20 };
#define PROC_LAST SIZE_MAX
struct text proc_field(struct text status, struct text name, size_t place);
/* Return Tgid, PPid or TracerPid; 0 if the process has ended. */
pid_t proc_status_id(pid_t pid, struct text name);
/* Create an unnamed file in $TMPDIR or /tmp, which is deleted when the descriptor is closed. Return -1 on failure. */
int file_temporary(struct error *error);
/* Open `count` of them now, at most 64, for file_temporary() to return; after these it returns memory if no file can
   be created. */
void file_temporaries_reserve(unsigned count);

/* Limits on decompression: gzip compresses at most 1,032 to 1, and no real profile is compressed more tightly. */
extern const struct budget_limits unpacking_limits;

/* Bytes that are being written to such a file, up to the context's limit; spool_map() then makes a `file` of them.
   Zero-initialised is empty. */
struct spool {
    int descriptor; /* + 1, so that 0 is none */
    uint64_t size;
    const char *path; /* of the input, for messages; the caller's */
    const struct context *context;
    struct budget *budget; /* its bytes are charged to this, or NULL; the caller's */
};
bool spool_open(struct spool *spool, const char *path, const struct context *context,
                struct error *error);
bool spool_write(struct spool *spool, const void *data, size_t size, struct error *error);
/* `path` is the name for messages. The spool is always released. */
bool spool_map(struct spool *spool, const char *path, struct file *file, struct error *error);
void spool_release(struct spool *spool);

static inline struct text file_text(const struct file *file) {
    return (struct text){(const char *)file->data, file->size};
}

/* ---- files published ---------------------------------------------------------------------- */

/* Return true if files of this user may be trusted and written to: our own, root's, and under sudo those of its
   caller, who could be root anyway. */
bool user_is_trusted(uint32_t user);
/* Return true if the mode of a file or directory lets other users write: everyone, or a group that is not ours,
   root's or that of sudo's caller. */
struct stat;
bool others_write(const struct stat *status);
/* Return true if only trusted users can rename and replace files in an open directory: they own it, and others may
   not write to it or it is sticky. Otherwise set *why. */
bool directory_is_safe(int directory, const char **why);
/* Create a new file or directory named `beginning` plus six letters. Return its descriptor, or -1; the caller frees
   *name. */
int create_unique(int directory, const char *beginning, int mode, bool is_directory, char **name);

/*
 * A file that gets its name when it is complete. Until then it is a temporary file beside it. The directory is opened
 * once, and a link with that name is replaced, not followed: changes that another user makes to the path meanwhile do
 * no harm. Devices and pipes are written to directly. A recording is private (0600), and a killed process leaves
 * NAME.unfinished-XXXXXX; other outputs have the mode that open() gives.
 */
enum publish_kind { PUBLISH_OUTPUT, PUBLISH_RECORDING };
struct publish {
    char *path;       /* as given, for messages */
    const char *name; /* its last part */
    int directory;
    int descriptor;
    char *temporary; /* its name while it is being written; NULL: it is a device or a pipe */
    struct temporary *registered;
};
/* Check, before hours of reading, whether publish_open() would succeed. */
bool publish_check(const char *path, struct error *error);
/* `path` is relative to `directory`, or to the working directory with AT_FDCWD. */
bool publish_open(struct publish *p, int directory, const char *path, enum publish_kind kind,
                  struct error *error);
/* Finish: give the file its name; or remove it; or keep it under the temporary name, which is returned as a path
   (free() it). */
bool publish_commit(struct publish *p, struct error *error);
void publish_discard(struct publish *p);
char *publish_leave(struct publish *p);
bool publish_would_replace(const struct publish *p); /* something has the name now */

/*
 * A buffered writer. To a path: published by out_commit() after every write and close succeeded; out_discard() removes it. To "-": standard
 * output. A reader that closes early (EPIPE) is not an error: later writes do nothing, and out_closed() returns true.
 */
struct out {
    struct buffer pending;
    struct publish file; /* its path is NULL for standard output */
    int descriptor;
    int failed; /* errno of the first write that failed */
    bool closed;
    struct spool *spool;   /* where it goes instead, if set */
    struct buffer *memory; /* the same */
    bool guarded; /* output of any bytes to a terminal: escape controls other than LF and TAB */
};
bool out_check(const char *path, struct error *error); /* as publish_check(); "-" is fine */
bool out_open(struct out *out, const char *path, struct error *error);
bool out_open_at(struct out *out, int directory, const char *path,
                 struct error *error); /* a file, also if it is called "-" */
/* Write to a spool, which stays the caller's: out_commit() leaves it open. */
void out_open_spool(struct out *out, struct spool *spool);
/* Write to a buffer, which stays the caller's and is complete after out_commit(), which then cannot fail. */
void out_open_buffer(struct out *out, struct buffer *buffer);
void out_write(struct out *out, const void *data, size_t size);
static inline void out_text(struct out *out, struct text t) {
    out_write(out, t.data, t.length);
}
void out_char(struct out *out, char c);
void out_u64(struct out *out, uint64_t value);
void out_printf(struct out *out, const char *format, ...) PRINTF_LIKE(2, 3);
static inline bool out_closed(const struct out *out) {
    return out->closed || out->failed;
}
bool out_commit(struct out *out, struct error *error);
void out_discard(struct out *out);
/* For signal handlers and the out-of-memory hook: unlink every temporary not yet committed. Async-signal-safe. */
void out_remove_temporaries(void);

/* Escape text for a format. Invalid UTF-8 becomes U+FFFD (xml, json), or is kept (csv). */
void buffer_add_xml(struct buffer *buffer,
                    struct text t); /* text and quoted attributes; control characters too */
void buffer_add_json(struct buffer *buffer,
                     struct text t); /* without the quotes; safe inside <script> */
static inline void buffer_add_json_text(struct buffer *buffer,
                                        struct text t) { /* with the quotes */
    buffer_add_char(buffer, '"');
    buffer_add_json(buffer, t);
    buffer_add_char(buffer, '"');
}
void buffer_add_csv(struct buffer *buffer, struct text t); /* always quoted, quotes doubled */
/*
 * Escape text for display: invisible characters and those that change the direction of text are shown as \x1b, \u202e
 * or \U000e0041, and invalid UTF-8 as \xff. Every table, picture and page shows names this way.
 */
void buffer_add_shown(struct buffer *buffer, struct text t);
bool text_is_shown(struct text t); /* whether buffer_add_shown() would leave it as it is */
/* The same for arbitrary output to a terminal, but line ends, tabs and invalid UTF-8 stay. */
void buffer_add_guarded(struct buffer *buffer, struct text t);

/* Compress as gzip without a name or a time: the same input gives the same bytes. */
struct gzip;
struct gzip *gzip_new(void);
void gzip_add(struct gzip *gzip, struct text plain,
              struct buffer *packed);                    /* appends what is ready */
void gzip_end(struct gzip *gzip, struct buffer *packed); /* the rest; frees it */

/* Write what `make` adds to an empty buffer for each item 0 … items-1, in order, while up to `threads` threads make
   them; at most one item per thread is held. After a failure, a closed output or a cancellation no further items are
   made. */
typedef bool out_maker(void *job, unsigned worker, size_t item, struct buffer *buffer,
                       struct error *error);
bool out_in_order(struct out *out, const struct context *context, unsigned threads, size_t items,
                  out_maker *make, void *job, struct error *error);

#endif
