/* The test's own address space, as a recording would have it: /proc/self/maps to objects and spaces. */
#ifndef WICK_TEST_SELF_H
#define WICK_TEST_SELF_H

#include "object/object.h"
#include "space/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct self {
    struct objects *objects;
    struct spaces *spaces;
    struct space_at at;
};

static inline void self_map(struct self *self, const char *line) {
    uint64_t start, end, offset;
    char protection[8] = "", path[4096] = "";
    struct key key = {0};
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4095[^\n]", &start, &end,
               protection, &offset, path) < 4)
        return;
    bool is_vdso = strcmp(path, "[vdso]") == 0;
    struct object_identity identity = {.path = text_of(path),
                                       .kind = path[0] == '/' ? OBJECT_FILE
                                               : is_vdso      ? OBJECT_VDSO
                                                              : OBJECT_NONE};
    uint64_t at = identity.kind == OBJECT_FILE ? offset : is_vdso ? 0 : start;
    struct mapping mapping = {start, end, at, objects_add(self->objects, &identity),
                              protection[2] == 'x'};
    spaces_mmap(self->spaces, &key, 1, 1, &mapping);
}

static inline void self_open(struct self *self) {
    struct objects_options options = {.lines = true};
    struct space_cursor cursor = {0};
    struct key key = {.time = 1};
    char *line = NULL;
    size_t size = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    self->objects = objects_new(&options);
    self->spaces = spaces_new(NULL);
    while (maps && getline(&line, &size, maps) > 0)
        self_map(self, line);
    free(line);
    if (maps)
        fclose(maps);
    spaces_seal(self->spaces);
    spaces_at(self->spaces, &cursor, 1, 1, &key, &self->at);
}

static inline void self_close(struct self *self) {
    spaces_free(self->spaces);
    objects_free(self->objects);
}

#endif
