/* The viewer in a build without ncurses. */
#include "terminal/terminal.h"

bool viewer_possible(struct error *error) {
    return error_set(error, ERROR_DENIED,
                     "this wick was built without ncurses, and can't show a profile in the "
                     "terminal; wick report prints tables, wick flame --html writes a page");
}

bool viewer_run(const struct viewer_options *options, struct error *error) {
    return viewer_possible(error);
}
