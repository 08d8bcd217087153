/*
 * The loop over frames, its cache of rules, and the ending of a stack.
 */
#include "unwind/internal.h"
#include "unwind/step.h"

#include <linux/perf_event.h>
#include <stdlib.h>

#define FRAMES_MAX 1024
/* Of entries of 32 bytes: from 64 KB, enough for a small recording, to a megabyte, which a second-level cache holds. */
enum { CACHE_BITS_FIRST = 11, CACHE_BITS_MOST = 15, CACHE_BITS_STEP = 2 };
/* A return address further than this beyond the slice is no stack that was cut, but a register that was no frame pointer. */
#define STACK_MAX (1ull << 30)

enum {
    ENTRY_USED = 1,
    ENTRY_TRAMPOLINE = 2,
    ENTRY_START_KNOWN = 4,
    ENTRY_START = 8,
    ENTRY_FOREIGN = 16, /* in a file of another architecture */
    ENTRY_SWITCH = 32,  /* where a stack is left for another, and rules say nothing of it */
};

/* What is known of the code at an address. */
struct code_known {
    uint64_t address;
    const struct mapping *mapping; /* executable, or NULL */
    const struct cfi_row *row;
    uint32_t epoch;
    uint32_t flags;
};

struct unwinder {
    struct objects *objects;
    const struct spaces *spaces;
    struct unwind_options options;
    uint32_t max_frames;
    uint64_t no_registers, other_abi, other_arch, other_machine;
    bool is_foreign;     /* this stack goes through a file of another architecture */
    bool is_seeking;     /* the frame of a handler: once is enough */
    bool is_interrupted; /* this stack was left for one that a signal interrupted, and ends there */
    struct unwind_frame frames[FRAMES_MAX];
    struct code_known *cache;
    unsigned cache_bits;
    size_t cache_misses; /* since it has this size */
};

static const struct note_kind note_registers = {
    "unwind-registers", "# sample{ lacks|s lack} the registers that unwinding needs"};
static const struct note_kind note_abi = {
    "unwind-abi", "# sample{|s} of a process of another word size could not be unwound"};
static const struct note_kind note_arch = {"unwind-machine",
                                           "# sample{ comes|s come} from a machine whose stacks "
                                           "wick cannot unwind: only x86_64 and aarch64"};
static const struct note_kind note_machine = {
    "unwind-architecture", "# stack{ goes|s go} through files of another architecture "
                           "than the recording's, whose rules were not used"};

enum unwind_arch unwind_arch_of(struct text arch) {
    if (arch.length == 0 || text_equal(arch, TEXT("x86_64")) || text_equal(arch, TEXT("amd64")))
        return UNWIND_X86_64;
    if (text_equal(arch, TEXT("aarch64")) || text_equal(arch, TEXT("arm64")))
        return UNWIND_AARCH64;
    return UNWIND_OTHER;
}

const struct unwind_interpreter *unwind_interpreter(enum unwind_arch arch) {
    switch (arch) {
    case UNWIND_X86_64:
        return &machine_x86_64.interpreter;
    case UNWIND_AARCH64:
        return &machine_aarch64.interpreter;
    case UNWIND_OTHER:
        break;
    }
    return NULL;
}

struct unwinder *unwinder_new(struct objects *objects, const struct spaces *spaces,
                              const struct unwind_options *options) {
    struct unwinder *unwinder = memory_zero(1, sizeof *unwinder);
    unwinder->objects = objects;
    unwinder->spaces = spaces;
    unwinder->options = *options;
    unwinder->max_frames =
        options->quirks.unwound_limit ? options->quirks.unwound_limit : FRAMES_MAX;
    unwinder->cache_bits = CACHE_BITS_FIRST;
    unwinder->cache = memory_zero(1u << CACHE_BITS_FIRST, sizeof *unwinder->cache);
    return unwinder;
}

void unwinder_free(struct unwinder *unwinder) {
    if (unwinder)
        free(unwinder->cache);
    free(unwinder);
}

void unwinder_notes(const struct unwinder *unwinder, struct notes *notes) {
    if (unwinder->no_registers)
        notes_add(notes, &note_registers, unwinder->no_registers, 0, NULL);
    if (unwinder->other_abi)
        notes_add(notes, &note_abi, unwinder->other_abi, 0, NULL);
    if (unwinder->other_arch)
        notes_add(notes, &note_arch, unwinder->other_arch, 0, NULL);
    if (unwinder->other_machine)
        notes_add(notes, &note_machine, unwinder->other_machine, 0, NULL);
}

