/*
 * Resolve addresses to names: once for each distinct location that is left, in parallel.
 *
 * A location where functions are inlined has several frames: the function, by its symbol, then the inlined functions from the debug information.
 *
 * Locations are sorted by (object, address), so that a slice of them reads one object's tables in order. Workers fill a slice's frames with texts
 * that the objects own; interning them, which is not thread-safe, comes after.
 */
#include "profile/addr2line.h"
#include "profile/profile.h"
#include "profile/reading.h"
#include "profile/scripted.h"

#include <stdlib.h>

enum { SLICE = 256 };

static const struct note_kind note_unresolved = {
    "unresolved",
    "# code address{|es} {has|have} no symbol; wick doctor FILE says what would help"};

/* What a worker found for a slice. */
struct slice {
    VECTOR(struct inline_frame) inlines;
    struct arena arena; /* names that no object keeps */
    /* The last symbol that addr2line was imitated for, of `last_object`, and its answer. */
    struct symbol last;
    uint32_t last_object;
    struct text last_answer;
    APART;
};

static void slice_release(struct slice *slice) {
    vector_release(&slice->inlines);
    arena_release(&slice->arena);
}

struct resolve {
    struct tree *tree;
    struct objects *objects;
    const struct profile_options *options;
    VECTOR(uint32_t) unnamed; /* locations */
    struct symbol *symbols;   /* one for each of `unnamed`; name.data NULL: none */
    uint32_t *inline_counts;  /* how many frames of its slice's inlines belong to each */
    struct slice *slices;
    bool is_folded; /* leave inlined plumbing of an interpreter out */
    uint8_t *views; /* of each location, for notes about it: see find_views() */
    uint64_t nameless[VIEWS_OF_TIMES + 1];
};

/* perf expands only what it unwound, and only where it has a symbol. */
bool resolve_wants_inlines(const struct profile_options *options, const struct objects *objects,
                           const struct location *location, const struct symbol *symbol) {
    enum object_kind kind = objects_get(objects, location->object)->kind;
    bool is_made =
        kind == OBJECT_MADE || (kind == OBJECT_PERFMAP && !options->quirks.inlines_need_symbol);
    if ((kind != OBJECT_FILE && kind != OBJECT_VDSO && !is_made) ||
        (options->no_inline && !options->source_lines))
        return false;
    return !options->quirks.inlines_need_symbol || (location->unwound && symbol->name.data);
}

/* Without inlined functions, but with lines: the function stands where its innermost inlined one does. */
static void keep_line_only(struct inline_chain *chain) {
    struct inline_frame *first = &chain->items[0], *last = &chain->items[chain->count - 1];
    first->file = last->file;
    first->line = last->line;
    first->column = last->column;
    chain->count = 1;
}

/* Where an interpreter's functions are shown, those that only pass calls on are not (merge.c), inlined ones neither. */
static bool folds_plumbing(const struct tree *tree, const struct profile_options *options) {
    uint32_t python = options->native_frames ? 0 : strings_find(tree->strings, TEXT("python"));
    for (size_t i = 1; python && i < tree->functions.count; i++)
        if (tree->functions.items[i].language == python)
            return true;
    return false;
}

static void fold_plumbing(struct inline_chain *chain) {
    size_t count = 1;
    for (size_t i = 1; i < chain->count; i++)
        if (!scripted_is_plumbing(chain->items[i].name))
            chain->items[count++] = chain->items[i];
    chain->count = count;
}

/* Without debug information, perf uses addr2line's choice among a function's names. */
static void find_alias(struct resolve *r, struct slice *slice, const struct location *location,
                       const struct symbol *symbol, struct inline_chain *chain) {
    if (slice->last_object != location->object || slice->last.start != symbol->start) {
        struct buffer name = {0};
        slice->last_object = location->object;
        slice->last = *symbol;
        objects_addr2line_symbol(r->objects, location->object, location_within(location), &name);
        slice->last_answer = arena_copy(&slice->arena, buffer_text(&name));
        buffer_release(&name);
    }
    if (slice->last_answer.length) {
        struct inline_frame alias = {.name = slice->last_answer, .is_linkage = true};
        vector_push(chain, alias);
    }
}

static void find_inlines(struct resolve *r, struct slice *slice, struct inline_chain *chain,
                         size_t i) {
    const struct location *location = &r->tree->locations.items[r->unnamed.items[i]];
    if (!resolve_wants_inlines(r->options, r->objects, location, &r->symbols[i]))
        return;
    if (!objects_inlines(r->objects, location->object, location_within(location),
                         r->options->source_lines, chain) &&
        r->options->quirks.addr2line_names)
        find_alias(r, slice, location, &r->symbols[i], chain);
    if (chain->count == 0)
        return;
    if (r->is_folded)
        fold_plumbing(chain);
    if (r->options->no_inline)
        keep_line_only(chain);
    for (size_t k = 0; k < chain->count; k++)
        vector_push(&slice->inlines, chain->items[k]);
    r->inline_counts[i] = (uint32_t)chain->count;
}

