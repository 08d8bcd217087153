/*
 * The symbols of an ELF file: .symtab of the file or of its debug file, .dynsym, and the PLT.
 *
 * wick's table has ELF addresses and only symbols that can be code: functions, and labels and objects in executable sections.
 * perf's table has file offsets and includes data; see rounds.c for what perf does with it.
 */
#include "object/internal.h"

#include <stdlib.h>

enum { SECTIONS_MAX = 1 << 16 };

struct section {
    uint64_t address;
    uint64_t offset;
    uint64_t end;
    bool allocated;
    bool executable;
    bool no_bits;
    bool text_or_data; /* by its name, which is how perf tells */
    bool is_init;      /* of a kernel module: gone once it is loaded */
    uint64_t alignment;
};

struct sections {
    struct section *items;
    size_t count;
};

/* Assign addresses to the sections of a relocatable file, which has none. The kernel puts a module's code first, section after section. */
static void sections_lay_out(struct sections *sections) {
    uint64_t next = 0;
    for (size_t i = 1; i < sections->count; i++) {
        struct section *section = &sections->items[i];
        uint64_t size = section->end - section->address, step = section->alignment;
        section->executable &= section->allocated && !section->is_init;
        if (!section->executable)
            continue;
        if (step > 1 && next % step)
            next = saturating_add(next, step - next % step);
        section->address = next;
        section->end = next = saturating_add(next, size);
    }
}

static struct sections sections_read(const struct elf_image *image) {
    struct sections sections = {0};
    size_t count = 0;
    if (elf_getshdrnum(image->elf, &count) != 0 || count > SECTIONS_MAX)
        count = 0;
    sections.items = memory_zero(count + 1, sizeof *sections.items);
    sections.count = count;
    for (size_t i = 1; i < count; i++) {
        GElf_Shdr header;
        Elf_Scn *section = elf_getscn(image->elf, i);
        if (!section || !gelf_getshdr(section, &header))
            continue;
        const char *name = elf_section_name(image, &header);
        sections.items[i] =
            (struct section){.address = header.sh_addr,
                             .offset = header.sh_offset,
                             .end = saturating_add(header.sh_addr, header.sh_size),
                             .allocated = header.sh_flags & SHF_ALLOC,
                             .executable = header.sh_flags & SHF_EXECINSTR,
                             .no_bits = header.sh_type == SHT_NOBITS,
                             .text_or_data = strstr(name, "text") || strstr(name, "data"),
                             .is_init = strncmp(name, ".init", 5) == 0,
                             .alignment = header.sh_addralign};
    }
    if (image->type == ET_REL)
        sections_lay_out(&sections);
    return sections;
}

/* ---- symbol sections ---- */

bool symbol_section_open(const struct elf_image *image, const char *name, uint32_t type,
                         struct symbol_section *section) {
    GElf_Shdr header;
    *section = (struct symbol_section){.image = image};
    Elf_Scn *found = elf_section(image, name, &header);
    if (!found || header.sh_type != type)
        return false;
    section->data = elf_getdata(found, NULL);
    section->number = elf_ndxscn(found);
    size_t size = gelf_fsize(image->elf, ELF_T_SYM, 1, EV_CURRENT);
    if (!section->data || !section->data->d_buf || !size ||
        !elf_numbered_bytes(image, header.sh_link, &section->names))
        return false;
    section->count = section->data->d_size / size;
    if (section->count > INT32_MAX)
        section->count = INT32_MAX;
    return true;
}

bool symbol_section_get(const struct symbol_section *section, size_t number, GElf_Sym *symbol) {
    if (number >= section->count)
        return false;
    if (section->image->is_64 && !section->image->foreign_endian) {
        memcpy(symbol, (const char *)section->data->d_buf + number * sizeof *symbol,
               sizeof *symbol);
        return true;
    }
    return gelf_getsym(section->data, (int)number, symbol) != NULL;
}

static struct symbols_source source_of(const struct symbol_section *section) {
    return (struct symbols_source){.bytes = section->names, .terminator = 0};
}

/* A name's first bytes, for looking at: never beyond the section. */
static struct text name_at(const struct symbol_section *section, size_t place) {
    if (place >= section->names.length)
        return (struct text){"", 0};
    struct text name = text_from(section->names, place);
    size_t end = text_find(text_upto(name, name.length < 4 ? name.length : 4), 0);
    return text_upto(name, end != SIZE_MAX ? end : name.length < 4 ? name.length : 4);
}

/* $a, $d, $t, $x, alone or with .something behind: they mark what the bytes are, many at once. */
static bool is_arm_mark(uint16_t machine, struct text name) {
    return (machine == EM_ARM || machine == EM_AARCH64) && name.length >= 2 &&
           name.data[0] == '$' && strchr("adtx", name.data[1]) &&
           (name.length == 2 || name.data[2] == '.');
}

static bool is_mark(uint16_t machine, struct text name) {
    if (machine == EM_RISCV)
        return text_starts(name, TEXT("$x")) || text_starts(name, TEXT("$d")) ||
               text_starts(name, TEXT(".L"));
    return is_arm_mark(machine, name);
}

