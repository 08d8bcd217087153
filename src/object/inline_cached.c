/*
 * Compilation units as the disk cache has them (inline_disk.c): the address ranges of units, the tables of units that were hit, and requested names
 * and lines.
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

/* What comes before the arrays of one table: starts, owners, entries, calls, places. */
struct cached_table {
    uint32_t unit;
    uint32_t segments;
    uint32_t entries;
    uint32_t calls;
    uint32_t places;
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

/* A line: where an inlined entry was called, or where an address is. */
struct cached_line {
    uint64_t of;        /* the entry's number, or the address */
    uint32_t file;      /* in the names … */
    uint32_t file_size; /* … and its length */
    uint32_t line;
    uint32_t column;
};

struct table_parts {
    const uint64_t *starts;
    const uint32_t *owners;
    const struct cached_entry *entries;
    const struct cached_line *calls;
    const struct cached_line *places;
};

/* ---- from the cache ---- */

static bool table_read(struct payload_reader *reader, const struct cached_table *table,
                       struct table_parts *parts) {
    parts->starts = payload_array(reader, table->segments, sizeof *parts->starts);
    parts->owners =
        parts->starts ? payload_array(reader, table->segments, sizeof *parts->owners) : NULL;
    parts->entries =
        parts->owners ? payload_array(reader, table->entries, sizeof *parts->entries) : NULL;
    parts->calls =
        parts->entries ? payload_array(reader, table->calls, sizeof *parts->calls) : NULL;
    parts->places =
        parts->calls ? payload_array(reader, table->places, sizeof *parts->places) : NULL;
    return parts->places != NULL;
}

static struct table_parts table_parts(const struct units *units, const struct cached_table *table) {
    struct table_parts parts = {0};
    const char *from = (const char *)(table + 1),
               *end = (const char *)units->cached.data + units->cached.size;
    struct payload_reader reader = {{from, (size_t)(end - from)}};
    table_read(&reader, table, &parts); /* it went well when the cache was opened */
    return parts;
}

static bool lines_are_sound(const struct cached_line *lines, size_t count, uint64_t of_most,
                            uint64_t names) {
    for (size_t i = 0; i < count; i++)
        if (lines[i].of >= of_most || lines[i].file > names ||
            lines[i].file_size > names - lines[i].file)
            return false;
    return true;
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
    return lines_are_sound(parts->calls, table->calls, table->entries, names) &&
           lines_are_sound(parts->places, table->places, UINT64_MAX, names);
}

static struct text line_file(const struct units *units, const struct cached_line *line) {
    return text_upto(text_from(units->cached_names, line->file), line->file_size);
}

void cached_places(const struct units *units, struct unit *unit) {
    if (unit->places.has_cached)
        return;
    unit->places.has_cached = true;
    struct table_parts parts = {0};
    if (unit->cached)
        parts = table_parts(units, unit->cached);
    for (size_t i = 0; unit->cached && i < unit->cached->places; i++) {
        const struct cached_line *from = &parts.places[i];
        place_add(unit, &(struct unit_place){.address = from->of,
                                             .file = line_file(units, from),
                                             .line = from->line,
                                             .column = from->column});
    }
}

/* Calls that are in the cache; a function that is not inlined has none. */
static void table_set_calls(const struct units *units, const struct cached_table *cached,
                            const struct cached_line *calls, struct inline_table *table) {
    for (size_t i = 0; i < table->entry_count; i++)
        table->entries[i].placed = table->entries[i].parent == NO_ENTRY;
    for (size_t i = 0; i < cached->calls; i++) {
        struct inline_entry *entry = &table->entries[calls[i].of];
        entry->call_file = line_file(units, &calls[i]);
        entry->call_line = calls[i].line;
        entry->call_column = calls[i].column;
        entry->placed = true;
    }
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
    table_set_calls(units, unit->cached, parts.calls, table);
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

/* ---- into the cache ---- */

/* Names, put together. The last files are remembered: they come again and again. */
struct packed_names {
    struct buffer bytes;
    struct {
        struct text file;
        uint32_t at;
    } files[64];
};

static uint32_t pack_name(struct packed_names *names, struct text name) {
    uint32_t at = (uint32_t)names->bytes.count;
    if (name.length)
        buffer_add(&names->bytes, name);
    return at;
}

static struct cached_line pack_line(struct packed_names *names, uint64_t of,
                                    const struct unit_place *place) {
    size_t slot = (uintptr_t)place->file.data / 8 % COUNT_OF(names->files);
    struct text *known = &names->files[slot].file;
    if (place->file.length &&
        (known->data != place->file.data || known->length != place->file.length)) {
        *known = place->file;
        names->files[slot].at = pack_name(names, place->file);
    }
    return (struct cached_line){.of = of,
                                .file = place->file.length ? names->files[slot].at : 0,
                                .file_size = (uint32_t)place->file.length,
                                .line = place->line,
                                .column = place->column};
}

static uint32_t pack_calls(const struct inline_table *table, struct packed_names *names,
                           struct buffer *payload) {
    uint32_t count = 0;
    for (size_t i = 0; i < table->entry_count; i++) {
        const struct inline_entry *entry = &table->entries[i];
        if (!entry->placed || entry->parent == NO_ENTRY)
            continue;
        struct unit_place place = {
            .file = entry->call_file, .line = entry->call_line, .column = entry->call_column};
        struct cached_line line = pack_line(names, i, &place);
        payload_add(payload, &line, sizeof line);
        count++;
    }
    return count;
}

static void pack_table(const struct unit *unit, uint32_t number, struct packed_names *names,
                       struct buffer *payload) {
    const struct inline_table *table = unit->table;
    struct cached_table head = {.unit = number,
                                .segments = (uint32_t)table->segment_count,
                                .entries = (uint32_t)table->entry_count,
                                .places = (uint32_t)unit->places.items.count};
    size_t head_at = payload->count;
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
            to.name = pack_name(names, from->name);
            to.name_length = (uint32_t)from->name.length;
        }
        payload_add(payload, &to, sizeof to);
    }
    head.calls = pack_calls(table, names, payload);
    memcpy(payload->items + head_at, &head, sizeof head);
    for (size_t i = 0; i < unit->places.items.count; i++) {
        const struct unit_place *place = &unit->places.items.items[i];
        struct cached_line line = pack_line(names, place->address, place);
        payload_add(payload, &line, sizeof line);
    }
}

