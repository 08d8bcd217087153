/*
 * Budgets: limits on what a parser may spend on one input.
 *
 * The defaults are what a denial of service must not exceed, not what a good parser needs: a file of one megabyte may take a second or two of
 * work, and 128 MB; the fixed part lets small files be as deep or dense as they like.
 */
#include "base/base.h"

const struct budget_limits budget_defaults = {
    .memory = 64 << 20, .memory_per_byte = 64, .steps = 64 << 20, .steps_per_byte = 256};

static uint64_t limit_of(uint64_t fixed, uint64_t factor, uint64_t size) {
    uint64_t limit;
    /* One less than the maximum, so that limit + 1 does not overflow. */
    return checked_multiply(factor, size, &limit) && checked_add(limit, fixed, &limit) &&
                   limit < INT64_MAX
               ? limit
               : INT64_MAX;
}

void budget_init(struct budget *budget, const struct budget_limits *limits, uint64_t input_size) {
    static const struct budget_limits unset;
    const struct budget_limits *l =
        memcmp(limits, &unset, sizeof unset) ? limits : &budget_defaults;
    *budget = (struct budget){.memory_per_byte = l->memory_per_byte,
                              .steps_per_byte = l->steps_per_byte,
                              .offset = NO_OFFSET};
    budget->memory.limit = limit_of(l->memory, l->memory_per_byte, input_size);
    budget->steps.limit = limit_of(l->steps, l->steps_per_byte, input_size);
}

void budget_grow(struct budget *budget, uint64_t bytes) {
    budget->memory.limit = limit_of(budget->memory.limit, budget->memory_per_byte, bytes);
    budget->steps.limit = limit_of(budget->steps.limit, budget->steps_per_byte, bytes);
}

static void exceeded_at(struct budget *budget, uint64_t offset) {
    uint64_t known = __atomic_load_n(&budget->offset, __ATOMIC_RELAXED);
    while (offset < known && !__atomic_compare_exchange_n(&budget->offset, &known, offset, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* A budget that was exceeded stays exceeded: more than its limit was charged. */
bool budget_take(struct budget *budget, struct budget_part *part, uint64_t amount,
                 uint64_t offset) {
    if (__atomic_load_n(&part->taken, __ATOMIC_RELAXED) > part->limit)
        return false;
    if (amount > part->limit)
        amount = part->limit + 1;
    uint64_t taken = __atomic_add_fetch(&part->taken, amount, __ATOMIC_RELAXED);
    if (taken <= part->limit)
        return true;
    exceeded_at(budget, offset);
    return false;
}

static bool part_exceeded(const struct budget_part *part) {
    return __atomic_load_n(&part->taken, __ATOMIC_RELAXED) > part->limit;
}

bool budget_exceeded(const struct budget *budget) {
    return part_exceeded(&budget->memory) || part_exceeded(&budget->steps);
}

bool budget_exceeded_at(struct budget *budget, uint64_t offset) {
    if (!budget_exceeded(budget))
        return false;
    exceeded_at(budget, offset);
    return true;
}

bool budget_error(const struct budget *budget, const char *path, struct error *error) {
    const char *what = part_exceeded(&budget->memory) ? "memory" : "work";
    uint64_t offset = __atomic_load_n(&budget->offset, __ATOMIC_RELAXED);
    if (offset == NO_OFFSET)
        return error_set(error, ERROR_INPUT, "%s: needs more %s than a file of its size may use",
                         path, what);
    return error_at(error, path, offset, "needs more %s than a file of its size may use", what);
}
