/*
 * Names for procedure linkage tables: calls into other libraries go through slots of code that no symbol covers.
 *
 * wick decodes the slot. It jumps through an entry of the global offset table, and that entry's relocation names the function whose address
 * the loader puts there. So the order of slots, two tables (.plt, .plt.sec) and slots without lazy binding (.plt.got) need no special rules.
 * perf assumes that the n-th slot belongs to the n-th relocation.
 */
#include "object/internal.h"

#include <stdlib.h>

/* One entry of the global offset table that the loader fills. */
struct target {
    uint64_t slot;
    uint32_t symbol; /* in .dynsym; 0: the address `addend` */
    uint64_t addend;
};
struct targets {
    struct target *items;
    size_t count;
    size_t capacity;
    size_t lazy; /* the first so many are .rela.plt's, in its order, until sorted */
};

/* What a machine's loader calls them. */
static bool is_target(uint16_t machine, uint32_t type) {
    switch (machine) {
    case EM_X86_64:
        return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
               type == R_X86_64_IRELATIVE;
    case EM_AARCH64:
        return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ||
               type == R_AARCH64_IRELATIVE;
    case EM_RISCV:
        return type == R_RISCV_JUMP_SLOT || type == R_RISCV_64 || type == R_RISCV_IRELATIVE;
    default:
        return false;
    }
}

/* A program may have a million relocations, nearly none of which is a target. */
static bool rela_get(const struct elf_image *image, Elf_Data *data, size_t number,
                     GElf_Rela *rela) {
    if (!image->is_64 || image->foreign_endian)
        return gelf_getrela(data, (int)number, rela) != NULL;
    memcpy(rela, (const char *)data->d_buf + number * sizeof *rela, sizeof *rela);
    return true;
}

static void targets_add(struct targets *targets, const struct elf_image *image, const char *name) {
    GElf_Shdr header;
    Elf_Scn *section = elf_section(image, name, &header);
    Elf_Data *data = section && header.sh_type == SHT_RELA ? elf_getdata(section, NULL) : NULL;
    size_t size = gelf_fsize(image->elf, ELF_T_RELA, 1, EV_CURRENT);
    GElf_Rela rela;
    if (!data || !data->d_buf || !size)
        return;
    for (size_t i = 0; i < data->d_size / size && i < INT32_MAX; i++)
        if (rela_get(image, data, i, &rela) &&
            is_target(image->machine, (uint32_t)GELF_R_TYPE(rela.r_info)))
            vector_push(targets, ((struct target){.slot = rela.r_offset,
                                                  .symbol = (uint32_t)GELF_R_SYM(rela.r_info),
                                                  .addend = (uint64_t)rela.r_addend}));
}

