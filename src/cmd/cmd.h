/*
 * cmd: one file for each command; argument parsing and nothing clever.
 *
 * A command fills a table of options, each with where its value goes, parses, and calls the rooms. What all commands share
 * (filters, symbols, output, noise) is one set of tables in request.c that fills one `struct request`.
 */
#ifndef WICK_CMD_H
#define WICK_CMD_H

#include <stdio.h>

#include "base/base.h"
#include "import/import.h"
#include "view/view.h"

/* ---- options ------------------------------------------------------------------------------ */

typedef VECTOR(const char *) text_list;

enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* const char * */
    OPTION_LIST,   /* text_list: may be repeated */
    OPTION_U32,     /* uint32_t */
    OPTION_U64,     /* uint64_t */
    OPTION_COUNT,   /* uint32_t, at least 1 */
    OPTION_COUNT64, /* uint64_t, at least 1 */
    OPTION_DOUBLE,  /* double */
    OPTION_AMOUNT,  /* double, more than 0 */
    OPTION_CALL,   /* bool (*)(const char *value, struct error *) */
    OPTION_MAYBE,  /* the same; the value may be left out (NULL), and is taken as --name=value alone */
    OPTION_HIDDEN, /* a flag that is accepted and means nothing more than the default (peers' names) */
};

struct option {
    const char *name; /* without its dashes */
    char letter;      /* or 0 */
    enum option_kind kind;
    void *target;
    const char *argument; /* what --help calls its value; NULL: takes none */
    const char *help;
};

struct option_group {
    const char *title;
    const struct option *options; /* ends with a NULL name */
};

struct syntax {
    const char *command; /* "fold" */
    const char *usage;   /* "FILE…" */
    const char *about;   /* a paragraph for --help */
    const struct option_group *groups; /* ends with a NULL title */
    bool takes_command;                /* options behind the first operand are not wick's */
};

/* Values are taken as `--name value` or `--name=value`, letters as `-o value` or `-ovalue`; `--` ends the options. What is left goes
   into *operands. 0: go on; otherwise (help was asked for, or an error was printed) stop with *status. */
bool options_parse(const struct syntax *syntax, int argc, char **argv, text_list *operands, int *status);

/* For options that name one of a few things: its place in `names`, or a usage error that lists them. */
bool choose(const char *value, const char *const *names, size_t count, unsigned *choice,
            struct error *error);

/* guess.c: the known word that is nearest to one that was typed, if any is near. Offer all, then look at `best`. */
struct guess {
    struct text typed;
    const char *best; /* NULL: none is near */
    size_t distance;
};
void guess_offer(struct guess *guess, const char *name);

/* ---- what was asked for ------------------------------------------------------------------- */

struct request {
    struct context context; /* passed down in every options struct below */
    struct import_options import;
    struct naming_options naming;
    struct flame_options flame;
    const char *output;
    const char *compat; /* NULL, "inferno" or "perf" */
    bool quiet;
    bool force;
    bool verbose;
    text_list operands;
    /* the filters' storage */
    text_list events, comms, skip_after, with, without;
    VECTOR(int32_t) pids;
    VECTOR(int32_t) tids;
    VECTOR(uint32_t) cpus;
};
extern struct request request;

extern const struct option options_filter[];  /* --event --comm --pid --tid --cpu --time */
extern const struct option options_waits[];   /* --off-cpu --wall --wakers --min --max */
extern const struct option options_symbols[]; /* --symfs --kallsyms --no-inline … */
extern const struct option options_root[];    /* --no-comm --show-pid … */
bool set_source_lines(const char *value, struct error *error); /* --srcline, where options_names are too many */
extern const struct option options_names[];   /* --srcline --mark-kernel … */
extern const struct option options_stacks[];  /* --with --without */
bool stacks_are_chosen(void);                 /* either was given */
extern const struct option options_shape[];   /* --weight --fold-recursion --max-depth */
extern const struct option options_from[];    /* --from */
extern const struct option options_formats[]; /* --from --comm-first --no-modules --keep-offsets --ghc */
extern const struct option options_common[];  /* -o -j -q -v --compat --strict */

