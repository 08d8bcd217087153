/*
 * A program whose debug information is in other files, and those files: .gnu_debuglink, .gnu_debugaltlink (dwz) and
 * split units (.dwo) name files beside it. The pieces are the program, program.debug, common.dwz and program.dwo.
 */
#include "object/object.h"
#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(struct objects *objects, uint32_t object, size_t size) {
    static volatile uint64_t sink;
    struct inline_chain chain = {0};
    struct symbol symbol;
    for (uint64_t at = 0; at < size; at += size / 64 + 1) {
        if (objects_symbol(objects, object, at, &symbol))
            sink = sink + symbol.start;
        objects_inlines(objects, object, at, at & 1, &chain);
    }
    vector_release(&chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"program", "program.debug", "common.dwz", "program.dwo"};
    struct text pieces[COUNT_OF(names)];
    size_t count = pieces_split(data, size, pieces, COUNT_OF(names));
    if (!count)
        return 0;
    work_in_a_folder("folder-debugfiles");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        unlink(names[i]);
        if (i < count)
            piece_write(names[i], pieces[i]);
    }
    char *path = realpath("program", NULL);
    if (!path)
        return 0;
    struct objects_options options = {.buildid_cache = "/nowhere", .lines = true};
    struct objects *objects = objects_new(&options);
    struct object_identity identity = {.path = text_of(path), .kind = OBJECT_FILE};
    uint32_t object = objects_add(objects, &identity);
    struct object_found found;
    ask(objects, object, 16384);
    objects_found(objects, object, &found);
    objects_free(objects);
    free(path);
    return 0;
}
