/*
 * Answer questions about a flame that is too large for a page: each answer has only what can be seen at once. Clients
 * identify a node by its depth-first number, siblings by name, so that a profile has the same numbers in every
 * process.
 */
#include "serve/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "stacks/pattern.h"

enum { NODES_MOST = 20000, DEPTH_MOST = 2000, WIDTH_MOST = 20000, ROWS_MOST = 1000, FOUND = 50 };

int answer_error(struct buffer *body, int status, const char *why) {
    body->count = 0;
    buffer_add(body, TEXT("{\"error\":"));
    buffer_add_json_text(body, text_of(why));
    buffer_add_char(body, '}');
    return status;
}

bool answers_begin(struct answers *a, struct error *error) {
    uint32_t number = 0;
    a->categories = categories_new(NULL, NULL, error);
    if (!a->categories)
        return false;
    a->table = report_of_flame(a->flame, a->categories, BY_FUNCTION);
    a->numbers = memory_zero(a->flame->nodes.count, sizeof *a->numbers);
    a->nodes = memory_zero(a->flame->nodes.count, sizeof *a->nodes);
    for (uint32_t id = flame_next(a->flame, 0); id; id = flame_next(a->flame, id)) {
        a->numbers[id] = ++number;
        a->nodes[number] = id;
    }
    return true;
}

void answers_end(struct answers *a) {
    report_free(a->table);
    categories_free(a->categories);
    free(a->numbers);
    free(a->nodes);
}

static void add_field(struct buffer *body, const char *name, uint64_t value) {
    buffer_printf(body, "\"%s\":%llu,", name, (unsigned long long)value);
}

static void add_text(struct buffer *body, const char *name, struct text value) {
    buffer_printf(body, "\"%s\":", name);
    buffer_add_json_text(body, value);
    buffer_add_char(body, ',');
}

/* Replace the last comma by the end. */
static void end_with(struct buffer *body, char end) {
    if (body->count && body->items[body->count - 1] == ',')
        body->count--;
    buffer_add_char(body, end);
}

/* ---- nodes ---- */

struct view {
    const struct flame *flame;
    const uint32_t *numbers; /* NULL: clients can't ask for these nodes by number */
    uint32_t at;
    uint32_t depth;
    uint64_t width;
    uint64_t least;   /* minimum weight of shown nodes */
    size_t shown;     /* number of nodes shown */
    size_t left_out;  /* nodes not shown whose callers are */
    uint64_t *lefts;  /* by depth below `at`: where the next child begins */
    uint32_t *places; /* by string: its index in `names` + 1 */
    uint32_t name_count;
    struct buffer names, nodes;
};

static uint32_t name_place(struct view *v, uint32_t name) {
    if (!v->places[name]) {
        v->places[name] = ++v->name_count;
        buffer_add_json_text(&v->names, name_unmarked(strings_get(v->flame->strings, name)));
        buffer_add_char(&v->names, ',');
    }
    return v->places[name] - 1;
}

/* [number, depth, name, left, total, self, colour] */
static void add_node(struct view *v, uint32_t id, uint32_t depth, uint64_t left) {
    static const struct colouring colouring = {PALETTE_WICK};
    const struct flame_node *node = &v->flame->nodes.items[id];
    struct text name = strings_get(v->flame->strings, node->name);
    struct colour c = colour_of_frame(&colouring, name,
                                      strings_get(v->flame->strings, node->object), node->kinds);
    buffer_printf(&v->nodes, "[%u,%u,%u,%llu,%llu,%llu,\"#%02x%02x%02x\"],",
                  v->numbers ? v->numbers[id] : 0, depth, id ? name_place(v, node->name) : 0,
                  (unsigned long long)left, (unsigned long long)node->total,
                  (unsigned long long)node->self, c.red, c.green, c.blue);
}

/* Walk the nodes below `at` that are wide enough; write them, or only count them. Costs a step for each shown node
   and each of its children. */
