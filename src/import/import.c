/*
 * Detect the format of each file, and read all files of a command into one tree.
 */
#include "base/json.h"
#include "import/reader.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const struct import_format *const import_formats[] = {
    &format_perf,
    &format_folded,
    &format_dtrace,
    &format_sample,
    &format_vtune,
    &format_vsprof,
    &format_ghcprof,
    &format_xctrace,
    &format_bpftrace,
    &format_go,
    &format_gdb,
    &format_eu_stack,
    &format_stap,
    &format_pmcstat,
    &format_jstack,
    &format_java_exceptions,
    &format_faulthandler,
    &format_chrome,
    &format_perf_sched,
    &format_recursive,
    &format_svg,
    &format_async_profiler,
    &format_offcputime,
    &format_wick,
    &format_pprof,
    &format_speedscope,
    &format_cpuprofile,
    &format_heapprofile,
    &format_firefox,
    &format_otlp,
    &format_jfr,
    &format_heaptext,
    &format_gecko,
    &format_callgrind,
    &format_gperftools,
    &format_stackprof,
    &format_pprof_text,
    &format_dhat,
    &format_massif,
    &format_v8log,
    NULL,
};

/* How much a format may look at, rounded up to the end of a line; stacks of C++ names can make lines longer than the
   first number. */
enum { BEGINNING = 64 << 10, BEGINNING_MOST = 64 << 20 };

static const struct note_kind note_no_format = {
    "no-format", "No applicable collapse implementation found for input"};
static const struct note_kind note_empty = {"empty-input", "# file{ was|s were} empty"};

const struct import_format *import_format_named(const char *name) {
    for (size_t i = 0; import_formats[i]; i++)
        if (strcmp(import_formats[i]->name, name) == 0)
            return import_formats[i];
    return NULL;
}

static const struct import_format *guess(struct text beginning, int *most) {
    const struct import_format *best = NULL;
    *most = 0;
    for (size_t i = 0; import_formats[i]; i++) {
        int score = import_formats[i]->score(beginning);
        if (score > *most) {
            *most = score;
            best = import_formats[i];
        }
    }
    return best;
}

const struct import_format *import_guess(struct text beginning) {
    int score;
    return guess(beginning, &score);
}

static bool is_guess(const struct import_options *options) {
    return options->from && strcmp(options->from, "guess") == 0;
}

/* ---- one file ----------------------------------------------------------------------------- */

static struct text beginning_of(struct text content) {
    if (content.length <= BEGINNING)
        return content;
    struct text most =
        text_upto(content, content.length < BEGINNING_MOST ? content.length : BEGINNING_MOST);
    size_t end = text_find(text_from(most, BEGINNING), '\n');
    return end == SIZE_MAX ? most : text_upto(most, BEGINNING + end + 1);
}

/* A JSON file is often one line: if its beginning suffices, do not look at the rest, which would cost more than
   reading it. */
static const struct import_format *guess_content(struct text content) {
    enum { CERTAIN = 97 };
    int score;
    const struct import_format *format =
        content.length > BEGINNING ? guess(text_upto(content, BEGINNING), &score) : NULL;
    return format && score >= CERTAIN ? format : import_guess(beginning_of(content));
}

/* A JSON document may begin with a long member that says nothing, such as the source maps in a recording of DevTools:
   guess from the beginning of each member. Costs a pass over the document, and only if its beginning did not suffice. */
static const struct import_format *guess_members(struct text content) {
    enum { MEMBERS = 64, OF_EACH = 1024 };
    struct json json = {content};
    struct buffer name = {0}, outline = {0};
    bool fine = json_take(&json, '{');
    buffer_add_char(&outline, '{');
    for (size_t i = 0; fine && i < MEMBERS && json_member(&json, &name); i++) {
        struct text value = json.rest;
        fine = json_skip(&json);
        value.length -= json.rest.length;
        buffer_printf(&outline, "\"%.*s\":", TEXT_ARGS(buffer_text(&name)));
        buffer_add(&outline, text_upto(value, value.length < OF_EACH ? value.length : OF_EACH));
        buffer_add_char(&outline, ',');
    }
    const struct import_format *format = fine ? import_guess(buffer_text(&outline)) : NULL;
    buffer_release(&name);
    buffer_release(&outline);
    return format;
}

