/*
 * object: symbols, lines and unwind rules of one file, or of anything else that holds code.
 *
 * An object is what code was mapped from: an ELF file, the kernel, a kernel module, the vdso, a BPF program, the perf map of a process, or
 * code that a runtime generated and described itself (made.h). It is identified by path, build id and kind as soon as a recording mentions
 * it. Its file is found, checked and read once, under the object's own lock, when a location in it is first resolved. If code at an address
 * changes, that is a new object.
 *
 * The file of an object is the first match of: `--symfs DIR` + path; the build-id cache (~/.debug/.build-id); /usr/lib/debug/.build-id; the
 * path itself; the copy kept in the recording; debuginfod's cache and servers. A file whose build id differs from the recorded one is not
 * used, and a note says so. Only regular files are opened. wick never starts another program to find a name.
 */
#ifndef WICK_OBJECT_H
#define WICK_OBJECT_H

#include "base/base.h"
#include "compat/compat.h"
#include "net/net.h"

enum object_kind {
    OBJECT_NONE,    /* anonymous memory, //anon, [heap], [stack], 32-bit vdsos: never has symbols */
    OBJECT_FILE,    /* address: file offset */
    OBJECT_VDSO,    /* address: offset in the vdso */
    OBJECT_KERNEL,  /* address: as sampled */
    OBJECT_MODULE,  /* a kernel module; address: as sampled */
    OBJECT_BPF,     /* a BPF program or other KSYMBOL; address: as sampled */
    OBJECT_PERFMAP, /* anonymous code of a process with /tmp/perf-PID.map; address: as sampled */
    OBJECT_MADE,    /* code that a runtime generated and described; address: a place (made.h) */
    OBJECT_NAME,    /* an object of a text format: only a path */
};

#define BUILD_ID_MAX 20

struct build_id {
    uint8_t size; /* 0: none recorded */
    uint8_t bytes[BUILD_ID_MAX];
};

/* The identity of an object: objects with equal identities are the same object. */
struct object_identity {
    struct text path;
    struct build_id build_id;
    enum object_kind kind;
    int32_t pid;    /* OBJECT_PERFMAP, OBJECT_MADE: its process; else 0 */
    uint64_t start; /* OBJECT_MODULE, OBJECT_BPF: its load address; else 0 */
    uint64_t size;  /* OBJECT_BPF: its size; else 0 */
    /* OBJECT_FILE without a build id: the mount namespace, if it is not the recorder's; then nothing is opened by its path. Else 0. */
    uint64_t mount;
    /* OBJECT_FILE without a build id: recorded of the file that ran; else 0. */
    uint64_t inode, generation;
};

struct objects;

/* Use of debuginfod. All zero: neither its cache nor its servers are used. */
struct debuginfod_options {
    bool cache;      /* search the cache shared by all debuginfod clients */
    struct net *net; /* the connection to the servers; NULL: ask none. Must outlive the objects */
    unsigned milliseconds_each, milliseconds_all; /* time limits for one file and for all */
    uint64_t size_most;                           /* size limit of a file, in bytes */
};

struct objects_options {
    const char *symfs;             /* or NULL */
    const char *kallsyms;          /* a file to use instead of the running kernel's, or NULL */
    const char *vmlinux;           /* the kernel's ELF file, or NULL */
    const char *debug_directories; /* searched before /usr/lib/debug; colon-separated, or NULL */
    const char *buildid_cache;     /* or NULL: $HOME/.debug */
    uint64_t recorded_until; /* when the recording was last written, in nanoseconds; 0: unknown */
    const char *cache;       /* directory of the on-disk cache, or NULL */
    struct debuginfod_options debuginfod;
    struct quirks quirks;
    bool no_demangle;
    const struct context *context; /* or NULL */
    bool lines; /* objects_inlines() will be asked for lines: decompress their tables as well */
};

struct objects *objects_new(const struct objects_options *options);
void objects_free(struct objects *objects);
/* Prepare for the end of the process: stop threads and tidy the cache directory, but free no memory. */
void objects_leave(struct objects *objects);

/* Find or add an object. Not thread-safe: call it while side records are applied, before lookups begin. */
uint32_t objects_add(struct objects *objects, const struct object_identity *identity);
const struct object_identity *objects_get(const struct objects *objects,
                                          uint32_t id); /* valid until freed */
uint32_t objects_count(const struct objects *objects);  /* ids are 1 … count */
/* Return the name to show: `[kernel.kallsyms]` without its `_stext`, `/tmp/perf-PID.map`, or the path. */
struct text objects_shown(const struct objects *objects, uint32_t id);

/* Set the address that the kernel's reference symbol (`_stext` or `_text`) had when recorded, from the kernel's mmap record. Lookups are
   shifted by its distance from the address in the symbol table. */
