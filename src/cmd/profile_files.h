/*
 * Private to wick profile: the files of a run, made of its recording.
 */
#ifndef WICK_CMD_PROFILE_FILES_H
#define WICK_CMD_PROFILE_FILES_H

#include "cmd/cmd.h"
#include "run/run.h"

/* What the kind of a run is drawn as: its views, of which the last is what the run is about. */
struct view_names {
    enum times times;
    const char *folded, *svg, *reverse, *functions, *categories;
    const char *value;   /* of a recording that has several; NULL: the first */
    const char *title;   /* of its pictures; NULL: that of its times */
    const char *heading; /* of its table of sites */
    const char *html;    /* a page of its own; NULL: all views share one */
};
extern const struct view_names view_running, view_waiting, view_wall;
extern const struct view_names view_live, view_peak, view_allocated;

/* Everything that is drawn or counted from the recording at `data`, then run.json and report.txt. */
bool profile_write_files(struct request *request, struct run *run, const char *data,
                         const struct view_names *const *views, size_t view_count,
                         struct error *error);

#endif
