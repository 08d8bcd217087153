/*
 * Unwinding rules: elfutils decodes each row of call frame information that is hit, once, into a few words of our own.
 *
 * Every frame of every sample needs a row, so a lookup must cost no more than a cache miss. Each object has an insert-only hash table from
 * address to row, which is read without a lock. Writers hold the table's own lock; a table that must grow is replaced, and the old one stays
 * readable. Decoding takes about 2 µs and happens once a row: a miss first searches the rows already decoded for the same page. An address
 * without a rule is remembered, too.
 *
 * Rules are read through a libelf handle of their own, not under the object's lock: that is held while symbols or the list of units are read,
 * and the unwinder would have to wait.
 */
#include "object/cfi_check.h"
#include "object/dwarf.h"
#include "object/internal.h"

#include <dwarf.h>
#include <stdlib.h>

/* No compiler writes expressions near this long; a hostile file may. */
#define OPS_MAX 200

struct slot {
    uint64_t key; /* address + 1; 0: empty. Stored last. */
    const struct cfi_row *row;
};

struct table {
    struct table *older; /* replaced, but perhaps still being read */
    uint64_t mask;
    uint64_t count;
    struct slot slots[];
};

/* A decoded row, in the list of a page that it was hit in. */
struct known {
    struct known *next;
    struct cfi_row *row;
};

struct object_cfi {
    pthread_mutex_t lock; /* of all that follows, but what never changes */
    struct table *table;  /* atomic */
    struct arena arena;
    VECTOR(struct known *) pages; /* lists; [0] is none */
    struct index page_index;
    const struct elf_image *image; /* NULL: there is none; its segments alone are used */
    Elf *elf;                      /* what eh_frame reads */
    Dwarf_CFI *eh_frame;
    Dwarf_CFI *debug_frame;
    struct dwarf_source dwarf;                 /* what debug_frame belongs to */
    bool refused;                              /* a file's rules are not fit to be run */
    uint16_t machine;                          /* 0: there is no file */
    const struct machine_registers *registers; /* NULL: none of the machines that we know */
    const struct made *made;                   /* OBJECT_MADE: what has the rules */
};

/* Which registers of a machine are worth keeping, and its stack pointer. */
struct machine_registers {
    uint16_t machine;
    uint8_t count;
    uint8_t stack;
    uint8_t frame_pointer;
    uint8_t return_address;
};
static const struct machine_registers machines[] = {
    {EM_X86_64, 17, 7, 6, 16},
    {EM_386, 9, 4, 5, 8},
    {EM_AARCH64, 32, 31, 29, 30},
};

/* Stands for "no rule" in the table. */
static const struct cfi_row no_row;

static const struct machine_registers *machine_find(uint16_t machine) {
    for (size_t i = 0; i < COUNT_OF(machines); i++)
        if (machines[i].machine == machine)
            return &machines[i];
    return NULL;
}

/* ---- the table ---- */

static const struct cfi_row *table_find(struct table *table, uint64_t address) {
    uint64_t key = address + 1;
    for (uint64_t i = hash_mix(key, 0) & table->mask;; i = (i + 1) & table->mask) {
        uint64_t found = __atomic_load_n(&table->slots[i].key, __ATOMIC_ACQUIRE);
        if (found == key)
            return table->slots[i].row;
        if (found == 0)
            return NULL;
    }
}

static void table_put(struct table *table, uint64_t key, const struct cfi_row *row) {
    uint64_t i = hash_mix(key, 0) & table->mask;
    while (table->slots[i].key)
        i = (i + 1) & table->mask;
    table->slots[i].row = row;
    __atomic_store_n(&table->slots[i].key, key, __ATOMIC_RELEASE);
    table->count++;
}

static struct table *table_new(uint64_t size, struct table *older) {
    struct table *table = memory_zero(1, sizeof *table + size * sizeof table->slots[0]);
    table->mask = size - 1;
    table->older = older;
    for (uint64_t i = 0; older && i <= older->mask; i++)
        if (older->slots[i].key)
            table_put(table, older->slots[i].key, older->slots[i].row);
    return table;
}

static void table_add(struct object_cfi *cfi, uint64_t address, const struct cfi_row *row) {
    struct table *table = cfi->table;
    if (table->count * 2 > table->mask) {
        table = table_new((table->mask + 1) * 2, table);
        __atomic_store_n(&cfi->table, table, __ATOMIC_RELEASE);
    }
    table_put(table, address + 1, row);
}

