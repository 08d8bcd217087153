/* Private to the room: rows as in both engines, and the interface of an engine. */
#ifndef WICK_STORE_INTERNAL_H
#define WICK_STORE_INTERNAL_H

#include "store/store.h"

/* The same everywhere: unseeded XXH3 of content, the higher half first. */
struct store_hash {
    uint8_t bytes[16];
};
struct store_hash store_hash_of(struct text content);
static inline bool store_hash_equal(const struct store_hash *a, const struct store_hash *b) {
    return memcmp(a, b, sizeof *a) == 0;
}
/* For tables in memory: keyed, so that no input can choose its slot. */
static inline uint64_t store_hash_slot(const struct store_hash *hash) {
    return hash_mix(load_u64(hash->bytes), load_u64(hash->bytes + 8));
}
static inline struct text store_hash_text(const struct store_hash *hash) {
    return (struct text){(const char *)hash->bytes, sizeof hash->bytes};
}

/* ---- rows ---- */

/* A frame's flags; the lowest eight bits are a location's `kinds`, the next three its mode. */
enum {
    FRAME_KINDS = 0xff,
    FRAME_MODE_SHIFT = 8,
    FRAME_MODE = 7 << FRAME_MODE_SHIFT,
    FRAME_CALL = 1 << 11,
    FRAME_UNWOUND = 1 << 12,
    FRAME_INLINED = 1 << 13,
    FRAME_CONTINUES = 1 << 14, /* a further frame of the previous location */
    FRAME_FUNCTION = 1 << 15,  /* named by the source: no address was resolved */
    FRAME_NAMED = 1 << 16,     /* has a name, possibly empty */
    FRAME_NONE = 1 << 17,      /* represents a location without a frame */
    FRAME_FLAGS = (1 << 18) - 1,
};

/* One function of a stack. A location with inlined functions has several. */
struct frame_row {
    struct store_hash id;
    struct text name, file, module, language, object, build_id;
    uint64_t address, raw, offset, object_start, object_size;
    uint32_t line, column, first_line, object_kind, flags;
    int32_t object_pid;
};
void frame_row_hash(struct frame_row *frame, struct buffer *scratch);

/* One pair of a set of labels. Fields of series are in it, too, as event, comm, pid, …, and __unit, __order, … */
struct pair_row {
    struct text key, value;
};
extern const struct text ending_texts[ENDING_UNKNOWN + 1]; /* as stored */
struct set_row {
    struct store_hash id;
    uint32_t first, count; /* in pairs, sorted by key */
};
void set_row_hash(struct set_row *set, const struct pair_row *pairs, struct buffer *scratch);

struct series_row {
    struct text service, version, host, type;
    uint32_t set;
    int64_t time; /* in answers, with query->step */
};

/* ---- a tree as rows (encode.c) ---- */

struct stack_row {
    struct store_hash id;
    uint32_t parent, frame; /* parent 0 is the empty stack, whose id is zero */
    bool is_leaf;           /* something was counted there */
};
struct sample_row {
    uint32_t series, stack;
    int64_t time;
    uint64_t samples, value;
};
struct encoded {
    struct arena arena;
    VECTOR(struct frame_row) frames;
    VECTOR(struct stack_row) stacks; /* from 1 on; parents before children */
    VECTOR(struct set_row) sets;
    VECTOR(struct pair_row) pairs;
    VECTOR(struct series_row) series;
    VECTOR(struct sample_row) samples; /* sorted by series, time and stack; each once */
    const struct notes *notes;         /* of the tree */
    struct index frame_index, stack_index, set_index, series_index;
};
bool encode_tree(struct encoded *encoded, const struct tree *tree, const struct store_batch *batch,
                 struct error *error);
void encoded_release(struct encoded *encoded);

/* ---- rows as a tree (decode.c) ---- */

struct answer_path {
    uint32_t first, count; /* in frames_of_paths, root first */
};
struct answer_cell {
    uint32_t path, series;
    uint64_t samples, value;
};
struct answer {
    const char *where; /* name of the store, for messages */
    struct arena arena;
    VECTOR(struct frame_row) frames;
    VECTOR(uint32_t) frames_of_paths;
    VECTOR(struct answer_path) paths;
    VECTOR(struct set_row) sets;
    VECTOR(struct pair_row) pairs;
    VECTOR(struct series_row) series;
    VECTOR(struct answer_cell) cells;
    struct budget budget;
};
void answer_release(struct answer *answer);
/* Return the labels of a set; NULL if it has none. */
static inline const struct pair_row *answer_pairs(const struct answer *answer,
                                                  const struct set_row *set) {
    return set->count ? answer->pairs.items + set->first : NULL;
}
/* Copy a text that the engine is about to free. */
struct text answer_text(struct answer *answer, struct text text);
/* Make the tree: labels as the query requests, locations from frames. Return false if a row is invalid, or the budget
   is exceeded. */