static void walk(struct view *v, bool write) {
    const struct flame_node *nodes = v->flame->nodes.items;
    uint32_t id = v->at, depth = 0;
    v->shown = v->left_out = 0;
    v->lefts[0] = 0;
    while (true) {
        uint64_t left = v->lefts[depth];
        bool is_shown = id == v->at || nodes[id].total >= v->least;
        v->lefts[depth] = left + nodes[id].total;
        v->shown += is_shown;
        v->left_out += !is_shown;
        if (is_shown && write)
            add_node(v, id, depth, left);
        if (is_shown && depth < v->depth && nodes[id].first_child) {
            v->lefts[++depth] = left;
            id = nodes[id].first_child;
            continue;
        }
        while (id != v->at && !nodes[id].next) {
            id = nodes[id].parent;
            depth--;
        }
        if (id == v->at)
            return;
        id = nodes[id].next;
    }
}

/* Write the callers of `at`, outermost first. */
static void add_path(const struct view *v, struct buffer *body) {
    const struct flame_node *nodes = v->flame->nodes.items;
    VECTOR(uint32_t) path = {0};
    for (uint32_t id = v->at; id; id = nodes[id].parent)
        vector_push(&path, nodes[id].parent);
    buffer_add(body, TEXT("\"path\":["));
    for (size_t i = path.count; i-- > 0;) {
        buffer_printf(body, "[%u,", v->numbers ? v->numbers[path.items[i]] : 0);
        buffer_add_json_text(
            body, path.items[i] ? name_unmarked(flame_name(v->flame, path.items[i])) : TEXT("all"));
        buffer_printf(body, ",%llu],", (unsigned long long)nodes[path.items[i]].total);
    }
    end_with(body, ']');
    buffer_add_char(body, ',');
    vector_release(&path);
}

/* Drop nodes narrower than 1/width; if there are still too many, those narrower than twice that, and so on. */
static void add_view(struct view *v, struct buffer *body) {
    const struct flame_node *nodes = v->flame->nodes.items;
    v->lefts = memory_zero(v->depth + 2, sizeof *v->lefts);
    v->places = memory_zero(strings_count(v->flame->strings) + 1, sizeof *v->places);
    v->least = nodes[v->at].total / v->width;
    v->least += v->least == 0;
    for (walk(v, false); v->shown > NODES_MOST && v->least <= nodes[v->at].total; walk(v, false))
        v->least *= 2;
    if (!v->at) {
        buffer_add(&v->names, TEXT("\"all\","));
        v->name_count = 1;
    }
    walk(v, true);
    add_path(v, body);
    add_field(body, "whole", nodes[0].total);
    add_field(body, "shown", v->shown);
    add_field(body, "left_out", v->left_out);
    add_text(body, "unit", strings_get(v->flame->strings, v->flame->unit));
    buffer_add(body, TEXT("\"names\":["));
    buffer_add(body, buffer_text(&v->names));
    end_with(body, ']');
    buffer_add(body, TEXT(",\"nodes\":["));
    buffer_add(body, buffer_text(&v->nodes));
    end_with(body, ']');
    free(v->lefts);
    free(v->places);
    buffer_release(&v->names);
    buffer_release(&v->nodes);
}

static int ask_nodes(struct answers *a, const struct target *question, struct buffer *body) {
    uint64_t at, depth, width;
    if (!target_number(question, "at", 0, UINT32_MAX, &at) ||
        !target_number(question, "depth", 60, DEPTH_MOST, &depth) ||
        !target_number(question, "width", 2000, WIDTH_MOST, &width) || !width)
        return answer_error(body, 400, "at, depth or width is not a number, or too large");
    if (at >= a->flame->nodes.count)
        return answer_error(body, 404, "no such node");
    struct view view = {.flame = a->flame,
                        .numbers = a->numbers,
                        .at = a->nodes[at],
                        .depth = (uint32_t)depth,
                        .width = width};
    buffer_add_char(body, '{');
    add_view(&view, body);
    buffer_add_char(body, '}');
    return 200;
}

static int ask_around(struct answers *a, const struct target *question, struct buffer *body) {
    struct text function = target_get(question, "function");
    uint64_t callers, depth, width, self;
    struct error error;
    if (!function.data || !target_number(question, "callers", 0, 1, &callers) ||
        !target_number(question, "depth", 30, DEPTH_MOST, &depth) ||
        !target_number(question, "width", 1000, WIDTH_MOST, &width) || !width)
        return answer_error(body, 400, "function, callers, depth or width is missing or wrong");
    struct flame *around = flame_around(a->flame, function, callers, &self, &error);
    if (!around)
        return answer_error(body, 422, error.message);
    uint32_t first = around->nodes.items[0].first_child;
    int status = 200;
    if (first) {
        struct view view = {.flame = around, .at = first, .depth = (uint32_t)depth, .width = width};
        buffer_add_char(body, '{');
        add_field(body, "all", a->flame->nodes.items[0].total);
        add_field(body, "self", self);
        add_view(&view, body);
        buffer_add_char(body, '}');
    } else {
        status = answer_error(body, 404, "no such function");
    }
    flame_free(around);
    return status;
}

