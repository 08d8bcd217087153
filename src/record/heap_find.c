/*
 * Find the functions of a process's allocator, and where in them a probe costs least.
 *
 * Every mapped file that has both malloc and free is used: if a program brings its own, its libc's are not called. A trap on an instruction
 * that the kernel can emulate costs about a microsecond; if the kernel has to single-step it, ten times as much. So a probe is placed after
 * harmless instructions, on the first push, jump, call or nop.
 */
#include "record/heap_catch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST = 1, SECOND = 2, THIRD = 4, FOURTH = 8, CODE_READ = 96, LINE_MOST = 4400 };

static const struct {
    const char *name;
    unsigned cookie, kept;
} functions[] = {
    {"malloc", CATCH_MALLOC, FIRST},
    {"free", CATCH_FREE, FIRST},
    {"calloc", CATCH_CALLOC | CATCH_MAY_NEST, FIRST | SECOND},
    {"realloc", CATCH_REALLOC | CATCH_MAY_NEST, FIRST | SECOND},
    {"reallocarray", CATCH_REALLOCARRAY | CATCH_MAY_NEST, FIRST | SECOND | THIRD},
    {"posix_memalign", CATCH_POSIX_MEMALIGN | CATCH_MAY_NEST, FIRST | THIRD},
    {"aligned_alloc", CATCH_ALIGNED | CATCH_MAY_NEST, FIRST | SECOND},
    {"memalign", CATCH_ALIGNED | CATCH_MAY_NEST, FIRST | SECOND},
    {"valloc", CATCH_MALLOC | CATCH_MAY_NEST, FIRST},
    {"pvalloc", CATCH_MALLOC | CATCH_MAY_NEST, FIRST},
    {"cfree", CATCH_FREE, FIRST},
    /* operators of allocators that have their own; libstdc++'s call malloc */
    {"_Znwm", CATCH_NEW | CATCH_MAY_NEST, FIRST},
    {"_Znam", CATCH_NEW | CATCH_MAY_NEST, FIRST},
    {"_ZnwmRKSt9nothrow_t", CATCH_NEW | CATCH_MAY_NEST, FIRST},
    {"_ZnamRKSt9nothrow_t", CATCH_NEW | CATCH_MAY_NEST, FIRST},
    {"_ZnwmSt11align_val_t", CATCH_NEW | CATCH_MAY_NEST, FIRST},
    {"_ZnamSt11align_val_t", CATCH_NEW | CATCH_MAY_NEST, FIRST},
    {"_ZdlPv", CATCH_FREE, FIRST},
    {"_ZdaPv", CATCH_FREE, FIRST},
    {"_ZdlPvm", CATCH_FREE, FIRST},
    {"_ZdaPvm", CATCH_FREE, FIRST},
    {"_ZdlPvSt11align_val_t", CATCH_FREE, FIRST},
    {"_ZdaPvSt11align_val_t", CATCH_FREE, FIRST},
    {"_ZdlPvmSt11align_val_t", CATCH_FREE, FIRST},
    {"_ZdaPvmSt11align_val_t", CATCH_FREE, FIRST},
    /* from here on: mappings */
    {"mmap", CATCH_MMAP, FIRST | SECOND | THIRD | FOURTH},
    {"mmap64", CATCH_MMAP, FIRST | SECOND | THIRD | FOURTH},
    {"munmap", CATCH_MUNMAP, FIRST | SECOND},
    {"mremap", CATCH_MREMAP, FIRST | SECOND | THIRD | FOURTH},
    {"sbrk", CATCH_SBRK, FIRST},
    {"brk", CATCH_BRK, FIRST},
};
enum { FUNCTIONS = COUNT_OF(functions), MAPPINGS = FUNCTIONS - 6 };

/* ---- places ---- */

/* Whether the kernel emulates the instruction: push of a register, nop, jumps and calls to a fixed address. */
static bool is_emulated(const uint8_t *c) {
    return (c[0] >= 0x50 && c[0] <= 0x57) || (c[0] == 0x41 && c[1] >= 0x50 && c[1] <= 0x57) ||
           c[0] == 0x90 || (c[0] == 0x0f && c[1] == 0x1f) || c[0] == 0xeb || c[0] == 0xe9 ||
           c[0] == 0xe8 || (c[0] >= 0x70 && c[0] <= 0x7f) ||
           (c[0] == 0x0f && c[1] >= 0x80 && c[1] <= 0x8f);
}

/* Register numbers in instructions: rdi, rsi, rdx, rcx; and the stack pointer. */
static bool is_kept(unsigned number, unsigned kept) {
    return number == 4 || (number == 7 && kept & FIRST) || (number == 6 && kept & SECOND) ||
           (number == 2 && kept & THIRD) || (number == 1 && kept & FOURTH);
}

