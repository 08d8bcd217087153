#include "store/internal.h"

struct store *clickhouse_open(const char *url, const struct store_options *options,
                              struct error *error) {
    error_set(error, ERROR_DENIED, "%s: this wick has no ClickHouse", url);
    return NULL;
}
