/*
 * push: send profiles to services: Pyroscope, Parca, OpenTelemetry collectors.
 *
 * A profile is sent in an exporter's format (pprof, OTLP), with its time and duration, a service and a host, over
 * HTTP through the helper process (net). A profile that is too large for a service is divided; its sums stay those of
 * wick's own views.
 */
#ifndef WICK_PUSH_H
#define WICK_PUSH_H

#include "export/export.h"
#include "net/net.h"

enum push_kind { PUSH_PYROSCOPE, PUSH_PARCA, PUSH_OTLP };

struct push_target {
    enum push_kind kind;
    char *url; /* of the call; free() it */
};

/* Return true if a URL's scheme names a service: pyroscope, pyroscopes, parca, parcas, otlp, otlps. Those with an s
   use https. */
bool push_takes(struct text url);
/* Parse SCHEME://HOST[:PORT][/PREFIX]. A URL with a password is refused. */
bool push_target_parse(const char *url, struct push_target *target, struct error *error);
void push_target_release(struct push_target *target);

struct push_options {
    struct net *net;
    const char *credentials;           /* path of a file, as in net_request; or NULL */
    unsigned milliseconds;             /* for one request; 0: 60 s */
    const char *service, *host;        /* never NULL */
    const struct label_filter *labels; /* further labels: key and value */
    size_t label_count;
    const struct export_options *export; /* with its time and duration */
};

struct push_result {
    uint64_t requests;
    uint64_t samples; /* distinct stacks of each thread */
};

/* Send a resolved and named tree. On failure, parts that were already sent stay sent. */
bool push_send(const struct push_target *target, const struct tree *tree,
               const struct naming *naming, const struct push_options *options,
               struct push_result *result, struct error *error);

#endif
