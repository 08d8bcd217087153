/*
 * The carrier's entries for Java virtual machines: rows of methods and records of code, all numbers packed seven bits a byte.
 */
#include "profile/java.h"

#include <stdlib.h>

#include "profile/reading.h"
#include "unwind/unwind.h"

/* Bytecodes are mapped there: above all memory of processes, below the kernel's. */
#define BYTECODES (1ull << 60)

enum {
    KEY = 16,
    TEXT_MOST = 1024,
    LINES_MOST = 1 << 16,
    SCOPES_MOST = 1 << 18,
    DEPTH_MOST = 128,
    METHODS_MOST = 1 << 22
};

struct method {
    uint64_t address, time;
    uint64_t code;
    uint32_t code_size;
    uint32_t name, file; /* strings */
    uint32_t first_line, line_count;
    uint64_t place; /* of its piece */
};

struct method_line {
    uint32_t bytecode, line;
};

/* What was inlined: the method and the bytecode, and where that is inlined. */
struct scope {
    uint32_t parent; /* its place among the blob's + 1 */
    uint32_t method; /* its place + 1, in the process's list; 0: not known */
    int32_t bytecode;
};

struct scope_end {
    uint64_t offset;
    uint32_t scope; /* as above */
};

struct blob {
    struct java_frame frame;
    uint64_t time;
    uint32_t method; /* as above */
    uint32_t name;   /* string, of what is no method */
    uint32_t first_scope, scope_count;
    uint32_t first_end, end_count;
};

struct java_process {
    int32_t pid;
    VECTOR(struct method) methods;
    VECTOR(uint32_t) numbers; /* by the recording's number: its place + 1 */
    VECTOR(struct blob) blobs;
    VECTOR(struct java_place) places;
    VECTOR(uint32_t) by_address; /* methods, sorted */
    uint32_t object;
};

struct java {
    VECTOR(struct java_process *) processes;
    VECTOR(struct method_line) lines;
    VECTOR(struct scope) scopes;
    VECTOR(struct scope_end) ends;
    struct strings *strings;
    struct arena arena; /* bytes of places */
    struct budget budget;
};

struct java *java_new(const struct budget_limits *limits) {
    struct java *java = memory_zero(1, sizeof *java);
    budget_init(&java->budget, limits, 0);
    java->strings = strings_new();
    return java;
}

void java_free(struct java *java) {
    if (!java)
        return;
    for (size_t i = 0; i < java->processes.count; i++) {
        struct java_process *process = java->processes.items[i];
        vector_release(&process->methods);
        vector_release(&process->numbers);
        vector_release(&process->blobs);
        vector_release(&process->places);
        vector_release(&process->by_address);
        free(process);
    }
    vector_release(&java->processes);
    vector_release(&java->lines);
    vector_release(&java->scopes);
    vector_release(&java->ends);
    strings_free(java->strings);
    arena_release(&java->arena);
    free(java);
}

/* ---- reading ---- */

/* What is left of an entry; `failed` once something did not fit. */
struct input {
    const uint8_t *at, *end;
    bool failed;
};