/* Return the length of what follows an opcode: a ModRM byte with everything that belongs to it. */
static size_t operand_length(const uint8_t *modrm) {
    unsigned mode = modrm[0] >> 6, base = modrm[0] & 7;
    if (mode == 3)
        return 1;
    size_t index = base == 4;
    if (mode == 0 && (base == 5 || (index && (modrm[1] & 7) == 5)))
        return 5 + index;
    return 1 + index + (mode == 0 ? 0 : mode == 1 ? 1 : 4);
}

/* What an instruction of the usual form writes to. */
enum written { WRITES_UNKNOWN, WRITES_NOTHING, WRITES_OPERAND, WRITES_REGISTER };

static enum written written_by(uint8_t opcode, unsigned digit, size_t *immediate) {
    *immediate = 0;
    if (opcode < 0x40 && (opcode & 7) < 4) { /* add, or, adc, sbb, and, sub, xor; cmp */
        if (opcode >= 0x38)
            return WRITES_NOTHING;
        return opcode & 2 ? WRITES_REGISTER : WRITES_OPERAND;
    }
    switch (opcode) {
    case 0x84: /* test */
    case 0x85:
        return WRITES_NOTHING;
    case 0x88: /* mov */
    case 0x89:
        return WRITES_OPERAND;
    case 0x8a:
    case 0x8b:
    case 0x8d: /* lea */
    case 0x63: /* movslq */
        return WRITES_REGISTER;
    case 0x80: /* the first ones, with a constant */
    case 0x83:
    case 0x81:
        *immediate = opcode == 0x81 ? 4 : 1;
        return digit == 7 ? WRITES_NOTHING : WRITES_OPERAND;
    case 0xc1: /* shifts */
        *immediate = 1;
        return WRITES_OPERAND;
    }
    return WRITES_UNKNOWN;
}

/* Return the length of an instruction that changes no kept register, or 0 for any other. */
static size_t harmless_length(const uint8_t *code, unsigned kept) {
    const uint8_t *c = code;
    unsigned rex = 0;
    size_t immediate;
    if (c[0] == 0xf3 && c[1] == 0x0f && c[2] == 0x1e && c[3] == 0xfa)
        return 4;   /* endbr64 */
    if (*c == 0x64) /* memory of the thread */
        c++;
    if ((*c & 0xf0) == 0x40)
        rex = *c++;
    uint8_t opcode = c[0], modrm = c[1];
    size_t prefix = (size_t)(c - code) + 1;
    if (opcode >= 0xb8 && opcode <= 0xbf && !(rex & 8)) /* mov $…,%reg */
        return is_kept((opcode & 7u) | (rex & 1) << 3, kept) ? 0 : prefix + 4;
    if (opcode < 0x40 && (opcode & 7) == 5) /* of eax, with a constant */
        return prefix + 4;
    enum written written = written_by(opcode, modrm >> 3 & 7, &immediate);
    unsigned to = (modrm >> 3 & 7) | (rex & 4) << 1, operand = (modrm & 7) | (rex & 1) << 3;
    if (written == WRITES_UNKNOWN || (written == WRITES_REGISTER && is_kept(to, kept)) ||
        (written == WRITES_OPERAND && modrm >> 6 == 3 && is_kept(operand, kept)))
        return 0;
    return prefix + operand_length(c + 1) + immediate;
}

size_t catch_place(const uint8_t *code, size_t size, unsigned kept, bool *stepped) {
    enum { LONGEST = 16 };
    size_t at = 0;
    *stepped = false;
    while (at + LONGEST <= size) {
        if (is_emulated(code + at))
            return at;
        size_t length = harmless_length(code + at, kept);
        if (!length)
            break;
        at += length;
    }
    *stepped = true;
    return 0;
}

/* ---- functions ---- */

/* Functions that are called rarely cost little, however slow the probe. */
static bool is_called_often(size_t number) {
    const char *name = functions[number].name;
    return number < MAPPINGS && strcmp(name, "reallocarray") != 0 && !strstr(name, "valloc");
}

static void note_stepped(struct catch_costs *costs, const char *function, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!costs->stepped++)
        snprintf(costs->where, sizeof costs->where, "%s of %.60s", function,
                 slash ? slash + 1 : path);
}

/* Return the part of the cookie that distinguishes the program's calls from those of the file itself. */
static uint64_t code_around(const struct catch_file *file, uint64_t offset) {
    uint64_t page = offset / CATCH_PAGE, first = file->offset / CATCH_PAGE;
    uint64_t end = (file->offset + file->size + CATCH_PAGE - 1) / CATCH_PAGE;
    return (page - first) << CATCH_BEFORE_SHIFT | (end - page) << CATCH_AFTER_SHIFT;
}

