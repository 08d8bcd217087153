/*
 * Stacks: how much of one can be read, and when two are the same.
 *
 * A thread's stack ends below its control block, the first thread's below what the kernel put there. That everything up to there is mapped is verified once for
 * each depth, by asking the kernel to read a few bytes of each page; other stacks (of coroutines, of signal handlers) are verified each time. So no read can fault.
 */
#include "heap/preload/preload.h"

#include <errno.h>
#include <link.h>
#include <sys/auxv.h>

enum { PAGE = 4096, PROBED = 64 };
enum {
    MAIN_GAP = 128 << 20
}; /* that the kernel keeps free for the first thread's stack, at least */

/* How many of `count` pages from `first` on can be read. A system call that no filter refuses copies a few bytes before it finds its other argument wrong. */
static size_t pages_readable(uintptr_t first, size_t count) {
    enum { WRONG = 99, SET_SIZE = 8 };
    size_t good = 1; /* the stack pointer's own, at least */
    while (good < count && system_call(SYS_rt_sigprocmask, WRONG, (long)(first + good * PAGE), 0,
                                       SET_SIZE, 0, 0) == -EINVAL)
        good++;
    return good;
}

/* glibc's: where the first thread's stack was when the program began. Above lie its arguments and environment, some hundred words that say nothing. */
extern void *__libc_stack_end __attribute__((weak));

static uintptr_t main_top(void) {
    enum { COUNT_OF_ARGUMENTS = 8 };
    return &__libc_stack_end && __libc_stack_end ? (uintptr_t)__libc_stack_end + COUNT_OF_ARGUMENTS
                                                 : getauxval(AT_RANDOM);
}

static uintptr_t stack_top(const struct thread *t) {
    uintptr_t top = t->tid == process->pid ? main_top() : thread_block();
    return top & ~(uintptr_t)7;
}

size_t stack_extent(struct thread *t, uintptr_t pointer, size_t most) {
    uintptr_t top = stack_top(t), page = pointer & ~(uintptr_t)(PAGE - 1);
    size_t below = top > pointer ? top - pointer : 0;
    if (t->tid == process->pid && below && below < MAIN_GAP)
        return below < most ? below : most;
    if (t->verified && pointer >= t->verified && below)
        return below < most ? below : most;
    uintptr_t known = t->verified && t->verified > pointer ? t->verified : top;
    if (below && known - page <= PROBED * PAGE) {
        size_t count = (known - page + PAGE - 1) / PAGE;
        if (pages_readable(page, count) == count) {
            t->verified = page;
            return below < most ? below : most;
        }
    }
    size_t count = (pointer + most - page + PAGE - 1) / PAGE;
    uintptr_t end = page + pages_readable(page, count) * PAGE;
    if (below && end > top)
        end = top;
    return end - pointer < most ? end - pointer : most;
}

/* ---- numbers ---- */

/*
 * A stack of which nothing but data changed unwinds as before. So a number is made of all words that may be return addresses or saved frame pointers,
 * with their places: those that point into the executable's code, or to where libraries, stacks and generated code are mapped. Of the latter, pages
 * known to hold blocks are left out. What is taken for code and is none costs a stack that is sent once more; code is never taken for data.
 */
enum { DATA_PAGES = 1 << 13, NUMBERS = 1 << 18, NUMBER_PROBES = 16 };

static uintptr_t data_pages[DATA_PAGES];
static uint64_t numbers[NUMBERS];
static struct {
    uintptr_t code, code_size; /* the executable's */
    uintptr_t high;            /* mappings are from here on */
    uintptr_t least;           /* a power of two: what is below is neither */
    uintptr_t heap, heap_end;  /* grown by brk() */
    uintptr_t data, data_end;  /* outside, no data page is known */
    uint64_t seed;
} layout = {.data = UINTPTR_MAX};

static bool is_in_heap(uintptr_t address) {
    return address - layout.heap < layout.heap_end - layout.heap;
}

/* Two threads may overwrite each other's range: then a page is not known, which costs a stack that is sent once more. */
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

