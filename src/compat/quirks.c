/*
 * Which program has which quirks.
 */
#include "compat/compat.h"

#include <stddef.h>
#include <string.h>

/* perf 6.1's quirks, as initializers: inferno reads what perf prints, so it has them all. */
#define PERF_QUIRKS                                                                                \
    .symbols_by_arrival = true, .names_without_arguments = true, .lists_stay_mangled = true,       \
    .versions_stay = true, .loose_map_lines = true, .addresses_are_offsets = true,                 \
    .no_names_outside_modules = true, .running_kernel_first = true, .symfs_hides_kernel = true,    \
    .symfs_has_cache = true, .map_beyond_symfs = true, .debuglink_beyond_symfs = true,             \
    .any_file_at_path = true, .no_packed_symbols = true, .vdso_only_unrecorded = true,             \
    .plt_name_limit = 1023, .shortest_inline = true, .inlines_need_symbol = true,                  \
    .addr2line_names = true, .debug_name_over_symbol = true, .threads_by_tid = true,               \
    .forks_replace = true, .maps_survive_exec = true, .data_holds_code = true,                     \
    .kernel_while_mapped = true, .narrow_vdso_by_name = true, .carrier_is_unknown = true,          \
    .returns_stay = true, .unwound_are_lowered = true, .user_before_markers = true,                \
    .strange_markers_forget = true, .chain_limit = 127, .unwound_limit = 127,                      \
    .unwinding_needs_stack = true, .keeps_recorded_user = true, .slice_is_shorter = true,          \
    .lowers_like_libunwind = true, .no_mending = true, .no_handlers = true,                        \
    .stale_link_register = true, .no_last_leaf_caller = true, .branches_begin_at_target = true,    \
    .rounds_order = true, .reads_need_ids = true, .guests_are_dropped = true,                      \
    .events_as_recorded = true, .saved_is_refused = true, .brief_stream_points = true,             \
    .old_trace_formats = true

const struct quirks quirks_none = {0};

const struct quirks quirks_perf = {PERF_QUIRKS};

const struct quirks quirks_inferno = {
    PERF_QUIRKS,
    .first_sample_chooses = true,
    .period_as_printed = true,
    .lines_decide = true,
    .text_is_lossy = true,
    .bad_line_fails = true,
    .formats_are_asked = true,
    .script_state_machine = true,
    .samples_need_frames = true,
    .events_are_exact = true,
    .object_kinds_by_prefix = true,
    .last_count_wins = true,
    .empty_stack_counts = true,
    .every_arrow_splits = true,
    .threads_are_frames = true,
    .names_through_text = true,
    .names_keep_divider = true,
    .names_follow_comm = true,
    .inlines_of_unwound = true,
    .collapse_options = true,
    .keeps_weightless = true,
    .sorts_by_stack = true,
    .folds_any_size = true,
    .diffs_texts = true,
};

const struct quirks *quirks_named(const char *name) {
    static const struct {
        const char *name;
        const struct quirks *quirks;
    } known[] = {{"inferno", &quirks_inferno}, {"perf", &quirks_perf}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].quirks;
    return NULL;
}
