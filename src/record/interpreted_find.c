/*
 * Find a process's interpreter by the symbols that its program, or a library with an interpreter's name, exports. A file is read once; most
 * processes share theirs.
 */
#include "record/interpreted.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- memory ---- */

static bool read_process(void *context, uint64_t address, void *to, size_t size) {
    const pid_t *pid = context;
    struct iovec local = {to, size}, there = {(void *)(uintptr_t)address, size};
    return process_vm_readv(*pid, &local, 1, &there, 1, 0) == (ssize_t)size;
}

struct remote remote_process(const pid_t *pid) {
    return (struct remote){read_process, (void *)(uintptr_t)pid};
}

/* ---- files ---- */

/* Indexes into `wanted`. */
enum { PYTHON, PYTHON_VERSION, PYTHON_CODE, PHP, PHP_MODULES, RUBY, RUBY_VERSION };
static const char *const wanted[] = {
    [PYTHON] = "_PyRuntime",           [PYTHON_VERSION] = "Py_Version",
    [PYTHON_CODE] = "PyCode_Type",     [PHP] = "executor_globals",
    [PHP_MODULES] = "module_registry", [RUBY] = "ruby_current_ec",
    [RUBY_VERSION] = "ruby_version"};
static_assert(COUNT_OF(wanted) == COUNT_OF(((struct known_file *)0)->symbols), "one each");

struct mapped {
    uint64_t start, end, offset, inode;
    unsigned major_number, minor_number;
    const char *path;
};

static struct text base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return text_of(slash ? slash + 1 : path);
}

/* "python3.8", "libpython3.8.so.1.0": 0x308. */
static unsigned version_in(struct text name) {
    size_t at = text_search(name, TEXT("python3."));
    unsigned minor = 0;
    if (at == SIZE_MAX)
        return 0;
    for (at += strlen("python3."); at < name.length && isdigit((unsigned char)name.data[at]); at++)
        minor = minor < 100 ? minor * 10 + (unsigned)(name.data[at] - '0') : minor;
    return minor < 256 ? 0x300 | minor : 0;
}

bool interpreter_is_file(struct text path) {
    static const struct text names[] = {TEXT("python"), TEXT("libpython"), TEXT("php"),
                                        TEXT("libphp"), TEXT("ruby"),      TEXT("libruby")};
    size_t slash = text_find_last(path, '/');
    struct text name = slash == SIZE_MAX ? path : text_from(path, slash + 1);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (text_starts(name, names[i]))
            return true;
    return false;
}

static const struct known_file *file_look(struct known_files *known, pid_t pid,
                                          const struct mapped *m) {
    uint64_t device = (uint64_t)m->major_number << 32 | m->minor_number;
    uint64_t hash = hash_mix(hash_mix(device, m->inode), m->offset);
    uint32_t number;
    for (struct probe p = index_probe(&known->by_place, hash);
         (number = index_next(&known->by_place, &p));) {
        const struct known_file *file = &known->list.items[number - 1];
        if (file->device == device && file->inode == m->inode && file->offset == m->offset)
            return file;
    }
    struct known_file fresh = {.device = device, .inode = m->inode, .offset = m->offset};
    int descriptor = open_mapped(pid, m->start, m->end, m->path);
    if (descriptor < 0)
        return NULL; /* another time, perhaps */
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    fresh.is_interpreter = object_exports(path, wanted, COUNT_OF(wanted), fresh.symbols, m->offset,
                                          &fresh.at_offset) &&
                           (fresh.symbols[PYTHON] || fresh.symbols[PHP] || fresh.symbols[RUBY]);
    if (fresh.symbols[RUBY])
        fresh.tls_slot = object_tls_slot(path, wanted[RUBY]);
    close(descriptor);
    vector_push(&known->list, fresh);
    index_add(&known->by_place, hash, (uint32_t)known->list.count);
    return &known->list.items[known->list.count - 1];
}

void known_files_release(struct known_files *known) {
    vector_release(&known->list);
    index_release(&known->by_place);
}

/* ---- processes ---- */

static uint64_t moved(uint64_t symbol, const struct known_file *file, const struct mapped *m) {
    return symbol ? symbol - file->at_offset + m->start : 0;
}

