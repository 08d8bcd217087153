/*
 * Private to the room: how inlined functions and lines are read.
 *
 * An object's debug information is read through handles, a libdw of its own each, so that several threads can read one huge file: libdw has
 * no locks. units (inline_units.c) knows which compilation unit holds an address; a unit that is hit gets a table of intervals
 * (inline_table.c), built once and read without a lock; the names and call sites of its entries (inline_names.c) are
 * looked up when one is first shown.
 */
#ifndef WICK_OBJECT_INLINE_H
#define WICK_OBJECT_INLINE_H

#include "object/dwarf.h"
#include "object/internal.h"

/* One view of the debug information, used by one thread at a time. */
struct dwarf_handle {
    struct dwarf_handle *next; /* in the pool */
    struct dwarf_source main;
    struct dwarf_source alternate; /* dwz: what several files share */
};

/* A function, or one inlined into its parent. Fields after `named` are written once, under the unit's lock, before it is set. */
struct inline_entry {
    Dwarf_Off offset; /* of its DIE, in the unit's own file (a .dwo has offsets of its own) */
    uint64_t start;   /* of its first range */
    uint32_t parent;  /* entry it is inlined into, or NO_ENTRY */
    bool is_linkage;
    bool named;  /* atomic */
    bool placed; /* atomic: call_file, call_line, call_column are known */
    struct text name;
    struct text call_file;
    uint32_t call_line;
    uint32_t call_column;
};
#define NO_ENTRY UINT32_MAX

/* starts[i] … starts[i + 1] is code of entries[owners[i]], or of nobody. */
struct inline_table {
    uint64_t *starts;
    uint32_t *owners;
    size_t segment_count;
    struct inline_entry *entries;
    size_t entry_count;
    bool is_cached; /* starts and owners are in a file of the disk cache */
};

/* Whether a unit's functions are in a file of their own. */
enum split { SPLIT_UNKNOWN, SPLIT_NONE, SPLIT_FOUND, SPLIT_MISSING };

struct unit {
    Dwarf_Off offset; /* of the unit's DIE */
    pthread_mutex_t lock;
    struct inline_table *table;        /* atomic; NULL: not built yet */
    struct arena arena;                /* names; under the lock */
    uint8_t split;                     /* enum split; under the lock */
    const struct cached_table *cached; /* what the disk cache has of it, or NULL */
};

struct unit_range {
    uint64_t start;
    uint64_t end;
    uint64_t reach; /* the greatest end up to here: how far back a search must go */
    uint32_t unit;
    uint32_t zero; /* the cache has ranges as they are: no byte of them may be undefined */
};

struct units {
    struct objects *objects;
    struct object *object;
    const struct elf_image *image; /* the file with the debug information; NULL: there is none */
    const struct elf_image *code;  /* the file with the code */
    struct elf_image *alternate;   /* the dwz file */
    bool alternate_missing;
    bool by_descriptor;      /* libdw has to know where the file is */
    char *real_path;         /* where that is, without links; or NULL */
    bool has_package;        /* a .dwp is there */
    bool splits_changed;     /* atomic: a .dwo or .dwp shrank while libdw read it */
    uint64_t units_left_out; /* atomic: units that were hit and cost too much to read */
    uint64_t costly_names;   /* atomic: left as they were, as demangling would cost too much */
    uint64_t splits_missing; /* atomic: units that were hit whose .dwo was not found */
    pthread_mutex_t pool_lock;
    pthread_cond_t pool_freed;
    struct dwarf_handle *pool;
    unsigned handle_count;
    unsigned handle_limit;
    struct unit *items;
    size_t count;
    VECTOR(struct unit_range) ranges; /* by start */
    struct file cached;               /* of the disk cache, if it had something of this object */
    struct text cached_names;
    bool has_news; /* atomic: something was read that the cache does not have */
};

/* inline_handle.c: NULL when the debug information cannot be read at all. */
struct dwarf_handle *handle_take(struct units *units);
void handle_give(struct units *units, struct dwarf_handle *handle);
/* Closes it, instead of giving it back. */
void handle_drop(struct units *units, struct dwarf_handle *handle);
void handles_release(struct units *units);
/* Whether a file that is read through a descriptor shrank. With nobody asking. */
bool handles_changed(const struct units *units);

