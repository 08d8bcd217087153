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
    uint64_t quiet
        [2]; /* the next block's address if the stack stays as it is: straight on, or a jump in the function */
    uint64_t weight;
    uint64_t count;
    uint64_t last;               /* its last instruction */
    uint64_t next;               /* behind it */
    uint64_t target;             /* of its last instruction, if direct */
    uint32_t begins_in, ends_in; /* functions */
    uint8_t control;
    bool is_start; /* of its function */
    bool is_alone; /* one instruction */
};

/* What a new thread comes from: nothing is quiet after it. */
static const struct code nowhere = {.quiet = {NO_ADDRESS, NO_ADDRESS}, .target = NO_ADDRESS};

static struct {
    struct shared *shared;
    struct trie trie;
    struct functions *functions;
    struct classifier *classifier;
    pthread_mutex_t lock; /* over translation, and whatever it adds to */
    struct arena codes;
    uint64_t guest_base;
    bool base_known;
    struct flow flows[SHARED_THREADS];
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
    code->count = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < code->count; i++) {
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
static void on_weighed_code(unsigned cpu, void *data);

static void settle_quiet(struct code *code) {
    bool straight = code->control == CONTROL_NONE || code->control == CONTROL_BRANCH ||
                    code->control == CONTROL_SYSTEM;
    bool jumps = code->control == CONTROL_BRANCH || code->control == CONTROL_JUMP;
    uint32_t there = jumps && code->target != NO_ADDRESS ? function_at(code->target) : 0;
    bool inside = jumps && (!there || !code->ends_in || there == code->ends_in);
    code->quiet[0] = straight ? code->next : NO_ADDRESS;
    code->quiet[1] = inside ? code->target : NO_ADDRESS;
}

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
    code->is_alone = code->count == 1;
    settle_quiet(code);
    pthread_mutex_unlock(&plugin.lock);
    bool plain = plugin.shared->weight == WEIGHT_INSTRUCTIONS && !plugin.shared->budget;
    qemu_plugin_register_vcpu_tb_exec_cb(block, plain ? on_code : on_weighed_code,
                                         QEMU_PLUGIN_CB_NO_REGS, code);
}

/* ---- execution ---------------------------------------------------------------------------- */

static void flush(struct flow *flow, struct shared_thread *thread) {
    flow_count(flow, thread->pending);
    thread->pending = 0;
}

/* Not where the last instruction could have gone by itself: a signal's handler was entered, or left. */
static void unexpected(struct flow *flow, const struct code *before, const struct code *code) {
    if (before->control == CONTROL_SYSTEM)
        flow_return(flow, before->last, code->pc, NO_ADDRESS);
    else
        flow_call(flow, code->pc, before->next, NO_ADDRESS);
}

/* From code without a symbol nothing is a tail call, but for the loader's own, which a slot of the PLT went to at its first use. */
static bool may_tail(struct flow *flow, const struct code *before, const struct code *code) {
    if (before->ends_in)
        return true;
    uint32_t frame =
        functions_find(plugin.functions, plugin.trie.nodes[flow->node].address).function;
    return code->is_start && frame && functions_is_stub(plugin.functions, frame);
}

static void jump(struct flow *flow, const struct code *before, const struct code *code) {
    bool indirect = before->target == NO_ADDRESS;
    if (!code->begins_in || before->ends_in == code->begins_in)
        return;
    if (!code->is_start && (before->ends_in || indirect) &&
        flow_jump_returns(flow, code->pc, NO_ADDRESS))
        return;
    if (!code->is_start && indirect && flow_jump_lands(flow, code->pc, NO_ADDRESS))
        return;
    if (may_tail(flow, before, code))
        flow_tail(flow, code->pc);
}

static void transfer(struct flow *flow, const struct code *before, const struct code *code) {
    if (before->target != NO_ADDRESS && code->pc != before->target && code->pc != before->next) {
        unexpected(flow, before, code);
        return;
    }
    switch (before->control) {
    case CONTROL_CALL:
        flow_call(flow, code->pc, before->next, NO_ADDRESS);
        break;
    case CONTROL_SWAP:
        if (flow->depth && flow->entries[flow->depth - 1].return_address == code->pc)
            flow_return(flow, before->last, code->pc, NO_ADDRESS);
        flow_call(flow, code->pc, before->next, NO_ADDRESS);
        break;
    case CONTROL_RETURN:
        flow_return(flow, before->last, code->pc, NO_ADDRESS);
        break;
    case CONTROL_JUMP:
    case CONTROL_BRANCH:
        jump(flow, before, code);
        break;
    default:
        unexpected(flow, before, code);
    }
}

