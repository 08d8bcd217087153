/*
 * Send rows to a server: frames, stacks, label sets, notes, then samples, then the batch's id. All except samples may
 * be sent any number of times. Samples are sent as one block per day, so that a day is written whole or not at all,
 * and are deduplicated by batch: by a token if the server supports tokens, otherwise by a column that is queried
 * before sending.
 */
#include <stdlib.h>

#include "store/clickhouse.h"

enum {
    DAY = 86400,
    SENT_MOST = 1 << 20, /* hashes that are remembered */
};

struct sender {
    struct clickhouse_store *c;
    const struct encoded *rows;
    const struct store_batch *batch;
    struct error *error;
    struct store_hash id;            /* of the batch */
    VECTOR(struct store_hash) fresh; /* sent, if everything succeeds */
};

/* ---- hashes that were sent ---- */

static bool was_sent(const struct clickhouse_store *c, const struct store_hash *hash) {
    uint32_t id;
    for (struct probe p = index_probe(&c->sent, store_hash_slot(hash));
         (id = index_next(&c->sent, &p));)
        if (store_hash_equal(&c->sent_hashes.items[id - 1], hash))
            return true;
    return false;
}

static void remember(struct sender *s) {
    struct clickhouse_store *c = s->c;
    if (c->sent_hashes.count + s->fresh.count > SENT_MOST) {
        c->sent_hashes.count = 0;
        index_release(&c->sent);
    }
    for (size_t i = 0; i < s->fresh.count; i++) {
        vector_push(&c->sent_hashes, s->fresh.items[i]);
        index_add(&c->sent, store_hash_slot(&s->fresh.items[i]), (uint32_t)c->sent_hashes.count);
    }
    s->fresh.count = 0;
}

/* ---- names ---- */

static bool send_rows(struct sender *s, const char *table, struct buffer *rows) {
    bool fine =
        !rows->count || clickhouse_insert(s->c, table, buffer_text(rows), TEXT(""), s->error);
    buffer_release(rows);
    if (fine)
        remember(s);
    return fine;
}

static void put_frame(struct buffer *rows, const struct frame_row *frame) {
    put_row_hash(rows, &frame->id);
    put_row_text(rows, frame->name);
    put_row_text(rows, frame->file);
    buffer_put_u32(rows, frame->line);
    buffer_put_u32(rows, frame->column);
    buffer_put_u64(rows, frame->offset);
    buffer_put_u32(rows, frame->first_line);
    put_row_text(rows, frame->module);
    put_row_text(rows, frame->language);
    buffer_put_u64(rows, frame->address);
    buffer_put_u64(rows, frame->raw);
    buffer_put_u32(rows, frame->flags);
    put_row_text(rows, frame->object);
    put_row_text(rows, frame->build_id);
    buffer_put_u32(rows, frame->object_kind);
    buffer_put_u32(rows, (uint32_t)frame->object_pid);
    buffer_put_u64(rows, frame->object_start);
    buffer_put_u64(rows, frame->object_size);
}

static bool send_frames(struct sender *s, struct store_result *result) {
    struct buffer rows = {0};
    for (size_t i = 0; i < s->rows->frames.count; i++) {
        const struct frame_row *frame = &s->rows->frames.items[i];
        if (was_sent(s->c, &frame->id))
            continue;
        put_frame(&rows, frame);
        vector_push(&s->fresh, frame->id);
        result->frames++;
    }
    return send_rows(s, "frames", &rows);
}

/* Get the path from the root; rows of stacks have it leaf first. */
static void put_path(struct sender *s, struct buffer *rows, uint32_t stack) {
    const struct stack_row *stacks = s->rows->stacks.items;
    uint32_t depth = 0;
    for (uint32_t at = stack; at; at = stacks[at].parent)
        depth++;
    buffer_add_varint(rows, depth);
    size_t first = rows->count, size = sizeof(struct store_hash);
    vector_reserve(rows, first + depth * size);
    rows->count = first + depth * size;
    for (uint32_t at = stack; at; at = stacks[at].parent)
        memcpy(rows->items + first + --depth * size,
               s->rows->frames.items[stacks[at].frame].id.bytes, size);
}

static bool send_stacks(struct sender *s, struct store_result *result) {
    struct buffer rows = {0};
    for (uint32_t i = 0; i < s->rows->stacks.count; i++) {
        const struct stack_row *stack = &s->rows->stacks.items[i];
        if (!stack->is_leaf || was_sent(s->c, &stack->id))
            continue;
        put_row_hash(&rows, &stack->id);
        put_path(s, &rows, i);
        vector_push(&s->fresh, stack->id);
        result->stacks++;
    }
    return send_rows(s, "stacks", &rows);
}

static bool send_sets(struct sender *s) {
    struct buffer rows = {0};
    for (size_t i = 0; i < s->rows->sets.count; i++) {
        const struct set_row *set = &s->rows->sets.items[i];
        if (was_sent(s->c, &set->id))
            continue;
        put_row_hash(&rows, &set->id);
        buffer_add_varint(&rows, set->count);
        for (uint32_t k = 0; k < set->count; k++)
            put_row_text(&rows, s->rows->pairs.items[set->first + k].key);
        buffer_add_varint(&rows, set->count);
        for (uint32_t k = 0; k < set->count; k++)
            put_row_text(&rows, s->rows->pairs.items[set->first + k].value);
        vector_push(&s->fresh, set->id);
    }
    return send_rows(s, "series", &rows);
}

static uint32_t batch_time(const struct sender *s) {
    return (uint32_t)(s->batch->time_ns / 1000000000);
}

