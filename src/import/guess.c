/*
 * Which format inferno-collapse-guess would choose: it reads ten more lines at a time and asks each format in turn
 * whether it is sure by now. wick's own import_guess() looks at the beginning once and takes the best score.
 */
#include "import/reader.h"

static const struct {
    enum applicable (*ask)(struct text text);
    const struct import_format *format;
} candidates[] = {
    {perf_applicable, &format_perf},       {dtrace_applicable, &format_dtrace},
    {sample_applicable, &format_sample},   {vtune_applicable, &format_vtune},
    {vsprof_applicable, &format_vsprof},   {ghcprof_applicable, &format_ghcprof},
    {xctrace_applicable, &format_xctrace},
};

/* Each round looks at all lines so far, so beyond the first thousand the steps grow. */
const struct import_format *guess_as_inferno(struct text content) {
    bool out[COUNT_OF(candidates)] = {0};
    struct lines lines = {.rest = content};
    struct text line;
    for (bool more = true; more;) {
        uint64_t step = lines.number < 1000 ? 10 : lines.number;
        for (uint64_t i = 0; i < step && more; i++)
            more = lines_next(&lines, &line);
        struct text read = text_upto(content, (size_t)(lines.rest.data - content.data));
        for (size_t i = 0; i < COUNT_OF(candidates); i++) {
            enum applicable answer = out[i] ? APPLICABLE_NO : candidates[i].ask(read);
            if (answer == APPLICABLE_YES)
                return candidates[i].format;
            out[i] = answer == APPLICABLE_NO;
        }
    }
    return NULL;
}
