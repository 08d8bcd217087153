/*
 * view: the tree as people see it. Folded text, SVG, the HTML page, tables, script text.
 *
 * Folded text, pictures and tables walk a flame (stacks.h). The page takes tree and naming, for it makes flames of its own, by thread or
 * time. Script text does not go through a flame: it prints kept samples in order.
 *
 * Every writer is deterministic: same input, same bytes, with any number of threads, locale, time zone and clock.
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
/* `a;b;c 12`, one line a stack, sorted bytewise; of a diff `a;b;c 10 12`, before and after. */
void fold_write(struct out *out, const struct flame *flame, const struct fold_options *options);
/* How many bytes that will be, or somewhat more: of deep stacks with cost at every depth, their number times their depth. */
uint64_t fold_size(const struct flame *flame);

/* ---- two folded texts ------------------------------------------------------------------- */

/* `stack BEFORE AFTER` of two folded texts, by inferno's rules; what it would log becomes notes. */
void diff_folded_inferno(struct out *out, struct text before, struct text after,
                         const struct diff_options *options, struct notes *notes);

/* ---- colours ------------------------------------------------------------------------------ */

/*
 * The colour of a frame is a pure function of its name, its kinds and its object: the same frame looks the same in every
 * graph. PALETTE_WICK says by hue where code lives (program, library by object, kernel, JIT, unknown) and by tint
 * that it was inlined; PALETTE_WAITS is the same in blues; black text on any of their colours has a contrast of 7:1 at least. The others are those of
 * flamegraph.pl and inferno, to the digit; where black text would be hard to read on one, labels are white.
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
        by_hash; /* weigh the name's first letters most, so that alike names look alike; not for PALETTE_WICK and PALETTE_WAITS */
};
struct colour colour_of_frame(const struct colouring *colouring, struct text name,
                              struct text object, uint32_t kinds);
/* The same palette, but frame `number` of a picture gets what has nothing to do with its name; by a fixed sequence, so that the picture
   is the same again. */
struct colour colour_at_random(const struct colouring *colouring, struct text name, uint32_t kinds,
                               uint64_t number);
/* White to red (or blue) as `part` of `whole` grows. */
struct colour colour_of_change(uint64_t part, uint64_t whole, bool is_growth);
/* Whether black text on it is easier to read than white. */
bool colour_takes_black(struct colour colour);
bool colour_parse(const char *text, struct colour *colour); /* "#rrggbb" */

/* What `--cp` keeps between graphs: `name->rgb(r,g,b)` lines. Frames found in it take its colour, others are added. */
struct palette_map;
struct palette_map *palette_map_new(void);
void palette_map_free(struct palette_map *map);
/* Bad lines are noted, not fatal. */
void palette_map_read(struct palette_map *map, struct text text, struct notes *notes);
void palette_map_write(const struct palette_map *map, struct out *out); /* sorted by name */

/* ---- SVG ---------------------------------------------------------------------------------- */

/*
 * One well-formed XML document: a still picture where scripts are off; with them it zooms, searches, is moved through
 * by keyboard and fits its window (web/svg/). Frames stand in the file parents first and from left to right; each is a group of
 * <title> "name (1,234 samples, 12.34%)", <rect> with its place in the file's units in fg:x and fg:w, and a label if one fits.
 */

/* The standard error of a sum of so many samples, in per cent of it: at most, since it is less where blocks are large. */
double estimate_error(uint64_t samples);

/* What to do to particular frames: lines of `name TAB attribute=value TAB …`. */
struct name_attributes;
struct name_attributes *name_attributes_new(struct text text, struct notes *notes);
void name_attributes_free(struct name_attributes *attributes);

/* Of a diff, what a frame's width stands for. */
enum diff_shape {
    SHAPE_BOTH,   /* the larger of both sides: everything that is in either can be seen */
    SHAPE_AFTER,  /* what vanished has no width */
    SHAPE_BEFORE, /* what is new has no width */
};

