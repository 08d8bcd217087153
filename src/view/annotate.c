/*
 * One function, line by line and instruction by instruction.
 *
 * Stacks are taken by address, so that each frame still has its line and its address. A line's self is the weight of stacks that end there; its
 * total is the weight of stacks that pass through it, each counted once. Inlined functions have lines of their own, and their cost also belongs to
 * the line that called them. An instruction has only self: the weight of stacks whose leaf it is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "object/object.h"
#include "view/attached.h"
#include "view/numbers.h"
#include "view/view.h"

/* A line of the function, or of a file; line 0: the source is not known. */
struct line_cost {
    struct text file;
    uint32_t line;
    uint32_t open; /* how many frames of the stack at hand are on it */
    uint64_t self, total;
};

struct instruction_cost {
    uint32_t object;
    uint64_t address;
    uint64_t self;
};

struct annotation {
    const struct tree *tree;
    const struct annotate_options *options;
    struct placed *placed;
    uint64_t *weights; /* by node: of stacks that end there, then of those that pass */
    uint64_t *selves;  /* by node: of stacks that end there */
    uint32_t *line_of; /* by place: its line + 1, 0: of another function */
    VECTOR(struct line_cost) lines;
    struct index line_index; /* of `lines`, by number + 1 */
    VECTOR(struct instruction_cost) instructions;
    struct attached attached;
    uint64_t self, total, all;
};

/* ---- costs ---- */

static void weigh_nodes(struct annotation *a) {
    const struct tree *tree = a->tree;
    size_t count = a->placed->nodes.count;
    a->weights = memory_zero(count, sizeof *a->weights);
    a->selves = memory_zero(count, sizeof *a->selves);
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        uint32_t node = placed_find(a->placed, cell->series, cell->node);
        if (node != STACK_DROPPED)
            a->selves[node] += a->options->shape->by_samples ? cell->samples : cell->weight;
    }
    for (size_t i = count; i-- > 1;) {
        a->weights[i] += a->selves[i];
        a->weights[a->placed->nodes.items[i].parent] += a->weights[i];
    }
    a->all = a->weights[0];
}

static bool is_function(const struct annotation *a, const struct place *place) {
    return text_equal(place->name, a->options->function);
}

static uint32_t line_find(struct annotation *a, const struct place *place) {
    uint64_t hash = hash_mix(hash_bytes(place->file.data, place->file.length), place->line);
    uint32_t id;
    for (struct probe p = index_probe(&a->line_index, hash); (id = index_next(&a->line_index, &p));)
        if (a->lines.items[id - 1].line == place->line &&
            text_equal(a->lines.items[id - 1].file, place->file))
            return id;
    vector_push(&a->lines, ((struct line_cost){.file = place->file, .line = place->line}));
    index_add(&a->line_index, hash, (uint32_t)a->lines.count);
    return (uint32_t)a->lines.count;
}

static void find_lines(struct annotation *a) {
    a->line_of = memory_zero(a->placed->places.count, sizeof *a->line_of);
    for (size_t i = 1; i < a->placed->places.count; i++)
        if (is_function(a, &a->placed->places.items[i]))
            a->line_of[i] = line_find(a, &a->placed->places.items[i]);
}

/* The function that the machine runs, which includes functions inlined at the same address. */
static const struct place *outermost(const struct annotation *a, uint32_t node) {
    const struct placed_node *nodes = a->placed->nodes.items;
    uint32_t level = a->placed->places.items[nodes[node].place].level;
    while (level--)
        node = nodes[node].parent;
    return node ? &a->placed->places.items[nodes[node].place] : NULL;
}

static void add_instruction(struct annotation *a, uint32_t node) {
    const struct place *place = a->selves[node] ? outermost(a, node) : NULL;
    if (place && place->object && is_function(a, place))
        vector_push(&a->instructions,
                    ((struct instruction_cost){place->object, place->address, a->selves[node]}));
}

static void enter(struct annotation *a, uint32_t node, uint32_t *open) {
    uint32_t line = a->line_of[a->placed->nodes.items[node].place];
    add_instruction(a, node);
    if (!line)
        return;
    struct line_cost *cost = &a->lines.items[line - 1];
    cost->self += a->selves[node];
    a->self += a->selves[node];
    if (cost->open++ == 0)
        cost->total += a->weights[node];
    if ((*open)++ == 0)
        a->total += a->weights[node];
}