static int target_compare(const void *a, const void *b) {
    const struct target *x = a, *y = b;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static const struct target *targets_find(const struct targets *targets, uint64_t slot) {
    struct target key = {.slot = slot};
    if (!targets->count)
        return NULL;
    return bsearch(&key, targets->items, targets->count, sizeof key, target_compare);
}

/* ---- what the code of a slot says ---- */

struct stub {
    uint64_t slot; /* of the global offset table it jumps through; 0 when `pushed` */
    bool pushed;   /* a lazy stub that pushes the number of its relocation */
    uint32_t relocation;
    size_t size; /* bytes of the stub; 0: this is none */
};

static struct stub stub_x86(struct text code, uint64_t address) {
    struct stub stub = {0};
    size_t at = text_starts(code, (struct text){"\xf3\x0f\x1e\xfa", 4}) ? 4 : 0;
    if (at < code.length && code.data[at] == '\xf2')
        at++;
    if (code.length < at + 6)
        return stub;
    if (code.data[at] == '\xff' && code.data[at + 1] == '\x25') {
        stub.slot = address + at + 6 + (uint64_t)(int64_t)(int32_t)load_u32(code.data + at + 2);
        stub.size = 16;
    } else if (at >= 4 && code.data[at] == '\x68') {
        stub =
            (struct stub){.pushed = true, .relocation = load_u32(code.data + at + 1), .size = 16};
    }
    return stub;
}

/* [bti c;] adrp x16, page; ldr x17, [x16, #offset] */
static struct stub stub_aarch64(struct text code, uint64_t address) {
    struct stub stub = {0};
    size_t at = code.length >= 4 && load_u32(code.data) == 0xd503245f ? 4 : 0;
    if (code.length < at + 16)
        return stub;
    uint32_t adrp = load_u32(code.data + at), ldr = load_u32(code.data + at + 4);
    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
        return stub;
    int64_t pages =
        (int64_t)((uint64_t)((adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3)) << 43) >> 43;
    stub.slot =
        ((address + at) & ~(uint64_t)4095) + (uint64_t)(pages * 4096) + (ldr >> 10 & 0xfff) * 8;
    stub.size = at ? 24 : 16;
    return stub;
}

/* auipc t3, upper; ld t3, lower(t3) */
static struct stub stub_riscv(struct text code, uint64_t address) {
    struct stub stub = {0};
    if (code.length < 16)
        return stub;
    uint32_t auipc = load_u32(code.data), load = load_u32(code.data + 4);
    if ((auipc & 0xfff) != 0xe17 || (load & 0xfffff) != 0xe3e03)
        return stub;
    stub.slot = address + (uint64_t)(int64_t)(int32_t)(auipc & 0xfffff000) +
                (uint64_t)(int64_t)((int32_t)load >> 20);
    stub.size = 16;
    return stub;
}

static struct stub stub_read(uint16_t machine, struct text code, uint64_t address) {
    switch (machine) {
    case EM_X86_64:
        return stub_x86(code, address);
    case EM_AARCH64:
        return stub_aarch64(code, address);
    case EM_RISCV:
        return stub_riscv(code, address);
    default:
        return (struct stub){0};
    }
}

/* ---- naming ---- */

/* A target without a symbol is resolved by a function of this file; its name, or its address as objdump writes it. */
static void name_by_address(struct symbols *symbols, size_t known, uint64_t address,
                            struct entry *entry) {
    const struct entry *best = NULL;
    for (size_t i = 0; i < known; i++) {
        const struct entry *candidate = &symbols->entries.items[i];
        if (candidate->start == address && (!best || symbols_compare(symbols, best, candidate) < 0))
            best = candidate;
    }
    struct buffer made = {0};
    if (best) {
        entry->name = best->name;
        entry->source = best->source;
    } else {
        buffer_printf(&made, "*ABS*+0x%llx", (unsigned long long)address);
        entry->source = MADE_SOURCE;
        entry->name = symbols_make_name(symbols, buffer_text(&made));
    }
    buffer_release(&made);
}

struct plt {
    struct symbols *symbols;
    const struct elf_image *image;
    const struct symbol_section *dynamic;
    uint8_t source;
    struct targets targets;    /* by slot */
    const struct target *lazy; /* .rela.plt in its order */
    size_t lazy_count;
    size_t known;   /* entries before the PLT's */
    size_t unnamed; /* lookups by address so far: each costs a walk over all symbols */
};

static const struct target *plt_target(const struct plt *plt, const struct stub *stub) {
    if (!stub->pushed)
        return targets_find(&plt->targets, stub->slot);
    return stub->relocation < plt->lazy_count ? &plt->lazy[stub->relocation] : NULL;
}

static void plt_name(struct plt *plt, const struct target *target, uint64_t address, size_t size) {
    struct entry entry = {.start = address,
                          .end = saturating_add(address, size),
                          .source = plt->source,
                          .global = 1,
                          .flags = ENTRY_PLT | ENTRY_CODE};
    GElf_Sym symbol;
    if (target->symbol) {
        if (!symbol_section_get(plt->dynamic, target->symbol, &symbol) || !symbol.st_name)
            return;
        entry.name = symbol.st_name;
    } else if (plt->unnamed++ < 256) {
        name_by_address(plt->symbols, plt->known, target->addend, &entry);
    } else {
        return;
    }
    symbols_add(plt->symbols, &entry);
}

/* What comes before the first slot is the common part that lazy slots jump to. */
static void plt_head(struct plt *plt, uint64_t address, size_t size) {
    struct entry entry = {.start = address,
                          .end = saturating_add(address, size),
                          .source = MADE_SOURCE,
                          .flags = ENTRY_CODE};
    entry.name = symbols_make_name(plt->symbols, TEXT(".plt"));
    symbols_add(plt->symbols, &entry);
}

/* The stub at a place, if its target is known. */
static const struct target *plt_at(const struct plt *plt, const GElf_Shdr *header, struct text code,
                                   size_t at, struct stub *stub) {
    if (at >= code.length)
        return NULL;
    *stub = stub_read(plt->image->machine, text_from(code, at), header->sh_addr + at);
    return stub->size ? plt_target(plt, stub) : NULL;
}

static void plt_section(struct plt *plt, const GElf_Shdr *header, struct text code, bool has_head) {
    size_t step = plt->image->machine == EM_X86_64 ? 8 : 4;
    struct stub stub, next;
    for (size_t at = 0; at < code.length;) {
        const struct target *target = plt_at(plt, header, code, at, &stub);
        if (!target) {
            at += step;
            continue;
        }
        /* Slots that are never bound late have no second half; no header says so for all of them. */
        size_t size = step == 8 && plt_at(plt, header, code, at + 8, &next) ? 8 : stub.size;
        if (has_head && at)
            plt_head(plt, header->sh_addr, at);
        has_head = false;
        plt_name(plt, target, header->sh_addr + at,
                 size < code.length - at ? size : code.length - at);
        at += size;
    }
}

void plt_load(struct symbols *symbols, const struct elf_image *image,
              const struct symbol_section *dynamic, uint8_t source) {
    struct plt plt = {.symbols = symbols, .image = image, .dynamic = dynamic, .source = source};
    plt.known = symbols->entries.count;
    targets_add(&plt.targets, image, ".rela.plt");
    plt.lazy_count = plt.targets.count;
    struct target *lazy = memory_resize(NULL, plt.lazy_count + 1, sizeof *lazy);
    if (plt.lazy_count)
        memcpy(lazy, plt.targets.items, plt.lazy_count * sizeof *lazy);
    plt.lazy = lazy;
    targets_add(&plt.targets, image, ".rela.dyn");
    if (plt.targets.count)
        qsort(plt.targets.items, plt.targets.count, sizeof *plt.targets.items, target_compare);
    GElf_Shdr header;
    struct text code;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));) {
        if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
            continue;
        const char *name = elf_section_name(image, &header);
        if ((strncmp(name, ".plt", 4) == 0 || strcmp(name, ".iplt") == 0) &&
            elf_numbered_bytes(image, elf_ndxscn(section), &code))
            plt_section(&plt, &header, code, strcmp(name, ".plt") == 0);
    }
    free(lazy);
    vector_release(&plt.targets);
}

