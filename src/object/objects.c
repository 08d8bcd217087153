/*
 * The table of objects: each distinct identity once, at an address that does not move, with a lock of its own.
 */
#include "object/disk_cache.h"
#include "object/internal.h"

#include <stdlib.h>
#include <sys/mman.h>

static char *copy_or_null(const char *string) {
    return string ? memory_copy(string, strlen(string)) : NULL;
}

/* With --symfs, perf takes the cache for one more file below it. An id is proof enough for us. */
static char *default_cache(const struct objects_options *options) {
    const char *home = getenv("HOME");
    struct buffer path = {0};
    if (options->quirks.symfs_has_cache && options->symfs && *options->symfs)
        home = options->symfs;
    buffer_printf(&path, "%s/.debug", home ? home : "");
    buffer_add_char(&path, 0);
    return path.items;
}

struct objects *objects_new(const struct objects_options *options) {
    struct objects *objects = memory_zero(1, sizeof *objects);
    const char *symfs = options->symfs && *options->symfs ? options->symfs : NULL;
    objects->options = *options;
    objects->options.symfs = copy_or_null(symfs);
    objects->options.kallsyms = copy_or_null(options->kallsyms);
    objects->options.vmlinux = copy_or_null(options->vmlinux);
    objects->options.debug_directories = copy_or_null(options->debug_directories);
    objects->buildid_cache =
        options->buildid_cache ? copy_or_null(options->buildid_cache) : default_cache(options);
    objects->options.buildid_cache = objects->buildid_cache;
    vector_push(&objects->items, NULL);
    objects->prefetcher = prefetcher_new();
    objects->cache = disk_cache_open(options->cache, 0);
    objects->options.cache = NULL; /* the caller's */
    return objects;
}

static void object_free(struct object *object) {
    for (size_t i = 0; i < SLOT_COUNT; i++)
        if (object->extras[i].release)
            object->extras[i].release(object->extras[i].data);
    struct symbols *symbols = atomic_load(&object->symbols);
    if (symbols)
        symbols_release(symbols);
    free(symbols);
    symbols = atomic_load(&object->whole);
    if (symbols)
        symbols_release(symbols);
    free(symbols);
    kernel_list_free(object->list);
    kernel_list_free(object->read_again);
    elf_image_free(object->symbol_images[0]);
    elf_image_free(object->symbol_images[1]);
    file_close(&object->symbol_file);
    buffer_release(&object->symbol_text);
    buffer_release(&object->marks);
    elf_image_free(object->image);
    elf_image_free(object->debug);
    made_free(object->made);
    free(object->changed);
    free(object->undelivered);
    pthread_mutex_destroy(&object->lock);
    free(object);
}

void objects_leave(struct objects *objects) {
    prefetcher_free(objects->prefetcher); /* which may still read */
    disk_cache_free(objects->cache);
}

void objects_free(struct objects *objects) {
    if (!objects)
        return;
    objects_leave(objects);
    for (size_t i = 1; i < objects->items.count; i++)
        object_free(objects->items.items[i]);
    vector_release(&objects->items);
    index_release(&objects->index);
    index_release(&objects->made);
    arena_release(&objects->arena);
    free((char *)(uintptr_t)objects->options.symfs);
    free((char *)(uintptr_t)objects->options.kallsyms);
    free((char *)(uintptr_t)objects->options.vmlinux);
    free((char *)(uintptr_t)objects->options.debug_directories);
    free(objects->buildid_cache);
    free(objects);
}

static uint64_t identity_hash(const struct object_identity *identity) {
    uint64_t hash = hash_bytes(identity->path.data, identity->path.length);
    hash = hash_mix(hash, hash_bytes(identity->build_id.bytes, identity->build_id.size));
    hash = hash_mix(hash, (uint64_t)identity->kind << 32 | (uint32_t)identity->pid);
    hash = hash_mix(hash, hash_mix(identity->start, identity->size));
    if (identity->inode)
        hash = hash_mix(hash, hash_mix(identity->inode, identity->generation));
    return identity->mount ? hash_mix(hash, identity->mount) : hash;
}

static bool identity_equal(const struct object_identity *a, const struct object_identity *b) {
    return a->kind == b->kind && a->pid == b->pid && a->start == b->start && a->size == b->size &&
           a->mount == b->mount && a->inode == b->inode && a->generation == b->generation &&
           text_equal(a->path, b->path) && build_id_equal(&a->build_id, &b->build_id);
}

/* ---- what is shown ---- */

/* /lib/modules/…/snd-pcm.ko.xz is [snd_pcm] to the kernel. */
static struct text module_shown(struct arena *arena, struct text path) {
    if (text_starts(path, TEXT("[")))
        return path;
    size_t slash = text_find_last(path, '/');
    struct text name = slash == SIZE_MAX ? path : text_from(path, slash + 1);
    size_t suffix = text_search(name, TEXT(".ko"));
    name = suffix == SIZE_MAX ? name : text_upto(name, suffix);
    struct buffer shown = {0};
    buffer_printf(&shown, "[%.*s]", TEXT_ARGS(name));
    for (size_t i = 0; i < shown.count; i++)
        if (shown.items[i] == '-')
            shown.items[i] = '_';
    struct text copy = arena_copy(arena, buffer_text(&shown));
    buffer_release(&shown);
    return copy;
}

