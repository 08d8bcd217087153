/*
 * object: what an address means inside one file, or inside whatever else holds code.
 *
 * An object is something that code was mapped from: an ELF file, the kernel, a kernel module, the vdso, a BPF program, the
 * perf map of a process, what it says itself of the code that it made (made.h). It is known by path, build id and kind from the moment it is seen in a
 * recording; its file is found, checked and read only when a location in it has to be resolved, once, under its own
 * lock. Code that changes at an address is a new object.
 *
 * Finding the file of an object, first that fits: `--symfs DIR` + path; the build-id cache (~/.debug/.build-id);
 * /usr/lib/debug/.build-id; the path itself; what the recording has kept of it; debuginfod's cache and servers. A file whose build id differs from the recorded one is not used, and noted. Only regular
 * files are opened. wick never starts another program to find a name.
 */
#ifndef WICK_OBJECT_H
#define WICK_OBJECT_H

#include "base/base.h"
#include "compat/compat.h"
#include "net/net.h"

enum object_kind {
    OBJECT_NONE,    /* anonymous memory, //anon, [heap], [stack], 32-bit vdsos: never has symbols */
    OBJECT_FILE,    /* address: file offset */
    OBJECT_VDSO,    /* address: offset into it */
    OBJECT_KERNEL,  /* address: as sampled */
    OBJECT_MODULE,  /* a kernel module; address: as sampled */
    OBJECT_BPF,     /* one BPF program or other KSYMBOL; address: as sampled */
    OBJECT_PERFMAP, /* anonymous code of a process with /tmp/perf-PID.map; address: as sampled */
    OBJECT_MADE, /* code that a process made, as its runtime describes it; address: a place (made.h) */
    OBJECT_NAME, /* a text source's object: only a path */
};

#define BUILD_ID_MAX 20

struct build_id {
    uint8_t size; /* 0: none recorded */
    uint8_t bytes[BUILD_ID_MAX];
};

/* What identifies an object. Two with equal identity are one. */
struct object_identity {
    struct text path;
    struct build_id build_id;
    enum object_kind kind;
    int32_t pid;    /* OBJECT_PERFMAP, OBJECT_MADE: whose; else 0 */
    uint64_t start; /* OBJECT_MODULE, OBJECT_BPF: where it was loaded; else 0 */
    uint64_t size;  /* OBJECT_BPF: how long it is; else 0 */
    uint64_t
        mount; /* OBJECT_FILE without a build id, of another mount namespace than the recorder's: which; nothing here is
                       opened by its path. Else 0. */
    uint64_t inode,
        generation; /* OBJECT_FILE without a build id: of the file that ran, as recorded; else 0 */
};

struct objects;

/* debuginfod: the cache of its clients, and its servers. All zero: neither is looked at. */
struct debuginfod_options {
    bool cache;      /* look into the cache that all of its clients share */
    struct net *net; /* asks the servers; NULL: nobody is asked. It outlives the objects */
    unsigned milliseconds_each, milliseconds_all; /* for a file, and for all together */
    uint64_t size_most;                           /* of a file, in bytes */
};

struct objects_options {
    const char *symfs;    /* or NULL */
    const char *kallsyms; /* a file to use instead of the running kernel's, or NULL */
    const char *vmlinux;  /* the kernel's ELF file, or NULL */
    const char
        *debug_directories; /* to look into before /usr/lib/debug, with colons between, or NULL */
    const char *buildid_cache; /* or NULL: $HOME/.debug */
    uint64_t recorded_until;   /* when the recording was written last, in nanoseconds; 0: unknown */
    const char *cache;         /* where to keep what is derived from files, or NULL */
    struct debuginfod_options debuginfod;
    struct quirks quirks;
    bool no_demangle;
    const struct context *context; /* or NULL */
    bool
        lines; /* objects_inlines() may be asked for lines: their tables are unpacked, too, where they are compressed */
};

struct objects *objects_new(const struct objects_options *options);
void objects_free(struct objects *objects);
/* For a process that ends: sees to what others have of it, its threads and the cache's directory, and frees nothing. */
void objects_leave(struct objects *objects);

/* Finds or adds. Not thread-safe; done while side records are applied, before lookups begin. */
uint32_t objects_add(struct objects *objects, const struct object_identity *identity);
const struct object_identity *objects_get(const struct objects *objects,
                                          uint32_t id); /* valid until freed */
uint32_t objects_count(const struct objects *objects);  /* ids are 1 … count */
/* The name shown for it: `[kernel.kallsyms]` without its `_stext`, `/tmp/perf-PID.map`, else the path. */
struct text objects_shown(const struct objects *objects, uint32_t id);

