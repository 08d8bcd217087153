/*
 * One request: its origin, the Host that it names, and its token. Without a token nothing is revealed: every path
 * looks as if it did not exist, whatever the method.
 */
#include <stdlib.h>

#include "serve/http/server.h"

void *request_begin(void *context, const char *uri, struct MHD_Connection *connection) {
    struct job *job = memory_zero(1, sizeof *job);
    job->connection = connection;
    job->readable = target_parse(&job->target, text_of(uri));
    return job;
}

void request_end(void *context, struct MHD_Connection *connection, void **own,
                 enum MHD_RequestTerminationCode why) {
    connection_busy(context, connection, false);
    if (*own)
        job_free(*own);
    *own = NULL;
}

/* ---- authorization ---- */

struct headers {
    const char *name;
    size_t count;
    struct text value;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind, const char *key,
                                    const char *value) {
    struct headers *headers = context;
    if (strcasecmp(key, headers->name) == 0) {
        headers->count++;
        headers->value = text_of(value ? value : "");
    }
    return MHD_YES;
}

/* Return the header's value if it was sent exactly once; otherwise its data is NULL. */
static struct text header(struct MHD_Connection *connection, const char *name) {
    struct headers headers = {.name = name};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &headers);
    return headers.count == 1 ? headers.value : (struct text){NULL, 0};
}

static bool has_header(struct MHD_Connection *connection, const char *name) {
    struct headers headers = {.name = name};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, count_header, &headers);
    return headers.count > 0;
}

/* Return the token, or `-` for a proxy that authenticates its users. */
static bool may_ask(const struct server *server, const struct job *job) {
    if (!job->target.part_count)
        return false;
    if (token_equal(job->target.parts[0], text_of(server->token)))
        return true;
    return server->trust_header && text_equal(job->target.parts[0], TEXT("-")) &&
           header(job->connection, server->trust_header).length;
}

/* The only other site that may read the one profile, with a token that is valid for nothing else. */
static bool may_read_shared(const struct server *server, const struct job *job) {
    return server->share_with && job->target.part_count == 2 && !job->target.value_count &&
           token_equal(job->target.parts[0], text_of(server->share_token)) &&
           text_equal(job->target.parts[1], TEXT("profile")) &&
           text_equal(header(job->connection, "Origin"), text_of(server->share_with));
}

/* ---- what it gets ---- */

static enum MHD_Result send_response(const struct server *server, struct job *job) {
    struct text body = job->fixed.data ? job->fixed : buffer_text(&job->body);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        body.length, (void *)(body.length ? body.data : ""), MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    const char *const headers[][2] = {
        {"Content-Type", job->type},
        {"Content-Security-Policy",
         job->policy ? job->policy : "default-src 'none'; frame-ancestors 'none'"},
        {"Cache-Control", "no-store"},
        {"Referrer-Policy", "no-referrer"},
        {"X-Content-Type-Options", "nosniff"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", job->allow_origin ? "cross-origin" : "same-origin"},
        {"Location", job->location},
        {"Access-Control-Allow-Origin", job->allow_origin},
        {"Vary", job->allow_origin ? "Origin" : NULL},
        {"Allow", job->status == 405 ? "GET, HEAD" : NULL},
        {"Retry-After", job->status == 503 ? "2" : NULL},
        {"Access-Control-Allow-Methods",
         job->allow_origin && job->status == 204 ? "GET, HEAD" : NULL},
        {"Access-Control-Allow-Private-Network",
         job->allow_origin && job->status == 204 ? "true" : NULL},
    };
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        if (headers[i][1])
            MHD_add_response_header(response, headers[i][0], headers[i][1]);
    enum MHD_Result result = MHD_queue_response(job->connection, (unsigned)job->status, response);
    MHD_destroy_response(response);
    return result;
}

static void route_shared(struct server *server, struct job *job, bool reads, const char *method) {
    job->allow_origin = server->share_with;
    job->is_shared = true;
    if (reads)
        route(server, job);
    else
        job->status = strcmp(method, "OPTIONS") == 0 ? 204 : 405;
}

/* Set a status, or the work to do. */
static void decide(struct server *server, struct job *job, const char *method) {
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    bool has_body = has_header(job->connection, "Content-Length") ||
                    has_header(job->connection, "Transfer-Encoding");
    if (!host_is_loopback(header(job->connection, "Host")))
        job->status = 421;
    else if (!job->readable)
        job->status = 400;
    else if (may_read_shared(server, job))
        route_shared(server, job, reads, method);
    else if (!may_ask(server, job))
        job->status = 404;
    else if (!reads)
        job->status = 405;
    else if (has_body)
        job->status = 413;
    else
        route(server, job);
}

enum MHD_Result request_answer(void *context, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **own) {
    struct server *server = context;
    struct job *job = *own;
    if (!job)
        return MHD_NO;
    if (job->done)
        return send_response(server, job);
    connection_busy(server, connection, true);
    server->last_request = milliseconds();
    decide(server, job, method);
    if (!job->status && job->work) {
        if (jobs_add(server->jobs, job))
            return MHD_YES;
        job->status = 503;
    }
    job->done = true;
    return send_response(server, job);
}
