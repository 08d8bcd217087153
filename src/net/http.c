/*
 * HTTP requests: the part that runs in wick.
 */
#include "net/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USUAL_MS = 30000, GRACE_MS = 2000 };
static const uint64_t usual_size = 16 << 20;

bool net_url_check(const char *url, struct error *error) {
    struct text t = text_of(url);
    struct text rest = text_starts(t, TEXT("http://"))    ? text_from(t, 7)
                       : text_starts(t, TEXT("https://")) ? text_from(t, 8)
                                                          : (struct text){0};
    if (!rest.data)
        return error_set(error, ERROR_USAGE, "%s: neither http:// nor https://", url);
    size_t host = strcspn(rest.data, "/?#\\");
    if (memchr(rest.data, '@', host)) /* not printed, because it may be a password */
        return error_set(error, ERROR_USAGE,
                         "a URL with a user name or a password is refused; use a credentials file");
    if (!host || rest.data[0] == ':')
        return error_set(error, ERROR_USAGE, "%s: no host", url);
    for (size_t i = 0; i < t.length; i++)
        if ((uint8_t)url[i] <= ' ' || url[i] == 0x7f)
            return error_set(error, ERROR_USAGE, "%s: a space or a control character at %zu", url,
                             i);
    return true;
}

/* Return a descriptor of the body; a text is written to a file, so that there is only one case. -1 means failure or
   no body. */
static int body_of(const struct net_request *request, struct error *error) {
    if (request->body_descriptor >= 0 || !request->body.length)
        return request->body_descriptor;
    int file = memfd_create("wick-body", MFD_CLOEXEC);
    for (size_t at = 0; file >= 0 && at < request->body.length;) {
        ssize_t written = write(file, request->body.data + at, request->body.length - at);
        if (written > 0)
            at += (size_t)written;
        else if (errno != EINTR) {
            error_errno(error, "a request's body");
            close(file);
            return -1;
        }
    }
    if (file < 0)
        error_errno(error, "a request's body");
    return file;
}

static bool size_of(int body, uint64_t *size, struct error *error) {
    struct stat status = {0};
    if (body >= 0 && (fstat(body, &status) != 0 || !S_ISREG(status.st_mode)))
        return error_set(error, ERROR_INTERNAL, "a request's body is no file");
    *size = (uint64_t)status.st_size;
    return true;
}

static bool check(const struct net_request *request, struct error *error) {
    if (!net_url_check(request->url, error))
        return false;
    for (size_t i = 0; i < request->headers.length; i++) {
        uint8_t c = (uint8_t)request->headers.data[i];
        if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
            return error_set(error, ERROR_USAGE, "a control character in a header");
    }
    return true;
}

static bool ask(struct net *net, const struct net_request *request, struct waiting *waiting,
                unsigned milliseconds, int body, struct error *error) {
    uint64_t size = 0;
    const char *credentials = request->credentials ? request->credentials : "",
               *path = request->socket ? request->socket : "";
    if (!size_of(body, &size, error))
        return false;
    struct net_message message = {
        .kind = NET_ASK_HTTP,
        .milliseconds = milliseconds,
        .size = request->size_limit ? request->size_limit : usual_size,
        .total = size,
        .lengths = {(uint32_t)strlen(request->method), (uint32_t)strlen(request->url),
                    (uint32_t)request->headers.length, (uint32_t)strlen(credentials),
                    (uint32_t)strlen(path)}};
    struct net_texts texts = {
        {request->method, request->url, request->headers.data, credentials, path}};
    return net_ask(net, waiting, &message, &texts, body, error);
}

/* Read the whole answer, or the reason why there is none. */
static bool take(struct net *net, struct waiting *waiting, const char *url, bool over,
                 struct net_answer *answer, struct error *error) {
    if (!over)
        return error_set(error,
                         context_cancelled(net_context(net)) ? ERROR_INTERRUPTED : ERROR_INPUT,
                         "%s: %s", url,
                         context_cancelled(net_context(net)) ? "interrupted"
                         : waiting->why.count                ? "wick-net has ended"
                                                             : "no answer in time");
    if (!waiting->came)
        return error_set(error, ERROR_INPUT, "%s: %.*s", url,
                         TEXT_ARGS(buffer_text(&waiting->why)));
    *answer = (struct net_answer){.status = waiting->status,
                                  .descriptor = waiting->descriptor,
                                  .size = waiting->size,
                                  .headers = waiting->why};
    waiting->descriptor = -1;
    waiting->why = (struct buffer){0};
    return true;
}

bool net_http(struct net *net, const struct net_request *request, struct net_answer *answer,
              struct error *error) {
    unsigned milliseconds = request->milliseconds ? request->milliseconds : USUAL_MS;
    struct waiting waiting;
    *answer = (struct net_answer){.descriptor = -1};
    if (!check(request, error))
        return false;
    int body = body_of(request, error);
    if (body < 0 && request->body.length)
        return false;
    bool good = ask(net, request, &waiting, milliseconds, body, error);
    if (body >= 0 && body != request->body_descriptor)
        close(body);
    if (!good)
        return false;
    bool over = net_wait(net, &waiting, net_now() + milliseconds + GRACE_MS, NULL, NULL);
    good = take(net, &waiting, request->url, over, answer, error);
    net_forget(net, &waiting);
    return good;
}

struct text net_header(const struct net_answer *answer, struct text name) {
    struct text rest = buffer_text(&answer->headers);
    while (rest.length) {
        struct text line = text_take_line(&rest);
        if (line.length > name.length && line.data[name.length] == ':' &&
            strncasecmp(line.data, name.data, name.length) == 0)
            return text_trim(text_from(line, name.length + 1));
    }
    return (struct text){0};
}

bool net_body(const struct net_answer *answer, uint64_t most, struct buffer *into,
              struct error *error) {
    uint64_t wanted = answer->size < most ? answer->size : most;
    char piece[16384];
    for (uint64_t at = 0; at < wanted;) {
        uint64_t size = wanted - at < sizeof piece ? wanted - at : sizeof piece;
        ssize_t got = pread(answer->descriptor, piece, size, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return error_set(error, ERROR_INPUT, "an answer ends before its end");
        buffer_add(into, (struct text){piece, (size_t)got});
        at += (uint64_t)got;
    }
    return true;
}

void net_answer_release(struct net_answer *answer) {
    if (answer->descriptor >= 0)
        close(answer->descriptor);
    answer->descriptor = -1;
    buffer_release(&answer->headers);
}
