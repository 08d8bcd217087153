/*
 * What the files of this room know of each other: an object, its lock, its files.
 *
 * objects_add fills `identity`; everything else of an object is filled at its first use, under its lock. What is to be read
 * without the lock (symbol tables, unwind rows) is published with a release store when it is whole, and
 * never changes afterwards.
 */
#ifndef WICK_OBJECT_INTERNAL_H
#define WICK_OBJECT_INTERNAL_H

#include "object/elf.h"
#include "object/made.h"
#include "object/symbols.h"

#include <pthread.h>
#include <stdatomic.h>

/* What other files of the room hang on an object. `release` is called by objects_free. */
enum object_slot { SLOT_UNITS, SLOT_CFI, SLOT_COUNT };
struct object_extra {
    void *data;
    void (*release)(void *data);
};

struct object {
    struct object_identity identity;
    uint32_t id;
    pthread_mutex_t lock;

    /* Under the lock. */
    bool searched;           /* its files were looked for */
    struct elf_image *image; /* the file with the code, or NULL */
    struct elf_image *debug; /* its separate debug file, or NULL */
    enum file_trouble trouble;
    char *changed;     /* a file that shrank and was let go, or NULL */
    char *undelivered; /* why a server did not give a file that it may have, or NULL */
    struct object_extra extras[SLOT_COUNT];
    bool prefetched;      /* atomic: it was wished for */
    bool vmlinux_refused; /* OBJECT_KERNEL: --vmlinux is another kernel's, or no ELF file */
    bool list_is_running; /* OBJECT_KERNEL: its list is that of the running kernel */
    bool
        is_partial; /* OBJECT_KERNEL: its table has the kernel's own symbols alone; `whole` has all, once that is needed */
    _Atomic(struct symbols *) whole;
    bool asked; /* atomic: OBJECT_KERNEL, which is read ahead though nobody may ask it for a name */

    /* Symbols: published whole, then read by everybody. */
    _Atomic(struct symbols *) symbols;
    /* quirks.symbols_by_arrival: where perf would take the symbols and the PLT from. */
    struct elf_image *symbol_images[2];
    struct file symbol_file;   /* the text of a perf map */
    struct buffer symbol_text; /* the text of kallsyms: files of /proc can't be mapped */
    uint64_t shift;            /* OBJECT_KERNEL: added to an address before it is looked up */
    struct text name;          /* OBJECT_BPF: set with objects_set_name */
    struct text shown;         /* set by objects_add */
    struct text reference;     /* OBJECT_KERNEL: the symbol whose address was recorded */
    uint64_t reference_address;
    /* Set with objects_set_kept. */
    object_bytes *kept;
    void *kept_context;
    uint32_t kept_item;
    struct made *made; /* OBJECT_MADE: set with objects_set_made */
};

/* The text of a perf map or of kallsyms. */
static inline struct text object_list(const struct object *object) {
    return object->symbol_file.size ? file_text(&object->symbol_file)
                                    : buffer_text(&object->symbol_text);
}

struct objects {
    struct objects_options options; /* strings are copies */
    char *buildid_cache;            /* never NULL */
    struct arena arena;
    VECTOR(struct object *) items; /* [0] is none */
    struct index index;
    uint32_t kernel; /* the first OBJECT_KERNEL, or 0: where modules find their symbols */
    struct prefetcher *prefetcher;
    struct disk_cache *cache;     /* or NULL */
    objects_part_read *read_part; /* set with objects_set_parts, or NULL */
    void *part_context;
    uint64_t
        fetch_until; /* atomic: when no more is asked of servers (CLOCK_MONOTONIC, milliseconds); 0: nothing was yet */
};

/* ---- reading ahead: prefetch.c ---- */

struct prefetcher *prefetcher_new(void);
void prefetcher_free(struct prefetcher *prefetcher);
/* inline.c: finds the object's compilation units, if it has any, and reads the one at the address. */
void object_prefetch_inlines(struct objects *objects, struct object *object, uint64_t address);
/* inline.c: whether a file that was opened for them shrank. With the object's lock held. */
bool object_inlines_changed(const struct object *object, struct error *error);

/* ---- finding files: find.c, source.c ---- */

/* --symfs without slashes at its end, or nothing. */
struct text symfs_of(const struct objects *objects);
/* Sets `path`, with a NUL, to `rest` below `root`, out of which no `..` in it leads. */
void path_set_below(struct buffer *path, struct text root, struct text rest);

/* Opens a file of an object's, which has to have that build id, if one is given. NULL: there is none, or it is another. */
struct elf_image *object_open(struct object *object, const char *path, const struct build_id *id);

/* source_debuglink.c: whether the checksum in the image's .gnu_debuglink is the debug file's; costs reading all of that. */
bool debuglink_proves(const struct elf_image *image, const struct elf_image *debug);

/* cfi.c: whether the unwinding rules of a file that was asked were not used, being absurd. */
bool object_cfi_refused(const struct object *object);
/* notes.c: names that were left as they were. */
extern const struct note_kind note_costly_names;

struct object *objects_object(const struct objects *objects, uint32_t id);

