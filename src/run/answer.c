/*
 * The summary at the end of a run: how much time went where, in a few lines.
 */
#include "run/internal.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view/view.h"

enum { ANSWER_ROWS = 10, CHANGE_ROWS = 15, FILE_WIDTH = 120 };

static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

/* "1.02 s", "23 ms". */
static void add_time(struct buffer *text, uint64_t ns) {
    if (ns >= 100000000)
        buffer_printf(text, "%.2f s", seconds(ns));
    else
        buffer_printf(text, "%.*f ms", ns < 10000000, seconds(ns) * 1e3);
}

static uint64_t elapsed(const struct run *run) {
    return run->result->ended_ns > run->result->started_ns
               ? run->result->ended_ns - run->result->started_ns
               : 0;
}

void run_add_cpu_time(const struct run *run, struct buffer *text) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (!run->cpu_ns || !elapsed(run))
        return;
    buffer_add(text, run->cpu_is_estimated ? TEXT("about ") : TEXT(""));
    add_time(text, run->cpu_ns);
    buffer_add(text, TEXT(" on a CPU in "));
    add_time(text, elapsed(run));
    buffer_printf(text, " (%.*f of ", run->cpu_ns * 10 < elapsed(run) ? 3 : 1,
                  (double)run->cpu_ns / (double)elapsed(run));
    counted_print(text, "# core{|s})", cores > 0 ? (uint64_t)cores : 1);
}

/* ---- too few samples ---- */

