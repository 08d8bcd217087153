/*
 * symbols: the symbol table of one object.
 *
 * A loader adds entries in any order and seals the table; from then on it is only read. An entry takes 24 bytes. Its name stays in its
 * source (a string section, the text of kallsyms or of a perf map) until it is requested: loading a million symbols allocates one array and
 * demangles nothing. A requested name is copied once.
 *
 * If symbols overlap, there are two ways to decide which one an address belongs to. wick takes the one that says most about the address;
 * sealing computes disjoint pieces for this. perf takes the first one on the way down its red-black tree, whatever the tree's shape; sealing
 * for perf replays the tree, but only if ranges overlap.
 */
#ifndef WICK_OBJECT_SYMBOLS_H
#define WICK_OBJECT_SYMBOLS_H

#include "object/object.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SYMBOLS_SOURCES = 4, SHORT_NAME = 1024 };
#define SYMBOLS_NONE UINT32_MAX

enum entry_flag {
    ENTRY_PLT = 1,     /* show as name@plt */
    ENTRY_UNSIZED = 2, /* had no size; `end` is the farthest it can reach */
    ENTRY_CODE = 4,    /* known to be a function */
    ENTRY_MODULE = 8,  /* kallsyms: belongs to a module */
    ENTRY_OLD = 16,    /* a version that new programs are not linked to */
};

struct entry {
    uint64_t start;
    uint64_t end;
    uint32_t name;  /* where it begins in its source */
    uint8_t source; /* which of the table's sources */
    uint8_t weak;
    uint8_t global;
    uint8_t flags;
};

struct piece {
    uint64_t start; /* up to the next piece's */
    uint32_t entry; /* or SYMBOLS_NONE */
};

/* perf's tree: children by entry number. */
struct symbols_tree {
    uint32_t *left;
    uint32_t *right;
    uint32_t root;
};

/* Where names come from. A name ends at `terminator`, at a tab if `tabs`, or at the end of the source. */
struct symbols_source {
    struct text bytes;
    char terminator;
    bool tabs;
};

struct symbols {
    VECTOR(struct entry) entries; /* by start once sealed */
    struct symbols_source sources[SYMBOLS_SOURCES];
    const struct objects_options *options;
    bool keep_names; /* do not demangle */
    /* Look up as perf does: ranges are half-open, or exactly the start if empty. */
    bool perf_order;

    /* If ranges overlap, one of these two. */
    VECTOR(struct piece) pieces;
    struct symbols_tree tree;

    _Atomic(const struct text *) *resolved; /* by entry; NULL until requested */
    pthread_mutex_t
        lock; /* of the arena: the object's own is held for long while debug information is unpacked */
    struct arena arena;    /* of resolved names */
    struct symbols *names; /* whose lock, arena and costly_names are used instead; NULL: its own */
    size_t name_most;      /* length limit of a name in bytes; 0: not known yet; under the lock */
    uint64_t costly_names; /* resolved names that were not demangled; under the lock */
    struct buffer made;    /* names that are in no file */
    struct budget budget;  /* for reading a list of symbols */
    struct file
        cached; /* a file of the disk cache; if there is one, it owns the entries, pieces and names */
};

void symbols_init(struct symbols *symbols, const struct objects_options *options);
void symbols_release(struct symbols *symbols);

static inline void symbols_add(struct symbols *symbols, const struct entry *entry) {
    vector_push(&symbols->entries, *entry);
}

/* Store a name that is in no file, and return its place in the source MADE_SOURCE, which sealing sets. */
enum { MADE_SOURCE = SYMBOLS_SOURCES - 1 };
uint32_t symbols_make_name(struct symbols *symbols, struct text name);

/* ---- sealing: one of these, once ---- */

/* Keep one entry for each start; an address belongs to the innermost symbol. A symbol without a size ends at the next one, and is ignored
   inside a symbol that has a size. */
void symbols_seal(struct symbols *symbols);
/* Entries are in the order in which they were written; where they overlap, the last one wins. */
void symbols_seal_newest(struct symbols *symbols);

/*
 * Seal as perf does: entries are added in rounds. The end of a round sorts the entries so far, gives the empty ones an end, and keeps one for
 * each start. Entries added after the last round (PLT names, or all of a perf map) stay as they are.
 */
struct perf_rounds {
    struct symbols *symbols;
    VECTOR(struct entry) all; /* in the order of insertion */
    VECTOR(uint32_t) live; /* numbers in `all`, by start; those from `sorted` on are not in yet */
    VECTOR(uint32_t) log;  /* history: numbers that were inserted or, with LOG_ERASED, erased */
    size_t sorted;
};
#define LOG_ERASED 0x80000000u
void perf_rounds_init(struct perf_rounds *rounds, struct symbols *symbols);
void perf_rounds_add(struct perf_rounds *rounds, const struct entry *entry);
void perf_rounds_end_round(struct perf_rounds *rounds, bool kallsyms);
void perf_rounds_seal(struct perf_rounds *rounds); /* fills the table, releases the rounds */

/* The last step of the functions above: seal a table that has its entries. */
void symbols_finish(struct symbols *symbols);

/* ---- lookups ---- */

uint32_t symbols_find(const struct symbols *symbols, uint64_t address); /* or SYMBOLS_NONE */
/* Return the bytes of a name as they are in the source. */
struct text symbols_raw_name(const struct symbols *symbols, const struct entry *entry);
/* Append the name to show: demangled, with `@plt`. Set *costly, unless it is NULL, if it was not demangled because that would cost too much. */
void symbols_print_name(const struct symbols *symbols, const struct entry *entry,
                        struct buffer *buffer, bool *costly);

/* ---- for sealing ---- */

/* Compare two symbols at one address: > 0 if the first is better, < 0 if the second is. On 0 the first in the file is kept, as in perf. */
int symbols_compare(const struct symbols *symbols, const struct entry *a, const struct entry *b);

/* Sort by start, stably and in linear time (radix); does nothing if they are in order already. */
void entries_sort(struct entry *entries, size_t count);
/* Replay perf's insertions and erasures. position[number] is the entry's index in the sealed table. */
void symbols_tree_replay(struct symbols_tree *tree, const struct perf_rounds *rounds,
                         const uint32_t *position);
bool symbols_overlaps(const struct symbols *symbols);

/* Charge the list's budget for one more entry. Return false if it is exceeded; then the rest of the list is left out. */
bool list_may_grow(struct symbols *symbols, size_t offset);

#endif
