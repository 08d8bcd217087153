/* Read from a server: sums by stack and label set, then the sets, stacks and frames that they refer to. */
#include <stdlib.h>

#include "store/clickhouse.h"

static const struct note_kind note_partial = {
    "store-partial", "a part of the store did not answer or is behind: all sums are too small"};

/* Items that were referred to by hash, numbered in the order of first use. */
struct hashed {
    struct store_hash hash;
    bool there; /* the server has sent it */
};
struct by_hash {
    VECTOR(struct hashed) items;
    struct index index;
};

struct asker {
    struct clickhouse_store *c;
    const struct store_query *query;
    struct answer *answer;
    struct error *error;
    struct by_hash sets, stacks, frames;
    struct index series_index;
    struct buffer type; /* as SQL; empty: all */
    bool one_type;      /* everything that is read has one type */
    bool is_short;      /* something that was referred to is missing */
};

static uint32_t hash_number(struct by_hash *all, const struct store_hash *hash) {
    uint32_t id;
    for (struct probe p = index_probe(&all->index, store_hash_slot(hash));
         (id = index_next(&all->index, &p));)
        if (store_hash_equal(&all->items.items[id - 1].hash, hash))
            return id - 1;
    vector_push(&all->items, ((struct hashed){*hash, false}));
    index_add(&all->index, store_hash_slot(hash), (uint32_t)all->items.count);
    return (uint32_t)all->items.count - 1;
}

static void by_hash_release(struct by_hash *all) {
    vector_release(&all->items);
    index_release(&all->index);
}

/* ---- time ranges ---- */

/* The table from which a time range is read. */
enum grain { SAMPLES, HOURS, DAYS };
static const struct {
    const char *table, *time;
} grains[] = {[SAMPLES] = {"samples", "time"},
              [HOURS] = {"samples_1h", "hour"},
              [DAYS] = {"samples_1d", "day"}};

struct part {
    enum grain grain;
    int64_t from, to;
};
struct plan {
    struct part parts[5];
    size_t count;
};

static void plan_add(struct plan *plan, enum grain grain, int64_t from, int64_t to) {
    if (from < to)
        plan->parts[plan->count++] = (struct part){grain, from, to};
}

/* Add whole hours; whole days of these are read from sums by the day. Days come first, because they refer to most
   stacks. */
static void plan_hours(const struct asker *a, struct plan *plan, int64_t from, int64_t to) {
    enum { DAY = 86400 };
    const struct clickhouse_store *c = a->c;
    int64_t first = floor_to((from > c->days_from ? from : c->days_from) + DAY - 1, DAY),
            last = floor_to(to, DAY);
    if (!c->has_days || a->query->step % DAY || first >= last) {
        plan_add(plan, HOURS, from, to);
        return;
    }
    plan_add(plan, DAYS, first, last);
    plan_add(plan, HOURS, from, first);
    plan_add(plan, HOURS, last, to);
}

static bool ask(struct asker *a, struct text template, const struct sql_value *values, size_t count,
                struct answer_file *answer) {
    struct buffer sql = {0};
    sql_fill(a->c, &sql, template, values, count);
    bool fine = clickhouse_ask(a->c, buffer_text(&sql), answer, a->error);
    buffer_release(&sql);
    if (fine)
        budget_grow(&a->answer->budget, answer->file.size);
    return fine;
}

/* Sums by the hour cover the time whose samples retention has removed. Old servers do not write a block and its sums
   by the hour atomically, so these are only used then. */
static bool make_plan(struct asker *a, struct plan *plan) {
    enum { HOUR = 3600 };
    int64_t from = a->query->from, to = a->query->to ? a->query->to : UINT32_MAX, first, last;
    *plan = (struct plan){0};
    bool by_hour = query_hours(a->query, &first, &last);
    last = last < to ? last : floor_to(to, HOUR);
    if (by_hour && !a->c->modern) {
        struct answer_file answer;
        if (!ask(a, clickhouse_oldest, NULL, 0, &answer))
            return false;
        int64_t oldest = floor_to((int64_t)row_number(&answer, 4), HOUR);
        bool any = row_number(&answer, 8) > 0;
        answer_file_close(&answer);
        last = any && oldest < last ? oldest : last;
        by_hour = first < last;
    }
    if (!by_hour) {
        plan_add(plan, SAMPLES, from, to);
        return true;
    }
    plan_hours(a, plan, first, last);
    plan_add(plan, SAMPLES, from, first);
    plan_add(plan, SAMPLES, last, to);
    return true;
}

