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
    VECTOR(uint32_t) functions; /* functions[i] is that of measures[i] */
    VECTOR(double) wholes;      /* by run: its total weight */
    VECTOR(double) samples;     /* by run */
    /* Set by gate_decide(): measures by function; those of function f end at ends[f]. */
    uint32_t *order;
    size_t *ends;
};

/* One function, or the whole profile, compared by one rule. */
struct comparison {
    const struct gate_rule *rule;
    struct text name;     /* empty: the whole profile */
    double before, after; /* medians */
    double ratio;         /* median ratio over all pairs of runs; INFINITY: the function is new */
    double noise;         /* of one run, as a share; the larger of the two sides */
    double probability;   /* corrected for the number of comparisons */
    bool grew;            /* grew by more than the limit */
    bool exceeds;         /* and by more than noise */
};

struct gate {
    struct strings *names; /* names of functions: an id is the function's number; 0 is the whole */
    struct gate_side sides[2];
    VECTOR(struct comparison) comparisons; /* those that exceed come first */
    size_t exceeded, grown;
    bool shares, exact;
};

#endif
