/* wick export: write a source with its names in another tool's format. */
#include "cmd/confine.h"

#include <stdlib.h>
#include <unistd.h>

#include "export/export.h"

struct export_command {
    struct request request;
    const struct export_format *format;
    bool no_lines;
};

static bool set_format(void *command, const char *value, struct error *error) {
    struct export_command *export = command;
    export->format = export_format_named(value);
    if (export->format)
        return true;
    struct buffer names = {0};
    export_add_names(&names);
    error_set(error, ERROR_USAGE, "'%s' is none of %.*s", value, TEXT_ARGS(buffer_text(&names)));
    buffer_release(&names);
    return false;
}

static const struct option options_export[] = {
    {"to", 0, OPTION_CALL, CALL(set_format), "FORMAT",
     "speedscope (.speedscope.json), pprof (.pb.gz, .pprof), firefox (Firefox Profiler: "
     ".firefox.json), callgrind (KCachegrind: .callgrind), cpuprofile (Chrome DevTools: "
     ".cpuprofile), chrome (trace events for Perfetto: .trace.json) or otlp (OpenTelemetry: "
     ".otlp); by default taken from the extension of the output file",
     "speedscope pprof firefox callgrind cpuprofile chrome otlp"},
    {"no-lines", 0, OPTION_FLAG, IN(struct export_command, no_lines), NULL,
     "pprof, firefox, callgrind, otlp: do not look up source lines, which is the slowest part for "
     "large programs"},
    {"show-state", 0, OPTION_FLAG, ASKED(naming.show_state), NULL,
     "add a frame for the thread's state: [sleep], [disk], [preempted]; with --wall also [on-cpu]"},
    {"force", 0, OPTION_FLAG, ASKED(force), NULL, "allow more than 4 GB of output"},
    {0},
};

static const struct option_group groups[] = {
    {"Format", options_export},
    {"Which stacks", options_stacks},
    {"Grouping", options_by},
    OPTION_GROUPS_OF_PROFILES,
    {0},
};

static const struct syntax syntax = {
    "export",
    "FILE… --to FORMAT",
    "Convert anything wick can read to another tool's format, with the same sums that wick\nshows. "
    "Threads and events stay separate, and in order of time if the source has times.\nSeveral "
    "files are added up.",
    groups,
    .examples = "wick export perf.data -o profile.pb.gz         # pprof\n"
                "wick export perf.data -o profile.speedscope.json\n"
                "wick export --to otlp --set-label service=web perf.data -o profile.otlp",
    .common = "output to event comm time label set-label by no-lines focus",
};

static bool write_to(struct export_command *export, struct out *out, const struct source *source,
                     struct notes *notes, struct error *error) {
    struct request *request = &export->request;
    if (source->tree->is_graph && !graph_answers(request, error))
        return false;
    request->naming.no_comm = true; /* threads already have it as their name */
    struct naming *naming = make_naming(request, source, notes);
    notes_sort(notes);
    struct export_options options = {
        .shape = &request->flame,
        .title = export_title(request->operands.count ? request->operands.items[0] : "-"),
        .measure = request->import.profile.times == TIMES_BOTH ? "wall" : NULL,
        .notes = notes,
        .force = request->force,
        .began = source->tree->began,
        .lasted = source->tree->lasted,
    };
    bool fine = export_write(out, export->format, source->tree, naming, &options, error);
    naming_free(naming);
    return fine;
}

static int write_export(struct export_command *export, const struct source *source,
                        struct notes *notes) {
    struct error error;
    struct out out;
    if (!output_open(&export->request, &out, &error))
        return fail(&error);
    if (!write_to(export, &out, source, notes, &error)) {
        out_discard(&out);
        return fail(&error);
    }
    return out_commit(&out, &error) ? 0 : fail(&error);
}

/* Return 0, or the exit status after an error was printed. */
static int choose_format(struct export_command *export) {
    struct request *request = &export->request;
    bool to_terminal =
        (!request->output || strcmp(request->output, "-") == 0) && isatty(STDOUT_FILENO);
    if (!export->format && request->output)
        export->format = export_format_of_path(request->output);
    const struct export_format *format = export->format;
    if (!format) {
        struct buffer names = {0};
        export_add_names(&names);
        int status = fail_usage("export", "--to FORMAT is needed: one of %.*s",
                                TEXT_ARGS(buffer_text(&names)));
        buffer_release(&names);
        return status;
    }
    if (export->no_lines && !format->has_lines)
        return fail_usage("export", "--no-lines: %s has no lines", format->name);
    if (format->is_binary && to_terminal)
        return fail_usage("export", "%s is binary: use -o FILE", format->name);
    return 0;
}

static int run(void *command, int argc, char **argv) {
    struct export_command *export = command;
    struct request *request = &export->request;
    int status = 0;
    if (!request_find_compat(request, argc, argv, &status) ||
        !request_parse(request, &syntax, argc, argv, &status))
        return status;
    if ((status = choose_format(export)))
        return status;
    request->import.profile.keep_samples = export->format->has_time;
    request->import.timed_only = true;
    request->import.graphs = export->format->write_graph != NULL;
    request->import.profile.source_lines |= export->format->has_lines && !export->no_lines;
    request->import.profile.lifetimes = true; /* a label, as saved profiles have it */
    struct error error;
    if (!grouping_settle(request, &error))
        return fail(&error);
    struct source source;
    if (!confine_reader(request, NULL, &status) || !open_source(request, &source, &status))
        return status;
    struct notes notes = {0};
    status = write_export(export, &source, &notes);
    print_notes(request, &notes);
    notes_release(&notes);
    source_close(&source);
    return status;
}

const struct command command_export = {
    "export", "convert to speedscope, pprof, the Firefox Profiler and others",
    sizeof(struct export_command), run, .group = GROUP_CONVERT};
