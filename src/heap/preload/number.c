/*
 * Stack numbers: two stacks with the same number unwind to the same frames.
 *
 * A stack in which only data changed unwinds as before. So the number is a hash of all words, with their positions, that may be return
 * addresses or saved frame pointers: words that point into the executable's code, or into the area of libraries, stacks and generated code.
 * In that area, pages known to hold heap blocks are excluded. Data mistaken for code only costs sending a stack again; code is never mistaken
 * for data.
 *
 * Few words of a stack qualify. For each thread, the words behind its last numbers (shapes) are kept, keyed by the stack's position and the
 * hook's caller. Unwinding starts at the same position and uses no other words, so if all of them are unchanged, the result is the same
 * whatever else the stack holds.
 */
#include "heap/preload/preload.h"

#include <link.h>
#include <sys/auxv.h>

enum { PAGE = 4096, DATA_PAGES = 1 << 13, NUMBERS = 1 << 18, NUMBER_PROBES = 16 };
enum { MEMOS = 16, SHAPE_SETS = 64, SHAPE_WAYS = 4, SHAPE_WORDS = 250 };

static uintptr_t data_pages[DATA_PAGES];
static uint64_t numbers[NUMBERS];
static uint32_t numbers_used;
static struct {
    uintptr_t code, code_size; /* the executable's */
    uintptr_t high;            /* mappings start here */
    uintptr_t low;             /* the lower of these two */
    uintptr_t heap, heap_end;  /* grown by brk() */
    uintptr_t data, data_end;  /* no data page is known outside this range */
    uint64_t seed;
} layout = {.data = UINTPTR_MAX};

static bool is_in_heap(uintptr_t address) {
    return address - layout.heap < layout.heap_end - layout.heap;
}

/* Two threads may overwrite each other's range. Then a page is unknown, which only costs sending a stack again. */
void stack_saw_block(uintptr_t address) {
    uintptr_t page = address / PAGE;
    if (is_in_heap(address))
        return;
    if (address < __atomic_load_n(&layout.data, __ATOMIC_RELAXED))
        __atomic_store_n(&layout.data, page * PAGE, __ATOMIC_RELAXED);
    if (address >= __atomic_load_n(&layout.data_end, __ATOMIC_RELAXED))
        __atomic_store_n(&layout.data_end, (page + 1) * PAGE, __ATOMIC_RELAXED);
    __atomic_store_n(&data_pages[page % DATA_PAGES], page, __ATOMIC_RELAXED);
}

/* A block at the start of a page may be a mapping of its own; after the free, something else may be mapped there. */
void stack_saw_free(uintptr_t address) {
    uintptr_t page = address / PAGE;
    if (address % PAGE > 64 ||
        __atomic_load_n(&data_pages[page % DATA_PAGES], __ATOMIC_RELAXED) != page)
        return;
    __atomic_store_n(&data_pages[page % DATA_PAGES], 0, __ATOMIC_RELAXED);
}

static void layout_find(void) {
    const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
    unsigned long count = getauxval(AT_PHNUM);
    uintptr_t bias = 0, low = UINTPTR_MAX, high = 0, end = 0;
    for (unsigned long i = 0; headers && i < count; i++)
        if (headers[i].p_type == PT_PHDR)
            bias = (uintptr_t)headers - headers[i].p_vaddr;
    for (unsigned long i = 0; headers && i < count; i++) {
        const ElfW(Phdr) *h = &headers[i];
        uintptr_t from = bias + h->p_vaddr, to = from + h->p_memsz;
        if (h->p_type != PT_LOAD)
            continue;
        end = to > end ? to : end;
        if (h->p_flags & PF_X) {
            low = from < low ? from : low;
            high = to > high ? to : high;
        }
    }
    layout.code = low;
    layout.code_size = high > low ? high - low : 0;
    layout.heap = end;
    layout.heap_end = (uintptr_t)system_call(SYS_brk, 0, 0, 0, 0, 0, 0);
    layout.high = (uintptr_t)real.malloc / 4;
    layout.low = layout.high < layout.code ? layout.high : layout.code;
    __atomic_store_n(&layout.seed, now() | 1, __ATOMIC_RELEASE);
}

