/*
 * stacks: a profile by name. Naming, flames, charts, parts of flames, comparison of two flames.
 *
 * naming_of_tree() names each location and each series once, by wick's rules or, with quirks.names_through_text, exactly as
 * `perf script | inferno-collapse-perf` would. flame_of_tree() then makes a flame: a second, much smaller tree keyed by frame name.
 * Views and exporters render flames; they do not walk the tree of locations.
 *
 * The caller owns what a function returns by pointer and frees it with the `_free` function of its type.
 */
#ifndef WICK_STACKS_H
#define WICK_STACKS_H

#include "base/base.h"
#include "compat/compat.h"
#include "tree/tree.h"

/* ---- names -------------------------------------------------------------------------------- */

/* A name in a flame: the name of a location's frame or of a series' root frame. */
struct label {
    uint32_t name;   /* in the flame's strings */
    uint32_t object; /* the object's path, for colours and tables; in the flame's strings, or 0 */
    uint32_t kinds;  /* enum frame_kind */
};

/*
 * The names of all locations and series, from naming_of_tree(). labels[locations[i].first … +count) are those of location i, outermost
 * first. Labels of a series are found the same way and are drawn at the root. `skip` drops a series' samples. `cut` on a location drops
 * all its callers and the series' root labels (inferno's --skip-after).
 */
struct naming_entry {
    uint32_t first;
    uint16_t count;
    bool skip;
    bool cut;
    bool alternate; /* series only: `alternates` names its locations */
    bool before;    /* series only: it belongs to the baseline of a diff */
};
struct naming {
    struct strings *strings;
    VECTOR(struct label) labels;
    VECTOR(struct naming_entry) locations; /* one for each of the tree's */
    VECTOR(struct naming_entry)
    alternates; /* as many, or none. Series with the same root labels use the same of the two. */
    VECTOR(struct naming_entry) series;
};

/* What identifies a frame: frames equal in this are merged. */
enum frame_unit { FRAME_FUNCTION, FRAME_LINE, FRAME_ADDRESS, FRAME_OBJECT, FRAME_MODULE };

struct naming_options {
    struct quirks quirks; /* the fields below keep their meaning */
    bool no_comm;         /* no comm at the root */
    bool show_pid;        /* comm-PID */
    bool show_tid;        /* comm-PID/TID */
    bool show_state;      /* [sleep], [disk], [preempted] or [on-cpu] */
    bool mark_kernel;     /* _[k] */
    bool mark_jit;        /* _[j] */
    bool mark_inline;     /* _[i] */
    bool mark_incomplete; /* [truncated] and [broken] at the root of such stacks */
    bool addresses;       /* show addresses of unresolved frames; the tree needs raw_addresses */
    bool keep_unknown;    /* keep frames with neither symbol nor object, which wick drops */
    bool source_lines;
    bool strip_templates; /* drop <…> after a name */
    bool
        strip_arguments; /* drop (…) after a name in text formats; wick drops those of symbols anyway */
    const char **skip_after; /* names; all callers of such a frame are dropped */
    size_t skip_after_count;
    enum frame_unit frames; /* FRAME_LINE needs a tree that was read with source_lines */
    /* Dimensions (dimension_add) to show as root frames instead of the comm. */
    const char *const *roots;
    size_t root_count;
    bool group_threads; /* show a process's worker-0, worker-1 … as worker-* */
    bool
        is_script_text; /* not from a perf.data: the reader has already parsed event lines as inferno does */
};
/* Name a resolved tree. Costs about a microsecond for each distinct symbol. */
struct naming *naming_of_tree(const struct tree *tree, const struct naming_options *options);
void naming_free(struct naming *naming);
/* Note how many frames the naming left out. */
void naming_notes(const struct tree *tree, const struct naming *naming, struct notes *notes);
/* Name the tree and collect the notes of reading and naming. Sets options->is_script_text for a tree that was not recorded. With `each` the
   tree has several times, and only notes about `times` are collected. */
struct naming *naming_with_notes(const struct tree *tree, struct naming_options *options, bool each,
                                 enum times times, struct notes *notes);
