/* samply's symbols beside a profile: one table of strings and, for each library, its symbols with lines, and the
   symbol of each address. */
#include "import/sidecar.h"

#include <ctype.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { NONE = SIDECAR_NONE };

static bool key_is(const struct sidecar *s, struct text name) {
    return text_equal(buffer_text(&s->key), name);
}

/* Append an element to an array, unless the budget is exceeded. */
static bool next_element(struct sidecar *s) {
    return json_element(&s->json) && !(s->options->budget && budget_exceeded(s->options->budget));
}

static bool string_value(struct sidecar *s) {
    s->text.count = 0;
    return json_string(&s->json, &s->text);
}

/* Read a 32-bit number, or null. */
static bool index_value(struct sidecar *s, uint32_t *value) {
    *value = NONE;
    return json_peek(&s->json) == 'n' ? json_skip(&s->json) : json_index(&s->json, value);
}

/* A debug id has two forms: "2D8F…B0" with 32 digits and the age, or a lower-case UUID, after which an age of 0 is
   omitted. Put the first form in s->text, in lower case. */
static struct text normal_id(struct sidecar *s, struct text id) {
    enum { UUID_DIGITS = 32 };
    s->text.count = 0;
    for (size_t i = 0; i < id.length; i++)
        if (id.data[i] != '-')
            buffer_add_char(&s->text, (char)tolower((unsigned char)id.data[i]));
    if (s->text.count == UUID_DIGITS)
        buffer_add_char(&s->text, '0');
    return buffer_text(&s->text);
}

/* ---- reading ---- */

static bool read_strings(struct sidecar *s) {
    bool fine = json_take(&s->json, '[');
    while (fine && next_element(s)) {
        fine = string_value(s);
        vector_push(&s->strings, strings_add(s->tree->strings, buffer_text(&s->text)));
    }
    return fine;
}

static bool read_line(struct sidecar *s) {
    struct sidecar_line line = {NONE, NONE, 0};
    bool fine = json_take(&s->json, '{');
    while (fine && json_member(&s->json, &s->key))
        fine = key_is(s, TEXT("function")) ? index_value(s, &line.function)
               : key_is(s, TEXT("file"))   ? index_value(s, &line.file)
               : key_is(s, TEXT("line"))   ? index_value(s, &line.line)
                                           : json_skip(&s->json);
    line.line = line.line == NONE ? 0 : line.line;
    vector_push(&s->lines, line);
    return fine;
}

static bool read_lines(struct sidecar *s) {
    if (json_peek(&s->json) == 'n')
        return json_skip(&s->json);
    bool fine = json_take(&s->json, '[');
    while (fine && next_element(s))
        fine = read_line(s);
    return fine;
}

static bool read_symbol(struct sidecar *s) {
    struct sidecar_symbol symbol = {NONE, (uint32_t)s->lines.count, 0};
    bool fine = json_take(&s->json, '{');
    while (fine && json_member(&s->json, &s->key))
        fine = key_is(s, TEXT("symbol"))   ? index_value(s, &symbol.name)
               : key_is(s, TEXT("frames")) ? read_lines(s)
                                           : json_skip(&s->json);
    symbol.line_count = (uint32_t)(s->lines.count - symbol.first_line);
    vector_push(&s->symbols, symbol);
    return fine;
}

/* [address, symbol] */
static bool read_address(struct sidecar *s) {
    struct sidecar_address address = {.library = (uint32_t)s->libraries.count};
    bool fine = json_take(&s->json, '[') && json_element(&s->json) &&
                json_index(&s->json, &address.address) && json_element(&s->json) &&
                json_index(&s->json, &address.symbol) && !json_element(&s->json);
    vector_push(&s->addresses, address);
    return fine;
}

static bool read_list(struct sidecar *s, bool (*read)(struct sidecar *)) {
    bool fine = json_take(&s->json, '[');
    while (fine && next_element(s))
        fine = read(s);
    return fine;
}

/* A library numbers its symbols from 0, and may have addresses before them. */
static bool read_library(struct sidecar *s) {
    size_t first_symbol = s->symbols.count, first_address = s->addresses.count;
    uint32_t id = 0;
    bool fine = json_take(&s->json, '{');
    while (fine && json_member(&s->json, &s->key)) {
        bool is_id = key_is(s, TEXT("debug_id"));
        struct buffer text = {0};
        fine = is_id                                ? json_string(&s->json, &text)
               : key_is(s, TEXT("symbol_table"))    ? read_list(s, read_symbol)
               : key_is(s, TEXT("known_addresses")) ? read_list(s, read_address)
                                                    : json_skip(&s->json);
        if (is_id)
            id = strings_add(s->tree->strings, normal_id(s, buffer_text(&text)));
        buffer_release(&text);
    }
    for (size_t i = first_address; i < s->addresses.count; i++) {
        fine = fine && s->addresses.items[i].symbol < s->symbols.count - first_symbol;
        s->addresses.items[i].symbol += (uint32_t)first_symbol;
    }
    vector_push(&s->libraries, id);
    return fine;
}

