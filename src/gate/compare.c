/*
 * Compare runs: find the functions that a rule matches, their cost on either side, and whether the change is more
 * than noise.
 */
#include "gate/internal.h"

#include <math.h>
#include <stdlib.h>

struct gate *gate_new(void) {
    struct gate *gate = memory_zero(1, sizeof *gate);
    gate->names = strings_new();
    return gate;
}

static void side_release(struct gate_side *side) {
    vector_release(&side->measures);
    vector_release(&side->functions);
    vector_release(&side->wholes);
    vector_release(&side->samples);
    free(side->order);
    free(side->ends);
}

void gate_free(struct gate *gate) {
    if (!gate)
        return;
    side_release(&gate->sides[0]);
    side_release(&gate->sides[1]);
    vector_release(&gate->comparisons);
    strings_free(gate->names);
    free(gate);
}

void gate_add_run(struct gate *gate, bool after, const struct report *report, uint64_t samples) {
    struct gate_side *side = &gate->sides[after];
    uint32_t run = (uint32_t)side->wholes.count;
    for (size_t i = 0; i < report->rows.count; i++) {
        const struct report_row *row = &report->rows.items[i];
        vector_push(&side->functions, strings_add(gate->names, row->name));
        vector_push(&side->measures, ((struct gate_measure){run, row->self, row->total}));
    }
    vector_push(&side->wholes, (double)report->total);
    vector_push(&side->samples, (double)samples);
}

size_t gate_exceeded(const struct gate *gate) {
    return gate->exceeded;
}

/* ---- numbers of one function ---- */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Return the median; sorts the values. */
static double median(double *values, size_t count) {
    if (!count)
        return 0;
    qsort(values, count, sizeof *values, compare_doubles);
    double low = values[(count - 1) / 2], high = values[count / 2];
    return low == high ? low : low + (high - low) / 2;
}

/* Get the cost of function `number` in each run; 0 is the whole profile. */
static void side_values(const struct gate_side *side, uint32_t number, bool self, bool shares,
                        double *values) {
    for (size_t i = 0; i < side->wholes.count; i++)
        values[i] = number ? 0 : side->wholes.items[i];
    for (size_t i = number ? side->ends[number - 1] : 0; number && i < side->ends[number]; i++) {
        const struct gate_measure *measure = &side->measures.items[side->order[i]];
        values[measure->run] = (double)(self ? measure->self : measure->total);
    }
    for (size_t i = 0; shares && i < side->wholes.count; i++)
        values[i] = side->wholes.items[i] > 0 ? values[i] / side->wholes.items[i] : 0;
}

/* Return how much a run differs from the median, as a share of it: robust, and equal to the standard deviation for
   normal noise. */
static double spread(const double *values, size_t count, double middle) {
    double *differences = memory_zero(count + 1, sizeof *differences);
    for (size_t i = 0; i < count; i++)
        differences[i] = fabs(values[i] - middle);
    double result = middle > 0 ? 1.4826 * median(differences, count) / middle : 0;
    free(differences);
    return result;
}

/* The median over all pairs of runs. */
static double ratio_of(const double *before, size_t before_count, const double *after,
                       size_t after_count) {
    double *ratios = memory_zero(before_count * after_count + 1, sizeof *ratios);
    for (size_t i = 0; i < before_count; i++)
        for (size_t k = 0; k < after_count; k++)
            ratios[i * after_count + k] = before[i] > 0  ? after[k] / before[i]
                                          : after[k] > 0 ? INFINITY
                                                         : 1;
    double result = median(ratios, before_count * after_count);
    free(ratios);
    return result;
}

struct work {
    struct gate *gate;
    const struct gate_options *options;
    double *values[2], *sorted[2];
};

static size_t runs_of(const struct work *w, bool after) {
    return w->gate->sides[after].wholes.count;
}

static bool is_one_each(const struct work *w) {
    return runs_of(w, false) == 1 && runs_of(w, true) == 1;
}

