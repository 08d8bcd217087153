/* Private to the room: which questions there are, and how each is answered. */
#ifndef WICK_MCP_TOOLS_H
#define WICK_MCP_TOOLS_H

#include "mcp/mcp.h"

enum argument_kind { ARGUMENT_PROFILE, ARGUMENT_TEXT, ARGUMENT_NUMBER };

struct argument {
    const char *name;
    enum argument_kind kind;
    const char *option; /* of the command; NULL: an operand, in this order */
    bool needed;
    const char *what;
};

struct tool {
    const char *name;
    const char *what;
    const char *words[6]; /* the command and what is always given; none of the list of profiles */
    struct argument arguments[8];
};

extern const struct tool tools[];
extern const size_t tool_count;

/* What the client gave, in the order of the tool's arguments; items are NULL where it gave none. NUL-terminated, owned. */
struct given {
    char *values[8];
};
void given_release(struct given *given);

struct roots {
    const struct mcp_options *options;
    int *descriptors; /* of the directories */
};

/* ---- find.c ---- */

/* Open a profile by the name that list_profiles gives it: a file, or the recording of a run. -1: there is none below the directories. */
int profile_open(const struct roots *roots, const char *name);
/* One line for each profile below the directories. */
void profiles_list(const struct roots *roots, struct buffer *answer);

/* ---- ask.c ---- */

/* Run the tool's command and append what it says, cut to what an assistant can use. False: it failed, and the answer says why. */
bool tool_ask(const struct roots *roots, const struct tool *tool, const struct given *given,
              struct buffer *answer);

#endif
