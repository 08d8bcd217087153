/*
 * base: memory, text, errors, files and threads for all rooms.
 *
 * It has allocation, text, vectors, hash indexes, interned strings, errors, notes, contexts, reading and
 * publishing files, and threads. Nothing here knows about profiles.
 *
 * Ownership, for the whole library: the caller owns what it passes in, and what it gets back only
 * from functions called _new, _open or _dup. `_init` initializes a struct in place and `_release` frees
 * what it holds; `_free` undoes `_new`. Data that lives as long as a profile comes from an arena.
 *
 * The library never prints and never exits. A function that fails returns false or NULL and fills a
 * `struct error`; anything else worth reporting becomes a note. Only running out of memory
 * ends the process, through the hook below.
 *
 * There are no mutable globals here or in the rooms below, so several profiles can be read by several threads at
 * once: the limits and the progress callback of a call are in its context. Five things belong to the process by
 * nature and are safe to use from any thread: the out-of-memory hook, the SIGBUS handler with its table of mapped
 * files (guard.c), the table of unpublished files that a signal handler removes (out.c), the unnamed files that were
 * opened in advance (temporary.c), and the secret of hashes (memory.c).
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
/* For "%.*s", whose length is an int: longer texts are truncated. */
#define TEXT_ARGS(t) (int)((t).length < TEXT_PRINTED ? (t).length : TEXT_PRINTED), (t).data
enum { TEXT_PRINTED = 1 << 28 };

static inline struct text text_of(const char *string) {
    return (struct text){string, string ? strlen(string) : 0};
}

static inline bool text_equal(struct text a, struct text b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* Compare bytewise; a prefix sorts before longer texts. */
int text_compare(struct text a, struct text b);
bool text_starts(struct text t, struct text prefix);
bool text_ends(struct text t, struct text suffix);
/* Return the index of the first or last `byte`, or SIZE_MAX. */
size_t text_find(struct text t, char byte);
size_t text_find_last(struct text t, char byte);
/* Return the index of the first `needle`, or SIZE_MAX. */
size_t text_search(struct text t, struct text needle);
/* Return true if `pattern` matches all of `t`: `*` matches any bytes, `?` one byte, `[a-z]` one of these, `[!a-z]`
   one not of these; `\` quotes the next byte. Only the last `*` is retried, so no pattern takes exponential time. */
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
/* Remove the first line and its line end from `rest`, and return it without the line end. */
static inline struct text text_take_line(struct text *rest) {
    size_t end = text_find(*rest, '\n');
    struct text line = end == SIZE_MAX ? *rest : text_upto(*rest, end);
    *rest = text_from(*rest, end == SIZE_MAX ? rest->length : end + 1);
    return line;
}
/* Parse all of `t` as a number, decimal or (text_hex_to_u64) hexadecimal without a prefix; return false on anything
   else, or overflow. */
bool text_to_u64(struct text t, uint64_t *value);
/* Parse all of `t` as a decimal number in C's syntax, with or without a fraction. */
bool text_to_double(struct text t, double *value);
/* Return `value` without its fraction, clamped to 64 bits. */
uint64_t double_to_u64(double value);
bool text_hex_to_u64(struct text t, uint64_t *value);

/* ---- numbers from files ------------------------------------------------------------------- */

/* Return false if the result does not fit; *sum is then unchanged. */
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

/* Load from unaligned addresses. All formats that wick reads are little-endian, and so must be the host. */
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

/* These never return NULL: if memory runs out (or a size overflows), the hook is called, which must not return. */
void *memory_alloc(size_t size);
void *memory_zero(size_t count, size_t size);
void *memory_resize(void *old, size_t count, size_t size);
/* Allocate zeroed memory like memory_zero(), for tables that are read before they are written: fresh pages would be
   mapped twice, once for reading and once for writing, and the second time interrupts every other thread. free() it. */
void *memory_table(size_t count, size_t size);
char *memory_copy(const void *data, size_t size); /* with a NUL after it; free() it */
/* Format like printf() into memory to free(); set *size to the length unless `size` is NULL. */
char *memory_print(size_t *size, const char *format, va_list list) PRINTF_LIKE(2, 0);
/* The default hook removes unpublished files, prints one line to standard error and calls _exit(5). */
void memory_set_hook(void (*out_of_memory)(void));

/* An arena: many small allocations that are freed together. Zero-initialised is ready to use. Not thread-safe. */
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

/* Padding, as the last field of structs in an array with one item per thread: data that different threads write must
   not share a cache line, nor the pair of lines that processors fetch together. */
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
/* Append a code point, which must be below 0x110000, as UTF-8. */
void buffer_add_utf8(struct buffer *buffer, uint32_t point);
void buffer_add_u64(struct buffer *buffer, uint64_t value); /* in decimal */
void buffer_add_hex(struct buffer *buffer, uint64_t value); /* lower case, no prefix */
/* Seven bits a byte, lowest first; all but the last have the highest bit set. */
static inline void buffer_add_varint(struct buffer *buffer, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        buffer_add_char(buffer, (char)(value | 0x80));
    buffer_add_char(buffer, (char)value);
}
/* Append the bytes in the machine's byte order. */
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

/* Return the indexes of `keys`, which are all less than `key_count`, sorted stably by key; free() it. Those of key k
   end at ends[k], unless `ends` is NULL. Costs two passes over the keys, and eight bytes for each possible key. */
uint32_t *counting_sort(const uint32_t *keys, size_t count, size_t key_count, size_t *ends);
/* The same for keys of any size. */
uint32_t *radix_sort(const uint64_t *keys, size_t count);

/* ---- searching ---- */

/* Return the first `place` from `low` up to `high` for which `is_before`, an expression of `place`, is false; `high`
   if it is true for all. It must stay false after that place. Costs log2(high - low) evaluations. */
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
 * Hashes for tables in memory. They are keyed with a per-process secret, so that no file can be crafted whose
 * names or addresses all fall into one slot. Output must not depend on them: use digests there.
 */
extern uint64_t hash_secret[2] __attribute__((visibility("hidden")));
uint64_t hash_bytes(const void *data, size_t size); /* XXH3 */
static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)(a ^ hash_secret[0]) * (b ^ hash_secret[1]);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
/* 128 bits, for callers that treat equal hashes as equal items: among 2^40 items a collision occurs once in 2^48
   runs, whatever a file contains. */
