/* Private to the room: a chunk of a Java Flight Recorder file, which describes itself: types, constants, then events of these types. */
#ifndef WICK_IMPORT_JFR_H
#define WICK_IMPORT_JFR_H

#include "base/base.h"

/* Bytes that are taken one after the other. Once they do not suffice, `bad` stays set and all else reads as 0. */
struct jfr_cursor {
    const uint8_t *at, *end;
    bool bad;
};

enum jfr_kind {
    JFR_STRUCT,
    JFR_BYTE, /* boolean, too */
    JFR_SHORT,
    JFR_INT,
    JFR_LONG,
    JFR_FLOAT,
    JFR_DOUBLE,
    JFR_STRING,
};

struct jfr_field {
    struct text name;
    uint64_t type;
    uint32_t class; /* place among the classes + 1; 0: there is no such type */
    bool is_constant, is_array;
};
struct jfr_class {
    uint64_t id;
    struct text name;
    enum jfr_kind kind;
    VECTOR(struct jfr_field) fields;
};

/* Where a constant stands. */
struct jfr_constant {
    uint64_t type, id;
    const uint8_t *at;
};

struct jfr_chunk {
    struct text content;
    bool is_packed; /* numbers have seven bits a byte */
    uint64_t start_nanoseconds, start_ticks, ticks_per_second;
    VECTOR(struct text) strings; /* of the description */
    VECTOR(struct jfr_class) classes;
    struct index class_index;
    uint64_t string_type;
    VECTOR(struct jfr_constant) constants;
    struct index constant_index;
    struct arena arena;
    struct budget *budget;
    const char *file; /* where all of it begins, for offsets */
    const char *path;
    struct error *error;
};

/* A value of a struct's field: a number or a constant's id, a string, and where it stands. */
struct jfr_value {
    uint64_t number;
    struct text string;
    const uint8_t *at;
};
enum { JFR_FIELDS_MOST = 64 };

/* Take the chunk at the beginning of CONTENT, with its types and constants; *size is how long it is. */
bool jfr_chunk_open(struct jfr_chunk *chunk, struct text content, uint64_t *size);
void jfr_chunk_release(struct jfr_chunk *chunk);
/* Say that the file is damaged there. Returns false. */
bool jfr_damaged(const struct jfr_chunk *chunk, const void *at);

/* The next event of the chunk; the cursor stands behind its type. False at the end, or where it is damaged, which was said. */
struct jfr_event {
    uint64_t type;
    struct jfr_cursor content;
};
bool jfr_next_event(const struct jfr_chunk *chunk, struct jfr_cursor *all, struct jfr_event *event);

const struct jfr_class *jfr_class_of(const struct jfr_chunk *chunk, uint64_t type);
const struct jfr_class *jfr_class_named(const struct jfr_chunk *chunk, struct text name);
/* The field's place in the class, or -1. */
int jfr_field(const struct jfr_class *class, struct text name);
/* Take a struct off the cursor: values[i] is its field i, of at most JFR_FIELDS_MOST. False: it is damaged, which was said. */
bool jfr_read(struct jfr_chunk *chunk, struct jfr_cursor *cursor, const struct jfr_class *class,
              struct jfr_value *values);
/* The same of a constant. False, and nothing said, where there is none with this id. */
bool jfr_constant(struct jfr_chunk *chunk, const struct jfr_class *class, uint64_t id,
                  struct jfr_value *values);
/* A string that is a constant. */
struct text jfr_constant_string(struct jfr_chunk *chunk, uint64_t id);
uint64_t jfr_take_int(const struct jfr_chunk *chunk, struct jfr_cursor *cursor);

#endif