/* A block at the beginning of a page may be a mapping of its own, and something else will be there next. */
void stack_saw_free(uintptr_t address) {
    uintptr_t page = address / PAGE;
    if (address % PAGE <= 64 &&
        __atomic_load_n(&data_pages[page % DATA_PAGES], __ATOMIC_RELAXED) == page)
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
    uintptr_t lowest = layout.code < layout.high ? layout.code : layout.high;
    layout.least = lowest ? (uintptr_t)1 << (63 - __builtin_clzl(lowest)) : 0;
    __atomic_store_n(&layout.seed, now() | 1, __ATOMIC_RELEASE);
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* Once a word of the stack: what depends on the word before it takes five cycles. */
static inline uint64_t mix_fast(uint64_t hash, uint64_t word, uint64_t place) {
    hash *= 0x9e3779b97f4a7c15u;
    return (hash << 29 | hash >> 35) ^ (word * 0xd6e8feb86659fd93u + place);
}

static inline bool is_data(uintptr_t word) {
    uintptr_t page = word / PAGE;
    if (is_in_heap(word))
        return true;
    if (word >= __atomic_load_n(&layout.data, __ATOMIC_RELAXED) &&
        word < __atomic_load_n(&layout.data_end, __ATOMIC_RELAXED) &&
        __atomic_load_n(&data_pages[page % DATA_PAGES], __ATOMIC_RELAXED) == page)
        return true;
    if (word >= layout.heap_end && word - layout.heap_end < (uintptr_t)1 << 30)
        layout.heap_end = (uintptr_t)system_call(SYS_brk, 0, 0, 0, 0, 0, 0);
    return is_in_heap(word);
}

/* The bits above are a signature or a tag on some machines. */
static inline uintptr_t untagged(uintptr_t word) {
#if defined(__aarch64__)
    return word & (((uintptr_t)1 << 48) - 1);
#else
    return word;
#endif
}

static inline uint64_t add_word(uint64_t hash, uintptr_t word, uintptr_t place) {
    uintptr_t plain = untagged(word), limit = (uintptr_t)1 << 48;
    bool is_code = plain - layout.code < layout.code_size;
    if (LIKELY(!is_code && plain - layout.high >= limit - layout.high))
        return hash;
    return is_code || !is_data(plain) ? mix_fast(hash, plain, place) : hash;
}

uint64_t stack_number(const struct thread *t, const struct registers *registers, size_t size) {
    if (!__atomic_load_n(&layout.seed, __ATOMIC_ACQUIRE))
        layout_find();
    uint64_t hash = mix(layout.seed, (uint64_t)process->pid << 32 | (uint32_t)t->tid);
    const uintptr_t *words = (const uintptr_t *)registers->word[HEAP_SP];
    for (size_t i = 0; i < HEAP_REGISTERS; i++)
        hash = add_word(hash, registers->word[i], i);
    hash = mix(hash, registers->word[HEAP_IP]);
    size_t i = 0, count = size / sizeof *words;
    for (; i + 4 <= count; i += 4) { /* many are zero: above a thread's frames, kilobytes */
        if ((words[i] | words[i + 1] | words[i + 2] | words[i + 3]) < layout.least)
            continue;
        for (size_t k = i; k < i + 4; k++)
            hash = add_word(hash, words[k], HEAP_REGISTERS + k);
    }
    for (; i < count; i++)
        hash = add_word(hash, words[i], HEAP_REGISTERS + i);
    return mix(hash, size) | 1;
}

bool stack_is_new(uint64_t number) {
    for (size_t i = 0; i < NUMBER_PROBES; i++) {
        uint64_t *slot = &numbers[((number >> 8) + i) & (NUMBERS - 1)], none = 0;
        uint64_t held = __atomic_load_n(slot, __ATOMIC_RELAXED);
        if (held == number)
            return false;
        if (!held && __atomic_compare_exchange_n(slot, &none, number, false, __ATOMIC_RELAXED,
                                                 __ATOMIC_RELAXED))
            return true;
    }
    return true; /* the table is full here: it will be sent each time */
}

/* Others behind it may be taken for new: they are sent once more. */
void stack_was_lost(uint64_t number) {
    for (size_t i = 0; i < NUMBER_PROBES; i++) {
        uint64_t held = number;
        __atomic_compare_exchange_n(&numbers[((number >> 8) + i) & (NUMBERS - 1)], &held, 0, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}
