/* What there is below the token, and how each is made. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "serve/http/server.h"

/* web/serve/, made into bytes by web/embed. */
extern const struct text serve_list_page, serve_list_script, serve_ask_page, serve_ask_script,
    serve_style;

static const char html[] = "text/html; charset=utf-8", json[] = "application/json",
                  script[] = "text/javascript; charset=utf-8", style[] = "text/css; charset=utf-8",
                  own_policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; "
                                 "connect-src 'self'; img-src 'self' data:; frame-src 'self'; "
                                 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

enum { MESSAGE_MOST = 2000, SHARED_MOST = 1 << 30 };

/* ---- pages of errors, for people ---- */

/* What a child said, with profiles' names in place of descriptors. */
static void add_said(struct buffer *body, struct text said, const char *const *names,
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

static void fail_with(struct job *job, int status, struct text why) {
    job->status = status;
    job->type = html;
    job->policy = own_policy;
    job->body.count = 0;
    buffer_add(&job->body,
               TEXT("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                    "<title>wick</title>\n<link rel=\"stylesheet\" href=\"serve.css\">\n"
                    "<p class=\"wrong\">"));
    buffer_add_xml(&job->body, why.length > MESSAGE_MOST ? text_upto(why, MESSAGE_MOST) : why);
    buffer_add(&job->body, TEXT("</p>\n<p><a href=\"./\">All profiles</a></p>\n</html>\n"));
}

static void fail_said(struct job *job, const struct said *said, const char *const *names,
                      size_t count) {
    struct buffer why = {0};
    add_said(&why, text_trim(buffer_text(&said->err)), names, count);
    if (said->late)
        fail_with(job, 504, TEXT("the answer took longer than --timeout allows"));
    else if (said->too_much)
        fail_with(job, 413, TEXT("the result is larger than --page-limit allows"));
    else if (said->status < 0 && !why.count)
        fail_with(job, 502, TEXT("wick ended unexpectedly while it read the profile"));
    else
        fail_with(job, 422, buffer_text(&why));
    buffer_release(&why);
}

/* ---- one profile ---- */

static const char *value(const struct job *job, const char *key) {
    return target_get(&job->target, key).data;
}

static int open_profile(struct server *server, struct job *job, const char *name, uint64_t *size,
                        uint64_t *mark) {
    int descriptor = name ? listing_open(server->listing, name, size, mark) : -1;
    if (descriptor < 0)
        fail_with(job, 404, TEXT("there is no such profile here"));
    return descriptor;
}

static void be_page(struct job *job, const struct server *server, struct said *said) {
    job->status = 200;
    job->type = html;
    job->policy = server->page_policy;
    job->body = said->out;
    said->out = (struct buffer){0};
}

static void ask_page(struct job *job) {
    job->status = 200;
    job->type = html;
    job->policy = own_policy;
    job->fixed = serve_ask_page;
}

/* A page that holds its profile, if that is small enough and was not refused, else one that asks for what it shows. */
static void work_profile(struct server *server, struct job *job) {
    const char *name = value(job, "run");
    uint64_t size, mark;
    int descriptor = open_profile(server, job, name, &size, &mark);
    if (descriptor < 0)
        return;
    if (size > server->page_limit || target_get(&job->target, "ask").data) {
        close(descriptor);
        ask_page(job);
        return;
    }
    struct said said;
    char path[32];
    snprintf(path, sizeof path, "/dev/fd/%d", FIRST_FILE);
    struct buffer subtitle = {0};
    buffer_printf(&subtitle, "--subtitle=%s", name);
    buffer_add_char(&subtitle, 0);
    const char *words[] = {server->wick, "flame", "--html", subtitle.items, "-o", "-",
                           "--",         path,    NULL};
    child_run(server, words, &descriptor, 1, server->page_limit, &said);
    buffer_release(&subtitle);
    close(descriptor);
    if (said.too_much)
        ask_page(job);
    else if (said.status == 0)
        be_page(job, server, &said);
    else
        fail_said(job, &said, &name, 1);
    said_release(&said);
}

static void work_compare(struct server *server, struct job *job) {
    const char *names[] = {value(job, "before"), value(job, "after")};
    uint64_t size, mark;
    int files[2] = {-1, -1};
    struct said said;
    char paths[2][32];
    files[0] = open_profile(server, job, names[0], &size, &mark);
    files[1] = files[0] < 0 ? -1 : open_profile(server, job, names[1], &size, &mark);
    if (files[1] >= 0) {
        for (int i = 0; i < 2; i++)
            snprintf(paths[i], sizeof paths[i], "/dev/fd/%d", FIRST_FILE + i);
        const char *words[] = {server->wick, "diff",   "--html", "-o", "-",
                               "--",         paths[0], paths[1], NULL};
        child_run(server, words, files, 2, server->page_limit, &said);
        if (said.status == 0)
            be_page(job, server, &said);
        else
            fail_said(job, &said, names, 2);
        said_release(&said);
    }
    for (int i = 0; i < 2; i++)
        if (files[i] >= 0)
            close(files[i]);
}

/* The question goes to the worker without the token and the profile's name. */
static void work_question(struct server *server, struct job *job) {
    const char *name = value(job, "run");
    uint64_t size, mark;
    job->type = json;
    int descriptor = name ? listing_open(server->listing, name, &size, &mark) : -1;
    if (descriptor < 0) {
        job->status = answer_error(&job->body, 404, "there is no such profile here");
        return;
    }
    struct buffer question = {0}, body = {0};
    buffer_add_char(&question, '/');
    buffer_add(&question, job->target.parts[1]);
    char mark_of_query = '?';
    for (size_t i = 0; i < job->target.value_count; i++) {
        const struct target_value *v = &job->target.values[i];
        if (text_equal(v->key, TEXT("run")))
            continue;
        buffer_add_char(&question, mark_of_query);
        target_add_encoded(&question, v->key);
        buffer_add_char(&question, '=');
        target_add_encoded(&question, v->value);
        mark_of_query = '&';
    }
    buffer_add_char(&question, '\n');
    job->status =
        workers_ask(server->workers, name, mark, descriptor, buffer_text(&question), &body);
    add_said(&job->body, buffer_text(&body), &name, job->status == 200 ? 0 : 1);
    buffer_release(&question);
    buffer_release(&body);
}

static void work_runs(struct server *server, struct job *job) {
    job->status = 200;
    job->type = json;
    listing_add(server->listing, &job->body);
}

/* The one profile that the other origin may read. It is named by its path, which the export has in it. */
static void work_shared(struct server *server, struct job *job) {
    struct said said;
    const char *words[] = {server->wick, "export", "--to", server->share_as,
                           "-o",         "-",      "--",   listing_only(server->listing),
                           NULL};
    child_run(server, words, NULL, 0, SHARED_MOST, &said);
    job->status = said.status == 0 ? 200 : 422;
    job->type = "application/octet-stream";
    if (said.status == 0) {
        job->body = said.out;
        said.out = (struct buffer){0};
    }
    said_release(&said);
}

/* ---- which is which ---- */

static const struct {
    const char *name;
    const char *type;
    const struct text *fixed;
    void (*work)(struct server *server, struct job *job);
} routes[] = {
    {"serve.css", style, &serve_style, NULL},    {"list.js", script, &serve_list_script, NULL},
    {"ask.js", script, &serve_ask_script, NULL}, {"runs", json, NULL, work_runs},
    {"profile", html, NULL, work_profile},       {"compare", html, NULL, work_compare},
    {"info", json, NULL, work_question},         {"nodes", json, NULL, work_question},
    {"table", json, NULL, work_question},        {"around", json, NULL, work_question},
    {"search", json, NULL, work_question},
};

static void redirect(struct job *job, const char *name) {
    struct buffer to = {0};
    buffer_add(&to, TEXT("profile?run="));
    target_add_encoded(&to, text_of(name));
    buffer_add_char(&to, 0);
    job->status = 302;
    job->location = to.items;
}

static void route_root(struct server *server, struct job *job) {
    const char *only = listing_only(server->listing);
    if (only) {
        redirect(job, only);
        return;
    }
    job->status = 200;
    job->type = html;
    job->policy = own_policy;
    job->fixed = serve_list_page;
}

void route(struct server *server, struct job *job) {
    job->status = job->is_shared ? 0 : 404;
    job->work = job->is_shared ? work_shared : NULL;
    if (job->is_shared || job->target.part_count != 2)
        return;
    if (!job->target.parts[1].length) {
        route_root(server, job);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (!text_equal(job->target.parts[1], text_of(routes[i].name)))
            continue;
        job->type = routes[i].type;
        job->work = routes[i].work;
        job->status = routes[i].work ? 0 : 200;
        job->fixed = routes[i].fixed ? *routes[i].fixed : (struct text){NULL, 0};
    }
}
