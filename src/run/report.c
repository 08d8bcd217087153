/*
 * report.txt, for people: what was measured, how, what was missing, and the results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include "run/internal.h"

static void line(struct buffer *text, const char *what, const char *format, ...) PRINTF_LIKE(3, 4);
static void line(struct buffer *text, const char *what, const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *value = memory_print(NULL, format, list);
    va_end(list);
    buffer_printf(text, "%-22s ", what);
    buffer_add_shown(text, text_of(value));
    buffer_add_char(text, '\n');
    free(value);
}

static void time_line(struct buffer *text, const char *what, uint64_t ns) {
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm parts;
    char shown[40];
    gmtime_r(&seconds, &parts);
    strftime(shown, sizeof shown, "%Y-%m-%dT%H:%M:%S", &parts);
    line(text, what, "%s.%03uZ", shown, (unsigned)(ns / 1000000 % 1000));
}

static void report_host(struct buffer *text) {
    struct utsname host;
    char model[300], paranoid[20] = "unknown";
    uname(&host);
    record_cpu_model(model, sizeof model);
    file_read_small("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof paranoid);
    line(text, "Host:", "%s", host.nodename);
    line(text, "Machine:", "%s", host.machine);
    line(text, "Kernel:", "%s %s", host.sysname, host.release);
    line(text, "CPU:", "%s", model);
    line(text, "perf_event_paranoid:", "%s", paranoid);
}

static void report_target(struct buffer *text, const struct run *run) {
    struct buffer words = {0};
    for (char *const *word = run->command; word && *word; word++)
        buffer_printf(&words, "%s%s", words.count ? " " : "", *word);
    run_add_ids(run, &words, " ");
    if (run->command)
        line(text, "Command:", "%.*s", TEXT_ARGS(buffer_text(&words)));
    else
        line(text, "Attached to:", "%s%s%.*s", run->record_target, words.count ? " " : "",
             TEXT_ARGS(buffer_text(&words)));
    if (run_exit_status(run) >= 0)
        line(text, "Exit status:", "%d", run_exit_status(run));
    buffer_release(&words);
}

static void report_facts(struct buffer *text, const struct facts *facts) {
    for (size_t i = 0; i < facts->inputs.count; i++)
        line(text, i ? "Input digest:" : "Program digest:", "sha256:%s %s",
             facts->inputs.items[i].digest, facts->inputs.items[i].path);
    if (facts->build_id.count)
        line(text, "Build id:", "%.*s", TEXT_ARGS(buffer_text(&facts->build_id)));
    if (facts->compiler.count)
        line(text, "Compiler:", "%.*s", TEXT_ARGS(buffer_text(&facts->compiler)));
    if (facts->commit.count)
        line(text, "Git commit:", "%.*s", TEXT_ARGS(buffer_text(&facts->commit)));
    if (facts->branch.count)
        line(text, "Git branch:", "%.*s", TEXT_ARGS(buffer_text(&facts->branch)));
}

static void report_beside(struct buffer *text, const struct run *run) {
    struct buffer how = {0};
    if (run->build)
        line(text, "Built by:", "%s", run->build);
    if (run->load->line) {
        load_describe(run->load, &how);
        line(text, "Load:", "%s (%g s ahead; %.*s)", run->load->line, run->warmup,
             TEXT_ARGS(buffer_text(&how)));
    }
    if (run->compared)
        line(text, "Compared with:", "%s%s", run->compared,
             run->scaled ? ", scaled to this run's total" : "");
    buffer_release(&how);
}

static void report_measurement(struct buffer *text, const struct run *run) {
    const struct record_options *recording = run->recording;
    const struct record_result *result = run->result;
    char graph[40];
    char *measurement = run_measurement(result->events, result->method);
    line(text, "Measured:", "%s (%s)", result->events, measurement);
    free(measurement);
    if (recording->heap)
        line(text, "Recorded:",
             recording->heap_every == 1 ? "every allocation" : "one allocation in %llu bytes",
             (unsigned long long)recording->heap_every);
    else if (recording->period)
        line(text, "Period:", "%llu", (unsigned long long)recording->period);
    else
        line(text, "Frequency:", "%llu Hz", (unsigned long long)recording->frequency);
    line(text, "Call graph:", "%s", call_graph_name(recording, result, graph, sizeof graph));
    time_line(text, "Started:", result->started_ns);
    time_line(text, "Ended:", result->ended_ns);
    struct buffer used = {0};
    run_add_cpu_time(run, &used);
    if (used.count)
        line(text, "Time:", "%.*s", TEXT_ARGS(buffer_text(&used)));
    buffer_release(&used);
}

/* Append what stacks were counted by: samples; waits, each of which takes two samples or is summed up in the kernel; system calls, of two
   samples each. */