static uint64_t take(struct input *in) {
    uint64_t value = 0;
    for (unsigned shift = 0; in->at < in->end && shift < 64; shift += 7) {
        uint8_t byte = *in->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    in->failed = true;
    return 0;
}

static uint64_t take_upto(struct input *in, uint64_t most) {
    uint64_t value = take(in);
    in->failed |= value > most;
    return in->failed ? 0 : value;
}

static struct text take_bytes(struct input *in, uint64_t size) {
    if (in->failed || size > (uint64_t)(in->end - in->at)) {
        in->failed = true;
        return TEXT("");
    }
    struct text bytes = {(const char *)in->at, size};
    in->at += size;
    return bytes;
}

static struct text take_text(struct input *in) {
    return take_bytes(in, take_upto(in, TEXT_MOST));
}

/* A count of things that take at least `each` bytes. */
static uint64_t take_count(struct input *in, uint64_t most, uint64_t each) {
    uint64_t left = (uint64_t)(in->end - in->at) / each;
    return take_upto(in, left < most ? left : most);
}

static struct java_process *process_get(struct java *java, int32_t pid) {
    if (!budget_take_steps(&java->budget, java->processes.count, NO_OFFSET) ||
        !budget_take_memory(&java->budget, sizeof(struct java_process), NO_OFFSET))
        return NULL;
    for (size_t i = 0; i < java->processes.count; i++)
        if (java->processes.items[i]->pid == pid)
            return java->processes.items[i];
    struct java_process *process = memory_zero(1, sizeof *process);
    process->pid = pid;
    vector_push(&java->processes, process);
    return process;
}

/* java/util/Map and HashMap.java: java.util.Map.get in java/util/HashMap.java. */
static uint32_t add_name(struct java *java, struct text class_name, struct text name) {
    struct buffer whole = {0};
    buffer_add(&whole, class_name);
    for (size_t i = 0; i < whole.count; i++)
        if (whole.items[i] == '/')
            whole.items[i] = '.';
    buffer_add_char(&whole, '.');
    buffer_add(&whole, name);
    uint32_t id = strings_add(java->strings, buffer_text(&whole));
    buffer_release(&whole);
    return id;
}

static uint32_t add_file(struct java *java, struct text class_name, struct text file) {
    struct buffer whole = {0};
    size_t package = text_find_last(class_name, '/');
    if (!file.length)
        return 0;
    if (package != SIZE_MAX)
        buffer_add(&whole, text_upto(class_name, package + 1));
    buffer_add(&whole, file);
    uint32_t id = strings_add(java->strings, buffer_text(&whole));
    buffer_release(&whole);
    return id;
}

static bool add_method(struct java *java, struct java_process *process, uint64_t time,
                       struct input *in) {
    struct method method = {.time = time, .first_line = (uint32_t)java->lines.count};
    uint64_t number = take_upto(in, METHODS_MOST);
    method.address = take(in);
    method.code = take(in);
    method.code_size = (uint32_t)take_upto(in, UINT16_MAX);
    struct text class_name = take_text(in), name = take_text(in), file = take_text(in);
    uint64_t count = take_count(in, LINES_MOST, 2);
    /* Numbers are given one by one; a gap means that something was lost. */
    if (in->failed || !number ||
        (number > process->numbers.count &&
         !budget_take_memory(&java->budget, 4 * (number - process->numbers.count), NO_OFFSET)))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct method_line line = {(uint32_t)take_upto(in, UINT32_MAX),
                                   (uint32_t)take_upto(in, UINT32_MAX)};
        vector_push(&java->lines, line);
    }
    method.line_count = (uint32_t)count;
    method.name = add_name(java, class_name, name);
    method.file = add_file(java, class_name, file);
    vector_push(&process->methods, method);
    while (process->numbers.count < number)
        vector_push(&process->numbers, 0);
    process->numbers.items[number - 1] = (uint32_t)process->methods.count;
    return !in->failed;
}

bool java_add_methods(struct java *java, struct text key, struct text bytes) {
    struct input in = {(const uint8_t *)bytes.data, (const uint8_t *)bytes.data + bytes.length,
                       false};
    budget_grow(&java->budget, bytes.length);
    struct java_process *process =
        key.length == KEY ? process_get(java, (int32_t)load_u32(key.data)) : NULL;
    while (process && in.at < in.end)
        if (!add_method(java, process, load_u64(key.data + 8), &in))
            return false;
    return process;
}

static uint32_t take_method(struct input *in, const struct java_process *process) {
    uint64_t number = take(in);
    return number && number <= process->numbers.count ? process->numbers.items[number - 1] : 0;
}

static bool add_scopes(struct java *java, const struct java_process *process, struct blob *blob,
                       struct input *in) {
    uint64_t count = take_count(in, SCOPES_MOST, 3), offset = 0;
    blob->first_scope = (uint32_t)java->scopes.count;
    for (uint64_t i = 0; i < count; i++) {
        struct scope scope = {.parent = (uint32_t)take_upto(in, i)};
        scope.method = take_method(in, process);
        scope.bytecode = (int32_t)take_upto(in, 1 << 16) - 1;
        vector_push(&java->scopes, scope);
    }
    blob->scope_count = (uint32_t)count;
    uint64_t ends = take_count(in, SCOPES_MOST, 2);
    blob->first_end = (uint32_t)java->ends.count;
    for (uint64_t i = 0; i < ends; i++) {
        offset += take_upto(in, UINT32_MAX);
        vector_push(&java->ends,
                    ((struct scope_end){offset, (uint32_t)take_upto(in, blob->scope_count)}));
    }
    blob->end_count = (uint32_t)ends;
    return !in->failed;
}

static bool add_blob(struct java *java, struct java_process *process, uint64_t time,
                     struct input *in) {
    struct blob blob = {.time = time};
    blob.frame.kind = (enum java_kind)take_upto(in, JAVA_FRAMELESS);
    blob.frame.start = take_upto(in, BYTECODES - 1);
    blob.frame.size = take_upto(in, 1u << 31);
    blob.frame.words = (uint32_t)take_upto(in, 1 << 20);
    blob.frame.complete = (int64_t)take_upto(in, 1u << 31) - 1;
    blob.method = take_method(in, process);
    struct text name = take_text(in);
    blob.name = name.length ? strings_add(java->strings, name) : 0;
    blob.frame.pushed = java_words_pushed(name);
    if (in->failed || !blob.frame.kind || !blob.frame.size ||
        (blob.frame.kind == JAVA_COMPILED && !add_scopes(java, process, &blob, in)))
        return false;
    vector_push(&process->blobs, blob);
    return true;
}

