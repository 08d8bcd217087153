/*
 * Compilation units from the disk cache, and into it: which unit is where, the tables of those that were hit, and the names that were asked for.
 *
 * Where the cache answers, libdw is never started and compressed debug sections are not unpacked, which is most of the time that an ordinary
 * recording takes. What it does not have is read from the file as ever, and added when the run ends. Units with .dwo files are not kept: whether those
 * are still the same, the key does not say.
 */
#include "object/disk_cache.h"
#include "object/inline.h"

#include <stdlib.h>

struct units_head {
    uint64_t units;
    uint64_t ranges;
    uint64_t tables;
    uint64_t names; /* bytes */
};

/* What comes before the arrays of one table: starts, owners, entries. */
struct cached_table {
    uint32_t unit;
    uint32_t segments;
    uint32_t entries;
    uint32_t unused;
};

struct cached_entry {
    uint64_t offset;
    uint64_t start;
    uint32_t parent;
    uint32_t name; /* in the names, and its length; NO_ENTRY: it was not asked for */
    uint32_t name_length;
    uint32_t is_linkage;
};

struct table_parts {
    const uint64_t *starts;
    const uint32_t *owners;
    const struct cached_entry *entries;
};

/* ---- from the cache ---- */

static bool table_read(struct payload_reader *reader, const struct cached_table *table,
                       struct table_parts *parts) {
    parts->starts = payload_array(reader, table->segments, sizeof *parts->starts);
    parts->owners =
        parts->starts ? payload_array(reader, table->segments, sizeof *parts->owners) : NULL;
    parts->entries =
        parts->owners ? payload_array(reader, table->entries, sizeof *parts->entries) : NULL;
    return parts->entries != NULL;
}

static struct table_parts table_parts(const struct units *units, const struct cached_table *table) {
    struct table_parts parts = {0};
    const char *from = (const char *)(table + 1),
               *end = (const char *)units->cached.data + units->cached.size;
    struct payload_reader reader = {{from, (size_t)(end - from)}};
    table_read(&reader, table, &parts); /* it went well when the cache was opened */
    return parts;
}

static bool table_is_sound(const struct table_parts *parts, const struct cached_table *table,
                           uint64_t names) {
    for (size_t i = 0; i < table->segments; i++)
        if (parts->owners[i] >= table->entries && parts->owners[i] != NO_ENTRY)
            return false;
    for (size_t i = 0; i < table->entries; i++) {
        const struct cached_entry *entry = &parts->entries[i];
        if ((entry->parent >= i && entry->parent != NO_ENTRY) ||
            (entry->name != NO_ENTRY &&
             (entry->name > names || entry->name_length > names - entry->name)))
            return false;
    }
    return true;
}

struct inline_table *cached_table(const struct units *units, struct unit *unit) {
    if (unit->table || !unit->cached)
        return unit->table;
    struct table_parts parts = table_parts(units, unit->cached);
    struct inline_table *table = memory_zero(1, sizeof *table);
    table->is_cached = true;
    table->starts = (uint64_t *)(uintptr_t)parts.starts; /* only read from here on */
    table->owners = (uint32_t *)(uintptr_t)parts.owners;
    table->segment_count = unit->cached->segments;
    table->entry_count = unit->cached->entries;
    table->entries = memory_zero(table->entry_count + 1, sizeof *table->entries);
    for (size_t i = 0; i < table->entry_count; i++) {
        const struct cached_entry *from = &parts.entries[i];
        struct inline_entry *to = &table->entries[i];
        *to = (struct inline_entry){.offset = from->offset,
                                    .start = from->start,
                                    .parent = from->parent,
                                    .is_linkage = from->is_linkage};
        if (from->name != NO_ENTRY) {
            to->name = text_upto(text_from(units->cached_names, from->name), from->name_length);
            to->named = true;
        }
    }
    unit->split = SPLIT_NONE;
    __atomic_store_n(&unit->table, table, __ATOMIC_RELEASE);
    return table;
}

static bool units_begin(struct units *units, struct payload_reader *reader,
                        const struct units_head *head) {
    const uint64_t *offsets = payload_array(reader, head->units, sizeof *offsets);
    const struct unit_range *ranges =
        offsets ? payload_array(reader, head->ranges, sizeof *ranges) : NULL;
    if (!ranges || head->units >= UINT32_MAX)
        return false;
    for (size_t i = 0; i < head->ranges; i++)
        if (ranges[i].unit >= head->units)
            return false;
    units->items = memory_zero(head->units + 1, sizeof *units->items);
    units->count = head->units;
    for (size_t i = 0; i < units->count; i++) {
        units->items[i].offset = offsets[i];
        lock_init_brief(&units->items[i].lock);
    }
    vector_reserve(&units->ranges, head->ranges + 1);
    if (head->ranges)
        memcpy(units->ranges.items, ranges, head->ranges * sizeof *ranges);
    units->ranges.count = head->ranges;
    return true;
}

/* On false, `units` has units and ranges that are to be forgotten. */
static bool units_read(struct units *units, struct text payload) {
    struct payload_reader reader = {payload};
    const struct units_head *head = payload_array(&reader, 1, sizeof *head);
    const char *names = head ? payload_array(&reader, head->names, 1) : NULL;
    if (!names || !units_begin(units, &reader, head))
        return false;
    units->cached_names = (struct text){names, head->names};
    for (uint64_t i = 0; i < head->tables; i++) {
        const struct cached_table *table = payload_array(&reader, 1, sizeof *table);
        struct table_parts parts;
        if (!table || table->unit >= units->count || !table_read(&reader, table, &parts) ||
            !table_is_sound(&parts, table, head->names))
            return false;
        units->items[table->unit].cached = table;
    }
    return true;
}

