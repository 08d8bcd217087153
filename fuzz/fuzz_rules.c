/* The files that users write for wick: rules of categories, colours, attributes of names. The first byte chooses
   which; the rest is parsed and applied to a few names, one of which is its own first line. */
#include "view/svg.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct text names[] = {{"std::vector<int>::push_back", 27},
                                    {"malloc", 6},
                                    {"a (b.c:12)", 10},
                                    {"f:b.c:12", 8},
                                    {"", 0}};

static void read_categories(struct text content) {
    char path[40];
    struct error error = {0};
    int file = memfd_create("rules", MFD_CLOEXEC);
    if (file < 0 || write(file, content.data, content.length) != (ssize_t)content.length)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    struct categories *categories = categories_new(path, NULL, &error);
    assert(!categories == !!error.kind);
    close(file);
    struct text rest = content, own = text_take_line(&rest);
    for (size_t i = 0; categories && i < COUNT_OF(names); i++) {
        categories_of(categories, names[i], TEXT("/lib/libc.so.6"), 0);
        categories_of(categories, own, names[i], 0);
    }
    categories_free(categories);
}

static void read_colours(struct text content, struct notes *notes) {
    struct error error = {0};
    struct out out;
    struct palette_map *map = palette_map_new();
    palette_map_read(map, content, notes);
    if (out_open(&out, "/dev/null", &error)) {
        palette_map_write(map, &out);
        out_commit(&out, &error);
    }
    palette_map_free(map);
}

static void read_attributes(struct text content, struct notes *notes) {
    struct name_attributes *attributes = name_attributes_new(content, notes);
    struct text rest = content, own = text_take_line(&rest);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        name_attributes_find(attributes, names[i]);
    name_attributes_find(attributes, own);
    name_attributes_free(attributes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct notes notes = {0};
    struct text content = {(const char *)data + 1, size - 1};
    if (size < 1)
        return 0;
    if (data[0] % 3 == 0)
        read_categories(content);
    else if (data[0] % 3 == 1)
        read_colours(content, &notes);
    else
        read_attributes(content, &notes);
    notes_release(&notes);
    return 0;
}
