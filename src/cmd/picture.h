/* Private to the room: the options of an SVG, for every command that draws one. */
#ifndef WICK_CMD_PICTURE_H
#define WICK_CMD_PICTURE_H

#include "cmd/cmd.h"

/* The first member of every command that draws. */
struct picture_request {
    struct request request;
    bool is_memory;    /* shows values of allocations, which do not add up */
    bool is_estimated; /* estimated for all allocations from a sample of them */
    struct svg_options svg;
    const char *attributes_file;
    const char *palette_file;
    const char *encoding;
    double min_pixels; /* --minwidth in pixels, or -1 */
    bool colours_chosen;
    struct notes looks_notes; /* notes about the files that options name */
};
/* Before parsing: defaults that are not 0. */
void picture_begin(struct picture_request *p);
extern const struct option options_picture[];    /* --title --inverted --minwidth … */
extern const struct option options_looks[];      /* --colors --width --fonttype … */
extern const struct option options_difference[]; /* --shape --negate */
#define OPTION_GROUPS_OF_PICTURES                                                                  \
    {"Picture", options_picture}, {"Differences", options_difference}, {                           \
        "Looks", options_looks                                                                     \
    }

/* Choose title and colours by the kind of time, unless they were given. Call it after request_settle(). */
void picture_settle(struct picture_request *p);
/* Read the files that options name, and fail if an option is invalid. Call it before reading the profile, which may
   take long. */
bool picture_prepare(struct picture_request *p, struct error *error);
/* Draw to -o, or to flamegraph.svg, whose name is printed. Fails if there is nothing to draw. Call it after
   picture_prepare(). */
bool picture_write(struct picture_request *p, struct flame *flame, struct notes *notes,
                   struct error *error);
void picture_release(void *command); /* releases every command that draws */
/* Return an option that was given and is only for pictures, or NULL. Pages of one profile have both weights, and a
   switch. */
const char *picture_only(const struct picture_request *p, bool has_weights);
/* The same for outputs that are neither: --title and --colors count, too. `--reverse` does not, because it changes
   how stacks are merged. */
const char *picture_any(const struct picture_request *p);
/* Write the page to -o, or else to flamegraph.html, and print that name. `categories_file` may be NULL. */
bool page_write(struct picture_request *p, const struct tree *tree, const struct naming *naming,
                const char *categories_file, const struct notes *notes, struct error *error);

#endif
