/*
 * run.json, for programs: what was measured, how, and what was missing. report.c writes the same for people.
 */
#include "run/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *measurement_of(const char *event) {
    struct perf_event_attr attr;
    if (strncmp(event, "offcpu-", 7) == 0) /* only the sums of wick's BPF program have such names */
        return "BPF program";
    if (!record_parse_event(event, &attr, NULL))
        return "unknown kind of event";
    switch (attr.type) {
    case PERF_TYPE_SOFTWARE:
        return attr.config == PERF_COUNT_SW_CPU_CLOCK || attr.config == PERF_COUNT_SW_TASK_CLOCK
                   ? "software clock"
                   : "software event";
    case PERF_TYPE_TRACEPOINT:
        return "tracepoint";
    case PERF_TYPE_HARDWARE:
    case PERF_TYPE_HW_CACHE:
    case PERF_TYPE_RAW:
        return "hardware counter";
    default:
        return "event of a PMU";
    }
}

/* Return the length of the first event name in a list: it ends at a comma that is not between slashes (cpu/event=0x3c,umask=0/). */
static size_t event_length(const char *list) {
    size_t length = 0;
    for (bool inside = false; list[length] && (inside || list[length] != ','); length++)
        inside ^= list[length] == '/';
    return length;
}

char *run_measurement(const char *events, const char *method) {
    struct buffer kinds = {0};
    if (method && strcmp(method, "ptrace") == 0)
        return memory_copy("ptrace sampling", 15);
    if (method && strcmp(method, "preload") == 0)
        return memory_copy("a library preloaded into the target", 35);
    while (!kinds.count || *events) {
        size_t length = event_length(events);
        char *event = memory_copy(events, length);
        const char *kind = measurement_of(event);
        if (text_search(buffer_text(&kinds), text_of(kind)) == SIZE_MAX)
            buffer_printf(&kinds, "%s%s", kinds.count ? ", " : "", kind);
        free(event);
        events += length + (events[length] == ',');
    }
    buffer_add_char(&kinds, 0);
    return kinds.items;
}

const char *call_graph_name(const struct record_options *recording,
                            const struct record_result *result, char *text, size_t size) {
    static const char *const names[] = {"dwarf", "fp", "lbr", "none"};
    if (recording->call_graph == CALL_GRAPH_DWARF)
        snprintf(text, size, "dwarf,%u",
                 result->stack_size ? result->stack_size : recording->stack_size);
    else
        snprintf(text, size, "%s", names[recording->call_graph]);
    return text;
}

