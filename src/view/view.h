/*
 * view: write a profile for people to read: folded text, SVG, the HTML page, tables, script text.
 *
 * Folded text, pictures and tables walk a flame (stacks.h). The page takes the tree and its naming, because it makes its own flames by
 * thread or time. Script text needs no flame: it prints the kept samples in order.
 *
 * Every writer is deterministic: the same input gives the same bytes with any number of threads and any locale, time zone and clock.
 */
#ifndef WICK_VIEW_H
#define WICK_VIEW_H

#include "base/base.h"
#include "profile/profile.h"
#include "stacks/stacks.h"
#include "tree/tree.h"

/* ---- folded text -------------------------------------------------------------------------- */

struct fold_options {
    const struct context *context; /* or NULL */
    struct quirks quirks;
};
/* Write one line for each stack, `a;b;c 12`, sorted bytewise; for a diff `a;b;c 10 12`, before and after. */
void fold_write(struct out *out, const struct flame *flame, const struct fold_options *options);
/* Return an upper bound of the bytes written. It can be as large as the number of stacks times their depth. */
uint64_t fold_size(const struct flame *flame);

/* ---- two folded texts ------------------------------------------------------------------- */

/* Write `stack BEFORE AFTER` for two folded texts, by inferno's rules. What inferno would log becomes notes. */
void diff_folded_inferno(struct out *out, struct text before, struct text after,
                         const struct diff_options *options, struct notes *notes);

/* ---- colours ------------------------------------------------------------------------------ */

/*
 * The colour of a frame depends only on its name, its kinds and its object, so a frame looks the same in every graph. The hue of
 * PALETTE_WICK shows where code lives (program, library by object, kernel, JIT, unknown), and a tint marks inlined frames. PALETTE_WAITS
 * does the same in blues. Black text has a contrast of at least 7:1 on all colours of both. The other palettes are exactly those of
 * flamegraph.pl and inferno; labels are white where black text would be hard to read.
 */
enum palette {
    PALETTE_WICK,
    PALETTE_WAITS,
    PALETTE_HOT,
    PALETTE_MEM,
    PALETTE_IO,
    PALETTE_WAKEUP,
    PALETTE_CHAIN,
    PALETTE_JAVA,
    PALETTE_JS,
    PALETTE_PERL,
    PALETTE_PYTHON,
    PALETTE_RUST,
    PALETTE_RED,
    PALETTE_GREEN,
    PALETTE_BLUE,
    PALETTE_AQUA,
    PALETTE_YELLOW,
    PALETTE_PURPLE,
    PALETTE_ORANGE,
    PALETTE_COUNT,
};
extern const char *const palette_names[PALETTE_COUNT];

struct colour {
    uint8_t red, green, blue;
};
struct colouring {
    enum palette palette;
    bool
        by_hash; /* give names with the same beginning similar colours; not for PALETTE_WICK and PALETTE_WAITS */
};
struct colour colour_of_frame(const struct colouring *colouring, struct text name,
                              struct text object, uint32_t kinds);
/* Return a colour of the palette that depends on the frame's number in the picture and not on its name. The sequence is fixed, so a picture
   is reproducible. */
struct colour colour_at_random(const struct colouring *colouring, struct text name, uint32_t kinds,
                               uint64_t number);
/* White to red (or blue) as `part` of `whole` grows. */
struct colour colour_of_change(uint64_t part, uint64_t whole, bool is_growth);
/* Whether black text on this colour is easier to read than white text. */
bool colour_takes_black(struct colour colour);
bool colour_parse(const char *text, struct colour *colour); /* "#rrggbb" */

/* The colours that `--cp` keeps from graph to graph, as `name->rgb(r,g,b)` lines. Listed frames take their colour from it; others are
   added. */
struct palette_map;
struct palette_map *palette_map_new(void);
void palette_map_free(struct palette_map *map);
/* Bad lines are noted, not fatal. */
void palette_map_read(struct palette_map *map, struct text text, struct notes *notes);
void palette_map_write(const struct palette_map *map, struct out *out); /* sorted by name */

/* ---- SVG ---------------------------------------------------------------------------------- */

