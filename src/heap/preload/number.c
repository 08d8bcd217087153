/*
 * Numbers of stacks: two with the same number unwind alike.
 *
 * A stack of which nothing but data changed unwinds as before. So a number is made of all words that may be return addresses or saved frame pointers,
 * with their places: those that point into the executable's code, or to where libraries, stacks and generated code are mapped. Of the latter, pages
 * known to hold blocks are left out. What is taken for code and is none costs a stack that is sent once more; code is never taken for data.
 *
 * The number is a sum over words, kept for lines of 64 bytes beside a copy of them: of most lines nothing has changed since the thread's last allocation, and of the others
 * only the words that have changed are looked at.
 */
#include "heap/preload/preload.h"

#include <link.h>
#include <sys/auxv.h>

enum { PAGE = 4096, LINE = 64, LINE_WORDS = LINE / sizeof(uintptr_t) };
enum { DATA_PAGES = 1 << 13, NUMBERS = 1 << 18, NUMBER_PROBES = 16 };

/* What the lines of a stack add to its number, as they were when a thread last looked. Threads whose ids differ by MEMOS share one. */
enum { MEMOS = 16, MEMO_LINES = HEAP_STACK_MOST / LINE };
struct memo {
    uint32_t busy;
    struct {
        uintptr_t address;
        uint64_t sum;
        uint32_t counted;    /* a bit for each word that is in the sum */
        uint32_t generation; /* in which some word was known for data by its page; 0: none was */
    } lines[MEMO_LINES];
    uintptr_t words[MEMO_LINES][LINE_WORDS];
};

static struct memo memos[MEMOS];
static uint32_t generation = 1; /* grows when a page is no longer known to hold data */
static uintptr_t data_pages[DATA_PAGES];
static uint64_t numbers[NUMBERS];
static struct {
    uintptr_t code, code_size; /* the executable's */
    uintptr_t high;            /* mappings are from here on */
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
    if (address % PAGE > 64 ||
        __atomic_load_n(&data_pages[page % DATA_PAGES], __ATOMIC_RELAXED) != page)
        return;
    __atomic_store_n(&data_pages[page % DATA_PAGES], 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELAXED);
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
    __atomic_store_n(&layout.seed, now() | 1, __ATOMIC_RELEASE);
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* The bits above are a signature or a tag on some machines. */
static inline uintptr_t untagged(uintptr_t word) {
#if defined(__aarch64__)
    return word & (((uintptr_t)1 << 48) - 1);
#else
    return word;
#endif
}

enum word_kind { WORD_DATA, WORD_ON_DATA_PAGE, WORD_CODE };

static inline bool is_on_data_page(uintptr_t word) {
    return word >= __atomic_load_n(&layout.data, __ATOMIC_RELAXED) &&
           word < __atomic_load_n(&layout.data_end, __ATOMIC_RELAXED) &&
           __atomic_load_n(&data_pages[word / PAGE % DATA_PAGES], __ATOMIC_RELAXED) == word / PAGE;
}

static inline enum word_kind kind_of(uintptr_t word) {
    uintptr_t limit = (uintptr_t)1 << 48;
    if (word - layout.code < layout.code_size)
        return WORD_CODE;
    if (word - layout.high >= limit - layout.high || is_in_heap(word))
        return WORD_DATA;
    if (is_on_data_page(word))
        return WORD_ON_DATA_PAGE;
    if (word >= layout.heap_end && word - layout.heap_end < (uintptr_t)1 << 30)
        layout.heap_end = (uintptr_t)system_call(SYS_brk, 0, 0, 0, 0, 0, 0);
    return is_in_heap(word) ? WORD_DATA : WORD_CODE;
}

/* What a word adds to the sum. */
static inline uint64_t word_sum(uintptr_t word, uintptr_t place) {
    uint64_t hash = (word ^ place << 16) * 0x9e3779b97f4a7c15u;
    return (hash ^ hash >> 29) * 0xd6e8feb86659fd93u;
}

static uint64_t part_sum(uintptr_t from, uintptr_t to) {
    uint64_t sum = 0;
    for (uintptr_t place = from; place < to; place += sizeof(uintptr_t)) {
        uintptr_t word = untagged(*(const uintptr_t *)place);
        sum += kind_of(word) == WORD_CODE ? word_sum(word, place) : 0;
    }
    return sum;
}

typedef uint64_t vector __attribute__((vector_size(16), aligned(8), may_alias));

static inline bool same_line(const void *a, const void *b) {
    const vector *x = a, *y = b;
    vector differ = (x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]);
    return !(differ[0] | differ[1]);
}

