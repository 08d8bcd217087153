/*
 * The kernel's symbols: which list of them to take, and how far it is shifted.
 *
 * A list belongs to a recording if the build id says so. The cached one is taken first, being as good and thirty times faster to read
 * than /proc/kallsyms; perf takes the running kernel's first. The kernel moves at every boot; the recorded address of
 * one symbol says how far. Modules move each by itself: their lines count only in a list from the same boot.
 */
#include "object/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_CHUNK = 1 << 20, LIST_EXPECTED = 8 << 20, TEXT_MAX = 256 << 20 };

static int open_regular(const char *path, struct stat *status) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0 || (fstat(descriptor, status) == 0 && S_ISREG(status->st_mode)))
        return descriptor;
    close(descriptor);
    return -1;
}

/* Files below /proc and /sys have no size, and pipes neither: read to the end. */
static bool read_whole(int descriptor, size_t expected, struct buffer *text) {
    vector_reserve(text, expected);
    while (text->count < TEXT_MAX) {
        vector_reserve(text, text->count + READ_CHUNK);
        ssize_t got = read(descriptor, text->items + text->count, text->capacity - text->count);
        if (got > 0)
            text->count += (size_t)got;
        else if (got == 0 || errno != EINTR)
            break;
    }
    return text->count > 0;
}

bool object_kernel_build_id(struct build_id *id) {
    struct buffer notes = {0};
    struct stat status;
    int descriptor = open_regular("/sys/kernel/notes", &status);
    *id = (struct build_id){0};
    bool fine = descriptor >= 0 && read_whole(descriptor, 0, &notes) &&
                elf_notes_build_id(buffer_text(&notes), 4, id);
    if (descriptor >= 0)
        close(descriptor);
    buffer_release(&notes);
    return fine;
}

static bool running_matches(const struct build_id *recorded) {
    struct build_id running;
    return object_kernel_build_id(&running) && build_id_matches(recorded, &running);
}

/* A list whose addresses are all zero is what the kernel shows to those who may not see them. */
static bool has_addresses(struct text text) {
    for (size_t at = 0, lines = 0; at < text.length && lines < 4096; lines++) {
        size_t digits = 0;
        while (at + digits < text.length && text.data[at + digits] == '0')
            digits++;
        if (at + digits < text.length && text.data[at + digits] != ' ')
            return true;
        size_t end = text_find(text_from(text, at), '\n');
        at = end == SIZE_MAX ? text.length : at + end + 1;
    }
    return false;
}

/* ---- the lists ---- */

static struct text list_of(const struct object *kernel) {
    return kernel->symbol_file.size ? file_text(&kernel->symbol_file)
                                    : buffer_text(&kernel->symbol_text);
}

/* A copy is mapped, the kernel's own is read. Takes the descriptor over. */
static bool open_list(struct object *kernel, const char *path, int descriptor) {
    struct stat status;
    if (descriptor < 0)
        return false;
    bool mapped = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    bool fine = mapped
                    ? status.st_size < TEXT_MAX &&
                          file_open_descriptor(&kernel->symbol_file, descriptor, path, NULL, NULL)
                    : read_whole(descriptor, LIST_EXPECTED, &kernel->symbol_text);
    close(descriptor);
    return fine;
}

static bool read_opened(struct object *kernel, const char *path, int descriptor) {
    if (!open_list(kernel, path, descriptor))
        return false;
    if (has_addresses(list_of(kernel)))
        return true;
    kernel->trouble = FILE_DENIED;
    file_close(&kernel->symbol_file);
    kernel->symbol_text.count = 0;
    return false;
}

static bool read_list(struct object *kernel, const char *path) {
    struct stat status;
    return read_opened(kernel, path, open_regular(path, &status));
}

