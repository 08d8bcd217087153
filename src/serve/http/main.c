/*
 * wick-serve: started by `wick serve`, which has parsed the command line. Its arguments are `name=value`, then `--`
 * and the operands.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/http/server.h"

extern char **environ;
extern const struct text page_script_text; /* the view's page */

static int fail(int status, const char *what, const char *why) {
    struct buffer shown = {0};
    buffer_add_shown(&shown, text_of(what));
    fprintf(stderr, "wick: %.*s: %s\n", TEXT_ARGS(buffer_text(&shown)), why);
    buffer_release(&shown);
    return status;
}

/* ---- words ---- */

static uint64_t number(struct text value) {
    uint64_t result = 0;
    text_to_u64(value, &result);
    return result;
}

static bool take_word(struct server *server, const char *word) {
    size_t equals = text_find(text_of(word), '=');
    if (equals == SIZE_MAX)
        return false;
    struct text name = {word, equals};
    const char *text = word + equals + 1;
    struct text value = text_of(text);
    const struct {
        const char *name;
        const char **target;
    } texts[] = {{"wick", &server->wick},
                 {"socket", &server->socket_path},
                 {"store", &server->store},
                 {"token-file", &server->token_file},
                 {"trust-header", &server->trust_header},
                 {"share-with", &server->share_with},
                 {"share-as", &server->share_as}};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (text_equal(name, text_of(texts[i].name))) {
            *texts[i].target = text;
            return true;
        }
    if (text_equal(name, TEXT("port")))
        server->port = (uint32_t)number(value);
    else if (text_equal(name, TEXT("page-limit")))
        server->page_limit = number(value);
    else if (text_equal(name, TEXT("timeout")))
        server->timeout = (uint32_t)number(value);
    else if (text_equal(name, TEXT("idle-timeout")))
        server->idle_timeout = (uint32_t)number(value);
    else if (text_equal(name, TEXT("open")))
        server->open_browser = number(value);
    else if (text_equal(name, TEXT("no-sandbox")))
        server->no_sandbox = number(value);
    else
        return false;
    return true;
}

/* Return 0, or an exit status. */
static int open_roots(struct server *server, int count, char **paths) {
    for (int i = 0; i < count; i++) {
        struct stat status;
        struct root root = {paths[i], -1};
        if (stat(paths[i], &status) != 0)
            return fail(ERROR_INPUT, paths[i], strerror(errno));
        if (S_ISDIR(status.st_mode)) {
            int directory = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            if (directory < 0)
                return fail(ERROR_INPUT, paths[i], strerror(errno));
            int recording = found_open(directory, ".", true);
            if (recording >= 0) { /* a run is one profile */
                close(recording);
                close(directory);
            } else {
                root.directory = directory;
            }
        } else if (!S_ISREG(status.st_mode)) {
            return fail(ERROR_INPUT, paths[i], "neither a file nor a directory");
        }
        vector_push(&server->roots, root);
    }
    return 0;
}

/* ---- tokens ---- */

static bool make_token(char *token) {
    unsigned char bytes[TOKEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* Make a token that others can neither read nor guess. */
static const char *token_fault(int file, struct text token) {
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        return "not a file";
    if (!user_is_trusted(status.st_uid) || status.st_mode & 077)
        return "others can read or write it; chmod 600 and make it yours";
    if (token.length < TOKEN / 2)
        return "the token in it is shorter than 16 characters";
    for (size_t i = 0; i < token.length; i++)
        if (!strchr("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_",
                    token.data[i]))
            return "the token in it has other characters than letters, digits and _";
    return NULL;
}

/* Read it from the file, or make it and write the file if it does not exist. */
static int find_token(struct server *server) {
    char text[sizeof server->token + 1];
    const char *path = server->token_file;
    if (!make_token(server->token) || !make_token(server->share_token))
        return fail(ERROR_DENIED, "getrandom", strerror(errno));
    if (!path)
        return 0;
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file >= 0) {
        bool fine = write(file, server->token, TOKEN) == TOKEN && write(file, "\n", 1) == 1;
        fine = close(file) == 0 && fine;
        return fine ? 0 : fail(ERROR_INPUT, path, strerror(errno));
    }
    file = errno == EEXIST ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
    if (file < 0)
        return fail(ERROR_INPUT, path, strerror(errno));
    ssize_t size = read(file, text, sizeof text - 1);
    struct text token = text_trim((struct text){text, size > 0 ? (size_t)size : 0});
    const char *why = token_fault(file, token);
    close(file);
    if (!why && token.length >= sizeof server->token)
        why = "the token in it is longer than 128 characters";
    if (why)
        return fail(ERROR_INPUT, path, why);
    snprintf(server->token, sizeof server->token, "%.*s", TEXT_ARGS(token));
    return 0;
}

/* Allow the page's one script, by its hash; anything else that a profile might inject does not run. */
static void make_policy(struct server *server) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buffer content = {0};
    char hex[65], base64[48] = "";
    unsigned char bytes[33] = {0};
    buffer_add_char(&content, '\n');
    buffer_add(&content, page_script_text);
    sha256_hex((const uint8_t *)content.items, content.count, hex);
    buffer_release(&content);
    for (size_t i = 0; i < 32; i++)
        bytes[i] = (unsigned char)strtoul((char[3]){hex[2 * i], hex[2 * i + 1], 0}, NULL, 16);
    for (size_t i = 0; i < 33; i += 3) {
        uint32_t bits = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];
        for (size_t k = 0; k < 4; k++)
            base64[i / 3 * 4 + k] = digits[bits >> (18 - 6 * k) & 63];
    }
    snprintf(server->page_policy, sizeof server->page_policy,
             "default-src 'none'; script-src 'sha256-%.43s='; style-src 'unsafe-inline'; "
             "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
             base64);
}