void objects_set_kernel_reference(struct objects *objects, uint32_t id, struct text symbol,
                                  uint64_t address);
/* Set the name of a BPF program, from its KSYMBOL record. */
void objects_set_name(struct objects *objects, uint32_t id, struct text name);

/* Read item `item` into `bytes`; return false if it is not available. Called once, from any thread. */
typedef bool object_bytes(void *context, uint32_t item, struct buffer *bytes);
/* Declare that the recording contains the object's file or perf map. An outside file with the recorded build id takes precedence, because it
   can be mapped instead of copied. A kept file without a build id, and a kept perf map, take precedence over outside ones. `context` must
   outlive the objects. */
void objects_set_kept(struct objects *objects, uint32_t id, object_bytes *read, void *context,
                      uint32_t item);

/* The parts that wick needs of an object: the file with its code; a file with debug information, its own or one shared by several files;
   the kernel's symbol list; the part of that list that names the recorded addresses. */
enum object_part { PART_CODE, PART_DEBUG, PART_LIST, PART_NAMES };
/* Read the part into `bytes` if the recording contains it. For a shared debug file `identity` has only the build id. Called from any
   thread. */
typedef bool objects_part_read(void *context, enum object_part part,
                               const struct object_identity *identity, struct buffer *bytes);
/* Set where to get the parts that objects_set_kept() does not offer; NULL: nowhere. `context` must outlive the objects. */
void objects_set_parts(struct objects *objects, objects_part_read *read, void *context);
/* Visit the parts of an object that were found outside the recording. Stop and return false if a visit returns false. */
typedef bool objects_part_visit(void *context, enum object_part part,
                                const struct object_identity *identity, struct text bytes);
bool objects_each_part(struct objects *objects, uint32_t id, objects_part_visit *visit,
                       void *context);
/* Whether the object's files were needed, for names or for unwinding. */
bool objects_is_used(struct objects *objects, uint32_t id);

/* Add a copy of an object from another table, with everything that was set but nothing that was opened. */
uint32_t objects_copy(struct objects *to, const struct objects *from, uint32_t id);
/* Give back the memory of mapped files; it is mapped again when read again. For processes that keep objects between bursts of work. */
void objects_let_go_of_pages(struct objects *objects);
/* Read what objects_set_kept() offers and no other source has, before the contexts of objects_set_kept() and objects_set_parts() go away.
   Call it from one thread. */
void objects_detach(struct objects *objects);

/* ---- names: thread-safe ------------------------------------------------------------------- */

struct symbol {
    struct text name; /* demangled unless no_demangle; lives as long as the objects */
    uint64_t start;   /* in the same terms as the requested address */
    uint64_t end;
    struct text language; /* OBJECT_MADE: "javascript", …, or empty */
};

/* Find the symbol at an address; return false if there is none. The first call for an object loads its symbols, under its lock. */
bool objects_symbol(struct objects *objects, uint32_t id, uint64_t address, struct symbol *symbol);

/* Return the bytes [start, end) of the object's file, in the same terms as its addresses, and their machine (EM_…). Return an empty text if
   there is no file or no such range. The bytes live as long as the objects. */
struct text objects_code(struct objects *objects, uint32_t id, uint64_t start, uint64_t end,
                         uint32_t *machine);

/* Queue what will be needed: an object's symbols and, with `inlines`, its list of compilation units and the unit at the address. A thread
   with nothing else to do calls objects_read_ahead() to read what is queued and not begun. Thread-safe. */
void objects_prefetch(struct objects *objects, uint32_t id, uint64_t address, bool inlines);
/* The same for the kernel, once it was added and its reference set; does nothing if there is no kernel object. */
void objects_prefetch_kernel(struct objects *objects);
void objects_read_ahead(struct objects *objects);
/* Whether servers are asked. If so, threads owned by the objects fetch what is queued, several files at once. */
bool objects_fetch(const struct objects *objects);

/* ---- inlined functions and lines: thread-safe --------------------------------------------- */

struct inline_frame {
    struct text name; /* the demangled linkage name, else the source name; empty: unknown */
    struct text file; /* source file; empty, with line 0, if unknown or not requested */
    uint32_t line;
    uint32_t column;
    uint64_t start;       /* start of its code, in the same terms as the requested address */
    uint64_t id;          /* of the function, or of this inlined instance, within the object */
    bool is_linkage;      /* the name is the linkage name */
    struct text language; /* OBJECT_MADE: as in a symbol */
};
/* The function, then the functions inlined into it, innermost last. Reuse it from call to call; vector_release() it. */
struct inline_chain {
    struct inline_frame *items;
    size_t count;
    size_t capacity;
};

/* Find the function at an address and what is inlined there; return false and an empty chain if nothing is known. For generated code the
   runtime's description is used, else DWARF 4 and 5 of the file or its debug file, including .dwo and dwz. Only units that contain a
   requested address are read, each once. `lines` reads their line tables as well. Texts live as long as the objects. */
