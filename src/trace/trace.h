/*
 * trace: exact instruction counts. A guest is executed or observed, every call, return and tail call is followed, and each
 * instruction is counted on its exact stack.
 *
 * An engine (the built-in RISC-V interpreter, QEMU with wick's plugin, or a stream from some other simulator) tells a
 * `flow` what the guest does, with four operations: call, return, jump, count. The flow keeps the guest's stack and
 * walks a trie of addresses, so each operation costs the same at any depth. Addresses get names at the end, in
 * trace_tree().
 *
 * The rules are those of the machine's conventions, made robust:
 *  - A call pushes the target, and remembers the return address and, if the engine knows it, the stack pointer.
 *  - A return that goes where the top call wanted it pops one frame. Any other return is matched with a deeper frame:
 * by the stack pointer, else by return address, else by the function it lands in. This handles longjmp, exceptions
 * and hand-written assembly. A return that matches nothing is counted as such and treated as a jump.
 *  - A jump is a tail call, which replaces the top frame, only if both its ends lie in functions, and in two different ones.
 *    At the root a tail call nests instead, because the root always stays. A jump to the return address of a live
 *    call is that return.
 */
#ifndef WICK_TRACE_H
#define WICK_TRACE_H

#include "base/base.h"

struct tree;
struct flame;

#define NO_ADDRESS UINT64_MAX /* also: no stack pointer known */

/* What is counted. Everything except instructions depends on the engine. */
enum trace_weight {
    WEIGHT_INSTRUCTIONS,
    WEIGHT_ACCESSES,
    WEIGHT_BRANCHES,
    WEIGHT_LOADED,
    WEIGHT_STORED
};
const char *trace_unit(enum trace_weight weight); /* "instructions" … */
/* Return the weight of one instruction that loads and stores these numbers of bytes. */
uint64_t trace_weigh(enum trace_weight weight, bool is_branch, uint32_t loaded, uint32_t stored);

/* ---- functions: which code belongs together ----------------------------------------------- */

/*
 * The function symbols of one or more ELF files as ranges that do not overlap. A symbol of size zero ends at the next symbol or with its
 * section; inside another function's range it is a label, not a function. Of nested functions the inner one has its range, and the outer one
 * the rest. NAME.cold, which compilers split off, is part of NAME.
 */
struct function_range {
    uint64_t start;
    uint64_t end;
    uint32_t function; /* id, 1 …; 0 for a hole */
};
struct functions;
struct functions *functions_new(void);
void functions_free(struct functions *functions);
/* Add one symbol, for tests and other sources. `is_function` is STT_FUNC; `rank` orders names for one address (higher wins). */
void functions_add(struct functions *functions, struct text name, uint64_t start, uint64_t size,
                   uint64_t section_end, bool is_function, unsigned rank);
/* Add the symbols of an ELF image and the slots of its PLT, each moved by `bias`. Broken or missing tables
   add nothing and are not an error. Return how many were added. Existing ids stay valid. */
size_t functions_add_elf(struct functions *functions, const void *image, size_t size,
                         uint64_t bias);
/* Return the range of the function that contains the address, or of the hole between functions. The first lookup
   after symbols were added costs a sort. */
struct function_range functions_find(struct functions *functions, uint64_t address);
struct text functions_name(const struct functions *functions,
                           uint32_t function); /* as in the file */
uint64_t functions_start(struct functions *functions, uint32_t function);
bool functions_is_stub(
    struct functions *functions,
    uint32_t function); /* a slot of a PLT: it jumps to the function it stands for */

/* ---- trie --------------------------------------------------------------------------------- */

/* A node is a stack: its parent's stack, with the called address on top. */
struct trie_node {
    uint64_t address;
    uint64_t count;
    uint32_t parent;
    uint32_t last_child; /* the child entered last: most calls repeat it */
};

/* Nodes are in one reservation that grows when touched, so pointers stay valid and another process can read a shared trie while it grows.
   Node 0 means none; roots have parent 0. */
struct trie {
    struct trie_node *nodes;
    uint32_t capacity;
    uint32_t *count;    /* nodes used, with node 0 */
    uint32_t own_count; /* where `count` points unless the trie is shared */
    size_t reserved;
};
bool trie_init(struct trie *trie, struct error *error);
void trie_release(struct trie *trie);

