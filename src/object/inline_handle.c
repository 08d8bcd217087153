/*
 * Handles on an object's debug information.
 *
 * All handles read the same mapped file, so one costs little more than the time to open it. But if sections are compressed, each handle would
 * unpack all of them, so such a file gets only one.
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
    if (!opened || !strings_end(dwarf_getelf(handle->main.dwarf))) {
        handle_close(handle);
        return NULL;
    }
    if (units->alternate && dwarf_source_open(&handle->alternate, units->alternate, lines) &&
        strings_end(dwarf_getelf(handle->alternate.dwarf)))
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
