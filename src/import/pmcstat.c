/*
 * FreeBSD's `pmcstat -G`: a tree drawn from the leaf, each line one space further in than the function it calls.
 *
 *     @ CPU_CLK_UNHALTED_CORE [4588 samples]
 *
 *     51.42%  [2359]     lock_delay @ /boot/kernel/kernel
 *      88.09%  [2078]      __mtx_lock_sleep
 *
 * What a line has and the lines below it do not is where its stacks end: that line is their root.
 */
#include "import/reader.h"

#include <stdlib.h>

struct pmc_line {
    size_t depth;
    uint64_t samples;
    struct text name;
};

struct pmcstat {
    struct reader r;
    VECTOR(uint64_t)
    left; /* of each line on the way: its samples, less those of the lines below it */
};

static bool pmc_parse(struct text line, struct pmc_line *parsed) {
    parsed->depth = 0;
    while (parsed->depth < line.length && line.data[parsed->depth] == ' ')
        parsed->depth++;
    line = text_from(line, parsed->depth);
    size_t per_cent = text_find(line, '%'), open = text_find(line, '['),
           close = text_find(line, ']');
    double share;
    if (per_cent == SIZE_MAX || open == SIZE_MAX || close == SIZE_MAX || close < open ||
        per_cent > open || !text_to_double(text_upto(line, per_cent), &share) ||
        !text_to_u64((struct text){line.data + open + 1, close - open - 1}, &parsed->samples))
        return false;
    struct text name = text_trim(text_from(line, close + 1));
    size_t object = text_search(name, TEXT(" @ "));
    parsed->name = object == SIZE_MAX ? name : text_upto(name, object);
    return true;
}

/* Back to `depth` lines; what each had left is counted, from that line's function to the leaf. */
static void back_to(struct pmcstat *p, size_t depth) {
    while (p->left.count > depth) {
        uint64_t own = p->left.items[p->left.count - 1];
        if (own) {
            stack_reverse(&p->r.stack);
            stack_count(&p->r.stack, own, own);
            stack_reverse(&p->r.stack);
        }
        p->left.count--;
        p->r.stack.locations.count--;
    }
}

static void pmc_line(struct pmcstat *p, const struct pmc_line *line) {
    back_to(p, line->depth);
    if (p->left.count) {
        uint64_t *above = &p->left.items[p->left.count - 1];
        *above -= line->samples < *above ? line->samples : *above;
    }
    stack_push(&p->r.stack, line->name.length ? line->name : TEXT("[unknown]"));
    vector_push(&p->left, line->samples);
}

static bool pmcstat_read(struct text content, const char *path,
                         const struct import_options *options, struct tree *tree,
                         struct error *error) {
    struct pmcstat p = {0};
    reader_init(&p.r, content, path, options, tree, TEXT("samples"), error);
    while (reader_next(&p.r)) {
        struct pmc_line line;
        if (pmc_parse(p.r.line, &line) && line.depth <= p.left.count)
            pmc_line(&p, &line);
        else if (p.r.line.length && p.r.line.data[0] != '@')
            reader_bad(&p.r, "not a line of a call graph");
    }
    back_to(&p, 0);
    vector_release(&p.left);
    reader_release(&p.r);
    return true;
}

static int pmcstat_score(struct text beginning) {
    struct pmc_line parsed;
    struct lines lines = {.rest = beginning};
    struct text line;
    while (lines_next(&lines, &line)) {
        if (pmc_parse(line, &parsed))
            return 80;
        if (line.length && line.data[0] != '@')
            return 0;
    }
    return 0;
}

const struct import_format format_pmcstat = {"pmcstat", "FreeBSD's pmcstat -G", pmcstat_score,
                                             pmcstat_read};
