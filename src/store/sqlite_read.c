/*
 * Read from the file. Series are few: they are all examined here, with their labels, and each that passes is queried
 * for its sums by stack, which is one range of the table's key. No text of the query ever becomes SQL.
 */
#include <stdlib.h>

#include "store/sqlite.h"

static const struct note_kind note_removed = {
    "store-removed",
    "samples older than the retention are gone; hourly sums have neither hosts nor parts of hours"};

struct known_id {
    int64_t id;
    uint32_t number; /* in the answer */
};
/* Ids of rows that were already read. */
struct known {
    VECTOR(struct known_id) items;
    struct index index;
};

static uint32_t known_find(const struct known *known, int64_t id) {
    uint32_t at;
    for (struct probe p = index_probe(&known->index, hash_mix((uint64_t)id, 7));
         (at = index_next(&known->index, &p));)
        if (known->items.items[at - 1].id == id)
            return known->items.items[at - 1].number + 1;
    return 0;
}

static void known_add(struct known *known, int64_t id, uint32_t number) {
    vector_push(&known->items, ((struct known_id){id, number}));
    index_add(&known->index, hash_mix((uint64_t)id, 7), (uint32_t)known->items.count);
}

static void known_release(struct known *known) {
    vector_release(&known->items);
    index_release(&known->index);
}

struct chosen_series {
    int64_t id, each;
    struct series_row row;
    bool times; /* a series of threads' time on and off the CPU */
};

struct link {
    int64_t parent;
    uint32_t frame;
};

struct reader {
    struct sqlite_store *s;
    const struct store_query *query;
    struct answer *answer;
    struct error *error;
    VECTOR(struct chosen_series) series;
    struct known sets, stacks, frames, links;
    VECTOR(struct link) link_rows;
    VECTOR(uint32_t) path;
    sqlite3_stmt *labels_of, *stacks_of, *names_of;
};

/* ---- bounds ---- */

static bool damaged(struct reader *r, const char *what) {
    return error_set(r->error, ERROR_INPUT, "%s: %s is damaged", r->s->store.where, what);
}

static bool take(struct reader *r, uint64_t bytes) {
    return budget_take_memory(&r->answer->budget, bytes, NO_OFFSET) ||
           budget_error(&r->answer->budget, r->s->store.where, r->error);
}

static struct text copy_text(struct reader *r, sqlite3_stmt *statement, int column) {
    return answer_text(r->answer, sqlite_text_at(statement, column));
}

static bool step(struct reader *r, sqlite3_stmt *statement, bool *row) {
    int code = sqlite3_step(statement);
    *row = code == SQLITE_ROW;
    return *row || code == SQLITE_DONE || sqlite_error(r->s, r->error);
}

/* ---- series ---- */

static bool read_set(struct reader *r, int64_t id, uint32_t *number) {
    uint32_t found = known_find(&r->sets, id);
    *number = found - 1;
    if (found)
        return true;
    struct answer *answer = r->answer;
    struct set_row set = {.first = (uint32_t)answer->pairs.count};
    bool row = true, fine = true;
    sqlite3_bind_int64(r->labels_of, 1, id);
    while (fine && row) {
        fine = step(r, r->labels_of, &row);
        if (!fine || !row)
            break;
        struct pair_row pair = {copy_text(r, r->labels_of, 0), copy_text(r, r->labels_of, 1)};
        fine = take(r, sizeof pair + pair.key.length + pair.value.length);
        vector_push(&answer->pairs, pair);
    }
    sqlite3_reset(r->labels_of);
    set.count = (uint32_t)answer->pairs.count - set.first;
    *number = (uint32_t)answer->sets.count;
    vector_push(&answer->sets, set);
    known_add(&r->sets, id, *number);
    return fine;
}

