/* Decode recorded chains into typed frames. */
#include "profile/chain.h"

static uint8_t mode_of_misc(unsigned misc) {
    switch (misc) {
    case PERF_RECORD_MISC_KERNEL:
        return MODE_KERNEL;
    case PERF_RECORD_MISC_HYPERVISOR:
        return MODE_HYPERVISOR;
    case PERF_RECORD_MISC_GUEST_KERNEL:
        return MODE_GUEST_KERNEL;
    case PERF_RECORD_MISC_GUEST_USER:
        return MODE_GUEST_USER;
    default:
        return MODE_USER;
    }
}

/* -1: no marker that the kernel has. */
static int mode_of_marker(uint64_t marker) {
    switch (marker) {
    case PERF_CONTEXT_HV:
        return MODE_HYPERVISOR;
    case PERF_CONTEXT_KERNEL:
        return MODE_KERNEL;
    case PERF_CONTEXT_USER:
        return MODE_USER;
    case PERF_CONTEXT_GUEST_KERNEL:
        return MODE_GUEST_KERNEL;
    case PERF_CONTEXT_GUEST_USER:
        return MODE_GUEST_USER;
    default:
        return -1;
    }
}

void chain_begin(struct chain_decoder *decoder, struct chain_frames *frames,
                 const struct quirks *quirks, unsigned misc, bool is_alone) {
    *decoder = (struct chain_decoder){
        .frames = frames,
        .quirks = quirks,
        .mode = quirks->user_before_markers && !is_alone ? MODE_USER : mode_of_misc(misc)};
    frames->count = 0;
}

static void add_marker(struct chain_decoder *decoder, uint64_t marker) {
    int mode = mode_of_marker(marker);
    decoder->is_forgotten |= decoder->quirks->strange_markers_forget &&
                             (mode < 0 || mode == MODE_GUEST_KERNEL || mode == MODE_GUEST_USER);
    if (mode >= 0)
        decoder->mode = (uint8_t)mode;
}

/* Once for each distinct chain: what the loop needs is in registers, as stores to frames could change anything else. */
void chain_add_words(struct chain_decoder *decoder, const uint8_t *words, uint64_t count) {
    struct chain_frames *frames = decoder->frames;
    size_t limit = decoder->quirks->chain_limit ? decoder->quirks->chain_limit : SIZE_MAX,
           at = frames->count;
    vector_reserve(frames, at + count);
    struct chain_frame *items = frames->items;
    struct chain_frame next = {.mode = decoder->mode, .is_call = decoder->is_call};
    for (uint64_t i = 0; i < count && at < limit; i++) {
        next.address = load_u64(words + 8 * i);
        if (next.address < CONTEXT_MARKERS_FROM) {
            items[at++] = next;
            next.is_call = true;
        } else {
            add_marker(decoder, next.address);
            next.mode = decoder->mode;
            next.is_call = false;
        }
    }
    decoder->is_call = next.is_call;
    frames->count = at;
}

void chain_end(const struct chain_decoder *decoder) {
    if (decoder->is_forgotten)
        decoder->frames->count = 0;
}
