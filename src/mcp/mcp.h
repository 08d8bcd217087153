/*
 * mcp: the Model Context Protocol on standard input and output, by which coding assistants ask about profiles.
 *
 * A message is one line of JSON. Each question is a tool; a tool is a command of wick, which runs in a process of its own, with a limit
 * of time and of output, confined like every command that reads, so that a hostile profile ends
 * that process and not the conversation. Only profiles below the named directories can
 * be asked about: they are opened here, beneath a directory's descriptor, and handed to the command as descriptors. Nothing is recorded and nothing is written.
 */
#ifndef WICK_MCP_H
#define WICK_MCP_H

#include "base/base.h"

struct mcp_options {
    const char *program;            /* wick itself */
    const char *const *directories; /* at least one */
    size_t directory_count;
    bool no_sandbox;  /* the commands that answer are not confined */
    uint32_t seconds; /* that an answer may take */
};

/* Answers until the input ends. False: a directory can't be opened. */
bool mcp_serve(const struct mcp_options *options, struct error *error);

#endif
