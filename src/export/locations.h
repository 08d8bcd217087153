/* Private to the room: what pprof and OpenTelemetry share. A location is an address with all that is inlined there; numbers are given in the order of first
   use, from 1. */
#ifndef WICK_EXPORT_LOCATIONS_H
#define WICK_EXPORT_LOCATIONS_H

#include "export/outline.h"
#include "object/object.h"

/* The frames of one address on some stacks: a way from its function to what is inlined there. Most are used whole. */
struct group {
    uint32_t outer; /* the group without its innermost frame; 0: there is none */
    uint32_t place;
    uint32_t location; /* the file's; 0: none ends with it yet */
};

struct locations {
    const struct outline *outline;
    struct strings *strings; /* ids are the file's + 1: its string 0 is the empty one */
    VECTOR(struct group) groups;
    struct index group_index;
    uint32_t *node_groups;   /* by node */
    VECTOR(uint32_t) used;   /* groups, one for each location */
    uint32_t *mappings;      /* by object: the file's, 0: none yet */
    VECTOR(uint32_t) mapped; /* objects, one for each mapping; the first is the program */
    uint32_t *functions;     /* by the outline's: the file's */
    VECTOR(uint32_t) named;  /* a place of each */
};
/* Whether the values, which are signed there, so many for each stack, and all stacks in full can be written. */
bool locations_fit(const struct outline *outline, size_t values, struct error *error);
void locations_init(struct locations *locations, const struct outline *outline);
void locations_release(struct locations *locations);

/* The numbers of a stack's locations, leaf first, as varints: of a group's nodes only the innermost stands for one. */
void locations_add_stack(struct locations *locations, uint32_t node, struct buffer *numbers);
uint64_t locations_string(struct locations *locations, struct text t);
uint64_t locations_mapping(struct locations *locations, uint32_t object); /* 0: of none */
uint64_t locations_function(struct locations *locations, uint32_t place);

/* Of each mapping, in whole pages around what was sampled; free() it. */
struct range {
    uint64_t start, limit;
};
struct range *locations_ranges(const struct locations *locations);

void buffer_add_build_id(struct buffer *hex, const struct build_id *id);
/* What a measure's values are called there, and what they count; both tools know time on the CPU by the name "cpu". */
struct text measure_type(const struct measure *measure);
const char *measure_count_unit(const struct outline *outline, uint32_t measure);

#endif