/* Looking at a name is a cache miss or a page fault for each symbol, half of what reading a table takes: only where names may be marks. */
static bool is_named(const struct symbol_section *from, const GElf_Sym *symbol) {
    uint16_t machine = from->image->machine;
    if (symbol->st_name == 0 || symbol->st_name >= from->names.length)
        return false;
    if (machine != EM_ARM && machine != EM_AARCH64 && machine != EM_RISCV)
        return true;
    struct text name = name_at(from, symbol->st_name);
    return name.length && !is_mark(machine, name);
}

/* ---- ours ---- */

static bool entry_from(const struct symbol_section *from, const struct sections *sections,
                       const GElf_Sym *symbol, struct entry *entry) {
    unsigned type = GELF_ST_TYPE(symbol->st_info), binding = GELF_ST_BIND(symbol->st_info);
    bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if (!function && type != STT_NOTYPE && type != STT_OBJECT)
        return false;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= sections->count)
        return false;
    const struct section *section = &sections->items[symbol->st_shndx];
    if (!section->allocated || !section->executable || !is_named(from, symbol))
        return false;
    uint64_t start = symbol->st_value;
    if (from->image->type == ET_REL) /* there it counts from the section */
        start = saturating_add(start, section->address);
    if (from->image->machine == EM_ARM && type == STT_FUNC)
        start &= ~(uint64_t)1;
    *entry = (struct entry){
        .start = start,
        .end = symbol->st_size ? saturating_add(start, symbol->st_size) : section->end,
        .name = symbol->st_name,
        .weak = binding == STB_WEAK,
        .global = binding == STB_GLOBAL,
        .flags = (uint8_t)((symbol->st_size ? 0 : ENTRY_UNSIZED) | (function ? ENTRY_CODE : 0)),
    };
    return entry->end > entry->start;
}

/* .gnu.version: two bytes a symbol of .dynsym; the top bit says that the version is not the default. */
static bool is_old_version(struct text versions, size_t number) {
    return number < versions.length / 2 && load_u16(versions.data + 2 * number) & 0x8000;
}

static void elf_symbols_add(struct symbols *symbols, const struct symbol_section *from,
                            uint8_t source) {
    struct sections sections = sections_read(from->image);
    struct text versions = {"", 0};
    if (source == 1 && !from->image->foreign_endian)
        elf_section_bytes(from->image, ".gnu.version", &versions);
    GElf_Sym symbol;
    struct entry entry;
    symbols->sources[source] = source_of(from);
    vector_reserve(&symbols->entries, symbols->entries.count + from->count);
    for (size_t i = 1; i < from->count; i++)
        if (symbol_section_get(from, i, &symbol) && entry_from(from, &sections, &symbol, &entry)) {
            entry.source = source;
            entry.flags |= is_old_version(versions, i) ? ENTRY_OLD : 0;
            symbols_add(symbols, &entry);
        }
    free(sections.items);
}

static bool open_static(const struct elf_image *image, const struct elf_image *debug,
                        struct symbol_section *section) {
    return (debug && symbol_section_open(debug, ".symtab", SHT_SYMTAB, section)) ||
           (image && symbol_section_open(image, ".symtab", SHT_SYMTAB, section));
}

static bool open_dynamic(const struct elf_image *image, struct symbol_section *section) {
    return image && symbol_section_open(image, ".dynsym", SHT_DYNSYM, section);
}

void elf_symbols_sources(struct symbols *symbols, const struct elf_image *image,
                         const struct elf_image *debug) {
    struct symbol_section section;
    struct text names;
    if (open_static(image, debug, &section))
        symbols->sources[0] = source_of(&section);
    else if (image && go_symbols_names(image, &names))
        symbols->sources[0] = (struct symbols_source){.bytes = names, .terminator = 0};
    if (open_dynamic(image, &section))
        symbols->sources[1] = source_of(&section);
}

static void elf_symbols_collect(struct symbols *symbols, const struct elf_image *image,
                                const struct elf_image *debug) {
    struct symbol_section section;
    if (open_static(image, debug, &section))
        elf_symbols_add(symbols, &section, 0);
    else if (image)
        go_symbols_add(symbols, image, 0);
    if (open_dynamic(image, &section))
        elf_symbols_add(symbols, &section, 1);
    else
        section = (struct symbol_section){.image = image};
    if (image)
        plt_load(symbols, image, &section, 1);
}

void elf_symbols_load(struct symbols *symbols, const struct elf_image *image,
                      const struct elf_image *debug) {
    elf_symbols_collect(symbols, image, debug);
    symbols_seal(symbols);
}

/* ---- for others to lay out ---- */

static void visit_entry(const struct symbols *symbols, const struct entry *entry,
                        struct buffer *name, code_symbol_visit *visit, void *context) {
    name->count = 0;
    symbols_print_name(symbols, entry, name, NULL);
    struct code_symbol symbol = {.name = buffer_text(name),
                                 .start = entry->start,
                                 .end = entry->end,
                                 .is_unsized = entry->flags & ENTRY_UNSIZED,
                                 .is_function = entry->flags & ENTRY_CODE,
                                 .is_stub = entry->flags & ENTRY_PLT,
                                 .rank = entry->global ? 2
                                         : entry->weak ? 1
                                                       : 0};
    if (name->count)
        visit(context, &symbol);
}

