/*
 * Notes. Threads add them in any order, so any order of adding and merging must give the same notes: counts are
 * added, and of several examples the first in the input is kept.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

static struct note *notes_find(const struct notes *notes, const struct note_kind *kind,
                               uint8_t views) {
    for (size_t i = 0; i < notes->count; i++)
        if (notes->items[i].views == views && strcmp(notes->items[i].kind->name, kind->name) == 0)
            return &notes->items[i];
    return NULL;
}

static struct note *notes_get(struct notes *notes, const struct note_kind *kind) {
    struct note *note = notes_find(notes, kind, 0);
    if (note)
        return note;
    vector_push(notes, ((struct note){.kind = kind, .where = UINT64_MAX}));
    return &notes->items[notes->count - 1];
}

/* A kind and its texts, in one allocation. */
static struct note_kind *kind_copy(const struct note_kind *kind) {
    size_t name = strlen(kind->name) + 1, sentence = strlen(kind->sentence) + 1;
    struct note_kind *copy = memory_alloc(sizeof *copy + name + sentence);
    char *texts = (char *)(copy + 1);
    memcpy(texts, kind->name, name);
    memcpy(texts + name, kind->sentence, sentence);
    *copy = (struct note_kind){.name = texts, .sentence = texts + name, .apart = kind->apart};
    return copy;
}

static bool note_is_like(const struct note *note, const struct note *other, uint8_t views) {
    return note->views == views && strcmp(note->kind->name, other->kind->name) == 0 &&
           strcmp(note->example ? note->example : "", other->example ? other->example : "") == 0;
}

/* Find or add the note that a note of another set is merged into. */
static struct note *notes_get_like(struct notes *notes, const struct note *other, uint8_t views) {
    struct note *found = other->kind->apart ? NULL : notes_find(notes, other->kind, views);
    for (size_t i = 0; i < notes->count && other->kind->apart && !found; i++)
        if (note_is_like(&notes->items[i], other, views))
            found = &notes->items[i];
    if (found)
        return found;
    struct note_kind *own = other->own ? kind_copy(other->kind) : NULL;
    vector_push(
        notes,
        ((struct note){
            .kind = own ? own : other->kind, .where = UINT64_MAX, .views = views, .own = own}));
    return &notes->items[notes->count - 1];
}

static void note_release(struct note *note) {
    free(note->example);
    free(note->own);
}

/* The first example in the order of the input wins; of two at one place, the smaller text: any order of adding
   gives the same note. Takes over `example`. */
static void note_keep(struct note *note, uint64_t where, char *example) {
    bool better = example && (!note->example || where < note->where ||
                              (where == note->where && strcmp(example, note->example) < 0));
    if (better) {
        free(note->example);
        note->example = example;
        note->where = where;
    } else {
        free(example);
    }
}

void notes_add(struct notes *notes, const struct note_kind *kind, uint64_t count, uint64_t where,
               const char *example, ...) {
    struct note *note = notes_get(notes, kind);
    note->count = saturating_add(note->count, count);
    if (!example || (note->example && where > note->where))
        return;
    va_list list;
    va_start(list, example);
    char *text = memory_print(NULL, example, list);
    va_end(list);
    note_keep(note, where, text);
}

static void merge_one(struct notes *into, const struct note *other, uint8_t views) {
    struct note *note = notes_get_like(into, other, views);
    note->count = saturating_add(note->count, other->count);
    if (other->example)
        note_keep(note, other->where, memory_copy(other->example, strlen(other->example)));
}

void notes_merge(struct notes *into, const struct notes *from) {
    for (size_t i = 0; i < from->count; i++)
        merge_one(into, &from->items[i], from->items[i].views);
}

void notes_merge_for(struct notes *into, const struct notes *from, uint8_t views) {
    for (size_t i = 0; i < from->count; i++)
        merge_one(into, &from->items[i], views);
}

void notes_add_for(struct notes *notes, uint8_t views, const struct note_kind *kind,
                   uint64_t count) {
    merge_one(notes, &(struct note){.kind = kind, .count = count}, views);
}

static bool has_kind(const struct notes *notes, const struct note_kind *kind, uint8_t view) {
    for (size_t i = 0; i < notes->count; i++)
        if ((!notes->items[i].views || notes->items[i].views & view) &&
            strcmp(notes->items[i].kind->name, kind->name) == 0)
            return true;
    return false;
}

void notes_choose(struct notes *notes, uint8_t view, uint8_t otherwise) {
    struct notes chosen = {0};
    for (size_t i = 0; i < notes->count; i++) {
        const struct note *note = &notes->items[i];
        uint8_t wanted = has_kind(notes, note->kind, view) ? view : otherwise;
        if (!note->views || note->views & wanted)
            merge_one(&chosen, note, 0);
    }
    notes_release(notes);
    *notes = chosen;
}

void notes_add_copied(struct notes *notes, const struct note_kind *kind, uint64_t count,
                      uint64_t where, const char *example) {
    struct note_kind mark = *kind;
    struct note other = {.kind = &mark,
                         .count = count,
                         .where = where,
                         .example = (char *)(uintptr_t)example,
                         .own = &mark};
    notes_merge(notes, &(struct notes){.items = &other, .count = 1});
}

static int note_order(const void *a, const void *b) {
    const struct note *x = a, *y = b;
    int order = strcmp(x->kind->name, y->kind->name);
    if (!order && x->example && y->example)
        order = strcmp(x->example, y->example);
    return order ? order : (x->views > y->views) - (x->views < y->views);
}

void notes_sort(struct notes *notes) {
    if (notes->count)
        qsort(notes->items, notes->count, sizeof *notes->items, note_order);
}

void notes_drop(struct notes *notes, const char *name) {
    size_t kept = 0;
    for (size_t i = 0; i < notes->count; i++) {
        if (strcmp(notes->items[i].kind->name, name) == 0)
            note_release(&notes->items[i]);
        else
            notes->items[kept++] = notes->items[i];
    }
    notes->count = kept;
}

/* Drop '{' and '}', the text between '{' and '|' unless the count is 1, and the text between '|' and '}' if it is. */
void counted_print(struct buffer *buffer, const char *sentence, uint64_t count) {
    bool chosen = true;
    for (const char *c = sentence; *c; c++) {
        if (*c == '{')
            chosen = count == 1;
        else if (*c == '|')
            chosen = !chosen;
        else if (*c == '}')
            chosen = true;
        else if (chosen && *c == '#')
            buffer_add_u64(buffer, count);
        else if (chosen)
            buffer_add_char(buffer, *c);
    }
}

void note_print(const struct note *note, struct buffer *buffer) {
    struct buffer sentence = {0};
    counted_print(&sentence, note->kind->sentence, note->count);
    buffer_add_shown(buffer, buffer_text(&sentence)); /* the sentence may come from a file */
    buffer_release(&sentence);
    if (note->example) {
        buffer_add(buffer, TEXT(" ("));
        buffer_add_shown(buffer, text_of(note->example));
        buffer_add_char(buffer, ')');
    }
}

void notes_release(struct notes *notes) {
    for (size_t i = 0; i < notes->count; i++)
        note_release(&notes->items[i]);
    vector_release(notes);
}
