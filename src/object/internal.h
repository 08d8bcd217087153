/*
 * Private to this room: an object, its lock and its files.
 *
 * objects_add() fills `identity`; everything else of an object is filled on first use, under its lock. Data that is read without the lock
 * (symbol tables, unwind rows) is published with a release store once it is complete, and never changes afterwards.
 */
#ifndef WICK_OBJECT_INTERNAL_H
#define WICK_OBJECT_INTERNAL_H

#include "object/elf.h"
#include "object/made.h"
#include "object/symbols.h"

#include <pthread.h>
#include <stdatomic.h>

/* Data that other files of this room attach to an object. objects_free() calls `release`. */
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
    bool searched;           /* its files were searched for */
    struct elf_image *image; /* the file with the code, or NULL */
    struct elf_image *debug; /* its separate debug file, or NULL */
    enum file_trouble trouble;
    char *changed;     /* path of a file that shrank and was closed, or NULL */
    char *undelivered; /* why a server failed to deliver a file that it may have, or NULL */
    struct object_extra extras[SLOT_COUNT];
    bool prefetched;          /* atomic: it was queued for prefetching */
    bool vmlinux_refused;     /* OBJECT_KERNEL: --vmlinux is another kernel's, or not an ELF file */
    bool list_is_running;     /* OBJECT_KERNEL: its list is the running kernel's … */
    bool list_is_stored;      /* … and was offered to the cache */
    struct buffer marks;      /* … and these lines of it give its shift */
    struct kernel_list *list; /* … which has its own symbols, instead of `symbols`; or NULL */
    struct kernel_list *read_again;  /* … the same read again, if `list` is the cache's … */
    _Atomic(struct symbols *) whole; /* … and a table of all symbols, once it is needed */
    bool asked; /* atomic: OBJECT_KERNEL: a name was requested; it is read ahead even if none is */

    /* Symbols: published when complete, then read by any thread. */
    _Atomic(struct symbols *) symbols;
    /* quirks.symbols_by_arrival: the files from which perf would take the symbols and the PLT. */
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
    struct index made; /* by process: an OBJECT_MADE of it */
    uint32_t kernel;   /* the first OBJECT_KERNEL, or 0; modules find their symbols in it */
    struct prefetcher *prefetcher;
    struct disk_cache *cache;     /* or NULL */
    objects_part_read *read_part; /* set with objects_set_parts, or NULL */
    void *part_context;
    uint64_t
        fetch_until; /* atomic: when to stop asking servers (CLOCK_MONOTONIC, milliseconds); 0: none was asked yet */
};

/* objects.c: whether code that the process generated is described. */
bool objects_have_made(const struct objects *objects, int32_t pid);

/* ---- reading ahead: prefetch.c ---- */

struct prefetcher *prefetcher_new(void);
void prefetcher_free(struct prefetcher *prefetcher);
/* Wait for the threads that it started to end. Nothing may be queued meanwhile. */
void prefetcher_wait(struct prefetcher *prefetcher);
/* inline.c: find the object's compilation units, if it has any, and read the one at the address. */
void object_prefetch_inlines(struct objects *objects, struct object *object, uint64_t address);
/* inline.c: whether a file that was opened for them shrank. The caller holds the object's lock. */
bool object_inlines_changed(const struct object *object, struct error *error);

/* ---- finding files: find.c, source.c ---- */

/* Return --symfs without trailing slashes, or an empty text. */
struct text symfs_of(const struct objects *objects);
/* Set `path`, with a NUL, to `rest` below `root`; no `..` in `rest` leads out of `root`. */
void path_set_below(struct buffer *path, struct text root, struct text rest);

/* Open a file of an object. Return NULL if there is none, or if it does not have the build id `id`, if one is given. */
struct elf_image *object_open(struct object *object, const char *path, const struct build_id *id);

/* source_debuglink.c: whether the checksum in the image's .gnu_debuglink is that of the debug file; reads all of that file. */
bool debuglink_proves(const struct elf_image *image, const struct elf_image *debug);