static bool look_at_mapping(struct known_files *known, pid_t pid, const struct mapped *m,
                            struct interpreter_symbols *symbols) {
    const struct known_file *file = file_look(known, pid, m);
    if (!file || !file->is_interpreter)
        return false;
    const uint64_t *found = file->symbols;
    *symbols = (struct interpreter_symbols){.python_runtime = moved(found[PYTHON], file, m),
                                            .python_version = moved(found[PYTHON_VERSION], file, m),
                                            .python_code_type = moved(found[PYTHON_CODE], file, m),
                                            .php_globals = moved(found[PHP], file, m),
                                            .php_modules = moved(found[PHP_MODULES], file, m),
                                            .ruby_version = moved(found[RUBY_VERSION], file, m),
                                            .ruby_module = moved(file->tls_slot, file, m),
                                            .ruby_context = found[RUBY],
                                            .named_version = version_in(base_name(m->path))};
    return true;
}

/* musl's linker and library are one file: ld-musl-ARCH.so.1, but in Debian libc.so in its own directory. */
static bool is_musl_library(const char *path) {
    return text_starts(base_name(path), TEXT("ld-musl-")) || strstr(path, "-linux-musl/libc.so");
}

/* Look at the code of the program, which is mapped first, and of files named python. A program may map its own file in 65,530 places, each at
   another offset; look only at the first few, because a linker maps code once. */
bool interpreter_look_for(struct known_files *known, pid_t pid,
                          struct interpreter_symbols *symbols) {
    enum { LOOKED_AT_MOST = 64 };
    char path[64], *line = NULL;
    size_t room = 0, looked_at = 0;
    uint64_t program = 0;
    bool found = false, is_musl = false;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *file = fopen(path, "re");
    while (file && getline(&line, &room, file) > 0) {
        unsigned long long start, end, offset, inode;
        struct mapped m = {0};
        char protection[5];
        int at = 0;
        if (!strchr(line, '/') ||
            sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, protection, &offset,
                   &m.major_number, &m.minor_number, &inode, &at) < 7 ||
            !inode || line[at] != '/')
            continue;
        line[strcspn(line, "\n")] = 0;
        m.start = start, m.end = end, m.offset = offset, m.inode = inode, m.path = line + at;
        program = program ? program : inode;
        is_musl |= is_musl_library(m.path);
        if (!found && protection[2] == 'x' &&
            (inode == program || interpreter_is_file(text_of(m.path))) &&
            looked_at++ < LOOKED_AT_MOST)
            found = look_at_mapping(known, pid, &m, symbols);
    }
    if (file)
        fclose(file);
    free(line);
    symbols->is_musl = is_musl;
    return found;
}

/* ---- targets ---- */

/* "#!/usr/bin/env python3". */
static bool is_script(const char *path) {
    char line[200] = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return false;
    ssize_t got = read(file, line, sizeof line - 1);
    close(file);
    line[strcspn(line, "\n")] = 0;
    return got > 2 && line[0] == '#' && line[1] == '!' &&
           (strstr(line, "python") || strstr(line, "php") || strstr(line, "ruby"));
}

static bool is_script_in_path(const char *name) {
    const char *folders = getenv("PATH");
    char path[4200];
    for (struct text rest = text_of(folders ? folders : ""); rest.length;) {
        size_t colon = text_find(rest, ':');
        struct text folder = text_upto(rest, colon == SIZE_MAX ? rest.length : colon);
        rest = colon == SIZE_MAX ? TEXT("") : text_from(rest, colon + 1);
        snprintf(path, sizeof path, "%.*s/%s", TEXT_ARGS(folder), name);
        if (access(path, X_OK) == 0)
            return is_script(path);
    }
    return false;
}

/* Whether a word of a command names an interpreter, also in `sh -c "python3 …"`. */
static bool has_interpreter_word(struct text words) {
    while (words.length) {
        size_t end = 0;
        while (end < words.length && !strchr(" \t\n;&|()'\"", words.data[end]))
            end++;
        if (interpreter_is_file(text_upto(words, end)))
            return true;
        words = text_from(words, end < words.length ? end + 1 : end);
    }
    return false;
}

bool interpreted_is_target(const struct record_options *options) {
    struct known_files known = {0};
    struct interpreter_symbols unused;
    bool found = false;
    for (size_t i = 0; !found && i < options->pid_count; i++)
        found = interpreter_look_for(&known, options->pids[i], &unused);
    for (size_t i = 0; !found && i < options->tid_count; i++)
        found = interpreter_look_for(&known, process_of(options->tids[i]), &unused);
    known_files_release(&known);
    if (!options->command || !options->command[0])
        return found;
    const char *program = options->command[0];
    found |= strchr(program, '/') ? is_script(program) : is_script_in_path(program);
    for (size_t i = 0; !found && options->command[i]; i++)
        found = has_interpreter_word(text_of(options->command[i]));
    return found;
}