/* Counts the words that have changed. Another thread may write to the line meanwhile: the sum is that of the copy. */
static void line_update(struct memo *memo, size_t number, uintptr_t address, uint32_t now_is) {
    uintptr_t *words = memo->words[number];
    if (memo->lines[number].address != address || memo->lines[number].generation) {
        memo->lines[number].address = address;
        memo->lines[number].sum = memo->lines[number].counted = memo->lines[number].generation = 0;
        for (size_t i = 0; i < LINE_WORDS; i++)
            words[i] = 0;
    }
    for (size_t i = 0; i < LINE_WORDS; i++) {
        uintptr_t place = address + i * sizeof(uintptr_t);
        uintptr_t before = words[i],
                  word = __atomic_load_n((const uintptr_t *)place, __ATOMIC_RELAXED);
        if (before == word)
            continue;
        enum word_kind kind = kind_of(untagged(word));
        if (memo->lines[number].counted >> i & 1)
            memo->lines[number].sum -= word_sum(untagged(before), place);
        if (kind == WORD_CODE)
            memo->lines[number].sum += word_sum(untagged(word), place);
        if (kind == WORD_ON_DATA_PAGE)
            memo->lines[number].generation = now_is;
        memo->lines[number].counted &= ~(1u << i);
        memo->lines[number].counted |= (kind == WORD_CODE) << i;
        words[i] = word;
    }
}

static uint64_t lines_sum(const struct thread *t, uintptr_t from, uintptr_t to) {
    struct memo *memo = &memos[(uint32_t)t->tid % MEMOS];
    if (__atomic_exchange_n(&memo->busy, 1, __ATOMIC_ACQUIRE))
        return part_sum(from, to);
    uint32_t now_is = __atomic_load_n(&generation, __ATOMIC_RELAXED);
    uint64_t sum = 0;
    for (uintptr_t at = from; at < to; at += LINE) {
        size_t number = at / LINE % MEMO_LINES;
        uint32_t age = memo->lines[number].generation;
        if (UNLIKELY(memo->lines[number].address != at || (age && age != now_is) ||
                     !same_line(memo->words[number], (const void *)at)))
            line_update(memo, number, at, now_is);
        sum += memo->lines[number].sum;
    }
    __atomic_store_n(&memo->busy, 0, __ATOMIC_RELEASE);
    return sum;
}

uint64_t stack_number(const struct thread *t, const struct registers *registers, size_t size) {
    if (!__atomic_load_n(&layout.seed, __ATOMIC_ACQUIRE))
        layout_find();
    uint64_t hash = mix(layout.seed, (uint64_t)process->pid << 32 | (uint32_t)t->tid), sum = 0;
    for (size_t i = 0; i < HEAP_REGISTERS; i++) {
        uintptr_t word = untagged(registers->word[i]);
        sum += kind_of(word) == WORD_CODE ? word_sum(word, i) : 0;
    }
    hash = mix(hash, registers->word[HEAP_IP]);
    uintptr_t pointer = registers->word[HEAP_SP], end = pointer + size;
    uintptr_t first = (pointer + LINE - 1) & -(uintptr_t)LINE, last = end & -(uintptr_t)LINE;
    if (first > last) /* all of it is in one line */
        first = last = end;
    sum += part_sum(pointer, first) + lines_sum(t, first, last) + part_sum(last, end);
    return mix(mix(hash, sum), size) | 1;
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
