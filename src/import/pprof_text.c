/*
 * Older text profiles that pprof reads: from gperftools' and other servers' pages, and Go's /debug/pprof/…?debug=1:
 *
 *     --- contentionz 1 ---              --- mutex:                       --- threadz 1 ---
 *     cycles/second = 3201000000         cycles/second=2596145521
 *     sampling period = 100              169279851 2 @ 0x4d9854           --- Thread 7f79 (name: main/14748) stack: ---
 *       19490304  27 @ 0xbccc97 …        #  0x4d9853  main.f+0x33  …        PC: 0xbc8f1c 0xbcae55
 *     --- Memory map: ---                                                   [same as previous thread]
 *
 *     --- heapz 1 ---                    goroutine profile: total 4
 *     format = java                      3 @ 0x47d9ee 0x45f1c6
 *     resolution = bytes
 *       7048  1 @ 0x3 0x4
 *      0x3 com.example.f (source.java:3)
 *
 * Heap profiles of gperftools, jemalloc and Go have another form: heaptext.c reads them. Values are scaled from what was sampled, as pprof does.
 */
#include "import/java_places.h"

enum kind { KIND_NONE, KIND_CONTENTION, KIND_JAVA_HEAP, KIND_THREADS, KIND_COUNTS };

struct pprof_text {
    struct reader r;
    struct addresses addresses;
    struct java_places java;
    enum kind kind;
    struct text event;
    double nanoseconds; /* for one of the file's units of time */
    uint64_t period;
    uint32_t series;
    uint32_t thread; /* node of the previous thread's stack */
};

/* ---- the head ---- */

/* Return the name in "goroutine profile: total 4", or nothing. */
static struct text counted_name(struct text line) {
    size_t at = text_search(line, TEXT(" profile: total "));
    struct text name = at == SIZE_MAX ? TEXT("") : text_upto(line, at);
    uint64_t total;
    bool fine = name.length && text_find(name, ' ') == SIZE_MAX &&
                text_to_u64(text_trim(text_from(line, at + 16)), &total);
    return fine ? name : TEXT("");
}

static enum kind kind_of(struct text line) {
    return text_starts(line, TEXT("--- contentionz ")) || text_starts(line, TEXT("--- mutex:")) ||
                   text_starts(line, TEXT("--- contention:"))
               ? KIND_CONTENTION
           : text_starts(line, TEXT("--- heapz ")) ? KIND_JAVA_HEAP
           : text_starts(line, TEXT("--- threadz ")) || text_starts(line, TEXT("--- Thread "))
               ? KIND_THREADS
           : counted_name(line).length ? KIND_COUNTS
                                       : KIND_NONE;
}

static bool choose_event(struct pprof_text *p) {
    const struct filter *filter = &p->r.options->profile.filter;
    struct text unit = p->kind == KIND_CONTENTION  ? TEXT("ns")
                       : p->kind == KIND_JAVA_HEAP ? TEXT("bytes")
                                                   : TEXT("samples");
    p->event = p->kind == KIND_CONTENTION  ? TEXT("delay")
               : p->kind == KIND_JAVA_HEAP ? TEXT("inuse_space")
               : p->kind == KIND_THREADS   ? TEXT("thread")
                                           : counted_name(p->r.line);
    if (filter->event_count && !filter_event(filter, p->event))
        return error_set(p->r.error, ERROR_USAGE, "--event %s: %s has no such event, only %.*s",
                         filter->events[0], p->r.path, TEXT_ARGS(p->event));
    struct series series = {.event = event_named(p->addresses.tree, p->event, unit, EVENT_OTHER),
                            .ending = ENDING_UNKNOWN};
    p->series = tree_add_series(p->addresses.tree, &series);
    return true;
}

/* Parse "sampling period = 100". Return false for any other line. */
static bool take_attribute(struct pprof_text *p, struct text line) {
    size_t equals = text_find(line, '=');
    if (equals == SIZE_MAX || text_find(line, '@') != SIZE_MAX)
        return false;
    struct text key = text_trim(text_upto(line, equals)),
                value = text_trim(text_from(line, equals + 1));
    uint64_t number = 0;
    bool is_number = text_to_u64(value, &number);
    if (text_equal(key, TEXT("cycles/second")) && number)
        p->nanoseconds = 1e9 / (double)number;
    else if (text_equal(key, TEXT("sampling period")) && is_number)
        p->period = number ? number : 1;
    else if (text_equal(key, TEXT("resolution")))
        p->nanoseconds = text_equal(value, TEXT("microseconds"))   ? 1e3
                         : text_equal(value, TEXT("milliseconds")) ? 1e6
                                                                   : 1;
    else if (text_equal(key, TEXT("format")) && text_equal(value, TEXT("java")))
        java_places_read(&p->java, p->r.content);
    return true;
}

/* ---- stacks ---- */

