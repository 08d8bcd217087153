/* Private to the room: GHC's profiles, which are text or JSON. */
#ifndef WICK_IMPORT_GHCPROF_H
#define WICK_IMPORT_GHCPROF_H

#include "import/reader.h"

/* Return true if a file begins like the JSON of `+RTS -pj`. */
bool ghcjson_is(struct text beginning);
bool ghcjson_read(struct text content, const char *path, const struct import_options *options,
                  struct tree *tree, struct error *error);

#endif
