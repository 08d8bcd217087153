/* Private to the room: OpenTelemetry's JSON. */
#ifndef WICK_IMPORT_OTLP_JSON_H
#define WICK_IMPORT_OTLP_JSON_H

#include "base/base.h"

/* Where a message begins, in what was made of the document and in the document. */
struct otlp_place {
    uint64_t translated, original;
};
typedef VECTOR(struct otlp_place) otlp_places;

/* Append the protobuf that a JSON document stands for. Places are released by the caller. */
bool otlp_from_json(struct text content, const char *path, struct buffer *out, otlp_places *places,
                    struct error *error);
/* The place in the document of an offset in what was made of it. */
uint64_t otlp_place_of(const otlp_places *places, uint64_t offset);

#endif
