/*
 * Load an object's symbols at the first lookup, under its lock. Lookups take no lock.
 */
#include "object/source.h"

#include <stdlib.h>

/* ---- files ---- */

/* perf's choice: the first file with .symtab for the symbols, the first with .dynsym for the rest. */
static void find_perf_images(struct objects *objects, struct object *object,
                             struct elf_image **tables, struct elf_image **runtime) {
    static const struct source *const sources[] = {
        &source_debuglink, &source_cache, &source_cache_debug, &source_suffix, &source_mirrored,
        &source_build_id,  &source_path,  &source_beside,      &source_merged};
    struct search search = {objects, object, object->identity.build_id};
    size_t kept = 0;
    *tables = *runtime = NULL;
    if (!search.id.size) {
        struct elf_image *own = source_path.open(&search);
        search.id = own ? own->build_id : search.id;
        elf_image_free(own);
    }
    for (size_t i = 0; i < COUNT_OF(sources) && !(*tables && *runtime); i++) {
        struct elf_image *image = sources[i]->open(&search);
        struct symbol_section section;
        if (!image)
            continue;
        bool used = false;
        if (!*tables && symbol_section_open(image, ".symtab", SHT_SYMTAB, &section))
            *tables = image, used = true;
        if (!*runtime && symbol_section_open(image, ".dynsym", SHT_DYNSYM, &section))
            *runtime = image, used = true;
        if (used)
            object->symbol_images[kept++] = image;
        else
            elf_image_free(image);
    }
    if (!*tables)
        *tables = *runtime;
    if (!*runtime)
        *runtime = *tables;
}

static void load_file(struct objects *objects, struct object *object, struct symbols *symbols) {
    if (objects->options.quirks.symbols_by_arrival) {
        struct elf_image *tables, *runtime;
        find_perf_images(objects, object, &tables, &runtime);
        if (tables)
            elf_symbols_load_perf(symbols, tables, runtime);
        else if (object->trouble == FILE_FINE)
            object->trouble = FILE_ABSENT;
        if (tables)
            object->trouble = FILE_FINE;
        return;
    }
    const struct elf_image *image = object_image(objects, object),
                           *debug = object_debug(objects, object);
    if ((image || debug) && !cached_symbols_load(objects, object, symbols))
        elf_symbols_load(symbols, image, debug);
}

/* ---- perf maps ---- */

/* perf reads the map in /tmp whatever --symfs says; wick looks below it first, and then there only to do as perf does. */
static void load_perfmap(struct objects *objects, struct object *object, struct symbols *symbols) {
    static const struct source *const ours[] = {&source_kept, &source_perfmap, NULL};
    static const struct source *const perfs[] = {&source_kept, &source_perfmap,
                                                 &source_perfmap_host, NULL};
    struct search search = {.objects = objects, .object = object};
    if (sources_read(&search, objects->options.quirks.map_beyond_symfs ? perfs : ours))
        perfmap_load(symbols, object_list(object));
}

/* ---- modules ---- */

/* From the module's own file, in addresses from where it was loaded to: for a list of symbols that does not have it, or is of another
   boot. */
static void load_module(struct objects *objects, struct object *module, struct symbols *symbols) {
    static const struct source *const sources[] = {&source_cache, &source_path, NULL};
    struct search search = {objects, module, module->identity.build_id};
    module->image = sources_open(&search, sources);
    if (module->image)
        elf_symbols_load(symbols, module->image, NULL);
}

/* ---- all kinds ---- */

static void symbols_fill(struct objects *objects, struct object *object, struct symbols *symbols) {
    switch (object->identity.kind) {
    case OBJECT_FILE:
    case OBJECT_VDSO:
        load_file(objects, object, symbols);
        break;
    case OBJECT_PERFMAP:
        load_perfmap(objects, object, symbols);
        break;
    case OBJECT_KERNEL:
        kernel_load(objects, object, symbols);
        break;
    case OBJECT_MODULE:
        load_module(objects, object, symbols);
        break;
    default:
        break;
    }
}

struct symbols *object_symbols(struct objects *objects, struct object *object) {
    struct symbols *symbols = atomic_load_explicit(&object->symbols, memory_order_acquire);
    if (symbols)
        return symbols;
    pthread_mutex_lock(&object->lock);
    symbols = atomic_load_explicit(&object->symbols, memory_order_relaxed);
    if (!symbols) {
        symbols = memory_alloc(sizeof *symbols);
        symbols_init(symbols, &objects->options);
        symbols_fill(objects, object, symbols);
        atomic_store_explicit(&object->symbols, symbols, memory_order_release);
    }
    pthread_mutex_unlock(&object->lock);
    return symbols;
}

/* ---- asking ---- */

/*
 * Symbols may share one name, or its end, so that a small file has gigabytes of names. When all names together are more than a file with so
 * many bytes of them may have, long ones are cut. Nearly always no name is that long, and nothing is added up.
 */