/* Zero-initialised is a good picture of everything; commands set min_width to SVG_MIN_WIDTH unless told. */
#define SVG_MIN_WIDTH 0.01
struct svg_options {
    const struct context *context; /* or NULL */
    const char *title;             /* NULL: "Flame Graph", or what the fields below make of it */
    const char *subtitle;          /* NULL: none */
    const char *notes;             /* the provenance comment after wick's own line; NULL: none */
    const char *count_name;        /* NULL: the flame's unit */
    const char
        *name_type; /* before the name in the line that tells of a frame; NULL: "Function:" */
    const char *root_name; /* NULL: "all" */
    uint32_t width;        /* pixels; 0: 1,200, and as wide as the window where scripts run */
    uint32_t frame_height; /* pixels; 0: 16 */
    double min_width;      /* per cent of the total; frames narrower are left out */
    bool
        unbounded; /* however large that is; else only so many frames as can be seen: the widest 20,000, and less than 4 MB of them; of those as wide as the narrowest, the ones nearest to the root */
    const char *font;   /* CSS families; NULL: "monospace" */
    uint32_t font_size; /* pixels; 0: 12 */
    double font_width;  /* of a letter, in font sizes, to see which labels fit; 0: 0.59 */
    struct colouring colouring;
    bool
        random; /* frames of one name need not look alike; not for PALETTE_WICK and PALETTE_WAITS */
    bool diffusion;        /* the wider the redder, whatever the name */
    bool negate;           /* swap what red and blue mean in a diff */
    enum diff_shape shape; /* of a diff */
    const char *
        background; /* yellow, blue, green, grey or #rrggbb; NULL: plain, dark where the reader likes it dark */
    const char *search_colour; /* #rrggbb; NULL: #e600e6 */
    const char *ui_colour; /* #rrggbb, titles and buttons; NULL: black, or near-white in the dark */
    const char *stroke_colour; /* #rrggbb, an outline for every frame; NULL: none */
    double factor;             /* counts are shown times this; 0: 1 */
    uint64_t total;            /* what 100 % is, when more than was counted; 0: what was counted */
    bool inverted;             /* root at the top */
    bool is_chart;             /* the flame's order is time's: changes the title */
    bool
        is_reversed; /* the flame was merged from the leaf: said in the file, for who reads it back */
    bool truncate_left; /* labels that don't fit lose their beginning */
    bool plain_labels;  /* labels that don't fit lose their end, whatever they are */
    bool no_script;
    struct palette_map *map;                  /* NULL: none. Extended by what is drawn */
    const struct name_attributes *attributes; /* NULL: none */
};
/* Colours, font and numbers: false with a usage error if one makes no sense. svg_write() takes only what passed. */
bool svg_options_check(const struct svg_options *options, struct error *error);
/* Return how many frames were left out because there are too many. */
size_t svg_write(struct out *out, const struct flame *flame, const struct svg_options *options);

/* ---- tables ------------------------------------------------------------------------------- */

/*
 * Categories: an ordered list of rules, the first that fits decides, so that categories are exclusive and add up. A rule
 * looks at a frame's function, its object or its source file; its pattern must stand there as whole words ("free" is not in
 * "freeze"), and `*` stands for any bytes. What no rule takes is sorted by what kind of code it is.
 */
struct categories;
/* The built-in rules, after those of the file `path` if it is not NULL. NULL: *error names the line. */
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
    uint64_t total;       /* weight of stacks it occurs in, once each however often */
    uint64_t self_before; /* of a diff, else 0 */
    uint64_t total_before;
    uint64_t self_samples; /* after report_add_samples(), else 0 */
    uint64_t total_samples;
    uint64_t recent, earlier; /* weights, if the report has growth, else 0 */
};

struct report {
    /* Largest first: by self for categories, else by total; of a diff by how much self changed. */
    VECTOR(struct report_row) rows;
    uint64_t total;
    uint64_t total_before;
    bool is_diff;     /* percentages of what was before are of `total_before` */
    bool has_samples; /* rows have numbers of samples beside their weights */
    bool
        is_estimated; /* weights are estimates from these samples: text shows how far off each may be */
    struct text
        growth; /* the two times that rows' `recent` and `earlier` are of, as a sentence; empty: there are none */
    struct text unit;
    struct text title; /* what the first column is called */
    enum report_by by;
    struct strings *strings;
};

/* Functions, objects or categories. Root frames are no rows. */
struct report *report_of_flame(const struct flame *flame, const struct categories *categories,
                               enum report_by by);
/* Whatever the flame's frames are, which is `title` (BY_NAME). */
struct report *report_of_names(const struct flame *flame, const char *title);
/* Any of these, but a row's name begins with the root frames above it, each followed by ';'. `title` is what rows are called. */
struct report *report_of_roots(const struct flame *flame, const struct categories *categories,
                               enum report_by by, const char *title);
/* A row for each combination of what series say of these dimensions (dimension_add), divided by ';'. */
struct report *report_of_dimensions(const struct tree *tree, const char *const *dimensions,
                                    size_t count, bool by_samples);
/* What spent most itself first, or what most was spent in. By itself a report is by total, of categories by self, of a diff by change. */
void report_sort_by(struct report *report, bool self);
/* Put the numbers of samples of another report of the same rows, made by samples, beside the weights: CSV and JSON show both. */
void report_add_samples(struct report *report, const struct report *samples);
/* The rows have what they came to in a recent time and in an earlier one; `growth` says which times, and is copied. */
void report_add_growth(struct report *report, struct text growth);
void report_free(struct report *report);

