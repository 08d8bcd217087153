/*
 * The public API of include/wick.h, so that the rooms' own headers stay free to change. Everything is computed when
 * the profile is opened, except what only a writer needs.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../include/wick.h"
#include "base/base.h"
#include "export/export.h"
#include "import/import.h"
#include "view/view.h"

struct wick {
    struct source source;
    struct naming *naming;
    struct flame *flame;
    struct notes notes;
    VECTOR(char *) sentences; /* of the notes */
    /* The flame's nodes in depth-first order, siblings by name; the flame itself has them in the order of reading. */
    VECTOR(uint32_t) frames;
    uint32_t *numbers; /* by node: its index in `frames` */
    struct context context;
    bool (*progress)(void *user, const char *what, uint64_t done, uint64_t total); /* or NULL */
    void *progress_user;
    atomic_int cancelled;  /* the progress hook returned false */
    bool by_samples, wall; /* as in the options */
};

const char *wick_version(void) {
    return WICK_VERSION;
}

void wick_on_out_of_memory(void (*hook)(void)) {
    memory_set_hook(hook);
}

/* The kinds of errors that readers and writers return have the same numbers in wick.h. */
static void tell(struct wick_error *to, const struct error *from) {
    if (!to)
        return;
    to->kind =
        from->kind == ERROR_USAGE || from->kind == ERROR_INTERNAL || from->kind == ERROR_INTERRUPTED
            ? (enum wick_error_kind)from->kind
            : WICK_ERROR_INPUT;
    snprintf(to->message, sizeof to->message, "%s", from->message);
}

/* Switch to the C locale, so that numbers are read and written as in C. Return the caller's locale, for uselocale(). */
static locale_t enter_c_locale(void) {
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static void leave_c_locale(locale_t callers) {
    freelocale(uselocale(callers));
}

/* ---- reading ---- */

static struct import_options import_options_of(const struct wick_options *o,
                                               const struct context *context) {
    static const char *const all[] = {"all"};
    bool by_samples,
        any = o->value && !o->event_count && !value_is_common(text_of(o->value), &by_samples);
    return (struct import_options){
        .from = o->from,
        .timed_only = o->keep_times,
        .profile = {
            .filter = {.events = any ? (const char **)(uintptr_t)all : (const char **)o->events,
                       .event_count = any ? 1 : o->event_count},
            .objects = {.symfs = o->symfs, .kallsyms = o->kallsyms},
            .context = context,
            .keep_samples = o->keep_times,
            .no_inline = o->no_inline,
            .source_lines = o->source_lines,
            .times = o->wall      ? TIMES_BOTH
                     : o->off_cpu ? TIMES_WAITING
                                  : TIMES_RUNNING}};
}

static void print_notes(struct wick *wick) {
    notes_sort(&wick->notes);
    for (size_t i = 0; i < wick->notes.count; i++) {
        struct buffer sentence = {0};
        note_print(&wick->notes.items[i], &sentence);
        buffer_add_char(&sentence, 0);
        vector_push(&wick->sentences, sentence.items);
    }
}

static void number_frames(struct wick *wick) {
    uint32_t at = 0;
    wick->numbers = memory_zero(wick->flame->nodes.count, sizeof *wick->numbers);
    do {
        wick->numbers[at] = (uint32_t)wick->frames.count;
        vector_push(&wick->frames, at);
        at = flame_next(wick->flame, at);
    } while (at);
}

/* Look for an event's value among all events. */
static bool choose_value(struct wick *wick, const struct wick_options *o, struct error *error) {
    return !o->value || value_is_common(text_of(o->value), &wick->by_samples) ||
           tree_choose_value(wick->source.tree, o->value, error);
}

static bool name_all(struct wick *wick, const struct wick_options *o, struct error *error) {
    struct naming_options naming = {.no_comm = o->no_comm,
                                    .source_lines = o->source_lines,
                                    .is_script_text = !wick->source.tree->recorded};
    struct flame_options flame = {.by_samples = wick->by_samples, .keep_empty = true};
    const struct tree *tree = wick->source.tree;
    wick->naming = naming_of_tree(tree, &naming);
    wick->flame = flame_of_tree(tree, wick->naming, &flame, error);
    notes_merge(&wick->notes, &tree->notes);
    naming_notes(tree, wick->naming, &wick->notes);
    print_notes(wick);
    if (wick->flame)
        number_frames(wick);
    return wick->flame != NULL;
}

static void tell_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    struct wick *wick = user;
    if (!wick->progress(wick->progress_user, what, done, total))
        wick->cancelled = 1;
}

