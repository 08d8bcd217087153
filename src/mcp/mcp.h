/*
 * mcp: a Model Context Protocol server on standard input and output, which answers coding assistants about profiles.
 *
 * A message is one line of JSON. Each tool runs a command of wick in a separate process with limits
 * on time and output, confined like every command that reads, so that a hostile profile ends
 * that process and not the conversation. Only profiles below the named directories can
 * be read: they are opened here, beneath a directory's descriptor, and passed to the command as descriptors. Nothing
 * is recorded or written.
 */
#ifndef WICK_MCP_H
#define WICK_MCP_H

#include "base/base.h"

struct mcp_options {
    const char *program;            /* wick itself */
    const char *const *directories; /* at least one */
    size_t directory_count;
    bool no_sandbox;  /* the commands that answer are not confined */
    uint32_t seconds; /* time limit for an answer */
};

/* Answer requests until the input ends. Fails if a directory can't be opened. */
bool mcp_serve(const struct mcp_options *options, struct error *error);

#endif
