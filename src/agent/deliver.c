/*
 * The deliverer: a child that reads spooled batches and puts them into the store, one at a time. It may write to the directory of the store's
 * file and nowhere else. A server is reached through wick-net, which has to be started before entering the sandbox.
 *
 * It exits after a failure of the store, so that the next deliverer starts with its own helper and rules: access to a directory that did not
 * exist can't be allowed later.
 */
#include "agent/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/net.h"
#include "saved/saved.h"
#include "store/store.h"

static const uint64_t second = 1000000000u;
enum { OPEN = 1, PUT };

/* ---- in the child ---- */

struct delivering_child {
    const struct agent_options *options;
    struct context context;
    struct net *net;
    struct store *store; /* NULL: not open */
    uint32_t retry_after;
    struct error error; /* why there is no net */
};

static void start_net(void *context) {
    struct delivering_child *c = context;
    c->error.kind = ERROR_NONE;
    if (store_is_url(text_of(c->options->store)))
        c->net = net_start(NULL, &c->context, &c->error);
}

static bool open_store(struct delivering_child *c, struct error *error) {
    struct store_options options = {.context = &c->context,
                                    .credentials = c->options->credentials,
                                    .milliseconds = (unsigned)(c->options->timeout / 1000000),
                                    .retry_after = &c->retry_after,
                                    .net = c->net,
                                    .write = true,
                                    .create = true};
    if (c->error.kind != ERROR_NONE) {
        *error = c->error;
        return false;
    }
    if (!c->store)
        c->store = store_open(c->options->store, &options, error);
    return c->store;
}

static enum store_failure put_tree(struct delivering_child *c, const struct child_message *message,
                                   const struct tree *tree, struct error *error) {
    struct store_batch batch = {.id = text_of(message->text),
                                .time_ns = message->numbers[0] * second,
                                .duration_ns = c->options->batch};
    struct store_result result;
    if (!open_store(c, error))
        return STORE_TRY_AGAIN;
    return store_put(c->store, tree, &batch, &result, error) ? STORE_FINE : store_failure(c->store);
}

/* No store can use spooled bytes that can't be read. */
static enum store_failure put(struct delivering_child *c, const struct child_message *message,
                              int descriptor, struct error *error) {
    struct profile_options options = {.context = &c->context};
    struct file file;
    if (!file_open_descriptor(&file, descriptor, "batch", &c->context, error))
        return STORE_REJECTED;
    struct tree *tree = tree_new();
    bool fine = saved_read(file_text(&file), "batch", &options, tree, error);
    enum store_failure failure = fine ? put_tree(c, message, tree, error) : STORE_REJECTED;
    objects_free(tree->objects);
    tree_free(tree);
    file_close(&file);
    return failure;
}

static void deliverer_run(void *context, int channel) {
    struct delivering_child *c = context;
    struct child_message message;
    int descriptors[CHILD_DESCRIPTORS];
    bool fine = true;
    while (fine && child_receive(channel, &message, descriptors)) {
        struct error error = {0};
        c->retry_after = 0;
        if (message.kind == OPEN)
            message.status = open_store(c, &error) ? STORE_FINE : STORE_TRY_AGAIN;
        else
            message.status = put(c, &message, descriptors[0], &error);
        child_close(descriptors);
        message.kind = fine = message.status == STORE_FINE;
        message.numbers[0] = error.kind;
        message.numbers[1] = c->retry_after;
        memcpy(message.text, error.message, sizeof message.text);
        fine = child_send(channel, &message, NULL, 0) && fine;
    }
    if (c->store)
        store_close(c->store);
    net_stop(c->net);
}

/* SQLite creates its journal beside the file itself, even if the path is a link. */
static char *folder_of(const char *store) {
    char *real = realpath(store, NULL);
    const char *path = real ? real : store, *slash = strrchr(path, '/');
    char *folder = slash ? memory_copy(path, (size_t)(slash - path) + 1) : memory_copy(".", 1);
    free(real);
    return folder;
}

_Noreturn void deliverer_serve(const struct agent_options *options) {
    struct delivering_child context = {.options = options, .context = agent_patient(options)};
    char *folder = folder_of(options->store);
    child_serve(&(struct child_plan){.write = (const char *const *)&folder,
                                     .write_count = !store_is_url(text_of(options->store)),
                                     .no_sandbox = options->no_sandbox,
                                     .confined = options->confined,
                                     .prepare = start_net,
                                     .run = deliverer_run,
                                     .context = &context});
}

/* ---- in the agent ---- */

/* A child that reported a failure has exited. */
static enum store_failure ask(struct child *deliverer, const struct agent_options *options,
                              struct child_message *message, int descriptor,
                              const struct context *context, struct error *error) {
    static const struct child_patience patience = {0};
    if ((!child_lives(deliverer) && !child_start(deliverer, options, CHILD_DELIVERER, error)) ||
        !child_ask(deliverer, message, &descriptor, descriptor >= 0, &patience, context, error))
        return STORE_TRY_AGAIN;
    if (message->kind)
        return STORE_FINE;
    child_end(deliverer);
    error_set(error, message->numbers[0] == ERROR_USAGE ? ERROR_USAGE : ERROR_INPUT, "%s",
              message->text);
    return message->status == STORE_REJECTED ? STORE_REJECTED : STORE_TRY_AGAIN;
}

bool deliver_check(const struct agent_options *options, struct error *error) {
    struct child deliverer = {0};
    struct child_message message = {.kind = OPEN};
    bool fine = ask(&deliverer, options, &message, -1, options->context, error) == STORE_FINE;
    child_end(&deliverer);
    return fine;
}

enum store_failure deliver(struct child *deliverer, const struct agent_options *options,
                           const struct spooled *batch, int descriptor,
                           const struct context *context, uint32_t *retry_after,
                           struct error *error) {
    struct child_message message = {.kind = PUT, .numbers = {batch->written}};
    snprintf(message.text, sizeof message.text, "%s", batch->id);
    enum store_failure failure = ask(deliverer, options, &message, descriptor, context, error);
    *retry_after = failure == STORE_TRY_AGAIN ? (uint32_t)message.numbers[1] : 0;
    return failure;
}
