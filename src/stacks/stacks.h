/*
 * stacks: what a profile looks like by name. Naming, flames, charts, parts of flames, two flames compared.
 *
 * naming_of_tree() works out what each location and each series is called, once, by wick's rules or, with quirks.names_through_text, by
 * exactly those of `perf script | inferno-collapse-perf`. flame_of_tree() then makes a flame: a second and much smaller tree, keyed by
 * what a frame is called. Views and exporters render what this room gives them; they do not walk the tree of locations.
 *
 * The caller owns what a function returns by pointer and frees it with the `_free` of its type.
 */
#ifndef WICK_STACKS_H
#define WICK_STACKS_H

#include "base/base.h"
#include "compat/compat.h"
#include "tree/tree.h"

/* ---- names -------------------------------------------------------------------------------- */

/* One name in a flame: what a location's frame, or a root frame of a series, is called. */
struct label {
    uint32_t name;   /* in the flame's strings */
    uint32_t object; /* the object's path, for colours and tables; in the flame's strings, or 0 */
    uint32_t kinds;  /* enum frame_kind */
};

/*
 * What everything is called, worked out once for each location and series by
 * naming_of_tree(): labels[locations[i].first … +count) are location i's, outermost first; the same of series, whose labels
 * are drawn at the root. `skip` drops a series' samples; `cut` on a location drops every caller of it and the
 * series' root labels too (inferno's --skip-after).
 */
struct naming_entry {
    uint32_t first;
    uint16_t count;
    bool skip;
    bool cut;
    bool alternate; /* of a series: its locations are called as `alternates` says */
    bool before;    /* of a series: it is what a diff compares with */
};
struct naming {
    struct strings *strings;
    VECTOR(struct label) labels;
    VECTOR(struct naming_entry) locations; /* as many as the tree's */
    VECTOR(struct naming_entry)
    alternates; /* as many, or none. Series with the same root labels agree on which. */
    VECTOR(struct naming_entry) series;
};

/* What a frame is: frames that agree in it are one. */
enum frame_unit { FRAME_FUNCTION, FRAME_LINE, FRAME_ADDRESS, FRAME_OBJECT, FRAME_MODULE };

struct naming_options {
    struct quirks quirks; /* the fields below keep their meaning */
    bool no_comm;         /* no comm at the root */
    bool show_pid;        /* comm-PID */
    bool show_tid;        /* comm-PID/TID */
    bool show_state;      /* why it waited: [sleep], [disk], [preempted], or [on-cpu] */
    bool mark_kernel;     /* _[k] */
    bool mark_jit;        /* _[j] */
    bool mark_inline;     /* _[i] */
    bool mark_incomplete; /* [truncated] and [broken] at the root of such stacks */
    bool
        addresses; /* unresolved frames carry their address; the tree must have been read with raw_addresses */
    bool
        keep_unknown; /* wick's own rules leave frames with neither symbol nor object out unless asked */
    bool source_lines;
    bool strip_templates; /* without what stands in <…> behind a name */
    bool
        strip_arguments; /* wick's own rules leave the arguments of symbols out anyway; this is for names of texts */
    const char **skip_after; /* names; everything above such a frame is dropped */
    size_t skip_after_count;
    enum frame_unit frames; /* lines need a tree that was read with source_lines */
    /* Dimensions (dimension_add) that are root frames, in place of the comm. */
    const char *const *roots;
    size_t root_count;
    bool group_threads; /* a process's worker-0, worker-1 … are worker-* */
    bool
        is_script_text; /* no perf.data: what inferno would read of an event line was read already */
};
/* Costs about a microsecond for each distinct symbol; the tree must be resolved. */
struct naming *naming_of_tree(const struct tree *tree, const struct naming_options *options);
void naming_free(struct naming *naming);
/* How many frames the naming left out. */
void naming_notes(const struct tree *tree, const struct naming *naming, struct notes *notes);
/* naming_of_tree() and its notes, with those of the reading. Text that was not recorded here is named as such: `options` says so afterwards. `each`: the tree
   tells of several times, and the notes are of `times` alone. */
struct naming *naming_with_notes(const struct tree *tree, struct naming_options *options, bool each,
                                 enum times times, struct notes *notes);