static bool choose_format(struct text content, const char *path,
                          const struct import_options *options, const struct import_format **format,
                          struct error *error) {
    bool look = !options->from || is_guess(options);
    *format = look ? guess_content(content) : import_format_named(options->from);
    if (!*format && look && content.length > BEGINNING)
        *format = guess_members(content);
    if (!*format && look && text_starts(content, TEXT("\177ELF")))
        return error_set(error, ERROR_INPUT,
                         "%s: a program, not a profile; record one with `wick profile -- %s`", path,
                         path);
    if (!*format && look)
        return error_set(error, ERROR_INPUT,
                         "%s: not a format that wick recognises; name it with --from", path);
    if (!*format)
        return error_set(error, ERROR_USAGE, "--from %s: no such format", options->from);
    return true;
}

/* A tree charges its budget only when it is settled, which setting the next budget does. */
bool import_read(const struct import_format *format, struct text content, const char *path,
                 const struct import_options *options, struct tree *tree, struct error *error) {
    struct import_options budgeted = *options;
    struct budget budget;
    budget_init(&budget, context_limits(options->profile.context), content.length);
    budgeted.budget = &budget;
    budgeted.content = content;
    tree_set_budget(tree, &budget);
    bool fine = format->read(content, path, &budgeted, tree, error);
    tree_set_budget(tree, NULL);
    return fine && (!budget_exceeded(&budget) || budget_error(&budget, path, error));
}

/* Add the symbols beside a profile to the options; return false if there are none, or if they can't be opened. */
static bool open_sidecar(struct file *sidecar, const char *path, struct import_options *options) {
    struct buffer name = {0};
    struct error error;
    bool fine = sidecar_path(path, &name) &&
                file_open(sidecar, name.items, options->profile.context, &error);
    buffer_release(&name);
    if (fine)
        options->sidecar = file_text(sidecar);
    return fine;
}

static bool parse_text(struct source *source, const struct file *file, struct text content,
                       struct tree *tree, const struct import_options *options,
                       struct error *error) {
    const struct import_format *format;
    if (content.length == 0 && !options->from) {
        notes_add(&tree->notes, &note_empty, 1, 0, "%s", file->path);
        return true;
    }
    if (options->profile.quirks.formats_are_asked && is_guess(options)) {
        format = guess_as_inferno(content);
        if (!format) { /* reported, but not an error, as in inferno */
            notes_add(&tree->notes, &note_no_format, 1, 0, NULL);
            return true;
        }
    } else if (!choose_format(content, file->path, options, &format, error)) {
        return false;
    }
    struct import_options mapped = *options;
    struct file sidecar;
    mapped.mapped = content.data == (const char *)file->data;
    if (!source->format)
        source->format = format;
    if (format != &format_firefox || !open_sidecar(&sidecar, file->path, &mapped))
        return import_read(format, content, file->path, &mapped, tree, error);
    bool fine = import_read(format, content, file->path, &mapped, tree, error);
    file_close(&sidecar);
    return fine;
}

/* Convert to UTF-8 without a byte order mark, which Windows programs write. */
static bool parse_file(struct source *source, const struct file *file, struct tree *tree,
                       const struct import_options *options, struct error *error) {
    struct text content = file_text(file);
    struct buffer converted = {0};
    if (text_is_utf16(content)) {
        text_from_utf16(content, &converted);
        content = buffer_text(&converted);
    } else if (text_starts(content, TEXT("\xef\xbb\xbf")) &&
               !options->profile.quirks.text_is_lossy) {
        content = text_from(content, 3);
    }
    bool fine = parse_text(source, file, content, tree, options, error);
    buffer_release(&converted);
    return fine;
}

/* If a file shrank, it does not matter what was wrong with its content. */
static bool read_text(struct source *source, struct file *file, struct tree *tree,
                      const struct import_options *options, struct error *error) {
    bool fine = parse_file(source, file, tree, options, error);
    return !file_changed(file, error) && fine;
}

static void begin_tree(struct source *source, const struct import_options *options) {
    if (source->tree)
        return;
    source->tree = tree_new();
    source->tree->keep_samples = options->profile.keep_samples;
}

