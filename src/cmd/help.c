/*
 * What --help prints and the manual pages: all from the commands' own tables, so that none can say less than another. completion.c does the
 * same for shells.
 *
 * `wick help --man DIR` writes wick.1 and one page for each command; `make install` calls it. A
 * page is what the command prints for --help, which it does by itself: here only the form is chosen.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>

/* ---- for a terminal ---- */

static void help_option(const struct option *option) {
    char left[80];
    const char *equals = option->argument && option->kind != OPTION_MAYBE ? " " : "";
    const char *argument = option->argument ? option->argument : "";
    if (option->letter)
        snprintf(left, sizeof left, "-%c, --%s%s%s", option->letter, option->name, equals,
                 argument);
    else
        snprintf(left, sizeof left, "    --%s%s%s", option->name, equals, argument);
    int bytes = 25; /* bytes of a column that is 25 characters wide */
    for (const char *c = left; *c; c++)
        bytes += ((unsigned char)*c & 0xc0) == 0x80;
    const char *rest = option->help;
    bool first = true;
    while (*rest || first) { /* wrapped at 56 columns */
        size_t take = strlen(rest);
        if (take > 56) {
            take = 56;
            while (take && rest[take] != ' ')
                take--;
            if (!take)
                take = strlen(rest);
        }
        bool alone = first && strlen(left) > 25; /* too wide for its column: own line */
        if (alone)
            printf("  %s\n", left);
        printf("  %-*s %.*s\n", first && !alone ? bytes : 25, first && !alone ? left : "",
               (int)take, rest);
        rest += take;
        rest += *rest == ' ';
        first = false;
    }
}

/* Keep the order of the list: the most common come first. */
static void help_common(const struct syntax *syntax) {
    char name[40];
    puts("\nCommon options (--help=all shows all of them):");
    for (const char *at = syntax->common; *at; at += *at == ' ') {
        size_t length = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        for (const struct option_group *group = syntax->groups; group->title; group++)
            for (const struct option *option = group->options; option->name; option++)
                if (strcmp(option->name, name) == 0)
                    help_option(option);
        at += length;
    }
}

static void help_groups(const struct syntax *syntax) {
    for (const struct option_group *group = syntax->groups; group->title; group++) {
        if (!*group->title) /* a hidden group */
            continue;
        printf("\n%s:\n", group->title);
        for (const struct option *option = group->options; option->name; option++)
            if (option->kind != OPTION_HIDDEN)
                help_option(option);
    }
}

static void help_examples(const struct syntax *syntax) {
    struct text rest = text_of(syntax->examples);
    puts("\nExamples:");
    while (rest.length) {
        struct text line = text_take_line(&rest);
        printf("  %.*s\n", TEXT_ARGS(line));
    }
}

static void help_as_text(const struct syntax *syntax, bool all) {
    printf("Usage: wick %s%s %s\n\n%s\n", syntax->command,
           syntax->groups->title ? " [options]" : "", syntax->usage, syntax->about);
    if (syntax->common && !all)
        help_common(syntax);
    else
        help_groups(syntax);
    if (syntax->examples)
        help_examples(syntax);
}

/* ---- for man ---- */

