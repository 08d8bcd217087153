/*
 * What the recording itself has kept: a file, or the text of a perf map.
 */
#include "object/source.h"

#include <stdlib.h>

static struct elf_image *open_kept(const struct search *search) {
    struct object *object = search->object;
    struct buffer bytes = {0};
    struct elf_image *image = NULL;
    if (object->kept && object->kept(object->kept_context, object->kept_item, &bytes)) {
        char *path = memory_copy(object->identity.path.data, object->identity.path.length);
        image = elf_image_copy(bytes.items, bytes.count, path, NULL);
        free(path);
    }
    buffer_release(&bytes);
    return search_check(search, image);
}

static bool read_kept(const struct search *search) {
    struct object *object = search->object;
    return object->kept &&
           object->kept(object->kept_context, object->kept_item, &object->symbol_text);
}

const struct source source_kept = {.name = "the recording", .open = open_kept, .read = read_kept};