/* ---- tables ---- */

static bool contains(struct text name, struct text part) {
    if (!part.length)
        return true;
    for (size_t i = 0; i + part.length <= name.length; i++) {
        size_t k = 0;
        while (k < part.length &&
               ((name.data[i + k] ^ part.data[k]) == 0 ||
                ((name.data[i + k] ^ part.data[k]) == 0x20 &&
                 ((part.data[k] | 0x20) >= 'a' && (part.data[k] | 0x20) <= 'z'))))
            k++;
        if (k == part.length)
            return true;
    }
    return false;
}

static void add_row(struct buffer *body, const struct report_row *row) {
    buffer_add_char(body, '[');
    buffer_add_json_text(body, row->name);
    buffer_printf(body, ",%llu,%llu,", (unsigned long long)row->self,
                  (unsigned long long)row->total);
    buffer_add_json_text(body, row->category);
    buffer_add(body, TEXT("],"));
}

static int ask_table(struct answers *a, const struct target *question, struct buffer *body) {
    struct text sort = target_get(question, "sort"), filter = target_get(question, "filter");
    uint64_t from, count, matched = 0;
    if (!target_number(question, "from", 0, UINT32_MAX, &from) ||
        !target_number(question, "count", 200, ROWS_MOST, &count))
        return answer_error(body, 400, "from or count is not a number, or too large");
    report_sort_by(a->table, !sort.data || text_equal(sort, TEXT("self")));
    buffer_add(body, TEXT("{\"rows\":["));
    for (size_t i = 0; i < a->table->rows.count; i++) {
        const struct report_row *row = &a->table->rows.items[i];
        if (!contains(row->name, filter.data ? filter : TEXT("")))
            continue;
        if (matched >= from && matched - from < count)
            add_row(body, row);
        matched++;
    }
    end_with(body, ']');
    buffer_add_char(body, ',');
    add_field(body, "count", matched);
    add_field(body, "whole", a->flame->nodes.items[0].total);
    add_text(body, "unit", a->table->unit);
    end_with(body, '}');
    return 200;
}

/* ---- search ---- */

/* Return, by string, whether it matches the pattern; free() it. NULL if the pattern exceeds its limits. */
static bool *matching_names(const struct flame *flame, const struct pattern *pattern,
                            struct error *error) {
    struct matcher *matcher = matcher_new();
    size_t count = strings_count(flame->strings) + 1;
    bool *found = memory_zero(count, sizeof *found), *asked = memory_zero(count, sizeof *asked),
         fine = true;
    for (size_t i = 1; fine && i < flame->nodes.count; i++) {
        uint32_t name = flame->nodes.items[i].name;
        if (!asked[name])
            fine = matcher_find(matcher, pattern, strings_get(flame->strings, name), &found[name],
                                error);
        asked[name] = true;
    }
    matcher_free(matcher);
    free(asked);
    if (fine)
        return found;
    free(found);
    return NULL;
}

/* Sum the cost of all matches, each stack once. */
static uint64_t share_of(const struct flame *flame, const bool *found, size_t *frames) {
    uint64_t share = 0;
    const struct flame_node *nodes = flame->nodes.items;
    for (uint32_t id = flame_next(flame, 0); id;) {
        if (!found[nodes[id].name]) {
            id = flame_next(flame, id);
            continue;
        }
        share += nodes[id].total;
        ++*frames;
        while (id && !nodes[id].next)
            id = nodes[id].parent;
        id = nodes[id].next;
    }
    return share;
}

