/*
 * Replaces bpf.c if libbpf or a clang for BPF was missing when wick was built.
 */
#include "record/heap_catch.h"
#include "record/interpreted.h"

struct sums *sums_open(const struct record_options *options, int group,
                       const struct interpreted *interpreted, struct error *error) {
    error_set(
        error, ERROR_DENIED,
        "this wick was built without BPF (it needs libbpf-dev and clang): use --off-cpu=perf");
    return NULL;
}

/* The rest can't be called, because no `struct sums` exists. */
void sums_add_thread(struct sums *sums, pid_t tid, bool until_exec) {}

void sums_enable(struct sums *sums, bool on) {}

void sums_close(struct sums *sums) {}

void sums_read(struct sums *sums, summed_list *list) {}

void sums_take(struct sums *sums, summed_list *list) {}

void sums_make_room(struct sums *sums) {}

size_t sums_stack(struct sums *sums, int stack, uint64_t *frames) {
    return 0;
}

bool sums_copy(struct sums *sums, uint64_t copy, struct off_cpu_copy *result) {
    return false;
}

bool sums_copies(const struct sums *sums) {
    return false;
}

uint64_t sums_trouble(struct sums *sums, enum off_cpu_trouble which) {
    return 0;
}

struct walker *walker_open(bool sums_waits, struct error *error) {
    error_set(error, ERROR_DENIED, "this wick was built without BPF");
    return NULL;
}

/* As above. */
void walker_close(struct walker *walker) {}

int walker_map(const struct walker *walker, const char *name) {
    return -1;
}

void walker_set_copied(struct walker *walker, uint64_t size) {}

int walker_program(const struct walker *walker) {
    return -1;
}

int walker_switch_program(const struct walker *walker) {
    return -1;
}

int walker_descriptor(const struct walker *walker) {
    return -1;
}

void walker_set(struct walker *walker, pid_t pid, const struct frame_layout *layout) {}

void walker_forget(struct walker *walker, pid_t pid) {}

void walker_drain(struct walker *walker, walker_visit *visit, walker_visit_code *visit_code,
                  walker_visit_memory *visit_memory, void *context) {}

struct catcher *catcher_open(uint64_t mean, struct error *error) {
    error_set(error, ERROR_DENIED,
              "recording the allocations of a running process needs BPF, and this wick was built "
              "without it (it needs libbpf-dev and clang): use --heap -- COMMAND");
    return NULL;
}

/* As above. */
bool catcher_add(struct catcher *catcher, pid_t pid, const catch_files *files,
                 struct error *error) {
    return false;
}

void catcher_enable(struct catcher *catcher, bool on) {}

int catcher_descriptor(const struct catcher *catcher) {
    return -1;
}

bool catcher_drain(struct catcher *catcher, heap_reader *reader, void *context, unsigned *busy,
                   struct error *error) {
    return true;
}

struct heap_losses catcher_losses(const struct catcher *catcher) {
    return (struct heap_losses){0};
}

uint64_t catcher_calls(const struct catcher *catcher) {
    return 0;
}

void catcher_close(struct catcher *catcher) {}
