/*
 * Files from debuginfod servers: the part that runs in wick.
 */
#include "net/internal.h"

#include <stdio.h>

enum { GRACE_MS = 2000 };

static bool ask(struct net *net, const struct net_file *file, struct waiting *waiting,
                unsigned milliseconds, uint64_t size_limit, struct error *error) {
    char hex[2 * NET_BUILD_ID_MOST + 1];
    assert(file->build_id_size <= NET_BUILD_ID_MOST);
    for (unsigned i = 0; i < file->build_id_size; i++)
        snprintf(hex + 2 * (size_t)i, 3, "%02x", file->build_id[i]);
    struct net_message message = {.kind = NET_ASK_DEBUGINFO,
                                  .status = file->kind,
                                  .milliseconds = milliseconds,
                                  .size = size_limit,
                                  .lengths = {2 * file->build_id_size}};
    struct net_texts texts = {{hex}};
    return net_ask(net, waiting, &message, &texts, -1, error);
}

/* Report the progress of all downloads, whichever thread calls. */
static bool tell(void *user) {
    struct net *net = user;
    uint64_t done, total;
    net_sum(net, &done, &total);
    context_progress(net_context(net), "downloading debug information, # kB", done >> 10,
                     total >= done ? total >> 10 : 0);
    return false;
}

bool net_debuginfo(struct net *net, struct net_file *file, unsigned milliseconds,
                   uint64_t size_limit) {
    struct waiting waiting;
    struct error error;
    file->descriptor = -1;
    file->size = 0;
    if (!ask(net, file, &waiting, milliseconds, size_limit, &error)) {
        snprintf(file->message, sizeof file->message, "%.*s", TEXT_ARGS(text_of(error.message)));
        return false;
    }
    bool over = net_wait(net, &waiting, net_now() + milliseconds + GRACE_MS, tell, net);
    if (over && waiting.came) {
        file->descriptor = waiting.descriptor;
        file->size = waiting.size;
        waiting.descriptor = -1;
    } else {
        struct text why = waiting.why.count ? buffer_text(&waiting.why) : TEXT("no answer in time");
        snprintf(file->message, sizeof file->message, "%.*s", TEXT_ARGS(why));
    }
    net_forget(net, &waiting);
    return file->descriptor >= 0;
}
