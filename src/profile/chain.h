/*
 * Private to the room: stacks as typed frames, leaf first.
 *
 * A recorded chain is words: addresses, and markers that say in which mode those after them ran. Most samples repeat a chain that was met
 * before, so it stays in the file as it is until it turns out to be distinct; then it is decoded, once. Stacks that the recording leaves in
 * parts (unwound.c) are frames from the start: what was recorded of them goes through the same decoder, and what was unwound brings the
 * mapping that the unwinder found.
 */
#ifndef WICK_PROFILE_CHAIN_H
#define WICK_PROFILE_CHAIN_H

#include "profile/reading.h"

/* No padding: two are the same if their bytes are. */
struct chain_frame {
    uint64_t address;
    uint32_t mapping; /* by number, where the unwinder has found it; 0: it is to be looked up */
    uint8_t mode;
    uint8_t is_call; /* a return address: location_find() says what that means */
    uint8_t is_unwound;
    uint8_t is_named; /* an interpreter's: `address` is the line << 32 | the tree's function */
};
static_assert(sizeof(struct chain_frame) == 16, "hashed and compared as two words");

struct chain_frames {
    struct chain_frame *items;
    size_t count;
    size_t capacity;
};

/* How deep a kernel records a chain, unless its administrator says otherwise. */
enum { PERF_DEPTH = 127 };

/*
 * Every address but the first after a marker is a return address. What comes before any marker is of the sample's mode.
 * perf takes that for user code unless the address stands alone; looks at 127 addresses; and a marker it does not know, the guest's among
 * them, makes it forget the whole chain.
 */
struct chain_decoder {
    struct chain_frames *frames;
    const struct quirks *quirks;
    bool is_forgotten;
    uint8_t mode;
    bool is_call;
};

/* Begin with no frames. `misc` is the sample's mode, PERF_RECORD_MISC_…; `is_alone`: the only address is the sample's own. */
void chain_begin(struct chain_decoder *decoder, struct chain_frames *frames,
                 const struct quirks *quirks, unsigned misc, bool is_alone);
/* Add `count` recorded words, 8 unaligned bytes each. */
void chain_add_words(struct chain_decoder *decoder, const uint8_t *words, uint64_t count);
static inline void chain_add_word(struct chain_decoder *decoder, uint64_t word) {
    chain_add_words(decoder, (const uint8_t *)&word, 1);
}
/* After the last: forget what perf would. */
void chain_end(const struct chain_decoder *decoder);

#endif
