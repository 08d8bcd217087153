/* wick agent: settings from a file and from options, then agent_run(). */
#include "cmd/cmd.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "cmd/confine.h"

struct agent_command {
    struct request request;
    struct agent_options agent;
    const char *config, *store, *credentials, *spool, *metrics, *call_graph, *off_cpu;
    text_list settings;
    uint64_t frequency;
    double window, batch, duration;
    bool check;
};

static const struct option options_agent[] = {
    {"store", 0, OPTION_TEXT, IN(struct agent_command, store), "URL",
     "store to send profiles to: a file (fleet.db), clickhouse://HOST/DATABASE or clickhouses://…"},
    {"credentials", 0, OPTION_TEXT, IN(struct agent_command, credentials), "FILE",
     "file with USER:PASSWORD for the store"},
    {"config", 0, OPTION_TEXT, IN(struct agent_command, config), "FILE",
     "configuration file (default: /etc/wick/agent.conf, if it exists)"},
    {"set", 0, OPTION_LIST, IN(struct agent_command, settings), "'KEY = VALUE'",
     "set one value, as in the configuration file; may be repeated"},
    {"spool", 0, OPTION_TEXT, IN(struct agent_command, spool), "DIR",
     "directory for batches that the store has not accepted yet"},
    {"metrics", 0, OPTION_TEXT, IN(struct agent_command, metrics), "ADDRESS",
     "serve /metrics and /healthz at 127.0.0.1:PORT or unix:PATH"},
    {"check", 0, OPTION_FLAG, IN(struct agent_command, check), NULL,
     "print the effective settings and exit"},
    OPTION_NO_SANDBOX,
    {0},
};

static const struct option options_agent_sampling[] = {
    {"frequency", 'F', OPTION_COUNT64, IN(struct agent_command, frequency), "HZ",
     "samples per second and CPU (default: 19)"},
    {"call-graph", 'g', OPTION_TEXT, IN(struct agent_command, call_graph), "HOW",
     "how to record stacks: dwarf[,SIZE] or fp (default: dwarf,16384)", "dwarf fp"},
    {"off-cpu", 0, OPTION_TEXT, IN(struct agent_command, off_cpu), "1/N",
     "also record where threads wait: one in N waits, chosen at random and counted as N (BPF; "
     "default: off)",
     "off 1/1 1/10 1/100"},
    {"window", 0, OPTION_AMOUNT, IN(struct agent_command, window), "SECONDS",
     "length of a window, which is the resolution in time (default: 10)"},
    {"batch", 0, OPTION_AMOUNT, IN(struct agent_command, batch), "SECONDS",
     "interval between batches (default: 60)"},
    {"duration", 0, OPTION_AMOUNT, IN(struct agent_command, duration), "SECONDS",
     "stop after SECONDS (default: run until Ctrl-C or SIGTERM)"},
    {"quiet", 'q', OPTION_FLAG, ASKED(quiet), NULL, "print only errors"},
    {0},
};

static const struct option_group groups[] = {
    {"Store", options_agent}, {"Sampling", options_agent_sampling}, {0}};

static const struct syntax syntax = {
    "agent",
    "--store URL",
    "Profile the whole machine all the time, at 1 to 2 % of it, and send the profiles to a\n"
    "store. Batches wait in a spool directory until the store has them; a store that is down\n"
    "loses nothing that fits the spool. Look at the result with wick serve, or with any command\n"
    "that reads profiles: wick flame 'fleet.db?service=api&from=-1h'.",
    groups,
    .examples = "wick agent --store fleet.db                # on one machine\n"
                "wick agent --config agent.conf --check      # what it would do\n"
                "wick agent --config agent.conf              # as a service",
};

/* ---- settings ---- */

static bool set(struct agent_command *c, struct error *error, const char *format, ...)
    PRINTF_LIKE(3, 4);
static bool set(struct agent_command *c, struct error *error, const char *format, ...) {
    va_list list;
    size_t size;
    va_start(list, format);
    char *line = memory_print(&size, format, list);
    va_end(list);
    bool fine = agent_set(&c->agent, (struct text){line, size}, error);
    free(line);
    return fine;
}

static bool read_file(struct agent_command *c, struct error *error) {
    static const char by_default[] = "/etc/wick/agent.conf";
    if (c->config)
        return agent_read_config(&c->agent, c->config, error);
    return access(by_default, F_OK) != 0 || agent_read_config(&c->agent, by_default, error);
}

