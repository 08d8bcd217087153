/*
 * Unwinding rules for HotSpot's frames. When a method calls another, its frame is complete and of a fixed size. Only the innermost frame can be in a
 * prologue or epilogue, where machines differ; the recording contains the code around sampled addresses, which decides.
 */
#include "profile/java.h"

#include <elf.h>

const struct java_machine *java_machine_of(enum unwind_arch arch) {
    switch (arch) {
    case UNWIND_X86_64:
        return &java_x86_64;
    case UNWIND_AARCH64:
        return &java_aarch64;
    case UNWIND_OTHER:
        break;
    }
    return NULL;
}

static struct made_row row_of(const struct java_machine *machine, uint8_t cfa_register,
                              int32_t cfa_offset) {
    struct made_row row = {.cfa_register = cfa_register,
                           .cfa_offset = cfa_offset,
                           .rule_count = 1,
                           .rules = {{machine->return_address, CFI_AT_CFA, 0, -8}}};
    return row;
}

static void row_add(struct made_row *row, uint8_t reg, int32_t offset) {
    row->rules[row->rule_count++] = (struct cfi_rule){reg, CFI_AT_CFA, 0, offset};
}

struct made_row java_row_saved(const struct java_machine *machine, int32_t size) {
    struct made_row row = row_of(machine, machine->stack_pointer, size);
    row_add(&row, machine->frame_pointer, -16);
    return row;
}

struct made_row java_row_unsaved(const struct java_machine *machine, int32_t size) {
    struct made_row row = row_of(machine, machine->stack_pointer, size);
    if (machine->has_link)
        row.rules[0] =
            (struct cfi_rule){machine->return_address, CFI_IN_REGISTER, 0, machine->return_address};
    return row;
}

struct made_row java_row_called(const struct java_machine *machine) {
    return java_row_unsaved(machine, machine->has_link ? 0 : 8);
}

static struct made_row row_by_frame_pointer(const struct java_machine *machine) {
    struct made_row row = row_of(machine, machine->frame_pointer, 16);
    row_add(&row, machine->frame_pointer, -16);
    return row;
}

bool java_row_whole(const struct java_machine *machine, const struct java_frame *frame,
                    struct made_row *row) {
    switch (frame->kind) {
    case JAVA_INTERPRETER: /* its caller's stack may have grown by its locals */
        *row = row_by_frame_pointer(machine);
        row_add(row, machine->stack_pointer, -24);
        row->is_interpreter = true;
        return true;
    case JAVA_STUB:
    case JAVA_FRAMELESS: /* what calls has made one */
        *row = row_by_frame_pointer(machine);
        return !machine->stubs_follow;
    case JAVA_COMPILED:
    case JAVA_SIZED:
        break;
    }
    *row = frame->words > 1 ? java_row_saved(machine, 8 * (int32_t)frame->words)
                            : java_row_called(machine);
    row->may_have_crumb = machine->has_crumbs;
    return true;
}

/* In a prologue only addresses that were sampled are where a frame is half made, and these have rows of their own. Any other is where the call of the
   barrier returns to, at the prologue's end, when the frame is there. That call, and something before it, take some bytes. */
enum { BEFORE_CALLS = 8 };

uint32_t java_words_pushed(struct text name) {
    return text_search(name, TEXT("slow_subtype_check")) != SIZE_MAX ? 2 : 0;
}

