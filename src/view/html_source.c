/*
 * Source and machine code for the page.
 *
 * The costs that wick annotate shows for one function, here for all functions and by series, so that the page's choice of event and thread applies.
 * Each stack is walked once from its leaf, one step a frame. Only lines near those that were hit are written, and a limited amount of code.
 */
#include "view/html.h"

#include <stdlib.h>

#include "object/object.h"
#include "view/attached.h"

enum { AROUND = 8, MOST_INSTRUCTIONS = 100000 };

struct source_line {
    struct text name; /* the function's */
    struct text file;
    uint32_t line;
    uint32_t stamp; /* the last stack that passed it */
    uint32_t file_number;
};

struct source_instruction {
    struct text name;
    struct text object;
    uint32_t object_id;
    uint64_t address;
};

/* Of a line or an instruction, and a series. */
struct source_cost {
    uint32_t of;
    uint32_t series;
    uint64_t self, total, self_samples, total_samples;
};

struct costs {
    VECTOR(struct source_cost) items;
    struct index index;
};

struct sourcing {
    const struct html_source *input;
    struct placed *placed;
    struct attached attached;
    VECTOR(struct source_line) lines;
    VECTOR(struct source_instruction) instructions;
    uint32_t *line_of;        /* by place: its line + 1; 0: its source is not known */
    uint32_t *instruction_of; /* by place of a function: its instruction + 1 */
    struct index line_index, instruction_index;
    struct costs line_costs, instruction_costs;
    struct buffer *json;
};

/* ---- what each costs ---- */

static struct source_cost *cost_of(struct costs *costs, uint32_t of, uint32_t series) {
    uint64_t hash = hash_mix(of, series);
    uint32_t id;
    for (struct probe p = index_probe(&costs->index, hash); (id = index_next(&costs->index, &p));)
        if (costs->items.items[id - 1].of == of && costs->items.items[id - 1].series == series)
            return &costs->items.items[id - 1];
    vector_push(&costs->items, ((struct source_cost){.of = of, .series = series}));
    index_add(&costs->index, hash, (uint32_t)costs->items.count);
    return &costs->items.items[costs->items.count - 1];
}

static uint32_t line_find(struct sourcing *s, const struct place *place) {
    struct text name = name_unmarked(place->name);
    uint64_t hash = hash_mix(hash_bytes(place->file.data, place->file.length),
                             hash_mix(hash_bytes(name.data, name.length), place->line));
    uint32_t id;
    for (struct probe p = index_probe(&s->line_index, hash);
         (id = index_next(&s->line_index, &p));) {
        const struct source_line *line = &s->lines.items[id - 1];
        if (line->line == place->line && text_equal(line->file, place->file) &&
            text_equal(line->name, name))
            return id;
    }
    vector_push(&s->lines,
                ((struct source_line){.name = name, .file = place->file, .line = place->line}));
    index_add(&s->line_index, hash, (uint32_t)s->lines.count);
    return (uint32_t)s->lines.count;
}

static uint32_t instruction_find(struct sourcing *s, const struct place *place) {
    struct text name = name_unmarked(place->name);
    uint64_t hash =
        hash_mix(hash_mix(place->address, place->object), hash_bytes(name.data, name.length));
    uint32_t id;
    for (struct probe p = index_probe(&s->instruction_index, hash);
         (id = index_next(&s->instruction_index, &p));) {
        const struct source_instruction *one = &s->instructions.items[id - 1];
        if (one->address == place->address && one->object_id == place->object &&
            text_equal(one->name, name))
            return id;
    }
    vector_push(&s->instructions, ((struct source_instruction){
                                      name, objects_shown(s->input->tree->objects, place->object),
                                      place->object, place->address}));
    index_add(&s->instruction_index, hash, (uint32_t)s->instructions.count);
    return (uint32_t)s->instructions.count;
}

static void find_places(struct sourcing *s) {
    const struct tree *tree = s->input->tree;
    size_t count = s->placed->places.count;
    s->line_of = memory_zero(count, sizeof *s->line_of);
    s->instruction_of = memory_zero(count, sizeof *s->instruction_of);
    for (size_t i = 1; i < count; i++) {
        const struct place *place = &s->placed->places.items[i];
        if (place->file.length && place->line && tree->sources.count)
            s->line_of[i] = line_find(s, place);
        if (place->object && place->level == 0 && tree->codes.count)
            s->instruction_of[i] = instruction_find(s, place);
    }
}

