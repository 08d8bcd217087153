/* Private to the room: what the two halves of pprof's reader share. */
#ifndef WICK_IMPORT_PPROF_H
#define WICK_IMPORT_PPROF_H

#include "import/pprof_fields.h"
#include "import/proto.h"
#include "import/reader.h"

/* What samples name, by id. `message` is looked into when it is first used. */
struct known {
    uint64_t id;
    struct text message;
};
struct table {
    VECTOR(struct known) items;
    struct index index; /* by id: places in items + 1 */
};

struct value_type {
    struct text type, unit;
};

/* A pair of values, or one that stands alone. */
struct counted {
    uint32_t event;   /* 0: not wanted */
    uint32_t samples; /* which value is the number of things; UINT32_MAX: there is none */
    uint32_t weight;
};

/* A location's place in the tree, once it was used. */
struct placed_location {
    uint32_t location;
    bool done;
};

/* One set of labels, as its bytes stand in a sample. */
struct label_bytes {
    struct text bytes;
    size_t first; /* of its series, one for each of `counted` */
};

/* One stack, as its bytes stand in a sample: profiles with labels have it once for each of their sets. */
struct stack_bytes {
    struct text bytes;
    uint32_t node;
};

struct pprof {
    const struct import_options *options;
    const char *path;
    struct text content;
    struct tree *tree;
    struct error *error;
    VECTOR(struct text) strings;
    VECTOR(struct value_type) types;
    struct text default_type;
    struct table mappings, locations, functions;
    VECTOR(struct counted) counted;
    VECTOR(struct placed_location) placed; /* as `locations` */
    VECTOR(struct frame) lines;            /* of the location at hand, innermost first */
    VECTOR(uint32_t) path_now;             /* of the sample at hand, leaf first */
    VECTOR(uint64_t) values;
    VECTOR(struct label_bytes) labels;
    VECTOR(uint32_t) series;
    VECTOR(struct stack_bytes) stacks;
    struct index label_index, stack_index, threads;
    struct buffer label_now;
    struct arena arena;
    struct budget frames;
};

bool pprof_damaged(struct pprof *p, const void *at);
/* Empty where there is none of this number. */
struct text pprof_string(const struct pprof *p, uint64_t number);

/* Collect what samples name: strings, types, mappings, locations and functions. */
bool pprof_read_tables(struct pprof *p);
void pprof_release_tables(struct pprof *p);
/* NULL: the profile has no location of this id. */
const struct known *pprof_find_location(const struct pprof *p, uint64_t id);
/* Add a location that samples name to the tree, with the functions that its lines tell of. */
uint32_t pprof_place(struct pprof *p, const struct known *location);

#endif
