/*
 * libwick-qemu.so: wick inside QEMU.
 *
 * Each translated block is classified once: its number of instructions, what its last one does to control flow, the functions in which it
 * begins and ends, and whether the stack can change on the way into it or out of it. If not, it is only counted. Every thread has its own
 * flow; all count into one trie in memory shared with wick.
 */
#include "trace/qemu/plugin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

int qemu_plugin_version = QEMU_API_VERSION;

struct plugin plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

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
    if (path[0] == '/' && file_open_raw(&file, path, NULL, NULL)) {
        snprintf(object->path, sizeof object->path, "%s", path);
        if (elf_bias(file.data, file.size, start - plugin.guest_base, offset, &object->bias))
            functions_add_elf(plugin.functions, file.data, file.size, object->bias);
        else
            object->path[0] = 0;
        file_close(&file);
    }
    __atomic_store_n(&shared->object_count, shared->object_count + 1, __ATOMIC_RELEASE);
}

/* Find the mapping around a host address in this thread's /proc entry; the process's entry is the first thread's, and empty if that has
   ended. Addresses without a file are remembered, too, so that each is looked up once. */
static void find_object(uint64_t host) {
    FILE *maps = fopen("/proc/thread-self/maps", "re");
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

/* QEMU 7.2 returns too few bytes for an instruction that crosses a page boundary. */
static struct classified classify_at(const struct qemu_plugin_insn *instruction, uint64_t pc) {
    const uint64_t page = 4096;
    uint8_t bytes[16];
    if (pc % page > page - sizeof bytes && guest_read(pc, bytes, sizeof bytes))
        return classify(plugin.classifier, bytes, sizeof bytes, pc);
    return classify(plugin.classifier, qemu_plugin_insn_data(instruction),
                    qemu_plugin_insn_size(instruction), pc);
}

static void describe(struct code *code, const struct qemu_plugin_tb *block) {
    code->count = qemu_plugin_tb_n_insns(block);
    for (size_t i = 0; i < code->count; i++) {
        const struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
        uint64_t pc = qemu_plugin_insn_vaddr(instruction);
        struct classified c = classify_at(instruction, pc);
        if (i == 0)
            code->pc = pc;
        code->last = pc;
        code->next = pc + c.size;
        code->control = (uint8_t)c.control;
        code->target = c.target;
        code->weight += trace_weigh((enum trace_weight)plugin.shared->weight,
                                    c.control == CONTROL_BRANCH, c.loaded, c.stored);
    }
}

static void settle_quiet(struct code *code) {
    bool straight = code->control == CONTROL_NONE || code->control == CONTROL_BRANCH ||
                    code->control == CONTROL_SYSTEM;
    bool jumps = code->control == CONTROL_BRANCH || code->control == CONTROL_JUMP;
    uint32_t there = jumps && code->target != NO_ADDRESS ? function_at(code->target) : 0;
    bool inside = jumps && (!there || !code->ends_in || there == code->ends_in);
    code->quiet[0] = straight ? code->next : NO_ADDRESS;
    code->quiet[1] = inside ? code->target : NO_ADDRESS;
}

/* A call returns to the address if a call instruction precedes it, or if the bytes before it can't be read. */
static void settle_returns(struct code *code) {
    uint8_t before[8];
    bool readable = guest_read(code->pc - sizeof before, before, sizeof before);
    code->follows_call = readable && classify_follows_call(plugin.classifier, before);
    code->may_return = code->follows_call || !readable;
}

/* A signal may lead here: to the start of a function, or to code without a symbol. */
static bool may_surprise(uint64_t pc) {
    uint32_t function = function_at(pc);
    return !function || functions_start(plugin.functions, function) == pc;
}

/* x86: a repeated instruction is a block of its own from its second iteration on. Other instructions have these prefixes, too, but few blocks
   end in them. */
static bool may_repeat(const struct qemu_plugin_tb *block, const struct code *code) {
    const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(block, code->count - 1);
    const uint8_t *bytes = qemu_plugin_insn_data(last);
    size_t size = qemu_plugin_insn_size(last);
    bool found = false;
    for (size_t i = 0; i < size && i < 4; i++)
        found |= bytes[i] == 0xf2 || bytes[i] == 0xf3;
    return found && code->control == CONTROL_NONE;
}

/* Return true if the stack can't change on the way into a block or out of it, and its successor is not taken for a signal handler. */
static bool is_silent(const struct qemu_plugin_tb *block, const struct code *code) {
    bool jumps = code->control == CONTROL_BRANCH || code->control == CONTROL_JUMP;
    if ((code->control != CONTROL_NONE && !jumps) || may_repeat(block, code))
        return false;
    if (jumps && (code->quiet[1] == NO_ADDRESS || may_surprise(code->quiet[1])))
        return false;
    if (code->quiet[0] != NO_ADDRESS && may_surprise(code->quiet[0]))
        return false;
    return !code->may_surprise && !code->may_return;
}

/* Find where the guest's memory is in this process, from the first block. */
static bool find_base(const struct qemu_plugin_tb *block) {
    const struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(block, 0);
    const void *host = qemu_plugin_insn_haddr(first);
    bool found = !plugin.base_known && host;
    if (found)
        plugin.guest_base = (uint64_t)(uintptr_t)host - qemu_plugin_insn_vaddr(first);
    plugin.base_known |= found;
    return found;
}

static void settle(struct code *code, const struct qemu_plugin_tb *block) {
    code->begins_in = function_at(code->pc);
    code->ends_in = function_at(code->last);
    code->is_start =
        code->begins_in && functions_start(plugin.functions, code->begins_in) == code->pc;
    code->is_alone = code->count == 1;
    settle_returns(code);
    settle_quiet(code);
    code->is_settled = code->control == CONTROL_NONE || code->control == CONTROL_SYSTEM ||
                       code->quiet[1] != NO_ADDRESS;
    code->may_surprise = may_surprise(code->pc);
    code->is_silent = is_silent(block, code);
}

/* Inline counting needs no call, but is right for one thread only. QEMU discards its translations when a second thread is created, so these
   are executed only by the first thread, and never after that. */
static void watch(struct qemu_plugin_tb *block, struct code *code) {
    struct shared_thread *first = &plugin.shared->threads[0];
    qemu_executed *told = code->is_silent      ? step_silent_code
                          : plugin.is_weighed  ? step_weighed_code
                          : plugin.is_parallel ? step_code
                                               : step_first_code;
    if (plugin.shared->budget)
        told = step_budgeted_code;
    else if (code->is_silent && !plugin.is_parallel) {
        qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64, &first->count,
                                                 code->count);
        if (plugin.is_weighed)
            qemu_plugin_register_vcpu_tb_exec_inline(block, QEMU_PLUGIN_INLINE_ADD_U64,
                                                     &first->weight, code->weight);
        return;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(block, told, QEMU_PLUGIN_CB_NO_REGS, code);
}

static struct code *new_code(void) {
    uintptr_t room =
        (uintptr_t)arena_alloc(&plugin.codes, sizeof(struct code) + _Alignof(struct code));
    struct code *code = (struct code *)(room + -room % _Alignof(struct code));
    memset(code, 0, sizeof *code);
    return code;
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    pthread_mutex_lock(&plugin.lock);
    struct code *code = new_code();
    bool is_first = find_base(block);
    describe(code, block);
    settle(code, block);
    code->is_silent &= !is_first;
    watch(block, code);
    if (code->begins_in)
        leap_translated(block, functions_name(plugin.functions, code->begins_in));
    pthread_mutex_unlock(&plugin.lock);
}

/* A thread begins. If its number was used before, the previous thread is gone. */
static void on_cpu(qemu_plugin_id_t id, unsigned cpu) {
    if (cpu >= SHARED_THREADS) {
        plugin.shared->uncounted++;
        return;
    }
    struct shared_thread *thread = &plugin.shared->threads[cpu];
    struct follower *follower = &plugin.followers[cpu];
    if (thread->before) {
        step_flush(follower, thread, shared_weight(plugin.shared, thread));
        flow_release(&follower->flow);
    }
    leap_forget(follower);
    pthread_mutex_lock(&plugin.lock);
    plugin.is_parallel |= cpu > 0;
    if (plugin.shared->thread_count <= cpu)
        plugin.shared->thread_count = cpu + 1;
    pthread_mutex_unlock(&plugin.lock);
    thread->before = &nowhere;
    thread->expected = thread->count;
    turn_made(cpu);
}

/* ---- system calls ------------------------------------------------------------------------- */

static void on_call(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2,
                    uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    uint64_t arguments[] = {a1, a2, a3, a4, a5, a6};
    if (cpu >= SHARED_THREADS)
        return;
    leap_system_call(cpu, number, arguments);
    turn_call(cpu, number, arguments);
}

static void on_called(qemu_plugin_id_t id, unsigned cpu, int64_t number, int64_t result) {
    if (cpu < SHARED_THREADS)
        turn_called(cpu, result);
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
    close(descriptor); /* the guest must not see it */
    return plugin.shared->magic == SHARED_MAGIC;
}

/* A process forked by the guest counts for itself, and its counts are not read. */
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
        if (shared->threads[i].before) {
            shared->threads[i].before = &nowhere;
            shared->threads[i].expected = shared->threads[i].count;
        }
    turn_forked();
}

/* A guest may run forever, but must not outlive a wick that was killed. */
static void die_with_wick(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plugin.shared->wick)
        _exit(1);
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
    die_with_wick();
    plugin.classifier = classifier_new(info->target_name);
    if (!plugin.classifier) {
        plugin.shared->unknown_target = 1;
        return -1;
    }
    plugin.functions = functions_new();
    plugin.is_weighed = plugin.shared->weight != WEIGHT_INSTRUCTIONS;
    leap_install(info->target_name);
    calls_install(info->target_name);
    pthread_atfork(NULL, NULL, on_forked);
    qemu_plugin_register_vcpu_init_cb(id, on_cpu);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_called);
    return 0;
}