/* The function that the machine runs, which includes functions inlined at the same address. */
static uint32_t outermost(const struct sourcing *s, uint32_t node) {
    const struct placed_node *nodes = s->placed->nodes.items;
    uint32_t level = s->placed->places.items[nodes[node].place].level;
    while (level-- && node)
        node = nodes[node].parent;
    return nodes[node].place;
}

static void count_stack(struct sourcing *s, const struct cell *cell, uint32_t leaf,
                        uint32_t stamp) {
    const struct placed_node *nodes = s->placed->nodes.items;
    uint32_t series = s->input->numbers[cell->series];
    uint32_t instruction = s->instruction_of[outermost(s, leaf)];
    if (instruction) {
        struct source_cost *cost = cost_of(&s->instruction_costs, instruction - 1, series);
        cost->self += cell->weight;
        cost->self_samples += cell->samples;
    }
    for (uint32_t n = leaf; n; n = nodes[n].parent) {
        uint32_t line = s->line_of[nodes[n].place];
        if (!line || s->lines.items[line - 1].stamp == stamp)
            continue;
        struct source_cost *cost = cost_of(&s->line_costs, line - 1, series);
        s->lines.items[line - 1].stamp = stamp;
        cost->total += cell->weight;
        cost->total_samples += cell->samples;
        if (n == leaf) {
            cost->self += cell->weight;
            cost->self_samples += cell->samples;
        }
    }
}

static void count_stacks(struct sourcing *s) {
    const struct html_source *input = s->input;
    for (uint32_t i = 1; i < input->tree->cells.count; i++) {
        const struct cell *cell = &input->tree->cells.items[i];
        if (input->naming->series.items[cell->series].skip || input->left_out[cell->series])
            continue;
        uint32_t leaf = placed_find(s->placed, cell->series, cell->node);
        if (leaf && leaf != STACK_DROPPED)
            count_stack(s, cell, leaf, i);
    }
}

/* ---- in an order of content ---- */

static int order_costs(const void *x, const void *y) {
    const struct source_cost *a = x, *b = y;
    if (a->of != b->of)
        return a->of < b->of ? -1 : 1;
    return (a->series > b->series) - (a->series < b->series);
}