/*
 * An SVG is one well-formed XML document: a static picture without scripts; with them it zooms, searches, takes keys and fits its window
 * (web/svg/). Frames are in the file parents first, left to right. Each is a group of <title> "name (1,234 samples, 12.34%)", <rect> with
 * its position and width in the profile's unit in fg:x and fg:w, and a label if it fits.
 */

/* Return the standard error of a sum of bytes from this many samples, as a percentage of the sum. `deviation` is the standard deviation of one
   sample, at most, so the result is an upper bound. A saved profile may have any deviation: an absurd result is ERROR_MOST. */
#define ERROR_MOST 1e9
double estimate_error(uint64_t samples, uint64_t sum, uint64_t deviation);
/* Whether that holds for sums in this unit. It does not for a count of blocks: one sample stands for as many as fit into the mean. */
bool estimate_has_error(struct text unit);

/* Attributes for particular frames: lines of `name TAB attribute=value TAB …`. */
struct name_attributes;
struct name_attributes *name_attributes_new(struct text text, struct notes *notes);
void name_attributes_free(struct name_attributes *attributes);

/* The meaning of a frame's width in a diff. */
enum diff_shape {
    SHAPE_BOTH,   /* the larger of both sides, so that frames of either side are visible */
    SHAPE_AFTER,  /* frames that vanished have no width */
    SHAPE_BEFORE, /* new frames have no width */
};

/* All zero draws everything with good defaults. Commands set min_width to SVG_MIN_WIDTH by default. */
#define SVG_MIN_WIDTH 0.01
struct svg_options {
    const struct context *context; /* or NULL */
    const char *title;             /* NULL: "Flame Graph", or a title that fits the fields below */
    const char *subtitle;          /* NULL: none */
    const char *notes;             /* the provenance comment after wick's own line; NULL: none */
    const char *count_name;        /* NULL: the flame's unit */
    uint64_t deviation; /* of one sample, if the flame has_samples: for estimate_error() */
    const char
        *name_type; /* printed before a frame's name in the details line; NULL: "Function:" */
    const char *root_name; /* NULL: "all" */
    uint32_t width;        /* pixels; 0: 1,200, or the width of the window if scripts run */
    uint32_t frame_height; /* pixels; 0: 16 */
    double min_width;      /* per cent of the total; narrower frames are left out */
    /* Draw any number of frames. Otherwise only the widest 20,000 and less than 4 MB are drawn; of equally wide ones, those nearest to the
       root. */
    bool unbounded;
    const char *font;   /* CSS families; NULL: "monospace" */
    uint32_t font_size; /* pixels; 0: 12 */
    double font_width;  /* width of a letter in font sizes, to decide which labels fit; 0: 0.59 */
    struct colouring colouring;
    bool random;    /* colours do not depend on names; not for PALETTE_WICK and PALETTE_WAITS */
    bool diffusion; /* wider frames are redder; names do not matter */
    bool negate;    /* swap red and blue in a diff */
    enum diff_shape shape; /* of a diff */
    const char
        *background; /* yellow, blue, green, grey or #rrggbb; NULL: plain, following dark mode */
    const char *search_colour; /* #rrggbb; NULL: #e600e6 */
    const char
        *ui_colour; /* #rrggbb of titles and buttons; NULL: black, or near-white in dark mode */
    const char *stroke_colour; /* #rrggbb of an outline for every frame; NULL: none */
    double factor;             /* multiply displayed counts by this; 0: 1 */
    uint64_t total; /* the value of 100 %, if larger than the flame's total; 0: the flame's total */
    bool inverted;  /* root at the top */
    bool is_chart;  /* the flame is ordered by time: changes the title */
    bool is_reversed;   /* the flame was merged from the leaf: noted in the file, for readers */
    bool truncate_left; /* cut the beginning of labels that don't fit */
    bool plain_labels;  /* cut the end of every label that doesn't fit */
    bool no_script;
    struct palette_map *map;                  /* NULL: none. Drawn frames are added */
    const struct name_attributes *attributes; /* NULL: none */
};
/* Check colours, font and numbers; fail with a usage error. svg_write() requires options that passed. */
bool svg_options_check(const struct svg_options *options, struct error *error);
/* Write the picture. Return the number of frames left out because there are too many. */
size_t svg_write(struct out *out, const struct flame *flame, const struct svg_options *options);

/* ---- tables ------------------------------------------------------------------------------- */

