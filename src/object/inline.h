/*
 * Private to the room: how inlined functions and lines are read.
 *
 * An object's debug information is read through handles. Each has a libdw of its own, so that several threads can read one huge file: libdw
 * has no locks. `units` (inline_units.c) finds the compilation unit that contains an address. A unit that is hit gets a table of intervals
 * (inline_table.c), built once and read without a lock. The name and call site of an entry (inline_names.c) are looked up when it is first
 * shown.
 */
#ifndef WICK_OBJECT_INLINE_H
#define WICK_OBJECT_INLINE_H

#include "object/dwarf.h"
#include "object/internal.h"

/* One view of the debug information, used by one thread at a time. */
struct dwarf_handle {
    struct dwarf_handle *next; /* in the pool */
    struct dwarf_source main;
    struct dwarf_source alternate; /* dwz: debug information that several files share */
};

/* A function, or one inlined into its parent. Fields after `named` are written once, under the unit's lock, before `named` is set. */
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

/* starts[i] … starts[i + 1] is code of entries[owners[i]], or of no entry. */
struct inline_table {
    uint64_t *starts;
    uint32_t *owners;
    size_t segment_count;
    struct inline_entry *entries;
    size_t entry_count;
    bool is_cached; /* starts and owners are in a file of the disk cache */
};

/* The line of a requested address; line 0: it has none. */
struct unit_place {
    uint64_t address;
    struct text file;
    uint32_t line;
    uint32_t column;
};
struct unit_places {
    VECTOR(struct unit_place) items;
    struct index index; /* numbers are indexes into `items`, + 1 */
    bool has_cached;    /* includes those of the disk cache */
};

/* Whether a unit's functions are in a separate file (.dwo or .dwp). */
enum split { SPLIT_UNKNOWN, SPLIT_NONE, SPLIT_FOUND, SPLIT_MISSING };

struct unit {
    Dwarf_Off offset; /* of the unit's DIE */
    pthread_mutex_t lock;
    struct inline_table *table;        /* atomic; NULL: not built yet */
    struct arena arena;                /* names; under the lock */
    uint8_t split;                     /* enum split; under the lock */
    const struct cached_table *cached; /* its table in the disk cache, or NULL */
    struct unit_places places;         /* under the lock */
};

struct unit_range {
    uint64_t start;
    uint64_t end;
    uint64_t reach; /* the greatest end up to here: tells how far back a search must go */
    uint32_t unit;
    uint32_t zero; /* ranges are written to the cache as they are: no byte may be undefined */
};

struct units {
    struct objects *objects;
    struct object *object;
    const struct elf_image *image; /* the file with the debug information; NULL: there is none */
    const struct elf_image *code;  /* the file with the code */
    struct elf_image *alternate;   /* the dwz file */
    bool alternate_missing;
    bool by_descriptor;      /* open it by descriptor: libdw has to know its directory */
    char *real_path;         /* its path without links, or NULL */
    bool has_package;        /* there is a .dwp */
    bool splits_changed;     /* atomic: a .dwo or .dwp shrank while libdw read it */
    uint64_t units_left_out; /* atomic: units that were hit but cost too much to read */
    uint64_t costly_names;   /* atomic: names not demangled because that would cost too much */
    uint64_t splits_missing; /* atomic: units that were hit but whose .dwo was not found */
    pthread_mutex_t pool_lock;
    pthread_cond_t pool_freed;
    struct dwarf_handle *pool;
    unsigned handle_count;
    unsigned handle_limit;
    struct unit *items;
    size_t count;
    VECTOR(struct unit_range) ranges; /* by start */
    struct file cached;               /* a file of the disk cache, if it has one for this object */
    struct text cached_names;
    bool has_news; /* atomic: something was read that is not in the cache */
};

/* inline_handle.c: return NULL if the debug information cannot be read at all. */
struct dwarf_handle *handle_take(struct units *units);
void handle_give(struct units *units, struct dwarf_handle *handle);
/* Close it instead of giving it back. */
void handle_drop(struct units *units, struct dwarf_handle *handle);
void handles_release(struct units *units);
/* Whether a file that is read through a descriptor shrank. No lookup may be running. */
bool handles_changed(const struct units *units);

/* alternate.c: open the file that the image's .gnu_debugaltlink names. Return NULL if there is none; id->size is 0 if none is named. The caller
   holds the object's lock. */