/* The recorded address of the kernel's reference symbol (`_stext` or `_text`), from the kernel's own mmap record:
   lookups are shifted by where the symbol table has it. */
void objects_set_kernel_reference(struct objects *objects, uint32_t id, struct text symbol,
                                  uint64_t address);
/* A BPF program's name, from its KSYMBOL record. */
void objects_set_name(struct objects *objects, uint32_t id, struct text name);

/* Puts the bytes of number `item` into `bytes`; false: they can't be had. Called once, from any thread. */
typedef bool object_bytes(void *context, uint32_t item, struct buffer *bytes);
/* The recording itself has the object's file or perf map. A file outside that has the recorded build id goes first, for it is mapped
   instead of copied; without a build id, what was kept goes first, and of perf maps always. `context` outlives the objects. */
void objects_set_kept(struct objects *objects, uint32_t id, object_bytes *read, void *context,
                      uint32_t item);

/* A part of what wick needs of an object: the file with its code; a file with debug information, its own or one that several files
   share; the kernel's list of symbols. */
enum object_part { PART_CODE, PART_DEBUG, PART_LIST };
/* Puts that part into `bytes`, if the recording keeps it. Of a shared file with debug information, `identity` has only the build id. Called
   from any thread. */
typedef bool objects_part_read(void *context, enum object_part part,
                               const struct object_identity *identity, struct buffer *bytes);
/* Where to ask for the parts that objects_set_kept() does not offer. `context` outlives the objects; NULL: nowhere. */
void objects_set_parts(struct objects *objects, objects_part_read *read, void *context);
/* Visit the parts that wick found of an object outside the recording, by the identity to ask for them. False: a visit returned that. */
typedef bool objects_part_visit(void *context, enum object_part part,
                                const struct object_identity *identity, struct text bytes);
bool objects_each_part(struct objects *objects, uint32_t id, objects_part_visit *visit,
                       void *context);
/* Whether the object's files were looked for, to name or to unwind something. */
bool objects_is_used(struct objects *objects, uint32_t id);

/* Adds an object as another table has it, with what was set of it; nothing that was opened. */
uint32_t objects_copy(struct objects *to, const struct objects *from, uint32_t id);
/* Give back the memory that mapped files take; what is read of them again is mapped again. For who keeps objects and rests in between. */
void objects_let_go_of_pages(struct objects *objects);
/* Before what was set with objects_set_kept() and objects_set_parts() goes away: reads the former where nothing else has it. One thread. */
void objects_detach(struct objects *objects);

/* ---- names: thread-safe ------------------------------------------------------------------- */

struct symbol {
    struct text name; /* demangled unless asked not to; lives as long as the objects */
    uint64_t start;   /* in the same terms as the address that was asked for */
    uint64_t end;
    struct text language; /* OBJECT_MADE: "javascript", …, or empty */
};

/* Loads what is needed at the first call for an object, under its lock. False: no symbol there. */
bool objects_symbol(struct objects *objects, uint32_t id, uint64_t address, struct symbol *symbol);

/* The bytes [start, end) of the object's file, in the same terms as its addresses, and the machine (EM_…) that they are for. Empty: the object has no
   file, or not there. They live as long as the objects. */
struct text objects_code(struct objects *objects, uint32_t id, uint64_t start, uint64_t end,
                         uint32_t *machine);

/* Puts on a list what will be needed: an object's symbols and, when asked, the list of its compilation units and the one at the address.
   objects_read_ahead() reads what nobody else has begun with; to be called by whoever has time. Thread-safe. */
void objects_prefetch(struct objects *objects, uint32_t id, uint64_t address, bool inlines);
/* The same of the kernel, after it was added and its reference set; does nothing when there is none. */
void objects_prefetch_kernel(struct objects *objects);
void objects_read_ahead(struct objects *objects);
/* Whether servers are asked: then threads of the objects' own wait for what is on the list, several at once. */
bool objects_fetch(const struct objects *objects);

/* ---- inlined functions and lines: thread-safe --------------------------------------------- */

struct inline_frame {
    struct text
        name; /* by its linkage name, demangled, else as the source has it; empty: unknown */
    struct text
        file; /* where in the source it stands: empty, and line 0, when unknown or not asked for */
    uint32_t line;
    uint32_t column;
    uint64_t start; /* where its code begins, in the same terms as the address that was asked for */
    uint64_t id;    /* of the function, or of this inlining of it, within the object */
    bool is_linkage;      /* the name is what the linker knows it by */
    struct text language; /* OBJECT_MADE: as in a symbol */
};
/* The function, then what is inlined into it, to the innermost. Reused from call to call; vector_release() it. */
struct inline_chain {
    struct inline_frame *items;
    size_t count;
    size_t capacity;
};

