/*
 * Look compilation units up in the disk cache, and add them to it.
 *
 * If the cache has the answer, libdw is not used and compressed debug sections are not unpacked, which otherwise takes most of the time for an
 * ordinary recording. What is missing is read from the file as usual, and added when the run ends. Units with .dwo files are not cached, because
 * the key does not say whether these files are unchanged.
 */
#include "object/disk_cache.h"
#include "object/inline.h"

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
