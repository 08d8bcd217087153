/*
 * Write rows to the file, in one transaction together with the batch's id: all or nothing, and never twice. Ids of
 * existing rows are looked up by hash, one probe each; samples are inserted in the order of their table, which keeps
 * its pages full.
 */
#include <stdlib.h>

#include "store/sqlite.h"

enum { HOUR = 3600 };

/* The statements, prepared once per batch. */
enum {
    FIND_BATCH,
    ADD_BATCH,
    FIND_OBJECT,
    ADD_OBJECT,
    FIND_FRAME,
    ADD_FRAME,
    FIND_STACK,
    ADD_STACK,
    FIND_LABELS,
    ADD_LABELS,
    ADD_LABEL,
    FIND_SERIES,
    ADD_SERIES,
    FIND_EACH,
    ADD_SAMPLE,
    ADD_HOUR,
    ADD_NOTE,
    STATEMENTS,
};
#define ADD_UP                                                                                     \
    " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET samples = samples + excluded.samples, "     \
    "value = value + excluded.value"
/* What differs in a file of version 1. */
static const char *const first_texts[STATEMENTS] = {
    [ADD_SERIES] = "INSERT INTO series (service, version, host, type, labels) VALUES (?1, ?2, ?3, "
                   "?4, ?5)",
    [FIND_EACH] = "SELECT 0 WHERE ?1 > 0",
};
static const char *const statement_texts[STATEMENTS] = {
    [FIND_BATCH] = "SELECT 1 FROM batch WHERE id = ?",
    [ADD_BATCH] = "INSERT INTO batch VALUES (?, ?, ?, ?)",
    [FIND_OBJECT] = "SELECT id FROM object WHERE path = ? AND build_id = ? AND kind = ? AND pid = "
                    "? AND start = ? AND size = ?",
    [ADD_OBJECT] = "INSERT INTO object (path, build_id, kind, pid, start, size) VALUES (?, ?, ?, "
                   "?, ?, ?)",
    [FIND_FRAME] = "SELECT id FROM frame WHERE hash = ?",
    [ADD_FRAME] = "INSERT INTO frame (hash, name, file, line, col, offset, first_line, module, "
                  "language, object, address, raw, flags) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                  "?, ?, ?)",
    [FIND_STACK] = "SELECT id FROM stack WHERE hash = ?",
    [ADD_STACK] = "INSERT INTO stack (hash, parent, frame) VALUES (?, ?, ?)",
    [FIND_LABELS] = "SELECT id FROM labels WHERE hash = ?",
    [ADD_LABELS] = "INSERT INTO labels (hash) VALUES (?)",
    [ADD_LABEL] = "INSERT INTO label VALUES (?, ?, ?)",
    [FIND_SERIES] = "SELECT id FROM series WHERE service = ? AND version = ? AND host = ? AND type "
                    "= ? AND labels = ?",
    [ADD_SERIES] = "INSERT INTO series (service, version, host, type, labels, each) VALUES (?, ?, "
                   "?, ?, ?, ?)",
    [FIND_EACH] = "SELECT each FROM series WHERE id = ?",
    [ADD_SAMPLE] = "INSERT INTO sample" ADD_UP,
    [ADD_HOUR] = "INSERT INTO hour" ADD_UP,
    [ADD_NOTE] = "INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?, ?, ?, ?)",
};

struct stored_sample {
    int64_t series, time, stack, each;
    uint64_t samples, value;
};
struct series_id {
    int64_t id, each;
};

struct writer {
    struct sqlite_store *s;
    const struct encoded *rows;
    struct store_result *result;
    struct error *error;
    sqlite3_stmt *statements[STATEMENTS];
    int64_t *frames, *stacks, *sets;  /* ids, by row */
    struct series_id *series, *hours; /* with and without their host */
};

static sqlite3_stmt *use(struct writer *w, int statement) {
    return w->statements[statement];
}

static bool once(struct writer *w, int statement) {
    return sqlite_once(w->s, use(w, statement), w->error);
}

/* Get the id that a bound statement finds, or 0. */
static bool find(struct writer *w, int statement, int64_t *id) {
    int code = sqlite3_step(use(w, statement));
    *id = code == SQLITE_ROW ? sqlite3_column_int64(use(w, statement), 0) : 0;
    bool fine = code == SQLITE_ROW || code == SQLITE_DONE || sqlite_error(w->s, w->error);
    sqlite3_reset(use(w, statement));
    return fine;
}

