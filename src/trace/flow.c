/*
 * The control-flow core: calls, returns, tail calls, and the trie they walk.
 *
 * The common case of each is inline in trace.h. This file handles the rest: a new child, a return to another place than the last call's
 * return address, a jump out of its function. A return that searches pops the frames it passes, so the calls have paid for its cost; a search
 * that may fail looks at no more than SEARCH_MAX entries.
 */
#include "trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SEARCH_MAX 65536
#define JUMP_SEARCH_MAX 64
#define DEPTH_MAX (1u << 25) /* a runaway recursion of 33 million frames is enough to see it */

bool trie_init(struct trie *trie, struct error *error) {
    memset(trie, 0, sizeof *trie);
    for (uint64_t capacity = 1u << 30; capacity >= 1u << 20; capacity /= 2) {
        size_t size = capacity * sizeof(struct trie_node);
        void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            continue;
        trie->nodes = memory;
        trie->capacity = (uint32_t)capacity;
        trie->reserved = size;
        trie->count = &trie->own_count;
        trie->own_count = 1;
        trie->nodes[0].address = NO_ADDRESS;
        return true;
    }
    return error_set(error, ERROR_DENIED, "address space for the call tree: %s", strerror(errno));
}

void trie_release(struct trie *trie) {
    if (trie->nodes)
        munmap(trie->nodes, trie->reserved);
    memset(trie, 0, sizeof *trie);
}

/* Return 0 if there is no room. Threads may share a trie: a node belongs to the thread that took its number. */
static uint32_t trie_add(struct trie *trie, uint32_t parent, uint64_t address) {
    if (__atomic_load_n(trie->count, __ATOMIC_RELAXED) >= trie->capacity)
        return 0;
    uint32_t id = __atomic_fetch_add(trie->count, 1, __ATOMIC_RELAXED);
    if (id >= trie->capacity)
        return 0;
    trie->nodes[id].parent = parent;
    trie->nodes[id].address = address;
    return id;
}

void flow_init(struct flow *flow, struct trie *trie, struct functions *functions, uint64_t root) {
    memset(flow, 0, sizeof *flow);
    flow->trie = trie;
    flow->nodes = trie->nodes;
    flow->functions = functions;
    flow->max_depth = DEPTH_MAX;
    flow->root = flow->node = trie_add(trie, 0, root);
}

void flow_release(struct flow *flow) {
    free(flow->entries);
    index_release(&flow->children);
    memset(flow, 0, sizeof *flow);
}

/* If there is no room for more nodes, the deepest stacks count on the caller. */
uint32_t flow_child_slow(struct flow *flow, uint32_t parent, uint64_t address) {
    struct trie_node *nodes = flow->trie->nodes;
    uint64_t hash = hash_mix(parent, address);
    uint32_t id;
    for (struct probe p = index_probe(&flow->children, hash);
         (id = index_next(&flow->children, &p));)
        if (nodes[id].parent == parent && nodes[id].address == address)
            break;
    if (!id) {
        id = trie_add(flow->trie, parent, address);
        if (!id) {
            flow->dropped++;
            return parent;
        }
        index_add(&flow->children, hash, id);
    }
    nodes[parent].last_child = id;
    return id;
}

/* At the limit, depth stays == capacity and the call is counted in `beyond`. */
static void flow_grow(struct flow *flow) {
    if (flow->depth >= flow->max_depth) {
        flow->beyond++;
        flow->dropped++;
        return;
    }
    size_t wanted = flow->capacity ? flow->capacity * 2 : 256;
    if (wanted > flow->max_depth)
        wanted = flow->max_depth;
    flow->entries = memory_resize(flow->entries, wanted, sizeof *flow->entries);
    flow->capacity = wanted;
}

void flow_call_slow(struct flow *flow, uint64_t target, uint64_t return_address, uint64_t sp) {
    if (flow->depth == flow->capacity) {
        flow_grow(flow);
        if (flow->depth == flow->capacity)
            return;
    }
    flow->entries[flow->depth++] = (struct flow_entry){return_address, sp, flow->node};
    flow->node = flow_child(flow, flow->node, target);
}

void flow_pop_to(struct flow *flow, size_t index) {
    flow->node = flow->entries[index].node;
    flow->depth = index;
    flow->beyond = 0;
}

static uint32_t function_at(struct flow *flow, uint64_t address) {
    return functions_find(flow->functions, address).function;
}

static uint32_t function_of(struct flow *flow, uint32_t node) {
    return function_at(flow, flow->trie->nodes[node].address);
}

/* Return how many calls are live: a call is over once the stack pointer is back at its caller's. */
static size_t live_by_sp(const struct flow *flow, uint64_t sp) {
    size_t depth = flow->depth;
    while (depth && flow->entries[depth - 1].sp != NO_ADDRESS && flow->entries[depth - 1].sp <= sp)
        depth--;
    return depth;
}