void java_add_rules(struct made *made, const struct java_machine *machine,
                    const struct java_frame *frame, const struct java_place *places, size_t count) {
    struct made_row whole_row, called = java_row_called(machine);
    const struct made_row *whole = java_row_whole(machine, frame, &whole_row) ? &whole_row : NULL;
    bool sized = frame->kind == JAVA_COMPILED || frame->kind == JAVA_SIZED;
    uint64_t complete = sized && frame->complete > 0 ? (uint64_t)frame->complete : 0;
    uint64_t next = 0; /* where the row that was added last is to end */
    made_add_row(made, 0, complete ? &called : whole);
    complete = complete < BEFORE_CALLS ? complete : BEFORE_CALLS;
    for (size_t i = 0; i < count; i++) {
        uint64_t into = places[i].address - frame->start;
        struct made_row row;
        bool has_row = machine->row_at(frame, into, &places[i], &row);
        if (complete && complete > next && complete <= into)
            made_add_row(made, complete, whole);
        made_add_row(made, into, has_row ? &row : NULL);
        next = into + 1;
        made_add_row(made, next, next < complete ? &called : whole);
    }
    if (complete && complete > next)
        made_add_row(made, complete, whole);
}

/* ---- x86-64 ---- */

static bool code_is(const uint8_t *code, const char *bytes, size_t size) {
    return memcmp(code, bytes, size) == 0;
}

/* Whether only a poll for safepoints, if anything, comes before the return: cmp rsp,[r15+N]; ja, or test of the polling page. */
static bool is_about_to_return_x86(const uint8_t *code, const uint8_t *end) {
    for (unsigned steps = 0; code < end && steps < 4; steps++) {
        size_t left = (size_t)(end - code);
        if (*code == 0xc3)
            return true;
        if (left > 7 && code_is(code, "\x49\x3b\xa7", 3))
            code += 7;
        else if (left > 4 && code_is(code, "\x49\x3b\x67", 3))
            code += 4;
        else if (left > 6 && code_is(code, "\x0f\x87", 2))
            code += 6;
        else if (left > 4 && code_is(code, "\x4d\x8b\x57", 3))
            code += 4;
        else if (left > 7 && code_is(code, "\x4d\x8b\x97", 3))
            code += 7;
        else if (left > 3 && code_is(code, "\x41\x85\x02", 3))
            code += 3;
        else if (left > 6 && code_is(code, "\x85\x05", 2))
            code += 6;
        else
            return false;
    }
    return false;
}

/* sub rsp, N: how long it is; 0: it is something else. */
static size_t grows_stack(const uint8_t *code, size_t left) {
    if (left >= 4 && code_is(code, "\x48\x83\xec", 3))
        return 4;
    if (left >= 7 && code_is(code, "\x48\x81\xec", 3))
        return 7;
    return 0;
}

/* mov [rsp+N], rbp */
static bool saves_rbp(const uint8_t *code, size_t left) {
    return (left >= 5 && code_is(code, "\x48\x89\x6c\x24", 4)) ||
           (left >= 8 && code_is(code, "\x48\x89\xac\x24", 4));
}

/* In a prologue: push rbp, then sub rsp, N; or sub, then mov [rsp+N], rbp. `before` is what ran already, at the most `size` bytes of it. */
static struct made_row row_in_prologue_x86(const struct java_frame *frame, const uint8_t *before,
                                           size_t size) {
    int32_t whole = 8 * (int32_t)frame->words;
    for (size_t at = 0; at < size; at++) {
        size_t grown = grows_stack(before + at, size - at);
        bool pushed = grown && at && before[at - 1] == 0x55;
        if (grown)
            return pushed || saves_rbp(before + at + grown, size - at - grown)
                       ? java_row_saved(&java_x86_64, whole)
                       : java_row_unsaved(&java_x86_64, whole);
    }
    return size && before[size - 1] == 0x55 ? java_row_saved(&java_x86_64, 16)
                                            : java_row_called(&java_x86_64);
}

/* In code that has no frame: where the sample had its return address. */
static struct made_row row_by_depth(uint32_t depth) {
    int32_t size = 8 * (int32_t)(depth / 2);
    if (!depth)
        return java_row_called(&java_x86_64);
    return depth & 1 ? java_row_saved(&java_x86_64, size) : java_row_unsaved(&java_x86_64, size);
}

