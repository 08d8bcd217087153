/*
 * Symbols of Go programs that have no symbol table (built with -ldflags=-s), from the runtime's own function table, which every Go program contains.
 * Its layout since Go 1.20:
 *
 *   header       0xfffffff1, two zero bytes, the sizes of an instruction and of a pointer; then words: the numbers of functions and files, the start of
 *                code (0 since 1.26), and the offsets in the section of names, units, files, other tables and functions
 *   functions    pairs of 32-bit numbers: a function's start, relative to the start of code, and the offset of its description, relative to the first
 *                pair; after the last pair, the end of the last function
 *   description  the function's start again, and the offset of its name among the names
 */
#include "object/internal.h"

enum { MAGIC = 0xfffffff1, HEAD = 72, PAIR = 8, FUNCTIONS_MOST = 1 << 24 };

struct go_table {
    struct text names, functions;
    uint64_t count, code;
};

static bool part_of(struct text section, uint64_t offset, struct text *part) {
    if (offset >= section.length)
        return false;
    *part = text_from(section, offset);
    return true;
}

/* If the header does not say where code starts, it is the start of .text, provided that .text contains nothing else, such as C. */
static bool find_code(const struct elf_image *image, uint64_t end, uint64_t *code) {
    enum { PADDING = 64 };
    GElf_Shdr header;
    if (*code)
        return true;
    if (!elf_section(image, ".text", &header) || end > header.sh_size ||
        header.sh_size - end > PADDING)
        return false;
    *code = header.sh_addr;
    return true;
}

static bool table_open(const struct elf_image *image, struct go_table *table) {
    struct text section;
    if (image->foreign_endian || !elf_section_bytes(image, ".gopclntab", &section) ||
        section.length < HEAD || load_u32(section.data) != MAGIC || section.data[7] != 8)
        return false;
    table->count = load_u64(section.data + 8);
    table->code = load_u64(section.data + 24);
    return table->count && table->count < FUNCTIONS_MOST &&
           part_of(section, load_u64(section.data + 32), &table->names) &&
           part_of(section, load_u64(section.data + 64), &table->functions) &&
           table->functions.length / PAIR > table->count &&
           find_code(image, load_u32(table->functions.data + PAIR * table->count), &table->code);
}

bool go_symbols_names(const struct elf_image *image, struct text *names) {
    struct go_table table;
    if (!table_open(image, &table))
        return false;
    *names = table.names;
    return true;
}

void go_symbols_add(struct symbols *symbols, const struct elf_image *image, uint8_t source) {
    struct go_table table;
    if (!table_open(image, &table))
        return;
    symbols->sources[source] = (struct symbols_source){.bytes = table.names, .terminator = 0};
    vector_reserve(&symbols->entries, symbols->entries.count + table.count);
    for (uint64_t i = 0; i < table.count; i++) {
        const char *pair = table.functions.data + PAIR * i;
        uint32_t start = load_u32(pair), one = load_u32(pair + 4), end = load_u32(pair + PAIR);
        if (end <= start || table.functions.length < 8 || one > table.functions.length - 8)
            continue;
        struct entry entry = {.start = saturating_add(table.code, start),
                              .end = saturating_add(table.code, end),
                              .name = load_u32(table.functions.data + one + 4),
                              .source = source,
                              .global = true,
                              .flags = ENTRY_CODE};
        if (entry.name < table.names.length)
            symbols_add(symbols, &entry);
    }
}