bool objects_inlines(struct objects *objects, uint32_t id, uint64_t address, bool lines,
                     struct inline_chain *chain);
/* For quirks.addr2line_names: append the symbol that addr2line would print without debug information. */
bool objects_addr2line_symbol(struct objects *objects, uint32_t id, uint64_t address,
                              struct buffer *name);

/* ---- unwinding rules: thread-safe --------------------------------------------------------- */

/*
 * A row says how to find the caller's registers at any address of a range of one ELF file. elfutils decodes it from .eh_frame, or else from
 * .debug_frame (of the file or its debug file), when an address in the range is first requested. It never changes. Registers have DWARF
 * numbers; only general registers, the return address and the stack pointer are kept.
 */
enum cfi_kind {
    CFI_AT_CFA,        /* saved in memory at CFA + offset */
    CFI_CFA_PLUS,      /* equals CFA + offset */
    CFI_IN_REGISTER,   /* in register `offset` */
    CFI_AT_EXPRESSION, /* saved in memory at the value of ops[offset … +op_count) */
    CFI_EXPRESSION,    /* equals the value of these operations */
};
struct cfi_rule {
    uint8_t reg;
    uint8_t kind;
    uint16_t op_count;
    int32_t offset;
};
struct cfi_op {
    uint8_t atom;    /* DW_OP_… */
    uint32_t target; /* for a jump: index of the next operation, within the expression */
    uint64_t number;
    uint64_t number2;
};
#define CFI_CFA_BY_EXPRESSION 255
struct cfi_row {
    uint64_t start; /* ELF addresses, not file offsets; private, because it may move down */
    uint64_t end;
    uint64_t kept;        /* bit r: register r is known in the caller, by its rule or unchanged */
    int32_t cfa_offset;   /* or the index in `ops` where the expression begins */
    uint16_t cfa_ops;     /* length of the expression */
    uint16_t machine;     /* EM_… */
    uint8_t cfa_register; /* or CFI_CFA_BY_EXPRESSION */
    uint8_t return_register; /* if it is not in `kept`, there is no caller */
    bool signal_frame;
    bool is_interpreter; /* HotSpot's interpreter: the frame contains the method */
    /* HotSpot: two more words may lie below the frame: 0 and the return address of a call. */
    bool may_have_crumb;
    /* The function is an unwinder that leaves by __builtin_eh_return; its own frame may already be overwritten. */
    bool throws;
    bool landing; /* it is about to do so: it "returns" to the start of the handler */
    /* The CFA is a register + offset, every rule is CFI_AT_CFA, and the stack pointer has none. */
    bool simple;
    uint32_t rule_count;
    const struct cfi_op *ops;
    /* A kept register without a rule is unchanged, but the stack pointer becomes the CFA. */
    struct cfi_rule rules[];
};

/* Return the row at an address, or NULL if no rule covers it. Repeated requests cost a hash lookup without a lock. */
const struct cfi_row *objects_cfi(struct objects *objects, uint32_t id, uint64_t address);

/* Return the machine of the object's file, EM_…; 0 if it has no file or its rules were never requested. */
uint16_t objects_machine(struct objects *objects, uint32_t id);

/* Get the entry point of the file; return false if it has none. */
bool objects_entry(struct objects *objects, uint32_t id, uint64_t *address);

/* Read bytes that are the same in every process, from read-only segments of the file; return false if there are none. Needed to unwind
   through code that reads its own constants. */
bool objects_read(struct objects *objects, uint32_t id, uint64_t address, void *bytes, size_t size);

/* Note what was missing: files, matching build ids, kernel symbols, debug information; of all objects or of one. Call them after all
   lookups. */
void objects_notes(struct objects *objects, struct notes *notes);
void objects_notes_of(struct objects *objects, uint32_t id, struct notes *notes);
/* Return true and set *error if a file shrank while it was read, so that results from it cannot be trusted. Call it after all lookups. */
bool objects_changed(const struct objects *objects, struct error *error);

/* ---- all symbols of one file, for rooms that arrange them by their own rules ----------------------- */

/* Valid during the visit. */
struct code_symbol {
    struct text name; /* as in the file, without its version; a PLT slot is NAME@plt */
    uint64_t start;   /* ELF addresses */
    uint64_t end;     /* the end of its section if it has no size */
    bool is_unsized;
    bool is_function; /* its type is function, not just a label */
    bool is_stub;     /* a PLT slot */
    unsigned rank;    /* 2 global, 1 weak, 0 local */
};
typedef void code_symbol_visit(void *context, const struct code_symbol *symbol);
/* Visit the code symbols of both tables and the PLT slots of an ELF image in memory, in no particular order; several may share an address.
   Visit none if it is not an ELF file or its tables are broken. */
