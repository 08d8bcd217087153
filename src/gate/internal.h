/* Private to the room. */
#ifndef WICK_GATE_INTERNAL_H
#define WICK_GATE_INTERNAL_H

#include "gate/gate.h"

/* What one function spent in one run. */
struct gate_measure {
    uint32_t run;
    uint64_t self, total;
};

struct gate_side {
    VECTOR(struct gate_measure) measures;
    VECTOR(uint32_t) functions; /* of the measure in the same place */
    VECTOR(double) wholes;      /* by run: its weight */
    VECTOR(double) samples;     /* by run */
    /* Made by gate_decide(): measures by function; those of function f end at ends[f]. */
    uint32_t *order;
    size_t *ends;
};

/* One function, or the whole, held against one rule. */
struct comparison {
    const struct gate_rule *rule;
    struct text name;     /* empty: the whole profile */
    double before, after; /* medians */
    double ratio;       /* the median of all runs of AFTER to all of BEFORE; INFINITY: it is new */
    double noise;       /* of one run, as a share; the larger of both sides' */
    double probability; /* corrected */
    bool grew;          /* by more than the limit */
    bool exceeds;       /* and by more than noise */
};

struct gate {
    struct strings *names; /* of functions: ids are their numbers; 0 is the whole */
    struct gate_side sides[2];
    VECTOR(struct comparison) comparisons; /* what exceeds first */
    size_t exceeded, grown;
    bool shares, exact;
};

#endif
