/*
 * The files of a run: the views of its recording, what changed since an earlier run, and the reports.
 */
#include "run/internal.h"

#include <stdlib.h>

const struct run_view run_running = {
    TIMES_RUNNING, "stacks.folded", "flamegraph.svg", "flamegraph-reverse.svg",
    "profile.csv", "summary.csv",
};
const struct run_view run_waiting = {
    TIMES_WAITING,        "offcpu.folded", "offcpu.svg",
    "offcpu-reverse.svg", "offcpu.csv",    "offcpu-summary.csv",
};
const struct run_view run_wall = {
    TIMES_BOTH, "wall.folded", "wall.svg", "wall-reverse.svg", "wall.csv", "wall-summary.csv",
};

const struct run_view run_live = {
    TIMES_RUNNING,
    "live.folded",
    "live.svg",
    "live-reverse.svg",
    "live.csv",
    "live-summary.csv",
    "live",
    "Bytes Never Freed",
    "Never freed, by the function that allocated it",
    "live.html",
};
const struct run_view run_peak = {
    TIMES_RUNNING,
    "peak.folded",
    "peak.svg",
    "peak-reverse.svg",
    "peak.csv",
    "peak-summary.csv",
    "peak",
    "Bytes Alive at the Peak",
    "Alive at the peak, by the function that allocated it",
    "peak.html",
};
const struct run_view run_allocated = {
    TIMES_RUNNING,
    "stacks.folded",
    "flamegraph.svg",
    "flamegraph-reverse.svg",
    "profile.csv",
    "summary.csv",
    "allocated",
    "Bytes Allocated",
    "Allocated in all, by function",
    "flamegraph.html",
};

static bool is_kind(const struct run *run, const char *kind) {
    return strcmp(run->kind, kind) == 0;
}

/* Write one page for all views, which switches between them. */
static bool write_views_page(struct artifact *a, enum times times) {
    struct html_options options = {.colouring.palette = times_looks[times].palette,
                                   .together = times == TIMES_BOTH,
                                   .times = times_looks,
                                   .shown = times};
    struct naming *naming = naming_of_tree(a->whole, &a->reading->naming);
    bool fine = artifact_page(a, "flamegraph.html", options, a->whole, naming);
    naming_free(naming);
    return fine;
}

/* Return the flame that tables show, to be freed: CPU time counts samples; waits and system calls count nanoseconds, because each of them has a
   duration, and a wait belongs to the function that blocked. */
static struct flame *tabled(struct artifact *a, const struct flame *flame,
                            const struct run_view *names, bool timed) {
    struct flame_options *options = &a->reading->flame;
    struct notes unused = {0};
    struct flame *made = NULL, *blocked = NULL;
    bool both = names->times == TIMES_BOTH;
    if (!timed || both) {
        options->by_samples = !timed;
        options->waits = both;
        made = artifact_flame(a, a->source, &unused);
        options->by_samples = options->waits = false;
        notes_release(&unused);
    }
    if (names->times == TIMES_RUNNING || (both && !made))
        return made;
    blocked = flame_of_blocked(both ? made : flame, a->error);
    flame_free(made);
    return blocked;
}

static bool write_tables(struct artifact *a, const struct flame *flame,
                         const struct run_view *names) {
    bool timed = names->times != TIMES_RUNNING || is_kind(a->run, "syscalls") || names->value;
    bool as_it_is = timed && names->times == TIMES_RUNNING;
    const char *counted = names->value ? "bytes" : timed ? "ns" : "samples";
    struct flame *made = as_it_is ? NULL : tabled(a, flame, names, timed);
    const struct flame *shown = as_it_is ? flame : made;
    struct categories *categories =
        categories_new(NULL, a->reading->import.profile.context, a->error);
    bool fine = shown && categories &&
                artifact_table(a, names->functions, shown, categories, BY_FUNCTION, counted) &&
                artifact_table(a, names->categories, shown, categories, BY_CATEGORY, counted);
    categories_free(categories);
    flame_free(made);
    return fine;
}

