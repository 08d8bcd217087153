/*
 * Network access of commands that read profiles: debuginfod.
 */
#include "cmd/cmd.h"

#include <stdlib.h>

enum { EACH_MS = 30000, ALL_MS = 120000 };
static const uint64_t size_most = 512 << 20;

bool parse_bytes(const char *value, uint64_t *bytes, struct error *error) {
    static const char units[] = "KMGT";
    struct text t = text_of(value);
    const char *unit = t.length ? strchr(units, t.data[t.length - 1]) : NULL;
    uint64_t each = unit && *unit ? 1ull << (10 * (unit - units + 1)) : 1;
    if (text_to_u64(unit && *unit ? text_upto(t, t.length - 1) : t, bytes) && *bytes &&
        checked_multiply(*bytes, each, bytes))
        return true;
    return error_set(error, ERROR_USAGE, "'%s' is not a size such as 500K, 64M or 2G", value);
}

bool set_debuginfod_limit(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return parse_bytes(value, &request->import.profile.objects.debuginfod.size_most, error);
}

static bool set_milliseconds(const char *value, unsigned *milliseconds, struct error *error) {
    uint64_t nanoseconds;
    if (!parse_length(value, &nanoseconds, error))
        return false;
    if (nanoseconds < 1000000 || nanoseconds / 1000000 > INT32_MAX)
        return error_set(error, ERROR_USAGE, "'%s' is less than a millisecond, or weeks", value);
    *milliseconds = (unsigned)(nanoseconds / 1000000);
    return true;
}

bool set_debuginfod_time(void *command, const char *value, struct error *error) {
    struct request *request = command;
    struct debuginfod_options *options = &request->import.profile.objects.debuginfod;
    const char *comma = strchr(value, ',');
    char *each = memory_copy(value, comma ? (size_t)(comma - value) : strlen(value));
    bool fine = set_milliseconds(each, &options->milliseconds_each, error) &&
                (!comma || set_milliseconds(comma + 1, &options->milliseconds_all, error));
    free(each);
    return fine;
}

bool set_store_timeout(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return set_milliseconds(value, &request->import.store_milliseconds, error);
}

/* Return the servers of the options, or else of the environment, separated by spaces. Values in the environment that
   wick does not accept are skipped. */
static bool list_servers(const struct request *request, struct buffer *servers,
                         struct error *error) {
    struct text rest = text_of(getenv("DEBUGINFOD_URLS"));
    for (size_t i = 0; i < request->debuginfod.count; i++) {
        if (!net_url_check(request->debuginfod.items[i], error))
            return false;
        buffer_printf(servers, "%s%s", servers->count ? " " : "", request->debuginfod.items[i]);
    }
    while (!request->debuginfod.count && rest.length) {
        size_t end = text_find(rest, ' ');
        struct text word = end == SIZE_MAX ? rest : text_upto(rest, end);
        rest = text_from(rest, end == SIZE_MAX ? rest.length : end + 1);
        char *url = memory_copy(word.data, word.length);
        struct error why;
        if (net_url_check(url, &why))
            buffer_printf(servers, "%s%s", servers->count ? " " : "", url);
        else if (word.length && !request->quiet)
            say_line("DEBUGINFOD_URLS: %s", why.message);
        free(url);
    }
    return true;
}

static bool start(struct request *request, const char *servers, struct error *error) {
    struct net_options options = {.debuginfod = servers};
    struct error why;
    request->net = net_start(&options, &request->context, &why);
    if (!request->net && request->debuginfod.count) {
        *error = why;
        return false;
    }
    if (!request->net && !request->quiet)
        say_line("DEBUGINFOD_URLS: %s", why.message);
    return true;
}

bool request_start_net(struct request *request, struct error *error) {
    struct debuginfod_options *options = &request->import.profile.objects.debuginfod;
    struct buffer servers = {0};
    if (request->no_debuginfod && request->debuginfod.count)
        return error_set(error, ERROR_USAGE,
                         "--no-debuginfod cannot be combined with --debuginfod");
    if (request->no_debuginfod || request->compat || request->net || request->is_confined)
        return true; /* too late inside the sandbox; confine() has done this */
    bool fine = list_servers(request, &servers, error);
    if (fine && servers.count) {
        buffer_add_char(&servers, 0);
        fine = start(request, servers.items, error);
    }
    options->cache = true;
    options->net = request->net;
    options->size_most = options->size_most ? options->size_most : size_most;
    options->milliseconds_each = options->milliseconds_each ? options->milliseconds_each : EACH_MS;
    options->milliseconds_all = options->milliseconds_all ? options->milliseconds_all : ALL_MS;
    buffer_release(&servers);
    return fine;
}
