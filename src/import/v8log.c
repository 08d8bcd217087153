/*
 * V8's log, as `node --prof` writes it: one event per line, with comma-separated fields.
 *
 *     shared-library,/usr/bin/node,0x400000,0xb71000,0
 *     code-creation,JS,10,43956,0x3798ba20b476,42,fib /tmp/w.js:1:13,0x3798ba20a668,~
 *     code-move,0x3798ba20b476,0x3798ba30b476
 *     tick,0x12647b1,115896,0,0x0,0,0x11c0940,0x1d2ed795820e,+1f,overflow
 *
 * A tick is a sample: its program counter, microseconds, whether it is in a callback of the embedder and which, V8's
 * state, and the return addresses of its callers, leaf first, each absolute or relative to the previous one. The code
 * at an address changes, so lines are read in order. Code in libraries is named after its file.
 */
#include "import/reader.h"

#include <stdlib.h>

/* ---- what is at an address ---- */

struct range {
    uint64_t start, end;
    uint32_t code; /* index of the code */
};
typedef VECTOR(struct range) range_list;

/* Ranges sorted by address. New ones are added to a short list, which is merged with the long one when it is full, so
   that neither lookups nor additions take more than a few microseconds, however many there are. */
enum { RECENT_MOST = 4096 };
struct ranges {
    range_list all, recent;
};

/* Return how many ranges start at or before the address. */
static size_t ranges_upto(const struct range *items, size_t count, uint64_t address) {
    size_t from = 0;
    while (from < count) {
        size_t middle = from + (count - from) / 2;
        if (items[middle].start <= address)
            from = middle + 1;
        else
            count = middle;
    }
    return from;
}

static const struct range *list_find(const range_list *list, uint64_t address) {
    size_t at = ranges_upto(list->items, list->count, address);
    return at && address < list->items[at - 1].end ? &list->items[at - 1] : NULL;
}

static const struct range *ranges_find(const struct ranges *ranges, uint64_t address) {
    const struct range *found = list_find(&ranges->recent, address);
    return found ? found : list_find(&ranges->all, address);
}

/* Remove empty ranges. */
static void ranges_merge(struct ranges *ranges) {
    range_list merged = {0};
    size_t a = 0, b = 0;
    const range_list *all = &ranges->all, *recent = &ranges->recent;
    vector_reserve(&merged, all->count + recent->count);
    while (a < all->count || b < recent->count) {
        bool older =
            b == recent->count || (a < all->count && all->items[a].start < recent->items[b].start);
        struct range next = older ? all->items[a++] : recent->items[b++];
        if (next.start < next.end)
            vector_push(&merged, next);
    }
    vector_release(&ranges->all);
    ranges->all = merged;
    ranges->recent.count = 0;
}

/* Code that starts in this range is gone, and what reaches into it ends there. Set *first to the first that is gone and return how many are. */
static size_t ranges_clear(range_list *list, uint64_t start, uint64_t end, size_t *first) {
    size_t at = ranges_upto(list->items, list->count, start);
    if (at && list->items[at - 1].start == start)
        at--;
    else if (at && list->items[at - 1].end > start)
        list->items[at - 1].end = start;
    *first = at;
    for (; at < list->count && list->items[at].start < end; at++)
        list->items[at].end = list->items[at].start;
    return at - *first;
}

static void ranges_remove(struct ranges *ranges, uint64_t start) {
    size_t first;
    ranges_clear(&ranges->all, start, start + 1, &first);
    ranges_clear(&ranges->recent, start, start + 1, &first);
}

/* Remove the ranges that are gone from the short list: one that starts inside the new range would hide the rest of it from list_find(). */
static void ranges_add(struct ranges *ranges, struct tree *tree, struct range range) {
    range_list *recent = &ranges->recent;
    size_t first, older = ranges_clear(&ranges->all, range.start, range.end, &first),
                  gone = ranges_clear(recent, range.start, range.end, &first);
    tree_take_steps(tree, 1 + older + gone);
    if (!gone)
        vector_push(recent, range);
    size_t behind = first + gone, left = recent->count - !gone - behind;
    memmove(recent->items + first + 1, recent->items + behind, left * sizeof *recent->items);
    recent->items[first] = range;
    recent->count = first + 1 + left;
    if (recent->count == RECENT_MOST)
        ranges_merge(ranges);
}

static void ranges_release(struct ranges *ranges) {
    vector_release(&ranges->all);
    vector_release(&ranges->recent);
}

/* ---- code ---- */

struct code {
    struct text name; /* as in the file; for a library, its path */
    bool is_library, is_script;
    char state;        /* '~' interpreted, others compiled; 0: not given */
    uint32_t location; /* 0 until a tick needs it */
};

struct v8log {
    struct reader r;
    VECTOR(struct code) codes;
    struct ranges ranges, libraries;
    struct buffer name;
    uint32_t unknown, collector; /* locations, 0 until they are needed */
};

