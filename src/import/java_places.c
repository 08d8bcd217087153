#include "import/java_places.h"

#include <stdlib.h>

static int place_order(const void *a, const void *b) {
    const struct java_place *x = a, *y = b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                  : (x->name.data > y->name.data) - (x->name.data < y->name.data);
}

void java_places_read(struct java_places *places, struct text text) {
    if (places->is_java)
        return;
    places->is_java = true;
    while (text.length) {
        struct text line = text_trim(text_take_line(&text)), word = text_take_word(&line);
        struct java_place place = {.name = text_trim(line)};
        if (place.name.length && text_starts(word, TEXT("0x")) &&
            text_hex_to_u64(text_from(word, 2), &place.number))
            vector_push(&places->list, place);
    }
    if (places->list.count)
        qsort(places->list.items, places->list.count, sizeof *places->list.items, place_order);
}

/* Parse "work (source.java:06)", "write (/lib/libc.so.6)", or a state of the virtual machine: "GC". */
static void take_apart(struct text said, struct text *name, struct text *file, uint32_t *line) {
    size_t open = text_search(said, TEXT(" ("));
    *name = said;
    if (text_search(said, TEXT("generated stub/JIT")) != SIZE_MAX)
        *name = TEXT("STUB");
    else if (open != SIZE_MAX && text_ends(said, TEXT(")"))) {
        struct text place = text_from(text_upto(said, said.length - 1), open + 2);
        *name = text_trim(text_upto(said, open));
        if (!text_to_source(place, file, line))
            *file = place;
    }
}

static uint32_t place_location(const struct java_place *place, struct tree *tree) {
    struct text name, file = {0};
    uint32_t line = 0;
    take_apart(place->name, &name, &file, &line);
    struct function function = {.name = strings_add(tree->strings, name),
                                .file = file.length ? strings_add(tree->strings, file) : 0,
                                .language = strings_add(tree->strings, TEXT("java"))};
    struct location location = {.function = tree_add_function(tree, &function), .line = line};
    return tree_add_location(tree, &location);
}

/* A name is hashed once, however often its number occurs. */
void java_places_push(struct java_places *places, struct addresses *addresses, uint64_t number) {
    struct java_place *list = places->list.items;
    size_t at = search_first(i, 0, places->list.count, list[i].number < number);
    if (at == places->list.count || list[at].number != number) {
        addresses_push(addresses, number, false);
        return;
    }
    if (!list[at].location)
        list[at].location = place_location(&list[at], addresses->tree);
    vector_push(&addresses->stack, list[at].location);
}

void java_places_release(struct java_places *places) {
    vector_release(&places->list);
}
