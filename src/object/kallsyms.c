/*
 * The kernel's symbols, as in /proc/kallsyms: "address type name", followed by "\t[module]" for a module's symbol.
 *
 * The list has 120,000 lines and 5 MB, and is parsed by hand in one pass. Names stay where they are. Symbols have no size: each reaches to the next
 * one, and the last one before the seam between kernel and modules to the end of the page after it.
 *
 * A recording refers to a few hundred of the running kernel's symbols, and the kernel's own are in order of address. So the text is kept and
 * divided into blocks, and only the blocks of requested addresses become tables.
 */
#include "object/internal.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static int hex_digit(unsigned char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Eight hexadecimal digits at once; false if they are not. Each byte becomes a digit, which is right if it is spelt as the byte was, and then
   neighbours are pushed together. */
static bool eight_digits(const char *p, uint64_t *value) {
    const uint64_t ones = 0x0101010101010101ull;
    uint64_t bytes = load_u64((const uint8_t *)p);
    uint64_t digits = (bytes & 15 * ones) + 9 * (bytes >> 6 & ones);
    uint64_t letters = (digits + 6 * ones) >> 4 & ones;
    if (digits & 0xf0 * ones || digits + '0' * ones + 39 * letters != (bytes | 0x20 * ones))
        return false;
    digits = __builtin_bswap64(digits);
    digits = (digits | digits >> 4) & 0x00ff00ff00ff00ffull;
    digits = (digits | digits >> 8) & 0x0000ffff0000ffffull;
    *value = (digits | digits >> 16) & 0xffffffff;
    return true;
}

struct line {
    uint64_t address;
    char type;
    size_t name; /* where it begins */
    bool module;
};

/* Reads the line at *at, and moves on to the next. False: it is no symbol. */
static bool line_read(struct text text, size_t *at, struct line *line) {
    const char *p = text.data + *at, *end = text.data + text.length;
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    *at = stop ? (size_t)(stop - text.data) + 1 : text.length;
    stop = stop ? stop : end;
    uint64_t address = 0, high, low;
    const char *first = p;
    if (stop - p > 16 && eight_digits(p, &high) && eight_digits(p + 8, &low)) {
        address = high << 32 | low;
        p += 16;
    }
    for (int digit; p < stop && (digit = hex_digit((unsigned char)*p)) >= 0; p++)
        address = address << 4 | (unsigned)digit;
    if (p == first || stop - p < 4 || p[0] != ' ' || p[2] != ' ')
        return false;
    *line = (struct line){.address = address, .type = p[1], .name = (size_t)(p + 3 - text.data)};
    line->module = stop[-1] == ']'; /* its name is at the end of the line */
    return true;
}

static struct text whole_lines(struct text text) {
    size_t last = text_find_last(text, '\n');
    return text_upto(text, last == SIZE_MAX ? 0 : last + 1);
}

struct kernel_symbols_job {
    bool (*each)(void *context, const struct kernel_symbol *symbol);
    void *context;
};

/* Calls each() for the lines of `text` that are whole, or for all at its `end`. Returns how much was read; *stop: each() wants no more. */
static size_t each_in(struct text text, bool end, struct kernel_symbols_job job, bool *stop) {
    struct line line;
    text = end ? text : whole_lines(text);
    for (size_t at = 0; at < text.length && !*stop;) {
        if (!line_read(text, &at, &line))
            continue;
        struct text name = text_from(text_upto(text, at), line.name);
        size_t length = 0;
        while (length < name.length && !strchr("\t\n ", name.data[length]))
            length++;
        struct kernel_symbol symbol = {line.address, line.type, text_upto(name, length)};
        *stop = !job.each(job.context, &symbol);
    }
    return text.length;
}

/* Hands a list to `take` piece by piece; it returns how much of one it has read, and sets *stop when it wants no more. What is left of a line goes
   before the next piece. False: the list can't be read. */
static bool list_read(int list,
                      size_t (*take)(void *context, struct text piece, bool end, bool *stop),
                      void *context) {
    enum { PIECE = 1 << 16 };
    char *text = memory_alloc(2 * PIECE);
    size_t left = 0;
    ssize_t got = 0;
    for (bool stop = false; !stop && left < PIECE && (got = read(list, text + left, PIECE)) >= 0;) {
        struct text piece = {text, left + (size_t)got};
        size_t done = take(context, piece, got == 0, &stop);
        left = piece.length - done;
        memmove(text, text + done, left);
        stop |= got == 0;
    }
    free(text);
    return got >= 0;
}

