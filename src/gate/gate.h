/*
 * gate: decide whether a later build costs more than an earlier one, by more than noise. docs/gate.md has the
 * definition and the tests.
 *
 * Each side is one run or several. A rule names what must not grow: the whole profile, or functions that match a
 * pattern, each compared separately. A function's costs in the runs of one side are ranked among those of the other
 * (Mann, Whitney and Wilcoxon's test, exact, ties included), and the probabilities are corrected for the number of
 * comparisons (Holm). One run a side has no spread: then the noise of sampling is used instead. Exact counts need no
 * test.
 */
#ifndef WICK_GATE_H
#define WICK_GATE_H

#include "view/view.h"

/* The probability that a gate fails although nothing changed, over all comparisons together. */
#define GATE_FALSE_ALARMS 0.01

/* ---- rules ---- */

struct gate_rule {
    const char *text;    /* as given */
    struct text pattern; /* of functions, with * and ?; empty: the whole profile */
    bool self;           /* compare self cost, not total cost */
    double limit;        /* 0.05 for +5% */
};
/* Parse a rule such as "total > +5%" or "parse_* self > 10 %". The rule borrows the text. */
bool gate_rule_parse(const char *text, struct gate_rule *rule, struct error *error);

/* ---- runs ---- */

struct gate;
struct gate *gate_new(void);
void gate_free(struct gate *gate);
/* Add a run of BEFORE or AFTER. `samples` is its number of samples. */
void gate_add_run(struct gate *gate, bool after, const struct report *report, uint64_t samples);

/* ---- the verdict ---- */

struct gate_options {
    const struct gate_rule *rules;
    size_t rule_count;
    double
        threshold; /* per cent: functions with less of the whole on both sides are not compared */
    bool shares;   /* compare shares of each run's whole, not weights */
    bool exact;    /* the counts have no noise */
};
/* Compare. Fails if a rule matches no function, or if there are too few runs. */
bool gate_decide(struct gate *gate, const struct gate_options *options, struct error *error);
/* Return how many comparisons exceed their limit; call it after gate_decide(). */
size_t gate_exceeded(const struct gate *gate);
/* Write a sentence and a table of what exceeds: REPORT_TEXT, REPORT_JSON or REPORT_MARKDOWN. */
void gate_write(struct out *out, const struct gate *gate, enum report_format format, size_t limit);

/* ---- statistics: any thread ---- */

/* Return the probability that `after` ranks that high by chance, if both come from one population. */
double gate_rank_test(const double *before, size_t before_count, const double *after,
                      size_t after_count);
/* Return the least possible value of gate_rank_test(). */
double gate_rank_least(size_t before_count, size_t after_count);
/* Return the probability that at least `after` of all events are on that side by chance, if each is with probability
   `share`. */
double gate_count_test(double before, double after, double share);
/* Correct `count` probabilities for their number, in place. */
void gate_correct(double *probabilities, size_t count);

#endif
