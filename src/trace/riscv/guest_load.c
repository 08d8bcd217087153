/*
 * Load a static RISC-V ELF file into guest memory. Every number from the file is checked before it is used; errors give the reason and the
 * byte offset.
 */
#include "trace/riscv/guest.h"

#include <elf.h>
#include <stdlib.h>

#define HEADERS_MAX 256
#define PIE_BASE 0x100000ull

/* One program header, of either class. */
struct segment {
    uint32_t type, flags;
    uint64_t offset, address, file_size, memory_size;
};

static bool bad(struct guest *g, uint64_t offset, struct error *error, const char *why) {
    return error_at(error, g->image.path, offset, "%s", why);
}

struct header {
    bool is64;
    uint16_t type;
    uint64_t entry, headers;
    uint16_t header_size, header_count;
};

static bool read_header(struct guest *g, struct header *h, struct error *error) {
    const uint8_t *d = g->image.data;
    if (g->image.size < EI_NIDENT || memcmp(d, ELFMAG, SELFMAG) != 0)
        return bad(g, 0, error, "not an ELF file");
    h->is64 = d[EI_CLASS] == ELFCLASS64;
    if (!h->is64 && d[EI_CLASS] != ELFCLASS32)
        return bad(g, EI_CLASS, error, "neither a 32-bit nor a 64-bit ELF file");
    if (d[EI_DATA] != ELFDATA2LSB)
        return bad(g, EI_DATA, error, "not little-endian");
    if (d[EI_VERSION] != EV_CURRENT)
        return bad(g, EI_VERSION, error, "unknown ELF version");
    if (g->image.size < (h->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
        return bad(g, g->image.size, error, "the ELF header is cut off");
    if (load_u16(d + 18) != EM_RISCV)
        return bad(g, 18, error, "not for RISC-V: use --engine qemu");
    h->type = load_u16(d + 16);
    if (h->type != ET_EXEC && h->type != ET_DYN)
        return bad(g, 16, error, "not an executable");
    h->entry = h->is64 ? load_u64(d + 24) : load_u32(d + 24);
    h->headers = h->is64 ? load_u64(d + 32) : load_u32(d + 28);
    h->header_size = load_u16(d + (h->is64 ? 54 : 42));
    h->header_count = load_u16(d + (h->is64 ? 56 : 44));
    return true;
}

static bool check_headers(struct guest *g, const struct header *h, struct error *error) {
    uint64_t end;
    if (h->header_count == 0)
        return bad(g, h->is64 ? 56 : 44, error, "no program headers: nothing to load");
    if (h->header_count > HEADERS_MAX)
        return bad(g, h->is64 ? 56 : 44, error, "more than 256 program headers");
    if (h->header_size != (h->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
        return bad(g, h->is64 ? 54 : 42, error, "program headers of an unknown size");
    if (!checked_add(h->headers, (uint64_t)h->header_count * h->header_size, &end) ||
        end > g->image.size)
        return bad(g, h->is64 ? 32 : 28, error, "the program headers lie outside the file");
    if (h->entry & 1)
        return bad(g, 24, error, "the entry point is at an odd address");
    return true;
}

static struct segment segment_at(const uint8_t *d, bool is64) {
    if (is64)
        return (struct segment){load_u32(d),      load_u32(d + 4),  load_u64(d + 8),
                                load_u64(d + 16), load_u64(d + 32), load_u64(d + 40)};
    return (struct segment){load_u32(d),     load_u32(d + 24), load_u32(d + 4),
                            load_u32(d + 8), load_u32(d + 16), load_u32(d + 20)};
}

static bool check_segment(struct guest *g, const struct segment *s, uint64_t at,
                          struct error *error) {
    uint64_t end;
    if (s->file_size > s->memory_size)
        return bad(g, at, error, "a segment is larger in the file than in memory");
    if (!checked_add(s->offset, s->file_size, &end) || end > g->image.size)
        return bad(g, at, error, "a segment lies outside the file");
    if (!checked_add(s->address, g->bias, &end) || !checked_add(end, s->memory_size, &end) ||
        end > GUEST_STACK_TOP)
        return bad(g, at, error, "a segment lies above the guest's address space (0xfe000000)");
    return true;
}

/* Pages that two segments share have the rights of both. */
static bool map_segment(struct guest *g, const struct segment *s, uint64_t at,
                        struct error *error) {
    uint64_t address = s->address + g->bias;
    unsigned rights = (s->flags & PF_R ? PAGE_READ : 0) | (s->flags & PF_W ? PAGE_WRITE : 0) |
                      (s->flags & PF_X ? PAGE_EXECUTE : 0);
    struct guest_memory *memory = &g->machine.memory;
    for (uint64_t page = address / PAGE_SIZE; page * PAGE_SIZE < address + s->memory_size; page++) {
        unsigned all = rights | (memory->rights[page] & (PAGE_READ | PAGE_WRITE | PAGE_EXECUTE));
        bool fits = memory->rights[page] ? memory_protect(memory, page * PAGE_SIZE, PAGE_SIZE, all)
                                         : memory_map(memory, page * PAGE_SIZE, PAGE_SIZE, all);
        if (!fits)
            return bad(g, at, error, "a segment does not fit into the guest's memory");
    }
    memcpy(memory->base + address, g->image.data + s->offset, s->file_size);
    uint64_t end = address + s->memory_size;
    if (end > g->break_start)
        g->break_start = end;
    return true;
}

static bool load_segment(struct guest *g, const struct header *h, unsigned index,
                         struct error *error) {
    uint64_t at = h->headers + (uint64_t)index * h->header_size;
    struct segment s = segment_at(g->image.data + at, h->is64);
    if (s.type == PT_INTERP)
        return bad(g, at, error, "dynamically linked: link it with -static, or use --engine qemu");
    if (s.type == PT_PHDR)
        g->headers = s.address + g->bias;
    if (s.type != PT_LOAD || !s.memory_size)
        return true;
    if (!check_segment(g, &s, at, error))
        return false;
    if (!g->headers && h->headers >= s.offset && h->headers - s.offset < s.file_size)
        g->headers = s.address + g->bias + (h->headers - s.offset);
    return map_segment(g, &s, at, error);
}

bool guest_load(struct guest *g, struct error *error) {
    struct header h = {0};
    if (!file_open_raw(&g->image, g->options->path, g->options->context, error))
        return false;
    g->real_path = realpath(g->options->path, NULL);
    if (!read_header(g, &h, error) || !check_headers(g, &h, error))
        return false;
    if (!machine_open(&g->machine, h.is64 ? 64 : 32, error))
        return false;
    if (g->options->memory_size)
        g->machine.memory.max_pages = g->options->memory_size / PAGE_SIZE;
    g->bias = h.type == ET_DYN ? PIE_BASE : 0;
    for (unsigned i = 0; i < h.header_count; i++)
        if (!load_segment(g, &h, i, error))
            return false;
    g->entry = h.entry + g->bias;
    g->header_count = h.header_count;
    g->header_size = h.header_size;
    g->break_start = g->break_now = (g->break_start + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    if (!memory_at(&g->machine.memory, g->entry, 2, PAGE_EXECUTE))
        return bad(g, 24, error, "the entry point is not in executable memory");
    return !file_changed(&g->image, error);
}

/* ---- the stack at the entry --------------------------------------------------------------- */

struct guest_stack {
    struct guest *g;
    uint64_t sp;
    bool full;
};

static uint64_t push_bytes(struct guest_stack *s, const void *data, uint64_t size) {
    if (s->full || size > s->sp - s->g->stack_low || s->sp - size - s->g->stack_low < PAGE_SIZE) {
        s->full = true;
        return 0;
    }
    s->sp -= size;
    memcpy(s->g->machine.memory.base + s->sp, data, size);
    return s->sp;
}

static void push_word(struct guest_stack *s, uint64_t value) {
    push_bytes(s, &value, s->g->machine.xlen / 8);
}

static bool map_stack(struct guest *g, struct error *error) {
    uint64_t size = g->options->stack_size ? g->options->stack_size : 1ull << 30;
    size = (size + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    struct guest_memory *memory = &g->machine.memory;
    uint64_t pages = memory->max_pages - memory->mapped_pages;
    if (!g->options->stack_size && size / PAGE_SIZE > pages / 2)
        size = pages / 2 * PAGE_SIZE;
    if (size < 16 * PAGE_SIZE || size > GUEST_STACK_TOP ||
        !memory_is_free(memory, GUEST_STACK_TOP - size, size) ||
        !memory_map(memory, GUEST_STACK_TOP - size, size, PAGE_READ | PAGE_WRITE))
        return error_set(error, ERROR_INPUT, "%s: no room for the guest's stack below 0x%llx",
                         g->image.path, (unsigned long long)GUEST_STACK_TOP);
    g->stack_low = GUEST_STACK_TOP - size;
    return true;
}

#define HWCAP_IMAFDC 0x112d
#define HWCAP_IMAC 0x1105

static void push_auxiliary(struct guest_stack *s, uint64_t random, uint64_t name) {
    struct guest *g = s->g;
    uint64_t hwcap = g->machine.xlen == 64 ? HWCAP_IMAFDC : HWCAP_IMAC;
    const uint64_t pairs[][2] = {
        {AT_PHDR, g->headers},
        {AT_PHENT, g->header_size},
        {AT_PHNUM, g->header_count},
        {AT_PAGESZ, PAGE_SIZE},
        {AT_BASE, 0},
        {AT_FLAGS, 0},
        {AT_ENTRY, g->entry},
        {AT_UID, 1000},
        {AT_EUID, 1000},
        {AT_GID, 1000},
        {AT_EGID, 1000},
        {AT_HWCAP, hwcap},
        {AT_CLKTCK, 100},
        {AT_RANDOM, random},
        {AT_SECURE, 0},
        {AT_EXECFN, name},
        {AT_NULL, 0},
    };
    for (size_t i = COUNT_OF(pairs); i-- > 0;) {
        push_word(s, pairs[i][1]);
        push_word(s, pairs[i][0]);
    }
}

static uint64_t *push_strings(struct guest_stack *s, const char *const *strings, size_t count) {
    uint64_t *addresses = memory_zero(count + 1, sizeof *addresses);
    for (size_t i = count; i-- > 0;)
        addresses[i] = push_bytes(s, strings[i], strlen(strings[i]) + 1);
    return addresses;
}

static void push_pointers(struct guest_stack *s, const uint64_t *addresses, size_t count) {
    push_word(s, 0);
    for (size_t i = count; i-- > 0;)
        push_word(s, addresses[i]);
}

/* As the kernel does: strings on top, then the random bytes, the auxiliary vector, environment, arguments, their count. */
bool guest_start_linux(struct guest *g, struct error *error) {
    static const uint8_t random[16] = {
        0x5b, 0x1e, 0xc7, 0x90, 0x3d, 0xa4, 0x68, 0xf2,
        0x17, 0x8c, 0x4e, 0xd9, 0x02, 0xb6, 0x75, 0x3a}; /* the same in every run */
    const struct trace_options *o = g->options;
    if (!map_stack(g, error))
        return false;
    struct guest_stack s = {g, GUEST_STACK_TOP, false};
    push_word(&s, 0);
    uint64_t name = push_bytes(&s, o->path, strlen(o->path) + 1);
    uint64_t *environment = push_strings(&s, o->environment, o->environment_count);
    uint64_t *arguments = push_strings(&s, o->arguments, o->argument_count);
    s.sp &= ~15ull;
    uint64_t seed = push_bytes(&s, random, sizeof random);
    size_t words = o->argument_count + o->environment_count + 3 + 34;
    s.sp -=
        (16 - words * (g->machine.xlen / 8) % 16) % 16; /* so that the stack pointer is aligned */
    push_auxiliary(&s, seed, name);
    push_pointers(&s, environment, o->environment_count);
    push_pointers(&s, arguments, o->argument_count);
    push_word(&s, o->argument_count);
    free(environment);
    free(arguments);
    if (s.full)
        return error_set(error, ERROR_USAGE, "the arguments do not fit onto the guest's stack");
    g->machine.x[2] = g->machine.xlen == 64 ? s.sp : (uint64_t)(int64_t)(int32_t)s.sp;
    return true;
}

bool guest_start_prover(struct guest *g, struct error *error) {
    if (!map_stack(g, error))
        return false;
    uint64_t top = GUEST_STACK_TOP - 16;
    g->machine.x[2] = g->machine.xlen == 64 ? top : (uint64_t)(int64_t)(int32_t)top;
    uint64_t size = 0;
    if (g->options->private_input) {
        if (!file_open_raw(&g->input, g->options->private_input, g->options->context, error))
            return false;
        size = g->input.size;
    }
    if (size > GUEST_SIZE - GUEST_INPUT - 4)
        return error_set(error, ERROR_INPUT,
                         "%s: more than the 16 MiB there are for a private input",
                         g->options->private_input);
    if (!memory_map(&g->machine.memory, GUEST_INPUT, size + 4, PAGE_READ))
        return error_set(error, ERROR_INPUT, "no guest memory for the private input");
    uint32_t length = (uint32_t)size;
    memcpy(g->machine.memory.base + GUEST_INPUT, &length, sizeof length);
    if (size)
        memcpy(g->machine.memory.base + GUEST_INPUT + 4, g->input.data, size);
    return true;
}