static size_t take_each(void *context, struct text piece, bool end, bool *stop) {
    return each_in(piece, end, *(struct kernel_symbols_job *)context, stop);
}

bool kernel_symbols_each(bool (*each)(void *context, const struct kernel_symbol *symbol),
                         void *context) {
    struct kernel_symbols_job job = {each, context};
    int list = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    if (list < 0)
        return false;
    bool fine = list_read(list, take_each, &job);
    close(list);
    return fine;
}

static bool is_symbol_type(char type) {
    switch (type | 0x20) {
    case 't':
    case 'w':
    case 'd':
    case 'b':
        return true;
    default:
        return false;
    }
}

static bool is_function_type(char type) {
    return type && strchr("TtWwA", type);
}

bool kallsyms_find(struct text text, struct text name, uint64_t *address) {
    struct line line;
    for (size_t at = 0; at < text.length;) {
        if (!line_read(text, &at, &line) || !is_function_type(line.type))
            continue;
        struct text rest = text_from(text, line.name);
        if (text_starts(rest, name) &&
            (rest.length == name.length || rest.data[name.length] == '\n')) {
            *address = line.address;
            return true;
        }
    }
    return false;
}

struct text kallsyms_module(const struct symbols *symbols, const struct entry *entry) {
    if (!(entry->flags & ENTRY_MODULE))
        return (struct text){"", 0};
    struct text rest = text_from(symbols->sources[entry->source].bytes, entry->name);
    size_t end = text_find(rest, '\n');
    rest = end == SIZE_MAX ? rest : text_upto(rest, end);
    size_t bracket = text_find_last(rest, '[');
    return bracket == SIZE_MAX ? (struct text){"", 0} : text_trim(text_from(rest, bracket));
}

static struct entry entry_of(const struct line *line) {
    return (struct entry){.start = line->address,
                          .end = line->address,
                          .name = (uint32_t)line->name,
                          .weak = line->type == 'W',
                          .global = line->type != 'W' && isupper((unsigned char)line->type),
                          .flags = line->module ? ENTRY_MODULE : 0};
}

/* ---- ours ---- */

/* Names that the linker's script puts at a boundary, and the copies that early boot code calls: true, and of no use. */
static bool is_boundary(struct text name) {
    static const struct text ends[] = {TEXT("_start"), TEXT("_end"), TEXT("_begin")};
    static const struct text whole[] = {TEXT("_text"), TEXT("_stext"), TEXT("_etext"),
                                        TEXT("_sinittext"), TEXT("_einittext")};
    for (size_t i = 0; i < COUNT_OF(whole); i++)
        if (text_equal(name, whole[i]))
            return true;
    if (text_starts(name, TEXT("__pi_")))
        return true;
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (text_starts(name, TEXT("__")) && text_ends(name, ends[i]))
            return true;
    return false;
}

/* Of two names for one address: no boundary, not weak, not local, and then the later, as perf has it. */
static bool second_better(const struct symbols *symbols, const struct entry *a,
                          const struct entry *b) {
    bool boundary_a = is_boundary(symbols_raw_name(symbols, a)),
         boundary_b = is_boundary(symbols_raw_name(symbols, b));
    if (boundary_a != boundary_b)
        return boundary_a;
    if (a->weak != b->weak)
        return a->weak;
    return b->global || !a->global;
}

static void keep_best(struct symbols *symbols) {
    struct entry *entries = symbols->entries.items;
    size_t kept = 0;
    for (size_t i = 0; i < symbols->entries.count; i++) {
        if (!kept || entries[kept - 1].start != entries[i].start)
            entries[kept++] = entries[i];
        else if (second_better(symbols, &entries[kept - 1], &entries[i]))
            entries[kept - 1] = entries[i];
    }
    symbols->entries.count = kept;
}

static void set_ends(struct symbols *symbols) {
    struct entry *entries = symbols->entries.items;
    for (size_t i = 0; i < symbols->entries.count; i++) {
        uint64_t page = saturating_add(entries[i].start, 8191) & ~(uint64_t)4095;
        bool last = i + 1 == symbols->entries.count;
        bool seam =
            !last && (entries[i].flags & ENTRY_MODULE) != (entries[i + 1].flags & ENTRY_MODULE);
        entries[i].end =
            last || (seam && page < entries[i + 1].start) ? page : entries[i + 1].start;
    }
}

static void seal_plain(struct symbols *symbols) {
    entries_sort(symbols->entries.items, symbols->entries.count);
    keep_best(symbols);
    set_ends(symbols);
    symbols_seal_newest(symbols);
}