/* Return the name without _[k], _[j], _[i] or _[w] at its end. */
struct text name_unmarked(struct text name);
/* Append the name with template arguments as ‹…›: `std::vector‹…›::push_back`. What stands in front, as Rust's `<T as Trait>`, stays. */
void name_add_folded(struct buffer *buffer, struct text name);
/* Append the name in at most so many characters: whole, else folded, else without its middle. The end survives: the function's own name. */
void name_add_short(struct buffer *buffer, struct text name, size_t columns);
/* Adds what a series says of a dimension: `process` (comm-PID; the tree's processes have names), `thread` (comm-PID/TID) or the key of a label, also as `label:KEY`. Where it
   says nothing: "[no KEY]". */
void dimension_add(const struct tree *tree, const struct series *series, struct text dimension,
                   struct buffer *value);
/* The label key that a dimension asks for. */
struct text dimension_key(struct text dimension);
/* By series: how many bytes of its comm are what a process's numbered threads have in common, if that is one of them, else 0. Numbered are
   two or more threads of a process whose names differ only in a final number. free() it. NULL: there are none. */
uint16_t *numbered_threads(const struct tree *tree);
/* Adds "comm-PID/TID", or "comm-PID"; nothing where the source knows no thread. */
void thread_name(const struct tree *tree, const struct series *series, bool with_tid,
                 struct buffer *name);

/* ---- flame: the tree that views walk ------------------------------------------------------ */

struct flame_node {
    uint32_t parent; /* 0: the root, which is node 0 */
    uint32_t name;
    uint32_t object;
    uint32_t kinds; /* all kinds that its labels had, or-ed; KIND_INLINED only if all had it */
    uint32_t
        first_child; /* children are linked in order of their names, as if each were followed by ';' */
    uint32_t next;
    uint32_t depth;   /* the root's is 0 */
    uint32_t counted; /* a stack ends here, even if it weighs nothing */
    uint64_t self;
    uint64_t total;
    uint64_t self_before; /* a diff's other side; or what has_waits or has_samples say; else 0 */
    uint64_t total_before;
};

struct flame {
    struct strings *strings;
    VECTOR(struct flame_node) nodes; /* parents stand before their children */
    uint32_t max_depth;
    bool is_diff;
    bool is_graph;    /* of a call graph: totals are not those of children */
    bool has_waits;   /* no diff: *_before is the part of it that was spent waiting */
    bool has_samples; /* no diff: *_before is the number of samples that weights are made of */
    uint32_t unit;    /* string: "samples", "ns", … */
    struct index index;
};

/*
 * A pattern for names of frames: a regular expression in the syntax that PCRE2 and JavaScript's RegExp (flags "su") share, found anywhere in
 * the name as it is shown, without its mark; or an exact name.
 */
struct pattern;
/* NULL: it is no such pattern; a usage error quotes the pattern library's message, or says what JavaScript reads otherwise. */
struct pattern *pattern_new(const char *text, struct error *error);
struct pattern *pattern_exact_new(const char *text);
void pattern_free(struct pattern *pattern);
const char *pattern_text(const struct pattern *pattern);
bool pattern_is_exact(const struct pattern *pattern);
typedef VECTOR(struct pattern *) pattern_list;

/*
 * Which stacks, and which of their frames. Several patterns of one list are alternatives. All but `focus` and `ignore`, which look at
 * whole stacks, are applied frame by frame in the direction of drawing; recursion is folded and depth counted in what is left.
 * Frames are all that is drawn on the way to a function, comms and other root labels included.
 */
struct stack_rules {
    pattern_list focus;  /* only stacks through one of these */
    pattern_list ignore; /* no stacks through any of these */
    pattern_list hide;   /* frames that are left out: what they call is called by their callers */
    pattern_list
        root; /* only stacks with one of these, and without what leads to its last occurrence */
    bool kernel_only; /* frames of other code are left out, and stacks that have no other */
    bool user_only;   /* the same of the kernel's */
};
bool stack_rules_set(const struct stack_rules *rules);   /* any of them; NULL: none */
bool stack_rules_exact(const struct stack_rules *rules); /* they are exact names alone */
void stack_rules_release(struct stack_rules *rules);

