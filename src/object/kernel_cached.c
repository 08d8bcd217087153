/*
 * A cache of the running kernel's own symbols, valid until the next boot.
 *
 * The kernel takes some 50 ms to print its list, which is most of the cost of a small recording. Its own symbols do not change until the next
 * boot, so they are cached under the boot id. Symbols that come and go, those of modules, BPF programs and trampolines, are not cached: a lookup
 * of an address outside the kernel's own reads the whole list.
 *
 * The list reveals the kernel's address, which is not public: the cache is used only if the kernel shows the list to this process now.
 */
#include "object/disk_cache.h"
#include "object/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

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

/* Before the table, the kernel's marks. */
struct running_head {
    uint64_t lines; /* bytes */
};

void kernel_store_running(struct objects *objects, struct object *kernel) {
    const struct symbols *whole = atomic_load(&kernel->symbols);
    struct cache_key key;
    struct buffer payload = {0};
    if (!objects->cache || objects->options.quirks.symbols_by_arrival || kernel->list_is_stored ||
        !kernel->list_is_running || kernel->is_partial || !whole || whole->pieces.count)
        return;
    kernel->list_is_stored = true;
    /* What others write to while they ask for names is left out. */
    struct symbols own = {.options = whole->options,
                          .keep_names = whole->keep_names,
                          .entries = {whole->entries.items, whole->entries.count, 0},
                          .made = whole->made};
    memcpy(own.sources, whole->sources, sizeof own.sources);
    struct running_head head = {kernel->marks.count};
    payload_add(&payload, &head, sizeof head);
    payload_add(&payload, kernel->marks.items, kernel->marks.count);
    if (key_of_running(&key, objects) && kernel->marks.count && symbols_pack_kernel(&own, &payload))
        disk_cache_write(objects->cache, buffer_text(&key.text), buffer_text(&payload));
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
    buffer_add(&kernel->marks, (struct text){lines, head->lines});
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

static bool read_list(struct object *kernel, struct symbols *symbols, struct buffer *marks) {
    const struct build_id *id = &kernel->identity.build_id;
    int list = -1;
    if (!id->size || kernel_is_running(id))
        list = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    bool fine = list >= 0 && kallsyms_load_running(symbols, list, kernel->reference, marks);
    if (list >= 0 && !fine)
        kernel->trouble = FILE_DENIED;
    if (list >= 0)
        close(list);
    return fine;
}

bool kernel_read_running(struct object *kernel, struct symbols *symbols) {
    uint64_t listed;
    kernel->list_is_running = read_list(kernel, symbols, &kernel->marks);
    if (!kernel->list_is_running)
        return false;
    if (kernel->reference.length &&
        kallsyms_find(buffer_text(&kernel->marks), kernel->reference, &listed))
        kernel->shift = listed - kernel->reference_address;
    kernel->trouble = FILE_FINE;
    return true;
}

/* The entry and the one behind it are the kernel's own, so nothing that is not kept can be between them. */
static bool is_certain(const struct symbols *symbols, uint32_t number) {
    return number != SYMBOLS_NONE && number + 1 < symbols->entries.count;
}

static struct symbols *whole_list(struct objects *objects, struct object *kernel) {
    struct symbols *whole = memory_alloc(sizeof *whole);
    struct buffer marks = {0};
    symbols_init(whole, &objects->options);
    if (!read_list(kernel, whole, &marks))
        symbols_finish(whole);
    buffer_release(&marks);
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
