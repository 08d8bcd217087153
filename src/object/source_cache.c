/*
 * perf's build-id cache, ~/.debug: files that ran, their debug files, and kernels' lists of symbols, by build id.
 */
#include "object/source.h"

/* An entry of the cache is a directory; once it was the file itself. */
static void path_in_cache(struct buffer *path, const char *cache, const char *hex,
                          const char *name) {
    path->count = 0;
    buffer_printf(path, "%s/.build-id/%.2s/%s", cache, hex, hex + 2);
    buffer_add_char(path, 0);
    if (is_regular(path->items))
        return;
    path->count--;
    buffer_printf(path, "/%s", name);
    buffer_add_char(path, 0);
}

static struct elf_image *open_named(const struct search *search, const char *name) {
    char hex[2 * BUILD_ID_MAX + 1];
    struct buffer path = {0};
    if (search->id.size < 2)
        return NULL;
    build_id_print(&search->id, hex);
    path_in_cache(&path, search->objects->buildid_cache, hex,
                  search->object->identity.kind == OBJECT_VDSO ? "vdso" : name);
    struct elf_image *image = object_open(search->object, path.items, &search->id);
    buffer_release(&path);
    return image;
}

static struct elf_image *open_file(const struct search *search) {
    return open_named(search, "elf");
}

static struct elf_image *open_debug(const struct search *search) {
    return open_named(search, "debug");
}

static bool read_kallsyms(const struct search *search) {
    char hex[2 * BUILD_ID_MAX + 1];
    struct buffer path = {0};
    bool fine = false;
    if (!search->id.size)
        return false;
    build_id_print(&search->id, hex);
    for (int old = 0; old < 2 && !fine; old++) {
        path.count = 0;
        buffer_printf(&path, "%s/[kernel.kallsyms]/%s%s", search->objects->buildid_cache, hex,
                      old ? "" : "/kallsyms");
        buffer_add_char(&path, 0);
        fine = kernel_list_read(search->object, path.items);
    }
    buffer_release(&path);
    return fine;
}

const struct source source_cache = {.name = "build-id cache", .open = open_file},
                    source_cache_debug = {.name = "build-id cache", .open = open_debug},
                    source_kallsyms_cache = {.name = "build-id cache", .read = read_kallsyms};