static bool return_by_sp(struct flow *flow, uint64_t target, uint64_t sp) {
    size_t depth = live_by_sp(flow, sp);
    if (depth == flow->depth)
        return false;
    bool matched = flow->entries[depth].return_address == target;
    flow_pop_to(flow, depth);
    uint32_t function = function_at(flow, target);
    return matched || (function && function == function_of(flow, flow->node));
}

static bool return_by_address(struct flow *flow, uint64_t target) {
    size_t last = flow->depth > SEARCH_MAX ? flow->depth - SEARCH_MAX : 0;
    for (size_t i = flow->depth; i-- > last;)
        if (flow->entries[i].return_address == target) {
            flow_pop_to(flow, i);
            return true;
        }
    return false;
}

static bool pop_to_function(struct flow *flow, uint32_t function) {
    size_t last = flow->depth > SEARCH_MAX ? flow->depth - SEARCH_MAX : 0;
    for (size_t i = flow->depth; i-- > last;)
        if (function_of(flow, flow->entries[i].node) == function) {
            flow_pop_to(flow, i);
            return true;
        }
    return false;
}

/* Return to the innermost caller that is the function landed in. */
static bool return_by_function(struct flow *flow, uint64_t target) {
    struct function_range range = functions_find(flow->functions, target);
    if (!range.function)
        return false;
    if (function_of(flow, flow->node) == range.function)
        return true; /* already there */
    return pop_to_function(flow, range.function);
}

void flow_return_slow(struct flow *flow, uint64_t from, uint64_t target, uint64_t sp) {
    if (flow->beyond) { /* calls that found no room return first */
        flow->beyond--;
        return;
    }
    bool known = sp != NO_ADDRESS && flow->depth && flow->entries[flow->depth - 1].sp != NO_ADDRESS;
    if (known ? return_by_sp(flow, target, sp) : return_by_address(flow, target))
        return;
    if ((!known || !flow->depth) && return_by_function(flow, target))
        return;
    if (!flow->unmatched++)
        flow->unmatched_pc = from;
    flow_jump(flow, from, target, sp);
}

void flow_tail(struct flow *flow, uint64_t target) {
    if (!flow->depth) {
        flow_call(flow, target, NO_ADDRESS, NO_ADDRESS);
        return;
    }
    if (!flow->beyond)
        flow->node = flow_child(flow, flow->entries[flow->depth - 1].node, target);
}

/* Only calls that the stack pointer has left can be over; if it is unknown, look at a few. */
bool flow_jump_returns(struct flow *flow, uint64_t target, uint64_t sp) {
    size_t last = flow->depth > JUMP_SEARCH_MAX ? flow->depth - JUMP_SEARCH_MAX : 0;
    if (flow->beyond)
        return false;
    for (size_t i = flow->depth; i-- > last;) {
        const struct flow_entry *entry = &flow->entries[i];
        if (sp != NO_ADDRESS && entry->sp != NO_ADDRESS && entry->sp > sp)
            return false;
        if (entry->return_address == target) {
            flow_pop_to(flow, i);
            return true;
        }
    }
    return false;
}

bool flow_jump_lands(struct flow *flow, uint64_t target, uint64_t sp) {
    uint32_t function = function_at(flow, target);
    if (flow->beyond || !flow->depth || !function)
        return false;
    if (sp == NO_ADDRESS || flow->entries[flow->depth - 1].sp == NO_ADDRESS)
        return pop_to_function(flow, function);
    size_t depth = live_by_sp(flow, sp);
    if (depth == flow->depth || function_of(flow, flow->entries[depth].node) != function)
        return false;
    flow_pop_to(flow, depth);
    return true;
}

void flow_jump_slow(struct flow *flow, uint64_t from, uint64_t target, uint64_t sp) {
    struct function_range here = functions_find(flow->functions, from);
    if (!here.function)
        return;
    flow->last = here;
    if (target - here.start < here.end - here.start)
        return;
    struct function_range there = functions_find(flow->functions, target);
    if (!there.function || there.function == here.function)
        return;
    flow->last = there;
    if (target == functions_start(flow->functions, there.function) ||
        (!flow_jump_returns(flow, target, sp) && !flow_jump_lands(flow, target, sp)))
        flow_tail(flow, target);
}

void flow_count_leaf(struct flow *flow, uint64_t address, uint64_t count) {
    uint32_t last = flow->trie->nodes[flow->node].last_child;
    uint32_t leaf = flow_child(flow, flow->node, address);
    flow->trie->nodes[leaf].count += count;
    flow->trie->nodes[flow->node].last_child = last; /* the next one will be a call */
}
