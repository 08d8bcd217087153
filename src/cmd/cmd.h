/*
 * cmd: one file for each command; argument parsing and nothing clever.
 *
 * A command has a struct of its own, whose first member is `struct request`: what all commands share (filters, symbols, output,
 * noise). Its tables of options say where in that struct each value goes. main.c makes one for each run of a command, so that nothing
 * of it is a global; the command parses and calls the rooms.
 */
#ifndef WICK_CMD_H
#define WICK_CMD_H

#include <stdio.h>

#include "base/base.h"
#include "import/import.h"
#include "net/net.h"
#include "view/view.h"

/* ---- options ------------------------------------------------------------------------------ */

typedef VECTOR(const char *) text_list;
typedef VECTOR(int32_t) id_list;

enum option_kind {
    OPTION_FLAG,    /* bool */
    OPTION_TEXT,    /* const char * */
    OPTION_LIST,    /* text_list: may be repeated */
    OPTION_U32,     /* uint32_t */
    OPTION_U64,     /* uint64_t */
    OPTION_COUNT,   /* uint32_t, at least 1 */
    OPTION_COUNT64, /* uint64_t, at least 1 */
    OPTION_DOUBLE,  /* double */
    OPTION_AMOUNT,  /* double, more than 0 */
    OPTION_CALL,    /* a function that takes the value */
    OPTION_MAYBE, /* the same; the value may be left out (NULL), and is taken as --name=value alone */
    OPTION_HIDDEN, /* a flag that is accepted and means nothing more than the default (peers' names) */
};

/* Where a value goes: a place in the command's struct, or a function that is given that struct. */
union option_target {
    size_t offset;
    bool (*call)(void *command, const char *value, struct error *error);
};
#define IN(type, member)                                                                           \
    { .offset = offsetof(type, member) }
#define CALL(function)                                                                             \
    { .call = (function) }

struct option {
    const char *name; /* without its dashes */
    char letter;      /* or 0 */
    enum option_kind kind;
    union option_target target;
    const char *argument; /* what --help calls its value; NULL: takes none */
    const char *help;
    const char *
        values; /* for completion: what it may be, divided by spaces; NULL: anything, or a file if it is called so */
};

struct option_group {
    const char *title;
    const struct option *options; /* ends with a NULL name */
};

struct syntax {
    const char *command;               /* "fold" */
    const char *usage;                 /* "FILE…" */
    const char *about;                 /* a paragraph for --help */
    const struct option_group *groups; /* ends with a NULL title */
    bool takes_command;                /* options behind the first operand are not wick's */
    const char *examples; /* lines of `command  # what for`, for --help and the manual */
    const char *
        common; /* options that --help shows, divided by spaces; --help=all has the rest. NULL: all */
};

/* Values are taken as `--name value` or `--name=value`, letters as `-o value` or `-ovalue`; `--` ends the options. What is left goes
   into the request's operands. False (help was asked for, or an error was printed): stop with *status. `command` is the command's struct. */
bool options_parse(const struct syntax *syntax, void *command, int argc, char **argv, int *status);

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
/* The same of functions: one that has what was typed in its name, the shortest of these, or else one that is called nearly so. */
void guess_offer_function(struct guess *guess, const char *name);
/* Appends "; did you mean X?", or nothing. */
void guess_add(const struct guess *guess, struct buffer *text);

/* What is made of a command's tables. */
enum help_form { HELP_TEXT, HELP_MAN, HELP_BASH, HELP_ZSH, HELP_FISH };

/* ---- what was asked for ------------------------------------------------------------------- */

/* --time, as given: seconds as the source counts them, or from its beginning, or shares of it. */
struct time_range {
    enum { TIME_ALL, TIME_ABSOLUTE, TIME_FROM_START, TIME_SHARES } kind;
    uint64_t from, to; /* nanoseconds, or thousandths of a per cent; UINT64_MAX: until the end */
    const char *text;
};

/* --by: at most one dimension of frames, and labels. */
struct grouping {
    const char *frames; /* "function", "line", …; NULL: not given */
    text_list labels;   /* dimensions of series, as naming_options.roots has them */
    const char *text;   /* as given; NULL: not given */
};

