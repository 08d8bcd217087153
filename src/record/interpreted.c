/*
 * Stacks of interpreters, from addresses to functions and lines.
 *
 * New stacks are processed every few milliseconds, because a process that has exited can't be asked for the names of its functions. For
 * Python, code objects come with the stacks. Others are read once; every turn that meets one checks whether another has taken its place, and
 * so does a word of it that was read with the stack. Lines are cached by (code, instruction).
 */
#include "record/interpreted.h"

#include <stdlib.h>

static const struct note_kind note_unnamed = {"interpreted-unnamed",
                                              "# frame{|s} of an interpreter could not be named: "
                                              "the process had ended, or its memory was invalid"};
static const struct note_kind note_version = {
    "interpreter-version",
    "# process{|es} {runs|run} an interpreter of a version or kind that wick does not know: only "
    "native functions are shown, not the program's"};
static const struct note_kind note_deep = {
    "interpreted-deep", "# stack{|s} of an interpreter {has|have} more frames than are recorded "
                        "(1024): the innermost are shown"};
static const struct note_kind note_postponed = {
    "interpreter-postponed",
    "# process{|es} could not be searched for an interpreter in time, as processes have very many "
    "mappings: if {it is|they are} Python, Ruby or PHP, only native functions are shown"};
static const struct note_kind note_missed = {
    "interpreter-missed", "an interpreter ran, but its functions were not recorded: that needs "
                          "root (for BPF), or --method=ptrace"};

enum {
    LINES_REMEMBERED = 1 << 14,
    CODES_MOST = 1 << 20,
    LOOK_SOON = 2000000,
    LOOK_LATE =
        2000000000, /* nanoseconds until a process without an interpreter is checked again */
    LOOK_COST = 20, /* … or so many times the duration of the check, if that is longer */
    POSTPONED = 50000000,
};
/* Limit all checks together to a second plus a quarter of the elapsed time: a check reads a process's mappings, of which there may be 65,530.
   */
static const uint64_t looks_at_first = 1000000000;
enum { LOOKS_SHARE = 4 };

struct asked_process {
    pid_t pid;
    uint64_t memory;
    uint64_t wait; /* before it is checked again */
    bool is_refused;
    bool is_postponed; /* never checked, for lack of time */
    bool is_expected;  /* checked before the first sample; until then `memory` is 0 */
    struct interpreter_process is;
    uint32_t number; /* unique, even over time */
};

struct known_code {
    uint32_t process;
    uint32_t function;
    uint32_t turn; /* last turn in which it was the same */
    uint32_t generation;
    bool is_taken; /* it was read with a stack */
    uint64_t address;
    struct interpreter_code code; /* without its name and file */
};

struct known_line {
    uint32_t code; /* its place + 1 */
    uint32_t generation;
    uint32_t line;
    uint64_t instruction;
};

/* A stack shared by many waits. */
struct kept_stack {
    uint64_t kind;
    uint32_t pid, end, count;
    struct written_frame *frames; /* outermost first */
};

struct interpreted {
    struct sink *sink;
    struct walker *walker; /* NULL: stacks are read from stopped threads */
    struct known_files files;
    VECTOR(pid_t) expected; /* processes that have mapped an interpreter before the recording */
    VECTOR(struct asked_process) processes;
    struct index by_pid; /* of processes: numbers are places + 1; counts all there ever were */
    uint32_t process_count;
    VECTOR(struct known_code) codes;
    struct index by_address;
    struct known_line *lines;
    struct stack_writer *writer;
    struct memory_writer *memories;
    struct named_threads threads;
    VECTOR(struct kept_stack) kinds;
    struct index by_kind; /* numbers are places + 1 */
    uint32_t turn;
    uint64_t named, unnamed; /* frames */
    uint64_t deep;           /* stacks with more frames than fit */
    uint64_t since, looking; /* start time; nanoseconds spent on checking processes */
    bool has_begun;          /* samples are taken */
    bool is_used;
    bool is_missed; /* a process has mapped an interpreter, but no stacks are taken */
};

