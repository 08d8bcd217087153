/*
 * The hooks. An allocation that is not sampled costs a subtraction, and a free costs a load. The real function is then tail-called, without a
 * frame for the hook.
 *
 * Times: an allocation is stamped after the real function has returned, and a free before the real function is called. So allocations and
 * frees of one address, by any threads, alternate in time order.
 */
#include "heap/preload/preload.h"

#include <dlfcn.h>
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

/* A free and an allocation; another thread may get the old block before the real function returns. If memory ran out, the old block stays
   allocated. With size 0, glibc frees it and other libraries shrink it. */
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

/* Another library may be loaded at the same address, and stacks through it then look like earlier ones. */
typedef int dlclose_function(void *);
EXPORT int dlclose(void *handle) {
    static void *slot;
    int status = ((dlclose_function *)real_behind(&slot, "dlclose"))(handle);
    stack_code_changed();
    return status;
}