/*
 * Categories are an ordered list of rules. The first match decides, so categories are exclusive and add up. A rule looks at a frame's
 * function, object or source file. Its pattern must match whole words ("free" does not match "freeze"); `*` matches any bytes. A frame that
 * no rule matches gets a category by its kind of code.
 */
struct categories;
/* Read the rules of the file `path`, unless it is NULL, and then the built-in ones. On failure return NULL; *error names the line. */
struct categories *categories_new(const char *path, const struct context *context,
                                  struct error *error);
void categories_free(struct categories *categories);
/* The category of a frame; the text lives as long as the categories. */
struct text categories_of(const struct categories *categories, struct text function,
                          struct text object, uint32_t kinds);

enum report_by { BY_FUNCTION, BY_OBJECT, BY_CATEGORY, BY_NAME };
enum report_format { REPORT_TEXT, REPORT_CSV, REPORT_JSON, REPORT_MARKDOWN };

struct report_row {
    struct text name;
    struct text category; /* BY_FUNCTION only */
    uint64_t self;        /* weight of stacks that end there */
    uint64_t total;       /* weight of stacks that contain it, each counted once */
    uint64_t self_before; /* for a diff, else 0 */
    uint64_t total_before;
    uint64_t self_samples; /* after report_add_samples(), else 0 */
    uint64_t total_samples;
    uint64_t recent, earlier; /* weights, if the report has growth, else 0 */
};

struct report {
    /* Largest first: by self for categories, by change of self for a diff, else by total. */
    VECTOR(struct report_row) rows;
    uint64_t total;
    uint64_t total_before;
    bool is_diff;       /* percentages of the baseline are of `total_before` */
    bool has_samples;   /* rows have numbers of samples beside their weights */
    bool is_estimated;  /* weights are estimates: text shows the error of each … */
    uint64_t deviation; /* … for estimate_error() */
    struct text
        growth; /* a sentence about the times of `recent` and `earlier`; empty: rows have neither */
    struct text unit;
    struct text title; /* heading of the first column */
    enum report_by by;
    struct strings *strings;
};

/* Make rows of functions, objects or categories. Root frames are not rows. */
struct report *report_of_flame(const struct flame *flame, const struct categories *categories,
                               enum report_by by);
/* Make a row for each frame name of the flame (BY_NAME); `title` says what frames are. */
struct report *report_of_names(const struct flame *flame, const char *title);
/* The same as these, but a row's name begins with the root frames above it, each followed by ';'. `title` says what rows are. */
struct report *report_of_roots(const struct flame *flame, const struct categories *categories,
                               enum report_by by, const char *title);
/* Make a row for each combination of values of these dimensions (dimension_add), separated by ';'. */
struct report *report_of_dimensions(const struct tree *tree, const char *const *dimensions,
                                    size_t count, bool by_samples);
/* Sort by self or by total instead of the default order (see report.rows). */
void report_sort_by(struct report *report, bool self);
/* Take numbers of samples from another report of the same rows that counts samples. CSV and JSON show both. */
void report_add_samples(struct report *report, const struct report *samples);
/* Declare that rows have `recent` and `earlier`; `growth` says which times these are, and is copied. */
void report_add_growth(struct report *report, struct text growth);
void report_free(struct report *report);

struct report_options {
    const char *counted; /* what the weights count, for the CSV header; NULL: the report's unit */
    enum report_format format;
    size_t limit;   /* rows of text; 0: all */
    unsigned width; /* columns of the terminal; 0: no limit */
    bool colours;
    bool no_hint; /* count the rows that `limit` left out, without advice about --limit */
};
void report_write(struct out *out, const struct report *report,
                  const struct report_options *options);
/* A name for Markdown, as code; cut if it is long. */
void buffer_add_markdown(struct buffer *buffer, struct text name);

/*
 * The answer in a few lines: the top functions by self and by total, side by side. A wait belongs to the function that blocked: the last one
 * outside the kernel, followed by the system call: `read [read]`.
 */
struct answer_options {
    unsigned width; /* columns */
    unsigned rows;
    bool waits;
};
void answer_add(struct buffer *text, const struct flame *flame,
                const struct answer_options *options);

