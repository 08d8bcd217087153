/*
 * Frames and stacks of the Firefox Profiler's tables. A frame with an address in a library is a location in code.
 * Functions inlined there have rows of their own, below the function's and with the same address: they form one
 * location, which is created when a sample or a further call needs it.
 */
#include "import/firefox.h"

#include <stdlib.h>

enum { NONE = FIREFOX_NONE };

/* A column that is used, and its table. */
struct column {
    struct text table, name;
    size_t place; /* offset in struct tables */
};
#define COLUMN(table, name, field)                                                                 \
    { TEXT(table), TEXT(name), offsetof(struct tables, field) }
static const struct column columns[] = {
    COLUMN("funcTable", "name", function_name),
    COLUMN("funcTable", "fileName", function_file),
    COLUMN("funcTable", "source", function_source),
    COLUMN("funcTable", "resource", function_resource),
    COLUMN("funcTable", "lineNumber", function_line),
    COLUMN("funcTable", "isJS", function_script),
    COLUMN("frameTable", "func", frame_function),
    COLUMN("frameTable", "line", frame_line),
    COLUMN("frameTable", "column", frame_column),
    COLUMN("frameTable", "address", frame_address),
    COLUMN("frameTable", "category", frame_category),
    COLUMN("frameTable", "inlineDepth", frame_depth),
    COLUMN("stackTable", "frame", stack_frame),
    COLUMN("stackTable", "prefix", stack_parent),
    COLUMN("stackTable", "prefixOffset", stack_distance),
    COLUMN("resourceTable", "lib", resource_lib),
    COLUMN("sources", "filename", source_file),
};

static struct numbers *column_at(struct tables *tables, size_t i) {
    return (struct numbers *)((char *)tables + columns[i].place);
}

struct numbers *firefox_column(struct tables *tables, struct text table, struct text name) {
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        if (text_equal(table, columns[i].table) && text_equal(name, columns[i].name))
            return column_at(tables, i);
    return NULL;
}

bool firefox_wants_table(struct text table) {
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        if (text_equal(table, columns[i].table))
            return true;
    return false;
}

void firefox_tables_release(struct tables *tables) {
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        vector_release(&column_at(tables, i)->list);
    vector_release(&tables->strings);
    vector_release(&tables->nodes);
    vector_release(&tables->locations);
}

static int64_t at(const struct numbers *numbers, int64_t row) {
    return row >= 0 && (uint64_t)row < numbers->list.count ? numbers->list.items[row] : NONE;
}

/* ---- frames ---- */

static struct text string_at(const struct firefox *f, const struct tables *tables, int64_t number) {
    bool known = number >= 0 && (uint64_t)number < tables->strings.count;
    return known ? strings_get(f->r.tree->strings, tables->strings.items[number]) : TEXT("");
}

static uint32_t line_of(int64_t line) {
    return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}

static struct text file_of(const struct firefox *f, const struct tables *tables, int64_t function) {
    struct text own = string_at(f, tables, at(&tables->function_file, function));
    int64_t source = at(&tables->function_source, function);
    return own.length ? own : string_at(f, tables, at(&tables->source_file, source));
}

/* Return the library of a frame's function, or NONE if it has none or one without a path. */
static int64_t lib_of(const struct firefox *f, const struct tables *tables, int64_t frame) {
    int64_t function = at(&tables->frame_function, frame),
            lib = at(&tables->resource_lib, at(&tables->function_resource, function));
    return lib >= 0 && (uint64_t)lib < f->libraries.count &&
                   strings_get(f->r.tree->strings, f->libraries.items[lib].path).length
               ? lib
               : NONE;
}

static struct text path_of(const struct firefox *f, const struct tables *tables, int64_t frame) {
    int64_t lib = lib_of(f, tables, frame);
    return lib == NONE ? TEXT("") : strings_get(f->r.tree->strings, f->libraries.items[lib].path);
}

