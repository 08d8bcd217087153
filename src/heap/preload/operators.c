/*
 * C++'s operators new and delete, under their mangled names.
 *
 * Those of libstdc++ and libc++ call malloc() and free(), where they are seen; the hooks step aside without a frame of their own. Allocators have their own
 * operators, which go past malloc(): those are recorded here.
 */
#include "heap/preload/preload.h"

struct operator{
    void *function;
    bool allocators;
};

/* Looked for when it is first called: the library may be loaded late. */
static inline void *operator_find(struct operator* operator, const char * name) {
    void *found = __atomic_load_n(&operator->function, __ATOMIC_ACQUIRE);
    if (LIKELY(found))
        return found;
    found = real_find_one(name, &operator->allocators);
    if (!found)
        __builtin_trap(); /* who calls it has linked it */
    __atomic_store_n(&operator->function, found, __ATOMIC_RELEASE);
    return found;
}

#define NEW(name, parameters, ...)                                                                 \
    EXPORT void *name parameters;                                                                  \
    EXPORT void *name parameters {                                                                 \
        static struct operator operator;                                                           \
        void *(*behind)parameters = operator_find(&operator, #name);                               \
        if (!operator.allocators)                                                                  \
            return behind(__VA_ARGS__);                                                            \
        void *address = behind(__VA_ARGS__);                                                       \
        allocated(address, size);                                                                  \
        return address;                                                                            \
    }

#define DELETE(name, parameters, ...)                                                              \
    EXPORT void name parameters;                                                                   \
    EXPORT void name parameters {                                                                  \
        static struct operator operator;                                                           \
        void(*behind) parameters = operator_find(&operator, #name);                                \
        if (operator.allocators)                                                                   \
            freeing(address);                                                                      \
        behind(__VA_ARGS__);                                                                       \
    }

NEW(_Znwm, (size_t size), size)
NEW(_Znam, (size_t size), size)
NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *nothrow), size, nothrow)
NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *nothrow), size, nothrow)
NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), size, alignment)
NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), size, alignment)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *nothrow), size,
    alignment, nothrow)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t alignment, const void *nothrow), size,
    alignment, nothrow)

DELETE(_ZdlPv, (void *address), address)
DELETE(_ZdaPv, (void *address), address)
DELETE(_ZdlPvm, (void *address, size_t size), address, size)
DELETE(_ZdaPvm, (void *address, size_t size), address, size)
DELETE(_ZdlPvRKSt9nothrow_t, (void *address, const void *nothrow), address, nothrow)
DELETE(_ZdaPvRKSt9nothrow_t, (void *address, const void *nothrow), address, nothrow)
DELETE(_ZdlPvSt11align_val_t, (void *address, size_t alignment), address, alignment)
DELETE(_ZdaPvSt11align_val_t, (void *address, size_t alignment), address, alignment)
DELETE(_ZdlPvmSt11align_val_t, (void *address, size_t size, size_t alignment), address, size,
       alignment)
DELETE(_ZdaPvmSt11align_val_t, (void *address, size_t size, size_t alignment), address, size,
       alignment)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *address, size_t alignment, const void *nothrow),
       address, alignment, nothrow)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *address, size_t alignment, const void *nothrow),
       address, alignment, nothrow)
