/*
 * usage: net-client [NAME=VALUE]... METHOD URL...
 *
 * One request for each URL, at once, through the helper process beside it (or where wick is): what tests/net asks its servers with. Prints for each
 * `STATUS SIZE BODY` or `error KIND: MESSAGE`. Names: header (may be repeated), body, file, credentials, socket, ms, size, show (a header of the
 * answer).
 */
#include "net/net.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct client {
    struct net *net;
    struct net_request request;
    struct buffer headers;
    struct text show;
    char **urls;
    struct buffer *said;
};

static void ask(void *user, unsigned worker, size_t item) {
    struct client *client = user;
    struct net_request request = client->request;
    struct net_answer answer;
    struct error error;
    request.url = client->urls[item];
    if (!net_http(client->net, &request, &answer, &error)) {
        buffer_printf(&client->said[item], "error %d: %s", error.kind, error.message);
        return;
    }
    buffer_printf(&client->said[item], "%u %llu ", answer.status, (unsigned long long)answer.size);
    if (client->show.length)
        buffer_add(&client->said[item], net_header(&answer, client->show));
    else
        net_body(&answer, 200, &client->said[item], &error);
    net_answer_release(&answer);
}

static bool set(struct client *client, char *word) {
    struct net_request *request = &client->request;
    char *value = strchr(word, '=');
    if (!value)
        return false;
    *value++ = 0;
    if (!strcmp(word, "header"))
        buffer_printf(&client->headers, "%s%s", client->headers.count ? "\n" : "", value);
    else if (!strcmp(word, "body"))
        request->body = text_of(value);
    else if (!strcmp(word, "file"))
        request->body_descriptor = open(value, O_RDONLY | O_CLOEXEC);
    else if (!strcmp(word, "credentials"))
        request->credentials = value;
    else if (!strcmp(word, "socket"))
        request->socket = value;
    else if (!strcmp(word, "ms"))
        request->milliseconds = (unsigned)atoi(value);
    else if (!strcmp(word, "size"))
        request->size_limit = strtoull(value, NULL, 10);
    else if (!strcmp(word, "show"))
        client->show = text_of(value);
    return true;
}

int main(int count, char **words) {
    struct client client = {.request = {.body_descriptor = -1}};
    struct error error;
    int at = 1;
    while (at < count && set(&client, words[at]))
        at++;
    if (at + 1 >= count)
        return 2;
    client.request.method = words[at++];
    client.request.headers = buffer_text(&client.headers);
    client.urls = words + at;
    client.said = memory_zero((size_t)(count - at), sizeof *client.said);
    if (!(client.net = net_start(NULL, NULL, &error))) {
        printf("error %d: %s\n", error.kind, error.message);
        free(client.said);
        buffer_release(&client.headers);
        return error.kind;
    }
    parallel_run((unsigned)(count - at), (size_t)(count - at), ask, &client);
    for (int i = 0; i < count - at; i++) {
        printf("%.*s\n", TEXT_ARGS(buffer_text(&client.said[i])));
        buffer_release(&client.said[i]);
    }
    net_stop(client.net);
    free(client.said);
    buffer_release(&client.headers);
    return 0;
}
