/* What the files of this room share. */
#ifndef WICK_PUSH_INTERNAL_H
#define WICK_PUSH_INTERNAL_H

#include "push/push.h"

/* Pyroscope's default limit on the samples in one profile. */
enum { SAMPLES_MOST = 16000 };

/* Append the body of a Push (Pyroscope) or WriteRaw (Parca) as JSON. `name` is the profile's type ("process_cpu"). */
void encode_series(enum push_kind kind, const struct push_options *options, struct text name,
                   struct text pprof, struct buffer *body);
/* Return these services' name for a profile with this first measure. */
struct text profile_name(const struct tree *tree, struct buffer *name);

#endif
