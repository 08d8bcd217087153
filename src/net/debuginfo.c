/*
 * Files from debuginfod servers, on wick's side: all are asked for at once, the helper gets several at a time.
 */
#include "net/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct round {
    struct net *net;
    struct waiting *waiting;
    size_t count;
};

static void ask(struct net *net, const struct net_file *file, struct waiting *waiting,
                const struct net_limits *limits) {
    char hex[2 * NET_BUILD_ID_MOST + 1];
    for (unsigned i = 0; i < file->build_id_size && i < NET_BUILD_ID_MOST; i++)
        snprintf(hex + 2 * (size_t)i, 3, "%02x", file->build_id[i]);
    struct net_message message = {.kind = NET_ASK_DEBUGINFO,
                                  .status = file->kind,
                                  .milliseconds = limits->milliseconds_each,
                                  .size = limits->size_each,
                                  .lengths = {2 * file->build_id_size}};
    struct net_texts texts = {{hex}};
    struct error error;
    if (!net_ask(net, waiting, &message, &texts, -1, &error)) {
        waiting->over = true;
        buffer_printf(&waiting->why, "%s", error.message);
    }
}

/* How far all of them are. Numbers may be a moment old. */
static bool tell(void *user) {
    struct round *round = user;
    uint64_t done = 0, total = 0;
    for (size_t i = 0; i < round->count; i++) {
        done += __atomic_load_n(&round->waiting[i].size, __ATOMIC_RELAXED);
        total += __atomic_load_n(&round->waiting[i].total, __ATOMIC_RELAXED);
    }
    context_progress(net_context(round->net), "downloading debug information, # kB", done >> 10,
                     total >= done ? total >> 10 : 0);
    return false;
}

static void take(struct waiting *waiting, bool over, struct net_file *file) {
    file->descriptor = -1;
    if (over && waiting->came) {
        file->descriptor = waiting->descriptor;
        file->size = waiting->size;
        waiting->descriptor = -1;
    } else {
        struct text why =
            waiting->why.count ? buffer_text(&waiting->why) : TEXT("no answer in time");
        snprintf(file->message, sizeof file->message, "%.*s", TEXT_ARGS(why));
    }
}

void net_debuginfo(struct net *net, struct net_file *files, size_t count,
                   const struct net_limits *limits) {
    struct round round = {net, memory_zero(count, sizeof *round.waiting), count};
    uint64_t deadline = net_now() + limits->milliseconds_all;
    for (size_t i = 0; i < count; i++)
        ask(net, &files[i], &round.waiting[i], limits);
    for (size_t i = 0; i < count; i++) {
        bool over =
            round.waiting[i].over || net_wait(net, &round.waiting[i], deadline, tell, &round);
        take(&round.waiting[i], over, &files[i]);
        net_forget(net, &round.waiting[i]);
    }
    free(round.waiting);
}
