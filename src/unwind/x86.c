/*
 * x86: 64 bits, and 32-bit processes on a 64-bit kernel, whose registers perf numbers the same way.
 */
#include "unwind/internal.h"

#include <elf.h>

/* perf's numbers: ax bx cx dx si di bp sp ip flags … r8 = 16 … r15. */
enum { PERF_BP = 6, PERF_SP = 7, PERF_IP = 8 };

/* DWARF's for 64 bits: ax dx cx bx si di bp sp r8 … r15; for 32: ax cx dx bx sp bp si di. */
static const uint8_t perf_of_dwarf_64[16] = {0,  3,  2,  1,  4,  5,  6,  7,
                                             16, 17, 18, 19, 20, 21, 22, 23};
static const uint8_t perf_of_dwarf_32[8] = {0, 2, 3, 1, 7, 6, 4, 5};

enum { ESP = 4, EBP = 5 }; /* DWARF's */

static bool load_all(struct state *state, uint64_t mask, const uint8_t *values,
                     const uint8_t *numbers, unsigned count, uint64_t keep) {
    uint64_t value;
    state->present = 0;
    for (unsigned reg = 0; reg < count; reg++)
        if (perf_register(mask, values, numbers[reg], &value))
            set_register(state, reg, value & keep);
    if (!perf_register(mask, values, PERF_IP, &value))
        return false;
    state->pc = value & keep;
    return true;
}

static bool load_64(struct state *state, uint64_t mask, const uint8_t *values) {
    return load_all(state, mask, values, perf_of_dwarf_64, 16, UINT64_MAX) &&
           has_register(state, 7);
}

static bool load_32(struct state *state, uint64_t mask, const uint8_t *values) {
    return load_all(state, mask, values, perf_of_dwarf_32, 8, UINT32_MAX) && has_register(state, 4);
}

/* The frame that bp points at: saved bp, then the return address. Nothing says that bp is a frame pointer, so the stack must at least
   go up. */
static bool step_by_frame_pointer(struct state *state, unsigned bp, unsigned sp) {
    uint64_t word = state->memory.word, frame = state->value[bp], pc, caller_frame;
    uint64_t stack = has_register(state, sp) ? state->value[sp] : 0;
    if (!has_register(state, bp) || frame == 0 || stack >= frame + 2 * word)
        return false;
    if (!memory_word(&state->memory, frame + word, &pc))
        return false;
    if (!memory_word(&state->memory, frame, &caller_frame))
        caller_frame = 0;
    state->present = 0;
    set_register(state, bp, caller_frame);
    set_register(state, sp, frame + 2 * word);
    state->pc = pc;
    return true;
}

/* call *%gs:16, as a shared libc has it, or call *ADDRESS. */
static bool is_after_call(struct state *state, uint64_t pc) {
    uint64_t code = 0;
    if (memory_bytes(&state->memory, pc - 7, 7, &code) && code == 0x1015ff65)
        return true;
    return memory_bytes(&state->memory, pc - 6, 2, &code) && code == 0x15ff;
}

/* call, near: to a fixed place, or through a register or memory, by ModRM. */
static bool is_after_any_call(struct state *state, uint64_t pc) {
    static const uint8_t lengths[] = {2, 3, 6, 7};
    uint64_t code = 0;
    if (memory_bytes(&state->memory, pc - 5, 1, &code) && code == 0xe8)
        return true;
    for (size_t i = 0; i < COUNT_OF(lengths); i++)
        if (memory_bytes(&state->memory, pc - lengths[i], 2, &code) && (code & 0x38ff) == 0x10ff)
            return true;
    return false;
}

/* glibc's memcpy for old processors pushes a register without saying so. What its rule takes for the return address is that register, and
   the true one lies behind it. */
static bool mend_32(struct state *state) {
    uint64_t pc, sp = state->value[ESP];
    if (!memory_stack_word(&state->memory, sp, &pc) || !is_after_any_call(state, pc))
        return false;
    set_register(state, ESP, sp + 4);
    state->pc = pc;
    return true;
}

/* A 32-bit process's vdso is in no file that we could read rules from, unless perf kept it. */
static bool is_in_vdso(const struct state *state) {
    const struct memory *memory = &state->memory;
    const struct mapping *mapping = space_find(memory->spaces, memory->user, state->pc);
    return mapping && mapping->object &&
           text_starts(objects_get(memory->objects, mapping->object)->path, TEXT("[vdso"));
}

