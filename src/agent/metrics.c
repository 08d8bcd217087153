/*
 * The agent's own metrics, over HTTP on loopback or a Unix socket: /metrics in Prometheus's text format, and /healthz.
 *
 * Two answers to one method need no library: only the first line of a request is read, the rest is ignored, and every connection is closed
 * after its answer. There is one thread; a slow or silent client costs it two seconds.
 */
#include "agent/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST_MOST = 2048, PATIENCE = 2 /* seconds */ };

struct metrics {
    const struct agent_counts *counts;
    uint64_t window; /* nanoseconds */
    int listener, stop;
    char *path; /* of a Unix socket, else NULL */
    pthread_t thread;
};

/* ---- content ---- */

static void line(struct buffer *text, const char *name, const char *kind, const char *help,
                 double value) {
    buffer_printf(text, "# HELP wick_agent_%s %s\n# TYPE wick_agent_%s %s\nwick_agent_%s %.17g\n",
                  name, help, name, kind, name, value);
}

static void write_metrics(const struct agent_counts *c, struct buffer *text) {
    uint64_t now = agent_now(CLOCK_REALTIME) / 1000000000u, oldest = c->spool_oldest;
    line(text, "samples_total", "counter", "Samples taken.", (double)c->samples);
    line(text, "lost_total", "counter", "Samples that the kernel lost.", (double)c->lost);
    line(text, "windows_total", "counter", "Windows read.", (double)c->windows);
    line(text, "windows_lost_total", "counter", "Windows that could not be read.",
         (double)c->windows_lost);
    line(text, "batches_total", "counter", "Batches spooled.", (double)c->batches);
    line(text, "sent_total", "counter", "Batches that the store has accepted.", (double)c->sent);
    line(text, "retried_total", "counter", "Attempts that failed and were repeated.",
         (double)c->retried);
    line(text, "rejected_total", "counter", "Batches that the store refused.", (double)c->rejected);
    line(text, "dropped_total", "counter", "Batches that did not fit into the spool.",
         (double)c->dropped);
    line(text, "restarts_total", "counter", "Restarts of the recording.", (double)c->restarts);
    line(text, "spool_bytes", "gauge", "Bytes waiting in the spool.", (double)c->spool_bytes);
    line(text, "spool_batches", "gauge", "Batches waiting in the spool.", (double)c->spool_files);
    line(text, "spool_age_seconds", "gauge", "Age of the oldest batch in the spool.",
         oldest && now > oldest ? (double)(now - oldest) : 0);
    line(text, "window_seconds", "gauge", "Time taken to read the last window.",
         (double)c->window_ns / 1e9);
    line(text, "frequency_hertz", "gauge", "Current samples per second and CPU.",
         (double)c->frequency);
    line(text, "cpu_seconds_total", "counter", "CPU time of the agent.", (double)c->cpu_ns / 1e9);
    line(text, "memory_bytes", "gauge",
         "Memory of the agent, without the files that it has mapped.", (double)c->memory);
    line(text, "frames", "gauge", "Frames of the last window.", (double)c->symbols);
    line(text, "frames_without_name", "gauge", "Frames of the last window that have no name.",
         (double)c->symbols_missing);
}

/* Healthy means that windows arrive and spooled batches are sent. */
static bool write_health(const struct metrics *m, struct buffer *text) {
    uint64_t now = agent_now(CLOCK_REALTIME) / 1000000000u;
    uint64_t late = 3 * m->window / 1000000000u + 30, last = m->counts->last_window;
    uint64_t oldest = m->counts->spool_oldest;
    if (last && now > last + late) {
        buffer_printf(text, "no window for %llu seconds\n", (unsigned long long)(now - last));
        return false;
    }
    if (oldest && now > oldest + 600) {
        buffer_printf(text, "the store has not accepted a batch from %llu seconds ago\n",
                      (unsigned long long)(now - oldest));
        return false;
    }
    buffer_add(text, TEXT("ok\n"));
    return true;
}

static void answer(const struct metrics *m, struct text request, struct buffer *out) {
    struct text first = text_trim(text_take_line(&request));
    struct buffer body = {0};
    const char *status = "200 OK";
    if (text_starts(first, TEXT("GET /metrics ")))
        write_metrics(m->counts, &body);
    else if (text_starts(first, TEXT("GET /healthz ")))
        status = write_health(m, &body) ? status : "503 Service Unavailable";
    else {
        status = text_starts(first, TEXT("GET ")) ? "404 Not Found" : "405 Method Not Allowed";
        buffer_add(&body, TEXT("only /metrics and /healthz exist\n"));
    }
    buffer_printf(out,
                  "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                  "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                  status, body.count);
    buffer_add(out, buffer_text(&body));
    buffer_release(&body);
}

