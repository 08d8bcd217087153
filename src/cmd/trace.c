/*
 * wick trace: run a guest and write the counts: at the end, every given number of instructions, and if the run is cut
 * short.
 */
#include "cmd/confine.h"
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

struct trace_command {
    struct result_request result;
    struct trace_options options;
    bool raw, cycles, raw_alias, checkpoint_alias;
    const char *input_path;
    text_list environment;
    VECTOR(struct trace_file) files;
    struct timespec started;
};

static bool set_engine(void *command, const char *value, struct error *error) {
    struct trace_command *c = command;
    static const char *const names[] = {"auto", "builtin", "qemu", "stream"};
    return choose(value, names, COUNT_OF(names), &c->options.engine, error);
}

static bool set_abi(void *command, const char *value, struct error *error) {
    struct trace_command *c = command;
    static const char *const names[] = {"linux", "prover"};
    return choose(value, names, COUNT_OF(names), &c->options.abi, error);
}

static bool set_weight(void *command, const char *value, struct error *error) {
    struct trace_command *c = command;
    static const char *const names[] = {"instructions", "accesses", "branches", "loaded", "stored"};
    return choose(value, names, COUNT_OF(names), &c->options.weight, error);
}

static bool add_file(void *command, const char *value, struct error *error) {
    struct trace_command *c = command;
    const char *equals = strchr(value, '=');
    const char *guest = equals ? arena_copy(&c->result.p.request.arena,
                                            (struct text){value, (size_t)(equals - value)})
                                     .data
                               : value;
    vector_push(&c->files, ((struct trace_file){guest, equals ? equals + 1 : value}));
    return true;
}

static bool set_raw_alias(void *command, const char *value, struct error *error) {
    struct trace_command *c = command;
    c->raw = c->raw_alias = true;
    return true;
}

static bool set_checkpoint_alias(void *command, const char *value, struct error *error) {
    struct trace_command *c = command;
    c->checkpoint_alias = true;
    if (text_to_u64(text_of(value), &c->options.checkpoint) && c->options.checkpoint)
        return true;
    return error_set(error, ERROR_USAGE, "'%s' is not a number above 0", value);
}

static bool set_misaligned(void *command, const char *value, struct error *error) {
    struct trace_command *c = command;
    static const char *const names[] = {"fault", "allow"};
    unsigned choice = 0;
    bool known = choose(value, names, COUNT_OF(names), &choice, error);
    c->options.misaligned = choice ? MISALIGNED_ALLOW : MISALIGNED_FAULT;
    return known;
}

#define HERE(member) IN(struct trace_command, member)
static const struct option options_run[] = {
    {"engine", 0, OPTION_CALL, CALL(set_engine), "ENGINE",
     "auto (default: by the file), builtin (RISC-V), qemu, or stream", "auto builtin qemu stream"},
    {"budget", 0, OPTION_COUNT64, HERE(options.budget), "N", "stop after exactly N instructions"},
    {"checkpoint", 0, OPTION_COUNT64, HERE(options.checkpoint), "N",
     "publish what was counted so far every N instructions"},
    {"cycles", 0, OPTION_FLAG, HERE(cycles), NULL,
     "print the number of instructions; without -o print nothing else"},
    {"weight", 0, OPTION_CALL, CALL(set_weight), "WHAT",
     "count instructions (default), accesses, branches, or bytes loaded or stored",
     "instructions accesses branches loaded stored"},
    {"parallel", 0, OPTION_FLAG, HERE(options.parallel), NULL,
     "QEMU: run threads in parallel; faster, but their order differs from run to run"},
    {0},
};

