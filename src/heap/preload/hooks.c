/*
 * The hooks. What is not taken costs a subtraction for an allocation and a load for a free; the real function is then called last, without a frame of the hook's.
 *
 * Times: an allocation is stamped after the real function has returned, a free before the real one is called. So of one address, by whatever threads, allocations and frees
 * alternate in order of time.
 */
#include "heap/preload/preload.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

EXPORT void *malloc(size_t size) {
    if (LIKELY(passes(size)))
        return real.malloc(size);
    return taken(real.malloc(size), size);
}

EXPORT void *calloc(size_t count, size_t size) {
    if (LIKELY(passes(count * size)))
        return real.calloc(count, size);
    return taken(real.calloc(count, size), count * size);
}

EXPORT void free(void *address) {
    if (LIKELY(!filter_may_have(address)))
        return real.free(address);
    freeing(address);
    return real.free(address);
}

/* A free and an allocation; the old block may be given to another thread before the real function returns. If there was no memory, it lives on. With size 0
   glibc frees it, others make it small. */
EXPORT void *realloc(void *old, size_t size) {
    uint64_t time = filter_may_have(old) ? heap_forget(old) : 0;
    void *address = real.realloc(old, size);
    if (UNLIKELY(time)) {
        if (address || !size)
            heap_freed(old, time);
        else
            heap_remember(old);
    }
    allocated(address, size);
    return address;
}

EXPORT void *reallocarray(void *old, size_t count, size_t size) {
    size_t all;
    if (__builtin_mul_overflow(count, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, all);
}

EXPORT int posix_memalign(void **result, size_t alignment, size_t size) {
    int status = real.posix_memalign(result, alignment, size);
    if (status == 0)
        allocated(*result, size);
    return status;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    void *address = real.aligned_alloc(alignment, size);
    allocated(address, size);
    return address;
}

EXPORT void *memalign(size_t alignment, size_t size) {
    void *address = real.memalign(alignment, size);
    allocated(address, size);
    return address;
}

EXPORT void *valloc(size_t size) {
    void *address = real.valloc(size);
    allocated(address, size);
    return address;
}

EXPORT void *pvalloc(size_t size) {
    void *address = real.pvalloc(size);
    allocated(address, size);
    return address;
}
