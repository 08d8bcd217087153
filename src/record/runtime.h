/*
 * Private to the room: which runtime a command runs, and which settings make it name its code. runtime_find.c finds the runtime, runtime_setup.c decides
 * what a program is launched with, runtime.c removes what it wrote because of that.
 */
#ifndef WICK_RECORD_RUNTIME_H
#define WICK_RECORD_RUNTIME_H

#include "record/internal.h"

#define NODE_FLAGS "--perf-basic-prof --interpreted-frames-native-stack"
#define DOTNET_SETTING "DOTNET_PerfMapEnabled=3" /* a perf map, and no jitdump beside it */
#define ERLANG_FLAGS "+JPperf true"

/* The part of a path behind its last slash. */
struct text path_name(struct text path);
/* Whether a path is node's. */
bool path_is_node(struct text path);
/* Find where a command is, by PATH. */
bool program_find(const char *name, struct buffer *path);
/* Whether one of these words is in a command: also in a shell's command line, or behind what starts others (env, timeout, make, …). */
bool command_mentions(char *const *command, const char *const *words, size_t count);
/* Find the node that the command runs, if it runs one. */
bool command_runs_node(char *const *command, struct buffer *path);
/* Whether the command runs .NET: `dotnet`, or a program with the files of .NET beside it. */
bool command_runs_dotnet(char *const *command);
/* Find the virtual machine, beam.smp, of the Erlang that the command runs, if it runs one. */
bool command_runs_erlang(char *const *command, struct buffer *path);

#endif
