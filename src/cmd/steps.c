/*
 * The steps that commands share: from operands to a source, to names, to a flame, and to the output.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int fail(const struct error *error) {
    progress_wipe();
    fprintf(stderr, "wick: %s\n", error->message);
    return error->kind ? (int)error->kind : ERROR_INTERNAL;
}

int fail_usage(const char *command, const char *format, ...) {
    va_list list;
    struct buffer shown = {0};
    va_start(list, format);
    char *why = memory_print(NULL, format, list);
    va_end(list);
    buffer_add_shown(&shown, text_of(why)); /* operands may be file names from a shell's `*` */
    progress_wipe();
    fprintf(stderr, "wick: %.*s; see wick %s --help\n", TEXT_ARGS(buffer_text(&shown)), command);
    buffer_release(&shown);
    free(why);
    return ERROR_USAGE;
}

void say_line(const char *format, ...) {
    va_list list;
    struct buffer shown = {0};
    va_start(list, format);
    char *line = memory_print(NULL, format, list);
    va_end(list);
    buffer_add_shown(&shown, text_of(line));
    fprintf(stderr, "wick: %.*s\n", TEXT_ARGS(buffer_text(&shown)));
    buffer_release(&shown);
    free(line);
}

bool reader_is_gone(void) {
    struct pollfd output = {.fd = STDOUT_FILENO};
    return poll(&output, 1, 0) == 1 && output.revents & POLLERR;
}

bool output_open(struct request *request, struct out *out, struct error *error) {
    const char *path = request->output ? request->output : "-";
    progress_wipe();
    bool terminal = strcmp(path, "-") == 0 && isatty(STDOUT_FILENO);
    if (terminal)
        request->context.progress = NULL;
    bool fine = out_open(out, path, error);
    out->guarded = terminal;
    return fine;
}

void print_notes(const struct request *request, struct notes *notes) {
    if (request->quiet)
        return;
    progress_wipe();
    notes_sort(notes);
    struct buffer line = {0};
    for (size_t i = 0; i < notes->count; i++) {
        line.count = 0;
        note_print(&notes->items[i], &line);
        fprintf(stderr, "wick: %.*s\n", (int)line.count, line.items);
    }
    buffer_release(&line);
}

/* Print what the recording tells about the machine and its command line; skip what is missing. */
static void describe_recording(const struct perfdata *data) {
    struct buffer line = {0};
    const struct text told[] = {data->arch, data->os_release, data->cpu_desc};
    buffer_add(&line, TEXT("recorded"));
    if (data->hostname.length)
        buffer_printf(&line, " on %.*s", TEXT_ARGS(data->hostname));
    for (size_t i = 0; i < COUNT_OF(told); i++)
        if (told[i].length)
            buffer_printf(&line, ", %.*s", TEXT_ARGS(told[i]));
    if (data->cpus_online)
        buffer_printf(&line, ", %u of %u CPUs", data->cpus_online, data->cpus_available);
    if (data->version.length) /* perf's version is only a number */
        buffer_printf(&line, ", by %s%.*s", data->version.data[0] <= '9' ? "perf " : "",
                      TEXT_ARGS(data->version));
    if (data->cmdline.length)
        buffer_printf(&line, ": %.*s", TEXT_ARGS(data->cmdline));
    say_line("%.*s", TEXT_ARGS(buffer_text(&line)));
    buffer_release(&line);
}

/* --verbose: describe what was read, before the result. */
static void describe_source(const struct source *source) {
    const struct tree *tree = source->tree;
    uint64_t samples = 0;
    bool measured = tree_knows(tree, TIMES_RUNNING); /* then on-CPU time is there twice */
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct series *series = &tree->series.items[tree->cells.items[i].series];
        if (!measured || tree_event(tree, series->event)->time != TIME_RUN)
            samples += tree->cells.items[i].samples;
    }
    for (size_t i = 0; i < source->file_count; i++)
        say_line("%s: %zu bytes", source->files[i].path, source->files[i].size);
    say_line("%s, %llu samples, %zu locations, %zu stacks, %zu series",
             source->profile  ? "perf.data"
             : source->format ? source->format->what
                              : "text",
             (unsigned long long)samples, tree->locations.count - 1, tree->nodes.count - 1,
             tree->series.count - 1);
    struct buffer values = {0};
    tree_add_values(tree, &values);
    say_line("values: %.*s", TEXT_ARGS(buffer_text(&values)));
    buffer_release(&values);
    if (source->profile) {
        describe_recording(source->profile->data);
        say_line("%llu samples in the file; events: %s",
                 (unsigned long long)source->profile->sample_count, source->profile->event_names);
    }
}

