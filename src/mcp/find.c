/* Find and list profiles below the given directories. Symbolic links are followed if they stay below, and never
   listed. */
#include "mcp/tools.h"

#include <stdlib.h>
#include <time.h>

#include "run/run.h"

enum { LISTED = 200 };

/* Strip the directory's own path from `name`, if it begins with it. */
static const char *name_below(const char *directory, const char *name) {
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/')
        length--;
    bool below = strncmp(name, directory, length) == 0 && name[length] == '/';
    return below ? name + length + 1 : name;
}

int profile_open(const struct roots *roots, const char *name) {
    for (size_t i = 0; i < roots->options->directory_count; i++) {
        const char *path = name_below(roots->options->directories[i], name);
        int found = found_open(roots->descriptors[i], path, true);
        if (found >= 0)
            return found;
    }
    return -1;
}

static void add_line(struct buffer *answer, const struct found *item) {
    struct tm broken;
    char when[32] = "";
    time_t time = (time_t)item->time;
    if (gmtime_r(&time, &broken))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &broken);
    buffer_add_shown(answer, text_of(item->name));
    buffer_printf(answer, "  (%s%lld bytes, %s)\n", item->is_run ? "a run, " : "",
                  (long long)item->size, when);
}

void profiles_list(const struct roots *roots, struct buffer *answer) {
    found_list list = {0};
    for (size_t i = 0; i < roots->options->directory_count; i++)
        found_look(&list, roots->descriptors[i]);
    found_sort(&list);
    for (size_t i = 0; i < list.count && i < LISTED; i++)
        add_line(answer, &list.items[i]);
    if (list.count > LISTED)
        buffer_printf(answer, "… and %zu older ones\n", list.count - LISTED);
    if (!list.count)
        buffer_add(answer, TEXT("There are no profiles in the directories that wick was given.\n"));
    found_release(&list);
}