static void load_plain(struct symbols *symbols, struct text text) {
    struct line line;
    vector_reserve(&symbols->entries, text.length / 40);
    for (size_t at = 0; at < text.length && list_may_grow(symbols, at);)
        if (line_read(text, &at, &line) && line.address && is_symbol_type(line.type))
            vector_push(&symbols->entries, entry_of(&line));
    seal_plain(symbols);
}

/* ---- the running kernel's, as text that is searched where it is ---- */

struct kernel_reader {
    struct kernel_list *list;
    struct text reference;
    struct buffer *marks;
    size_t scanned; /* bytes */
    size_t lines;
    uint64_t last;  /* address of the last of the kernel's own symbols */
    bool is_behind; /* all lines of the kernel's own were read */
    bool is_mixed;  /* another symbol is among the kernel's own */
    bool is_shown;
};

static void mark(struct kernel_reader *r, const struct line *line, struct text rest) {
    const struct text names[] = {TEXT("_text"), TEXT("_stext"), r->reference};
    uint64_t known;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i].length && text_starts(rest, names[i]) &&
            (rest.length == names[i].length || rest.data[names[i].length] == '\n') &&
            !kallsyms_find(buffer_text(r->marks), names[i], &known))
            buffer_printf(r->marks, "%016llx T %.*s\n", (unsigned long long)line->address,
                          TEXT_ARGS(names[i]));
}

/* A block begins with the first symbol of an address, so that all names of an address are in one block. */
static void take_own(struct kernel_reader *r, uint64_t address, size_t start, size_t end) {
    enum { BLOCK = 1 << 10 };
    struct kernel_list *list = r->list;
    size_t count = list->blocks.count;
    if (!count || (address > r->last && start - list->blocks.items[count - 1].at >= BLOCK))
        vector_push(&list->blocks, ((struct kernel_block){address, start}));
    r->last = address;
    list->own = end;
}

/* The line at [start, end) of the text. Modules, BPF programs and trampolines come after the kernel's own symbols, in any order. */
static void take_line(struct kernel_reader *r, const struct line *line, size_t start, size_t end) {
    struct text rest = text_from(text_upto(buffer_text(&r->list->owned), end), line->name);
    char first = rest.length ? rest.data[0] : 0;
    if ((first == '_' || (r->reference.length && first == r->reference.data[0])) &&
        is_function_type(line->type))
        mark(r, line, rest);
    r->is_shown |= line->address != 0;
    if (!line->address || !is_symbol_type(line->type))
        return;
    r->is_behind |= line->module || line->address < r->last;
    if (!r->is_behind)
        return take_own(r, line->address, start, end);
    if (r->list->blocks.count)
        r->is_mixed |= line->address >= r->list->blocks.items[0].first && line->address <= r->last;
}

/* Takes the whole lines that were read since the last call, or at the end all there is. False: no more is wanted. */
static bool scan(struct kernel_reader *r, bool is_end) {
    enum { LINES_MOST_HIDDEN = 4096, TEXT_MOST = 256 << 20 };
    struct text text = buffer_text(&r->list->owned);
    struct line line;
    text = is_end ? text : whole_lines(text);
    for (size_t at = r->scanned; at < text.length; r->lines++) {
        size_t start = at;
        if (line_read(text, &at, &line))
            take_line(r, &line, start, at);
    }
    r->scanned = text.length > r->scanned ? text.length : r->scanned;
    return (r->is_shown || r->lines <= LINES_MOST_HIDDEN) && r->list->owned.count <= TEXT_MOST;
}

static bool read_and_scan(struct kernel_reader *r, int descriptor) {
    enum { EXPECTED = 6 << 20, PIECE = 1 << 16 };
    struct buffer *text = &r->list->owned;
    ssize_t got;
    vector_reserve(text, EXPECTED);
    do {
        vector_reserve(text, text->count + PIECE);
        got = read(descriptor, text->items + text->count, PIECE);
        text->count += got > 0 ? (size_t)got : 0;
    } while (got >= 0 && scan(r, got == 0) && got > 0);
    return got >= 0 && r->is_shown;
}

struct kernel_list *kernel_list_read_running(int descriptor, struct text reference,
                                             struct buffer *marks) {
    struct kernel_list *list = memory_zero(1, sizeof *list);
    struct kernel_reader reader = {.list = list, .reference = reference, .marks = marks};
    if (!read_and_scan(&reader, descriptor)) {
        kernel_list_free(list);
        return NULL;
    }
    list->text = buffer_text(&list->owned);
    if (reader.is_mixed)
        list->blocks.count = list->own = 0;
    list->tables = memory_zero(list->blocks.count + 1, sizeof *list->tables);
    return list;
}

