/*
 * What a run says about memory, in plain words: how much was allocated, the peak and when it was, what was never freed, and by which
 * functions.
 *
 * A site is the function that wanted the memory: the first function from the leaf whose name is not an allocator's.
 */
#include "run/internal.h"

#include <math.h>
#include <stdlib.h>

#include "view/view.h"

enum { SITE_ROWS = 10 };

struct site {
    uint32_t name; /* string */
    uint64_t bytes, samples;
};

/* "12.3 MB", because "1,234" would need a locale. */
static void add_bytes(struct buffer *text, uint64_t bytes) {
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    double shown = (double)bytes;
    size_t unit = 0;
    for (; shown >= 1000 && unit + 1 < COUNT_OF(units); unit++)
        shown /= 1000;
    buffer_printf(text, unit ? "%.2f %s" : "%.0f %s", shown, units[unit]);
}

/* The count is less certain than the bytes: a small block is sampled seldom and then stands for many. */
static double error_of(uint64_t sum, double variance) {
    return sum ? 100 * sqrt(variance) / (double)sum : 0;
}

static void add_sum(struct buffer *text, const char *what, const struct heap_sum *sum, bool exact) {
    buffer_printf(text, "  %-28s ", what);
    add_bytes(text, sum->bytes);
    counted_print(text, " in # block{|s}", sum->count);
    if (!exact && sum->samples) {
        counted_print(text, " (# sample{|s}: ", sum->samples);
        buffer_printf(text, "bytes ± %.1f %%, blocks ± %.1f %%)",
                      error_of(sum->bytes, sum->variance),
                      error_of(sum->count, sum->count_variance));
    }
    buffer_add_char(text, '\n');
}

static void add_totals(struct buffer *text, const struct heap_facts *facts) {
    bool exact = facts->mean == 1;
    buffer_add(text, TEXT("\nMemory\n"));
    add_sum(text, "allocated in all:", &facts->allocated, exact);
    add_sum(text, "alive at the peak:", &facts->peak, exact);
    buffer_printf(text, "  %-28s %.3f s after the first allocation, of %.3f s\n",
                  "the peak was:", (double)(facts->peak_time - facts->first) / 1e9,
                  (double)(facts->last - facts->first) / 1e9);
    add_sum(text, "never freed:", &facts->live, exact);
    add_sum(text, "freed within a millisecond:", &facts->temporary, exact);
    if (exact)
        buffer_add(text, TEXT("  Every allocation was recorded, so these numbers are exact.\n"));
    else
        buffer_printf(
            text,
            "  One allocation in about %llu bytes was recorded, and represents those that were "
            "not; ± is one standard error.\n  Blocks of that size or larger are all recorded. A "
            "peak of sampled numbers is rather too high than too low.\n",
            (unsigned long long)facts->mean);
}

void run_add_lifetimes(struct buffer *text, const uint64_t amounts[HEAP_LIFETIMES + 1],
                       bool in_bytes) {
    enum { BAR = 40, WIDEST = 15 };
    uint64_t total = 0;
    for (size_t i = 0; i <= HEAP_LIFETIMES; i++)
        total = saturating_add(total, amounts[i]);
    buffer_printf(text, "%12s %8s  lifetime\n", in_bytes ? "bytes" : "blocks", "share");
    for (size_t i = 0; i <= HEAP_LIFETIMES; i++) {
        struct buffer amount = {0};
        double share = total ? (double)amounts[i] / (double)total : 0;
        if (!amounts[i])
            continue;
        if (in_bytes)
            add_bytes(&amount, amounts[i]);
        else
            buffer_printf(&amount, "%llu", (unsigned long long)amounts[i]);
        /* "µ" has two bytes and one column */
        buffer_printf(text, "%12.*s %6.2f %%  %-*s ", TEXT_ARGS(buffer_text(&amount)), 100 * share,
                      i < 3 ? WIDEST + 1 : WIDEST, heap_lifetimes[i]);
        for (int k = 0; k < (int)(share * BAR + 0.5); k++)
            buffer_add(text, TEXT("█"));
        while (text->count && text->items[text->count - 1] == ' ')
            text->count--;
        buffer_add_char(text, '\n');
        buffer_release(&amount);
    }
}

