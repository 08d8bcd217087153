/*
 * Private to the room: the data that every format is written from.
 *
 * The tree's ids depend on how it was read; an outline's numbers do not. Places, tracks, nodes and entries are sorted
 * by content, nodes so that parents precede their children and each subtree is contiguous. Costs the tree's size
 * again, and four bytes per kept sample.
 */
#ifndef WICK_EXPORT_OUTLINE_H
#define WICK_EXPORT_OUTLINE_H

#include "export/export.h"

/* A measured quantity: an event, or several that are merged (time on and off the CPU). */
struct measure {
    struct text name;
    struct text unit; /* as in the tree: "ns", "samples", "cycles" */
};

/* One thread's counts of one measure. */
struct track {
    uint32_t measure;
    int32_t pid, tid; /* -1: unknown */
    struct text comm; /* as recorded; empty: unknown */
    struct text name; /* comm-PID/TID, or the title if no thread is known */
    size_t first_entry, entry_count;
    size_t first_sample, sample_count; /* kept ones, in order */
    size_t first_left, left_count;     /* entries that no kept sample accounts for */
    bool has_times;                    /* some of its samples have a time */
    bool has_timed_waits;              /* and some of those are waits */
    bool waits;                        /* some of it was off the CPU */
    bool twin;                         /* an earlier track has the same numbers */
    uint64_t samples, weight;          /* weight: samples or period, as requested */
};

/* The counts of one stack of one track. */
struct track_entry {
    uint32_t track;
    uint32_t node;
    uint32_t state;
    uint32_t labels; /* an index into label_sets; 0: none, or the format can't store labels */
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
    uint32_t *label_sets;    /* the tree's sets, sorted by content; NULL: none matters */
    uint64_t first_time;     /* of all samples that have one; 0 if none has */
    struct arena arena;
};

#define NO_TRACK UINT32_MAX

/* Return NULL if the weights exceed 64 bits, or there is nothing. */
struct outline *outline_new(const struct tree *tree, const struct naming *naming,
                            const struct export_options *options,
                            const struct export_format *format, struct error *error);
void outline_free(struct outline *outline);

/* Return the heaviest track, which is shown first. */
uint32_t outline_heaviest(const struct outline *outline);

/* Return the process's name: that of its first thread. */
struct text track_process(const struct outline *outline, uint32_t track);

/* Return true if a label's value is a number in canonical form, which some formats store as such. */
static inline bool label_is_number(struct text value, uint64_t *number) {
    bool plain = value.length == 1 || (value.length && value.data[0] != '0');
    return plain && text_to_u64(value, number) && *number <= INT64_MAX;
}

/* Return an entry's weight: samples or period, as requested. */
static inline uint64_t entry_weight(const struct outline *outline,
                                    const struct track_entry *entry) {
    return outline->options->shape->by_samples ? entry->samples : entry->weight;
}

/* Return the measure's unit if other tools know it: nanoseconds, microseconds, milliseconds, seconds, bytes; else
   NULL. */
const char *measure_unit(const struct outline *outline, uint32_t measure);
/* The same for the weight; NULL if samples were requested. */
const char *weight_unit(const struct outline *outline, uint32_t measure);
/* Return true if weights are nanoseconds that can be laid out in time. */
bool measure_is_time(const struct outline *outline, uint32_t measure);

/* ---- a track in order of time ---- */

/*
 * Steps are kept samples in order, then entries that none accounts for; or all entries if no sample was kept. If
 * weights are nanoseconds and samples have times, each is placed in time: a sample covers the time before it, a wait
 * the time after it. Neighbours never overlap: a step that would begin before the previous one ended begins there. A
 * gap shorter than half a sample is ignored. Otherwise steps follow one another.
 */
struct step {
    uint64_t start; /* since the outline's first_time if the track has times, else since 0 */
    uint64_t weight;
    uint64_t time; /* of the sample, since first_time; if it has none, the previous one's */
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

/* A step, or the gap before it (node 0), merged with all that repeat it. */
struct stretch {
    uint32_t node;
    uint64_t weight;
};

struct stretches {
    struct walk walk;
    struct step step; /* the next one, if there is one */
    bool more;
    uint64_t start, end; /* start of the first one; end of the last one returned */
};
struct stretches stretches_begin(const struct outline *outline, uint32_t track);
bool stretches_next(struct stretches *stretches, struct stretch *stretch);

/* ---- private to the making of it ---- */

/* tracks.c: measures, tracks and which series belongs to which. */
void tracks_find(struct outline *outline);
/* track_steps.c: kept samples by track, and what they do not account for; call it after entries are sorted. */
void steps_find(struct outline *outline);

#endif
