/*
 * Find the functions at an address, including inlined ones.
 *
 * A lookup of an entry whose name is known costs two binary searches and no lock. A thread that needs the file takes a handle first and the
 * unit's lock second, so no thread waits for a handle while it holds a unit's lock.
 */
#include "object/inline.h"

#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>

/* Limit of units searched for an address: hostile files nest ranges, and identical code may be folded. */
#define CLAIMS_MAX 16
/* No real code inlines deeper than this. */
#define CHAIN_MAX 200

static const struct note_kind note_alternate = {
    "dwz-missing", "# file{ refers|s refer} to shared debug information that was not found"};
static const struct note_kind note_split = {
    "dwo-missing",
    "# compiled unit{ has its|s have their} debug information in .dwo files that were not found, "
    "or that others could replace: functions inlined in {it|them} are not shown"};
static const struct note_kind note_package = {
    "dwp-unread",
    "# compiled unit{ has its|s have their} debug information in a .dwp, which this libdw does "
    "not read (0.191 does): functions inlined in {it|them} are not shown"};
static const struct note_kind note_package_lacks = {
    "dwp-lacks",
    "# compiled unit{ has its|s have their} debug information in .dwo files that were found "
    "neither beside the program nor in the .dwp: functions inlined in {it|them} are not shown"};

static const struct note_kind note_left_out = {
    "units-left-out", "# compiled unit{ needs|s need} more memory or work than {its|their} file's "
                      "size allows: functions inlined in {it|them} are not shown"};

static void units_release(void *data) {
    struct units *units = data;
    handles_release(units);
    file_close(&units->cached);
    for (size_t i = 0; i < units->count; i++) {
        table_free(units->items[i].table);
        arena_release(&units->items[i].arena);
        places_release(&units->items[i].places);
        pthread_mutex_destroy(&units->items[i].lock);
    }
    free(units->items);
    vector_release(&units->ranges);
    elf_image_free(units->alternate);
    free(units->real_path);
    pthread_mutex_destroy(&units->pool_lock);
    pthread_cond_destroy(&units->pool_freed);
    free(units);
}

static bool has_debug_info(const struct elf_image *image) {
    GElf_Shdr header;
    if (!image || image->foreign_endian)
        return false;
    return (elf_section(image, ".debug_info", &header) && header.sh_type != SHT_NOBITS) ||
           elf_section(image, ".zdebug_info", &header);
}

/* The caller holds the object's lock. */
static struct units *units_new(struct objects *objects, struct object *object) {
    struct units *units = memory_zero(1, sizeof *units);
    const struct elf_image *image = object_image(objects, object);
    const struct elf_image *debug = object_debug(objects, object);
    lock_init_brief(&units->pool_lock);
    pthread_cond_init(&units->pool_freed, NULL);
    units->objects = objects;
    units->object = object;
    units->code = image;
    if (image)
        units->image = has_debug_info(image) ? image : has_debug_info(debug) ? debug : NULL;
    if (!units->image)
        return units;
    struct build_id alternate;
    units->alternate = alternate_open(objects, object, units->image, &alternate);
    units->alternate_missing = alternate.size && !units->alternate;
    if (cached_units_load(units))
        return units;
    struct dwarf_handle *handle = handle_take(units);
    if (handle) {
        units_index(units, handle);
        units->has_news = true;
        units->by_descriptor ? handle_drop(units, handle) : handle_give(units, handle);
    }
    return units;
}

