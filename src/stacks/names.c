/*
 * Name every location; names_series.c names the series.
 *
 * A location of a perf.data has frames with a symbol each; a location of a script text has the printed symbol and object; a location of any other
 * text has a name that is used as it is. A frame's labels are computed once for each distinct (symbol, object), not once for each address: a
 * program has a few thousand of those.
 *
 * inferno's names depend on whether the comm begins with "java", so locations have a second set of names for such series.
 */
#include "stacks/names.h"
#include "object/made.h"

#include <stdlib.h>

/* ---- labels ------------------------------------------------------------------------------- */

void namer_push(struct namer *namer, struct text object, uint32_t kinds) {
    struct naming *naming = namer->naming;
    bool unknown = text_equal(object, TEXT("[unknown]"));
    if (!(kinds & KIND_ROOT))
        namer_strip(namer);
    struct label label = {.name = strings_add(naming->strings, buffer_text(&namer->name)),
                          .object = unknown ? 0 : strings_add(naming->strings, object),
                          .kinds = kinds & ~(uint32_t)KIND_SCRIPT};
    vector_push(&naming->labels, label);
}

bool namer_skips_after(const struct namer *namer, struct text symbol) {
    for (size_t i = 0; i < namer->options->skip_after_count; i++)
        if (text_equal(text_of(namer->options->skip_after[i]), symbol))
            return true;
    return false;
}

struct naming_entry naming_entry_from(const struct naming *naming, size_t first) {
    size_t count = naming->labels.count - first;
    return (struct naming_entry){.first = (uint32_t)first,
                                 .count = count > UINT16_MAX ? UINT16_MAX : (uint16_t)count};
}

/* ---- frames ------------------------------------------------------------------------------- */

static uint32_t kinds_of_object(const struct objects *objects, uint32_t id) {
    if (!id)
        return 0;
    struct text shown = objects_shown(objects, id);
    switch (objects_get(objects, id)->kind) {
    case OBJECT_KERNEL:
    case OBJECT_MODULE:
    case OBJECT_BPF:
        return KIND_KERNEL;
    case OBJECT_PERFMAP:
    case OBJECT_MADE:
        return KIND_JIT;
    case OBJECT_VDSO:
        return KIND_LIBRARY;
    case OBJECT_FILE:
    case OBJECT_NAME:
        return script_object_kinds(shown, false) & (KIND_LIBRARY | KIND_JIT);
    case OBJECT_NONE:
        break;
    }
    return 0;
}

/* The frame as perf script prints it, read as inferno reads it; false if it sees none. */
static bool frame_through_script(struct names *n, struct named_frame *frame,
                                 const struct known_frame *key) {
    n->text.count = 0;
    buffer_add(&n->text, frame->address.length ? frame->address : TEXT("0"));
    buffer_add_char(&n->text, ' ');
    buffer_add(&n->text, frame->symbol);
    if (key->symbol)
        buffer_printf(&n->text, "+0x%llx", (unsigned long long)key->offset);
    buffer_add(&n->text, TEXT(" ("));
    buffer_add(&n->text, key->kinds & KIND_INLINED ? TEXT("inlined") : frame->object);
    buffer_add_char(&n->text, ')');
    struct script_frame parsed;
    if (!script_frame_parse_inferno(text_trim_end(text_lossy(buffer_text(&n->text), &n->lossy)),
                                    &parsed))
        return false;
    frame->symbol = parsed.symbol;
    frame->object = parsed.object;
    frame->kinds = script_object_kinds(parsed.object, true) | (key->kinds & KIND_UNKNOWN);
    return true;
}

/* java.util of java.util.HashMap.get; a class without a package stands for itself. */
static struct text java_package(struct text method) {
    size_t dot = text_find_last(method, '.');
    struct text class_name = dot == SIZE_MAX ? method : text_upto(method, dot);
    dot = text_find_last(class_name, '.');
    return dot == SIZE_MAX ? class_name : text_upto(class_name, dot);
}

