/*
 * Branches, jumps, calls and returns: they end a block, update the flow if stacks are followed, and enter the next block. What can't continue
 * inside (a block not yet translated, a fault, a system call) leaves to machine_run().
 */
#include "trace/riscv/handlers.h"

#define LINKS ((struct links *)(op + 1))
#define STACK_POINTER m->x[2]

const struct op *machine_leave(struct machine *m, enum leave why, uint64_t pc, int64_t left) {
    m->leave = why;
    m->pc = pc;
    m->left = left;
    m->link = NULL;
    return NULL;
}

static SLOW const struct op *leave_link(struct machine *m, struct block **link, uint64_t pc,
                                        int64_t left) {
    machine_leave(m, LEAVE_LINK, pc, left);
    m->link = link;
    return NULL;
}

const struct op *machine_fault(struct machine *m, const struct op *op, enum fault fault,
                               uint64_t address, int64_t left) {
    const struct op_site *site = &m->sites[op - m->slots];
    machine_leave(m, LEAVE_FAULT, site->pc, left + site->rest);
    m->op = op;
    m->fault = fault;
    m->fault_pc = site->pc;
    m->fault_address = address;
    return NULL;
}

/* What was executed since the stack last changed belongs to the frame that is being left. */
static inline void account(struct machine *m, int64_t left) {
    uint64_t now = UNLIKELY(m->weighs) ? m->weighed : m->limit - (uint64_t)left;
    flow_count(&m->flow, now - m->counted);
    m->counted = now;
}

#define FOLLOW(block_, pc_)                                                                        \
    do {                                                                                           \
        if (UNLIKELY(!LINKS->block_))                                                              \
            return leave_link(m, &LINKS->block_, LINKS->pc_, left);                                \
        ENTER(LINKS->block_);                                                                      \
    } while (0)

#define BRANCH(name, condition)                                                                    \
    HANDLER(name) {                                                                                \
        if (condition)                                                                             \
            FOLLOW(taken, taken_pc);                                                               \
        FOLLOW(next, next_pc);                                                                     \
    }

BRANCH(beq, RS1 == RS2)
BRANCH(bne, RS1 != RS2)
BRANCH(blt, (int64_t)RS1 < (int64_t)RS2)
BRANCH(bge, (int64_t)RS1 >= (int64_t)RS2)
BRANCH(bltu, RS1 < RS2)
BRANCH(bgeu, RS1 >= RS2)

HANDLER(go) {
    FOLLOW(taken, taken_pc);
}

HANDLER(tail) {
    account(m, left);
    flow_tail(&m->flow, LINKS->taken_pc);
    FOLLOW(taken, taken_pc);
}

/* `rs3` is 1 on the 32-bit machine, whose registers are sign-extended. */
static inline uint64_t return_address(const struct op *op) {
    uint32_t back = LINKS->next_pc;
    return op->rs3 ? (uint64_t)(int64_t)(int32_t)back : back;
}

HANDLER(call_plain) {
    RD = return_address(op);
    FOLLOW(taken, taken_pc);
}

/* The slow paths are separate functions that continue from there, so the fast ones save no registers. */
static SLOW const struct op *call_slow(struct machine *m, const struct op *op, uint8_t *memory,
                                       int64_t left) {
    flow_call_slow(&m->flow, LINKS->taken_pc, LINKS->next_pc, STACK_POINTER);
    FOLLOW(taken, taken_pc);
}

HANDLER(call) {
    RD = return_address(op);
    account(m, left);
    if (UNLIKELY(!flow_call_quick(&m->flow, LINKS->taken_pc, LINKS->next_pc, STACK_POINTER)))
        return call_slow(m, op, memory, left);
    FOLLOW(taken, taken_pc);
}

/* Jump to an address known only now. One load finds its block. */
#define JUMP_TO(target)                                                                            \
    do {                                                                                           \
        if (UNLIKELY((target) >> 32))                                                              \
            return machine_leave(m, LEAVE_LINK, (target), left);                                   \
        uint32_t slot = m->map[(target) / 2];                                                      \
        if (UNLIKELY(!slot))                                                                       \
            return machine_leave(m, LEAVE_LINK, (target), left);                                   \
        ENTER((const struct block *)(m->slots + slot));                                            \
    } while (0)

