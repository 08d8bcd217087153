/*
 * The functions behind the hooks: the first of each name in the libraries that the dynamic linker loaded after this one.
 *
 * This file walks the linker's list itself, because dlsym() may allocate, takes the linker's lock, and had another symbol version before
 * glibc 2.34. The first result is kept, so a library loaded later is never taken for the allocator. Both glibc and musl provide the list
 * through DT_DEBUG of the executable.
 */
#include "heap/preload/preload.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *gnu_hash, *hash;
    uintptr_t bias;
};

static const void *moved(const struct link_map *map, ElfW(Addr) address) {
    return (const void *)(address < map->l_addr ? address + map->l_addr
                                                : address); /* glibc has moved it, musl has not */
}

static struct tables tables_of(const struct link_map *map) {
    struct tables t = {.bias = map->l_addr};
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        const void *at = moved(map, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            t.symbols = at;
        else if (d->d_tag == DT_STRTAB)
            t.names = at;
        else if (d->d_tag == DT_GNU_HASH)
            t.gnu_hash = at;
        else if (d->d_tag == DT_HASH)
            t.hash = at;
    }
    return t;
}

static bool names_equal(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

static bool defines(const struct tables *t, uint32_t i, const char *name) {
    const ElfW(Sym) *symbol = &t->symbols[i];
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value &&
           ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
           ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
           names_equal(t->names + symbol->st_name, name);
}

static uint32_t find_by_gnu_hash(const struct tables *t, const char *name) {
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    uint32_t buckets = t->gnu_hash[0], first = t->gnu_hash[1], bloom = t->gnu_hash[2];
    const uint32_t *bucket = t->gnu_hash + 4 + bloom * (sizeof(ElfW(Addr)) / 4),
                   *chain = bucket + buckets;
    uint32_t i = buckets ? bucket[hash % buckets] : 0;
    for (; i >= first && i; i++) {
        if ((chain[i - first] | 1) == (hash | 1) && defines(t, i, name))
            return i;
        if (chain[i - first] & 1)
            break;
    }
    return 0;
}

static uint32_t find_by_hash(const struct tables *t, const char *name) {
    uint32_t hash = 0;
    for (const char *c = name; *c; c++) {
        hash = (hash << 4) + (unsigned char)*c;
        hash = (hash ^ (hash & 0xf0000000) >> 24) & 0x0fffffff;
    }
    uint32_t buckets = t->hash[0];
    const uint32_t *bucket = t->hash + 2, *chain = bucket + buckets;
    for (uint32_t i = buckets ? bucket[hash % buckets] : 0; i; i = chain[i])
        if (defines(t, i, name))
            return i;
    return 0;
}

static void *find_in(const struct link_map *map, const char *name) {
    struct tables t = tables_of(map);
    if (!t.symbols || !t.names || (!t.gnu_hash && !t.hash))
        return NULL;
    uint32_t i = t.gnu_hash ? find_by_gnu_hash(&t, name) : find_by_hash(&t, name);
    return i ? (void *)(t.bias + t.symbols[i].st_value) : NULL;
}

static const struct link_map *first_map(void) {
    const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR), *dynamic = NULL;
    unsigned long count = getauxval(AT_PHNUM);
    uintptr_t bias = 0;
    for (unsigned long i = 0; headers && i < count; i++) {
        if (headers[i].p_type == PT_PHDR)
            bias = (uintptr_t)headers - headers[i].p_vaddr;
        if (headers[i].p_type == PT_DYNAMIC)
            dynamic = &headers[i];
    }
    for (const ElfW(Dyn) *d = dynamic ? (const void *)(bias + dynamic->p_vaddr) : NULL;
         d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_DEBUG && d->d_un.d_ptr)
            return ((const struct r_debug *)d->d_un.d_ptr)->r_map;
    return NULL;
}

static void *find_behind(const char *name, const struct link_map **where) {
    bool behind = false;
    for (const struct link_map *map = first_map(); map; map = map->l_next) {
        void *found = behind ? find_in(map, name) : NULL;
        if (found) {
            *where = map;
            return found;
        }
        behind |= map->l_ld == _DYNAMIC;
    }
    return NULL;
}

