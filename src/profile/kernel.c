/*
 * The kernel's mapping ends with its text, but boot code lies after its data, and the stacks of idle CPUs begin there. So every address with a
 * kernel symbol belongs to the kernel. perf finds them because it extends the mapping over all symbols once it has loaded them.
 */
#include "profile/reading.h"

bool reading_is_kernel(const struct reading *reading, uint64_t address) {
    struct symbol symbol;
    return reading->kernel_object && !reading->options->no_names &&
           objects_symbol(reading->profile->objects, reading->kernel_object, address, &symbol);
}

/* Once for each location that nothing was mapped at. */
void reading_find_kernel(struct reading *reading) {
    struct tree *tree = reading->profile->tree;
    for (size_t i = 1; i < tree->locations.count && !reading->options->quirks.kernel_while_mapped;
         i++) {
        struct location *location = &tree->locations.items[i];
        if (location->mode == MODE_KERNEL && !location->object && !location->function &&
            reading_is_kernel(reading, location_within(location)))
            location->object = reading->kernel_object;
    }
}