/* Renames the labels from `first` on to what frames are to be told apart by. Where that is unknown, the function's name is kept. */
static void regroup(struct names *n, const struct known_frame *key, size_t first) {
    struct naming *naming = n->namer.naming;
    struct buffer *name = &n->namer.name;
    for (size_t i = first; i < naming->labels.count; i++) {
        struct label *label = &naming->labels.items[i];
        struct text object = strings_get(naming->strings, label->object);
        size_t slash = text_find_last(object, '/');
        name->count = 0;
        switch (n->namer.options->frames) {
        case FRAME_OBJECT:
            buffer_add_frame_name(name, object.length ? object : TEXT("[unknown]"));
            break;
        case FRAME_MODULE:
            if (key->module)
                buffer_add_frame_name(name, strings_get(n->tree->strings, key->module));
            else if (key->kinds & KIND_JAVA && key->symbol)
                buffer_add_frame_name(name,
                                      java_package(strings_get(n->tree->strings, key->symbol)));
            else
                buffer_add_frame_name(name,
                                      slash == SIZE_MAX ? object : text_from(object, slash + 1));
            if (!name->count)
                buffer_add(name, TEXT("[unknown]"));
            break;
        case FRAME_LINE:
            if (!key->file)
                continue;
            buffer_add_frame_name(name, strings_get(n->tree->strings, key->file));
            buffer_printf(name, ":%u", key->line);
            break;
        case FRAME_ADDRESS:
            buffer_add(name, strings_get(naming->strings, label->name));
            if (key->symbol && key->offset == OFFSET_UNKNOWN)
                buffer_printf(name, "@0x%llx", (unsigned long long)key->address);
            else
                buffer_printf(name, "+0x%llx",
                              (unsigned long long)(key->symbol ? key->offset : key->address));
            break;
        case FRAME_FUNCTION:
            return;
        }
        label->name = strings_add(naming->strings, buffer_text(name));
    }
}

/* Works a frame's labels out. */
static void frame_name(struct names *n, struct known_frame *key, bool is_text) {
    const struct tree *tree = n->tree;
    size_t first = n->namer.naming->labels.count;
    struct named_frame frame = {
        .symbol = key->symbol ? strings_get(tree->strings, key->symbol) : TEXT("[unknown]"),
        .object = key->object ? objects_shown(tree->objects, key->object) : TEXT("[unknown]"),
        .kinds = key->kinds,
        .file = strings_get(tree->strings, key->file),
        .line = key->line};
    n->address.count = 0;
    if (key->address || !is_text)
        buffer_add_hex(&n->address, key->address);
    frame.address = buffer_text(&n->address);
    n->namer.cut = false;
    if (!n->namer.options->quirks.names_through_text)
        names_wick(&n->namer, &frame);
    else if (is_text || frame_through_script(n, &frame, key))
        names_inferno(&n->namer, &frame, n->java);
    regroup(n, key, first);
    key->entry = naming_entry_from(n->namer.naming, first);
    key->entry.cut = n->namer.cut;
}

static bool known_equal(const struct known_frame *a, const struct known_frame *b) {
    return a->symbol == b->symbol && a->object == b->object && a->file == b->file &&
           a->line == b->line && a->kinds == b->kinds && a->address == b->address &&
           a->offset == b->offset;
}

static struct naming_entry frame_entry(struct names *n, struct known_frame *key, bool is_text) {
    uint64_t hash =
        hash_mix((uint64_t)key->symbol << 32 | key->object, (uint64_t)key->file << 32 | key->line);
    hash = hash_mix(hash + key->kinds, hash_mix(key->address, key->offset));
    uint32_t id;
    for (struct probe p = index_probe(&n->index, hash); (id = index_next(&n->index, &p));)
        if (known_equal(&n->known.items[id], key))
            return n->known.items[id].entry;
    frame_name(n, key, is_text);
    index_add(&n->index, hash, (uint32_t)n->known.count);
    vector_push(&n->known, *key);
    return key->entry;
}

/* ---- locations ---------------------------------------------------------------------------- */

/* A name from a text that is not perf's needs no care. inferno leaves a ';' in it, so that it divides frames. */
static bool wants_lines(const struct names *n) {
    return n->namer.options->source_lines || n->namer.options->frames == FRAME_LINE;
}

static void key_add_source(struct names *n, struct known_frame *key, const struct frame *frame) {
    if (!wants_lines(n))
        return;
    key->file = frame->file;
    key->line = frame->line;
}

