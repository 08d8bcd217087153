/*
 * The two kinds of line in perf script text, each by wick's rules and by inferno's.
 *
 *     V8 WorkerThread 24636/25607 [000] 94564.109216:     250000 cycles:u:
 *             7f533952bc77 _dl_check_map_versions+0x597 (/usr/lib/ld-2.28.so)
 *
 * inferno takes the first word of digits for the thread, so a comm with such a word is cut there; it cuts event names
 * at their first colon, takes a tracepoint's payload for a frame, and finds a frame's object after the last space,
 * whatever the path. wick looks for the thread before the time, and for the object in the last pair of brackets.
 */
#include "import/import.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Return true if all of `t` is digits. Empty text is not. */
static bool all_digits(struct text t) {
    for (size_t i = 0; i < t.length; i++)
        if (!is_digit(t.data[i]))
            return false;
    return t.length > 0;
}

static int32_t id_of(struct text digits) {
    uint64_t value;
    if (digits.length && digits.data[0] == '-')
        return -1;
    return text_to_u64(digits, &value) && value <= INT32_MAX ? (int32_t)value : -1;
}

/* Cut `sym+0x1f` to `sym`. */
static struct text strip_offset(struct text symbol) {
    for (size_t at = symbol.length; at >= 3; at--) {
        if (memcmp(symbol.data + at - 3, "+0x", 3) == 0)
            return text_upto(symbol, at - 3);
        if (!is_hex(symbol.data[at - 1]))
            break;
    }
    return symbol;
}

/* ---- wick's rules: the event line --------------------------------------------------------- */

/* Words are separated by spaces and tabs. Remove the last one from `t`. */
static struct text word_last(struct text *t) {
    while (t->length && (t->data[t->length - 1] == ' ' || t->data[t->length - 1] == '\t'))
        t->length--;
    size_t start = t->length;
    while (start && t->data[start - 1] != ' ' && t->data[start - 1] != '\t')
        start--;
    struct text word = text_from(*t, start);
    t->length = start;
    return word;
}

static struct text word_first(struct text *t) {
    size_t start = 0;
    while (start < t->length && (t->data[start] == ' ' || t->data[start] == '\t'))
        start++;
    size_t end = start;
    while (end < t->length && t->data[end] != ' ' && t->data[end] != '\t')
        end++;
    struct text word = {t->data + start, end - start};
    *t = text_from(*t, end);
    return word;
}

/* Parse "123.456789:" as nanoseconds; perf prints six or nine decimals. */
static bool time_parse(struct text word, uint64_t *time) {
    size_t point = text_find(word, '.');
    uint64_t seconds, fraction;
    if (word.length < 4 || word.data[word.length - 1] != ':' || point == SIZE_MAX)
        return false;
    struct text digits = {word.data + point + 1, word.length - point - 2};
    if (!text_to_u64(text_upto(word, point), &seconds) || digits.length > 9 ||
        !text_to_u64(digits, &fraction))
        return false;
    for (size_t i = digits.length; i < 9; i++)
        fraction *= 10;
    *time = saturating_add(seconds > UINT64_MAX / 1000000000 ? UINT64_MAX : seconds * 1000000000,
                           fraction);
    return true;
}

static bool ids_parse(struct text word, struct script_event *event) {
    size_t slash = text_find(word, '/');
    struct text tid = slash == SIZE_MAX ? word : text_from(word, slash + 1);
    struct text pid = text_upto(word, slash == SIZE_MAX ? 0 : slash);
    struct text digits = tid.length && tid.data[0] == '-' ? text_from(tid, 1) : tid;
    if (!all_digits(digits))
        return false;
    if (pid.length && pid.data[0] == '-')
        pid = text_from(pid, 1);
    if (slash != SIZE_MAX && !all_digits(pid))
        return false;
    event->tid = id_of(tid);
    event->pid = slash == SIZE_MAX ? -1 : id_of(text_upto(word, slash));
    return true;
}

static bool cpu_parse(struct text word, uint32_t *cpu) {
    uint64_t value;
    if (word.length < 3 || word.data[0] != '[' || word.data[word.length - 1] != ']' ||
        !text_to_u64((struct text){word.data + 1, word.length - 2}, &value) || value >= UINT32_MAX)
        return false;
    *cpu = (uint32_t)value;
    return true;
}

/* Parse what precedes the time: the comm, which may be anything, the ids, and perhaps the CPU. */
static bool head_parse(struct text head, struct script_event *event) {
    struct text word = word_last(&head);
    if (cpu_parse(word, &event->cpu))
        word = word_last(&head);
    if (!ids_parse(word, event))
        return false;
    event->comm = text_trim(head);
    return true;
}

/* Parse what follows it: perhaps the period, and the event followed by a colon. */
static void tail_parse(struct text tail, struct script_event *event) {
    struct text word = word_first(&tail);
    if (all_digits(word)) {
        event->has_period = text_to_u64(word, &event->period);
        word = word_first(&tail);
    }
    event->rest = text_trim(tail);
    if (word.length > 1 && word.data[word.length - 1] == ':')
        event->name = text_upto(word, word.length - 1);
}