/* x86: `rep` goes round. That is one instruction, however often. */
static bool repeats(const struct code *before, const struct code *code) {
    return code->is_alone && code->pc == before->last && before->control == CONTROL_NONE;
}

/* The stack may change between these two blocks. */
static __attribute__((noinline)) void step_slow(unsigned cpu, const struct code *before,
                                                const struct code *code) {
    struct shared_thread *thread = &plugin.shared->threads[cpu];
    struct flow *flow = &plugin.flows[cpu];
    if (repeats(before, code))
        return;
    if (before != &nowhere) {
        flush(flow, thread);
        transfer(flow, before, code);
    } else {
        flow_init(flow, &plugin.trie, plugin.functions, code->pc);
        plugin.shared->started = 1;
    }
    thread->pending = code->weight;
    thread->node = flow->node;
    thread->unmatched = flow->unmatched;
    thread->unmatched_pc = flow->unmatched_pc;
    thread->dropped = flow->dropped;
}

/* Most often it is a call that was made before, or the return from the last one. No call of our own in here, but at its
   end. */
static __attribute__((noinline)) void step(unsigned cpu, const struct code *before,
                                           const struct code *code) {
    struct shared_thread *thread = &plugin.shared->threads[cpu];
    struct flow *flow = &plugin.flows[cpu];
    bool quick = false;
    if (before->control == CONTROL_RETURN || before->control == CONTROL_CALL)
        flush(flow, thread);
    if (before->control == CONTROL_RETURN)
        quick = flow_return_quick(flow, code->pc);
    else if (before->control == CONTROL_CALL &&
             (before->target == NO_ADDRESS || before->target == code->pc))
        quick = flow_call_quick(flow, code->pc, before->next, NO_ADDRESS);
    if (__builtin_expect(!quick, 0)) {
        step_slow(cpu, before, code);
        return;
    }
    thread->pending = code->weight;
    thread->node = flow->node;
}

/* Runs for each block executed: the next one in the same function costs a compare or two and one addition. */
static void on_code(unsigned cpu, void *data) {
    const struct code *code = data;
    if (__builtin_expect(cpu >= SHARED_THREADS, 0))
        return;
    struct shared_thread *thread = &plugin.shared->threads[cpu];
    const struct code *before = thread->before;
    thread->before = code;
    /* One branch for both: which of them it was is as hard to foresee as the guest's own branch. The barrier keeps the
       compiler from making two of it again. */
    unsigned loud = code->pc != before->quiet[0];
    __asm__("" : "+r"(loud));
    loud &= code->pc != before->quiet[1];
    if (__builtin_expect(loud, 0)) {
        step(cpu, before, code);
        return;
    }
    thread->pending += code->weight;
}

static void on_weighed_code(unsigned cpu, void *data) {
    const struct code *code = data;
    struct shared *shared = plugin.shared;
    if (cpu >= SHARED_THREADS || repeats(shared->threads[cpu].before, code))
        return;
    if (shared->budget &&
        __atomic_fetch_add(&shared->spent, code->count, __ATOMIC_RELAXED) >= shared->budget) {
        shared->over_budget = 1;
        _exit(0); /* this block is not executed any more, nor counted */
    }
    shared->threads[cpu].instructions += code->count;
    on_code(cpu, data);
}

/* A thread begins. If its number was used before, the thread that had it is gone. */
static void on_cpu(qemu_plugin_id_t id, unsigned cpu) {
    if (cpu >= SHARED_THREADS)
        return;
    struct shared_thread *thread = &plugin.shared->threads[cpu];
    if (thread->before) {
        flush(&plugin.flows[cpu], thread);
        flow_release(&plugin.flows[cpu]);
    }
    thread->before = &nowhere;
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
    close(descriptor); /* the guest has no business with it */
    return plugin.shared->magic == SHARED_MAGIC;
}

/* A process that the guest forked is another one: it counts for itself, and nobody reads it. */
static void on_forked(void) {
    struct shared *shared = plugin.shared;
    struct shared *copy = memory_resize(NULL, 1, sizeof *copy);
    memcpy(copy, shared, sizeof *copy);
    if (mmap(shared, SHARED_SIZE, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        _exit(1);
    memcpy(shared, copy, sizeof *shared);
    free(copy);
    shared->node_count = 1;
    shared->nodes[0].address = NO_ADDRESS;
    for (size_t i = 0; i < SHARED_THREADS; i++)
        if (shared->threads[i].before)
            shared->threads[i].before = &nowhere;
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
    pthread_atfork(NULL, NULL, on_forked);
    qemu_plugin_register_vcpu_init_cb(id, on_cpu);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    return 0;
}
