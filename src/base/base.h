/*
 * base: what every room stands on.
 *
 * Memory, text, vectors, hash indexes, interned strings, errors, notes, contexts, files read and
 * files published, threads. Nothing here knows about profiles.
 *
 * Ownership, for the whole library: the caller owns what it passes in, and what it gets back only
 * from functions called _new, _open or _dup. `_init` readies a struct in place and `_release` gives
 * back what it holds; `_free` undoes `_new`. What lives as long as a profile comes from an arena.
 *
 * The library never prints and never exits. What fails returns false or NULL and fills a
 * `struct error`; what is worth saying but is no error becomes a note. Only running out of memory
 * ends the process, through the hook below.
 *
 * Nothing here or in the rooms below is a mutable global, so that several profiles can be read in several threads at once: what a
 * call may use, and whom it tells how far it is, is in the context that it is given. Five things belong to the process by
 * their nature, and are safe to use from any thread: the out-of-memory hook, the SIGBUS handler with its table of mapped
 * files (guard.c), the table of unpublished files that a signal handler removes (out.c), the nameless files that were opened ahead (temporary.c), and the
 * secret of hashes (memory.c).
 */
#ifndef WICK_BASE_H
#define WICK_BASE_H

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define PRINTF_LIKE(format_index, first) __attribute__((format(printf, format_index, first)))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- text: bytes with a length, not owned, not NUL-terminated ---------------------------- */

struct text {
    const char *data;
    size_t length;
};

#define TEXT(literal) ((struct text){"" literal, sizeof(literal) - 1})
/* For "%.*s", whose length is an int: of what is longer than any name, the beginning. */
#define TEXT_ARGS(t) (int)((t).length < TEXT_PRINTED ? (t).length : TEXT_PRINTED), (t).data
enum { TEXT_PRINTED = 1 << 28 };

static inline struct text text_of(const char *string) {
    return (struct text){string, string ? strlen(string) : 0};
}

static inline bool text_equal(struct text a, struct text b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* Bytewise order; a prefix sorts before what it begins. */
int text_compare(struct text a, struct text b);
bool text_starts(struct text t, struct text prefix);
bool text_ends(struct text t, struct text suffix);
/* The index of the first or last `byte`, or SIZE_MAX. */
size_t text_find(struct text t, char byte);
size_t text_find_last(struct text t, char byte);
/* The first place where `needle` begins, or SIZE_MAX. */
size_t text_search(struct text t, struct text needle);
/* Whether `pattern` matches all of `t`: `*` stands for any bytes, `?` for one, `[a-z]` for one of these, `[!a-z]` for one not of these; `\` takes
   the next byte as it is. Only the last `*` is ever tried again, so no pattern takes exponential time. */
bool text_matches(struct text t, struct text pattern);
struct text text_trim(struct text t); /* spaces, tabs, CR and LF at both ends */
static inline struct text text_from(struct text t, size_t start) {
    assert(start <= t.length);
    return (struct text){t.data + start, t.length - start};
}
static inline struct text text_upto(struct text t, size_t end) {
    assert(end <= t.length);
    return (struct text){t.data, end};
}
/* Takes the first line off `rest`, with its end, and returns it without. */
static inline struct text text_take_line(struct text *rest) {
    size_t end = text_find(*rest, '\n');
    struct text line = end == SIZE_MAX ? *rest : text_upto(*rest, end);
    *rest = text_from(*rest, end == SIZE_MAX ? rest->length : end + 1);
    return line;
}
/* All of `t` is a number, decimal or hexadecimal without a prefix; false on anything else, or overflow. */
bool text_to_u64(struct text t, uint64_t *value);
/* All of `t` is a decimal number as C writes it, with or without a fraction. */
bool text_to_double(struct text t, double *value);
/* `value` without its fraction, within what 64 bits hold. */
uint64_t double_to_u64(double value);
bool text_hex_to_u64(struct text t, uint64_t *value);

/* ---- numbers from files ------------------------------------------------------------------- */

/* false when the result does not fit; *sum is then unchanged. */
static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *sum) {
    uint64_t result;
    if (__builtin_add_overflow(a, b, &result))
        return false;
    *sum = result;
    return true;
}

static inline bool checked_multiply(uint64_t a, uint64_t b, uint64_t *product) {
    uint64_t result;
    if (__builtin_mul_overflow(a, b, &result))
        return false;
    *product = result;
    return true;
}