static uint64_t count_stacks(const struct flame *flame) {
    uint64_t count = 0;
    for (size_t i = 1; i < flame->nodes.count; i++)
        count += flame->nodes.items[i].self != 0;
    return count;
}

static void count_samples(struct run *run, const struct tree *tree) {
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        run->read += cell->samples;
        if (tree->series.items[cell->series].state != STATE_ON)
            run->waits += cell->samples;
        run->endings[tree->series.items[cell->series].ending] += cell->samples;
    }
}

/* A view without samples gets no picture, and run.json names none. */
static bool write_view(struct artifact *a, const struct flame *flame,
                       const struct run_view *names) {
    if (flame->nodes.items[0].total == 0)
        return true;
    a->is_drawn = true;
    return artifact_folded(a, names->folded, flame) && artifact_picture(a, flame, names) &&
           artifact_reverse(a, names) && write_tables(a, flame, names);
}

/* ---- what changed since an earlier run ---- */

static struct flame *earlier_flame(struct artifact *a) {
    const struct run *run = a->run;
    struct import_options options = {.profile.context = a->reading->import.profile.context,
                                     .from = "folded"};
    struct notes unused = {0};
    struct source source;
    struct buffer path = {0};
    buffer_printf(&path, "%s/%s", run->compared, run->folded);
    buffer_add_char(&path, 0);
    const char *paths[] = {path.items};
    bool is_open = source_open(&source, paths, 1, &options, a->error);
    struct flame *flame = is_open ? artifact_flame(a, &source, &unused) : NULL;
    if (is_open)
        source_close(&source);
    notes_release(&unused);
    buffer_release(&path);
    return flame;
}

static bool write_changed_page(struct artifact *a, const struct flame *both,
                               const struct looks *looks) {
    struct tree *tree = tree_of_diff(both);
    struct naming *naming = naming_of_tree(
        tree, &(struct naming_options){.is_script_text = true, .keep_unknown = true});
    struct html_options options = {.title = looks->title, .colouring.palette = looks->palette};
    bool fine = artifact_page(a, "diff.html", options, tree, naming);
    naming_free(naming);
    objects_free(tree->objects);
    tree_free(tree);
    return fine;
}

/* Two runs of one command are compared unscaled; for attached processes, only shares are comparable. */
static bool write_comparison(struct artifact *a, const struct flame *flame) {
    struct run *run = a->run;
    if (!run->compared)
        return true;
    run->scaled = !run->command;
    struct diff_options options = {.normalize = run->scaled};
    struct looks looks = {"What changed: red grew, blue shrank", PALETTE_WICK};
    struct flame *before = earlier_flame(a);
    struct flame *both = before ? flame_diff(before, flame, &options, a->error) : NULL;
    struct categories *categories =
        both ? categories_new(NULL, a->reading->import.profile.context, a->error) : NULL;
    bool fine = categories && artifact_folded(a, "diff.folded", both) &&
                artifact_svg(a, "diff.svg", both, &looks, SVG_MIN_WIDTH) &&
                artifact_table(a, "diff.csv", both, categories, BY_FUNCTION, NULL) &&
                write_changed_page(a, both, &looks);
    if (fine)
        run_answer_change(run, both);
    categories_free(categories);
    flame_free(both);
    flame_free(before);
    return fine;
}

/* ---- system calls ---- */

static bool write_syscalls(struct artifact *a, const struct syscalls *syscalls) {
    struct out out;
    struct buffer line = {0};
    if (!artifact_open(a, "syscalls.csv", &out))
        return false;
    out_text(&out, TEXT("syscall,calls,errors,total_ns,mean_ns,worst_ns\n"));
    for (size_t i = 0; i < syscalls->rows.count; i++) {
        const struct syscall_row *row = &syscalls->rows.items[i];
        line.count = 0;
        buffer_add_csv(&line, row->name);
        buffer_printf(&line, ",%llu,%llu,%llu,%llu,%llu\n", (unsigned long long)row->calls,
                      (unsigned long long)row->errors, (unsigned long long)row->total,
                      (unsigned long long)(row->total / row->calls),
                      (unsigned long long)row->worst);
        out_text(&out, buffer_text(&line));
    }
    buffer_release(&line);
    return artifact_close(a, "syscalls.csv", &out);
}