static int ask_search(struct answers *a, const struct target *question, struct buffer *body) {
    struct text wanted = target_get(question, "for");
    struct error error;
    if (!wanted.length)
        return answer_error(body, 400, "the search text is missing");
    struct pattern *pattern = pattern_new(wanted.data, &error);
    bool *found = pattern ? matching_names(a->flame, pattern, &error) : NULL;
    if (!found) {
        pattern_free(pattern);
        return answer_error(body, 422, error.message);
    }
    size_t frames = 0, listed = 0;
    uint64_t share = share_of(a->flame, found, &frames);
    free(found);
    buffer_add_char(body, '{');
    add_field(body, "share", share);
    add_field(body, "whole", a->flame->nodes.items[0].total);
    add_field(body, "frames", frames);
    add_text(body, "unit", a->table->unit);
    buffer_add(body, TEXT("\"rows\":["));
    struct matcher *matcher = matcher_new();
    report_sort_by(a->table, false);
    for (size_t i = 0; i < a->table->rows.count && listed < FOUND; i++) {
        const struct report_row *row = &a->table->rows.items[i];
        bool matches = false;
        if (matcher_find(matcher, pattern, row->name, &matches, &error) && matches) {
            add_row(body, row);
            listed++;
        }
    }
    matcher_free(matcher);
    pattern_free(pattern);
    end_with(body, ']');
    buffer_add_char(body, '}');
    return 200;
}

/* ---- info ---- */

static int ask_info(struct answers *a, const struct target *question, struct buffer *body) {
    struct buffer line = {0};
    buffer_add_char(body, '{');
    add_text(body, "kind", text_of(a->kind));
    add_field(body, "total", a->flame->nodes.items[0].total);
    add_text(body, "unit", a->table->unit);
    add_field(body, "samples", a->samples);
    add_field(body, "nodes", a->flame->nodes.count - 1);
    add_field(body, "functions", a->table->rows.count);
    add_field(body, "depth", a->flame->max_depth);
    buffer_add(body, TEXT("\"notes\":["));
    for (size_t i = 0; a->notes && i < a->notes->count; i++) {
        line.count = 0;
        note_print(&a->notes->items[i], &line);
        buffer_add_json_text(body, buffer_text(&line));
        buffer_add_char(body, ',');
    }
    end_with(body, ']');
    buffer_add_char(body, '}');
    buffer_release(&line);
    return 200;
}

int answers_ask(struct answers *a, const struct target *question, struct buffer *body) {
    static const struct {
        const char *name;
        int (*ask)(struct answers *a, const struct target *question, struct buffer *body);
    } questions[] = {{"info", ask_info},
                     {"nodes", ask_nodes},
                     {"table", ask_table},
                     {"around", ask_around},
                     {"search", ask_search}};
    for (size_t i = 0; i < COUNT_OF(questions); i++)
        if (question->part_count == 1 && text_equal(question->parts[0], text_of(questions[i].name)))
            return questions[i].ask(a, question, body);
    return answer_error(body, 404, "no such request");
}

/* ---- the request loop ---- */

static bool write_all(struct text text) {
    while (text.length) {
        ssize_t size = write(STDOUT_FILENO, text.data, text.length);
        if (size < 0 && errno != EINTR)
            return false;
        text = text_from(text, size > 0 ? (size_t)size : 0);
    }
    return true;
}

static bool answer_line(answer_function *answer, void *user, struct text line) {
    struct target question;
    struct buffer body = {0}, head = {0};
    int status = target_parse(&question, line)
                     ? answer(user, &question, &body)
                     : answer_error(&body, 400, "the request can't be read");
    target_release(&question);
    buffer_printf(&head, "%d %zu\n", status, body.count);
    bool fine = write_all(buffer_text(&head)) && write_all(buffer_text(&body));
    buffer_release(&head);
    buffer_release(&body);
    return fine;
}

void answers_serve(answer_function *answer, void *user) {
    char line[TARGET_MOST + 1];
    size_t count = 0;
    ssize_t size;
    while ((size = read(STDIN_FILENO, line + count, sizeof line - count)) > 0 ||
           (size < 0 && errno == EINTR)) {
        count += size > 0 ? (size_t)size : 0;
        size_t end;
        while ((end = text_find((struct text){line, count}, '\n')) != SIZE_MAX) {
            if (!answer_line(answer, user, (struct text){line, end}))
                return;
            count -= end + 1;
            memmove(line, line + end + 1, count);
        }
        if (count == sizeof line)
            return;
    }
}