/* Do the same to whole stacks, for tables: drop the kernel's frames of a wait and name the function that blocked `read [read]`. If the flame
   counts waits separately, stacks on the CPU stay as they are. Return NULL on overflow. */
struct flame *flame_of_blocked(const struct flame *flame, struct error *error);
/* sites.c. Whether a function allocates, by its name: malloc and common wrappers (xmalloc, g_realloc, std::allocator). */
bool name_is_allocating(struct text name);
/* Whether the tree is a recording of allocations, or was saved from one. */
bool tree_is_of_memory(const struct tree *tree);
/* Move the self weight of such functions to their nearest caller that is not one, for tables. Totals stay. */
void flame_credit_sites(struct flame *flame);

/* Write what a recording contains, with at most `limit` threads, innermost addresses and edges; 0: all. */
void summary_write(struct out *out, const struct summary *summary, bool json, size_t limit);

/* ---- one function, line by line -------------------------------------------------------------- */

struct annotate_options {
    struct text function;              /* its name as shown in views */
    const struct flame_options *shape; /* which stacks to count, and how */
    bool no_code;                      /* source lines only */
    bool no_source;                    /* instructions only */
    bool colours;
};
/* Write the function's source lines and machine code with their shares: what was spent on a line itself, and what was spent in its callees. Text
   and code are those attached to the tree; lines without text are shown by number. Fail if the function is not in the profile; *error then names
   functions with similar names. */
bool annotate_write(struct out *out, const struct tree *tree, const struct naming *naming,
                    const struct annotate_options *options, struct error *error);

/* ---- call trees as tables ------------------------------------------------------------------ */

struct tree_table_options {
    enum report_format format;
    double threshold; /* per cent of the whole: lighter frames are left out, with their subtrees */
    uint32_t max_depth; /* 0: no limit */
    uint64_t whole;     /* the value of 100 % */
    bool is_around;     /* the table is about the function at the root (flame_around()) */
    uint64_t self;      /* with is_around: its self weight */
    bool is_callers;    /* other frames have no self */
    unsigned width;     /* columns of the terminal; 0: no limit */
};
/* Write a row for each frame, indented by depth (in CSV and JSON depth is a column), siblings by weight. Return the number of frames left
   out. */
size_t tree_table_write(struct out *out, const struct flame *flame,
                        const struct tree_table_options *options);

/* ---- the page ----------------------------------------------------------------------------- */

/* The page is one HTML file with the whole tree, by series, and the kept samples, if any, for the timeline. See web/page/. */

/* The title and colours of a picture of one kind of time. */
struct looks {
    const char *title;
    enum palette palette;
};
extern const struct looks times_looks[]; /* the defaults, by enum times */

struct html_options {
    const char *title;    /* NULL: "Flame Graph" */
    const char *subtitle; /* NULL: none */
    struct colouring colouring;
    bool each_thread;                    /* do not group numbered threads */
    bool together;                       /* open with the sum of all events, not with one event */
    const char *first;                   /* the event to open with; NULL: the first by name */
    bool estimated;                      /* weights are estimates from samples … */
    uint64_t deviation;                  /* … for estimate_error() */
    uint32_t max_depth;                  /* 0: no limit */
    const struct stack_rules *rules;     /* NULL: none */
    const struct categories *categories; /* must be given */
    const struct notes *notes;           /* shown in the page; NULL: none */
    /* For a tree with several times: the looks of each, by enum times. The page switches between them and opens with `shown`. A given
       `title` is used for all. NULL: show everything in the tree at once. */
    const struct looks *times;
    enum times shown;
};
/* Fail if there is nothing to draw, or more than a page can count. */
bool html_write(struct out *out, const struct tree *tree, const struct naming *naming,
                const struct html_options *options, struct error *error);

/* ---- script text -------------------------------------------------------------------------- */

struct script_options {
    const struct context *context; /* or NULL */
    bool source_lines;             /* file:line below each frame that has one */
    bool mark_incomplete;          /* end incomplete stacks in a frame [truncated] or [broken] */
    struct quirks quirks;
};
/* Print what perf 6.1's `perf script` prints. The profile must have been read with keep_samples. raw_addresses is not needed: perf prints
   the locations' own addresses. */
bool script_write(struct out *out, const struct profile *profile,
                  const struct script_options *options, struct error *error);

#endif