bool answer_to_tree(struct answer *answer, const struct store_query *query, struct tree *tree,
                    struct error *error);

/* ---- choosing (choose.c) ---- */

/* Return true if a set of labels and its columns pass the query's filters, except for types. */
bool query_passes(const struct store_query *query, const struct series_row *series,
                  const struct pair_row *pairs, size_t count);
const struct pair_row *pair_find(const struct pair_row *pairs, size_t count,
                                 const char *key); /* NULL: not in the set */
/* Return the value of a key in a set, or empty. */
struct text pair_value(const struct pair_row *pairs, size_t count, const char *key);
/* Return true if `wanted` names the type column, or the set's event. */
bool type_is_called(struct text type, struct text event, struct text wanted);
/* Return true if the set is of a thread's time on and off the CPU, which is read only if the query requests it. */
bool set_is_of_times(const struct pair_row *pairs, size_t count);
/* Choose one of several distinct types. Return NULL with an error that lists them if it is ambiguous. */
const struct text *choose_type(const struct text *types, size_t count, const char *where,
                               struct error *error);
/* Return true if the tree distinguishes this label. */
bool query_keeps(const struct store_query *query, struct text key);
static inline bool text_is(struct text t, const char *literal) {
    return text_equal(t, text_of(literal));
}
/* Return true if only one service can pass, so that grouping by it is not needed. */
bool query_has_one_service(const struct store_query *query);
/* Return true if any label other than the columns is distinguished. */
bool query_keeps_sets(const struct store_query *query);
bool is_column(struct text key); /* service, version, host or type */
struct text series_column(const struct series_row *series, struct text key);

/* Return true if the query selects everything that was stored in its time, so that the batches' notes apply. */
bool query_is_whole(const struct store_query *query);
/* Get the hours that the query covers whole, for which sums by the hour suffice; return false if there are none, or
   the query needs more. */
bool query_hours(const struct store_query *query, int64_t *from, int64_t *to);
static inline int64_t floor_to(int64_t value, int64_t step) {
    int64_t rest = value % step;
    return value - (rest < 0 ? rest + step : rest);
}

/* ---- engines ---- */

struct store_engine {
    void (*close)(struct store *store);
    bool (*put)(struct store *store, const struct encoded *encoded, const struct store_batch *batch,
                struct store_result *result, struct error *error);
    bool (*read)(struct store *store, const struct store_query *query, struct answer *answer,
                 struct notes *notes, struct error *error);
    /* Get sums by the query's only `by` and, with a step, by time. */
    bool (*sums)(struct store *store, const struct store_query *query, struct store_rows *rows,
                 struct error *error);
    bool (*span)(struct store *store, const struct store_query *query, int64_t *from, int64_t *to,
                 struct error *error);
    bool (*gc)(struct store *store, const struct store_retention *retention, int64_t now,
               struct store_removed *removed, struct error *error);
    bool (*symbolize)(struct store *store, store_finder *find, void *user, uint64_t *named,
                      uint64_t *unknown, struct error *error);
};

/* The first member of every engine's own struct. */
struct store {
    const struct store_engine *engine;
    struct store_options options;
    char *where; /* for messages: the path, or the URL */
    enum store_failure failure;
};
/* Set *error, with the next step, and return false. */
bool store_version_error(const char *where, long long version, int known, struct error *error);
struct store *sqlite_open(const char *path, const struct store_options *options,
                          struct error *error);
bool clickhouse_url_check(const char *url, struct error *error);
struct store *clickhouse_open(const char *url, const struct store_options *options,
                              struct error *error);

/* Sums by key and time, for values and heat maps of engines that add up in C. */
struct sums {
    VECTOR(struct store_row) rows;
    struct index index;
};
bool sums_add(struct sums *sums, struct arena *arena, struct text key, int64_t time,
              uint64_t samples, uint64_t value);
/* Move them into `rows`, sorted by key and time. */
void sums_finish(struct sums *sums, struct store_rows *rows);

#endif