/* ---- rows that are decoded already, by page ---- */

static uint32_t page_find(const struct object_cfi *cfi, uint64_t page) {
    uint32_t id;
    for (struct probe p = index_probe(&cfi->page_index, hash_mix(page, 1));
         (id = index_next(&cfi->page_index, &p));)
        if (cfi->pages.items[id]->row->start >> 12 <= page &&
            (cfi->pages.items[id]->row->end - 1) >> 12 >= page)
            return id;
    return 0;
}

static const struct cfi_row *known_find(const struct object_cfi *cfi, uint64_t address) {
    uint32_t id = page_find(cfi, address >> 12);
    for (const struct known *k = id ? cfi->pages.items[id] : NULL; k; k = k->next)
        if (address >= k->row->start && address < k->row->end)
            return k->row;
    return NULL;
}

/* Rows end where the next begins, so one with the same end is the same row, hit further down: it is made longer. */
static struct cfi_row *known_extend(const struct object_cfi *cfi, uint64_t address, uint64_t end) {
    uint32_t id = page_find(cfi, address >> 12);
    for (struct known *k = id ? cfi->pages.items[id] : NULL; k; k = k->next)
        if (k->row->end == end) {
            k->row->start = address;
            return k->row;
        }
    return NULL;
}

static void known_add(struct object_cfi *cfi, uint64_t address, struct cfi_row *row) {
    struct known *known = arena_alloc(&cfi->arena, sizeof *known);
    uint32_t id = page_find(cfi, address >> 12);
    *known = (struct known){id ? cfi->pages.items[id] : NULL, row};
    if (id) {
        cfi->pages.items[id] = known;
        return;
    }
    vector_push(&cfi->pages, known);
    index_add(&cfi->page_index, hash_mix(address >> 12, 1), (uint32_t)cfi->pages.count - 1);
}

/* ---- decoding ---- */

/* A row while it is being made: rules and operations grow here and are then copied to the arena. */
struct draft {
    struct cfi_rule rules[64];
    VECTOR(struct cfi_op) ops;
    struct cfi_row row;
};

/* libdw gives a jump's distance in bytes from the end of the jump (3 bytes long); ours is an index. A target that is no
   operation's beginning points past the end, which the evaluator refuses. */
static uint32_t jump_target(const Dwarf_Op *ops, size_t count, const Dwarf_Op *jump) {
    uint64_t byte = jump->offset + 3 + (uint64_t)(int64_t)(int16_t)jump->number;
    for (size_t i = count; i-- > 0;)
        if (ops[i].offset == byte)
            return (uint32_t)i;
    return UINT32_MAX;
}

static bool draft_ops(struct draft *draft, const Dwarf_Op *ops, size_t count, int32_t *first) {
    if (count > OPS_MAX)
        return false;
    *first = (int32_t)draft->ops.count;
    for (size_t i = 0; i < count; i++) {
        struct cfi_op op = {ops[i].atom, 0, ops[i].number, ops[i].number2};
        if (op.atom == DW_OP_bra || op.atom == DW_OP_skip)
            op.target = jump_target(ops, count, &ops[i]);
        vector_push(&draft->ops, op);
    }
    return true;
}

static bool fits(int64_t value) {
    return value >= INT32_MIN && value <= INT32_MAX;
}

static bool draft_cfa(struct draft *draft, Dwarf_Frame *frame,
                      const struct machine_registers *registers) {
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count == 0)
        return false;
    struct cfi_row *row = &draft->row;
    uint64_t reg = UINT64_MAX;
    int64_t offset = 0;
    if (count == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
        reg = ops[0].atom - DW_OP_breg0;
        offset = (int64_t)ops[0].number;
    } else if (count == 1 && ops[0].atom == DW_OP_bregx) {
        reg = ops[0].number;
        offset = (int64_t)ops[0].number2;
    }
    if (reg < registers->count && fits(offset)) {
        row->cfa_register = (uint8_t)reg;
        row->cfa_offset = (int32_t)offset;
        return true;
    }
    row->cfa_register = CFI_CFA_BY_EXPRESSION;
    row->cfa_ops = (uint16_t)count;
    row->simple = false;
    return draft_ops(draft, ops, count, &row->cfa_offset);
}

