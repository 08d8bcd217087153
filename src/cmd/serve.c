/*
 * wick serve: parse the command line and exec wick-serve, which speaks HTTP. wick-serve starts `wick serve --worker
 * FILE`, which reads that profile and answers questions about it, and `wick serve --store-worker URL`, which does the
 * same for a store.
 */
#include "cmd/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "serve/serve.h"

struct serve_command {
    struct request request;
    uint32_t port, timeout, idle_timeout;
    uint64_t page_limit;
    const char *socket_path, *token_file, *trust_header, *share_with, *share_as;
    bool open_browser;
};

#define HERE(member) IN(struct serve_command, member)
static const struct option options_where[] = {
    {"port", 'p', OPTION_COUNT, HERE(port), "N", "port on 127.0.0.1 (default: any free port)"},
    {"socket", 0, OPTION_TEXT, HERE(socket_path), "PATH",
     "listen on a Unix socket instead; only you can use it (mode 0600)"},
    {"open", 0, OPTION_FLAG, HERE(open_browser), NULL, "open the page in a browser; not as root"},
    {0},
};
static const struct option options_who[] = {
    {"token-file", 0, OPTION_TEXT, HERE(token_file), "FILE",
     "read the token from FILE, or store a new one there, so that the URL stays the same"},
    {"trust-header", 0, OPTION_TEXT, HERE(trust_header), "NAME",
     "accept requests for /-/ with this header instead of the token; a proxy must set it for "
     "authenticated users only"},
    OPTION_CREDENTIALS,
    {"share-with", 0, OPTION_TEXT, HERE(share_with), "ORIGIN",
     "let this origin, such as https://www.speedscope.app or https://profiler.firefox.com, fetch "
     "FILE"},
    {"share-as", 0, OPTION_TEXT, HERE(share_as), "FORMAT",
     "format for --share-with, as in wick export (default: what ORIGIN reads, if known)",
     "speedscope firefox pprof cpuprofile chrome otlp callgrind"},
    {0},
};
static const struct option options_limits[] = {
    {"page-limit", 0, OPTION_COUNT64, HERE(page_limit), "BYTES",
     "send larger profiles in parts, as the page needs them (default: 64 MiB)"},
    {"timeout", 0, OPTION_COUNT, HERE(timeout), "SECONDS",
     "time limit for an answer (default: 120)"},
    {"idle-timeout", 0, OPTION_COUNT, HERE(idle_timeout), "SECONDS",
     "exit after this time without a request (default: never)"},
    OPTION_NO_SANDBOX,
    {0},
};
static const struct option_group groups[] = {
    {"Where", options_where}, {"Who may ask", options_who}, {"Limits", options_limits}, {0}};

static const struct syntax syntax = {
    "serve",
    "FILE…|DIR…|STORE",
    "Serve profiles as web pages on this machine only. Prints a URL with a secret token and\nruns "
    "until Ctrl-C. For a directory, it lists the profiles and runs below it; for a store\n(see "
    "wick push), you choose service, version, host and time. Profiles that are too large for\none "
    "page are read here, and the page fetches what it shows.",
    groups,
    .examples = "wick serve wick-out                    # all runs; open the address it prints\n"
                "wick serve fleet.db                    # services, versions and hosts over time\n"
                "wick serve --open perf.data\n"
                "wick serve x.wick --share-with https://www.speedscope.app\n"
                "wick serve --socket /run/wick.sock --trust-header X-Remote-User profiles",
};

/* ---- the worker ---- */

static uint64_t samples_of(const struct tree *tree) {
    uint64_t samples = 0;
    for (size_t i = 1; i < tree->cells.count; i++)
        samples += tree->cells.items[i].samples;
    return samples;
}

static int ask(void *user, const struct target *question, struct buffer *body) {
    return chooser_ask(user, question, body);
}

struct part_maker {
    struct request *request;
    const struct source *source;
};

/* Make the flame of a part of the tree. Notes are dropped: they were already made for the whole. */
static struct flame *make_part(void *user, const struct tree *tree, struct error *error) {
    struct part_maker *maker = user;
    struct source source = *maker->source;
    struct tree part = *tree;
    struct notes notes = {0};
    source.tree = &part;
    struct flame *flame = make_flame(maker->request, &source, &notes, error);
    notes_release(&notes);
    return flame;
}

