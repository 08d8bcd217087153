/* Call the functions of the interpreter that a process has. */
#include "interpreter/interpreter.h"

#include "interpreter/php.h"
#include "interpreter/python.h"
#include "interpreter/ruby.h"

const char *interpreter_language(enum interpreter interpreter) {
    static const char *const names[] = {[INTERPRETER_NONE] = "",
                                        [INTERPRETER_PYTHON] = "python",
                                        [INTERPRETER_RUBY] = "ruby",
                                        [INTERPRETER_PHP] = "php"};
    return names[interpreter];
}

bool remote_word(const struct remote *remote, uint64_t address, uint64_t *word) {
    return remote->read(remote->context, address, word, sizeof *word);
}

/* ---- frames ---- */

static void frame_decode(const struct remote *remote, const struct frame_layout *layout,
                         const uint8_t *bytes, uint64_t address, struct raw_frame *frame) {
    frame->code = load_u64(bytes + layout->code) & ~(uint64_t)FRAME_BITS;
    frame->address = address;
    frame->instruction = layout->instruction_size == 8 ? load_u64(bytes + layout->instruction)
                                                       : load_u32(bytes + layout->instruction);
    if (layout->mark_value && (bytes[layout->mark] & layout->mark_mask) == layout->mark_value)
        frame->code |= layout->has_shim ? FRAME_ENTRY | FRAME_SHIM : FRAME_ENTRY;
    uint64_t file, lines, code = frame->code & ~(uint64_t)FRAME_BITS;
    if (layout->code_lines && !(frame->code & FRAME_SHIM))
        frame->address = remote_word(remote, code + layout->code_file, &file) &&
                                 remote_word(remote, code + layout->code_lines, &lines)
                             ? layout_check(file, lines)
                             : 0;
}

bool walk_frames(const struct remote *remote, const struct frame_layout *layout, uint64_t frame,
                 uint64_t wanted, struct raw_stack *stack) {
    uint8_t bytes[STACK_FRAME_READ];
    uint64_t passed = 0;
    uint32_t next = 0;
    stack->root = 0;
    stack->count = 0;
    stack->end = STACK_WHOLE;
    while (frame) {
        stack->end = STACK_DEEP;
        if (stack->count == STACK_FRAMES)
            return true;
        stack->end = STACK_UNREADABLE;
        if (frame == passed)
            return false;
        if (!remote->read(remote->context, frame, bytes, layout->read))
            return !wanted;
        if (frame == wanted)
            wanted = 0;
        if (stack->count == next) {
            passed = frame;
            next = 2 * next + 1;
        }
        frame_decode(remote, layout, bytes, frame, &stack->frames[stack->count]);
        if (!(stack->frames[stack->count++].code & FRAME_SHIM))
            stack->root = frame;
        frame = load_u64(bytes + layout->previous);
        stack->end = STACK_WHOLE;
    }
    return !wanted;
}

/* ---- which interpreter ---- */

bool interpreter_find(const struct remote *remote, const struct interpreter_symbols *symbols,
                      struct interpreter_process *process) {
    *process = (struct interpreter_process){0};
    return (symbols->python_runtime && python_find(remote, symbols, process)) ||
           (symbols->php_globals && php_find(remote, symbols, process)) ||
           (symbols->ruby_version && ruby_find(remote, symbols, process));
}

void interpreter_walk(const struct remote *remote, const struct interpreter_process *process,
                      uint64_t thread_pointer, struct raw_stack *stack) {
    switch (process->layout.interpreter) {
    case INTERPRETER_PHP:
        php_walk(remote, process, stack);
        return;
    case INTERPRETER_RUBY:
        ruby_walk(remote, process, thread_pointer, stack);
        return;
    default:
        python_walk(remote, process, thread_pointer, stack);
    }
}

bool interpreter_thread_name(const struct remote *remote, const struct interpreter_process *process,
                             uint64_t root, struct buffer *name) {
    return process->layout.interpreter == INTERPRETER_PYTHON && root &&
           python_thread_name(remote, process, root, name);
}

bool interpreter_code_identify(const struct remote *remote,
                               const struct interpreter_process *process, uint64_t address,
                               uint64_t identity[4]) {
    switch (process->layout.interpreter) {
    case INTERPRETER_PHP:
        return php_code_identify(remote, address, identity);
    case INTERPRETER_RUBY:
        return ruby_code_identify(remote, address, identity);
    default:
        return python_code_identify(remote, process, address, identity);
    }
}

bool interpreter_code_read(const struct remote *remote, const struct interpreter_process *process,
                           uint64_t address, struct interpreter_code *code) {
    *code = (struct interpreter_code){0};
    switch (process->layout.interpreter) {
    case INTERPRETER_PHP:
        return php_code_read(remote, address, code);
    case INTERPRETER_RUBY:
        return ruby_code_read(remote, address, code);
    default:
        return python_code_read(remote, process, address, code);
    }
}

void interpreter_code_release(struct interpreter_code *code) {
    buffer_release(&code->name);
    buffer_release(&code->file);
    buffer_release(&code->lines);
}

uint32_t interpreter_code_line(const struct remote *remote,
                               const struct interpreter_process *process,
                               const struct interpreter_code *code, uint64_t instruction) {
    switch (process->layout.interpreter) {
    case INTERPRETER_PHP:
        return php_code_line(remote, code, instruction);
    case INTERPRETER_RUBY:
        return ruby_code_line(remote, code, instruction);
    default:
        return python_code_line(process, code, instruction);
    }
}