/* ---- what is known of an address ---- */

static void entry_fill(struct unwinder *unwinder, struct state *state,
                       const struct machine *machine, struct code_known *entry) {
    const struct mapping *mapping =
        space_find(state->memory.spaces, state->memory.user, entry->address);
    if (mapping && !mapping->executable)
        mapping = NULL;
    entry->mapping = mapping;
    entry->row = NULL;
    entry->flags = ENTRY_USED;
    if (mapping && mapping->object)
        entry->row = objects_cfi(unwinder->objects, mapping->object,
                                 entry->address - mapping->start + mapping->offset);
    uint16_t elf =
        mapping && mapping->object ? objects_machine(unwinder->objects, mapping->object) : 0;
    if (elf && elf != machine->elf) {
        entry->row = NULL;
        entry->flags |= ENTRY_FOREIGN;
    }
    if (entry->row ? entry->row->signal_frame
                   : mapping && machine->is_trampoline &&
                         machine->is_trampoline(state, entry->address != state->pc))
        entry->flags |= ENTRY_TRAMPOLINE;
}

static struct code_known *entry_slot(const struct unwinder *unwinder, uint32_t epoch,
                                     uint64_t address) {
    uint64_t hash = (address ^ (uint64_t)epoch << 40) * 0x9E3779B97F4A7C15ull;
    return &unwinder->cache[hash >> (64 - unwinder->cache_bits)];
}

/* Call it between two stacks: within one, entries are referred to. */
static void cache_grow(struct unwinder *unwinder) {
    struct code_known *old = unwinder->cache;
    size_t size = (size_t)1 << unwinder->cache_bits;
    if (unwinder->cache_bits >= CACHE_BITS_MOST || unwinder->cache_misses < size / 2)
        return;
    unwinder->cache_bits += CACHE_BITS_STEP;
    unwinder->cache_misses = 0;
    unwinder->cache = memory_zero((size_t)1 << unwinder->cache_bits, sizeof *unwinder->cache);
    for (size_t i = 0; i < size; i++)
        if (old[i].flags)
            *entry_slot(unwinder, old[i].epoch, old[i].address) = old[i];
    free(old);
}

static inline struct code_known *entry_find(struct unwinder *unwinder, struct state *state,
                                            const struct machine *machine, uint32_t epoch,
                                            uint64_t address) {
    struct code_known *entry = entry_slot(unwinder, epoch, address);
    if (entry->address != address || entry->epoch != epoch || !entry->flags) {
        entry->address = address;
        entry->epoch = epoch;
        unwinder->cache_misses++;
        entry_fill(unwinder, state, machine, entry);
    }
    return entry;
}

/* A signed return address is none that is mapped. How many bits belong to the address depends on the kernel and is not recorded, so the
   widest that gives mapped code is taken. */
static struct code_known *entry_unsigned(struct unwinder *unwinder, struct state *state,
                                         const struct machine *machine, uint32_t epoch,
                                         uint64_t call) {
    static const uint8_t widths[] = {52, 48, 47, 42, 39, 36};
    uint64_t signed_pc = state->pc;
    struct code_known *entry = NULL;
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        state->pc = signed_pc & ((1ull << widths[i]) - 1);
        entry = entry_find(unwinder, state, machine, epoch, state->pc - call);
        if (entry->mapping)
            return entry;
    }
    state->pc = signed_pc;
    return entry;
}

/* In a stripped file the entry point has no name. What begins a process needs no rules for its callers, and is short. */
#define ENTRY_CODE_MAX 256

static bool is_entry_point(struct unwinder *unwinder, const struct code_known *entry,
                           uint64_t address) {
    uint64_t start;
    return !entry->row && objects_entry(unwinder->objects, entry->mapping->object, &start) &&
           address >= start && address - start < ENTRY_CODE_MAX;
}

static bool entry_is_start(struct unwinder *unwinder, struct code_known *entry) {
    if (!(entry->flags & ENTRY_START_KNOWN)) {
        const struct mapping *mapping = entry->mapping;
        struct symbol symbol;
        entry->flags |= ENTRY_START_KNOWN;
        if (!mapping || !mapping->object)
            return false;
        uint64_t address = entry->address - mapping->start + mapping->offset;
        bool is_named = objects_symbol(unwinder->objects, mapping->object, address, &symbol);
        if (is_named ? unwind_is_start(symbol.name) : is_entry_point(unwinder, entry, address))
            entry->flags |= ENTRY_START;
        if (is_named && unwind_is_switch(symbol.name))
            entry->flags |= ENTRY_SWITCH;
    }
    return entry->flags & ENTRY_START;
}