static bool send_notes(struct sender *s) {
    struct buffer rows = {0};
    for (size_t i = 0; i < s->rows->notes->count; i++) {
        const struct note *note = &s->rows->notes->items[i];
        put_row_text(&rows, s->batch->id);
        buffer_put_u32(&rows, batch_time(s));
        put_row_text(&rows, text_of(note->kind->name));
        put_row_text(&rows, text_of(note->kind->sentence));
        buffer_add_char(&rows, note->kind->apart);
        buffer_put_u64(&rows, note->count);
        buffer_put_u64(&rows, note->where);
        put_row_text(&rows, text_of(note->example));
        buffer_add_char(&rows, note->example != NULL);
    }
    return send_rows(s, "notes", &rows);
}

/* ---- samples ---- */

static void put_sample(struct sender *s, struct buffer *rows, const struct sample_row *sample) {
    const struct series_row *series = &s->rows->series.items[sample->series];
    buffer_put_u32(rows, (uint32_t)sample->time);
    put_row_text(rows, series->service);
    put_row_text(rows, series->version);
    put_row_text(rows, series->host);
    put_row_text(rows, series->type);
    put_row_hash(rows, &s->rows->sets.items[series->set].id);
    put_row_hash(rows, &s->rows->stacks.items[sample->stack].id);
    buffer_put_u64(rows, sample->samples);
    buffer_put_u64(rows, sample->value);
    if (!s->c->modern)
        buffer_add(rows, text_upto(store_hash_text(&s->id), 8));
}

static bool ask_count(struct sender *s, struct text template, const struct sql_value *values,
                      size_t count, uint64_t *number) {
    struct buffer sql = {0};
    struct answer_file answer;
    sql_fill(s->c, &sql, template, values, count);
    bool fine = clickhouse_ask(s->c, buffer_text(&sql), &answer, s->error);
    if (fine) {
        *number = row_number(&answer, 8);
        fine = rows_are_good(s->c, &answer, s->error);
        answer_file_close(&answer);
    }
    buffer_release(&sql);
    return fine;
}

/* Return true if a server without tokens already has this batch's samples of a day. */
static bool is_there(struct sender *s, int64_t day, bool *there) {
    char batch[24], from[24], to[24];
    struct buffer a = {batch, 0, sizeof batch}, b = {from, 0, sizeof from}, c = {to, 0, sizeof to};
    uint64_t count = 0;
    buffer_add_u64(&a, load_u64(s->id.bytes));
    buffer_add_u64(&b, (uint64_t)day);
    buffer_add_u64(&c, (uint64_t)(day + DAY < UINT32_MAX ? day + DAY : UINT32_MAX));
    const struct sql_value values[] = {
        {"batch", buffer_text(&a)}, {"from", buffer_text(&b)}, {"to", buffer_text(&c)}};
    bool fine =
        s->c->modern || ask_count(s, clickhouse_half_known, values, COUNT_OF(values), &count);
    *there = count > 0;
    return fine;
}

static bool send_day(struct sender *s, int64_t day) {
    struct buffer rows = {0}, token = {0};
    bool there;
    if (!is_there(s, day, &there))
        return false;
    if (there)
        return true;
    for (size_t i = 0; i < s->rows->samples.count; i++)
        if (floor_to(s->rows->samples.items[i].time, DAY) == day)
            put_sample(s, &rows, &s->rows->samples.items[i]);
    buffer_printf(&token, "%.*s-%lld", TEXT_ARGS(s->batch->id), (long long)day);
    bool fine =
        clickhouse_insert(s->c, "samples", buffer_text(&rows), buffer_text(&token), s->error);
    buffer_release(&rows);
    buffer_release(&token);
    return fine;
}

static int day_order(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool send_samples(struct sender *s) {
    size_t count = s->rows->samples.count;
    int64_t *days = memory_zero(count + 1, sizeof *days);
    for (size_t i = 0; i < count; i++)
        days[i] = floor_to(s->rows->samples.items[i].time, DAY);
    qsort(days, count, sizeof *days, day_order);
    bool fine = true;
    for (size_t i = 0; i < count && fine; i++)
        if (!i || days[i] != days[i - 1])
            fine = send_day(s, days[i]);
    free(days);
    return fine;
}

static bool send_batch(struct sender *s) {
    struct buffer rows = {0};
    put_row_text(&rows, s->batch->id);
    buffer_put_u32(&rows, batch_time(s));
    buffer_put_u64(&rows, s->batch->duration_ns);
    buffer_put_u64(&rows, s->rows->samples.count);
    return send_rows(s, "batches", &rows);
}

static bool find_batch(struct sender *s, bool *known) {
    struct buffer id = {0};
    uint64_t count = 0;
    sql_text(&id, s->batch->id);
    const struct sql_value values[] = {{"id", buffer_text(&id)}};
    bool fine = ask_count(s, clickhouse_known, values, COUNT_OF(values), &count);
    *known = count > 0;
    buffer_release(&id);
    return fine;
}

bool clickhouse_put(struct store *store, const struct encoded *encoded,
                    const struct store_batch *batch, struct store_result *result,
                    struct error *error) {
    struct sender s = {.c = clickhouse_of(store), .rows = encoded, .batch = batch, .error = error};
    s.id = store_hash_of(batch->id);
    bool fine = find_batch(&s, &result->known);
    if (fine && !result->known)
        fine = send_frames(&s, result) && send_stacks(&s, result) && send_sets(&s) &&
               send_notes(&s) && send_samples(&s) && send_batch(&s);
    if (fine && !result->known)
        result->rows = encoded->samples.count;
    vector_release(&s.fresh);
    return fine;
}