/* Return the name without _[k], _[j], _[i] or _[w] at its end. */
struct text name_unmarked(struct text name);
/* Append the name with template arguments shown as ‹…›, and Go's type arguments as […]: `std::vector‹…›::push_back`. A leading <…>, as in Rust's `<T as Trait>`, stays. */
void name_add_folded(struct buffer *buffer, struct text name);
/* Return whether the name has namespaces, types, packages or template arguments, so that its last part matters most. */
bool name_has_parts(struct text name);
/* Append the name in at most `columns` characters: whole if it fits, else folded, else with its middle cut out, else only the function's own
   name, as much of it as fits. */
void name_add_short(struct buffer *buffer, struct text name, size_t columns);
/* Append a series' value of a dimension: `process` (comm-PID; call tree_name_processes() first), `thread` (comm-PID/TID), or a label key,
   also written `label:KEY`. Append "[no KEY]" if it has none. */
void dimension_add(const struct tree *tree, const struct series *series, struct text dimension,
                   struct buffer *value);
/* Return the label key of a dimension. */
struct text dimension_key(struct text dimension);
/* Find numbered threads: two or more threads of one process whose names differ only in a final number. For each series, return the length
   in bytes of the common part of its comm, or 0 if its thread is not numbered; free() the array. Return NULL if there are none. */
uint16_t *numbered_threads(const struct tree *tree);
/* Append "comm-PID/TID" or "comm-PID"; nothing if the source has no threads. */
void thread_name(const struct tree *tree, const struct series *series, bool with_tid,
                 struct buffer *name);

/* ---- flame: the tree that views walk ------------------------------------------------------ */

struct flame_node {
    uint32_t parent; /* 0: the root, which is node 0 */
    uint32_t name;
    uint32_t object;
    uint32_t kinds;       /* the kinds of all its labels, or-ed; KIND_INLINED only if all have it */
    uint32_t first_child; /* children are linked in order of name + ';' */
    uint32_t next;
    uint32_t depth;   /* 0 for the root */
    uint32_t counted; /* a stack ends here, even one of weight 0 */
    uint64_t self;
    uint64_t total;
    uint64_t self_before; /* the baseline of a diff; see also has_waits and has_samples */
    uint64_t total_before;
};

struct flame {
    struct strings *strings;
    VECTOR(struct flame_node) nodes; /* parents come before their children */
    uint32_t max_depth;
    bool is_diff;
    bool is_graph;    /* made from a call graph: a total is not the sum of its children's */
    bool has_waits;   /* not a diff: *_before is the part of the weight spent waiting */
    bool has_samples; /* not a diff: *_before is the number of samples behind the weight */
    uint32_t unit;    /* string: "samples", "ns", … */
    struct index index;
};

/*
 * A pattern for frame names: an exact name, or a regular expression in the syntax common to PCRE2 and JavaScript's RegExp (flags "su"). It
 * may match anywhere in the name as shown, without its mark.
 */
struct pattern;
/* Return NULL with a usage error if the text is not a pattern. The error quotes PCRE2's message, or says what JavaScript reads differently. */
struct pattern *pattern_new(const char *text, struct error *error);
struct pattern *pattern_exact_new(const char *text);
void pattern_free(struct pattern *pattern);
const char *pattern_text(const struct pattern *pattern);
bool pattern_is_exact(const struct pattern *pattern);
typedef VECTOR(struct pattern *) pattern_list;

/*
 * Which stacks to keep, and which of their frames. Patterns of one list are alternatives. `focus` and `ignore` look at whole stacks. The
 * others apply frame by frame in drawing order; recursion folding and the depth limit come after them. Comms and other root labels count
 * as frames.
 */
struct stack_rules {
    pattern_list focus;  /* keep only stacks that contain one of these */
    pattern_list ignore; /* drop stacks that contain one of these */
    pattern_list hide;   /* drop these frames and attach their callees to their callers */
    pattern_list root; /* keep only stacks that contain one of these, from its last occurrence on */
    bool kernel_only;  /* drop user frames, and stacks without kernel frames */
    bool user_only;    /* drop kernel frames, and stacks without user frames */
};
bool stack_rules_set(const struct stack_rules *rules);   /* whether any is set; NULL: none is */
bool stack_rules_exact(const struct stack_rules *rules); /* whether all patterns are exact names */
/* Append the rules as options: `--focus parse --kernel-only`. */
void stack_rules_add(struct buffer *text, const struct stack_rules *rules);
/* Fail because no stack is left: "WHAT", or "WHAT: no stack passes --focus parse". Return false. */
bool stack_rules_fail(const struct stack_rules *rules, const char *what, struct error *error);
void stack_rules_release(struct stack_rules *rules);

