/*
 * push: profiles to services that keep and show them: Pyroscope, Parca, collectors of OpenTelemetry.
 *
 * A profile goes out in the form that the exporters write (pprof, OTLP), with its time and duration, a service and a host, by HTTP
 * through the helper process (net). What a service would refuse for its size is divided; sums stay those of wick's own views.
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

/* Whether a URL's scheme names a service: pyroscope, pyroscopes, parca, parcas, otlp, otlps. The ones with an s are for https. */
bool push_takes(struct text url);
/* SCHEME://HOST[:PORT][/PREFIX]. False: *error says what is wrong with it; one with a password is refused. */
bool push_target_parse(const char *url, struct push_target *target, struct error *error);
void push_target_release(struct push_target *target);

struct push_options {
    struct net *net;
    const char *credentials;           /* a file, as net_request has it; or NULL */
    unsigned milliseconds;             /* for one request; 0: 60 s */
    const char *service, *host;        /* never NULL */
    const struct label_filter *labels; /* others: key and value */
    size_t label_count;
    const struct export_options *export; /* with its time and duration */
};

struct push_result {
    uint64_t requests;
    uint64_t samples; /* distinct stacks of each thread */
};

/* Send a resolved and named tree. False: *error says why; what was sent before that stays sent. */
bool push_send(const struct push_target *target, const struct tree *tree,
               const struct naming *naming, const struct push_options *options,
               struct push_result *result, struct error *error);

#endif
