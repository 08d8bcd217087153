/*
 * Private to the room: allocations of running processes, recorded by a BPF program on uprobes of their allocators.
 */
#ifndef WICK_RECORD_HEAP_CATCH_H
#define WICK_RECORD_HEAP_CATCH_H

#include "heap/heap.h"
#include "record/heap_bpf.h"
#include "record/internal.h"

/* ---- heap_find.c: the functions of an allocator ---- */

struct catch_site {
    uint64_t offset; /* in the file */
    uint64_t cookie; /* enum catch_kind and more: heap_bpf.h */
};

/* A file that has an allocator, as mapped by the process. */
struct catch_file {
    int descriptor;
    uint64_t offset, size; /* its code, in the file */
    VECTOR(struct catch_site) sites;
};
typedef VECTOR(struct catch_file) catch_files;

struct catch_costs {
    size_t stepped;  /* functions with an instruction that the kernel can't emulate … */
    char where[100]; /* … the first: "free of libc.so.6" */
};

/* Find all of them; `maps`: also functions that map memory. Fail with ERROR_DENIED if there is none, or if the process has another kind of
   heap. */
bool catch_find(pid_t pid, bool maps, catch_files *files, struct catch_costs *costs,
                struct error *error);
void catch_files_release(catch_files *files);

/* Return the offset in x86-64 code where a probe costs least, the arguments `kept` (bits: the first to the fourth) are still in place, and
   the stack is as at the function's start. *stepped: the instruction there is single-stepped. */
size_t catch_place(const uint8_t *code, size_t size, unsigned kept, bool *stepped);

/* ---- heap_attach.c: all processes of a recording ---- */

struct attached *attached_open(struct recording *r, struct error *error);
void attached_close(struct attached *attached);
void attached_enable(struct attached *attached, bool on);
int attached_descriptor(const struct attached *attached);
/* Read what was caught; from time to time, look for new children of the processes. */
bool attached_drain(struct attached *attached, struct recording *r, heap_reader *reader,
                    unsigned *busy, struct error *error);
struct heap_losses attached_finish(struct attached *attached, struct notes *notes);
uint64_t attached_with_arenas(const struct attached *attached, enum heap_arenas arenas);

/* ---- heap_bpf.c ---- */

struct catcher *catcher_open(uint64_t mean, struct error *error);
bool catcher_add(struct catcher *catcher, pid_t pid, const catch_files *files, struct error *error);
void catcher_enable(struct catcher *catcher, bool on);
int catcher_descriptor(const struct catcher *catcher);
/* Read everything in the rings; double the mean if something was lost. *busy: as for heap_drain(). */
bool catcher_drain(struct catcher *catcher, heap_reader *reader, void *context, unsigned *busy,
                   struct error *error);
struct heap_losses catcher_losses(const struct catcher *catcher);
uint64_t catcher_calls(const struct catcher *catcher);
void catcher_close(struct catcher *catcher);

#endif
