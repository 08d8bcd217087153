/* The paths below the token, and how each response is made. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "serve/http/server.h"

/* web/serve/, converted to bytes by web/embed. */
extern const struct text serve_list_page, serve_list_script, serve_ask_script, serve_style,
    serve_fleet_page, serve_fleet_script;

static const char script[] = "text/javascript; charset=utf-8", style[] = "text/css; charset=utf-8";

enum { SHARED_MOST = 1 << 30 };

/* ---- one profile ---- */

static const char *value(const struct job *job, const char *key) {
    return target_get(&job->target, key).data;
}

static int open_profile(struct server *server, struct job *job, const char *name, uint64_t *size,
                        uint64_t *mark) {
    int descriptor = name ? listing_open(server->listing, name, size, mark) : -1;
    if (descriptor < 0)
        respond_failed(job, 404, TEXT("no such profile"));
    return descriptor;
}

/* Send a page that contains its profile, if that is small enough and was not refused; otherwise one that requests
   what it shows. */
static void work_profile(struct server *server, struct job *job) {
    const char *name = value(job, "run");
    uint64_t size, mark;
    int descriptor = open_profile(server, job, name, &size, &mark);
    if (descriptor < 0)
        return;
    if (size > server->page_limit || target_get(&job->target, "ask").data) {
        close(descriptor);
        respond_asking(job);
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
        respond_asking(job);
    else if (said.status == 0)
        respond_page(server, job, &said);
    else
        respond_said(job, &said, &name, 1);
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
            respond_page(server, job, &said);
        else
            respond_said(job, &said, names, 2);
        said_release(&said);
    }
    for (int i = 0; i < 2; i++)
        if (files[i] >= 0)
            close(files[i]);
}

void question_add(const struct job *job, bool with_selection, struct buffer *question) {
    char before = '?';
    buffer_add_char(question, '/');
    buffer_add(question, job->target.parts[1]);
    for (size_t i = 0; i < job->target.value_count; i++) {
        const struct target_value *v = &job->target.values[i];
        if (text_equal(v->key, TEXT("run")) || (!with_selection && selection_has(v->key)))
            continue;
        buffer_add_char(question, before);
        target_add_encoded(question, v->key);
        buffer_add_char(question, '=');
        target_add_encoded(question, v->value);
        before = '&';
    }
    buffer_add_char(question, '\n');
}

static void work_question(struct server *server, struct job *job) {
    uint64_t size;
    char path[32];
    struct worker_of of = {.name = value(job, "run"), .mode = "--worker", .operand = path};
    job->type = type_json;
    snprintf(path, sizeof path, "/dev/fd/%d", FIRST_FILE);
    of.descriptor = of.name ? listing_open(server->listing, of.name, &size, &of.mark) : -1;
    if (of.descriptor < 0) {
        job->status = answer_error(&job->body, 404, "no such profile");
        return;
    }
    struct buffer question = {0}, body = {0};
    question_add(job, true, &question);
    job->status = workers_ask(server->workers, &of, buffer_text(&question), &body);
    respond_add_said(&job->body, buffer_text(&body), &of.name, job->status == 200 ? 0 : 1);
    buffer_release(&question);
    buffer_release(&body);
}

static void work_runs(struct server *server, struct job *job) {
    job->status = 200;
    job->type = type_json;
    listing_add(server->listing, &job->body);
}

/* The one profile that the other origin may read. It is named by its path, which the export contains. */
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

struct route {
    const char *name;
    const char *type;
    const struct text *fixed;
    void (*work)(struct server *server, struct job *job);
};

static const struct route of_files[] = {
    {"serve.css", style, &serve_style, NULL},     {"list.js", script, &serve_list_script, NULL},
    {"ask.js", script, &serve_ask_script, NULL},  {"runs", type_json, NULL, work_runs},
    {"profile", type_html, NULL, work_profile},   {"compare", type_html, NULL, work_compare},
    {"info", type_json, NULL, work_question},     {"nodes", type_json, NULL, work_question},
    {"table", type_json, NULL, work_question},    {"around", type_json, NULL, work_question},
    {"search", type_json, NULL, work_question},   {"threads", type_json, NULL, work_question},
    {"timeline", type_json, NULL, work_question}, {0},
};

static const struct route of_stores[] = {
    {"serve.css", style, &serve_style, NULL},
    {"fleet.js", script, &serve_fleet_script, NULL},
    {"ask.js", script, &serve_ask_script, NULL},
    {"flame", type_html, NULL, work_fleet_flame},
    {"compare", type_html, NULL, work_fleet_compare},
    {"movers", type_json, NULL, work_fleet_movers},
    {"span", type_json, NULL, work_fleet_question},
    {"values", type_json, NULL, work_fleet_question},
    {"heat", type_json, NULL, work_fleet_question},
    {"share", type_json, NULL, work_fleet_question},
    {"info", type_json, NULL, work_fleet_part},
    {"nodes", type_json, NULL, work_fleet_part},
    {"table", type_json, NULL, work_fleet_part},
    {"around", type_json, NULL, work_fleet_part},
    {"threads", type_json, NULL, work_fleet_part},
    {"timeline", type_json, NULL, work_fleet_part},
    {"search", type_json, NULL, work_fleet_part},
    {0},
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
    const char *only = server->store ? NULL : listing_only(server->listing);
    if (only) {
        redirect(job, only);
        return;
    }
    job->status = 200;
    job->type = type_html;
    job->policy = policy_own;
    job->fixed = server->store ? serve_fleet_page : serve_list_page;
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
    const struct route *routes = server->store ? of_stores : of_files;
    for (size_t i = 0; routes[i].name; i++) {
        if (!text_equal(job->target.parts[1], text_of(routes[i].name)))
            continue;
        job->type = routes[i].type;
        job->work = routes[i].work;
        job->status = routes[i].work ? 0 : 200;
        job->fixed = routes[i].fixed ? *routes[i].fixed : (struct text){NULL, 0};
    }
}
