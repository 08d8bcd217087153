/*
 * Convert addresses in folded text to chains of inlined functions with file:line, using the program's DWARF, in this process. Each address is
 * looked up once. A line torn by a kill becomes a note with its number, and reading continues.
 */
#include "object/object.h"
#include "trace/trace.h"
#include "stacks/stacks.h"

#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>

static const struct note_kind note_torn = {
    "enrich-torn-lines", "# line{|s} {was|were} not `0x…;0x… count`, and {was|were} skipped"};
static const struct note_kind note_unknown = {
    "enrich-unknown", "# address{|es} {is|are} in no function of the ELF file"};

struct enricher {
    struct file elf;
    struct objects *objects;
    uint32_t object;
    struct functions *functions;
    VECTOR(GElf_Phdr) segments;
    struct flame *flame;
    struct notes *notes;
    struct inline_chain chain;
    struct buffer text;
    struct index index;
    VECTOR(uint64_t) addresses;        /* item 0 is none */
    VECTOR(struct naming_entry) known; /* with the same number: its labels */
    VECTOR(struct label) labels;
};

/* The object room expects file offsets. */
static bool file_offset(const struct enricher *e, uint64_t address, uint64_t *offset) {
    for (size_t i = 0; i < e->segments.count; i++) {
        const GElf_Phdr *s = &e->segments.items[i];
        if (address >= s->p_vaddr && address - s->p_vaddr < s->p_filesz) {
            *offset = s->p_offset + (address - s->p_vaddr);
            return true;
        }
    }
    return false;
}

static void push_label(struct enricher *e, uint32_t kinds) {
    uint32_t name = strings_add(e->flame->strings, buffer_text(&e->text));
    vector_push(&e->labels, ((struct label){.name = name, .kinds = kinds}));
    e->text.count = 0;
}

static void name_chain(struct enricher *e) {
    for (size_t i = 0; i < e->chain.count; i++) {
        const struct inline_frame *frame = &e->chain.items[i];
        buffer_add(&e->text, frame->name.length ? frame->name : TEXT("??"));
        if (frame->file.length)
            buffer_printf(&e->text, " (%.*s:%u)", TEXT_ARGS(frame->file), frame->line);
        for (size_t k = 0; k < e->text.count; k++)
            if (e->text.items[k] == ';')
                e->text.items[k] = ':';
        push_label(e, i ? KIND_INLINED : 0);
    }
}

static void name_address(struct enricher *e, uint64_t address) {
    uint64_t offset;
    struct symbol symbol;
    bool inside = file_offset(e, address, &offset);
    if (inside && objects_inlines(e->objects, e->object, offset, true, &e->chain) &&
        e->chain.count && e->chain.items[0].name.length) {
        name_chain(e);
        return;
    }
    uint32_t function = functions_find(e->functions, address).function;
    if (inside && objects_symbol(e->objects, e->object, offset, &symbol))
        buffer_add(&e->text, symbol.name);
    else if (function)
        buffer_add(&e->text, functions_name(e->functions, function));
    else {
        buffer_printf(&e->text, "0x%llx", (unsigned long long)address);
        notes_add(e->notes, &note_unknown, 1, 0, NULL);
    }
    push_label(e, function ? 0 : KIND_UNKNOWN);
}

static struct naming_entry labels_of(struct enricher *e, uint64_t address) {
    uint64_t hash = hash_mix(address, 0);
    uint32_t number;
    for (struct probe p = index_probe(&e->index, hash); (number = index_next(&e->index, &p));)
        if (e->addresses.items[number] == address)
            return e->known.items[number];
    struct naming_entry entry = {.first = (uint32_t)e->labels.count};
    name_address(e, address);
    entry.count = (uint16_t)(e->labels.count - entry.first);
    number = (uint32_t)e->addresses.count;
    vector_push(&e->addresses, address);
    vector_push(&e->known, entry);
    index_add(&e->index, hash, number);
    return entry;
}

static bool parse_address(struct text frame, uint64_t *address) {
    return text_starts(frame, TEXT("0x")) && text_hex_to_u64(text_from(frame, 2), address);
}