/* A worker reads only its operand, and answers over pipes. */
static bool confine_worker(struct request *request, const char *operand, struct error *error) {
    request->syntax = &syntax;
    vector_push(&request->operands, operand);
    return confine(request, NULL, &(struct confine_more){.network = true}, error);
}

/* Make the same flame as `wick flame` does. */
static int work(struct request *request, const char *path) {
    struct source source;
    struct error error;
    struct notes notes = {0};
    request_settle(request);
    group_threads(request);
    request->import.profile.keep_samples = request->import.timed_only = true;
    if (!confine_worker(request, path, &error) || !request_open(request, &source, &path, 1, &error))
        return fail(&error);
    struct flame *flame = make_flame(request, &source, &notes, &error);
    struct answers answers = {.flame = flame,
                              .kind = source.profile  ? "perf.data"
                                      : source.format ? source.format->name
                                                      : "text",
                              .samples = samples_of(source.tree),
                              .notes = &notes};
    bool fine = flame && answers_begin(&answers, &error);
    if (fine) {
        struct part_maker maker = {request, &source};
        struct chooser chooser = {
            .tree = source.tree, .all = &answers, .make = make_part, .user = &maker};
        notes_sort(&notes);
        chooser_begin(&chooser);
        answers_serve(ask, &chooser);
        chooser_end(&chooser);
    }
    answers_end(&answers);
    flame_free(flame);
    notes_release(&notes);
    source_close(&source);
    return fine ? 0 : fail(&error);
}

static int ask_store(void *user, const struct target *question, struct buffer *body) {
    return fleet_ask(user, question, body);
}

/* The same for a store. Credentials are in the environment, which children inherit. */
static int work_for_store(struct request *request, const char *url) {
    size_t end = store_url_query(url);
    char *plain = memory_copy(url, end);
    struct error error;
    bool confined = confine_worker(request, url, &error);
    struct store_options options = {.context = &request->context, .net = request->import.store_net};
    struct fleet fleet = {.store = confined ? store_open(plain, &options, &error) : NULL,
                          .fixed = text_of(url[end] ? url + end + 1 : "")};
    if (fleet.store)
        answers_serve(ask_store, &fleet);
    store_close(fleet.store);
    free(plain);
    return fleet.store ? 0 : fail(&error);
}

/* ---- the server ---- */