static struct naming_entry location_plain(struct names *n, const struct location *location) {
    size_t first = n->namer.naming->labels.count;
    const struct function *function = &n->tree->functions.items[location->function];
    uint32_t language = kind_of_language(strings_get(n->tree->strings, function->language));
    struct text object = location->object ? objects_shown(n->tree->objects, location->object)
                         : language && function->file
                             ? strings_get(n->tree->strings, function->file)
                             : TEXT("[unknown]");
    struct text rest = strings_get(n->tree->strings, location_name(n->tree, location));
    struct frame frame = location_frame(n->tree, location, 0);
    struct known_frame key = {.module = function->module};
    key_add_source(n, &key, &frame);
    bool cut = namer_skips_after(&n->namer, rest);
    for (bool more = true; more;) {
        size_t end = n->namer.options->quirks.names_keep_divider ? text_find(rest, ';') : SIZE_MAX;
        more = end != SIZE_MAX;
        n->namer.name.count = 0;
        buffer_add_frame_name(&n->namer.name, more ? text_upto(rest, end) : rest);
        namer_add_source(&n->namer, strings_get(n->tree->strings, frame.file), frame.line);
        if (!n->namer.options->quirks.names_through_text &&
            name_unmarked(rest).length == rest.length)
            namer_mark(&n->namer, location->kinds); /* the text may have marked it already */
        namer_push(&n->namer, object, location->kinds | language);
        rest = more ? text_from(rest, end + 1) : rest;
    }
    if (n->namer.options->frames != FRAME_ADDRESS)
        regroup(n, &key, first);
    struct naming_entry entry = naming_entry_from(n->namer.naming, first);
    entry.cut = cut;
    return entry;
}

static struct naming_entry location_script(struct names *n, const struct location *location) {
    struct known_frame key = {.symbol = location_name(n->tree, location),
                              .object = location->object,
                              .kinds = location->kinds,
                              .address = location->raw};
    struct frame frame = location_frame(n->tree, location, 0);
    key_add_source(n, &key, &frame);
    return frame_entry(n, &key, true);
}

/* The offset is part of the name only where inferno fails to see it: behind an object with a space in its path. */
static bool offset_shows(const struct names *n, uint32_t object) {
    return n->namer.options->quirks.names_through_text && object &&
           text_find(objects_shown(n->tree->objects, object), ' ') != SIZE_MAX;
}

static bool has_chains(const struct tree *tree) {
    for (size_t i = 1; i < tree->events.count; i++)
        if (tree->events.items[i].chains)
            return true;
    return false;
}

/* Of code that was made: what its runtime says, or how it spells the name. */
static uint32_t language_of(const struct tree *tree, const struct frame *frame) {
    struct text language = strings_get(tree->strings, frame->language);
    return kind_of_language(frame->language
                                ? language
                                : made_name_read(strings_get(tree->strings, frame->name)).language);
}

static struct known_frame location_key(struct names *n, const struct location *location,
                                       const struct frame *frame) {
    if (n->last_object != location->object) {
        n->last_object = location->object;
        n->last_kinds = kinds_of_object(n->tree->objects, location->object);
    }
    struct known_frame key = {.object = location->object, .kinds = n->last_kinds};
    if (location->mode == MODE_KERNEL || location->mode == MODE_GUEST_KERNEL)
        key.kinds = KIND_KERNEL;
    key.kinds |= location->kinds & KIND_WAKER;
    if (!frame || !frame->name) {
        key.kinds |= KIND_UNKNOWN;
        if (n->namer.options
                ->addresses || /* as perf script prints it: in files, where it is there */
            n->namer.options->frames == FRAME_ADDRESS)
            key.address = n->sampled_addresses ? location->raw : location->address;
        return key;
    }
    key.symbol = frame->name;
    if (key.kinds & KIND_JIT && !n->namer.options->quirks.names_through_text)
        key.kinds |= language_of(n->tree, frame);
    if (frame->inlined)
        key.kinds |= KIND_INLINED;
    if (n->namer.options->frames == FRAME_ADDRESS)
        key.offset = frame->offset;
    if (key.offset == OFFSET_UNKNOWN)
        key.address = location->address;
    key_add_source(n, &key, frame);
    if (offset_shows(n, location->object) && frame->offset != OFFSET_UNKNOWN)
        key.offset = frame->offset;
    return key;
}

/* Several frames: their labels have to stand together. */
static struct naming_entry location_frames(struct names *n, const struct location *location) {
    struct naming *naming = n->namer.naming;
    VECTOR(struct label) labels = {0};
    bool cut = false;
    for (uint32_t i = 0; i < location->frame_count; i++) {
        bool upside_down = location->kinds & KIND_WAKER;
        uint32_t place = upside_down ? location->frame_count - 1 - i : i;
        struct frame frame = location_frame(n->tree, location, place);
        struct known_frame key = location_key(n, location, &frame);
        struct naming_entry entry = frame_entry(n, &key, false);
        if (entry.cut)
            labels.count = 0, cut = true;
        for (uint32_t k = 0; k < entry.count; k++)
            vector_push(&labels, naming->labels.items[entry.first + k]);
    }
    size_t first = naming->labels.count;
    for (size_t i = 0; i < labels.count; i++)
        vector_push(&naming->labels, labels.items[i]);
    vector_release(&labels);
    struct naming_entry entry = naming_entry_from(naming, first);
    entry.cut = cut;
    return entry;
}