/* ---- all of it ---- */

static bool time_syscalls(struct artifact *a) {
    a->run->syscalls = profile_time_syscalls(a->source->profile, a->error);
    return a->run->syscalls && write_syscalls(a, a->run->syscalls);
}

static void choose_events(struct profile_options *options, const struct run *run) {
    static const char *const calls[] = {SYSCALLS_ENTER};
    options->filter =
        (struct filter){0}; /* -p named what to attach to; its children count as well */
    options->keep_samples = options->lifetimes = true; /* for the page */
    if (is_kind(run, "syscalls")) {
        options->filter.events = calls;
        options->filter.event_count = 1;
    }
}

/* The main view also has the comparison and the report of how the run was made. */
static bool write_about(struct artifact *a, const struct flame *flame) {
    struct run *run = a->run;
    if (run->result->lost)
        notes_drop(&run->notes, "lost-samples"); /* the recorder reported it */
    run->stacks = count_stacks(flame);
    count_samples(run, a->source->tree);
    return write_comparison(a, flame) && run_describe(run, a->error);
}

/* Get the CPU time from the target's own accounting, otherwise from what its samples stand for. */
static void count_cpu_time(struct run *run, const struct tree *tree) {
    uint64_t samples = 0, ns = 0;
    if (run->cpu_ns || is_kind(run, "heap") || is_kind(run, "faults") || is_kind(run, "syscalls"))
        return;
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct series *series = &tree->series.items[tree->cells.items[i].series];
        bool timed = text_equal(strings_get(tree->strings, tree_event(tree, series->event)->unit),
                                TEXT("ns"));
        samples += series->state == STATE_ON ? tree->cells.items[i].samples : 0;
        ns = saturating_add(ns,
                            series->state == STATE_ON && timed ? tree->cells.items[i].weight : 0);
    }
    run->cpu_is_estimated = true;
    run->cpu_ns = ns                       ? ns
                  : run->recording->period ? 0
                                           : samples * 1000000000u / run->recording->frequency;
}

/* Report which functions allocated what, after the totals. */
static void answer_memory(struct artifact *a, const struct flame *flame,
                          const struct run_view *names) {
    const struct heap_facts *facts = a->source->profile ? a->source->profile->heap : NULL;
    struct notes unused = {0};
    if (!facts)
        return;
    if (names == &run_live)
        run_answer_memory(a->run, facts);
    a->reading->flame.by_samples = true;
    struct flame *samples = artifact_flame(a, a->source, &unused);
    a->reading->flame.by_samples = false;
    if (samples)
        run_answer_sites(a->run, names->heading, flame, samples, a->source->tree);
    flame_free(samples);
    notes_release(&unused);
}

static bool write_value_page(struct artifact *a, const struct source *source,
                             const struct run_view *names) {
    struct looks looks = run_view_looks(names);
    struct html_options options = {.title = looks.title,
                                   .colouring.palette = looks.palette,
                                   .first = names == &run_live ? names->value : NULL,
                                   .estimated = source_is_estimated(source),
                                   .deviation = source_deviation(source)};
    struct naming *naming = naming_of_tree(source->tree, &a->reading->naming);
    bool fine = artifact_page(a, names->html, options, source->tree, naming);
    naming_free(naming);
    return fine;
}

/* Write the page of what was never freed, next to everything that was allocated and freed: it shows how much was alive when. */
static bool write_growth_page(struct artifact *a, const struct run_view *names) {
    const char *values[] = {"live", "allocated", "freed"};
    struct filter *filter = &a->reading->import.profile.filter, before = *filter;
    struct source source;
    filter->events = values;
    filter->event_count = COUNT_OF(values);
    bool fine = source_open(&source, &a->data, 1, &a->reading->import, a->error);
    *filter = before;
    if (!fine)
        return false;
    fine = write_value_page(a, &source, names);
    source_close(&source);
    return fine;
}