static void add_counted(struct buffer *text, const struct run *run) {
    uint64_t running = run->read - run->waits;
    if (strcmp(run->kind, "syscalls") == 0)
        counted_print(text, "# call{|s}", run->read);
    else if (!run->waits)
        buffer_add_u64(text, run->read);
    else if (!running)
        counted_print(text, "# wait{|s}", run->waits);
    else {
        counted_print(text, "# sample{|s}", running);
        counted_print(text, " and # wait{|s}", run->waits);
    }
}

static void report_counts(struct buffer *text, const struct run *run) {
    const struct record_result *result = run->result;
    double seconds = (double)(result->ended_ns - result->started_ns) / 1e9;
    struct buffer counted = {0};
    add_counted(&counted, run);
    line(text, "Samples:", "%llu taken, %.*s counted", (unsigned long long)result->samples,
         TEXT_ARGS(buffer_text(&counted)));
    buffer_release(&counted);
    if (!run->recording->period && !run->recording->heap && seconds > 0)
        line(text, "Samples, estimated:", "%.0f for each CPU kept busy",
             (double)run->recording->frequency * seconds);
    line(text, "Stacks:", "%llu distinct; %llu complete, %llu truncated, %llu broken",
         (unsigned long long)run->stacks, (unsigned long long)run->endings[ENDING_COMPLETE],
         (unsigned long long)run->endings[ENDING_TRUNCATED],
         (unsigned long long)run->endings[ENDING_BROKEN]);
    line(text, "Lost:", "%llu", (unsigned long long)result->lost);
    line(text, "Throttled:", "%llu time%s", (unsigned long long)result->throttled,
         result->throttled == 1 ? "" : "s");
    line(text, "Least samples:", "%llu", (unsigned long long)run->min_samples);
    struct buffer why = {0};
    if (run_shortcoming(run, &why))
        line(text, "NOT FOR CONCLUSIONS:", "%.*s", TEXT_ARGS(buffer_text(&why)));
    buffer_release(&why);
}

/* The recorder's notes are about what was not permitted or what the machine lacks. */
static void report_notes(struct buffer *text, const struct notes *notes) {
    for (size_t i = 0; i < notes->count; i++) {
        buffer_add(text, TEXT("  "));
        note_print(&notes->items[i], text);
        buffer_add_char(text, '\n');
    }
}

static void report_syscalls(struct buffer *text, const struct syscalls *syscalls) {
    buffer_printf(text, "\nSystem calls:\n%12s %12s %14s %12s %12s  name\n", "calls", "errors",
                  "total ms", "mean us", "worst us");
    for (size_t i = 0; i < syscalls->rows.count; i++) {
        const struct syscall_row *row = &syscalls->rows.items[i];
        buffer_printf(text, "%12llu %12llu %14.3f %12.3f %12.3f  %.*s\n",
                      (unsigned long long)row->calls, (unsigned long long)row->errors,
                      (double)row->total / 1e6, (double)row->total / (double)row->calls / 1e3,
                      (double)row->worst / 1e3, TEXT_ARGS(row->name));
    }
}

static void report_lacks(struct buffer *text, const char *title, const struct notes *notes) {
    buffer_printf(text, "\n%s\n", title);
    report_notes(text, notes);
    if (!notes->count)
        buffer_add(text, TEXT("  nothing\n"));
}

bool run_write_report(struct run *run, const struct facts *facts, struct error *error) {
    struct buffer text = {0};
    line(&text, "Run:", "%s profile \"%s\", by wick " WICK_VERSION, run->kind, run->name);
    report_target(&text, run);
    report_facts(&text, facts);
    report_host(&text);
    report_measurement(&text, run);
    report_counts(&text, run);
    report_beside(&text, run);
    buffer_printf(&text, "%-22s", "Files:");
    for (size_t i = 0; i < run->artifacts.count; i++)
        buffer_printf(&text, " %s", run->artifacts.items[i]);
    buffer_add_char(&text, '\n');
    report_lacks(&text, "Not permitted, missing or lost while recording:", &run->result->notes);
    report_lacks(&text, "What was read, and what was missing or skipped:", &run->notes);
    if (run->syscalls && run->syscalls->rows.count)
        report_syscalls(&text, run->syscalls);
    buffer_add(&text, buffer_text(&run->answer));
    bool fine = run_write_text(run, "report.txt", buffer_text(&text), error);
    buffer_release(&text);
    return fine;
}