void kernel_list_free(struct kernel_list *list) {
    for (size_t i = 0; list && list->tables && i < list->blocks.count; i++) {
        struct symbols *table = atomic_load(&list->tables[i]);
        if (table)
            symbols_release(table);
        free(table);
    }
    if (!list)
        return;
    free(list->tables);
    if (list->cached.data)
        file_close(&list->cached);
    else
        vector_release(&list->blocks);
    buffer_release(&list->owned);
    free(list);
}

struct text kernel_list_block(const struct kernel_list *list, size_t number) {
    const struct kernel_block *block = &list->blocks.items[number];
    struct text own = text_upto(list->text, list->own);
    uint64_t end = number + 1 < list->blocks.count ? block[1].at : own.length;
    if (block->at > end || end > own.length)
        return TEXT("");
    return text_from(text_upto(own, end), block->at);
}

/* The block's symbols, and the first of the next block, which says where the last of them ends. NULL: the block is damaged. */
static struct symbols *table_of_block(const struct kernel_list *list, size_t number,
                                      struct symbols *names) {
    enum { LINES_EXPECTED = 40 };
    const struct kernel_block *block = &list->blocks.items[number];
    struct text text = kernel_list_block(list, number);
    if (list->cached.data && digest_bytes(text.data, text.length) != block->digest)
        return NULL;
    struct symbols *table = memory_alloc(sizeof *table);
    struct line line;
    symbols_init(table, names->options);
    kallsyms_source(table, text);
    table->keep_names = names->options->quirks.lists_stay_mangled;
    table->names = names;
    vector_reserve(&table->entries, LINES_EXPECTED);
    for (size_t at = 0; at < text.length;)
        if (line_read(text, &at, &line) && line.address && is_symbol_type(line.type))
            vector_push(&table->entries, entry_of(&line));
    if (number + 1 < list->blocks.count)
        vector_push(&table->entries, ((struct entry){.start = block[1].first}));
    seal_plain(table);
    return table;
}

struct symbols *kernel_list_find(struct kernel_list *list, uint64_t address, struct symbols *names,
                                 pthread_mutex_t *lock) {
    size_t after =
        search_first(middle, 0, list->blocks.count, list->blocks.items[middle].first <= address);
    if (!after)
        return NULL;
    _Atomic(struct symbols *) *slot = &list->tables[after - 1];
    struct symbols *table = atomic_load_explicit(slot, memory_order_acquire);
    if (!table) {
        pthread_mutex_lock(lock);
        table = atomic_load_explicit(slot, memory_order_relaxed);
        if (!table) {
            table = table_of_block(list, after - 1, names);
            atomic_store_explicit(slot, table, memory_order_release);
        }
        pthread_mutex_unlock(lock);
        if (!table)
            return NULL;
    }
    /* An address of the last symbol may belong to a module. */
    uint32_t number = symbols_find(table, address);
    return number != SYMBOLS_NONE && number + 1 < table->entries.count ? table : NULL;
}

/* ---- perf's ---- */

static void load_perf(struct symbols *symbols, struct text text) {
    struct perf_rounds rounds;
    struct line line;
    perf_rounds_init(&rounds, symbols);
    for (size_t at = 0; at < text.length && list_may_grow(symbols, at);) {
        if (!line_read(text, &at, &line) || !is_symbol_type(line.type) ||
            text.data[line.name] == '$')
            continue;
        struct entry entry = entry_of(&line);
        perf_rounds_add(&rounds, &entry);
    }
    perf_rounds_end_round(&rounds, true);
    perf_rounds_seal(&rounds);
}

/* Places in the text are 32 bits wide. */
void kallsyms_source(struct symbols *symbols, struct text text) {
    text = text.length > UINT32_MAX ? text_upto(text, UINT32_MAX) : text;
    symbols->sources[0] = (struct symbols_source){.bytes = text, .terminator = '\n', .tabs = true};
}

void kallsyms_load(struct symbols *symbols, struct text text) {
    kallsyms_source(symbols, text);
    text = symbols->sources[0].bytes;
    symbols->keep_names = symbols->options->quirks.lists_stay_mangled;
    budget_init(&symbols->budget, context_limits(symbols->options->context), text.length);
    if (symbols->options->quirks.symbols_by_arrival)
        load_perf(symbols, text);
    else
        load_plain(symbols, text);
}