/* Return how many samples a value of the only run stands for. */
static double samples_of(const struct work *w, bool after) {
    const struct gate_side *side = &w->gate->sides[after];
    double whole = w->options->shares ? 1 : side->wholes.items[0];
    return whole > 0 ? w->values[after][0] / whole * side->samples.items[0] : 0;
}

/* One run a side: sampling takes each event by chance, so counts give the noise. Shares are expected to grow with
   their whole. */
static void test_counts(const struct work *w, struct comparison *c) {
    double before = samples_of(w, false), after = samples_of(w, true);
    const struct gate_side *sides = w->gate->sides;
    double odds = 1 + c->rule->limit / 2;
    if (w->options->shares)
        odds *= sides[1].samples.items[0] / fmax(1, sides[0].samples.items[0]);
    c->noise = before >= 1 ? 1 / sqrt(before) : 1;
    c->probability = gate_count_test(before, after, odds / (1 + odds));
}

/* Test whether it grew by more than half the limit: machines drift a little between two recordings, and a gate must
   not fail for that. */
static void test_ranks(const struct work *w, struct comparison *c) {
    double *before = w->sorted[0];
    for (size_t i = 0; i < runs_of(w, false); i++)
        before[i] = w->values[0][i] * (1 + c->rule->limit / 2);
    c->probability = gate_rank_test(before, runs_of(w, false), w->values[1], runs_of(w, true));
}

static void compare(const struct work *w, const struct gate_rule *rule, uint32_t number,
                    struct comparison *c) {
    size_t counts[] = {runs_of(w, false), runs_of(w, true)};
    double middles[2];
    for (int side = 0; side < 2; side++) {
        side_values(&w->gate->sides[side], number, rule->self, w->options->shares, w->values[side]);
        memcpy(w->sorted[side], w->values[side], counts[side] * sizeof(double));
        middles[side] = median(w->sorted[side], counts[side]);
        c->noise = fmax(c->noise, spread(w->values[side], counts[side], middles[side]));
    }
    c->rule = rule;
    c->name = number ? strings_get(w->gate->names, number) : TEXT("");
    c->before = middles[0];
    c->after = middles[1];
    c->ratio = ratio_of(w->values[0], counts[0], w->values[1], counts[1]);
    if (w->options->exact)
        c->probability = 0;
    else if (is_one_each(w))
        test_counts(w, c);
    else
        test_ranks(w, c);
}

/* ---- which functions ---- */

/* Match `*` to any bytes and `?` to one byte. Only the last `*` is retried, so this costs at most the product of both
   lengths. */
static bool matches(struct text pattern, struct text name) {
    size_t at = 0, i = 0, star = SIZE_MAX, again = 0;
    while (i < name.length) {
        if (at < pattern.length && pattern.data[at] == '*') {
            star = at++;
            again = i;
        } else if (at < pattern.length &&
                   (pattern.data[at] == '?' || pattern.data[at] == name.data[i])) {
            at++;
            i++;
        } else if (star != SIZE_MAX) {
            at = star + 1;
            i = ++again;
        } else {
            return false;
        }
    }
    while (at < pattern.length && pattern.data[at] == '*')
        at++;
    return at == pattern.length;
}

/* Return the function's share of the whole, as the mean over a side's runs. */
static double mean_share(const struct gate_side *side, uint32_t number, bool self, double *values) {
    double sum = 0;
    side_values(side, number, self, true, values);
    for (size_t i = 0; i < side->wholes.count; i++)
        sum += values[i];
    return side->wholes.count ? sum / (double)side->wholes.count : 0;
}

static bool is_light(const struct work *w, const struct gate_rule *rule, uint32_t number) {
    double least = w->options->threshold / 100;
    for (int side = 0; side < 2; side++)
        if (mean_share(&w->gate->sides[side], number, rule->self, w->values[side]) >= least)
            return false;
    return true;
}