/* Running and waiting have a table each; a table of both would repeat them. */
static void answer_view(struct artifact *a, const struct flame *flame,
                        const struct run_view *names) {
    struct run *run = a->run;
    bool waits = names->times == TIMES_WAITING;
    if (names->times == TIMES_BOTH)
        return;
    if (names->value) {
        answer_memory(a, flame, names);
        return;
    }
    if (!waits)
        count_cpu_time(run, a->source->tree);
    run_answer_view(run, flame,
                    waits                      ? "Waiting"
                    : is_kind(run, "faults")   ? "Page faults"
                    : is_kind(run, "syscalls") ? "In system calls"
                                               : "On a CPU",
                    waits);
}

static bool write_source(struct artifact *a, const struct run_view *names, bool about) {
    struct notes unused = {0}, *notes = about ? &a->run->notes : &unused;
    struct flame *flame = artifact_flame(a, a->source, notes);
    bool has = flame && (about || names->value || names->times != TIMES_RUNNING ||
                         flame->nodes.items[0].total);
    if (has)
        answer_view(a, flame, names);
    bool fine = flame && write_view(a, flame, names);
    if (fine && names->html && flame->nodes.items[0].total)
        fine = names == &run_live ? write_growth_page(a, names)
                                  : write_value_page(a, a->source, names);
    if (fine && about && a->is_drawn && !names->html)
        fine = write_views_page(a, names->times);
    fine = fine && (!about || write_about(a, flame));
    flame_free(flame);
    notes_release(&unused);
    return fine;
}

/* Read the recording once, with everything it has about threads; each view is a selection from that. */
static bool write_views(struct artifact *a, const struct run_view *const *views, size_t count) {
    const struct source *whole = a->source;
    struct source part = *whole;
    bool fine = true;
    a->source = &part;
    for (size_t i = 0; fine && i < count; i++) {
        part.tree = tree_view_new(whole->tree, views[i]->times);
        fine = write_source(a, views[i], i + 1 == count);
        tree_view_free(part.tree);
    }
    a->source = whole;
    return fine;
}

/* Read each value of a recording of allocations separately, because the values have different samples. */
static bool write_values(struct artifact *a, const char *data, const struct run_view *const *views,
                         size_t count) {
    struct filter *filter = &a->reading->import.profile.filter;
    bool fine = true;
    for (size_t i = 0; fine && i < count; i++) {
        struct source source;
        const char *value = views[i]->value;
        filter->events = &value;
        filter->event_count = 1;
        fine = source_open(&source, &data, 1, &a->reading->import, a->error);
        if (!fine)
            break;
        a->source = &source;
        a->whole = source.tree;
        fine = write_source(a, views[i], i + 1 == count);
        source_close(&source);
    }
    *filter = (struct filter){0};
    a->source = NULL;
    a->whole = NULL;
    return fine;
}

bool run_write_files(struct run *run, struct run_reading *reading, const char *data,
                     const struct run_view *const *views, size_t view_count, struct error *error) {
    struct source source;
    struct artifact a = {
        .reading = reading, .run = run, .source = &source, .error = error, .data = data};
    struct profile_options *options = &reading->import.profile;
    choose_events(options, run);
    run->cpu_ns = run->result->cpu_ns;
    options->times = views[view_count - 1]->times;
    options->each = view_count > 1;
    options->wakers = run->recording->wakers && view_count > 1;
    if (views[0]->value) {
        options->each = false;
        return write_values(&a, data, views, view_count);
    }
    if (!source_open(&source, &data, 1, &reading->import, error))
        return false;
    a.whole = source.tree;
    bool fine =
        (!is_kind(run, "syscalls") || time_syscalls(&a)) &&
        (view_count > 1 ? write_views(&a, views, view_count) : write_source(&a, views[0], true));
    source_close(&source);
    syscalls_free(run->syscalls);
    run->syscalls = NULL;
    return fine;
}