/* ---- connections ---- */

static void serve_one(const struct metrics *m, int client) {
    struct timeval patience = {.tv_sec = PATIENCE};
    char request[REQUEST_MOST];
    size_t length = 0;
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    uint64_t until = agent_now(CLOCK_MONOTONIC) + PATIENCE * 1000000000ull;
    while (length < sizeof request && agent_now(CLOCK_MONOTONIC) < until &&
           text_find((struct text){request, length}, '\n') == SIZE_MAX) {
        ssize_t got = recv(client, request + length, sizeof request - length, 0);
        if (got <= 0)
            return;
        length += (size_t)got;
    }
    struct buffer out = {0};
    answer(m, (struct text){request, length}, &out);
    (void)!send(client, out.items, out.count, MSG_NOSIGNAL);
    buffer_release(&out);
    shutdown(client, SHUT_WR);
    while (recv(client, request, sizeof request, 0) > 0 && agent_now(CLOCK_MONOTONIC) < until)
        ; /* closing with unread bytes would discard the answer */
}

static void *run(void *context) {
    const struct metrics *m = context;
    struct pollfd files[] = {{.fd = m->listener, .events = POLLIN},
                             {.fd = m->stop, .events = POLLIN}};
    for (;;) {
        if (poll(files, COUNT_OF(files), -1) < 0 && errno != EINTR)
            return NULL;
        if (files[1].revents)
            return NULL;
        int client = files[0].revents ? accept4(m->listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (client < 0)
            continue;
        serve_one(m, client);
        close(client);
    }
}

/* ---- listening ---- */

static bool listen_unix(struct metrics *m, const char *path, struct error *error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (strlen(path) >= sizeof address.sun_path)
        return error_set(error, ERROR_USAGE, "%s: too long for a socket's name", path);
    memcpy(address.sun_path, path, strlen(path));
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path); /* left by an agent that was killed */
    m->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* A socket's file gets the socket's own mode. Changing the mode by path later could hit another file. */
    if (m->listener < 0 || fchmod(m->listener, 0600) != 0 ||
        bind(m->listener, (struct sockaddr *)&address, sizeof address) != 0)
        return error_errno(error, path);
    m->path = memory_copy(path, strlen(path));
    return true;
}

/* Listen on loopback only: the metrics are not for other machines. */
static bool listen_loopback(struct metrics *m, const char *text, struct error *error) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *colon = strrchr(text, ':');
    char host[32] = "";
    uint64_t port;
    bool fine = colon && (size_t)(colon - text) < sizeof host &&
                text_to_u64(text_of(colon + 1), &port) && port <= 65535;
    if (fine)
        memcpy(host, text, (size_t)(colon - text));
    fine = fine && inet_pton(AF_INET, strcmp(host, "localhost") ? host : "127.0.0.1",
                             &address.sin_addr) == 1;
    if (!fine || ntohl(address.sin_addr.s_addr) >> 24 != 127)
        return error_set(error, ERROR_USAGE,
                         "metrics: '%s' is neither 127.0.0.1:PORT nor unix:PATH nor off", text);
    address.sin_port = htons((uint16_t)port);
    int on = 1;
    m->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (m->listener >= 0)
        setsockopt(m->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (m->listener < 0 || bind(m->listener, (struct sockaddr *)&address, sizeof address) != 0)
        return error_errno(error, text);
    return true;
}

struct metrics *metrics_new(const char *address, const struct agent_counts *counts, uint64_t window,
                            struct error *error) {
    struct metrics *m = memory_zero(1, sizeof *m);
    *m = (struct metrics){.counts = counts, .window = window, .listener = -1};
    m->stop = eventfd(0, EFD_CLOEXEC);
    bool is_unix = text_starts(text_of(address), TEXT("unix:"));
    bool fine = m->stop >= 0 ? true : error_errno(error, "eventfd");
    fine =
        fine && (is_unix ? listen_unix(m, address + 5, error) : listen_loopback(m, address, error));
    if (fine && listen(m->listener, 16) != 0)
        fine = error_errno(error, address);
    if (fine && pthread_create(&m->thread, NULL, run, m) != 0)
        fine = error_errno(error, "pthread_create");
    if (fine)
        return m;
    if (m->listener >= 0)
        close(m->listener);
    if (m->stop >= 0)
        close(m->stop);
    free(m->path);
    free(m);
    return NULL;
}

void metrics_free(struct metrics *m) {
    uint64_t one = 1;
    if (!m)
        return;
    (void)!write(m->stop, &one, sizeof one);
    pthread_join(m->thread, NULL);
    close(m->listener);
    close(m->stop);
    if (m->path)
        unlink(m->path);
    free(m->path);
    free(m);
}
