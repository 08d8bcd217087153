/*
 * Private to the room: allocations of processes that run already, by a BPF program on uprobes of their allocators.
 */
#ifndef WICK_RECORD_HEAP_CATCH_H
#define WICK_RECORD_HEAP_CATCH_H

#include "heap/heap.h"
#include "record/heap_bpf.h"
#include "record/internal.h"

/* ---- heap_find.c: the functions of an allocator ---- */

struct catch_site {
    uint64_t offset; /* in the file */
    uint64_t cookie; /* enum catch_kind, and CATCH_MAY_NEST */
};

/* A file that has an allocator, as the process has it mapped. */
struct catch_file {
    int descriptor;
    VECTOR(struct catch_site) sites;
};
typedef VECTOR(struct catch_file) catch_files;

struct catch_costs {
    size_t stepped;  /* functions that the kernel can't emulate an instruction of … */
    char where[100]; /* … the first: "free of libc.so.6" */
};

/* All of them. ERROR_DENIED: there is none, or the process has a heap of another kind. */
bool catch_find(pid_t pid, catch_files *files, struct catch_costs *costs, struct error *error);
void catch_files_release(catch_files *files);

/* The offset of the place in x86-64 code at which a probe costs least, the arguments `kept` (bits: the first, second and third) are still there, and
   the stack is as it was at the beginning. *stepped: it is single-stepped. */
size_t catch_place(const uint8_t *code, size_t size, unsigned kept, bool *stepped);

/* ---- heap_attach.c: all processes of a recording ---- */

struct attached *attached_open(struct recording *r, struct error *error);
void attached_close(struct attached *attached);
void attached_enable(struct attached *attached, bool on);
int attached_descriptor(const struct attached *attached);
/* What was caught; once in a while, looks for children that the processes have made since. */
bool attached_drain(struct attached *attached, struct recording *r, heap_reader *reader,
                    unsigned *busy, struct error *error);
struct heap_losses attached_finish(struct attached *attached, struct notes *notes);

/* ---- heap_bpf.c ---- */

struct catcher *catcher_open(uint64_t mean, struct error *error);
bool catcher_add(struct catcher *catcher, pid_t pid, const catch_files *files, struct error *error);
void catcher_enable(struct catcher *catcher, bool on);
int catcher_descriptor(const struct catcher *catcher);
/* Everything in the rings; the mean is doubled if something was lost. *busy: as heap_drain(). */
bool catcher_drain(struct catcher *catcher, heap_reader *reader, void *context, unsigned *busy,
                   struct error *error);
struct heap_losses catcher_losses(const struct catcher *catcher);
uint64_t catcher_calls(const struct catcher *catcher);
void catcher_close(struct catcher *catcher);

#endif