static struct units *units_of(struct objects *objects, struct object *object) {
    void **place = &object->extras[SLOT_UNITS].data;
    struct units *units = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (units)
        return units;
    pthread_mutex_lock(&object->lock);
    if (!(units = *place)) {
        units = units_new(objects, object);
        object->extras[SLOT_UNITS].release = units_release;
        __atomic_store_n(place, units, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&object->lock);
    return units;
}

bool object_inlines_changed(const struct object *object, struct error *error) {
    struct units *units = object->extras[SLOT_UNITS].data;
    if (!units || !units->image)
        return false;
    if (units->alternate && file_changed(&units->alternate->file, error))
        return true;
    if (__atomic_load_n(&units->splits_changed, __ATOMIC_RELAXED))
        return !error_set(error, ERROR_INPUT, "%s: its .dwo or .dwp changed while reading",
                          units->image->file.path);
    return handles_changed(units) &&
           !error_set(error, ERROR_INPUT, "%s: changed while reading", units->image->file.path);
}

/* ---- asking one unit ---- */

struct question {
    struct units *units;
    uint64_t address;
    uint64_t shift; /* from addresses to what was asked for */
    bool lines;
    struct inline_chain *chain;
};

static bool is_ready(const struct inline_entry *entry, bool lines) {
    return __atomic_load_n(&entry->named, __ATOMIC_ACQUIRE) &&
           (!lines || __atomic_load_n(&entry->placed, __ATOMIC_ACQUIRE));
}

/* The entries from the innermost out; 0 when one of them is not ready to be shown, or there are none. */
static size_t entries_at(const struct inline_table *table, uint64_t address, bool lines,
                         const struct inline_entry **entries, bool *ready) {
    size_t count = 0;
    *ready = true;
    for (uint32_t i = table_lookup(table, address); i != NO_ENTRY && count < CHAIN_MAX;
         i = table->entries[i].parent) {
        entries[count++] = &table->entries[i];
        *ready = *ready && is_ready(&table->entries[i], lines);
    }
    return count;
}

static void chain_fill(const struct question *q, const struct inline_entry **entries,
                       size_t count) {
    for (size_t i = count; i-- > 0;) {
        struct inline_frame frame = {.name = entries[i]->name,
                                     .start = entries[i]->start - q->shift,
                                     .id = entries[i]->offset,
                                     .is_linkage = entries[i]->is_linkage};
        if (q->lines && i > 0) {
            frame.file = entries[i - 1]->call_file;
            frame.line = entries[i - 1]->call_line;
            frame.column = entries[i - 1]->call_column;
        }
        vector_push(q->chain, frame);
    }
}

/* The innermost function stands where the line table says; where there is none, the line stands alone. */
static void chain_end(const struct question *q, const struct inline_frame *line) {
    if (!line->line)
        return;
    if (!q->chain->count)
        vector_push(q->chain, (struct inline_frame){0});
    struct inline_frame *last = &q->chain->items[q->chain->count - 1];
    last->file = line->file;
    last->line = line->line;
    last->column = line->column;
}

/* The unit's lock is held, but in the common case not while the name is looked for: all of a program may be one unit. */
static void name_entry(const struct question *q, struct unit *unit, struct dwarf_handle *handle,
                       struct inline_entry *entry) {
    struct buffer name = {0};
    bool is_linkage = false, costly = false, unlocked = unit->split == SPLIT_NONE;
    if (entry->named)
        return;
    if (unlocked)
        pthread_mutex_unlock(&unit->lock);
    entry_find_name(q->units, unit, handle, entry, &name, &is_linkage, &costly);
    if (unlocked)
        pthread_mutex_lock(&unit->lock);
    if (!entry->named) {
        entry->name = arena_copy(&unit->arena, buffer_text(&name));
        entry->is_linkage = is_linkage;
        __atomic_fetch_add(&q->units->costly_names, costly, __ATOMIC_RELAXED);
        __atomic_store_n(&q->units->has_news, true, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->named, true, __ATOMIC_RELEASE);
    }
    buffer_release(&name);
}

/* True when the unit has code there. */
static bool ask_unit_slowly(const struct question *q, struct unit *unit) {
    const struct inline_entry *entries[CHAIN_MAX];
    struct dwarf_handle *handle = handle_take(q->units);
    bool ready;
    if (!handle)
        return false;
    pthread_mutex_lock(&unit->lock);
    struct inline_table *table = unit_table(q->units, unit, handle);
    size_t count = entries_at(table, q->address, q->lines, entries, &ready);
    for (size_t i = 0; i < count; i++) {
        struct inline_entry *entry = &table->entries[entries[i] - table->entries];
        name_entry(q, unit, handle, entry);
        if (q->lines)
            entry_place(q->units, unit, handle, entry);
    }
    struct inline_frame line = {0};
    chain_fill(q, entries, count);
    if (q->lines)
        unit_line(q->units, unit, handle, q->address, &line);
    chain_end(q, &line);
    pthread_mutex_unlock(&unit->lock);
    handle_give(q->units, handle);
    return q->chain->count > 0;
}

/* Answer with the line from earlier requests, of this run or another. Return false if not everything is known. */
static bool ask_unit_again(const struct question *q, struct unit *unit) {
    const struct inline_entry *entries[CHAIN_MAX];
    struct inline_frame line = {0};
    bool ready = false;
    size_t count = 0;
    pthread_mutex_lock(&unit->lock);
    const struct inline_table *table = cached_table(q->units, unit);
    if (table)
        count = entries_at(table, q->address, true, entries, &ready);
    ready = ready && place_find(q->units, unit, q->address, &line);
    pthread_mutex_unlock(&unit->lock);
    if (ready) {
        chain_fill(q, entries, count);
        chain_end(q, &line);
    }
    return ready;
}

static const struct inline_table *cached_table_locked(const struct units *units,
                                                      struct unit *unit) {
    pthread_mutex_lock(&unit->lock);
    const struct inline_table *table = cached_table(units, unit);
    pthread_mutex_unlock(&unit->lock);
    return table;
}

static bool ask_unit(const struct question *q, struct unit *unit) {
    const struct inline_entry *entries[CHAIN_MAX];
    bool ready;
    if (q->lines)
        return ask_unit_again(q, unit) ? q->chain->count > 0 : ask_unit_slowly(q, unit);
    const struct inline_table *table = __atomic_load_n(&unit->table, __ATOMIC_ACQUIRE);
    if (!table && unit->cached)
        table = cached_table_locked(q->units, unit);
    if (!table)
        return ask_unit_slowly(q, unit);
    size_t count = entries_at(table, q->address, q->lines, entries, &ready);
    if (!ready)
        return ask_unit_slowly(q, unit);
    chain_fill(q, entries, count);
    return count > 0;
}

/* The ranges that hold the address, the latest beginning first. */
static void ask_units(const struct question *q) {
    const struct units *units = q->units;
    unsigned claims = 0;
    size_t low = search_first(middle, 0, units->ranges.count,
                              units->ranges.items[middle].start <= q->address);
    for (size_t i = low; i-- > 0 && units->ranges.items[i].reach > q->address;)
        if (units->ranges.items[i].end > q->address) {
            if (ask_unit(q, &units->items[units->ranges.items[i].unit]) || ++claims == CLAIMS_MAX)
                return;
        }
}

/* A perf map has nothing but names, and some tell where the function is. */
static bool perfmap_inlines(struct objects *objects, uint32_t id, uint64_t address,
                            struct inline_chain *chain) {
    struct symbol symbol;
    if (!objects_symbol(objects, id, address, &symbol))
        return false;
    struct made_name known = made_name_read(symbol.name);
    struct inline_frame frame = {.name = symbol.name,
                                 .file = known.file,
                                 .line = known.line,
                                 .start = symbol.start,
                                 .language = known.language};
    if (known.file.length)
        vector_push(chain, frame);
    return chain->count > 0;
}

bool objects_inlines(struct objects *objects, uint32_t id, uint64_t address, bool lines,
                     struct inline_chain *chain) {
    struct object *object = objects_object(objects, id);
    uint64_t at;
    chain->count = 0;
    if (object->identity.kind == OBJECT_MADE)
        return made_inlines(object->made, address, chain);
    if (object->identity.kind == OBJECT_PERFMAP)
        return perfmap_inlines(objects, id, address, chain);
    struct units *units = units_of(objects, object);
    if (!units->image || !elf_offset_to_address(units->code, address, &at))
        return false;
    struct question question = {units, at, at - address, lines, chain};
    ask_units(&question);
    return chain->count > 0;
}

void object_prefetch_inlines(struct objects *objects, struct object *object, uint64_t address) {
    struct inline_chain chain = {0};
    if (object->identity.kind == OBJECT_FILE || object->identity.kind == OBJECT_VDSO)
        objects_inlines(objects, object->id, address, false, &chain);
    vector_release(&chain);
}

/* libdw decides at run time: the one found may be another than wick was built with. */
static bool reads_packages(void) {
    unsigned major = 0, minor = 0;
    const char *version = dwfl_version(NULL);
    return version && sscanf(version, "%u.%u", &major, &minor) == 2 && (major > 0 || minor >= 191);
}

static const struct note_kind *note_of_splits(const struct units *units) {
    if (!units->has_package)
        return &note_split;
    return reads_packages() ? &note_package_lacks : &note_package;
}

void object_note_inlines(const struct object *object, uint32_t id, struct notes *notes) {
    const struct units *units = __atomic_load_n(&object->extras[SLOT_UNITS].data, __ATOMIC_ACQUIRE);
    struct text path = object->identity.path;
    if (!units)
        return;
    if (units->units_left_out)
        notes_add(notes, &note_left_out, units->units_left_out, id, "%.*s", TEXT_ARGS(path));
    if (units->costly_names)
        notes_add(notes, &note_costly_names, units->costly_names, id, "%.*s", TEXT_ARGS(path));
    if (units->alternate_missing)
        notes_add(notes, &note_alternate, 1, id, "%.*s", TEXT_ARGS(path));
    if (units->splits_missing)
        notes_add(notes, note_of_splits(units), units->splits_missing, id, "%.*s", TEXT_ARGS(path));
}
