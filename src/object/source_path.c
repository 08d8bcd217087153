/*
 * A file at its recorded path, below --symfs if that is given; and the vdso, which is not in a file.
 */
#include "object/source.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

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
    return object->identity.build_id.size ? !objects->options.quirks.vdso_only_unrecorded
                                          : !objects->options.symfs;
}

/* Inodes are used again, but not with the same generation, where the file system has any to tell. A recorder that learns of a mapping from /proc
   knows none, and says 0. */
static bool generation_differs(const struct file *file, uint64_t recorded) {
    struct stat status;
    int generation = 0;
    if (!recorded)
        return false;
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return false;
    bool known = fstat(descriptor, &status) == 0 && status.st_ino == file->inode &&
                 ioctl(descriptor, FS_IOC_GETVERSION, &generation) == 0;
    close(descriptor);
    return known && (uint32_t)generation != (uint32_t)recorded;
}

/* Without a build id: it was put there since, or written to since. The device's number is not compared, as some file systems tell two. --symfs
   says that other files are meant. */
static bool is_replaced(const struct search *search, const struct elf_image *image) {
    const struct objects_options *options = &search->objects->options;
    const struct object_identity *identity = &search->object->identity;
    const struct file *file = &image->file;
    if (search->id.size || !identity->inode || !file->inode || options->symfs ||
        options->quirks.any_file_at_path)
        return false;
    return file->inode != identity->inode || generation_differs(file, identity->generation) ||
           (options->recorded_until && file->written > options->recorded_until);
}

static struct elf_image *open_recorded(const struct search *search) {
    if (search->object->identity.kind == OBJECT_VDSO)
        return vdso_is_ours(search->objects, search->object) ? search_check(search, vdso_open())
                                                             : NULL;
    struct elf_image *image =
        search_open_below(search, search->object->identity.path, TEXT(""), TEXT(""));
    if (!image || !is_replaced(search, image))
        return image;
    search->object->trouble = FILE_REPLACED;
    elf_image_free(image);
    return NULL;
}

const struct source source_path = {.name = "recorded path", .open = open_recorded};

/* A file that was replaced while it ran was recorded as "PATH (deleted)". What is at PATH now may be the same again: after
   a rename, or seen from another mount. Only a build id can tell. */
static struct elf_image *open_undeleted(const struct search *search) {
    static const struct text suffix = TEXT(" (deleted)");
    struct text path = search->object->identity.path;
    if (!search->id.size || !text_ends(path, suffix))
        return NULL;
    path = text_upto(path, path.length - suffix.length);
    return search_open_below(search, path, TEXT(""), TEXT(""));
}

const struct source source_undeleted = {.name = "recorded path", .open = open_undeleted};

bool object_vdso_build_id(struct build_id *id) {
    struct elf_image *image = vdso_open();
    *id = image ? image->build_id : (struct build_id){0};
    elf_image_free(image);
    return id->size > 0;
}