struct hash_wide {
    uint64_t low, high;
};
struct hash_wide hash_wide(const void *data, size_t size); /* XXH3 */
/* For tests: set the secret. Only while no index is in use. */
void hash_set_seed(uint64_t seed);

/* Digests are the same in every process, for output: colours, ids in a file. */
uint64_t digest_bytes(const void *data, size_t size); /* XXH3 */
static inline uint64_t digest_mix(uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)(a ^ 0x9E3779B97F4A7C15ull) * (b ^ 0xD6E8FEB86659FD93ull);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/*
 * An index finds 32-bit ids (never 0) by the hash of their items; the items are in an array of the
 * caller that the id indexes. Zero-initialised is ready to use.
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
/* Add an id without checking for an equal item. Only the upper 32 bits of the hash are used, for the slot and
   as tag, so that growing needs only the slots. */
void index_add(struct index *index, uint64_t hash, uint32_t id);
void index_reserve(struct index *index, size_t count);
void index_release(struct index *index);

/* ---- interned strings --------------------------------------------------------------------- */

/* A set of distinct byte strings. Id 0 means none and reads as empty text; the empty string has an id of its own.
   Adding is not thread-safe; reading is safe while no thread adds. Texts never move. */
struct strings;
struct strings *strings_new(void);
/* Take a reference; release it with strings_free(). */
struct strings *strings_share(struct strings *strings);
void strings_free(struct strings *strings);
uint32_t strings_add(struct strings *strings, struct text t);
uint32_t strings_find(const struct strings *strings, struct text t); /* 0 if it was never added */
struct text strings_get(const struct strings *strings, uint32_t id);
uint32_t strings_count(const struct strings *strings);  /* ids are 1 … count */
uint64_t strings_memory(const struct strings *strings); /* approximate memory use, in bytes */

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
 * '#' stands for the count, `{one|more}` for the singular and the plural. `name` is the identity, also in run.json.
 */
struct note_kind {
    const char *name;
    const char *sentence;
    bool
        apart; /* the example belongs to this exact count: counts of several inputs are added only if their examples are equal */
};
struct note {
    const struct note_kind *kind;
    uint64_t count;
    uint64_t where; /* where the example is: an offset, a line, or 0; the smallest is kept */
    char *example;  /* or NULL */
    uint8_t views;  /* a bit for each view of the input that it applies to; 0: to all */
    struct note_kind
        *own; /* the kind, if it was read from a file and this note owns it; else NULL */
};
struct notes {
    struct note *items;
    size_t count;
    size_t capacity;
};
void notes_add(struct notes *notes, const struct note_kind *kind, uint64_t count, uint64_t where,
               const char *example, ...) PRINTF_LIKE(5, 6); /* `example` may be NULL */
void notes_merge(struct notes *into, const struct notes *from);
/* Add a note without an example that applies only to `views`. */
void notes_add_for(struct notes *notes, uint8_t views, const struct note_kind *kind,
                   uint64_t count);
/* Merge notes that apply to all views as notes that apply only to `views`. */
void notes_merge_for(struct notes *into, const struct notes *from, uint8_t views);
/*
 * Keep only the notes that apply to the view with this bit, and mark them as applying to all. A kind that has no such note keeps those that
 * apply to the views in `otherwise`.
 */
void notes_choose(struct notes *notes, uint8_t view, uint8_t otherwise);
/* Add a note that was read from a file. The kind is copied, by notes_merge() too. `example` may be NULL. */
void notes_add_copied(struct notes *notes, const struct note_kind *kind, uint64_t count,
                      uint64_t where, const char *example);
