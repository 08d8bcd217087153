/* Responses that several routes use: pages, and error messages for people. */
#include <stdio.h>

#include "serve/http/server.h"

extern const struct text serve_ask_page;

enum { MESSAGE_MOST = 2000 };

const char type_html[] = "text/html; charset=utf-8", type_json[] = "application/json",
           policy_own[] = "default-src 'none'; script-src 'self'; style-src 'self'; "
                          "connect-src 'self'; img-src 'self' data:; frame-src 'self'; "
                          "base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/* Append a child's output, with profiles' names in place of descriptors. */
void respond_add_said(struct buffer *body, struct text said, const char *const *names,
                      size_t count) {
    char path[32];
    while (said.length) {
        size_t best = SIZE_MAX, which = 0, length = 0;
        for (size_t i = 0; i < count; i++) {
            int size = snprintf(path, sizeof path, "/dev/fd/%zu", FIRST_FILE + i);
            size_t at = text_search(said, (struct text){path, (size_t)size});
            if (at < best) {
                best = at;
                which = i;
                length = (size_t)size;
            }
        }
        buffer_add(body, best == SIZE_MAX ? said : text_upto(said, best));
        if (best == SIZE_MAX)
            return;
        buffer_add(body, text_of(names[which]));
        said = text_from(said, best + length);
    }
}

void respond_failed(struct job *job, int status, struct text why) {
    job->status = status;
    job->type = type_html;
    job->policy = policy_own;
    job->body.count = 0;
    buffer_add(&job->body,
               TEXT("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                    "<title>wick</title>\n<link rel=\"stylesheet\" href=\"serve.css\">\n"
                    "<p class=\"wrong\">"));
    buffer_add_xml(&job->body, why.length > MESSAGE_MOST ? text_upto(why, MESSAGE_MOST) : why);
    buffer_add(&job->body, TEXT("</p>\n<p><a href=\"./\">All profiles</a></p>\n</html>\n"));
}

void respond_said(struct job *job, const struct said *said, const char *const *names,
                  size_t count) {
    struct buffer why = {0};
    respond_add_said(&why, text_trim(buffer_text(&said->err)), names, count);
    if (said->late)
        respond_failed(job, 504, TEXT("the answer took longer than --timeout allows"));
    else if (said->too_much)
        respond_failed(job, 413, TEXT("the result is larger than --page-limit allows"));
    else if (said->status < 0 && !why.count)
        respond_failed(job, 502, TEXT("wick ended unexpectedly while it read the profile"));
    else
        respond_failed(job, 422, buffer_text(&why));
    buffer_release(&why);
}

void respond_page(const struct server *server, struct job *job, struct said *said) {
    job->status = 200;
    job->type = type_html;
    job->policy = server->page_policy;
    job->body = said->out;
    said->out = (struct buffer){0};
}

void respond_asking(struct job *job) {
    job->status = 200;
    job->type = type_html;
    job->policy = policy_own;
    job->fixed = serve_ask_page;
}