/* ---- perf's ---- */

static void perf_slot_sizes(uint16_t machine, uint64_t entry_size, uint64_t *head, uint64_t *slot) {
    *head = *slot = entry_size;
    if (machine == EM_ARM)
        *head = 20, *slot = 12;
    else if (machine == EM_AARCH64)
        *head = 32, *slot = 16;
    else if (machine == EM_SPARC)
        *head = 48, *slot = 12;
    else if (machine == EM_SPARCV9)
        *head = 128, *slot = 32;
}

/* The symbol of the n-th relocation. */
static bool perf_relocation(Elf_Data *data, uint32_t type, size_t number, size_t *symbol) {
    GElf_Rela rela;
    GElf_Rel rel;
    if (type == SHT_RELA ? !gelf_getrela(data, (int)number, &rela)
                         : !gelf_getrel(data, (int)number, &rel))
        return false;
    *symbol = type == SHT_RELA ? GELF_R_SYM(rela.r_info) : GELF_R_SYM(rel.r_info);
    return true;
}

void plt_load_perf(struct perf_rounds *rounds, const struct elf_image *runtime, uint8_t source) {
    struct symbol_section dynamic;
    GElf_Shdr relocations, plt;
    if (!symbol_section_open(runtime, ".dynsym", SHT_DYNSYM, &dynamic))
        return;
    Elf_Scn *section = elf_section(runtime, ".rela.plt", &relocations);
    if (!section)
        section = elf_section(runtime, ".rel.plt", &relocations);
    if (!section || relocations.sh_link != dynamic.number || !elf_section(runtime, ".plt", &plt))
        return;
    Elf_Data *data = elf_getdata(section, NULL);
    if (!data || !relocations.sh_entsize)
        return;
    rounds->symbols->sources[source] = (struct symbols_source){.bytes = dynamic.names};
    uint64_t head, slot, at = plt.sh_offset;
    perf_slot_sizes(runtime->machine, plt.sh_entsize, &head, &slot);
    at += head;
    size_t number;
    for (size_t i = 0; i < relocations.sh_size / relocations.sh_entsize; i++, at += slot) {
        GElf_Sym symbol;
        if (!perf_relocation(data, relocations.sh_type, i, &number) ||
            !symbol_section_get(&dynamic, number, &symbol))
            break;
        perf_rounds_add(rounds, &(struct entry){.start = at,
                                                .end = saturating_add(at, slot),
                                                .name = symbol.st_name,
                                                .source = source,
                                                .global = 1,
                                                .flags = ENTRY_PLT});
    }
}
