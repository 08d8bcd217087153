/*
 * CPython's code objects: names, files and line tables.
 */
#include "interpreter/python.h"

enum { STRING_MOST = 4096, TABLE_MOST = 1 << 20, CODE_READ = CODE_HEAD_READ };

/* ---- strings ---- */

static void add_character(struct buffer *to, uint32_t c) {
    if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000))
        c = 0xfffd;
    buffer_add_utf8(to, c ? c : '?');
}

/* A string object: its length, then what it is made of (characters of 1, 2 or 4 bytes; whether they follow; whether all are ASCII). */
bool python_string(const struct remote *remote, const struct python_layout *layout,
                   uint64_t address, struct buffer *to) {
    struct {
        uint64_t length, hash;
        uint32_t state;
    } __attribute__((packed)) head;
    uint8_t bytes[STRING_MOST];
    if (!address || !remote->read(remote->context, address + 16, &head, sizeof head))
        return false;
    unsigned width = head.state >> 2 & 7;
    bool is_compact = head.state >> 5 & 1, is_ascii = head.state >> 6 & 1;
    if ((width != 1 && width != 2 && width != 4) || !is_compact ||
        head.length > STRING_MOST / width)
        return false;
    uint64_t at = address + (is_ascii ? layout->ascii : layout->wide);
    if (!remote->read(remote->context, at, bytes, head.length * width))
        return false;
    for (size_t i = 0; i < head.length; i++)
        add_character(to, width == 1   ? bytes[i]
                          : width == 2 ? load_u16(bytes + 2 * i)
                                       : load_u32(bytes + 4 * i));
    return true;
}

/* A bytes object. */
static bool read_bytes(const struct remote *remote, uint64_t address, struct buffer *to) {
    uint64_t length;
    if (!address || !remote_word(remote, address + 16, &length) || length > TABLE_MOST)
        return false;
    vector_reserve(to, length + 1);
    to->count = length;
    return remote->read(remote->context, address + 32, to->items, length);
}

/* ---- code objects ---- */

static bool read_code(const struct remote *remote, const struct interpreter_process *process,
                      uint64_t address, uint8_t bytes[CODE_READ]) {
    return address && remote->read(remote->context, address, bytes, CODE_READ) &&
           (!process->code_type || load_u64(bytes + 8) == process->code_type);
}

static void identify(const struct python_layout *layout, const uint8_t *bytes,
                     uint64_t identity[4]) {
    identity[0] = load_u64(bytes + layout->name);
    identity[1] = load_u64(bytes + layout->file);
    identity[2] = load_u64(bytes + layout->lines);
    identity[3] = load_u32(bytes + layout->first_line);
}

bool python_code_identify(const struct remote *remote, const struct interpreter_process *process,
                          uint64_t address, uint64_t identity[4]) {
    uint8_t bytes[CODE_READ];
    if (!read_code(remote, process, address, bytes))
        return false;
    identify(process->python, bytes, identity);
    return true;
}

bool python_code_read(const struct remote *remote, const struct interpreter_process *process,
                      uint64_t address, struct interpreter_code *code) {
    const struct python_layout *layout = process->python;
    uint8_t bytes[CODE_READ];
    if (!read_code(remote, process, address, bytes))
        return false;
    identify(layout, bytes, code->identity);
    code->first_line = load_u32(bytes + layout->first_line);
    code->start = layout->bytecode_is_object ? 0 : address + layout->bytecode;
    return code->first_line < 1u << 28 &&
           (python_string(remote, layout, load_u64(bytes + layout->qualified), &code->name) ||
            python_string(remote, layout, load_u64(bytes + layout->name), &code->name)) &&
           python_string(remote, layout, load_u64(bytes + layout->file), &code->file) &&
           read_bytes(remote, load_u64(bytes + layout->lines), &code->lines);
}

uint64_t interpreter_code_check(const struct interpreter_code *code) {
    return layout_check(code->identity[1], code->identity[2]);
}

/* ---- code objects that were read when a stack was taken ---- */

struct taken {
    const struct raw_code *code;
    const struct remote *remote; /* NULL: another code object may be there by now */
};

static bool taken_read(void *context, uint64_t address, void *to, size_t size) {
    const struct taken *taken = context;
    const struct raw_code *code = taken->code;
    const uint8_t *const bytes[CODE_PARTS] = {code->head, code->file, code->name, code->lines};
    for (size_t i = 0; i < CODE_PARTS; i++) {
        uint64_t at = address - code->address[i];
        if (at < code->size[i] && size <= code->size[i] - at) {
            memcpy(to, bytes[i] + at, size);
            return true;
        }
    }
    return taken->remote && taken->remote->read(taken->remote->context, address, to, size);
}

bool interpreter_code_read_taken(const struct remote *remote,
                                 const struct interpreter_process *process,
                                 const struct raw_code *raw, struct interpreter_code *code) {
    uint64_t now[4], then[4];
    bool is_there = raw->size[CODE_HEAD] == CODE_READ &&
                    python_code_identify(remote, process, raw->address[CODE_HEAD], now);
    identify(process->python, raw->head, then);
    struct taken taken = {raw, is_there && memcmp(now, then, sizeof now) == 0 ? remote : NULL};
    const struct remote both = {taken_read, &taken};
    *code = (struct interpreter_code){0};
    return python_code_read(&both, process, raw->address[CODE_HEAD], code);
}

