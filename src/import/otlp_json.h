/* Private to the room: OpenTelemetry's JSON. */
#ifndef WICK_IMPORT_OTLP_JSON_H
#define WICK_IMPORT_OTLP_JSON_H

#include "base/base.h"

/* Where a message begins, in the protobuf and in the JSON document. */
struct otlp_place {
    uint64_t translated, original;
};
typedef VECTOR(struct otlp_place) otlp_places;

/* Append the protobuf for the JSON document at *at in the content, and move *at behind it and the white space that
   follows. The caller releases the places. */
bool otlp_from_json(struct text content, size_t *at, const char *path, struct buffer *out,
                    otlp_places *places, struct error *error);
/* Return the document's offset for an offset in the protobuf. */
uint64_t otlp_place_of(const otlp_places *places, uint64_t offset);

#endif
