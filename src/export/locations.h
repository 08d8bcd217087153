/* Private to the room: shared by pprof and OpenTelemetry. A location is an address with everything that is inlined
   there; numbers are assigned in the order of first use, from 1. */
#ifndef WICK_EXPORT_LOCATIONS_H
#define WICK_EXPORT_LOCATIONS_H

#include "export/outline.h"
#include "object/object.h"

/* The frames of one address on some stacks: a path from its function to what is inlined there. Most are used whole. */
struct group {
    uint32_t outer; /* the group without its innermost frame; 0: none */
    uint32_t place;
    uint32_t location; /* the file's number; 0: no location ends with it yet */
};

struct locations {
    const struct outline *outline;
    struct strings *strings; /* ids are the file's + 1: its string 0 is the empty one */
    VECTOR(struct group) groups;
    struct index group_index;
    uint32_t *node_groups;   /* by node */
    VECTOR(uint32_t) used;   /* groups, one for each location */
    uint32_t *mappings;      /* by object: the file's number, 0: none yet */
    VECTOR(uint32_t) mapped; /* objects, one for each mapping; the first is the program */
    uint32_t *functions;     /* by the outline's number: the file's */
    VECTOR(uint32_t) named;  /* a place of each */
};
/* Check that all stacks in full can be written, and their values, which are signed there. */
bool locations_fit(const struct outline *outline, size_t values, struct error *error);
void locations_init(struct locations *locations, const struct outline *outline);
void locations_release(struct locations *locations);

/* Append the numbers of a stack's locations, leaf first, as varints: of a group's nodes only the innermost counts. */
void locations_add_stack(struct locations *locations, uint32_t node, struct buffer *numbers);
uint64_t locations_string(struct locations *locations, struct text t);
uint64_t locations_mapping(struct locations *locations, uint32_t object); /* 0: none */
uint64_t locations_function(struct locations *locations, uint32_t place);

/* Return each mapping's range, in whole pages around what was sampled; free() it. */
struct range {
    uint64_t start, limit;
};
struct range *locations_ranges(const struct locations *locations);

void buffer_add_build_id(struct buffer *hex, const struct build_id *id);
/* Get both formats' name and unit of a measure's values; both tools know time on the CPU as "cpu". */
struct text measure_type(const struct measure *measure);
const char *measure_count_unit(const struct outline *outline, uint32_t measure);

#endif