/* `perf script -F` without the time: the ids are the first such word after another word. */
static bool timeless_parse(struct text line, struct script_event *event) {
    struct text tail = line, word;
    word_first(&tail); /* at least one word of the comm */
    while ((word = word_first(&tail)).length) {
        if (!ids_parse(word, event))
            continue;
        event->comm = text_trim((struct text){line.data, (size_t)(word.data - line.data)});
        struct text after = tail;
        if (cpu_parse(word_first(&after), &event->cpu))
            tail = after;
        tail_parse(tail, event);
        return true;
    }
    return false;
}

/* Costs one look at each word up to the time, which is the fourth or fifth. */
bool script_event_parse(struct text line, struct script_event *event) {
    *event = (struct script_event){.cpu = UINT32_MAX, .pid = -1, .tid = -1, .period = 1};
    struct text tail = line;
    for (struct text word; (word = word_first(&tail)).length;) {
        struct text head = {line.data, (size_t)(word.data - line.data)};
        if (is_digit(word.data[0]) && time_parse(word, &event->time) && head_parse(head, event)) {
            tail_parse(tail, event);
            return true;
        }
    }
    *event = (struct script_event){.cpu = UINT32_MAX, .pid = -1, .tid = -1, .period = 1};
    return timeless_parse(line, event);
}

/* ---- wick's rules: the frame line --------------------------------------------------------- */

/* Return where the last pair of brackets after a space opens; a path may contain pairs and spaces. */
static size_t object_start(struct text line) {
    size_t depth = 0;
    for (size_t at = line.length; at-- > 1;) {
        if (line.data[at] == ')')
            depth++;
        else if (line.data[at] == '(' && depth > 0)
            depth--;
        if (depth == 0 && line.data[at] == '(' &&
            (line.data[at - 1] == ' ' || line.data[at - 1] == '\t'))
            return at;
    }
    for (size_t at = line.length; at-- > 1;) /* unbalanced brackets: use the last space */
        if (line.data[at] == '(' && line.data[at - 1] == ' ')
            return at;
    return SIZE_MAX;
}

bool script_frame_parse(struct text line, struct script_frame *frame) {
    line = text_trim(line);
    *frame = (struct script_frame){0};
    frame->address = word_first(&line);
    uint64_t ignored;
    if (!text_hex_to_u64(frame->address, &ignored))
        return false;
    line = text_trim(line);
    frame->symbol = line;
    if (text_ends(line, TEXT(")"))) {
        struct text padded = {line.data - 1, line.length + 1}; /* include the space before it */
        size_t open = line.length ? object_start(padded) : SIZE_MAX;
        if (open != SIZE_MAX) {
            frame->object = (struct text){padded.data + open + 1, padded.length - open - 2};
            frame->symbol = text_trim(text_upto(line, open - 1));
        }
    }
    if (text_equal(frame->object, TEXT("inlined"))) {
        frame->inlined = true;
        frame->object = (struct text){0};
    }
    frame->symbol = strip_offset(frame->symbol);
    if (frame->symbol.length == 0)
        frame->symbol = TEXT("[unknown]");
    return true;
}

/* ---- inferno's rules ---------------------------------------------------------------------- */

/* Return the first word after a space that is all digits and slashes; `*word` is its position. */
static bool inferno_ids(struct text line, struct text *word, size_t *slash) {
    size_t start = 0;
    bool digits = false, after_space = false;
    *slash = SIZE_MAX;
    for (size_t at = 0; at < line.length; at++) {
        char c = line.data[at];
        if (c == ' ') {
            if (digits && !after_space) {
                *word = (struct text){line.data + start, at - start};
                return true;
            }
            start = at + 1;
            digits = true;
        } else if (c == '/') {
            if (digits)
                *slash = at - start;
        } else if (!is_digit(c)) {
            digits = false;
            *slash = SIZE_MAX;
        }
        after_space = c == ' ';
    }
    return false;
}

/* Parse like Rust's parse::<u64>, which accepts a plus sign. */
static bool inferno_number(struct text t, uint64_t *value) {
    if (t.length > 1 && t.data[0] == '+')
        t = text_from(t, 1);
    return text_to_u64(t, value);
}

/* Parse "     250000 cycles": the event is after the last space, the period between the last two. */
static void inferno_event(struct text piece, struct script_event *event) {
    size_t space = text_find_last(piece, ' ');
    event->name = piece;
    if (space == SIZE_MAX)
        return;
    event->name = text_from(piece, space + 1);
    struct text before = text_upto(piece, space);
    size_t earlier = text_find_last(before, ' ');
    struct text period = earlier == SIZE_MAX ? before : text_from(before, earlier + 1);
    uint64_t value;
    event->has_period = inferno_number(period, &value);
    if (event->has_period)
        event->period = value;
}

static void inferno_rest(struct text piece, struct script_event *event) {
    for (size_t i = 0; i < piece.length; i++) {
        if (piece.data[i] == ':' || piece.data[i] == ' ') {
            piece = text_from(piece, i + 1);
            break;
        }
    }
    event->rest = text_trim_both(piece);
}