bool java_add_code(struct java *java, struct text key, struct text bytes) {
    enum { RECORD_BLOB = 1, RECORD_BYTES = 2 };
    struct input in = {(const uint8_t *)bytes.data, (const uint8_t *)bytes.data + bytes.length,
                       false};
    budget_grow(&java->budget, bytes.length);
    struct java_process *process =
        key.length == KEY ? process_get(java, (int32_t)load_u32(key.data)) : NULL;
    if (!process)
        return false;
    uint64_t time = load_u64(key.data + 8);
    while (in.at < in.end && !in.failed) {
        uint64_t kind = take(&in);
        if (kind == RECORD_BLOB) {
            if (!add_blob(java, process, time, &in))
                return false;
        } else if (kind == RECORD_BYTES) {
            uint64_t address = take(&in);
            struct text code = take_bytes(&in, JAVA_BEFORE + JAVA_AFTER);
            uint32_t depth = (uint32_t)take_upto(&in, 1 << 10);
            struct text kept = in.failed ? code : arena_copy(&java->arena, code);
            if (!in.failed)
                vector_push(
                    &process->places,
                    ((struct java_place){address, time, (const uint8_t *)kept.data, depth}));
        } else {
            return false;
        }
    }
    return !in.failed;
}

/* ---- pieces ---- */

static uint32_t line_of(const struct java *java, const struct method *method, int64_t bytecode) {
    uint32_t best = 0, line = 0;
    bytecode = bytecode > 0 ? bytecode : 0; /* -1: it is just being entered */
    for (uint32_t i = 0; i < method->line_count; i++) {
        const struct method_line *at = &java->lines.items[method->first_line + i];
        if (at->bytecode <= bytecode && (!line || at->bytecode >= best)) {
            best = at->bytecode;
            line = at->line;
        }
    }
    return line;
}

static struct text string(const struct java *java, uint32_t id) {
    return id ? strings_get(java->strings, id) : TEXT("");
}

static int method_line_order(const void *a, const void *b) {
    const struct method_line *x = a, *y = b;
    return (x->bytecode > y->bytecode) - (x->bytecode < y->bytecode);
}

static uint32_t first_line(const struct java *java, const struct method *method) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < method->line_count; i++) {
        uint32_t line = java->lines.items[method->first_line + i].line;
        if (!first || line < first)
            first = line;
    }
    return first;
}

/* A method as the interpreter runs it: a byte of its piece is a byte of bytecode. */
static void add_interpreted(struct java *java, struct made *made, struct method *method) {
    struct made_piece piece = {.name = string(java, method->name),
                               .language = TEXT("java"),
                               .file = string(java, method->file),
                               .line = first_line(java, method),
                               .size = method->code_size ? method->code_size : 1};
    method->place = made_add(made, &piece);
    struct method_line *lines = method->line_count ? java->lines.items + method->first_line : NULL;
    if (method->line_count)
        qsort(lines, method->line_count, sizeof *lines, method_line_order);
    for (uint32_t i = 0; i < method->line_count; i++) {
        struct made_frame frame = {.file = piece.file, .line = lines[i].line};
        made_add_line(made, lines[i].bytecode, &frame, 1);
    }
}

/* Outermost first. */
static size_t frames_of_scope(const struct java *java, const struct java_process *process,
                              const struct blob *blob, uint32_t scope, struct made_frame *frames) {
    struct made_frame inner[DEPTH_MOST];
    size_t count = 0;
    for (; scope && count < DEPTH_MOST;
         scope = java->scopes.items[blob->first_scope + scope - 1].parent) {
        const struct scope *at = &java->scopes.items[blob->first_scope + scope - 1];
        if (!at->method)
            continue;
        const struct method *method = &process->methods.items[at->method - 1];
        inner[count++] = (struct made_frame){.name = string(java, method->name),
                                             .file = string(java, method->file),
                                             .line = line_of(java, method, at->bytecode)};
    }
    for (size_t i = 0; i < count; i++)
        frames[i] = inner[count - 1 - i];
    return count;
}

