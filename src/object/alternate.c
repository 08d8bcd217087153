/*
 * The file to which dwz moved the debug information that several files share (.gnu_debugaltlink).
 */
#include "object/inline.h"
#include "object/source.h"

/* Beside the debug file, as named; below --symfs, if that is where the file is. */
static void alternate_path(const struct objects *objects, const struct elf_image *image,
                           struct text name, struct buffer *path) {
    struct text from = text_of(image->file.path), root = symfs_of(objects);
    struct buffer whole = {0};
    size_t slash = text_find_last(from, '/');
    bool is_below = root.length && text_starts(from, root);
    if (is_below)
        from = text_from(from, root.length), slash -= root.length;
    if (name.length && name.data[0] != '/' && slash != SIZE_MAX)
        buffer_add(&whole, text_upto(from, slash + 1));
    buffer_add(&whole, name);
    path->count = 0;
    if (is_below) {
        path_set_below(path, root, buffer_text(&whole));
    } else {
        buffer_add(path, buffer_text(&whole));
        buffer_add_char(path, 0);
    }
    buffer_release(&whole);
}

/* Where build ids are, whatever --symfs says. */
static struct elf_image *open_by_id(struct object *object, const struct build_id *id) {
    struct buffer path = {0};
    char hex[2 * BUILD_ID_MAX + 1];
    if (id->size <= 1)
        return NULL;
    build_id_print(id, hex);
    buffer_printf(&path, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
    buffer_add_char(&path, 0);
    struct elf_image *image = object_open(object, path.items, id);
    buffer_release(&path);
    return image;
}

static struct elf_image *alternate_find(const struct search *search, const struct elf_image *image,
                                        struct text name) {
    struct buffer path = {0};
    alternate_path(search->objects, image, name, &path);
    enum file_trouble trouble = search->object->trouble;
    struct elf_image *found = object_open(search->object, path.items, &search->id);
    if (!found)
        found = source_build_id.open(search);
    if (!found)
        found = open_by_id(search->object, &search->id);
    if (!found)
        found = kept_alternate_open(search);
    search->object->trouble = trouble; /* another file's */
    buffer_release(&path);
    return found;
}

struct elf_image *alternate_open(struct objects *objects, struct object *object,
                                 const struct elf_image *image, struct build_id *id) {
    struct text bytes;
    *id = (struct build_id){0};
    if (!elf_section_bytes(image, ".gnu_debugaltlink", &bytes))
        return NULL;
    size_t end = text_find(bytes, 0);
    if (end == SIZE_MAX || bytes.length - end - 1 == 0 || bytes.length - end - 1 > BUILD_ID_MAX)
        return NULL;
    id->size = (uint8_t)(bytes.length - end - 1);
    memcpy(id->bytes, bytes.data + end + 1, id->size);
    return alternate_find(&(struct search){objects, object, *id}, image, text_upto(bytes, end));
}