/* alternate.c: opens the file that the image's .gnu_debugaltlink names; NULL: there is none, and id->size is 0 if none is named. With the object's
   lock held. */
struct elf_image *alternate_open(struct objects *objects, struct object *object,
                                 const struct elf_image *image, struct build_id *id);

/* inline_units.c */
void units_index(struct units *units, struct dwarf_handle *handle);

/* inline_split.c: how a file with that skeleton has to be opened; before the second handle is. */
void units_choose_way(struct units *units, Dwarf_Die *skeleton);
/* The unit that holds a skeleton's functions; split->addr is NULL where there is none. With the unit's lock held. */
void unit_split(struct units *units, struct unit *unit, Dwarf_Die *unit_die, Dwarf_Die *split);

/* inline_dies.c: the text of an attribute, or NULL: libdw does not look whether one that stands in the DIE itself ends within the section. */
const char *attribute_string(Dwarf_Attribute *attribute);
/* Nor does it look whether a section of strings ends with one. */
bool strings_end(Elf *elf);

/* What DIEs of one abbreviation have in common. */
struct die_shape {
    Dwarf_Abbrev *abbreviation; /* NULL: none was met yet */
    uint32_t first_step, step_count;
    uint32_t tag;
    bool has_children;
    bool has_code; /* addresses, or ranges of them */
};

/* A unit's DIEs, one after the other, children behind their parents. */
struct dies {
    Dwarf_CU *cu;
    const uint8_t *unit, *end; /* the unit's first byte, and behind its last */
    const uint8_t *at;         /* the next DIE; a sibling may be put here */
    Dwarf_Half version;
    uint8_t address_size, offset_size;
    VECTOR(struct die_shape) shapes; /* by code */
    VECTOR(struct die_step) steps;
    const struct die_shape *shape; /* of the DIE; NULL: the end of the innermost list of children */
    const uint8_t *sibling;        /* of the DIE, where it says so; else NULL */
    Dwarf_Die die;
    bool is_strange; /* and libdw is to be asked instead */
};

/* Before the first child of a unit's DIE; false where it has none, or it is not found. */
bool dies_begin(struct dies *dies, Dwarf_Die *top, uint64_t unit_size);
/* False: there is no further one, or it is strange. */
bool dies_next(struct dies *dies);
void dies_release(struct dies *dies);

/* inline_table.c: the table of a unit, built if need be; with the unit's lock held. */
struct inline_table *unit_table(struct units *units, struct unit *unit,
                                struct dwarf_handle *handle);
void table_free(struct inline_table *table);
/* The innermost entry at the address, or NO_ENTRY. */
uint32_t table_lookup(const struct inline_table *table, uint64_t address);
/* The DIE of a unit, and the one that holds its functions: the split unit's when there is one. */
bool unit_dies(struct units *units, struct unit *unit, struct dwarf_handle *handle,
               Dwarf_Die *unit_die, Dwarf_Die *code_die);

/* inline_cached.c: fills the index of units, and remembers which tables there are; false: the cache has nothing. */
bool cached_units_load(struct units *units);
/* The table of a unit that the cache has, as unit_table() would give it, with the names that were asked for before. With the unit's lock held. */
struct inline_table *cached_table(const struct units *units, struct unit *unit);
/* For a fuzzer: the parts of the two above and of cached_units_store(). */
bool units_unpack(struct units *units, struct text payload);
bool units_pack(struct units *units, struct buffer *payload);

/* inline_names.c: with the unit's lock held. */
void entry_find_name(struct units *units, struct unit *unit, struct dwarf_handle *handle,
                     const struct inline_entry *entry, struct buffer *name, bool *is_linkage,
                     bool *costly);
void entry_place(struct units *units, struct unit *unit, struct dwarf_handle *handle,
                 struct inline_entry *entry);
/* The line of an address. */
void unit_line(struct units *units, struct unit *unit, struct dwarf_handle *handle,
               uint64_t address, struct inline_frame *frame);

#endif