static void draft_rule(struct draft *draft, uint8_t reg, enum cfi_kind kind, int64_t offset,
                       size_t op_count, uint8_t stack) {
    struct cfi_row *row = &draft->row;
    if (kind != CFI_AT_CFA || reg == stack)
        row->simple = false;
    draft->rules[row->rule_count++] =
        (struct cfi_rule){reg, (uint8_t)kind, (uint16_t)op_count, (int32_t)offset};
    row->kept |= 1ull << reg;
}

/* elfutils before 0.192 takes aarch64's "toggle return address signing" for SPARC's window save, which shares its number,
   and claims that x8–x15 are in x24–x31 and x16–x31 at CFA+0 … CFA+120. No aarch64 code saves above its CFA. */
static bool is_window_save(const struct machine_registers *registers, uint8_t reg,
                           enum cfi_kind kind, int64_t offset) {
    if (registers->machine != EM_AARCH64)
        return false;
    return (kind == CFI_IN_REGISTER && reg >= 8 && reg < 16 && offset == reg + 16) ||
           (kind == CFI_AT_CFA && reg >= 16 && reg < 32 && offset == (reg - 16) * 8);
}

enum { RBX = 3 };

/* What libdw says of a register comes as location operations; the common shapes are told apart here. False: undefined, or
   beyond us, which comes to the same. */
static bool draft_register(struct draft *draft, Dwarf_Frame *frame, uint8_t reg,
                           const struct machine_registers *registers) {
    Dwarf_Op memory[3], *ops;
    size_t count;
    if (dwarf_frame_register(frame, reg, memory, &ops, &count) != 0)
        return false;
    /* Unchanged; else undefined. libdw takes 0 for the number of rbx, of which most functions say nothing. */
    if (count == 0)
        return ops == NULL || (registers->machine == EM_X86_64 && reg == RBX);
    enum cfi_kind kind = CFI_AT_EXPRESSION;
    bool is_value = ops[count - 1].atom == DW_OP_stack_value;
    size_t plain = count - is_value;
    int64_t offset = 0;
    if (ops[0].atom == DW_OP_regx && count == 1) {
        kind = CFI_IN_REGISTER;
        offset = (int64_t)ops[0].number;
    } else if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31 && count == 1) {
        kind = CFI_IN_REGISTER;
        offset = ops[0].atom - DW_OP_reg0;
    } else if (ops[0].atom == DW_OP_call_frame_cfa &&
               (plain == 1 || (plain == 2 && ops[1].atom == DW_OP_plus_uconst))) {
        kind = is_value ? CFI_CFA_PLUS : CFI_AT_CFA;
        offset = plain == 2 ? (int64_t)ops[1].number : 0;
    }
    if (is_window_save(registers, reg, kind, offset))
        return true;
    if (kind == CFI_IN_REGISTER && (uint64_t)offset >= registers->count)
        return false;
    if (kind == CFI_CFA_PLUS && offset == 0 && reg == registers->stack)
        return true;
    int32_t first = 0;
    if (kind == CFI_AT_EXPRESSION || !fits(offset)) {
        kind = is_value ? CFI_EXPRESSION : CFI_AT_EXPRESSION;
        if (!draft_ops(draft, ops, plain, &first))
            return false;
        offset = first;
    }
    draft_rule(draft, reg, kind, offset, plain, registers->stack);
    return true;
}

static int draft_find(const struct draft *draft, unsigned reg) {
    for (uint32_t i = 0; i < draft->row.rule_count; i++)
        if (draft->rules[i].reg == reg && draft->rules[i].kind == CFI_AT_CFA)
            return (int)i;
    return -1;
}

/*
 * A function that leaves by __builtin_eh_return (libgcc's _Unwind_Resume and its like) saves registers 0 and 1 too, which no other does: they
 * carry the exception to its handler. On x86_64 its last three instructions have loaded what is the handler's, the frame pointer last, and
 * move the stack pointer there, from rcx; what gcc's rules say there of the other registers is stale.
 */
static void draft_throws(struct draft *draft) {
    enum { RDX = 1, RCX = 2, RBP = 6 };
    struct cfi_row *row = &draft->row;
    row->throws = !row->signal_frame && draft_find(draft, 0) >= 0 && draft_find(draft, RDX) >= 0;
    if (!row->throws || row->machine != EM_X86_64)
        return;
    row->landing = draft_find(draft, RBP) < 0 && row->cfa_register != RBP;
    if (!row->landing || row->cfa_register != RCX)
        return;
    int at = draft_find(draft, row->return_register);
    row->rule_count = at >= 0;
    draft->rules[0] = draft->rules[at >= 0 ? at : 0];
}