struct flame_options {
    bool by_samples;     /* count samples, not periods */
    bool reverse;        /* merge from the leaf */
    bool fold_recursion; /* merge a frame with a caller of the same name directly above it */
    bool keep_empty;     /* count stacks without frames as their root labels */
    bool keep_zero;      /* keep stacks of weight 0 */
    bool waits;          /* also count time spent waiting: flame.has_waits; not for a diff */
    bool samples; /* also count samples: flame.has_samples; not for a diff, nor with `waits` */
    uint32_t max_depth;              /* cut deeper frames but keep their weight; 0: no limit */
    const struct stack_rules *rules; /* NULL: none */
};

/* Return what weights count: "samples", the unit of the events, or "events" if their units differ. */
struct text flame_unit(const struct tree *tree, const struct flame_options *options);

struct flame *flame_new(void);
/* Make an empty flame that shares the strings of `naming`. */
struct flame *flame_of_naming(const struct naming *naming);
void flame_free(struct flame *flame);
/* Link siblings by weight, heaviest first: for each node its first child and its next sibling, or 0. free() both arrays. Costs a sort. */
void flame_link_by_weight(const struct flame *flame, uint32_t **first, uint32_t **next);
/* Make the flame of a resolved and named tree. Fail on overflow, or if a pattern exceeds its match limit. */
struct flame *flame_of_tree(const struct tree *tree, const struct naming *naming,
                            const struct flame_options *options, struct error *error);
/* Find or add the child of `parent` with this label. */
uint32_t flame_child(struct flame *flame, uint32_t parent, const struct label *label);
/* Compute totals, the order of children and depth, after all nodes and self weights are in. Fail on overflow. */
bool flame_finish(struct flame *flame, struct error *error);
/* Link children in order of name. flame_finish() does this, too. */
void flame_order(struct flame *flame);
/* Make a chart: stacks in the order of their samples, one thread after another, merging only neighbours. Children are in order of time. */
struct flame *flame_chart_of_tree(const struct tree *tree, const struct naming *naming,
                                  const struct flame_options *options, struct error *error);
/* Return the callers of a function or, without `callers`, its callees, merged from its outermost frames. The function is the only child of
   the root; if it does not occur, the root has none. Set *self to the self weight of all its frames. Return NULL on overflow. Callers cost
   the depth of each outermost frame. */
struct flame *flame_around(const struct flame *flame, struct text function, bool callers,
                           uint64_t *self, struct error *error);
/* Make the flame of a call graph: its functions side by side. With `totals` a total includes callees; else it equals self. */
struct flame *flame_of_graph(const struct tree *tree, const struct naming *naming, bool totals,
                             struct error *error);
/* Do what flame_around() does, for a flame of a call graph and the naming it was made with: direct callers or callees only. */
struct flame *flame_around_graph(const struct tree *tree, const struct naming *naming,
                                 const struct flame *flame, struct text function, bool callers,
                                 uint64_t *self, struct error *error);
/* The sums over all nodes with one key. A key that occurs several times in a stack adds to `total` once. */
struct key_sum {
    uint64_t self, total;
    uint64_t self_before, total_before;
};
#define NO_KEY UINT32_MAX
/* Add up the rows of a table. keys[node] is the row of a node, less than `key_count`, or NO_KEY. The caller zeroes `sums`. */
void flame_sum(const struct flame *flame, const uint32_t *keys, size_t key_count,
               struct key_sum *sums);
/* Return the node after `at` in depth-first order, or 0 at the end. */
static inline uint32_t flame_next(const struct flame *flame, uint32_t at) {
    const struct flame_node *nodes = flame->nodes.items;
    if (nodes[at].first_child)
        return nodes[at].first_child;
    while (at && !nodes[at].next)
        at = nodes[at].parent;
    return nodes[at].next; /* 0 for the root */
}
static inline struct text flame_name(const struct flame *flame, uint32_t node) {
    return strings_get(flame->strings, flame->nodes.items[node].name);
}

/* ---- the walker ------------------------------------------------------------------------------ */

