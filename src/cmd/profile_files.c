/*
 * The files of a run: the views of its recording, each listed in the run as soon as it is whole.
 */
#include "cmd/profile_files.h"

#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include "cmd/picture.h"

/* Merged from the leaf, stacks branch into thousands of towers that nobody can see: ten times the size for nothing. The page has them. */
#define REVERSE_MIN_WIDTH 0.1

struct artifact {
    struct request *request;
    struct run *run;
    const struct source *source;
    struct error *error;
    const struct tree *whole; /* of which the source's may be one view */
    bool is_drawn;            /* some view was not empty */
};

const struct view_names view_running = {
    TIMES_RUNNING, "stacks.folded", "flamegraph.svg", "flamegraph-reverse.svg",
    "profile.csv", "summary.csv",
};
const struct view_names view_waiting = {
    TIMES_WAITING,        "offcpu.folded", "offcpu.svg",
    "offcpu-reverse.svg", "offcpu.csv",    "offcpu-summary.csv",
};
const struct view_names view_wall = {
    TIMES_BOTH, "wall.folded", "wall.svg", "wall-reverse.svg", "wall.csv", "wall-summary.csv",
};

const struct view_names view_live = {
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
const struct view_names view_peak = {
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
const struct view_names view_allocated = {
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

static struct looks looks_of(const struct view_names *names) {
    struct looks looks = times_looks[names->times];
    looks.title = names->title ? names->title : looks.title;
    return looks;
}

static bool is_kind(const struct run *run, const char *kind) {
    return strcmp(run->kind, kind) == 0;
}

static bool artifact_open(struct artifact *a, const char *file, struct out *out) {
    return out_open_at(out, a->run->directory, file, a->error);
}

static bool artifact_close(struct artifact *a, const char *file, struct out *out) {
    if (!out_commit(out, a->error))
        return false;
    run_wrote(a->run, file);
    return true;
}

static bool write_folded(struct artifact *a, const char *file, const struct flame *flame) {
    struct out out;
    struct fold_options options = {.context = &a->request->context};
    if (!artifact_open(a, file, &out))
        return false;
    fold_write(&out, flame, &options);
    return artifact_close(a, file, &out);
}

/* What was profiled, in a few words. */
static void add_target(struct buffer *text, const struct run *run) {
    if (!run->command) {
        struct buffer ids = {0};
        run_add_ids(run, &ids, " ");
        buffer_printf(text, "%s%s%.*s", run->record_target, ids.count ? " " : "",
                      TEXT_ARGS(buffer_text(&ids)));
        buffer_release(&ids);
        return;
    }
    for (char *const *word = run->command; *word && text->count < 60; word++)
        buffer_printf(text, "%s%.60s", word == run->command ? "" : " ", *word);
}

/* What stands below a picture's title: what was measured, how, when, and whether that is enough. free() it. */
static char *subtitle_of(const struct run *run) {
    const struct record_result *result = run->result;
    struct buffer subtitle = {0};
    struct utsname host;
    char date[40];
    struct tm parts;
    time_t seconds = (time_t)(result->started_ns / 1000000000u);
    char *measurement = run_measurement(result->events, result->method);
    uname(&host);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &parts));
    add_target(&subtitle, run);
    buffer_printf(&subtitle, " · %s · %s (%s)", host.nodename, result->events, measurement);
    if (run->recording->heap)
        buffer_printf(&subtitle, " · one in %llu bytes",
                      (unsigned long long)run->recording->heap_every);
    else if (!run->recording->period)
        buffer_printf(&subtitle, " @ %llu Hz", (unsigned long long)run->recording->frequency);
    buffer_printf(&subtitle, " · %llu samples · %s", (unsigned long long)result->samples, date);
    if (!run_has_enough(run))
        buffer_add(&subtitle, TEXT(" · TOO FEW SAMPLES"));
    buffer_add_char(&subtitle, 0);
    free(measurement);
    return subtitle.items;
}

static const struct note_kind note_left_out = {
    "frames-left-out",
    "# narrow or deep frame{ is|s are} not in a picture, which would be too large: the page has "
    "all, and so has `wick flame --minwidth 0`"};

static bool write_svg(struct artifact *a, const char *file, const struct flame *flame,
                      const struct looks *looks, double min_width) {
    struct out out;
    char *subtitle = subtitle_of(a->run);
    struct svg_options options = {.context = &a->request->context,
                                  .title = looks->title,
                                  .subtitle = subtitle,
                                  .notes = subtitle,
                                  .min_width = min_width,
                                  .is_reversed = a->request->flame.reverse,
                                  .colouring.palette = looks->palette};
    bool fine = artifact_open(a, file, &out);
    if (fine) {
        size_t left_out = svg_write(&out, flame, &options);
        if (left_out)
            notes_add(&a->run->notes, &note_left_out, left_out, 0, "%s", file);
        fine = artifact_close(a, file, &out);
    }
    free(subtitle);
    return fine;
}

/* The flame of a picture, in which numbered threads are one: text for other programs has them as they are called. */
static struct flame *pictured(struct artifact *a, bool waits, bool reverse) {
    struct notes unused = {0};
    a->request->flame.reverse = reverse;
    a->request->naming.group_threads = true;
    a->request->flame.waits = waits;
    struct flame *flame = make_flame(a->request, a->source, &unused, a->error);
    a->request->naming.group_threads = false;
    a->request->flame.reverse = a->request->flame.waits = false;
    notes_release(&unused);
    return flame;
}

static bool write_picture(struct artifact *a, const struct flame *flame,
                          const struct view_names *names) {
    struct looks looks = looks_of(names);
    uint16_t *numbered = numbered_threads(a->source->tree);
    bool apart = numbered || names->times == TIMES_BOTH;
    struct flame *grouped = apart ? pictured(a, names->times == TIMES_BOTH, false) : NULL;
    bool fine = (grouped || !apart) &&
                write_svg(a, names->svg, grouped ? grouped : flame, &looks, SVG_MIN_WIDTH);
    flame_free(grouped);
    free(numbered);
    return fine;
}

static bool write_reverse(struct artifact *a, const struct view_names *names) {
    char title[80];
    struct looks looks = looks_of(names);
    snprintf(title, sizeof title, "%s, merged from the leaf", looks.title);
    looks.title = title;
    struct flame *flame = pictured(a, names->times == TIMES_BOTH, true);
    a->request->flame.reverse = true; /* for the picture's own account */
    bool fine = flame && write_svg(a, names->reverse, flame, &looks, REVERSE_MIN_WIDTH);
    a->request->flame.reverse = false;
    flame_free(flame);
    return fine;
}

static bool write_table(struct artifact *a, const char *file, const struct flame *flame,
                        const struct categories *categories, enum report_by by,
                        const char *counted) {
    struct out out;
    struct report_options options = {.format = REPORT_CSV, .counted = counted};
    if (!artifact_open(a, file, &out))
        return false;
    struct report *report = report_of_flame(flame, categories, by);
    report_write(&out, report, &options);
    report_free(report);
    return artifact_close(a, file, &out);
}

static bool write_page(struct artifact *a, const char *file, struct html_options options,
                       const struct tree *tree, const struct naming *naming) {
    struct out out;
    struct notes notes = {0};
    struct categories *categories = categories_new(NULL, &a->request->context, a->error);
    char *subtitle = subtitle_of(a->run);
    notes_merge(&notes, &a->run->result->notes);
    notes_merge(&notes, &a->run->notes);
    notes_sort(&notes);
    options.subtitle = subtitle;
    options.categories = categories;
    options.notes = &notes;
    bool fine = categories && artifact_open(a, file, &out);
    if (fine && !html_write(&out, tree, naming, &options, a->error)) {
        out_discard(&out);
        fine = false;
    }
    fine = fine && artifact_close(a, file, &out);
    categories_free(categories);
    notes_release(&notes);
    free(subtitle);
    return fine;
}

/* One page for all views: it switches between them. */
static bool write_views_page(struct artifact *a, enum times times) {
    struct html_options options = {.colouring.palette = times_looks[times].palette,
                                   .together = times == TIMES_BOTH,
                                   .times = times_looks,
                                   .shown = times};
    struct naming *naming = naming_of_tree(a->whole, &a->request->naming);
    bool fine = write_page(a, "flamegraph.html", options, a->whole, naming);
    naming_free(naming);
    return fine;
}

/* Of the CPU's time the tables count samples; of waits and system calls, of which each has a length, nanoseconds. */
static bool write_tables(struct artifact *a, const struct flame *flame,
                         const struct view_names *names) {
    bool timed = names->times != TIMES_RUNNING || is_kind(a->run, "syscalls") || names->value;
    const char *counted = names->value ? "bytes" : timed ? "ns" : "samples";
    struct notes unused = {0};
    struct flame *samples = NULL;
    if (!timed) {
        a->request->flame.by_samples = true;
        samples = make_flame(a->request, a->source, &unused, a->error);
        a->request->flame.by_samples = false;
        notes_release(&unused);
    }
    const struct flame *shown = timed ? flame : samples;
    struct categories *categories = categories_new(NULL, &a->request->context, a->error);
    bool fine = shown && categories &&
                write_table(a, names->functions, shown, categories, BY_FUNCTION, counted) &&
                write_table(a, names->categories, shown, categories, BY_CATEGORY, counted);
    categories_free(categories);
    flame_free(samples);
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

/* A view of which nothing was sampled has no picture, and none is named. */
static bool write_view(struct artifact *a, const struct flame *flame,
                       const struct view_names *names) {
    if (flame->nodes.items[0].total == 0)
        return true;
    a->is_drawn = true;
    return write_folded(a, names->folded, flame) && write_picture(a, flame, names) &&
           write_reverse(a, names) && write_tables(a, flame, names);
}

/* ---- what changed since an earlier run ---- */

static struct flame *earlier_flame(struct artifact *a) {
    const struct run *run = a->run;
    struct import_options options = {.profile.context = &a->request->context, .from = "folded"};
    struct notes unused = {0};
    struct source source;
    struct buffer path = {0};
    buffer_printf(&path, "%s/%s", run->compared, run->folded);
    buffer_add_char(&path, 0);
    const char *paths[] = {path.items};
    bool is_open = source_open(&source, paths, 1, &options, a->error);
    struct flame *flame = is_open ? make_flame(a->request, &source, &unused, a->error) : NULL;
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
    bool fine = write_page(a, "diff.html", options, tree, naming);
    naming_free(naming);
    objects_free(tree->objects);
    tree_free(tree);
    return fine;
}

/* Two runs of one command compare as they are; of what was attached to, only shares mean anything. */
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
        both ? categories_new(NULL, &a->request->context, a->error) : NULL;
    bool fine = categories && write_folded(a, "diff.folded", both) &&
                write_svg(a, "diff.svg", both, &looks, SVG_MIN_WIDTH) &&
                write_table(a, "diff.csv", both, categories, BY_FUNCTION, NULL) &&
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

static void choose_events(struct request *request, const struct run *run) {
    struct profile_options *options = &request->import.profile;
    static const char *calls[] = {SYSCALLS_ENTER};
    options->filter =
        (struct filter){0};       /* -p named what to attach to; its children count as well */
    options->keep_samples = true; /* for the page's timeline */
    if (is_kind(run, "syscalls")) {
        options->filter.events = calls;
        options->filter.event_count = 1;
    }
}

/* The view that the run is about also says what it compares with and how it came about. */
static bool write_about(struct artifact *a, const struct flame *flame) {
    struct run *run = a->run;
    if (run->result->lost)
        notes_drop(&run->notes, "lost-samples"); /* the recorder has said so */
    run->stacks = count_stacks(flame);
    count_samples(run, a->source->tree);
    return write_comparison(a, flame) && run_describe(run, a->error);
}

/* Time on CPUs: what the target's own account says, or else what its samples stand for. */
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

/* Which functions allocated what; before the first table, how much it is in all. */
static void answer_memory(struct artifact *a, const struct flame *flame,
                          const struct view_names *names) {
    const struct heap_facts *facts = a->source->profile ? a->source->profile->heap : NULL;
    struct notes unused = {0};
    if (!facts)
        return;
    if (names == &view_live)
        run_answer_memory(a->run, facts);
    a->request->flame.by_samples = true;
    struct flame *samples = make_flame(a->request, a->source, &unused, a->error);
    a->request->flame.by_samples = false;
    if (samples)
        run_answer_sites(a->run, names->heading, flame, samples, facts->mean == 1);
    flame_free(samples);
    notes_release(&unused);
}

static bool write_value_page(struct artifact *a, const struct view_names *names) {
    struct looks looks = looks_of(names);
    struct html_options options = {.title = looks.title, .colouring.palette = looks.palette};
    struct naming *naming = naming_of_tree(a->source->tree, &a->request->naming);
    bool fine = write_page(a, names->html, options, a->source->tree, naming);
    naming_free(naming);
    return fine;
}

/* Running and waiting have a table each; both in one would say it twice. */
static void answer_view(struct artifact *a, const struct flame *flame,
                        const struct view_names *names) {
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

static bool write_source(struct artifact *a, const struct view_names *names, bool about) {
    struct notes unused = {0}, *notes = about ? &a->run->notes : &unused;
    struct flame *flame = make_flame(a->request, a->source, notes, a->error);
    bool has = flame && (about || names->value || names->times != TIMES_RUNNING ||
                         flame->nodes.items[0].total);
    if (has)
        answer_view(a, flame, names);
    bool fine = flame && write_view(a, flame, names);
    if (fine && names->html && flame->nodes.items[0].total)
        fine = write_value_page(a, names);
    if (fine && about && a->is_drawn && !names->html)
        fine = write_views_page(a, names->times);
    fine = fine && (!about || write_about(a, flame));
    flame_free(flame);
    notes_release(&unused);
    return fine;
}

/* The recording is read once, with all that it tells of threads; each view is a choice of that. */
static bool write_views(struct artifact *a, const struct view_names *const *views, size_t count) {
    struct source whole = *a->source, part = whole;
    bool fine = true;
    a->source = &part;
    for (size_t i = 0; fine && i < count; i++) {
        part.tree = tree_view_new(whole.tree, views[i]->times);
        fine = write_source(a, views[i], i + 1 == count);
        tree_view_free(part.tree);
    }
    return fine;
}

/* Each value of a recording of allocations is read for itself: its samples are others. */
static bool write_values(struct artifact *a, const char *data,
                         const struct view_names *const *views, size_t count) {
    struct filter *filter = &a->request->import.profile.filter;
    bool fine = true;
    for (size_t i = 0; fine && i < count; i++) {
        struct source source;
        const char *value = views[i]->value;
        filter->events = &value;
        filter->event_count = 1;
        if (!source_open(&source, &data, 1, &a->request->import, a->error))
            return false;
        a->source = &source;
        a->whole = source.tree;
        fine = write_source(a, views[i], i + 1 == count);
        source_close(&source);
    }
    *filter = (struct filter){0};
    return fine;
}

bool profile_write_files(struct request *request, struct run *run, const char *data,
                         const struct view_names *const *views, size_t view_count,
                         struct error *error) {
    struct source source;
    struct artifact a = {.request = request, .run = run, .source = &source, .error = error};
    struct profile_options *options = &request->import.profile;
    if (!request_start_net(request, error))
        return false;
    choose_events(request, run);
    run->cpu_ns = run->result->cpu_ns;
    options->times = views[view_count - 1]->times;
    options->each = view_count > 1;
    options->wakers = run->recording->wakers && view_count > 1;
    if (views[0]->value) {
        options->each = false;
        return write_values(&a, data, views, view_count);
    }
    if (!source_open(&source, &data, 1, &request->import, error))
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
