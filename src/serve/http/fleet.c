/*
 * Routes of a store. A selection is the query of the store's URL, so that the result is what `wick flame`, `wick
 * diff` and the others make of that URL, with any engine.
 */
#include <stdlib.h>

#include "serve/http/server.h"

/* Return the store's URL with the client's selection, NUL-terminated. */
static void add_url(const struct server *server, const struct job *job, const char *prefix,
                    struct buffer *url) {
    struct buffer query = {0};
    size_t end = store_url_query(server->store);
    const char *fixed = server->store[end] ? server->store + end + 1 : "";
    buffer_add(url, (struct text){server->store, end});
    selection_add(&job->target, prefix, text_of(fixed), &query);
    if (query.count)
        buffer_add_char(url, '?');
    buffer_add(url, buffer_text(&query));
    buffer_add_char(url, 0);
    buffer_release(&query);
}

void work_fleet_flame(struct server *server, struct job *job) {
    struct buffer url = {0};
    struct said said;
    add_url(server, job, "", &url);
    const char *words[] = {server->wick, "flame", "--html", "-o", "-", "--", url.items, NULL};
    if (target_get(&job->target, "ask").data) {
        respond_asking(job);
    } else {
        child_run(server, words, NULL, 0, server->page_limit, &said);
        if (said.too_much)
            respond_asking(job);
        else if (said.status == 0)
            respond_page(server, job, &said);
        else
            respond_said(job, &said, NULL, 0);
        said_release(&said);
    }
    buffer_release(&url);
}

/* Two selections: the keys of the earlier one have the prefix `before.`. */
static void compare(struct server *server, struct job *job, const char *const *options,
                    struct said *said) {
    struct buffer before = {0}, after = {0};
    add_url(server, job, "before.", &before);
    add_url(server, job, "", &after);
    const char *words[] = {server->wick, "diff", options[0],   options[1],  options[2], "-o",
                           "-",          "--",   before.items, after.items, NULL};
    child_run(server, words, NULL, 0, server->page_limit, said);
    buffer_release(&before);
    buffer_release(&after);
}

void work_fleet_compare(struct server *server, struct job *job) {
    static const char *const options[] = {"--html", "--normalize", "--quiet"};
    struct said said;
    compare(server, job, options, &said);
    if (said.status == 0)
        respond_page(server, job, &said);
    else
        respond_said(job, &said, NULL, 0);
    said_release(&said);
}

void work_fleet_movers(struct server *server, struct job *job) {
    static const char *const options[] = {"--json", "--normalize", "--quiet"};
    struct said said;
    compare(server, job, options, &said);
    job->type = type_json;
    if (said.status == 0) {
        job->status = 200;
        job->body = said.out;
        said.out = (struct buffer){0};
    } else {
        struct buffer why = {0};
        buffer_add(&why, said.err.count ? text_trim(buffer_text(&said.err))
                                        : TEXT("the answer took too long, or was too large"));
        buffer_add_char(&why, 0);
        job->status = answer_error(&job->body, said.late ? 504 : 422, why.items);
        buffer_release(&why);
    }
    said_release(&said);
}

/* There is a worker for each kind of question, so that a slow one does not delay the others. */
void work_fleet_question(struct server *server, struct job *job) {
    struct buffer question = {0}, name = {0};
    buffer_printf(&name, "%.*s?", TEXT_ARGS(job->target.parts[1]));
    buffer_add_char(&name, 0);
    struct worker_of of = {
        .name = name.items, .descriptor = -1, .mode = "--store-worker", .operand = server->store};
    question_add(job, true, &question);
    job->type = type_json;
    job->status = workers_ask(server->workers, &of, buffer_text(&question), &job->body);
    buffer_release(&question);
    buffer_release(&name);
}

/* For a selection that is too large for a page. One without an end grows with the store: it is read again after a
   minute. */
void work_fleet_part(struct server *server, struct job *job) {
    struct buffer question = {0}, url = {0};
    add_url(server, job, "", &url);
    struct worker_of of = {
        .name = url.items, .descriptor = -1, .mode = "--worker", .operand = url.items};
    if (!target_get(&job->target, "to").length)
        of.mark = (uint64_t)milliseconds() / 60000;
    question_add(job, false, &question);
    job->type = type_json;
    job->status = workers_ask(server->workers, &of, buffer_text(&question), &job->body);
    buffer_release(&question);
    buffer_release(&url);
}
