/*
 * compat: where `perf script` and inferno do otherwise than wick, and `--compat` asks for the same bytes.
 *
 * A quirk is one such rule, named by what it does. Every options struct that needs some has a `struct quirks`; the code asks for the quirk, never
 * for the program that has it. All zero are wick's own rules, so that options which say nothing about it have none. The tables of
 * quirks.c say which program has which; a new release of one, or another program, is a new table.
 *
 * What a quirk does in detail is written where it is asked for. docs/differences.md says why wick does otherwise.
 */
#ifndef WICK_COMPAT_H
#define WICK_COMPAT_H

#include <stdbool.h>
#include <stdint.h>

struct quirks {
    /* ---- files and symbols ---- */
    bool symbols_by_arrival;       /* which one of several counts depends on their order */
    bool names_without_arguments;  /* what is demangled has no arguments */
    bool lists_stay_mangled;       /* names of kallsyms and of perf maps are not demangled */
    bool versions_stay;            /* memcpy@@GLIBC_2.14 keeps its version */
    bool loose_map_lines;          /* lines of perf maps: see object/perfmap.c */
    bool addresses_are_offsets;    /* a file's symbols are looked up by file offset */
    bool no_names_outside_modules; /* the kernel's [bpf] and [__builtin__ftrace] have no symbols */
    bool running_kernel_first;     /* the running kernel's symbols before those that were kept */
    bool symfs_hides_kernel;       /* with --symfs, no symbols of the kernel */
    bool symfs_has_cache;          /* with --symfs, the build-id cache is below it */
    bool map_beyond_symfs;         /* perf maps are read outside of --symfs, too */
    bool debuglink_beyond_symfs;   /* a debug link with an absolute path leads outside of --symfs */
    bool any_file_at_path;         /* without a build id, whatever is there now */
    bool no_packed_symbols;        /* .gnu_debugdata is not read */
    bool vdso_only_unrecorded;     /* the running vdso stands only for one without a build id */
    uint32_t plt_name_limit;       /* bytes of name@plt; 0: no limit */

    /* ---- inlined functions ---- */
    bool shortest_inline;     /* the innermost is the one with the shortest range */
    bool inlines_need_symbol; /* only where the stack was unwound and there is a symbol */
    bool addr2line_names; /* as addr2line calls them, which depends on what it was asked before */
    bool debug_name_over_symbol; /* a function goes by its name in the debug information */

    /* ---- threads and mappings ---- */
    bool threads_by_tid;      /* whatever pid a record names */
    bool forks_replace;       /* a fork onto a living tid replaces it, one of itself too */
    bool maps_survive_exec;   /* exec does not empty the address space */
    bool data_holds_code;     /* mappings that are not executable are looked into */
    bool kernel_while_mapped; /* what is beyond its mapping is the kernel's if that was mapped */
    bool narrow_vdso_by_name; /* the vdso of 32-bit processes takes any recorded id */
    bool carrier_is_unknown;  /* what the recording keeps of files is not used */

    /* ---- stacks ---- */
    bool returns_stay;             /* recorded return addresses are looked up as they are */
    bool unwound_are_lowered;      /* unwound ones are one lower from the beginning */
    bool user_before_markers;      /* addresses before any context marker are user code */
    bool strange_markers_forget;   /* an unknown context marker, or a guest's, drops the chain */
    uint32_t chain_limit;          /* recorded addresses that are looked at; 0: all */
    uint32_t unwound_limit;        /* frames that are unwound; 0: wick's own limit */
    bool unwinding_needs_stack;    /* registers alone are not unwound */
    bool keeps_recorded_user;      /* the recorded user part stays before what is unwound */
    bool slice_is_shorter;         /* the last word of the recorded stack counts as outside */
    bool lowers_like_libunwind;    /* around signals */
    bool no_mending;               /* a jump to nowhere ends the stack */
    bool no_handlers;              /* frames behind an exception's handler are not looked for */
    bool stale_link_register;      /* a leaf's caller is there where nothing better is known */
    bool no_last_leaf_caller;      /* none behind a leaf that is the chain's only address */
    bool branches_begin_at_target; /* a stack of branches begins with where the last one went */

    /* ---- samples ---- */
    bool rounds_order;   /* records that came too late are sorted by the round that brought them */
    bool reads_need_ids; /* counter groups without ids drop the samples */
    bool guests_are_dropped; /* samples of a guest */
    bool events_as_recorded; /* waits are not chosen, even if there is nothing else */
    bool
        first_sample_chooses; /* the event of the first sample in time counts, by its name before ':' */
    bool period_as_printed; /* 1 where the printed period stands too far from the event */
    bool lines_decide;      /* what can't be told from samples is told from the printed text */

    /* ---- other tools' text ---- */
    bool text_is_lossy;          /* bytes that are not UTF-8 become U+FFFD */
    bool bad_line_fails;         /* a line that can't be read is an error */
    bool formats_are_asked;      /* each format is asked in turn whether a text is its own */
    bool script_state_machine;   /* where a sample of perf's text begins and ends */
    bool samples_need_frames;    /* a sample without frames is dropped */
    bool events_are_exact;       /* cycles:u and cycles are two events */
    bool object_kinds_by_prefix; /* `[` before an object's name is the kernel */
    bool last_count_wins;        /* of a stack that is counted twice */
    bool empty_stack_counts;     /* in sample(1)'s graph */
    bool every_arrow_splits;     /* dtrace: `operator->` does, too */
    bool threads_are_frames;     /* folded text: no thread is seen in [name tid=1] */
    bool saved_is_refused;       /* a .wick file has wick's names */

    /* ---- names ---- */
    bool names_through_text; /* of frames and threads: as they are read from the printed line */
    bool names_keep_divider; /* a ';' in a name divides frames */
    bool names_follow_comm;  /* frames of comms that begin with "java" are tidied otherwise */
    bool inlines_of_unwound; /* only an unwound location shows several frames */

    /* ---- outputs ---- */
    bool collapse_options;    /* wick fold takes the options of inferno-collapse-perf */
    bool keeps_weightless;    /* stacks that weigh nothing are shown */
    bool sorts_by_stack;      /* folded text, instead of by line */
    bool folds_any_size;      /* folded text has no limit */
    bool diffs_texts;         /* two folded texts are compared line by line */
    bool brief_stream_points; /* from a pipe, frames of tracepoints are names alone */
    bool
        old_trace_formats; /* tracepoint formats as the libtraceevent of 2022 reads and prints them */
};

/* wick's own rules, perf 6.1's, and inferno 0.12.8's, which reads what perf prints and so has perf's too. */
extern const struct quirks quirks_none, quirks_perf, quirks_inferno;

/* Those of `--compat NAME`, or NULL if no such program is known. */
const struct quirks *quirks_named(const char *name);

#endif
