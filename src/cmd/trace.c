/*
 * wick trace: runs a guest and writes what was counted, also every so many instructions, and also when the run is cut short.
 */
#include "cmd/result.h"
#include "trace/trace.h"
#include "tree/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- options ------------------------------------------------------------------------------ */

static struct trace_options trace_options;
static bool raw, cycles, raw_alias, checkpoint_alias;
static const char *input_path;
static text_list environment;
static VECTOR(struct trace_file) files;

static bool set_engine(const char *value, struct error *error) {
    static const char *const names[] = {"auto", "builtin", "qemu", "stream"};
    return choose(value, names, COUNT_OF(names), &trace_options.engine, error);
}

static bool set_abi(const char *value, struct error *error) {
    static const char *const names[] = {"linux", "prover"};
    return choose(value, names, COUNT_OF(names), &trace_options.abi, error);
}

static bool set_weight(const char *value, struct error *error) {
    static const char *const names[] = {"instructions", "accesses", "branches", "loaded", "stored"};
    return choose(value, names, COUNT_OF(names), &trace_options.weight, error);
}

static bool add_file(const char *value, struct error *error) {
    const char *equals = strchr(value, '=');
    const char *guest = equals ? memory_copy(value, (size_t)(equals - value)) : value;
    vector_push(&files, ((struct trace_file){guest, equals ? equals + 1 : value}));
    return true;
}

static bool set_raw_alias(const char *value, struct error *error) {
    raw = raw_alias = true;
    return true;
}

static bool set_checkpoint_alias(const char *value, struct error *error) {
    checkpoint_alias = true;
    if (text_to_u64(text_of(value), &trace_options.checkpoint) && trace_options.checkpoint)
        return true;
    return error_set(error, ERROR_USAGE, "'%s' is not a number above 0", value);
}

static bool set_misaligned(const char *value, struct error *error) {
    static const char *const names[] = {"fault", "allow"};
    unsigned choice = 0;
    bool known = choose(value, names, COUNT_OF(names), &choice, error);
    trace_options.misaligned = choice ? MISALIGNED_ALLOW : MISALIGNED_FAULT;
    return known;
}

static const struct option options_run[] = {
    {"engine", 0, OPTION_CALL, set_engine, "ENGINE",
     "auto (default: by the file), builtin (RISC-V), qemu, or stream"},
    {"budget", 0, OPTION_COUNT64, &trace_options.budget, "N", "stop after exactly N instructions"},
    {"checkpoint", 0, OPTION_COUNT64, &trace_options.checkpoint, "N",
     "publish what was counted so far every N instructions"},
    {"cycles", 0, OPTION_FLAG, &cycles, NULL,
     "print how many instructions there were; without -o that is all"},
    {"weight", 0, OPTION_CALL, set_weight, "WHAT",
     "count instructions (default), accesses, branches, or bytes loaded or stored"},
    {"parallel", 0, OPTION_FLAG, &trace_options.parallel, NULL,
     "QEMU: threads side by side, faster, instead of in an order that is always the same"},
    {0},
};

static const struct option options_guest[] = {
    {"abi", 0, OPTION_CALL, set_abi, "ABI",
     "linux (default), or prover: print, panic, commit, halt"},
    {"private-input", 0, OPTION_TEXT, &trace_options.private_input, "FILE",
     "prover: at 0xff000000, behind its length in four bytes"},
    {"file", 0, OPTION_CALL, add_file, "PATH[=FILE]",
     "a file that the guest may open, and where it is; may be repeated"},
    {"stdin", 0, OPTION_TEXT, &input_path, "FILE",
     "the guest's standard input; with --engine stream, the stream"},
    {"env", 0, OPTION_LIST, &environment, "NAME=VALUE",
     "the guest's environment; may be repeated, empty by default"},
    {"stack-size", 0, OPTION_COUNT64, &trace_options.stack_size, "BYTES",
     "of the guest; 1 GiB by default, with QEMU what ulimit -s says"},
    {"memory-size", 0, OPTION_COUNT64, &trace_options.memory_size, "BYTES",
     "of the guest; 4 GiB by default"},
    {"misaligned", 0, OPTION_CALL, set_misaligned, "WHAT",
     "loads and stores at addresses that don't fit their size: fault (default) or allow"},
    {0},
};

static const struct option options_counted[] = {
    {"raw", 0, OPTION_FLAG, &raw, NULL, "addresses instead of names, for wick enrich"},
    {"ecall-frames", 0, OPTION_FLAG, &trace_options.ecall_frames, NULL,
     "system calls are frames: ecall:write"},
    {"no-demangle", 0, OPTION_FLAG, &request.import.profile.objects.no_demangle, NULL,
     "leave C++, Rust and D names as they are"},
    {"output", 'o', OPTION_TEXT, &request.output, "FILE", "write to FILE; - is standard output"},
    {"quiet", 'q', OPTION_FLAG, &request.quiet, NULL, "no notes, no progress"},
    {0},
};

