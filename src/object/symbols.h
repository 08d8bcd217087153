/*
 * table: the symbols of one object, ready to be asked.
 *
 * A loader adds entries in any order, seals the table, and from then on it is only read. An entry is 24 bytes and its name stays
 * where it was read from (a string section, the text of kallsyms or of a perf map) until somebody asks for it: loading
 * a million symbols allocates one array and demangles nothing. A name that was asked for is copied, once.
 *
 * Symbols may overlap, and there are two answers to which one an address belongs to. Ours: the one that says most about it,
 * worked out once, when sealing, into disjoint pieces. perf's: the first one met on the way down its
 * red-black tree, whatever shape that has; sealing for perf replays the tree where, and only where, ranges overlap.
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
    ENTRY_CODE = 4,    /* is known to be a function */
    ENTRY_MODULE = 8,  /* kallsyms: a module's */
    ENTRY_OLD = 16,    /* a version of the name that new programs are not linked to */
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

/* Where names come from. A name ends at `terminator`, at a tab if `tabs`, or where the source ends. */
struct symbols_source {
    struct text bytes;
    char terminator;
    bool tabs;
};

struct symbols {
    VECTOR(struct entry) entries; /* by start once sealed */
    struct symbols_source sources[SYMBOLS_SOURCES];
    const struct objects_options *options;
    bool keep_names; /* as they are, not demangled */
    /* A lookup is as perf does it: half-open, or exactly the start of an empty range. */
    bool perf_order;

    /* At most one of these two, where ranges overlap. */
    VECTOR(struct piece) pieces;
    struct symbols_tree tree;

    _Atomic(const struct text *) *resolved; /* by entry; NULL until asked for */
    pthread_mutex_t
        lock; /* of the arena: the object's own is held for long while debug information is unpacked */
    struct arena arena;    /* of resolved names */
    size_t name_most;      /* bytes of a name that are shown; 0: not known yet; under the lock */
    uint64_t costly_names; /* resolved ones that were left as they were; under the lock */
    struct buffer made;    /* names that no file has */
    struct budget budget;  /* of a list of symbols: what reading it may take */
    struct file
        cached; /* of the disk cache: entries, pieces and names are there and not this table's to free */
};

void symbols_init(struct symbols *symbols, const struct objects_options *options);
void symbols_release(struct symbols *symbols);

static inline void symbols_add(struct symbols *symbols, const struct entry *entry) {
    vector_push(&symbols->entries, *entry);
}

/* Remembers a name that no file has, and gives its place; it becomes source MADE_SOURCE when the table is sealed. */
enum { MADE_SOURCE = SYMBOLS_SOURCES - 1 };
uint32_t symbols_make_name(struct symbols *symbols, struct text name);

/* ---- sealing: one of these, once ---- */

/* One entry for each start, the innermost symbol at each address; what has no size reaches to its neighbour, and says nothing
   inside a symbol that has one. */
void symbols_seal(struct symbols *symbols);
/* Entries in the order in which they were written; what was written last holds. */
void symbols_seal_newest(struct symbols *symbols);

/*
 * As perf does it: entries are added in rounds. Each round sorts what is there, gives the empty ones an end, and leaves one for each
 * start. What is added after the last round (PLT names, or all of a perf map) stays as it is.
 */
struct perf_rounds {
    struct symbols *symbols;
    VECTOR(struct entry) all; /* in the order of insertion */
    VECTOR(uint32_t) live; /* numbers in `all`, by start; those from `sorted` on are not in yet */
    VECTOR(uint32_t) log;  /* what happened: a number was inserted, or, with LOG_ERASED, erased */
    size_t sorted;
};
#define LOG_ERASED 0x80000000u
void perf_rounds_init(struct perf_rounds *rounds, struct symbols *symbols);
void perf_rounds_add(struct perf_rounds *rounds, const struct entry *entry);
void perf_rounds_end_round(struct perf_rounds *rounds, bool kallsyms);
void perf_rounds_seal(struct perf_rounds *rounds); /* fills the table, releases the rounds */

/* What the ones above end with: the table has its entries, and is sealed. */
void symbols_finish(struct symbols *symbols);

/* ---- asking ---- */

uint32_t symbols_find(const struct symbols *symbols, uint64_t address); /* or SYMBOLS_NONE */
/* The bytes of a name as they are in the source. */
struct text symbols_raw_name(const struct symbols *symbols, const struct entry *entry);
/* What is shown: demangled, `@plt`. Appended to `buffer`. *costly, unless it is NULL: it was not demangled because that costs too much. */
void symbols_print_name(const struct symbols *symbols, const struct entry *entry,
                        struct buffer *buffer, bool *costly);

/* ---- for sealing ---- */

/* The better of two symbols at one address: > 0 the first, < 0 the second. On 0 the first in the file is kept, as perf does. */
int symbols_compare(const struct symbols *symbols, const struct entry *a, const struct entry *b);

/* Stable. Linear: radix, and nothing at all for what is in order already. */
void entries_sort(struct entry *entries, size_t count);
/* Replays perf's insertions and erasures. position[number] is where it stands in the sealed table. */
void symbols_tree_replay(struct symbols_tree *tree, const struct perf_rounds *rounds,
                         const uint32_t *position);
bool symbols_overlaps(const struct symbols *symbols);

/* What an entry of a list of symbols takes, once it is sorted. False: the list's budget is exceeded, and the rest of the list is left out. */
bool list_may_grow(struct symbols *symbols, size_t offset);

#endif
