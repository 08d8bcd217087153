/*
 * .gnu_debuglink: the name of the debug file and its checksum, which is the only proof if there is no build id.
 */
#include "object/source.h"

#include <zlib.h>

/* .gnu_debuglink: a file name, NUL, padding to 4, CRC-32 of that file. */
static bool debuglink_read(const struct elf_image *image, struct text *name, uint32_t *checksum) {
    struct text bytes;
    if (!elf_section_bytes(image, ".gnu_debuglink", &bytes))
        return false;
    size_t end = text_find(bytes, 0);
    size_t at = end == SIZE_MAX ? SIZE_MAX : (end + 4) & ~(size_t)3;
    if (end == 0 || at > bytes.length || bytes.length - at < 4)
        return false;
    *name = text_upto(bytes, end);
    *checksum = load_u32(bytes.data + at);
    return true;
}

static bool path_of_debuglink(struct buffer *path, const struct objects *objects,
                              const struct object *object) {
    static const struct text system = TEXT("/usr/lib/debug"), none = TEXT("");
    struct text root = symfs_of(objects), recorded = object->identity.path;
    struct elf_image *opened = NULL;
    const struct elf_image *image = object->image;
    struct text name;
    uint32_t checksum;
    if (!image) {
        path_set(path, root, recorded, none, none);
        image = opened = elf_image_open(path->items, false, NULL);
    }
    bool found = false;
    if (image && debuglink_read(image, &name, &checksum)) {
        struct text directory = directory_of(recorded);
        const struct text roots[] = {root, root, system};
        const struct text between[] = {TEXT("/"), TEXT("/.debug/"), TEXT("/")};
        if (name.data[0] == '/') { /* perf opens it wherever it is */
            path_set(path, objects->options.quirks.debuglink_beyond_symfs ? none : root, name, none,
                     none);
            found = is_regular(path->items);
        }
        struct text rest = text_of(objects->options.debug_directories), given;
        while (!found && debug_directory_next(&rest, &given)) {
            path_set(path, given, directory, TEXT("/"), name);
            found = is_regular(path->items);
        }
        for (size_t i = 0; i < COUNT_OF(roots) && !found; i++) {
            path_set(path, roots[i], directory, between[i], name);
            found = is_regular(path->items);
        }
    }
    elf_image_free(opened);
    return found;
}

static struct elf_image *open_linked(const struct search *search) {
    struct buffer path = {0};
    struct elf_image *image = NULL;
    if (path_of_debuglink(&path, search->objects, search->object))
        image = object_open(search->object, path.items, &search->id);
    buffer_release(&path);
    return image;
}

const struct source source_debuglink = {.name = "debug link", .open = open_linked};

/* Without a build id the checksum of .gnu_debuglink is the only proof; it costs reading the whole file. */
bool debuglink_proves(const struct elf_image *image, const struct elf_image *debug) {
    struct text name;
    uint32_t checksum;
    if (!debuglink_read(image, &name, &checksum))
        return false;
    uLong sum = crc32(0, Z_NULL, 0);
    for (size_t done = 0, part; done < debug->size; done += part) {
        part = debug->size - done < 1u << 30 ? debug->size - done : 1u << 30;
        sum = crc32(sum, debug->data + done, (uInt)part);
    }
    return sum == checksum;
}