static const struct option options_alias[] = {
    {"flamegraph", 0, OPTION_TEXT, &request.output, "FILE", "-o FILE"},
    {"flamegraph-raw", 0, OPTION_CALL, set_raw_alias, NULL, "--raw"},
    {"flamegraph-checkpoint-cycles", 0, OPTION_CALL, set_checkpoint_alias, "N", "--checkpoint N"},
    {"cycle-budget", 0, OPTION_COUNT64, &trace_options.budget, "N", "--budget N"},
    {0},
};

static const struct option_group groups[] = {
    {"Run", options_run},
    {"Guest", options_guest},
    {"Result", options_counted},
    {"View", options_result},
    {"Picture", options_picture},
    {"Looks", options_looks},
    {"Other names for the same", options_alias},
    {0},
};

static const struct syntax syntax = {
    "trace",
    "GUEST [ARGUMENTS…]",
    "Executes a guest program, follows every call, return and tail call, and counts every\n"
    "instruction on its exact stack. Same program, same input: same counts. What the guest prints\n"
    "goes to standard output, or to standard error if the result goes there.",
    groups,
    .takes_command = true,
};

/* ---- output ------------------------------------------------------------------------------- */

/* What was cut short says so in every view: a root frame [partial], and a line below the title. */
static bool write_result(const struct trace *trace, struct error *error) {
    struct notes notes = {0};
    struct tree *tree = trace_tree(trace, raw, request.import.profile.objects.no_demangle);
    const char *subtitle = picture.subtitle;
    if (trace->is_partial && !subtitle)
        picture.subtitle = "partial";
    notes_merge(&notes, &trace->notes);
    notes_sort(&notes);
    bool fine = result_write(tree, &notes, error);
    picture.subtitle = subtitle;
    notes_release(&notes);
    tree_free(tree);
    return fine;
}

/* A checkpoint that can't be written is worth a warning, not the run. */
static void write_checkpoint(void *context, const struct trace *trace) {
    struct error error;
    if (!write_result(trace, &error))
        fprintf(stderr, "wick: checkpoint: %s\n", error.message);
}

/* ---- progress: instructions a second, besides what all commands show ---------------------- */

static struct timespec started;

static double seconds_since_start(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - started.tv_sec) + (double)(now.tv_nsec - started.tv_nsec) / 1e9;
}

static void show_instructions(void *user, const char *what, uint64_t done, uint64_t total) {
    double seconds = seconds_since_start();
    if (request.quiet || seconds < 1)
        return;
    fprintf(stderr, "\r\033[Kwick: %llu million instructions, %.0f million a second",
            (unsigned long long)(done / 1000000), (double)done / seconds / 1e6);
    if (total)
        fprintf(stderr, ", %u %%", (unsigned)((double)done * 100 / (double)total));
}

/* ---- the command -------------------------------------------------------------------------- */

static void begin_progress(void) {
    clock_gettime(CLOCK_MONOTONIC, &started);
    if (progress_is_seen())
        request.context.progress = show_instructions;
}

/* Only the count is wanted: no stacks are followed, and nothing but the count is written. */
static bool counts_only(void) {
    return cycles && !request.output && !result_was_chosen();
}

/* What nothing would come of if only the count is wanted. */
static const char *find_uncounted(void) {
    return raw                                           ? "--raw"
           : trace_options.weight != WEIGHT_INSTRUCTIONS ? "--weight"
           : trace_options.ecall_frames                  ? "--ecall-frames"
           : request.import.profile.objects.no_demangle  ? "--no-demangle"
           : request.flame.max_depth                     ? "--max-depth"
           : request.flame.reverse                       ? "--reverse"
                                                         : NULL;
}

static const char *find_unproven(void) {
    return request.operands.count > 1 ? "arguments"
           : files.count              ? "--file"
           : environment.count        ? "--env"
           : input_path               ? "--stdin"
                                      : NULL;
}

/* An option that nothing would come of, given the others, is an error. */
static bool check_pairs(struct error *error) {
    const char *uncounted = counts_only() ? find_uncounted() : NULL;
    bool is_prover = trace_options.abi == ABI_PROVER;
    const char *unproven = is_prover ? find_unproven() : NULL;
    if (uncounted)
        return error_set(error, ERROR_USAGE,
                         "--cycles alone counts instructions: with %s it needs -o FILE or a view",
                         uncounted);
    if (unproven)
        return error_set(error, ERROR_USAGE, "--abi prover knows no %s", unproven);
    if (trace_options.private_input && !is_prover)
        return error_set(error, ERROR_USAGE, "--private-input is for --abi prover");
    if (raw && request.import.profile.objects.no_demangle)
        return error_set(error, ERROR_USAGE, "--no-demangle is for names, and --raw writes none");
    if (trace_options.ecall_frames && trace_options.weight != WEIGHT_INSTRUCTIONS)
        return error_set(error, ERROR_USAGE,
                         "--ecall-frames: a system call has instructions, and no other --weight");
    return true;
}

