/*
 * Find the files of an object: the one with the code, and the one with its debug information.
 *
 * A recorded build id decides: a file with another one, or with none, is not the file that ran. Without a recorded id only the path is known;
 * the debug file is then found by the id of the file at that path.
 */
#include "object/source.h"

#include <stdlib.h>

/* ---- the file with the code ---- */

/* In which order; a build id proves that a file is the right one, else the path may be another file's by now. */
static const struct source *const *code_sources(const struct objects *objects,
                                                const struct object *object) {
    static const struct source *const proven[] = {&source_cache,           &source_path,
                                                  &source_undeleted,       &source_kept,
                                                  &source_debuginfod_code, NULL};
    static const struct source *const below[] = {
        &source_path, &source_cache,           &source_undeleted,
        &source_kept, &source_debuginfod_code, NULL};
    static const struct source *const unproven[] = {&source_kept, &source_path, NULL};
    static const struct source *const elsewhere[] = {&source_kept, NULL};
    if (object->identity.build_id.size)
        return objects->options.symfs ? below : proven;
    return object->identity.mount ? elsewhere : unproven;
}

static void find_image(struct objects *objects, struct object *object) {
    struct search search = {objects, object, object->identity.build_id};
    object->image = sources_open(&search, code_sources(objects, object));
    if (object->image)
        object->trouble = FILE_FINE;
    else if (object->trouble == FILE_FINE)
        object->trouble = FILE_ABSENT;
}

/* ---- the file with the debug information ---- */

static bool has_section(const struct elf_image *image, const char *name) {
    GElf_Shdr header;
    return elf_section(image, name, &header) && header.sh_type != SHT_NOBITS;
}

static void find_debug(struct objects *objects, struct object *object) {
    static const struct source *const sources[] = {
        &source_cache_debug,      &source_build_id, &source_debuglink, &source_suffix,
        &source_mirrored,         &source_beside,   &source_merged,    &source_kept_debug,
        &source_debuginfod_debug, &source_minidebug};
    struct search search = {objects, object, object->identity.build_id};
    if (object->image && object->image->build_id.size)
        search.id = object->image->build_id;
    enum file_trouble trouble = object->trouble;
    for (size_t i = 0; i < COUNT_OF(sources) && !object->debug; i++) {
        struct elf_image *debug = sources[i]->open(&search);
        bool proven = debug && (search.id.size || sources[i] == &source_minidebug ||
                                (object->image && debuglink_proves(object->image, debug)));
        bool useful = debug && (has_section(debug, ".debug_info") || has_section(debug, ".symtab"));
        if (proven && useful)
            object->debug = debug;
        else
            elf_image_free(debug);
    }
    /* A stale debug file is not the object's fault. */
    object->trouble = trouble;
}

static void find_files(struct objects *objects, struct object *object) {
    object->searched = true;
    if (object->identity.kind != OBJECT_FILE && object->identity.kind != OBJECT_VDSO)
        return;
    find_image(objects, object);
    if (object->identity.kind == OBJECT_FILE &&
        !(object->image && has_section(object->image, ".debug_info")))
        find_debug(objects, object);
}

const struct elf_image *object_image(struct objects *objects, struct object *object) {
    if (!object->searched)
        find_files(objects, object);
    return object->image;
}

const struct elf_image *object_debug(struct objects *objects, struct object *object) {
    if (!object->searched)
        find_files(objects, object);
    return object->debug;
}

/* ---- facts about one file ---- */

static void facts_of_images(const struct elf_image *image, const struct elf_image *debug,
                            struct object_facts *facts) {
    const struct elf_image *files[] = {image, debug};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        if (!files[i])
            continue;
        facts->symbols |= has_section(files[i], ".symtab");
        facts->exported |= has_section(files[i], ".dynsym");
        facts->lines |= has_section(files[i], ".debug_info");
        facts->unwind |=
            has_section(files[i], ".eh_frame") || has_section(files[i], ".debug_frame");
    }
    facts->separate = debug != NULL;
}

static void list_found(const struct object *object, struct object_found *found) {
    found->code = object->symbol_file.size    ? object->symbol_file.path
                  : object->symbol_text.count ? "the recording"
                                              : NULL;
    if (object->identity.kind == OBJECT_KERNEL && !object->symbol_file.size &&
        (object->list || object->list_is_running))
        found->code = "/proc/kallsyms";
    if (object->identity.kind == OBJECT_KERNEL && object->image)
        found->code = object->image->file.path;
    found->facts.symbols = found->code != NULL;
}

void objects_found(struct objects *objects, uint32_t id, struct object_found *found) {
    struct object *object = objects_object(objects, id);
    *found = (struct object_found){0};
    pthread_mutex_lock(&object->lock);
    if (object->identity.kind == OBJECT_FILE || object->identity.kind == OBJECT_VDSO) {
        const struct elf_image *image = object_image(objects, object),
                               *debug = object_debug(objects, object);
        facts_of_images(image, debug, &found->facts);
        found->code = image ? image->file.path : NULL;
        found->is_packed = debug && debug->copy && !debug->is_kept;
        found->debug = debug && !found->is_packed ? debug->file.path : NULL;
    } else {
        list_found(object, found);
    }
    found->trouble = object->trouble;
    found->undelivered = object->undelivered;
    pthread_mutex_unlock(&object->lock);
}

bool object_file_facts(const char *path, struct object_facts *facts, struct error *error) {
    *facts = (struct object_facts){0};
    struct elf_image *own = elf_image_open(path, true, error);
    if (!own)
        return false;
    elf_image_free(own);
    struct objects *objects = objects_new(&(struct objects_options){0});
    char *whole = realpath(path, NULL);
    struct object_identity identity = {.path = text_of(whole ? whole : path), .kind = OBJECT_FILE};
    struct object *object = objects_object(objects, objects_add(objects, &identity));
    facts_of_images(object_image(objects, object), object_debug(objects, object), facts);
    objects_free(objects);
    free(whole);
    return true;
}

struct text objects_code(struct objects *objects, uint32_t id, uint64_t start, uint64_t end,
                         uint32_t *machine) {
    struct object *object = objects_object(objects, id);
    struct text bytes = TEXT("");
    bool has_file = object->identity.kind == OBJECT_FILE || object->identity.kind == OBJECT_VDSO;
    if (object->identity.kind == OBJECT_MADE)
        return made_code(object->made, start, end, machine);
    pthread_mutex_lock(&object->lock);
    const struct elf_image *image = has_file ? object_image(objects, object) : NULL;
    if (image && start < end && end <= image->size) {
        bytes = (struct text){(const char *)image->data + start, end - start};
        *machine = image->machine;
    }
    pthread_mutex_unlock(&object->lock);
    return bytes;
}