static const struct link_map *allocator; /* the library that has malloc */

void *real_find_one(const char *name, bool *allocators) {
    const struct link_map *where = NULL;
    void *found = find_behind(name, &where);
    if (!allocator)
        real_find();
    *allocators = where == allocator;
    return found;
}

void *real_behind(void **slot, const char *name) {
    void *found = __atomic_load_n(slot, __ATOMIC_RELAXED);
    bool unused;
    if (LIKELY(found))
        return found;
    found = real_find_one(name, &unused);
    if (!found)
        __builtin_trap(); /* the caller linked against it */
    __atomic_store_n(slot, found, __ATOMIC_RELAXED);
    return found;
}

/* The address range of the allocator's library, from its program headers; empty until known. */
static uintptr_t allocator_from, allocator_to;

static void allocator_find_extent(void) {
    uintptr_t base = allocator->l_addr, end = 0;
    const ElfW(Ehdr) *header = (const void *)base;
    if (!base || header->e_ident[EI_MAG0] != ELFMAG0 || header->e_ident[EI_MAG1] != ELFMAG1)
        return;
    const ElfW(Phdr) *segments = (const void *)(base + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz > end)
            end = segments[i].p_vaddr + segments[i].p_memsz;
    allocator_from = base;
    __atomic_store_n(&allocator_to, base + end, __ATOMIC_RELEASE);
}

bool real_is_allocator(const void *code) {
    if (!allocator)
        real_find();
    uintptr_t to = __atomic_load_n(&allocator_to, __ATOMIC_ACQUIRE);
    return (uintptr_t)code >= allocator_from && (uintptr_t)code < to;
}

bool real_is_in_executable(const char *name) {
    const struct link_map *map = first_map();
    return map && find_in(map, name);
}

static void *find_or_die(const char *name) {
    const struct link_map *where = NULL;
    void *found = find_behind(name, &where);
    if (!found)
        __builtin_trap(); /* every libc has it */
    if (!allocator)
        allocator = where;
    return found;
}

static void *find(const char *name) {
    const struct link_map *where = NULL;
    return find_behind(name, &where);
}

void real_find(void) {
    struct real found = {
        .malloc = find_or_die("malloc"), /* first: its library is the allocator's */
        .calloc = find_or_die("calloc"),
        .realloc = find_or_die("realloc"),
        .free = find_or_die("free"),
        .posix_memalign = find("posix_memalign"),
        .aligned_alloc = find("aligned_alloc"),
        .memalign = find("memalign"),
        .valloc = find("valloc"),
        .pvalloc = find("pvalloc"),
    };
    allocator_find_extent();
    real = found; /* another thread may do the same, with the same values */
}

/* ---- what the pointers hold until then ---- */

static void *first_malloc(size_t size) {
    real_find();
    return real.malloc(size);
}

static void *first_calloc(size_t count, size_t size) {
    real_find();
    return real.calloc(count, size);
}

static void *first_realloc(void *old, size_t size) {
    real_find();
    return real.realloc(old, size);
}

static void first_free(void *address) {
    real_find();
    real.free(address);
}

static int first_posix_memalign(void **result, size_t alignment, size_t size) {
    real_find();
    return real.posix_memalign(result, alignment, size);
}

static void *first_aligned_alloc(size_t alignment, size_t size) {
    real_find();
    return real.aligned_alloc(alignment, size);
}

static void *first_memalign(size_t alignment, size_t size) {
    real_find();
    return real.memalign(alignment, size);
}

static void *first_valloc(size_t size) {
    real_find();
    return real.valloc(size);
}

static void *first_pvalloc(size_t size) {
    real_find();
    return real.pvalloc(size);
}

struct real real = {first_malloc,   first_calloc,         first_realloc,
                    first_free,     first_posix_memalign, first_aligned_alloc,
                    first_memalign, first_valloc,         first_pvalloc};
