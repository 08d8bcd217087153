/*
 * Parsing options by tables. help.c prints --help and the manual from the same tables.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct option *option_long(const struct syntax *syntax, struct text name) {
    for (const struct option_group *group = syntax->groups; group->title; group++)
        for (const struct option *option = group->options; option->name; option++)
            if (text_equal(text_of(option->name), name))
                return option;
    return NULL;
}

static const struct option *option_letter(const struct syntax *syntax, char letter) {
    for (const struct option_group *group = syntax->groups; group->title; group++)
        for (const struct option *option = group->options; option->name; option++)
            if (option->letter == letter)
                return option;
    return NULL;
}

static bool value_u64(const char *value, uint64_t least, uint64_t most, uint64_t *result,
                      struct error *error) {
    bool fine = text_to_u64(text_of(value), result) && *result >= least && *result <= most;
    if (!fine && most >= UINT32_MAX && !(*value && strspn(value, "0123456789") > 9))
        return error_set(error, ERROR_USAGE,
                         least ? "'%s' is not a whole number of at least %llu"
                               : "'%s' is not a whole number",
                         value, (unsigned long long)least);
    if (!fine)
        return error_set(error, ERROR_USAGE, "'%s' is not a number from %llu to %llu", value,
                         (unsigned long long)least, (unsigned long long)most);
    return true;
}

static bool value_double(const char *value, double *result, struct error *error) {
    char *end;
    errno = 0;
    *result = strtod(value, &end);
    if (*value == 0 || *end || errno || *result != *result || *result - *result != 0)
        return error_set(error, ERROR_USAGE, "'%s' is not a number", value);
    return true;
}

bool choose(const char *value, const char *const *names, size_t count, unsigned *choice,
            struct error *error) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(value, names[i]) == 0) {
            *choice = (unsigned)i;
            return true;
        }
    struct buffer all = {0};
    for (size_t i = 0; i < count; i++)
        buffer_printf(&all, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " and ", names[i]);
    error_set(error, ERROR_USAGE, "'%s' is none of %.*s", value, TEXT_ARGS(buffer_text(&all)));
    buffer_release(&all);
    return false;
}

static bool option_set(const struct option *option, void *command, const char *value,
                       struct error *error) {
    uint64_t number;
    void *target = (char *)command + option->target.offset; /* unused if the target is a function */
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)target = true;
        return true;
    case OPTION_TEXT:
        *(const char **)target = value;
        return true;
    case OPTION_LIST:
        vector_push((text_list *)target, value);
        return true;
    case OPTION_U32:
    case OPTION_COUNT:
        if (!value_u64(value, option->kind == OPTION_COUNT, UINT32_MAX, &number, error))
            return false;
        *(uint32_t *)target = (uint32_t)number;
        return true;
    case OPTION_U64:
    case OPTION_COUNT64:
        return value_u64(value, option->kind == OPTION_COUNT64, UINT64_MAX, target, error);
    case OPTION_DOUBLE:
        return value_double(value, target, error);
    case OPTION_AMOUNT:
        return value_double(value, target, error) &&
               (*(double *)target > 0 ||
                error_set(error, ERROR_USAGE, "'%s' is not more than 0", value));
    case OPTION_CALL:
    case OPTION_MAYBE:
        return option->target.call(command, value, error);
    case OPTION_HIDDEN:
        return true;
    }
    return false;
}

/* ---- parsing ---- */

struct parse {
    const struct syntax *syntax;
    void *command;
    int argc, at;
    char **argv;
    int status;
};

static bool parse_value(struct parse *parse, const struct option *option, const char *given,
                        const char *shown) {
    struct error error;
    const char *value = given;
    if (option->argument && !given && option->kind != OPTION_MAYBE) {
        if (parse->at >= parse->argc) {
            parse->status =
                fail_usage(parse->syntax->command, "%s needs a value: %s", shown, option->argument);
            return false;
        }
        value = parse->argv[parse->at++];
    }
    if (!option->argument && given) {
        parse->status = fail_usage(parse->syntax->command, "%s takes no value", shown);
        return false;
    }
    if (option_set(option, parse->command, value, &error))
        return true;
    parse->status = fail_usage(parse->syntax->command, "%s: %s", shown, error.message);
    return false;
}

