/*
 * Read symbol tables from the disk cache, and write them to it.
 *
 * A sealed table is stored as it is: entries and pieces, which are used in place. Names stay in the string sections of their file, which is mapped
 * anyway and part of the key: copying them took as long as reading the table. Tables in perf's order are not cached.
 */
#include "object/disk_cache.h"
#include "object/internal.h"

/* Below this, reading the file again is as fast. */
enum { ENTRIES_FEWEST = 64 };

struct symbols_head {
    uint64_t entries;
    uint64_t pieces;
    uint64_t names;                     /* bytes: of all of them, or of those that no file has */
    uint64_t source_sizes[MADE_SOURCE]; /* where names stay: what their sources must have */
    uint8_t names_stay;
    uint8_t terminator;
    uint8_t tabs;
    uint8_t keep_names;
    uint8_t names_measured; /* name_most was worked out … */
    uint8_t names_cut;      /* … and long names are cut */
    uint8_t unused[2];
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

static bool add_names(const struct symbols *symbols, bool names_stay, struct buffer *payload,
                      size_t entries_at) {
    if (!names_stay)
        return pack_names(symbols, payload, entries_at);
    buffer_add(payload, buffer_text(&symbols->made));
    return true;
}

static bool is_packable(const struct symbols *symbols) {
    return !symbols->tree.left && !symbols->perf_order && !symbols->costly_names &&
           !budget_exceeded(&symbols->budget);
}

static struct symbols_head head_of(const struct symbols *symbols, bool names_stay) {
    struct symbols_head head = {.entries = symbols->entries.count,
                                .pieces = symbols->pieces.count,
                                .names_stay = names_stay,
                                .terminator = (uint8_t)symbols->sources[0].terminator,
                                .tabs = symbols->sources[0].tabs,
                                .keep_names = symbols->keep_names,
                                .names_measured = symbols->name_most != 0,
                                .names_cut = symbols->name_most == SHORT_NAME};
    for (size_t i = 0; i < COUNT_OF(head.source_sizes); i++)
        head.source_sizes[i] = symbols->sources[i].bytes.length;
    return head;
}

bool symbols_pack(const struct symbols *symbols, bool names_stay, struct buffer *payload) {
    size_t pieces = symbols->pieces.count * sizeof *symbols->pieces.items;
    if (!is_packable(symbols))
        return false;
    struct symbols_head head = head_of(symbols, names_stay);
    size_t head_at = payload->count;
    payload_add(payload, &head, sizeof head);
    size_t entries_at = payload->count;
    payload_add(payload, symbols->entries.items, head.entries * sizeof *symbols->entries.items);
    payload_add(payload, symbols->pieces.items, pieces);
    size_t names_at = payload->count;
    if (!add_names(symbols, names_stay, payload, entries_at))
        return false;
    head.names = payload->count - names_at;
    memcpy(payload->items + head_at, &head, sizeof head);
    payload_end(payload);
    return true;
}

/* Where the names are: in the payload, or where the caller found them, if it is as large as it was. */
static bool take_names(struct symbols *symbols, const struct symbols_head *head,
                       const char *names) {
    struct symbols_source packed = {
        .bytes = {names, head->names}, .terminator = (char)head->terminator, .tabs = head->tabs};
    if (!head->names_stay) {
        symbols->sources[0] = packed;
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(head->source_sizes); i++)
        if (symbols->sources[i].bytes.length != head->source_sizes[i])
            return false;
    packed.terminator = 0;
    packed.tabs = false;
    symbols->sources[MADE_SOURCE] = packed;
    return true;
}

static bool entries_are_sound(const struct symbols *symbols) {
    for (size_t i = 0; i < symbols->entries.count; i++) {
        const struct entry *entry = &symbols->entries.items[i];
        if (entry->source >= SYMBOLS_SOURCES ||
            entry->name >= symbols->sources[entry->source].bytes.length)
            return false;
    }
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
    if (!names || !take_names(symbols, head, names))
        return false;
    symbols->entries.items = (struct entry *)(uintptr_t)entries; /* only read from here on */
    symbols->entries.count = head->entries;
    symbols->pieces.items = (struct piece *)(uintptr_t)pieces;
    symbols->pieces.count = head->pieces;
    symbols->keep_names = head->keep_names;
    if (head->names_measured)
        symbols->name_most = head->names_cut ? SHORT_NAME : SIZE_MAX;
    if (entries_are_sound(symbols))
        return true;
    symbols->entries.items = NULL;
    symbols->pieces.items = NULL;
    symbols->entries.count = symbols->pieces.count = 0;
    memset(symbols->sources, 0, sizeof symbols->sources);
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

/* Where the names of a kept table are. */
static void symbols_find_names(const struct object *object, struct symbols *symbols) {
    if (object->identity.kind == OBJECT_KERNEL && !object->image)
        kallsyms_source(symbols, object_list(object));
    else
        elf_symbols_sources(symbols, object->image, object->debug);
}

bool cached_symbols_load(struct objects *objects, struct object *object, struct symbols *symbols) {
    struct cache_key key;
    struct file file;
    struct text payload;
    if (!is_cachable(objects, object))
        return false;
    symbols_find_names(object, symbols);
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

static void store_symbols(struct objects *objects, struct object *object, struct buffer *payload) {
    struct symbols *symbols = atomic_load(&object->symbols);
    struct cache_key key;
    if (!symbols || symbols->cached.data || symbols->entries.count < ENTRIES_FEWEST)
        return;
    key_of_symbols(&key, objects, object);
    payload->count = 0;
    if (key.is_usable && symbols_pack(symbols, true, payload))
        disk_cache_write(objects->cache, buffer_text(&key.text), buffer_text(payload));
    buffer_release(&key.text);
}

void objects_store(struct objects *objects) {
    struct buffer payload = {0}; /* the same for all: fresh memory is time */
    prefetcher_wait(objects->prefetcher);
    for (size_t i = 1; i < objects->items.count; i++) {
        struct object *object = objects->items.items[i];
        if (!is_cachable(objects, object))
            continue;
        pthread_mutex_lock(&object->lock);
        if (!object->changed && is_settled(object)) {
            store_symbols(objects, object, &payload);
            kernel_store_running(objects, object);
            cached_units_store(objects, object);
        }
        pthread_mutex_unlock(&object->lock);
    }
    buffer_release(&payload);
}