/* cfi.c: whether the file's unwinding rules were requested and rejected as absurd. */
bool object_cfi_refused(const struct object *object);
/* inline.c: note what was missing for inlined functions and lines. */
void object_note_inlines(const struct object *object, uint32_t id, struct notes *notes);
/* notes.c: names that were not demangled because that would cost too much. */
extern const struct note_kind note_costly_names;

struct object *objects_object(const struct objects *objects, uint32_t id);

/* Return the file with the code, or its separate debug file; NULL if there is none. The first call finds and opens it. The caller holds the
   object's lock, also for everything that libelf and libdw do with the file afterwards. It lives as long as the objects. Only OBJECT_FILE
   and OBJECT_VDSO have files. */
const struct elf_image *object_image(struct objects *objects, struct object *object);
const struct elf_image *object_debug(struct objects *objects, struct object *object);

/* ---- symbols of ELF files: symbols.c, plt.c ---- */

/* A symbol table and its strings. */
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

/* Load symbols in the image's addresses. `debug` may be NULL. */
void elf_symbols_load(struct symbols *symbols, const struct elf_image *image,
                      const struct elf_image *debug);
/* Set only where the names are, as elf_symbols_load() does. */
void elf_symbols_sources(struct symbols *symbols, const struct elf_image *image,
                         const struct elf_image *debug);
/* Load symbols as perf 6.1 would: in file offsets. */
void elf_symbols_load_perf(struct symbols *symbols, const struct elf_image *tables,
                           const struct elf_image *runtime);
/* gopclntab.c: add the functions of a Go program without a symbol table; find their names. */
void go_symbols_add(struct symbols *symbols, const struct elf_image *image, uint8_t source);
bool go_symbols_names(const struct elf_image *image, struct text *names);
/* Add a name for each slot of the procedure linkage tables. `source` is the number of the source with `dynamic`'s names. */
void plt_load(struct symbols *symbols, const struct elf_image *image,
              const struct symbol_section *dynamic, uint8_t source);
void plt_load_perf(struct perf_rounds *rounds, const struct elf_image *runtime, uint8_t source);

/* ---- symbols that are text: kallsyms.c, perfmap.c ---- */

/* Load and seal the table. The caller owns `text`, which must live as long as the table. */
void kallsyms_load(struct symbols *symbols, struct text text);
/* Set only where the names are, as kallsyms_load() does. */
void kallsyms_source(struct symbols *symbols, struct text text);
/* Find the address of a function in the text of kallsyms, which still has all names of an address. */
bool kallsyms_find(struct text text, struct text name, uint64_t *address);
/* Return the module of an entry, as `[name]`; empty for the kernel's own symbols. */
struct text kallsyms_module(const struct symbols *symbols, const struct entry *entry);
void perfmap_load(struct symbols *symbols, struct text text);

/* The text of the running kernel's list, in blocks that become tables when they are needed. */
struct kernel_block {
    uint64_t first;  /* address of its first symbol, larger than those before it */
    uint64_t at;     /* where it begins in the text */
    uint64_t digest; /* of its text, in the cache: a block is checked when it is needed */
};
struct kernel_list {
    struct text text;
    size_t own; /* bytes of the kernel's own lines; modules and all else come after them */
    VECTOR(struct kernel_block)
    blocks;                            /* of the kernel's own lines; none: these are not in order */
    _Atomic(struct symbols *) *tables; /* by block */
    struct buffer owned;               /* the text, if it was read … */
    struct file cached;                /* … or a file of the disk cache with text and blocks */
};
/* Read the list from its descriptor. Append to `marks` the lines of the symbols that a recording may refer to, including `reference`. Return NULL
   if the list shows no addresses. */
struct kernel_list *kernel_list_read_running(int descriptor, struct text reference,
                                             struct buffer *marks);
void kernel_list_free(struct kernel_list *list); /* NULL is fine */
/* Return the table with the symbol of an address, or NULL if only a table of the whole list can tell. Takes the lock to make a table, whose
   resolved names go to `names`. */