/* What an end says holds from behind the end before it: of a call, it is the address behind. */
static void add_scope_lines(struct java *java, const struct java_process *process,
                            const struct blob *blob, struct made *made) {
    struct made_frame frames[DEPTH_MOST];
    uint64_t from = 0;
    for (uint32_t i = 0; i < blob->end_count; i++) {
        const struct scope_end *end = &java->ends.items[blob->first_end + i];
        size_t count = frames_of_scope(java, process, blob, end->scope, frames);
        if (!budget_take_memory(&java->budget, count * sizeof *frames, NO_OFFSET))
            return;
        if (count && end->offset >= from)
            made_add_line(made, from, frames, count);
        from = end->offset + 1;
    }
    made_add_line(made, from, NULL, 0);
}

static void add_compiled(struct java *java, struct java_process *process, const struct blob *blob,
                         const struct java_machine *machine, struct made *made,
                         struct reading *reading) {
    const struct method *method = blob->method ? &process->methods.items[blob->method - 1] : NULL;
    struct made_piece piece = {.name = string(java, method ? method->name : blob->name),
                               .language = method ? TEXT("java") : TEXT(""),
                               .file = string(java, method ? method->file : 0),
                               .line = method ? first_line(java, method) : 0,
                               .size = blob->frame.size};
    uint64_t start = blob->frame.start, end = start + blob->frame.size;
    struct made_moment moment = {.time = blob->time,
                                 .start = start,
                                 .end = end,
                                 .place = made_add(made, &piece),
                                 .pid = process->pid};
    const struct java_place *places = process->places.items;
    size_t first = search_first(i, 0, process->places.count, places[i].address < start);
    size_t after = search_first(i, first, process->places.count, places[i].address < end);
    /* What was at these addresses before, or comes later, has other code. */
    VECTOR(struct java_place) own = {0};
    for (size_t i = first; i < after; i++)
        if (places[i].time >= blob->time &&
            (!own.count || own.items[own.count - 1].address != places[i].address))
            vector_push(&own, places[i]);
    if (machine)
        java_add_rules(made, machine, &blob->frame, own.items, own.count);
    vector_release(&own);
    add_scope_lines(java, process, blob, made);
    moment.object = process->object;
    made_happens(&reading->made, &moment);
}

static int place_order(const void *a, const void *b) {
    const struct java_place *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

static int method_order(const void *a, const void *b) {
    const struct method *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

static void finish_process(struct java *java, struct java_process *process,
                           struct reading *reading) {
    const struct perfdata *data = reading->profile->data;
    const struct java_machine *machine =
        java_machine_of(data ? unwind_arch_of(data->arch) : UNWIND_X86_64);
    struct made *made = made_new(machine ? machine->elf : 0);
    process->object = made_object(reading, process->pid, TEXT("[java]"), made_share(made));
    if (process->places.count)
        qsort(process->places.items, process->places.count, sizeof *process->places.items,
              place_order);
    for (size_t i = 0; i < process->blobs.count; i++)
        add_compiled(java, process, &process->blobs.items[i], machine, made, reading);
    uint64_t earliest = UINT64_MAX, last = 0;
    for (size_t i = 0; i < process->methods.count; i++) {
        struct method *method = &process->methods.items[i];
        add_interpreted(java, made, method);
        earliest = method->time < earliest ? method->time : earliest;
        last = method->place + method->code_size + 1;
    }
    struct made_moment moment = {.time = earliest,
                                 .start = BYTECODES + 1,
                                 .end = BYTECODES + last + 1,
                                 .place = 1,
                                 .object = process->object,
                                 .pid = process->pid};
    if (process->methods.count) {
        made_happens(&reading->made, &moment);
        qsort(process->methods.items, process->methods.count, sizeof *process->methods.items,
              method_order);
    }
    made_free(made);
}

void java_finish(struct java *java, struct reading *reading) {
    for (size_t i = 0; java && i < java->processes.count; i++)
        finish_process(java, java->processes.items[i], reading);
}

/* ---- asking ---- */

const struct java_process *java_process(const struct java *java, int32_t pid) {
    for (size_t i = 0; java && i < java->processes.count; i++)
        if (java->processes.items[i]->pid == pid)
            return java->processes.items[i];
    return NULL;
}

uint64_t java_interpreted(const struct java_process *process, uint64_t time, uint64_t method,
                          uint64_t bytecode, uint64_t other) {
    const struct method *methods = process->methods.items;
    size_t first = search_first(i, 0, process->methods.count, methods[i].address < method);
    if (first == process->methods.count || methods[first].address != method)
        return 0;
    while (first + 1 < process->methods.count && methods[first + 1].address == method &&
           methods[first + 1].time <= time)
        first++;
    const struct method *found = &methods[first];
    uint64_t into = bytecode - found->code;
    if (into >= found->code_size)
        into = other - found->code;
    return BYTECODES + found->place + (into < found->code_size ? into : 0);
}