enum { FIELDS_MOST = 10 };

/* Split off the first fields; *rest is what follows them. Commas inside a field are escaped. */
static size_t split(struct text line, struct text *fields, size_t most, struct text *rest) {
    size_t count = 0;
    while (count < most) {
        size_t comma = text_find(line, ',');
        fields[count++] = comma == SIZE_MAX ? line : text_upto(line, comma);
        line = text_from(line, comma == SIZE_MAX ? line.length : comma + 1);
        if (comma == SIZE_MAX)
            break;
    }
    *rest = line;
    return count;
}

static bool parse_address(struct text t, uint64_t *address) {
    return text_starts(t, TEXT("0x")) ? text_hex_to_u64(text_from(t, 2), address)
                                      : text_to_u64(t, address);
}

/* Decode \x2C, \u20AC, \n and \\; keep everything else. */
static void unescape(struct text t, struct buffer *out) {
    out->count = 0;
    for (size_t i = 0; i < t.length; i++) {
        uint64_t point;
        char kind = t.data[i] == '\\' && i + 1 < t.length ? t.data[i + 1] : 0;
        size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : 0;
        if (digits && i + 1 + digits < t.length &&
            text_hex_to_u64(text_upto(text_from(t, i + 2), digits), &point)) {
            buffer_add_utf8(out, (uint32_t)point);
            i += 1 + digits;
        } else if (kind == '\\' || kind == 'n') {
            buffer_add_char(out, kind == 'n' ? ' ' : kind);
            i++;
        } else {
            buffer_add_char(out, t.data[i]);
        }
    }
}

/* "fib /tmp/w.js:1:13": the text after the last space is where the function begins. */
static struct text_frame script_frame(struct text name, char state) {
    struct text_frame frame = {.name = name};
    size_t space = text_find_last(name, ' ');
    if (space == SIZE_MAX ||
        !text_to_source(text_from(name, space + 1), &frame.file, &frame.first_line))
        return frame;
    frame.name = text_trim(text_upto(name, space));
    if (!frame.name.length)
        frame.name = TEXT("(anonymous)");
    frame.language = TEXT("javascript");
    frame.kinds = state && state != '~' ? KIND_JIT : 0;
    return frame;
}

static uint32_t frame_location(struct v8log *v, const struct text_frame *frame) {
    struct stack *stack = &v->r.stack;
    stack_push_frame(stack, frame);
    return stack->locations.items[--stack->locations.count];
}

static uint32_t code_location(struct v8log *v, struct code *code) {
    if (code->location)
        return code->location;
    unescape(code->name, &v->name);
    struct text name = buffer_text(&v->name);
    struct text_frame frame = code->is_library  ? (struct text_frame){.object = name}
                              : code->is_script ? script_frame(name, code->state)
                                                : (struct text_frame){.name = name};
    return code->location = frame_location(v, &frame);
}

/* Generated code, such as V8's builtins, may be within a library's range. */
static uint32_t address_location(struct v8log *v, uint64_t address) {
    const struct range *range = ranges_find(&v->ranges, address);
    if (!range)
        range = ranges_find(&v->libraries, address);
    if (range)
        return code_location(v, &v->codes.items[range->code]);
    if (!v->unknown)
        v->unknown = frame_location(
            v, &(struct text_frame){.name = TEXT("[unknown]"), .kinds = KIND_UNKNOWN});
    return v->unknown;
}

/* ---- events ---- */

static bool read_library(struct v8log *v, const struct text *fields, size_t count) {
    struct range range = {.code = (uint32_t)v->codes.count};
    if (count < 4 || !parse_address(fields[2], &range.start) ||
        !parse_address(fields[3], &range.end) || range.end <= range.start)
        return false;
    vector_push(&v->codes, ((struct code){.name = fields[1], .is_library = true}));
    ranges_add(&v->libraries, v->r.tree, range);
    return true;
}

/* Functions have the kind JS or, in older versions, LazyCompile, Function, Script, Eval and these with a state before
   the name. */
static bool is_script_kind(struct text kind) {
    static const struct text kinds[] = {TEXT("JS"), TEXT("LazyCompile"), TEXT("Function"),
                                        TEXT("Script"), TEXT("Eval")};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (text_equal(kind, kinds[i]))
            return true;
    return false;
}

static bool read_code(struct v8log *v, const struct text *fields, size_t count) {
    struct range range = {.code = (uint32_t)v->codes.count};
    uint64_t size;
    if (count < 7 || !parse_address(fields[4], &range.start) || !parse_address(fields[5], &size) ||
        !checked_add(range.start, size, &range.end))
        return false;
    struct code code = {.name = fields[6], .is_script = is_script_kind(fields[1])};
    if (code.is_script && count > 8 && fields[8].length)
        code.state = fields[8].data[0];
    vector_push(&v->codes, code);
    if (size)
        ranges_add(&v->ranges, v->r.tree, range);
    return true;
}

