/* Private to the room: the options of an SVG, for every command that draws one. */
#ifndef WICK_CMD_PICTURE_H
#define WICK_CMD_PICTURE_H

#include "cmd/cmd.h"

/* What a picture of some kind of time is called and coloured like where nothing else is asked for. */
struct looks {
    const char *title;
    enum palette palette;
};
extern const struct looks times_looks[]; /* by enum profile_times */

extern struct svg_options picture;
extern const struct option options_picture[]; /* --title --inverted --minwidth … */
extern const struct option options_looks[];   /* --colors --width --fonttype … */
extern const struct option options_difference[]; /* --shape --negate */
#define OPTION_GROUPS_OF_PICTURES                                                                  \
    {"Picture", options_picture}, {"Differences", options_difference}, {"Looks", options_looks}

/* Title and colours by what kind of time is drawn, unless they were chosen. After request_settle(). */
void picture_settle(void);
/* Reads what the options name, and fails where one makes no sense: before anything else is read, which may take long. */
bool picture_prepare(struct error *error);
/* Draws to -o, or else to flamegraph.svg, whose name it prints. Fails where there is nothing to draw. After picture_prepare(). */
bool picture_write(struct flame *flame, struct notes *notes, struct error *error);
void picture_release(void);
/* An option that was given and that only pictures have, or NULL. Pages of one profile have both weights, and a switch. */
const char *picture_only(bool has_weights);
/* The same for what is neither: --title and --colors too. `--reverse` is none of them: it is another way to merge stacks. */
const char *picture_any(void);
/* The page to -o, or else to flamegraph.html, whose name it prints. `categories_file` may be NULL. */
bool page_write(const struct tree *tree, const struct naming *naming, const char *categories_file,
                const struct notes *notes, struct error *error);

#endif
