/* Private to the reader of OpenTelemetry's profiles: what otlp.c and otlp_code.c share. */
#ifndef WICK_IMPORT_OTLP_H
#define WICK_IMPORT_OTLP_H

#include "import/otlp_fields.h"
#include "import/otlp_json.h"
#include "import/proto.h"
#include "import/reader.h"

enum { TABLES = TABLE_STACK + 1 };

struct rows {
    VECTOR(struct text) list;
};

/* A sample's attributes. */
struct whose {
    struct text thread;
    int32_t pid, tid;
    uint8_t state;
    struct label_pair pairs[64];
    size_t count;
};

struct otlp {
    struct reader r;
    VECTOR(struct text) messages; /* of the content */
    struct text message;          /* the current one */
    struct rows tables[TABLES];
    VECTOR(uint32_t) nodes; /* by stack: the tree's node + 1; 0: not placed yet */
    struct text first_type;
    struct whose resource; /* attributes of all samples of the current resource */
    VECTOR(uint64_t) values, times;
    VECTOR(struct frame) lines; /* of the current location, innermost first */
    VECTOR(uint64_t) attributes;
    struct budget frames;
    struct buffer scratch;
    bool any;           /* a profile had a selected type */
    otlp_places places; /* positions in the JSON document that the content was made from */
};

/* Return the offset in the file, or in the JSON that the content was made from. */
uint64_t otlp_offset_of(const struct otlp *t, const void *at);
/* Parse a message that samples refer to, possibly many times, so charge it to the budget. */
struct proto otlp_look_into(struct otlp *t, struct text message);
/* Return an empty text if there is none. */
struct text otlp_row(const struct otlp *t, unsigned table, uint64_t number);
struct text otlp_string_of(const struct otlp *t, uint64_t number);
/* Return a value as text; only strings, numbers and booleans have one. `scratch` holds text that had to be formatted. */
struct text otlp_value_of(struct otlp *t, struct text message);
/* Push onto the reader's stack, innermost frames first. */
void otlp_push_location(struct otlp *t, uint64_t number);

#endif