struct interpreted *interpreted_new(struct sink *sink) {
    struct interpreted *all = memory_zero(1, sizeof *all);
    all->sink = sink;
    all->since = monotonic();
    all->turn = 1;
    all->writer = stack_writer_new(sink);
    all->memories = memory_writer_new(sink);
    all->lines = memory_table(LINES_REMEMBERED, sizeof *all->lines);
    return all;
}

void interpreted_free(struct interpreted *all) {
    if (!all)
        return;
    for (size_t i = 0; i < all->codes.count; i++)
        interpreter_code_release(&all->codes.items[i].code);
    walker_close(all->walker);
    known_files_release(&all->files);
    vector_release(&all->expected);
    vector_release(&all->processes);
    index_release(&all->by_pid);
    vector_release(&all->codes);
    index_release(&all->by_address);
    free(all->lines);
    stack_writer_free(all->writer);
    memory_writer_free(all->memories);
    named_threads_release(&all->threads);
    for (size_t i = 0; i < all->kinds.count; i++)
        free(all->kinds.items[i].frames);
    vector_release(&all->kinds);
    index_release(&all->by_kind);
    free(all);
}

bool interpreted_open(struct interpreted *all, bool sums_waits, struct error *error) {
    if (!all->walker)
        all->walker = walker_open(sums_waits, error);
    return all->walker;
}

void interpreted_set_copied(struct interpreted *all, uint64_t size) {
    if (all && all->walker)
        walker_set_copied(all->walker, all->sink->window ? 0 : size);
}

void interpreted_close(struct interpreted *all) {
    if (!all)
        return;
    walker_close(all->walker);
    all->walker = NULL;
}

int interpreted_map(const struct interpreted *all, const char *name) {
    return all && all->walker ? walker_map(all->walker, name) : -1;
}

int interpreted_program(const struct interpreted *all) {
    return all && all->walker ? walker_program(all->walker) : -1;
}

int interpreted_switch_program(const struct interpreted *all) {
    return all && all->walker ? walker_switch_program(all->walker) : -1;
}

int interpreted_descriptor(const struct interpreted *all) {
    return all && all->walker ? walker_descriptor(all->walker) : -1;
}

bool interpreted_is_used(const struct interpreted *all) {
    return all && all->is_used;
}

/* ---- processes ---- */

static uint64_t hash_pid(pid_t pid) {
    return hash_mix((uint32_t)pid, 5);
}

static struct asked_process *process_find(struct interpreted *all, pid_t pid) {
    uint32_t number;
    for (struct probe p = index_probe(&all->by_pid, hash_pid(pid));
         (number = index_next(&all->by_pid, &p));)
        if (all->processes.items[number - 1].pid == pid)
            return &all->processes.items[number - 1];
    return NULL;
}

static struct asked_process *process_get(struct interpreted *all, pid_t pid) {
    struct asked_process *process = process_find(all, pid);
    if (process)
        return process;
    vector_push(&all->processes, ((struct asked_process){.pid = pid}));
    index_add(&all->by_pid, hash_pid(pid), (uint32_t)all->processes.count);
    return &all->processes.items[all->processes.count - 1];
}

static void note_refused(struct interpreted *all, const struct asked_process *process,
                         const struct interpreter_symbols *symbols) {
    unsigned version = process->is.version;
    struct notes *notes = &all->sink->result->notes;
    if (symbols->python_runtime)
        notes_add(notes, &note_version, 1, 0, "Python %u.%u%s in process %d", version >> 8,
                  version & 255, process->is.build, process->pid);
    else if (symbols->ruby_version)
        notes_add(notes, &note_version, 1, 0, "Ruby %u.%u in process %d", version >> 8,
                  version & 255, process->pid);
    else
        notes_add(notes, &note_version, 1, 0, "PHP with the API %u in process %d", version,
                  process->pid);
}

