/*
 * Detect programs whose allocations a preloaded library can't see, from their files.
 */
#include "heap/heap.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADERS_MOST = 64, SECTIONS_MOST = 200, NAMES_MOST = 4096 };

static bool read_at(int descriptor, void *to, size_t size, uint64_t offset) {
    return pread(descriptor, to, size, (off_t)offset) == (ssize_t)size;
}

static bool has_interpreter(int descriptor, const Elf64_Ehdr *header) {
    Elf64_Phdr segment;
    for (unsigned i = 0; i < header->e_phnum && i < HEADERS_MOST; i++)
        if (read_at(descriptor, &segment, sizeof segment, header->e_phoff + i * sizeof segment) &&
            segment.p_type == PT_INTERP)
            return true;
    return false;
}

/* Go's linker adds a section of this name. */
static bool is_go(int descriptor, const Elf64_Ehdr *header) {
    Elf64_Shdr section, names;
    char name[20];
    if (header->e_shentsize != sizeof section || header->e_shstrndx >= header->e_shnum ||
        !read_at(descriptor, &names, sizeof names,
                 header->e_shoff + header->e_shstrndx * sizeof names))
        return false;
    for (unsigned i = 0; i < header->e_shnum && i < SECTIONS_MOST; i++) {
        if (read_at(descriptor, &section, sizeof section, header->e_shoff + i * sizeof section) &&
            read_at(descriptor, name, sizeof name, names.sh_offset + section.sh_name) &&
            strncmp(name, ".go.buildinfo", sizeof name) == 0)
            return true;
    }
    return false;
}

/* Return NULL if it is not such a program; *header is then valid unless *unknown is set. */
static const char *foreign_elf(int descriptor, Elf64_Ehdr *header, bool *unknown) {
    *unknown = !read_at(descriptor, header, sizeof *header, 0) ||
               memcmp(header->e_ident, ELFMAG, SELFMAG) != 0; /* a script, say */
    if (*unknown)
        return NULL;
    if (header->e_ident[EI_CLASS] != ELFCLASS64)
        return "it is a 32-bit program";
    *unknown = header->e_phentsize != sizeof(Elf64_Phdr);
    return !*unknown && is_go(descriptor, header)
               ? "it is written in Go, which does not use malloc: use go tool pprof"
               : NULL;
}

static const char *refuses_elf(int descriptor) {
    Elf64_Ehdr header;
    bool unknown;
    const char *why = foreign_elf(descriptor, &header, &unknown);
    if (why || unknown)
        return why;
    return has_interpreter(descriptor, &header)
               ? NULL
               : "it is a static executable, which loads no libraries: start it and attach, "
                 "wick record --heap -p PID";
}

static const char *refuses_java(const char *path) {
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return strcmp(name, "java") == 0 ? "it is a Java virtual machine, which does not use malloc: "
                                       "use a Java profiler, or jcmd PID GC.class_histogram"
                                     : NULL;
}

const char *heap_refuses_running(const char *path, const char *name) {
    Elf64_Ehdr header;
    bool unknown;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    const char *why = descriptor < 0 ? NULL : foreign_elf(descriptor, &header, &unknown);
    if (descriptor >= 0)
        close(descriptor);
    return why ? why : refuses_java(name);
}

/* Whether the environment that the process was started with sets the variable. */
static bool has_variable(pid_t pid, struct text setting) {
    enum { ENVIRONMENT_MOST = 1 << 20 };
    struct buffer environment = {0};
    bool is_known = proc_read(pid, "environ", ENVIRONMENT_MOST, &environment) == PROC_WHOLE;
    bool is_set =
        is_known && memmem(environment.items, environment.count, setting.data, setting.length);
    buffer_release(&environment);
    return is_set || !is_known;
}

/* Such a program is linked dynamically if it also has C code. */
static bool is_go_program(const char *path) {
    Elf64_Ehdr header;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    bool is = descriptor >= 0 && read_at(descriptor, &header, sizeof header, 0) &&
              header.e_ident[EI_CLASS] == ELFCLASS64 && is_go(descriptor, &header);
    if (descriptor >= 0)
        close(descriptor);
    return is;
}

enum heap_arenas heap_arenas_of(pid_t pid) {
    char link[40], path[4096];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    const char *name = strrchr(path, '/');
    if (name && strcmp(name, "/node") == 0)
        return HEAP_NODE;
    if (name && strcmp(name, "/java") == 0)
        return HEAP_JAVA;
    if (is_go_program(link))
        return HEAP_GO;
    bool python = name && strncmp(name, "/python", 7) == 0;
    return python && !has_variable(pid, TEXT("PYTHONMALLOC=")) ? HEAP_PYTHON : HEAP_NO_ARENAS;
}

const char *heap_refuses(const char *path) {
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return NULL;
    const char *why = refuses_elf(descriptor);
    if (!why)
        why = refuses_java(path);
    if (!why && fstat(descriptor, &status) == 0 && status.st_mode & (S_ISUID | S_ISGID) &&
        geteuid() != status.st_uid)
        why = "it is set-user-id, and the dynamic linker ignores LD_PRELOAD for such programs";
    close(descriptor);
    return why;
}