static void leave(struct annotation *a, uint32_t node, uint32_t *open) {
    uint32_t line = a->line_of[a->placed->nodes.items[node].place];
    if (!line)
        return;
    a->lines.items[line - 1].open--;
    (*open)--;
}

/* Nodes are in depth-first order: a node is left when the next one is outside its subtree. */
static void walk(struct annotation *a) {
    uint32_t open = 0, at = 0;
    for (uint32_t i = 1; i < a->placed->nodes.count; i++) {
        for (; at && a->placed->nodes.items[at].end <= i; at = a->placed->nodes.items[at].parent)
            leave(a, at, &open);
        enter(a, i, &open);
        at = i;
    }
}

static int order_lines(const void *x, const void *y) {
    const struct line_cost *a = x, *b = y;
    int order = text_compare(a->file, b->file);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int order_instructions(const void *x, const void *y) {
    const struct instruction_cost *a = x, *b = y;
    int order = (a->object > b->object) - (a->object < b->object);
    return order ? order : (a->address > b->address) - (a->address < b->address);
}

static void sort_costs(struct annotation *a) {
    size_t kept = 0;
    if (a->lines.count)
        qsort(a->lines.items, a->lines.count, sizeof *a->lines.items, order_lines);
    if (a->instructions.count)
        qsort(a->instructions.items, a->instructions.count, sizeof *a->instructions.items,
              order_instructions);
    for (size_t i = 0; i < a->instructions.count; i++) {
        struct instruction_cost *last = kept ? &a->instructions.items[kept - 1] : NULL;
        if (last && order_instructions(last, &a->instructions.items[i]) == 0)
            last->self += a->instructions.items[i].self;
        else
            a->instructions.items[kept++] = a->instructions.items[i];
    }
    a->instructions.count = kept;
}

/* ---- the source ---- */

enum { SHARE_WIDTH = sizeof " 100.00 %" - 1 };

static void print_share(struct buffer *line, uint64_t part, uint64_t whole) {
    struct buffer number = {0};
    if (part) {
        buffer_add_hundredths(&number, per_cent(part, whole));
        buffer_add(&number, TEXT(" %"));
    }
    for (size_t i = number.count; i < SHARE_WIDTH; i++)
        buffer_add_char(line, ' ');
    buffer_add(line, buffer_text(&number));
    buffer_release(&number);
}

static void print_line(struct out *out, const struct annotation *a, uint32_t number,
                       const struct line_cost *cost, struct text text) {
    struct buffer line = {0};
    print_share(&line, cost ? cost->self : 0, a->all);
    print_share(&line, cost ? cost->total : 0, a->all);
    buffer_printf(&line, " %6u  ", number);
    buffer_add_shown(&line, text);
    buffer_add_char(&line, '\n');
    out_text(out, buffer_text(&line));
    buffer_release(&line);
}

/* Write the lines of one file from a little before the first hit to a little after the last; skip long stretches without hits. */
static void print_file(struct out *out, const struct annotation *a, const struct line_cost *costs,
                       size_t count) {
    enum { AROUND = 3 };
    struct text rest = attached_source_of(&a->attached, costs[0].file);
    uint32_t number = 0, next = 0;
    bool skipped = false;
    out_printf(out, "\n");
    struct buffer file = {0};
    buffer_add_shown(&file, costs[0].file.length ? costs[0].file : TEXT("(source not known)"));
    out_text(out, buffer_text(&file));
    out_printf(out, "\n     self    total   line\n");
    buffer_release(&file);
    if (!rest.length)
        for (size_t i = 0; i < count; i++)
            print_line(out, a, costs[i].line, &costs[i], TEXT(""));
    while (rest.length && next < count) {
        struct text text = text_take_line(&rest);
        number++;
        while (next < count && costs[next].line < number)
            next++;
        bool hit = next < count && costs[next].line == number;
        bool near = hit || (next < count && costs[next].line - number <= AROUND) ||
                    (next > 0 && number - costs[next - 1].line <= AROUND);
        if (near && skipped)
            out_printf(out, "      ...\n");
        skipped = !near && next > 0;
        if (near)
            print_line(out, a, number, hit ? &costs[next] : NULL, text);
    }
}

static void print_sources(struct out *out, const struct annotation *a) {
    for (size_t i = 0, end; i < a->lines.count; i = end) {
        for (end = i + 1;
             end < a->lines.count && text_equal(a->lines.items[end].file, a->lines.items[i].file);)
            end++;
        print_file(out, a, &a->lines.items[i], end - i);
    }
}

/* ---- the code ---- */

static void print_instruction(struct out *out, const struct annotation *a, uint64_t address,
                              uint64_t self, const char *name, const char *operands) {
    struct buffer line = {0};
    print_share(&line, self, a->all);
    buffer_printf(&line, " %8llx  %-8s %s\n", (unsigned long long)address, name, operands);
    out_text(out, buffer_text(&line));
    buffer_release(&line);
}

struct printing {
    struct out *out;
    const struct annotation *a;
    const struct instruction_cost *costs; /* of the function's, by address */
    size_t count, next;
};

static void print_one(void *context, const struct instruction *instruction) {
    struct printing *p = context;
    uint64_t self = 0, end = instruction->address + instruction->size;
    for (; p->next < p->count && p->costs[p->next].address < end; p->next++)
        self += p->costs[p->next].address >= instruction->address ? p->costs[p->next].self : 0;
    print_instruction(p->out, p->a, instruction->address, self, instruction->name,
                      instruction->operands);
}

/* Function by function: one name may be that of several, in several objects. Addresses without code are shown alone. */
static void print_code(struct out *out, const struct annotation *a) {
    const struct instruction_cost *costs = a->instructions.items;
    for (size_t i = 0, end; i < a->instructions.count; i = end) {
        const struct attached_code *code =
            attached_code_at(&a->attached, costs[i].object, costs[i].address);
        for (end = i + 1; end < a->instructions.count && costs[end].object == costs[i].object &&
                          (!code || costs[end].address - code->start < code->bytes.length);)
            end++;
        struct buffer object = {0};
        buffer_add_shown(&object, objects_shown(a->tree->objects, costs[i].object));
        out_printf(out, "\n%.*s\n     self   address\n", TEXT_ARGS(buffer_text(&object)));
        buffer_release(&object);
        struct printing all = {out, a, costs + i, end - i, 0};
        if (code && code_each(code, print_one, &all))
            continue;
        for (size_t k = i; k < end; k++)
            print_instruction(out, a, costs[k].address, costs[k].self, "", "");
    }
}

/* ---- all of it ---- */

static void print_head(struct out *out, const struct annotation *a) {
    struct buffer line = {0};
    buffer_add_shown(&line, a->options->function);
    buffer_add(&line, TEXT(": self "));
    buffer_add_hundredths(&line, per_cent(a->self, a->all));
    buffer_add(&line, TEXT(" %, total "));
    buffer_add_hundredths(&line, per_cent(a->total, a->all));
    buffer_add(&line, TEXT(" %\n"));
    out_text(out, buffer_text(&line));
    buffer_release(&line);
}

/* Collect names that contain the requested one, for a message. */
static bool not_found(const struct annotation *a, struct error *error) {
    struct buffer like = {0};
    struct text last = TEXT("");
    for (size_t i = 1; i < a->placed->places.count && like.count < 300; i++) {
        struct text name = a->placed->places.items[i].name;
        if (text_equal(name, last) || text_search(name, a->options->function) == SIZE_MAX)
            continue;
        buffer_printf(&like, "%s%.*s", like.count ? ", " : "", TEXT_ARGS(name));
        last = name;
    }
    error_set(error, ERROR_INPUT, "%.*s: no such function in the profile%s%.*s",
              TEXT_ARGS(a->options->function), like.count ? "; near: " : "",
              TEXT_ARGS(buffer_text(&like)));
    buffer_release(&like);
    return false;
}

bool annotate_write(struct out *out, const struct tree *tree, const struct naming *naming,
                    const struct annotate_options *options, struct error *error) {
    struct annotation a = {.tree = tree, .options = options};
    if (!tree_check(tree, error))
        return false;
    a.placed = placed_new(tree, naming, options->shape, DETAIL_ADDRESSES, error);
    if (!a.placed)
        return false;
    weigh_nodes(&a);
    find_lines(&a);
    walk(&a);
    sort_costs(&a);
    attached_init(&a.attached, tree);
    bool found = a.lines.count > 0;
    if (found) {
        print_head(out, &a);
        if (!options->no_source)
            print_sources(out, &a);
        if (!options->no_code)
            print_code(out, &a);
    } else {
        not_found(&a, error);
    }
    placed_free(a.placed);
    free(a.weights);
    free(a.selves);
    free(a.line_of);
    vector_release(&a.lines);
    index_release(&a.line_index);
    vector_release(&a.instructions);
    attached_release(&a.attached);
    return found;
}