static const struct note_kind note_no_samples = {
    "no-samples",
    "# recording{ has|s have} no samples: the program ended too soon, or only waited"};

static void note_if_no_samples(const struct source *source) {
    if (source->profile && source->profile->sample_count == 0)
        notes_add(&source->tree->notes, &note_no_samples, 1, 0, "%s", source->files[0].path);
}

/* Otherwise nothing would be found there, without a reason being given. */
static bool lookups_are_there(const struct request *request, struct error *error) {
    const struct objects_options *objects = &request->import.profile.objects;
    struct stat status;
    if (objects->symfs && stat(objects->symfs, &status) != 0)
        return error_set(error, ERROR_INPUT, "--symfs %s: %s", objects->symfs, strerror(errno));
    if (objects->symfs && !S_ISDIR(status.st_mode))
        return error_set(error, ERROR_INPUT, "--symfs %s: is not a directory", objects->symfs);
    if (objects->kallsyms && access(objects->kallsyms, R_OK) != 0)
        return error_set(error, ERROR_INPUT, "--kallsyms %s: %s", objects->kallsyms,
                         strerror(errno));
    if (objects->vmlinux && access(objects->vmlinux, R_OK) != 0)
        return error_set(error, ERROR_INPUT, "--vmlinux %s: %s", objects->vmlinux, strerror(errno));
    return true;
}

bool request_open(struct request *request, struct source *source, const char *const *paths,
                  size_t count, struct error *error) {
    if (!lookups_are_there(request, error) || !request_start_net(request, error) ||
        (request->output && !out_check(request->output, error)) ||
        !filters_settle_time(request, paths, count, error))
        return false;
    request->import.profile.keep_samples |= grouping_asks(request, TEXT("cpu"));
    request->import.profile.lifetimes |= grouping_asks(request, TEXT("lifetime"));
    request->import.store_hosts |= grouping_asks(request, TEXT("host"));
    request->import.profile.natural = !request->times_asked && !request->compat;
    if (!source_open(source, paths, count, &request->import, error))
        return false;
    request->import.profile.each = source->each;
    if (request->import.profile.natural)
        request->import.profile.times = source->tree->shown;
    request->times_asked = true;
    filters_assign(request, source->tree);
    grouping_prepare(request, source->tree);
    if ((request->value && !tree_choose_value(source->tree, request->value, error)) ||
        !grouping_check(request, source->tree, error)) {
        source_close(source);
        return false;
    }
    filters_note(request, paths, count, source->tree);
    note_if_no_samples(source);
    if (request->verbose)
        describe_source(source);
    return true;
}

bool open_source(struct request *request, struct source *source, int *status) {
    static const char *const standard_input[] = {"-"};
    if (!choose_default(request, status))
        return false;
    bool named = request->operands.count > 0;
    struct error error;
    bool fine = request_open(request, source, named ? request->operands.items : standard_input,
                             named ? request->operands.count : 1, &error);
    if (!fine)
        *status = fail(&error);
    return fine;
}

static const struct note_kind note_no_match = {"stacks-match-nothing",
                                               "no stack passes the filters"};

/* Suggest a function for the first pattern that must match one. */
static void guess_pattern(const struct stack_rules *rules, const struct naming *naming,
                          struct buffer *text) {
    const pattern_list *list = rules->root.count ? &rules->root : &rules->focus;
    if (!list->count)
        return;
    struct guess guess = {.typed = text_of(pattern_text(list->items[0]))};
    for (size_t i = 0; i < naming->labels.count; i++)
        if (!(naming->labels.items[i].kinds & KIND_ROOT))
            guess_offer_function(&guess,
                                 strings_get(naming->strings, naming->labels.items[i].name).data);
    guess_add(&guess, text);
}

/* A function that one side of a diff lacks may be in the other. */
static bool stacks_are_left(const struct request *request, const struct naming *naming,
                            const struct flame *flame, struct notes *notes, struct error *error) {
    const struct stack_rules *rules = &request->rules;
    bool is_diff = strcmp(request->syntax->command, "diff") == 0;
    if (flame->nodes.count > 1 || !stacks_are_chosen(request))
        return true;
    struct buffer meant = {0};
    guess_pattern(rules, naming, &meant);
    bool fails = rules->root.count && !is_diff;
    if (fails)
        error_set(error, ERROR_INPUT, "--%s %s: no stack has %s%.*s",
                  pattern_is_exact(rules->root.items[0]) ? "base" : "root",
                  pattern_text(rules->root.items[0]),
                  rules->root.count > 1 ? "any of these functions" : "this function",
                  TEXT_ARGS(buffer_text(&meant)));
    else {
        struct buffer text = {0};
        stack_rules_add(&text, rules);
        buffer_add(&text, buffer_text(&meant));
        notes_add(notes, &note_no_match, 1, 0, "%.*s", TEXT_ARGS(buffer_text(&text)));
        buffer_release(&text);
    }
    buffer_release(&meant);
    return !fails;
}