/* Check whether the process's current program has an interpreter; if not, it may map one later. */
static void process_look(struct interpreted *all, struct asked_process *process, uint64_t memory) {
    struct interpreter_symbols symbols;
    struct remote remote = remote_process(&process->pid);
    uint64_t before = monotonic();
    if (process->memory != memory || !process->number) {
        *process = (struct asked_process){.pid = process->pid, .memory = memory, .wait = LOOK_SOON};
        process->number = ++all->process_count;
    }
    bool has = interpreter_look_for(&all->files, process->pid, &symbols);
    if (has && interpreter_find(&remote, &symbols, &process->is)) {
        all->is_used = true;
    } else {
        process->is.layout.interpreter = INTERPRETER_NONE;
        if (has && process->is.version && !process->is_refused)
            note_refused(all, process, &symbols);
        process->is_refused |= has && process->is.version;
    }
    uint64_t now = monotonic(), cost = now - before;
    all->looking += cost;
    process->is_postponed = false;
    if (process->wait < LOOK_COST * cost)
        process->wait = LOOK_COST * cost;
    process->is.layout.memory = memory;
    process->is.layout.again = now + process->wait;
    process->wait = process->wait < LOOK_LATE ? 2 * process->wait : LOOK_LATE;
}

/* Check a process, unless it was checked since (it is reported repeatedly meanwhile) or checks have taken too long already. */
static void process_consider(struct interpreted *all, struct asked_process *process,
                             uint64_t memory, uint64_t time) {
    uint64_t now = monotonic();
    bool is_known = process->number && process->memory == memory;
    if (is_known && time < process->is.layout.again) {
        /* the report replaced the kernel's copy */
    } else if (all->looking <= looks_at_first + (now - all->since) / LOOKS_SHARE) {
        process_look(all, process, memory);
    } else {
        if (!is_known)
            *process = (struct asked_process){.pid = process->pid, .is_postponed = true};
        process->is.layout.memory = memory;
        process->is.layout.again = now + POSTPONED;
    }
    if (all->walker)
        walker_set(all->walker, process->pid, &process->is.layout);
}

/* The address space of a process that was expected is known from its first sample on. */
static void process_meet(struct asked_process *process, uint64_t memory) {
    if (process->is_expected && !process->memory)
        process->memory = process->is.layout.memory = memory;
}

void interpreted_expect(struct interpreted *all, pid_t pid) {
    if (!all || !all->walker || all->looking > looks_at_first)
        return;
    struct asked_process *process = process_get(all, pid);
    if (process->number)
        return;
    process_look(all, process, 0);
    process->is_expected = true;
    walker_set(all->walker, pid, &process->is.layout);
}

void interpreted_begin(struct interpreted *all) {
    if (!all)
        return;
    all->has_begun = true;
    for (size_t i = 0; i < all->expected.count; i++)
        interpreted_expect(all, all->expected.items[i]);
}

static void process_forget(struct interpreted *all, pid_t pid) {
    struct asked_process *process = process_find(all, pid);
    if (!process)
        return;
    process->memory = 0;
    process->number = 0;
    process->is_expected = false;
    process->is.layout.again = 0;
    process->is.layout.interpreter = INTERPRETER_NONE;
    if (all->walker)
        walker_forget(all->walker, pid);
}

static void see_mapping(struct interpreted *all, pid_t pid, struct text path) {
    if (!interpreter_is_file(path))
        return;
    all->is_missed |= !all->walker;
    if (!all->has_begun &&
        (!all->expected.count || all->expected.items[all->expected.count - 1] != pid))
        vector_push(&all->expected, pid);
}

/* Whether an exec matters. The BPF program notices it by itself, unless the process was expected and not sampled before. */
static bool may_be_another(struct interpreted *all, pid_t pid) {
    const struct asked_process *process = process_find(all, pid);
    return !all->walker || (process && process->is_expected);
}

