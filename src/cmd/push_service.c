/*
 * wick push to services: Pyroscope, Parca and OpenTelemetry's collectors.
 */
#include "cmd/push.h"

#include <stdlib.h>
#include <unistd.h>

#include "push/push.h"

struct services {
    struct push_target target;
    struct net *net;
    char host[256];
    bool owns_net;
};

static void service_end(void *state) {
    struct services *services = state;
    if (services->owns_net)
        net_stop(services->net);
    push_target_release(&services->target);
    free(services);
}

static void *service_begin(struct push_command *push, const char *url, struct error *error) {
    struct services *services = memory_zero(1, sizeof *services);
    if (gethostname(services->host, sizeof services->host - 1) != 0)
        services->host[0] = 0;
    services->net = push->request.import.store_net; /* the sandbox allows only one */
    services->owns_net = !services->net;
    if (push_target_parse(url, &services->target, error) &&
        (services->net || (services->net = net_start(NULL, &push->request.context, error))))
        return services;
    service_end(services);
    return NULL;
}

static const char *assigned(const struct request *request, const char *key) {
    const char *value = NULL;
    for (size_t i = 0; i < request->assigned.count; i++)
        if (strcmp(request->assigned.items[i].key, key) == 0)
            value = request->assigned.items[i].pattern;
    return value && *value ? value : NULL;
}

/* Return the host where it was recorded, or else this one. */
static char *find_host(const struct services *services, const struct request *request,
                       const struct source *source) {
    const char *given = assigned(request, "host");
    struct text host = given             ? text_of(given)
                       : source->profile ? source->profile->data->hostname
                                         : TEXT("");
    if (!host.length)
        host = services->host[0] ? text_of(services->host) : TEXT("localhost");
    return memory_copy(host.data, host.length);
}

/* Return the start: as given, as recorded, or else the duration before the file was written. */
static uint64_t find_beginning(const struct push_command *push, const struct tree *tree,
                               uint64_t time_ns) {
    if (push->at)
        return time_ns;
    if (tree->began)
        return tree->began;
    return time_ns > tree->lasted ? time_ns - tree->lasted : time_ns;
}

static bool send_tree(const struct services *services, struct push_command *push, const char *path,
                      const struct source *source, uint64_t time_ns, struct error *error) {
    struct request *request = &push->request;
    const struct tree *tree = source->tree;
    const char *service = assigned(request, "service");
    char *host = find_host(services, request, source);
    struct notes notes = {0};
    struct push_result result;
    request->naming.no_comm = true; /* it is sent as a label */
    struct naming *naming = make_naming(request, source, &notes);
    struct export_options export = {
        .shape = &request->flame,
        .title = export_title(path),
        .measure = request->import.profile.times == TIMES_BOTH ? "wall" : NULL,
        .began = find_beginning(push, tree, time_ns),
        .lasted = tree->lasted,
        .no_threads = !push->threads,
    };
    struct push_options options = {.net = services->net,
                                   .credentials = request->import.store_credentials,
                                   .milliseconds = (unsigned)(push->timeout * 1000),
                                   .service = service ? service : export.title,
                                   .host = host,
                                   .labels = request->assigned.items,
                                   .label_count = request->assigned.count,
                                   .export = &export};
    bool fine = push_send(&services->target, tree, naming, &options, &result, error);
    if (fine && !request->quiet) {
        progress_wipe();
        say_line("%s: %llu stacks in %llu request%s", path, (unsigned long long)result.samples,
                 (unsigned long long)result.requests, result.requests == 1 ? "" : "s");
    }
    naming_free(naming);
    notes_release(&notes);
    free(host);
    return fine;
}

/* Trees read for stores have threads' time besides the measured values; services get only the latter. */
static bool service_send(void *state, struct push_command *push, const char *path,
                         const struct source *source, uint64_t time_ns, struct error *error) {
    struct tree *view =
        push->request.import.profile.each ? tree_view_new(source->tree, TIMES_RUNNING) : NULL;
    struct source seen = *source;
    if (view)
        seen.tree = view;
    bool fine = send_tree(state, push, path, &seen, time_ns, error);
    tree_view_free(view);
    return fine;
}

static bool service_takes(struct text url) {
    return push_takes(url);
}

const struct receiver receiver_service = {service_takes, service_begin, service_send, service_end};
