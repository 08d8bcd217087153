/*
 * Finding the files of an object: the one with the code, and the one with its debug information.
 *
 * A recorded build id decides: a file with another one, or with none, is not the file that ran. Without a recorded id the
 * path is all there is, and the id of the file found there finds its debug file.
 */
#include "object/internal.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <zlib.h>

static bool is_regular(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

struct text symfs_of(const struct objects *objects) {
    struct text symfs = text_of(objects->options.symfs);
    while (symfs.length && symfs.data[symfs.length - 1] == '/')
        symfs.length--;
    return symfs;
}

/* ---- the paths ---- */

static struct text directory_of(struct text path) {
    size_t slash = text_find_last(path, '/');
    return text_upto(path, slash == SIZE_MAX ? 0 : slash);
}

/* By the letters, not by what is there: a link in --symfs is its owner's and may lead out of it, a recorded path may not. */
void path_set_below(struct buffer *path, struct text root, struct text rest) {
    path->count = 0;
    buffer_add(path, root);
    while (rest.length) {
        size_t end = text_find(rest, '/');
        struct text part = end == SIZE_MAX ? rest : text_upto(rest, end);
        rest = text_from(rest, end == SIZE_MAX ? rest.length : end + 1);
        if (text_equal(part, TEXT("..")))
            path->count =
                root.length + directory_of(text_from(buffer_text(path), root.length)).length;
        if (!part.length || text_equal(part, TEXT(".")) || text_equal(part, TEXT("..")))
            continue;
        buffer_add_char(path, '/');
        buffer_add(path, part);
    }
    buffer_add_char(path, 0);
}

static void path_set(struct buffer *path, struct text root, struct text a, struct text b,
                     struct text c) {
    struct buffer rest = {0};
    buffer_add(&rest, a);
    buffer_add(&rest, b);
    buffer_add(&rest, c);
    path->count = 0;
    if (root.length) {
        path_set_below(path, root, buffer_text(&rest));
    } else {
        buffer_add(path, buffer_text(&rest));
        buffer_add_char(path, 0);
    }
    buffer_release(&rest);
}

/* An entry of the cache is a directory; once it was the file itself. */
static void path_in_cache(struct buffer *path, const char *cache, const char *hex,
                          const char *name) {
    path->count = 0;
    buffer_printf(path, "%s/.build-id/%.2s/%s", cache, hex, hex + 2);
    buffer_add_char(path, 0);
    if (is_regular(path->items))
        return;
    path->count--;
    buffer_printf(path, "/%s", name);
    buffer_add_char(path, 0);
}

/* .gnu_debuglink: a file name, NUL, padding to 4, CRC-32 of that file. */
static bool debuglink_read(const struct elf_image *image, struct text *name, uint32_t *checksum) {
    struct text bytes;
    if (!elf_section_bytes(image, ".gnu_debuglink", &bytes))
        return false;
    size_t end = text_find(bytes, 0);
    size_t at = end == SIZE_MAX ? SIZE_MAX : (end + 4) & ~(size_t)3;
    if (end == 0 || at > bytes.length || bytes.length - at < 4)
        return false;
    *name = text_upto(bytes, end);
    *checksum = load_u32(bytes.data + at);
    return true;
}

static bool path_of_debuglink(struct buffer *path, const struct objects *objects,
                              const struct object *object) {
    static const struct text system = TEXT("/usr/lib/debug"), none = TEXT("");
    struct text root = symfs_of(objects), recorded = object->identity.path;
    struct elf_image *opened = NULL;
    const struct elf_image *image = object->image;
    struct text name;
    uint32_t checksum;
    if (!image) {
        path_set(path, root, recorded, none, none);
        image = opened = elf_image_open(path->items, false, NULL);
    }
    bool found = false;
    if (image && debuglink_read(image, &name, &checksum)) {
        struct text directory = directory_of(recorded);
        const struct text roots[] = {root, root, system};
        const struct text between[] = {TEXT("/"), TEXT("/.debug/"), TEXT("/")};
        if (name.data[0] == '/') { /* perf opens it wherever it is */
            path_set(path, objects->options.compat_perf ? none : root, name, none, none);
            found = is_regular(path->items);
        }
        for (size_t i = 0; i < COUNT_OF(roots) && !found; i++) {
            path_set(path, roots[i], directory, between[i], name);
            found = is_regular(path->items);
        }
    }
    elf_image_free(opened);
    return found;
}

static bool path_at(struct buffer *path, const struct objects *objects, const struct object *object,
                    enum file_place place, const struct build_id *id) {
    static const struct text system = TEXT("/usr/lib/debug"), none = TEXT("");
    struct text root = symfs_of(objects), recorded = object->identity.path;
    char hex[2 * BUILD_ID_MAX + 1];
    build_id_print(id, hex);
    switch (place) {
    case PLACE_DEBUGLINK:
        return path_of_debuglink(path, objects, object);
    case PLACE_CACHE:
    case PLACE_CACHE_DEBUG:
        if (id->size < 2)
            return false;
        path_in_cache(path, objects->buildid_cache, hex,
                      object->identity.kind == OBJECT_VDSO ? "vdso"
                      : place == PLACE_CACHE               ? "elf"
                                                           : "debug");
        return true;
    case PLACE_SYSTEM_SUFFIX:
        path_set(path, root, system, recorded, TEXT(".debug"));
        return true;
    case PLACE_SYSTEM:
        path_set(path, root, system, recorded, none);
        return true;
    case PLACE_BUILD_ID:
        if (id->size < 2)
            return false;
        path->count = 0;
        buffer_printf(path, "%.*s/usr/lib/debug/.build-id/%.2s/%s.debug", TEXT_ARGS(root), hex,
                      hex + 2);
        buffer_add_char(path, 0);
        return true;
    case PLACE_PATH:
        path_set(path, root, recorded, none, none);
        return true;
    case PLACE_BESIDE: {
        struct text directory = directory_of(recorded);
        path_set(path, root, directory, TEXT("/.debug"), text_from(recorded, directory.length));
        return true;
    }
    case PLACE_SYSTEM_MERGED:
        if (!text_starts(recorded, TEXT("/usr/lib/")))
            return false;
        path_set(path, root, system, text_from(recorded, 4), none);
        return true;
    case PLACE_COUNT:
        break;
    }
    return false;
}

/* ---- opening ---- */

static void note_changed(struct object *object, const char *path) {
    if (!object->changed)
        object->changed = memory_copy(path, strlen(path));
}

/* Takes the image over: back it comes only if it is the one. */
static struct elf_image *image_checked(struct object *object, struct elf_image *image,
                                       const struct build_id *id) {
    if (!image || !id->size || build_id_matches(id, &image->build_id))
        return image;
    if (file_changed(&image->file, NULL))
        note_changed(object, image->file.path);
    object->trouble = FILE_MISMATCH;
    elf_image_free(image);
    return NULL;
}

struct elf_image *object_open(struct object *object, const char *path, const struct build_id *id) {
    bool changed = false;
    struct elf_image *image =
        elf_image_open_watched(path, object->identity.kind == OBJECT_MODULE, &changed, NULL);
    if (changed)
        note_changed(object, path);
    return image_checked(object, image, id);
}

/* The section headers come last in what the kernel maps. */
struct text object_vdso(void) {
    const uint8_t *own = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    if (!own)
        return (struct text){0};
    Elf64_Ehdr header;
    memcpy(&header, own, sizeof header);
    return (struct text){(const char *)own,
                         header.e_shoff + (size_t)header.e_shnum * header.e_shentsize};
}

static struct elf_image *vdso_open(void) {
    struct text own = object_vdso();
    return own.length ? elf_image_copy(own.data, own.length, "[vdso]", NULL) : NULL;
}

/* May this process's vdso stand for the recorded one? A build id proves it; without one only on the machine that recorded,
   which --symfs denies. perf takes its own only where none was recorded. */
static bool vdso_is_ours(const struct objects *objects, const struct object *object) {
    if (!text_equal(object->identity.path, TEXT("[vdso]")))
        return false; /* a 32-bit process's */
    return object->identity.build_id.size ? !objects->options.compat_perf : !objects->options.symfs;
}

struct elf_image *object_open_at(struct objects *objects, struct object *object,
                                 enum file_place place, const struct build_id *id) {
    if (object->identity.kind == OBJECT_VDSO && place == PLACE_PATH)
        return vdso_is_ours(objects, object) ? image_checked(object, vdso_open(), id) : NULL;
    struct buffer path = {0};
    struct elf_image *image = NULL;
    if (path_at(&path, objects, object, place, id))
        image = object_open(object, path.items, id);
    buffer_release(&path);
    return image;
}

/* ---- the file with the code ---- */

/* A file that was replaced while it ran was recorded as "PATH (deleted)". What is at PATH now may be the same again: after
   a rename, or seen from another mount. Only a build id can tell. */
static struct elf_image *open_undeleted(const struct objects *objects, struct object *object) {
    static const struct text suffix = TEXT(" (deleted)");
    struct text path = object->identity.path;
    if (!object->identity.build_id.size || !text_ends(path, suffix))
        return NULL;
    struct buffer whole = {0};
    path_set(&whole, symfs_of(objects), text_upto(path, path.length - suffix.length), TEXT(""),
             TEXT(""));
    struct elf_image *image = object_open(object, whole.items, &object->identity.build_id);
    buffer_release(&whole);
    return image;
}

static struct elf_image *open_kept(struct object *object) {
    struct buffer bytes = {0};
    struct elf_image *image = NULL;
    if (object->kept && object->kept(object->kept_context, object->kept_item, &bytes)) {
        char *path = memory_copy(object->identity.path.data, object->identity.path.length);
        image = elf_image_copy(bytes.items, bytes.count, path, NULL);
        free(path);
    }
    buffer_release(&bytes);
    return image_checked(object, image, &object->identity.build_id);
}

static void find_image(struct objects *objects, struct object *object) {
    static const enum file_place plain[] = {PLACE_CACHE, PLACE_PATH},
                                 below[] = {PLACE_PATH, PLACE_CACHE};
    const enum file_place *places = objects->options.symfs ? below : plain;
    bool is_proven =
        object->identity.build_id.size; /* else the path may be another file's by now */
    if (!is_proven)
        object->image = open_kept(object);
    for (size_t i = 0; i < COUNT_OF(plain) && !object->image && !object->identity.mount; i++)
        object->image = object_open_at(objects, object, places[i], &object->identity.build_id);
    if (!object->image)
        object->image = open_undeleted(objects, object);
    if (!object->image && is_proven)
        object->image = open_kept(object);
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

/* Without a build id the checksum of .gnu_debuglink is the only proof; it costs reading the whole file. */
static bool debuglink_proves(const struct elf_image *image, const struct elf_image *debug) {
    struct text name;
    uint32_t checksum;
    if (!debuglink_read(image, &name, &checksum))
        return false;
    uLong sum = crc32(0, Z_NULL, 0);
    for (size_t done = 0, part; done < debug->size; done += part) {
        part = debug->size - done < 1u << 30 ? debug->size - done : 1u << 30;
        sum = crc32(sum, debug->data + done, (uInt)part);
    }
    return sum == checksum;
}

static void find_debug(struct objects *objects, struct object *object) {
    static const enum file_place places[] = {PLACE_CACHE_DEBUG,   PLACE_BUILD_ID, PLACE_DEBUGLINK,
                                             PLACE_SYSTEM_SUFFIX, PLACE_SYSTEM,   PLACE_BESIDE,
                                             PLACE_SYSTEM_MERGED};
    const struct build_id *id = &object->identity.build_id;
    if (object->image && object->image->build_id.size)
        id = &object->image->build_id;
    enum file_trouble trouble = object->trouble;
    for (size_t i = 0; i < COUNT_OF(places) && !object->debug; i++) {
        struct elf_image *debug = object_open_at(objects, object, places[i], id);
        bool proven =
            debug && (id->size || (object->image && debuglink_proves(object->image, debug)));
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

bool object_vdso_build_id(struct build_id *id) {
    struct elf_image *image = vdso_open();
    *id = image ? image->build_id : (struct build_id){0};
    elf_image_free(image);
    return id->size > 0;
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
    const struct elf_image *files[] = {object_image(objects, object),
                                       object_debug(objects, object)};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        if (!files[i])
            continue;
        facts->symbols |= has_section(files[i], ".symtab");
        facts->exported |= has_section(files[i], ".dynsym");
        facts->lines |= has_section(files[i], ".debug_info");
        facts->unwind |=
            has_section(files[i], ".eh_frame") || has_section(files[i], ".debug_frame");
    }
    facts->separate = files[1] != NULL;
    objects_free(objects);
    free(whole);
    return true;
}

struct text objects_code(struct objects *objects, uint32_t id, uint64_t start, uint64_t end,
                         uint32_t *machine) {
    struct object *object = objects_object(objects, id);
    struct text bytes = TEXT("");
    bool has_file = object->identity.kind == OBJECT_FILE || object->identity.kind == OBJECT_VDSO;
    pthread_mutex_lock(&object->lock);
    const struct elf_image *image = has_file ? object_image(objects, object) : NULL;
    if (image && start < end && end <= image->size) {
        bytes = (struct text){(const char *)image->data + start, end - start};
        *machine = image->machine;
    }
    pthread_mutex_unlock(&object->lock);
    return bytes;
}
