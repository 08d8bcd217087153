#include "import/reader.h"

#include <stdlib.h>

const struct note_kind note_torn = {"torn-lines", "# lines could not be read and were left out"};

bool lines_next(struct lines *lines, struct text *line) {
    if (lines->rest.length == 0)
        return false;
    size_t end = text_find(lines->rest, '\n');
    *line = text_upto(lines->rest, end == SIZE_MAX ? lines->rest.length : end);
    lines->rest = text_from(lines->rest, end == SIZE_MAX ? lines->rest.length : end + 1);
    if (line->length && line->data[line->length - 1] == '\r')
        line->length--;
    lines->number++;
    return true;
}

uint64_t line_number(struct text content, size_t offset) {
    uint64_t number = 1;
    struct text before = text_upto(content, offset);
    for (size_t end; (end = text_find(before, '\n')) != SIZE_MAX; number++)
        before = text_from(before, end + 1);
    return number;
}

void note_torn_line(struct tree *tree, const char *path, uint64_t number, struct text line) {
    size_t shown = line.length < 80 ? line.length : 80;
    notes_add(&tree->notes, &note_torn, 1, number, "%s: line %llu: %.*s", path,
              (unsigned long long)number, (int)shown, line.data);
}

void stack_init(struct stack *stack, struct tree *tree, struct text unit) {
    *stack = (struct stack){.tree = tree};
    struct series series = {.event = event_named(tree, unit, unit, EVENT_OTHER)};
    stack->series = tree_add_series(tree, &series);
}

void stack_release(struct stack *stack) {
    vector_release(&stack->locations);
}

void stack_push_kinds(struct stack *stack, struct text name, uint32_t kinds) {
    struct location location = {.name = strings_add(stack->tree->strings, name),
                                .kinds = (uint8_t)kinds};
    vector_push(&stack->locations, tree_add_location(stack->tree, &location));
}

void stack_push(struct stack *stack, struct text name) {
    stack_push_kinds(stack, name, 0);
}

void stack_reverse(struct stack *stack) {
    for (size_t i = 0, j = stack->locations.count; i + 1 < j; i++) {
        uint32_t swap = stack->locations.items[i];
        stack->locations.items[i] = stack->locations.items[--j];
        stack->locations.items[j] = swap;
    }
}

void stack_count(struct stack *stack, uint64_t samples, uint64_t weight) {
    uint32_t node = 0;
    for (size_t i = 0; i < stack->locations.count; i++)
        node = tree_add_node(stack->tree, node, stack->locations.items[i]);
    tree_count(stack->tree, node, stack->series, samples, weight);
    stack->locations.count = 0;
}

uint32_t event_named(struct tree *tree, struct text name, struct text unit, enum event_kind kind) {
    for (size_t i = 1; i < tree->events.count; i++)
        if (text_equal(strings_get(tree->strings, tree->events.items[i].name), name))
            return (uint32_t)i;
    return tree_add_event(tree, name, unit, kind);
}

uint32_t object_named(struct tree *tree, struct text path) {
    if (!tree->objects)
        tree->objects = objects_new(&(struct objects_options){0});
    return objects_add(tree->objects, &(struct object_identity){.path = path, .kind = OBJECT_NAME});
}
