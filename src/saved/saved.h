/*
 * saved: a resolved profile in one file, `.wick`.
 *
 * The file holds what views need and nothing else: strings, objects with their build ids, functions, locations with their frames,
 * nodes, series, cells, kept samples and notes. It holds no stack bytes, no registers and no environment, so it can be handed to a
 * colleague or kept for years, and reading it needs neither the recording nor the programs that were recorded.
 *
 * The file is a table of sections, each packed by zstd and checked by a hash (docs/wick-format.md). A reader skips sections that it does
 * not know and refuses a newer major version. Everything is numbered by content: the same profile gives the same bytes, whatever order
 * it was read in and with however many threads.
 */
#ifndef WICK_SAVED_H
#define WICK_SAVED_H

#include "base/base.h"
#include "profile/profile.h"
#include "tree/tree.h"

/* Return whether a file that begins so is a saved profile of any version. */
bool saved_is(struct text beginning);

/* Write the resolved tree. Costs the tree's size again in memory. False: *error says why. */
bool saved_write(struct out *out, const struct tree *tree, struct error *error);

/* Put the source of all frames into the tree, from files below `directory` alone; notes say which were found. Frames must have lines. */
bool saved_attach_sources(struct tree *tree, const char *directory, struct error *error);
/* Put the machine code of all functions that were hit into the tree, or of those called `function` unless it is empty. The files are those that gave
   the names. */
void saved_attach_code(struct tree *tree, struct text function);
/*
 * Read a saved profile into `tree`, which must be empty. The filter chooses among what is there: --time and --cpu need kept samples.
 * `no_inline`, `source_lines` and `keep_samples` mean what they do for a recording. False: *error names the byte.
 */
bool saved_read(struct text content, const char *path, const struct profile_options *options,
                struct tree *tree, struct error *error);

#endif
