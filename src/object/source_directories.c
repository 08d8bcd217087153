/*
 * Directories of debug files: those of --debug-dir and then /usr/lib/debug, by build id and by path; and .debug beside the file. The last two are
 * below --symfs if that is given.
 */
#include "object/source.h"

/* In each of --debug-dir, and then in /usr/lib/debug. */
static struct elf_image *open_in_directories(const struct search *search, struct text a,
                                             struct text b) {
    struct text rest = text_of(search->objects->options.debug_directories), root;
    struct elf_image *image = NULL;
    struct buffer path = {0};
    while (!image && debug_directory_next(&rest, &root)) {
        path_set(&path, root, a, b, TEXT(""));
        image = object_open(search->object, path.items, &search->id);
    }
    buffer_release(&path);
    return image ? image : search_open_below(search, TEXT("/usr/lib/debug"), a, b);
}

static struct elf_image *open_by_build_id(const struct search *search) {
    char hex[2 * BUILD_ID_MAX + 1];
    struct buffer name = {0};
    if (search->id.size < 2)
        return NULL;
    build_id_print(&search->id, hex);
    buffer_printf(&name, "/.build-id/%.2s/%s.debug", hex, hex + 2);
    struct elf_image *image = open_in_directories(search, buffer_text(&name), TEXT(""));
    buffer_release(&name);
    return image;
}

static struct elf_image *open_with_suffix(const struct search *search) {
    return open_in_directories(search, search->object->identity.path, TEXT(".debug"));
}

static struct elf_image *open_mirrored(const struct search *search) {
    return open_in_directories(search, search->object->identity.path, TEXT(""));
}

/* A package's /lib/… is /usr/lib/… since the two were merged. */
static struct elf_image *open_merged(const struct search *search) {
    struct text path = search->object->identity.path;
    if (!text_starts(path, TEXT("/usr/lib/")))
        return NULL;
    return open_in_directories(search, text_from(path, 4), TEXT(""));
}

static struct elf_image *open_beside(const struct search *search) {
    struct text path = search->object->identity.path, directory = directory_of(path);
    return search_open_below(search, directory, TEXT("/.debug"), text_from(path, directory.length));
}

const struct source source_build_id = {.name = "debug directory", .open = open_by_build_id},
                    source_suffix = {.name = "debug directory", .open = open_with_suffix},
                    source_mirrored = {.name = "debug directory", .open = open_mirrored},
                    source_merged = {.name = "debug directory", .open = open_merged},
                    source_beside = {.name = "debug directory", .open = open_beside};