static bool read_document(struct sidecar *s) {
    bool fine = json_take(&s->json, '{');
    while (fine && json_member(&s->json, &s->key))
        fine = key_is(s, TEXT("string_table")) ? read_strings(s)
               : key_is(s, TEXT("data"))       ? read_list(s, read_library)
                                               : json_skip(&s->json);
    return fine && s->strings.count;
}

/* Check that all names exist: the strings may come last. */
static bool check_names(const struct sidecar *s) {
    size_t count = s->strings.count;
    for (size_t i = 0; i < s->symbols.count; i++)
        if (s->symbols.items[i].name >= count)
            return false;
    for (size_t i = 0; i < s->lines.count; i++) {
        const struct sidecar_line *line = &s->lines.items[i];
        if ((line->function != NONE && line->function >= count) ||
            (line->file != NONE && line->file >= count))
            return false;
    }
    return true;
}

/* ---- the file ---- */

static bool has_regular(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool sidecar_path(const char *path, struct buffer *sidecar) {
    struct text stem = text_of(path), packed = TEXT(".json.gz");
    size_t slash = text_find_last(stem, '/'), name = slash == SIZE_MAX ? 0 : slash + 1,
           dot = text_find_last(text_from(stem, name), '.');
    if (dot == SIZE_MAX || dot == 0)
        return false;
    size_t lengths[] = {name + dot, text_ends(stem, packed) ? stem.length - packed.length : 0};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        size_t before = sidecar->count;
        buffer_printf(sidecar, "%.*s.syms.json%c", TEXT_ARGS(text_upto(stem, lengths[i])), 0);
        if (lengths[i] && has_regular(sidecar->items + before))
            return true;
        sidecar->count = before;
    }
    return false;
}

/* ---- finding ---- */

static uint32_t place_of(const struct sidecar *s, uint32_t library, uint32_t address) {
    uint32_t at;
    for (struct probe p = index_probe(&s->by_address, hash_mix(library, address));
         (at = index_next(&s->by_address, &p));)
        if (s->addresses.items[at - 1].library == library &&
            s->addresses.items[at - 1].address == address)
            return at;
    return 0;
}

static uint32_t library_of(const struct sidecar *s, uint32_t id) {
    uint32_t at;
    for (struct probe p = index_probe(&s->by_id, hash_mix(id, 0));
         (at = index_next(&s->by_id, &p));)
        if (s->libraries.items[at - 1] == id)
            return at - 1;
    return NONE;
}

bool sidecar_read(struct sidecar *s, const struct import_options *options, struct tree *tree) {
    *s = (struct sidecar){.tree = tree, .options = options, .json = {options->sidecar}};
    if (options->budget)
        budget_grow(options->budget, options->sidecar.length);
    if (!read_document(s) || !check_names(s))
        return false;
    for (size_t i = 0; i < s->libraries.count; i++)
        if (library_of(s, s->libraries.items[i]) == NONE)
            index_add(&s->by_id, hash_mix(s->libraries.items[i], 0), (uint32_t)i + 1);
    for (size_t i = 0; i < s->addresses.count; i++) {
        const struct sidecar_address *address = &s->addresses.items[i];
        if (!place_of(s, address->library, address->address))
            index_add(&s->by_address, hash_mix(address->library, address->address),
                      (uint32_t)i + 1);
    }
    return true;
}

void sidecar_release(struct sidecar *s) {
    buffer_release(&s->key);
    buffer_release(&s->text);
    vector_release(&s->strings);
    vector_release(&s->libraries);
    vector_release(&s->symbols);
    vector_release(&s->lines);
    vector_release(&s->addresses);
    index_release(&s->by_id);
    index_release(&s->by_address);
}

uint32_t sidecar_library(struct sidecar *s, struct text debug_id) {
    if (!debug_id.length)
        return NONE;
    uint32_t id = strings_add(s->tree->strings, normal_id(s, debug_id));
    return library_of(s, id);
}

const struct sidecar_symbol *sidecar_find(const struct sidecar *s, uint32_t library,
                                          uint64_t address) {
    if (library == NONE || address > UINT32_MAX)
        return NULL;
    uint32_t at = place_of(s, library, (uint32_t)address);
    return at ? &s->symbols.items[s->addresses.items[at - 1].symbol] : NULL;
}

size_t sidecar_line_count(const struct sidecar_symbol *symbol) {
    return symbol->line_count ? symbol->line_count : 1;
}

/* The outermost function is the symbol itself if debug information does not name it. */
struct frame sidecar_frame(const struct sidecar *s, const struct sidecar_symbol *symbol, size_t i) {
    struct sidecar_line line = {NONE, NONE, 0};
    if (i < symbol->line_count)
        line = s->lines.items[symbol->first_line + i];
    if (line.function == NONE && i + 1 == sidecar_line_count(symbol))
        line.function = symbol->name;
    return (struct frame){.name = line.function == NONE ? 0 : s->strings.items[line.function],
                          .file = line.file == NONE ? 0 : s->strings.items[line.file],
                          .line = line.line};
}