/* ---- which type ---- */

static void fill_where(struct asker *a, const struct part *part, struct buffer *table,
                       struct buffer *where) {
    buffer_printf(table, "%s.%s", a->c->database, grains[part->grain].table);
    sql_where(a->c, where, a->query, grains[part->grain].time, part->from, part->to,
              buffer_text(&a->type));
}

static bool collect_types(struct asker *a, const struct part *part, struct arena *arena,
                          struct text *types, size_t most, size_t *count) {
    struct buffer table = {0}, where = {0};
    struct answer_file answer;
    fill_where(a, part, &table, &where);
    const struct sql_value values[] = {{"table", buffer_text(&table)},
                                       {"where", buffer_text(&where)}};
    bool fine = ask(a, clickhouse_types, values, COUNT_OF(values), &answer);
    while (fine && rows_left(&answer)) {
        struct text type = row_text(&answer);
        size_t i = 0;
        while (i < *count && !text_equal(types[i], type))
            i++;
        if (i == *count && i < most)
            types[(*count)++] = arena_copy(arena, type);
    }
    fine = fine && rows_are_good(a->c, &answer, a->error);
    answer_file_close(&answer);
    buffer_release(&table);
    buffer_release(&where);
    return fine;
}

/* Choose all types with that name, or else the events. */
static void type_condition(struct asker *a, const struct text *types, size_t count,
                           struct text wanted) {
    struct buffer *sql = &a->type;
    buffer_add(sql, TEXT("(0"));
    for (size_t i = 0; i < count; i++)
        if (type_is_called(types[i], TEXT(""), wanted)) {
            buffer_add(sql, TEXT(" OR type = "));
            sql_text(sql, types[i]);
        }
    buffer_printf(sql,
                  " OR labels GLOBAL IN (SELECT id FROM %s.series WHERE vals[indexOf(keys, "
                  "'event')] = ",
                  a->c->database);
    sql_text(sql, wanted);
    buffer_add(sql, TEXT("))"));
}

static bool find_type(struct asker *a, const struct plan *plan) {
    enum { TYPES_MOST = 1000 };
    if (a->query->all_types)
        return true;
    struct arena arena = {0};
    struct text *types = memory_zero(TYPES_MOST, sizeof *types);
    size_t count = 0;
    bool fine = true, waits = a->query->waits;
    struct store_query plain = *a->query;
    const struct store_query *query = a->query;
    plain.waits = false;
    a->query = &plain;
    for (size_t i = 0; i < plan->count && fine; i++)
        fine = collect_types(a, &plan->parts[i], &arena, types, TYPES_MOST, &count);
    a->query = query;
    if (fine && query->type)
        type_condition(a, types, count, text_of(query->type));
    else if (fine && count) {
        const struct text *type = choose_type(types, count, a->c->store.where, a->error);
        fine = type != NULL;
        a->one_type = !waits;
        if (fine && (count > 1 || waits)) {
            buffer_add(&a->type, TEXT("(type = "));
            sql_text(&a->type, *type);
            buffer_add_char(&a->type, ')');
        }
    } else if (fine) {
        buffer_add(&a->type, waits ? TEXT("0") : TEXT(""));
    }
    arena_release(&arena);
    free(types);
    return fine;
}

/* ---- sums ---- */

static bool series_equal_row(const struct series_row *a, const struct series_row *b) {
    return a->set == b->set && a->time == b->time && text_equal(a->service, b->service) &&
           text_equal(a->version, b->version) && text_equal(a->host, b->host);
}

