/*
 * Private to the room: the symbols that samply saves beside a profile (`samply record --unstable-presymbolicate`, up to 0.13).
 *
 * The profile then has bare addresses, and `profile.syms.json` (for profile.json) or `profile.json.syms.json` (for
 * profile.json.gz) has the functions at each address. Libraries are found by their debug ids.
 */
#ifndef WICK_IMPORT_SIDECAR_H
#define WICK_IMPORT_SIDECAR_H

#include "base/json.h"
#include "import/import.h"

enum { SIDECAR_NONE = UINT32_MAX };

struct sidecar_line {
    uint32_t function, file; /* index of a string, or SIDECAR_NONE */
    uint32_t line;
};

struct sidecar_symbol {
    uint32_t name; /* index of a string */
    uint32_t first_line, line_count;
};

struct sidecar_address {
    uint32_t library, address, symbol;
};

struct sidecar {
    struct tree *tree;
    const struct import_options *options;
    struct json json;
    struct buffer key, text;
    VECTOR(uint32_t) strings;   /* the tree's strings */
    VECTOR(uint32_t) libraries; /* debug ids, as from normal_id(): the tree's strings */
    VECTOR(struct sidecar_symbol) symbols;
    VECTOR(struct sidecar_line) lines;
    VECTOR(struct sidecar_address) addresses;
    struct index by_id;      /* indexes in `libraries` + 1 */
    struct index by_address; /* indexes in `addresses` + 1 */
};

/* Read options->sidecar. Return false if it is damaged: then nothing of it may be used. Release it in either case. */
bool sidecar_read(struct sidecar *sidecar, const struct import_options *options, struct tree *tree);
void sidecar_release(struct sidecar *sidecar);
/* Return the number of the library with this debug id, or SIDECAR_NONE. */
uint32_t sidecar_library(struct sidecar *sidecar, struct text debug_id);
/* Return the symbol at an address of a library, or NULL if the sidecar has none. */
const struct sidecar_symbol *sidecar_find(const struct sidecar *sidecar, uint32_t library,
                                          uint64_t address);
/* Return one of a symbol's lines, innermost first, as a frame, with or without a name. There is at least one: a
   symbol without lines is a line with its name. */
size_t sidecar_line_count(const struct sidecar_symbol *symbol);
struct frame sidecar_frame(const struct sidecar *sidecar, const struct sidecar_symbol *symbol,
                           size_t i);

#endif
