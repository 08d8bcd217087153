/*
 * The table of objects: each distinct identity once, at an address that does not move, with a lock of its own.
 */
#include "object/internal.h"

#include <stdlib.h>

static char *copy_or_null(const char *string) {
    return string ? memory_copy(string, strlen(string)) : NULL;
}

static char *default_cache(void) {
    const char *home = getenv("HOME");
    struct buffer path = {0};
    buffer_printf(&path, "%s/.debug", home ? home : "");
    buffer_add_char(&path, 0);
    return path.items;
}

struct objects *objects_new(const struct objects_options *options) {
    struct objects *objects = memory_zero(1, sizeof *objects);
    objects->options = *options;
    objects->options.symfs =
        options->symfs && *options->symfs ? copy_or_null(options->symfs) : NULL;
    objects->options.kallsyms = copy_or_null(options->kallsyms);
    objects->buildid_cache =
        options->buildid_cache ? copy_or_null(options->buildid_cache) : default_cache();
    objects->options.buildid_cache = objects->buildid_cache;
    vector_push(&objects->items, NULL);
    return objects;
}

static void object_free(struct object *object) {
    for (size_t i = 0; i < SLOT_COUNT; i++)
        if (object->extras[i].release)
            object->extras[i].release(object->extras[i].data);
    elf_image_free(object->image);
    elf_image_free(object->debug);
    free(object->trouble_path);
    pthread_mutex_destroy(&object->lock);
    free(object);
}

void objects_free(struct objects *objects) {
    if (!objects)
        return;
    for (size_t i = 1; i < objects->items.count; i++)
        object_free(objects->items.items[i]);
    vector_release(&objects->items);
    index_release(&objects->index);
    arena_release(&objects->arena);
    free((char *)(uintptr_t)objects->options.symfs);
    free((char *)(uintptr_t)objects->options.kallsyms);
    free(objects->buildid_cache);
    free(objects);
}

static uint64_t identity_hash(const struct object_identity *identity) {
    uint64_t hash = hash_bytes(identity->path.data, identity->path.length);
    hash = hash_mix(hash, hash_bytes(identity->build_id.bytes, identity->build_id.size));
    hash = hash_mix(hash, (uint64_t)identity->kind << 32 | (uint32_t)identity->pid);
    return hash_mix(hash, hash_mix(identity->start, identity->size));
}

static bool identity_equal(const struct object_identity *a, const struct object_identity *b) {
    return a->kind == b->kind && a->pid == b->pid && a->start == b->start && a->size == b->size &&
           text_equal(a->path, b->path) && build_id_equal(&a->build_id, &b->build_id);
}

uint32_t objects_add(struct objects *objects, const struct object_identity *identity) {
    uint64_t hash = identity_hash(identity);
    uint32_t id;
    for (struct probe p = index_probe(&objects->index, hash);
         (id = index_next(&objects->index, &p));)
        if (identity_equal(&objects->items.items[id]->identity, identity))
            return id;
    assert(objects->items.count < UINT32_MAX && identity->build_id.size <= BUILD_ID_MAX);
    struct object *object = memory_zero(1, sizeof *object);
    id = (uint32_t)objects->items.count;
    object->identity = *identity;
    object->identity.path = arena_copy(&objects->arena, identity->path);
    object->id = id;
    pthread_mutex_init(&object->lock, NULL);
    vector_push(&objects->items, object);
    index_add(&objects->index, hash, id);
    return id;
}

struct object *objects_object(const struct objects *objects, uint32_t id) {
    assert(id > 0 && id < objects->items.count);
    return objects->items.items[id];
}

const struct object_identity *objects_get(const struct objects *objects, uint32_t id) {
    return &objects_object(objects, id)->identity;
}

uint32_t objects_count(const struct objects *objects) {
    return (uint32_t)objects->items.count - 1;
}