/* ---- packages ---- */

static struct text without_ending(struct text name, struct text ending) {
    return name.length > ending.length && text_ends(name, ending)
               ? text_upto(name, name.length - ending.length)
               : name;
}

/* Return the path below the last directory in which packages are installed; else the whole path. */
static struct text behind_folder(struct text file, bool *is_installed) {
    static const struct text folders[] = {TEXT("/site-packages/"), TEXT("/dist-packages/"),
                                          TEXT("/lib/python3.")};
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        size_t at = text_search(file, folders[i]);
        if (at == SIZE_MAX)
            continue;
        *is_installed = true;
        struct text rest = text_from(file, at + folders[i].length);
        size_t slash = i == 2 ? text_find(rest, '/') : SIZE_MAX;
        return slash == SIZE_MAX ? rest : text_from(rest, slash + 1);
    }
    *is_installed = false;
    return file;
}

struct text python_package(struct text file) {
    bool is_installed;
    if (text_starts(file, TEXT("<frozen ")) && text_ends(file, TEXT(">")))
        return text_from(text_upto(file, file.length - 1), strlen("<frozen "));
    struct text rest = behind_folder(file, &is_installed);
    size_t slash = is_installed ? text_find(rest, '/') : text_find_last(rest, '/');
    if (is_installed && slash != SIZE_MAX)
        return text_upto(rest, slash);
    rest = slash == SIZE_MAX ? rest : text_from(rest, slash + 1);
    return without_ending(rest, TEXT(".py"));
}

/* ---- lines ---- */

static uint32_t line_of(int64_t line) {
    return line > 0 && line < 1 << 28 ? (uint32_t)line : 0;
}

/* Pairs: so many bytes further on, the line is so many higher. */
uint32_t python_line_3_8(struct text table, uint32_t first, uint64_t offset) {
    int64_t line = first;
    uint64_t at = 0;
    for (size_t i = 0; i + 1 < table.length; i += 2) {
        at += (uint8_t)table.data[i];
        if (at > offset)
            break;
        line += (int8_t)table.data[i + 1];
    }
    return line_of(line);
}

/* Pairs: the next so many bytes have a line that is so many higher; -128: none. */
uint32_t python_line_3_10(struct text table, uint32_t first, uint64_t offset) {
    int64_t line = first;
    uint64_t end = 0;
    for (size_t i = 0; i + 1 < table.length; i += 2) {
        int8_t delta = (int8_t)table.data[i + 1];
        end += (uint8_t)table.data[i];
        line += delta == -128 ? 0 : delta;
        if (end > offset)
            return delta == -128 ? 0 : line_of(line);
    }
    return 0;
}

/* Six bits a byte, the lowest first, bit 6 says that there is more. False: the table is over. */
static bool take_varint(struct text *rest, uint64_t *value) {
    *value = 0;
    for (unsigned shift = 0; rest->length && shift < 36; shift += 6) {
        uint8_t byte = (uint8_t)rest->data[0];
        *rest = text_from(*rest, 1);
        *value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            return true;
    }
    return false;
}

static bool take_signed(struct text *rest, int64_t *value) {
    uint64_t bits;
    if (!take_varint(rest, &bits))
        return false;
    *value = bits & 1 ? -(int64_t)(bits >> 1) : (int64_t)(bits >> 1);
    return true;
}

/* What follows an entry's first byte: how the line changes, and columns, which are skipped. */
static bool take_location(struct text *rest, unsigned kind, int64_t *delta) {
    enum { SHORT = 9, ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
    size_t skipped = kind <= SHORT ? 1 : kind < NO_COLUMNS ? 2 : 0;
    uint64_t unused;
    *delta = kind >= ONE_LINE && kind < NO_COLUMNS ? kind - ONE_LINE : 0;
    if ((kind == NO_COLUMNS || kind == LONG) && !take_signed(rest, delta))
        return false;
    for (unsigned i = 0; kind == LONG && i < 3; i++)
        if (!take_varint(rest, &unused))
            return false;
    if (skipped > rest->length)
        return false;
    *rest = text_from(*rest, skipped);
    return true;
}

/* Entries: for how many units of two bytes, of which kind. */
uint32_t python_line_3_11(struct text table, uint32_t first, uint64_t offset) {
    int64_t line = first, delta;
    uint64_t end = 0;
    while (table.length) {
        uint8_t head = (uint8_t)table.data[0];
        unsigned kind = head >> 3 & 15;
        table = text_from(table, 1);
        if (!(head & 128) || !take_location(&table, kind, &delta))
            return 0;
        end += 2 * ((head & 7) + 1u);
        line += delta;
        if (end > offset)
            return kind == 15 ? 0 : line_of(line);
    }
    return 0;
}

/* A frame that has not begun points before its first instruction. */
uint32_t python_code_line(const struct interpreter_process *process,
                          const struct interpreter_code *code, uint64_t instruction) {
    struct text table = buffer_text(&code->lines);
    if (process->version <= 0x30a && (int32_t)instruction < 0)
        return code->first_line;
    if (process->version <= 0x309)
        return python_line_3_8(table, code->first_line, instruction);
    if (process->version == 0x30a)
        return python_line_3_10(table, code->first_line, 2 * instruction);
    if (instruction < code->start)
        return code->first_line;
    return python_line_3_11(table, code->first_line, instruction - code->start);
}
