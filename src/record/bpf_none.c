/*
 * In place of bpf.c where libbpf or a clang for BPF were missing when wick was built.
 */
#include "record/internal.h"

struct waits *waits_open(const struct record_options *options, struct error *error) {
    error_set(error, ERROR_DENIED,
              "this wick was built without BPF (it takes libbpf-dev and clang): --off-cpu=perf "
              "does without");
    return NULL;
}

/* Nobody has a `struct waits` to call the rest with. */
void waits_add_thread(struct waits *waits, pid_t tid, bool until_exec) {}

void waits_enable(struct waits *waits, bool on) {}

void waits_close(struct waits *waits) {}

void waits_read(struct waits *waits, wait_list *list) {}

size_t waits_stack(struct waits *waits, int stack, uint64_t *frames) {
    return 0;
}

bool waits_copy(struct waits *waits, uint64_t copy, struct off_cpu_copy *result) {
    return false;
}

bool waits_copy_stacks(const struct record_options *options) {
    return false;
}

uint64_t waits_trouble(struct waits *waits, enum off_cpu_trouble which) {
    return 0;
}