static bool consider_series(struct reader *r, sqlite3_stmt *statement) {
    struct chosen_series chosen = {.id = sqlite3_column_int64(statement, 0),
                                   .each = sqlite3_column_int64(statement, 6)};
    struct series_row *row = &chosen.row;
    row->service = copy_text(r, statement, 1);
    row->version = copy_text(r, statement, 2);
    row->host = copy_text(r, statement, 3);
    row->type = copy_text(r, statement, 4);
    row->time = -1;
    if (!take(r, sizeof chosen + row->service.length + row->version.length + row->host.length +
                     row->type.length) ||
        !read_set(r, sqlite3_column_int64(statement, 5), &row->set))
        return false;
    const struct set_row *set = &r->answer->sets.items[row->set];
    const struct pair_row *pairs = answer_pairs(r->answer, set);
    chosen.times = set_is_of_times(pairs, set->count);
    if (query_passes(r->query, row, pairs, set->count))
        vector_push(&r->series, chosen);
    return true;
}

static bool read_series(struct reader *r) {
    sqlite3_stmt *statement =
        sqlite_prepare(r->s, r->s->is_first ? sqlite_series_1 : sqlite_series, r->error);
    bool row = true, fine = statement != NULL;
    while (fine && row) {
        fine = step(r, statement, &row);
        fine = fine && (!row || consider_series(r, statement));
    }
    sqlite3_finalize(statement);
    return fine;
}

static struct text event_of(const struct reader *r, const struct chosen_series *chosen) {
    const struct set_row *set = &r->answer->sets.items[chosen->row.set];
    return pair_value(answer_pairs(r->answer, set), set->count, "event");
}

static bool is_wanted(const struct reader *r, const struct chosen_series *chosen,
                      struct text type) {
    if (chosen->times)
        return r->query->waits;
    return r->query->all_types || type_is_called(chosen->row.type, event_of(r, chosen), type);
}

/* Collect the distinct types of the series that passed. */
static const struct text *find_type(struct reader *r) {
    static const struct text none = TEXT("");
    VECTOR(struct text) types = {0};
    for (size_t i = 0; i < r->series.count; i++) {
        size_t k = 0;
        while (k < types.count && !text_equal(types.items[k], r->series.items[i].row.type))
            k++;
        if (k == types.count && !r->series.items[i].times)
            vector_push(&types, r->series.items[i].row.type);
    }
    const struct text *type =
        types.count ? choose_type(types.items, types.count, r->s->store.where, r->error) : &none;
    if (type && types.count)
        for (size_t i = 0; i < r->series.count; i++)
            if (text_equal(r->series.items[i].row.type, *type))
                type = &r->series.items[i].row.type; /* which outlives the list */
    vector_release(&types);
    return type;
}

static bool choose_series(struct reader *r) {
    struct text type = text_of(r->query->type);
    if (!r->query->all_types && !r->query->type) {
        const struct text *found = find_type(r);
        if (!found)
            return false;
        type = *found;
    }
    size_t kept = 0;
    for (size_t i = 0; i < r->series.count; i++)
        if (is_wanted(r, &r->series.items[i], type))
            r->series.items[kept++] = r->series.items[i];
    r->series.count = kept;
    return true;
}

/* ---- frames and stacks ---- */

static void take_later_name(struct reader *r, struct frame_row *frame) {
    if (sqlite3_column_type(r->names_of, 18) == SQLITE_NULL)
        return;
    frame->name = copy_text(r, r->names_of, 18);
    frame->file = copy_text(r, r->names_of, 19);
    frame->line = (uint32_t)sqlite3_column_int64(r->names_of, 20);
    frame->flags = (frame->flags | FRAME_NAMED) & ~(uint32_t)FRAME_NONE;
}

