/*
 * libwick-qemu.so: wick inside QEMU.
 *
 * Each translated block is classified once: how many instructions, what its last one does to control flow, and in which function
 * it begins and ends. When a block is executed, the block before it and this one's address say what happened in between: a
 * call, a return, a jump. That and an addition is all that runs for each block. Every thread has a flow of its own; all
 * count into one trie in memory shared with wick.
 */
#include "trace/classify.h"
#include "trace/qemu_api.h"
#include "trace/qemu_shared.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int qemu_plugin_version = QEMU_API_VERSION;

struct code {
    uint64_t pc;
    uint64_t last;   /* its last instruction */
    uint64_t next;   /* behind it */
    uint64_t target; /* of its last instruction, if direct */
    uint64_t weight;
    uint32_t count;
    uint32_t begins_in, ends_in; /* functions */
    uint8_t control;
    bool is_start; /* of its function */
};

struct runner {
    const struct code *before;
    struct shared_thread *slot;
    struct flow flow;
};

static struct {
    struct shared *shared;
    struct trie trie;
    struct functions *functions;
    struct classifier *classifier;
    pthread_mutex_t lock; /* over translation, and whatever it adds to */
    struct arena codes;
    uint64_t guest_base;
    bool base_known;
    struct runner *runners[SHARED_THREADS];
    struct runner *main_runner;
    pid_t pid;
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- where code comes from ---------------------------------------------------------------- */

static const struct shared_object *object_at(uint64_t host) {
    for (uint32_t i = 0; i < plugin.shared->object_count; i++)
        if (host >= plugin.shared->objects[i].start && host < plugin.shared->objects[i].end)
            return &plugin.shared->objects[i];
    return NULL;
}

static void add_object(uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    struct shared *shared = plugin.shared;
    struct file file;
    if (shared->object_count == SHARED_OBJECTS || strlen(path) >= SHARED_PATH)
        return;
    struct shared_object *object = &shared->objects[shared->object_count];
    *object = (struct shared_object){start, end, 0, ""};
    if (path[0] == '/' && file_open_raw(&file, path, NULL)) {
        snprintf(object->path, sizeof object->path, "%s", path);
        if (elf_bias(file.data, file.size, start - plugin.guest_base, offset, &object->bias))
            functions_add_elf(plugin.functions, file.data, file.size, object->bias);
        else
            object->path[0] = 0;
        file_close(&file);
    }
    __atomic_store_n(&shared->object_count, shared->object_count + 1, __ATOMIC_RELEASE);
}

/* The mapping around a host address, from the system's list. What is in no file is remembered too, so that it is asked once. */
static void find_object(uint64_t host) {
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4096 + 200];
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long long start, end, offset;
        int name = 0;
        if (sscanf(line, "%llx-%llx %*4s %llx %*s %*s %n", &start, &end, &offset, &name) < 3)
            continue;
        if (host < start || host >= end)
            continue;
        char *path = line + name;
        path[strcspn(path, "\n")] = 0;
        add_object(start, end, offset, name ? path : "");
        break;
    }
    if (maps)
        fclose(maps);
}

static uint32_t function_at(uint64_t pc) {
    uint64_t host = pc + plugin.guest_base;
    if (plugin.base_known && !object_at(host))
        find_object(host);
    return functions_find(plugin.functions, pc).function;
}

/* ---- translation -------------------------------------------------------------------------- */

static uint64_t weight_of(const struct classified *c) {
    switch ((enum trace_weight)plugin.shared->weight) {
    case WEIGHT_INSTRUCTIONS:
        return 1;
    case WEIGHT_ACCESSES:
        return (c->loaded != 0) + (c->stored != 0);
    case WEIGHT_BRANCHES:
        return c->control == CONTROL_BRANCH;
    case WEIGHT_LOADED:
        return c->loaded;
    case WEIGHT_STORED:
        return c->stored;
    }
    return 0;
}

static void describe(struct code *code, const struct qemu_plugin_tb *block) {
    code->count = (uint32_t)qemu_plugin_tb_n_insns(block);
    for (uint32_t i = 0; i < code->count; i++) {
        const struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        uint64_t pc = qemu_plugin_insn_vaddr(instruction);
        size_t size = qemu_plugin_insn_size(instruction);
        struct classified c =
            classify(plugin.classifier, qemu_plugin_insn_data(instruction), size, pc);
        if (i == 0)
            code->pc = pc;
        code->last = pc;
        code->next = pc + size;
        code->control = (uint8_t)c.control;
        code->target = c.target;
        code->weight += weight_of(&c);
    }
}

static void on_code(unsigned cpu, void *data);

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    pthread_mutex_lock(&plugin.lock);
    struct code *code = arena_alloc(&plugin.codes, sizeof *code);
    memset(code, 0, sizeof *code);
    describe(code, block);
    const void *host = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(block, 0));
    if (!plugin.base_known && host) {
        plugin.guest_base = (uint64_t)(uintptr_t)host - code->pc;
        plugin.base_known = true;
    }
    code->begins_in = function_at(code->pc);
    code->ends_in = function_at(code->last);
    code->is_start =
        code->begins_in && functions_start(plugin.functions, code->begins_in) == code->pc;
    pthread_mutex_unlock(&plugin.lock);
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_code, QEMU_PLUGIN_CB_NO_REGS, code);
}