void notes_sort(struct notes *notes);                   /* by name, before they are shown */
void notes_drop(struct notes *notes, const char *name); /* drop the note of that kind, if any */
/* Print such a sentence with any count: "# file{ was|s were} empty". */
void counted_print(struct buffer *buffer, const char *sentence, uint64_t count);
/* Print the sentence with its count, then the example in brackets. */
void note_print(const struct note *note, struct buffer *buffer);
void notes_release(struct notes *notes);

/* ---- budgets ------------------------------------------------------------------------------ */

/*
 * What a parser may spend on one input: bytes of memory and steps of work, each a fixed amount plus an amount per
 * byte of input. Real recordings stay far below it. An input that was crafted to take quadratic time, or gigabytes,
 * fails with an error at the byte where the budget was exceeded, or with a note if part of the result can be dropped.
 *
 *     struct budget budget;
 *     budget_init(&budget, context_limits(context), input.length);
 *     ...
 *     if (!budget_take_steps(&budget, frame_count, offset))
 *         return budget_error(&budget, path, error);
 *
 * A step is a few nanoseconds of work: looking up a node, reading an entry. Take steps in batches, before doing the
 * work. Work that is linear in the input need not be counted. Taking costs an atomic addition and is safe from any
 * thread. Once a limit is exceeded, taking from it always fails.
 */
struct budget_limits { /* all zero: use budget_defaults */
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
        offset; /* atomic: the smallest offset at which it was exceeded; NO_OFFSET: not exceeded, or offset unknown */
};
void budget_init(struct budget *budget, const struct budget_limits *limits, uint64_t input_size);
/* Add the decompressed size of the input to the budget. Not thread-safe. */
void budget_grow(struct budget *budget, uint64_t bytes);
bool budget_take(struct budget *budget, struct budget_part *part, uint64_t amount, uint64_t offset);
/* Return false if that exceeds the budget. `offset` is the place in the input that needs it, or NO_OFFSET. */
static inline bool budget_take_memory(struct budget *budget, uint64_t bytes, uint64_t offset) {
    return budget_take(budget, &budget->memory, bytes, offset);
}
static inline bool budget_take_steps(struct budget *budget, uint64_t steps, uint64_t offset) {
    return budget_take(budget, &budget->steps, steps, offset);
}
/* Return true if either limit was exceeded: for callers that could not stop at once. */
bool budget_exceeded(const struct budget *budget);
/* The same for a caller that knows how far it has read. */
bool budget_exceeded_at(struct budget *budget, uint64_t offset);
/* Set an error that says so for the input at `path`. Return false. */
bool budget_error(const struct budget *budget, const char *path, struct error *error);

/* ---- contexts ----------------------------------------------------------------------------- */

/*
 * The limits of one open profile or one run of a command, and its progress callback. It is passed down in options, or
 * as an argument where there are none, and must outlive everything it is passed to. NULL stands for one that is all
 * zero: no callback, never cancelled, default limits.
 */
struct context {
    /* Called from any thread. `what` is a literal in which # may stand for `done`; a total of 0 is unknown. May be
       NULL. */
    void (*progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user; /* passed to the callback */
    /* If not 0, long loops stop with what they have; if 2, a target that must end gets no time to do so. Signal
       handlers may set it. NULL: the call can't be cancelled. */
    const atomic_int *cancelled;
    unsigned threads;            /* 0: parallel_default() */
    uint64_t spool_limit;        /* bytes in one temporary file; 0: 64 GiB */
    struct budget_limits limits; /* for what is parsed */
};
static inline void context_progress(const struct context *context, const char *what, uint64_t done,
                                    uint64_t total) {
    if (context && context->progress)
        context->progress(context->user, what, done, total);
}
/* Return how often a stop was requested. Costs a load. */
static inline int context_cancelled(const struct context *context) {
    return context && context->cancelled
               ? atomic_load_explicit(context->cancelled, memory_order_relaxed)
               : 0;
}
unsigned context_threads(const struct context *context); /* at least 1 */
uint64_t context_spool_limit(const struct context *context);
const struct budget_limits *context_limits(const struct context *context);

/* ---- threads ------------------------------------------------------------------------------ */

/* Call run(context, worker, item) once for each item 0 … items-1, from at most `threads` threads (including the
   caller's); `worker` is 0 … threads-1. Items are handed out in order. Returns when all are done. */
void parallel_run(unsigned threads, size_t items,
                  void (*run)(void *context, unsigned worker, size_t item), void *context);
unsigned parallel_default(void); /* the CPUs this process may use */

/* Initialize a lock that is held for microseconds: a thread that finds it taken spins for a while, because sleeping
   and waking takes longer. */
void lock_init_brief(pthread_mutex_t *lock);

#include "base/file.h" /* files: needs everything above */

#endif
