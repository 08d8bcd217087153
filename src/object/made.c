/*
 * Generated code: pieces, their lines and rules, in vectors by place. A lookup costs two binary searches and no lock.
 */
#include "object/made.h"
#include "object/internal.h"

#include <stdlib.h>

/* So that the return address after a call at a piece's end is in no other piece, and no place is 0. */
enum { GAP = 64 };
/* A function's takes some hundred bytes. All of it is read for each row. */
enum { EH_FRAME_MOST = 64 << 10 };

struct made_entry {
    uint64_t place;
    uint64_t size;
    uint32_t name, language, file; /* strings */
    uint32_t line;
    uint32_t first_line, line_count;
    uint32_t first_row, row_count;
    struct text code;
    struct text eh_frame;
};

struct line {
    uint64_t from; /* into its piece */
    uint32_t first_frame, count;
};

struct line_frame {
    uint32_t name, file; /* strings */
    uint32_t line;
};

struct ruled {
    uint64_t from; /* into its piece */
    struct made_row row;
    bool is_none;
};

struct made {
    _Atomic(uint32_t) references;
    uint16_t machine;
    uint64_t next; /* place */
    struct strings *strings;
    VECTOR(struct made_entry) pieces;
    VECTOR(struct line) lines;
    VECTOR(struct line_frame) frames;
    VECTOR(struct ruled) rows;
    VECTOR(struct buffer) bytes;
};

struct made *made_new(uint16_t machine) {
    struct made *made = memory_zero(1, sizeof *made);
    made->references = 1;
    made->machine = machine;
    made->next = GAP;
    made->strings = strings_new();
    return made;
}

struct made *made_share(struct made *made) {
    made->references++;
    return made;
}

void made_free(struct made *made) {
    if (!made || --made->references)
        return;
    for (size_t i = 0; i < made->bytes.count; i++)
        buffer_release(&made->bytes.items[i]);
    vector_release(&made->bytes);
    vector_release(&made->pieces);
    vector_release(&made->lines);
    vector_release(&made->frames);
    vector_release(&made->rows);
    strings_free(made->strings);
    free(made);
}

/* ---- filling ---- */

static uint32_t intern(struct made *made, struct text text) {
    return text.length ? strings_add(made->strings, text) : 0;
}

uint64_t made_add(struct made *made, const struct made_piece *piece) {
    struct made_entry added = {.place = made->next,
                               .size = piece->size,
                               .name = intern(made, piece->name),
                               .language = intern(made, piece->language),
                               .file = intern(made, piece->file),
                               .line = piece->line,
                               .first_line = (uint32_t)made->lines.count,
                               .first_row = (uint32_t)made->rows.count,
                               .code = piece->code,
                               .eh_frame = piece->eh_frame};
    assert(piece->size > 0 && piece->size <= UINT32_MAX);
    if (added.eh_frame.length > EH_FRAME_MOST)
        added.eh_frame = TEXT("");
    made->next += (added.size + 2 * GAP) / GAP * GAP;
    vector_push(&made->pieces, added);
    return added.place;
}

static struct made_entry *last_piece(struct made *made) {
    assert(made->pieces.count > 0);
    return &made->pieces.items[made->pieces.count - 1];
}

void made_add_line(struct made *made, uint64_t from, const struct made_frame *frames,
                   size_t count) {
    struct made_entry *piece = last_piece(made);
    const struct line *before =
        piece->line_count ? &made->lines.items[made->lines.count - 1] : NULL;
    if (from >= piece->size || (before && from < before->from))
        return;
    struct line line = {from, (uint32_t)made->frames.count, (uint32_t)count};
    for (size_t i = 0; i < count; i++) {
        struct line_frame frame = {intern(made, frames[i].name), intern(made, frames[i].file),
                                   frames[i].line};
        vector_push(&made->frames, frame);
    }
    vector_push(&made->lines, line);
    piece->line_count++;
}

void made_add_row(struct made *made, uint64_t from, const struct made_row *row) {
    struct made_entry *piece = last_piece(made);
    const struct ruled *before = piece->row_count ? &made->rows.items[made->rows.count - 1] : NULL;
    struct ruled ruled = {.from = from, .is_none = !row};
    if (from >= piece->size || (before && from < before->from))
        return;
    assert(!row || row->rule_count <= MADE_RULES);
    if (row)
        ruled.row = *row;
    vector_push(&made->rows, ruled);
    piece->row_count++;
}

