/*
 * compat: the rules of `perf script` and inferno that differ from wick's, for `--compat`.
 *
 * A quirk is one such rule, named after what it does. Every options struct that needs quirks has a `struct quirks`;
 * code tests for a quirk, never for the program that has it. All zero means wick's own rules. The tables in
 * quirks.c list each program's quirks; a new release or another program is a new table.
 *
 * The details of a quirk are documented where it is tested. docs/differences.md says why wick differs.
 */
#ifndef WICK_COMPAT_H
#define WICK_COMPAT_H

#include <stdbool.h>
#include <stdint.h>

struct quirks {
    /* ---- files and symbols ---- */
    bool symbols_by_arrival;       /* of several symbols at an address, their order decides */
    bool names_without_arguments;  /* demangled names have no arguments */
    bool lists_stay_mangled;       /* names of kallsyms and of perf maps are not demangled */
    bool versions_stay;            /* memcpy@@GLIBC_2.14 keeps its version */
    bool loose_map_lines;          /* lines of perf maps: see object/perfmap.c */
    bool addresses_are_offsets;    /* a file's symbols are looked up by file offset */
    bool no_names_outside_modules; /* the kernel's [bpf] and [__builtin__ftrace] have no symbols */
    bool running_kernel_first;     /* prefer the running kernel's symbols to kept ones */
    bool symfs_hides_kernel;       /* with --symfs, no kernel symbols */
    bool symfs_has_cache;          /* with --symfs, the build-id cache is below it */
    bool map_beyond_symfs;         /* perf maps are read outside of --symfs, too */
    bool debuglink_beyond_symfs;   /* a debug link with an absolute path leads outside of --symfs */
    bool any_file_at_path;         /* without a build id, use the file that is there now */
    bool no_packed_symbols;        /* .gnu_debugdata is not read */
    bool vdso_only_unrecorded;     /* use the running vdso only for one without a build id */
    uint32_t plt_name_limit;       /* bytes of name@plt; 0: no limit */

    /* ---- inlined functions ---- */
    bool shortest_inline;        /* the innermost is the one with the shortest range */
    bool inlines_need_symbol;    /* only where the stack was unwound and there is a symbol */
    bool addr2line_names;        /* names as from addr2line, which depend on earlier lookups */
    bool debug_name_over_symbol; /* a function goes by its name in the debug information */

    /* ---- threads and mappings ---- */
    bool threads_by_tid;      /* ignore the pid in records */
    bool forks_replace;       /* a fork onto a living tid replaces it, one of itself too */
    bool maps_survive_exec;   /* exec does not empty the address space */
    bool data_holds_code;     /* look up addresses in non-executable mappings, too */
    bool kernel_while_mapped; /* addresses beyond its mapping are the kernel's if it was mapped */
    bool narrow_vdso_by_name; /* the vdso of 32-bit processes takes any recorded id */
    bool carrier_is_unknown;  /* files kept in the recording are not used */

    /* ---- stacks ---- */
    bool returns_stay;             /* recorded return addresses are looked up as they are */
    bool unwound_are_lowered;      /* unwound ones are one lower from the beginning */
    bool user_before_markers;      /* addresses before any context marker are user code */
    bool strange_markers_forget;   /* an unknown context marker, or a guest's, drops the chain */
    uint32_t chain_limit;          /* most recorded addresses used; 0: all */
    uint32_t unwound_limit;        /* most frames unwound; 0: wick's own limit */
    bool unwinding_needs_stack;    /* registers alone are not unwound */
    bool keeps_recorded_user;      /* the recorded user part stays before what is unwound */
    bool slice_is_shorter;         /* the last word of the recorded stack counts as outside */
    bool lowers_like_libunwind;    /* around signals */
    bool no_mending;               /* a jump to nowhere ends the stack */
    bool no_handlers;              /* do not search for the frame of an exception handler */
    bool stale_link_register;      /* use a leaf's link register even if it may be stale */
    bool no_last_leaf_caller;      /* none behind a leaf that is the chain's only address */
    bool branches_begin_at_target; /* a branch stack begins at the target of the last branch */

    /* ---- samples ---- */
    bool rounds_order;       /* late records are sorted by their flush round */
    bool reads_need_ids;     /* counter groups without ids drop the samples */
    bool guests_are_dropped; /* samples of a guest */
    bool events_as_recorded; /* do not show waits by default, even if there is nothing else */
    bool
        first_sample_chooses; /* the event of the first sample in time counts, by its name before ':' */
    bool period_as_printed; /* 1 if the printed period is too far from the event */
    bool lines_decide;      /* decide by the printed text what samples leave open */

    /* ---- other tools' text ---- */
    bool text_is_lossy;          /* bytes that are not UTF-8 become U+FFFD */
    bool bad_line_fails;         /* a line that can't be read is an error */
    bool formats_are_asked;      /* detect the format by trying each in turn */
    bool script_state_machine;   /* where a sample of perf's text begins and ends */
    bool samples_need_frames;    /* a sample without frames is dropped */
    bool events_are_exact;       /* cycles:u and cycles are two events */
    bool object_kinds_by_prefix; /* `[` before an object's name is the kernel */
    bool last_count_wins;        /* if a stack is listed twice */
    bool empty_stack_counts;     /* in sample(1)'s graph */
    bool every_arrow_splits;     /* dtrace: `operator->` does, too */
    bool threads_are_frames;     /* folded text: [name tid=1] is a frame, not a thread */
    bool saved_is_refused;       /* refuse .wick files, which have wick's names */

    /* ---- names ---- */
    bool names_through_text; /* frame and thread names as read back from the printed line */
    bool names_keep_divider; /* a ';' in a name divides frames */
    bool names_follow_comm;  /* frames of comms that begin with "java" are cleaned differently */
    bool inlines_of_unwound; /* only an unwound location shows several frames */

    /* ---- outputs ---- */
    bool collapse_options;    /* wick fold takes the options of inferno-collapse-perf */
    bool keeps_weightless;    /* stacks of weight 0 are shown */
    bool sorts_by_stack;      /* folded text, instead of by line */
    bool folds_any_size;      /* folded text has no limit */
    bool diffs_texts;         /* two folded texts are compared line by line */
    bool brief_stream_points; /* from a pipe, frames of tracepoints are only names */
    bool
        old_trace_formats; /* tracepoint formats as the libtraceevent of 2022 reads and prints them */
};

/* The rules of wick, of perf 6.1, and of inferno 0.12.8, which reads perf's output and so includes perf's. */
extern const struct quirks quirks_none, quirks_perf, quirks_inferno;

/* Return the quirks of `--compat NAME`, or NULL if NAME is unknown. */
const struct quirks *quirks_named(const char *name);

#endif