static bool check_usage(int *status) {
    struct error error;
    const char *wrong = NULL;
    bool is_stream = trace_options.engine == ENGINE_STREAM;
    if (!request.operands.count && !is_stream)
        wrong = "which GUEST? A program to execute";
    else if (is_stream && request.operands.count > 1)
        wrong = "--engine stream takes no more than the ELF file with the symbols";
    else if ((raw_alias || checkpoint_alias) && !request.output)
        wrong = "--flamegraph-raw and --flamegraph-checkpoint-cycles need --flamegraph FILE";
    else if (trace_options.checkpoint && (!request.output || strcmp(request.output, "-") == 0))
        wrong = "--checkpoint needs -o FILE";
    if (!wrong && (!check_pairs(&error) || !result_check(&error)))
        wrong = error.message;
    if (wrong)
        *status = fail_usage("trace", "%s", wrong);
    return !wrong;
}

static bool settle(struct error *error) {
    bool silent = counts_only();
    bool to_output = !silent && strcmp(result_path(), "-") == 0;
    trace_options.path = request.operands.count ? request.operands.items[0] : NULL;
    trace_options.arguments = request.operands.items;
    trace_options.argument_count = request.operands.count;
    trace_options.environment = environment.items;
    trace_options.environment_count = environment.count;
    trace_options.files = files.items;
    trace_options.file_count = files.count;
    trace_options.no_stacks = silent;
    trace_options.context = &request.context;
    trace_options.output = to_output ? STDERR_FILENO : STDOUT_FILENO;
    trace_options.error_output = STDERR_FILENO;
    picture.count_name = picture.count_name ? picture.count_name : trace_unit(trace_options.weight);
    if (trace_options.engine == ENGINE_STREAM)
        trace_options.stream = input_path;
    else if (input_path && (trace_options.input = open(input_path, O_RDONLY | O_CLOEXEC)) < 0)
        return error_errno(error, input_path);
    return result_prepare(error);
}

/* What happened, in a line, and the exit status that says so. */
static int conclude(const struct trace *trace) {
    unsigned long long count = trace->instructions;
    switch (trace->end) {
    case TRACE_EXITED:
        if (trace->status)
            fprintf(stderr, "wick: the guest ended with status %d\n", trace->status);
        return trace->status;
    case TRACE_SIGNALED:
        fprintf(stderr, "wick: the guest ended with signal %d\n", trace->signal);
        return 128 + trace->signal;
    case TRACE_BUDGET:
        if (!request.quiet)
            fprintf(stderr, "wick: stopped after %llu instructions, as the budget says\n", count);
        return 0;
    case TRACE_FAULT:
        fprintf(stderr, "wick: guest fault after %llu instructions: %s\n", count, trace->fault);
        return ERROR_INPUT;
    case TRACE_INTERRUPTED:
        fprintf(stderr, "wick: interrupted after %llu instructions\n", count);
        return ERROR_INPUT;
    }
    return ERROR_INTERNAL;
}

static void say_written(const struct trace *trace) {
    if (strcmp(result_path(), "-") != 0 && !request.quiet)
        fprintf(stderr, "%s written to %s (%llu instructions)\n",
                trace->is_partial ? "Partial flamegraph" : "Flamegraph", result_path(),
                (unsigned long long)trace->instructions);
}

static int finish(struct trace *trace) {
    struct error error;
    int status = conclude(trace);
    interrupted = 0; /* it ended the guest; what was counted is still to be written */
    if (!trace_options.no_stacks) {
        if (!write_result(trace, &error))
            return fail(&error);
        say_written(trace);
    }
    if (cycles)
        fprintf(strcmp(result_path(), "-") == 0 && !trace_options.no_stacks ? stderr : stdout,
                "Cycles: %llu\n", (unsigned long long)trace->instructions);
    print_notes(&trace->notes);
    return status;
}

int command_trace(int argc, char **argv) {
    int status = 0;
    struct error error;
    struct trace trace;
    if (!options_parse(&syntax, argc, argv, &request.operands, &status) || !check_usage(&status))
        return status;
    if (!settle(&error))
        return fail(&error);
    begin_progress();
    if (!trace_run(&trace, &trace_options, trace_options.checkpoint ? write_checkpoint : NULL, NULL,
                   &error))
        return fail(&error);
    if (request.context.progress && seconds_since_start() > 1 && !request.quiet)
        fputs("\r\033[K", stderr);
    status = finish(&trace);
    trace_release(&trace);
    return status;
}