/* Tables that were not used this time are kept all the same. */
static bool pack_tables(struct units *units, struct packed_names *names, struct buffer *tables,
                        uint64_t *count) {
    bool fine = true;
    for (size_t i = 0; i < units->count && fine; i++) {
        struct unit *unit = &units->items[i];
        pthread_mutex_lock(&unit->lock);
        cached_table(units, unit);
        cached_places(units, unit);
        if (unit->table && unit->table->segment_count < UINT32_MAX &&
            unit->table->entry_count < NO_ENTRY) {
            fine = unit->split == SPLIT_NONE;
            pack_table(unit, (uint32_t)i, names, tables);
            (*count)++;
        }
        pthread_mutex_unlock(&unit->lock);
        fine &= names->bytes.count < UINT32_MAX / 2;
    }
    return fine;
}

bool units_pack(struct units *units, struct buffer *payload) {
    struct packed_names names = {0};
    struct buffer tables = {0};
    struct units_head head = {.units = units->count, .ranges = units->ranges.count};
    bool fine = pack_tables(units, &names, &tables, &head.tables);
    if (fine) {
        head.names = names.bytes.count;
        payload_add(payload, &head, sizeof head);
        payload_add(payload, names.bytes.items, names.bytes.count);
        for (size_t i = 0; i < units->count; i++)
            payload_add(payload, &units->items[i].offset, sizeof(uint64_t));
        payload_add(payload, units->ranges.items,
                    units->ranges.count * sizeof *units->ranges.items);
        if (tables.count)
            buffer_add(payload, buffer_text(&tables));
    }
    buffer_release(&names.bytes);
    buffer_release(&tables);
    return fine;
}
