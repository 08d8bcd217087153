/*
 * Where a load's or store's data came from, as perf 6.1 spells the bits of PERF_SAMPLE_DATA_SRC.
 */
#include "view/script.h"

enum { TEXT_LIMIT = 99 }; /* perf's buffers */

/* A field of the source: so many bits from there. */
static unsigned field(uint64_t source, unsigned shift, unsigned bits) {
    return (unsigned)(source >> shift & ((1u << bits) - 1));
}

/* The names of the bits set in `set`, joined by " or ". Returns how many. */
static unsigned add_names(struct buffer *buffer, unsigned set, const char *const *names,
                          size_t count, unsigned before) {
    for (size_t i = 0; i < count; i++) {
        if (!(set >> i & 1))
            continue;
        if (before++)
            buffer_add(buffer, TEXT(" or "));
        buffer_add(buffer, text_of(names[i]));
    }
    return before;
}

static void add_hit(struct buffer *buffer, unsigned set) {
    if (set & PERF_MEM_LVL_HIT)
        buffer_add(buffer, TEXT(" hit"));
    if (set & PERF_MEM_LVL_MISS)
        buffer_add(buffer, TEXT(" miss"));
}

static void add_operation(struct buffer *buffer, uint64_t source) {
    static const char *const names[] = {"N/A", "LOAD", "STORE", "PFETCH", "EXEC"};
    unsigned set = field(source, PERF_MEM_OP_SHIFT, 5);
    buffer_add(buffer, set ? text_of(names[__builtin_ctz(set)]) : TEXT("No"));
}

static void add_level_number(struct buffer *buffer, unsigned level) {
    static const char *const names[16] = {
        [9] = "CXL",  [10] = "I/O",  [11] = "Any cache", [12] = "LFB/MAB",
        [13] = "RAM", [14] = "PMEM", [15] = "N/A"};
    if (names[level])
        buffer_add(buffer, text_of(names[level]));
    else
        buffer_printf(buffer, "L%u", level);
}

static void add_level(struct buffer *buffer, uint64_t source) {
    static const char *const names[] = {"N/A",
                                        "HIT",
                                        "MISS",
                                        "L1",
                                        "LFB/MAB",
                                        "L2",
                                        "L3",
                                        "Local RAM",
                                        "Remote RAM (1 hop)",
                                        "Remote RAM (2 hops)",
                                        "Remote Cache (1 hop)",
                                        "Remote Cache (2 hops)",
                                        "I/O",
                                        "Uncached"};
    static const char *const hops[] = {
        "N/A", "core, same node", "node, same socket", "socket, same board", "board", "", "", ""};
    unsigned set = field(source, PERF_MEM_LVL_SHIFT, 14),
             level = field(source, PERF_MEM_LVLNUM_SHIFT, 4);
    unsigned hop = field(source, PERF_MEM_HOPS_SHIFT, 3), named = 0;
    size_t start = buffer->count;
    if (field(source, PERF_MEM_REMOTE_SHIFT, 1))
        buffer_add(buffer, TEXT("Remote "));
    if (hop)
        buffer_printf(buffer, "%s ", hops[hop]);
    else
        named = add_names(buffer, set & ~(unsigned)(PERF_MEM_LVL_HIT | PERF_MEM_LVL_MISS), names,
                          COUNT_OF(names), 0);
    if (level && named)
        buffer_add(buffer, TEXT(" or "));
    if (level)
        add_level_number(buffer, level);
    if (buffer->count == start)
        buffer_add(buffer, TEXT("N/A"));
    add_hit(buffer, set);
}

static void add_snoop(struct buffer *buffer, uint64_t source) {
    static const char *const names[] = {"N/A", "None", "Hit", "Miss", "HitM"};
    static const char *const more[] = {"Fwd", "Peer"};
    unsigned named =
        add_names(buffer, field(source, PERF_MEM_SNOOP_SHIFT, 5), names, COUNT_OF(names), 0);
    named = add_names(buffer, field(source, PERF_MEM_SNOOPX_SHIFT, 2), more, COUNT_OF(more), named);
    if (!named)
        buffer_add(buffer, TEXT("N/A"));
}

static void add_tlb(struct buffer *buffer, uint64_t source) {
    static const char *const names[] = {"N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"};
    unsigned set = field(source, PERF_MEM_TLB_SHIFT, 7);
    unsigned others = set & ~(unsigned)(PERF_MEM_TLB_HIT | PERF_MEM_TLB_MISS);
    if (!add_names(buffer, others, names, COUNT_OF(names), 0))
        buffer_add(buffer, TEXT("N/A"));
    add_hit(buffer, set);
}

static void add_lock(struct buffer *buffer, uint64_t source) {
    unsigned set = field(source, PERF_MEM_LOCK_SHIFT, 2);
    buffer_add(buffer, set & PERF_MEM_LOCK_NA       ? TEXT("N/A")
                       : set & PERF_MEM_LOCK_LOCKED ? TEXT("Yes")
                                                    : TEXT("No"));
}

static void add_blocked(struct buffer *buffer, uint64_t source) {
    unsigned set = field(source, PERF_MEM_BLK_SHIFT, 3);
    if (!set || set & PERF_MEM_BLK_NA)
        buffer_add(buffer, TEXT(" N/A"));
    else if (set & PERF_MEM_BLK_DATA)
        buffer_add(buffer, TEXT(" Data"));
    if (set & PERF_MEM_BLK_ADDR && !(set & PERF_MEM_BLK_NA))
        buffer_add(buffer, TEXT(" Addr"));
}

void script_add_source(struct buffer *buffer, uint64_t source) {
    size_t start = buffer->count;
    buffer_printf(buffer, "%16llx |OP ", (unsigned long long)source);
    add_operation(buffer, source);
    buffer_add(buffer, TEXT("|LVL "));
    add_level(buffer, source);
    buffer_add(buffer, TEXT("|SNP "));
    add_snoop(buffer, source);
    buffer_add(buffer, TEXT("|TLB "));
    add_tlb(buffer, source);
    buffer_add(buffer, TEXT("|LCK "));
    add_lock(buffer, source);
    buffer_add(buffer, TEXT("|BLK "));
    add_blocked(buffer, source);
    if (buffer->count - start > TEXT_LIMIT)
        buffer->count = start + TEXT_LIMIT;
}
