/*
 * Exported symbols of an ELF file, found in the memory it is mapped to: by its dynamic section and hash table, as the dynamic linker finds
 * them. No file is opened, so its mount namespace does not matter.
 */
#include "record/hotspot.h"

#include <elf.h>

struct dynamic {
    uint64_t base;
    uint64_t symbols, strings, hash;
};

/* glibc replaces the file's offsets by addresses; others leave them as they are. */
static uint64_t relocated(const struct dynamic *d, uint64_t value) {
    return value < d->base ? value + d->base : value;
}

static bool read_dynamic(struct remote *remote, uint64_t address, uint64_t size,
                         struct dynamic *d) {
    Elf64_Dyn entry;
    for (uint64_t at = 0; at + sizeof entry <= size && at < 256 * sizeof entry;
         at += sizeof entry) {
        if (!remote_small(remote, address + at, &entry, sizeof entry))
            return false;
        if (entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_SYMTAB)
            d->symbols = relocated(d, entry.d_un.d_ptr);
        if (entry.d_tag == DT_STRTAB)
            d->strings = relocated(d, entry.d_un.d_ptr);
        if (entry.d_tag == DT_GNU_HASH)
            d->hash = relocated(d, entry.d_un.d_ptr);
    }
    return d->symbols && d->strings && d->hash;
}

static bool find_dynamic(struct remote *remote, uint64_t base, struct dynamic *d) {
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    *d = (struct dynamic){.base = base};
    if (!remote_small(remote, base, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof segment || header.e_phnum > 64)
        return false;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        if (!remote_small(remote, base + header.e_phoff + i * sizeof segment, &segment,
                          sizeof segment))
            return false;
        if (segment.p_type == PT_DYNAMIC)
            return read_dynamic(remote, base + segment.p_vaddr, segment.p_memsz, d);
    }
    return false;
}

static uint32_t gnu_hash(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

static bool is_called(struct remote *remote, const struct dynamic *d, const Elf64_Sym *symbol,
                      const char *name) {
    char found[64];
    return remote_string(remote, d->strings + symbol->st_name, found, sizeof found) &&
           strcmp(found, name) == 0;
}

/* The table: number of buckets, first symbol, number of filter words, shift; the filter; the buckets; one hash per symbol, odd for the last
   of a bucket. */
uint64_t remote_symbol(struct remote *remote, uint64_t base, const char *name) {
    enum { CHAIN_MOST = 1000 };
    struct dynamic d;
    uint32_t head[4], number, hash = gnu_hash(name), found;
    if (!find_dynamic(remote, base, &d) || !remote_small(remote, d.hash, head, sizeof head) ||
        !head[0])
        return 0;
    uint64_t buckets = d.hash + sizeof head + 8ull * head[2], hashes = buckets + 4ull * head[0];
    if (!remote_u32(remote, buckets + 4ull * (hash % head[0]), &number) || number < head[1])
        return 0;
    for (uint32_t i = 0; i < CHAIN_MOST; i++, number++) {
        Elf64_Sym symbol;
        if (!remote_u32(remote, hashes + 4ull * (number - head[1]), &found))
            return 0;
        if ((found | 1) == (hash | 1) &&
            remote_small(remote, d.symbols + (uint64_t)number * sizeof symbol, &symbol,
                         sizeof symbol) &&
            is_called(remote, &d, &symbol, name))
            return base + symbol.st_value;
        if (found & 1)
            return 0;
    }
    return 0;
}
