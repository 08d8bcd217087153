/* Private to the room: a chunk of a Java Flight Recorder file, which is self-describing: types, constants, then
   events of these types. */
#ifndef WICK_IMPORT_JFR_H
#define WICK_IMPORT_JFR_H

#include "base/base.h"

/* Bytes that are read in sequence. Once they run out, `bad` stays set and everything reads as 0. */
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
    uint32_t class; /* index of the class + 1; 0: unknown type */
    bool is_constant, is_array;
};
struct jfr_class {
    uint64_t id;
    struct text name;
    enum jfr_kind kind;
    VECTOR(struct jfr_field) fields;
};

/* Where a constant is. */
struct jfr_constant {
    uint64_t type, id;
    const uint8_t *at;
};

struct jfr_chunk {
    struct text content;
    bool is_packed; /* integers have seven bits per byte */
    uint64_t start_nanoseconds, start_ticks, ticks_per_second;
    VECTOR(struct text) strings; /* of the metadata */
    VECTOR(struct jfr_class) classes;
    struct index class_index;
    uint64_t string_type;
    VECTOR(struct jfr_constant) constants;
    struct index constant_index;
    struct arena arena;
    struct budget *budget;
    const char *file; /* start of the file, for offsets */
    const char *path;
    struct error *error;
};

/* A value of a struct's field: a number or a constant's id, a string, and its position. */
struct jfr_value {
    uint64_t number;
    struct text string;
    const uint8_t *at;
};
enum { JFR_FIELDS_MOST = 64 };

/* Parse the chunk at the start of CONTENT, with its types and constants; set *size to its length. */
bool jfr_chunk_open(struct jfr_chunk *chunk, struct text content, uint64_t *size);
void jfr_chunk_release(struct jfr_chunk *chunk);
/* Set an error that the file is damaged there. Return false. */
bool jfr_damaged(const struct jfr_chunk *chunk, const void *at);

/* Go to the chunk's next event; the cursor is then after its type. Return false at the end, or with an error if it is
   damaged. */
struct jfr_event {
    uint64_t type;
    struct jfr_cursor content;
};
bool jfr_next_event(const struct jfr_chunk *chunk, struct jfr_cursor *all, struct jfr_event *event);

const struct jfr_class *jfr_class_of(const struct jfr_chunk *chunk, uint64_t type);
const struct jfr_class *jfr_class_named(const struct jfr_chunk *chunk, struct text name);
/* Return the index of the field in the class, or -1. */
int jfr_field(const struct jfr_class *class, struct text name);
/* Read a struct: values[i] is its field i, of at most JFR_FIELDS_MOST. Return false and set an error if it is
   damaged. */
bool jfr_read(struct jfr_chunk *chunk, struct jfr_cursor *cursor, const struct jfr_class *class,
              struct jfr_value *values);
/* The same for a constant. Return false without an error if there is none with this id. */
bool jfr_constant(struct jfr_chunk *chunk, const struct jfr_class *class, uint64_t id,
                  struct jfr_value *values);
/* Return a constant that is a string. */
struct text jfr_constant_string(struct jfr_chunk *chunk, uint64_t id);
uint64_t jfr_take_int(const struct jfr_chunk *chunk, struct jfr_cursor *cursor);

#endif
