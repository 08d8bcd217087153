/*
 * Choose a list of the kernel's symbols, and find how far it is shifted.
 *
 * A list belongs to a recording if the build id says so. The cached list is tried first, because it is as good as /proc/kallsyms and thirty times
 * faster to read; perf tries the running kernel's first. Names that the recording keeps for its own addresses come last. The kernel moves at every
 * boot; the recorded address of one symbol says how far. Each module moves separately: its lines are valid only in a list from the same boot.
 */
#include "object/source.h"

#include <stdlib.h>

static const struct source *const *list_sources(const struct objects_options *options,
                                                const struct build_id *id) {
    static const struct source *const given[] = {&source_kallsyms_given, NULL};
    static const struct source *const below[] = {&source_kallsyms_symfs, &source_kallsyms_cache,
                                                 &source_kept_list, &source_kept_names, NULL};
    static const struct source *const nothing[] = {NULL};
    static const struct source *const running[] = {&source_kallsyms_running, NULL};
    static const struct source *const cached[] = {&source_kallsyms_cache, NULL};
    static const struct source *const ours[] = {&source_kallsyms_cache, &source_kept_list,
                                                &source_kallsyms_running, &source_kept_names, NULL};
    if (options->kallsyms)
        return given;
    if (options->symfs)
        return options->quirks.symfs_hides_kernel ? nothing : below;
    if (options->quirks.running_kernel_first)
        return !id->size || kernel_is_running(id) ? running : cached;
    return ours;
}

/* ---- the kernel's own ELF file, when no list was kept ---- */

static bool find_in_elf(const struct elf_image *image, struct text name, uint64_t *address) {
    struct symbol_section section;
    GElf_Sym symbol;
    if (!symbol_section_open(image, ".symtab", SHT_SYMTAB, &section))
        return false;
    for (size_t i = 1; i < section.count && symbol_section_get(&section, i, &symbol); i++) {
        if (symbol.st_name >= section.names.length)
            continue;
        struct text rest = text_from(section.names, symbol.st_name);
        if (rest.length > name.length && text_starts(rest, name) && rest.data[name.length] == 0) {
            *address = symbol.st_value;
            return true;
        }
    }
    return false;
}

static void use_elf(struct objects *objects, struct object *kernel, struct symbols *symbols) {
    uint64_t listed;
    if (kernel->reference.length && find_in_elf(kernel->image, kernel->reference, &listed))
        kernel->shift = listed - kernel->reference_address;
    if (!cached_symbols_load(objects, kernel, symbols))
        elf_symbols_load(symbols, kernel->image, NULL);
    kernel->trouble = FILE_FINE;
}

/* A file given by name is used instead of any list, unless it is another kernel's, which is noted. */
static bool load_given_elf(struct objects *objects, struct object *kernel,
                           struct symbols *symbols) {
    struct search search = {objects, kernel, kernel->identity.build_id};
    kernel->image = source_vmlinux.open(&search);
    kernel->vmlinux_refused = objects->options.vmlinux && !kernel->image;
    kernel->trouble = FILE_FINE;
    if (kernel->image)
        use_elf(objects, kernel, symbols);
    return kernel->image != NULL;
}

/* Only one whose build id is the recorded one. */
static bool load_elf(struct objects *objects, struct object *kernel, struct symbols *symbols) {
    static const struct source *const sources[] = {&source_cache, &source_cache_debug,
                                                   &source_build_id, NULL};
    struct search search = {objects, kernel, kernel->identity.build_id};
    if (search.id.size && !objects->options.kallsyms)
        kernel->image = sources_open(&search, sources);
    if (kernel->image)
        use_elf(objects, kernel, symbols);
    return kernel->image != NULL;
}

static void use_list(struct objects *objects, struct object *kernel, struct symbols *symbols) {
    struct text text = object_list(kernel);
    uint64_t listed;
    if (kernel->reference.length && kallsyms_find(text, kernel->reference, &listed))
        kernel->shift = listed - kernel->reference_address;
    if (!cached_symbols_load(objects, kernel, symbols))
        kallsyms_load(symbols, text);
    kernel->trouble = FILE_FINE;
}

void kernel_load(struct objects *objects, struct object *kernel, struct symbols *symbols) {
    struct search search = {objects, kernel, kernel->identity.build_id};
    if (load_given_elf(objects, kernel, symbols))
        return;
    const struct source *const *sources = list_sources(&objects->options, &search.id);
    for (; *sources; sources++) {
        bool is_running =
            *sources == &source_kallsyms_running && !objects->options.quirks.symbols_by_arrival;
        if (is_running &&
            (kernel_load_running(objects, kernel, symbols) || kernel_read_running(kernel, symbols)))
            return;
        if (!is_running && (*sources)->read(&search))
            return use_list(objects, kernel, symbols);
    }
    if (!load_elf(objects, kernel, symbols) && kernel->trouble == FILE_FINE)
        kernel->trouble = FILE_ABSENT;
}

/* ---- asking ---- */

/* A module's name is the file's, without directory and suffix, and with the kernel's idea of a dash. */
static bool module_is(struct text bracketed, const struct object *module) {
    return text_equal(bracketed, module->shown);
}

bool kernel_symbol(struct objects *objects, struct object *object, uint64_t address,
                   struct symbol *symbol) {
    bool module = object->identity.kind == OBJECT_MODULE;
    if (module && !objects->kernel)
        return false;
    struct object *kernel = module ? objects_object(objects, objects->kernel) : object;
    object_symbols(objects, kernel); /* which says how far it is shifted */
    if (!__atomic_load_n(&kernel->asked,
                         __ATOMIC_RELAXED)) /* once a place: written once, not each time */
        __atomic_store_n(&kernel->asked, true, __ATOMIC_RELAXED);
    if (module && kernel->shift)
        return false;
    struct symbols *symbols = kernel_symbols_at(objects, kernel, address + kernel->shift);
    uint32_t number = symbols_find(symbols, address + kernel->shift);
    if (number == SYMBOLS_NONE ||
        text_equal(symbols_raw_name(symbols, &symbols->entries.items[number]),
                   TEXT(KERNEL_NAME_NONE)))
        return false;
    struct text owner = kallsyms_module(symbols, &symbols->entries.items[number]);
    /* What the kernel lists as [bpf] or [__builtin__ftrace] is in no module. perf knows no names there. */
    if (module ? !module_is(owner, object)
               : owner.length && objects->options.quirks.no_names_outside_modules)
        return false;
    return symbols_symbol(kernel, symbols, number, kernel->shift, symbol);
}
