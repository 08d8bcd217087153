/*
 * The convention of bare proving machines: print, panic, commit, halt; a private input at a fixed address; nothing else.
 */
#include "trace/riscv/guest.h"

#include <stdio.h>
#include <unistd.h>

static bool fault(struct guest *g, const char *what, uint64_t number) {
    snprintf(g->machine.fault_text, sizeof g->machine.fault_text, "%s %llu", what,
             (unsigned long long)number);
    return false;
}

static bool show(struct guest *g, int descriptor, uint64_t address, uint64_t size) {
    const uint8_t *data = size ? memory_at(&g->machine.memory, address, size, PAGE_READ) : NULL;
    if (size && !data)
        return fault(g, "a message outside the guest's memory, of bytes:", size);
    for (uint64_t done = 0; done < size;) {
        ssize_t n = write(descriptor, data + done, size - done);
        if (n <= 0)
            break;
        done += (uint64_t)n;
    }
    return true;
}

static bool panic(struct guest *g, uint64_t address, uint64_t size) {
    const uint8_t *data = size ? memory_at(&g->machine.memory, address, size, PAGE_READ) : NULL;
    struct buffer message = {0};
    buffer_add_shown(&message,
                     (struct text){(const char *)data, data ? (size < 100 ? size : 100) : 0});
    snprintf(g->machine.fault_text, sizeof g->machine.fault_text, "guest panic: %.*s",
             TEXT_ARGS(buffer_text(&message)));
    buffer_release(&message);
    return false;
}

bool guest_call_prover(struct guest *g) {
    struct machine *m = &g->machine;
    uint64_t a[3];
    for (size_t i = 0; i < 3; i++)
        a[i] = m->xlen == 64 ? m->x[10 + i] : (uint32_t)m->x[10 + i];
    switch (m->x[17]) {
    case 1:
        return show(g, g->options->error_output, a[0], a[1]);
    case 2:
        return panic(g, a[0], a[1]);
    case 64:
        if (a[0] != 1)
            return fault(g, "commit to descriptor", a[0]);
        return show(g, g->options->output, a[1], a[2]);
    case 93:
        g->exited = true;
        g->status = (int)(a[0] & 255);
        return true;
    }
    return fault(g, "unknown system call", m->x[17]);
}