static bool read_frame_row(struct reader *r, struct frame_row *frame) {
    sqlite3_stmt *from = r->names_of;
    struct text hash = sqlite_blob_at(from, 0);
    memcpy(frame->id.bytes, hash.data,
           hash.length < sizeof frame->id.bytes ? hash.length : sizeof frame->id.bytes);
    frame->name = copy_text(r, from, 1);
    frame->file = copy_text(r, from, 2);
    frame->line = (uint32_t)sqlite3_column_int64(from, 3);
    frame->column = (uint32_t)sqlite3_column_int64(from, 4);
    frame->offset = (uint64_t)sqlite3_column_int64(from, 5);
    frame->first_line = (uint32_t)sqlite3_column_int64(from, 6);
    frame->module = copy_text(r, from, 7);
    frame->language = copy_text(r, from, 8);
    frame->address = (uint64_t)sqlite3_column_int64(from, 9);
    frame->raw = (uint64_t)sqlite3_column_int64(from, 10);
    frame->flags = (uint32_t)sqlite3_column_int64(from, 11);
    frame->object = copy_text(r, from, 12);
    frame->build_id = copy_text(r, from, 13);
    frame->object_kind = (uint32_t)sqlite3_column_int64(from, 14);
    frame->object_pid = (int32_t)sqlite3_column_int64(from, 15);
    frame->object_start = (uint64_t)sqlite3_column_int64(from, 16);
    frame->object_size = (uint64_t)sqlite3_column_int64(from, 17);
    take_later_name(r, frame);
    return take(r, sizeof *frame + frame->name.length + frame->file.length + frame->module.length +
                       frame->language.length + frame->object.length + frame->build_id.length);
}

static bool read_frame(struct reader *r, int64_t id, uint32_t *number) {
    uint32_t found = known_find(&r->frames, id);
    *number = found - 1;
    if (found)
        return true;
    struct frame_row frame = {0};
    bool row;
    sqlite3_bind_int64(r->names_of, 1, id);
    bool fine =
        step(r, r->names_of, &row) && (row || damaged(r, "a stack")) && read_frame_row(r, &frame);
    sqlite3_reset(r->names_of);
    *number = (uint32_t)r->answer->frames.count;
    vector_push(&r->answer->frames, frame);
    known_add(&r->frames, id, *number);
    return fine;
}

/* A parent's id is smaller than its child's, so that walking up ends. */
static bool read_link(struct reader *r, int64_t id, struct link *link) {
    uint32_t found = known_find(&r->links, id);
    if (found) {
        *link = r->link_rows.items[found - 1];
        return true;
    }
    bool row;
    sqlite3_bind_int64(r->stacks_of, 1, id);
    bool fine = step(r, r->stacks_of, &row) && (row || damaged(r, "a stack"));
    int64_t frame = fine ? sqlite3_column_int64(r->stacks_of, 1) : 0;
    link->parent = fine ? sqlite3_column_int64(r->stacks_of, 0) : 0;
    sqlite3_reset(r->stacks_of);
    if (fine && (link->parent < 0 || link->parent >= id))
        fine = damaged(r, "a stack");
    if (!fine || !read_frame(r, frame, &link->frame))
        return false;
    known_add(&r->links, id, (uint32_t)r->link_rows.count);
    vector_push(&r->link_rows, *link);
    return take(r, sizeof *link + sizeof(struct known_id));
}

static bool read_stack(struct reader *r, int64_t id, uint32_t *number) {
    uint32_t found = known_find(&r->stacks, id);
    *number = found - 1;
    if (found)
        return true;
    struct answer *answer = r->answer;
    r->path.count = 0;
    for (int64_t at = id; at > 0;) {
        struct link link;
        if (!read_link(r, at, &link))
            return false;
        vector_push(&r->path, link.frame);
        at = link.parent;
    }
    struct answer_path path = {(uint32_t)answer->frames_of_paths.count, (uint32_t)r->path.count};
    if (!take(r, sizeof path + path.count * sizeof(uint32_t)) ||
        answer->frames_of_paths.count + path.count > UINT32_MAX)
        return false;
    while (r->path.count)
        vector_push(&answer->frames_of_paths, r->path.items[--r->path.count]);
    *number = (uint32_t)answer->paths.count;
    vector_push(&answer->paths, path);
    known_add(&r->stacks, id, *number);
    return true;
}