static const struct option options_guest[] = {
    {"abi", 0, OPTION_CALL, CALL(set_abi), "ABI",
     "linux (default), or prover: print, panic, commit, halt", "linux prover"},
    {"private-input", 0, OPTION_TEXT, HERE(options.private_input), "FILE",
     "prover: input at 0xff000000, preceded by its length in four bytes"},
    {"file", 0, OPTION_CALL, CALL(add_file), "PATH[=FILE]",
     "let the guest open PATH, which is FILE here; may be repeated"},
    {"stdin", 0, OPTION_TEXT, HERE(input_path), "FILE",
     "the guest's standard input; with --engine stream, the stream"},
    {"env", 0, OPTION_LIST, HERE(environment), "NAME=VALUE",
     "add to the guest's environment (default: empty); may be repeated"},
    {"stack-size", 0, OPTION_COUNT64, HERE(options.stack_size), "BYTES",
     "size of the guest's stack (default: 1 GiB; with QEMU, ulimit -s)"},
    {"memory-size", 0, OPTION_COUNT64, HERE(options.memory_size), "BYTES",
     "size of the guest's memory (default: 4 GiB)"},
    {"misaligned", 0, OPTION_CALL, CALL(set_misaligned), "WHAT",
     "misaligned loads and stores: fault (default) or allow", "fault allow"},
    {0},
};

static const struct option options_counted[] = {
    {"raw", 0, OPTION_FLAG, HERE(raw), NULL, "write addresses instead of names, for wick enrich"},
    {"ecall-frames", 0, OPTION_FLAG, HERE(options.ecall_frames), NULL,
     "show system calls as frames, such as ecall:write"},
    {"no-demangle", 0, OPTION_FLAG, ASKED(import.profile.objects.no_demangle), NULL,
     "do not demangle C++, Rust and D names"},
    {"output", 'o', OPTION_TEXT, ASKED(output), "FILE", "write to FILE (- for standard output)"},
    {"quiet", 'q', OPTION_FLAG, ASKED(quiet), NULL, "print no notes and no progress"},
    OPTION_NO_SANDBOX,
    {0},
};

static const struct option options_alias[] = {
    {"flamegraph", 0, OPTION_TEXT, ASKED(output), "FILE", "-o FILE"},
    {"flamegraph-raw", 0, OPTION_CALL, CALL(set_raw_alias), NULL, "--raw"},
    {"flamegraph-checkpoint-cycles", 0, OPTION_CALL, CALL(set_checkpoint_alias), "N",
     "--checkpoint N"},
    {"cycle-budget", 0, OPTION_COUNT64, HERE(options.budget), "N", "--budget N"},
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
    "Run a guest program, follow every call, return and tail call, and count every instruction "
    "on\nits exact stack. The same program with the same input gives the same counts. The "
    "guest's\noutput goes to standard output, or to standard error if the result goes there.",
    groups,
    .examples = "wick trace ./guest                             # folded stacks, exact counts\n"
                "wick trace --svg -o counts.svg ./guest input\n"
                "wick trace --cycles ./guest",
    .common = "output budget cycles weight as svg html table stdin file engine",
    .takes_command = true,
};

/* ---- output ------------------------------------------------------------------------------- */

/* A partial result says so in every view: by a root frame [partial], and a line below the title. */
static bool write_result(struct trace_command *c, const struct trace *trace, struct error *error) {
    struct notes notes = {0};
    struct tree *tree =
        trace_tree(trace, c->raw, c->result.p.request.import.profile.objects.no_demangle);
    const char *subtitle = c->result.p.svg.subtitle;
    if (trace->is_partial && !subtitle)
        c->result.p.svg.subtitle = "partial";
    notes_merge(&notes, &trace->notes);
    notes_sort(&notes);
    bool fine = result_write(&c->result, tree, &notes, error);
    c->result.p.svg.subtitle = subtitle;
    notes_release(&notes);
    tree_free(tree);
    return fine;
}

/* A checkpoint that can't be written is only a warning. */
static void write_checkpoint(void *context, const struct trace *trace) {
    struct error error;
    if (!write_result(context, trace, &error))
        say_line("checkpoint: %s", error.message);
}

/* ---- progress: instructions a second, besides what all commands show ---------------------- */

static double seconds_since_start(const struct trace_command *c) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - c->started.tv_sec) +
           (double)(now.tv_nsec - c->started.tv_nsec) / 1e9;
}

static void show_instructions(void *user, const char *what, uint64_t done, uint64_t total) {
    double seconds = seconds_since_start(user);
    if (seconds < 1)
        return;
    fprintf(stderr, "\r\033[Kwick: %llu million instructions, %.0f million a second",
            (unsigned long long)(done / 1000000), (double)done / seconds / 1e6);
    if (total)
        fprintf(stderr, ", %u %%", (unsigned)((double)done * 100 / (double)total));
}

