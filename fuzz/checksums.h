/* For fuzzers of recordings: the carrier's checksums, which chance would never find. */
#ifndef WICK_FUZZ_CHECKSUMS_H
#define WICK_FUZZ_CHECKSUMS_H

#include "perfdata/private.h"

/* Makes the checksum right wherever a part of the carrier may stand. */
static inline void fix_checksums(uint8_t *bytes, size_t size) {
    for (size_t at = 0; at + CARRIER_FIXED <= size; at++) {
        uint8_t *p = bytes + at;
        if (memcmp(p + CARRIER_AT_TAG, CARRIER_TAG, 8) != 0)
            continue;
        uint32_t payload = load_u32(p + CARRIER_AT_SIZE);
        if (payload > size - at - CARRIER_FIXED)
            continue;
        uint32_t sum = carrier_checksum(p, payload);
        memcpy(p + CARRIER_AT_CHECKSUM, &sum, sizeof sum);
    }
}

#endif
