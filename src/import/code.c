/* Locations of formats that have an address, an object and the functions there: pprof, OpenTelemetry, the Firefox
   Profiler. */
#include "import/reader.h"

struct build_id build_id_of_hex(struct text hex) {
    struct build_id id = {0};
    uint64_t byte;
    if (hex.length % 2 || hex.length > 2 * BUILD_ID_MAX)
        return id;
    for (size_t i = 0; i < hex.length; i += 2) {
        if (!text_hex_to_u64((struct text){hex.data + i, 2}, &byte))
            return (struct build_id){0};
        id.bytes[i / 2] = (uint8_t)byte;
    }
    id.size = (uint8_t)(hex.length / 2);
    return id;
}

/* Such tools call the vDSO a library. */
uint32_t object_with_id(struct tree *tree, struct text path, const struct build_id *id) {
    bool is_vdso = text_equal(path, TEXT("[vdso]"));
    if (!tree->objects)
        tree->objects = objects_new(&(struct objects_options){0});
    return objects_add(tree->objects,
                       &(struct object_identity){.path = path,
                                                 .kind = is_vdso ? OBJECT_VDSO : OBJECT_NAME,
                                                 .build_id = *id});
}

enum mode mode_of_object(struct text path) {
    return script_object_kinds(path, false) & KIND_KERNEL ? MODE_KERNEL : MODE_USER;
}

struct frame code_frame(struct tree *tree, struct text name, struct text file, uint32_t line,
                        uint32_t column) {
    return (struct frame){.name = name.length ? strings_add(tree->strings, name) : 0,
                          .file = file.length ? strings_add(tree->strings, file) : 0,
                          .line = line,
                          .column = column};
}

/* The frame that represents the location if inlined functions are not expanded: it has the line of the innermost one. */
static struct frame frame_at(const struct frame *frames, size_t count, size_t i,
                             const struct import_options *options) {
    struct frame frame = frames[count - 1 - i];
    if (options->profile.no_inline) {
        frame.file = frames[0].file;
        frame.line = frames[0].line;
    }
    if (!options->profile.source_lines || !frame.file)
        frame.file = frame.line = frame.column = 0;
    frame.inlined = i > 0;
    frame.offset = OFFSET_UNKNOWN;
    return frame;
}

static bool is_same_frame(const struct frame *a, const struct frame *b) {
    return a->name == b->name && a->file == b->file && a->line == b->line &&
           a->column == b->column && a->language == b->language;
}

uint32_t tree_add_code(struct tree *tree, const struct location *location,
                       const struct frame *frames, size_t count,
                       const struct import_options *options) {
    size_t kept = options->profile.no_inline && count > 1 ? 1 : count;
    for (struct location at = *location;; at.line++) {
        size_t before = tree->locations.count;
        uint32_t id = tree_add_location(tree, &at);
        struct location *added = &tree->locations.items[id];
        bool same = added->frame_count == kept;
        tree_take_steps(tree, 1 + kept);
        if (id == before) {
            added->first_frame = (uint32_t)tree->frames.count;
            added->frame_count = (uint32_t)kept;
            for (size_t i = 0; i < kept; i++)
                vector_push(&tree->frames, frame_at(frames, count, i, options));
            return id;
        }
        for (size_t i = 0; same && i < kept; i++) {
            struct frame frame = frame_at(frames, count, i, options);
            same = is_same_frame(&tree->frames.items[added->first_frame + i], &frame);
        }
        if (same)
            return id;
    }
}
