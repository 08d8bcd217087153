/*
 * Whether a kernel stack is an interrupt's: it then stands on top of whatever ran at that moment, which has nothing to do with it. Told by the
 * functions through which interrupts enter the kernel, found once in /proc/kallsyms (60 ms; only for --wakers).
 */
#include "record/internal.h"

#include <stdio.h>
#include <stdlib.h>

struct range {
    uint64_t start, end;
};

struct interrupts {
    VECTOR(struct range) entries;
};

static bool is_entry(const char *name) {
    static const char *const beginnings[] = {"asm_sysvec_", "asm_common_interrupt",
                                             "asm_spurious_interrupt", "el1h_64_irq",
                                             "el0t_64_irq"};
    for (size_t i = 0; i < COUNT_OF(beginnings); i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* Lines are in the order of their addresses: a function ends where the next begins. */
struct interrupts *interrupts_new(void) {
    struct interrupts *interrupts = memory_zero(1, sizeof *interrupts);
    FILE *file = fopen("/proc/kallsyms", "re");
    char line[600], name[512], kind;
    unsigned long long address, start = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llx %c %511s", &address, &kind, name) != 3)
            continue;
        if (start && address > start) {
            vector_push(&interrupts->entries, ((struct range){start, address}));
            start = 0;
        }
        if (is_entry(name))
            start = address;
    }
    if (file)
        fclose(file);
    return interrupts;
}

void interrupts_free(struct interrupts *interrupts) {
    if (!interrupts)
        return;
    vector_release(&interrupts->entries);
    free(interrupts);
}

static bool enters(const struct interrupts *interrupts, uint64_t address) {
    for (size_t i = 0; i < interrupts->entries.count; i++)
        if (address - interrupts->entries.items[i].start <
            interrupts->entries.items[i].end - interrupts->entries.items[i].start)
            return true;
    return false;
}

size_t interrupts_depth(const struct interrupts *interrupts, const uint64_t *frames, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (enters(interrupts, frames[i]))
            return i + 1;
    return 0;
}