static int order_lines(const void *x, const void *y, void *context) {
    const struct sourcing *s = context;
    const struct source_line *a = &s->lines.items[*(const uint32_t *)x],
                             *b = &s->lines.items[*(const uint32_t *)y];
    int order = text_compare(a->name, b->name);
    if (!order)
        order = text_compare(a->file, b->file);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int order_by_file(const void *x, const void *y, void *context) {
    const struct sourcing *s = context;
    const struct source_line *a = &s->lines.items[*(const uint32_t *)x],
                             *b = &s->lines.items[*(const uint32_t *)y];
    int order = text_compare(a->file, b->file);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int order_instructions(const void *x, const void *y, void *context) {
    const struct sourcing *s = context;
    const struct source_instruction *a = &s->instructions.items[*(const uint32_t *)x],
                                    *b = &s->instructions.items[*(const uint32_t *)y];
    int order = text_compare(a->name, b->name);
    if (!order)
        order = text_compare(a->object, b->object);
    if (!order)
        order = (a->object_id > b->object_id) - (a->object_id < b->object_id);
    return order ? order : (a->address > b->address) - (a->address < b->address);
}

/* Those that cost something, in that order. Sorts the costs, too. */
static uint32_t *sorted(struct sourcing *s, struct costs *costs, size_t *count,
                        int (*order)(const void *, const void *, void *)) {
    if (costs->items.count)
        qsort(costs->items.items, costs->items.count, sizeof *costs->items.items, order_costs);
    uint32_t *list = memory_zero(costs->items.count + 1, sizeof *list);
    *count = 0;
    for (size_t i = 0; i < costs->items.count; i++)
        if (i == 0 || costs->items.items[i].of != costs->items.items[i - 1].of)
            list[(*count)++] = costs->items.items[i].of;
    qsort_r(list, *count, sizeof *list, order, s);
    return list;
}

static const struct source_cost *first_cost(const struct costs *costs, uint32_t of) {
    size_t at = search_first(i, 0, costs->items.count, costs->items.items[i].of < of);
    return &costs->items.items[at];
}

static void json_costs(struct sourcing *s, const struct costs *costs, uint32_t of, bool totals) {
    const struct source_cost *end = costs->items.items + costs->items.count;
    const char *comma = "";
    buffer_add_char(s->json, '[');
    for (const struct source_cost *c = first_cost(costs, of); c < end && c->of == of; c++) {
        buffer_printf(s->json, "%s%u,%llu", comma, c->series, (unsigned long long)c->self);
        if (totals)
            buffer_printf(s->json, ",%llu", (unsigned long long)c->total);
        buffer_printf(s->json, ",%llu", (unsigned long long)c->self_samples);
        if (totals)
            buffer_printf(s->json, ",%llu", (unsigned long long)c->total_samples);
        comma = ",";
    }
    buffer_add_char(s->json, ']');
}

/* ---- files ---- */

/* The lines of a file that are near `count` lines that were hit, in stretches. */
static void json_stretches(struct sourcing *s, const uint32_t *hits, size_t count) {
    struct text rest = attached_source_of(&s->attached, s->lines.items[hits[0]].file);
    struct buffer stretch = {0}, shown = {0};
    const char *comma = "";
    uint32_t number = 0, first = 0;
    size_t next = 0;
    while (rest.length) {
        struct text line = text_take_line(&rest);
        number++;
        while (next < count && s->lines.items[hits[next]].line + AROUND < number)
            next++;
        bool near = next < count && s->lines.items[hits[next]].line <= number + AROUND;
        if (near) {
            first = first ? first : number;
            shown.count = 0;
            buffer_add_shown(&shown, line);
            buffer_add(&stretch, buffer_text(&shown));
            buffer_add_char(&stretch, '\n');
        }
        if (first && (!near || !rest.length)) {
            buffer_printf(s->json, "%s[%u,", comma, first);
            buffer_add_json_text(s->json, buffer_text(&stretch));
            buffer_add_char(s->json, ']');
            comma = ",";
            stretch.count = 0;
            first = 0;
        }
    }
    buffer_release(&stretch);
    buffer_release(&shown);
}

static void json_files(struct sourcing *s, uint32_t *list, size_t count) {
    uint32_t number = 0;
    qsort_r(list, count, sizeof *list, order_by_file, s);
    buffer_add(s->json, TEXT("\"files\":["));
    for (size_t i = 0, end; i < count; i = end, number++) {
        struct text file = s->lines.items[list[i]].file;
        for (end = i; end < count && text_equal(s->lines.items[list[end]].file, file); end++)
            s->lines.items[list[end]].file_number = number;
        buffer_add(s->json, number ? TEXT(",[") : TEXT("["));
        struct buffer shown = {0};
        buffer_add_shown(&shown, file);
        buffer_add_json_text(s->json, buffer_text(&shown));
        buffer_release(&shown);
        buffer_add(s->json, TEXT(",["));
        json_stretches(s, list + i, end - i);
        buffer_add(s->json, TEXT("]]"));
    }
    buffer_add(s->json, TEXT("],"));
}

/* ---- functions ---- */

struct listing {
    struct sourcing *s;
    const struct attached_code *code;
    const uint32_t *hits; /* instructions of the function */
    size_t count, next;
    VECTOR(uint64_t) addresses; /* of all instructions, to find a jump's row */
    uint32_t rows;
};

static void list_address(void *context, const struct instruction *one) {
    struct listing *l = context;
    vector_push(&l->addresses, one->address);
}

static int row_of(const struct listing *l, uint64_t target) {
    size_t count = l->addresses.count;
    size_t at = search_first(i, 0, count, l->addresses.items[i] < target);
    return target && at < count && l->addresses.items[at] == target ? (int)at : -1;
}

static void list_row(struct listing *l, uint64_t address, uint32_t size, struct text text,
                     int target) {
    struct buffer *json = l->s->json;
    const struct source_instruction *all = l->s->instructions.items;
    buffer_printf(json, "%s[\"%llx\",", l->rows++ ? "," : "", (unsigned long long)address);
    buffer_add_json_text(json, text);
    buffer_printf(json, ",%d,", target);
    while (l->next < l->count && all[l->hits[l->next]].address < address)
        l->next++;
    /* A sample is at an instruction's first byte; another one inside the instruction would belong to other code. */
    if (l->next < l->count && all[l->hits[l->next]].address - address < size)
        json_costs(l->s, &l->s->instruction_costs, l->hits[l->next++], false);
    else
        buffer_add(json, TEXT("[]"));
    buffer_add_char(json, ']');
}

static void list_instruction(void *context, const struct instruction *one) {
    struct listing *l = context;
    struct buffer text = {0};
    buffer_printf(&text, "%-7s %s", one->name, one->operands);
    list_row(l, one->address, one->size, buffer_text(&text), row_of(l, one->target));
    buffer_release(&text);
}

/* Of one function in one object: its code, or the addresses alone. */
static void json_code(struct sourcing *s, const uint32_t *hits, size_t count,
                      const struct attached_code *code) {
    struct listing l = {.s = s, .code = code, .hits = hits, .count = count};
    struct buffer shown = {0};
    buffer_add_shown(&shown, s->instructions.items[hits[0]].object);
    buffer_add_char(s->json, '[');
    buffer_add_json_text(s->json, buffer_text(&shown));
    buffer_add(s->json, TEXT(",["));
    if (code && code_each(code, list_address, &l))
        code_each(code, list_instruction, &l);
    else
        for (size_t i = 0; i < count; i++)
            list_row(&l, s->instructions.items[hits[i]].address, 1, TEXT(""), -1);
    buffer_add(s->json, TEXT("]]"));
    buffer_release(&shown);
    vector_release(&l.addresses);
}

/* Where the hits of the function in one object end that begin at `first`. */
static size_t code_end(const struct sourcing *s, const uint32_t *hits, size_t first, size_t count,
                       const struct attached_code **code) {
    const struct source_instruction *begin = &s->instructions.items[hits[first]];
    *code = attached_code_at(&s->attached, begin->object_id, begin->address);
    for (size_t end = first + 1; end < count; end++) {
        const struct source_instruction *one = &s->instructions.items[hits[end]];
        if (one->object_id != begin->object_id || !text_equal(one->name, begin->name) ||
            (*code && one->address - (*code)->start >= (*code)->bytes.length))
            return end;
    }
    return count;
}

static void json_codes(struct sourcing *s, const uint32_t *hits, size_t count) {
    const struct attached_code *code;
    for (size_t i = 0, end; i < count; i = end) {
        end = code_end(s, hits, i, count, &code);
        if (i)
            buffer_add_char(s->json, ',');
        json_code(s, hits + i, end - i, code);
    }
}

/* The hits of all functions of one name. */
struct code_group {
    size_t first, end;
    uint64_t self;
    bool fits;
};

static int order_groups(const void *x, const void *y) {
    const struct code_group *a = x, *b = y;
    if (a->self != b->self)
        return a->self > b->self ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

static int order_groups_back(const void *x, const void *y) {
    const struct code_group *a = x, *b = y;
    return (a->first > b->first) - (a->first < b->first);
}

static struct code_group group_at(struct sourcing *s, const uint32_t *codes, size_t first,
                                  size_t count) {
    struct code_group group = {.first = first, .end = first};
    struct text name = s->instructions.items[codes[first]].name;
    const struct costs *costs = &s->instruction_costs;
    while (group.end < count && text_equal(s->instructions.items[codes[group.end]].name, name)) {
        uint32_t of = codes[group.end++];
        const struct source_cost *end = costs->items.items + costs->items.count;
        for (const struct source_cost *c = first_cost(costs, of); c < end && c->of == of; c++)
            group.self += c->self;
    }
    return group;
}

/* Return the groups in order; those that most was spent in have room for their code. */
static struct code_group *groups_of(struct sourcing *s, const uint32_t *codes, size_t count,
                                    size_t *left) {
    struct code_group *groups = memory_zero(count + 1, sizeof *groups);
    size_t number = 0, room = MOST_INSTRUCTIONS;
    for (size_t i = 0; i < count; i = groups[number++].end)
        groups[number] = group_at(s, codes, i, count);
    qsort(groups, number, sizeof *groups, order_groups);
    for (size_t i = 0; i < number; i++) {
        size_t need = 0;
        const struct attached_code *code;
        for (size_t k = groups[i].first, end; k < groups[i].end; k = end) {
            end = code_end(s, codes, k, groups[i].end, &code);
            need += code ? code->bytes.length / 3 : end - k; /* an instruction has more, mostly */
        }
        groups[i].fits = need <= room;
        room -= groups[i].fits ? need : 0;
        *left += !groups[i].fits;
    }
    qsort(groups, number, sizeof *groups, order_groups_back);
    return groups;
}

static void json_lines(struct sourcing *s, const uint32_t *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct source_line *line = &s->lines.items[list[i]];
        buffer_printf(s->json, "%s[%u,%u,", i ? "," : "", line->file_number, line->line);
        json_costs(s, &s->line_costs, list[i], true);
        buffer_add_char(s->json, ']');
    }
}

static void json_function(struct sourcing *s, struct text name, const uint32_t *lines,
                          size_t line_count, const uint32_t *codes, size_t code_count) {
    struct buffer shown = {0};
    buffer_add_shown(&shown, name);
    buffer_add_char(s->json, '[');
    buffer_add_json_text(s->json, buffer_text(&shown));
    buffer_add(s->json, TEXT(",["));
    json_lines(s, lines, line_count);
    buffer_add(s->json, TEXT("],["));
    json_codes(s, codes, code_count);
    buffer_add(s->json, TEXT("]]"));
    buffer_release(&shown);
}

/* Lists of lines and of instructions, both by name, walked side by side. */
static void json_functions(struct sourcing *s, const uint32_t *lines, size_t line_count,
                           const uint32_t *codes, size_t code_count) {
    size_t i = 0, k = 0, left = 0;
    struct code_group *groups = groups_of(s, codes, code_count, &left), *group = groups;
    buffer_add(s->json, TEXT("\"functions\":["));
    while (i < line_count || k < code_count) {
        struct text code_name = TEXT(""), name;
        if (k < code_count)
            code_name = s->instructions.items[codes[k]].name;
        name = i < line_count ? s->lines.items[lines[i]].name : code_name;
        bool has_code = k < code_count && text_compare(code_name, name) <= 0;
        name = has_code ? code_name : name;
        size_t end = i;
        while (end < line_count && text_equal(s->lines.items[lines[end]].name, name))
            end++;
        if (i + k)
            buffer_add_char(s->json, ',');
        json_function(s, name, lines + i, end - i, codes + k,
                      has_code && group->fits ? group->end - k : 0);
        i = end;
        if (has_code)
            k = (group++)->end;
    }
    buffer_printf(s->json, "],\"left\":%zu", left);
    free(groups);
}

bool html_add_source(struct buffer *json, const struct html_source *input, struct error *error) {
    struct sourcing s = {.input = input, .json = json};
    if (!input->tree->sources.count && !input->tree->codes.count)
        return true;
    s.placed = placed_new(input->tree, input->naming, input->shape, DETAIL_ADDRESSES, error);
    if (!s.placed)
        return false;
    attached_init(&s.attached, input->tree);
    find_places(&s);
    count_stacks(&s);
    size_t line_count, code_count;
    uint32_t *lines = sorted(&s, &s.line_costs, &line_count, order_lines);
    uint32_t *codes = sorted(&s, &s.instruction_costs, &code_count, order_instructions);
    buffer_add(json, TEXT("\"source\":{"));
    json_files(&s, lines, line_count);
    qsort_r(lines, line_count, sizeof *lines, order_lines, &s);
    json_functions(&s, lines, line_count, codes, code_count);
    buffer_add(json, TEXT("},"));
    free(lines);
    free(codes);
    free(s.line_of);
    free(s.instruction_of);
    vector_release(&s.lines);
    vector_release(&s.instructions);
    vector_release(&s.line_costs.items);
    vector_release(&s.instruction_costs.items);
    index_release(&s.line_index);
    index_release(&s.instruction_index);
    index_release(&s.line_costs.index);
    index_release(&s.instruction_costs.index);
    attached_release(&s.attached);
    placed_free(s.placed);
    return true;
}
