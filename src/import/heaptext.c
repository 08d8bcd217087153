/*
 * Heap profiles as text, as written by gperftools (tcmalloc's HEAPPROFILE) and jemalloc (prof:true, jeprof's input):
 * stacks of addresses with what is in use and what was ever allocated, followed by the process's maps.
 *
 *     heap profile:    3:  300 [    5:  500] @ heapprofile          heap_v2/524288
 *          1:  100 [    2:  200] @ 0x401136 0x40114c                  t*: 3: 300 [5: 500]
 *     MAPPED_LIBRARIES:                                             @ 0x401136 0x40114c
 *     00400000-00401000 r-xp 00000000 08:01 12 /bin/demo              t*: 1: 100 [2: 200]
 *
 * Sampled values are scaled like pprof and jeprof do: with a mean distance of RATE bytes between samples, an object
 * of SIZE bytes is seen with a probability of 1 - e^(-SIZE/RATE). All addresses are return addresses. They are
 * resolved from the files of this machine or --symfs, in a separate tree that is then added to the caller's.
 */
#include "import/addresses.h"

#include <ctype.h>
#include <stdlib.h>

enum { IN_USE, ALLOCATED, EVENTS };
static const char *const event_names[EVENTS] = {"inuse_space", "alloc_space"};

struct amounts {
    uint64_t objects[EVENTS], bytes[EVENTS];
};

struct heaptext {
    struct reader r;
    struct addresses addresses;
    double rate; /* bytes between two samples; 0: everything was counted */
    bool is_jemalloc, has_counted;
    uint32_t series[EVENTS]; /* 0: not wanted */
};

/* ---- stacks ---- */

/* Parse "@ 0x401136 0x40114c", leaf first. Return false for anything else. */
static bool read_addresses(struct heaptext *h, struct text line) {
    h->addresses.stack.count = 0;
    for (line = text_trim(line); line.length; line = text_trim(line)) {
        uint64_t address;
        struct text word = text_take_word(&line);
        if (!text_starts(word, TEXT("0x")) || !text_hex_to_u64(text_from(word, 2), &address))
            return false;
        addresses_push(&h->addresses, address, true);
    }
    return true;
}

/* "1: 100 [2: 200]"; *rest is what follows. */
static bool read_amounts(struct text line, struct amounts *amounts, struct text *rest) {
    uint64_t numbers[4];
    static const char between[] = {':', '[', ':', ']'};
    for (size_t i = 0; i < 4; i++) {
        line = text_trim(line);
        size_t digits = 0;
        while (digits < line.length && isdigit((unsigned char)line.data[digits]))
            digits++;
        if (!text_to_u64(text_upto(line, digits), &numbers[i]))
            return false;
        line = text_trim(text_from(line, digits));
        if (!line.length || line.data[0] != between[i])
            return false;
        line = text_from(line, 1);
    }
    *amounts = (struct amounts){{numbers[0], numbers[2]}, {numbers[1], numbers[3]}};
    *rest = text_trim(line);
    return true;
}

static void count(struct heaptext *h, struct amounts amounts) {
    uint32_t node = addresses_node(&h->addresses);
    for (size_t i = 0; i < EVENTS; i++) {
        heap_scale(h->rate, &amounts.objects[i], &amounts.bytes[i]);
        if (h->series[i] && (amounts.objects[i] || amounts.bytes[i]))
            tree_count(h->addresses.tree, node, h->series[i], amounts.objects[i], amounts.bytes[i]);
    }
    h->has_counted = true;
}

/* gperftools has amounts and addresses in one line; jemalloc has addresses in one line and amounts, by thread, in the
   lines below. */
static bool read_stack(struct heaptext *h, struct text line, bool *known) {
    struct amounts amounts;
    struct text rest;
    *known = true;
    if (!h->is_jemalloc) {
        if (!read_amounts(line, &amounts, &rest) || !text_starts(rest, TEXT("@")) ||
            !read_addresses(h, text_from(rest, 1)))
            return text_starts(line, TEXT("#")); /* Go's statistics of its allocator */
        addresses_read_comments(&h->addresses, &h->r.lines);
        count(h, amounts);
        return true;
    }
    if (text_starts(line, TEXT("@")))
        return *known = read_addresses(h, text_from(line, 1));
    if (!text_starts(line, TEXT("t*:")))
        return text_starts(line, TEXT("t")); /* one thread's part */
    if (!read_amounts(text_from(line, 3), &amounts, &rest))
        return false;
    if (h->addresses.stack.count) /* otherwise it is the sum of all threads */
        count(h, amounts);
    return true;
}

