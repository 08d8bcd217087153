/*
 * Read a jitdump in one walk over its records. Lines and rules come before the load that they belong to, and are held until then.
 */
#include "object/jitdump.h"
#include "object/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC = 0x4A695444, MAGIC_SWAPPED = 0x4454694A };
enum { HEADER = 40, PREFIX = 16, LOAD = PREFIX + 40, MOVE = PREFIX + 48, DEBUG = PREFIX + 16 };
enum { UNWINDING = PREFIX + 24, ENTRY = 16 };
enum record_kind { RECORD_LOAD, RECORD_MOVE, RECORD_DEBUG, RECORD_CLOSE, RECORD_UNWINDING };

struct record {
    uint32_t kind;
    uint64_t time;
    uint64_t offset;   /* in the dump */
    struct text bytes; /* with the prefix */
};

struct entry_line {
    uint64_t address;
    uint32_t line;
    struct text file;
};

/* Which code has a number, the latest of that number. */
struct numbered {
    uint64_t number;
    uint64_t place;
};

struct reader {
    struct jitdump *dump;
    struct budget budget;
    struct text bytes;
    bool is_swapped;
    uint64_t lines_of; /* the address that `lines` are about */
    VECTOR(struct entry_line) lines;
    struct text eh_frame;
    VECTOR(struct numbered) numbers;
    struct index by_number; /* of them: places + 1 */
    const char *path;
    struct error *error;
};

static uint32_t read_u32(const struct reader *r, const char *at) {
    uint32_t value = load_u32(at);
    return r->is_swapped ? __builtin_bswap32(value) : value;
}

static uint64_t read_u64(const struct reader *r, const char *at) {
    uint64_t value = load_u64(at);
    return r->is_swapped ? __builtin_bswap64(value) : value;
}

static bool damaged(struct reader *r, const struct record *record, const char *what) {
    return error_at(r->error, r->path, record->offset, "%s", what);
}

/* ---- lines ---- */

/* address u64, line i32, discriminator i32, file; "\xff" is the file of the entry before. */
static bool read_lines(struct reader *r, const struct record *record) {
    struct text rest = text_from(record->bytes, DEBUG), file = TEXT("");
    uint64_t count = read_u64(r, record->bytes.data + PREFIX + 8);
    r->lines_of = read_u64(r, record->bytes.data + PREFIX);
    r->lines.count = 0;
    if (!budget_take_memory(&r->budget, rest.length, record->offset))
        return budget_error(&r->budget, r->path, r->error);
    for (uint64_t i = 0; i < count; i++) {
        size_t end = rest.length > ENTRY ? text_find(text_from(rest, ENTRY), 0) : SIZE_MAX;
        if (end == SIZE_MAX)
            return damaged(r, record, "a line table that ends too early");
        struct text name = text_upto(text_from(rest, ENTRY), end);
        if (!text_equal(name, TEXT("\xff")))
            file = name;
        struct entry_line line = {read_u64(r, rest.data), read_u32(r, rest.data + 8), file};
        vector_push(&r->lines, line);
        rest = text_from(rest, ENTRY + end + 1);
    }
    return true;
}

