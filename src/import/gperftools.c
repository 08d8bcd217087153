/*
 * CPU profiles of gperftools (CPUPROFILE=…): words of the recorded machine's size and byte order, then its maps as text.
 *
 *     0 3 0 PERIOD 0      the header; the period is in microseconds
 *     COUNT N PC…         a stack, leaf first, N addresses; any number of these
 *     0 1 0               the end of them
 *
 * The leaf is an address, the others are return addresses. Like pprof, remove what the signal handler left in the
 * stacks: a second frame that nearly all stacks share, and a duplicated leaf.
 */
#include "import/java_places.h"

#include <stdlib.h>

enum { HEADER_WORDS = 5 };

struct words {
    struct text rest;
    unsigned size; /* 4 or 8 */
    bool big;      /* big-endian */
};

/* One record: its addresses are addresses[first … +count). */
struct record {
    uint64_t times;
    size_t first, count;
};

struct gperftools {
    struct reader r;
    struct words words;
    struct addresses addresses;
    struct java_places java;
    uint64_t period; /* nanoseconds */
    VECTOR(struct record) records;
    VECTOR(uint64_t) list;
    uint32_t series;
};

static bool take_word(struct words *words, uint64_t *word) {
    if (words->rest.length < words->size)
        return false;
    *word = 0;
    for (unsigned i = 0; i < words->size; i++) {
        unsigned shift = 8 * (words->big ? words->size - 1 - i : i);
        *word |= (uint64_t)(uint8_t)words->rest.data[i] << shift;
    }
    words->rest = text_from(words->rest, words->size);
    return true;
}

/* Return false if it does not begin like this, for any word size and byte order. */
static bool read_header(struct text content, struct words *words, uint64_t *period,
                        uint64_t *version) {
    for (unsigned way = 0; way < 4; way++) {
        uint64_t w[HEADER_WORDS] = {0};
        bool all = true;
        *words = (struct words){content, way < 2 ? 4 : 8, way & 1};
        for (unsigned i = 0; i < HEADER_WORDS; i++)
            all &= take_word(words, &w[i]);
        if (all && !w[0] && w[1] == 3 && w[2] <= 1 && w[3] && w[3] <= UINT32_MAX && !w[4]) {
            *version = w[2];
            *period = w[3] * 1000;
            return true;
        }
    }
    return false;
}

static bool damaged(struct gperftools *g, const char *at) {
    return error_at(g->r.error, g->r.path, (uint64_t)(at - g->r.content.data),
                    "the profile is damaged here");
}

static bool read_records(struct gperftools *g) {
    struct words *words = &g->words;
    for (;;) {
        const char *at = words->rest.data;
        struct record record = {.first = g->list.count};
        uint64_t count, address = 0;
        if (import_stops(g->r.options, at))
            return true;
        if (!take_word(words, &record.times) || !take_word(words, &count) ||
            count > words->rest.length / words->size || record.times > INT64_MAX / g->period)
            return damaged(g, at);
        record.count = (size_t)count;
        for (size_t i = 0; i < record.count && take_word(words, &address); i++)
            vector_push(&g->list, address);
        if (!record.times && record.count == 1 && !address)
            return true;
        vector_push(&g->records, record);
        budget_take_memory(g->r.options->budget, sizeof record + count * sizeof address,
                           (uint64_t)(at - g->r.content.data));
    }
}

/* ---- what the signal handler left ---- */

/* Return the address that is the majority of the second frames, if any: the only one that survives pairing off
   different ones. */
static uint64_t likely_second(const struct gperftools *g) {
    uint64_t candidate = 0, votes = 0;
    for (size_t i = 0; i < g->records.count; i++) {
        const struct record *record = &g->records.items[i];
        if (record->count < 2)
            continue;
        uint64_t second = g->list.items[record->first + 1];
        if (!votes)
            candidate = second;
        votes = second == candidate ? votes + 1 : votes - 1;
    }
    return candidate;
}

/* If the second frame is removed, the leaf takes its place. */
static void drop_second(struct gperftools *g, struct record *record) {
    g->list.items[record->first + 1] = g->list.items[record->first];
    record->first++;
    record->count--;
}

static bool has_second(const struct gperftools *g, const struct record *record, uint64_t address) {
    return record->count > 1 && g->list.items[record->first + 1] == address;
}

static void drop_common_second(struct gperftools *g) {
    uint64_t candidate = likely_second(g), shared = 0;
    for (size_t i = 0; i < g->records.count; i++)
        shared += has_second(g, &g->records.items[i], candidate);
    if (!shared || shared < g->records.count - g->records.count / 32)
        return;
    for (size_t i = 0; i < g->records.count; i++)
        if (has_second(g, &g->records.items[i], candidate))
            drop_second(g, &g->records.items[i]);
}

/* ---- the file ---- */

static void count_record(struct gperftools *g, struct record *record) {
    if (!g->java.is_java && record->count && has_second(g, record, g->list.items[record->first]))
        drop_second(g, record);
    g->addresses.stack.count = 0;
    for (size_t i = 0; i < record->count; i++)
        if (g->java.is_java)
            java_places_push(&g->java, &g->addresses, g->list.items[record->first + i]);
        else
            addresses_push(&g->addresses, g->list.items[record->first + i], i > 0);
    tree_count(g->addresses.tree, addresses_node(&g->addresses), g->series, record->times,
               record->times * g->period);
}

static bool choose_event(struct gperftools *g) {
    const struct filter *filter = &g->r.options->profile.filter;
    struct tree *tree = g->addresses.tree;
    if (filter->event_count && !filter_event(filter, TEXT("cpu")))
        return error_set(g->r.error, ERROR_USAGE, "--event %s: %s has no such event, only cpu",
                         filter->events[0], g->r.path);
    struct series series = {.event = event_named(tree, TEXT("cpu"), TEXT("ns"), EVENT_OTHER),
                            .ending = ENDING_UNKNOWN};
    g->series = tree_add_series(tree, &series);
    return true;
}

static bool read_profile(struct gperftools *g) {
    uint64_t version;
    if (!read_header(g->r.content, &g->words, &g->period, &version))
        return error_at(g->r.error, g->r.path, 0, "not a CPU profile of gperftools");
    if (!choose_event(g) || !read_records(g))
        return false;
    if (version)
        java_places_read(&g->java, g->words.rest);
    else
        addresses_read_maps(&g->addresses, g->words.rest);
    for (int i = 0; i < 2 && !version; i++)
        drop_common_second(g);
    for (size_t i = 0; i < g->records.count; i++) {
        if (import_stops(g->r.options, g->words.rest.data))
            break;
        count_record(g, &g->records.items[i]);
    }
    return true;
}

static bool gperftools_read(struct text content, const char *path,
                            const struct import_options *options, struct tree *tree,
                            struct error *error) {
    struct gperftools g = {0};
    reader_init(&g.r, content, path, options, tree, TEXT(""), error);
    addresses_init(&g.addresses, options);
    bool fine = read_profile(&g);
    addresses_finish(&g.addresses, fine ? tree : NULL);
    java_places_release(&g.java);
    vector_release(&g.records);
    vector_release(&g.list);
    reader_release(&g.r);
    return fine;
}

static int gperftools_score(struct text beginning) {
    struct words words;
    uint64_t period, version;
    return read_header(beginning, &words, &period, &version) ? 98 : 0;
}

const struct import_format format_gperftools = {"gperftools", "gperftools' CPU profiles",
                                                gperftools_score, gperftools_read, TELLS_EVENTS};