struct flame_options {
    bool by_samples;     /* weight is the number of samples, not the period */
    bool reverse;        /* merged from the leaf */
    bool fold_recursion; /* a frame directly under one of the same name is that frame */
    bool keep_empty;     /* stacks without any frame count as their root labels alone */
    bool keep_zero;      /* stacks that weigh nothing are nodes all the same */
    bool waits; /* count what was spent waiting apart, too: flame.has_waits; not for a diff */
    bool
        samples; /* count samples beside weights: flame.has_samples; not for a diff, nor with waits */
    uint32_t max_depth;              /* frames beyond are cut, their weight kept; 0: all */
    const struct stack_rules *rules; /* NULL: none */
};

/* What weights count: "samples", the events' unit, or "events" where they differ. */
struct text flame_unit(const struct tree *tree, const struct flame_options *options);

struct flame *flame_new(void);
/* An empty one whose names are the naming's: labels' strings are its own. */
struct flame *flame_of_naming(const struct naming *naming);
void flame_free(struct flame *flame);
/* Link siblings, the heaviest first: of each node its first child and its next sibling, 0 where there is none. free() both. Costs a sort. */
void flame_link_by_weight(const struct flame *flame, uint32_t **first, uint32_t **next);
/* The flame of a resolved and named tree. Fails on overflow, or where a pattern meets its limits. */
struct flame *flame_of_tree(const struct tree *tree, const struct naming *naming,
                            const struct flame_options *options, struct error *error);
/* Finds or adds the child of `parent` so called. */
uint32_t flame_child(struct flame *flame, uint32_t parent, const struct label *label);
/* After the last flame_child and self weight: totals, order of children, depth. False on overflow. */
bool flame_finish(struct flame *flame, struct error *error);
/* Link children in order of their names. flame_finish() does it, too. */
void flame_order(struct flame *flame);
/* A chart: stacks stand in the order of their kept samples, thread after thread, and only neighbours are merged. Its children are in
   order of time, not of names. */
struct flame *flame_chart_of_tree(const struct tree *tree, const struct naming *naming,
                                  const struct flame_options *options, struct error *error);
/* Return the callers of a function, merged from its outermost frames, or its callees below them; it is the root's only child, or there is none.
   *self: what it spends itself, in all of its frames. NULL: on overflow. Costs, of callers, the depth of each outermost frame. */
struct flame *flame_around(const struct flame *flame, struct text function, bool callers,
                           uint64_t *self, struct error *error);
/* The flame of a call graph: functions beside each other. totals: with what they call; else a total is its self. */
struct flame *flame_of_graph(const struct tree *tree, const struct naming *naming, bool totals,
                             struct error *error);
/* As flame_around(), of such a flame and the naming that it was made with: the function, and next to it those that call it or that it calls. */
struct flame *flame_around_graph(const struct tree *tree, const struct naming *naming,
                                 const struct flame *flame, struct text function, bool callers,
                                 uint64_t *self, struct error *error);
/* What is counted on the nodes of one key: total once a stack, however often the key recurs in it. */
struct key_sum {
    uint64_t self, total;
    uint64_t self_before, total_before;
};
#define NO_KEY UINT32_MAX
/* Add up the rows of a table: keys[node], less than KEY_COUNT or NO_KEY, says which row a node belongs to. The caller zeroes SUMS. */
void flame_sum(const struct flame *flame, const uint32_t *keys, size_t key_count,
               struct key_sum *sums);
/* The node after `at`, depth first: what it calls, else what stands beside it or beside one of its callers. 0: that was the last. */
static inline uint32_t flame_next(const struct flame *flame, uint32_t at) {
    const struct flame_node *nodes = flame->nodes.items;
    if (nodes[at].first_child)
        return nodes[at].first_child;
    while (at && !nodes[at].next)
        at = nodes[at].parent;
    return nodes[at].next; /* the root's is 0 */
}
static inline struct text flame_name(const struct flame *flame, uint32_t node) {
    return strings_get(flame->strings, flame->nodes.items[node].name);
}

/* ---- the walker ------------------------------------------------------------------------------ */

/*
 * The walker: it takes every stack of a tree, names its frames, applies cutting, recursion folding and depth limits, and says where
 * in a flame the stack ends. Flames, the page's data and outlines are made from that.
 */
