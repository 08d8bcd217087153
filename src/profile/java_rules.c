/*
 * Rules of HotSpot's frames on x86-64. Where a method calls another its frame is whole: a fixed size, the return address at its top, the caller's
 * rbp below. Only the innermost frame can be in a prologue or epilogue; for the addresses that were sampled the recording has the code around
 * them, which tells.
 */
#include "profile/java.h"

enum { RBP = 6, RSP = 7, RA = 16 };

/* The caller's rbp is where `rbp` says, from the CFA; 0: in its register. */
static struct made_row row_of(uint8_t cfa_register, int32_t cfa_offset, int32_t rbp) {
    struct made_row row = {.cfa_register = cfa_register,
                           .cfa_offset = cfa_offset,
                           .rule_count = rbp ? 2 : 1,
                           .rules = {{RA, CFI_AT_CFA, 0, -8}, {RBP, CFI_AT_CFA, 0, rbp}}};
    return row;
}

static struct made_row row_called(void) {
    return row_of(RSP, 8, 0);
}

static struct made_row row_pushed(void) {
    return row_of(RSP, 16, -16);
}

static struct made_row row_whole(const struct java_frame *frame) {
    struct made_row row;
    switch (frame->kind) {
    case JAVA_INTERPRETER: /* its caller's stack may have grown by its locals */
        row = row_of(RBP, 16, -16);
        row.rules[row.rule_count++] = (struct cfi_rule){RSP, CFI_AT_CFA, 0, -24};
        row.is_interpreter = true;
        return row;
    case JAVA_STUB:
    case JAVA_FRAMELESS: /* what calls has made one */
        return row_of(RBP, 16, -16);
    case JAVA_COMPILED:
    case JAVA_SIZED:
        break;
    }
    return frame->words > 1 ? row_of(RSP, 8 * (int32_t)frame->words, -16) : row_called();
}

static bool code_is(const uint8_t *code, const char *bytes, size_t size) {
    return memcmp(code, bytes, size) == 0;
}

/* Whether only a poll for safepoints, if anything, comes before the return: cmp rsp,[r15+N]; ja, or test of the polling page. */
static bool is_about_to_return(const uint8_t *code, const uint8_t *end) {
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
static struct made_row row_in_prologue(const struct java_frame *frame, const uint8_t *before,
                                       size_t size) {
    struct made_row made_but_rbp = row_of(RSP, 8 * (int32_t)frame->words, 0);
    for (size_t at = 0; at < size; at++) {
        size_t grown = grows_stack(before + at, size - at);
        bool pushed = grown && at && before[at - 1] == 0x55;
        if (grown)
            return pushed || saves_rbp(before + at + grown, size - at - grown) ? row_whole(frame)
                                                                               : made_but_rbp;
    }
    return size && before[size - 1] == 0x55 ? row_pushed() : row_called();
}

/* In code that has no frame: where the sample had its return address. */
static struct made_row row_by_depth(uint32_t depth) {
    return depth ? row_of(RSP, 8 * (int32_t)(depth / 2), depth & 1 ? -16 : 0) : row_called();
}

static struct made_row row_at(const struct java_frame *frame, uint64_t into,
                              const struct java_place *place) {
    const uint8_t *here = place->bytes + JAVA_BEFORE, *end = here + JAVA_AFTER;
    size_t before = into < JAVA_BEFORE ? into : JAVA_BEFORE;
    bool sized = frame->kind == JAVA_COMPILED || frame->kind == JAVA_SIZED;
    if (frame->kind == JAVA_INTERPRETER)
        return row_whole(frame);
    if (frame->kind == JAVA_FRAMELESS)
        return row_by_depth(place->depth);
    if (is_about_to_return(here, end))
        return row_called();
    if (sized && *here == 0x5d && is_about_to_return(here + 1, end))
        return row_pushed();
    if (sized && (int64_t)into < frame->complete && frame->words > 1)
        return row_in_prologue(frame, here - before, before);
    /* push rbp; mov rbp, rsp */
    if (!sized && (code_is(here, "\x55\x48\x8b\xec", 4) || code_is(here, "\x55\x48\x89\xe5", 4)))
        return row_called();
    if (!sized && before && here[-1] == 0x55 &&
        (code_is(here, "\x48\x8b\xec", 3) || code_is(here, "\x48\x89\xe5", 3)))
        return row_pushed();
    return row_whole(frame);
}

void java_add_rules(struct made *made, const struct java_frame *frame,
                    const struct java_place *places, size_t count) {
    struct made_row whole = row_whole(frame), called = row_called();
    bool sized = frame->kind == JAVA_COMPILED || frame->kind == JAVA_SIZED;
    uint64_t complete = sized && frame->complete > 0 ? (uint64_t)frame->complete : 0;
    uint64_t next = 0; /* where the row that was added last is to end */
    made_add_row(made, 0, complete ? &called : &whole);
    for (size_t i = 0; i < count; i++) {
        uint64_t into = places[i].address - frame->start;
        struct made_row row = row_at(frame, into, &places[i]);
        if (complete && complete > next && complete <= into)
            made_add_row(made, complete, &whole);
        made_add_row(made, into, &row);
        next = into + 1;
        made_add_row(made, next, next < complete ? &called : &whole);
    }
    if (complete && complete > next)
        made_add_row(made, complete, &whole);
}
