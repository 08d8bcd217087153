/*
 * saved: a resolved profile in one file, `.wick`.
 *
 * The file contains only what views need: strings, objects with their build ids, functions, locations with their
 * frames, nodes, series, cells, kept samples and notes. It contains no stack bytes, registers or environment, so it
 * can be sent to a colleague or kept for years, and reading it needs neither the recording nor the recorded programs.
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

/* Return true if a file with this beginning is a saved profile of any version. */
bool saved_is(struct text beginning);

/* Write the resolved tree. Needs as much memory again as the tree. */
bool saved_write(struct out *out, const struct tree *tree, struct error *error);

/* Add the source of all frames to the tree, only from files below `directory`; notes say which were found. Frames
   must have lines. */
bool saved_attach_sources(struct tree *tree, const char *directory, struct error *error);
/* Add the machine code of all functions with samples to the tree, or only of `function` unless it is empty. The code
   is read from the files that provided the names. */
void saved_attach_code(struct tree *tree, struct text function);
/*
 * Read a saved profile into `tree`, which must be empty. The filter selects from what was saved: --time and --cpu
 * need kept samples. `no_inline`, `source_lines` and `keep_samples` mean the same as for a recording. On failure
 * *error has the byte offset.
 */
bool saved_read(struct text content, const char *path, const struct profile_options *options,
                struct tree *tree, struct error *error);

#endif
