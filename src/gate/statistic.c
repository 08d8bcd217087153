/*
 * Probabilities.
 *
 * A rank test uses only the order of the runs, so one disturbed run changes it by one place, however slow it was.
 * With 10 runs a side it costs about 40,000 additions; beyond EXACT_MOST runs the normal distribution is near enough
 * and the exact count too long.
 */
#include "gate/gate.h"

#include <math.h>
#include <stdlib.h>

enum { EXACT_MOST = 40, COUNT_EXACT_MOST = 2000 };

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Compute twice the rank of each value of `sorted`, so that ties have integer ranks. */
static void double_ranks(const double *sorted, size_t count, uint32_t *ranks) {
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && sorted[end] == sorted[i];)
            end++;
        for (size_t k = i; k < end; k++)
            ranks[k] = (uint32_t)(i + 1 + end);
    }
}

static uint64_t rank_sum(const double *values, size_t count, const double *sorted,
                         const uint32_t *ranks, size_t all) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ranks[search_first(k, 0, all, sorted[k] < values[i])];
    return sum;
}

/* Return the share of all ways to choose `chosen` of the ranks whose sum is at least `sum`. ways[k * width + s]
   counts the ways in which k of the ranks so far add up to s. */
static double tail_exact(const uint32_t *ranks, size_t all, size_t chosen, uint64_t sum) {
    size_t width = all * (all + 1) + 1;
    double *ways = memory_zero((chosen + 1) * width, sizeof *ways), above = 0, every = 0;
    ways[0] = 1;
    for (size_t i = 0; i < all; i++)
        for (size_t k = i + 1 < chosen ? i + 1 : chosen; k > 0; k--)
            for (size_t s = ranks[i]; s < width; s++)
                ways[k * width + s] += ways[(k - 1) * width + s - ranks[i]];
    for (size_t s = 0; s < width; s++) {
        every += ways[chosen * width + s];
        above += s >= sum ? ways[chosen * width + s] : 0;
    }
    free(ways);
    return above / every;
}

static double tail_normal(double deviations) {
    return 0.5 * erfc(deviations / sqrt(2));
}

/* Use mean and variance of the sum, ties included, with half a step as continuity correction. */
static double tail_near(const uint32_t *ranks, size_t all, size_t chosen, uint64_t sum) {
    double n = (double)all, k = (double)chosen, mean = k * (n + 1), squares = 0;
    for (size_t i = 0; i < all; i++)
        squares += ((double)ranks[i] - (n + 1)) * ((double)ranks[i] - (n + 1));
    double variance = k * (n - k) / (n * (n - 1)) * squares;
    return variance > 0 ? tail_normal(((double)sum - 1 - mean) / sqrt(variance)) : 1;
}

double gate_rank_test(const double *before, size_t before_count, const double *after,
                      size_t after_count) {
    size_t all = before_count + after_count;
    double *sorted = memory_zero(all, sizeof *sorted);
    uint32_t *ranks = memory_zero(all, sizeof *ranks);
    memcpy(sorted, before, before_count * sizeof *sorted);
    memcpy(sorted + before_count, after, after_count * sizeof *sorted);
    qsort(sorted, all, sizeof *sorted, compare_doubles);
    double_ranks(sorted, all, ranks);
    uint64_t sum = rank_sum(after, after_count, sorted, ranks, all);
    double tail = all <= EXACT_MOST ? tail_exact(ranks, all, after_count, sum)
                                    : tail_near(ranks, all, after_count, sum);
    free(sorted);
    free(ranks);
    return tail;
}

double gate_rank_least(size_t before_count, size_t after_count) {
    double ways = 1;
    for (size_t i = 1; i <= after_count && ways < 1e300; i++)
        ways *= (double)(before_count + i) / (double)i;
    return 1 / ways;
}

double gate_count_test(double before, double after, double share) {
    double all = floor(before + after), from = floor(after), tail = 0;
    if (all < 1 || from < 1 || share <= 0 || share >= 1)
        return 1;
    if (all > COUNT_EXACT_MOST)
        return tail_normal((from - 0.5 - all * share) / sqrt(all * share * (1 - share)));
    for (uint32_t i = (uint32_t)from; i <= (uint32_t)all; i++) {
        double k = i;
        tail += exp(lgamma(all + 1) - lgamma(k + 1) - lgamma(all - k + 1) + k * log(share) +
                    (all - k) * log1p(-share));
    }
    return tail < 1 ? tail : 1;
}

struct ranked {
    double probability;
    size_t place;
};

static int compare_places(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->probability != y->probability)
        return x->probability < y->probability ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

void gate_correct(double *probabilities, size_t count) {
    struct ranked *places = memory_zero(count + 1, sizeof *places);
    double least = 0;
    for (size_t i = 0; i < count; i++)
        places[i] = (struct ranked){probabilities[i], i};
    qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 0; i < count; i++) {
        double corrected = fmin(1, places[i].probability * (double)(count - i));
        least = fmax(least, corrected);
        probabilities[places[i].place] = least;
    }
    free(places);
}