/* After a process exits, another may get its pid. */
void interpreted_saw(struct interpreted *all, const uint8_t *record,
                     const struct perf_event_header *header) {
    enum { NAME = 72 };
    if (!all || header->size < 24)
        return;
    pid_t pid = (pid_t)load_u32(record + 8);
    bool has_ended = header->type == PERF_RECORD_EXIT && pid == (pid_t)load_u32(record + 16);
    bool is_another = header->type == PERF_RECORD_COMM &&
                      header->misc & PERF_RECORD_MISC_COMM_EXEC && may_be_another(all, pid);
    if (has_ended || is_another)
        process_forget(all, pid);
    if (header->type == PERF_RECORD_MMAP2 && header->size > NAME &&
        (!all->walker || !all->has_begun))
        see_mapping(all, pid,
                    (struct text){(const char *)record + NAME,
                                  strnlen((const char *)record + NAME, header->size - NAME)});
}

/* ---- functions ---- */

/* `code` was read, or is empty if there is none. */
static void code_set(struct interpreted *all, const struct asked_process *process,
                     struct known_code *known, const struct interpreter_code *code, bool is_read) {
    interpreter_code_release(&known->code);
    known->generation++;
    known->code = *code;
    known->function = is_read ? stack_writer_function(all->writer, process->is.layout.interpreter,
                                                      buffer_text(&code->name),
                                                      buffer_text(&code->file), code->first_line)
                              : 0;
    buffer_release(&known->code.name);
    buffer_release(&known->code.file);
}

static void code_name(struct interpreted *all, const struct asked_process *process,
                      struct known_code *known) {
    struct remote remote = remote_process(&process->pid);
    struct interpreter_code code;
    bool is_read = interpreter_code_read(&remote, &process->is, known->address, &code);
    known->is_taken = false;
    code_set(all, process, known, &code, is_read);
}

static struct known_code *code_find(struct interpreted *all, const struct asked_process *process,
                                    uint64_t address) {
    uint64_t hash = hash_mix(address, process->number);
    uint32_t number;
    for (struct probe p = index_probe(&all->by_address, hash);
         (number = index_next(&all->by_address, &p));) {
        struct known_code *known = &all->codes.items[number - 1];
        if (known->address == address && known->process == process->number)
            return known;
    }
    if (all->codes.count >= CODES_MOST)
        return NULL;
    vector_push(&all->codes, ((struct known_code){.process = process->number, .address = address}));
    index_add(&all->by_address, hash, (uint32_t)all->codes.count);
    return &all->codes.items[all->codes.count - 1];
}

/* A code object arrives before the stacks with it. */
static void see_code(void *context, const struct raw_code *raw) {
    struct interpreted *all = context;
    struct asked_process *process = process_find(all, (pid_t)raw->pid);
    struct interpreter_code code;
    if (process)
        process_meet(process, raw->memory);
    if (!process || process->memory != raw->memory ||
        process->is.layout.interpreter != INTERPRETER_PYTHON)
        return;
    struct remote remote = remote_process(&process->pid);
    struct known_code *known = code_find(all, process, raw->address[CODE_HEAD]);
    if (!known)
        return;
    bool is_read = interpreter_code_read_taken(&remote, &process->is, raw, &code);
    known->is_taken |= is_read;
    if (!is_read ||
        (known->function && memcmp(known->code.identity, code.identity, sizeof code.identity) == 0))
        interpreter_code_release(&code);
    else
        code_set(all, process, known, &code, true);
}

/* `check` was read with the stack; 0: it was not. */
static bool is_checked(const struct known_code *known, uint64_t check) {
    return !check || interpreter_code_check(&known->code) == check;
}

/* Return the code at an address, read again if it changed since the last turn, or NULL if it is not what was there when the stack was taken.
   */