struct elf_image *alternate_open(struct objects *objects, struct object *object,
                                 const struct elf_image *image, struct build_id *id);

/* inline_units.c */
void units_index(struct units *units, struct dwarf_handle *handle);

/* inline_split.c: decide how to open a file with this skeleton. Call it before the second handle is opened. */
void units_choose_way(struct units *units, Dwarf_Die *skeleton);
/* Find the unit with a skeleton's functions; set split->addr to NULL if there is none. The caller holds the unit's lock. */
void unit_split(struct units *units, struct unit *unit, Dwarf_Die *unit_die, Dwarf_Die *split);

/* inline_dies.c: return the text of an attribute, or NULL. libdw does not check that a string in the DIE itself ends within the section. */
const char *attribute_string(Dwarf_Attribute *attribute);
/* Check that string sections end with a NUL, which libdw does not. */
bool strings_end(Elf *elf);

/* What DIEs of one abbreviation have in common. */
struct die_shape {
    Dwarf_Abbrev *abbreviation; /* NULL: none was met yet */
    uint32_t first_step, step_count;
    uint32_t tag;
    bool has_children;
    bool has_code; /* addresses, or ranges of them */
};

/* A walk over a unit's DIEs, in file order: children follow their parents. */
struct dies {
    Dwarf_CU *cu;
    const uint8_t *unit, *end; /* the unit's bytes: [unit, end) */
    const uint8_t *at;         /* the next DIE; set it to `sibling` to skip children */
    Dwarf_Half version;
    uint8_t address_size, offset_size;
    VECTOR(struct die_shape) shapes; /* by code */
    VECTOR(struct die_step) steps;
    const struct die_shape *shape; /* of the DIE; NULL: the end of the innermost list of children */
    const uint8_t *sibling;        /* of the DIE, if it names one; else NULL */
    Dwarf_Die die;
    bool is_strange; /* not understood: use libdw instead */
};

/* Begin before the first child of a unit's DIE; return false if it has none or it is not found. */
bool dies_begin(struct dies *dies, Dwarf_Die *top, uint64_t unit_size);
/* Return false if there is no further DIE, or if it is strange. */
bool dies_next(struct dies *dies);
void dies_release(struct dies *dies);

/* inline_table.c: return the table of a unit; build it if there is none yet. The caller holds the unit's lock. */
struct inline_table *unit_table(struct units *units, struct unit *unit,
                                struct dwarf_handle *handle);
void table_free(struct inline_table *table);
/* Return the innermost entry at the address, or NO_ENTRY. */
uint32_t table_lookup(const struct inline_table *table, uint64_t address);
/* Find the DIE of a unit and the DIE with its functions: the split unit's if there is one. */
bool unit_dies(struct units *units, struct unit *unit, struct dwarf_handle *handle,
               Dwarf_Die *unit_die, Dwarf_Die *code_die);

/* inline_disk.c: fill the index of units and remember which tables are cached; return false if the cache has nothing. */
bool cached_units_load(struct units *units);
/* Return the cached table of a unit, as unit_table() would, with the names requested in earlier runs. The caller holds the unit's lock. */
struct inline_table *cached_table(const struct units *units, struct unit *unit);
/* Add the cached lines to the unit's own, once. The caller holds the unit's lock. */
void cached_places(const struct units *units, struct unit *unit);
/* Parts of the three above and of cached_units_store(), for a fuzzer. */
bool units_unpack(struct units *units, struct text payload);
bool units_pack(struct units *units, struct buffer *payload);

/* inline_names.c: the caller holds the unit's lock. */
void entry_find_name(struct units *units, struct unit *unit, struct dwarf_handle *handle,
                     const struct inline_entry *entry, struct buffer *name, bool *is_linkage,
                     bool *costly);
void entry_place(struct units *units, struct unit *unit, struct dwarf_handle *handle,
                 struct inline_entry *entry);
/* Find the line of an address, and remember it. */
void unit_line(struct units *units, struct unit *unit, struct dwarf_handle *handle,
               uint64_t address, struct inline_frame *frame);

/* inline_places.c: the caller holds the unit's lock. Return false if it was not requested before. */
bool place_find(const struct units *units, struct unit *unit, uint64_t address,
                struct inline_frame *frame);
/* The file name must live as long as the unit. */
void place_add(struct unit *unit, const struct unit_place *place);
void places_release(struct unit_places *places);

#endif
