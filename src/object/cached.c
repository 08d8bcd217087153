/*
 * Symbol tables from the disk cache, and into it.
 *
 * A table is kept as it is once it was sealed: entries and pieces, which are used in place, and the names of those entries that are left, so that
 * the string sections of large files are not touched. perf's way of laying them out is not kept.
 */
#include "object/disk_cache.h"
#include "object/internal.h"

/* Below this, reading the file again is as fast. */
enum { ENTRIES_FEWEST = 64 };

struct symbols_head {
    uint64_t entries;
    uint64_t pieces;
    uint64_t names; /* bytes */
    uint8_t terminator;
    uint8_t tabs;
    uint8_t keep_names;
    uint8_t unused[5];
};

static struct text whole_name(const struct symbols *symbols, const struct entry *entry) {
    const struct symbols_source *source = &symbols->sources[entry->source];
    if (entry->name >= source->bytes.length)
        return TEXT("");
    struct text rest = text_from(source->bytes, entry->name);
    size_t end = text_find(rest, source->terminator);
    return end == SIZE_MAX ? rest : text_upto(rest, end);
}

/* Puts the names behind what is in the payload, and where each is into the entries at `entries_at` in it. Names that share their bytes must not
   become more than all of them were. */
static bool pack_names(const struct symbols *symbols, struct buffer *payload, size_t entries_at) {
    uint64_t most = 1 << 20;
    size_t names_at = payload->count;
    for (size_t i = 0; i < COUNT_OF(symbols->sources); i++)
        most += symbols->sources[i].bytes.length;
    most = most < UINT32_MAX ? most : UINT32_MAX;
    for (size_t i = 0; i < symbols->entries.count && payload->count - names_at < most; i++) {
        struct text name = whole_name(symbols, &symbols->entries.items[i]);
        struct entry *entry = (struct entry *)(void *)(payload->items + entries_at) + i;
        entry->name = (uint32_t)(payload->count - names_at);
        entry->source = 0;
        buffer_add(payload, name);
        buffer_add_char(payload, symbols->sources[0].terminator);
    }
    return payload->count - names_at < most;
}

bool symbols_pack(const struct symbols *symbols, struct buffer *payload) {
    enum { NAME_EXPECTED = 32 };
    size_t count = symbols->entries.count;
    size_t pieces = symbols->pieces.count * sizeof *symbols->pieces.items;
    if (symbols->tree.left || symbols->perf_order || symbols->costly_names ||
        budget_exceeded(&symbols->budget))
        return false;
    struct symbols_head head = {.entries = count,
                                .pieces = symbols->pieces.count,
                                .terminator = (uint8_t)symbols->sources[0].terminator,
                                .tabs = symbols->sources[0].tabs,
                                .keep_names = symbols->keep_names};
    size_t head_at = payload->count;
    vector_reserve(payload, head_at + sizeof head + pieces +
                                count * (sizeof *symbols->entries.items + NAME_EXPECTED));
    payload_add(payload, &head, sizeof head);
    size_t entries_at = payload->count;
    payload_add(payload, symbols->entries.items, count * sizeof *symbols->entries.items);
    payload_add(payload, symbols->pieces.items, pieces);
    size_t names_at = payload->count;
    if (!pack_names(symbols, payload, entries_at))
        return false;
    head.names = payload->count - names_at;
    memcpy(payload->items + head_at, &head, sizeof head);
    payload_end(payload);
    return true;
}

static bool entries_are_sound(const struct symbols *symbols) {
    for (size_t i = 0; i < symbols->entries.count; i++)
        if (symbols->entries.items[i].source != 0 ||
            symbols->entries.items[i].name >= symbols->sources[0].bytes.length)
            return false;
    for (size_t i = 0; i < symbols->pieces.count; i++)
        if (symbols->pieces.items[i].entry >= symbols->entries.count &&
            symbols->pieces.items[i].entry != SYMBOLS_NONE)
            return false;
    return true;
}