static struct cfi_row *draft_keep(struct object_cfi *cfi, const struct draft *draft) {
    size_t rules = draft->row.rule_count * sizeof draft->rules[0];
    size_t ops = draft->ops.count * sizeof draft->ops.items[0];
    struct cfi_row *row = arena_alloc(&cfi->arena, sizeof *row + rules);
    memcpy(row, &draft->row, sizeof *row);
    memcpy(row->rules, draft->rules, rules);
    if (ops) {
        struct cfi_op *copy = arena_alloc(&cfi->arena, ops);
        row->ops = memcpy(copy, draft->ops.items, ops);
    }
    return row;
}

static struct cfi_row *row_decode(struct object_cfi *cfi, Dwarf_Frame *frame, uint64_t address) {
    const struct machine_registers *registers = cfi->registers;
    struct draft draft = {.row = {.machine = cfi->machine, .simple = true}};
    Dwarf_Addr start, end;
    bool signal_frame;
    int return_register = dwarf_frame_info(frame, &start, &end, &signal_frame);
    struct cfi_row *row = NULL;
    if (return_register >= 0 && return_register < registers->count && start <= address &&
        address < end && draft_cfa(&draft, frame, registers)) {
        /* elfutils 0.188 forgets to move the start on when a state is restored, so that a row seems to begin where the
           state was remembered. What is certain begins here. */
        draft.row.start = address;
        draft.row.end = end;
        draft.row.signal_frame = signal_frame;
        draft.row.return_register = (uint8_t)return_register;
        for (uint8_t reg = 0; reg < registers->count; reg++)
            if (draft_register(&draft, frame, reg, registers))
                draft.row.kept |= 1ull << reg;
        draft.row.kept |= 1ull << registers->stack;
        draft_throws(&draft);
        row = draft_keep(cfi, &draft);
    }
    vector_release(&draft.ops);
    return row;
}

static struct cfi_row *row_from(struct object_cfi *cfi, Dwarf_CFI *source, uint64_t address) {
    Dwarf_Frame *frame = NULL;
    if (!source || dwarf_cfi_addrframe(source, address, &frame) != 0)
        return NULL;
    struct cfi_row *row = row_decode(cfi, frame, address);
    free(frame);
    return row;
}

/* ---- an object's sources of rules ---- */

static void cfi_release(void *data) {
    struct object_cfi *cfi = data;
    if (cfi->eh_frame)
        dwarf_cfi_end(cfi->eh_frame);
    elf_end(cfi->elf);
    dwarf_source_close(&cfi->dwarf);
    for (struct table *table = cfi->table, *older; table; table = older) {
        older = table->older;
        free(table);
    }
    vector_release(&cfi->pages);
    index_release(&cfi->page_index);
    arena_release(&cfi->arena);
    pthread_mutex_destroy(&cfi->lock);
    free(cfi);
}

static bool has_section(const struct elf_image *image, const char *name) {
    GElf_Shdr header;
    return image && elf_section(image, name, &header) && header.sh_type != SHT_NOBITS;
}

/* .debug_frame costs opening the whole debug information, so only files that have one pay for it. */
static void open_debug_frame(struct object_cfi *cfi, const struct elf_image *image) {
    if (cfi->debug_frame ||
        (!has_section(image, ".debug_frame") && !has_section(image, ".zdebug_frame")))
        return;
    if (!dwarf_source_open(&cfi->dwarf, image, false))
        return;
    if (cfi_debug_frame_is_sane(cfi->dwarf.elf, image->is_64))
        cfi->debug_frame = dwarf_getcfi(cfi->dwarf.dwarf);
    else
        cfi->refused = true;
    if (!cfi->debug_frame)
        dwarf_source_close(&cfi->dwarf);
}

/* The caller holds the object's lock. */
static struct object_cfi *cfi_new(struct objects *objects, struct object *object) {
    struct object_cfi *cfi = memory_zero(1, sizeof *cfi);
    const struct elf_image *image = object_image(objects, object);
    lock_init_brief(&cfi->lock);
    cfi->table = table_new(64, NULL);
    vector_push(&cfi->pages, NULL);
    if (object->made) {
        cfi->made = object->made;
        cfi->machine = made_machine(object->made);
        cfi->registers = machine_find(cfi->machine);
    }
    if (!image)
        return cfi;
    cfi->image = image;
    cfi->machine = image->machine;
    cfi->registers = image->foreign_endian ? NULL : machine_find(image->machine);
    if (!cfi->registers)
        return cfi;
    cfi->elf = elf_memory((char *)(uintptr_t)image->data, image->size);
    if (cfi_eh_frame_is_sane(image))
        cfi->eh_frame = dwarf_getcfi_elf(cfi->elf);
    else
        cfi->refused = true;
    open_debug_frame(cfi, image);
    open_debug_frame(cfi, object_debug(objects, object));
    return cfi;
}

