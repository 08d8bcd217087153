/*
 * The running kernel's own symbols, kept for as long as it runs.
 *
 * The kernel takes some 50 ms to print its list, most of what a small recording costs. Its own symbols do not change until the next boot, so they
 * are kept under the boot's id. What comes and goes, the symbols of modules, BPF programs and trampolines, is not kept: whoever asks for an
 * address that is none of the kernel's own gets the list read as a whole.
 *
 * The list shows where the kernel is, which not everybody may know: it is used only by a reader to whom the kernel shows it now.
 */
#include "object/disk_cache.h"
#include "object/source.h"

#include <stdlib.h>

static bool key_of_running(struct cache_key *key, const struct objects *objects) {
    char boot[64] = "", hex[2 * BUILD_ID_MAX + 1];
    struct build_id id;
    cache_key_init(key, &objects->options, "running kernel");
    bool known = file_read_small("/proc/sys/kernel/random/boot_id", boot, sizeof boot) && *boot &&
                 object_kernel_build_id(&id);
    if (known) {
        build_id_print(&id, hex);
        buffer_printf(&key->text, "boot %s\nkernel %s\n", boot, hex);
    }
    return known && key->is_usable;
}

/* Before the table, the lines of the symbols that a recording may refer to: a better name for the same address has their place in the table. */
struct running_head {
    uint64_t lines; /* bytes */
};

static bool lines_pack(struct text list, struct buffer *payload) {
    static const struct text names[] = {TEXT("_text"), TEXT("_stext")};
    struct buffer lines = {0};
    uint64_t address;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (kallsyms_find(list, names[i], &address))
            buffer_printf(&lines, "%016llx T %.*s\n", (unsigned long long)address,
                          TEXT_ARGS(names[i]));
    struct running_head head = {lines.count};
    bool any = lines.count > 0;
    payload_add(payload, &head, sizeof head);
    payload_add(payload, lines.items, lines.count);
    buffer_release(&lines);
    return any;
}

void kernel_store_running(struct objects *objects, const struct object *kernel) {
    const struct symbols *whole = atomic_load(&kernel->symbols);
    struct cache_key key;
    struct buffer payload = {0};
    if (!kernel->list_is_running || kernel->is_partial || !whole || whole->pieces.count)
        return;
    struct symbols own = {.options = whole->options, .keep_names = whole->keep_names};
    memcpy(own.sources, whole->sources, sizeof own.sources);
    vector_reserve(&own.entries, whole->entries.count + 1);
    for (size_t i = 0; i < whole->entries.count; i++)
        if (!(whole->entries.items[i].flags & ENTRY_MODULE))
            vector_push(&own.entries, whole->entries.items[i]);
    if (key_of_running(&key, objects) && lines_pack(object_list(kernel), &payload) &&
        symbols_pack(&own, false, &payload))
        disk_cache_write(objects->cache, buffer_text(&key.text), buffer_text(&payload));
    vector_release(&own.entries);
    buffer_release(&key.text);
    buffer_release(&payload);
}

static bool running_unpack(struct object *kernel, struct symbols *symbols, struct text payload) {
    struct payload_reader reader = {payload};
    const struct running_head *head = payload_array(&reader, 1, sizeof *head);
    const char *lines = head ? payload_array(&reader, head->lines, 1) : NULL;
    uint64_t listed = 0;
    if (!lines || (kernel->reference.length &&
                   !kallsyms_find((struct text){lines, head->lines}, kernel->reference, &listed)))
        return false;
    if (!symbols_unpack(symbols, reader.rest))
        return false;
    if (kernel->reference.length)
        kernel->shift = listed - kernel->reference_address;
    return true;
}

bool kernel_load_running(struct objects *objects, struct object *kernel, struct symbols *symbols) {
    const struct build_id *id = &kernel->identity.build_id;
    struct cache_key key;
    struct text payload;
    if (!objects->cache || objects->options.quirks.symbols_by_arrival ||
        (id->size && !kernel_is_running(id)) || !kernel_list_is_shown())
        return false;
    bool fine = key_of_running(&key, objects) &&
                disk_cache_read(objects->cache, buffer_text(&key.text), &symbols->cached, &payload);
    if (fine && !running_unpack(kernel, symbols, payload)) {
        file_close(&symbols->cached);
        symbols->cached = (struct file){0};
        fine = false;
    }
    if (fine) {
        symbols_finish(symbols);
        kernel->trouble = FILE_FINE;
    }
    kernel->is_partial = fine;
    buffer_release(&key.text);
    return fine;
}

/* The entry and the one behind it are the kernel's own, so nothing that is not kept can be between them. */
static bool is_certain(const struct symbols *symbols, uint32_t number) {
    return number != SYMBOLS_NONE && number + 1 < symbols->entries.count;
}

static struct symbols *whole_list(struct objects *objects, struct object *kernel) {
    struct search search = {objects, kernel, kernel->identity.build_id};
    struct symbols *whole = memory_alloc(sizeof *whole);
    symbols_init(whole, &objects->options);
    if (source_kallsyms_running.read(&search))
        kallsyms_load(whole, object_list(kernel));
    else
        symbols_finish(whole);
    return whole;
}

struct symbols *kernel_symbols_at(struct objects *objects, struct object *kernel,
                                  uint64_t address) {
    struct symbols *symbols = object_symbols(objects, kernel);
    if (!kernel->is_partial || is_certain(symbols, symbols_find(symbols, address)))
        return symbols;
    struct symbols *whole = atomic_load_explicit(&kernel->whole, memory_order_acquire);
    if (whole)
        return whole;
    pthread_mutex_lock(&kernel->lock);
    whole = atomic_load_explicit(&kernel->whole, memory_order_relaxed);
    if (!whole) {
        whole = whole_list(objects, kernel);
        atomic_store_explicit(&kernel->whole, whole, memory_order_release);
    }
    pthread_mutex_unlock(&kernel->lock);
    return whole;
}