bool units_unpack(struct units *units, struct text payload) {
    if (units_read(units, payload))
        return true;
    for (size_t i = 0; i < units->count; i++)
        pthread_mutex_destroy(&units->items[i].lock);
    free(units->items);
    units->items = NULL;
    units->count = 0;
    vector_release(&units->ranges);
    return false;
}

static void key_of_units(struct cache_key *key, const struct units *units) {
    const struct objects_options *options = &units->objects->options;
    cache_key_init(key, options, options->no_demangle ? "units, mangled" : "units");
    cache_key_add_file(key, &units->code->file, &units->code->build_id);
    if (units->image != units->code)
        cache_key_add_file(key, &units->image->file, &units->image->build_id);
    if (units->alternate)
        cache_key_add_file(key, &units->alternate->file, &units->alternate->build_id);
}

/* perf's and addr2line's ways of choosing and naming are not kept. */
static bool is_cachable(const struct units *units) {
    const struct quirks *quirks = &units->objects->options.quirks;
    return units->objects->cache && units->image && !quirks->shortest_inline &&
           !quirks->names_without_arguments;
}

bool cached_units_load(struct units *units) {
    struct cache_key key;
    struct text payload;
    if (!is_cachable(units))
        return false;
    key_of_units(&key, units);
    bool fine = key.is_usable && disk_cache_read(units->objects->cache, buffer_text(&key.text),
                                                 &units->cached, &payload);
    if (fine && !units_unpack(units, payload)) {
        file_close(&units->cached);
        units->cached = (struct file){0};
        fine = false;
    }
    buffer_release(&key.text);
    return fine;
}

/* ---- into the cache ---- */

static void pack_table(const struct unit *unit, uint32_t number, struct buffer *names,
                       struct buffer *payload) {
    const struct inline_table *table = unit->table;
    struct cached_table head = {.unit = number,
                                .segments = (uint32_t)table->segment_count,
                                .entries = (uint32_t)table->entry_count};
    payload_add(payload, &head, sizeof head);
    payload_add(payload, table->starts, table->segment_count * sizeof *table->starts);
    payload_add(payload, table->owners, table->segment_count * sizeof *table->owners);
    for (size_t i = 0; i < table->entry_count; i++) {
        const struct inline_entry *from = &table->entries[i];
        struct cached_entry to = {.offset = from->offset,
                                  .start = from->start,
                                  .parent = from->parent,
                                  .name = NO_ENTRY,
                                  .is_linkage = from->is_linkage};
        if (from->named) {
            to.name = (uint32_t)names->count;
            to.name_length = (uint32_t)from->name.length;
            if (from->name.length)
                buffer_add(names, from->name);
        }
        payload_add(payload, &to, sizeof to);
    }
}

/* Tables that were not used this time are kept all the same. */
static bool pack_tables(struct units *units, struct buffer *names, struct buffer *tables,
                        uint64_t *count) {
    bool fine = true;
    for (size_t i = 0; i < units->count && fine; i++) {
        struct unit *unit = &units->items[i];
        pthread_mutex_lock(&unit->lock);
        cached_table(units, unit);
        if (unit->table && unit->table->segment_count < UINT32_MAX &&
            unit->table->entry_count < NO_ENTRY) {
            fine = unit->split == SPLIT_NONE;
            pack_table(unit, (uint32_t)i, names, tables);
            (*count)++;
        }
        pthread_mutex_unlock(&unit->lock);
        fine &= names->count < UINT32_MAX / 2;
    }
    return fine;
}

bool units_pack(struct units *units, struct buffer *payload) {
    struct buffer names = {0}, tables = {0};
    struct units_head head = {.units = units->count, .ranges = units->ranges.count};
    bool fine = pack_tables(units, &names, &tables, &head.tables);
    if (fine) {
        head.names = names.count;
        payload_add(payload, &head, sizeof head);
        payload_add(payload, names.items, names.count);
        for (size_t i = 0; i < units->count; i++)
            payload_add(payload, &units->items[i].offset, sizeof(uint64_t));
        payload_add(payload, units->ranges.items,
                    units->ranges.count * sizeof *units->ranges.items);
        if (tables.count)
            buffer_add(payload, buffer_text(&tables));
    }
    buffer_release(&names);
    buffer_release(&tables);
    return fine;
}

void cached_units_store(struct objects *objects, struct object *object) {
    struct units *units = object->extras[SLOT_UNITS].data;
    struct buffer payload = {0};
    struct cache_key key;
    if (!units || !units->has_news || !is_cachable(units) || units->by_descriptor ||
        units->units_left_out || units->costly_names || units->splits_missing ||
        (units->alternate && !file_is_settled(&units->alternate->file)))
        return;
    key_of_units(&key, units);
    if (key.is_usable && units_pack(units, &payload))
        disk_cache_write(objects->cache, buffer_text(&key.text), buffer_text(&payload));
    buffer_release(&key.text);
    buffer_release(&payload);
}
