/* What the samples of a virtual machine leave for its next turn: addresses in its code, and words on their stacks that look like an
   interpreter's frame. */
#include "record/jvm_state.h"
#include "unwind/unwind.h"

enum { PENDING_MOST = 1 << 14 /* between two turns */ };

/* Return whether it is new, and add it. */
static bool address_is_new(addresses *list, struct index *index, uint64_t address) {
    if (addresses_find(list, index, address))
        return false;
    addresses_add(list, index, address);
    return true;
}

/* The sender's stack pointer is at the return address, or, nearly always, above it: a call by a method handle drops its last argument. */
static bool is_sender(uint64_t frame, uint64_t sender) {
    return sender - frame >= 8 && sender - frame < 1 << 19;
}

/* An address above the frame's own, or, in newer versions, the distance in words. */
static bool is_locals(uint64_t frame, uint64_t locals) {
    return locals - frame < 1 << 20 || locals < 1 << 16;
}

/* Any place in the stack may be where an interpreter's frame saves its caller's frame pointer. */
static void scan_stack(struct jvm *jvm, const struct unwind_interpreter *layout, uint64_t sp,
                       const uint8_t *stack, size_t size) {
    for (size_t at = layout->bytecode; at + 16 <= size && jvm->frames.count < PENDING_MOST;
         at += 8) {
        uint64_t frame = sp + at;
        if (!is_sender(frame, load_u64(stack + at - layout->sender)) ||
            !is_locals(frame, load_u64(stack + at - layout->locals)))
            continue;
        uint64_t method = load_u64(stack + at - layout->method);
        if (method && !(method & 7) && !(method >> 48) &&
            !addresses_find(&jvm->methods, &jvm->by_method, method) &&
            address_is_new(&jvm->asked, &jvm->by_asked, method))
            vector_push(&jvm->frames, method);
    }
}

static uint64_t register_of(const uint8_t *registers, uint64_t mask, unsigned number) {
    return load_u64(registers + 8 * __builtin_popcountll(mask & ((1ull << number) - 1)));
}

/* For code without its own frame: twice the number, from 1, of the first word that points to code, which is the return address; + 1 if the
   frame pointer points to the word below it. 0: none is near. */
static uint64_t depth_of(const struct jvm *jvm, uint64_t frame, uint64_t sp, const uint8_t *stack,
                         size_t size) {
    enum { MOST = 16 };
    for (size_t i = 0; i < MOST && 8 * i + 8 <= size; i++) {
        uint64_t word = load_u64(stack + 8 * i);
        if (word >= jvm->low && word < jvm->high)
            return 2 * (i + 1) + (i && frame == sp + 8 * (i - 1));
    }
    return 0;
}

/* A sample ends with the register ABI (2: 64 bits), the registers, the stack's size, the stack, and how much of it is valid. The kernel
   copies the requested size, or less if a record can't be that long; the ptrace sampler copies what there is. Return 0 if the size is
   unclear. */
static size_t copied_size(size_t asked, size_t registers_size, const uint8_t *record, size_t size) {
    size_t others = 24 + 8 + registers_size + 8 + 8;
    size_t some = size < others ? 0 : size - others < asked ? (size - others) & ~(size_t)7 : asked;
    for (; some; some -= 8)
        if (load_u64(record + size - 16 - some) == some &&
            load_u64(record + size - 24 - some - registers_size) == PERF_SAMPLE_REGS_ABI_64)
            return some;
    return 0;
}

static void look_at_stack(struct jvm *jvm, const struct unwind_interpreter *layout,
                          const struct sink *sink, const uint8_t *record, size_t size) {
    size_t registers_size = 8 * (size_t)__builtin_popcountll(sink->registers),
           stack_size = copied_size(sink->stack_size, registers_size, record, size);
    size_t tail = 8 + registers_size + 8 + stack_size + 8;
    const uint64_t needed = 1ull << REGISTER_FRAME | 1ull << REGISTER_STACK | 1ull << REGISTER_PC;
    if (!stack_size || (sink->registers & needed) != needed)
        return;
    uint64_t valid = load_u64(record + size - 8);
    const uint8_t *registers = record + size - tail + 8;
    const uint8_t *stack = record + size - 8 - stack_size;
    uint64_t ip = register_of(registers, sink->registers, REGISTER_PC);
    uint64_t sp = register_of(registers, sink->registers, REGISTER_STACK);
    uint64_t frame = register_of(registers, sink->registers, REGISTER_FRAME);
    valid = valid < stack_size ? valid : stack_size;
    scan_stack(jvm, layout, sp, stack, valid);
    if (ip >= jvm->low && ip < jvm->high && jvm->places.count < PENDING_MOST &&
        address_is_new(&jvm->seen, &jvm->by_seen, ip)) {
        vector_push(&jvm->places, ip);
        vector_push(&jvm->places, depth_of(jvm, frame, sp, stack, valid));
    }
}

static struct jvm *jvm_to_look_at(const struct jvms *jvms, pid_t pid) {
    struct jvm *jvm = jvms->list.count ? jvm_find(jvms, pid) : NULL;
    return jvm && !jvm->has_ended && !jvm->is_hopeless ? jvm : NULL;
}

void jvms_saw_memory(struct jvms *jvms, pid_t pid, uint64_t address, struct text bytes) {
    struct jvm *jvm = jvm_to_look_at(jvms, pid);
    const struct unwind_interpreter *layout = unwind_interpreter(OWN_ARCH);
    if (jvm && layout)
        scan_stack(jvm, layout, address, (const uint8_t *)bytes.data, bytes.length);
}

void jvms_saw_sample(struct jvms *jvms, const uint8_t *record,
                     const struct perf_event_header *header) {
    size_t pid_at = jvms->sink->time_at - 8;
    if (!jvms->list.count || jvms->sink->time_at < 16 || header->size < pid_at + 8)
        return;
    struct jvm *jvm = jvm_to_look_at(jvms, (pid_t)load_u32(record + pid_at));
    const struct unwind_interpreter *layout = unwind_interpreter(OWN_ARCH);
    if (jvm && layout)
        look_at_stack(jvm, layout, jvms->sink, record, header->size);
}