static void add_lifetimes(struct buffer *text, const struct heap_facts *facts) {
    uint64_t bytes[HEAP_LIFETIMES + 1] = {0}, total = 0;
    for (size_t i = 0; i < HEAP_LIFETIMES; i++)
        total = saturating_add(total, bytes[i] = facts->lifetimes[i].bytes);
    if (!total)
        return;
    buffer_add(text, TEXT("\nLifetimes of freed blocks\n"));
    run_add_lifetimes(text, bytes, true);
}

void run_answer_memory(struct run *run, const struct heap_facts *facts) {
    add_totals(&run->answer, facts);
    add_lifetimes(&run->answer, facts);
    add_totals(&run->told, facts);
}

/* ---- sites ---- */

static struct text site_of(const struct flame *flame, uint32_t node) {
    uint32_t at = node;
    while (flame->nodes.items[at].parent && name_is_allocating(flame_name(flame, at)))
        at = flame->nodes.items[at].parent;
    return flame_name(flame, at);
}

typedef VECTOR(struct site) site_list;

static struct site *site_at(site_list *sites, struct strings *names, struct text name) {
    uint32_t id = strings_add(names, name);
    while (sites->count < id) {
        struct site site = {.name = (uint32_t)sites->count + 1};
        vector_push(sites, site);
    }
    return &sites->items[id - 1];
}

static int site_order(const void *a, const void *b) {
    const struct site *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static void add_row(struct buffer *text, const struct strings *names, const struct site *site,
                    uint64_t total, const struct tree *tree) {
    struct buffer bytes = {0};
    add_bytes(&bytes, site->bytes);
    buffer_printf(text, "%12.*s %6.2f %%  ", TEXT_ARGS(buffer_text(&bytes)),
                  100.0 * (double)site->bytes / (double)total);
    if (tree->is_estimated)
        buffer_printf(text, "%7llu  ± %3.0f %%  ", (unsigned long long)site->samples,
                      estimate_error(site->samples, site->bytes, tree->deviation));
    buffer_add_shown(text, strings_get(names, site->name));
    buffer_add_char(text, '\n');
    buffer_release(&bytes);
}

static void add_sites(struct buffer *text, const char *title, const struct strings *names,
                      const site_list *sites, uint64_t total, const struct tree *tree) {
    bool exact = !tree->is_estimated;
    buffer_printf(
        text, exact ? "\n%s\n%12s %8s  function\n" : "\n%s\n%12s %8s  samples  at most  function\n",
        title, "bytes", "share");
    for (size_t i = 0; i < sites->count && i < SITE_ROWS && sites->items[i].bytes; i++)
        add_row(text, names, &sites->items[i], total, tree);
}

void run_answer_sites(struct run *run, const char *title, const struct flame *bytes,
                      const struct flame *samples, const struct tree *tree) {
    struct strings *names = strings_new();
    site_list sites = {0};
    uint64_t total = bytes->nodes.items[0].total;
    for (uint32_t i = 1; i < bytes->nodes.count; i++)
        if (bytes->nodes.items[i].self)
            site_at(&sites, names, site_of(bytes, i))->bytes += bytes->nodes.items[i].self;
    for (uint32_t i = 1; i < samples->nodes.count; i++)
        if (samples->nodes.items[i].self)
            site_at(&sites, names, site_of(samples, i))->samples += samples->nodes.items[i].self;
    if (sites.count && total) {
        qsort(sites.items, sites.count, sizeof *sites.items, site_order);
        add_sites(&run->answer, title, names, &sites, total, tree);
        add_sites(&run->told, title, names, &sites, total, tree);
    }
    vector_release(&sites);
    strings_free(names);
}