/* Collect the options that --help shows. */
static void offer_options(const struct syntax *syntax, struct guess *guess) {
    for (const struct option_group *group = syntax->groups; group->title; group++)
        for (const struct option *option = group->options; *group->title && option->name; option++)
            if (option->kind != OPTION_HIDDEN)
                guess_offer(guess, option->name);
}

static bool parse_long(struct parse *parse, const char *argument) {
    size_t length = strcspn(argument + 2, "=");
    const char *value = argument[2 + length] ? argument + 3 + length : NULL;
    char shown[100];
    snprintf(shown, sizeof shown, "--%.*s", (int)length, argument + 2);
    const struct option *option = option_long(parse->syntax, (struct text){argument + 2, length});
    if (option)
        return parse_value(parse, option, value, shown);
    struct guess guess = {.typed = {argument + 2, length}};
    offer_options(parse->syntax, &guess);
    parse->status = fail_usage(parse->syntax->command, "%s: no such option%s%s%s", shown,
                               guess.best ? " (did you mean --" : "", guess.best ? guess.best : "",
                               guess.best ? "?)" : "");
    return false;
}

/* Flags may be combined (-qv); an option that takes a value takes the rest of the word. */
static bool parse_letters(struct parse *parse, const char *argument) {
    for (const char *letter = argument + 1; *letter; letter++) {
        char shown[] = {'-', *letter, 0};
        const struct option *option = option_letter(parse->syntax, *letter);
        if (!option) {
            parse->status = fail_usage(parse->syntax->command, "%s: no such option", shown);
            return false;
        }
        bool has_rest = option->argument && letter[1];
        if (!parse_value(parse, option, has_rest ? letter + 1 : NULL, shown))
            return false;
        if (option->argument)
            break;
    }
    return true;
}

bool options_parse(const struct syntax *syntax, void *command, int argc, char **argv, int *status) {
    struct request *request = command;
    struct parse parse = {
        .syntax = syntax, .command = command, .argc = argc, .at = 1, .argv = argv};
    request->syntax = syntax;
    bool only_operands = false, fine = true;
    while (fine && parse.at < argc) {
        const char *argument = argv[parse.at++];
        if (only_operands || argument[0] != '-' || argument[1] == 0) {
            vector_push(&request->operands, argument);
            only_operands |= syntax->takes_command;
        } else if (strcmp(argument, "--") == 0) {
            only_operands = true;
        } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            help_print(request, syntax, false);
            fine = false;
        } else if (strcmp(argument, "--help=all") == 0) {
            help_print(request, syntax, true);
            fine = false;
        } else if (argument[1] == '-') {
            fine = parse_long(&parse, argument);
        } else {
            fine = parse_letters(&parse, argument);
        }
    }
    if (request->quiet)
        request->context.progress = NULL;
    *status = parse.status;
    return fine;
}

/* Lists are the only values that own memory. Lists that are not filled by such an option are released by name. */
static void release_lists(const struct syntax *syntax, void *command) {
    for (const struct option_group *group = syntax->groups; group->title; group++)
        for (const struct option *option = group->options; option->name; option++)
            if (option->kind == OPTION_LIST)
                vector_release((text_list *)((char *)command + option->target.offset));
}

void request_release(struct request *request) {
    buffer_release(&request->cache);
    net_stop(request->net);
    net_stop(request->import.store_net);
    vector_release(&request->debuginfod);
    if (request->syntax)
        release_lists(request->syntax, request);
    vector_release(&request->events); /* filled by wick record itself */
    stack_rules_release(&request->rules);
    vector_release(&request->operands);
    vector_release(&request->pids);
    vector_release(&request->tids);
    vector_release(&request->cpus);
    vector_release(&request->labels);
    vector_release(&request->assigned);
    vector_release(&request->by.labels);
    arena_release(&request->arena);
}
