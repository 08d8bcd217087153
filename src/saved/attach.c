/*
 * Optional content of a saved profile: the source of functions with samples, and their machine code.
 *
 * A recording names source files by paths of the machine that built the program, and it may come from a stranger. So
 * files are only opened below the directory that the user named, never through a link that leads out of it, and only
 * if they are regular.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "object/object.h"
#include "saved/saved.h"

enum { FILE_MOST = 4 << 20, FUNCTION_MOST = 1 << 20, ALL_MOST = 64 << 20, LISTED = 400 };

static const struct note_kind note_sources = {"sources-kept",
                                              "# source file{ was|s were} added to the profile"};
static const struct note_kind note_missing = {
    "sources-missing", "# source file{ was|s were} not found below the directory of --source"};
static const struct note_kind note_large = {
    "attachments-left-out", "# source file{|s} and functions were omitted: more than 64 MB in all"};

/* ---- sources ---- */

/* Open a regular file beneath `directory`. Return -1 if there is none. */
static int open_beneath(int directory, const char *path) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    int descriptor = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    struct stat status;
    if (descriptor < 0)
        return -1;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= FILE_MOST)
        return descriptor;
    close(descriptor);
    return -1;
}

/* Try the path without its first component, its first two, and so on: programs are often built in another directory
   than their source is kept in. */
static int open_suffix(int directory, const char *path) {
    int descriptor = -1;
    while (path && descriptor < 0) {
        path += strspn(path, "/");
        if (*path)
            descriptor = open_beneath(directory, path);
        path = strchr(path, '/');
    }
    return descriptor;
}

static bool read_all(int descriptor, struct buffer *text) {
    char chunk[1 << 14];
    ssize_t got;
    text->count = 0;
    while ((got = read(descriptor, chunk, sizeof chunk)) > 0 && text->count <= FILE_MOST)
        buffer_add(text, (struct text){chunk, (size_t)got});
    return got == 0 && text_find(buffer_text(text), 0) == SIZE_MAX;
}

struct attaching {
    struct tree *tree;
    uint64_t bytes; /* size of all files so far */
    struct buffer text, listed;
};

static bool has_room(struct attaching *a, size_t size) {
    if (size <= ALL_MOST - a->bytes) {
        a->bytes += size;
        return true;
    }
    notes_add(&a->tree->notes, &note_large, 1, 0, NULL);
    return false;
}

static void attach_source(struct attaching *a, int directory, uint32_t file) {
    struct text path = strings_get(a->tree->strings, file);
    int descriptor = open_suffix(directory, path.data); /* interned strings end with a NUL */
    if (descriptor < 0) {
        notes_add(&a->tree->notes, &note_missing, 1, 0, "%.*s", TEXT_ARGS(path));
        return;
    }
    if (read_all(descriptor, &a->text) && has_room(a, a->text.count)) {
        struct text copy = arena_copy(&a->tree->attached, buffer_text(&a->text));
        vector_push(&a->tree->sources, ((struct attached_source){file, copy}));
        if (a->listed.count < LISTED)
            buffer_printf(&a->listed, "%s%.*s", a->listed.count ? ", " : "", TEXT_ARGS(path));
    }
    close(descriptor);
}

/* Collect the files of all frames, each once, sorted by name. */
static int compare_files(const void *a, const void *b, void *context) {
    const struct strings *strings = context;
    return text_compare(strings_get(strings, *(const uint32_t *)a),
                        strings_get(strings, *(const uint32_t *)b));
}

bool saved_attach_sources(struct tree *tree, const char *directory, struct error *error) {
    struct attaching a = {.tree = tree};
    VECTOR(uint32_t) files = {0};
    int below = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (below < 0)
        return error_errno(error, directory);
    bool *seen = memory_zero(strings_count(tree->strings) + 1, sizeof *seen);
    for (size_t i = 0; i < tree->sources.count; i++)
        seen[tree->sources.items[i].file] = true;
    for (size_t i = 0; i < tree->frames.count; i++) {
        uint32_t file = tree->frames.items[i].file;
        if (file && !seen[file])
            vector_push(&files, file);
        seen[file] = true;
    }
    if (files.count > 1)
        qsort_r(files.items, files.count, sizeof *files.items, compare_files, tree->strings);
    for (size_t i = 0; i < files.count; i++)
        attach_source(&a, below, files.items[i]);
    if (a.listed.count)
        notes_add(&tree->notes, &note_sources, tree->sources.count, 0, "%.*s",
                  TEXT_ARGS(buffer_text(&a.listed)));
    close(below);
    free(seen);
    vector_release(&files);
    buffer_release(&a.text);
    buffer_release(&a.listed);
    return true;
}

/* ---- code ---- */

static void attach_code(struct attaching *a, uint32_t object, const struct symbol *symbol) {
    uint32_t machine = 0;
    struct text bytes =
        objects_code(a->tree->objects, object, symbol->start, symbol->end, &machine);
    if (!bytes.length || bytes.length > FUNCTION_MOST || !has_room(a, bytes.length))
        return;
    struct attached_code code = {object, machine, symbol->start,
                                 arena_copy(&a->tree->attached, bytes)};
    vector_push(&a->tree->codes, code);
}

void saved_attach_code(struct tree *tree, struct text function) {
    struct attaching a = {.tree = tree};
    struct index known = {
        0}; /* of functions, by object and start: ids are codes + 1; 1 means without code */
    VECTOR(struct attached_code) asked = {0};
    vector_push(&asked, ((struct attached_code){0}));
    for (size_t i = 1; tree->objects && i < tree->locations.count; i++) {
        const struct location *location = &tree->locations.items[i];
        struct symbol symbol;
        if (!location->object ||
            !objects_symbol(tree->objects, location->object, location->address - location->call,
                            &symbol) ||
            (function.length && !text_equal(function, symbol.name)))
            continue;
        uint64_t hash = hash_mix(symbol.start, location->object);
        uint32_t id;
        for (struct probe p = index_probe(&known, hash); (id = index_next(&known, &p));)
            if (asked.items[id].object == location->object && asked.items[id].start == symbol.start)
                break;
        if (id)
            continue;
        index_add(&known, hash, (uint32_t)asked.count);
        vector_push(&asked,
                    ((struct attached_code){.object = location->object, .start = symbol.start}));
        attach_code(&a, location->object, &symbol);
    }
    index_release(&known);
    vector_release(&asked);
}