static uint32_t add_series(struct asker *a, const struct series_row *row) {
    struct answer *answer = a->answer;
    uint64_t hash = hash_mix((uint64_t)row->time << 32 | row->set,
                             hash_bytes(row->service.data, row->service.length) ^
                                 hash_bytes(row->version.data, row->version.length));
    hash = hash_mix(hash, hash_bytes(row->host.data, row->host.length));
    uint32_t id;
    for (struct probe p = index_probe(&a->series_index, hash);
         (id = index_next(&a->series_index, &p));)
        if (series_equal_row(&answer->series.items[id - 1], row))
            return id - 1;
    struct series_row copy = *row;
    copy.service = answer_text(answer, row->service);
    copy.version = answer_text(answer, row->version);
    copy.host = answer_text(answer, row->host);
    vector_push(&answer->series, copy);
    index_add(&a->series_index, hash, (uint32_t)answer->series.count);
    return (uint32_t)answer->series.count - 1;
}

static void read_sum(struct asker *a, struct answer_file *from) {
    struct store_hash stack = row_hash(from), labels = row_hash(from);
    struct series_row row = {0};
    row.service = row_text(from);
    row.version = row_text(from);
    row.host = row_text(from);
    row.time = (int64_t)row_number(from, 4);
    if (a->query->step <= 0)
        row.time = -1;
    struct answer_cell cell = {0};
    cell.samples = row_number(from, 8);
    cell.value = row_number(from, 8);
    if (from->is_bad)
        return;
    row.set = hash_number(&a->sets, &labels);
    cell.path = hash_number(&a->stacks, &stack);
    cell.series = add_series(a, &row);
    vector_push(&a->answer->cells, cell);
}

static void step_text(const struct store_query *query, enum grain grain, struct buffer *step) {
    const char *time = grains[grain].time;
    if (query->step > 0)
        buffer_printf(step, "toUInt32(toUInt32(%s) - toUInt32(%s) %% %lld)", time, time,
                      (long long)query->step);
    else
        buffer_printf(step, "toUInt32(0)");
}

static bool read_sums(struct asker *a, const struct part *part) {
    const struct store_query *query = a->query;
    struct buffer table = {0}, where = {0}, step = {0}, groups = {0};
    struct answer_file answer;
    bool sets = query_keeps_sets(query), service = query_keeps(query, TEXT("service")),
         version = query_keeps(query, TEXT("version")),
         host = query_keeps(query, TEXT("host")) && part->grain == SAMPLES;
    fill_where(a, part, &table, &where);
    step_text(query, part->grain, &step);
    bool alone = query_has_one_service(query);
    buffer_printf(&groups, "stack%s%s%s%s%s", a->one_type ? "" : ", type", sets ? ", labels" : "",
                  service && !alone ? ", service" : "", version ? ", version" : "",
                  host ? ", host" : "");
    if (query->step > 0)
        buffer_printf(&groups, ", %.*s", TEXT_ARGS(buffer_text(&step)));
    const struct sql_value values[] = {
        {"table", buffer_text(&table)},
        {"where", buffer_text(&where)},
        {"step", buffer_text(&step)},
        {"groups", buffer_text(&groups)},
        {"labels", sets ? TEXT("labels") : TEXT("any(labels)")},
        {"service", !service ? TEXT("''")
                    : alone  ? TEXT("toString(any(service))")
                             : TEXT("toString(service)")},
        {"version", version ? TEXT("toString(version)") : TEXT("''")},
        {"host", host ? TEXT("toString(host)") : TEXT("''")},
    };
    bool fine = ask(a, clickhouse_flame, values, COUNT_OF(values), &answer);
    while (fine && rows_left(&answer))
        read_sum(a, &answer);
    fine = fine && rows_are_good(a->c, &answer, a->error);
    answer_file_close(&answer);
    buffer_release(&table);
    buffer_release(&where);
    buffer_release(&step);
    buffer_release(&groups);
    return fine;
}

/* ---- what the sums refer to ---- */

