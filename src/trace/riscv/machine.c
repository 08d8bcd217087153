/*
 * The machine around the blocks: memory accesses that are not plain, control registers, and the loop that runs blocks, translates missing
 * ones and stops at exactly the right instruction.
 */
#include "trace/riscv/machine.h"
#include "trace/riscv/host_float.h"

#include <errno.h>
#include <sys/mman.h>

#define SLOT_MAX                                                                                   \
    (1u << 24) /* 256 MiB of ops: a program of five million instructions, all executed */

bool machine_open(struct machine *m, unsigned xlen, struct error *error) {
    memset(m, 0, sizeof *m);
    m->xlen = (uint8_t)xlen;
    m->reservation = NO_ADDRESS;
    m->slot_max = SLOT_MAX;
    m->slot_count = 1;
    size_t map = GUEST_SIZE / 2 * sizeof *m->map;
    m->reserved_size = map + SLOT_MAX * (sizeof *m->slots + sizeof *m->sites);
    if (!memory_open(&m->memory, error))
        return false;
    void *reserved = mmap(NULL, m->reserved_size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
        memory_close(&m->memory);
        return error_set(error, ERROR_DENIED, "address space for translated code: %s",
                         strerror(errno));
    }
    m->reserved = reserved;
    m->map = reserved;
    m->slots = (struct op *)((char *)reserved + map);
    m->sites = (struct op_site *)(m->slots + SLOT_MAX);
    return true;
}

void machine_close(struct machine *m) {
    memory_close(&m->memory);
    if (m->reserved)
        munmap(m->reserved, m->reserved_size);
    m->reserved = NULL;
}

/* ---- memory ------------------------------------------------------------------------------- */

bool machine_load_slow(struct machine *m, uint64_t address, unsigned size) {
    m->fault = FAULT_LOAD;
    const uint8_t *at = memory_at(&m->memory, address, size, PAGE_READ);
    if (!at)
        return false;
    if ((address & (size - 1)) && !m->misaligned) {
        m->fault = FAULT_MISALIGNED;
        return false;
    }
    m->loaded = 0;
    memcpy(&m->loaded, at, size);
    return true;
}

int machine_store_slow(struct machine *m, uint64_t address, unsigned size, uint64_t value) {
    m->fault = FAULT_STORE;
    uint8_t *at = memory_at(&m->memory, address, size, PAGE_WRITE);
    if (!at)
        return 0;
    if ((address & (size - 1)) && !m->misaligned) {
        m->fault = FAULT_MISALIGNED;
        return 0;
    }
    memcpy(at, &value, size);
    return memory_has_code(&m->memory, address, size) ? 2 : 1;
}

/* ---- control registers -------------------------------------------------------------------- */

enum csr {
    CSR_FFLAGS = 1,
    CSR_FRM = 2,
    CSR_FCSR = 3,
    CSR_CYCLE = 0xc00,
    CSR_INSTRET = 0xc02,
    CSR_CYCLE_HIGH = 0xc80,
    CSR_INSTRET_HIGH = 0xc82
};

static bool csr_read(struct machine *m, unsigned number, uint64_t *value) {
    bool floats = m->xlen == 64;
    /* The instruction that reads is already counted, but has not retired: it sees the count before it. */
    uint64_t executed = machine_executed(m) - 1;
    if (floats && number >= CSR_FFLAGS && number <= CSR_FCSR) {
        m->floats.flags |= host_float_flags();
        *value = number == CSR_FFLAGS ? m->floats.flags
                 : number == CSR_FRM  ? m->frm
                                      : (unsigned)m->frm << 5 | m->floats.flags;
    } else if (number >= CSR_CYCLE && number <= CSR_INSTRET) /* time, too: it must not vary */
        *value = m->xlen == 32 ? (uint64_t)(int64_t)(int32_t)executed : executed;
    else if (m->xlen == 32 && number >= CSR_CYCLE_HIGH && number <= CSR_INSTRET_HIGH)
        *value = (uint64_t)(int64_t)(int32_t)(executed >> 32);
    else
        return false;
    return true;
}

static bool csr_write(struct machine *m, unsigned number, uint64_t value) {
    switch (number) {
    case CSR_FFLAGS:
        m->floats.flags = value & 31;
        return true;
    case CSR_FRM:
        m->frm = value & 7;
        return true;
    case CSR_FCSR:
        m->floats.flags = value & 31;
        m->frm = value >> 5 & 7;
        return true;
    }
    return false; /* the counters are read-only */
}