static void resolve_slice(void *context, unsigned worker, size_t item) {
    struct resolve *r = context;
    size_t end = (item + 1) * SLICE < r->unnamed.count ? (item + 1) * SLICE : r->unnamed.count;
    struct inline_chain chain = {0};
    for (size_t i = item * SLICE; i < end; i++) {
        const struct location *location = &r->tree->locations.items[r->unnamed.items[i]];
        if (!objects_symbol(r->objects, location->object, location_within(location),
                            &r->symbols[i]))
            r->symbols[i] = (struct symbol){0};
        find_inlines(r, &r->slices[item], &chain, i);
    }
    vector_release(&chain);
    context_progress(r->options->context, "resolving", end, r->unnamed.count);
}

struct interned {
    struct text text;
    uint32_t id;
};

/* Interns a text, unless it is the very same bytes as the last one: neighbours are often in one function. Long texts are remembered by the place of
   their bytes: names of megabytes may take turns. */
struct interner {
    struct strings *strings;
    struct interned last;
    VECTOR(struct interned) longs;
    struct index index; /* of longs; numbers are places + 1 */
};

static void interner_release(struct interner *in) {
    vector_release(&in->longs);
    index_release(&in->index);
}

static bool is_same(struct text x, struct text y) {
    return x.data == y.data && x.length == y.length;
}

static uint32_t intern_long(struct interner *in, struct text text) {
    uint64_t place = hash_mix((uintptr_t)text.data, text.length);
    uint32_t number;
    for (struct probe p = index_probe(&in->index, place); (number = index_next(&in->index, &p));)
        if (is_same(in->longs.items[number - 1].text, text))
            return in->longs.items[number - 1].id;
    struct interned added = {text, strings_add(in->strings, text)};
    vector_push(&in->longs, added);
    index_add(&in->index, place, (uint32_t)in->longs.count);
    return added.id;
}

static uint32_t intern(struct interner *in, struct text text) {
    enum { SHORT_MOST = 256 };
    if (!text.length)
        return 0;
    if (!is_same(text, in->last.text))
        in->last =
            (struct interned){text, text.length > SHORT_MOST ? intern_long(in, text)
                                                             : strings_add(in->strings, text)};
    return in->last.id;
}

/* The function goes by its symbol, as debug information knows neither aliases nor clones; perf takes the debug information's word, and
   calls inlined whatever is not called like the symbol. */
static void add_frames(struct resolve *r, struct interner *names, struct interner *files,
                       struct interner *languages, struct location *location,
                       const struct symbol *symbol, const struct inline_frame *inlines,
                       uint32_t count) {
    struct tree *tree = r->tree;
    bool debug_first = r->options->quirks.debug_name_over_symbol;
    location->first_frame = (uint32_t)tree->frames.count;
    location->frame_count = count ? count : 1;
    for (uint32_t k = 0; k < location->frame_count; k++) {
        const struct inline_frame *inlined = count ? &inlines[k] : NULL;
        struct text name = symbol->name;
        struct frame frame = {.inlined = k > 0};
        if (inlined && inlined->name.length && (k > 0 || !name.data || debug_first))
            name = inlined->name;
        if (debug_first && inlined)
            frame.inlined = !text_equal(name, symbol->name);
        frame.name = name.data ? intern(names, name) : 0;
        frame.language = intern(languages, inlined ? inlined->language : symbol->language);
        if (symbol->name.data)
            frame.offset = location->address - symbol->start;
        if (inlined && r->options->source_lines) {
            frame.file = intern(files, inlined->file);
            frame.line = inlined->line;
            frame.column = inlined->column;
        }
        if (!frame.name)
            r->nameless[r->views ? r->views[location - tree->locations.items] : 0]++;
        vector_push(&tree->frames, frame);
    }
}

/* Find each location's inlines, now that no slice grows any more. */
static struct addr2line_place *find_places(struct resolve *r) {
    struct addr2line_place *places = memory_zero(r->unnamed.count, sizeof *places);
    size_t at = 0;
    for (size_t i = 0; i < r->unnamed.count; i++) {
        at = i % SLICE ? at : 0;
        struct inline_frame *inlines =
            r->slices[i / SLICE].inlines.items; /* NULL: there are none */
        places[i] = (struct addr2line_place){r->unnamed.items[i], inlines ? inlines + at : NULL,
                                             r->inline_counts[i], &r->symbols[i]};
        at += r->inline_counts[i];
    }
    return places;
}

