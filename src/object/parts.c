/*
 * The files that a recording must keep so that it can be read without the originals: those that a reader on this machine would use.
 */
#include "object/inline.h"
#include "object/source.h"

static struct text image_bytes(const struct elf_image *image) {
    return (struct text){(const char *)image->data, image->size};
}

/* The file that dwz moved what several have in common to. */
static bool visit_alternate(struct objects *objects, struct object *object,
                            const struct elf_image *image, objects_part_visit *visit,
                            void *context) {
    struct object_identity identity = {.kind = OBJECT_FILE};
    struct elf_image *alternate = alternate_open(objects, object, image, &identity.build_id);
    bool fine = true;
    if (alternate && !alternate->copy) {
        identity.path = text_of(alternate->file.path);
        fine = visit(context, PART_DEBUG, &identity, image_bytes(alternate));
    }
    elf_image_free(alternate);
    return fine;
}

/* An image that is a copy came from the recording or from the other file. The caller holds the object's lock. */
static bool visit_files(struct objects *objects, struct object *object, objects_part_visit *visit,
                        void *context) {
    const struct elf_image *image = object_image(objects, object),
                           *debug = object_debug(objects, object);
    bool fine = true;
    if (image && !image->copy)
        fine = visit(context, PART_CODE, &object->identity, image_bytes(image));
    if (fine && debug && !debug->copy)
        fine = visit(context, PART_DEBUG, &object->identity, image_bytes(debug));
    if (fine && image)
        fine = visit_alternate(objects, object, image, visit, context);
    if (fine && debug)
        fine = visit_alternate(objects, object, debug, visit, context);
    return fine;
}

/* The running kernel's list is not in memory as a whole. */
static struct text whole_list(struct object *kernel) {
    pthread_mutex_lock(&kernel->lock);
    if (!object_list(kernel).length && kernel->list)
        kernel_list_read(kernel, "/proc/kallsyms");
    pthread_mutex_unlock(&kernel->lock);
    return object_list(kernel);
}

bool objects_each_part(struct objects *objects, uint32_t id, objects_part_visit *visit,
                       void *context) {
    struct object *object = objects_object(objects, id);
    bool fine = true;
    if (object->identity.kind == OBJECT_KERNEL) {
        object_symbols(objects, object);
        struct text list = whole_list(object);
        return !list.length || visit(context, PART_LIST, &object->identity, list);
    }
    if (object->identity.kind != OBJECT_FILE)
        return true;
    pthread_mutex_lock(&object->lock);
    fine = visit_files(objects, object, visit, context);
    pthread_mutex_unlock(&object->lock);
    return fine;
}

bool objects_is_used(struct objects *objects, uint32_t id) {
    struct object *object = objects_object(objects, id);
    pthread_mutex_lock(&object->lock);
    bool is_used = object->searched;
    pthread_mutex_unlock(&object->lock);
    return is_used;
}
