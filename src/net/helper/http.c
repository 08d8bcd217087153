/*
 * One HTTP request with libcurl. The answer is written to an unnamed file: in memory if its limit is small, otherwise
 * in $TMPDIR.
 */
#include "net/helper/helper.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REDIRECTS_MOST = 5, CONNECT_MS = 10000, HEADERS_MOST = 16384 };
static const uint64_t memory_most = 64 << 20;

struct transfer {
    struct job *job;
    int file;
    uint64_t size; /* received so far */
    uint64_t sent;
    bool too_large;
    size_t header_size;
    char headers[HEADERS_MOST + 1];
};

static int open_file(uint64_t limit) {
    const char *directory = getenv("TMPDIR");
    if (limit <= memory_most)
        return memfd_create("wick-answer", MFD_CLOEXEC);
    return open(directory && *directory ? directory : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* ---- what libcurl calls ---- */

static size_t take_body(char *data, size_t one, size_t size, void *user) {
    struct transfer *transfer = user;
    if (size > transfer->job->asked.size - transfer->size) {
        transfer->too_large = true;
        return 0;
    }
    for (size_t at = 0; at < size;) {
        ssize_t written = write(transfer->file, data + at, size - at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return 0;
        at += (size_t)written;
    }
    transfer->size += size;
    return size * one;
}

/* Keep the headers of the last answer: those of a redirect are dropped when the next answer begins. */
static size_t take_header(char *data, size_t one, size_t size, void *user) {
    struct transfer *transfer = user;
    size_t length = size;
    while (length && (data[length - 1] == '\n' || data[length - 1] == '\r'))
        length--;
    if (size > 5 && memcmp(data, "HTTP/", 5) == 0)
        transfer->header_size = 0;
    else if (length && length + 1 <= HEADERS_MOST - transfer->header_size &&
             !memchr(data, 0, length)) {
        memcpy(transfer->headers + transfer->header_size, data, length);
        transfer->header_size += length;
        transfer->headers[transfer->header_size++] = '\n';
    }
    transfer->headers[transfer->header_size] = 0;
    return size * one;
}

static size_t give_body(char *into, size_t one, size_t room, void *user) {
    struct transfer *transfer = user;
    ssize_t got;
    do
        got = pread(transfer->job->body, into, one * room, (off_t)transfer->sent);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return CURL_READFUNC_ABORT;
    transfer->sent += (uint64_t)got;
    return (size_t)got;
}

/* For a request that is resent on another connection. */
static int seek_body(void *user, curl_off_t offset, int origin) {
    struct transfer *transfer = user;
    if (origin != SEEK_SET || offset < 0)
        return CURL_SEEKFUNC_CANTSEEK;
    transfer->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static int look(void *user, curl_off_t total, curl_off_t done, curl_off_t to_send,
                curl_off_t sent) {
    struct transfer *transfer = user;
    answer_progress(transfer->job, (uint64_t)done, (uint64_t)total);
    (void)to_send, (void)sent;
    return ending();
}

/* ---- the request ---- */

/* The curl program reads these from the environment; its library does not. */
static void set_authorities(CURL *curl) {
    const char *file = getenv("CURL_CA_BUNDLE");
    if (!file || !*file)
        file = getenv("SSL_CERT_FILE");
    if (file && *file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, file);
}

/* Follow redirects only for requests without a body and credentials. */
static void set_limits(CURL *curl, const struct job *job) {
    const char *url = job->texts[NET_URL], *method = job->texts[NET_METHOD];
    bool secure = strncmp(url, "https:", 6) == 0;
    bool follows =
        (!strcmp(method, "GET") || !strcmp(method, "HEAD")) && !*job->texts[NET_CREDENTIALS];
    long milliseconds = (long)job->asked.milliseconds;
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, follows ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTS_MOST);
    curl_easy_setopt(curl, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, milliseconds);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     milliseconds < CONNECT_MS ? milliseconds : (long)CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "wick/" WICK_VERSION);
    set_authorities(curl);
}

static void set_calls(CURL *curl, struct transfer *transfer) {
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

static void set_body(CURL *curl, struct transfer *transfer) {
    const struct job *job = transfer->job;
    const char *method = job->texts[NET_METHOD];
    if (job->body >= 0 || !strcmp(method, "POST")) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                         (curl_off_t)(job->body >= 0 ? job->asked.total : 0));
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, give_body);
        curl_easy_setopt(curl, CURLOPT_READDATA, transfer);
        curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, seek_body);
        curl_easy_setopt(curl, CURLOPT_SEEKDATA, transfer);
    }
    if (!strcmp(method, "HEAD"))
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
}

static struct curl_slist *make_headers(char *lines) {
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    for (char *line; headers && (line = strsep(&lines, "\n"));) {
        struct curl_slist *longer = *line ? curl_slist_append(headers, line) : headers;
        if (!longer) {
            curl_slist_free_all(headers);
            return NULL;
        }
        headers = longer;
    }
    return headers;
}

static void run(CURL *curl, struct transfer *transfer) {
    struct job *job = transfer->job;
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (transfer->too_large)
        answer_failed(job, "the answer is larger than %llu bytes",
                      (unsigned long long)job->asked.size);
    else if (code != CURLE_OK)
        answer_failed(job, "%s", *why ? why : curl_easy_strerror(code));
    else if (status < 100 || status > 999 || lseek(transfer->file, 0, SEEK_SET) != 0)
        answer_failed(job, "no HTTP status");
    else
        answer_done(job, (unsigned)status, transfer->file, transfer->size, transfer->headers);
}

void do_http(struct job *job) {
    struct transfer *transfer = calloc(1, sizeof *transfer);
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = make_headers(job->texts[NET_HEADERS]);
    const char *why = NULL;
    if (!transfer || !curl || !headers)
        _exit(1);
    transfer->job = job;
    transfer->file = open_file(job->asked.size);
    if (transfer->file < 0)
        answer_failed(job, "a temporary file: %s", strerror(errno));
    else if (*job->texts[NET_CREDENTIALS] &&
             !add_credentials(job->texts[NET_CREDENTIALS], &headers, &why))
        answer_failed(job, "credentials file %s: %s", job->texts[NET_CREDENTIALS], why);
    else {
        curl_easy_setopt(curl, CURLOPT_URL, job->texts[NET_URL]);
        if (*job->texts[NET_SOCKET])
            curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, job->texts[NET_SOCKET]);
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        set_limits(curl, job);
        set_calls(curl, transfer);
        set_body(curl, transfer);
        run(curl, transfer);
    }
    if (transfer->file >= 0)
        close(transfer->file);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    free(transfer);
}