static uint32_t kinds_of(const struct firefox *f, const struct tables *tables, int64_t frame) {
    int64_t category = at(&tables->frame_category, frame);
    return category >= 0 && (uint64_t)category < f->categories.count ? f->categories.items[category]
                                                                     : 0;
}

static bool is_script(const struct tables *tables, int64_t frame) {
    return at(&tables->function_script, at(&tables->frame_function, frame)) == 1;
}

/* A location's kind comes from its object, so frames of JavaScript and other generated code are not treated as code:
   the profile's kind would be lost. */
static bool is_code(const struct firefox *f, const struct tables *tables, int64_t frame) {
    struct text path = path_of(f, tables, frame);
    bool made = kinds_of(f, tables, frame) & KIND_JIT;
    return path.length && at(&tables->frame_address, frame) >= 0 && !is_script(tables, frame) &&
           (!made || script_object_kinds(path, false) & KIND_JIT);
}

/* Return the location of a frame with only names. */
static uint32_t named_location(struct firefox *f, const struct tables *tables, int64_t frame) {
    int64_t function = at(&tables->frame_function, frame);
    f->r.stack.locations.count = 0;
    stack_push_frame(
        &f->r.stack,
        &(struct text_frame){
            .name = string_at(f, tables, at(&tables->function_name, function)),
            .object = path_of(f, tables, frame),
            .file = file_of(f, tables, function),
            .language = is_script(tables, frame) ? TEXT("javascript") : TEXT(""),
            .line = line_of(at(&tables->frame_line, frame)),
            .first_line = line_of(at(&tables->function_line, function)),
            .kinds = kinds_of(f, tables, frame) |
                     (at(&tables->frame_depth, frame) > 0 ? (uint32_t)KIND_INLINED : 0)});
    return f->r.stack.locations.items[--f->r.stack.locations.count];
}

static void add_line(struct firefox *f, const struct tables *tables, int64_t frame) {
    int64_t function = at(&tables->frame_function, frame);
    struct text name = string_at(f, tables, at(&tables->function_name, function));
    vector_push(&f->lines, code_frame(f->r.tree, name, file_of(f, tables, function),
                                      line_of(at(&tables->frame_line, frame)),
                                      line_of(at(&tables->frame_column, frame))));
}

/* Collect the sidecar's functions at the address. Skip those without a name: they were inlined by code without debug
   information. Return false if there are none. */
static bool add_lines_of_sidecar(struct firefox *f, const struct tables *tables, int64_t frame) {
    if (!f->has_sidecar)
        return false;
    const struct firefox_lib *lib = &f->libraries.items[lib_of(f, tables, frame)];
    const struct sidecar_symbol *symbol =
        sidecar_find(&f->sidecar, lib->in_sidecar, (uint64_t)at(&tables->frame_address, frame));
    for (size_t i = 0; symbol && i < sidecar_line_count(symbol); i++) {
        struct frame line = sidecar_frame(&f->sidecar, symbol, i);
        tree_take_steps(f->r.tree, 1);
        if (line.name)
            vector_push(&f->lines, line);
    }
    return symbol;
}

/* Return the location of f->lines, the outermost of which is `frame`. */
static uint32_t code_location(struct firefox *f, const struct tables *tables, int64_t frame) {
    const struct firefox_lib *lib = &f->libraries.items[lib_of(f, tables, frame)];
    struct text path = strings_get(f->r.tree->strings, lib->path);
    bool kernel = kinds_of(f, tables, frame) & KIND_KERNEL;
    struct location location = {.object = object_with_id(f->r.tree, path, &lib->id),
                                .mode = kernel ? MODE_KERNEL : mode_of_object(path),
                                .address = lib->base + (uint64_t)at(&tables->frame_address, frame)};
    return tree_add_code(f->r.tree, &location, f->lines.items, f->lines.count, f->r.options);
}

/* ---- stacks ---- */

/* Return the row of a stack's parent, or NONE for a root. From version 66 on it is stored as a distance, which is 0
   for a root. */