struct symbols *kernel_list_find(struct kernel_list *list, uint64_t address, struct symbols *names,
                                 pthread_mutex_t *lock);
/* Return the text of a block. */
struct text kernel_list_block(const struct kernel_list *list, size_t number);
/* Convert a list, without what comes after the kernel's own lines, to its form in the cache and back, which stays in `payload`: the head, and
   then the kernel's own lines. Return NULL if that is damaged. */
void kernel_list_pack(const struct kernel_list *list, struct text marks, struct buffer *head);
struct kernel_list *kernel_list_unpack(struct text payload, struct text *marks);

/* ---- generated code: made.c; a NULL list is empty ---- */

bool made_symbol(const struct made *made, uint64_t address, struct symbol *symbol);
bool made_inlines(const struct made *made, uint64_t address, struct inline_chain *chain);
struct text made_code(const struct made *made, uint64_t start, uint64_t end, uint32_t *machine);
uint16_t made_machine(const struct made *made);
/* Find how to unwind at an address: by a row that is valid in [start, end), else by the piece's .eh_frame. Return false if there is neither. */
struct made_rule {
    const struct made_row *row;
    uint64_t start, end;
    struct text eh_frame;
    uint64_t place, size; /* of the piece */
};
bool made_row_at(const struct made *made, uint64_t address, struct made_rule *rule);

/* ---- kept from one run to the next: cached.c, inline_cached.c, inline_disk.c ---- */

/* Fill the table from the cache; return false if it has none. The caller holds the object's lock and has found its files. */
bool cached_symbols_load(struct objects *objects, struct object *object, struct symbols *symbols);
/* Convert a table to its form in the cache and back, for objects_store() and a fuzzer. Return false if it can't be cached, or if the payload is
   damaged. If names stay in their files, set these as the table's sources before unpacking it. */
bool symbols_pack(const struct symbols *symbols, bool names_stay, struct buffer *payload);
bool symbols_unpack(struct symbols *symbols, struct text payload);
/* kernel_cached.c: load the running kernel's own symbols. The caller holds the kernel object's lock. */
bool kernel_load_running(struct objects *objects, struct object *kernel, struct symbols *symbols);
/* Read all symbols from the running kernel. */
bool kernel_read_running(struct object *kernel, struct symbols *symbols);
/* Call it once, after the kernel's symbols were loaded, without a lock. */
void kernel_store_running(struct objects *objects, struct object *kernel);
/* In a list kept for a few addresses: the name of everything that is not in it. */
#define KERNEL_NAME_NONE "-"
/* Return the best table for an address of the list. */
struct symbols *kernel_symbols_at(struct objects *objects, struct object *kernel, uint64_t address);
void cached_units_store(struct objects *objects, struct object *object);

/* ---- loading: load.c, kernel.c ---- */

/* Return the object's symbols, never NULL. The first call loads them. */
struct symbols *object_symbols(struct objects *objects, struct object *object);
/* Convert an entry of the object's table to a symbol; subtract `base` from the table's addresses to get the caller's. */
bool symbols_symbol(struct object *object, struct symbols *symbols, uint32_t number, uint64_t base,
                    struct symbol *symbol);
bool kernel_symbol(struct objects *objects, struct object *object, uint64_t address,
                   struct symbol *symbol);
bool kernel_is_running(const struct build_id *id);
/* Whether /proc/kallsyms shows addresses to this process. Reads its beginning. */
bool kernel_list_is_shown(void);
/* Whether the list that was read shows addresses. If not, drop it and set the object's trouble. */
bool kernel_list_is_good(struct object *kernel);
/* Read or map a list of the kernel's symbols. If it hides their addresses, set the object's trouble and return false. */
bool kernel_list_read(struct object *kernel, const char *path);
/* The caller holds the kernel object's lock. */
void kernel_load(struct objects *objects, struct object *kernel, struct symbols *symbols);

#endif