void made_keep_bytes(struct made *made, struct buffer *bytes) {
    vector_push(&made->bytes, *bytes);
    *bytes = (struct buffer){0};
}

size_t made_count(const struct made *made) {
    return made->pieces.count;
}

void objects_set_made(struct objects *objects, uint32_t id, struct made *made) {
    struct object *object = objects_object(objects, id);
    assert(object->identity.kind == OBJECT_MADE);
    made_free(object->made);
    object->made = made;
}

/* ---- asking ---- */

static const struct made_entry *entry_at(const struct made *made, uint64_t address) {
    size_t after = made ? search_first(middle, 0, made->pieces.count,
                                       made->pieces.items[middle].place <= address)
                        : 0;
    const struct made_entry *piece = after ? &made->pieces.items[after - 1] : NULL;
    return piece && address - piece->place < piece->size ? piece : NULL;
}

/* Of texts of an object that nothing else may be known of, so never a NULL. */
static struct text text_at(const struct made *made, uint32_t string) {
    return string ? strings_get(made->strings, string) : TEXT("");
}

bool made_symbol(const struct made *made, uint64_t address, struct symbol *symbol) {
    const struct made_entry *piece = entry_at(made, address);
    if (!piece || !piece->name)
        return false;
    *symbol = (struct symbol){.name = text_at(made, piece->name),
                              .start = piece->place,
                              .end = piece->place + piece->size,
                              .language = text_at(made, piece->language)};
    return true;
}

static const struct line *line_at(const struct made *made, const struct made_entry *piece,
                                  uint64_t address) {
    if (!piece->line_count)
        return NULL;
    const struct line *lines = made->lines.items + piece->first_line;
    uint64_t into = address - piece->place;
    size_t after = search_first(middle, 0, piece->line_count, lines[middle].from <= into);
    return after ? &lines[after - 1] : NULL;
}

static void chain_add(struct inline_chain *chain, const struct made *made,
                      const struct made_entry *piece, const struct line_frame *at,
                      uint64_t number) {
    uint32_t name = at->name || number ? at->name : piece->name;
    struct inline_frame frame = {.name = text_at(made, name),
                                 .file = text_at(made, at->file),
                                 .line = at->line,
                                 .start = piece->place,
                                 .id = piece->place + number,
                                 .language = text_at(made, piece->language)};
    vector_push(chain, frame);
}

bool made_inlines(const struct made *made, uint64_t address, struct inline_chain *chain) {
    const struct made_entry *piece = entry_at(made, address);
    const struct line *line = piece ? line_at(made, piece, address) : NULL;
    if (!piece)
        return false;
    for (uint32_t i = 0; line && i < line->count; i++)
        chain_add(chain, made, piece, &made->frames.items[line->first_frame + i], i);
    if (!chain->count)
        chain_add(chain, made, piece, &(struct line_frame){piece->name, piece->file, piece->line},
                  0);
    return true;
}

struct text made_code(const struct made *made, uint64_t start, uint64_t end, uint32_t *machine) {
    const struct made_entry *piece = entry_at(made, start);
    if (!piece || end < start || end - piece->place > piece->code.length)
        return TEXT("");
    *machine = made->machine;
    return text_upto(text_from(piece->code, start - piece->place), end - start);
}

uint16_t made_machine(const struct made *made) {
    return made ? made->machine : 0;
}

bool made_row_at(const struct made *made, uint64_t address, struct made_rule *rule) {
    const struct made_entry *piece = entry_at(made, address);
    if (!piece)
        return false;
    const struct ruled *rows = piece->row_count ? made->rows.items + piece->first_row : NULL;
    uint64_t into = address - piece->place;
    size_t after = search_first(middle, 0, piece->row_count, rows[middle].from <= into);
    *rule = (struct made_rule){.place = piece->place, .size = piece->size};
    rule->eh_frame = piece->eh_frame;
    if (after && !rows[after - 1].is_none) {
        rule->row = &rows[after - 1].row;
        rule->start = piece->place + rows[after - 1].from;
        rule->end = piece->place + (after < piece->row_count ? rows[after].from : piece->size);
    }
    return rule->row || rule->eh_frame.length;
}