bool script_event_parse_inferno(struct text line, struct script_event *event) {
    *event = (struct script_event){.cpu = UINT32_MAX, .pid = -1, .tid = -1, .period = 1};
    struct text word;
    size_t slash;
    if (!inferno_ids(line, &word, &slash))
        return false;
    size_t start = (size_t)(word.data - line.data);
    event->comm = text_trim_both(text_upto(line, start - 1));
    event->tid = id_of(slash == SIZE_MAX ? word : text_from(word, slash + 1));
    event->pid = slash == SIZE_MAX ? -1 : id_of(text_upto(word, slash));
    struct text tail = text_from(line, start + word.length + 1);
    size_t colon = text_find(tail, ':');
    if (colon == SIZE_MAX)
        return true;
    tail = text_from(tail, colon + 1);
    colon = text_find(tail, ':');
    inferno_event(colon == SIZE_MAX ? tail : text_upto(tail, colon), event);
    if (colon != SIZE_MAX)
        inferno_rest(text_from(tail, colon + 1), event);
    return true;
}

bool script_frame_parse_inferno(struct text line, struct script_frame *frame) {
    line = text_trim_start(line);
    *frame = (struct script_frame){0};
    size_t first = text_find(line, ' '), last = text_find_last(line, ' ');
    if (first == SIZE_MAX || first == last)
        return false;
    struct text object = text_from(line, last + 1);
    if (object.length < 2 || object.data[0] != '(' || object.data[object.length - 1] != ')')
        return false;
    frame->object = (struct text){object.data + 1, object.length - 2};
    frame->address = text_trim_end(text_upto(line, first));
    frame->symbol = text_trim_both((struct text){line.data + first + 1, last - first - 1});
    if (frame->symbol.length == 0)
        frame->symbol = TEXT(" ");
    else
        frame->symbol = strip_offset(frame->symbol);
    return true;
}

/* ---- what an object's path says ----------------------------------------------------------- */

/* Match "vmlinux" and its version, up to the end. */
static bool is_vmlinux(struct text object) {
    size_t at = SIZE_MAX;
    for (size_t i = 0; i + 7 <= object.length; i++)
        if (memcmp(object.data + i, "vmlinux", 7) == 0)
            at = i;
    for (size_t i = at; i < object.length; i++) {
        char c = object.data[i];
        if (!is_hex(c) && !((c | 32) >= 'a' && (c | 32) <= 'z') && c != '-' && c != '.' && c != '_')
            return false;
    }
    return at != SIZE_MAX;
}

static uint32_t kinds_inferno(struct text object) {
    if (text_equal(object, TEXT("[unknown]")))
        return 0;
    if (text_starts(object, TEXT("[")) || text_ends(object, TEXT(".ko")) || is_vmlinux(object))
        return KIND_KERNEL;
    if ((text_starts(object, TEXT("/tmp/perf-")) && text_ends(object, TEXT(".map"))) ||
        (text_search(object, TEXT("/jitted-")) != SIZE_MAX && text_ends(object, TEXT(".so"))))
        return KIND_JIT;
    return 0;
}

/* Match memory of a process that the kernel shows in brackets, like itself and its modules. */
static bool is_user_bracket(struct text object) {
    static const char *const names[] = {"[vdso",     "[vvar",    "[vsyscall]", "[stack",
                                        "[heap]",    "[anon",    "[uprobes]",  "[sigpage",
                                        "[vectors]", "[unknown]"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (text_starts(object, text_of(names[i])))
            return true;
    return false;
}

static bool is_kernel_module(struct text object) {
    static const char *const ends[] = {".ko",     ".ko.xz",  ".ko.gz",
                                       ".ko.zst", ".ko.bz2", ".ko.debug"};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (text_ends(object, text_of(ends[i])))
            return true;
    return false;
}

/* Match perf-1234.map in any directory. */
static bool is_perf_map(struct text base) {
    return text_starts(base, TEXT("perf-")) && text_ends(base, TEXT(".map")) && base.length > 9 &&
           all_digits((struct text){base.data + 5, base.length - 9});
}

static uint32_t kinds_wick(struct text object) {
    if (text_ends(object, TEXT(" (deleted)")))
        object.length -= 10;
    size_t slash = text_find_last(object, '/');
    struct text base = slash == SIZE_MAX ? object : text_from(object, slash + 1);
    if (is_perf_map(base) || text_starts(object, TEXT("[JIT]")) ||
        (text_starts(base, TEXT("jitted-")) && text_ends(base, TEXT(".so"))))
        return KIND_JIT;
    if (is_user_bracket(object))
        return 0;
    if (text_starts(object, TEXT("[")) || is_kernel_module(base) || is_vmlinux(base) ||
        text_starts(object, TEXT("bpf_prog_")))
        return KIND_KERNEL;
    return text_ends(base, TEXT(".so")) || text_search(base, TEXT(".so.")) != SIZE_MAX
               ? KIND_LIBRARY
               : 0;
}

uint32_t script_object_kinds(struct text object, bool inferno) {
    return inferno ? kinds_inferno(object) : kinds_wick(object);
}