static bool add(struct writer *w, int statement, int64_t *id) {
    bool fine = once(w, statement);
    *id = sqlite3_last_insert_rowid(w->s->db);
    return fine;
}

/* ---- names ---- */

static bool put_object(struct writer *w, const struct frame_row *frame, int64_t *id) {
    *id = 0;
    if (!frame->object_kind)
        return true;
    for (int i = FIND_OBJECT; i <= ADD_OBJECT; i++) {
        sqlite3_stmt *statement = use(w, i);
        sqlite_bind_text_at(statement, 1, frame->object);
        sqlite_bind_blob_at(statement, 2, frame->build_id);
        sqlite3_bind_int64(statement, 3, frame->object_kind);
        sqlite3_bind_int64(statement, 4, frame->object_pid);
        sqlite3_bind_int64(statement, 5, (int64_t)frame->object_start);
        sqlite3_bind_int64(statement, 6, (int64_t)frame->object_size);
    }
    return find(w, FIND_OBJECT, id) && (*id || add(w, ADD_OBJECT, id));
}

static bool add_frame(struct writer *w, const struct frame_row *frame, int64_t *id) {
    int64_t object;
    if (!put_object(w, frame, &object))
        return false;
    sqlite3_stmt *statement = use(w, ADD_FRAME);
    sqlite_bind_blob_at(statement, 1, store_hash_text(&frame->id));
    sqlite_bind_text_at(statement, 2, frame->name);
    sqlite_bind_text_at(statement, 3, frame->file);
    sqlite3_bind_int64(statement, 4, frame->line);
    sqlite3_bind_int64(statement, 5, frame->column);
    sqlite3_bind_int64(statement, 6, (int64_t)frame->offset);
    sqlite3_bind_int64(statement, 7, frame->first_line);
    sqlite_bind_text_at(statement, 8, frame->module);
    sqlite_bind_text_at(statement, 9, frame->language);
    sqlite3_bind_int64(statement, 10, object);
    sqlite3_bind_int64(statement, 11, (int64_t)frame->address);
    sqlite3_bind_int64(statement, 12, (int64_t)frame->raw);
    sqlite3_bind_int64(statement, 13, frame->flags);
    w->result->frames++;
    return add(w, ADD_FRAME, id);
}

static bool put_frames(struct writer *w) {
    for (size_t i = 0; i < w->rows->frames.count; i++) {
        const struct frame_row *frame = &w->rows->frames.items[i];
        sqlite_bind_blob_at(use(w, FIND_FRAME), 1, store_hash_text(&frame->id));
        if (!find(w, FIND_FRAME, &w->frames[i]) ||
            (!w->frames[i] && !add_frame(w, frame, &w->frames[i])))
            return false;
    }
    return true;
}

/* Parents precede their children, and so have smaller ids: a reader relies on it. */
static bool put_stacks(struct writer *w) {
    for (size_t i = 1; i < w->rows->stacks.count; i++) {
        const struct stack_row *stack = &w->rows->stacks.items[i];
        sqlite_bind_blob_at(use(w, FIND_STACK), 1, store_hash_text(&stack->id));
        if (!find(w, FIND_STACK, &w->stacks[i]))
            return false;
        if (w->stacks[i])
            continue;
        sqlite_bind_blob_at(use(w, ADD_STACK), 1, store_hash_text(&stack->id));
        sqlite3_bind_int64(use(w, ADD_STACK), 2, w->stacks[stack->parent]);
        sqlite3_bind_int64(use(w, ADD_STACK), 3, w->frames[stack->frame]);
        if (!add(w, ADD_STACK, &w->stacks[i]))
            return false;
        w->result->stacks++;
    }
    return true;
}

static bool add_set(struct writer *w, const struct set_row *set, int64_t *id) {
    sqlite_bind_blob_at(use(w, ADD_LABELS), 1, store_hash_text(&set->id));
    if (!add(w, ADD_LABELS, id))
        return false;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct pair_row *pair = &w->rows->pairs.items[set->first + i];
        sqlite3_bind_int64(use(w, ADD_LABEL), 1, *id);
        sqlite_bind_text_at(use(w, ADD_LABEL), 2, pair->key);
        sqlite_bind_text_at(use(w, ADD_LABEL), 3, pair->value);
        if (!once(w, ADD_LABEL))
            return false;
    }
    return true;
}