static inline uint64_t indirect(struct machine *m, const struct op *op) {
    uint64_t target = (RS1 + (uint64_t)(int64_t)op->imm) & ~1ull;
    if (op->rs3)
        target = (uint32_t)target;
    RD = return_address(op);
    return target;
}

HANDLER(jalr_plain) {
    uint64_t target = indirect(m, op);
    JUMP_TO(target);
}

static SLOW const struct op *jalr_call_slow(struct machine *m, const struct op *op, uint8_t *memory,
                                            int64_t left, uint64_t target) {
    flow_call_slow(&m->flow, target, LINKS->next_pc, STACK_POINTER);
    JUMP_TO(target);
}

HANDLER(jalr_call) {
    uint64_t target = indirect(m, op);
    account(m, left);
    if (UNLIKELY(!flow_call_quick(&m->flow, target, LINKS->next_pc, STACK_POINTER)))
        return jalr_call_slow(m, op, memory, left, target);
    JUMP_TO(target);
}

static SLOW const struct op *return_slow(struct machine *m, const struct op *op, uint8_t *memory,
                                         int64_t left, uint64_t target) {
    flow_return_slow(&m->flow, LINKS->pc, target, STACK_POINTER);
    JUMP_TO(target);
}

HANDLER(jalr_return) {
    uint64_t target = indirect(m, op);
    account(m, left);
    if (UNLIKELY(!flow_return_quick(&m->flow, target)))
        return return_slow(m, op, memory, left, target);
    JUMP_TO(target);
}

static SLOW const struct op *jump_slow(struct machine *m, const struct op *op, uint8_t *memory,
                                       int64_t left, uint64_t target) {
    account(m, left);
    flow_jump_slow(&m->flow, LINKS->pc, target, STACK_POINTER);
    JUMP_TO(target);
}

HANDLER(jalr_jump) {
    uint64_t target = indirect(m, op);
    if (UNLIKELY(target - LINKS->taken_pc >= LINKS->reach))
        return jump_slow(m, op, memory, left, target);
    JUMP_TO(target);
}

/* Both registers are links: a coroutine switch if it returns, otherwise a call through the other link register. */
HANDLER(jalr_swap) {
    uint64_t target = indirect(m, op);
    struct flow *flow = &m->flow;
    account(m, left);
    if (flow->depth && flow->entries[flow->depth - 1].return_address == target)
        flow_return(flow, LINKS->pc, target, STACK_POINTER);
    flow_call(flow, target, LINKS->next_pc, STACK_POINTER);
    JUMP_TO(target);
}

HANDLER(ecall) {
    return machine_leave(m, LEAVE_ECALL, LINKS->next_pc, left);
}

static const struct op *leave_csr(struct machine *m, const struct op *op, int64_t left) {
    machine_leave(m, LEAVE_CSR, LINKS->next_pc, left);
    m->op = op;
    return NULL;
}

HANDLER(csrrw) {
    return leave_csr(m, op, left);
}
HANDLER(csrrs) {
    return leave_csr(m, op, left);
}
HANDLER(csrrc) {
    return leave_csr(m, op, left);
}
HANDLER(stop) {
    return machine_leave(m, LEAVE_BUDGET, LINKS->taken_pc, left);
}
HANDLER(ebreak) {
    return machine_fault(m, op, FAULT_BREAK, LINKS->pc, left);
}
HANDLER(illegal) {
    return machine_fault(m, op, FAULT_ILLEGAL, LINKS->pc, left);
}
HANDLER(fetch_fault) {
    return machine_fault(m, op, FAULT_FETCH, LINKS->pc, left);
}

/* Never reached: translated into other ops. */
HANDLER(auipc) {
    return machine_fault(m, op, FAULT_ILLEGAL, 0, left);
}
HANDLER(jal) {
    return machine_fault(m, op, FAULT_ILLEGAL, 0, left);
}
HANDLER(jalr) {
    return machine_fault(m, op, FAULT_ILLEGAL, 0, left);
}