/* ---- sums ---- */

/* One time range, from one of the two tables. */
struct part {
    bool hours;
    int64_t from, to;
};
struct plan {
    struct part parts[3];
    size_t count;
    bool removed; /* some requested samples were already removed */
};

static void plan_add(struct plan *plan, bool hours, int64_t from, int64_t to) {
    if (from < to)
        plan->parts[plan->count++] = (struct part){hours, from, to};
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Use the sums by the hour for whole hours if they suffice, and samples for the rest, as far as they still exist. */
static struct plan make_plan(const struct sqlite_store *s, const struct store_query *query) {
    struct plan plan = {0};
    int64_t from = query->from, to = query->to ? query->to : INT64_MAX, first, last;
    int64_t there = s->samples_from;
    if (query_hours(query, &first, &last)) {
        plan_add(&plan, false, larger(from, there), first);
        plan_add(&plan, true, first, last);
        plan_add(&plan, false, larger(last, there), to);
        plan.removed = (from < first && from < there) || (last < to && last < there);
    } else {
        plan_add(&plan, false, larger(from, there), to);
        plan.removed = from < there && there > 0;
    }
    return plan;
}

/* Two columns, of samples and values. The sum of texts or fractions is not an integer. */
static bool read_sum(struct reader *r, sqlite3_stmt *statement, int column, int64_t each,
                     uint64_t *samples, uint64_t *value) {
    int64_t count = sqlite3_column_int64(statement, column);
    *samples = (uint64_t)count;
    return (sqlite3_column_type(statement, column) == SQLITE_INTEGER &&
            sqlite3_column_type(statement, column + 1) == SQLITE_INTEGER &&
            sqlite_unpack(count, sqlite3_column_int64(statement, column + 1), each, value)) ||
           damaged(r, "a sum");
}

static bool read_sums(struct reader *r, sqlite3_stmt *statement, const struct chosen_series *chosen,
                      const struct part *part) {
    bool row = true, fine = true, begun = false;
    uint32_t series = 0;
    int64_t now = -1;
    sqlite3_bind_int64(statement, 1, r->query->step);
    sqlite3_bind_int64(statement, 2, chosen->id);
    sqlite3_bind_int64(statement, 3, part->from);
    sqlite3_bind_int64(statement, 4, part->to);
    while (fine && (fine = step(r, statement, &row)) && row) {
        int64_t time = r->query->step > 0 ? sqlite3_column_int64(statement, 3) : -1;
        if (!begun || time != now) {
            struct series_row made = chosen->row;
            made.time = now = time;
            series = (uint32_t)r->answer->series.count;
            vector_push(&r->answer->series, made);
            begun = true;
        }
        struct answer_cell cell = {.series = series};
        fine = read_sum(r, statement, 1, chosen->each, &cell.samples, &cell.value) &&
               take(r, sizeof cell) &&
               read_stack(r, sqlite3_column_int64(statement, 0), &cell.path);
        if (fine)
            vector_push(&r->answer->cells, cell);
    }
    sqlite3_reset(statement);
    return fine;
}

/* Sums by the hour are stored under the series without a host. */
static bool part_has(const struct part *part, const struct chosen_series *chosen) {
    return !part->hours || chosen->row.host.length == 0;
}

static bool read_all(struct reader *r, const struct plan *plan) {
    sqlite3_stmt *raw = sqlite_prepare(r->s, sqlite_flame, r->error),
                 *hours = sqlite_prepare(r->s, sqlite_flame_long, r->error);
    bool fine = raw && hours;
    for (size_t i = 0; i < r->series.count && fine; i++)
        for (size_t k = 0; k < plan->count && fine; k++)
            if (part_has(&plan->parts[k], &r->series.items[i]))
                fine = read_sums(r, plan->parts[k].hours ? hours : raw, &r->series.items[i],
                                 &plan->parts[k]);
    sqlite3_finalize(raw);
    sqlite3_finalize(hours);
    return fine;
}

/* ---- notes ---- */

static char *copy_string(sqlite3_stmt *statement, int column) {
    struct text text = sqlite_text_at(statement, column);
    return memory_copy(text.data, text.length);
}

static bool read_notes(struct reader *r, struct notes *notes) {
    sqlite3_stmt *statement = sqlite_prepare(r->s, sqlite_notes, r->error);
    bool row = true, fine = statement != NULL;
    if (fine) {
        sqlite3_bind_int64(statement, 1, r->query->from);
        sqlite3_bind_int64(statement, 2, r->query->to ? r->query->to : INT64_MAX);
    }
    while (fine && (fine = step(r, statement, &row)) && row) {
        char *name = copy_string(statement, 0), *sentence = copy_string(statement, 1),
             *example = sqlite3_column_type(statement, 5) == SQLITE_NULL
                            ? NULL
                            : copy_string(statement, 5);
        struct note_kind kind = {name, sentence, sqlite3_column_int64(statement, 2) != 0};
        fine = take(r, sizeof kind + strlen(name) + strlen(sentence));
        notes_add_copied(notes, &kind, (uint64_t)sqlite3_column_int64(statement, 3),
                         (uint64_t)sqlite3_column_int64(statement, 4), example);
        free(name);
        free(sentence);
        free(example);
    }
    sqlite3_finalize(statement);
    return fine;
}

/* ---- entry points ---- */

static bool reader_init(struct reader *r) {
    int64_t pages = 0, size = 0;
    sqlite3_stmt *statement = sqlite_prepare(
        r->s, TEXT("SELECT page_count, page_size FROM pragma_page_count, pragma_page_size"),
        r->error);
    if (!statement)
        return false;
    if (sqlite3_step(statement) == SQLITE_ROW) {
        pages = sqlite3_column_int64(statement, 0);
        size = sqlite3_column_int64(statement, 1);
    }
    sqlite3_finalize(statement);
    budget_init(&r->answer->budget, context_limits(r->s->store.options.context),
                (uint64_t)pages * (uint64_t)size);
    r->s->budget = &r->answer->budget;
    r->answer->where = r->s->store.where;
    r->labels_of = sqlite_prepare(r->s, sqlite_labels_of, r->error);
    r->stacks_of = sqlite_prepare(r->s, sqlite_stacks_of, r->error);
    r->names_of = sqlite_prepare(r->s, sqlite_names_of, r->error);
    return r->labels_of && r->stacks_of && r->names_of;
}

static void reader_release(struct reader *r) {
    sqlite3_finalize(r->labels_of);
    sqlite3_finalize(r->stacks_of);
    sqlite3_finalize(r->names_of);
    known_release(&r->sets);
    known_release(&r->stacks);
    known_release(&r->frames);
    known_release(&r->links);
    vector_release(&r->series);
    vector_release(&r->link_rows);
    vector_release(&r->path);
    r->s->budget = NULL;
}

bool sqlite_read(struct store *store, const struct store_query *query, struct answer *answer,
                 struct notes *notes, struct error *error) {
    struct reader r = {.s = sqlite_of(store), .query = query, .answer = answer, .error = error};
    struct plan plan = make_plan(r.s, query);
    bool fine = reader_init(&r) && read_series(&r) && choose_series(&r) && read_all(&r, &plan) &&
                (!query_is_whole(query) || read_notes(&r, notes));
    if (fine && plan.removed)
        notes_add(notes, &note_removed, 1, 0, NULL);
    reader_release(&r);
    return fine;
}

/* Get sums by a label and, with a step, by time. */
static bool add_sums(struct reader *r, struct sums *sums, struct arena *arena,
                     sqlite3_stmt *statement, const struct chosen_series *chosen,
                     const struct part *part, int64_t every, struct text key) {
    bool row = true, fine = true;
    sqlite3_bind_int64(statement, 1, every);
    sqlite3_bind_int64(statement, 2, chosen->id);
    sqlite3_bind_int64(statement, 3, part->from);
    sqlite3_bind_int64(statement, 4, part->to);
    while (fine && (fine = step(r, statement, &row)) && row) {
        uint64_t samples, value;
        if (sqlite3_column_type(statement, 0) == SQLITE_NULL)
            continue;
        fine = read_sum(r, statement, 0, chosen->each, &samples, &value) &&
               take(r, sizeof(struct store_row)) &&
               (sums_add(sums, arena, key, every ? sqlite3_column_int64(statement, 2) : 0, samples,
                         value) ||
                damaged(r, "a sum"));
    }
    sqlite3_reset(statement);
    return fine;
}

static struct text label_of(const struct reader *r, const struct chosen_series *chosen,
                            const char *label) {
    const struct set_row *set = &r->answer->sets.items[chosen->row.set];
    return is_column(text_of(label)) ? series_column(&chosen->row, text_of(label))
                                     : pair_value(answer_pairs(r->answer, set), set->count, label);
}

bool sqlite_sums(struct store *store, const struct store_query *query, struct store_rows *rows,
                 struct error *error) {
    struct answer answer = {0};
    struct sums sums = {0};
    const char *label = query->by.items[0];
    struct reader r = {.s = sqlite_of(store), .query = query, .answer = &answer, .error = error};
    struct plan plan = make_plan(r.s, query);
    bool fine = reader_init(&r) && read_series(&r) && choose_series(&r);
    sqlite3_stmt *raw = fine ? sqlite_prepare(r.s, sqlite_heat, error) : NULL,
                 *hours = fine ? sqlite_prepare(r.s, sqlite_heat_long, error) : NULL;
    fine = fine && raw && hours;
    for (size_t i = 0; i < r.series.count && fine; i++)
        for (size_t k = 0; k < plan.count && fine; k++)
            if (part_has(&plan.parts[k], &r.series.items[i]))
                fine = add_sums(&r, &sums, &rows->arena, plan.parts[k].hours ? hours : raw,
                                &r.series.items[i], &plan.parts[k], query->step,
                                label_of(&r, &r.series.items[i], label));
    sqlite3_finalize(raw);
    sqlite3_finalize(hours);
    sums_finish(&sums, rows);
    reader_release(&r);
    answer_release(&answer);
    return fine;
}

static bool widen_span(struct reader *r, sqlite3_stmt *statement, int64_t series, int64_t *from,
                       int64_t *to, bool *found) {
    bool row;
    sqlite3_bind_int64(statement, 1, series);
    sqlite3_bind_int64(statement, 2, r->query->from);
    sqlite3_bind_int64(statement, 3, r->query->to ? r->query->to : INT64_MAX);
    sqlite3_bind_int64(statement, 4, r->s->samples_from);
    bool fine = step(r, statement, &row);
    if (fine && row && sqlite3_column_type(statement, 0) != SQLITE_NULL) {
        int64_t first = sqlite3_column_int64(statement, 0),
                last = sqlite3_column_int64(statement, 1);
        *from = *found && *from < first ? *from : first;
        *to = *found && *to > last ? *to : last;
        *found = true;
    }
    sqlite3_reset(statement);
    return fine;
}

bool sqlite_span_of(struct store *store, const struct store_query *query, int64_t *from,
                    int64_t *to, struct error *error) {
    struct answer answer = {0};
    struct reader r = {.s = sqlite_of(store), .query = query, .answer = &answer, .error = error};
    bool fine = reader_init(&r) && read_series(&r) && choose_series(&r), found = false;
    sqlite3_stmt *statement = fine ? sqlite_prepare(r.s, sqlite_span, error) : NULL;
    for (size_t i = 0; i < r.series.count && statement && fine; i++)
        fine = widen_span(&r, statement, r.series.items[i].id, from, to, &found);
    sqlite3_finalize(statement);
    reader_release(&r);
    answer_release(&answer);
    return fine && found;
}