static struct known_code *code_get(struct interpreted *all, const struct asked_process *process,
                                   uint64_t address, uint64_t check) {
    struct known_code *known = code_find(all, process, address);
    struct remote remote = remote_process(&process->pid);
    uint64_t identity[4];
    if (!known)
        return NULL;
    bool is_known = known->generation && known->function && is_checked(known, check);
    if (is_known && known->is_taken)
        return known;
    if (known->turn == all->turn && (is_known || !known->function))
        return known;
    known->turn = all->turn;
    /* It is unchanged; or its process is gone, and what was known still holds. */
    if (is_known && (!interpreter_code_identify(&remote, &process->is, address, identity) ||
                     memcmp(identity, known->code.identity, sizeof identity) == 0))
        return known;
    code_name(all, process, known);
    return is_checked(known, check) ? known : NULL;
}

static uint32_t line_get(struct interpreted *all, const struct asked_process *process,
                         const struct known_code *code, uint64_t instruction) {
    uint32_t place = (uint32_t)(code - all->codes.items) + 1;
    uint64_t slot = hash_mix(instruction, place) & (LINES_REMEMBERED - 1);
    struct known_line *line = &all->lines[slot];
    struct remote remote = remote_process(&process->pid);
    if (line->code != place || line->instruction != instruction ||
        line->generation != code->generation)
        *line = (struct known_line){
            place, code->generation,
            interpreter_code_line(&remote, &process->is, &code->code, instruction), instruction};
    return line->line;
}

/* ---- stacks ---- */

/* A frame is a function, or only marks where the interpreter was entered on the C stack. */
static struct written_frame name_frame(struct interpreted *all, const struct asked_process *process,
                                       const struct raw_frame *raw) {
    uint32_t flags = raw->code & FRAME_BITS;
    struct written_frame frame = {.line = flags, .address = flags & FRAME_SHIM ? raw->address : 0};
    if (flags & FRAME_SHIM)
        return frame;
    if (!process->is.layout.mark_value)
        frame.line |= FRAME_ENTRY; /* each function has its own call of the interpreter */
    uint64_t check = process->is.layout.code_lines ? raw->address : 0;
    struct known_code *code = code_get(all, process, raw->code & ~(uint64_t)FRAME_BITS, check);
    if (code && code->function) {
        all->named++;
        frame.function = code->function;
        frame.line |= line_get(all, process, code, raw->instruction) << 4;
    } else {
        all->unnamed++;
        frame.function = stack_writer_function(all->writer, process->is.layout.interpreter,
                                               TEXT("[unknown]"), TEXT(""), 0);
    }
    return frame;
}

static void kind_keep(struct interpreted *all, const struct raw_stack *raw,
                      const struct written_frame *frames) {
    struct kept_stack kept = {raw->kind, raw->pid, raw->end, raw->count, NULL};
    kept.frames = memory_alloc(raw->count * sizeof *frames);
    memcpy(kept.frames, frames, raw->count * sizeof *frames);
    vector_push(&all->kinds, kept);
    index_add(&all->by_kind, hash_mix(kept.kind, 8), (uint32_t)all->kinds.count);
}

void interpreted_put_kind(struct interpreted *all, uint64_t kind, uint32_t tid, uint64_t time) {
    uint32_t number;
    if (!all || !kind)
        return;
    for (struct probe p = index_probe(&all->by_kind, hash_mix(kind, 8));
         (number = index_next(&all->by_kind, &p));) {
        const struct kept_stack *kept = &all->kinds.items[number - 1];
        struct raw_stack raw = {.time = time, .pid = kept->pid, .tid = tid};
        if (kept->kind != kind)
            continue;
        raw.end = kept->end;
        raw.count = kept->count;
        stack_writer_add(all->writer, &raw, kept->frames);
        return;
    }
}