/* What every command has that adds profiles up, behind groups of its own. */
#define OPTION_GROUPS_OF_SAMPLES {"Which samples", options_filter}, {"Waiting", options_waits}
#define OPTION_GROUPS_OF_NAMES                                                                     \
    {"Names", options_names}, {"Weights and shape", options_shape}, {"Symbols", options_symbols},  \
        {"Formats", options_formats}
#define OPTION_GROUPS_OF_PROFILES                                                                  \
    OPTION_GROUPS_OF_SAMPLES, OPTION_GROUPS_OF_NAMES, {"General", options_common}

/* "12,34" into the request's lists. */
bool set_pids(const char *value, struct error *error);
bool set_tids(const char *value, struct error *error);
bool set_cpus(const char *value, struct error *error);
/* "250us", "1.5ms", "2s": exactly, without floating point. */
bool parse_length(const char *value, uint64_t *nanoseconds, struct error *error);

/* Finds --compat before the rest is parsed, because it decides what the rest means. */
bool request_find_compat(int argc, char **argv, int *status);
/* Parses for a command with these groups, and settles. False: stop with *status. After request_find_compat(). */
bool request_parse(const struct syntax *syntax, int argc, char **argv, int *status);
/* After parsing: lists into filters, defaults. */
void request_settle(void);

/* ---- doing it ----------------------------------------------------------------------------- */

/* Prints `wick: message` and gives the exit status. */
int fail(const struct error *error);
int fail_usage(const char *command, const char *format, ...) PRINTF_LIKE(2, 3);
/* Set by SIGINT, SIGTERM and SIGHUP: what the context of a gentle command looks at. The only variable that outlives a command. */
extern atomic_int interrupted;
/* Whether standard error is a terminal that can take a line back. */
bool progress_is_seen(void);
/* Takes progress off the terminal, before anything else is printed. */
void progress_wipe(void);
/* Standard output is a pipe that nobody reads any more, which is no error: its reader has had enough. */
bool reader_is_gone(void);
/* Opens -o, or else standard output, for text. On a terminal that ends all progress. */
bool output_open(struct out *out, struct error *error);
/* Prints the notes, unless -q. */
void print_notes(struct notes *notes);
/* Reads these files by the request's rules. */
bool request_open(struct source *source, const char *const *paths, size_t count,
                  struct error *error);
/* The same of what the operands name (standard input when there are none and it is no terminal). */
bool open_source(struct source *source, const char *command, int *status);
/* What the source's places and series are called, by the request's rules; what was read, and what is left out, goes into the notes. */
struct naming *make_naming(const struct source *source, struct notes *notes);
/* Source to flame, by the request's rules. */
struct flame *make_flame(const struct source *source, struct notes *notes, struct error *error);
/* The same in order of time; the source must have been read with keep_samples. */
struct flame *make_chart(const struct source *source, struct notes *notes, struct error *error);

/* False, with an error that says its size and what to do, where folded text would be huge and was not asked for. */
bool fold_fits(const struct flame *flame, struct error *error);
/* Folded text to -o, or else to standard output. */
bool folded_write(const struct flame *flame, struct error *error);
/* How a table is written: to `output`, or where that is NULL and a terminal is there, as wide as it is and coloured. */
void report_options_settle(struct report_options *options, uint32_t limit, bool csv, bool json,
                           const char *output);

/* ---- the commands ------------------------------------------------------------------------- */

struct command {
    const char *name;
    const char *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
    bool gentle; /* Ctrl-C sets `interrupted` and the command ends by itself; others are ended */
};
/* help.c. Tables of commands end with a NULL name. */
/* NULL: there is none so called, which was said. */
const struct command *command_find(const struct command *commands, const char *name);
void help_print(const struct syntax *syntax); /* what --help prints, or the manual page */
void help_commands(const struct command *commands, FILE *file);
int help_command(const struct command *commands, int argc, char **argv); /* wick help */

int command_fold(int argc, char **argv);
int command_flame(int argc, char **argv);
int command_script(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_profile(int argc, char **argv);
int command_record(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_export(int argc, char **argv);
int command_report(int argc, char **argv);
int command_save(int argc, char **argv);
int command_trace(int argc, char **argv);
int command_enrich(int argc, char **argv);

#endif