/* push rbp; mov rbp, rsp */
static bool is_entered(const uint8_t *code) {
    return code_is(code, "\x55\x48\x8b\xec", 4) || code_is(code, "\x55\x48\x89\xe5", 4);
}

static bool row_by_code_x86(const struct java_frame *frame, uint64_t into,
                            const struct java_place *place, struct made_row *row) {
    const uint8_t *here = place->bytes + JAVA_BEFORE, *end = here + JAVA_AFTER;
    size_t before = into < JAVA_BEFORE ? into : JAVA_BEFORE;
    bool sized = frame->kind == JAVA_COMPILED || frame->kind == JAVA_SIZED;
    if (frame->kind == JAVA_INTERPRETER)
        return java_row_whole(&java_x86_64, frame, row);
    if (frame->kind == JAVA_FRAMELESS)
        *row = row_by_depth(place->depth);
    else if (is_about_to_return_x86(here, end) || (!sized && is_entered(here)))
        *row = java_row_called(&java_x86_64);
    else if ((sized && *here == 0x5d && is_about_to_return_x86(here + 1, end)) ||
             (!sized && before && is_entered(here - 1)))
        *row = java_row_saved(&java_x86_64, 16);
    else if (sized && (int64_t)into < frame->complete && frame->words > 1)
        *row = row_in_prologue_x86(frame, here - before, before);
    else
        return java_row_whole(&java_x86_64, frame, row);
    return true;
}

static bool row_at_x86(const struct java_frame *frame, uint64_t into,
                       const struct java_place *place, struct made_row *row) {
    if (!row_by_code_x86(frame, into, place, row))
        return false;
    if (frame->pushed)
        row->rules[row->rule_count++] =
            (struct cfi_rule){java_x86_64.stack_pointer, CFI_CFA_PLUS, 0, 8 * (int)frame->pushed};
    return true;
}

const struct java_machine java_x86_64 = {.elf = EM_X86_64,
                                         .frame_pointer = 6,
                                         .stack_pointer = 7,
                                         .return_address = 16,
                                         .row_at = row_at_x86};

/* ---- aarch64 ---- */

/*
 * HotSpot's code on aarch64, by what its sources say of it: build_frame() and remove_frame() in macroAssembler_aarch64.cpp. A call leaves the return
 * address in x30, where it stays until the prologue saves it beside x29, at the upper end of the frame:
 *
 *     sub sp, sp, #SIZE; stp x29, x30, [sp, #SIZE-16]           a frame of less than 528 bytes
 *     stp x29, x30, [sp, #-16]!; sub sp, sp, #SIZE-16           a larger one; from 4112 bytes on, SIZE-16 is in x8
 *
 * and the epilogue does the same backwards, then asks whether to stop at a safepoint, and returns.
 */
enum { INSTRUCTION = 4 };

static uint32_t word_at(const uint8_t *code) {
    return load_u32(code);
}

/* sub sp, sp, #N, or with `is_add` the opposite: N; 0: it is something else. */
static int32_t moves_stack(uint32_t code, bool is_add) {
    uint32_t operation = is_add ? 0x910003ff : 0xd10003ff;
    return (code & 0xff8003ff) == operation
               ? (int32_t)((code >> 10 & 0xfff) << (code >> 22 & 1 ? 12 : 0))
               : 0;
}

static bool takes_from_stack_by_register(uint32_t code) {
    return code == 0xcb2863ff; /* sub sp, sp, x8 */
}

/* stp or ldp of x29 and x30 */
static bool pushes_record(uint32_t code) {
    return code == 0xa9bf7bfd; /* …, [sp, #-16]! */
}
static bool pops_record(uint32_t code) {
    return code == 0xa8c17bfd; /* …, [sp], #16 */
}
static bool stores_record(uint32_t code) {
    return (code & 0xffc07fff) == 0xa9007bfd; /* …, [sp, #N] */
}
static bool loads_record(uint32_t code) {
    return (code & 0xffc07fff) == 0xa9407bfd;
}