struct request {
    struct buffer cache;    /* where what is derived from files is kept */
    struct context context; /* passed down in every options struct below */
    struct import_options import;
    struct naming_options naming;
    struct flame_options flame;
    struct stack_rules rules; /* the flame's and the page's */
    bool each_thread;         /* --each-thread */
    const char *output;
    const char *compat;   /* NULL, "inferno" or "perf" */
    text_list debuginfod; /* --debuginfod: URLs */
    bool no_debuginfod;
    struct net *net; /* the helper process, once request_start_net() was called and it is needed */
    bool quiet;
    bool force;
    bool verbose;
    bool no_sandbox, is_confined;
    const struct command *command; /* that is run */
    const struct syntax *syntax;   /* that it was parsed by */
    enum help_form help;
    text_list operands;
    struct arena arena; /* for values that are not the command line's own words */
    /* the filters' storage */
    text_list events, comms, skip_after;
    VECTOR(struct label_filter) labels;   /* --label of keys that have no option of their own */
    VECTOR(struct label_filter) assigned; /* --set-label: key and value */
    struct time_range time;
    struct grouping by;
    const char *value; /* --value, unless it is samples or period */
    id_list pids, tids;
    VECTOR(uint32_t) cpus;
};
void request_release(struct request *request);

#define ASKED(member) IN(struct request, member)

/* For what is drawn or shown as a tree; text for other programs has threads as they are called. */
#define OPTION_EACH_THREAD                                                                         \
    {                                                                                              \
        "each-thread", 0, OPTION_FLAG, ASKED(each_thread), NULL,                                   \
            "show each thread name separately instead of grouping worker-0, worker-1, … as "     \
            "worker-*"                                                                             \
    }
/* Rows of a table: which servers to ask, and how long. */
#define OPTIONS_DEBUGINFOD                                                                         \
    {"debuginfod",                                                                                 \
     0,                                                                                            \
     OPTION_LIST,                                                                                  \
     ASKED(debuginfod),                                                                            \
     "URL",                                                                                        \
     "ask this debuginfod server for debug files instead of those in $DEBUGINFOD_URLS; may be "    \
     "repeated"},                                                                                  \
        {"no-debuginfod",                                                                          \
         0,                                                                                        \
         OPTION_FLAG,                                                                              \
         ASKED(no_debuginfod),                                                                     \
         NULL,                                                                                     \
         "do not ask debuginfod servers, and do not read the local debuginfod cache"},             \
        {"debuginfod-limit",         0,      OPTION_CALL,                                          \
         CALL(set_debuginfod_limit), "SIZE", "download no file larger than this (default: 512M)"}, \
    {                                                                                              \
        "debuginfod-time", 0, OPTION_CALL, CALL(set_debuginfod_time), "EACH[,ALL]",                \
            "time limit for each file, and for all of them together (default: 30s,120s)"           \
    }

/* For all that read stores. */
#define OPTION_CREDENTIALS                                                                         \
    {                                                                                              \
        "credentials", 0, OPTION_TEXT, ASKED(import.store_credentials), "FILE",                    \
            "file with USER:PASSWORD for the store (default: $WICK_STORE_CREDENTIALS)"             \
    }
#define OPTION_ALLOW_PARTIAL                                                                       \
    {                                                                                              \
        "allow-partial", 0, OPTION_FLAG, ASKED(import.store_partial), NULL,                        \
            "accept a store's partial answer if a part of it is down, and say so"                  \
    }
#define OPTION_STORE_TIMEOUT                                                                       \
    {                                                                                              \
        "store-timeout", 0, OPTION_CALL, CALL(set_store_timeout), "TIME",                          \
            "time limit for each answer of a store's server (default: 30s for the first, then "    \
            "300s)"                                                                                \
    }
/* Group them, unless --each-thread or --compat says otherwise. */
void group_threads(struct request *request);

extern const struct option options_filter[];  /* --event --comm --pid --tid --cpu --time */
extern const struct option options_waits[];   /* --off-cpu --wall --wakers --min --max */
extern const struct option options_symbols[]; /* --symfs --kallsyms --no-inline … */
extern const struct option options_by[];      /* --by, for what shows stacks */
extern const struct option options_root[];    /* --no-comm --show-pid … */
bool set_source_lines(void *command, const char *value,
                      struct error *error);  /* --srcline, where options_names are too many */
extern const struct option options_names[];  /* --srcline --mark-kernel … */
extern const struct option options_stacks[]; /* --focus --ignore --hide --root … */
bool stacks_are_chosen(const struct request *request); /* any of them was given */
extern const struct option options_shape[];            /* --weight --fold-recursion --max-depth */
extern const struct option options_from[];             /* --from */
extern const struct option
    options_formats[]; /* --from --comm-first --no-modules --keep-offsets --ghc */