static int line_order(const void *a, const void *b) {
    const struct entry_line *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* V8 writes the name of some scripts as it is in memory, which is no text. */
static bool is_text(struct text name) {
    for (size_t i = 0; i < name.length; i++)
        if ((unsigned char)name.data[i] < ' ' || name.data[i] == 0x7f)
            return false;
    return name.length > 0;
}

/* V8 adds the size of the ELF header that perf puts before the code. */
static void add_lines(struct reader *r, uint64_t start, uint64_t size,
                      const struct made_name *known) {
    enum { ELF_HEADER = 0x40 };
    bool is_v8 = text_equal(known->language, TEXT("javascript"));
    uint64_t base = start + (is_v8 ? ELF_HEADER : 0);
    struct made_frame frame = {0};
    if (r->lines_of != start || !r->lines.count)
        return;
    qsort(r->lines.items, r->lines.count, sizeof *r->lines.items, line_order);
    for (size_t i = 0; i < r->lines.count; i++) {
        const struct entry_line *line = &r->lines.items[i];
        frame.file = is_text(line->file) ? line->file : known->file;
        frame.line = line->line;
        if (line->address >= base && line->address - base < size)
            made_add_line(r->dump->made, line->address - base, &frame, 1);
    }
}

/* ---- rules ---- */

/* Size of both tables, of .eh_frame_hdr, which stands last, and of what is mapped: of V8's empty header, nothing. */
static bool read_rules(struct reader *r, const struct record *record) {
    const char *data = record->bytes.data + PREFIX;
    uint64_t size = read_u64(r, data), header = read_u64(r, data + 8),
             mapped = read_u64(r, data + 16);
    if (size > record->bytes.length - UNWINDING || header > size)
        return damaged(r, record, "unwind rules that are longer than their record");
    r->eh_frame = TEXT("");
    if (mapped && !r->is_swapped)
        r->eh_frame = text_upto(text_from(record->bytes, UNWINDING), size - header);
    return true;
}

/* ---- code ---- */

static struct numbered *number_find(const struct reader *r, uint64_t number) {
    uint32_t id;
    for (struct probe p = index_probe(&r->by_number, hash_mix(number, 7));
         (id = index_next(&r->by_number, &p));)
        if (r->numbers.items[id - 1].number == number)
            return &r->numbers.items[id - 1];
    return NULL;
}

static void number_set(struct reader *r, uint64_t number, uint64_t place) {
    struct numbered *known = number_find(r, number);
    if (known) {
        known->place = place;
        return;
    }
    vector_push(&r->numbers, ((struct numbered){number, place}));
    index_add(&r->by_number, hash_mix(number, 7), (uint32_t)r->numbers.count);
}

static bool read_load(struct reader *r, const struct record *record) {
    enum { PIECE_COST = 256 };
    const char *data = record->bytes.data + PREFIX;
    struct text rest = text_from(record->bytes, LOAD);
    uint64_t start = read_u64(r, data + 16), size = read_u64(r, data + 24);
    size_t end = text_find(rest, 0);
    if (end == SIZE_MAX)
        return damaged(r, record, "code with an unterminated name");
    struct text name = text_upto(rest, end);
    rest = text_from(rest, end + 1);
    if (size > UINT32_MAX || start + size < start)
        return damaged(r, record, "code that is too long");
    if (!budget_take_memory(&r->budget, PIECE_COST + end, record->offset))
        return budget_error(&r->budget, r->path, r->error);
    if (size) {
        struct made_name known = made_name_read(name);
        struct made_piece piece = {.name = known.name,
                                   .language = known.language,
                                   .file = known.file,
                                   .line = known.line,
                                   .size = size,
                                   .eh_frame = r->eh_frame};
        if (size <= rest.length)
            piece.code = text_from(rest, rest.length - size);
        uint64_t place = made_add(r->dump->made, &piece);
        add_lines(r, start, size, &known);
        number_set(r, read_u64(r, data + 32), place);
        struct jitdump_change change = {
            .time = record->time, .start = start, .size = size, .place = place};
        vector_push(&r->dump->changes, change);
    }
    r->lines.count = 0;
    r->eh_frame = TEXT("");
    return true;
}

static bool read_move(struct reader *r, const struct record *record) {
    enum { MOVE_COST = 2 * sizeof(struct jitdump_change) };
    const char *data = record->bytes.data + PREFIX;
    uint64_t from = read_u64(r, data + 16), to = read_u64(r, data + 24),
             size = read_u64(r, data + 32);
    const struct numbered *code = number_find(r, read_u64(r, data + 40));
    if (from + size < from || to + size < to)
        return damaged(r, record, "code that is too long");
    if (!budget_take_memory(&r->budget, MOVE_COST, record->offset))
        return budget_error(&r->budget, r->path, r->error);
    struct jitdump_change gone = {
        .time = record->time, .start = from, .size = size, .is_gone = true};
    vector_push(&r->dump->changes, gone);
    struct jitdump_change came = {
        .time = record->time, .start = to, .size = size, .place = code ? code->place : 0};
    if (code)
        vector_push(&r->dump->changes, came);
    return true;
}

/* ---- the file ---- */

static bool read_record(struct reader *r, const struct record *record) {
    static const uint32_t sizes[] = {[RECORD_LOAD] = LOAD,
                                     [RECORD_MOVE] = MOVE,
                                     [RECORD_DEBUG] = DEBUG,
                                     [RECORD_CLOSE] = PREFIX,
                                     [RECORD_UNWINDING] = UNWINDING};
    if (record->kind < COUNT_OF(sizes) && record->bytes.length < sizes[record->kind])
        return damaged(r, record, "a record that is too short for its kind");
    switch (record->kind) {
    case RECORD_LOAD:
        return read_load(r, record);
    case RECORD_MOVE:
        return read_move(r, record);
    case RECORD_DEBUG:
        return read_lines(r, record);
    case RECORD_UNWINDING:
        return read_rules(r, record);
    default:
        return true;
    }
}

/* A record that does not fit is the last one, which was not fully written. */
static bool read_records(struct reader *r, uint64_t at) {
    while (r->bytes.length - at >= PREFIX) {
        const char *data = r->bytes.data + at;
        uint64_t size = read_u32(r, data + 4);
        struct record record = {
            .kind = read_u32(r, data), .time = read_u64(r, data + 8), .offset = at};
        if (size < PREFIX)
            return damaged(r, &record, "a record without a size");
        if (size > r->bytes.length - at)
            break;
        record.bytes = (struct text){data, size};
        if (record.kind == RECORD_CLOSE)
            break;
        if (!read_record(r, &record))
            return false;
        at += size;
    }
    return true;
}

static bool read_header(struct reader *r, uint16_t machine) {
    const char *data = r->bytes.data;
    uint32_t magic = r->bytes.length >= HEADER ? load_u32(data) : 0;
    if (magic != MAGIC && magic != MAGIC_SWAPPED)
        return error_at(r->error, r->path, 0, "not a jitdump");
    r->is_swapped = magic == MAGIC_SWAPPED;
    uint32_t size = read_u32(r, data + 8), own = read_u32(r, data + 12);
    if (size < HEADER || size > r->bytes.length)
        return error_at(r->error, r->path, 8, "a header of %u bytes", size);
    r->dump->has_ticks = read_u64(r, data + 32) & 1;
    r->dump->made = made_new(own && own <= UINT16_MAX ? (uint16_t)own : machine);
    return read_records(r, size);
}

bool jitdump_read(struct jitdump *dump, struct buffer *bytes, uint16_t machine,
                  const struct budget_limits *limits, const char *path, struct error *error) {
    struct reader reader = {
        .dump = dump, .bytes = buffer_text(bytes), .path = path, .error = error};
    *dump = (struct jitdump){0};
    budget_init(&reader.budget, limits, reader.bytes.length);
    bool fine = read_header(&reader, machine);
    if (!dump->made)
        dump->made = made_new(machine);
    made_keep_bytes(dump->made, bytes);
    vector_release(&reader.lines);
    vector_release(&reader.numbers);
    index_release(&reader.by_number);
    return fine;
}

void jitdump_release(struct jitdump *dump) {
    made_free(dump->made);
    vector_release(&dump->changes);
    *dump = (struct jitdump){0};
}

static bool read_whole(int descriptor, uint64_t size, struct buffer *bytes) {
    ssize_t got = 1;
    bytes->count = 0;
    vector_reserve(bytes, size);
    while (bytes->count < size && got > 0) {
        got = pread(descriptor, bytes->items + bytes->count, size - bytes->count,
                    (off_t)bytes->count);
        bytes->count += got > 0 ? (size_t)got : 0;
    }
    return bytes->count > 0;
}

bool path_is_jitdump(struct text path) {
    size_t slash = text_find_last(path, '/');
    struct text name = slash == SIZE_MAX ? path : text_from(path, slash + 1);
    uint64_t number;
    return text_starts(name, TEXT("jit-")) && text_ends(name, TEXT(".dump")) && name.length > 9 &&
           text_to_u64(text_upto(text_from(name, 4), name.length - 9), &number);
}

bool jitdump_load(const char *symfs, struct text path, uint64_t most, struct buffer *bytes) {
    struct buffer name = {0};
    struct stat status;
    path_set_below(&name, text_of(symfs ? symfs : ""), path);
    int descriptor = open(name.items, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    bool fine = descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                user_is_trusted(status.st_uid) && (uint64_t)status.st_size <= most &&
                read_whole(descriptor, (uint64_t)status.st_size, bytes);
    if (descriptor >= 0)
        close(descriptor);
    buffer_release(&name);
    return fine;
}
