/*
 * CPython 3.8 to 3.14: where a version keeps its threads, frames and code objects, and the walk from a thread to its frames.
 *
 * Until 3.10 each Python function has a frame object and an evaluation loop in C of its own. From 3.11 on one loop runs many frames, up to
 * the one with which it was entered. From 3.12 on that entry is a frame without a function, a local variable of the loop.
 */
#include "interpreter/python.h"

#define FRAMES_3_8                                                                                 \
    .state_thread = 176, .state_frame = 24, .read = 112, .code = 32, .previous = 24,               \
    .instruction_size = 4
#define FRAMES_3_12                                                                                \
    .read = 80, .code = 0, .previous = 8, .instruction = 56, .instruction_size = 8,                \
    .mark_mask = 255, .mark_value = 3, .has_shim = 1
#define CODE_3_8                                                                                   \
    .file = 104, .name = 112, .qualified = 112, .first_line = 40, .lines = 120, .bytecode = 48,    \
    .bytecode_is_object = true, .ascii = 48, .wide = 72
#define CODE_3_11 .file = 112, .name = 120, .qualified = 128, .lines = 136

static const struct python_layout layouts[] = {
    {.version = 0x308,
     .locals = 360,
     .attributes = 872,
     .key = 1392,
     .current = 24,
     .frames = {FRAMES_3_8, .instruction = 104},
     CODE_3_8},
    {.version = 0x309,
     .locals = 360,
     .attributes = 864,
     .key = 584,
     .current = 16,
     .frames = {FRAMES_3_8, .instruction = 104},
     CODE_3_8},
    {.version = 0x30a,
     .locals = 352,
     .attributes = 872,
     .key = 584,
     .current = 16,
     .frames = {FRAMES_3_8, .instruction = 96},
     CODE_3_8},
    {.version = 0x30b,
     .locals = 72,
     .attributes = 872,
     .key = 592,
     .current = 16,
     .frames = {.state_thread = 152,
                .state_frame = 56,
                .has_holder = 1,
                .holder_frame = 8,
                .read = 72,
                .code = 32,
                .previous = 48,
                .instruction = 56,
                .instruction_size = 8,
                .mark = 68,
                .mark_mask = 255,
                .mark_value = 1},
     CODE_3_11,
     .first_line = 72,
     .bytecode = 184,
     .ascii = 48,
     .wide = 72},
    {.version = 0x30c,
     .locals = 72,
     .attributes = 880,
     .key = 1544,
     .frames = {.state_frame = 56, .has_holder = 1, .holder_frame = 0, FRAMES_3_12, .mark = 70},
     CODE_3_11,
     .first_line = 68,
     .bytecode = 192,
     .ascii = 40,
     .wide = 56},
    {.version = 0x30d,
     .locals = 72,
     .attributes = 880,
     .values = 8,
     .key = 2160,
     .frames = {.state_frame = 72, FRAMES_3_12, .mark = 70},
     CODE_3_11,
     .first_line = 68,
     .bytecode = 200,
     .ascii = 40,
     .wide = 56},
    {.version = 0x30e,
     .key = 2336,
     .frames = {.state_frame = 72, FRAMES_3_12, .mark = 74},
     CODE_3_11,
     .first_line = 68,
     .bytecode = 208,
     .ascii = 40,
     .wide = 56},
};

/* ---- which version ---- */

/* From 3.13 on the runtime begins with a cookie, its version, and whether it is one without the global lock; from 3.11 on there is Py_Version.
   Before, only the file's name tells. */
static unsigned version_of(const struct remote *remote, const struct interpreter_symbols *symbols,
                           bool *has_lock) {
    struct {
        char cookie[8];
        uint64_t version, is_free_threaded;
    } head;
    uint32_t version;
    *has_lock = true;
    if (remote->read(remote->context, symbols->python_runtime, &head, sizeof head) &&
        memcmp(head.cookie, "xdebugpy", sizeof head.cookie) == 0) {
        *has_lock = !head.is_free_threaded;
        return (unsigned)(head.version >> 16 & 0xffff);
    }
    if (symbols->python_version &&
        remote->read(remote->context, symbols->python_version, &version, sizeof version))
        return version >> 16;
    return symbols->named_version;
}