/* Replace a recording by the text that perf script prints for it. */
static bool print_perf_data(struct file *file, const struct import_options *options,
                            struct notes *notes, struct error *error) {
    struct profile_options all = options->profile;
    struct spool spool = {0};
    struct out out;
    struct file text;
    all.quirks = quirks_perf;
    all.raw_addresses = false;
    all.keep_samples = all.all_events = true;
    all.filter = (struct filter){0};
    struct profile *profile = profile_read(file, &all, error);
    bool fine = profile && spool_open(&spool, file->path, options->profile.context, error);
    if (fine) {
        out_open_spool(&out, &spool);
        fine = options->print(&out, profile, options->profile.context, error);
        if (!fine)
            out_discard(&out);
        fine = fine && out_commit(&out, error) && spool_map(&spool, file->path, &text, error);
    }
    if (fine)
        notes_merge(notes, &profile->tree->notes);
    profile_free(profile);
    spool_release(&spool);
    if (!fine)
        return false;
    file_close(file);
    *file = text;
    return true;
}

/* Only the text itself shows how inferno treats lines that are not samples: print it, and read it as inferno would.
   That costs both steps, but is rare: tracepoints, samples of no thread, several events without call chains, names
   with line ends. */
static bool read_through_text(struct source *source, struct file *file,
                              const struct import_options *options, struct error *error) {
    struct import_options text = *options;
    text.from = "perf";
    begin_tree(source, options);
    return print_perf_data(file, options, &source->tree->notes, error) &&
           read_text(source, file, source->tree, &text, error);
}

/* With several files, each perf.data is resolved separately, and only its counts are kept. */
static bool read_perf_data(struct source *source, struct file *file,
                           const struct import_options *options, struct error *error) {
    struct profile *profile = profile_read(file, &options->profile, error);
    if (!profile)
        return false;
    if (profile->needs_text && options->print) {
        profile_free(profile);
        return read_through_text(source, file, options, error);
    }
    if (source->file_count == 1) {
        source->profile = profile;
        source->tree = profile->tree;
        return true;
    }
    tree_join(source->tree, profile->tree);
    profile_free(profile);
    return true;
}

static bool read_store(struct source *source, const char *url, const struct import_options *options,
                       struct error *error) {
    source->format = source->format ? source->format : &format_store;
    if (source->file_count == 1) {
        begin_tree(source, options);
        return store_source_read(url, options, source->tree, error);
    }
    struct tree *own = tree_new();
    begin_tree(source, options);
    bool fine = store_source_read(url, options, own, error);
    if (fine)
        tree_join(source->tree, own);
    objects_free(own->objects);
    tree_free(own);
    return fine;
}

static bool read_file(struct source *source, struct file *file,
                      const struct import_options *options, struct error *error) {
    if (store_is_source(file->path))
        return read_store(source, file->path, options, error);
    bool is_data = perfdata_is(file_text(file)) && (!options->from || is_guess(options));
    if (is_data && source->file_count == 1)
        return read_perf_data(source, file, options, error);
    begin_tree(source, options);
    return is_data ? read_perf_data(source, file, options, error)
                   : read_text(source, file, source->tree, options, error);
}

/* Check that the requested kind of time was read. Readers of perf.data and saved profiles have already checked it. */
static bool has_times(const struct source *source, const struct import_options *options,
                      struct error *error) {
    const struct import_format *format = source->format;
    if (options->profile.times == TIMES_RUNNING || !format || format == &format_wick ||
        format == &format_store)
        return true;
    bool waits = format == &format_offcputime || format == &format_perf_sched;
    if (waits && options->profile.times == TIMES_WAITING)
        return true;
    return error_set(
        error, ERROR_INPUT, "%s: --off-cpu and --wall need a perf.data, and this is %s%s",
        source->files[0].path, format->what,
        format == &format_folded ? " (use --from offcputime for bcc's folded text)" : "");
}

/* Fail if stacks are needed, instead of drawing functions as if nothing called them. */
static bool takes_graphs(const struct source *source, const struct import_options *options,
                         struct error *error) {
    const struct tree *tree = source->tree;
    if (!tree->is_graph)
        return true;
    for (size_t i = 1; i < tree->nodes.count; i++)
        if (tree->nodes.items[i].parent)
            return error_set(error, ERROR_INPUT,
                             "a callgrind call graph has no stacks and can't be added to profiles "
                             "with stacks; read it separately");
    return options->graphs ||
           error_set(error, ERROR_INPUT,
                     "%s: a call graph, which has no stacks; use `wick report`, its --callers and "
                     "--callees, `wick diff --table` or `wick export --to callgrind`, or record "
                     "stacks with `wick profile`",
                     source->files[0].path);
}