typedef struct flame *flame_maker(const struct tree *tree, const struct naming *naming,
                                  const struct flame_options *options, struct error *error);

struct naming *make_naming(struct request *request, const struct source *source,
                           struct notes *notes) {
    const struct profile_options *profile = &request->import.profile;
    return naming_with_notes(source->tree, &request->naming, profile->each, profile->times, notes);
}

static struct flame *make(struct request *request, flame_maker *maker, const struct source *source,
                          struct notes *notes, struct error *error) {
    struct naming *naming = make_naming(request, source, notes);
    struct flame *flame = maker(source->tree, naming, &request->flame, error);
    bool fine = flame && stacks_are_left(request, naming, flame, notes, error);
    naming_free(naming);
    if (fine)
        return flame;
    flame_free(flame);
    return NULL;
}

static const struct note_kind note_graph_self = {
    "graph-totals", "a call graph has totals only for functions and lines: total is self here"};

bool graph_answers(const struct request *request, struct error *error) {
    const struct flame_options *shape = &request->flame;
    return (!stacks_are_chosen(request) && !shape->max_depth && !shape->fold_recursion) ||
           error_set(error, ERROR_INPUT,
                     "--focus, --hide, --root, --max-depth, --fold-recursion and the like need "
                     "stacks, which a call graph does not have");
}

static struct flame *make_graph_flame(struct request *request, const struct source *source,
                                      struct notes *notes, struct error *error) {
    const char *frames = request->by.frames ? request->by.frames : "function";
    bool totals = strcmp(frames, "function") == 0 || strcmp(frames, "line") == 0;
    if (!graph_answers(request, error))
        return NULL;
    struct naming *naming = make_naming(request, source, notes);
    struct flame *flame = flame_of_graph(source->tree, naming, totals, error);
    if (flame && !totals)
        notes_add(notes, &note_graph_self, 1, 0, NULL);
    naming_free(naming);
    return flame;
}

struct flame *make_flame(struct request *request, const struct source *source, struct notes *notes,
                         struct error *error) {
    if (source->tree->is_graph)
        return make_graph_flame(request, source, notes, error);
    return make(request, flame_of_tree, source, notes, error);
}

struct flame *make_chart(struct request *request, const struct source *source, struct notes *notes,
                         struct error *error) {
    return make(request, flame_chart_of_tree, source, notes, error);
}

bool fold_fits(const struct request *request, const struct flame *flame, struct error *error) {
    uint64_t size = fold_size(flame), most = 4ull << 30;
    if (request->force || size <= most || request->import.profile.quirks.folds_any_size)
        return true;
    return error_set(
        error, ERROR_INPUT,
        "folded text would take %.1f GB, because it repeats every stack, up to %u frames deep; "
        "--fold-recursion or --max-depth N make it smaller, --force writes it anyway",
        (double)size / 1e9, flame->max_depth);
}

bool folded_write(struct request *request, const struct flame *flame, struct error *error) {
    struct out out;
    struct fold_options options = {.context = &request->context, .quirks = request->naming.quirks};
    if (!output_open(request, &out, error))
        return false;
    fold_write(&out, flame, &options);
    return out_commit(&out, error);
}

unsigned terminal_width(int descriptor, unsigned otherwise) {
    struct winsize size;
    return isatty(descriptor) && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col
               ? size.ws_col
               : otherwise;
}

void report_options_settle(struct report_options *options, uint32_t limit, bool csv, bool json,
                           const char *output) {
    const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
    bool plain = (no_colour && *no_colour) || !kind || strcmp(kind, "dumb") == 0;
    bool terminal = !output && isatty(STDOUT_FILENO);
    if (terminal)
        options->width = terminal_width(STDOUT_FILENO, 0);
    options->colours = terminal && !plain;
    options->limit = limit;
    options->format = csv ? REPORT_CSV : json ? REPORT_JSON : REPORT_TEXT;
}