static void read_set(struct asker *a, struct answer_file *from) {
    struct answer *answer = a->answer;
    struct store_hash id = row_hash(from);
    struct set_row set = {.first = (uint32_t)answer->pairs.count};
    uint64_t count = row_varint(from);
    for (uint64_t i = 0; i < count && !from->is_bad; i++)
        vector_push(&answer->pairs,
                    ((struct pair_row){.key = answer_text(answer, row_text(from))}));
    uint64_t values = row_varint(from);
    from->is_bad |= values != count;
    for (uint64_t i = 0; i < count && !from->is_bad; i++)
        answer->pairs.items[set.first + i].value = answer_text(answer, row_text(from));
    if (from->is_bad)
        return;
    set.count = (uint32_t)count;
    uint32_t number = hash_number(&a->sets, &id);
    while (answer->sets.count <= number)
        vector_push(&answer->sets, ((struct set_row){0}));
    answer->sets.items[number] = set;
    a->sets.items.items[number].there = true;
}

static void read_stack(struct asker *a, struct answer_file *from) {
    struct answer *answer = a->answer;
    struct store_hash id = row_hash(from);
    struct answer_path path = {.first = (uint32_t)answer->frames_of_paths.count};
    uint64_t count = row_varint(from);
    for (uint64_t i = 0; i < count && !from->is_bad; i++) {
        struct store_hash frame = row_hash(from);
        if (!from->is_bad)
            vector_push(&answer->frames_of_paths, hash_number(&a->frames, &frame));
    }
    from->is_bad |= answer->frames_of_paths.count >= UINT32_MAX;
    if (from->is_bad)
        return;
    path.count = (uint32_t)count;
    uint32_t number = hash_number(&a->stacks, &id);
    while (answer->paths.count <= number)
        vector_push(&answer->paths, ((struct answer_path){0}));
    answer->paths.items[number] = path;
    a->stacks.items.items[number].there = true;
}

static void read_frame(struct asker *a, struct answer_file *from) {
    struct answer *answer = a->answer;
    struct frame_row frame = {.id = row_hash(from)};
    frame.name = answer_text(answer, row_text(from));
    frame.file = answer_text(answer, row_text(from));
    frame.line = (uint32_t)row_number(from, 4);
    frame.column = (uint32_t)row_number(from, 4);
    frame.offset = row_number(from, 8);
    frame.first_line = (uint32_t)row_number(from, 4);
    frame.module = answer_text(answer, row_text(from));
    frame.language = answer_text(answer, row_text(from));
    frame.address = row_number(from, 8);
    frame.raw = row_number(from, 8);
    frame.flags = (uint32_t)row_number(from, 4);
    frame.object = answer_text(answer, row_text(from));
    frame.build_id = answer_text(answer, row_text(from));
    frame.object_kind = (uint32_t)row_number(from, 4);
    frame.object_pid = (int32_t)row_number(from, 4);
    frame.object_start = row_number(from, 8);
    frame.object_size = row_number(from, 8);
    if (from->is_bad)
        return;
    uint32_t number = hash_number(&a->frames, &frame.id);
    while (answer->frames.count <= number)
        vector_push(&answer->frames, ((struct frame_row){0}));
    answer->frames.items[number] = frame;
    a->frames.items.items[number].there = true;
}

typedef void row_reader(struct asker *a, struct answer_file *from);

static bool read_named(struct asker *a, const struct part *part, struct text template,
                       row_reader *read) {
    struct buffer table = {0}, where = {0};
    struct answer_file answer;
    fill_where(a, part, &table, &where);
    const struct sql_value values[] = {{"table", buffer_text(&table)},
                                       {"where", buffer_text(&where)}};
    bool fine = ask(a, template, values, COUNT_OF(values), &answer);
    while (fine && rows_left(&answer))
        read(a, &answer);
    fine = fine && rows_are_good(a->c, &answer, a->error);
    answer_file_close(&answer);
    buffer_release(&table);
    buffer_release(&where);
    return fine;
}

/* It is in no table. */
static void know_empty_stack(struct asker *a) {
    static const struct store_hash empty;
    uint32_t none = hash_number(&a->stacks, &empty);
    a->stacks.items.items[none].there = true;
}

