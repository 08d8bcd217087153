/* Private to the room: the tools, and the command that answers each. */
#ifndef WICK_MCP_TOOLS_H
#define WICK_MCP_TOOLS_H

#include "mcp/mcp.h"

enum argument_kind { ARGUMENT_PROFILE, ARGUMENT_TEXT, ARGUMENT_NUMBER };

struct argument {
    const char *name;
    enum argument_kind kind;
    const char *option; /* option of the command; NULL: an operand, in this order */
    bool needed;
    const char *what;
};

struct tool {
    const char *name;
    const char *what;
    const char *words[6]; /* the command and its fixed arguments; empty for list_profiles */
    struct argument arguments[8];
};

extern const struct tool tools[];
extern const size_t tool_count;

/* The client's arguments, in the order of the tool's; NULL if one was not given. NUL-terminated, owned. */
struct given {
    char *values[8];
};
void given_release(struct given *given);

struct roots {
    const struct mcp_options *options;
    int *descriptors; /* descriptors of the directories */
};

/* ---- find.c ---- */

/* Open a profile by the name that list_profiles reports: a file, or the recording of a run. Return -1 if there is
   none below the directories. */
int profile_open(const struct roots *roots, const char *name);
/* Append one line for each profile below the directories. */
void profiles_list(const struct roots *roots, struct buffer *answer);

/* ---- ask.c ---- */

/* Run the tool's command and append its output, shortened for an assistant. Return false if it failed; the answer
   then says why. */
bool tool_ask(const struct roots *roots, const struct tool *tool, const struct given *given,
              struct buffer *answer);

#endif
