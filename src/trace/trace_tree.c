/*
 * The counts as a tree: each called address is named once, however many stacks it is in.
 */
#include "object/demangle.h"
#include "trace/riscv/guest.h"
#include "tree/tree.h"

#include <stdlib.h>

struct naming_state {
    const struct trace *trace;
    struct tree *tree;
    struct objects_options names;
    bool raw;
    struct index index;
    VECTOR(uint64_t) addresses; /* by number; item 0 means none */
    VECTOR(uint32_t) locations; /* of the same number */
    struct buffer text;
};

static void name_call(struct naming_state *s, uint64_t number) {
    const char *name = guest_call_name(s->trace->abi, number);
    buffer_add(&s->text, TEXT("ecall:"));
    buffer_add(&s->text, name ? text_of(name) : TEXT("unknown"));
}

/* Return true if it has a function's name; false if it is unknown, and the address stands for it. */
static bool name_address(struct naming_state *s, uint64_t address) {
    uint32_t function = s->raw ? 0 : functions_find(s->trace->functions, address).function;
    if (address & SYNTHETIC_ADDRESS && s->trace->engine == ENGINE_BUILTIN) {
        name_call(s, address & ~SYNTHETIC_ADDRESS);
        return true;
    }
    if (!function) {
        buffer_add(&s->text, TEXT("0x"));
        buffer_add_hex(&s->text, address);
        return false;
    }
    struct text name = functions_name(s->trace->functions, function);
    if (!demangle(&s->names, name, &s->text, NULL))
        buffer_add(&s->text, name);
    return true;
}

static uint32_t add_location(struct naming_state *s, uint64_t address) {
    s->text.count = 0;
    bool known = name_address(s, address);
    if (!known) { /* unchanged: the rules for names don't apply to an address */
        struct location location = {.function = tree_name_function(s->tree, buffer_text(&s->text)),
                                    .kinds = KIND_UNKNOWN};
        return tree_add_location(s->tree, &location);
    }
    uint32_t name = strings_add(s->tree->strings, buffer_text(&s->text));
    uint32_t id = tree_add_location(s->tree, &(struct location){.address = address});
    s->tree->locations.items[id].first_frame = (uint32_t)s->tree->frames.count;
    s->tree->locations.items[id].frame_count = 1;
    vector_push(&s->tree->frames, ((struct frame){.name = name}));
    return id;
}

static uint32_t find_location(struct naming_state *s, uint64_t address) {
    uint64_t hash = hash_mix(address, 0);
    uint32_t number;
    for (struct probe p = index_probe(&s->index, hash); (number = index_next(&s->index, &p));)
        if (s->addresses.items[number] == address)
            return s->locations.items[number];
    number = (uint32_t)s->addresses.count;
    vector_push(&s->addresses, address);
    vector_push(&s->locations, add_location(s, address));
    index_add(&s->index, hash, number);
    return s->locations.items[number];
}

static uint32_t add_series(const struct trace *trace, struct tree *tree) {
    struct text unit = text_of(trace_unit(trace->weight));
    uint32_t event = tree_add_event(tree, unit, unit, EVENT_OTHER);
    return tree_add_series(tree, &(struct series){.event = event});
}

/* The root of a run that was cut short. It is a frame and not a mark of the series, so tables have it as well, and readers of folded text
   accept it. */
static uint32_t add_partial(struct tree *tree) {
    struct location location = {.function = tree_name_function(tree, TEXT("[partial]")),
                                .kinds = KIND_UNKNOWN};
    return tree_add_node(tree, 0, tree_add_location(tree, &location));
}

/* Parents come before their children in a trie, so one pass is enough at any depth. */
struct tree *trace_tree(const struct trace *trace, bool raw, bool no_demangle) {
    struct naming_state s = {.trace = trace, .tree = tree_new(), .raw = raw};
    s.names.no_demangle = no_demangle;
    vector_push(&s.addresses, 0);
    vector_push(&s.locations, 0);
    uint32_t series = add_series(trace, s.tree), count = *trace->trie.count;
    if (count > trace->trie.capacity)
        count = trace->trie.capacity;
    uint32_t *nodes = memory_resize(NULL, count ? count : 1, sizeof *nodes);
    nodes[0] = trace->is_partial ? add_partial(s.tree) : 0;
    for (uint32_t i = 1; i < count; i++) {
        const struct trie_node *node = &trace->trie.nodes[i];
        uint32_t parent = nodes[node->parent < i ? node->parent : 0];
        nodes[i] = tree_add_node(s.tree, parent, find_location(&s, node->address));
        if (node->count)
            tree_count(s.tree, nodes[i], series, 1, node->count);
    }
    free(nodes);
    index_release(&s.index);
    vector_release(&s.addresses);
    vector_release(&s.locations);
    buffer_release(&s.text);
    notes_merge(&s.tree->notes, &trace->notes);
    return s.tree;
}
