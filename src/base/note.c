/*
 * Notes. Threads add them as they come, so any order of adding and merging must give the same ones: counts add up, and of several examples
 * the one that stands first in the input is kept.
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

static struct note *notes_find(const struct notes *notes, const struct note_kind *kind) {
    for (size_t i = 0; i < notes->count; i++)
        if (strcmp(notes->items[i].kind->name, kind->name) == 0)
            return &notes->items[i];
    return NULL;
}

static struct note *notes_get(struct notes *notes, const struct note_kind *kind) {
    struct note *note = notes_find(notes, kind);
    if (note)
        return note;
    vector_push(notes, ((struct note){.kind = kind, .where = UINT64_MAX}));
    return &notes->items[notes->count - 1];
}

/* Of another's notes: what it is added to. */
static struct note *notes_get_like(struct notes *notes, const struct note *other) {
    if (!other->kind->apart)
        return notes_get(notes, other->kind);
    for (size_t i = 0; i < notes->count; i++) {
        struct note *note = &notes->items[i];
        if (note->kind == other->kind && strcmp(note->example, other->example) == 0)
            return note;
    }
    vector_push(notes, ((struct note){.kind = other->kind, .where = UINT64_MAX}));
    return &notes->items[notes->count - 1];
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

void notes_merge(struct notes *into, const struct notes *from) {
    for (size_t i = 0; i < from->count; i++) {
        const struct note *other = &from->items[i];
        struct note *note = notes_get_like(into, other);
        note->count = saturating_add(note->count, other->count);
        if (other->example)
            note_keep(note, other->where, memory_copy(other->example, strlen(other->example)));
    }
}

static int note_order(const void *a, const void *b) {
    const struct note *x = a, *y = b;
    int order = strcmp(x->kind->name, y->kind->name);
    return order || !x->example || !y->example ? order : strcmp(x->example, y->example);
}

void notes_sort(struct notes *notes) {
    if (notes->count)
        qsort(notes->items, notes->count, sizeof *notes->items, note_order);
}

void notes_drop(struct notes *notes, const char *name) {
    size_t kept = 0;
    for (size_t i = 0; i < notes->count; i++) {
        if (strcmp(notes->items[i].kind->name, name) == 0)
            free(notes->items[i].example);
        else
            notes->items[kept++] = notes->items[i];
    }
    notes->count = kept;
}

/* '{' and '}' are left out, and what stands between '{' and '|' unless there is one, between '|' and '}' if there is. */
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
    counted_print(buffer, note->kind->sentence, note->count);
    if (note->example) {
        buffer_add(buffer, TEXT(" ("));
        buffer_add_shown(buffer, text_of(note->example));
        buffer_add_char(buffer, ')');
    }
}

void notes_release(struct notes *notes) {
    for (size_t i = 0; i < notes->count; i++)
        free(notes->items[i].example);
    vector_release(notes);
}
