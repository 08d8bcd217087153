/*
 * Write single files of a run; each is listed in the run as soon as it is complete.
 */
#include "run/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

/* Merged from the leaf, stacks branch into thousands of towers too narrow to see, which would make the file ten times as large. The page has
   them. */
#define REVERSE_MIN_WIDTH 0.1

struct looks run_view_looks(const struct run_view *names) {
    struct looks looks = times_looks[names->times];
    looks.title = names->title ? names->title : looks.title;
    return looks;
}

struct flame *artifact_flame(struct artifact *a, const struct source *source, struct notes *notes) {
    const struct profile_options *profile = &a->reading->import.profile;
    struct naming *naming =
        naming_with_notes(source->tree, &a->reading->naming, profile->each, profile->times, notes);
    struct flame *flame = flame_of_tree(source->tree, naming, &a->reading->flame, a->error);
    naming_free(naming);
    return flame;
}

bool artifact_open(struct artifact *a, const char *file, struct out *out) {
    return out_open_at(out, a->run->directory, file, a->error);
}

bool artifact_close(struct artifact *a, const char *file, struct out *out) {
    if (!out_commit(out, a->error))
        return false;
    run_wrote(a->run, file);
    return true;
}

bool artifact_folded(struct artifact *a, const char *file, const struct flame *flame) {
    struct out out;
    struct fold_options options = {.context = a->reading->import.profile.context};
    if (!artifact_open(a, file, &out))
        return false;
    fold_write(&out, flame, &options);
    return artifact_close(a, file, &out);
}

/* Append a short description of what was profiled. */
static void add_target(struct buffer *text, const struct run *run) {
    if (!run->command) {
        struct buffer ids = {0};
        run_add_ids(run, &ids, " ");
        buffer_printf(text, "%s%s%.*s", run->record_target, ids.count ? " " : "",
                      TEXT_ARGS(buffer_text(&ids)));
        buffer_release(&ids);
        return;
    }
    for (char *const *word = run->command; *word && text->count < 60; word++)
        buffer_printf(text, "%s%.60s", word == run->command ? "" : " ", *word);
}

/* Return the text below a picture's title: what was measured, how, when, and whether that is enough. free() it. */
static char *subtitle_of(const struct run *run) {
    const struct record_result *result = run->result;
    struct buffer subtitle = {0};
    struct utsname host;
    char date[40];
    struct tm parts;
    time_t seconds = (time_t)(result->started_ns / 1000000000u);
    char *measurement = run_measurement(result->events, result->method);
    uname(&host);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &parts));
    add_target(&subtitle, run);
    buffer_printf(&subtitle, " · %s · %s (%s)", host.nodename, result->events, measurement);
    if (run->recording->heap)
        buffer_printf(&subtitle, " · one in %llu bytes",
                      (unsigned long long)run->recording->heap_every);
    else if (!run->recording->period)
        buffer_printf(&subtitle, " @ %llu Hz", (unsigned long long)run->recording->frequency);
    buffer_printf(&subtitle, " · %llu samples · %s", (unsigned long long)result->samples, date);
    if (!run_has_enough(run))
        buffer_add(&subtitle, TEXT(" · TOO FEW SAMPLES"));
    buffer_add_char(&subtitle, 0);
    free(measurement);
    return subtitle.items;
}

bool artifact_svg(struct artifact *a, const char *file, const struct flame *flame,
                  const struct looks *looks, double min_width) {
    struct out out;
    char *subtitle = subtitle_of(a->run);
    struct svg_options options = {.deviation = a->source ? source_deviation(a->source) : 0,
                                  .context = a->reading->import.profile.context,
                                  .title = looks->title,
                                  .subtitle = subtitle,
                                  .notes = subtitle,
                                  .min_width = min_width,
                                  .is_reversed = a->reading->flame.reverse,
                                  .colouring.palette = looks->palette};
    bool fine = artifact_open(a, file, &out);
    if (fine) {
        svg_write(&out, flame, &options);
        fine = artifact_close(a, file, &out);
    }
    free(subtitle);
    return fine;
}

/* Return the flame of a picture, which merges numbered threads (text for other programs keeps their names) and says how good estimates are.
   */
static struct flame *pictured(struct artifact *a, bool waits, bool reverse) {
    struct notes unused = {0};
    a->reading->flame.reverse = reverse;
    a->reading->naming.group_threads = true;
    a->reading->flame.waits = waits;
    a->reading->flame.samples = source_is_estimated(a->source);
    struct flame *flame = artifact_flame(a, a->source, &unused);
    a->reading->naming.group_threads = false;
    a->reading->flame.reverse = a->reading->flame.waits = a->reading->flame.samples = false;
    notes_release(&unused);
    return flame;
}

bool artifact_picture(struct artifact *a, const struct flame *flame, const struct run_view *names) {
    struct looks looks = run_view_looks(names);
    uint16_t *numbered = numbered_threads(a->source->tree);
    bool apart = numbered || names->times == TIMES_BOTH || source_is_estimated(a->source);
    struct flame *grouped = apart ? pictured(a, names->times == TIMES_BOTH, false) : NULL;
    bool fine = (grouped || !apart) &&
                artifact_svg(a, names->svg, grouped ? grouped : flame, &looks, SVG_MIN_WIDTH);
    flame_free(grouped);
    free(numbered);
    return fine;
}

bool artifact_reverse(struct artifact *a, const struct run_view *names) {
    char title[80];
    struct looks looks = run_view_looks(names);
    snprintf(title, sizeof title, "%s, merged from the leaf", looks.title);
    looks.title = title;
    struct flame *flame = pictured(a, names->times == TIMES_BOTH, true);
    a->reading->flame.reverse = true; /* for the picture's own account */
    bool fine = flame && artifact_svg(a, names->reverse, flame, &looks, REVERSE_MIN_WIDTH);
    a->reading->flame.reverse = false;
    flame_free(flame);
    return fine;
}

bool artifact_table(struct artifact *a, const char *file, const struct flame *flame,
                    const struct categories *categories, enum report_by by, const char *counted) {
    struct out out;
    struct report_options options = {.format = REPORT_CSV, .counted = counted};
    if (!artifact_open(a, file, &out))
        return false;
    struct report *report = report_of_flame(flame, categories, by);
    report_write(&out, report, &options);
    report_free(report);
    return artifact_close(a, file, &out);
}

bool artifact_page(struct artifact *a, const char *file, struct html_options options,
                   const struct tree *tree, const struct naming *naming) {
    struct out out;
    struct notes notes = {0};
    struct categories *categories =
        categories_new(NULL, a->reading->import.profile.context, a->error);
    char *subtitle = subtitle_of(a->run);
    notes_merge(&notes, &a->run->result->notes);
    notes_merge(&notes, &a->run->notes);
    notes_sort(&notes);
    options.subtitle = subtitle;
    options.categories = categories;
    options.notes = &notes;
    bool fine = categories && artifact_open(a, file, &out);
    if (fine && !html_write(&out, tree, naming, &options, a->error)) {
        out_discard(&out);
        fine = false;
    }
    fine = fine && artifact_close(a, file, &out);
    categories_free(categories);
    notes_release(&notes);
    free(subtitle);
    return fine;
}