/*
 * The walker takes every stack of a tree, names its frames, applies cuts, recursion folding and depth limits, and finds the flame node
 * where the stack ends. Flames, the page's data and outlines are all made from this.
 */
struct walk_options {
    const struct flame_options *shape; /* reverse and keep_empty matter to flame_of_tree() only */
    /* For each label name: the string that recursion folding and patterns compare. NULL: names are strings themselves. */
    const uint32_t *alike;
    bool no_roots; /* make no nodes for the root labels of series */
};
struct walker {
    struct flame *flame;    /* without weights and links; the caller may add to it and take it */
    uint32_t *series_roots; /* by series: index in `roots` + 1; 0: skipped, or without cells */
    struct walker_root {
        uint32_t node;   /* the flame node below which its frames begin */
        uint32_t *nodes; /* by tree node: the flame node where the stack ends; 0: no frame */
    } * roots;
    size_t root_count;
};
/* Return NULL if a pattern exceeds its match limit. */
struct walker *walker_new(const struct tree *tree, const struct naming *naming,
                          const struct walk_options *options, struct error *error);
void walker_free(struct walker *walker);
#define STACK_DROPPED UINT32_MAX
/* Return the flame node where a stack of the series ends; 0 if it has no frame or was not counted; STACK_DROPPED if the rules drop it. */
static inline uint32_t walker_find(const struct walker *walker, uint32_t series, uint32_t node) {
    uint32_t root = walker->series_roots[series];
    return root ? walker->roots[root - 1].nodes[node] : 0;
}

/* ---- stacks by place, for other tools' formats ------------------------------------------------ */

/* How finely places are told apart. */
enum detail {
    DETAIL_FUNCTIONS, /* by function: name, object and source file */
    DETAIL_LINES,     /* by line as well */
    DETAIL_ADDRESSES, /* by address as well */
};

/* One frame of a stack, in the detail that a format needs. */
struct place {
    struct text name;
    struct text path; /* the object's path; empty: none */
    struct text file; /* source file; empty: unknown */
    uint32_t line;    /* this and the following are 0 if the detail is coarser */
    uint32_t column;
    uint32_t object; /* in the tree, for its build id */
    /* Among the frames of one address: 0 is the function itself, the others are inlined into it. */
    uint32_t level;
    uint64_t
        address; /* in the same terms as a location's; for a caller, an address within the call */
    uint32_t kinds;
    uint32_t function; /* 1 … function_count: one for each name, path and file */
};

struct placed_node {
    uint32_t parent; /* node 0 is the root; it has no place */
    uint32_t place;
    uint32_t depth;
    uint32_t end; /* the subtree is [this, end) */
};

/*
 * All stacks by place, ordered by content, so that numbers do not depend on the order of reading. Parents come before their children, and
 * each subtree is contiguous. Stacks without frames end in a place called "[no stack]".
 */
struct placed {
    VECTOR(struct place) places; /* [0] is none */
    uint32_t function_count;
    VECTOR(struct placed_node) nodes;
    struct walker *walker; /* private, for placed_find() */
};
/* Return NULL if a pattern exceeds its match limit. */
struct placed *placed_new(const struct tree *tree, const struct naming *naming,
                          const struct flame_options *shape, enum detail detail,
                          struct error *error);
void placed_free(struct placed *placed);
/* Return the node where a stack of the series ends; 0 if the series was skipped or has no cells; or STACK_DROPPED. */
static inline uint32_t placed_find(const struct placed *placed, uint32_t series, uint32_t node) {
    return walker_find(placed->walker, series, node);
}

/* ---- comparison --------------------------------------------------------------------------- */

struct diff_options {
    bool normalize; /* scale the baseline's weights so that both sides have the same sum */
    bool strip_hex; /* replace 0x45ef2173 in names by 0x... */
};
/* Make one flame of both, with `before` in self_before and total_before. It has its own strings. */
struct flame *flame_diff(const struct flame *before, const struct flame *after,
                         const struct diff_options *options, struct error *error);
/* Make a tree of bare names with both sides of a diff, for the page. The baseline has events of its own (EVENT_BEFORE). */
struct tree *tree_of_diff(const struct flame *flame);
/* Append `t` with every number like `0x45ef2173` replaced by `0x...`: addresses differ from run to run. */
void buffer_add_without_hex(struct buffer *buffer, struct text t);

#endif
