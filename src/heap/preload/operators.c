/*
 * C++'s operators new and delete, under their mangled names.
 *
 * The operators of libstdc++ and libc++ call malloc() and free(), which have hooks, so these hooks tail-call them without a frame. Some
 * allocators define their own operators, which bypass malloc(): those are recorded here.
 */
#include "heap/preload/preload.h"

struct operator{
    void *function;
    bool allocators;
};

/* Look it up on the first call: its library may be loaded late. */
static void operator_find(struct operator* operator, const char * name) {
    void *found = real_find_one(name, &operator->allocators);
    if (!found)
        __builtin_trap(); /* cannot happen: the caller linked against it */
    __atomic_store_n(&operator->function, found, __ATOMIC_RELEASE);
}

/* Keep the rare path separate, so that all other calls need no frame. */
#define NEW(name, parameters, ...)                                                                 \
    EXPORT void *name parameters;                                                                  \
    static struct operator name##_;                                                                \
    static __attribute__((noinline)) void *name##_first parameters {                               \
        operator_find(&name##_, #name);                                                            \
        return name(__VA_ARGS__);                                                                  \
    }                                                                                              \
    EXPORT void *name parameters {                                                                 \
        void *(*behind)parameters = __atomic_load_n(&name##_.function, __ATOMIC_ACQUIRE);          \
        if (UNLIKELY(!behind))                                                                     \
            return name##_first(__VA_ARGS__);                                                      \
        if (!name##_.allocators || passes(size))                                                   \
            return behind(__VA_ARGS__);                                                            \
        return taken(behind(__VA_ARGS__), size);                                                   \
    }

#define DELETE(name, parameters, ...)                                                              \
    EXPORT void name parameters;                                                                   \
    static struct operator name##_;                                                                \
    static __attribute__((noinline)) void name##_rare parameters {                                 \
        if (!__atomic_load_n(&name##_.function, __ATOMIC_ACQUIRE))                                 \
            operator_find(&name##_, #name);                                                        \
        if (name##_.allocators && filter_may_have(address))                                        \
            freeing(address);                                                                      \
        void(*behind) parameters = name##_.function;                                               \
        return behind(__VA_ARGS__);                                                                \
    }                                                                                              \
    EXPORT void name parameters {                                                                  \
        void(*behind) parameters = __atomic_load_n(&name##_.function, __ATOMIC_ACQUIRE);           \
        if (LIKELY(behind && !(name##_.allocators && filter_may_have(address))))                   \
            return behind(__VA_ARGS__);                                                            \
        return name##_rare(__VA_ARGS__);                                                           \
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