extern const struct option options_common[]; /* -o -j -q -v --compat --strict */

/* What every command has that adds profiles up, behind groups of its own. */
#define OPTION_GROUPS_OF_SAMPLES                                                                   \
    {"Which samples", options_filter}, {                                                           \
        "Waiting", options_waits                                                                   \
    }
#define OPTION_GROUPS_OF_NAMES                                                                     \
    {"Names", options_names}, {"Weights and shape", options_shape}, {"Symbols", options_symbols},  \
    {                                                                                              \
        "Formats", options_formats                                                                 \
    }
#define OPTION_GROUPS_OF_PROFILES                                                                  \
    OPTION_GROUPS_OF_SAMPLES, OPTION_GROUPS_OF_NAMES, {                                            \
        "General", options_common                                                                  \
    }

/* filters.c. What passes a filter is narrowed by --label and --time, and what is written gets --set-label. */
bool set_label(void *command, const char *value, struct error *error);
bool set_time(void *command, const char *value, struct error *error);
bool assign_label(void *command, const char *value, struct error *error);
/* Before reading: what --time means of these files. False: it says why. */
bool filters_settle_time(struct request *request, const char *const *paths, size_t count,
                         struct error *error);
/* After reading: --set-label. */
void filters_assign(const struct request *request, struct tree *tree);
/* If nothing passed, a note that says which filter, and what there is. */
void filters_note(const struct request *request, const char *const *paths, size_t count,
                  struct tree *tree);

/* grouping.c. */
bool set_by(void *command, const char *value, struct error *error);
/* Makes frames and root frames of what --by names. False: usage; not every dimension is for stacks. */
bool grouping_settle(struct request *request, struct error *error);
/* The same for tables, whose rows are then so. */
enum report_by grouping_settle_table(struct request *request);
/* The table of a flame that was made so. */
struct report *grouping_report(const struct request *request, const struct flame *flame,
                               const struct categories *categories, enum report_by by);
/* Whether --by names this dimension; and when everything was read, what such a dimension needs to know of all of it. */
bool grouping_asks(const struct request *request, struct text key);
void grouping_prepare(const struct request *request, struct tree *tree);
/* Whether what was read has such labels. */
bool grouping_check(const struct request *request, const struct tree *tree, struct error *error);

/* "12,34" into the request's lists. */
bool set_pids(void *command, const char *value, struct error *error);
bool set_tids(void *command, const char *value, struct error *error);
bool set_cpus(void *command, const char *value, struct error *error);
/* "250us", "1.5ms", "2s": exactly, without floating point. */
bool parse_length(const char *value, uint64_t *nanoseconds, struct error *error);
/* A decimal number of which the unit is `each`, a power of ten with as many digits behind the point. */
bool parse_decimal(struct text t, uint64_t each, unsigned digits, uint64_t *result);

/* Finds --compat before the rest is parsed, because it decides what the rest means. */
bool request_find_compat(struct request *request, int argc, char **argv, int *status);
/* Parses for a command with these groups, and settles. False: stop with *status. After request_find_compat(). */
bool request_parse(struct request *request, const struct syntax *syntax, int argc, char **argv,
                   int *status);
/* After parsing: lists into filters, defaults. */
void request_settle(struct request *request);

/* ---- doing it ----------------------------------------------------------------------------- */

/* Prints `wick: message` and gives the exit status. */
int fail(const struct error *error);
int fail_usage(const char *command, const char *format, ...) PRINTF_LIKE(2, 3);
/* Prints `wick: ` and one line to standard error. Names in it may come from strangers: what a terminal would obey is shown instead. */
void say_line(const char *format, ...) PRINTF_LIKE(1, 2);
/* Counted by SIGINT, SIGTERM and SIGHUP: what the context of a gentle command looks at. The next one after the second number ends wick at once.
   The only variables that outlive a command. */
