/*
 * Whether libdw may run the rules of a file.
 *
 * libdw keeps an array of all registers up to the largest that is named, and a copy of it for each state that is remembered: a register
 * number of 2^30 costs gigabytes. It can't be told to stop, so all rules are read here once, when a file's are first asked for; that costs
 * about 50 ns a function. What .eh_frame_hdr finds must be one of the entries that were read, or else it could hide one between them.
 */
#include "object/cfi_check.h"

#include <dwarf.h>
#include <stdlib.h>

/* Far above any machine's. */
enum { REGISTERS_MOST = 1024, STATES_MOST = 64 };

struct frames {
    struct text bytes;
    bool is_eh;
    bool is_64;
    bool is_endless; /* as far as anybody knows: an entry of no length ends it */
    uint8_t *begins; /* bit by byte: an entry begins here. Not all are aligned */
    struct cie {
        uint32_t at; /* + 1 */
        uint8_t encoding;
        bool is_augmented;
    } cie, /* of the FDE at hand */
        recent[16];
};

/* ---- numbers ---- */

struct cursor {
    const uint8_t *at, *end;
    bool failed;
};

static uint64_t read_leb(struct cursor *c) {
    uint64_t value = 0;
    if (c->at < c->end && *c->at < 0x80)
        return *c->at++;
    for (unsigned shift = 0; c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    c->failed = true;
    return 0;
}

static void skip(struct cursor *c, uint64_t size) {
    if (size > (uint64_t)(c->end - c->at))
        c->failed = true;
    else
        c->at += size;
}

/* An address as .eh_frame has them. */
static void skip_encoded(struct cursor *c, uint8_t encoding, bool is_64) {
    switch (encoding & 0x0f) {
    case DW_EH_PE_absptr:
        skip(c, is_64 ? 8 : 4);
        break;
    case DW_EH_PE_uleb128:
    case DW_EH_PE_sleb128:
        read_leb(c);
        break;
    case DW_EH_PE_udata2:
    case DW_EH_PE_sdata2:
        skip(c, 2);
        break;
    case DW_EH_PE_udata4:
    case DW_EH_PE_sdata4:
        skip(c, 4);
        break;
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
        skip(c, 8);
        break;
    default:
        c->failed = true;
    }
}

/* ---- instructions ---- */

/* What follows an instruction's first byte: r a register, n a number, b a block, a an address, 1 2 4 8 bytes. */
static const char *const operands[] = {
    [DW_CFA_nop] = "",
    [DW_CFA_set_loc] = "a",
    [DW_CFA_advance_loc1] = "1",
    [DW_CFA_advance_loc2] = "2",
    [DW_CFA_advance_loc4] = "4",
    [DW_CFA_offset_extended] = "rn",
    [DW_CFA_restore_extended] = "r",
    [DW_CFA_undefined] = "r",
    [DW_CFA_same_value] = "r",
    [DW_CFA_register] = "rr",
    [DW_CFA_remember_state] = "",
    [DW_CFA_restore_state] = "",
    [DW_CFA_def_cfa] = "rn",
    [DW_CFA_def_cfa_register] = "r",
    [DW_CFA_def_cfa_offset] = "n",
    [DW_CFA_def_cfa_expression] = "b",
    [DW_CFA_expression] = "rb",
    [DW_CFA_offset_extended_sf] = "rn",
    [DW_CFA_def_cfa_sf] = "rn",
    [DW_CFA_def_cfa_offset_sf] = "n",
    [DW_CFA_val_offset] = "rn",
    [DW_CFA_val_offset_sf] = "rn",
    [DW_CFA_val_expression] = "rb",
    [DW_CFA_MIPS_advance_loc8] = "8",
    [DW_CFA_GNU_window_save] = "",
    [DW_CFA_GNU_args_size] = "n",
    [DW_CFA_GNU_negative_offset_extended] = "rn",
};

/* False: a register that no machine has. */
static bool operand_read(struct cursor *c, char kind, const struct frames *f) {
    switch (kind) {
    case 'r':
        return read_leb(c) < REGISTERS_MOST;
    case 'n':
        read_leb(c);
        break;
    case 'b':
        skip(c, read_leb(c));
        break;
    case 'a':
        skip_encoded(c, f->cie.encoding, f->is_64);
        break;
    default:
        skip(c, (uint64_t)(kind - '0'));
    }
    return true;
}

static const uint8_t *behind_leb(const uint8_t *at, const uint8_t *end) {
    while (at < end && *at & 0x80)
        at++;
    return at < end ? at + 1 : end;
}

/* What is cut short, or not known, libdw refuses itself, and no sooner than here. Most programs are made of what comes first. */
static bool program_is_sane(struct cursor c, const struct frames *f) {
    unsigned states = 0;
    while (c.at < c.end && !c.failed) {
        uint8_t op = *c.at++;
        if (op >> 6 == DW_CFA_offset >> 6 || op == DW_CFA_def_cfa_offset) {
            c.at = behind_leb(c.at, c.end);
            continue;
        }
        if (op >> 6 || op == DW_CFA_nop)
            continue;
        if (op >= COUNT_OF(operands) || !operands[op])
            return true;
        for (const char *kind = operands[op]; *kind; kind++)
            if (!operand_read(&c, *kind, f))
                return false;
        states += op == DW_CFA_remember_state;
        states -= op == DW_CFA_restore_state && states;
        if (states > STATES_MOST)
            return false;
    }
    return true;
}

/* ---- entries ---- */

static void augmentation_read(struct frames *f, const char *letters, struct cursor *c) {
    uint64_t size = read_leb(c);
    struct cursor data = {c->at, c->end, c->failed};
    skip(c, size);
    for (; *letters && !data.failed; letters++) {
        if (*letters == 'R') {
            if (data.at < data.end)
                f->cie.encoding = *data.at++;
        } else if (*letters == 'P') {
            uint8_t encoding = data.at < data.end ? *data.at++ : 0;
            skip_encoded(&data, encoding, f->is_64);
        } else if (*letters == 'L') {
            skip(&data, 1);
        }
    }
}

/* Reads what its FDEs need to know, too. */
static bool cie_is_sane(struct frames *f, struct cursor c) {
    uint8_t version = c.at < c.end ? *c.at++ : 0;
    const char *letters = (const char *)c.at;
    size_t length = strnlen(letters, (size_t)(c.end - c.at));
    f->cie.encoding = DW_EH_PE_absptr;
    f->cie.is_augmented = length && letters[0] == 'z';
    skip(&c, length + 1);
    if (!c.failed && strcmp(letters, "eh") == 0)
        skip(&c, f->is_64 ? 8 : 4);
    if (version >= 4)
        skip(&c, 2);
    read_leb(&c);
    read_leb(&c);
    uint64_t returns = 0;
    if (version == 1 && c.at < c.end)
        returns = *c.at++;
    else
        returns = read_leb(&c);
    if (!c.failed && f->cie.is_augmented)
        augmentation_read(f, letters + 1, &c);
    return c.failed || (returns < REGISTERS_MOST && program_is_sane(c, f));
}

static bool begins_at(const struct frames *f, uint64_t at) {
    return at < f->bytes.length && f->begins[at / 8] >> at % 8 & 1;
}

struct frame_entry {
    struct cursor body; /* behind its id */
    uint64_t next;
    uint64_t cie; /* where an FDE's is */
    bool is_cie;
    bool is_empty;
};

/* False at the end. A length of 0 is stepped over: there may be more behind it. */
static bool entry_at(const struct frames *f, uint64_t at, struct frame_entry *entry) {
    const uint8_t *data = (const uint8_t *)f->bytes.data;
    uint64_t left = f->bytes.length - at, head = 4;
    if (left < 8)
        return false;
    uint64_t size = load_u32(data + at);
    *entry = (struct frame_entry){.is_empty = size == 0, .next = at + 4};
    if (entry->is_empty)
        return !f->is_endless;
    bool is_wide = size == UINT32_MAX;
    size_t width = is_wide ? 8 : 4;
    if (is_wide) {
        if (left < 24)
            return false;
        size = load_u64(data + at + 4);
        head = 12;
    }
    if (size > left - head || size < width)
        return false;
    uint64_t id = is_wide ? load_u64(data + at + head) : load_u32(data + at + head);
    entry->is_cie = id == (f->is_eh ? 0 : is_wide ? UINT64_MAX : UINT32_MAX);
    entry->cie = f->is_eh ? at + head - id : id; /* wraps around where it is nonsense */
    entry->body = (struct cursor){data + at + head + width, data + at + head + size, false};
    entry->next = at + head + size;
    return true;
}

/* Files have a few, and their FDEs take turns. */
static bool cie_enter(struct frames *f, uint64_t at) {
    struct frame_entry entry;
    struct cie *recent = &f->recent[at / 4 % COUNT_OF(f->recent)];
    if (recent->at && recent->at - 1 == at) {
        f->cie = *recent;
        return true;
    }
    if (!begins_at(f, at) || !entry_at(f, at, &entry) || !entry.is_cie)
        return false;
    f->cie = (struct cie){.at = (uint32_t)at + 1};
    if (!cie_is_sane(f, entry.body))
        return false;
    *recent = f->cie;
    return true;
}

static bool fde_is_sane(struct frames *f, const struct frame_entry *entry) {
    struct cursor c = entry->body;
    if (!cie_enter(f, entry->cie))
        return false;
    skip_encoded(&c, f->cie.encoding, f->is_64);
    skip_encoded(&c, f->cie.encoding & 0x0f, f->is_64);
    if (f->cie.is_augmented)
        skip(&c, read_leb(&c));
    return c.failed || program_is_sane(c, f);
}

/* A CIE stands before its FDEs. */
static bool entries_are_sane(struct frames *f) {
    struct frame_entry entry;
    for (uint64_t at = 0; entry_at(f, at, &entry); at = entry.next) {
        if (entry.is_empty)
            continue;
        f->begins[at / 8] |= (uint8_t)(1u << at % 8);
        if (!entry.is_cie && !fde_is_sane(f, &entry))
            return false;
    }
    return true;
}

/* ---- the table in .eh_frame_hdr ---- */

/* As all linkers write it, or not at all. */
static bool table_is_sane(const struct frames *f, struct text table, uint64_t table_address,
                          uint64_t address) {
    const char *data = table.data;
    if (table.length < 12 || (uint8_t)data[2] == DW_EH_PE_omit || (uint8_t)data[3] == DW_EH_PE_omit)
        return true;
    if ((uint8_t)data[2] != DW_EH_PE_udata4 ||
        (uint8_t)data[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4) ||
        ((uint8_t)data[1] & 0x0f) % 8 != 3)
        return false;
    uint64_t count = load_u32(data + 8);
    for (uint64_t i = 0; i < count && 12 + 8 * i + 8 <= table.length; i++) {
        int32_t entry = (int32_t)load_u32(data + 12 + 8 * i + 4);
        if (!begins_at(f, table_address + (uint64_t)(int64_t)entry - address))
            return false;
    }
    return true;
}

static bool frames_are_sane(struct frames *f) {
    if (f->bytes.length >= UINT32_MAX)
        return false;
    f->begins = memory_zero(f->bytes.length / 8 + 1, 1);
    return entries_are_sane(f);
}

/* A file without sections: the table is in a segment, and says where the rules begin. */
static bool segment_is_sane(const struct elf_image *image, struct frames *f) {
    GElf_Phdr header;
    size_t count = 0;
    elf_getphdrnum(image->elf, &count);
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(image->elf, (int)i, &header) || header.p_type != PT_GNU_EH_FRAME)
            continue;
        uint64_t end;
        if (!checked_add(header.p_offset, header.p_filesz, &end) || end > image->size ||
            header.p_filesz < 8)
            return false;
        struct text table = {(const char *)image->data + header.p_offset, header.p_filesz};
        if ((uint8_t)table.data[1] != (DW_EH_PE_pcrel | DW_EH_PE_sdata4))
            return false;
        uint64_t from = 4 + (uint64_t)(int64_t)(int32_t)load_u32(table.data + 4);
        uint64_t at = header.p_offset + from;
        if (at > image->size)
            return false;
        f->bytes = (struct text){(const char *)image->data + at, image->size - at};
        f->is_endless = true;
        return frames_are_sane(f) && table_is_sane(f, table, header.p_vaddr, header.p_vaddr + from);
    }
    return true;
}

