/*
 * Find the offset of a tracepoint's field. The recording contains the kernel's own descriptions, as text among other things:
 *
 *     name: sched_switch\nID: 316\nformat:\n\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n…
 */
#include "profile/waits.h"

/* "\tfield:pid_t next_pid;\toffset:56;…" */
static bool line_offset(struct text line, struct text field, uint32_t *offset) {
    size_t end = text_find(line, ';');
    if (end == SIZE_MAX || !text_ends(text_upto(line, end), field) || end <= field.length ||
        line.data[end - field.length - 1] != ' ')
        return false;
    struct text rest = text_from(line, end + 1);
    size_t at = text_search(rest, TEXT("offset:"));
    if (at == SIZE_MAX)
        return false;
    rest = text_from(rest, at + 7);
    size_t stop = text_find(rest, ';');
    uint64_t value;
    if (stop == SIZE_MAX || !text_to_u64(text_upto(rest, stop), &value) || value > UINT16_MAX)
        return false;
    *offset = (uint32_t)value;
    return true;
}

uint32_t tracepoint_field(struct text formats, const char *event, const char *field,
                          uint32_t otherwise) {
    struct buffer name = {0};
    if (!formats.length)
        return otherwise;
    buffer_printf(&name, "name: %s\n", event);
    size_t at = text_search(formats, buffer_text(&name));
    struct text rest = text_from(formats, at == SIZE_MAX ? formats.length : at + name.count);
    buffer_release(&name);
    uint32_t offset;
    while (rest.length) {
        struct text line = text_take_line(&rest);
        if (text_starts(line, TEXT("print fmt:")))
            break;
        if (line_offset(line, text_of(field), &offset))
            return offset;
    }
    return otherwise;
}
