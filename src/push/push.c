/*
 * Send a profile: write it in the service's format, in as many parts as needed, and post it.
 */
#include "push/internal.h"

#include <stdlib.h>

enum { SEND_MS = 60000, SHOWN_MOST = 300, PART_NS = 1000000 };

/* Quote the service's message, if it has one. */
static bool refused(const struct push_target *target, const struct net_answer *answer,
                    struct error *error) {
    struct buffer body = {0};
    struct text wait = net_header(answer, TEXT("retry-after"));
    net_body(answer, SHOWN_MOST, &body, NULL);
    error_set(error, ERROR_INPUT, "%s: refused with status %u%s%.*s%s: %.*s", target->url,
              answer->status, wait.length ? " (try again after " : "", TEXT_ARGS(wait),
              wait.length ? " s)" : "", TEXT_ARGS(text_trim(buffer_text(&body))));
    buffer_release(&body);
    return false;
}

static bool post(const struct push_target *target, const struct push_options *options,
                 struct text type, struct text body, struct error *error) {
    struct buffer headers = {0};
    struct net_answer answer;
    buffer_printf(&headers, "Content-Type: %.*s", TEXT_ARGS(type));
    struct net_request request = {.method = "POST",
                                  .url = target->url,
                                  .headers = buffer_text(&headers),
                                  .body_descriptor = -1,
                                  .body = body,
                                  .credentials = options->credentials,
                                  .milliseconds =
                                      options->milliseconds ? options->milliseconds : SEND_MS};
    bool fine = net_http(options->net, &request, &answer, error);
    buffer_release(&headers);
    if (!fine)
        return false;
    if (answer.status < 200 || answer.status > 299)
        fine = refused(target, &answer, error);
    net_answer_release(&answer);
    return fine;
}

static bool write_form(const char *format, const struct tree *tree, const struct naming *naming,
                       const struct export_options *options, struct buffer *bytes,
                       struct error *error) {
    struct out out;
    out_open_buffer(&out, bytes);
    if (export_write(&out, export_format_named(format), tree, naming, options, error))
        return out_commit(&out, error);
    out_discard(&out);
    return false;
}

/* Parts of one profile are a millisecond apart: a service may take two with the same time for one. */
static bool send_part(const struct push_target *target, const struct tree *tree,
                      const struct naming *naming, const struct push_options *options,
                      uint64_t number, struct error *error) {
    struct export_options part = *options->export;
    struct buffer pprof = {0}, body = {0}, name = {0};
    part.first_sample = (size_t)number * SAMPLES_MOST;
    part.sample_count = SAMPLES_MOST;
    part.began += number * PART_NS;
    bool fine = write_form("pprof", tree, naming, &part, &pprof, error);
    if (fine) {
        encode_series(target->kind, options, profile_name(tree, &name), buffer_text(&pprof), &body);
        fine = post(target, options, TEXT("application/json"), buffer_text(&body), error);
    }
    buffer_release(&pprof);
    buffer_release(&body);
    buffer_release(&name);
    return fine;
}

static bool send_parts(const struct push_target *target, const struct tree *tree,
                       const struct naming *naming, const struct push_options *options,
                       struct push_result *result, struct error *error) {
    for (uint64_t i = 0; i * SAMPLES_MOST < result->samples; i++) {
        if (!send_part(target, tree, naming, options, i, error))
            return false;
        result->requests++;
    }
    return true;
}

static bool send_otlp(const struct push_target *target, const struct tree *tree,
                      const struct naming *naming, const struct push_options *options,
                      struct push_result *result, struct error *error) {
    VECTOR(struct label_filter) resource = {0};
    struct export_options whole = *options->export;
    struct buffer body = {0};
    vector_push(&resource, ((struct label_filter){"service.name", options->service}));
    vector_push(&resource, ((struct label_filter){"host.name", options->host}));
    for (size_t i = 0; i < options->label_count; i++) {
        struct label_filter label = options->labels[i];
        if (strcmp(label.key, "version") == 0)
            label.key = "service.version";
        if (strcmp(label.key, "service") != 0 && strcmp(label.key, "host") != 0)
            vector_push(&resource, label);
    }
    whole.resource = resource.items;
    whole.resource_count = resource.count;
    bool fine = write_form("otlp", tree, naming, &whole, &body, error) &&
                post(target, options, TEXT("application/x-protobuf"), buffer_text(&body), error);
    result->requests = fine;
    vector_release(&resource);
    buffer_release(&body);
    return fine;
}

bool push_send(const struct push_target *target, const struct tree *tree,
               const struct naming *naming, const struct push_options *options,
               struct push_result *result, struct error *error) {
    *result = (struct push_result){0};
    if (!export_count(tree, naming, options->export, &result->samples, error))
        return false;
    return target->kind == PUSH_OTLP ? send_otlp(target, tree, naming, options, result, error)
                                     : send_parts(target, tree, naming, options, result, error);
}