/* As libdw looks for them: the last table before the first rules. */
static bool sections_are_sane(const struct elf_image *image, struct frames *f) {
    GElf_Shdr header, table_header = {0};
    struct text table = {0};
    for (Elf_Scn *section = NULL; (section = elf_nextscn(image->elf, section));) {
        if (!gelf_getshdr(section, &header))
            continue;
        const char *name = elf_section_name(image, &header);
        if (strcmp(name, ".eh_frame_hdr") == 0 &&
            elf_numbered_bytes(image, elf_ndxscn(section), &table))
            table_header = header;
        if (strcmp(name, ".eh_frame") == 0)
            return !elf_numbered_bytes(image, elf_ndxscn(section), &f->bytes) ||
                   (frames_are_sane(f) &&
                    table_is_sane(f, table, table_header.sh_addr, header.sh_addr));
    }
    return true;
}

bool cfi_eh_frame_is_sane(const struct elf_image *image) {
    struct frames f = {.is_eh = true, .is_64 = image->is_64};
    size_t count = 0;
    elf_getshdrnum(image->elf, &count);
    bool sane = count ? sections_are_sane(image, &f) : segment_is_sane(image, &f);
    free(f.begins);
    return sane;
}

bool cfi_debug_frame_is_sane(Elf *elf, bool is_64) {
    size_t names;
    struct frames f = {.is_64 = is_64};
    bool sane = true;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *section = NULL; sane && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name || (strcmp(name, ".debug_frame") != 0 && strcmp(name, ".zdebug_frame") != 0))
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        f.bytes = data ? (struct text){data->d_buf, data->d_size} : (struct text){0};
        sane = header.sh_type == SHT_NOBITS || frames_are_sane(&f);
        free(f.begins);
        f = (struct frames){.is_64 = is_64};
    }
    return sane;
}