struct walk_options {
    const struct flame_options *shape; /* reverse and keep_empty are for flame_of_tree() alone */
    /* By what the naming calls frames: the string that recursion and patterns are seen by. NULL: frames are called by strings. */
    const uint32_t *alike;
    bool no_roots; /* the labels of series are not nodes */
};
struct walker {
    struct flame *flame;    /* neither weighed nor linked; the caller may add to it and take it */
    uint32_t *series_roots; /* by series: its root in `roots` + 1; 0: skipped, or it has no cells */
    struct walker_root {
        uint32_t node;   /* where in the flame its frames begin */
        uint32_t *nodes; /* by tree node: where in the flame the stack ends; 0: at no frame */
    } * roots;
    size_t root_count;
};
/* NULL: a pattern met its limits. */
struct walker *walker_new(const struct tree *tree, const struct naming *naming,
                          const struct walk_options *options, struct error *error);
void walker_free(struct walker *walker);
#define STACK_DROPPED UINT32_MAX
/* Return where a stack of the series ends; 0: it has no frame, or it was not counted; STACK_DROPPED: the rules leave it out. */
static inline uint32_t walker_find(const struct walker *walker, uint32_t series, uint32_t node) {
    uint32_t root = walker->series_roots[series];
    return root ? walker->roots[root - 1].nodes[node] : 0;
}

/* ---- stacks by place, for other tools' formats ------------------------------------------------ */

/* What places tell apart. */
enum detail {
    DETAIL_FUNCTIONS, /* functions: name, object and source file */
    DETAIL_LINES,     /* their lines */
    DETAIL_ADDRESSES, /* places in code */
};

/* One frame of a stack, as finely as the format tells frames apart. */
struct place {
    struct text name;
    struct text path; /* of its object; empty: none */
    struct text file; /* source; empty: not known */
    uint32_t line;    /* from here on 0 where the detail is coarser */
    uint32_t column;
    uint32_t object; /* the tree's, for its build id */
    /* Among the frames of one address: 0 is the function, the rest was inlined into it. */
    uint32_t level;
    uint64_t address; /* in the object's own terms; of a caller, within the call */
    uint32_t kinds;
    uint32_t function; /* 1 … function_count: one for each name, path and file */
};

struct placed_node {
    uint32_t parent; /* node 0 is the root, and has no place */
    uint32_t place;
    uint32_t depth;
    uint32_t end; /* the subtree is [this, end) */
};

/*
 * All stacks by place, in an order of content: the tree's numbers depend on how it was read, these do not. Parents stand before their
 * children, and each subtree is one stretch. Stacks without a frame end in a place called "[no stack]".
 */
struct placed {
    VECTOR(struct place) places; /* [0] is none */
    uint32_t function_count;
    VECTOR(struct placed_node) nodes;
    struct walker *walker; /* private: where stacks end, for placed_find() */
};
/* NULL: a pattern met its limits. */
struct placed *placed_new(const struct tree *tree, const struct naming *naming,
                          const struct flame_options *shape, enum detail detail,
                          struct error *error);
void placed_free(struct placed *placed);
/* Return the node where a stack of the series ends; 0: the series was skipped or has no cells; or STACK_DROPPED. */
static inline uint32_t placed_find(const struct placed *placed, uint32_t series, uint32_t node) {
    return walker_find(placed->walker, series, node);
}

/* ---- two of them -------------------------------------------------------------------------- */

struct diff_options {
    bool normalize; /* weights before are scaled so that both sides add up to the same */
    bool strip_hex; /* 0x45ef2173 in a name is 0x... */
};
/* One flame with both: `before` in self_before and total_before. Its strings are its own. */
struct flame *flame_diff(const struct flame *before, const struct flame *after,
                         const struct diff_options *options, struct error *error);
/* A tree of bare names with both sides of such a flame, before under events of their own (EVENT_BEFORE): for the page. */
struct tree *tree_of_diff(const struct flame *flame);
/* Append T with every `0x45ef2173` as `0x...`: addresses differ from run to run. */
void buffer_add_without_hex(struct buffer *buffer, struct text t);

#endif
