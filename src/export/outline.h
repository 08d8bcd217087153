/*
 * Private to the room: what every format is written from.
 *
 * The tree's ids depend on how it was read; an outline's numbers do not. Places, tracks, nodes and entries are sorted by content, nodes so that
 * parents stand before their children and each subtree is one stretch. Costs the tree's size again, and four bytes a kept sample.
 */
#ifndef WICK_EXPORT_OUTLINE_H
#define WICK_EXPORT_OUTLINE_H

#include "export/export.h"

/* What was counted: an event, or several that are one (time on and off the CPU). */
struct measure {
    struct text name;
    struct text unit; /* as the tree has it: "ns", "samples", "cycles" */
};

/* What one thread did, by one measure. */
struct track {
    uint32_t measure;
    int32_t pid, tid; /* -1: not known */
    struct text comm; /* as recorded; empty: not known */
    struct text name; /* comm-PID/TID, or the title where no thread is known */
    size_t first_entry, entry_count;
    size_t first_sample, sample_count; /* kept ones, in order */
    size_t first_left, left_count;     /* entries of what no kept sample stands for */
    bool has_times;                    /* some of its samples have one */
    bool has_timed_waits;              /* and some of those are waits */
    bool waits;                        /* some of it was off the CPU */
    bool twin;                         /* an earlier track has the same numbers */
    uint64_t samples, weight;          /* weight: as asked for, samples or period */
};

/* What was counted on one stack of one track. */
struct track_entry {
    uint32_t track;
    uint32_t node;
    uint32_t state;
    uint32_t labels; /* an index into label_sets; 0: none, or the format has no room for them */
    uint64_t samples;
    uint64_t weight;
};

struct outline {
    const struct tree *tree;
    const struct naming *naming;
    const struct export_options *options;
    enum detail detail;
    const struct placed *stacks; /* their places and nodes */
    VECTOR(struct measure) measures;
    VECTOR(struct track) tracks;
    VECTOR(struct track_entry) entries; /* by (track, state, labels, node) */
    VECTOR(struct track_entry) left;
    uint32_t *samples;       /* the tree's, track by track, in order */
    uint32_t *series_tracks; /* by series: its track, or NO_TRACK */
    uint32_t *label_sets;    /* the tree's sets, in an order of content; NULL: none matters */
    uint64_t first_time;     /* of all samples that have one; 0 where none has */
    struct arena arena;
};

#define NO_TRACK UINT32_MAX

/* NULL: the weights pass 2^64, or there is nothing. */
struct outline *outline_new(const struct tree *tree, const struct naming *naming,
                            const struct export_options *options,
                            const struct export_format *format, struct error *error);
void outline_free(struct outline *outline);

/* The track that weighs most: what is shown first. */
uint32_t outline_heaviest(const struct outline *outline);

/* What the process is called: like its first thread. */
struct text track_process(const struct outline *outline, uint32_t track);

/* Whether a label's value is a number as numbers are written, which some formats keep as such. */
static inline bool label_is_number(struct text value, uint64_t *number) {
    bool plain = value.length == 1 || (value.length && value.data[0] != '0');
    return plain && text_to_u64(value, number) && *number <= INT64_MAX;
}

/* What an entry weighs, as it was asked for. */
static inline uint64_t entry_weight(const struct outline *outline,
                                    const struct track_entry *entry) {
    return outline->options->shape->by_samples ? entry->samples : entry->weight;
}

/* The measure's unit, where other tools know it: nanoseconds, microseconds, milliseconds, seconds, bytes; else NULL. */
const char *measure_unit(const struct outline *outline, uint32_t measure);
/* The same of what weighs; NULL where samples were asked for. */
const char *weight_unit(const struct outline *outline, uint32_t measure);
/* Weights are nanoseconds that can be laid out in time. */
bool measure_is_time(const struct outline *outline, uint32_t measure);

/* ---- a track in order of time ---- */

/*
 * Steps are kept samples in order, then what none stands for; or entries where no sample was kept. Where weights are nanoseconds and samples
 * have times, each is put where it was: a sample stands for the time before it, a wait for the time behind it. Neighbours never overlap:
 * whoever would begin before the last ended begins there. A gap shorter than half a sample is none.
 * Elsewhere they follow one another.
 */
struct step {
    uint64_t start; /* since the outline's first_time where the track lies in time, else since 0 */
    uint64_t weight;
    uint64_t time; /* of the sample, since first_time; of what has none, the last one's */
    uint32_t node;
    uint32_t state;
};
struct walk {
    const struct outline *outline;
    const struct track *track;
    size_t next;
    uint64_t end, time;
    bool in_time;
};
struct walk walk_begin(const struct outline *outline, uint32_t track);
bool walk_next(struct walk *walk, struct step *step);

/* A step, or the gap before it (node 0), with all that repeat it. */
struct stretch {
    uint32_t node;
    uint64_t weight;
};

struct stretches {
    struct walk walk;
    struct step step; /* the next one, if there is one */
    bool more;
    uint64_t start, end; /* of the first one; of what was given out */
};
struct stretches stretches_begin(const struct outline *outline, uint32_t track);
bool stretches_next(struct stretches *stretches, struct stretch *stretch);

/* ---- private to the making of it ---- */

/* tracks.c: measures, tracks and which series belongs to which. */
void tracks_find(struct outline *outline);
/* track_steps.c: kept samples by track, and what is left without one; after entries are in order. */
void steps_find(struct outline *outline);

#endif
