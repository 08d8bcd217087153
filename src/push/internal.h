/* What the files of this room share. */
#ifndef WICK_PUSH_INTERNAL_H
#define WICK_PUSH_INTERNAL_H

#include "push/push.h"

/* Pyroscope takes no more samples in one profile by default. */
enum { SAMPLES_MOST = 16000 };

/* The body of a Push (Pyroscope) or WriteRaw (Parca), as JSON. `name` is what the profile is of ("process_cpu"). */
void encode_series(enum push_kind kind, const struct push_options *options, struct text name,
                   struct text pprof, struct buffer *body);
/* What a profile with this first measure is called among those services. */
struct text profile_name(const struct tree *tree, struct buffer *name);

#endif