static struct text perfmap_shown(struct arena *arena, int32_t pid) {
    struct buffer shown = {0};
    buffer_printf(&shown, "/tmp/perf-%d.map", pid);
    struct text copy = arena_copy(arena, buffer_text(&shown));
    buffer_release(&shown);
    return copy;
}

static struct text shown_of(struct arena *arena, const struct object_identity *identity) {
    size_t bracket;
    switch (identity->kind) {
    case OBJECT_KERNEL: /* [kernel.kallsyms]_stext */
        bracket = text_find(identity->path, ']');
        return bracket == SIZE_MAX ? identity->path : text_upto(identity->path, bracket + 1);
    case OBJECT_MODULE:
        return module_shown(arena, identity->path);
    case OBJECT_PERFMAP:
        return perfmap_shown(arena, identity->pid);
    default:
        return identity->path;
    }
}

struct text objects_shown(const struct objects *objects, uint32_t id) {
    return objects_object(objects, id)->shown;
}

/* ---- adding ---- */

static uint64_t pid_hash(int32_t pid) {
    return hash_mix((uint32_t)pid, 9);
}

bool objects_have_made(const struct objects *objects, int32_t pid) {
    uint32_t id;
    for (struct probe p = index_probe(&objects->made, pid_hash(pid));
         (id = index_next(&objects->made, &p));)
        if (objects->items.items[id]->identity.pid == pid)
            return true;
    return false;
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
    object->shown = shown_of(&objects->arena, &object->identity);
    object->id = id;
    if (identity->kind == OBJECT_KERNEL && !objects->kernel)
        objects->kernel = id;
    if (identity->kind == OBJECT_MADE && !objects_have_made(objects, identity->pid))
        index_add(&objects->made, pid_hash(identity->pid), id);
    lock_init_brief(&object->lock);
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

/* ---- files that shrank ---- */

static bool image_changed(const struct elf_image *image, struct error *error) {
    return image && file_changed(&image->file, error);
}

static bool object_changed(const struct object *object, struct error *error) {
    if (object->changed)
        return !error_set(error, ERROR_INPUT, "%s: changed while reading", object->changed);
    return image_changed(object->image, error) || image_changed(object->debug, error) ||
           image_changed(object->symbol_images[0], error) ||
           image_changed(object->symbol_images[1], error) ||
           file_changed(&object->symbol_file, error) || object_inlines_changed(object, error);
}

bool objects_changed(const struct objects *objects, struct error *error) {
    bool changed = false;
    for (size_t i = 1; i < objects->items.count && !changed; i++) {
        struct object *object = objects->items.items[i];
        pthread_mutex_lock(&object->lock); /* reading ahead may still be under way */
        changed = object_changed(object, error);
        pthread_mutex_unlock(&object->lock);
    }
    return changed;
}

void objects_set_kernel_reference(struct objects *objects, uint32_t id, struct text symbol,
                                  uint64_t address) {
    struct object *kernel = objects_object(objects, id);
    /* Zero is what a recorder that may not see addresses writes. */
    if (!address)
        return;
    kernel->reference = arena_copy(&objects->arena, symbol);
    kernel->reference_address = address;
}

uint32_t objects_copy(struct objects *to, const struct objects *from, uint32_t id) {
    const struct object *object = objects_object(from, id);
    uint32_t copy = objects_add(to, &object->identity);
    if (object->reference_address)
        objects_set_kernel_reference(to, copy, object->reference, object->reference_address);
    if (object->name.length)
        objects_set_name(to, copy, object->name);
    if (object->made)
        objects_set_made(to, copy, made_share(object->made));
    return copy;
}

/* A spooled file has no pages of its own to come back from. */
static void let_go_of_pages(const struct elf_image *image) {
    if (image && !image->copy && image->file.data && !image->file.spooled)
        madvise((void *)image->file.data, image->file.size, MADV_DONTNEED);
}

void objects_let_go_of_pages(struct objects *objects) {
    for (size_t i = 1; i < objects->items.count; i++) {
        const struct object *object = objects->items.items[i];
        let_go_of_pages(object->image);
        let_go_of_pages(object->debug);
        for (size_t k = 0; k < COUNT_OF(object->symbol_images); k++)
            let_go_of_pages(object->symbol_images[k]);
    }
}

void objects_detach(struct objects *objects) {
    for (size_t i = 1; i < objects->items.count; i++) {
        struct object *object = objects->items.items[i];
        if (object->kept)
            object_symbols(objects, object); /* opens the file, too, or reads the map */
        object->kept = NULL;
    }
    objects_set_parts(objects, NULL, NULL);
}

/* A perf map that was kept later contains more. */
static void forget_map(struct object *object) {
    struct symbols *symbols = atomic_exchange(&object->symbols, NULL);
    if (symbols)
        symbols_release(symbols);
    free(symbols);
    file_close(&object->symbol_file);
    buffer_release(&object->symbol_text);
    object->trouble = FILE_FINE;
}

void objects_set_kept(struct objects *objects, uint32_t id, object_bytes *read, void *context,
                      uint32_t item) {
    struct object *object = objects_object(objects, id);
    bool again = object->kept == read && object->kept_item == item;
    if (object->identity.kind == OBJECT_PERFMAP && !again)
        forget_map(object);
    object->kept = read;
    object->kept_context = context;
    object->kept_item = item;
}

void objects_set_name(struct objects *objects, uint32_t id, struct text name) {
    objects_object(objects, id)->name = arena_copy(&objects->arena, name);
}