/* Of made code, as its runtime says. Else from DWARF 4 and 5, in the file or its debug file, with .dwo and dwz. Only units that hold an address that was asked for
   are read, each once. `lines` reads their line tables as well. Texts live as long as the objects. False, and an empty
   chain: nothing is known of that address. */
bool objects_inlines(struct objects *objects, uint32_t id, uint64_t address, bool lines,
                     struct inline_chain *chain);
/* For quirks.addr2line_names: appends the symbol that addr2line would name there if it had no debug information. */
bool objects_addr2line_symbol(struct objects *objects, uint32_t id, uint64_t address,
                              struct buffer *name);
/* What was missing for it. */
void objects_inline_notes(struct objects *objects, struct notes *notes);

/* ---- unwinding rules: thread-safe --------------------------------------------------------- */

/*
 * A row says how to find the caller's registers from anywhere in a range of one ELF file. It is decoded by elfutils when
 * an address in it is first asked for, from .eh_frame, else from .debug_frame (the file's or its debug file's), and
 * never changes. Registers have DWARF numbers; only the general ones, return address and stack pointer are kept.
 */
enum cfi_kind {
    CFI_AT_CFA,        /* saved in memory at CFA + offset */
    CFI_CFA_PLUS,      /* is CFA + offset */
    CFI_IN_REGISTER,   /* is in register `offset` */
    CFI_AT_EXPRESSION, /* saved in memory, where ops[offset … +op_count) say */
    CFI_EXPRESSION,    /* is what they say */
};
struct cfi_rule {
    uint8_t reg;
    uint8_t kind;
    uint16_t op_count;
    int32_t offset;
};
struct cfi_op {
    uint8_t atom;    /* DW_OP_… */
    uint32_t target; /* of a jump: index of the next operation, within the expression */
    uint64_t number;
    uint64_t number2;
};
#define CFI_CFA_BY_EXPRESSION 255
struct cfi_row {
    uint64_t start; /* addresses of the ELF file, not file offsets; private, as it may move down */
    uint64_t end;
    uint64_t kept;      /* bit r: register r has a value in the caller, by its rule or unchanged */
    int32_t cfa_offset; /* or, by expression: where it begins in ops */
    uint16_t cfa_ops;   /* by expression: its length */
    uint16_t machine;   /* EM_… */
    uint8_t cfa_register;    /* or CFI_CFA_BY_EXPRESSION */
    uint8_t return_register; /* not in `kept`: there is no caller */
    bool signal_frame;
    bool is_interpreter; /* of HotSpot: which method runs there is in the frame */
    /* of HotSpot: below the frame there may be two words more, 0 and where a call returns to */
    bool may_have_crumb;
    bool
        throws; /* the function leaves by __builtin_eh_return: an unwinder, whose own frame may be overwritten already */
    bool landing; /* and is about to: what it "returns" to is where the handler begins */
    /* The CFA is a register + offset, every rule CFI_AT_CFA, and none for the stack pointer. */
    bool simple;
    uint32_t rule_count;
    const struct cfi_op *ops;
    /* A kept register without one is unchanged; the stack pointer is then the CFA. */
    struct cfi_rule rules[];
};

/* NULL: no rule covers that address. Costs a hash lookup without a lock once the address has been asked for. */
const struct cfi_row *objects_cfi(struct objects *objects, uint32_t id, uint64_t address);

/* Which machine its file is for, EM_…; 0 when it has none, or its rules were never asked for. */
uint16_t objects_machine(struct objects *objects, uint32_t id);

/* Where the program in the file begins; false when it has no such place. */
bool objects_entry(struct objects *objects, uint32_t id, uint64_t *address);

/* Reads bytes that are the same in every process: from the read-only segments of the file. For unwinding through code
   that reads its own constants. False where there are none. */
bool objects_read(struct objects *objects, uint32_t id, uint64_t address, void *bytes, size_t size);

/* What was missing: files not found, build ids that differ, kernel symbols denied. Call when lookups are done. */
void objects_notes(struct objects *objects, struct notes *notes);
/* True, and *error set: one of the files shrank while it was read, and what was said of it can't be trusted. Call when lookups are done. */
bool objects_changed(const struct objects *objects, struct error *error);

/* ---- all symbols of one file, for a room that lays them out by rules of its own -------------------- */

