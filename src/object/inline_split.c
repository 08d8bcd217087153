/*
 * Split debug information: the program contains only a skeleton of each unit; its functions are in a .dwo file, or in one .dwp for all units.
 *
 * libdw finds, opens and joins these files itself, by the unit's own path below the directory in which it was compiled. If that is relative, or
 * if the program was moved together with its .dwo files, libdw searches the program's directory, which it learns only from a file descriptor;
 * then the program is read through one. The file that libdw will open is checked first, because a pipe of that name would block. libdw then
 * opens it again by name, so no other user may be able to replace it meanwhile.
 */
#include "object/inline.h"

#include <dwarf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *attribute_text(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    return attribute_string(dwarf_attr(die, name, &attribute));
}

static bool is_absolute(struct text path) {
    return path.length && path.data[0] == '/';
}

static void path_join(struct buffer *path, struct text part) {
    if (is_absolute(part))
        path->count = 0;
    else if (path->count && path->items[path->count - 1] != '/')
        buffer_add_char(path, '/');
    buffer_add(path, part);
}

/* Where libdw looks: below the program's folder, if it knows that one, the file's name alone; then the directory as well. */
static bool split_path(const struct units *units, Dwarf_Die *die, bool with_directory,
                       struct buffer *path) {
    const char *name = attribute_text(die, DW_AT_dwo_name);
    if (!name)
        name = attribute_text(die, DW_AT_GNU_dwo_name);
    if (!name || !*name)
        return false;
    struct text program = text_of(units->real_path);
    size_t slash = text_find_last(program, '/');
    path->count = 0;
    if (units->by_descriptor && slash != SIZE_MAX)
        buffer_add(path, text_upto(program, slash + 1));
    if (with_directory)
        path_join(path, text_of(attribute_text(die, DW_AT_comp_dir)));
    path_join(path, text_of(name));
    buffer_add_char(path, 0);
    return true;
}

static bool is_regular(const char *path, bool *is_there) {
    struct stat status;
    *is_there = stat(path, &status) == 0;
    return *is_there && S_ISREG(status.st_mode);
}

/* Whether only trusted users can replace the file: they own all directories of its path, and others may not write to these, or may only add
   files (as in /tmp). */
static bool is_ours(const char *path) {
    struct stat status;
    char *copy = memory_copy(path, strlen(path));
    bool ours = true;
    for (size_t end = strlen(path); ours && end > 0;) {
        copy[end] = 0;
        ours = stat(copy, &status) == 0 && user_is_trusted(status.st_uid) &&
               (!others_write(&status) || status.st_mode & S_ISVTX);
        size_t slash = text_find_last((struct text){copy, end}, '/');
        end = slash == SIZE_MAX ? 0 : slash == 0 && end > 1 ? 1 : slash;
    }
    free(copy);
    return ours;
}

/* By its own name, and by that without links. What is not there may come: then its folder must be ours. */
static bool is_kept_by_us(const char *path) {
    char *copy = memory_copy(path, strlen(path)), *real;
    size_t end = strlen(path);
    while (!(real = realpath(end ? copy : ".", NULL)) && end) {
        size_t slash = text_find_last((struct text){copy, end}, '/');
        end = slash == SIZE_MAX ? 0 : slash == 0 && end > 1 ? 1 : slash;
        copy[end] = 0;
    }
    bool ours = real && is_ours(copy) && is_ours(real);
    free(copy);
    free(real);
    return ours;
}

/* Whether libdw may open what is there, or find nothing. */
static bool may_be_opened(const char *path) {
    bool is_there;
    return (is_regular(path, &is_there) || !is_there) && is_kept_by_us(path);
}

void units_choose_way(struct units *units, Dwarf_Die *skeleton) {
    struct buffer path = {0};
    bool is_there;
    if (!units->by_descriptor && split_path(units, skeleton, true, &path) &&
        !(path.items[0] == '/' && is_regular(path.items, &is_there)))
        units->by_descriptor =
            !units->image->copy && (units->real_path = realpath(units->image->file.path, NULL));
    buffer_release(&path);
}

/* Append the path at which libdw searches for a .dwp, if it supports them and knows the program's directory. */
static void package_path(const struct units *units, struct buffer *path) {
    buffer_printf(path, "%s.dwp", units->real_path ? units->real_path : units->image->file.path);
    buffer_add_char(path, 0);
}

static bool has_package(const struct units *units) {
    struct buffer path = {0};
    bool is_there;
    package_path(units, &path);
    bool found = is_regular(path.items, &is_there);
    buffer_release(&path);
    return found;
}

/* libdw joins a path of these, and does not look where they end. */
static bool has_whole_names(Dwarf_Die *skeleton) {
    static const unsigned names[] = {DW_AT_dwo_name, DW_AT_GNU_dwo_name, DW_AT_comp_dir};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (dwarf_hasattr(skeleton, names[i]) && !attribute_text(skeleton, names[i]))
            return false;
    return true;
}

/* Nothing but files that stay what they are is where libdw will look. */
static bool is_safe(const struct units *units, Dwarf_Die *skeleton) {
    struct buffer path = {0};
    package_path(units, &path);
    bool safe = has_whole_names(skeleton) && may_be_opened(path.items);
    for (int with_directory = 0; with_directory < 2 && safe; with_directory++)
        if (split_path(units, skeleton, with_directory, &path))
            safe = may_be_opened(path.items);
    buffer_release(&path);
    return safe;
}

static void note_missing(struct units *units) {
    if (__atomic_fetch_add(&units->splits_missing, 1, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&units->has_package, has_package(units), __ATOMIC_RELAXED);
}

void unit_split(struct units *units, struct unit *unit, Dwarf_Die *unit_die, Dwarf_Die *split) {
    uint8_t type = 0;
    split->addr = NULL;
    if (unit->split == SPLIT_UNKNOWN) {
        bool is_skeleton =
            dwarf_cu_info(unit_die->cu, NULL, &type, NULL, NULL, NULL, NULL, NULL) == 0 &&
            type == DW_UT_skeleton;
        unit->split = !is_skeleton               ? SPLIT_NONE
                      : is_safe(units, unit_die) ? SPLIT_FOUND
                                                 : SPLIT_MISSING;
        if (unit->split == SPLIT_MISSING)
            note_missing(units);
    }
    if (unit->split != SPLIT_FOUND)
        return;
    if (dwarf_cu_info(unit_die->cu, NULL, NULL, NULL, split, NULL, NULL, NULL) != 0)
        split->addr = NULL;
    if (split->addr && !strings_end(dwarf_getelf(dwarf_cu_getdwarf(split->cu))))
        split->addr = NULL;
    if (!split->addr) {
        unit->split = SPLIT_MISSING;
        note_missing(units);
    }
}