/* What was asked for by name may be a pipe. */
static bool read_given(struct object *kernel, const char *path) {
    return read_opened(kernel, path, open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
}

static bool read_cached(const struct objects *objects, struct object *kernel) {
    char hex[2 * BUILD_ID_MAX + 1];
    struct buffer path = {0};
    build_id_print(&kernel->identity.build_id, hex);
    bool fine = false;
    for (int old = 0; old < 2 && !fine; old++) {
        path.count = 0;
        buffer_printf(&path, "%s/[kernel.kallsyms]/%s%s", objects->buildid_cache, hex,
                      old ? "" : "/kallsyms");
        buffer_add_char(&path, 0);
        fine = read_list(kernel, path.items);
    }
    buffer_release(&path);
    return fine;
}

static bool read_below_symfs(const struct objects *objects, struct object *kernel) {
    struct buffer path = {0};
    buffer_printf(&path, "%s/proc/kallsyms", objects->options.symfs);
    buffer_add_char(&path, 0);
    bool fine = read_list(kernel, path.items);
    buffer_release(&path);
    return fine;
}

static bool read_any(const struct objects *objects, struct object *kernel) {
    const struct build_id *id = &kernel->identity.build_id;
    const struct objects_options *options = &objects->options;
    if (options->kallsyms)
        return read_given(kernel, options->kallsyms);
    if (options->symfs)
        return options->compat_perf ? false
                                    : read_below_symfs(objects, kernel) ||
                                          (id->size && read_cached(objects, kernel));
    if (!id->size)
        return read_list(kernel, "/proc/kallsyms");
    if (options->compat_perf)
        return running_matches(id) ? read_list(kernel, "/proc/kallsyms")
                                   : read_cached(objects, kernel);
    return read_cached(objects, kernel) ||
           (running_matches(id) && read_list(kernel, "/proc/kallsyms"));
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

/* Only one whose build id is the recorded one. */
static bool load_elf(struct objects *objects, struct object *kernel, struct symbols *symbols) {
    static const enum file_place places[] = {PLACE_CACHE, PLACE_CACHE_DEBUG, PLACE_BUILD_ID};
    const struct build_id *id = &kernel->identity.build_id;
    uint64_t listed;
    for (size_t i = 0; i < COUNT_OF(places) && id->size && !kernel->image; i++)
        kernel->image = object_open_at(objects, kernel, places[i], id);
    if (!kernel->image)
        return false;
    if (kernel->reference.length && find_in_elf(kernel->image, kernel->reference, &listed))
        kernel->shift = listed - kernel->reference_address;
    elf_symbols_load(symbols, kernel->image, NULL);
    return true;
}

void kernel_load(struct objects *objects, struct object *kernel, struct symbols *symbols) {
    uint64_t listed;
    if (!read_any(objects, kernel)) {
        if (!objects->options.kallsyms && load_elf(objects, kernel, symbols))
            kernel->trouble = FILE_FINE;
        else if (kernel->trouble == FILE_FINE)
            kernel->trouble = FILE_ABSENT;
        return;
    }
    kernel->trouble = FILE_FINE;
    struct text text = list_of(kernel);
    if (kernel->reference.length && kallsyms_find(text, kernel->reference, &listed))
        kernel->shift = listed - kernel->reference_address;
    kallsyms_load(symbols, text);
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
    struct symbols *symbols = object_symbols(objects, kernel);
    if (!__atomic_load_n(&kernel->asked,
                         __ATOMIC_RELAXED)) /* once a place: written once, not each time */
        __atomic_store_n(&kernel->asked, true, __ATOMIC_RELAXED);
    if (module && kernel->shift)
        return false;
    uint32_t number = symbols_find(symbols, address + kernel->shift);
    if (number == SYMBOLS_NONE)
        return false;
    struct text owner = kallsyms_module(symbols, &symbols->entries.items[number]);
    /* What the kernel lists as [bpf] or [__builtin__ftrace] is in no module. perf knows no names there. */
    if (module ? !module_is(owner, object) : owner.length && objects->options.compat_perf)
        return false;
    return symbols_symbol(kernel, symbols, number, kernel->shift, symbol);
}
