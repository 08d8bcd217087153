/*
 * wick doctor: what this machine allows, and the command that changes each setting.
 */
#include <stdio.h>

#include "cmd/confine.h"
#include "cmd/doctor.h"
#include "object/object.h"

struct doctor_command {
    struct request request;
    bool clear_cache;
};

static const struct option options_doctor[] = {
    {"clear-cache", 0, OPTION_FLAG, IN(struct doctor_command, clear_cache), NULL,
     "empty the cache of symbol tables and debug information, and exit"},
    {0},
};

static const struct option options_reading[] = {OPTION_NO_SANDBOX, {0}};

static const struct option_group groups[] = {
    {"The cache", options_doctor}, {"Symbols", options_symbols}, {"Reading", options_reading}, {0}};
static const struct syntax syntax = {
    "doctor",
    "[BINARY|PROFILE…]",
    "Show what this machine permits a profiler to do, and how to permit more. For each "
    "BINARY,\nshow which symbols and debug information are found; for each PROFILE, which files "
    "its names\ncome from, how many samples lack names, and what to do about it.",
    groups,
    .examples = "wick doctor                                    # what this machine allows\n"
                "wick doctor perf.data                          # where its names are from\n"
                "wick doctor --clear-cache                      # start afresh\n"
                "wick doctor ./program                          # which symbols it has",
};

void doctor_say(enum record_verdict verdict, const char *what, const char *finding,
                const char *remedy) {
    static const char *const marks[] = {"ok     ", "limited", "no     "};
    printf("%s  %-20s %s\n", marks[verdict], what, finding);
    if (remedy)
        printf("%-29s → %s\n", "", remedy);
}

static void look_at_binary(const char *path, const struct object_facts *of) {
    struct object_facts facts = *of;
    char finding[200];
    snprintf(finding, sizeof finding, "%s%s%s%s",
             facts.symbols    ? "symbols"
             : facts.exported ? "only symbols of exported functions"
                              : "no symbols",
             facts.lines ? ", debug information" : ", no debug information",
             facts.unwind ? ", unwind tables" : ", no unwind tables",
             facts.separate ? " (separate debug file)" : "");
    char remedy[300];
    snprintf(remedy, sizeof remedy,
             "build it with -g, or: apt-get install $(dpkg -S %.150s | cut -d: -f1)-dbgsym", path);
    bool named = facts.symbols || facts.exported;
    doctor_say(named && facts.unwind
                   ? (facts.symbols && facts.lines ? FINDING_GOOD : FINDING_LIMITED)
                   : FINDING_BAD,
               path, finding, facts.lines ? NULL : remedy);
}

/* A file that is not ELF may be a profile. */
static int look_at(struct request *request, const char *path) {
    struct object_facts facts;
    struct error error, why;
    if (object_file_facts(path, &facts, &error)) {
        look_at_binary(path, &facts);
        return 0;
    }
    if (doctor_look_at_profile(request, path, &why))
        return 0;
    doctor_say(FINDING_BAD, path, why.message, NULL);
    return 0;
}

/* ---- the cache ---- */

static void look_at_cache(const char *path) {
    struct objects_cache_facts facts;
    char finding[400];
    if (!path) {
        doctor_say(FINDING_GOOD, "cache", "off (WICK_CACHE=off, or no home directory)", NULL);
    } else if (!objects_cache_facts(path, &facts)) {
        snprintf(finding, sizeof finding, "%.300s is another user's, or others may write to it",
                 path);
        doctor_say(FINDING_LIMITED, "cache", finding,
                   "set WICK_CACHE=DIR to a directory of your own");
    } else {
        snprintf(finding, sizeof finding, "%.1f MB of at most %.0f MB in %llu files, in %.300s",
                 (double)facts.bytes / 1e6, (double)facts.limit / 1e6,
                 (unsigned long long)facts.files, path);
        doctor_say(FINDING_GOOD, "cache", finding, NULL);
    }
}

static int clear_cache(const char *path) {
    if (!path || objects_cache_clear(path))
        return 0;
    say_line("%s: not all of it could be removed", path);
    return ERROR_INPUT;
}

static int run(void *command, int argc, char **argv) {
    struct doctor_command *doctor = command;
    struct request *request = &doctor->request;
    int status = 0;
    if (!options_parse(&syntax, request, argc, argv, &status))
        return status;
    if (doctor->clear_cache)
        return clear_cache(request->import.profile.objects.cache);
    struct record_findings found = {0};
    record_probe(&found);
    for (size_t i = 0; i < found.count; i++)
        doctor_say(found.items[i].verdict, found.items[i].what, found.items[i].finding,
                   found.items[i].remedy);
    record_findings_release(&found);
    struct error error;
    if (request->operands.count && !confine(request, NULL, NULL, &error))
        return fail(&error);
    look_at_cache(request->import.profile.objects.cache);
    for (size_t i = 0; i < request->operands.count; i++)
        look_at(request, request->operands.items[i]);
    return 0;
}

const struct command command_doctor = {"doctor",
                                       "show what this machine permits, and how to permit more",
                                       sizeof(struct doctor_command), run, .group = GROUP_MACHINE};