static bool take_options(struct agent_command *c, struct error *error) {
    bool fine = true;
    for (size_t i = 0; fine && i < c->settings.count; i++)
        fine = agent_set(&c->agent, text_of(c->settings.items[i]), error);
    fine = fine && (!c->store || set(c, error, "store = %s", c->store));
    fine = fine && (!c->credentials || set(c, error, "credentials = %s", c->credentials));
    fine = fine && (!c->spool || set(c, error, "spool = %s", c->spool));
    fine = fine && (!c->metrics || set(c, error, "metrics = %s", c->metrics));
    fine = fine && (!c->call_graph || set(c, error, "call-graph = %s", c->call_graph));
    fine = fine && (!c->off_cpu || set(c, error, "off-cpu = %s", c->off_cpu));
    fine = fine &&
           (!c->frequency || set(c, error, "frequency = %llu", (unsigned long long)c->frequency));
    fine = fine && (!c->window || set(c, error, "window = %.0f", c->window));
    return fine && (!c->batch || set(c, error, "batch = %.0f", c->batch));
}

/* Use systemd's state directory if set; otherwise the user's, as other programs do. */
static bool choose_spool(struct agent_command *c, struct error *error) {
    const char *state = getenv("STATE_DIRECTORY"), *own = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    if (c->agent.spool)
        return true;
    if (state && *state)
        return set(c, error, "spool = %s/spool", state);
    if (geteuid() == 0) {
        mkdir("/var/lib/wick", 0700);
        return set(c, error, "spool = /var/lib/wick/spool");
    }
    if (own && *own == '/')
        return set(c, error, "spool = %s/wick-spool", own);
    if (home && *home == '/')
        return set(c, error, "spool = %s/.wick-spool", home);
    return error_set(error, ERROR_USAGE, "--spool DIR is needed: there is no home directory");
}

static void say(void *user, const char *text) {
    const struct agent_command *c = user;
    if (!c->request.quiet)
        say_line("%s", text);
}

static int print_settings(const struct agent_options *options) {
    struct buffer text = {0};
    agent_describe(options, &text);
    fwrite(text.items, 1, text.count, stdout);
    buffer_release(&text);
    return 0;
}

/* The agent runs for weeks, and other programs need the memory: return freed memory, unlike in short runs. */
static void give_memory_back(void) {
    mallopt(M_MMAP_THRESHOLD, 1 << 18);
    mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

static int run(void *command, int argc, char **argv) {
    struct agent_command *c = command;
    struct error error;
    int status = 0;
    agent_options_init(&c->agent);
    if (!options_parse(&syntax, command, argc, argv, &status))
        return status;
    if (c->request.operands.count)
        return fail_usage("agent", "'%s' is not an option; the store is --store URL",
                          c->request.operands.items[0]);
    c->agent.context = &c->request.context;
    c->agent.cache = c->request.import.profile.objects.cache;
    c->agent.no_sandbox = c->request.no_sandbox;
    c->agent.confined = confine_entered;
    c->agent.say = say;
    c->agent.user = c;
    c->agent.duration = (uint64_t)(c->duration * 1e9);
    if (!read_file(c, &error) || !take_options(c, &error) || !choose_spool(c, &error))
        return fail(&error);
    if (!c->agent.store)
        return fail_usage("agent", "--store URL is missing: a file such as fleet.db, or "
                                   "clickhouse://HOST/DATABASE");
    if (c->check)
        return print_settings(&c->agent);
    c->request.context.progress = NULL; /* there is no total to count towards */
    give_memory_back();
    if (agent_child_role())
        agent_child(&c->agent, agent_child_role());
    if (!c->request.quiet)
        say_line("profiling this machine (Ctrl-C to stop), to %s, by way of %s", c->agent.store,
                 c->agent.spool);
    return agent_run(&c->agent, &error) ? 0 : fail(&error);
}

static void release(void *command) {
    agent_options_release(&((struct agent_command *)command)->agent);
}

const struct command command_agent = {"agent",
                                      "profile this machine continuously into a store",
                                      sizeof(struct agent_command),
                                      run,
                                      .gentle = 1,
                                      .release = release,
                                      .group = GROUP_FLEET};