/* ---- listening ---- */

static int listen_on_port(struct server *server) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)server->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener < 0)
        return -1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        int failed = errno;
        close(listener);
        errno = failed;
        return -1;
    }
    server->port = ntohs(address.sin_port);
    return listener;
}

/* Replace a socket without a listener, but no other file. */
static bool remove_stale(const struct sockaddr_un *address) {
    struct stat status;
    if (lstat(address->sun_path, &status) != 0)
        return errno == ENOENT;
    errno = EEXIST;
    if (!S_ISSOCK(status.st_mode))
        return false;
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool used = connect(probe, (const struct sockaddr *)address, sizeof *address) == 0 ||
                errno != ECONNREFUSED;
    close(probe);
    errno = EADDRINUSE;
    return !used && unlink(address->sun_path) == 0;
}

static int listen_on_path(struct server *server) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(server->socket_path);
    if (length >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, server->socket_path, length + 1);
    if (!remove_stale(&address))
        return -1;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0177);
    bool fine = listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
                listen(listener, 64) == 0;
    umask(before);
    if (!fine && listener >= 0)
        close(listener);
    return fine ? listener : -1;
}

static size_t keep_encoded(void *context, struct MHD_Connection *connection, char *text) {
    return strlen(text);
}

static void stay_silent(void *context, const char *format, va_list list) {}

static bool start(struct server *server, int listener) {
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_ALLOW_SUSPEND_RESUME |
            MHD_USE_ERROR_LOG,
        0, NULL, NULL, request_answer, server, MHD_OPTION_EXTERNAL_LOGGER, stay_silent, NULL,
        MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)32768,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, keep_encoded, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, request_begin, server, MHD_OPTION_NOTIFY_COMPLETED,
        request_end, server, MHD_OPTION_NOTIFY_CONNECTION, connection_notify, server,
        MHD_OPTION_END);
    return server->daemon != NULL;
}

/* ---- saying where it is ---- */

static void add_url(const struct server *server, const char *token, struct buffer *url) {
    if (server->socket_path)
        buffer_printf(url, "http://localhost/%s/", token);
    else
        buffer_printf(url, "http://127.0.0.1:%u/%s/", server->port, token);
}

static void print_shared(const struct server *server) {
    struct buffer url = {0}, whole = {0};
    add_url(server, server->share_token, &url);
    buffer_add(&url, TEXT("profile"));
    if (strcmp(server->share_as, "speedscope") == 0)
        buffer_printf(&whole, "%s/#profileURL=", server->share_with);
    else if (strcmp(server->share_as, "firefox") == 0)
        buffer_printf(&whole, "%s/from-url/", server->share_with);
    for (size_t i = 0; i < url.count; i++)
        if (whole.count && (url.items[i] == '/' || url.items[i] == ':'))
            buffer_printf(&whole, "%%%02X", (unsigned char)url.items[i]);
        else if (whole.count)
            buffer_add_char(&whole, url.items[i]);
    printf("for %s: %.*s\n", server->share_with,
           TEXT_ARGS(buffer_text(whole.count ? &whole : &url)));
    buffer_release(&url);
    buffer_release(&whole);
}

