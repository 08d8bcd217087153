/*
 * cmd: the commands, one file each: they parse arguments and call the other rooms.
 *
 * Each command has a struct whose first member is `struct request`, which all commands share (filters, symbols,
 * output, verbosity). Its tables of options say where in that struct each value goes. main.c allocates one for each
 * run of a command, so there are no globals.
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
    OPTION_MAYBE,   /* the same, with an optional value (or NULL), given only as --name=value */
    OPTION_HIDDEN,  /* a flag that is accepted and ignored (other tools' names for a default) */
};

/* Where a value is stored: a field of the command's struct, or a function that is called with that struct. */
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
    const char *argument; /* name of its value in --help; NULL: takes none */
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
    bool takes_command;                /* options after the first operand belong to the command */
    const char *examples; /* lines of `command  # what for`, for --help and the manual */
    const char *
        common; /* options that --help shows, divided by spaces; --help=all has the rest. NULL: all */
};

/* Values are taken as `--name value` or `--name=value`, letters as `-o value` or `-ovalue`; `--` ends the options.
   The rest becomes the request's operands. If this returns false (help or an error was printed), exit with *status.
   `command` is the command's struct. */
bool options_parse(const struct syntax *syntax, void *command, int argc, char **argv, int *status);

/* For options with a fixed set of values: return the index in `names`, or a usage error that lists them. */
bool choose(const char *value, const char *const *names, size_t count, unsigned *choice,
            struct error *error);

/* guess.c: find the known word that is nearest to a typed one, if any is near. Offer all words, then read `best`. */
struct guess {
    struct text typed;
    const char *best; /* NULL: none is near */
    size_t distance;
};
void guess_offer(struct guess *guess, const char *name);
/* The same for functions: the shortest name that contains the typed text, or else a similar name. */
void guess_offer_function(struct guess *guess, const char *name);
/* Append "; did you mean X?", or nothing. */
void guess_add(const struct guess *guess, struct buffer *text);

/* The outputs that are generated from a command's tables. */
enum help_form { HELP_TEXT, HELP_MAN, HELP_BASH, HELP_ZSH, HELP_FISH };

/* ---- requests ----------------------------------------------------------------------------- */

/* --time as given: seconds in the source's clock, or from its start, or shares of it. */
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
    struct buffer cache;    /* directory of the cache */
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
    const struct command *command; /* the command that is run */
    const struct syntax *syntax;   /* its syntax */
    enum help_form help;
    text_list operands;
    struct arena arena; /* for values that are not words of the command line */
    /* the filters' storage */
    text_list events, comms, skip_after;
    VECTOR(struct label_filter) labels;   /* --label with keys that have no option */
    VECTOR(struct label_filter) assigned; /* --set-label: key and value */
    struct time_range time;
    bool
        times_asked; /* --on-cpu, --off-cpu or --wall was given, or the first of two sources has decided */
    struct grouping by;
    const char *value; /* --value, unless it is samples or period */
    id_list pids, tids;
    VECTOR(uint32_t) cpus;
};
void request_release(struct request *request);

#define ASKED(member) IN(struct request, member)

/* For pictures and trees; text for other programs keeps the threads' names. */
#define OPTION_EACH_THREAD                                                                         \
    {                                                                                              \
        "each-thread", 0, OPTION_FLAG, ASKED(each_thread), NULL,                                   \
            "show each thread name separately instead of grouping worker-0, worker-1, … as "     \
            "worker-*"                                                                             \
    }
/* Rows of an option table: debuginfod servers and their limits. */
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

/* For commands that read stores. */
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
/* Group thread names, unless --each-thread or --compat is given. */
void group_threads(struct request *request);

extern const struct option options_filter[];  /* --event --comm --pid --tid --cpu --time */
extern const struct option options_waits[];   /* --on-cpu --off-cpu --wall --wakers … */
extern const struct option options_symbols[]; /* --symfs --kallsyms --no-inline … */
extern const struct option options_by[];      /* --by, for what shows stacks */
extern const struct option options_root[];    /* --no-comm --show-pid … */
bool set_source_lines(void *command, const char *value,
                      struct error *error);  /* --srcline, where options_names are too many */
