/*
 * run.json for programs and report.txt for people: what was measured, how, and what was missing.
 */
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "object/object.h"
#include "run/internal.h"
#include "view/view.h"

enum { TOP_STACKS = 15 };

const char *run_measurement(const char *event, const char *method) {
    struct perf_event_attr attr;
    if (method && strcmp(method, "ptrace") == 0)
        return "ptrace sampling";
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

static const char *call_graph_name(const struct record_options *recording, char *text,
                                   size_t size) {
    static const char *const names[] = {"dwarf", "fp", "lbr", "none"};
    if (recording->call_graph == CALL_GRAPH_DWARF)
        snprintf(text, size, "dwarf,%u", recording->stack_size);
    else
        snprintf(text, size, "%s", names[recording->call_graph]);
    return text;
}

static int exit_status(const struct run *run) {
    int status = run->result->target_status;
    return status == -1 ? -1 : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- run.json ---- */

static void add_string(struct buffer *json, const char *key, const char *value) {
    buffer_printf(json, "  \"%s\": \"", key);
    buffer_add_json(json, text_of(value));
    buffer_add(json, TEXT("\",\n"));
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

static void add_target(struct buffer *json, const struct run *run) {
    const struct record_options *recording = run->recording;
    buffer_printf(json, "  \"record_target\": {\"kind\": \"%s\"", run->record_target);
    const int32_t *ids = recording->pid_count ? recording->pids : recording->tids;
    size_t count = recording->pid_count ? recording->pid_count : recording->tid_count;
    if (count)
        buffer_add(json, TEXT(", \"ids\": ["));
    for (size_t i = 0; i < count; i++)
        buffer_printf(json, "%s%d", i ? ", " : "", ids[i]);
    buffer_add(json, count ? TEXT("]},\n") : TEXT("},\n"));
}

static void json_measurement(struct buffer *json, const struct run *run) {
    const struct record_options *recording = run->recording;
    const struct record_result *result = run->result;
    char graph[40];
    add_string(json, "profile_kind", run->kind);
    add_string(json, "requested_backend", "perf");
    add_string(json, "actual_backend", result->method);
    if (strcmp(result->method, "perf") == 0)
        buffer_add(json, TEXT("  \"fallback_reason\": null,\n"));
    else
        add_string(json, "fallback_reason", "perf events were refused");
    add_string(json, "measurement", run_measurement(result->events, result->method));
    add_number(json, recording->period ? "sample_period" : "sample_frequency",
               recording->period ? recording->period : recording->frequency);
    add_string(json, "sample_event", result->events);
    add_string(json, "call_graph", call_graph_name(recording, graph, sizeof graph));
    add_target(json, run);
    if (recording->duration)
        buffer_printf(json, "  \"duration_secs\": %g,\n", (double)recording->duration / 1e9);
    else
        buffer_add(json, TEXT("  \"duration_secs\": null,\n"));
}

static void json_result(struct buffer *json, const struct run *run) {
    const struct record_result *result = run->result;
    add_number(json, "started_at_unix_ms", result->started_ns / 1000000);
    add_number(json, "ended_at_unix_ms", result->ended_ns / 1000000);
    if (exit_status(run) >= 0)
        add_number(json, "exit_status", (uint64_t)exit_status(run));
    else
        buffer_add(json, TEXT("  \"exit_status\": null,\n"));
    add_number(json, "samples", result->samples);
    add_number(json, "lost", result->lost);
    add_number(json, "stacks", run->stacks);
    add_number(json, "min_samples", run->min_samples);
    buffer_printf(json, "  \"enough_samples\": %s,\n", run_has_enough(run) ? "true" : "false");
    buffer_add(json, TEXT("  \"symbols\": true,\n"));
    buffer_add(json, TEXT("  \"tool_versions\": [{\"name\": \"wick\", \"version\": \"" WICK_VERSION
                          "\"}],\n"));
}

static bool write_text(const struct run *run, const char *file, struct text text,
                       struct error *error) {
    char *path = run_path(run, file);
    struct out out;
    bool fine = out_open(&out, path, error);
    if (fine) {
        out_text(&out, text);
        fine = out_commit(&out, error);
    }
    free(path);
    return fine;
}

static bool write_json(struct run *run, struct error *error) {
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
    buffer_add(&json, TEXT("  \"artifacts\": ["));
    add_items(&json, run->artifacts.items, run->artifacts.count);
    buffer_add(&json, TEXT("],\n  \"diagnostics\": ["));
    bool first = true;
    add_notes(&json, &run->result->notes, &first);
    add_notes(&json, &run->notes, &first);
    buffer_add(&json, first ? TEXT("]\n}\n") : TEXT("\n  ]\n}\n"));
    bool fine = write_text(run, "run.json", buffer_text(&json), error);
    buffer_release(&json);
    free(directory);
    return fine;
}

/* ---- report.txt ---- */

static void add_time(struct buffer *text, const char *what, uint64_t ns) {
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm parts;
    char shown[40];
    gmtime_r(&seconds, &parts);
    strftime(shown, sizeof shown, "%Y-%m-%dT%H:%M:%SZ", &parts);
    buffer_printf(text, "%-22s %s\n", what, shown);
}

static void report_host(struct buffer *text) {
    struct utsname host;
    char line[300], paranoid[20] = "unknown";
    uname(&host);
    record_cpu_model(line, sizeof line);
    file_read_small("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
    buffer_printf(text, "%-22s %s\n%-22s %s %s\n%-22s %s\n%-22s %s\n", "Machine:", host.machine,
                  "Kernel:", host.sysname, host.release, "CPU:", line,
                  "perf_event_paranoid:", paranoid);
}

static void report_target(struct buffer *text, const struct run *run) {
    if (run->command) {
        buffer_printf(text, "%-22s", "Command:");
        for (char *const *word = run->command; *word; word++) {
            buffer_add_char(text, ' ');
            buffer_add_shown(text, text_of(*word));
        }
        buffer_add_char(text, '\n');
        describe_program(text, run->command[0]);
        if (exit_status(run) >= 0)
            buffer_printf(text, "%-22s %d\n", "Exit status:", exit_status(run));
    } else {
        buffer_printf(text, "%-22s %s\n", "Attached to:", run->record_target);
    }
    describe_git(text);
}

static void report_measurement(struct buffer *text, const struct run *run) {
    const struct record_options *recording = run->recording;
    const struct record_result *result = run->result;
    char graph[40];
    buffer_printf(text, "%-22s %s (%s)\n", "Measured:", result->events,
                  run_measurement(result->events, result->method));
    if (recording->period)
        buffer_printf(text, "%-22s %llu\n", "Period:", (unsigned long long)recording->period);
    else
        buffer_printf(text, "%-22s %llu Hz\n",
                      "Frequency:", (unsigned long long)recording->frequency);
    buffer_printf(text, "%-22s %s\n",
                  "Call graph:", call_graph_name(recording, graph, sizeof graph));
    add_time(text, "Started:", result->started_ns);
    add_time(text, "Ended:", result->ended_ns);
    buffer_printf(text, "%-22s %llu\n", "Samples:", (unsigned long long)result->samples);
    if (!recording->period && result->ended_ns > result->started_ns)
        buffer_printf(text, "%-22s %.0f a busy CPU\n", "Expected at most:",
                      (double)recording->frequency *
                          (double)(result->ended_ns - result->started_ns) / 1e9);
    buffer_printf(text, "%-22s %llu\n%-22s %llu\n",
                  "Distinct stacks:", (unsigned long long)run->stacks,
                  "Lost:", (unsigned long long)result->lost);
    buffer_printf(text, "%-22s %llu%s\n", "Least samples:", (unsigned long long)run->min_samples,
                  run_has_enough(run) ? "" : " (NOT REACHED: no conclusions about hot code)");
}

static void report_notes(struct buffer *text, const struct notes *notes) {
    for (size_t i = 0; i < notes->count; i++) {
        buffer_add(text, TEXT("  "));
        note_print(&notes->items[i], text);
        buffer_add_char(text, '\n');
    }
}

static int top_order(const void *a, const void *b, void *context) {
    const struct flame_node *nodes = context;
    const struct flame_node *x = &nodes[*(const uint32_t *)a], *y = &nodes[*(const uint32_t *)b];
    if (x->self != y->self)
        return x->self > y->self ? -1 : 1;
    return (*(const uint32_t *)a > *(const uint32_t *)b) -
           (*(const uint32_t *)a < *(const uint32_t *)b);
}

static void add_stack(struct buffer *text, const struct flame *flame, uint32_t node) {
    VECTOR(uint32_t) path = {0};
    for (; node; node = flame->nodes.items[node].parent)
        vector_push(&path, node);
    for (size_t i = path.count; i-- > 0;) {
        buffer_add_shown(text, flame_name(flame, path.items[i]));
        if (i)
            buffer_add_char(text, ';');
    }
    vector_release(&path);
}

static void report_top(struct buffer *text, const struct flame *flame) {
    VECTOR(uint32_t) order = {0};
    for (size_t i = 1; i < flame->nodes.count; i++)
        if (flame->nodes.items[i].self)
            vector_push(&order, (uint32_t)i);
    if (order.count)
        qsort_r(order.items, order.count, sizeof *order.items, top_order, flame->nodes.items);
    buffer_printf(text, "\nTop %d stacks (%% of all, stack):\n", TOP_STACKS);
    for (size_t i = 0; i < order.count && i < TOP_STACKS; i++) {
        double share = 100.0 * (double)flame->nodes.items[order.items[i]].self /
                       (double)flame->nodes.items[0].total;
        buffer_printf(text, "%7.2f %%  ", share);
        add_stack(text, flame, order.items[i]);
        buffer_add_char(text, '\n');
    }
    vector_release(&order);
}

static bool write_report(struct run *run, struct error *error) {
    struct buffer text = {0};
    buffer_printf(&text, "%-22s %s profile \"%s\", by wick " WICK_VERSION "\n", "Run:", run->kind,
                  run->name);
    report_target(&text, run);
    report_host(&text);
    report_measurement(&text, run);
    buffer_printf(&text, "%-22s", "Files:");
    for (size_t i = 0; i < run->artifacts.count; i++)
        buffer_printf(&text, " %s", run->artifacts.items[i]);
    buffer_add(&text, TEXT("\n\nWhat was lost, missing or left out:\n"));
    report_notes(&text, &run->result->notes);
    report_notes(&text, &run->notes);
    if (!run->result->notes.count && !run->notes.count)
        buffer_add(&text, TEXT("  nothing\n"));
    if (run->flame && run->flame->nodes.items[0].total)
        report_top(&text, run->flame);
    bool fine = write_text(run, "report.txt", buffer_text(&text), error);
    buffer_release(&text);
    return fine;
}

bool run_describe(struct run *run, struct error *error) {
    notes_sort(&run->notes);
    run_wrote(run, "run.json");
    run_wrote(run, "report.txt");
    return write_json(run, error) && write_report(run, error);
}
