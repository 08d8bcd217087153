/*
 * --by: how stacks are grouped. Dimensions of series become root frames, or rows of a table; one dimension of frames
 * decides what a frame is.
 */
#include "cmd/cmd.h"

static const struct {
    const char *name;
    enum frame_unit unit;
} frame_dimensions[] = {
    {"function", FRAME_FUNCTION}, {"line", FRAME_LINE},     {"address", FRAME_ADDRESS},
    {"object", FRAME_OBJECT},     {"module", FRAME_MODULE}, {"category", FRAME_FUNCTION},
};

static const char *frame_dimension(struct text word) {
    for (size_t i = 0; i < COUNT_OF(frame_dimensions); i++)
        if (text_equal(text_of(frame_dimensions[i].name), word))
            return frame_dimensions[i].name;
    return NULL;
}

bool set_by(void *command, const char *value, struct error *error) {
    struct request *request = command;
    struct grouping *by = &request->by;
    struct text rest = text_of(value);
    for (bool more = true; more;) {
        size_t comma = text_find(rest, ',');
        struct text word = comma == SIZE_MAX ? rest : text_upto(rest, comma);
        const char *frames = frame_dimension(word);
        more = comma != SIZE_MAX;
        rest = more ? text_from(rest, comma + 1) : rest;
        if (!dimension_key(word).length)
            return error_set(error, ERROR_USAGE, "'%s': a dimension without a name", value);
        if (frames && by->frames)
            return error_set(error, ERROR_USAGE, "'%s': a frame is a %s or a %s, not both", value,
                             by->frames, frames);
        if (frames)
            by->frames = frames;
        else
            vector_push(&by->labels, arena_copy(&request->arena, word).data);
    }
    by->text = value;
    return true;
}

static void settle_names(struct request *request) {
    const struct grouping *by = &request->by;
    request->naming.roots = by->labels.items;
    request->naming.root_count = by->labels.count;
    for (size_t i = 0; by->frames && i < COUNT_OF(frame_dimensions); i++)
        if (strcmp(by->frames, frame_dimensions[i].name) == 0)
            request->naming.frames = frame_dimensions[i].unit;
    request->import.profile.source_lines |= request->naming.frames == FRAME_LINE;
}

/* Adjacent frames of one object are merged. */
bool grouping_settle(struct request *request, struct error *error) {
    if (request->by.frames && strcmp(request->by.frames, "category") == 0)
        return error_set(error, ERROR_USAGE, "--by category is for tables: wick report");
    settle_names(request);
    request->flame.fold_recursion |=
        request->naming.frames == FRAME_OBJECT || request->naming.frames == FRAME_MODULE;
    return true;
}

/* Objects and categories are computed from functions. */
enum report_by grouping_settle_table(struct request *request) {
    const char *frames = request->by.frames ? request->by.frames : "function";
    bool objects = strcmp(frames, "object") == 0;
    settle_names(request);
    if (objects)
        request->naming.frames = FRAME_FUNCTION;
    return objects                           ? BY_OBJECT
           : strcmp(frames, "category") == 0 ? BY_CATEGORY
           : strcmp(frames, "function") == 0 ? BY_FUNCTION
                                             : BY_NAME;
}

bool grouping_credits_sites(const struct request *request, const struct tree *tree,
                            enum report_by by) {
    const char *frames = request->by.frames;
    return tree_is_of_memory(tree) && by == BY_FUNCTION &&
           (!frames || strcmp(frames, "function") == 0) && !request->compat;
}

struct report *grouping_report(const struct request *request, const struct flame *flame,
                               const struct categories *categories, enum report_by by) {
    const struct grouping *grouping = &request->by;
    if (!grouping->labels.count && by != BY_NAME)
        return report_of_flame(flame, categories, by);
    struct buffer title = {0};
    for (size_t i = 0; i < grouping->labels.count; i++)
        buffer_printf(&title, "%s;", grouping->labels.items[i]);
    buffer_printf(&title, "%s%c", grouping->frames ? grouping->frames : "function", 0);
    struct report *report = grouping->labels.count
                                ? report_of_roots(flame, categories, by, title.items)
                                : report_of_names(flame, title.items);
    buffer_release(&title);
    return report;
}

bool grouping_asks(const struct request *request, struct text key) {
    for (size_t i = 0; i < request->by.labels.count; i++)
        if (text_equal(dimension_key(text_of(request->by.labels.items[i])), key))
            return true;
    return false;
}

/* Compute what takes more than a look at the series, and only on request. If no CPU was recorded, the label does not
   exist. */
void grouping_prepare(const struct request *request, struct tree *tree) {
    if (grouping_asks(request, TEXT("process")))
        tree_name_processes(tree);
    if (grouping_asks(request, TEXT("cpu")))
        tree_label_cpus(tree);
}

static bool has_label(const struct tree *tree, struct text key) {
    for (size_t i = 0; i < tree->label_pairs.count; i++)
        if (text_equal(strings_get(tree->strings, tree->label_pairs.items[i].key), key))
            return true;
    return false;
}

/* Without this check, a mistyped dimension would put everything into one row. Without samples no label is wrong: the command says that there
   are none. */
bool grouping_check(const struct request *request, const struct tree *tree, struct error *error) {
    if (tree->series.count <= 1)
        return true;
    for (size_t i = 0; i < request->by.labels.count; i++) {
        struct text word = text_of(request->by.labels.items[i]), key = dimension_key(word);
        bool of_thread = text_equal(word, TEXT("process")) || text_equal(word, TEXT("thread"));
        if (of_thread || label_is_fixed(key) || has_label(tree, key))
            continue;
        if (text_equal(key, TEXT("cpu")))
            return error_set(error, ERROR_INPUT,
                             "--by cpu: the samples do not say on which CPU they were taken");
        if (text_equal(key, TEXT("lifetime")))
            return error_set(error, ERROR_INPUT,
                             "--by lifetime needs a recording of allocations: wick record --heap");
        struct guess guess = {.typed = key};
        static const char *const known[] = {"function", "line",    "address", "object", "module",
                                            "category", "process", "thread",  "event",  "pid",
                                            "tid",      "comm",    "state",   "ending", "cpu"};
        for (size_t k = 0; k < COUNT_OF(known); k++)
            guess_offer(&guess, known[k]);
        for (size_t k = 0; k < tree->label_pairs.count; k++)
            guess_offer(&guess, strings_get(tree->strings, tree->label_pairs.items[k].key).data);
        if (guess.best)
            return error_set(error, ERROR_INPUT,
                             "--by %.*s: no sample has this label (did you mean %s?)",
                             TEXT_ARGS(word), guess.best);
        struct buffer list = {0};
        for (size_t k = 0; k < COUNT_OF(known); k++)
            buffer_printf(&list, "%s%s", k ? ", " : "", known[k]);
        error_set(error, ERROR_INPUT, "--by %.*s: no sample has this label; use a label or %.*s",
                  TEXT_ARGS(word), TEXT_ARGS(buffer_text(&list)));
        buffer_release(&list);
        return false;
    }
    return true;
}