/* ---- flow: the control flow of one thread ------------------------------------------------- */

struct flow_entry {
    uint64_t return_address; /* NO_ADDRESS for a tail call made at the root */
    uint64_t sp;             /* the caller's; NO_ADDRESS if unknown */
    uint32_t node;           /* the caller */
};

struct flow {
    struct trie *trie;
    struct trie_node *nodes; /* the trie's */
    struct functions *functions;
    struct flow_entry *entries; /* the caller of each live call, outermost first */
    size_t depth;
    size_t capacity;
    size_t max_depth;
    uint32_t node; /* where instructions are counted now */
    uint32_t root;
    uint64_t beyond;    /* calls deeper than max_depth that have not returned */
    uint64_t unmatched; /* returns that matched nothing */
    uint64_t dropped;   /* frames dropped because of the depth or the number of nodes */
    uint64_t unmatched_pc;
    struct function_range last; /* the function of the last jump: loops stay inside */
    struct index children;
};

/* `root` is the entry address. The caller keeps the trie and the functions. */
void flow_init(struct flow *flow, struct trie *trie, struct functions *functions, uint64_t root);
void flow_release(struct flow *flow);

uint32_t flow_child_slow(struct flow *flow, uint32_t parent, uint64_t address);
void flow_call_slow(struct flow *flow, uint64_t target, uint64_t return_address, uint64_t sp);
void flow_return_slow(struct flow *flow, uint64_t from, uint64_t target, uint64_t sp);
void flow_jump_slow(struct flow *flow, uint64_t from, uint64_t target, uint64_t sp);
/* A jump into the middle of another function may be a return without a return instruction, as in context switches. Return true, after popping
   the frames, if it goes to the return address of a live call. */
bool flow_jump_returns(struct flow *flow, uint64_t target, uint64_t sp);
/* A jump may also go back into a function that is live further out, but not to the return address of one of its calls, as longjmp and
   exceptions do on machines where they are jumps. Return true, after popping the frames, if there is such a frame; if the stack pointer is
   unknown, the innermost. */
bool flow_jump_lands(struct flow *flow, uint64_t target, uint64_t sp);
void flow_tail(struct flow *flow, uint64_t target);
/* Return to the frame that made the call of entry `index`. */
void flow_pop_to(struct flow *flow, size_t index);

static inline uint32_t flow_child(struct flow *flow, uint32_t parent, uint64_t address) {
    uint32_t child = flow->nodes[parent].last_child;
    if (__builtin_expect(flow->nodes[child].address == address, 1))
        return child; /* node 0 has NO_ADDRESS */
    return flow_child_slow(flow, parent, address);
}

static inline void flow_count(struct flow *flow, uint64_t count) {
    flow->nodes[flow->node].count += count;
}

/* The common cases of a call and a return, without a function call. Return false if nothing was done: use the slow
   path. */
static inline bool flow_call_quick(struct flow *flow, uint64_t target, uint64_t return_address,
                                   uint64_t sp) {
    uint32_t child = flow->nodes[flow->node].last_child;
    if (__builtin_expect((flow->depth == flow->capacity) | (flow->nodes[child].address != target),
                         0))
        return false;
    flow->entries[flow->depth++] = (struct flow_entry){return_address, sp, flow->node};
    flow->node = child;
    return true;
}

static inline bool flow_return_quick(struct flow *flow, uint64_t target) {
    uint64_t depth = flow->depth;
    if (__builtin_expect(
            !depth || flow->entries[depth - 1].return_address != target || flow->beyond, 0))
        return false;
    flow->node = flow->entries[depth - 1].node;
    flow->depth = depth - 1;
    return true;
}

static inline void flow_call(struct flow *flow, uint64_t target, uint64_t return_address,
                             uint64_t sp) {
    if (!flow_call_quick(flow, target, return_address, sp))
        flow_call_slow(flow, target, return_address, sp);
}

static inline void flow_return(struct flow *flow, uint64_t from, uint64_t target, uint64_t sp) {
    if (!flow_return_quick(flow, target))
        flow_return_slow(flow, from, target, sp);
}

