/*
 * What all sources share: paths, opening a file, and comparing its build id.
 */
#include "object/source.h"

#include <stdlib.h>
#include <sys/stat.h>

struct elf_image *sources_open(const struct search *search, const struct source *const *sources) {
    struct elf_image *image = NULL;
    for (; *sources && !image; sources++)
        image = (*sources)->open(search);
    return image;
}

bool sources_read(const struct search *search, const struct source *const *sources) {
    bool found = false;
    for (; *sources && !found; sources++)
        found = (*sources)->read(search);
    return found;
}

/* ---- paths ---- */

bool is_regular(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

struct text symfs_of(const struct objects *objects) {
    struct text symfs = text_of(objects->options.symfs);
    while (symfs.length && symfs.data[symfs.length - 1] == '/')
        symfs.length--;
    return symfs;
}

struct text directory_of(struct text path) {
    size_t slash = text_find_last(path, '/');
    return text_upto(path, slash == SIZE_MAX ? 0 : slash);
}

bool debug_directory_next(struct text *rest, struct text *directory) {
    *directory = TEXT("");
    while (rest->length && !directory->length) {
        size_t end = text_find(*rest, ':');
        *directory = end == SIZE_MAX ? *rest : text_upto(*rest, end);
        *rest = text_from(*rest, end == SIZE_MAX ? rest->length : end + 1);
        while (directory->length && directory->data[directory->length - 1] == '/')
            directory->length--;
    }
    return directory->length > 0;
}

/* By the letters, not by what is there: a link in --symfs is its owner's and may lead out of it, a recorded path may not. */
void path_set_below(struct buffer *path, struct text root, struct text rest) {
    path->count = 0;
    buffer_add(path, root);
    while (rest.length) {
        size_t end = text_find(rest, '/');
        struct text part = end == SIZE_MAX ? rest : text_upto(rest, end);
        rest = text_from(rest, end == SIZE_MAX ? rest.length : end + 1);
        if (text_equal(part, TEXT("..")))
            path->count =
                root.length + directory_of(text_from(buffer_text(path), root.length)).length;
        if (!part.length || text_equal(part, TEXT(".")) || text_equal(part, TEXT("..")))
            continue;
        buffer_add_char(path, '/');
        buffer_add(path, part);
    }
    buffer_add_char(path, 0);
}

void path_set(struct buffer *path, struct text root, struct text a, struct text b, struct text c) {
    struct buffer rest = {0};
    buffer_add(&rest, a);
    buffer_add(&rest, b);
    buffer_add(&rest, c);
    path->count = 0;
    if (root.length) {
        path_set_below(path, root, buffer_text(&rest));
    } else {
        buffer_add(path, buffer_text(&rest));
        buffer_add_char(path, 0);
    }
    buffer_release(&rest);
}

/* ---- opening ---- */

static void note_changed(struct object *object, const char *path) {
    if (!object->changed)
        object->changed = memory_copy(path, strlen(path));
}

/* Takes the image over: returns it if it has that build id. */
static struct elf_image *image_checked(struct object *object, struct elf_image *image,
                                       const struct build_id *id) {
    if (!image || !id->size || build_id_matches(id, &image->build_id))
        return image;
    if (file_changed(&image->file, NULL))
        note_changed(object, image->file.path);
    object->trouble = FILE_MISMATCH;
    elf_image_free(image);
    return NULL;
}

struct elf_image *object_open(struct object *object, const char *path, const struct build_id *id) {
    bool changed = false;
    struct elf_image *image =
        elf_image_open_watched(path, object->identity.kind == OBJECT_MODULE, &changed, NULL);
    if (changed)
        note_changed(object, path);
    return image_checked(object, image, id);
}

struct elf_image *search_check(const struct search *search, struct elf_image *image) {
    return image_checked(search->object, image, &search->id);
}

struct elf_image *search_open_below(const struct search *search, struct text a, struct text b,
                                    struct text c) {
    struct buffer path = {0};
    path_set(&path, symfs_of(search->objects), a, b, c);
    struct elf_image *image = object_open(search->object, path.items, &search->id);
    buffer_release(&path);
    return image;
}
