/*
 * Function symbols as ranges that do not overlap.
 *
 * Symbols are collected in `symbols`, whose index is the function's id. Before the first lookup they are sorted by address and
 * laid out: sized symbols first, nested ones inside their outer ones, then those without a size into the
 * holes that are left. A lookup is a binary search over the pieces.
 */
#include "trace/trace.h"

#include <gelf.h>
#include <libelf.h>
#include <pthread.h>
#include <stdlib.h>

struct function_symbol {
    struct text name;
    uint64_t start;
    uint64_t size;
    uint64_t section_end; /* 0: unknown */
    uint32_t id;          /* its own, or that of the symbol it is another name of */
    uint16_t rank;
};

struct functions {
    struct arena arena;
    VECTOR(struct function_symbol) symbols; /* by id; item 0 is none */
    VECTOR(struct function_range) ranges;
    bool sorted;
    pthread_mutex_t lock; /* lookups and additions: QEMU's threads translate while others run */
};

struct functions *functions_new(void) {
    struct functions *functions = memory_zero(1, sizeof *functions);
    pthread_mutex_init(&functions->lock, NULL);
    vector_push(&functions->symbols, ((struct function_symbol){0}));
    return functions;
}

void functions_free(struct functions *functions) {
    if (!functions)
        return;
    arena_release(&functions->arena);
    vector_release(&functions->symbols);
    vector_release(&functions->ranges);
    pthread_mutex_destroy(&functions->lock);
    free(functions);
}

void functions_add(struct functions *functions, struct text name, uint64_t start, uint64_t size,
                   uint64_t section_end, bool is_function, unsigned rank) {
    pthread_mutex_lock(&functions->lock);
    struct function_symbol symbol = {
        arena_copy(&functions->arena, name), start, size, section_end, 0, 0};
    symbol.rank = (uint16_t)(is_function ? 0x8000 : 0) | (uint16_t)(rank & 0xff);
    symbol.id = (uint32_t)functions->symbols.count;
    vector_push(&functions->symbols, symbol);
    functions->sorted = false;
    pthread_mutex_unlock(&functions->lock);
}

/* ---- layout ------------------------------------------------------------------------------- */

static size_t leading_underscores(struct text t) {
    size_t n = 0;
    while (n < t.length && t.data[n] == '_')
        n++;
    return n;
}

/* Of names for one place, the best stands first: a function's, a sized one, by rank, without underscores, longer. */
static int symbol_compare(const void *left, const void *right) {
    const struct function_symbol *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (!a->size != !b->size)
        return a->size ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1; /* the outer one first */
    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    size_t ua = leading_underscores(a->name), ub = leading_underscores(b->name);
    if (ua != ub)
        return ua < ub ? -1 : 1;
    if (a->name.length != b->name.length)
        return a->name.length > b->name.length ? -1 : 1;
    return text_compare(a->name, b->name);
}

static void piece_add(struct functions *functions, uint64_t start, uint64_t end, uint32_t id) {
    if (start < end)
        vector_push(&functions->ranges, ((struct function_range){start, end, id}));
}

/* Sized symbols, in order of address, with a stack of those that are still open. */
static void layout_sized(struct functions *functions, const struct function_symbol *sorted,
                         size_t count) {
    VECTOR(struct function_range) open = {0};
    uint64_t at = 0;
    for (size_t i = 0; i <= count; i++) {
        uint64_t start = i < count ? sorted[i].start : UINT64_MAX;
        if (i < count && (!sorted[i].size || (i && sorted[i - 1].start == start)))
            continue; /* of two that begin together the larger is taken, and is both */
        while (open.count && open.items[open.count - 1].end <= start) {
            struct function_range top = open.items[--open.count];
            piece_add(functions, at, top.end, top.function);
            if (top.end > at)
                at = top.end;
        }
        if (open.count)
            piece_add(functions, at, start, open.items[open.count - 1].function);
        at = start;
        if (i < count)
            vector_push(&open, ((struct function_range){
                                   start, saturating_add(start, sorted[i].size), sorted[i].id}));
    }
    vector_release(&open);
}

static int range_compare(const void *left, const void *right) {
    const struct function_range *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Zero-size symbols in the holes: up to the next symbol of any kind, or the section's end. */
static void layout_unsized(struct functions *functions, const struct function_symbol *sorted,
                           size_t count) {
    size_t sized = functions->ranges.count, next = 0;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i].size || (i && sorted[i].start == sorted[i - 1].start))
            continue;
        uint64_t start = sorted[i].start, end = UINT64_MAX;
        while (next < sized && functions->ranges.items[next].end <= start)
            next++;
        if (next < sized && functions->ranges.items[next].start <= start)
            continue; /* a label inside a function */
        size_t after = i + 1;
        while (after < count && sorted[after].start == start)
            after++;
        if (after < count)
            end = sorted[after].start;
        if (sorted[i].section_end > start && sorted[i].section_end < end)
            end = sorted[i].section_end;
        piece_add(functions, start, end, sorted[i].id);
    }
    qsort(functions->ranges.items, functions->ranges.count, sizeof *functions->ranges.items,
          range_compare);
}

