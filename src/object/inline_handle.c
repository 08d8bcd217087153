/*
 * Handles on an object's debug information.
 *
 * Each reads the same mapped file, so a handle costs little but time to open; one whose sections are compressed unpacks them all for
 * itself, so such a file gets only one.
 */
#include "object/inline.h"
#include "object/source.h"

#include <stdlib.h>
#include <sys/stat.h>

#define HANDLES_MAX 8

static void handle_close(struct dwarf_handle *handle) {
    dwarf_source_close(&handle->main);
    dwarf_source_close(&handle->alternate);
    free(handle);
}

static struct dwarf_handle *handle_open(const struct units *units) {
    bool lines = units->objects->options.lines;
    struct dwarf_handle *handle = memory_zero(1, sizeof *handle);
    bool opened = units->by_descriptor ? dwarf_source_open_file(&handle->main, units->image)
                                       : dwarf_source_open(&handle->main, units->image, lines);
    if (!opened) {
        handle_close(handle);
        return NULL;
    }
    if (units->alternate && dwarf_source_open(&handle->alternate, units->alternate, lines))
        dwarf_setalt(handle->main.dwarf, handle->alternate.dwarf);
    return handle;
}

struct dwarf_handle *handle_take(struct units *units) {
    pthread_mutex_lock(&units->pool_lock);
    if (units->handle_limit == 0)
        units->handle_limit = dwarf_is_compressed(units->image) ? 1 : HANDLES_MAX;
    while (!units->pool && units->handle_count >= units->handle_limit)
        pthread_cond_wait(&units->pool_freed, &units->pool_lock);
    struct dwarf_handle *handle = units->pool;
    if (handle)
        units->pool = handle->next;
    else
        units->handle_count++;
    pthread_mutex_unlock(&units->pool_lock);
    if (!handle && !(handle = handle_open(units))) {
        pthread_mutex_lock(&units->pool_lock);
        units->handle_count--;
        pthread_cond_signal(&units->pool_freed);
        pthread_mutex_unlock(&units->pool_lock);
    }
    if (handle)
        file_watch(&units->splits_changed);
    return handle;
}

void handle_give(struct units *units, struct dwarf_handle *handle) {
    file_watch(NULL);
    pthread_mutex_lock(&units->pool_lock);
    handle->next = units->pool;
    units->pool = handle;
    pthread_cond_signal(&units->pool_freed);
    pthread_mutex_unlock(&units->pool_lock);
}

void handle_drop(struct units *units, struct dwarf_handle *handle) {
    file_watch(NULL);
    pthread_mutex_lock(&units->pool_lock);
    units->handle_count--;
    pthread_cond_signal(&units->pool_freed);
    pthread_mutex_unlock(&units->pool_lock);
    handle_close(handle);
}

void handles_release(struct units *units) {
    for (struct dwarf_handle *handle = units->pool, *next; handle; handle = next) {
        next = handle->next;
        handle_close(handle);
    }
}

bool handles_changed(const struct units *units) {
    struct stat status;
    for (const struct dwarf_handle *handle = units->pool; handle; handle = handle->next)
        if (handle->main.opened && fstat(handle->main.descriptor, &status) == 0 &&
            (uint64_t)status.st_size < units->image->size)
            return true;
    return false;
}

/* ---- dwz ---- */

/* Beside the debug file, as named; below --symfs, if that is where the file is. */
static void alternate_path(const struct units *units, struct text name, struct buffer *path) {
    struct text from = text_of(units->image->file.path), root = symfs_of(units->objects);
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

/* Else where build ids are. */
static struct elf_image *alternate_find(const struct units *units, struct text name,
                                        const struct build_id *id) {
    struct buffer path = {0};
    alternate_path(units, name, &path);
    enum file_trouble trouble = units->object->trouble;
    struct elf_image *image = object_open(units->object, path.items, id);
    if (!image)
        image = source_build_id.open(&(struct search){units->objects, units->object, *id});
    if (!image && id->size > 1) {
        char hex[2 * BUILD_ID_MAX + 1];
        build_id_print(id, hex);
        path.count = 0;
        buffer_printf(&path, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
        buffer_add_char(&path, 0);
        image = object_open(units->object, path.items, id);
    }
    units->object->trouble = trouble; /* another file's */
    buffer_release(&path);
    return image;
}

/* Before the first handle is opened. */
void units_find_alternate(struct units *units) {
    struct text bytes;
    if (!units->image || !elf_section_bytes(units->image, ".gnu_debugaltlink", &bytes))
        return;
    size_t end = text_find(bytes, 0);
    if (end == SIZE_MAX || bytes.length - end - 1 == 0 || bytes.length - end - 1 > BUILD_ID_MAX)
        return;
    struct build_id id = {.size = (uint8_t)(bytes.length - end - 1)};
    memcpy(id.bytes, bytes.data + end + 1, id.size);
    units->alternate = alternate_find(units, text_upto(bytes, end), &id);
    units->alternate_missing = !units->alternate;
}