/* Names without versions, but not demangled. */
void object_each_symbol(const void *data, size_t size, code_symbol_visit *visit, void *context) {
    struct objects_options options = {0};
    struct symbols symbols;
    struct buffer name = {0};
    struct elf_image *image = elf_image_borrow(data, size, "", NULL);
    if (!image)
        return;
    symbols_init(&symbols, &options);
    symbols.keep_names = true;
    elf_symbols_collect(&symbols, image, NULL);
    for (size_t i = 0; i < symbols.entries.count; i++)
        visit_entry(&symbols, &symbols.entries.items[i], &name, visit, context);
    buffer_release(&name);
    symbols_release(&symbols);
    elf_image_free(image);
}

/* ---- perf's ---- */

/* perf's sieve. A label must be visible, and in a section whose name speaks of text or data. */
static bool perf_wants(const GElf_Sym *symbol, bool *label) {
    unsigned type = GELF_ST_TYPE(symbol->st_info), seen = GELF_ST_VISIBILITY(symbol->st_other);
    *label = type == STT_NOTYPE && seen != STV_HIDDEN && seen != STV_INTERNAL;
    return symbol->st_name != 0 && symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
           (*label || type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT);
}

/* The offset of an address by the first load segment that has it, else by the section. */
static uint64_t perf_offset(const struct elf_image *runtime, const struct section *section,
                            uint64_t address) {
    for (size_t i = 0; i < runtime->segment_count; i++) {
        const struct elf_segment *segment = &runtime->segments[i];
        uint64_t size =
            segment->memory_size > segment->file_size ? segment->memory_size : segment->file_size;
        if (address >= segment->address && address - segment->address < size)
            return address - segment->address + segment->offset;
    }
    return address - section->address + section->offset;
}

/* Add one symbol as perf does. Return false if its section does not exist; then perf stops reading. */
static bool perf_entry(const struct symbol_section *from, const struct elf_image *runtime,
                       const struct sections sections[2], GElf_Sym *symbol, struct entry *entry) {
    bool label;
    *entry = (struct entry){0};
    if (!perf_wants(symbol, &label) || symbol->st_name >= from->names.length ||
        is_arm_mark(from->image->machine, name_at(from, symbol->st_name)))
        return true;
    if (symbol->st_shndx >= sections[0].count)
        return false;
    const struct section *section = &sections[0].items[symbol->st_shndx];
    if (!section->allocated)
        return true;
    if (section->no_bits) {
        if (symbol->st_shndx >= sections[1].count)
            return false;
        section = &sections[1].items[symbol->st_shndx];
    }
    if (label && !section->text_or_data)
        return true;
    if (from->image->machine == EM_ARM && GELF_ST_TYPE(symbol->st_info) == STT_FUNC)
        symbol->st_value &= ~(uint64_t)1;
    unsigned binding = GELF_ST_BIND(symbol->st_info);
    entry->start = perf_offset(runtime, section, symbol->st_value);
    entry->end = saturating_add(entry->start, symbol->st_size);
    entry->name = (uint32_t)symbol->st_name;
    entry->weak = binding == STB_WEAK;
    entry->global = binding == STB_GLOBAL;
    return true;
}

static bool perf_add(struct perf_rounds *rounds, const struct symbol_section *from,
                     const struct elf_image *runtime, uint8_t source) {
    struct sections sections[2] = {sections_read(from->image), sections_read(runtime)};
    GElf_Sym symbol;
    struct entry entry;
    bool fine = true;
    rounds->symbols->sources[source] = source_of(from);
    for (size_t i = 0; fine && i < from->count && symbol_section_get(from, i, &symbol); i++) {
        fine = perf_entry(from, runtime, sections, &symbol, &entry);
        entry.source = source;
        if (fine && entry.name)
            perf_rounds_add(rounds, &entry);
    }
    free(sections[0].items);
    free(sections[1].items);
    if (fine)
        perf_rounds_end_round(rounds, false);
    return fine;
}

/* If perf stops reading, it keeps what it has as it is: no ends are set, no symbols chosen, no PLT added. */
void elf_symbols_load_perf(struct symbols *symbols, const struct elf_image *tables,
                           const struct elf_image *runtime) {
    struct perf_rounds rounds;
    struct symbol_section section;
    bool fine = true;
    perf_rounds_init(&rounds, symbols);
    if (symbol_section_open(tables, ".symtab", SHT_SYMTAB, &section))
        fine = perf_add(&rounds, &section, runtime, 0);
    if (fine && symbol_section_open(tables, ".dynsym", SHT_DYNSYM, &section))
        fine = perf_add(&rounds, &section, runtime, 1);
    /* perf names the PLT only where it found other symbols. */
    if (fine && rounds.live.count)
        plt_load_perf(&rounds, runtime, 2);
    perf_rounds_seal(&rounds);
}