static void print_where(const struct server *server) {
    struct buffer url = {0};
    add_url(server, server->token, &url);
    if (server->socket_path)
        printf("%s: ", server->socket_path);
    printf("%.*s\n", TEXT_ARGS(buffer_text(&url)));
    if (server->share_with)
        print_shared(server);
    fflush(stdout);
    buffer_release(&url);
}

/* Use a private file that redirects there, because all users can see a process's arguments. Return the file's path,
   or NULL. */
static char *open_browser(const struct server *server) {
    const char *directory = getenv("XDG_RUNTIME_DIR");
    struct buffer path = {0}, text = {0};
    pid_t child;
    if (geteuid() == 0) {
        fputs("wick: --open: no browser is opened as root\n", stderr);
        return NULL;
    }
    buffer_printf(&path, "%s/wick-XXXXXX.html", directory && *directory ? directory : "/tmp");
    buffer_add_char(&path, 0);
    int file = mkostemps(path.items, 5, O_CLOEXEC); /* 0600 */
    buffer_add(&text,
               TEXT("<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"referrer\" "
                    "content=\"no-referrer\"><meta http-equiv=\"refresh\" content=\"0;url="));
    add_url(server, server->token, &text);
    buffer_add(&text, TEXT("\">\n"));
    const char *words[] = {"xdg-open", path.items, NULL};
    bool fine = file >= 0 && write(file, text.items, text.count) == (ssize_t)text.count;
    int failed =
        fine ? posix_spawnp(&child, words[0], NULL, NULL, (char *const *)words, environ) : errno;
    if (failed)
        fprintf(stderr, "wick: --open: xdg-open: %s\n", strerror(failed));
    if (file >= 0)
        close(file);
    buffer_release(&text);
    if (file >= 0)
        return path.items;
    buffer_release(&path);
    return NULL;
}

/* ---- until it ends ---- */

static void wait_for_end(struct server *server, const sigset_t *signals) {
    while (true) {
        int got = sigtimedwait(signals, NULL, &(struct timespec){1, 0});
        if (got > 0)
            return;
        connections_look(server->connections);
        if (server->idle_timeout &&
            milliseconds() - server->last_request > (int64_t)server->idle_timeout * 1000)
            return;
    }
}

static int serve(struct server *server, const sigset_t *signals) {
    int listener = server->socket_path ? listen_on_path(server) : listen_on_port(server);
    if (listener < 0)
        return fail(ERROR_DENIED, server->socket_path ? server->socket_path : "127.0.0.1",
                    strerror(errno));
    server->connections = connections_new();
    server->listing = listing_new(server);
    server->workers = workers_new(server);
    server->jobs = jobs_new(server);
    server->last_request = milliseconds();
    char *opened = NULL;
    bool started = start(server, listener);
    if (started) {
        print_where(server);
        opened = server->open_browser ? open_browser(server) : NULL;
        wait_for_end(server, signals);
        MHD_quiesce_daemon(server->daemon);
    }
    server->ending = true;
    jobs_free(server->jobs);
    if (started)
        MHD_stop_daemon(server->daemon);
    close(listener);
    workers_free(server->workers);
    listing_free(server->listing);
    connections_free(server->connections);
    if (server->socket_path)
        unlink(server->socket_path);
    if (opened)
        unlink(opened);
    free(opened);
    return started ? 0 : fail(ERROR_DENIED, "HTTP", "the server could not be started");
}

int main(int argc, char **argv) {
    struct server server = {.timeout = 120, .page_limit = 64u << 20};
    int at = 1, status;
    while (at < argc && strcmp(argv[at], "--") != 0 && take_word(&server, argv[at]))
        at++;
    if (at + !server.store >= argc || strcmp(argv[at], "--") != 0 || !server.wick)
        return fail(ERROR_USAGE, "wick-serve", "started by wick serve, not by hand");
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    status = open_roots(&server, argc - at - 1, argv + at + 1);
    if (!status && server.share_with && server.roots.items[0].directory >= 0)
        status = fail(ERROR_USAGE, server.roots.items[0].path, "--share-with shares one FILE");
    if (!status)
        status = find_token(&server);
    if (!status) {
        make_policy(&server);
        status = serve(&server, &signals);
    }
    for (size_t i = 0; i < server.roots.count; i++)
        if (server.roots.items[i].directory >= 0)
            close(server.roots.items[i].directory);
    vector_release(&server.roots);
    return status;
}
