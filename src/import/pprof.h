/* Private to the room: what the two halves of pprof's reader share. */
#ifndef WICK_IMPORT_PPROF_H
#define WICK_IMPORT_PPROF_H

#include "import/pprof_fields.h"
#include "import/proto.h"
#include "import/reader.h"

/* What samples refer to, by id. `message` is parsed when it is first used. */
struct known {
    uint64_t id;
    struct text message;
};
struct table {
    VECTOR(struct known) items;
    struct index index; /* by id: index in items + 1 */
};

struct value_type {
    struct text type, unit;
};

/* A pair of values, or a single one. */
struct counted {
    uint32_t event;   /* 0: not wanted */
    uint32_t samples; /* index of the count; UINT32_MAX: none */
    uint32_t weight;
    uint64_t scale; /* nanoseconds per unit of the weight, or 1 */
    bool has_any;   /* some sample has a value other than 0 */
};

/* A location in the tree, once it was used. */
struct placed_location {
    uint32_t location;
    bool done;
};

/* One set of labels, as the bytes of a sample. */
struct label_bytes {
    struct text bytes;
    size_t first; /* of its series, one for each of `counted` */
};

/* One stack, as the bytes of a sample: profiles with labels repeat it for each set of labels. */
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
    VECTOR(struct frame) lines;            /* of the current location, innermost first */
    VECTOR(uint32_t) path_now;             /* of the current sample, leaf first */
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
/* Return an empty text if there is none with this number. */
struct text pprof_string(const struct pprof *p, uint64_t number);

/* Collect what samples refer to: strings, types, mappings, locations and functions. */
bool pprof_read_tables(struct pprof *p);
void pprof_release_tables(struct pprof *p);
/* Return NULL if the profile has no location with this id. */
const struct known *pprof_find_location(const struct pprof *p, uint64_t id);
/* Add a location to the tree, with the functions in its lines. */
uint32_t pprof_place(struct pprof *p, const struct known *location);

#endif