static void context_begin(struct wick *wick, const struct wick_options *o) {
    wick->progress = o->progress;
    wick->progress_user = o->progress_user;
    wick->context = (struct context){.progress = o->progress ? tell_progress : NULL,
                                     .user = wick,
                                     .cancelled = &wick->cancelled,
                                     .threads = o->threads};
}

/* A partial profile is of no use to the caller. */
static bool was_cancelled(const struct wick *wick, struct error *error) {
    if (wick->cancelled)
        error_set(error, ERROR_INTERRUPTED, "cancelled");
    return wick->cancelled;
}

struct wick *wick_open(const char *const *paths, size_t path_count,
                       const struct wick_options *options, struct wick_error *error) {
    static const struct wick_options defaults;
    const struct wick_options *o = options ? options : &defaults;
    struct wick *wick = memory_zero(1, sizeof *wick);
    context_begin(wick, o);
    struct import_options import = import_options_of(o, &wick->context);
    struct error why = {0};
    locale_t callers = enter_c_locale();
    wick->by_samples = o->by_samples;
    wick->wall = o->wall;
    bool fine = path_count || error_set(&why, ERROR_USAGE, "there is no file to read");
    fine = fine && source_open(&wick->source, paths, path_count, &import, &why) &&
           !was_cancelled(wick, &why) && choose_value(wick, o, &why) && name_all(wick, o, &why) &&
           !was_cancelled(wick, &why);
    leave_c_locale(callers);
    if (fine)
        return wick;
    tell(error, &why);
    wick_close(wick);
    return NULL;
}

void wick_close(struct wick *wick) {
    if (!wick)
        return;
    for (size_t i = 0; i < wick->sentences.count; i++)
        free(wick->sentences.items[i]);
    vector_release(&wick->sentences);
    vector_release(&wick->frames);
    free(wick->numbers);
    notes_release(&wick->notes);
    flame_free(wick->flame);
    naming_free(wick->naming);
    source_close(&wick->source);
    free(wick);
}

size_t wick_note_count(const struct wick *wick) {
    return wick->sentences.count;
}

const char *wick_note(const struct wick *wick, size_t number) {
    return number < wick->sentences.count ? wick->sentences.items[number] : NULL;
}

size_t wick_value_count(const struct wick *wick) {
    return tree_value_count(wick->source.tree);
}

struct wick_value wick_value_at(const struct wick *wick, size_t number) {
    if (number >= wick_value_count(wick))
        return (struct wick_value){0};
    struct value value = tree_value(wick->source.tree, number);
    return (struct wick_value){value.name.data, value.unit.data};
}

/* ---- the call tree: interned texts have a NUL behind them ---- */

const char *wick_unit(const struct wick *wick) {
    return strings_get(wick->flame->strings, wick->flame->unit).data;
}

size_t wick_frame_count(const struct wick *wick) {
    return wick->frames.count;
}

struct wick_frame wick_frame_at(const struct wick *wick, size_t number) {
    if (number >= wick->frames.count)
        return (struct wick_frame){.name = "", .object = ""};
    const struct flame_node *node = &wick->flame->nodes.items[wick->frames.items[number]];
    struct text name = strings_get(wick->flame->strings, node->name);
    return (struct wick_frame){.parent = wick->numbers[node->parent],
                               .depth = node->depth,
                               .name = name.data,
                               .name_length = name.length,
                               .object = strings_get(wick->flame->strings, node->object).data,
                               .self = node->self,
                               .total = node->total};
}

/* ---- writing ---- */

static bool is_empty(const struct wick *wick, struct error *error) {
    if (wick->flame->nodes.items[0].total)
        return false;
    error_set(error, ERROR_INPUT, "there are no stacks to draw");
    return true;
}