/* ---- a sample ---- */

static const struct machine *machine_of(struct unwinder *unwinder, uint64_t abi) {
    switch (unwinder->options.arch) {
    case UNWIND_X86_64:
        return abi == PERF_SAMPLE_REGS_ABI_32 ? &machine_i386 : &machine_x86_64;
    case UNWIND_AARCH64:
        return abi == PERF_SAMPLE_REGS_ABI_32 ? NULL : &machine_aarch64;
    case UNWIND_OTHER:
        break;
    }
    return NULL;
}

static bool state_load(struct unwinder *unwinder, struct state *state,
                       const struct machine *machine, const struct unwind_sample *sample) {
    if (!sample->registers || !machine->load(state, sample->register_mask, sample->registers))
        return false;
    state->memory = (struct memory){
        .stack = sample->stack,
        .base = state->value[machine->stack],
        .size = sample->stack ? sample->stack_size : 0,
        .word = machine->word,
        .blocks = sample->blocks,
        .block_count = sample->block_count,
        .spaces = unwinder->spaces,
        .user = sample->user,
        .objects = unwinder->objects,
    };
    /* perf takes a word that ends where the slice ends for one outside it. */
    if (unwinder->options.quirks.slice_is_shorter && state->memory.size)
        state->memory.size--;
    return true;
}

static enum unwind_ending ending_of_miss(const struct state *state,
                                         const struct unwind_sample *sample, bool left_stack) {
    uint64_t missed = state->memory.missed, end = state->memory.base + state->memory.size;
    if (missed == 0)
        return UNWIND_BROKEN;
    if (left_stack || sample->stack_size == 0)
        return UNWIND_TRUNCATED;
    bool was_cut = sample->stack_size >= sample->stack_dumped;
    /* A word may begin inside the slice and end outside. */
    return was_cut && missed + state->memory.word > end && missed - end + 8 < STACK_MAX
               ? UNWIND_TRUNCATED
               : UNWIND_BROKEN;
}

/* `is_running`: whether the frame was interrupted, where it is; then, of its caller. */
static bool step(struct state *state, const struct machine *machine, const struct code_known *entry,
                 bool *is_running) {
    bool was_running = *is_running;
    *is_running = entry->flags & ENTRY_TRAMPOLINE;
    state->memory.missed = 0;
    if (*is_running && machine->rules_skip_interrupted && machine->leave_signal(state))
        return true;
    state->memory.missed = 0;
    if (entry->row)
        return step_by_row(state, machine, entry->row, was_running);
    if (*is_running)
        return machine->leave_signal(state);
    *is_running = was_running;
    return machine->fallback(state, is_running);
}

static bool has_caller(const struct code_known *entry) {
    return !entry->row || entry->row->kept >> entry->row->return_register & 1;
}

/* Around signals, what perf prints depends on what libunwind calls a signal frame: on x86 the interrupted one, on
   aarch64 the trampoline. */
static bool perf_lowers(const struct machine *machine, bool is_first, bool is_running,
                        bool is_trampoline) {
    if (machine->perf_lowers_interrupted)
        return !is_first && !is_trampoline;
    return !is_running;
}

static enum unwind_ending walk(struct unwinder *unwinder, struct state *state,
                               const struct machine *machine, const struct unwind_sample *sample,
                               bool is_running, struct unwind_stack *stack,
                               struct code_known **last);

/* On from another frame, if that leads to the start; else all is as it was. */
static bool walk_from(struct unwinder *unwinder, const struct state *state, uint64_t pc,
                      uint64_t sp, const struct machine *machine,
                      const struct unwind_sample *sample, bool is_running,
                      struct unwind_stack *stack, struct code_known **last) {
    struct state there = *state;
    struct code_known *before = *last;
    uint32_t count = stack->count;
    there.pc = pc;
    set_register(&there, machine->stack, sp);
    unwinder->is_seeking = true;
    enum unwind_ending ending = walk(unwinder, &there, machine, sample, is_running, stack, last);
    unwinder->is_seeking = false;
    if (ending == UNWIND_COMPLETE || entry_is_start(unwinder, *last))
        return true;
    stack->count = count;
    *last = before;
    return false;
}