/* Append text in roff: no line may begin a request, and hyphens stay hyphens. */
static void man_text(const char *text) {
    bool fresh = true;
    for (; *text; text++) {
        if (fresh && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
        fresh = *text == '\n';
    }
}

static void man_bold(const char *text) {
    fputs("\\fB", stdout);
    man_text(text);
    fputs("\\fR", stdout);
}

static void man_option(const struct option *option) {
    char name[80];
    puts(".TP");
    if (option->letter) {
        snprintf(name, sizeof name, "-%c", option->letter);
        man_bold(name);
        fputs(", ", stdout);
    }
    snprintf(name, sizeof name, "--%s", option->name);
    man_bold(name);
    if (option->argument) {
        fputs(option->kind == OPTION_MAYBE ? "\\fI" : " \\fI", stdout);
        man_text(option->argument);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    man_text(option->help);
    putchar('\n');
}

static void man_exit_status(void) {
    puts(".SH EXIT STATUS\n"
         ".TP\n0\nsuccess\n.TP\n1\nbad input, or a file that can't be read or written\n"
         ".TP\n2\nwrong usage\n.TP\n3\nthe machine does not allow it\n.TP\n4\ntoo few samples\n"
         ".TP\n5\nan internal error of wick\n.TP\n6\na limit of wick diff \\-\\-fail\\-if is "
         "exceeded\n.PP\nIf a recorded program fails, its exit status is passed on as shells do; 1 "
         "to 5 become 101 to 105.");
}

static void man_head(const char *command) {
    printf(".TH WICK");
    for (const char *c = command; c && *c; c++)
        printf("%s%c", c == command ? "\\-" : "", *c >= 'a' && *c <= 'z' ? *c - 32 : *c);
    puts(" 1 \"\" \"wick " WICK_VERSION "\" \"wick\"\n.SH NAME");
    printf(command ? "wick\\-%s \\- " : "wick \\- ", command);
}

static void help_as_man(const struct command *command, const struct syntax *syntax) {
    man_head(syntax->command);
    man_text(command->summary);
    printf("\n.SH SYNOPSIS\n.B wick %s\n%s", syntax->command,
           syntax->groups->title ? "[\\fIoptions\\fR] " : "");
    man_text(syntax->usage);
    puts("\n.SH DESCRIPTION");
    man_text(syntax->about);
    puts(syntax->groups->title ? "\n.SH OPTIONS" : "");
    for (const struct option_group *group = syntax->groups; group->title; group++) {
        if (!*group->title)
            continue;
        printf(".SS %s\n", group->title);
        for (const struct option *option = group->options; option->name; option++)
            if (option->kind != OPTION_HIDDEN)
                man_option(option);
    }
    if (syntax->examples) {
        puts(".SH EXAMPLES\n.nf");
        man_text(syntax->examples);
        puts("\n.fi");
    }
    man_exit_status();
    puts(".SH SEE ALSO\n.BR wick (1)");
}

void help_print(const struct request *request, const struct syntax *syntax, bool all) {
    switch (request->help) {
    case HELP_TEXT:
        help_as_text(syntax, all);
        break;
    case HELP_MAN:
        help_as_man(request->command, syntax);
        break;
    default:
        completion_add(request->help, syntax);
    }
}

/* ---- all commands ---- */

/* Find a command by an unambiguous prefix; `wick version` means the option. */
static const char *guess_command(command_table commands, const char *name) {
    static const char *const options[] = {"--help", "--version"};
    struct guess guess = {.typed = text_of(name)};
    size_t length = strlen(name);
    for (size_t i = 0; i < COUNT_OF(options); i++)
        guess_offer(&guess, options[i] + (*name == '-' ? 0 : 2));
    for (size_t i = 0; i < COUNT_OF(options); i++)
        if (guess.best == options[i] + 2)
            guess.best = options[i];
    for (size_t i = 0; commands[i]; i++)
        guess_offer(&guess, commands[i]->name);
    for (size_t i = 0; commands[i] && length > 1 && !guess.best; i++)
        if (strncmp(name, commands[i]->name, length) == 0)
            guess.best = commands[i]->name;
    return guess.best;
}

const struct command *command_find(command_table commands, const char *name) {
    for (size_t i = 0; commands[i]; i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    const char *meant = guess_command(commands, name);
    say_line("%s: no such %s%s%s%s; see wick --help", name, *name == '-' ? "option" : "command",
             meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
    return NULL;
}

static const char *const group_titles[] = {
    [GROUP_RECORD] = "Record",       [GROUP_LOOK] = "Look at a profile",
    [GROUP_COMPARE] = "Compare",     [GROUP_CONVERT] = "Convert",
    [GROUP_FLEET] = "Many machines", [GROUP_MACHINE] = "This machine",
};
static_assert(COUNT_OF(group_titles) == COMMAND_GROUPS, "one each");

/* Return true if this command is the first of its group in the table. */
static bool begins_group(command_table commands, size_t number) {
    return number == 0 || commands[number]->group != commands[number - 1]->group;
}

static const char common_uses[] =
    "    wick profile -- ./program   record it: a directory with graphs, tables, report\n"
    "    wick flame perf.data        draw a flame graph of what was recorded\n"
    "    wick report perf.data       print which functions cost most\n"
    "    wick diff BEFORE AFTER      show what changed between two profiles\n"
    "    wick doctor                 show what this machine lets you record\n";

void help_commands(command_table commands, FILE *file) {
    fputs("Usage: wick COMMAND [options] …\n\n"
          "Turns a running Linux program, or a profile of one, into a flame graph. Most "
          "common:\n\n",
          file);
    fputs(common_uses, file);
    for (size_t i = 0; commands[i]; i++) {
        if (begins_group(commands, i))
            fprintf(file, "\n%s:\n", group_titles[commands[i]->group]);
        fprintf(file, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    fputs("\nRun `wick COMMAND --help` for the options of a command, and `wick --version` for the "
          "version.\n",
          file);
}

static void man_overview(command_table commands) {
    man_head(NULL);
    puts("turn a running Linux program, or a profile of one, into a flame graph\n"
         ".SH SYNOPSIS\n.B wick\n\\fICOMMAND\\fR [\\fIoptions\\fR] \\&...\n.SH DESCRIPTION\n"
         "wick records programs, reads perf.data and many other formats, and writes flame graphs,\n"
         "tables, folded stacks and the text that perf script prints.\n.SH COMMANDS");
    for (size_t i = 0; commands[i]; i++) {
        if (begins_group(commands, i))
            printf(".SS %s\n", group_titles[commands[i]->group]);
        printf(".TP\n.BR wick\\-%s (1)\n", commands[i]->name);
        man_text(commands[i]->summary);
        putchar('\n');
    }
    puts(".SH EXAMPLES\n.nf");
    man_text(common_uses);
    puts(".fi");
    man_exit_status();
}

static bool man_begin(const char *directory, const char *command, struct error *error) {
    char path[4200];
    snprintf(path, sizeof path, "%s/wick%s%s.1", directory, command ? "-" : "",
             command ? command : "");
    return freopen(path, "w", stdout) || error_errno(error, path);
}

static bool man_end(const char *directory, struct error *error) {
    return (fflush(stdout) == 0 && !ferror(stdout)) || error_errno(error, directory);
}

int help_of(const struct command *command, enum help_form form) {
    char *words[] = {(char *)(uintptr_t)command->name, "--help", NULL};
    return command_run(command, form, 2, words);
}

static bool man_write(command_table commands, const char *directory, struct error *error) {
    if (!man_begin(directory, NULL, error))
        return false;
    man_overview(commands);
    for (; *commands; commands++) {
        if (!man_end(directory, error) || !man_begin(directory, (*commands)->name, error))
            return false;
        help_of(*commands, HELP_MAN);
    }
    return man_end(directory, error);
}

int help_command(command_table commands, int argc, char **argv) {
    struct error error;
    if (argc == 1 || (argc == 2 && strcmp(argv[1], "--help") == 0)) {
        help_commands(commands, stdout);
        return 0;
    }
    if (argc == 2 && completion_print(commands, argv[1]))
        return 0;
    if (argc == 3 && strcmp(argv[1], "--man") == 0)
        return man_write(commands, argv[2], &error) ? 0 : fail(&error);
    if (argc != 2) {
        fprintf(stderr, "wick: help takes one command; see wick --help\n");
        return ERROR_USAGE;
    }
    const struct command *command = command_find(commands, argv[1]);
    return command ? help_of(command, HELP_TEXT) : ERROR_USAGE;
}