static void resolve_intern(struct resolve *r) {
    struct interner names = {.strings = r->tree->strings}, files = names, languages = names;
    struct addr2line_place *places = find_places(r);
    if (r->options->quirks.addr2line_names)
        addr2line_rename(r->tree, places, r->unnamed.count);
    for (size_t i = 0; i < r->unnamed.count; i++)
        add_frames(r, &names, &files, &languages, &r->tree->locations.items[r->unnamed.items[i]],
                   &r->symbols[i], places[i].inlines, (uint32_t)places[i].count);
    interner_release(&names);
    interner_release(&files);
    interner_release(&languages);
    free(places);
}

/* By object, then address. */
static void sort_unnamed(struct resolve *r) {
    const struct location *locations = r->tree->locations.items;
    size_t count = r->unnamed.count;
    uint64_t *addresses = memory_resize(NULL, count, sizeof *addresses);
    uint32_t *objects = memory_resize(NULL, count, sizeof *objects);
    for (size_t i = 0; i < count; i++)
        addresses[i] = locations[r->unnamed.items[i]].address;
    uint32_t *by_address = radix_sort(addresses, count);
    for (size_t i = 0; i < count; i++) {
        by_address[i] = r->unnamed.items[by_address[i]];
        objects[i] = locations[by_address[i]].object;
    }
    uint32_t *by_object = counting_sort(objects, count, objects_count(r->objects) + 1, NULL);
    for (size_t i = 0; i < count; i++)
        r->unnamed.items[i] = by_address[by_object[i]];
    free(addresses);
    free(objects);
    free(by_address);
    free(by_object);
}

/*
 * By location: the views whose stacks go through it. NULL if there is only one view. One step for each node and kind of view. free() it.
 */
static uint8_t *find_views(const struct tree *tree, const struct profile_options *options) {
    if (!options->each || !tree_knows(tree, TIMES_BOTH))
        return NULL;
    uint8_t *seen = memory_zero(tree->nodes.count, sizeof *seen);
    uint8_t *views = memory_zero(tree->locations.count, sizeof *views);
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        uint8_t of = series_views(tree, &tree->series.items[cell->series]);
        for (uint32_t n = cell->node; n && (seen[n] & of) != of; n = tree->nodes.items[n].parent) {
            seen[n] |= of;
            views[tree->nodes.items[n].location] |= of;
        }
    }
    free(seen);
    return views;
}

static void add_object_notes(struct resolve *r) {
    const struct tree *tree = r->tree;
    uint32_t count = objects_count(r->objects);
    uint8_t *views = memory_zero(count + 1, sizeof *views);
    for (size_t i = 1; i < tree->locations.count; i++)
        views[tree->locations.items[i].object] |= r->views[i];
    for (uint32_t id = 1; id <= count; id++) {
        struct notes notes = {0};
        objects_notes_of(r->objects, id, &notes);
        notes_merge_for(&r->tree->notes, &notes, views[id] == VIEWS_OF_TIMES ? 0 : views[id]);
        notes_release(&notes);
    }
    free(views);
}

static void add_notes(struct resolve *r) {
    for (uint8_t views = 0; views <= VIEWS_OF_TIMES; views++)
        if (r->nameless[views])
            notes_add_for(&r->tree->notes, views, &note_unresolved, r->nameless[views]);
    if (r->views)
        add_object_notes(r);
    else
        objects_notes(r->objects, &r->tree->notes);
}

void profile_resolve(struct tree *tree, struct objects *objects,
                     const struct profile_options *options) {
    struct resolve r = {.tree = tree, .objects = objects, .options = options};
    r.is_folded = folds_plumbing(tree, options);
    for (size_t i = 1; i < tree->locations.count; i++) {
        const struct location *location = &tree->locations.items[i];
        if (location->object && !location->function)
            vector_push(&r.unnamed, (uint32_t)i);
    }
    sort_unnamed(&r);
    size_t slices = (r.unnamed.count + SLICE - 1) / SLICE;
    r.symbols = memory_zero(r.unnamed.count, sizeof *r.symbols);
    r.inline_counts = memory_zero(r.unnamed.count, sizeof *r.inline_counts);
    r.slices = memory_zero(slices, sizeof *r.slices);
    unsigned threads = context_threads(options->context);
    parallel_run(threads, slices, resolve_slice, &r);
    r.views = find_views(tree, options);
    resolve_intern(&r);
    add_notes(&r);
    for (size_t i = 0; i < slices; i++)
        slice_release(&r.slices[i]);
    free(r.views);
    free(r.slices);
    free(r.inline_counts);
    free(r.symbols);
    vector_release(&r.unnamed);
}
