/*
 * view: the tree as people see it. Folded text, SVG, script text.
 *
 * Naming comes first: naming_of_tree() works out what each location and each series is called, once, by wick's rules or, under
 * compat_inferno, by exactly those of `perf script | inferno-collapse-perf`. flame_of_tree() (tree.h) then gives the flame
 * that folded text and pictures walk. Script text does not go through a flame: it prints kept samples in order.
 *
 * Every writer is deterministic: same input, same bytes, with any number of threads, locale, time zone and clock.
 */
#ifndef WICK_VIEW_H
#define WICK_VIEW_H

#include "base/base.h"
#include "profile/profile.h"
#include "tree/tree.h"

/* ---- names -------------------------------------------------------------------------------- */

struct naming_options {
    bool compat_inferno; /* all of inferno's rules; the fields below keep their meaning */
    bool no_comm;        /* no comm at the root */
    bool show_pid;       /* comm-PID */
    bool show_tid;       /* comm-PID/TID */
    bool mark_kernel;    /* _[k] */
    bool mark_jit;       /* _[j] */
    bool mark_inline;    /* _[i] */
    bool mark_incomplete; /* [truncated] and [broken] at the root of such stacks */
    bool addresses;      /* unresolved frames carry their address; the tree must have been read with raw_addresses */
    bool keep_unknown;   /* wick's own rules leave frames without a symbol out unless asked; see docs/differences.md */
    bool source_lines;
    const char **skip_after; /* names; everything above such a frame is dropped */
    size_t skip_after_count;
    bool is_script_text; /* the tree came from perf script text, whose quirks its reader has applied already */
};
struct naming *naming_of_tree(const struct tree *tree, const struct naming_options *options, unsigned threads);
void naming_free(struct naming *naming);

/* ---- folded text -------------------------------------------------------------------------- */

struct fold_options {
    bool compat_inferno; /* sorted by stack instead of by line */
};
/* `a;b;c 12`, one line a stack, sorted bytewise. */
void fold_write(struct out *out, const struct flame *flame, const struct fold_options *options);

/* ---- SVG ---------------------------------------------------------------------------------- */

struct svg_options {
    const char *title; /* NULL: "Flame Graph" */
    const char *subtitle;
    const char *notes; /* for the provenance comment */
    uint32_t width;    /* 0: fluid */
    double min_width;  /* per cent of the total; frames narrower are left out */
};
void svg_write(struct out *out, const struct flame *flame, const struct svg_options *options);

/* ---- script text -------------------------------------------------------------------------- */

struct script_options {
    unsigned threads;
};
/* What perf 6.1's `perf script` prints. The profile must have been read with keep_samples and raw_addresses. */
bool script_write(struct out *out, const struct profile *profile, const struct script_options *options,
                  struct error *error);

#endif