extern const struct option options_names[];  /* --srcline --mark-kernel … */
extern const struct option options_stacks[]; /* --focus --ignore --hide --root … */
bool stacks_are_chosen(const struct request *request); /* true if any of them was given */
extern const struct option options_shape[];            /* --weight --fold-recursion --max-depth */
extern const struct option options_from[];             /* --from */
extern const struct option
    options_formats[]; /* --from --comm-first --no-modules --keep-offsets --ghc */
extern const struct option options_common[]; /* -o -j -q -v --compat --strict */

/* The groups of every command that adds profiles up, after its own. */
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

/* filters.c: apply --label and --time when reading, and --set-label when writing. */
bool set_label(void *command, const char *value, struct error *error);
bool set_time(void *command, const char *value, struct error *error);
bool assign_label(void *command, const char *value, struct error *error);
/* Before reading: resolve --time for these files. */
bool filters_settle_time(struct request *request, const char *const *paths, size_t count,
                         struct error *error);
/* After reading: apply --set-label. */
void filters_assign(const struct request *request, struct tree *tree);
/* If nothing passed, add a note that names the filter and lists the existing values. */
void filters_note(const struct request *request, const char *const *paths, size_t count,
                  struct tree *tree);

/* grouping.c. */
bool set_by(void *command, const char *value, struct error *error);
/* Set frames and root frames according to --by. Fails with a usage error, because not every dimension is for stacks.
   */
bool grouping_settle(struct request *request, struct error *error);
/* The same for the rows of tables. */
enum report_by grouping_settle_table(struct request *request);
/* Make the table of a flame that was grouped this way. */
struct report *grouping_report(const struct request *request, const struct flame *flame,
                               const struct categories *categories, enum report_by by);
/* Return true if such a table credits each allocation to the function that wanted the memory: flame_credit_sites(). */
bool grouping_credits_sites(const struct request *request, const struct tree *tree,
                            enum report_by by);
/* Return true if --by names this dimension. Call grouping_prepare() after reading, for dimensions that need the whole
   tree. */
bool grouping_asks(const struct request *request, struct text key);
void grouping_prepare(const struct request *request, struct tree *tree);
/* Check that the source has such labels. */
bool grouping_check(const struct request *request, const struct tree *tree, struct error *error);

/* Parse "12,34" into the request's lists. */
bool set_pids(void *command, const char *value, struct error *error);
bool set_tids(void *command, const char *value, struct error *error);
bool set_cpus(void *command, const char *value, struct error *error);
/* Parse "250us", "1.5ms", "2s" exactly, without floating point. */
bool parse_length(const char *value, uint64_t *nanoseconds, struct error *error);
/* Parse a decimal number in units of `each`, a power of ten, with at most `digits` digits after the point. */
bool parse_decimal(struct text t, uint64_t each, unsigned digits, uint64_t *result);

/* Find --compat before the rest is parsed, because it decides what the rest means. */
bool request_find_compat(struct request *request, int argc, char **argv, int *status);
/* Parse for a command with these groups, and settle the request. If this returns false, exit with *status. Call it
   after request_find_compat(). */
bool request_parse(struct request *request, const struct syntax *syntax, int argc, char **argv,
                   int *status);
/* After parsing: convert lists to filters, set defaults. */
void request_settle(struct request *request);
/* For commands that show only names, after everything else is settled: let readers merge items with equal names,
   unless options ask for more. */
void request_names_only(struct request *request);

/* ---- execution ---------------------------------------------------------------------------- */

/* Print `wick: message` and return the exit status. */
int fail(const struct error *error);
int fail_usage(const char *command, const char *format, ...) PRINTF_LIKE(2, 3);
/* Print `wick: ` and one line to standard error. Names in it are not trusted: control characters are escaped. */
void say_line(const char *format, ...) PRINTF_LIKE(1, 2);
/* Counts SIGINT, SIGTERM and SIGHUP for the context of a gentle command. After the second number of signals, the next
   one ends wick at once. These are the only variables that outlive a command. */