struct report_options {
    const char *counted; /* what the weights are, for the header of CSV; NULL: the report's unit */
    enum report_format format;
    size_t limit;   /* rows of text; 0: all */
    unsigned width; /* columns of the terminal; 0: no limit */
    bool colours;
    bool no_hint; /* what --limit leaves out is counted, without the advice */
};
void report_write(struct out *out, const struct report *report,
                  const struct report_options *options);
/* A name for Markdown, as code; cut if it is long. */
void buffer_add_markdown(struct buffer *buffer, struct text name);

/*
 * The answer in a few lines: the functions that most was spent in themselves, and with all that they call, side by side. A wait belongs to
 * the function that blocked, the last one outside the kernel, with what it asked the kernel for beside it: `read [read]`.
 */
struct answer_options {
    unsigned width; /* columns */
    unsigned rows;
    bool waits;
};
void answer_add(struct buffer *text, const struct flame *flame,
                const struct answer_options *options);

/* The same of whole stacks, for tables: what the kernel did for a function is left out, and the function that blocked is called `read [read]`.
   If the flame has its waits apart, what ran stays as it is. NULL: on overflow. */
struct flame *flame_of_blocked(const struct flame *flame, struct error *error);

/* What is in a recording: `limit` threads, innermost addresses and edges; 0: all. */
void summary_write(struct out *out, const struct summary *summary, bool json, size_t limit);

/* ---- one function, line by line -------------------------------------------------------------- */

struct annotate_options {
    struct text function;              /* as views call it */
    const struct flame_options *shape; /* which stacks, and what they weigh */
    bool no_code;                      /* source lines alone */
    bool no_source;                    /* instructions alone */
    bool colours;
};
/* Write the function's source lines and machine code with their shares: what was spent on a line itself, and what was spent in what it calls. Text and
   code are those that are attached to the tree; lines without any are shown by number. False: the function is not in the profile, and *error
   names those that are called nearly so. */
bool annotate_write(struct out *out, const struct tree *tree, const struct naming *naming,
                    const struct annotate_options *options, struct error *error);

/* ---- call trees as tables ------------------------------------------------------------------ */

struct tree_table_options {
    enum report_format format;
    double threshold; /* per cent of the whole: lighter frames are left out, with all below them */
    uint32_t max_depth; /* 0: all */
    uint64_t whole;     /* what shares are of */
    bool
        is_around; /* it is about the function at the root (flame_around()), which spends `self` itself */
    uint64_t self;
    bool is_callers; /* other frames have no self */
    unsigned width;  /* columns of the terminal; 0: no limit */
};
/* Write a row a frame, indented by depth (CSV and JSON have it in a column), siblings by weight. Return how many frames were left out. */
size_t tree_table_write(struct out *out, const struct flame *flame,
                        const struct tree_table_options *options);

/* ---- the page ----------------------------------------------------------------------------- */

/* One HTML file with the whole tree in it, by series, and the kept samples if there are any (for the timeline). See web/page/. */
/* What a picture of some kind of time is called and coloured like. */
struct looks {
    const char *title;
    enum palette palette;
};
extern const struct looks times_looks[]; /* by enum times: where nothing else is asked for */

struct html_options {
    const char *title;    /* NULL: "Flame Graph" */
    const char *subtitle; /* NULL: none */
    struct colouring colouring;
    bool each_thread;   /* numbered threads are not grouped */
    bool together;      /* the page opens with all events added up, not with the first */
    const char *first;  /* the event that the page opens with; NULL: the first by name */
    bool estimated;     /* weights are estimates, made of samples */
    uint32_t max_depth; /* 0: all */
    const struct stack_rules *rules;     /* NULL: none */
    const struct categories *categories; /* must be given */
    const struct notes *notes;           /* shown in the page; NULL: none */
    /* Of a tree that tells of several times: how each looks, by enum times, and which the page opens with; it switches between them. A title that is given
       stands for all. NULL: all that the tree has is shown at once. */
    const struct looks *times;
    enum times shown;
};
/* False if there is nothing to draw, or more than a page can count. */
bool html_write(struct out *out, const struct tree *tree, const struct naming *naming,
                const struct html_options *options, struct error *error);

/* ---- script text -------------------------------------------------------------------------- */

struct script_options {
    const struct context *context; /* or NULL */
    bool source_lines;             /* file:line below each frame that has one */
    bool mark_incomplete; /* stacks without their root end in a frame [truncated] or [broken] */
    struct quirks quirks;
};
/* What perf 6.1's `perf script` prints. The profile must have been read with keep_samples; the addresses that perf prints are the
   locations' own, so raw_addresses would only make more of them. */
bool script_write(struct out *out, const struct profile *profile,
                  const struct script_options *options, struct error *error);

#endif
