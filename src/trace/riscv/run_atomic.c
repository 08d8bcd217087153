/*
 * The atomic instructions. There is one hart, so each is a load and a store; the next sc breaks a reservation, as the manual allows.
 * Misaligned accesses always fault.
 */
#include "trace/riscv/handlers.h"

/* Out of line, so that the fast path needs no stack frame. */
static SLOW const struct op *stored(struct machine *m, const struct op *op, uint8_t *memory,
                                    int64_t left, uint64_t address, int done) {
    return machine_stored(m, op, memory, left, address, done);
}

static bool atomic_access(struct machine *m, uint64_t address, unsigned size) {
    if (address & (size - 1)) {
        m->fault = FAULT_MISALIGNED;
        return false;
    }
    return machine_load_slow(m, address, size);
}

#define RESERVE(name, type, address_)                                                              \
    HANDLER(name) {                                                                                \
        uint64_t address = address_ RS1;                                                           \
        if (!atomic_access(m, address, sizeof(type)))                                              \
            return machine_fault(m, op, m->fault, address, left);                                  \
        m->reservation = address;                                                                  \
        RD = (uint64_t)(int64_t)(type)m->loaded;                                                   \
        NEXT;                                                                                      \
    }
#define CONDITIONAL(name, type, address_)                                                          \
    HANDLER(name) {                                                                                \
        uint64_t address = address_ RS1;                                                           \
        bool held = m->reservation == address;                                                     \
        int done = 1;                                                                              \
        if (address & (sizeof(type) - 1))                                                          \
            return machine_fault(m, op, FAULT_MISALIGNED, address, left);                          \
        if (held && !(done = machine_store_slow(m, address, sizeof(type), RS2)))                   \
            return machine_fault(m, op, m->fault, address, left);                                  \
        m->reservation = NO_ADDRESS;                                                               \
        RD = !held;                                                                                \
        return stored(m, op, memory, left, address, done);                                         \
    }
#define AMO(name, type, address_, expression)                                                      \
    HANDLER(name) {                                                                                \
        uint64_t address = address_ RS1;                                                           \
        if (!atomic_access(m, address, sizeof(type)))                                              \
            return machine_fault(m, op, m->fault == FAULT_LOAD ? FAULT_STORE : m->fault, address,  \
                                 left);                                                            \
        type old = (type)m->loaded, operand = (type)RS2;                                           \
        int done = machine_store_slow(m, address, sizeof(type), (uint64_t)(expression));           \
        if (!done)                                                                                 \
            return machine_fault(m, op, m->fault, address, left);                                  \
        RD = (uint64_t)(int64_t)old;                                                               \
        return stored(m, op, memory, left, address, done);                                         \
    }

#define ATOMICS(suffix, type, unsigned_, address_)                                                 \
    RESERVE(lr_##suffix, type, address_)                                                           \
    CONDITIONAL(sc_##suffix, type, address_)                                                       \
    AMO(amoswap_##suffix, type, address_, operand)                                                 \
    AMO(amoadd_##suffix, type, address_, (unsigned_)old + (unsigned_)operand)                      \
    AMO(amoxor_##suffix, type, address_, old ^ operand)                                            \
    AMO(amoand_##suffix, type, address_, old &operand)                                             \
    AMO(amoor_##suffix, type, address_, old | operand)                                             \
    AMO(amomin_##suffix, type, address_, old < operand ? old : operand)                            \
    AMO(amomax_##suffix, type, address_, old > operand ? old : operand)                            \
    AMO(amominu_##suffix, type, address_, (unsigned_)old < (unsigned_)operand ? old : operand)     \
    AMO(amomaxu_##suffix, type, address_, (unsigned_)old > (unsigned_)operand ? old : operand)

ATOMICS(w, int32_t, uint32_t, (uint64_t))
ATOMICS(d, int64_t, uint64_t, (uint64_t))
#undef HANDLER
#define HANDLER(name)                                                                              \
    static const struct op *do_##name(struct machine *m, const struct op *op, uint8_t *memory,     \
                                      int64_t left)
ATOMICS(narrow, int32_t, uint32_t, (uint32_t))

handler *const machine_atomic_narrow[11] = {
    do_lr_narrow,     do_sc_narrow,      do_amoswap_narrow, do_amoadd_narrow,
    do_amoxor_narrow, do_amoand_narrow,  do_amoor_narrow,   do_amomin_narrow,
    do_amomax_narrow, do_amominu_narrow, do_amomaxu_narrow,
};
