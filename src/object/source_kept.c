/*
 * Files that the recording contains: a file, the text of a perf map, names of kernel functions, and with --keep=all debug files and the kernel's
 * list.
 */
#include "object/source.h"

#include <stdlib.h>

/* Takes the bytes over. */
static struct elf_image *image_of_bytes(struct buffer *bytes, struct text named) {
    char *path = memory_copy(named.data, named.length);
    struct elf_image *image = elf_image_take((uint8_t *)bytes->items, bytes->count, path, NULL);
    if (image)
        image->is_kept = true;
    free(path);
    *bytes = (struct buffer){0};
    return image;
}

static struct elf_image *open_kept(const struct search *search) {
    struct object *object = search->object;
    struct elf_image *image = NULL;
    struct buffer bytes = {0};
    if (object->kept && object->kept(object->kept_context, object->kept_item, &bytes))
        image = image_of_bytes(&bytes, object->identity.path);
    buffer_release(&bytes);
    return search_check(search, image);
}

static bool read_kept(const struct search *search) {
    struct object *object = search->object;
    return object->kept &&
           object->kept(object->kept_context, object->kept_item, &object->symbol_text);
}

void objects_set_parts(struct objects *objects, objects_part_read *read, void *context) {
    objects->read_part = read;
    objects->part_context = context;
}

static bool part_read(const struct objects *objects, enum object_part part,
                      const struct object_identity *identity, struct buffer *bytes) {
    return objects->read_part && objects->read_part(objects->part_context, part, identity, bytes);
}

static struct elf_image *open_debug(const struct search *search) {
    const struct object_identity *identity = &search->object->identity;
    struct elf_image *image = NULL;
    struct buffer bytes = {0};
    if (part_read(search->objects, PART_DEBUG, identity, &bytes))
        image = image_of_bytes(&bytes, identity->path);
    buffer_release(&bytes);
    return search_check(search, image);
}

struct elf_image *kept_alternate_open(const struct search *search) {
    struct object_identity identity = {.kind = OBJECT_FILE, .build_id = search->id};
    struct elf_image *image = NULL;
    struct buffer bytes = {0};
    if (part_read(search->objects, PART_DEBUG, &identity, &bytes))
        image = image_of_bytes(&bytes, TEXT("debug information"));
    buffer_release(&bytes);
    return search_check(search, image);
}

static bool read_list_part(const struct search *search, enum object_part part) {
    struct object *kernel = search->object;
    return part_read(search->objects, part, &kernel->identity, &kernel->symbol_text) &&
           kernel_list_is_good(kernel);
}

static bool read_list(const struct search *search) {
    return read_list_part(search, PART_LIST);
}

static bool read_names(const struct search *search) {
    return read_list_part(search, PART_NAMES);
}

const struct source source_kept = {.name = "the recording", .open = open_kept, .read = read_kept},
                    source_kept_debug = {.name = "the recording", .open = open_debug},
                    source_kept_list = {.name = "the recording", .read = read_list},
                    source_kept_names = {.name = "the recording", .read = read_names};