/* 32-bit code enters the kernel there: it pushes ecx, edx and ebp, enters, pops them and returns. */
static bool leave_vdso(struct state *state) {
    const struct memory *memory = &state->memory;
    uint64_t sp = state->value[ESP], pc;
    if (!is_in_vdso(state))
        return false;
    for (int pushed = 3; pushed >= 0; pushed--) {
        uint64_t at = sp + 4 * (uint64_t)pushed;
        if (!memory_stack_word(memory, at, &pc) || !is_after_call(state, pc))
            continue;
        if (pushed == 3)
            memory_stack_word(memory, sp, &state->value[EBP]);
        set_register(state, ESP, at + 4);
        state->pc = pc;
        return true;
    }
    return false;
}

/* And signal handlers return to it. */
static bool is_trampoline_32(struct state *state, bool is_call) {
    return is_call && is_in_vdso(state);
}

/* Where a signal's frame has the registers. On the stack: the signal's number, then either these, or pointers to siginfo (128 bytes) and
   ucontext, which follow, the registers 20 bytes into the latter. */
static uint64_t signal_registers(const struct memory *memory, uint64_t sp) {
    uint64_t info, context;
    if (memory_stack_word(memory, sp + 4, &info) && info == sp + 12 &&
        memory_stack_word(memory, sp + 8, &context) && context == info + 128)
        return context + 20;
    return sp + 4;
}

/* They are: gs fs es ds edi esi ebp esp ebx edx ecx eax, two others, eip cs eflags esp ss. */
static bool load_registers(struct state *state, uint64_t registers) {
    static const uint8_t places[8] = {11, 10, 9, 8, 7, 6, 5, 4}; /* by DWARF number */
    struct memory *memory = &state->memory;
    uint64_t value;
    if (!memory_word(memory, registers + 14 * 4, &state->pc))
        return false;
    state->present = 0;
    for (unsigned reg = 0; reg < 8; reg++)
        if (memory_word(memory, registers + 4 * places[reg], &value))
            set_register(state, reg, value);
    return has_register(state, ESP);
}

static bool leave_signal_32(struct state *state) {
    return load_registers(state, signal_registers(&state->memory, state->value[ESP]));
}

static bool are_registers(const struct memory *memory, uint64_t at) {
    enum { CS = 0x23, SS = 0x2b }; /* of 32-bit processes on a 64-bit kernel */
    uint64_t sp, cs, sp_again, ss;
    return memory_stack_word(memory, at + 7 * 4, &sp) &&
           memory_stack_word(memory, at + 15 * 4, &cs) &&
           memory_stack_word(memory, at + 17 * 4, &sp_again) &&
           memory_stack_word(memory, at + 18 * 4, &ss) && cs == CS && ss == SS && sp == sp_again;
}

/* What handlers return to was itself interrupted, mostly in the kernel. It pops the signal's number first, where no pointers follow that. Which
   code of the vdso it is, only the stack tells. */
static bool leave_sigreturn(struct state *state) {
    uint64_t sp = state->value[ESP];
    const uint64_t places[] = {signal_registers(&state->memory, sp), sp};
    if (!is_in_vdso(state))
        return false;
    for (size_t i = 0; i < COUNT_OF(places); i++)
        if (are_registers(&state->memory, places[i]))
            return load_registers(state, places[i]);
    return false;
}

/*
 * CPython runs each function through a copy of a few instructions, made in memory and named in a perf map (`-X perf`): 3.12 `sub $8,%rsp; call
 * *%rcx`, later `push %rbp; mov %rsp,%rbp; call *%rcx`, an `endbr64` before it in some builds. There are no rules for them, but both take one
 * word, and callers go on 6 or 10 bytes behind the beginning.
 */
static bool is_python_trampoline(const struct state *state, uint64_t *into) {
    const struct memory *memory = &state->memory;
    const struct mapping *mapping = space_find(memory->spaces, memory->user, state->pc);
    struct symbol symbol;
    if (!mapping || !mapping->object ||
        !objects_symbol(memory->objects, mapping->object,
                        state->pc - mapping->start + mapping->offset, &symbol) ||
        !text_starts(symbol.name, TEXT("py::")))
        return false;
    *into = state->pc - mapping->start + mapping->offset - symbol.start;
    return true;
}