static void name_stack(struct interpreted *all, const struct asked_process *process,
                       const struct raw_stack *raw) {
    struct written_frame frames[STACK_FRAMES];
    for (uint32_t i = 0; i < raw->count; i++)
        frames[raw->count - 1 - i] = name_frame(all, process, &raw->frames[i]);
    named_threads_saw(&all->threads, process->number, &process->is, raw);
    all->deep += raw->end == STACK_DEEP;
    if (raw->kind)
        kind_keep(all, raw, frames);
    else
        stack_writer_add(all->writer, raw, frames);
}

static void see_stack(void *context, const struct raw_stack *raw) {
    struct interpreted *all = context;
    struct asked_process *process = process_get(all, (pid_t)raw->pid);
    process_meet(process, raw->memory);
    if (raw->end == STACK_UNKNOWN)
        process_consider(all, process, raw->memory, raw->time);
    else if (process->memory == raw->memory && process->is.layout.interpreter)
        name_stack(all, process, raw);
}

static void see_memory(void *context, const struct raw_memory *part) {
    struct interpreted *all = context;
    memory_writer_add(all->memories, part);
}

void interpreted_look(struct interpreted *all) {
    if (!all)
        return;
    all->turn++;
    if (all->walker)
        walker_drain(all->walker, see_stack, see_code, see_memory, all);
}

void interpreted_take(struct interpreted *all, pid_t pid, pid_t tid, uint64_t thread_pointer,
                      struct raw_stack **stack) {
    enum { ANY = 1 };
    if (!all)
        return;
    struct asked_process *process = process_get(all, pid);
    uint64_t now = monotonic();
    if (now >= process->is.layout.again && !process->is.layout.interpreter)
        process_consider(all, process, ANY, now);
    if (!process->is.layout.interpreter)
        return;
    struct remote remote = remote_process(&process->pid);
    *stack = *stack ? *stack : memory_zero(1, sizeof **stack);
    (*stack)->pid = (uint32_t)pid;
    (*stack)->tid = (uint32_t)tid;
    interpreter_walk(&remote, &process->is, thread_pointer, *stack);
}

void interpreted_put(struct interpreted *all, struct raw_stack *stack, uint64_t time) {
    struct asked_process *process = process_get(all, (pid_t)stack->pid);
    stack->time = time;
    if (process->is.layout.interpreter)
        name_stack(all, process, stack);
}

/* ---- into the recording ---- */

bool interpreted_turn(struct interpreted *all, struct error *error) {
    if (!all || !all->sink->writer || all->sink->only_names)
        return true;
    interpreted_look(all);
    return named_threads_write(&all->threads, all->sink, error) &&
           stack_writer_turn(all->writer, error) &&
           memory_writer_write(all->memories, false, error);
}

bool interpreted_finish_window(struct interpreted *all, struct error *error) {
    if (!all)
        return true;
    interpreted_look(all);
    return named_threads_write(&all->threads, all->sink, error) &&
           stack_writer_finish_window(all->writer, error);
}

bool interpreted_finish(struct interpreted *all, struct error *error) {
    if (!all || !all->sink->writer || all->sink->only_names)
        return true;
    interpreted_look(all);
    struct notes *notes = &all->sink->result->notes;
    if (all->is_missed && !all->is_used)
        notes_add(notes, &note_missed, 1, 0, NULL);
    if (all->unnamed > all->named / 100) /* a few belong to processes that were exiting */
        notes_add(notes, &note_unnamed, all->unnamed, 0, NULL);
    uint64_t postponed = 0;
    for (size_t i = 0; i < all->processes.count; i++)
        postponed += all->processes.items[i].is_postponed;
    if (postponed)
        notes_add(notes, &note_postponed, postponed, 0, NULL);
    if (all->deep)
        notes_add(notes, &note_deep, all->deep, 0, NULL);
    return named_threads_write(&all->threads, all->sink, error) &&
           stack_writer_finish(all->writer, error) &&
           memory_writer_write(all->memories, true, error);
}