static bool put_sets(struct writer *w) {
    for (size_t i = 0; i < w->rows->sets.count; i++) {
        const struct set_row *set = &w->rows->sets.items[i];
        sqlite_bind_blob_at(use(w, FIND_LABELS), 1, store_hash_text(&set->id));
        if (!find(w, FIND_LABELS, &w->sets[i]) || (!w->sets[i] && !add_set(w, set, &w->sets[i])))
            return false;
    }
    return true;
}

static bool put_one_series(struct writer *w, const struct series_row *row, struct text host,
                           int64_t each, struct series_id *series) {
    for (int i = FIND_SERIES; i <= ADD_SERIES; i++) {
        sqlite3_stmt *statement = use(w, i);
        sqlite_bind_text_at(statement, 1, row->service);
        sqlite_bind_text_at(statement, 2, row->version);
        sqlite_bind_text_at(statement, 3, host);
        sqlite_bind_text_at(statement, 4, row->type);
        sqlite3_bind_int64(statement, 5, w->sets[row->set]);
    }
    if (!w->s->is_first)
        sqlite3_bind_int64(use(w, ADD_SERIES), 6, each);
    if (!find(w, FIND_SERIES, &series->id) || (!series->id && !add(w, ADD_SERIES, &series->id)))
        return false;
    sqlite3_bind_int64(use(w, FIND_EACH), 1, series->id);
    return find(w, FIND_EACH, &series->each);
}

/* Compute the weight of one sample of a new series from its first row: a sampling period, or 1 if samples are
   counted. */
static int64_t usual_value(const struct sample_row *row) {
    bool is_usual = row->samples && row->value % row->samples == 0;
    return is_usual && row->value / row->samples <= INT32_MAX ? (int64_t)(row->value / row->samples)
                                                              : 0;
}

static bool put_series(struct writer *w) {
    size_t at = 0;
    for (size_t i = 0; i < w->rows->series.count; i++) {
        const struct series_row *row = &w->rows->series.items[i];
        while (at < w->rows->samples.count && w->rows->samples.items[at].series < i)
            at++;
        int64_t each = at < w->rows->samples.count ? usual_value(&w->rows->samples.items[at]) : 0;
        if (!put_one_series(w, row, row->host, each, &w->series[i]) ||
            !put_one_series(w, row, TEXT(""), each, &w->hours[i]))
            return false;
    }
    return true;
}

/* ---- samples ---- */