/* perf expands inlined functions only where it unwound the stack itself. */
static struct naming_entry location_entry(struct names *n, const struct location *location) {
    if (location->function)
        return location->kinds & KIND_SCRIPT ? location_script(n, location)
                                             : location_plain(n, location);
    bool one = location->frame_count <= 1 ||
               (n->namer.options->quirks.inlines_of_unwound && !location->unwound);
    if (!one)
        return location_frames(n, location);
    struct known_frame key = location_key(
        n, location, location->frame_count ? &n->tree->frames.items[location->first_frame] : NULL);
    return frame_entry(n, &key, false);
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void names_release(struct names *n) {
    buffer_release(&n->namer.name);
    buffer_release(&n->namer.repaired);
    buffer_release(&n->text);
    buffer_release(&n->address);
    buffer_release(&n->lossy);
    buffer_release(&n->comm);
    vector_release(&n->known);
    index_release(&n->index);
    free(n->numbered);
}

static void name_java(struct names *n, struct naming *naming) {
    n->java = true;
    n->known.count = 0;
    vector_push(&n->known, ((struct known_frame){0}));
    index_release(&n->index);
    vector_push(&naming->alternates, ((struct naming_entry){0}));
    for (size_t i = 1; i < n->tree->locations.count; i++)
        vector_push(&naming->alternates, location_entry(n, &n->tree->locations.items[i]));
}

struct naming *naming_of_tree(const struct tree *tree, const struct naming_options *options) {
    struct naming *naming = memory_zero(1, sizeof *naming);
    naming->strings = strings_new();
    struct names n = {.tree = tree, .namer = {.options = options, .naming = naming}};
    n.sampled_addresses =
        options->quirks.names_through_text && !options->is_script_text && !has_chains(tree);
    vector_push(&n.known, ((struct known_frame){0}));
    vector_push(&naming->locations, ((struct naming_entry){0}));
    vector_push(&naming->series, ((struct naming_entry){0}));
    for (size_t i = 1; i < tree->locations.count; i++)
        vector_push(&naming->locations, location_entry(&n, &tree->locations.items[i]));
    bool java = false;
    if (options->group_threads && !options->show_tid)
        n.numbered = numbered_threads(tree);
    for (size_t i = 1; i < tree->series.count; i++) {
        vector_push(&naming->series, names_series_entry(&n, &tree->series.items[i]));
        java |= naming->series.items[i].alternate;
    }
    if (java)
        name_java(&n, naming);
    names_release(&n);
    return naming;
}

void naming_free(struct naming *naming) {
    if (!naming)
        return;
    strings_free(naming->strings);
    vector_release(&naming->labels);
    vector_release(&naming->locations);
    vector_release(&naming->alternates);
    vector_release(&naming->series);
    free(naming);
}

static const struct note_kind note_unknown = {"unknown-frames",
                                              "# frame{|s} with neither symbol nor object "
                                              "{was|were} dropped; --keep-unknown shows {it|them}"};

static bool all_are_named(const struct naming *naming) {
    for (size_t i = 1; i < naming->locations.count; i++)
        if (naming->locations.items[i].count == 0)
            return false;
    return true;
}

/* Each node left out counts once for each sample below it. */
void naming_notes(const struct tree *tree, const struct naming *naming, struct notes *notes) {
    if (all_are_named(naming))
        return;
    /* How many frames on the way to each node have no name; parents stand before their children. */
    uint32_t *nameless = memory_zero(tree->nodes.count, sizeof *nameless);
    uint64_t lost = 0;
    for (size_t i = 1; i < tree->nodes.count; i++) {
        const struct node *node = &tree->nodes.items[i];
        nameless[i] = nameless[node->parent] + (naming->locations.items[node->location].count == 0);
    }
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        if (!naming->series.items[cell->series].skip)
            lost += cell->samples * nameless[cell->node];
    }
    if (lost)
        notes_add(notes, &note_unknown, lost, 0, NULL);
    free(nameless);
}

struct naming *naming_with_notes(const struct tree *tree, struct naming_options *options, bool each,
                                 enum times times, struct notes *notes) {
    options->is_script_text = !tree->recorded;
    struct naming *naming = naming_of_tree(tree, options);
    notes_merge(notes, &tree->notes);
    struct tree *view = each && tree_knows(tree, times) ? tree_view_new(tree, times) : NULL;
    naming_notes(view ? view : tree, naming, notes);
    tree_view_free(view);
    return naming;
}