/* Return true if sums from `first` on refer to a stack or labels that the server has not sent yet. */
static bool names_more(const struct asker *a, size_t first) {
    const struct answer *answer = a->answer;
    for (size_t i = first; i < answer->cells.count; i++) {
        const struct answer_cell *cell = &answer->cells.items[i];
        if (!a->stacks.items.items[cell->path].there ||
            !a->sets.items.items[answer->series.items[cell->series].set].there)
            return true;
    }
    return false;
}

static bool read_part(struct asker *a, const struct part *part) {
    size_t first = a->answer->cells.count;
    return read_sums(a, part) &&
           (!names_more(a, first) || (read_named(a, part, clickhouse_labels_of, read_set) &&
                                      read_named(a, part, clickhouse_stacks_of, read_stack) &&
                                      read_named(a, part, clickhouse_names_of, read_frame)));
}

/* Items that were referred to but not sent, because a replica is behind or a shard is gone: drop their cells if
   partial answers are allowed. */
static bool check_whole(struct asker *a) {
    struct answer *answer = a->answer;
    while (answer->sets.count < a->sets.items.count)
        vector_push(&answer->sets, ((struct set_row){0}));
    while (answer->paths.count < a->stacks.items.count)
        vector_push(&answer->paths, ((struct answer_path){0}));
    while (answer->frames.count < a->frames.items.count)
        vector_push(&answer->frames, ((struct frame_row){.flags = FRAME_NONE}));
    size_t kept = 0;
    for (size_t i = 0; i < answer->cells.count; i++) {
        const struct answer_cell *cell = &answer->cells.items[i];
        const struct answer_path *path = &answer->paths.items[cell->path];
        bool there = a->sets.items.items[answer->series.items[cell->series].set].there &&
                     a->stacks.items.items[cell->path].there;
        for (uint32_t k = 0; k < path->count && there; k++)
            there = a->frames.items.items[answer->frames_of_paths.items[path->first + k]].there;
        if (there)
            answer->cells.items[kept++] = *cell;
    }
    a->is_short = kept < answer->cells.count;
    answer->cells.count = kept;
    return !a->is_short || a->c->store.options.allow_partial ||
           error_set(a->error, ERROR_INPUT,
                     "%s: some stacks or labels are missing because a replica is behind; try "
                     "again, or use --allow-partial",
                     a->c->store.where);
}

/* ---- names that were found later ---- */

struct later {
    struct text build_id, name, file;
    uint64_t address;
    uint32_t line;
};

static int later_order(const void *a, const void *b) {
    const struct later *x = a, *y = b;
    int order = text_compare(x->build_id, y->build_id);
    return order ? order : (x->address > y->address) - (x->address < y->address);
}

static void name_frame(struct frame_row *frame, const struct later *names, size_t count) {
    struct later wanted = {.build_id = frame->build_id};
    wanted.address = frame->address - ((frame->flags & FRAME_CALL) != 0);
    const struct later *found =
        count ? bsearch(&wanted, names, count, sizeof *names, later_order) : NULL;
    if (!found)
        return;
    frame->name = found->name;
    frame->file = found->file;
    frame->line = found->line;
    frame->flags = (frame->flags | FRAME_NAMED) & ~(uint32_t)FRAME_NONE;
}

static bool is_unnamed(const struct frame_row *frame) {
    return !(frame->flags & FRAME_NAMED) && frame->build_id.length;
}