static void functions_sort(struct functions *functions) {
    size_t count = functions->symbols.count - 1;
    functions->ranges.count = 0;
    functions->sorted = true;
    if (!count)
        return;
    struct function_symbol *sorted = memory_resize(NULL, count, sizeof *sorted);
    memcpy(sorted, functions->symbols.items + 1, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, symbol_compare);
    layout_sized(functions, sorted, count);
    layout_unsized(functions, sorted, count);
    free(sorted);
}

static struct function_range range_find(struct functions *functions, uint64_t address) {
    const struct function_range *ranges = functions->ranges.items;
    size_t low = 0, high = functions->ranges.count;
    while (low < high) { /* the first range that begins after the address */
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low && address < ranges[low - 1].end)
        return ranges[low - 1];
    return (struct function_range){low ? ranges[low - 1].end : 0,
                                   low < functions->ranges.count ? ranges[low].start : UINT64_MAX,
                                   0};
}

struct function_range functions_find(struct functions *functions, uint64_t address) {
    pthread_mutex_lock(&functions->lock);
    if (!functions->sorted)
        functions_sort(functions);
    struct function_range range = range_find(functions, address);
    pthread_mutex_unlock(&functions->lock);
    return range;
}

struct text functions_name(const struct functions *functions, uint32_t function) {
    return functions->symbols.items[function].name;
}

uint64_t functions_start(struct functions *functions, uint32_t function) {
    pthread_mutex_lock(&functions->lock);
    uint64_t start = functions->symbols.items[function].start;
    pthread_mutex_unlock(&functions->lock);
    return start;
}

size_t functions_count(const struct functions *functions) {
    return functions->symbols.count - 1;
}

/* ---- ELF ---------------------------------------------------------------------------------- */

/* Function symbols and untyped labels of code; not mapping symbols ($x) nor the assembler's own (.L). */
static bool symbol_wanted(const GElf_Sym *symbol, const char *name) {
    int type = GELF_ST_TYPE(symbol->st_info);
    if (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC)
        return false;
    if (!symbol->st_value || symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
        return false;
    return name && *name && *name != '$' && !(name[0] == '.' && name[1] == 'L');
}

static unsigned symbol_rank(const GElf_Sym *symbol) {
    int binding = GELF_ST_BIND(symbol->st_info);
    return binding == STB_GLOBAL ? 2 : binding == STB_WEAK ? 1 : 0;
}

static void symbol_add(struct functions *functions, Elf *elf, const GElf_Sym *symbol,
                       const char *name, uint64_t bias) {
    Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
    GElf_Shdr header;
    uint64_t section_end = 0;
    if (section && gelf_getshdr(section, &header)) {
        if (!(header.sh_flags & SHF_EXECINSTR))
            return;
        section_end = saturating_add(header.sh_addr, header.sh_size) + bias;
    }
    bool is_function = GELF_ST_TYPE(symbol->st_info) != STT_NOTYPE;
    functions_add(functions, text_of(name), symbol->st_value + bias, symbol->st_size, section_end,
                  is_function, symbol_rank(symbol));
}

static Elf_Scn *symbol_section(Elf *elf, uint32_t type, GElf_Shdr *header) {
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));)
        if (gelf_getshdr(section, header) && header->sh_type == type)
            return section;
    return NULL;
}

size_t functions_add_elf(struct functions *functions, const void *image, size_t size,
                         uint64_t bias) {
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)image, size);
    size_t before = functions->symbols.count;
    GElf_Shdr header;
    Elf_Scn *section = elf ? symbol_section(elf, SHT_SYMTAB, &header) : NULL;
    if (elf && !section)
        section = symbol_section(elf, SHT_DYNSYM, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    size_t count = data && header.sh_entsize ? data->d_size / header.sh_entsize : 0;
    for (size_t i = 0; i < count && i < INT32_MAX; i++) {
        GElf_Sym symbol;
        if (!gelf_getsym(data, (int)i, &symbol))
            break;
        const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (symbol_wanted(&symbol, name))
            symbol_add(functions, elf, &symbol, name, bias);
    }
    elf_end(elf);
    return functions->symbols.count - before;
}
