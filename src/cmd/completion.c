/*
 * Shell completion of commands, long options and options' values. `wick help --bash`, `--zsh` and `--fish` print it;
 * `make install` calls them. Everything comes from the commands' own tables.
 */
#include "cmd/cmd.h"

#include <stdio.h>

/* Call `each` for every option that --help offers. */
static void for_options(const struct syntax *syntax,
                        void (*each)(const struct syntax *, const struct option *)) {
    for (const struct option_group *group = syntax->groups; group->title; group++)
        for (const struct option *option = group->options; *group->title && option->name; option++)
            if (option->kind != OPTION_HIDDEN)
                each(syntax, option);
}

static bool takes_path(const struct option *option) {
    return option->argument &&
           (strncmp(option->argument, "FILE", 4) == 0 || strncmp(option->argument, "DIR", 3) == 0 ||
            strstr(option->argument, "=FILE"));
}

/* Append the first sentence of the help, without characters that are special to a shell. */
static void put_help(const struct option *option) {
    size_t length = strcspn(option->help, ";:(");
    while (length && option->help[length - 1] == ' ')
        length--;
    for (const char *c = option->help; c < option->help + length; c++)
        if (!strchr("[]'\"`\\$", *c))
            putchar(*c);
}

/* ---- bash ---- */

static void bash_name(const struct syntax *syntax, const struct option *option) {
    printf(" --%s", option->name);
}

static void bash_values(const struct syntax *syntax, const struct option *option) {
    if (option->values)
        printf("    %s:--%s) values=\"%s\" ;;\n", syntax->command, option->name, option->values);
}

static void bash_command(const struct syntax *syntax) {
    printf("    %s:*) options=\"--help --help=all", syntax->command);
    for_options(syntax, bash_name);
    puts("\" ;;");
}

static void bash_begin(command_table commands) {
    puts("# bash completion for wick: made by `wick help --bash`.\n"
         "_wick() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before= options= values= words=");
    fputs("    local commands=\"help", stdout);
    for (; *commands; commands++)
        printf(" %s", (*commands)->name);
    puts("\"\n"
         "    [ $COMP_CWORD -gt 0 ] && before=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    # --name=value comes as three words\n"
         "    [ \"$before\" = = ] && before=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "    [ \"$word\" = = ] && word=\n"
         "    case ${COMP_WORDS[1]}:$before in");
}

static void bash_end(void) {
    puts("    esac\n"
         "    case ${COMP_WORDS[1]} in\n"
         "    help) [ $COMP_CWORD = 2 ] && words=$commands ;;\n"
         "    esac\n"
         "    [ $COMP_CWORD = 1 ] && words=\"$commands --help --version\"\n"
         "    [[ $COMP_CWORD != 1 && $word == -* ]] && words=$options\n"
         "    [ -n \"$values\" ] && words=$values\n"
         "    [ -n \"$words\" ] && COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _wick wick");
}

/* ---- zsh ---- */

static void zsh_option(const struct syntax *syntax, const struct option *option) {
    printf(" \\\n        '--%s%s[", option->name,
           !option->argument              ? ""
           : option->kind == OPTION_MAYBE ? "=-"
                                          : "=");
    put_help(option);
    putchar(']');
    if (option->argument && option->kind == OPTION_MAYBE)
        putchar(':');
    if (option->argument)
        printf(":%s:", takes_path(option) ? "file" : "value");
    if (option->values)
        printf("(%s)", option->values);
    else if (takes_path(option))
        fputs("_files", stdout);
    putchar('\'');
}

static void zsh_command(const struct syntax *syntax) {
    printf("    %s) _arguments '*:file:_files' '--help[all about it]'", syntax->command);
    for_options(syntax, zsh_option);
    puts(" ;;");
}

static void zsh_begin(command_table commands) {
    puts("#compdef wick\n# zsh completion for wick: made by `wick help --zsh`.\n"
         "if (( CURRENT == 2 )); then\n    _values command help \\");
    for (; *commands; commands++) {
        printf("        '%s[", (*commands)->name);
        for (const char *c = (*commands)->summary; *c; c++)
            if (!strchr("[]':`", *c))
                putchar(*c);
        printf("]'%s\n", commands[1] ? " \\" : "");
    }
    puts("else\n    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case "
         "$command in");
}

static void zsh_end(void) {
    puts("    esac\nfi");
}

/* ---- fish ---- */

static void fish_option(const struct syntax *syntax, const struct option *option) {
    printf("complete -c wick -n '__fish_seen_subcommand_from %s' -l %s", syntax->command,
           option->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    if (option->values)
        printf(" -x -a '%s'", option->values);
    else if (takes_path(option))
        fputs(" -r -F", stdout);
    else if (option->argument && option->kind != OPTION_MAYBE)
        fputs(" -x", stdout);
    fputs(" -d '", stdout);
    put_help(option);
    puts("'");
}

static void fish_command(const struct syntax *syntax) {
    for_options(syntax, fish_option);
}

static void fish_begin(command_table commands) {
    puts("# fish completion for wick: made by `wick help --fish`.");
    for (; *commands; commands++) {
        printf("complete -c wick -f -n __fish_use_subcommand -a %s -d '", (*commands)->name);
        for (const char *c = (*commands)->summary; *c; c++)
            if (!strchr("'\\`", *c))
                putchar(*c);
        puts("'");
    }
}

static void nothing(void) {}

/* ---- all of it ---- */

static const struct {
    const char *option;
    enum help_form form;
    void (*begin)(command_table commands);
    void (*add)(const struct syntax *syntax);
    void (*end)(void);
} shells[] = {
    {"--bash", HELP_BASH, bash_begin, bash_command, bash_end},
    {"--zsh", HELP_ZSH, zsh_begin, zsh_command, zsh_end},
    {"--fish", HELP_FISH, fish_begin, fish_command, nothing},
};

/* In bash, the line for an option's values comes before the command's own. */
void completion_add(enum help_form form, const struct syntax *syntax) {
    if (form == HELP_BASH)
        for_options(syntax, bash_values);
    for (size_t i = 0; i < COUNT_OF(shells); i++)
        if (shells[i].form == form)
            shells[i].add(syntax);
}

bool completion_print(command_table commands, const char *shell) {
    for (size_t i = 0; i < COUNT_OF(shells); i++) {
        if (strcmp(shell, shells[i].option) != 0)
            continue;
        shells[i].begin(commands);
        for (command_table command = commands; *command; command++)
            help_of(*command, shells[i].form);
        shells[i].end();
        return true;
    }
    return false;
}