bool symbols_unpack(struct symbols *symbols, struct text payload) {
    struct payload_reader reader = {payload};
    const struct symbols_head *head = payload_array(&reader, 1, sizeof *head);
    if (!head || head->entries >= SYMBOLS_NONE)
        return false;
    const struct entry *entries = payload_array(&reader, head->entries, sizeof *entries);
    const struct piece *pieces =
        entries ? payload_array(&reader, head->pieces, sizeof *pieces) : NULL;
    const char *names = pieces ? payload_array(&reader, head->names, 1) : NULL;
    if (!names)
        return false;
    symbols->entries.items = (struct entry *)(uintptr_t)entries; /* only read from here on */
    symbols->entries.count = head->entries;
    symbols->pieces.items = (struct piece *)(uintptr_t)pieces;
    symbols->pieces.count = head->pieces;
    symbols->sources[0] = (struct symbols_source){
        .bytes = {names, head->names}, .terminator = (char)head->terminator, .tabs = head->tabs};
    symbols->keep_names = head->keep_names;
    if (entries_are_sound(symbols))
        return true;
    symbols->entries.items = NULL;
    symbols->pieces.items = NULL;
    symbols->entries.count = symbols->pieces.count = 0;
    symbols->sources[0] = (struct symbols_source){0};
    return false;
}

/* ---- which ---- */

/* What .gnu_debugdata holds is part of the file with the code. */
static void key_of_symbols(struct cache_key *key, const struct objects *objects,
                           const struct object *object) {
    const struct elf_image *image = object->image, *debug = object->debug;
    cache_key_init(key, &objects->options,
                   object->identity.kind == OBJECT_KERNEL ? "kernel symbols" : "symbols");
    if (object->identity.kind == OBJECT_KERNEL && !image)
        cache_key_add_file(key, &object->symbol_file, NULL);
    if (image)
        cache_key_add_file(key, &image->file, &image->build_id);
    if (debug && !debug->copy)
        cache_key_add_file(key, &debug->file, &debug->build_id);
    else if (!image)
        key->is_usable &= object->symbol_file.inode != 0;
    if (debug && debug->is_kept)
        key->is_usable = false;
}

static bool is_cachable(const struct objects *objects, const struct object *object) {
    return objects->cache && !objects->options.quirks.symbols_by_arrival &&
           (object->identity.kind == OBJECT_FILE || object->identity.kind == OBJECT_KERNEL);
}

bool cached_symbols_load(struct objects *objects, struct object *object, struct symbols *symbols) {
    struct cache_key key;
    struct file file;
    struct text payload;
    if (!is_cachable(objects, object))
        return false;
    key_of_symbols(&key, objects, object);
    bool fine =
        key.is_usable && disk_cache_read(objects->cache, buffer_text(&key.text), &file, &payload);
    if (fine && !symbols_unpack(symbols, payload)) {
        file_close(&file);
        fine = false;
    }
    if (fine) {
        symbols->cached = file;
        symbols_finish(symbols);
    }
    buffer_release(&key.text);
    return fine;
}

static bool is_settled(const struct object *object) {
    return (!object->image || object->image->copy || file_is_settled(&object->image->file)) &&
           (!object->debug || object->debug->copy || file_is_settled(&object->debug->file)) &&
           (!object->symbol_file.inode || file_is_settled(&object->symbol_file));
}

static void store_symbols(struct objects *objects, struct object *object) {
    struct symbols *symbols = atomic_load(&object->symbols);
    struct buffer payload = {0};
    struct cache_key key;
    if (!symbols || symbols->cached.data || symbols->entries.count < ENTRIES_FEWEST)
        return;
    key_of_symbols(&key, objects, object);
    if (key.is_usable && symbols_pack(symbols, &payload))
        disk_cache_write(objects->cache, buffer_text(&key.text), buffer_text(&payload));
    buffer_release(&key.text);
    buffer_release(&payload);
}

void objects_store(struct objects *objects) {
    for (size_t i = 1; i < objects->items.count; i++) {
        struct object *object = objects->items.items[i];
        if (!is_cachable(objects, object))
            continue;
        pthread_mutex_lock(&object->lock);
        if (!object->changed && is_settled(object)) {
            store_symbols(objects, object);
            kernel_store_running(objects, object);
            cached_units_store(objects, object);
        }
        pthread_mutex_unlock(&object->lock);
    }
}
