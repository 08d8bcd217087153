/*
 * Allocation that never fails, arenas, vectors, buffers and hash indexes.
 *
 * Fresh memory costs time (about a millisecond per megabyte that the kernel has to clear), so vectors double, arenas
 * take blocks that grow with use, and memory that will be written anyway is not cleared.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static void out_of_memory_default(void) {
    static const char line[] = "wick: out of memory\n";
    out_remove_temporaries();
    (void)!write(STDERR_FILENO, line, sizeof line - 1);
    _exit(ERROR_INTERNAL);
}

static void (*out_of_memory)(void) = out_of_memory_default;

void memory_set_hook(void (*hook)(void)) {
    out_of_memory = hook ? hook : out_of_memory_default;
}

static void *memory_checked(void *memory) {
    if (!memory) {
        out_of_memory();
        abort();
    }
    return memory;
}

void *memory_alloc(size_t size) {
    return memory_checked(malloc(size ? size : 1));
}

void *memory_zero(size_t count, size_t size) {
    return memory_checked(calloc(count ? count : 1, size ? size : 1));
}

void *memory_resize(void *old, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return memory_checked(NULL);
    return memory_checked(realloc(old, bytes ? bytes : 1));
}

enum { HUGE_PAGE = 2 << 20 };

/* Use huge pages if the kernel has some: they take a fifth of the time that small pages take to be mapped. */
static void *memory_huge(size_t bytes) {
    if (bytes > SIZE_MAX - HUGE_PAGE)
        return memory_checked(NULL);
    size_t rounded = (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
    void *memory = memory_checked(aligned_alloc(HUGE_PAGE, rounded));
    madvise(memory, rounded, MADV_HUGEPAGE);
    return memory;
}

/* Write to the table at once: it is read before it is filled, and a page that was read but never written faults a
   second time when it is written, which interrupts all other threads. */
void *memory_table(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return memory_checked(NULL);
    return memset(bytes < HUGE_PAGE ? memory_alloc(bytes) : memory_huge(bytes), 0, bytes);
}

char *memory_copy(const void *data, size_t size) {
    char *copy = memory_alloc(size + 1);
    if (size)
        memcpy(copy, data, size);
    copy[size] = 0;
    return copy;
}

char *memory_print(size_t *size, const char *format, va_list list) {
    char *text = NULL;
    int length = vasprintf(&text, format, list);
    if (length < 0)
        memory_checked(NULL);
    if (size)
        *size = (size_t)length;
    return text;
}

/* ---- arenas ---- */

struct arena_block {
    struct arena_block *older;
    size_t size;
    char data[] __attribute__((aligned(16)));
};

enum { ARENA_FIRST = 4096, ARENA_LARGEST = 1 << 20 };

void *arena_alloc(struct arena *arena, size_t size) {
    size_t rounded;
    if (__builtin_add_overflow(size, 7, &rounded))
        memory_checked(NULL);
    rounded &= ~(size_t)7;
    if (rounded > arena->left) {
        size_t block_size = arena->newest ? arena->newest->size * 2 : ARENA_FIRST;
        if (block_size > ARENA_LARGEST)
            block_size = ARENA_LARGEST;
        if (block_size < rounded)
            block_size = rounded;
        struct arena_block *block = memory_alloc(sizeof *block + block_size);
        block->older = arena->newest;
        block->size = block_size;
        arena->newest = block;
        arena->next = block->data;
        arena->left = block_size;
    }
    void *result = arena->next;
    arena->next += rounded;
    arena->left -= rounded;
    return result;
}

struct text arena_copy(struct arena *arena, struct text t) {
    char *copy = arena_alloc(arena, t.length + 1);
    if (t.length)
        memcpy(copy, t.data, t.length);
    copy[t.length] = 0;
    return (struct text){copy, t.length};
}

void arena_release(struct arena *arena) {
    for (struct arena_block *block = arena->newest; block;) {
        struct arena_block *older = block->older;
        free(block);
        block = older;
    }
    *arena = (struct arena){0};
}

/* ---- vectors and buffers ---- */

/* Move whole huge pages by their page tables and return the number of bytes moved: copying them would cost as much
   again as filling them, and hold both copies. The source stays mapped, because free() needs it. Move nothing if
   there are no such pages, or if the kernel is older than 5.7. */
static size_t move_pages(void *to, void *from, size_t bytes) {
    size_t whole = bytes & ~(size_t)(HUGE_PAGE - 1);
    if (!whole || (uintptr_t)from % HUGE_PAGE)
        return 0;
    int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    return mremap(from, whole, whole, how, to) == MAP_FAILED ? 0 : whole;
}

/* Large vectors grow by more, since only pages that are touched take memory. */
void vector_grow(void **items, size_t *capacity, size_t wanted, size_t item_size) {
    if (wanted <= *capacity)
        return;
    size_t bytes, factor = *capacity > HUGE_PAGE / item_size ? 4 : 2;
    size_t grown = *capacity ? *capacity * factor : 16;
    if (grown < wanted)
        grown = wanted;
    if (__builtin_mul_overflow(grown, item_size, &bytes))
        memory_checked(NULL);
    if (bytes < HUGE_PAGE) {
        *items = memory_resize(*items, grown, item_size);
    } else {
        char *moved = memory_huge(bytes);
        size_t held = *capacity * item_size, done = move_pages(moved, *items, held);
        if (done < held)
            memcpy(moved + done, (char *)*items + done, held - done);
        free(*items);
        *items = moved;
    }
    *capacity = grown;
}

void buffer_add(struct buffer *buffer, struct text t) {
    if (t.length > buffer->capacity - buffer->count)
        vector_reserve(buffer, buffer->count + t.length);
    if (t.length)
        memcpy(buffer->items + buffer->count, t.data, t.length);
    buffer->count += t.length;
}

void buffer_add_char(struct buffer *buffer, char c) {
    vector_push(buffer, c);
}

void buffer_add_utf8(struct buffer *buffer, uint32_t point) {
    if (point < 0x80) {
        buffer_add_char(buffer, (char)point);
        return;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    buffer_add_char(buffer, (char)(leads[more] | point >> 6 * more));
    while (more-- > 0)
        buffer_add_char(buffer, (char)(0x80 | (point >> 6 * more & 0x3f)));
}

void buffer_add_u64(struct buffer *buffer, uint64_t value) {
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + value % 10);
    while (value /= 10);
    buffer_add(buffer, (struct text){digits + at, sizeof digits - at});
}

void buffer_add_hex(struct buffer *buffer, uint64_t value) {
    char digits[16];
    size_t at = sizeof digits;
    do
        digits[--at] = "0123456789abcdef"[value & 15];
    while (value >>= 4);
    buffer_add(buffer, (struct text){digits + at, sizeof digits - at});
}

void buffer_printf(struct buffer *buffer, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t length;
    char *line = memory_print(&length, format, list);
    va_end(list);
    buffer_add(buffer, (struct text){line, length});
    free(line);
}

void buffer_release(struct buffer *buffer) {
    vector_release(buffer);
}

/* ---- hashing ---- */

/* Set to random values before main(). Until then, and in fuzzers, whose runs must repeat, they are those of digests. */
uint64_t hash_secret[2] = {0x9E3779B97F4A7C15ull, 0xD6E8FEB86659FD93ull};

/* The key of wide hashes of long inputs. */
static uint8_t wide_secret[XXH3_SECRET_DEFAULT_SIZE];

void hash_set_seed(uint64_t seed) {
    hash_secret[0] = digest_mix(seed, 1);
    hash_secret[1] = digest_mix(seed, 2);
    XXH3_generateSecret_fromSeed(wide_secret, hash_secret[1]);
}

__attribute__((constructor)) static void hash_seed_randomly(void) {
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    uint64_t secret[2];
    const void *given = (const void *)getauxval(AT_RANDOM);
    if (getrandom(secret, sizeof secret, GRND_NONBLOCK) == sizeof secret)
        memcpy(hash_secret, secret, sizeof hash_secret);
    else if (given)
        memcpy(hash_secret, given, sizeof hash_secret);
#endif
    XXH3_generateSecret_fromSeed(wide_secret, hash_secret[1]);
}

struct hash_wide hash_wide(const void *data, size_t size) {
    XXH128_hash_t hash =
        XXH3_128bits_withSecretandSeed(data, size, wide_secret, sizeof wide_secret, hash_secret[0]);
    return (struct hash_wide){hash.low64, hash.high64};
}

uint64_t hash_bytes(const void *data, size_t size) {
    return XXH3_64bits_withSeed(data, size, hash_secret[0]);
}

uint64_t digest_bytes(const void *data, size_t size) {
    return XXH3_64bits(data, size);
}

static void index_place(struct index *index, uint64_t entry) {
    uint32_t slot = (uint32_t)(entry >> 32) & index->mask;
    while ((uint32_t)index->slots[slot])
        slot = (slot + 1) & index->mask;
    index->slots[slot] = entry;
}

static void index_resize(struct index *index, uint32_t size) {
    struct index old = *index;
    index->slots = memory_table(size, sizeof *index->slots);
    index->mask = size - 1;
    for (uint32_t i = 0; old.slots && i <= old.mask; i++)
        if ((uint32_t)old.slots[i])
            index_place(index, old.slots[i]);
    free(old.slots);
}

/* Never more than five eighths full. */
void index_reserve(struct index *index, size_t count) {
    size_t size = index->slots ? (size_t)index->mask + 1 : 16;
    while (count > size / 8 * 5)
        size *= 2;
    if (size > UINT32_MAX)
        memory_checked(NULL);
    if (!index->slots || size > (size_t)index->mask + 1)
        index_resize(index, (uint32_t)size);
}

void index_add(struct index *index, uint64_t hash, uint32_t id) {
    assert(id != 0);
    index_reserve(index, (size_t)index->count + 1);
    index_place(index, hash >> 32 << 32 | id);
    index->count++;
}

void index_release(struct index *index) {
    free(index->slots);
    *index = (struct index){0};
}
