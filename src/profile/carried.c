/*
 * The carrier's entries in a recording (docs/carrier.md): perf maps, files that may be gone, the vdso, names of kernel functions; with --keep=all
 * every file that is needed to read it, and the kernel's list. Objects are told that the recording has their bytes; these are read when an object
 * first needs a name.
 *
 * perf ignores the carrier; with quirks.carrier_is_unknown none of it is used.
 */
#include <stdlib.h>

#include "profile/reading.h"

enum { PERF_MAP_KEY = 16, FILE_KEY = 32, DUMP_KEY = 16 };

static const struct note_kind note_java = {
    "java-damaged", "# kept part{|s} of the data on Java methods {is|are} damaged"};

struct carried {
    struct perfdata *data;
    VECTOR(struct carrier_entry) entries;
    struct index
        index;      /* of perf maps by pid, and of files: numbers are places in `entries`, + 1 */
    uint64_t mount; /* the recorder's mount namespace; 0: not told */
    uint32_t vdso;  /* number; 0: none */
};

/* A CARRIER_FILE's key: the mount namespace that it was found in (0: the recorder's), its build id, its path. */
struct file_key {
    uint64_t mount;
    struct build_id build_id;
    struct text path;
};

static bool file_key_read(struct text key, struct file_key *file) {
    if (key.length < FILE_KEY || load_u32(key.data + 8) > BUILD_ID_MAX)
        return false;
    *file = (struct file_key){.mount = load_u64(key.data), .path = text_from(key, FILE_KEY)};
    file->build_id.size = (uint8_t)load_u32(key.data + 8);
    memcpy(file->build_id.bytes, key.data + 12, file->build_id.size);
    return true;
}

/* A build id says which file it is, wherever it was; without one, the place must be the same. */
static uint64_t hash_file(const struct build_id *id, uint64_t mount, struct text path) {
    return id->size ? hash_bytes(id->bytes, id->size)
                    : hash_mix(mount, hash_bytes(path.data, path.length));
}

static uint64_t hash_map(int32_t pid) {
    return hash_mix((uint32_t)pid, CARRIER_PERF_MAP);
}

/* ---- taking note of entries ---- */

static void add_file(struct carried *carried, const struct carrier_entry *entry, uint32_t number) {
    struct file_key file;
    if (!file_key_read(entry->key, &file))
        return;
    if (entry->kind == CARRIER_FILE && text_equal(file.path, TEXT("[vdso]")))
        carried->vdso = number;
    index_add(&carried->index, hash_file(&file.build_id, file.mount, file.path), number);
}

static void add_fact(struct carried *carried, const struct carrier_entry *entry) {
    struct buffer bytes = {0};
    if (text_equal(entry->key, TEXT("mount-namespace")) && entry->stored == 8 &&
        carrier_read(carried->data, entry, &bytes))
        carried->mount = load_u64(bytes.items);
    buffer_release(&bytes);
}

static void add_entry(void *context, const struct carrier_entry *entry) {
    struct carried *carried = context;
    if (entry->kind == CARRIER_FACT)
        add_fact(carried, entry);
    if (entry->kind == CARRIER_FACT || entry->kind == 0 || entry->kind > CARRIER_MEMORY)
        return;
    vector_push(&carried->entries, *entry);
    uint32_t number = (uint32_t)carried->entries.count;
    if (entry->kind == CARRIER_FILE || entry->kind == CARRIER_DEBUG ||
        entry->kind == CARRIER_KERNEL || entry->kind == CARRIER_KERNEL_NAMES)
        add_file(carried, entry, number);
    else if (entry->kind == CARRIER_PERF_MAP && entry->key.length == PERF_MAP_KEY)
        index_add(&carried->index, hash_map((int32_t)load_u32(entry->key.data)), number);
}

struct carried *carried_new(struct perfdata *data) {
    struct carried *carried = memory_zero(1, sizeof *carried);
    carried->data = data;
    carrier_each(data, add_entry, carried);
    return carried;
}

void carried_free(struct carried *carried) {
    if (!carried)
        return;
    vector_release(&carried->entries);
    index_release(&carried->index);
    free(carried);
}

void carried_labels(const struct carried *carried, struct tree *tree, struct labels *labels) {
    struct buffer bytes = {0};
    for (size_t i = 0; carried && i < carried->entries.count; i++) {
        const struct carrier_entry *entry = &carried->entries.items[i];
        if (entry->kind == CARRIER_LABELS && carrier_read(carried->data, entry, &bytes))
            labels_add(labels, tree, entry->key, buffer_text(&bytes));
    }
    buffer_release(&bytes);
    labels_sort(labels);
}

bool carried_read_keyed(const struct carried *carried, uint32_t kind, uint32_t *place,
                        uint64_t most, struct text *key, struct buffer *bytes) {
    while (carried && *place < carried->entries.count) {
        const struct carrier_entry *entry = &carried->entries.items[(*place)++];
        if (entry->kind != kind)
            continue;
        bool fine = carrier_read_most(carried->data, entry, most, bytes);
        *key = fine ? entry->key : (struct text){0};
        return true;
    }
    return false;
}

uint64_t carried_room(const struct carried *carried) {
    enum { SHARE = 32, LEAST = 64 << 20 };
    uint64_t size = carried ? carried->data->source->size : 0;
    return size < LEAST / SHARE ? LEAST : SHARE * size;
}

bool carried_read(const struct carried *carried, uint32_t kind, uint32_t *place,
                  struct buffer *bytes) {
    struct text key;
    while (carried_read_keyed(carried, kind, place, UINT64_MAX, &key, bytes))
        if (key.data)
            return true;
    return false;
}