static int stored_order(const void *a, const void *b) {
    const struct stored_sample *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

static bool put_sample(struct writer *w, int statement, const struct stored_sample *sample) {
    sqlite3_stmt *adding = use(w, statement);
    int64_t stored;
    if (!sqlite_pack(sample->samples, sample->value, sample->each, &stored))
        return error_set(w->error, ERROR_INPUT, "weights add up to more than 2^63");
    sqlite3_bind_int64(adding, 1, sample->series);
    sqlite3_bind_int64(adding, 2, sample->time);
    sqlite3_bind_int64(adding, 3, sample->stack);
    sqlite3_bind_int64(adding, 4, (int64_t)sample->samples);
    sqlite3_bind_int64(adding, 5, stored);
    return once(w, statement);
}

/* Add up equal rows first; sums by the hour have many. */
static bool put_in_order(struct writer *w, int statement, struct stored_sample *samples,
                         size_t count) {
    qsort(samples, count, sizeof *samples, stored_order);
    bool fine = true;
    for (size_t i = 0; i < count && fine;) {
        struct stored_sample sum = samples[i++];
        for (; i < count && stored_order(&samples[i], &sum) == 0; i++) {
            sum.samples = saturating_add(sum.samples, samples[i].samples);
            sum.value = saturating_add(sum.value, samples[i].value);
        }
        fine = put_sample(w, statement, &sum);
    }
    return fine;
}

static struct stored_sample stored_sample(const struct writer *w, const struct sample_row *row,
                                          const struct series_id *series, int64_t time) {
    return (struct stored_sample){series->id,   time,         w->stacks[row->stack],
                                  series->each, row->samples, row->value};
}

static bool put_samples(struct writer *w) {
    size_t count = w->rows->samples.count;
    const struct sample_row *rows = w->rows->samples.items;
    struct stored_sample *samples = memory_zero(count + 1, sizeof *samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = stored_sample(w, &rows[i], &w->series[rows[i].series], rows[i].time);
    bool fine = put_in_order(w, ADD_SAMPLE, samples, count);
    for (size_t i = 0; i < count; i++)
        samples[i] =
            stored_sample(w, &rows[i], &w->hours[rows[i].series], floor_to(rows[i].time, HOUR));
    fine = fine && put_in_order(w, ADD_HOUR, samples, count);
    free(samples);
    w->result->rows = count;
    return fine;
}

/* ---- the batch ---- */

static bool put_notes(struct writer *w, struct text batch) {
    const struct notes *notes = w->rows->notes;
    for (size_t i = 0; i < notes->count; i++) {
        const struct note *note = &notes->items[i];
        sqlite3_stmt *adding = use(w, ADD_NOTE);
        sqlite_bind_text_at(adding, 1, batch);
        sqlite_bind_text_at(adding, 2, text_of(note->kind->name));
        sqlite_bind_text_at(adding, 3, text_of(note->kind->sentence));
        sqlite3_bind_int64(adding, 4, note->kind->apart);
        sqlite3_bind_int64(adding, 5, (int64_t)(note->count & INT64_MAX));
        sqlite3_bind_int64(adding, 6, (int64_t)(note->where & INT64_MAX));
        if (note->example)
            sqlite_bind_text_at(adding, 7, text_of(note->example));
        else
            sqlite3_bind_null(adding, 7);
        if (!once(w, ADD_NOTE))
            return false;
    }
    return true;
}

static bool put_all(struct writer *w, const struct store_batch *batch) {
    int64_t known;
    sqlite_bind_text_at(use(w, FIND_BATCH), 1, batch->id);
    if (!find(w, FIND_BATCH, &known))
        return false;
    w->result->known = known != 0;
    if (known)
        return true;
    if (!put_frames(w) || !put_stacks(w) || !put_sets(w) || !put_series(w) || !put_samples(w))
        return false;
    sqlite3_stmt *adding = use(w, ADD_BATCH);
    sqlite_bind_text_at(adding, 1, batch->id);
    sqlite3_bind_int64(adding, 2, (int64_t)(batch->time_ns / 1000000000));
    sqlite3_bind_int64(adding, 3, (int64_t)batch->duration_ns);
    sqlite3_bind_int64(adding, 4, (int64_t)w->rows->samples.count);
    return once(w, ADD_BATCH) && put_notes(w, batch->id);
}

static bool prepare_all(struct writer *w) {
    for (int i = 0; i < STATEMENTS; i++) {
        const char *text = w->s->is_first && first_texts[i] ? first_texts[i] : statement_texts[i];
        if (!(w->statements[i] = sqlite_prepare(w->s, text_of(text), w->error)))
            return false;
    }
    return true;
}

static void writer_release(struct writer *w) {
    for (int i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(w->statements[i]);
    free(w->frames);
    free(w->stacks);
    free(w->sets);
    free(w->series);
    free(w->hours);
}

bool sqlite_put(struct store *store, const struct encoded *encoded, const struct store_batch *batch,
                struct store_result *result, struct error *error) {
    struct writer w = {.s = sqlite_of(store), .rows = encoded, .result = result, .error = error};
    w.frames = memory_zero(encoded->frames.count + 1, sizeof *w.frames);
    w.stacks = memory_zero(encoded->stacks.count + 1, sizeof *w.stacks);
    w.sets = memory_zero(encoded->sets.count + 1, sizeof *w.sets);
    w.series = memory_zero(encoded->series.count + 1, sizeof *w.series);
    w.hours = memory_zero(encoded->series.count + 1, sizeof *w.hours);
    bool fine = sqlite_run(w.s, "PRAGMA cache_size = -65536; BEGIN IMMEDIATE", error) &&
                prepare_all(&w) && put_all(&w, batch) && sqlite_run(w.s, "COMMIT", error);
    writer_release(&w);
    if (!fine && !sqlite3_get_autocommit(w.s->db))
        sqlite3_exec(w.s->db, "ROLLBACK", NULL, NULL, NULL);
    if (!fine)
        *result = (struct store_result){0};
    return fine;
}