/* ---- filters ---- */

/* Return true if any stack that was read, filtered out or not, has a comm. */
static bool has_comms(const struct tree *tree) {
    for (size_t i = 1; i < tree->series.count; i++)
        if (tree->series.items[i].comm)
            return true;
    return false;
}

static bool has_ids(const struct tree *tree, bool pids) {
    for (size_t i = 1; i < tree->threads.count; i++)
        if ((pids ? tree->threads.items[i].pid : tree->threads.items[i].tid) >= 0)
            return true;
    return false;
}

/* Return the first filter option for something that the source does not record, or NULL. */
static const char *unknown_filter(const struct tree *tree, const struct filter *filter,
                                  unsigned tells) {
    bool all_events = filter->event_count && strcmp(filter->events[0], "all") == 0;
    return filter->event_count && !(tells & TELLS_EVENTS) && !all_events ? "event"
           : filter->cpu_count                                           ? "cpu"
           : filter->has_time && !(tells & TELLS_TIMES)                  ? "time"
           : filter->comm_count && !has_comms(tree)                      ? "comm"
           : filter->pid_count && !has_ids(tree, true)                   ? "pid"
           : filter->tid_count && !has_ids(tree, false)                  ? "tid"
                                                                         : NULL;
}

/* A filter that can't be applied is an error: everything would be counted, or nothing. Recordings, their text and
   saved profiles record everything. */
static bool knows_filters(const struct source *source, const struct import_options *options,
                          struct error *error) {
    const struct import_format *format = source->format;
    if (!format || format->tells & TELLS_ALL)
        return true;
    const char *option = unknown_filter(source->tree, &options->profile.filter, format->tells);
    bool comm = option && strcmp(option, "comm") == 0 && format == &format_folded;
    return !option || error_set(error, ERROR_INPUT, "%s: the format %s has no %s to filter by%s",
                                source->files[0].path, format->name, option,
                                comm ? "; use --comm-first if the first frame is the comm" : "");
}

/* ---- all files ---------------------------------------------------------------------------- */

/* Report that a directory is not a run, and name a run below it: the last by name, which is the newest if names are
   dates. */
static bool refuse_directory(const char *path, struct error *error) {
    DIR *directory = opendir(path);
    struct buffer run = {0}, below = {0};
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        below.count = 0;
        buffer_printf(&below, "%s/profile.data%c", entry->d_name, 0);
        if (entry->d_name[0] == '.' || faccessat(dirfd(directory), below.items, F_OK, 0) != 0 ||
            (run.count && strcmp(entry->d_name, run.items) < 0))
            continue;
        run.count = 0;
        buffer_printf(&run, "%s%c", entry->d_name, 0);
    }
    if (directory)
        closedir(directory);
    error_set(error, ERROR_INPUT,
              run.count ? "%s: a directory of runs; name one, such as %s/%s"
                        : "%s: a directory, but not a run of wick profile (it has no "
                          "profile.data)",
              path, path, run.count ? run.items : "");
    buffer_release(&run);
    buffer_release(&below);
    return false;
}

/* Directories that are profiles: that of `perf record --threads`, whose file `data` is the start of the recording,
   and a run of `wick profile`, which contains its recording. */
bool source_open_file(struct file *file, const char *path, const struct context *context,
                      struct error *error) {
    static const char *const inside[] = {"data", "profile.data"};
    struct buffer name = {0};
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(inside) && !found; i++) {
        name.count = 0;
        buffer_printf(&name, "%s/%s%c", path, inside[i], 0);
        found = access(name.items, F_OK) == 0;
    }
    struct stat status;
    bool is_other = !found && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    bool fine = is_other ? refuse_directory(path, error)
                         : file_open(file, found ? name.items : path, context, error);
    buffer_release(&name);
    return fine;
}

/* A store is opened later, when it is read. */
static bool open_file(struct file *file, const char *path, const struct context *context,
                      struct error *error) {
    if (!store_is_source(path))
        return source_open_file(file, path, context, error);
    *file = (struct file){.path = memory_copy(path, strlen(path))};
    return true;
}

