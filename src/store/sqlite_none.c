/* The SQLite engine in a build without SQLite. */
#include "store/internal.h"

struct store *sqlite_open(const char *path, const struct store_options *options,
                          struct error *error) {
    error_set(error, ERROR_DENIED,
              "%s: this wick was built without SQLite; install libsqlite3-dev and build again",
              path);
    return NULL;
}

bool store_needs_recovery(const char *path) {
    return false;
}
