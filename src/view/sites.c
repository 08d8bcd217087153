/*
 * Allocations by the function that needed the memory. Every one of them ends in malloc, which tells nothing.
 */
#include <strings.h>

#include "view/view.h"

/* Also by glibc's own names for them: __mmap, __GI___mremap, __brk_call. */
static bool is_mapping(struct text name) {
    static const char *const functions[] = {"mmap", "mmap64", "mremap", "brk", "sbrk", "brk_call"};
    static const char internal[] = "__GI_";
    if (text_starts(name, text_of(internal)))
        name = text_from(name, sizeof internal - 1);
    while (text_starts(name, TEXT("_")))
        name = text_from(name, 1);
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        if (text_equal(name, text_of(functions[i])))
            return true;
    return false;
}

/* malloc, and the wrappers that every program has: xmalloc, g_realloc, std::allocator. */
bool name_is_allocating(struct text name) {
    static const char part[] = "alloc";
    enum { LENGTH = sizeof part - 1 };
    for (size_t i = 0; i + LENGTH <= name.length; i++)
        if (strncasecmp(name.data + i, part, LENGTH) == 0)
            return true;
    return is_mapping(name) || text_equal(name, TEXT("posix_memalign")) ||
           text_equal(name, TEXT("memalign")) || text_starts(name, TEXT("operator new")) ||
           text_starts(name, TEXT("[libwick-heap.so"));
}

bool tree_is_of_memory(const struct tree *tree) {
    static const char *const values[] = {"allocated", "allocations", "live",      "live-count",
                                         "peak",      "peak-count",  "temporary", "temporary-count",
                                         "freed",     "freed-count"};
    for (size_t i = 1; tree->recorded && i < tree->events.count; i++)
        for (size_t k = 0; k < COUNT_OF(values); k++)
            if (text_equal(strings_get(tree->strings, tree->events.items[i].name),
                           text_of(values[k])))
                return true;
    return false;
}

void flame_credit_sites(struct flame *flame) {
    struct flame_node *nodes = flame->nodes.items;
    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        uint32_t site = i;
        while (nodes[site].parent && !(nodes[nodes[site].parent].kinds & KIND_ROOT) &&
               name_is_allocating(name_unmarked(flame_name(flame, site))))
            site = nodes[site].parent;
        if (site == i)
            continue;
        nodes[site].self = saturating_add(nodes[site].self, nodes[i].self);
        nodes[site].self_before = saturating_add(nodes[site].self_before, nodes[i].self_before);
        nodes[i].self = nodes[i].self_before = 0;
    }
}
