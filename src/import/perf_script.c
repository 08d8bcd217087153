/*
 * Read perf script text in parallel.
 *
 * The text is cut at blank lines into pieces, which the workers (script_worker.c) take in turn, each with a tree of
 * its own; the trees are joined at the end. Each worker finds the ends of its pieces itself. The first event in the
 * text decides which one counts, so it is found first.
 */
#include "import/script_worker.h"

#include <stdlib.h>

static const struct note_kind note_events = {
    "other-events",
    "# sample{|s} of other events {was|were} dropped; choose with --event NAME, or --event all"};

enum { CHUNK = 1 << 19 };

/* ---- pieces ------------------------------------------------------------------------------- */

/* Read `piece`; with `until_event`, only until the event to count is known and its sample is complete. Return what is
   left. */
static struct text worker_read(struct script_worker *w, struct text piece, bool until_event) {
    while (piece.length) {
        worker_line(w, text_take_line(&piece));
        if (until_event && w->only.data && w->clean)
            return piece;
    }
    worker_end(w);
    return piece;
}

/* The first event in the text is the one that counts. By inferno's rules, the samples before it must be read to find
   it. */
static struct text find_first_event(struct script_worker *w, struct text content) {
    if (w->options->profile.quirks.script_state_machine)
        return worker_read(w, content, true);
    struct lines lines = {.rest = content};
    struct text line;
    while (!w->only.data && lines_next(&lines, &line)) {
        struct script_event event;
        if (line.length && line.data[0] != '#' && line.data[0] != '\t' &&
            script_event_parse(line, &event) && event.name.data)
            worker_wants(w, event.name);
    }
    return content;
}

/* Return where a sample certainly begins, after `from` and not after `limit`: after a blank line or, by wick's rules,
   at an event line; or SIZE_MAX. */
static size_t cut_between(struct text text, size_t from, size_t limit, bool blank_only) {
    while (from < limit) {
        size_t end = text_find(text_from(text, from), '\n');
        if (end == SIZE_MAX || from + end >= limit)
            break;
        size_t start = from + end + 1;
        struct text rest = text_from(text, start);
        size_t length = text_find(rest, '\n');
        struct text line = text_upto(rest, length == SIZE_MAX ? rest.length : length);
        if (length != SIZE_MAX && line.length == 0)
            return start + 1;
        struct script_event event;
        if (!blank_only && line.length && line.data[0] != '\t' &&
            script_event_parse(line, &event) && event.name.data && event.time)
            return start;
        from = start;
    }
    return SIZE_MAX;
}

struct script_job {
    struct script_worker *workers;
    struct text text;
};

/* Return the first cut in chunk `number` of the text; SIZE_MAX if a sample longer than a chunk continues there. The
   start of the text is a cut. */
static size_t chunk_cut(const struct script_job *job, size_t number) {
    size_t from = number * CHUNK;
    if (number == 0)
        return 0;
    size_t limit = job->text.length - from < CHUNK ? job->text.length : from + CHUNK;
    return cut_between(job->text, from, limit,
                       job->workers[0].options->profile.quirks.script_state_machine);
}

/* Return the text from the cut in a chunk to the next cut. Costs no more than reading it. */
static struct text chunk_piece(const struct script_job *job, size_t number) {
    size_t start = chunk_cut(job, number), end = SIZE_MAX;
    if (start == SIZE_MAX)
        return TEXT("");
    for (number++; end == SIZE_MAX && number * CHUNK < job->text.length; number++)
        end = chunk_cut(job, number);
    end = end == SIZE_MAX ? job->text.length : end;
    return (struct text){job->text.data + start, end - start};
}

static void read_piece(void *context, unsigned worker, size_t item) {
    struct script_job *job = context;
    struct script_worker *w = &job->workers[worker];
    if (import_stops(w->options, job->text.data + item * CHUNK))
        return;
    struct text piece = chunk_piece(job, item);
    if (piece.length) {
        worker_read(w, piece, false);
        text_give_back(w->options, w->content, piece);
    }
    context_progress(w->options->profile.context, "reading", item * CHUNK, job->text.length);
}

static void worker_init(struct script_worker *w, const struct script_worker *first) {
    *w = (struct script_worker){.options = first->options,
                                .tree = tree_new(),
                                .content = first->content,
                                .path = first->path,
                                .only = first->only,
                                .period = 1};
    w->tree->keep_samples = first->tree->keep_samples;
    tree_set_budget(w->tree, first->tree->budget);
}

