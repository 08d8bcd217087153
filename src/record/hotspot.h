/*
 * Private to the room: what a HotSpot virtual machine has compiled, read from its memory.
 *
 * libjvm.so exports tables of its own types, fields and their offsets (gHotSpotVMStructs and the like), so no offset is built in. Anything
 * read may be wrong: the process may be another program that only looks like a JVM, may change while it is read, or may lie. Each number is
 * checked before it is used, and the number of reads in one turn is limited.
 */
#ifndef WICK_RECORD_HOTSPOT_H
#define WICK_RECORD_HOTSPOT_H

#include "base/base.h"

/* ---- another process's memory ---- */

/* Read `size` bytes at `address` into `bytes`; return false if they can't be read. */
typedef bool remote_read(void *context, uint64_t address, void *bytes, size_t size);

enum { REMOTE_PAGE = 4096, REMOTE_PAGES = 64 };

/* Small reads go through a cache of pages, which remote_begin() empties. */
struct remote {
    remote_read *read;
    void *context;
    uint64_t left; /* system calls in this turn */
    struct remote_page {
        uint64_t address; /* + 1; 0: none */
        uint8_t bytes[REMOTE_PAGE];
    } pages[REMOTE_PAGES];
};
/* Begin a turn: empty the cache and allow `reads` system calls. */
void remote_begin(struct remote *remote, uint64_t reads);
/* Read without the cache. */
bool remote_bytes(struct remote *remote, uint64_t address, void *bytes, size_t size);
bool remote_small(struct remote *remote, uint64_t address, void *bytes, size_t size);
bool remote_u16(struct remote *remote, uint64_t address, uint16_t *value);
bool remote_u32(struct remote *remote, uint64_t address, uint32_t *value);
bool remote_u64(struct remote *remote, uint64_t address, uint64_t *value);
/* Read a NUL-terminated string of at most `size` - 1 bytes. */
bool remote_string(struct remote *remote, uint64_t address, char *string, size_t size);
/* remote_elf.c: return the address of a symbol exported by the ELF file mapped at `base`, or 0 if there is none. */
uint64_t remote_symbol(struct remote *remote, uint64_t base, const char *name);
/* Reads the memory of the process whose pid `context` points to. */
remote_read process_read;

/* ---- hotspot.c: where things are ---- */

enum { HOTSPOT_NONE = -1 };

/* Offsets in bytes; HOTSPOT_NONE: this version does not have the field. */
struct hotspot {
    uint64_t heaps, low_bound, high_bound; /* addresses of static fields */
    uint64_t major_version;
    int array_length, array_data;
    int heap_memory, heap_log2_segment, space_low, space_high;
    int block_length, block_used;
    int blob_name, blob_size, blob_frame_size, blob_frame_complete;
    int blob_code_begin, blob_code_end;     /* addresses, up to 22 */
    int blob_code_offset, blob_data_offset; /* from 23 on */
    int method_of_code, compiled_scopes_data, nmethod_metadata, nmethod_dependencies;
    int nmethod_scopes_pcs, nmethod_scopes_data, nmethod_immutable, nmethod_immutable_size;
    int nmethod_compile_id, blob_mutable, blob_mutable_size, blob_relocation_size;
    int method_const, const_constants, const_code_size, const_name, const_flags;
    int pool_holder, pool_length, pool_source_file, klass_name, klass_source_file, klass_constants;
    int symbol_length, symbol_body;
    int pc_offset, pc_scope;
    uint64_t block_size, const_size, pool_size, pc_size; /* of types */
    uint32_t major;
};
/* Read the tables of libjvm.so at `base`. If something is missing, return false and set *missing to a literal that names it. */
bool hotspot_learn(struct hotspot *h, struct remote *remote, uint64_t base, const char **missing);

/* ---- hotspot_code.c: what is in the code cache ---- */

/* How to find the caller of such code; these numbers are stored in recordings. */
enum hotspot_kind {
    HOTSPOT_COMPILED = 1,    /* a method: frames have a fixed size */
    HOTSPOT_INTERPRETER = 2, /* frames have the interpreter's layout */
    HOTSPOT_STUB = 3,        /* a frame pointer */
    HOTSPOT_SIZED = 4,       /* fixed size, no method */
    HOTSPOT_FRAMELESS = 5,   /* adapters and the like */
};

struct hotspot_blob {
    uint64_t address;
    uint64_t code, code_end;
    uint64_t method; /* 0: none */
    uint32_t size, compile_id;
    uint32_t frame_size;    /* words */
    int32_t frame_complete; /* bytes of code before the frame is complete; -1: never */
    enum hotspot_kind kind;
    char name[64]; /* if it is not a method */
    uint64_t scopes_data, scopes_pcs, scopes_pcs_end, scopes_data_end, metadata, metadata_end;
};
/* Get the range of the whole cache; return false if it does not exist yet. */
bool hotspot_range(const struct hotspot *h, struct remote *remote, uint64_t *low, uint64_t *high);
/* Call each() for every blob in use until it returns false. Return false if the cache can't be walked. */
bool hotspot_each_blob(const struct hotspot *h, struct remote *remote,
                       bool (*each)(void *context, const struct hotspot_blob *blob), void *context);

/* ---- hotspot_method.c ---- */

enum { HOTSPOT_NAME_MOST = 512, HOTSPOT_LINES_MOST = 4096 };

struct hotspot_line {
    uint32_t bytecode, line;
};
struct hotspot_method {
    uint64_t address;
    uint64_t code; /* where its bytecode begins */
    uint32_t code_size;
    char class_name[HOTSPOT_NAME_MOST], name[HOTSPOT_NAME_MOST], file[HOTSPOT_NAME_MOST];
    VECTOR(struct hotspot_line) lines; /* reused from call to call; vector_release() it */
};
/* Read a method; return false if there is none at `address`. */
bool hotspot_method(const struct hotspot *h, struct remote *remote, uint64_t address,
                    struct hotspot_method *method);

/* ---- hotspot_scopes.c: what was inlined where ---- */

struct hotspot_scope {
    uint32_t parent; /* its place + 1; 0: outermost */
    uint64_t method;
    int32_t bytecode; /* -1: unknown */
};
struct hotspot_pc {
    uint32_t offset; /* into the code: valid from the previous one's offset up to this, exclusive */
    uint32_t scope;  /* its place + 1 */
};
struct hotspot_scopes {
    VECTOR(struct hotspot_scope) scopes;
    VECTOR(struct hotspot_pc) pcs; /* ordered */
    VECTOR(uint32_t) offsets;      /* of scopes, in the data */
    struct index index;            /* of scopes by that */
};
/* Read the scopes; *scopes is reused from call to call. Return false if there are none. */
bool hotspot_scopes(const struct hotspot *h, struct remote *remote, const struct hotspot_blob *blob,
                    struct hotspot_scopes *scopes);
void hotspot_scopes_release(struct hotspot_scopes *scopes);

/* Read a number in HotSpot's packed form and advance *at. Return false if it does not end within `size`. */
bool hotspot_number(const struct hotspot *h, const uint8_t *bytes, size_t size, size_t *at,
                    uint32_t *number);

#endif