/* An output file that is being written. */
struct writing {
    struct out out;
    struct error why;
    locale_t callers;
};

static bool begin(struct writing *w, const char *path) {
    *w = (struct writing){.callers = enter_c_locale()};
    return out_open(&w->out, path, &w->why);
}

/* Publish or discard the output. `is_open` is what begin() returned; `fine` tells whether writing succeeded. */
static bool finish(struct writing *w, struct wick *wick, bool is_open, bool fine,
                   struct wick_error *error) {
    fine = fine && !was_cancelled(wick, &w->why);
    wick->cancelled = 0; /* the next call may succeed */
    if (is_open && fine)
        fine = out_commit(&w->out, &w->why);
    else if (is_open)
        out_discard(&w->out);
    if (!fine)
        tell(error, &w->why);
    leave_c_locale(w->callers);
    return fine;
}

bool wick_write_folded(struct wick *wick, const char *path, struct wick_error *error) {
    struct writing w;
    bool is_open = begin(&w, path);
    if (is_open)
        fold_write(&w.out, wick->flame, &(struct fold_options){.context = &wick->context});
    return finish(&w, wick, is_open, is_open, error);
}

bool wick_write_svg(struct wick *wick, const char *path, const struct wick_picture *picture,
                    struct wick_error *error) {
    struct svg_options options = {.context = &wick->context,
                                  .title = picture ? picture->title : NULL,
                                  .subtitle = picture ? picture->subtitle : NULL,
                                  .min_width = SVG_MIN_WIDTH};
    struct writing w;
    bool is_open = begin(&w, path), fine = is_open && !is_empty(wick, &w.why);
    if (fine)
        svg_write(&w.out, wick->flame, &options);
    return finish(&w, wick, is_open, fine, error);
}

bool wick_write_html(struct wick *wick, const char *path, const struct wick_picture *picture,
                     struct wick_error *error) {
    struct writing w;
    bool is_open = begin(&w, path);
    struct categories *categories = is_open ? categories_new(NULL, &wick->context, &w.why) : NULL;
    struct html_options options = {.title = picture ? picture->title : NULL,
                                   .subtitle = picture ? picture->subtitle : NULL,
                                   .categories = categories,
                                   .notes = &wick->notes};
    bool fine = categories && html_write(&w.out, wick->source.tree, wick->naming, &options, &w.why);
    categories_free(categories);
    return finish(&w, wick, is_open, fine, error);
}

static const struct export_format *find_format(const char *name, const char *path,
                                               struct error *error) {
    const struct export_format *format =
        name ? export_format_named(name) : export_format_of_path(path);
    if (format)
        return format;
    struct buffer names = {0};
    export_add_names(&names);
    error_set(error, ERROR_USAGE,
              "%s: neither one of %.*s nor a file name with one of their endings",
              name ? name : path, TEXT_ARGS(buffer_text(&names)));
    buffer_release(&names);
    return NULL;
}

/* The formats have fields for threads and lines, so names contain neither. */
static bool write_format(struct writing *w, const struct wick *wick,
                         const struct export_format *format, const char *title) {
    const struct source *source = &wick->source;
    struct naming_options names = {.no_comm = true, .is_script_text = !source->tree->recorded};
    struct flame_options shape = {.by_samples = wick->by_samples};
    struct export_options options = {.shape = &shape,
                                     .title = title ? title : export_title(source->files[0].path),
                                     .measure = wick->wall ? "wall" : NULL,
                                     .notes = &wick->notes};
    struct naming *naming = naming_of_tree(source->tree, &names);
    bool fine = export_write(&w->out, format, source->tree, naming, &options, &w->why);
    naming_free(naming);
    return fine;
}

bool wick_write_format(struct wick *wick, const char *format, const char *path, const char *title,
                       struct wick_error *error) {
    struct writing w;
    struct error why = {0};
    const struct export_format *found = find_format(format, path, &why);
    if (!found) {
        tell(error, &why);
        return false;
    }
    bool is_open = begin(&w, path), fine = is_open && write_format(&w, wick, found, title);
    return finish(&w, wick, is_open, fine, error);
}