/* Whether only a poll for safepoints, if anything, comes before the return. */
static bool is_about_to_return_aarch64(const uint8_t *code, const uint8_t *end) {
    static const struct {
        uint32_t mask, code;
    } polls[] = {
        {0xffc003ff, 0xf9400388}, /* ldr x8, [x28, #N] */
        {0xffffffff, 0xeb2863ff}, /* cmp sp, x8 */
        {0xff00001f, 0x54000008}, /* b.hi */
        {0x9f00001f, 0x90000008}, /* adrp x8 */
        {0xffc003ff, 0xb940011f}, /* ldr wzr, [x8, #N] */
        {0xffffffff, 0xd50323bf}, /* autiasp */
    };
    for (; code < end; code += INSTRUCTION) {
        bool is_poll = false;
        if (word_at(code) == 0xd65f03c0) /* ret */
            return true;
        for (size_t i = 0; i < COUNT_OF(polls); i++)
            is_poll |= (word_at(code) & polls[i].mask) == polls[i].code;
        if (!is_poll)
            return false;
    }
    return false;
}

/* `before` is what ran already, at the most `size` bytes of it. */
static struct made_row row_in_prologue_aarch64(const struct java_frame *frame,
                                               const uint8_t *before, size_t size) {
    int32_t grown = 0;
    bool is_saved = false;
    for (size_t i = 0; i + INSTRUCTION <= size; i += INSTRUCTION) {
        uint32_t code = word_at(before + i);
        grown += moves_stack(code, false) + (pushes_record(code) ? 16 : 0);
        if (takes_from_stack_by_register(code))
            grown = 8 * (int32_t)frame->words;
        is_saved |= pushes_record(code) || stores_record(code);
    }
    return is_saved ? java_row_saved(&java_aarch64, grown) : java_row_unsaved(&java_aarch64, grown);
}

/* Between loading x29 and x30 and giving up the rest of the frame: its size; 0: elsewhere. */
static int32_t left_in_epilogue(const uint8_t *here, size_t before) {
    return before && loads_record(word_at(here - INSTRUCTION)) ? moves_stack(word_at(here), true)
                                                               : 0;
}

static bool row_at_aarch64(const struct java_frame *frame, uint64_t into,
                           const struct java_place *place, struct made_row *row) {
    const uint8_t *here = place->bytes + JAVA_BEFORE, *end = here + JAVA_AFTER;
    size_t before = into < JAVA_BEFORE ? into & ~(uint64_t)(INSTRUCTION - 1) : JAVA_BEFORE;
    bool sized = frame->kind == JAVA_COMPILED || frame->kind == JAVA_SIZED;
    int32_t left = sized ? left_in_epilogue(here, before) : 0;
    if (frame->kind == JAVA_INTERPRETER)
        return java_row_whole(&java_aarch64, frame, row);
    if (frame->kind == JAVA_FRAMELESS || is_about_to_return_aarch64(here, end) ||
        pushes_record(word_at(here)))
        *row = java_row_called(&java_aarch64);
    else if (left)
        *row = java_row_unsaved(&java_aarch64, left);
    else if (pops_record(word_at(here)) ||
             (!sized && before && pushes_record(word_at(here - INSTRUCTION))))
        *row = java_row_saved(&java_aarch64, 16);
    else if (sized && (int64_t)into < frame->complete && frame->words > 1)
        *row = row_in_prologue_aarch64(frame, here - before, before);
    else
        return java_row_whole(&java_aarch64, frame, row);
    return true;
}

const struct java_machine java_aarch64 = {.elf = EM_AARCH64,
                                          .frame_pointer = 29,
                                          .stack_pointer = 31,
                                          .return_address = 30,
                                          .has_link = true,
                                          .has_crumbs = true,
                                          .stubs_follow = true,
                                          .row_at = row_at_aarch64};