static void add_site(struct catch_file *file, uint64_t offset, size_t number, const char *path,
                     struct catch_costs *costs) {
    uint8_t code[CODE_READ] = {0};
    bool stepped = false;
    if (pread(file->descriptor, code, sizeof code, (off_t)offset) != sizeof code)
        return;
#if defined(__x86_64__)
    offset += catch_place(code, sizeof code, functions[number].kept, &stepped);
#endif
    for (size_t i = 0; i < file->sites.count; i++)
        if (file->sites.items[i].offset == offset)
            return; /* one function with two names */
    if (stepped && is_called_often(number))
        note_stepped(costs, functions[number].name, path);
    uint64_t cookie = functions[number].cookie;
    if (number >= MAPPINGS)
        cookie |= code_around(file, offset);
    vector_push(&file->sites, ((struct catch_site){offset, cookie}));
}

/* Mappings made inside an allocator's functions are its own, so watch those functions until they return. */
static void watch_to_the_end(struct catch_file *file) {
    for (size_t i = 0; i < file->sites.count; i++)
        if (file->sites.items[i].cookie != CATCH_FREE)
            file->sites.items[i].cookie |= CATCH_MAY_NEST;
}

/* Return false if this file has no allocator. */
static bool find_sites(struct catch_file *file, const char *path, bool maps,
                       struct catch_costs *costs) {
    const char *names[FUNCTIONS];
    uint64_t addresses[FUNCTIONS], start;
    bool has_maps = false;
    char own[40];
    for (size_t i = 0; i < FUNCTIONS; i++)
        names[i] = functions[i].name;
    snprintf(own, sizeof own, "/proc/self/fd/%d", file->descriptor);
    if (!object_exports(own, names, FUNCTIONS, addresses, file->offset, &start) || !addresses[0] ||
        !addresses[1])
        return false;
    for (size_t i = 0; i < (maps ? FUNCTIONS : MAPPINGS); i++) {
        if (addresses[i])
            add_site(file, addresses[i] - start + file->offset, i, path, costs);
        has_maps |= addresses[i] && i >= MAPPINGS;
    }
    if (maps && !has_maps)
        watch_to_the_end(file);
    return file->sites.count;
}

/* ---- files ---- */

/* The dynamic linker has an allocator for its own use; wick's library calls the real one. */
static bool is_passed_over(const char *path) {
    const char *slash = strrchr(path, '/');
    return !slash || strncmp(slash, "/ld-linux", 9) == 0 || strcmp(slash, "/libwick-heap.so") == 0;
}

static bool same_file(int a, int b) {
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static bool is_known(const catch_files *files, int descriptor) {
    for (size_t i = 0; i < files->count; i++)
        if (same_file(files->items[i].descriptor, descriptor))
            return true;
    return false;
}

static void look_at(pid_t pid, char *line, bool maps, catch_files *files,
                    struct catch_costs *costs) {
    unsigned long long start, end, offset;
    char mode[5];
    int path_at = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%llx-%llx %4s %llx %*s %*s %n", &start, &end, mode, &offset, &path_at) < 4 ||
        mode[2] != 'x' || line[path_at] != '/' || is_passed_over(line + path_at))
        return;
    struct catch_file file = {.descriptor = open_mapped(pid, start, end, line + path_at),
                              .offset = offset,
                              .size = end - start};
    if (file.descriptor >= 0 && !is_known(files, file.descriptor) &&
        find_sites(&file, line + path_at, maps, costs)) {
        vector_push(files, file);
        return;
    }
    if (file.descriptor >= 0)
        close(file.descriptor);
    vector_release(&file.sites);
}

void catch_files_release(catch_files *files) {
    for (size_t i = 0; i < files->count; i++) {
        close(files->items[i].descriptor);
        vector_release(&files->items[i].sites);
    }
    vector_release(files);
}

static bool is_malloc_used(pid_t pid, struct error *error) {
    char path[40], name[400];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t length = readlink(path, name, sizeof name - 1);
    name[length > 0 ? length : 0] = 0;
    const char *why = heap_refuses_running(path, name);
    return !why || error_set(error, ERROR_DENIED,
                             "process %d: its allocations can't be recorded: %s", pid, why);
}

/* If allocator and program are in one file, their mappings can't be told apart. */
static bool is_allocator_apart(pid_t pid, const catch_files *files, struct error *error) {
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    int program = open(path, O_RDONLY | O_CLOEXEC);
    bool apart = program < 0 || !is_known(files, program);
    if (program >= 0)
        close(program);
    return apart || error_set(error, ERROR_DENIED,
                              "process %d: its mappings can't be recorded: its allocator is part "
                              "of the executable; --heap without =mmap records its blocks",
                              pid);
}

bool catch_find(pid_t pid, bool maps, catch_files *files, struct catch_costs *costs,
                struct error *error) {
    char path[40], line[LINE_MOST];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    if (!is_malloc_used(pid, error))
        return false;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(error, path);
    while (fgets(line, sizeof line, file))
        look_at(pid, line, maps, files, costs);
    fclose(file);
    if (maps && !is_allocator_apart(pid, files, error))
        return false;
    return files->count || error_set(error, ERROR_DENIED,
                                     "process %d: its allocations can't be recorded: none of its "
                                     "mapped files has the symbols malloc and free",
                                     pid);
}