static bool is_store(const char *path) {
    char beginning[32];
    if (store_is_url(text_of(path)))
        return true;
    char *plain = memory_copy(path, store_url_query(path));
    int descriptor = open(plain, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    free(plain);
    ssize_t size = descriptor >= 0 ? read(descriptor, beginning, sizeof beginning) : 0;
    if (descriptor >= 0)
        close(descriptor);
    return size > 0 && store_is_file((struct text){beginning, (size_t)size});
}

/* Find it beside the program (in a build directory), or where it is installed. */
static bool find_server(const char *self, char *path, size_t size) {
    const char *slash = strrchr(self, '/');
    int length = slash ? (int)(slash - self) : 0;
    snprintf(path, size, "%.*s/wick-serve", length, self);
    if (access(path, X_OK) == 0)
        return true;
    snprintf(path, size, "%.*s/../libexec/wick/wick-serve", length, self);
    if (access(path, X_OK) == 0)
        return true;
    snprintf(path, size, WICK_LIBEXEC_DIR "/wick-serve");
    return access(path, X_OK) == 0;
}

typedef VECTOR(const char *) word_list;

static void add_word(struct serve_command *c, word_list *words, const char *name,
                     const char *value) {
    struct buffer word = {0};
    if (!value)
        return;
    buffer_printf(&word, "%s=%s", name, value);
    vector_push(words, arena_copy(&c->request.arena, buffer_text(&word)).data);
    buffer_release(&word);
}

static void add_number(struct serve_command *c, word_list *words, const char *name,
                       uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    add_word(c, words, name, value ? text : NULL);
}

static int become_server(struct serve_command *c, const char *self, const char *server) {
    word_list words = {0};
    vector_push(&words, server);
    add_word(c, &words, "wick", self);
    add_number(c, &words, "port", c->port);
    add_word(c, &words, "socket", c->socket_path);
    add_word(c, &words, "token-file", c->token_file);
    add_word(c, &words, "trust-header", c->trust_header);
    add_word(c, &words, "share-with", c->share_with);
    add_word(c, &words, "share-as", c->share_as);
    add_number(c, &words, "page-limit", c->page_limit);
    add_number(c, &words, "timeout", c->timeout);
    add_number(c, &words, "idle-timeout", c->idle_timeout);
    add_number(c, &words, "open", c->open_browser);
    add_number(c, &words, "no-sandbox", c->request.no_sandbox);
    const char *store =
        is_store(c->request.operands.items[0]) ? c->request.operands.items[0] : NULL;
    add_word(c, &words, "store", store);
    if (c->request.import.store_credentials)
        setenv("WICK_STORE_CREDENTIALS", c->request.import.store_credentials, 1);
    vector_push(&words, "--");
    for (size_t i = 0; !store && i < c->request.operands.count; i++)
        vector_push(&words, c->request.operands.items[i]);
    vector_push(&words, NULL);
    execv(server, (char *const *)words.items);
    struct error error;
    error_set(&error, ERROR_DENIED, "%s: %s", server, strerror(errno));
    vector_release(&words);
    return fail(&error);
}

/* Return the format that pages of this origin read, if known. */
static const char *format_of(const char *origin) {
    return strstr(origin, "speedscope") ? "speedscope"
           : strstr(origin, "firefox")  ? "firefox"
                                        : NULL;
}

/* Return 0, or the exit status if options contradict each other. */
static int check(struct serve_command *c) {
    if (!c->request.operands.count)
        return fail_usage("serve", "nothing to serve: wick serve wick-out");
    for (size_t i = 0; i < c->request.operands.count; i++)
        if (is_store(c->request.operands.items[i]) &&
            (c->request.operands.count > 1 || c->share_with))
            return fail_usage("serve", "%s: a store must be the only operand and cannot be shared",
                              c->request.operands.items[i]);
    if (c->port > 65535)
        return fail_usage("serve", "--port %u: at most 65535", c->port);
    if (c->port && c->socket_path)
        return fail_usage("serve", "--port and --socket exclude each other");
    if (c->socket_path && c->open_browser)
        return fail_usage("serve", "--open: browsers do not open Unix sockets");
    if (c->share_as && !c->share_with)
        return fail_usage("serve", "--share-as needs --share-with");
    if (c->trust_header && !header_can_be_trusted(text_of(c->trust_header)))
        return fail_usage("serve", "--trust-header %s: any page can send that header",
                          c->trust_header);
    if (!c->share_with)
        return 0;
    if (!origin_is_whole(text_of(c->share_with)))
        return fail_usage("serve", "--share-with %s: not an origin such as https://example.org",
                          c->share_with);
    if (c->request.operands.count != 1)
        return fail_usage("serve", "--share-with shares one FILE");
    if (!c->share_as)
        c->share_as = format_of(c->share_with);
    if (!c->share_as)
        return fail_usage("serve", "--share-with %s: name the format with --share-as",
                          c->share_with);
    return 0;
}

static int run(void *command, int argc, char **argv) {
    struct serve_command *c = command;
    int status = 0;
    char self[4096], server[5000];
    struct error error;
    if (argc == 4 && strcmp(argv[1], "--no-sandbox") == 0) {
        c->request.no_sandbox = true;
        argc--, argv++;
    }
    if (argc == 3 && strcmp(argv[1], "--worker") == 0)
        return work(&c->request, argv[2]);
    if (argc == 3 && strcmp(argv[1], "--store-worker") == 0)
        return work_for_store(&c->request, argv[2]);
    if (!options_parse(&syntax, command, argc, argv, &status) || (status = check(c)))
        return status;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    if (length <= 0)
        error_set(&error, ERROR_DENIED, "/proc/self/exe can't be read: is /proc mounted?");
    else if (!find_server(self, server, sizeof server))
        error_set(&error, ERROR_DENIED,
                  "wick-serve was found neither beside wick nor in " WICK_LIBEXEC_DIR
                  ": this wick was built without libmicrohttpd (Debian: libmicrohttpd-dev)");
    else
        return become_server(c, self, server);
    return fail(&error);
}

const struct command command_serve = {"serve", "serve profiles as web pages on this machine",
                                      sizeof(struct serve_command), run, .group = GROUP_LOOK};
