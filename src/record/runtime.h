/*
 * Private to the room: which runtime a command runs, and which settings make it name its code. runtime_find.c finds the runtime,
 * runtime_setup.c chooses the settings for launching a program, runtime.c removes the files that it wrote because of them.
 */
#ifndef WICK_RECORD_RUNTIME_H
#define WICK_RECORD_RUNTIME_H

#include "record/internal.h"

#define NODE_FLAGS "--perf-basic-prof --interpreted-frames-native-stack"
#define DOTNET_SETTING "DOTNET_PerfMapEnabled=3" /* a perf map without a jitdump */
#define ERLANG_FLAGS "+JPperf true"

/* Return the part of a path after its last slash. */
struct text path_name(struct text path);
/* Whether a path names node. */
bool path_is_node(struct text path);
/* Find a command in PATH. */
bool program_find(const char *name, struct buffer *path);
/* Whether one of these words is in a command, also inside a shell's command line or after a program that starts others (env, timeout, make,
   …). */
bool command_mentions(char *const *command, const char *const *words, size_t count);
/* Find the node that the command runs, if it runs one. */
bool command_runs_node(char *const *command, struct buffer *path);
/* Whether the command runs .NET: `dotnet`, or a program with .NET's files beside it. */
bool command_runs_dotnet(char *const *command);
/* Find the virtual machine, beam.smp, of the Erlang that the command runs, if it runs one. */
bool command_runs_erlang(char *const *command, struct buffer *path);

#endif