static void push_list(struct pprof_text *p, struct text list) {
    p->addresses.stack.count = 0;
    if (!p->java.is_java) {
        addresses_push_list(&p->addresses, list, false);
        return;
    }
    for (list = text_trim(list); list.length; list = text_trim(list)) {
        struct text word = text_take_word(&list);
        uint64_t number;
        if (text_starts(word, TEXT("0x")) && text_hex_to_u64(text_from(word, 2), &number))
            java_places_push(&p->java, &p->addresses, number);
    }
}

static void count(struct pprof_text *p, uint64_t samples, uint64_t weight) {
    tree_count(p->addresses.tree, addresses_node(&p->addresses), p->series, samples, weight);
}

/* Parse "19490304 27 @ 0xbccc97 …", or "3 @ 0x47d9ee …". Return false for any other line. */
static bool read_stack(struct pprof_text *p, struct text line) {
    size_t at = text_find(line, '@');
    if (at == SIZE_MAX)
        return false;
    struct text numbers = text_upto(line, at);
    uint64_t first, second = 0;
    if (!text_to_u64(text_take_word(&numbers), &first) ||
        (p->kind != KIND_COUNTS && !text_to_u64(text_take_word(&numbers), &second)))
        return false;
    push_list(p, text_from(line, at + 1));
    addresses_read_comments(&p->addresses, &p->r.lines);
    if (p->kind == KIND_COUNTS) {
        count(p, first, first);
    } else if (p->kind == KIND_JAVA_HEAP) {
        enum { RATE = 512 << 10 }; /* bytes between two samples, for all */
        heap_scale(RATE, &second, &first);
        count(p, second, first);
    } else {
        double delay = (double)first * (double)p->period * p->nanoseconds;
        count(p, double_to_u64((double)second * (double)p->period), double_to_u64(delay));
    }
    return true;
}

/* Read one thread after its headline: its stack and that of its creator. "same as previous thread" repeats the previous stack. */
static void read_thread(struct pprof_text *p) {
    struct lines ahead = p->r.lines;
    struct text line;
    bool same = false, begun = false;
    while (lines_next(&ahead, &line) && !text_starts(text_trim(line), TEXT("---"))) {
        p->r.lines = ahead;
        same |= text_search(line, TEXT("same as previous thread")) != SIZE_MAX;
        if (same)
            continue;
        if (!begun)
            p->addresses.stack.count = 0;
        begun = true;
        addresses_push_list(&p->addresses, line, true);
    }
    if (begun)
        p->thread = addresses_node(&p->addresses);
    if (p->thread)
        tree_count(p->addresses.tree, p->thread, p->series, 1, 1);
}

static bool read_lines(struct pprof_text *p) {
    struct reader *r = &p->r;
    do {
        if (!reader_next(r))
            return error_at(
                r->error, r->path, 0,
                "not a contention, thread or count profile in one of pprof's text formats");
    } while (!r->line.length || r->line.data[0] == '#');
    p->kind = kind_of(r->line);
    if (!choose_event(p))
        return false;
    bool head = true;
    if (text_starts(r->line, TEXT("--- Thread ")))
        read_thread(p);
    while (reader_next(r) && !import_stops(r->options, r->line.data)) {
        struct text line = text_trim(r->line);
        if (addresses_begin_maps(line))
            break;
        if (!line.length || line.data[0] == '#' || (head && take_attribute(p, line)))
            continue;
        bool place = p->java.is_java && text_starts(line, TEXT("0x"));
        head = false;
        if (p->kind == KIND_THREADS && text_starts(line, TEXT("--- Thread ")))
            read_thread(p);
        else if (!place && !text_starts(line, TEXT("---")) && !read_stack(p, line))
            reader_bad(r, "not a line of such a profile");
    }
    return true;
}

/* ---- the file ---- */

static bool pprof_text_read(struct text content, const char *path,
                            const struct import_options *options, struct tree *tree,
                            struct error *error) {
    struct pprof_text p = {.nanoseconds = 1, .period = 1};
    reader_init(&p.r, content, path, options, tree, TEXT(""), error);
    addresses_init(&p.addresses, options);
    addresses_find_maps(&p.addresses, content);
    bool fine = read_lines(&p);
    addresses_finish(&p.addresses, fine ? tree : NULL);
    java_places_release(&p.java);
    reader_release(&p.r);
    return fine;
}

static int pprof_text_score(struct text beginning) {
    struct lines lines = {.rest = beginning};
    struct text line;
    while (lines_next(&lines, &line))
        if (line.length && line.data[0] != '#')
            return kind_of(line) ? 97 : 0;
    return 0;
}

const struct import_format format_pprof_text = {
    "pprof-text", "contention, thread and count profiles as text, as pprof reads them",
    pprof_text_score, pprof_text_read, TELLS_EVENTS};