static size_t name_most(struct symbols *symbols) {
    struct budget budget;
    uint64_t size = symbols->entries.count * sizeof *symbols->entries.items;
    if (symbols->name_most)
        return symbols->name_most;
    for (size_t i = 0; i < COUNT_OF(symbols->sources); i++)
        size += symbols->sources[i].bytes.length;
    budget_init(&budget, &budget_defaults, size);
    symbols->name_most = SIZE_MAX;
    for (size_t i = 0; i < symbols->entries.count && !budget_exceeded(&budget); i++)
        budget_take_memory(&budget, symbols_raw_name(symbols, &symbols->entries.items[i]).length,
                           NO_OFFSET);
    if (budget_exceeded(&budget))
        symbols->name_most = SHORT_NAME;
    return symbols->name_most;
}

/* Two threads may work the same name out; the first to store it wins, and both are the same. */
static struct text resolve_name(struct symbols *symbols, uint32_t number) {
    const struct text *known =
        atomic_load_explicit(&symbols->resolved[number], memory_order_acquire);
    if (known)
        return *known;
    struct symbols *names = symbols->names ? symbols->names : symbols;
    struct buffer name = {0};
    bool costly = false;
    symbols_print_name(symbols, &symbols->entries.items[number], &name, &costly);
    pthread_mutex_lock(&names->lock);
    known = atomic_load_explicit(&symbols->resolved[number], memory_order_relaxed);
    if (!known) {
        if (name.count > SHORT_NAME && name.count > name_most(symbols)) {
            name.count = SHORT_NAME;
            costly = true;
        }
        struct text *made = arena_alloc(&names->arena, sizeof *made);
        *made = arena_copy(&names->arena, buffer_text(&name));
        names->costly_names += costly;
        atomic_store_explicit(&symbols->resolved[number], made, memory_order_release);
        known = made;
    }
    pthread_mutex_unlock(&names->lock);
    buffer_release(&name);
    return *known;
}

bool symbols_symbol(struct object *object, struct symbols *symbols, uint32_t number, uint64_t base,
                    struct symbol *symbol) {
    const struct entry *entry = &symbols->entries.items[number];
    *symbol = (struct symbol){.name = resolve_name(symbols, number),
                              .start = entry->start - base,
                              .end = entry->end - base};
    return symbol->name.length > 0;
}

static bool symbol_in(struct object *object, struct symbols *symbols, uint64_t address,
                      uint64_t base, struct symbol *symbol) {
    uint32_t number = symbols_find(symbols, address + base);
    return number != SYMBOLS_NONE && symbols_symbol(object, symbols, number, base, symbol);
}

/*
 * A debug file alone, made by objcopy, has load segments without bytes, and offsets of its own. The layout of GNU ld is
 * the best guess then: from the first segment on, offsets run along with addresses.
 */
static bool address_of_offset(const struct object *object, uint64_t offset, uint64_t *address) {
    const struct elf_image *image = object->image ? object->image : object->debug;
    if (elf_offset_to_address(image, offset, address))
        return true;
    if (object->image || !image->segment_count)
        return false;
    *address = offset + (image->segments[0].address - image->segments[0].offset);
    return true;
}

static bool symbol_in_file(struct objects *objects, struct object *object, uint64_t address,
                           struct symbol *symbol) {
    struct symbols *symbols = object_symbols(objects, object);
    uint64_t own;
    if (!symbols->entries.count)
        return false;
    if (objects->options.quirks.addresses_are_offsets)
        return symbol_in(object, symbols, address, 0, symbol);
    return address_of_offset(object, address, &own) &&
           symbol_in(object, symbols, address, own - address, symbol);
}

static bool symbol_of_program(const struct object *object, uint64_t address,
                              struct symbol *symbol) {
    const struct object_identity *identity = &object->identity;
    if (!object->name.length || address < identity->start ||
        address - identity->start >= identity->size)
        return false;
    *symbol = (struct symbol){
        .name = object->name, .start = identity->start, .end = identity->start + identity->size};
    return true;
}

bool objects_symbol(struct objects *objects, uint32_t id, uint64_t address, struct symbol *symbol) {
    struct object *object = objects_object(objects, id);
    switch (object->identity.kind) {
    case OBJECT_FILE:
    case OBJECT_VDSO:
        return symbol_in_file(objects, object, address, symbol);
    case OBJECT_PERFMAP:
        return symbol_in(object, object_symbols(objects, object), address, 0, symbol);
    case OBJECT_KERNEL:
        return kernel_symbol(objects, object, address, symbol);
    case OBJECT_MODULE:
        return kernel_symbol(objects, object, address, symbol) ||
               (address >= object->identity.start &&
                symbol_in(object, object_symbols(objects, object), address, -object->identity.start,
                          symbol));
    case OBJECT_BPF:
        return symbol_of_program(object, address, symbol);
    case OBJECT_MADE:
        return made_symbol(object->made, address, symbol);
    case OBJECT_NONE:
    case OBJECT_NAME:
        break;
    }
    return false;
}
