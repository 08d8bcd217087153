/*
 * Find the Debian package of a file in dpkg's lists, which have one path a line for each package. No program is started.
 */
#include "object/object.h"

#include <dirent.h>
#include <stdlib.h>

#define LISTS "/var/lib/dpkg/info"

/* Packages may still call it /lib/… what is /usr/lib/… since the two were merged. */
static bool list_has(struct text list, struct text path) {
    for (struct text line; list.length;) {
        line = text_take_line(&list);
        if (text_equal(line, path) ||
            (text_starts(path, TEXT("/usr/")) && text_equal(line, text_from(path, 4))))
            return true;
    }
    return false;
}

static bool is_in_list(const char *name, struct text path) {
    struct buffer list = {0};
    struct file file;
    bool found = false;
    buffer_printf(&list, LISTS "/%s", name);
    buffer_add_char(&list, 0);
    if (file_open_raw(&file, list.items, NULL, NULL)) {
        found = list_has(file_text(&file), path);
        file_close(&file);
    }
    buffer_release(&list);
    return found;
}

/* "libc6:amd64.list" */
bool object_file_package(struct text path, struct buffer *package) {
    DIR *lists = opendir(LISTS);
    bool found = false;
    if (!lists)
        return false;
    for (struct dirent *entry; !found && (entry = readdir(lists));) {
        struct text name = text_of(entry->d_name);
        if (!text_ends(name, TEXT(".list")) || !is_in_list(entry->d_name, path))
            continue;
        name = text_upto(name, name.length - 5);
        size_t colon = text_find(name, ':');
        buffer_add(package, colon == SIZE_MAX ? name : text_upto(name, colon));
        found = true;
    }
    closedir(lists);
    return found;
}