/* Whether the target's program changes its user or group: then the kernel stops measurements by unprivileged users. */
static bool is_set_uid(const struct run *run, char *path, size_t size) {
    struct stat status;
    return run->command && geteuid() != 0 && find_program(run->command[0], path, size) &&
           stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           ((status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
            (status.st_mode & S_ISGID && status.st_mode & S_IXGRP && status.st_gid != getegid()));
}

static bool is_idle(const struct run *run) {
    return strcmp(run->kind, "cpu") == 0 && run->cpu_ns && elapsed(run) > 200000000 &&
           run->cpu_ns < elapsed(run) / 20;
}

static uint64_t highest_frequency(void) {
    char text[40];
    uint64_t most = 100000;
    if (file_read_small("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof text))
        most = strtoull(text, NULL, 10);
    return most > 20000 ? 20000 : most; /* a higher rate measures wick more than the target */
}

/* Whether the program ended so soon that no frequency gives enough samples. */
static bool is_short(const struct run *run) {
    return run->command && strcmp(run->kind, "cpu") == 0 && !run->recording->period &&
           run->cpu_ns && run->cpu_ns < 1000000000 &&
           run->cpu_ns * highest_frequency() / 1000000000 < run->min_samples;
}

/* Return a frequency that would give enough samples, with half as many in reserve, or 0 if the kernel allows none. */
static uint64_t better_frequency(const struct run *run) {
    uint64_t most = highest_frequency(), now = run->recording->frequency,
             samples = run->result->samples;
    if (run->recording->period || strcmp(run->kind, "cpu") != 0)
        return 0;
    uint64_t wanted = samples ? now * run->min_samples / samples * 3 / 2 : most;
    wanted = (wanted + 999) / 1000 * 1000;
    wanted = wanted > most ? most : wanted;
    return wanted > now ? wanted : 0;
}

void run_add_too_few(const struct run *run, struct buffer *why) {
    char program[4200];
    uint64_t frequency = better_frequency(run);
    if (is_set_uid(run, program, sizeof program)) {
        buffer_printf(why, "%s is set-user-id or set-group-id: only root can sample it (", program);
        counted_print(why, "# sample{|s}); try sudo", run->result->samples);
        return;
    }
    if (is_idle(run)) {
        buffer_add(why, TEXT("ran "));
        add_time(why, elapsed(run));
        buffer_add(why, TEXT(", "));
        add_time(why, run->cpu_ns);
        counted_print(why, " of it on a CPU (# sample{|s}, ", run->result->samples);
        buffer_printf(why, "%llu wanted): try --kind offcpu", (unsigned long long)run->min_samples);
        return;
    }
    if (is_short(run)) {
        buffer_add(why, TEXT("ran only "));
        add_time(why, run->cpu_ns);
        counted_print(why, " on a CPU (# sample{|s}, ", run->result->samples);
        buffer_printf(why, "%llu wanted): give it more work, or try -F %llu --allow-partial",
                      (unsigned long long)run->min_samples,
                      (unsigned long long)highest_frequency());
        return;
    }
    counted_print(why, "only # sample{|s} (", run->result->samples);
    buffer_printf(why, "%llu wanted): try ", (unsigned long long)run->min_samples);
    if (!run->command)
        buffer_add(why, TEXT("a longer --duration, "));
    else if (run->recording->heap)
        buffer_add(why, TEXT("a smaller --every "));
    else if (run->recording->period)
        buffer_add(why, TEXT("a smaller -c, "));
    if (frequency)
        buffer_printf(why, "-F %llu ", (unsigned long long)frequency);
    buffer_add(why, TEXT("or --allow-partial"));
}

/* ---- tables ---- */

void run_answer_view(struct run *run, const struct flame *flame, const char *title, bool waits) {
    struct buffer *texts[] = {&run->answer, &run->told};
    unsigned widths[] = {FILE_WIDTH, run->width};
    uint64_t total = flame->nodes.items[0].total;
    for (size_t i = 0; total && i < COUNT_OF(texts); i++) {
        struct answer_options options = {widths[i], ANSWER_ROWS, waits};
        buffer_printf(texts[i], "\n%s", title);
        if (waits) {
            buffer_add(texts[i], TEXT(": "));
            add_time(texts[i], total);
            buffer_add(texts[i], TEXT(" of all threads"));
        }
        buffer_add_char(texts[i], '\n');
        answer_add(texts[i], flame, &options);
    }
}

void run_answer_change(struct run *run, const struct flame *both) {
    struct buffer *texts[] = {&run->answer, &run->told};
    unsigned widths[] = {FILE_WIDTH, run->width};
    struct report *report = report_of_names(both, "function");
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct out out;
        struct report_options options = {.limit = CHANGE_ROWS, .width = widths[i], .no_hint = true};
        buffer_printf(texts[i], "\nWhat changed since %s%s\n", run->compared,
                      run->scaled ? ", scaled to this run's total" : "");
        out_open_buffer(&out, texts[i]);
        report_write(&out, report, &options);
        out_commit(&out, NULL);
    }
    report_free(report);
}

/* ---- the last words ---- */

static const char *const pictures[] = {"flamegraph.html", "offcpu.html", "wall.html",
                                       "peak.html",       "live.html",   "diff.html"};

static bool has_file(const struct run *run, const char *file) {
    for (size_t i = 0; i < run->artifacts.count; i++)
        if (strcmp(run->artifacts.items[i], file) == 0)
            return true;
    return false;
}

static void add_counts(const struct run *run, struct buffer *text) {
    const struct record_result *result = run->result;
    counted_print(text, "# sample{|s}, ", result->samples);
    if (result->lost)
        buffer_printf(text, "%llu lost (%.1f %%)", (unsigned long long)result->lost,
                      100.0 * (double)result->lost / (double)(result->lost + result->samples));
    else
        buffer_add(text, TEXT("none lost"));
    if (result->throttled)
        counted_print(text, ", throttled # time{|s}", result->throttled);
}

void run_add_answer(const struct run *run, const char *path, struct buffer *text) {
    run_add_cpu_time(run, text);
    buffer_add(text, text->count ? TEXT("; ") : TEXT(""));
    add_counts(run, text);
    buffer_add_char(text, '\n');
    buffer_add(text, buffer_text(&run->told));
    const char *open = NULL;
    for (size_t i = 0; i < COUNT_OF(pictures); i++)
        if (has_file(run, pictures[i]))
            open = pictures[i];
    if (open)
        buffer_printf(text, "\nOpen %s/%s in a browser; wick report %s has every function.\n", path,
                      open, path);
}