/* a + b, or UINT64_MAX. For ranges whose end may touch the top of the address space. */
static inline uint64_t saturating_add(uint64_t a, uint64_t b) {
    uint64_t result;
    return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
}

/* Loads from unaligned places, little-endian host assumed by every format wick reads. */
static inline uint16_t load_u16(const void *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint32_t load_u32(const void *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint64_t load_u64(const void *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- memory ------------------------------------------------------------------------------- */

/* These never return NULL: out of memory (or a size that overflows) calls the hook, which must not return. */
void *memory_alloc(size_t size);
void *memory_zero(size_t count, size_t size);
void *memory_resize(void *old, size_t count, size_t size);
/* Zeroed like memory_zero(), for tables that are looked into before they are written to: fresh pages would be mapped twice, once to read
   nothing and once to write, and the second time interrupts every other thread. free() it. */
void *memory_table(size_t count, size_t size);
char *memory_copy(const void *data, size_t size); /* with a NUL after it; free() it */
/* What printf() would print, likewise; its length goes into *size, which may be NULL. */
char *memory_print(size_t *size, const char *format, va_list list) PRINTF_LIKE(2, 0);
/* Default: remove unpublished files, one line on standard error, _exit(5). */
void memory_set_hook(void (*out_of_memory)(void));

/* Many small things that die together. Zero-initialised is ready to use. Not thread-safe. */
struct arena {
    struct arena_block *newest;
    char *next;
    size_t left;
};
void *arena_alloc(struct arena *arena, size_t size);        /* aligned to 8, not zeroed */
struct text arena_copy(struct arena *arena, struct text t); /* with a NUL after it */
void arena_release(struct arena *arena);

/* ---- vectors ------------------------------------------------------------------------------ */

/* VECTOR(struct node) nodes = {0}; vector_push(&nodes, node); nodes.items[i]; vector_release(&nodes); */
#define VECTOR(type)                                                                               \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }
#define vector_reserve(v, wanted)                                                                  \
    vector_grow((void **)&(v)->items, &(v)->capacity, (wanted), sizeof(*(v)->items))
/* The analyzer of `make lint` does not know that a vector with room has items. */
#ifdef __clang_analyzer__
#define vector_has_items(v) assert((v)->items)
#else
#define vector_has_items(v) ((void)0)
#endif
#define vector_push(v, item)                                                                       \
    do {                                                                                           \
        if ((v)->count == (v)->capacity)                                                           \
            vector_reserve((v), (v)->count + 1);                                                   \
        vector_has_items(v);                                                                       \
        (v)->items[(v)->count++] = (item);                                                         \
    } while (0)
#define vector_release(v)                                                                          \
    do {                                                                                           \
        free((v)->items);                                                                          \
        (v)->items = NULL;                                                                         \
        (v)->count = (v)->capacity = 0;                                                            \
    } while (0)
void vector_grow(void **items, size_t *capacity, size_t wanted, size_t item_size);

/* The last field of what stands in an array with one item a thread: what two threads write to must not share a cache line, nor the pair of
   lines that processors fetch together. */
#define APART char apart[128]

/* A growing text buffer: VECTOR(char) with helpers. */
struct buffer {
    char *items;
    size_t count;
    size_t capacity;
};
struct buffer_apart {
    struct buffer buffer;
    APART;
};
void buffer_add(struct buffer *buffer, struct text t);
void buffer_add_char(struct buffer *buffer, char c);
void buffer_add_u64(struct buffer *buffer, uint64_t value); /* in decimal */
void buffer_add_hex(struct buffer *buffer, uint64_t value); /* lower case, no prefix */
/* Seven bits a byte, the lowest first; all but the last have the highest bit. */
static inline void buffer_add_varint(struct buffer *buffer, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        buffer_add_char(buffer, (char)(value | 0x80));
    buffer_add_char(buffer, (char)value);
}
/* Its bytes, as this machine has them. */
static inline void buffer_put_u32(struct buffer *buffer, uint32_t value) {
    buffer_add(buffer, (struct text){(const char *)&value, sizeof value});
}
static inline void buffer_put_u64(struct buffer *buffer, uint64_t value) {
    buffer_add(buffer, (struct text){(const char *)&value, sizeof value});
}
void buffer_printf(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);
static inline struct text buffer_text(const struct buffer *buffer) {
    return (struct text){buffer->items, buffer->count};
}
void buffer_release(struct buffer *buffer);

/* ---- sorting ------------------------------------------------------------------------------ */

/* The places of `keys`, all less than `key_count`, by key; equal ones in their order. free() it. Those of key k end at ends[k], unless `ends`
   is NULL. Costs two passes over the keys, and eight bytes for each there may be. */
uint32_t *counting_sort(const uint32_t *keys, size_t count, size_t key_count, size_t *ends);
/* The same of keys of any size. */
uint32_t *radix_sort(const uint64_t *keys, size_t count);

/* ---- searching ---- */

/* The first place from `low` on, and before `high`, for which `is_before`, an expression of `place`, is false; `high` if it is true for all.
   It must not become true again behind that place. Costs log2(high - low) evaluations. */
/* NOLINTBEGIN(bugprone-macro-parentheses): `place` is declared here, and a declared name has no parentheses. */
#define search_first(place, low, high, is_before)                                                  \
    ({                                                                                             \
        size_t search_low_ = (low), search_high_ = (high);                                         \
        while (search_low_ < search_high_) {                                                       \
            size_t place = search_low_ + (search_high_ - search_low_) / 2;                         \
            if (is_before)                                                                         \
                search_low_ = place + 1;                                                           \
            else                                                                                   \
                search_high_ = place;                                                              \
        }                                                                                          \
        search_low_;                                                                               \
    })
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- hashing ------------------------------------------------------------------------------ */

/*
 * Hashes for tables in memory. They are keyed with a secret that differs from process to process, so that nobody can write a file whose
 * names or addresses all fall into one slot. What is written out must not depend on them: use digests there.
 */
extern uint64_t hash_secret[2] __attribute__((visibility("hidden")));
uint64_t hash_bytes(const void *data, size_t size); /* XXH3 */
static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)(a ^ hash_secret[0]) * (b ^ hash_secret[1]);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
/* 128 bits, for those who take equal hashes for equal things: no two of 2^40 things have the same but once in 2^48 runs, whatever a file holds. */
struct hash_wide {
    uint64_t low, high;
};
struct hash_wide hash_wide(const void *data, size_t size); /* XXH3 */
/* For tests: what would otherwise be random. Only while no index is in use. */
void hash_set_seed(uint64_t seed);

/* The same everywhere and always, for what is shown: colours, ids in a file. */
uint64_t digest_bytes(const void *data, size_t size); /* XXH3 */
static inline uint64_t digest_mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)(a ^ 0x9E3779B97F4A7C15ull) * (b ^ 0xD6E8FEB86659FD93ull);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * An index finds 32-bit ids (never 0) by the hash of what they stand for; what they stand for is the
 * caller's, in an array that the id indexes. Zero-initialised is ready to use.
 *
 *     uint64_t hash = hash_mix(parent, location);
 *     for (struct probe p = index_probe(&ix, hash); (id = index_next(&ix, &p));)
 *         if (nodes[id].parent == parent && nodes[id].location == location)
 *             return id;
 *     index_add(&ix, hash, new_id);
 */
struct index {
    uint64_t *slots; /* upper half: the hash's upper half; lower half: id, 0 is empty */
    uint32_t mask;
    uint32_t count;
};
struct probe {
    uint32_t slot;
    uint32_t tag;
};
static inline struct probe index_probe(const struct index *index, uint64_t hash) {
    return (struct probe){(uint32_t)(hash >> 32) & index->mask, (uint32_t)(hash >> 32)};
}
static inline uint32_t index_next(const struct index *index, struct probe *probe) {
    if (!index->slots)
        return 0;
    for (;;) {
        uint64_t slot = index->slots[probe->slot];
        if ((uint32_t)slot == 0)
            return 0;
        probe->slot = (probe->slot + 1) & index->mask;
        if ((uint32_t)(slot >> 32) == probe->tag)
            return (uint32_t)slot;
    }
}
/* Does not look whether an equal thing is there already. Only the upper 32 bits of the hash are used, for the slot and
   as tag, so that growing needs no more than the slots. */
void index_add(struct index *index, uint64_t hash, uint32_t id);
void index_reserve(struct index *index, size_t count);
void index_release(struct index *index);

/* ---- interned strings --------------------------------------------------------------------- */

/* Any bytes, each distinct string once. Id 0 is none (reads as empty text); the empty string has an id of its own.
   Not thread-safe to add to; reading is safe while nobody adds. Text stays where it is. */
struct strings;
struct strings *strings_new(void);
/* One more who has to free them. */
struct strings *strings_share(struct strings *strings);
void strings_free(struct strings *strings);
uint32_t strings_add(struct strings *strings, struct text t);
uint32_t strings_find(const struct strings *strings, struct text t); /* 0 when it was never added */
struct text strings_get(const struct strings *strings, uint32_t id);
uint32_t strings_count(const struct strings *strings);  /* ids are 1 … count */
uint64_t strings_memory(const struct strings *strings); /* about what they take, in bytes */

/* ---- errors ------------------------------------------------------------------------------- */

/* The kind is the command's exit status. */
enum error_kind {
    ERROR_NONE = 0,
    ERROR_INPUT = 1, /* bad input, or a file that can't be read or written */
    ERROR_USAGE = 2,
    ERROR_DENIED = 3, /* the machine does not allow it */
    ERROR_FEW = 4,    /* too few samples */
    ERROR_INTERNAL = 5,
    ERROR_INTERRUPTED = 130, /* by Ctrl-C, and there is nothing to show for it */
};

#define NO_OFFSET UINT64_MAX

struct error {
    enum error_kind kind;
    uint64_t offset;   /* where in the file, or NO_OFFSET */
    char message[600]; /* "what: why", one line, control characters escaped, the offset included */
};

/* All return false, so that `return error_set(error, …)` reads well. `error` may be NULL. */
bool error_set(struct error *error, enum error_kind kind, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* "path: byte 1234: why" */
bool error_at(struct error *error, const char *path, uint64_t offset, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* "path: strerror(errno)" */
bool error_errno(struct error *error, const char *path);

/* ---- notes -------------------------------------------------------------------------------- */

/*
 * What was lost, missing or left out, counted by kind, with the first example. A room declares its kinds as
 * constants:
 *
 *     static const struct note_kind note_lost = {"lost-samples", "# sample{ was|s were} lost; record with a larger -m"};
 *
 * '#' stands for the count, `{one|more}` for what depends on it. `name` is the identity, and what run.json carries.
 */
struct note_kind {
    const char *name;
    const char *sentence;
    bool
        apart; /* the example is of this very count: those of several inputs are not added up, unless it is the same */
};
struct note {
    const struct note_kind *kind;
    uint64_t count;
    uint64_t where; /* of the example: an offset, a line, or 0; the smallest is kept */
    char *example;  /* or NULL */
    struct note_kind
        *own; /* the kind, where it was read from a file and belongs to this note; else NULL */
};
struct notes {
    struct note *items;
    size_t count;
    size_t capacity;
};
void notes_add(struct notes *notes, const struct note_kind *kind, uint64_t count, uint64_t where,
               const char *example, ...) PRINTF_LIKE(5, 6); /* example may be NULL */
void notes_merge(struct notes *into, const struct notes *from);
/* Add a note that was read from a file: its kind is copied, as notes_merge() copies it from note to note. `example` may be NULL. */
void notes_add_copied(struct notes *notes, const struct note_kind *kind, uint64_t count,
                      uint64_t where, const char *example);
void notes_sort(struct notes *notes);                   /* by name: call before showing */
void notes_drop(struct notes *notes, const char *name); /* the note of that kind, if there is one */
/* Such a sentence with its count, of anything: "# file{ was|s were} empty". */
void counted_print(struct buffer *buffer, const char *sentence, uint64_t count);
/* The sentence with its count and, after it, the example in brackets. */
void note_print(const struct note *note, struct buffer *buffer);
void notes_release(struct notes *notes);

/* ---- budgets ------------------------------------------------------------------------------ */

/*
 * What a parser may spend on one input: bytes of memory and steps of work, a fixed amount and so much for each byte of the input. What
 * people record stays far below it; what was made to cost quadratic time, or gigabytes, ends with an error at the byte where the budget was
 * exceeded, or with a note if a part of the result can be left out.
 *
 *     struct budget budget;
 *     budget_init(&budget, context_limits(context), input.length);
 *     ...
 *     if (!budget_take_steps(&budget, frame_count, offset))
 *         return budget_error(&budget, path, error);
 *
 * A step is a few nanoseconds of work: a node that is looked for, an entry that is read. Take them in batches, before the work is done.
 * Work that is linear in the input by itself need not be counted. Taking costs an atomic addition, and is safe from any thread. Once one
 * is exceeded, taking fails for ever.
 */
struct budget_limits { /* all zero: budget_defaults */
    uint64_t memory, memory_per_byte;
    uint64_t steps, steps_per_byte;
};
extern const struct budget_limits budget_defaults;

struct budget {
    struct budget_part {
        uint64_t taken; /* atomic */
        uint64_t limit;
    } memory, steps;
    uint64_t memory_per_byte, steps_per_byte;
    uint64_t
        offset; /* atomic: the smallest at which it was exceeded; NO_OFFSET: it was not, or nobody knows */
};
void budget_init(struct budget *budget, const struct budget_limits *limits, uint64_t input_size);
/* The input has that many bytes more than its file, being packed. In one thread. */
void budget_grow(struct budget *budget, uint64_t bytes);
bool budget_take(struct budget *budget, struct budget_part *part, uint64_t amount, uint64_t offset);
/* False: that is more than is left. `offset` is the place in the input for which it is taken, or NO_OFFSET. */
static inline bool budget_take_memory(struct budget *budget, uint64_t bytes, uint64_t offset) {
    return budget_take(budget, &budget->memory, bytes, offset);
}
static inline bool budget_take_steps(struct budget *budget, uint64_t steps, uint64_t offset) {
    return budget_take(budget, &budget->steps, steps, offset);
}
/* Whether either was exceeded: for a caller that could not stop at once. */
bool budget_exceeded(const struct budget *budget);
/* The same, of one that knows how far it has read. */
bool budget_exceeded_at(struct budget *budget, uint64_t offset);
/* Says so of the input at `path`. Returns false. */
bool budget_error(const struct budget *budget, const char *path, struct error *error);

/* ---- contexts ----------------------------------------------------------------------------- */

/*
 * What one open profile, or one run of a command, may use, and whom it tells how far it is. It is passed down in options,
 * or as an argument where there are none, and must outlive what it is passed to. NULL stands for one that is all zero, which has
 * no hook, is never cancelled, and has the default limits.
 */
struct context {
    /* Called from any thread. `what` is a literal, in which # may stand for `done`; a total of 0 is unknown. NULL: nobody wants to know. */
    void (*progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user; /* the hook's */
    /* Not 0: long loops stop with what they have; 2: a target that is to end gets no time for it. Signal handlers may set it. NULL: it can't be
       cancelled. */
    const atomic_int *cancelled;
    unsigned threads;            /* 0: as many as parallel_default() says */
    uint64_t spool_limit;        /* bytes in one temporary file; 0: 64 GiB */
    struct budget_limits limits; /* of what is parsed */
};
static inline void context_progress(const struct context *context, const char *what, uint64_t done,
                                    uint64_t total) {
    if (context && context->progress)
        context->progress(context->user, what, done, total);
}
/* How often it was asked to stop. Costs a load. */
static inline int context_cancelled(const struct context *context) {
    return context && context->cancelled
               ? atomic_load_explicit(context->cancelled, memory_order_relaxed)
               : 0;
}
unsigned context_threads(const struct context *context); /* at least 1 */
uint64_t context_spool_limit(const struct context *context);
const struct budget_limits *context_limits(const struct context *context);

/* ---- files read --------------------------------------------------------------------------- */

/*
 * A whole file, mapped. Pipes and "-" (standard input) are spooled to an unlinked temporary file, gzip, zstd and xz are
 * unpacked into one, both up to the context's limit. Only regular files and pipes are opened.
 *
 * A mapped file that shrinks would raise SIGBUS: the handler puts zero pages under the fault and marks
 * the file, so a reader sees zeroes, goes on, and asks file_changed() at the end.
 */
struct file {
    char *path; /* as given, for messages */
    const uint8_t *data;
    size_t size;
    bool spooled;
    struct file_guard *guard;
    uint64_t device, inode; /* of a file that others can see; else 0 */
    uint64_t written,
        touched; /* likewise: its mtime and ctime when it was opened, in nanoseconds */
};
bool file_open(struct file *file, const char *path, const struct context *context,
               struct error *error);
/* The same of an already open descriptor, which stays the caller's. */
bool file_open_descriptor(struct file *file, int descriptor, const char *path,
                          const struct context *context, struct error *error);
/* As file_open, but as it is: nothing is unpacked. */
bool file_open_raw(struct file *file, const char *path, const struct context *context,
                   struct error *error);
/* Maps a large file's pages in the background, ahead of one who reads it from the front and would pay a fault for every few; or lets go of
   them, when they have been read, as closing the file would. NULL where that is not worth it. End it before the file is closed. */
struct paging;
struct paging *file_page_in(const struct file *file);
struct paging *file_page_out(const struct file *file);
void paging_end(struct paging *paging); /* NULL is fine */
/* True, and *error set, if the file shrank while it was mapped. */
bool file_changed(const struct file *file, struct error *error);
/* Whether it is the same file, and nobody has written to it, since it was opened; and was not just before, when a clock's tick might hide that. */
bool file_is_settled(const struct file *file);
/* From here on a file that a library has mapped for itself reads as zeroes in this thread as well when it shrinks, and *changed is set
   atomically; until the next call, with another or NULL. Needs a file that was opened before. */
void file_watch(bool *changed);
void file_close(struct file *file);
/* The beginning of a small file, such as those of /proc and /sys, without the line's end. False: it can't be read. */
bool file_read_small(const char *path, char *text, size_t size);
/* proc.c. Read /proc/PID/NAME, at most about `most` bytes of it, in place of what `text` has. */
enum proc_reading {
    PROC_NONE, /* it can't be opened: the process is gone, or another user's */
    PROC_PART, /* it has more, or reading failed */
    PROC_WHOLE
};
enum proc_reading proc_read(pid_t pid, const char *name, size_t most, struct buffer *text);
/* One of the values of a field of /proc/PID/status, the first is 0; empty if there is none. */
enum { PROC_STATUS_MOST = 65536, PROC_MAPS_MOST = 64 << 20 };
#define PROC_LAST SIZE_MAX
struct text proc_field(struct text status, struct text name, size_t place);
/* Tgid, PPid, TracerPid; 0: it is gone. */
pid_t proc_status_id(pid_t pid, struct text name);
/* A new file in $TMPDIR or /tmp that has no name any more: gone when the descriptor is closed. -1: *error says why. */
int file_temporary(struct error *error);
/* Opens so many of them now, at most 64, for file_temporary() to hand out; beyond these it hands out memory where no file can be made. */
void file_temporaries_reserve(unsigned count);

/* What packed bytes may unpack to: gzip packs at most 1,032 to 1, and what is packed tighter is nobody's profile. */
extern const struct budget_limits unpacking_limits;

/* Bytes on their way into such a file, up to the context's limit; spool_map() then makes a `file` of them. Zero-initialised holds nothing. */
struct spool {
    int descriptor; /* + 1, so that 0 is none */
    uint64_t size;
    const char *path; /* of the input, for messages; the caller's */
    const struct context *context;
    struct budget *budget; /* what its bytes are taken off, or NULL; the caller's */
};
bool spool_open(struct spool *spool, const char *path, const struct context *context,
                struct error *error);
bool spool_write(struct spool *spool, const void *data, size_t size, struct error *error);
/* `path` is what messages call it. The spool is released, whether this succeeds or not. */
bool spool_map(struct spool *spool, const char *path, struct file *file, struct error *error);
void spool_release(struct spool *spool);

static inline struct text file_text(const struct file *file) {
    return (struct text){(const char *)file->data, file->size};
}

/* ---- files published ---------------------------------------------------------------------- */

/* Whether files of this user may be believed and written to: our own, root's, and under sudo those of its caller, who could be root anyway. */
bool user_is_trusted(uint32_t user);
/* Whether the file's or directory's mode lets others than those write: everybody, or a group that is not ours, root's or that of sudo's caller. */
struct stat;
bool others_write(const struct stat *status);
/* Whether only such users can rename and replace what is in an open directory: it is theirs, and others may not write to it, or it is sticky.
   Else *why says what is wrong. */
bool directory_is_safe(int directory, const char **why);
/* Create a file or directory that was not there, called `beginning` and six letters. Its descriptor, or -1; *name is free()d by the caller. */
int create_unique(int directory, const char *beginning, int mode, bool is_directory, char **name);

/*
 * A file that takes its name when it is whole. Until then it is a temporary beside it. The directory is opened once, and a link that has the
 * name is replaced, not followed: what another user does to the path meanwhile does no harm. A device or a pipe is written to as
 * it is. A recording is private (0600), and whoever is killed leaves NAME.unfinished-XXXXXX; another output has the mode that open() gives.
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
/* Whether publish_open() would do, for what is known before anything is written: before hours of reading. */
bool publish_check(const char *path, struct error *error);
/* `path` is relative to `directory`, or to the working directory with AT_FDCWD. */
bool publish_open(struct publish *p, int directory, const char *path, enum publish_kind kind,
                  struct error *error);
/* The end, one of: take the name; remove it; leave it under the temporary's name, which is returned as a path (free() it). */
bool publish_commit(struct publish *p, struct error *error);
void publish_discard(struct publish *p);
char *publish_leave(struct publish *p);
bool publish_would_replace(const struct publish *p); /* something has the name now */

/*
 * A buffered writer. To a path: published by out_commit() after every write and close succeeded; out_discard() removes it. To "-": standard
 * output. A reader that closes early (EPIPE) is no error: later writes do nothing, out_closed() says so.
 */
struct out {
    struct buffer pending;
    struct publish file; /* its path is NULL for standard output */
    int descriptor;
    int failed; /* errno of the first write that failed */
    bool closed;
    struct spool *spool;   /* where it goes instead, if set */
    struct buffer *memory; /* the same */
    bool
        guarded; /* it is a terminal and what is written may hold anything: but for LF and TAB, controls are shown as escapes */
};
bool out_check(const char *path, struct error *error); /* as publish_check(); "-" is fine */
bool out_open(struct out *out, const char *path, struct error *error);
bool out_open_at(struct out *out, int directory, const char *path,
                 struct error *error); /* a file, also if it is called "-" */
/* Into a spool, which stays the caller's: out_commit() leaves it open. */
void out_open_spool(struct out *out, struct spool *spool);
/* Into a buffer, which stays the caller's and holds all of it after out_commit(), which then cannot fail. */
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

/* Escapers, each for one kind of place. Bytes that are not valid UTF-8 come out as U+FFFD (xml, json), or are kept (csv). */
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
 * For people: what cannot be seen or turns text around is shown as \x1b, \u202e or \U000e0041, and bytes that are no UTF-8 as \xff. Every table, picture and page
 * shows names so.
 */
void buffer_add_shown(struct buffer *buffer, struct text t);
bool text_is_shown(struct text t); /* whether buffer_add_shown() would leave it as it is */
/* For a terminal that gets anything: the same, but line ends, tabs and broken UTF-8 stay. */
void buffer_add_guarded(struct buffer *buffer, struct text t);

/* Packs for gzip, without a name or a time in it: the same bytes always. */
struct gzip;
struct gzip *gzip_new(void);
void gzip_add(struct gzip *gzip, struct text plain,
              struct buffer *packed);                    /* appends what is ready */
void gzip_end(struct gzip *gzip, struct buffer *packed); /* the rest; frees it */

/* Writes what `make` adds to an empty buffer for each item 0 … items-1, in order, though up to `threads` threads make them; what is held
   is one item a thread. Items after one that failed, or that the output no longer takes, or when it is cancelled, are not made. */
typedef bool out_maker(void *job, unsigned worker, size_t item, struct buffer *buffer,
                       struct error *error);
bool out_in_order(struct out *out, const struct context *context, unsigned threads, size_t items,
                  out_maker *make, void *job, struct error *error);

/* ---- threads ------------------------------------------------------------------------------ */

/* Calls run(context, worker, item) once for each item 0 … items-1, from `threads` threads at most (the caller's is one);
   `worker` is 0 … threads-1. Items are handed out in order. Returns when all are done. */
void parallel_run(unsigned threads, size_t items,
                  void (*run)(void *context, unsigned worker, size_t item), void *context);
unsigned parallel_default(void); /* the CPUs this process may use */

/* A lock that is held for microseconds: who finds it taken looks again for a while, because falling asleep and being woken takes
   longer than that. */
void lock_init_brief(pthread_mutex_t *lock);

#endif
