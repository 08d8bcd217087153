/* What the files of this room share. */
#ifndef WICK_PERFDATA_PRIVATE_H
#define WICK_PERFDATA_PRIVATE_H

#include "perfdata/perfdata.h"

enum {
    ATTRIBUTE_SAMPLE_ID_ALL_BIT = 18,
    ATTRIBUTE_FREQUENCY_BIT = 10,
    HEADER_SIZE = sizeof(struct perf_event_header),
};

/* A feature section; `what` is its name in notes. Damage is noted, and strict makes it an error. */
bool features_read(struct perfdata *data, uint64_t table, const uint8_t *bitmap,
                   struct error *error);
/* The name perf 6.1 would make up for an event that the header does not name. */
struct text event_make_name(struct arena *arena, const struct perfdata_event *event);
/* One record of the BUILD_ID section, or HEADER_BUILD_ID record, of `size` bytes. False: too short. */
bool build_id_decode(const uint8_t *record, size_t size, struct perfdata_build_id *build_id);

#endif
