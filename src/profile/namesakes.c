/*
 * Locations merged by name.
 *
 * A flame graph distinguishes functions, not addresses: a recording of deep recursion has 1.3 million nodes by address but 4,000 by name. If only
 * names are needed, one location stands for all with the same object, mode, function and inlined functions. Names are therefore looked up before
 * nodes are made, once for each address; profile_resolve() then resolves only the locations that stand for others.
 *
 * Which location that is depends on the order of reading, but no output shows it. Locations without a symbol are not merged, because notes count them.
 */
#include "profile/builder.h"

#include <stdlib.h>

struct known_location {
    struct location location;
    uint32_t stand_in; /* in the tree */
};

/* Equal hashes are taken for equal names. */
struct namesake {
    struct hash_wide names;
    uint32_t stand_in;
};

/* The hash of a long name, by the place of its bytes. A program may have one symbol with a name of megabytes, and a recording hit it at every
   address. */
struct long_name {
    struct text name;
    struct hash_wide hash;
};

struct namesakes {
    const struct reading *reading;
    struct tree *tree;
    VECTOR(struct known_location) known; /* [0] is none */
    struct index known_index;
    VECTOR(struct namesake) named; /* [0] is none */
    struct index named_index;
    VECTOR(struct long_name) long_names; /* [0] is none */
    struct index long_index;
    struct inline_chain chain; /* of the location at hand */
};

struct namesakes *namesakes_new(const struct reading *reading, struct tree *tree) {
    struct namesakes *f = memory_zero(1, sizeof *f);
    f->reading = reading;
    f->tree = tree;
    vector_push(&f->known, ((struct known_location){0}));
    vector_push(&f->named, ((struct namesake){0}));
    vector_push(&f->long_names, ((struct long_name){0}));
    return f;
}

void namesakes_free(struct namesakes *f) {
    if (!f)
        return;
    vector_release(&f->known);
    index_release(&f->known_index);
    vector_release(&f->named);
    index_release(&f->named_index);
    vector_release(&f->long_names);
    index_release(&f->long_index);
    vector_release(&f->chain);
    free(f);
}

static void hash_number(struct hash_wide *hash, uint64_t number) {
    hash->low = hash_mix(hash->low ^ number, 1);
    hash->high = hash_mix(hash->high ^ number, 2);
}

/* Names live as long as the objects, and do not change. */
static struct hash_wide hash_of(struct namesakes *f, struct text name) {
    enum { SHORT_MOST = 256 };
    if (name.length <= SHORT_MOST)
        return hash_wide(name.data, name.length);
    uint64_t place = hash_mix((uintptr_t)name.data, name.length);
    uint32_t id;
    for (struct probe p = index_probe(&f->long_index, place);
         (id = index_next(&f->long_index, &p));)
        if (f->long_names.items[id].name.data == name.data &&
            f->long_names.items[id].name.length == name.length)
            return f->long_names.items[id].hash;
    struct long_name added = {name, hash_wide(name.data, name.length)};
    index_add(&f->long_index, place, (uint32_t)f->long_names.count);
    vector_push(&f->long_names, added);
    return added.hash;
}

static void hash_text(struct namesakes *f, struct hash_wide *hash, struct text text) {
    struct hash_wide own = hash_of(f, text);
    hash->low = hash_mix(hash->low ^ own.low, own.high);
    hash->high = hash_mix(hash->high ^ own.high, own.low);
}

/* Hash everything that a frame's labels depend on: see add_frames() in resolve.c. Return false if there is no symbol. */
static bool names_of(struct namesakes *f, const struct location *location,
                     struct hash_wide *names) {
    struct objects *objects = f->reading->profile->objects;
    const struct profile_options *options = f->reading->options;
    struct symbol symbol;
    uint64_t within = location_within(location);
    f->chain.count = 0;
    if (!location->object || !objects_symbol(objects, location->object, within, &symbol))
        return false;
    if (resolve_wants_inlines(options, objects, location, &symbol))
        objects_inlines(objects, location->object, within, false, &f->chain);
    *names = (struct hash_wide){location->object, location->mode};
    hash_number(names, f->chain.count);
    hash_text(f, names, symbol.name);
    hash_text(f, names, symbol.language);
    for (size_t i = 0; i < f->chain.count; i++) {
        hash_text(f, names, i ? f->chain.items[i].name : TEXT(""));
        hash_text(f, names, f->chain.items[i].language);
    }
    return true;
}

static uint32_t stand_in_of(struct namesakes *f, const struct location *location) {
    struct hash_wide names;
    uint32_t id;
    if (!names_of(f, location, &names))
        return tree_add_location(f->tree, location);
    for (struct probe p = index_probe(&f->named_index, names.low);
         (id = index_next(&f->named_index, &p));) {
        const struct namesake *other = &f->named.items[id];
        if (other->names.low == names.low && other->names.high == names.high)
            return other->stand_in;
    }
    id = (uint32_t)f->named.count;
    struct namesake first = {names, tree_add_location(f->tree, location)};
    vector_push(&f->named, first);
    index_add(&f->named_index, names.low, id);
    return first.stand_in;
}

/* Once for each address that the builder's own cache does not have. */
uint32_t namesakes_add(struct namesakes *f, const struct location *location) {
    uint64_t hash = hash_mix(location->address, (uint64_t)location->object << 32 |
                                                    (uint32_t)location->mode << 1 | location->call);
    uint32_t id;
    for (struct probe p = index_probe(&f->known_index, hash);
         (id = index_next(&f->known_index, &p));) {
        const struct location *known = &f->known.items[id].location;
        if (known->address == location->address && known->object == location->object &&
            known->mode == location->mode && known->call == location->call &&
            known->unwound == location->unwound)
            return f->known.items[id].stand_in;
    }
    id = (uint32_t)f->known.count;
    struct known_location known = {*location, stand_in_of(f, location)};
    vector_push(&f->known, known);
    index_add(&f->known_index, hash, id);
    return known.stand_in;
}