/* ---- the command -------------------------------------------------------------------------- */

static void begin_progress(struct trace_command *c) {
    struct context *context = &c->result.p.request.context;
    clock_gettime(CLOCK_MONOTONIC, &c->started);
    if (context->progress) { /* it is going to be shown */
        context->progress = show_instructions;
        context->user = c;
    }
}

/* Only the count is requested: stacks are not tracked, and only the count is written. */
static bool counts_only(const struct trace_command *c) {
    return c->cycles && !c->result.p.request.output && !c->result.chosen;
}

/* Return an option that has no effect if only the count is requested. */
static const char *find_uncounted(const struct trace_command *c) {
    return c->raw                                                   ? "--raw"
           : c->options.weight != WEIGHT_INSTRUCTIONS               ? "--weight"
           : c->options.ecall_frames                                ? "--ecall-frames"
           : c->result.p.request.import.profile.objects.no_demangle ? "--no-demangle"
           : c->result.p.request.flame.max_depth                    ? "--max-depth"
           : c->result.p.request.flame.reverse                      ? "--reverse"
                                                                    : NULL;
}

static const char *find_unproven(const struct trace_command *c) {
    return c->result.p.request.operands.count > 1 ? "arguments"
           : c->files.count                       ? "--file"
           : c->environment.count                 ? "--env"
           : c->input_path                        ? "--stdin"
                                                  : NULL;
}

/* An option that has no effect with the others is an error. */
static bool check_pairs(const struct trace_command *c, struct error *error) {
    const char *uncounted = counts_only(c) ? find_uncounted(c) : NULL;
    bool is_prover = c->options.abi == ABI_PROVER;
    const char *unproven = is_prover ? find_unproven(c) : NULL;
    if (uncounted)
        return error_set(error, ERROR_USAGE,
                         "--cycles alone counts instructions: with %s it needs -o FILE or a view",
                         uncounted);
    if (unproven)
        return error_set(error, ERROR_USAGE, "--abi prover does not support %s", unproven);
    if (c->options.private_input && !is_prover)
        return error_set(error, ERROR_USAGE, "--private-input is for --abi prover");
    if (c->raw && c->result.p.request.import.profile.objects.no_demangle)
        return error_set(error, ERROR_USAGE, "--no-demangle is for names, and --raw writes none");
    if (c->options.ecall_frames && c->options.weight != WEIGHT_INSTRUCTIONS)
        return error_set(error, ERROR_USAGE,
                         "--ecall-frames: a system call has instructions, and no other --weight");
    return true;
}

static bool check_usage(const struct trace_command *c, int *status) {
    struct error error;
    const char *wrong = NULL;
    bool is_stream = c->options.engine == ENGINE_STREAM;
    if (!c->result.p.request.operands.count && !is_stream)
        wrong = "a GUEST program is needed";
    else if (is_stream && c->result.p.request.operands.count > 1)
        wrong = "--engine stream takes no more than the ELF file with the symbols";
    else if ((c->raw_alias || c->checkpoint_alias) && !c->result.p.request.output)
        wrong = "--flamegraph-raw and --flamegraph-checkpoint-cycles need --flamegraph FILE";
    else if (c->options.checkpoint &&
             (!c->result.p.request.output || strcmp(c->result.p.request.output, "-") == 0))
        wrong = "--checkpoint needs -o FILE";
    if (!wrong && (!check_pairs(c, &error) || !result_check(&c->result, &error)))
        wrong = error.message;
    if (wrong)
        *status = fail_usage("trace", "%s", wrong);
    return !wrong;
}