static bool add_comparisons(struct work *w, const struct gate_rule *rule, struct error *error) {
    struct gate *gate = w->gate;
    bool found = false;
    struct comparison c = {0};
    if (!rule->pattern.length) {
        compare(w, rule, 0, &c);
        vector_push(&gate->comparisons, c);
        return true;
    }
    for (uint32_t number = 1; number <= strings_count(gate->names); number++) {
        if (!matches(rule->pattern, strings_get(gate->names, number)))
            continue;
        found = true;
        if (is_light(w, rule, number))
            continue;
        c = (struct comparison){0};
        compare(w, rule, number, &c);
        vector_push(&gate->comparisons, c);
    }
    return found ||
           error_set(error, ERROR_INPUT, "--fail-if '%s': no function on either side matches %.*s",
                     rule->text, TEXT_ARGS(rule->pattern));
}

/* ---- the comparison ---- */

/* A gate that could never fail is an error. */
static bool are_enough(const struct work *w, struct error *error) {
    size_t count = w->gate->comparisons.count, before = runs_of(w, false), after = runs_of(w, true),
           needed = 2;
    if (w->options->exact || is_one_each(w) ||
        gate_rank_least(before, after) * (double)count <= GATE_FALSE_ALARMS)
        return true;
    while (gate_rank_least(needed, needed) * (double)count > GATE_FALSE_ALARMS)
        needed++;
    return error_set(error, ERROR_FEW,
                     "%zu and %zu runs are too few to tell %zu change%s from noise: %zu on each "
                     "side are enough%s",
                     before, after, count, count == 1 ? "" : "s", needed,
                     count == 1 ? "" : ", or fewer functions (a higher --threshold)");
}

static int compare_comparisons(const void *a, const void *b) {
    const struct comparison *x = a, *y = b;
    if (x->exceeds != y->exceeds)
        return x->exceeds ? -1 : 1;
    if (x->grew != y->grew)
        return x->grew ? -1 : 1;
    if (x->rule != y->rule)
        return x->rule < y->rule ? -1 : 1;
    if (x->ratio != y->ratio)
        return x->ratio > y->ratio ? -1 : 1;
    return text_compare(x->name, y->name);
}

static void judge(struct gate *gate) {
    size_t count = gate->comparisons.count;
    double *probabilities = memory_zero(count + 1, sizeof *probabilities);
    for (size_t i = 0; i < count; i++)
        probabilities[i] = gate->comparisons.items[i].probability;
    gate_correct(probabilities, count);
    for (size_t i = 0; i < count; i++) {
        struct comparison *c = &gate->comparisons.items[i];
        c->probability = probabilities[i];
        c->grew = c->ratio > 1 + c->rule->limit;
        c->exceeds = c->grew && c->probability < GATE_FALSE_ALARMS;
        gate->exceeded += c->exceeds;
        gate->grown += c->grew;
    }
    free(probabilities);
    if (count)
        qsort(gate->comparisons.items, count, sizeof *gate->comparisons.items, compare_comparisons);
}

bool gate_decide(struct gate *gate, const struct gate_options *options, struct error *error) {
    struct work w = {.gate = gate, .options = options};
    bool fine = true;
    gate->shares = options->shares;
    gate->exact = options->exact;
    for (int i = 0; i < 2; i++) {
        struct gate_side *side = &gate->sides[i];
        size_t functions = strings_count(gate->names) + 1;
        assert(side->wholes.count);
        side->ends = memory_zero(functions, sizeof *side->ends);
        side->order =
            counting_sort(side->functions.items, side->functions.count, functions, side->ends);
        w.values[i] = memory_zero(side->wholes.count, sizeof(double));
        w.sorted[i] = memory_zero(side->wholes.count, sizeof(double));
    }
    for (size_t i = 0; fine && i < options->rule_count; i++)
        fine = add_comparisons(&w, &options->rules[i], error);
    fine = fine && are_enough(&w, error);
    if (fine)
        judge(gate);
    for (int i = 0; i < 2; i++) {
        free(w.values[i]);
        free(w.sorted[i]);
    }
    return fine;
}
