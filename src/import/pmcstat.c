/*
 * FreeBSD's `pmcstat -G`: a tree drawn from the leaf, each line one space further in than the function it calls.
 *
 *     @ CPU_CLK_UNHALTED_CORE [4588 samples]
 *
 * Samples that a line has and the lines below it do not are those of stacks that end there: that line is their root.
 *
 * What a line has and the lines below it do not is where its stacks end: that line is their root.
 */
#include "import/reader.h"

#include <stdlib.h>

static const struct note_kind note_other_graphs = {
    "other-events",
    "# call graph{|s} of other events {was|were} dropped; --event NAME counts {it|them}"};

struct pmc_line {
    size_t depth;
    uint64_t samples;
    struct text name;
    struct text object; /* none: as in the previous line */
};

struct pmcstat {
    struct reader r;
    uint32_t first;  /* the event that is counted if none was selected */
    bool skip;       /* under an event that is not counted */
    uint32_t object; /* event of the following lines */
    uint32_t kinds;
    /* For each line on the path: its samples, minus those of the lines below it. */
    VECTOR(uint64_t) left;
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
    parsed->object = object == SIZE_MAX ? TEXT("") : text_from(name, object + 3);
    return true;
}

/* Go back to `depth` lines; count what each has left, from that line's function to the leaf. */
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

/* The kernel and its modules are in /boot; any other object that is not the program is a library. */
static void set_object(struct pmcstat *p, struct text path) {
    if (path.length == 0)
        return;
    p->object = object_named(p->r.tree, path);
    p->kinds = text_starts(path, TEXT("/boot/"))            ? KIND_KERNEL
               : text_search(path, TEXT(".so")) != SIZE_MAX ? KIND_LIBRARY
                                                            : 0;
}

static void pmc_line(struct pmcstat *p, const struct pmc_line *line) {
    back_to(p, line->depth);
    if (p->left.count) {
        uint64_t *above = &p->left.items[p->left.count - 1];
        *above -= line->samples < *above ? line->samples : *above;
    }
    set_object(p, line->object);
    struct text name = line->name.length ? line->name : TEXT("[unknown]");
    struct location location = {.function = tree_name_function(p->r.tree, name),
                                .object = p->object,
                                .kinds = (uint8_t)p->kinds};
    vector_push(&p->r.stack.locations, tree_add_location(p->r.tree, &location));
    vector_push(&p->left, line->samples);
}

/* "@ CPU_CLK_UNHALTED_CORE [4588 samples]": the following lines belong to another event. The first one counts if none
   was selected. */
static void pmc_event(struct pmcstat *p, struct text line) {
    struct text name = text_trim(text_from(line, 1));
    size_t open = text_search(name, TEXT(" ["));
    const struct filter *filter = &p->r.options->profile.filter;
    back_to(p, 0);
    name = open == SIZE_MAX ? name : text_upto(name, open);
    struct series series = p->r.tree->series.items[p->r.stack.series];
    series.event = event_named(p->r.tree, name, TEXT("samples"), EVENT_HARDWARE);
    if (!p->first)
        p->first = series.event;
    p->skip = filter->event_count ? !filter_event(filter, name) : series.event != p->first;
    p->r.stack.series = tree_add_series(p->r.tree, &series);
    if (p->skip)
        notes_add(&p->r.tree->notes, &note_other_graphs, 1, p->r.lines.number, "%.*s",
                  TEXT_ARGS(name));
}

static bool pmcstat_read(struct text content, const char *path,
                         const struct import_options *options, struct tree *tree,
                         struct error *error) {
    struct pmcstat p = {0};
    reader_init(&p.r, content, path, options, tree, TEXT("samples"), error);
    while (reader_next(&p.r)) {
        struct pmc_line line;
        if (text_starts(p.r.line, TEXT("@ ")))
            pmc_event(&p, p.r.line);
        else if (p.skip)
            continue;
        else if (pmc_parse(p.r.line, &line) && line.depth <= p.left.count)
            pmc_line(&p, &line);
        else if (p.r.line.length && p.r.line.data[0] != '#')
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
    bool begun = false; /* with the headline of an event, behind which comments may stand */
    while (lines_next(&lines, &line)) {
        if (pmc_parse(line, &parsed))
            return 80;
        begun |= text_starts(line, TEXT("@ ")) && text_ends(line, TEXT(" samples]"));
        if (line.length && line.data[0] != '@' && !begun)
            return 0;
    }
    return 0;
}

const struct import_format format_pmcstat = {"pmcstat", "FreeBSD's pmcstat -G", pmcstat_score,
                                             pmcstat_read, TELLS_EVENTS};