static bool read_later_names(struct asker *a) {
    struct answer *answer = a->answer;
    bool any = false;
    for (size_t i = 0; i < answer->frames.count; i++)
        any |= is_unnamed(&answer->frames.items[i]);
    struct answer_file from;
    if (!any)
        return true;
    if (!ask(a, clickhouse_later_names, NULL, 0, &from))
        return false;
    VECTOR(struct later) names = {0};
    while (rows_left(&from)) {
        struct later name = {.build_id = answer_text(answer, row_text(&from))};
        name.address = row_number(&from, 8);
        name.name = answer_text(answer, row_text(&from));
        name.file = answer_text(answer, row_text(&from));
        name.line = (uint32_t)row_number(&from, 4);
        vector_push(&names, name);
    }
    bool fine = rows_are_good(a->c, &from, a->error);
    if (names.count)
        qsort(names.items, names.count, sizeof *names.items, later_order);
    for (size_t i = 0; i < answer->frames.count && fine; i++)
        if (is_unnamed(&answer->frames.items[i]))
            name_frame(&answer->frames.items[i], names.items, names.count);
    answer_file_close(&from);
    vector_release(&names);
    return fine;
}

/* ---- notes ---- */

static bool read_notes(struct asker *a, struct notes *notes) {
    char from_text[24], to_text[24];
    struct buffer from = {from_text, 0, sizeof from_text}, to = {to_text, 0, sizeof to_text};
    struct answer_file answer;
    buffer_add_u64(&from, (uint64_t)a->query->from);
    buffer_add_u64(&to, a->query->to ? (uint64_t)a->query->to : UINT32_MAX);
    const struct sql_value values[] = {{"from", buffer_text(&from)}, {"to", buffer_text(&to)}};
    if (!ask(a, clickhouse_notes, values, COUNT_OF(values), &answer))
        return false;
    while (rows_left(&answer)) {
        struct text name = row_text(&answer), sentence = row_text(&answer);
        bool apart = row_number(&answer, 1) != 0;
        uint64_t count = row_number(&answer, 8), place = row_number(&answer, 8);
        struct text example = row_text(&answer);
        bool has_example = row_number(&answer, 1) != 0;
        if (answer.is_bad)
            break;
        struct note_kind kind = {answer_text(a->answer, name).data,
                                 answer_text(a->answer, sentence).data, apart};
        notes_add_copied(notes, &kind, count, place,
                         has_example ? answer_text(a->answer, example).data : NULL);
    }
    bool fine = rows_are_good(a->c, &answer, a->error);
    answer_file_close(&answer);
    return fine;
}

/* ---- entry points ---- */

static void asker_init(struct asker *a, struct store *store, const struct store_query *query,
                       struct answer *answer, struct error *error) {
    *a =
        (struct asker){.c = clickhouse_of(store), .query = query, .answer = answer, .error = error};
    a->c->partial = false;
    answer->where = store->where;
    budget_init(&answer->budget, context_limits(store->options.context), 0);
}

static void asker_release(struct asker *a) {
    by_hash_release(&a->sets);
    by_hash_release(&a->stacks);
    by_hash_release(&a->frames);
    index_release(&a->series_index);
    buffer_release(&a->type);
}

bool clickhouse_read(struct store *store, const struct store_query *query, struct answer *answer,
                     struct notes *notes, struct error *error) {
    struct asker a;
    struct plan plan;
    asker_init(&a, store, query, answer, error);
    know_empty_stack(&a);
    bool fine = make_plan(&a, &plan) && find_type(&a, &plan);
    for (size_t i = 0; i < plan.count && fine; i++)
        fine = read_part(&a, &plan.parts[i]);
    fine = fine && check_whole(&a) && read_later_names(&a) &&
           (!query_is_whole(query) || read_notes(&a, notes));
    if (fine && (a.c->partial || a.is_short))
        notes_add(notes, &note_partial, 1, 0, NULL);
    asker_release(&a);
    return fine;
}

/* The value of a label that is not a column is in its set. */
static struct text key_of(struct asker *a, struct answer_file *from, const char *label) {
    if (is_column(text_of(label)))
        return row_text(from);
    struct store_hash id = row_hash(from);
    uint32_t number = hash_number(&a->sets, &id);
    if (number >= a->answer->sets.count)
        return TEXT("");
    const struct set_row *set = &a->answer->sets.items[number];
    return pair_value(answer_pairs(a->answer, set), set->count, label);
}