static inline uint64_t seed_now(void) {
    return __atomic_load_n(&layout.seed, __ATOMIC_ACQUIRE);
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* On some machines the upper bits are a signature or a tag. */
static inline uintptr_t untagged(uintptr_t word) {
#if defined(__aarch64__)
    return word & (((uintptr_t)1 << 48) - 1);
#else
    return word;
#endif
}

static inline bool is_on_data_page(uintptr_t word) {
    return word >= __atomic_load_n(&layout.data, __ATOMIC_RELAXED) &&
           word < __atomic_load_n(&layout.data_end, __ATOMIC_RELAXED) &&
           __atomic_load_n(&data_pages[word / PAGE % DATA_PAGES], __ATOMIC_RELAXED) == word / PAGE;
}

/* The break may have moved since it was read. */
static bool is_beyond_heap(uintptr_t word) {
    if (word >= layout.heap_end && word - layout.heap_end < (uintptr_t)1 << 30)
        layout.heap_end = (uintptr_t)system_call(SYS_brk, 0, 0, 0, 0, 0, 0);
    return !is_in_heap(word);
}

static inline bool may_be_code(uintptr_t word) {
    if (word - layout.low >= ((uintptr_t)1 << 48) - layout.low)
        return false;
    if (word - layout.code < layout.code_size)
        return true;
    return word >= layout.high && !is_in_heap(word) && !is_on_data_page(word) &&
           is_beyond_heap(word);
}

/* Return what a word adds to the sum. */
static inline uint64_t word_sum(uintptr_t word, uintptr_t place) {
    uint64_t hash = (word ^ place << 16) * 0x9e3779b97f4a7c15u;
    return (hash ^ hash >> 29) * 0xd6e8feb86659fd93u;
}

/* The words that a number was made from, with their positions, counted from the registers; the stack follows those. */
struct shape {
    uint64_t thread; /* 0: none */
    uint64_t seed;   /* of the number */
    uint64_t number;
    uintptr_t registers;
    const void *caller;
    size_t count;
    uint16_t place[SHAPE_WORDS];
    uintptr_t word[SHAPE_WORDS];
};

/* The last stacks of a thread. Threads whose ids differ by MEMOS share one. */
static struct memo {
    uint32_t busy;
    uint32_t next; /* of the ways to overwrite */
    struct shape shapes[SHAPE_SETS][SHAPE_WAYS];
} memos[MEMOS];

static inline uintptr_t word_at(const struct registers *registers, size_t place) {
    return untagged(__atomic_load_n((const uintptr_t *)registers + place, __ATOMIC_RELAXED));
}

static uint64_t thread_key(const struct thread *t) {
    return (uint64_t)process->pid << 32 | (uint32_t)t->tid;
}

/* Return the sum over `count` words from `place` on, and add them to the shape, if there is one. If the shape is too small, its count exceeds
   SHAPE_WORDS. */
static uint64_t words_sum(const struct registers *registers, size_t place, size_t count,
                          struct shape *shape) {
    uint64_t sum = 0;
    for (size_t end = place + count; place < end; place++) {
        uintptr_t word = word_at(registers, place);
        if (!may_be_code(word))
            continue;
        sum += word_sum(word, place);
        if (!shape)
            continue;
        if (shape->count < SHAPE_WORDS) {
            shape->place[shape->count] = (uint16_t)place;
            shape->word[shape->count] = word;
        }
        shape->count++;
    }
    return sum;
}

/* Read all words; takes about a nanosecond per word. */
static uint64_t number_make(const struct thread *t, const struct registers *registers, size_t size,
                            struct shape *shape) {
    size_t stack = (registers->word[HEAP_SP] - (uintptr_t)registers) / sizeof(uintptr_t);
    uint64_t sum = words_sum(registers, 0, HEAP_REGISTERS, shape) +
                   words_sum(registers, stack, size / sizeof(uintptr_t), shape);
    uint64_t hash = mix(mix(seed_now(), thread_key(t)), (uintptr_t)registers);
    return mix(mix(mix(hash, registers->word[HEAP_IP]), sum), size) | 1;
}

static void shape_make(struct shape *shape, const struct thread *t,
                       const struct registers *registers, size_t size, const void *caller) {
    shape->count = 0;
    shape->seed = seed_now();
    shape->number = number_make(t, registers, size, shape);
    shape->thread = shape->count <= SHAPE_WORDS ? thread_key(t) : 0;
    shape->registers = (uintptr_t)registers;
    shape->caller = caller;
}

static bool shape_fits(const struct shape *shape, const struct thread *t,
                       const struct registers *registers, const void *caller) {
    if (shape->registers != (uintptr_t)registers || shape->caller != caller ||
        shape->thread != thread_key(t) || shape->seed != seed_now())
        return false;
    for (size_t i = 0; i < shape->count; i++)
        if (word_at(registers, shape->place[i]) != shape->word[i])
            return false;
    return true;
}

static const struct shape *shape_find(struct memo *memo, const struct thread *t,
                                      const struct registers *registers, size_t size,
                                      const void *caller) {
    struct shape *ways = memo->shapes[mix((uintptr_t)registers, (uintptr_t)caller) % SHAPE_SETS];
    for (size_t i = 0; i < SHAPE_WAYS; i++)
        if (shape_fits(&ways[i], t, registers, caller))
            return &ways[i];
    struct shape *shape = &ways[memo->next++ % SHAPE_WAYS];
    shape_make(shape, t, registers, size, caller);
    return shape;
}

uint64_t stack_number(const struct thread *t, const struct registers *registers, size_t size,
                      const void *caller) {
    if (!seed_now())
        layout_find();
    struct memo *memo = &memos[(uint32_t)t->tid % MEMOS];
    if (__atomic_exchange_n(&memo->busy, 1, __ATOMIC_ACQUIRE))
        return number_make(t, registers, size, NULL);
    uint64_t number = shape_find(memo, t, registers, size, caller)->number;
    __atomic_store_n(&memo->busy, 0, __ATOMIC_RELEASE);
    return number;
}

bool stack_is_new(uint64_t number) {
    for (size_t i = 0; i < NUMBER_PROBES; i++) {
        uint64_t *slot = &numbers[((number >> 8) + i) & (NUMBERS - 1)], none = 0;
        uint64_t held = __atomic_load_n(slot, __ATOMIC_RELAXED);
        if (held == number)
            return false;
        if (!held && __atomic_compare_exchange_n(slot, &none, number, false, __ATOMIC_RELAXED,
                                                 __ATOMIC_RELAXED)) {
            __atomic_add_fetch(&numbers_used, 1, __ATOMIC_RELAXED);
            return true;
        }
    }
    return true; /* the table is full here: send it each time */
}

/* Numbers made with the old seed are never met again. A program that closes libraries again and again must not fill the table with them; a
   thread that adds a number meanwhile only sends a stack once more. */
void stack_code_changed(void) {
    uint64_t seed = seed_now();
    if (!seed)
        return;
    if (__atomic_load_n(&numbers_used, __ATOMIC_RELAXED) > NUMBERS / 4) {
        __atomic_store_n(&numbers_used, 0, __ATOMIC_RELAXED);
        for (size_t i = 0; i < NUMBERS; i++)
            __atomic_store_n(&numbers[i], 0, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&layout.seed, mix(seed, now()) | 1, __ATOMIC_RELEASE);
}

/* Stacks after it in the table may be taken for new and sent again. */
void stack_was_lost(uint64_t number) {
    for (size_t i = 0; i < NUMBER_PROBES; i++) {
        uint64_t held = number;
        __atomic_compare_exchange_n(&numbers[((number >> 8) + i) & (NUMBERS - 1)], &held, 0, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}
