/*
 * The names of threads in a Python program. From 3.14 on Python sets them in the kernel; before, the name is an attribute of the Thread object, which
 * is the first local variable of a thread's first function, Thread._bootstrap().
 *
 * Attributes are in a dictionary, or they are an array of values whose names are in the class, because all instances have the same ones. Each
 * version stores these elsewhere:
 *
 *   to 3.10    a dictionary at the class's offset
 *   3.11       values at -32, or a dictionary at -24
 *   3.12       either at -24; values are marked by their lowest bit
 *   3.13       values after the object, or a dictionary at -24
 */
#include "interpreter/python.h"

enum { ATTRIBUTES_MOST = 256, CLASS_READ = 296 };

/* Bytes of a class, the same in all versions. */
enum { CLASS_SIZE = 32, CLASS_FLAGS = 168, CLASS_DICTIONARY = 288 };
enum { HAS_VALUES_INSIDE = 1 << 2, HAS_MANAGED_DICTIONARY = 1 << 4 };

/* ---- dictionaries ---- */

struct key_table {
    uint64_t entries; /* where they are */
    uint64_t count;
    unsigned size;   /* of one */
    unsigned key_at; /* in one: the key, and behind it the value */
};

/* A hash table of numbers, then the entries in the order in which they came. */
static bool keys_read(const struct remote *remote, unsigned version, uint64_t address,
                      struct key_table *table) {
    enum {
        HEAD_OLD = 40,
        HEAD = 32,
        SIZE = 8,
        LOG2_BYTES = 9,
        KIND = 10,
        COUNT_OLD = 32,
        COUNT = 24
    };
    uint8_t head[HEAD_OLD];
    if (!address || !remote->read(remote->context, address, head, sizeof head))
        return false;
    *table = (struct key_table){.size = 24, .key_at = 8};
    if (version <= 0x30a) {
        uint64_t size = load_u64(head + SIZE);
        table->count = load_u64(head + COUNT_OLD);
        table->entries = address + HEAD_OLD + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
    } else {
        table->count = load_u64(head + COUNT);
        table->entries = address + HEAD + (1ull << (head[LOG2_BYTES] & 31));
        if (head[KIND]) /* all keys are strings, which know their hashes */
            table->size = 16, table->key_at = 0;
    }
    return table->count <= ATTRIBUTES_MOST;
}

/* The object that a key is for: in `values`, by the key's place, or beside the key if that is 0. 0: there is none. */
static uint64_t keys_find(const struct remote *remote, const struct python_layout *layout,
                          uint64_t keys, uint64_t values, struct text wanted) {
    struct key_table table;
    struct buffer name = {0};
    uint64_t found = 0;
    bool fine = keys_read(remote, layout->version, keys, &table);
    for (uint64_t i = 0; fine && i < table.count && !found; i++) {
        uint64_t pair[2];
        fine = remote->read(remote->context, table.entries + i * table.size + table.key_at, pair,
                            sizeof pair);
        name.count = 0;
        if (fine && pair[0] && python_string(remote, layout, pair[0], &name) &&
            text_equal(buffer_text(&name), wanted))
            found = !values ? pair[1] : remote_word(remote, values + 8 * i, &pair[1]) ? pair[1] : 0;
    }
    buffer_release(&name);
    return found;
}

static uint64_t dictionary_find(const struct remote *remote, const struct python_layout *layout,
                                uint64_t dictionary, struct text wanted) {
    uint64_t parts[2]; /* keys; values, if the keys are shared with others */
    if (!dictionary || !remote->read(remote->context, dictionary + 32, parts, sizeof parts))
        return 0;
    return keys_find(remote, layout, parts[0], parts[1] ? parts[1] + layout->values : 0, wanted);
}

/* ---- attributes ---- */

/* Where an object has its values, without names; 0: it has a dictionary, *dictionary. */
static uint64_t values_of(const struct remote *remote, const struct python_layout *layout,
                          uint64_t object, const uint8_t *class_bytes, uint64_t *dictionary) {
    uint64_t flags = load_u64(class_bytes + CLASS_FLAGS), before[2];
    if (layout->version <= 0x30a || !(flags & HAS_MANAGED_DICTIONARY)) {
        uint64_t offset = load_u64(class_bytes + CLASS_DICTIONARY);
        *dictionary = offset && remote_word(remote, object + offset, &before[0]) ? before[0] : 0;
        return 0;
    }
    if (!remote->read(remote->context, object - 32, before, sizeof before))
        return 0;
    *dictionary = before[1];
    if (layout->version == 0x30b)
        return before[0];
    if (layout->version == 0x30c)
        return before[1] & 1 ? before[1] + 1 : 0;
    uint64_t inside = object + load_u64(class_bytes + CLASS_SIZE);
    enum { IS_VALID = 3 };
    uint8_t head[8];
    return flags & HAS_VALUES_INSIDE && remote->read(remote->context, inside, head, sizeof head) &&
                   head[IS_VALID]
               ? inside
               : 0;
}

static uint64_t attribute_find(const struct remote *remote, const struct python_layout *layout,
                               uint64_t object, struct text wanted) {
    uint8_t class_bytes[CLASS_READ];
    uint64_t of_class, keys, dictionary = 0;
    if (!remote_word(remote, object + 8, &of_class) ||
        !remote->read(remote->context, of_class, class_bytes, sizeof class_bytes))
        return 0;
    uint64_t values = values_of(remote, layout, object, class_bytes, &dictionary);
    if (!values)
        return dictionary_find(remote, layout, dictionary, wanted);
    return remote_word(remote, of_class + layout->attributes, &keys)
               ? keys_find(remote, layout, keys, values + layout->values, wanted)
               : 0;
}

/* ---- threads ---- */

static bool is_bootstrap(const struct remote *remote, const struct python_layout *layout,
                         uint64_t frame) {
    struct buffer name = {0};
    uint64_t code, string;
    bool is = remote_word(remote, frame + layout->frames.code, &code) &&
              remote_word(remote, code + layout->name, &string) &&
              python_string(remote, layout, string, &name) &&
              text_equal(buffer_text(&name), TEXT("_bootstrap"));
    buffer_release(&name);
    return is;
}

bool python_thread_name(const struct remote *remote, const struct interpreter_process *process,
                        uint64_t root, struct buffer *name) {
    const struct python_layout *layout = process->python;
    uint64_t thread;
    return layout->locals && is_bootstrap(remote, layout, root) &&
           remote_word(remote, root + layout->locals, &thread) && thread &&
           python_string(remote, layout, attribute_find(remote, layout, thread, TEXT("_name")),
                         name);
}