/* The file with the code, and its separate debug file, found and opened at the first call; NULL when there is none. With the
   object's lock held, as is everything that libelf and libdw do with them afterwards. They live as long as the objects. Only
   OBJECT_FILE and OBJECT_VDSO have them. */
const struct elf_image *object_image(struct objects *objects, struct object *object);
const struct elf_image *object_debug(struct objects *objects, struct object *object);

/* ---- symbols of ELF files: symbols.c, plt.c ---- */

/* A table of symbols and the strings they are named from. */
struct symbol_section {
    const struct elf_image *image;
    Elf_Data *data;
    size_t count;
    size_t number; /* of the section */
    struct text names;
};
bool symbol_section_open(const struct elf_image *image, const char *name, uint32_t type,
                         struct symbol_section *section);
bool symbol_section_get(const struct symbol_section *section, size_t number, GElf_Sym *symbol);

/* Addresses of the image. `debug` may be NULL. */
void elf_symbols_load(struct symbols *symbols, const struct elf_image *image,
                      const struct elf_image *debug);
/* Sets where the names are, as elf_symbols_load() does. */
void elf_symbols_sources(struct symbols *symbols, const struct elf_image *image,
                         const struct elf_image *debug);
/* As perf 6.1 would: file offsets. */
void elf_symbols_load_perf(struct symbols *symbols, const struct elf_image *tables,
                           const struct elf_image *runtime);
/* Adds a name for each slot of the procedure linkage tables. `source` is where `dynamic`'s names are. */
void plt_load(struct symbols *symbols, const struct elf_image *image,
              const struct symbol_section *dynamic, uint8_t source);
void plt_load_perf(struct perf_rounds *rounds, const struct elf_image *runtime, uint8_t source);

/* ---- symbols that are text: kallsyms.c, perfmap.c ---- */

/* `text` stays the caller's and must live as long as the table. The table is sealed. */
void kallsyms_load(struct symbols *symbols, struct text text);
/* Sets where the names are, as kallsyms_load() does. */
void kallsyms_source(struct symbols *symbols, struct text text);
/* The address of a function in the text of kallsyms, before any choice among names of one address. */
bool kallsyms_find(struct text text, struct text name, uint64_t *address);
/* The module of an entry, as `[name]`; empty for the kernel's own. */
struct text kallsyms_module(const struct symbols *symbols, const struct entry *entry);
void perfmap_load(struct symbols *symbols, struct text text);

/* ---- code that a process made: made.c; a NULL list has nothing ---- */

bool made_symbol(const struct made *made, uint64_t address, struct symbol *symbol);
bool made_inlines(const struct made *made, uint64_t address, struct inline_chain *chain);
struct text made_code(const struct made *made, uint64_t start, uint64_t end, uint32_t *machine);
uint16_t made_machine(const struct made *made);
/* How to unwind at an address: by a row that holds in [start, end), else by the piece's .eh_frame. False: neither is there. */
struct made_rule {
    const struct made_row *row;
    uint64_t start, end;
    struct text eh_frame;
    uint64_t place, size; /* of the piece */
};
bool made_row_at(const struct made *made, uint64_t address, struct made_rule *rule);

/* ---- kept from one run to the next: cached.c, inline_cached.c ---- */

/* Fills the table from the cache; false: it has none. With the object's lock held, after its files were found. */
bool cached_symbols_load(struct objects *objects, struct object *object, struct symbols *symbols);
/* For objects_store() and for a fuzzer: the table's form in the cache. False: it can't have one, or the payload is damaged. Where names stay in the
   files that they are from, the table must have them as its sources before it is unpacked. */
bool symbols_pack(const struct symbols *symbols, bool names_stay, struct buffer *payload);
bool symbols_unpack(struct symbols *symbols, struct text payload);
/* kernel_cached.c: the running kernel's own symbols. With the kernel's lock held. */
bool kernel_load_running(struct objects *objects, struct object *kernel, struct symbols *symbols);
void kernel_store_running(struct objects *objects, const struct object *kernel);
/* The table that knows best what is at an address of the list. */
struct symbols *kernel_symbols_at(struct objects *objects, struct object *kernel, uint64_t address);
void cached_units_store(struct objects *objects, struct object *object);

/* ---- loading: load.c, kernel.c ---- */

/* The object's symbols, loaded at the first call. Never NULL. */
struct symbols *object_symbols(struct objects *objects, struct object *object);
/* An entry of the object's table as a symbol; `base` is taken from the table's terms to get to the asker's. */
bool symbols_symbol(struct object *object, struct symbols *symbols, uint32_t number, uint64_t base,
                    struct symbol *symbol);
bool kernel_symbol(struct objects *objects, struct object *object, uint64_t address,
                   struct symbol *symbol);
bool kernel_is_running(const struct build_id *id);
/* Whether /proc/kallsyms shows addresses to this process. Costs reading its beginning. */
bool kernel_list_is_shown(void);
/* Whether the list that was read shows addresses; else it is dropped, and the object's trouble set. */
bool kernel_list_is_good(struct object *kernel);
/* Reads or maps a list of the kernel's symbols; false, and the object's trouble set, if it hides their addresses. */
bool kernel_list_read(struct object *kernel, const char *path);
/* With the kernel object's lock held. */
void kernel_load(struct objects *objects, struct object *kernel, struct symbols *symbols);

#endif