/*
 * An unwinder on its way out has written the registers of the frame with the handler over those of its caller, the return address among them.
 * That address still stands where the frame with the handler has it, further up, which tells where that frame is; the frames
 * between are lost. At the very end the handler's own address is written there, and a register points at it, or says how
 * far it is. If the stack is not whole from there, nothing was overwritten. `state` is the caller's, as the rules have it.
 */
static bool walk_to_handler(struct unwinder *unwinder, const struct state *state, uint64_t way,
                            const struct machine *machine, const struct unwind_sample *sample,
                            struct unwind_stack *stack, struct code_known **last) {
    uint64_t word = machine->word, sp = state->value[machine->stack], value;
    const uint64_t slots[] = {way, sp - word + way};
    if (unwinder->is_seeking)
        return false;
    for (uint64_t at = sp; memory_stack_word(&state->memory, at, &value); at += word)
        if (value == state->pc)
            return walk_from(unwinder, state, value, at + word, machine, sample, false, stack,
                             last);
    for (size_t i = 0; i < COUNT_OF(slots) && stack->count == 1; i++)
        if (slots[i] >= sp && memory_stack_word(&state->memory, slots[i], &value) &&
            walk_from(unwinder, state, value, slots[i] + word, machine, sample, true, stack, last))
            return true;
    return false;
}

/* Puts the method that an interpreter's frame runs in place of the interpreter. `state` is the frame's; the address of the bytecode is in a
   register, while it runs, or in the frame. */
static void frame_interpreted(struct unwinder *unwinder, const struct state *state,
                              const struct machine *machine, const struct unwind_sample *sample,
                              bool is_running, struct unwind_frame *frame) {
    const struct unwind_interpreter *layout = &machine->interpreter;
    uint64_t at = state->value[layout->frame_pointer], method, saved = 0, running = 0;
    if (!sample->interpreted || !has_register(state, layout->frame_pointer) ||
        !memory_stack_word(&state->memory, at - layout->method, &method))
        return;
    memory_stack_word(&state->memory, at - layout->bytecode, &saved);
    if (is_running && has_register(state, layout->bytecode_register))
        running = state->value[layout->bytecode_register];
    uint64_t address = sample->interpreted(sample->interpreted_context, method,
                                           is_running ? running : saved, saved);
    const struct mapping *mapping =
        address ? space_find(unwinder->spaces, sample->user, address) : NULL;
    if (mapping)
        *frame = (struct unwind_frame){.address = address, .mapping = mapping};
}

/* Of the innermost frame, whose function has no rules. */
static bool leaves_bare(const struct unwinder *unwinder, struct state *state,
                        const struct machine *machine, const struct code_known *entry,
                        bool is_running, uint32_t count) {
    return is_running && count == 1 && !entry->row && entry->mapping && machine->leave_bare &&
           !(entry->flags & ENTRY_TRAMPOLINE) && !unwinder->options.quirks.no_mending &&
           machine->leave_bare(state);
}

/* The frames, from the one at hand on. Returns how it ended, with *last the outermost frame's entry. */
static enum unwind_ending walk(struct unwinder *unwinder, struct state *state,
                               const struct machine *machine, const struct unwind_sample *sample,
                               bool is_running, struct unwind_stack *stack,
                               struct code_known **last) {
    bool left_stack = false, landed = false;
    for (;;) {
        bool call = !is_running;
        struct code_known *entry =
            entry_find(unwinder, state, machine, sample->epoch, state->pc - call);
        if (!entry->mapping && machine->signed_pointers && state->pc >> 36)
            entry = entry_unsigned(unwinder, state, machine, sample->epoch, call);
        if (!entry->mapping && stack->count == 1 && machine->mend &&
            !unwinder->options.quirks.no_mending && machine->mend(state))
            entry = entry_find(unwinder, state, machine, sample->epoch, state->pc - call);
        if (!entry->mapping && stack->count > 0)
            return UNWIND_BROKEN;
        bool is_trampoline = entry->flags & ENTRY_TRAMPOLINE;
        bool lowered =
            unwinder->options.quirks.lowers_like_libunwind
                ? perf_lowers(machine, stack->count == 0, is_running && !landed, is_trampoline)
                : call && !is_trampoline;
        unwinder->frames[stack->count++] =
            (struct unwind_frame){state->pc, lowered == call ? entry->mapping : NULL, lowered,
                                  state->value[machine->stack]};
        *last = entry;
        if (entry->row && entry->row->is_interpreter)
            frame_interpreted(unwinder, state, machine, sample, is_running,
                              &unwinder->frames[stack->count - 1]);
        if (!has_caller(entry))
            return UNWIND_COMPLETE;
        if (call && !entry->row && machine->is_first && !unwinder->options.quirks.no_mending &&
            machine->is_first(state))
            return UNWIND_COMPLETE;
        unwinder->is_foreign |= (entry->flags & ENTRY_FOREIGN) != 0;
        if (stack->count == unwinder->max_frames)
            return UNWIND_TRUNCATED;
        bool throws = entry->row && entry->row->throws;
        uint64_t way = throws ? state->value[machine->handler] : 0;
        if (leaves_bare(unwinder, state, machine, entry, is_running, stack->count)) {
            is_running = false;
            continue;
        }
        if (!step(state, machine, entry, &is_running)) {
            unwinder->is_interrupted = left_stack;
            return ending_of_miss(state, sample, left_stack);
        }
        if (state->pc == 0)
            return UNWIND_COMPLETE;
        left_stack |=
            is_running && state->value[machine->stack] - state->memory.base > state->memory.size;
        landed = throws && entry->row->landing;
        is_running |= landed;
        if (throws && !is_running && !unwinder->options.quirks.no_handlers &&
            walk_to_handler(unwinder, state, way, machine, sample, stack, last))
            return UNWIND_COMPLETE;
    }
}

