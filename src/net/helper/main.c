/*
 * One thread receives requests; others process them, one for each request but at most sixteen.
 */
#include "net/helper/helper.h"

#include <curl/curl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MOST = 16, TELL_MS = 100, END_MS = 1500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first;
static unsigned workers, idle, busy;
static bool ends;

uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

bool ending(void) {
    return __atomic_load_n(&ends, __ATOMIC_RELAXED);
}

/* ---- answers ---- */

/* Bytes that a message can't contain are replaced. */
static void send_answer(const struct job *job, struct net_message *message, int place, char *text,
                        int descriptor) {
    uint8_t *bytes = malloc(NET_MESSAGE_MOST);
    struct net_texts texts = {{NULL}};
    size_t length = text ? strnlen(text, NET_MESSAGE_MOST / 2) : 0;
    if (!bytes)
        _exit(1);
    for (size_t i = 0; i < length; i++)
        if (((uint8_t)text[i] < ' ' && text[i] != '\n') || text[i] == 0x7f)
            text[i] = ' ';
    message->magic = NET_MAGIC;
    message->id = job->asked.id;
    message->lengths[place] = (uint32_t)length;
    texts.data[place] = text;
    size_t size = net_message_write(message, &texts, bytes);
    net_message_send(CHANNEL, bytes, size, descriptor);
    free(bytes);
}

void answer_done(const struct job *job, unsigned status, int descriptor, uint64_t size,
                 const char *headers) {
    struct net_message message = {.kind = NET_DONE, .status = status, .size = size};
    char *copy = strdup(headers ? headers : "");
    send_answer(job, &message, NET_ANSWERED, copy, descriptor);
    free(copy);
}

void answer_failed(const struct job *job, const char *format, ...) {
    struct net_message message = {.kind = NET_FAILED};
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    send_answer(job, &message, NET_WHY, text, -1);
}

void answer_progress(struct job *job, uint64_t size, uint64_t total) {
    struct net_message message = {.kind = NET_PROGRESS, .size = size, .total = total};
    uint64_t time = now();
    if (time - job->told < TELL_MS)
        return;
    job->told = time;
    send_answer(job, &message, NET_WHY, NULL, -1);
}

/* ---- requests ---- */

static void free_job(struct job *job) {
    for (int i = 0; i < NET_TEXTS; i++)
        free(job->texts[i]);
    if (job->body >= 0)
        close(job->body);
    free(job);
}

static struct job *take_job(const uint8_t *bytes, size_t size, int descriptor) {
    struct job *job = calloc(1, sizeof *job);
    struct net_texts texts;
    if (!job)
        _exit(1);
    job->body = descriptor;
    if (!net_message_read(bytes, size, &job->asked, &texts) ||
        job->asked.kind > NET_ASK_DEBUGINFO) {
        free_job(job);
        return NULL;
    }
    for (int i = 0; i < NET_TEXTS; i++)
        if (!(job->texts[i] = strndup(texts.data[i], job->asked.lengths[i])))
            _exit(1);
    return job;
}

static void *work(void *unused) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!first) {
            idle++;
            pthread_cond_wait(&more, &lock);
            idle--;
        }
        struct job *job = first;
        if (!(first = job->next))
            last = &first;
        busy++;
        pthread_mutex_unlock(&lock);
        job->began = now();
        if (job->asked.kind == NET_ASK_HTTP)
            do_http(job);
        else
            do_debuginfo(job);
        free_job(job);
        pthread_mutex_lock(&lock);
        busy--;
    }
    return unused;
}

static void add_job(struct job *job) {
    pthread_t thread;
    pthread_mutex_lock(&lock);
    *last = job;
    last = &job->next;
    if (idle == 0 && workers < WORKERS_MOST && pthread_create(&thread, NULL, work, NULL) == 0) {
        pthread_detach(thread);
        workers++;
    }
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
}

/* Transfers notice that wick-net ends, and remove what they were writing. */
static void end(void) {
    struct timespec moment = {.tv_nsec = 10000000};
    bool working = true;
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    for (uint64_t began = now(); working && now() - began < END_MS;) {
        pthread_mutex_lock(&lock);
        first = NULL;
        last = &first;
        working = busy > 0;
        pthread_mutex_unlock(&lock);
        if (working)
            nanosleep(&moment, NULL);
    }
    _exit(0);
}

int main(void) {
    static uint8_t bytes[NET_MESSAGE_MOST];
    int type = 0;
    socklen_t length = sizeof type;
    if (getsockopt(CHANNEL, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_SEQPACKET) {
        fputs("wick-net is for wick, which starts it\n", stderr);
        return 2;
    }
    syscall(SYS_close_range, CHANNEL + 1, ~0u, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* its memory holds credentials */
    signal(SIGPIPE, SIG_IGN);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return 1;
    for (;;) {
        int descriptor;
        size_t size = net_message_receive(CHANNEL, bytes, &descriptor);
        if (size == 0)
            end();
        struct job *job = take_job(bytes, size, descriptor);
        if (job)
            add_job(job);
    }
}