/* Valid during the visit. */
struct code_symbol {
    struct text name; /* as in the file, without its version; a slot of the PLT is NAME@plt */
    uint64_t start;   /* the file's own addresses */
    uint64_t end;     /* that of its section if it has no size */
    bool is_unsized;
    bool is_function; /* says so itself, and is not just a label */
    bool is_stub;     /* a slot of the PLT */
    unsigned rank;    /* 2 global, 1 weak, 0 local */
};
typedef void code_symbol_visit(void *context, const struct code_symbol *symbol);
/* Symbols of code from both tables, and the PLT's slots, of an ELF image in memory: in no order, several for one place.
   Visits none if it is no ELF file, or its tables are broken. */
void object_each_symbol(const void *image, size_t size, code_symbol_visit *visit, void *context);

/* ---- facts about a file, for recorders ------------------------------------------------------------- */

/* Of a file, or of the running kernel. False: it has none, or can't be read. */
bool object_file_build_id(const char *path, struct build_id *id);
bool object_kernel_build_id(struct build_id *id);
/* The addresses of exported symbols, in the file's own terms, 0 where it has none of that name; and the address of what is at `offset` in the
   file, by which a mapping tells where the others are. False: it is no ELF file of 64 bits, or has no code there. */
bool object_exports(const char *path, const char *const *names, size_t count, uint64_t *addresses,
                    uint64_t offset, uint64_t *address);
/* Where in memory, in the file's own terms, stands the number of the module that has a thread-local variable, once the file is loaded; 0: it
   is not reached so (or this is not x86-64). */
uint64_t object_tls_slot(const char *path, const char *name);
bool object_vdso_build_id(struct build_id *id);
/* The vdso that the kernel gave this process, as an ELF file; empty: none. */
struct text object_vdso(void);
/* What can be told from a file and its separate debug file. False: it is no ELF file, or can't be read. */
struct object_facts {
    bool symbols;  /* .symtab */
    bool exported; /* .dynsym: of the functions that others may call */
    bool lines;    /* .debug_info */
    bool unwind;   /* .eh_frame or .debug_frame */
    bool separate; /* a debug file of its own was found */
};
bool object_file_facts(const char *path, struct object_facts *facts, struct error *error);
/* What was found of an object, after lookups: paths live as long as the objects. */
enum file_trouble {
    FILE_FINE,
    FILE_ABSENT,   /* there is none */
    FILE_MISMATCH, /* there is one, with another build id */
    FILE_REPLACED, /* there is one, without a build id, but it is not the one that ran */
    FILE_REFUSED,  /* not ours to trust: somebody else's perf map */
    FILE_DENIED,   /* kernel symbols without addresses */
};
struct object_found {
    const char *code;  /* the file with the code, or with the list of symbols; NULL: none */
    const char *debug; /* a debug file of its own; NULL: none */
    bool is_packed;    /* its symbols are from .gnu_debugdata */
    struct object_facts facts;
    enum file_trouble trouble;
    const char *undelivered; /* why debuginfod's servers did not give what they may have; or NULL */
};
void objects_found(struct objects *objects, uint32_t id, struct object_found *found);
/* The Debian package that a file belongs to, as dpkg's lists say; false: none. Reads all of them. */
bool object_file_package(struct text path, struct buffer *package);
/* Whether an ELF file has a section of that name. */
bool object_file_has_section(const char *path, const char *name);
/* Which compilers made a file, as its .comment section says, joined by ", ". */
bool object_file_compiler(const char *path, struct buffer *compilers);

/* ---- what is kept of what was derived from files: disk_cache.h ---- */

/* Where: as $WICK_CACHE says, else $XDG_CACHE_HOME/wick or ~/.cache/wick; with a NUL. False: nowhere. */
bool objects_cache_path(struct buffer *path);
/* Where debuginfod's clients have theirs, as libdebuginfod has it; with a NUL. False: nowhere. */
bool debuginfod_cache_path(struct buffer *path);
/* Makes such a directory if it is missing; it may fail, and the cache then is not used. */
void objects_cache_make(const char *path);
struct objects_cache_facts {
    uint64_t files, bytes, limit;
};
/* False: it belongs to somebody else, or others may write to it; it is not used then. One that is not there is empty. */
bool objects_cache_facts(const char *path, struct objects_cache_facts *facts);
/* False: something could not be removed. */
bool objects_cache_clear(const char *path);
/* Keeps what was derived and was not kept before. Call when lookups are done and the output is out; objects_free() does not. */
void objects_store(struct objects *objects);

/* ---- the running kernel's list of symbols ---- */

struct kernel_symbol {
    uint64_t address; /* 0 where the kernel hides it */
    char type;        /* as nm has it */
    struct text name; /* until the next symbol */
};
/* Call each() for the symbols of /proc/kallsyms, in its order, until it returns false. False: the list can't be read. Reading all of it takes
   about 60 ms. */
bool kernel_symbols_each(bool (*each)(void *context, const struct kernel_symbol *symbol),
                         void *context);

#endif