void unwinder_run(struct unwinder *unwinder, const struct unwind_sample *sample,
                  struct unwind_stack *stack) {
    const struct machine *machine = machine_of(unwinder, sample->abi);
    struct state state;
    struct code_known *last = NULL;
    *stack = (struct unwind_stack){.frames = unwinder->frames, .ending = UNWIND_BROKEN};
    if (!machine) {
        if (unwinder->options.arch == UNWIND_OTHER)
            unwinder->other_arch++;
        else
            unwinder->other_abi++;
        return;
    }
    cache_grow(unwinder);
    unwinder->is_foreign = false;
    unwinder->is_interrupted = false;
    if (!state_load(unwinder, &state, machine, sample)) {
        unwinder->no_registers++;
        return;
    }
    stack->ending = walk(unwinder, &state, machine, sample, true, stack, &last);
    unwinder->other_machine += unwinder->is_foreign;
    if (entry_is_start(unwinder, last))
        stack->ending = UNWIND_COMPLETE;
    else if (last->flags & ENTRY_SWITCH)
        stack->ending = UNWIND_BROKEN;
    stack->is_interrupted = unwinder->is_interrupted && stack->ending == UNWIND_TRUNCATED;
}

uint64_t unwind_stack_pointer(enum unwind_arch arch, const struct unwind_sample *sample) {
    enum { OF_X86 = 7, OF_AARCH64 = 31 }; /* as perf numbers registers */
    unsigned number = arch == UNWIND_X86_64 ? OF_X86 : OF_AARCH64;
    uint64_t value;
    bool is_there = arch != UNWIND_OTHER && sample->registers &&
                    perf_register(sample->register_mask, sample->registers, number, &value);
    return is_there ? value : 0;
}

bool unwinder_leaf_caller(struct unwinder *unwinder, const struct unwind_sample *sample,
                          uint64_t pc, struct unwind_frame *caller) {
    const struct machine *machine = &machine_aarch64;
    bool may_be_stale = unwinder->options.quirks.stale_link_register;
    struct state state = {.pc = pc};
    uint64_t link;
    if (!sample->registers || !perf_register(sample->register_mask, sample->registers, 30, &link))
        return false;
    set_register(&state, 30, link);
    set_register(&state, machine->stack, 0);
    state.memory = (struct memory){.word = machine->word,
                                   .spaces = unwinder->spaces,
                                   .user = sample->user,
                                   .objects = unwinder->objects};
    struct code_known *entry = entry_find(unwinder, &state, machine, sample->epoch, pc);
    if (!(entry->row && has_caller(entry) && step_by_row(&state, machine, entry->row, true))) {
        if (!may_be_stale || (entry->row && entry->row->cfa_register == machine->stack))
            return false;
        state.pc = link;
    }
    if (state.pc == 0)
        return false;
    struct code_known *found = entry_find(unwinder, &state, machine, sample->epoch, state.pc - 1);
    if (!found->mapping && state.pc >> 36)
        found = entry_unsigned(unwinder, &state, machine, sample->epoch, 1);
    *caller = (struct unwind_frame){state.pc, found->mapping, !(found->flags & ENTRY_TRAMPOLINE)};
    return found->mapping || may_be_stale;
}