extern atomic_int interrupted, interrupts_understood;
/* Whether standard error is a terminal that can take a line back. */
bool progress_is_seen(void);
/* Takes progress off the terminal, before anything else is printed. */
void progress_wipe(void);
/* Standard output is a pipe that nobody reads any more, which is no error: its reader has had enough. */
bool reader_is_gone(void);
/* Opens -o, or else standard output, for text. On a terminal that ends all progress. */
bool output_open(struct request *request, struct out *out, struct error *error);
/* Prints the notes, unless -q. */
void print_notes(const struct request *request, struct notes *notes);
/* network.c: start the helper process for debuginfod, if servers were chosen; before anything is read. False: it says why. */
bool request_start_net(struct request *request, struct error *error);
/* "512M" */
bool parse_bytes(const char *value, uint64_t *bytes, struct error *error);
bool set_debuginfod_limit(void *command, const char *value, struct error *error);
bool set_debuginfod_time(void *command, const char *value, struct error *error);
bool set_store_timeout(void *command, const char *value, struct error *error);
/* Reads these files by the request's rules. */
bool request_open(struct request *request, struct source *source, const char *const *paths,
                  size_t count, struct error *error);
/* default.c: what is read where no FILE is named becomes the operand. False: stop with *status. */
bool choose_default(struct request *request, int *status);
/* The same of what the operands name, or else of choose_default()'s, or of standard input. */
bool open_source(struct request *request, struct source *source, int *status);
/* What the source's places and series are called, by the request's rules; what was read, and what is left out, goes into the notes. */
struct naming *make_naming(struct request *request, const struct source *source,
                           struct notes *notes);
/* Whether the request asks a call graph for nothing that takes stacks; false: an error says so. */
bool graph_answers(const struct request *request, struct error *error);
/* Source to flame, by the request's rules. */
struct flame *make_flame(struct request *request, const struct source *source, struct notes *notes,
                         struct error *error);
/* The same in order of time; the source must have been read with keep_samples. */
struct flame *make_chart(struct request *request, const struct source *source, struct notes *notes,
                         struct error *error);

/* False, with an error that says its size and what to do, where folded text would be huge and was not asked for. */
bool fold_fits(const struct request *request, const struct flame *flame, struct error *error);
/* Folded text to -o, or else to standard output. */
bool folded_write(struct request *request, const struct flame *flame, struct error *error);
/* The columns of a terminal; `otherwise` where it is none, or does not say. */
unsigned terminal_width(int descriptor, unsigned otherwise);
/* How a table is written: to `output`, or where that is NULL and a terminal is there, as wide as it is and coloured. */
void report_options_settle(struct report_options *options, uint32_t limit, bool csv, bool json,
                           const char *output);

/* ---- the commands ------------------------------------------------------------------------- */

enum command_group {
    GROUP_RECORD,
    GROUP_LOOK,
    GROUP_COMPARE,
    GROUP_CONVERT,
    GROUP_FLEET,
    GROUP_MACHINE,
    COMMAND_GROUPS
};
struct command {
    const char *name;
    const char *summary;
    size_t size; /* of its struct, which begins with a struct request and is zeroed otherwise */
    int (*run)(void *command, int argc, char **argv); /* argv[0] is the command's name */
    void (*release)(void *command); /* what its struct holds beside the request; NULL: nothing */
    enum command_group group;       /* under which wick --help lists it */
    int gentle; /* so many Ctrl-C are counted in `interrupted` and the command ends by itself; 0, and for the next: it is ended */
};
extern const struct command command_fold, command_flame, command_script, command_doctor,
    command_profile, command_record, command_diff, command_export, command_report, command_annotate,
    command_save, command_trace, command_enrich, command_mcp, command_serve, command_view,
    command_push, command_store, command_agent;

/* main.c: runs it with a struct of its own. */
int command_run(const struct command *command, enum help_form help, int argc, char **argv);

/* cargo.c: what wick does under the name cargo-wick. */
int cargo_run(int argc, char **argv);

/* help.c. Tables of commands end with NULL. */
typedef const struct command *const *command_table;
/* NULL: there is none so called, which was said. */
const struct command *command_find(command_table commands, const char *name);
/* What --help prints; or the manual page, if that is what `wick help` is making. */
void help_print(const struct request *request, const struct syntax *syntax, bool all);
void help_commands(command_table commands, FILE *file);
int help_command(command_table commands, int argc, char **argv); /* wick help */
int help_of(const struct command *command, enum help_form form); /* has the command print it */

/* completion.c: `wick help --bash`, --zsh and --fish. False: it is none of these. */
bool completion_print(command_table commands, const char *shell);
void completion_add(enum help_form form,
                    const struct syntax *syntax); /* one command's part of it */

#endif