static struct object_cfi *cfi_of(struct objects *objects, struct object *object) {
    void **place = &object->extras[SLOT_CFI].data;
    struct object_cfi *cfi = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (cfi)
        return cfi;
    pthread_mutex_lock(&object->lock);
    if (!(cfi = *place)) {
        cfi = cfi_new(objects, object);
        object->extras[SLOT_CFI].release = cfi_release;
        __atomic_store_n(place, cfi, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&object->lock);
    return cfi;
}

/* ---- code that a process made ---- */

/* An ELF file with nothing but .eh_frame, for libdw: as far behind the code as its writer had it. */
static void eh_frame_image(const struct object_cfi *cfi, const struct made_rule *rule,
                           struct buffer *image) {
    static const char names[] = "\0.eh_frame\0.shstrtab";
    struct {
        Elf64_Ehdr header;
        Elf64_Shdr sections[3];
    } head = {0};
    uint64_t at = sizeof head;
    head.header = (Elf64_Ehdr){.e_type = ET_DYN,
                               .e_machine = cfi->machine,
                               .e_version = EV_CURRENT,
                               .e_shoff = sizeof head.header,
                               .e_ehsize = sizeof head.header,
                               .e_shentsize = sizeof head.sections[0],
                               .e_shnum = COUNT_OF(head.sections),
                               .e_shstrndx = 2};
    memcpy(head.header.e_ident, ELFMAG, SELFMAG);
    head.header.e_ident[EI_CLASS] = ELFCLASS64;
    head.header.e_ident[EI_DATA] = ELFDATA2LSB;
    head.header.e_ident[EI_VERSION] = EV_CURRENT;
    head.sections[1] = (Elf64_Shdr){.sh_name = 1,
                                    .sh_type = SHT_PROGBITS,
                                    .sh_flags = SHF_ALLOC,
                                    .sh_addr = rule->place + (rule->size + 7) / 8 * 8,
                                    .sh_offset = at,
                                    .sh_size = rule->eh_frame.length,
                                    .sh_addralign = 1};
    head.sections[2] = (Elf64_Shdr){.sh_name = 11,
                                    .sh_type = SHT_STRTAB,
                                    .sh_offset = at + rule->eh_frame.length,
                                    .sh_size = sizeof names,
                                    .sh_addralign = 1};
    buffer_add(image, (struct text){(const char *)&head, sizeof head});
    buffer_add(image, rule->eh_frame);
    buffer_add(image, (struct text){names, sizeof names});
}

/* Open the piece's rules for a single lookup: the row is kept, so it is needed once. */
static struct cfi_row *row_from_eh_frame(struct object_cfi *cfi, const struct made_rule *rule,
                                         uint64_t address) {
    struct buffer bytes = {0};
    struct cfi_row *row = NULL;
    if (cfi->machine == EM_386)
        return NULL;
    eh_frame_image(cfi, rule, &bytes);
    struct elf_image *image = elf_image_borrow(bytes.items, bytes.count, "made code", NULL);
    bool is_sane = image && cfi_eh_frame_is_sane(image);
    Dwarf_CFI *source = is_sane ? dwarf_getcfi_elf(image->elf) : NULL;
    if (source) {
        row = row_from(cfi, source, address);
        dwarf_cfi_end(source);
    }
    cfi->refused |= !is_sane;
    elf_image_free(image);
    buffer_release(&bytes);
    return row;
}

static struct cfi_row *row_from_made(struct object_cfi *cfi, const struct made_rule *rule) {
    const struct machine_registers *registers = cfi->registers;
    const struct made_row *made = rule->row;
    struct draft draft = {.row = {.start = rule->start,
                                  .end = rule->end,
                                  .cfa_register = made->cfa_register,
                                  .cfa_offset = made->cfa_offset,
                                  .machine = cfi->machine,
                                  .return_register = registers->return_address,
                                  .is_interpreter = made->is_interpreter,
                                  .may_have_crumb = made->may_have_crumb,
                                  .simple = true}};
    if (made->cfa_register >= registers->count)
        return NULL;
    draft.row.kept = 1ull << registers->stack | 1ull << registers->frame_pointer;
    for (uint8_t i = 0; i < made->rule_count; i++) {
        const struct cfi_rule *own = &made->rules[i];
        bool by_register = own->kind == CFI_IN_REGISTER;
        if (own->reg >= registers->count || own->kind > CFI_IN_REGISTER ||
            (by_register && (own->offset < 0 || own->offset >= registers->count)))
            return NULL;
        draft_rule(&draft, own->reg, own->kind, own->offset, 0, registers->stack);
    }
    if (made->is_end)
        draft.row.kept &= ~(1ull << registers->return_address);
    return draft_keep(cfi, &draft);
}

static struct cfi_row *row_of_made(struct object_cfi *cfi, uint64_t address) {
    struct made_rule rule;
    if (!made_row_at(cfi->made, address, &rule))
        return NULL;
    return rule.row ? row_from_made(cfi, &rule) : row_from_eh_frame(cfi, &rule, address);
}

/* ---- asking ---- */

static const struct cfi_row *find_row(struct object_cfi *cfi, uint64_t address) {
    uint64_t at = address;
    if (!cfi->registers || (!cfi->made && !elf_offset_to_address(cfi->image, address, &at)))
        return &no_row;
    const struct cfi_row *known = known_find(cfi, at);
    if (known)
        return known;
    struct cfi_row *row = cfi->made ? row_of_made(cfi, at) : row_from(cfi, cfi->eh_frame, at);
    if (!row && !cfi->made)
        row = row_from(cfi, cfi->debug_frame, at);
    if (!row)
        return &no_row;
    known = known_extend(cfi, at, row->end);
    if (known)
        return known;
    known_add(cfi, at, row);
    return row;
}

static const struct cfi_row *find_slowly(struct object_cfi *cfi, uint64_t address) {
    pthread_mutex_lock(&cfi->lock);
    const struct cfi_row *row = table_find(cfi->table, address);
    if (!row) {
        row = find_row(cfi, address);
        table_add(cfi, address, row);
    }
    pthread_mutex_unlock(&cfi->lock);
    return row;
}

const struct cfi_row *objects_cfi(struct objects *objects, uint32_t id, uint64_t address) {
    if (address == UINT64_MAX) /* its key would be that of an empty slot */
        return NULL;
    struct object_cfi *cfi = cfi_of(objects, objects_object(objects, id));
    const struct cfi_row *row = table_find(__atomic_load_n(&cfi->table, __ATOMIC_ACQUIRE), address);
    if (!row)
        row = find_slowly(cfi, address);
    return row == &no_row ? NULL : row;
}

bool object_cfi_refused(const struct object *object) {
    const struct object_cfi *cfi =
        __atomic_load_n(&object->extras[SLOT_CFI].data, __ATOMIC_ACQUIRE);
    return cfi && cfi->refused;
}

uint16_t objects_machine(struct objects *objects, uint32_t id) {
    void **place = &objects_object(objects, id)->extras[SLOT_CFI].data;
    const struct object_cfi *cfi = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    return cfi ? cfi->machine : 0;
}

/* ---- the file itself ---- */

bool objects_entry(struct objects *objects, uint32_t id, uint64_t *address) {
    struct object *object = objects_object(objects, id);
    GElf_Ehdr header;
    pthread_mutex_lock(&object->lock);
    const struct elf_image *image = object_image(objects, object);
    bool found = image && gelf_getehdr(image->elf, &header) && header.e_entry &&
                 elf_address_to_offset(image, header.e_entry, address);
    pthread_mutex_unlock(&object->lock);
    return found;
}

bool objects_read(struct objects *objects, uint32_t id, uint64_t address, void *bytes,
                  size_t size) {
    struct object *object = objects_object(objects, id);
    bool found = false;
    pthread_mutex_lock(&object->lock);
    const struct elf_image *image = object_image(objects, object);
    for (size_t i = 0; image && i < image->segment_count && !found; i++) {
        const struct elf_segment *segment = &image->segments[i];
        uint64_t into = address - segment->offset;
        if (segment->writable || address < segment->offset || into >= segment->file_size ||
            segment->file_size - into < size || address > image->size ||
            image->size - address < size)
            continue;
        memcpy(bytes, image->data + address, size);
        found = true;
    }
    pthread_mutex_unlock(&object->lock);
    return found;
}