static bool read_move(struct v8log *v, const struct text *fields, size_t count) {
    uint64_t from, to, end;
    if (count < 3 || !parse_address(fields[1], &from) || !parse_address(fields[2], &to))
        return false;
    const struct range *found = ranges_find(&v->ranges, from);
    if (!found || found->start != from || from == to)
        return true;
    struct range moved = {to, 0, found->code};
    if (!checked_add(to, found->end - from, &end))
        return false;
    moved.end = end;
    ranges_remove(&v->ranges, from);
    ranges_add(&v->ranges, v->r.tree, moved);
    return true;
}

static bool read_delete(struct v8log *v, const struct text *fields, size_t count) {
    uint64_t from;
    if (count < 2 || !parse_address(fields[1], &from) || from == UINT64_MAX)
        return false;
    ranges_remove(&v->ranges, from);
    return true;
}

/* Parse a tick's callers: "0x1f00,+1f,-20,overflow". Return false if one has another form. */
static bool push_callers(struct v8log *v, uint64_t previous, struct text rest) {
    while (rest.length) {
        struct text field, after;
        uint64_t number;
        split(rest, &field, 1, &after);
        rest = after;
        if (text_starts(field, TEXT("o")))
            continue;
        bool plus = text_starts(field, TEXT("+")), minus = text_starts(field, TEXT("-"));
        if (plus || minus) {
            field = text_from(field, 1);
            if (!text_hex_to_u64(text_from(field, text_starts(field, TEXT("0x")) ? 2 : 0), &number))
                return false;
            previous = plus ? previous + number : previous - number;
        } else if (!parse_address(field, &previous)) {
            return false;
        }
        tree_take_steps(v->r.tree, 1);
        uint32_t location = address_location(v, previous); /* may itself push to the stack */
        vector_push(&v->r.stack.locations, location);
    }
    return true;
}

/* During a callback, the program counter may be in code that the callback called; use the callback, as V8's own
   processor does. */
static bool read_tick(struct v8log *v, const struct text *fields, size_t count, struct text rest) {
    enum { STATE_COLLECTS = 1 };
    uint64_t counter, time, external, callback, state;
    struct stack *stack = &v->r.stack;
    if (count < 6 || !parse_address(fields[1], &counter) || !text_to_u64(fields[2], &time) ||
        !text_to_u64(fields[3], &external) || !parse_address(fields[4], &callback) ||
        !text_to_u64(fields[5], &state) || !checked_multiply(time, 1000, &time))
        return false;
    stack->locations.count = 0;
    if (state == STATE_COLLECTS) {
        if (!v->collector)
            v->collector =
                frame_location(v, &(struct text_frame){.name = TEXT("(garbage collector)")});
        vector_push(&stack->locations, v->collector);
    }
    uint32_t leaf = address_location(v, external == 1 ? callback : counter);
    vector_push(&stack->locations, leaf);
    bool fine = push_callers(v, counter, rest);
    if (fine) {
        stack_reverse(stack);
        stack_count_at(stack, stack_node(stack), 1, 1, time + !time);
    }
    stack->locations.count = 0;
    return fine;
}

static bool read_event(struct v8log *v) {
    struct text fields[FIELDS_MOST], rest, line = v->r.line;
    if (text_starts(line, TEXT("tick,"))) {
        size_t count = split(line, fields, 6, &rest);
        return read_tick(v, fields, count, rest);
    }
    size_t count = split(line, fields, FIELDS_MOST, &rest);
    return text_equal(fields[0], TEXT("code-creation"))    ? read_code(v, fields, count)
           : text_equal(fields[0], TEXT("code-move"))      ? read_move(v, fields, count)
           : text_equal(fields[0], TEXT("code-delete"))    ? read_delete(v, fields, count)
           : text_equal(fields[0], TEXT("shared-library")) ? read_library(v, fields, count)
                                                           : true;
}

static bool v8log_read(struct text content, const char *path, const struct import_options *options,
                       struct tree *tree, struct error *error) {
    struct v8log v = {0};
    bool fine = true;
    reader_init(&v.r, content, path, options, tree, TEXT("samples"), error);
    while (fine && reader_next(&v.r) && !import_stops(options, v.r.line.data))
        if (!read_event(&v))
            fine = reader_bad(&v.r, "not an event of V8's log");
    vector_release(&v.codes);
    ranges_release(&v.ranges);
    ranges_release(&v.libraries);
    buffer_release(&v.name);
    reader_release(&v.r);
    return fine;
}

static int v8log_score(struct text beginning) {
    return text_starts(beginning, TEXT("v8-version,")) ? 98 : 0;
}

const struct import_format format_v8log = {"v8log", "V8's log of node --prof", v8log_score,
                                           v8log_read, TELLS_TIMES};