/* Report once for the whole text what was not used. */
static void say_notes(struct script_worker *workers, unsigned count) {
    struct script_worker all = {.torn_at = SIZE_MAX, .other_at = SIZE_MAX};
    for (unsigned i = 0; i < count; i++) {
        all.torn += workers[i].torn;
        all.other_events += workers[i].other_events;
        if (workers[i].torn && workers[i].torn_at < all.torn_at) {
            all.torn_at = workers[i].torn_at;
            all.torn_line = workers[i].torn_line;
        }
        if (workers[i].other_events && workers[i].other_at < all.other_at) {
            all.other_at = workers[i].other_at;
            all.other_name = workers[i].other_name;
        }
    }
    struct tree *tree = workers[0].tree;
    if (all.torn) {
        note_torn_line(tree, workers[0].path, line_number(workers[0].content, all.torn_at),
                       all.torn_line);
        notes_add(&tree->notes, &note_torn, all.torn - 1, 0, NULL);
    }
    if (all.other_events)
        notes_add(&tree->notes, &note_events, all.other_events, all.other_at,
                  all.other_name.length ? "%.*s" : NULL, TEXT_ARGS(all.other_name));
}

/* The first worker uses the caller's tree, so that only the other trees must be joined. */
static bool perf_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    unsigned threads = context_threads(options->profile.context);
    struct script_worker first = {
        .options = options, .tree = tree, .content = content, .path = path, .period = 1};
    struct script_job job = {.text = content};
    worker_know_events(&first);
    if (!options->profile.filter.event_count)
        job.text = find_first_event(&first, content);
    size_t chunks = (job.text.length + CHUNK - 1) / CHUNK;
    if (threads > chunks)
        threads = chunks ? (unsigned)chunks : 1;
    job.workers = memory_zero(threads, sizeof *job.workers);
    job.workers[0] = first;
    for (unsigned i = 1; i < threads; i++)
        worker_init(&job.workers[i], &first);
    parallel_run(threads, chunks, read_piece, &job);
    say_notes(job.workers, threads);
    for (unsigned i = 0; i < threads; i++) {
        worker_release(&job.workers[i]);
        if (i == 0)
            continue;
        tree_settle(job.workers[i].tree);
        tree_join(tree, job.workers[i].tree);
        objects_free(job.workers[i].tree->objects);
        tree_free(job.workers[i].tree);
    }
    free(job.workers);
    if (threads > 1)
        tree_sort_samples_by_place(tree);
    return true;
}

/* ---- recognising -------------------------------------------------------------------------- */

/* inferno's test: is the first line that is neither blank nor a comment an event, and the next a frame? */
enum applicable perf_applicable(struct text text) {
    struct lines lines = {.rest = text};
    struct buffer scratch = {0};
    struct text line;
    enum applicable answer = APPLICABLE_UNSURE;
    bool after_event = false;
    while (answer == APPLICABLE_UNSURE && lines_next(&lines, &line)) {
        struct script_event event;
        struct script_frame frame;
        line = text_trim_both(text_lossy(line, &scratch));
        if (line.length && line.data[0] == '#')
            continue;
        if (line.length == 0)
            after_event = false;
        else if (after_event)
            answer = script_frame_parse_inferno(line, &frame) ? APPLICABLE_YES : APPLICABLE_NO;
        else if (!script_event_parse_inferno(line, &event))
            answer = APPLICABLE_NO;
        else
            after_event = true;
    }
    buffer_release(&scratch);
    return answer;
}

/* Only this format has event lines with a time, an event's name and text after it. */
static int perf_score(struct text beginning) {
    struct lines lines = {.rest = beginning};
    struct text line;
    for (int tries = 0; tries < 40 && lines_next(&lines, &line);) {
        struct script_event event;
        if (text_trim(line).length == 0 || line.data[0] == '#')
            continue;
        if (script_event_parse(line, &event) && event.name.data)
            return event.time ? 95 : 40;
        tries++;
    }
    return perf_applicable(beginning) == APPLICABLE_YES ? 60 : 0;
}

const struct import_format format_perf = {"perf", "Linux perf script text", perf_score, perf_read,
                                          TELLS_ALL};
