/*
 * Connections, and how long each has been idle. One that sends its request byte by byte, or none, is closed: after a
 * while, or at once if there are many and it waited longest. The library's own timeout is between two bytes, which is
 * no limit.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "serve/http/server.h"

enum { LONGEST = 600 }; /* seconds to make and send a response */

struct connection {
    int descriptor;
    int64_t since;
    bool busy, closed;
    struct connection *before, *next;
};

struct connections {
    pthread_mutex_t lock;
    struct connection *first;
    size_t count;
};

struct connections *connections_new(void) {
    struct connections *connections = memory_zero(1, sizeof *connections);
    pthread_mutex_init(&connections->lock, NULL);
    return connections;
}

void connections_free(struct connections *connections) {
    pthread_mutex_destroy(&connections->lock);
    free(connections);
}

/* The library notices the end and frees the connection. */
static void end(struct connection *connection) {
    shutdown(connection->descriptor, SHUT_RDWR);
    connection->closed = true;
}

static void make_room(struct connections *connections) {
    struct connection *oldest = NULL;
    for (struct connection *c = connections->first; c; c = c->next)
        if (!c->busy && !c->closed && (!oldest || c->since <= oldest->since))
            oldest = c;
    if (oldest)
        end(oldest);
}

static void add(struct connections *connections, int descriptor, void **context) {
    struct connection *connection = memory_zero(1, sizeof *connection);
    *connection = (struct connection){
        .descriptor = descriptor, .since = milliseconds(), .next = connections->first};
    if (connections->count >= CONNECTIONS * 3 / 4)
        make_room(connections);
    if (connections->first)
        connections->first->before = connection;
    connections->first = connection;
    connections->count++;
    *context = connection;
}

static void take_out(struct connections *connections, struct connection *connection) {
    *(connection->before ? &connection->before->next : &connections->first) = connection->next;
    if (connection->next)
        connection->next->before = connection->before;
    connections->count--;
    free(connection);
}

void connection_notify(void *context, struct MHD_Connection *connection, void **own,
                       enum MHD_ConnectionNotificationCode what) {
    struct connections *connections = ((struct server *)context)->connections;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    pthread_mutex_lock(&connections->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED && info)
        add(connections, info->connect_fd, own);
    else if (what == MHD_CONNECTION_NOTIFY_CLOSED && *own) {
        take_out(connections, *own);
        *own = NULL;
    }
    pthread_mutex_unlock(&connections->lock);
}

void connection_busy(struct server *server, struct MHD_Connection *connection, bool busy) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *own = info ? info->socket_context : NULL;
    if (!own)
        return;
    pthread_mutex_lock(&server->connections->lock);
    own->busy = busy;
    own->since = milliseconds();
    pthread_mutex_unlock(&server->connections->lock);
}

void connections_look(struct connections *connections) {
    int64_t now = milliseconds();
    pthread_mutex_lock(&connections->lock);
    for (struct connection *c = connections->first; c; c = c->next)
        if (!c->closed && now - c->since > (c->busy ? LONGEST : SLOW) * 1000)
            end(c);
    pthread_mutex_unlock(&connections->lock);
}
