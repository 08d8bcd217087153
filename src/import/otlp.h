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

/* What attributes say of a sample. */
struct whose {
    struct text thread;
    int32_t pid, tid;
    uint8_t state;
    struct label_pair pairs[64];
    size_t count;
};

struct otlp {
    struct reader r;
    struct rows tables[TABLES];
    VECTOR(uint32_t) nodes; /* by stack: the tree's + 1; 0: not yet placed */
    struct text first_type;
    struct whose resource; /* what all samples of the resource at hand have */
    VECTOR(uint64_t) values, times;
    VECTOR(struct frame) lines; /* of the place at hand, innermost first */
    VECTOR(uint64_t) attributes;
    struct budget frames;
    struct buffer scratch;
    bool any;           /* a profile was of a wanted type */
    otlp_places places; /* of a document in JSON, which the content was made of */
};

/* Where in the file that is read, or in the JSON that it was made of. */
uint64_t otlp_offset_of(const struct otlp *t, const void *at);
/* A message that samples name, each as often as it likes: looking into it again is not free. */
struct proto otlp_look_into(struct otlp *t, struct text message);
/* Empty where there is none. */
struct text otlp_row(const struct otlp *t, unsigned table, uint64_t number);
struct text otlp_string_of(const struct otlp *t, uint64_t number);
/* A value as text; what is no string, number or truth has none. `scratch` holds what has to be written down. */
struct text otlp_value_of(struct otlp *t, struct text message);
/* Onto the reader's stack, innermost frames first. */
void otlp_push_location(struct otlp *t, uint64_t number);

#endif