void carried_java(const struct carried *carried, struct reading *reading) {
    struct buffer bytes = {0};
    for (size_t i = 0; carried && i < carried->entries.count; i++) {
        const struct carrier_entry *entry = &carried->entries.items[i];
        bool is_code = entry->kind == CARRIER_JAVA_CODE;
        if (!is_code && entry->kind != CARRIER_JAVA_METHODS)
            continue;
        if (!reading->java)
            reading->java = java_new(context_limits(reading->options->context));
        if (!carrier_read(carried->data, entry, &bytes) ||
            !(is_code ? java_add_code(reading->java, entry->key, buffer_text(&bytes))
                      : java_add_methods(reading->java, entry->key, buffer_text(&bytes))))
            notes_add(&reading->profile->tree->notes, &note_java, 1, entry->offset, NULL);
    }
    buffer_release(&bytes);
    java_finish(reading->java, reading);
}

/* The same dump may have been kept before, when it was shorter. */
static bool is_kept_again(const struct carried *carried, size_t i) {
    struct text path = text_from(carried->entries.items[i].key, DUMP_KEY);
    uint32_t pid = load_u32(carried->entries.items[i].key.data);
    for (size_t k = i + 1; k < carried->entries.count; k++) {
        const struct carrier_entry *entry = &carried->entries.items[k];
        if (entry->kind == CARRIER_DUMP && entry->key.length >= DUMP_KEY &&
            load_u32(entry->key.data) == pid && text_equal(text_from(entry->key, DUMP_KEY), path))
            return true;
    }
    return false;
}

void carried_dumps(const struct carried *carried, carried_dump_visit *visit, void *context) {
    enum { DUMPS_MOST = 4096 }; /* each is compared with all others */
    size_t dumps = 0;
    for (size_t i = 0; carried && i < carried->entries.count; i++) {
        const struct carrier_entry *entry = &carried->entries.items[i];
        if (entry->kind == CARRIER_DUMP && entry->key.length >= DUMP_KEY && dumps++ < DUMPS_MOST &&
            !is_kept_again(carried, i))
            visit(context, (int32_t)load_u32(entry->key.data), text_from(entry->key, DUMP_KEY),
                  (uint32_t)i + 1);
    }
}

bool carried_read_dump(const struct carried *carried, uint32_t number, struct buffer *bytes) {
    return carrier_read(carried->data, &carried->entries.items[number - 1], bytes);
}

uint64_t carried_mount(const struct carried *carried) {
    return carried ? carried->mount : 0;
}

/* ---- asking ---- */

static bool is_file(const struct carrier_entry *entry, uint32_t kind,
                    const struct object_identity *identity) {
    struct file_key file;
    if (entry->kind != kind || !file_key_read(entry->key, &file))
        return false;
    if (identity->build_id.size)
        return file.build_id.size == identity->build_id.size &&
               memcmp(file.build_id.bytes, identity->build_id.bytes, file.build_id.size) == 0;
    return !file.build_id.size && file.mount == identity->mount &&
           text_equal(file.path, identity->path);
}

static bool is_map(const struct carrier_entry *entry, const struct object_identity *identity) {
    return entry->kind == CARRIER_PERF_MAP && (int32_t)load_u32(entry->key.data) == identity->pid;
}

/* Return the last of several: a perf map that was kept later contains more. */
static uint32_t find(const struct carried *carried, uint32_t kind,
                     const struct object_identity *identity) {
    bool map = kind == CARRIER_PERF_MAP;
    uint64_t hash = map ? hash_map(identity->pid)
                        : hash_file(&identity->build_id, identity->mount, identity->path);
    uint32_t number, found = 0;
    for (struct probe p = index_probe(&carried->index, hash);
         (number = index_next(&carried->index, &p));) {
        const struct carrier_entry *entry = &carried->entries.items[number - 1];
        if ((map ? is_map(entry, identity) : is_file(entry, kind, identity)) && number > found)
            found = number;
    }
    return found;
}

static bool read_bytes(void *context, uint32_t number, struct buffer *bytes) {
    struct carried *carried = context;
    return carrier_read(carried->data, &carried->entries.items[number - 1], bytes);
}

void carried_offer(struct carried *carried, struct objects *objects, uint32_t object) {
    const struct object_identity *identity = objects_get(objects, object);
    bool map = identity->kind == OBJECT_PERFMAP;
    bool may_be = map || identity->kind == OBJECT_FILE || identity->kind == OBJECT_VDSO;
    uint32_t kind = map ? CARRIER_PERF_MAP : CARRIER_FILE;
    uint32_t number = carried && may_be ? find(carried, kind, identity) : 0;
    if (number)
        objects_set_kept(objects, object, read_bytes, carried, number);
}

static bool read_part(void *context, enum object_part part, const struct object_identity *identity,
                      struct buffer *bytes) {
    static const uint32_t kinds[] = {[PART_CODE] = CARRIER_FILE,
                                     [PART_DEBUG] = CARRIER_DEBUG,
                                     [PART_LIST] = CARRIER_KERNEL,
                                     [PART_NAMES] = CARRIER_KERNEL_NAMES};
    uint32_t number = find(context, kinds[part], identity);
    return number && read_bytes(context, number, bytes);
}

void carried_offer_parts(struct carried *carried, struct objects *objects) {
    objects_set_parts(objects, carried ? read_part : NULL, carried);
}

void carried_offer_all(struct carried *carried, struct objects *objects) {
    for (uint32_t i = 1; i <= objects_count(objects); i++)
        carried_offer(carried, objects, i);
}

struct build_id carried_vdso(const struct carried *carried) {
    struct file_key file = {0};
    if (carried && carried->vdso)
        file_key_read(carried->entries.items[carried->vdso - 1].key, &file);
    return file.build_id;
}