static bool settle(struct trace_command *c, struct error *error) {
    bool silent = counts_only(c);
    bool to_output = !silent && strcmp(result_path(&c->result), "-") == 0;
    c->options.path =
        c->result.p.request.operands.count ? c->result.p.request.operands.items[0] : NULL;
    c->options.arguments = c->result.p.request.operands.items;
    c->options.argument_count = c->result.p.request.operands.count;
    c->options.environment = c->environment.items;
    c->options.environment_count = c->environment.count;
    c->options.files = c->files.items;
    c->options.file_count = c->files.count;
    c->options.no_stacks = silent;
    c->options.context = &c->result.p.request.context;
    c->options.output = to_output ? STDERR_FILENO : STDOUT_FILENO;
    c->options.error_output = STDERR_FILENO;
    c->result.p.svg.count_name =
        c->result.p.svg.count_name ? c->result.p.svg.count_name : trace_unit(c->options.weight);
    if (c->options.engine == ENGINE_STREAM)
        c->options.stream = c->input_path;
    else if (c->input_path && (c->options.input = open(c->input_path, O_RDONLY | O_CLOEXEC)) < 0)
        return error_errno(error, c->input_path);
    return result_prepare(&c->result, error);
}

/* The guest gets only the files that were given to it. */
static bool confine_trace(struct trace_command *c, struct error *error) {
    text_list files = {0};
    for (size_t i = 0; i < c->files.count; i++)
        vector_push(&files, c->files.items[i].host);
    struct confine_more more = {.read = files.items, .read_count = files.count, .any_memory = true};
    const char *output = counts_only(c) ? NULL : result_path(&c->result);
    bool fine = confine(&c->result.p.request, output, &more, error);
    vector_release(&files);
    return fine;
}

/* Print what happened in one line, and return the matching exit status. */
static int conclude(const struct trace_command *c, const struct trace *trace) {
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
        if (!c->result.p.request.quiet)
            fprintf(stderr, "wick: stopped after %llu instructions (--budget)\n", count);
        return 0;
    case TRACE_FAULT:
        say_line("guest fault after %llu instructions: %s", count, trace->fault);
        return ERROR_INPUT;
    case TRACE_INTERRUPTED:
        fprintf(stderr, "wick: interrupted after %llu instructions\n", count);
        return ERROR_INPUT;
    }
    return ERROR_INTERNAL;
}

static void say_written(const struct trace_command *c, const struct trace *trace) {
    if (strcmp(result_path(&c->result), "-") != 0 && !c->result.p.request.quiet)
        fprintf(stderr, "%s written to %s (%llu instructions)\n",
                trace->is_partial ? "Partial flamegraph" : "Flamegraph", result_path(&c->result),
                (unsigned long long)trace->instructions);
}

static int finish(struct trace_command *c, struct trace *trace) {
    struct error error;
    int status = conclude(c, trace);
    interrupted = 0; /* the interrupt ended the guest; the counts must still be written */
    if (!c->options.no_stacks) {
        if (!write_result(c, trace, &error))
            return fail(&error);
        say_written(c, trace);
    }
    if (c->cycles)
        fprintf(strcmp(result_path(&c->result), "-") == 0 && !c->options.no_stacks ? stderr
                                                                                   : stdout,
                "Cycles: %llu\n", (unsigned long long)trace->instructions);
    print_notes(&c->result.p.request, &trace->notes);
    return status;
}

static int run(void *command, int argc, char **argv) {
    struct trace_command *c = command;
    result_begin(&c->result);
    int status = 0;
    struct error error;
    struct trace trace;
    if (!options_parse(&syntax, c, argc, argv, &status) || !check_usage(c, &status))
        return status;
    if (!settle(c, &error))
        return fail(&error);
    begin_progress(c);
    bool starts = trace_engine(&c->options) == ENGINE_QEMU; /* not possible when confined */
    if (!starts && !confine_trace(c, &error))
        return fail(&error);
    if (!trace_run(&trace, &c->options, c->options.checkpoint ? write_checkpoint : NULL, c, &error))
        return fail(&error);
    if (c->result.p.request.context.progress && seconds_since_start(c) > 1)
        fputs("\r\033[K", stderr);
    status = confine_trace(c, &error) ? finish(c, &trace) : fail(&error);
    trace_release(&trace);
    return status;
}

static void release(void *command) {
    struct trace_command *c = command;
    vector_release(&c->files);
    picture_release(command);
}

const struct command command_trace = {"trace",
                                      "count a guest program's instructions exactly",
                                      sizeof(struct trace_command),
                                      run,
                                      release,
                                      .gentle = 1,
                                      .group = GROUP_RECORD};