static inline void flow_jump(struct flow *flow, uint64_t from, uint64_t target, uint64_t sp) {
    uint64_t size = flow->last.end - flow->last.start;
    if (from - flow->last.start < size && target - flow->last.start < size)
        return;
    flow_jump_slow(flow, from, target, sp);
}

/* Count on a separate leaf under the current frame without entering it, for system calls. */
#define SYNTHETIC_ADDRESS (1ull << 63)
void flow_count_leaf(struct flow *flow, uint64_t address, uint64_t count);

/* ---- engines ------------------------------------------------------------------------------ */

enum trace_abi { ABI_LINUX, ABI_PROVER };
enum trace_misaligned {
    MISALIGNED_AS_EVER,
    MISALIGNED_FAULT,
    MISALIGNED_ALLOW
}; /* loads and stores; others fault */
enum trace_engine { ENGINE_AUTO, ENGINE_BUILTIN, ENGINE_QEMU, ENGINE_STREAM };

struct trace_file {
    const char *guest; /* the path that the guest opens */
    const char *host;
};

struct trace_options {
    const struct context *context; /* or NULL; cancelling it ends the guest */
    enum trace_engine engine;
    enum trace_abi abi;
    enum trace_weight weight;
    const char *path; /* the guest; for a stream the ELF file with its symbols, or NULL */
    const char *const *arguments; /* with argument 0 */
    size_t argument_count;
    const char *const *environment;
    size_t environment_count;
    const struct trace_file *files;
    size_t file_count;
    const char *private_input;
    const char *stream;  /* what to read, "-" for standard input */
    const char *plugin;  /* libwick-qemu.so; NULL: beside wick, or installed */
    uint64_t budget;     /* 0: none */
    uint64_t checkpoint; /* 0: none */
    uint64_t
        stack_size; /* 0: 1 GiB, of which only touched memory is used; with QEMU the host's limit */
    uint64_t memory_size;            /* 0: 4 GiB */
    int input, output, error_output; /* descriptors for the guest's 0, 1 and 2 */
    bool ecall_frames;
    bool
        parallel; /* QEMU: threads run in parallel, and the host decides how they affect each other */
    enum trace_misaligned misaligned;
    bool no_stacks; /* execute and count instructions only */
};

enum trace_end {
    TRACE_EXITED,      /* with `status` */
    TRACE_SIGNALED,    /* the guest ended itself with `signal` */
    TRACE_BUDGET,      /* the budget was reached */
    TRACE_FAULT,       /* with `fault` */
    TRACE_INTERRUPTED, /* the context was cancelled */
};

/* What was counted. */
struct trace {
    enum trace_engine engine; /* that ran it */
    enum trace_end end;
    int status;
    int signal;
    uint64_t instructions;
    char fault[300]; /* "load of 8 bytes at 0x10: not mapped, pc 0x1010a (main+0x1a)" */
    struct trie trie;
    struct functions *functions;
    struct notes notes;
    enum trace_abi abi;
    enum trace_weight weight;
    bool
        is_partial; /* a fault, a kill, an interrupt, or a checkpoint: there would have been more */
};

/* Called at each checkpoint with the counts so far. */
typedef void trace_checkpoint(void *context, const struct trace *trace);

/* Return the engine that will run the guest: the requested one, or the one for the file's header. */
enum trace_engine trace_engine(const struct trace_options *options);
/* Run the guest. Fails only if it could not be started. `checkpoint` may be NULL. */
bool trace_run(struct trace *trace, const struct trace_options *options,
               trace_checkpoint *checkpoint, void *context, struct error *error);
void trace_release(struct trace *trace);

/* Return the counts as a tree of names (demangled unless `no_demangle`), or of addresses if `raw`. */
struct tree *trace_tree(const struct trace *trace, bool raw, bool no_demangle);

/* Convert folded text of addresses (`--raw`) to a flame of functions with inlined functions and `file:line`. `path`
   is for notes. Return NULL if the ELF file can't be read. */
struct flame *trace_enrich(struct text raw, const char *path, const char *elf,
                           const struct context *context, struct notes *notes, struct error *error);

#endif