void object_each_symbol(const void *image, size_t size, code_symbol_visit *visit, void *context);

/* ---- facts about a file, for recorders ------------------------------------------------------------- */

/* Get the build id of a file, or of the running kernel. Return false if there is none or it can't be read. */
bool object_file_build_id(const char *path, struct build_id *id);
bool object_kernel_build_id(struct build_id *id);
/* Get the ELF addresses of exported symbols, 0 for names that it lacks, and the ELF address at file offset `offset`, from which a mapping
   gives the load address. Return false if it is not a 64-bit ELF file or has no code at that offset. */
bool object_exports(const char *path, const char *const *names, size_t count, uint64_t *addresses,
                    uint64_t offset, uint64_t *address);
/* Whether an ELF file exports a symbol of this name. */
bool object_has_export(const char *path, const char *name);
/* Return the ELF address of the word that, once the file is loaded, holds the module number of a thread-local variable. Return 0 if the
   variable is not accessed that way, or on other machines than x86-64. */
uint64_t object_tls_slot(const char *path, const char *name);
bool object_vdso_build_id(struct build_id *id);
/* Return the vdso of this process as an ELF image; empty if there is none. */
struct text object_vdso(void);
/* What a file and its separate debug file contain. */
struct object_facts {
    bool symbols;  /* .symtab */
    bool exported; /* .dynsym: exported functions */
    bool lines;    /* .debug_info */
    bool unwind;   /* .eh_frame or .debug_frame */
    bool separate; /* a separate debug file was found */
};
/* Return false if it is not an ELF file or can't be read. */
bool object_file_facts(const char *path, struct object_facts *facts, struct error *error);
/* What was found for an object, after lookups. Paths live as long as the objects. */
enum file_trouble {
    FILE_FINE,
    FILE_ABSENT,   /* not found */
    FILE_MISMATCH, /* the file there has another build id */
    FILE_REPLACED, /* the file there has no build id and is not the one that ran */
    FILE_REFUSED,  /* not trusted: another user's perf map */
    FILE_DENIED,   /* kernel symbols without addresses */
};
struct object_found {
    const char *code;  /* the file with the code or the symbol list; NULL: none */
    const char *debug; /* the separate debug file; NULL: none */
    bool is_packed;    /* symbols are from .gnu_debugdata */
    struct object_facts facts;
    enum file_trouble trouble;
    const char *undelivered; /* why debuginfod's servers failed to deliver it; or NULL */
};
void objects_found(struct objects *objects, uint32_t id, struct object_found *found);
/* Find the Debian package of a file in dpkg's lists; return false if none has it. Reads all lists. */
bool object_file_package(struct text path, struct buffer *package);
/* Whether an ELF file has a section of this name. */
bool object_file_has_section(const char *path, const char *name);
/* Append the compilers named in the file's .comment section, joined by ", ". */
bool object_file_compiler(const char *path, struct buffer *compilers);

/* ---- the on-disk cache of what was derived from files: disk_cache.h ---- */

/* Get the cache's directory, with a NUL: $WICK_CACHE, else $XDG_CACHE_HOME/wick or ~/.cache/wick. Return false if there is none. */
bool objects_cache_path(struct buffer *path);
/* Get the directory of debuginfod's client cache, by libdebuginfod's rules, with a NUL. Return false if there is none. */
bool debuginfod_cache_path(struct buffer *path);
/* Make the directory if it is missing. If this fails, the cache is not used. */
void objects_cache_make(const char *path);
struct objects_cache_facts {
    uint64_t files, bytes, limit;
};
/* Return false if the cache is not used because another user owns it or may write to it. A missing cache counts as empty. */
bool objects_cache_facts(const char *path, struct objects_cache_facts *facts);
/* Return false if something could not be removed. */
bool objects_cache_clear(const char *path);
/* Write what was derived and is not in the cache yet. Call it after lookups, when the output is complete; objects_free() does not. */
void objects_store(struct objects *objects);

/* ---- the running kernel's symbols ---- */

struct kernel_symbol {
    uint64_t address; /* 0 if the kernel hides it */
    char type;        /* as in nm */
    struct text name; /* valid until the next symbol */
};
/* Call each() for the symbols of /proc/kallsyms, in order, until it returns false. Return false if the list can't be read. Reading all of it
   takes about 60 ms. */
bool kernel_symbols_each(bool (*each)(void *context, const struct kernel_symbol *symbol),
                         void *context);
/* Append the part of the running kernel's list that names the addresses, which are in ascending order; nothing if the kernel hides it. `cache` is
   the directory of the on-disk cache, or NULL; without it this takes about 60 ms. */
void kernel_names_print(const uint64_t *addresses, size_t count, const char *cache,
                        struct buffer *text);

#endif