int run_exit_status(const struct run *run) {
    int status = run->result->target_status;
    return status == -1 ? -1 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- run.json ---- */

/* An empty text becomes null. */
static void add_text(struct buffer *json, const char *key, struct text value) {
    buffer_printf(json, value.length ? "  \"%s\": \"" : "  \"%s\": null", key);
    buffer_add_json(json, value);
    buffer_add(json, value.length ? TEXT("\",\n") : TEXT(",\n"));
}

static void add_string(struct buffer *json, const char *key, const char *value) {
    add_text(json, key, text_of(value));
}

static void add_number(struct buffer *json, const char *key, uint64_t value) {
    buffer_printf(json, "  \"%s\": %llu,\n", key, (unsigned long long)value);
}

static void add_items(struct buffer *json, char *const *items, size_t count) {
    for (size_t i = 0; i < count; i++) {
        buffer_add(json, i ? TEXT(", \"") : TEXT("\""));
        buffer_add_json(json, text_of(items[i]));
        buffer_add_char(json, '"');
    }
}

static void add_notes(struct buffer *json, const struct notes *notes, bool *first) {
    struct buffer line = {0};
    for (size_t i = 0; i < notes->count; i++) {
        line.count = 0;
        note_print(&notes->items[i], &line);
        buffer_printf(json, "%s\n    {\"kind\": \"%s\", \"count\": %llu, \"text\": \"",
                      *first ? "" : ",", notes->items[i].kind->name,
                      (unsigned long long)notes->items[i].count);
        buffer_add_json(json, buffer_text(&line));
        buffer_add(json, TEXT("\"}"));
        *first = false;
    }
    buffer_release(&line);
}

void run_add_ids(const struct run *run, struct buffer *text, const char *between) {
    const struct record_options *recording = run->recording;
    const char *before = "";
    for (size_t i = 0; i < recording->pid_count; i++, before = between)
        buffer_printf(text, "%s%d", before, recording->pids[i]);
    for (size_t i = 0; i < recording->tid_count; i++, before = between)
        buffer_printf(text, "%s%d", before, recording->tids[i]);
}

static void add_target(struct buffer *json, const struct run *run) {
    struct buffer ids = {0};
    run_add_ids(run, &ids, ", ");
    buffer_printf(json, "  \"record_target\": {\"kind\": \"%s\"", run->record_target);
    if (ids.count)
        buffer_printf(json, ", \"ids\": [%.*s]", TEXT_ARGS(buffer_text(&ids)));
    buffer_add(json, TEXT("},\n"));
    buffer_release(&ids);
}

static void json_measurement(struct buffer *json, const struct run *run) {
    const struct record_options *recording = run->recording;
    const struct record_result *result = run->result;
    char graph[40];
    add_string(json, "profile_kind", run->kind);
    add_string(json, "requested_backend", recording->method == METHOD_PTRACE ? "ptrace" : "perf");
    add_string(json, "actual_backend", result->method);
    bool fell_back = strcmp(result->method, "ptrace") == 0 && recording->method != METHOD_PTRACE;
    add_string(json, "fallback_reason", fell_back ? "perf events were refused" : "");
    char *measurement = run_measurement(result->events, result->method);
    add_string(json, "measurement", measurement);
    free(measurement);
    uint64_t period = recording->heap ? recording->heap_every : recording->period;
    bool by_period = period != 0;
    add_number(json, by_period ? "sample_period" : "sample_frequency",
               by_period ? period : recording->frequency);
    add_string(json, by_period ? "sample_frequency" : "sample_period", ""); /* null */
    add_string(json, "sample_event", result->events);
    add_string(json, "call_graph", call_graph_name(recording, result, graph, sizeof graph));
    add_target(json, run);
    if (recording->duration)
        buffer_printf(json, "  \"duration_secs\": %g,\n", (double)recording->duration / 1e9);
    else
        buffer_add(json, TEXT("  \"duration_secs\": null,\n"));
}

static void json_tool(struct buffer *json) {
    char path[4200];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    buffer_add(json, TEXT("  \"tool_versions\": [{\"name\": \"wick\", \"path\": \""));
    buffer_add_json(json, text_of(path));
    buffer_add(json, TEXT("\", \"source\": \"itself\", \"version\": \"" WICK_VERSION
                          "\", \"error\": null}],\n"));
}

static void json_result(struct buffer *json, const struct run *run) {
    const struct record_result *result = run->result;
    add_number(json, "started_at_unix_ms", result->started_ns / 1000000);
    add_number(json, "ended_at_unix_ms", result->ended_ns / 1000000);
    if (run_exit_status(run) >= 0)
        add_number(json, "exit_status", (uint64_t)run_exit_status(run));
    else
        buffer_add(json, TEXT("  \"exit_status\": null,\n"));
    add_number(json, "samples", result->samples);
    add_number(json, "samples_read", run->read);
    add_number(json, "waits_read", run->waits);
    add_number(json, "stacks_complete", run->endings[ENDING_COMPLETE]);
    add_number(json, "stacks_truncated", run->endings[ENDING_TRUNCATED]);
    add_number(json, "stacks_broken", run->endings[ENDING_BROKEN]);
    add_number(json, "lost", result->lost);
    add_number(json, "stacks", run->stacks);
    add_number(json, "min_samples", run->min_samples);
    buffer_printf(json, "  \"enough_samples\": %s,\n", run_has_enough(run) ? "true" : "false");
    struct buffer why = {0};
    run_shortcoming(run, &why);
    add_text(json, "partial_reason", buffer_text(&why));
    buffer_release(&why);
    buffer_add(json, TEXT("  \"symbols\": true,\n"));
    json_tool(json);
}

static void json_facts(struct buffer *json, const struct facts *facts) {
    buffer_add(json, TEXT("  \"inputs\": ["));
    for (size_t i = 0; i < facts->inputs.count; i++) {
        buffer_add(json, i ? TEXT(", {\"path\": \"") : TEXT("{\"path\": \""));
        buffer_add_json(json, text_of(facts->inputs.items[i].path));
        buffer_printf(json, "\", \"sha256\": \"%s\"}", facts->inputs.items[i].digest);
    }
    buffer_add(json, TEXT("],\n"));
    add_text(json, "build_id", buffer_text(&facts->build_id));
    add_text(json, "compiler", buffer_text(&facts->compiler));
    add_text(json, "git_commit", buffer_text(&facts->commit));
    add_text(json, "git_branch", buffer_text(&facts->branch));
    buffer_add(json, TEXT("  \"git_dirty\": null,\n")); /* git alone knows, and is not asked */
}

/* Write what else took part: a load, an earlier run. */
static void json_beside(struct buffer *json, const struct run *run) {
    struct buffer how = {0};
    add_string(json, "build", run->build ? run->build : "");
    add_string(json, "load", run->load->line ? run->load->line : "");
    if (run->load->line) {
        load_describe(run->load, &how);
        add_text(json, "load_ended", buffer_text(&how));
        buffer_printf(json, "  \"warmup_secs\": %g,\n", run->warmup);
    }
    add_string(json, "compared_with", run->compared ? run->compared : "");
    if (run->compared)
        buffer_printf(json, "  \"compared_scaled\": %s,\n", run->scaled ? "true" : "false");
    buffer_release(&how);
}

bool run_write_text(const struct run *run, const char *file, struct text text,
                    struct error *error) {
    struct out out;
    bool fine = out_open_at(&out, run->directory, file, error);
    if (fine) {
        out_text(&out, text);
        fine = out_commit(&out, error);
    }
    return fine;
}

static bool write_json(struct run *run, const struct facts *facts, struct error *error) {
    struct buffer json = {0};
    struct utsname host;
    char *directory = getcwd(NULL, 0);
    uname(&host);
    buffer_add(&json, TEXT("{\n"));
    add_string(&json, "name", run->name);
    buffer_add(&json, TEXT("  \"command\": ["));
    size_t words = 0;
    while (run->command && run->command[words])
        words++;
    add_items(&json, run->command, words);
    buffer_add(&json, TEXT("],\n"));
    add_string(&json, "cwd", directory ? directory : "");
    buffer_add(&json, TEXT("  \"platform\": \""));
    buffer_printf(&json, "%s %s %s\",\n", host.sysname, host.release, host.machine);
    json_measurement(&json, run);
    json_result(&json, run);
    json_beside(&json, run);
    json_facts(&json, facts);
    buffer_add(&json, TEXT("  \"artifacts\": ["));
    add_items(&json, run->artifacts.items, run->artifacts.count);
    buffer_add(&json, TEXT("],\n  \"diagnostics\": ["));
    bool first = true;
    add_notes(&json, &run->result->notes, &first);
    add_notes(&json, &run->notes, &first);
    buffer_add(&json, first ? TEXT("]\n}\n") : TEXT("\n  ]\n}\n"));
    bool fine = run_write_text(run, "run.json", buffer_text(&json), error);
    buffer_release(&json);
    free(directory);
    return fine;
}

bool run_describe(struct run *run, struct error *error) {
    notes_sort(&run->notes);
    run_wrote(run, "run.json");
    run_wrote(run, "report.txt");
    struct facts facts;
    facts_of_run(&facts, run);
    bool fine = write_json(run, &facts, error) && run_write_report(run, &facts, error);
    facts_release(&facts);
    return fine;
}