/* Check that every frame is an address and that there is a count, before any of it counts. */
static bool line_is_whole(struct text line, uint64_t *count) {
    size_t space = text_find_last(line, ' ');
    uint64_t address;
    if (space == SIZE_MAX || !text_to_u64(text_from(line, space + 1), count))
        return false;
    for (struct text rest = text_upto(line, space);;) {
        size_t end = text_find(rest, ';');
        struct text frame = end == SIZE_MAX ? rest : text_upto(rest, end);
        if (!parse_address(frame, &address) && !text_starts(frame, TEXT("ecall:")) &&
            !text_equal(frame, TEXT("[partial]")))
            return false;
        if (end == SIZE_MAX)
            return true;
        rest = text_from(rest, end + 1);
    }
}

static void add_line(struct enricher *e, struct text line, uint64_t count) {
    uint32_t node = 0;
    for (struct text rest = text_upto(line, text_find_last(line, ' '));;) {
        size_t end = text_find(rest, ';');
        struct text frame = end == SIZE_MAX ? rest : text_upto(rest, end);
        uint64_t address;
        if (parse_address(frame, &address)) {
            struct naming_entry entry = labels_of(e, address);
            for (uint32_t i = 0; i < entry.count; i++)
                node = flame_child(e->flame, node, &e->labels.items[entry.first + i]);
        } else
            node = flame_child(e->flame, node,
                               &(struct label){.name = strings_add(e->flame->strings, frame)});
        if (end == SIZE_MAX)
            break;
        rest = text_from(rest, end + 1);
    }
    e->flame->nodes.items[node].self = saturating_add(e->flame->nodes.items[node].self, count);
}

static bool open_elf(struct enricher *e, const char *path, const struct context *context,
                     struct error *error) {
    if (!file_open_raw(&e->elf, path, context, error))
        return false;
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)e->elf.data, e->elf.size);
    size_t count = 0;
    if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &count) != 0) {
        elf_end(elf);
        return error_at(error, path, 0, "not an ELF file");
    }
    for (size_t i = 0; i < count && i < 256; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD)
            vector_push(&e->segments, header);
    }
    elf_end(elf);
    functions_add_elf(e->functions, e->elf.data, e->elf.size, 0);
    return true;
}

static void read_lines(struct enricher *e, struct text raw, const char *path) {
    uint64_t number = 0, count;
    while (raw.length) {
        struct text line = text_take_line(&raw);
        number++;
        if (!text_trim(line).length)
            continue;
        if (line_is_whole(line, &count))
            add_line(e, line, count);
        else
            notes_add(e->notes, &note_torn, 1, number, "%s:%llu", path, (unsigned long long)number);
    }
}

struct flame *trace_enrich(struct text raw, const char *path, const char *elf,
                           const struct context *context, struct notes *notes,
                           struct error *error) {
    struct objects_options options = {.lines = true, .context = context};
    struct enricher e = {.objects = objects_new(&options),
                         .functions = functions_new(),
                         .flame = flame_new(),
                         .notes = notes};
    vector_push(&e.addresses, 0);
    vector_push(&e.known, ((struct naming_entry){0}));
    struct object_identity identity = {.path = text_of(elf), .kind = OBJECT_FILE};
    bool fine = open_elf(&e, elf, context, error);
    if (fine) {
        e.object = objects_add(e.objects, &identity);
        read_lines(&e, raw, path);
        e.flame->unit = strings_add(e.flame->strings, TEXT("instructions"));
        fine = flame_finish(e.flame, error) && !file_changed(&e.elf, error) &&
               !objects_changed(e.objects, error);
    }
    struct flame *flame = e.flame;
    if (!fine) {
        flame_free(flame);
        flame = NULL;
    }
    file_close(&e.elf);
    objects_free(e.objects);
    functions_free(e.functions);
    vector_release(&e.segments);
    vector_release(&e.chain);
    buffer_release(&e.text);
    index_release(&e.index);
    vector_release(&e.addresses);
    vector_release(&e.known);
    vector_release(&e.labels);
    return flame;
}
