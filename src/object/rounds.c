/*
 * Arrange symbols as perf 6.1 does: insert them into a red-black tree in file order, then in one pass set the missing ends, and in another keep
 * one symbol for each start.
 *
 * The order in the tree is that of a stable sort, so a sorted array is enough for the passes. The shape of the tree matters only if ranges
 * overlap in the end; only then are the insertions and erasures replayed.
 */
#include "object/symbols.h"

#include <ctype.h>
#include <stdlib.h>

void perf_rounds_init(struct perf_rounds *rounds, struct symbols *symbols) {
    *rounds = (struct perf_rounds){.symbols = symbols};
    symbols->perf_order = true;
}

void perf_rounds_add(struct perf_rounds *rounds, const struct entry *entry) {
    if (rounds->all.count >= LOG_ERASED)
        return;
    vector_push(&rounds->log, (uint32_t)rounds->all.count);
    vector_push(&rounds->all, *entry);
}

/* ---- order ---- */

/* What came since the last time, by start. */
static struct entry *rounds_sort_new(const struct perf_rounds *rounds, size_t count) {
    struct entry *fresh = memory_resize(NULL, count, sizeof *fresh);
    for (size_t i = 0; i < count; i++) {
        fresh[i] = rounds->all.items[rounds->sorted + i];
        fresh[i].name =
            (uint32_t)(rounds->sorted + i); /* a copy: the name's place carries the number */
    }
    entries_sort(fresh, count);
    return fresh;
}

/* Equal entries go after those that were there before. */
static void rounds_sort(struct perf_rounds *rounds) {
    size_t old_count = rounds->live.count, count = rounds->all.count - rounds->sorted;
    if (!count)
        return;
    struct entry *fresh = rounds_sort_new(rounds, count);
    uint32_t *merged = memory_resize(NULL, old_count + count, sizeof *merged);
    size_t old = 0, i = 0;
    while (old < old_count || i < count) {
        bool take_old =
            old < old_count &&
            (i == count || rounds->all.items[rounds->live.items[old]].start <= fresh[i].start);
        merged[old + i] = take_old ? rounds->live.items[old] : fresh[i].name;
        take_old ? old++ : i++;
    }
    free(fresh);
    free(rounds->live.items);
    rounds->live.items = merged;
    rounds->live.count = rounds->live.capacity = old_count + count;
    rounds->sorted = rounds->all.count;
}

/* ---- ends ---- */

static uint64_t page_up(uint64_t address) {
    return (address + 4095) & ~(uint64_t)4095;
}

/* perf's end for an empty symbol: the next one's start, even when that is its own; across the seam between kernel and
   modules, and for the last: the page after the next. */
static void rounds_fix_ends(struct perf_rounds *rounds, bool kallsyms) {
    for (size_t i = 0; i < rounds->live.count; i++) {
        struct entry *entry = &rounds->all.items[rounds->live.items[i]];
        if (entry->end != entry->start)
            continue;
        if (i + 1 == rounds->live.count) {
            entry->end = page_up(entry->start) + 4096;
            continue;
        }
        const struct entry *next = &rounds->all.items[rounds->live.items[i + 1]];
        bool seam = kallsyms && (entry->flags & ENTRY_MODULE) != (next->flags & ENTRY_MODULE);
        entry->end = seam ? page_up(entry->end + 4096) : next->start;
    }
}

/* ---- one for each start ---- */

static size_t leading_underscores(struct text name) {
    size_t count = 0;
    while (count < name.length && name.data[count] == '_')
        count++;
    return count;
}

/* Names that surely look alike once demangled: the same, or the two spellings of a constructor (C1, C2) or destructor. Spares
   demangling every pair of those in a C++ library. */
static bool surely_alike(struct text a, struct text b) {
    if (a.length != b.length)
        return false;
    size_t i = 0;
    while (i < a.length && a.data[i] == b.data[i])
        i++;
    if (i == a.length)
        return true;
    return i > 0 && (a.data[i - 1] == 'C' || a.data[i - 1] == 'D') &&
           isdigit((unsigned char)a.data[i]) && isdigit((unsigned char)b.data[i]) &&
           memcmp(a.data + i, b.data + i, 1) != 0 &&
           memcmp(a.data + i + 1, b.data + i + 1, a.length - i - 1) == 0;
}

/* By the names as shown: fewer leading underscores, then the longer, then the first. */
static bool second_name_better(const struct symbols *symbols, const struct entry *a,
                               const struct entry *b) {
    if (surely_alike(symbols_raw_name(symbols, a), symbols_raw_name(symbols, b)))
        return false;
    struct buffer x = {0}, y = {0};
    symbols_print_name(symbols, a, &x, NULL);
    symbols_print_name(symbols, b, &y, NULL);
    size_t under_x = leading_underscores(buffer_text(&x)),
           under_y = leading_underscores(buffer_text(&y));
    bool better;
    if (under_x != under_y)
        better = under_y < under_x;
    else if (x.count != y.count)
        better = y.count > x.count;
    else
        better = text_starts(buffer_text(&x), TEXT("SyS")) ||
                 text_starts(buffer_text(&x), TEXT("compat_SyS"));
    buffer_release(&x);
    buffer_release(&y);
    return better;
}

static bool second_better(const struct symbols *symbols, const struct entry *a,
                          const struct entry *b) {
    bool empty_a = a->end == a->start, empty_b = b->end == b->start;
    if (empty_a != empty_b)
        return empty_a;
    if (a->weak != b->weak)
        return a->weak;
    if (a->global != b->global)
        return b->global;
    return second_name_better(symbols, a, b);
}

static void rounds_keep_best(struct perf_rounds *rounds) {
    uint32_t *live = rounds->live.items;
    size_t kept = 0;
    for (size_t i = 0; i < rounds->live.count; i++) {
        struct entry *all = rounds->all.items;
        if (kept && all[live[kept - 1]].start == all[live[i]].start) {
            bool second = second_better(rounds->symbols, &all[live[kept - 1]], &all[live[i]]);
            vector_push(&rounds->log, (second ? live[kept - 1] : live[i]) | LOG_ERASED);
            if (second)
                live[kept - 1] = live[i];
        } else {
            live[kept++] = live[i];
        }
    }
    rounds->live.count = kept;
}

void perf_rounds_end_round(struct perf_rounds *rounds, bool kallsyms) {
    rounds_sort(rounds);
    rounds_fix_ends(rounds, kallsyms);
    rounds_keep_best(rounds);
}

/* ---- sealing ---- */

void perf_rounds_seal(struct perf_rounds *rounds) {
    struct symbols *symbols = rounds->symbols;
    rounds_sort(rounds);
    vector_reserve(&symbols->entries, rounds->live.count);
    for (size_t i = 0; i < rounds->live.count; i++)
        vector_push(&symbols->entries, rounds->all.items[rounds->live.items[i]]);
    if (symbols_overlaps(symbols)) {
        uint32_t *position = memory_zero(rounds->all.count, sizeof *position);
        for (size_t i = 0; i < rounds->live.count; i++)
            position[rounds->live.items[i]] = (uint32_t)i;
        symbols_tree_replay(&symbols->tree, rounds, position);
        free(position);
    }
    vector_release(&rounds->all);
    vector_release(&rounds->live);
    vector_release(&rounds->log);
    symbols->resolved = memory_zero(symbols->entries.count + 1, sizeof *symbols->resolved);
}
