/*
 * Lists of the kernel's symbols: the running kernel's /proc/kallsyms, one below --symfs, and one given by name.
 */
#include "object/source.h"

#include <errno.h>
#include <fcntl.h>
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
    char notes[4096]; /* there are a few hundred bytes of them */
    struct stat status;
    int descriptor = open_regular("/sys/kernel/notes", &status);
    *id = (struct build_id){0};
    if (descriptor < 0)
        return false;
    ssize_t got = read(descriptor, notes, sizeof notes);
    close(descriptor);
    return got > 0 && elf_notes_build_id((struct text){notes, (size_t)got}, 4, id);
}

bool kernel_is_running(const struct build_id *recorded) {
    struct build_id running;
    return object_kernel_build_id(&running) && build_id_matches(recorded, &running);
}

/* To unprivileged users the kernel shows a list whose addresses are all zero. */
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

bool kernel_list_is_good(struct object *kernel) {
    if (has_addresses(object_list(kernel)))
        return true;
    kernel->trouble = FILE_DENIED;
    file_close(&kernel->symbol_file);
    kernel->symbol_text.count = 0;
    return false;
}

static bool read_opened(struct object *kernel, const char *path, int descriptor) {
    return open_list(kernel, path, descriptor) && kernel_list_is_good(kernel);
}

bool kernel_list_read(struct object *kernel, const char *path) {
    struct stat status;
    return read_opened(kernel, path, open_regular(path, &status));
}

bool kernel_list_is_shown(void) {
    enum { BEGINNING = 1 << 16 };
    struct stat status;
    struct buffer text = {0};
    int descriptor = open_regular("/proc/kallsyms", &status);
    if (descriptor < 0)
        return false;
    vector_reserve(&text, BEGINNING);
    for (ssize_t got; text.count < BEGINNING &&
                      (got = read(descriptor, text.items + text.count, BEGINNING - text.count)) > 0;
         text.count += (size_t)got)
        if (text.count && has_addresses(buffer_text(&text)))
            break;
    bool shown = has_addresses(buffer_text(&text));
    buffer_release(&text);
    close(descriptor);
    return shown;
}

/* A file given by name may be a pipe. */
static bool read_given(const struct search *search) {
    const char *path = search->objects->options.kallsyms;
    return read_opened(search->object, path, open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
}

static bool read_below_symfs(const struct search *search) {
    struct buffer path = {0};
    buffer_printf(&path, "%s/proc/kallsyms", search->objects->options.symfs);
    buffer_add_char(&path, 0);
    bool fine = kernel_list_read(search->object, path.items);
    buffer_release(&path);
    return fine;
}

static bool read_running(const struct search *search) {
    search->object->list_is_running = (!search->id.size || kernel_is_running(&search->id)) &&
                                      kernel_list_read(search->object, "/proc/kallsyms");
    return search->object->list_is_running;
}

const struct source source_kallsyms_given = {.name = "--kallsyms", .read = read_given},
                    source_kallsyms_symfs = {.name = "--symfs", .read = read_below_symfs},
                    source_kallsyms_running = {.name = "running kernel", .read = read_running};