/* ---- execution ---------------------------------------------------------------------------- */

static void publish_state(struct runner *r) {
    r->slot->node = r->flow.node;
    r->slot->unmatched = r->flow.unmatched;
    r->slot->unmatched_pc = r->flow.unmatched_pc;
    r->slot->dropped = r->flow.dropped;
}

static void flush(struct runner *r) {
    flow_count(&r->flow, r->slot->pending);
    r->slot->pending = 0;
}

/* Not where the last instruction could have gone by itself: a signal's handler was entered, or left. */
static void unexpected(struct runner *r, const struct code *before, const struct code *code) {
    if (before->control == CONTROL_SYSTEM)
        flow_return(&r->flow, before->last, code->pc, NO_ADDRESS);
    else
        flow_call(&r->flow, code->pc, before->next, NO_ADDRESS);
}

static void jump(struct runner *r, const struct code *before, const struct code *code) {
    if (!before->ends_in || !code->begins_in || before->ends_in == code->begins_in)
        return;
    if (code->is_start || !flow_jump_returns(&r->flow, code->pc, NO_ADDRESS))
        flow_tail(&r->flow, code->pc);
}

static __attribute__((noinline)) void transfer(struct runner *r, const struct code *before,
                                               const struct code *code) {
    bool astray =
        before->target != NO_ADDRESS && code->pc != before->target && code->pc != before->next;
    flush(r);
    if (astray)
        unexpected(r, before, code);
    else
        switch (before->control) {
        case CONTROL_CALL:
            flow_call(&r->flow, code->pc, before->next, NO_ADDRESS);
            break;
        case CONTROL_SWAP:
            if (r->flow.depth && r->flow.entries[r->flow.depth - 1].return_address == code->pc)
                flow_return(&r->flow, before->last, code->pc, NO_ADDRESS);
            flow_call(&r->flow, code->pc, before->next, NO_ADDRESS);
            break;
        case CONTROL_RETURN:
            flow_return(&r->flow, before->last, code->pc, NO_ADDRESS);
            break;
        case CONTROL_JUMP:
        case CONTROL_BRANCH:
            jump(r, before, code);
            break;
        default:
            if (code->pc != before->next)
                unexpected(r, before, code);
        }
    publish_state(r);
}

static void stop(void) {
    plugin.shared->over_budget = 1;
    _exit(0);
}

static struct runner *runner_new(const struct code *code) {
    struct runner *r = memory_zero(1, sizeof *r);
    uint32_t number = __atomic_fetch_add(&plugin.shared->thread_count, 1, __ATOMIC_RELAXED);
    if (number >= SHARED_THREADS) /* more are not told apart from the last one */
        number = SHARED_THREADS - 1;
    r->slot = &plugin.shared->threads[number];
    flow_init(&r->flow, &plugin.trie, plugin.functions, code->pc);
    r->before = NULL;
    publish_state(r);
    return r;
}

/* Runs for each block executed. A step to the next block in the same function costs a load, a compare and two additions. */
static void on_code(unsigned cpu, void *data) {
    const struct code *code = data;
    if (__builtin_expect(cpu >= SHARED_THREADS, 0))
        return;
    struct runner *r = plugin.runners[cpu];
    if (__builtin_expect(!r, 0))
        r = plugin.runners[cpu] = runner_new(code);
    const struct code *before = r->before;
    r->before = code;
    if (__builtin_expect(plugin.shared->budget != 0, 0) &&
        __atomic_fetch_add(&plugin.shared->spent, code->count, __ATOMIC_RELAXED) >=
            plugin.shared->budget)
        stop();
    if (before && (code->pc != before->next || before->control >= CONTROL_JUMP)) {
        bool inside = (before->control == CONTROL_BRANCH || before->control == CONTROL_JUMP) &&
                      before->ends_in == code->begins_in &&
                      (before->target == NO_ADDRESS || before->target == code->pc);
        if (!inside)
            transfer(r, before, code);
    }
    r->slot->pending += code->weight;
    r->slot->instructions += code->count;
}

/* A number that was used before starts again: the thread that had it is gone. */
static void on_cpu(qemu_plugin_id_t id, unsigned cpu) {
    if (cpu < SHARED_THREADS)
        plugin.runners[cpu] = NULL;
}

/* ---- installing --------------------------------------------------------------------------- */

static bool attach(int descriptor) {
    void *memory =
        mmap(NULL, SHARED_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
    if (memory == MAP_FAILED)
        return false;
    plugin.shared = memory;
    plugin.trie.nodes = plugin.shared->nodes;
    plugin.trie.capacity = SHARED_NODES;
    plugin.trie.count = &plugin.shared->node_count;
    return plugin.shared->magic == SHARED_MAGIC;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv) {
    int descriptor = -1;
    for (int i = 0; i < argc; i++)
        if (sscanf(argv[i], "shared=%d", &descriptor) == 1)
            break;
    if (descriptor < 0 || !attach(descriptor)) {
        fputs("libwick-qemu.so is for wick trace, which tells it where to count\n", stderr);
        return -1;
    }
    plugin.classifier = classifier_new(info->target_name);
    if (!plugin.classifier) {
        plugin.shared->unknown_target = 1;
        return -1;
    }
    plugin.functions = functions_new();
    qemu_plugin_register_vcpu_init_cb(id, on_cpu);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    return 0;
}
