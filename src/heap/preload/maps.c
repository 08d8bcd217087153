/*
 * Hooks of mmap, munmap, mremap, brk and sbrk, for recordings that include mappings.
 *
 * Only memory that the program itself requests from the kernel counts: accessible anonymous mappings and growth of the break. Mappings of
 * files belong to the page cache, and inaccessible mappings (PROT_NONE) only reserve addresses. The allocator's own mappings are skipped
 * because the blocks in them are recorded: libc's calls never reach these hooks, and another allocator's calls are recognized by their return
 * address.
 *
 * Times work as in the other hooks: a mapping is stamped after the call, an unmapping before it, so that both alternate in time order for
 * each page.
 */
#undef _FILE_OFFSET_BITS /* otherwise mmap would be renamed to mmap64 */
#include "heap/preload/preload.h"

#include <stdarg.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* Return the time before the call, or 0 if it is not recorded. */
static uint64_t begin(const void *caller) {
    bool wanted = !thread.inside && process_is_recorded() && shared->maps;
    return wanted && !real_is_allocator(caller) ? now() : 0;
}

static size_t whole_pages(size_t size) {
    size_t page = getauxval(AT_PAGESZ);
    return (size + page - 1) & ~(page - 1);
}

typedef void *mmap_function(void *, size_t, int, int, int, off_t);
EXPORT void *mmap(void *hint, size_t size, int access, int flags, int file, off_t offset) {
    static void *slot;
    mmap_function *real_mmap = (mmap_function *)real_behind(&slot, "mmap");
    uint64_t time = begin(__builtin_return_address(0));
    void *made = real_mmap(hint, size, access, flags, file, offset);
    if (!time || made == MAP_FAILED)
        return made;
    if ((flags & MAP_ANONYMOUS) && access != PROT_NONE)
        heap_take(made, whole_pages(size), HEAP_MAP, __builtin_return_address(0));
    else if (flags & MAP_FIXED)
        heap_unmapped(made, whole_pages(size), time);
    return made;
}

EXPORT void *mmap64(void *hint, size_t size, int access, int flags, int file, off_t offset)
    __attribute__((weak, alias("mmap")));

typedef int munmap_function(void *, size_t);
EXPORT int munmap(void *address, size_t size) {
    static void *slot;
    munmap_function *real_munmap = (munmap_function *)real_behind(&slot, "munmap");
    uint64_t time = begin(__builtin_return_address(0));
    int status = real_munmap(address, size);
    if (time && status == 0)
        heap_unmapped(address, whole_pages(size), time);
    return status;
}

/* A part of a mapping may be moved, and the old range may stay (MREMAP_DONTUNMAP). The reader of the recording knows whether the old range
   counted. */
typedef void *mremap_function(void *, size_t, size_t, int, ...);
EXPORT void *mremap(void *old, size_t old_size, size_t size, int flags, ...) {
    enum { STAYS = 4 };
    static void *slot;
    mremap_function *real_mremap = (mremap_function *)real_behind(&slot, "mremap");
    va_list rest;
    va_start(rest, flags);
    void *place = va_arg(rest, void *);
    va_end(rest);
    uint64_t time = begin(__builtin_return_address(0));
    void *made = real_mremap(old, old_size, size, flags, place);
    if (!time || made == MAP_FAILED || !old_size)
        return made;
    if (!(flags & STAYS))
        heap_unmapped(old, whole_pages(old_size), time);
    heap_take(made, whole_pages(size), flags & STAYS ? HEAP_MAP : HEAP_REMAP,
              __builtin_return_address(0));
    return made;
}

typedef void *sbrk_function(intptr_t);
EXPORT void *sbrk(intptr_t step) {
    static void *slot;
    sbrk_function *real_sbrk = (sbrk_function *)real_behind(&slot, "sbrk");
    uint64_t time = step ? begin(__builtin_return_address(0)) : 0;
    void *before = real_sbrk(step);
    if (!time || before == MAP_FAILED)
        return before;
    if (step > 0)
        heap_take(before, (size_t)step, HEAP_MAP, __builtin_return_address(0));
    else
        heap_unmapped((char *)before + step, (size_t)-step, time);
    return before;
}

typedef int brk_function(void *);
EXPORT int brk(void *end) {
    static void *slot;
    brk_function *real_brk = (brk_function *)real_behind(&slot, "brk");
    uint64_t time = begin(__builtin_return_address(0));
    char *before = time ? (char *)system_call(SYS_brk, 0, 0, 0, 0, 0, 0) : NULL;
    int status = real_brk(end);
    if (!time || status != 0)
        return status;
    if ((char *)end > before)
        heap_take(before, (size_t)((char *)end - before), HEAP_MAP, __builtin_return_address(0));
    else if ((char *)end < before)
        heap_unmapped(end, (size_t)(before - (char *)end), time);
    return status;
}
