/*
 * The consistent palette: the colour of each name, stored in a file between graphs so that they can be compared side by side. Lines are
 * `name->rgb(r,g,b)`; names may contain "->" (operator->), so the last one on the line is the separator.
 */
#include "view/colour.h"

#include <stdlib.h>

static const struct note_kind note_bad_line = {
    "palette-lines",
    "# line{|s} of the palette file {is|are} not name->rgb(r,g,b) and {was|were} skipped"};

struct palette_map {
    struct strings *names;
    VECTOR(struct colour) colours; /* by name; 0 is none */
};

struct palette_map *palette_map_new(void) {
    struct palette_map *map = memory_zero(1, sizeof *map);
    map->names = strings_new();
    vector_push(&map->colours, ((struct colour){0}));
    return map;
}

void palette_map_free(struct palette_map *map) {
    if (!map)
        return;
    strings_free(map->names);
    vector_release(&map->colours);
    free(map);
}

/* The last of two equal names wins, as if lines were read one after the other. */
static void palette_map_set(struct palette_map *map, struct text name, struct colour colour) {
    uint32_t id = strings_add(map->names, name);
    if (id == map->colours.count)
        vector_push(&map->colours, colour);
    else
        map->colours.items[id] = colour;
}

struct colour palette_map_take(struct palette_map *map, struct text name, struct colour colour) {
    uint32_t id = strings_find(map->names, name);
    if (id)
        return map->colours.items[id];
    palette_map_set(map, name, colour);
    return colour;
}

static bool channel_parse(struct text *t, char end, uint8_t *channel) {
    size_t stop = text_find(*t, end);
    uint64_t value;
    if (stop == SIZE_MAX || !text_to_u64(text_trim(text_upto(*t, stop)), &value) || value > 255)
        return false;
    *channel = (uint8_t)value;
    *t = text_from(*t, stop + 1);
    return true;
}

static bool line_parse(struct palette_map *map, struct text line) {
    size_t arrow = SIZE_MAX;
    for (size_t i = line.length; i-- > 1 && arrow == SIZE_MAX;)
        if (line.data[i - 1] == '-' && line.data[i] == '>')
            arrow = i - 1;
    if (arrow == SIZE_MAX)
        return false;
    struct text rest = text_from(line, arrow + 2);
    struct colour colour;
    if (!text_starts(rest, TEXT("rgb(")))
        return false;
    rest = text_from(rest, 4);
    if (!channel_parse(&rest, ',', &colour.red) || !channel_parse(&rest, ',', &colour.green) ||
        !channel_parse(&rest, ')', &colour.blue) || rest.length)
        return false;
    palette_map_set(map, text_upto(line, arrow), colour);
    return true;
}

void palette_map_read(struct palette_map *map, struct text text, struct notes *notes) {
    for (uint64_t number = 1; text.length; number++) {
        struct text line = text_trim(text_take_line(&text));
        if (line.length && !line_parse(map, line))
            notes_add(notes, &note_bad_line, 1, number, "line %llu", (unsigned long long)number);
    }
}

static int order_by_name(const void *a, const void *b, void *names) {
    return text_compare(strings_get(names, *(const uint32_t *)a),
                        strings_get(names, *(const uint32_t *)b));
}

/* A line break inside a name would read back as two lines: such names are not kept. */
void palette_map_write(const struct palette_map *map, struct out *out) {
    size_t count = map->colours.count - 1;
    uint32_t *ids = memory_resize(NULL, count + 1, sizeof *ids);
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)i + 1;
    qsort_r(ids, count, sizeof *ids, order_by_name, map->names);
    for (size_t i = 0; i < count; i++) {
        struct text name = strings_get(map->names, ids[i]);
        struct colour c = map->colours.items[ids[i]];
        if (text_find(name, '\n') != SIZE_MAX)
            continue;
        out_text(out, name);
        out_printf(out, "->rgb(%u,%u,%u)\n", c.red, c.green, c.blue);
    }
    free(ids);
}