static bool leave_python_trampoline(struct state *state, bool is_running) {
    enum { BP = 6, SP = 7 };
    uint64_t sp = state->value[SP], into, pc, frame;
    if (!is_python_trampoline(state, &into) || (into != 6 && into != 10 && !is_running))
        return false;
    bool has_frame = into >= 4;
    if (!memory_stack_word(&state->memory, sp + 8 * has_frame, &pc))
        return false;
    if (has_frame && has_register(state, BP) && state->value[BP] == sp &&
        memory_stack_word(&state->memory, sp, &frame))
        set_register(state, BP, frame);
    set_register(state, SP, sp + 8 + 8 * has_frame);
    state->pc = pc;
    return true;
}

/* Return the start of the function that runs there, in the process; 0 if it is unknown. */
static uint64_t function_start(const struct state *state) {
    const struct memory *memory = &state->memory;
    const struct mapping *mapping = space_find(memory->spaces, memory->user, state->pc);
    uint64_t address = mapping ? state->pc - mapping->start + mapping->offset : 0;
    struct symbol symbol;
    return mapping && mapping->object &&
                   objects_symbol(memory->objects, mapping->object, address, &symbol)
               ? state->pc - (address - symbol.start)
               : 0;
}

/* Whether the instruction before `pc` is a call of `start`. */
static bool is_after_call_of(struct state *state, uint64_t pc, uint64_t start) {
    uint64_t code = 0, distance = 0;
    return memory_bytes(&state->memory, pc - 5, 1, &code) && code == 0xe8 &&
           memory_bytes(&state->memory, pc - 4, 4, &distance) &&
           pc + (uint64_t)(int64_t)(int32_t)distance == start;
}

static bool has_frame_pointer(struct state *state) {
    uint64_t pc;
    return has_register(state, 6) && state->value[6] >= state->value[7] &&
           memory_stack_word(&state->memory, state->value[6] + 8, &pc) &&
           is_after_any_call(state, pc);
}

/*
 * Functions written in assembly often have no rules. One that was interrupted has its return address at the stack's end, or behind what it pushed. That is sure
 * if a call of this very function stands before it. A call through a pointer or the PLT is believed only at the stack's end, where no
 * frame pointer leads on.
 */
static bool leave_bare_64(struct state *state) {
    enum { PUSHED_MOST = 16, SP = 7 };
    uint64_t sp = state->value[SP], start = function_start(state), pc;
    for (unsigned i = 0; i <= PUSHED_MOST; i++) {
        if (!memory_stack_word(&state->memory, sp + 8 * i, &pc))
            return false;
        bool is_return = (start && is_after_call_of(state, pc, start)) ||
                         (i == 0 && is_after_any_call(state, pc) && !has_frame_pointer(state));
        if (!is_return)
            continue;
        set_register(state, SP, sp + 8 * i + 8);
        state->pc = pc;
        return true;
    }
    return false;
}

/* glibc's __start_context: mov %rbx,%rsp; mov (%rsp),%rdi. Nothing calls it, so that the byte before it is no function's, and its rules lead nowhere. */
static bool is_first_64(struct state *state) {
    uint64_t code = 0;
    return memory_bytes(&state->memory, state->pc, 7, &code) && code == 0x243c8b48dc8948;
}

static bool fallback_64(struct state *state, bool *is_running) {
    bool was_running = *is_running;
    *is_running = false;
    return leave_python_trampoline(state, was_running) || step_by_frame_pointer(state, 6, 7);
}
static bool fallback_32(struct state *state, bool *is_running) {
    bool was_running = *is_running;
    *is_running = was_running && leave_sigreturn(state);
    return *is_running || (was_running && leave_vdso(state)) || step_by_frame_pointer(state, 5, 4);
}

const struct machine machine_x86_64 = {.elf = EM_X86_64,
                                       .word = 8,
                                       .stack = 7,
                                       .pc = 16,
                                       .handler = 2,
                                       .load = load_64,
                                       .interpreter = {.sender = 8,
                                                       .method = 24,
                                                       .locals = 56,
                                                       .bytecode = 64,
                                                       .frame_pointer = 6,
                                                       .bytecode_register = 13},
                                       .leave_bare = leave_bare_64,
                                       .is_first = is_first_64,
                                       .fallback = fallback_64};
const struct machine machine_i386 = {.elf = EM_386,
                                     .word = 4,
                                     .stack = 4,
                                     .pc = 8,
                                     .handler = 1,
                                     .load = load_32,
                                     .fallback = fallback_32,
                                     .is_trampoline = is_trampoline_32,
                                     .mend = mend_32,
                                     .leave_signal = leave_signal_32};