/* ---- the file ---- */

/*
 * Parse "heap profile: … @ heapprofile", "… @ heap_v2/524288", or jemalloc's "heap_v2/524288". Go's older
 * "heap/1048576" has twice the mean distance; a heap's growth ("growth") was counted in full. Return false for
 * anything else.
 */
static bool read_head(struct heaptext *h, struct text line) {
    static const struct {
        struct text kind;
        uint64_t share; /* factor from the number after it to the mean distance; 0: no number */
    } kinds[] = {{TEXT("heapprofile"), 0}, {TEXT("heap_v2"), 1}, {TEXT("heapz_v2"), 1},
                 {TEXT("heap"), 2},        {TEXT("growth"), 0},  {TEXT("growthz"), 0}};
    h->is_jemalloc = text_starts(line, TEXT("heap_v2/"));
    size_t at = text_find_last(line, '@');
    struct text kind = h->is_jemalloc ? line : at == SIZE_MAX ? TEXT("") : text_from(line, at + 1);
    kind = text_trim(kind);
    size_t slash = text_find(kind, '/');
    uint64_t rate = 0;
    if (slash != SIZE_MAX && (!text_to_u64(text_from(kind, slash + 1), &rate) || !rate))
        return false;
    kind = slash == SIZE_MAX ? kind : text_upto(kind, slash);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (text_equal(kind, kinds[i].kind)) {
            rate = kinds[i].share ? rate / kinds[i].share : 0;
            h->rate = rate > 1 ? (double)rate : 0;
            return true;
        }
    return false;
}

static bool choose_events(struct heaptext *h) {
    const struct filter *filter = &h->r.options->profile.filter;
    for (size_t i = 0; i < EVENTS; i++) {
        struct text name = text_of(event_names[i]);
        if (filter->event_count ? !filter_event(filter, name) : i != IN_USE)
            continue;
        struct series series = {
            .event = event_named(h->addresses.tree, name, TEXT("bytes"), EVENT_OTHER),
            .ending = ENDING_UNKNOWN};
        h->series[i] = tree_add_series(h->addresses.tree, &series);
    }
    return h->series[IN_USE] || h->series[ALLOCATED] ||
           error_set(h->r.error, ERROR_USAGE,
                     "--event %s: %s has no such event, only inuse_space, alloc_space",
                     filter->events[0], h->r.path);
}

static bool read_lines(struct heaptext *h) {
    struct reader *r = &h->r;
    bool known;
    if (!reader_next(r) || !read_head(h, r->line))
        return error_at(r->error, r->path, 0, "not a heap profile of gperftools or jemalloc");
    while (reader_next(r) && !addresses_begin_maps(r->line)) {
        struct text line = text_trim(r->line);
        if (import_stops(r->options, r->line.data))
            break;
        if (line.length && !read_stack(h, line, &known))
            note_torn_line(r->tree, r->path, r->lines.number, r->line);
    }
    return true;
}

static bool heaptext_read(struct text content, const char *path,
                          const struct import_options *options, struct tree *tree,
                          struct error *error) {
    struct heaptext h = {0};
    reader_init(&h.r, content, path, options, tree, TEXT("bytes"), error);
    addresses_init(&h.addresses, options);
    addresses_find_maps(&h.addresses, content);
    bool fine = choose_events(&h) && read_lines(&h);
    addresses_finish(&h.addresses, fine ? tree : NULL);
    reader_release(&h.r);
    return fine;
}

static int heaptext_score(struct text beginning) {
    struct text rest = beginning, line = text_take_line(&rest);
    struct heaptext unused = {0};
    bool begins = text_starts(line, TEXT("heap profile:")) || text_starts(line, TEXT("heap_v2/"));
    return begins && read_head(&unused, line) ? 98 : 0;
}

const struct import_format format_heaptext = {"heap",
                                              "gperftools' and jemalloc's heap profiles, text",
                                              heaptext_score, heaptext_read, TELLS_EVENTS};
