/* wick mcp: a server for coding assistants, on standard input and output. */
#include "cmd/confine.h"

#include <unistd.h>

#include "mcp/mcp.h"

struct mcp_command {
    struct request request;
    uint32_t seconds;
};

static const struct option options_mcp[] = {
    {"timeout", 0, OPTION_COUNT, IN(struct mcp_command, seconds), "SECONDS",
     "time limit for an answer (default: 120)"},
    OPTION_NO_SANDBOX,
    {0},
};

static const struct option_group groups[] = {{"Answers", options_mcp}, {0}};

static const struct syntax syntax = {
    "mcp",
    "DIR…",
    "Answer questions about profiles below DIR, and no others, over the Model Context Protocol "
    "on\nstandard input and output. Name this command in an assistant's configuration. It can "
    "list\nprofiles, show where the cost is, show the callers and callees of a function, annotate "
    "a\nfunction line by line, and compare two profiles. It records and writes nothing.",
    groups,
    .examples = "wick mcp wick-out                  # started by the assistant, not by hand",
};

static int run(void *command, int argc, char **argv) {
    struct mcp_command *c = command;
    int status = 0;
    char self[4096];
    struct error error;
    if (!options_parse(&syntax, command, argc, argv, &status))
        return status;
    if (!c->request.operands.count)
        return fail_usage("mcp", "a directory with profiles is needed: wick mcp wick-out");
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) {
        error_set(&error, ERROR_DENIED, "/proc/self/exe can't be read: is /proc mounted?");
        return fail(&error);
    }
    self[length] = 0;
    struct mcp_options options = {.program = self,
                                  .seconds = c->seconds ? c->seconds : 120,
                                  .no_sandbox = c->request.no_sandbox,
                                  .directories = c->request.operands.items,
                                  .directory_count = c->request.operands.count};
    return mcp_serve(&options, &error) ? 0 : fail(&error);
}

const struct command command_mcp = {
    "mcp", "answer coding assistants' questions about profiles (Model Context Protocol)",
    sizeof(struct mcp_command), run, .group = GROUP_MACHINE};