static void free_tree(struct source *source) {
    if (source->profile) {
        profile_free(source->profile);
    } else if (source->tree) {
        objects_free(source->tree->objects);
        tree_free(source->tree);
    }
    source->profile = NULL;
    source->tree = NULL;
    source->format = NULL;
}

/* How many samples tell of waits. One look at each cell. */
static uint64_t samples_waited(const struct tree *tree) {
    uint64_t samples = 0;
    for (size_t i = 1; i < tree->cells.count; i++)
        if (series_is_of(tree, &tree->series.items[tree->cells.items[i].series], TIMES_WAITING))
            samples = saturating_add(samples, tree->cells.items[i].samples);
    return samples;
}

/* Read all files. With `alike`, stop at a file whose kind of time is not that of the files before it, or that alone has or lacks waits, and set
   *alike to false. */
static bool read_files(struct source *source, const struct import_options *options, bool *alike,
                       struct error *error) {
    enum times shown = TIMES_RUNNING, meant = TIMES_RUNNING;
    uint64_t waited = 0;
    bool waits = false;
    for (size_t i = 0; i < source->file_count; i++) {
        if (source->tree) /* only recordings and saved profiles set them */
            source->tree->shown = source->tree->meant = TIMES_RUNNING;
        if (!read_file(source, &source->files[i], options, error))
            return false;
        struct tree *tree = source->tree;
        uint64_t all_waited = alike && options->profile.each ? samples_waited(tree) : 0;
        bool has_waits = all_waited > waited;
        if (alike && i && (tree->shown != shown || tree->meant != meant || has_waits != waits)) {
            *alike = false;
            return true;
        }
        waits = has_waits;
        waited = all_waited;
        shown = tree->shown;
        meant = tree->meant;
    }
    return true;
}

/*
 * Several files show the time that they were recorded for, and keep every kind of time, if all were recorded for the
 * same. If not, read them all again for CPU time, because sums of running and waiting mean nothing. Only then are
 * they read twice.
 */
static bool read_alike(struct source *source, const struct import_options *options,
                       struct error *error) {
    struct import_options plain = *options;
    bool alike = true, chooses = options->profile.natural || options->profile.each;
    source->each = options->profile.each;
    if (source->file_count < 2 || !chooses)
        return read_files(source, options, NULL, error);
    if (!read_files(source, options, &alike, error))
        return false;
    if (alike)
        return true;
    free_tree(source);
    source->each = plain.profile.natural = plain.profile.each = false;
    if (!read_files(source, &plain, NULL, error))
        return false;
    source->tree->meant = TIMES_RUNNING; /* as a saved profile, it has nothing else */
    return true;
}

bool source_open(struct source *source, const char *const *paths, size_t path_count,
                 const struct import_options *options, struct error *error) {
    *source = (struct source){.files = memory_zero(path_count, sizeof *source->files)};
    for (; source->file_count < path_count; source->file_count++)
        if (!open_file(&source->files[source->file_count], paths[source->file_count],
                       options->profile.context, error))
            break;
    bool fine = source->file_count == path_count && read_alike(source, options, error);
    if (!fine || !has_times(source, options, error) || !takes_graphs(source, options, error) ||
        !knows_filters(source, options, error)) {
        source_close(source);
        return false;
    }
    tree_cut_comms(source->tree);
    tree_filter_labels(source->tree, &options->profile.filter);
    if (!options->keep_all)
        tree_choose_notes(source->tree, source->each && !options->shown_notes);
    return true;
}

void source_close(struct source *source) {
    if (source->tree && source->tree->objects)
        objects_store(source->tree->objects);
    free_tree(source);
    for (size_t i = 0; i < source->file_count; i++)
        file_close(&source->files[i]);
    free(source->files);
    *source = (struct source){0};
}

/* Freeing memory piece by piece right before exit takes a tenth of a short run. Sanitizers report leaks, so free it
   for them. */
void source_leave(struct source *source) {
#ifdef __SANITIZE_ADDRESS__
    source_close(source);
#else
    if (!source->tree || !source->tree->objects)
        return;
    objects_store(source->tree->objects);
    objects_leave(source->tree->objects);
#endif
}
