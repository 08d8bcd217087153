/*
 * The guest's memory: 4 GiB of address space reserved at once, which costs nothing until it is touched, and the rights of each page. Unmapped
 * memory is returned to the system, so that it reads as zeros when it is mapped again.
 */
#include "trace/riscv/machine.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CODE_LINE 64
_Static_assert(PAGE_SIZE / CODE_LINE == 64, "the lines of a page are the bits of a word");
#define CODE_BYTES (GUEST_SIZE / CODE_LINE / 8)

static void *reserve(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

bool memory_open(struct guest_memory *memory, struct error *error) {
    memset(memory, 0, sizeof *memory);
    memory->rights = reserve(PAGE_COUNT + GUEST_SIZE + PAGE_SIZE);
    memory->code = reserve(CODE_BYTES);
    if (!memory->rights || !memory->code) {
        error_set(error, ERROR_DENIED, "4 GiB of address space for the guest: %s", strerror(errno));
        memory_close(memory);
        return false;
    }
    memory->base = memory->rights + PAGE_COUNT;
    memory->max_pages = PAGE_COUNT;
    return true;
}

void memory_close(struct guest_memory *memory) {
    if (memory->rights)
        munmap(memory->rights, PAGE_COUNT + GUEST_SIZE + PAGE_SIZE);
    if (memory->code)
        munmap(memory->code, CODE_BYTES);
    vector_release(&memory->code_pages);
    memset(memory, 0, sizeof *memory);
}

/* Get the first page and the last + 1 of a range; return false if it leaves the address space. */
static bool pages_of(uint64_t address, uint64_t size, uint64_t *first, uint64_t *end) {
    uint64_t last;
    if (!checked_add(address, size, &last) || last > GUEST_SIZE)
        return false;
    *first = address / PAGE_SIZE;
    *end = (last + PAGE_SIZE - 1) / PAGE_SIZE;
    return true;
}

static uint8_t with_store(unsigned rights) {
    return (uint8_t)(rights | PAGE_MAPPED | (rights & PAGE_WRITE ? PAGE_STORE : 0));
}

bool memory_map(struct guest_memory *memory, uint64_t address, uint64_t size, unsigned rights) {
    uint64_t first, end;
    if (!pages_of(address, size, &first, &end))
        return false;
    memory_unmap(memory, address, size);
    if (end - first > memory->max_pages - memory->mapped_pages)
        return false;
    memset(memory->rights + first, with_store(rights), end - first);
    memory->mapped_pages += end - first;
    return true;
}

/* The system's pages may be larger than the guest's: return whole ones, and overwrite parts of others. */
static void zero(uint8_t *start, uint8_t *end) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uint8_t *whole = start + (-(uintptr_t)start & (page - 1)),
            *rest = end - ((uintptr_t)end & (page - 1));
    if (whole >= rest) {
        memset(start, 0, (size_t)(end - start));
        return;
    }
    memset(start, 0, (size_t)(whole - start));
    madvise(whole, (size_t)(rest - whole), MADV_DONTNEED);
    memset(rest, 0, (size_t)(end - rest));
}

void memory_unmap(struct guest_memory *memory, uint64_t address, uint64_t size) {
    uint64_t first, end;
    if (!pages_of(address, size, &first, &end))
        return;
    bool any = false;
    for (uint64_t page = first; page < end; page++) {
        any |= memory->rights[page] != 0;
        memory->mapped_pages -= memory->rights[page] != 0;
        memory->rights[page] = 0;
    }
    if (any)
        zero(memory->base + first * PAGE_SIZE, memory->base + end * PAGE_SIZE);
}

bool memory_protect(struct guest_memory *memory, uint64_t address, uint64_t size, unsigned rights) {
    uint64_t first, end;
    if (!pages_of(address, size, &first, &end))
        return false;
    for (uint64_t page = first; page < end; page++)
        if (!memory->rights[page])
            return false;
    memset(memory->rights + first, with_store(rights), end - first);
    return true;
}

bool memory_is_free(const struct guest_memory *memory, uint64_t address, uint64_t size) {
    uint64_t first, end;
    if (!pages_of(address, size, &first, &end))
        return false;
    for (uint64_t page = first; page < end; page++)
        if (memory->rights[page])
            return false;
    return true;
}

/* From the top down, as Linux does. */
uint64_t memory_find(const struct guest_memory *memory, uint64_t size, uint64_t low,
                     uint64_t high) {
    uint64_t pages = (size + PAGE_SIZE - 1) / PAGE_SIZE, run = 0;
    if (size > GUEST_SIZE)
        return 0;
    for (uint64_t page = high / PAGE_SIZE; page-- > low / PAGE_SIZE;) {
        run = memory->rights[page] ? 0 : run + 1;
        if (run == pages)
            return page * PAGE_SIZE;
    }
    return 0;
}

uint8_t *memory_at(const struct guest_memory *memory, uint64_t address, uint64_t size,
                   unsigned rights) {
    uint64_t first, end;
    if (!pages_of(address, size, &first, &end))
        return NULL;
    for (uint64_t page = first; page < end; page++)
        if ((memory->rights[page] & rights) != rights)
            return NULL;
    return memory->base + address;
}

bool memory_has_code(const struct guest_memory *memory, uint64_t address, uint64_t size) {
    for (uint64_t line = address / CODE_LINE; line <= (address + size - 1) / CODE_LINE; line++)
        if (memory->code[line / 8] >> line % 8 & 1)
            return true;
    return false;
}

/* A page has 64 lines: its bits are one word of `code`. */
void memory_mark_code(struct guest_memory *memory, uint64_t address, uint64_t size) {
    for (uint64_t page = address / PAGE_SIZE; page <= (address + size - 1) / PAGE_SIZE; page++) {
        if (!load_u64(memory->code + page * 8))
            vector_push(&memory->code_pages, (uint32_t)page);
        memory->rights[page] &= (uint8_t)~PAGE_STORE;
    }
    for (uint64_t line = address / CODE_LINE; line <= (address + size - 1) / CODE_LINE; line++)
        memory->code[line / 8] |= (uint8_t)(1 << line % 8);
}

/* Costs only what was translated, because a guest that writes its own code does this often. */
void memory_forget_code(struct guest_memory *memory) {
    for (size_t i = 0; i < memory->code_pages.count; i++) {
        uint64_t page = memory->code_pages.items[i];
        memset(memory->code + page * 8, 0, 8);
        if (memory->rights[page] & PAGE_WRITE)
            memory->rights[page] |= PAGE_STORE;
    }
    memory->code_pages.count = 0;
}
