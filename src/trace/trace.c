/*
 * Run a guest with the engine that fits it, and convert the counts to a tree.
 */
#include "trace/trace.h"
#include "trace/engine.h"
#include "trace/riscv/guest.h"
#include "tree/tree.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

static const struct note_kind note_unmatched = {
    "trace-unmatched-returns", "# return{|s} matched no call; {its|their} frames are a guess"};
static const struct note_kind note_dropped = {"trace-dropped-frames",
                                              "# call{|s} {has|have} no frame: the stack was too "
                                              "deep, or there were too many different stacks"};

void engine_notes(struct trace *trace, const struct flow *flow) {
    if (flow->unmatched)
        notes_add(&trace->notes, &note_unmatched, flow->unmatched, flow->unmatched_pc,
                  "at pc 0x%llx", (unsigned long long)flow->unmatched_pc);
    if (flow->dropped)
        notes_add(&trace->notes, &note_dropped, flow->dropped, 0, NULL);
}

/* ---- weights ------------------------------------------------------------------------------ */

const char *trace_unit(enum trace_weight weight) {
    static const char *const units[] = {"instructions", "accesses", "branches", "bytes loaded",
                                        "bytes stored"};
    return units[weight];
}

uint64_t trace_weigh(enum trace_weight weight, bool is_branch, uint32_t loaded, uint32_t stored) {
    switch (weight) {
    case WEIGHT_INSTRUCTIONS:
        return 1;
    case WEIGHT_ACCESSES:
        return (loaded != 0) + (stored != 0);
    case WEIGHT_BRANCHES:
        return is_branch;
    case WEIGHT_LOADED:
        return loaded;
    case WEIGHT_STORED:
        return stored;
    }
    return 0;
}

/* ---- which engine ------------------------------------------------------------------------- */

static bool has_interpreter(const struct file *file, bool is64) {
    const uint8_t *d = file->data;
    uint64_t headers = is64 ? load_u64(d + 32) : load_u32(d + 28),
             size = load_u16(d + (is64 ? 54 : 42));
    uint64_t count = load_u16(d + (is64 ? 56 : 44));
    for (uint64_t i = 0; i < count && i < 256; i++) {
        uint64_t end;
        if (!checked_add(headers, i * size + 4, &end) || end > file->size)
            return false;
        if (load_u32(d + end - 4) == PT_INTERP)
            return true;
    }
    return false;
}

/* The built-in engine for static RISC-V programs, and for files that are not ELF, because its error is the clearest. */
enum trace_engine trace_engine(const struct trace_options *options) {
    struct file file;
    enum trace_engine engine = ENGINE_BUILTIN;
    if (options->engine)
        return options->engine;
    if (options->abi == ABI_PROVER || !options->path ||
        !file_open_raw(&file, options->path, options->context, NULL))
        return ENGINE_BUILTIN;
    if (file.size >= sizeof(Elf64_Ehdr) && memcmp(file.data, ELFMAG, SELFMAG) == 0) {
        bool is64 = file.data[EI_CLASS] == ELFCLASS64;
        if (load_u16(file.data + 18) != EM_RISCV || has_interpreter(&file, is64))
            engine = ENGINE_QEMU;
    }
    file_close(&file);
    return engine;
}

/* Check for options that the engine does not support. */
static bool engine_can(enum trace_engine engine, const struct trace_options *o,
                       struct error *error) {
    const char *what = NULL;
    if (o->parallel && engine != ENGINE_QEMU)
        return error_set(error, ERROR_USAGE, "--parallel is for threads, which only QEMU supports");
    if (engine == ENGINE_BUILTIN)
        return true;
    if (o->abi == ABI_PROVER)
        what = "--abi prover";
    else if (o->ecall_frames)
        what = "--ecall-frames";
    else if (o->file_count)
        what = "--file";
    else if (o->stack_size && engine == ENGINE_STREAM)
        what = "--stack-size";
    else if (o->memory_size)
        what = "--memory-size";
    else if (o->misaligned)
        what = "--misaligned";
    else if (engine == ENGINE_STREAM && o->environment_count)
        what = "--env";
    else if (engine == ENGINE_STREAM && o->weight != WEIGHT_INSTRUCTIONS)
        what = "--weight";
    if (!what)
        return true;
    return error_set(error, ERROR_USAGE,
                     engine == ENGINE_STREAM
                         ? "%s: not supported with a stream"
                         : "%s: only the built-in engine, for static RISC-V programs, supports it",
                     what);
}

static bool engine_run(struct trace *trace, const struct trace_options *options,
                       trace_checkpoint *checkpoint, void *context, struct error *error) {
    switch (trace->engine) {
    case ENGINE_QEMU:
        return engine_qemu(trace, options, checkpoint, context, error);
    case ENGINE_STREAM:
        return engine_stream(trace, options, checkpoint, context, error);
    default:
        return engine_riscv(trace, options, checkpoint, context, error);
    }
}

bool trace_run(struct trace *trace, const struct trace_options *options,
               trace_checkpoint *checkpoint, void *context, struct error *error) {
    memset(trace, 0, sizeof *trace);
    trace->functions = functions_new();
    trace->abi = options->abi;
    trace->weight = options->weight;
    trace->engine = trace_engine(options);
    if (engine_can(trace->engine, options, error) &&
        engine_run(trace, options, checkpoint, context, error))
        return true;
    trace_release(trace);
    return false;
}

void trace_release(struct trace *trace) {
    trie_release(&trace->trie);
    functions_free(trace->functions);
    notes_release(&trace->notes);
    memset(trace, 0, sizeof *trace);
}
