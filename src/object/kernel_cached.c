/*
 * Read the running kernel's list, and cache the lines of its own symbols until the next boot.
 *
 * The kernel takes some 50 ms to print its list, which is most of the cost of a small recording. Its own symbols do not change until the next
 * boot, so their lines are cached under the boot id. Symbols that come and go, those of modules, BPF programs and trampolines, are not cached: a
 * lookup of an address outside the kernel's own reads the whole list.
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

/* Then marks, blocks and text. */
struct list_head {
    uint64_t marks; /* bytes */
    uint64_t blocks;
    uint64_t text; /* bytes */
};

void kernel_list_pack(const struct kernel_list *list, struct text marks, struct buffer *head) {
    struct list_head sizes = {marks.length, list->blocks.count, list->own};
    payload_add(head, &sizes, sizeof sizes);
    payload_add(head, marks.data, marks.length);
    for (size_t i = 0; i < list->blocks.count; i++) {
        struct kernel_block block = list->blocks.items[i];
        struct text text = kernel_list_block(list, i);
        block.digest = digest_bytes(text.data, text.length);
        payload_add(head, &block, sizeof block);
    }
}

struct kernel_list *kernel_list_unpack(struct text payload, struct text *marks) {
    struct payload_reader reader = {payload};
    const struct list_head *sizes = payload_array(&reader, 1, sizeof *sizes);
    const char *lines = sizes ? payload_array(&reader, sizes->marks, 1) : NULL;
    const struct kernel_block *blocks =
        lines ? payload_array(&reader, sizes->blocks, sizeof *blocks) : NULL;
    const char *text = blocks ? payload_array(&reader, sizes->text, 1) : NULL;
    if (!text)
        return NULL;
    struct kernel_list *list = memory_zero(1, sizeof *list);
    *marks = (struct text){lines, sizes->marks};
    list->text = (struct text){text, sizes->text};
    list->own = sizes->text;
    list->blocks.items = (struct kernel_block *)(uintptr_t)blocks; /* only read from here on */
    list->blocks.count = sizes->blocks;
    list->tables = memory_zero(list->blocks.count + 1, sizeof *list->tables);
    return list;
}

void kernel_store_running(struct objects *objects, struct object *kernel) {
    const struct kernel_list *list = kernel->list;
    struct cache_key key;
    struct buffer head = {0};
    if (!objects->cache || !kernel->list_is_running || kernel->list_is_stored || !list ||
        !list->own || !kernel->marks.count)
        return;
    kernel->list_is_stored = true;
    kernel_list_pack(list, buffer_text(&kernel->marks), &head);
    if (key_of_running(&key, objects))
        disk_cache_write_with(objects->cache, buffer_text(&key.text), buffer_text(&head),
                              text_upto(list->text, list->own));
    buffer_release(&key.text);
    buffer_release(&head);
}

/* Find how far the kernel has moved since the recording. Return false if the recorded symbol is not among the marks. */
static bool find_shift(struct object *kernel, struct text marks) {
    uint64_t listed;
    if (!kernel->reference.length)
        return true;
    if (!kallsyms_find(marks, kernel->reference, &listed))
        return false;
    kernel->shift = listed - kernel->reference_address;
    return true;
}

static bool running_unpack(struct object *kernel, struct file *file, struct text payload) {
    struct text marks;
    struct kernel_list *list = kernel_list_unpack(payload, &marks);
    if (!list || !find_shift(kernel, marks)) {
        if (list)
            free(list->tables);
        free(list);
        return false;
    }
    list->cached = *file;
    kernel->list = list;
    buffer_add(&kernel->marks, marks);
    return true;
}

bool kernel_load_running(struct objects *objects, struct object *kernel, struct symbols *symbols) {
    const struct build_id *id = &kernel->identity.build_id;
    struct cache_key key;
    struct text payload;
    struct file file;
    if (!objects->cache || objects->options.quirks.symbols_by_arrival ||
        (id->size && !kernel_is_running(id)) || !kernel_list_is_shown())
        return false;
    bool fine = key_of_running(&key, objects) &&
                disk_cache_read(objects->cache, buffer_text(&key.text), &file, &payload);
    if (fine && !running_unpack(kernel, &file, payload)) {
        file_close(&file);
        fine = false;
    }
    if (fine) {
        symbols_finish(symbols);
        kernel->trouble = FILE_FINE;
    }
    buffer_release(&key.text);
    return fine;
}

static struct kernel_list *read_list(struct object *kernel, struct buffer *marks) {
    const struct build_id *id = &kernel->identity.build_id;
    int descriptor = -1;
    if (!id->size || kernel_is_running(id))
        descriptor = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return NULL;
    struct kernel_list *list = kernel_list_read_running(descriptor, kernel->reference, marks);
    if (!list)
        kernel->trouble = FILE_DENIED;
    close(descriptor);
    return list;
}

bool kernel_read_running(struct object *kernel, struct symbols *symbols) {
    kernel->list = read_list(kernel, &kernel->marks);
    kernel->list_is_running = kernel->list != NULL;
    if (!kernel->list_is_running)
        return false;
    find_shift(kernel, buffer_text(&kernel->marks));
    symbols_finish(symbols);
    kernel->trouble = FILE_FINE;
    return true;
}

/* A table of all symbols. A cached list has only the kernel's own. */
static struct symbols *whole_table(struct objects *objects, struct object *kernel) {
    struct symbols *whole = memory_alloc(sizeof *whole);
    struct buffer marks = {0};
    symbols_init(whole, &objects->options);
    if (kernel->list->cached.data)
        kernel->read_again = read_list(kernel, &marks);
    const struct kernel_list *all = kernel->list->cached.data ? kernel->read_again : kernel->list;
    if (all)
        kallsyms_load(whole, all->text);
    else
        symbols_finish(whole);
    buffer_release(&marks);
    return whole;
}

struct symbols *kernel_symbols_at(struct objects *objects, struct object *kernel,
                                  uint64_t address) {
    struct symbols *symbols = object_symbols(objects, kernel);
    if (!kernel->list)
        return symbols;
    struct symbols *part = kernel_list_find(kernel->list, address, symbols, &kernel->lock);
    if (part)
        return part;
    struct symbols *whole = atomic_load_explicit(&kernel->whole, memory_order_acquire);
    if (whole)
        return whole;
    pthread_mutex_lock(&kernel->lock);
    whole = atomic_load_explicit(&kernel->whole, memory_order_relaxed);
    if (!whole) {
        whole = whole_table(objects, kernel);
        atomic_store_explicit(&kernel->whole, whole, memory_order_release);
    }
    pthread_mutex_unlock(&kernel->lock);
    return whole;
}
