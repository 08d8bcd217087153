/* Private to the room: the options of an SVG, for every command that draws one. */
#ifndef WICK_CMD_PICTURE_H
#define WICK_CMD_PICTURE_H

#include "cmd/cmd.h"

/* The first member of every command that draws. */
struct picture_request {
    struct request request;
    bool is_memory;    /* values of allocations: they do not add up */
    bool is_estimated; /* of some allocations, for all */
    struct svg_options svg;
    const char *attributes_file;
    const char *palette_file;
    const char *encoding;
    double min_pixels; /* --minwidth in pixels, or -1 */
    bool colours_chosen;
    struct notes looks_notes; /* of what the options name */
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

/* Title and colours by what kind of time is drawn, unless they were chosen. After request_settle(). */
void picture_settle(struct picture_request *p);
/* Reads what the options name, and fails where one makes no sense: before anything else is read, which may take long. */
bool picture_prepare(struct picture_request *p, struct error *error);
/* Draws to -o, or else to flamegraph.svg, whose name it prints. Fails where there is nothing to draw. After picture_prepare(). */
bool picture_write(struct picture_request *p, struct flame *flame, struct notes *notes,
                   struct error *error);
void picture_release(void *command); /* the release of every command that draws */
/* An option that was given and that only pictures have, or NULL. Pages of one profile have both weights, and a switch. */
const char *picture_only(const struct picture_request *p, bool has_weights);
/* The same for what is neither: --title and --colors too. `--reverse` is none of them: it is another way to merge stacks. */
const char *picture_any(const struct picture_request *p);
/* The page to -o, or else to flamegraph.html, whose name it prints. `categories_file` may be NULL. */
bool page_write(struct picture_request *p, const struct tree *tree, const struct naming *naming,
                const char *categories_file, const struct notes *notes, struct error *error);

#endif