static bool access_csr(struct machine *m, const struct instruction *i) {
    unsigned number = (unsigned)i->imm;
    uint64_t old, operand = i->rs2 ? i->rs1 : m->x[i->rs1];
    if (!csr_read(m, number, &old))
        return false;
    bool writes = i->op == RISCV_csrrw || i->rs1;
    uint64_t value = i->op == RISCV_csrrw   ? operand
                     : i->op == RISCV_csrrs ? old | operand
                                            : old & ~operand;
    if (writes && !csr_write(m, number, value))
        return false;
    if (i->rd)
        m->x[i->rd] = old;
    return true;
}

/* Execute the control register instruction at the op that left. */
static void do_csr(struct machine *m) {
    struct instruction i;
    const struct op *op = m->op;
    uint32_t pc = ((const struct links *)(op + 1))->pc;
    if (!machine_fetch(m, pc, &i) || !access_csr(m, &i))
        machine_fault(m, op, FAULT_ILLEGAL, 0, m->left);
}

/* ---- the loop ----------------------------------------------------------------------------- */

uint64_t machine_executed(const struct machine *m) {
    return m->limit - (uint64_t)m->left;
}

/* Add the counts to the trie. */
static void count(struct machine *m) {
    uint64_t now = m->weighs ? m->weighed : machine_executed(m);
    if (m->counts)
        flow_count(&m->flow, now - m->counted);
    m->counted = now;
}

static void run_ops(struct machine *m, const struct op *op) {
    uint8_t *memory = m->memory.base;
#if MACHINE_THREADED
    op->run(m, op, memory, m->left);
#else
    while (op)
        op = op->run(m, op, memory, m->left);
#endif
}

static void run_block(struct machine *m, const struct block *block) {
    m->left -= block->count;
    run_ops(m, block->ops);
}

/* Return the block at m->pc, translated if needed and linked to the block that wanted it. */
static const struct block *find_block(struct machine *m) {
    struct block **link = m->link;
    uint32_t slot = m->map[m->pc / 2];
    struct block *block =
        slot ? (struct block *)&m->slots[slot] : machine_translate(m, (uint32_t)m->pc, UINT32_MAX);
    if (!block) {
        machine_flush(m);
        link = NULL;
        block = machine_translate(m, (uint32_t)m->pc, UINT32_MAX);
    }
    if (link)
        *link = block;
    return block;
}

/* Fewer instructions are left than the block has: run a block of just that many, used once. */
static void run_rest(struct machine *m) {
    uint32_t before = m->slot_count;
    const struct block *block = machine_translate(m, (uint32_t)m->pc, (uint32_t)m->left);
    if (!block) {
        machine_flush(m);
        before = m->slot_count;
        block = machine_translate(m, (uint32_t)m->pc, (uint32_t)m->left);
    }
    run_block(m, block);
    m->slot_count = before;
    m->link = NULL;
}

static void fetch_fault(struct machine *m) {
    m->leave = LEAVE_FAULT;
    m->fault = FAULT_FETCH;
    m->fault_pc = m->fault_address = m->pc;
}

static void run_until_left(struct machine *m) {
    if (m->pc >> 32) {
        fetch_fault(m);
        return;
    }
    const struct block *block = find_block(m);
    if (block->count <= (uint64_t)m->left)
        run_block(m, block);
    else if (m->left)
        run_rest(m);
    else
        m->leave = LEAVE_BUDGET;
}

/* The instruction that faulted was weighed but not executed. */
static void unweigh(struct machine *m) {
    struct instruction i;
    if (m->weighs && m->fault != FAULT_FETCH && machine_fetch(m, m->fault_pc, &i))
        m->weighed -= machine_weight_of(m, &i);
}

void machine_run(struct machine *m, uint64_t limit) {
    m->left += (int64_t)(limit - m->limit);
    m->limit = limit;
    m->link = NULL;
    unsigned before = host_float_begin();
    for (;;) {
        run_until_left(m);
        if (m->leave == LEAVE_CSR)
            do_csr(m);
        if (m->leave == LEAVE_FLUSH) {
            machine_flush(m);
            m->link = NULL;
        }
        if (m->leave == LEAVE_FAULT)
            unweigh(m);
        if (m->leave == LEAVE_FAULT || m->leave == LEAVE_ECALL ||
            (m->leave == LEAVE_BUDGET && !m->left))
            break;
    }
    m->floats.flags |= host_float_flags();
    host_float_end(before);
    count(m);
}