static bool sum_part(struct asker *a, const struct part *part, const char *label, struct sums *sums,
                     struct arena *arena) {
    bool column = is_column(text_of(label));
    struct buffer table = {0}, where = {0}, step = {0}, groups = {0}, key = {0};
    struct answer_file answer;
    if (!column && !read_named(a, part, clickhouse_labels_of, read_set))
        return false;
    fill_where(a, part, &table, &where);
    step_text(a->query, part->grain, &step);
    buffer_printf(&key, column ? "toString(%s)" : "labels", label);
    buffer_printf(&groups, "%.*s%s%.*s", TEXT_ARGS(buffer_text(&key)),
                  a->query->step > 0 ? ", " : "", a->query->step > 0 ? (int)step.count : 0,
                  step.items);
    const struct sql_value values[] = {{"table", buffer_text(&table)},
                                       {"where", buffer_text(&where)},
                                       {"key", buffer_text(&key)},
                                       {"step", buffer_text(&step)},
                                       {"groups", buffer_text(&groups)}};
    bool fine = ask(a, clickhouse_heat, values, COUNT_OF(values), &answer);
    while (fine && rows_left(&answer)) {
        struct text name = key_of(a, &answer, label);
        int64_t time = (int64_t)row_number(&answer, 4);
        uint64_t samples = row_number(&answer, 8), value = row_number(&answer, 8);
        answer.is_bad |= !answer.is_bad && !sums_add(sums, arena, name, time, samples, value);
    }
    fine = fine && rows_are_good(a->c, &answer, a->error);
    answer_file_close(&answer);
    buffer_release(&table);
    buffer_release(&where);
    buffer_release(&step);
    buffer_release(&groups);
    buffer_release(&key);
    return fine;
}

bool clickhouse_sums(struct store *store, const struct store_query *query, struct store_rows *rows,
                     struct error *error) {
    struct asker a;
    struct answer answer = {0};
    struct plan plan;
    struct sums sums = {0};
    asker_init(&a, store, query, &answer, error);
    bool fine = make_plan(&a, &plan) && find_type(&a, &plan);
    for (size_t i = 0; i < plan.count && fine; i++)
        fine = sum_part(&a, &plan.parts[i], query->by.items[0], &sums, &rows->arena);
    sums_finish(&sums, rows);
    asker_release(&a);
    answer_release(&answer);
    return fine;
}

static bool ask_span(struct asker *a, const struct part *whole, struct answer_file *answer) {
    struct store_query without_times = *a->query;
    struct buffer samples = {0}, hours = {0};
    int64_t first, last;
    without_times.from = without_times.to = without_times.step = 0;
    without_times.has_by = true;
    without_times.by.count = 0;
    sql_where(a->c, &samples, a->query, "time", whole->from, whole->to, buffer_text(&a->type));
    if (query_hours(&without_times, &first, &last)) /* it does not ask for hosts */
        sql_where(a->c, &hours, a->query, "hour", whole->from, whole->to, buffer_text(&a->type));
    const struct sql_value values[] = {
        {"where", buffer_text(&samples)},
        {"where_hours", hours.count ? buffer_text(&hours) : TEXT("0")}};
    bool fine = ask(a, clickhouse_span, values, COUNT_OF(values), answer);
    buffer_release(&samples);
    buffer_release(&hours);
    return fine;
}

bool clickhouse_span_of(struct store *store, const struct store_query *query, int64_t *from,
                        int64_t *to, struct error *error) {
    struct asker a;
    struct answer answer = {0};
    struct answer_file told = {0};
    struct plan plan = {0};
    asker_init(&a, store, query, &answer, error);
    plan_add(&plan, SAMPLES, query->from, query->to ? query->to : UINT32_MAX);
    bool fine = plan.count && find_type(&a, &plan) && ask_span(&a, &plan.parts[0], &told);
    if (fine) {
        *from = (int64_t)row_number(&told, 4);
        *to = (int64_t)row_number(&told, 4);
        fine = row_number(&told, 8) > 0 && !told.is_bad;
    }
    answer_file_close(&told);
    asker_release(&a);
    answer_release(&answer);
    return fine;
}