static int64_t parent_of(const struct tables *tables, size_t row) {
    int64_t distance = at(&tables->stack_distance, (int64_t)row);
    if (tables->stack_distance.list.count)
        return distance > 0 && (uint64_t)distance <= row ? (int64_t)row - distance : NONE;
    return at(&tables->stack_parent, (int64_t)row);
}

/* Return true if the stack's frame was inlined into its parent's, at the same address. */
static bool is_inlined(const struct firefox *f, const struct tables *tables, int64_t stack) {
    int64_t parent = parent_of(tables, (size_t)stack), frame = at(&tables->stack_frame, stack),
            outer = at(&tables->stack_frame, parent), depth = at(&tables->frame_depth, frame);
    return parent >= 0 && depth > 0 && at(&tables->frame_depth, outer) == depth - 1 &&
           at(&tables->frame_address, frame) == at(&tables->frame_address, outer) &&
           lib_of(f, tables, frame) == lib_of(f, tables, outer) && is_code(f, tables, frame) &&
           is_code(f, tables, outer);
}

/* Cost of passing an inlined row, relative to adding a node: several columns are read, more than once. */
enum { INLINED_STEPS = 32 };

/* Return the stack of the function into which the stack's frame was inlined, at the same address; otherwise the stack
   itself. */
static int64_t place_of(struct firefox *f, const struct tables *tables, int64_t stack) {
    while (is_inlined(f, tables, stack)) {
        tree_take_steps(f->r.tree, INLINED_STEPS);
        stack = parent_of(tables, (size_t)stack);
    }
    return stack;
}

static uint32_t location_of(struct firefox *f, struct tables *tables, int64_t stack) {
    int64_t frame = at(&tables->stack_frame, stack), outermost = place_of(f, tables, stack);
    uint32_t *known = outermost == stack ? &tables->locations.items[frame] : NULL;
    if (known && *known)
        return *known - 1;
    bool code = is_code(f, tables, frame);
    f->lines.count = 0;
    bool told = code && outermost == stack && add_lines_of_sidecar(f, tables, frame);
    for (int64_t i = stack; code && !told; i = parent_of(tables, (size_t)i)) {
        add_line(f, tables, at(&tables->stack_frame, i));
        if (i == outermost)
            break;
    }
    uint32_t location = code ? code_location(f, tables, at(&tables->stack_frame, outermost))
                             : named_location(f, tables, frame);
    if (known)
        *known = location + 1;
    return location;
}

/* Parents come before their children, in every version. */
bool firefox_check_stacks(struct firefox *f, struct tables *tables) {
    size_t stacks = tables->stack_frame.list.count, frames = tables->frame_function.list.count;
    for (size_t i = 0; i < stacks; i++) {
        int64_t frame = tables->stack_frame.list.items[i];
        if (parent_of(tables, i) < (int64_t)i && frame >= 0 && (uint64_t)frame < frames) {
            vector_push(&tables->nodes, 0);
            continue;
        }
        f->said = true;
        return error_set(f->r.error, ERROR_INPUT,
                         "%s: stack %zu has no such frame, or comes before its parent", f->r.path,
                         i);
    }
    for (size_t i = 0; i < frames; i++)
        vector_push(&tables->locations, 0);
    return true;
}

uint32_t firefox_node(struct firefox *f, struct tables *tables, size_t stack) {
    int64_t at_hand = (int64_t)stack;
    f->way.count = 0;
    while (at_hand >= 0 && !tables->nodes.items[at_hand]) {
        vector_push(&f->way, (uint32_t)at_hand);
        at_hand = parent_of(tables, (size_t)place_of(f, tables, at_hand));
    }
    uint32_t node = at_hand < 0 ? 0 : tables->nodes.items[at_hand] - 1;
    while (f->way.count) {
        uint32_t next = f->way.items[--f->way.count];
        node = tree_add_node(f->r.tree, node, location_of(f, tables, next));
        tables->nodes.items[next] = node + 1;
    }
    return node;
}
