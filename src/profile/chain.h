/*
 * Private to this room: stacks as typed frames, leaf first.
 *
 * A recorded chain consists of words: addresses, and markers for the mode in which the following ones ran. Most samples repeat an earlier chain,
 * so a chain stays in the file until it turns out to be distinct; then it is decoded, once. Stacks that the recording has only in parts
 * (unwound.c) are frames from the start: recorded parts go through the same decoder, and unwound parts have the mapping that the unwinder
 * found.
 */
#ifndef WICK_PROFILE_CHAIN_H
#define WICK_PROFILE_CHAIN_H

#include "profile/reading.h"

/* Has no padding: two frames are equal if their bytes are. */
struct chain_frame {
    uint64_t address;
    uint32_t mapping; /* by number, if the unwinder found it; 0: to be looked up */
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

/* The kernel's default limit for the depth of a chain. */
enum { PERF_DEPTH = 127 };

/*
 * Every address but the first after a marker is a return address. Addresses before any marker have the sample's mode.
 * perf treats those as user code unless the address is the only one, uses at most 127 addresses, and drops the whole chain at a marker that it
 * does not know, including the guest's.
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
/* Call it after the last word: drop the chain if perf would. */
void chain_end(const struct chain_decoder *decoder);

#endif
