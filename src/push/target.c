/*
 * URLs of services: which service, and which URL its profiles are posted to.
 */
#include "push/push.h"

#include <stdlib.h>

static const struct scheme {
    const char *name;
    enum push_kind kind;
    const char *http, *port, *path;
} schemes[] = {
    {"pyroscope://", PUSH_PYROSCOPE, "http://", "4040", "/push.v1.PusherService/Push"},
    {"pyroscopes://", PUSH_PYROSCOPE, "https://", "", "/push.v1.PusherService/Push"},
    {"parca://", PUSH_PARCA, "http://", "7070", "/api/profiles/writeraw"},
    {"parcas://", PUSH_PARCA, "https://", "", "/api/profiles/writeraw"},
    {"otlp://", PUSH_OTLP, "http://", "4318", "/v1development/profiles"},
    {"otlps://", PUSH_OTLP, "https://", "", "/v1development/profiles"},
};

static const struct scheme *scheme_of(struct text url) {
    for (size_t i = 0; i < COUNT_OF(schemes); i++)
        if (text_starts(url, text_of(schemes[i].name)))
            return &schemes[i];
    return NULL;
}

bool push_takes(struct text url) {
    return scheme_of(url) != NULL;
}

/* Find the port after a name, or after the bracket of an IPv6 address. */
static bool has_port(struct text host) {
    size_t bracket = text_find_last(host, ']');
    struct text rest = bracket == SIZE_MAX ? host : text_from(host, bracket);
    return text_find(rest, ':') != SIZE_MAX;
}

bool push_target_parse(const char *url, struct push_target *target, struct error *error) {
    const struct scheme *scheme = scheme_of(text_of(url));
    struct buffer http = {0};
    if (!scheme)
        return error_set(error, ERROR_USAGE, "%s: not a service that wick knows", url);
    struct text rest = text_from(text_of(url), strlen(scheme->name));
    size_t slash = text_find(rest, '/');
    struct text host = slash == SIZE_MAX ? rest : text_upto(rest, slash);
    struct text prefix = slash == SIZE_MAX ? TEXT("") : text_from(rest, slash);
    while (text_ends(prefix, TEXT("/")))
        prefix.length--;
    buffer_printf(&http, "%s%.*s%s%s%.*s%s", scheme->http, TEXT_ARGS(host),
                  *scheme->port && !has_port(host) ? ":" : "", has_port(host) ? "" : scheme->port,
                  TEXT_ARGS(prefix), scheme->path);
    buffer_add_char(&http, 0);
    *target = (struct push_target){scheme->kind, http.items};
    bool fine = net_url_check(http.items, error);
    if (fine && (text_find(rest, '?') != SIZE_MAX || text_find(rest, '#') != SIZE_MAX))
        fine = error_set(error, ERROR_USAGE, "%s: ? and # are not allowed", url);
    if (!fine)
        push_target_release(target);
    return fine;
}

void push_target_release(struct push_target *target) {
    free(target->url);
    target->url = NULL;
}