extern atomic_int interrupted, interrupts_understood;
/* Return true if standard error is a terminal that can erase a line. */
bool progress_is_seen(void);
/* Erase the progress line before anything else is printed. */
void progress_wipe(void);
/* Return true if standard output is a pipe whose reader has closed it, which is not an error. */
bool reader_is_gone(void);
/* Open -o, or standard output, for text. On a terminal this ends all progress. */
bool output_open(struct request *request, struct out *out, struct error *error);
/* Print the notes, unless -q is given. */
void print_notes(const struct request *request, struct notes *notes);
/* network.c: start the helper process for debuginfod if servers were chosen; call it before anything is read. */
bool request_start_net(struct request *request, struct error *error);
/* "512M" */
bool parse_bytes(const char *value, uint64_t *bytes, struct error *error);
bool set_debuginfod_limit(void *command, const char *value, struct error *error);
bool set_debuginfod_time(void *command, const char *value, struct error *error);
bool set_store_timeout(void *command, const char *value, struct error *error);
/* Read these files by the request's rules. */
bool request_open(struct request *request, struct source *source, const char *const *paths,
                  size_t count, struct error *error);
/* default.c: if no FILE is given, make the default input the operand. If this returns false, exit with *status. */
bool choose_default(struct request *request, int *status);
/* The same for the operands, or else choose_default()'s, or standard input. */
bool open_source(struct request *request, struct source *source, int *status);
/* Name the source's locations and series by the request's rules; the notes say what was read and what was omitted. */
struct naming *make_naming(struct request *request, const struct source *source,
                           struct notes *notes);
/* Check that the request does not need stacks if the source is a call graph. */
bool graph_answers(const struct request *request, struct error *error);
/* Make a flame of the source by the request's rules. */
struct flame *make_flame(struct request *request, const struct source *source, struct notes *notes,
                         struct error *error);
/* The same in order of time; the source must have been read with keep_samples. */
struct flame *make_chart(struct request *request, const struct source *source, struct notes *notes,
                         struct error *error);

/* Fail with an error that gives the size and the remedies if folded text would be huge, unless --force is given. */
bool fold_fits(const struct request *request, const struct flame *flame, struct error *error);
/* Write folded text to -o, or to standard output. */
bool folded_write(struct request *request, const struct flame *flame, struct error *error);
/* Return the columns of the terminal, or `otherwise` if they are not known. */
unsigned terminal_width(int descriptor, unsigned otherwise);
/* Set how a table is written: to `output`; or, if that is NULL and standard output is a terminal, coloured and as
   wide as the terminal. */
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
    size_t size; /* size of its struct, which begins with a struct request; the rest is zeroed */
    int (*run)(void *command, int argc, char **argv); /* argv[0] is the command's name */
    void (*release)(void *command); /* frees what its struct owns besides the request, or NULL */
    enum command_group group;       /* heading in wick --help */
    int gentle; /* number of Ctrl-C that only set `interrupted`, so that the command can end by itself; the next one ends it */
};
extern const struct command command_fold, command_flame, command_script, command_doctor,
    command_profile, command_record, command_diff, command_export, command_report, command_annotate,
    command_save, command_trace, command_enrich, command_mcp, command_serve, command_view,
    command_push, command_store, command_agent;

/* main.c: run a command with a new struct. */
int command_run(const struct command *command, enum help_form help, int argc, char **argv);

/* cargo.c: wick under the name cargo-wick. */
int cargo_run(int argc, char **argv);

/* help.c. Tables of commands end with NULL. */
typedef const struct command *const *command_table;
/* Return NULL after printing an error if there is no such command. */
const struct command *command_find(command_table commands, const char *name);
/* Print --help; or the manual page, if `wick help` is generating one. */
void help_print(const struct request *request, const struct syntax *syntax, bool all);
void help_commands(command_table commands, FILE *file);
int help_command(command_table commands, int argc, char **argv); /* wick help */
int help_of(const struct command *command, enum help_form form); /* let the command print it */

/* completion.c: `wick help --bash`, --zsh and --fish. Return false if it is none of these. */
bool completion_print(command_table commands, const char *shell);
void completion_add(enum help_form form,
                    const struct syntax *syntax); /* one command's part of it */

#endif