bool python_find(const struct remote *remote, const struct interpreter_symbols *symbols,
                 struct interpreter_process *process) {
    bool has_lock;
    *process = (struct interpreter_process){.runtime = symbols->python_runtime,
                                            .code_type = symbols->python_code_type,
                                            .version = version_of(remote, symbols, &has_lock)};
    process->build = !has_lock ? " without the global lock" : symbols->is_musl ? " with musl" : "";
    for (size_t i = 0; !*process->build && i < COUNT_OF(layouts); i++) {
        if (layouts[i].version != process->version)
            continue;
        process->python = &layouts[i];
        process->layout = layouts[i].frames;
        process->layout.interpreter = INTERPRETER_PYTHON;
        process->layout.key = symbols->python_runtime + layouts[i].key;
        process->layout.code_file = layouts[i].file;
        process->layout.code_name = layouts[i].qualified;
        process->layout.code_lines = layouts[i].lines;
        process->layout.string_head = layouts[i].wide;
        process->layout.current = layouts[i].current ? process->layout.key - layouts[i].current : 0;
        return true;
    }
    return false;
}

/* ---- frames ---- */

/* What pthread_getspecific() would give for the interpreter's key. */
static uint64_t state_by_key(const struct remote *remote, const struct frame_layout *layout,
                             uint64_t thread_pointer) {
    uint32_t key[2];
    uint64_t state, block = thread_pointer + KEYS_FIRST;
    if (!remote->read(remote->context, layout->key, key, sizeof key) || !key[0] ||
        key[1] >= KEYS_MOST)
        return 0;
    uint32_t which = key[1] / KEYS_BLOCK;
    if (which && !remote_word(remote, thread_pointer + KEYS_BLOCKS + 8ull * which, &block))
        return 0;
    return block && remote_word(remote, block + 16ull * (key[1] % KEYS_BLOCK) + 8, &state) ? state
                                                                                           : 0;
}

/* The state that has the lock, if it is this thread's: another interpreter's than the key tells, perhaps. */
static uint64_t state_of(const struct remote *remote, const struct frame_layout *layout,
                         uint64_t thread_pointer) {
    uint64_t state, thread;
    if (layout->current && remote_word(remote, layout->current, &state) && state &&
        remote_word(remote, state + layout->state_thread, &thread) && thread == thread_pointer)
        return state;
    return state_by_key(remote, layout, thread_pointer);
}

static uint64_t held_frame(const struct remote *remote, const struct frame_layout *layout,
                           uint64_t holder) {
    uint64_t frame;
    return holder && remote_word(remote, holder + layout->holder_frame, &frame) ? frame : 0;
}

/* A loop that was just entered has not put its frame into its holder yet: what is there is an earlier call's. Only what leads to the frame of the
   holder before is right. */
static void walk_holders(const struct remote *remote, const struct frame_layout *layout,
                         uint64_t holder, struct raw_stack *stack) {
    uint64_t previous, before = 0;
    if (holder && remote_word(remote, holder + layout->holder_frame + HOLDER_PREVIOUS, &previous))
        before = held_frame(remote, layout, previous);
    if (!walk_frames(remote, layout, held_frame(remote, layout, holder), before, stack))
        walk_frames(remote, layout, before, 0, stack);
}

void python_walk(const struct remote *remote, const struct interpreter_process *process,
                 uint64_t thread_pointer, struct raw_stack *stack) {
    const struct frame_layout *layout = &process->layout;
    uint64_t state = state_of(remote, layout, thread_pointer), first = 0;
    if (state && !remote_word(remote, state + layout->state_frame, &first))
        first = 0;
    if (layout->has_holder)
        walk_holders(remote, layout, first, stack);
    else
        walk_frames(remote, layout, first, 0, stack);
}
